//! What a provider is sent.

use super::*;

/// The one request that a call makes.
async fn sent(change: impl Fn(&mut NetworkConfig), wire: Wire, name: &str, ask: Ask) -> Request {
    let server = ModelServer::start().await.expect("starts");
    server.push(Reply::text("ok"));
    let mut config = config(&server, wire, name);
    change(&mut config);
    call(&NetworkModel::new(config).expect("sets up"), ask).await.expect("answers");
    let mut requests = server.requests();
    assert_eq!(requests.len(), 1);
    requests.remove(0)
}

fn plain(_: &mut NetworkConfig) {}

#[tokio::test]
async fn the_name_is_sent_exactly_and_nothing_is_derived_from_it() {
    let check = async |wire, name: &str, tokens_field: &str| {
        let body = sent(plain, wire, name, hello()).await.body;
        let mut want = json!({ "model": name, "stream": true, tokens_field: 8_192 });
        match wire {
            Wire::OpenAi => {
                want["stream_options"] = json!({ "include_usage": true });
                want["messages"] = json!([{ "role": "user", "content": "hello" }]);
            }
            Wire::Anthropic => {
                want["messages"] = json!([{ "role": "user", "content": [{ "type": "text", "text": "hello" }] }]);
            }
        }
        assert_eq!(body, want, "{name}");
    };
    check(Wire::OpenAi, "qwen3-high", "max_tokens").await;
    check(Wire::OpenAi, "anthropic::claude", "max_tokens").await;
    check(Wire::OpenAi, "claude-sonnet-4-5", "max_tokens").await;
    check(Wire::OpenAi, "gpt-5-mini", "max_completion_tokens").await;
    check(Wire::Anthropic, "claude-opus-4-8-high", "max_tokens").await;
    check(Wire::Anthropic, "openai::gpt-none", "max_tokens").await;
}

#[tokio::test]
async fn the_key_is_in_its_header_and_may_be_missing() {
    let openai = sent(plain, Wire::OpenAi, "m", hello()).await;
    assert_eq!(openai.path, "/v1/chat/completions");
    assert_eq!(openai.header("authorization"), Some(&*format!("Bearer {KEY}")));
    let anthropic = sent(plain, Wire::Anthropic, "m", hello()).await;
    assert_eq!(anthropic.path, "/v1/messages");
    assert_eq!((anthropic.header("x-api-key"), anthropic.header("anthropic-version")), (Some(KEY), Some("2023-06-01")));
    for wire in BOTH {
        let request = sent(|config| config.key = None, wire, "m", hello()).await;
        let key = request.header("authorization").or(request.header("x-api-key"));
        assert!(matches!(key, None | Some("" | "Bearer")), "{key:?}");
    }
}

#[tokio::test]
async fn settings_are_added_but_the_conversation_stands() {
    for wire in BOTH {
        let change = |config: &mut NetworkConfig| {
            config.max_output_tokens = 100;
            let extra = json!({ "temperature": 0.5, "messages": [], "model": "other", "stream": false, "top_p": 0.1 });
            config.extra = extra.as_object().expect("an object").clone();
        };
        let ask = Ask {
            max_output_tokens: Some(50),
            extra: json!({ "top_p": 0.9 }).as_object().expect("an object").clone(),
            ..hello()
        };
        let body = sent(change, wire, "m", ask).await.body;
        assert_eq!((&body["temperature"], &body["top_p"], &body["max_tokens"]), (&json!(0.5), &json!(0.9), &json!(50)));
        assert_eq!((&body["model"], &body["stream"]), (&json!("m"), &json!(true)));
        assert_eq!(body["messages"].as_array().map(Vec::len), Some(1));
    }
}

#[tokio::test]
async fn tools_keep_their_names_and_schemas() {
    let schema = json!({ "type": "object", "properties": { "q": { "type": "string" } } });
    // A name that genai would make a tool of the provider's own.
    let tool = ToolSpec { name: "web_search".into(), description: "Finds.".into(), input_schema: schema.clone() };
    let ask = Ask { tools: vec![tool], tool_choice: assistant_host::model::ToolChoice::Required, ..hello() };
    let body = sent(plain, Wire::OpenAi, "m", ask.clone()).await.body;
    let function = json!({ "name": "web_search", "description": "Finds.", "parameters": schema });
    assert_eq!(body["tools"], json!([{ "type": "function", "function": function }]));
    assert_eq!(body["tool_choice"], json!("required"));
    let body = sent(plain, Wire::Anthropic, "m", ask).await.body;
    assert_eq!(body["tools"], json!([{ "name": "web_search", "description": "Finds.", "input_schema": schema }]));
    assert_eq!(body["tool_choice"], json!({ "type": "any" }));
}

#[tokio::test]
async fn an_output_schema_is_held_to() {
    let schema = json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] });
    let ask = Ask { output_schema: Some(schema), ..hello() };
    let body = sent(plain, Wire::OpenAi, "m", ask.clone()).await.body;
    assert_eq!(body["response_format"]["json_schema"]["schema"]["required"], json!(["a"]));
    let body = sent(plain, Wire::Anthropic, "m", ask).await.body;
    assert_eq!(body["output_config"]["format"]["schema"]["required"], json!(["a"]));
}

/// A conversation with everything in it, of the model `m`.
fn conversation(provider: &str) -> Ask {
    let image = || Part::Image { mime_type: "image/png".into(), data: Some("AA==".into()), blob: None };
    let result = |id: &str, content: Vec<Part>, is_error| Message {
        role: Role::Tool,
        content: Content::Parts(vec![Part::ToolResult { call_id: id.into(), content, is_error }]),
    };
    let thought = |n: u32| json!({ "type": "thinking", "thinking": format!("t{n}"), "signature": format!("s{n}") });
    let messages = vec![
        Message { role: Role::User, content: Content::Parts(vec![Part::text("look"), image()]) },
        assistant(vec![
            opaque(provider, "m", thought(1)),
            Part::text("one"),
            opaque(provider, "m", thought(2)),
            opaque(provider, "other", thought(3)),
            opaque("elsewhere", "m", thought(4)),
            Part::Reasoning { text: Some("unsigned".into()) },
            Part::text("two"),
            tool_call("a:1", "see", Ok(json!({ "x": 1 }))),
            tool_call("b", "see", Err("{oops")),
        ]),
        result("a:1", vec![Part::text("seen"), image()], false),
        result("b", vec![Part::text("no JSON")], true),
        Message::text(Role::User, "a message came in"),
        Message {
            role: Role::User,
            content: Content::Parts(vec![Part::Unknown(json!({ "type": "new" })), Part::text("go on")]),
        },
    ];
    Ask { system: Some("be brief".into()), messages, ..Ask::default() }
}

#[tokio::test]
async fn anthropic_gets_every_part_verbatim_and_in_place() {
    let body = sent(plain, Wire::Anthropic, "m", conversation("anthropic")).await.body;
    assert_eq!(body["system"], json!("be brief"));
    let image = json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AA==" } });
    let want = json!([
        { "role": "user", "content": [{ "type": "text", "text": "look" }, image] },
        { "role": "assistant", "content": [
            { "type": "thinking", "thinking": "t1", "signature": "s1" },
            { "type": "text", "text": "one" },
            { "type": "thinking", "thinking": "t2", "signature": "s2" },
            { "type": "text", "text": "two" },
            { "type": "tool_use", "id": "a_1", "name": "see", "input": { "x": 1 } },
            { "type": "tool_use", "id": "b", "name": "see", "input": { "invalid_arguments": "{oops" } },
        ] },
        { "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "a_1", "content": [{ "type": "text", "text": "seen" }, image] },
            { "type": "tool_result", "tool_use_id": "b", "content": [{ "type": "text", "text": "no JSON" }], "is_error": true },
            { "type": "text", "text": "a message came in" },
            { "type": "text", "text": "go on" },
        ] },
    ]);
    assert_eq!(body["messages"], want);
}

#[tokio::test]
async fn openai_gets_every_part_that_its_format_has() {
    let body = sent(plain, Wire::OpenAi, "m", conversation("openai")).await.body;
    let image = json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,AA==" } });
    let call = |id: &str, arguments: &str| json!({ "id": id, "type": "function", "function": { "name": "see", "arguments": arguments } });
    let want = json!([
        { "role": "system", "content": "be brief" },
        { "role": "user", "content": [{ "type": "text", "text": "look" }, image] },
        { "role": "assistant", "content": "onetwo",
          "tool_calls": [call("a:1", r#"{"x":1}"#), call("b", r#"{"invalid_arguments":"{oops"}"#)],
          "reasoning_content": "unsigned",
          "reasoning_details": [
            { "type": "thinking", "thinking": "t1", "signature": "s1" },
            { "type": "thinking", "thinking": "t2", "signature": "s2" },
          ] },
        { "role": "tool", "tool_call_id": "a:1", "content": "seen" },
        { "role": "tool", "tool_call_id": "b", "content": "Error: no JSON" },
        { "role": "user", "content": [{ "type": "text", "text": "Pictures of the result of a:1:" }, image] },
        { "role": "user", "content": "a message came in" },
        { "role": "user", "content": [{ "type": "text", "text": "go on" }] },
    ]);
    assert_eq!(body["messages"], want);
}
