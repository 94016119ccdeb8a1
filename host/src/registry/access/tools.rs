//! The tools that an assistant wants: a list of all that it has, or a map that switches single ones on and off.

use super::super::diagnostic::Code;
use super::super::fields::Names;
use super::super::keys::cut;
use super::super::known;
use super::super::notes::Notes;
use super::super::rules::{Action, ToolRule};
use super::super::yaml::{Entry, Kind};
use super::lists::{both, names};
use super::{Access, bare, closed, hints, is_all, is_spawner, place, rules};

/// The key, folded, below which a map switches single tools, as opencode has it; below others it is a list of all.
const SWITCHES: &str = "tools";

impl Access {
    /// Takes the tools that `entry` names. A list is all that it has. So is a map that says of all tools what they are; else
    /// a map is about those that it names, and the others stay as they are.
    pub(super) fn tools(&mut self, entry: &Entry, notes: &mut Notes<'_>) {
        let node = &entry.value;
        if node.is_null() {
            return;
        }
        let mut found = names(entry);
        if found.unreadable {
            closed(entry, "what is no name of a tool gives none", hints::names(entry), notes);
        }
        if !found.refused.is_empty() {
            self.denied_at = place(entry);
        }
        found.asked.iter().for_each(|name| self.ask(name));
        found.taken.append(&mut found.asked);
        self.spawns_in(&found.taken, entry, notes);
        in_parentheses(&mut found.taken, entry, notes);
        if let Kind::Map(entries) = &node.kind {
            let groups = rules::groups(entries);
            self.groups.push(rules::excepted(entries, &groups));
            found.refused.retain(|name| !groups.iter().any(|group| group.key == *name));
        }
        let key = known::fold(&entry.key);
        let map = matches!(&node.kind, Kind::Map(entries) if !entries.is_empty());
        let switches = map && key == SWITCHES && !found.unreadable && !says_of_all(&found);
        // What only refuses takes away from what there is without it.
        let refuses = found.taken.is_empty() && !found.refused.is_empty();
        if switches {
            let named = notes.bounded(std::mem::take(&mut found.taken), &entry.key, place(entry));
            // A map that only refuses is no word about what else there is.
            if !named.is_empty() {
                self.beside = Some(both(self.beside.take(), named));
            }
        } else if found.unreadable || !refuses || found.refused.iter().any(|name| name == "*") {
            let tools = notes.bounded(found.taken, &entry.key, place(entry));
            let narrower = both(self.tools.clone(), tools.clone());
            if self.tools.as_ref().is_some_and(|before| *before != tools) && self.tools_key != key {
                self.doubled.push((cut(&entry.key), place(entry)));
            }
            (self.tools, self.tools_key) = (Some(narrower), key);
        }
        found.refused.iter().filter(|name| *name != "*").for_each(|name| self.deny(name));
    }

    /// Puts the tools that are switched on beside those that permissions allow, where there are such.
    pub(super) fn switched_on(&mut self) {
        if let (Some(allowed), Some(beside)) = (&mut self.allowed, &self.beside) {
            let more: Vec<String> = beside.iter().filter(|name| !allowed.contains(name)).cloned().collect();
            allowed.extend(more);
        }
    }

    /// The rules that give the tools that are switched on, for a place before all of `rules`: whatever another key says of
    /// one of them counts more.
    pub(super) fn switched_on_before(&self, rules: &[ToolRule]) -> Vec<ToolRule> {
        let unnamed = |name: &&String| !rules.iter().any(|rule| rule.tool == **name);
        let gives = |name: &String| ToolRule { tool: name.clone(), pattern: None, action: Action::Allow };
        self.beside.iter().flatten().filter(unnamed).map(gives).collect()
    }
}

/// Whether names say what becomes of all tools.
fn says_of_all(found: &Names) -> bool {
    found.taken.iter().chain(&found.refused).any(|name| is_all(name))
}

/// Tells of names whose parentheses hold nothing, or never end: for none of them anything is given. What has an end that is
/// missing stays, to be told to whoever spawns it as a tool that is not there; what would be a whole tool is taken away.
pub(super) fn in_parentheses(names: &mut Vec<String>, entry: &Entry, notes: &mut Notes<'_>) {
    for name in names.iter().filter(|name| is_open(name)) {
        let message = format!("`{}` has a parenthesis without its other one, so it gives no tool", cut(name));
        notes.say(Code::AccessNarrowed, place(entry), message, hints::OPEN);
    }
    for name in names.iter().filter(|name| is_hollow(name) && !is_open(name)) {
        let message = format!("`{}` gives no tool: this host cannot tell which calls are meant", cut(name));
        notes.say(Code::AccessNarrowed, place(entry), message, hints::HOLLOW);
    }
    let whole = |name: &str| is_hollow(name) || (is_open(name) && is_spawner(bare(name)));
    names.retain(|name| !whole(name));
}

/// Whether one of its parentheses has no other.
fn is_open(name: &str) -> bool {
    let count = |sign: char| name.matches(sign).count();
    count('(') != count(')')
}

/// Whether nothing stands in its parentheses. Behind a tool that hands work to others that is told by itself.
fn is_hollow(name: &str) -> bool {
    let Some((tool, rest)) = name.split_once('(') else { return false };
    !is_spawner(tool) && rest.trim_end().strip_suffix(')').unwrap_or(rest).trim().is_empty()
}
