//! The host: what is shared, opened once, closed once.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use assistant_protocol::ids::{ProcessId, SessionId};
use serde_json::{Map, Value};
use tokio::sync::{Semaphore, broadcast};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::Approve;
use crate::caller::Caller;
use crate::changes::{DELTAS_MAX, Delta, REGISTRIES_MAX};
use crate::hooks::{self, Hooks};
use crate::launcher::Strays;
use crate::limits::Limits;
use crate::model::Models;
use crate::process_table::{self, Cause, End, Process, Status};
use crate::registry::{Registry, mirror};
use crate::search::{self, SearchError, SearchIndex};
use crate::servers::Pool;
use crate::store::{Store, StoreError};
use crate::tools::{self, Along, CallError, Output, Own, Tool};
use crate::worktrees::{self, Worktrees};
use crate::{events, supervisor};

mod assistants;
mod expiry;
mod keys;
mod launchers;
mod lock;
mod options;
mod reload;
mod retention;
mod runners;
mod servers;
mod sessions;
mod slept;
mod trusted;
mod watch;

pub use assistants::{NotStored, stored};
pub(crate) use lock::{is_held, make_private};
pub use options::Options;
pub use retention::{Cleaned, Removed, vacuum};
pub use sessions::Ending;

/// Runners that are being launched at once; more make no launch faster.
const LAUNCHES_MAX: usize = 8;
/// The same for those that a launcher starts, which may wait for another machine.
const FAR_LAUNCHES_MAX: usize = 16;

/// Why a host was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another host holds the state directory.
    #[error("{} is held by another host (process {pid}); stop it, or use another state directory (--state DIR)", state.display())]
    Held {
        /// The directory.
        state: PathBuf,
        /// The process id of the holder, `unknown` where it has not told.
        pid: String,
    },
    /// The state directory cannot be used.
    #[error("cannot use the state directory {}: {error}", state.display())]
    State {
        /// The directory.
        state: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// A tool of the app cannot be offered.
    #[error("the tool `{name}` cannot be offered: {why}")]
    Tool {
        /// Its name.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// The store's.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The search index cannot even be kept in memory.
    #[error(transparent)]
    Search(#[from] SearchError),
}

/// A host. Clones are the same host.
#[derive(Clone)]
pub struct Host(Arc<Shared>);

struct Shared {
    options: Options,
    tools: Vec<Tool>,
    registry: RwLock<Arc<Registry>>,
    search: RwLock<Arc<SearchIndex>>,
    store: Arc<Store>,
    model_permits: Semaphore,
    launch_permits: Semaphore,
    far_launch_permits: Semaphore,
    runners: TaskTracker,
    strays: Strays,
    servers: Pool,
    worktrees: Worktrees,
    closing: CancellationToken,
    closed: CancellationToken,
    supervisor: TaskTracker,
    registry_changed: broadcast::Sender<Arc<Registry>>,
    deltas: broadcast::Sender<Delta>,
    graces: sessions::Graces,
    reloads: reload::Reloads,
    slept: slept::Slept,
    /// Variables with keys that clients have and this host has not.
    keys_elsewhere: RwLock<Vec<String>>,
    /// The state directory, and what else is the host's own.
    private: Vec<PathBuf>,
    own: Own,
    _lock: File,
}

impl Host {
    /// Opens the state directory, reads the assistants, ends what an earlier host has left, and starts the supervisor.
    /// Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// [`OpenError::Held`] where another host has the directory; the store's, and the system's.
    pub async fn open(options: Options) -> Result<Self, OpenError> {
        let opened = tokio::task::spawn_blocking(move || open_files(options));
        let shared = opened.await.map_err(StoreError::panicked("opening the state directory"))??;
        let host = Self(Arc::new(shared));
        let registry = host.registry();
        let before = host.store().read(events::newest).await?;
        let (left, mirrored) = host
            .store()
            .write(move |tx| {
                let left = process_table::recover(tx)?;
                Ok::<_, StoreError>((left, mirror::mirror(tx.db, &registry, tx.now)?))
            })
            .await?;
        if !left.is_empty() {
            tracing::warn!(left = left.len(), "an earlier host died; its processes are ended as host_lost");
            host.end_left(left).await;
        }
        host.strays().end_servers_of(host.state_dir()).await;
        tracing::debug!(?mirrored, "the registry is mirrored");
        let supervised = host.clone();
        host.0.supervisor.spawn(async move { supervisor::run(supervised).await });
        host.merge_search();
        let leaving = host.clone();
        host.0.supervisor.spawn(async move { sessions::end_the_left(leaving).await });
        host.0.supervisor.spawn(Pool::tend(host.clone()));
        host.0.supervisor.spawn(worktrees::tend(host.clone()));
        host.0.supervisor.spawn(slept::watch(host.clone()));
        host.0.supervisor.spawn(retention::run(host.clone()));
        if host.0.options.watch && !host.0.options.sources.is_empty() {
            host.0.supervisor.spawn(watch::run(host.clone()));
        }
        host.0.supervisor.spawn(expiry::run(host.clone()));
        host.0.supervisor.spawn(hooks::run(host.clone(), before));
        host.0.supervisor.close();
        Ok(host)
    }

    /// Calls one of the host's own tools, as an MCP client of this session would; those of other profiles are for clients
    /// only. Dropping the future gives the call up.
    ///
    /// # Errors
    /// [`CallError`]: no such tool, or what the tool says.
    pub async fn call(
        &self,
        session: SessionId,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<Value, CallError> {
        let cancelled = CancellationToken::new();
        let output: Output =
            tools::call(self, Caller::Session(session), tool, arguments, cancelled, Along::default()).await?;
        Ok(output.value)
    }

    /// Ends all sessions and their runners, then closes the store. Returns when all is done.
    pub async fn close(&self) {
        self.0.closing.cancel();
        let ended = self
            .store()
            .write(|tx| {
                for session in process_table::open_sessions(tx.db)? {
                    process_table::end_session(tx, session)?;
                }
                // Detached ones outlive their session, not their host.
                for status in [Status::Queued, Status::Starting, Status::Running, Status::Waiting] {
                    for process in process_table::with_status(tx.db, status)? {
                        process_table::cancel(tx, process, Cause::HostClosed)?;
                    }
                }
                Ok::<_, StoreError>(())
            })
            .await;
        if let Err(error) = ended {
            tracing::error!(%error, "the sessions were not ended in order");
        }
        self.0.supervisor.wait().await;
        self.search().stop();
        self.0.servers.close(self).await;
        self.0.runners.close();
        self.0.runners.wait().await;
        worktrees::settle_all(self).await;
        // What was to be started when the supervisor stopped has no runner that could end it.
        let swept = self
            .store()
            .write(|tx| process_table::end_the_living(tx, &End::Cancelled { cause: Cause::HostClosed, partial: None }));
        if let Err(error) = swept.await {
            tracing::error!(%error, "the processes were not ended in order");
        }
        let store = self.0.store.clone();
        if tokio::task::spawn_blocking(move || store.close()).await.is_err() {
            tracing::error!("closing the store panicked");
        }
        self.0.closed.cancel();
    }

    /// A process, if there is one of this id.
    ///
    /// # Errors
    /// The store's.
    pub async fn process(&self, process: ProcessId) -> Result<Option<Process>, StoreError> {
        self.store().read(move |db| process_table::find(db, process)).await
    }

    /// The processes that a process spawned, oldest first.
    ///
    /// # Errors
    /// The store's.
    pub async fn children(&self, process: ProcessId) -> Result<Vec<Process>, StoreError> {
        self.store().read(move |db| process_table::children(db, process, false)).await
    }

    /// Up to `limit` events of a process after the event `after`, oldest first; waits for the first one.
    ///
    /// # Errors
    /// The store's.
    pub async fn events(&self, process: ProcessId, after: i64, limit: u32) -> Result<Vec<events::Event>, StoreError> {
        let mut waiter = self.store().waiter(process);
        loop {
            let found = self.store().read(move |db| events::read(db, process, after, limit)).await?;
            if !found.is_empty() {
                return Ok(found);
            }
            waiter.news().await;
        }
    }

    /// Processes that have not ended.
    ///
    /// # Errors
    /// The store's.
    pub async fn living(&self) -> Result<u32, StoreError> {
        self.store().read(process_table::living).await
    }

    /// Where whoever opened the host writes its log.
    #[must_use]
    pub fn log(&self) -> Option<&Path> {
        self.0.options.log.as_deref()
    }

    /// What answers model calls.
    #[must_use]
    pub fn models(&self) -> &Models {
        &self.0.options.models
    }

    /// What is allowed.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.0.options.limits
    }

    /// The tool table, by name.
    #[must_use]
    pub fn tools(&self) -> &[Tool] {
        &self.0.tools
    }

    /// The assistants that there are now.
    #[must_use]
    pub fn registry(&self) -> Arc<Registry> {
        self.0.registry.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn search(&self) -> Arc<SearchIndex> {
        self.0.search.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The folder that the host belongs to.
    #[must_use]
    pub fn project(&self) -> Option<&Path> {
        self.0.options.project.as_deref()
    }

    /// Where each new registry goes.
    pub(crate) fn registry_changed(&self) -> &broadcast::Sender<Arc<Registry>> {
        &self.0.registry_changed
    }

    /// Where pieces of models' answers go.
    pub(crate) fn deltas(&self) -> &broadcast::Sender<Delta> {
        &self.0.deltas
    }

    /// The time by the host's clock, Unix milliseconds.
    pub(crate) fn now(&self) -> i64 {
        (self.0.options.clock)()
    }

    pub(crate) fn state_dir(&self) -> &Path {
        &self.0.options.state
    }

    pub(crate) fn approval(&self) -> Option<&Arc<dyn Approve>> {
        self.0.options.approval.as_ref()
    }

    pub(crate) fn hooks(&self) -> &Hooks {
        &self.0.options.hooks
    }

    pub(crate) fn strict_models(&self) -> bool {
        self.0.options.strict_models
    }

    pub(crate) fn tool_aliases(&self) -> &BTreeMap<String, String> {
        &self.0.options.tool_aliases
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.0.store
    }

    pub(crate) fn model_permits(&self) -> &Semaphore {
        &self.0.model_permits
    }

    /// Runs the task of a runner or a hook; [`Host::close`] waits for it.
    pub(crate) fn spawn_runner(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.runners.spawn(task);
    }

    /// Cancelled when the host is closed.
    pub(crate) fn closed(&self) -> &CancellationToken {
        &self.0.closed
    }

    /// Cancelled when the host closes.
    pub(crate) fn closing(&self) -> &CancellationToken {
        &self.0.closing
    }
}

fn open_files(options: Options) -> Result<Shared, OpenError> {
    let tools = tools::with_those_of(&options.app_tools, &options.limits)?;
    let lock = lock::hold(&options.state, options.lock_wait)?;
    let (store, files) = reload::open(&options)?;
    let stored = store.look(|db| Ok::<_, StoreError>(mirror::stored(db)?))?;
    let (reloads, registry) = reload::Reloads::first(files, stored);
    let search = SearchIndex::open(&options.state.join(search::FOLDER), &registry)?;
    let own = std::iter::once(&options.state).chain(&options.trust);
    let private: Vec<PathBuf> = own.chain(&options.private).cloned().collect();
    Ok(Shared {
        tools,
        registry: RwLock::new(Arc::new(registry)),
        search: RwLock::new(Arc::new(search)),
        store,
        model_permits: Semaphore::new(options.limits.model_calls.max(1) as usize),
        launch_permits: Semaphore::new(LAUNCHES_MAX),
        far_launch_permits: Semaphore::new(FAR_LAUNCHES_MAX),
        runners: TaskTracker::new(),
        strays: Strays::new(options.adopts_orphans),
        servers: Pool::default(),
        worktrees: Worktrees::new(options.worktrees.clone().unwrap_or_else(|| options.state.join("worktrees"))),
        closing: CancellationToken::new(),
        closed: CancellationToken::new(),
        supervisor: TaskTracker::new(),
        registry_changed: broadcast::Sender::new(REGISTRIES_MAX),
        deltas: broadcast::Sender::new(DELTAS_MAX),
        graces: sessions::Graces::default(),
        reloads,
        slept: slept::Slept::default(),
        keys_elsewhere: RwLock::default(),
        own: Own::noted(&private),
        private,
        _lock: lock,
        options,
    })
}
