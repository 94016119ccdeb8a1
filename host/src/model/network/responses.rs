//! Responses: the conversation as the items of OpenAI's newer format, and the events of an answer.
//!
//! Nothing is kept at the provider (`store` is false), so thoughts come back encrypted and go there again with the item
//! that they led to.

use assistant_protocol::types::{Content, Part, Role};
use serde_json::{Map, Value, json};

use super::openai::{ERROR_PREFIX, OUTPUT_NAME, output_format};
use super::pictures::{self, Picture, USUAL};
use super::{Body, Wire, is_ours, told};
use crate::model::{Ask, ToolChoice};

mod events;

pub(super) use events::Events;

/// Models that think, by how their names begin: others refuse to be asked for their thoughts.
const THINKING: [&str; 6] = ["gpt-5", "gpt-6", "o1", "o3", "o4", "codex"];
/// Models whose names begin so and that do not.
const NOT_THINKING: [&str; 2] = ["gpt-5-chat", "gpt-5.1-chat"];

/// What is sent.
pub(super) fn body(ask: &Ask, model: &str, tokens: u32) -> Body {
    let mut settings =
        Map::from_iter([("max_output_tokens".to_owned(), json!(tokens)), ("store".to_owned(), json!(false))]);
    let begins = |names: &[&str]| names.iter().any(|start| model.starts_with(start));
    if begins(&THINKING) && !begins(&NOT_THINKING) {
        settings.insert("include".to_owned(), json!(["reasoning.encrypted_content"]));
    }
    if let Some(schema) = &ask.output_schema {
        let mut format = output_format(schema);
        format["type"] = json!("json_schema");
        format["name"] = json!(OUTPUT_NAME);
        settings.insert("text".to_owned(), json!({ "format": format }));
    }
    let mut items = Vec::new();
    for message in &ask.messages {
        let parts = message.content.parts();
        match message.role {
            Role::System => {}
            Role::User => items.extend(user(&parts)),
            Role::Assistant => assistant(&parts, model, &mut items),
            Role::Tool => items.extend(parts.iter().filter_map(result)),
        }
    }
    if let Some(word) = told::word(ask) {
        let word = json!({ "type": "input_text", "text": word });
        match items.last_mut().filter(|last| last["role"] == "user").and_then(|last| last["content"].as_array_mut()) {
            Some(content) => content.push(word),
            None => items.push(json!({ "role": "user", "content": [word] })),
        }
    }
    let mut conversation = Map::from_iter([("input".to_owned(), Value::Array(items))]);
    if let Some(system) = ask.system.as_ref().filter(|system| !system.is_empty()) {
        conversation.insert("instructions".to_owned(), json!(system));
    }
    if !ask.tools.is_empty() {
        let tools = ask.tools.iter().map(|tool| {
            json!({ "type": "function", "name": tool.name, "description": tool.description,
                "parameters": tool.input_schema, "strict": false })
        });
        conversation.insert("tools".to_owned(), tools.collect());
        match ask.tool_choice {
            ToolChoice::Auto => {}
            ToolChoice::None => drop(settings.insert("tool_choice".to_owned(), json!("none"))),
            ToolChoice::Required => drop(settings.insert("tool_choice".to_owned(), json!("required"))),
        }
    }
    Body { settings, conversation }
}

fn user(parts: &[Part]) -> Option<Value> {
    let content: Vec<_> = parts.iter().filter_map(input).collect();
    (!content.is_empty()).then(|| json!({ "role": "user", "content": content }))
}

fn input(part: &Part) -> Option<Value> {
    let text = |text: &str| json!({ "type": "input_text", "text": text });
    match (part, pictures::of(part, USUAL)) {
        (Part::Text { text: said }, _) => Some(text(said)),
        (_, Some(Picture::Words(words))) => Some(text(&words)),
        (_, Some(Picture::Data { mime_type, data })) => {
            Some(json!({ "type": "input_image", "image_url": format!("data:{mime_type};base64,{data}") }))
        }
        (_, None) => None,
    }
}

/// The items of an answer, in their order. Its pictures follow as a user's, because an assistant's cannot hold any.
fn assistant(parts: &[Part], model: &str, items: &mut Vec<Value>) {
    let begin = items.len();
    for part in parts {
        match part {
            Part::Text { text } if text.is_empty() => {}
            Part::Text { text } => {
                let content = json!([{ "type": "output_text", "text": text }]);
                items.push(json!({ "type": "message", "role": "assistant", "content": content }));
            }
            Part::ToolCall { call_id, tool_name, arguments } => {
                let arguments = told::arguments_back(arguments).to_string();
                items.push(
                    json!({ "type": "function_call", "call_id": call_id, "name": tool_name, "arguments": arguments }),
                );
            }
            Part::Opaque { provider, model: of, data } if is_ours(provider, of, Wire::Responses, model) => {
                items.push(data.clone());
            }
            Part::Opaque { .. }
            | Part::Reasoning { .. }
            | Part::Image { .. }
            | Part::ToolResult { .. }
            | Part::Unknown(_) => {}
        }
    }
    // A thought that led to nothing is refused.
    while items.len() > begin && items.last().is_some_and(|last| last["type"] == "reasoning") {
        items.pop();
    }
    if let Some((words, made)) = pictures::made(&Content::Parts(parts.to_vec())) {
        let parts: Vec<_> = std::iter::once(Part::text(words)).chain(made).collect();
        items.extend(user(&parts));
    }
}

fn result(part: &Part) -> Option<Value> {
    let Part::ToolResult { call_id, content, is_error } = part else { return None };
    let mut text = Content::Parts(content.clone()).as_text().into_owned();
    if *is_error {
        text.insert_str(0, ERROR_PREFIX);
    }
    let pictures: Vec<_> = pictures::among(content).filter_map(input).collect();
    let output = if pictures.is_empty() {
        json!(text)
    } else {
        std::iter::once(json!({ "type": "input_text", "text": text })).chain(pictures).collect()
    };
    Some(json!({ "type": "function_call_output", "call_id": call_id, "output": output }))
}
