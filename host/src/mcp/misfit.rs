//! Requests that are none of this server: those whose params do not fit their method, which rmcp takes for requests of
//! an unknown one, and those of a method that there is not.

use rmcp::model::{
    CallToolRequestParams, ErrorCode, ErrorData, InitializeRequestParams, PaginatedRequestParams,
    ReadResourceRequestParams, SubscriptionsListenRequestParams,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::text::{cut, one_line};

/// Characters of a method that are told again.
const METHOD_CHARS_MAX: usize = 64;
/// Characters of what is wrong with params.
const WHY_CHARS_MAX: usize = 300;

/// Why a request that rmcp could not read is refused: -32602 where its method is one of this server, else -32601.
pub(super) fn of(method: &str, params: Option<&Value>) -> ErrorData {
    let why = match method {
        "initialize" => why::<InitializeRequestParams>(params),
        "tools/call" => why::<CallToolRequestParams>(params),
        "resources/read" => why::<ReadResourceRequestParams>(params),
        "tools/list" | "resources/list" | "resources/templates/list" => why::<PaginatedRequestParams>(params),
        "subscriptions/listen" => why::<SubscriptionsListenRequestParams>(params),
        "logging/setLevel" => of_level(params),
        "server/discover" | "ping" => why::<Map<String, Value>>(params),
        _ => {
            let message = format!("there is no method `{}`", cut(&one_line(method), METHOD_CHARS_MAX));
            return ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None);
        }
    };
    ErrorData::invalid_params(format!("the params of `{method}` do not fit: {why}"), None)
}

#[expect(deprecated, reason = "clients of the handshake era set it")]
fn of_level(params: Option<&Value>) -> String {
    why::<rmcp::model::SetLevelRequestParams>(params)
}

fn why<P: DeserializeOwned>(params: Option<&Value>) -> String {
    let kind = match params {
        None | Some(Value::Null) => return "there are none".to_owned(),
        Some(Value::Object(map)) => {
            if map.get("_meta").is_some_and(|meta| !meta.is_object()) {
                return "`_meta` has to be an object".to_owned();
            }
            let read = P::deserialize(Value::Object(map.clone()));
            let error = read.err().map(|error| cut(&one_line(&error.to_string()), WHY_CHARS_MAX));
            return error.unwrap_or_else(|| "they are not what the protocol has there".to_owned());
        }
        Some(Value::Array(_)) => "a list",
        Some(Value::String(_)) => "a text",
        Some(Value::Number(_)) => "a number",
        Some(Value::Bool(_)) => "true or false",
    };
    format!("they have to be an object, and are {kind}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_does_not_fit_is_told() {
        let check = |method: &str, params: Value, want: (i32, &str)| {
            let error = of(method, Some(&params).filter(|params| !params.is_null()));
            assert!(error.code.0 == want.0 && error.message.ends_with(want.1), "{method} {params}: {error:?}");
        };
        check("tools/call", json!(null), (-32602, "the params of `tools/call` do not fit: there are none"));
        check("tools/call", json!("x"), (-32602, "they have to be an object, and are a text"));
        check("tools/call", json!([1]), (-32602, "they have to be an object, and are a list"));
        check("tools/call", json!({}), (-32602, "missing field `name`"));
        check("tools/call", json!({ "name": 7 }), (-32602, "invalid type: integer `7`, expected a string"));
        check("tools/call", json!({ "name": "a", "arguments": [1] }), (-32602, "expected a map"));
        check("tools/call", json!({ "name": "a", "_meta": 1 }), (-32602, "`_meta` has to be an object"));
        check("resources/read", json!({}), (-32602, "missing field `uri`"));
        check("ping", json!(true), (-32602, "and are true or false"));
        check("server/discover", json!(1), (-32602, "and are a number"));
        check("tools/fly", json!({}), (-32601, "there is no method `tools/fly`"));
    }
}
