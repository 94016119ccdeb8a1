//! Keys that say whether there is such an assistant at all.

use super::super::diagnostic::{Code, Diagnostic};
use super::super::keys;
use super::super::known::Field;
use super::super::yaml::Entry;
use super::Assembly;

impl Assembly<'_> {
    /// Whether it is on, as `entry` says it.
    pub(super) fn switch(&self, field: Field, entry: &Entry) -> Result<(), Diagnostic> {
        let Some(truth) = entry.value.truth() else { return Err(self.off(&entry.key, (entry.line, entry.column))) };
        if truth == (field == Field::Enable) {
            return Ok(());
        }
        let message = format!("its `{}` switches it off", keys::cut(&entry.key));
        Err(Diagnostic::new(Code::Disabled, self.notes.file, message)
            .at(entry.line, keys::column(entry.column))
            .hint("remove the key to have it"))
    }

    /// A switch that nobody can read is off.
    pub(super) fn off(&self, key: &str, (line, column): (u32, u32)) -> Diagnostic {
        let message = format!("its `{}` cannot be read, so it is switched off", keys::cut(key));
        Diagnostic::new(Code::SwitchUnreadable, self.notes.file, message)
            .at(line, keys::column(column))
            .hint("write `true` or `false`")
    }
}
