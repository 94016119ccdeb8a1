//! Patterns in which `*` is any text against texts that are known but for some places.

/// What stands in a text for something that is known only when it runs.
pub(super) const HOLE: char = '\0';
/// A blank within a word, where words are joined with blanks.
pub(super) const INNER_BLANK: char = '\u{1}';

/// Whether `pattern` is all of `text` whatever the holes of it become: only `*` is as much.
///
/// `?` is one character that is known.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    meets(pattern, text, |pattern, text| pattern == text || (pattern == '?' && text != HOLE), false)
}

/// Whether `pattern` may be all of `text` for something that its holes may become, in whatever case.
pub(super) fn may_match(pattern: &str, text: &str) -> bool {
    let same = |pattern: char, text: char| pattern == '?' || pattern.to_lowercase().eq(text.to_lowercase());
    meets(pattern, text, same, true)
}

/// Whether there is a text that both are: `*` of the pattern is any text, and so is a hole where `open` says so.
fn meets(pattern: &str, text: &str, same: impl Fn(char, char) -> bool, open: bool) -> bool {
    let text: Vec<char> = text.chars().collect();
    // `reached[n]`: what of the pattern was looked at and the first `n` of the text can be the same.
    let mut reached = vec![false; text.len() + 1];
    reached[0] = true;
    let is_hole = |at: usize| open && text[at] == HOLE;
    // A hole may be nothing.
    let skip_holes = |reached: &mut Vec<bool>| {
        for at in 0..text.len() {
            if reached[at] && is_hole(at) {
                reached[at + 1] = true;
            }
        }
    };
    skip_holes(&mut reached);
    for sign in pattern.chars() {
        let mut next = vec![false; text.len() + 1];
        if sign == '*' {
            let mut any = false;
            for (at, reached) in reached.iter().enumerate() {
                any |= reached;
                next[at] = any;
            }
        } else {
            for at in 0..text.len() {
                if !reached[at] {
                    continue;
                }
                if is_hole(at) {
                    // The sign is a part of what the hole becomes.
                    next[at] = true;
                } else if same(sign, text[at]) {
                    next[at + 1] = true;
                }
            }
        }
        skip_holes(&mut next);
        reached = next;
    }
    reached[text.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_and_texts() {
        // Whether it is, and whether it may be.
        let check = |pattern: &str, text: &str, want: (bool, bool)| {
            assert_eq!((matches(pattern, text), may_match(pattern, text)), want, "{pattern} {text:?}");
        };
        for (pattern, text) in
            [("", ""), ("*", ""), ("*", "a b"), ("a*", "a"), ("a*c", "abbc"), ("a?c", "abc"), ("*.rs", "x.rs")]
        {
            check(pattern, text, (true, true));
        }
        for (pattern, text) in [("a", ""), ("a", "b"), ("a*c", "ab"), ("?", ""), ("*.rs", "x.rsx"), ("a", "a b")] {
            check(pattern, text, (false, false));
        }
        check("rm *", "rm \0", (true, true));
        check("rm -rf*", "rm \0", (false, true));
        check("rm", "\0", (false, true));
        check("rm", "r\0", (false, true));
        check("rm", "r\0x", (false, false));
        check("rm", "rm\0", (false, true));
        check("*x*", "\0", (false, true));
        check("RM *", "rm x", (false, true));
        check("?", "\0", (false, true));
    }
}
