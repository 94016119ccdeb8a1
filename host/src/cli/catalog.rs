//! `list`, `search` and `tools`: they read the files and the database, and take no lock.

use clap::Args;
use serde_json::{Value, json};

use super::open::Setting;
use super::{FAILED, Failure, Places, USAGE, say, talk};
use crate::registry::{Definition, Severity};
use crate::search::{Filter, SearchIndex};
use crate::text::{cut, one_line};
use crate::tools::{self, Audience};

/// Characters of a description on one line.
const LINE_CHARS: usize = 90;

#[derive(Args)]
pub(super) struct ListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(super) struct SearchArgs {
    /// The task, in ordinary words
    query: String,
    /// At most this many
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=50))]
    limit: u16,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(super) struct ToolsArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn as_json(definition: &Definition) -> Value {
    json!({
        "id": definition.id,
        "assistant_id": definition.id,
        "name": definition.name,
        "description": definition.description,
        "tags": definition.tags,
        "tools": definition.tools,
        "model": definition.model,
        "source": definition.source.label(),
        "path": definition.path,
        "warnings": definition.warnings,
    })
}

pub(super) fn list(places: &Places, args: &ListArgs) -> Result<u8, Failure> {
    let setting = Setting::read(places)?;
    let registry = setting.registry()?;
    let (assistants, shadowed, skipped) = (registry.assistants(), registry.shadowed(), registry.skipped());
    if args.json {
        let listed: Vec<Value> = assistants.iter().map(|one| as_json(one)).collect();
        say(&json!({
            "assistants": listed,
            "shadowed": shadowed,
            "skipped": skipped,
            "totals": { "assistants": assistants.len(), "shadowed": shadowed.len(), "skipped": skipped.len() },
        })
        .to_string());
        return Ok(0);
    }
    for one in assistants {
        say(&format!("{:<32} {}", one.id, cut(&one_line(&one.description), LINE_CHARS)));
    }
    for one in assistants.iter().flat_map(|one| &one.warnings).filter(|one| one.severity != Severity::Info) {
        talk(&format!("warning: {}: {}", one_line(&one.file), one_line(&one.message)));
    }
    for one in shadowed {
        talk(&format!("shadowed: {}: {}", one_line(&one.reason.file), one_line(&one.reason.message)));
    }
    for one in skipped {
        talk(&format!("skipped: {}: {}", one_line(&one.file), one_line(&one.message)));
    }
    talk(&format!("{} assistants, {} shadowed, {} skipped", assistants.len(), shadowed.len(), skipped.len()));
    if assistants.is_empty() {
        talk(&setting.where_read());
    }
    Ok(0)
}

pub(super) fn search(places: &Places, args: &SearchArgs) -> Result<u8, Failure> {
    if args.query.trim().is_empty() {
        return Err(Failure::new(USAGE, "the query is empty; describe the task in a sentence, or use `list`"));
    }
    let setting = Setting::read(places)?;
    let registry = setting.registry()?;
    let failed = |error| Failure::new(FAILED, error);
    let index = SearchIndex::in_memory(&registry).map_err(failed)?;
    let found = index.search(&args.query, &Filter::default(), usize::from(args.limit)).map_err(failed)?;
    let hits: Vec<_> = found.hits.iter().filter_map(|hit| Some((registry.get(&hit.id)?, hit))).collect();
    if args.json {
        let items: Vec<Value> = hits
            .iter()
            .map(|(definition, hit)| {
                json!({
                    "assistant_id": definition.id, "name": definition.name, "score": hit.score,
                    "matched_terms": hit.matched_terms, "description": cut(&definition.description, 300),
                    "path": definition.path,
                })
            })
            .collect();
        say(&json!({ "items": items, "total_matches": found.total }).to_string());
        return Ok(0);
    }
    for (definition, hit) in &hits {
        let description = cut(&one_line(&definition.description), LINE_CHARS);
        say(&format!("{:.2}  {:<32} {description}", hit.score, definition.id));
    }
    if hits.is_empty() {
        let count = registry.assistants().len();
        talk(&format!("none of {count} assistants fits; describe the task in other words"));
        if count == 0 {
            talk(&setting.where_read());
        }
    }
    Ok(0)
}

pub(super) fn tools(places: &Places, args: &ToolsArgs) -> Result<u8, Failure> {
    let table = tools::table(&Setting::read(places)?.config.limits);
    if args.json {
        let listed = |audience| table.iter().filter(|tool| tool.audience == audience).map(tools::listed).collect();
        let (clients, runners): (Vec<Value>, Vec<Value>) = (listed(Audience::Everyone), listed(Audience::Runners));
        say(&json!({ "tools": clients, "runner_tools": runners }).to_string());
        return Ok(0);
    }
    for tool in &table {
        let who = match tool.audience {
            Audience::Everyone => "clients, assistants",
            Audience::Runners => "assistants",
        };
        say(&format!("{:<20} {:<22} {}", tool.name, tool.title, who));
    }
    Ok(0)
}
