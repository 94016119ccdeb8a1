//! What was said on a link, line by line.

use std::collections::VecDeque;
use std::time::Instant;

/// Lines that are kept: the newest.
const LINES_MAX: usize = 200;
/// Characters of a line that are kept.
const CHARS_MAX: usize = 400;

/// Text as it can be shown: what a terminal would obey, or would not show, as an escape.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                shown.extend(c.escape_unicode());
            }
            c if c.is_control() => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown
}

/// The newest lines, each with the milliseconds since the runner was started.
pub(super) struct Transcript {
    begun: Instant,
    lines: VecDeque<String>,
    left_out: usize,
}

impl Transcript {
    pub(super) fn new() -> Self {
        Self { begun: Instant::now(), lines: VecDeque::new(), left_out: 0 }
    }

    /// To the runner.
    pub(super) fn sent(&mut self, line: &[u8]) {
        self.push('>', line);
    }

    /// From the runner.
    pub(super) fn heard(&mut self, line: &[u8]) {
        self.push('<', line);
    }

    /// Something else that happened.
    pub(super) fn note(&mut self, words: &str) {
        self.push('#', words.as_bytes());
    }

    /// What was written at once may be several lines.
    fn push(&mut self, mark: char, bytes: &[u8]) {
        let lines = bytes.strip_suffix(b"\n").unwrap_or(bytes).split(|byte| *byte == b'\n');
        lines.for_each(|line| self.push_line(mark, line));
    }

    fn push_line(&mut self, mark: char, line: &[u8]) {
        let ms = self.begun.elapsed().as_millis();
        // Four bytes a character at most: what lies beyond is not even looked at.
        let near = &line[..line.len().min(4 * CHARS_MAX)];
        let text: String = String::from_utf8_lossy(near).trim_end().chars().take(CHARS_MAX).collect();
        let cut = if text.len() < line.len() && line.len() > CHARS_MAX {
            format!("… ({} bytes)", line.len())
        } else {
            String::new()
        };
        self.lines.push_back(format!("{ms:>6} ms {mark} {text}{cut}"));
        if self.lines.len() > LINES_MAX {
            self.lines.pop_front();
            self.left_out += 1;
        }
    }

    /// The lines, oldest first.
    pub(super) fn lines(&self) -> Vec<String> {
        let left_out = (self.left_out > 0).then(|| format!("(the first {} lines are left out)", self.left_out));
        left_out.into_iter().chain(self.lines.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_and_long_talks_are_cut() {
        let mut talk = Transcript::new();
        talk.heard("ä".repeat(CHARS_MAX + 1).as_bytes());
        assert!(talk.lines()[0].ends_with(&format!("ä… ({} bytes)", 2 * (CHARS_MAX + 1))), "{:?}", talk.lines());
        for number in 0..LINES_MAX {
            talk.sent(format!("{number}\n").as_bytes());
        }
        let lines = talk.lines();
        assert_eq!((lines.len(), lines[0].as_str()), (LINES_MAX + 1, "(the first 1 lines are left out)"));
        assert!(lines[1].ends_with("> 0") && lines[LINES_MAX].ends_with("> 199"), "{lines:?}");
        talk.sent(b"one\ntwo\n");
        let lines = talk.lines();
        let told: Vec<_> = lines[LINES_MAX - 1..].iter().map(|line| line.split(" ms ").last().unwrap()).collect();
        assert_eq!(told, ["> one", "> two"]);
    }

    #[test]
    fn nothing_that_a_terminal_obeys_is_shown_as_it_is() {
        let check = |text: &str, expected: &str| assert_eq!(visible(text), expected, "{text:?}");
        check("plain ä 漢 😀 \\ \"", "plain ä 漢 😀 \\ \"");
        check("\u{1b}[2J\u{7}", "\\u{1b}[2J\\u{7}");
        check("a\tb\r\nc\0", "a\\tb\\r\\nc\\u{0}");
        check("\u{9b}x\u{202e}y", "\\u{9b}x\\u{202e}y");
    }
}
