//! Keys that limit the assistant within others, such as `settings.permissions`.

use super::super::diagnostic::{Code, Diagnostic};
use super::super::known::{self, Field, fold};
use super::super::yaml::{Entry, Kind};
use super::super::{keys, services};
use super::Assembly;

/// Keys, folded, below which tools are neither those to have nor those to lack: nobody can tell.
const UNCLEAR: &[&str] = &["constraints", "restrictions"];
/// Keys, folded, below which a switch is one of the assistant; below others, such as `guardrails`, it is theirs.
const OF_ALL: &[&str] = &["agentconfig", "config", "configuration", "settings"];

impl Assembly<'_> {
    /// Takes what limits of the map that `entry` is, where its key is one below which authors write such things.
    ///
    /// # Errors
    /// A switch there is off, or cannot be read.
    pub(super) fn within(&mut self, entry: &Entry) -> Result<(), Diagnostic> {
        let holder = fold(&entry.key);
        let Kind::Map(inner) = &entry.value.kind else { return Ok(()) };
        if !known::is_holder(&holder) {
            return Ok(());
        }
        for one in inner {
            let Some(field) = known::meant(&fold(&one.key)).filter(|field| field.limits()) else { continue };
            // How many there may be is no list of them.
            let number = one.value.truth().is_none() && super::fields::number(&one.value).is_some();
            let counts = number && matches!(field, Field::Tools | Field::Denied | Field::Agents);
            // Behind a list of who may, nothing is no one; else it is no word.
            let says = !one.value.is_null() || matches!(field, Field::Callers | Field::Agents);
            if counts || !says {
                continue;
            }
            let unclear = field == Field::Tools && UNCLEAR.contains(&holder.as_str());
            let taken = match field {
                Field::Disable | Field::Enable if OF_ALL.contains(&holder.as_str()) => {
                    self.switch(field, one)?;
                    false
                }
                Field::Disable | Field::Enable => false,
                Field::Services => {
                    services::both(one, &mut self.definition.extra, &mut self.notes);
                    true
                }
                field => {
                    let field = if unclear { Field::Unclear } else { field };
                    self.access.take(self.definition.dialect, field, one, &mut self.notes)
                }
            };
            if taken {
                let key = keys::cut(&one.key);
                let message = format!("`{key}` below `{}` was taken as if it stood alone", keys::cut(&entry.key));
                let hint = format!("write `{key}` as a key of its own, or another one if that was not meant");
                self.notes.say(Code::KeyMisspelt, (one.line, one.column), message, &hint);
            }
        }
        Ok(())
    }
}
