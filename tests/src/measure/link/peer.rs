//! Our link, with the runtimes and the pipes that a host and a runner have.

use std::fs::File;
use std::io;
use std::process::{ChildStdin, ChildStdout};
use std::sync::Arc;
use std::time::{Duration, Instant};

use assistant_protocol::peer::{LinkEnd, LinkReport, Oddities, Peer, PeerLimits, connect};
use assistant_protocol::service::Service;
use futures::future::try_join_all;
use tokio::net::unix::pipe;
use tokio::runtime::Builder;

use super::{Echo, Load, Payload, Times, differs};

/// The asking side.
///
/// # Errors
/// The link's, and answers that do not fit.
pub fn asks((from, to): (File, File), loads: [Load; 2]) -> io::Result<Times> {
    Builder::new_current_thread().enable_io().enable_time().build()?.block_on(async {
        let (from, to) = (pipe::Receiver::from_owned_fd(from.into())?, pipe::Sender::from_owned_fd(to.into())?);
        let (peer, link) = connect(from, to, Service::new(Arc::new(())), PeerLimits::default());
        let link = tokio::spawn(link);
        let payload = Arc::new(Payload::of(loads[1].bytes));
        let [first, counted] = loads;
        all(&peer, &payload, first).await?;
        let start = Instant::now();
        let times = all(&peer, &payload, counted).await?;
        let took = start.elapsed();
        peer.close();
        ended(&link.await?)?;
        Ok((times, took))
    })
}

/// As many calls as given, one after the other in each of as many tasks as may be under way.
async fn all(peer: &Peer, payload: &Arc<Payload>, load: Load) -> io::Result<Vec<Duration>> {
    let tasks = (0..load.in_flight).map(|task| {
        let (peer, payload) = (peer.clone(), payload.clone());
        let calls = load.calls / load.in_flight + usize::from(task < load.calls % load.in_flight);
        tokio::spawn(async move {
            let mut times = Vec::with_capacity(calls);
            for _ in 0..calls {
                let start = Instant::now();
                let answer = peer.call::<Echo>(&payload).await.map_err(io::Error::other)?;
                if answer.text.len() != payload.text.len() {
                    return Err(differs());
                }
                times.push(start.elapsed());
            }
            Ok(times)
        })
    });
    let times = try_join_all(tasks).await?;
    Ok(times.into_iter().collect::<io::Result<Vec<_>>>()?.concat())
}

/// Answers what is asked, until the link ends.
///
/// # Errors
/// The pipes', and how the link should not end.
pub fn answers(from: ChildStdout, to: ChildStdin) -> io::Result<()> {
    Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let from = tokio::process::ChildStdout::from_std(from)?;
        let to = tokio::process::ChildStdin::from_std(to)?;
        let service = Service::new(Arc::new(())).on(Echo, async |_, payload: Payload, _| Ok(payload));
        let (_peer, link) = connect(from, to, service, PeerLimits::default());
        ended(&tokio::spawn(link).await?)
    })
}

fn ended(report: &LinkReport) -> io::Result<()> {
    let in_order = matches!(report.end, LinkEnd::Eof | LinkEnd::Closed) && report.oddities == Oddities::default();
    in_order.then_some(()).ok_or_else(|| io::Error::other(format!("the link ended: {report:?}")))
}
