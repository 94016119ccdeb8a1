//! Who may read what: whoever was handed a text that names it, and nobody else.

use super::*;

/// What the last call of `read_blob` gave to an assistant.
fn last_read(model: &Steps, name: &str) -> String {
    let asked = model.asked(name);
    let last = asked.last().expect("a call").messages.last().expect("a message").clone();
    texts(&[last])
}

fn reads() -> Step {
    call("read_blob", |heard| json!({ "blob": heard.handle() }))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_reads_what_a_result_names_and_a_child_what_its_task_names() {
    let spawn = |assistant: &'static str| {
        move |heard: &Heard| {
            let query = handles(&heard.texts).last().map_or("paint".into(), |handle| format!("look at {handle}"));
            json!({ "assistant_id": assistant, "query": query, "run_mode": "sync" })
        }
    };
    let model = Steps::default()
        .of(
            "boss",
            vec![
                call("spawn_assistant", spawn("painter")),
                reads(),
                call("spawn_assistant", spawn("critic")),
                says(|heard| format!("done: {}", heard.handle())),
            ],
        )
        .of("painter", vec![gives("picture"), says(|heard| format!("here: {}", heard.handle()))])
        .of("critic", vec![reads(), says(|_| "fine".into())]);
    let (bed, model) = bed(model, "app__give, spawn_assistant");
    let client = bed.open().await;
    let spawned = client.spawn("boss", "go").await;
    assert_eq!(client.end(&spawned).await["status"], "finished");
    let boss = model.asked("boss");
    for (ask, name) in [(&boss[2], "boss"), (&model.asked("critic")[1], "critic")] {
        let last = ask.messages.last().expect("a result").clone();
        let text = serde_json::to_string(&last).expect("JSON");
        assert!(text.contains(&STANDARD.encode(PNG)), "{name} sees it: {text}");
    }
    assert_eq!(count(&bed, "SELECT count(*) FROM blobs"), 1);
    assert_eq!(count(&bed, "SELECT count(*) FROM blob_uses"), 3);
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_process_reads_nothing_and_passes_nothing_on() {
    let told = |heard: &Heard| format!("I was told of {}", heard.handle());
    let model = Steps::default()
        .of("x", vec![gives("picture"), says(|heard| heard.handle())])
        .of("thief", vec![reads(), says(told)]);
    let (bed, model) = bed(model, "app__give");
    let client = bed.open().await;
    let (_, handle) = run(&client, "go").await;
    // Another principal knows the handle, and has no right to it.
    let stranger = client.host.open_session("stranger", "main").await.expect("a session");
    let stranger = Client { host: client.host.clone(), session: stranger };
    assert_eq!(bytes(&stranger, &handle).await, None);
    let spawned = stranger.spawn("thief", &format!("read {handle}")).await;
    assert_eq!(stranger.end(&spawned).await["status"], "finished");
    let given = last_read(&model, "thief");
    assert!(given.contains("unknown_blob") && !given.contains(&STANDARD.encode(PNG)), "{given}");
    assert_eq!(bytes(&stranger, &handle).await, None, "naming it gives nobody a right");
    assert_eq!(count(&bed, "SELECT count(*) FROM blob_uses"), 1);
    // The principal whose it is may hand it to anyone.
    let spawned = client.spawn("thief", &format!("read {handle}")).await;
    assert_eq!(client.end(&spawned).await["status"], "finished");
    assert!(last_read(&model, "thief").contains(&STANDARD.encode(PNG)));
    assert_eq!(bytes(&client, &handle).await.as_deref(), Some(PNG));
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_questions_and_answers_hand_over_what_they_name() {
    let model = Steps::default()
        .of("x", vec![
            gives("picture"),
            call("ask_parent", |heard| json!({ "question": format!("is {} right?", heard.handle()) })),
            reads(),
            says(|heard| heard.handle()),
        ])
        .of("boss", vec![
            call("spawn_assistant", |_| json!({ "assistant_id": "x", "query": "paint" })),
            call("wait_assistant", |_| json!({ "wait_ms": 60_000 })),
            gives("other picture"),
            call("reply_assistant", |heard| {
                json!({ "process_id": heard.after("process_id"), "answer": format!("rather like {}", heard.handle()) })
            }),
            call("wait_assistant", |_| json!({ "wait_ms": 60_000 })),
            says(|_| "done".into()),
        ]);
    let (bed, model) = bed(model, "app__give, spawn_assistant, wait_assistant, reply_assistant, ask_parent");
    let client = bed.open().await;
    let spawned = client.spawn("boss", "go").await;
    assert_eq!(client.end(&spawned).await["status"], "finished");
    let mut other = PNG.to_vec();
    other.extend(0_usize.to_be_bytes());
    assert!(last_read(&model, "x").contains(&STANDARD.encode(other)), "the answer's picture");
    assert_eq!(count(&bed, "SELECT count(*) FROM blobs"), 2);
    assert_eq!(count(&bed, "SELECT count(*) FROM blob_uses"), 4);
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_hands_over_what_its_sender_has() {
    let looks = || -> Step {
        Box::new(|heard| {
            // It was written to before its first step, or is while it waits.
            if handles(&heard.texts).is_empty() {
                let thread = heard.after("Your thread_id is");
                let arguments = json!({ "thread_id": thread, "unread_only": true, "wait_ms": 60_000 });
                call("recv_message", move |_| arguments.clone())(heard)
            } else {
                reads()(heard)
            }
        })
    };
    let model = Steps::default()
        .of("x", vec![gives("picture"), says(|heard| heard.handle())])
        .of("y", vec![looks(), looks(), says(|_| "seen".into())]);
    let (bed, model) = bed(model, "app__give, recv_message");
    let client = bed.open().await;
    let (_, handle) = run(&client, "go").await;
    let spawned = client.spawn("y", "wait").await;
    let message = format!("see {handle}");
    client.call("send_message", json!({ "thread_id": spawned["thread_id"], "message": message })).await;
    assert_eq!(client.end(&spawned).await["status"], "finished");
    assert!(last_read(&model, "y").contains(&STANDARD.encode(PNG)));
    client.host.close().await;
}
