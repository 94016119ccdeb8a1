//! Models over HTTP: chat completions of OpenAI and of every server that speaks them, and messages of Anthropic.
//!
//! genai brings the address, the headers with the key, the request over our own HTTP client, the deadlines and the
//! splitting of the answer into events. The conversation is written and the events are read here, because genai 0.7
//! keeps neither whole: it joins texts, moves thoughts to the front, drops pictures and the mark of an error in tool
//! results, refuses what it does not know, tells no model name, and takes the index of a tool call as a length. So the
//! body's own fields go in through `extra_body`, which wins over what genai writes, and the events come out through its
//! sink of raw frames. No type of genai leaves this folder.
//!
//! What genai logs holds whole bodies; nothing of it reaches a subscriber. The events of an answer are bounded in bytes.
//! A body without any event is gathered inside genai, where its bytes cannot be seen: it is bounded in reads, which is
//! why the calls of a model have a thread of their own (see `network/thread.rs`).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use assistant_protocol::types::{Content, Message, Part, Role};
use futures::FutureExt;
use futures::future::BoxFuture;
use genai::adapter::AdapterKind;
use genai::chat::{ChatOptions, ChatRequest, ChatStreamEvent};
use genai::resolver::{AuthData, Endpoint};
use genai::{ModelIden, ServiceTarget};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use crate::config::Secret;
use crate::model::{Answer, Ask, Model, ModelError, ModelErrorKind, OUTPUT_TOKENS_DEFAULT, Progress};

mod address;
mod anthropic;
mod failure;
mod ids;
mod openai;
mod tap;
mod thread;
mod told;

use failure::{Failure, Speaker};
use tap::Tap;
use told::{Fold, Told};

/// The name that genai is told. Never the real one: genai cuts names (`qwen3-high`, `a::b`) and derives settings from
/// them; the exact name is in `extra_body`.
const NEUTRAL_NAME: &str = "model";

/// The format that a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Chat completions.
    OpenAi,
    /// Messages.
    Anthropic,
}

impl Wire {
    /// The provider, as errors and records name it.
    #[must_use]
    pub fn provider(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
        }
    }
}

/// A model at a provider.
#[derive(Debug, Clone)]
pub struct NetworkConfig {
    /// The format.
    pub wire: Wire,
    /// The provider's name of the model, sent exactly so.
    pub model: String,
    /// Where the provider is; none is the provider's own address.
    pub base_url: Option<String>,
    /// The key; none for a server that wants none.
    pub key: Option<Secret>,
    /// Most tokens of one answer.
    pub max_output_tokens: u32,
    /// Further fields of each request's body.
    pub extra: Map<String, Value>,
    /// How long and how large.
    pub bounds: Bounds,
}

impl NetworkConfig {
    /// A model with everything else by default.
    #[must_use]
    pub fn new(wire: Wire, model: impl Into<String>) -> Self {
        Self {
            wire,
            model: model.into(),
            base_url: None,
            key: None,
            max_output_tokens: OUTPUT_TOKENS_DEFAULT,
            extra: Map::new(),
            bounds: Bounds::default(),
        }
    }
}

/// How long a call may take and how large its answer may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Until there is a connection, milliseconds.
    pub connect_ms: u64,
    /// Until the answer begins, milliseconds. Servers that think before they speak need minutes.
    pub header_ms: u64,
    /// Between two pieces of the answer, milliseconds.
    pub read_ms: u64,
    /// The whole call, milliseconds.
    pub call_ms: u64,
    /// All events of the answer, bytes.
    pub answer_bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connect_ms: 10_000,
            header_ms: 5 * 60 * 1_000,
            read_ms: 2 * 60 * 1_000,
            call_ms: 20 * 60 * 1_000,
            answer_bytes: 64 * 1024 * 1024,
        }
    }
}

/// Why a model cannot be set up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{setting}` {message}")]
pub struct SetupError {
    /// The setting that does not fit.
    pub setting: &'static str,
    /// What is wrong with it.
    pub message: String,
}

/// Pieces of an answer that wait to be told; the call waits then.
const PIECES_MAX: usize = 64;

/// A model over HTTP.
pub struct NetworkModel {
    inner: Arc<Inner>,
    thread: thread::Thread,
}

struct Inner {
    client: genai::Client,
    target: ServiceTarget,
    host: String,
    config: NetworkConfig,
}

impl NetworkModel {
    /// Sets a model up; connects to nothing.
    ///
    /// # Errors
    /// [`SetupError`] names the setting that does not fit.
    pub fn new(config: NetworkConfig) -> Result<Self, SetupError> {
        let address = address::Address::new(config.wire, config.base_url.as_deref())?;
        let mut http = reqwest::Client::builder()
            // A redirect would be followed with the key in its header.
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_millis(config.bounds.connect_ms))
            // A small body may not become a large one.
            .no_gzip();
        if address.local {
            http = http.no_proxy();
        }
        let broken = |error: reqwest::Error| SetupError {
            setting: "provider",
            message: format!("has no HTTP client here: {}", failure::cause(&error)),
        };
        let http = http.build().map_err(broken)?;
        let no_client = |_| SetupError { setting: "provider", message: "has no client here".to_owned() };
        let client = genai::Client::builder().with_reqwest(http).build().map_err(no_client)?;
        // A server without key gets an empty one: genai takes none for a mistake.
        let key = config.key.as_ref().map_or("", Secret::expose);
        let kind = match config.wire {
            Wire::OpenAi => AdapterKind::OpenAI,
            Wire::Anthropic => AdapterKind::Anthropic,
        };
        let target = ServiceTarget {
            endpoint: Endpoint::from_owned(address.base_url),
            auth: AuthData::from_single(key),
            model: ModelIden::new(kind, NEUTRAL_NAME),
        };
        let inner = Inner { client, target, host: address.host, config };
        Ok(Self { inner: Arc::new(inner), thread: thread::Thread::default() })
    }
}

impl Inner {
    /// The call with its deadline, and its failure in words.
    async fn answer(&self, ask: &Ask, seen: &mpsc::Sender<Progress>) -> Result<Answer, ModelError> {
        let call_ms = self.config.bounds.call_ms;
        let outcome = tokio::time::timeout(Duration::from_millis(call_ms), self.call(ask, seen)).await;
        let late = |_| Failure::new(ModelErrorKind::TimedOut, format!("the answer was not whole after {call_ms} ms"));
        let speaker = Speaker {
            provider: self.config.wire.provider(),
            host: &self.host,
            model: &self.config.model,
            key: self.config.key.as_ref(),
        };
        outcome.map_err(late).flatten().map_err(|failure| failure.told(&speaker, ask))
    }

    async fn call(&self, ask: &Ask, seen: &mpsc::Sender<Progress>) -> Result<Answer, Failure> {
        let tap = Arc::new(Tap::new(self.fold(), self.config.bounds.answer_bytes));
        let options = self.options(ask, Arc::clone(&tap));
        let request = self.client.exec_chat_stream(self.target.clone(), ChatRequest::new(Vec::new()), Some(&options));
        let mut stream = tap::quiet(request).await.map_err(|error| failure::of_request(&error))?.stream;
        while let Some(event) = tap.next(&mut stream).await? {
            match event {
                Ok(ChatStreamEvent::Chunk(chunk)) => tell(seen, Progress::Text(chunk.content)).await,
                Ok(ChatStreamEvent::ReasoningChunk(chunk)) => tell(seen, Progress::Reasoning(chunk.content)).await,
                Ok(_) => {}
                // Our own reading of the events is the verdict; of genai's only what concerns the connection counts.
                Err(error) => failure::of_stream(&error).map_or(Ok(()), Err)?,
            }
        }
        let Told { mut parts, finish, usage, model } = tap.finish()?;
        ids::mint(&mut parts, ask);
        let message = Message { role: Role::Assistant, content: Content::Parts(parts) };
        Ok(Answer { message, finish, usage, model: model.unwrap_or_else(|| self.config.model.clone()) })
    }

    fn fold(&self) -> Box<dyn Fold> {
        match self.config.wire {
            Wire::OpenAi => Box::new(openai::Chunks::new(&self.config.model)),
            Wire::Anthropic => Box::new(anthropic::Events::new(&self.config.model)),
        }
    }

    fn options(&self, ask: &Ask, tap: Arc<Tap>) -> ChatOptions {
        let ms = Duration::from_millis;
        let mut options = ChatOptions::default()
            .with_capture_usage(true)
            .with_stream_header_timeout(ms(self.config.bounds.header_ms))
            .with_stream_read_timeout(ms(self.config.bounds.read_ms))
            .with_extra_body(Value::Object(self.body(ask)))
            .with_raw_frame_sink_arc(tap);
        if let Some(schema) = &ask.output_schema {
            options = options.with_response_format(genai::chat::JsonSpec::new("result", schema.clone()));
        }
        options
    }

    /// The body's fields that we write. What the configuration adds may replace settings, but neither the model nor
    /// the conversation.
    fn body(&self, ask: &Ask) -> Map<String, Value> {
        let tokens = ask.max_output_tokens.unwrap_or(self.config.max_output_tokens);
        let (mut body, conversation) = match self.config.wire {
            Wire::OpenAi => openai::body(ask, &self.config.model, tokens, address::is_openai(&self.host)),
            Wire::Anthropic => anthropic::body(ask, &self.config.model, tokens),
        };
        body.extend(self.config.extra.clone());
        body.extend(ask.extra.clone());
        body.extend(conversation);
        body.insert("model".to_owned(), json!(self.config.model));
        body.insert("stream".to_owned(), json!(true));
        body
    }
}

/// Tells a piece of an answer. Whoever has gone wants to hear no more, and gives the call up.
async fn tell(seen: &mpsc::Sender<Progress>, piece: Progress) {
    if seen.send(piece).await.is_err() {
        tracing::trace!("nobody hears the answer any more");
    }
}

impl Model for NetworkModel {
    fn answer<'a>(
        &'a self,
        ask: Ask,
        seen: &'a (dyn Fn(Progress) + Sync),
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        async move {
            let (telling, mut told) = mpsc::channel(PIECES_MAX);
            let inner = self.inner.clone();
            let running = self.thread.run(async move { inner.answer(&ask, &telling).await });
            let no_thread = |error: String| ModelError {
                kind: ModelErrorKind::Rejected,
                provider: self.provider().to_owned(),
                status: None,
                retry_after_ms: None,
                message: error,
            };
            let running = running.map_err(|error| no_thread(format!("there is no thread for the call: {error}")))?;
            // Ends when the call does, which drops the other end.
            while let Some(piece) = told.recv().await {
                seen(piece);
            }
            running.await.unwrap_or_else(|_| Err(no_thread("the call panicked".to_owned())))
        }
        .boxed()
    }

    fn provider(&self) -> &str {
        self.inner.config.wire.provider()
    }
}

impl fmt::Debug for NetworkModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetworkModel").field("host", &self.inner.host).field("config", &self.inner.config).finish()
    }
}

/// Whether an opaque part is of this very model.
fn is_ours(part_provider: &str, part_model: &str, wire: Wire, model: &str) -> bool {
    part_provider == wire.provider() && part_model == model
}

/// An opaque part of this model.
fn opaque(wire: Wire, model: &str, data: Value) -> Part {
    Part::Opaque { provider: wire.provider().to_owned(), model: model.to_owned(), data }
}
