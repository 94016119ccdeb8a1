//! An agent goes on with its own session; another runner with the conversation.

use super::*;

async fn resume(client: &Client, old: &Value, more: Value) -> Value {
    let mut arguments = json!({ "resume_process_id": old["process_id"], "query": "and now?" });
    for (key, value) in more.as_object().into_iter().flatten() {
        arguments[key] = value.clone();
    }
    client.call("spawn_assistant", arguments).await
}

#[tokio::test(flavor = "multi_thread")]
async fn by_its_session() {
    let (bed, puppets) = bed("tools: [Bash]");
    let (client, first, mut puppet) = begin(&bed, &puppets).await;
    assert!(puppet.run["agent"]["session"].is_null());
    for event in [json!({ "type": "session", "session_id": "s-1" }), text("said")] {
        puppet.tells(event).await.expect("told");
    }
    puppet.dies();
    client.end(&first).await;
    let second = resume(&client, &first, json!({})).await;
    let puppet = puppets.next().await;
    assert_eq!((&puppet.run["agent"]["session"], &puppet.run["query"]), (&json!("s-1"), &json!("and now?")));
    assert!(puppet.run["history"].is_null(), "{}", puppet.run);
    // Whoever dies before it tells its session had that one.
    puppet.dies();
    client.end(&second).await;
    let third = resume(&client, &second, json!({ "query": "" })).await;
    let mut puppet = puppets.next().await;
    assert_eq!(puppet.run["agent"]["session"], "s-1");
    assert!(puppet.run["query"].as_str().is_some_and(|query| !query.is_empty()), "{}", puppet.run);
    puppet.tells(json!({ "type": "session", "session_id": "s-2" })).await.expect("told");
    puppet.ends("done");
    client.end(&third).await;
    // A new host knows it too.
    client.host.close().await;
    drop(client);
    let client = bed.open().await;
    let fourth = resume(&client, &third, json!({})).await;
    let mut puppet = puppets.next().await;
    assert_eq!(puppet.run["agent"]["session"], "s-2");
    puppet.ends("done");
    client.end(&fourth).await;
    client.host.close().await;
}

/// Agents keep their sessions by the folder that they work in: in another one they begin anew, with the conversation as text.
#[tokio::test(flavor = "multi_thread")]
async fn in_the_folder_that_it_had() {
    let (bed, puppets) = bed("tools: [Bash]");
    let sub = bed.project().join("sub");
    std::fs::create_dir_all(&sub).expect("made");
    let client = bed.open().await;
    bed.trust_all(&client.host).await;
    let spawn = json!({ "assistant_id": "a", "query": "do it", "working_dir": "sub" });
    let first = client.call("spawn_assistant", spawn).await;
    let end = async |spawned: &Value, folder: &std::path::Path, goes_on_by: &str| {
        let mut puppet = puppets.next().await;
        let has = (puppet.run["agent"]["session"].is_string(), puppet.run["history"].is_array());
        assert_eq!(has, (goes_on_by == "session", goes_on_by == "text"), "{}", puppet.run);
        puppet.tells(json!({ "type": "session", "session_id": "s-1" })).await.expect("told");
        let works = puppet.run["agent"]["working_dir"].as_str().map(std::path::PathBuf::from).expect("a folder");
        assert_eq!(works.canonicalize().expect("there"), folder.canonicalize().expect("there"));
        puppet.ends("done");
        client.end(spawned).await;
    };
    end(&first, &sub, "nothing").await;
    let second = resume(&client, &first, json!({})).await;
    end(&second, &sub, "session").await;
    let third = resume(&client, &second, json!({ "working_dir": "." })).await;
    end(&third, &bed.project(), "text").await;
    // One that is gone is none to go on in.
    let fourth = resume(&client, &third, json!({ "working_dir": "sub" })).await;
    end(&fourth, &sub, "text").await;
    std::fs::remove_dir(&sub).expect("removed");
    let fifth = resume(&client, &fourth, json!({})).await;
    end(&fifth, &bed.project(), "text").await;
    client.host.close().await;
}

/// One that was not launched loses nothing of those before it.
#[tokio::test(flavor = "multi_thread")]
async fn behind_one_that_was_not_launched() {
    let (mut bed, puppets) = bed("tools: [Bash]");
    let (client, first, mut puppet) = begin(&bed, &puppets).await;
    puppet.tells(json!({ "type": "session", "session_id": "s-1" })).await.expect("told");
    puppet.ends("done");
    client.end(&first).await;
    client.host.close().await;
    drop(client);
    let program = std::mem::replace(&mut bed.runner.program, "/nowhere/runner".into());
    let client = bed.open().await;
    let second = resume(&client, &first, json!({})).await;
    assert_eq!(client.end(&second).await["reason"], "launch_failed");
    client.host.close().await;
    drop(client);
    bed.runner.program = program;
    let client = bed.open().await;
    let third = resume(&client, &second, json!({})).await;
    let mut puppet = puppets.next().await;
    assert_eq!(puppet.run["agent"]["session"], "s-1", "{}", puppet.run);
    puppet.ends("done");
    client.end(&third).await;
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn by_another_runner_with_the_conversation() {
    let (bed, puppets) = bed("tools: [Bash]");
    let (client, first, mut puppet) = begin(&bed, &puppets).await;
    for event in [
        json!({ "type": "session", "session_id": "s-1" }),
        text("I look."),
        call("c1", "Bash", json!({ "command": "ls" })),
        call("c2", "Bash", json!({ "command": "pwd" })),
        result("c1", "a.txt"),
        usage(1, 1, 1),
    ] {
        puppet.tells(event).await.expect("told");
    }
    puppet.dies();
    client.end(&first).await;
    let second = resume(&client, &first, json!({ "runner": "assistant-runner" })).await;
    assert_eq!(second["model"]["used"], "scripted", "{second}");
    let mut puppet = puppets.next().await;
    let called = |id: &str, command: &str| call(id, "Bash", json!({ "command": command }));
    let history = puppet.run["history"].as_array().cloned().unwrap_or_default();
    assert_eq!(history.len(), 4, "{history:#?}");
    assert_eq!(history[0], json!({ "role": "user", "content": "do it" }));
    assert_eq!(history[1]["content"], json!([text("I look."), called("c1", "ls"), called("c2", "pwd")]));
    assert_eq!(
        (&history[2]["content"][0]["call_id"], &history[3]["content"][0]["call_id"]),
        (&json!("c1"), &json!("c2"))
    );
    assert!(history[3].to_string().contains("interrupted"), "{history:#?}");
    puppet.ends("done");
    client.end(&second).await;
    // And back again, with what was said there.
    let third = resume(&client, &second, json!({ "runner": "claude" })).await;
    let mut puppet = puppets.next().await;
    assert!(puppet.run["agent"]["session"].is_null() && puppet.run["history"].is_array(), "{}", puppet.run);
    puppet.ends("done");
    client.end(&third).await;
    client.host.close().await;
}

/// Messages come to it as to any runner that takes them, and it is run again for those that came late.
#[tokio::test(flavor = "multi_thread")]
async fn messages_reach_it_and_it_is_run_again_with_its_session() {
    let (bed, puppets) = bed("tools: [Agent]\nallowed_callers: ['*']");
    let (client, spawned, mut parent) = begin(&bed, &puppets).await;
    parent.tells(json!({ "type": "session", "session_id": "s-1" })).await.expect("told");
    let child = parent.uses("spawn_assistant", json!({ "assistant_id": "a", "query": "below" })).await;
    assert!(child["process_id"].is_string(), "{child}");
    let mut puppet = puppets.next().await;
    parent.ends("it is at work");
    puppet.ends("the result");
    assert!(parent.is_run_again().await, "for the end of its child");
    parent.ends("all done");
    let seen = client.end(&spawned).await;
    assert_eq!(seen["status"], "finished", "{seen}");
    assert_eq!(client.mail(&spawned).await.pop().as_deref(), Some("all done"));
    client.host.close().await;
}
