//! Whether one definition gives more than another: what a spawn must not bring by the way.

use std::collections::BTreeMap;

use super::entry::Entry;
use super::{Policy, ToolName, is_talk, names_server};
use crate::registry::{Action, Definition, Subject};
use crate::servers::{Configured, brings};
use crate::trust;

/// What `child` may do that `parent` may not: names for a message. `tools` are those of the host and the app that the child
/// has; of those the parent has too only the rules are compared. `configured` are servers that any assistant may ask for.
///
/// Rules are compared as they are written: one that only means the same is more.
pub(crate) fn exceeds(
    child: &Definition,
    parent: &Definition,
    tools: &[String],
    configured: &Configured,
    aliases: &BTreeMap<String, String>,
) -> Vec<String> {
    let (of_child, of_parent) = (Policy::of(child, aliases), Policy::of(parent, aliases));
    let compared = tools.iter().filter(|tool| !is_talk(ToolName { server: None, tool }));
    let wider = compared.filter(|tool| of_child.is_wider(&of_parent, ToolName { server: None, tool }));
    let mut more: Vec<String> = wider.cloned().collect();
    let servers = servers(child);
    let asks = |entry: &&Entry| {
        let of_host = tools.iter().any(|tool| of_child.stands_for(entry, ToolName { server: None, tool }));
        let name = &entry.name;
        let of_server = || configured.iter().any(|one| brings(&one.name, name, aliases));
        // Of all tools, those of the host were compared.
        (!of_host || entry.is_all()) && (!servers.is_empty() || of_server())
    };
    let asked: Vec<&Entry> = of_child.allow.iter().flatten().chain(&of_child.by_rules).filter(asks).collect();
    if !servers.is_empty() || !asked.is_empty() {
        let held = self::servers(parent);
        more.extend(servers.iter().filter(|one| !held.contains(one)).map(|(name, _)| format!("the server {name}")));
        // One that the parent defines itself is another server than the configured one of that name.
        let of_parent_too = |name: &str| {
            held.iter().find(|(own, what)| own == name || (what.is_empty() && own.eq_ignore_ascii_case(name)))
        };
        let is_same = |own: &Server| own.1.is_empty() || servers.contains(own);
        let brought = |entry: &Entry| -> Vec<Option<&Server>> {
            let of_entry = configured.iter().filter(|one| brings(&one.name, &entry.name, aliases));
            of_entry.map(|one| of_parent_too(&one.name)).collect()
        };
        let another = |entry: &&&Entry| brought(entry).into_iter().flatten().any(|own| !is_same(own));
        let shadowed = asked.iter().filter(another).map(|entry| format!("{} of the configuration", entry.written));
        more.extend(shadowed);
        let is_own = |entry: &Entry| brought(entry).into_iter().all(|own| own.is_some_and(is_same));
        more.extend(of_child.wider_servers(&of_parent, &asked, &is_own, &servers, &held));
    }
    more
}

/// Whether an assistant may make a call of its own without asking anybody: it has the tool, and its rules allow the call.
/// `tools` are those of the host and the app that it has; `asker` is whose call it is: a server that only that one defines, or
/// defines otherwise, is none of it.
pub(crate) fn allows_itself(
    definition: &Definition,
    asker: &Definition,
    policy: &Policy,
    tools: &[String],
    tool: ToolName<'_>,
    arguments: &serde_json::Map<String, serde_json::Value>,
) -> bool {
    let has = match tool.server {
        None => tools.iter().any(|own| own == tool.tool),
        Some(server) => {
            // Without more than the name it is the configured one.
            let own =
                |definition| servers(definition).into_iter().find(|(name, what)| name == server && !what.is_empty());
            let named = servers(definition).iter().any(|(name, _)| name == server) || policy.allow.is_some();
            own(definition) == own(asker) && named && !definition.readonly && policy.offers(tool)
        }
    };
    has && policy.judge(tool, arguments) == super::Verdict::Allow
}

/// The name of a tool server, and all that its definition says of it.
type Server = (String, String);

impl Policy {
    /// Whether it lets more calls of a tool pass than `other`.
    pub(super) fn is_wider(&self, other: &Self, tool: ToolName<'_>) -> bool {
        let held = |policy: &Self| -> Option<Vec<String>> {
            let named: Vec<Entry> =
                policy.allow.iter().flatten().filter(|entry| policy.stands_for(entry, tool)).cloned().collect();
            let some = !named.is_empty() && named.iter().all(|entry| !entry.patterns.is_empty());
            some.then(|| named.into_iter().flat_map(|entry| entry.patterns).collect())
        };
        let wider = match (held(self), held(other)) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(mine), Some(theirs)) => mine.iter().any(|pattern| !theirs.contains(pattern)),
        };
        wider || self.lacks_of(other, Some(tool))
    }

    /// Whether a rule of `other` that refuses or asks is none of it.
    fn lacks_of(&self, other: &Self, tool: Option<ToolName<'_>>) -> bool {
        // What a command redirects to is told by the rules for files.
        let redirects = |entry: &Entry, tool| {
            let of_files = matches!(entry.subject(), Some(Subject::ReadPath | Subject::WritePath));
            of_files && other.subject(tool) == Some(Subject::Command)
        };
        let concerns = |entry: &&Entry| tool.is_none_or(|tool| other.concerns(entry, tool) || redirects(entry, tool));
        let has = |entries: &[Entry], entry: &Entry| {
            entries.iter().any(|own| own.written.eq_ignore_ascii_case(&entry.written))
        };
        let refused = other.deny.iter().filter(concerns).any(|entry| !has(&self.deny, entry));
        let asked = other.ask.iter().filter(concerns).any(|entry| !has(&self.ask, entry) && !has(&self.deny, entry));
        // Rules whose order counts are the same, or they are not.
        let about = |policy: &Self| -> Vec<(String, bool)> {
            let about = |entry: &Entry, action| {
                tool.is_none_or(|tool| {
                    policy.concerns(entry, tool) || policy.rules(entry, action, tool) || redirects(entry, tool)
                })
            };
            let all = policy.ordered.iter().filter(|(entry, action)| about(entry, *action));
            all.map(|(entry, action)| (entry.written.clone(), *action != Action::Allow || !entry.patterns.is_empty()))
                .collect()
        };
        let ordered = about(other);
        // What only allows all calls keeps nobody from any.
        refused || asked || (ordered.iter().any(|(_, limits)| *limits) && ordered != about(self))
    }

    /// What it gives of tools of servers that `other` does not: it asks for `asked`, it has the servers `servers` of its own,
    /// and the other one those of `others`. `is_own` is whether an entry brings no configured server that is none of those.
    fn wider_servers(
        &self,
        other: &Self,
        asked: &[&Entry],
        is_own: &dyn Fn(&Entry) -> bool,
        servers: &[Server],
        others: &[Server],
    ) -> Vec<String> {
        let mut more = Vec::new();
        if other.readonly && !self.readonly {
            more.push("tools of servers that change something".to_owned());
        }
        // Without a word about tools it has those of its own servers, and what its rules give.
        let held = other.allow.as_ref().unwrap_or(&other.by_rules);
        if !held.iter().any(|entry| entry.is_all() && entry.patterns.is_empty()) {
            let named = |entry: &Entry| {
                held.iter().any(|own| {
                    own.written.eq_ignore_ascii_case(&entry.written)
                        || (own.patterns.is_empty() && own.name.eq_ignore_ascii_case(&entry.name))
                })
            };
            let of_own = |entry: &Entry| {
                let own = || others.iter().any(|(own, _)| names_server(&entry.name, own));
                other.allow.is_none() && !entry.is_all() && own() && is_own(entry)
            };
            if self.allow.is_none() && other.allow.is_some() && !servers.is_empty() {
                more.push("all tools of its servers".to_owned());
            }
            let wider = asked.iter().filter(|entry| !named(entry) && !of_own(entry));
            more.extend(wider.map(|entry| entry.written.clone()));
        }
        if self.lacks_of(other, None) {
            more.push("calls that are refused or asked about there".to_owned());
        }
        more
    }
}

/// The tool servers of a definition by name, with what each is.
fn servers(definition: &Definition) -> Vec<Server> {
    use serde_json::Value;
    let named = |value: &Value| match value {
        Value::Object(map) => map.get("name").and_then(Value::as_str).map_or_else(
            || map.iter().map(|(name, what)| (name.clone(), what.to_string())).collect(),
            |name| vec![(name.to_owned(), value.to_string())],
        ),
        Value::String(name) => vec![(name.clone(), String::new())],
        _ => Vec::new(),
    };
    let mut all: Vec<Server> = match &definition.mcp_servers {
        None => Vec::new(),
        Some(Value::Array(all)) => all.iter().flat_map(named).collect(),
        Some(Value::Object(map)) => map.iter().map(|(name, what)| (name.clone(), what.to_string())).collect(),
        Some(other) => named(other),
    };
    let (off, on): (Vec<_>, Vec<_>) = trust::wanted(definition)
        .into_iter()
        .filter(|one| one.kind == trust::Kind::Server)
        .partition(|one| one.is_off());
    all.retain(|(name, _)| !off.iter().any(|one| one.name == *name));
    // Those of other keys, as opencode's `mcp`.
    for one in on {
        if !all.iter().any(|(name, _)| *name == one.name) {
            let what =
                if one.written().as_str() == Some(&one.name) { String::new() } else { one.written().to_string() };
            all.push((one.name.clone(), what));
        }
    }
    all
}
