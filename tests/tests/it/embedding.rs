//! The host inside an app: its tools, its approval, its assistants, and the stream of changes.

use std::sync::Arc;
use std::time::Duration;

use assistant_host::app::{AppTool, Approval, Approve, Decision};
use assistant_host::changes::{Change, Changes, Delta};
use assistant_host::host::{Host, NotStored, OpenError, Options};
use assistant_host::launcher::RunnerCommand;
use assistant_host::limits::Limits;
use assistant_host::model::ScriptedModel;
use assistant_host::registry::{Definition, Source, read_markdown};
use assistant_host::store::StoreError;
use assistant_host::tools::{Hints, ToolError};
use conformance::bed::{Client, SOON, assistant, script};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::RUNNER;

struct Only(&'static str);

impl Approve for Only {
    fn approve(&self, ask: Approval) -> BoxFuture<'_, Decision> {
        async move {
            assert!(ask.process.is_some() && ask.tool == "app__paint");
            assert_eq!(ask.assistant_id.as_deref(), Some("painter"));
            match ask.arguments["colour"].as_str() {
                Some("never") => std::future::pending().await,
                Some(colour) if colour == self.0 => Decision::Allow,
                _ => Decision::Deny { reason: format!("only {}", self.0) },
            }
        }
        .boxed()
    }
}

fn paint(name: &str, needs_approval: bool) -> AppTool {
    AppTool {
        name: name.into(),
        title: "Paint".into(),
        description: "Paints.".into(),
        input_schema: json!({ "type": "object", "properties": { "colour": { "type": "string" } } }),
        hints: Hints { read_only: false, destructive: false, idempotent: true, open_world: false },
        for_clients: name == "app__look",
        needs_approval,
        run: Arc::new(|call| {
            async move {
                assert_eq!((call.principal.as_str(), call.assistant_id.is_some()), ("local", call.thread.is_some()));
                match call.arguments["colour"].as_str() {
                    Some("panic") => panic!("the app's fault"),
                    Some("error") => Err(ToolError::new("no_paint", "the paint is out", "Buy some.")),
                    Some("list") => Ok(json!([1]).into()),
                    _ => Ok(json!({ "painted": call.arguments["colour"] }).into()),
                }
            }
            .boxed()
        }),
    }
}

/// A host whose one assistant `painter` has these tools and makes these steps.
async fn open(dir: &TempDir, tools: &str, steps: Value, approval: Option<Arc<dyn Approve>>) -> Client {
    open_within(dir, tools, steps, approval, Limits::default()).await
}

async fn open_within(
    dir: &TempDir,
    tools: &str,
    steps: Value,
    approval: Option<Arc<dyn Approve>>,
    limits: Limits,
) -> Client {
    let mut options = Options::new(dir.path().join("state"), RunnerCommand::new(RUNNER));
    let model = ScriptedModel::from_value(script(&[("painter", steps)])).expect("a script");
    options.models.insert("scripted", Arc::new(model));
    options.app_tools = vec![paint("app__paint", true), paint("app__look", false), paint("builtin_room__open", false)];
    options.approval = approval;
    options.limits = limits;
    let host = Host::open(options).await.expect("a host");
    host.create_assistant(definition("painter", tools)).await.expect("stored");
    Client::of(&host).await
}

fn definition(name: &str, tools: &str) -> Definition {
    read_markdown(assistant(name, tools).as_bytes(), format!("{name}.md").as_ref(), Source::Database).expect("one")
}

fn calls(tool: &str, colour: &str) -> Value {
    json!({ "tool_calls": [{ "tool_name": tool, "arguments": { "colour": colour } }] })
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_of_the_app_are_called_and_approved() {
    let check = async |tool: &str, colour: &str, approval: Option<Arc<dyn Approve>>, want: &str| {
        let dir = tempfile::tempdir().expect("a folder");
        let text = if want.contains(' ') { "{{result.message}}" } else { "{{result.painted}}" };
        let approves = approval.is_some();
        let client = open(&dir, tool, json!([calls(tool, colour), { "text": text }]), approval).await;
        let spawned = client.spawn("painter", "go").await;
        assert_eq!(spawned["unavailable_tools"], json!([]));
        client.end(&spawned).await;
        let mail = client.mail(&spawned).await;
        assert!(mail[0].contains(want), "{tool} {colour}: {mail:?}");
        let log = client.call("read_log", json!({ "process_id": spawned["process_id"], "kinds": ["tool_call"] })).await;
        let decided =
            log["events"].as_array().expect("events").iter().find_map(|one| one["data"]["approved"].as_bool());
        let wanted = (approves && tool == "app__paint").then_some(colour == "blue");
        assert_eq!(decided, wanted, "what was decided is in the log: {log}");
        client.host.close().await;
    };
    let blue: Option<Arc<dyn Approve>> = Some(Arc::new(Only("blue")));
    check("app__paint", "blue", blue.clone(), "blue").await;
    check("app__paint", "red", blue.clone(), "is not approved: only blue").await;
    check("app__paint", "blue", None, "this host has nobody who approves").await;
    check("app__look", "red", None, "red").await;
    check("app__look", "error", None, "the paint is out").await;
    check("app__look", "panic", None, "the tool app__look panicked").await;
    check("app__look", "list", None, "gave no object").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_for_approval_holds_no_slot_and_ends_with_its_process() {
    let dir = tempfile::tempdir().expect("a folder");
    let steps = json!([calls("app__paint", "never"), { "text": "x" }]);
    let client = open(&dir, "app__paint", steps, Some(Arc::new(Only("blue")))).await;
    let spawned = client.spawn("painter", "go").await;
    client.until(&spawned, "waiting").await;
    client.call("cancel_assistant", json!({ "process_id": spawned["process_id"] })).await;
    assert_eq!(client.end(&spawned).await["status"], "cancelled");
    client.host.close().await;
}

/// Someone who is longer at it than a tool may take.
struct Slow;

impl Approve for Slow {
    fn approve(&self, _: Approval) -> BoxFuture<'_, Decision> {
        tokio::time::sleep(Duration::from_millis(2_500)).map(|()| Decision::Allow).boxed()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_for_approval_lasts_as_long_as_the_process_may() {
    let dir = tempfile::tempdir().expect("a folder");
    let steps = json!([calls("app__paint", "blue"), { "text": "{{result.painted}}" }]);
    let limits = Limits { tool_call_ms: 2_000, ..Limits::default() };
    let client = open_within(&dir, "app__paint", steps, Some(Arc::new(Slow)), limits).await;
    let spawned = client.spawn("painter", "go").await;
    client.end(&spawned).await;
    assert!(client.mail(&spawned).await[0].starts_with("blue"), "{:?}", client.mail(&spawned).await);
    client.host.close().await;
    let limits = Limits { wall_ms: 1_000, grace_turn_ms: 0, ..limits };
    let dir = tempfile::tempdir().expect("a folder");
    let steps = json!([calls("app__paint", "never")]);
    let client = open_within(&dir, "app__paint", steps, Some(Arc::new(Only("blue"))), limits).await;
    let spawned = client.spawn("painter", "go").await;
    assert_eq!(client.end(&spawned).await["reason"], "timed_out");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_are_granted_by_name_prefix_and_service_and_offered_as_the_app_says() {
    let dir = tempfile::tempdir().expect("a folder");
    let client = open(&dir, "app__*", json!([{ "text": "x" }]), None).await;
    let listed = client.call("list_assistant", json!({ "assistant_id": "painter" })).await;
    assert_eq!(listed["items"][0]["tools"], json!(["app__look", "app__paint"]));
    let text = assistant("servant", "").replace("tools:", "allowed_builtin_service_aliases: [room]\ntools:");
    let servant = read_markdown(text.as_bytes(), "servant.md".as_ref(), Source::Database).expect("one");
    client.host.create_assistant(servant).await.expect("stored");
    let spawned = client.spawn("servant", "go").await;
    let row = client.host.process(spawned["process_id"].as_str().expect("an id").parse().expect("an id")).await;
    assert_eq!(row.expect("read").expect("a row").tools, ["builtin_room__open"]);
    let door = client.host.connect_in_process("app").await.expect("a client");
    let names: Vec<String> =
        door.list_all_tools().await.expect("tools").iter().map(|tool| tool.name.to_string()).collect();
    assert!(names.contains(&"app__look".to_owned()) && !names.contains(&"app__paint".to_owned()), "{names:?}");
    door.cancel().await.expect("it ends");
    client.host.close().await;
    for (name, why) in [("paint", "prefix__tool"), ("App__x", "prefix__tool")] {
        let mut options = Options::new(dir.path().join("other"), RunnerCommand::new(RUNNER));
        options.app_tools.push(paint(name, false));
        let error = Host::open(options).await.err().expect("refused");
        assert!(matches!(&error, OpenError::Tool { .. }) && error.to_string().contains(why), "{error}");
    }
}

async fn next(changes: &mut Changes) -> Change {
    tokio::time::timeout(SOON, changes.next()).await.expect("a change").expect("a change")
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_bring_a_snapshot_up_to_date() {
    let dir = tempfile::tempdir().expect("a folder");
    let client = open(&dir, "", json!([{ "text": "blue" }]), None).await;
    let first = client.spawn("painter", "before").await;
    client.end(&first).await;
    let snapshot = client.host.snapshot().await.expect("read");
    assert_eq!((snapshot.processes.len(), snapshot.assistants.assistants().len()), (1, 1));
    let mut changes = client.host.changes(&snapshot);
    let spawned = client.spawn("painter", "after").await;
    client.end(&spawned).await;
    let (mut statuses, mut texts, mut kinds, mut revision) = (Vec::new(), String::new(), Vec::new(), snapshot.revision);
    let mut counts = (0, 0, None);
    loop {
        match next(&mut changes).await {
            Change::Process { revision: at, process } => {
                assert!(at > revision, "revisions grow");
                let told =
                    serde_json::to_value(Change::Process { revision: at, process: process.clone() }).expect("JSON");
                assert_eq!(told["process"]["process"]["id"], spawned["process_id"], "what a window gets");
                counts = (process.turns, process.tool_calls, process.result.clone());
                revision = at;
                assert_eq!(process.query, "after", "what was before is in the snapshot");
                statuses.push(process.status.name());
            }
            Change::Event { revision: at, event, .. } => {
                assert!(at >= revision, "the row of an event stands before it");
                revision = at;
                if event.kind.name() != "status" {
                    kinds.push(event.kind.name());
                }
                // The last word of a process.
                if event.kind.name() == "message" {
                    break;
                }
            }
            Change::Delta(Delta { text, .. }) => texts.push_str(&text),
            Change::Assistant(_) | Change::AssistantRemoved(_) => panic!("no assistant has changed"),
            Change::Missed(_) => panic!("so few pieces wait for the slowest reader"),
        }
    }
    assert_eq!(
        (statuses.last(), kinds.as_slice()),
        (Some(&"finished"), ["run", "model_call", "model_answer", "run", "message"].as_slice())
    );
    assert!(texts.is_empty() || texts == "blue", "{texts}");
    let caught_up = client.host.snapshot().await.expect("read");
    assert_eq!(caught_up.revision, revision);
    let row = &caught_up.processes[0];
    assert_eq!(counts, (row.turns, row.tool_calls, row.result.clone()), "the last row that was told is the row");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ends_with_the_host_is_told_before_the_stream_ends() {
    let dir = tempfile::tempdir().expect("a folder");
    let client = open(&dir, "", json!([{ "hang": true }]), None).await;
    let mut changes = client.host.changes(&client.host.snapshot().await.expect("read"));
    let spawned = client.spawn("painter", "go").await;
    client.asked(&spawned).await;
    let host = client.host.clone();
    let closing = tokio::spawn(async move { host.close().await });
    let mut last = loop {
        match tokio::time::timeout(SOON, changes.next()).await.expect("it ends") {
            Ok(Change::Process { process, .. }) if process.status.is_end() => break process,
            Ok(_) => {}
            Err(error) => panic!("the end was not told: {error}"),
        }
    };
    assert_eq!(last.status.name(), "cancelled");
    closing.await.expect("closed");
    let error = loop {
        match tokio::time::timeout(SOON, changes.next()).await.expect("it ends") {
            Ok(Change::Process { process, .. }) => last = process,
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::Closed), "{error}");
    assert_eq!(last.cause.map(|cause| cause.name()), Some("session_ended"));
}

#[tokio::test(flavor = "multi_thread")]
async fn assistants_of_the_app_are_made_changed_and_removed() {
    let dir = tempfile::tempdir().expect("a folder");
    let client = open(&dir, "", json!([{ "text": "x" }]), None).await;
    let host = &client.host;
    let mut changes = host.changes(&host.snapshot().await.expect("read"));
    let knitter = |does: &str| Definition { description: format!("knits {does}"), ..definition("knitter", "") };
    host.create_assistant(knitter("socks")).await.expect("stored");
    assert!(matches!(host.create_assistant(knitter("hats")).await, Err(NotStored::Exists(_))));
    let twice =
        tokio::join!(host.create_assistant(definition("twin", "")), host.create_assistant(definition("twin", "")));
    assert!(
        matches!(twice, (Ok(()), Err(NotStored::Exists(_))) | (Err(NotStored::Exists(_)), Ok(()))),
        "only one of them is stored: {twice:?}"
    );
    let found = async |text: &str| {
        let found = client.call("search_assistant", json!({ "query": text })).await;
        found["items"].as_array().expect("a list").iter().map(|one| one["id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(found("socks").await, [json!("knitter")], "found when the call has returned");
    host.update_assistant(knitter("hats")).await.expect("stored");
    assert_eq!((found("hats").await.len(), found("socks").await.len()), (1, 0));
    host.remove_assistant(&knitter("hats").id).await.expect("removed");
    assert!(found("hats").await.is_empty());
    assert!(matches!(host.update_assistant(knitter("hats")).await, Err(NotStored::Unknown(_))));
    assert!(matches!(host.remove_assistant(&knitter("hats").id).await, Err(NotStored::Unknown(_))));
    // A reader may see several changes as one; the last one is that it is gone, or nothing is left to tell.
    host.create_assistant(knitter("gloves")).await.expect("stored");
    loop {
        if let Change::Assistant(one) = next(&mut changes).await
            && one.description == "knits gloves"
        {
            break;
        }
    }
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_are_told_of_ends_and_questions() {
    let dir = tempfile::tempdir().expect("a folder");
    let told = dir.path().join("told");
    let hook = |what: &str| vec!["sh".to_owned(), "-c".to_owned(), format!("{what} >> {}", told.display())];
    let mut options = Options::new(dir.path().join("state"), RunnerCommand::new(RUNNER));
    let asks = json!([{ "tool_calls": [{ "tool_name": "ask_parent", "arguments": { "question": "red?" } }] }, { "text": "ok" }]);
    let model = ScriptedModel::from_value(script(&[("asker", asks)])).expect("a script");
    options.models.insert("scripted", Arc::new(model));
    options.hooks.on_end = hook("(cat; echo; env | grep -c KEY; echo)");
    options.hooks.on_question = hook("(cat; echo)");
    options.limits.hook_ms = 20_000;
    let host = Host::open(options).await.expect("a host");
    host.create_assistant(definition("asker", "ask_parent")).await.expect("stored");
    let client = Client::of(&host).await;
    let spawned = client.spawn("asker", "the task").await;
    let lines = async |count: usize| {
        let read = async {
            loop {
                let text = std::fs::read_to_string(&told).unwrap_or_default();
                let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
                if lines.iter().filter(|line| line.is_object()).count() >= count {
                    return lines;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(SOON, read).await.expect("the hook ran")
    };
    let asked = lines(1).await;
    assert_eq!((&asked[0]["event"], &asked[0]["question"]), (&json!("question"), &json!("red?")));
    client.call("reply_assistant", json!({ "process_id": spawned["process_id"], "answer": "yes" })).await;
    client.end(&spawned).await;
    let ended = lines(2).await;
    let end = ended.iter().find(|line| line["event"] == "end").expect("an end");
    assert_eq!((&end["status"], &end["result"], &end["query"]), (&json!("finished"), &json!("ok"), &json!("the task")));
    assert_eq!(end["process_id"], spawned["process_id"]);
    host.close().await;
}

#[test]
fn the_core_pulls_in_what_it_needs_and_no_more() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut tree = std::process::Command::new(cargo);
    tree.args([
        "tree",
        "-p",
        "assistant-host",
        "--no-default-features",
        "-e",
        "normal",
        "--offline",
        "--prefix",
        "none",
    ]);
    let output = tree.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let names: Vec<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(
        names.contains(&"rusqlite") && names.contains(&"tantivy"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for none in [
        "clap",
        "clap_complete",
        "indicatif",
        "interprocess",
        "jsonc-parser",
        "toml_edit",
        "tracing-subscriber",
        "reqwest",
        "hyper",
        "rustls",
        "axum",
        "assistant-runner",
    ] {
        assert!(!names.contains(&none), "the core pulls in {none}");
    }
}
