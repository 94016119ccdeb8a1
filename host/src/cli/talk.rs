//! `send`, `questions`, `reply` and `cancel`: what is said to processes at work.

use std::io::Read;

use clap::Args;
use serde_json::{Value, json};

use super::client::Client;
use super::processes::{Listing, resolve, short};
use super::{FAILED, Failure, Places, USAGE, ago, say, talk};
use crate::text::one_line;

/// The longest text that is read from stdin, bytes; the host tells its own limit.
const STDIN_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Processes that `cancel --all` ends at most.
const CANCELLED_MAX: usize = 10_000;

#[derive(Args)]
pub(super) struct SendArgs {
    /// The process, or a unique part of its id
    id: String,
    /// What to say; `-` reads it from stdin
    text: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(super) struct QuestionsArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(super) struct ReplyArgs {
    /// The process that asks, or a unique part of its id
    id: String,
    /// The answer; `-` reads it from stdin
    answer: String,
    /// Which question, where it has asked several
    #[arg(long, value_name = "ID")]
    message: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(super) struct CancelArgs {
    /// The processes, or the beginnings or ends of their ids that no other has
    #[arg(required_unless_present = "all")]
    ids: Vec<String>,
    /// All that are at work
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// Why, for their logs
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A text of the command line, or of stdin.
pub(super) fn text(given: &str) -> Result<String, Failure> {
    if given != "-" {
        return Ok(given.to_owned());
    }
    let mut read = String::new();
    let stdin = std::io::stdin().lock().take(STDIN_BYTES_MAX + 1).read_to_string(&mut read);
    stdin.map_err(|error| Failure::new(USAGE, format!("stdin cannot be read: {error}")))?;
    if read.len() as u64 > STDIN_BYTES_MAX {
        return Err(Failure::new(USAGE, format!("stdin has more than {STDIN_BYTES_MAX} bytes")));
    }
    Ok(read)
}

pub(super) async fn send(places: &Places, args: &SendArgs) -> Result<u8, Failure> {
    let message = text(&args.text)?;
    let client = Client::connect(places, "send").await?;
    let process = resolve(&client, &args.id).await?;
    let polled = client.call("poll_assistant", json!({ "process_id": process, "include_summary": false })).await?;
    let asked = json!({ "thread_id": polled["process"]["thread_id"], "message": message });
    let sent = client.call("send_message", asked).await?;
    match args.json {
        true => say(&sent.to_string()),
        false => talk(&format!("sent to {}", short(&process))),
    }
    Ok(0)
}

pub(super) async fn questions(places: &Places, args: &QuestionsArgs) -> Result<u8, Failure> {
    let client = Client::connect(places, "questions").await?;
    let pending = client.call("get_pending_questions", json!({})).await?;
    if args.json {
        say(&pending.to_string());
        return Ok(0);
    }
    let questions = pending["questions"].as_array().cloned().unwrap_or_default();
    if questions.is_empty() {
        talk("nobody asks anything");
    }
    for asked in &questions {
        let text = |key: &str| one_line(asked[key].as_str().unwrap_or_default());
        let since = ago(asked["asked_at"].as_i64().unwrap_or_default());
        say(&format!(
            "{}  {} asked {since} ago: {}",
            short(&text("process_id")),
            text("assistant_id"),
            text("question")
        ));
        if several(&questions, asked) {
            say(&format!("    --message {}", text("message_id")));
        }
    }
    Ok(0)
}

/// Whether the process of a question has asked others too.
fn several(questions: &[Value], asked: &Value) -> bool {
    questions.iter().filter(|other| other["process_id"] == asked["process_id"]).count() > 1
}

pub(super) async fn reply(places: &Places, args: &ReplyArgs) -> Result<u8, Failure> {
    let answer = text(&args.answer)?;
    let client = Client::connect(places, "reply").await?;
    let process = resolve(&client, &args.id).await?;
    let mut asked = json!({ "process_id": process, "answer": answer });
    if let Some(message) = &args.message {
        asked["message_id"] = json!(message);
    }
    let replied = client.call("reply_assistant", asked).await?;
    match args.json {
        true => say(&replied.to_string()),
        false => talk(&format!("answered {}", short(&process))),
    }
    Ok(0)
}

pub(super) async fn cancel(places: &Places, args: &CancelArgs) -> Result<u8, Failure> {
    let client = Client::connect(places, "cancel").await?;
    let mut meant = Vec::new();
    if args.all {
        let living = Listing::living(&client, CANCELLED_MAX).await?.rows()?;
        meant.extend(living.into_iter().filter(|row| row.level == 0).map(|row| row.process_id));
    }
    for id in &args.ids {
        meant.push(resolve(&client, id).await?);
    }
    let (mut cancelled, mut code) = (Vec::new(), 0);
    for process in &meant {
        match client.try_call("cancel_assistant", json!({ "process_id": process, "reason": args.reason })).await? {
            Ok(answer) => {
                let ended = answer["cancelled"].as_array().cloned().unwrap_or_default();
                if ended.is_empty() {
                    talk(&format!("{} has ended already, or is ending", short(process)));
                }
                cancelled.extend(ended);
            }
            Err(refused) => {
                talk(&format!("{}: {}", short(process), refused.words()));
                code = FAILED;
            }
        }
    }
    if args.json {
        say(&json!({ "cancelled": cancelled }).to_string());
    } else {
        for id in &cancelled {
            say(id.as_str().unwrap_or_default());
        }
        let told = match cancelled.len() {
            0 => "none is cancelled".to_owned(),
            1 => "1 is being cancelled; `wait` tells when it has ended".to_owned(),
            more => format!("{more} are being cancelled; `wait` tells when they have ended"),
        };
        talk(&told);
    }
    Ok(code)
}
