//! The program of a server while it runs, and its end.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use assistant_protocol::ids::ProcessId;
use tokio::time::timeout;

use super::stderr::Stderr;
use crate::host::Host;
use crate::launcher::{self, Child, Inside, Strays};
use crate::limits::Limits;

/// How long one that has closed its pipes is waited for, to tell how it exited.
const EXIT_WITHIN: Duration = Duration::from_secs(1);
/// How long a killed server is waited for.
const KILLED_WITHIN: Duration = Duration::from_secs(10);

/// What servers are started on.
#[derive(Clone, Copy)]
pub(super) struct Ground<'a> {
    pub(super) limits: &'a Limits,
    /// The state directory.
    pub(super) state: &'a Path,
    pub(super) strays: &'a Strays,
}

impl<'a> Ground<'a> {
    pub(super) fn of(host: &'a Host) -> Self {
        Self { limits: host.limits(), state: host.state_dir(), strays: host.strays() }
    }
}

/// The process of a server.
pub(super) struct Program {
    pub(super) child: Child,
    pub(super) id: ProcessId,
    pub(super) stderr: Stderr,
    /// Where it is fenced in; none is the machine as it is.
    pub(super) inside: Option<Arc<Inside>>,
}

impl Program {
    /// How it ended, where it has, and its last lines.
    pub(super) async fn how_it_went(&self) -> String {
        // One that has closed its pipes is about to end.
        let exited = timeout(EXIT_WITHIN, self.child.exited()).await;
        let code = match exited {
            Ok(Ok(status)) => format!("; it exited with {}", launcher::code(status)),
            _ => String::new(),
        };
        code + &self.stderr.quoted().await
    }

    /// Waits until it has ended by itself, or kills it with its group; then ends what has left that.
    pub(super) async fn end(&self, on: Ground<'_>, within: Duration) {
        let exited = match timeout(within, self.child.exited()).await {
            Ok(exited) => exited,
            Err(_) => {
                self.child.kill();
                let killed = timeout(KILLED_WITHIN, self.child.exited()).await;
                killed.unwrap_or_else(|_| Err("it was killed and does not end".to_owned()))
            }
        };
        if let Err(error) = &exited {
            tracing::warn!(%error, "how a server ended is not known");
        }
        let in_order = exited.is_ok_and(|status| status.success());
        if let Some(inside) = self.inside.as_ref().filter(|_| !in_order)
            && let Err(error) = inside.end_there(self.id).await
        {
            tracing::warn!(%error, "what a killed server has left elsewhere may live on");
        }
        on.strays.end_of(self.id, self.child.group(), in_order).await;
    }
}
