//! Thoughts that go back: verbatim, in place, and only to the model that thought them.

use super::*;

fn thinking(text: &str, signature: &str) -> Value {
    json!({ "type": "thinking", "thinking": text, "signature": signature })
}

/// What a model is read to have said, and what of it is sent back to it, in the field of the conversation, and to another
/// model after that.
async fn check(wire: Wire, said: Vec<Said>, read: Vec<Part>, back: Value, elsewhere: Value) {
    let server = ModelServer::start().await.expect("starts");
    server.push(Reply::Say(Say::new(said)));
    let mut ask = hello();
    let answer = call(&model(&server, wire), ask.clone()).await.expect("answers");
    assert_eq!(answer.message.content, Content::Parts(read), "{wire:?}");
    ask.messages.push(answer.message);
    ask.messages.push(Message::text(Role::User, "and now?"));
    for (name, want) in [("m-1", back), ("m-2", elsewhere)] {
        server.push(Reply::text("done"));
        let model = NetworkModel::new(config(&server, wire, name)).expect("sets up");
        call(&model, ask.clone()).await.expect("answers");
        let body = server.requests().pop().expect("a request").body;
        let got = match wire {
            Wire::OpenAi | Wire::Ollama => body["messages"][1].clone(),
            Wire::Anthropic => body["messages"][1]["content"].clone(),
            Wire::Gemini => body["contents"][1]["parts"].clone(),
            Wire::Responses => {
                let items = body["input"].as_array().expect("items");
                items[1..items.len() - 1].to_vec().into()
            }
        };
        assert_eq!(got, want, "{wire:?} to {name}");
    }
}

#[tokio::test]
async fn anthropic_gets_its_thoughts_back() {
    let said =
        vec![Said::thought("hm", "c2ln"), Said::Redacted("eA==".into()), Said::text("a"), Said::thought("ha", "Zg==")];
    let redacted = || json!({ "type": "redacted_thinking", "data": "eA==" });
    let mine = |data| opaque("anthropic", "m-1", data);
    let read = vec![mine(thinking("hm", "c2ln")), mine(redacted()), Part::text("a"), mine(thinking("ha", "Zg=="))];
    let text = json!({ "type": "text", "text": "a" });
    let back = json!([thinking("hm", "c2ln"), redacted(), text, thinking("ha", "Zg==")]);
    check(Wire::Anthropic, said, read, back, json!([text])).await;
}

#[tokio::test]
async fn gemini_gets_each_signature_back_beside_its_part() {
    let said = vec![
        Said::thought("let me think about it", "sig-1"),
        Said::call("c1", "see", r#"{"x": 1}"#),
        Said::call("c2", "see", "{}"),
        Said::thought("", "sig-2"),
        Said::text("a text of several pieces"),
        Said::text("another"),
        Said::thought("", "sig-3"),
        Said::picture("image/png", "AA=="),
        Said::Redacted("sig-4".into()),
    ];
    let sign = |signature: &str| opaque("gemini", "m-1", json!({ "thoughtSignature": signature }));
    let last = json!({ "text": "", "thoughtSignature": "sig-4" });
    let read = vec![
        Part::Reasoning { text: Some("let me think about it".into()) },
        sign("sig-1"),
        tool_call("c1", "see", Ok(json!({ "x": 1 }))),
        tool_call("c2", "see", Ok(json!({}))),
        Part::text("a text of several pie".to_owned()),
        sign("sig-2"),
        Part::text("ces"),
        Part::text("another"),
        sign("sig-3"),
        image(Some("AA==")),
        opaque("gemini", "m-1", last.clone()),
    ];
    let call = |id: &str, args: Value| json!({ "functionCall": { "id": id, "name": "see", "args": args } });
    let picture = json!({ "inlineData": { "mimeType": "image/png", "data": "AA==" } });
    let elsewhere = vec![
        call("c1", json!({ "x": 1 })),
        call("c2", json!({})),
        json!({ "text": "a text of several pie" }),
        json!({ "text": "ces" }),
        json!({ "text": "another" }),
        picture,
    ];
    let mut back = elsewhere.clone();
    for (at, signature) in [(0, "sig-1"), (3, "sig-2"), (5, "sig-3")] {
        back[at]["thoughtSignature"] = json!(signature);
    }
    back.push(last);
    check(Wire::Gemini, said, read, back.into(), elsewhere.into()).await;
}

#[tokio::test]
async fn responses_get_encrypted_thoughts_back_with_what_they_led_to() {
    let said = vec![
        Said::thought("first, look", "enc-1"),
        Said::call("c1", "see", r#"{"x":1}"#),
        Said::thought("then say", "enc-2"),
        Said::text("there"),
        Said::Thought { text: "not encrypted".into(), signature: None },
        // It led to nothing, and alone it would be refused.
        Said::Redacted("enc-3".into()),
    ];
    let item = |at: u32, summary: Value, encrypted: &str| {
        json!({ "type": "reasoning", "id": format!("rs_{at}"),
        "summary": summary, "encrypted_content": encrypted })
    };
    let summary = |text: &str| json!([{ "type": "summary_text", "text": text }]);
    let mine = |data| opaque("openai_responses", "m-1", data);
    let (first, second) = (item(0, summary("first, look"), "enc-1"), item(2, summary("then say"), "enc-2"));
    let read = vec![
        mine(first.clone()),
        tool_call("c1", "see", Ok(json!({ "x": 1 }))),
        mine(second.clone()),
        Part::text("there"),
        Part::Reasoning { text: Some("not encrypted".into()) },
        mine(item(5, json!([]), "enc-3")),
    ];
    let called = json!({ "type": "function_call", "call_id": "c1", "name": "see", "arguments": "{\"x\":1}" });
    let text =
        json!({ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "there" }] });
    let back = json!([first, called, second, text]);
    check(Wire::Responses, said, read, back, json!([called, text])).await;
}

#[tokio::test]
async fn chat_completions_get_thoughts_back_with_the_calls_that_came_of_them() {
    let unsigned = || Said::Thought { text: "step by step".into(), signature: None };
    let thought = || Part::Reasoning { text: Some("step by step".into()) };
    let call = json!({ "id": "c1", "type": "function", "function": { "name": "see", "arguments": "{}" } });
    let back = json!({ "role": "assistant", "content": "", "tool_calls": [call], "reasoning_content": "step by step" });
    let read = vec![thought(), tool_call("c1", "see", Ok(json!({})))];
    check(Wire::OpenAi, vec![unsigned(), Said::call("c1", "see", "{}")], read, back.clone(), back).await;
    // Without a call it is not wanted, and some refuse it.
    let back = json!({ "role": "assistant", "content": "so" });
    check(Wire::OpenAi, vec![unsigned(), Said::text("so")], vec![thought(), Part::text("so")], back.clone(), back)
        .await;
    // What a gateway signed is of one model.
    let detail = json!({ "type": "reasoning.text", "index": 0, "text": "hm", "signature": "c2ln" });
    let read = vec![opaque("openai", "m-1", detail.clone()), Part::text("so")];
    let plain = json!({ "role": "assistant", "content": "so" });
    let mut back = plain.clone();
    back["reasoning_details"] = json!([detail]);
    check(Wire::OpenAi, vec![Said::thought("hm", "c2ln"), Said::text("so")], read, back, plain).await;
}

#[tokio::test]
async fn ollama_gets_its_thoughts_back_as_text() {
    let said = vec![Said::Thought { text: "step by step".into(), signature: None }, Said::text("so")];
    let read = vec![Part::Reasoning { text: Some("step by step".into()) }, Part::text("so")];
    let back = json!({ "role": "assistant", "content": "so", "thinking": "step by step" });
    check(Wire::Ollama, said, read, back.clone(), back).await;
}
