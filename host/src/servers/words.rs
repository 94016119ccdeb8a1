//! Words of a command line, as a shell would part them; nothing in them is expanded.

/// The words of `line`; none where a quote has no end. A backslash is kept before anything but a quote, a blank or
/// another one: paths of Windows have them.
pub(super) fn split(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' | '\'' => {
                let quoted = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        end if end == c => break,
                        '\\' if c == '"' && matches!(rest.peek(), Some('"' | '\\')) => quoted.extend(rest.next()),
                        other => quoted.push(other),
                    }
                }
            }
            '\\' if rest.peek().is_some_and(|next| next.is_whitespace() || matches!(next, '"' | '\'' | '\\')) => {
                word.get_or_insert_default().extend(rest.next());
            }
            c if c.is_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, want: Option<&[&str]>) {
        let want = want.map(|words| words.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(split(line), want, "{line}");
    }

    #[test]
    fn a_line_is_parted_into_words() {
        check("", Some(&[]));
        check("  npx -y  server ", Some(&["npx", "-y", "server"]));
        check("a 'b c' \"d \\\" e\"f", Some(&["a", "b c", "d \" ef"]));
        check(r"C:\Tools\run.exe a\ b ''", Some(&[r"C:\Tools\run.exe", "a b", ""]));
        check("a 'b", None);
    }
}
