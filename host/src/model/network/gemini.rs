//! Gemini: the conversation as `generateContent` has it, and the chunks of an answer.
//!
//! A thought's signature stands beside what it led to: a call, a text, a picture. Here it is an opaque part before that
//! one, `{"thoughtSignature": …}`, and goes back beside the same part; a part that is nothing but a signature stays whole.

use assistant_protocol::types::{Content, Part, Role};
use serde_json::{Map, Value, json};

use super::pictures::{self, Picture, Takes, USUAL};
use super::{Body, Wire, is_ours, told};
use crate::model::{Ask, ToolChoice};

mod chunks;
mod parameters;

pub(super) use chunks::Chunks;

/// The field of a signature.
const SIGNATURE: &str = "thoughtSignature";

/// What stands in for the signature of a call that this model has not made: without one, the call is refused.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// Pictures that are taken.
const TAKES: Takes = Takes { types: &["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"], ..USUAL };

/// What is sent.
pub(super) fn body(ask: &Ask, model: &str, tokens: u32) -> Body {
    let new = is_new(model);
    let mut generation = json!({ "maxOutputTokens": tokens });
    // Before Gemini 3, an answer that is held to a schema cannot call a tool, and the request is refused.
    if let Some(schema) = ask.output_schema.as_ref().filter(|_| new || ask.tools.is_empty()) {
        generation["responseMimeType"] = json!("application/json");
        generation["responseJsonSchema"] = schema.clone();
    }
    let mut settings = Map::from_iter([("generationConfig".to_owned(), generation)]);
    let mut contents: Vec<Value> = Vec::new();
    let mut waiting = Vec::new();
    for message in &ask.messages {
        let parts = message.content.parts();
        if message.role != Role::Tool {
            // Nothing may stand between the responses of one turn, so their pictures follow the last of them.
            push(&mut contents, "user", std::mem::take(&mut waiting));
        }
        match message.role {
            Role::System => {}
            Role::User => push(&mut contents, "user", parts.iter().filter_map(said).collect()),
            Role::Assistant => push(&mut contents, "model", turn(&parts, model, new)),
            Role::Tool => {
                let responses = parts.iter().filter_map(|part| response(part, ask, new, &mut waiting)).collect();
                push(&mut contents, "user", responses);
            }
        }
    }
    waiting.extend(told::word(ask).map(|word| json!({ "text": word })));
    push(&mut contents, "user", waiting);
    let mut conversation = Map::from_iter([("contents".to_owned(), Value::Array(contents))]);
    if let Some(system) = ask.system.as_ref().filter(|system| !system.is_empty()) {
        conversation.insert("systemInstruction".to_owned(), json!({ "parts": [{ "text": system }] }));
    }
    if !ask.tools.is_empty() {
        let declarations: Vec<_> = ask.tools.iter().map(parameters::declaration).collect();
        conversation.insert("tools".to_owned(), json!([{ "functionDeclarations": declarations }]));
        let mode = match ask.tool_choice {
            ToolChoice::Auto => None,
            ToolChoice::None => Some("NONE"),
            ToolChoice::Required => Some("ANY"),
        };
        if let Some(mode) = mode {
            let config = json!({ "functionCallingConfig": { "mode": mode } });
            settings.insert("toolConfig".to_owned(), config);
        }
    }
    Body { settings, conversation }
}

/// Whether it is Gemini 3 or later, which wants signatures and takes pictures inside responses.
fn is_new(model: &str) -> bool {
    let version = model.split_once("gemini-").map_or("", |(_, version)| version);
    let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
    digits.parse::<u32>().is_ok_and(|version| version >= 3)
}

/// Adds parts of a role. Responses of one turn belong together, and nothing else beside them: with a text beside them,
/// Gemini 3 refuses the call. Contents of one role may follow each other.
fn push(contents: &mut Vec<Value>, role: &str, parts: Vec<Value>) {
    if parts.is_empty() {
        return;
    }
    let responds = |parts: &[Value]| parts.iter().any(|part| part.get("functionResponse").is_some());
    if let Some(last) = contents.last_mut()
        && last["role"] == role
        && let Some(before) = last["parts"].as_array_mut()
        && responds(before) == responds(&parts)
    {
        before.extend(parts);
        return;
    }
    contents.push(json!({ "role": role, "parts": parts }));
}

fn said(part: &Part) -> Option<Value> {
    match (part, pictures::of(part, TAKES)) {
        (Part::Text { text }, _) if text.is_empty() => None,
        (Part::Text { text }, _) => Some(json!({ "text": text })),
        (_, Some(Picture::Words(words))) => Some(json!({ "text": words })),
        (_, Some(Picture::Data { mime_type, data })) => {
            Some(json!({ "inlineData": { "mimeType": mime_type, "data": data } }))
        }
        (_, None) => None,
    }
}

/// The parts of an answer, with each signature where it was.
fn turn(parts: &[Part], model: &str, new: bool) -> Vec<Value> {
    let (mut turn, mut signature, mut is_first_call) = (Vec::new(), None, true);
    for part in parts {
        let mut value = match part {
            Part::Opaque { provider, model: of, data } if is_ours(provider, of, Wire::Gemini, model) => {
                match data.as_object() {
                    Some(fields) if fields.len() == 1 && fields.contains_key(SIGNATURE) => {
                        signature = fields.get(SIGNATURE).cloned();
                        continue;
                    }
                    _ => data.clone(),
                }
            }
            Part::ToolCall { call_id, tool_name, arguments } => {
                let call = json!({ "id": call_id, "name": tool_name, "args": told::arguments_back(arguments) });
                if std::mem::take(&mut is_first_call) && new && signature.is_none() {
                    signature = Some(json!(NO_SIGNATURE));
                }
                json!({ "functionCall": call })
            }
            other => match said(other) {
                Some(value) => value,
                None => continue,
            },
        };
        if let Some(signature) = signature.take() {
            value[SIGNATURE] = signature;
        }
        turn.push(value);
    }
    if let Some(signature) = signature {
        turn.push(json!({ "text": "", SIGNATURE: signature }));
    }
    turn
}

fn response(part: &Part, ask: &Ask, new: bool, waiting: &mut Vec<Value>) -> Option<Value> {
    let Part::ToolResult { call_id, content, is_error } = part else { return None };
    let key = if *is_error { "error" } else { "output" };
    let text = Content::Parts(content.clone()).as_text().into_owned();
    let name = told::name_of_call(ask, call_id).unwrap_or(call_id);
    let mut response = json!({ "id": call_id, "name": name, "response": { key: text } });
    if new {
        let pictures: Vec<_> = pictures::among(content).filter_map(said).collect();
        if !pictures.is_empty() {
            response["parts"] = pictures.into();
        }
    } else if let Some((words, pictures)) = pictures::of_result(call_id, content) {
        waiting.push(json!({ "text": words }));
        waiting.extend(pictures.iter().filter_map(said));
    }
    Some(json!({ "functionResponse": response }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_the_name() {
        for new in ["gemini-3-pro-preview", "models/gemini-3.5-flash", "gemini-10-pro"] {
            assert!(is_new(new), "{new}");
        }
        for old in ["gemini-2.5-pro", "gemini-flash-latest", "gemma-3", ""] {
            assert!(!is_new(old), "{old}");
        }
    }
}
