//! The fake runner: a program that is a runner as far as its transcript says, and judges the host that it talks to.
//!
//! * [`transcript`]: the steps, as data: the table that `--help` prints, and how a file is read.
//! * [`pattern`]: what the host has to say, as JSON that it has to contain.
//! * [`seen`]: what the host has said so far, and whether it may.
//! * [`player`]: does the steps.
//!
//! `fake-runner agent` is another program: a correct runner, or one with a fault, for the kit that judges runners
//! ([`agent`]).

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

pub mod agent;
pub mod pattern;
pub mod player;
pub mod seen;
pub mod transcript;

use player::{Fault, Player};
use transcript::Transcript;

/// The program.
#[must_use]
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    match arguments.as_slice() {
        [help] if help == "--help" => say(&transcript::help()),
        [agent] if agent == "agent" => agent::main(None),
        [agent, help] if agent == "agent" && help == "--help" => say(&agent::help()),
        [agent, fault] if agent == "agent" => match fault.to_str().and_then(agent::faults::find) {
            Some(fault) => agent::main(Some(fault)),
            None => told(Fault::BAD_TRANSCRIPT, "there is no such fault; `fake-runner agent --help` tells all"),
        },
        [file] => play(Path::new(file)),
        _ => told(Fault::BAD_TRANSCRIPT, "usage: fake-runner FILE; `fake-runner --help` tells the steps of a file"),
    }
}

fn say(text: &str) -> ExitCode {
    let written = io::stdout().write_all(text.as_bytes());
    if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Plays a file and says how that went: on stderr in words, and by the exit code.
fn play(file: &Path) -> ExitCode {
    let transcript = match Transcript::read(file) {
        Ok(transcript) => transcript,
        Err(wrong) => return told(Fault::BAD_TRANSCRIPT, &wrong),
    };
    let mut player = Player::default();
    for (line, step) in &transcript.steps {
        match player.step(step) {
            Ok(None) => {}
            Ok(Some(code)) => return ExitCode::from(code),
            Err(fault) => return told(fault.code(), &format!("{}:{line}: {fault}", file.display())),
        }
    }
    ExitCode::SUCCESS
}

fn told(code: u8, words: &str) -> ExitCode {
    // Nobody has to read it: the exit code says it too.
    drop(writeln!(io::stderr(), "{words}"));
    ExitCode::from(code)
}
