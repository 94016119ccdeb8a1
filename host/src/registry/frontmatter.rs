//! From a file's bytes to its frontmatter and its body.

use std::path::Path;

use super::diagnostic::{Code, Diagnostic};
use super::dialect::Dialect;
use super::known;

/// A file, taken apart.
#[derive(Debug, PartialEq)]
pub(super) struct Parts {
    /// The text between the two lines of dashes.
    pub(super) frontmatter: String,
    /// The line of the file on which it begins, from 1.
    pub(super) line: u32,
    /// What comes after, without blank lines around it.
    pub(super) body: String,
    /// What may have been meant as frontmatter and is none, each with the line on which it begins: before it, behind an end
    /// that is no `---`, between two such lines with which the body begins, or where the body begins if only the end is there.
    pub(super) beside: Vec<(String, u32)>,
}

/// Takes a file apart; repairs are told in `warnings`.
///
/// # Errors
/// The one reason why it is no assistant.
pub(super) fn split(bytes: &[u8], file: &str, warnings: &mut Vec<Diagnostic>) -> Result<Parts, Diagnostic> {
    let text = decode(bytes, file, warnings)?;
    let mut lines: Vec<&str> = text.split('\n').collect();
    let blank = lines.iter().take_while(|line| line.trim().is_empty()).count();
    if blank == lines.len() {
        return Err(Diagnostic::new(Code::EmptyFile, file, "the file is empty"));
    }
    let (mut skipped, mut beside) = (blank, Vec::new());
    // The lines that begin the frontmatter.
    let mut opening = 1;
    lines.drain(..blank);
    let indent = lines[0].len() - lines[0].trim_start_matches([' ', '\t']).len();
    let fence = is_fence(lines[0]);
    let opens = |line: Option<&&str>| line.is_some_and(|line| line.trim() == "---");
    if fence && opens(lines.get(1)) {
        warnings.push(Diagnostic::new(Code::FenceRemoved, file, "the whole file is wrapped in a code fence"));
        let mark = lines.remove(0).trim_start()[..3].to_owned();
        skipped += 1;
        if let Some(last) = lines.iter().rposition(|line| !line.trim().is_empty())
            && lines[last].trim() == mark
        {
            lines.truncate(last);
        }
    } else if let Some(before) = lines_before(&lines, file).filter(|_| !opens(lines.first())) {
        let message = match before {
            0 => format!("the frontmatter begins with `{}`, not with `---`", crate::text::cut(lines[0].trim_end(), 40)),
            _ => "text stands before the frontmatter; it was left out".to_owned(),
        };
        let diagnostic = Diagnostic::new(Code::TextBeforeFrontmatter, file, message);
        warnings.push(diagnostic.at(line_number(blank), None));
        skipped += before;
        let text = lines.drain(..before).collect::<Vec<_>>().join("\n");
        beside.push((without_comments(&text), line_number(blank)));
    } else if let Some(found) = unopened(&lines, file).filter(|_| !opens(lines.first())) {
        let at = line_number(blank);
        match found {
            Unopened::Torn => {
                let message = "it begins with keys of an assistant, and no `---` line says where they begin and end";
                return Err(Diagnostic::new(Code::FrontmatterNotOpened, file, message)
                    .at(at, None)
                    .hint("if it is an assistant, put a line `---` before the first key and one behind the last"));
            }
            Unopened::Closed => {
                let message = "no `---` line stands before the first key, only one behind the last";
                let diagnostic = Diagnostic::new(Code::OpeningDelimiterRepaired, file, message);
                warnings.push(diagnostic.at(at, None).hint("begin the file with a line `---`"));
                opening = 0;
            }
        }
    } else if !opens(lines.first()) {
        let message = "no frontmatter: the file does not begin with a `---` line, so it was taken for a document";
        return Err(Diagnostic::new(Code::NoFrontmatter, file, message)
            .hint("if it is an assistant, begin it with `---`, a name, a description and `---`"));
    } else if indent > 0 {
        let prefix = &lines[0][..indent];
        lines = lines.iter().map(|line| line.strip_prefix(prefix).unwrap_or(line.trim_start())).collect();
        warnings.push(Diagnostic::new(Code::Dedented, file, "the whole file is indented; the indent was removed"));
    } else if blank > 0 {
        let message = "blank lines stand before the frontmatter; other systems skip such a file";
        warnings.push(Diagnostic::new(Code::LeadingBlankRemoved, file, message).at(1, None));
    }
    let end = lines.iter().skip(opening).position(|line| closes(line)).ok_or_else(|| {
        Diagnostic::new(Code::FrontmatterNotClosed, file, "the frontmatter never ends")
            .at(line_number(skipped), None)
            .hint("put a line `---` behind the last key")
    })? + opening;
    if lines[end].trim_end() != "---" {
        let message = format!("the frontmatter ends with `{}`, not with `---`", crate::text::cut(lines[end], 40));
        let at = line_number(skipped + end);
        warnings.push(Diagnostic::new(Code::ClosingDelimiterRepaired, file, message).at(at, None));
    }
    let ends = |line: &str| line.trim_end() == "---";
    let first = (end + 1..lines.len()).find(|at| !lines[*at].trim().is_empty());
    let from = match (ends(lines[end]), first.filter(|at| ends(lines[*at]))) {
        (true, Some(at)) => Some(at + 1),
        (true, None) if opening > 0 && !is_keys(&lines[end + 1..], ends) => None,
        _ => Some(end + 1),
    };
    // The end came within a list.
    if first.is_some_and(|at| lines[at].trim_start().starts_with("- "))
        && lines[..end].last().is_some_and(|last| value_of(last) == Some(""))
    {
        beside.push((lines[end - 1].to_owned(), line_number(skipped + end - 1)));
    }
    beside.extend(from.and_then(|from| {
        let rest = &lines[from..];
        let is_blank = |line: &&str| line.trim().is_empty();
        let written = rest.iter().position(|line| !is_blank(line)).unwrap_or(0);
        let paragraph = rest[written..].iter().take_while(|line| !is_blank(line)).count();
        let end = rest.iter().position(|line| ends(line)).or_else(|| rest.iter().position(|line| closes(line)));
        // Without its first line, the line of dashes may be that one: what it opens counts even if nothing closes it.
        let length = end.or((opening == 0).then_some(written + paragraph))?;
        Some((lines[from..from + length].join("\n"), line_number(skipped + from)))
    }));
    let body = lines[end + 1..].join("\n");
    Ok(Parts {
        frontmatter: lines[opening..end].join("\n"),
        line: line_number(skipped + opening),
        body: body.trim_start_matches('\n').trim_end().to_owned(),
        beside,
    })
}

/// The value behind the key of one word with which `line` begins.
fn value_of(line: &str) -> Option<&str> {
    let (key, value) = line.split_once(':')?;
    (!key.is_empty() && !key.contains(char::is_whitespace)).then_some(value.trim())
}

/// Whether `lines` begin with keys and values, and nothing else, until one that `ends` right below: the end before them
/// came too early. A line of dashes apart from them is a rule of the prompt.
fn is_keys(lines: &[&str], ends: impl Fn(&str) -> bool) -> bool {
    let Some(end) = lines.iter().position(|line| ends(line)) else { return false };
    if lines[..end].last().is_none_or(|line| line.trim().is_empty()) {
        return false;
    }
    let mut written = lines[..end].iter().filter(|line| !line.trim().is_empty()).peekable();
    written.peek().is_some_and(|line| value_of(line).is_some())
        && written.all(|line| value_of(line).is_some() || line.starts_with([' ', '\t']) || line.starts_with("- "))
}

/// Lines of comments or other text before a frontmatter, at most.
const BEFORE_LINES_MAX: usize = 40;

/// Lines of keys without a `---` before them, at most.
const KEYS_LINES_MAX: usize = 200;

/// How many lines stand before what is clearly the frontmatter of an assistant, with a description and a name (which a
/// file in a system's own place may leave out). None where there is no such thing, or where code stands before it: that
/// is a document which shows one.
fn lines_before(lines: &[&str], file: &str) -> Option<usize> {
    let has = |front: &[&str], key: &str| {
        front
            .iter()
            .any(|line| line.split_once(':').is_some_and(|(known, _)| known.trim_end().eq_ignore_ascii_case(key)))
    };
    let named_by_place = Dialect::of_path(Path::new(file)).is_some();
    let text = lines.iter().take(BEFORE_LINES_MAX + 1).take_while(|line| !is_fence(line));
    text.enumerate().filter(|(_, line)| begins(line)).map(|(at, _)| at).find(|at| {
        let below = &lines[at + 1..];
        let front = below.iter().position(|line| closes(line)).map_or(&[][..], |end| &below[..end]);
        has(front, "description") && (named_by_place || has(front, "name"))
    })
}

/// Keys of an assistant without a `---` before them.
enum Unopened {
    /// There is one behind them.
    Closed,
    /// There is none either, or it is not plain that all before it are keys.
    Torn,
}

/// Whether `lines` begin with keys of an assistant, without a `---` before them.
///
/// A document may begin with `Title: x` and the like, and a heading of it may be underlined with dashes: it takes a
/// name and a description, or one of them and a key that limits the assistant.
fn unopened(lines: &[&str], file: &str) -> Option<Unopened> {
    let front = lines.iter().take(KEYS_LINES_MAX).take_while(|line| !closes(line) && !line.trim().is_empty());
    let front: Vec<&str> = front.copied().collect();
    let below = |line: &str| line.starts_with([' ', '\t', '-', '#']);
    let known: Vec<String> =
        front.iter().filter_map(|line| key_of(line)).filter(|key| known::meant(key).is_some()).collect();
    let first = front.first().and_then(|line| key_of(line));
    if first.is_none_or(|key| known::meant(&key).is_none()) {
        return None;
    }
    let has = |wanted: &str| known.iter().any(|key| key == wanted);
    let named = has("name") || Dialect::of_path(Path::new(file)).is_some();
    let limits = known.iter().any(|key| known::meant(key).is_some_and(|field| field.limits()));
    let plain = front.iter().all(|line| below(line) || key_of(line).is_some());
    let closed = lines.get(front.len()).is_some_and(|line| closes(line));
    match (named, has("description"), limits) {
        (true, true, _) if plain && closed => Some(Unopened::Closed),
        (true, true, _) | (true, false, true) | (false, true, true) => Some(Unopened::Torn),
        _ => None,
    }
}

/// The key, folded, with which `line` begins.
fn key_of(line: &str) -> Option<String> {
    let (key, rest) = line.split_once(':')?;
    let word = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    (word && (rest.is_empty() || rest.starts_with([' ', '\t']))).then(|| known::fold(key))
}

fn is_fence(line: &str) -> bool {
    line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~")
}

/// `text` without HTML's comments; its lines stay where they are.
fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("<!--") {
        let (comment, after) = comment.split_once("-->").unwrap_or((comment, ""));
        kept.push_str(before);
        kept.extend(comment.matches('\n'));
        rest = after;
    }
    kept + rest
}

/// A line that may begin a frontmatter: dashes, with no more than a comment or one word (`---yaml`) behind them.
fn begins(line: &str) -> bool {
    let rest = line.trim_start_matches('\u{feff}').strip_prefix("---").map(|rest| rest.trim_start_matches('-').trim());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('#') || rest.bytes().all(|b| b.is_ascii_alphanumeric()))
}

/// Dashes alone, at least three.
fn is_dashes(line: &str) -> bool {
    let line = line.trim_end();
    line.len() >= 3 && line.bytes().all(|byte| byte == b'-')
}

/// A line that ends the frontmatter: dashes alone, at least three, or YAML's own end of a document.
fn closes(line: &str) -> bool {
    line.trim_end() == "..." || is_dashes(line)
}

/// The text of a file, without byte-order mark, its line ends `\n`.
///
/// # Errors
/// It is no text.
pub(super) fn decode(bytes: &[u8], file: &str, warnings: &mut Vec<Diagnostic>) -> Result<String, Diagnostic> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        Diagnostic::new(Code::NotUtf8, file, format!("the file is not UTF-8: byte {at} begins no character"))
            .at(line_of(bytes, at), None)
            .hint("save it as UTF-8")
    })?;
    let bare = text.trim_start_matches('\u{feff}');
    if bare.len() < text.len() {
        warnings.push(Diagnostic::new(Code::BomRemoved, file, "a byte-order mark was removed"));
    }
    let text = bare;
    if let Some(at) = text.find(|c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{c}' | '\u{80}'..)) {
        let message = format!("a control character stands at byte {at}; the file is no text");
        return Err(Diagnostic::new(Code::ControlCharacter, file, message).at(line_of(text.as_bytes(), at), None));
    }
    Ok(if text.contains('\r') { text.replace("\r\n", "\n").replace('\r', "\n") } else { text.to_owned() })
}

fn line_of(bytes: &[u8], at: usize) -> u32 {
    line_number(bytes[..at].iter().filter(|byte| **byte == b'\n').count())
}

/// The number, from 1, of the line behind `lines` lines.
fn line_number(lines: usize) -> u32 {
    u32::try_from(lines).map_or(u32::MAX, |lines| lines.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_files_apart() {
        let check = |bytes: &[u8], expected: &str| {
            let mut warnings = Vec::new();
            let found = match split(bytes, "f.md", &mut warnings) {
                Ok(parts) => {
                    let beside: String = parts.beside.iter().map(|(text, line)| format!("|{line}|{text}")).collect();
                    format!("{}|{}|{}{beside}", parts.line, parts.frontmatter, parts.body)
                }
                Err(error) => format!("{} at {:?}", error.code, error.line),
            };
            let codes: Vec<_> = warnings.iter().map(|warning| warning.code.as_str()).collect();
            assert_eq!(format!("{found} {codes:?}"), expected, "{:?}", String::from_utf8_lossy(bytes));
        };
        check(b"---\na: b\n---\n\nBody\n", "2|a: b|Body []");
        check(b"---\r\na: b\r\n---\r\nBody\r\n", "2|a: b|Body []");
        check(b"--- \na: b\n---\t\nBody", "2|a: b|Body []");
        check(b"\xef\xbb\xbf---\na: b\n---\nBody", r#"2|a: b|Body ["bom_removed"]"#);
        check(b"\xef\xbb\xbf\xef\xbb\xbf---\na: b\n---\nBody", r#"2|a: b|Body ["bom_removed"]"#);
        check(b"\n\n---\na: b\n---\nBody", r#"4|a: b|Body ["leading_blank_removed"]"#);
        check(
            b"\n  ---\n  a: b\n  ---\n\n  Body\n    x",
            r#"3|a: b|Body
  x ["dedented"]"#,
        );
        check(b"```markdown\n---\na: b\n---\nBody\n```\n", r#"3|a: b|Body ["fence_removed"]"#);
        check(b"---\na: b\n------\nBody", r#"2|a: b|Body ["closing_delimiter_repaired"]"#);
        check(b"---\na: b\n...\nBody", r#"2|a: b|Body ["closing_delimiter_repaired"]"#);
        check(b"---\na: b\n---\nBody\n---\nMore\n---\n", "2|a: b|Body\n---\nMore\n--- []");
        check(b"---\na: b\n---\n\n---\nc: d\n---\nBody", "2|a: b|---\nc: d\n---\nBody|6|c: d []");
        check(b"---\na: b\n----\nc: d\n---\nBody", "2|a: b|c: d\n---\nBody|4|c: d [\"closing_delimiter_repaired\"]");
        check(b"---\n---\n", "2|| []");
        check(b"---\na: b\n\nBody", "frontmatter_not_closed at Some(1) []");
        check(b"# Notes\n\n---\na: b\n---\n", "no_frontmatter at None []");
        let before = r#"["text_before_frontmatter"]"#;
        let read = |line: u32, beside: &str| format!("{line}|name: x\ndescription: y|Body|{beside} {before}");
        check(b"# agent\n---\nname: x\ndescription: y\n---\nBody", &read(3, "1|# agent"));
        check(b"\n<!-- mine,\nall of it -->\n\n---\nname: x\ndescription: y\n---\nBody", &read(6, "2|\n\n"));
        for begin in ["----", "--- # agent", "---yaml", "---\t# x"] {
            check(format!("{begin}\nname: x\ndescription: y\n---\nBody").as_bytes(), &read(2, "1|"));
        }
        check("\n\u{feff}---\nname: x\ndescription: y\n---\nBody".as_bytes(), &read(3, "2|"));
        check(b"Here it is:\n\n---\n\n---\nname: x\ndescription: y\n---\nBody", &read(6, "1|Here it is:\n\n---\n"));
        check(b"--- a b\nname: x\ndescription: y\n---\nBody", "no_frontmatter at None []");
        check(b"# How\n```\n---\nname: x\ndescription: y\n---\n```\n", "no_frontmatter at None []");
        // The end came before all keys had come, or within a list.
        check(b"---\nname: a\n---\ntools: [x]\n---\nbody", "2|name: a|tools: [x]\n---\nbody|4|tools: [x] []");
        check(
            b"---\nname: a\n---\nmode: b\ntools:\n  - x\n- y\n---\nbody",
            "2|name: a|mode: b\ntools:\n  - x\n- y\n---\nbody|4|mode: b\ntools:\n  - x\n- y []",
        );
        check(b"---\nname: a\n---\nTools: x\n\n---\nbody", "2|name: a|Tools: x\n\n---\nbody []");
        check(b"---\nname: a\n---\nUse it: so\n---\nbody", "2|name: a|Use it: so\n---\nbody []");
        check(b"---\nname: a\n---\nKey: so\nand so\n---\nbody", "2|name: a|Key: so\nand so\n---\nbody []");
        check(b"---\nname: a\n---\nKey: so\nbody", "2|name: a|Key: so\nbody []");
        check(b"---\nname: a\ntools:\n---\n  - x\nbody", "2|name: a\ntools:|  - x\nbody|3|tools: []");
        check(b"---\nname: a\ntools: x\n---\n- do\nbody", "2|name: a\ntools: x|- do\nbody []");
        // Without the first line of dashes.
        let repaired = r#"["opening_delimiter_repaired"]"#;
        let keys = "name: a\ndescription: b\ntools: Read";
        // What may be the block that was meant is looked at.
        let read = |line: u32| format!("{line}|{keys}|body|{}|body {repaired}", line + 4);
        check(format!("{keys}\n---\nbody").as_bytes(), &read(1));
        check(format!("\n\n{keys}\n---\n\nbody\n").as_bytes(), &format!("3|{keys}|body|7|\nbody {repaired}"));
        for (block, end) in [("tools: []", "\n---\nBody"), ("tools: []", "\n----\nBody"), ("tools: []", "\n\nBody")] {
            let read = format!("1|{keys}|{block}{end}|5|{block} {repaired}");
            check(format!("{keys}\n---\n{block}{end}").as_bytes(), &read);
        }
        check(
            b"name: a\ndescription: >\n  b\ntools:\n- x\nown: y\n---\nbody\n---\n",
            &format!("1|name: a\ndescription: >\n  b\ntools:\n- x\nown: y|body\n---|8|body {repaired}"),
        );
        let torn = "frontmatter_not_opened at Some(1) []";
        check(format!("{keys}\n\nbody").as_bytes(), torn);
        check(format!("{keys}\n\n---\nbody").as_bytes(), torn);
        check(b"name: a\ndescription: b\nmore of it\n---\nbody", torn);
        check(b"name: a\ntools: Read\n---\nbody", torn);
        check(b"description: a\ntools: Read\n---\nbody", torn);
        check(b"name: a\nallowed_callers: []\n", torn);
        // Documents.
        for document in [
            "Title: x\nAuthor: y\n---\nText",
            "name: a\n---\nText",
            "description: a heading\n---\nText",
            "Note: this is it\nname: a\ndescription: b\n---\nText",
            "Text\n---\nname: a\ndescription: b\n",
            "# a\nname: a\ndescription: b\n---\nText",
        ] {
            check(document.as_bytes(), "no_frontmatter at None []");
        }
        check(b"# How\n---\ndescription: y\n---\n", "no_frontmatter at None []");
        check(b"# How\n---\nname: x\ndescription: y\n", "no_frontmatter at None []");
        let far = format!("{}---\nname: x\ndescription: y\n---\n", "x\n".repeat(BEFORE_LINES_MAX + 1));
        check(far.as_bytes(), "no_frontmatter at None []");
        check(b"+++\na = 1\n+++\n", "no_frontmatter at None []");
        check(b"```\ncode\n```\n", "no_frontmatter at None []");
        check(b"", "empty_file at None []");
        check(b" \n\r\n", "empty_file at None []");
        check(b"---\na: \xff\n---\n", "not_utf8 at Some(2) []");
        check(b"---\na: b\x00\n---\n", "control_character at Some(2) []");
    }
}
