//! What tells an adapter, which makes no model calls, from a runner that fails to make them.

/// What a runner has shown in a case.
#[derive(Default)]
pub(super) struct Habits {
    /// Its capabilities say `messages`.
    pub(super) says_messages: bool,
    /// Its capabilities say `agent`.
    pub(super) says_agent: bool,
    /// It has asked the model.
    pub(super) asks_model: bool,
    /// It has answered a `run` with a result.
    pub(super) ends_runs: bool,
    /// The case needs a model call, and this one makes none.
    pub(super) needs_more: bool,
}

impl Habits {
    /// Whether it is an adapter, as far as it has shown.
    pub(super) fn is_adapter(&self) -> bool {
        ((self.says_messages && self.ends_runs) || self.says_agent) && !self.asks_model
    }
}
