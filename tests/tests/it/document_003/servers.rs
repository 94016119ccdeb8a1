//! Tool servers of a run: what they inherit, when they are started; and a subagent that is a tool of another one.

use conformance::doors::until;
use serde_json::{Value, json};

use super::{FILE, Shop};
use crate::HOST;

pub(super) use crate::SERVER as FAKE_SERVER;

/// A shop whose model takes these steps, with these servers in its file.
fn shop(steps: Value, servers: &Value) -> Shop {
    let shop = Shop::new(steps);
    shop.edit("defaults:", &format!("mcpServers: {servers}\ndefaults:"));
    shop
}

fn call(tool: &str, arguments: Value) -> Value {
    json!({ "tool_calls": [{ "tool_name": tool, "arguments": arguments }] })
}

#[tokio::test(flavor = "multi_thread")]
async fn row_3_5_tool_servers_inherit_the_folder_and_the_environment_without_the_keys() {
    let own = json!({ "OWN": "of the file", "FROM": "${SHARED}" });
    let steps = json!([call("fake__env", json!({})), { "text": "{{result}}" }]);
    let shop = shop(steps, &json!({ "fake": { "type": "stdio", "command": FAKE_SERVER, "env": own } }));
    shop.edit("    script:", "    api_key_env: MODEL_KEY\n    script:");
    let mut command = shop.command(&["mcp", "serve", "--config", FILE]);
    command.env("SHARED", "of the client").env("MODEL_KEY", "sk-secret").env("PATH", "/usr/bin:/bin");
    let client = super::Client::start(command).await;
    let (said, _) = client.must(json!({ "prompt": "go" })).await;
    client.end().await;
    for there in ["of the client", "OWN", "of the file", "FROM"] {
        assert!(said.contains(there), "`{there}` in {said}");
    }
    assert!(!said.contains("MODEL_KEY") && !said.contains("sk-secret"), "{said}");
    let steps = json!([call("fake__place", json!({})), { "text": "{{result}}" }]);
    let shop = self::shop(steps, &json!({ "fake": { "command": FAKE_SERVER } }));
    let client = shop.client().await;
    let (said, _) = client.must(json!({ "prompt": "go" })).await;
    let folder = shop.dir.path().canonicalize().expect("a folder");
    assert!(said.contains(folder.to_str().expect("a text")), "{said}");
    client.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_3_6_servers_are_given_to_the_run_and_started_when_it_needs_them() {
    let steps = json!([call("fake__echo", json!({ "text": "over there" })), { "text": "{{result}}" }]);
    let shop = shop(steps, &json!({ "fake": { "command": FAKE_SERVER }, "gone": { "command": "/no/such/program" } }));
    let mut client = shop.client().await;
    client.tools().await;
    let servers = || conformance::bed::running(FAKE_SERVER.as_ref()).len();
    let before = servers();
    let (said, run) = client.must(json!({ "prompt": "go" })).await;
    assert!(said.contains("over there"), "{said}");
    assert!(servers() > 0 || before > 0, "it is kept for the next run");
    // One that cannot be had is told, and the run goes on without it.
    let told = client
        .hears(|told| match told {
            super::Told::Log { level, data, .. } if level == "warning" => Some(data.to_string()),
            super::Told::Log { .. } | super::Told::Progress(_) => None,
        })
        .await;
    assert!(told.contains("gone") && told.contains("/no/such/program"), "{told}");
    let (_, trace, _) = shop.run(&["mcp", "runs", &run, "--config", FILE]);
    assert!(trace.contains("server gone"), "{trace}");
    // The subagent has the tools of its servers and none of the host's own.
    let (_, trace, _) = shop.run(&["mcp", "runs", &run, "--json", "--config", FILE]);
    assert!(!trace.contains("spawn_assistant") && !trace.contains("read_file"), "{trace}");
    client.end().await;
}

/// Adds the file of another subagent, which quotes its task or fails, as a tool server of the first.
fn composed(inner: &Value) -> Shop {
    let servers = json!({ "inner": { "type": "stdio", "command": HOST, "args": ["mcp", "serve", "--config", "./inner.cpe.yaml"] } });
    let ask = call("inner__echo_task", json!({ "prompt": "{{task}}" }));
    let shop = shop(json!([ask, { "text": "It said: {{result}}" }]), &servers);
    let text = super::TEXT.replace("review_changes", "echo_task").replace("script.json", "inner.json");
    shop.write("inner.cpe.yaml", &text);
    shop.write("inner.json", &json!({ "assistants": [{ "steps": [inner] }] }).to_string());
    shop
}

#[tokio::test(flavor = "multi_thread")]
async fn row_3_12_a_run_uses_such_a_server_itself_and_errors_propagate() {
    let shop = composed(&json!({ "text": "inner has seen: {{task}}" }));
    let client = shop.client().await;
    let (said, _) = client.must(json!({ "prompt": "the outer task" })).await;
    assert!(said.contains("inner has seen: the outer task"), "{said}");
    client.end().await;
    let shop = composed(&json!({ "error": { "kind": "bad_key", "status": 401, "message": "the inner key is wrong" } }));
    let client = shop.client().await;
    let (said, _) = client.must(json!({ "prompt": "the outer task" })).await;
    assert!(said.contains("model_failed") && said.contains("the inner key is wrong"), "{said}");
    client.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_3_12_a_ring_of_servers_ends_at_the_limit_of_depth() {
    let servers = json!({ "again": { "command": HOST, "args": ["mcp", "serve", "--config", FILE] } });
    let ask = call("again__review_changes", json!({ "prompt": "deeper" }));
    let shop = shop(json!([ask, { "text": "below: {{result}}" }]), &servers);
    let client = shop.client().await;
    let (said, _) = client.must(json!({ "prompt": "go" })).await;
    assert!(said.contains("limit_depth"), "{said}");
    client.end().await;
    until("all have ended", || conformance::bed::running(shop.dir.path()).is_empty().then_some(()));
    assert_eq!(shop.runs().len(), 3, "three levels, as `limits.depth` says");
}
