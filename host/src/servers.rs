//! Tool servers: MCP servers whose tools assistants are given. Started when they are needed, shared, ended when idle.
//!
//! What is written of a server ([`spec`]) is read from what the user is asked to trust, or from the configuration
//! ([`configured`], with [`presets`]); which of them an assistant has is its `plan`. `expand` fills in variables when one
//! is started; the `pool` keeps those that run. A `running` one is spoken to over rmcp: through pipes (`lines`) or HTTP,
//! and a `guard` that lets through what is asked for; its `faults` are told in words. What it `offered` is made to fit every
//! model, what it has `given` becomes parts of a message.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use assistant_protocol::types::Part;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::host::Host;
use crate::launcher::Launcher;
use crate::process_table::Process;
use crate::registry::Definition;

mod backoff;
pub mod configured;
mod expand;
mod faults;
mod fence;
mod given;
mod guard;
mod http;
mod lines;
mod offered;
mod plan;
mod pool;
mod portable;
pub mod presets;
mod program;
mod running;
mod secrets;
pub mod spec;
mod start;
mod stderr;
mod tried;
mod words;

pub use configured::{Configured, ServerConfig};
pub use expand::Environment;
pub(crate) use expand::{Lack, lacks};
pub(crate) use fence::Place;
pub use guard::Step;
#[cfg(test)]
pub(crate) use offered::model_name;
pub(crate) use offered::{fitted, is_model_name};
#[cfg(feature = "cli")]
pub(crate) use plan::{Brought, brought};
pub(crate) use plan::{brings, may_bring, plan};
pub(crate) use pool::Pool;
pub use tried::{Tried, try_all};

use expand::{Ready, World};
use plan::Planned;
use pool::{Lease, Wanted};
use program::Ground;
use running::Running;
use secrets::Secrets;
use start::StartLimit;

/// The longest name of a server, characters.
const NAME_CHARS_MAX: usize = 100;
/// Steps of a call that wait to be told.
pub(crate) const STEPS_MAX: usize = 16;

/// A tool of a server, as it is offered to an assistant.
#[derive(Debug, Clone, PartialEq)]
pub struct ServedTool {
    /// What a model calls it by: `server__tool`, of signs that every model takes.
    pub name: String,
    /// The server, by its name in the configuration or the definition.
    pub server: String,
    /// Its name there.
    pub tool: String,
    /// What it is for, in the server's words, bounded.
    pub description: String,
    /// The JSON schema of its arguments: an object, portable.
    pub input_schema: Value,
    /// It says of itself that it changes nothing.
    pub read_only: bool,
}

/// What a call of a server's tool gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Given {
    /// Texts, pictures, handles.
    pub content: Vec<Part>,
    /// The same as data, where the server gave it.
    pub structured: Option<Value>,
    /// The server says that it failed.
    pub is_error: bool,
}

/// Why a server's tools are not there, or a call of one gave nothing. Words for a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ServerError {
    /// `server_failed`, `server_died`, `server_error`, `too_slow`, `unknown_tool`, `limit_…`: stable.
    pub code: &'static str,
    /// What happened, and to which server.
    pub message: String,
}

/// The servers that one process uses.
#[derive(Debug, Clone, Default)]
pub struct Servers {
    uses: Arc<Vec<Use>>,
    lacking: Vec<(String, String)>,
}

/// One server that a process uses.
#[derive(Debug)]
struct Use {
    planned: Planned,
    lease: Lease,
}

impl Use {
    /// The server, started where it does not run and may: what the user has said counts at each start.
    async fn running(&self) -> Result<Arc<Running>, ServerError> {
        if let Some(key) = self.planned.trust.clone().filter(|_| !self.lease.is_up()) {
            let book = self.lease.host().trust();
            let found = tokio::task::spawn_blocking(move || book.find(&key)).await;
            if !matches!(found, Ok(Ok(Some(_)))) {
                let message = format!("the server `{}` is not trusted any more", self.planned.spec.name);
                return Err(ServerError { code: "server_failed", message });
            }
        }
        self.lease.running().await
    }
}

impl Servers {
    /// The servers of a process: those that its definition names and that may run, and those of the configuration whose
    /// tools it asks for. Nothing is started.
    /// An `agent` has itself what presets bring: it gets those that the definition names.
    pub(crate) async fn of(host: &Host, row: &Process, definition: &Definition, agent: bool) -> Self {
        let ruled = match host.rule(vec![Arc::new(definition.clone())]).await {
            Ok(mut ruled) => ruled.pop().unwrap_or_default(),
            Err(error) => {
                tracing::error!(%error, process = %row.id, "nobody knows which servers are trusted: none is started");
                Vec::new()
            }
        };
        let (mut planned, mut lacking) = plan(host.configured_servers(), definition, &ruled, host.tool_aliases());
        planned.retain(|one| !agent || one.is_for_agents(definition, host.tool_aliases()));
        let mut uses = Vec::new();
        // Where it is not configured any more, the runner did not start.
        let by = host.launcher(row.launcher.as_deref()).unwrap_or_default();
        let place = Place { working_dir: row.working_dir.as_deref().map(Path::new), by, depth: row.depth };
        for mut planned in planned {
            match wanted(host, &planned, place) {
                Ok(mut wanted) => {
                    planned.spec.shared &= wanted.inside.is_none();
                    if !planned.spec.shared {
                        wanted.key = format!("{} {}", row.id, wanted.key);
                        wanted.idle = Duration::ZERO;
                    }
                    uses.push(Use { lease: Pool::lease(host, wanted), planned });
                }
                Err(why) => lacking.push((planned.spec.name.clone(), why)),
            }
        }
        Self { uses: Arc::new(uses), lacking }
    }

    /// Whether a server works for all who name it, in the folder of the project.
    pub(crate) fn is_shared(&self, server: &str) -> bool {
        self.uses.iter().any(|one| one.planned.spec.name == server && one.planned.spec.shared)
    }

    /// Their tools, and why the others have none (server, reason). Starts what has to be started.
    pub(crate) async fn tools(&self, host: &Host, taken: &BTreeSet<&str>) -> (Vec<ServedTool>, Vec<(String, String)>) {
        let asked = self.uses.iter().map(|one| async move {
            let offered = async { one.running().await?.tools(Ground::of(host)).await };
            let within = start_within(host, &one.planned) * 2;
            match tokio::time::timeout(within, offered).await {
                Ok(Ok(offered)) => Ok(offered::of_server(&one.planned.spec, &offered)),
                Ok(Err(error)) => Err(error.message),
                Err(_) => Err(format!("it did not tell its tools within {} ms", within.as_millis())),
            }
        });
        let answers = futures::future::join_all(asked).await;
        let (mut tools, mut failed) = (Vec::new(), self.lacking.clone());
        for (one, answer) in self.uses.iter().zip(answers) {
            match answer {
                Ok(served) => tools.extend(served),
                Err(why) => failed.push((one.planned.spec.name.clone(), why)),
            }
        }
        offered::name_all(&mut tools, taken);
        (tools, failed)
    }

    /// Calls a tool, and sends on what is told of it meanwhile. Dropping the future cancels the call at the server.
    ///
    /// # Errors
    /// [`ServerError`]: the server cannot be had, refuses, dies, or takes too long.
    pub(crate) async fn call(
        &self,
        tool: &ServedTool,
        arguments: Map<String, Value>,
        within: Duration,
        steps: mpsc::Sender<Step>,
    ) -> Result<Given, ServerError> {
        let Some(one) = self.uses.iter().find(|one| one.planned.spec.name == tool.server) else {
            return Err(ServerError { code: "unknown_tool", message: format!("there is no server `{}`", tool.server) });
        };
        let own = one.planned.spec.timeout_ms.map(Duration::from_millis);
        let within = own.map_or(within, |own| own.min(within));
        let until = tokio::time::Instant::now() + within;
        let running = match tokio::time::timeout_at(until, one.running()).await {
            Ok(running) => running?,
            Err(_) => return Err(one.lease.not_there(within)),
        };
        let answer = match tokio::time::timeout_at(until, running.call(&tool.tool, arguments, steps)).await {
            Ok(answer) => answer?,
            Err(_) => {
                let (server, ms) = (&tool.server, within.as_millis());
                let message =
                    format!("the server `{server}` did not answer within {ms} ms; the call was cancelled there");
                one.lease.doubt();
                return Err(ServerError { code: "too_slow", message });
            }
        };
        one.lease.answered();
        Ok(given::parts(&answer))
    }
}

fn start_within(host: &Host, planned: &Planned) -> Duration {
    Duration::from_millis(planned.spec.start_ms.unwrap_or(host.limits().server_start_ms))
}

/// What is started for a planned server.
///
/// # Errors
/// In words: what cannot be filled in.
fn wanted(host: &Host, planned: &Planned, place: Place<'_>) -> Result<Wanted, String> {
    let Place { working_dir, by, depth } = place;
    let keys: Vec<String> = if planned.of_definition { host.key_variables() } else { Vec::new() };
    let fence = place.fence(planned)?;
    // The folder of one that works elsewhere is none here.
    let working_dir = working_dir.filter(|_| fence.is_some() || !by.is_some_and(Launcher::is_elsewhere));
    let here = host.project().filter(|_| !fence.is_some_and(Launcher::is_elsewhere));
    // What is fenced in sees the working folder, and no more of the project.
    let project = if fence.is_some() { working_dir.or(here) } else { here.or(working_dir) };
    // One that is shared works in the project, not where the first who uses it happens to work.
    let own = working_dir.filter(|_| !planned.spec.shared || fence.is_some());
    let folder = own.or(project).unwrap_or(host.state_dir());
    let world = World { environment: host.environment(), keys: &keys, project, folder, bare: planned.bare };
    let mut ready = expand::ready(&planned.spec.how, &world)?;
    if let Ready::Program { env, .. } = &mut ready {
        // Those of the host that the launcher's own program heeds are its own.
        let taken = |name: &String| env.contains_key(name) || fence.is_some_and(|fence| fence.heeds(name));
        let inherited = host.server_variables().iter().filter(|(name, _)| !taken(name));
        let inherited: Vec<_> = inherited.map(|(name, value)| (name.clone(), value.clone())).collect();
        env.extend(inherited);
    }
    Ok(Wanted {
        key: ready.key(),
        name: planned.spec.name.clone(),
        secrets: Secrets::of(&ready, expand::filled(&planned.spec.how, &world)?),
        ready,
        start_within: start_within(host, planned),
        start_limit: StartLimit::of(&planned.spec, planned.of_definition),
        idle: Duration::from_millis(host.limits().server_idle_ms),
        depth,
        inside: fence.map(|fence| Arc::new(host.inside(fence, working_dir))),
    })
}

/// Why a planned server cannot even be tried, as far as that is known before it is started.
pub(crate) fn hindered(host: &Host, planned: &Planned, place: Place<'_>) -> Option<String> {
    match wanted(host, planned, place) {
        Ok(wanted) => host.servers().failure(&wanted.key),
        Err(why) => Some(why),
    }
}
