//! Document 002: who calls whom, and how deep.

use assistant_host::caller::Within;
use assistant_host::tools::profile::Profile;
use serde_json::json;

use crate::documents::{Walk, call};

/// Subagents call no other ones, unless those name them; the rule crosses hosts.
#[tokio::test(flavor = "multi_thread")]
async fn row_2_7_no_nesting_unless_allowed() {
    const SPAWNING: &str = "spawn_assistant, wait_assistant, ask_parent, check_answer";
    let file = |name: &str, callers: &str| {
        let text = format!("---\nname: {name}\ndescription: d\ntools: [{SPAWNING}]\n{callers}---\nYou are {name}.\n");
        (format!("{name}.md"), text)
    };
    let files = [
        file("outer", ""),
        file("plain", ""),
        file("everyone", "allowed_callers: ['*']\n"),
        file("named", "allowed_callers: [main, outer]\n"),
        file("next", "allowed_callers: [named]\n"),
        file("last", "allowed_callers: [next]\n"),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let walk = Walk::with(&files, |_| {}).await;
    let (_, mut outer) = walk.starts("outer").await;
    let spawn = |name: &str| json!({ "assistant_id": name, "query": "x" });
    for name in ["plain", "everyone", "outer"] {
        let refused = outer.uses("spawn_assistant", spawn(name)).await;
        assert_eq!(refused["code"], "limit_depth", "{name}: {refused}");
    }
    let refused = outer.uses("spawn_assistant", spawn("next")).await;
    assert_eq!(refused["code"], "caller_not_allowed", "{refused}");
    assert!(outer.uses("spawn_assistant", spawn("named")).await["process_id"].is_string());
    let mut named = walk.next().await;
    assert_eq!(named.uses("spawn_assistant", spawn("plain")).await["code"], "limit_depth");
    assert!(named.uses("spawn_assistant", spawn("next")).await["process_id"].is_string());
    // No deeper than anywhere, whoever is named.
    let mut next = walk.next().await;
    assert_eq!(next.uses("spawn_assistant", spawn("last")).await["code"], "limit_depth");
    // A client that is a subagent itself, of this host or another one, is as deep as they are.
    let within = Within { level: 1, process: None };
    let below = walk.host.open_session_with("local", "main", within, &Profile::Subagents).await.expect("a session");
    let below = walk.host.connect_session(below).await.expect("a client");
    for tool in ["run_subagent_plain", "run_subagent_named"] {
        assert_eq!(crate::documents::refused(&below, tool, json!({ "prompt": "x" })).await.0, "limit_depth");
    }
    below.cancel().await.expect("it ends");
    walk.close().await;
}

/// The rule is one of this profile: the same assistants nest for the host's own tools.
#[tokio::test(flavor = "multi_thread")]
async fn row_2_7_the_depth_is_the_profiles_and_configurable() {
    let spawning = "spawn_assistant, ask_parent, check_answer";
    let walk = Walk::new(&[("outer", spawning), ("plain", "")], |_| {}).await;
    let own = walk.host.connect_in_process("local").await.expect("a client");
    call(&own, "spawn_assistant", json!({ "assistant_id": "outer", "query": "go" })).await;
    let mut outer = walk.next().await;
    assert!(
        outer.uses("spawn_assistant", json!({ "assistant_id": "plain", "query": "x" })).await["process_id"].is_string()
    );
    // Neither has it the other one's tools.
    let names: Vec<&str> =
        outer.run["tools"].as_array().expect("a list").iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["ask_parent", "check_answer", "spawn_assistant"]);
    own.cancel().await.expect("it ends");
    walk.close().await;

    let walk = Walk::new(&[("outer", spawning), ("plain", "")], |bed| bed.limits.subagents_depth = 2).await;
    let (_, mut outer) = walk.starts("outer").await;
    assert!(
        outer.uses("spawn_assistant", json!({ "assistant_id": "plain", "query": "x" })).await["process_id"].is_string()
    );
    walk.close().await;
}
