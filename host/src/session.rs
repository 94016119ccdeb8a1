//! One running runner: launched, told what to do, watched, and ended in one way.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use assistant_protocol::ids::ProcessId;
use assistant_protocol::methods::{Cancel, Initialize, Run, Shutdown};
use assistant_protocol::peer::{self, CallError, Peer, PeerLimits};
use assistant_protocol::types::{
    CancelParams, Empty, HostCapabilities, InitializeParams, MAX_FRAME_BYTES, PROTOCOL_VERSION, Program, RunParams,
};
use serde_json::json;
use tokio::time::{Instant, timeout, timeout_at};

use crate::events;
use crate::host::Host;
use crate::launcher::{self, Child, Launched};
use crate::limits::Limits;
use crate::process_table::{self, End, Process, Reason, Settled, Took};
use crate::store::{StoreError, Tx};
use crate::text::cut;
use crate::tools::grants::Unavailable;
use crate::worktrees;

mod account;
mod agent;
mod answer;
mod answered;
mod begin;
mod context;
mod deliver;
mod entered;
mod given;
mod hand_in;
mod judge;
mod kit;
mod link;
mod memory;
mod permit;
mod recorded;
mod stall;
mod stderr;
mod stored;
mod tool_call;
mod turn;
mod watch;
mod went;

use answer::Answering;
use begin::{Loaded, failed, first_run, launch_failed, load};
use deliver::Delivery;
use entered::entered;
use kit::Kit;
use link::Link;
use recorded::told_limits;
use stall::Stalled;
use stored::{STORE_AGAIN, stored};
use watch::{LinkTask, Stop, cut_bytes, told_to_stop};
use went::{Outcome, Went};

/// The most that a host that closes waits for a runner, milliseconds.
const CLOSING_MS: u64 = 500;
/// How long a killed runner is waited for.
const KILLED_WITHIN: Duration = Duration::from_secs(10);

/// Runs a process that is `starting` to its end. All errors become the end of the process.
pub(crate) async fn run(host: Host, process: ProcessId) {
    let _at_work = host.worktrees().at_work(process);
    let Err(error) = run_to_the_end(&host, process).await else { return };
    tracing::error!(%error, %process, "a process could not be carried on");
    // It ends all the same, as soon as the store takes that: nothing may stay as if it ran.
    let error = format!("the host could not carry it on: {error}");
    while let Err(again) = end(&host, process, failed(Reason::HostLost, error.clone())).await {
        tracing::error!(error = %again, %process, "the end of a process is not stored yet");
        tokio::select! {
            () = tokio::time::sleep(STORE_AGAIN) => {}
            () = host.closing().cancelled() => return,
        }
    }
}

async fn run_to_the_end(host: &Host, process: ProcessId) -> Result<(), StoreError> {
    let Some(mut loaded) = load(host, process).await? else { return Ok(()) };
    let answering = match loaded.answering.take().transpose() {
        Ok(answering) => answering,
        Err(error) => return end(host, process, failed(Reason::OutputInvalid, error)).await,
    };
    if let Some(how) = entered(host, &mut loaded).await? {
        return end(host, process, how).await;
    }
    let permits = host.launch_permits(loaded.row.launcher.is_some());
    let permit = permits.acquire().await.map_err(|_| StoreError::Closed)?;
    let by = host.runner_of(&loaded.row).and_then(|by| Ok((by, host.site_of(&loaded.row)?)));
    let launch = |((command, passes), site): ((_, _), _)| launcher::launch(&command, &passes, &site, &loaded.row);
    let mut runner = match by.and_then(launch) {
        Ok(launched) => Runner::new(host, &loaded.row, loaded.limits, answering, launched),
        Err(error) => return end(host, process, launch_failed(&loaded.row, error)).await,
    };
    let started = runner.start(&loaded).await;
    drop(permit);
    let ended = match started {
        Ok(()) => {
            let lacking = runner.fit_out(&loaded).await;
            let tools = runner.link.kit().specs();
            let known = loaded.definition.system_prompt.len();
            let agent = runner.link.briefing();
            runner.drive(first_run(loaded, tools, lacking, agent), known).await
        }
        Err(error) => runner.end(error).await,
    };
    let finished = runner.finish().await;
    ended.and(finished)
}

async fn end(host: &Host, process: ProcessId, how: End) -> Result<(), StoreError> {
    stored(host, process, move |tx| process_table::end(tx, process, how.clone()).map(|_| ())).await
}

struct Runner {
    host: Host,
    process: ProcessId,
    limits: Limits,
    /// By the clock of limits, milliseconds.
    deadline: u64,
    child: Child,
    peer: Peer,
    link: Arc<Link>,
    running: LinkTask,
    stderr: stderr::Lines,
    /// Gives messages to a runner that makes no model calls.
    delivery: Option<Delivery>,
}

impl Runner {
    fn new(host: &Host, row: &Process, limits: Limits, answering: Option<Answering>, launched: Launched) -> Self {
        let link = Arc::new(Link::new(host.clone(), row, limits, answering));
        let bounds =
            PeerLimits { noise_lines: u64::from(limits.noise_lines), ..PeerLimits::for_frames(MAX_FRAME_BYTES) };
        let (peer, running) = peer::connect(launched.stdout, launched.stdin, link::service(link.clone()), bounds);
        let running = LinkTask::new(running, launched.child.exited());
        Self {
            host: host.clone(),
            process: row.id,
            limits,
            deadline: host.awake().now_ms().saturating_add(limits.wall_ms),
            child: launched.child,
            peer,
            link,
            running,
            stderr: stderr::Lines::read(host.clone(), row.id, launched.stderr, &limits),
            delivery: None,
        }
    }

    /// Shakes hands. An error is the end of the process.
    async fn start(&mut self, Loaded { row, session, .. }: &Loaded) -> Result<(), End> {
        let params = InitializeParams {
            protocol_version: PROTOCOL_VERSION,
            process_id: row.id,
            thread_id: row.thread,
            host: Program { name: "assistant-host".into(), version: env!("CARGO_PKG_VERSION").into() },
            max_frame_bytes: MAX_FRAME_BYTES,
            capabilities: HostCapabilities::default(),
            limits: told_limits(&self.limits),
        };
        let by = self.host.launcher(row.launcher.as_deref()).unwrap_or_default();
        let within = by.map_or(Duration::from_millis(self.limits.launch_ms), |by| by.within(self.limits.launch_ms));
        let peer = self.peer.clone();
        let answered = tokio::select! {
            answered = timeout(within, peer.call::<Initialize>(&params)) => answered,
            _ = told_to_stop(&self.host, self.process) => return Err(process_table::cancel_marked()),
        };
        let launch_failed = |error: String| launch_failed(row, error);
        match answered {
            Err(_) => Err(launch_failed(self.too_slow(within).await)),
            Ok(Err(CallError::Closed)) => Err(launch_failed(self.how_it_went().await.1)),
            Ok(Err(error)) => {
                let why = cut(&error.to_string(), judge::ERROR_CHARS_MAX);
                Err(launch_failed(format!("the runner refused `initialize`: {why}")))
            }
            Ok(Ok(told)) if told.protocol_version != PROTOCOL_VERSION => Err(launch_failed(format!(
                "the runner speaks version {} of the protocol, this host version {PROTOCOL_VERSION}",
                told.protocol_version
            ))),
            Ok(Ok(told)) => {
                self.peer.set_their_max_frame_bytes(told.max_frame_bytes);
                let process = self.process;
                self.delivery = told.capabilities.messages.then(|| Delivery::new(&self.host, process, &self.peer));
                let session = session.as_ref().map(|(session, _)| session.clone());
                let agent = told.capabilities.agent;
                if agent {
                    self.link.runs_agent(session.clone());
                }
                let running = self.host.store().write_later(move |tx| {
                    if agent {
                        process_table::mark_agent(tx, process, session.as_deref())?;
                    }
                    process_table::running(tx, process)
                });
                let running = running.await;
                running.map_err(|error| launch_failed(error.to_string()))
            }
        }
    }

    /// Gets the tools of the servers that the definition names; what cannot be had is given back.
    async fn fit_out(&mut self, loaded: &Loaded) -> Vec<Unavailable> {
        let definition = &loaded.definition;
        let own = || Kit::own(&self.host, &self.link.row, definition, loaded.profile, self.link.is_agent());
        self.link.trusts_agent(definition).await;
        let (kit, lacking) = tokio::select! {
            fitted = own().with_servers(&self.link, definition) => fitted,
            // It is told when it runs, which it does at once.
            _ = told_to_stop(&self.host, self.process) => (own(), Vec::new()),
        };
        self.link.fit_out(kit.with_answer(self.link.answering.as_ref()));
        lacking
    }

    /// Runs, settles, and runs again while there is mail, until the process has ended. Of the first prompt, the first
    /// `known` bytes stand in the definition.
    async fn drive(&mut self, first: RunParams, known: usize) -> Result<(), StoreError> {
        // The runner keeps its conversation: a history given again would take the place of what was said since.
        let again = RunParams { query: None, context: None, inputs: None, history: None, ..first.clone() };
        let mut params = first;
        loop {
            self.link.begin_run();
            if let Some(brief) = &mut params.agent {
                brief.session = self.link.agent_session();
            }
            self.link.runs(&params, known).await;
            self.link.asks_agent(&params).await?;
            let (end, pictures) = match self.run_once(&params).await {
                Outcome::Answered(answer) => {
                    self.link.ran(&answer).await;
                    let (answer, pictures) = self.put_away(answer).await?;
                    (self.judge(answer).await, pictures)
                }
                Outcome::Stopped(stop, handed_in) => return self.stop(stop, handed_in).await,
            };
            worktrees::look(&self.host, &self.link.row).await;
            let Went::On(late) = self.stop_giving().await? else { return Ok(()) };
            let took = if self.delivery.is_some() { Took::Given { late } } else { Took::ByModel(self.link.took()) };
            self.link.end_run().await;
            let process = self.process;
            let unfit = if let End::Unfit { words, .. } = &end { Some(answer::once_more(words)) } else { None };
            let settle = move |tx: &mut Tx<'_>| {
                process_table::keep_pictures(tx, process, &pictures)?;
                process_table::settle(tx, process, &end, took)
            };
            let settled = stored(&self.host, process, settle).await?;
            match settled {
                Settled::Ended => return Ok(()),
                Settled::Again => {}
                Settled::Repair => {
                    let Went::On(()) = self.give_queued().await? else { return Ok(()) };
                    params = RunParams { query: unfit, ..again.clone() };
                    continue;
                }
                Settled::Unsettled => {
                    let Went::On(()) = self.wait_for_mail().await? else { return Ok(()) };
                }
            }
            let Went::On(()) = self.give_queued().await? else { return Ok(()) };
            self.link.must_take();
            params = again.clone();
        }
    }

    /// Calls `run` and waits for its answer. One that is to stop is asked to, and has its grace to hand in what it has.
    async fn run_once(&mut self, params: &RunParams) -> Outcome {
        let peer = self.peer.clone();
        let run = peer.call_in_order::<Run>(params);
        tokio::pin!(run);
        // Sent first: a message belongs to the task that came before it.
        if let Poll::Ready((_, answer)) = futures::poll!(&mut run) {
            return Outcome::Answered(answer);
        }
        self.delivery.iter().for_each(Delivery::open);
        let stop = tokio::select! {
            biased;
            (place, answer) = &mut run => {
                self.delivery.iter_mut().for_each(|delivery| delivery.close(place));
                return Outcome::Answered(answer);
            }
            refused = deliver::refused(self.delivery.as_ref()) => return Outcome::Answered(Err(refused)),
            stop = told_to_stop(&self.host, self.process) => stop,
            () = hand_in::time_is_up(&self.link, self.deadline) => Stop::TimedOut,
            stop = stall::watch(&self.link, &self.peer) => stop,
        };
        let grace_ms = match stop {
            Stop::Ended | Stop::Stalled(Stalled::Deaf) => 0,
            Stop::Cancelled | Stop::TimedOut | Stop::Stalled(_) => self.patience(self.limits.grace_ms),
        };
        let cancel = CancelParams { reason: self.why(stop), grace_ms };
        self.link.cancels(&cancel).await;
        let asked = async { tokio::join!(peer.call::<Cancel>(&cancel), run).1.1 };
        let handed_in = timeout(Duration::from_millis(grace_ms), asked).await;
        if handed_in.is_err() && grace_ms > 0 {
            self.link
                .record(events::Kind::Link, json!({ "limit": "grace_ms", "unanswered": "cancel", "ms": grace_ms }))
                .await;
        }
        if let Ok(answer) = &handed_in {
            self.link.ran(answer).await;
        }
        let text = handed_in.ok().and_then(Result::ok).map(|result| result.content.as_text().into_owned());
        let text = text.map(|text| cut_bytes(text, self.limits.result_bytes));
        Outcome::Stopped(stop, text.filter(|text| !text.trim().is_empty()))
    }

    /// A wait for the runner; a host that closes has little.
    fn patience(&self, ms: u64) -> u64 {
        if self.host.closing().is_cancelled() { ms.min(CLOSING_MS) } else { ms }
    }

    fn why(&self, stop: Stop) -> String {
        match stop {
            Stop::Cancelled => "cancelled".to_owned(),
            Stop::Ended => "the process has ended".to_owned(),
            Stop::TimedOut => {
                format!("limit wall_ms: {} ms are over; resume it, or give it less to do", self.limits.wall_ms)
            }
            Stop::Stalled(how) => how.words(&self.limits),
        }
    }

    /// Ends a process that is to stop, with what it had.
    async fn stop(&mut self, stop: Stop, handed_in: Option<String>) -> Result<(), StoreError> {
        self.link.end_run().await;
        let accepted = self.link.answering.as_ref().and_then(Answering::accepted);
        let partial = accepted.or(handed_in).or_else(|| self.link.partial());
        let how = match stop {
            Stop::Cancelled | Stop::Ended => End::Cancelled { cause: process_table::Cause::Requested, partial },
            Stop::TimedOut => End::Failed { reason: Reason::TimedOut, error: self.why(stop), partial },
            Stop::Stalled(_) => End::Failed { reason: Reason::Stalled, error: self.why(stop), partial },
        };
        self.end(how).await
    }

    async fn end(&mut self, how: End) -> Result<(), StoreError> {
        end(&self.host, self.process, how).await
    }

    /// Ends the runner: asks it, closes its stdin, and kills its whole group if it has not gone then.
    async fn finish(mut self) -> Result<(), StoreError> {
        let shutdown_ms = self.patience(self.limits.shutdown_ms);
        let until = Instant::now() + Duration::from_millis(shutdown_ms);
        if self.running.is_alive() {
            let asked = timeout_at(until, self.peer.call::<Shutdown>(&Empty {})).await;
            tracing::trace!(process = %self.process, ?asked, "asked the runner to end");
        }
        self.peer.close();
        let exited = match timeout_at(until, self.child.exited()).await {
            Ok(exited) => exited,
            Err(_) => {
                let told = json!({ "limit": "shutdown_ms", "unanswered": "shutdown", "ms": shutdown_ms });
                self.link.record(events::Kind::Link, told).await;
                self.child.kill();
                let killed = timeout(KILLED_WITHIN, self.child.exited()).await;
                killed.unwrap_or_else(|_| Err("it was killed and does not end".to_owned()))
            }
        };
        let in_order = exited.as_ref().is_ok_and(std::process::ExitStatus::success);
        self.host.end_left_of(&self.link.row, self.child.group(), in_order).await;
        match exited {
            Ok(_) => self.running.ended().await,
            Err(_) => self.running.abort().await,
        }
        self.link.note(&self.peer.oddities()).await;
        self.stderr.end().await;
        match exited {
            Ok(status) => {
                let (process, code) = (self.process, launcher::code(status));
                stored(&self.host, process, move |tx| process_table::exited(tx, process, code)).await
            }
            Err(error) => {
                tracing::warn!(%error, process = %self.process, "how the runner exited is not known");
                Ok(())
            }
        }
    }
}
