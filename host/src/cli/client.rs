//! A command's own connection to the host: an MCP client like any other.

use rmcp::ServiceExt;
use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::{RoleClient, RunningService};
use serde::Deserialize;
use serde_json::Value;

use super::place::Place;
use super::start::{self, Tried};
use super::{FAILED, Failure, Places};
use crate::door::hello::Want;
use crate::door::{self, Address};

/// A client of the host of a place.
pub(super) struct Client {
    service: RunningService<RoleClient, ()>,
}

/// Why a call has no result.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Refused {
    /// As the tool tells it: `unknown_process`, …
    pub(super) code: String,
    /// The same in words.
    pub(super) message: String,
    /// What to do next; for models.
    #[serde(default)]
    pub(super) hint: String,
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        Failure::new(FAILED, refused.message)
    }
}

impl Client {
    /// Connects to the host of these places, and starts it where there is none.
    pub(super) async fn connect(places: &Places, command: &str) -> Result<Self, Failure> {
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
        let connection = reaching.await.map_err(|error| Failure::new(FAILED, error))??;
        Self::over(connection).await
    }

    /// Connects to the host of a state directory, if there is one; of whatever build and setting.
    pub(super) async fn of_state(state: &std::path::Path) -> Option<Self> {
        let places = Places { state: Some(state.to_owned()), no_project: true, ..Places::default() };
        let place = Place::find(&places).ok()?;
        let hello = door::hello::Hello { config_hash: None, ..place.hello(Want::Mcp, "look") };
        let (connection, reply) = door::connect(&Address::find(&place.state), &hello).await.ok()?;
        match start::sorted(reply, connection) {
            Ok(Tried::In(connection)) => Self::over(connection).await.ok(),
            Ok(Tried::Gone) | Err(_) => None,
        }
    }

    async fn over(
        connection: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + 'static,
    ) -> Result<Self, Failure> {
        let service = ().serve(connection).await;
        let service = service.map_err(|error| Failure::new(FAILED, format!("the host was not understood: {error}")))?;
        Ok(Self { service })
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
        let Value::Object(arguments) = arguments else {
            return Err(Failure::new(FAILED, "the arguments of a tool are an object"));
        };
        let asked = CallToolRequestParams::new(tool).with_arguments(arguments);
        let answered = self.service.call_tool(asked).await;
        let result: CallToolResult = answered.map_err(|error| {
            Failure::new(FAILED, format!("the host did not answer: {error}; the same command reaches another one"))
        })?;
        let text = || {
            let first = result.content.first().and_then(|content| content.as_text());
            first.map(|text| text.text.clone()).unwrap_or_default()
        };
        if result.is_error == Some(true) {
            let told = text();
            let refused = serde_json::from_str(&told);
            return Ok(Err(refused.unwrap_or(Refused { code: "internal".into(), message: told, hint: String::new() })));
        }
        match result.structured_content {
            Some(value) => Ok(Ok(value)),
            None => Err(Failure::new(FAILED, format!("{tool} answered without data: {}", text()))),
        }
    }
}
