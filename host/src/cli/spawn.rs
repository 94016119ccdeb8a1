//! `spawn` and `resume`: processes that live on when the command has ended.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, IsTerminal};
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Map, Value, json};

use super::client::{Client, Refused};
use super::extras::Extras;
use super::processes::{Listing, resolve, short};
use super::report::milliseconds;
use super::run::not_spawned;
use super::{FAILED, Failure, Places, USAGE, now_ms, say, talk};
use crate::tools;

/// Tasks of one file.
const TASKS_MAX: usize = 10_000;
/// Processes among which those to be resumed are looked for, the newest first.
const RESUMED_MAX: usize = 10_000;
/// How long one call waits for room; the host may make it less.
const WAIT_MS: u64 = 20_000;
/// Processes that one wait for an end names.
const NAMED_MAX: usize = 100;

#[derive(Args)]
pub(super) struct SpawnArgs {
    /// The task, complete in itself; `-` reads it from stdin
    #[arg(required_unless_present = "file")]
    query: Option<String>,
    /// This assistant instead of the best match
    #[arg(long, value_name = "ID")]
    assistant: Option<String>,
    /// A configured model, instead of the assistant's own
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Background to the task
    #[arg(long, value_name = "TEXT")]
    context: Option<String>,
    /// A label, shown in lists
    #[arg(long, value_name = "LABEL")]
    name: Option<String>,
    /// Folder of its file tools, below the project
    #[arg(long, value_name = "DIR")]
    working_dir: Option<String>,
    #[command(flatten)]
    extras: Extras,
    /// Many tasks: a JSON object a line, with the arguments of spawn_assistant; `-` reads them from stdin
    #[arg(long, value_name = "TASKS.jsonl", conflicts_with_all = ["query", "assistant", "model", "context", "name", "working_dir", "inputs", "output_schema", "runner"])]
    file: Option<PathBuf>,
    /// Wait until all have ended, and tell each end
    #[arg(long)]
    wait: bool,
    /// Print a line of JSON for each
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(super) struct ResumeArgs {
    /// The processes, or the beginnings or ends of their ids that no other has
    #[arg(required_unless_present = "failed")]
    ids: Vec<String>,
    /// All that failed and were not resumed
    #[arg(long, conflicts_with = "ids")]
    failed: bool,
    /// With --failed: only those that ended within this time, like 30m, 12h or 7d
    #[arg(long, value_name = "TIME", requires = "failed", value_parser = milliseconds)]
    since: Option<i64>,
    /// What to do next; one that has finished needs it, others go on with what they did
    #[arg(long, value_name = "TEXT")]
    query: Option<String>,
    /// A configured runner, instead of the one that it had
    #[arg(long, value_name = "NAME")]
    runner: Option<String>,
    /// Print a line of JSON for each; with --failed a last one for all
    #[arg(long)]
    json: bool,
}

pub(super) async fn spawn(places: &Places, args: &SpawnArgs) -> Result<u8, Failure> {
    let tasks = match &args.file {
        Some(file) => tasks(file)?,
        None => vec![task(args)?],
    };
    let client = Client::connect(places, "spawn").await?;
    let (spawned, code) = spawn_all(&client, tasks, args.json).await?;
    if !args.wait || spawned.is_empty() {
        return Ok(code);
    }
    Ok(code.max(super::wait::until_ended(&client, &spawned, args.json).await?))
}

fn task(args: &SpawnArgs) -> Result<Map<String, Value>, Failure> {
    let query = super::talk::text(args.query.as_deref().unwrap_or_default())?;
    let mut task = Map::from_iter([("query".to_owned(), json!(query))]);
    match &args.assistant {
        Some(id) => task.insert("assistant_id".to_owned(), json!(id)),
        None => task.insert("search".to_owned(), json!({ "text": query })),
    };
    for (name, value) in
        [("model", &args.model), ("context", &args.context), ("name", &args.name), ("working_dir", &args.working_dir)]
    {
        task.extend(value.iter().map(|value| (name.to_owned(), json!(value))));
    }
    args.extras.add_to(&mut task)?;
    Ok(task)
}

/// The tasks of a file. All lines are read before anything is spawned: a bad one spoils nothing.
fn tasks(file: &Path) -> Result<Vec<Map<String, Value>>, Failure> {
    let unreadable = |error: std::io::Error| Failure::new(USAGE, format!("cannot read {}: {error}", file.display()));
    let lines: Box<dyn BufRead> = match file.to_str() {
        Some("-") => Box::new(std::io::stdin().lock()),
        _ => Box::new(BufReader::new(std::fs::File::open(file).map_err(unreadable)?)),
    };
    let (mut tasks, mut bad) = (Vec::new(), Vec::new());
    for (line, number) in lines.lines().zip(1..) {
        let line = line.map_err(unreadable)?;
        if line.trim().is_empty() {
            continue;
        }
        match serde_json::from_str(&line) {
            Ok(Value::Object(task)) => match tools::check_spawn(&task) {
                Ok(()) => tasks.push(task),
                Err(error) => bad.push(format!("line {number}: {}", error.message)),
            },
            Ok(_) => bad.push(format!("line {number}: no JSON object")),
            Err(error) => bad.push(format!("line {number}: {error}")),
        }
        if tasks.len() + bad.len() > TASKS_MAX {
            return Err(Failure::new(USAGE, format!("{} has more than {TASKS_MAX} tasks", file.display())));
        }
    }
    if bad.is_empty() && !tasks.is_empty() {
        return Ok(tasks);
    }
    let why = if bad.is_empty() { "it has no tasks".to_owned() } else { bad.join("\n") };
    Err(Failure::new(USAGE, format!("nothing was spawned; {}:\n{why}", file.display())))
}

/// Spawns each, detached unless it says otherwise; a bar on a terminal where there are many. Where the host takes no more
/// for now, the rest is spawned as others start and end. Gives the ids of what was spawned, and the exit code.
async fn spawn_all(
    client: &Client,
    tasks: Vec<Map<String, Value>>,
    as_json: bool,
) -> Result<(Vec<String>, u8), Failure> {
    let many = tasks.len() > 1;
    let shown = many && std::io::stderr().is_terminal();
    let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(tasks.len() as u64), target);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} spawned, {eta} left") {
        bar.set_style(style);
    }
    let mut refusals: Vec<(usize, Refused)> = Vec::new();
    let (mut ids, mut earlier) = (Vec::new(), VecDeque::new());
    for (mut task, number) in tasks.into_iter().zip(1..) {
        task.entry("detached").or_insert(json!(true));
        let mut answer = client.try_call("spawn_assistant", Value::Object(task.clone())).await?;
        while let Err(refused) = &answer
            && makes_room(client, &refused.code, &mut earlier).await?
        {
            answer = client.try_call("spawn_assistant", Value::Object(task.clone())).await?;
        }
        match answer {
            Ok(spawned) => {
                bar.suspend(|| tell(&spawned, as_json));
                let id = spawned["process_id"].as_str().unwrap_or_default().to_owned();
                earlier.push_back(id.clone());
                ids.push(id);
            }
            Err(refused) => {
                if as_json {
                    bar.suspend(|| say(&json!({ "task": number, "error": told(&refused) }).to_string()));
                }
                refusals.push((number, refused));
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    match refusals.as_slice() {
        [] => Ok((ids, 0)),
        [(_, refused)] if !many => Err(not_spawned(refused)),
        several => {
            for (number, refused) in several {
                talk(&format!("task {number}: {}", refused.words()));
            }
            Ok((ids, FAILED))
        }
    }
}

/// Waits for a place among those that `spawned` holds, where that is what a spawn lacks; false where it lacks another
/// thing. A place in the queue is free when the oldest has started, one among the living when one has ended.
async fn makes_room(client: &Client, code: &str, spawned: &mut VecDeque<String>) -> Result<bool, Failure> {
    match code {
        "limit_queue_per_session" => {
            let Some(oldest) = spawned.front() else { return Ok(false) };
            let asked = json!({ "process_id": oldest, "include_summary": false, "wait_ms": WAIT_MS });
            if client.call("poll_assistant", asked).await?["process"]["status"] != "queued" {
                spawned.pop_front();
            }
            Ok(true)
        }
        "limit_living_per_session" if !spawned.is_empty() => {
            let named: Vec<&String> = spawned.iter().take(NAMED_MAX).collect();
            let mut asked = json!({ "process_ids": named, "wait_ms": WAIT_MS });
            loop {
                let answer = client.call("wait_assistant", asked.clone()).await?;
                let left = answer["still_running"].as_array().cloned().unwrap_or_default();
                let before = spawned.len();
                let mut place = 0;
                spawned.retain(|id| {
                    place += 1;
                    place > NAMED_MAX || left.iter().any(|one| one == id.as_str())
                });
                if spawned.len() < before {
                    return Ok(true);
                }
                asked["cursor"] = answer["next_cursor"].clone();
            }
        }
        _ => Ok(false),
    }
}

fn told(refused: &Refused) -> Value {
    json!({ "code": refused.code, "message": refused.message, "hint": refused.hint })
}

fn tell(spawned: &Value, as_json: bool) {
    if as_json {
        return say(&spawned.to_string());
    }
    let text = |key: &str| spawned[key].as_str().unwrap_or_default();
    say(text("process_id"));
    talk(&format!("{} {}: {}", short(text("process_id")), text("assistant_id"), text("status")));
}

pub(super) async fn resume(places: &Places, args: &ResumeArgs) -> Result<u8, Failure> {
    let since = args.since.map(|span| now_ms() - span);
    let client = Client::connect(places, "resume").await?;
    let mut meant = Vec::new();
    if args.failed {
        let mut asked = json!({ "status": "failed" });
        if let Some(since) = since {
            asked["since"] = json!(since);
        }
        let failed = Listing::read(&client, &asked, RESUMED_MAX).await?.rows()?;
        // Those below another one belong to it: it is resumed, and spawns anew what it needs.
        let ended_since = |at: Option<i64>| since.is_none_or(|since| at.is_some_and(|at| at >= since));
        meant.extend(
            failed.into_iter().filter(|row| row.level == 0 && ended_since(row.finished_at)).map(|row| row.process_id),
        );
    }
    for id in &args.ids {
        meant.push(resolve(&client, id).await?);
    }
    let (mut resumed, mut refusals, mut code) = (0, 0, 0);
    for process in &meant {
        let mut asked = json!({ "resume_process_id": process, "detached": true });
        if let Some(query) = &args.query {
            asked["query"] = json!(query);
        }
        if let Some(runner) = &args.runner {
            asked["runner"] = json!(runner);
        }
        match client.try_call("spawn_assistant", asked).await? {
            Ok(spawned) => {
                tell(&spawned, args.json);
                resumed += 1;
            }
            // With --failed, what goes on already is no fault.
            Err(refused) if args.failed && refused.code == "process_resumed" => {}
            Err(refused) => {
                if args.json {
                    say(&json!({ "process_id": process, "error": told(&refused) }).to_string());
                }
                talk(&format!("{}: {}", short(process), refused.words()));
                (refusals, code) = (refusals + 1, FAILED);
            }
        }
    }
    if args.failed && args.json {
        say(&json!({ "totals": { "failed": meant.len(), "resumed": resumed, "refused": refusals } }).to_string());
    } else if args.failed {
        talk(&format!("{resumed} go on"));
    }
    Ok(code)
}
