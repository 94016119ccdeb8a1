//! `assistant-host logs`: what a process did, line by line, or its conversation.

use std::io::Write as _;

use clap::Args;
use serde_json::{Value, json};

use super::client::Client;
use super::colour::Colour;
use super::processes::resolve;
use super::{FAILED, Failure, Places, USAGE, lines, say};
use crate::blobs::Handle;
use crate::text::utc;

/// Events that are read at once.
const EVENTS: u32 = 500;
/// Bytes of a blob that are read at once.
const PIECE_BYTES: usize = 1024 * 1024;
/// How long one call waits for the next event; the host may make it less.
const WAIT_MS: u64 = 20_000;

#[derive(Args)]
pub(super) struct LogsArgs {
    /// The process, or a unique part of its id
    id: String,
    /// Go on until it has ended
    #[arg(short, long)]
    follow: bool,
    /// Its conversation with the model instead of its events
    #[arg(long)]
    transcript: bool,
    /// Print each event, or message, as a line of JSON
    #[arg(long)]
    json: bool,
    /// Write the bytes of a picture, file or long text that it names instead, as blob:0123456789abcdef
    #[arg(long, value_name = "HANDLE", conflicts_with_all = ["follow", "transcript", "json"])]
    blob: Option<String>,
}

pub(super) async fn logs(places: &Places, args: &LogsArgs) -> Result<u8, Failure> {
    let client = Client::connect(places, "logs").await?;
    let process = resolve(&client, &args.id).await?;
    if let Some(handle) = &args.blob {
        return blob(&client, handle).await;
    }
    let wait_ms = if args.follow { WAIT_MS } else { 0 };
    let mut asked =
        json!({ "process_id": process, "limit": EVENTS, "transcript": args.transcript, "wait_ms": wait_ms });
    let colour = Colour::of_stdout();
    loop {
        let answer = client.call("read_log", asked.clone()).await?;
        for event in answer["events"].as_array().into_iter().flatten() {
            if args.json {
                say(&event.to_string());
            } else if let Some(text) = if args.transcript { message(event, colour) } else { line(event, colour) } {
                say(&text);
            }
        }
        asked["cursor"] = answer["next_cursor"].clone();
        if answer["more"] != true && (answer["done"] == true || !args.follow) {
            return Ok(0);
        }
    }
}

/// Writes a blob to stdout, piece by piece.
async fn blob(client: &Client, handle: &str) -> Result<u8, Failure> {
    let handle: Handle = handle.parse().map_err(|error| Failure::new(USAGE, format!("--blob {handle}: {error}")))?;
    let mut from = 0;
    loop {
        let piece = client.read(&format!("blob://{}?from={from}&length={PIECE_BYTES}", handle.digits())).await?;
        let mut stdout = std::io::stdout().lock();
        let written = stdout.write_all(&piece).and_then(|()| stdout.flush());
        written.map_err(|error| Failure::new(FAILED, format!("stdout cannot be written: {error}")))?;
        if piece.len() < PIECE_BYTES {
            return Ok(0);
        }
        from += piece.len();
    }
}

fn line(event: &Value, colour: Colour) -> Option<String> {
    let kind = event["kind"].as_str().unwrap_or_default();
    let told = lines::event(kind, &event["data"])?;
    let at = colour.faint(&utc(event["at"].as_i64().unwrap_or(0)));
    let told = match event["data"]["status"].as_str() {
        Some(status) if kind == "status" => colour.status(status, &told),
        _ => told,
    };
    Some(format!("{at}  {kind:<12}  {told}"))
}

fn message(message: &Value, colour: Colour) -> Option<String> {
    let role = message["kind"].as_str().unwrap_or_default();
    let told = lines::said(&message["data"]["content"]);
    (!told.trim().is_empty()).then(|| format!("{}\n{told}\n", colour.faint(&format!("── {role}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_when_which_and_what() {
        let event = json!({ "at": 1_795_839_046_500_i64, "kind": "status", "data": { "status": "running" } });
        assert_eq!(line(&event, Colour::OFF).as_deref(), Some("2026-11-28 04:10:46Z  status        running"));
        let said = json!({ "kind": "user", "data": { "content": "Look\nat it" } });
        assert_eq!(message(&said, Colour::OFF).as_deref(), Some("── user\nLook\nat it\n"));
        assert_eq!(message(&json!({ "kind": "assistant", "data": { "content": [] } }), Colour::OFF), None);
    }
}
