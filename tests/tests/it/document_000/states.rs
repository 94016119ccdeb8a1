//! Document 000: the states of runs and messages, and its edge cases.

use serde_json::{Value, json};

use super::{has, messages};
use crate::documents::{TALKING, Walk, ends_with, refused, until};

/// All transitions of the status of a run and of a message, each followed by what both sides see.
#[tokio::test(flavor = "multi_thread")]
async fn row_0_7_message_states() {
    let walk = Walk::new(&[("helper", TALKING)], |_| {}).await;
    let (run, mut puppet) = walk.starts("helper").await;
    for fetch in ["check_status", "check_message_status", "check_answer"] {
        let before = messages(&walk.status(&run).await).len();
        let asked = puppet.uses("ask_parent", json!({ "question": fetch })).await;
        let message = &asked["messageId"];
        // running -> waiting_parent_reply; a look of either side changes nothing.
        for _ in 0..2 {
            let seen = walk.status(&run).await;
            assert_eq!(
                (&seen["status"], messages(&seen)[before].0.as_str()),
                (&json!("waiting_parent_reply"), "pending_parent_reply")
            );
            let own = puppet.uses("check_status", json!({ "runId": run })).await;
            assert_eq!(
                (&own["status"], messages(&own)[before].0.as_str()),
                (&json!("waiting_parent_reply"), "pending_parent_reply")
            );
        }
        // -> parent_replied; looks of the parent change nothing.
        walk.call("reply_subagent", json!({ "runId": run, "messageId": message, "answer": "yes" })).await;
        for _ in 0..2 {
            let seen = walk.status(&run).await;
            assert_eq!(
                (&seen["status"], &messages(&seen)[before]),
                (&json!("parent_replied"), &has("parent_replied", json!("yes")))
            );
        }
        // The run fetches: what it gets still shows parent_replied.
        let got = match fetch {
            "check_status" => {
                let own = puppet.uses("check_status", json!({})).await;
                assert_eq!(own["status"], "parent_replied");
                own["messages"][before].clone()
            }
            "check_message_status" => puppet.uses(fetch, json!({ "runId": run, "messageId": message })).await,
            _ => {
                json!({ "messageStatus": "parent_replied", "answerContent": puppet.uses(fetch, json!({ "message_id": message })).await["answer"] })
            }
        };
        assert_eq!(
            (&got["messageStatus"], &got["answerContent"]),
            (&json!("parent_replied"), &json!("yes")),
            "{fetch}"
        );
        // -> running again, the message acknowledged.
        let seen = walk.status(&run).await;
        assert_eq!(
            (&seen["status"], &messages(&seen)[before]),
            (&json!("running"), &has("acknowledged_by_subagent", json!("yes")))
        );
        let own = puppet.uses("check_status", json!({})).await;
        assert_eq!(
            (&own["status"], messages(&own)[before].0.as_str()),
            (&json!("running"), "acknowledged_by_subagent")
        );
        assert_eq!(walk.stored("SELECT state FROM questions WHERE message_id = ?1", message), "RETRIEVED");
    }
    // -> success
    puppet.ends("done");
    let ended = until(&walk.parent, &run, "success").await;
    assert_eq!((&ended["result"], ended.get("unanswered")), (&json!("done"), None));
    walk.close().await;
}

/// Two processes wrote one file there; here nothing is lost, however many ask, answer and report at once.
#[tokio::test(flavor = "multi_thread")]
async fn row_0_7_many_at_once() {
    const MANY: usize = 12;
    let walk = Walk::new(&[("helper", TALKING)], |_| {}).await;
    let mut runs = Vec::new();
    for _ in 0..MANY {
        runs.push(walk.starts("helper").await);
    }
    let one = |run: Value, mut puppet: conformance::puppets::Puppet| {
        let parent = &walk.parent;
        async move {
            let asks: Vec<_> =
                (0..3).map(|n| puppet.calls("ask_parent", json!({ "question": format!("{n}?") }))).collect();
            let mut asked = Vec::new();
            for ask in asks {
                asked.push(ask.result().await["structured_content"]["messageId"].clone());
            }
            let replies = asked.iter().map(|message| {
                let reply = json!({ "runId": run, "messageId": message, "answer": message });
                crate::documents::call(parent, "reply_subagent", reply)
            });
            let report = puppet.calls("update_status", json!({ "status": "running", "summary": run }));
            futures::future::join_all(replies).await;
            report.result().await;
            let own = puppet.uses("check_status", json!({})).await;
            let got: Vec<_> = messages(&own).into_iter().map(|(_, answer)| answer).collect();
            assert_eq!(got, asked, "each has the answer that was given to it");
            let seen = crate::documents::call(parent, "check_status", json!({ "runId": run })).await;
            assert_eq!((&seen["status"], &seen["summary"]), (&json!("running"), &run));
            puppet.ends("done");
        }
    };
    futures::future::join_all(runs.into_iter().map(|(run, puppet)| one(run, puppet))).await;
    walk.close().await;
}

/// What a run writes beside its questions is seen too.
#[tokio::test(flavor = "multi_thread")]
async fn notes_of_a_run_are_seen() {
    let walk = Walk::new(&[("helper", "send_message, recv_message")], |_| {}).await;
    let (run, mut puppet) = walk.starts("helper").await;
    let names: Vec<&str> =
        puppet.run["tools"].as_array().expect("a list").iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["recv_message", "send_message", "update_status"]);
    let thread = puppet.thread.clone();
    for text in ["half way", "nearly"] {
        puppet.uses("send_message", json!({ "thread_id": thread, "message": text })).await;
    }
    let seen = walk.status(&run).await;
    let notes: Vec<&Value> = seen["notes"].as_array().expect("a list").iter().map(|one| &one["content"]).collect();
    assert_eq!(notes, ["half way", "nearly"]);
    walk.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_0_8_edge_cases() {
    let walk = Walk::new(&[("helper", TALKING)], |_| {}).await;
    let (run, mut puppet) = walk.starts("helper").await;
    let one = puppet.uses("ask_parent", json!({ "question": "one?" })).await["messageId"].clone();
    // Several questions before a reply: each is answered by itself, in whatever order, and the status is that of all.
    let two = puppet.uses("ask_parent", json!({ "question": "two?" })).await["messageId"].clone();
    let reply = |message: &Value, answer: &str| json!({ "runId": run, "messageId": message, "answer": answer });
    walk.call("reply_subagent", reply(&two, "2")).await;
    let seen = walk.status(&run).await;
    assert_eq!(seen["status"], "waiting_parent_reply", "one waits still");
    assert_eq!(messages(&seen), [has("pending_parent_reply", Value::Null), has("parent_replied", json!("2"))]);
    let own = puppet.uses("check_status", json!({})).await;
    assert_eq!(own["status"], "parent_replied", "what it can fetch comes first for itself");
    assert_eq!(messages(&own), [has("pending_parent_reply", Value::Null), has("parent_replied", json!("2"))]);
    // A reply to what is answered or acknowledged is refused, and the state is told in both documents' words.
    let (code, words) = walk.refused("reply_subagent", reply(&two, "again")).await;
    assert!(code == "bad_argument" && words.contains("RETRIEVED (acknowledged_by_subagent)"), "{words}");
    walk.call("reply_subagent", reply(&one, "1")).await;
    let (_, words) = walk.refused("reply_subagent", reply(&one, "again")).await;
    assert!(words.contains("ANSWERED (parent_replied)"), "{words}");
    assert_eq!(messages(&walk.status(&run).await)[0], has("parent_replied", json!("1")));
    // Unknown, malformed and path-like ids.
    let nobody = "0190a0a0-0000-7000-8000-000000000000";
    let refusals = [
        ("check_status", json!({ "runId": nobody }), "unknown_process"),
        ("check_status", json!({ "runId": "../../../etc/passwd" }), "bad_argument"),
        ("check_status", json!({ "runId": "" }), "bad_argument"),
        ("check_status", json!({ "runId": 7 }), "bad_argument"),
        ("check_status", json!({ "runId": "x".repeat(100_000) }), "bad_argument"),
        ("check_status", json!({}), "bad_argument"),
        ("check_status", json!({ "runId": run, "colour": "red" }), "bad_argument"),
        ("check_message_status", json!({ "runId": run, "messageId": nobody }), "unknown_message"),
        ("check_message_status", json!({ "runId": nobody, "messageId": one }), "unknown_process"),
        ("get_logs", json!({ "runId": nobody }), "unknown_process"),
        ("get_logs", json!({ "runId": "..%2f" }), "bad_argument"),
        ("update_status", json!({ "runId": nobody, "status": "success" }), "unknown_process"),
        ("get_pending_questions", json!({ "run_id": nobody }), "unknown_process"),
        ("get_pending_questions", json!({ "run_id": "/" }), "bad_argument"),
        ("reply_subagent", json!({ "runId": nobody, "messageId": one, "answer": "x" }), "unknown_process"),
        ("reply_subagent", json!({ "runId": run, "messageId": nobody, "answer": "x" }), "unknown_message"),
        ("reply_subagent", json!({ "runId": run, "messageId": "../x", "answer": "x" }), "bad_argument"),
        ("reply_subagent", json!({ "runId": run, "answer": "x" }), "unknown_message"),
        ("reply_subagent", json!({ "runId": run, "messageId": one, "answer": "" }), "bad_argument"),
        ("reply_subagent", json!({ "runId": run, "messageId": one }), "bad_argument"),
        ("reply_subagent", json!({ "runId": run, "run_id": run, "answer": "x" }), "bad_argument"),
        (
            "reply_subagent",
            json!({ "runId": run, "messageId": one, "answer": "x".repeat(2 << 20) }),
            "limit_message_bytes",
        ),
    ];
    for (tool, arguments, code) in refusals {
        let shown: String = arguments.to_string().chars().take(120).collect();
        assert_eq!(walk.refused(tool, arguments).await.0, code, "{tool} {shown}");
    }
    // A run of somebody else is none.
    let stranger =
        walk.host.connect_in_process_as("stranger", assistant_host::tools::profile::Profile::Subagents).await;
    let stranger = stranger.expect("a client");
    for tool in ["check_status", "get_logs"] {
        assert_eq!(refused(&stranger, tool, json!({ "runId": run })).await.0, "unknown_process");
    }
    assert_eq!(refused(&stranger, "reply_subagent", reply(&one, "x")).await.0, "unknown_process");
    stranger.cancel().await.expect("it ends");
    // A tool that nobody has is a protocol error that lists those that there are.
    let (code, _) = walk.refused("spawn_assistant", json!({ "assistant_id": "helper", "query": "x" })).await;
    assert_eq!(code, "");
    // A run that ends while it waits is no plain success: what it never heard is told.
    puppet.uses("check_status", json!({})).await;
    let open = puppet.uses("ask_parent", json!({ "question": "three?" })).await["messageId"].clone();
    puppet.ends("I stop");
    let ended = until(&walk.parent, &run, "success").await;
    assert_eq!((&ended["unanswered"], messages(&ended)[2].0.as_str()), (&json!(1), "expired"), "{ended}");
    assert!(ended["instructions"].as_str().is_some_and(|text| text.contains("never got the answer")), "{ended}");
    let (_, words) = walk.refused("reply_subagent", reply(&open, "late")).await;
    assert!(words.contains("EXPIRED"), "{words}");
    walk.close().await;
}

/// What the document leaves for later is there: several questions at once, and replies that are waited for in vain.
#[tokio::test(flavor = "multi_thread")]
async fn row_0_9_several_questions_and_timeouts() {
    let walk = Walk::new(&[("helper", TALKING)], |bed| bed.limits.pending_questions = 3).await;
    let (run, mut puppet) = walk.starts("helper").await;
    let mut asked = Vec::new();
    for question in ["a?", "b?", "c?"] {
        asked.push(puppet.uses("ask_parent", json!({ "question": question })).await["messageId"].clone());
    }
    assert_eq!(puppet.uses("ask_parent", json!({ "question": "d?" })).await["code"], "limit_pending_questions");
    let pending = walk.call("get_pending_questions", json!({ "run_id": run })).await;
    let listed: Vec<&Value> =
        pending["questions"].as_array().expect("a list").iter().map(|one| &one["message_id"]).collect();
    assert_eq!(listed, asked.iter().collect::<Vec<_>>(), "oldest first");
    walk.close().await;

    let walk = Walk::new(&[("helper", TALKING)], |bed| bed.limits.answer_wait_ms = 40).await;
    let (run, mut puppet) = walk.starts("helper").await;
    ends_with(&mut puppet, "ask_parent", json!({ "question": "well?", "wait_ms": 60_000 })).await;
    let ended = until(&walk.parent, &run, "error").await;
    assert!(ended["error"].as_str().is_some_and(|text| text.contains("Stalled: Parent No-Response")), "{ended}");
    walk.close().await;
}
