//! Reading arguments: both spellings of each field, and errors that name the field and what fits.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::ToolError;
use crate::text::VALUE_SHOWN_CHARS_MAX;

/// Reads arguments whose names are those of `schema`'s properties, in snake_case or camelCase; null is absent.
pub(super) fn read<P: DeserializeOwned>(arguments: &Map<String, Value>, schema: &Value) -> Result<P, ToolError> {
    let folded = fold(arguments, schema, "")?;
    serde_json::from_value(Value::Object(folded.clone())).map_err(|error| {
        if let Some((name, number)) = too_large::<P>(&folded, &error) {
            return ToolError::bad_argument(format!("`{name}` is {number}, which is too large"), "Give a smaller one.");
        }
        let hint = format!("The arguments are: {}.", names(schema));
        ToolError::bad_argument(error, &hint)
    })
}

/// The number without which `error` would be another one or none, and its name: the error of a number that does not fit
/// has only the number.
fn too_large<P: DeserializeOwned>(folded: &Map<String, Value>, error: &serde_json::Error) -> Option<(String, Value)> {
    let mut numbers = Vec::new();
    for (name, value) in folded {
        match value {
            Value::Number(_) => numbers.push(vec![name]),
            Value::Object(inner) => {
                numbers
                    .extend(inner.iter().filter(|(_, value)| value.is_number()).map(|(within, _)| vec![name, within]));
            }
            Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) => {}
        }
    }
    let whole = Value::Object(folded.clone());
    numbers.into_iter().find_map(|path| {
        let at = path.iter().map(|part| format!("/{part}")).collect::<String>();
        let mut other = whole.clone();
        let number = std::mem::replace(other.pointer_mut(&at)?, 0.into());
        let still =
            serde_json::from_value::<P>(other).err().is_some_and(|other| other.to_string() == error.to_string());
        let name = path.into_iter().map(String::as_str).collect::<Vec<_>>().join(".");
        (!still).then_some((name, number))
    })
}

fn fold(arguments: &Map<String, Value>, schema: &Value, within: &str) -> Result<Map<String, Value>, ToolError> {
    let none = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let mut folded = Map::new();
    for (name, value) in arguments {
        let property = properties.iter().find(|(known, _)| *known == name || camel_case(known) == *name);
        let Some((known, inner)) = property else {
            let shown = super::unknown_name(name);
            let hint = format!("The arguments are: {}.", names(schema));
            return Err(ToolError::bad_argument(format!("there is no argument `{within}{shown}`"), &hint));
        };
        if value.is_null() {
            continue;
        }
        let value = match (value, inner.get("properties")) {
            (Value::Object(map), Some(_)) => Value::Object(fold(map, inner, &format!("{within}{name}."))?),
            (other, _) => typed(other, inner, &format!("{within}{name}"))?,
        };
        if folded.insert(known.clone(), value).is_some() {
            let message = format!("`{within}{known}` and `{within}{}` are both given", camel_case(known));
            return Err(ToolError::bad_argument(message, "Give one of the two spellings."));
        }
    }
    for required in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        if let Some(name) = required.as_str()
            && !folded.contains_key(name)
        {
            let hint = format!("The arguments are: {}.", names(schema));
            return Err(ToolError::bad_argument(format!("`{within}{name}` is missing"), &hint));
        }
    }
    Ok(folded)
}

/// Checks the type that the schema tells, so that an error names the field.
fn typed(value: &Value, schema: &Value, name: &str) -> Result<Value, ToolError> {
    let Some(wanted) = schema.get("type").and_then(Value::as_str) else { return Ok(value.clone()) };
    let fits = match wanted {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    };
    if wanted == "integer" && value.as_f64().is_some_and(|number| number < 0.0) {
        return Err(ToolError::bad_argument(format!("`{name}` is {value}, and has to be 0 or more"), "Correct it."));
    }
    let allowed = schema.get("enum").and_then(Value::as_array);
    if !fits {
        let shown: String = value.to_string().chars().take(VALUE_SHOWN_CHARS_MAX).collect();
        return Err(ToolError::bad_argument(
            format!("`{name}` is {shown}, and has to be of type {wanted}"),
            "Correct it.",
        ));
    }
    if let Some(allowed) = allowed
        && !allowed.contains(value)
    {
        let all: Vec<String> = allowed.iter().map(Value::to_string).collect();
        let message = format!("`{name}` is {value}, and has to be one of {}", all.join(", "));
        return Err(ToolError::bad_argument(message, "Correct it."));
    }
    // A whole number written as a float is the whole number.
    Ok(match (wanted, value.as_f64()) {
        ("integer", Some(number)) if value.is_f64() && number.abs() < 9e15 => {
            #[expect(clippy::cast_possible_truncation, reason = "it is whole and below 2^53")]
            let whole = number as i64;
            whole.into()
        }
        _ => value.clone(),
    })
}

fn names(schema: &Value) -> String {
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array);
    let one = |name: &String| {
        let must = required.is_some_and(|all| all.iter().any(|one| one == name));
        if must { format!("{name} (required)") } else { name.clone() }
    };
    properties.map(|all| all.keys().map(one).collect::<Vec<_>>().join(", ")).unwrap_or_default()
}

/// `mark_as_read` as `markAsRead`.
fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let mut out = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut chars = word.chars();
        out.extend(chars.next().map(|first| first.to_ascii_uppercase()));
        out.push_str(chars.as_str());
    }
    out
}

#[cfg(test)]
mod tests {
    use assistant_protocol::types::RecvMessageParams;
    use serde_json::json;

    use super::*;
    use crate::tools::schema;

    /// What reading `arguments` as those of recv_message gives: the params, or the message of the error.
    fn check(arguments: Value, want: &str) {
        let schema = schema::input::<RecvMessageParams>();
        let arguments = arguments.as_object().cloned().expect("an object");
        let got = match read::<RecvMessageParams>(&arguments, &schema) {
            Ok(params) => serde_json::to_string(&params).expect("writes"),
            Err(error) => format!("{}: {}", error.code, error.message),
        };
        assert_eq!(got, want);
    }

    #[test]
    fn arguments_are_read_in_both_spellings() {
        let id = "0190a0a0-0000-7000-8000-000000000000";
        let plain = format!(r#"{{"thread_id":"{id}","unread_only":false,"last_n":5,"mark_as_read":true}}"#);
        check(json!({ "thread_id": id, "last_n": 5, "mark_as_read": true }), &plain);
        check(json!({ "threadId": id, "lastN": 5.0, "markAsRead": true, "since": null }), &plain);
        check(json!({ "threadId": id, "thread_id": id }), "bad_argument: `thread_id` and `threadId` are both given");
        check(json!({}), "bad_argument: `thread_id` is missing");
        check(json!({ "thread_id": 7 }), "bad_argument: `thread_id` is 7, and has to be of type string");
        check(json!({ "thread_id": "x" }), "bad_argument: `x` is no thread id (a UUID)");
        check(
            json!({ "thread_id": id, "last_n": "5" }),
            "bad_argument: `last_n` is \"5\", and has to be of type integer",
        );
        check(
            json!({ "thread_id": id, "last_n": 4_294_967_296_u64 }),
            "bad_argument: `last_n` is 4294967296, which is too large",
        );
        check(json!({ "thread_id": id, "last_n": 1e30 }), "bad_argument: `last_n` is 1e+30, which is too large");
        check(json!({ "thread_id": "x", "last_n": 1 }), "bad_argument: `x` is no thread id (a UUID)");
        check(json!({ "thread_id": id, "lastn": 5 }), "bad_argument: there is no argument `lastn`");
    }
}
