//! How much work a check is, counted before it is done: a schema that refers to itself twice in one place takes twice as
//! long for each level of a result.

use serde_json::{Map, Value};

use super::refer::{Within, reference};

/// Schemas that are looked at for one result, and what takes as long.
const STEPS_MAX: u64 = 2_000_000;
/// Schemas within each other while a result is looked at.
const WITHIN_MAX: usize = 400;
/// Bytes that a regular expression looks at in the time of one step.
const PATTERN_BYTES_A_STEP: usize = 16;
/// Steps of a look with a regular expression that may go back.
const BACKTRACKING_STEPS: u64 = 200;

/// The levels of a value: 1 where nothing is in it.
#[must_use]
pub fn levels(value: &Value) -> usize {
    let (mut deepest, mut todo) = (0, vec![(value, 1)]);
    while let Some((value, level)) = todo.pop() {
        deepest = deepest.max(level);
        match value {
            Value::Object(map) => todo.extend(map.values().map(|part| (part, level + 1))),
            Value::Array(all) => todo.extend(all.iter().map(|part| (part, level + 1))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    deepest
}

/// Returns where a result can be checked with a bounded amount of work.
///
/// # Errors
/// Words for whoever hands it in.
pub(super) fn bounded(within: &Within<'_>, result: &Value) -> Result<(), String> {
    let mut count = Count { within, left: STEPS_MAX };
    count
        .look(within.root, result, 0)
        .map_err(|TooMuch| "it takes too much work to check by its schema: hand in less".to_owned())
}

struct TooMuch;

struct Count<'a> {
    within: &'a Within<'a>,
    left: u64,
}

impl Count<'_> {
    fn spend(&mut self, steps: u64) -> Result<(), TooMuch> {
        self.left = self.left.checked_sub(steps).ok_or(TooMuch)?;
        Ok(())
    }

    fn pattern(&mut self, pattern: &str, bytes: usize) -> Result<(), TooMuch> {
        // Look-around begins so; what refers back has a digit behind a backslash.
        let goes_back = pattern.contains("(?") || pattern.contains('\\');
        let steps = if goes_back { BACKTRACKING_STEPS } else { 1 };
        self.spend(steps + (bytes / PATTERN_BYTES_A_STEP) as u64)
    }

    fn look(&mut self, schema: &Value, value: &Value, level: usize) -> Result<(), TooMuch> {
        self.spend(1)?;
        let Value::Object(map) = schema else { return Ok(()) };
        if level > WITHIN_MAX {
            return Err(TooMuch);
        }
        if let Some(target) = reference(map).and_then(|to| self.within.target(to)) {
            self.look(target, value, level + 1)?;
        }
        for (keyword, part) in map {
            match (keyword.as_str(), part) {
                ("allOf" | "anyOf" | "oneOf", Value::Array(all)) => {
                    for one in all {
                        self.look(one, value, level + 1)?;
                    }
                }
                ("not" | "if" | "then" | "else", part) => self.look(part, value, level + 1)?,
                ("dependentSchemas" | "dependencies", Value::Object(named)) => {
                    for one in named.values() {
                        self.look(one, value, level + 1)?;
                    }
                }
                ("enum", Value::Array(all)) => self.spend(all.len() as u64)?,
                _ => {}
            }
        }
        match value {
            Value::Object(fields) => self.object(map, fields, level + 1),
            Value::Array(items) => self.array(map, items, level + 1),
            Value::String(text) => match map.get("pattern").and_then(Value::as_str) {
                Some(pattern) => self.pattern(pattern, text.len()),
                None => Ok(()),
            },
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        }
    }

    fn object(&mut self, map: &Map<String, Value>, fields: &Map<String, Value>, level: usize) -> Result<(), TooMuch> {
        let named = map.get("properties").and_then(Value::as_object);
        if let Some(named) = named {
            self.spend(named.len() as u64)?;
            for (name, schema) in named {
                if let Some(field) = fields.get(name) {
                    self.look(schema, field, level)?;
                }
            }
        }
        for (pattern, schema) in map.get("patternProperties").and_then(Value::as_object).into_iter().flatten() {
            for (name, field) in fields {
                self.pattern(pattern, name.len())?;
                self.look(schema, field, level)?;
            }
        }
        for keyword in ["additionalProperties", "unevaluatedProperties"] {
            let Some(schema) = map.get(keyword) else { continue };
            for (name, field) in fields {
                if named.is_none_or(|named| !named.contains_key(name)) {
                    self.look(schema, field, level)?;
                }
            }
        }
        if let Some(schema) = map.get("propertyNames") {
            for name in fields.keys() {
                self.look(schema, &Value::String(name.clone()), level)?;
            }
        }
        Ok(())
    }

    fn array(&mut self, map: &Map<String, Value>, items: &[Value], level: usize) -> Result<(), TooMuch> {
        let list = |keyword: &str| map.get(keyword).and_then(Value::as_array);
        let first = list("prefixItems").or_else(|| list("items"));
        for (schema, item) in first.into_iter().flatten().zip(items) {
            self.look(schema, item, level)?;
        }
        let behind = items.get(first.map_or(0, Vec::len)..).unwrap_or_default();
        let rest = ["items", "additionalItems", "unevaluatedItems"].iter().filter_map(|keyword| map.get(*keyword));
        for schema in rest.filter(|schema| !schema.is_array()) {
            for item in behind {
                self.look(schema, item, level)?;
            }
        }
        if let Some(schema) = map.get("contains") {
            for item in items {
                self.look(schema, item, level)?;
            }
        }
        if map.get("uniqueItems") == Some(&Value::Bool(true)) {
            self.spend(items.len() as u64 * 4)?;
        }
        Ok(())
    }
}
