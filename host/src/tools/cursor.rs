//! Places in a sequence of the host, which answers give as `next_cursor` and callers pass back.

use super::ToolError;
use crate::text::cut;

/// Characters of a cursor that are told.
const SHOWN_CHARS: usize = 40;

/// The place that `text` is, of the tool `tool`.
///
/// # Errors
/// It is none.
pub(super) fn read(text: &str, tool: &str) -> Result<i64, ToolError> {
    // What is behind nothing has the place before the first.
    text.parse().ok().filter(|place| *place >= -1).ok_or_else(|| {
        let message = format!("`{}` is no cursor of {tool}", cut(text, SHOWN_CHARS));
        ToolError::bad_argument(message, "Give the next_cursor of an answer, or leave it out.")
    })
}

/// Refuses the place `after` where that is behind the `last` one: what comes until then would be skipped.
///
/// # Errors
/// It is.
pub(super) fn within(after: Option<i64>, last: i64, tool: &str) -> Result<(), ToolError> {
    match after {
        Some(after) if after > last => {
            let message = format!("the cursor {after} lies behind all that there is: {tool} never gave it");
            Err(ToolError::bad_argument(message, "Give the next_cursor of an answer, or leave it out."))
        }
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_a_place_that_was_given() {
        let check = |text: &str, want: Result<i64, &str>| {
            let got = read(text, "read_log").and_then(|place| within(Some(place), 7, "read_log").map(|()| place));
            assert_eq!(got.map_err(|error| error.message), want.map_err(str::to_owned));
        };
        check("-1", Ok(-1));
        check("7", Ok(7));
        check("8", Err("the cursor 8 lies behind all that there is: read_log never gave it"));
        check("-2", Err("`-2` is no cursor of read_log"));
        check("", Err("`` is no cursor of read_log"));
        check("9223372036854775808", Err("`9223372036854775808` is no cursor of read_log"));
        assert_eq!(within(None, 7, "read_log").map_err(|error| error.message), Ok(()));
    }
}
