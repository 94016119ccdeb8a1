//! Commands that are a host: `serve`, in the foreground or behind clients, and `mcp --embedded`.

use std::io::Write;

use clap::Args;
use rmcp::transport::io::stdio_pipes;
use tokio_util::sync::CancellationToken;

use super::open::Setting;
use super::place::{BUILD, Place, config_hash};
use super::start::Word;
use super::within::within;
use super::{FAILED, Failure, Places, USAGE, talk};
use crate::door::hello::{Asked, Identity};
use crate::door::{AwaitingTheEnd, Door, LOCAL};
use crate::host::{Host, OpenError};
use crate::mcp;
use crate::mcp::lines::Lines;
use crate::tools::profile::Profile;

#[derive(Args)]
pub(super) struct ServeArgs {
    /// For clients that start a host: leave their session, and start it behind them
    #[arg(long, hide = true)]
    pub(super) detach: bool,
    /// Say on stdout how it went, once, and end when nobody needs it any more
    #[arg(long, hide = true)]
    pub(super) background: bool,
}

pub(super) fn refused(error: &OpenError) -> Failure {
    let code = match error {
        OpenError::Held { .. } | OpenError::State { .. } | OpenError::Tool { .. } => USAGE,
        OpenError::Store(_) | OpenError::Search(_) => FAILED,
    };
    Failure::new(code, error)
}

/// Cancelled by SIGINT, SIGTERM or SIGHUP.
pub(super) fn stop_on_signal() -> CancellationToken {
    let stop = CancellationToken::new();
    let signalled = stop.clone();
    tokio::spawn(async move {
        signal().await;
        signalled.cancel();
    });
    stop
}

/// A file that grows past a limit of the system (`ulimit -f`) fails to be written, and the program lives on. Children get
/// the system's own way back.
pub(super) fn outlive_file_size_limits() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        // Once heard, the signal does nothing else any more, whether anybody listens or not.
        if let Err(error) = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())) {
            tracing::warn!(%error, "a limit on the size of files ends this program when it is reached");
        }
    }
}

pub(super) async fn serve(places: &Places, args: &ServeArgs) -> Result<u8, Failure> {
    let stop = stop_on_signal();
    outlive_file_size_limits();
    let opened = open(places).await;
    if args.background {
        let word = match &opened {
            Ok(_) => Word::Ready,
            Err(failure) => Word::Failed { code: failure.code, message: failure.message.clone() },
        };
        give_word(&word);
    }
    let (host, door, awaiting) = opened?;
    tracing::info!(
        pid = std::process::id(),
        version = env!("CARGO_PKG_VERSION"),
        build = BUILD,
        state = %host.state_dir().display(),
        socket = %door.address().path().display(),
        project = ?host.project(),
        assistants = host.registry().assistants().len(),
        models = ?host.models().names().collect::<Vec<_>>(),
        "the host is open"
    );
    if !args.background {
        talk(&format!("serving {} (Ctrl-C ends it)", host.state_dir().display()));
    }
    door.serve(stop, !args.background).await;
    host.close().await;
    tracing::info!("the host is closed");
    awaiting.until_the_process_ends();
    Ok(0)
}

async fn open(places: &Places) -> Result<(Host, Door, AwaitingTheEnd), Failure> {
    let place = Place::find(places)?;
    let hash = config_hash(&place.config);
    let setting = Setting::read(places)?;
    let lacks = setting.config.key_variables().into_iter().filter(|name| super::open::env(name).is_none()).collect();
    let uses = Asked { config: Some(place.config.clone()), project: place.project.clone(), ..place.asked.clone() };
    let host = Host::open(setting.options().await?).await.map_err(|error| refused(&error))?;
    let identity = Identity {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        build: BUILD.to_owned(),
        opened_at: super::now_ms(),
        uses,
        automatic: host.default_runner_why().map(str::to_owned),
        config_hash: Some(hash),
        lacks,
    };
    match Door::open(&host, identity, &super::open::run_dir()) {
        Ok((door, awaiting)) => Ok((host, door, awaiting)),
        Err(error) => {
            host.close().await;
            Err(Failure::new(USAGE, format!("no socket for {}: {error}", place.state.display())))
        }
    }
}

/// Tells whoever started this host how it went, and lets go of the pipe.
fn give_word(word: &Word) {
    let line = serde_json::to_string(word).unwrap_or_default();
    let mut stdout = std::io::stdout().lock();
    // Whoever started it may have gone meanwhile: the host stays for others.
    if let Err(error) = writeln!(stdout, "{line}").and_then(|()| stdout.flush()) {
        tracing::warn!(%error, "the client that started this host has gone");
    }
    #[cfg(unix)]
    match std::fs::File::options().write(true).open("/dev/null") {
        Ok(null) => {
            if let Err(error) = rustix::stdio::dup2_stdout(&null) {
                tracing::warn!(%error, "stdout stays open");
            }
        }
        Err(error) => tracing::warn!(%error, "stdout stays open"),
    }
}

/// `mcp --embedded`: the host inside, one client on stdin and stdout.
pub(super) async fn embedded(places: &Places, profile: Profile) -> Result<u8, Failure> {
    let stop = stop_on_signal();
    outlive_file_size_limits();
    let options = Setting::read(places)?.options().await?;
    let host = Host::open(options).await.map_err(|error| refused(&error))?;
    one_client(host, profile, stop).await
}

/// Serves the one client on stdin and stdout, and closes the host behind it.
pub(super) async fn one_client(host: Host, profile: Profile, stop: CancellationToken) -> Result<u8, Failure> {
    let (stdin, stdout) = stdio_pipes();
    let pipe = Lines::new(stdin, stdout);
    let served = tokio::select! {
        served = mcp::serve_as(&host, LOCAL, within(), profile, pipe, stop.clone()) => served,
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
