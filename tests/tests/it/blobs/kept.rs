//! How long and how much: limits, resumption, retention, and hosts that are killed.

use std::sync::atomic::{AtomicI64, Ordering};

use conformance::bed::SOON;
use conformance::oracle;

use super::*;
use crate::FAKE_RUNNER;

const DAY: i64 = 24 * 60 * 60 * 1_000;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_past_a_limit_is_told_in_its_place() {
    let step = |size: u64| call("app__give", move |_| json!({ "kind": "file", "size": size }));
    let steps = vec![step(600), step(601), step(500), step(400), step(600), says(|_| "done".into())];
    let (mut bed, model) = bed(Steps::default().of("x", steps), "app__give");
    bed.limits.blob_bytes = 600;
    bed.limits.tree_blob_bytes = 1_000;
    let client = bed.open().await;
    run(&client, "go").await;
    let told = texts(&model.asked("x").last().expect("a call").messages);
    let line = |size: u32, rest: &str| format!("[file report.pdf, application/pdf, {size} bytes{rest}");
    for (size, rest) in [
        (600, ": blob:"),
        (601, ", not kept: limit blob_bytes: it has 601 bytes, the most is 600]"),
        (
            500,
            ", not kept: limit tree_blob_bytes: the blobs of this tree of processes have 1100 bytes, the most is 1000]",
        ),
        (400, ": blob:"),
    ] {
        assert!(told.contains(&line(size, rest)), "{size}: {told}");
    }
    assert_eq!(told.matches(&line(600, ": blob:")).count(), 2, "what is there already is no more");
    assert_eq!(count(&bed, "SELECT sum(length(bytes)) FROM blobs"), 1_000);
    // Another tree has its own.
    run(&client, "go").await;
    assert_eq!(count(&bed, "SELECT count(*) FROM blob_uses"), 4);
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resumption_has_what_it_had_and_the_last_use_keeps_it() {
    let steps = vec![
        gives("picture"),
        says(|heard| heard.handle()),
        call("read_blob", |heard| json!({ "blob": heard.handle() })),
        says(|heard| heard.handle()),
    ];
    let (mut bed, model) = bed(Steps::default().of("x", steps), "app__give");
    let now = Arc::new(AtomicI64::new(1_795_000_000_000));
    let clock = now.clone();
    bed.clock = Some(Arc::new(move || clock.load(Ordering::SeqCst)));
    let client = bed.open().await;
    let (spawned, handle) = run(&client, "go").await;
    client.host.close().await;
    drop(client);
    // Across hosts.
    let client = bed.open().await;
    now.fetch_add(20 * DAY, Ordering::SeqCst);
    let resumed =
        client.call("spawn_assistant", json!({ "resume_process_id": spawned["process_id"], "query": "again" })).await;
    assert_eq!(client.end(&resumed).await["status"], "finished");
    let last = model.asked("x").last().expect("a call").messages.clone();
    assert_eq!(serde_json::to_string(&last).expect("JSON").matches(&STANDARD.encode(PNG)).count(), 2);
    assert_eq!(bytes(&client, &handle).await.as_deref(), Some(PNG));
    client.mail(&resumed).await;
    let removed = async |days: i64| {
        now.fetch_add(days * DAY, Ordering::SeqCst);
        client.host.retain().await.expect("removed").trees
    };
    assert_eq!(removed(11).await, 0, "the resumption needs the first one");
    assert_eq!(bytes(&client, &handle).await.as_deref(), Some(PNG));
    assert_eq!(removed(20).await, 2);
    assert_eq!(bytes(&client, &handle).await, None);
    assert_eq!(count(&bed, "SELECT count(*) FROM blobs"), 0);
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blob_goes_with_its_last_tree() {
    let (mut bed, _) = bed(Steps::default().of("x", vec![gives("picture"), says(|heard| heard.handle())]), "app__give");
    let now = Arc::new(AtomicI64::new(1_795_000_000_000));
    let clock = now.clone();
    bed.clock = Some(Arc::new(move || clock.load(Ordering::SeqCst)));
    let client = bed.open().await;
    let (_, handle) = run(&client, "one").await;
    now.fetch_add(20 * DAY, Ordering::SeqCst);
    run(&client, "two").await;
    now.fetch_add(15 * DAY, Ordering::SeqCst);
    assert_eq!(client.host.retain().await.expect("removed").trees, 1);
    assert_eq!(bytes(&client, &handle).await.as_deref(), Some(PNG), "the younger tree uses it");
    now.fetch_add(20 * DAY, Ordering::SeqCst);
    assert_eq!(client.host.retain().await.expect("removed").trees, 1);
    assert_eq!(bytes(&client, &handle).await, None);
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_among_the_inputs_of_a_task_is_kept_for_its_process() {
    let steps = vec![call("read_blob", |heard| json!({ "blob": heard.handle() })), says(|heard| heard.handle())];
    let (mut bed, model) = bed(Steps::default().of("x", steps), "app__give");
    bed.limits.tree_blob_bytes = 60_000;
    for number in 0..2 {
        std::fs::write(bed.project().join(format!("{number}.png")), numbered(number)).expect("a file");
    }
    let client = bed.open().await;
    let asked = |inputs: Value| json!({ "assistant_id": "x", "query": "look", "inputs": inputs, "run_mode": "sync" });
    let spawned = client.call("spawn_assistant", asked(json!(["0.png"]))).await;
    let handle = spawned["result"]["content"].as_str().expect("a result").to_owned();
    assert_eq!(bytes(&client, &handle).await, Some(numbered(0)));
    let told = texts(&model.asked("x")[0].messages);
    assert!(told.contains(&format!("[picture 0.png, image/png, 50000 bytes: {handle}]")), "{told}");
    let last = model.asked("x").pop().expect("a call").messages;
    assert!(serde_json::to_string(&last).expect("JSON").contains(&STANDARD.encode(numbered(0))), "it sees it");
    let refused = client.refused("spawn_assistant", asked(json!(["0.png", "1.png"]))).await;
    assert_eq!(refused, "limit_tree_blob_bytes");
    assert_eq!(count(&bed, "SELECT count(*) FROM assistant_processes"), 1, "nothing of it is done");
    client.host.close().await;
}

/// A picture that is no other one's.
fn numbered(number: usize) -> Vec<u8> {
    let mut bytes = PNG.to_vec();
    bytes.extend(number.to_be_bytes());
    bytes.resize(50_000, 9);
    bytes
}

/// The fake runner's play that ends with a picture of its own making, named by its process.
fn play(dir: &std::path::Path, number: usize) -> std::path::PathBuf {
    let file = dir.join(format!("play-{number}.jsonl"));
    let content = json!([
        { "type": "text", "text": "seen" },
        { "type": "image", "mime_type": "image/png", "data": STANDARD.encode(numbered(number)) },
        { "type": "image", "mime_type": "image/png", "blob": "blob:0123456789abcdef" },
    ]);
    let initialized =
        json!({ "protocol_version": 1, "runner": { "name": "fake", "version": "1" }, "max_frame_bytes": 1_048_576 });
    let lines = [
        json!({ "wait": "initialize" }),
        json!({ "answer": "initialize", "result": initialized }),
        json!({ "wait": "run" }),
        json!({ "answer": "run", "result": { "stop_reason": "finished", "content": content } }),
        json!({ "wait_eof": true }),
    ];
    std::fs::write(&file, lines.map(|line| line.to_string()).join("\n")).expect("a file");
    file
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_gives_pictures_with_its_result_and_none_that_are_not_its_own() {
    let mut bed = Bed::new(
        FAKE_RUNNER,
        &[("x.md", &assistant("x", ""))],
        &json!({ "assistants": [{ "steps": [{ "text": "x" }] }] }),
    );
    bed.runner.args = vec![play(bed.dir.path(), 1).into()];
    let client = bed.open().await;
    let (spawned, result) = run(&client, "go").await;
    let handle = handles(&result).pop().expect("a handle");
    assert_eq!(result, format!("seen[picture, image/png, 50000 bytes: {handle}]"));
    assert_eq!(bytes(&client, &handle).await, Some(numbered(1)));
    let process = spawned["process_id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
    let pictures = client.host.pictures(process).await.expect("read");
    assert_eq!(pictures, [Part::Image { mime_type: "image/png".into(), data: None, blob: Some(handle) }]);
    client.host.close().await;
}

/// A host that is killed while answers with pictures come in: whoever has ended has its picture, whole.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn kill_9_leaves_no_blob_half() {
    use rmcp::transport::TokioChildProcess;

    use crate::crash::{McpClient, call as call_tool, mcp, runners_of};

    for round in 0..4 {
        let image = json!({ "mime_type": "image/png", "data": STANDARD.encode(numbered(round)) });
        let script = json!({ "assistants": [{ "steps": [{ "text": "seen", "images": [image] }] }] });
        let bed = Bed::new(RUNNER, &[("x.md", &assistant("x", ""))], &script);
        let transport = TokioChildProcess::new(mcp(&bed, &script)).expect("a process");
        let pid = transport.id().expect("a pid");
        let client: McpClient = rmcp::ServiceExt::serve((), transport).await.expect("a client");
        let spawned = |_| call_tool(&client, "spawn_assistant", json!({ "assistant_id": "x", "query": "go" }));
        futures::future::join_all((0..10).map(spawned)).await;
        call_tool(&client, "wait_assistant", json!({ "wait_ms": 20_000 })).await;
        let killed = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().expect("kill");
        assert!(killed.success());
        let state = bed.state().canonicalize().expect("the state");
        let gone = async {
            while !runners_of(&state).is_empty() {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(SOON, gone).await.expect("all are gone");
        let file = bed.state().join("assistant-host.db");
        assert_eq!(oracle::check(&file), Vec::<String>::new());
        let with = "SELECT count(*) FROM assistant_processes WHERE status = 'finished'";
        let finished = count(&bed, with);
        assert!(finished >= 1, "one has ended");
        assert_eq!(count(&bed, &format!("{with} AND result_parts IS NOT NULL")), finished);
        let client = bed.open().await;
        let listed = client.call("list_process", json!({ "status": "finished" })).await;
        for one in listed["items"].as_array().expect("items") {
            let process = one["process_id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
            let pictures = client.host.pictures(process).await.expect("read");
            let [Part::Image { blob: Some(handle), .. }] = pictures.as_slice() else { panic!("{pictures:?}") };
            assert_eq!(bytes(&client, handle).await, Some(numbered(round)));
        }
        client.host.close().await;
    }
}
