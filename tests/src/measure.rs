//! How fast the host is, on the machine at hand: each figure is told beside a floor of the same run (what the bare
//! parts of the same work take here), and beside its goal where it has one.
//!
//! * [`floor`]: the bare parts: a process, a durable row, SQLite with the statements of a send;
//! * [`sends`]: durable messages by 1 to 512 senders;
//! * [`talk`]: a message until its receiver has it; a question until its asker has the answer;
//! * [`runs`]: polls, spawns, and runs from the spawn to the result;
//! * [`crowd`]: 100 to 1,000 assistants alive at once, and the cancel of 500;
//! * `link`: the pipes between a runner and its host; `runners`: runners alone; `launchers`: what it costs to fence one in (on
//!   Unix only);
//! * [`gate`]: the model that these need; [`side`]: the other end of the pipe; [`batches`]: how many jobs shared a COMMIT.

use std::path::PathBuf;

use crate::timing::tell;

pub mod batches;
pub mod crowd;
pub mod floor;
pub mod gate;
#[cfg(unix)]
pub mod launchers;
#[cfg(unix)]
pub mod link;
#[cfg(unix)]
pub mod runners;
pub mod runs;
pub mod sends;
pub mod side;
pub mod talk;

/// What a figure is to be.
#[derive(Debug, Clone, Copy)]
pub enum Goal {
    /// Not more than this.
    AtMost(f64, &'static str),
    /// Not less than this.
    AtLeast(f64, &'static str),
}

impl Goal {
    /// The goal, and whether a figure meets it.
    #[must_use]
    pub fn judge(self, figure: f64) -> String {
        let (words, most, unit, met) = match self {
            Self::AtMost(most, unit) => ("at most", most, unit, figure <= most),
            Self::AtLeast(least, unit) => ("at least", least, unit, figure >= least),
        };
        format!("; goal: {words} {most}{unit}, {}", if met { "met" } else { "not met" })
    }
}

/// Tells a time beside the floor that it stands on, and beside its goal.
pub fn told(what: &str, ms: f64, floor: (&str, f64), goal: Option<Goal>) {
    let goal = goal.map_or_else(String::new, |goal| goal.judge(ms));
    tell(&format!("{what}: {ms:.2} ms, {:.1} × {} ({:.3} ms){goal}", ms / floor.1, floor.0, floor.1));
}

/// Tells a rate beside the floor's, and whether the rate, or its share of the floor, meets a goal.
pub fn told_rate(what: &str, per_second: f64, floor: (&str, f64), goal: Option<Goal>) {
    let share = per_second / floor.1;
    let goal = goal.map_or_else(String::new, |goal| match goal {
        Goal::AtLeast(_, "/s") | Goal::AtMost(_, "/s") => goal.judge(per_second),
        Goal::AtLeast(..) | Goal::AtMost(..) => goal.judge(share),
    });
    tell(&format!("{what}: {per_second:.0} /s, {share:.2} × {} ({:.0} /s){goal}", floor.0, floor.1));
}

/// A program that is built beside this one.
///
/// # Errors
/// In words, where it is not there.
pub fn beside(name: &str) -> Result<PathBuf, String> {
    let me = std::env::current_exe().map_err(|error| error.to_string())?;
    let program = me.with_file_name(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    if program.is_file() {
        return Ok(program);
    }
    Err(format!("{} is not there: cargo build --release -p conformance --bins", program.display()))
}
