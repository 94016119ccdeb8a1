//! What a command line of a POSIX shell or bash would run, as far as that can be told before it runs.
//!
//! Whatever cannot be told is an error, which refuses: a pattern lets only calls pass that are understood whole.

mod walk;
mod words;
mod wrappers;

use std::panic::AssertUnwindSafe;

use brush_parser::{Parser, ParserOptions, SourceInfo};

pub(super) use self::wrappers::{Inner, Wrapped, is_wrapper};
use super::glob::HOLE;

/// The longest command line that is looked at, bytes.
const COMMAND_BYTES_MAX: usize = 16 * 1024;
/// Most signs and words in a command line that open something.
const OPENERS_MAX: usize = 64;
/// Deepest nesting of what they open.
const DEPTH_MAX: usize = 5;
/// Most commands of one line.
const COMMANDS_MAX: usize = 500;
/// Words that open something.
const OPENING_WORDS: &[&str] =
    &["!", "case", "coproc", "do", "for", "function", "if", "select", "time", "until", "while"];

/// What a command line does.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Script {
    /// Every command that it runs by itself, wherever it stands.
    pub(super) commands: Vec<Simple>,
    /// Files that redirections write.
    pub(super) writes: Vec<String>,
    /// Files that redirections read.
    pub(super) reads: Vec<String>,
}

/// One command with its words; what is known only when it runs is a hole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Simple {
    /// Variables that are set for it, as `A=b`; or for all that comes, where there are no words.
    pub(super) sets: Vec<String>,
    /// The command and its arguments.
    pub(super) words: Vec<String>,
}

impl Script {
    /// What `text` does.
    ///
    /// # Errors
    /// Why that cannot be told.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut script = Self::default();
        script.add(text, 0)?;
        Ok(script)
    }

    /// What one command does whose words are known, without a shell.
    ///
    /// # Errors
    /// As for [`Script::parse`].
    pub(super) fn of_words(words: Vec<String>) -> Result<Self, String> {
        let mut script = Self::default();
        let bytes: usize = words.iter().map(String::len).sum();
        if bytes > COMMAND_BYTES_MAX {
            return Err(too_long());
        }
        if let Some(bad) = words.iter().find_map(|word| unseen(word)) {
            return Err(bad);
        }
        script.push(Simple { sets: Vec::new(), words }, 0)?;
        Ok(script)
    }

    /// Whether it changes the folder in which what follows runs.
    pub(super) fn moves(&self) -> bool {
        let is_move = |word: &String| matches!(word.as_str(), "cd" | "pushd" | "popd" | "chdir");
        self.commands.iter().any(|one| match one.words.split_first() {
            // What `command` and `builtin` run is run by the shell itself.
            Some((head, rest)) if matches!(head.as_str(), "builtin" | "command") => {
                rest.iter().any(|word| is_move(word) || word.contains(HOLE))
            }
            Some((head, rest)) => is_move(head) || (is_wrapper(head) && rest.iter().any(is_move)),
            None => false,
        })
    }

    /// Adds what `text` does, which stands `depth` deep in others.
    fn add(&mut self, text: &str, depth: usize) -> Result<(), String> {
        if depth > DEPTH_MAX {
            return Err("it is nested too deep".to_owned());
        }
        look_over(text)?;
        let options = ParserOptions::default();
        // A fault in the parser is a command that cannot be told.
        let parsed = std::panic::catch_unwind(AssertUnwindSafe(|| {
            Parser::new(text.as_bytes(), &options, &SourceInfo::default()).parse_program()
        }));
        let program = parsed.ok().and_then(Result::ok).ok_or("it cannot be read as a command of a shell")?;
        for list in &program.complete_commands {
            self.list(list, depth)?;
        }
        Ok(())
    }

    /// Adds a command, and what it hands to a shell.
    fn push(&mut self, simple: Simple, depth: usize) -> Result<(), String> {
        if self.commands.len() >= COMMANDS_MAX {
            return Err(format!("it has more than {COMMANDS_MAX} commands"));
        }
        if simple.words.first().is_some_and(|head| head.contains(HOLE)) {
            return Err("which command it runs is known only when it runs".to_owned());
        }
        let scripts = wrappers::scripts(&simple.words)?;
        self.commands.push(simple);
        scripts.iter().try_for_each(|script| self.add(script, depth + 1))
    }
}

fn too_long() -> String {
    format!("it is longer than {COMMAND_BYTES_MAX} bytes")
}

/// Looks at a text before it is parsed: signs that people do not see, and how much it opens.
fn look_over(text: &str) -> Result<(), String> {
    if text.len() > COMMAND_BYTES_MAX {
        return Err(too_long());
    }
    if let Some(bad) = unseen(text) {
        return Err(bad);
    }
    if cfg!(windows) && text.contains(['&', '|', '<', '>', '^', '%', '`', ';', '$', '(', ')', '{', '}', '\n']) {
        return Err("on this system it may mean something else to the shell that runs it".to_owned());
    }
    let (mut depth, mut deepest, mut openers) = (0_usize, 0, 0);
    for sign in text.chars() {
        match sign {
            '(' | '{' => {
                openers += 1;
                depth += 1;
                deepest = deepest.max(depth);
            }
            ')' | '}' => depth = depth.saturating_sub(1),
            '`' => openers += 1,
            _ => {}
        }
    }
    let words = text.split(|c: char| c.is_whitespace() || ";&|(){}".contains(c));
    openers += words.filter(|word| OPENING_WORDS.contains(word)).count();
    if deepest > DEPTH_MAX || openers > OPENERS_MAX {
        return Err("it is nested too deep".to_owned());
    }
    Ok(())
}

/// What is wrong with a text that has signs in it which shells and people read differently.
fn unseen(text: &str) -> Option<String> {
    let odd = |sign: char| match sign {
        '\n' | '\t' | ' ' => false,
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' => true,
        sign => sign.is_control() || sign.is_whitespace(),
    };
    let found = text.chars().find(|sign| odd(*sign))?;
    Some(format!("it has the sign U+{:04X} in it, which is not seen", u32::from(found)))
}

#[cfg(test)]
mod tests;
