//! How a runner goes: in order, by itself, or not at all.

use std::time::Duration;

use assistant_protocol::spec::rules;
use tokio::time::{Instant, sleep_until, timeout};

use super::Fault;
use super::scripted_host::{EXIT_WITHIN, ScriptedHost, next};
use crate::launcher;

/// How long stdout and stderr of one that has exited may stay open: all that it wrote is read by then.
pub(super) const HELD_WITHIN: Duration = Duration::from_secs(1);

/// Whether a runner that has exited leaves something that holds its stdout open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// Not that it is known.
    No,
    /// It does.
    Yes,
    /// It does, and has been told so: no other case is lost by it.
    Told,
}

impl ScriptedHost {
    /// The fault of a runner that is not there any more.
    pub(super) async fn gone(&mut self, expected: &str, seen: &str) -> Fault {
        let exit = match timeout(Duration::from_secs(1), self.child.exited()).await {
            Ok(Ok(status)) => format!("it exited with {}", launcher::code(status)),
            Ok(Err(error)) => error,
            Err(_) => seen.to_owned(),
        };
        self.talk.note(&exit);
        self.fault(expected, exit)
    }

    /// Waits until the runner has closed its stdout and has exited; gives its exit code.
    pub(super) async fn exit(&mut self) -> Result<i32, Fault> {
        let (mut deadline, mut exited) = (Instant::now() + EXIT_WITHIN, None);
        while !self.ended || exited.is_none() {
            tokio::select! {
                line = next(&mut self.lines), if !self.ended => self.hear(line)?,
                exit = self.child.exited(), if exited.is_none() => {
                    exited = Some(exit);
                    deadline = deadline.min(Instant::now() + HELD_WITHIN);
                }
                () = sleep_until(deadline) => break,
            }
        }
        let seen = match exited {
            None => "it goes on".to_owned(),
            Some(Err(error)) => error,
            Some(Ok(status)) if self.ended || self.held == Held::Told => return Ok(launcher::code(status)),
            Some(Ok(status)) => {
                self.held = Held::Yes;
                self.rule = rules::END_OF_STDIN;
                let code = launcher::code(status);
                format!("it has exited with {code}, but something that it started holds its stdout open")
            }
        };
        Err(self.fault("exits when its stdin is closed, and its stdout ends with it", seen))
    }
}
