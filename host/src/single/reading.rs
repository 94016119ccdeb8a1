//! From YAML to values, led by the schema of the file: what does not fit is told with its line, and what nobody knows too.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::finding::Finding;
use crate::registry::nearest_name;
use crate::registry::yaml::{self, Kind, Node};
use crate::text::cut;

/// Characters of a text that an error shows.
const SHOWN_CHARS_MAX: usize = 60;
/// Findings about one file.
pub(super) const FINDINGS_MAX: usize = 100;

/// The schema of whatever.
static ANY: Value = Value::Bool(true);

/// What was read of a file.
#[derive(Default)]
pub(super) struct Reading {
    pub(super) findings: Vec<Finding>,
    /// The line of each key, by its path.
    lines: BTreeMap<String, u32>,
    /// How keys are written, where that is not as the schema has them, by their paths.
    written: BTreeMap<String, String>,
}

impl Reading {
    /// Reads `text`; none where it is no YAML of keys and values.
    pub(super) fn of(&mut self, text: &str, schema: &Value) -> Option<Map<String, Value>> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let root = match yaml::parse(text) {
            Ok(root) => root,
            Err(broken) => {
                let message = format!("this is no YAML: {}", broken.message);
                self.findings.push(Finding::error("", broken.line, message));
                return None;
            }
        };
        if let (Kind::Scalar { .. } | Kind::Seq(_), false) = (&root.kind, root.is_null()) {
            self.findings.push(Finding::error("", root.line, "this is no YAML of keys and values"));
            return None;
        }
        match self.value(&root, schema, "") {
            Some(Value::Object(map)) => Some(map),
            _ => Some(Map::new()),
        }
    }

    /// The line of a key, or of the nearest one around it that is there; 0 is none.
    pub(super) fn line(&self, key: &str) -> u32 {
        let around = std::iter::successors(Some(key), |key| key.rsplit_once('.').map(|(around, _)| around));
        around.filter_map(|key| self.lines.get(key)).copied().next().unwrap_or(0)
    }

    pub(super) fn error(&mut self, key: &str, message: impl Into<String>) {
        let line = self.line(key);
        self.tell(Finding::error(key, line, message));
    }

    pub(super) fn warning(&mut self, key: &str, message: impl Into<String>) {
        let line = self.line(key);
        self.tell(Finding { warning: true, ..Finding::error(key, line, message) });
    }

    /// Something that the environment lacks, and not the file.
    pub(super) fn lacking(&mut self, key: &str, message: impl Into<String>) {
        let line = self.line(key);
        self.tell(Finding { of_environment: true, ..Finding::error(key, line, message) });
    }

    /// The path of a key in the words of the file.
    fn as_written(&self, key: &str) -> String {
        let dots = key.match_indices(['.', '[']).map(|(at, _)| at).chain([key.len()]);
        let around: Vec<usize> = dots.collect();
        let known = around.iter().rev().find_map(|end| Some((self.written.get(&key[..*end])?, &key[*end..])));
        known.map_or_else(|| key.to_owned(), |(written, rest)| format!("{written}{rest}"))
    }

    /// One error of a key is enough, and nothing is said of what lies below it. Keys are told as they are written.
    fn tell(&mut self, finding: Finding) {
        let finding = Finding { key: self.as_written(&finding.key), ..finding };
        let below =
            |key: &str| finding.key.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        let told = |one: &Finding| !one.warning && !one.key.is_empty() && below(&one.key);
        if self.findings.len() < FINDINGS_MAX && !self.findings.iter().any(told) {
            self.findings.push(finding);
        }
    }

    /// A value as `schema` wants it; none where nothing stands there, or not what is wanted.
    fn value(&mut self, node: &Node, schema: &Value, key: &str) -> Option<Value> {
        if node.is_null() {
            return None;
        }
        let wanted = schema["type"].as_str().unwrap_or_default();
        let read = match (wanted, &node.kind) {
            ("object", Kind::Map(_)) => return Some(Value::Object(self.object(node, schema, key))),
            ("array", Kind::Seq(nodes)) => {
                let items = &schema["items"];
                let read = nodes.iter().enumerate().filter_map(|(at, node)| {
                    let key = format!("{key}[{at}]");
                    self.lines.insert(key.clone(), node.line);
                    self.value(node, items, &key)
                });
                return Some(Value::Array(read.collect()));
            }
            ("string", _) => node.scalar().map(|text| Value::String(text.to_owned())),
            ("boolean", _) => node.truth().map(Value::Bool),
            ("integer", _) => node.scalar().and_then(|text| text.replace('_', "").parse::<u32>().ok()).map(Value::from),
            ("object" | "array", _) => None,
            _ => return Some(node.json()),
        };
        if read.is_none() {
            let what = match wanted {
                "object" => "keys and values",
                "array" => "a list",
                "string" => "a text",
                "boolean" => "true or false",
                _ => "a whole number",
            };
            self.error(key, format!("has to be {what}, and is {}", shown(node, wanted)));
        }
        read
    }

    fn object(&mut self, node: &Node, schema: &Value, key: &str) -> Map<String, Value> {
        let mut read = Map::new();
        let Kind::Map(entries) = &node.kind else { return read };
        let properties = schema["properties"].as_object();
        let names: Vec<&str> = properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        // A map of any names, as `env` is one; where nothing is said of its values either, of any values.
        let free = (properties.is_none_or(serde_json::Map::is_empty)).then_some(&ANY);
        let any = schema.get("additionalProperties").or(free);
        for entry in entries {
            let known = names.iter().find(|name| plain(name) == plain(&entry.key)).copied();
            let name = known.unwrap_or(&entry.key);
            let at = if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
            if self.lines.insert(at.clone(), entry.line).is_some() {
                let first = self.as_written(&at);
                let also =
                    if first.ends_with(&entry.key) { String::new() } else { format!(", also as `{}`", entry.key) };
                self.error(&at, format!("stands there twice{also}; keep one"));
                continue;
            }
            if name != entry.key {
                let inside = if key.is_empty() { String::new() } else { format!("{}.", self.as_written(key)) };
                self.written.insert(at.clone(), format!("{inside}{}", entry.key));
            }
            let schema = known.and_then(|name| properties.and_then(|all| all.get(name))).or(any);
            let Some(schema) = schema else {
                let near = nearest_name(&entry.key, &names).map(|near| format!("; `{near}` is")).unwrap_or_default();
                self.warning(&at, format!("is no key that is known here, and is left out{near}"));
                continue;
            };
            if let Some(value) = self.value(&entry.value, schema, &at) {
                read.insert(name.to_owned(), value);
            }
        }
        read
    }
}

/// A key in either spelling: `api_key_env` and `apiKeyEnv`.
fn plain(key: &str) -> String {
    key.chars().filter(|c| *c != '_').flat_map(char::to_lowercase).collect()
}

/// What stands there; the text itself only where it can be no secret that is in the wrong place.
fn shown(node: &Node, wanted: &str) -> String {
    match &node.kind {
        Kind::Scalar { text, .. } if matches!(wanted, "boolean" | "integer") => {
            format!("`{}`", cut(&crate::text::one_line(text), SHOWN_CHARS_MAX))
        }
        Kind::Scalar { .. } => "a text".to_owned(),
        Kind::Seq(_) => "a list".to_owned(),
        Kind::Map(_) => "keys and values".to_owned(),
    }
}
