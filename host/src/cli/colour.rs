//! Colour, where a person looks at a terminal and wants it.

use std::io::IsTerminal;

use super::open::env;
use crate::registry::Severity;

/// Whether what is written to one stream may have colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Colour(bool);

impl Colour {
    /// None: for files and pipes.
    pub(super) const OFF: Self = Self(false);

    /// Of stdout.
    pub(super) fn of_stdout() -> Self {
        Self(std::io::stdout().is_terminal() && wanted())
    }

    /// `text` in the colour of a status, or of the kind of an event that is one.
    pub(super) fn status(self, status: &str, text: &str) -> String {
        self.paint(code_of(status), text)
    }

    /// `text` where it is less important than what stands beside it.
    pub(super) fn faint(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// `text` in the colour of how bad it is.
    pub(super) fn severity(self, severity: Severity, text: &str) -> String {
        let code = match severity {
            Severity::Error => "1;31",
            Severity::Warning => "33",
            Severity::Info => "36",
        };
        self.paint(code, text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.0 && !code.is_empty() { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// See <https://no-color.org>: the variable counts where it is set and not empty.
fn wanted() -> bool {
    env("NO_COLOR").is_none_or(|value| value.is_empty()) && env("TERM").is_none_or(|term| term != "dumb")
}

fn code_of(status: &str) -> &'static str {
    match status {
        "finished" => "32",
        "failed" => "31",
        "cancelled" => "33",
        "running" | "starting" => "36",
        "waiting" | "question" => "35",
        "queued" => "2",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::Colour;

    #[test]
    fn only_where_it_is_wanted() {
        let check = |colour: Colour, status: &str, want: &str| assert_eq!(colour.status(status, "x"), want);
        check(Colour(true), "failed", "\u{1b}[31mx\u{1b}[0m");
        check(Colour(true), "unheard of", "x");
        check(Colour::OFF, "failed", "x");
    }
}
