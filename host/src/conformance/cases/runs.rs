//! `run`, and the conversation.

use std::time::Duration;

use assistant_protocol::error::{Kind, RpcError};
use assistant_protocol::types::{Part, Role, StopReason};
use serde_json::{Value, json};

use super::super::Played;
use super::super::scripted_host::{ScriptedHost, cut};
use super::{Outcome, PROMPT, again, answer, call, calls, cases, gave, of_nobody, result_of, said, task, tool};

cases! {
    "run" ASK_THE_MODEL run "A run without tools: one model call, one answer.";
    "prompt-of-each-run" ASK_THE_MODEL prompts "Each run has its own prompt, and only that.";
    "slow-model" ONE_MODEL_CALL slow_model "A model that takes its time is asked once.";
    "stop-reasons" RUN_ENDS stop_reasons "The model stops at its length, refuses, stops for a reason that nobody knows, says nothing.";
    "content-of-the-end" RUN_ENDS end_content "An answer in parts ends the run as it came.";
    "tools-are-offered" OFFER_THE_TOOLS offered "The tools of the run are offered to the model.";
    "two-runs-at-once" ONE_RUN two_at_once "A second `run` beside the first is an error.";
    "several-runs" KEEP_THE_CONVERSATION several "A second task goes on with the conversation.";
    "run-without-query" RUN_WITHOUT_QUERY without_query "A `run` without query asks the model again.";
    "history" HISTORY history "A conversation from elsewhere is gone on with.";
    "history-again" HISTORY history_again "A history takes the place of what was said before.";
    "context-and-inputs" CONTEXT_AND_INPUTS context "Context and files of a task are shown to the model.";
    "pictures" CONTEXT_AND_INPUTS pictures "A file that is a picture is shown behind its path.";
    "inserted" INSERTED_FIRST inserted "Messages that came in stand before the model's answer.";
    "verbatim" VERBATIM verbatim "Thoughts, opaque and unknown parts come back unchanged and in place.";
    "model-error" MODEL_ERRORS model_error "A model call that failed for good ends the run with its error.";
    "model-error-retryable" MODEL_ERRORS retryable "One that may be tried again is, or ends the run.";
}

/// How long the model of a case takes that is slow.
const THINKING: Duration = Duration::from_millis(300);

async fn run(host: &mut ScriptedHost) -> Outcome {
    let (run, turn) = host.first_call(&task("What is two and two?")).await?;
    let (first, last) = (turn.messages().first(), turn.messages().last());
    let says = |message: Option<&assistant_protocol::types::Message>, role, text: &str| {
        message.is_some_and(|message| message.role == role && message.content.as_text().contains(text))
    };
    if !says(first, Role::System, PROMPT) || !says(last, Role::User, "What is two and two?") {
        let expected = "asks with the prompt as the system message first, and the query as the user's last";
        return Err(host.fault(expected, cut(&turn.request.params["messages"])));
    }
    host.let_end(&run, &turn, "four").await?;
    Ok(Played::Kept)
}

async fn prompts(host: &mut ScriptedHost) -> Outcome {
    host.begin().await?;
    for prompt in ["You are the first.", "You are the second.", "You are the first."] {
        let mut params = task("go");
        params["assistant"]["system_prompt"] = json!(prompt);
        let run = host.ask("run", &params).await?;
        let turn = host.model_call().await?;
        let system = turn.messages().iter().filter(|message| message.role == Role::System);
        let told: Vec<String> = system.map(|message| message.content.as_text().into_owned()).collect();
        host.same("asks with the prompt of this run as the one system message", &vec![prompt.to_owned()], &told)?;
        host.let_end(&run, &turn, "done").await?;
    }
    Ok(Played::Kept)
}

async fn slow_model(host: &mut ScriptedHost) -> Outcome {
    let (run, turn) = host.first_call(&task("go")).await?;
    host.ping().await?;
    host.listen(THINKING).await?;
    host.let_end(&run, &turn, "done").await?;
    Ok(Played::Kept)
}

async fn stop_reasons(host: &mut ScriptedHost) -> Outcome {
    host.begin().await?;
    for (finish, why, text) in [
        ("length", StopReason::Length, "cut o"),
        ("refused", StopReason::Refused, "no"),
        ("never_heard_of", StopReason::Finished, "well"),
        ("stop", StopReason::Finished, ""),
    ] {
        let run = host.ask("run", &task("go")).await?;
        let turn = host.model_call().await?;
        host.give(&turn.request, &answer(json!(text), finish)).await?;
        let result = host.ran(&run, why).await?;
        host.same("gives the model's answer", &text, &&*result.content.as_text())?;
    }
    Ok(Played::Kept)
}

async fn end_content(host: &mut ScriptedHost) -> Outcome {
    host.begin().await?;
    let several = json!([
        { "type": "reasoning", "text": "hm" }, { "type": "text", "text": "one" }, { "type": "never_heard_of", "a": 1 },
    ]);
    let mut before: Option<(super::super::scripted_host::Turn, Value)> = None;
    for content in [several, json!([{ "type": "text", "text": "two" }])] {
        let run = host.ask("run", &again()).await?;
        let turn = host.model_call().await?;
        if let Some((earlier, message)) = before {
            host.goes_on(&earlier, &turn, &[message])?;
        }
        let given = answer(content.clone(), "stop");
        host.give(&turn.request, &given).await?;
        let ended = host.ran(&run, StopReason::Finished).await?;
        host.same("ends the run with the whole content of the model's answer", &content, &json!(ended.content))?;
        before = Some((turn, given["message"].clone()));
    }
    let run = host.ask("run", &again()).await?;
    let turn = host.model_call().await?;
    if let Some((earlier, message)) = before {
        host.goes_on(&earlier, &turn, &[message])?;
    }
    host.let_end(&run, &turn, "done").await?;
    Ok(Played::Kept)
}

async fn offered(host: &mut ScriptedHost) -> Outcome {
    let mut params = task("go");
    let odd = json!({ "type": "object", "properties": { "b": { "const": 1 }, "a": { "enum": [null, 1.5, "x"] } } });
    params["tools"] = json!([tool("look"), { "name": "odd", "description": "", "input_schema": odd }]);
    let (run, turn) = host.first_call(&params).await?;
    host.same("offers the tools of the run", &params["tools"], &turn.request.params["tools"])?;
    host.let_end(&run, &turn, "done").await?;
    for none in [json!([]), Value::Null] {
        params["tools"] = none;
        let run = host.ask("run", &params).await?;
        let turn = host.model_call().await?;
        if turn.params.tools.as_ref().is_some_and(|tools| !tools.is_empty()) {
            return Err(host.fault("offers no tools", cut(&turn.request.params["tools"])));
        }
        host.let_end(&run, &turn, "done").await?;
    }
    Ok(Played::Kept)
}

async fn two_at_once(host: &mut ScriptedHost) -> Outcome {
    let (run, turn) = host.first_call(&task("go")).await?;
    let second = host.ask("run", &task("and that")).await?;
    host.error(&second, &[]).await?;
    host.let_end(&run, &turn, "done").await?;
    Ok(Played::Kept)
}

async fn several(host: &mut ScriptedHost) -> Outcome {
    let (run, first) = host.first_call(&task("the first")).await?;
    host.let_end(&run, &first, "one").await?;
    let run = host.ask("run", &task("the second")).await?;
    let second = host.model_call().await?;
    let at = first.messages().len();
    let (said_before, new) = second.messages().split_at(second.messages().len().min(at + 1));
    let says = |role, text: &str, all: &[assistant_protocol::types::Message]| {
        all.last().is_some_and(|message| message.role == role && message.content.as_text().contains(text))
    };
    if !said_before.starts_with(first.messages())
        || !says(Role::Assistant, "one", said_before)
        || !says(Role::User, "the second", new)
    {
        let expected = "asks with the conversation of the first run, and the query of the second";
        return Err(host.fault(expected, cut(&second.request.params["messages"])));
    }
    host.let_end(&run, &second, "two").await?;
    Ok(Played::Kept)
}

async fn without_query(host: &mut ScriptedHost) -> Outcome {
    let (run, first) = host.first_call(&task("go")).await?;
    host.let_end(&run, &first, "one").await?;
    for query in [None, Some(Value::Null)] {
        let mut params = again();
        if query.is_none() {
            params.as_object_mut().and_then(|map| map.remove("query"));
        }
        let run = host.ask("run", &params).await?;
        let again = host.model_call().await?;
        if query.is_none() {
            host.goes_on(&first, &again, &[json!({ "role": "assistant", "content": "one" })])?;
        }
        host.let_end(&run, &again, "more").await?;
    }
    Ok(Played::Kept)
}

async fn history(host: &mut ScriptedHost) -> Outcome {
    let history = json!([
        { "role": "user", "content": "before" },
        { "role": "assistant", "content": [call("old", "look", json!({ "n": 1 }))] },
        result_of("old", json!([{ "type": "text", "text": "seen" }]), false),
        { "role": "assistant", "content": "and so on" },
    ]);
    let mut params = task("go on");
    params["history"] = history.clone();
    let (run, turn) = host.first_call(&params).await?;
    let held = &turn.request.params["messages"];
    let expected: Vec<assistant_protocol::types::Message> =
        serde_json::from_value(history).map_err(|error| host.fault("a history", error.to_string()))?;
    if turn.messages().get(1..=expected.len()) != Some(&expected[..]) {
        return Err(host.fault("asks with the history behind the system message", cut(held)));
    }
    host.let_end(&run, &turn, "done").await?;
    Ok(Played::Kept)
}

async fn history_again(host: &mut ScriptedHost) -> Outcome {
    let (run, turn) = host.first_call(&task("of the first run")).await?;
    host.let_end(&run, &turn, "done").await?;
    for said in ["one", "two"] {
        let history = json!([{ "role": "user", "content": said }, { "role": "assistant", "content": "yes" }]);
        let mut params = again();
        params["history"] = history.clone();
        let run = host.ask("run", &params).await?;
        let turn = host.model_call().await?;
        let expected: Vec<assistant_protocol::types::Message> =
            serde_json::from_value(history).map_err(|error| host.fault("a history", error.to_string()))?;
        host.same(
            "asks with the history alone behind the system message",
            &Some(&expected[..]),
            &turn.messages().get(1..),
        )?;
        host.let_end(&run, &turn, "done").await?;
    }
    Ok(Played::Kept)
}

async fn context(host: &mut ScriptedHost) -> Outcome {
    let mut params = task("the query itself");
    params["context"] = json!("some background");
    params["inputs"] = json!([
        { "path": "notes/a.txt", "content": "what the file says" }, { "path": "b.md", "content": "and the other one" },
    ]);
    let (run, turn) = host.first_call(&params).await?;
    let user = turn.messages().iter().filter(|message| message.role == Role::User);
    let shown: Vec<String> = user.map(|message| message.content.as_text().into_owned()).collect();
    host.same("tells the task in one message of the user", &1, &shown.len())?;
    let shown = shown.concat();
    let all = ["the query itself", "some background", "notes/a.txt", "what the file says", "b.md", "and the other one"];
    for text in all {
        if !shown.contains(text) {
            return Err(host.fault(format!("shows the model `{text}`"), crate::text::cut(&shown, 300)));
        }
    }
    host.let_end(&run, &turn, "done").await?;
    Ok(Played::Kept)
}

async fn pictures(host: &mut ScriptedHost) -> Outcome {
    let picture = |handle: &str| json!({ "type": "image", "mime_type": "image/png", "blob": handle });
    let mut params = task("Which is larger?");
    params["inputs"] = json!([
        { "path": "one.png", "content": "a picture", "picture": picture("blob:1") },
        { "path": "two.png", "content": "a picture", "picture": picture("blob:2") },
    ]);
    let (run, turn) = host.first_call(&params).await?;
    // What the model sees, in order: of texts, which paths they name.
    let parts = turn.messages().iter().skip(1).flat_map(|message| message.content.parts().into_owned());
    let seen: Vec<Value> = parts
        .flat_map(|part| match part {
            Part::Text { text } => {
                let mut paths: Vec<_> = ["one.png", "two.png"].into_iter().filter(|path| text.contains(path)).collect();
                paths.sort_by_key(|path| text.find(path));
                paths.into_iter().map(|path| json!(path)).collect()
            }
            other => vec![json!(other)],
        })
        .collect();
    let expected = vec![json!("one.png"), picture("blob:1"), json!("two.png"), picture("blob:2")];
    host.same("shows each picture behind its path", &expected, &seen)?;
    host.let_end(&run, &turn, "done").await?;
    Ok(Played::Kept)
}

async fn inserted(host: &mut ScriptedHost) -> Outcome {
    let came = json!([{ "role": "user", "content": "news" }, { "role": "user", "content": [{ "type": "text", "text": "more" }] }]);
    // With an answer that ends the run.
    let (run, before) = host.first_call(&task("go")).await?;
    let mut answer = said("one");
    answer["inserted"] = came.clone();
    host.give(&before.request, &answer).await?;
    host.ran(&run, StopReason::Finished).await?;
    let run = host.ask("run", &again()).await?;
    let first = host.model_call().await?;
    host.goes_on(&before, &first, &[came[0].clone(), came[1].clone(), answer["message"].clone()])?;
    // With one that calls a tool.
    let mut answer = calls(vec![call("c1", "look", json!({}))]);
    answer["inserted"] = came.clone();
    host.give(&first.request, &answer).await?;
    let tool = host.tool_call().await?;
    host.give(&tool.request, &gave("seen")).await?;
    let second = host.model_call().await?;
    let with = [
        came[0].clone(),
        came[1].clone(),
        answer["message"].clone(),
        result_of("c1", gave("seen")["content"].clone(), false),
    ];
    host.goes_on(&first, &second, &with)?;
    host.let_end(&run, &second, "done").await?;
    Ok(Played::Kept)
}

async fn verbatim(host: &mut ScriptedHost) -> Outcome {
    let (run, first) = host.first_call(&task("go")).await?;
    let parts = json!([
        { "type": "reasoning", "text": "hm" },
        { "type": "opaque", "provider": "p", "model": "m", "data": { "signature": "x==", "z": [null, 1.5], "a": {} } },
        { "type": "never_heard_of", "b": { "deep": [true, "😀"] }, "a": null },
        { "type": "text", "text": "I look" },
        call("c1", "look", json!({ "z": 1, "a": { "n": null, "t": "\u{2028}" } })),
        { "type": "text", "text": "" },
        { "type": "image", "mime_type": "image/png", "blob": "blob:0123" },
    ]);
    host.give(&first.request, &answer(parts.clone(), "tool_calls")).await?;
    let tool = host.tool_call().await?;
    let content = json!([
        { "type": "text", "text": "seen" }, { "type": "image", "mime_type": "image/png", "data": "AA==" },
        { "type": "never_heard_of", "x": 1 },
    ]);
    host.give(&tool.request, &json!({ "content": content, "is_error": false, "structured_content": { "n": 1 } }))
        .await?;
    let second = host.model_call().await?;
    let with = [json!({ "role": "assistant", "content": parts }), result_of("c1", content, false)];
    host.goes_on(&first, &second, &with)?;
    host.let_end(&run, &second, "done").await?;
    // A text stays a text.
    let run = host.ask("run", &again()).await?;
    let third = host.model_call().await?;
    host.goes_on(&second, &third, &[json!({ "role": "assistant", "content": "done" })])?;
    host.let_end(&run, &third, "done again").await?;
    Ok(Played::Kept)
}

fn failed(retryable: bool) -> RpcError {
    RpcError::new(Kind::ModelFailed, "the provider failed")
        .with("provider", "scripted")
        .with("status", 503)
        .with("retryable", retryable)
}

async fn model_error(host: &mut ScriptedHost) -> Outcome {
    host.begin().await?;
    let [context, budget] = [Kind::ContextExceeded, Kind::BudgetExceeded].map(|kind| RpcError::new(kind, "no"));
    for given in [failed(false), context, budget, of_nobody()] {
        let run = host.ask("run", &task("go")).await?;
        let turn = host.model_call().await?;
        host.refuse(&turn.request, given.clone()).await?;
        host.fails_so(&run, &given).await?;
    }
    // It can be asked again.
    let run = host.ask("run", &again()).await?;
    let turn = host.model_call().await?;
    host.let_end(&run, &turn, "done").await?;
    Ok(Played::Kept)
}

/// How often one call may be asked again.
const TRIES_MAX: usize = 20;

async fn retryable(host: &mut ScriptedHost) -> Outcome {
    let (run, first) = host.first_call(&task("go")).await?;
    host.refuse(&first.request, failed(true)).await?;
    let Some(second) = host.model_call_or_end().await? else {
        host.error(&run, &[Kind::ModelFailed]).await?;
        return Ok(Played::Kept);
    };
    host.goes_on(&first, &second, &[])?;
    host.let_end(&run, &second, "at last").await?;
    // Where the model does not come back, it has to end.
    let run = host.ask("run", &task("once more")).await?;
    for _ in 0..TRIES_MAX {
        let Some(turn) = host.model_call_or_end().await? else {
            host.error(&run, &[Kind::ModelFailed]).await?;
            return Ok(Played::Kept);
        };
        host.refuse(&turn.request, failed(true)).await?;
    }
    match host.model_call_or_end().await? {
        Some(_) => Err(host.fault(format!("asks at most {TRIES_MAX} times"), "it asks once more")),
        None => Ok(Played::Kept),
    }
}
