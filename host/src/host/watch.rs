//! Watches the folders of the sources, and has the assistants read again when something in them changes.
//!
//! Each round watches first and reads then, so that nothing that changes in between goes unseen. Where the system does
//! not watch all folders, the files are looked at from time to time instead.

mod folders;
mod places;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use notify::Event;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::Host;
use folders::{Folders, Unwatched, Watched};
use places::{Concern, Places};

/// How long nothing may have changed before the assistants are read: a change seldom comes alone.
const QUIET: Duration = Duration::from_millis(100);
/// The longest that a change waits for others to end.
const READ_WITHIN: Duration = Duration::from_secs(1);
/// How often the files are looked at where the system does not watch all of them.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// Rung by the system's thread when something changes that concerns the sources.
#[derive(Default)]
struct Bell {
    rung: Notify,
    /// Some of what is watched may be another folder than before.
    moved: AtomicBool,
    /// The system's watching failed in some way.
    failed: AtomicBool,
    places: RwLock<Places>,
}

impl Bell {
    fn hear(&self, heard: notify::Result<Event>) {
        let concern = match heard {
            Ok(event) => self.places.read().unwrap_or_else(PoisonError::into_inner).concern(&event),
            Err(error) => {
                tracing::debug!(%error, "watching the folders of assistants failed");
                self.failed.store(true, Ordering::Release);
                Concern::Moved
            }
        };
        match concern {
            Concern::None => return,
            Concern::Changed => {}
            Concern::Moved => self.moved.store(true, Ordering::Release),
        }
        self.rung.notify_one();
    }

    /// Waits for a change and the quiet after it; where not all is watched, for [`LOOK_AGAIN`] at most.
    async fn wait(&self, all_watched: bool) {
        match all_watched {
            true => self.rung.notified().await,
            // Whether it rang or not, it is time to look.
            false => drop(timeout(LOOK_AGAIN, self.rung.notified()).await),
        }
        if self.failed.swap(false, Ordering::AcqRel) {
            // A system that fails again and again is not asked all the time.
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        let latest = Instant::now() + READ_WITHIN;
        loop {
            let left = latest.saturating_duration_since(Instant::now());
            if left.is_zero() || timeout(QUIET.min(left), self.rung.notified()).await.is_err() {
                return;
            }
        }
    }
}

/// Runs until the host closes.
pub(super) async fn run(host: Host) {
    let mut folders = Folders::default();
    let bell = folders.bell().clone();
    let closing = host.closing().clone();
    let mut told = false;
    while !closing.is_cancelled() {
        let sources = host.clone();
        let watching = tokio::task::spawn_blocking(move || {
            let watched = folders.watch(&sources.0.options.sources);
            (folders, watched)
        });
        let watched = match watching.await {
            Ok((same, watched)) => {
                folders = same;
                watched
            }
            Err(error) => {
                tracing::error!(%error, "watching the folders of assistants panicked; a client that starts has them read");
                return;
            }
        };
        if let Err(error) = &watched
            && !told
        {
            tell(error);
        }
        told = watched.is_err();
        let read = match host.reload().await {
            Ok(_) => true,
            Err(error) => {
                tracing::warn!(%error, "the assistants were not read again; it is tried again");
                false
            }
        };
        closing.run_until_cancelled(bell.wait(matches!(watched, Ok(Watched::All)) && read)).await;
    }
    folders.end().await;
}

fn tell(error: &Unwatched) {
    tracing::warn!(
        %error,
        "not all folders of assistants are watched; they are looked at every {} s instead. Linux watches more with a \
         higher fs.inotify.max_user_watches or fs.inotify.max_user_instances (sysctl)",
        LOOK_AGAIN.as_secs()
    );
}

#[cfg(test)]
mod tests;
