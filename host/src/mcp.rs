//! The door for MCP clients: the tool table over rmcp, both eras of the protocol. It converts, once for all tools.

use assistant_protocol::ids::SessionId;
use futures::channel::mpsc::{Receiver, Sender, channel};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult, ErrorData,
    Implementation, JsonObject, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ServerCapabilities,
    ServerConfig, SubscriptionFilter, Tool,
};
use rmcp::service::{
    NotificationContext, RequestContext, RoleClient, RoleServer, RunningService, RxJsonRpcMessage,
    ServerInitializeError, SubscriptionContext, TxJsonRpcMessage,
};
use rmcp::transport::IntoTransport;
use rmcp::{ServerHandler, ServiceExt};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

use crate::caller::{Caller, MAIN, Within};
use crate::host::{Ending, Host};
use crate::process_table;
use crate::store::StoreError;
use crate::tools::profile::Profile;
use crate::tools::{Along, CallError};

mod envelope;
pub mod lines;
mod list;
mod log;
mod misfit;
mod progress;
mod resources;

use list::ListChanges;

/// The name under which clients know this server.
pub const SERVER_NAME: &str = "assistants";
/// Messages that wait between the two ends of the in-process door.
const IN_PROCESS_MESSAGES_MAX: usize = 64;

/// Why a door could not be served.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    /// The client and the server did not come to terms.
    #[error("the MCP client did not start a session: {0}")]
    NotStarted(String),
    /// The store's.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Serves one client over `transport` until it ends or `stop` is cancelled, then leaves its session: the processes have
/// the grace time. `within` tells whether the client itself runs within an assistant.
///
/// # Errors
/// [`DoorError::NotStarted`] where the client spoke no MCP.
pub async fn serve<T, E, A>(
    host: &Host,
    principal: &str,
    within: Within,
    transport: T,
    stop: CancellationToken,
) -> Result<(), DoorError>
where
    T: IntoTransport<RoleServer, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    serve_as(host, principal, within, Profile::Orchestrator, transport, stop).await
}

/// The same with the tools of a profile.
///
/// # Errors
/// [`DoorError::NotStarted`] where the client spoke no MCP.
pub async fn serve_as<T, E, A>(
    host: &Host,
    principal: &str,
    within: Within,
    profile: Profile,
    transport: T,
    stop: CancellationToken,
) -> Result<(), DoorError>
where
    T: IntoTransport<RoleServer, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let session = host.open_session_with(principal, MAIN, within, &profile).await?;
    let served = serve_session_as(host, session, profile, transport, stop).await;
    host.end_session(session, Ending::AfterGrace).await?;
    served
}

/// Serves one client of a session that is open, and that stays open, with the tools of the session's profile.
///
/// # Errors
/// [`DoorError::NotStarted`] where the client spoke no MCP, or the profile is one that needs more than its name.
pub async fn serve_session<T, E, A>(
    host: &Host,
    session: SessionId,
    transport: T,
    stop: CancellationToken,
) -> Result<(), DoorError>
where
    T: IntoTransport<RoleServer, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let row = host.store().read(move |db| process_table::session(db, session)).await?;
    let profile = match row {
        Some(row) => Profile::at_a_door(row.profile.name()).ok_or_else(|| {
            DoorError::NotStarted(format!(
                "the profile {} of the session {session} needs its configuration",
                row.profile
            ))
        })?,
        None => Profile::Orchestrator,
    };
    serve_session_as(host, session, profile, transport, stop).await
}

/// The same with the tools of `profile`, which is the one that the session was opened with.
///
/// # Errors
/// [`DoorError::NotStarted`] where the client spoke no MCP.
pub async fn serve_session_as<T, E, A>(
    host: &Host,
    session: SessionId,
    profile: Profile,
    transport: T,
    stop: CancellationToken,
) -> Result<(), DoorError>
where
    T: IntoTransport<RoleServer, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let gone = CancellationToken::new();
    let door = Door {
        host: host.clone(),
        session,
        profile,
        level: log::Level::default(),
        gone: gone.clone(),
        _leaves: gone.drop_guard(),
    };
    // A child: the service cancels the token that it is given when it ends.
    let served = match door.serve_with_ct(transport, stop.child_token()).await {
        Ok(running) => running.waiting().await.map(|_| ()).map_err(|error| error.to_string()),
        // A client that goes before it has said a word is no fault.
        Err(ServerInitializeError::ConnectionClosed(why)) => {
            tracing::debug!(why, "the client went before it began");
            Ok(())
        }
        Err(error) => Err(error.to_string()),
    };
    served.map_err(DoorError::NotStarted)
}

impl Host {
    /// An MCP client that is connected to this host without a process and without a pipe. Its session is left when the
    /// client is dropped.
    ///
    /// # Errors
    /// [`DoorError`].
    pub async fn connect_in_process(&self, principal: &str) -> Result<RunningService<RoleClient, ()>, DoorError> {
        self.connect_in_process_as(principal, Profile::Orchestrator).await
    }

    /// The same with the tools of a profile.
    ///
    /// # Errors
    /// [`DoorError`].
    pub async fn connect_in_process_as(
        &self,
        principal: &str,
        profile: Profile,
    ) -> Result<RunningService<RoleClient, ()>, DoorError> {
        let (host, principal) = (self.clone(), principal.to_owned());
        let serve = move |transport, stop| async move {
            serve_as(&host, &principal, Within::default(), profile, transport, stop).await
        };
        connect(serve, self).await
    }

    /// The same for a session that the app has opened, and ends itself, with the tools of its profile.
    ///
    /// # Errors
    /// [`DoorError`].
    pub async fn connect_session(&self, session: SessionId) -> Result<RunningService<RoleClient, ()>, DoorError> {
        let host = self.clone();
        connect(move |transport, stop| async move { serve_session(&host, session, transport, stop).await }, self).await
    }
}

/// The server's end of the in-process door.
type InProcess = (Sender<TxJsonRpcMessage<RoleServer>>, Receiver<RxJsonRpcMessage<RoleServer>>);

async fn connect<F, Fut>(serve: F, host: &Host) -> Result<RunningService<RoleClient, ()>, DoorError>
where
    F: FnOnce(InProcess, CancellationToken) -> Fut,
    Fut: Future<Output = Result<(), DoorError>> + Send + 'static,
{
    let (to_server, from_client) = channel::<TxJsonRpcMessage<RoleClient>>(IN_PROCESS_MESSAGES_MAX);
    let (to_client, from_server) = channel::<RxJsonRpcMessage<RoleClient>>(IN_PROCESS_MESSAGES_MAX);
    let serving = serve((to_client, from_client), host.closing().clone());
    tokio::spawn(async move {
        if let Err(error) = serving.await {
            tracing::warn!(%error, "an in-process door ended");
        }
    });
    let client = ().serve((to_server, from_server)).await;
    client.map_err(|error| DoorError::NotStarted(error.to_string()))
}

/// One connection of a client.
struct Door {
    host: Host,
    session: SessionId,
    profile: Profile,
    /// From which level on the client wants to be told of its runs, where it has said so.
    level: log::Level,
    /// Cancelled when the connection is over.
    gone: CancellationToken,
    _leaves: DropGuard,
}

impl Door {
    /// What the client is offered now.
    fn listed(&self) -> Vec<Tool> {
        self.profile.listed(&self.host).iter().map(list::as_mcp).collect()
    }

    /// Begins to tell the client of the runs of a call, where that is its profile's way and the client wants it.
    fn follow(
        &self,
        context: &RequestContext<RoleServer>,
        waited_for: &watch::Receiver<Vec<Uuid>>,
    ) -> Option<log::Following> {
        let logger = format!("subagent.{}", self.profile.subagent()?);
        let level = log::level(context, &self.level)?;
        Some(log::Following::begin(&self.host, &context.peer, logger, level, waited_for.clone()))
    }
}

impl ServerHandler for Door {
    fn get_info(&self) -> ServerConfig {
        let able = ServerCapabilities::builder().enable_tools().enable_resources();
        let changes = self.profile.list_changes();
        let mut info = ServerConfig::new(if changes { able.enable_tool_list_changed().build() } else { able.build() });
        let name = self.profile.subagent();
        if name.is_some() {
            info.capabilities.logging = Some(JsonObject::new());
        }
        let name = name.unwrap_or(SERVER_NAME).to_owned();
        info.server_info = Implementation::new(name, env!("CARGO_PKG_VERSION")).with_title("Assistant Host");
        info.instructions = Some(self.profile.instructions(&self.host));
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.listed()))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if self.profile.list_changes() {
            let changes = ListChanges::new(&self.host, &self.profile);
            tokio::spawn(self.gone.clone().run_until_cancelled_owned(changes.tell(context.peer)));
        }
    }

    fn accepted_subscription_filter(&self, _: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.profile.list_changes().then(|| SubscriptionFilter::builder().tools_list_changed().build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let changes = ListChanges::new(&self.host, &self.profile);
        tokio::select! {
            () = context.cancelled() => {}
            () = self.gone.cancelled() => {}
            () = changes.tell_subscriber(context.sink()) => {}
        }
        Ok(())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.listed().into_iter().find(|tool| tool.name == name)
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(vec![resources::template()]))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        // There may be thousands, and results link those that they name.
        Ok(ListResourcesResult::with_all_items(Vec::new()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = resources::read(&self.host, self.session, &request.uri).await?;
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    #[expect(deprecated, reason = "clients of the handshake era set it")]
    async fn set_level(
        &self,
        request: rmcp::model::SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if self.profile.subagent().is_none() {
            return Err(ErrorData::method_not_found::<rmcp::model::SetLevelRequestMethod>());
        }
        *self.level.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(request.level);
        Ok(())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let caller = Caller::Session(self.session);
        let (waits, waited_for) = watch::channel(Vec::new());
        let along = Along { waits: Some(waits), ..Along::default() };
        let (named, following) = (waited_for.clone(), self.follow(&context, &waited_for));
        let call = self.profile.call(&self.host, caller, &request.name, arguments, context.ct.clone(), along);
        let called = tokio::select! {
            called = call => called,
            () = progress::tell(&self.host, &context, waited_for, self.profile.subagent().is_some()) => {
                return Err(ErrorData::internal_error("the telling of progress ended", None));
            }
        };
        if let Some(following) = following {
            following.end().await;
        }
        let run = named.borrow().first().copied();
        let result = match called {
            Ok(output) => resources::complete(&self.host, self.session, output).await.map_err(faulty)?,
            // Clients check structured content against the output schema of the tool, also that of an error.
            Err(CallError::Tool(error)) => {
                CallToolResult::error(vec![ContentBlock::text(serde_json::to_string(&error).map_err(faulty)?)])
            }
            Err(CallError::UnknownTool(name)) => {
                let listed = self.profile.listed(&self.host);
                let names: Vec<&str> = listed.iter().map(|tool| tool.name.as_ref()).collect();
                let message = format!("there is no tool `{name}`; there are: {}", names.join(", "));
                return Err(ErrorData::invalid_params(message, None));
            }
        };
        Ok(of_run(result, self.profile.subagent().and(run)).into())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(misfit::of(&request.method, request.params.as_ref()))
    }
}

fn faulty(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

/// A result with the id of the run that it is of.
fn of_run(mut result: CallToolResult, run: Option<Uuid>) -> CallToolResult {
    if let Some(run) = run {
        result.meta.get_or_insert_default().insert("run_id".to_owned(), run.to_string().into());
    }
    result
}
