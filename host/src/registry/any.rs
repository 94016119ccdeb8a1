//! Any bytes as a file of any dialect end in a definition or in a reason, within the bounds.

use std::path::Path;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::Config;

use super::fields::LIST_MAX;
use super::yaml::{Kind, NODES_MAX, Node};
use super::{AssistantId, Definition, NAME_CHARS_MAX, Source, data, read, yaml};

/// Paths of every dialect and format.
const PATHS: &[&str] = &[
    "x.md",
    "/p/.claude/agents/x.md",
    "/p/.github/agents/x.agent.md",
    "/p/.opencode/agents/a/x.md",
    "/p/.gemini/agents/x.md",
    "/p/.gemini/agents/_x.md",
    "/p/.cursor/agents/x.md",
    "/p/.codex/agents/x.toml",
    "/p/.goose/recipes/x.yaml",
    "/p/.pi/agents/x.md",
    "/p/agents/x/agent.md",
    "x.json",
    "x.yml",
    "***.md",
    "x.csv",
];

/// Whole files, one of each shape, to be changed.
const SHAPES: &[&str] = &[
    "---\nname: a b\ndescription: \"Does x. <example>user: hi</example>\"\ntools: Read, Bash(git log:*)\nmodel: [m, n]\n\
     color: red\nhooks: {a: [b]}\n---\n\nBody\n---\nMore\n",
    "---\ndescription: So: it is\n<example>\nContext: late\nuser: \"hi\"\n</example>\ntools:\n  read: true\n  bash: ask\n\
     permission:\n  '*': deny\n  bash: {'git *': allow}\nmode: subagent\n---\nBody\n",
    "---\nname: x\nallowed_callers: [main]\npermissions:\n  allow: [\"Bash(curl:*)\"]\n  deny: []\nmcp_servers:\n  - name: s\n\
     \x20   env: {A: \"${A}\"}\ntimeout_ms: 30000\nsession: true\n---\nBody\n",
    "---\n- kind: remote\n  name: x\n---\n",
    "---\nx: &x [a, b]\ny: [*x, *x]\n<<: {tools: [Read]}\nname: n\n---\nBody",
    "name = \"a\"\ndescription = \"d\"\nsandbox_mode = \"read-only\"\ndeveloper_instructions = '''\nGo.\n'''\n\
     [mcp_servers.s]\ncommand = \"c\"\n",
    "title: T\ndescription: d\nprompt: |\n  Line\nparameters:\n  - {key: k}\nextensions:\n  - {type: builtin, name: d}\n\
     settings: {max_turns: 3}\nresponse: {json_schema: {type: object}}\n",
    "{\"name\": \"x\", /* c */ \"prompt\": \"p \\ud83d\\ude00\", \"tools\": {\"a\": true}, \"agent\": {\"b\": {}}}",
];

/// What is put in: what means something to a format, and what breaks one.
const PIECES: &[&str] = &[
    "---",
    "---\n",
    "...",
    "\n",
    "\n\n",
    "name",
    "description",
    "tools",
    "allowed_callers",
    "prompt",
    ": ",
    ":",
    "- ",
    "[",
    "]",
    "{",
    "}",
    "&a ",
    "*a",
    "!t ",
    "|",
    ">",
    "\"",
    "'",
    "'''",
    "\"\"\"",
    "\t",
    "  ",
    "<example>",
    "</example>",
    "user:",
    "\\n",
    "\\u0000",
    "#",
    "%",
    "é",
    "票",
    "\r\n",
    "\r",
    "\u{feff}",
    "\0",
    ",",
    "(",
    ")",
    "=",
    " = ",
    "[a]\n",
    "[[a]]\n",
    "//",
    "/*",
    "*/",
    "```",
    "~~~",
    "<<: ",
    "null",
    "~",
    "true",
    "1e999",
    "\u{85}",
    "\u{2028}",
    "🧾",
];

fn config(cases: u32) -> Config {
    Config { cases, failure_persistence: None, ..Config::default() }
}

/// One change of a text: what is done, where (as a share of its length), with which piece.
fn changed(text: &str, changes: &[(u8, f64, &str)]) -> String {
    let mut text = text.to_owned();
    for (what, at, piece) in changes {
        let mut at = (text.len() as f64 * at) as usize;
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        match what {
            0 => text.insert_str(at, piece),
            1 => text.truncate(at),
            2 => text.insert_str(at, &piece.repeat(200)),
            3 => text.insert_str(at, &text.clone()),
            4 => text = text.replacen(piece, "", 1),
            5 => text = text.replacen('\n', piece, 1),
            _ => text = text[at..].to_owned(),
        }
        if text.len() > 100_000 {
            return text;
        }
    }
    text
}

/// What holds of whatever `bytes` are read as.
fn holds(bytes: &[u8], path: &str) -> Result<(), TestCaseError> {
    let found = read(bytes, Path::new(path), Source::Dir);
    prop_assert_eq!(&found, &read(bytes, Path::new(path), Source::Dir), "the same bytes, another answer");
    let lines = u32::try_from(bytes.split(|byte| matches!(byte, b'\n' | b'\r')).count()).expect("few lines");
    let told = match &found {
        Ok(found) => &found.warnings,
        Err(reason) => &vec![reason.clone()],
    };
    for one in told {
        prop_assert!(!one.message.is_empty() && one.file == path, "{one:?}");
        prop_assert!(one.line.is_none_or(|line| (1..=lines).contains(&line)), "{one:?} of {lines}");
        prop_assert!(one.column.is_none_or(|column| column > 0), "{one:?}");
    }
    let Ok(found) = found else { return Ok(()) };
    prop_assert_eq!(found.id.as_str().parse::<AssistantId>(), Ok(found.id.clone()));
    prop_assert!(!found.name.trim().is_empty() && found.name.chars().count() <= NAME_CHARS_MAX);
    let lists = [found.tools.as_ref(), Some(&found.disallowed_tools), Some(&found.model), Some(&found.tags)];
    let lists = lists.into_iter().chain([found.allowed_callers.as_ref(), found.may_spawn.as_ref()]);
    prop_assert!(lists.flatten().all(|list| list.len() <= LIST_MAX));
    let again: Definition = serde_json::from_str(&serde_json::to_string(&found).expect("JSON")).expect("the same");
    prop_assert_eq!(found, again);
    Ok(())
}

/// How many values there are in `node`.
fn count(node: &Node) -> usize {
    1 + match &node.kind {
        Kind::Scalar { .. } => 0,
        Kind::Seq(nodes) => nodes.iter().map(count).sum(),
        Kind::Map(entries) => entries.iter().map(|entry| count(&entry.value)).sum(),
    }
}

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400), path in select(PATHS)) {
        holds(&bytes, path)?;
    }

    #[test]
    fn any_pieces(pieces in proptest::collection::vec(select(PIECES), 0..60), open in any::<bool>(), path in select(PATHS)) {
        let text = format!("{}{}", if open { "---\n" } else { "" }, pieces.concat());
        holds(text.as_bytes(), path)?;
        let closed = format!("---\n{}\n---\nBody", pieces.concat());
        holds(closed.as_bytes(), path)?;
    }

    #[test]
    fn changed_files(
        shape in select(SHAPES),
        path in select(PATHS),
        changes in proptest::collection::vec((0_u8..7, 0.0..1.0, select(PIECES)), 1..8),
    ) {
        holds(changed(shape, &changes).as_bytes(), path)?;
    }

    /// Whatever stands behind `tools` and `allowed_callers` on their line, neither is as if nothing stood there.
    #[test]
    fn access_is_never_open_by_mistake(pieces in proptest::collection::vec(select(PIECES), 1..12)) {
        let value: String = pieces.concat().chars().filter(|c| !matches!(c, '\n' | '\r' | '\0' | '\u{85}' | '\u{2028}')).collect();
        let bare = value.trim_matches([' ', '\t', '\u{feff}']);
        let bare = bare.split([' ', '\t']).next().unwrap_or(bare);
        let nothing = matches!(bare, "" | "~" | "null") || bare.starts_with('#');
        let text = format!("---\nname: n\ntools: {value}\nallowed_callers: {value}\n---\nBody");
        if let Ok(found) = read(text.as_bytes(), Path::new("x.md"), Source::Dir) {
            let said = found.tools.is_some() || !found.disallowed_tools.is_empty() || !found.rules.is_empty();
            prop_assert!(nothing || said, "{:?}", found);
            prop_assert!(found.allowed_callers.is_some(), "{:?}", found);
        }
        // Nor does a second key open what one closes.
        let text = format!("---\nname: n\ntools: []\nallowed-tools: {value}\nagents: []\nagents: {value}\n---\nBody");
        if let Ok(found) = read(text.as_bytes(), Path::new("x.md"), Source::Dir) {
            prop_assert_eq!((found.tools, found.may_spawn), (Some(Vec::new()), Some(Vec::new())));
        }
    }
}

/// Whether a line of `text` ends frontmatter, told apart from the code that looks for it.
fn ends(text: &str) -> bool {
    let dashes = |line: &str| line.len() >= 3 && line.bytes().all(|byte| byte == b'-');
    text.lines().any(|line| line.trim_end() == "..." || dashes(line.trim_end()))
}

proptest! {
    #![proptest_config(config(600))]

    /// Whatever stands on the lines around keys of access, they are not as if they were not there.
    #[test]
    fn access_is_never_lost(
        before in proptest::collection::vec(select(PIECES), 0..8),
        after in proptest::collection::vec(select(PIECES), 0..8),
    ) {
        let (before, after) = (before.concat(), after.concat());
        let keys = "tools: []\nallowed_callers: []";
        if !ends(&before.replace('\r', "\n")) {
            let text = format!("---\nname: n\n{before}\n{keys}\n{after}\n---\nBody");
            if let Ok(found) = read(text.as_bytes(), Path::new("x.md"), Source::Dir) {
                prop_assert_eq!((&found.tools, &found.allowed_callers), (&Some(Vec::new()), &Some(Vec::new())), "{}", text);
            }
        }
        // Behind the first line of dashes, where only that of the end seems to be there.
        if !ends(&before.replace('\r', "\n")) {
            let text = format!("name: n\ndescription: d\n---\n{before}\n{keys}\n{after}\n---\nBody");
            if let Ok(found) = read(text.as_bytes(), Path::new("x.md"), Source::Dir) {
                prop_assert_eq!((&found.tools, &found.allowed_callers), (&Some(Vec::new()), &Some(Vec::new())), "{}", text);
            }
        }
        // A table's header takes what follows it, and a long text what it holds.
        if ["[", "'''", "\"\"\""].iter().all(|sign| !before.contains(sign)) {
            let keys = keys.replace(": ", " = ");
            let text = format!("prompt = \"p\"\n{before}\n{keys}\n{after}\n");
            if let Ok(found) = read(text.as_bytes(), Path::new("/p/.codex/agents/x.toml"), Source::Dir) {
                prop_assert_eq!((&found.tools, &found.allowed_callers), (&Some(Vec::new()), &Some(Vec::new())), "{}", text);
            }
        }
    }
}

proptest! {
    #![proptest_config(config(40))]

    /// Work is bounded by the values that are made, however often an alias repeats them.
    #[test]
    fn values_are_bounded(levels in 1_usize..40, width in 1_usize..40, long in 0_usize..3_000) {
        let mut text = format!("a0: &a0 [{}]\n", "x".repeat(long));
        for level in 1..levels {
            let alias = format!("*a{}, ", level - 1).repeat(width);
            text.push_str(&format!("a{level}: &a{level} [{alias}]\n"));
        }
        if let Ok(node) = yaml::parse(&text) {
            prop_assert!(count(&node) <= NODES_MAX);
        }
        if let Ok(found) = data::toml(&format!("a = [{}]", "[1, 2], ".repeat((levels * width * 10).min(NODES_MAX))), "x.toml", &mut Vec::new()) {
            let values: usize = found.entries.iter().map(|entry| count(&entry.value)).sum();
            prop_assert!(values <= NODES_MAX);
        }
    }
}
