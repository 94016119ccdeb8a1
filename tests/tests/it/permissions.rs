//! Rules for calls, held by the host: with real runners and a tool of an app that stands for Bash.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use assistant_host::app::{AppTool, Approval, Approve, Decision};
use assistant_host::host::{Host, Options};
use assistant_host::tools::Hints;
use conformance::bed::{Bed, Client, script};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::RUNNER;

/// What the tool `app__bash` was called with.
type Ran = Arc<Mutex<Vec<String>>>;

/// A tool that stands for Bash and only remembers.
pub(crate) fn bash(ran: &Ran) -> AppTool {
    let ran = ran.clone();
    AppTool {
        name: "app__bash".into(),
        title: "Run a command".into(),
        description: "Runs a command.".into(),
        input_schema: json!({ "type": "object", "properties": { "command": { "type": "string" } } }),
        hints: Hints { read_only: false, destructive: true, idempotent: false, open_world: true },
        for_clients: false,
        needs_approval: false,
        run: Arc::new(move |call| {
            let command = call.arguments["command"].as_str().unwrap_or_default().to_owned();
            ran.lock().expect("a lock").push(command.clone());
            async move { Ok(json!({ "ran": command }).into()) }.boxed()
        }),
    }
}

/// A bed whose assistants have these keys and make these steps.
pub(crate) fn bed(ran: &Ran, assistants: &[(&str, &str, Value)]) -> Bed {
    let text = |name: &str, keys: &str| {
        format!("---\nname: {name}\ndescription: One of the tests.\n{keys}\n---\nYou are {name}.\n")
    };
    let files: Vec<(String, String)> =
        assistants.iter().map(|(name, keys, _)| (format!("{name}.md"), text(name, keys))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let steps: Vec<(&str, Value)> = assistants.iter().map(|(name, _, steps)| (*name, steps.clone())).collect();
    let mut bed = Bed::new(RUNNER, &files, &script(&steps));
    bed.app_tools = vec![bash(ran)];
    bed
}

/// What a host of the bed is opened with: `Bash` is the tool of the app.
fn options(bed: &Bed) -> Options {
    let mut options = bed.options();
    options.tool_aliases = BTreeMap::from([("Bash".to_owned(), "app__bash".to_owned())]);
    options
}

async fn open(bed: &Bed) -> Client {
    Client::of(&Host::open(options(bed)).await.expect("a host")).await
}

pub(crate) fn run(command: &str) -> Value {
    json!({ "tool_calls": [{ "tool_name": "app__bash", "arguments": { "command": command } }] })
}

/// The events of one kind of a process, without their times.
pub(crate) async fn events(client: &Client, spawned: &Value, kind: &str) -> Vec<Value> {
    let log =
        client.call("read_log", json!({ "process_id": spawned["process_id"], "kinds": [kind], "limit": 200 })).await;
    log["events"].as_array().expect("events").iter().map(|event| event["data"].clone()).collect()
}

fn ran(ran: &Ran) -> Vec<String> {
    ran.lock().expect("a lock").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_outside_of_a_pattern_is_refused_with_the_rule() {
    let commands = Ran::default();
    let steps = json!([run("curl x"), run("curl x; rm -rf y"), { "text": "{{result.message}}" }]);
    let bed = bed(&commands, &[("worker", "tools: ['Bash(curl:*)', Read]", steps)]);
    let client = open(&bed).await;
    let spawned = client.spawn("worker", "go").await;
    assert_eq!(spawned["unavailable_tools"], json!([]), "a pattern is no reason to go without a tool");
    client.end(&spawned).await;
    let rule = "`rm -rf y` does not match any of: Bash(curl:*)";
    assert_eq!(client.mail(&spawned).await, [format!("the call of app__bash is not permitted: {rule}")]);
    let refused = events(&client, &spawned, "refused").await;
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(refused[0]["tool"], "app__bash");
    assert!(refused[0]["rule"].as_str().is_some_and(|told| told.contains(rule)), "{refused:?}");
    assert_eq!(ran(&commands), ["curl x"]);
    client.host.close().await;
}

struct Handler;

impl Approve for Handler {
    fn approve(&self, ask: Approval) -> BoxFuture<'_, Decision> {
        async move {
            match ask.arguments["command"].as_str() {
                Some("git push") => Decision::Allow,
                _ => Decision::Deny { reason: "not today".to_owned() },
            }
        }
        .boxed()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_approval_handler_of_an_app_is_asked_where_a_rule_says_so() {
    let commands = Ran::default();
    let steps = json!([run("ls"), run("git push"), run("git push --force"), { "text": "{{result.message}}" }]);
    let bed = bed(&commands, &[("worker", "tools: [Bash]\naskTools: ['Bash(git push:*)']", steps)]);
    let mut options = options(&bed);
    options.approval = Some(Arc::new(Handler));
    let client = Client::of(&Host::open(options).await.expect("a host")).await;
    let spawned = client.spawn("worker", "go").await;
    client.end(&spawned).await;
    let told = "the call of app__bash is not permitted: `Bash(git push:*)` asks first, and the answer is: not today";
    assert_eq!(client.mail(&spawned).await, [told]);
    let calls = events(&client, &spawned, "tool_call").await;
    let decided: Vec<&Value> =
        calls.iter().filter(|call| call.get("approved").is_some()).map(|call| &call["approved"]).collect();
    assert_eq!(decided, [true, false]);
    assert_eq!(ran(&commands), ["ls", "git push"]);
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_asked_and_its_answer_decides() {
    let check = async |answers: &[&str], commands: &[&str], want: &[&str]| {
        let made = Ran::default();
        let mut steps: Vec<Value> = commands.iter().map(|command| run(command)).collect();
        steps.push(json!({ "text": "done" }));
        let bed =
            bed(&made, &[("worker", "tools: [Bash]\npermission: {bash: {'*': allow, 'git *': ask}}", json!(steps))]);
        let client = open(&bed).await;
        let spawned = client.spawn("worker", "go").await;
        for answer in answers {
            client.until(&spawned, "waiting").await;
            let pending = client.call("get_pending_questions", json!({})).await;
            let question = &pending["questions"][0];
            let text = question["question"].as_str().expect("a question");
            assert!(text.contains("May I call app__bash?") && text.contains("`bash(git *): ask`"), "{text}");
            assert!(text.contains("git"), "the arguments are told: {text}");
            let reply =
                json!({ "process_id": spawned["process_id"], "message_id": question["message_id"], "answer": answer });
            client.call("reply_assistant", reply).await;
            // The next question is another one.
            let answered = question["message_id"].clone();
            loop {
                let now = client.call("get_pending_questions", json!({})).await;
                let state = client.poll(&spawned).await;
                if state["done"] == true
                    || now["questions"]
                        .as_array()
                        .is_some_and(|all| all.iter().any(|one| one["message_id"] != answered))
                {
                    break;
                }
                client.call("poll_assistant", json!({ "process_id": spawned["process_id"], "wait_ms": 100 })).await;
            }
        }
        client.end(&spawned).await;
        assert_eq!(ran(&made), want, "{answers:?}");
        let refused = events(&client, &spawned, "refused").await;
        assert_eq!(refused.len(), commands.len() - want.len(), "{refused:?}");
        client.host.close().await;
    };
    check(&["yes"], &["git push"], &["git push"]).await;
    check(&["no, because it is late"], &["git push"], &[]).await;
    check(&["yes, but only once it is green"], &["git push"], &[]).await;
    check(&["yes", "no"], &["git push", "git pull"], &["git push"]).await;
    check(&["always"], &["git push", "git pull", "ls"], &["git push", "git pull", "ls"]).await;
    check(&[], &["ls"], &["ls"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_answers_is_not_made() {
    let commands = Ran::default();
    let steps = json!([run("git push"), { "text": "{{result.message}}" }]);
    let mut bed = bed(&commands, &[("worker", "tools: [Bash]\naskTools: [Bash]", steps)]);
    bed.limits.question_ms = 300;
    let client = open(&bed).await;
    let spawned = client.spawn("worker", "go").await;
    client.end(&spawned).await;
    let mail = client.mail(&spawned).await;
    assert!(mail.last().is_some_and(|text| text.contains("nobody answered in time")), "{mail:?}");
    assert_eq!((ran(&commands).len(), events(&client, &spawned, "refused").await.len()), (0, 1));
    client.host.close().await;
}

/// The parent answers `yes` to whatever its child asks.
fn parent(child: &str) -> Value {
    let id = "{{spawn_assistant.process_id}}";
    json!([
        { "tool_calls": [{ "tool_name": "spawn_assistant", "arguments": { "assistant_id": child, "query": "go" } }] },
        { "tool_calls": [{ "tool_name": "wait_assistant", "arguments": { "process_ids": [id], "wait_ms": 50_000 } }] },
        { "tool_calls": [
            { "tool_name": "reply_assistant", "arguments": { "process_id": id, "answer": "yes" } },
            { "tool_name": "wait_assistant", "arguments": { "process_ids": [id], "wait_ms": 50_000 } },
        ] },
        { "text": "done" },
    ])
}

const SPAWNING: &str = "spawn_assistant, wait_assistant, reply_assistant, get_pending_questions";

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_consents_to_what_it_may_do_itself() {
    let commands = Ran::default();
    let steps = json!([run("git push"), { "text": "pushed" }]);
    let child = "tools: [Bash]\naskTools: ['Bash(git push:*)']";
    let bed =
        bed(&commands, &[("child", child, steps), ("boss", &format!("tools: [Bash, {SPAWNING}]"), parent("child"))]);
    let client = open(&bed).await;
    let spawned = client.spawn("boss", "go").await;
    client.end(&spawned).await;
    assert_eq!(ran(&commands), ["git push"]);
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_that_may_not_do_it_itself_is_not_even_asked() {
    let commands = Ran::default();
    let steps = json!([run("git push"), { "text": "pushed" }]);
    let child = "tools: [Bash]\naskTools: ['Bash(git push:*)']\nallowed_callers: [boss]";
    let boss = json!([
        { "tool_calls": [{ "tool_name": "spawn_assistant", "arguments": { "assistant_id": "child", "query": "go", "run_mode": "sync" } }] },
        { "text": "{{spawn_assistant.result.content}}" },
    ]);
    let bed = bed(&commands, &[("child", child, steps), ("boss", &format!("tools: [{SPAWNING}]"), boss)]);
    let client = open(&bed).await;
    let spawned = client.spawn("boss", "go").await;
    // The session above is asked.
    let question = loop {
        let pending = client.call("get_pending_questions", json!({})).await;
        if let Some(one) = pending["questions"].get(0) {
            break one.clone();
        }
        client.call("poll_assistant", json!({ "process_id": spawned["process_id"], "wait_ms": 100 })).await;
    };
    assert_eq!(question["assistant_id"], "child");
    assert!(ran(&commands).is_empty());
    client.call("reply_assistant", json!({ "process_id": question["process_id"], "answer": "yes" })).await;
    client.end(&spawned).await;
    assert_eq!((ran(&commands), client.mail(&spawned).await), (vec!["git push".to_owned()], vec!["pushed".to_owned()]));
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_asked_of_a_dead_host_is_not_approved_by_itself() {
    let commands = Ran::default();
    let steps = json!([run("git push"), { "text": "pushed" }]);
    let bed = bed(&commands, &[("worker", "tools: [Bash]\naskTools: [Bash]", steps)]);
    let client = open(&bed).await;
    let spawned = client.spawn("worker", "go").await;
    client.until(&spawned, "waiting").await;
    client.host.close().await;
    drop(client);
    let client = open(&bed).await;
    let pending = client.call("get_pending_questions", json!({})).await;
    assert_eq!(pending["questions"], json!([]), "its process is gone, and with it the question");
    assert!(ran(&commands).is_empty());
    client.host.close().await;
}
