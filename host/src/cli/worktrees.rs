//! `worktrees`: the git worktrees that assistants work in or have left. It takes no lock, and asks no host.

use std::path::Path;

use assistant_protocol::ids::ProcessId;
use clap::Args;
use serde_json::json;

use super::place::Place;
use super::processes::short;
use super::{FAILED, Failure, Places, USAGE, ago, say, talk};
use crate::process_table::worktree::{self, State, Worktree};
use crate::store;
use crate::worktrees::remove_kept;

/// What is said of one whose process has ended and that nobody has looked into yet.
const ENDING: &str = "its process has ended, and a host looks into it next";
/// Characters of a part of an id at least; fewer would hit by chance.
const PART_CHARS_MIN: usize = 6;

#[derive(Args)]
pub(super) struct WorktreesArgs {
    /// Remove these: ids of their processes, as they are listed. What is committed there stays on its branch
    #[arg(long, value_name = "ID", num_args = 1..)]
    remove: Vec<String>,
    /// With --remove, also what is not committed, and the branch
    #[arg(long, requires = "remove")]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn worktrees(places: &Places, args: &WorktreesArgs) -> Result<u8, Failure> {
    let place = Place::find(places)?;
    let looked = store::peek(&place.state, |db| Ok((worktree::all(db)?, worktree::ending(db)?)));
    let (all, ending) = looked.map_err(|error| Failure::new(FAILED, error))?.unwrap_or_default();
    // What somebody has removed with git is forgotten by the next host.
    let there: Vec<Worktree> = all.into_iter().filter(|one| one.state != State::Kept || is_there(one)).collect();
    if args.remove.is_empty() {
        list(&there, &ending, args.json);
        return Ok(0);
    }
    let meant: Vec<&Worktree> = args.remove.iter().map(|part| find(&there, part)).collect::<Result<_, _>>()?;
    let (mut removed, mut code) = (Vec::new(), 0);
    for one in meant {
        if ending.contains(&one.id) {
            talk(&format!("{} stays: {ENDING}; try it again in a moment", one.path));
            code = FAILED;
            continue;
        }
        match remove_kept(one, args.force).await {
            Ok(branch) => {
                if !args.json {
                    let branch = if branch {
                        format!("; what is committed is on the branch {}", one.branch)
                    } else {
                        String::new()
                    };
                    talk(&format!("removed {}{branch}", one.path));
                }
                removed.push(json!({ "process_id": one.process, "path": one.path, "branch_kept": branch }));
            }
            Err(why) => {
                talk(&format!("{} stays: {why}", one.path));
                code = FAILED;
            }
        }
    }
    if args.json {
        say(&json!({ "removed": removed }).to_string());
    }
    Ok(code)
}

/// Whether there are files of it, or its repository knows of it.
fn is_there(one: &Worktree) -> bool {
    Path::new(&one.path).exists() || one.git_dir.as_deref().is_some_and(|git_dir| Path::new(git_dir).exists())
}

fn list(all: &[Worktree], ending: &[ProcessId], as_json: bool) {
    if as_json {
        let item = |one: &Worktree| {
            let mut item = json!(one);
            if ending.contains(&one.id) {
                item["ending"] = json!(true);
            }
            item
        };
        return say(&json!({ "items": all.iter().map(item).collect::<Vec<_>>() }).to_string());
    }
    if all.is_empty() {
        return talk("no worktrees");
    }
    for one in all {
        let holds = match (one.state, one.holds.as_deref()) {
            (State::Kept, _) if !Path::new(&one.path).exists() => "its folder is gone".to_owned(),
            (State::Kept, Some(holds)) => holds.to_owned(),
            (State::Kept, None) => "kept".to_owned(),
            (State::Making | State::Used, _) if ending.contains(&one.id) => ENDING.to_owned(),
            (State::Making | State::Used, _) => "at work".to_owned(),
        };
        let id = one.process.to_string();
        let age = ago(one.created_at);
        say(&format!(
            "{}  {}  {age}  {holds}\n          {}\n          {}",
            short(&id),
            one.assistant_id,
            one.branch,
            one.path
        ));
    }
}

/// The worktree of the process whose id begins or ends with `part`.
fn find<'a>(all: &'a [Worktree], part: &str) -> Result<&'a Worktree, Failure> {
    let part = part.trim().to_ascii_lowercase();
    let fits = |id: ProcessId| {
        let id = id.to_string();
        part.len() >= PART_CHARS_MIN && (id.starts_with(&part) || id.ends_with(&part))
    };
    let found: Vec<&Worktree> = all.iter().filter(|one| fits(one.process) || fits(one.id)).collect();
    match found.as_slice() {
        [one] => Ok(one),
        [] => Err(Failure::new(
            USAGE,
            format!("no worktree belongs to a process `{part}`; `assistant-host worktrees` lists them"),
        )),
        more => Err(Failure::new(USAGE, format!("`{part}` fits {} worktrees; give more of the id", more.len()))),
    }
}
