//! `assistant-host conformance`: tries a runner under test case by case.

use std::collections::HashSet;
use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::run::CANCELLED;
use super::serve::signal;
use super::{FAILED, Failure, USAGE, say};
use crate::conformance::{CASES, Case, Count, Trial, Verdict, WAIT, visible};
use crate::launcher::RunnerCommand;

/// What scripts ask of the exit code.
const EXIT_CODES: &str = "Exit codes:\n  \
    0    the runner keeps every rule that it must keep\n  \
    1    it does not: the lines with FAILED say which\n  \
    2    nothing was tried: the command or an option is wrong\n  \
    130  interrupted";

#[derive(Args)]
#[command(after_help = EXIT_CODES)]
pub(super) struct ConformanceArgs {
    /// Print each case, and the count at the end, as a line of JSON
    #[arg(long)]
    json: bool,
    /// Try only this case (repeatable)
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<String>,
    /// Print the cases with their rules, and try none
    #[arg(long)]
    list: bool,
    /// How long each wait for the runner lasts, milliseconds
    #[arg(long, value_name = "MS", default_value_t = u64::try_from(WAIT.as_millis()).unwrap_or(u64::MAX), value_parser = clap::value_parser!(u64).range(1..))]
    wait_ms: u64,
    /// The runner under test, with its arguments
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "list")]
    command: Vec<OsString>,
}

/// Why a case was not tried to its end.
const NO_MODEL_CALLS: &str = "it makes no model calls";
/// Why a case was not tried at all.
const MUTE: &str = "it does not answer `initialize`";

pub(super) async fn conformance(args: &ConformanceArgs) -> Result<u8, Failure> {
    let chosen = chosen(&args.cases)?;
    let Some((program, rest)) = args.command.split_first().filter(|_| !args.list) else {
        for case in chosen {
            list(case, args.json);
        }
        return Ok(0);
    };
    if program.is_empty() {
        let words =
            "the command of the runner is empty; name its program: `assistant-host conformance -- python3 runner.py`";
        return Err(Failure::new(USAGE, words.to_owned()));
    }
    let here = std::env::current_dir().map_err(|error| Failure::new(USAGE, format!("no working folder: {error}")))?;
    let runner = RunnerCommand { program: program.into(), args: rest.to_vec() };
    // A runner that heeds nothing would outlive this program.
    let interrupted = tokio::spawn(signal());
    tokio::pin!(interrupted);
    let (mut count, mut trial) = (Count::default(), Trial::new(&runner, &here, Duration::from_millis(args.wait_ms)));
    for case in chosen {
        let judged = tokio::select! {
            judged = trial.judge(case) => judged,
            _ = &mut interrupted => return Ok(CANCELLED),
        };
        let verdict = judged.map_err(|error| Failure::new(USAGE, visible(&error.to_string())))?;
        count.add(case, &verdict);
        tell(case, &verdict, args.json);
    }
    say(&if args.json {
        json!({ "count": count, "conforms": count.conforms() }).to_string()
    } else {
        count.to_string()
    });
    Ok(if count.conforms() { 0 } else { FAILED })
}

/// The cases that are wanted, in the order of the table.
fn chosen(names: &[String]) -> Result<Vec<&'static Case>, Failure> {
    let all = || CASES.iter().copied().flatten();
    let known: HashSet<&str> = all().map(|case| case.name).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(name.as_str())) {
        let words = format!("there is no case `{unknown}`; `assistant-host conformance --list` shows them");
        return Err(Failure::new(USAGE, words));
    }
    Ok(all().filter(|case| names.is_empty() || names.iter().any(|name| name == case.name)).collect())
}

fn list(case: &Case, json: bool) {
    let (name, rule, level) = (case.name, case.rule.name, case.rule.level.word());
    say(&if json {
        json!({ "case": name, "rule": rule, "level": level, "tries": case.doc, "text": case.rule.text }).to_string()
    } else {
        format!("{name:<32}  {level:<6}  {rule:<24}  {}", case.doc)
    });
}

fn tell(case: &Case, verdict: &Verdict, json: bool) {
    let (name, level) = (case.name, case.rule.level.word());
    if json {
        let mut told = json!({ "case": name, "rule": case.rule.name, "level": level });
        match verdict {
            Verdict::Passed => told["verdict"] = "passed".into(),
            Verdict::NotOffered => told["verdict"] = "not_offered".into(),
            Verdict::NoModelCalls => {
                told["verdict"] = "not_offered".into();
                told["why"] = NO_MODEL_CALLS.into();
            }
            Verdict::NotTried => {
                told["verdict"] = "not_tried".into();
                told["why"] = MUTE.into();
            }
            Verdict::Failed { fault, transcript, stderr } => {
                told["verdict"] = "failed".into();
                told["fault"] = json!(fault);
                told["rule_text"] = fault.rule.text.into();
                told["transcript"] = json!(transcript);
                told["stderr"] = json!(stderr);
            }
        }
        return say(&told.to_string());
    }
    match verdict {
        Verdict::Passed => say(&format!("passed       {name}")),
        Verdict::NotOffered => say(&format!("not offered  {name}")),
        Verdict::NoModelCalls => say(&format!("not offered  {name}: {NO_MODEL_CALLS}")),
        Verdict::NotTried => say(&format!("not tried    {name}: {MUTE}")),
        Verdict::Failed { fault, transcript, stderr } => {
            let rule = fault.rule;
            say(&format!("FAILED       {name}"));
            say(&format!("  rule {}: a runner {} {}", rule.name, rule.level.word(), rule.text));
            say(&format!("  expected: {}\n  seen: {}", visible(&fault.expected), visible(&fault.seen)));
            transcript.iter().for_each(|line| say(&format!("    {}", visible(line))));
            stderr.lines().for_each(|line| say(&format!("    stderr: {}", visible(line))));
        }
    }
}
