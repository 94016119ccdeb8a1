//! What a server writes to stderr: always read, so that it never blocks; the last lines kept, each of them in the log of
//! the host where that is wanted.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::task::JoinHandle;

use super::secrets::Secrets;
use crate::launcher::Tail;
use crate::text::cut;

/// The longest line that is kept, bytes; the rest of it is left out.
const LINE_BYTES_MAX: usize = 4 * 1024;
/// Lines that an error quotes, and their characters.
const QUOTED_LINES: usize = 5;
const QUOTED_CHARS_MAX: usize = 1_000;
/// How long the end of stderr is waited for when the server has ended: something that it started may hold it open.
const END_WAIT: Duration = Duration::from_millis(200);

/// The stderr of a server. Reading ends when this is dropped.
pub(super) struct Stderr {
    tail: Arc<Mutex<Tail>>,
    task: tokio::sync::Mutex<Option<JoinHandle<()>>>,
    abort: tokio::task::AbortHandle,
}

impl Stderr {
    /// Reads a server's stderr, without the secrets that it is given.
    pub(super) fn read(
        name: &str,
        pipe: impl AsyncRead + Send + Unpin + 'static,
        bytes_max: u64,
        secrets: Secrets,
    ) -> Self {
        let tail = Arc::new(Mutex::new(Tail::new(usize::try_from(bytes_max).unwrap_or(usize::MAX))));
        let task = tokio::spawn(read(name.to_owned(), pipe, tail.clone(), secrets));
        Self { tail, abort: task.abort_handle(), task: tokio::sync::Mutex::new(Some(task)) }
    }

    /// The last lines, as the end of a sentence; nothing where there are none. Waits a little for the end of the pipe.
    pub(super) async fn quoted(&self) -> String {
        if let Some(task) = self.task.lock().await.as_mut()
            && !task.is_finished()
            && let Ok(Err(error)) = tokio::time::timeout(END_WAIT, task).await
        {
            tracing::debug!(%error, "reading a server's stderr ended early");
        }
        let said = self.tail.lock().unwrap_or_else(PoisonError::into_inner).last(QUOTED_LINES);
        let said = said.trim();
        if said.is_empty() { String::new() } else { format!("; it said: {}", cut(said, QUOTED_CHARS_MAX)) }
    }
}

impl Drop for Stderr {
    fn drop(&mut self) {
        self.abort.abort();
    }
}

async fn read(name: String, mut pipe: impl AsyncRead + Unpin, tail: Arc<Mutex<Tail>>, secrets: Secrets) {
    let (mut line, mut left_out) = (Vec::new(), 0_usize);
    let mut buffer = [0; 4 * 1024];
    loop {
        let read = match pipe.read(&mut buffer).await {
            Ok(read) => read,
            Err(error) => {
                tracing::debug!(%error, server = %name, "a server's stderr broke");
                0
            }
        };
        for byte in &buffer[..read] {
            match byte {
                b'\n' => keep(&name, &tail, &secrets, &mut line, &mut left_out),
                _ if line.len() < LINE_BYTES_MAX => line.push(*byte),
                _ => left_out += 1,
            }
        }
        if read == 0 {
            if !line.is_empty() {
                keep(&name, &tail, &secrets, &mut line, &mut left_out);
            }
            return;
        }
    }
}

fn keep(name: &str, tail: &Mutex<Tail>, secrets: &Secrets, line: &mut Vec<u8>, left_out: &mut usize) {
    let mut text = secrets.hide(String::from_utf8_lossy(line).trim_end());
    if *left_out > 0 {
        text.push_str(&format!(" [{left_out} bytes left out]"));
    }
    line.clear();
    *left_out = 0;
    tracing::debug!(server = %name, line = %text, "a server says");
    tail.lock().unwrap_or_else(PoisonError::into_inner).push(text);
}
