//! The kit finds faults: a correct runner passes every case, and each of its mutants fails the one that is for it, by the
//! rule that it does not keep.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

use assistant_host::conformance::{CASES, Case, Trial, Verdict, WAIT};
use assistant_host::launcher::RunnerCommand;
use assistant_protocol::spec::rules::{Level, RULES};
use conformance::fake_runner::agent::faults::MUTANTS;
use futures::StreamExt;

use crate::FAKE_RUNNER;

/// Runners that are tried at once.
const AT_ONCE: usize = 6;
/// How long is waited for a mutant; what it does not do, it never does.
const MUTANT_WAIT: Duration = Duration::from_secs(5);

fn agent(fault: Option<&str>) -> RunnerCommand {
    let args = ["agent"].into_iter().chain(fault).map(Into::into).collect();
    RunnerCommand { program: FAKE_RUNNER.into(), args }
}

fn cases() -> impl Iterator<Item = &'static Case> {
    CASES.iter().copied().flatten()
}

async fn judged(fault: Option<&str>, dir: &Path, case: &Case, wait: Duration) -> Verdict {
    Trial::new(&agent(fault), dir, wait).judge(case).await.expect("the runner starts")
}

#[tokio::test]
async fn a_correct_runner_passes_every_case() {
    let folder = tempfile::tempdir().expect("a folder");
    let verdicts = futures::stream::iter(cases())
        .map(|case| async { (case.name, judged(None, folder.path(), case, WAIT).await) })
        .buffered(AT_ONCE);
    let other: Vec<_> = verdicts.filter(|(_, verdict)| std::future::ready(*verdict != Verdict::Passed)).collect().await;
    // It takes no messages, so that there is nothing to try there.
    assert_eq!(other, [("messages", Verdict::NotOffered)]);
}

#[tokio::test]
async fn each_mutant_fails_the_case_that_is_for_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let of_name: HashMap<_, _> = cases().map(|case| (case.name, case)).collect();
    let wrong = futures::stream::iter(MUTANTS)
        .map(|mutant| async {
            let verdict = judged(Some(mutant.name), folder.path(), of_name[mutant.case], MUTANT_WAIT).await;
            match &verdict {
                Verdict::Failed { fault, .. } if fault.rule.name == mutant.rule => None,
                Verdict::Failed { .. }
                | Verdict::Passed
                | Verdict::NotOffered
                | Verdict::NoModelCalls
                | Verdict::NotTried => {
                    Some(format!("{} ({}, {}): {verdict:#?}", mutant.name, mutant.case, mutant.rule))
                }
            }
        })
        .buffer_unordered(AT_ONCE);
    let wrong: Vec<String> = wrong.filter_map(std::future::ready).collect().await;
    assert!(
        wrong.is_empty(),
        "{} of {} are not found as they should be:\n{}",
        wrong.len(),
        MUTANTS.len(),
        wrong.join("\n")
    );
}

#[test]
fn the_table_of_mutants_is_whole() {
    let rules: HashSet<_> = RULES.iter().map(|rule| rule.name).collect();
    let cases: HashSet<_> = cases().map(|case| case.name).collect();
    let names: HashSet<_> = MUTANTS.iter().map(|mutant| mutant.name).collect();
    assert_eq!(names.len(), MUTANTS.len(), "each has a name of its own");
    let unknown = MUTANTS.iter().find(|mutant| !rules.contains(mutant.rule) || !cases.contains(mutant.case));
    assert!(unknown.is_none(), "{unknown:?}");
    // A case that finds no fault shows nothing.
    let found: HashSet<_> = MUTANTS.iter().map(|mutant| mutant.case).collect();
    assert_eq!(cases.difference(&found).collect::<Vec<_>>(), Vec::<&&str>::new());
    // Nor is a rule kept that may be broken unseen.
    let broken: HashSet<_> = MUTANTS.iter().map(|mutant| mutant.rule).collect();
    let unseen = RULES.iter().filter(|rule| rule.level != Level::May && !broken.contains(rule.name));
    assert_eq!(unseen.map(|rule| rule.name).collect::<Vec<_>>(), Vec::<&str>::new());
}
