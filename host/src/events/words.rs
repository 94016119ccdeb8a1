//! Events as lines for people.

use serde_json::Value;

use crate::text::one_line;

/// What an event of a log tells, on one line; none where it is nothing to people.
pub(crate) fn in_words(kind: &str, data: &Value) -> Option<String> {
    let text = |key: &str| data[key].as_str().unwrap_or_default().to_owned();
    let line = match kind {
        "status" if data["question_expired"].is_string() => "a question of it has expired".to_owned(),
        "status" if data["output"].is_string() => "its result did not fit and was sent back".to_owned(),
        "status" if data["afresh"].is_string() => format!("begins afresh: {}", text("afresh")),
        "status" if data["agent_session"].is_string() => format!("works in the session {}", text("agent_session")),
        "status" if data["lacks"].is_string() => format!("goes without {}: {}", text("lacks"), text("why")),
        "status" if data["memory"].is_string() => format!("memory: {}", text("memory")),
        "status" if data["worktree"].is_string() => worktree(data),
        "status" => match (data["status"].as_str(), data["cancel_requested"].as_str()) {
            (Some(status), _) => {
                let why = data["reason"].as_str().or(data["cause"].as_str());
                let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
                let error = data["error"].as_str().map(|error| format!(": {error}")).unwrap_or_default();
                let runner = data["runner"].as_str().map(|name| format!(" by the runner {name}")).unwrap_or_default();
                let launcher = data["launcher"].as_str().map(|name| format!(" in {name}")).unwrap_or_default();
                format!("{status}{runner}{launcher}{why}{error}")
            }
            (None, Some(cause)) => format!("is to be cancelled ({cause})"),
            (None, None) => format!("cancelled because: {}", data["cancel_reason"].as_str()?),
        },
        "model_call" if data["hand_in"].is_string() => {
            format!("asks {} for what it has (limit {})", text("model"), text("hand_in"))
        }
        "model_call" => format!("asks {}", text("model")),
        "model_retry" => {
            format!("again in {} ms (retry {}): {}", data["wait_ms"], data["retry"], text("error"))
        }
        "model_answer" if data["error"].is_string() => format!("the model failed: {}", text("error")),
        "model_answer" => {
            let usage = &data["usage"];
            let cost = data["cost_usd"].as_f64().map(|cost| format!(", ${cost:.4}")).unwrap_or_default();
            let model = data["model"].as_str().filter(|_| data["agent"] == true);
            let model = model.map(|model| format!(" of {model}")).unwrap_or_default();
            let calls = data["calls"].as_u64().filter(|calls| *calls > 1);
            let calls = calls
                .map(|calls| format!("{calls} model calls{model} "))
                .unwrap_or_else(|| if model.is_empty() { String::new() } else { format!("a model call{model} ") });
            format!(
                "{calls}answered ({} in, {} out{cost})",
                tokens(&usage["input_tokens"]),
                tokens(&usage["output_tokens"])
            )
        }
        "tool_call" if data["approved"] == true => format!("{} was approved", text("tool")),
        "tool_call" if data["approved"] == false => format!("{} was denied: {}", text("tool"), text("reason")),
        "tool_call" => format!("calls {}", text("tool")),
        "tool_result" if data["is_error"] == true => format!("{} failed", text("tool")),
        "tool_result" => return None,
        "refused" => format!("{} was refused: {}", text("tool"), text("rule")),
        "server" => format!("server {}: {}", text("server"), text("what")),
        "message" => format!("{}: {} to {}", text("kind"), text("from"), text("to")),
        "progress" if data["reasoning"] == true => format!("thinks: {}", text("text")),
        "progress" => text("text"),
        "stderr" => format!("stderr: {}", text("line")),
        "link" if data["unanswered"].is_string() => {
            format!("the runner did not heed {} within {} ms (limit {})", text("unanswered"), data["ms"], text("limit"))
        }
        "link" if data["left_off"].is_string() => "tells more than is recorded".to_owned(),
        "link" if data["left_out"].is_string() => {
            format!("{} of its result was too large and was left out (limit {})", text("left_out"), text("limit"))
        }
        "link" => format!("odd lines on its pipe: {data}"),
        "run" | "asked" => passed(kind, data)?,
        _ => data.to_string(),
    };
    Some(one_line(&line))
}

/// What became of a worktree.
fn worktree(data: &Value) -> String {
    let text = |key: &str| data[key].as_str().unwrap_or_default();
    let place = format!("the git worktree {}, branch {}", text("worktree"), text("branch"));
    match (data["kept"].as_str(), data["gone"].as_str()) {
        (Some(holds), _) => format!("kept is {place}: {holds}"),
        (None, Some(why)) => format!("gone is {place}: {why}"),
        (None, None) if data["again"] == true => format!("works again in {place}"),
        (None, None) if data["submodules"].is_string() => {
            format!("works in {place}; its submodules are {}", text("submodules"))
        }
        (None, None) => format!("works in {place}"),
    }
}

/// What passed between the host and the runner, where no other event tells it.
fn passed(kind: &str, data: &Value) -> Option<String> {
    let text = |key: &str| data[key].as_str().map(str::to_owned);
    let failed = data["error"]["message"].as_str().map(|message| format!(" with an error: {message}"));
    match kind {
        "run" if data["run"].is_u64() => Some(format!("is asked to run ({})", data["run"])),
        "run" if data["answered"].is_u64() => {
            Some(format!("answered its run ({}){}", data["answered"], failed.or_else(|| ended(data))?))
        }
        "asked" if data["left_off"] == true => Some("asked more than is recorded".to_owned()),
        "run" => text("cancel").map(|why| format!("is asked to stop: {why}")),
        _ => {
            let what = text("tool").or_else(|| text("method"))?;
            Some(format!("{what} was answered{}", failed.unwrap_or_default()))
        }
    }
}

fn ended(data: &Value) -> Option<String> {
    data["stop_reason"].as_str().map(|reason| format!(": {reason}"))
}

fn tokens(value: &Value) -> String {
    value.as_u64().map_or_else(|| "?".to_owned(), |count| format!("{count} tokens"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_are_lines() {
        let check = |kind: &str, data: Value, want: &str| assert_eq!(in_words(kind, &data).unwrap_or_default(), want);
        check("status", json!({ "status": "running" }), "running");
        check(
            "status",
            json!({ "status": "failed", "reason": "timed_out", "error": "too\nlong" }),
            "failed (timed_out): too long",
        );
        check("status", json!({ "status": "cancelled", "cause": "requested", "error": null }), "cancelled (requested)");
        check("status", json!({ "cancel_requested": "requested" }), "is to be cancelled (requested)");
        let place = |more: Value| {
            let mut told = json!({ "worktree": "/w/x", "branch": "assistant/x" });
            told.as_object_mut().expect("a map").extend(more.as_object().cloned().expect("a map"));
            told
        };
        check("status", place(json!({ "base": "0" })), "works in the git worktree /w/x, branch assistant/x");
        let kept = "kept is the git worktree /w/x, branch assistant/x: 1 commit";
        check("status", place(json!({ "kept": "1 commit" })), kept);
        check("status", place(json!({ "gone": "y" })), "gone is the git worktree /w/x, branch assistant/x: y");
        check("model_answer", json!({ "usage": { "input_tokens": 5 } }), "answered (5 tokens in, ? out)");
        let told = json!({ "usage": { "input_tokens": 5, "output_tokens": 1 }, "cost_usd": 0.012 });
        check("model_answer", told, "answered (5 tokens in, 1 tokens out, $0.0120)");
        let told =
            json!({ "usage": { "input_tokens": 5, "output_tokens": 1 }, "agent": true, "calls": 2, "model": "m" });
        check("model_answer", told, "2 model calls of m answered (5 tokens in, 1 tokens out)");
        check("status", json!({ "agent_session": "s" }), "works in the session s");
        check("status", json!({ "lacks": "Bash", "why": "w" }), "goes without Bash: w");
        check("progress", json!({ "text": "t", "reasoning": true }), "thinks: t");
        check("tool_call", json!({ "tool": "x", "call_id": "1", "arguments": {} }), "calls x");
        check("tool_call", json!({ "tool": "x", "approved": false, "reason": "no" }), "x was denied: no");
        check("model_call", json!({ "model": "m" }), "asks m");
        check("model_call", json!({ "model": "m", "hand_in": "turns" }), "asks m for what it has (limit turns)");
        check(
            "link",
            json!({ "limit": "ping_ms", "unanswered": "ping", "ms": 5 }),
            "the runner did not heed ping within 5 ms (limit ping_ms)",
        );
        check("progress", json!({ "text": "\u{1b}[2J" }), "\u{fffd}[2J");
        check("tool_result", json!({ "tool": "x", "is_error": false }), "");
        check("run", json!({ "run": 2, "query": "q" }), "is asked to run (2)");
        check("run", json!({ "answered": 1, "stop_reason": "finished" }), "answered its run (1): finished");
        check("run", json!({ "answered": 1, "error": { "message": "m" } }), "answered its run (1) with an error: m");
        check("run", json!({ "cancel": "cancelled", "grace_ms": 5 }), "is asked to stop: cancelled");
        check("run", json!({ "deliver": "0" }), "");
        check("asked", json!({ "method": "recv_message", "result": {} }), "recv_message was answered");
        check("asked", json!({ "left_off": true }), "asked more than is recorded");
        let told = json!({ "method": "on_tool_call", "tool": "x", "error": { "message": "m" } });
        check("asked", told, "x was answered with an error: m");
    }
}
