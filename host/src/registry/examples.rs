//! The `<example>` blocks of a description, and text that was escaped once too often.

/// Most examples that are kept.
const EXAMPLES_MAX: usize = 32;
/// Most characters of one example.
const EXAMPLE_CHARS_MAX: usize = 2_000;

const OPEN: &str = "<example>";
const CLOSE: &str = "</example>";

/// `text` with a literal `\n` for each line end made into one of lines; other text is left alone.
pub(super) fn unescape(text: &str) -> String {
    if !text.contains("\\n") || text.contains('\n') {
        return text.to_owned();
    }
    text.replace("\\r", "").replace("\\n", "\n").replace("\\t", "\t").replace("\\\"", "\"")
}

/// A description without its examples, and the examples: of each what a user says, else all of it.
pub(super) fn take_out(description: &str) -> (String, Vec<String>) {
    let mut kept = String::new();
    let mut examples = Vec::new();
    let mut rest = description;
    while let Some((before, after)) = rest.split_once(OPEN) {
        kept.push_str(before.trim_end());
        kept.push('\n');
        let end = [CLOSE, OPEN].iter().filter_map(|mark| after.find(mark)).min().unwrap_or(after.len());
        if examples.len() < EXAMPLES_MAX && !after[..end].trim().is_empty() {
            examples.push(crate::text::cut(&user_says(&after[..end]), EXAMPLE_CHARS_MAX));
        }
        rest = after[end..].strip_prefix(CLOSE).unwrap_or(&after[end..]);
    }
    kept.push_str(rest);
    // A lone `Examples:` before blocks that are gone is left: it is the author's text.
    (kept.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim().to_owned(), examples)
}

/// The line of an example that begins with `user:`, without quotes.
pub(super) fn user_says(example: &str) -> String {
    let said = example.lines().find_map(|line| {
        let line = line.trim().trim_start_matches(['-', '*', ' ']);
        let head = line.get(..5).filter(|head| head.eq_ignore_ascii_case("user:"))?;
        Some(line[head.len()..].trim().trim_start_matches('*').trim().trim_matches(['"', '\'', '“', '”']))
    });
    said.filter(|said| !said.is_empty()).unwrap_or(example.trim()).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_examples_out() {
        let check = |text: &str, description: &str, examples: &[&str]| {
            let (found, said) = take_out(&unescape(text));
            assert_eq!(
                (found.as_str(), said),
                (description, examples.iter().map(|e| (*e).to_owned()).collect()),
                "{text:?}"
            );
        };
        check("Checks invoices", "Checks invoices", &[]);
        check("a\nb", "a\nb", &[]);
        check(
            "Checks. Examples:\n<example>\nContext: x\nuser: \"Does 77 match?\"\nassistant: \"Yes\"\n</example>",
            "Checks. Examples:",
            &["Does 77 match?"],
        );
        check(r#"Checks.\n\n<example>\nuser: \"Check 77\"\n</example>"#, "Checks.", &["Check 77"]);
        check("A <example>one</example> B <example>two", "A\n B", &["one", "two"]);
        check("A <example>one <example>two</example>", "A", &["one", "two"]);
        check(r"One line with C:\new and a real", "One line with C:\new and a real", &[]);
        check("Two lines with \\n\nkept", "Two lines with \\n\nkept", &[]);
    }
}
