//! Models over HTTP: the formats of OpenAI (chat completions, and every server that speaks them; responses), Anthropic,
//! Gemini and Ollama.
//!
//! Each format is one file: it writes the conversation (`body`) and adds up the events of an answer (`Fold`). The way
//! there is the same for all: `stream.rs` makes the call with its deadlines and bounds, `frames.rs` splits the answer.
//! What is said is kept in order, thoughts with their signatures verbatim and in place; they go back to the model that
//! thought them and to no other.
//!
//! No library for models stands between. genai 0.7 was tried: it keeps neither conversation nor answer whole, cuts names,
//! has no way to write the body for Ollama, gathers what it splits without a bound of bytes, and joins it anew with each
//! read, so that a picture of some megabytes takes minutes or never comes.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use assistant_protocol::types::{Content, Message, Part, Role};
use futures::FutureExt;
use futures::future::BoxFuture;
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::{Map, Value, json};

use crate::config::Secret;
use crate::model::{Answer, Ask, Model, ModelError, ModelErrorKind, OUTPUT_TOKENS_DEFAULT, Progress};

mod address;
mod anthropic;
mod failure;
mod frames;
mod gemini;
mod ids;
#[cfg(feature = "cli")]
pub(crate) mod installed;
mod ollama;
mod openai;
mod pictures;
mod responses;
mod schema;
mod stream;
mod told;
mod wire;

use failure::{Failure, Refused, Speaker};
use told::{Fold, Told};
pub use wire::Wire;

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
    /// Tokens of input and output together; a server that loads models makes room for so many.
    pub context_tokens: Option<u32>,
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
            context_tokens: None,
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
    /// The whole answer, bytes.
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

/// What is told of a picture where a model takes none.
const NOT_TAKEN: &str = "this model takes no pictures";
/// What is told of a picture where a call was refused because of one. Which one nobody knows: each later call with it is
/// refused first too.
const REFUSED: &str = "the model's provider refused a picture of this call, and none of them was shown";

/// A model over HTTP.
pub struct NetworkModel {
    client: reqwest::Client,
    address: address::Address,
    key: Option<HeaderValue>,
    config: NetworkConfig,
    /// It said so, and answered without them: pictures are told to it in words from then on.
    takes_no_pictures: AtomicBool,
}

/// What a call says, written by its format.
struct Body {
    /// Settings, which configuration may replace.
    settings: Map<String, Value>,
    /// The conversation, which it may not.
    conversation: Map<String, Value>,
}

impl NetworkModel {
    /// Sets a model up; connects to nothing.
    ///
    /// # Errors
    /// [`SetupError`] names the setting that does not fit.
    pub fn new(config: NetworkConfig) -> Result<Self, SetupError> {
        let address = address::Address::new(config.wire, config.base_url.as_deref(), &config.model)?;
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
            message: format!("has no HTTP client here: {}", stream::cause(&error)),
        };
        let client = http.build().map_err(broken)?;
        let (_, before) = config.wire.traits().key_header;
        let header = |key: &Secret| HeaderValue::from_str(&format!("{before}{}", key.expose()));
        let no_header =
            |_| SetupError { setting: "api_key_env", message: "holds a key that no header takes".to_owned() };
        let mut key = config.key.as_ref().map(header).transpose().map_err(no_header)?;
        if let Some(key) = &mut key {
            key.set_sensitive(true);
        }
        Ok(Self { client, address, key, config, takes_no_pictures: AtomicBool::new(false) })
    }

    /// The call with its deadline.
    async fn attempt(&self, ask: &Ask, seen: &(dyn Fn(Progress) + Sync)) -> Result<Told, Failure> {
        let NetworkConfig { wire, bounds, .. } = &self.config;
        let answer = stream::answer(self.request(ask), bounds, wire.traits().framing, self.fold(), seen);
        let outcome = tokio::time::timeout(Duration::from_millis(bounds.call_ms), answer).await;
        let late = format!("the answer was not whole after {} ms", bounds.call_ms);
        outcome.map_err(|_| Failure::new(ModelErrorKind::TimedOut, late)).flatten()
    }

    /// The answer, or its failure in words. A call that was refused for nothing but its pictures is made again without.
    async fn call(&self, mut ask: Ask, seen: &(dyn Fn(Progress) + Sync)) -> Result<Answer, ModelError> {
        let NetworkConfig { wire, model, .. } = &self.config;
        if self.takes_no_pictures.load(Ordering::Relaxed) {
            pictures::in_words(&mut ask.messages, NOT_TAKEN);
        }
        let mut outcome = self.attempt(&ask, seen).await;
        if let Some(refused) = outcome.as_ref().err().and_then(|failure| failure.refused_pictures(&ask)) {
            let why = if refused == Refused::All { NOT_TAKEN } else { REFUSED };
            if pictures::in_words(&mut ask.messages, why) {
                outcome = self.attempt(&ask, seen).await;
                // Only an answer without pictures shows that they were what was refused.
                if refused == Refused::All && outcome.is_ok() {
                    self.takes_no_pictures.store(true, Ordering::Relaxed);
                }
            }
        }
        let told = outcome.map_err(|failure| {
            let failure = if *wire == Wire::Ollama { ollama::failure(failure) } else { failure };
            let key = self.config.key.as_ref();
            failure.told(&Speaker { provider: wire.provider(), host: &self.address.host, model, key }, &ask)
        })?;
        let Told { mut parts, finish, usage, model: told_model } = told;
        ids::mint(&mut parts, &ask);
        let message = Message { role: Role::Assistant, content: Content::Parts(parts) };
        Ok(Answer { message, finish, usage, model: told_model.unwrap_or_else(|| model.clone()) })
    }

    fn request(&self, ask: &Ask) -> reqwest::RequestBuilder {
        let traits = self.config.wire.traits();
        let body = self.body(ask);
        let mut request = self.client.post(self.address.url.clone()).header("content-type", "application/json");
        for (name, value) in traits.headers {
            request = request.header(*name, *value);
        }
        if self.config.wire == Wire::Anthropic && anthropic::interleaves(&body) {
            let (name, value) = anthropic::INTERLEAVED;
            request = request.header(name, value);
        }
        if let Some(key) = &self.key {
            request = request.header(HeaderName::from_static(traits.key_header.0), key.clone());
        }
        request.body(Value::Object(body).to_string())
    }

    fn fold(&self) -> Box<dyn Fold> {
        let model = &self.config.model;
        match self.config.wire {
            Wire::OpenAi => Box::new(openai::Chunks::new(model)),
            Wire::Responses => Box::new(responses::Events::new(model)),
            Wire::Anthropic => Box::new(anthropic::Events::new(model)),
            Wire::Gemini => Box::new(gemini::Chunks::new(model)),
            Wire::Ollama => Box::new(ollama::Lines::default()),
        }
    }

    /// What is sent. What the configuration adds may replace settings, but neither the model nor the conversation.
    fn body(&self, ask: &Ask) -> Map<String, Value> {
        let NetworkConfig { wire, model, extra, .. } = &self.config;
        let tokens = ask.max_output_tokens.unwrap_or(self.config.max_output_tokens);
        let Body { mut settings, conversation } = match wire {
            Wire::OpenAi => openai::body(ask, model, tokens, address::is_openai(&self.address.host)),
            Wire::Responses => responses::body(ask, model, tokens),
            Wire::Anthropic => anthropic::body(ask, model, tokens),
            Wire::Gemini => gemini::body(ask, model, tokens),
            Wire::Ollama => ollama::body(ask, tokens, self.config.context_tokens),
        };
        told::merge(&mut settings, extra);
        told::merge(&mut settings, &ask.extra);
        settings.extend(conversation);
        if *wire == Wire::Anthropic {
            anthropic::fit_thinking(&mut settings);
        }
        // Gemini has both in the address.
        if *wire != Wire::Gemini {
            settings.insert("model".to_owned(), json!(model));
            settings.insert("stream".to_owned(), json!(true));
        }
        settings
    }
}

impl Model for NetworkModel {
    fn answer<'a>(
        &'a self,
        ask: Ask,
        seen: &'a (dyn Fn(Progress) + Sync),
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        self.call(ask, seen).boxed()
    }

    fn provider(&self) -> &str {
        self.config.wire.provider()
    }
}

impl fmt::Debug for NetworkModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetworkModel").field("host", &self.address.host).field("config", &self.config).finish()
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
