//! One rule: the tool that it names, and the calls of it.

use super::glob::{self, HOLE, INNER_BLANK};
use super::shell::Script;
use crate::registry::{Action, Subject, ToolRule, bare, is_all, pattern, subject};

/// A `?` that is a sign like others.
const QUESTION: &str = "\u{2}";

/// How the patterns of a rule are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// As in lists of tools: `git log:*` begins so, `src/**` is as git ignores files.
    List,
    /// As in rules whose order counts: `*` is any text.
    Text,
}

/// A rule for calls of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// As its file writes it.
    pub(super) written: String,
    /// The tool that it names.
    pub(super) name: String,
    /// Which calls; none is all of them. Any of several.
    pub(super) patterns: Vec<String>,
    pub(super) style: Style,
}

impl Entry {
    /// Reads `Tool` or `Tool(pattern)`.
    pub(super) fn read(written: &str, style: Style) -> Self {
        let name = bare(written).to_owned();
        let patterns = match pattern(written) {
            Some(found) => split(found),
            // Parentheses that are never closed are about something, and nobody knows about what.
            None if written.contains('(') && !written.trim_end().ends_with(')') => vec![String::new()],
            None => Vec::new(),
        };
        Self { written: written.to_owned(), name, patterns, style }
    }

    /// A rule whose order counts.
    pub(super) fn ordered(rule: &ToolRule) -> Self {
        let patterns = rule.pattern.iter().filter(|pattern| *pattern != "*").cloned().collect();
        let written = match &rule.pattern {
            Some(pattern) => format!("{}({pattern})", rule.tool),
            None => rule.tool.clone(),
        };
        let action = match rule.action {
            Action::Allow => "allow",
            Action::Ask => "ask",
            Action::Deny => "deny",
        };
        let written = format!("{written}: {action}");
        match &rule.pattern {
            // The name may say which calls in parentheses, as in lists of tools.
            None => Self { written, ..Self::read(&rule.tool, Style::List) },
            Some(_) => Self { written, name: rule.tool.clone(), patterns, style: Style::Text },
        }
    }

    /// What its patterns are about.
    pub(super) fn subject(&self) -> Option<Subject> {
        subject(&self.name)
    }

    /// Whether it is about files that are written.
    pub(super) fn is_for_writing(&self) -> bool {
        self.subject() == Some(Subject::WritePath)
    }

    /// Whether it is about every tool.
    pub(super) fn is_all(&self) -> bool {
        is_all(&self.name)
    }

    /// Whether one of its patterns is a command of `words`, whatever its holes become, and says at least the first `least`
    /// words of it.
    pub(super) fn is_command(&self, words: &[String], least: usize) -> bool {
        let text = joined(words);
        self.patterns.iter().any(|pattern| {
            let command = Command::read(pattern, self.style);
            command.words() >= least && command.matches(&text)
        })
    }

    /// Whether one of its patterns may be a command of `words`; with `loose`, blanks within words count as others.
    pub(super) fn may_be_command(&self, words: &[String], loose: bool) -> bool {
        let text = joined(words);
        let text = if loose { text.replace(INNER_BLANK, " ") } else { text };
        self.patterns.iter().any(|pattern| Command::read(pattern, self.style).may_match(&text))
    }
}

/// A pattern for commands.
#[derive(Debug, PartialEq, Eq)]
enum Command {
    /// These words, and whatever stands behind them.
    Begins(String),
    /// `*` is any text.
    Like(String),
    /// These words.
    Is(String),
}

impl Command {
    fn read(pattern: &str, style: Style) -> Self {
        let pattern = pattern.trim();
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        if let (Some(begin), Style::List) = (pattern.strip_suffix(":*"), style)
            && !begin.contains('*')
        {
            return Self::Begins(words(begin));
        }
        let pattern = pattern.strip_suffix(":*").map_or_else(|| pattern.to_owned(), |begin| format!("{begin} *"));
        if let Some(begin) = pattern.strip_suffix(" *").filter(|begin| !begin.contains(['*', '?'])) {
            return Self::Begins(words(begin));
        }
        let wild = pattern.contains('*') || (style == Style::Text && pattern.contains('?'));
        if wild {
            // In lists a `?` is a sign like others.
            let pattern = if style == Style::List { pattern.replace('?', QUESTION) } else { pattern };
            return Self::Like(words(&pattern));
        }
        // Written with quotes, it is the words that a shell makes of it.
        match Script::parse(&pattern) {
            Ok(Script { commands, writes, reads }) if writes.is_empty() && reads.is_empty() => {
                match commands.as_slice() {
                    [one] if !one.words.iter().any(|word| word.contains(HOLE)) => {
                        Self::Is(joined(&[one.sets.clone(), one.words.clone()].concat()))
                    }
                    _ => Self::Is(words(&pattern)),
                }
            }
            _ => Self::Is(words(&pattern)),
        }
    }

    /// Words that it says itself, from the first on.
    fn words(&self) -> usize {
        let (Self::Begins(text) | Self::Like(text) | Self::Is(text)) = self;
        text.split(' ').take_while(|word| !word.contains('*') && !word.is_empty()).count()
    }

    fn matches(&self, text: &str) -> bool {
        match self {
            Self::Begins(begin) => {
                text.strip_prefix(begin.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            }
            Self::Like(pattern) => glob::matches(pattern, &plain(pattern, text)),
            Self::Is(whole) => text == whole,
        }
    }

    fn may_match(&self, text: &str) -> bool {
        let whole = |pattern: &str| glob::may_match(pattern, &plain(pattern, text));
        match self {
            Self::Begins(begin) => whole(begin) || whole(&format!("{begin} *")),
            Self::Like(pattern) | Self::Is(pattern) => whole(pattern),
        }
    }
}

/// `text` with the sign that stands for `?` in `pattern`, where that is a sign like others.
fn plain(pattern: &str, text: &str) -> String {
    if pattern.contains(QUESTION) { text.replace('?', QUESTION) } else { text.to_owned() }
}

/// Words with blanks between them; those within a word are others.
pub(super) fn joined(words: &[String]) -> String {
    let one = |word: &String| match word.is_empty() {
        true => INNER_BLANK.to_string(),
        false => word.replace([' ', '\t', '\n'], &INNER_BLANK.to_string()),
    };
    words.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// The patterns between commas, where each of them is one: `git log:*, git show:*`.
fn split(pattern: &str) -> Vec<String> {
    let mut depth = 0_u32;
    let parts = pattern.split(|c| {
        match c {
            '{' | '(' => depth += 1,
            '}' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    let parts: Vec<&str> = parts.map(str::trim).collect();
    let ends = |part: &&str| part.ends_with(":*");
    let starts = |part: &&str| part.starts_with("domain:");
    let paths = |part: &&str| part.contains(['/', '*']) && !part.contains(' ');
    let each = parts.iter().all(ends) || parts.iter().all(starts) || parts.iter().all(paths);
    let names =
        parts.iter().all(|part| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || "-_".contains(c)));
    if each || names { parts.into_iter().map(str::to_owned).collect() } else { vec![pattern.to_owned()] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_patterns_in_one() {
        let check = |written: &str, patterns: &[&str]| {
            assert_eq!(Entry::read(written, Style::List).patterns, patterns, "{written}");
        };
        check("Bash(git log:*, git show:*)", &["git log:*", "git show:*"]);
        check("Bash(echo a,b)", &["echo a,b"]);
        check("Read(src/**, docs/**)", &["src/**", "docs/**"]);
        check("Read({a,b}/*.rs)", &["{a,b}/*.rs"]);
        check("Agent(a, b)", &["a", "b"]);
        check("Bash", &[]);
        check("Bash(*)", &[]);
        check("Bash()", &[]);
        check("Bash(x", &[""]);
    }
}
