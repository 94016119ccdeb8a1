//! What an agent uses counts against the limits of its process, its tree and the day.

use assistant_host::limits::Limits;

use super::*;

/// Tells events until one is refused, ends the run with that error, and gives the reason, the words and what is kept.
async fn exceeds(limits: Limits, events: &[Value], taken: usize) -> (String, String) {
    let (mut bed, puppets) = bed("tools: [Bash]");
    bed.limits = limits;
    let (client, spawned, mut puppet) = begin(&bed, &puppets).await;
    puppet.tells(text("so far")).await.expect("told");
    let mut refused = None;
    for (at, event) in events.iter().enumerate() {
        let told = puppet.tells(event.clone()).await;
        assert_eq!(told.is_ok(), at < taken, "{at}: {event}: {told:?}");
        refused = told.err().or(refused);
    }
    let refused = refused.expect("one was refused");
    // From then on all that it tells is refused so, and what it asks too.
    let late = puppet.tells(text("late")).await.expect_err("refused");
    assert_eq!(late["message"], refused["message"]);
    let asked = puppet.may("p", "Bash", json!({ "command": "ls" })).result().await;
    assert_eq!(asked["allowed"], false, "{asked}");
    puppet.fails_with(&refused);
    let seen = client.end(&spawned).await;
    assert_eq!((&seen["status"], &seen["reason"]), (&json!("failed"), &json!("budget_exceeded")), "{seen}");
    let mail = client.mail(&spawned).await.pop().unwrap_or_default();
    assert!(mail.ends_with("Until then it had:\nso far"), "{mail}");
    client.host.close().await;
    (refused["message"].as_str().unwrap_or_default().to_owned(), seen["usage"].to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_limit_ends_it_by_its_name() {
    let all = Limits::default();
    let runs = |id: &str| call(id, "Bash", json!({ "command": "ls" }));
    // Told again, a call is the same; with other arguments it is another one.
    let other = call("1", "Bash", json!({ "command": "pwd" }));
    let (why, _) = exceeds(Limits { turns: 2, ..all }, &[usage(1, 1, 2), usage(1, 1, 1)], 1).await;
    assert!(why.starts_with("limit turns: 2 model calls are done"), "{why}");
    let (why, used) = exceeds(Limits { tool_calls: 2, ..all }, &[runs("1"), runs("1"), other, runs("3")], 3).await;
    assert!(why.starts_with("limit tool_calls: 2 tool calls are done"), "{why}");
    assert!(used.contains("\"tool_calls\":3"), "{used}");
    let (why, used) =
        exceeds(Limits { tokens_per_tree: 1_000, ..all }, &[usage(300, 300, 1), usage(300, 300, 1)], 1).await;
    assert!(why.starts_with("limit tokens_per_tree: 0 of 1000 tokens are left"), "{why}");
    // What is used is paid, whether there was enough or not.
    assert!(used.contains("\"input_tokens\":600"), "{used}");
    let (why, _) = exceeds(Limits { tokens_per_day: 1_000, ..all }, &[usage(500, 499, 1)], 0).await;
    assert!(why.starts_with("limit tokens_per_day: 1 of 1000"), "{why}");
    let dollars = |dollars: f64| assistant_host::limits::Usd::new(dollars).expect("an amount");
    let capped = Limits { cost_per_tree_usd: dollars(0.015), ..all };
    let (why, used) = exceeds(capped, &[usage(1, 1, 1), usage(1, 1, 1)], 1).await;
    assert!(why.starts_with("limit cost_per_tree_usd: 0.0000 of 0.0150 dollars are left"), "{why}");
    assert!(used.contains("\"cost_usd\":0.02"), "{used}");
    // What was once not known is not known in all; what is known counts.
    let tokens = json!({ "type": "usage", "usage": { "input_tokens": 5, "output_tokens": 5 }, "calls": 1 });
    let cost = json!({ "type": "usage", "cost_usd": 0.5 });
    let (why, used) = exceeds(capped, &[tokens, cost], 1).await;
    assert!(why.starts_with("limit cost_per_tree_usd: 0.0000 of 0.0150 dollars are left"), "{why}");
    assert!(used.contains("\"cost_usd\":null"), "{used}");
}

/// A tool of ours counts with those of its own.
#[tokio::test(flavor = "multi_thread")]
async fn tools_of_ours_and_of_its_own_count_together() {
    let (mut bed, puppets) = bed("tools: [Bash, list_process, Agent]");
    bed.limits.tool_calls = 2;
    let (client, spawned, mut puppet) = begin(&bed, &puppets).await;
    puppet.tells(call("1", "Bash", json!({}))).await.expect("told");
    puppet.calls("search_assistant", json!({ "text": "tests" })).result().await;
    let refused = puppet.calls("search_assistant", json!({ "text": "tests" })).outcome().await.expect_err("refused");
    assert!(refused["message"].as_str().unwrap_or_default().starts_with("limit tool_calls"), "{refused}");
    let late = puppet.tells(text("late")).await.expect_err("refused");
    assert_eq!(late["message"], refused["message"]);
    puppet.fails_with(&refused);
    assert_eq!(client.end(&spawned).await["reason"], "budget_exceeded");
    client.host.close().await;
}

/// A tool that takes its time is no stall; a runner that says nothing at all is one.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_at_work_is_no_stall() {
    let hand = assistant_host::awake::ByHand::default();
    let (mut bed, puppets) = bed("tools: [Bash]");
    bed.awake = hand.clock();
    bed.limits.wall_ms = 30 * 3_600 * 1_000;
    // The time by hand goes faster than a runner that lives can answer.
    bed.limits.ping_ms = 100_000_000;
    let (client, spawned, mut puppet) = begin(&bed, &puppets).await;
    puppet.tells(call("1", "Bash", json!({ "command": "make" }))).await.expect("told");
    for _ in 0..50 {
        hand.advance(std::time::Duration::from_secs(1_500));
        // Its answer comes behind whatever the host does when the time is up.
        client.poll(&spawned).await;
    }
    puppet.tells(result("1", "made")).await.expect("told");
    puppet.ends("done");
    assert_eq!(client.end(&spawned).await["status"], "finished");
    client.host.close().await;
}
