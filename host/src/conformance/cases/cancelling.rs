//! `cancel` and `cancel_call`.

use assistant_protocol::error::{Kind, RpcError};
use assistant_protocol::types::StopReason;
use serde_json::json;

use super::super::Played;
use super::super::scripted_host::ScriptedHost;
use super::{Outcome, again, call, calls, cases, gave, said, task};

cases! {
    "cancel-in-a-model-call" CANCEL in_model_call "A run that waits for its model is cancelled.";
    "cancel-in-a-tool-call" CANCEL in_tool_call "A run that waits for a tool is cancelled.";
    "cancel-before-run" CANCEL_THE_NEXT before_run "A cancel before a run is meant for that run only.";
    "cancel-after-run" CANCEL_THE_NEXT after_run "A cancel after a run is meant for the next one.";
    "run-after-cancel" GO_ON_AFTER_CANCEL go_on "After a cancelled run the next one goes on.";
    "cancel-call-of-a-run" CANCEL_CALL of_run "A `run` whose call is cancelled is answered all the same.";
    "cancel-call-of-nothing" CANCEL_CALL of_nothing "`cancel_call` of what nobody knows is answered.";
    "cancel-call-of-others-in-a-run" CANCEL_CALL of_others "Beside a run, `cancel_call` of another id changes nothing.";
    "late-answers" LATE_ANSWERS late "Answers to calls that were given up are ignored.";
    "gives-up-its-calls" GIVE_UP_CALLS gives_up "Calls of a cancelled run are cancelled.";
}

async fn cancel(host: &mut ScriptedHost) -> Result<(), super::Fault> {
    let asked = host.ask("cancel", &json!({ "reason": "a test", "grace_ms": 5_000 })).await?;
    host.answer_beside(&asked)
        .await?
        .map(|_| ())
        .map_err(|error| host.fault("answers `cancel` with {}", error.to_string()))
}

async fn in_model_call(host: &mut ScriptedHost) -> Outcome {
    let (run, _turn) = host.first_call(&task("go")).await?;
    cancel(host).await?;
    host.ran(&run, StopReason::Cancelled).await?;
    Ok(Played::Kept)
}

async fn in_tool_call(host: &mut ScriptedHost) -> Outcome {
    let (run, turn) = host.first_call(&task("go")).await?;
    host.give(&turn.request, &calls(vec![call("c1", "look", json!({}))])).await?;
    host.tool_call().await?;
    cancel(host).await?;
    host.ran(&run, StopReason::Cancelled).await?;
    Ok(Played::Kept)
}

async fn cancelled_then_runs(host: &mut ScriptedHost) -> Outcome {
    cancel(host).await?;
    let run = host.ask("run", &task("go")).await?;
    host.ran(&run, StopReason::Cancelled).await?;
    let run = host.ask("run", &task("go")).await?;
    let turn = host.model_call().await?;
    host.let_end(&run, &turn, "done").await?;
    Ok(Played::Kept)
}

async fn before_run(host: &mut ScriptedHost) -> Outcome {
    host.begin().await?;
    cancelled_then_runs(host).await
}

async fn after_run(host: &mut ScriptedHost) -> Outcome {
    let (run, turn) = host.first_call(&task("go")).await?;
    host.let_end(&run, &turn, "done").await?;
    cancelled_then_runs(host).await
}

async fn go_on(host: &mut ScriptedHost) -> Outcome {
    let (run, turn) = host.first_call(&task("go")).await?;
    host.give(&turn.request, &calls(vec![call("c1", "look", json!({})), call("c2", "look", json!({}))])).await?;
    host.tool_call().await?;
    cancel(host).await?;
    host.until("answers the cancelled `run`", |host| Ok((host.runs == 0).then_some(()))).await?;
    host.inbox.clear();
    host.ran(&run, StopReason::Cancelled).await?;
    let run = host.ask("run", &again()).await?;
    let turn = host.model_call().await?;
    host.let_end(&run, &turn, "done").await?;
    Ok(Played::Kept)
}

async fn of_run(host: &mut ScriptedHost) -> Outcome {
    let (run, _turn) = host.first_call(&task("go")).await?;
    let asked = host.ask("cancel_call", &json!({ "id": run })).await?;
    host.answer_beside(&asked)
        .await?
        .map_err(|error| host.fault("answers `cancel_call` with {}", error.to_string()))?;
    if let Err(error) = host.answer_beside(&run).await?
        && error.code != Kind::Cancelled.code()
    {
        return Err(host.fault(
            "answers `run` with a result, or the error cancelled",
            format!("the error {} {error}", error.code),
        ));
    }
    let run = host.ask("run", &task("go")).await?;
    let turn = host.model_call().await?;
    host.let_end(&run, &turn, "done").await?;
    Ok(Played::Kept)
}

async fn of_nothing(host: &mut ScriptedHost) -> Outcome {
    host.begin().await?;
    for id in [json!(4_711), json!("nobody"), json!("")] {
        let asked = host.ask("cancel_call", &json!({ "id": id })).await?;
        host.result(&asked).await?;
    }
    Ok(Played::Kept)
}

async fn of_others(host: &mut ScriptedHost) -> Outcome {
    let (run, turn) = host.first_call(&task("go")).await?;
    // The id of the run as a text is not the id of the run.
    for id in [json!(4_711), json!("nobody"), json!(json!(run).to_string())] {
        let asked = host.ask("cancel_call", &json!({ "id": id })).await?;
        host.answer_beside(&asked)
            .await?
            .map_err(|error| host.fault("answers `cancel_call` with {}", error.to_string()))?;
        host.ping().await?;
        if host.runs == 0 {
            return Err(host.fault(format!("goes on with its `run` behind `cancel_call` of {id}"), "it answers `run`"));
        }
    }
    host.let_end(&run, &turn, "done").await?;
    Ok(Played::Kept)
}

async fn late(host: &mut ScriptedHost) -> Outcome {
    let (run, turn) = host.first_call(&task("go")).await?;
    cancel(host).await?;
    host.ran(&run, StopReason::Cancelled).await?;
    host.give(&turn.request, &said("too late")).await?;
    let run = host.ask("run", &task("go")).await?;
    let turn = host.model_call().await?;
    host.give(&turn.request, &calls(vec![call("c1", "look", json!({}))])).await?;
    let tool = host.tool_call().await?;
    cancel(host).await?;
    host.ran(&run, StopReason::Cancelled).await?;
    host.refuse(&tool.request, RpcError::new(Kind::Cancelled, "cancelled by the side that asked")).await?;
    host.ping().await?;
    // One that comes while another call of the same kind waits is not the answer to that.
    let run = host.ask("run", &task("go")).await?;
    let given_up = host.model_call().await?;
    cancel(host).await?;
    host.ran(&run, StopReason::Cancelled).await?;
    let run = host.ask("run", &task("go")).await?;
    let turn = host.model_call().await?;
    host.give(&given_up.request, &said("too late again")).await?;
    host.ping().await?;
    host.give(&turn.request, &calls(vec![call("c2", "look", json!({}))])).await?;
    let tool = host.tool_call().await?;
    host.give(&tool.request, &gave("seen")).await?;
    let turn = host.model_call().await?;
    host.let_end(&run, &turn, "done").await?;
    Ok(Played::Kept)
}

async fn gives_up(host: &mut ScriptedHost) -> Outcome {
    let (run, turn) = host.first_call(&task("go")).await?;
    cancel(host).await?;
    host.ran(&run, StopReason::Cancelled).await?;
    let id = json!(turn.request.id);
    host.until("sends `cancel_call` for its model call", move |host| Ok(host.given_up.contains(&id).then_some(())))
        .await?;
    Ok(Played::Kept)
}
