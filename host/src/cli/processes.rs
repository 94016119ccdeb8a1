//! The processes of a host, read page by page, and which of them a person means.

use assistant_protocol::ids::ProcessId;
use serde::Deserialize;
use serde_json::{Value, json};

use super::client::Client;
use super::{FAILED, Failure, USAGE};
use crate::text::cut;

/// Processes of a page: the most that the tool gives.
const PAGE_SIZE: usize = 50;
/// Processes among which a part of an id is looked for, the newest first.
const SEARCHED_MAX: usize = 10_000;
/// Characters of a part of an id at least; fewer would hit by chance.
const PART_CHARS_MIN: usize = 6;
/// Characters of an id.
const ID_CHARS: usize = 36;
/// Processes that an ambiguous part of an id names at most.
const NAMED_MAX: usize = 10;

/// What people are told of a process.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Row {
    pub(super) process_id: String,
    pub(super) assistant_id: String,
    /// The label that it was given.
    #[serde(default)]
    pub(super) name: Option<String>,
    pub(super) status: String,
    pub(super) done: bool,
    #[serde(default)]
    pub(super) reason: Option<String>,
    #[serde(default)]
    pub(super) cause: Option<String>,
    pub(super) model: String,
    /// Where it is not the host's own.
    #[serde(default)]
    pub(super) runner: Option<String>,
    #[serde(default)]
    pub(super) launcher: Option<String>,
    /// The git worktree in which it works or has worked.
    #[serde(default)]
    pub(super) worktree: Option<InWorktree>,
    /// Unix milliseconds.
    pub(super) created_at: i64,
    #[serde(default)]
    pub(super) finished_at: Option<i64>,
    /// Its level below the root of its tree.
    pub(super) level: usize,
    /// The beginning of its task.
    pub(super) task: String,
    /// What it used itself.
    pub(super) usage: Used,
    /// What it and all that it spawned used.
    pub(super) usage_tree: Used,
}

/// A worktree of a process.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct InWorktree {
    pub(super) state: String,
    /// It is that of another process.
    #[serde(default)]
    pub(super) shared: bool,
}

/// What a process used.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub(super) struct Used {
    pub(super) model_calls: u64,
    /// None where no provider told it.
    pub(super) input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    /// US dollars; none where it is not known.
    pub(super) cost_usd: Option<f64>,
}

impl Used {
    /// Tokens read and written; none where neither is known.
    pub(super) fn tokens(&self) -> Option<u64> {
        self.input_tokens.into_iter().chain(self.output_tokens).reduce(|one, other| one + other)
    }
}

/// Processes in the order of their trees, the newest tree first.
pub(super) struct Listing {
    /// As the tool tells them.
    pub(super) items: Vec<Value>,
    /// How many there are beyond them.
    pub(super) left_out: u64,
}

impl Listing {
    /// Reads what fits `arguments` of `list_process`, at most `most` processes.
    pub(super) async fn read(client: &Client, arguments: &Value, most: usize) -> Result<Self, Failure> {
        let mut listing = Self { items: Vec::new(), left_out: 0 };
        let mut page = 1;
        loop {
            let mut asked = arguments.clone();
            asked["page"] = json!(page);
            asked["page_size"] = json!(PAGE_SIZE.min(most));
            let answer = client.call("list_process", asked).await?;
            let items = answer["items"].as_array().cloned().unwrap_or_default();
            listing.items.extend(items.into_iter().take(most - listing.items.len()));
            let total = answer["total_items"].as_u64().unwrap_or(0);
            listing.left_out = total.saturating_sub(listing.items.len() as u64);
            match answer["next_page"].as_u64() {
                Some(next) if listing.items.len() < most => page = next,
                _ => return Ok(listing),
            }
        }
    }

    /// Reads what lives: processes that have not ended, at most `most`.
    pub(super) async fn living(client: &Client, most: usize) -> Result<Self, Failure> {
        // A tree whose root has ended lives no more, so that only living ones are left of those from now on.
        let mut listing = Self::read(client, &json!({ "since": super::now_ms() }), most).await?;
        listing.items.retain(|item| item["done"] == false);
        Ok(listing)
    }

    /// The items as people are told them.
    pub(super) fn rows(&self) -> Result<Vec<Row>, Failure> {
        let read = |item: &Value| Row::deserialize(item);
        let rows = self.items.iter().map(read).collect::<Result<_, _>>();
        rows.map_err(|error| Failure::new(FAILED, format!("the host was not understood: {error}")))
    }
}

/// The process that a person means: by its id, or by the first or last characters of it.
pub(super) async fn resolve(client: &Client, meant: &str) -> Result<String, Failure> {
    let part = meant.trim().to_ascii_lowercase();
    if part.parse::<ProcessId>().is_ok() {
        return Ok(part);
    }
    if part.chars().count() < PART_CHARS_MIN {
        let message = format!("`{part}` is too short for a part of an id: give at least {PART_CHARS_MIN} characters");
        return Err(Failure::new(USAGE, message));
    }
    if part.chars().count() > ID_CHARS {
        let message = format!("`{}` is longer than an id", cut(&part, ID_CHARS));
        return Err(Failure::new(USAGE, message));
    }
    let listing = Listing::read(client, &json!({}), SEARCHED_MAX).await?;
    pick(&part, &listing.rows()?)
}

fn pick(part: &str, rows: &[Row]) -> Result<String, Failure> {
    let fits = |row: &&Row| row.process_id.starts_with(part) || row.process_id.ends_with(part);
    let mut found: Vec<&Row> = rows.iter().filter(fits).collect();
    // A list that grows while it is read may show one twice.
    found.sort_by(|one, other| one.process_id.cmp(&other.process_id));
    found.dedup_by(|one, other| one.process_id == other.process_id);
    match found.as_slice() {
        [one] => Ok(one.process_id.clone()),
        [] => Err(Failure::new(
            FAILED,
            format!("no process has an id that begins or ends with `{part}`; `assistant-host ps` lists them"),
        )),
        many => {
            let one = |row: &&Row| format!("\n  {}  {}", row.process_id, row.assistant_id);
            let listed: String = many.iter().take(NAMED_MAX).map(one).collect();
            Err(Failure::new(USAGE, format!("{} processes fit `{part}`: give more of the id{listed}", many.len())))
        }
    }
}

/// The part of an id that people are shown: its end, since ids of one time begin alike.
pub(super) fn short(process_id: &str) -> &str {
    process_id.get(process_id.len().saturating_sub(8)..).unwrap_or(process_id)
}

/// A count of tokens in at most five characters and a unit: `950`, `12.3k`, `1.2M`; a dash where it is not known.
pub(super) fn count(tokens: Option<u64>) -> String {
    let Some(tokens) = tokens else { return "-".to_owned() };
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => format!("{}.{}k", tokens / 1_000, tokens % 1_000 / 100),
        _ => format!("{}.{}M", tokens / 1_000_000, tokens % 1_000_000 / 100_000),
    }
}

/// US dollars; a dash where they are not known.
pub(super) fn dollars(cost: Option<f64>) -> String {
    match cost {
        None => "-".to_owned(),
        Some(cost) if cost > 0.0 && cost < 0.01 => format!("${cost:.4}"),
        Some(cost) => format!("${cost:.2}"),
    }
}

/// A process for the tests of what is shown.
#[cfg(test)]
pub(super) fn sample(process_id: &str, status: &str, level: usize) -> Row {
    let used = Used { model_calls: 2, input_tokens: Some(1_500), output_tokens: Some(250), cost_usd: Some(0.5) };
    Row {
        process_id: process_id.to_owned(),
        assistant_id: "reviewer".to_owned(),
        name: None,
        status: status.to_owned(),
        done: matches!(status, "finished" | "failed" | "cancelled"),
        reason: (status == "failed").then(|| "timed_out".to_owned()),
        cause: (status == "cancelled").then(|| "requested".to_owned()),
        model: "small".to_owned(),
        runner: None,
        launcher: None,
        worktree: None,
        created_at: 1_000,
        finished_at: matches!(status, "finished" | "failed" | "cancelled").then_some(13_000),
        level,
        task: "Look at it".to_owned(),
        usage: used,
        usage_tree: used,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_found_by_its_beginning_or_its_end() {
        let rows = [sample("0190aaaa-0001", "running", 0), sample("0190aaaa-0002", "failed", 0)];
        let check = |part: &str, want: &str| {
            let got = pick(part, &rows).unwrap_or_else(|failure| failure.message);
            assert!(got.starts_with(want), "{part}: {got}");
        };
        check("a-0002", "0190aaaa-0002");
        check("0190aaaa-0001", "0190aaaa-0001");
        check("0190aa", "2 processes fit `0190aa`: give more of the id\n  0190aaaa-0001  reviewer\n  0190aaaa-0002");
        check("0190bb", "no process has an id that begins or ends with `0190bb`");
    }

    #[test]
    fn counts_and_costs_are_short() {
        assert_eq!(count(None), "-");
        let check = |tokens: u64, want: &str| assert_eq!(count(Some(tokens)), want);
        check(0, "0");
        check(999, "999");
        check(12_345, "12.3k");
        check(999_999, "999.9k");
        check(1_250_000, "1.2M");
        let check = |cost: Option<f64>, want: &str| assert_eq!(dollars(cost), want);
        check(None, "-");
        check(Some(0.0), "$0.00");
        check(Some(0.0012), "$0.0012");
        check(Some(12.345), "$12.35");
    }
}
