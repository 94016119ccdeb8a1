//! The first line each way of a connection, JSON. It is the same in every version of this program, so that each can tell
//! another one apart, ask it and end it: fields are added, never changed, and unknown ones are ignored.

use std::path::PathBuf;

use assistant_protocol::ids::ProcessId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::host::Cleaned;
use crate::host::stored::{How, Stored};
use crate::registry::AssistantId;

/// The longest first line, bytes.
pub const LINE_BYTES_MAX: u64 = 64 * 1024;
/// The most that a client sends behind a welcome to be stored, bytes.
pub const PAYLOAD_BYTES_MAX: u64 = 128 * 1024 * 1024;
/// The longest line that answers it, bytes: it names each assistant.
pub const STORED_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Names of variables that a client tells.
pub const VARIABLES_MAX: usize = 500;

/// What the client wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Want {
    /// MCP, behind these lines.
    Mcp,
    /// To know how the host is.
    Status,
    /// The database made as small as it can be.
    Vacuum,
    /// Assistants stored in the database: once it is welcome, the client sends them as a JSON list.
    Store {
        /// How long the list is.
        bytes: u64,
        /// How they are stored.
        how: How,
    },
    /// An assistant of the database removed.
    Remove {
        /// Which.
        id: AssistantId,
    },
    /// The end of the host; by force where assistants are at work.
    Stop {
        /// End the assistants that are at work.
        force: bool,
    },
}

/// What a client says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// What it wants.
    pub want: Want,
    /// Its version.
    pub version: String,
    /// Its build.
    pub build: String,
    /// Its process id, for the log.
    pub pid: u32,
    /// Which command it is, for the log.
    #[serde(default)]
    pub client: String,
    /// What it was told to use; absent where it takes what the host has.
    #[serde(default)]
    pub asked: Asked,
    /// The hash of the configuration that it would use.
    #[serde(default)]
    pub config_hash: Option<String>,
    /// The names of the variables in its environment.
    #[serde(default)]
    pub variables: Vec<String>,
    /// How many levels of assistants it is below, in this host or another one.
    #[serde(default)]
    pub level: u32,
    /// The process of an assistant in which it runs, in this host or another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<ProcessId>,
    /// The profile whose tools it wants; absent is the host's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

/// What is named on a command line, paths absolute.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// `--config`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<PathBuf>,
    /// `--project`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<PathBuf>,
    /// `--assistants`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assistants: Vec<PathBuf>,
}

/// What a host is, for those who come.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    /// Its version.
    pub version: String,
    /// Its build.
    pub build: String,
    /// When it was opened, Unix milliseconds.
    pub opened_at: i64,
    /// What it uses: the configuration, the project, and the folders that were named.
    pub uses: Asked,
    /// What it uses because nothing is configured, in words.
    pub automatic: Option<String>,
    /// The hash of the configuration that it uses.
    pub config_hash: Option<String>,
    /// Variables that its configuration names and its environment lacks.
    pub lacks: Vec<String>,
}

/// What the host answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Come in.
    Welcome {
        /// The host's process id.
        pid: u32,
        /// What the client should tell its user, one line each.
        told: Vec<String>,
    },
    /// The host ends, and the connection with it: try again then.
    Ending {
        /// The host's process id.
        pid: u32,
    },
    /// Not like this.
    Refused {
        /// Why, and what to do.
        message: String,
    },
    /// How the host is.
    Status(Status),
    /// What was removed, and the space that this gave back.
    Vacuumed(Cleaned),
    /// What became of the assistants that were sent.
    Stored(Stored),
    /// Whether there was such an assistant; it is gone.
    Removed(bool),
}

/// How a host is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Its process id.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// Its build.
    pub build: String,
    /// When it was opened, Unix milliseconds.
    pub opened_at: i64,
    /// Clients that are connected, without the one that asks.
    pub clients: usize,
    /// Processes that have not ended.
    pub living: u32,
    /// What it uses.
    #[serde(default)]
    pub uses: Asked,
    /// What it uses because nothing is configured, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub automatic: Option<String>,
}

/// The line that tells `what`.
///
/// # Errors
/// What has no JSON: a path that is no UTF-8.
pub fn line(what: &impl Serialize) -> Result<Vec<u8>, String> {
    let mut line = serde_json::to_vec(what).map_err(|error| error.to_string())?;
    line.push(b'\n');
    Ok(line)
}

/// Reads a line of the other side.
///
/// # Errors
/// A line that is cut, empty, too long, or something else.
pub fn read<T: DeserializeOwned>(line: &[u8]) -> Result<T, String> {
    match line.split_last() {
        None => Err("the other side went without a word".to_owned()),
        Some((b'\n', line)) => serde_json::from_slice(line).map_err(|error| format!("not a greeting: {error}")),
        Some(_) if line.len() as u64 >= LINE_BYTES_MAX => Err(format!("more than {LINE_BYTES_MAX} bytes in one line")),
        Some(_) => Err("the other side went in the middle of a line".to_owned()),
    }
}
