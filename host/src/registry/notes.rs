//! What is said of one file while it is read.

use super::diagnostic::{Code, Diagnostic};
use super::fields::LIST_MAX;
use super::keys;

/// Most findings of one code about one file; the first ones are told.
pub(super) const OF_A_CODE_MAX: usize = 16;

/// The findings about one file.
pub(super) struct Notes<'a> {
    /// The file.
    pub(super) file: &'a str,
    /// What was found so far.
    pub(super) found: Vec<Diagnostic>,
    /// How many were said, those past the bound too.
    pub(super) said: usize,
}

impl Notes<'_> {
    /// Adds a finding at a line and a column, 0 where it is not known, with what to do about it unless that is empty.
    pub(super) fn say(&mut self, code: Code, (line, column): (u32, u32), message: impl Into<String>, hint: &str) {
        self.said += 1;
        if self.found.iter().filter(|found| found.code == code).count() >= OF_A_CODE_MAX {
            return;
        }
        let found = Diagnostic::new(code, self.file, message).at(line, keys::column(column));
        self.found.push(if hint.is_empty() { found } else { found.hint(hint) });
    }

    /// `list` without what is past its bound; that is told.
    pub(super) fn bounded(&mut self, mut list: Vec<String>, key: &str, at: (u32, u32)) -> Vec<String> {
        if list.len() > LIST_MAX {
            let message = format!("`{}` has {} entries; those past {LIST_MAX} are dropped", keys::cut(key), list.len());
            self.say(Code::ListCut, at, message, "shorten the list");
            list.truncate(LIST_MAX);
        }
        list
    }
}
