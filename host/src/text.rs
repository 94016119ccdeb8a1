//! Text for answers: cut where a reader would cut it.

/// `text` with at most `max_chars` characters: cut behind a word, with an ellipsis that counts as one of them.
///
/// White space at both ends goes first. A single word longer than the limit is cut inside.
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
        Some(space) if !at_word && !head[..space].trim_end().is_empty() => &head[..space],
        _ => head,
    };
    format!("{}…", kept.trim_end_matches(|c: char| c.is_whitespace() || ",;:-–—".contains(c)))
}

#[cfg(test)]
mod tests {
    use super::cut;

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
        check("x", 0, "");
        check("xy", 1, "…");
        check("", 5, "");
    }
}
