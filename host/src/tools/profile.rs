//! Profiles: lists of tools over the same host, for users of other systems. Each is a table over the same functions.

use std::sync::Arc;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use self::single::Offer;
use super::{Along, Audience, CallError, Output, Tool, instructions};
use crate::caller::Caller;
use crate::host::Host;

pub mod single;

/// Which list of tools a session is offered.
#[derive(Debug, Clone, Default)]
pub enum Profile {
    /// The host's own tools.
    #[default]
    Orchestrator,
    /// One subagent, as one tool.
    Single(Arc<Offer>),
}

impl Profile {
    /// Its name, as `--profile` and the database have it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Orchestrator => "orchestrator",
            Self::Single(_) => "single",
        }
    }

    /// What the server is called, and by what its messages go, where it speaks for one subagent.
    pub(crate) fn subagent(&self) -> Option<&str> {
        match self {
            Self::Orchestrator => None,
            Self::Single(offer) => Some(offer.name()),
        }
    }

    /// What a client is told of the server.
    pub(crate) fn instructions(&self, host: &Host) -> String {
        match self {
            Self::Orchestrator => instructions(host.limits()),
            Self::Single(offer) => offer.instructions(),
        }
    }

    /// What a client of it is offered now. The lists of some follow the assistants that there are.
    pub(crate) fn listed(&self, host: &Host) -> Vec<Tool> {
        match self {
            Self::Orchestrator => {
                host.tools().iter().filter(|tool| tool.audience == Audience::Everyone).cloned().collect()
            }
            Self::Single(offer) => vec![single::tool(offer)],
        }
    }

    /// Calls one of its tools, listed or not.
    ///
    /// # Errors
    /// [`CallError::UnknownTool`] where it has none of that name, else what the tool says.
    pub(crate) async fn call(
        &self,
        host: &Host,
        caller: Caller,
        name: &str,
        arguments: Map<String, Value>,
        cancelled: CancellationToken,
        along: Along,
    ) -> Result<Output, CallError> {
        match self {
            Self::Orchestrator => super::call(host, caller, name, arguments, cancelled, along).await,
            Self::Single(offer) => single::call(offer, host, caller, name, arguments, cancelled, along).await,
        }
    }
}
