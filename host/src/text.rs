//! Text for answers: cut where a reader would cut it.

/// Characters of a tool's name that an error tells again: what all models take as one.
pub(crate) const TOOL_NAME_CHARS_MAX: usize = 64;
/// Characters of another name that a message tells again, as of a key or an argument, or a wish of a definition.
pub(crate) const NAME_SHOWN_CHARS_MAX: usize = 60;
/// Characters of a longer word that a message tells again: an entry of a list, an address, a type.
pub(crate) const WORD_SHOWN_CHARS_MAX: usize = 100;
/// Characters of a wrong value that a message tells again.
pub(crate) const VALUE_SHOWN_CHARS_MAX: usize = 80;

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
    let mut end = text.char_indices().nth(room).map_or(text.len(), |(at, _)| at);
    while joined(text, end) {
        end = text.floor_char_boundary(end - 1);
    }
    let head = &text[..end];
    let at_word = text[end..].starts_with(char::is_whitespace);
    let kept = match head.rfind(char::is_whitespace) {
        // A long word is cut inside where little would be left else.
        Some(space) if !at_word && 4 * head[..space].trim_end().len() > head.len() => &head[..space],
        _ => head,
    };
    format!("{}…", kept.trim_end_matches(|c: char| c.is_whitespace() || ",;:-–—".contains(c)))
}

/// Whether what stands before and behind `at` is one sign for a reader: a letter and its accent, the parts of an emoji,
/// the two halves of a flag.
fn joined(text: &str, at: usize) -> bool {
    let (before, behind) = text.split_at(at);
    let is_flag = |c: &char| ('\u{1f1e6}'..='\u{1f1ff}').contains(c);
    let flags = before.chars().rev().take_while(is_flag).count();
    match (before.chars().next_back(), behind.chars().next()) {
        (Some(last), Some(next)) => last == '\u{200d}' || is_added(next) || (is_flag(&next) && flags % 2 == 1),
        _ => false,
    }
}

/// A character that changes the one before it: accents, signs of Indic and Thai vowels, variants and colours of emoji.
fn is_added(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5bd}' | '\u{610}'..='\u{61a}'
        | '\u{64b}'..='\u{65f}' | '\u{900}'..='\u{903}' | '\u{93a}'..='\u{93c}' | '\u{93e}'..='\u{94f}'
        | '\u{e31}' | '\u{e34}'..='\u{e3a}' | '\u{e47}'..='\u{e4e}' | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}' | '\u{200c}' | '\u{200d}' | '\u{20d0}'..='\u{20ff}' | '\u{3099}' | '\u{309a}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}' | '\u{1f3fb}'..='\u{1f3ff}' | '\u{e0020}'..='\u{e007f}')
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

/// A time (Unix milliseconds) as a date and a time of day, in UTC: `2026-11-28 04:10:46Z`.
#[must_use]
pub fn utc(ms: i64) -> String {
    let s = ms.div_euclid(1_000);
    let (day, s) = (s.div_euclid(86_400), s.rem_euclid(86_400));
    // Days are counted from 1 March of year 0, in eras of 400 years, so that a leap day is the last one of a year.
    let day = day + 719_468;
    let (era, of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let date = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = 400 * era + year + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{date:02} {:02}:{:02}:{:02}Z", s / 3_600, s % 3_600 / 60, s % 60)
}

/// A time (Unix milliseconds) as ISO 8601 has it, in UTC: `2026-11-28T04:10:46.999Z`.
#[must_use]
pub fn iso_8601(ms: i64) -> String {
    let utc = utc(ms).replace(' ', "T");
    format!("{}.{:03}Z", utc.trim_end_matches('Z'), ms.rem_euclid(1_000))
}

#[cfg(test)]
mod tests {
    use super::{cut, duration, iso_8601, one_line, utc};

    #[test]
    fn times_are_dates() {
        // As `date -u -d @SECONDS` has them.
        let check = |ms: i64, want: &str| assert_eq!(utc(ms), want);
        check(0, "1970-01-01 00:00:00Z");
        check(951_782_400_000, "2000-02-29 00:00:00Z");
        check(1_795_839_046_999, "2026-11-28 04:10:46Z");
        assert_eq!(iso_8601(1_795_839_046_999), "2026-11-28T04:10:46.999Z");
        assert_eq!(iso_8601(-1), "1969-12-31T23:59:59.999Z");
        check(4_107_542_399_000, "2100-02-28 23:59:59Z");
        check(4_107_542_400_000, "2100-03-01 00:00:00Z");
        check(-1, "1969-12-31 23:59:59Z");
    }

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
        check("re\u{301}sume\u{301}s", 3, "r…");
        check("re\u{301}sume\u{301}s", 4, "re\u{301}…");
        check("👩\u{200d}💻👩\u{200d}💻", 4, "👩\u{200d}💻…");
        check("👩\u{200d}💻👩\u{200d}💻", 3, "…");
        check("👍🏽👍🏽", 3, "👍🏽…");
        check("🇨🇭🇫🇷🇮🇹", 4, "🇨🇭…");
        check("🇨🇭🇫🇷🇮🇹", 5, "🇨🇭🇫🇷…");
        check("か\u{3099}か\u{3099}", 2, "…");
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
