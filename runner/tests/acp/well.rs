//! What an agent does that behaves.

use assistant_protocol::methods::DeliverMessage;
use assistant_protocol::types::PermissionParams;
use serde_json::{Value, json};

use crate::fake::{Agent, check, check_with, has_python};
use crate::host::{Judge, allow, ended};

#[tokio::test]
async fn a_turn_is_told_in_whole_texts_and_calls_and_the_next_one_follows() {
    if !has_python("a turn") {
        return;
    }
    let agent = Agent::start("well", allow).await;
    let told = |id: &str| {
        [
            "thought Hm, a task.",
            "text I look.",
            &format!(r#"call {id} Bash {{"command":"ls -l"}}"#),
            &format!(r#"may {id} Bash {{"command":"ls -l"}}"#),
            &format!("result {id} ran ls -l"),
            "progress 1 of 3 done: Think 0.33",
            "usage - - - calls 0 cost 0.5 model -",
            "text All is well.",
            "usage 13 5 3 calls 1 cost 0 model -",
        ]
        .map(str::to_owned)
        .to_vec()
    };
    assert_eq!(ended(agent.host.run("the task", json!({})).await), "finished All is well.");
    assert_eq!(agent.host.told(), [vec!["session s1".to_owned()], told("c1")].concat());
    agent.host.forget();
    // The cost is of the whole session: what is new of it is told.
    assert_eq!(ended(agent.host.run("more", json!({})).await), "finished All is well.");
    // Its call has the id of the first one, and is another.
    assert_eq!(agent.host.told(), told("c1#1"));
    assert_eq!((agent.got("session/new").len(), agent.got("session/prompt").len()), (1, 2));
    // Its user has made a mode the usual one in which it asks for nothing.
    assert_eq!(agent.got("session/set_mode")[0]["params"]["modeId"], "default");
    agent.host.end().await;
}

#[tokio::test]
async fn what_the_host_refuses_the_agent_may_not() {
    if !has_python("a refusal") {
        return;
    }
    let refuse: Judge = |_| Some(false);
    let told = [
        r#"call c1 Bash {"command":"rm -rf /"}"#,
        r#"may c1 Bash {"command":"rm -rf /"}"#,
        "failed c1 was not allowed: no",
    ];
    check_with("refused", refuse, "finished ", &told).await;
    // Each file of a call is judged, and one that is refused is enough.
    let not_etc: Judge = |params: &PermissionParams| Some(!params.arguments["file_path"].to_string().contains("/etc"));
    let told = [
        r#"call c1 Edit {"path":"/w/a","file_path":"/w/a"}"#,
        r#"may c1 Edit {"path":"/w/a","file_path":"/w/a"}"#,
        r#"may c1/2 Edit {"path":"/w/a","file_path":"/etc/passwd"}"#,
        "failed c1 The turn ended before this call was answered. It may have had its effect.",
        "text no",
    ];
    check_with("files", not_etc, "finished no", &[told[0], told[1], told[2], told[4], told[3]]).await;
}

#[tokio::test]
async fn permission_that_cannot_be_answered_is_told() {
    if !has_python("permission") {
        return;
    }
    let unanswered = "The turn ended before this call was answered. It may have had its effect.";
    let lacks = "lacks an answer to `Bash`: the agent has no option to allow this call only, so it is told that its turn \
                 is cancelled";
    let told = [
        r#"call c1 Bash {"command":"ls"}"#,
        r#"may c1 Bash {"command":""}"#,
        r#"call c2 Bash {"command":"ls"}"#,
        r#"may c2 Bash {"command":"ls"}"#,
        "text cancelled, cancelled",
        &format!("failed c1 {unanswered}"),
        &format!("failed c2 {unanswered}"),
    ];
    check(
        "no-options",
        "finished cancelled, cancelled",
        &[told[0], r#"may c1 Bash {"command":"ls"}"#, lacks, told[2], told[3], lacks, told[4], told[5], told[6]],
    )
    .await;
    // The host is asked for each id once: later ones get a number, and a call that was over begins anew.
    let told = [
        r#"call c1 Bash {"command":"ls"}"#,
        r#"may c1 Bash {"command":"ls"}"#,
        r#"may c1#1 Bash {"command":"ls"}"#,
        "result c1 ",
        r#"call c1#2 Bash {"command":"rm"}"#,
        r#"may c1#2 Bash {"command":"rm"}"#,
        "text yes, yes, yes",
        &format!("failed c1#2 {unanswered}"),
    ];
    check("asks-twice", "finished yes, yes, yes", &told).await;
}

#[tokio::test]
async fn calls_of_our_own_tools_are_told_and_judged_elsewhere() {
    if !has_python("calls") {
        return;
    }
    let refuse: Judge = |_| Some(false);
    let agent = Agent::start("ours", refuse).await;
    let tools = json!([{ "name": "ask_parent", "description": "d", "input_schema": { "type": "object" } }]);
    let result = agent.host.run("the task", json!({ "tools": &tools })).await;
    assert_eq!(ended(result), "finished yes, yes, no");
    let told = [
        "session s1",
        "call c3 Bash {\"command\":\"mcp__assistants__ask_parent\"}",
        r#"may c3 Bash {"command":"mcp__assistants__ask_parent"}"#,
        "text yes, yes, no",
        "failed c3 The turn ended before this call was answered. It may have had its effect.",
        "lacks the assistant's tools: the agent has not started the server that it was told of: it may take none, or none in \
         a folder that it does not trust",
    ];
    assert_eq!(agent.host.told(), told);
    // Told once.
    agent.host.forget();
    let _ = agent.host.run("again", json!({ "tools": tools })).await;
    assert!(!agent.host.told().iter().any(|line| line.starts_with("lacks")), "{:?}", agent.host.told());
    agent.host.end().await;
}

#[tokio::test]
async fn every_stop_reason_has_its_end() {
    if !has_python("stop reasons") {
        return;
    }
    for (reason, end) in [
        ("end_turn", "finished so far"),
        ("max_tokens", "length so far"),
        ("max_turn_requests", "length so far"),
        ("refusal", "refused so far"),
        ("cancelled", "cancelled so far"),
        ("boredom", "internal_error: the agent ended its turn for a reason that the protocol does not have: boredom"),
    ] {
        check(&format!("ends-{reason}"), end, &["text so far"]).await;
    }
    check("no-reason", "internal_error: the agent ended its turn without a reason", &[]).await;
    check("fails", "model_failed: the agent failed at its turn: Internal error: the model is on holiday", &[]).await;
}

#[tokio::test]
async fn what_the_definition_wishes_is_asked_for_or_told() {
    if !has_python("wishes") {
        return;
    }
    let run = |wishes: Value| async move {
        let agent = Agent::start("echo", allow).await;
        let brief = json!({ "assistant": { "id": "a", "name": "A", "system_prompt": "Be brief." }, "agent": wishes });
        let result = ended(agent.host.run("the task", brief).await);
        let set = |method: &str, key: &str| {
            let got = agent.got(method);
            got.iter().map(|got| got["params"][key].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
        };
        let set = (set("session/set_config_option", "value"), set("session/set_mode", "modeId"));
        let told = agent.host.told();
        agent.host.end().await;
        (result, set, told)
    };
    let text = "<instructions>\nBe brief.\n</instructions>\nthe task";
    let (result, set, told) = run(json!({ "model": "small-1", "readonly": true })).await;
    assert_eq!((result, set), (format!("finished {text}"), (vec!["acme/small-1".to_owned()], vec!["plan".to_owned()])));
    assert_eq!(told, ["session s1", &format!("text {text}")]);
    let (_, set, told) = run(json!({ "model": "huge", "tools": ["Bash"] })).await;
    assert_eq!(set, (Vec::new(), vec!["default".to_owned()]));
    let wanted = [
        "session s1",
        "lacks model: the agent offers no `huge`; it offers acme/big-1, acme/small-1",
        "lacks a bound to its `tools`: the protocol has no words for it: calls that the agent asks for are judged by the rules, others are not",
    ];
    assert_eq!(told[..3], wanted);

    let rules = json!([{ "action": "ask", "tool": "bash" }]);
    let (_, _, told) = run(json!({ "rules": rules, "ask_tools": ["Edit"] })).await;
    let why = "the protocol has no words for it: calls that the agent asks for are judged by the rules, others are not";
    assert_eq!(told[1..3], [format!("lacks rules: {why}"), format!("lacks ask_tools: {why}")]);
    let all = json!([{ "action": "allow", "tool": "*" }]);
    let (_, _, told) = run(json!({ "rules": all, "tools": ["*"] })).await;
    assert!(!told.iter().any(|line| line.starts_with("lacks")), "{told:?}");

    // Pictures go to an agent that takes them.
    let agent = Agent::start("echo", allow).await;
    let picture = json!({ "type": "image", "mime_type": "image/png", "data": "AA==" });
    let inputs = json!({ "inputs": [{ "path": "a.png", "content": "a picture", "picture": picture }] });
    let result = ended(agent.host.run("Look", inputs).await);
    assert!(result.ends_with("image\n\n\nLook") || result.ends_with("image\nLook"), "{result}");
    agent.host.end().await;
}

/// A bound on cost holds within a turn: what is spent is told while it is.
#[tokio::test]
async fn what_is_spent_is_told_at_once() {
    if !has_python("spending") {
        return;
    }
    let agent = Agent::start("spends", allow).await;
    let run = agent.host.begin("the task", json!({}));
    agent.host.happens("usage - - - calls 0 cost 0.5 model -").await;
    assert!(!run.is_finished(), "it waits for a word");
    std::fs::write(format!("{}.go", agent.log.path().display()), "").expect("writes");
    assert_eq!(ended(run.await.expect("ends")), "finished done");
    let told = [
        "session s1",
        "usage - - - calls 0 cost 0.5 model -",
        // A little is told with what follows.
        "usage - - - calls 0 cost 0.25 model -",
        "text done",
        "usage - - - calls 1 cost 0 model -",
    ];
    assert_eq!(agent.host.told(), told);
    agent.host.end().await;
    let _ = std::fs::remove_file(format!("{}.go", agent.log.path().display()));
}

#[tokio::test]
async fn a_session_is_gone_on_with() {
    if !has_python("sessions") {
        return;
    }
    let brief = || {
        json!({ "agent": { "session": "s1" }, "history": [{ "role": "user", "content": "What was first?" }],
            "assistant": { "id": "a", "name": "A", "system_prompt": "Be brief." } })
    };
    // It knows what was said, and its instructions.
    let agent = Agent::start("echo", allow).await;
    assert_eq!(ended(agent.host.run("the task", brief()).await), "finished the task");
    assert_eq!(agent.host.told(), ["session s1", "text the task"]);
    assert_eq!((agent.got("session/load").len(), agent.got("session/new").len()), (1, 0));
    agent.host.end().await;
    for (mode, why) in
        [("load-fails", "Invalid params: no such session"), ("well", "Method not found: it keeps no sessions")]
    {
        let agent = Agent::start(mode, allow).await;
        let _ = agent.host.run("the task", brief()).await;
        let lacks = format!("lacks its session: the agent cannot go on with its session s1: {why}; a new one is begun");
        assert_eq!(agent.host.told()[0], lacks);
        let prompt = agent.got("session/prompt")[0]["params"]["prompt"].to_string();
        assert!(prompt.contains("What was first?") && prompt.contains("Be brief."), "{prompt}");
        agent.host.end().await;
    }
}

#[tokio::test]
async fn messages_are_given_with_the_next_turn() {
    if !has_python("messages") {
        return;
    }
    let agent = Agent::start("echo", allow).await;
    assert_eq!(ended(agent.host.run("one", json!({})).await), "finished one");
    let id = assistant_protocol::ids::MessageId::mint();
    let mail =
        json!({ "id": id, "from_assistant_id": "b", "to_assistant_id": "a", "content": "Hurry", "created_at": 0 });
    let message = serde_json::from_value(json!({ "message": mail })).expect("a message");
    agent.host.peer.call::<DeliverMessage>(&message).await.expect("taken");
    let result = ended(agent.host.run("two", json!({})).await);
    assert!(result.starts_with("finished two\n<message ") && result.ends_with("\nHurry\n</message>"), "{result}");
    assert!(result.contains(&id.to_string()), "{result}");
    agent.host.end().await;
}

#[tokio::test]
async fn a_task_is_no_command() {
    if !has_python("commands") {
        return;
    }
    let agent = Agent::start("echo", allow).await;
    assert_eq!(ended(agent.host.run("/help me, @you", json!({})).await), "finished Task: /help me, @you");
    agent.host.end().await;
}
