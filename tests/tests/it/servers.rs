//! Tool servers as real child processes: started, shared, called, cancelled, restarted, ended; and what those that
//! misbehave can do.

use std::collections::BTreeSet;
use std::path::PathBuf;

use assistant_host::caller::Caller;
use assistant_host::events::Kind;
use assistant_host::host::Host;
use assistant_host::limits::Limits;
use conformance::bed::{Bed, Client, SOON, script};
use serde_json::{Value, json};

use crate::{RUNNER, SERVER};

mod configured;
mod ends;
mod http;
mod mischief;
mod places;
mod rights;

/// A host whose assistants have servers of their own, all trusted.
struct Served {
    bed: Bed,
    client: Client,
}

/// An assistant with a server `s`, as its frontmatter says.
fn definition(name: &str, servers: &str) -> (String, String) {
    let text = format!("---\nname: {name}\ndescription: It is {name}.\nmcpServers: {servers}\n---\nYou are {name}.\n");
    (format!("{name}.md"), text)
}

/// `{s: …}` with the fake server in a mode.
fn server(arguments: &[&str], more: &str) -> String {
    format!("{{s: {{command: {}, args: {}{more}}}}}", json!(SERVER), json!(arguments))
}

/// A call of a tool as a step of a script, and a step that tells what came of it.
fn calls(tools: &[(&str, Value)]) -> Value {
    let call =
        |(name, arguments): &(&str, Value)| json!({ "tool_calls": [{ "tool_name": name, "arguments": arguments }] });
    let mut steps: Vec<Value> = tools.iter().map(call).collect();
    steps.push(json!({ "text": "{{result}}" }));
    Value::Array(steps)
}

impl Served {
    async fn new(assistants: &[(String, String)], steps: &[(&str, Value)], limits: Limits) -> Self {
        let files: Vec<(&str, &str)> = assistants.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let mut bed = Bed::new(RUNNER, &files, &script(steps));
        bed.limits = limits;
        Self::open(bed).await
    }

    async fn open(bed: Bed) -> Self {
        let client = bed.open().await;
        bed.trust_all(&client.host).await;
        Self { bed, client }
    }

    /// One assistant `a` with a server in a mode, that makes these calls and tells what came of the last.
    async fn one(arguments: &[&str], tools: &[(&str, Value)]) -> Self {
        Self::with(arguments, tools, Limits::default()).await
    }

    async fn with(arguments: &[&str], tools: &[(&str, Value)], limits: Limits) -> Self {
        Self::new(&[definition("a", &server(arguments, ""))], &[("a", calls(tools))], limits).await
    }

    /// Spawns the assistant, and gives its result.
    async fn run(&self, assistant: &str) -> String {
        let spawned = self.client.spawn(assistant, "go").await;
        let ended = self.client.end(&spawned).await;
        let mail = self.client.mail(&spawned).await;
        assert_eq!(ended["status"], "finished", "{ended} {mail:?}");
        mail.last().cloned().unwrap_or_default()
    }

    /// Runs the assistant to its end: its result, and all that its log tells of servers and its calls gave.
    async fn told(&self, assistant: &str) -> (String, String) {
        let spawned = self.client.spawn(assistant, "go").await;
        self.client.end(&spawned).await;
        let last = self.client.mail(&spawned).await.last().cloned().unwrap_or_default();
        let mut told = json!(events(self.host(), &spawned, Kind::Server).await).to_string();
        let db = rusqlite::Connection::open(self.bed.state().join(assistant_host::store::FILE)).expect("the store");
        let mut look = db.prepare("SELECT result FROM tool_calls WHERE process_id = ?1").expect("a question");
        let rows =
            look.query_map([spawned["process_id"].as_str()], |row| row.get::<_, Option<String>>(0)).expect("rows");
        rows.for_each(|row| told.extend(row.expect("a row")));
        (last, told)
    }

    fn host(&self) -> &Host {
        &self.client.host
    }

    /// The fake servers that live.
    fn servers(&self) -> Vec<u32> {
        living(self.bed.state())
    }
}

/// The servers of the host of a state directory that live: known by a variable.
fn living(state: PathBuf) -> Vec<u32> {
    let mark = format!("ASSISTANT_SERVER_OF={}", state.display());
    conformance::processes::all().into_iter().filter(|pid| has(*pid, &mark)).collect()
}

fn has(pid: u32, variable: &str) -> bool {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|one| one == variable.as_bytes())
}

/// Waits until something holds.
async fn until(what: &str, look: impl Fn() -> bool) {
    let reached = async {
        while !look() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SOON, reached).await.unwrap_or_else(|_| panic!("never: {what}"));
}

/// The events of a process of one kind.
async fn events(host: &Host, spawned: &Value, kind: Kind) -> Vec<Value> {
    let process = spawned["process_id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
    let all = host.events(process, 0, 1_000).await.expect("events");
    all.into_iter().filter(|event| event.kind == kind).map(|event| event.data).collect()
}

#[tokio::test]
async fn a_tool_of_a_server_is_called() {
    let echo = ("s__echo", json!({ "text": "hallo" }));
    let served = Served::one(&["honest"], std::slice::from_ref(&echo)).await;
    assert_eq!(served.run("a").await, "hallo");
    // Old servers know the handshake only, new ones do without it.
    for mode in ["legacy", "modern", "noise", "slow"] {
        let served = Served::one(&[mode, "200"], std::slice::from_ref(&echo)).await;
        assert_eq!(served.run("a").await, "hallo", "{mode}");
    }
}

#[tokio::test]
async fn what_it_gives_is_passed_on() {
    let served = Served::one(&["honest"], &[("s__picture", json!({}))]).await;
    let (_, told) = served.told("a").await;
    let picture = "[picture, image/png, 8 bytes: blob:";
    assert!(told.contains("look") && told.contains(picture) && !told.contains("iVBORw0KGgo="), "{told}");
    let (_, behind) = told.split_once(picture).expect("a handle");
    let (caller, handle) = (Caller::Session(served.client.session), behind[..16].parse().expect("a handle"));
    let read = served.host().blob(caller, &handle).await.expect("read").expect("a blob");
    assert_eq!(read.1, b"\x89PNG\r\n\x1a\n");
    let served = Served::one(&["honest"], &[("s__echo", json!({ "text": "both" }))]).await;
    let (_, told) = served.told("a").await;
    assert!(told.contains("\"structured_content\":{\"text\":\"both\"}"), "{told}");
    let limits = Limits { answer_chars: 1_000, ..Limits::default() };
    let served = Served::with(&["honest"], &[("s__big", json!({ "chars": 5_000 }))], limits).await;
    let (_, told) = served.told("a").await;
    assert!(told.contains("4000 of 5000 characters are left out"), "{told}");
    let served = Served::one(&["honest"], &[("s__fail", json!({}))]).await;
    let spawned = served.client.spawn("a", "go").await;
    served.client.end(&spawned).await;
    let results = events(served.host(), &spawned, Kind::ToolResult).await;
    assert_eq!(results[0]["is_error"], true, "{results:?}");
}

#[tokio::test]
async fn fifty_processes_share_one_server() {
    let limits = Limits { running_per_session: 50, running_per_host: 50, ..Limits::default() };
    let served = Served::with(&["honest"], &[("s__place", json!({}))], limits).await;
    let spawns = (0..50).map(|_| served.client.spawn("a", "go"));
    let spawned = futures::future::join_all(spawns).await;
    let mut places = BTreeSet::new();
    for one in &spawned {
        served.client.end(one).await;
        places.extend(served.client.mail(one).await);
    }
    assert_eq!(places.len(), 1, "{places:?}");
    assert_eq!(served.servers().len(), 1, "one process");
    assert!(places.iter().all(|place| place.ends_with(&served.bed.project().display().to_string())), "{places:?}");
}

#[tokio::test]
async fn the_same_server_under_two_names_is_one_and_own_ones_are_many() {
    let place = |name: &str| calls(&[(name, json!({}))]);
    let other = server(&["honest"], "").replace("{s:", "{other:");
    let own = server(&["honest"], ", shared: false");
    let assistants = [definition("a", &server(&["honest"], "")), definition("b", &other), definition("own", &own)];
    let steps = [("a", place("s__place")), ("b", place("other__place")), ("own", place("s__place"))];
    let served = Served::new(&assistants, &steps, Limits::default()).await;
    let (a, b) = (served.run("a").await, served.run("b").await);
    assert_eq!(a, b);
    let (first, second) = (served.run("own").await, served.run("own").await);
    assert!(first != second && first != a && second != a, "{first} {second} {a}");
    // They end with their process.
    until("own servers end", || served.servers().len() == 1).await;
}

#[tokio::test]
async fn progress_is_that_of_the_process_and_a_cancel_reaches_the_server() {
    let dir = tempfile::tempdir().expect("a folder");
    let note = dir.path().join("note");
    let served = Served::one(&["honest"], &[("s__wait", json!({ "text": note }))]).await;
    let spawned = served.client.spawn("a", "go").await;
    let process = spawned["process_id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
    let told = async {
        let mut after = 0;
        loop {
            let events = served.host().events(process, after, 100).await.expect("events");
            if let Some(told) = events.iter().find(|event| event.kind == Kind::Progress) {
                return told.data.clone();
            }
            after = events.last().map_or(after, |event| event.seq);
        }
    };
    let told = tokio::time::timeout(SOON, told).await.expect("progress");
    assert_eq!(told, json!({ "text": "I wait", "fraction": 0.25 }));
    served.client.call("cancel_assistant", json!({ "process_id": spawned["process_id"] })).await;
    until("the server notes it", || std::fs::read_to_string(&note).is_ok_and(|text| text == "cancelled\n")).await;
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_cancelled_at_the_server() {
    let dir = tempfile::tempdir().expect("a folder");
    let note = dir.path().join("note");
    let servers = server(&["honest"], ", timeoutMs: 2000");
    let steps = calls(&[("s__wait", json!({ "text": note })), ("s__echo", json!({ "text": "still there" }))]);
    let served = Served::new(&[definition("a", &servers)], &[("a", steps)], Limits::default()).await;
    let spawned = served.client.spawn("a", "go").await;
    served.client.end(&spawned).await;
    assert_eq!(served.client.mail(&spawned).await, ["still there"]);
    let told = json!(events(served.host(), &spawned, Kind::Server).await).to_string();
    assert!(told.contains("did not answer within 2000 ms"), "{told}");
    until("the server notes it", || note.exists()).await;
}

#[tokio::test]
async fn new_tools_are_offered_to_the_next_process() {
    let steps = [("a", calls(&[("s__grow", json!({}))])), ("b", calls(&[("s__grown", json!({}))]))];
    let assistants = ["a", "b"].map(|name| definition(name, &server(&["honest"], "")));
    let served = Served::new(&assistants, &steps, Limits::default()).await;
    assert_eq!(served.run("a").await, "grown: true");
    let asked = async { while served.run("b").await != "I am new" {} };
    tokio::time::timeout(SOON, asked).await.expect("the new tool is offered");
}
