//! The parts of `protocol/README.md` that are made of the tables.

use super::bounds::BOUNDS;
use super::examples;
use super::order::Stage;
use super::rules::{About, RULES};
use super::shapes;
use crate::error::Kind;
use crate::methods::{self, ANY_METHOD, Asks, MayFail, MethodInfo};

/// Each part: the name in its markers, and its text.
#[must_use]
pub fn parts() -> [(&'static str, String); 6] {
    [
        ("order", order()),
        ("methods", all_methods()),
        ("shapes", shapes::text()),
        ("errors", errors()),
        ("rules", rules()),
        ("bounds", bounds()),
    ]
}

/// Writes the parts anew between their markers, `<!-- NAME: generated -->` and `<!-- NAME: end -->`.
///
/// # Errors
/// The name of a part whose markers are not there.
pub fn renew(page: &str) -> Result<String, &'static str> {
    let mut page = page.to_owned();
    for (name, text) in parts() {
        let (begin, end) = (format!("<!-- {name}: generated -->\n"), format!("<!-- {name}: end -->"));
        let from = page.find(&begin).map(|at| at + begin.len()).ok_or(name)?;
        let to = page[from..].find(&end).map(|at| at + from).ok_or(name)?;
        page.replace_range(from..to, &text);
    }
    Ok(page)
}

/// Appends a line to a text.
macro_rules! put {
    ($text:expr, $($what:tt)*) => {{
        $text.push_str(&format!($($what)*));
        $text.push('\n');
    }};
}

fn order() -> String {
    let mut text = String::from("| | method");
    let headings = ["before `initialize` is answered", "between runs", "in a run", "after `shutdown`"];
    put!(text, " | {} | |", headings.join(" | "));
    put!(text, "|---|---|---|---|---|---|---|");
    for (asks, info) in methods::all() {
        let cells = Stage::ALL.map(|stage| if info.stages.contains(&stage) { "yes" } else { "" });
        put!(text, "| {} | `{}` | {} | {} |", who(asks), info.name, cells.join(" | "), info.order);
    }
    text
}

fn who(asks: Asks) -> &'static str {
    match asks {
        Asks::Host => "host",
        Asks::Runner => "runner",
        Asks::Both => "both",
    }
}

fn all_methods() -> String {
    let mut text = String::new();
    for (asks, info) in methods::all() {
        put!(text, "\n### `{}`\n\n{}\n", info.name, info.doc);
        let arrows = if matches!(asks, Asks::Runner) { ('<', '>') } else { ('>', '<') };
        put!(text, "```text");
        for example in examples::of(info) {
            put!(text, "{} {}\n{} {}", arrows.0, example.asks, arrows.1, example.answers);
        }
        put!(text, "```");
        if !info.errors.is_empty() {
            let told: Vec<String> = info.errors.iter().map(may_fail).collect();
            put!(text, "\nErrors: {}.", told.join("; "));
        }
    }
    put!(text, "");
    text
}

fn may_fail(one: &MayFail) -> String {
    format!("`{}` ({})", one.kind.name(), one.when)
}

fn errors() -> String {
    let mut text = String::from("| code | `data.kind` | means | may answer |\n|---|---|---|---|\n");
    for kind in Kind::ALL {
        let may = |info: &&MethodInfo| info.errors.iter().any(|one| one.kind == *kind);
        let mut by: Vec<String> =
            methods::all().map(|(_, info)| info).filter(may).map(|info| format!("`{}`", info.name)).collect();
        if ANY_METHOD.iter().any(|one| one.kind == *kind) {
            by = vec!["any request".to_owned()];
        }
        let by = if by.is_empty() { "no request of version 1".to_owned() } else { by.join(", ") };
        put!(text, "| {} | `{}` | {} | {by} |", kind.code(), kind.name(), kind.doc());
    }
    let any: Vec<String> = ANY_METHOD.iter().map(may_fail).collect();
    put!(text, "\nAny request may be answered with: {}.", any.join("; "));
    text
}

fn rules() -> String {
    let mut text = String::new();
    for about in About::ALL {
        put!(text, "\n### {}\n", about.heading());
        for rule in RULES.iter().filter(|rule| rule.about == about) {
            put!(text, "* **{}** {} (`{}`)", rule.level.word(), rule.text, rule.name);
        }
    }
    put!(text, "");
    text
}

fn bounds() -> String {
    let mut text = String::from("| bound | value | what |\n|---|---|---|\n");
    for bound in BOUNDS {
        let limit = bound.limit.map(|limit| format!(" `[limits] {limit}` changes it.")).unwrap_or_default();
        put!(text, "| `{}` | {} {} | {}{limit} |", bound.name, grouped(bound.value), bound.unit, bound.text);
    }
    text
}

/// A number with a comma between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stand_between_their_markers() {
        let page: String = parts()
            .iter()
            .map(|(name, _)| format!("<!-- {name}: generated -->\nold\n<!-- {name}: end -->\n"))
            .collect();
        let renewed = renew(&page).expect("all markers are there");
        assert!(!renewed.contains("old\n") && renewed.contains("| -32700 | `parse_error` |"));
        assert_eq!(renew(&renewed), Ok(renewed));
        assert_eq!(renew("nothing"), Err("order"));
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1_000, 67_108_864].map(grouped), ["0", "999", "1,000", "67,108,864"]);
    }
}
