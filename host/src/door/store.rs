//! Assistants that a client sends to be stored.

use std::time::Duration;

use tokio::io::AsyncReadExt;

use super::Connection;
use super::hello::Reply;
use crate::host::Host;
use crate::host::stored::How;
use crate::registry::Definition;

/// How long a client may take to send them.
const SENT_WITHIN: Duration = Duration::from_secs(60);

/// Reads a list of `bytes` bytes, at most [`super::hello::PAYLOAD_BYTES_MAX`], and stores what it holds.
pub(super) async fn store(host: &Host, connection: &mut Connection, bytes: u64, how: How) -> Reply {
    let refused = |message: String| Reply::Refused { message };
    let mut list = Vec::new();
    let mut sent = connection.take(bytes);
    match tokio::time::timeout(SENT_WITHIN, sent.read_to_end(&mut list)).await {
        Ok(Ok(read)) if read as u64 == bytes => {}
        Ok(Ok(read)) => return refused(format!("{read} of {bytes} bytes came; nothing was stored")),
        Ok(Err(error)) => return refused(format!("the list could not be read: {error}; nothing was stored")),
        Err(_) => return refused(format!("the list took longer than {} s; nothing was stored", SENT_WITHIN.as_secs())),
    }
    let parsed = tokio::task::spawn_blocking(move || serde_json::from_slice::<Vec<Definition>>(&list));
    let definitions = match parsed.await {
        Ok(Ok(definitions)) => definitions,
        Ok(Err(error)) => return refused(format!("what came is no list of assistants: {error}; nothing was stored")),
        Err(error) => return refused(format!("the list could not be read: {error}; nothing was stored")),
    };
    match host.store_assistants(definitions, how).await {
        Ok(stored) => {
            let (added, replaced) = (stored.added.len(), stored.replaced.len());
            tracing::info!(added, replaced, dry_run = how.dry_run, "a client stored assistants");
            Reply::Stored(stored)
        }
        Err(error) => refused(error.to_string()),
    }
}
