//! `vacuum`: removes what was kept for long enough and gives its space back; by the host where one runs.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::open::Setting;
use super::place::Place;
use super::{FAILED, Failure, Places, say, serve, start, steer, talk};
use crate::door::hello::{Reply, Want};
use crate::host::{self, Cleaned};

/// How long a host may take: it writes the whole database anew.
const WITHIN: Duration = Duration::from_secs(10 * 60);

#[derive(Args)]
pub(super) struct VacuumArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn vacuum(places: &Places, args: &VacuumArgs) -> Result<u8, Failure> {
    let place = Place::find(places)?;
    let file = place.state.join(crate::store::FILE);
    let (done, by_host) = match start::ask_within(&place, &place.hello(Want::Vacuum, "vacuum"), WITHIN) {
        Ok((_, Reply::Vacuumed(done))) => (done, true),
        Ok((_, Reply::Refused { message })) => return Err(Failure::new(FAILED, message)),
        Ok(_) => return Err(Failure::new(FAILED, "the host did not understand")),
        Err(error) if matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock) => {
            let message = format!("the host has not answered for {} s; it may still be at it", WITHIN.as_secs());
            return Err(Failure::new(FAILED, message));
        }
        Err(_) => match steer::held_without_door(&place) {
            Some(pid) => {
                let message = format!(
                    "{} is held by process {pid}, which has no door or is of an older version: end that one, then try \
                     again",
                    place.state.display()
                );
                return Err(Failure::new(FAILED, message));
            }
            None if !file.is_file() => {
                talk(&format!("there is nothing to do: there is no {}", file.display()));
                return Ok(0);
            }
            None => {
                serve::outlive_file_size_limits();
                let limits = Setting::read(places)?.config.limits;
                let done = host::vacuum(&place.state, limits, Arc::new(super::now_ms)).await;
                (done.map_err(|error| serve::refused(&error))?, false)
            }
        },
    };
    if args.json {
        let Cleaned { removed, space } = done;
        say(&json!({
            "database": file,
            "by_host": by_host,
            "trees_removed": removed.trees,
            "processes_removed": removed.processes,
            "bytes_before": space.bytes_before,
            "bytes_after": space.bytes_after,
        })
        .to_string());
    } else {
        tell(&done);
    }
    Ok(0)
}

fn tell(done: &Cleaned) {
    let Cleaned { removed, space } = done;
    say(&format!("removed  {} processes in {} trees", removed.processes, removed.trees));
    say(&format!("before   {}", super::size(space.bytes_before)));
    say(&format!("after    {}", super::size(space.bytes_after)));
}
