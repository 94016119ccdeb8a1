//! Where adapters have no private sockets.

use super::Place;

/// Nothing is read.
pub(super) type Read = tokio::io::Empty;
/// Nothing is written.
pub(super) type Write = tokio::io::Sink;

/// Says that it cannot be.
pub(super) async fn connect(_: &Place) -> Result<(Read, Write), String> {
    Err("there is no way back from an agent to its assistant on this system".to_owned())
}
