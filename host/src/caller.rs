//! Who asks: a session, or a process. Known from the connection or the pipe, never from an argument.

use std::fmt;

use assistant_protocol::ids::{ProcessId, SessionId};
use uuid::Uuid;

/// What a session is called where callers are named, unless it says another name. No assistant has that name as a caller.
pub const MAIN: &str = "main";

/// Who asks, and whose mail is whose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Caller {
    /// A connection of a principal.
    Session(SessionId),
    /// A running assistant.
    Process(ProcessId),
}

/// Where the client of a session runs: within an assistant, of this host or another one, or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Within {
    /// Levels of assistants above it; 0 is a client of the principal's own.
    pub level: u32,
    /// The process in which it runs, where that is known.
    pub process: Option<ProcessId>,
}

impl Caller {
    /// The process, where it is one.
    #[must_use]
    pub fn process(self) -> Option<ProcessId> {
        match self {
            Caller::Session(_) => None,
            Caller::Process(id) => Some(id),
        }
    }
}

impl From<Caller> for Uuid {
    fn from(caller: Caller) -> Self {
        match caller {
            Caller::Session(id) => id.into(),
            Caller::Process(id) => id.into(),
        }
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Caller::Session(id) => write!(f, "session {id}"),
            Caller::Process(id) => write!(f, "process {id}"),
        }
    }
}
