//! Tool calls.

use assistant_protocol::error::{Kind, RpcError};
use assistant_protocol::types::StopReason;
use serde_json::json;

use super::super::Played;
use super::super::scripted_host::{ScriptedHost, cut};
use super::{
    Outcome, answer, call, calls, cases, gave, is_call, of_nobody, result_of, results, results_in_order, task,
};

cases! {
    "tool" CALL_THE_TOOLS tool "A tool call of the model is made, and its result given back.";
    "tool-whatever-the-reason" CALL_THE_TOOLS whatever "Tool calls are made where the model gives another reason for its end.";
    "tool-error" TOOL_ERRORS_ARE_RESULTS tool_error "A result that is an error is one.";
    "tools-at-once" CALLS_AT_ONCE at_once "Three calls are made beside each other.";
    "out-of-order" IN_THE_ORDER_OF_ANSWERS out_of_order "Results are told in the order in which they come.";
    "hundred-tools" CALL_THE_TOOLS hundred "A hundred calls of one answer are all made, each once.";
    "hundreds-of-tools" MANY_CALLS hundreds "Of three hundred calls of one answer, never more than 256 are in flight.";
    "mendable-errors" MENDABLE_ERRORS mendable "A call that is refused is told to the model.";
    "fatal-error" MENDABLE_ERRORS fatal "A call that no model can mend ends the run with its error.";
    "bad-arguments" BAD_ARGUMENTS bad_arguments "A call whose arguments are no JSON is not made.";
    "end-run" END_RUN end_run "A tool's result ends the run.";
    "end-run-of-several" END_RUN several_end "Several results end the run: the last that comes counts.";
}

async fn tool(host: &mut ScriptedHost) -> Outcome {
    let (run, first) = host.first_call(&task("go")).await?;
    let arguments = json!({ "n": 7, "deep": { "list": [1, "two", null] } });
    let wanted = calls(vec![call("c1", "look", arguments.clone())]);
    host.give(&first.request, &wanted).await?;
    let asked = host.tool_call().await?;
    if !is_call(&asked, "c1", "look", &arguments) {
        return Err(host.fault("calls the tool as the model said", cut(&asked.request.params)));
    }
    host.give(&asked.request, &gave("seven")).await?;
    let second = host.model_call().await?;
    host.goes_on(
        &first,
        &second,
        &[wanted["message"].clone(), result_of("c1", gave("seven")["content"].clone(), false)],
    )?;
    host.let_end(&run, &second, "done").await?;
    Ok(Played::Kept)
}

async fn whatever(host: &mut ScriptedHost) -> Outcome {
    let (run, mut turn) = host.first_call(&task("go")).await?;
    for reason in ["stop", "length", "never_heard_of"] {
        let wanted = answer(json!([call(reason, "look", json!({}))]), reason);
        host.give(&turn.request, &wanted).await?;
        let asked = host.tool_call().await?;
        host.give(&asked.request, &gave("seen")).await?;
        turn = host.model_call().await?;
    }
    host.let_end(&run, &turn, "done").await?;
    Ok(Played::Kept)
}

async fn tool_error(host: &mut ScriptedHost) -> Outcome {
    let (run, first) = host.first_call(&task("go")).await?;
    let wanted = calls(vec![call("c1", "look", json!({}))]);
    host.give(&first.request, &wanted).await?;
    let asked = host.tool_call().await?;
    let content = json!([{ "type": "text", "text": "no such file" }]);
    host.give(&asked.request, &json!({ "content": content, "is_error": true })).await?;
    let second = host.model_call().await?;
    host.goes_on(&first, &second, &[wanted["message"].clone(), result_of("c1", content, true)])?;
    host.let_end(&run, &second, "done").await?;
    Ok(Played::Kept)
}

async fn at_once(host: &mut ScriptedHost) -> Outcome {
    let (run, first) = host.first_call(&task("go")).await?;
    let wanted = ["a", "b", "c"].map(|id| call(id, "look", json!({})));
    host.give(&first.request, &calls(wanted.to_vec())).await?;
    let all = [host.tool_call().await?, host.tool_call().await?, host.tool_call().await?];
    for asked in &all {
        host.give(&asked.request, &gave("seen")).await?;
    }
    let second = host.model_call().await?;
    host.let_end(&run, &second, "done").await?;
    Ok(Played::Kept)
}

async fn out_of_order(host: &mut ScriptedHost) -> Outcome {
    let (run, first) = host.first_call(&task("go")).await?;
    let wanted = ["a", "b", "c"].map(|id| call(id, "look", json!({})));
    host.give(&first.request, &calls(wanted.to_vec())).await?;
    let (mut answered, mut waiting) = (Vec::new(), vec![host.tool_call().await?]);
    // What is asked beside the first is there when a ping behind it is answered.
    host.ping().await?;
    while !host.inbox.is_empty() {
        waiting.push(host.tool_call().await?);
    }
    while answered.len() < wanted.len() {
        let asked = match waiting.pop() {
            Some(asked) => asked,
            None => host.tool_call().await?,
        };
        answered.push(asked.params.call_id.clone());
        host.give(&asked.request, &gave("seen")).await?;
    }
    let second = host.model_call().await?;
    host.same("adds results in the order in which they came", &answered, &results_in_order(&second))?;
    host.let_end(&run, &second, "done").await?;
    Ok(Played::Kept)
}

async fn hundred(host: &mut ScriptedHost) -> Outcome {
    let (run, first) = host.first_call(&task("go")).await?;
    let wanted: Vec<_> = (0..100).map(|n| call(&format!("c{n}"), "add", json!({ "n": n }))).collect();
    host.give(&first.request, &calls(wanted)).await?;
    let mut made = Vec::new();
    for _ in 0..100 {
        let asked = host.tool_call().await?;
        host.give(&asked.request, &gave("added")).await?;
        made.push(asked.params.call_id);
    }
    let second = host.model_call().await?;
    made.sort_unstable();
    let mut all: Vec<String> = (0..100).map(|n| format!("c{n}")).collect();
    all.sort_unstable();
    host.same("makes each call once", &all, &made)?;
    host.let_end(&run, &second, "done").await?;
    Ok(Played::Kept)
}

async fn hundreds(host: &mut ScriptedHost) -> Outcome {
    const CALLS: usize = 300;
    let (run, first) = host.first_call(&task("go")).await?;
    let wanted = (0..CALLS).map(|n| call(&format!("c{n}"), "add", json!({ "n": n }))).collect();
    host.give(&first.request, &calls(wanted)).await?;
    // What it asks before it is answered anything is there when a ping behind it is answered.
    host.ping().await?;
    for _ in 0..CALLS {
        let asked = host.tool_call().await?;
        host.give(&asked.request, &gave("added")).await?;
    }
    let second = host.model_call().await?;
    host.let_end(&run, &second, "done").await?;
    Ok(Played::Kept)
}

async fn mendable(host: &mut ScriptedHost) -> Outcome {
    let (run, mut turn) = host.first_call(&task("go")).await?;
    for kind in Kind::MENDABLE {
        host.give(&turn.request, &calls(vec![call(kind.name(), "look", json!({}))])).await?;
        let asked = host.tool_call().await?;
        host.refuse(&asked.request, RpcError::new(*kind, "not like this")).await?;
        turn = host.model_call().await?;
        host.same(
            &format!("tells the model that the call failed ({})", kind.name()),
            &vec![true],
            &results(&turn, kind.name()),
        )?;
    }
    host.let_end(&run, &turn, "done").await?;
    Ok(Played::Kept)
}

async fn fatal(host: &mut ScriptedHost) -> Outcome {
    host.begin().await?;
    let known = [Kind::BudgetExceeded, Kind::InternalError].map(|kind| RpcError::new(kind, "it is over"));
    for given in known.into_iter().chain([of_nobody()]) {
        let run = host.ask("run", &task("go")).await?;
        let turn = host.model_call().await?;
        host.give(&turn.request, &calls(vec![call(&given.code.to_string(), "look", json!({}))])).await?;
        let asked = host.tool_call().await?;
        host.refuse(&asked.request, given.clone()).await?;
        host.fails_so(&run, &given).await?;
    }
    Ok(Played::Kept)
}

async fn bad_arguments(host: &mut ScriptedHost) -> Outcome {
    let (run, first) = host.first_call(&task("go")).await?;
    let broken = json!({ "type": "tool_call", "call_id": "c1", "tool_name": "look", "arguments_text": "{\"n\": 1" });
    host.give(&first.request, &answer(json!([broken]), "tool_calls")).await?;
    let second = host.model_call().await?;
    host.same("tells the model that the call was not made", &vec![true], &results(&second, "c1"))?;
    host.let_end(&run, &second, "done").await?;
    Ok(Played::Kept)
}

async fn end_run(host: &mut ScriptedHost) -> Outcome {
    host.begin().await?;
    let arguments = json!({ "n": 4 });
    for (structured, expected) in [(Some(json!({ "n": 5 })), json!({ "n": 5 })), (None, arguments.clone())] {
        let run = host.ask("run", &task("go")).await?;
        let turn = host.model_call().await?;
        let id = if structured.is_some() { "c1" } else { "c2" };
        host.give(&turn.request, &calls(vec![call(id, "look", arguments.clone())])).await?;
        let asked = host.tool_call().await?;
        let mut result = gave("Accepted.");
        result["end_run"] = json!(true);
        if let Some(structured) = structured {
            result["structured_content"] = structured;
        }
        host.give(&asked.request, &result).await?;
        let ended = host.ran(&run, StopReason::FinalAnswer).await?;
        host.same("gives what was handed in as `structured`", &Some(expected), &ended.structured)?;
    }
    Ok(Played::Kept)
}

async fn several_end(host: &mut ScriptedHost) -> Outcome {
    let (run, turn) = host.first_call(&task("go")).await?;
    let wanted = ["a", "b", "c"].map(|id| call(id, "look", json!({})));
    host.give(&turn.request, &calls(wanted.to_vec())).await?;
    let mut waiting = vec![host.tool_call().await?];
    // What is asked beside the first is there when a ping behind it is answered.
    host.ping().await?;
    while !host.inbox.is_empty() {
        waiting.push(host.tool_call().await?);
    }
    // One that calls one after the other may end behind the first.
    let mut last = None;
    while let Some(asked) = match waiting.pop() {
        Some(asked) => Some(asked),
        None => match host.asks("calls the next tool, or answers `run`").await? {
            Some(_) => Some(host.tool_call().await?),
            None => None,
        },
    } {
        let mut result = gave("Accepted.");
        result["end_run"] = json!(true);
        result["structured_content"] = json!({ "of": asked.params.call_id });
        last = Some(result["structured_content"].clone());
        host.give(&asked.request, &result).await?;
    }
    let ended = host.ran(&run, StopReason::FinalAnswer).await?;
    host.same("gives what came last as `structured`", &last, &ended.structured)?;
    Ok(Played::Kept)
}
