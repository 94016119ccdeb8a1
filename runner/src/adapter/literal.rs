//! A prompt that is nothing but text: agents take parts of what a user types for commands of theirs, or for names of files
//! that they show to their model unasked. What an assistant is told comes from others, so nothing of it may do that.

/// Where an agent takes `@` with a name behind it for a file, whatever the permissions say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mentions {
    /// Nowhere.
    Never,
    /// Behind a blank, or at the beginning of the text.
    BehindBlanks,
    /// Everywhere but behind a backslash.
    Anywhere,
}

/// What stands before a text that an agent would take for one of its commands.
const NO_COMMAND: &str = "Task: ";
/// What counts as a blank beside those of Unicode.
const BLANKS: [char; 5] = ['\u{feff}', '。', '、', '？', '！'];

/// A text in which an agent finds no command of its own, and no file: a backslash stands before such an `@`.
pub(crate) fn literal(text: &str, mentions: Mentions) -> String {
    let mut literal = String::with_capacity(text.len());
    if text.trim_start().starts_with('/') {
        literal.push_str(NO_COMMAND);
    }
    let mut before = None;
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        let names = char == '@' && chars.peek().is_some_and(|next| !next.is_whitespace());
        let is_blank = |before: Option<char>| before.is_none_or(|one| one.is_whitespace() || BLANKS.contains(&one));
        let taken = match mentions {
            Mentions::Never => false,
            Mentions::BehindBlanks => names && is_blank(before),
            Mentions::Anywhere => names && before != Some('\\'),
        };
        if taken {
            literal.push('\\');
        }
        literal.push(char);
        before = Some(char);
    }
    literal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_agent_would_take_for_more_than_text_is_text() {
        let check = |text: &str, behind_blanks: &str, anywhere: &str| {
            for (mentions, want) in
                [(Mentions::Never, text), (Mentions::BehindBlanks, behind_blanks), (Mentions::Anywhere, anywhere)]
            {
                assert_eq!(literal(text, mentions), want, "{text:?} {mentions:?}");
            }
        };
        check("", "", "");
        check("look at @a.txt", r"look at \@a.txt", r"look at \@a.txt");
        check(
            "@a, @\"b c\"\n\t@/etc/d。@e",
            "\\@a, \\@\"b c\"\n\t\\@/etc/d。\\@e",
            "\\@a, \\@\"b c\"\n\t\\@/etc/d。\\@e",
        );
        check("me@b.org (@a) `@types/node`", "me@b.org (@a) `@types/node`", r"me\@b.org (\@a) `\@types/node`");
        check(r"\@a x\@b", r"\@a x\@b", r"\@a x\@b");
        check("a @ b @", "a @ b @", "a @ b @");
        check("\u{feff}@a \u{2003}@b", "\u{feff}\\@a \u{2003}\\@b", "\u{feff}\\@a \u{2003}\\@b");
        for (text, want) in [("/help me", "Task: /help me"), ("\n /exit", "Task: \n /exit"), ("a /b", "a /b")] {
            assert_eq!(literal(text, Mentions::Never), want);
        }
    }
}
