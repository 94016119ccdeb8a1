//! Keys that limit the assistant within others, such as `settings.permissions`.

use super::super::diagnostic::Code;
use super::super::keys;
use super::super::known::{self, Field, fold};
use super::super::yaml::{Entry, Kind};
use super::Assembly;

/// Keys, folded, below which tools are neither those to have nor those to lack: nobody can tell.
const UNCLEAR: &[&str] = &["constraints", "restrictions"];

impl Assembly<'_> {
    /// Takes what limits of the map that `entry` is, where its key is one below which authors write such things.
    pub(super) fn within(&mut self, entry: &Entry) {
        let holder = fold(&entry.key);
        let Kind::Map(inner) = &entry.value.kind else { return };
        if !known::is_holder(&holder) {
            return;
        }
        for one in inner {
            let Some(field) = known::meant(&fold(&one.key)).filter(|field| limits(*field)) else { continue };
            // How many there may be is no list of them.
            let number = one.value.truth().is_none() && super::fields::number(&one.value).is_some();
            if number || one.value.is_null() {
                continue;
            }
            let field =
                if field == Field::Tools && UNCLEAR.contains(&holder.as_str()) { Field::Unclear } else { field };
            if self.access.take(self.definition.dialect, field, one, &mut self.notes) {
                let key = keys::cut(&one.key);
                let message = format!("`{key}` below `{}` was taken as if it stood alone", keys::cut(&entry.key));
                let hint = format!("write `{key}` as a key of its own, or another one if that was not meant");
                self.notes.say(Code::KeyMisspelt, (one.line, one.column), message, &hint);
            }
        }
    }
}

/// Whether `field` limits wherever it stands.
fn limits(field: Field) -> bool {
    matches!(
        field,
        Field::Tools
            | Field::Denied
            | Field::Unclear
            | Field::Permissions
            | Field::Mode
            | Field::Readonly
            | Field::Callers
    )
}
