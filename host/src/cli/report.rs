//! `assistant-host report`: what was done since a time, how it ended, and what it cost.

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::client::Client;
use super::processes::{Listing, Row, count, dollars};
use super::{Failure, Places, now_ms, say, talk};
use crate::text::{duration, one_line};

/// Processes that are counted.
const COUNTED_MAX: usize = 20_000;

#[derive(Args)]
pub(super) struct ReportArgs {
    /// What ended, or lived, in this time: 90s, 30m, 12h or 7d
    #[arg(long, default_value = "12h", value_name = "TIME", value_parser = milliseconds)]
    since: i64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A length of time as people write it, in milliseconds.
pub(super) fn milliseconds(text: &str) -> Result<i64, String> {
    let wrong = || format!("`{text}` is no time: write a number and s, m, h or d, as 12h");
    let unit = text.chars().last().ok_or_else(wrong)?;
    let number: i64 = text[..text.len() - unit.len_utf8()].parse().map_err(|_| wrong())?;
    let ms = match unit {
        's' => 1_000,
        'm' => 60_000,
        'h' => 3_600_000,
        'd' => 86_400_000,
        _ => return Err(wrong()),
    };
    number.checked_mul(ms).filter(|ms| *ms > 0).ok_or_else(wrong)
}

/// What was used of one model.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
struct Spent {
    processes: u64,
    model_calls: u64,
    /// Null where that of no process is known.
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    /// US dollars; null where that of one process is not known.
    cost_usd: Option<f64>,
}

/// What was done.
#[derive(Debug, Default, PartialEq, Serialize)]
struct Report {
    processes: u64,
    at_work: u64,
    finished: u64,
    failed: BTreeMap<String, u64>,
    cancelled: BTreeMap<String, u64>,
    models: BTreeMap<String, Spent>,
    /// Questions to the user that have no answer yet.
    questions_open: usize,
}

pub(super) async fn report(places: &Places, args: &ReportArgs) -> Result<u8, Failure> {
    let client = Client::connect(places, "report").await?;
    let since = now_ms() - args.since;
    let listing = Listing::read(&client, &json!({ "since": since }), COUNTED_MAX).await?;
    let mut report = Report::of(&listing.rows()?, since);
    let pending = client.call("get_pending_questions", json!({})).await?;
    report.questions_open = pending["questions"].as_array().map_or(0, Vec::len);
    if args.json {
        let mut told = json!(report);
        told["since"] = json!(since);
        told["left_out"] = json!(listing.left_out);
        say(&told.to_string());
    } else {
        say(&report.text(args.since));
        if listing.left_out > 0 {
            talk(&format!("{} older processes are not counted", listing.left_out));
        }
    }
    Ok(0)
}

impl Report {
    fn of(rows: &[Row], since: i64) -> Self {
        let mut report = Self::default();
        // A tree is listed whole: what is below its root may have ended before.
        for row in rows.iter().filter(|row| row.finished_at.is_none_or(|end| end >= since)) {
            report.processes += 1;
            match row.status.as_str() {
                "finished" => report.finished += 1,
                "failed" => *report.failed.entry(row.reason.clone().unwrap_or_default()).or_default() += 1,
                "cancelled" => *report.cancelled.entry(row.cause.clone().unwrap_or_default()).or_default() += 1,
                _ => report.at_work += 1,
            }
            let none = Spent { cost_usd: Some(0.0), ..Spent::default() };
            let spent = report.models.entry(row.model.clone()).or_insert(none);
            spent.processes += 1;
            spent.model_calls += row.usage.model_calls;
            let known = |sum: Option<u64>, one: Option<u64>| sum.into_iter().chain(one).reduce(|sum, one| sum + one);
            spent.input_tokens = known(spent.input_tokens, row.usage.input_tokens);
            spent.output_tokens = known(spent.output_tokens, row.usage.output_tokens);
            spent.cost_usd = spent.cost_usd.zip(row.usage.cost_usd).map(|(sum, one)| sum + one);
        }
        report
    }

    fn text(&self, since_ms: i64) -> String {
        let why = |all: &BTreeMap<String, u64>| {
            all.iter().map(|(why, count)| format!("{count} {why}")).collect::<Vec<_>>().join(", ")
        };
        let sum = |all: &BTreeMap<String, u64>| all.values().sum::<u64>();
        let mut lines = vec![
            format!("In the last {}: {} processes", duration(since_ms), self.processes),
            format!("  at work    {:>6}", self.at_work),
            format!("  finished   {:>6}", self.finished),
            format!("  failed     {:>6}  {}", sum(&self.failed), why(&self.failed)),
            format!("  cancelled  {:>6}  {}", sum(&self.cancelled), why(&self.cancelled)),
        ];
        if !self.models.is_empty() {
            let head = ("MODEL", "PROCESSES", "CALLS", "IN", "OUT", "COST");
            lines.push(format!(
                "{:<24}  {:>9}  {:>7}  {:>7}  {:>7}  {:>9}",
                head.0, head.1, head.2, head.3, head.4, head.5
            ));
        }
        for (model, spent) in &self.models {
            lines.push(format!(
                "{:<24}  {:>9}  {:>7}  {:>7}  {:>7}  {:>9}",
                one_line(model),
                spent.processes,
                spent.model_calls,
                count(spent.input_tokens),
                count(spent.output_tokens),
                dollars(spent.cost_usd),
            ));
        }
        if self.questions_open > 0 {
            lines.push(format!("{} questions wait for an answer", self.questions_open));
        }
        lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::super::processes::sample;
    use super::*;

    #[test]
    fn times_are_read() {
        let check = |text: &str, want: Option<i64>| assert_eq!(milliseconds(text).ok(), want, "{text}");
        check("90s", Some(90_000));
        check("30m", Some(1_800_000));
        check("12h", Some(43_200_000));
        check("7d", Some(604_800_000));
        for wrong in ["", "12", "h", "0h", "-1h", "1 h", "12y", "é", "99999999999999999d"] {
            check(wrong, None);
        }
    }

    #[test]
    fn what_was_done_is_counted_once() {
        let mut dear = sample("4", "running", 0);
        dear.model = "large".to_owned();
        dear.usage.cost_usd = None;
        let mut before = sample("5", "finished", 1);
        before.finished_at = Some(10);
        let rows = [sample("1", "finished", 0), sample("2", "failed", 1), sample("3", "cancelled", 0), dear, before];
        let report = Report::of(&rows, 5_000);
        let want = "\
In the last 12 h: 4 processes
  at work         1
  finished        1
  failed          1  1 timed_out
  cancelled       1  1 requested
MODEL                     PROCESSES    CALLS       IN      OUT       COST
large                             1        2     1.5k      250          -
small                             3        6     4.5k      750      $1.50";
        assert_eq!(report.text(43_200_000), want);
        assert_eq!(report.models["large"].cost_usd, None);
    }
}
