//! Files of assistants that change while a host runs: what processes, clients and apps see of it.

use assistant_host::changes::{Change, Changes};
use assistant_host::registry::Registry;
use conformance::bed::{Bed, SOON, assistant, script};
use serde_json::{Value, json};

use crate::RUNNER;

async fn next(changes: &mut Changes) -> Change {
    loop {
        match tokio::time::timeout(SOON, changes.next()).await.expect("a change").expect("a change") {
            Change::Assistant(new) => return Change::Assistant(new),
            Change::AssistantRemoved(id) => return Change::AssistantRemoved(id),
            Change::Process { .. } | Change::Event { .. } | Change::Delta(_) | Change::Missed(_) => {}
        }
    }
}

/// The assistant of the next change, which is that it is new or another.
async fn changed(changes: &mut Changes) -> (String, String) {
    match next(changes).await {
        Change::Assistant(now) => (now.id.to_string(), now.system_prompt.clone()),
        other => panic!("no assistant has changed: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_keeps_what_it_started_with_and_the_next_one_has_the_new() {
    let bed = Bed::new(RUNNER, &[("h.md", &assistant("h", ""))], &script(&[("h", json!([{ "hang": true }]))]));
    let client = bed.open().await;
    let host = &client.host;
    let mut changes = host.changes(&host.snapshot().await.expect("read"));
    let file = |name: &str| bed.dir.path().join("assistants").join(name);
    // Whole at once, so that each step is one change.
    let save = |name: &str, text: String| {
        std::fs::write(bed.dir.path().join("saved"), text).expect("a file");
        std::fs::rename(bed.dir.path().join("saved"), file(name)).expect("renamed");
    };
    let prompt = async |spawned: &Value| {
        let process = spawned["process_id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
        host.definition_of(process).await.expect("read").expect("a definition").system_prompt
    };

    let before = client.spawn("h", "go").await;
    client.asked(&before).await;
    save("h.md", assistant("h", "").replace("You are h.", "You are h. Be brief."));
    assert_eq!(changed(&mut changes).await, ("h".to_owned(), "You are h. Be brief.".to_owned()));
    let after = client.spawn("h", "go").await;
    client.asked(&after).await;
    assert_eq!(client.poll(&before).await["status"], "running", "the change has not touched it");
    assert_eq!((prompt(&before).await.as_str(), prompt(&after).await.as_str()), ("You are h.", "You are h. Be brief."));

    // A new one is found by search, spawned and, once its file is gone, unknown; what runs goes on.
    let knitter = assistant("knitter", "").replace("The assistant knitter of the tests.", "Knits socks.");
    save("knitter.md", knitter);
    assert_eq!(changed(&mut changes).await.0, "knitter");
    let found = client.call("search_assistant", json!({ "query": "socks" })).await;
    assert_eq!(found["items"][0]["id"], "knitter");
    std::fs::rename(file("h.md"), file("other.md")).expect("renamed");
    assert_eq!(changed(&mut changes).await.0, "h", "it is in another file");
    for (name, id) in [("knitter.md", "knitter"), ("other.md", "h")] {
        std::fs::remove_file(file(name)).expect("removed");
        match next(&mut changes).await {
            Change::AssistantRemoved(gone) => assert_eq!(gone.as_str(), id),
            other => panic!("{id} is not gone: {other:?}"),
        }
    }
    assert_eq!(*host.registry(), Registry::default());
    assert_eq!(
        client.refused("spawn_assistant", json!({ "assistant_id": "h", "query": "go" })).await,
        "unknown_assistant"
    );
    assert_eq!(client.poll(&after).await["status"], "running");
    host.close().await;
}

/// The database's own and the files' change at once, and each is what its last change made it.
#[tokio::test(flavor = "multi_thread")]
async fn an_app_and_files_that_change_assistants_at_once() {
    let nobody = script(&[("x", json!([{ "hang": true }]))]);
    let bed = Bed::new(RUNNER, &[("x.md", &assistant("x", ""))], &nobody);
    let client = bed.open().await;
    let host = &client.host;
    let of_app = |n: usize| {
        let mut own = host.registry().assistants()[0].as_ref().clone();
        (own.id, own.name) = (format!("own-{n}").parse().expect("an id"), format!("own-{n}"));
        own
    };
    for n in 0..20 {
        let text = assistant(&format!("f{n}"), "");
        std::fs::write(bed.dir.path().join(format!("assistants/f{n}.md")), text).expect("a file");
        host.create_assistant(of_app(n)).await.expect("made");
        if n % 2 == 0 {
            host.remove_assistant(&format!("own-{n}").parse().expect("an id")).await.expect("removed");
        }
    }
    let mut expected: Vec<String> = (0..20).map(|n| format!("f{n}")).collect();
    expected.extend((1..20).step_by(2).map(|n| format!("own-{n}")));
    expected.push("x".into());
    expected.sort();
    let mut changes = host.changes(&host.snapshot().await.expect("read"));
    let arrives = async {
        loop {
            let now: Vec<_> = host.registry().assistants().iter().map(|found| found.id.to_string()).collect();
            if now == expected {
                return;
            }
            next(&mut changes).await;
        }
    };
    tokio::time::timeout(SOON, arrives).await.expect("all are there");
    host.close().await;
}
