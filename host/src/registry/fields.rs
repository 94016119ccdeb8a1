//! One field each: from what authors write to what the host means.

use super::yaml::{Kind, Node};

/// Most entries of a list that a definition may have.
pub(super) const LIST_MAX: usize = 256;

/// A list of names: a list, a comma string, one name, or a map of truth values (those that are true).
///
/// Commas within parentheses separate nothing: `Bash(git log:*, git show:*)` is one. A string without commas and
/// parentheses is split at blanks. None where the value is of another kind.
pub(super) fn names(node: &Node) -> Option<Vec<String>> {
    let mut names = Vec::new();
    match &node.kind {
        Kind::Scalar { text, .. } => {
            let text = text.trim();
            let text = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
            names = split(text);
            if let [one] = names.as_slice()
                && !one.contains('(')
            {
                names = one.split_whitespace().map(str::to_owned).collect();
            }
        }
        Kind::Seq(nodes) => {
            for node in nodes {
                names.extend(split(node.scalar()?));
            }
        }
        Kind::Map(entries) => {
            for (name, node) in entries {
                if granted(node)? {
                    names.push(name.clone());
                }
            }
        }
    }
    Some(names)
}

/// The names of a map of truth values that are false.
pub(super) fn refused(node: &Node) -> Vec<String> {
    match &node.kind {
        Kind::Map(entries) => {
            entries.iter().filter(|(_, node)| granted(node) == Some(false)).map(|(name, _)| name.clone()).collect()
        }
        Kind::Scalar { .. } | Kind::Seq(_) => Vec::new(),
    }
}

fn granted(node: &Node) -> Option<bool> {
    node.truth().or_else(|| match node.scalar()? {
        "allow" | "ask" => Some(true),
        "deny" => Some(false),
        _ => None,
    })
}

/// `text` at its commas outside parentheses, without quotes.
fn split(text: &str) -> Vec<String> {
    let mut depth = 0_u32;
    let parts = text.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts
        .map(|part| part.trim().trim_matches(['"', '\'', '`']).trim())
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Tags: as [`names`], but a tag may have blanks.
pub(super) fn tags(node: &Node) -> Option<Vec<String>> {
    let text = node.scalar().map(split);
    text.or_else(|| names(node))
        .map(|tags| tags.into_iter().map(|tag| tag.trim_start_matches('#').to_owned()).collect())
}

/// Models in order of preference: a list, one, or several with `|` between them; `inherit` is no wish.
pub(super) fn models(node: &Node) -> Option<Vec<String>> {
    let written: Vec<&str> = match &node.kind {
        Kind::Scalar { text, .. } => text.split('|').collect(),
        Kind::Seq(nodes) => nodes.iter().map(Node::scalar).collect::<Option<_>>()?,
        Kind::Map(_) => return None,
    };
    let models = written.into_iter().map(|model| model.trim().trim_matches(['"', '\'']).trim());
    let wish =
        |model: &&str| !model.is_empty() && !matches!(model.to_ascii_lowercase().as_str(), "inherit" | "default");
    Some(models.filter(wish).map(str::to_owned).collect())
}

/// A text: one, or the lines of a list.
pub(super) fn text(node: &Node) -> Option<String> {
    match &node.kind {
        Kind::Scalar { .. } if node.is_null() => Some(String::new()),
        Kind::Scalar { text, .. } => Some(text.trim().to_owned()),
        Kind::Seq(nodes) => Some(nodes.iter().map(Node::scalar).collect::<Option<Vec<_>>>()?.join("\n")),
        Kind::Map(_) => None,
    }
}

/// A number that is not negative; `_` and a fraction are dropped.
pub(super) fn number(node: &Node) -> Option<f64> {
    let number: f64 = node.scalar()?.trim().replace('_', "").parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::super::yaml::parse;
    use super::*;

    fn node(value: &str) -> Node {
        parse(&format!("key: {value}")).expect("valid YAML").remove(0).1
    }

    #[test]
    fn lists_of_names() {
        let check = |value: &str, expected: Option<&[&str]>| {
            let expected = expected.map(|names| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
            assert_eq!(names(&node(value)), expected, "{value:?}");
        };
        check("Read, Grep", Some(&["Read", "Grep"]));
        check("[Read, Grep]", Some(&["Read", "Grep"]));
        check("\n  - Read\n  - Grep", Some(&["Read", "Grep"]));
        check("Read Grep", Some(&["Read", "Grep"]));
        check("Read", Some(&["Read"]));
        check("['*']", Some(&["*"]));
        check("'*'", Some(&["*"]));
        check("[]", Some(&[]));
        check("''", Some(&[]));
        check("Bash(git log:*, git show:*), Read", Some(&["Bash(git log:*, git show:*)", "Read"]));
        check("Agent(worker, researcher)", Some(&["Agent(worker, researcher)"]));
        check("mcp__orders__*, Read", Some(&["mcp__orders__*", "Read"]));
        check("\"['Read', 'Grep']\"", Some(&["Read", "Grep"]));
        check("\n  read: true\n  write: false\n  bash: yes\n  edit: deny", Some(&["read", "bash"]));
        check("\n  read: {a: b}", None);
        check("[[Read]]", None);
        check("[404, on]", Some(&["404", "on"]));
        assert_eq!(refused(&node("{read: true, write: false, edit: deny}")), ["write", "edit"]);
    }

    #[test]
    fn lists_of_models() {
        let check = |value: &str, expected: Option<&[&str]>| {
            let expected = expected.map(|names| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
            assert_eq!(models(&node(value)), expected, "{value:?}");
        };
        check("sonnet", Some(&["sonnet"]));
        check("inherit", Some(&[]));
        check("[GPT-5, Claude Sonnet 4.5]", Some(&["GPT-5", "Claude Sonnet 4.5"]));
        check("GPT-4.1 | 'gpt-5' | 'Claude Sonnet 4.5'", Some(&["GPT-4.1", "gpt-5", "Claude Sonnet 4.5"]));
        check("{a: b}", None);
    }

    #[test]
    fn texts_and_numbers() {
        assert_eq!(text(&node("[a, b]")).as_deref(), Some("a\nb"));
        assert_eq!(text(&node("404")).as_deref(), Some("404"));
        assert_eq!(text(&node("{a: b}")), None);
        assert_eq!(number(&node("1_000")), Some(1_000.0));
        assert_eq!((number(&node("-1")), number(&node("ten")), number(&node("inf"))), (None, None, None));
        assert_eq!(tags(&node("finance, '#vat check'")), Some(vec!["finance".to_owned(), "vat check".to_owned()]));
    }
}
