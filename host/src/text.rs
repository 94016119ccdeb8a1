//! Text for answers: cut where a reader would cut it.

/// `text` with at most `max_chars` characters: cut behind a word, with an ellipsis that counts as one of them.
///
/// White space at both ends goes first. A word is cut inside where less than a quarter would be left.
#[must_use]
pub fn cut(text: &str, max_chars: usize) -> String {
    let text = text.trim();
    if text.chars().nth(max_chars).is_none() {
        return text.to_owned();
    }
    let Some(room) = max_chars.checked_sub(1) else { return String::new() };
    let end = text.char_indices().nth(room).map_or(text.len(), |(at, _)| at);
    let head = &text[..end];
    let at_word = text[end..].starts_with(char::is_whitespace);
    let kept = match head.rfind(char::is_whitespace) {
        // A long word is cut inside where little would be left else.
        Some(space) if !at_word && 4 * head[..space].trim_end().len() > head.len() => &head[..space],
        _ => head,
    };
    format!("{}…", kept.trim_end_matches(|c: char| c.is_whitespace() || ",;:-–—".contains(c)))
}

/// `text` on one line, without what a terminal would obey instead of show: control characters and those that turn the
/// direction of writing.
#[must_use]
pub fn one_line(text: &str) -> String {
    let shown = |c: char| match c {
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        c if c.is_whitespace() => ' ',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    text.chars().map(shown).collect()
}

/// A length of time as people say it, in at most two units: `3 d 4 h`, `12 min 5 s`, `9 s`.
#[must_use]
pub fn duration(ms: i64) -> String {
    let s = ms.max(0) / 1_000;
    let two = |big: i64, big_unit: &str, small: i64, small_unit: &str| match small {
        0 => format!("{big} {big_unit}"),
        _ => format!("{big} {big_unit} {small} {small_unit}"),
    };
    match s {
        0..60 => format!("{s} s"),
        60..3_600 => two(s / 60, "min", s % 60, "s"),
        3_600..86_400 => two(s / 3_600, "h", s % 3_600 / 60, "min"),
        _ => two(s / 86_400, "d", s % 86_400 / 3_600, "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::{cut, duration, one_line};

    #[test]
    fn a_line_holds_nothing_that_a_terminal_obeys() {
        let check = |text: &str, expected: &str| assert_eq!(one_line(text), expected);
        check("a\n\tb", "a  b");
        check("\u{1b}[31mred\u{7}", "\u{fffd}[31mred\u{fffd}");
        check("\u{202e}x é 发", "\u{fffd}x é 发");
    }

    #[test]
    fn cuts_at_words() {
        let check = |text: &str, max: usize, expected: &str| {
            let found = cut(text, max);
            assert_eq!(found, expected, "{text:?} at {max}");
            assert!(found.chars().count() <= max);
        };
        check("Checks invoices", 15, "Checks invoices");
        check("  Checks invoices\n", 15, "Checks invoices");
        check("Checks invoices", 14, "Checks…");
        check("Checks invoices", 7, "Checks…");
        check("Checks invoices", 6, "Check…");
        check("Checks, invoices", 9, "Checks…");
        check("发票核对与采购订单", 4, "发票核…");
        check("résumé writer", 9, "résumé…");
        check("a xxxxxxxxxxxxxxxxxxxxxxxxx", 20, "a xxxxxxxxxxxxxxxxx…");
        check("x", 0, "");
        check("xy", 1, "…");
        check("", 5, "");
    }

    #[test]
    fn times_are_told_in_two_units() {
        let check = |ms: i64, want: &str| assert_eq!(duration(ms), want, "{ms}");
        check(-5, "0 s");
        check(59_999, "59 s");
        check(60_000, "1 min");
        check(725_000, "12 min 5 s");
        check(3_600_000 + 59_000, "1 h");
        check(86_400_000 * 3 + 3_600_000 * 4, "3 d 4 h");
    }
}
