//! A runner's program while it runs, and its end.

use std::process::ExitStatus;

use process_wrap::tokio::ChildWrapper;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::started::Started;

/// How a child ended, or why that is not known.
pub(crate) type Exit = Result<ExitStatus, String>;

/// A started child, the leader of a group. A task of its own waits for the leader, and kills the rest of the group as
/// soon as that has ended: nothing of it holds the pipes open then. Dropped, it is killed.
pub(crate) struct Child {
    group: Option<u32>,
    exit: watch::Receiver<Option<Exit>>,
    kill: CancellationToken,
}

impl Child {
    pub(super) fn keep(group: Box<dyn ChildWrapper>, started: Started) -> Self {
        let (told, exit) = watch::channel(None);
        let kill = CancellationToken::new();
        let pid = started.pid();
        tokio::spawn(keep(Group(Some(group)), started, kill.clone(), told));
        Self { group: pid, exit, kill }
    }

    /// The id of its group.
    pub(crate) fn group(&self) -> Option<u32> {
        self.group
    }

    /// Kills it and its whole group. [`Child::exited`] tells when that is done.
    pub(crate) fn kill(&self) {
        self.kill.cancel();
    }

    /// Waits until it has ended and the rest of its group is killed. May be dropped and called again.
    pub(crate) fn exited(&self) -> impl Future<Output = Exit> + Send + use<> {
        let mut exit = self.exit.clone();
        async move {
            match exit.wait_for(Option::is_some).await.map(|told| told.clone()) {
                Ok(Some(told)) => told,
                Ok(None) | Err(_) => Err("nobody waits for it any more".to_owned()),
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A group that has not ended; it is killed when it is dropped.
struct Group(Option<Box<dyn ChildWrapper>>);

impl Group {
    /// Kills all of it.
    fn end(&mut self) {
        if let Some(mut group) = self.0.take()
            && let Err(error) = group.start_kill()
        {
            tracing::trace!(%error, "nothing was left of a group");
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

async fn keep(mut group: Group, started: Started, kill: CancellationToken, told: watch::Sender<Option<Exit>>) {
    let Some(child) = &mut group.0 else { return };
    // The leader only: waiting for the group would wait for whatever it has started.
    let ended = tokio::select! {
        ended = child.inner_mut().wait() => Some(ended),
        () = kill.cancelled() => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            if let Err(error) = child.start_kill() {
                tracing::debug!(%error, "a group cannot be killed");
            }
            child.inner_mut().wait().await
        }
    };
    group.end();
    drop(started);
    told.send_replace(Some(ended.map_err(|error| error.to_string())));
}
