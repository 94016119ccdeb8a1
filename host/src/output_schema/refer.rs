//! What a schema refers to within itself.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ptr;

use serde_json::{Map, Value};

use super::{BadSchema, LEVELS_MAX, PATTERNS_MAX};

/// A schema whose references all lead to something in it.
pub(super) struct Within<'a> {
    pub(super) root: &'a Value,
    anchors: HashMap<&'a str, &'a Value>,
}

/// Where schemas stand in a schema.
pub(super) enum Place {
    /// The value is one.
    One,
    /// The value is a list of them.
    List,
    /// The value has one for each of its names.
    Named,
    /// The value is one, or a list of them.
    OneOrList,
    /// There is none.
    None,
}

/// Where schemas stand under a keyword.
pub(super) fn place(keyword: &str) -> Place {
    match keyword {
        "additionalItems"
        | "additionalProperties"
        | "contains"
        | "contentSchema"
        | "else"
        | "if"
        | "not"
        | "propertyNames"
        | "then"
        | "unevaluatedItems"
        | "unevaluatedProperties" => Place::One,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Place::List,
        "$defs" | "definitions" | "dependencies" | "dependentSchemas" | "patternProperties" | "properties" => {
            Place::Named
        }
        "items" => Place::OneOrList,
        _ => Place::None,
    }
}

/// The reference of a schema, if it has one.
pub(super) fn reference(map: &Map<String, Value>) -> Option<&str> {
    ["$ref", "$dynamicRef", "$recursiveRef"].iter().find_map(|key| map.get(*key)).and_then(Value::as_str)
}

impl<'a> Within<'a> {
    /// Looks at all of a schema once.
    pub(super) fn new(root: &'a Value) -> Result<Self, BadSchema> {
        let mut within = Self { root, anchors: HashMap::new() };
        let draft = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let id = if draft.contains("draft-04") { "id" } else { "$id" };
        let mut patterns = BTreeSet::new();
        within.anchors_of(root, id, 0, &mut patterns)?;
        if patterns.len() > PATTERNS_MAX {
            return Err(BadSchema::Patterns { count: patterns.len() });
        }
        within.height(root, 0, &mut HashSet::new(), &mut HashMap::new())?;
        Ok(within)
    }

    fn anchors_of(
        &mut self,
        value: &'a Value,
        id: &str,
        level: usize,
        patterns: &mut BTreeSet<&'a str>,
    ) -> Result<(), BadSchema> {
        if level > LEVELS_MAX {
            return Err(BadSchema::TooDeep);
        }
        match value {
            Value::Object(map) => {
                let text = |key: &str| map.get(key).and_then(Value::as_str);
                match text(id) {
                    Some(own) if own.starts_with('#') => _ = self.anchors.insert(&own[1..], value),
                    Some(own) if level > 0 => return Err(BadSchema::InnerId(crate::text::cut(own, 100))),
                    Some(_) | None => {}
                }
                for name in ["$anchor", "$dynamicAnchor"] {
                    if let Some(Value::String(anchor)) = map.get(name) {
                        self.anchors.insert(anchor, value);
                    }
                }
                if let Some(Value::String(pattern)) = map.get("pattern") {
                    patterns.insert(pattern);
                }
                if let Some(Value::Object(named)) = map.get("patternProperties") {
                    patterns.extend(named.keys().map(String::as_str));
                }
                map.values().try_for_each(|part| self.anchors_of(part, id, level + 1, patterns))
            }
            Value::Array(all) => all.iter().try_for_each(|part| self.anchors_of(part, id, level + 1, patterns)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    /// What a reference leads to.
    pub(super) fn target(&self, reference: &str) -> Option<&'a Value> {
        let fragment = reference.strip_prefix('#')?;
        let fragment = percent_decoded(fragment)?;
        if fragment.is_empty() || fragment.starts_with('/') {
            return self.root.pointer(&fragment);
        }
        self.anchors.get(fragment.as_str()).copied()
    }

    /// How many levels there are below a schema, references followed, each cycle once.
    fn height(
        &self,
        schema: &'a Value,
        level: usize,
        above: &mut HashSet<*const Value>,
        known: &mut HashMap<*const Value, usize>,
    ) -> Result<usize, BadSchema> {
        let Value::Object(map) = schema else { return Ok(0) };
        let key = ptr::from_ref(schema);
        if let Some(height) = known.get(&key) {
            return if level + height > LEVELS_MAX { Err(BadSchema::TooDeep) } else { Ok(*height) };
        }
        if level > LEVELS_MAX {
            return Err(BadSchema::TooDeep);
        }
        if !above.insert(key) {
            return Ok(0);
        }
        let mut height = 0;
        if let Some(to) = reference(map) {
            let target = self.target(to).ok_or_else(|| BadSchema::Reference(crate::text::cut(to, 200)))?;
            height = height.max(1 + self.height(target, level + 1, above, known)?);
        }
        for (keyword, part) in map {
            for inner in schemas(keyword, part) {
                height = height.max(1 + self.height(inner, level + 1, above, known)?);
            }
        }
        above.remove(&key);
        known.insert(key, height);
        Ok(height)
    }
}

/// The schemas that stand directly under a keyword.
pub(super) fn schemas<'v>(keyword: &str, part: &'v Value) -> Vec<&'v Value> {
    match (place(keyword), part) {
        (Place::One | Place::OneOrList, Value::Object(_)) => vec![part],
        (Place::List | Place::OneOrList, Value::Array(all)) => all.iter().collect(),
        (Place::Named, Value::Object(map)) => map.values().collect(),
        _ => Vec::new(),
    }
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        if *first == b'%' {
            let digits = behind.get(..2).and_then(|two| std::str::from_utf8(two).ok())?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &behind[2..];
        } else {
            bytes.push(*first);
            rest = behind;
        }
    }
    String::from_utf8(bytes).ok()
}
