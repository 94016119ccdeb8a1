//! Every error of the protocol: its kind, its number and what it means.
//!
//! `data.kind` is the contract; the number follows from it and the message is for people.

use jsonrpsee_types::ErrorObjectOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The number of the first kind of our own; the others follow in the order of [`Kind::ALL`].
pub const FIRST_OWN_CODE: i32 = 4000;

macro_rules! kinds {
    (standard { $($(#[doc = $sdoc:literal])* $std:ident $sname:literal = $code:literal;)* }
     own { $($(#[doc = $doc:literal])* $own:ident $name:literal;)* }) => {
        /// What kind of error an answer is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum Kind {
            $($(#[doc = $sdoc])* $std,)*
            $($(#[doc = $doc])* $own,)*
        }

        impl Kind {
            /// The kinds of our own, in the order of their numbers.
            pub const OWN: &'static [Kind] = &[$(Kind::$own,)*];
            /// Errors of `on_tool_call` that a model can do something about: it is told, and the run goes on. All others end it.
            pub const MENDABLE: &'static [Kind] = &[
                Kind::UnknownTool,
                Kind::InvalidParams,
                Kind::NotPermitted,
                Kind::DeadlineExceeded,
                Kind::FrameTooLarge,
                Kind::Overloaded,
            ];
            /// All kinds: those of JSON-RPC first.
            pub const ALL: &'static [Kind] = &[$(Kind::$std,)* $(Kind::$own,)*];

            /// The value of `data.kind`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Kind::$std => $sname,)* $(Kind::$own => $name,)* }
            }

            /// What it means.
            #[must_use]
            pub fn doc(self) -> &'static str {
                match self {
                    $(Kind::$std => concat!($($sdoc,)*).trim_ascii(),)*
                    $(Kind::$own => concat!($($doc,)*).trim_ascii(),)*
                }
            }

            /// The number of the error.
            #[must_use]
            pub fn code(self) -> i32 {
                match self {
                    $(Kind::$std => $code,)*
                    own => FIRST_OWN_CODE + Kind::OWN.iter().zip(0..).find(|(kind, _)| **kind == own).map_or(0, |(_, n)| n),
                }
            }
        }
    };
}

kinds! {
    standard {
        /// The line is no JSON.
        ParseError "parse_error" = -32700;
        /// The line is JSON, but no request.
        InvalidRequest "invalid_request" = -32600;
        /// The receiver does not answer this method.
        MethodNotFound "method_not_found" = -32601;
        /// The params do not fit the method.
        InvalidParams "invalid_params" = -32602;
        /// The receiver failed: a handler panicked, was dropped, or could not store.
        InternalError "internal_error" = -32603;
    }
    own {
        /// More requests are in flight than the receiver takes.
        Overloaded "overloaded";
        /// The call was cancelled, or its process is.
        Cancelled "cancelled";
        /// The call took longer than its bound.
        DeadlineExceeded "deadline_exceeded";
        /// No tool of this name is offered to this process.
        UnknownTool "unknown_tool";
        /// The `thread_id` is not the runner's own.
        ForeignThread "foreign_thread";
        /// The caller may not do this.
        NotPermitted "not_permitted";
        /// A limit is reached; the message names it.
        BudgetExceeded "budget_exceeded";
        /// The model's provider failed; `data` has provider, status and retryable.
        ModelFailed "model_failed";
        /// The conversation is longer than the model takes.
        ContextExceeded "context_exceeded";
        /// The receiver is ending.
        ShuttingDown "shutting_down";
        /// A line is longer than the receiver takes.
        FrameTooLarge "frame_too_large";
        /// The receiver does not speak this version.
        UnsupportedProtocol "unsupported_protocol";
    }
}

/// The error of one answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct RpcError {
    /// The number: of [`Kind::code`], or whatever a stranger sent.
    pub code: i32,
    /// For people.
    pub message: String,
    /// `kind`, and what belongs to it.
    pub data: Map<String, Value>,
}

impl RpcError {
    /// An error of a kind.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        let data = Map::from_iter([("kind".to_owned(), json!(kind.name()))]);
        Self { code: kind.code(), message: message.into(), data }
    }

    /// Adds a field to `data`.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.data.insert(key.to_owned(), value.into());
        self
    }

    /// The kind that `data.kind` tells, else the one that the number tells.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        let told = self.data.get("kind").and_then(Value::as_str);
        let all = || Kind::ALL.iter().copied();
        all().find(|kind| told == Some(kind.name())).or_else(|| all().find(|kind| kind.code() == self.code))
    }
}

impl From<RpcError> for ErrorObjectOwned {
    fn from(error: RpcError) -> Self {
        let data = (!error.data.is_empty()).then_some(error.data);
        ErrorObjectOwned::owned(error.code, error.message, data)
    }
}

impl From<ErrorObjectOwned> for RpcError {
    fn from(error: ErrorObjectOwned) -> Self {
        let data = error.data().and_then(|raw| serde_json::from_str(raw.get()).ok());
        let data = match data {
            Some(Value::Object(map)) => map,
            Some(other) => Map::from_iter([("data".to_owned(), other)]),
            None => Map::new(),
        };
        Self { code: error.code(), message: error.message().to_owned(), data }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_kinds_are_numbered_in_order() {
        let got: Vec<_> = Kind::OWN.iter().map(|kind| (kind.code(), kind.name())).collect();
        let names = [
            "overloaded",
            "cancelled",
            "deadline_exceeded",
            "unknown_tool",
            "foreign_thread",
            "not_permitted",
            "budget_exceeded",
            "model_failed",
            "context_exceeded",
            "shutting_down",
            "frame_too_large",
            "unsupported_protocol",
        ];
        assert_eq!(got, (4000..).zip(names).collect::<Vec<_>>());
    }

    #[test]
    fn kind_survives_the_wire() {
        for kind in Kind::ALL {
            let error = RpcError::new(*kind, "m").with("status", 429);
            let back = RpcError::from(ErrorObjectOwned::from(error.clone()));
            assert_eq!((back.kind(), back), (Some(*kind), error));
        }
    }
}
