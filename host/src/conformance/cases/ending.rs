//! The end of the program.

use serde_json::json;

use super::super::Played;
use super::super::scripted_host::ScriptedHost;
use super::{Outcome, call, calls, cases, task};

cases! {
    "stdin-ends-at-once" END_OF_STDIN at_once "Stdin ends before anything was said.";
    "stdin-ends-after-initialize" END_OF_STDIN after_initialize "Stdin ends before the first run.";
    "stdin-ends-in-a-model-call" END_OF_STDIN in_model_call "Stdin ends while the model is asked.";
    "stdin-ends-in-a-tool-call" END_OF_STDIN in_tool_call "Stdin ends while a tool is called.";
    "stdin-ends-in-a-line" END_OF_STDIN in_a_line "Stdin ends in the middle of a line.";
    "shutdown" SHUTDOWN shutdown "`shutdown` is answered, and the program ends.";
    "shutdown-in-a-run" SHUTDOWN in_run "`shutdown` comes while a run goes on.";
    "exit-code" EXIT_CODE exit_code "The program ends with 0 after `shutdown`.";
}

async fn closed(host: &mut ScriptedHost) -> Outcome {
    host.close_stdin();
    host.exit().await?;
    Ok(Played::Kept)
}

async fn at_once(host: &mut ScriptedHost) -> Outcome {
    host.begun = true;
    closed(host).await
}

async fn after_initialize(host: &mut ScriptedHost) -> Outcome {
    host.begin().await?;
    closed(host).await
}

async fn in_model_call(host: &mut ScriptedHost) -> Outcome {
    host.first_call(&task("go")).await?;
    closed(host).await
}

async fn in_tool_call(host: &mut ScriptedHost) -> Outcome {
    let (_, turn) = host.first_call(&task("go")).await?;
    host.give(&turn.request, &calls(vec![call("c1", "look", json!({}))])).await?;
    host.tool_call().await?;
    closed(host).await
}

async fn in_a_line(host: &mut ScriptedHost) -> Outcome {
    host.begin().await?;
    host.raw(b"{\"jsonrpc\":\"2.0\",\"id\":9,\"meth").await?;
    closed(host).await
}

async fn shutdown(host: &mut ScriptedHost) -> Outcome {
    let (run, turn) = host.first_call(&task("go")).await?;
    host.let_end(&run, &turn, "done").await?;
    host.end().await?;
    Ok(Played::Kept)
}

async fn in_run(host: &mut ScriptedHost) -> Outcome {
    host.first_call(&task("go")).await?;
    host.end().await?;
    Ok(Played::Kept)
}

async fn exit_code(host: &mut ScriptedHost) -> Outcome {
    host.begin().await?;
    let asked = host.ask("shutdown", &json!({})).await?;
    host.result(&asked).await?;
    host.close_stdin();
    let code = host.exit().await?;
    host.same("exits with", &0, &code)?;
    Ok(Played::Kept)
}
