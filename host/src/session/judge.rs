//! What came of a `run`, and what that means for the process.

use assistant_protocol::error::{Kind, RpcError};
use assistant_protocol::peer::CallError;
use assistant_protocol::types::{RunResult, StopReason};

use super::{Runner, cut_bytes, failed};
use crate::process_table::{End, Reason};

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
            Err(error) => return failed(Reason::ProtocolError, error.to_string()),
        };
        let text = cut_bytes(result.content.as_text().into_owned(), self.limits.result_bytes);
        match result.stop_reason {
            StopReason::Finished | StopReason::FinalAnswer | StopReason::Length => {
                End::Finished { result: text, structured: result.structured }
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
        End::Failed { reason, error: crate::text::cut(&error.message, 2_000), partial }
    }
}
