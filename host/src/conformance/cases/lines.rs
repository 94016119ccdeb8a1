//! Lines, ids and answers.

use assistant_protocol::error::Kind;
use assistant_protocol::types::StopReason;
use assistant_protocol::wire::{ID_MAX, Id};
use serde_json::{Value, json};

use super::super::Played;
use super::super::scripted_host::ScriptedHost;
use super::{Outcome, call, calls, cases, gave, result_of, said, task};

cases! {
    "ping" PING_ANY_TIME ping "`ping` is answered before, in and after a run.";
    "ids" ANSWER_ONCE ids "Requests have ids of every kind; 1 and \"1\" are two.";
    "unknown-method" UNKNOWN_METHOD unknown_method "A method that nobody knows is an error.";
    "bad-params" BAD_PARAMS bad_params "Params that do not fit are an error.";
    "params-that-are-no-object" BAD_PARAMS no_object "Params that are a list or a text are an error.";
    "unknown-fields" UNKNOWN_FIELDS unknown_fields "Results of the host have fields that nobody knows.";
    "nulls" NULL_IS_ABSENT nulls "Every optional field is null.";
    "junk" JUNK junk "Lines that are no messages, messages without id and answers to nothing are skipped.";
    "second-answer" JUNK second_answer "A second answer to a request is ignored.";
    "unicode" UNICODE unicode "Any text comes through unchanged.";
    "lone-surrogate" UNICODE lone_surrogate "An escape that is half a character ends nothing.";
    "lone-surrogate-in-a-call" UNICODE half_a_call "A model's answer calls a tool with half a character.";
    "exact-numbers" EXACT_NUMBERS exact "Numbers beyond 2^53 come back as they came.";
    "carriage-returns" JUNK carriage_returns "Lines may end in CR LF.";
}

async fn ping(host: &mut ScriptedHost) -> Outcome {
    let (run, turn) = host.first_call(&task("go")).await?;
    host.ping().await?;
    host.give(&turn.request, &calls(vec![call("c1", "look", json!({}))])).await?;
    let tool = host.tool_call().await?;
    host.ping().await?;
    host.give(&tool.request, &gave("seen")).await?;
    let turn = host.model_call().await?;
    host.let_end(&run, &turn, "done").await?;
    host.ping().await?;
    Ok(Played::Kept)
}

async fn ids(host: &mut ScriptedHost) -> Outcome {
    host.begin().await?;
    let long = "x".repeat(1024);
    let all = [
        Id::Text("1".into()),
        Id::Text(String::new()),
        Id::Text("ä \"\\ 😀".into()),
        Id::Text(long),
        Id::Number(ID_MAX),
    ];
    for id in all {
        host.ask_as(id.clone(), "ping", &json!({})).await?;
        let told = host.answer_beside(&id).await?;
        told.map_err(|error| host.fault("answers `ping`", error.to_string()))?;
    }
    Ok(Played::Kept)
}

async fn unknown_method(host: &mut ScriptedHost) -> Outcome {
    host.begin().await?;
    let asked = host.ask("never_heard_of", &json!({ "a": 1 })).await?;
    host.error(&asked, &[Kind::MethodNotFound]).await?;
    host.ping().await?;
    Ok(Played::Kept)
}

async fn bad_params(host: &mut ScriptedHost) -> Outcome {
    host.begin().await?;
    let no_assistant = [json!({}), json!({ "assistant": "x" }), json!({ "assistant": { "id": 7 } })];
    let bad = [
        ("query", json!(["go"])),
        ("context", json!({ "text": "some background" })),
        ("inputs", json!("notes.txt")),
        ("tools", json!({ "name": "look" })),
        ("history", json!("before")),
    ];
    let bad = bad.into_iter().map(|(name, value)| {
        let mut params = task("go");
        params[name] = value;
        params
    });
    for params in no_assistant.into_iter().chain(bad) {
        let run = host.ask("run", &params).await?;
        // It may go so far as to ask with them: then it has taken them.
        if let Some(method) = host.asks("answers `run`").await? {
            return Err(
                host.fault("answers `run` with the error invalid_params (-32602)", format!("it asks `{method}`"))
            );
        }
        host.error(&run, &[Kind::InvalidParams]).await?;
    }
    let run = host.ask("run", &task("go")).await?;
    let turn = host.model_call().await?;
    host.let_end(&run, &turn, "done").await?;
    Ok(Played::Kept)
}

async fn no_object(host: &mut ScriptedHost) -> Outcome {
    host.begin().await?;
    for params in [json!([1, 2]), json!("text")] {
        let run = host.ask("run", &params).await?;
        host.error(&run, &[Kind::InvalidParams]).await?;
    }
    host.ping().await?;
    Ok(Played::Kept)
}

async fn unknown_fields(host: &mut ScriptedHost) -> Outcome {
    let mut params = task("go");
    params["never_heard_of"] = json!([{}]);
    let (run, turn) = host.first_call(&params).await?;
    let mut answer = calls(vec![call("c1", "look", json!({}))]);
    answer["mood"] = json!("good");
    host.give(&turn.request, &answer).await?;
    let tool = host.tool_call().await?;
    let mut result = gave("seen");
    result["colour"] = json!({ "a": null });
    host.give(&tool.request, &result).await?;
    let turn = host.model_call().await?;
    host.let_end(&run, &turn, "done").await?;
    Ok(Played::Kept)
}

async fn nulls(host: &mut ScriptedHost) -> Outcome {
    let mut params = task("go");
    for name in ["context", "inputs", "tools", "output_schema", "history"] {
        params[name] = Value::Null;
    }
    let (run, turn) = host.first_call(&params).await?;
    let mut answer = calls(vec![call("c1", "look", json!({}))]);
    (answer["usage"], answer["inserted"]) = (Value::Null, Value::Null);
    host.give(&turn.request, &answer).await?;
    let tool = host.tool_call().await?;
    let result = json!({ "content": null, "structured_content": null, "is_error": null, "end_run": null });
    host.give(&tool.request, &result).await?;
    let turn = host.model_call().await?;
    host.let_end(&run, &turn, "done").await?;
    Ok(Played::Kept)
}

async fn junk(host: &mut ScriptedHost) -> Outcome {
    host.begin().await?;
    for line in [
        &b""[..],
        b"   ",
        b"hello",
        b"7",
        b"null",
        b"[1,2]",
        b"{}",
        b"{\"jsonrpc\":\"2.0\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"note\",\"params\":{}}",
        b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":987654,\"result\":{}}",
        b"{\"jsonrpc\":\"2.0\",\"id\":\"nobody\",\"error\":{\"code\":1,\"message\":\"m\"}}",
        b"\xff\xfe\x00 no text",
    ] {
        host.raw(&[line, b"\n"].concat()).await?;
    }
    host.ping().await?;
    let run = host.ask("run", &task("go")).await?;
    let turn = host.model_call().await?;
    host.let_end(&run, &turn, "done").await?;
    Ok(Played::Kept)
}

async fn second_answer(host: &mut ScriptedHost) -> Outcome {
    let (run, turn) = host.first_call(&task("go")).await?;
    let line = host.result_line(&turn.request, &calls(vec![call("c1", "look", json!({}))]));
    host.raw(&[line.clone(), line].concat()).await?;
    let tool = host.tool_call().await?;
    host.ping().await?;
    host.give(&tool.request, &gave("seen")).await?;
    let turn = host.model_call().await?;
    host.let_end(&run, &turn, "done").await?;
    Ok(Played::Kept)
}

async fn unicode(host: &mut ScriptedHost) -> Outcome {
    let text = "  plain ä ß 漢字 😀 \u{2028}\u{2029}\u{85} \u{0}\u{1f}\u{7f} \"\\ / </message> \u{feff} e\u{301} \u{10ffff} \n";
    let (run, turn) = host.first_call(&task(text)).await?;
    if !turn.messages().iter().any(|message| message.content.as_text().contains(text)) {
        return Err(
            host.fault("asks with the query as it came", super::super::scripted_host::cut(&turn.request.params))
        );
    }
    // The same once more in escapes, as another host may write it.
    let escaped: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
    let line = serde_json::to_string(&turn.request.id).unwrap_or_default();
    host.is_answered(&turn.request);
    host.raw(
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{line},\"result\":{{\"message\":{{\"role\":\"assistant\",\"content\":\"{escaped}\"}},\
             \"finish_reason\":\"stop\",\"model\":\"scripted\"}}}}\n"
        )
        .as_bytes(),
    )
    .await?;
    let result = host.ran(&run, StopReason::Finished).await?;
    host.same("gives the text as it came", &text, &&*result.content.as_text())?;
    Ok(Played::Kept)
}

async fn lone_surrogate(host: &mut ScriptedHost) -> Outcome {
    host.begin().await?;
    // Whether that is a message is left open; that it ends nothing is not.
    host.raw(b"{\"jsonrpc\":\"2.0\",\"id\":\"cut\",\"result\":{\"text\":\"\\ud800\"}}\n").await?;
    host.ping().await?;
    // In a query it is one of a request, which has an answer: an error, or the run goes on with what there is.
    let run = Id::Text("half".into());
    let line = String::from_utf8_lossy(&host.line(run.clone(), "run", &task("HALF of it"))).replace("HALF", "\\ud800");
    host.raw(line.as_bytes()).await?;
    match host.model_call_or_end().await? {
        Some(turn) => {
            host.give(&turn.request, &said("done")).await?;
            host.ran(&run, StopReason::Finished).await?;
        }
        // An adapter makes no model calls.
        None if host.habits.is_adapter() => {}
        None => {
            host.error(&run, &[]).await?;
        }
    }
    let run = host.ask("run", &task("go")).await?;
    let turn = host.model_call().await?;
    host.let_end(&run, &turn, "done").await?;
    Ok(Played::Kept)
}

async fn half_a_call(host: &mut ScriptedHost) -> Outcome {
    let (run, turn) = host.first_call(&task("go")).await?;
    let line = host.result_line(&turn.request, &calls(vec![call("c1", "look", json!({ "text": "HALF" }))]));
    host.raw(String::from_utf8_lossy(&line).replace("HALF", "\\ud800").as_bytes()).await?;
    // Whether it goes on or fails is left open; that it does one of them is not.
    while let Some(method) = host.asks("goes on with its `run`, or answers it").await? {
        if method == "on_llm_request" {
            let turn = host.model_call().await?;
            host.give(&turn.request, &said("done")).await?;
        } else {
            let tool = host.tool_call().await?;
            host.give(&tool.request, &gave("seen")).await?;
        }
    }
    // Either answer will do.
    let _ended = host.answer_beside(&run).await?;
    let run = host.ask("run", &task("go on")).await?;
    let turn = host.model_call().await?;
    host.let_end(&run, &turn, "done").await?;
    Ok(Played::Kept)
}

async fn exact(host: &mut ScriptedHost) -> Outcome {
    let numbers = json!({ "odd": 9_007_199_254_740_993_u64, "long": 12_345_678_901_234_567_u64, "low": i64::MIN });
    let (run, first) = host.first_call(&task("go")).await?;
    let opaque = json!({ "type": "opaque", "provider": "p", "model": "m", "data": numbers });
    let wanted = calls(vec![opaque, call("c1", "look", numbers.clone())]);
    host.give(&first.request, &wanted).await?;
    let tool = host.tool_call().await?;
    host.same("calls with the numbers as they came", &numbers, &tool.params.arguments)?;
    host.give(&tool.request, &gave("seen")).await?;
    let second = host.model_call().await?;
    let with = [wanted["message"].clone(), result_of("c1", gave("seen")["content"].clone(), false)];
    host.goes_on(&first, &second, &with)?;
    host.let_end(&run, &second, "done").await?;
    Ok(Played::Kept)
}

async fn carriage_returns(host: &mut ScriptedHost) -> Outcome {
    host.begin().await?;
    let mut line = host.line(Id::Text("crlf".into()), "ping", &json!({}));
    line.pop();
    line.extend_from_slice(b"\r\n");
    host.raw(&line).await?;
    let told = host.answer_beside(&Id::Text("crlf".into())).await?;
    told.map_err(|error| host.fault("answers `ping`", error.to_string()))?;
    Ok(Played::Kept)
}
