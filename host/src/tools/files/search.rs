//! `search_files`: the lines of files that fit a pattern.

use std::fs::File;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};

use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, SearcherBuilder};
use regex_syntax::ast::parse::ParserBuilder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::sink::{InFile, Kept};
use super::{ENTRIES_MAX, FILE_BYTES_MAX, Root, Stop, below, blocking, only, relative, root, walk};
use crate::text::cut;
use crate::tools::{Call, Output, ToolError};

mod sink;
#[cfg(test)]
mod tests;

/// Lines that are given unless more are asked for.
const MATCHES_DEFAULT: u64 = 100;
/// Lines that one call gives.
const MATCHES_MAX: u64 = 500;
/// Lines around a match, on each side.
const CONTEXT_LINES_MAX: u64 = 10;
/// Bytes of a pattern.
const PATTERN_BYTES_MAX: usize = 4_096;
/// Bytes of a pattern that is ready to search, and of what it remembers while it does.
const REGEX_BYTES_MAX: usize = 1024 * 1024;
/// Groups within groups of a pattern.
const REGEX_DEPTH_MAX: u32 = 100;
/// Bytes of files that one call searches.
const TOTAL_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;
/// Files that were left out and are named.
const SKIPPED_MAX: usize = 20;
/// Characters of a complaint about a pattern.
const COMPLAINT_CHARS_MAX: usize = 300;

/// Arguments of `search_files`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(super) struct SearchFiles {
    /// What to search for: a regular expression, as `fn \w+_at\(`.
    pattern: String,
    /// The pattern is text as it stands, no regular expression. Default false.
    literal: Option<bool>,
    /// The file or folder to search, relative to your working folder. Default: the whole of it.
    path: Option<String>,
    /// Only files whose paths fit, as `src/**/*.rs`. Default: all.
    glob: Option<String>,
    /// Capital and small letters are the same. Default: where the pattern has no capital letter.
    case_insensitive: Option<bool>,
    /// This many lines before and after each match too; at most 10. Default 0.
    context: Option<u64>,
    /// Only which files have a match. Default false.
    files_only: Option<bool>,
    /// At most this many matches, up to 500. Default 100.
    max: Option<u64>,
    /// Leave out this many of the first matches: `next_offset` of an earlier answer. Default 0.
    offset: Option<u64>,
}

/// Result of `search_files`.
#[derive(Debug, Default, PartialEq, Serialize, JsonSchema)]
pub(super) struct Found {
    /// By path, then line; none where `files_only` is asked for.
    matches: Vec<Match>,
    /// The files that have a match, where `files_only` is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<Vec<String>>,
    /// There are more than these.
    more: bool,
    /// Where to go on; absent at the end, and where too much would have to be searched: narrow it then.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
    /// Files that were searched.
    files_searched: u64,
    /// Files that could not be searched.
    files_skipped: u64,
    /// The first of those.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skipped: Vec<Skipped>,
}

/// One line that fits.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct Match {
    /// Relative to your working folder.
    path: String,
    /// Its number; 1 is the first of the file.
    line: u64,
    /// The line; of a long one what is around the match.
    text: String,
    /// Lines before it that no earlier match has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    before: Vec<String>,
    /// Lines behind it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    after: Vec<String>,
}

/// A file that could not be searched.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct Skipped {
    /// Relative to your working folder.
    path: String,
    /// Why: `binary`, `larger than 16 MiB`, or what reading it met.
    why: String,
}

pub(super) async fn search_files(call: Call, params: SearchFiles) -> Result<Output, ToolError> {
    let root = root(&call).await?;
    let chars_max = call.host.limits().answer_chars as usize;
    let stop = Stop::default();
    let stopped = stop.flag();
    let found = blocking(move || search(&root, &params, chars_max, &stopped));
    Output::new(&found.await?)
}

/// Searches until all is searched, the answer is full, or `stopped` is set.
fn search(root: &Root, params: &SearchFiles, chars_max: usize, stopped: &AtomicBool) -> Result<Found, ToolError> {
    let matcher = matcher(params)?;
    let from = below(root, params.path.as_deref().unwrap_or("."))?;
    let glob = params.glob.as_deref().map(|glob| only(root, glob)).transpose()?;
    let context = usize::try_from(params.context.unwrap_or(0).min(CONTEXT_LINES_MAX)).unwrap_or(0);
    let mut searcher = SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .line_terminator(LineTerminator::crlf())
        .before_context(context)
        .after_context(context)
        .build();
    let files_only = params.files_only.unwrap_or(false);
    let mut kept = Kept {
        offset: params.offset.unwrap_or(0),
        max: params.max.unwrap_or(MATCHES_DEFAULT).clamp(1, MATCHES_MAX),
        chars_max,
        context,
        files_only,
        ..Kept::default()
    };
    let mut found = Found::default();
    let (mut bytes, mut cut_short) = (0, false);
    for (seen, entry) in walk(root, &from).enumerate() {
        if stopped.load(Ordering::Relaxed) {
            return Err(ToolError::cancelled());
        }
        if kept.more {
            break;
        }
        if seen >= ENTRIES_MAX || bytes >= TOTAL_BYTES_MAX {
            cut_short = true;
            break;
        }
        // A folder that cannot be read hides what is in it; the others are searched.
        let Ok(entry) = entry else { continue };
        let path = entry.path();
        let fits = || glob.as_ref().is_none_or(|only| only.matched(path, false).is_whitelist());
        if !entry.file_type().is_some_and(|kind| kind.is_file()) || !fits() {
            continue;
        }
        let Some(shown) = relative(root, path) else { continue };
        let length = entry.metadata().map_or(0, |meta| meta.len());
        bytes += length.min(FILE_BYTES_MAX);
        let mut in_file = InFile::new(&kept, &matcher, &shown, stopped);
        let why = if length > FILE_BYTES_MAX {
            Some("larger than 16 MiB".to_owned())
        } else {
            let searched = File::open(path).and_then(|file| {
                let file = Held { file: file.take(FILE_BYTES_MAX), stopped };
                searcher.search_reader(&matcher, file, &mut in_file)
            });
            match searched {
                Err(error) => Some(cut(&error.to_string(), COMPLAINT_CHARS_MAX)),
                Ok(()) => in_file.binary().then(|| "binary".to_owned()),
            }
        };
        match why {
            None => {
                found.files_searched += 1;
                let in_file = in_file.done();
                kept.take(in_file);
            }
            Some(why) => {
                found.files_skipped += 1;
                if found.skipped.len() < SKIPPED_MAX {
                    found.skipped.push(Skipped { path: shown, why });
                }
            }
        }
    }
    if stopped.load(Ordering::Relaxed) {
        return Err(ToolError::cancelled());
    }
    found.more = kept.more || cut_short;
    found.next_offset = kept.more.then_some(kept.offset + kept.given());
    found.files = files_only.then_some(kept.files);
    found.matches = kept.matches;
    Ok(found)
}

fn matcher(params: &SearchFiles) -> Result<RegexMatcher, ToolError> {
    let pattern = params.pattern.as_str();
    let hint = "Correct the pattern, or set `literal` to search for the text as it stands.";
    if pattern.is_empty() || pattern.len() > PATTERN_BYTES_MAX {
        let message = format!("the pattern has {} bytes, and may have 1 to {PATTERN_BYTES_MAX}", pattern.len());
        return Err(ToolError::bad_argument(message, "Search for a word or a short expression."));
    }
    let literal = params.literal.unwrap_or(false);
    let bad = |why: &str| {
        let message = format!("the pattern is no regular expression: {}", cut(why, COMPLAINT_CHARS_MAX));
        ToolError::bad_argument(message, hint)
    };
    if !literal {
        let parsed = ParserBuilder::new().nest_limit(REGEX_DEPTH_MAX).build().parse(pattern);
        parsed.map_err(|error| {
            let place = error.span().start;
            let line = if place.line > 1 { format!(" of line {}", place.line) } else { String::new() };
            bad(&format!("{}, at character {}{line}", error.kind(), place.column))
        })?;
    }
    let mut builder = RegexMatcherBuilder::new();
    builder
        .fixed_strings(literal)
        .case_insensitive(params.case_insensitive.unwrap_or(false))
        .case_smart(params.case_insensitive.is_none())
        .multi_line(true)
        .crlf(true)
        .size_limit(REGEX_BYTES_MAX)
        .dfa_size_limit(REGEX_BYTES_MAX)
        .nest_limit(2 * REGEX_DEPTH_MAX);
    builder.build(pattern).map_err(|error| bad(&error.to_string()))
}

/// A file that is not read on once nobody waits for the result.
struct Held<'a, R> {
    file: R,
    stopped: &'a AtomicBool,
}

impl<R: Read> Read for Held<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(std::io::Error::other("the search was cancelled"));
        }
        self.file.read(buffer)
    }
}
