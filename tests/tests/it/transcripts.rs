//! Every transcript of the folder against our host: each says in its first step how the process of such a runner ends.
//! Beside them, in the same host, an assistant waits all the time and then finishes its work.

use std::path::{Path, PathBuf};

use assistant_host::events::{Event, Kind};
use assistant_host::limits::Limits;
use conformance::bed::{Bed, Client, SOON, assistant, script};
use conformance::doors::Doors;
use conformance::processes::marked;
use conformance::programs;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{FAKE_RUNNER, HOST, RUNNER};

/// Hosts that play at once.
const HOSTS: usize = 3;
/// The file in which a runner finds what to play, seen from the state directory.
const PLAY: &str = "../play";
/// What the log of a process has at most, events and bytes, unless its transcript says otherwise.
const EVENTS_MAX: usize = 400;
const EVENTS_BYTES_MAX: usize = 1_000_000;
/// The longest text that is told of a process that failed, bytes.
const ERROR_BYTES_MAX: usize = 16_000;
/// What a host has at most in memory that plays floods and lines of 100 MiB one after the other, KiB.
const HOST_KIB_MAX: u64 = 400 * 1024;

/// What the first step of a transcript says.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Expect {
    /// The test that plays it, where that needs a hand.
    by: Option<String>,
    status: String,
    reason: Option<String>,
    /// A part of what its parent is told.
    told: String,
    /// Of the runner: 0 where the host did all that the transcript wants of it.
    exit_code: i64,
    /// What the assistant may use; the mailbox by default.
    tools: Option<String>,
    /// The steps of its model; a word by default.
    model: Option<Value>,
    /// Limits other than those of all: it is played by a host of its own.
    limits: Map<String, Value>,
    events_max: Option<usize>,
    events_bytes_max: Option<usize>,
}

/// A transcript and what it says of itself.
#[derive(Debug, Clone)]
struct Case {
    name: String,
    file: PathBuf,
    expect: Expect,
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("transcripts");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder").map(|one| one.expect("a file").path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "jsonl"));
    files.sort();
    files.into_iter().map(case).collect()
}

fn case(file: PathBuf) -> Case {
    let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
    let text = std::fs::read_to_string(&file).expect("a text");
    let first = text.lines().find(|line| !line.starts_with('#')).unwrap_or_default();
    let first: Value = serde_json::from_str(first).unwrap_or_default();
    let expect = Expect::deserialize(&first["expect"])
        .unwrap_or_else(|error| panic!("{name}: its first step is `expect`: {error}"));
    Case { name, file, expect }
}

/// A program that plays what stands in [`PLAY`], or is the real runner where that is nothing.
fn player(dir: &Path, play: &Path) -> PathBuf {
    let program = dir.join("assistant-runner");
    let build = assistant_protocol::BUILD_ID;
    let text = format!(
        "#!/bin/sh\nif [ \"$1\" = --build-id ]; then echo '{build}'; exit; fi\nread -r file < '{}'\n\
         if [ -z \"$file\" ]; then exec '{RUNNER}'; fi\nexec '{FAKE_RUNNER}' \"$file\"\n",
        play.display()
    );
    programs::write(&program, &text);
    program
}

/// The model of the assistant that works beside: it waits for a word, and then says that it is there.
fn waits() -> Value {
    let arguments = json!({ "thread_id": "{{id_after.thread_id}}", "wait_ms": 600_000, "unread_only": true });
    json!([{ "tool_calls": [{ "tool_name": "recv_message", "arguments": arguments }] }, { "text": "still at work" }])
}

fn bed(cases: &[Case]) -> Bed {
    let tools = |case: &Case| case.expect.tools.clone().unwrap_or_else(|| "send_message, recv_message".to_owned());
    let mut files: Vec<(String, String)> =
        cases.iter().map(|case| (format!("{}.md", case.name), assistant(&case.name, &tools(case)))).collect();
    files.push(("beside.md".to_owned(), assistant("beside", "send_message, recv_message")));
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let steps = |case: &Case| case.expect.model.clone().unwrap_or_else(|| json!([{ "text": "hi" }]));
    let mut scripts: Vec<(&str, Value)> = cases.iter().map(|case| (case.name.as_str(), steps(case))).collect();
    scripts.push(("beside", waits()));
    let mut bed = Bed::new(RUNNER, &files, &script(&scripts));
    bed.runner.program = player(bed.dir.path(), Path::new(PLAY));
    let limits = Limits { grace_ms: 1_000, shutdown_ms: 2_000, launch_ms: 30_000, ..bed.limits };
    let mut limits = serde_json::to_value(limits).expect("JSON");
    for (name, value) in cases.iter().flat_map(|case| &case.expect.limits) {
        limits[name] = value.clone();
    }
    bed.limits = serde_json::from_value(limits).expect("limits");
    bed
}

/// Plays transcripts one after the other in one host; gives back what went otherwise than they say.
async fn play(cases: Vec<Case>) -> Vec<String> {
    let bed = bed(&cases);
    let play = bed.dir.path().join("play");
    std::fs::write(&play, "\n").expect("a file");
    let client = bed.open().await;
    let beside = client.spawn("beside", "wait").await;
    client.until(&beside, "waiting").await;
    let mut wrong = Vec::new();
    for case in &cases {
        std::fs::write(&play, format!("{}\n", case.file.display())).expect("a file");
        let spawned = client.spawn(&case.name, "go").await;
        wrong.extend(misfits(&client, case, &spawned).await.into_iter().map(|one| format!("{}: {one}", case.name)));
    }
    client.call("send_message", json!({ "thread_id": beside["thread_id"], "message": "and now?" })).await;
    let ended = client.end(&beside).await;
    if ended["status"] != "finished" || client.mail(&beside).await != ["still at work"] {
        wrong.push(format!("what worked beside: {ended}"));
    }
    client.host.close().await;
    wrong
}

/// What of a process that plays a transcript is not as that says.
async fn misfits(client: &Client, case: &Case, spawned: &Value) -> Vec<String> {
    let Ok(ended) = tokio::time::timeout(SOON, exited(client, spawned)).await else {
        let now = client.poll(spawned).await;
        client.call("cancel_assistant", json!({ "process_id": spawned["process_id"] })).await;
        return vec![format!("it never ends: {now}")];
    };
    let expect = &case.expect;
    let events = events(client, spawned).await;
    let mut wrong = Vec::new();
    let mut check = |holds: bool, words: String| {
        if !holds {
            wrong.push(words);
        }
    };
    let how = (ended["status"].as_str(), ended["reason"].as_str(), ended["exit_code"].as_i64());
    let want = (Some(expect.status.as_str()), expect.reason.as_deref(), Some(expect.exit_code));
    let said: Vec<&Value> =
        events.iter().filter(|event| event.kind == Kind::Stderr).take(3).map(|event| &event.data["line"]).collect();
    let error: String = ended["error"].as_str().unwrap_or_default().chars().take(500).collect();
    check(how == want, format!("wanted {want:?}, got {how:?}: {error}; it said {said:?}"));
    let mail = client.mail(spawned).await;
    let told = mail.last().is_some_and(|last| last.contains(&expect.told));
    let shown: Vec<String> = mail.iter().map(|one| one.chars().take(300).collect()).collect();
    check(told, format!("its parent is not told `{}`, but {shown:?}", expect.told));
    check(mail.iter().filter(|one| one.contains(&expect.told)).count() <= 1, format!("told twice: {shown:?}"));
    let bytes = ended["error"].as_str().map_or(0, str::len);
    check(bytes <= ERROR_BYTES_MAX, format!("its error has {bytes} bytes"));
    let (count, most) = (events.len(), expect.events_max.unwrap_or(EVENTS_MAX));
    check(count <= most, format!("its log has {count} events"));
    let bytes: usize = events.iter().map(|event| event.data.to_string().len()).sum();
    check(bytes <= expect.events_bytes_max.unwrap_or(EVENTS_BYTES_MAX), format!("its log has {bytes} bytes"));
    let left = left(spawned["process_id"].as_str().expect("an id")).await;
    check(left.is_empty(), format!("{left:?} are left of it"));
    wrong
}

/// The process once its runner has exited.
async fn exited(client: &Client, spawned: &Value) -> Value {
    loop {
        let arguments = json!({ "process_id": spawned["process_id"], "wait_ms": 1_000 });
        let now = client.call("poll_assistant", arguments).await["process"].clone();
        if now["done"] == true && now["exit_code"].is_number() {
            return now;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

async fn events(client: &Client, spawned: &Value) -> Vec<Event> {
    let process = spawned["process_id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
    let mut all: Vec<Event> = Vec::new();
    loop {
        let after = all.last().map_or(0, |event| event.seq);
        let more = client.host.events(process, after, 1_000);
        // The call waits where there is no more.
        match tokio::time::timeout(std::time::Duration::from_millis(50), more).await {
            Ok(found) => all.extend(found.expect("events")),
            Err(_) => return all,
        }
    }
}

/// What runs of a process a little later.
async fn left(process: &str) -> Vec<u32> {
    let gone = async {
        while !marked(process).is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    match tokio::time::timeout(SOON, gone).await {
        Ok(()) => Vec::new(),
        Err(_) => marked(process),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_transcript_ends_as_it_says_and_harms_nobody_else() {
    let (own, shared): (Vec<Case>, Vec<Case>) =
        cases().into_iter().filter(|case| case.expect.by.is_none()).partition(|case| !case.expect.limits.is_empty());
    assert!(shared.len() > 70 && own.len() > 2, "{} and {}", shared.len(), own.len());
    let mut groups: Vec<Vec<Case>> = vec![Vec::new(); HOSTS];
    for (at, case) in shared.into_iter().enumerate() {
        groups[at % HOSTS].push(case);
    }
    groups.extend(own.into_iter().map(|case| vec![case]));
    let wrong: Vec<String> =
        futures::future::join_all(groups.into_iter().map(play)).await.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{} transcripts:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_transcript_that_needs_a_hand_is_played_by_the_test_that_it_names() {
    for case in cases() {
        let Some(by) = case.expect.by else { continue };
        let test = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/it/{by}.rs"));
        let text = std::fs::read_to_string(&test).unwrap_or_else(|error| panic!("{}: {error}", test.display()));
        assert!(text.contains(&case.name), "{by}.rs does not play {}", case.name);
    }
}

/// The most that a process has had in memory, KiB.
fn most_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn the_memory_of_a_host_is_bounded_whatever_its_runners_write() {
    let dir = tempfile::tempdir().expect("a folder");
    let program = dir.path().join("assistant-host");
    programs::put(Path::new(HOST), &program);
    let play = dir.path().join("play");
    player(dir.path(), &play);
    let doors = Doors::new(program, "");
    let mut client = doors.client();
    assert!(client.shake());
    let host = doors.host_pid().expect("a host");
    let mut told = Vec::new();
    for case in cases() {
        if !["flood-", "hundred-mib", "huge-", "deep-", "longest-line"].iter().any(|begin| case.name.starts_with(begin))
        {
            continue;
        }
        std::fs::write(&play, format!("{}\n", case.file.display())).expect("a file");
        let spawned = client.must("spawn_assistant", &json!({ "assistant_id": "quick", "query": "go" }));
        let ids = json!({ "process_id": spawned["process_id"], "wait_ms": 5_000 });
        let begun = std::time::Instant::now();
        let ended = loop {
            let now = client.must("poll_assistant", &ids)["process"].clone();
            if now["done"] == true {
                break now;
            }
            assert!(begun.elapsed() < SOON, "{} never ends: {now}", case.name);
        };
        assert_eq!(ended["status"], case.expect.status, "{}: {ended}", case.name);
        let peak = most_kib(host);
        told.push(format!("{} {} MiB", case.name, peak / 1024));
        assert!(peak <= HOST_KIB_MAX, "the peak after each: {}", told.join(", "));
    }
    assert!(told.len() > 20, "{told:?}");
}
