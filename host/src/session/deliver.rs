//! Messages for a runner that makes no model calls: `deliver_message`, one at a time and in order.
//!
//! A message is delivered in the commit after the runner's answer, so a crash in between repeats it and none is lost.
//! Messages are given while a `run` is in flight; the agent then takes them into that run. One that came behind the
//! answer to `run` was not taken into it, whether it is still queued or was given when that answer was on its way. So
//! when a process settles:
//!
//! * nothing is given any more, and what is being given is waited for;
//! * `run` is called again if a message is queued, or if one was answered behind `run`: all that is queued is given
//!   first, so that the agent has it when it is asked to go on;
//! * the same holds where an unsettled process is woken.
//!
//! What the agent answered before its answer to `run` is part of that run: nothing is called again for its sake.

use std::sync::Arc;

use assistant_protocol::error::{Kind, RpcError};
use assistant_protocol::ids::ProcessId;
use assistant_protocol::methods::DeliverMessage;
use assistant_protocol::peer::{CallError, Peer};
use assistant_protocol::types::DeliverMessageParams;
use serde_json::json;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;

use super::{Runner, Went, recorded};
use crate::host::Host;
use crate::message_box::{self, Boxed};
use crate::store::StoreError;
use crate::{conversation, events};

/// The giving of messages to one runner. Dropped, it ends.
pub(super) struct Delivery {
    open: watch::Sender<bool>,
    given: watch::Receiver<Given>,
    /// Held while a message is being given.
    giving: Arc<Mutex<()>>,
    /// The place of the answer to the last `run` among the answers of the link.
    ran: u64,
    task: JoinHandle<()>,
}

/// What a runner was given so far.
#[derive(Debug, Default, Clone)]
struct Given {
    /// Messages.
    count: u64,
    /// The place of the last answer among the answers of the link.
    last: u64,
    /// Why nothing is given any more.
    refused: Option<Refused>,
}

/// Why a runner did not take a message.
#[derive(Debug, Clone)]
enum Refused {
    /// The link has ended.
    Closed,
    /// It refused, or the message does not fit into what it reads.
    Because(String),
}

impl Drop for Delivery {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Delivery {
    /// Begins closed.
    pub(super) fn new(host: &Host, process: ProcessId, peer: &Peer) -> Self {
        let (open, opened) = watch::channel(false);
        let (told, given) = watch::channel(Given::default());
        let giving: Arc<Mutex<()>> = Arc::default();
        let giver = Giver { host: host.clone(), process, peer: peer.clone(), giving: giving.clone() };
        let task = tokio::spawn(giver.run(opened, told));
        Self { open, given, giving, ran: 0, task }
    }

    /// A `run` is in flight.
    pub(super) fn open(&self) {
        self.open.send_replace(true);
    }

    /// The `run` was answered.
    pub(super) fn close(&mut self, ran: u64) {
        self.open.send_replace(false);
        self.ran = ran;
    }

    /// Waits until a message was not taken.
    pub(super) async fn refused(&self) -> CallError {
        let mut given = self.given.clone();
        let refused = given.wait_for(|given| given.refused.is_some()).await.map(|given| given.refused.clone());
        match refused {
            Ok(Some(Refused::Because(why))) => {
                let message = format!("the runner did not take a message: {why}");
                CallError::Answered(RpcError::new(Kind::InternalError, message))
            }
            Ok(Some(Refused::Closed)) | Ok(None) | Err(_) => CallError::Closed,
        }
    }
}

/// As [`Delivery::refused`]; never where messages are not given so.
pub(super) async fn refused(delivery: Option<&Delivery>) -> CallError {
    match delivery {
        Some(delivery) => delivery.refused().await,
        None => std::future::pending().await,
    }
}

impl Runner {
    /// Gives nothing more, and waits for what is being given. Tells whether the agent got something that its answer to
    /// `run` does not know.
    pub(super) async fn stop_giving(&mut self) -> Result<Went<bool>, StoreError> {
        let Some(delivery) = &self.delivery else { return Ok(Went::On(false)) };
        let (giving, given, ran) = (delivery.giving.clone(), delivery.given.clone(), delivery.ran);
        self.unless_stopped(async move {
            drop(giving.lock().await);
            Ok(given.borrow().last > ran)
        })
        .await
    }

    /// Gives what is queued now, and then whatever comes.
    pub(super) async fn give_queued(&mut self) -> Result<Went<()>, StoreError> {
        let Some(delivery) = &self.delivery else { return Ok(Went::On(())) };
        let (store, process, mut given) = (self.host.store().clone(), self.process, delivery.given.clone());
        let before = given.borrow().count;
        let queued = store.read(move |db| message_box::queued_for(db, process)).await?;
        delivery.open();
        self.unless_stopped(async move {
            let all = before + u64::from(queued);
            // An error is the end of the task: it is told by `refused`.
            drop(given.wait_for(|given| given.count >= all || given.refused.is_some()).await);
            Ok(())
        })
        .await
    }
}

struct Giver {
    host: Host,
    process: ProcessId,
    peer: Peer,
    giving: Arc<Mutex<()>>,
}

impl Giver {
    async fn run(self, mut open: watch::Receiver<bool>, told: watch::Sender<Given>) {
        let mut waiter = self.host.store().waiter(self.process);
        while open.wait_for(|open| *open).await.is_ok() {
            let giving = self.giving.lock().await;
            // It may have been closed meanwhile.
            if !*open.borrow() {
                continue;
            }
            let given = self.give_next(&told).await;
            drop(giving);
            match given {
                Ok(true) => {}
                Ok(false) => tokio::select! {
                    () = waiter.news() => {}
                    changed = open.changed() => if changed.is_err() { return },
                },
                Err(refused) => {
                    told.send_modify(|given| given.refused = Some(refused));
                    return;
                }
            }
        }
    }

    /// Gives the oldest queued message; false where there is none.
    async fn give_next(&self, told: &watch::Sender<Given>) -> Result<bool, Refused> {
        let because = |error: StoreError| Refused::Because(error.to_string());
        let process = self.process;
        let queued = self.host.store().read(move |db| message_box::queued_for(db, process)).await.map_err(because)?;
        if queued == 0 {
            return Ok(false);
        }
        let next = self.host.store().write(move |tx| {
            let next = message_box::being_given(tx, process)?;
            if let Some(next) = &next {
                recorded::gives(tx, process, next.mail.id)?;
            }
            Ok(next)
        });
        let next = next.await.map_err(because)?;
        let Some(next) = next else { return Ok(false) };
        let (kind, thread_id) = (Some(next.kind.to_string()), Some(next.thread));
        let params = DeliverMessageParams { message: next.mail.clone(), kind, thread_id };
        let (place, answer) = self.peer.call_in_order::<DeliverMessage>(&params).await;
        match answer {
            Ok(_) => {}
            Err(CallError::Closed) => return Err(Refused::Closed),
            Err(error) => return Err(Refused::Because(error.to_string())),
        }
        self.delivered(next).await.map_err(because)?;
        told.send_modify(|given| {
            given.count += 1;
            given.last = place;
        });
        Ok(true)
    }

    /// The agent has a message.
    async fn delivered(&self, one: Boxed) -> Result<(), StoreError> {
        let process = self.process;
        let delivered = self.host.store().write(move |tx| {
            message_box::hand_over(tx, [&one], None)?;
            conversation::append(tx, process, [(&message_box::as_conversation(&one), Some(one.mail.id))])?;
            let (from, to) = (&one.mail.from_assistant_id, &one.mail.to_assistant_id);
            let told = json!({ "message_id": one.mail.id, "kind": "delivered", "from": from, "to": to });
            events::record(tx, process, events::Kind::Message, &told)
        });
        delivered.await
    }
}
