//! A model that answers from a script: for tests and demonstrations, without a network.
//!
//! A script is JSON:
//!
//! ```json
//! {
//!   "model": "scripted",
//!   "assistants": [
//!     {
//!       "when": { "system": "You are a reviewer", "task": "", "last_user": "" },
//!       "steps": [
//!         { "text": "I ask a helper.", "tool_calls": [
//!           { "tool_name": "spawn_assistant", "arguments": { "assistant_id": "helper", "query": "{{task}}", "run_mode": "sync" } }
//!         ] },
//!         { "tool_calls": [
//!           { "tool_name": "send_message", "arguments": { "thread_id": "{{spawn_assistant.thread_id}}", "message": "thanks" } }
//!         ], "delay_ms": 50 },
//!         { "error": { "kind": "overloaded", "status": 529, "retry_after_ms": 100 }, "times": 1, "text": "The helper says: {{spawn_assistant.result}}" }
//!       ]
//!     }
//!   ]
//! }
//! ```
//!
//! The first of `assistants` whose `when` fits is used; every text of `when` that is not empty must be contained in the
//! system prompt, in the first user message (`task`), or in the last one (`last_user`). Which step comes is the number
//! of assistant messages in the conversation so far, so one model serves any number of conversations at once and keeps
//! nothing. After the last step it is repeated if it calls no tool; else the call is `rejected`.
//!
//! A step has `text`, `reasoning`, `images` (each with `mime_type` and, in base64, `data`), `tool_calls`, `finish` (`stop`, `tool_calls`, `length`, `refused`; chosen by itself
//! if left out), `delay_ms` before the answer, `hang` (never answers), and `error`, which comes instead of the answer:
//! always, or for the first `times` calls of this step, counted over all conversations.
//!
//! Texts and arguments may have references, as [`refer`] says: `{{task}}`, `{{result.process_id}}`,
//! `{{spawn_assistant.thread_id}}`. A reference to what is not there is a `rejected` call that names it.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use assistant_protocol::types::{Content, FinishReason, Message, Part, Role, Usage};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;

use crate::model::{Answer, Ask, Model, ModelError, ModelErrorKind, Progress};

pub mod refer;

use refer::Said;

/// The largest script that is read, bytes.
const SCRIPT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// What the provider of a scripted model is called.
const PROVIDER: &str = "scripted";

/// A model that answers from a script.
#[derive(Debug)]
pub struct ScriptedModel {
    script: Script,
}

/// Why a script cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("{path} cannot be read: {source}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The text is no script.
    #[error("the script is wrong: {0}")]
    Wrong(#[from] serde_json::Error),
    /// The script has no assistant, or an assistant without a step.
    #[error("the script needs at least one of `assistants`, each with at least one of `steps`")]
    Empty,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    #[serde(default = "default_name")]
    model: String,
    assistants: Vec<Assistant>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Assistant {
    #[serde(default)]
    when: When,
    steps: Vec<Step>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct When {
    system: String,
    task: String,
    last_user: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Step {
    text: String,
    reasoning: String,
    images: Vec<Image>,
    tool_calls: Vec<Call>,
    finish: Option<FinishReason>,
    delay_ms: u64,
    hang: bool,
    error: Option<Failure>,
    times: Option<u32>,
    /// How often `error` has been given.
    #[serde(skip)]
    failed: AtomicU32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Image {
    mime_type: String,
    data: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    tool_name: String,
    #[serde(default)]
    arguments: Value,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Failure {
    kind: ModelErrorKind,
    #[serde(default)]
    status: Option<u16>,
    #[serde(default)]
    retry_after_ms: Option<u64>,
    #[serde(default)]
    message: Option<String>,
}

fn default_name() -> String {
    PROVIDER.to_owned()
}

impl ScriptedModel {
    /// Reads a script from a file.
    ///
    /// # Errors
    /// [`ScriptError`] where the file cannot be read or is no script.
    pub fn read(path: &Path) -> Result<Self, ScriptError> {
        let unreadable = |source| ScriptError::Unreadable { path: path.display().to_string(), source };
        if std::fs::metadata(path).map_err(unreadable)?.len() > SCRIPT_BYTES_MAX {
            return Err(unreadable(std::io::Error::from(std::io::ErrorKind::FileTooLarge)));
        }
        Self::parse(&std::fs::read_to_string(path).map_err(unreadable)?)
    }

    /// Takes the text of a script.
    ///
    /// # Errors
    /// [`ScriptError`] says what is wrong and where.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        Self::new(serde_json::from_str(text)?)
    }

    /// Takes a script as a value.
    ///
    /// # Errors
    /// [`ScriptError`] says what is wrong.
    pub fn from_value(script: Value) -> Result<Self, ScriptError> {
        Self::new(serde_json::from_value(script)?)
    }

    fn new(script: Script) -> Result<Self, ScriptError> {
        let empty =
            script.assistants.is_empty() || script.assistants.iter().any(|assistant| assistant.steps.is_empty());
        if empty { Err(ScriptError::Empty) } else { Ok(Self { script }) }
    }

    async fn step(&self, ask: Ask, seen: &(dyn Fn(Progress) + Sync)) -> Result<Answer, ModelError> {
        let said = Said::new(&ask);
        let assistant = self.script.assistants.iter().find(|assistant| assistant.when.fits(&said));
        let assistant = assistant.ok_or_else(|| rejected("the script has nothing for this assistant and task"))?;
        let at = ask.messages.iter().filter(|message| message.role == Role::Assistant).count();
        let step = assistant.at(at)?;
        if step.delay_ms > 0 {
            // A timer of no time takes up to two milliseconds all the same.
            tokio::time::sleep(Duration::from_millis(step.delay_ms)).await;
        }
        if step.hang {
            std::future::pending::<()>().await;
        }
        if let Some(error) = step.failure() {
            return Err(error);
        }
        let parts = step.parts(at, &said)?;
        for part in &parts {
            match part {
                Part::Text { text } => seen(Progress::Text(text.clone())),
                Part::Reasoning { text: Some(text) } => seen(Progress::Reasoning(text.clone())),
                _ => {}
            }
        }
        let calls = parts.iter().any(|part| matches!(part, Part::ToolCall { .. }));
        let by_itself = || if calls { FinishReason::ToolCalls } else { FinishReason::Stop };
        let finish = step.finish.clone().unwrap_or_else(by_itself);
        let message = Message { role: Role::Assistant, content: Content::Parts(parts) };
        let usage = Usage {
            input_tokens: Some(said.words()),
            output_tokens: Some(refer::words_of(&message)),
            ..Usage::default()
        };
        Ok(Answer { message, finish, usage, model: self.script.model.clone() })
    }
}

impl When {
    fn fits(&self, said: &Said<'_>) -> bool {
        said.system().contains(&self.system)
            && said.task().contains(&self.task)
            && said.last_user().contains(&self.last_user)
    }
}

impl Assistant {
    fn at(&self, at: usize) -> Result<&Step, ModelError> {
        let again = || self.steps.last().filter(|step| step.tool_calls.is_empty());
        let none = || rejected(format!("the script has {} steps and none after a tool call", self.steps.len()));
        self.steps.get(at).or_else(again).ok_or_else(none)
    }
}

impl Step {
    fn failure(&self) -> Option<ModelError> {
        let failure = self.error.as_ref()?;
        let fails = self.times.is_none_or(|times| self.failed.fetch_add(1, Ordering::Relaxed) < times);
        fails.then(|| ModelError {
            kind: failure.kind,
            provider: PROVIDER.to_owned(),
            status: failure.status,
            retry_after_ms: failure.retry_after_ms,
            message: failure.message.clone().unwrap_or_else(|| format!("the script says {}", failure.kind)),
        })
    }

    fn parts(&self, at: usize, said: &Said<'_>) -> Result<Vec<Part>, ModelError> {
        let mut parts = Vec::new();
        if !self.reasoning.is_empty() {
            parts.push(Part::Reasoning { text: Some(said.fill_text(&self.reasoning).map_err(rejected)?) });
        }
        if !self.text.is_empty() {
            parts.push(Part::text(said.fill_text(&self.text).map_err(rejected)?));
        }
        parts.extend(self.images.iter().map(|image| Part::Image {
            mime_type: image.mime_type.clone(),
            data: Some(image.data.clone()),
            blob: None,
        }));
        for (n, call) in self.tool_calls.iter().enumerate() {
            let arguments = match &call.arguments {
                Value::Null => Value::Object(serde_json::Map::new()),
                arguments => said.fill(arguments).map_err(rejected)?,
            };
            let call_id = format!("call_{at}_{n}");
            parts.push(Part::ToolCall { call_id, tool_name: call.tool_name.clone(), arguments: Ok(arguments) });
        }
        Ok(parts)
    }
}

impl Model for ScriptedModel {
    fn answer<'a>(
        &'a self,
        ask: Ask,
        seen: &'a (dyn Fn(Progress) + Sync),
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        self.step(ask, seen).boxed()
    }

    fn provider(&self) -> &str {
        PROVIDER
    }
}

fn rejected(message: impl Into<String>) -> ModelError {
    ModelError {
        kind: ModelErrorKind::Rejected,
        provider: PROVIDER.to_owned(),
        status: None,
        retry_after_ms: None,
        message: message.into(),
    }
}

#[cfg(test)]
mod tests;
