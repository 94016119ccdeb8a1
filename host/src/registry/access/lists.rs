//! Lists of names against each other, and what one name of what is denied may stand for.

use super::super::fields::{self, Names};
use super::super::yaml::{Entry, Kind, Node};

/// Words with which authors take something back in a list of names, in small letters.
const NEGATIONS: &[&str] = &["not", "except", "excluding", "but", "without", "no", "minus"];

/// What `entry` names. `!x` and `-x` refuse `x`; of words like `all but x` nothing is taken, for nobody knows where they
/// end.
pub(in super::super) fn names(entry: &Entry) -> Names {
    let mut found = fields::names(&entry.value);
    let first = |name: &str| name.split_whitespace().next().map(str::to_lowercase);
    let negation = |name: &String| first(name).is_some_and(|word| NEGATIONS.contains(&word.as_str()));
    let map = matches!(entry.value.kind, Kind::Map(_));
    if !map && found.taken.len() > 1 && found.taken.iter().any(negation) {
        found = Names { unreadable: true, ..Names::default() };
    }
    let (but, taken): (Vec<_>, Vec<_>) = found.taken.into_iter().partition(|name| negated(name).is_some());
    found.refused.extend(but.iter().filter_map(|name| negated(name)).map(str::to_owned));
    Names { taken, ..found }
}

/// What `name` refuses, where it is `!x` or `-x`.
pub(super) fn negated(name: &str) -> Option<&str> {
    name.strip_prefix(['!', '-']).map(str::trim)
}

/// Whether `name` is a word for all.
pub(crate) fn is_all(name: &str) -> bool {
    name == "*" || name.eq_ignore_ascii_case("all")
}

/// What both lists name; none before is no word, and `*` or `all` are all. Of a tool with and without parentheses, the
/// one with them stays.
pub(super) fn both(before: Option<Vec<String>>, names: Vec<String>) -> Vec<String> {
    let Some(before) = before else { return names };
    let all = |names: &[String]| names.iter().any(|name| is_all(name));
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
        depth == 0 && (c.is_whitespace() || ",;|&+=<>→，；、·•".contains(c))
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
pub(crate) fn bare(name: &str) -> &str {
    name.split('(').next().unwrap_or(name).trim()
}
