//! A runner that plays a transcript: `fake-runner FILE`. Each line of the file is one step:
//!
//! | step | does |
//! | --- | --- |
//! | `{"wait": METHOD}` | reads until a request of this method comes |
//! | `{"answer": METHOD, "result": …}` or `"error": …` | answers the last request of this method |
//! | `{"call": METHOD, "id": …, "params": …}` | asks |
//! | `{"result_of": ID}` | reads until the answer to that request comes; an error answer is kept too |
//! | `{"raw": TEXT, "times": N}` | writes a line, N times |
//! | `{"half": TEXT}` | writes without an end of line |
//! | `{"big": BYTES}` | writes a line of that many bytes |
//! | `{"stderr": TEXT}` | writes a line to stderr |
//! | `{"read_file": NAME}` | reads a file of its folder; a FIFO blocks it until a test writes there |
//! | `{"start": ARGV}` | starts a program that holds stdout and stderr open, and does not wait for it |
//! | `{"wait_eof": true}` | reads until stdin ends |
//! | `{"hang": true}` | does nothing any more, not even at the end of stdin |
//! | `{"exit": CODE}` | exits |
//!
//! `$thread_id` and `$process_id` in strings are those of `initialize`, `$last` is the last answer as text, `$message`
//! what the last `deliver_message` gave. At the end
//! of the transcript it exits with 0.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::process::{Command, ExitCode, Stdio};

use serde_json::{Value, json};

fn main() -> ExitCode {
    let Some(file) = std::env::args().nth(1) else { return ExitCode::from(2) };
    let Ok(text) = std::fs::read_to_string(&file) else { return ExitCode::from(2) };
    let mut player = Player::default();
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        let Ok(step) = serde_json::from_str::<Value>(line) else { return ExitCode::from(2) };
        match player.step(&step) {
            Some(Next::Exit(code)) => return ExitCode::from(code),
            Some(Next::Broken) => return ExitCode::from(4),
            None => {}
        }
    }
    ExitCode::SUCCESS
}

enum Next {
    Exit(u8),
    Broken,
}

#[derive(Default)]
struct Player {
    requests: HashMap<String, Value>,
    answers: HashMap<String, Value>,
    names: HashMap<&'static str, String>,
}

impl Player {
    fn step(&mut self, step: &Value) -> Option<Next> {
        if let Some(method) = step["wait"].as_str() {
            while !self.requests.contains_key(method) {
                if !self.read() {
                    return Some(Next::Broken);
                }
            }
        } else if let Some(method) = step["answer"].as_str() {
            let Some(id) = self.requests.remove(method) else { return Some(Next::Broken) };
            let mut answer = json!({ "jsonrpc": "2.0", "id": id });
            let kind = if step.get("error").is_some() { "error" } else { "result" };
            answer[kind] = self.filled(&step[kind]);
            return self.write(&format!("{answer}\n"));
        } else if let Some(method) = step["call"].as_str() {
            let params = self.filled(&step["params"]);
            let call = json!({ "jsonrpc": "2.0", "id": step["id"], "method": method, "params": params });
            return self.write(&format!("{call}\n"));
        } else if let Some(id) = step.get("result_of") {
            let key = id.to_string();
            while !self.answers.contains_key(&key) {
                if !self.read() {
                    return Some(Next::Broken);
                }
            }
        } else if let Some(text) = step["raw"].as_str() {
            let line = self.filled(&json!(text));
            for _ in 0..step["times"].as_u64().unwrap_or(1) {
                if let Some(next) = self.write(&format!("{}\n", line.as_str().unwrap_or_default())) {
                    return Some(next);
                }
            }
        } else if let Some(text) = step["half"].as_str() {
            return self.write(text);
        } else if let Some(bytes) = step["big"].as_u64() {
            let line = "x".repeat(usize::try_from(bytes).unwrap_or(usize::MAX));
            return self.write(&format!("\"{line}\"\n"));
        } else if let Some(text) = step["stderr"].as_str() {
            let _ = writeln!(std::io::stderr(), "{text}");
        } else if let Some(name) = step["read_file"].as_str() {
            if std::fs::read(name).is_err() {
                return Some(Next::Broken);
            }
        } else if let Some(argv) = step["start"].as_array() {
            let mut argv = argv.iter().filter_map(Value::as_str);
            let Some(program) = argv.next() else { return Some(Next::Broken) };
            if Command::new(program).args(argv).stdin(Stdio::null()).spawn().is_err() {
                return Some(Next::Broken);
            }
        } else if step["wait_eof"] == true {
            while self.read() {}
        } else if step["hang"] == true {
            loop {
                std::thread::park();
            }
        } else if let Some(code) = step["exit"].as_u64() {
            return Some(Next::Exit(u8::try_from(code).unwrap_or(1)));
        } else {
            return Some(Next::Broken);
        }
        None
    }

    /// Reads one line; false at the end of stdin.
    fn read(&mut self) -> bool {
        let mut line = String::new();
        if !std::io::stdin().lock().read_line(&mut line).is_ok_and(|read| read > 0) {
            return false;
        }
        let Ok(message) = serde_json::from_str::<Value>(&line) else { return true };
        if let Some(method) = message["method"].as_str() {
            if method == "initialize" {
                for (name, key) in [("$thread_id", "thread_id"), ("$process_id", "process_id")] {
                    self.names.insert(name, message["params"][key].as_str().unwrap_or_default().to_owned());
                }
            }
            if method == "deliver_message" {
                let content = message["params"]["message"]["content"].as_str().unwrap_or_default().to_owned();
                self.names.insert("$message", content);
            }
            self.requests.insert(method.to_owned(), message["id"].clone());
        } else {
            self.names.insert("$last", message.to_string());
            self.answers.insert(message["id"].to_string(), message);
        }
        true
    }

    fn write(&self, text: &str) -> Option<Next> {
        let mut stdout = std::io::stdout().lock();
        let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        written.err().map(|_| Next::Exit(5))
    }

    fn filled(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => {
                let mut text = text.clone();
                for (name, is) in &self.names {
                    text = text.replace(name, is);
                }
                Value::String(text)
            }
            Value::Array(all) => all.iter().map(|one| self.filled(one)).collect(),
            Value::Object(map) => map.iter().map(|(key, one)| (key.clone(), self.filled(one))).collect(),
            other => other.clone(),
        }
    }
}
