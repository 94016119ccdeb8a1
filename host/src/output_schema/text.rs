//! JSON in what a model writes: the whole text, or the one fenced block in it.

use std::fmt;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};

/// The value that a text is.
///
/// # Errors
/// Why it is none, in words for whoever wrote it.
pub(super) fn json_in(text: &str) -> Result<Value, String> {
    let whole = strict(text.trim());
    match (&whole, fenced(text).as_slice()) {
        (Err(_), [only]) => strict(only).map_err(|error| format!("the block in it is no JSON: {error}")),
        _ => whole.map_err(|error| format!("it is no JSON: {error}")),
    }
}

/// The blocks of a text that stand in fences.
fn fenced(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<String> = None;
    for line in text.lines() {
        match (&mut open, line.trim_start().starts_with("```")) {
            (Some(_), true) => blocks.extend(open.take()),
            (Some(block), false) => {
                block.push_str(line);
                block.push('\n');
            }
            (None, true) => open = Some(String::new()),
            (None, false) => {}
        }
    }
    blocks.extend(open);
    blocks
}

fn strict(text: &str) -> Result<Value, String> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Strict.deserialize(&mut reader).map_err(|error| error.to_string())?;
    reader.end().map_err(|error| error.to_string())?;
    Ok(value)
}

/// Any JSON whose objects have each name once.
struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Value, E> {
        Ok(truth.into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        Number::from_f64(number).map(Value::Number).ok_or_else(|| E::custom("a number that is none"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(one) = list.next_element_seed(Strict)? {
            all.push(one);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(Name(name)) = map.next_key()? {
            let value = map.next_value_seed(Strict)?;
            if all.contains_key(&name) {
                let shown = crate::text::cut(&name, 100);
                return Err(A::Error::custom(format!("the key `{shown}` stands there twice")));
            }
            all.insert(name, value);
        }
        Ok(Value::Object(all))
    }
}

#[derive(Deserialize)]
struct Name(String);
