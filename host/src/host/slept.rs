//! What the machine slept is given back to what waits by the Unix clock: questions.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Mutex;

use super::Host;
use crate::awake::Awake;
use crate::message_box::due;
use crate::store::StoreError;

/// How much of the machine's sleep questions were given back, milliseconds.
#[derive(Default)]
pub(super) struct Slept {
    given_ms: AtomicU64,
    giving: Mutex<()>,
}

impl Host {
    /// The clock of limits of time.
    pub(crate) fn awake(&self) -> &Awake {
        &self.0.options.awake
    }

    /// Gives questions the time back that the machine slept, where that was not done yet. To be called before anything
    /// expires by the Unix clock.
    ///
    /// # Errors
    /// The store's; it is done next time then.
    pub(crate) async fn note_sleep(&self) -> Result<(), StoreError> {
        let slept = &self.0.slept;
        if self.awake().slept_ms() <= slept.given_ms.load(Ordering::Acquire) {
            return Ok(());
        }
        let _giving = slept.giving.lock().await;
        let (all, given) = (self.awake().slept_ms(), slept.given_ms.load(Ordering::Acquire));
        let by = all.saturating_sub(given);
        if by == 0 {
            return Ok(());
        }
        tracing::info!(slept_ms = by, "the machine slept; questions can be answered for so much longer");
        self.store().write(move |tx| due::postpone(tx, by)).await?;
        slept.given_ms.store(all, Ordering::Release);
        Ok(())
    }
}

/// Notes the machine's sleep until the host closes.
pub(super) async fn watch(host: Host) {
    loop {
        tokio::select! {
            () = host.awake().tick() => {}
            () = host.closing().cancelled() => return,
        }
        if let Err(error) = host.note_sleep().await {
            tracing::error!(%error, "that the machine slept is not noted yet");
        }
    }
}
