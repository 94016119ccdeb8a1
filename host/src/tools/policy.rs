//! What an assistant may call, and with what: the rules of its definition, looked at before each call.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::registry::Definition;

/// A tool, as rules speak of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolName<'a> {
    /// The tool server that it is of; none is the host itself or the app.
    pub server: Option<&'a str>,
    /// Its name there.
    pub tool: &'a str,
}

/// What becomes of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is made.
    Allow,
    /// Somebody is asked first.
    Ask {
        /// The rule that says so, as its file writes it.
        rule: String,
    },
    /// It is not made.
    Deny {
        /// The rule that says so, in words that name it.
        rule: String,
    },
}

/// The rules of one definition.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    tools: Option<Vec<String>>,
}

impl Policy {
    /// The rules of `definition`; `aliases` are those of the configuration.
    #[must_use]
    pub fn of(definition: &Definition, aliases: &BTreeMap<String, String>) -> Self {
        let _ = aliases;
        Self { tools: definition.tools.clone() }
    }

    /// Whether an assistant is offered a tool of a server at all.
    #[must_use]
    pub fn offers(&self, tool: ToolName<'_>) -> bool {
        let _ = tool;
        self.tools.is_none()
    }

    /// What becomes of a call of a tool that is offered.
    #[must_use]
    pub fn judge(&self, tool: ToolName<'_>, arguments: &Map<String, Value>) -> Verdict {
        let _ = (tool, arguments);
        Verdict::Allow
    }
}
