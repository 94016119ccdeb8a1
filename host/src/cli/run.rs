//! `assistant-host run`: search, spawn, live progress on stderr, the result on stdout.

use std::time::Duration;

use assistant_protocol::ids::{ProcessId, SessionId};
use clap::Args;
use serde_json::{Map, Value, json};
use tokio::task::JoinHandle;

use super::open::Setting;
use super::serve::{refused, signal};
use super::{FAILED, Failure, Places, USAGE, say, talk};
use crate::door::LOCAL;
use crate::events::{Event, Kind};
use crate::host::Host;
use crate::process_table::{Process, Status};
use crate::text::one_line;
use crate::tools::CallError;

/// No assistant fits the task.
const NO_MATCH: u8 = 3;
/// No model is configured.
const NO_MODEL: u8 = 4;
/// Cancelled by a signal, as shells tell it.
const CANCELLED: u8 = 130;
/// How long the end of a cancelled run is waited for.
const CANCELLED_WITHIN: Duration = Duration::from_secs(20);
/// Events that are read at once.
const EVENTS: u32 = 100;

#[derive(Args)]
pub(super) struct RunArgs {
    /// The task, complete in itself
    query: String,
    /// Run this assistant instead of the best match
    #[arg(long, value_name = "ID")]
    assistant: Option<String>,
    /// A configured model, instead of the assistant's own
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Print the result as JSON, with its process and usage
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(places: &Places, args: RunArgs) -> Result<u8, Failure> {
    let interrupted = tokio::spawn(signal());
    let options = Setting::read(places)?.options().await?;
    let host = Host::open(options).await.map_err(|error| refused(&error))?;
    let ended = in_host(&host, &args, interrupted).await;
    host.close().await;
    ended
}

async fn in_host(host: &Host, args: &RunArgs, interrupted: JoinHandle<()>) -> Result<u8, Failure> {
    let session = host.open_session(LOCAL, "main").await.map_err(|error| Failure::new(FAILED, error))?;
    let spawned = host.call(session, "spawn_assistant", arguments(args)).await.map_err(|error| not_spawned(&error))?;
    tell_spawned(&spawned);
    let process: ProcessId = serde_json::from_value(spawned["process_id"].clone())
        .map_err(|error| Failure::new(FAILED, format!("the spawn was answered with {spawned}: {error}")))?;
    let mut after = 0;
    let row = tokio::select! {
        ended = follow(host, process, &mut after) => ended?,
        _ = interrupted => {
            talk("cancelling");
            cancel(host, session, process, &mut after).await?
        }
    };
    Ok(tell_end(args, &row))
}

fn arguments(args: &RunArgs) -> Map<String, Value> {
    let mut map = Map::from_iter([("query".to_owned(), json!(args.query))]);
    match &args.assistant {
        Some(id) => map.insert("assistant_id".to_owned(), json!(id)),
        None => map.insert("search".to_owned(), json!({ "text": args.query })),
    };
    if let Some(model) = &args.model {
        map.insert("model".to_owned(), json!(model));
    }
    map
}

fn not_spawned(error: &CallError) -> Failure {
    let CallError::Tool(error) = error else { return Failure::new(FAILED, error) };
    let code = match error.code.as_str() {
        "no_match" | "unknown_assistant" => NO_MATCH,
        "no_model" => NO_MODEL,
        "bad_argument" => USAGE,
        _ => FAILED,
    };
    match error.code.as_str() {
        "unknown_assistant" | "no_match" => Failure::new(code, format!("{}. {}", error.message, error.hint)),
        _ => Failure::new(code, &error.message),
    }
}

fn tell_spawned(spawned: &Value) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let id = text(&spawned["assistant_id"]);
    let score = spawned["matched"]["score"].as_f64().map(|score| format!(" (score {score:.2})")).unwrap_or_default();
    talk(&format!("{id}{score} on {}", text(&spawned["model"]["used"])));
    if let Some(why) = spawned["model"]["why"].as_str() {
        talk(&format!("  another model than asked for: {why}"));
    }
    for one in spawned["unavailable_tools"].as_array().into_iter().flatten() {
        talk(&format!("  without {}: {}", text(&one["tool"]), text(&one["why"])));
    }
}

/// Tells each event as it comes, until the process has ended.
async fn follow(host: &Host, process: ProcessId, after: &mut i64) -> Result<Process, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::new(FAILED, error);
    loop {
        for event in host.events(process, *after, EVENTS).await.map_err(|error| failed(&error))? {
            *after = event.seq;
            if let Some(line) = line(&event) {
                talk(&format!("  {}", one_line(&line)));
            }
        }
        let row = host.process(process).await.map_err(|error| failed(&error))?;
        match row {
            Some(row) if row.status.is_end() => return Ok(row),
            Some(_) => {}
            None => return Err(failed(&format!("process {process} has gone"))),
        }
    }
}

fn line(event: &Event) -> Option<String> {
    let text = |key: &str| event.data[key].as_str().unwrap_or_default().to_owned();
    match event.kind {
        Kind::Status => event.data["status"].as_str().map(str::to_owned),
        Kind::ModelCall => Some(format!("asks {}", text("model"))),
        Kind::ModelRetry => Some(format!(
            "again in {} ms ({} of {}): {}",
            event.data["wait_ms"],
            event.data["retry"],
            event.data["of"],
            text("error")
        )),
        Kind::ModelAnswer if event.data["error"].is_string() => Some(format!("the model failed: {}", text("error"))),
        Kind::ModelAnswer => {
            let usage = &event.data["usage"];
            Some(format!("answered ({} in, {} out)", tokens(&usage["input_tokens"]), tokens(&usage["output_tokens"])))
        }
        Kind::ToolCall => Some(format!("calls {}", text("tool"))),
        Kind::ToolResult if event.data["is_error"] == true => Some(format!("{} failed", text("tool"))),
        Kind::Message => Some(format!("{}: {} to {}", text("kind"), text("from"), text("to"))),
        Kind::Progress => Some(text("text")),
        Kind::Stderr => Some(format!("stderr: {}", text("line"))),
        Kind::Link => Some(format!("odd lines on its pipe: {}", event.data)),
        Kind::ToolResult => None,
    }
}

fn tokens(value: &Value) -> String {
    value.as_u64().map_or_else(|| "?".to_owned(), |count| format!("{count} tokens"))
}

async fn cancel(host: &Host, session: SessionId, process: ProcessId, after: &mut i64) -> Result<Process, Failure> {
    let map = Map::from_iter([("process_id".to_owned(), json!(process))]);
    host.call(session, "cancel_assistant", map).await.map_err(|error| Failure::new(FAILED, error))?;
    let ended = tokio::time::timeout(CANCELLED_WITHIN, follow(host, process, after)).await;
    ended.unwrap_or_else(|_| Err(Failure::new(FAILED, "the end of the run could not be stored; it is given up")))
}

fn tell_end(args: &RunArgs, row: &Process) -> u8 {
    let result = row.result.as_deref().unwrap_or_default();
    if args.json {
        say(&json!({
            "process_id": row.id, "thread_id": row.thread, "assistant_id": row.assistant_id, "status": row.status,
            "reason": row.reason, "cause": row.cause, "error": row.error, "result": row.result, "model": row.model,
            "usage": row.usage, "model_calls": row.turns, "tool_calls": row.tool_calls,
            "ms": row.finished_at.map(|end| end - row.created_at),
        })
        .to_string());
    } else if !result.is_empty() {
        say(result);
    }
    let (tokens_in, tokens_out) = (row.usage.input_tokens.unwrap_or(0), row.usage.output_tokens.unwrap_or(0));
    talk(&format!(
        "{} after {} ms: {} model calls, {} tool calls, {tokens_in} tokens in, {tokens_out} out",
        row.status,
        row.finished_at.unwrap_or(row.created_at) - row.created_at,
        row.turns,
        row.tool_calls,
    ));
    match row.status {
        Status::Finished => 0,
        Status::Cancelled => CANCELLED,
        Status::Queued | Status::Starting | Status::Running | Status::Waiting | Status::Failed => {
            let reason = row.reason.map_or("failed", |reason| reason.name());
            talk(&format!("{reason}: {}", row.error.as_deref().unwrap_or("no more is known")));
            FAILED
        }
    }
}
