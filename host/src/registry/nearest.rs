//! Which ids look like what was asked for.

use std::sync::Arc;

use super::definition::Definition;
use super::id::{AssistantId, slug};

/// At most `n` ids that look like `text`: those that contain it, or that a few edits make of it; best first.
pub(super) fn nearest(assistants: &[Arc<Definition>], text: &str, n: usize) -> Vec<AssistantId> {
    let Some(wanted) = slug(text) else { return Vec::new() };
    let wanted: Vec<char> = wanted.chars().collect();
    let most = (wanted.len() / 3).max(1);
    let mut ranked: Vec<_> = assistants
        .iter()
        .filter_map(|found| {
            let id: Vec<char> = found.id.as_str().chars().collect();
            let contains =
                |part: &[char], whole: &[char]| part.len() >= 3 && whole.windows(part.len()).any(|w| w == part);
            let edits = edits(&wanted, &id);
            let alike = edits <= most || contains(&wanted, &id) || contains(&id, &wanted);
            alike.then(|| (edits > most, !id.starts_with(&wanted), edits, &found.id))
        })
        .collect();
    ranked.sort();
    ranked.into_iter().take(n).map(|(.., id)| id.clone()).collect()
}

/// The one of `names` that a few edits make of `text`, whatever its case and its `-` and `_`.
pub(crate) fn nearest_name<'a>(text: &str, names: &[&'a str]) -> Option<&'a str> {
    let plain = |text: &str| text.chars().filter(|c| !"-_ ".contains(*c)).flat_map(char::to_lowercase).collect();
    let wanted: Vec<char> = plain(text);
    let near = names.iter().map(|name| (edits(&wanted, &plain(name)), *name));
    near.filter(|(edits, _)| 3 * edits <= wanted.len()).min().map(|(_, name)| name)
}

/// How many characters must be put in, left out, replaced or swapped with their neighbour to make `b` of `a`.
pub(super) fn edits(a: &[char], b: &[char]) -> usize {
    let mut before = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut least = (last[j] + usize::from(x != y)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                let swapped: usize = before.get(j - 1).copied().unwrap_or(usize::MAX - 1);
                least = least.min(swapped + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::edits;

    #[test]
    fn counts_edits() {
        let check = |a: &str, b: &str, expected: usize| {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            assert_eq!(edits(&chars(a), &chars(b)), expected, "{a} {b}");
            assert_eq!(edits(&chars(b), &chars(a)), expected, "{b} {a}");
        };
        check("", "", 0);
        check("", "abc", 3);
        check("reviewer", "reviwer", 1);
        check("reviewer", "reveiwer", 1);
        check("reviewer", "reviewed", 1);
        check("abc", "xyz", 3);
    }
}
