//! The servers that run: one for all who name the same, started when it is first needed, kept while it is used, ended
//! when nobody has used it for a while, and started anew, later each time, when it dies.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use tokio::sync::{Notify, oneshot};

use super::ServerError;
use super::backoff::Backoff;
use super::expand::Ready;
use super::program::Ground;
use super::running::Running;
use super::secrets::Secrets;
use super::start::{StartLimit, Wish, start};
use crate::host::Host;
use crate::launcher::Inside;

/// One that lived so long, or has answered a call, did not fail.
const STEADY: Duration = Duration::from_secs(10);
/// How long a server whose call took too long has to answer a question, before it is started anew.
const DOUBT_WITHIN: Duration = Duration::from_secs(5);
/// How long a server that is hung up on may take to end, when the host closes and else.
const END_WITHIN: Duration = Duration::from_secs(2);
const CLOSING_WITHIN: Duration = Duration::from_millis(500);

/// All servers of a host.
#[derive(Default)]
pub(crate) struct Pool {
    entries: Mutex<HashMap<String, Arc<Entry>>>,
    changed: Notify,
    closed: AtomicBool,
}

/// What an entry starts.
pub(super) struct Wanted {
    /// By what it is found: the same for the same server.
    pub(super) key: String,
    pub(super) name: String,
    pub(super) ready: Ready,
    /// What of it nobody is told.
    pub(super) secrets: Secrets,
    pub(super) start_within: Duration,
    pub(super) start_limit: StartLimit,
    /// How long it is kept when nobody uses it.
    pub(super) idle: Duration,
    pub(super) depth: u32,
    /// Where the process is fenced in that has it; none is the machine as it is.
    pub(super) inside: Option<Arc<Inside>>,
}

/// One server, whether it runs or not.
pub(super) struct Entry {
    wanted: Wanted,
    state: Mutex<State>,
}

struct State {
    phase: Phase,
    users: usize,
    /// Since when nobody uses it.
    idle_since: Instant,
    backoff: Backoff,
    /// It has answered a call since it was started.
    answered: bool,
}

type Starting = Shared<BoxFuture<'static, Result<Arc<Running>, ServerError>>>;

enum Phase {
    Off,
    Starting(Starting),
    Up(Arc<Running>),
}

/// That somebody uses a server. It is kept until this is dropped, and a while longer.
pub(super) struct Lease {
    entry: Arc<Entry>,
    host: Host,
}

impl Pool {
    /// Notes that somebody uses a server; nothing is started.
    pub(super) fn lease(host: &Host, wanted: Wanted) -> Lease {
        let mut entries = host.servers().entries();
        let entry = entries.entry(wanted.key.clone()).or_insert_with(|| {
            let state = State {
                phase: Phase::Off,
                users: 0,
                idle_since: Instant::now(),
                backoff: Backoff::default(),
                answered: false,
            };
            Arc::new(Entry { wanted, state: Mutex::new(state) })
        });
        entry.state().users += 1;
        Lease { entry: entry.clone(), host: host.clone() }
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<String, Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why the last start of a server failed, where it does not run since; none where nobody knows of one.
    pub(super) fn failure(&self, key: &str) -> Option<String> {
        let entry = self.entries().get(key).cloned()?;
        let state = entry.state();
        let down = matches!(state.phase, Phase::Off);
        state.backoff.last().filter(|_| down).map(|last| last.message.clone())
    }

    /// Makes room for one more where as many run as may: one that nobody uses is ended.
    fn room(&self, host: &Host) -> Result<(), ServerError> {
        let most = host.limits().servers_per_host as usize;
        let mut entries = self.entries();
        let up = entries.values().filter(|entry| !matches!(entry.state().phase, Phase::Off)).count();
        if up < most {
            return Ok(());
        }
        let unused = |entry: &Entry| {
            let state = entry.state();
            state.users == 0 && !matches!(state.phase, Phase::Off)
        };
        let idle = entries.iter().filter(|(_, entry)| unused(entry));
        match idle.min_by_key(|(_, entry)| entry.state().idle_since).map(|(key, _)| key.clone()) {
            Some(key) => {
                if let Some(entry) = entries.remove(&key) {
                    entry.end(host, END_WITHIN);
                }
                Ok(())
            }
            None => Err(ServerError {
                code: "limit_servers_per_host",
                message: format!(
                    "limit servers_per_host: {most} servers run, the most at once; end assistants, or raise it"
                ),
            }),
        }
    }

    /// Ends servers that nobody uses any more, until the host closes.
    pub(crate) async fn tend(host: Host) {
        let pool = host.servers();
        while !host.closing().is_cancelled() {
            let next = pool.end_idle(&host);
            let sleep = async {
                match next {
                    Some(at) => tokio::time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = sleep => {}
                () = pool.changed.notified() => {}
                () = host.closing().cancelled() => return,
            }
        }
    }

    /// Ends those whose time is up; gives when the next one's is.
    fn end_idle(&self, host: &Host) -> Option<Instant> {
        let (now, mut next) = (Instant::now(), None::<Instant>);
        self.entries().retain(|_, entry| {
            let due = {
                let state = entry.state();
                (state.users == 0).then(|| state.idle_since + entry.wanted.idle)
            };
            match due {
                Some(due) if due <= now => {
                    entry.end(host, END_WITHIN);
                    false
                }
                Some(due) => {
                    next = Some(next.map_or(due, |next| next.min(due)));
                    true
                }
                None => true,
            }
        });
        next
    }

    /// Ends all of them. None is started any more.
    pub(crate) async fn close(&self, host: &Host) {
        self.closed.store(true, Ordering::Release);
        let all: Vec<Arc<Entry>> = self.entries().drain().map(|(_, entry)| entry).collect();
        let running = all.iter().filter_map(|entry| match std::mem::replace(&mut entry.state().phase, Phase::Off) {
            Phase::Up(running) => Some(running),
            // It notices that the host closes.
            Phase::Starting(_) | Phase::Off => None,
        });
        let running: Vec<_> = running.collect();
        futures::future::join_all(running.iter().map(|running| running.end(Ground::of(host), CLOSING_WITHIN))).await;
    }
}

impl Entry {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends it in a task of its own; the host closes when that is done.
    fn end(&self, host: &Host, within: Duration) {
        let phase = std::mem::replace(&mut self.state().phase, Phase::Off);
        if let Phase::Up(running) = phase {
            tracing::debug!(server = %self.wanted.name, "a server is ended");
            let ending = host.clone();
            host.spawn_runner(async move { running.end(Ground::of(&ending), within).await });
        }
    }
}

impl Lease {
    /// The server, started where it does not run. Whoever asks while it starts waits for the same start.
    ///
    /// # Errors
    /// It could not be started, or has failed so often that the next start is a while off.
    pub(super) async fn running(&self) -> Result<Arc<Running>, ServerError> {
        let starting = match self.look() {
            Look::Up(running) => return Ok(running),
            Look::Starting(starting) => starting,
            Look::Off => {
                self.host.servers().room(&self.host)?;
                match self.begin()? {
                    Look::Up(running) => return Ok(running),
                    Look::Starting(starting) => starting,
                    Look::Off => return Err(closing(&self.entry.wanted.name)),
                }
            }
        };
        starting.await
    }

    pub(super) fn host(&self) -> &Host {
        &self.host
    }

    /// Whether it can be asked without a start.
    pub(super) fn is_up(&self) -> bool {
        matches!(&self.entry.state().phase, Phase::Up(running) if running.lives())
    }

    /// What a call is told whose time, `within`, went by before the server was there: nothing was sent to it.
    pub(super) fn not_there(&self, within: Duration) -> ServerError {
        let put_off = self.entry.state().backoff.put_off(Instant::now());
        let (name, ms) = (&self.entry.wanted.name, within.as_millis());
        let said = put_off.unwrap_or_else(|| ServerError {
            code: "too_slow",
            message: format!("the server `{name}` was not there within {ms} ms; its start goes on"),
        });
        ServerError { message: format!("{}; nothing of the call was sent", said.message), ..said }
    }

    /// That the server has answered.
    pub(super) fn answered(&self) {
        let mut state = self.entry.state();
        state.answered = true;
        state.backoff.steady();
    }

    /// A call of it took too long. Where it answers nothing else either, it is ended, and started anew when it is needed.
    pub(super) fn doubt(&self) {
        let Phase::Up(running) = &self.entry.state().phase else { return };
        let (running, entry, host) = (running.clone(), self.entry.clone(), self.host.clone());
        self.host.spawn_runner(async move {
            let answers = tokio::select! {
                answers = running.answers(DOUBT_WITHIN) => answers,
                () = host.closing().cancelled() => return,
            };
            let still = matches!(&entry.state().phase, Phase::Up(now) if Arc::ptr_eq(now, &running));
            if !answers && still {
                tracing::warn!(server = %entry.wanted.name, "a server answers nothing any more; it is started anew when it is needed");
                entry.end(&host, Duration::ZERO);
            }
        });
    }

    fn look(&self) -> Look {
        let mut state = self.entry.state();
        let dead = match &state.phase {
            Phase::Off => return Look::Off,
            Phase::Starting(starting) => return Look::Starting(starting.clone()),
            Phase::Up(running) if running.lives() => return Look::Up(running.clone()),
            Phase::Up(running) => running.clone(),
        };
        let name = &self.entry.wanted.name;
        state.phase = Phase::Off;
        if state.answered || dead.since.elapsed() >= STEADY {
            state.backoff.steady();
        } else {
            let message = format!("the server `{name}` died soon after its start, without an answer to a call");
            state.backoff.failed(ServerError { code: "server_died", message }, Instant::now());
        }
        let failures = state.backoff.failures();
        tracing::warn!(server = %name, failures, "a server has died; it is started anew when it is needed");
        let host = self.host.clone();
        self.host.spawn_runner(async move { dead.end(Ground::of(&host), Duration::ZERO).await });
        Look::Off
    }

    /// Begins a start, unless somebody else has meanwhile.
    fn begin(&self) -> Result<Look, ServerError> {
        let mut state = self.entry.state();
        match &state.phase {
            Phase::Starting(starting) => return Ok(Look::Starting(starting.clone())),
            Phase::Up(running) => return Ok(Look::Up(running.clone())),
            Phase::Off => {}
        }
        if self.host.servers().closed.load(Ordering::Acquire) || self.host.closing().is_cancelled() {
            return Ok(Look::Off);
        }
        let now = Instant::now();
        if let Some(refused) = state.backoff.refusal(now) {
            return Err(refused);
        }
        let delay = state.backoff.delay(now);
        let (told, started) = oneshot::channel();
        let (entry, host) = (self.entry.clone(), self.host.clone());
        self.host.spawn_runner(async move {
            let result = entry.start(&host, delay).await;
            // Whoever asked may have gone.
            drop(told.send(result));
        });
        let name = self.entry.wanted.name.clone();
        let starting = async move { started.await.unwrap_or_else(|_| Err(closing(&name))) }.boxed().shared();
        state.phase = Phase::Starting(starting.clone());
        Ok(Look::Starting(starting))
    }
}

enum Look {
    Off,
    Starting(Starting),
    Up(Arc<Running>),
}

impl Entry {
    async fn start(&self, host: &Host, delay: Duration) -> Result<Arc<Running>, ServerError> {
        let Wanted { name, ready, secrets, start_within, start_limit, depth, inside, .. } = &self.wanted;
        let starting = async {
            tokio::time::sleep(delay).await;
            let (within, within_of, depth, inside) = (*start_within, *start_limit, *depth, inside.as_ref());
            start(Ground::of(host), &Wish { name, ready, secrets, within, within_of, depth, inside }).await
        };
        let result = tokio::select! {
            result = starting => result.map(Arc::new),
            () = host.closing().cancelled() => Err(closing(name)),
        };
        let late = {
            let mut state = self.state();
            let still = matches!(state.phase, Phase::Starting(_)) && !host.servers().closed.load(Ordering::Acquire);
            state.phase = match &result {
                Ok(running) if still => Phase::Up(running.clone()),
                _ => Phase::Off,
            };
            match &result {
                Ok(_) => {
                    state.answered = false;
                    state.backoff.started();
                }
                Err(error) => {
                    state.backoff.failed(error.clone(), Instant::now());
                    tracing::warn!(server = %name, failures = state.backoff.failures(), %error, "a server was not started");
                }
            }
            result.as_ref().ok().filter(|_| !still).cloned()
        };
        if let Some(late) = late {
            late.end(Ground::of(host), CLOSING_WITHIN).await;
            return Err(closing(name));
        }
        result
    }
}

fn closing(name: &str) -> ServerError {
    ServerError { code: "server_failed", message: format!("the server `{name}` is being ended") }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut state = self.entry.state();
        state.users = state.users.saturating_sub(1);
        if state.users == 0 {
            state.idle_since = Instant::now();
            drop(state);
            self.host.servers().changed.notify_one();
        }
    }
}

impl std::fmt::Debug for Lease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lease").field("server", &self.entry.wanted.name).finish()
    }
}
