//! A call with an idempotency key is carried out once: made again, it gets the first one's answer.

use rusqlite::Connection;
use serde_json::Value;

use super::{Call, ToolError};
use crate::caller::Caller;
use crate::process_table::{self, Keyed};
use crate::registry::sha256_hex;
use crate::store::{StoreError, Tx};

/// The longest key, bytes.
const KEY_BYTES_MAX: usize = 200;

/// A call under a key.
#[derive(Debug, Clone)]
pub(super) struct Once {
    caller: Caller,
    tool: &'static str,
    key: String,
    asked: String,
}

impl Once {
    /// The call of `tool` with what is asked, where it has a key. How long it waits is no part of what is asked.
    pub(super) fn new(
        call: &Call,
        tool: &'static str,
        key: Option<&str>,
        asked: &Value,
    ) -> Result<Option<Self>, ToolError> {
        let Some(key) = key else { return Ok(None) };
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            let message = format!("`idempotency_key` has {} bytes, and has to have 1 to {KEY_BYTES_MAX}", key.len());
            return Err(ToolError::bad_argument(message, "Give a UUID, or leave it out."));
        }
        let asked = sha256_hex(asked.to_string().as_bytes());
        Ok(Some(Self { caller: call.caller, tool, key: key.to_owned(), asked }))
    }

    /// The answer of the first such call, if there was one.
    ///
    /// # Errors
    /// `bad_argument` where the key was used for something else.
    pub(super) fn first_answer(&self, db: &Connection) -> Result<Option<Value>, ToolError> {
        match process_table::keyed(db, self.caller, self.tool, &self.key)? {
            Some(first) if first.asked == self.asked => Ok(Some(first.answer)),
            Some(_) => {
                let message = format!("the idempotency_key `{}` was used for another call of {}", self.key, self.tool);
                Err(ToolError::bad_argument(message, "Give each new call a key of its own."))
            }
            None => Ok(None),
        }
    }

    /// Keeps the answer, in the transaction of the call.
    pub(super) fn keep(&self, tx: &Tx<'_>, answer: &Value) -> Result<(), StoreError> {
        let keyed = Keyed { asked: self.asked.clone(), answer: answer.clone() };
        process_table::keep_keyed(tx, self.caller, self.tool, &self.key, &keyed)
    }
}
