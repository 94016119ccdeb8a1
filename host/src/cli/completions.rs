//! `completions SHELL`: what a shell sources to complete our commands.

use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::Shell;

use super::{Cli, FAILED, Failure, say};

#[derive(Args)]
pub(super) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Kind,
}

/// A shell that we write completions for.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    Bash,
    Zsh,
    Fish,
    Elvish,
    #[value(name = "powershell")]
    PowerShell,
}

pub(super) fn completions(args: &CompletionsArgs) -> Result<u8, Failure> {
    let shell = match args.shell {
        Kind::Bash => Shell::Bash,
        Kind::Zsh => Shell::Zsh,
        Kind::Fish => Shell::Fish,
        Kind::Elvish => Shell::Elvish,
        Kind::PowerShell => Shell::PowerShell,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "assistant-host", &mut script);
    let script = String::from_utf8(script).map_err(|error| Failure::new(FAILED, error))?;
    say(script.trim_end());
    Ok(0)
}
