//! A conversation with everything in it, as each provider is sent it.

use super::*;

/// A conversation with everything in it, of the model `m`.
fn conversation(provider: &str) -> Ask {
    let image = || image(Some("AA=="));
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
    // A picture makes it long enough for the cache.
    let kept = json!({ "type": "ephemeral" });
    assert_eq!(body["system"], json!([{ "type": "text", "text": "be brief", "cache_control": kept }]));
    let image = json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AA==" } });
    let mut first = image.clone();
    first["cache_control"] = kept.clone();
    let want = json!([
        { "role": "user", "content": [{ "type": "text", "text": "look" }, first] },
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
            { "type": "text", "text": "go on", "cache_control": kept },
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

#[tokio::test]
async fn responses_get_every_part_as_an_item_in_place() {
    let body = sent(plain, Wire::Responses, "m", conversation("openai_responses")).await.body;
    assert_eq!(body["instructions"], json!("be brief"));
    let image = json!({ "type": "input_image", "image_url": "data:image/png;base64,AA==" });
    let said = |text: &str| json!({ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": text }] });
    let call = |id: &str, arguments: &str| json!({ "type": "function_call", "call_id": id, "name": "see", "arguments": arguments });
    let want = json!([
        { "role": "user", "content": [{ "type": "input_text", "text": "look" }, image] },
        { "type": "thinking", "thinking": "t1", "signature": "s1" },
        said("one"),
        { "type": "thinking", "thinking": "t2", "signature": "s2" },
        said("two"),
        call("a:1", r#"{"x":1}"#),
        call("b", r#"{"invalid_arguments":"{oops"}"#),
        { "type": "function_call_output", "call_id": "a:1", "output": [{ "type": "input_text", "text": "seen" }, image] },
        { "type": "function_call_output", "call_id": "b", "output": "Error: no JSON" },
        { "role": "user", "content": [{ "type": "input_text", "text": "a message came in" }] },
        { "role": "user", "content": [{ "type": "input_text", "text": "go on" }] },
    ]);
    assert_eq!(body["input"], want);
}

#[tokio::test]
async fn gemini_gets_every_part_in_place_and_the_responses_together() {
    let image = json!({ "inlineData": { "mimeType": "image/png", "data": "AA==" } });
    let call = |id: &str, args: Value| json!({ "functionCall": { "id": id, "name": "see", "args": args } });
    let response = |id: &str, response: Value| json!({ "id": id, "name": "see", "response": response });
    for (name, new) in [("m", false), ("gemini-3-m", true)] {
        let mut ask = conversation("gemini");
        for message in &mut ask.messages {
            let Content::Parts(parts) = &mut message.content else { continue };
            for part in parts {
                match part {
                    Part::Opaque { model, .. } if model == "m" => name.clone_into(model),
                    _ => {}
                }
            }
        }
        let body = sent(plain, Wire::Gemini, name, ask).await.body;
        assert_eq!(body["systemInstruction"], json!({ "parts": [{ "text": "be brief" }] }));
        let mut first = call("a:1", json!({ "x": 1 }));
        let mut seen = response("a:1", json!({ "output": "seen" }));
        let mut after = vec![json!({ "text": "Pictures of the result of a:1:" }), image.clone()];
        if new {
            first["thoughtSignature"] = json!("skip_thought_signature_validator");
            seen["parts"] = json!([image]);
            after.clear();
        }
        after.extend([json!({ "text": "a message came in" }), json!({ "text": "go on" })]);
        let want = json!([
            { "role": "user", "parts": [{ "text": "look" }, image] },
            { "role": "model", "parts": [
                { "type": "thinking", "thinking": "t1", "signature": "s1" },
                { "text": "one" },
                { "type": "thinking", "thinking": "t2", "signature": "s2" },
                { "text": "two" },
                first,
                call("b", json!({ "invalid_arguments": "{oops" })),
            ] },
            { "role": "user", "parts": [
                { "functionResponse": seen },
                { "functionResponse": response("b", json!({ "error": "no JSON" })) },
            ] },
            { "role": "user", "parts": after },
        ]);
        assert_eq!(body["contents"], want, "{name}");
    }
}

#[tokio::test]
async fn ollama_gets_every_part_that_its_format_has() {
    let body = sent(plain, Wire::Ollama, "m", conversation("ollama")).await.body;
    let call = |id: &str, arguments: Value| json!({ "id": id, "function": { "name": "see", "arguments": arguments } });
    let result =
        |id: &str, text: &str| json!({ "role": "tool", "content": text, "tool_call_id": id, "tool_name": "see" });
    let want = json!([
        { "role": "system", "content": "be brief" },
        { "role": "user", "content": "look", "images": ["AA=="] },
        { "role": "assistant", "content": "onetwo", "thinking": "unsigned",
          "tool_calls": [call("a:1", json!({ "x": 1 })), call("b", json!({ "invalid_arguments": "{oops" }))] },
        result("a:1", "seen"),
        result("b", "Error: no JSON"),
        { "role": "user", "content": "Pictures of the result of a:1:", "images": ["AA=="] },
        { "role": "user", "content": "a message came in" },
        { "role": "user", "content": "go on" },
    ]);
    assert_eq!(body["messages"], want);
}

#[tokio::test]
async fn what_is_empty_is_not_sent() {
    let messages = vec![
        Message::text(Role::User, "go"),
        assistant(vec![]),
        assistant(vec![Part::text("")]),
        Message::text(Role::User, "on"),
    ];
    let ask = Ask { system: Some(String::new()), messages, ..Ask::default() };
    let check = async |wire, field: &str, want: usize| {
        let body = sent(plain, wire, "m", ask.clone()).await.body;
        assert_eq!(body[field].as_array().map(Vec::len), Some(want), "{wire:?}: {body}");
        for system in ["system", "instructions", "systemInstruction"] {
            assert_eq!(body[system], Value::Null, "{wire:?}");
        }
    };
    check(Wire::Anthropic, "messages", 1).await;
    check(Wire::Gemini, "contents", 1).await;
    check(Wire::Responses, "input", 2).await;
    // These two take empty messages.
    check(Wire::OpenAi, "messages", 4).await;
    check(Wire::Ollama, "messages", 4).await;
}
