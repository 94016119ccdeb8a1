//! What is said of a file.

use serde::Serialize;

/// One thing that is wrong with a file, or odd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The key, dotted; empty where it is the whole file.
    pub key: String,
    /// The line, from 1; 0 where there is none.
    pub line: u32,
    /// What is wrong, and what to do.
    pub message: String,
    /// It is served all the same.
    pub warning: bool,
    /// The file is in order, and the environment lacks something.
    pub of_environment: bool,
}

impl Finding {
    pub(super) fn error(key: &str, line: u32, message: impl Into<String>) -> Self {
        Self { key: key.to_owned(), line, message: message.into(), warning: false, of_environment: false }
    }

    /// The same in one line, behind the name of the file.
    #[must_use]
    pub fn in_words(&self, file: &std::path::Path) -> String {
        let mut words = file.display().to_string();
        if self.line > 0 {
            words.push_str(&format!(", line {}", self.line));
        }
        words.push_str(": ");
        if !self.key.is_empty() {
            words.push_str(&format!("`{}` ", self.key));
        }
        words.push_str(&self.message);
        words
    }
}
