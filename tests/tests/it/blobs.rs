//! Pictures, files and long texts: kept once, named by handles, read by whoever was handed one.

use std::sync::{Arc, Mutex};

use assistant_host::app::{AppOutput, AppTool, file};
use assistant_host::caller::Caller;
use assistant_host::model::{Answer, Ask, Model, ModelError, Progress};
use assistant_host::tools::Hints;
use assistant_protocol::types::{Content, FinishReason, Message, Part, Role, Usage};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use conformance::bed::{Bed, Client, assistant};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::RUNNER;

mod handed;
mod kept;
mod read;

/// A picture, by its first bytes.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\nand so on";
/// Characters of the long text of the tool.
const LONG: usize = 5_000_000;

fn long() -> String {
    (0..LONG / 10).map(|line| format!("{line:09}\n")).collect()
}

/// What a tool of the app gives: `kind` says what, `size` how much.
fn give(arguments: &serde_json::Map<String, Value>) -> AppOutput {
    let size = usize::try_from(arguments.get("size").and_then(Value::as_u64).unwrap_or(0)).expect("a size");
    match arguments["kind"].as_str() {
        Some("picture") => vec![Part::text("here it is"), picture(PNG)].into(),
        Some("other picture") => {
            let mut bytes = PNG.to_vec();
            bytes.extend(size.to_be_bytes());
            vec![picture(&bytes)].into()
        }
        Some("file") => {
            let bytes = vec![7; size];
            vec![file("application/pdf", Some("report.pdf"), &STANDARD.encode(bytes))].into()
        }
        Some("long") => vec![Part::text(long())].into(),
        Some("data") => json!({ "rows": vec!["row"; size] }).into(),
        _ => json!({ "kind": "none" }).into(),
    }
}

fn picture(bytes: &[u8]) -> Part {
    Part::Image { mime_type: "image/png".into(), data: Some(STANDARD.encode(bytes)), blob: None }
}

fn tool() -> AppTool {
    AppTool {
        name: "app__give".into(),
        title: "Give".into(),
        description: "Gives.".into(),
        input_schema: json!({ "type": "object", "properties": { "kind": { "type": "string" } } }),
        hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
        for_clients: true,
        needs_approval: false,
        run: Arc::new(|call| async move { Ok(give(&call.arguments)) }.boxed()),
    }
}

/// What a model knows when it answers.
struct Heard {
    texts: String,
}

impl Heard {
    /// The last handle that was named.
    fn handle(&self) -> String {
        handles(&self.texts).last().cloned().expect("a handle")
    }

    /// What follows the last `mark` up to a quotation mark or a space.
    fn after(&self, mark: &str) -> String {
        let (_, behind) = self.texts.rsplit_once(mark).unwrap_or_else(|| panic!("no {mark} in {}", self.texts));
        behind.trim_start_matches(['"', ':', ' ']).chars().take(36).collect()
    }
}

/// The handles in a text, in order.
fn handles(text: &str) -> Vec<String> {
    let is = |one: &(usize, &str)| text[one.0 + 5..].bytes().take_while(u8::is_ascii_hexdigit).count() == 16;
    text.match_indices("blob:").filter(is).map(|(at, _)| text[at..at + 21].to_owned()).collect()
}

/// All that a conversation says, without bytes.
fn texts(messages: &[Message]) -> String {
    serde_json::to_string(messages).expect("JSON").replace("\\\"", "\"")
}

type Step = Box<dyn Fn(&Heard) -> Vec<Part> + Send + Sync>;

/// A model that makes steps by the name of the assistant, and keeps what it was asked.
#[derive(Default)]
struct Steps {
    steps: Vec<(&'static str, Vec<Step>)>,
    asked: Mutex<Vec<Ask>>,
}

impl Steps {
    fn of(mut self, name: &'static str, steps: Vec<Step>) -> Self {
        self.steps.push((name, steps));
        self
    }

    /// What the assistant `name` was asked, in order.
    fn asked(&self, name: &str) -> Vec<Ask> {
        let asked = self.asked.lock().expect("asked");
        let of = |ask: &&Ask| ask.system.as_deref().is_some_and(|system| system.contains(&format!("You are {name}.")));
        asked.iter().filter(of).cloned().collect()
    }
}

impl Model for Steps {
    fn answer<'a>(&'a self, ask: Ask, _: &'a (dyn Fn(Progress) + Sync)) -> BoxFuture<'a, Result<Answer, ModelError>> {
        async move {
            self.asked.lock().expect("asked").push(ask.clone());
            let system = ask.system.clone().unwrap_or_default();
            let is = |name: &str| system.contains(&format!("You are {name}."));
            let (_, steps) = self.steps.iter().find(|(name, _)| is(name)).expect("an assistant");
            let at = ask.messages.iter().filter(|message| message.role == Role::Assistant).count();
            let parts = steps[at.min(steps.len() - 1)](&Heard { texts: format!("{system}\n{}", texts(&ask.messages)) });
            let calls = parts.iter().any(|part| matches!(part, Part::ToolCall { .. }));
            let message = Message { role: Role::Assistant, content: Content::Parts(parts) };
            let finish = if calls { FinishReason::ToolCalls } else { FinishReason::Stop };
            Ok(Answer { message, finish, usage: Usage::default(), model: "steps".into() })
        }
        .boxed()
    }

    fn provider(&self) -> &str {
        "steps"
    }
}

/// A step that calls a tool.
fn call(tool: &'static str, arguments: impl Fn(&Heard) -> Value + Send + Sync + 'static) -> Step {
    Box::new(move |heard| {
        let arguments = Ok(arguments(heard));
        vec![Part::ToolCall { call_id: String::new(), tool_name: tool.to_owned(), arguments }]
    })
}

/// A step that has the app's tool give something.
fn gives(kind: &'static str) -> Step {
    call("app__give", move |_| json!({ "kind": kind }))
}

/// A step that says something.
fn says(text: impl Fn(&Heard) -> String + Send + Sync + 'static) -> Step {
    Box::new(move |heard| vec![Part::text(text(heard))])
}

/// A bed with the app's tool and the assistants of a model, each with these tools.
fn bed(model: Steps, tools: &str) -> (Bed, Arc<Steps>) {
    let files: Vec<(String, String)> =
        model.steps.iter().map(|(name, _)| (format!("{name}.md"), assistant(name, tools))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let model = Arc::new(model);
    let mut bed = Bed::with_model(RUNNER, &files, model.clone());
    bed.app_tools.push(tool());
    (bed, model)
}

/// A number out of the store.
fn count(bed: &Bed, sql: &str) -> i64 {
    let db = rusqlite::Connection::open(bed.state().join("assistant-host.db")).expect("the store");
    db.query_row(sql, [], |row| row.get(0)).expect("a number")
}

/// The bytes that a caller reads.
async fn bytes(client: &Client, handle: &str) -> Option<Vec<u8>> {
    let handle = handle.parse().expect("a handle");
    let read = client.host.blob(Caller::Session(client.session), &handle).await.expect("read");
    read.map(|(_, bytes)| bytes)
}

/// Runs the only assistant `x` to its end, and gives its spawn and its result.
async fn run(client: &Client, query: &str) -> (Value, String) {
    let spawned = client.spawn("x", query).await;
    let ended = client.end(&spawned).await;
    assert_eq!(ended["status"], "finished", "{ended}");
    let result = client.mail(&spawned).await.pop().expect("a result");
    (spawned, result)
}
