//! The conformance kit: runs a runner under test against a scripted host over its own stdin and stdout, case by case.
//!
//! Each case starts the runner anew, is about one rule of [`assistant_protocol::spec::rules`], and ends with `shutdown`
//! and the end of the program. Whatever the case, each line of the runner is held to what always holds: that it is a
//! message, that each answer is asked for and the only one, that params fit, that the thread is the runner's own. In
//! reading order:
//!
//! * `cases`: what is tried, by the sections of the rules;
//! * `scripted_host`: the host's end of the link, line by line; `expect`: what cases wait for; `heard`: what always
//!   holds; `halves`: half characters are read; `habits`: what an adapter is; `leaving`: how a runner goes;
//! * `transcript`: what was said, for people.

use std::path::Path;
use std::time::Duration;

use assistant_protocol::spec::rules::{Level, Rule};
use futures::future::BoxFuture;
use serde::Serialize;

use crate::launcher::RunnerCommand;

mod cases;
mod expect;
mod habits;
mod halves;
mod heard;
mod leaving;
mod scripted_host;
mod transcript;

pub use cases::CASES;
use leaving::Held;
use scripted_host::ScriptedHost;
pub(crate) use transcript::visible;

/// How long is waited for whatever a runner has to do, where nothing else is said.
pub const WAIT: Duration = Duration::from_secs(10);

/// One thing that is tried.
pub struct Case {
    /// What it is known by.
    pub name: &'static str,
    /// What it is about.
    pub rule: Rule,
    /// What is tried, for people.
    pub doc: &'static str,
    play: for<'a> fn(&'a mut ScriptedHost) -> BoxFuture<'a, Result<Played, Fault>>,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Case").field("name", &self.name).field("rule", &self.rule.name).finish_non_exhaustive()
    }
}

/// How a case went that met no fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Played {
    /// The runner did as the rule says.
    Kept,
    /// The rule is about something that the runner does not offer.
    NotOffered,
    /// It needs model calls, and the runner is an adapter that makes none.
    NoModelCalls,
}

/// What a runner did wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// The rule that it did not keep: that of the case, or one that always holds.
    #[serde(serialize_with = "by_name")]
    pub rule: Rule,
    /// What it had to do.
    pub expected: String,
    /// What it did.
    pub seen: String,
}

fn by_name<S: serde::Serializer>(rule: &Rule, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(rule.name)
}

/// What came of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The rule was kept.
    Passed,
    /// The runner does not offer what the rule is about, and need not.
    NotOffered,
    /// The case needs model calls, and the runner makes none: it says `messages`, and ends its runs without them.
    NoModelCalls,
    /// It was not tried: the runner does not answer `initialize`, as the first case has shown.
    NotTried,
    /// It was not kept.
    Failed {
        /// What was wrong.
        fault: Fault,
        /// What was said, line by line, `>` to the runner and `<` from it.
        transcript: Vec<String>,
        /// The last of what the runner wrote to stderr.
        stderr: String,
    },
}

/// A runner that cannot be started: nothing can be said of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotStarted(String);

/// A runner under test: it is started in `dir` for each case.
#[derive(Debug)]
pub struct Trial<'a> {
    runner: &'a RunnerCommand,
    dir: &'a Path,
    wait: Duration,
    /// A case was tried.
    begun: bool,
    /// It does not answer `initialize`: no case can tell more.
    mute: bool,
    held: Held,
}

impl<'a> Trial<'a> {
    /// Nothing tried yet.
    ///
    /// `wait` bounds each single wait for the runner; [`WAIT`] is the usual one.
    #[must_use]
    pub fn new(runner: &'a RunnerCommand, dir: &'a Path, wait: Duration) -> Self {
        Self { runner, dir, wait, begun: false, mute: false, held: Held::No }
    }

    /// Tries one case.
    ///
    /// # Errors
    /// [`NotStarted`] where the runner is no program.
    pub async fn judge(&mut self, case: &Case) -> Result<Verdict, NotStarted> {
        if self.mute {
            return Ok(Verdict::NotTried);
        }
        let first = !std::mem::replace(&mut self.begun, true);
        let mut host = ScriptedHost::start(self.runner, self.dir, case.rule, self.wait).map_err(NotStarted)?;
        host.held = self.held;
        let played = match (case.play)(&mut host).await {
            Ok(played) => host.end().await.map(|()| played),
            Err(_) if host.habits.needs_more => host.end().await.map(|()| Played::NoModelCalls),
            Err(fault) => Err(fault),
        };
        if host.held == Held::Yes {
            self.held = Held::Told;
        }
        self.mute = first && played.is_err() && host.fault.is_none() && host.is_mute();
        // What always holds says more than what did not come because of it.
        let played = host.always().and(played);
        Ok(match played {
            Ok(Played::Kept) => Verdict::Passed,
            Ok(Played::NotOffered) => Verdict::NotOffered,
            Ok(Played::NoModelCalls) => Verdict::NoModelCalls,
            Err(fault) => {
                let (transcript, stderr) = host.told().await;
                Verdict::Failed { fault, transcript, stderr }
            }
        })
    }
}

/// How many cases ended how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Cases that were tried.
    pub cases: u32,
    /// Cases of rules that a runner must keep, and did.
    pub required_passed: u32,
    /// Those that it did not.
    pub required_failed: u32,
    /// Cases of rules that a runner should keep, or that hold for what it offers, and did.
    pub optional_passed: u32,
    /// Those that it did not.
    pub optional_failed: u32,
    /// Cases of what it does not offer.
    pub not_offered: u32,
    /// Cases that need model calls, where it makes none.
    pub no_model_calls: u32,
}

impl Count {
    /// Counts one more. A rule that a runner must keep is required also where a case is about another one.
    pub fn add(&mut self, case: &Case, verdict: &Verdict) {
        self.cases += 1;
        let required = match verdict {
            Verdict::Failed { fault, .. } => case.rule.level == Level::Must || fault.rule.level == Level::Must,
            Verdict::Passed | Verdict::NotOffered | Verdict::NoModelCalls | Verdict::NotTried => {
                case.rule.level == Level::Must
            }
        };
        let count = match (verdict, required) {
            (Verdict::Passed, true) => &mut self.required_passed,
            (Verdict::Passed, false) => &mut self.optional_passed,
            (Verdict::Failed { .. } | Verdict::NotTried, true) => &mut self.required_failed,
            (Verdict::Failed { .. } | Verdict::NotTried, false) => &mut self.optional_failed,
            (Verdict::NotOffered, _) => &mut self.not_offered,
            (Verdict::NoModelCalls, _) => &mut self.no_model_calls,
        };
        *count += 1;
    }

    /// Whether the runner conforms, as far as the cases tell that were tried.
    #[must_use]
    pub fn conforms(&self) -> bool {
        self.required_failed == 0 && self.cases > 0
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            cases,
            required_passed,
            required_failed,
            optional_passed,
            optional_failed,
            not_offered,
            no_model_calls,
        } = self;
        write!(
            f,
            "{cases} cases: required {required_passed} passed, {required_failed} failed; optional {optional_passed} \
             passed, {optional_failed} failed, {not_offered} not offered"
        )?;
        match no_model_calls {
            0 => Ok(()),
            _ => write!(f, "; {no_model_calls} not tried, as it makes no model calls"),
        }
    }
}
