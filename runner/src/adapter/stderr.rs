//! What an agent writes to stderr: read for as long as it lives, passed on, and its end kept for errors.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::ChildStderr;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::lines::{Line, Lines};

/// The longest line that is kept, in bytes.
const LINE_BYTES_MAX: usize = 8 * 1024;
/// Lines that are kept.
const LINES_MAX: usize = 8;
/// How long the last lines may take once the agent has ended, in milliseconds.
const LAST_MS: u64 = 500;

/// The reader of an agent's stderr. Dropped, it reads no more.
pub(crate) struct Stderr {
    last: Arc<Mutex<VecDeque<String>>>,
    task: JoinHandle<()>,
}

impl Stderr {
    /// Begins to read.
    pub(crate) fn read(stderr: Option<ChildStderr>) -> Self {
        let last: Arc<Mutex<VecDeque<String>>> = Arc::default();
        let kept = last.clone();
        let task = tokio::spawn(async move {
            let Some(stderr) = stderr else { return };
            let mut lines = Lines::new(stderr, LINE_BYTES_MAX);
            let mut out = tokio::io::stderr();
            // What cannot be read is the end of it; the agent's own end is told by its exit. What cannot be passed on is kept.
            while let Ok(Some(line)) = lines.next().await {
                let line = match line {
                    Line::Whole(line) => line,
                    Line::TooLong { start, bytes } => format!("{start} … ({bytes} bytes)"),
                };
                let passed_on = out.write_all(format!("{line}\n").as_bytes()).await;
                if !line.trim().is_empty() {
                    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                    kept.push_back(line);
                    let surplus = kept.len().saturating_sub(LINES_MAX);
                    kept.drain(..surplus);
                }
                if passed_on.is_err() {
                    out = tokio::io::stderr();
                }
            }
        });
        Self { last, task }
    }

    /// The last line so far.
    pub(crate) fn last_line(&self) -> Option<String> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).back().cloned()
    }

    /// The last lines; to be asked when the agent has ended.
    pub(crate) async fn last(&mut self) -> String {
        // A stranger may hold the pipe: what is there counts.
        let _ = timeout(Duration::from_millis(LAST_MS), &mut self.task).await;
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Stderr {
    fn drop(&mut self) {
        self.task.abort();
    }
}
