//! What went wrong with a server, in words: rmcp tells it in the names of its types.

use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::DynamicTransportError;

/// What went wrong while hands were shaken.
pub(super) fn of_start(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::ConnectionClosed(_) => "it ended before it answered".to_owned(),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => of_start(fallback),
        ClientInitializeError::TransportError { error, .. } => of_wire(error),
        ClientInitializeError::ExpectedInitResponse(_) | ClientInitializeError::ExpectedInitResult(_) => {
            "its answer to the handshake is none of this protocol".to_owned()
        }
        ClientInitializeError::ConflictInitResponseId(..) | ClientInitializeError::UncorrelatedErrorResponse { .. } => {
            "it answered the handshake with the id of another request".to_owned()
        }
        ClientInitializeError::JsonRpcError(error) => {
            format!("it refuses the handshake: {} ({})", error.message, error.code.0)
        }
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let spoken: Vec<&str> = server_supported.iter().map(rmcp::model::ProtocolVersion::as_str).collect();
            format!("it speaks no revision of the protocol that is spoken here, but {}", spoken.join(", "))
        }
        // Those that are left have no types in their words.
        other => other.to_string(),
    }
}

/// What went wrong with a request, where its connection did not take it or its answer was none.
pub(super) fn of_call(error: &ServiceError) -> String {
    match error {
        ServiceError::TransportSend(error) => of_wire(error),
        ServiceError::TransportClosed => "its connection has ended".to_owned(),
        ServiceError::UnexpectedResponse => "its answer is none to this request".to_owned(),
        other => other.to_string(),
    }
}

/// What went wrong with a message on its way.
fn of_wire(error: &DynamicTransportError) -> String {
    #[cfg(feature = "http-servers")]
    if let Some(words) = super::http::fault(error.error.as_ref()) {
        return words;
    }
    let mut words = error.error.to_string();
    let mut cause = error.error.source();
    while let Some(inner) = cause {
        words.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    words
}
