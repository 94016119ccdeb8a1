//! Chat completions: the conversation as OpenAI's format has it, and the chunks of an answer.

use assistant_protocol::types::{Content, Message, Part, Role};
use serde_json::{Map, Value, json};

use super::pictures::{self, Picture, USUAL};
use super::{Body, Wire, is_ours, schema, told};
use crate::model::{Ask, ToolChoice};

mod chunks;

pub(super) use chunks::Chunks;

/// Models that refuse `max_tokens`, by how their names begin.
const NEW_TOKEN_FIELD: [&str; 6] = ["gpt-5", "gpt-6", "o1", "o3", "o4", "chatgpt-"];

/// The name that a schema of an answer needs.
pub(super) const OUTPUT_NAME: &str = "result";

/// What stands before the result of a tool that failed; the format has no field for it.
pub(super) const ERROR_PREFIX: &str = "Error: ";

/// What is sent. `own` is OpenAI itself.
pub(super) fn body(ask: &Ask, model: &str, tokens: u32, own: bool) -> Body {
    let field = if NEW_TOKEN_FIELD.iter().any(|start| model.starts_with(start)) {
        "max_completion_tokens"
    } else {
        "max_tokens"
    };
    let mut settings = Map::from_iter([
        (field.to_owned(), json!(tokens)),
        // Without it no usage is told.
        ("stream_options".to_owned(), json!({ "include_usage": true })),
    ]);
    if let Some(schema) = &ask.output_schema {
        let mut format = output_format(schema);
        format["name"] = json!(OUTPUT_NAME);
        let format = json!({ "type": "json_schema", "json_schema": format });
        settings.insert("response_format".to_owned(), format);
    }
    let mut messages = Vec::new();
    if let Some(system) = ask.system.as_ref().filter(|system| !system.is_empty()) {
        messages.push(json!({ "role": "system", "content": system }));
    }
    let mut pictures = Vec::new();
    for message in &ask.messages {
        if message.role != Role::Tool {
            // Nothing may stand between the results of one turn, so their pictures follow the last of them.
            messages.extend(pictures_message(&mut pictures));
        }
        match message.role {
            Role::System => {}
            Role::User => messages.push(json!({ "role": "user", "content": user_content(&message.content) })),
            Role::Assistant => {
                messages.push(assistant(message, model, own));
                told_pictures(pictures::made(&message.content), &mut pictures);
            }
            Role::Tool => results(message, &mut messages, &mut pictures),
        }
    }
    messages.extend(pictures_message(&mut pictures));
    if let Some(word) = told::word(ask) {
        told::say_last(&mut messages, word);
    }
    let mut conversation = Map::from_iter([("messages".to_owned(), Value::Array(messages))]);
    if !ask.tools.is_empty() {
        let tools = ask.tools.iter().map(|tool| {
            let function =
                json!({ "name": tool.name, "description": tool.description, "parameters": tool.input_schema });
            json!({ "type": "function", "function": function })
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

fn user_content(content: &Content) -> Value {
    let parts = content.parts();
    if let [Part::Text { text }] = parts.as_ref() {
        return json!(text);
    }
    parts.iter().filter_map(user_part).collect()
}

fn user_part(part: &Part) -> Option<Value> {
    let text = |text: &str| json!({ "type": "text", "text": text });
    match (part, pictures::of(part, USUAL)) {
        (Part::Text { text: said }, _) => Some(text(said)),
        (_, Some(Picture::Words(words))) => Some(text(&words)),
        (_, Some(Picture::Data { mime_type, data })) => {
            let url = format!("data:{mime_type};base64,{data}");
            Some(json!({ "type": "image_url", "image_url": { "url": url } }))
        }
        (_, None) => None,
    }
}

/// A schema as OpenAI takes it: held to strictly where it can be, else as a hint.
pub(super) fn output_format(schema: &Value) -> Value {
    match schema::closed(schema).filter(|closed| closed.whole) {
        Some(closed) => json!({ "schema": closed.schema, "strict": true }),
        None => json!({ "schema": schema, "strict": false }),
    }
}

fn told_pictures(told: Option<(String, Vec<Part>)>, pictures: &mut Vec<Value>) {
    if let Some((words, parts)) = told {
        pictures.push(json!({ "type": "text", "text": words }));
        pictures.extend(parts.iter().filter_map(user_part));
    }
}

fn assistant(message: &Message, model: &str, own: bool) -> Value {
    let mut text = String::new();
    let mut reasoning = String::new();
    let mut details = Vec::new();
    let mut calls = Vec::new();
    for part in message.content.parts().iter() {
        match part {
            Part::Text { text: more } => text.push_str(more),
            Part::Reasoning { text: more } => reasoning.push_str(more.as_deref().unwrap_or("")),
            Part::ToolCall { call_id, tool_name, arguments } => {
                let arguments = told::arguments_back(arguments).to_string();
                let function = json!({ "name": tool_name, "arguments": arguments });
                calls.push(json!({ "id": call_id, "type": "function", "function": function }));
            }
            Part::Opaque { provider, model: of, data } if is_ours(provider, of, Wire::OpenAi, model) => {
                details.push(data.clone());
            }
            Part::Opaque { .. } | Part::Image { .. } | Part::ToolResult { .. } | Part::Unknown(_) => {}
        }
    }
    let mut message = json!({ "role": "assistant", "content": text });
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
        // Servers whose models think want it back with the calls that came of it, and some refuse it elsewhere; OpenAI
        // itself knows no such field.
        if !reasoning.is_empty() && !own {
            message["reasoning_content"] = reasoning.into();
        }
    }
    if !details.is_empty() {
        message["reasoning_details"] = details.into();
    }
    message
}

fn results(message: &Message, messages: &mut Vec<Value>, pictures: &mut Vec<Value>) {
    for part in message.content.parts().iter() {
        let Part::ToolResult { call_id, content, is_error } = part else { continue };
        let mut text = Content::Parts(content.clone()).as_text().into_owned();
        if *is_error {
            text.insert_str(0, ERROR_PREFIX);
        }
        told_pictures(pictures::of_result(call_id, content), pictures);
        messages.push(json!({ "role": "tool", "tool_call_id": call_id, "content": text }));
    }
}

fn pictures_message(pictures: &mut Vec<Value>) -> Option<Value> {
    (!pictures.is_empty()).then(|| json!({ "role": "user", "content": std::mem::take(pictures) }))
}
