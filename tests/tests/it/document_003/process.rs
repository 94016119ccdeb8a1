//! The process: stdout carries the protocol only, it ends when it is told to, and leaves nothing.

use conformance::doors::{signal, until};
use serde_json::{Value, json};

use super::{FILE, Shop};

fn hang() -> Shop {
    Shop::new(json!([{ "hang": true }]))
}

#[test]
fn row_3_11_stdout_carries_the_protocol_only() {
    // Warnings, a failing run and a log for people: all that might be said.
    let shop = Shop::new(json!([{ "error": { "kind": "bad_key", "message": "no" } }]));
    shop.edit("enabled: false", "enabled: true");
    shop.edit("version: \"1.0\"\n", "oddity: 1\n");
    let mut command = shop.command(&["mcp", "serve", "--config", FILE]);
    command.env("ASSISTANT_HOST_LOG", "trace").stderr(std::process::Stdio::piped()).stdin(std::process::Stdio::piped());
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().expect("it runs");
    let hello =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "raw", "version": "1" } });
    let lines = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call",
                "params": { "name": "review_changes", "arguments": { "prompt": "go" } } }),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::io::Write::write_all(child.stdin.as_mut().expect("stdin"), text.as_bytes()).expect("written");
    // End of input: what was asked is answered first.
    drop(child.stdin.take());
    let output = child.wait_with_output().expect("it ends");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let ids: Vec<Value> = stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap_or_else(|_| panic!("no message: {line}")))
        .filter_map(|message| message.get("id").cloned())
        .collect();
    assert_eq!(ids, [json!(1), json!(2)]);
    assert!(stderr.contains("`defaults.codeMode.enabled`") && stderr.contains("`oddity`"), "{stderr}");
}

#[test]
fn row_3_11_it_ends_in_order_whatever_ends_it() {
    let check = |end: &str| {
        let shop = hang();
        let mut client = shop.raw();
        let call = json!({ "name": "review_changes", "arguments": { "prompt": "go" } });
        client.send("tools/call", &call).expect("written");
        until("it runs", || shop.runs().iter().any(|run| run["status"] == "running").then_some(()));
        let server = client.child.id();
        assert!(!conformance::processes::children(server).is_empty(), "a runner runs");
        let code = match end {
            "end of input" => client.close(),
            name => {
                signal(name, server.into());
                client.child.wait().expect("it ends").code()
            }
        };
        assert_eq!(code, Some(0), "{end}");
        let [run] = shop.runs().try_into().expect("one run");
        assert_eq!((&run["status"], &run["marked"]), (&json!("cancelled"), &json!(true)), "{end}");
        let left = conformance::processes::marked(run["id"].as_str().expect("an id"));
        assert!(left.is_empty(), "after {end} there is left {left:?}");
    };
    for end in ["INT", "TERM", "HUP", "end of input"] {
        check(end);
    }
}

#[test]
fn row_3_11_it_ends_in_order_before_anybody_has_said_a_word() {
    for end in ["INT", "TERM", "end of input"] {
        let shop = hang();
        let mut command = shop.command(&["mcp", "serve", "--config", FILE]);
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut child = command.stderr(std::process::Stdio::piped()).spawn().expect("it runs");
        // It hears signals before it opens its state directory.
        let folder = shop.path("home/.local/state/assistant-host/subagents");
        until("it has begun", || folder.exists().then_some(()));
        match end {
            "end of input" => drop(child.stdin.take()),
            name => signal(name, child.id().into()),
        }
        let output = child.wait_with_output().expect("it ends");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0), "{end}");
    }
}

#[test]
fn row_3_11_nothing_outlives_a_killed_server_and_its_place_is_free() {
    let shop = hang();
    let mut client = shop.raw();
    let call = json!({ "name": "review_changes", "arguments": { "prompt": "go" } });
    client.send("tools/call", &call).expect("written");
    until("it runs", || shop.runs().iter().any(|run| run["status"] == "running").then_some(()));
    let run = shop.runs()[0]["id"].as_str().expect("an id").to_owned();
    client.kill();
    until("no runner is left", || conformance::processes::marked(&run).is_empty().then_some(()));
    // Without any server it is known that it has ended, and the next server of the file says so too.
    assert_eq!((&shop.runs()[0]["status"], &shop.runs()[0]["reason"]), (&json!("failed"), &json!("host_lost")));
    let mut next = shop.raw();
    let fetch = json!({ "name": "review_changes", "arguments": { "prompt": "go", "run_id": run } });
    let told = next.ask("tools/call", &fetch).expect("an answer");
    let error: Value =
        serde_json::from_str(told["result"]["content"][0]["text"].as_str().expect("a text")).expect("JSON");
    assert_eq!((&told["result"]["isError"], &error["code"]), (&json!(true), &json!("host_lost")), "{error}");
    assert_eq!(next.close(), Some(0));
}
