//! Where in its file a finding is that was made without looking at the file.

use crate::registry::{Definition, Diagnostic, read_bytes};
use crate::tools::outfit::About;

/// Lines of a file that are looked at.
const LINES_MAX: usize = 1_000;

/// Gives each finding about a definition the line and column of what it is about, where that is found.
pub(super) fn put(findings: Vec<(Diagnostic, About)>, definition: &Definition) -> Vec<Diagnostic> {
    let path = definition.file().filter(|_| !findings.is_empty());
    // A file that went meanwhile has no lines to show.
    let bytes = path.and_then(|path| read_bytes(path).ok()).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let one = |(finding, about): (Diagnostic, About)| match find(&text, about.keys, about.value.as_deref()) {
        Some((line, column)) => finding.at(line, Some(column)),
        None => finding,
    };
    findings.into_iter().map(one).collect()
}

/// Line and column, from 1, of `value` below the first of `keys` that there is; of the key where the value is not found.
fn find(text: &str, keys: &[&str], value: Option<&str>) -> Option<(u32, u32)> {
    let mut lines = text.lines().zip(1_u32..).take(LINES_MAX).peekable();
    let front = lines.peek().is_some_and(|(line, _)| line.trim_start_matches('\u{feff}').trim() == "---");
    if front {
        lines.next();
    }
    let lines: Vec<_> = lines.take_while(|(line, _)| !front || line.trim_end() != "---").collect();
    let at = lines.iter().position(|(line, _)| key_of(line).is_some_and(|key| keys.contains(&key.as_str())))?;
    let (line, number) = lines[at];
    let key_column = 1 + line.len() - line.trim_start().len();
    let below =
        lines[at + 1..].iter().take_while(|(line, _)| line.starts_with([' ', '\t', '-', ']', '"']) || line.is_empty());
    let in_value = std::iter::once(&lines[at]).chain(below).find_map(|(line, number)| {
        let from = if *number == lines[at].1 { line.find([':', '='])? } else { 0 };
        let found = word(&line[from..], value?)? + from;
        Some((*number, 1 + line[..found].chars().count()))
    });
    let (line, column) = in_value.unwrap_or((number, key_column));
    Some((line, u32::try_from(column).ok()?))
}

/// The key that a line of YAML, TOML or JSON begins, without case and signs.
fn key_of(line: &str) -> Option<String> {
    let (key, _) = line.split_once([':', '='])?;
    let key = key.trim().trim_matches('"');
    let plain = key.chars().filter(|c| !"-_ ".contains(*c)).flat_map(char::to_lowercase);
    (!key.is_empty() && key.len() < 40).then(|| plain.collect())
}

/// Where `word` begins in `line`, standing alone.
fn word(line: &str, word: &str) -> Option<usize> {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word)
        .map(|(at, _)| at)
        .find(|at| !line[..*at].ends_with(part) && !line[at + word.len()..].starts_with(part))
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn finds_the_value_of_a_key() {
        let check = |text: &str, value: Option<&str>, want: Option<(u32, u32)>| {
            assert_eq!(find(text, &["tools", "allowedtools"], value), want, "{text}");
        };
        check("---\nname: x\ntools: Read, Bash\n---\n", Some("Bash"), Some((3, 14)));
        check("---\nallowed-tools:\n  - Read\n  - Bash\nmodel: Bash\n---\n", Some("Bash"), Some((4, 5)));
        check("---\ntools:\n  bash: true\n---\n", Some("bash"), Some((3, 3)));
        check("---\ntools: Bashful\n---\nBash", Some("Bash"), Some((2, 1)));
        check("---\nname: x\n---\ntools: Bash\n", Some("Bash"), None);
        check("\u{feff}---\ntools: é, Bash\n---\n", Some("Bash"), Some((2, 11)));
        check("tools = [\"Bash\"]\n", Some("Bash"), Some((1, 11)));
        check("{\n  \"tools\": [\"Bash\"]\n}", Some("Bash"), Some((2, 14)));
        check("---\ntools: x\n", None, Some((2, 1)));
        check("", Some("x"), None);
    }
}
