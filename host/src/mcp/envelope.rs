//! The outside of a request: whose it is, where the rest of it cannot be read.

use std::fmt;

use rmcp::model::RequestId;
use serde::Deserializer;
use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// An id of a request; none where it is neither a text nor a whole number that fits.
pub(super) fn id(id: &Value) -> Option<RequestId> {
    match id {
        Value::String(text) => Some(RequestId::String(text.as_str().into())),
        Value::Number(number) => number.as_i64().map(RequestId::Number),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The id of the request that a line of JSON is. The rest of it is passed over, however deep it is and whatever its texts
/// and numbers are. None for notifications, answers, and what is no JSON.
pub(super) fn id_of_request(line: &[u8]) -> Option<RequestId> {
    let mut read = serde_json::Deserializer::from_slice(line);
    let outside = read.deserialize_map(Outside::default()).ok().filter(|_| read.end().is_ok())?;
    let is_request = outside.has_method || !outside.has_answer;
    outside.id.filter(|_| is_request)
}

/// What stands outside.
#[derive(Default)]
struct Outside {
    id: Option<RequestId>,
    has_method: bool,
    has_answer: bool,
}

impl<'de> Visitor<'de> for Outside {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self, A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "id" => {
                    let value: &RawValue = map.next_value()?;
                    let value: Result<Value, _> = serde_json::from_str(value.get());
                    self.id = id(&value.map_err(A::Error::custom)?);
                    continue;
                }
                "method" => self.has_method = true,
                "result" | "error" => self.has_answer = true,
                _ => {}
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(self)
    }
}
