//! A message until its receiver has it, a question until its asker has the answer: the other end is [`super::side`].

use std::time::Duration;

use assistant_host::launcher::RunnerCommand;
use serde_json::{Value, json};

use super::floor::Floor;
use super::{Goal, side, told};
use crate::bed::{Bed, Client, assistant, script};
use crate::timing::{p50, p99};

const ROUNDS: usize = 500;

async fn begin(task: &str) -> Result<(Bed, Client, Value), String> {
    let me = std::env::current_exe().map_err(|error| error.to_string())?;
    let tools = "send_message, recv_message, ask_parent, check_answer";
    let mut bed = Bed::new(&me, &[("x.md", &assistant("x", tools))], &script(&[("x", json!([{ "text": "done" }]))]));
    bed.runner = RunnerCommand { program: me, args: vec![side::ARGUMENT.into()] };
    bed.limits.tool_calls = u32::try_from(2 * ROUNDS).unwrap_or(u32::MAX);
    let client = bed.open().await;
    let spawned = client.spawn("x", &format!("{task} {ROUNDS}")).await;
    Ok((bed, client, spawned))
}

/// From a client's send to the receiver that waits for it in its runner.
///
/// # Errors
/// In words: what did not come as it should.
pub async fn wake(floor: Floor) -> Result<(), String> {
    let (_bed, client, spawned) = begin("wake").await?;
    let thread = &spawned["thread_id"];
    let (mut sent, mut woken) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        client.until(&spawned, "waiting").await;
        let start = side::now_ns();
        client.call("send_message", json!({ "thread_id": thread, "message": round.to_string() })).await;
        sent.push(Duration::from_nanos(side::now_ns() - start));
        let read = json!({ "thread_id": thread, "unread_only": true, "mark_as_read": true, "wait_ms": 20_000 });
        let read = client.call("recv_message", read).await;
        let had = read["messages"][0]["content"].as_str().and_then(|text| text.parse::<u64>().ok());
        let had = had.ok_or_else(|| format!("no time came back: {read}"))?;
        woken.push(Duration::from_nanos(had.saturating_sub(start)));
    }
    let against = ("a durable row", floor.row);
    told("send_message answered, p50", p50(sent), against, None);
    told("send to wake of the waiting receiver, p50", p50(woken.clone()), against, None);
    told("send to wake of the waiting receiver, p99", p99(woken), against, Some(Goal::AtMost(5.0, " ms")));
    client.host.close().await;
    Ok(())
}

/// From a runner's question over its client's answer until the runner has that.
///
/// # Errors
/// In words: what did not come as it should.
pub async fn ask(floor: Floor) -> Result<(), String> {
    let (_bed, client, spawned) = begin("ask").await?;
    let process = &spawned["process_id"];
    let mut cursor = Value::Null;
    loop {
        let mut wait = json!({ "process_ids": [process], "wait_ms": 20_000 });
        if !cursor.is_null() {
            wait["cursor"] = cursor;
        }
        let news = client.call("wait_assistant", wait).await;
        cursor = news["next_cursor"].clone();
        let kinds: Vec<&str> =
            news["events"].as_array().into_iter().flatten().filter_map(|one| one["kind"].as_str()).collect();
        if kinds.iter().any(|kind| ["finished", "failed", "cancelled"].contains(kind)) {
            break;
        }
        if kinds.contains(&"question") {
            client.call("reply_assistant", json!({ "process_id": process, "answer": "yes" })).await;
        }
    }
    let mail = client.mail(&spawned).await;
    let result = mail.last().cloned().unwrap_or_default();
    let times: Vec<Duration> =
        result.split(' ').filter_map(|time| time.parse().ok()).map(Duration::from_nanos).collect();
    if times.len() != ROUNDS {
        return Err(format!("the questions were not answered: {result}"));
    }
    let against = ("a durable row", floor.row);
    told("ask, reply, check, p50", p50(times.clone()), against, Some(Goal::AtMost(3.0, " ms")));
    told("ask, reply, check, p99", p99(times), against, None);
    client.host.close().await;
    Ok(())
}
