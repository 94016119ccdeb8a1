//! Progress of a call, for a client that asked for it: what the processes do that the call waits for.

use std::time::Duration;

use assistant_protocol::ids::ProcessId;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::{RequestContext, RoleServer};
use tokio::sync::watch;
use tokio::time::Instant;
use uuid::Uuid;

use crate::events::{self, Event, Kind};
use crate::host::Host;
use crate::process_table::{self, Process};
use crate::store::StoreError;
use crate::text::{cut, one_line};

/// How often it is told that a call goes on, where nothing happens.
const EVERY: Duration = Duration::from_secs(5);
/// The shortest time between two tellings.
const SELDOM: Duration = Duration::from_secs(1);
/// Processes of one call that are told of.
const PROCESSES_MAX: usize = 4;
/// Characters of what a process did last.
const DID_CHARS_MAX: usize = 120;
/// What a process does, as far as it is told; its status is told anyway.
const DOES: &[Kind] =
    &[Kind::ModelCall, Kind::ModelRetry, Kind::ModelAnswer, Kind::ToolCall, Kind::Message, Kind::Progress];

/// Tells of a call's progress as long as it is polled: at once where something has changed, at most every [`SELDOM`];
/// else every [`EVERY`]. A client without a token is never told. `names_runs`: also the ids of the processes. Never
/// returns.
pub(super) async fn tell(
    host: &Host,
    context: &RequestContext<RoleServer>,
    mut waited_for: watch::Receiver<Vec<Uuid>>,
    names_runs: bool,
) {
    let Some(token) = context.meta.get_progress_token() else { return std::future::pending().await };
    let mut progress = 0.0;
    let mut told = None;
    let mut told_at = Instant::now();
    loop {
        let on = waited_for.borrow_and_update().clone();
        let mut waiters: Vec<_> = on.iter().map(|id| host.store().waiter(*id)).collect();
        let words = words(host, on, names_runs).await.unwrap_or_else(|error| {
            tracing::debug!(%error, "the progress of a call was not read");
            None
        });
        let due = told_at + EVERY;
        if (words.is_some() && words != told) || Instant::now() >= due {
            progress += 1.0;
            let message = words.as_deref().unwrap_or("the call goes on");
            let told_now = ProgressNotificationParam::new(token.clone(), progress).with_message(message);
            if let Err(error) = context.peer.notify_progress(told_now).await {
                tracing::debug!(%error, "the client was not told of progress");
                return std::future::pending().await;
            }
            (told, told_at) = (words, Instant::now());
            tokio::time::sleep(SELDOM).await;
        }
        let news = async {
            let news = waiters.iter_mut().map(|waiter| Box::pin(waiter.news())).collect::<Vec<_>>();
            if news.is_empty() { std::future::pending().await } else { futures::future::select_all(news).await.0 }
        };
        let waits = async {
            // The sender goes with the call, and this with it.
            if waited_for.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = news => {}
            () = waits => {}
            () = tokio::time::sleep_until(told_at + EVERY) => {}
        }
    }
}

/// What those of `ids` do that are processes; none where none is.
async fn words(host: &Host, ids: Vec<Uuid>, names_runs: bool) -> Result<Option<String>, StoreError> {
    if ids.is_empty() {
        return Ok(None);
    }
    let read = host.store().read(move |db| {
        let mut found = Vec::new();
        for id in ids {
            let Some(process) = process_table::find(db, ProcessId::from(id))? else { continue };
            let did = if found.len() < PROCESSES_MAX {
                events::select(db, process.id, 0, 1, DOES, true)?.pop()
            } else {
                None
            };
            found.push((process, did));
        }
        Ok::<_, StoreError>(found)
    });
    let found = read.await?;
    let mut lines: Vec<String> =
        found.iter().take(PROCESSES_MAX).map(|(process, did)| line(process, did.as_ref(), names_runs)).collect();
    if found.len() > PROCESSES_MAX {
        lines.push(format!("and {} more", found.len() - PROCESSES_MAX));
    }
    Ok((!lines.is_empty()).then(|| lines.join("; ")))
}

/// `poet: running, 2 model calls, last: calls read_file`.
fn line(process: &Process, did: Option<&Event>, names_run: bool) -> String {
    let name = one_line(process.label.as_deref().unwrap_or(&process.assistant_id));
    let name = if names_run { format!("{name} (run_id {})", process.id) } else { name };
    let calls = match process.turns {
        0 => String::new(),
        1 => ", 1 model call".to_owned(),
        calls => format!(", {calls} model calls"),
    };
    let did = did.and_then(|event| events::in_words(event.kind.name(), &event.data));
    let did = did.map(|did| format!(", last: {}", cut(&did, DID_CHARS_MAX))).unwrap_or_default();
    format!("{name}: {}{calls}{did}", process.status)
}
