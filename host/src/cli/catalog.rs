//! `list`, `search` and `tools`: they read the files and the database, and take no lock.

use std::collections::BTreeSet;
use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};

use super::open::Setting;
use super::{FAILED, Failure, Places, USAGE, counted, say, shown, talk};
use crate::limits::Limits;
use crate::registry::{Definition, Diagnostic, Registry, Severity, Shadowed, Source};
use crate::search::Filter;
use crate::servers::ServedTool;
use crate::text::{cut, one_line};
use crate::tools::profile::{Profile, subagents};
use crate::tools::{self, Audience, Tool};

/// Characters of a description on one line.
const LINE_CHARS: usize = 90;
/// Tags that are named to whoever filtered by others.
const TAGS_MAX: usize = 30;

/// Skipped files that are told one by one.
const SKIPPED_MAX: usize = 5;

/// Which assistants are meant.
#[derive(Args)]
pub(super) struct Which {
    /// Only those from here
    #[arg(long, value_parser = super::sources())]
    source: Option<Source>,
    /// Only those with this tag; may be repeated, and then with all of them
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
}

impl Which {
    /// Whether it is one of them.
    pub(super) fn takes(&self, one: &Definition) -> bool {
        one.fits(self.source, &self.tags)
    }
}

#[derive(Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    which: Which,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(super) struct SearchArgs {
    /// The task, in ordinary words
    query: String,
    #[command(flatten)]
    which: Which,
    /// At most this many
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=50))]
    limit: u16,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(super) struct ToolsArgs {
    /// Start the configured tool servers, and tell what they offer
    #[arg(long)]
    servers: bool,
    /// Those that clients get with `mcp --profile NAME`, and assistants below them
    #[arg(long, value_name = "NAME", value_parser = super::profiles(), default_value = super::ORCHESTRATOR)]
    profile: Profile,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
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
        "path": definition.file().map(shown),
        "brought_from": definition.brought_from().map(shown),
        "warnings": definition.warnings,
    })
}

pub(super) fn list(places: &Places, args: &ListArgs) -> Result<u8, Failure> {
    let setting = Setting::read(places)?;
    let registry = setting.registry();
    let all = registry.assistants();
    let mut assistants: Vec<_> = all.iter().filter(|one| one.fits(args.which.source, &args.which.tags)).collect();
    // What stands first on the line; the registry itself is sorted by the name.
    assistants.sort_by(|a, b| a.id.cmp(&b.id));
    let (source, tags) = (args.which.source, args.which.tags.as_slice());
    // Nobody knows the tags of what is hidden or could not be read: those of what hides it count, and any may be.
    let hidden = |one: &&Shadowed| {
        source.is_none_or(|from| from == one.source) && registry.get(&one.id).is_some_and(|by| by.fits(None, tags))
    };
    let lost = |one: &&Diagnostic| {
        source.is_none_or(|from| setting.source_of(&one.file) == Some(from))
            && (tags.is_empty() || one.severity != Severity::Info)
    };
    let shadowed: Vec<_> = registry.shadowed().iter().filter(hidden).collect();
    let skipped: Vec<_> = registry.skipped().iter().filter(lost).collect();
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
    for one in &assistants {
        say(&format!("{:<32} {}", one.id.as_str(), cut(&one_line(&one.description), LINE_CHARS)));
    }
    // Whoever wrote a document beside the assistants knows that it is none.
    let lost: Vec<_> = skipped.iter().filter(|one| one.severity != Severity::Info).collect();
    for one in lost.iter().take(SKIPPED_MAX) {
        talk(&format!("skipped: {}: {}", one_line(&one.file), one_line(&one.message)));
    }
    if lost.len() > SKIPPED_MAX {
        talk(&format!("skipped: {} more files that could not be read", lost.len() - SKIPPED_MAX));
    }
    let wrong = |one: &&&Arc<Definition>| one.warnings.iter().any(|one| one.severity != Severity::Info);
    let repaired = assistants.iter().filter(wrong).count();
    let (count, shadowed, skipped) = (assistants.len(), shadowed.len(), skipped.len());
    talk(&format!(
        "{}, {repaired} of them repaired; {shadowed} shadowed, {} skipped",
        counted(count, "assistant"),
        counted(skipped, "file"),
    ));
    if repaired + shadowed + skipped > 0 {
        talk("`assistant-host check` tells the reasons, and what to do");
    }
    if all.is_empty() {
        talk(&setting.where_read());
    } else if assistants.is_empty() {
        talk(&which_there_are(all));
    }
    Ok(0)
}

/// What could have been filtered by, for whoever wonders why nothing is left.
fn which_there_are(all: &[Arc<Definition>]) -> String {
    let tags: BTreeSet<&str> = all.iter().flat_map(|one| &one.tags).map(String::as_str).collect();
    let sources: BTreeSet<&str> = all.iter().map(|one| one.source.label()).collect();
    let tags: Vec<String> = tags.into_iter().take(TAGS_MAX).map(one_line).collect();
    let tags = if tags.is_empty() { "none".to_owned() } else { tags.join(", ") };
    let sources = sources.into_iter().collect::<Vec<_>>().join(", ");
    format!("none of {} has that source and these tags; sources: {sources}; tags: {tags}", all.len())
}

pub(super) fn search(places: &Places, args: &SearchArgs) -> Result<u8, Failure> {
    if args.query.trim().is_empty() {
        return Err(Failure::new(USAGE, "the query is empty; describe the task in a sentence, or use `list`"));
    }
    let setting = Setting::read(places)?;
    let registry = setting.registry();
    let failed = |error| Failure::new(FAILED, error);
    let index = setting.index(&registry)?;
    let filter = Filter { source: args.which.source, tags: args.which.tags.clone(), ..Filter::default() };
    let found = index.search(&args.query, &filter, usize::from(args.limit)).map_err(failed)?;
    let hits: Vec<_> = found.hits.iter().filter_map(|hit| Some((registry.get(&hit.id)?, hit))).collect();
    if args.json {
        let items: Vec<Value> = hits
            .iter()
            .map(|(definition, hit)| {
                json!({
                    "id": definition.id, "assistant_id": definition.id, "name": definition.name,
                    "score": hit.score, "matched_terms": hit.matched_terms,
                    "description": cut(&definition.description, 300), "path": definition.file().map(shown),
                })
            })
            .collect();
        say(&json!({ "items": items, "total_matches": found.total }).to_string());
        return Ok(0);
    }
    for (definition, hit) in &hits {
        let description = cut(&one_line(&definition.description), LINE_CHARS);
        say(&format!("{:.2}  {:<32} {description}", hit.score, definition.id.as_str()));
    }
    if hits.is_empty() {
        let all = registry.assistants();
        let asked = all.iter().filter(|one| one.fits(args.which.source, &args.which.tags)).count();
        if asked > 0 || all.is_empty() {
            talk(&format!("none of {asked} assistants fits; describe the task in other words"));
        } else {
            talk(&which_there_are(all));
        }
        if all.is_empty() {
            talk(&setting.where_read());
        }
    }
    Ok(0)
}

pub(super) async fn tools(places: &Places, args: &ToolsArgs) -> Result<u8, Failure> {
    let setting = Setting::read(places)?;
    if args.servers {
        return Ok(of_servers(&setting, args.json).await);
    }
    let limits = &setting.config.limits;
    let table = tools::table(limits);
    if let Profile::Subagents = args.profile {
        return of_subagents(&setting.registry(), &table, limits, args.json);
    }
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

/// What the configured servers offer; those that do not start make it fail.
async fn of_servers(setting: &Setting, as_json: bool) -> u8 {
    let tried = setting.try_servers().await;
    let failed = tried.iter().any(|one| one.tools.is_err());
    if as_json {
        let servers: Vec<Value> = tried
            .iter()
            .map(|one| {
                let tools = one.tools.as_ref().ok().map(|tools| tools.iter().map(served).collect::<Vec<_>>());
                json!({ "name": one.name, "reached_by": one.reached_by, "tools": tools, "error": one.tools.as_ref().err() })
            })
            .collect();
        say(&json!({ "servers": servers }).to_string());
    }
    for one in &tried {
        match &one.tools {
            Ok(tools) if !as_json => tools.iter().for_each(|tool| {
                say(&format!("{:<40} {}", one_line(&tool.name), cut(&one_line(&tool.description), LINE_CHARS)));
            }),
            Ok(_) => {}
            Err(error) => talk(&format!("{}: {}", one_line(&one.name), one_line(error))),
        }
    }
    if tried.is_empty() {
        talk(
            "no tool servers are configured; `[mcp_servers.NAME]` adds one, `tool_presets = [\"filesystem\", \"shell\"]` well-kept ones",
        );
    }
    if failed { FAILED } else { 0 }
}

fn served(tool: &ServedTool) -> Value {
    json!({
        "name": tool.name, "tool": tool.tool, "description": tool.description, "input_schema": tool.input_schema,
        "read_only": tool.read_only,
    })
}

/// The tools of the profile `subagents`: those of clients follow the assistants that there are.
fn of_subagents(registry: &Registry, table: &[Tool], limits: &Limits, json: bool) -> Result<u8, Failure> {
    let clients = Profile::Subagents.listed_of(table, registry, limits);
    let runners = subagents::of_askers(limits);
    if json {
        let listed = |tools: &[Tool]| tools.iter().map(tools::listed).collect::<Vec<Value>>();
        say(&json!({ "tools": listed(&clients), "runner_tools": listed(&runners) }).to_string());
        return Ok(0);
    }
    for (tools, who) in [(&clients, "clients"), (&runners, "assistants")] {
        for tool in tools {
            say(&format!("{:<46} {:<22} {who}", tool.name, one_line(&tool.title)));
        }
    }
    Ok(0)
}
