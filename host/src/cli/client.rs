//! A command's own connection to the host: an MCP client like any other.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::ServiceExt;
use rmcp::model::{CallToolRequestParams, CallToolResult, ReadResourceRequestParams, ResourceContents};
use rmcp::service::{ClientInitializeError, RoleClient, RunningService, ServiceError};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::RwLock;

use super::place::Place;
use super::start::{self, Tried};
use super::{FAILED, Failure, Places};
use crate::door::hello::Want;
use crate::door::{self, Address};
use crate::tools::profile::without_tools;

/// Tools whose call may be made again when its host went: a second one does no more than the first.
const REPEATED: [&str; 5] = ["list_process", "poll_assistant", "read_log", "wait_assistant", "get_pending_questions"];
/// What does on a command line what a tool does; a longer text goes before one that is a part of it.
const COMMANDS: [(&str, &str); 12] = [
    ("spawn_assistant with resume_process_id", "resume"),
    ("list_assistant", "list"),
    ("search_assistant", "search"),
    ("spawn_assistant", "spawn"),
    ("poll_assistant", "ps"),
    ("wait_assistant", "wait"),
    ("list_process", "ps"),
    ("read_log", "logs"),
    ("send_message", "send"),
    ("get_pending_questions", "questions"),
    ("reply_assistant", "reply"),
    ("cancel_assistant", "cancel"),
];
/// Tools that a hint may name, and no command stands for.
const TOOLS_WITHOUT_COMMAND: &[&str] = &["recv_message", "ask_parent", "check_answer"];
/// Hosts that a connection, or one call, is tried with in all.
const HOSTS_TRIED_MAX: usize = 5;

type Service = RunningService<RoleClient, ()>;

/// A client of the host of a place. When that host goes, it finds or starts another one.
pub(super) struct Client {
    service: RwLock<Arc<Service>>,
    /// Where another host is found, and which command wants it; none: a host that goes is gone.
    found_by: Option<(Places, String)>,
}

/// Why a call has no result.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Refused {
    /// As the tool tells it: `unknown_process`, …
    pub(super) code: String,
    /// The same in words.
    pub(super) message: String,
    /// What to do next.
    #[serde(default)]
    pub(super) hint: String,
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        Failure::new(FAILED, refused.words())
    }
}

impl Refused {
    /// What a tool said, with commands in place of the tools that its hint names; nothing is said of other tools.
    pub(super) fn new(code: String, message: String, hint: &str) -> Self {
        let said = COMMANDS
            .iter()
            .fold(hint.to_owned(), |said, (tool, command)| said.replace(tool, &format!("`assistant-host {command}`")));
        Self { code, message, hint: without_tools(&said, TOOLS_WITHOUT_COMMAND) }
    }

    /// What happened and what to do next, in one line.
    pub(super) fn words(&self) -> String {
        match self.hint.trim() {
            "" => self.message.clone(),
            hint => format!("{}; {hint}", self.message.trim_end_matches('.')),
        }
    }
}

impl Client {
    /// Connects to the host of these places, and starts it where there is none.
    pub(super) async fn connect(places: &Places, command: &str) -> Result<Self, Failure> {
        let service = Self::reach(places, command, &mut 0).await?;
        Ok(Self { service: RwLock::new(Arc::new(service)), found_by: Some((places.clone(), command.to_owned())) })
    }

    /// A host that ends between its welcome and its first answer is one that went: another is found. `tried` counts them.
    async fn reach(places: &Places, command: &str, tried: &mut usize) -> Result<Service, Failure> {
        use ClientInitializeError::{ConnectionClosed, TransportError};
        loop {
            *tried += 1;
            match ().serve(Self::let_in(places, command).await?).await {
                Ok(service) => return Ok(service),
                Err(ConnectionClosed(_) | TransportError { .. }) if *tried < HOSTS_TRIED_MAX => {}
                Err(error) => return Err(Failure::new(FAILED, format!("the host was not understood: {error}"))),
            }
        }
    }

    /// A connection that a host has welcomed.
    async fn let_in(places: &Places, command: &str) -> Result<door::Connection, Failure> {
        let place = Place::find(places)?;
        let hello = place.hello(Want::Mcp, command);
        let runtime = tokio::runtime::Handle::current();
        let reaching = tokio::task::spawn_blocking(move || {
            let address = || Address::find(&place.state);
            start::reach(&place, || match runtime.block_on(door::connect(&address(), &hello)) {
                Ok((connection, reply)) => start::sorted(reply, connection),
                Err(_) => Ok(Tried::Gone),
            })
        });
        reaching.await.map_err(|error| Failure::new(FAILED, error))?
    }

    /// Connects to the host of a state directory, if there is one; of whatever build and setting.
    pub(super) async fn of_state(state: &std::path::Path) -> Option<Self> {
        let places = Places { state: Some(state.to_owned()), no_project: true, ..Places::default() };
        let place = Place::find(&places).ok()?;
        let hello = door::hello::Hello { config_hash: None, ..place.hello(Want::Mcp, "look") };
        let (connection, reply) = door::connect(&Address::find(&place.state), &hello).await.ok()?;
        match start::sorted(reply, connection) {
            Ok(Tried::In(connection)) => {
                let service = ().serve(connection).await.ok()?;
                Some(Self { service: RwLock::new(Arc::new(service)), found_by: None })
            }
            Ok(Tried::Gone) | Err(_) => None,
        }
    }

    /// Another host in place of one that went, unless a call beside this one has found it already.
    async fn again(&self, gone: &Arc<Service>, tried: &mut usize) -> Result<(), Failure> {
        let Some((places, command)) = &self.found_by else { return Err(Failure::new(FAILED, "the host has gone")) };
        let mut service = self.service.write().await;
        if Arc::ptr_eq(&service, gone) {
            *service = Arc::new(Self::reach(places, command, tried).await?);
        } else {
            *tried += 1;
        }
        Ok(())
    }

    async fn ask(&self, asked: CallToolRequestParams) -> Result<CallToolResult, Failure> {
        let mut tried = 1;
        loop {
            let service = self.service.read().await.clone();
            match service.call_tool(asked.clone()).await {
                Ok(result) => return Ok(result),
                Err(ServiceError::TransportClosed | ServiceError::TransportSend(_)) if tried < HOSTS_TRIED_MAX => {
                    self.again(&service, &mut tried).await?;
                    if !REPEATED.contains(&asked.name.as_ref()) {
                        let message = "the host ended while it worked on this; another one is there now: look with \
                                       `assistant-host ps` whether it was done, before you try again";
                        return Err(Failure::new(FAILED, message));
                    }
                }
                Err(error) => return Err(Failure::new(FAILED, format!("the host did not answer: {error}"))),
            }
        }
    }

    /// Reads a resource.
    pub(super) async fn read(&self, uri: &str) -> Result<Vec<u8>, Failure> {
        let service = self.service.read().await.clone();
        let read = service.read_resource(ReadResourceRequestParams::new(uri)).await.map_err(|error| match error {
            ServiceError::McpError(refused) => Failure::new(FAILED, refused.message),
            error => Failure::new(FAILED, format!("the host did not answer: {error}")),
        })?;
        match read.contents.into_iter().next() {
            Some(ResourceContents::TextResourceContents { text, .. }) => Ok(text.into_bytes()),
            Some(ResourceContents::BlobResourceContents { blob, .. }) => STANDARD
                .decode(blob)
                .map_err(|error| Failure::new(FAILED, format!("the host answered with what is no base64: {error}"))),
            _ => Err(Failure::new(FAILED, "the host answered without contents")),
        }
    }

    /// Calls a tool; an error of the tool is a failure in its words.
    pub(super) async fn call(&self, tool: &'static str, arguments: Value) -> Result<Value, Failure> {
        Ok(self.try_call(tool, arguments).await??)
    }

    /// Calls a tool: its result, or what it says against it.
    pub(super) async fn try_call(
        &self,
        tool: &'static str,
        arguments: Value,
    ) -> Result<Result<Value, Refused>, Failure> {
        let result = self.ask(CallToolRequestParams::new(tool).with_arguments(object(arguments)?)).await?;
        let text = || {
            let first = result.content.first().and_then(|content| content.as_text());
            first.map(|text| text.text.clone()).unwrap_or_default()
        };
        if result.is_error == Some(true) {
            let told = text();
            return Ok(Err(match serde_json::from_str(&told) {
                Ok(Refused { code, message, hint }) => Refused::new(code, message, &hint),
                Err(_) => Refused::new("internal".to_owned(), told, ""),
            }));
        }
        match result.structured_content {
            Some(value) => Ok(Ok(value)),
            None => Err(Failure::new(FAILED, format!("{tool} answered without data: {}", text()))),
        }
    }
}

/// The arguments of a tool.
pub(super) fn object(arguments: Value) -> Result<Map<String, Value>, Failure> {
    match arguments {
        Value::Object(arguments) => Ok(arguments),
        _ => Err(Failure::new(FAILED, "the arguments of a tool are an object")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::tools::{Audience, table};

    #[test]
    fn a_hint_names_commands_and_no_tools() {
        let check = |hint: &str, want: &str| assert_eq!(Refused::new(String::new(), String::new(), hint).hint, want);
        check("", "");
        check("Correct it.", "Correct it.");
        check(
            "Near to it: a. search_assistant finds one by a description.",
            "Near to it: a. `assistant-host search` finds one by a description.",
        );
        check(
            "recv_message reads what it wrote; spawn_assistant with resume_process_id goes on with it.",
            "`assistant-host resume` goes on with it.",
        );
        check("Wait for its end; send_message writes to it.", "Wait for its end; `assistant-host send` writes to it.");
        for tool in table(&Limits::default()).iter().filter(|tool| tool.audience == Audience::Everyone) {
            let told = Refused::new(String::new(), String::new(), &format!("Call {}.", tool.name)).hint;
            assert!(!told.contains(tool.name.as_ref()), "{told}");
        }
    }
}
