//! Where a command calls tools from: the door of the host in the background, or a host in this process.

use assistant_protocol::ids::SessionId;
use serde_json::Value;

use super::client::{Client, Refused, object};
use super::open::Setting;
use super::serve::refused;
use super::within::within;
use super::{FAILED, Failure, Places};
use crate::caller::MAIN;
use crate::door::LOCAL;
use crate::host::Host;
use crate::tools::CallError;
use crate::tools::profile::Profile;

/// A place at the table of tools.
pub(super) enum Seat {
    /// Behind the door of the host in the background.
    Door(Client),
    /// With a host in this process.
    Inside(Host, SessionId),
}

impl Seat {
    /// Takes a seat behind the door, whose host is started where there is none.
    pub(super) async fn at_the_door(places: &Places, command: &str) -> Result<Self, Failure> {
        Ok(Self::Door(Client::connect(places, command).await?))
    }

    /// Opens a host in this process.
    pub(super) async fn inside(places: &Places) -> Result<Self, Failure> {
        let options = Setting::read(places)?.options().await?;
        let host = Host::open(options).await.map_err(|error| refused(&error))?;
        match host.open_session_with(LOCAL, MAIN, within(), &Profile::Orchestrator).await {
            Ok(session) => Ok(Self::Inside(host, session)),
            Err(error) => {
                host.close().await;
                Err(Failure::new(FAILED, error))
            }
        }
    }

    /// Calls a tool that has to succeed.
    pub(super) async fn call(&self, tool: &'static str, arguments: Value) -> Result<Value, Failure> {
        Ok(self.try_call(tool, arguments).await??)
    }

    /// Calls a tool: its result, or what it says against it.
    pub(super) async fn try_call(
        &self,
        tool: &'static str,
        arguments: Value,
    ) -> Result<Result<Value, Refused>, Failure> {
        let (host, session) = match self {
            Self::Door(client) => return client.try_call(tool, arguments).await,
            Self::Inside(host, session) => (host, *session),
        };
        match host.call(session, tool, object(arguments)?).await {
            Ok(value) => Ok(Ok(value)),
            Err(CallError::Tool(error)) => Ok(Err(Refused::new(error.code, error.message, &error.hint))),
            Err(error @ CallError::UnknownTool(_)) => Err(Failure::new(FAILED, error)),
        }
    }

    /// Gets up: a host in this process is closed.
    pub(super) async fn leave(self) {
        match self {
            Self::Door(_) => {}
            Self::Inside(host, _) => host.close().await,
        }
    }
}
