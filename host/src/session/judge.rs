//! What came of a `run`, and what that means for the process.

use std::time::Duration;

use assistant_protocol::error::{Kind, RpcError};
use assistant_protocol::peer::{CallError, LinkEnd, Oddities};
use assistant_protocol::types::{MAX_FRAME_BYTES, RunResult, StopReason};

use serde_json::{Value, json};
use tokio::time::timeout;

use super::{Runner, cut_bytes, failed};
use crate::process_table::{End, Reason};
use crate::text::cut;
use crate::{events, launcher, output_schema};

/// Characters of a runner's error that become its process's.
pub(super) const ERROR_CHARS_MAX: usize = 2_000;

/// Lines of stderr that an error quotes.
const STDERR_LINES: usize = 5;

impl Runner {
    /// What an answered `run` means for the process.
    pub(super) async fn judge(&mut self, answer: Result<RunResult, CallError>) -> End {
        let result = match answer {
            Ok(result) => result,
            Err(CallError::Answered(error)) => return self.judge_error(&error),
            Err(CallError::Closed) => {
                let (reason, error) = self.how_it_went().await;
                return failed(reason, error);
            }
            // A conversation that is longer than the runner's lines may be cannot be gone on with.
            Err(error @ CallError::FrameTooLarge { .. }) => return failed(Reason::ContextExceeded, error.to_string()),
            Err(error) => return failed(Reason::ProtocolError, error.to_string()),
        };
        let ended = matches!(result.stop_reason, StopReason::Finished | StopReason::FinalAnswer | StopReason::Length);
        if let (Some(answering), true) = (&self.link.answering, ended) {
            return answering.judge(&self.link, result).await;
        }
        let text = cut_bytes(result.content.as_text().into_owned(), self.limits.result_bytes);
        match result.stop_reason {
            StopReason::Finished | StopReason::FinalAnswer | StopReason::Length => {
                let (structured, large) = match result.structured {
                    Some(value) if !fits(&value, self.limits.result_bytes) => (None, true),
                    structured => (structured, false),
                };
                if large {
                    let told = json!({ "left_out": "structured", "limit": "result_bytes" });
                    self.link.record(events::Kind::Link, told).await;
                }
                let result =
                    if text.trim().is_empty() { structured.iter().map(Value::to_string).collect() } else { text };
                End::Finished { result, structured }
            }
            StopReason::Refused => {
                let partial = (!text.trim().is_empty()).then_some(text);
                End::Failed { reason: Reason::ModelFailed, error: "the model refused to answer".to_owned(), partial }
            }
            StopReason::Cancelled => {
                failed(Reason::ProtocolError, "the runner answered `cancelled`, and nobody had asked for it")
            }
        }
    }

    /// The words for a runner that does not answer `initialize`.
    pub(super) async fn too_slow(&mut self, within: Duration) -> String {
        let said = self.stderr.last(STDERR_LINES).await;
        let said = if said.is_empty() { String::new() } else { format!("; it said: {said}") };
        let whose = match &self.link.row.launcher {
            Some(name) => format!("`launch_ms` of [launchers.{name}]"),
            None => "the limit".to_owned(),
        };
        let ms = within.as_millis();
        format!(
            "limit launch_ms: the runner did not answer `initialize` within {ms} ms; check its program, or raise {whose}{said}"
        )
    }

    /// The reason and the words for a link that has ended before its run did.
    pub(super) async fn how_it_went(&mut self) -> (Reason, String) {
        self.running.ended().await;
        let (end, oddities) = match self.running.report.take() {
            Some(report) => (report.end, report.oddities),
            None => (LinkEnd::Closed, Oddities::default()),
        };
        self.link.note(&oddities).await;
        match end {
            LinkEnd::Eof | LinkEnd::Closed | LinkEnd::WriteError(_) => {
                let within = Duration::from_millis(self.limits.shutdown_ms);
                let exit = match timeout(within, self.child.exited()).await {
                    Ok(Ok(status)) => format!("exited with {}", launcher::code(status)),
                    _ => "closed its pipe".to_owned(),
                };
                let said = self.stderr.last(STDERR_LINES).await;
                let said = if said.is_empty() { String::new() } else { format!("; it said: {said}") };
                (Reason::RunnerExited, format!("the runner {exit} before its run ended{said}"))
            }
            LinkEnd::Noise { count } => {
                let first = oddities.junk.first().cloned().unwrap_or_default();
                (
                    Reason::ProtocolNoise,
                    format!("the runner wrote {count} lines that are no messages; the first: {first}"),
                )
            }
            LinkEnd::FrameTooLarge => {
                (Reason::ProtocolError, format!("the runner wrote a line of more than {MAX_FRAME_BYTES} bytes"))
            }
            LinkEnd::WriteStuck => (Reason::ProtocolError, "the runner does not read its pipe".to_owned()),
            LinkEnd::ReadError(error) => (Reason::RunnerExited, format!("the runner's pipe cannot be read: {error}")),
        }
    }

    fn judge_error(&self, error: &RpcError) -> End {
        let partial = self.link.partial();
        let reason = match error.kind() {
            Some(Kind::ModelFailed) => Reason::ModelFailed,
            // A conversation that is longer than a line may be is longer than any model takes.
            Some(Kind::ContextExceeded | Kind::FrameTooLarge) => Reason::ContextExceeded,
            Some(Kind::BudgetExceeded) => Reason::BudgetExceeded,
            Some(Kind::DeadlineExceeded) => Reason::TimedOut,
            _ => Reason::ProtocolError,
        };
        End::Failed { reason, error: cut(&error.message, ERROR_CHARS_MAX), partial }
    }
}

/// Whether data that no schema asked for is small enough to be kept beside the text.
fn fits(value: &Value, bytes_max: u64) -> bool {
    value.to_string().len() as u64 <= bytes_max && output_schema::levels(value) <= output_schema::LEVELS_MAX
}
