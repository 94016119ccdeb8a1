//! What the pipe of `mcp` knows of JSON-RPC: whose line it is, and the lines that it writes itself.

use std::borrow::Cow;
use std::io::{BufRead, BufReader, Write};
use std::time::Duration;

use interprocess::local_socket::Stream;
use interprocess::local_socket::traits::Stream as _;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::tools::profile::Profile;

/// How long a host may take to shake hands.
const SHAKE_WITHIN: Duration = Duration::from_secs(10);
/// The id of a handshake that the pipe repeats; clients count or mint theirs.
const SHAKE_ID: &str = "assistant-host/again";

/// The parts of a message that tell what it is.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Peek<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
}

impl<'a> Peek<'a> {
    /// Of a line that is no message there is nothing to know.
    pub(super) fn of(line: &'a [u8]) -> Self {
        serde_json::from_slice(line).unwrap_or_default()
    }

    /// The method; empty where there is none.
    pub(super) fn method(&self) -> &str {
        self.method.as_deref().unwrap_or_default()
    }

    /// The id of a request, as JSON.
    pub(super) fn request_id(&self) -> Option<String> {
        self.id.filter(|_| self.method.is_some()).and_then(canonical)
    }

    /// The id of an answer, as JSON.
    pub(super) fn answer_id(&self) -> Option<String> {
        self.id.filter(|_| self.method.is_none()).and_then(canonical)
    }
}

/// An id as this program writes JSON, however the other side wrote it.
fn canonical(id: &RawValue) -> Option<String> {
    let id: Value = serde_json::from_str(id.get()).ok()?;
    (!id.is_null()).then(|| id.to_string())
}

/// Whether a request has this id.
pub(super) fn has_id(request: &[u8], id: &str) -> bool {
    Peek::of(request).request_id().as_deref() == Some(id)
}

fn message(id: &str, key: &str, value: &Value) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"{key}\":{value}}}\n").into_bytes()
}

/// A tool call that the host did not answer before it went.
pub(super) fn host_lost(id: &str, profile: &Profile, modern: bool) -> Vec<u8> {
    let told = json!({
        "code": "host_lost",
        "message": "the host ended while it worked on this call; whatever it had answered before is kept",
        "hint": profile.after_loss(),
        "retryable": true,
    });
    let mut result = json!({ "content": [{ "type": "text", "text": told.to_string() }], "isError": true });
    if modern {
        result["resultType"] = json!("complete");
    }
    message(id, "result", &result)
}

/// A request for which there is no host.
pub(super) fn unreachable(id: &str, why: &str) -> Vec<u8> {
    message(id, "error", &json!({ "code": -32603, "message": format!("there is no host: {why}") }))
}

/// A line that is longer than the host reads.
pub(super) fn too_long(bytes_max: u64) -> Vec<u8> {
    let why = format!("a line of more than {bytes_max} bytes was left out");
    message("null", "error", &json!({ "code": -32600, "message": why }))
}

/// Why a host has not shaken hands.
#[derive(Debug)]
pub(super) enum NotShaken {
    /// It went, or was silent: another one may.
    Gone(String),
    /// It does not want to.
    Refused(String),
}

/// Shakes hands with a host as the client did with an earlier one.
pub(super) fn shake(stream: &Stream, asked: &[u8]) -> Result<(), NotShaken> {
    let gone = |error: std::io::Error| NotShaken::Gone(format!("the host did not shake hands: {error}"));
    let mut request: Value =
        serde_json::from_slice(asked).map_err(|error| NotShaken::Refused(format!("no handshake: {error}")))?;
    request["id"] = json!(SHAKE_ID);
    let mut out = stream;
    out.write_all(format!("{request}\n").as_bytes()).map_err(gone)?;
    stream.set_recv_timeout(Some(SHAKE_WITHIN)).map_err(gone)?;
    let mut line = Vec::new();
    // Nothing else comes before the client has spoken again.
    BufReader::new(stream).read_until(b'\n', &mut line).map_err(gone)?;
    stream.set_recv_timeout(None).map_err(gone)?;
    if line.last() != Some(&b'\n') {
        return Err(NotShaken::Gone("the host went before it had shaken hands".to_owned()));
    }
    let answer: Value =
        serde_json::from_slice(&line).map_err(|error| NotShaken::Refused(format!("no handshake: {error}")))?;
    if answer["id"] != SHAKE_ID || answer.get("result").is_none() {
        return Err(NotShaken::Refused(format!("the host refused the handshake: {answer}")));
    }
    out.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n").map_err(gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, request: Option<&str>, answer: Option<&str>) {
        let peek = Peek::of(line.as_bytes());
        assert_eq!((peek.request_id().as_deref(), peek.answer_id().as_deref()), (request, answer), "{line}");
    }

    #[test]
    fn requests_and_answers_are_told_apart() {
        check(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, Some("1"), None);
        check(r#"{"id":"a\u0062","method":"x"}"#, Some("\"ab\""), None);
        check(r#"{"id":1,"result":{"id":7,"method":"no"}}"#, None, Some("1"));
        check(r#"{"id":"x","error":{}}"#, None, Some("\"x\""));
        check(r#"{"method":"notifications/initialized"}"#, None, None);
        check(r#"{"id":null,"method":"x"}"#, None, None);
        check("[]", None, None);
        check("half a li", None, None);
    }

    #[test]
    fn our_own_lines_are_messages() {
        let (ours, subagents) = (Profile::Orchestrator, Profile::Subagents);
        for line in [
            host_lost("1", &ours, true),
            host_lost("\"a\"", &subagents, false),
            unreachable("1", "a \"b\""),
            too_long(5),
        ] {
            let message: Value = serde_json::from_slice(&line).expect("a message");
            assert_eq!((&message["jsonrpc"], line.last()), (&json!("2.0"), Some(&b'\n')));
        }
    }
}
