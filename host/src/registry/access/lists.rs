//! Lists of names against each other, and what one name of what is denied may stand for.

use super::super::yaml::{Entry, Kind, Node};

/// What both lists name; none before is no word, and `*` or `all` are all. Of a tool with and without parentheses, the
/// one with them stays.
pub(super) fn both(before: Option<Vec<String>>, names: Vec<String>) -> Vec<String> {
    let Some(before) = before else { return names };
    let all = |names: &[String]| names.iter().any(|name| name == "*" || name.eq_ignore_ascii_case("all"));
    if all(&before) || all(&names) {
        return if all(&before) { names } else { before };
    }
    let same = |a: &str, b: &str| a.eq_ignore_ascii_case(b);
    let narrower = |name: String| {
        let whole = names.iter().find(|other| same(other, &name) || same(other, bare(&name)));
        let part = names.iter().find(|other| same(bare(other), &name));
        whole.map(|_| name.clone()).or_else(|| part.cloned())
    };
    before.into_iter().filter_map(narrower).collect()
}

/// As [`both`], where there may be no word at all.
pub(super) fn either(before: Option<Vec<String>>, after: Option<Vec<String>>) -> Option<Vec<String>> {
    match after {
        Some(after) => Some(both(before, after)),
        None => before,
    }
}

/// The tools that `name`, a name of something denied, may have been meant as: what stands between anything that separates.
///
/// Parentheses keep together what they hold, unless they are never closed.
pub(crate) fn several(name: &str) -> impl Iterator<Item = &str> {
    let count = |sign: char| name.matches(sign).count();
    let closed = count('(') == count(')');
    let mut depth = 0_u32;
    let parts = name.split(move |c: char| {
        match c {
            '(' if closed => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (c.is_whitespace() || ",;|&+，；、".contains(c))
    });
    parts.map(|part| part.trim_start_matches(['!', '-']).trim_end_matches('.')).filter(|part| !part.is_empty())
}

/// Whether `true` or the like stands where names should: as much as all of them.
pub(super) fn says_yes(entry: &Entry) -> bool {
    let yes = |node: &Node| node.truth() == Some(true);
    match &entry.value.kind {
        Kind::Scalar { .. } => yes(&entry.value),
        Kind::Seq(nodes) => nodes.iter().any(yes),
        Kind::Map(_) => false,
    }
}

/// A tool's name without what restricts it.
pub(super) fn bare(name: &str) -> &str {
    name.split('(').next().unwrap_or(name).trim()
}
