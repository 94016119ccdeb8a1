//! What a host has said so far, and whether it may: each line a message, each of its requests with an id of its own, no
//! answer but to what was asked, and no more answers than questions.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::pattern::quoted;

/// The largest number that is an id.
const ID_MAX: u64 = 1 << 53;
/// The longest text that is an id, bytes.
const ID_BYTES_MAX: usize = 1024;

/// Of a line of ours what matters here; the rest may be nested as deep as it likes.
#[derive(Deserialize)]
struct Written {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<IgnoredAny>,
}

/// What went over the link.
#[derive(Debug, Default)]
pub struct Seen {
    /// The last request of each method that is not answered.
    pub requests: HashMap<String, Value>,
    /// The id of the last request of each method.
    pub ids: HashMap<String, Value>,
    /// How often each method was asked.
    pub methods: HashMap<String, u64>,
    /// All answers to each id, as JSON.
    pub answers: HashMap<String, Vec<Value>>,
    /// Answers that came.
    pub answered: u64,
    /// How often each id was asked by us.
    asked: HashMap<String, u64>,
    /// Ids of requests of the host that are not answered.
    open: HashSet<String>,
}

impl Seen {
    /// A line came from the host; gives it back as a message.
    ///
    /// # Errors
    /// Why it may not say that.
    pub fn line(&mut self, line: &[u8]) -> Result<Value, String> {
        let shown = || quoted(&json!(String::from_utf8_lossy(line)));
        let message: Value = serde_json::from_slice(line).map_err(|error| format!("no JSON ({error}): {}", shown()))?;
        if message["jsonrpc"] != "2.0" {
            return Err(format!("no message of JSON-RPC 2.0: {}", shown()));
        }
        match message.get("method") {
            Some(method) => self.request(method, &message),
            None => self.answer(&message),
        }
        .map_err(|why| format!("{why}: {}", shown()))?;
        Ok(message)
    }

    fn request(&mut self, method: &Value, message: &Value) -> Result<(), String> {
        let method = method.as_str().ok_or("a method that is no text")?;
        let id = &message["id"];
        let proper =
            id.as_u64().is_some_and(|id| id <= ID_MAX) || id.as_str().is_some_and(|id| id.len() <= ID_BYTES_MAX);
        if !proper {
            return Err("a request whose id is none".to_owned());
        }
        if !message.get("params").is_none_or(Value::is_object) {
            return Err("a request whose params are no object".to_owned());
        }
        if !self.open.insert(id.to_string()) {
            return Err("a request with the id of one that is not answered".to_owned());
        }
        self.requests.insert(method.to_owned(), message.clone());
        self.ids.insert(method.to_owned(), id.clone());
        *self.methods.entry(method.to_owned()).or_default() += 1;
        Ok(())
    }

    fn answer(&mut self, message: &Value) -> Result<(), String> {
        let error = message.get("error").filter(|error| !error.is_null());
        if message.get("result").is_some() == error.is_some() {
            return Err("neither a request nor an answer with one of `result` and `error`".to_owned());
        }
        if let Some(error) = error
            && !(error["code"].is_i64() && error["message"].is_string())
        {
            return Err("an error without a code or a message".to_owned());
        }
        let id = message["id"].to_string();
        if message["id"].is_null() {
            // How JSON-RPC answers what has no readable id.
            return Ok(());
        }
        let came = self.answers.entry(id.clone()).or_default();
        came.push(message.clone());
        self.answered += 1;
        let (came, asked) = (came.len() as u64, self.asked.get(&id).copied().unwrap_or(0));
        match asked {
            0 => Err("an answer to nothing".to_owned()),
            _ if came > asked => Err(format!("answer {came} to what was asked {asked} times")),
            _ => Ok(()),
        }
    }

    /// We are about to write a line so many times.
    pub fn written(&mut self, line: &[u8], times: u64) {
        let Ok(Written { id: Some(id), method }) = serde_json::from_slice(line) else { return };
        if method.is_some() {
            self.asked(&id, times);
        } else {
            self.open.remove(&id.to_string());
        }
    }

    /// We are about to ask with this id so many times.
    pub fn asked(&mut self, id: &Value, times: u64) {
        *self.asked.entry(id.to_string()).or_default() += times;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_says_what_it_may_not_is_told() {
        let check = |lines: &[&str], wanted: &str| {
            let mut seen = Seen::default();
            seen.asked(&json!(1), 1);
            seen.asked(&json!("a"), 2);
            let last = lines.iter().map(|line| seen.line(line.as_bytes())).last().expect("a line");
            let told = last.err().unwrap_or_default();
            assert!(told.starts_with(wanted) && told.is_empty() == wanted.is_empty(), "{lines:?}: {told}");
        };
        let ask = r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}"#;
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":null}"#;
        let text = r#"{"jsonrpc":"2.0","id":"a","result":1}"#;
        check(&[ask], "");
        check(&[ask, ask], "a request with the id of one that is not answered");
        check(&[r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#], "a request whose id is none");
        check(&[r#"{"jsonrpc":"2.0","method":"ping"}"#], "a request whose id is none");
        check(&[r#"{"jsonrpc":"2.0","id":2,"method":"ping","params":[]}"#], "a request whose params are no object");
        check(&[answer], "");
        check(&[answer, answer], "answer 2 to what was asked 1 times");
        check(&[text, text], "");
        check(&[r#"{"jsonrpc":"2.0","id":"1","result":null}"#], "an answer to nothing");
        check(&[r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":""}}"#], "neither a request nor");
        check(&[r#"{"jsonrpc":"2.0","id":1,"error":{"code":"1"}}"#], "an error without a code");
        check(&[r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}"#], "");
        check(&["hello"], "no JSON");
        check(&["{}"], "no message of JSON-RPC 2.0");
    }
}
