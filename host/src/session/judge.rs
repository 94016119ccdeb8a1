//! What came of a `run`, and what that means for the process.

use assistant_protocol::error::{Kind, RpcError};
use assistant_protocol::peer::CallError;
use assistant_protocol::types::{RunResult, StopReason};

use serde_json::{Value, json};

use super::{Runner, cut_bytes, failed};
use crate::process_table::{End, Reason};
use crate::text::cut;
use crate::{events, output_schema};

/// Characters of a runner's error that become its process's.
pub(super) const ERROR_CHARS_MAX: usize = 2_000;

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
