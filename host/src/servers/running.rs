//! One server that runs: started, shaken hands with, asked, and ended with all that it has started.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotification, CancelledNotificationParam, ClientRequest,
    ListToolsRequest, PaginatedRequestParams, RequestId, SubscriptionFilter,
};
use rmcp::service::{Peer, PeerRequestOptions, RunningService, ServiceError};
use serde_json::{Map, Value};
use tokio::sync::{Mutex, Semaphore, mpsc};

use super::ServerError;
use super::faults;
use super::guard::{Step, Watch};
use super::offered::{self, Offered};
use super::program::{Ground, Program};
use super::secrets::Secrets;
use super::start::{Client, Wish};
use crate::text::{cut, one_line};

/// Characters of what a server or the wire says of an error.
pub(super) const ERROR_CHARS_MAX: usize = 500;
/// Pages of a list of tools.
const PAGES_MAX: usize = 100;
/// How long the end of a connection is waited for, before the server itself is ended.
const HANG_UP_WITHIN: Duration = Duration::from_secs(1);

/// A server that runs, or has just died.
pub(super) struct Running {
    name: String,
    secrets: Secrets,
    peer: Peer<RoleClient>,
    service: Mutex<Option<RunningService<RoleClient, Client>>>,
    program: Option<Program>,
    watch: Arc<Watch>,
    calls: Semaphore,
    calls_max: usize,
    tools: Mutex<Option<Arc<Vec<Offered>>>>,
    pub(super) since: Instant,
}

impl Running {
    pub(super) fn new(
        on: Ground<'_>,
        wish: &Wish<'_>,
        service: RunningService<RoleClient, Client>,
        program: Option<Program>,
        watch: Arc<Watch>,
    ) -> Self {
        let peer = service.peer().clone();
        let told = peer.peer_info();
        let tells = told.as_ref().is_some_and(|told| {
            !told.protocol_version.has_initialize()
                && told.capabilities.tools.as_ref().is_some_and(|tools| tools.list_changed == Some(true))
        });
        if tells {
            tokio::spawn(listen(peer.clone(), wish.name.to_owned()));
        }
        let calls_max = on.limits.server_calls.max(1) as usize;
        Self {
            name: wish.name.to_owned(),
            secrets: wish.secrets.clone(),
            peer,
            service: Mutex::new(Some(service)),
            program,
            watch,
            calls: Semaphore::new(calls_max),
            calls_max,
            tools: Mutex::default(),
            since: Instant::now(),
        }
    }

    /// Whether it can be asked.
    pub(super) fn lives(&self) -> bool {
        !self.peer.is_transport_closed()
    }

    /// Whether it answers the lightest of questions within `within`. While it works for others it is taken to.
    pub(super) async fn answers(&self, within: Duration) -> bool {
        if self.calls.available_permits() < self.calls_max {
            return true;
        }
        let page = PaginatedRequestParams::default();
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(page));
        tokio::time::timeout(within, self.ask(request, None)).await.is_ok()
    }

    /// Its tools: asked for once, and again when it says that they have changed.
    ///
    /// # Errors
    /// It does not tell them.
    pub(super) async fn tools(&self, on: Ground<'_>) -> Result<Arc<Vec<Offered>>, ServerError> {
        let mut kept = self.tools.lock().await;
        if let Some(tools) = kept.as_ref().filter(|_| !self.watch.is_stale()) {
            return Ok(tools.clone());
        }
        // Without an answer the old list is not taken for a fresh one.
        *kept = None;
        // What changes while the list is on its way is asked for once more.
        self.watch.take_stale();
        let mut listed: Vec<Offered> = Vec::new();
        let mut cursor = None;
        for _ in 0..PAGES_MAX {
            let page = PaginatedRequestParams::default().with_cursor(cursor.take());
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(page));
            let (answer, _) = self.ask(request, None).await?;
            let Some(Value::Array(tools)) = answer.get("tools") else {
                return Err(self.failed("server_failed", "tells no list of tools"));
            };
            // A page may be as large as a message: nothing of it is kept beyond what is bounded.
            offered::read(tools, on.limits, &mut listed);
            cursor = answer.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
            if cursor.is_none() || listed.len() >= on.limits.tools_per_server as usize {
                break;
            }
        }
        let tools = Arc::new(listed);
        *kept = Some(tools.clone());
        Ok(tools)
    }

    /// Calls a tool, and gives what the server answers. Dropping the future cancels the call there.
    ///
    /// # Errors
    /// The server refuses the call, or dies in it.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        steps: mpsc::Sender<Step>,
    ) -> Result<Value, ServerError> {
        let Ok(_place) = self.calls.acquire().await else {
            return Err(self.failed("server_died", "is being ended"));
        };
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let (answer, _) = self.ask(request, Some(steps)).await?;
        match answer.get("resultType").and_then(Value::as_str) {
            Some("input_required") => {
                Err(self.failed("server_error", "asks for a person's or a model's input, which it does not get here"))
            }
            Some("task") => Err(self.failed("server_error", "wants to be asked later, which it is not here")),
            _ => Ok(answer),
        }
    }

    async fn ask(
        &self,
        request: ClientRequest,
        steps: Option<mpsc::Sender<Step>>,
    ) -> Result<(Value, RequestId), ServerError> {
        let sent = self.peer.send_request_with_option(request, PeerRequestOptions::no_options()).await;
        let handle = match sent {
            Ok(handle) => handle,
            Err(error) => return Err(self.wrong(error).await),
        };
        let _following = steps.map(|steps| self.watch.follow(handle.progress_token.clone(), steps));
        let mut given_up = GivenUp(Some((self.peer.clone(), handle.id.clone())));
        let answered = handle.rx.await;
        given_up.0 = None;
        match answered {
            Ok(Ok(result)) => {
                let broken = |_| self.failed("server_error", "gave what is no JSON");
                Ok((serde_json::to_value(result).map_err(broken)?, handle.id))
            }
            Ok(Err(error)) => Err(self.wrong(error).await),
            Err(_) => Err(self.wrong(ServiceError::TransportClosed).await),
        }
    }

    fn failed(&self, code: &'static str, what: &str) -> ServerError {
        ServerError { code, message: format!("the server `{}` {what}", self.name) }
    }

    /// What the server or the wire says of an error; cut last, as the rest of a secret would not be found.
    fn shown(&self, text: &str) -> String {
        cut(&one_line(&self.secrets.hide(text)), ERROR_CHARS_MAX)
    }

    async fn wrong(&self, error: ServiceError) -> ServerError {
        match error {
            ServiceError::McpError(error) => {
                let what = format!("refuses: {}", self.shown(&error.message));
                self.failed("server_error", &what)
            }
            // A connection over HTTP goes on with the next request.
            error @ ServiceError::TransportSend(_) if self.program.is_none() => {
                self.failed("server_error", &format!("did not take the call: {}", self.shown(&faults::of_call(&error))))
            }
            ServiceError::TransportClosed | ServiceError::TransportSend(_) | ServiceError::Cancelled { .. } => {
                let said = match &self.program {
                    Some(program) => program.how_it_went().await,
                    None => String::new(),
                };
                let what = format!("ended before it answered, and is started anew when it is needed{said}");
                self.failed("server_died", &what)
            }
            other => self.failed("server_error", &format!("failed: {}", self.shown(&faults::of_call(&other)))),
        }
    }

    /// Hangs up, and ends the program within `within`, with all that it has started.
    pub(super) async fn end(&self, on: Ground<'_>, within: Duration) {
        self.calls.close();
        if let Some(mut service) = self.service.lock().await.take() {
            // Hanging up closes the pipe, which tells the server to end.
            if let Err(error) = service.close_with_timeout(HANG_UP_WITHIN).await {
                tracing::error!(%error, server = %self.name, "hanging up panicked");
            }
        }
        if let Some(program) = &self.program {
            program.end(on, within).await;
        }
    }
}

/// A call that nobody waits for any more: the server is told.
struct GivenUp(Option<(Peer<RoleClient>, RequestId)>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        let Some((peer, id)) = self.0.take() else { return };
        let told = CancelledNotificationParam::new(Some(id), Some("nobody waits for it any more".to_owned()));
        // The pipe bounds how long that takes.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            if let Err(error) = peer.send_notification(CancelledNotification::new(told).into()).await {
                tracing::debug!(%error, "a server was not told that a call is given up");
            }
        });
    }
}

/// Keeps the stream open on which a server of the new era tells that its tools have changed; the guard takes note.
async fn listen(peer: Peer<RoleClient>, name: String) {
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    let mut changes = match peer.listen(filter).await {
        Ok(changes) => changes,
        Err(error) => return tracing::debug!(%error, server = %name, "a server does not tell changes of its tools"),
    };
    drop(peer);
    while let Ok(Some(_)) = changes.next().await {}
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rmcp::service::{ClientLifecycleMode, ClientServiceExt};
    use serde_json::json;
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};

    use super::*;
    use crate::launcher::Strays;
    use crate::limits::Limits;
    use crate::servers::expand::Ready;
    use crate::servers::guard::Guard;
    use crate::servers::lines::Lines;
    use crate::servers::start::StartLimit;

    /// Shakes hands, and gives these answers to requests for its tools, each after the lines before it.
    async fn serve(read: DuplexStream, mut write: DuplexStream, answers: Vec<(&'static str, Value)>) {
        let mut answers = answers.into_iter();
        let mut lines = BufReader::new(read).lines();
        while let Some(line) = lines.next_line().await.expect("a line") {
            let asked: Value = serde_json::from_str(&line).expect("JSON");
            let (before, mut answer) = match asked["method"].as_str() {
                Some("initialize") => {
                    let info = json!({ "name": "s", "version": "1" });
                    let result =
                        json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "serverInfo": info });
                    ("", json!({ "result": result }))
                }
                Some("tools/list") => answers.next().expect("one more answer"),
                _ => continue,
            };
            answer["jsonrpc"] = json!("2.0");
            answer["id"] = asked["id"].clone();
            write.write_all(format!("{before}{answer}\n").as_bytes()).await.expect("written");
        }
    }

    #[tokio::test]
    async fn a_list_is_read_by_the_page_and_asked_for_again_where_asking_failed() {
        let page = |names: &[&str], next: Option<&str>| {
            let tools: Vec<Value> = names.iter().map(|name| json!({ "name": name, "inputSchema": {} })).collect();
            match next {
                Some(next) => json!({ "result": { "tools": tools, "nextCursor": next } }),
                None => json!({ "result": { "tools": tools } }),
            }
        };
        let changed = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n";
        let answers = vec![
            ("", page(&["a", "b"], Some("2"))),
            (changed, page(&["b", "c"], None)),
            ("", json!({ "error": { "code": -32603, "message": "not now" } })),
            ("", page(&["d", "e"], Some("2"))),
            ("", page(&["f", "g"], Some("3"))),
        ];
        let (ours, theirs) = (duplex(65_536), duplex(65_536));
        tokio::spawn(serve(ours.1, theirs.1, answers));
        let watch = Arc::new(Watch::default());
        let pipes = Guard::new("s", Lines::new(theirs.0, ours.0, 65_536), watch.clone());
        let service =
            Client.serve_with_lifecycle(pipes, ClientLifecycleMode::Initialize).await.expect("hands are shaken");
        watch.connected();
        let (limits, strays) = (Limits { tools_per_server: 3, ..Limits::default() }, Strays::new(false));
        let on = Ground { limits: &limits, state: std::path::Path::new("."), strays: &strays };
        let ready = Ready::Http { url: "http://a/".to_owned(), headers: BTreeMap::new(), sse: false };
        let secrets = Secrets::of(&ready, Vec::new());
        let wish = Wish {
            name: "s",
            ready: &ready,
            secrets: &secrets,
            within: Duration::from_secs(1),
            within_of: StartLimit::Host,
            depth: 0,
            inside: None,
        };
        let running = Running::new(on, &wish, service, None, watch);
        for want in ["a b c", "the server `s` refuses: not now", "d e f", "d e f"] {
            let told = match running.tools(on).await {
                Ok(tools) => tools.iter().map(|one| &*one.tool).collect::<Vec<_>>().join(" "),
                Err(error) => error.message,
            };
            assert_eq!(told, want);
        }
    }
}
