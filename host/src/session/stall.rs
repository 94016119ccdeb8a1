//! Whether a runner gets on: what happens is noted, and after half of the bound without anything it is pinged, so that
//! busy and stuck can be told apart.
//!
//! Progress is: a model call begins or ends, a piece of its answer, a tool call begins or ends, `on_progress`. What
//! the host itself bounds or delays does not count: tool calls and waits in flight, a model call that waits for its
//! place or for its next attempt. While a tool of an agent's own is at work, the runner only has to answer pings.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use assistant_protocol::methods::Ping;
use assistant_protocol::peer::{CallError, Peer};
use assistant_protocol::types::Empty;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::json;

use super::link::Link;
use super::watch::Stop;
use crate::awake::Awake;
use crate::events;
use crate::limits::Limits;
use crate::model::{Answer, Ask, Model, ModelError, Progress};

/// How a run stalled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stalled {
    /// The runner does not answer.
    Deaf,
    /// It answers, and does nothing.
    Idle,
    /// It waits for a model that brings nothing.
    Model,
}

impl Stalled {
    /// What is told: the limit, its count, and what to do.
    pub(super) fn words(self, limits: &Limits) -> String {
        let Limits { stall_ms, ping_ms, .. } = limits;
        match self {
            Self::Deaf => format!(
                "limit ping_ms: the runner did nothing for {} ms and does not answer: a ping waited {ping_ms} ms; it is \
                 stuck. Resume it to go on",
                first_look_ms(limits)
            ),
            Self::Idle => format!(
                "limit stall_ms: nothing happened for {stall_ms} ms; the runner answers a ping, but does nothing. Resume \
                 it to go on"
            ),
            Self::Model => format!(
                "limit stall_ms: the model has brought nothing for {stall_ms} ms; the runner answers, and waits for it. \
                 Resume it to ask again, or use another model"
            ),
        }
    }
}

/// When something happened last, and what must not be counted.
pub(super) struct Pulse {
    awake: Awake,
    /// By the clock of limits, milliseconds.
    last: AtomicU64,
    /// Things in flight that something else bounds.
    exempt: AtomicU32,
    /// Of these, model calls that are at the model now.
    attempts: AtomicU32,
}

impl Pulse {
    pub(super) fn new(awake: Awake) -> Self {
        let last = AtomicU64::new(awake.now_ms());
        Self { awake, last, exempt: AtomicU32::new(0), attempts: AtomicU32::new(0) }
    }

    /// Something happens.
    pub(super) fn beat(&self) {
        self.last.store(self.awake.now_ms(), Ordering::Release);
    }

    /// Something begins that is bounded otherwise; it ends when the value is dropped.
    pub(super) fn exempt(&self) -> impl Drop + '_ {
        InFlight::new(self, &self.exempt)
    }

    /// An exempt model call is at its model from now on, and counts until the value is dropped.
    fn attempt(&self) -> impl Drop + '_ {
        InFlight::new(self, &self.attempts)
    }

    /// When something happened last; that is now while something exempt is in flight.
    fn last(&self) -> u64 {
        let counts = self.exempt.load(Ordering::Acquire) <= self.attempts.load(Ordering::Acquire);
        if counts { self.last.load(Ordering::Acquire) } else { self.awake.now_ms() }
    }

    fn at_the_model(&self) -> bool {
        self.attempts.load(Ordering::Acquire) > 0
    }
}

struct InFlight<'a> {
    pulse: &'a Pulse,
    count: &'a AtomicU32,
}

impl<'a> InFlight<'a> {
    fn new(pulse: &'a Pulse, count: &'a AtomicU32) -> Self {
        pulse.beat();
        count.fetch_add(1, Ordering::AcqRel);
        Self { pulse, count }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.pulse.beat();
        self.count.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A model whose attempts are noted.
pub(super) struct Noted<'a> {
    pub(super) model: &'a dyn Model,
    pub(super) pulse: &'a Pulse,
}

impl Model for Noted<'_> {
    fn answer<'a>(
        &'a self,
        ask: Ask,
        seen: &'a (dyn Fn(Progress) + Sync),
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        async move {
            let _at_the_model = self.pulse.attempt();
            self.model.answer(ask, seen).await
        }
        .boxed()
    }

    fn provider(&self) -> &str {
        self.model.provider()
    }
}

/// Waits until a run has stalled; for ever where it does not.
pub(super) async fn watch(link: &Link, peer: &Peer) -> Stop {
    let (pulse, awake, limits) = (&link.pulse, link.host.awake(), &link.limits);
    loop {
        let since = pulse.last();
        awake.sleep_until(since.saturating_add(first_look_ms(limits))).await;
        if pulse.last() != since {
            continue;
        }
        let answers = ping(peer, awake, limits.ping_ms).await;
        if pulse.last() != since {
            continue;
        }
        if !answers {
            link.record(events::Kind::Link, json!({ "limit": "ping_ms", "unanswered": "ping", "ms": limits.ping_ms }))
                .await;
            return Stop::Stalled(Stalled::Deaf);
        }
        if link.own_at_work() {
            // What an agent's own tool does, the wall time bounds.
            pulse.beat();
            continue;
        }
        awake.sleep_until(since.saturating_add(limits.stall_ms)).await;
        if pulse.last() == since {
            return Stop::Stalled(if pulse.at_the_model() { Stalled::Model } else { Stalled::Idle });
        }
    }
}

/// How long nothing may happen until the runner is pinged, milliseconds.
fn first_look_ms(limits: &Limits) -> u64 {
    (limits.stall_ms / 2).max(1)
}

/// Whether the runner answers in time. An error is an answer; a link that has ended is told elsewhere.
async fn ping(peer: &Peer, awake: &Awake, within_ms: u64) -> bool {
    let until = awake.now_ms().saturating_add(within_ms);
    tokio::select! {
        biased;
        answered = peer.call::<Ping>(&Empty {}) => match answered {
            Err(CallError::Closed) => std::future::pending().await,
            _ => true,
        },
        () = awake.sleep_until(until) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::awake::ByHand;

    #[test]
    fn what_is_bounded_otherwise_does_not_count() {
        let hand = ByHand::default();
        let pulse = Pulse::new(hand.clock());
        let check = |want: u64| {
            hand.advance(Duration::from_millis(100));
            assert_eq!(pulse.last(), want);
        };
        check(0);
        pulse.beat();
        check(100);
        let tool = pulse.exempt();
        check(300);
        // A model call that waits for its place, and then is at the model.
        let call = pulse.exempt();
        check(400);
        let attempt = pulse.attempt();
        check(500);
        drop(tool);
        check(500);
        assert!(pulse.at_the_model());
        check(500);
        drop(attempt);
        check(800);
        drop(call);
        check(800);
        check(800);
        assert!(!pulse.at_the_model());
    }
}
