//! What is kept of a search.

use std::sync::atomic::{AtomicBool, Ordering};

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkFinish, SinkMatch};

use super::Match;

/// Bytes of one line that are shown, around the match.
const LINE_BYTES_MAX: usize = 500;
/// Bytes of them that stand before the match.
const LEAD_BYTES: usize = 100;
/// Characters of one match beside its path and its lines.
const FRAME_CHARS: usize = 48;

/// All that is kept, and how much may be.
#[derive(Default)]
pub(super) struct Kept {
    /// Matches that are left out; of files, with `files_only`.
    pub(super) offset: u64,
    pub(super) max: u64,
    pub(super) chars_max: usize,
    pub(super) context: usize,
    pub(super) files_only: bool,
    pub(super) matches: Vec<Match>,
    pub(super) files: Vec<String>,
    /// There is more than may be kept.
    pub(super) more: bool,
    /// Matches, or files, so far, with those that are left out.
    pub(super) seen: u64,
    /// What the answer has so far.
    pub(super) chars: usize,
}

impl Kept {
    /// How many matches, or files, are kept.
    pub(super) fn given(&self) -> u64 {
        (if self.files_only { self.files.len() } else { self.matches.len() }) as u64
    }

    /// Takes over what one text file has.
    pub(super) fn take(&mut self, from: Done) {
        self.seen += from.seen;
        self.chars = from.chars;
        self.more |= from.more;
        self.matches.extend(from.matches);
        self.files.extend(from.file);
    }
}

/// What one file has.
pub(super) struct Done {
    matches: Vec<Match>,
    file: Option<String>,
    seen: u64,
    chars: usize,
    more: bool,
}

/// The search of one file. All of it is searched, also when nothing more is kept: it may turn out to be binary.
pub(super) struct InFile<'a> {
    kept: &'a Kept,
    matcher: &'a RegexMatcher,
    path: &'a str,
    stopped: &'a AtomicBool,
    done: Done,
    before: Vec<String>,
    /// The last match is kept, and what follows it belongs to it.
    follows: bool,
    binary: bool,
}

impl<'a> InFile<'a> {
    pub(super) fn new(kept: &'a Kept, matcher: &'a RegexMatcher, path: &'a str, stopped: &'a AtomicBool) -> Self {
        let done = Done { matches: Vec::new(), file: None, seen: 0, chars: kept.chars, more: false };
        Self { kept, matcher, path, stopped, done, before: Vec::new(), follows: false, binary: false }
    }

    pub(super) fn binary(&self) -> bool {
        self.binary
    }

    pub(super) fn done(self) -> Done {
        self.done
    }

    /// Counts one more match, or file, and tells whether it is kept. `chars` is what it adds to the answer.
    fn keeps(&mut self, chars: usize) -> bool {
        let before = self.kept.seen + self.done.seen;
        self.done.seen += 1;
        if before < self.kept.offset {
            return false;
        }
        let given = self.kept.given() + self.done.matches.len() as u64;
        // Lines that may follow it have their room too; and one match is always given.
        let room = self.done.chars + chars + self.kept.context * LINE_BYTES_MAX <= self.kept.chars_max;
        if self.done.more || given >= self.kept.max || !(room || given == 0) {
            self.done.more = true;
            return false;
        }
        self.done.chars += chars;
        true
    }

    fn shown(&self, line: &[u8]) -> String {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() <= LINE_BYTES_MAX {
            return String::from_utf8_lossy(line).into_owned();
        }
        let found = self.matcher.find(line).ok().flatten().map_or(0, |found| found.start());
        let start = found.saturating_sub(LEAD_BYTES).min(line.len() - LINE_BYTES_MAX);
        let end = start + LINE_BYTES_MAX;
        let kept = String::from_utf8_lossy(&line[start..end]);
        // A character that was cut through.
        let kept = kept.trim_matches('\u{fffd}');
        let left_out = |bytes: usize| if bytes == 0 { String::new() } else { format!("[{bytes} bytes left out]") };
        format!("{}{kept}{}", left_out(start), left_out(line.len() - end))
    }
}

impl Sink for InFile<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        let before = std::mem::take(&mut self.before);
        self.follows = false;
        if self.stopped.load(Ordering::Relaxed) {
            return Ok(false);
        }
        if self.kept.files_only {
            if self.done.seen == 0 && self.keeps(self.path.chars().count() + 4) {
                self.done.file = Some(self.path.to_owned());
            }
            return Ok(true);
        }
        let text = self.shown(found.bytes());
        let chars = |lines: &[String]| lines.iter().map(|line| line.chars().count()).sum::<usize>();
        let room = FRAME_CHARS + self.path.chars().count() + text.chars().count() + chars(&before);
        if self.keeps(room) {
            self.follows = true;
            let line = found.line_number().unwrap_or(0);
            self.done.matches.push(Match { path: self.path.to_owned(), line, text, before, after: Vec::new() });
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, Self::Error> {
        if self.kept.files_only {
            return Ok(true);
        }
        let line = self.shown(context.bytes());
        match (context.kind(), self.done.matches.last_mut()) {
            (SinkContextKind::Before, _) => self.before.push(line),
            (SinkContextKind::After, Some(last)) if self.follows => {
                self.done.chars += line.chars().count();
                last.after.push(line);
            }
            (SinkContextKind::After | SinkContextKind::Other, _) => {}
        }
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> Result<(), Self::Error> {
        self.binary = finish.binary_byte_offset().is_some();
        Ok(())
    }
}
