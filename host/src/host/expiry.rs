//! Expires questions when their time is up by the host's clock, so that whoever waits for an answer hears of it.

use std::time::Duration;

use super::Host;
use crate::message_box::due;
use crate::store::{QUESTIONS, StoreError, Waiter};

/// How often the clock is looked at while a question waits: it may go on faster than this machine's, or be set.
const LOOK_MS: u64 = 500;
/// How soon the table is looked at again where that failed.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Runs until the host closes.
pub(super) async fn run(host: Host) {
    let mut waiter = host.store().waiter(QUESTIONS);
    let closing = host.closing().clone();
    while closing.run_until_cancelled(next(&host, &mut waiter)).await.is_some() {}
}

/// Waits until a question is due and expires it, or until there is another one.
async fn next(host: &Host, waiter: &mut Waiter) {
    if let Err(error) = expire_next(host, waiter).await {
        tracing::error!(%error, "questions could not be looked at");
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

async fn expire_next(host: &Host, waiter: &mut Waiter) -> Result<(), StoreError> {
    let Some(due) = host.store().read(due::next).await? else {
        waiter.news().await;
        return Ok(());
    };
    loop {
        let left = u64::try_from(due.saturating_sub(host.now())).unwrap_or(0);
        if left == 0 {
            // What the machine has slept is given back first: then it may be due later.
            host.note_sleep().await?;
            return host.store().write(|tx| due::expire(tx)).await;
        }
        tokio::select! {
            () = waiter.news() => return Ok(()),
            () = tokio::time::sleep(Duration::from_millis(left.min(LOOK_MS))) => {}
        }
    }
}
