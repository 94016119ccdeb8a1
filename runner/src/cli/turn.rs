//! One run of an agent's program: the prompt goes in, what it writes is told to the host, and its end is an answer.

use std::io;
use std::time::Duration;

use assistant_protocol::error::RpcError;
use assistant_protocol::types::AgentEvent;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::time::{Instant, sleep_until};

use super::kind::{Reader, Start, Told};
use super::{CliAgent, internal};
use crate::adapter::bridge::Bridge;
use crate::adapter::lines::{LINE_BYTES_MAX, Line, Lines, excerpt};
use crate::adapter::process::{Launch, Process};
use crate::adapter::{Prompt, Run, TurnEnd};

/// How long a program may take to exit once its turn is done, or its output is closed, in milliseconds.
const EXIT_MS: u64 = 5_000;
/// How long what is left of its output may take once it has exited, in milliseconds.
const DRAIN_MS: u64 = 500;
/// What stands before a prompt that an agent would take for one of its commands.
const NO_COMMAND: &str = "Task: ";
/// Lines that are no JSON objects of which is told; of more the number only.
const ODD_LINES_TOLD: u64 = 3;

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
        let mut reader = (self.kind.reader)(&start);
        let (mut text, pictures) = prompt.text();
        if pictures > 0 {
            plan.lacks("pictures", format!("{} takes them by path only; their lines tell of them", self.kind.title));
        }
        if let Some(before) = plan.before_prompt {
            text = format!("{before}\n\n{text}");
        }
        if text.starts_with('/') {
            // No command of the agent's, as those of its interactive mode are.
            text.insert_str(0, NO_COMMAND);
        }
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
        let played = play(process, run, &mut prompt, text, reader.as_mut(), &mut self.session);
        let played = run.with_tools(bridge, self.kind.asks_permission, played).await;
        self.used = reader.used();
        if let (Err(_), Some(event)) = (&played, reader.unpaid()) {
            // It may be the host that has ended it: then it wants no more of it.
            let _ = run.tell(event).await;
        }
        if played.is_ok() {
            self.process = None;
        }
        played
    }
}

/// Feeds and reads a program until it has exited.
async fn play(
    process: &mut Process,
    run: &Run,
    prompt: &mut Prompt,
    text: String,
    reader: &mut dyn Reader,
    session: &mut Option<String>,
) -> Result<TurnEnd, RpcError> {
    let lost = || internal("the agent was started without pipes");
    let (stdin, stdout) = (process.stdin.take().ok_or_else(lost)?, process.stdout.take().ok_or_else(lost)?);
    let mut lines = Lines::new(stdout, LINE_BYTES_MAX);
    let mut feeding = Box::pin(feed(stdin, text));
    let (mut fed, mut open, mut exit) = (false, true, None);
    let mut odd = 0;
    // Past it the program has had the time that it gets.
    let mut deadline: Option<Instant> = None;
    while open || exit.is_none() {
        let late = async {
            match deadline {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            // One that does not read its prompt tells by its exit why.
            _ = &mut feeding, if !fed => fed = true,
            line = lines.next(), if open => match line {
                Ok(Some(line)) => for told in read(reader, line, &mut odd) {
                    // It has begun, and so it has its prompt: one that is written may still be in the pipe.
                    prompt.given();
                    match told {
                        Told::Event(event) => run.tell(event).await?,
                        Told::Progress(text) => run.progress(text, None).await,
                        Told::Session(id) if session.as_ref() != Some(&id) => {
                            *session = Some(id.clone());
                            run.tell(AgentEvent::Session { session_id: id }).await?;
                        }
                        Told::Session(_) => {}
                        Told::Failed(error) => return Err(error),
                        Told::Done => deadline = deadline.or_else(|| Some(after(EXIT_MS))),
                    }
                },
                Ok(None) | Err(_) => {
                    open = false;
                    deadline = deadline.or_else(|| Some(after(EXIT_MS)));
                }
            },
            exited = process.exited(), if exit.is_none() => {
                exit = Some(exited.map_err(|error| internal(format!("the agent cannot be waited for: {error}")))?);
                deadline = Some(after(DRAIN_MS));
            }
            () = late => match exit {
                // A stranger holds its output.
                Some(_) => open = false,
                None => {
                    process.end(Duration::ZERO).await;
                    deadline = Some(after(DRAIN_MS));
                }
            },
        }
    }
    if odd > ODD_LINES_TOLD {
        crate::complain(&format!("the agent wrote {odd} lines that are no JSON objects"));
    }
    let exit = exit.ok_or_else(|| internal("the agent did not end"))?;
    reader.end(&exit)
}

fn after(ms: u64) -> Instant {
    Instant::now() + Duration::from_millis(ms)
}

/// Writes the prompt, and closes stdin behind it.
async fn feed(mut stdin: ChildStdin, text: String) -> io::Result<()> {
    stdin.write_all(text.as_bytes()).await?;
    stdin.flush().await
}

/// What a line tells; one that is no JSON object is passed over, and told to people.
fn read(reader: &mut dyn Reader, line: Line, odd: &mut u64) -> Vec<Told> {
    let shown = match line {
        Line::Whole(line) if line.trim().is_empty() => return Vec::new(),
        Line::Whole(line) => match serde_json::from_str::<Value>(&line) {
            Ok(value) if value.is_object() => return reader.line(&value),
            Ok(_) | Err(_) => excerpt(line.as_bytes()),
        },
        Line::TooLong { start, bytes } => format!("{start} … ({bytes} bytes)"),
    };
    *odd += 1;
    if *odd <= ODD_LINES_TOLD {
        crate::complain(&format!("the agent wrote what is no JSON object: {shown}"));
    }
    Vec::new()
}
