//! What went wrong, in our own words. Of a provider's answer only its message is shown, and not where it repeats the
//! conversation.

use assistant_protocol::types::{Content, Part};
use serde_json::Value;

use crate::config::Secret;
use crate::model::{Ask, ModelError, ModelErrorKind};

/// The longest message, characters.
const MESSAGE_CHARS_MAX: usize = 500;
/// The longest text of a provider inside a message, characters.
const SAID_CHARS_MAX: usize = 300;
/// A piece of this many characters that is also in the conversation makes a provider's text an echo of it.
const ECHO_CHARS: usize = 24;
/// Of a piece that long, every so many characters one is looked for.
const ECHO_STEP: usize = 8;

/// Words of providers that mean: the conversation is too long.
const TOO_LONG: [&str; 11] = [
    "context_length_exceeded",
    "exceed_context_size_error",
    "maximum context length",
    "context window",
    "context length",
    "context size",
    "context limit",
    "prompt is too long",
    "input is too long",
    "too many tokens",
    "request_too_large",
];

/// Words that mean: no more without paying, whatever the status.
const UNPAID: [&str; 3] = ["insufficient_quota", "billing", "credit balance"];

/// Words that mean: the key is wrong, where the status says that the request is.
const WRONG_KEY: [&str; 3] = ["api key not valid", "api_key_invalid", "invalid_api_key"];

/// Words that mean: this model takes no pictures. From OpenAI, DeepSeek, Ollama, OpenRouter, llama.cpp and vLLM.
const NO_PICTURES: [&str; 7] = [
    "image input is not supported",
    "found that support image input",
    "unknown variant `image_url`",
    "image_url is only supported",
    "missing data required for image input",
    "at most 0 image",
    "not a multimodal model",
];
/// Words that mean the same at the end of a sentence. With more behind them they may be about one picture, its type or its
/// size: "does not support image/webp", "does not support images larger than 5 MB".
const NO_PICTURES_AT_END: [&str; 3] = ["not support image input", "not support image inputs", "not support images"];
/// What those of [`NO_PICTURES_AT_END`] begin with.
const NOT_THIS_PICTURE: &str = "not support image";

/// A failed call.
#[derive(Debug)]
pub(super) struct Failure {
    kind: ModelErrorKind,
    status: Option<u16>,
    retry_after_ms: Option<u64>,
    what: String,
    /// The provider's own words.
    said: Option<String>,
}

/// The pictures that a provider refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// All that its model is ever shown: it takes none.
    All,
    /// One or more of this call.
    OfThisCall,
}

/// Who failed.
#[derive(Debug)]
pub(super) struct Speaker<'a> {
    pub(super) provider: &'a str,
    pub(super) host: &'a str,
    pub(super) model: &'a str,
    pub(super) key: Option<&'a Secret>,
}

impl Failure {
    pub(super) fn new(kind: ModelErrorKind, what: impl Into<String>) -> Self {
        Self { kind, status: None, retry_after_ms: None, what: what.into(), said: None }
    }

    /// An error that a provider tells, as an answer with `status` or in the middle of one.
    pub(super) fn of_provider(status: Option<u16>, body: &Value) -> Self {
        // Gemini sends a list of one where an answer in pieces was asked for.
        let body = body.get(0).unwrap_or(body);
        let error = body.get("error").filter(|error| !error.is_null()).unwrap_or(body);
        let text = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or("");
        let said = [error.as_str().unwrap_or(""), text("message"), text("detail")];
        let said = said.into_iter().find(|said| !said.is_empty()).map(str::to_owned);
        let code = |key: &str| error.get(key).and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        let status = status.or_else(|| code("code")).or_else(|| code("status"));
        let retry_after_ms = retry_delay_ms(error);
        let said_words = said.as_deref().unwrap_or("");
        let words = format!("{} {} {} {said_words}", text("type"), text("code"), text("status")).to_lowercase();
        // A provider that says how long to wait means a limit of time, although it speaks of billing.
        let waits = status == Some(429) && retry_after_ms.is_some();
        let (kind, what) = classify(status, if waits { "" } else { &words });
        Self { kind, status, retry_after_ms, what, said }
    }

    /// The same with what the headers of the answer ask to wait.
    pub(super) fn after<'h>(self, header: impl Fn(&str) -> Option<&'h str>) -> Self {
        Self { retry_after_ms: retry_after_ms(header).or(self.retry_after_ms), ..self }
    }

    /// The HTTP status, if there was one.
    pub(super) fn status(&self) -> Option<u16> {
        self.status
    }

    /// Which pictures the provider refused, where it did so because of pictures. What repeats the conversation says nothing:
    /// its words may be those of a tool.
    pub(super) fn refused_pictures(&self, ask: &Ask) -> Option<Refused> {
        let said = self.said.as_deref().filter(|said| !echoes(said, ask))?.to_ascii_lowercase();
        self.status.filter(|status| *status >= 400)?;
        let ends_with = |words: &&str| {
            let behind = said.match_indices(*words).map(|(at, _)| said[at + words.len()..].trim_start());
            behind.into_iter().any(|rest| rest.is_empty() || rest.starts_with(['.', ',', ';', '!', '"', '\'', ')']))
        };
        if NO_PICTURES.iter().any(|words| said.contains(words)) || NO_PICTURES_AT_END.iter().any(ends_with) {
            return Some(Refused::All);
        }
        said.contains(NOT_THIS_PICTURE).then_some(Refused::OfThisCall)
    }

    /// The same in other words.
    pub(super) fn saying(self, what: impl Into<String>) -> Self {
        Self { what: what.into(), ..self }
    }

    /// The error as the caller sees it: without the key, without the conversation, and short.
    pub(super) fn told(self, speaker: &Speaker<'_>, ask: &Ask) -> ModelError {
        let mut message = self.what.replace("{host}", speaker.host).replace("{model}", speaker.model);
        if let Some(status) = self.status {
            message.push_str(&format!(" (status {status})"));
        }
        let said = self.said.map(|said| scrubbed(&said, speaker.key)).filter(|said| !said.trim().is_empty());
        match said {
            Some(said) if echoes(&said, ask) => {
                message.push_str("; its message repeats the conversation and is left out")
            }
            Some(said) => message.push_str(&format!(": {}", cut(&said, SAID_CHARS_MAX))),
            None => {}
        }
        ModelError {
            kind: self.kind,
            provider: speaker.provider.to_owned(),
            status: self.status,
            retry_after_ms: self.retry_after_ms,
            message: cut(&scrubbed(&message, speaker.key), MESSAGE_CHARS_MAX),
        }
    }
}

fn classify(status: Option<u16>, words: &str) -> (ModelErrorKind, String) {
    use ModelErrorKind::{BadKey, ContextExceeded, Overloaded, RateLimited, Rejected, TimedOut};
    let says = |word: &str| words.contains(word);
    let request = status.is_none_or(|status| matches!(status, 400 | 413 | 422 | 500));
    let what = |kind, what: &str| (kind, what.to_owned());
    if request && TOO_LONG.iter().any(|word| says(word)) || status == Some(413) {
        return what(ContextExceeded, "the conversation is longer than `{model}` takes");
    }
    if status == Some(400) && WRONG_KEY.iter().any(|word| says(word)) {
        return what(BadKey, "the key was refused; check the key variable or file of this model");
    }
    if UNPAID.iter().any(|word| says(word)) {
        return what(Rejected, "the account at {host} has nothing left; see to its billing");
    }
    match status {
        Some(401 | 403) => what(BadKey, "the key was refused; check the key variable or file of this model"),
        Some(404) => what(Rejected, "`{model}` or the address is unknown at {host}; check `model` and `base_url`"),
        Some(408) => what(TimedOut, "the provider took too long"),
        Some(429) => what(RateLimited, "there were too many requests"),
        Some(500..) => what(Overloaded, "the provider failed or has no room"),
        Some(300..=399) => {
            what(Rejected, "{host} redirects, which is not followed; put the right address into `base_url`")
        }
        None if says("overloaded") || says("api_error") || says("server_error") || says("internal") => {
            what(Overloaded, "the provider failed in the middle of its answer")
        }
        None if says("rate_limit") => what(RateLimited, "there were too many requests"),
        None if says("authentication") || says("permission") => what(BadKey, "the key was refused"),
        None if says("timeout") => what(TimedOut, "the provider took too long"),
        Some(_) | None => what(Rejected, "the provider refused the request"),
    }
}

/// How long the provider asks to wait: `retry-after-ms`, or `retry-after` in seconds.
fn retry_after_ms<'h>(header: impl Fn(&str) -> Option<&'h str>) -> Option<u64> {
    let number = |name: &str| header(name).and_then(|value| value.trim().parse::<f64>().ok());
    let ms = number("retry-after-ms").or_else(|| number("retry-after").map(|seconds| seconds * 1_000.0))?;
    // A float above the range becomes the largest integer.
    (ms.is_finite() && ms >= 0.0).then_some(ms.ceil() as u64)
}

/// How long Gemini asks to wait, in the details of its error: `"35s"`, `"0.5s"`.
fn retry_delay_ms(error: &Value) -> Option<u64> {
    let details = error.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay"))?.as_str()?;
    let ms = delay.strip_suffix('s')?.parse::<f64>().ok()? * 1_000.0;
    (ms.is_finite() && ms >= 0.0).then_some(ms.ceil() as u64)
}

fn scrubbed(text: &str, key: Option<&Secret>) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    key.map_or(text.clone(), |key| text.replace(key.expose(), "[key]"))
}

fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max - 1) {
        Some((at, _)) if text[at..].chars().nth(1).is_some() => format!("{}…", &text[..at]),
        _ => text.to_owned(),
    }
}

/// Whether a text quotes the conversation at length.
fn echoes(said: &str, ask: &Ask) -> bool {
    let chars: Vec<char> = said.chars().take(SAID_CHARS_MAX + ECHO_CHARS).collect();
    let pieces: Vec<String> =
        chars.windows(ECHO_CHARS).step_by(ECHO_STEP).map(|piece| piece.iter().collect()).collect();
    let within = |text: &str| pieces.iter().any(|piece| text.contains(piece.as_str()));
    ask.system.as_deref().is_some_and(within) || ask.messages.iter().any(|message| any_text(&message.content, &within))
}

fn any_text(content: &Content, within: &dyn Fn(&str) -> bool) -> bool {
    content.parts().iter().any(|part| match part {
        Part::Text { text } | Part::Reasoning { text: Some(text) } => within(text),
        Part::ToolCall { arguments: Ok(arguments), .. } => within(&arguments.to_string()),
        Part::ToolCall { arguments: Err(text), .. } => within(text),
        Part::ToolResult { content, .. } => any_text(&Content::Parts(content.clone()), within),
        Part::Image { .. } | Part::Reasoning { text: None } | Part::Opaque { .. } | Part::Unknown(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use assistant_protocol::types::{Message, Role};
    use serde_json::json;

    use super::*;

    fn told(status: Option<u16>, body: Value) -> ModelError {
        let key = Secret::new("sk-secret");
        let speaker = Speaker { provider: "p", host: "h:1", model: "m", key: key.as_ref() };
        let messages = vec![Message::text(Role::User, "The quick brown fox jumps over the lazy dog and is gone.")];
        Failure::of_provider(status, &body).told(&speaker, &Ask { messages, ..Ask::default() })
    }

    #[test]
    fn statuses_and_words_become_kinds() {
        use ModelErrorKind::{BadKey, ContextExceeded, Overloaded, RateLimited, Rejected, TimedOut};
        let check = |status: u16, body: Value, kind| assert_eq!(told(Some(status), body.clone()).kind, kind, "{body}");
        let message = |message: &str| json!({"error": {"message": message}});
        for (status, kind) in [
            (301, Rejected),
            (307, Rejected),
            (400, Rejected),
            (401, BadKey),
            (403, BadKey),
            (404, Rejected),
            (408, TimedOut),
            (413, ContextExceeded),
            (429, RateLimited),
            (500, Overloaded),
            (503, Overloaded),
            (529, Overloaded),
        ] {
            check(status, json!({}), kind);
        }
        check(400, json!({"error": {"code": "context_length_exceeded", "message": "x"}}), ContextExceeded);
        check(400, message("This model's maximum context length is 8192 tokens."), ContextExceeded);
        check(400, message("prompt is too long: 208310 tokens > 200000 maximum"), ContextExceeded);
        check(400, message("input length and `max_tokens` exceed context limit: 199000 + 8192"), ContextExceeded);
        check(400, json!({"error": {"type": "exceed_context_size_error"}}), ContextExceeded);
        check(429, message("context window"), RateLimited);
        check(429, json!({"error": {"code": "insufficient_quota"}}), Rejected);
        check(400, message("Your credit balance is too low"), Rejected);
        let inside = |kind: &str| told(None, json!({"type": "error", "error": {"type": kind, "message": "m"}})).kind;
        assert_eq!(inside("overloaded_error"), Overloaded);
        assert_eq!(inside("rate_limit_error"), RateLimited);
        assert_eq!(inside("api_error"), Overloaded);
        assert_eq!(inside("invalid_request_error"), Rejected);
        assert_eq!(told(None, json!({"error": {"code": 502, "message": "m"}})).kind, Overloaded);
        let gemini =
            |status: &str, message: &str| json!([{"error": {"code": 400, "status": status, "message": message}}]);
        check(400, gemini("INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."), BadKey);
        check(400, gemini("INVALID_ARGUMENT", "no such field"), Rejected);
        let quota = "You exceeded your current quota, please check your plan and billing details.";
        check(429, json!({"error": {"message": quota}}), Rejected);
        let delay = |delay: &str| {
            let details = [json!({"@type": "x"}), json!({"@type": "RetryInfo", "retryDelay": delay})];
            let error = told(Some(429), json!({"error": {"message": quota, "details": details}}));
            (error.kind, error.retry_after_ms)
        };
        assert_eq!(delay("35.5s"), (RateLimited, Some(35_500)));
        assert_eq!(delay("soon"), (Rejected, None));
    }

    #[test]
    fn messages_are_short_and_hold_neither_key_nor_conversation() {
        let check = |said: &str, want: &str| {
            let error = told(Some(400), json!({"error": {"message": said}}));
            assert_eq!(error.message, format!("the provider refused the request (status 400){want}"));
        };
        check("no\nsuch field", ": no such field");
        check("", "");
        check("key sk-secret is odd", ": key [key] is odd");
        check("quick brown fox", ": quick brown fox");
        let echo = "; its message repeats the conversation and is left out";
        check("cannot read 'quick brown fox jumps over the lazy dog and'", echo);
        let long = told(Some(400), json!({"error": "x".repeat(2_000)}));
        assert_eq!(long.message.chars().filter(|c| *c == 'x').count(), SAID_CHARS_MAX - 1);
        assert!(long.message.chars().count() <= MESSAGE_CHARS_MAX);
    }

    #[test]
    fn one_refused_picture_is_not_all_of_them() {
        let check = |said: &str, want: Option<Refused>| {
            let failure = Failure::of_provider(Some(400), &json!({ "error": { "message": said } }));
            let messages =
                vec![Message::text(Role::User, "The log says: Qwen is not a multimodal model, so it was left out.")];
            assert_eq!(failure.refused_pictures(&Ask { messages, ..Ask::default() }), want, "{said}");
        };
        let (all, one) = (Some(Refused::All), Some(Refused::OfThisCall));
        check("This model does not support image input", all);
        check("m does not support image inputs. Use another.", all);
        check("`m` does not support images!", all);
        check("Qwen/Qwen3-8B is not a multimodal model None", all);
        check("At most 0 image(s) may be provided", all);
        check("m does not support image/webp", one);
        check("m does not support images larger than 5 MB", one);
        check("m does not support image input of the type image/webp", one);
        check("m does not support image URLs", one);
        check("unexpected: 'The log says: Qwen is not a multimodal model, so it'", None);
        check("no such field", None);
        let inside = Failure::of_provider(None, &json!({ "error": { "message": "m does not support images" } }));
        assert_eq!(inside.refused_pictures(&Ask::default()), None);
    }

    #[test]
    fn retry_after_is_read() {
        let check = |headers: &[(&str, &str)], want| {
            let get = |name: &str| headers.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
            assert_eq!(retry_after_ms(get), want);
        };
        check(&[], None);
        check(&[("retry-after", "7")], Some(7_000));
        check(&[("retry-after", " 0.25 ")], Some(250));
        check(&[("retry-after", "7"), ("retry-after-ms", "120")], Some(120));
        check(&[("retry-after", "-1")], None);
        check(&[("retry-after", "soon")], None);
        check(&[("retry-after", "1e300")], Some(u64::MAX));
    }
}
