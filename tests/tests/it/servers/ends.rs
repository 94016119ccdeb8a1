//! How servers end, and come back.

use assistant_host::events::Kind;
use assistant_host::limits::Limits;
use conformance::doors::{Doors, signal};
use serde_json::{Value, json};

use super::{Served, calls, definition, events, living, server, until};
use crate::{HOST, SERVER};

/// A place that `s__place` tells: the id of the process.
fn pid(place: &str) -> i64 {
    place.split(' ').next().and_then(|pid| pid.parse().ok()).unwrap_or_else(|| panic!("no place: {place}"))
}

#[tokio::test]
async fn one_that_is_killed_comes_back() {
    let served = Served::one(&["honest"], &[("s__place", json!({}))]).await;
    let first = pid(&served.run("a").await);
    signal("9", first);
    let second = pid(&served.run("a").await);
    assert_ne!(first, second);
    assert_eq!(served.servers(), [u32::try_from(second).expect("an id")]);
}

#[tokio::test]
async fn one_that_dies_in_a_call_hurts_only_that_call() {
    let steps = calls(&[("s__die", json!({})), ("s__echo", json!({ "text": "again" }))]);
    let served = Served::new(&[definition("a", &server(&["honest"], ""))], &[("a", steps)], Limits::default()).await;
    let spawned = served.client.spawn("a", "go").await;
    served.client.end(&spawned).await;
    assert_eq!(served.client.mail(&spawned).await, ["again"]);
    let told = events(served.host(), &spawned, Kind::Server).await;
    let what = told[0]["what"].as_str().unwrap_or_default();
    assert!(
        what.contains("ended before it answered") && what.contains("exited with 7") && what.contains("I die of this"),
        "{what}"
    );
}

#[tokio::test]
async fn one_that_does_not_start_is_told_with_its_words_and_tried_later() {
    let flag = tempfile::tempdir().expect("a folder");
    let file = flag.path().join("today");
    let name = file.display().to_string();
    let steps = [("a", json!([{ "text": "{{system}}" }])), ("b", calls(&[("s__echo", json!({ "text": "now" }))]))];
    let assistants = [definition("a", &server(&["once", &name], "")), definition("b", &server(&["once", &name], ""))];
    let served = Served::new(&assistants, &steps, Limits::default()).await;
    let (prompt, told) = served.told("a").await;
    assert!(prompt.contains("not available in this run: server s"), "{prompt}");
    assert!(told.contains("exited with 4") && told.contains("not today"), "{told}");
    assert!(served.servers().is_empty());
    // Now that it is known, whoever spawns is told.
    let lacks = served.client.spawn("a", "go").await["unavailable_tools"].to_string();
    assert!(lacks.contains("server s") && lacks.contains("not today"), "{lacks}");
    std::fs::write(&file, "").expect("a file");
    // It waits as long as the backoff says.
    assert_eq!(served.run("b").await, "now");
}

#[tokio::test]
async fn one_that_never_starts_is_put_off() {
    let served = Served::new(
        &[definition("a", &server(&["dies"], ""))],
        &[("a", json!([{ "text": "{{system}}" }]))],
        Limits::default(),
    )
    .await;
    let mut told = String::new();
    for _ in 0..8 {
        told = served.told("a").await.1;
        assert!(told.contains("there is no table `orders`"), "{told}");
        if told.contains("in a row, the next is in") {
            return;
        }
    }
    panic!("each start is waited for: {told}");
}

/// A call whose time goes by before the server is started again is not told that the server was asked.
#[tokio::test]
async fn one_that_has_died_is_told_so_while_its_next_start_is_put_off() {
    let steps = calls(&[("s__die", json!({})), ("s__echo", json!({ "text": "never" }))]);
    let assistants = [definition("a", &server(&["honest"], ", timeoutMs: 250"))];
    let served = Served::new(&assistants, &[("a", steps)], Limits::default()).await;
    let (_, told) = served.told("a").await;
    let want = "the server `s` died soon after its start, without an answer to a call; that was start 1 in a row, the next is in ";
    assert!(told.contains(want) && told.contains(" ms; nothing of the call was sent"), "{told}");
    assert!(!told.contains("did not answer within"), "{told}");
}

/// After some deaths nobody waits for the next start.
#[tokio::test]
async fn one_that_dies_of_each_call_is_put_off_and_told_at_once() {
    let calls = calls(&vec![("s__die", json!({})); 6]);
    let served = Served::new(&[definition("a", &server(&["honest"], ""))], &[("a", calls)], Limits::default()).await;
    let (_, told) = served.told("a").await;
    assert!(told.contains("died soon after its start") && told.contains("start 5 in a row, the next is in"), "{told}");
}

#[tokio::test]
async fn one_that_nobody_uses_ends() {
    let limits = Limits { server_idle_ms: 300, ..Limits::default() };
    let served = Served::with(&["honest"], &[("s__place", json!({}))], limits).await;
    let first = served.run("a").await;
    until("it ends", || served.servers().is_empty()).await;
    assert_ne!(first, served.run("a").await);
}

#[tokio::test]
async fn nothing_is_left_when_the_host_closes() {
    for mode in ["honest", "deaf"] {
        let limits = Limits { server_start_ms: if mode == "deaf" { 500 } else { 60_000 }, ..Limits::default() };
        let served = Served::with(&[mode], &[("s__place", json!({}))], limits).await;
        let spawned = served.client.spawn("a", "go").await;
        until("it runs", || served.servers().len() == 1).await;
        if mode == "honest" {
            served.client.end(&spawned).await;
        }
        served.host().close().await;
        assert!(served.servers().is_empty(), "{mode}");
    }
}

/// A background host whose assistant `uses` has a server in a mode, which it waits for without an end.
fn doors(mode: &str, tool: &str) -> Doors {
    let doors = Doors::new(HOST, &format!("[mcp_servers.s]\ncommand = {}\nargs = [{}]\n", json!(SERVER), json!(mode)));
    let home = doors.dir.path().join(".config/assistant-host/assistants");
    std::fs::create_dir_all(&home).expect("a folder");
    let text = "---\nname: uses\ndescription: It uses a server.\nmcpServers: [s]\n---\nYou are uses.\n";
    std::fs::write(doors.dir.path().join("assistants/uses.md"), text).expect("a file");
    let mut script: Value =
        serde_json::from_str(&std::fs::read_to_string(doors.dir.path().join("script.json")).expect("a file"))
            .expect("JSON");
    let steps = json!([{ "tool_calls": [{ "tool_name": tool, "arguments": { "text": "note" } }] }, { "text": "done" }]);
    let one = json!({ "when": { "system": "You are uses." }, "steps": steps });
    script["assistants"].as_array_mut().expect("a list").insert(0, one);
    std::fs::write(doors.dir.path().join("script.json"), script.to_string()).expect("a file");
    let (code, out, talk) = doors.run(&["trust", "uses"]);
    assert_eq!(code, Some(0), "{out}{talk}");
    doors
}

#[test]
fn a_server_does_not_outlive_a_killed_host() {
    let doors = doors("honest", "s__wait");
    assert_eq!(doors.run(&["spawn", "--assistant", "uses", "go"]).0, Some(0));
    conformance::doors::until("it runs", || (living(doors.state()).len() == 1).then_some(()));
    signal("9", doors.host_pid().expect("a host").into());
    conformance::doors::until("its pipe is closed", || living(doors.state()).is_empty().then_some(()));
}

#[test]
fn one_that_does_not_hear_the_end_is_ended_by_the_next_host() {
    let doors = doors("deaf", "s__wait");
    assert_eq!(doors.run(&["spawn", "--assistant", "uses", "go"]).0, Some(0));
    conformance::doors::until("it runs", || (living(doors.state()).len() == 1).then_some(()));
    let before = living(doors.state());
    signal("9", doors.host_pid().expect("a host").into());
    conformance::doors::until("the host has gone", || {
        doors.host_pid().is_none_or(|pid| !conformance::processes::all().contains(&pid)).then_some(())
    });
    assert_eq!(living(doors.state()), before, "it is deaf");
    assert_eq!(doors.run(&["spawn", "--assistant", "quick", "go"]).0, Some(0), "another host");
    conformance::doors::until("it is ended", || living(doors.state()).is_empty().then_some(()));
}

#[test]
fn configured_servers_are_told() {
    let doors = doors("honest", "s__echo");
    let (code, out, talk) = doors.run(&["tools", "--servers", "--json"]);
    assert_eq!(code, Some(0), "{talk}");
    let told: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(told["servers"][0]["tools"][2]["name"], "s__echo", "{told}");
    assert_eq!(told["servers"][0]["tools"][2]["read_only"], true, "{told}");
    let (code, out, _) = doors.run(&["doctor", "--json"]);
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["servers"][0]["tools"].as_array().map(Vec::len), Some(9), "{report}");
    assert!(living(doors.state().join("tried")).is_empty(), "they are ended");
    doors.configure(&format!("[mcp_servers.s]\ncommand = {}\nargs = [\"dies\"]\n", json!(SERVER)));
    let (code, _, talk) = doors.run(&["tools", "--servers"]);
    assert!(code != Some(0) && talk.contains("there is no table `orders`"), "{talk}");
    let (code, out, _) = doors.run(&["doctor"]);
    assert!(code != Some(0) && out.contains("exited with 3") && out.contains("there is no table `orders`"), "{out}");
    doors.configure("[mcp_servers.s]\ncommand = \"no-such-program\"\n");
    let (_, _, talk) = doors.run(&["tools", "--servers"]);
    assert!(talk.contains("cannot start no-such-program: there is no such program"), "{talk}");
}

#[test]
fn a_server_is_not_given_the_keys_of_its_host() {
    let doors = doors("honest", "s__env");
    let mut spawn = doors.command(&["spawn", "--json", "--wait", "--assistant", "uses", "go"]);
    let ran = spawn.env("OPENAI_API_KEY", "sk-secret").env("PATH", "/usr/bin:/bin").output().expect("it runs");
    assert!(ran.status.success(), "{ran:?}");
    let [pid] = living(doors.state())[..] else { panic!("no server, or several") };
    let environment = std::fs::read(format!("/proc/{pid}/environ")).expect("its variables");
    let environment = String::from_utf8_lossy(&environment);
    assert!(environment.contains("PATH=/usr/bin:/bin") && environment.contains("HOME="), "{environment}");
    assert!(!environment.contains("sk-secret"), "{environment}");
}
