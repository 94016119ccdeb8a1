//! `assistant-host ps`: the processes as trees, once or live, of one host or of all.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};

use super::client::Client;
use super::colour::Colour;
use super::open::{self, env};
use super::processes::{Listing, Row, count, dollars, short};
use super::{FAILED, Failure, Places, USAGE, now_ms, say, talk};
use crate::config::paths;
use crate::text::{cut, duration, one_line};

/// Processes that are shown; what lives and is newest comes first.
const SHOWN_MAX: usize = 200;
/// How often a live table is read and drawn anew.
const WATCH_EVERY: Duration = Duration::from_secs(1);
/// State directories that are looked at.
const STATES_MAX: usize = 1_000;
/// Characters of a task or label on a line.
const TASK_CHARS: usize = 44;
/// Characters of an assistant's id on a line, with the indent of its level.
const ASSISTANT_CHARS: usize = 28;

#[derive(Args)]
pub(super) struct PsArgs {
    /// Show it live until nothing is left at work
    #[arg(short, long)]
    watch: bool,
    /// Only what has not ended
    #[arg(long)]
    living: bool,
    /// What is at work in all state directories: those of all projects, and that of --state
    #[arg(long, conflicts_with = "watch")]
    all: bool,
    /// Print JSON; with --watch one line for each change
    #[arg(long)]
    json: bool,
}

pub(super) async fn ps(places: &Places, args: &PsArgs) -> Result<u8, Failure> {
    if args.all {
        return all(places, args).await;
    }
    let client = Client::connect(places, "ps").await?;
    if args.watch {
        return watch(&client, args).await;
    }
    let listing = read(&client, args).await?;
    if args.json {
        say(&as_json(&listing).to_string());
        return Ok(0);
    }
    say_table(&listing, Colour::of_stdout())?;
    Ok(0)
}

async fn read(client: &Client, args: &PsArgs) -> Result<Listing, Failure> {
    if args.living {
        Listing::living(client, SHOWN_MAX).await
    } else {
        Listing::read(client, &json!({}), SHOWN_MAX).await
    }
}

fn as_json(listing: &Listing) -> Value {
    json!({ "items": listing.items, "left_out": listing.left_out })
}

fn say_table(listing: &Listing, colour: Colour) -> Result<(), Failure> {
    let rows = listing.rows()?;
    if rows.is_empty() {
        talk("no processes");
        return Ok(());
    }
    say(&table(&rows, now_ms(), colour));
    if listing.left_out > 0 {
        talk(&format!("and {} older ones", listing.left_out));
    }
    Ok(())
}

/// Shows the processes until nothing is left at work. On a terminal the table is drawn anew each second; elsewhere each
/// change is written behind the last.
async fn watch(client: &Client, args: &PsArgs) -> Result<u8, Failure> {
    let on_terminal = !args.json && std::io::stdout().is_terminal();
    let bar = if on_terminal {
        let style = ProgressStyle::with_template("{msg}").map_err(|error| Failure::new(FAILED, error))?;
        Some(ProgressBar::with_draw_target(None, ProgressDrawTarget::stdout()).with_style(style))
    } else {
        None
    };
    let mut every = tokio::time::interval(WATCH_EVERY);
    let mut shown = None;
    loop {
        every.tick().await;
        let listing = read(client, args).await?;
        match &bar {
            Some(bar) => bar.set_message(table(&listing.rows()?, now_ms(), Colour::of_stdout())),
            None if shown.as_ref() == Some(&listing.items) => {}
            None if args.json => say(&as_json(&listing).to_string()),
            None => say(&format!("{}\n", table(&listing.rows()?, now_ms(), Colour::OFF))),
        }
        if listing.items.iter().all(|item| item["done"] == true) {
            if let Some(bar) = bar {
                bar.abandon();
            }
            return Ok(0);
        }
        shown = Some(listing.items);
    }
}

/// All state directories beside the usual one, and the one that was named. No host is started.
async fn all(places: &Places, args: &PsArgs) -> Result<u8, Failure> {
    let usual = paths::state_dir(&env, None).map_err(|error| Failure::new(USAGE, error))?;
    let mut told = Vec::new();
    let mut states = states(&usual)?;
    if let Some(named) = &places.state {
        let named = open::absolute(named)?;
        let real = named.canonicalize().ok();
        if !states.iter().any(|state| *state == named || (real.is_some() && state.canonicalize().ok() == real)) {
            states.push(named);
        }
    }
    for state in states {
        let listing = match Client::of_state(&state).await {
            Some(client) => Some(Listing::living(&client, SHOWN_MAX).await?),
            None => None,
        };
        told.push((state, listing));
    }
    if args.json {
        let one = |(state, listing): &(PathBuf, Option<Listing>)| {
            let items = listing.as_ref().map(|listing| listing.items.clone()).unwrap_or_default();
            json!({ "state": state, "running": listing.is_some(), "items": items })
        };
        say(&json!({ "states": told.iter().map(one).collect::<Vec<_>>() }).to_string());
        return Ok(0);
    }
    if told.is_empty() {
        talk(&format!("no state directories beside {}", usual.display()));
    }
    for (state, listing) in &told {
        let word = match listing {
            None => "no host runs",
            Some(listing) if listing.items.is_empty() => "nothing at work",
            Some(_) => "at work",
        };
        say(&format!("{}: {word}", state.display()));
        if let Some(listing) = listing.as_ref().filter(|listing| !listing.items.is_empty()) {
            say(&table(&listing.rows()?, now_ms(), Colour::of_stdout()));
        }
    }
    Ok(0)
}

/// The folders beside the usual state directory that a host has used.
fn states(usual: &std::path::Path) -> Result<Vec<PathBuf>, Failure> {
    let Some(folder) = usual.parent() else { return Ok(Vec::new()) };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Failure::new(FAILED, format!("cannot read {}: {error}", folder.display()))),
    };
    let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    let mut found: Vec<PathBuf> = paths.filter(|path| path.join("lock").is_file()).take(STATES_MAX).collect();
    found.sort();
    Ok(found)
}

/// The processes as a table with a line each, and a line of headings.
pub(super) fn table(rows: &[Row], now: i64, colour: Colour) -> String {
    let line = |id: &str, assistant: &str, status: String, age: &str, used: [&str; 3], task: &str| {
        let [tokens, cost, tree] = used;
        let used = format!("{tokens:>7}  {cost:>8}  {tree:>8}");
        format!("{id:<8}  {assistant:<ASSISTANT_CHARS$}  {status}  {age:<12}  {used}  {task}").trim_end().to_owned()
    };
    let headings = line("ID", "ASSISTANT", format!("{:<9}", "STATUS"), "TIME", ["TOKENS", "COST", "TREE"], "TASK");
    let mut lines = vec![colour.faint(&headings)];
    for row in rows {
        let indent = if row.level == 0 { String::new() } else { format!("{}└ ", "  ".repeat(row.level - 1)) };
        let room = ASSISTANT_CHARS.saturating_sub(indent.chars().count());
        let assistant = format!("{indent}{}", cut(&one_line(&row.assistant_id), room));
        let what = row.name.as_deref().unwrap_or(&row.task);
        let why = row.reason.as_deref().or(row.cause.as_deref().filter(|_| row.done));
        let by = match (&row.runner, &row.launcher) {
            (None, None) => String::new(),
            (Some(runner), None) => format!("[{runner}] "),
            (None, Some(launcher)) => format!("[in {launcher}] "),
            (Some(runner), Some(launcher)) => format!("[{runner} in {launcher}] "),
        };
        let worktree = row.worktree.as_ref().filter(|worktree| !worktree.shared);
        let worktree =
            worktree.map(|worktree| format!("[{}worktree] ", if worktree.state == "kept" { "kept " } else { "" }));
        let before = format!("{by}{}", worktree.unwrap_or_default());
        let what = match why {
            Some(why) => format!("{before}{why}: {what}"),
            None => format!("{before}{what}"),
        };
        // What it spawned included, where it spawned something.
        let tree = if row.usage_tree == row.usage { String::new() } else { dollars(row.usage_tree.cost_usd) };
        lines.push(line(
            short(&row.process_id),
            &assistant,
            colour.status(&row.status, &format!("{:<9}", row.status)),
            &duration(row.finished_at.unwrap_or(now) - row.created_at),
            [&count(row.usage.tokens()), &dollars(row.usage.cost_usd), &tree],
            &cut(&one_line(&what), TASK_CHARS),
        ));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::processes::{InWorktree, sample};
    use super::*;

    #[test]
    fn a_table_has_a_line_for_each() {
        let mut labelled = sample("0190-12345678", "running", 0);
        labelled.name = Some("the \u{1b}[31mfirst".to_owned());
        labelled.usage.cost_usd = None;
        labelled.runner = Some("py".to_owned());
        labelled.usage_tree.cost_usd = Some(1.5);
        let worktree = |shared| InWorktree { state: "kept".into(), shared };
        let mut rows = [labelled, sample("0190-aaaaaaaa", "failed", 1), sample("0190-bbbbbbbb", "cancelled", 2)];
        (rows[0].worktree, rows[1].worktree) = (Some(worktree(true)), Some(worktree(false)));
        let want = "\
ID        ASSISTANT                     STATUS     TIME           TOKENS      COST      TREE  TASK
12345678  reviewer                      running    1 min 1 s        1.7k         -     $1.50  [py] the \u{fffd}[31mfirst
aaaaaaaa  └ reviewer                    failed     12 s             1.7k     $0.50            [kept worktree] timed_out: Look at it
bbbbbbbb    └ reviewer                  cancelled  12 s             1.7k     $0.50            requested: Look at it";
        assert_eq!(table(&rows, 62_000, Colour::OFF), want);
    }
}
