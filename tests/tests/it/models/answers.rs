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
async fn the_newer_formats_keep_the_order_of_parts() {
    let said = || {
        vec![
            Said::Thought { text: "let me see, step by step".into(), signature: None },
            Said::text("grüße, 日本語 and 🦀🦀🦀🦀🦀🦀🦀"),
            Said::call("c1", "read_file", r#"{"path":"ä"}"#),
            Said::text("in between"),
            Said::call("c2", "list_files", ""),
            Said::call("c3", "list_files", "[1]"),
        ]
    };
    let want = vec![
        Part::Reasoning { text: Some("let me see, step by step".into()) },
        Part::text("grüße, 日本語 and 🦀🦀🦀🦀🦀🦀🦀"),
        tool_call("c1", "read_file", Ok(json!({ "path": "ä" }))),
        Part::text("in between"),
        tool_call("c2", "list_files", Ok(json!({}))),
        tool_call("c3", "list_files", Err("[1]")),
    ];
    for wire in [Wire::Responses, Wire::Gemini, Wire::Ollama] {
        assert_eq!(parts(wire, said()).await, want, "{wire:?}");
    }
    let broken = parts(Wire::Responses, vec![Said::call("c", "t", r#"{"pat"#)]).await;
    assert_eq!(broken, [tool_call("c", "t", Err(r#"{"pat"#))]);
}

#[tokio::test]
async fn what_a_provider_did_itself_is_kept_as_it_came() {
    let code = json!({ "executableCode": { "language": "PYTHON", "code": "print(1)" } });
    let chunk = json!({ "candidates": [{ "content": { "parts": [code, { "text": "1" }] }, "finishReason": "STOP" }] });
    let answer = answer_to(Wire::Gemini, Reply::events(format!("data: {chunk}\n\n"))).await.expect("answers");
    assert_eq!(answer.message.content, Content::Parts(vec![opaque("gemini", "m-1", code), Part::text("1")]));
    let search = json!({ "type": "web_search_call", "id": "ws_1", "action": { "type": "search", "query": "q" } });
    let events = [
        json!({ "type": "response.web_search_call.searching", "output_index": 0 }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": search }),
        json!({ "type": "response.completed", "response": { "status": "completed", "output": [] } }),
    ];
    let events: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let answer = answer_to(Wire::Responses, Reply::events(events)).await.expect("answers");
    assert_eq!(answer.message.content, Content::Parts(vec![opaque("openai_responses", "m-1", search)]));
}

#[tokio::test]
async fn an_answer_is_whole_at_its_end_although_the_connection_stays_open() {
    for wire in Wire::ALL {
        let whole = Say::new(vec![Said::text("done")]).events(path(wire));
        let answer = answer_to(wire, Reply::events_then(whole, vec![conformance::model_server::Then::Hang])).await;
        assert_eq!(answer.expect("answers").message.content.as_text(), "done", "{wire:?}");
    }
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
    check(Wire::Responses, "max_output_tokens", Length).await;
    check(Wire::Responses, "content_filter", Refused).await;
    check(Wire::Responses, "odd", Other("odd".into())).await;
    check(Wire::Gemini, "STOP", Stop).await;
    check(Wire::Gemini, "MAX_TOKENS", Length).await;
    check(Wire::Gemini, "SAFETY", Refused).await;
    check(Wire::Gemini, "RECITATION", Refused).await;
    check(Wire::Gemini, "PROHIBITED_CONTENT", Refused).await;
    check(Wire::Gemini, "IMAGE_SAFETY", Refused).await;
    check(Wire::Gemini, "MALFORMED_FUNCTION_CALL", Other("MALFORMED_FUNCTION_CALL".into())).await;
    check(Wire::Ollama, "stop", Stop).await;
    check(Wire::Ollama, "length", Length).await;
    check(Wire::Ollama, "load", Other("load".into())).await;
    // Most say `stop` although tools are to be called.
    for (wire, stop) in [(Wire::OpenAi, "stop"), (Wire::Gemini, "STOP"), (Wire::Ollama, "stop")] {
        let say = Say::new(vec![Said::call("c", "t", "{}")]).stopping(stop);
        assert_eq!(answer_to(wire, Reply::Say(say)).await.expect("answers").finish, ToolCalls);
    }
    for (wire, want) in Wire::ALL.into_iter().flat_map(|wire| [(wire, Stop), (wire, ToolCalls)]) {
        let said = if want == Stop { Said::text("x") } else { Said::call("c", "t", "{}") };
        assert_eq!(answer_to(wire, Reply::Say(Say::new(vec![said]))).await.expect("answers").finish, want, "{wire:?}");
    }
    // A question that is refused has no candidate; a refusal may be a part of an answer.
    let blocked = json!({ "promptFeedback": { "blockReason": "SAFETY" }, "usageMetadata": { "promptTokenCount": 3 } });
    let answer = answer_to(Wire::Gemini, Reply::events(format!("data: {blocked}\n\n"))).await.expect("answers");
    assert_eq!((answer.finish, answer.message.content), (Refused, Content::Parts(vec![])));
    let item = json!({ "type": "message", "content": [{ "type": "refusal", "refusal": "I cannot." }] });
    let end = json!({ "type": "response.completed", "response": { "status": "completed", "output": [item] } });
    let answer = answer_to(Wire::Responses, Reply::events(format!("data: {end}\n\n"))).await.expect("answers");
    assert_eq!((answer.finish, answer.message.content.as_text().as_ref()), (Refused, "I cannot."));
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
    let usage = json!({ "input_tokens": 130, "output_tokens": 40,
        "input_tokens_details": { "cached_tokens": 100 }, "output_tokens_details": { "reasoning_tokens": 30 } });
    let want = Usage { cache_write_tokens: None, reasoning_tokens: Some(30), ..want };
    check(Wire::Responses, usage, want).await;
    // Gemini counts thoughts beside the answer, and what its own tools read beside the question.
    let usage = json!({ "promptTokenCount": 120, "toolUsePromptTokenCount": 10, "cachedContentTokenCount": 100,
        "candidatesTokenCount": 10, "thoughtsTokenCount": 30, "totalTokenCount": 170 });
    check(Wire::Gemini, usage, want).await;
    let thoughts = Usage { output_tokens: Some(30), reasoning_tokens: Some(30), ..Usage::default() };
    check(Wire::Gemini, json!({ "thoughtsTokenCount": 30 }), thoughts).await;
    let usage = json!({ "prompt_eval_count": 130, "prompt_eval_cached_count": 100, "eval_count": 40 });
    check(Wire::Ollama, usage, Usage { reasoning_tokens: None, ..want }).await;
    check(Wire::Ollama, json!({}), Usage::default()).await;
}

#[tokio::test]
async fn what_comes_in_is_seen_while_it_comes_in() {
    for wire in Wire::ALL {
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
    let calls =
        answer_to(Wire::Gemini, Reply::Say(Say::new(vec![Said::call("", "a", "{}"), Said::call("", "a", "{}")])));
    let calls = calls.await.expect("answers").message.content.parts().into_owned();
    assert!(
        matches!(calls.as_slice(), [Part::ToolCall { call_id: a, .. }, Part::ToolCall { call_id: b, .. }] if a != b)
    );
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
