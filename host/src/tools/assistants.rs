//! `list_assistant` and `search_assistant`.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::task::JoinError;

use super::outfit::Stock;
use super::{Audience, Call, Hints, Output, Tool, ToolError, row};
use crate::host::Host;
use crate::registry::{AssistantId, Definition, Registry, Severity, Source, skipped_words};
use crate::search::{Filter, Hit, SearchError, SearchIndex};
use crate::text::cut;
use crate::trust::Ruled;

/// Assistants on a page, unless the caller wants fewer or more.
const PAGE_SIZE_DEFAULT: u32 = 20;
/// Assistants on a page at most.
const PAGE_SIZE_MAX: u32 = 100;
/// Found assistants, unless the caller wants fewer or more.
const LIMIT_DEFAULT: u32 = 10;
/// Found assistants at most.
const LIMIT_MAX: u32 = 50;
/// Characters of a description in a list.
const DESCRIPTION_CHARS_MAX: usize = 300;
/// Warnings of one assistant in a list.
const WARNINGS_MAX: usize = 3;
/// Characters of a warning in a list.
const WARNING_CHARS_MAX: usize = 300;
/// Skipped files that a list names.
const SKIPPED_MAX: usize = 20;

pub(super) fn rows() -> Vec<Tool> {
    let look = Hints { read_only: true, destructive: false, idempotent: true, open_world: false };
    vec![
        row::<_, Listed, _, _>("list_assistant", "List assistants", Audience::Everyone, look, list_assistant),
        row::<_, Found, _, _>("search_assistant", "Find an assistant", Audience::Everyone, look, search_assistant),
    ]
}

/// Arguments of `list_assistant`.
#[derive(Debug, Deserialize, JsonSchema)]
struct List {
    /// Which page, from 1. Default 1.
    page: Option<u32>,
    /// Assistants on a page, 1 to 100. Default 20.
    page_size: Option<u32>,
    /// Only those from here: project, user, dir or database.
    #[schemars(with = "Option<SourceName>")]
    source: Option<Source>,
    /// Only those that have all of these tags.
    #[serde(default)]
    tags: Vec<String>,
    /// This one in full, prompt included, instead of a list.
    #[schemars(with = "Option<String>")]
    assistant_id: Option<String>,
}

/// The names of [`Source`], for the schema.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[expect(dead_code, reason = "only its schema is used")]
enum SourceName {
    Project,
    User,
    Dir,
    Database,
}

/// An assistant in a list.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Item {
    /// The same as assistant_id.
    id: String,
    assistant_id: String,
    name: String,
    description: String,
    /// project, user, dir or database.
    source: &'static str,
    /// The tools that it would really have.
    tools: Vec<String>,
    /// The model that it would get; null where there is none.
    model: Option<String>,
    /// What is wrong with its file, and what it asks for in vain.
    warnings: Vec<String>,
}

/// Result of `list_assistant`.
#[derive(Debug, Serialize, JsonSchema)]
struct Listed {
    items: Vec<Item>,
    total_items: u32,
    /// The same as total_items.
    #[serde(rename = "totalItems")]
    total_items_too: u32,
    /// Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page: Option<u32>,
    skipped: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skipped_files: Vec<String>,
    /// With assistant_id: the prompt of that one.
    #[serde(skip_serializing_if = "Option::is_none")]
    system_prompt: Option<String>,
    /// With assistant_id: its tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    tags: Option<Vec<String>>,
}

/// Arguments of `search_assistant`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Search {
    /// The task and its subject, in one or two sentences.
    query: String,
    /// At most this many, 1 to 50. Default 10.
    limit: Option<u32>,
    /// Only those from here: project, user, dir or database.
    #[schemars(with = "Option<SourceName>")]
    source: Option<Source>,
    /// Only those that have all of these tags.
    #[serde(default)]
    tags: Vec<String>,
}

/// Result of `search_assistant`.
#[derive(Debug, Serialize, JsonSchema)]
struct Found {
    /// Best first.
    items: Vec<FoundItem>,
    /// Assistants with at least the least score.
    total_matches: u32,
}

/// An assistant that was found.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct FoundItem {
    #[serde(flatten)]
    item: Item,
    /// The share of the query that it matches, rare words counting more: 0 to 1.
    score: f64,
    /// The words of the query that it matches.
    matched_terms: Vec<String>,
}

/// What these definitions would have here.
async fn items(host: &Host, definitions: Vec<Arc<Definition>>) -> Result<Vec<Item>, ToolError> {
    let ruled = host.rule(definitions.clone()).await?;
    Ok(definitions.iter().zip(&ruled).map(|(definition, ruled)| item(host, definition, ruled)).collect())
}

/// What the definition would have here.
fn item(host: &Host, definition: &Definition, ruled: &[Ruled]) -> Item {
    let outfit = Stock::of(host).outfit(definition);
    let of_file = definition.warnings.iter().filter(|one| one.severity != Severity::Info).take(WARNINGS_MAX);
    let of_here = outfit.findings(definition, host.tools(), ruled);
    let warnings = of_file.chain(&of_here).map(|one| cut(&one.message, WARNING_CHARS_MAX)).collect();
    Item {
        id: definition.id.to_string(),
        assistant_id: definition.id.to_string(),
        name: definition.name.clone(),
        description: cut(&definition.description, DESCRIPTION_CHARS_MAX),
        source: definition.source.label(),
        tools: outfit.grants.tools,
        model: outfit.model.ok().map(|choice| choice.name),
        warnings,
    }
}

async fn list_assistant(call: Call, params: List) -> Result<Output, ToolError> {
    let host = &call.host;
    let registry = host.registry();
    let skipped = u32::try_from(registry.skipped().len()).unwrap_or(u32::MAX);
    if let Some(wanted) = &params.assistant_id {
        let definition = find(host, wanted)?;
        return Output::new(&Listed {
            items: items(host, vec![definition.clone()]).await?,
            total_items: 1,
            total_items_too: 1,
            next_page: None,
            skipped,
            skipped_files: Vec::new(),
            system_prompt: Some(cut(&definition.system_prompt, host.limits().answer_chars as usize)),
            tags: Some(definition.tags.clone()),
        });
    }
    let size = params.page_size.unwrap_or(PAGE_SIZE_DEFAULT).clamp(1, PAGE_SIZE_MAX);
    let page = params.page.unwrap_or(1).max(1);
    let all: Vec<_> = registry.assistants().iter().filter(|one| one.fits(params.source, &params.tags)).collect();
    let from = (page as usize - 1).saturating_mul(size as usize);
    let total = u32::try_from(all.len()).unwrap_or(u32::MAX);
    let page_of: Vec<_> = all.iter().skip(from).take(size as usize).map(|one| Arc::clone(one)).collect();
    let items = items(host, page_of).await?;
    let more = all.len() > from.saturating_add(items.len()) && !items.is_empty();
    Output::new(&Listed {
        items,
        total_items: total,
        total_items_too: total,
        next_page: more.then_some(page + 1),
        skipped,
        skipped_files: if more { Vec::new() } else { faulty(&registry) },
        system_prompt: None,
        tags: None,
    })
}

/// Files that were to be assistants and are none, with the reason. A document beside them has no fault.
fn faulty(registry: &Registry) -> Vec<String> {
    let faulty = registry.skipped().iter().filter(|one| one.severity != Severity::Info);
    faulty.take(SKIPPED_MAX).map(|one| cut(&one.to_string(), WARNING_CHARS_MAX)).collect()
}

async fn search_assistant(call: Call, params: Search) -> Result<Output, ToolError> {
    if params.query.trim().is_empty() {
        return Err(ToolError::bad_argument(
            "`query` is empty",
            "Describe the task in a sentence, or use list_assistant.",
        ));
    }
    let limit = params.limit.unwrap_or(LIMIT_DEFAULT).clamp(1, LIMIT_MAX) as usize;
    let filter = Filter { source: params.source, tags: params.tags, ..Filter::default() };
    let (found, total) = search(&call.host, params.query, filter, limit).await?;
    let (definitions, hits): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    let items = items(&call.host, definitions).await?.into_iter().zip(hits).map(|(item, hit)| FoundItem {
        item,
        score: round(hit.score),
        matched_terms: hit.matched_terms,
    });
    Output::new(&Found { items: items.collect(), total_matches: u32::try_from(total).unwrap_or(u32::MAX) })
}

/// A score with three digits behind the point.
pub(super) fn round(score: f32) -> f64 {
    (f64::from(score) * 1_000.0).round() / 1_000.0
}

/// Why a search has no answer.
#[derive(Debug, thiserror::Error)]
enum LookError {
    #[error(transparent)]
    Index(#[from] SearchError),
    /// It panicked, as it does on some damaged files.
    #[error("the search stopped: {0}")]
    Stopped(#[from] JoinError),
}

/// Searches on a thread for such work. Returns what was found, best first, and how many there are in all. An index that
/// fails because its files were damaged below it is read anew, once; a query that fails on whole files fails.
pub(super) async fn search(
    host: &Host,
    text: String,
    filter: Filter,
    limit: usize,
) -> Result<(Vec<(Arc<Definition>, Hit)>, usize), ToolError> {
    let index = host.search();
    let error = match look(host, index.clone(), text.clone(), filter.clone(), limit).await {
        Ok(found) => return Ok(found),
        Err(error) => error,
    };
    tracing::warn!(%error, "a search failed; the search index is read anew if its files are damaged");
    if !host.search_anew(&index).await.map_err(|error| ToolError::internal(&error))? {
        return Err(ToolError::internal(&error));
    }
    look(host, host.search(), text, filter, limit).await.map_err(|error| ToolError::internal(&error))
}

/// The answer of `index`.
async fn look(
    host: &Host,
    index: Arc<SearchIndex>,
    text: String,
    filter: Filter,
    limit: usize,
) -> Result<(Vec<(Arc<Definition>, Hit)>, usize), LookError> {
    let registry = host.registry();
    let task = tokio::task::spawn_blocking(move || {
        let found = index.search(&text, &filter, limit)?;
        let with = |hit: Hit| registry.get(&hit.id).map(|definition| (definition.clone(), hit));
        Ok((found.hits.into_iter().filter_map(with).collect(), found.total))
    });
    let found: Result<_, SearchError> = task.await?;
    Ok(found?)
}

/// The assistant of this id or exact name, or an error that names the nearest.
pub(super) fn find(host: &Host, wanted: &str) -> Result<Arc<Definition>, ToolError> {
    let registry = host.registry();
    let by_id = wanted.parse::<AssistantId>().ok().and_then(|id| registry.get(&id).cloned());
    by_id.or_else(|| registry.find_exact(wanted).cloned()).ok_or_else(|| {
        let shown: String = wanted.chars().take(80).collect();
        if let Some(skipped) = registry.skipped_as(wanted) {
            let message = format!("no assistant has the id `{shown}`: {}", skipped_words(skipped));
            let hint =
                "Your user can mend the file: `assistant-host check` tells more. search_assistant finds another one.";
            return ToolError::new("unknown_assistant", message, hint);
        }
        let near: Vec<String> = registry.nearest(wanted, 3).iter().map(|id| format!("`{id}`")).collect();
        let hint = match near.as_slice() {
            [] => "search_assistant finds one by a description of the task.".to_owned(),
            some => format!("Near to it: {}. search_assistant finds one by a description.", some.join(", ")),
        };
        ToolError::new("unknown_assistant", format!("no assistant has the id `{shown}`"), &hint)
    })
}
