//! One run of an agent's program: the prompt goes in, what it writes is told to the host, and its end is an answer.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use assistant_protocol::error::RpcError;
use assistant_protocol::types::AgentEvent;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::time::{Instant, sleep_until};

use super::failures::model_failed;
use super::kind::{Kind, Reader, Start, Told};
use super::reach::Reach;
use super::{CliAgent, internal};
use crate::adapter::bridge::Bridge;
use crate::adapter::ids::Ids;
use crate::adapter::lines::{LINE_BYTES_MAX, Line, Lines, excerpt};
use crate::adapter::literal::literal;
use crate::adapter::process::{Launch, Process};
use crate::adapter::{Prompt, Run, TurnEnd};

/// How long a program may take to exit once its turn is done, or its output is closed, in milliseconds.
const EXIT_MS: u64 = 5_000;
/// How long what is left of its output may take once it has exited, in milliseconds.
const DRAIN_MS: u64 = 500;
/// Lines that are no JSON objects of which is told; of more the number only.
const ODD_LINES_TOLD: u64 = 3;
/// Lines in a row that are no JSON objects, after which an agent is given up.
const ODD_LINES_MAX: u64 = 10_000;
/// What an agent lacks that has not come for its tools.
const TOOLS: &str = "the assistant's tools";

impl CliAgent {
    /// Runs the program once.
    pub(super) async fn take_turn(&mut self, run: &Run, mut prompt: Prompt) -> Result<TurnEnd, RpcError> {
        let failed = |error: io::Error| internal(format!("cannot start {}: {error}", self.program.display()));
        let bridge = match self.bridge.take() {
            Some(bridge) => bridge,
            None => Bridge::open(self.folder.path(), (self.own.program.clone(), self.own.leading.clone()))
                .map_err(failed)?,
        };
        let bridge = self.bridge.insert(bridge);
        let start = Start {
            run,
            folder: &self.folder,
            session: self.session.as_deref(),
            server: bridge.server(),
            used: self.used,
        };
        let mut plan = (self.kind.plan)(&start).map_err(failed)?;
        let reader = self.reader.insert((self.kind.reader)(&start));
        let (mut text, pictures) = prompt.text();
        if pictures > 0 {
            plan.lacks("pictures", format!("{} takes them by path only; their lines tell of them", self.kind.title));
        }
        if let Some(before) = plan.before_prompt {
            text = format!("{before}\n\n{text}");
        }
        let text = literal(&text, self.kind.mentions);
        if !self.told {
            self.told = true;
            for (what, why) in plan.lacks {
                run.lacks(what, why).await?;
            }
        }
        let dir = match &run.brief().working_dir {
            Some(dir) => dir.into(),
            None => self.folder.folder("work").map_err(failed)?,
        };
        let mut env = self.env.clone();
        env.extend(plan.env);
        let args = plan.args.into_iter().chain(self.more.iter().cloned()).collect();
        let launch = Launch { program: self.program.clone(), args, env, dir };
        let process = self.process.insert(Process::start(&self.own, &launch).map_err(failed)?);
        // What the last turn has left without a result gets none any more.
        self.calls.open.clear();
        let telling = Telling { run, session: &mut self.session, calls: &mut self.calls };
        let played = play(self.kind, process, telling, &mut prompt, text, reader.as_mut());
        let played = run.with_tools(bridge, self.kind.asks_permission, played).await;
        if played.is_ok()
            && !run.tools().is_empty()
            && !bridge.was_found()
            && !std::mem::replace(&mut self.told_without_tools, true)
        {
            run.lacks(TOOLS, "the agent has not started the server that it was told of").await?;
        }
        if played.is_ok() {
            self.process = None;
            // Else it tells when the agent is stopped.
            self.used = self.reader.take().and_then(|reader| reader.used());
        }
        played
    }
}

/// Calls that wait for their results; beyond them results are told by the agent's own ids.
const OPEN_MAX: usize = 1_024;

/// Calls of an agent's own tools, by ids that no other call of this runner has.
#[derive(Debug, Default)]
pub(super) struct Calls {
    ids: Ids,
    /// Those that are not answered: by the agent's own ids, the ids that were told.
    open: HashMap<String, String>,
}

impl Calls {
    fn told(&mut self, mut event: AgentEvent) -> AgentEvent {
        match &mut event {
            AgentEvent::ToolCall { call_id, .. } => {
                let told = self.ids.new_id(call_id);
                let own = std::mem::replace(call_id, told.clone());
                if self.open.len() < OPEN_MAX || self.open.contains_key(&own) {
                    self.open.insert(own, told);
                }
            }
            AgentEvent::ToolResult { call_id, .. } => {
                if let Some(told) = self.open.remove(call_id) {
                    *call_id = told;
                }
            }
            AgentEvent::Session { .. }
            | AgentEvent::Text { .. }
            | AgentEvent::Reasoning { .. }
            | AgentEvent::Usage { .. }
            | AgentEvent::Lacks { .. }
            | AgentEvent::Other => {}
        }
        event
    }
}

/// Where what a program writes is told.
struct Telling<'a> {
    run: &'a Run,
    session: &'a mut Option<String>,
    calls: &'a mut Calls,
}

impl Telling<'_> {
    /// Tells one thing; true where the turn is done.
    async fn tell(&mut self, told: Told, said: &str) -> Result<bool, RpcError> {
        match told {
            Told::Event(event) => {
                if matches!(event, AgentEvent::Text { .. }) {
                    self.run.says(said);
                }
                self.run.tell(self.calls.told(event)).await?;
            }
            Told::Waits { text, .. } => self.run.waits(text).await,
            Told::Session(id) if self.session.as_ref() != Some(&id) => {
                *self.session = Some(id.clone());
                self.run.tell(AgentEvent::Session { session_id: id }).await?;
            }
            Told::Session(_) => {}
            Told::Failed(error) => return Err(error),
            Told::Done => return Ok(true),
        }
        Ok(false)
    }
}

/// Feeds and reads a program until it has exited.
async fn play(
    kind: &Kind,
    process: &mut Process,
    mut telling: Telling<'_>,
    prompt: &mut Prompt,
    text: String,
    reader: &mut dyn Reader,
) -> Result<TurnEnd, RpcError> {
    let lost = || internal("the agent was started without pipes");
    let (stdin, stdout) = (process.stdin.take().ok_or_else(lost)?, process.stdout.take().ok_or_else(lost)?);
    let mut lines = Lines::new(stdout, LINE_BYTES_MAX);
    let mut feeding = Box::pin(feed(stdin, text));
    let (mut fed, mut open, mut exit) = (false, true, None);
    let (mut odd, mut reach) = (Odd::default(), Reach::default());
    // Past it the program has had the time that it gets, whatever it still writes; once it has exited, the rest of its output.
    let mut deadline: Option<Instant> = None;
    // Past it nothing more comes of one that has exited.
    let mut drained: Option<Instant> = None;
    let mut killed = false;
    while open || exit.is_none() {
        tokio::select! {
            biased;
            // One that does not read its prompt tells by its exit why.
            _ = &mut feeding, if !fed => fed = true,
            () = until(deadline) => {
                if exit.is_none() && !std::mem::replace(&mut killed, true) {
                    process.end(Duration::ZERO).await;
                } else if open {
                    // A stranger holds its output.
                    open = false;
                } else {
                    break;
                }
                deadline = Some(after(DRAIN_MS));
            }
            () = until(reach.until()) => {
                return Err(model_failed(kind, &reach.words(), None).with("retryable", true));
            }
            line = lines.next(), if open => match line {
                Ok(Some(line)) => {
                    for told in read(reader, line, &mut odd) {
                        // It has begun, and so it has its prompt: one that is written may still be in the pipe.
                        prompt.given();
                        reach.hears(&told, Instant::now());
                        if telling.tell(told, reader.said()).await? {
                            deadline = deadline.or_else(|| Some(after(EXIT_MS)));
                        }
                    }
                    // One that has answered, or has exited, gets its time anyway.
                    if deadline.is_none() && odd.in_a_row >= ODD_LINES_MAX {
                        let first = odd.first.unwrap_or_default();
                        return Err(internal(format!(
                            "the agent wrote {ODD_LINES_MAX} lines in a row that are no JSON objects; the first: {first}"
                        )));
                    }
                }
                Ok(None) | Err(_) => {
                    open = false;
                    deadline = deadline.or_else(|| Some(after(EXIT_MS)));
                }
            },
            exited = process.exited(), if exit.is_none() => {
                exit = Some(exited.map_err(|error| internal(format!("the agent cannot be waited for: {error}")))?);
                (deadline, drained) = (Some(after(EXIT_MS)), Some(after(DRAIN_MS)));
            }
            () = until(drained) => open = false,
        }
    }
    if odd.lines > ODD_LINES_TOLD {
        crate::complain(&format!("the agent wrote {} lines that are no JSON objects", odd.lines));
    }
    let exit = exit.ok_or_else(|| internal("the agent did not end"))?;
    telling.run.wrote_to_stderr(exit.stderr.lines().last());
    let Some(first) = odd.first else { return reader.end(&exit) };
    telling.run.not_understood(&first);
    reader.end(&exit).map_err(|mut error| {
        error.message =
            format!("{}\nIt wrote {} lines that are no JSON objects; the first: {first}", error.message, odd.lines);
        error
    })
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn after(ms: u64) -> Instant {
    Instant::now() + Duration::from_millis(ms)
}

/// Writes the prompt, and closes stdin behind it.
async fn feed(mut stdin: ChildStdin, text: String) -> io::Result<()> {
    stdin.write_all(text.as_bytes()).await?;
    stdin.flush().await
}

/// Lines that are no JSON objects.
#[derive(Default)]
struct Odd {
    lines: u64,
    /// Since the last one that is.
    in_a_row: u64,
    /// The beginning of the first of them.
    first: Option<String>,
}

/// What a line tells; one that is no JSON object is passed over, and told to people.
fn read(reader: &mut dyn Reader, line: Line, odd: &mut Odd) -> Vec<Told> {
    let shown = match line {
        Line::Whole(line) if line.trim().is_empty() => return Vec::new(),
        Line::Whole(line) => match serde_json::from_str::<Value>(&line) {
            Ok(value) if value.is_object() => {
                odd.in_a_row = 0;
                return reader.line(&value);
            }
            Ok(_) | Err(_) => excerpt(line.as_bytes()),
        },
        Line::TooLong { start, bytes } => format!("{start} … ({bytes} bytes)"),
    };
    odd.lines += 1;
    odd.in_a_row += 1;
    if odd.lines <= ODD_LINES_TOLD {
        crate::complain(&format!("the agent wrote what is no JSON object: {shown}"));
    }
    odd.first.get_or_insert(shown);
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_is_told_by_an_id_of_its_own() {
        let mut calls = Calls::default();
        let call = |id: &str| AgentEvent::ToolCall {
            call_id: id.to_owned(),
            tool_name: "Bash".to_owned(),
            arguments: Value::Null,
        };
        let result = |id: &str| AgentEvent::ToolResult { call_id: id.to_owned(), content: Vec::new(), is_error: false };
        for (event, want) in [
            (call("1"), "1"),
            (result("1"), "1"),
            // An agent that counts anew.
            (call("1"), "1#1"),
            (result("1"), "1#1"),
            (call("1"), "1#2"),
            (call("2"), "2"),
            (result("1"), "1#2"),
            (result("never"), "never"),
            (call(""), "call#3"),
            (result(""), "call#3"),
        ] {
            match calls.told(event) {
                AgentEvent::ToolCall { call_id, .. } | AgentEvent::ToolResult { call_id, .. } => {
                    assert_eq!(call_id, want)
                }
                other => panic!("{other:?}"),
            }
        }
        (0..2 * OPEN_MAX).for_each(|at| drop(calls.told(call(&format!("c{at}")))));
        assert_eq!(calls.open.len(), OPEN_MAX);
    }
}
