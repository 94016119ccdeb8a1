//! What is the host's own, in a folder that assistants work in: the host's tools do not show it either.

use assistant_host::host::{Host, Options};
use assistant_host::store::FILE;

use super::*;

/// A host whose project is the whole bed, its state, its configuration and a key in it; with what `x` was given for these calls.
async fn given_in_it(calls: &[(&str, Value)]) -> Vec<String> {
    let mut steps: Vec<Value> = calls
        .iter()
        .map(|(tool, arguments)| json!({ "tool_calls": [{ "tool_name": tool, "arguments": arguments }] }))
        .collect();
    steps.push(json!({ "text": "done" }));
    let text = conformance::bed::assistant("x", "read_file, list_files, search_files");
    let mut bed = Bed::new(RUNNER, &[("x.md", &text)], &script(&[("x", Value::Array(steps))]));
    std::fs::create_dir(bed.dir.path().join("keys")).expect("a folder");
    for file in ["config.toml", "keys/one", "keys/other"] {
        std::fs::write(bed.dir.path().join(file), "very-secret").expect("a file");
    }
    bed.private = vec![bed.dir.path().join("config.toml"), bed.dir.path().join("keys/one")];
    std::os::unix::fs::symlink("keys/one", bed.dir.path().join("link")).expect("a link");
    let project = Some(bed.dir.path().to_path_buf());
    let host = Host::open(Options { project, ..bed.options() }).await.expect("a host");
    let client = Client::of(&host).await;
    let (spawned, seen) = run(&client).await;
    assert_eq!(seen["status"], "finished", "{seen}");
    let given = given(&client, &spawned).await;
    client.host.close().await;
    given
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hosts_own_files_are_not_shown() {
    let read = |path: &str| ("read_file", json!({ "path": path }));
    let given = given_in_it(&[
        read("config.toml"),
        read("keys/one"),
        read("link"),
        read(&format!("state/{FILE}")),
        ("list_files", json!({ "path": "state" })),
        ("list_files", json!({})),
        ("search_files", json!({ "pattern": "very-secret" })),
        ("search_files", json!({ "pattern": "very-secret", "path": "config.toml" })),
        read("state/nothing/there"),
        read("keys/other"),
    ])
    .await;
    assert_eq!(given.len(), 10, "{given:?}");
    for refused in [0, 1, 2, 3, 4, 7, 8] {
        assert!(given[refused].contains("is the host's own"), "{refused}: {given:?}");
    }
    for shown in [5, 6] {
        let one = &given[shown];
        let own = ["config.toml", "keys/one", "state/"].iter().any(|own| one.contains(own));
        assert!(one.contains("keys/other") && !own, "{shown}: {one}");
    }
    assert!(given[9].contains("very-secret"), "{given:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_moved_or_has_another_name_is_still_the_hosts_own() {
    let read = |path: &str| json!({ "tool_calls": [{ "tool_name": "read_file", "arguments": { "path": path } }] });
    let search = json!({ "tool_calls": [{ "tool_name": "search_files", "arguments": { "pattern": "very-secret" } }] });
    let steps = json!([read("moved/key"), read("hard"), search, { "text": "done" }]);
    let text = conformance::bed::assistant("x", "read_file, list_files, search_files");
    let mut bed = Bed::new(RUNNER, &[("x.md", &text)], &script(&[("x", steps)]));
    let keys = bed.project().join("keys");
    std::fs::create_dir(&keys).expect("a folder");
    std::fs::write(keys.join("key"), "very-secret").expect("a file");
    bed.private = vec![keys.join("key")];
    let client = bed.open().await;
    std::fs::hard_link(keys.join("key"), bed.project().join("hard")).expect("a name");
    std::fs::rename(&keys, bed.project().join("moved")).expect("moved");
    let (spawned, seen) = run(&client).await;
    assert_eq!(seen["status"], "finished", "{seen}");
    let given = given(&client, &spawned).await;
    client.host.close().await;
    assert!(given[..2].iter().all(|one| one.contains("is the host's own")), "{given:?}");
    assert!(given.len() == 3 && !given[2].contains("moved/key") && !given[2].contains("hard"), "{given:?}");
}
