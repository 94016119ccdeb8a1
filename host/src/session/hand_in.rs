//! The last turn of a process that reaches a limit: it is told to hand in what it has, and asked without tools.

use assistant_protocol::error::{Kind, RpcError};
use assistant_protocol::types::{Message, Role};
use tokio::sync::watch;

use super::link::Link;
use crate::tools::ToolError;

/// The limit that is a time.
const WALL: &str = "wall_ms";

/// That a process is to hand in what it has, and by which limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HandIn {
    limit: &'static str,
    count: u64,
    unit: &'static str,
}

impl HandIn {
    /// By the limit of this name, which is `count` of a unit: `HandIn::new("turns", 50, "model calls")`.
    pub(super) fn new(limit: &'static str, count: u64, unit: &'static str) -> Self {
        Self { limit, count, unit }
    }

    /// The end of a process that called tools in its last turn.
    pub(super) fn spent(&self) -> RpcError {
        let Self { limit, count, unit } = self;
        let kind = if *limit == WALL { Kind::DeadlineExceeded } else { Kind::BudgetExceeded };
        let message = format!(
            "limit {limit}: {count} {unit}; in its last turn the assistant called tools instead of handing in what it had"
        );
        RpcError::new(kind, message)
    }

    /// The name of the limit.
    pub(super) fn limit(&self) -> &'static str {
        self.limit
    }

    /// What the assistant reads before its last turn.
    /// With a schema for the result, that is handed in as always.
    pub(super) fn message(&self, schema: bool) -> Message {
        let Self { limit, count, unit } = self;
        let how = match schema {
            true => "Call final_answer now with all that you have; no other tool is called any more.",
            false => {
                "Answer now with all that you have, without tools: what you write is your result. Say what is missing."
            }
        };
        let text = format!(
            "This run is about to reach a limit (limit {limit}: {count} {unit}). This is your last turn. {how}"
        );
        Message::text(Role::User, text)
    }

    /// The answer to tool calls from now on.
    pub(super) fn refusal(&self) -> ToolError {
        let Self { limit, count, unit } = self;
        let message = format!("limit {limit}: this run is about to reach its {count} {unit}; no more tools are called");
        ToolError::new(&format!("limit_{limit}"), message, "Hand in what you have now.")
    }
}

/// Where a session tells its link that the next turn is the last one. What is told first stands.
#[derive(Debug, Default)]
pub(super) struct LastTurn(watch::Sender<Option<HandIn>>);

impl LastTurn {
    /// The next turn is the last one, unless that was told before.
    pub(super) fn tell(&self, hand_in: HandIn) {
        self.0.send_if_modified(|told| {
            let first = told.is_none();
            told.get_or_insert(hand_in);
            first
        });
    }

    /// What was told.
    pub(super) fn told(&self) -> Option<HandIn> {
        self.0.borrow().clone()
    }

    /// Waits until it is told.
    pub(super) async fn until_told(&self) -> HandIn {
        let mut hear = self.0.subscribe();
        let told = hear.wait_for(Option::is_some).await.ok().and_then(|told| told.clone());
        match told {
            Some(hand_in) => hand_in,
            // The sender is `self`, so this cannot be; never spin on it.
            None => std::future::pending().await,
        }
    }
}

/// Waits until the wall time is up at `deadline` (by the clock of limits). Some time before, the next turn becomes the
/// last one.
pub(super) async fn time_is_up(link: &Link, deadline: u64) {
    let (awake, limits) = (link.host.awake(), &link.limits);
    let grace_turn_ms = limits.grace_turn_ms.min(limits.wall_ms / 4);
    if grace_turn_ms > 0 {
        awake.sleep_until(deadline.saturating_sub(grace_turn_ms)).await;
        link.last_turn.tell(HandIn::new(WALL, limits.wall_ms, "ms"));
    }
    awake.sleep_until(deadline).await;
}
