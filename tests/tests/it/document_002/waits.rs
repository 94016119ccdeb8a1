//! Document 002: how long `run_subagent` waits, and what it gives where there is no result.

use rmcp::model::CallToolRequestParams;
use serde_json::{Value, json};

use crate::documents::{TALKING, Walk, call, refused, until};

/// It waits as long as the definition says, longer than a client is made to wait else; one without a word is left behind
/// with a handle, in words and data.
#[tokio::test(flavor = "multi_thread")]
async fn row_2_1_waits_for_the_definitions_timeout() {
    let file = |name: &str, more: &str| {
        (
            format!("{name}.md"),
            format!("---\nname: {name}\ndescription: d\ntools: [{TALKING}]\n{more}---\nYou are one.\n"),
        )
    };
    let files = [file("patient", "timeout_ms: 60000\n"), file("plain", ""), file("hasty", "timeout_ms: 50\n")];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let walk = Walk::with(&files, |bed| {
        bed.limits.client_wait_ms = 30;
        bed.limits.grace_ms = 50;
    })
    .await;
    let run = |name: &'static str| {
        let parent = &walk.parent;
        async move { call(parent, "run_subagent", json!({ "agent_name": name, "prompt": "go" })).await }
    };
    // The handle, and the result by it.
    let (handle, mut puppet) = tokio::join!(run("plain"), walk.next());
    assert_eq!(handle["status"], "running", "{handle}");
    let words = handle["result"].as_str().expect("words");
    assert!(words.contains("still at work") && words.contains(handle["runId"].as_str().expect("an id")), "{words}");
    puppet.ends("late");
    assert_eq!(until(&walk.parent, &handle["runId"], "success").await["result"], "late");
    // It ends long after the time that a client is made to wait else.
    let ending = async {
        let mut puppet = walk.next().await;
        let looked = json!({ "runId": walk_run(&puppet), "wait_ms": 30 });
        for _ in 0..3 {
            call(&walk.parent, "check_status", looked.clone()).await;
        }
        puppet.ends("in time");
    };
    let (ran, ()) = tokio::join!(run("patient"), ending);
    assert_eq!((&ran["result"], &ran["status"]), (&json!("in time"), &json!("success")));
    // One that asks is told at once, with its question.
    let asking = async {
        let mut puppet = walk.next().await;
        puppet.uses("ask_parent", json!({ "question": "which?" })).await;
        puppet
    };
    let (asked, mut puppet) = tokio::join!(run("patient"), asking);
    assert_eq!(
        (&asked["status"], &asked["messages"][0]["questionContent"]),
        (&json!("waiting_parent_reply"), &json!("which?"))
    );
    assert!(asked["result"].as_str().is_some_and(|words| words.contains("reply_subagent")), "{asked}");
    walk.call("reply_subagent", json!({ "runId": asked["runId"], "answer": "that" })).await;
    puppet.ends("that, then");
    assert_eq!(until(&walk.parent, &asked["runId"], "success").await["result"], "that, then");
    // One whose time is over is an error.
    let hasty = refused(&walk.parent, "run_subagent", json!({ "agent_name": "hasty", "prompt": "go" }));
    let ((code, words), _puppet) = tokio::join!(hasty, walk.next());
    assert!(code == "run_failed" && words.contains("timed_out"), "{code}: {words}");
    walk.close().await;
}

fn walk_run(puppet: &conformance::puppets::Puppet) -> Value {
    let prompt = puppet.run["assistant"]["system_prompt"].as_str().expect("a text");
    let at = prompt.find("Your runId is ").expect("it is told") + "Your runId is ".len();
    json!(prompt[at..at + 36])
}

#[tokio::test(flavor = "multi_thread")]
async fn row_2_1_a_failed_run_is_an_error() {
    let walk = Walk::new(&[("helper", TALKING)], |_| {}).await;
    let run = refused(&walk.parent, "run_subagent", json!({ "agent_name": "helper", "prompt": "go" }));
    let dying = async { walk.next().await.dies() };
    let ((code, words), ()) = tokio::join!(run, dying);
    assert!(
        code == "run_failed" && words.contains("of `helper` has no result") && words.contains("runner_exited"),
        "{words}"
    );
    walk.close().await;
}

/// A client that gives a call up knows no id: what it waited for ends.
#[tokio::test(flavor = "multi_thread")]
async fn row_2_1_a_call_that_is_given_up_ends_its_run() {
    let walk = Walk::new(&[("helper", TALKING)], |_| {}).await;
    let arguments = json!({ "agent_name": "helper", "prompt": "go" }).as_object().cloned().expect("a map");
    let asked = CallToolRequestParams::new("run_subagent").with_arguments(arguments);
    let request = rmcp::model::ClientRequest::CallToolRequest(rmcp::model::CallToolRequest::new(asked));
    let handle = walk
        .parent
        .send_cancellable_request(request, rmcp::service::PeerRequestOptions::no_options())
        .await
        .expect("sent");
    let puppet = walk.next().await;
    let run = walk_run(&puppet);
    handle.cancel(Some("enough".to_owned())).await.expect("cancelled");
    let ended = until(&walk.parent, &run, "error").await;
    assert_eq!(ended["state"], "cancelled");
    walk.close().await;
}
