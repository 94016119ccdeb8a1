//! What is read from a right answer.

use assistant_protocol::types::{FinishReason, Usage};
use std::sync::Mutex;

use super::*;

async fn parts(wire: Wire, parts: Vec<Said>) -> Vec<Part> {
    let answer = answer_to(wire, Reply::Say(Say::new(parts))).await.expect("answers");
    assert_eq!((answer.message.role, answer.model.as_str()), (Role::Assistant, "fake-model-1"));
    answer.message.content.parts().into_owned()
}

fn thinking(text: &str, signature: &str) -> Value {
    json!({ "type": "thinking", "thinking": text, "signature": signature })
}

#[tokio::test]
async fn anthropic_parts_keep_their_order_and_their_signatures() {
    let said = vec![
        Said::thought("first I think", "c2lnbmF0dXJlIG9uZQ=="),
        Said::thought("then again", "c2lnbmF0dXJlIHR3bw=="),
        Said::Redacted("ZW5jcnlwdGVk".into()),
        Said::text("I look at the file."),
        Said::thought("in between", "dGhyZWU="),
        Said::call("toolu_1", "read_file", r#"{"path": "a.rs", "n": [1, 2.5]}"#),
        Said::Thought { text: "unsigned".into(), signature: None },
        Said::call("toolu_2", "list_files", ""),
        Said::call("toolu_3", "list_files", r#"{"pat"#),
    ];
    let thought = |data| opaque("anthropic", "m-1", data);
    let want = vec![
        thought(thinking("first I think", "c2lnbmF0dXJlIG9uZQ==")),
        thought(thinking("then again", "c2lnbmF0dXJlIHR3bw==")),
        thought(json!({ "type": "redacted_thinking", "data": "ZW5jcnlwdGVk" })),
        Part::text("I look at the file."),
        thought(thinking("in between", "dGhyZWU=")),
        tool_call("toolu_1", "read_file", Ok(json!({ "path": "a.rs", "n": [1, 2.5] }))),
        Part::Reasoning { text: Some("unsigned".into()) },
        tool_call("toolu_2", "list_files", Ok(json!({}))),
        tool_call("toolu_3", "list_files", Err(r#"{"pat"#)),
    ];
    assert_eq!(parts(Wire::Anthropic, said).await, want);
}

#[tokio::test]
async fn openai_parts_keep_their_order_and_their_signatures() {
    let said = vec![
        Said::Thought { text: "let me see, step by step".into(), signature: None },
        Said::thought("signed", "c2ln"),
        Said::Redacted("ZW5j".into()),
        Said::text("grüße, 日本語 and 🦀🦀🦀🦀🦀🦀🦀"),
        Said::call("c1", "read_file", r#"{"path": "ä"}"#),
        Said::call("c2", "list_files", ""),
        Said::call("c3", "list_files", "null"),
        Said::call("c4", "list_files", "{oops"),
    ];
    let detail = json!({ "type": "reasoning.text", "index": 0, "text": "signed", "signature": "c2ln" });
    let want = vec![
        Part::Reasoning { text: Some("let me see, step by step".into()) },
        opaque("openai", "m-1", detail),
        opaque("openai", "m-1", json!({ "type": "reasoning.encrypted", "data": "ZW5j" })),
        Part::text("grüße, 日本語 and 🦀🦀🦀🦀🦀🦀🦀"),
        tool_call("c1", "read_file", Ok(json!({ "path": "ä" }))),
        tool_call("c2", "list_files", Ok(json!({}))),
        tool_call("c3", "list_files", Err("null")),
        tool_call("c4", "list_files", Err("{oops")),
    ];
    assert_eq!(parts(Wire::OpenAi, said).await, want);
}

#[tokio::test]
async fn what_was_read_is_sent_back_verbatim() {
    let server = ModelServer::start().await.expect("starts");
    let model = model(&server, Wire::Anthropic);
    let said =
        vec![Said::thought("hm", "c2ln"), Said::Redacted("eA==".into()), Said::text("a"), Said::thought("ha", "Zg==")];
    server.push(Reply::Say(Say::new(said)));
    let mut ask = hello();
    ask.messages.push(call(&model, ask.clone()).await.expect("answers").message);
    ask.messages.push(Message::text(Role::User, "and now?"));
    server.push(Reply::text("done"));
    call(&model, ask).await.expect("answers");
    let want = json!([thinking("hm", "c2ln"), { "type": "redacted_thinking", "data": "eA==" },
        { "type": "text", "text": "a" }, thinking("ha", "Zg==")]);
    assert_eq!(server.requests()[1].body["messages"][1]["content"], want);
}

#[tokio::test]
async fn the_reason_of_stopping_is_told() {
    let check = async |wire, stop: &str, want| {
        let say = Say::new(vec![Said::text("x")]).stopping(stop);
        assert_eq!(answer_to(wire, Reply::Say(say)).await.expect("answers").finish, want, "{stop}");
    };
    use FinishReason::{Length, Other, Refused, Stop, ToolCalls};
    check(Wire::OpenAi, "stop", Stop).await;
    check(Wire::OpenAi, "length", Length).await;
    check(Wire::OpenAi, "tool_calls", ToolCalls).await;
    check(Wire::OpenAi, "content_filter", Refused).await;
    check(Wire::OpenAi, "odd", Other("odd".into())).await;
    check(Wire::Anthropic, "end_turn", Stop).await;
    check(Wire::Anthropic, "stop_sequence", Stop).await;
    check(Wire::Anthropic, "tool_use", ToolCalls).await;
    check(Wire::Anthropic, "max_tokens", Length).await;
    check(Wire::Anthropic, "refusal", Refused).await;
    check(Wire::Anthropic, "pause_turn", Other("pause_turn".into())).await;
    // Servers that say `stop` although tools are to be called.
    let say = Say::new(vec![Said::call("c", "t", "{}")]).stopping("stop");
    assert_eq!(answer_to(Wire::OpenAi, Reply::Say(say)).await.expect("answers").finish, ToolCalls);
}

#[tokio::test]
async fn usage_is_told_with_the_cache_in_the_input() {
    let check = async |wire, usage, want| {
        let say = Say::new(vec![Said::text("x")]).using(usage);
        assert_eq!(answer_to(wire, Reply::Say(say)).await.expect("answers").usage, want);
    };
    let want = Usage {
        input_tokens: Some(130),
        output_tokens: Some(40),
        cache_read_tokens: Some(100),
        cache_write_tokens: Some(20),
        reasoning_tokens: None,
    };
    let usage = json!({ "input_tokens": 10, "output_tokens": 40, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20 });
    check(Wire::Anthropic, usage, want).await;
    let usage = json!({ "prompt_tokens": 130, "completion_tokens": 40,
        "prompt_tokens_details": { "cached_tokens": 100 }, "completion_tokens_details": { "reasoning_tokens": 30 } });
    check(Wire::OpenAi, usage, Usage { cache_write_tokens: None, reasoning_tokens: Some(30), ..want }).await;
    check(Wire::OpenAi, Value::Null, Usage::default()).await;
}

#[tokio::test]
async fn what_comes_in_is_seen_while_it_comes_in() {
    for wire in BOTH {
        let server = ModelServer::start().await.expect("starts");
        let thought = Said::Thought { text: "thinking it over".into(), signature: None };
        server.push(Reply::Say(Say::new(vec![thought, Said::text("the whole answer")])));
        let seen = Mutex::new((String::new(), String::new(), 0));
        let see = |progress| {
            let mut seen = seen.lock().expect("not poisoned");
            seen.2 += 1;
            match progress {
                Progress::Text(text) => seen.0.push_str(&text),
                Progress::Reasoning(text) => seen.1.push_str(&text),
            }
        };
        model(&server, wire).answer(hello(), &see).await.expect("answers");
        let (text, reasoning, count) = seen.into_inner().expect("not poisoned");
        assert_eq!((text.as_str(), reasoning.as_str()), ("the whole answer", "thinking it over"));
        assert!(count >= 6, "{count} pieces");
    }
}

#[tokio::test]
async fn a_call_without_an_id_of_its_own_gets_one() {
    let server = ModelServer::start().await.expect("starts");
    let said = vec![
        Said::call("", "a", "{}"),
        Said::call("call_0", "b", "{}"),
        Said::call("call_0", "c", "{}"),
        Said::call("fresh", "d", "{}"),
    ];
    server.push(Reply::Say(Say::new(said)));
    let mut ask = hello();
    ask.messages.push(assistant(vec![tool_call("call_0", "b", Ok(json!({})))]));
    let answer = call(&model(&server, Wire::OpenAi), ask).await.expect("answers");
    let ids = answer
        .message
        .content
        .parts()
        .iter()
        .map(|part| match part {
            Part::ToolCall { call_id, .. } => call_id.clone(),
            other => panic!("{other:?} is no call"),
        })
        .collect::<Vec<_>>();
    assert_eq!(ids[3], "fresh");
    for (at, id) in ids[..3].iter().enumerate() {
        assert!(id.starts_with("call_") && id.len() == 37, "{id} is not minted");
        assert!(!ids[..at].contains(id), "{id} is there twice");
    }
}

#[tokio::test]
async fn calls_are_told_apart_whatever_their_index_is() {
    let event = |calls: Value| {
        let choice = json!({ "index": 0, "delta": { "tool_calls": calls }, "finish_reason": null });
        format!("data: {}\n\n", json!({ "choices": [choice] }))
    };
    let end = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n";
    let check = async |events: Vec<Value>, want: Vec<Part>| {
        let text = events.into_iter().map(event).collect::<String>() + end;
        let answer = answer_to(Wire::OpenAi, Reply::events(text)).await.expect("answers");
        assert_eq!(answer.message.content, Content::Parts(want));
    };
    let begin = |index: Value, id: &str, name: &str, arguments: &str| json!({ "index": index, "id": id, "function": { "name": name, "arguments": arguments } });
    let more = |index: Value, arguments: &str| json!({ "index": index, "function": { "arguments": arguments } });
    let a = || tool_call("a", "f", Ok(json!({ "x": 1 })));
    let b = || tool_call("b", "g", Ok(json!({ "y": 2 })));
    // An index is no length: this one would be 32 GB.
    let far = json!(4_000_000_000_u32);
    check(vec![json!([begin(far.clone(), "a", "f", "{\"x\":")]), json!([more(far, "1}")])], vec![a()]).await;
    let mixed = vec![
        json!([begin(json!(0), "a", "f", ""), begin(json!(1), "b", "g", "{\"y\"")]),
        json!([more(json!(1), ":2}")]),
        json!([more(json!(0), "{\"x\":1}")]),
    ];
    check(mixed, vec![a(), b()]).await;
    let without = vec![
        json!([begin(Value::Null, "a", "f", "{\"x\":"),]),
        json!([more(Value::Null, "1}")]),
        json!([begin(Value::Null, "b", "g", "{\"y\":2}")]),
    ];
    check(without, vec![a(), b()]).await;
}

#[tokio::test]
async fn what_a_later_version_adds_is_no_failure() {
    let event = |event: Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or(""));
    let delta = |index: u32, delta: Value| json!({ "type": "content_block_delta", "index": index, "delta": delta });
    let block =
        |index: u32, block: Value| json!({ "type": "content_block_start", "index": index, "content_block": block });
    let events = [
        json!({ "type": "message_start", "message": { "model": "claude-9" } }),
        json!({ "type": "never_heard_of", "x": 1 }),
        block(0, json!({ "type": "server_tool_use", "id": "s1", "name": "search", "input": {} })),
        delta(0, json!({ "type": "input_json_delta", "partial_json": "{\"q\":1}" })),
        block(1, json!({ "type": "text", "text": "" })),
        delta(1, json!({ "type": "citations_delta", "citation": { "n": 1 } })),
        delta(1, json!({ "type": "text_delta", "text": "found" })),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" } }),
        json!({ "type": "message_stop" }),
    ];
    let answer = answer_to(Wire::Anthropic, Reply::events(events.map(event).concat())).await.expect("answers");
    let tool = json!({ "type": "server_tool_use", "id": "s1", "name": "search", "input": { "q": 1 } });
    assert_eq!(answer.message.content, Content::Parts(vec![opaque("anthropic", "m-1", tool), Part::text("found")]));
    assert_eq!(answer.model, "claude-9");
}
