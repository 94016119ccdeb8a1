//! What the host tells of a call: it stands last, behind all that a provider keeps, and where every server takes it.

use super::*;

const WORD: &str = "# Assistant Orchestration\n- Running: 1";

/// A conversation that is long enough for a cache, with the host's word behind it.
fn ask(more: Vec<Message>) -> Ask {
    let mut messages = vec![Message::text(Role::User, "go ".repeat(2_000))];
    messages.extend(more);
    messages.push(Message::text(Role::System, WORD));
    Ask { system: Some("be brief".into()), messages, ..Ask::default() }
}

fn called() -> Vec<Message> {
    let result = |content: Vec<Part>| {
        let content = Content::Parts(vec![Part::ToolResult { call_id: "a".into(), content, is_error: false }]);
        Message { role: Role::Tool, content }
    };
    vec![assistant(vec![tool_call("a", "t", Ok(json!({})))]), result(vec![Part::text("r")])]
}

/// The conversation of a body, by the field that each format has for it.
fn conversation(wire: Wire) -> &'static str {
    match wire {
        Wire::OpenAi | Wire::Anthropic | Wire::Ollama => "messages",
        Wire::Responses => "input",
        Wire::Gemini => "contents",
    }
}

/// Sends a conversation with the host's word and without it. What is in both is the same to the last byte; gives what
/// follows in place of its last `back` messages.
async fn told(wire: Wire, more: Vec<Message>, back: usize) -> Value {
    let with = ask(more);
    let mut without = with.clone();
    without.messages.pop();
    let mut with = sent(plain, wire, "m", with).await.body;
    let mut without = sent(plain, wire, "m", without).await.body;
    let field = conversation(wire);
    let (said, before) = (with[field].take(), without[field].take());
    assert_eq!(with, without, "{wire:?}: the beginning is what it was");
    let (said, before) = (said.as_array().expect("a list"), before.as_array().expect("a list"));
    let same = before.len() - back;
    assert_eq!(said[..same], before[..same], "{wire:?}");
    assert_eq!(Value::from(said.clone()).to_string().matches("Orchestration").count(), 1, "{wire:?}: told once");
    Value::from(&said[same..])
}

#[tokio::test]
async fn behind_a_result_it_is_the_last_text_of_the_turn() {
    let kept = json!({ "type": "ephemeral" });
    let result = json!({
        "type": "tool_result", "tool_use_id": "a", "content": [{ "type": "text", "text": "r" }], "cache_control": kept,
    });
    let want = json!([{ "role": "user", "content": [result, { "type": "text", "text": WORD }] }]);
    assert_eq!(told(Wire::Anthropic, called(), 1).await, want, "it has no mark, and stands behind the last one");
    // Nothing but responses may stand in the content that has them.
    let want = json!([{ "role": "user", "parts": [{ "text": WORD }] }]);
    assert_eq!(told(Wire::Gemini, called(), 0).await, want);
    let want = json!([{ "role": "user", "content": [{ "type": "input_text", "text": WORD }] }]);
    assert_eq!(told(Wire::Responses, called(), 0).await, want);
    // There are servers that take neither a user's message behind a result nor a system's.
    let text = format!("r\n\n{WORD}");
    let want = json!([{ "role": "tool", "tool_call_id": "a", "content": text }]);
    assert_eq!(told(Wire::OpenAi, called(), 1).await, want);
    let want = json!([{ "role": "tool", "tool_call_id": "a", "tool_name": "t", "content": text }]);
    assert_eq!(told(Wire::Ollama, called(), 1).await, want);
}

#[tokio::test]
async fn behind_a_user_it_is_in_the_same_message() {
    let picture =
        || Message { role: Role::User, content: Content::Parts(vec![Part::text("look"), image(Some("AA=="))]) };
    let more = || vec![assistant(vec![Part::text("what?")]), picture()];
    let url = json!({ "url": "data:image/png;base64,AA==" });
    let check = async |wire, content: Value| {
        let field = if wire == Wire::Gemini { "parts" } else { "content" };
        assert_eq!(told(wire, more(), 1).await, json!([{ "role": "user", field: content }]), "{wire:?}");
    };
    let source = json!({ "type": "base64", "media_type": "image/png", "data": "AA==" });
    let shown = json!({ "type": "image", "source": source, "cache_control": { "type": "ephemeral" } });
    check(Wire::Anthropic, json!([{ "type": "text", "text": "look" }, shown, { "type": "text", "text": WORD }])).await;
    let shown = json!({ "inlineData": { "mimeType": "image/png", "data": "AA==" } });
    check(Wire::Gemini, json!([{ "text": "look" }, shown, { "text": WORD }])).await;
    let shown = json!({ "type": "input_image", "image_url": url["url"] });
    let text = |text: &str| json!({ "type": "input_text", "text": text });
    check(Wire::Responses, json!([text("look"), shown, text(WORD)])).await;
    let shown = json!({ "type": "image_url", "image_url": url });
    let text = |text: &str| json!({ "type": "text", "text": text });
    check(Wire::OpenAi, json!([text("look"), shown, text(WORD)])).await;
    let want = json!([{ "role": "user", "content": format!("look\n\n{WORD}"), "images": ["AA=="] }]);
    assert_eq!(told(Wire::Ollama, more(), 1).await, want);
    for wire in [Wire::OpenAi, Wire::Ollama] {
        let more = vec![assistant(vec![Part::text("what?")]), Message::text(Role::User, "that")];
        let want = json!([{ "role": "user", "content": format!("that\n\n{WORD}") }]);
        assert_eq!(told(wire, more, 1).await, want, "{wire:?}");
    }
}

#[tokio::test]
async fn behind_an_answer_or_nothing_it_is_a_message_of_its_own_and_no_empty_one() {
    for wire in Wire::ALL {
        let want = match wire {
            Wire::Anthropic => json!([{ "role": "user", "content": [{ "type": "text", "text": WORD }] }]),
            Wire::Responses => json!([{ "role": "user", "content": [{ "type": "input_text", "text": WORD }] }]),
            Wire::Gemini => json!([{ "role": "user", "parts": [{ "text": WORD }] }]),
            Wire::OpenAi | Wire::Ollama => json!([{ "role": "user", "content": WORD }]),
        };
        assert_eq!(told(wire, vec![assistant(vec![Part::text("done")])], 0).await, want, "{wire:?}");
        let alone = |text: &str| Ask { messages: vec![Message::text(Role::System, text)], ..Ask::default() };
        assert_eq!(sent(plain, wire, "m", alone(WORD)).await.body[conversation(wire)], want, "{wire:?}");
        assert_eq!(sent(plain, wire, "m", alone(" \n")).await.body[conversation(wire)], json!([]), "{wire:?}");
    }
}

/// A thought is held to what came before the results, whatever the host tells behind them.
#[tokio::test]
async fn what_anthropic_thinks_of_the_last_turn_stays() {
    let think = |config: &mut NetworkConfig| {
        config.extra = map(json!({ "thinking": { "type": "enabled", "budget_tokens": 2_000 } }));
    };
    let body = sent(think, Wire::Anthropic, "m", ask(called())).await.body;
    assert_eq!(body["thinking"], Value::Null, "the calls came of no thought");
    let body = sent(think, Wire::Anthropic, "m", ask(vec![assistant(vec![Part::text("done")])])).await.body;
    assert_eq!(body["thinking"]["budget_tokens"], 2_000);
}
