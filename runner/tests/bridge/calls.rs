//! Tools listed and called.

use std::collections::BTreeSet;

use assistant_protocol::error::Kind;
use assistant_runner::adapter::bridge::Ended;
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest};
use rmcp::service::PeerRequestOptions;
use serde_json::json;
use tokio::time::timeout;

use crate::kit::{Adapter, Client, SOON};

#[tokio::test]
async fn tools_are_listed_and_called() {
    let adapter = Adapter::start();
    let _run = adapter.run(&["ask_parent", "echo", "picture", "data", "wrong"], false);
    let client = Client::start(adapter.bridge.server()).await;
    let tools = client.service.list_all_tools().await.expect("lists");
    let names: Vec<_> = tools.iter().map(|tool| (tool.name.as_ref(), tool.description.as_deref())).collect();
    assert_eq!(names[..2], [("ask_parent", Some("Does ask_parent.")), ("echo", Some("Does echo."))]);
    assert_eq!(tools[0].input_schema["properties"]["question"]["type"], "string");
    assert_eq!(client.service.peer_info().and_then(|told| told.server_info.clone()).expect("told").name, "assistants");
    assert_eq!(
        client.call("echo", json!({ "b": [1.5, null], "a": "\u{e4}" })).await,
        (r#"{"b":[1.5,null],"a":"ä"}"#.into(), false)
    );
    assert_eq!(client.call("wrong", json!({})).await, ("no such thread".into(), true));
    let picture = client.try_call("picture", json!({})).await.expect("answers");
    assert_eq!(
        picture.content[0].as_image().map(|image| (image.data.as_str(), image.mime_type.as_str())),
        Some(("AA==", "image/png"))
    );
    let data = client.try_call("data", json!({})).await.expect("answers");
    assert_eq!(data.structured_content, Some(json!({ "a": 1 })));
}

#[tokio::test]
async fn calls_are_made_beside_each_other_and_each_has_an_id_of_its_own() {
    let adapter = Adapter::start();
    let _run = adapter.run(&["ask_parent", "echo"], false);
    let clients = [Client::start(adapter.bridge.server()).await, Client::start(adapter.bridge.server()).await];
    let asking = clients.iter().flat_map(|client| (0..20).map(move |_| client.call("ask_parent", json!({}))));
    let asking = futures::future::join_all(asking);
    let answering = async {
        adapter.host.called("ask_parent", 40).await;
        // Others are not kept waiting.
        assert_eq!(clients[0].call("echo", json!({})).await, ("{}".into(), false));
        adapter.host.go.notify_waiters();
    };
    let (answers, ()) = tokio::join!(asking, answering);
    assert_eq!(answers, vec![("the second one".to_owned(), false); 40]);
    let ids: BTreeSet<String> = adapter.host.call_ids().into_iter().collect();
    assert_eq!(ids.len(), 41);
    assert!(ids.iter().all(|id| id.starts_with("bridge-")), "{ids:?}");
}

#[tokio::test]
async fn more_calls_than_may_be_are_refused_until_some_are_answered() {
    let adapter = Adapter::start();
    let run = adapter.run(&["ask_parent", "echo"], false);
    let client = Client::start(adapter.bridge.server()).await;
    let asking = futures::future::join_all((0..64).map(|_| client.call("ask_parent", json!({}))));
    let others = async {
        adapter.host.called("ask_parent", 64).await;
        let full = "64 calls are under way, as many as may be. Call again when some are answered.";
        assert_eq!(client.call("echo", json!({})).await, (full.into(), true));
        adapter.host.go.notify_waiters();
    };
    let (answers, ()) = tokio::join!(asking, others);
    assert!(answers.iter().all(|(_, failed)| !failed));
    assert_eq!(client.call("echo", json!({})).await, ("{}".into(), false));
    assert!(timeout(std::time::Duration::ZERO, run.ended()).await.is_err(), "goes on");
}

#[tokio::test]
async fn a_huge_result_comes_whole() {
    let adapter = Adapter::start();
    let _run = adapter.run(&["huge", "echo"], false);
    let client = Client::start(adapter.bridge.server()).await;
    let (text, failed) = client.call("huge", json!({})).await;
    assert_eq!((text.len(), failed), (8 * 1024 * 1024, false));
    let question = "q".repeat(4 * 1024 * 1024);
    let (text, failed) = client.call("echo", json!({ "question": question })).await;
    assert_eq!((text.len(), failed), (question.len() + 15, false));
}

#[tokio::test]
async fn a_call_that_the_agent_cancels_is_cancelled_in_the_host() {
    let adapter = Adapter::start();
    let _run = adapter.run(&["ask_parent", "echo"], false);
    let client = Client::start(adapter.bridge.server()).await;
    let request = CallToolRequest::new(CallToolRequestParams::new("ask_parent"));
    let handle = client
        .service
        .send_cancellable_request(ClientRequest::CallToolRequest(request), PeerRequestOptions::no_options())
        .await
        .expect("sent");
    adapter.host.called("ask_parent", 1).await;
    handle.cancel(Some("enough".to_owned())).await.expect("cancels");
    adapter.host.cancelled(1).await;
    assert_eq!(client.call("echo", json!({})).await, ("{}".into(), false));
}

#[tokio::test]
async fn an_error_is_told_to_the_agent_or_ends_the_run() {
    let adapter = Adapter::start();
    for kind in Kind::ALL {
        let run = adapter.run(&[kind.name()], false);
        let client = Client::start(adapter.bridge.server()).await;
        let told = format!("`{0}` failed: {0} it is", kind.name());
        assert_eq!(client.call(kind.name(), json!({})).await, (told, true));
        let ended = timeout(
            std::time::Duration::from_millis(if Kind::MENDABLE.contains(kind) { 0 } else { 90_000 }),
            run.ended(),
        );
        let ended = ended.await.ok().map(|ended| match ended {
            Ended::Failed(error) => error.kind(),
            Ended::Answer(answer) => panic!("{answer}"),
        });
        assert_eq!(ended, (!Kind::MENDABLE.contains(kind)).then_some(Some(*kind)));
    }
}

#[tokio::test]
async fn an_accepted_answer_ends_the_run() {
    let adapter = Adapter::start();
    let run = adapter.run(&["final_answer"], false);
    let client = Client::start(adapter.bridge.server()).await;
    assert_eq!(client.call("final_answer", json!({ "sum": 7 })).await, ("taken".into(), false));
    assert_eq!(timeout(SOON, run.ended()).await.expect("soon"), Ended::Answer(json!({ "sum": 7 })));
}

#[tokio::test]
async fn permission_is_asked_for_where_the_agent_asks() {
    let adapter = Adapter::start();
    let run = adapter.run(&["echo", "permission"], true);
    let client = Client::start(adapter.bridge.server()).await;
    assert_eq!(client.tools().await, ["echo", "permission"]);
    let check = async |asked: serde_json::Value, want: &str, failed: bool| {
        assert_eq!(client.call("permission", asked).await, (want.to_owned(), failed));
    };
    let bash =
        |command: &str| json!({ "tool_name": "Bash", "input": { "command": command }, "tool_use_id": "toolu_1" });
    check(bash("ls"), r#"{"behavior":"allow","updatedInput":{"command":"ls"}}"#, false).await;
    check(bash("rm"), r#"{"behavior":"deny","message":"a rule forbids it"}"#, false).await;
    check(bash("mv"), r#"{"behavior":"deny","message":"It is not permitted."}"#, false).await;
    // The host judges its own tools when they are called.
    let own = json!({ "tool_name": "mcp__assistants__echo", "input": {} });
    check(own, r#"{"behavior":"allow","updatedInput":{}}"#, false).await;
    let takes = "`permission` takes `tool_name`, a text, and `input`, an object.";
    for odd in [json!({}), json!({ "tool_name": 1, "input": {} }), json!({ "tool_name": "Bash", "input": "ls" })] {
        check(odd, takes, true).await;
    }
    // The host would take one that has the id of another for that one.
    let asked = |id: &str, command: &str| json!([id, "Bash", { "command": command }]);
    let want = [asked("toolu_1", "ls"), asked("toolu_1#1", "rm"), asked("toolu_1#2", "mv")];
    assert_eq!(adapter.host.permissions(), want);
    check(bash("over"), r#"{"behavior":"deny","message":"the run is over"}"#, false).await;
    assert!(
        matches!(timeout(SOON, run.ended()).await.expect("soon"), Ended::Failed(error) if error.kind() == Some(Kind::Cancelled))
    );
}
