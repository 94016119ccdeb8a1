//! Messages: the conversation as Anthropic's format has it, and the events of an answer.

use assistant_protocol::types::{Message, Part, Role, ToolSpec};
use serde_json::{Map, Value, json};

use super::pictures::{self, Picture, Takes, USUAL};
use super::{Body, Wire, is_ours, schema, told};
use crate::model::{Ask, ToolChoice, estimate};

mod events;

pub(super) use events::Events;

/// The header with which models that were told how long to think also think between calls of tools.
pub(super) const INTERLEAVED: (&str, &str) = ("anthropic-beta", "interleaved-thinking-2025-05-14");

/// Pictures that are taken.
const TAKES: Takes = Takes { base64_bytes_max: 5 * 1024 * 1024, ..USUAL };

/// A shorter beginning is not kept in the cache, tokens.
const CACHED_TOKENS_MIN: u64 = 1_024;

/// The least that a model can be told to think, tokens.
const THOUGHT_TOKENS_MIN: u64 = 1_024;

/// Models that cannot be held to a schema, by how their names begin.
const WITHOUT_SCHEMA: [&str; 6] =
    ["claude-2", "claude-3", "claude-sonnet-4-2025", "claude-sonnet-4-0", "claude-opus-4-2025", "claude-opus-4-0"];

/// What is sent.
pub(super) fn body(ask: &Ask, model: &str, tokens: u32) -> Body {
    let mut settings = Map::from_iter([("max_tokens".to_owned(), json!(tokens))]);
    let held = ask.output_schema.as_ref().filter(|_| !WITHOUT_SCHEMA.iter().any(|start| model.starts_with(start)));
    if let Some(closed) = held.and_then(schema::closed) {
        let format = json!({ "type": "json_schema", "schema": closed.schema });
        settings.insert("output_config".to_owned(), json!({ "format": format }));
    }
    let system = ask.system.as_deref().unwrap_or("");
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in &ask.messages {
        let (role, blocks) = match message.role {
            Role::System => continue,
            Role::Assistant => ("assistant", blocks(message, model)),
            Role::User | Role::Tool => ("user", blocks(message, model)),
        };
        push(&mut messages, role, blocks);
        if message.role == Role::Assistant
            && let Some((words, made)) = pictures::made(&message.content)
        {
            let blocks =
                std::iter::once(&Part::text(words)).chain(&made).filter_map(|part| block(part, model)).collect();
            push(&mut messages, "user", blocks);
        }
    }
    // Results come first in their message; the rest keeps its order.
    messages.iter_mut().for_each(|(_, blocks)| blocks.sort_by_key(|block| block["type"] != "tool_result"));
    let mut tools: Vec<Value> = ask.tools.iter().map(tool).collect();
    let mut conversation = Map::new();
    if is_worth_keeping(ask) {
        keep(&mut messages);
        match tools.last_mut().filter(|_| system.is_empty()) {
            Some(last) => last["cache_control"] = kept(),
            None if system.is_empty() => {}
            None => {
                let block = json!({ "type": "text", "text": system, "cache_control": kept() });
                conversation.insert("system".to_owned(), json!([block]));
            }
        }
    }
    if !system.is_empty() {
        conversation.entry("system").or_insert_with(|| json!(system));
    }
    // Behind the last mark: what is kept ends before it.
    let word = told::word(ask).map(|word| json!({ "type": "text", "text": word }));
    push(&mut messages, "user", word.into_iter().collect());
    let messages = messages.into_iter().map(|(role, blocks)| json!({ "role": role, "content": blocks }));
    conversation.insert("messages".to_owned(), messages.collect());
    if !tools.is_empty() {
        conversation.insert("tools".to_owned(), tools.into());
        match ask.tool_choice {
            ToolChoice::Auto => {}
            ToolChoice::None => drop(settings.insert("tool_choice".to_owned(), json!({ "type": "none" }))),
            ToolChoice::Required => drop(settings.insert("tool_choice".to_owned(), json!({ "type": "any" }))),
        }
    }
    Body { settings, conversation }
}

/// Adds blocks: all results of a turn belong into one message, and an empty one is refused.
fn push<'a>(messages: &mut Vec<(&'a str, Vec<Value>)>, role: &'a str, blocks: Vec<Value>) {
    match messages.last_mut() {
        _ if blocks.is_empty() => {}
        Some((last, before)) if *last == role => before.extend(blocks),
        _ => messages.push((role, blocks)),
    }
}

fn tool(tool: &ToolSpec) -> Value {
    json!({ "name": tool.name, "description": tool.description, "input_schema": tool.input_schema })
}

fn kept() -> Value {
    json!({ "type": "ephemeral" })
}

/// Whether the provider would keep the beginning of this call, so that the next one reads it for a tenth of the price.
fn is_worth_keeping(ask: &Ask) -> bool {
    let system = ask.system.as_deref().map_or(0, estimate::text);
    let tools: u64 = ask.tools.iter().map(estimate::tool).sum();
    let messages: u64 = ask.messages.iter().map(estimate::message).sum();
    system + tools + messages >= CACHED_TOKENS_MIN
}

/// Marks what the next call begins with: the end of the conversation, and the end that the last call had.
fn keep(messages: &mut [(&str, Vec<Value>)]) {
    let users = messages.iter_mut().rev().filter(|(role, _)| *role == "user").take(2);
    for block in users.filter_map(|(_, blocks)| blocks.last_mut()) {
        block["cache_control"] = kept();
    }
}

fn thinking(body: &Map<String, Value>) -> Option<&str> {
    body.get("thinking")?.get("type")?.as_str()
}

/// Whether a model that is told how long to think may also think between calls. Where it chooses itself, it does so
/// anyway.
pub(super) fn interleaves(body: &Map<String, Value>) -> bool {
    thinking(body) == Some("enabled") && body.contains_key("tools")
}

/// Makes the configured thinking fit this call, which would be refused otherwise: the thought has to be shorter than the
/// answer, no tool may be demanded, and an answer that goes on after calls of tools has to have begun with a thought.
pub(super) fn fit_thinking(body: &mut Map<String, Value>) {
    let thinks = matches!(thinking(body), Some("enabled" | "adaptive"));
    if thinks && body.get("tool_choice").is_some_and(|choice| choice["type"] == "any") {
        body.remove("tool_choice");
    }
    if thinking(body) != Some("enabled") {
        return;
    }
    let most = body.get("max_tokens").and_then(Value::as_u64).unwrap_or(0).saturating_sub(1);
    let budget = body["thinking"]["budget_tokens"].as_u64().unwrap_or(THOUGHT_TOKENS_MIN).min(most);
    if budget < THOUGHT_TOKENS_MIN || goes_on_without_thought(body) {
        body.remove("thinking");
    } else {
        body["thinking"]["budget_tokens"] = json!(budget);
    }
}

/// Whether the last message brings results of calls that no thought came before, as those of another model.
fn goes_on_without_thought(body: &Map<String, Value>) -> bool {
    let messages = body.get("messages").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let [.., before, last] = messages else { return false };
    let results = last["content"][0]["type"] == "tool_result";
    let begin = before["content"][0]["type"].as_str().unwrap_or("");
    results && before["role"] == "assistant" && !matches!(begin, "thinking" | "redacted_thinking")
}

fn blocks(message: &Message, model: &str) -> Vec<Value> {
    let parts = message.content.parts();
    // A picture of an assistant is refused in its own message.
    let said = parts.iter().filter(|part| message.role != Role::Assistant || !matches!(part, Part::Image { .. }));
    said.filter_map(|part| block(part, model)).collect()
}

fn block(part: &Part, model: &str) -> Option<Value> {
    match part {
        // An empty text is refused.
        Part::Text { text } if text.is_empty() => None,
        Part::Text { text } => Some(json!({ "type": "text", "text": text })),
        Part::Image { .. } => pictures::of(part, TAKES).map(|picture| match picture {
            Picture::Words(words) => json!({ "type": "text", "text": words }),
            Picture::Data { mime_type, data } => {
                let source = json!({ "type": "base64", "media_type": mime_type, "data": data });
                json!({ "type": "image", "source": source })
            }
        }),
        Part::ToolCall { call_id, tool_name, arguments } => {
            let input = told::arguments_back(arguments);
            Some(json!({ "type": "tool_use", "id": plain(call_id), "name": tool_name, "input": input }))
        }
        Part::ToolResult { call_id, content, is_error } => {
            let content: Vec<_> = content.iter().filter_map(|part| block(part, model)).collect();
            let mut result = json!({ "type": "tool_result", "tool_use_id": plain(call_id), "content": content });
            if *is_error {
                result["is_error"] = json!(true);
            }
            Some(result)
        }
        Part::Opaque { provider, model: of, data } if is_ours(provider, of, Wire::Anthropic, model) => {
            Some(data.clone())
        }
        // A thought without a signature is refused.
        Part::Opaque { .. } | Part::Reasoning { .. } | Part::Unknown(_) => None,
    }
}

/// An id of another provider's may have characters that are refused here.
fn plain(call_id: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    call_id.chars().map(plain).collect()
}
