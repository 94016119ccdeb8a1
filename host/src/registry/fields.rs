//! One field each: from what authors write to what the host means.

use super::access::bare;
use super::yaml::{Kind, Node};
use crate::text::cut;

/// Characters of what stands where a name should be.
const PLACE_SHOWN_CHARS_MAX: usize = 100;
/// Most entries of a list that a definition may have.
pub(super) const LIST_MAX: usize = 256;

/// Whether each run has a git worktree of its own: `worktree`, or a word for no isolation. Whoever asks for one that is not
/// known here does not mean the folder of the user: that gets a worktree too.
pub(super) fn isolation(node: &Node) -> Option<bool> {
    if node.is_null() {
        return None;
    }
    let text = text(node).map(|text| text.trim().to_lowercase());
    Some(!matches!((text.as_deref(), node.truth()), (Some("" | "none"), _) | (_, Some(false))))
}

/// A name that decides where or by what an assistant is run. What is no name is kept as it stands: nothing is called so, and
/// the assistant is not started elsewhere than its author meant.
pub(super) fn place(node: &Node) -> Option<String> {
    match text(node) {
        Some(name) => Some(name).filter(|name| !name.is_empty()),
        None if node.is_null() => None,
        None => Some(cut(&node.json().to_string(), PLACE_SHOWN_CHARS_MAX)),
    }
}

/// What a list of names says.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Names {
    /// The names.
    pub(super) taken: Vec<String>,
    /// Names that a map refuses.
    pub(super) refused: Vec<String>,
    /// Names that a map gives where somebody is asked first.
    pub(super) asked: Vec<String>,
    /// Something in it is no name.
    pub(super) unreadable: bool,
}

/// What stands behind a name in a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// It may.
    Allow,
    /// It must not.
    Deny,
    /// Someone is to be asked each time.
    Ask,
    /// It may for some arguments only.
    Some,
    /// No rule that is known.
    Unreadable,
}

/// A list of names: a list, a comma string, one name, or a map of rules (those that are allowed).
///
/// Commas within parentheses separate nothing: `Bash(git log:*, git show:*)` is one. A string without commas and
/// parentheses is split at blanks. What is no name is left out and told in [`Names::unreadable`].
pub(super) fn names(node: &Node) -> Names {
    let mut names = Names::default();
    match &node.kind {
        Kind::Scalar { .. } if node.is_null() => {}
        Kind::Scalar { text, .. } => {
            let text = text.trim();
            // What stands behind the end of a list is none of it.
            let (list, behind) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
                Some((list, behind)) => (list, behind.trim_matches(']')),
                None => (text, ""),
            };
            names.unreadable = !behind.is_empty();
            names.taken = split(list.trim_start_matches('[').trim_end_matches(']'));
            if let [one] = names.taken.as_slice()
                && !one.contains('(')
            {
                // Beside other names, `*` is the bullet of one.
                names.taken =
                    one.split_whitespace().filter(|word| one == "*" || *word != "*").map(str::to_owned).collect();
            }
        }
        Kind::Seq(nodes) => {
            for node in nodes.iter().filter(|node| !node.is_null()) {
                match node.scalar() {
                    Some(text) => names.taken.extend(split(text)),
                    None => names.unreadable = true,
                }
            }
        }
        Kind::Map(entries) => {
            for entry in entries {
                match rule(&entry.value) {
                    Rule::Allow => names.taken.push(entry.key.clone()),
                    Rule::Ask => names.asked.push(entry.key.clone()),
                    found => {
                        names.unreadable |= matches!(found, Rule::Unreadable | Rule::Some);
                        names.refused.push(entry.key.clone());
                    }
                }
            }
        }
    }
    // What is left over from a broken list is no name; a key of a map is.
    if !matches!(node.kind, Kind::Map(_)) {
        let before = names.taken.len();
        names.taken.retain(|name| is_name(name));
        names.unreadable |= names.taken.len() < before;
    }
    names
}

/// The rule that `node` is: a truth value, a word, or a map of rules for patterns. What is allowed for some patterns is
/// not allowed for all: only `*` is.
pub(super) fn rule(node: &Node) -> Rule {
    if let Kind::Map(entries) = &node.kind {
        let rules = entries.iter().map(|entry| match &entry.value.kind {
            Kind::Scalar { .. } => rule_word(&entry.value),
            Kind::Seq(_) | Kind::Map(_) => Rule::Unreadable,
        });
        let rules: Vec<Rule> = rules.collect();
        return match rules.as_slice() {
            [] => Rule::Unreadable,
            [Rule::Allow, rest @ ..] if rest.iter().all(|rule| *rule == Rule::Allow) => {
                if entries.iter().any(|entry| entry.key == "*") { Rule::Allow } else { Rule::Some }
            }
            [first, rest @ ..] if rest.iter().all(|rule| rule == first) => *first,
            _ => Rule::Some,
        };
    }
    rule_word(node)
}

fn rule_word(node: &Node) -> Rule {
    match (node.truth(), node.scalar().map(str::to_ascii_lowercase).as_deref()) {
        (Some(true), _) | (None, Some("allow")) => Rule::Allow,
        (Some(false), _) | (None, Some("deny")) => Rule::Deny,
        (None, Some("ask")) => Rule::Ask,
        (None, _) => Rule::Unreadable,
    }
}

/// Whether `text` may name a tool, an assistant or a group of them: no sign that is left over from a broken list.
fn is_name(text: &str) -> bool {
    let bare = bare(text);
    let marked = bare.ends_with(':') || bare.contains(": ") || bare.contains(['[', ']', '{', '}', '"', '\'', '`']);
    !marked && bare.contains(|c: char| c.is_alphanumeric() || c == '*')
}

/// `text` at its commas and line ends outside parentheses, without quotes and dashes of a list.
fn split(text: &str) -> Vec<String> {
    let mut depth = 0_u32;
    let parts = text.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '\n' => depth = 0,
            _ => {}
        }
        c == '\n' || (c == ',' && depth == 0)
    });
    let bare = |part: &str| {
        let part = part.trim();
        part.strip_prefix(['-', '*'])
            .filter(|rest| rest.starts_with(' '))
            .unwrap_or(part)
            .trim()
            .trim_matches(['"', '\'', '`'])
            .trim()
            .to_owned()
    };
    parts.map(bare).filter(|part| !part.is_empty()).collect()
}

/// Tags: as [`names`], but a tag may have blanks. None where something in it is no tag.
pub(super) fn tags(node: &Node) -> Option<Vec<String>> {
    let tags = match node.scalar() {
        Some(text) => split(text.trim().trim_start_matches('[').trim_end_matches(']')),
        None => Some(names(node)).filter(|names| !names.unreadable)?.taken,
    };
    Some(
        tags.into_iter()
            .map(|tag| tag.trim_start_matches('#').trim().to_owned())
            .filter(|tag| !tag.is_empty())
            .collect(),
    )
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
    use super::super::yaml::entries;
    use super::*;

    fn node(value: &str) -> Node {
        entries(&format!("key: {value}")).expect("valid YAML").remove(0).value
    }

    #[test]
    fn isolation_that_is_not_known_is_isolation() {
        let check = |value: &str, expected: Option<bool>| assert_eq!(isolation(&node(value)), expected, "{value:?}");
        for value in ["worktree", "Worktree", "true", "yes", "container", "{mode: strict}", "[worktree]"] {
            check(value, Some(true));
        }
        for value in ["none", "None", "false", "off", "''"] {
            check(value, Some(false));
        }
        check("~", None);
    }

    #[test]
    fn what_is_no_name_of_a_place_is_none_that_there_is() {
        let check =
            |value: &str, expected: Option<&str>| assert_eq!(place(&node(value)).as_deref(), expected, "{value:?}");
        check("box", Some("box"));
        check("[box]", Some("box"));
        check("5", Some("5"));
        check("{name: box}", Some(r#"{"name":"box"}"#));
        check("\n  preset: bwrap", Some(r#"{"preset":"bwrap"}"#));
        check("''", None);
        check("~", None);
    }

    #[test]
    fn lists_of_names() {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let check = |value: &str, expected: Option<&[&str]>| {
            let found = names(&node(value));
            let unreadable = expected.is_none();
            assert_eq!((found.taken, found.unreadable), (owned(expected.unwrap_or_default()), unreadable), "{value:?}");
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
        check("[Read, ~]", Some(&["Read"]));
        check("'[Bash, Write'", Some(&["Bash", "Write"]));
        check("\"- Bash\\n- Write\"", Some(&["Bash", "Write"]));
        check("\"* Bash\\n* Write\"", Some(&["Bash", "Write"]));
        check("'* Bash'", Some(&["Bash"]));
        check(">\n  * Bash\n  * Write", Some(&["Bash", "Write"]));
        check("'* Bash * Write'", Some(&["Bash", "Write"]));
        check("'*, Bash'", Some(&["*", "Bash"]));
        check("'{Bash'", None);
        check("{}", Some(&[]));
        let split = |value: &str| {
            let found = names(&node(value));
            (found.taken.join(" "), found.refused.join(" "), found.unreadable)
        };
        let told = |taken: &str, refused: &str, unreadable| (taken.to_owned(), refused.to_owned(), unreadable);
        assert_eq!(split("{read: true, write: false, edit: deny}"), told("read", "write edit", false));
        assert_eq!(split("{read: maybe, bash: ask, x: on}"), told("x", "read", true));
        // What cannot be read is left out, and the rest stays.
        assert_eq!(split("[Read, {a: b}]"), told("Read", "", true));
    }

    #[test]
    fn rules() {
        let check = |value: &str, expected: Rule| assert_eq!(rule(&node(value)), expected, "{value}");
        check("Allow", Rule::Allow);
        check("off", Rule::Deny);
        check("ask", Rule::Ask);
        check("{'*': deny, 'git *': deny}", Rule::Deny);
        check("{'*': allow, 'git *': allow}", Rule::Allow);
        check("{'git *': allow}", Rule::Some);
        check("{'git *': allow, 'ls *': yes}", Rule::Some);
        check("{'*': deny, 'git *': allow}", Rule::Some);
        check("{'*': {x: allow}}", Rule::Unreadable);
        check("[allow]", Rule::Unreadable);
        check("{}", Rule::Unreadable);
        check("~", Rule::Unreadable);
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
