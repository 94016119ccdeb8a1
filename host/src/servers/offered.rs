//! The tools that a server offers: read out of whatever it tells, bounded, and named so that every model takes them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::ServedTool;
use super::portable::portable;
use super::spec::Spec;
use crate::limits::Limits;

/// The longest name of a tool that models take, characters.
const MODEL_NAME_CHARS_MAX: usize = 64;
/// The longest name of a tool that is taken from a server, characters.
const TOOL_CHARS_MAX: usize = 256;
/// Hexadecimal digits that tell two names apart.
const HASH_CHARS: usize = 6;

/// A tool as its server tells it, whatever the server is called.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Offered {
    pub(super) tool: String,
    pub(super) description: String,
    pub(super) input_schema: Value,
    pub(super) read_only: bool,
}

/// Adds the tools of one page of a list to those `found` before, of which there are `tools_per_server` at most; those
/// without a name, or with one that was there before, are left out.
pub(super) fn read(listed: &[Value], limits: &Limits, found: &mut Vec<Offered>) {
    let bytes = |max: u64| usize::try_from(max).unwrap_or(usize::MAX);
    let mut seen: BTreeSet<String> = found.iter().map(|one| one.tool.clone()).collect();
    for one in listed {
        let name = one.get("name").and_then(Value::as_str).unwrap_or_default();
        if name.trim().is_empty() || name.chars().count() > TOOL_CHARS_MAX || !seen.insert(name.to_owned()) {
            continue;
        }
        if found.len() >= limits.tools_per_server as usize {
            break;
        }
        let text = ["description", "title"].iter().find_map(|key| one.get(*key).and_then(Value::as_str));
        let hints = one.get("annotations");
        found.push(Offered {
            tool: name.to_owned(),
            description: cut_bytes(text.unwrap_or_default(), bytes(limits.server_description_bytes)),
            input_schema: portable(one.get("inputSchema").unwrap_or(&Value::Null), bytes(limits.server_schema_bytes)),
            read_only: hints.and_then(|hints| hints.get("readOnlyHint")) == Some(&Value::Bool(true)),
        });
    }
}

/// A text of at most so many bytes, with words for the rest.
fn cut_bytes(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{} [{} bytes left out]", &text[..end], text.len() - end)
}

/// The tools of a server that one definition or the configuration lets through, by the name that it gives the server.
pub(super) fn of_server(spec: &Spec, offered: &[Offered]) -> Vec<ServedTool> {
    let lets = |tool: &str| {
        spec.only.as_ref().is_none_or(|only| only.iter().any(|one| fits(one, tool)))
            && !spec.without.iter().any(|one| fits(one, tool))
    };
    let served = |one: &Offered| ServedTool {
        name: String::new(),
        server: spec.name.clone(),
        tool: one.tool.clone(),
        description: one.description.clone(),
        input_schema: one.input_schema.clone(),
        read_only: one.read_only,
    };
    offered.iter().filter(|one| lets(&one.tool)).map(served).collect()
}

/// Whether a name fits a pattern, in which `*` is any text.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(head) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let Some(last) = parts.pop() else { return true };
    for part in parts {
        match left.find(part) {
            Some(at) => left = &left[at + part.len()..],
            None => return false,
        }
    }
    left.ends_with(last)
}

/// Gives each tool the name by which a model calls it: `server__tool`, at most 64 signs of a to z, A to Z, 0 to 9, `_` and
/// `-`. What that changes, or makes the same as another's or as one of `taken`, ends with a hash of the true name.
pub(super) fn name_all(tools: &mut [ServedTool], taken: &BTreeSet<&str>) {
    let mut plain: BTreeMap<String, usize> = BTreeMap::new();
    for tool in tools.iter() {
        *plain.entry(plain_name(&tool.server, &tool.tool)).or_default() += 1;
    }
    for tool in tools.iter_mut() {
        let name = plain_name(&tool.server, &tool.tool);
        let whole = name == format!("{}__{}", tool.server, tool.tool) && name.len() <= MODEL_NAME_CHARS_MAX;
        let alone = plain.get(&name) == Some(&1) && !taken.contains(name.as_str());
        let short = name.len() <= MODEL_NAME_CHARS_MAX;
        tool.name = if alone && (whole || short) { name } else { hashed(&name, &tool.server, &tool.tool) };
    }
}

/// Whether `name` is one by which a model may call the tool `tool` of `server`: as it is, made to fit, or with the hash that
/// tells it from another.
pub(crate) fn is_model_name(name: &str, server: &str, tool: &str) -> bool {
    let plain = plain_name(server, tool);
    // A hash is made only where the name may end with one.
    let begins = |kept: &str| plain.starts_with(kept) || kept.starts_with(&plain);
    name == plain
        || (name.rsplit_once('_').is_some_and(|(kept, _)| begins(kept)) && name == hashed(&plain, server, tool))
}

/// The same, in full length.
fn plain_name(server: &str, tool: &str) -> String {
    fitted(&format!("{server}__{tool}"))
}

/// The name with a hash by which a model calls the tool `tool` of `server` where another one has its plain name.
#[cfg(test)]
pub(crate) fn model_name(server: &str, tool: &str) -> String {
    hashed(&plain_name(server, tool), server, tool)
}

/// A name with `_` for each sign that models do not take.
pub(crate) fn fitted(name: &str) -> String {
    let sign = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    name.chars().map(sign).collect()
}

fn hashed(name: &str, server: &str, tool: &str) -> String {
    let digest = Sha256::digest(format!("{server}\n{tool}"));
    let hash: String =
        digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>().chars().take(HASH_CHARS).collect();
    let kept: String = name.chars().take(MODEL_NAME_CHARS_MAX - HASH_CHARS - 1).collect();
    format!("{kept}_{hash}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_is_read_whatever_is_in_it() {
        let limits = Limits { tools_per_server: 3, server_description_bytes: 5, ..Limits::default() };
        let list = json!([
            5, { "name": "" }, { "name": "a", "description": "ééé", "annotations": { "readOnlyHint": true } },
            { "name": "a" }, { "name": "b", "inputSchema": "no" }, { "name": "x".repeat(300) }, { "name": "c", "title": "T" },
            { "name": "d" },
        ]);
        let mut found = Vec::new();
        for page in list.as_array().expect("a list").chunks(4) {
            read(page, &limits, &mut found);
        }
        let short: Vec<_> = found.iter().map(|one| (&*one.tool, &*one.description, one.read_only)).collect();
        assert_eq!(short, [("a", "éé [2 bytes left out]", true), ("b", "", false), ("c", "T", false)]);
        assert_eq!(found[1].input_schema, json!({ "type": "object", "properties": {} }));
    }

    #[test]
    fn names_are_taken_by_every_model_and_are_told_apart() {
        let tool = |server: &str, tool: &str| ServedTool {
            name: String::new(),
            server: server.into(),
            tool: tool.into(),
            description: String::new(),
            input_schema: json!({}),
            read_only: false,
        };
        let long = "t".repeat(80);
        let mut tools = [
            tool("db", "query"),
            tool("my db", "q.x"),
            tool("a", "b.c"),
            tool("a", "b/c"),
            tool("app", "paint"),
            tool("a", &long),
            tool("a", &format!("{long}2")),
            tool("a__b", "c"),
            tool("a", "b__c"),
        ];
        name_all(&mut tools, &BTreeSet::from(["app__paint"]));
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names[..2], ["db__query", "my_db__q_x"]);
        let unique: BTreeSet<_> = names.iter().collect();
        assert_eq!(unique.len(), names.len(), "{names:?}");
        for name in &names {
            assert!(
                name.len() <= 64 && !name.contains(|c: char| !c.is_ascii_alphanumeric() && !"_-".contains(c)),
                "{name}"
            );
            assert_ne!(*name, "app__paint");
        }
        // The same again, whatever else there is.
        let mut again = [tool("a", "b.c"), tool("a", "b/c")];
        name_all(&mut again, &BTreeSet::new());
        assert_eq!([&*again[0].name, &*again[1].name], [names[2], names[3]]);
    }

    #[test]
    fn patterns_have_stars() {
        for (pattern, name, want) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "x", true),
            ("a*", "ab", true),
            ("*b", "ab", true),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "acb", false),
            ("ab*ba", "aba", false),
        ] {
            assert_eq!(fits(pattern, name), want, "{pattern} {name}");
        }
    }
}
