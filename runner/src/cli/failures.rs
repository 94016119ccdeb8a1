//! Why an agent failed, as far as it tells: in words that say what to do.

use assistant_protocol::error::{Kind as ErrorKind, RpcError};

use super::kind::Kind;

/// Statuses of HTTP at which it makes sense to try again later.
const RETRYABLE: [u16; 7] = [408, 409, 425, 429, 500, 502, 503];
/// Words by which agents tell that they are not logged in, in lower case.
const NO_LOGIN: [&str; 8] = [
    "not logged in",
    "please run /login",
    "invalid api key",
    "authentication_error",
    "login required",
    "please set an auth method",
    "missing bearer",
    "unauthorized",
];
/// Words by which agents tell that the conversation is too long, in lower case.
const TOO_LONG: [&str; 4] = ["prompt is too long", "context window", "context_length", "maximum context length"];
/// The longest text of an error, in characters.
const TEXT_CHARS_MAX: usize = 2_000;

/// The error for what an agent says of its failed model call; `status` is HTTP's, where it is known.
pub(super) fn model_failed(kind: &Kind, said: &str, status: Option<u16>) -> RpcError {
    let status = status.or_else(|| status_in(said));
    let lower = said.to_ascii_lowercase();
    let said: String = said.trim().chars().take(TEXT_CHARS_MAX).collect();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let no_login = status == Some(401) || has(&NO_LOGIN);
    let (error, text) = if has(&TOO_LONG) {
        (ErrorKind::ContextExceeded, format!("{}: {said}", kind.title))
    } else if no_login {
        (
            ErrorKind::ModelFailed,
            format!("{} is not logged in, or its login is refused: {}. It said: {said}", kind.title, kind.login),
        )
    } else {
        (ErrorKind::ModelFailed, format!("{}: {said}", kind.title))
    };
    let retryable = !no_login && status.is_some_and(|status| RETRYABLE.contains(&status) || status > 503);
    RpcError::new(error, text)
        .with("provider", kind.name)
        .with("status", status.map_or(serde_json::Value::Null, Into::into))
        .with("retryable", retryable)
}

/// The error for a session that the agent does not have any more.
pub(super) fn no_session(kind: &Kind, said: &str) -> RpcError {
    let text = format!(
        "{} does not have the session any more, so it cannot go on with it; spawn the assistant anew. It said: {said}",
        kind.title
    );
    RpcError::new(ErrorKind::InternalError, text)
}

/// The status that an error's text names: three digits from 400 to 599 behind a word that announces them.
fn status_in(text: &str) -> Option<u16> {
    let lower = text.to_ascii_lowercase();
    let behind =
        ["api error: ", "status code: ", "status: ", "\"status\":", "\"code\":", "unexpected status ", "http "];
    behind.iter().find_map(|word| {
        let (_, rest) = lower.split_once(word)?;
        let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok().filter(|status| (400..600).contains(status))
    })
}
