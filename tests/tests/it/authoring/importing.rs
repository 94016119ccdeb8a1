//! Collections are taken in.

#[cfg(target_os = "linux")]
use conformance::doors::until;

use super::*;

/// A folder as one finds them: assistants of several systems, a document, a double, a broken one.
pub(super) fn collection(home: &Home) {
    home.write("lib/README.md", "# A collection\n");
    home.write("lib/a/checker.md", CHECKER);
    home.write("lib/a/poet.md", &assistant("poet", "read_file"));
    home.write("lib/b/poet.md", &assistant("poet", "list_files"));
    home.write("lib/b/broken.md", "---\nname: broken\n");
    home.write("lib/c/painter.agent.md", "---\ndescription: Paints: anything\n---\nYou paint.\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn import_takes_a_collection_in_once() {
    let home = Home::new();
    collection(&home);
    let totals = async |args: &[&str]| -> Value { home.json(&[&["import"], args].concat()).await["totals"].clone() };
    let counts = |added: u32, unchanged: u32| {
        json!({
            "added": added, "replaced": 0, "unchanged": unchanged, "different": 0, "defined_in_files": 0, "failed": 0,
            "skipped": 2, "double": 1,
        })
    };
    assert_eq!(totals(&["../lib", "--tag", "team", "--dry-run"]).await, counts(3, 0));
    home.fails(&["show", "poet"], 3, "no assistant").await;
    let (code, out, err) = home.run(&["import", "../lib", "--tag", "team"]).await;
    assert_eq!((code, out.as_str()), (0, "added     invoice-checker\nadded     painter\nadded     poet\n"), "{err}");
    assert!(err.contains("3 added to the database, 0 replaced, 0 unchanged, 2 skipped, 1 double"), "{err}");
    assert!(err.contains("lib/README.md") && err.contains("frontmatter_not_closed") && err.contains("lib/b/poet.md"));
    assert_eq!(totals(&["../lib", "--tag", "team"]).await, counts(0, 3));
    let shown = home.json(&["show", "invoice-checker"]).await;
    assert_eq!((&shown["tags"], &shown["extra"]), (&json!(["money", "team"]), &json!({ "color": "red" })));
    let listed = home.json(&["list"]).await;
    assert_eq!((&listed["totals"]["assistants"], &listed["assistants"][0]["source"]), (&json!(3), &json!("database")));
    let found = home.json(&["search", "check an invoice"]).await;
    assert_eq!(found["items"][0]["assistant_id"], "invoice-checker");
    home.out(&["new", "Painter of houses", "--to", "user", "--tag", "other"]).await;
    assert_eq!(home.json(&["list", "--tag", "team"]).await["totals"]["assistants"], 3);
    let found = home.json(&["search", "painter", "--tag", "Team"]).await;
    assert_eq!((&found["items"][0]["assistant_id"], &found["total_matches"]), (&json!("painter"), &json!(1)));
    assert!(home.out(&["export", "painter"]).await.contains("tags: [team]"));
    home.write("lib/a/poet.md", &assistant("poet", "send_message"));
    home.fails(&["import", "../lib/a", "--tag", "team"], 1, "another `poet` is in the database; --replace").await;
    assert_eq!(home.json(&["show", "poet"]).await["tools"], json!(["read_file"]));
    let out = home.out(&["import", "../lib/a", "--tag", "team", "--replace"]).await;
    assert_eq!(out, "replaced  poet\n");
    assert_eq!(home.json(&["show", "poet"]).await["tools"], json!(["send_message"]));
    home.write("project/.agents/agents/x.md", &assistant("x", ""));
    home.fails(&["import", ".agents/agents/x.md"], 1, "`x` is defined in a file that is read already").await;
    home.fails(&["import", "../nowhere"], 2, "../nowhere: ").await;
    home.fails(&["import", "../lib/README.md"], 1, "0 added").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_named_twice_is_read_once() {
    let home = Home::new();
    collection(&home);
    let args = ["import", "../lib/a/poet.md", "../lib", "../lib/b/broken.md", "../lib/a/../a/poet.md", "../lib/a"];
    let totals = home.json(&args).await["totals"].clone();
    let wanted = ["added", "skipped", "double"].map(|key| totals[key].clone());
    assert_eq!(wanted, [json!(3), json!(2), json!(1)], "{totals}");
}

/// The database keeps it: the file that it came from is told as that, and may go.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_brought_in_has_no_file() {
    let home = Home::new();
    home.write("lib/poet.md", &assistant("poet", "read_file, Bash"));
    home.out(&["import", "../lib"]).await;
    std::fs::remove_file(home.path().join("lib/poet.md")).expect("removed");
    home.fails(&["new", "Poet"], 1, "there is an assistant `poet` already, in the database").await;
    let from = home.path().canonicalize().expect("a path").join("lib/poet.md");
    let shown = home.json(&["show", "poet"]).await;
    let listed = home.json(&["list"]).await["assistants"][0].clone();
    for told in [&shown, &listed] {
        assert_eq!((&told["path"], &told["brought_from"]), (&Value::Null, &json!(from)), "{told}");
    }
    let finding = &home.json(&["check"]).await["diagnostics"][0];
    assert_eq!((&finding["file"], &finding["code"]), (&json!("the database"), &json!("tool_unavailable")));
    let removed = home.json(&["remove", "poet"]).await;
    assert_eq!(removed["removed"][0]["path"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn import_writes_files_too() {
    let home = Home::new();
    collection(&home);
    let out = home.out(&["import", "../lib", "--to", "project"]).await;
    assert_eq!(out, "added     invoice-checker\nadded     painter\nadded     poet\n");
    assert!(home.read("project/.agents/agents/painter.md").starts_with("---\nname: painter\n"));
    assert_eq!(home.json(&["import", "../lib", "--to", "project"]).await["totals"]["unchanged"], 3);
    home.write("project/.agents/agents/poet.md", "mine\n");
    home.fails(&["import", "../lib", "--to", "project"], 1, "another `poet` is in ").await;
    assert_eq!(home.read("project/.agents/agents/poet.md"), "mine\n");
    // Of a command that was killed.
    let left = "project/.agents/agents/.poet.md.0190a0a0-0000-7000-8000-000000000000.new";
    home.write(left, "ha");
    home.out(&["import", "../lib", "--to", "project", "--replace"]).await;
    assert!(!home.path().join(left).exists());
    assert_ne!(home.read("project/.agents/agents/poet.md"), "mine\n");
    // The project has them, so that the user's would be hidden.
    home.fails(&["import", "../lib", "--to", "user"], 1, "is defined in a file that is read already").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn imports_at_once_store_each_once() {
    let home = Home::new();
    for n in 0..200 {
        home.write(&format!("lib/a{n}.md"), &assistant(&format!("a{n}"), ""));
    }
    let runs = (0..4).map(|_| home.json(&["import", "../lib"]));
    let added: u64 = futures::future::join_all(runs)
        .await
        .iter()
        .map(|one| {
            let totals = &one["totals"];
            assert_eq!(totals["added"].as_u64().zip(totals["unchanged"].as_u64()).map(|(a, b)| a + b), Some(200));
            totals["added"].as_u64().unwrap_or_default()
        })
        .sum();
    assert_eq!(added, 200);
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn without_room_all_or_nothing_is_stored() {
    let home = Home::new();
    home.out(&["new", "Before", "--to", "database"]).await;
    for n in 0..200 {
        home.write(&format!("lib/a{n}.md"), &format!("{}{}", assistant(&format!("a{n}"), ""), "more ".repeat(2_000)));
    }
    // A limit on the size of files stands for a full disk: the log of changes may not grow to what it has to.
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -f 1000; exec \"$0\" \"$@\"", HOST, "import", "../lib"]);
    command.current_dir(home.project()).env_clear().env("HOME", home.path()).kill_on_drop(true).stdin(Stdio::null());
    let output = tokio::time::timeout(SOON, command.output()).await.expect("it ends").expect("it runs");
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(1), true), "{err}");
    assert!(err.contains("disk is full") || err.contains("its disk is full"), "{err}");
    home.out(&["export", "--all", "--to", "../out"]).await;
    let files = std::fs::read_dir(home.path().join("out")).expect("a folder");
    assert_eq!(files.count(), 1, "only the one from before");
    assert_eq!(home.json(&["import", "../lib"]).await["totals"]["added"], 200);
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn killed_in_the_middle_all_or_nothing_is_stored() {
    let home = Home::new();
    for n in 0..500 {
        home.write(&format!("lib/a{n}.md"), &assistant(&format!("a{n}"), ""));
    }
    let mut child = home.command(&["import", "../lib"]).spawn().expect("it runs");
    let states = home.path().join(".local/state/assistant-host");
    // The log of changes grows: what is imported is on its way. Where that was too fast to be seen, it is done already.
    until("a change", || {
        let state = std::fs::read_dir(&states).ok()?.flatten().next()?.path();
        let bytes = |name: &str| std::fs::metadata(state.join(name)).map(|file| file.len());
        let grows = bytes("assistant-host.db-wal").is_ok_and(|log| log > 300_000);
        let done = bytes("assistant-host.db").is_ok_and(|file| file > 300_000);
        (grows || done).then_some(())
    });
    child.kill().await.expect("it is killed");
    let there = home.json(&["list"]).await["totals"]["assistants"].as_u64().expect("a number");
    assert!(there == 0 || there == 500, "{there} of 500");
    let again = home.json(&["import", "../lib"]).await["totals"].clone();
    assert_eq!((&again["added"], &again["unchanged"]), (&json!(500 - there), &json!(there)));
}
