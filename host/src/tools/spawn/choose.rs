//! Which assistant, which model and which folder a spawn means, and whether its caller may.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use assistant_protocol::ids::ProcessId;
use rusqlite::Connection;

use super::told::{Matched, RunnerUp};
use super::{BySearch, Spawn};
use crate::caller::MAIN;
use crate::host::Host;
use crate::model::{Choice, NoModel};
use crate::process_table::{self, Process};
use crate::registry::{Definition, is_all, slug};
use crate::search::{Filter, MIN_SCORE};
use crate::store::StoreError;
use crate::tools::policy::{Policy, Verdict, exceeds};
use crate::tools::talk::ASKING;
use crate::tools::{Call, ToolError, assistants};

/// Words for no one, or for nothing that is a name: an assistant that is called so is not meant by them.
const NO_ONE: [&str; 11] = ["false", "nil", "no", "nobody", "none", "nothing", "null", "off", "on", "true", "yes"];
/// Runners-up that a spawn by search tells.
const RUNNERS_UP: usize = 3;

pub(super) async fn choose(call: &Call, params: &Spawn) -> Result<(Arc<Definition>, Option<Matched>), ToolError> {
    match (&params.assistant_id, &params.search) {
        (Some(id), None) => Ok((assistants::find(&call.host, id)?, None)),
        (None, Some(search)) => by_search(call, search).await,
        (Some(_), Some(_)) => {
            Err(ToolError::bad_argument("`assistant_id` and `search` are both given", "Give one of the two."))
        }
        (None, None) => Err(ToolError::bad_argument(
            "neither `assistant_id` nor `search` is given",
            "Name an assistant, or describe the task in search {text}.",
        )),
    }
}

async fn by_search(call: &Call, search: &BySearch) -> Result<(Arc<Definition>, Option<Matched>), ToolError> {
    if search.text.trim().is_empty() {
        return Err(ToolError::bad_argument("`search.text` is empty", "Describe the task in a sentence."));
    }
    let least = search.min_score.unwrap_or(MIN_SCORE).max(f32::MIN_POSITIVE);
    let filter = Filter { min_score: 0.0, ..Filter::default() };
    let found = assistants::search(&call.host, search.text.clone(), filter, 1 + RUNNERS_UP).await?.0;
    let told = |(definition, hit): &(Arc<Definition>, crate::search::Hit)| RunnerUp {
        assistant_id: definition.id.to_string(),
        score: assistants::round(hit.score),
    };
    let best = found.iter().position(|(_, hit)| hit.score >= least);
    let nearest: Vec<RunnerUp> = found.iter().filter(|(_, hit)| hit.score > 0.0).map(told).collect();
    match (best, nearest.is_empty()) {
        (Some(best), _) => {
            let (definition, hit) = &found[best];
            let others = found.iter().enumerate().filter(|(at, _)| *at != best).map(|(_, one)| told(one));
            let matched = Matched { score: assistants::round(hit.score), runners_up: others.collect() };
            Ok((definition.clone(), Some(matched)))
        }
        (None, false) => {
            let nearest: Vec<_> = nearest.iter().map(|one| format!("`{}` ({})", one.assistant_id, one.score)).collect();
            Err(ToolError::new(
                "no_match",
                format!("no assistant fits that task (least score {least}); the nearest are {}", nearest.join(", ")),
                "Rephrase the search, name one of the nearest as assistant_id if it fits after all, or do it yourself.",
            ))
        }
        (None, true) => Err(ToolError::new(
            "no_match",
            "no assistant shares a word with that task",
            "Rephrase the search with the subject and the kind of work, or do it yourself.",
        )),
    }
}

/// Who may be spawned by whom: as the definition says, and without a word of it whoever holds all the tools that it
/// would have. A session is `main` unless configured, and holds them all. `agent` is whether an agent is to run it.
pub(super) fn let_spawn(
    definition: &Definition,
    tools: &[String],
    agent: bool,
    parent: Option<&Parent>,
    host: &Host,
) -> Result<(), ToolError> {
    let aliases = host.tool_aliases();
    let not_allowed = |message: String, hint: &str| Err(ToolError::new("caller_not_allowed", message, hint));
    if let Some(parent) = parent {
        by_rules(definition, parent, aliases)?;
        if let Some(spawns) =
            parent.definition.may_spawn.as_deref().filter(|spawns| !names(spawns, definition.id.as_str()))
        {
            let whom = if spawns.is_empty() { "no other".to_owned() } else { format!("{} only", spawns.join(", ")) };
            let (id, wanted) = (&parent.row.assistant_id, &definition.id);
            let message = format!("the definition of `{id}` lets it spawn {whom}, and not `{wanted}`");
            return not_allowed(message, "Choose one of those, or do this part yourself.");
        }
    }
    let Some(allowed) = &definition.allowed_callers else {
        let Some(Parent { row, definition: own, own_tools, .. }) = parent else { return Ok(()) };
        // A word with its own parent is no power over anything else.
        let lacks = |tool: &&String| !ASKING.contains(&tool.as_str()) && !row.tools.contains(tool);
        let lacking: Vec<String> = tools.iter().filter(lacks).cloned().collect();
        let held: Vec<String> = tools.iter().filter(|tool| !lacks(tool)).cloned().collect();
        let more = exceeds(definition, own, &held, host.configured_servers(), aliases);
        // An agent has more tools than those of the table.
        let of_agent = match agent {
            true => Policy::of(definition, aliases).own_beyond(&Policy::of(own, aliases), *own_tools),
            false => Vec::new(),
        };
        let more = [lacking, more, of_agent].concat();
        if more.is_empty() {
            return Ok(());
        }
        let (id, wanted, more) = (&row.assistant_id, &definition.id, more.join(", "));
        let message =
            format!("`{wanted}` may do what `{id}` may not ({more}), and its definition names no allowed_callers");
        return not_allowed(message, "Choose an assistant with fewer tools, or do this part yourself.");
    };
    let caller = parent.map(|parent| parent.row.assistant_id.as_str());
    if may_call(allowed, caller) {
        return Ok(());
    }
    let caller = caller.map_or_else(|| "a session".to_owned(), |id| format!("the assistant `{id}`"));
    let may = match allowed.as_slice() {
        [] => "by no one".to_owned(),
        allowed => format!("only by {}", allowed.join(", ")),
    };
    let message = format!("`{}` may be spawned {may} (`allowed_callers`), and not by {caller}", definition.id);
    not_allowed(message, "Choose another assistant, or leave this part to a caller that may.")
}

/// Whether a session may spawn it.
pub(in crate::tools) fn session_may(definition: &Definition) -> bool {
    definition.allowed_callers.as_ref().is_none_or(|allowed| may_call(allowed, None))
}

/// Whether `allowed` lets the assistant `caller` spawn, or a session where there is none. An assistant with the id `main`
/// is not the session that is meant by it.
fn may_call(allowed: &[String], caller: Option<&str>) -> bool {
    match caller {
        Some(MAIN) => allowed.iter().any(|one| is_all(one)),
        Some(id) => names(allowed, id),
        None => names(allowed, MAIN),
    }
}

/// Whether `list` names the assistant with the id `id`, by that or by its name for people; `*` and `all` are everyone. A
/// name behind `!` or `-` is no name of one that may.
pub(super) fn names(list: &[String], id: &str) -> bool {
    let same = |one: &String| {
        let named = !one.trim_start().starts_with(['!', '-']) && !NO_ONE.contains(&id);
        named && (one == id || slug(one).as_deref() == Some(id))
    };
    list.iter().any(|one| is_all(one) || same(one))
}

/// What the rules of a parent say of spawning an assistant, however that was found.
fn by_rules(definition: &Definition, parent: &Parent, aliases: &BTreeMap<String, String>) -> Result<(), ToolError> {
    let refused = |why: String, hint: &str| {
        let message = format!("`{}` must not spawn `{}`: {why}", parent.row.assistant_id, definition.id);
        Err(ToolError::new("caller_not_allowed", message, hint))
    };
    match Policy::of(&parent.definition, aliases).judge_spawn(definition.id.as_str()) {
        Verdict::Deny { rule } => refused(rule, "Choose another one, or do this part yourself."),
        // One that is named was asked about before the call.
        Verdict::Ask { why } if !parent.named => {
            let hint = format!("Name it as assistant_id `{}`: then it is asked.", definition.id);
            refused(why.to_string(), &hint)
        }
        Verdict::Ask { .. } | Verdict::Allow => Ok(()),
    }
}

/// The process that spawns, with the definition that it runs by.
pub(super) struct Parent {
    pub(super) row: Process,
    pub(super) definition: Definition,
    /// It names whom it spawns, by the id.
    pub(super) named: bool,
    /// It is an agent's that has the tools of its own which its definition asks for.
    pub(super) own_tools: bool,
}

/// The process `id`, which spawns one that it names or not.
pub(super) fn parent(db: &Connection, id: ProcessId, named: bool) -> Result<Option<Parent>, StoreError> {
    let row = process_table::get(db, id)?;
    let definition = process_table::definition(db, &row)?;
    Ok(Some(Parent { row, definition, named, own_tools: false }))
}

/// The model of an agent is known when it has told it: until then it has the name of its runner.
/// `chosen` is why it is that runner, where nobody has said so.
pub(super) fn model_of_agent(runner: &str, wished: Option<&String>, chosen: Option<&str>) -> Choice {
    let own = wished.map(|_| {
        format!("the runner `{runner}` is an agent that asks a model of its own; it is told what was asked for")
    });
    let why: Vec<String> = chosen.map(str::to_owned).into_iter().chain(own).collect();
    Choice { name: runner.to_owned(), why: (!why.is_empty()).then(|| why.join(". ")) }
}

/// The same for a program that is a runner, where there is no model at all: it may turn out to be an agent. If it asks a
/// model all the same, it is told then that there is none.
pub(super) fn no_model_of_program(runner: &str, host: &Host) -> Option<Choice> {
    let why = || {
        format!(
            "no model is configured, and the runner `{runner}` may have one of its own; if it asks for one, that fails"
        )
    };
    host.models().names().next().is_none().then(|| Choice { name: runner.to_owned(), why: Some(why()) })
}

pub(super) fn choose_model(
    call: &Call,
    wish: &[String],
    named: Option<&str>,
    parent: Option<&Process>,
) -> Result<Choice, ToolError> {
    // A model that the caller itself names is meant: it is not quietly replaced.
    let strict = named.is_some() || call.host.strict_models();
    let wish = if named.is_some() { &wish[..1] } else { wish };
    // The model of an agent is none that anybody else could ask.
    let spawner = parent.filter(|parent| !parent.agent).map(|parent| parent.model.as_str());
    call.host.models().resolve(wish, spawner, strict).map_err(|error| match (error, named) {
        (NoModel::Refused { known, .. }, Some(named)) => ToolError::new(
            "no_model",
            format!("the model `{named}` is not configured; there are: {known}"),
            "Name one of them, or leave `model` out.",
        ),
        (error, _) => {
            let message = format!("{}{}", error.to_string().trim_end_matches('.'), why_no_key(&call.host));
            ToolError::new("no_model", message, "Tell the user; do the task yourself meanwhile.")
        }
    })
}

/// What explains a missing model: keys that only a client has, and where the host tells more.
fn why_no_key(host: &Host) -> String {
    let mut why = String::new();
    for name in host.keys_elsewhere() {
        why.push_str(&format!(
            ". {name} is set where the client runs, but not where the host was started: name a file with the key as \
             `api_key_file` in the configuration, or `assistant-host stop` and start again"
        ));
    }
    if let Some(log) = host.log() {
        why.push_str(&format!(". The host's log is {}", log.display()));
    }
    why
}

/// The folder of a process: `wanted` below `base`, which is the caller's.
pub(super) fn working_dir(base: Option<PathBuf>, wanted: Option<&str>) -> Result<Option<PathBuf>, ToolError> {
    let Some(wanted) = wanted else { return Ok(base) };
    let refused = |why: &str| {
        let shown: String = wanted.chars().take(200).collect();
        ToolError::bad_argument(format!("`working_dir` {shown} {why}"), "Give a folder below the project folder.")
    };
    let base = base.ok_or_else(|| refused("cannot be used: this host has no project folder"))?;
    let base = base.canonicalize().map_err(|_| refused("cannot be used: the project folder is gone"))?;
    let dir = base.join(wanted).canonicalize().map_err(|_| refused("does not exist"))?;
    if !dir.starts_with(&base) {
        return Err(refused("lies outside of the project folder"));
    }
    if !dir.is_dir() {
        return Err(refused("is no folder"));
    }
    Ok(Some(dir))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers() {
        let check = |allowed: &[&str], caller: Option<&str>, expected: bool| {
            let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
            assert_eq!(may_call(&allowed, caller), expected, "{allowed:?} {caller:?}");
        };
        for everyone in [&["*"][..], &["*", "x"]] {
            check(everyone, None, true);
            check(everyone, Some("x"), true);
            check(everyone, Some("main"), true);
        }
        check(&["All"], Some("x"), true);
        check(&[], None, false);
        check(&[], Some("x"), false);
        check(&["main"], None, true);
        check(&["Main"], None, true);
        check(&["main"], Some("x"), false);
        check(&["Code reviewer"], Some("code-reviewer"), true);
        check(&["code-reviewer"], None, false);
        // It is called as a session is, and is none.
        check(&["main"], Some("main"), false);
        check(&["Main"], Some("main"), false);
        // Words for no one.
        for no_one in ["none", "false", "No", "nobody"] {
            check(&[no_one], None, false);
            check(&[no_one], Some(&no_one.to_lowercase()), false);
        }
        // No name, but one taken back.
        check(&["!x"], Some("x"), false);
        check(&[" -x"], Some("x"), false);
        check(&["!main"], None, false);
    }
}
