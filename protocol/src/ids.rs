//! What processes, threads, messages and sessions are known by: UUIDs of version 7, which sort by time.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use uuid::Uuid;

/// A string that is no id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no {what} (a UUID)")]
pub struct BadId {
    what: &'static str,
    text: String,
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $what:literal;)*) => { $(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// A new id, after all that this program made before.
            #[must_use]
            pub fn mint() -> Self {
                Self(Uuid::now_v7())
            }

            /// The bare UUID.
            #[must_use]
            pub fn uuid(self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = BadId;

            fn from_str(text: &str) -> Result<Self, BadId> {
                let shown = || text.chars().take(80).collect();
                Uuid::parse_str(text).map(Self).map_err(|_| BadId { what: $what, text: shown() })
            }
        }

        impl From<Uuid> for $name {
            fn from(uuid: Uuid) -> Self {
                Self(uuid)
            }
        }

        impl From<$name> for Uuid {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(D::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string" })
            }
        }
    )* };
}

ids! {
    /// One run of an assistant.
    ProcessId "process id";
    /// The conversation and mailbox of one process.
    ThreadId "thread id";
    /// One message of a thread.
    MessageId "message id";
    /// One connection of a principal.
    SessionId "session id";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_comes_back_from_its_text() {
        let id = ThreadId::mint();
        let json = serde_json::to_string(&id).expect("writes");
        assert_eq!(serde_json::from_str::<ThreadId>(&json).expect("reads"), id);
        assert_eq!(ThreadId::from(Uuid::from(id)), id);
    }

    #[test]
    fn what_is_no_id_is_refused_by_name() {
        let refused = serde_json::from_str::<ThreadId>("\"x\"").expect_err("refused");
        assert_eq!(refused.to_string(), "`x` is no thread id (a UUID)");
    }
}
