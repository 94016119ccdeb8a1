//! Messages of MCP clients that do not fit the protocol: each request is answered by its id, with words, through every door.

use conformance::doors::{Doors, RawClient};
use serde_json::{Value, json};

use crate::HOST;

/// Asks in a client's own words, and gives the error that is told.
fn refused(client: &mut RawClient, id: u64, rest: &str) -> (i64, String) {
    assert!(client.write(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{rest}}}\n").as_bytes()));
    let answer = client.answer(id).expect("an answer");
    let error = &answer["error"];
    (error["code"].as_i64().expect("an error"), error["message"].as_str().expect("words").to_owned())
}

fn check(client: &mut RawClient) {
    let mut last = 1_000;
    let mut is = |client: &mut RawClient, rest: &str, code: i64, words: &str| {
        last += 1;
        let (got, said) = refused(client, last, rest);
        assert!(got == code && said.contains(words), "{rest}: {got} {said}");
    };
    // Before hands are shaken too.
    is(client, r#""method":"initialize","params":{}"#, -32602, "missing field `protocolVersion`");
    is(client, r#""method":"initialize","params":"x""#, -32602, "they have to be an object, and are a text");
    is(client, r#""method":"tools/call","params":[]"#, -32602, "they have to be an object, and are a list");
    assert!(client.shake());
    for (params, words) in [
        (r#""x""#, "they have to be an object, and are a text"),
        ("[1]", "they have to be an object, and are a list"),
        ("null", "there are none"),
        ("{}", "missing field `name`"),
        (r#"{"name":7}"#, "invalid type: integer `7`, expected a string"),
        (r#"{"name":"list_process","arguments":[1]}"#, "expected a map"),
        (r#"{"name":"list_process","arguments":"x"}"#, "expected a map"),
        (r#"{"name":"list_process","_meta":5}"#, "`_meta` has to be an object"),
    ] {
        is(client, &format!(r#""method":"tools/call","params":{params}"#), -32602, words);
    }
    is(client, r#""method":"tools/call""#, -32602, "the params of `tools/call` do not fit: there are none");
    is(client, r#""method":"resources/read","params":{}"#, -32602, "missing field `uri`");
    is(client, r#""method":"resources/read""#, -32602, "there are none");
    is(client, r#""method":"tools/list","params":5"#, -32602, "they have to be an object, and are a number");
    is(client, r#""method":"ping","params":true"#, -32602, "they have to be an object");
    is(client, r#""method":"tools/odd","params":5"#, -32601, "there is no method `tools/odd`");
    is(client, r#""method":"tools/odd""#, -32601, "there is no method `tools/odd`");
    is(client, r#""method":5"#, -32600, "no `method` that is a text");
    // Nothing of that did harm.
    assert_eq!(client.must("list_process", &json!({}))["total_items"], 0);
}

#[test]
fn each_request_that_does_not_fit_is_answered_by_its_id() {
    let doors = Doors::new(HOST, "");
    for args in [&["mcp", "--embedded"][..], &["mcp"]] {
        let mut client = RawClient::start(doors.command(args));
        check(&mut client);
        assert_eq!(client.close(), Some(0), "{args:?}");
    }
}

#[test]
fn a_lost_call_sends_clients_of_a_profile_to_tools_that_they_have() {
    let config = "[limits]\nsubagents_depth = 1\n";
    let doors = Doors::new(HOST, config);
    for (profile, want) in [("orchestrator", "list_process"), ("subagents", "check_status")] {
        let mut client = RawClient::start(doors.command(&["mcp", "--profile", profile]));
        assert!(client.shake());
        let tools = client.ask("tools/list", &json!({})).expect("an answer");
        let waits = match profile {
            "subagents" => client.send_call("run_subagent", &json!({ "agent_name": "hang", "prompt": "go" })),
            _ => client
                .send_call("spawn_assistant", &json!({ "assistant_id": "hang", "query": "go", "run_mode": "sync" })),
        };
        let waits = waits.expect("written");
        conformance::doors::until("it runs", || {
            let told = doors.run(&["ps", "--json", "--living"]).1;
            told.contains("running").then_some(())
        });
        conformance::doors::signal("9", doors.host_pid().expect("a host").into());
        let told = client.called(waits).expect("an answer").expect_err("an error");
        let hint = told["hint"].as_str().expect("a hint");
        assert!(told["code"] == "host_lost" && hint.contains(want), "{told}");
        let listed: Vec<&str> = tools["result"]["tools"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|tool| tool["name"].as_str())
            .collect();
        assert!(listed.contains(&want), "{profile} has {want}: {listed:?}");
        assert_eq!(client.close(), Some(0), "{profile}");
    }
}

#[test]
fn an_argument_that_a_profile_knows_by_several_names_is_told_by_the_one_that_was_sent() {
    let doors = Doors::new(HOST, "");
    let mut client = RawClient::start(doors.command(&["mcp", "--profile", "subagents"]));
    assert!(client.shake());
    for name in ["prompt", "task", "input"] {
        let mut asked: Value = json!({ "agent_name": "hang" });
        asked[name] = json!("x".repeat(3 << 20));
        let told = client.call("run_subagent", &asked).expect("an answer").expect_err("too long");
        let want = format!("`{name}` has 3145728 bytes, the most is 1048576");
        assert_eq!((&told["code"], &told["message"]), (&json!("bad_argument"), &json!(want)));
    }
    let told = client.call("check_status", &json!({ "subagentId": "x" })).expect("an answer").expect_err("no id");
    assert!(told["message"].as_str().is_some_and(|text| text.starts_with("`subagentId` is `x`")), "{told}");
    assert_eq!(client.close(), Some(0));
}
