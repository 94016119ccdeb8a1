//! `assistant-host demo`: the main job, on a scripted model, in a temporary state, with a real host and real runners.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use assistant_protocol::ids::{ProcessId, SessionId};
use serde_json::{Map, Value, json};

use super::{FAILED, Failure, open, say};
use crate::caller::MAIN;
use crate::host::{Host, Options};
use crate::model::ScriptedModel;
use crate::process_table::Process;
use crate::registry;

const FILES: &[(&str, &str)] = &[
    ("assistants/diff-reviewer.md", include_str!("demo/diff-reviewer.md")),
    ("assistants/test-writer.md", include_str!("demo/test-writer.md")),
    ("assistants/log-triager.md", include_str!("demo/log-triager.md")),
    ("project/parser.rs", include_str!("demo/parser.rs.txt")),
];
const SCRIPT: &str = include_str!("demo/script.json");
const TASK: &str = "review the change in parser.rs for bugs and missing tests";

/// A folder that is gone when the demo ends.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, dir = %self.0.display(), "the demo's folder is left");
        }
    }
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::new(FAILED, format!("the demo failed: {error}"))
}

pub(super) async fn demo() -> Result<u8, Failure> {
    let scratch = Scratch(std::env::temp_dir().join(format!("assistant-host-demo-{}", std::process::id())));
    for (name, text) in FILES {
        let path = scratch.0.join(name);
        let folder = path.parent().map_or_else(|| scratch.0.clone(), PathBuf::from);
        std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, text)).map_err(failed)?;
    }
    let runner = open::runner().await?;
    let mut options = Options::new(scratch.0.join("state"), runner.clone());
    options.project = Some(scratch.0.join("project"));
    options.sources = registry::sources(None, None, None, &[scratch.0.join("assistants")]);
    options.models.insert("scripted", Arc::new(ScriptedModel::parse(SCRIPT).map_err(failed)?));
    let host = Host::open(options).await.map_err(failed)?;
    say(&format!(
        "A host with {} assistants; each run is a process of {}.",
        host.registry().assistants().len(),
        runner.program.display()
    ));
    let told = story(&host).await;
    host.close().await;
    told.map(|()| 0)
}

struct Story<'a> {
    host: &'a Host,
    session: SessionId,
    start: Instant,
}

impl Story<'_> {
    fn tell(&self, text: &str) {
        say(&format!("{:>5} ms  {text}", self.start.elapsed().as_millis()));
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<Value, Failure> {
        let map: Map<String, Value> = arguments.as_object().cloned().unwrap_or_default();
        self.host.call(self.session, tool, map).await.map_err(failed)
    }
}

async fn story(host: &Host) -> Result<(), Failure> {
    let session = host.open_session("demo", MAIN).await.map_err(failed)?;
    let story = Story { host, session, start: Instant::now() };
    story.tell(&format!("you search: \"{TASK}\""));
    let found = story.call("search_assistant", json!({ "query": TASK })).await?;
    for item in found["items"].as_array().into_iter().flatten() {
        story.tell(&format!(
            "  {:.2} {}  matched {}",
            item["score"].as_f64().unwrap_or(0.0),
            text(&item["assistant_id"]),
            item["matched_terms"]
        ));
    }
    let id = text(&found["items"][0]["assistant_id"]);
    let spawned = story.call("spawn_assistant", json!({ "assistant_id": id, "query": TASK })).await?;
    story.tell(&format!("you spawn {id}: process {}, {}", text(&spawned["process_id"]), text(&spawned["status"])));
    let thread = &spawned["thread_id"];
    let message = "Look at empty input too.";
    story.call("send_message", json!({ "thread_id": thread, "message": message })).await?;
    story.tell(&format!("you to {id}: {message}"));
    let process: ProcessId = serde_json::from_value(spawned["process_id"].clone()).map_err(failed)?;
    let polled = wait(&story, process, thread).await?;
    story.tell(&format!(
        "{id} is {} ({} model calls, {} tool calls)",
        text(&polled["status"]),
        polled["usage"]["model_calls"],
        polled["usage"]["tool_calls"]
    ));
    if polled["status"] != "finished" {
        return Err(failed(&polled));
    }
    say("\nThe tree:");
    tree(host, process).await
}

/// Polls until the process has ended, and tells what it writes meanwhile.
async fn wait(story: &Story<'_>, process: ProcessId, thread: &Value) -> Result<Value, Failure> {
    loop {
        let polled = story.call("poll_assistant", json!({ "process_id": process, "wait_ms": 10_000 })).await?;
        let mail = json!({ "thread_id": thread, "unread_only": true, "mark_as_read": true });
        let read = story.call("recv_message", mail).await?;
        for one in read["messages"].as_array().into_iter().flatten() {
            let said = text(&one["content"]).replace('\n', "\n            ");
            story.tell(&format!("{} to you: {said}", text(&one["from_assistant_id"])));
        }
        if polled["process"]["done"] == true {
            return Ok(polled["process"].clone());
        }
    }
}

async fn tree(host: &Host, root: ProcessId) -> Result<(), Failure> {
    let mut todo = vec![(root, 0)];
    while let Some((id, depth)) = todo.pop() {
        let row: Process = host.process(id).await.map_err(failed)?.ok_or_else(|| failed("a process has gone"))?;
        let ms = row.finished_at.unwrap_or(row.created_at) - row.created_at;
        let exit = row.exit_code.map(|code| format!("  its runner: exit {code}")).unwrap_or_default();
        say(&format!(
            "  {}{}  {}  {ms} ms  {} tokens in, {} out{exit}",
            "  ".repeat(depth),
            row.assistant_id,
            row.status,
            row.usage.input_tokens.unwrap_or(0),
            row.usage.output_tokens.unwrap_or(0),
        ));
        todo.extend(host.children(id).await.map_err(failed)?.iter().rev().map(|child| (child.id, depth + 1)));
    }
    Ok(())
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
