//! Files that the redirections of a command write: rules about files to write are about them too.

use super::calls::{Calls, Item, clean};
use super::entry::Entry;
use super::glob::HOLE;
use super::paths::Resolved;
use super::shell::Script;
use super::{Verdict, subject};
use crate::registry::{Action, Subject};

impl Calls<'_> {
    /// Whether the files that redirections write are given.
    pub(super) fn writes(&self, script: &Script, folder: Option<&str>, given: &[&Entry]) -> Result<(), String> {
        for file in written(script) {
            let path = self.target(script, folder, file)?;
            let fits =
                |entry: &&Entry| entry.patterns.is_empty() || entry.patterns.iter().any(|one| path.matches(one, false));
            if !given.iter().any(fits) {
                return Err(format!("no rule lets it write `{}`", clean(file)));
            }
        }
        Ok(())
    }

    /// Whether an entry about files to write concerns the call because that is a command, which may redirect to one.
    pub(super) fn redirects(&self, entry: &Entry) -> bool {
        self.subject == Some(Subject::Command) && entry.is_for_writing()
    }

    /// Whether a redirection of the command may write a file that `entry`, which is about files to write, refuses.
    ///
    /// # Errors
    /// Why that cannot be told.
    pub(super) fn may_write(&self, entry: &Entry) -> Result<bool, String> {
        let (scripts, folder) = match subject::command(self.arguments) {
            Ok(told) => told,
            // A command that cannot be read redirects nothing where it has no sign for that.
            Err(_) if !self.has_redirection_sign() => return Ok(false),
            Err(why) => return Err(why),
        };
        for script in &scripts {
            for file in written(script) {
                if entry.patterns.is_empty() {
                    return Ok(true);
                }
                let path = self.target(script, folder.as_deref(), file)?;
                if self.may_fit(entry, &Item::Path(path)) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// What rules whose order counts, all about files to write, say of the redirections of a command: of those that fit,
    /// the last, and what may fit behind it where it is stricter.
    ///
    /// # Errors
    /// Why that cannot be told, where one of them does not allow.
    pub(super) fn redirected<'r>(
        &self,
        rules: impl DoubleEndedIterator<Item = (&'r Entry, Action)>,
    ) -> Result<Verdict, String> {
        let rules: Vec<(&Entry, Action)> = rules.collect();
        let mut verdict = Verdict::Allow;
        if rules.iter().all(|(_, action)| *action == Action::Allow) {
            return Ok(verdict);
        }
        let (scripts, folder) = match subject::command(self.arguments) {
            Ok(told) => told,
            Err(_) if !self.has_redirection_sign() => return Ok(verdict),
            Err(why) => return Err(why),
        };
        for script in &scripts {
            for file in written(script) {
                let item = Item::Path(self.target(script, folder.as_deref(), file)?);
                for (entry, action) in rules.iter().rev() {
                    let certain = entry.patterns.is_empty() || self.fits(entry, &item, 0);
                    let rule = entry.written.clone();
                    match action {
                        Action::Deny if certain || self.may_fit(entry, &item) => return Ok(Verdict::Deny { rule }),
                        Action::Ask if certain || self.may_fit(entry, &item) => verdict = Verdict::Ask { rule },
                        Action::Deny | Action::Ask | Action::Allow => {}
                    }
                    if certain {
                        break;
                    }
                }
            }
        }
        Ok(verdict)
    }

    /// Whether anything in the call could redirect at all.
    fn has_redirection_sign(&self) -> bool {
        self.arguments.values().any(|value| value.to_string().contains('>'))
    }

    /// Where a redirection to `file` writes.
    fn target(&self, script: &Script, folder: Option<&str>, file: &str) -> Result<Resolved, String> {
        let shown = clean(file);
        if file.contains(HOLE) {
            return Err(format!("where `> {shown}` writes is known only when it runs"));
        }
        if !file.starts_with('/') && (script.moves() || folder.is_some()) {
            return Err(format!("where `> {shown}` writes cannot be told"));
        }
        Resolved::of(self.folder, file)
    }
}

/// The files that redirections of `script` write, but for the one that keeps nothing.
fn written(script: &Script) -> impl Iterator<Item = &String> {
    script.writes.iter().filter(|file| *file != "/dev/null")
}
