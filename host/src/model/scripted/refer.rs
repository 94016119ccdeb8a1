//! References of a script to what was said: `{{NAME}}` or `{{NAME.field.0.field}}`.
//!
//! | name | is |
//! | --- | --- |
//! | `task` | the first user message |
//! | `last_user` | the last user message |
//! | `system` | the system prompt |
//! | `result` | the latest result of a tool |
//! | `TOOL` | the latest result of the tool of that name |
//! | `id_after.WORD` | the first id (UUID) behind the first `WORD` in the system prompt or a user message |
//!
//! A result that is JSON is data, and the path goes on into it; `last` is the last item of a list. A string that is one
//! reference and nothing else becomes the value itself, of whatever type.

use std::borrow::Cow;

use assistant_protocol::types::{Content, Message, Part, Role};
use serde_json::Value;

use crate::model::Ask;

/// The characters of a UUID.
const ID_CHARS: usize = 36;

/// What was said in a conversation.
#[derive(Debug)]
pub(super) struct Said<'a> {
    ask: &'a Ask,
    users: Vec<Cow<'a, str>>,
}

impl<'a> Said<'a> {
    pub(super) fn new(ask: &'a Ask) -> Self {
        let users = ask.messages.iter().filter(|message| message.role == Role::User);
        Self { ask, users: users.map(|message| message.content.as_text()).collect() }
    }

    pub(super) fn system(&self) -> &str {
        self.ask.system.as_deref().unwrap_or("")
    }

    pub(super) fn task(&self) -> &str {
        self.users.first().map_or("", Cow::as_ref)
    }

    pub(super) fn last_user(&self) -> &str {
        self.users.last().map_or("", Cow::as_ref)
    }

    /// The words of everything that was said, which stand for tokens.
    pub(super) fn words(&self) -> u64 {
        words(self.system()) + self.ask.messages.iter().map(words_of).sum::<u64>()
    }

    /// A value with its references replaced.
    ///
    /// # Errors
    /// A text that names a reference to what is not there.
    pub(super) fn fill(&self, value: &Value) -> Result<Value, String> {
        Ok(match value {
            Value::String(text) => match text.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}")) {
                Some(reference) if !reference.contains("{{") => self.get(reference)?,
                _ => Value::String(self.fill_text(text)?),
            },
            Value::Array(items) => Value::Array(items.iter().map(|item| self.fill(item)).collect::<Result<_, _>>()?),
            Value::Object(fields) => {
                let fields = fields.iter().map(|(key, value)| Ok((key.clone(), self.fill(value)?)));
                Value::Object(fields.collect::<Result<_, String>>()?)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        })
    }

    /// A text with its references replaced.
    ///
    /// # Errors
    /// A text that names a reference to what is not there.
    pub(super) fn fill_text(&self, text: &str) -> Result<String, String> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, reference, after)) = rest
            .split_once("{{")
            .and_then(|(before, tail)| tail.split_once("}}").map(|(name, after)| (before, name, after)))
        {
            filled.push_str(before);
            match self.get(reference)? {
                Value::String(text) => filled.push_str(&text),
                other => filled.push_str(&other.to_string()),
            }
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    fn get(&self, reference: &str) -> Result<Value, String> {
        let missing = || format!("the script refers to {{{{{reference}}}}}, which is not in the conversation");
        let (name, path) = match reference.trim().split_once('.') {
            Some((name, path)) => (name, Some(path)),
            None => (reference.trim(), None),
        };
        let root = match name {
            "task" => Some(Value::from(self.task())),
            "last_user" => Some(Value::from(self.last_user())),
            "system" => Some(Value::from(self.system())),
            "id_after" => return path.and_then(|word| self.id_after(word)).map(Value::from).ok_or_else(missing),
            "result" => self.results().last().map(|(_, result)| result),
            tool => self.results().filter(|(name, _)| *name == tool).last().map(|(_, result)| result),
        };
        let mut value = root.as_ref().ok_or_else(missing)?;
        for step in path.into_iter().flat_map(|path| path.split('.')) {
            let next = match value {
                Value::Array(items) if step == "last" => items.last(),
                Value::Array(items) => step.parse::<usize>().ok().and_then(|at| items.get(at)),
                value => value.get(step),
            };
            value = next.ok_or_else(missing)?;
        }
        Ok(value.clone())
    }

    /// Each result of a tool, oldest first, with the tool's name.
    fn results(&self) -> impl Iterator<Item = (&'a str, Value)> {
        let parts = |message: &'a Message| match &message.content {
            Content::Parts(parts) => parts.as_slice(),
            Content::Text(_) => &[],
        };
        let calls = move |id: &str| {
            self.ask.messages.iter().rev().flat_map(parts).find_map(|part| match part {
                Part::ToolCall { call_id, tool_name, .. } if call_id == id => Some(tool_name.as_str()),
                _ => None,
            })
        };
        self.ask.messages.iter().flat_map(parts).filter_map(move |part| match part {
            Part::ToolResult { call_id, content, .. } => {
                let text = Content::Parts(content.clone()).as_text().into_owned();
                let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
                Some((calls(call_id).unwrap_or(""), value))
            }
            _ => None,
        })
    }

    fn id_after(&self, word: &str) -> Option<&str> {
        let texts = std::iter::once(self.system()).chain(self.users.iter().map(Cow::as_ref));
        texts.into_iter().find_map(|text| {
            let (_, behind) = text.split_once(word)?;
            let starts = behind.char_indices().map(|(at, _)| at);
            let ids = starts.filter_map(|at| behind.get(at..at + ID_CHARS));
            ids.into_iter().find(|id| uuid::Uuid::try_parse(id).is_ok())
        })
    }
}

/// The words of a message.
pub(super) fn words_of(message: &Message) -> u64 {
    let of_part = |part: &Part| match part {
        Part::Text { text } | Part::Reasoning { text: Some(text) } => words(text),
        Part::ToolCall { arguments: Ok(arguments), .. } => words(&arguments.to_string()),
        Part::ToolCall { arguments: Err(text), .. } => words(text),
        Part::ToolResult { content, .. } => words(&Content::Parts(content.clone()).as_text()),
        Part::Image { .. } | Part::Reasoning { text: None } | Part::Opaque { .. } | Part::Unknown(_) => 0,
    };
    message.content.parts().iter().map(of_part).sum()
}

fn words(text: &str) -> u64 {
    text.split_whitespace().count() as u64
}
