//! Inputs that are added to a task, and results that have to fit a schema.

use conformance::model_server::{ModelServer, Reply};
use rmcp::model::CallToolResult;
use serde_json::{Value, json};

use super::{Shop, text};

const SCHEMA: &str = include_str!("data/schemas/review.json");

/// A shop whose results have to fit `schema`.
fn shop(steps: Value, schema: &str) -> Shop {
    let shop = Shop::new(steps);
    shop.edit("feedback.\n", "feedback.\n  outputSchemaPath: ./schemas/review.json\n");
    shop.write("schemas/review.json", schema);
    shop
}

fn answer(arguments: Value) -> Value {
    json!({ "tool_calls": [{ "tool_name": "final_answer", "arguments": arguments }] })
}

fn good() -> Value {
    json!({ "verdict": "change", "findings": [{ "priority": 1, "text": "it loses data" }] })
}

#[tokio::test(flavor = "multi_thread")]
async fn row_3_2_contents_of_inputs_are_added_to_the_task() {
    // The reply quotes all that the model was told.
    let shop = Shop::new(json!([{ "text": "{{task}}" }]));
    shop.write("change.diff", "- one\n+ two\n");
    shop.write("notes/why.txt", "because of <three>\n");
    let client = shop.client().await;
    let (said, _) = client.must(json!({ "prompt": "Review it.", "inputs": ["change.diff", "./notes/why.txt"] })).await;
    for part in ["Review it.", "change.diff", "- one\n+ two", "./notes/why.txt", "because of <three>"] {
        assert!(said.contains(part), "`{part}` in {said}");
    }
    assert!(!client.must(json!({ "prompt": "Review it.", "inputs": [] })).await.0.contains("change.diff"));
    client.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_3_2_the_model_sees_pictures_among_the_inputs() {
    let server = ModelServer::start().await.expect("starts");
    let shop = Shop::new(json!([{ "text": "never" }]));
    let model = format!("type: openai\n    base_url: {}", server.base_url());
    shop.edit("type: scripted\n    script: ./script.json", &model);
    std::fs::write(shop.path("shot.png"), b"\x89PNG\r\n\x1a\nand so on").expect("a file");
    server.push(Reply::text("seen"));
    let client = shop.client().await;
    assert_eq!(client.must(json!({ "prompt": "Look.", "inputs": ["shot.png"] })).await.0, "seen");
    client.end().await;
    let content = &server.requests()[0].body["messages"][1]["content"];
    let url = "data:image/png;base64,iVBORw0KGgphbmQgc28gb24=";
    assert_eq!(content[1], json!({ "type": "image_url", "image_url": { "url": url } }), "{content}");
}

#[tokio::test(flavor = "multi_thread")]
async fn row_3_2_inputs_that_cannot_be_given_are_errors_that_name_them() {
    let shop = Shop::new(json!([{ "text": "fine" }]));
    std::fs::write(shop.path("picture.png"), b"\x89PNG\0").expect("a file");
    let client = shop.client().await;
    for (path, why) in [
        ("missing.txt", "`missing.txt` does not exist"),
        ("../../etc/passwd", "`../../etc/passwd` lies outside of the folder"),
        ("/etc/passwd", "`/etc/passwd` lies outside of the folder"),
        ("prompts", "`prompts` is no file"),
        ("picture.png", "`picture.png` is a binary file"),
    ] {
        let (code, message) = client.refused(json!({ "prompt": "x", "inputs": [path] })).await;
        assert_eq!((code.as_str(), message), ("bad_argument", format!("`inputs` cannot be given: {why}")));
    }
    client.end().await;
    assert_eq!(shop.runs().len(), 0, "nothing was run");
}

#[tokio::test(flavor = "multi_thread")]
async fn row_3_3_the_schema_is_the_tools_and_the_result_is_data_and_text() {
    let shop = shop(json!([answer(good())]), SCHEMA);
    let client = shop.client().await;
    let [tool] = client.tools().await.try_into().expect("one tool");
    let declared = Value::Object((*tool.output_schema.expect("an output schema")).clone());
    assert_eq!(declared, serde_json::from_str::<Value>(SCHEMA).expect("JSON"));
    // `final_answer` ends the run: there is no further step.
    let result = client.call(json!({ "prompt": "review" })).await;
    assert_eq!((result.is_error, result.structured_content.as_ref()), (Some(false), Some(&good())));
    assert_eq!(serde_json::from_str::<Value>(&text(&result)).expect("JSON"), good());
    let run = result.meta.expect("meta")["run_id"].clone();
    let again = client.call(json!({ "prompt": "review", "run_id": run })).await;
    assert_eq!(again.structured_content, Some(good()));
    client.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_3_3_a_result_that_is_no_object_is_wrapped_for_clients() {
    let shop =
        shop(json!([answer(json!({ "answer": [1, 2] }))]), r#"{ "type": "array", "items": { "type": "integer" } }"#);
    let client = shop.client().await;
    let [tool] = client.tools().await.try_into().expect("one tool");
    assert_eq!(tool.output_schema.expect("an output schema")["properties"]["result"]["type"], "array");
    let result = client.call(json!({ "prompt": "count" })).await;
    assert_eq!(result.structured_content, Some(json!({ "result": [1, 2] })), "{result:?}");
    client.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_3_3_a_result_that_does_not_fit_is_mended_once_or_not_at_all() {
    let check = async |steps: Value, repairs: &str| -> CallToolResult {
        let shop = shop(steps, SCHEMA);
        shop.edit("version: \"1.0\"\n", &format!("version: \"1.0\"\n{repairs}"));
        let client = shop.client().await;
        let result = client.call(json!({ "prompt": "review" })).await;
        client.end().await;
        result
    };
    let bad = || answer(json!({ "verdict": "perhaps", "findings": [] }));
    let mended = check(json!([bad(), answer(good())]), "").await;
    assert_eq!(mended.structured_content, Some(good()));
    let failed = |result: CallToolResult| {
        assert_eq!((result.is_error, &result.structured_content), (Some(true), &None), "{result:?}");
        let error: Value = serde_json::from_str(&text(&result)).expect("an error as JSON");
        let message = error["message"].as_str().expect("words").to_owned();
        let run = result.meta.expect("meta")["run_id"].as_str().expect("an id").to_owned();
        assert!(
            message.starts_with(&format!("the run {run} of ")),
            "a failed run is named as one that succeeds: {message}"
        );
        assert_eq!(error["code"], "output_invalid", "{error}");
        assert!(message.contains("/verdict") && message.contains("perhaps"), "the place, and what it had: {message}");
    };
    failed(check(json!([bad(), bad(), answer(good())]), "").await);
    // The specification's own way: no second try.
    failed(check(json!([bad(), answer(good())]), "output_repairs: 0\n").await);
    failed(check(json!([bad(), answer(good())]), "outputRepairs: 0\n").await);
}
