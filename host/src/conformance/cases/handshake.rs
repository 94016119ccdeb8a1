//! From the start of the program to the first `run`.

use std::time::Duration;

use assistant_protocol::error::Kind;
use assistant_protocol::peer::LEAST_FRAME_BYTES;
use assistant_protocol::types::PROTOCOL_VERSION;
use assistant_protocol::wire::Id;
use serde_json::{Value, json};

use super::super::Played;
use super::super::scripted_host::ScriptedHost;
use super::{Outcome, cases, task};

cases! {
    "silent-before-initialize" SILENT_FIRST silent "Nothing is written to stdout before `initialize`.";
    "initialize" INITIALIZE initialize "The handshake tells version, name and longest line.";
    "initialize-with-nulls" NULL_IS_ABSENT with_nulls "Optional params of `initialize` are null.";
    "initialize-with-unknown-fields" UNKNOWN_FIELDS with_unknown "Params of `initialize` have fields that nobody knows.";
    "other-version" OTHER_VERSION other_version "A version that nobody speaks is refused, and a `run` behind it too.";
    "run-before-initialize" INITIALIZE_FIRST run_first "A `run` before `initialize` is an error.";
    "initialize-twice" INITIALIZE_ONCE twice "A second `initialize` is an error, and harms nothing.";
    "initialize-and-run-in-one-piece" BACK_TO_BACK one_piece "`initialize` and `run` come in one write.";
}

/// How long a runner is listened to that has to be silent.
const SILENCE: Duration = Duration::from_secs(1);

async fn silent(host: &mut ScriptedHost) -> Outcome {
    host.listen(SILENCE).await?;
    host.begin().await?;
    Ok(Played::Kept)
}

async fn initialize(host: &mut ScriptedHost) -> Outcome {
    let told = host.begin().await?;
    host.same("tells the version of the protocol that was asked for", &PROTOCOL_VERSION, &told.protocol_version)?;
    if told.runner.name.trim().is_empty() {
        return Err(host.fault("tells its name", "an empty one"));
    }
    if told.max_frame_bytes < LEAST_FRAME_BYTES {
        let expected = format!("takes lines of at least {LEAST_FRAME_BYTES} bytes");
        return Err(host.fault(expected, told.max_frame_bytes.to_string()));
    }
    Ok(Played::Kept)
}

async fn hello_with(host: &mut ScriptedHost, more: &[(&str, Value)]) -> Outcome {
    let mut hello = host.hello();
    for (name, value) in more {
        hello[*name] = value.clone();
    }
    let asked = host.ask("initialize", &hello).await?;
    host.result(&asked).await?;
    Ok(Played::Kept)
}

async fn with_nulls(host: &mut ScriptedHost) -> Outcome {
    hello_with(host, &[("capabilities", Value::Null), ("limits", Value::Null)]).await
}

async fn with_unknown(host: &mut ScriptedHost) -> Outcome {
    hello_with(host, &[("never_heard_of", json!({ "a": [1] })), ("capabilities", json!({ "telepathy": true }))]).await
}

async fn other_version(host: &mut ScriptedHost) -> Outcome {
    let mut hello = host.hello();
    hello["protocol_version"] = json!(9_999);
    let asked = host.ask("initialize", &hello).await?;
    host.error(&asked, &[Kind::UnsupportedProtocol]).await?;
    let run = host.ask("run", &task("go")).await?;
    host.error(&run, &[]).await?;
    Ok(Played::Kept)
}

async fn run_first(host: &mut ScriptedHost) -> Outcome {
    // From here on it may speak: what it is asked is wrong.
    host.begun = true;
    let run = host.ask("run", &task("go")).await?;
    host.error(&run, &[]).await?;
    Ok(Played::Kept)
}

async fn twice(host: &mut ScriptedHost) -> Outcome {
    host.begin().await?;
    let hello = host.hello();
    let again = host.ask("initialize", &hello).await?;
    host.error(&again, &[]).await?;
    let run = host.ask("run", &task("go")).await?;
    let turn = host.model_call().await?;
    host.let_end(&run, &turn, "done").await?;
    Ok(Played::Kept)
}

async fn one_piece(host: &mut ScriptedHost) -> Outcome {
    let hello = host.hello();
    let (first, run) = (Id::Number(1), Id::Number(2));
    let mut piece = host.line(first.clone(), "initialize", &hello);
    piece.extend(host.line(run.clone(), "run", &task("go")));
    host.raw(&piece).await?;
    let told = host.answer_beside(&first).await?;
    told.map_err(|error| host.fault("answers `initialize`", error.to_string()))?;
    let turn = host.model_call().await?;
    host.let_end(&run, &turn, "done").await?;
    Ok(Played::Kept)
}
