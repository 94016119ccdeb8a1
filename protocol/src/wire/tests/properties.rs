//! What holds for any line.

use proptest::collection::{hash_set, vec};
use proptest::prelude::*;

use super::*;

/// Any JSON, not deep.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e9_f64..1e9).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((any::<String>(), inner), 0..4).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// A value that a field of a message may well have.
fn likely(field: &'static str) -> BoxedStrategy<Value> {
    match field {
        "jsonrpc" => Just(json!("2.0")).boxed(),
        "id" => prop_oneof![(0..=ID_MAX + 1).prop_map(Value::from), any::<String>().prop_map(Value::from)].boxed(),
        "method" => prop_oneof![Just("ping".to_owned()), any::<String>()].prop_map(Value::from).boxed(),
        "error" => (any::<i32>(), any::<String>(), any_json())
            .prop_map(|(code, message, data)| json!({ "code": code, "message": message, "data": data }))
            .boxed(),
        _ => any_json().boxed(),
    }
}

/// An object with some of the fields of a message, in any order, most of them likely ones.
fn any_object() -> impl Strategy<Value = Vec<(&'static str, Value)>> {
    let fields = ["jsonrpc", "id", "method", "params", "result", "error", "more"];
    let values = fields.map(|field| {
        let often = if field == "result" || field == "error" { 0.3 } else { 0.9 };
        prop::option::weighted(often, prop_oneof![9 => likely(field), 1 => any_json()])
    });
    (Just(fields).prop_shuffle(), values).prop_map(move |(order, values)| {
        let mut all: Vec<_> = fields.into_iter().zip(values).collect();
        all.sort_by_key(|(field, _)| order.iter().position(|one| one == field));
        all.into_iter().filter_map(|(field, value)| Some((field, value?))).collect()
    })
}

/// A slow and plain reading of a line that holds an object with each field once.
fn read_slowly(object: &Value) -> String {
    let field = |name: &str| object.get(name).filter(|value| !value.is_null());
    let is_proper = |error: &&Value| {
        let code = error["code"].as_i64();
        code.is_some_and(|code| i32::try_from(code).is_ok()) && error["message"].is_string()
    };
    let (method, result, error) = (field("method"), object.get("result"), field("error"));
    if field("jsonrpc") != Some(&json!("2.0")) || method.is_some_and(|method| !method.is_string()) {
        return "nothing".to_owned();
    }
    if method.is_none() && result.is_none() && error.is_none() {
        return "nothing".to_owned();
    }
    let Some(id) = field("id") else { return "no id".to_owned() };
    let is_id = id.as_u64().is_some_and(|id| id <= ID_MAX) || id.as_str().is_some_and(|id| id.len() <= ID_BYTES_MAX);
    match (method, error, result) {
        _ if !is_id => "nothing".to_owned(),
        (Some(method), None, None) => match field("params").unwrap_or(&json!({})) {
            params if params.is_object() => format!("ask {id} {method} {params}"),
            _ => format!("ask {id} {method} not an object"),
        },
        (None, Some(error), _) => match Some(error).filter(is_proper) {
            Some(error) => format!("error {id} {} {}", error["code"], error["message"]),
            None => format!("error {id} -32603 improper"),
        },
        (None, None, Some(result)) => format!("answer {id} {result}"),
        (Some(_), _, _) | (None, None, None) => "nothing".to_owned(),
    }
}

/// Bytes in which newlines and carriage returns are many.
fn many_lines() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![4 => any::<u8>(), 2 => Just(b'\n'), 1 => Just(b'\r')], 0..400)
}

/// The same, by the book: split at newlines, what follows the last one is a line, one too long is the last.
fn split_slowly(bytes: &[u8], max_bytes: usize) -> Vec<String> {
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    lines.pop_if(|last| last.is_empty());
    let too_long = lines.iter().position(|line| line.len() > max_bytes);
    lines.truncate(too_long.unwrap_or(lines.len()));
    let shown = lines.into_iter().map(|line| excerpt(line.strip_suffix(b"\r").unwrap_or(line)));
    shown.chain(too_long.map(|_| "(too long)".to_owned())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_something(line in vec(any::<u8>(), 0..300)) {
        drop(classify(&line));
    }

    #[test]
    fn a_message_with_any_byte_changed_is_something(at in 0_usize..200, byte in any::<u8>(), fields in any_object()) {
        let object = Value::Object(fields.into_iter().map(|(field, value)| (field.to_owned(), value)).collect());
        let mut line = object.to_string().into_bytes();
        let at = at % line.len();
        line[at] = byte;
        drop(classify(&line));
        drop(classify(&line[..at]));
    }

    #[test]
    fn an_object_is_read_as_the_slow_way_reads_it(fields in any_object()) {
        let object = Value::Object(fields.into_iter().map(|(field, value)| (field.to_owned(), value)).collect());
        let line = object.to_string();
        prop_assert_eq!(corpus::told(&classify(line.as_bytes())), read_slowly(&object));
    }

    #[test]
    fn what_is_asked_is_read_back(
        number in 0..=ID_MAX,
        text in any::<String>(),
        method in any::<String>(),
        params in any_json(),
    ) {
        let params = json!({ "any": params });
        for id in [Id::Number(number), Id::Text(text)] {
            let line = request_line(&id, &method, &params).expect("writes");
            prop_assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
            let told = format!("ask {} {} {params}", id.json(), json!(method));
            prop_assert_eq!(corpus::told(&classify(&line)), told);
            prop_assert_eq!(corpus::told(&classify(&empty_line(&id))), format!("answer {} {{}}", id.json()));
        }
    }

    #[test]
    fn an_error_is_read_back(
        code in any::<i32>(),
        message in any::<String>(),
        keys in hash_set(any::<String>(), 0..4),
        value in any_json(),
    ) {
        let mut error = RpcError::new(Kind::Cancelled, message);
        error.code = code;
        for key in keys {
            error = error.with(&key, value.clone());
        }
        let line = error_line(&Id::Number(1), error.clone());
        prop_assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        let Incoming::Response { id: Id::Number(1), outcome: Err(back) } = classify(&line) else { panic!("an error") };
        prop_assert_eq!(back, error);
    }

    #[test]
    fn lines_are_the_same_however_they_are_cut(bytes in many_lines(), chunk in 1_usize..50, max_bytes in 1_usize..60) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let got = runtime.block_on(lines(&bytes, chunk, max_bytes));
        prop_assert_eq!(got, split_slowly(&bytes, max_bytes));
    }
}
