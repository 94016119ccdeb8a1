//! The door for MCP clients: the tool table over rmcp, both eras of the protocol. It converts, once for all tools.

use std::sync::Arc;

use assistant_protocol::ids::SessionId;
use futures::channel::mpsc::{Receiver, Sender, channel};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation, JsonObject,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ServerCapabilities, ServerConfig, Tool,
    ToolAnnotations,
};
use rmcp::service::ServerInitializeError;
use rmcp::service::{RequestContext, RoleClient, RoleServer, RunningService, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::IntoTransport;
use rmcp::{ServerHandler, ServiceExt};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::caller::{Caller, MAIN};
use crate::host::{Ending, Host};
use crate::store::StoreError;
use crate::tools::profile::Profile;
use crate::tools::{self, Along, CallError};

mod progress;
mod resources;

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
/// the grace time. `level` is how deep the client itself is below assistants; 0 mostly.
///
/// # Errors
/// [`DoorError::NotStarted`] where the client spoke no MCP.
pub async fn serve<T, E, A>(
    host: &Host,
    principal: &str,
    level: u32,
    transport: T,
    stop: CancellationToken,
) -> Result<(), DoorError>
where
    T: IntoTransport<RoleServer, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let session = host.open_session_below(principal, MAIN, level).await?;
    let served = serve_session(host, session, transport, stop).await;
    host.end_session(session, Ending::AfterGrace).await?;
    served
}

/// Serves one client of a session that is open, and that stays open.
///
/// # Errors
/// [`DoorError::NotStarted`] where the client spoke no MCP.
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
    let door = Door { host: host.clone(), session, profile: Profile::default() };
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
        let (host, principal) = (self.clone(), principal.to_owned());
        connect(move |transport, stop| async move { serve(&host, &principal, 0, transport, stop).await }, self).await
    }

    /// The same for a session that the app has opened, and ends itself.
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
}

impl Door {
    /// What the client is offered now.
    fn listed(&self) -> Vec<Tool> {
        self.profile.listed(&self.host).iter().map(as_mcp).collect()
    }
}

fn object(schema: &Value) -> Arc<JsonObject> {
    Arc::new(schema.as_object().cloned().unwrap_or_default())
}

fn as_mcp(tool: &tools::Tool) -> Tool {
    let hints = ToolAnnotations::new()
        .read_only(tool.hints.read_only)
        .destructive(tool.hints.destructive)
        .idempotent(tool.hints.idempotent)
        .open_world(tool.hints.open_world);
    Tool::new(tool.name.clone(), tool.description.clone(), object(&tool.input_schema))
        .with_title(tool.title.to_string())
        .with_raw_output_schema(object(&tool.output_schema))
        .with_annotations(hints)
}

impl ServerHandler for Door {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_resources().build());
        info.server_info = Implementation::new(SERVER_NAME, env!("CARGO_PKG_VERSION")).with_title("Assistant Host");
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

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let caller = Caller::Session(self.session);
        let (waits, waited_for) = watch::channel(Vec::new());
        let along = Along { waits: Some(waits), ..Along::default() };
        let call = self.profile.call(&self.host, caller, &request.name, arguments, context.ct.clone(), along);
        let called = tokio::select! {
            called = call => called,
            () = progress::tell(&self.host, &context, waited_for) => {
                return Err(ErrorData::internal_error("the telling of progress ended", None));
            }
        };
        match called {
            Ok(output) => match resources::complete(&self.host, self.session, output).await {
                Ok(result) => Ok(result.into()),
                Err(error) => Err(ErrorData::internal_error(error.to_string(), None)),
            },
            // Clients check structured content against the output schema of the tool, also that of an error.
            Err(CallError::Tool(error)) => match serde_json::to_string(&error) {
                Ok(text) => Ok(CallToolResult::error(vec![ContentBlock::text(text)]).into()),
                Err(error) => Err(ErrorData::internal_error(error.to_string(), None)),
            },
            Err(CallError::UnknownTool(name)) => {
                let listed = self.profile.listed(&self.host);
                let names: Vec<&str> = listed.iter().map(|tool| tool.name.as_ref()).collect();
                let message = format!("there is no tool `{name}`; there are: {}", names.join(", "));
                Err(ErrorData::invalid_params(message, None))
            }
        }
    }
}
