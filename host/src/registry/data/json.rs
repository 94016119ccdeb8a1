//! JSON as a tree of keys and values that hides nothing.

use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::super::yaml::{Entry, Kind, Node};

/// A JSON value with its keys as they stand there, so that a key that stands there twice is there twice.
pub(super) struct Json(pub(super) Node);

impl<'de> Deserialize<'de> for Json {
    /// The bound on the depth of JSON bounds the recursion.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl JsonVisitor {
    fn node(kind: Kind) -> Json {
        Json(Node { line: 1, column: 0, kind })
    }

    fn plain(text: impl ToString) -> Json {
        Self::node(Kind::Scalar { text: text.to_string(), plain: true })
    }
}

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Self::plain(""))
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Json, E> {
        Ok(Self::plain(truth))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Json, E> {
        Ok(Self::plain(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Json, E> {
        Ok(Self::plain(number))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Json, E> {
        Ok(Self::plain(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Self::node(Kind::Scalar { text: text.to_owned(), plain: false }))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Json, A::Error> {
        let mut nodes = Vec::new();
        while let Some(Json(node)) = list.next_element()? {
            nodes.push(node);
        }
        Ok(Self::node(Kind::Seq(nodes)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, Json(value))) = map.next_entry()? {
            entries.push(Entry { key, line: 1, column: 0, value });
        }
        Ok(Self::node(Kind::Map(entries)))
    }
}
