//! What is told of an agent that did not do what it was asked: how it has ended, what it wrote last, what is to be done.

use std::time::Duration;

use agent_client_protocol::v1::schema::AuthMethod;
use assistant_protocol::error::{Kind, RpcError};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::internal;
use super::link::{AskError, Link};
use crate::adapter::process::{Launch, Process};

/// How long one that says no more may take to exit, in milliseconds; then it is ended.
const EXIT_MS: u64 = 3_000;
/// How long what is left of its output may take once it has exited, in milliseconds.
const DRAIN_MS: u64 = 1_000;
/// The longest text of an agent that is told in an error, in characters.
const TEXT_CHARS_MAX: usize = 2_000;

/// Waits until the process of an agent has ended, and what it wrote has had time to come: others may hold its output open.
pub(super) async fn gone(process: &mut Process) {
    if process.exited().await.is_err() {
        // The system does not tell; the end of its output will.
        std::future::pending::<()>().await;
    }
    sleep(Duration::from_millis(DRAIN_MS)).await;
}

/// Waits a moment for the process of an agent that says no more, and ends it.
pub(super) async fn how_it_ended(process: &mut Process, otherwise: &str) -> String {
    match timeout(Duration::from_millis(EXIT_MS), process.exited()).await {
        Ok(Ok(exit)) => exit.to_string(),
        Ok(Err(_)) | Err(_) => {
            process.end(Duration::ZERO).await;
            otherwise.to_owned()
        }
    }
}

/// The error for an agent that did not do what it was asked: how it has ended, where it has, and what it wrote.
pub(super) async fn lost(process: &mut Process, link: &Link, doing: &str, error: &AskError) -> RpcError {
    let text = match error {
        // Its model, mostly: the agent lives.
        AskError::Answered(_) => {
            let text: String = error.to_string().chars().take(TEXT_CHARS_MAX).collect();
            return RpcError::new(Kind::ModelFailed, format!("the agent failed at {doing}: {text}"))
                .with("provider", "agent")
                .with("status", Value::Null)
                .with("retryable", false);
        }
        AskError::Gone(why) => why.clone(),
    };
    let closed = "the agent closed its output";
    let how = how_it_ended(process, "").await;
    let mut text = match (how.is_empty(), text == closed) {
        (true, _) => text,
        (false, true) => format!("the agent {how}"),
        (false, false) => format!("{text}; it {how}"),
    };
    let odd = link.oddities();
    if let Some(junk) = odd.first_junk {
        text = format!("{text}\nIt wrote {} lines that are no messages; the first: {junk}", odd.junk_lines);
    }
    internal(format!("at {doing}: {text}"))
}

/// The error for an agent that wants a login, with the ways that it offers.
pub(super) fn wants_login(launch: &Launch, methods: &[AuthMethod]) -> RpcError {
    let program = launch.program.display();
    let told = |method: &AuthMethod| {
        let description = method.description().unwrap_or_default();
        if description.is_empty() { method.name().to_owned() } else { format!("{} ({description})", method.name()) }
    };
    let ways: Vec<String> = methods.iter().map(told).collect();
    let ways = if ways.is_empty() { String::new() } else { format!(" It offers: {}.", ways.join("; ")) };
    let text =
        format!("the agent wants a login, which only you can do: start {program} once in a terminal and log in.{ways}");
    RpcError::new(Kind::ModelFailed, text)
        .with("provider", "agent")
        .with("status", Value::Null)
        .with("retryable", false)
}
