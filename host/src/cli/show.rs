//! `show`: all about one assistant. It reads the files and the database, and takes no lock.

use std::sync::Arc;

use clap::Args;
use serde_json::json;

use super::open::{Setting, env, trust_dir};
use super::run::NO_MATCH;
use super::{Failure, Places, USAGE, say, talk};
use crate::model::Models;
use crate::registry::{Definition, Registry, Shadowed, skipped_words};
use crate::servers::{self, Brought};
use crate::text::{cut, duration, one_line};
use crate::tools::{self, grants};
use crate::trust::{self, Book};

/// Ids that are told where none has the wanted one.
const NEAREST: usize = 5;
/// Characters that are told of an id that is unknown.
const ID_CHARS: usize = 100;

#[derive(Args)]
pub(super) struct ShowArgs {
    /// Its id or its name
    id: String,
    /// Print its prompt only
    #[arg(long, conflicts_with = "json")]
    prompt: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn show(places: &Places, args: &ShowArgs) -> Result<u8, Failure> {
    let setting = Setting::read(places)?;
    let registry = setting.registry();
    let definition = find(&registry, &args.id)?;
    if args.prompt {
        say(&definition.system_prompt);
        return Ok(0);
    }
    let hidden: Vec<&Shadowed> = registry.shadowed().iter().filter(|one| one.id == definition.id).collect();
    let table = tools::table(&setting.config.limits);
    let models = Models::from_config(&setting.config, &env).map_err(|error| Failure::new(USAGE, error))?;
    let ruled = trust::rule(definition, &Book::at(trust_dir()));
    let outfit = setting.stock(&table, &models).outfit(definition);
    let of_here = outfit.findings(definition, &table, &ruled);
    let brought = servers::brought(&setting.servers, definition, &ruled, &setting.config.tool_aliases);
    let granted = outfit.grants;
    if args.json {
        // Where two of a definition's keys say the same, the answer's own stand above.
        let mut whole = json!(**definition);
        whole["mcp_servers"] = json!(definition.mcp_servers.as_ref().map(trust::masked));
        whole["extra"] = json!(trust::map_masked(&definition.extra));
        whole["path"] = json!(definition.file().map(super::shown));
        whole["brought_from"] = json!(definition.brought_from().map(super::shown));
        whole["assistant_id"] = json!(definition.id);
        whole["granted_tools"] = json!(granted.tools);
        whole["unavailable_tools"] = json!(granted.unavailable);
        whole["tools_of_servers"] = json!(brought);
        whole["hides"] = json!(hidden);
        whole["findings"] = json!(of_here);
        say(&whole.to_string());
        return Ok(0);
    }
    for (what, value) in lines(definition, &granted, &brought) {
        say(&format!("{what:<15} {}", one_line(&value)));
    }
    for line in definition.system_prompt.lines() {
        say(&format!("  {}", one_line(line)));
    }
    for one in definition.warnings.iter().chain(&of_here) {
        talk(&format!("{}: {}", one.severity.label(), one_line(&one.to_string())));
    }
    for one in hidden {
        talk(&format!("shadowed: {}", one_line(&one.reason.to_string())));
    }
    Ok(0)
}

/// The assistant with this id or name.
pub(super) fn find<'a>(registry: &'a Registry, id: &str) -> Result<&'a Arc<Definition>, Failure> {
    registry.find_exact(id).ok_or_else(|| unknown(registry, id))
}

/// No assistant has this id or name.
pub(super) fn unknown(registry: &Registry, id: &str) -> Failure {
    let shown = cut(&one_line(id), ID_CHARS);
    if let Some(skipped) = registry.skipped_as(id) {
        let message = format!("no assistant has the id or name `{shown}`: {}", skipped_words(skipped));
        return Failure::new(NO_MATCH, message);
    }
    let near: Vec<_> = registry.nearest(id, NEAREST).iter().map(|id| format!("`{id}`")).collect();
    let hint = match near.as_slice() {
        [] => "`assistant-host list` shows them".to_owned(),
        near => format!("near it are {}", near.join(", ")),
    };
    Failure::new(NO_MATCH, format!("no assistant has the id or name `{shown}`; {hint}"))
}

/// What there is to say on one line each; what is not there is left out.
fn lines(definition: &Definition, granted: &grants::Grants, brought: &[Brought]) -> Vec<(&'static str, String)> {
    let mut lines = vec![("name", definition.name.clone()), ("id", definition.id.to_string())];
    let mut put = |what, value: Option<String>| lines.extend(value.map(|value| (what, value)));
    let some = |list: &[String]| (!list.is_empty()).then(|| list.join(", "));
    let any = |list: &[String]| some(list).unwrap_or_else(|| "none".to_owned());
    put("description", Some(definition.description.clone()).filter(|text| !text.is_empty()));
    for example in &definition.examples {
        put("example", Some(example.clone()));
    }
    put("source", Some(definition.source.label().to_owned()));
    put("file", definition.file().map(super::shown));
    put("brought from", definition.brought_from().map(super::shown));
    put("tools", Some(any(&granted.tools)));
    for one in &granted.unavailable {
        put("not available", Some(format!("{}: {}", one.tool, one.why)));
    }
    for one in brought {
        put("tools of server", Some(one.to_string()));
    }
    put("never", some(&definition.disallowed_tools));
    put("asks first", some(&definition.ask_tools));
    for rule in &definition.rules {
        put("rule", Some(rule.to_string()));
    }
    put("readonly", definition.readonly.then(|| "yes".to_owned()));
    put("spawns", definition.may_spawn.as_deref().map(any));
    put("model", some(&definition.model));
    put("runner", definition.runner.clone());
    put("launcher", definition.launcher.clone());
    put("isolation", definition.worktree.then(|| "each run in a git worktree of its own".to_owned()));
    put("tags", some(&definition.tags));
    put("callers", definition.allowed_callers.as_deref().map(any));
    put("turns", definition.max_turns.map(|turns| turns.to_string()));
    let limit = definition.timeout_ms.map(|ms| duration(i64::try_from(ms).unwrap_or(i64::MAX)));
    put("time", limit);
    put("result", definition.output_schema.as_ref().map(|_| "data that fits an output schema".to_owned()));
    put("servers", definition.mcp_servers.as_ref().map(|servers| trust::masked(servers).to_string()));
    for (key, value) in &trust::map_masked(&definition.extra) {
        let what = if crate::registry::is_access_key(key) { "as written" } else { "kept" };
        put(what, Some(format!("{key}: {value}")));
    }
    let size = format!("{} characters", definition.system_prompt.chars().count());
    put("prompt", Some(size));
    lines
}
