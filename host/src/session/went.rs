//! How a run went, and the waits between two of them, which whatever ends the process ends too.

use assistant_protocol::peer::CallError;
use assistant_protocol::types::RunResult;

use super::watch::{Stop, told_to_stop};
use super::{Runner, failed};
use crate::process_table;
use crate::store::StoreError;

/// What came of a `run`.
pub(super) enum Outcome {
    Answered(Result<RunResult, CallError>),
    /// With what the runner handed in.
    Stopped(Stop, Option<String>),
}

/// Whether a process goes on.
pub(super) enum Went<T> {
    On(T),
    /// It has ended meanwhile.
    Ended,
}

impl Runner {
    /// An unsettled process waits for any message.
    pub(super) async fn wait_for_mail(&mut self) -> Result<Went<()>, StoreError> {
        let (host, process) = (self.host.clone(), self.process);
        let mut waiter = host.store().waiter(process);
        self.unless_stopped(async move {
            while !host.store().write(move |tx| process_table::resume_unsettled(tx, process)).await? {
                waiter.news().await;
            }
            Ok(())
        })
        .await
    }

    /// Waits for something. Something else may end the process meanwhile: then that is done, and told.
    pub(super) async fn unless_stopped<T>(
        &mut self,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<Went<T>, StoreError> {
        let host = self.host.clone();
        let stop = tokio::select! {
            biased;
            stop = told_to_stop(&host, self.process) => stop,
            done = work => return done.map(Went::On),
            () = host.awake().sleep_until(self.deadline) => Stop::TimedOut,
            () = self.running.ended() => {
                let (reason, error) = self.how_it_went().await;
                self.end(failed(reason, error)).await?;
                return Ok(Went::Ended);
            }
        };
        self.stop(stop, None).await?;
        Ok(Went::Ended)
    }
}
