//! What a spawned assistant does without: tools that nothing here brings, servers that cannot be had, and what is not
//! trusted.

use std::sync::Arc;

use super::ToolError;
use super::grants::Unavailable;
use super::policy::is_of_agents;
use crate::host::Host;
use crate::registry::Definition;
use crate::servers::{self, Place};
use crate::trust::{Answer, Kind, Ruled};

/// Things that one answer names.
const NAMED_MAX: usize = 20;

/// What the definition names and does not get, with the reason. `unavailable` is what the host itself has not: what a
/// server of the assistant may bring is known when that has started. An `agent` has tools of its own: what of those it has
/// not, its runner tells.
pub(super) async fn lacking(
    host: &Host,
    definition: &Arc<Definition>,
    mut unavailable: Vec<Unavailable>,
    place: Place<'_>,
    agent: bool,
) -> Result<Vec<Unavailable>, ToolError> {
    let mut ruled = host.rule(vec![definition.clone()]).await?.pop().unwrap_or_default();
    if agent {
        ruled.extend(host.rule_own_tools(definition.clone()).await?);
    }
    for (one, error) in ruled.iter().filter_map(|one| unreadable(one).map(|error| (one, error))) {
        tracing::warn!(assistant = %definition.id, thing = %one.wanted.title(), %error, "nobody knows whether it is trusted");
    }
    let (mut planned, without) = servers::plan(host.configured_servers(), definition, &ruled, host.tool_aliases());
    if agent {
        planned.retain(|one| one.is_for_agents(definition, host.tool_aliases()));
        unavailable.retain(|one| !is_of_agents(&one.tool));
    }
    unavailable
        .retain(|one| !planned.iter().any(|server| servers::brings(&server.spec.name, &one.tool, host.tool_aliases())));
    let mut lacking: Vec<Unavailable> = ruled.iter().filter_map(lack).collect();
    let hindered = planned.iter().filter_map(|one| Some((one.spec.name.clone(), servers::hindered(host, one, place)?)));
    lacking.extend(without.into_iter().chain(hindered).map(|(name, why)| Unavailable { tool: title(&name), why }));
    let more = lacking.len().saturating_sub(NAMED_MAX);
    lacking.truncate(NAMED_MAX);
    if more > 0 {
        let why = "the same holds for them; `assistant-host trust` lists all".to_owned();
        lacking.push(Unavailable { tool: format!("{more} more servers and commands"), why });
    }
    unavailable.extend(lacking);
    Ok(unavailable)
}

/// What a server is called where it is told to be lacking.
pub(crate) fn title(server: &str) -> String {
    format!("server {server}")
}

fn unreadable(one: &Ruled) -> Option<&str> {
    match &one.answer {
        Answer::Unreadable(error) => Some(error),
        Answer::Off | Answer::Own | Answer::Trusted(_) | Answer::Untrusted => None,
    }
}

fn lack(one: &Ruled) -> Option<Unavailable> {
    let why = match &one.answer {
        // Whom this is told may be a model: it is not for that to allow it.
        Answer::Untrusted => {
            "not trusted: your user, and only they, can look at what it runs with `assistant-host trust`, and allow it"
                .to_owned()
        }
        Answer::Unreadable(error) => format!("not trusted: {error}"),
        // What is switched off is told with the other servers that it does without.
        Answer::Off => return None,
        Answer::Own | Answer::Trusted(_) if matches!(one.wanted.kind, Kind::Server | Kind::Agent) => return None,
        Answer::Own | Answer::Trusted(_) => "this version of the host runs no commands of assistants yet".to_owned(),
    };
    let tool = match (&one.wanted.kind, &one.wanted.text) {
        (Kind::Agent, Some(names)) => format!("{} ({names})", one.wanted.title()),
        _ => one.wanted.title(),
    };
    Some(Unavailable { tool, why })
}
