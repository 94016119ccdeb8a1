//! MCP for one connection: the tools of the run that is going on, over rmcp, both eras of the protocol.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use assistant_protocol::types::ToolCallResult;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, Implementation, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, ServerCapabilities, ServerConfig, SubscriptionFilter, Tool,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, ServerInitializeError, SubscriptionContext};
use rmcp::{ServerHandler, ServiceExt};
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::lines::Lines;
use super::turn::{Current, Open};
use super::{SERVER_NAME, content};
use crate::conversation::error_result;

/// How often an agent that wants it is told that a call goes on, in milliseconds: some wait on as long as they are told.
const PROGRESS_MS: u64 = 10_000;
/// What a call is answered while nothing is served.
const NO_RUN: &str = "The assistant has no run at the moment, and so no tools.";
/// What a call is answered whose run ended first.
const OVER: &str = "The run was ended before this call was answered. It may have had its effect.";

/// Serves a connection until either side ends it.
pub(super) async fn serve(stream: UnixStream, current: Current) {
    let gone = CancellationToken::new();
    let _goes = gone.clone().drop_guard();
    let (read, write) = stream.into_split();
    let door = Door { current, gone: gone.clone() };
    let why = match door.serve(Lines::new(read, write, gone)).await {
        Ok(running) => running.waiting().await.err().map(|error| error.to_string()),
        // One that goes before it has said a word is no fault.
        Err(ServerInitializeError::ConnectionClosed(_)) => None,
        Err(error) => Some(error.to_string()),
    };
    if let Some(why) = why {
        crate::complain(&format!("assistant-runner: a connection to the assistant's tools failed: {why}"));
    }
}

struct Door {
    current: Current,
    /// Cancelled when the connection is over.
    gone: CancellationToken,
}

fn listed(current: &Current) -> Vec<Tool> {
    current.open().map(|open| content::listed(&open.turn)).unwrap_or_default()
}

impl Door {
    async fn call(&self, name: &str, request: CallToolRequestParams, context: &RequestContext<RoleServer>) -> Called {
        let Some(open) = self.current.open() else { return Called::Answered(error_result(NO_RUN)) };
        let _room = match open.room() {
            Ok(room) => room,
            Err(refused) => return Called::Answered(refused),
        };
        tokio::select! {
            biased;
            () = context.ct.cancelled() => Called::Cancelled,
            () = self.gone.cancelled() => Called::Cancelled,
            result = open.call(name, request.arguments.unwrap_or_default()) => Called::Answered(result),
            () = open.over.cancelled() => Called::Answered(error_result(OVER)),
            never = tell_progress(context) => match never {},
        }
    }
}

/// The lists of tools that are other ones than before.
struct Changes {
    current: Current,
    changes: watch::Receiver<Option<Arc<Open>>>,
    told: Vec<Tool>,
}

impl Changes {
    /// All from now on.
    fn new(current: &Current) -> Self {
        // Subscribed first: a change in between is told.
        let changes = current.changes();
        Self { current: current.clone(), changes, told: listed(current) }
    }

    /// Waits for the next one; false where there will be none.
    async fn next(&mut self) -> bool {
        while self.changes.changed().await.is_ok() {
            // Between two runs there is no list, and then there is one.
            if self.changes.borrow_and_update().is_none() {
                continue;
            }
            let now = listed(&self.current);
            if now != self.told {
                self.told = now;
                return true;
            }
        }
        false
    }
}

/// What came of a call.
enum Called {
    Answered(ToolCallResult),
    /// Nobody waits for the answer.
    Cancelled,
}

/// Tells an agent that its call goes on, where it wants that.
async fn tell_progress(context: &RequestContext<RoleServer>) -> Infallible {
    let Some(token) = context.meta.get_progress_token() else { return std::future::pending().await };
    let mut progress = 0.0;
    loop {
        tokio::time::sleep(Duration::from_millis(PROGRESS_MS)).await;
        progress += 1.0;
        let told = ProgressNotificationParam::new(token.clone(), progress).with_message("the call goes on");
        if context.peer.notify_progress(told).await.is_err() {
            return std::future::pending().await;
        }
    }
}

impl ServerHandler for Door {
    fn get_info(&self) -> ServerConfig {
        let able = ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        let mut info = ServerConfig::new(able);
        info.server_info = Implementation::new(SERVER_NAME, env!("CARGO_PKG_VERSION"));
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(listed(&self.current)))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        listed(&self.current).into_iter().find(|tool| tool.name == name)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let mut changes = Changes::new(&self.current);
        tokio::spawn(self.gone.clone().run_until_cancelled_owned(async move {
            while changes.next().await && context.peer.notify_tool_list_changed().await.is_ok() {}
        }));
    }

    fn accepted_subscription_filter(&self, _: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(SubscriptionFilter::builder().tools_list_changed().build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = Changes::new(&self.current);
        let telling =
            async { while changes.next().await && context.sink().notify_tool_list_changed().await.is_ok() {} };
        tokio::select! {
            () = context.cancelled() => {}
            () = self.gone.cancelled() => {}
            () = telling => {}
        }
        Ok(())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name.to_string();
        match self.call(&name, request, &context).await {
            Called::Answered(result) => Ok(content::result(result).into()),
            Called::Cancelled => Err(ErrorData::internal_error("the call was cancelled", None)),
        }
    }
}
