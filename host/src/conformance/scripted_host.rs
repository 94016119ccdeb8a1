//! The host's end of the link, line by line: what a case says to the runner, and what it waits for.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use assistant_protocol::error::RpcError;
use assistant_protocol::ids::{ProcessId, ThreadId};
use assistant_protocol::spec::rules::{self, Rule};
use assistant_protocol::types::{LlmRequestParams, MAX_FRAME_BYTES, Message, ToolCallParams};
use assistant_protocol::wire::{self, Id, Line, LineReader};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use super::Fault;
use super::habits::Habits;
use super::leaving::{HELD_WITHIN, Held};
use super::transcript::Transcript;
use crate::launcher::{Child, RunnerCommand, Tail, launch_apart};

/// How long a runner has to exit: more than the host's two seconds, because machines are at work.
pub(super) const EXIT_WITHIN: Duration = Duration::from_secs(5);
/// Bytes of stderr that are kept.
const STDERR_BYTES: usize = 8 * 1024;
/// Lines of stderr that are told.
const STDERR_LINES: usize = 20;
/// What is written at once, in bytes.
const WRITE_BYTES: usize = 64 * 1024;

/// A request of ours.
pub(super) enum Ours {
    /// It is not answered.
    Open(&'static str),
    /// It is, and the case has not looked yet.
    Answered(Result<Value, RpcError>),
    /// The case has looked.
    Taken,
}

/// A request of the runner that a case has to answer.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) id: Id,
    pub(super) method: String,
    pub(super) params: Value,
    /// How long its line was, in bytes.
    pub(super) bytes: usize,
}

/// A model call of the runner.
pub(super) struct Turn {
    pub(super) request: Request,
    pub(super) params: LlmRequestParams,
}

impl Turn {
    pub(super) fn messages(&self) -> &[Message] {
        &self.params.messages
    }
}

/// A tool call of the runner.
pub(super) struct ToolCall {
    pub(super) request: Request,
    pub(super) params: ToolCallParams,
}

/// A host without anything behind it, with one runner.
pub(super) struct ScriptedHost {
    pub(super) rule: Rule,
    pub(super) wait: Duration,
    pub(super) process_id: ProcessId,
    pub(super) thread_id: ThreadId,
    /// The longest line that this host takes.
    pub(super) max_frame_bytes: u64,
    pub(super) ours: HashMap<Id, Ours>,
    /// Requests of the runner that are not answered, with their methods.
    pub(super) theirs: HashMap<Id, String>,
    /// Of them, those that a case has to answer and has not seen.
    pub(super) inbox: VecDeque<Request>,
    /// Requests that the runner has given up.
    pub(super) given_up: Vec<Value>,
    /// `initialize` was asked.
    pub(super) begun: bool,
    /// `shutdown` was asked.
    ending: bool,
    /// A model call of the run is not answered.
    pub(super) asks_model: bool,
    /// `run`s that are not answered.
    pub(super) runs: usize,
    pub(super) habits: Habits,
    pub(super) held: Held,
    /// What always holds and did not.
    pub(super) fault: Option<Fault>,
    pub(super) talk: Transcript,
    /// What is to be written, and how much of it is.
    pub(super) outgoing: Vec<u8>,
    written: usize,
    number: u64,
    pub(super) child: Child,
    pub(super) stdin: Option<ChildStdin>,
    pub(super) lines: LineReader<ChildStdout>,
    pub(super) ended: bool,
    stderr: Arc<Mutex<Tail>>,
    /// Reads it until its end.
    stderr_read: JoinHandle<()>,
}

impl ScriptedHost {
    /// Starts a runner in `dir`.
    ///
    /// # Errors
    /// In words, with the program named.
    pub(super) fn start(runner: &RunnerCommand, dir: &Path, rule: Rule, wait: Duration) -> Result<Self, String> {
        let launched = launch_apart(runner, dir)?;
        let stderr = Arc::new(Mutex::new(Tail::new(STDERR_BYTES)));
        let stderr_read = tokio::spawn(keep(launched.stderr, stderr.clone()));
        Ok(Self {
            rule,
            wait,
            process_id: ProcessId::mint(),
            thread_id: ThreadId::mint(),
            max_frame_bytes: MAX_FRAME_BYTES,
            ours: HashMap::new(),
            theirs: HashMap::new(),
            inbox: VecDeque::new(),
            given_up: Vec::new(),
            begun: false,
            ending: false,
            asks_model: false,
            runs: 0,
            habits: Habits::default(),
            held: Held::No,
            fault: None,
            talk: Transcript::new(),
            outgoing: Vec::new(),
            written: 0,
            number: 0,
            child: launched.child,
            stdin: Some(launched.stdin),
            lines: LineReader::new(launched.stdout, usize::try_from(MAX_FRAME_BYTES).unwrap_or(usize::MAX)),
            ended: false,
            stderr,
            stderr_read,
        })
    }

    /// A fault against the rule of the case.
    pub(super) fn fault(&self, expected: impl Into<String>, seen: impl Into<String>) -> Fault {
        Fault { rule: self.rule, expected: expected.into(), seen: seen.into() }
    }

    /// Whether what always holds did.
    pub(super) fn always(&mut self) -> Result<(), Fault> {
        self.fault.take().map_or(Ok(()), Err)
    }

    /// What was said on stdin and stdout, and the end of stderr.
    pub(super) async fn told(&mut self) -> (Vec<String>, String) {
        self.child.kill();
        if timeout(EXIT_WITHIN, self.child.exited()).await.is_err() {
            self.talk.note("it was killed and does not end");
        }
        // What it wrote before it was killed may lie in the pipe still, and what has left its group may hold that open.
        if timeout(HELD_WITHIN, &mut self.stderr_read).await.is_err() {
            self.talk.note("its stderr stays open; what is told of it may not be all");
        }
        (self.talk.lines(), self.stderr.lock().unwrap_or_else(PoisonError::into_inner).last(STDERR_LINES))
    }

    // What is said.

    /// Writes bytes as they are, and hears what the runner says meanwhile.
    pub(super) async fn raw(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.talk.sent(bytes);
        self.outgoing.extend_from_slice(bytes);
        self.flush().await
    }

    /// Writes what is to be written.
    pub(super) async fn flush(&mut self) -> Result<(), Fault> {
        enum Event {
            Written(std::io::Result<usize>),
            Heard(std::io::Result<Option<Vec<u8>>>),
        }
        while self.written < self.outgoing.len() {
            let Some(stdin) = &mut self.stdin else { break };
            let piece = &self.outgoing[self.written..self.outgoing.len().min(self.written + WRITE_BYTES)];
            let either = async {
                tokio::select! {
                    written = stdin.write(piece) => Event::Written(written),
                    line = next(&mut self.lines), if !self.ended => Event::Heard(line),
                }
            };
            match timeout(self.wait, either).await {
                Err(_) => return Err(self.fault("takes what the host writes", "it does not read its stdin")),
                Ok(Event::Written(Ok(count))) => self.written += count,
                // It may go as soon as it has answered `shutdown`, whatever else is to be told to it.
                Ok(Event::Written(Err(_))) if self.ending => break,
                Ok(Event::Written(Err(error))) => {
                    return Err(self.gone("takes what the host writes", &error.to_string()).await);
                }
                Ok(Event::Heard(line)) => self.hear(line)?,
            }
        }
        self.outgoing.clear();
        self.written = 0;
        Ok(())
    }

    /// Asks, and gives the id of the request.
    pub(super) async fn ask(&mut self, method: &'static str, params: &Value) -> Result<Id, Fault> {
        self.number += 1;
        let id = Id::Number(self.number);
        self.ask_as(id.clone(), method, params).await?;
        Ok(id)
    }

    /// Asks with an id of the case's own.
    pub(super) async fn ask_as(&mut self, id: Id, method: &'static str, params: &Value) -> Result<(), Fault> {
        let line = self.line(id, method, params);
        self.raw(&line).await
    }

    /// The line of a request, noted as asked.
    pub(super) fn line(&mut self, id: Id, method: &'static str, params: &Value) -> Vec<u8> {
        let line = wire::request_line(&id, method, params).unwrap_or_default();
        self.begun |= method == "initialize";
        self.ending |= method == "shutdown";
        self.runs += usize::from(method == "run");
        self.ours.insert(id, Ours::Open(method));
        line
    }

    /// Answers a request of the runner.
    pub(super) async fn give(&mut self, request: &Request, result: &Value) -> Result<(), Fault> {
        let line = self.result_line(request, result);
        self.raw(&line).await
    }

    /// The line of an answer, noted as answered.
    pub(super) fn result_line(&mut self, request: &Request, result: &Value) -> Vec<u8> {
        self.is_answered(request);
        format!("{}\n", json!({ "jsonrpc": "2.0", "id": request.id, "result": result })).into_bytes()
    }

    /// Answers a request of the runner with an error.
    pub(super) async fn refuse(&mut self, request: &Request, error: RpcError) -> Result<(), Fault> {
        self.is_answered(request);
        let line = wire::error_line(&request.id, error);
        self.raw(&line).await
    }

    /// Notes that a request of the runner is being answered.
    pub(super) fn is_answered(&mut self, request: &Request) {
        if self.theirs.remove(&request.id).is_some() && request.method == "on_llm_request" {
            self.asks_model = false;
        }
    }

    /// Closes the runner's stdin.
    pub(super) fn close_stdin(&mut self) {
        self.talk.note("stdin is closed");
        self.stdin = None;
    }

    /// Reads nothing for a while: what a host does that has other work.
    pub(super) async fn look_away(&mut self, time: Duration) {
        self.talk.note(&format!("the host reads nothing for {} ms", time.as_millis()));
        tokio::time::sleep(time).await;
    }

    // What is heard.

    /// Asks nothing for a while, and hears what comes.
    pub(super) async fn listen(&mut self, time: Duration) -> Result<(), Fault> {
        self.talk.note(&format!("the host says nothing for {} ms", time.as_millis()));
        let deadline = Instant::now() + time;
        while !self.ended
            && let Ok(line) = timeout_at(deadline, next(&mut self.lines)).await
        {
            self.hear(line)?;
        }
        Ok(())
    }

    pub(super) fn hear(&mut self, line: std::io::Result<Option<Vec<u8>>>) -> Result<(), Fault> {
        match line {
            Ok(Some(line)) => {
                self.take(&line);
                self.always()
            }
            Ok(None) => {
                self.ended = true;
                Ok(())
            }
            Err(error) => {
                let expected = format!("writes no line of more than {MAX_FRAME_BYTES} bytes");
                Err(Fault { rule: rules::THEIR_BOUND, expected, seen: error.to_string() })
            }
        }
    }

    /// Waits for what `find` finds, `what` in words.
    pub(super) async fn until<T>(
        &mut self,
        what: &str,
        mut find: impl FnMut(&mut Self) -> Result<Option<T>, Fault>,
    ) -> Result<T, Fault> {
        let deadline = Instant::now() + self.wait;
        loop {
            self.flush().await?;
            self.always()?;
            if let Some(found) = find(self)? {
                return Ok(found);
            }
            if self.ended {
                return Err(self.gone(what, "it closed its stdout").await);
            }
            match timeout_at(deadline, next(&mut self.lines)).await {
                Err(_) => return Err(self.late(what)),
                Ok(line) => self.hear(line)?,
            }
        }
    }

    /// What was waited for did not come.
    fn late(&self, what: &str) -> Fault {
        let seen = format!("nothing, for {} ms", self.wait.as_millis());
        // The one rule whose cases take long where nothing is wrong.
        let longer = "; where it only takes its time, `--wait-ms` has it waited for longer";
        self.fault(what, if self.rule == rules::LONG_LINES { seen + longer } else { seen })
    }

    /// Whether it was asked `initialize` and has not answered.
    pub(super) fn is_mute(&self) -> bool {
        self.ours.values().any(|ours| matches!(ours, Ours::Open("initialize")))
    }
}

/// The next line; none at the end.
pub(super) async fn next(lines: &mut LineReader<ChildStdout>) -> std::io::Result<Option<Vec<u8>>> {
    match lines.next().await? {
        Line::Whole(line) => Ok(Some(line.to_vec())),
        Line::End => Ok(None),
        Line::TooLong => Err(std::io::Error::new(std::io::ErrorKind::InvalidData, "it writes a longer one")),
    }
}

/// Keeps the end of what a runner writes to stderr; never stops reading.
async fn keep(mut stderr: ChildStderr, tail: Arc<Mutex<Tail>>) {
    let mut piece = vec![0; STDERR_BYTES];
    while let Ok(count @ 1..) = stderr.read(&mut piece).await {
        let text = String::from_utf8_lossy(&piece[..count]).into_owned();
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        text.lines().for_each(|line| tail.push(line.to_owned()));
    }
}

/// A value for people.
pub(super) fn cut(value: &Value) -> String {
    crate::text::cut(&value.to_string(), 300)
}
