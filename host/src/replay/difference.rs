//! The first thing that was not the same, for people and as data.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::text::cut;

/// Characters of a text that are shown before the first that differs.
const BEFORE_CHARS: usize = 60;
/// Characters of a text that are shown from there on.
const AFTER_CHARS: usize = 140;
/// Characters of another value.
const VALUE_CHARS: usize = 300;

/// How something was not the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// It came, and is not the same.
    Differs,
    /// It was not recorded.
    TooMany,
    /// It was recorded and did not come.
    Missing,
    /// The runner ended, or its link did.
    Ended,
    /// The runner refused what the host asked.
    Refused,
}

/// The first thing that was not the same.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// Where: `model call 2`, `the call call_0_1 of read_file`, `the answer to run 1`.
    pub place: String,
    /// How.
    pub what: What,
    /// The first place in its JSON that is not the same, as a JSON pointer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What was recorded there; null where that is nothing.
    pub recorded: Value,
    /// What is there now; null where that is nothing.
    pub now: Value,
    /// What there is to say beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Difference {
    /// The first difference of two values; none where they are the same.
    pub(super) fn between(place: String, recorded: &Value, now: &Value) -> Option<Self> {
        let (path, recorded, now) = first(recorded, now)?;
        Some(Self { place, what: What::Differs, path: Some(path), recorded, now, note: None })
    }

    /// Something that is not a matter of two values.
    pub(super) fn of(place: String, what: What, recorded: Value, now: Value) -> Self {
        Self { place, what, path: None, recorded, now, note: None }
    }

    /// The same with something to say beside it.
    pub(super) fn with_note(mut self, note: String) -> Self {
        self.note = Some(note).filter(|note| !note.is_empty());
        self
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, path, recorded, now, .. } = self;
        match (self.what, path) {
            (What::Differs, Some(path)) if !path.is_empty() => write!(f, "{place} differs at {path}")?,
            (What::Differs, _) => write!(f, "{place} differs")?,
            (What::TooMany, _) => write!(f, "{place} was not recorded")?,
            (What::Missing, _) => write!(f, "{place} did not come")?,
            (What::Ended, _) => write!(f, "the runner ended before {place}")?,
            (What::Refused, _) => write!(f, "{place} was refused")?,
        }
        let from = shared_start(recorded, now);
        for (name, value, other) in [("recorded", recorded, now), ("now", now, recorded)] {
            if !(value.is_null() && self.what != What::Differs) {
                write!(f, "\n  {name:<8}  {}", shown(value, other, from))?;
            }
        }
        match &self.note {
            Some(note) => write!(f, "\n  {note}"),
            None => Ok(()),
        }
    }
}

/// Where two texts begin to differ, in characters.
fn shared_start(one: &Value, other: &Value) -> usize {
    match (one, other) {
        (Value::String(one), Value::String(other)) => {
            one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count()
        }
        _ => 0,
    }
}

fn shown(value: &Value, other: &Value, from: usize) -> String {
    match (value, other) {
        (Value::Null, _) => "nothing".to_owned(),
        (Value::String(text), Value::String(_)) => {
            let skip = from.saturating_sub(BEFORE_CHARS);
            let piece: String = text.chars().skip(skip).take(BEFORE_CHARS + AFTER_CHARS).collect();
            let all = text.chars().count();
            let (before, after) =
                (if skip > 0 { "…" } else { "" }, if all > skip + piece.chars().count() { "…" } else { "" });
            format!("{before}{}{after}", Value::from(piece))
        }
        (value, _) => cut(&value.to_string(), VALUE_CHARS),
    }
}

/// The first place where two values differ, with what stands there; nothing is null.
fn first(recorded: &Value, now: &Value) -> Option<(String, Value, Value)> {
    let below = |step: String, found: (String, Value, Value)| (format!("/{step}{}", found.0), found.1, found.2);
    match (recorded, now) {
        (Value::Object(recorded), Value::Object(now)) => {
            let found = |key: &String| {
                let get = |map: &Map<String, Value>| map.get(key).cloned().unwrap_or_default();
                first(&get(recorded), &get(now)).map(|found| below(escaped(key), found))
            };
            let new = now.keys().filter(|key| !recorded.contains_key(*key));
            recorded.keys().chain(new).find_map(found)
        }
        (Value::Array(recorded), Value::Array(now)) => {
            let get = |list: &[Value], at: usize| list.get(at).cloned().unwrap_or_default();
            let longest = recorded.len().max(now.len());
            (0..longest).find_map(|at| {
                let pair = match (recorded.get(at), now.get(at)) {
                    (Some(one), Some(other)) => first(one, other),
                    _ => Some((String::new(), get(recorded, at), get(now, at))),
                };
                pair.map(|found| below(at.to_string(), found))
            })
        }
        (recorded, now) if recorded == now => None,
        (recorded, now) => Some((String::new(), recorded.clone(), now.clone())),
    }
}

/// Two values that are not the same, for people: the first place in their JSON, and what stands there in each.
#[cfg(feature = "cli")]
pub(crate) fn told_apart(one: &Value, other: &Value) -> (String, String, String) {
    let (path, one, other) = first(one, other).unwrap_or_else(|| (String::new(), one.clone(), other.clone()));
    let from = shared_start(&one, &other);
    (path, shown(&one, &other, from), shown(&other, &one, from))
}

/// A key in a JSON pointer.
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_difference_is_named_and_shown() {
        let check = |recorded: Value, now: Value, want: &str| {
            let found = Difference::between("x".to_owned(), &recorded, &now);
            assert_eq!(found.map(|found| found.to_string()).unwrap_or_default(), want);
        };
        check(json!({ "a": [1, { "b": "c" }] }), json!({ "a": [1, { "b": "c" }] }), "");
        check(json!({ "a": null }), json!({}), "");
        check(json!(1), json!(2), "x differs\n  recorded  1\n  now       2");
        check(json!([1, 2]), json!([1]), "x differs at /1\n  recorded  2\n  now       nothing");
        check(json!([null]), json!([]), "x differs at /0\n  recorded  nothing\n  now       nothing");
        check(
            json!({}),
            json!({ "a/b": { "c": 1 } }),
            "x differs at /a~1b\n  recorded  nothing\n  now       {\"c\":1}",
        );
        let long = |end: &str| json!({ "t": format!("{}{end}", "0123456789".repeat(20)) });
        let shared = "0123456789".repeat(6);
        check(
            long("abc\n"),
            long("abd"),
            &format!(
                "x differs at /t\n  recorded  …\"{}abc\\n\"\n  now       …\"{0}abd\"",
                &shared[2..].to_owned().as_str()
            ),
        );
    }
}
