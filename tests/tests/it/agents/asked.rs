//! What an agent asks before it calls a tool of its own: the rules answer, else whoever gave it the task.

use super::*;

/// The question that waits for the session's answer.
pub(super) async fn question(client: &Client) -> Value {
    let asked = async {
        loop {
            let pending = client.call("get_pending_questions", json!({})).await;
            if let Some(first) = pending["questions"].as_array().and_then(|all| all.first()) {
                return first.clone();
            }
        }
    };
    tokio::time::timeout(SOON, asked).await.expect("a question")
}

pub(super) async fn answer(client: &Client, asked: &Value, words: &str) {
    let (process, message) = (&asked["process_id"], &asked["message_id"]);
    let arguments = json!({ "process_id": process, "message_id": message, "answer": words });
    client.call("reply_assistant", arguments).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_answer() {
    let (bed, puppets) = bed("tools: [Read, 'Bash(git log:*)']\ndisallowedTools: ['Read(*.key)']");
    let (client, spawned, mut puppet) = begin(&bed, &puppets).await;
    let run = |command: &str| json!({ "command": command });
    for (id, tool, arguments, allowed, why) in [
        ("1", "Bash", run("git log -1"), true, ""),
        ("2", "Bash", run("git push"), false, "`git push` does not match any of: Bash(git log:*)"),
        ("3", "Read", json!({ "file_path": "a.key" }), false, "`Read(*.key)` is denied"),
        ("4", "Read", json!({ "file_path": "a.rs" }), true, ""),
        ("5", "Write", json!({ "file_path": "a.rs" }), false, "it is none of the tools"),
        ("2", "Bash", run("git push"), false, "`git push` does not match"),
        // Another call that has the id of one is judged by itself.
        ("2", "Bash", run("git log"), true, ""),
        ("1", "Bash", run("git push"), false, "`git push` does not match"),
    ] {
        let answered = puppet.may(id, tool, arguments.clone()).result().await;
        assert_eq!(answered["allowed"], allowed, "{id} {tool} {arguments}: {answered}");
        assert!(answered["reason"].as_str().unwrap_or_default().contains(why), "{id} {tool}: {answered}");
    }
    for (id, tool, arguments) in [("", "Bash", json!({})), ("1", " ", json!({})), ("6", "Bash", json!("ls"))] {
        let refused = puppet.may(id, tool, arguments).outcome().await.expect_err("refused");
        assert_eq!(refused["code"], -32602, "{refused}");
    }
    puppet.ends("done");
    client.end(&spawned).await;
    let told = log(&client, &spawned).await;
    let refused: Vec<&str> =
        told.iter().filter(|(kind, _)| kind == "refused").filter_map(|(_, data)| data["tool"].as_str()).collect();
    assert_eq!(refused, ["Bash", "Read", "Write", "Bash"]);
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn else_the_session_is_asked() {
    let (bed, puppets) = bed("model: sonnet");
    let (client, spawned, mut puppet) = begin(&bed, &puppets).await;
    let first = puppet.may("1", "Bash", json!({ "command": "make" }));
    let again = puppet.may("1", "Bash", json!({ "command": "make" }));
    let asked = question(&client).await;
    let words = asked["question"].as_str().unwrap_or_default().to_owned();
    assert!(
        words.contains("May I call Bash") && words.contains("No rule of my definition") && words.contains("make"),
        "{words}"
    );
    client.until(&spawned, "waiting").await;
    answer(&client, &asked, "yes").await;
    assert_eq!([&first.result().await["allowed"], &again.result().await["allowed"]], [true, true]);
    // For this call only.
    let next = puppet.may("2", "Bash", json!({ "command": "make test" }));
    let asked = question(&client).await;
    answer(&client, &asked, "no, it takes too long").await;
    let refused = next.result().await;
    assert!(
        refused["allowed"] == false && refused["reason"].as_str().unwrap_or_default().contains("takes too long"),
        "{refused}"
    );
    // Nor for another call that has its id.
    let next = puppet.may("1", "Bash", json!({ "command": "make install" }));
    answer(&client, &question(&client).await, "no").await;
    assert_eq!(next.result().await["allowed"], false);
    // Without a rule nothing bounds what `always` would be of: it is not offered, and is a yes to this call.
    assert!(!words.contains("always"), "{words}");
    let next = puppet.may("3", "Bash", json!({ "command": "ls" }));
    answer(&client, &question(&client).await, "always").await;
    assert_eq!(next.result().await["allowed"], true);
    let next = puppet.may("4", "Bash", json!({ "command": "pwd" }));
    answer(&client, &question(&client).await, "no").await;
    assert_eq!(next.result().await["allowed"], false);
    // Another tool is another matter.
    let next = puppet.may("5", "Write", json!({ "file_path": "a" }));
    answer(&client, &question(&client).await, "no").await;
    assert_eq!(next.result().await["allowed"], false);
    // Who is cancelled meanwhile is not answered.
    let open = puppet.may("6", "Edit", json!({ "file_path": "a" }));
    question(&client).await;
    client.call("cancel_assistant", json!({ "process_id": spawned["process_id"] })).await;
    assert_ne!(open.outcome().await.unwrap_or_default()["allowed"], true);
    client.end(&spawned).await;
    let told = log(&client, &spawned).await;
    assert_eq!(told.iter().filter(|(kind, _)| kind == "refused").count(), 4, "{told:#?}");
    client.host.close().await;
}

/// A parent answers only for what it may call itself: else the session is asked.
#[tokio::test(flavor = "multi_thread")]
async fn a_parent_answers_for_what_it_may_do_itself() {
    let (bed, puppets) = bed("tools: [Agent, Read]\naskTools: [Bash]\nallowed_callers: ['*']");
    let (client, spawned, mut parent) = begin(&bed, &puppets).await;
    let child = parent.uses("spawn_assistant", json!({ "assistant_id": "a", "query": "below" })).await;
    assert!(child["process_id"].is_string(), "{child}");
    let mut puppet = puppets.next().await;
    let asked = puppet.may("1", "frobnicate", json!({}));
    let question = question(&client).await;
    assert_eq!(question["process_id"], child["process_id"], "{question}");
    answer(&client, &question, "ok").await;
    assert_eq!(asked.result().await["allowed"], true);
    puppet.ends("below");
    parent.ends("done");
    while parent.is_run_again().await {
        parent.ends("done");
    }
    client.end(&spawned).await;
    client.host.close().await;
}

/// What comes with a project's files runs nothing that its user has not allowed.
#[tokio::test(flavor = "multi_thread")]
async fn a_definition_that_is_not_trusted_gets_what_only_looks() {
    let (bed, puppets) = bed("tools: [Read, Bash, Edit, mcp__x__y]");
    let client = bed.open().await;
    let spawned = client.spawn("a", "do it").await;
    let lacks: Vec<&str> =
        spawned["unavailable_tools"].as_array().into_iter().flatten().filter_map(|one| one["tool"].as_str()).collect();
    assert!(lacks.contains(&"agent tools (Bash, Edit, mcp__x__y)"), "{spawned}");
    let mut puppet = puppets.next().await;
    assert_eq!((&puppet.run["agent"]["tools"], &puppet.run["agent"]["readonly"]), (&json!(["Read"]), &json!(true)));
    let prompt = puppet.run["assistant"]["system_prompt"].as_str().unwrap_or_default();
    assert!(prompt.contains("agent tools (Bash, Edit, mcp__x__y)"), "{prompt}");
    let refused = puppet.may("1", "Bash", json!({ "command": "ls" })).result().await;
    assert!(
        refused["allowed"] == false && refused["reason"].as_str().unwrap_or_default().contains("read-only"),
        "{refused}"
    );
    assert_eq!(puppet.may("2", "Read", json!({ "file_path": "a" })).result().await["allowed"], true);
    puppet.ends("done");
    client.end(&spawned).await;
    bed.trust_all(&client.host).await;
    let spawned = client.spawn("a", "do it").await;
    let mut puppet = puppets.next().await;
    assert!(puppet.run["agent"]["readonly"].is_null(), "{}", puppet.run);
    assert_eq!(puppet.may("1", "Bash", json!({ "command": "ls" })).result().await["allowed"], true);
    puppet.ends("done");
    client.end(&spawned).await;
    client.host.close().await;
}

/// What an agent has itself is no less a right than what the host has.
#[tokio::test(flavor = "multi_thread")]
async fn who_spawns_an_agent_holds_its_tools() {
    let (bed, puppets) = bed("tools: [Agent, Read]");
    let more = "---\nname: more\ndescription: d\ntools: [Read, Bash]\nrunner: claude\n---\nYou are more.\n";
    std::fs::write(bed.dir.path().join("assistants/more.md"), more).expect("a file");
    let (client, spawned, mut parent) = begin(&bed, &puppets).await;
    let refused = parent.uses("spawn_assistant", json!({ "assistant_id": "more", "query": "x" })).await;
    assert!(
        refused["code"] == "caller_not_allowed" && refused["message"].as_str().unwrap_or_default().contains("Bash"),
        "{refused}"
    );
    parent.ends("done");
    client.end(&spawned).await;
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_being_cancelled_is_not_answered() {
    let (bed, puppets) = bed("tools: [ask_parent]");
    let (client, spawned, mut puppet) = begin(&bed, &puppets).await;
    let asked = puppet.uses("ask_parent", json!({ "question": "red or blue?", "wait_ms": 0 })).await;
    assert_eq!(asked["state"], "pending", "{asked}");
    client.call("cancel_assistant", json!({ "process_id": spawned["process_id"] })).await;
    let answer = json!({ "process_id": spawned["process_id"], "answer": "blue" });
    let told = client.refused("reply_assistant", answer).await;
    assert_eq!(told, "process_ended");
    puppet.dies();
    client.end(&spawned).await;
    client.host.close().await;
}
