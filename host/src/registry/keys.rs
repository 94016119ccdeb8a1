//! Frontmatter as keys and values: valid YAML as it is, else key by key.

use std::collections::hash_map::Entry as Slot;
use std::collections::{HashMap, HashSet};

use super::access;
use super::diagnostic::{Code, Diagnostic};
use super::fields;
use super::known::{self, fold};
use super::notes::OF_A_CODE_MAX;
use super::yaml::{self, Broken, Entry, Kind, Node};

/// Characters that an editor may show as the end of a line, and YAML does not take for one.
const BREAKS: [char; 5] = ['\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];

/// What frontmatter is.
#[derive(Debug, PartialEq)]
pub(super) enum Content {
    /// Keys and values, each key once.
    Entries {
        /// The keys and values.
        entries: Vec<Entry>,
        /// Known keys that stand there, and whose values are lost, with their lines.
        lost: Vec<(String, u32)>,
    },
    /// A list of so many maps.
    List(usize),
}

/// What the frontmatter `text`, which begins on line `first` of `file`, says.
///
/// Valid YAML is taken as it is; else each known key is read alone, and what is no YAML even then is taken as text. Only
/// a line with a known key begins a new one there, so that `Context:` or `user:` within a description do not. Repairs and
/// double keys are told in `warnings`; of a double key the last value stays.
pub(super) fn read(text: &str, first: u32, file: &str, warnings: &mut Vec<Diagnostic>) -> Content {
    let (entries, repaired) = match yaml::parse(text) {
        Ok(Node { kind: Kind::Map(mut entries), .. }) => {
            entries.iter_mut().for_each(|entry| shift(entry, first - 1));
            (entries, false)
        }
        Ok(Node { kind: Kind::Seq(nodes), .. })
            if !nodes.is_empty() && nodes.iter().all(|node| matches!(node.kind, Kind::Map(_))) =>
        {
            return Content::List(nodes.len());
        }
        Ok(node) => {
            let message = "it is no list of keys and values".to_owned();
            let broken = Broken { too_complex: false, line: node.line, column: 1, message };
            warnings.push(told(&broken, first, file));
            (scan(text, first), true)
        }
        Err(broken) => {
            warnings.push(told(&broken, first, file));
            (scan(text, first), true)
        }
    };
    let entries = each_once(entries, file, warnings);
    let mut lost = lost(text, first, &entries, repaired);
    lost.extend(emptied(&entries));
    Content::Entries { entries, lost }
}

/// `entries` with each key once; of a double one the last value stays. One that limits what the assistant may do stays as
/// often as it stands there, so that each counts.
pub(super) fn each_once(entries: Vec<Entry>, file: &str, warnings: &mut Vec<Diagnostic>) -> Vec<Entry> {
    let mut kept: Vec<Entry> = Vec::with_capacity(entries.len());
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut told = 0;
    for entry in entries {
        match places.entry(fold(&entry.key)) {
            Slot::Occupied(place) => {
                let limits =
                    known::is_holder(place.key()) || known::meant(place.key()).is_some_and(|field| field.limits());
                let counts = match known::is_holder(place.key()) {
                    true => "what limits the assistant in either counts, and else the last one",
                    false if limits => "what both allow counts",
                    false => "the last one counts",
                };
                let message = format!("the key `{}` stands there twice; {counts}", cut(&entry.key));
                let found = Diagnostic::new(Code::DuplicateKey, file, message);
                if told < OF_A_CODE_MAX {
                    warnings.push(found.at(entry.line, column(entry.column)).hint("remove one of them"));
                }
                told += 1;
                match limits {
                    true => kept.push(entry),
                    false => kept[*place.get()] = entry,
                }
            }
            Slot::Vacant(place) => {
                place.insert(kept.len());
                kept.push(entry);
            }
        }
    }
    kept
}

/// Keys that limit, which begin a line of `text`, or stand anywhere in a `broken` one as a key of a flow map does, and that
/// are none of the `entries` of their line. Below a key such as `policy` one in other words counts too.
///
/// A quoted text that is closed too late hides keys even in valid YAML.
pub(super) fn lost(text: &str, first: u32, entries: &[Entry], broken: bool) -> Vec<(String, u32)> {
    let there: HashSet<(String, u32)> = entries.iter().map(|entry| (fold(&entry.key), entry.line)).collect();
    let is_there = |key: &str, line: u32| there.contains(&(fold(key), line));
    let mut keys = Vec::new();
    // The indent of a key below which authors limit, while its lines last.
    let mut holder: Option<usize> = None;
    for (line, number) in text.split('\n').zip(first..) {
        let indent = line.len() - line.trim_start().len();
        holder = holder.filter(|of| line.trim().is_empty() || indent > *of);
        let mut below = holder.is_some();
        let mut found = Vec::new();
        let header = line.trim().strip_prefix('[').filter(|_| broken);
        found.extend(header.and_then(|rest| limiting(rest.split(']').next()?, true)));
        found.extend(Some(line).filter(|line| broken && !line.contains([':', '=', '：'])).and_then(unsigned));
        let shown = line.split(BREAKS).filter(|shown| !shown.trim_start().starts_with('#'));
        for (at, part) in shown.flat_map(|shown| shown.split(['{', ','])).enumerate() {
            if at > 0 && !broken && !below {
                break;
            }
            let Some((key, value)) = part.split_once([':', '=', '：']) else { continue };
            let indented = key.starts_with([' ', '\t']);
            if indented && !broken && !below {
                continue;
            }
            if known::is_holder(&fold(bare(key))) && (broken || !is_there(bare(key), number)) {
                (below, holder) = (true, holder.or(Some(indent)));
            }
            found.extend(limiting(key, !indented || below).filter(|key| !is_harmless(key, value)));
        }
        keys.extend(found.into_iter().filter(|key| !is_there(key, number)).map(|key| (key, number)));
    }
    keys
}

/// Tools as people name them, folded: what a truth value behind one says is a rule.
const TOOLS: &[&str] = &[
    "agent",
    "bash",
    "edit",
    "execute",
    "fetch",
    "glob",
    "grep",
    "list",
    "ls",
    "lsp",
    "multiedit",
    "notebookedit",
    "notebookread",
    "patch",
    "question",
    "read",
    "search",
    "shell",
    "skill",
    "task",
    "todoread",
    "todowrite",
    "web",
    "webfetch",
    "websearch",
    "write",
];

/// Keys that limit and have no value, because the rules that belong below them stand beside them, behind them.
fn emptied(entries: &[Entry]) -> impl Iterator<Item = (String, u32)> {
    let limits = |entry: &Entry| known::look(&fold(&entry.key)).is_some_and(|(field, _)| field.limits());
    let is_rule = |entry: &Entry| {
        let tool = TOOLS.contains(&fold(&entry.key).as_str()) || entry.key.contains('*');
        let unknown = known::look(&fold(&entry.key)).is_none() && entry.value.truth().is_none();
        (tool || unknown) && fields::rule(&entry.value) != fields::Rule::Unreadable
    };
    let pairs = entries.iter().zip(entries.iter().skip(1));
    let apart = pairs.filter(move |(entry, next)| limits(entry) && entry.value.is_null() && is_rule(next));
    apart.map(|(entry, _)| (entry.key.clone(), entry.line))
}

/// The key that limits with which `line` begins, without a sign behind it, if its end looks like its value: a sign, a list
/// of words, or nothing. A key of several words (`allowed_callers`, `disallowedTools`) is one whatever comes.
fn unsigned(line: &str) -> Option<String> {
    let end = line.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-').unwrap_or(line.len());
    let (word, rest) = line.split_at(end);
    let several = word.contains(['_', '-']) || word.chars().skip(1).any(char::is_uppercase);
    let rest = rest.trim();
    let signed = rest.starts_with([';', '>', '→']) || rest.starts_with("->");
    let list = rest.split(',').all(|part| part.split_whitespace().count() <= 1);
    (several || signed || list).then(|| limiting(word, false)).flatten()
}

/// `key` without what may stand around it: a dash, a tag, an anchor, quotes.
fn bare(key: &str) -> &str {
    let mut key = key.trim();
    while let Some((sign, rest)) = key.split_once(char::is_whitespace)
        && (sign.starts_with(['&', '!']) || matches!(sign, "?" | "-"))
    {
        key = rest.trim_start();
    }
    key.trim_matches(|c: char| !c.is_alphanumeric())
}

/// The part of `key`, bare, that limits: the first before a dot, or the one behind it where authors limit below the first.
/// In other words it counts where it is `guessed` at.
fn limiting(key: &str, guessed: bool) -> Option<String> {
    let mut parts = key.split('.').map(bare);
    let first = parts.next()?;
    let limits = |key: &&str, guessed: bool| match known::look(&fold(key)) {
        Some((field, _)) => field.limits(),
        None => guessed && known::misspelt(&fold(key)).is_some(),
    };
    let below = parts.next().filter(|key| known::is_holder(&fold(first)) && limits(key, true));
    below.or(Some(first).filter(|key| limits(key, guessed))).map(str::to_owned)
}

/// Whether `value` is plainly a word that, behind `key`, limits nothing: `mode: subagent`, or prose about a mode.
fn is_harmless(key: &str, value: &str) -> bool {
    let role = known::look(&fold(key)).is_some_and(|(field, _)| field == known::Field::Role);
    let word = value.trim_start().trim_start_matches(['"', '\'']);
    role && word.starts_with(char::is_alphanumeric) && !word.contains('\\') && !access::is_limiting_role(word)
}

/// A column, where it is known.
pub(super) fn column(column: u32) -> Option<u32> {
    (column > 0).then_some(column)
}

/// A key, cut for a message.
pub(super) fn cut(key: &str) -> String {
    crate::text::cut(key, 60)
}

/// Moves an entry, and all below it, down by `lines`.
fn shift(entry: &mut Entry, lines: u32) {
    entry.line += lines;
    shift_node(&mut entry.value, lines);
}

/// The bound on the depth of YAML bounds the recursion.
fn shift_node(node: &mut Node, lines: u32) {
    node.line += lines;
    match &mut node.kind {
        Kind::Scalar { .. } => {}
        Kind::Seq(nodes) => nodes.iter_mut().for_each(|node| shift_node(node, lines)),
        Kind::Map(entries) => entries.iter_mut().for_each(|entry| shift(entry, lines)),
    }
}

fn told(broken: &Broken, first: u32, file: &str) -> Diagnostic {
    let (code, what) = match broken.too_complex {
        true => (Code::YamlTooComplex, "is too complex"),
        false => (Code::YamlRepaired, "is no valid YAML"),
    };
    let message = format!("the frontmatter {what} ({}); it was read key by key", broken.message);
    Diagnostic::new(code, file, message)
        .at(broken.line.saturating_add(first - 1), Some(broken.column))
        .hint("put quotes around a value with `: `, or one that begins with a sign")
}

/// Splits at known keys, and reads each alone.
fn scan(text: &str, first: u32) -> Vec<Entry> {
    let mut blocks: Vec<(&str, u32, usize, usize)> = Vec::new();
    let mut at = 0;
    for (line, number) in text.split('\n').zip(first..) {
        let end = at + line.len();
        match known_key(line) {
            Some(key) => blocks.push((key, number, at, end)),
            None => blocks.iter_mut().last().into_iter().for_each(|block| block.3 = end),
        }
        at = end + 1;
    }
    let entry = |(key, line, from, to): (&str, u32, usize, usize)| Entry {
        key: key.to_owned(),
        line,
        column: 1,
        value: alone(line, &text[from..to]),
    };
    // What an alias stands for is nowhere to be found in a key that is read alone.
    let is_alias = |entry: &Entry| {
        let name = entry.value.scalar().and_then(|text| text.strip_prefix('*')).filter(|name| !name.is_empty());
        name.is_some_and(|name| text.contains(&format!("&{name}")))
    };
    blocks.into_iter().map(entry).filter(|entry| !is_alias(entry)).collect()
}

/// The key that `line` begins, if it is a known one, or one of a secret, which is no part of what stands above it.
fn known_key(line: &str) -> Option<&str> {
    let (key, rest) = line.split_once(':')?;
    let key = key.trim_end();
    let blank = rest.is_empty() || rest.starts_with([' ', '\t']);
    let word = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    let known = |key: &str| known::look(key).is_some() || known::is_secret(key);
    (blank && word && known(&fold(key))).then_some(key)
}

/// The value of one key: YAML if its block is that, else the text behind the colon.
fn alone(line: u32, block: &str) -> Node {
    if let Ok(mut entries) = yaml::entries(block)
        && entries.len() == 1
        && let Some(mut entry) = entries.pop()
    {
        shift(&mut entry, line - 1);
        return entry.value;
    }
    let value = block.split_once(':').map_or("", |(_, value)| value);
    let value = value.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    Node::text(value.trim(), line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn double_keys_are_told_as_they_count() {
        let check = |text: &str, expected: &str| {
            let mut warnings = Vec::new();
            read(text, 1, "f.md", &mut warnings);
            let told: Vec<_> = warnings.iter().map(|one| one.message.as_str()).collect();
            assert_eq!(told, [format!("the key `{expected}")], "{text}");
        };
        check("model: a\nmodel: b", "model` stands there twice; the last one counts");
        check("tools: a\ntools: b", "tools` stands there twice; what both allow counts");
        check(
            "settings: {max_turns: 1}\nsettings: {max_turns: 2, deny: [a]}",
            "settings` stands there twice; what limits the assistant in either counts, and else the last one",
        );
    }

    #[test]
    fn reads_key_by_key() {
        let check = |text: &str, expected: &str| {
            let mut warnings = Vec::new();
            let Content::Entries { entries, lost } = read(text, 2, "f.md", &mut warnings) else { panic!("a list") };
            let mut entries: Vec<_> =
                entries.iter().map(|entry| format!("{}@{}={}", entry.key, entry.line, entry.value.json())).collect();
            entries.extend(lost.iter().map(|(key, line)| format!("-{key}@{line}")));
            let warnings: Vec<_> = warnings.iter().map(|w| format!("{}@{:?}:{:?}", w.code, w.line, w.column)).collect();
            assert_eq!(format!("{} {}", entries.join(" "), warnings.join(" ")).trim_end(), expected, "{text:?}");
        };
        check("name: a\ntools: [x, y]", r#"name@2="a" tools@3=["x","y"]"#);
        check(
            "name: a\ndescription: Use it: always\nmodel: x",
            r#"name@2="a" description@3="Use it: always" model@4="x" yaml_repaired@Some(3):Some(20)"#,
        );
        check(
            "description: So. Examples:\n<example>\nContext: late\nuser: \"hi\"\n</example>\nmodel: x",
            r#"description@2="So. Examples:\n<example>\nContext: late\nuser: \"hi\"\n</example>" model@7="x" yaml_repaired@Some(2):Some(26)"#,
        );
        check(
            "description: \"Open\ntools: Read",
            r#"description@2="\"Open" tools@3="Read" yaml_repaired@Some(2):Some(14)"#,
        );
        check("max-turns: 1\nmaxTurns: 2", r#"maxTurns@3=2 duplicate_key@Some(3):Some(1)"#);
        check("a: &a {tools: [x]}\n<<: *a\nname: n", r#"a@2={"tools":["x"]} tools@2=["x"] name@4="n""#);
        check(
            "description: a: b\n  tools: x\n",
            r#"description@2="a: b\n  tools: x" -tools@3 yaml_repaired@Some(2):Some(15)"#,
        );
        check("description: a: b\napi_key: c", r#"description@2="a: b" api_key@3="c" yaml_repaired@Some(2):Some(15)"#);
        check(
            "x: &deny [a]\nname: b: c\ndisallowedTools: *deny\ntools: *_a",
            r#"name@3="b: c" tools@5="*_a" -disallowedTools@4 yaml_repaired@Some(3):Some(8)"#,
        );
        check("just prose\nmore: prose: here", " yaml_repaired@Some(3):Some(5)");
        check("name: on\nmcp:\n\t- orders", r#"name@2="on" mcp@3="- orders" yaml_repaired@Some(4):Some(2)"#);
    }
}
