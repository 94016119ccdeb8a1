//! Does the steps of a transcript, one after the other.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::process::{Command, Stdio};

use serde_json::{Map, Value, json};

use super::pattern::misfit;
use super::seen::Seen;
use super::transcript::{Step, Text, repeated};

/// Why a step could not be done.
#[derive(Debug, PartialEq, Eq)]
pub enum Fault {
    /// The transcript is wrong.
    Transcript(String),
    /// The host did not do what it has to.
    Host(String),
    /// Stdin ended while the step waited.
    Ended,
    /// Stdout was closed while the step wrote.
    Closed(String),
}

impl Fault {
    /// The exit code for a transcript that is wrong.
    pub const BAD_TRANSCRIPT: u8 = 2;

    /// The exit code.
    #[must_use]
    pub fn code(&self) -> u8 {
        match self {
            Self::Transcript(_) => Self::BAD_TRANSCRIPT,
            Self::Host(_) => 3,
            Self::Ended => 4,
            Self::Closed(_) => 5,
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Transcript(wrong) => f.write_str(wrong),
            Self::Host(wrong) => write!(f, "the host is wrong here: {wrong}"),
            Self::Ended => f.write_str("stdin ended while this step waited"),
            Self::Closed(why) => write!(f, "stdout was closed while this step wrote: {why}"),
        }
    }
}

/// A runner that plays.
#[derive(Debug, Default)]
pub struct Player {
    seen: Seen,
    names: HashMap<&'static str, String>,
    serves: Map<String, Value>,
}

impl Player {
    /// Does one step; gives a code where that is to exit.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn step(&mut self, step: &Step) -> Result<Option<u8>, Fault> {
        match step {
            Step::Wait { method, is } => {
                self.read_until(|seen| seen.requests.contains_key(method))?;
                self.fits(is.as_ref(), &self.seen.requests[method]["params"], method)?;
            }
            Step::Answer { method, outcome, times, keep, may_break } => {
                match self.answer(method, outcome, *times, *keep) {
                    Err(Fault::Closed(_)) if *may_break => {}
                    done => done?,
                }
            }
            Step::Serve { results } => {
                self.serves.extend(results.clone());
                let waiting: Vec<String> =
                    results.keys().filter(|method| self.seen.requests.contains_key(*method)).cloned().collect();
                waiting.iter().try_for_each(|method| self.serve(method))?;
            }
            Step::Call { method, id, params } => {
                let mut call = json!({ "jsonrpc": "2.0", "method": method, "params": self.filled(params) });
                if let Some(id) = id {
                    call["id"] = self.filled(id);
                }
                self.write(format!("{call}\n").as_bytes(), 1, false)?;
            }
            Step::Calls { method, ids_from, times, params, in_flight, may_break } => {
                let calls = Calls { method, params, in_flight: in_flight.unwrap_or(u64::MAX) };
                match self.calls(&calls, *ids_from, *times) {
                    Err(Fault::Closed(_) | Fault::Ended) if *may_break => {}
                    done => done?,
                }
            }
            Step::ResultOf { id, is } => self.result_of(&self.filled(id), is.as_ref())?,
            Step::ResultsFrom { from, times, is } => {
                for id in *from..from.saturating_add(*times) {
                    self.result_of(&json!(id), is.as_ref())?;
                }
            }
            Step::AnswersTo { id, are } => {
                let id = self.filled(id).to_string();
                let came = self.seen.answers.get(&id).map_or(0, Vec::len) as u64;
                host(came == *are, || format!("{came} answers to {id}, wanted {are}"))?;
            }
            Step::Asked { method, times } => {
                let asked = self.seen.methods.get(method).copied().unwrap_or(0);
                host(asked == *times, || format!("it asked `{method}` {asked} times, wanted {times}"))?;
            }
            Step::Write { text, end, times, may_break } => {
                let mut line = self.text(text);
                line.push_str(end);
                self.write(line.as_bytes(), *times, *may_break)?;
            }
            Step::Bytes { bytes, times, may_break } => self.write(bytes, *times, *may_break)?,
            Step::Stderr { text, times } => {
                let text = self.filled_text(text);
                // Nobody has to read it.
                (0..*times).for_each(|_| drop(writeln!(std::io::stderr(), "{text}")));
            }
            Step::ReadFile { name } => {
                std::fs::read(name).map_err(|error| Fault::Transcript(format!("{name} cannot be read: {error}")))?;
            }
            Step::Start { argv } => {
                let started = Command::new(&argv[0]).args(&argv[1..]).stdin(Stdio::null()).spawn();
                started.map_err(|error| Fault::Transcript(format!("{} cannot be started: {error}", argv[0])))?;
            }
            Step::Close { stdin } => close(*stdin)?,
            Step::WaitEof => while self.read()? {},
            Step::Hang => loop {
                std::thread::park();
            },
            Step::Exit { code } => return Ok(Some(*code)),
            Step::Expect => {}
        }
        Ok(None)
    }

    fn answer(&mut self, method: &str, outcome: &Map<String, Value>, times: u64, keep: bool) -> Result<(), Fault> {
        let Some(request) = self.seen.requests.get(method) else {
            return Err(Fault::Transcript(format!("no request of `{method}` is there to be answered; `wait` for it")));
        };
        let mut answer = json!({ "jsonrpc": "2.0", "id": request["id"] });
        for (key, value) in outcome {
            answer[key] = self.filled(value);
        }
        if !keep {
            self.seen.requests.remove(method);
        }
        self.write(format!("{answer}\n").as_bytes(), times, false)
    }

    /// Answers what is answered by itself.
    fn serve(&mut self, method: &str) -> Result<(), Fault> {
        match self.serves.get(method) {
            Some(result) => {
                let outcome = Map::from_iter([("result".to_owned(), result.clone())]);
                self.answer(method, &outcome, 1, false)
            }
            None => Ok(()),
        }
    }

    fn calls(&mut self, calls: &Calls<'_>, from: u64, times: u64) -> Result<(), Fault> {
        let before = self.seen.answered;
        for sent in 0..times {
            let answered = |seen: &Seen| sent.saturating_sub(seen.answered - before) < calls.in_flight;
            self.read_until(answered)?;
            let id = from + sent;
            self.names.insert("$number", id.to_string());
            let params = self.filled(calls.params);
            let call = json!({ "jsonrpc": "2.0", "id": id, "method": calls.method, "params": params });
            self.write(format!("{call}\n").as_bytes(), 1, false)?;
        }
        self.names.remove("$number");
        Ok(())
    }

    fn result_of(&mut self, id: &Value, is: Option<&Value>) -> Result<(), Fault> {
        let key = id.to_string();
        self.read_until(|seen| seen.answers.contains_key(&key))?;
        match self.seen.answers[&key].last() {
            Some(answer) => self.fits(is, answer, &format!("the answer to {key}")),
            None => Ok(()),
        }
    }

    fn fits(&self, is: Option<&Value>, value: &Value, what: &str) -> Result<(), Fault> {
        match is.and_then(|is| misfit(&self.filled(is), value)) {
            Some(wrong) => Err(Fault::Host(format!("{what}: {wrong}"))),
            None => Ok(()),
        }
    }

    fn read_until(&mut self, there: impl Fn(&Seen) -> bool) -> Result<(), Fault> {
        while !there(&self.seen) {
            if !self.read()? {
                return Err(Fault::Ended);
            }
        }
        Ok(())
    }

    /// Reads one line; false at the end of stdin.
    fn read(&mut self) -> Result<bool, Fault> {
        let mut line = Vec::new();
        if !std::io::stdin().lock().read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            return Ok(false);
        }
        if line.last() != Some(&b'\n') {
            // The host died in the middle of it, or was ended.
            return Ok(false);
        }
        let message = self.seen.line(&line).map_err(Fault::Host)?;
        let Some(method) = message["method"].as_str() else {
            self.names.insert("$last", message.to_string());
            return Ok(true);
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if method == "initialize" {
            for (name, key) in [("$thread_id", "thread_id"), ("$process_id", "process_id")] {
                self.names.insert(name, text(&message["params"][key]));
            }
        }
        if method == "run" {
            self.names.insert("$system_prompt", text(&message["params"]["assistant"]["system_prompt"]));
        }
        if method == "deliver_message" {
            self.names.insert("$message", text(&message["params"]["message"]["content"]));
        }
        self.serve(method)?;
        Ok(true)
    }

    fn write(&mut self, bytes: &[u8], times: u64, may_break: bool) -> Result<(), Fault> {
        self.seen.written(bytes, times);
        for _ in 0..times {
            let mut stdout = std::io::stdout().lock();
            match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
                Ok(()) => {}
                Err(_) if may_break => return Ok(()),
                Err(error) => return Err(Fault::Closed(error.to_string())),
            }
        }
        Ok(())
    }

    fn text(&self, Text(pieces): &Text) -> String {
        pieces.iter().map(|(piece, times)| self.filled_text(piece).repeat(*times)).collect()
    }

    fn filled_text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        if !text.contains('$') {
            return text;
        }
        for (name, is) in &self.names {
            text = text.replace(name, is);
        }
        for (method, id) in &self.seen.ids {
            text = text.replace(&format!("$id:{method}"), &id.to_string());
        }
        text
    }

    fn filled(&self, value: &Value) -> Value {
        if let Some((text, times)) = repeated(value) {
            return Value::String(self.filled_text(&text).repeat(times));
        }
        match value {
            Value::String(text) => Value::String(self.filled_text(text)),
            Value::Array(all) => all.iter().map(|one| self.filled(one)).collect(),
            Value::Object(map) => map.iter().map(|(key, one)| (key.clone(), self.filled(one))).collect(),
            other => other.clone(),
        }
    }
}

/// The same question many times.
struct Calls<'a> {
    method: &'a str,
    params: &'a Value,
    in_flight: u64,
}

fn host(holds: bool, wrong: impl FnOnce() -> String) -> Result<(), Fault> {
    if holds { Ok(()) } else { Err(Fault::Host(wrong())) }
}

/// Puts nothing in the place of a pipe.
#[cfg(unix)]
fn close(stdin: bool) -> Result<(), Fault> {
    let cannot = |error: std::io::Error| Fault::Transcript(format!("the pipe cannot be closed: {error}"));
    let nothing = std::fs::File::options().read(true).write(true).open("/dev/null").map_err(cannot)?;
    let closed = if stdin { rustix::stdio::dup2_stdin(&nothing) } else { rustix::stdio::dup2_stdout(&nothing) };
    closed.map_err(|error| cannot(error.into()))
}

#[cfg(not(unix))]
fn close(_: bool) -> Result<(), Fault> {
    Err(Fault::Transcript("`close` is for Unix".to_owned()))
}
