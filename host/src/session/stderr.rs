//! What a runner writes to stderr: always read, so that it never blocks; the last lines kept, all of them recorded
//! within bounds.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use assistant_protocol::ids::ProcessId;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::task::JoinHandle;

use crate::events;
use crate::host::Host;
use crate::launcher::Tail;
use crate::limits::Limits;

/// The longest line that is kept, in bytes; the rest of it is left out.
const LINE_BYTES_MAX: usize = 8 * 1024;
/// What a recorded line takes in the store beside its text, bytes: its event, and its place in the index.
const ROW_BYTES: usize = 160;
/// How long the end of stderr is waited for when the runner has ended: a grandchild may hold it open.
const END_WAIT: Duration = Duration::from_millis(200);

/// The lines of a runner's stderr.
pub(super) struct Lines {
    tail: Arc<Mutex<Tail>>,
    task: Option<JoinHandle<()>>,
}

impl Lines {
    /// Reads until the end of the pipe, in a task of its own.
    pub(super) fn read(
        host: Host,
        process: ProcessId,
        pipe: impl AsyncRead + Send + Unpin + 'static,
        limits: &Limits,
    ) -> Self {
        let bytes = |max: u64| usize::try_from(max).unwrap_or(usize::MAX);
        let tail = Arc::new(Mutex::new(Tail::new(bytes(limits.stderr_bytes))));
        let recorded_max = bytes(limits.stderr_recorded_bytes);
        let task = tokio::spawn(read(host, process, pipe, tail.clone(), recorded_max));
        Self { tail, task: Some(task) }
    }

    /// The last `count` lines, once the pipe has ended (or soon, where it does not).
    pub(super) async fn last(&mut self, count: usize) -> String {
        self.wait().await;
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).last(count)
    }

    /// Stops reading.
    pub(super) async fn end(&mut self) {
        self.wait().await;
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }

    async fn wait(&mut self) {
        if let Some(task) = &mut self.task
            && let Ok(read) = tokio::time::timeout(END_WAIT, task).await
        {
            if let Err(error) = read {
                tracing::error!(%error, "reading a runner's stderr panicked");
            }
            self.task = None;
        }
    }
}

async fn read(
    host: Host,
    process: ProcessId,
    mut pipe: impl AsyncRead + Unpin,
    tail: Arc<Mutex<Tail>>,
    recorded_max: usize,
) {
    // What may still be recorded, bytes.
    let (mut line, mut left_out, mut room) = (Vec::new(), 0, recorded_max);
    let mut buffer = [0; 4 * 1024];
    loop {
        let read = match pipe.read(&mut buffer).await {
            Ok(read) => read,
            Err(error) => {
                tracing::debug!(%error, %process, "a runner's stderr broke");
                0
            }
        };
        for byte in &buffer[..read] {
            match byte {
                b'\n' => keep(&host, process, &tail, &mut line, &mut left_out, &mut room).await,
                _ if line.len() < LINE_BYTES_MAX => line.push(*byte),
                _ => left_out += 1,
            }
        }
        if read == 0 {
            if !line.is_empty() {
                keep(&host, process, &tail, &mut line, &mut left_out, &mut room).await;
            }
            return;
        }
    }
}

async fn keep(
    host: &Host,
    process: ProcessId,
    tail: &Mutex<Tail>,
    line: &mut Vec<u8>,
    left_out: &mut usize,
    room: &mut usize,
) {
    let mut text = String::from_utf8_lossy(line).trim_end().to_owned();
    if *left_out > 0 {
        text.push_str(&format!(" [{left_out} bytes left out]"));
    }
    line.clear();
    *left_out = 0;
    let bytes = text.len() + ROW_BYTES;
    let fits = bytes <= *room;
    *room = if fits { *room - bytes } else { 0 };
    if fits {
        let told = json!({ "line": text });
        let queued = host.store().write_later(move |tx| events::record(tx, process, events::Kind::Stderr, &told)).await;
        if let Err(error) = queued {
            tracing::debug!(%error, %process, "a line of stderr came after the store was closed");
        }
    }
    tail.lock().unwrap_or_else(PoisonError::into_inner).push(text);
}
