//! What passed between a host and the runner of one process, as a value: read from a store, or from a file of its own.

use std::path::Path;

use assistant_protocol::error::RpcError;
use assistant_protocol::ids::{MessageId, ProcessId, ThreadId};
use assistant_protocol::types::{CancelParams, Mail, Message, RunLimits, RunParams, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::NoReplay;
use crate::events::recorded;
use crate::process_table::Status;
use crate::store;

/// The version of the files that this program writes, and the only one that it reads.
const VERSION: u32 = 1;
/// The largest file that is read, bytes.
const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// What passed between a host and the runner of one process.
///
/// ```no_run
/// # async fn check() -> Result<(), Box<dyn std::error::Error>> {
/// use assistant_host::launcher::RunnerCommand;
/// use assistant_host::replay::{Recording, replay};
///
/// let recording = Recording::read_file("recordings/parallel-tools.json".as_ref())?;
/// let report = replay(&recording, &RunnerCommand::new("my-runner"), Default::default()).await?;
/// assert!(report.identical(), "{report}");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Recording {
    /// The version of this shape.
    pub version: u32,
    /// The process, as the runner was told it.
    pub process_id: ProcessId,
    /// Its thread.
    pub thread_id: ThreadId,
    /// How far it was: `finished`, `failed`, `cancelled`, or what it was doing when this was read.
    pub status: String,
    /// Why it ended, where there is a reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The name of its runner; none is the host's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<String>,
    /// What the runner was told of its limits.
    pub limits: RunLimits,
    /// What it was run with first.
    pub run: RunParams,
    /// What passed, in order.
    pub steps: Vec<Step>,
}

/// One thing that passed. Whatever the runner asks may be asked beside other things; answers are given in order.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum Step {
    /// The host asks the runner to run; with a query only behind the first time.
    Run {
        /// What a result that did not fit was sent back with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        query: Option<String>,
    },
    /// The runner answers its run.
    Ran {
        /// The answer.
        answer: RunAnswer,
    },
    /// The host asks it to stop.
    Cancel(CancelParams),
    /// The host gives it a message.
    Deliver {
        /// The message.
        message: Box<Mail>,
    },
    /// The runner has the message.
    Delivered {
        /// The message's.
        message_id: MessageId,
    },
    /// The runner asks its model.
    ModelAsked(ModelAsked),
    /// It is answered.
    ModelAnswered {
        /// Which of the model calls.
        call: u64,
        /// The answer.
        answer: Answer,
    },
    /// The runner calls a tool.
    ToolAsked {
        /// The call.
        call_id: String,
        /// The tool.
        tool_name: String,
        /// Its arguments.
        arguments: Value,
    },
    /// It is answered.
    ToolAnswered {
        /// The call.
        call_id: String,
        /// The answer.
        answer: Answer,
    },
    /// The runner asks for something else, and is answered.
    Other {
        /// The method.
        method: String,
        /// Its params.
        params: Value,
        /// The answer.
        answer: Answer,
    },
}

/// A model call. Its conversation is that of the call before with what that was answered, as far as it was kept, and what
/// is new.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelAsked {
    /// Which of the model calls.
    pub call: u64,
    /// Messages that are kept, without system messages.
    pub keep: usize,
    /// Messages behind them.
    pub add: Vec<Message>,
    /// The system messages with their places; absent: the prompt of the run, first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<Vec<(usize, Message)>>,
    /// The tools; absent: those of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<GivenTools>,
    /// Settings for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Map<String, Value>>,
}

/// Tools of a model call that are not those of its run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GivenTools {
    /// The tools; none where the field was absent.
    pub given: Option<Vec<ToolSpec>>,
}

/// What a request was answered with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// A result.
    Result(Value),
    /// An error.
    Error(Failed),
}

/// An error as it was answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failed {
    /// The number.
    pub code: i32,
    /// For people.
    pub message: String,
    /// `kind`, and what belongs to it.
    #[serde(default)]
    pub data: Map<String, Value>,
}

impl From<Failed> for RpcError {
    fn from(Failed { code, message, data }: Failed) -> Self {
        Self { code, message, data }
    }
}

impl From<RpcError> for Failed {
    fn from(RpcError { code, message, data }: RpcError) -> Self {
        Self { code, message, data }
    }
}

/// How a run was answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunAnswer {
    /// With a result; `content` and `structured` may be known by their hash only.
    Result {
        /// Why it ended.
        stop_reason: Value,
        /// The last answer of the model.
        content: Known,
        /// The result as data.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        structured: Option<Known>,
    },
    /// With an error.
    Error(Failed),
}

/// A value, or what is known of one that was too large to be recorded again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Known {
    /// The value.
    Whole(Value),
    /// The SHA-256 of its JSON, in hexadecimal.
    Hash(String),
}

impl Recording {
    /// Reads what the store in `state` has of a process, beside a living host or without one. Nothing is changed.
    ///
    /// # Errors
    /// [`NoReplay`]: there is no such process, or not enough is recorded of it.
    pub fn read(state: &Path, process: ProcessId) -> Result<Self, NoReplay> {
        let looked = store::peek(state, |db| Ok(recorded::read(db, process)))?;
        looked.ok_or(NoReplay::Unknown(process))?
    }

    /// Reads a file that [`Recording::write_file`] wrote.
    ///
    /// # Errors
    /// [`NoReplay::File`].
    pub fn read_file(file: &Path) -> Result<Self, NoReplay> {
        let wrong = |why: String| NoReplay::File { path: file.to_owned(), why };
        let about = std::fs::metadata(file).map_err(|error| wrong(error.to_string()))?;
        if !about.is_file() {
            return Err(wrong("it is no file".to_owned()));
        }
        let bytes = about.len();
        if bytes > FILE_BYTES_MAX {
            return Err(wrong(format!("it has {bytes} bytes, and at most {FILE_BYTES_MAX} are read")));
        }
        let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
        let recording: Self =
            serde_json::from_str(&text).map_err(|error| wrong(format!("it is no recording: {error}")))?;
        match recording.version {
            VERSION if recording.steps.is_empty() => {
                Err(wrong("nothing passed in it: there is nothing to play again".to_owned()))
            }
            VERSION => Ok(recording),
            other => Err(wrong(format!("it is a recording of version {other}, and only {VERSION} is known"))),
        }
    }

    /// Writes it to a file, as JSON that a difference of two versions can be read in.
    ///
    /// # Errors
    /// [`NoReplay::File`].
    pub fn write_file(&self, file: &Path) -> Result<(), NoReplay> {
        let wrong = |why: String| NoReplay::File { path: file.to_owned(), why };
        let json = serde_json::to_string_pretty(self).map_err(|error| wrong(error.to_string()))?;
        std::fs::write(file, json + "\n").map_err(|error| wrong(error.to_string()))
    }

    /// One of nothing but its beginning.
    pub(crate) fn new(process_id: ProcessId, thread_id: ThreadId, limits: RunLimits, run: RunParams) -> Self {
        Self {
            version: VERSION,
            process_id,
            thread_id,
            status: String::new(),
            reason: None,
            runner: None,
            limits,
            run,
            steps: Vec::new(),
        }
    }

    /// Whether the process still was at work when this was read: there may be more of it later.
    #[must_use]
    pub fn still_runs(&self) -> bool {
        Status::ALL.iter().any(|status| !status.is_end() && status.name() == self.status)
    }

    /// Where the process was in its life, and why.
    pub(crate) fn recorded_as(&self) -> String {
        match &self.reason {
            Some(reason) => format!("{} ({reason})", self.status),
            None => self.status.clone(),
        }
    }

    /// Whether the last run was answered, so that all of it can be compared.
    #[must_use]
    pub fn complete(&self) -> bool {
        let of_runs = |step: &&Step| matches!(step, Step::Run { .. } | Step::Ran { .. });
        self.steps.iter().rfind(of_runs).is_some_and(|step| matches!(step, Step::Ran { .. }))
    }
}
