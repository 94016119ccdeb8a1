//! What answers a model call. One trait; its implementations are below `model/`.

use std::fmt;

use assistant_protocol::types::{FinishReason, Message, ToolSpec, Usage};
use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Map, Value};

pub mod estimate;
mod models;
#[cfg(feature = "network-models")]
pub mod network;
pub mod prices;
mod retry;
pub mod scripted;

pub use models::{Choice, Models, NoModel, variables_of_keys};
#[cfg(feature = "cli")]
pub(crate) use models::{ollama_at, usual_models};
#[cfg(all(feature = "cli", feature = "network-models"))]
pub(crate) use network::installed::{Installed, installed};
pub use retry::{RetryNotice, answer_with_retries};
pub use scripted::ScriptedModel;

/// A language model.
///
/// Dropping the future stops the call. An implementation makes one attempt (one more where the call was refused for
/// something that it can leave out); whoever asks repeats it.
pub trait Model: Send + Sync {
    /// Answers a conversation. `seen` is told what comes in while it comes in.
    ///
    /// # Errors
    /// [`ModelError`] tells what kind of failure it was and whether the same call may succeed later.
    fn answer<'a>(&'a self, ask: Ask, seen: &'a (dyn Fn(Progress) + Sync))
    -> BoxFuture<'a, Result<Answer, ModelError>>;

    /// The provider, as errors and records name it.
    fn provider(&self) -> &str;
}

/// Most tokens of an answer where neither the caller nor the configuration says.
pub const OUTPUT_TOKENS_DEFAULT: u32 = 8_192;

/// One call of a model.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    /// The prompt above the conversation.
    pub system: Option<String>,
    /// The conversation, oldest first. A system message stands only at the end: what the host tells of this call, which is
    /// no part of the conversation. It goes last, behind all that a provider keeps in its cache.
    pub messages: Vec<Message>,
    /// The tools that may be called.
    pub tools: Vec<ToolSpec>,
    /// How the model may use them.
    pub tool_choice: ToolChoice,
    /// Most tokens of the answer; null is the model's configured one.
    pub max_output_tokens: Option<u32>,
    /// The schema that the answer has to fit, where the model can be held to one.
    pub output_schema: Option<Value>,
    /// Settings of the provider's own, added to the request's body.
    pub extra: Map<String, Value>,
}

/// How a model may use tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// As it likes.
    #[default]
    Auto,
    /// Not at all.
    None,
    /// At least one.
    Required,
}

/// What comes in while a model answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// A piece of text.
    Text(String),
    /// A piece of thought.
    Reasoning(String),
}

/// What a model answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The message, content in ordered parts.
    pub message: Message,
    /// Why it stopped.
    pub finish: FinishReason,
    /// What it used, as far as the provider tells.
    pub usage: Usage,
    /// The model that answered, as the provider names it.
    pub model: String,
}

/// Why a model did not answer. Contains neither keys nor prompts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{provider}: {message}")]
pub struct ModelError {
    /// What kind of failure it was.
    pub kind: ModelErrorKind,
    /// Who failed.
    pub provider: String,
    /// The HTTP status, if there was one.
    pub status: Option<u16>,
    /// How long the provider asked to wait, milliseconds.
    pub retry_after_ms: Option<u64>,
    /// What happened and what to do, at most 500 characters.
    pub message: String,
}

/// Kinds of failure of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelErrorKind {
    /// The key is missing, wrong or without rights.
    BadKey,
    /// Too many requests.
    RateLimited,
    /// The provider has no room or failed (5xx, 529).
    Overloaded,
    /// No connection.
    Unreachable,
    /// No answer within the bound.
    TimedOut,
    /// The answer broke off.
    Cut,
    /// The answer is not what the wire format says.
    Unreadable,
    /// The conversation is longer than the model takes.
    ContextExceeded,
    /// Anything else that the provider refused.
    Rejected,
}

impl ModelErrorKind {
    /// Whether the same call may succeed later.
    #[must_use]
    pub fn retryable(self) -> bool {
        match self {
            Self::RateLimited | Self::Overloaded | Self::Unreachable | Self::TimedOut | Self::Cut => true,
            Self::BadKey | Self::Unreadable | Self::ContextExceeded | Self::Rejected => false,
        }
    }
}

impl fmt::Display for ModelErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BadKey => "bad_key",
            Self::RateLimited => "rate_limited",
            Self::Overloaded => "overloaded",
            Self::Unreachable => "unreachable",
            Self::TimedOut => "timed_out",
            Self::Cut => "cut",
            Self::Unreadable => "unreadable",
            Self::ContextExceeded => "context_exceeded",
            Self::Rejected => "rejected",
        })
    }
}
