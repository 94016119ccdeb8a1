//! Calls by their ids, tools and arguments: an id alone is a word of the agent's, by which another call is not the same.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::registry::sha256_hex;

/// Calls of one id that are told apart.
const SAME_ID_MAX: usize = 1_000;

/// What a call is known by: the same for the same id, tool and arguments.
pub(super) fn key(call_id: &str, tool: &str, arguments: &Value) -> String {
    sha256_hex(json!([call_id, tool, arguments]).to_string().as_bytes())
}

/// The calls that an agent told, by the ids that they have in the record.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Which call has an id of the record.
    recorded: BTreeMap<String, String>,
    /// The last call of an id, as the agent tells it, by that of the record.
    last: BTreeMap<String, String>,
}

impl Calls {
    /// The id in the record of a call that the agent tells as `call_id`: another one where that is another call's.
    pub(super) fn id_of(&mut self, call_id: &str, key: String) -> String {
        let further = (2..=SAME_ID_MAX).map(|number| format!("{call_id}_{number}"));
        let is_its_own = |id: &String| self.recorded.get(id).is_none_or(|known| *known == key);
        let Some(id) = std::iter::once(call_id.to_owned()).chain(further).find(is_its_own) else {
            return call_id.to_owned();
        };
        self.recorded.insert(id.clone(), key);
        self.last.insert(call_id.to_owned(), id.clone());
        id
    }

    /// The id in the record of the call that an agent tells the result of.
    pub(super) fn last_of(&self, call_id: &str) -> String {
        self.last.get(call_id).map_or_else(|| call_id.to_owned(), Clone::clone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_call_of_the_same_id_is_another() {
        let mut calls = Calls::default();
        let mut check = |call_id: &str, tool: &str, command: &str, want: &str| {
            let id = calls.id_of(call_id, key(call_id, tool, &json!({ "command": command })));
            assert_eq!((id.as_str(), calls.last_of(call_id).as_str()), (want, want), "{call_id} {tool} {command}");
        };
        check("c1", "Bash", "ls", "c1");
        check("c1", "Bash", "ls", "c1");
        check("c1", "Bash", "rm -r .", "c1_2");
        check("c1", "Bash", "rm -r .", "c1_2");
        check("c1", "Write", "ls", "c1_3");
        check("c1", "Bash", "ls", "c1");
        check("c1_2", "Bash", "pwd", "c1_2_2");
        check("c2", "Bash", "ls", "c2");
        assert_eq!(calls.last_of("c3"), "c3");
    }
}
