//! Profiles: lists of tools over the same host, for users of other systems. Each is a table over the same functions.

use std::sync::Arc;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use self::single::Offer;
use super::{Along, Audience, CallError, Output, Tool, instructions};
use crate::caller::Caller;
use crate::host::Host;
use crate::limits::Limits;
use crate::process_table::ProfileName;
use crate::registry::Registry;

pub mod single;
pub(crate) mod subagents;

/// Which list of tools a session is offered. It is chosen when the session is opened, and counts for all that is spawned
/// below it.
#[derive(Debug, Clone, Default)]
pub enum Profile {
    /// The host's own tools.
    #[default]
    Orchestrator,
    /// Assistants as subagents: run, asked, answered.
    Subagents,
    /// One subagent, as one tool.
    Single(Arc<Offer>),
}

impl Profile {
    /// Those that a client chooses by their name alone.
    pub const AT_A_DOOR: [&'static str; 2] = ["orchestrator", "subagents"];

    /// The profile of this name, where the name is all that it needs.
    #[must_use]
    pub fn at_a_door(name: &str) -> Option<Self> {
        match name {
            "orchestrator" => Some(Self::Orchestrator),
            "subagents" => Some(Self::Subagents),
            _ => None,
        }
    }

    /// Its name, as `--profile` and the database have it.
    #[must_use]
    pub fn name(&self) -> ProfileName {
        match self {
            Self::Orchestrator => ProfileName::Orchestrator,
            Self::Subagents => ProfileName::Subagents,
            Self::Single(_) => ProfileName::Single,
        }
    }

    /// What the server is called, and by what its messages go, where it speaks for one subagent.
    pub(crate) fn subagent(&self) -> Option<&str> {
        match self {
            Self::Orchestrator | Self::Subagents => None,
            Self::Single(offer) => Some(offer.name()),
        }
    }

    /// What a client is told of the server.
    pub(crate) fn instructions(&self, host: &Host) -> String {
        match self {
            Self::Orchestrator => instructions(host.limits()),
            Self::Subagents => subagents::instructions(host.limits()),
            Self::Single(offer) => offer.instructions(),
        }
    }

    /// Whether its list is another one when the assistants are.
    pub(crate) fn list_changes(&self) -> bool {
        match self {
            Self::Orchestrator | Self::Single(_) => false,
            Self::Subagents => true,
        }
    }

    /// What a client of it is offered now. The lists of some follow the assistants that there are.
    pub(crate) fn listed(&self, host: &Host) -> Vec<Tool> {
        self.listed_of(host.tools(), &host.registry(), host.limits())
    }

    /// The same for a host with these tools and assistants.
    pub(crate) fn listed_of(&self, table: &[Tool], registry: &Registry, limits: &Limits) -> Vec<Tool> {
        match self {
            Self::Orchestrator => table.iter().filter(|tool| tool.audience == Audience::Everyone).cloned().collect(),
            Self::Subagents => subagents::listed(registry, limits),
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
            Self::Subagents => subagents::call(host, caller, name, arguments, cancelled, along).await,
            Self::Single(offer) => single::call(offer, host, caller, name, arguments, cancelled, along).await,
        }
    }
}
