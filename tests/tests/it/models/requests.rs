//! What a provider is sent.

use assistant_host::model::ToolChoice;

use super::*;

#[tokio::test]
async fn the_name_is_sent_exactly_and_nothing_is_derived_from_it() {
    let check = async |wire, name: &str, more: Value| {
        let request = sent(plain, wire, name, hello()).await;
        let mut want = match wire {
            Wire::OpenAi => json!({ "stream_options": { "include_usage": true },
                "messages": [{ "role": "user", "content": "hello" }] }),
            Wire::Responses => json!({ "max_output_tokens": 8_192, "store": false,
                "input": [{ "role": "user", "content": [{ "type": "input_text", "text": "hello" }] }] }),
            Wire::Anthropic => json!({ "max_tokens": 8_192,
                "messages": [{ "role": "user", "content": [{ "type": "text", "text": "hello" }] }] }),
            Wire::Gemini => json!({ "generationConfig": { "maxOutputTokens": 8_192 },
                "contents": [{ "role": "user", "parts": [{ "text": "hello" }] }] }),
            Wire::Ollama => json!({ "options": { "num_predict": 8_192 },
                "messages": [{ "role": "user", "content": "hello" }] }),
        };
        if wire == Wire::Gemini {
            assert_eq!(request.path, path(wire).replace("m-1", name));
        } else {
            assert_eq!(request.path, path(wire));
            want["model"] = json!(name);
            want["stream"] = json!(true);
        }
        want.as_object_mut().expect("an object").extend(map(more));
        assert_eq!(request.body, want, "{name}");
    };
    let most = || json!({ "max_tokens": 8_192 });
    check(Wire::OpenAi, "qwen3-high", most()).await;
    check(Wire::OpenAi, "anthropic::claude", most()).await;
    check(Wire::OpenAi, "claude-sonnet-4-5", most()).await;
    check(Wire::OpenAi, "gpt-5-mini", json!({ "max_completion_tokens": 8_192 })).await;
    check(Wire::Responses, "gpt-4.1-high", json!({})).await;
    check(Wire::Responses, "gpt-5-chat-latest", json!({})).await;
    check(Wire::Responses, "o4-mini-low", json!({ "include": ["reasoning.encrypted_content"] })).await;
    check(Wire::Anthropic, "claude-opus-4-8-high", json!({})).await;
    check(Wire::Anthropic, "openai::gpt-none", json!({})).await;
    check(Wire::Gemini, "gemini-3-pro-high", json!({})).await;
    check(Wire::Gemini, "a::b-none", json!({})).await;
    check(Wire::Ollama, "ns/qwen3:8b-high", json!({})).await;
    check(Wire::Ollama, "ollama::x", json!({})).await;
}

#[tokio::test]
async fn the_key_is_in_its_header_and_may_be_missing() {
    let header = |wire| match wire {
        Wire::OpenAi | Wire::Responses | Wire::Ollama => ("authorization", format!("Bearer {KEY}")),
        Wire::Anthropic => ("x-api-key", KEY.to_owned()),
        Wire::Gemini => ("x-goog-api-key", KEY.to_owned()),
    };
    for wire in Wire::ALL {
        let (name, want) = header(wire);
        let request = sent(plain, wire, "m", hello()).await;
        assert_eq!(request.header(name), Some(&*want), "{wire:?}");
        assert!(!request.path.contains(KEY) && !request.body.to_string().contains(KEY), "{wire:?}");
        let version = (wire == Wire::Anthropic).then_some("2023-06-01");
        assert_eq!(request.header("anthropic-version"), version);
        assert_eq!(request.header("content-type"), Some("application/json"));
        let request = sent(|config| config.key = None, wire, "m", hello()).await;
        assert_eq!(request.header(name), None, "{wire:?}");
    }
}

#[tokio::test]
async fn a_key_that_no_header_takes_is_refused_without_showing_it() {
    for wire in Wire::ALL {
        let mut config = NetworkConfig::new(wire, "m");
        config.key = assistant_host::config::Secret::new("sk-\u{7}bell");
        let error = NetworkModel::new(config).expect_err("refused").to_string();
        assert_eq!(error, "`api_key_env` holds a key that no header takes");
    }
}

#[tokio::test]
async fn settings_are_added_but_the_conversation_stands() {
    for wire in Wire::ALL {
        let settings = |value: Value| match wire {
            Wire::Gemini => json!({ "generationConfig": value }),
            Wire::Ollama => json!({ "options": value }),
            Wire::OpenAi | Wire::Responses | Wire::Anthropic => value,
        };
        let change = |config: &mut NetworkConfig| {
            config.max_output_tokens = 100;
            let mut extra = settings(json!({ "temperature": 0.5, "top_p": 0.1 }));
            for (key, value) in
                map(json!({ "messages": [], "input": [], "contents": [], "model": "other", "stream": false }))
            {
                extra[key] = value;
            }
            config.extra = map(extra);
        };
        let ask = Ask { max_output_tokens: Some(50), extra: map(settings(json!({ "top_p": 0.9 }))), ..hello() };
        let body = sent(change, wire, "m", ask).await.body;
        let (field, conversation) = match wire {
            Wire::OpenAi | Wire::Anthropic => ("max_tokens", "messages"),
            Wire::Responses => ("max_output_tokens", "input"),
            Wire::Gemini => ("maxOutputTokens", "contents"),
            Wire::Ollama => ("num_predict", "messages"),
        };
        let settings = match wire {
            Wire::Gemini => &body["generationConfig"],
            Wire::Ollama => &body["options"],
            Wire::OpenAi | Wire::Responses | Wire::Anthropic => &body,
        };
        let got = (&settings["temperature"], &settings["top_p"], &settings[field]);
        assert_eq!(got, (&json!(0.5), &json!(0.9), &json!(50)), "{wire:?}");
        if wire != Wire::Gemini {
            assert_eq!((&body["model"], &body["stream"]), (&json!("m"), &json!(true)));
        }
        assert_eq!(body[conversation].as_array().map(Vec::len), Some(1), "{wire:?}");
    }
}

#[tokio::test]
async fn ollama_is_told_how_much_context_to_make_room_for_and_how_long_to_stay() {
    let change = |config: &mut NetworkConfig| {
        config.context_tokens = Some(32_768);
        config.extra = map(json!({ "keep_alive": "30m", "think": true, "options": { "seed": 7 } }));
    };
    let body = sent(change, Wire::Ollama, "m", hello()).await.body;
    assert_eq!(body["options"], json!({ "num_predict": 8_192, "num_ctx": 32_768, "seed": 7 }));
    assert_eq!((&body["keep_alive"], &body["think"]), (&json!("30m"), &json!(true)));
}

/// What a body says of the tools and of how they may be used.
async fn tools(wire: Wire, choice: ToolChoice) -> (Value, Value) {
    let schema =
        json!({ "type": "object", "properties": { "q": { "type": "string" } }, "additionalProperties": false });
    // A name that some would make a tool of the provider's own.
    let tool = ToolSpec { name: "web_search".into(), description: "Finds.".into(), input_schema: schema };
    let ask = Ask { tools: vec![tool], tool_choice: choice, ..hello() };
    let mut body = sent(plain, wire, "m", ask).await.body;
    let choice = if wire == Wire::Gemini { body["toolConfig"].take() } else { body["tool_choice"].take() };
    (body["tools"].take(), choice)
}

#[tokio::test]
async fn tools_keep_their_names_and_schemas_and_are_chosen() {
    let schema =
        json!({ "type": "object", "properties": { "q": { "type": "string" } }, "additionalProperties": false });
    let function = json!({ "name": "web_search", "description": "Finds.", "parameters": schema });
    let check = async |wire, tool: Value, none: Value, required: Value| {
        assert_eq!(tools(wire, ToolChoice::Auto).await, (json!([tool]), Value::Null), "{wire:?}");
        assert_eq!(tools(wire, ToolChoice::None).await, (json!([tool]), none), "{wire:?}");
        assert_eq!(tools(wire, ToolChoice::Required).await, (json!([tool]), required), "{wire:?}");
    };
    check(Wire::OpenAi, json!({ "type": "function", "function": function }), json!("none"), json!("required")).await;
    let tool = json!({ "type": "function", "name": "web_search", "description": "Finds.", "parameters": schema, "strict": false });
    check(Wire::Responses, tool, json!("none"), json!("required")).await;
    let tool = json!({ "name": "web_search", "description": "Finds.", "input_schema": schema });
    check(Wire::Anthropic, tool, json!({ "type": "none" }), json!({ "type": "any" })).await;
    let parameters = json!({ "type": "object", "properties": { "q": { "type": "string" } } });
    let tool = json!({ "functionDeclarations": [{ "name": "web_search", "description": "Finds.", "parameters": parameters }] });
    let mode = |mode: &str| json!({ "functionCallingConfig": { "mode": mode } });
    check(Wire::Gemini, tool, mode("NONE"), mode("ANY")).await;
    // Ollama can neither forbid nor demand a call: what may not be called is not named.
    let tool = json!([{ "type": "function", "function": function }]);
    assert_eq!(tools(Wire::Ollama, ToolChoice::Auto).await, (tool.clone(), Value::Null));
    assert_eq!(tools(Wire::Ollama, ToolChoice::Required).await, (tool, Value::Null));
    assert_eq!(tools(Wire::Ollama, ToolChoice::None).await, (Value::Null, Value::Null));
}
