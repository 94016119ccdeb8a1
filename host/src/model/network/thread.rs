//! A thread of its own for the calls of one model, with a runtime that knows no other thread.
//!
//! genai reads on within one poll as long as there is something to read. Where the connection is served on another
//! thread and the server is fast, there always is, and neither a deadline nor a cancel is looked at any more. Here the
//! connection is served on the same thread, so it has to wait for the reader, and the reader for it.

use std::sync::{Mutex, PoisonError};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;

/// The thread, started with the first call.
#[derive(Default)]
pub(super) struct Thread(Mutex<Option<Running>>);

struct Running {
    handle: Handle,
    /// Dropped, it ends the thread.
    _end: oneshot::Sender<()>,
}

impl Thread {
    /// Runs a call there. Dropping the handle gives it up.
    ///
    /// # Errors
    /// The system's, where it has no thread left.
    pub(super) fn run<T: Send + 'static>(
        &self,
        call: impl Future<Output = T> + Send + 'static,
    ) -> std::io::Result<AbortOnDropHandle<T>> {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let handle = match &*running {
            Some(running) => running.handle.clone(),
            None => running.insert(start()?).handle.clone(),
        };
        Ok(AbortOnDropHandle::new(handle.spawn(call)))
    }
}

fn start() -> std::io::Result<Running> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let (end, ended) = oneshot::channel::<()>();
    std::thread::Builder::new().name("model".into()).spawn(move || {
        // Nothing is ever sent: the end of the sender is the word.
        let _ = runtime.block_on(ended);
        runtime.shutdown_background();
    })?;
    Ok(Running { handle, _end: end })
}
