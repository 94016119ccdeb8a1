//! A finding as people see it: the place, the words, the line of the file, and what to do.

use std::path::Path;

use super::Finding;
use crate::cli::colour::Colour;
use crate::registry::{Diagnostic, read_bytes};
use crate::text::{cut, one_line};
use crate::trust;

/// Characters of a line of a file that are shown.
const LINE_CHARS: usize = 100;
/// Characters of a message or a hint.
const WORDS_CHARS: usize = 600;
/// Characters that are shown before the place, where a line is cut.
const BEFORE_CHARS: usize = 60;

/// The findings of one file, one after the other.
pub(super) fn of_file(findings: &[&Finding], cwd: Option<&Path>, short: bool, colour: Colour) -> String {
    let [first, ..] = findings else { return String::new() };
    let wants_text = !short && findings.iter().any(|one| one.diagnostic.line.is_some());
    let bytes = if wants_text { read_bytes(&first.path).unwrap_or_default() } else { Vec::new() };
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let told: Vec<String> = findings.iter().map(|one| tell(one, &lines, cwd, short, colour)).collect();
    told.join("\n")
}

fn tell(finding: &Finding, lines: &[&str], cwd: Option<&Path>, short: bool, colour: Colour) -> String {
    let one = &finding.diagnostic;
    let near = cwd.and_then(|cwd| finding.path.strip_prefix(cwd).ok());
    let file = near.map_or_else(|| one.file.clone(), |path| path.display().to_string());
    let mut place = one_line(&file);
    for number in [one.line, one.column].into_iter().flatten() {
        place.push_str(&format!(":{number}"));
    }
    let kind = colour.severity(one.severity, &format!("{}[{}]", one.severity.label(), one.code));
    let message = cut(&one_line(&one.message), WORDS_CHARS);
    let mut told = format!("{place}: {kind}: {message}");
    if short {
        return told;
    }
    if let Some(quote) = quote(one, lines, colour) {
        told.push_str(&quote);
    }
    if let Some(hint) = one.hint.as_deref().or_else(|| one.code.advice()) {
        let hint = cut(&one_line(hint), WORDS_CHARS);
        told.push_str(&format!("\n       {} {hint}", colour.faint("= help:")));
    }
    told.push('\n');
    told
}

/// The line of the file, and a caret below the column.
fn quote(one: &Diagnostic, lines: &[&str], colour: Colour) -> Option<String> {
    let number = one.line?;
    let line = trust::line_masked(lines, usize::try_from(number).ok()?.checked_sub(1)?);
    let line = one_line(line.trim_end());
    if line.is_empty() {
        return None;
    }
    let column = one.column.map_or(0, |column| usize::try_from(column).unwrap_or(usize::MAX)).saturating_sub(1);
    let inside = column <= line.chars().count();
    let from = if column < LINE_CHARS || !inside { 0 } else { column - BEFORE_CHARS };
    let shown: String = line.chars().skip(from).take(LINE_CHARS).collect();
    let before = if from > 0 { "…" } else { "" };
    let after = if line.chars().nth(from + LINE_CHARS).is_some() { "…" } else { "" };
    let gutter = colour.faint(&format!("{number:>6} |"));
    let mut told = format!("\n{gutter} {before}{shown}{after}");
    if one.column.is_some() && inside {
        let gap: String = before.chars().chain(shown.chars().take(column - from)).map(blank).collect();
        let caret = colour.severity(one.severity, "^");
        told.push_str(&format!("\n{} {gap}{caret}", colour.faint("       |")));
    }
    Some(told)
}

/// A blank as wide as `c` on a terminal.
fn blank(c: char) -> char {
    let wide = matches!(c, '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe4f}' | '\u{ff00}'..='\u{ff60}' | '\u{1f300}'..='\u{1faff}');
    if wide { '\u{3000}' } else { ' ' }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Code;

    fn check(line: u32, column: Option<u32>, text: &str, want: &str) {
        let diagnostic =
            Diagnostic::new(Code::YamlRepaired, "/p/a.md", "it is\u{7} broken").at(line, column).hint("mend it");
        let finding = Finding { path: "/p/a.md".into(), diagnostic };
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(tell(&finding, &lines, Some(Path::new("/p")), false, Colour::OFF), want);
    }

    #[test]
    fn a_finding_shows_its_line() {
        let head = "warning[yaml_repaired]: it is\u{fffd} broken";
        let help = "       = help: mend it\n";
        check(2, Some(5), "a\nb: c: d", &format!("a.md:2:5: {head}\n     2 | b: c: d\n       |     ^\n{help}"));
        check(1, Some(3), "发票x", &format!("a.md:1:3: {head}\n     1 | 发票x\n       | \u{3000}\u{3000}^\n{help}"));
        check(1, None, "a\tb", &format!("a.md:1: {head}\n     1 | a b\n{help}"));
        // Values that may be secrets are not shown.
        check(1, Some(1), "env: {A: abc}", &format!("a.md:1:1: {head}\n     1 | env: (set)\n       | ^\n{help}"));
        check(2, None, "env:\n  A: b: c", &format!("a.md:2: {head}\n     2 |   A: (set)\n{help}"));
        // The line is gone, or the column lies behind its end.
        check(9, Some(1), "a", &format!("a.md:9:1: {head}\n{help}"));
        check(1, Some(9), "a", &format!("a.md:1:9: {head}\n     1 | a\n{help}"));
        let long = "x".repeat(300);
        let (gap, part) = (" ".repeat(61), "x".repeat(100));
        check(1, Some(201), &long, &format!("a.md:1:201: {head}\n     1 | …{part}…\n       | {gap}^\n{help}"));
        check(1, Some(u32::MAX), "a", &format!("a.md:1:{}: {head}\n     1 | a\n{help}", u32::MAX));
    }
}
