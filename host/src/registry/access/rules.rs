//! Rules for some calls of a tool: those that somebody is asked before, and those whose order counts.

use super::super::fields::{self, LIST_MAX, Rule};
use super::super::notes::Notes;
use super::super::rules::{Action, ToolRule, subject};
use super::super::yaml::{Entry, Kind};
use super::{Access, bare, closed, hints, is_all};

impl Access {
    /// Has somebody asked before calls of a tool.
    pub(super) fn ask(&mut self, name: &str) {
        if self.asked.iter().any(|asked| asked == name) {
            return;
        }
        match self.asked.len() < LIST_MAX {
            true => self.asked.push(name.to_owned()),
            false => self.too_many = true,
        }
    }

    /// Adds a rule behind those that stand before it.
    pub(super) fn add_rule(&mut self, tool: &str, pattern: Option<&str>, action: Action) {
        match self.rules.len() < LIST_MAX {
            true => self.rules.push(ToolRule { tool: tool.to_owned(), pattern: pattern.map(str::to_owned), action }),
            false => self.too_many = true,
        }
    }

    /// Takes all rules whose order counts: those of permissions, those under a key of their own, and behind them the groups
    /// that another key refuses, so that none of them takes one back. More than the bound are cut, and told as too many. With
    /// `by_default` no key names tools, and what permissions take away for some calls only is given for the others.
    pub(super) fn all_rules(&mut self, by_default: bool) -> Vec<ToolRule> {
        let refused = |tool: &str| self.denied.iter().any(|name| name.eq_ignore_ascii_case(tool));
        let counts = |rule: &ToolRule| rule.action != Action::Allow || rule.pattern.is_some() || !refused(&rule.tool);
        let mut rules = std::mem::take(&mut self.rules);
        rules.retain(counts);
        let mut layers = Vec::new();
        if by_default && self.own_rules.is_none() {
            let given = self.by_default.iter().filter(|name| !holds_others(name, &rules)).map(|name| ToolRule {
                tool: name.clone(),
                pattern: None,
                action: Action::Allow,
            });
            rules = given.chain(rules.iter().cloned()).collect();
        }
        if let Some(mut own) = self.own_rules.take() {
            own.retain(counts);
            if says_all(&own, &rules) {
                // A file that was written of a definition has what permissions say under both keys.
                rules = own;
            } else {
                layers.append(&mut self.permitted_groups);
                layers.retain(|layer| opens(&own, layer));
                rules.extend(own);
            }
        }
        layers.append(&mut self.groups);
        for layer in layers.iter().filter(|layer| !layer.is_empty()) {
            self.too_many |= layer.len() > LIST_MAX || rules.len() > LIST_MAX;
            if !self.too_many {
                rules = behind(&rules, layer);
            }
        }
        rules.splice(..0, self.switched_on_before(&rules));
        rules.retain(counts);
        self.too_many |= rules.len() > LIST_MAX;
        rules.truncate(LIST_MAX);
        rules
    }

    /// Rules under a key of their own.
    pub(super) fn ordered(&mut self, entry: &Entry, notes: &mut Notes<'_>) {
        if entry.value.is_null() {
            return;
        }
        let rules: Option<Vec<ToolRule>> = match &entry.value.kind {
            Kind::Seq(nodes) => nodes.iter().map(|node| node.scalar().and_then(|text| text.parse().ok())).collect(),
            Kind::Scalar { .. } | Kind::Map(_) => None,
        };
        match rules.filter(|rules| rules.len() <= LIST_MAX) {
            Some(rules) => self.own_rules.get_or_insert_default().extend(rules),
            None => {
                self.closed = true;
                closed(entry, "it has no tools", hints::RULES, notes);
            }
        }
    }
}

/// Whether a rule gives some calls that are about the same as those of the tool `name`, and thereby no others.
fn holds_others(name: &str, rules: &[ToolRule]) -> bool {
    let gives_some = |rule: &&ToolRule| rule.action == Action::Allow && rule.pattern.as_ref().is_some_and(|p| p != "*");
    rules.iter().filter(gives_some).any(|rule| subject(&rule.tool) == subject(name))
}

/// The rules of a map of tools by which some are given out of `groups` of it that are refused.
pub(super) fn excepted(entries: &[Entry], groups: &[&Entry]) -> Vec<ToolRule> {
    let of_map = |entry: &Entry| {
        let of_group = || groups.iter().any(|group| covers(group, entry));
        let action = match fields::rule(&entry.value) {
            Rule::Deny if groups.contains(&entry) => Action::Deny,
            Rule::Allow if of_group() => Action::Allow,
            Rule::Ask if of_group() => Action::Ask,
            Rule::Allow | Rule::Deny | Rule::Ask | Rule::Some | Rule::Unreadable => return None,
        };
        Some(ToolRule { tool: entry.key.clone(), pattern: None, action })
    };
    entries.iter().filter_map(of_map).collect()
}

/// `rules` with the groups of `layer`, which are refused but for some: what `rules` say of those counts, and nothing that
/// they say gives another tool of a group.
fn behind(rules: &[ToolRule], layer: &[ToolRule]) -> Vec<ToolRule> {
    if !opens(rules, layer) {
        return [layer, rules].concat();
    }
    let mut found = rules.to_vec();
    for one in layer {
        found.push(one.clone());
        if one.action != Action::Deny {
            found.extend(rules.iter().filter_map(|rule| within(rule, &one.tool)));
        }
    }
    // By what a tool does they may be about those that are given too.
    found.extend(rules.iter().filter(|rule| !meets(rule, layer)).cloned());
    found
}

/// Whether `rules` has all of `others` in their order.
fn says_all(rules: &[ToolRule], others: &[ToolRule]) -> bool {
    let mut rules = rules.iter();
    others.iter().all(|other| rules.any(|rule| rule == other))
}

/// Whether one of `rules` may give what a group of `layer` refuses.
fn opens(rules: &[ToolRule], layer: &[ToolRule]) -> bool {
    rules.iter().any(|rule| rule.action != Action::Deny && meets(rule, layer))
}

/// Whether a rule may be about a tool of a group that `layer` refuses.
fn meets(rule: &ToolRule, layer: &[ToolRule]) -> bool {
    let mut groups = layer.iter().filter(|one| one.action == Action::Deny);
    is_all(&rule.tool) || groups.any(|group| may_meet(&group.tool, &rule.tool))
}

/// What of a rule is about `name`, a tool or a group.
fn within(rule: &ToolRule, name: &str) -> Option<ToolRule> {
    let of_name =
        |pattern: Option<&String>| ToolRule { tool: name.to_owned(), pattern: pattern.cloned(), action: rule.action };
    if is_all(&rule.tool) || is_like(&rule.tool, name) {
        return Some(of_name(rule.pattern.as_ref()));
    }
    match rule.action {
        _ if is_like(name, &rule.tool) => Some(rule.clone()),
        _ if !may_meet(name, &rule.tool) => None,
        Action::Allow => None,
        Action::Ask => Some(of_name(None)),
        Action::Deny => Some(rule.clone()),
    }
}

/// Whether a tool may be called what two names or patterns both are, in any spelling of it: `x_*` meets `mcp__x__evil`,
/// and `@x`, which is all of a server. What may not be so counts as if it was.
fn may_meet(one: &str, other: &str) -> bool {
    let (one, other) = (wide(one), wide(other));
    let is_pattern = |name: &[char]| name.iter().any(|sign| matches!(sign, '*' | '?'));
    let begin = |name: &[char]| name.iter().position(|sign| matches!(sign, '*' | '?')).unwrap_or(name.len());
    match (is_pattern(&one), is_pattern(&other)) {
        (_, false) => is_of(&one, &other),
        (false, true) => is_of(&other, &one),
        (true, true) => {
            let (one, other) = (&one[..begin(&one)], &other[..begin(&other)]);
            one.starts_with(other) || other.starts_with(one)
        }
    }
}

/// Letters and digits of a name, and the signs of a pattern, without what stands before that of a server.
fn wide(name: &str) -> Vec<char> {
    let name = bare(name).trim().to_lowercase();
    let name = name.strip_prefix("mcp_").unwrap_or(&name);
    name.chars().filter(|sign| sign.is_alphanumeric() || matches!(sign, '*' | '?')).collect()
}

/// Those of `entries` that refuse a group of tools out of which a later one gives some: of the rules that fit a tool, the
/// last counts.
pub(super) fn groups(entries: &[Entry]) -> Vec<&Entry> {
    let refuses = |entry: &Entry| fields::rule(&entry.value) == Rule::Deny && is_group(&entry.key);
    let gives = |entry: &Entry| matches!(fields::rule(&entry.value), Rule::Allow | Rule::Ask | Rule::Some);
    let excepts = |at: usize, group: &Entry| entries[at + 1..].iter().any(|one| gives(one) && covers(group, one));
    let groups = entries.iter().enumerate().filter(|(at, entry)| refuses(entry) && excepts(*at, entry));
    groups.map(|(_, entry)| entry).collect()
}

/// Whether a key is a pattern for the names of some tools: of all is no group.
fn is_group(key: &str) -> bool {
    key.contains(['*', '?']) && !is_all(key) && key.contains(char::is_alphanumeric)
}

/// Whether the pattern of one key is all of the other, but for the spelling.
fn covers(group: &Entry, entry: &Entry) -> bool {
    is_like(&group.key, &entry.key)
}

/// The signs of a name, but for what spellings differ in.
fn plain(key: &str) -> Vec<char> {
    bare(key).to_lowercase().replace(['-', '/'], "_").replace("__", "_").chars().collect()
}

/// Whether `name` is of the group `pattern`, in which `*` is any text and `?` one sign, but for the spelling.
pub(super) fn is_like(pattern: &str, name: &str) -> bool {
    is_of(&plain(pattern), &plain(name))
}

fn is_of(pattern: &[char], name: &[char]) -> bool {
    // `reached[n]`: what of the pattern was looked at is the first `n` of the name.
    let mut reached: Vec<bool> = (0..=name.len()).map(|at| at == 0).collect();
    for &sign in pattern {
        let mut before = false;
        let next = |at: usize, reached: &[bool]| match sign {
            '*' => reached[at],
            _ => at > 0 && reached[at - 1] && (sign == '?' || sign == name[at - 1]),
        };
        reached = (0..=name.len())
            .map(|at| {
                before = next(at, &reached) || (sign == '*' && before);
                before
            })
            .collect();
    }
    reached[name.len()]
}
