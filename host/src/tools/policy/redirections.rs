//! Files that the redirections of a command write and read: rules about such files are about them too.

use super::calls::{Calls, Item, clean};
use super::entry::Entry;
use super::glob::HOLE;
use super::paths::Resolved;
use super::shell::Script;
use super::{Verdict, Why, list, subject};
use crate::registry::{Action, Subject};

impl Calls<'_> {
    /// Whether the files that redirections write are given. An entry for all files to write gives those of the folder: a
    /// server that writes is held to that by itself, a shell is not.
    pub(super) fn writes(&self, script: &Script, folder: Option<&str>, given: &[&Entry]) -> Result<(), String> {
        for file in Way::Write.files(script) {
            let path = self.target(script, folder, file)?;
            let fits = |entry: &&Entry| match entry.patterns.as_slice() {
                [] => path.is_inside(),
                patterns => patterns.iter().any(|one| path.matches(one, false)),
            };
            if !given.iter().any(fits) {
                return Err(format!("no rule lets it write `{}`", clean(file)));
            }
        }
        Ok(())
    }

    /// Whether an entry about files concerns the call because that is a command, which may redirect to or from one.
    pub(super) fn redirects(&self, entry: &Entry) -> bool {
        self.subject == Some(Subject::Command) && Way::of(entry).is_some()
    }

    /// What a redirection of the command does with a file that `entry`, which is about such files, may refuse.
    ///
    /// # Errors
    /// Why that cannot be told.
    pub(super) fn may_redirect(&self, entry: &Entry) -> Result<Option<&'static str>, String> {
        let Some(way) = Way::of(entry) else { return Ok(None) };
        let (scripts, folder) = match subject::command(self.arguments) {
            Ok(told) => told,
            // A command that cannot be read redirects nothing where it has no sign for that.
            Err(_) if !self.has_redirection_sign() => return Ok(None),
            Err(why) => return Err(why),
        };
        for script in &scripts {
            for file in way.files(script) {
                let fits = || {
                    let path = self.target(script, folder.as_deref(), file)?;
                    Ok::<bool, String>(self.may_fit(entry, &Item::Path(path)))
                };
                if entry.patterns.is_empty() || fits()? {
                    return Ok(Some(way.does()));
                }
            }
        }
        Ok(None)
    }

    /// What rules whose order counts, all about files, say of the redirections of a command: of those that fit, the last,
    /// and what may fit behind it where it is stricter.
    ///
    /// # Errors
    /// Why that cannot be told, where one of them does not allow.
    pub(super) fn redirected<'r>(
        &self,
        rules: impl DoubleEndedIterator<Item = (&'r Entry, Action)>,
    ) -> Result<Verdict, String> {
        let rules: Vec<(&Entry, Action)> = rules.collect();
        let mut verdict = Verdict::Allow;
        let about = |way: Way| rules.iter().rev().filter(move |(entry, _)| Way::of(entry) == Some(way));
        // Where some files are allowed, no others are.
        let some = |way: Way| about(way).any(|(entry, action)| !entry.patterns.is_empty() && *action == Action::Allow);
        let counts = |way: &Way| some(*way) || about(*way).any(|(_, action)| *action != Action::Allow);
        let ways: Vec<Way> = Way::ALL.into_iter().filter(counts).collect();
        if ways.is_empty() {
            return Ok(verdict);
        }
        let (scripts, folder) = match subject::command(self.arguments) {
            Ok(told) => told,
            Err(_) if !self.has_redirection_sign() => return Ok(verdict),
            Err(why) => return Err(why),
        };
        for (script, way) in scripts.iter().flat_map(|script| ways.iter().map(move |way| (script, *way))) {
            for file in way.files(script) {
                let item = Item::Path(self.target(script, folder.as_deref(), file)?);
                let mut told = false;
                for (entry, action) in about(way) {
                    let certain = entry.patterns.is_empty() || self.fits(entry, &item, 0);
                    let rule = entry.written.clone();
                    match action {
                        Action::Deny if certain || self.may_fit(entry, &item) => return Ok(Verdict::Deny { rule }),
                        Action::Ask if certain || self.may_fit(entry, &item) => {
                            verdict = Verdict::Ask { why: Why::Rule(rule) };
                        }
                        Action::Deny | Action::Ask | Action::Allow => {}
                    }
                    if certain {
                        told = true;
                        break;
                    }
                }
                if !told && some(way) {
                    let named: Vec<&Entry> = about(way).rev().map(|(entry, _)| *entry).collect();
                    let rule = format!("{}: `{}` does not match any of: {}", way.does(), clean(file), list(&named));
                    return Ok(Verdict::Deny { rule });
                }
            }
        }
        Ok(verdict)
    }

    /// Whether anything in the call could redirect at all.
    fn has_redirection_sign(&self) -> bool {
        self.arguments.values().any(|value| value.to_string().contains(['>', '<']))
    }

    /// The file of a redirection.
    fn target(&self, script: &Script, folder: Option<&str>, file: &str) -> Result<Resolved, String> {
        let shown = clean(file);
        if file.contains(HOLE) {
            return Err(format!("which file `{shown}` is, is known only when it runs"));
        }
        if !file.starts_with('/') && (script.moves() || folder.is_some()) {
            return Err(format!("where the file `{shown}` lies cannot be told"));
        }
        Resolved::of(self.folder, file)
    }
}

/// What a redirection does with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Write,
    Read,
}

impl Way {
    const ALL: [Self; 2] = [Self::Write, Self::Read];

    /// What a rule is about.
    fn of(entry: &Entry) -> Option<Self> {
        match entry.subject()? {
            Subject::WritePath => Some(Self::Write),
            Subject::ReadPath => Some(Self::Read),
            Subject::Command | Subject::Url | Subject::Assistant => None,
        }
    }

    /// The files of `script` that are redirected so, but for the one that keeps nothing.
    fn files(self, script: &Script) -> impl Iterator<Item = &String> {
        let files = match self {
            Self::Write => &script.writes,
            Self::Read => &script.reads,
        };
        files.iter().filter(|file| *file != "/dev/null")
    }

    fn does(self) -> &'static str {
        match self {
            Self::Write => "it writes a file",
            Self::Read => "it reads a file",
        }
    }
}
