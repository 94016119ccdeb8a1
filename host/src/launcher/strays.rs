//! What a runner has started and what has left its group, by a session of its own or a double fork. It is known by a
//! variable that it inherits, and ended with the process.
//!
//! A program that takes on orphans (a child subreaper, Linux) finds strays among its children, and reaps them. Any other
//! looks at all processes, where a runner had to be killed or did not end in order.

use std::sync::{Mutex, MutexGuard, PoisonError};

use assistant_protocol::ids::ProcessId;

#[cfg(target_os = "linux")]
#[path = "strays/linux.rs"]
mod platform;

#[cfg(not(target_os = "linux"))]
#[path = "strays/other.rs"]
mod platform;

/// The variable that holds the id of the process, for its runner and all that this starts.
pub const MARK: &str = "ASSISTANT_PROCESS_ID";
/// The variable that holds the state directory of the host, for tool servers and all that these start: they belong to no
/// one process.
pub const SERVER_OF: &str = "ASSISTANT_SERVER_OF";

/// Where strays are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    /// Among the children of this program.
    Adopted,
    /// Among all processes.
    Everywhere,
}

/// A process or a server that has ended, and whose strays are to end.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Due {
    /// What it left is known by: a variable with its value.
    mark: String,
    /// The group that its runner led.
    group: Option<u32>,
    reach: Reach,
}

/// Ends strays. Those of processes that end together are looked for together.
pub(crate) struct Strays {
    adopts: bool,
    due: Mutex<Vec<Due>>,
    /// Held while strays are looked for.
    looking: tokio::sync::Mutex<()>,
}

impl Strays {
    /// `adopts`: this program takes on the orphans of its children.
    pub(crate) fn new(adopts: bool) -> Self {
        Self { adopts, due: Mutex::default(), looking: tokio::sync::Mutex::default() }
    }

    /// Ends what the ended runner of a process has left; `in_order` tells that it exited by itself and with 0.
    pub(crate) async fn end_of(&self, process: ProcessId, group: Option<u32>, in_order: bool) {
        match (in_order, self.adopts) {
            (true, false) => {}
            (true, true) => self.end(&[process], group, Reach::Adopted).await,
            (false, _) => self.end(&[process], group, Reach::Everywhere).await,
        }
    }

    /// Ends what the runners of these processes have left, wherever it is.
    pub(crate) async fn end_all(&self, processes: &[ProcessId]) {
        if !processes.is_empty() {
            self.end(processes, None, Reach::Everywhere).await;
        }
    }

    /// Ends the tool servers that an earlier host of this state directory has left: it holds them no more.
    pub(crate) async fn end_servers_of(&self, state: &std::path::Path) {
        let mark = format!("{SERVER_OF}={}", state.display());
        self.end_due([Due { mark, group: None, reach: Reach::Everywhere }]).await;
    }

    async fn end(&self, processes: &[ProcessId], group: Option<u32>, reach: Reach) {
        self.end_due(processes.iter().map(|process| Due { mark: format!("{MARK}={process}"), group, reach })).await;
    }

    async fn end_due(&self, due: impl IntoIterator<Item = Due>) {
        self.due().extend(due);
        let _looking = self.looking.lock().await;
        let due = std::mem::take(&mut *self.due());
        // Where it is empty, the one before has taken these along, and has done with them.
        if !due.is_empty() {
            platform::end(due, self.adopts).await;
        }
    }

    fn due(&self) -> MutexGuard<'_, Vec<Due>> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
