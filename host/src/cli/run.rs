//! `assistant-host run`: search, spawn, live progress on stderr, the result on stdout.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::client::Refused;
use super::extras::Extras;
use super::live::Live;
use super::processes::{dollars, short};
use super::seat::Seat;
use super::serve::signal;
use super::{FAILED, Failure, Places, USAGE, say, talk};
use crate::process_table::UNTIL_THEN;
use crate::text::one_line;

/// No assistant fits the task.
pub(super) const NO_MATCH: u8 = 3;
/// No model is configured.
const NO_MODEL: u8 = 4;
/// Cancelled by a signal, as shells tell it.
pub(super) const CANCELLED: u8 = 130;
/// How long the end of a cancelled run is waited for.
const CANCELLED_WITHIN: Duration = Duration::from_secs(20);
/// Events that are read at once.
const EVENTS: u32 = 100;
/// How long one call waits for the next event; the host may make it less.
const WAIT_MS: u64 = 20_000;

#[derive(Args)]
pub(super) struct RunArgs {
    /// The task, complete in itself
    query: String,
    /// Run this assistant instead of the best match
    #[arg(long, value_name = "ID")]
    assistant: Option<String>,
    /// A configured model, instead of the assistant's own
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    #[command(flatten)]
    extras: Extras,
    /// Hold the host inside this command instead of asking the one in the background
    #[arg(long)]
    embedded: bool,
    /// Print the result as JSON, with its process and usage
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(places: &Places, args: RunArgs) -> Result<u8, Failure> {
    let interrupted = tokio::spawn(signal());
    let seat = if args.embedded { Seat::inside(places).await? } else { Seat::at_the_door(places, "run").await? };
    let ended = at(&seat, &args, interrupted).await;
    seat.leave().await;
    ended
}

async fn at(seat: &Seat, args: &RunArgs, interrupted: JoinHandle<()>) -> Result<u8, Failure> {
    let spawned = seat.try_call("spawn_assistant", arguments(args)?).await?.map_err(|refused| not_spawned(&refused))?;
    tell_spawned(&spawned);
    let asked = json!({ "process_id": spawned["process_id"] });
    let mut following = Following { asked, live: Live::begin(), has_door: !args.embedded };
    tokio::select! {
        ended = following.until_ended(seat) => ended?,
        _ = interrupted => {
            following.live.say("cancelling");
            following.cancel(seat).await?;
        }
    }
    drop(following);
    let seen = seat.call("poll_assistant", json!({ "process_id": spawned["process_id"] })).await?["process"].clone();
    let words = final_words(seat, &seen).await?;
    Ok(tell_end(args, &seen, &words))
}

fn arguments(args: &RunArgs) -> Result<Value, Failure> {
    // Behind the door it outlives this command where that is killed; a host inside ends with it anyway.
    let mut asked = json!({ "query": args.query, "detached": !args.embedded });
    match &args.assistant {
        Some(id) => asked["assistant_id"] = json!(id),
        None => asked["search"] = json!({ "text": args.query }),
    }
    if let Some(model) = &args.model {
        asked["model"] = json!(model);
    }
    if let Value::Object(task) = &mut asked {
        args.extras.add_to(task)?;
    }
    Ok(asked)
}

pub(super) fn not_spawned(refused: &Refused) -> Failure {
    let code = match refused.code.as_str() {
        "no_match" | "unknown_assistant" => NO_MATCH,
        "no_model" => NO_MODEL,
        "bad_argument" | "no_runner" => USAGE,
        _ => FAILED,
    };
    Failure::new(code, refused.words())
}

fn tell_spawned(spawned: &Value) {
    let text = |value: &Value| one_line(value.as_str().unwrap_or_default());
    let id = text(&spawned["assistant_id"]);
    let score = spawned["matched"]["score"].as_f64().map(|score| format!(" (score {score:.2})")).unwrap_or_default();
    talk(&format!("{id}{score} on {}", text(&spawned["model"]["used"])));
    match (spawned["model"]["why"].is_string(), spawned["model"]["requested"].is_string()) {
        (true, true) => talk(&format!("  another model than asked for: {}", text(&spawned["model"]["why"]))),
        (true, false) => talk(&format!("  {}", text(&spawned["model"]["why"]))),
        (false, _) => {}
    }
    for one in spawned["unavailable_tools"].as_array().into_iter().flatten() {
        talk(&format!("  without {}: {}", text(&one["tool"]), text(&one["why"])));
    }
}

/// A run that is followed.
struct Following {
    /// What `read_log` is asked next.
    asked: Value,
    live: Live,
    /// Other commands reach the host, so that a question can be answered.
    has_door: bool,
}

impl Following {
    /// Tells each event as it comes, until the process has ended.
    async fn until_ended(&mut self, seat: &Seat) -> Result<(), Failure> {
        self.asked["limit"] = json!(EVENTS);
        self.asked["wait_ms"] = json!(WAIT_MS);
        loop {
            let answer = seat.call("read_log", self.asked.clone()).await?;
            let mut asks = false;
            for event in answer["events"].as_array().into_iter().flatten() {
                let (kind, data) = (event["kind"].as_str().unwrap_or_default(), &event["data"]);
                self.live.event(kind, data);
                asks |= kind == "message" && data["kind"] == "question";
            }
            if asks {
                self.tell_questions(seat).await?;
            }
            self.asked["cursor"] = answer["next_cursor"].clone();
            if answer["done"] == true && answer["more"] != true {
                return Ok(());
            }
        }
    }

    /// Tells what the process waits to be told, and how that is done.
    async fn tell_questions(&self, seat: &Seat) -> Result<(), Failure> {
        let pending = seat.call("get_pending_questions", json!({ "process_id": self.asked["process_id"] })).await?;
        for one in pending["questions"].as_array().into_iter().flatten() {
            let text = |key: &str| one_line(one[key].as_str().unwrap_or_default());
            self.live.say(&format!("  asks: {}", text("question")));
            let how = match self.has_door {
                true => format!("`assistant-host reply {} ANSWER` answers it", short(&text("process_id"))),
                false => "nobody can answer it here; without --embedded `assistant-host reply` does".to_owned(),
            };
            self.live.say(&format!("  {how}"));
        }
        Ok(())
    }

    async fn cancel(&mut self, seat: &Seat) -> Result<(), Failure> {
        seat.call("cancel_assistant", json!({ "process_id": self.asked["process_id"] })).await?;
        let ended = tokio::time::timeout(CANCELLED_WITHIN, self.until_ended(seat)).await;
        ended.unwrap_or_else(|_| Err(Failure::new(FAILED, "the end of the run was not told in time; it is given up")))
    }
}

/// What the process told at its end, in full; it counts as read then.
async fn final_words(seat: &Seat, seen: &Value) -> Result<String, Failure> {
    let mut asked = json!({ "thread_id": seen["thread_id"], "last_n": 1, "mark_as_read": true });
    let mut words = String::new();
    loop {
        let read = seat.call("recv_message", asked.clone()).await?;
        for message in read["messages"].as_array().into_iter().flatten() {
            if message["from_process_id"] == seen["process_id"] {
                words.push_str(message["content"].as_str().unwrap_or_default());
            }
        }
        match &read["next_cursor"] {
            Value::Null => return Ok(words),
            next => asked["cursor"] = next.clone(),
        }
    }
}

/// The result within the last words of a process: all of them, or what it had until it failed or was cancelled.
fn result_of<'a>(seen: &Value, words: &'a str) -> Option<&'a str> {
    if seen["status"] == "finished" {
        return Some(words);
    }
    // What failed may quote the mark; it stands before the mark that counts.
    let error = seen["error"].as_str().unwrap_or_default();
    let from = words.find(error).map_or(0, |at| at + error.len());
    words[from..].split_once(UNTIL_THEN).map(|(_, had)| had)
}

fn tell_end(args: &RunArgs, seen: &Value, words: &str) -> u8 {
    let (usage, result) = (&seen["usage"], result_of(seen, words));
    let ms = seen["finished_at"].as_i64().zip(seen["created_at"].as_i64()).map(|(end, begin)| end - begin);
    if args.json {
        say(&json!({
            "process_id": seen["process_id"], "thread_id": seen["thread_id"], "assistant_id": seen["assistant_id"],
            "status": seen["status"], "reason": seen["reason"], "cause": seen["cause"], "error": seen["error"],
            "result": result, "model": seen["model"], "usage": usage, "model_calls": usage["model_calls"],
            "tool_calls": usage["tool_calls"], "ms": ms, "structured": seen["structured"],
        })
        .to_string());
    } else if let Some(result) = result.filter(|result| !result.is_empty()) {
        say(result);
    }
    let tokens = |key: &str| usage[key].as_u64().map_or_else(|| "?".to_owned(), |count| count.to_string());
    let cost = usage["cost_usd"].as_f64().map(|cost| format!(", {}", dollars(Some(cost)))).unwrap_or_default();
    talk(&format!(
        "{} after {} ms: {} model calls, {} tool calls, {} tokens in, {} out{cost}",
        seen["status"].as_str().unwrap_or_default(),
        ms.unwrap_or(0),
        usage["model_calls"],
        usage["tool_calls"],
        tokens("input_tokens"),
        tokens("output_tokens"),
    ));
    match seen["status"].as_str() {
        Some("finished") => 0,
        Some("cancelled") => CANCELLED,
        _ => {
            let reason = seen["reason"].as_str().unwrap_or("failed");
            talk(&format!("{reason}: {}", one_line(seen["error"].as_str().unwrap_or("no more is known"))));
            if !args.embedded {
                let id = seen["process_id"].as_str().unwrap_or_default();
                talk(&format!("`assistant-host resume {}` goes on with it", short(id)));
            }
            FAILED
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_is_what_it_had() {
        let check = |status: &str, error: &str, words: &str, want: Option<&str>| {
            assert_eq!(result_of(&json!({ "status": status, "error": error }), words), want, "{words}");
        };
        check("finished", "", "all of it", Some("all of it"));
        check("failed", "no luck", "Failed (timed_out): no luck", None);
        check("failed", "no luck", "Failed (timed_out): no luck\n\nUntil then it had:\nhalf", Some("half"));
        check("cancelled", "", "Cancelled (requested).\n\nUntil then it had:\nhalf", Some("half"));
        let error = "it said:\n\nUntil then it had:\nnothing";
        check("failed", error, &format!("Failed (x): {error}{UNTIL_THEN}half"), Some("half"));
    }
}
