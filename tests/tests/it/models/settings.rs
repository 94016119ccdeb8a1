//! What follows from settings and from what a call wants: schemas of answers, thinking, the cache.

use super::*;

fn schema() -> Value {
    json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] })
}

fn closed() -> Value {
    let mut schema = schema();
    schema["additionalProperties"] = json!(false);
    schema
}

fn tool() -> ToolSpec {
    ToolSpec { name: "t".into(), description: "T.".into(), input_schema: json!({ "type": "object" }) }
}

#[tokio::test]
async fn an_output_schema_is_held_to_where_the_provider_can() {
    let check = async |wire, name: &str, schema: Value, tools: Vec<ToolSpec>, pointer: &str, want: Option<Value>| {
        let ask = Ask { output_schema: Some(schema), tools, ..hello() };
        let body = sent(plain, wire, name, ask).await.body;
        assert_eq!(body.pointer(pointer), want.as_ref(), "{wire:?} {name}: {body}");
    };
    let open = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    let any = json!({ "type": "object" });
    let chat = |schema: Value, strict: bool| {
        let held = json!({ "name": "result", "schema": schema, "strict": strict });
        Some(json!({ "type": "json_schema", "json_schema": held }))
    };
    check(Wire::OpenAi, "m", schema(), vec![], "/response_format", chat(closed(), true)).await;
    check(Wire::OpenAi, "m", open.clone(), vec![], "/response_format", chat(open.clone(), false)).await;
    check(Wire::OpenAi, "m", any.clone(), vec![], "/response_format", chat(any.clone(), false)).await;
    let items = |schema: Value, strict: bool| {
        Some(json!({ "type": "json_schema", "name": "result", "schema": schema, "strict": strict }))
    };
    check(Wire::Responses, "m", schema(), vec![tool()], "/text/format", items(closed(), true)).await;
    check(Wire::Responses, "m", any.clone(), vec![], "/text/format", items(any.clone(), false)).await;
    let messages = Some(json!({ "format": { "type": "json_schema", "schema": closed() } }));
    check(Wire::Anthropic, "claude-sonnet-4-5", schema(), vec![tool()], "/output_config", messages).await;
    check(Wire::Anthropic, "claude-3-7-sonnet-latest", schema(), vec![], "/output_config", None).await;
    check(Wire::Anthropic, "claude-sonnet-4-5", any, vec![], "/output_config", None).await;
    let field = "/generationConfig/responseJsonSchema";
    check(Wire::Gemini, "gemini-2.5-flash", schema(), vec![], field, Some(schema())).await;
    check(Wire::Gemini, "gemini-2.5-flash", schema(), vec![tool()], field, None).await;
    check(Wire::Gemini, "gemini-3-pro", schema(), vec![tool()], field, Some(schema())).await;
    let kind = "/generationConfig/responseMimeType";
    check(Wire::Gemini, "gemini-3-pro", schema(), vec![], kind, Some(json!("application/json"))).await;
    check(Wire::Ollama, "m", schema(), vec![], "/format", Some(schema())).await;
    check(Wire::Ollama, "m", schema(), vec![tool()], "/format", None).await;
}

/// The thinking that Anthropic is sent, and whether it may be interleaved.
async fn thinking(extra: Value, ask: Ask) -> (Value, bool) {
    let change = |config: &mut NetworkConfig| config.extra = map(extra.clone());
    let request = sent(change, Wire::Anthropic, "m", ask).await;
    let beta = request.header("anthropic-beta") == Some("interleaved-thinking-2025-05-14");
    (request.body["thinking"].clone(), beta)
}

#[tokio::test]
async fn thinking_is_made_to_fit_the_call() {
    let budget = |tokens: u32| json!({ "type": "enabled", "budget_tokens": tokens });
    let extra = |thinking: Value| json!({ "thinking": thinking });
    let with_tools = || Ask { tools: vec![tool()], ..hello() };
    assert_eq!(thinking(extra(budget(4_096)), hello()).await, (budget(4_096), false));
    assert_eq!(thinking(extra(budget(4_096)), with_tools()).await, (budget(4_096), true));
    // Longer than the answer may be.
    assert_eq!(thinking(extra(budget(50_000)), hello()).await, (budget(8_191), false));
    let short = Ask { max_output_tokens: Some(16), ..hello() };
    assert_eq!(thinking(extra(budget(4_096)), short).await, (Value::Null, false));
    let adaptive = || json!({ "type": "adaptive" });
    assert_eq!(thinking(extra(adaptive()), with_tools()).await, (adaptive(), false));
    // A thinking model cannot be made to call a tool.
    for thinking in [budget(2_000), adaptive()] {
        let change = |config: &mut NetworkConfig| config.extra = map(extra(thinking.clone()));
        let ask = Ask { tool_choice: assistant_host::model::ToolChoice::Required, ..with_tools() };
        let body = sent(change, Wire::Anthropic, "m", ask).await.body;
        assert_eq!((&body["thinking"], &body["tool_choice"]), (&thinking, &Value::Null));
    }
}

#[tokio::test]
async fn an_answer_that_began_without_a_thought_goes_on_without_one() {
    let result = Message {
        role: Role::Tool,
        content: Content::Parts(vec![Part::ToolResult { call_id: "a".into(), content: vec![], is_error: false }]),
    };
    let check = async |first: Vec<Part>, want: bool| {
        let called = assistant([first, vec![tool_call("a", "t", Ok(json!({})))]].concat());
        let ask = Ask { messages: vec![Message::text(Role::User, "go"), called, result.clone()], ..hello() };
        let extra = json!({ "thinking": { "type": "enabled", "budget_tokens": 2_000 } });
        assert_eq!(thinking(extra, ask).await.0.is_object(), want);
    };
    let thought =
        |model: &str| opaque("anthropic", model, json!({ "type": "thinking", "thinking": "t", "signature": "s" }));
    check(vec![thought("m")], true).await;
    check(vec![thought("another")], false).await;
    check(vec![], false).await;
}

#[tokio::test]
async fn a_long_beginning_is_marked_for_the_cache() {
    let mark = json!({ "type": "ephemeral" });
    let long = "word ".repeat(2_000);
    let conversation = |system: Option<&str>| Ask {
        system: system.map(str::to_owned),
        messages: vec![
            Message::text(Role::User, "one"),
            assistant(vec![Part::text("two")]),
            Message::text(Role::User, "three"),
            assistant(vec![Part::text("four")]),
            Message::text(Role::User, "five"),
        ],
        tools: vec![tool(), tool()],
        ..Ask::default()
    };
    let marked = |body: &Value| {
        let users = [0, 2, 4].map(|at| body["messages"][at]["content"][0]["cache_control"] == mark);
        let tools = [0, 1].map(|at| body["tools"][at]["cache_control"] == mark);
        (body["system"][0]["cache_control"] == mark, tools, users)
    };
    let body = sent(plain, Wire::Anthropic, "m", conversation(Some(&long))).await.body;
    assert_eq!(marked(&body), (true, [false, false], [false, true, true]));
    assert_eq!(body["system"][0]["text"], json!(long));
    let mut without = conversation(None);
    without.messages[0] = Message::text(Role::User, &long);
    let body = sent(plain, Wire::Anthropic, "m", without).await.body;
    assert_eq!(marked(&body), (false, [false, true], [false, true, true]));
    let body = sent(plain, Wire::Anthropic, "m", conversation(Some("short"))).await.body;
    assert_eq!(marked(&body), (false, [false, false], [false, false, false]));
    assert_eq!(body["system"], json!("short"));
}
