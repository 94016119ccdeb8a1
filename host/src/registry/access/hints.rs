//! What to write instead of what cannot be read, for each kind of key.

use super::super::yaml::{Entry, Kind};

pub(super) const CALLERS: &str = "write a list of names, such as `[a, b]`: `[]` is no one, `['*']` everyone";
pub(super) const SWITCH: &str = "write `true` or `false`";
pub(super) const MODE: &str =
    "write `plan` or `read-only` to mean this, or a mode that is known, such as `default` or `acceptEdits`";
pub(super) const PARENTHESES: &str =
    "name them, as in `Agent(reviewer)`, or leave the parentheses out to mean everyone";
pub(super) const OPEN: &str =
    "close it behind what it is for, and write what follows as names of their own, such as `[Bash(git:*), Read]`";
pub(super) const HOLLOW: &str =
    "leave the parentheses out to give all calls of it, or name those that are meant, as in `Bash(git:*)`";
pub(super) const PERMISSIONS: &str = "write `allow`, `deny`, or a map of rules, such as `{bash: deny}`";
pub(super) const RULE: &str = "write `allow` or `deny` behind the name of the tool";
pub(super) const RULES: &str = "write a list of rules, such as `['bash(git *): allow', 'bash: ask']`, at most 256";
pub(super) const RULE_OF_ONE: &str = "write `allow` to give it in any case, `ask` to be asked, or `deny` to mean this";
pub(super) const UNCLEAR: &str =
    "write `tools` for those that it may have, or `disallowedTools` for those that it must not";

const LIST: &str = "write a list of names, such as `[a, b]`";
const MAP: &str = "write `true` or `false` behind each name, or a list of names, such as `[a, b]`";

/// For names, in the shape in which they stand there.
pub(super) fn names(entry: &Entry) -> &'static str {
    match entry.value.kind {
        Kind::Map(_) => MAP,
        Kind::Scalar { .. } | Kind::Seq(_) => LIST,
    }
}

/// For names of tools that are denied; `true` among them may mean all.
pub(super) fn denied(entry: &Entry) -> &'static str {
    match super::lists::says_yes(entry) {
        true => "name the tools, such as `[a, b]`, or write `['*']` to mean all",
        false => names(entry),
    }
}
