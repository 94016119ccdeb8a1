//! The one task that writes.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::task::yield_now;
use tokio::time::timeout;

use super::state::{Next, State};
use super::{Inner, LinkEnd, millis};

/// Writes what is queued until nothing will be any more.
///
/// # Errors
/// [`LinkEnd::WriteStuck`] and [`LinkEnd::WriteError`].
pub(super) async fn write(inner: Arc<Inner>, mut pipe: impl AsyncWrite + Unpin) -> Result<(), LinkEnd> {
    loop {
        let next = inner.state().next();
        match next {
            Next::Write(lines) => write_lines(&inner, &mut pipe, &lines).await?,
            Next::Wait => {
                inner.to_write.notified().await;
                // A runtime of many threads runs this next, before other handlers that are ready: their answers go along.
                if inner.state().is_answering_any() {
                    yield_now().await;
                }
            }
            Next::End => return Ok(()),
        }
    }
}

async fn write_lines(inner: &Inner, pipe: &mut (impl AsyncWrite + Unpin), lines: &[u8]) -> Result<(), LinkEnd> {
    let stuck = millis(inner.limits.write_stuck_ms);
    let mut rest = lines;
    while !rest.is_empty() {
        let written = timeout(stuck, pipe.write(rest)).await.map_err(|_| LinkEnd::WriteStuck)?;
        match written.map_err(LinkEnd::WriteError)? {
            0 => return Err(LinkEnd::WriteError(io::ErrorKind::WriteZero.into())),
            written => rest = &rest[written..],
        }
    }
    timeout(stuck, pipe.flush()).await.map_err(|_| LinkEnd::WriteStuck)?.map_err(LinkEnd::WriteError)?;
    inner.settle(State::written);
    Ok(())
}
