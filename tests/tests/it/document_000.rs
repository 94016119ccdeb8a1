//! Document 000, "Bi-Directional Communication for MCP Subagent Server", row by row: its tools, its states, its testing
//! strategy, its edge cases.

use serde_json::{Value, json};

use crate::documents::{Home, TALKING, Walk, call, is_iso, offered, until};

mod states;

fn tool(name: &str, arguments: Value) -> Value {
    json!({ "tool_name": name, "arguments": arguments })
}

/// The messages of a run, each as its status and its answer.
fn messages(seen: &Value) -> Vec<(String, Value)> {
    let one =
        |told: &Value| (told["messageStatus"].as_str().unwrap_or_default().to_owned(), told["answerContent"].clone());
    seen["messages"].as_array().expect("a list").iter().map(one).collect()
}

fn has(status: &str, answer: Value) -> (String, Value) {
    (status.to_owned(), answer)
}

/// The document from its beginning to its end, over the program's own pipe: a subagent on a script, a real client.
#[tokio::test(flavor = "multi_thread")]
async fn the_usage_over_the_pipe() {
    let steps = json!([
        { "text": "I ask.", "tool_calls": [tool("ask_parent", json!({ "runId": "{{id_after.runId}}", "question": "red or blue?" }))] },
        { "text": "I have asked as {{ask_parent.messageId}}: {{ask_parent.instructions}}", "tool_calls": [
            tool("check_answer", json!({ "message_id": "{{ask_parent.messageId}}", "wait_ms": 60_000 })),
        ] },
        { "tool_calls": [tool("update_status", json!({ "runId": "{{id_after.runId}}", "status": "completed", "summary": "painted" }))] },
        { "text": "painted {{check_answer.answer}}" },
    ]);
    let painter = "---\nname: painter\ndescription: Paints.\n---\nYou are painter.\n";
    let home = Home::new(&[("agents/painter/agent.md", painter)], &[("painter", steps)]);
    let parent = home.parent().await;
    assert_eq!(
        offered(&parent).await,
        [
            "check_status",
            "get_logs",
            "get_pending_questions",
            "reply_subagent",
            "run_subagent",
            "run_subagent_painter",
            "update_status",
        ]
    );
    let cwd = home.dir.path().join("project").canonicalize().expect("there").display().to_string();
    let started = call(&parent, "run_subagent_painter", json!({ "cwd": cwd, "prompt": "paint" })).await;
    let run = &started["runId"];
    let asked = until(&parent, run, "waiting_parent_reply").await;
    let message = &asked["messages"][0];
    assert_eq!(
        (&message["questionContent"], &message["messageStatus"]),
        (&json!("red or blue?"), &json!("pending_parent_reply"))
    );
    let reply = json!({ "runId": run, "messageId": message["messageId"], "answer": "blue" });
    let replied = call(&parent, "reply_subagent", reply).await;
    assert_eq!((&replied["success"], &replied["message"]), (&json!(true), &json!("Reply successfully recorded.")));
    let ended = until(&parent, run, "completed").await;
    assert_eq!((&ended["result"], &ended["summary"]), (&json!("painted blue"), &json!("painted")));
    assert_eq!(messages(&ended), [has("acknowledged_by_subagent", json!("blue"))]);
    let logs = call(&parent, "get_logs", json!({ "runId": run })).await;
    let logs = logs["logs"].as_str().expect("a text");
    let told = [
        "calls ask_parent",
        "question: painter to main",
        "answer: main to painter",
        "reports completed: painted",
        "status: finished",
    ];
    for line in told {
        assert!(logs.contains(line), "no `{line}` in\n{logs}");
    }
    parent.cancel().await.expect("it ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn row_0_1_run_subagent_name() {
    let walk = Walk::new(&[("helper", TALKING), ("web-search", TALKING)], |_| {}).await;
    std::fs::create_dir(walk.bed.project().join("inner")).expect("a folder");
    let inner = walk.bed.project().join("inner").canonicalize().expect("there");
    // Asynchronous: it returns while the run has not begun to work.
    let started = walk.call("run_subagent_helper", json!({ "cwd": inner, "prompt": "go" })).await;
    assert_eq!((&started["status"], &started["agentName"]), (&json!("running"), &json!("helper")), "{started}");
    let puppet = walk.next().await;
    assert_eq!(puppet.run["query"], "go");
    let stored = walk.stored("SELECT working_dir FROM assistant_processes WHERE process_id = ?1", &started["runId"]);
    assert_eq!(stored, inner.display().to_string());
    // The earlier word for the task, and both spellings of a name.
    for name in ["run_subagent_web-search", "run_subagent_web_search"] {
        walk.call(name, json!({ "input": "find" })).await;
        assert_eq!(walk.next().await.run["query"], "find");
    }
    let refusals = [
        ("run_subagent_helper", json!({}), "bad_argument", "`prompt` is missing"),
        ("run_subagent_helper", json!({ "prompt": " " }), "bad_argument", "`prompt` is empty"),
        ("run_subagent_helper", json!({ "prompt": 7 }), "bad_argument", "`prompt` is 7, and has to be of type string"),
        ("run_subagent_helper", json!({ "prompt": "a", "input": "b" }), "bad_argument", "are both given"),
        (
            "run_subagent_helper",
            json!({ "prompt": "a", "agent_name": "web-search" }),
            "bad_argument",
            "no argument `agent_name`",
        ),
        (
            "run_subagent_helper",
            json!({ "prompt": "a", "cwd": "/" }),
            "bad_argument",
            "lies outside of the project folder",
        ),
        (
            "run_subagent_helper",
            json!({ "prompt": "a", "cwd": "../.." }),
            "bad_argument",
            "lies outside of the project folder",
        ),
        ("run_subagent_helper", json!({ "prompt": "x".repeat(2 << 20) }), "bad_argument", "`prompt` has 2097152 bytes"),
        ("run_subagent_helpr", json!({ "prompt": "a" }), "unknown_assistant", "no assistant has the id `helpr`"),
    ];
    for (tool, arguments, code, message) in refusals {
        let (got, words) = walk.refused(tool, arguments).await;
        assert!(got == code && words.contains(message), "{tool}: {got}: {words}");
    }
    walk.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_0_2_check_status() {
    let walk = Walk::new(&[("helper", TALKING), ("other", TALKING)], |_| {}).await;
    let (run, mut puppet) = walk.starts("helper").await;
    let seen = until(&walk.parent, &run, "running").await;
    assert_eq!((&seen["agentName"], &seen["messages"], &seen["runId"]), (&json!("helper"), &json!([]), &run));
    assert!(is_iso(&seen["startTime"]) && seen.get("endTime").is_none(), "{seen}");
    let asked = puppet.uses("ask_parent", json!({ "question": "which?" })).await;
    let seen = walk.status(&run).await;
    let message = &seen["messages"][0];
    assert_eq!(seen["status"], "waiting_parent_reply");
    assert_eq!(message["messageId"], asked["messageId"]);
    assert_eq!(
        (&message["questionContent"], &message["messageStatus"]),
        (&json!("which?"), &json!("pending_parent_reply"))
    );
    assert!(is_iso(&message["questionTimestamp"]) && message.get("answerContent").is_none(), "{message}");
    let instructions = seen["instructions"].as_str().expect("a text");
    assert!(instructions.contains("reply_subagent {runId, messageId, answer}"), "{instructions}");
    walk.call("reply_subagent", json!({ "runId": run, "messageId": asked["messageId"], "answer": "this" })).await;
    let replied = walk.status(&run).await;
    let message = &replied["messages"][0];
    assert_eq!((&replied["status"], &message["answerContent"]), (&json!("parent_replied"), &json!("this")));
    assert!(is_iso(&message["answerTimestamp"]), "{message}");
    // By the names of earlier times, which are not listed.
    let names = ["check_subagent_status", "check_subagent_helper_status", "check_status"];
    for name in names {
        assert_eq!(walk.call(name, json!({ "run_id": run })).await, replied, "{name}");
    }
    let one = walk.call("check_message_status", json!({ "runId": run, "messageId": asked["messageId"] })).await;
    assert_eq!((&one["messageStatus"], &one["hasAnswer"]), (&json!("parent_replied"), &json!(true)));
    let offered = offered(&walk.parent).await;
    assert!(!offered.iter().any(|name| name.contains("_status") && name.contains("check_subagent")), "{offered:?}");
    let (code, words) = walk.refused("check_subagent_other_status", json!({ "runId": run })).await;
    assert!(code == "bad_argument" && words.contains("is one of `helper`, not of `other`"), "{code}: {words}");
    walk.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_0_3_get_logs() {
    let walk = Walk::new(&[("helper", TALKING)], |_| {}).await;
    let (run, mut puppet) = walk.starts("helper").await;
    puppet.uses("update_status", json!({ "status": "running", "summary": "half\nway" })).await;
    puppet.ends("all done");
    until(&walk.parent, &run, "success").await;
    let logs = walk.call("get_logs", json!({ "runId": run })).await;
    let text = logs["logs"].as_str().expect("a text");
    for line in text.lines() {
        let time = line.split(' ').next().unwrap_or_default();
        assert!(is_iso(&json!(time)), "{line}");
    }
    assert!(text.contains("calls update_status") && text.contains("reports running: half way"), "{text}");
    for name in ["get_subagent_logs", "get_subagent_helper_logs"] {
        assert_eq!(walk.call(name, json!({ "runId": run })).await, logs, "{name}");
    }
    // Nothing is left behind the end, and the place is one to go on from.
    let rest = walk.call("get_logs", json!({ "runId": run, "cursor": logs["nextCursor"] })).await;
    assert_eq!((&rest["logs"], &rest["more"]), (&json!(""), &json!(false)));
    let (code, _) = walk.refused("get_logs", json!({ "runId": run, "cursor": "x" })).await;
    assert_eq!(code, "bad_argument");
    walk.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_0_4_update_status() {
    let walk = Walk::new(&[("helper", TALKING)], |_| {}).await;
    // Each word is recorded, none ends the run.
    let (run, mut puppet) = walk.starts("helper").await;
    for said in ["running", "success", "completed", "error"] {
        let updated = puppet.uses("update_status", json!({ "status": said, "summary": format!("I am {said}") })).await;
        assert_eq!((&updated["success"], &updated["updatedMetadata"]["runId"]), (&json!(true), &run), "{updated}");
        let seen = walk.status(&run).await;
        assert_eq!(
            (&seen["status"], &seen["reported"]["status"], &seen["summary"]),
            (&json!("running"), &json!(said), &json!(format!("I am {said}")))
        );
        assert!(is_iso(&seen["reported"]["timestamp"]), "{seen}");
    }
    // An error that it reports is the reason, however its runner ends.
    puppet.ends("bye");
    let ended = until(&walk.parent, &run, "error").await;
    assert_eq!((&ended["error"], &ended["state"]), (&json!("I am error"), &json!("finished")));
    // What it says of itself is not overwritten by how it ends.
    for (said, status) in [("completed", "completed"), ("success", "success"), ("running", "success")] {
        let (run, mut puppet) = walk.starts("helper").await;
        puppet.uses("update_status", json!({ "runId": run, "status": said })).await;
        puppet.ends("bye");
        until(&walk.parent, &run, status).await;
    }
    // But no word hides that it failed.
    let (run, mut puppet) = walk.starts("helper").await;
    puppet.uses("update_status", json!({ "status": "success" })).await;
    puppet.dies();
    let ended = until(&walk.parent, &run, "error").await;
    assert_eq!((&ended["state"], &ended["reported"]["status"]), (&json!("failed"), &json!("success")));
    // The parent may report too, by the old name; an ended run keeps what it said.
    let (run, mut puppet) = walk.starts("helper").await;
    for name in ["update_subagent_status", "update_subagent_helper_status", "update_status"] {
        let update = json!({ "runId": run, "status": "error", "summary": name });
        let updated = walk.call(name, update).await;
        assert_eq!(updated["updatedMetadata"]["reported"]["summary"], name);
    }
    puppet.ends("bye");
    until(&walk.parent, &run, "error").await;
    let refusals = [
        (json!({ "runId": run, "status": "success" }), "process_ended"),
        (json!({ "runId": run, "status": "done" }), "bad_argument"),
        (json!({ "runId": run }), "bad_argument"),
        (json!({ "status": "success" }), "bad_argument"),
        (json!({ "runId": run, "status": "success", "summary": "x".repeat(65 * 1024) }), "bad_argument"),
    ];
    for (arguments, code) in refusals {
        assert_eq!(walk.refused("update_status", arguments).await.0, code);
    }
    // Nobody reports on the run of another one.
    let (mine, mut one) = walk.starts("helper").await;
    let (theirs, _other) = walk.starts("helper").await;
    let refused = one.uses("update_status", json!({ "runId": theirs, "status": "error" })).await;
    assert_eq!(refused["code"], "unknown_process", "{mine} {refused}");
    walk.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_0_5_ask_parent() {
    let walk = Walk::new(&[("helper", TALKING), ("silent", "")], |_| {}).await;
    let (run, mut puppet) = walk.starts("helper").await;
    let tools: Vec<&str> =
        puppet.run["tools"].as_array().expect("a list").iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(tools, ["ask_parent", "check_answer", "check_status", "update_status"]);
    let prompt = puppet.run["assistant"]["system_prompt"].as_str().expect("a text");
    assert!(prompt.contains(&format!("Your runId is {}.", run.as_str().expect("an id"))), "{prompt}");
    assert!(!prompt.contains("poll_assistant") && prompt.contains("check_answer"), "{prompt}");
    let asked = puppet.uses("ask_parent", json!({ "runId": run, "question": "which?" })).await;
    assert_eq!((&asked["message_id"], &asked["status"]), (&asked["messageId"], &json!("PENDING")));
    let instructions = asked["instructions"].as_str().expect("a text");
    assert!(instructions.contains("check_status") && instructions.contains("check_answer"), "{instructions}");
    // Correct creation of the message.
    let stored = walk.stored(
        "SELECT q.process_id || ' ' || q.state || ' ' || m.content FROM questions q
           JOIN assistant_messages m ON m.id = q.message_id WHERE q.message_id = ?1",
        &asked["messageId"],
    );
    assert_eq!(stored, format!("{} PENDING which?", run.as_str().expect("an id")));
    // The pipe says who asks: an argument does not.
    let (other, _theirs) = walk.starts("helper").await;
    let foreign = puppet.uses("ask_parent", json!({ "runId": other, "question": "which?" })).await;
    assert_eq!(foreign["code"], "not_permitted", "{foreign}");
    let refusals = [
        (json!({ "question": "" }), "bad_argument"),
        (json!({}), "bad_argument"),
        (json!({ "question": ["x"] }), "bad_argument"),
        (json!({ "runId": "../../etc/passwd", "question": "x" }), "bad_argument"),
        (json!({ "question": "x".repeat(2 << 20) }), "limit_message_bytes"),
    ];
    for (arguments, code) in refusals {
        assert_eq!(puppet.uses("ask_parent", arguments).await["code"], code);
    }
    assert_eq!(walk.status(&run).await["messages"].as_array().map(Vec::len), Some(1));
    assert_eq!(walk.status(&other).await["status"], "running");
    // One without a word in its definition has none of these tools.
    let (_, silent) = walk.starts("silent").await;
    assert_eq!(silent.run["tools"].as_array().map(Vec::len).unwrap_or_default(), 0);
    // And they are none of the parent's.
    let (code, _) = walk.refused("ask_parent", json!({ "runId": run, "question": "x" })).await;
    assert_eq!(code, "not_permitted");
    walk.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_0_6_reply_subagent() {
    let walk = Walk::new(&[("helper", TALKING)], |_| {}).await;
    let (run, mut puppet) = walk.starts("helper").await;
    // By the words of this document.
    let asked = puppet.uses("ask_parent", json!({ "question": "one?" })).await;
    let replied =
        walk.call("reply_subagent", json!({ "runId": run, "messageId": asked["messageId"], "answer": "1" })).await;
    let meta = &replied["updatedMetadata"];
    assert_eq!((&replied["success"], &replied["message"]), (&json!(true), &json!("Reply successfully recorded.")));
    assert_eq!(
        (&meta["runId"], &meta["agentName"], &meta["status"]),
        (&run, &json!("helper"), &json!("parent_replied"))
    );
    assert_eq!(messages(meta), [has("parent_replied", json!("1"))]);
    assert!(is_iso(&meta["startTime"]), "{meta}");
    puppet.uses("check_status", json!({})).await;
    // By the words of document 001, and without naming the question.
    puppet.uses("ask_parent", json!({ "question": "two?" })).await;
    walk.call("reply_subagent", json!({ "subagent_id": run, "message": "2" })).await;
    puppet.uses("check_status", json!({})).await;
    puppet.uses("ask_parent", json!({ "question": "three?" })).await;
    walk.call("reply_subagent", json!({ "run_id": run, "answer": "3" })).await;
    assert_eq!(messages(&walk.status(&run).await)[2], has("parent_replied", json!("3")));
    puppet.uses("check_status", json!({})).await;
    // Several wait: the error lists them, and nothing is recorded.
    let four = puppet.uses("ask_parent", json!({ "question": "four?" })).await;
    let five = puppet.uses("ask_parent", json!({ "question": "five?" })).await;
    let (code, words) = walk.refused("reply_subagent", json!({ "runId": run, "answer": "?" })).await;
    assert_eq!(code, "bad_argument");
    for (asked, question) in [(&four, "four?"), (&five, "five?")] {
        assert!(words.contains(asked["messageId"].as_str().expect("an id")) && words.contains(question), "{words}");
    }
    let waiting = walk.status(&run).await;
    assert_eq!(
        messages(&waiting)[3..],
        [has("pending_parent_reply", Value::Null), has("pending_parent_reply", Value::Null)]
    );
    // The metadata of the end: all that the document lists.
    walk.call("reply_subagent", json!({ "runId": run, "messageId": five["messageId"], "answer": "5" })).await;
    let replied =
        walk.call("reply_subagent", json!({ "runId": run, "messageId": four["messageId"], "answer": "4" })).await;
    assert_eq!(
        messages(&replied["updatedMetadata"])[3..],
        [has("parent_replied", json!("4")), has("parent_replied", json!("5"))]
    );
    puppet.uses("update_status", json!({ "status": "success", "summary": "counted" })).await;
    puppet.ends("counted to five");
    let ended = until(&walk.parent, &run, "success").await;
    assert_eq!(ended["summary"], "counted");
    assert!(is_iso(&ended["endTime"]), "{ended}");
    walk.close().await;
}
