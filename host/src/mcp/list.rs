//! The list of a client's tools as MCP has it; and tells a client that the list is another one than before: in the
//! handshake era whoever shook hands, later whoever has subscribed.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use rmcp::service::{Peer, RoleServer, SubscriptionSink};
use serde_json::Value;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::host::Host;
use crate::registry::{Registry, sha256_hex};
use crate::tools::profile::Profile;
use crate::tools::{self, listed};

fn object(schema: &Value) -> Arc<JsonObject> {
    Arc::new(schema.as_object().cloned().unwrap_or_default())
}

/// A tool as MCP lists it.
pub(super) fn as_mcp(tool: &tools::Tool) -> Tool {
    let hints = ToolAnnotations::new()
        .read_only(tool.hints.read_only)
        .destructive(tool.hints.destructive)
        .idempotent(tool.hints.idempotent)
        .open_world(tool.hints.open_world);
    let mcp = Tool::new(tool.name.clone(), tool.description.clone(), object(&tool.input_schema))
        .with_title(tool.title.to_string())
        .with_annotations(hints);
    // One whose result is a text has none.
    if tool.output_schema.is_null() { mcp } else { mcp.with_raw_output_schema(object(&tool.output_schema)) }
}

/// The changes of a list of tools that follows the assistants that there are.
pub(super) struct ListChanges {
    host: Host,
    profile: Profile,
    registry: broadcast::Receiver<Arc<Registry>>,
    /// The hash of the list as it was told last.
    told: String,
}

impl ListChanges {
    /// All changes from now on.
    pub(super) fn new(host: &Host, profile: &Profile) -> Self {
        // Subscribed first: a change in between is told.
        let registry = host.registry_changed().subscribe();
        Self { host: host.clone(), profile: profile.clone(), registry, told: hash(host, profile) }
    }

    /// Waits for the next one; false where the host has gone. Several changes at once are one.
    async fn next(&mut self) -> bool {
        loop {
            match self.registry.recv().await {
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return false,
            }
            let now = hash(&self.host, &self.profile);
            if now != self.told {
                self.told = now;
                return true;
            }
        }
    }

    /// Tells a client of the handshake era, until it or the host has gone.
    pub(super) async fn tell(mut self, client: Peer<RoleServer>) {
        while self.next().await {
            if let Err(error) = client.notify_tool_list_changed().await {
                return tracing::debug!(%error, "a client was not told that its tools are other ones");
            }
        }
    }

    /// Tells a client that has subscribed, until it or the host has gone.
    pub(super) async fn tell_subscriber(mut self, client: &SubscriptionSink) {
        while self.next().await {
            if let Err(error) = client.notify_tool_list_changed().await {
                return tracing::debug!(%error, "a client was not told that its tools are other ones");
            }
        }
    }
}

fn hash(host: &Host, profile: &Profile) -> String {
    let list: Vec<String> = profile.listed(host).iter().map(|tool| listed(tool).to_string()).collect();
    sha256_hex(list.join("\n").as_bytes())
}
