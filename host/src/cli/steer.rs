//! `status` and `stop`: they ask the host that is there, and start none.

use std::fs::{File, TryLockError};
use std::io::Read;

use clap::Args;
use serde_json::json;

use super::place::{BUILD, Place};
use super::{FAILED, Failure, Places, say, start, talk};
use crate::door::Address;
use crate::door::hello::{Reply, Want};

#[derive(Args)]
pub(super) struct StatusArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(super) struct StopArgs {
    /// End it also where assistants are at work: they are cancelled
    #[arg(long)]
    force: bool,
}

/// Who holds a state directory without a door: a host inside another program. None where nobody does.
pub(super) fn held_without_door(place: &Place) -> Option<String> {
    let lock = File::options().write(true).open(place.state.join("lock")).ok()?;
    match lock.try_lock() {
        Err(TryLockError::WouldBlock) => {
            let pid = std::fs::read_to_string(place.state.join("pid")).unwrap_or_default();
            Some(if pid.trim().is_empty() { "unknown".to_owned() } else { pid.trim().to_owned() })
        }
        Ok(()) | Err(TryLockError::Error(_)) => None,
    }
}

pub(super) fn status(places: &Places, args: &StatusArgs) -> Result<u8, Failure> {
    let place = Place::find(places)?;
    let found = start::status(&place);
    let held = if found.is_none() { held_without_door(&place) } else { None };
    if args.json {
        say(&json!({
            "running": found.is_some(),
            "state": place.state,
            "socket": Address::find(&place.state).path(),
            "log": place.log(),
            "held_by": held,
            "host": found,
            "same_build": found.as_ref().map(|status| status.build == BUILD),
        })
        .to_string());
        return Ok(if found.is_some() { 0 } else { FAILED });
    }
    let Some(status) = found else {
        return Err(Failure::new(
            FAILED,
            match held {
                Some(pid) => {
                    format!("{} is held by process {pid}, which has no door for others", place.state.display())
                }
                None => format!("no host runs for {}", place.state.display()),
            },
        ));
    };
    let since = super::ago(status.opened_at);
    let build = if status.build == BUILD { "" } else { " (another build than this one)" };
    say(&format!("process {}, version {}{build}, since {since}", status.pid, status.version));
    say(&format!("state    {}", place.state.display()));
    say(&format!("socket   {}", Address::find(&place.state).path().display()));
    say(&format!("log      {}", place.log().display()));
    if let Some(project) = &status.uses.project {
        say(&format!("project  {}", project.display()));
    }
    if let Some(config) = &status.uses.config {
        say(&format!("config   {}", config.display()));
    }
    if let Some(automatic) = &status.automatic {
        say(&format!("runner   {automatic}"));
    }
    say(&format!("clients  {}", status.clients));
    say(&format!("working  {}", status.living));
    Ok(0)
}

pub(super) fn stop(places: &Places, args: &StopArgs) -> Result<u8, Failure> {
    let place = Place::find(places)?;
    let (mut stream, reply) = match start::ask(&place, &place.hello(Want::Stop { force: args.force }, "stop")) {
        Ok(answered) => answered,
        Err(_) => {
            return match held_without_door(&place) {
                Some(pid) => Err(Failure::new(
                    FAILED,
                    format!("{} is held by process {pid}, which has no door: end that one", place.state.display()),
                )),
                None => {
                    talk(&format!("no host runs for {}", place.state.display()));
                    Ok(0)
                }
            };
        }
    };
    match reply {
        Reply::Ending { pid } => {
            // The host keeps this connection until its process ends.
            let mut rest = Vec::new();
            if let Err(error) = stream.read_to_end(&mut rest) {
                talk(&format!("the end of the host was not seen: {error}"));
            }
            talk(&format!("the host (process {pid}) has ended"));
            Ok(0)
        }
        Reply::Refused { message } => Err(Failure::new(FAILED, message)),
        Reply::Welcome { .. } | Reply::Status(_) | Reply::Vacuumed(_) | Reply::Stored(_) | Reply::Removed(_) => {
            Err(Failure::new(FAILED, "the host did not understand"))
        }
    }
}
