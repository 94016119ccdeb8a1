//! What a spawned assistant does without of the servers and commands that its file names.

use std::sync::Arc;

use super::ToolError;
use super::grants::Unavailable;
use crate::host::Host;
use crate::registry::Definition;
use crate::trust::{Answer, Ruled};

/// Things that one answer names.
const NAMED_MAX: usize = 20;

/// What the definition names and does not get, with the reason.
pub(super) async fn lacking(host: &Host, definition: &Arc<Definition>) -> Result<Vec<Unavailable>, ToolError> {
    let ruled = host.rule(vec![definition.clone()]).await?.pop().unwrap_or_default();
    for (one, error) in ruled.iter().filter_map(|one| unreadable(one).map(|error| (one, error))) {
        tracing::warn!(assistant = %definition.id, thing = %one.wanted.title(), %error, "nobody knows whether it is trusted");
    }
    let more = ruled.len().saturating_sub(NAMED_MAX);
    let mut lacking: Vec<Unavailable> = ruled.iter().take(NAMED_MAX).map(lack).collect();
    if more > 0 {
        let why = "the same holds for them; `assistant-host trust` lists all".to_owned();
        lacking.push(Unavailable { tool: format!("{more} more servers and commands"), why });
    }
    Ok(lacking)
}

fn unreadable(one: &Ruled) -> Option<&str> {
    match &one.answer {
        Answer::Unreadable(error) => Some(error),
        Answer::Own | Answer::Trusted(_) | Answer::Untrusted => None,
    }
}

fn lack(one: &Ruled) -> Unavailable {
    let why = match &one.answer {
        // Whom this is told may be a model: it is not for that to allow it.
        Answer::Untrusted => {
            "not trusted: your user, and only they, can look at what it runs with `assistant-host trust`, and allow it"
                .to_owned()
        }
        Answer::Unreadable(error) => format!("not trusted: {error}"),
        Answer::Own | Answer::Trusted(_) => {
            "this version of the host starts no servers and commands of assistants yet".to_owned()
        }
    };
    Unavailable { tool: one.wanted.title(), why }
}
