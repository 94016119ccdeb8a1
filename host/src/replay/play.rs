//! The host's side of a recording: asks what was asked, compares what comes, and answers what was answered.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use assistant_protocol::ids::MessageId;
use assistant_protocol::methods::{
    Cancel, DeliverMessage, Initialize, Method, OnLlmRequest, OnToolCall, Run, Shutdown,
};
use assistant_protocol::peer::{self, CallError, LinkEnd, LinkReport, Peer, PeerLimits};
use assistant_protocol::types::{
    CancelParams, DeliverMessageParams, Empty, HostCapabilities, InitializeParams, MAX_FRAME_BYTES, Mail,
    PROTOCOL_VERSION, Program, RunParams,
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::ChildStderr;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::expected::{Expected, Key, compare_answers};
use super::recording::{Known, Recording, RunAnswer, Step};
use super::stage::{Stage, State, service};
use super::{Difference, How, NoReplay, Report, What};
use crate::launcher::{self, Child, RunnerCommand, Tail, launch_apart};

/// How long a runner may take to end once it is asked to, and its last words to come.
const END_WITHIN: Duration = Duration::from_secs(2);
/// Bytes of stderr that are kept, and of a line of it.
const STDERR_BYTES: usize = 8 * 1024;
/// Lines of stderr that a difference quotes.
const STDERR_LINES: usize = 5;

struct Player<'a> {
    recording: &'a Recording,
    wait: Duration,
    stage: Arc<Stage>,
    peer: Peer,
    link: JoinHandle<()>,
    child: Child,
    stderr: JoinHandle<String>,
    /// Requests that have to have come when a run ends.
    due: Vec<Key>,
    given: HashMap<MessageId, JoinHandle<Result<Empty, CallError>>>,
    runs: usize,
    /// Calls of tools that are recorded as asked and not yet as answered.
    open: usize,
    /// The runner has all its answers, and what it asks next has not come.
    has_all: bool,
    /// `cancel` came then: whether the runner had taken those answers in before it, nobody knows.
    crossed: bool,
}

/// Plays a recording to a runner.
pub(super) async fn play(recording: &Recording, runner: &RunnerCommand, how: How) -> Result<Report, NoReplay> {
    let launched = launch_apart(runner, &how.dir).map_err(NoReplay::Launch)?;
    let (expected, keys) = Expected::of(recording);
    let stage = Arc::new(Stage::new(recording.thread_id, expected, !recording.complete()));
    let limits = PeerLimits::for_frames(MAX_FRAME_BYTES);
    let (peer, link) = peer::connect(launched.stdout, launched.stdin, service(stage.clone()), limits);
    let mut player = Player {
        recording,
        wait: how.wait,
        link: tokio::spawn(watched(link, stage.clone())),
        stage,
        peer,
        child: launched.child,
        stderr: tokio::spawn(last_words(launched.stderr)),
        due: Vec::new(),
        given: HashMap::new(),
        runs: 0,
        open: 0,
        has_all: false,
        crossed: false,
    };
    let mut name = String::new();
    let difference = match player.all(&keys, &mut name).await {
        Ok(()) => player.stage.state().difference.take(),
        Err(difference) => Some(difference),
    };
    let report = player.report(name, difference.map(|difference| *difference));
    player.end(report.identical()).await;
    Ok(report)
}

/// Runs a link, and tells when it has ended.
async fn watched(link: impl Future<Output = LinkReport>, stage: Arc<Stage>) {
    let report = link.await;
    tracing::debug!(?report, "the link of a recording has ended");
    let mut state = stage.state();
    state.closed = true;
    if let LinkEnd::Noise { count } = report.end {
        let first = report.oddities.junk.first().cloned().unwrap_or_default();
        state.noise = Some(format!("it wrote {count} lines that are no messages, the first: {first}"));
    }
    drop(state);
    stage.news.notify_one();
}

/// The end of what a runner writes to stderr, which is read all the time.
async fn last_words(stderr: ChildStderr) -> String {
    let (mut tail, mut lines) = (Tail::new(STDERR_BYTES), BufReader::new(stderr));
    let mut line = Vec::new();
    while matches!((&mut lines).take(STDERR_BYTES as u64).read_until(b'\n', &mut line).await, Ok(read) if read > 0) {
        tail.push(String::from_utf8_lossy(&line).trim_end().to_owned());
        line.clear();
    }
    tail.last(STDERR_LINES)
}

type Same = Result<(), Box<Difference>>;

impl Player<'_> {
    async fn all(&mut self, keys: &[Option<Key>], name: &mut String) -> Same {
        *name = self.shake_hands().await?;
        for (step, key) in self.recording.steps.iter().zip(keys) {
            self.step(step, key.as_ref()).await?;
        }
        self.all_due().await
    }

    async fn step(&mut self, step: &Step, key: Option<&Key>) -> Same {
        self.note(step);
        match (step, key) {
            (Step::Run { query }, _) => self.run(query.clone()),
            (Step::Ran { answer }, _) => return self.ran(answer).await,
            (Step::Cancel(cancel), _) => return self.cancel(cancel.clone()).await,
            (Step::Deliver { message }, _) => self.deliver(message),
            (Step::Delivered { message_id }, _) => return self.delivered(*message_id).await,
            (Step::ModelAsked(_), Some(key)) if !self.stopping() => return self.came(key).await,
            (Step::ToolAsked { .. }, Some(key)) if !self.stopping() => self.due.push(key.clone()),
            (
                Step::ModelAnswered { answer, .. } | Step::ToolAnswered { answer, .. } | Step::Other { answer, .. },
                Some(key),
            ) => {
                if !self.stopping() {
                    self.came(key).await?;
                }
                self.stage.give(key, answer);
            }
            // Behind a cancel nothing need come; what is answered and never was asked was given up before it began.
            (Step::ModelAsked(_) | Step::ToolAsked { .. }, _) => {}
            (Step::ModelAnswered { .. } | Step::ToolAnswered { .. } | Step::Other { .. }, None) => {}
        }
        Ok(())
    }

    /// Keeps in mind what `cancel` may cross with.
    fn note(&mut self, step: &Step) {
        match step {
            Step::Run { .. } => (self.open, self.has_all, self.crossed) = (0, false, false),
            Step::ModelAsked(_) => self.has_all = false,
            Step::ToolAsked { .. } => (self.open, self.has_all) = (self.open + 1, false),
            Step::ToolAnswered { .. } => {
                self.open = self.open.saturating_sub(1);
                self.has_all = self.open == 0;
            }
            Step::ModelAnswered { .. } | Step::Other { .. } => self.has_all = self.open == 0,
            Step::Cancel(_) => self.crossed = self.has_all,
            Step::Ran { .. } | Step::Deliver { .. } | Step::Delivered { .. } => {}
        }
    }

    fn stopping(&self) -> bool {
        self.stage.state().stopping
    }

    async fn shake_hands(&mut self) -> Result<String, Box<Difference>> {
        let params = InitializeParams {
            protocol_version: PROTOCOL_VERSION,
            process_id: self.recording.process_id,
            thread_id: self.recording.thread_id,
            host: Program { name: "assistant-host".into(), version: env!("CARGO_PKG_VERSION").into() },
            max_frame_bytes: MAX_FRAME_BYTES,
            capabilities: HostCapabilities::default(),
            limits: self.recording.limits.clone(),
        };
        let place = "the answer to initialize".to_owned();
        let of = |what, now| Box::new(Difference::of(place.clone(), what, Value::Null, now));
        match timeout(self.wait, self.peer.call::<Initialize>(&params)).await {
            Err(_) => Err(of(What::Missing, Value::Null)),
            Ok(Err(CallError::Closed)) => Err(self.ended(place).await),
            Ok(Err(error)) => Err(of(What::Refused, json!(error.to_string()))),
            Ok(Ok(told)) if told.protocol_version != PROTOCOL_VERSION => {
                Err(of(What::Refused, json!({ "protocol_version": told.protocol_version })))
            }
            Ok(Ok(told)) => {
                self.peer.set_their_max_frame_bytes(told.max_frame_bytes);
                Ok(format!("{} {}", told.runner.name, told.runner.version).trim().to_owned())
            }
        }
    }

    fn run(&mut self, query: Option<String>) {
        let first = self.recording.run.clone();
        let params = match self.runs {
            0 => first,
            _ => RunParams { query, context: None, inputs: None, history: None, ..first },
        };
        self.runs += 1;
        let mut state = self.stage.state();
        (state.ran, state.stopping, state.runs) = (None, false, true);
        drop(state);
        let (peer, stage) = (self.peer.clone(), self.stage.clone());
        tokio::spawn(async move {
            let answer = peer.call::<Run>(&params).await;
            let answer = match answer {
                Ok(result) => Ok(RunAnswer::Result {
                    stop_reason: json!(result.stop_reason),
                    content: Known::Whole(json!(result.content)),
                    structured: result.structured.map(Known::Whole),
                }),
                Err(CallError::Answered(error)) => Ok(RunAnswer::Error(error.into())),
                Err(error) => Err(error),
            };
            {
                let mut state = stage.state();
                (state.ran, state.runs) = (Some(answer), false);
            }
            stage.news.notify_one();
        });
    }

    async fn ran(&mut self, recorded: &RunAnswer) -> Same {
        if !self.stopping() {
            self.all_due().await?;
        }
        let place = format!("the answer to run {}", self.runs);
        let answer = self.until(&place, |state| state.ran.take(), |_| None).await?;
        match answer {
            Ok(now) => compare_answers(self.runs, recorded, &now, self.crossed)
                .map_or(Ok(()), |difference| Err(Box::new(difference))),
            Err(CallError::Closed) => Err(self.ended(place).await),
            Err(error) => Err(Box::new(Difference::of(place, What::Refused, Value::Null, json!(error.to_string())))),
        }
    }

    async fn cancel(&mut self, cancel: CancelParams) -> Same {
        self.all_due().await?;
        self.stage.state().stopping = true;
        let peer = self.peer.clone();
        // What comes of it is seen by the answer to `run`.
        tokio::spawn(async move { peer.call::<Cancel>(&cancel).await });
        Ok(())
    }

    fn deliver(&mut self, message: &Mail) {
        let (peer, params) = (self.peer.clone(), DeliverMessageParams::from(message.clone()));
        let given = tokio::spawn(async move { peer.call::<DeliverMessage>(&params).await });
        self.given.insert(message.id, given);
    }

    async fn delivered(&mut self, message: MessageId) -> Same {
        let Some(given) = self.given.remove(&message) else { return Ok(()) };
        let place = format!("the answer to deliver_message of {message}");
        match timeout(self.wait, given).await {
            Ok(Ok(Ok(_))) => Ok(()),
            Ok(Ok(Err(CallError::Closed)) | Err(_)) => Err(self.ended(place).await),
            Ok(Ok(Err(error))) => {
                Err(Box::new(Difference::of(place, What::Refused, Value::Null, json!(error.to_string()))))
            }
            Err(_) => Err(Box::new(Difference::of(place, What::Missing, Value::Null, Value::Null))),
        }
    }

    async fn all_due(&mut self) -> Same {
        for key in std::mem::take(&mut self.due) {
            self.came(&key).await?;
        }
        Ok(())
    }

    /// Waits until a request has come.
    async fn came(&mut self, key: &Key) -> Same {
        let (place, params) = {
            let state = self.stage.state();
            let Some(wanted) = state.expected.find(key) else { return Ok(()) };
            (wanted.place.clone(), wanted.params.clone())
        };
        let run = self.runs;
        let instead = |state: &State| {
            let now = match state.ran.as_ref()? {
                Ok(answer) => json!(answer),
                Err(_) => return None,
            };
            let difference = Difference::of(place.clone(), What::Missing, params.clone(), now);
            Some(difference.with_note(format!("run {run} was answered instead")))
        };
        self.until(&place, |state| state.expected.find(key).is_none_or(|wanted| wanted.came).then_some(()), instead)
            .await
    }

    /// Waits for something: until it is there, something differs or came instead, the link ends, or the time is up.
    async fn until<T>(
        &mut self,
        place: &str,
        ready: impl Fn(&mut State) -> Option<T>,
        instead: impl Fn(&State) -> Option<Difference>,
    ) -> Result<T, Box<Difference>> {
        let (stage, wait) = (self.stage.clone(), self.wait);
        let there = async {
            loop {
                {
                    let mut state = stage.state();
                    if let Some(difference) = state.difference.take() {
                        return Err(difference);
                    }
                    if let Some(there) = ready(&mut state) {
                        return Ok(Some(there));
                    }
                    if let Some(difference) = instead(&state) {
                        return Err(Box::new(difference));
                    }
                    if state.closed {
                        return Ok(None);
                    }
                }
                stage.news.notified().await;
            }
        };
        match timeout(wait, there).await {
            Ok(Ok(Some(there))) => Ok(there),
            Ok(Ok(None)) => Err(self.ended(place.to_owned()).await),
            Ok(Err(difference)) => Err(difference),
            Err(_) => {
                let difference = Difference::of(place.to_owned(), What::Missing, Value::Null, Value::Null);
                Err(Box::new(difference.with_note(format!("nothing came for {} ms", wait.as_millis()))))
            }
        }
    }

    /// The runner has ended: how, and what it said last.
    async fn ended(&mut self, before: String) -> Box<Difference> {
        // What the link has to tell is there once its task is over.
        drop(timeout(END_WITHIN, &mut self.link).await);
        let noise = self.stage.state().noise.take();
        let how = match (noise, timeout(END_WITHIN, self.child.exited()).await) {
            (Some(noise), _) => noise,
            (None, Ok(Ok(status))) => format!("it exited with {}", launcher::code(status)),
            (None, Ok(Err(why))) => why,
            (None, Err(_)) => "it closed its pipe".to_owned(),
        };
        self.child.kill();
        let said = timeout(END_WITHIN, &mut self.stderr).await.ok().and_then(Result::ok).unwrap_or_default();
        let note = if said.is_empty() { how } else { format!("{how}; it said: {said}") };
        Box::new(Difference::of(before, What::Ended, Value::Null, Value::Null).with_note(note))
    }

    fn report(&self, runner: String, difference: Option<Difference>) -> Report {
        let state = self.stage.state();
        let came = |method: &str| state.expected.0.iter().filter(|one| one.came && one.method == method).count();
        let all = state.expected.0.iter().filter(|one| one.came).count();
        let (model_calls, tool_calls) = (came(OnLlmRequest::NAME), came(OnToolCall::NAME));
        let complete = self.recording.complete();
        let open = usize::from(difference.is_some() || !complete);
        Report {
            process_id: self.recording.process_id,
            runner,
            complete,
            recorded: self.recording.recorded_as(),
            runs: self.runs.saturating_sub(open),
            model_calls,
            tool_calls,
            other_requests: all - model_calls - tool_calls,
            difference,
        }
    }

    /// Ends the runner; one that did all that was recorded is asked to.
    async fn end(mut self, ask: bool) {
        if ask && !self.link.is_finished() {
            // Whatever it answers, it is ended.
            drop(timeout(END_WITHIN, self.peer.call::<Shutdown>(&Empty {})).await);
            self.peer.close();
            drop(timeout(END_WITHIN, self.child.exited()).await);
        }
        self.child.kill();
        self.link.abort();
        self.stderr.abort();
        drop(timeout(END_WITHIN, self.child.exited()).await);
        for (_, given) in self.given.drain() {
            given.abort();
        }
    }
}
