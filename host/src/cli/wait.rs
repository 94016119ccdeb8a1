//! `assistant-host wait`: until processes have ended, each end told as it comes.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::client::Client;
use super::colour::Colour;
use super::processes::{Listing, resolve, short};
use super::{FAILED, Failure, Places, say, talk};
use crate::text::{cut, one_line};

/// The time was up; as `timeout` tells it.
const TIMED_OUT: u8 = 124;
/// Processes that are waited for at most.
const WAITED_FOR_MAX: usize = 1_000;
/// Processes that one call of the tool names.
const NAMED_MAX: usize = 100;
/// Ends that wait to be told.
const ENDS_MAX: usize = 64;
/// Characters of a result on a line.
const RESULT_CHARS: usize = 100;
/// How long one call waits; the host may make it less.
const WAIT_MS: u64 = 20_000;

#[derive(Args)]
pub(super) struct WaitArgs {
    /// The processes, or the beginnings or ends of their ids that no other has [default: all that are at work]
    ids: Vec<String>,
    /// Until the first of them has ended
    #[arg(long, conflicts_with = "all")]
    any: bool,
    /// Until all of them have ended; so it is anyway
    #[arg(long)]
    all: bool,
    /// At most for so long; exit code 124 then
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
    /// Print each end as a line of JSON, and why there are no more of them
    #[arg(long)]
    json: bool,
}

pub(super) async fn wait(places: &Places, args: &WaitArgs) -> Result<u8, Failure> {
    let client = Client::connect(places, "wait").await?;
    let waited_for = waited_for(&client, args).await?;
    if waited_for.is_empty() {
        tell_no_end(args.json, &json!({ "kind": "nothing_at_work" }), "nothing is at work");
        return Ok(0);
    }
    let mut ended = Vec::new();
    let telling = tell(&client, &waited_for, args, &mut ended);
    let outcome = match args.timeout {
        Some(seconds) => tokio::time::timeout(Duration::from_secs(seconds), telling).await,
        None => Ok(telling.await),
    };
    if let Ok(told) = outcome {
        told?;
        return Ok(code(&ended));
    }
    let left = waited_for.iter().filter(|id| ended.iter().all(|(other, _)| other != *id));
    let left: Vec<&String> = left.collect();
    let names: Vec<&str> = left.iter().map(|id| short(id)).collect();
    let words = format!("still at work after {} s: {}", args.timeout.unwrap_or(0), names.join(", "));
    tell_no_end(args.json, &json!({ "kind": "timed_out", "still_running": left }), &words);
    Ok(TIMED_OUT)
}

/// Waits until all of these have ended, and tells each end as it comes.
pub(super) async fn until_ended(client: &Client, processes: &[String], json: bool) -> Result<u8, Failure> {
    let args = WaitArgs { ids: Vec::new(), any: false, all: true, timeout: None, json };
    let mut ended = Vec::new();
    tell(client, processes, &args, &mut ended).await?;
    Ok(code(&ended))
}

fn code(ended: &[(String, String)]) -> u8 {
    if ended.iter().all(|(_, kind)| kind == "finished") { 0 } else { FAILED }
}

async fn waited_for(client: &Client, args: &WaitArgs) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    if args.ids.is_empty() {
        // What is below them ends before them, or with them.
        let living = Listing::living(client, WAITED_FOR_MAX).await?.rows()?;
        found.extend(living.into_iter().filter(|row| row.level == 0).map(|row| row.process_id));
    }
    for meant in &args.ids {
        found.push(resolve(client, meant).await?);
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// Tells the ends as they come, and notes them: all, or the first.
async fn tell(
    client: &Client,
    waited_for: &[String],
    args: &WaitArgs,
    ended: &mut Vec<(String, String)>,
) -> Result<(), Failure> {
    let (sender, mut ends) = mpsc::channel(ENDS_MAX);
    let waits = waited_for.chunks(NAMED_MAX).map(|chunk| ends_of(client, chunk, sender.clone()));
    let waits = futures::future::try_join_all(waits.collect::<Vec<_>>());
    drop(sender);
    tokio::pin!(waits);
    let mut waiting = true;
    loop {
        tokio::select! {
            end = ends.recv() => match end {
                Some(end) => {
                    tell_one(&end, args.json);
                    let text = |key: &str| end[key].as_str().unwrap_or_default().to_owned();
                    ended.push((text("process_id"), text("kind")));
                    if args.any {
                        return Ok(());
                    }
                }
                None => return Ok(()),
            },
            done = &mut waits, if waiting => {
                done?;
                waiting = false;
            }
        }
    }
}

/// Sends the end of each of these processes as it comes, until all have ended.
async fn ends_of(client: &Client, processes: &[String], ends: mpsc::Sender<Value>) -> Result<(), Failure> {
    let mut asked = json!({ "process_ids": processes, "wait_ms": WAIT_MS });
    let mut left = processes.len();
    loop {
        let answer = client.call("wait_assistant", asked.clone()).await?;
        for event in answer["events"].as_array().into_iter().flatten() {
            match event["kind"].as_str() {
                Some("finished" | "failed" | "cancelled") => {
                    left = left.saturating_sub(1);
                    if ends.send(event.clone()).await.is_err() {
                        return Ok(());
                    }
                }
                Some("question") => {
                    let text = |key: &str| one_line(event[key].as_str().unwrap_or_default());
                    talk(&format!("{} asks: {}", short(&text("process_id")), text("content")));
                }
                _ => {}
            }
        }
        if left == 0 {
            return Ok(());
        }
        asked["cursor"] = answer["next_cursor"].clone();
    }
}

/// Why no end is told, or no other one.
fn tell_no_end(as_json: bool, line: &Value, words: &str) {
    if as_json {
        say(&line.to_string());
    }
    talk(words);
}

fn tell_one(end: &Value, as_json: bool) {
    if as_json {
        say(&end.to_string());
        return;
    }
    let text = |key: &str| one_line(end[key].as_str().unwrap_or_default());
    let kind = text("kind");
    let status = Colour::of_stdout().status(&kind, &format!("{kind:<9}"));
    say(&format!(
        "{}  {status}  {}: {}",
        short(&text("process_id")),
        text("assistant_id"),
        cut(&text("content"), RESULT_CHARS)
    ));
}
