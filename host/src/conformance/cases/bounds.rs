//! Bounds of lines, and of patience.

use std::time::Duration;

use assistant_protocol::error::Kind;
use assistant_protocol::types::StopReason;
use assistant_protocol::wire::Id;
use serde_json::{Value, json};

use super::super::Played;
use super::super::scripted_host::ScriptedHost;
use super::{Outcome, call, calls, cases, gave, said, task};

cases! {
    "one-mebibyte" LONG_LINES one_mebibyte "Lines of 1 MiB are told to be taken, and are.";
    "eight-mebibytes" LONG_LINES eight_mebibytes "Lines of 8 MiB are taken, where that was told.";
    "the-hosts-bound" THEIR_BOUND their_bound "A host that takes short lines gets no longer one.";
    "the-hosts-bound-of-tool-calls" THEIR_BOUND bound_of_tools "A tool call would be longer than the host takes.";
    "the-hosts-bound-of-answers" THEIR_BOUND bound_of_answers "The answer to `run` would be.";
    "the-hosts-bound-to-the-byte" THEIR_BOUND to_the_byte "A line would be one byte too long.";
    "slow-host" SLOW_HOST slow_host "The host does not read for a while.";
    "byte-by-byte" SLOW_HOST byte_by_byte "A line comes in single bytes, with a pause in a character.";
    "deep-json" DEEP_JSON deep "Arguments are nested 64 deep.";
}

const MIB: usize = 1024 * 1024;
/// The longest line that the host of a case takes, and what does not fit into one, in bytes.
const SHORT: usize = 64 * 1024;
const TOO_LONG: usize = 256 * 1024;
/// Room for what stands around the text of a line.
const AROUND: usize = 8 * 1024;
/// How long the host of a case reads nothing.
const AWAY: Duration = Duration::from_secs(1);

async fn long(host: &mut ScriptedHost, bytes: usize) -> Outcome {
    let query = "q".repeat(bytes);
    let run = host.ask("run", &task(&query)).await?;
    let turn = host.model_call().await?;
    if !turn.messages().iter().any(|message| message.content.as_text().contains(&query)) {
        return Err(host.fault("asks with the whole query", "a shorter one"));
    }
    let text = "a".repeat(bytes);
    host.give(&turn.request, &said(&text)).await?;
    let result = host.ran(&run, StopReason::Finished).await?;
    host.same("gives the whole answer, bytes", &text.len(), &result.content.as_text().len())?;
    Ok(Played::Kept)
}

async fn one_mebibyte(host: &mut ScriptedHost) -> Outcome {
    let told = host.begin().await?.max_frame_bytes;
    if told < MIB as u64 {
        return Err(host.fault("tells in `initialize` that it takes lines of 1 MiB, or more", told.to_string()));
    }
    long(host, MIB - AROUND).await
}

async fn eight_mebibytes(host: &mut ScriptedHost) -> Outcome {
    let told = host.begin().await?;
    if told.max_frame_bytes < 8 * MIB as u64 {
        return Ok(Played::NotOffered);
    }
    long(host, 8 * MIB - AROUND).await
}

async fn their_bound(host: &mut ScriptedHost) -> Outcome {
    host.max_frame_bytes = SHORT as u64;
    host.begin().await?;
    let run = host.ask("run", &task(&"q".repeat(TOO_LONG))).await?;
    does_not_fit(host, &run).await
}

/// The `run` ends with the error that says so, and the runner is still there.
async fn does_not_fit(host: &mut ScriptedHost, run: &Id) -> Outcome {
    let failed = host.error(run, &[Kind::FrameTooLarge]).await;
    // An adapter may have nothing to say that is so long.
    host.habits.needs_more |= host.habits.is_adapter();
    failed?;
    host.ping().await?;
    Ok(Played::Kept)
}

async fn bound_of_tools(host: &mut ScriptedHost) -> Outcome {
    host.max_frame_bytes = SHORT as u64;
    let (run, turn) = host.first_call(&task("go")).await?;
    let arguments = json!({ "text": "a".repeat(TOO_LONG) });
    host.give(&turn.request, &calls(vec![call("c1", "look", arguments)])).await?;
    does_not_fit(host, &run).await
}

async fn bound_of_answers(host: &mut ScriptedHost) -> Outcome {
    host.max_frame_bytes = SHORT as u64;
    let (run, turn) = host.first_call(&task("go")).await?;
    host.give(&turn.request, &said(&"a".repeat(TOO_LONG))).await?;
    does_not_fit(host, &run).await
}

async fn to_the_byte(host: &mut ScriptedHost) -> Outcome {
    const PROBE: usize = 1024;
    host.max_frame_bytes = SHORT as u64;
    host.begin().await?;
    let with_history = |bytes: usize| {
        let mut params = task("go");
        params["history"] = json!([{ "role": "user", "content": "h".repeat(bytes) }]);
        params
    };
    // How much stands around a text is the runner's own; the next line is as long but for the text, and its id.
    let run = host.ask("run", &with_history(PROBE)).await?;
    let turn = host.model_call().await?;
    host.let_end(&run, &turn, "done").await?;
    let around = turn.request.bytes.saturating_sub(PROBE);
    let bytes = (SHORT + 1).saturating_sub(around);
    let run = host.ask("run", &with_history(bytes)).await?;
    does_not_fit(host, &run).await
}

async fn slow_host(host: &mut ScriptedHost) -> Outcome {
    host.begin().await?;
    let query = "q".repeat(MIB - AROUND);
    let run = host.ask("run", &task(&query)).await?;
    host.look_away(AWAY).await;
    let turn = host.model_call().await?;
    host.give(&turn.request, &calls(vec![call("c1", "look", json!({}))])).await?;
    let tool = host.tool_call().await?;
    host.give(&tool.request, &gave("seen")).await?;
    host.look_away(AWAY).await;
    let turn = host.model_call().await?;
    host.let_end(&run, &turn, "done").await?;
    Ok(Played::Kept)
}

async fn byte_by_byte(host: &mut ScriptedHost) -> Outcome {
    host.begin().await?;
    let id = Id::Text("slow ä".into());
    let line = host.line(id.clone(), "ping", &json!({}));
    for byte in line {
        host.raw(&[byte]).await?;
        match byte {
            0xc3 => host.look_away(AWAY).await,
            _ => tokio::task::yield_now().await,
        }
    }
    host.answer_beside(&id).await?.map_err(|error| host.fault("answers `ping`", error.to_string()))?;
    Ok(Played::Kept)
}

async fn deep(host: &mut ScriptedHost) -> Outcome {
    let (run, turn) = host.first_call(&task("go")).await?;
    let nested = (0..64).fold(Value::Null, |inner, _| json!([inner]));
    host.give(&turn.request, &calls(vec![call("c1", "look", json!({ "a": nested }))])).await?;
    let tool = host.tool_call().await?;
    host.same("calls with the arguments as they came", &json!({ "a": nested }), &tool.params.arguments)?;
    host.give(&tool.request, &gave("seen")).await?;
    let turn = host.model_call().await?;
    host.let_end(&run, &turn, "done").await?;
    Ok(Played::Kept)
}
