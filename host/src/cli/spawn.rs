//! `spawn` and `resume`: processes that live on when the command has ended.

use std::io::{BufRead, BufReader, IsTerminal};
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Map, Value, json};

use super::client::{Client, Refused};
use super::processes::{Listing, resolve, short};
use super::report::milliseconds;
use super::run::not_spawned;
use super::{FAILED, Failure, Places, USAGE, now_ms, say, talk};

/// Tasks of one file.
const TASKS_MAX: usize = 10_000;
/// Processes among which those to be resumed are looked for, the newest first.
const RESUMED_MAX: usize = 10_000;

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
    /// Many tasks: a JSON object a line, with the arguments of spawn_assistant; `-` reads them from stdin
    #[arg(long, value_name = "TASKS.jsonl", conflicts_with_all = ["query", "assistant", "model", "context", "name", "working_dir"])]
    file: Option<PathBuf>,
    /// Print a line of JSON for each
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(super) struct ResumeArgs {
    /// The processes, or unique parts of their ids
    #[arg(required_unless_present = "failed")]
    ids: Vec<String>,
    /// All that failed and were not resumed
    #[arg(long, conflicts_with = "ids")]
    failed: bool,
    /// With --failed: only those that ended within this time, like 30m, 12h or 7d
    #[arg(long, value_name = "TIME", requires = "failed", value_parser = milliseconds)]
    since: Option<i64>,
    /// What to do next; left out, they go on with what they did
    #[arg(long, value_name = "TEXT")]
    query: Option<String>,
    /// Print a line of JSON for each
    #[arg(long)]
    json: bool,
}

pub(super) async fn spawn(places: &Places, args: &SpawnArgs) -> Result<u8, Failure> {
    let tasks = match &args.file {
        Some(file) => tasks(file)?,
        None => vec![task(args)?],
    };
    let client = Client::connect(places, "spawn").await?;
    spawn_all(&client, tasks, args.json).await
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
            Ok(Value::Object(task)) if has_assistant(&task) => tasks.push(task),
            Ok(Value::Object(_)) => {
                bad.push(format!("line {number}: neither assistant_id, search nor resume_process_id"))
            }
            Ok(_) => bad.push(format!("line {number}: no JSON object")),
            Err(error) => bad.push(format!("line {number}: {error}")),
        }
        if tasks.len() > TASKS_MAX {
            return Err(Failure::new(USAGE, format!("{} has more than {TASKS_MAX} tasks", file.display())));
        }
    }
    if bad.is_empty() && !tasks.is_empty() {
        return Ok(tasks);
    }
    let why = if bad.is_empty() { "it has no tasks".to_owned() } else { bad.join("\n") };
    Err(Failure::new(USAGE, format!("nothing was spawned; {}:\n{why}", file.display())))
}

fn has_assistant(task: &Map<String, Value>) -> bool {
    ["assistant_id", "assistantId", "search", "resume_process_id", "resumeProcessId"]
        .iter()
        .any(|name| task.get(*name).is_some_and(|value| !value.is_null()))
}

/// Spawns each, detached unless it says otherwise; a bar on a terminal where there are many.
async fn spawn_all(client: &Client, tasks: Vec<Map<String, Value>>, as_json: bool) -> Result<u8, Failure> {
    let many = tasks.len() > 1;
    let shown = many && std::io::stderr().is_terminal();
    let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(tasks.len() as u64), target);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} spawned, {eta} left") {
        bar.set_style(style);
    }
    let mut refusals: Vec<(usize, Refused)> = Vec::new();
    for (mut task, number) in tasks.into_iter().zip(1..) {
        task.entry("detached").or_insert(json!(true));
        match client.try_call("spawn_assistant", Value::Object(task)).await? {
            Ok(spawned) => bar.suspend(|| tell(&spawned, as_json)),
            Err(refused) => {
                if as_json {
                    let error = json!({ "code": refused.code, "message": refused.message });
                    bar.suspend(|| say(&json!({ "task": number, "error": error }).to_string()));
                }
                refusals.push((number, refused));
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    match refusals.as_slice() {
        [] => Ok(0),
        [(_, refused)] if !many => Err(not_spawned(refused)),
        several => {
            for (number, refused) in several {
                talk(&format!("task {number}: {}", refused.message));
            }
            Ok(FAILED)
        }
    }
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
    let (mut resumed, mut code) = (0, 0);
    for process in &meant {
        let mut asked = json!({ "resume_process_id": process, "detached": true });
        if let Some(query) = &args.query {
            asked["query"] = json!(query);
        }
        match client.try_call("spawn_assistant", asked).await? {
            Ok(spawned) => {
                tell(&spawned, args.json);
                resumed += 1;
            }
            // With --failed, what goes on already is no fault.
            Err(refused) if args.failed && refused.code == "process_resumed" => {}
            Err(refused) => {
                talk(&format!("{}: {}", short(process), refused.message));
                code = FAILED;
            }
        }
    }
    if args.failed {
        talk(&format!("{resumed} go on"));
    }
    Ok(code)
}
