//! `assistant-host mcp`: the host inside, one client on stdin and stdout.

use rmcp::transport::io::stdio_pipes;
use tokio_util::sync::CancellationToken;

use super::open::Setting;
use super::{FAILED, Failure, Places, USAGE};
use crate::host::{Host, OpenError};
use crate::mcp;

/// On whose behalf a client on stdio is: whoever started it.
pub(super) const LOCAL: &str = "local";

pub(super) fn refused(error: &OpenError) -> Failure {
    let code = match error {
        OpenError::Held { .. } | OpenError::State { .. } => USAGE,
        OpenError::Store(_) | OpenError::Search(_) => FAILED,
    };
    Failure::new(code, error)
}

pub(super) async fn mcp(places: &Places) -> Result<u8, Failure> {
    let stop = CancellationToken::new();
    let signalled = stop.clone();
    tokio::spawn(async move {
        signal().await;
        signalled.cancel();
    });
    let options = Setting::read(places)?.options().await?;
    let host = Host::open(options).await.map_err(|error| refused(&error))?;
    let served = tokio::select! {
        served = mcp::serve(&host, LOCAL, stdio_pipes(), stop.clone()) => served,
        () = stop.cancelled() => Ok(()),
    };
    host.close().await;
    match served {
        Ok(()) => Ok(0),
        Err(error) => Err(Failure::new(FAILED, error)),
    }
}

/// Waits for SIGINT, SIGTERM or SIGHUP (Ctrl-C elsewhere).
pub(super) async fn signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        match kinds.into_iter().map(signal).collect::<std::io::Result<Vec<_>>>() {
            Ok(mut signals) => {
                let heard = signals.iter_mut().map(|one| Box::pin(one.recv()));
                futures::future::select_all(heard).await;
            }
            Err(error) => {
                tracing::error!(%error, "signals cannot be heard");
                std::future::pending::<()>().await;
            }
        }
    }
    #[cfg(not(unix))]
    if let Err(error) = tokio::signal::ctrl_c().await {
        tracing::error!(%error, "Ctrl-C cannot be heard");
        std::future::pending::<()>().await;
    }
}
