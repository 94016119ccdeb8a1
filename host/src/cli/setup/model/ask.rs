//! The questions of `setup model`, with numbers to choose from. What is asked is on stderr; what is answered, on stdin.

use std::io::{BufRead, Write};

use super::ModelArgs;
use super::candidates::{Candidate, Installed, Kind};
use super::plan::{Key, Plan};
use crate::config::Secret;

/// How often a question is asked anew where the answer does not fit.
const ASKED_MAX: usize = 5;
/// The longest answer, bytes.
const ANSWER_BYTES_MAX: usize = 16 * 1024;
/// The longest line that a terminal gives, bytes; what is longer it cuts.
const TERMINAL_BYTES_MAX: usize = 4_095;
/// What Ctrl-C sends.
const INTERRUPT: u8 = 3;
/// Why no key is asked for.
const SHOWN: &str = "a key that you type would be shown here; name a file with it by --key-file, or set its variable";

/// Who is asked.
pub(super) struct Dialog<R, W> {
    answers: R,
    questions: W,
    /// Whether what is typed can be hidden.
    terminal: bool,
}

impl Dialog<std::io::StdinLock<'static>, std::io::Stderr> {
    /// The person at the terminal.
    pub(super) fn of_terminal() -> Self {
        Self { answers: std::io::stdin().lock(), questions: std::io::stderr(), terminal: true }
    }
}

impl<R: BufRead, W: Write> Dialog<R, W> {
    /// Somebody whose answers are known.
    #[cfg(test)]
    pub(super) fn of(answers: R, questions: W) -> Self {
        Self { answers, questions, terminal: false }
    }

    /// Asks what is to be used.
    ///
    /// # Errors
    /// In words: nothing was chosen.
    pub(super) fn plan(&mut self, found: &[Candidate], args: &ModelArgs) -> Result<Plan, String> {
        let lines: Vec<String> = found.iter().map(|one| format!("{:<30} {}", one.title, one.why)).collect();
        let at = self.choose("How are models to be reached?", &lines)?;
        let one = &found[at];
        match &one.kind {
            Kind::Agent(_) => one.plan(args, None, None),
            Kind::Ollama => {
                let told = |model: &Installed| {
                    let context = model.context_tokens.map(|tokens| format!(" ({tokens} tokens)")).unwrap_or_default();
                    format!("{}{context}", model.name)
                };
                let lines: Vec<String> = one.models.iter().map(told).collect();
                if lines.is_empty() {
                    return Err(format!("Ollama: {}", one.why));
                }
                let at = self.choose("Which model?", &lines)?;
                one.plan(args, None, Some(one.models[at].name.clone()))
            }
            Kind::Key { set, variable, model, .. } => {
                let key = match set {
                    Some(_) => None,
                    None => Some(Key::Pasted(self.secret(&format!(
                        "Paste the key, it is not shown (or end this, set {variable}, and begin again)"
                    ))?)),
                };
                let model = self.text("Which model?", model)?;
                one.plan(args, key, Some(model))
            }
        }
    }

    /// Whether something may be done; yes where nothing is said.
    pub(super) fn may(&mut self, question: &str) -> bool {
        self.ask(&format!("{question} [Y/n]"));
        matches!(self.answer().as_deref().map(str::to_lowercase).as_deref(), Ok("" | "y" | "yes"))
    }

    /// The place of what is chosen of some lines; the first where nothing is said.
    fn choose(&mut self, question: &str, lines: &[String]) -> Result<usize, String> {
        for _ in 0..ASKED_MAX {
            let numbered: Vec<String> =
                lines.iter().zip(1..).map(|(line, number)| format!("  {number}  {line}\n")).collect();
            self.ask(&format!("{question}\n{}Number [1]", numbered.concat()));
            let answer = self.answer()?;
            match answer.parse::<usize>() {
                Err(_) if answer.is_empty() => return Ok(0),
                Ok(number) if (1..=lines.len()).contains(&number) => return Ok(number - 1),
                Ok(_) | Err(_) => self.ask(&format!("`{answer}` is none of them.\n")),
            }
        }
        Err("nothing was chosen".to_owned())
    }

    fn text(&mut self, question: &str, usual: &str) -> Result<String, String> {
        self.ask(&format!("{question} [{usual}]"));
        let answer = self.answer()?;
        Ok(if answer.is_empty() { usual.to_owned() } else { answer })
    }

    fn secret(&mut self, question: &str) -> Result<Secret, String> {
        let answer = {
            // Before it is asked: who pastes at once shows nothing either.
            let _hidden = if self.terminal { Some(Hidden::begin()?) } else { None };
            self.ask(question);
            self.answer()
        };
        self.ask("\n");
        let answer = answer?;
        if self.terminal && answer.len() >= TERMINAL_BYTES_MAX {
            return Err("a terminal takes no key that is so long; name a file with it by --key-file".to_owned());
        }
        if answer.contains(char::is_control) {
            return Err("the key has signs in it that are none of a key; paste it alone".to_owned());
        }
        Secret::new(&answer).ok_or_else(|| "no key was given".to_owned())
    }

    fn ask(&mut self, words: &str) {
        let end = if words.ends_with('\n') { "" } else { ": " };
        // Where nobody can be asked, nobody answers, and that is told.
        drop(write!(self.questions, "{words}{end}").and_then(|()| self.questions.flush()));
    }

    fn answer(&mut self) -> Result<String, String> {
        let (mut line, mut ended) = (Vec::new(), false);
        for byte in std::io::Read::bytes(&mut self.answers).take(ANSWER_BYTES_MAX) {
            match byte.map_err(|error| format!("the answer cannot be read: {error}"))? {
                b'\n' => {
                    ended = true;
                    break;
                }
                INTERRUPT => return Err("interrupted; nothing was written".to_owned()),
                byte => line.push(byte),
            }
        }
        if line.is_empty() && !ended {
            return Err("nobody answered; nothing was written".to_owned());
        }
        let line = String::from_utf8(line).map_err(|_| "the answer cannot be read: it is no UTF-8".to_owned())?;
        Ok(line.trim().to_owned())
    }
}

/// While it is there, what is typed at the terminal is not shown, and Ctrl-C only ends the line: whoever gives up there
/// gets the terminal back as it was.
struct Hidden {
    #[cfg(unix)]
    before: rustix::termios::Termios,
}

impl Hidden {
    /// # Errors
    /// In words: it would be shown.
    #[cfg(unix)]
    fn begin() -> Result<Self, String> {
        use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};
        let stdin = std::io::stdin();
        let before = tcgetattr(&stdin).map_err(|_| SHOWN.to_owned())?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ISIG);
        hidden.special_codes[SpecialCodeIndex::VEOL] = INTERRUPT;
        let set = Self { before };
        tcsetattr(&stdin, OptionalActions::Flush, &hidden).map_err(|_| SHOWN.to_owned())?;
        // It may have been set in part.
        let now = tcgetattr(&stdin).map_err(|_| SHOWN.to_owned())?;
        if now.local_modes.contains(LocalModes::ECHO) { Err(SHOWN.to_owned()) } else { Ok(set) }
    }

    #[cfg(not(unix))]
    fn begin() -> Result<Self, String> {
        Err(SHOWN.to_owned())
    }
}

#[cfg(unix)]
impl Drop for Hidden {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        if tcsetattr(std::io::stdin(), OptionalActions::Flush, &self.before).is_err() {
            super::talk("what you type may not be shown from now on: `stty sane` mends that");
        }
    }
}
