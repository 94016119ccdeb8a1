//! When a method may be asked: the stages of a connection.

/// A stage of a connection, as the side that asks sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// `initialize` is not answered, or was refused.
    New,
    /// After `initialize`, while no `run` is in flight: before the first one and after each.
    Ready,
    /// A `run` is in flight.
    Running,
    /// Behind `shutdown`: nothing may be asked, and stdin is closed.
    Ending,
}

impl Stage {
    /// All, in their order.
    pub const ALL: [Self; 4] = [Self::New, Self::Ready, Self::Running, Self::Ending];

    /// What it is known by.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::New => "before_initialize",
            Self::Ready => "between_runs",
            Self::Running => "in_a_run",
            Self::Ending => "after_shutdown",
        }
    }

    /// What it is.
    #[must_use]
    pub fn doc(self) -> &'static str {
        match self {
            Self::New => "`initialize` is not answered, or was refused",
            Self::Ready => "after `initialize`, while no `run` is in flight: before the first one and after each",
            Self::Running => "a `run` is in flight",
            Self::Ending => "behind `shutdown`: nothing may be asked, and stdin is closed",
        }
    }
}
