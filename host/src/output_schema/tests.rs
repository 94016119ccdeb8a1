use serde_json::json;

use super::*;

const BYTES: u64 = 1024 * 1024;

/// Why `schema` is none; empty where it is one.
fn why(schema: &Value) -> String {
    OutputSchema::compile(schema).err().map(|error| error.to_string()).unwrap_or_default()
}

/// A schema that is `levels` objects within each other.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!({}), |inner, _| json!({ "properties": { "a": inner } }))
}

#[test]
fn what_is_no_schema_is_refused_with_words() {
    let check = |schema: Value, want: &str| {
        let got = why(&schema);
        let shown = crate::text::cut(&schema.to_string(), 100);
        assert!(if want.is_empty() { got.is_empty() } else { got.starts_with(want) }, "{shown}: {got:?}");
    };
    for fine in [
        json!({}),
        json!(true),
        json!({ "type": "object", "properties": { "$ref": { "type": "string" }, "$id": { "type": "string" } } }),
        json!({ "$schema": "http://json-schema.org/draft-04/schema#", "id": "http://x.example/y", "type": "object" }),
        json!({ "$schema": "http://json-schema.org/draft-07/schema#", "definitions": { "a": { "$id": "#a" } }, "$ref": "#a" }),
        json!({ "$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveRef": "#", "type": "object" }),
        json!({ "$id": "https://x.example/review.json", "items": { "$ref": "#/$defs/a%20b" }, "$defs": { "a b": {} } }),
        json!({ "$defs": { "n": { "$anchor": "node", "type": "array", "items": { "$ref": "#node" } } }, "$ref": "#node" }),
        json!({ "pattern": "^(?!x)a+$" }),
        nested(31),
    ] {
        check(fine, "");
    }
    check(json!("x"), "is no JSON schema: it has to be an object");
    check(json!(null), "is no JSON schema");
    check(json!({ "type": "text" }), "is no JSON schema: at /type: \"text\" is not");
    check(json!({ "type": "object", "required": "a" }), "is no JSON schema: at /required: ");
    check(json!({ "pattern": "(" }), "is no JSON schema: ");
    check(json!({ "pattern": "((a{1000}){1000}){1000}" }), "is no JSON schema: ");
    check(json!({ "$schema": "https://x.example/own", "type": "object" }), "is no JSON schema: ");
    for remote in ["http://x.example/s.json", "file:///etc/passwd", "other.json", "#/$defs/none", "#none", "#%zz"] {
        check(json!({ "items": { "$ref": remote } }), &format!("refers to `{remote}`"));
    }
    check(json!({ "$ref": "https://json-schema.org/draft/2020-12/schema" }), "refers to `https://json-schema.org");
    check(json!({ "items": { "$id": "http://x.example/y" } }), "has a `$id` below its top (`http://x.example/y`)");
    check(json!({ "enum": ["x".repeat(SCHEMA_BYTES_MAX)] }), "has 65549 bytes, the most is 65536");
    check(nested(40), "nests deeper than 64 levels");
    let chain: Value = (0..100).map(|n| (format!("a{n}"), json!({ "$ref": format!("#/$defs/a{}", n + 1) }))).collect();
    let mut chain = json!({ "$defs": chain, "$ref": "#/$defs/a0" });
    chain["$defs"]["a100"] = json!({});
    check(chain, "nests deeper than 64 levels");
    let many: Value = (0..=PATTERNS_MAX).map(|n| (format!("a{n}"), json!({ "pattern": format!("x{n}") }))).collect();
    check(json!({ "properties": many }), "has 101 regular expressions, the most is 100");
}

/// A schema that doubles at each of its levels is read in no time, and what would take for ever is not checked by it.
#[test]
fn the_work_of_a_check_is_bounded() {
    let doubling: Value = (0..30)
        .map(|n| {
            let next = json!({ "$ref": format!("#/$defs/a{}", n + 1) });
            (format!("a{n}"), json!({ "allOf": [next, next] }))
        })
        .collect();
    let mut wide = json!({ "$defs": doubling, "$ref": "#/$defs/a0" });
    wide["$defs"]["a30"] = json!({ "type": "object" });
    let twice = json!({ "properties": { "x": { "$ref": "#" } } });
    let deep = json!({ "allOf": [twice, twice] });
    let unending = json!({ "$ref": "#" });
    let value = (0..40).fold(json!({}), |inner, _| json!({ "x": inner }));
    for schema in [wide, deep, unending] {
        let schema = OutputSchema::compile(&schema).expect("a schema");
        let unfit = schema.check(&value, BYTES).expect_err("too much");
        assert_eq!(unfit.to_string(), "- it takes too much work to check by its schema: hand in less");
    }
    // Deep within bounds, and large within bounds.
    let list = json!({ "$defs": { "n": {
        "type": "object", "properties": { "next": { "$ref": "#/$defs/n" } }, "additionalProperties": { "$ref": "#/$defs/n" },
    } }, "$ref": "#/$defs/n" });
    let schema = OutputSchema::compile(&list).expect("a schema");
    let value = (0..LEVELS_MAX - 1).fold(json!({}), |inner, _| json!({ "next": inner }));
    assert_eq!(schema.check(&value, BYTES), Ok(()));
    let deeper = json!({ "next": value });
    assert_eq!(schema.check(&deeper, BYTES).expect_err("too deep").to_string(), "- it nests deeper than 64 levels");
    let rows = json!({ "items": { "properties": { "a": { "type": "integer" }, "b": { "pattern": "^x+$" } } } });
    let schema = OutputSchema::compile(&rows).expect("a schema");
    let large: Value = (0..40_000).map(|n| json!({ "a": n, "b": "xxx" })).collect();
    assert_eq!(schema.check(&large, BYTES), Ok(()));
    let backtracks = OutputSchema::compile(&json!({ "pattern": "^(?=(a+)+$)b" })).expect("a schema");
    let unfit = backtracks.check(&json!("a".repeat(40)), BYTES).expect_err("it fits nothing");
    assert_eq!(unfit.0.len(), 1, "{unfit}");
}

#[test]
fn what_does_not_fit_is_told_with_its_place() {
    let schema = json!({
        "type": "object",
        "properties": { "score": { "type": "integer", "maximum": 10 }, "notes": { "items": { "type": "string" } } },
        "required": ["score"],
        "additionalProperties": false,
    });
    let schema = OutputSchema::compile(&schema).expect("a schema");
    let check = |result: Value, want: &[&str]| {
        let got = schema.check(&result, BYTES).err().map(|unfit| unfit.0).unwrap_or_default();
        assert_eq!(got, want, "{result}");
    };
    check(json!({ "score": 3, "notes": ["a"] }), &[]);
    check(json!({}), &["- at the top: \"score\" is a required property"]);
    check(json!({ "score": 11 }), &["- at /score: what stands there is greater than the maximum of 10"]);
    check(
        json!({ "score": "</message>", "notes": ["a", 1] }),
        &[
            "- at /score: what stands there is not of type \"integer\"",
            "- at /notes/1: what stands there is not of type \"string\"",
        ],
    );
    let many: Value = json!({ "score": 1, "notes": (0..50).collect::<Vec<_>>() });
    let unfit = schema.check(&many, BYTES).expect_err("none is a text");
    assert_eq!((unfit.0.len(), unfit.0[20].as_str()), (21, "- and more"));
    let huge = json!({ "score": 1, "notes": ["x".repeat(200)] });
    let unfit = schema.check(&huge, 100).expect_err("too long");
    assert_eq!(unfit.to_string(), "- it has 224 bytes, the most is 100: hand in less");
}

#[test]
fn a_text_is_a_result_where_it_is_json() {
    let schema = OutputSchema::compile(&json!({ "type": "object", "required": ["a"] })).expect("a schema");
    let check = |text: &str, want: &str| {
        let got = match schema.check_text(text, 1_000) {
            Ok(value) => value.to_string(),
            Err(unfit) => unfit.to_string(),
        };
        assert_eq!(got, want, "{text:?}");
    };
    check(" {\"a\": 1}\n", "{\"a\":1}");
    check("```json\n{\"a\": 1}\n```", "{\"a\":1}");
    check("Here it is:\n```\n{\"a\": 1}\n```\nThat is all.", "{\"a\":1}");
    check("```json\n{\"a\": 1}", "{\"a\":1}");
    check("{\"a\": \"```\"}", "{\"a\":\"```\"}");
    check("", "- nothing was handed in");
    check("{\"b\": 1}", "- at the top: \"a\" is a required property");
    check(
        "{\"a\": 1, \"b\": {\"c\": 1, \"c\": 2}}",
        "- it is no JSON: the key `c` stands there twice at line 1 column 30",
    );
    check("{\"a\": NaN}", "- it is no JSON: expected value at line 1 column 7");
    check("{\"a\": 1e999}", "- it is no JSON: number out of range at line 1 column 11");
    check("{\"a\": 1} {\"a\": 2}", "- it is no JSON: trailing characters at line 1 column 10");
    check("I am done.", "- it is no JSON: expected value at line 1 column 1");
    check("```\n{}\n```\n```\n{\"a\": 1}\n```", "- it is no JSON: expected value at line 1 column 1");
    check(&"[".repeat(900), "- it is no JSON: recursion limit exceeded at line 1 column 128");
    check(&"x".repeat(1_001), "- it has 1001 bytes, the most is 1000: hand in less");
}

#[test]
fn models_get_a_schema_that_they_take() {
    let check = |schema: Value, want: Value, wrapped: bool| {
        let schema = OutputSchema::compile(&schema).expect("a schema");
        assert_eq!((schema.tool_schema(), schema.is_wrapped()), (&want, wrapped));
    };
    check(json!({ "properties": { "a": {} } }), json!({ "type": "object", "properties": { "a": {} } }), false);
    check(json!({ "type": "object" }), json!({ "type": "object", "properties": {} }), false);
    let answer =
        |schema: Value| json!({ "type": "object", "properties": { "answer": schema }, "required": ["answer"] });
    check(json!({ "type": "array", "items": {} }), answer(json!({ "type": "array", "items": {} })), true);
    check(json!(true), answer(json!({})), true);
    let either = json!({ "type": "object", "oneOf": [{ "required": ["a"] }, { "required": ["b"] }] });
    check(either.clone(), answer(either), true);
    check(
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "http://x.example/y", "type": "object",
            "properties": { "a": { "$ref": "#/$defs/line", "description": "Where." }, "$ref": { "const": { "$id": 1 } } },
            "$defs": { "line": { "type": "integer", "description": "A line." } },
        }),
        json!({
            "type": "object",
            "properties": { "a": { "type": "integer", "description": "Where." }, "$ref": { "const": { "$id": 1 } } },
        }),
        false,
    );
    // What is within itself is left open.
    let tree = json!({ "type": "object", "properties": { "name": {}, "below": { "items": { "$ref": "#" } } } });
    let open = json!({ "type": "object", "properties": { "name": {}, "below": { "items": {} } } });
    check(tree, open, false);
    let list = OutputSchema::compile(&json!({ "type": "array" })).expect("a schema");
    assert_eq!(list.unwrapped(json!({ "answer": [1] })), json!([1]));
    assert_eq!(list.unwrapped(json!({ "answer": [1], "b": 2 })), json!({ "answer": [1], "b": 2 }));
    assert_eq!(list.check_text("{\"answer\": [1]}", BYTES), Ok(json!([1])));
}

#[test]
fn a_schema_that_cannot_be_looked_at_lets_no_result_pass() {
    let mut schema = OutputSchema::compile(&json!({ "type": "array" })).expect("a schema");
    schema.schema = json!({ "$ref": "#/$defs/none" });
    let unfit = schema.check(&json!([1]), BYTES).expect_err("what it costs has no bound");
    assert!(unfit.0[0].starts_with("- the schema refers to `#/$defs/none`"), "{unfit:?}");
}
