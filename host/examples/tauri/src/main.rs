//! A desktop app that holds the host inside itself: its commands call tools, its window hears of every change and
//! approves calls of the app's own tool.
//!
//! `cargo run` in this folder. The program `assistant-runner` lies beside the app's own; an app would bundle it.

#![cfg_attr(not(debug_assertions), windows_subsystem = "windows")]

use std::collections::HashMap;
use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use assistant_host::app::{AppTool, Approval, Approve, Decision};
use assistant_host::host::{Host, NotStored, Options};
use assistant_host::launcher::RunnerCommand;
use assistant_host::model::ScriptedModel;
use assistant_host::process_table::Process;
use assistant_host::registry::{Source, read_markdown};
use assistant_host::tools::{CallError, Hints};
use assistant_protocol::ids::SessionId;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use tauri::async_runtime::JoinHandle;
use tauri::{AppHandle, Emitter, Manager, RunEvent, State};
use tokio::sync::oneshot;

const PAINTER: &str = "---\nname: Painter\ndescription: Paints walls.\ntools: [app__paint]\n---\nYou are a painter.\n";

/// What the commands of the window work with.
struct App {
    host: Host,
    session: SessionId,
    asks: Arc<Asks>,
    watching: Mutex<Option<JoinHandle<()>>>,
}

/// Calls that wait for the user's word.
struct Asks {
    window: AppHandle,
    count: AtomicU64,
    waiting: Mutex<HashMap<u64, oneshot::Sender<bool>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Asks {
    /// Notes a call that waits; forgets those that were given up.
    fn note(&self) -> (u64, oneshot::Receiver<bool>) {
        let (answer, answered) = oneshot::channel();
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let mut waiting = lock(&self.waiting);
        waiting.retain(|_, earlier| !earlier.is_closed());
        waiting.insert(number, answer);
        (number, answered)
    }
}

impl Approve for Asks {
    fn approve(&self, ask: Approval) -> BoxFuture<'_, Decision> {
        let denied = |reason: &str| Decision::Deny { reason: reason.to_owned() };
        async move {
            let (number, answered) = self.note();
            let told = json!({ "ask": number, "tool": ask.tool, "arguments": ask.arguments });
            if let Err(error) = self.window.emit("approval", told) {
                return denied(&error.to_string());
            }
            if answered.await == Ok(true) { Decision::Allow } else { denied("the user said no") }
        }
        .boxed()
    }
}

/// Calls a tool of the host, as any MCP client would.
#[tauri::command]
async fn call(app: State<'_, App>, tool: String, arguments: Map<String, Value>) -> Result<Value, Value> {
    app.host.call(app.session, &tool, arguments).await.map_err(|error| match error {
        CallError::Tool(error) => json!(error),
        CallError::UnknownTool(_) => json!({ "message": error.to_string() }),
    })
}

/// The user's word about a call.
#[tauri::command]
fn decide(app: State<'_, App>, ask: u64, allow: bool) {
    if let Some(answer) = lock(&app.asks.waiting).remove(&ask) {
        // The call was given up meanwhile: nobody hears it.
        let _ = answer.send(allow);
    }
}

/// The processes as they are now; from now on the window is told what changes.
#[tauri::command]
async fn watch(window: AppHandle, app: State<'_, App>) -> Result<Vec<Process>, String> {
    let snapshot = app.host.snapshot().await.map_err(|error| error.to_string())?;
    let mut changes = app.host.changes(&snapshot);
    let telling = tauri::async_runtime::spawn(async move {
        while let Ok(change) = changes.next().await {
            if window.emit("change", &change).is_err() {
                return;
            }
        }
    });
    if let Some(earlier) = lock(&app.watching).replace(telling) {
        earlier.abort();
    }
    Ok(snapshot.processes)
}

fn options(state: &Path, asks: Arc<Asks>) -> Result<Options, Box<dyn Error>> {
    let program = std::env::current_exe()?.with_file_name(format!("assistant-runner{}", std::env::consts::EXE_SUFFIX));
    let mut options = Options::new(state.to_owned(), RunnerCommand::new(program));
    // Any `impl Model` of the app; this one answers from a script.
    let script = json!({ "assistants": [{ "steps": [
        { "tool_calls": [{ "tool_name": "app__paint", "arguments": { "colour": "blue" } }] },
        { "text": "The wall is {{app__paint.colour}} now." },
    ] }] });
    options.models.insert("ours", Arc::new(ScriptedModel::from_value(script)?));
    options.app_tools.push(AppTool {
        name: "app__paint".into(),
        title: "Paint the wall".into(),
        description: "Paints the wall of the app's window.".into(),
        input_schema: json!({ "type": "object", "properties": { "colour": { "type": "string" } } }),
        hints: Hints { read_only: false, destructive: false, idempotent: true, open_world: false },
        for_clients: false,
        needs_approval: true,
        run: Arc::new(|call| async move { Ok(json!({ "colour": call.arguments["colour"] }).into()) }.boxed()),
    });
    options.approval = Some(asks);
    Ok(options)
}

async fn open(options: Options) -> Result<(Host, SessionId), Box<dyn Error>> {
    let host = Host::open(options).await?;
    let painter =
        read_markdown(PAINTER.as_bytes(), "painter.md".as_ref(), Source::Database).map_err(|why| why.message)?;
    match host.create_assistant(painter).await {
        Ok(()) | Err(NotStored::Exists(_)) => {}
        Err(error) => return Err(error.into()),
    }
    let session = host.open_session("the app's user", "main").await?;
    Ok((host, session))
}

fn main() -> Result<(), Box<dyn Error>> {
    let app = tauri::Builder::default()
        .setup(|app| {
            let window = app.handle().clone();
            let asks = Arc::new(Asks { window, count: AtomicU64::new(0), waiting: Mutex::default() });
            let options = options(&app.path().app_data_dir()?.join("assistants"), asks.clone())?;
            let (host, session) = tauri::async_runtime::block_on(open(options))?;
            app.manage(App { host, session, asks, watching: Mutex::default() });
            Ok(())
        })
        .invoke_handler(tauri::generate_handler![call, decide, watch])
        .build(tauri::generate_context!())?;
    app.run(|app, event| {
        if matches!(event, RunEvent::Exit) {
            // Ends every process, and the runners with them.
            tauri::async_runtime::block_on(app.state::<App>().host.close());
        }
    });
    Ok(())
}
