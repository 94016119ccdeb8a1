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

#[cfg(feature = "cli")]
pub(crate) use errors::without as without_tools;

mod errors;
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
        let called = match self {
            Self::Orchestrator => return super::call(host, caller, name, arguments, cancelled, along).await,
            Self::Subagents => subagents::call(host, caller, name, arguments, cancelled, along).await,
            Self::Single(offer) => single::call(offer, host, caller, name, arguments, cancelled, along).await,
        };
        called.map_err(|error| errors::usable(error, &self.lacks(host.tools())))
    }

    /// The host's tools of these that a client of it does not have: no hint sends it there.
    fn lacks<'a>(&self, table: &'a [Tool]) -> Vec<&'a str> {
        let has = |name: &str| match self {
            Self::Orchestrator => true,
            Self::Subagents => subagents::OF_CLIENTS.contains(&name),
            Self::Single(offer) => offer.name() == name,
        };
        table.iter().map(|tool| tool.name.as_ref()).filter(|name| !has(name)).collect()
    }

    /// What a client does whose call was lost with the host.
    #[cfg(feature = "cli")]
    pub(crate) fn after_loss(&self) -> &'static str {
        match self {
            Self::Orchestrator => {
                "Call again: another host is started. Look first with list_process whether a spawn was done already."
            }
            Self::Subagents => {
                "Call again: another host is started. A run that this call had begun has ended with the host; \
                 check_status tells of one whose runId you have."
            }
            Self::Single(_) => "Call again: a run that this call had begun has ended with the host.",
        }
    }
}

#[cfg(all(test, feature = "cli"))]
mod tests {
    use super::*;

    /// The tools of `table` that a text names.
    fn named<'a>(text: &str, table: &'a [Tool]) -> Vec<&'a str> {
        let names = |tool: &&Tool| errors::without(text, &[&tool.name]) != text;
        table.iter().filter(names).map(|tool| tool.name.as_ref()).collect()
    }

    #[test]
    fn a_client_is_sent_to_no_tool_that_it_lacks() {
        let table = crate::tools::table(&Limits::default());
        assert_eq!(Profile::Orchestrator.lacks(&table), Vec::<&str>::new());
        assert!(Profile::Subagents.lacks(&table).contains(&"list_process"));
        for profile in [Profile::Orchestrator, Profile::Subagents] {
            let (hint, lacks) = (profile.after_loss(), profile.lacks(&table));
            assert!(!hint.is_empty() && named(hint, &table).iter().all(|tool| !lacks.contains(tool)), "{hint}");
        }
        assert_eq!(named(Profile::Orchestrator.after_loss(), &table), ["list_process"]);
    }
}
