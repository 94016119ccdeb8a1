use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::Map;

use super::*;
use crate::registry::examples::take_out;
use crate::registry::{NAME_CHARS_MAX, Registry, sources};
use crate::testing;
use crate::text::cut;

/// A definition of which only the name is known.
fn named(name: &str) -> Definition {
    let text = format!("---\nname: {}\n---\nx\n", json!(name));
    content(&read_markdown(text.as_bytes(), Path::new("x.md"), Source::Dir).expect("an assistant"))
}

/// What comes of a definition that is written and read again.
fn again(definition: &Definition) -> Result<Definition, String> {
    let written = write(definition).map_err(|error| error.to_string())?;
    let read = read_markdown(written.text.as_bytes(), Path::new(&written.file), Source::Dir);
    Ok(content(&read.map_err(|reason| reason.to_string())?))
}

#[test]
fn a_file_for_people() {
    let servers = json!({ "orders": { "args": ["--port", "7"], "command": "orders-mcp" } });
    let definition = Definition {
        description: "Checks invoices: all of them.\nSlowly.".into(),
        tools: Some(vec!["read_file".into(), "Bash(git log:*, git show:*)".into()]),
        disallowed_tools: vec!["Write".into()],
        model: vec!["sonnet".into()],
        tags: vec!["money".into(), "back office".into()],
        allowed_callers: Some(Vec::new()),
        max_turns: Some(7),
        timeout_ms: Some(60_000),
        mcp_servers: Some(servers),
        extra: Map::from_iter([("color".to_owned(), json!("red")), ("x".to_owned(), json!(null))]),
        examples: vec!["Does 77 match?".into(), "one\ntwo".into()],
        system_prompt: "  --- \n---\nCheck.".into(),
        ..named("3000")
    };
    let expected = r#"---
name: "3000"
description: |-
  Checks invoices: all of them.
  Slowly.
  <example>
  user: Does 77 match?
  </example>
  <example>
  one
  two
  </example>
tools: [read_file, "Bash(git log:*, git show:*)"]
disallowedTools: [Write]
model: sonnet
tags: [money, back office]
allowed_callers: []
maxTurns: 7
timeout_ms: 60000
mcpServers:
  orders:
    args: ["--port", "7"]
    command: orders-mcp
color: red
x: null
---

  --- 
---
Check.
"#;
    assert_eq!(write(&definition), Ok(Written { file: "3000.md".into(), text: expected.into(), blanks: Vec::new() }));
    assert_eq!(again(&definition), Ok(definition));
}

#[test]
fn what_other_systems_say_is_kept() {
    let check = |text: &str| {
        let text = format!("---\nname: x\n{text}\n---\nGo.\n");
        let found = read_markdown(text.as_bytes(), Path::new("x.md"), Source::Dir).expect("an assistant");
        assert_eq!(again(&found), Ok(content(&found)), "{text}");
    };
    check("display_name: The Y");
    check("tools: [Agent(a, b), Read]\nagents: [b, c]");
    check("tools: {read: true, bash: ask}\ndisallowedTools: {x: [y]}");
    check("tools: {read: true, bash: ask, write: false}");
    check("tools: {'*': false, 'a, b': true}");
    check("permission:\n  '*': deny\n  read: allow\n  edit: ask\n  bash: {'git *': allow, '*': deny}\nmode: subagent");
    check("permissions: {allow: [Read], deny: ['Bash(rm:*)'], ask: [Write]}");
    check("tools: {'*': true, 'x_*': false, x_a: true}\npermission: {'*': ask, 'x_*': allow, bash: {'rm *': deny}}");
    check("permission: {bash: {'rm *': deny}}");
    check("permission: {'x_*': deny, x_a: allow, read: allow}\npermissionRules: ['bash: ask', '*: allow']");
    check("permission: {'x_*': deny, x_a: allow}\ndisallowedTools: [x_a]\npermissionRules: ['x_b: allow']");
    check("permissionMode: plan\nsession: true\noutput_schema: {type: object}");
    check("readonly: perhaps\nagents: []\ndisable-model-invocation: true");
    check("mode: primary\nallowedBuiltinServiceAliases: a, b");
    check("settings: {permissions: {allow: [Read], deny: [LS]}}\nrestrictedTools: [x]\nforbid: y");
    check("tols: [Read]\nallowed_callers: {a: [b]}");
    check("settings: {max_turns: 3, goose_model: m}\nextensions: [{type: builtin, name: d}]\nprompt: p");
}

#[test]
fn what_a_file_cannot_hold_is_told() {
    let check = |definition: Definition, expected: &str| {
        assert_eq!(
            write(&definition).map(|written| written.blanks.join(", ")).map_err(|e| e.to_string()),
            Err(expected.into())
        );
    };
    let x = || named("x");
    let differs = |field: &str| format!("`x` cannot be written to a file: its {field} would read differently");
    check(Definition { tags: vec!["#a".into()], ..x() }, &differs("tags"));
    check(Definition { model: vec!["inherit".into()], ..x() }, &differs("model"));
    check(Definition { timeout_ms: Some(u64::MAX - 1), ..x() }, &differs("timeout_ms"));
    check(Definition { mcp_servers: Some(Value::Null), ..x() }, &differs("extra"));
    let twice = Map::from_iter([("Tools".to_owned(), json!({ "a": [] }))]);
    check(Definition { tools: Some(vec!["a".into()]), extra: twice, ..x() }, &differs("tools, disallowed_tools"));
    let control = "`x` cannot be written to a file: a control character stands at byte 18; the file is no text";
    check(Definition { system_prompt: "a\u{1b}[0m".into(), ..x() }, control);
    let long = "`x` cannot be written to a file: it has 2000018 bytes, and 1048576 is the most that is read";
    check(Definition { system_prompt: "x".repeat(2_000_000), ..x() }, long);
    let blanks = Definition { system_prompt: "\n x\r\ny \n".into(), description: " a  \nb\n".into(), ..x() };
    assert_eq!(write(&blanks).map(|written| written.blanks), Ok(vec!["description", "system_prompt"]));
}

#[test]
fn names_of_files() {
    let check = |name: &str, expected: &str| assert_eq!(file_name(&named(name).id), expected);
    check("C++ Helper", "cpp-helper.md");
    check("发票核对", "发票核对.md");
    check("../x", "x.md");
    check("NUL", "nul-assistant.md");
    check("com7", "com7-assistant.md");
    check("comet", "comet.md");
    let letter = "𐐨";
    check(&letter.repeat(64), &format!("{}-{}.md", letter.repeat(50), &sha256_hex(letter.repeat(64).as_bytes())[..8]));
}

/// Texts with what YAML, Markdown and our reader see something in.
fn text() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        4 => "[a-z]{1,6}",
        4 => Just(" ".to_owned()),
        2 => Just("\n".to_owned()),
        2 => r#"[-:#,&*!|>'"%@`{}\[\]()?~<=.\\/$^;_+0-9\t]{1,3}"#,
        1 => prop::sample::select(vec![
            ": ", " #", "---", "\n---\n", "\n...\n", "\\n", "yes", "null", "1e3", "0x1f", "<example>", "</example>",
            "user:", "\r\n", "\u{7}", "\u{85}", "\u{2028}", "\u{feff}", "\u{0}", "发票", "é", "e\u{301}", "🧾", "\u{202e}", "```", "<<", "  ", "{{x}}", "${X:-y}", "name: x", "tools: [a]",
        ])
        .prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    vec(pieces, 0..12).prop_map(|pieces| pieces.concat())
}

/// Any JSON that survives being JSON.
fn value() -> impl Strategy<Value = Value> {
    let number = any::<f64>().prop_map(|number| json!(number));
    let stable = |value: &Value| serde_json::from_str::<Value>(&value.to_string()).is_ok_and(|read| read == *value);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        number.prop_filter("the store keeps it", stable),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            btree_map(text(), inner, 0..5).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn names() -> impl Strategy<Value = Vec<String>> {
    let name = r"[A-Za-z0-9_*][A-Za-z0-9_*. ,/-]{0,9}[A-Za-z0-9_*](\([a-z:*, ]{0,9}\))?";
    let mut names: Vec<_> = Vec::new();
    names.extend(["Bash(git log:*, git show:*)", "yes", "404", "a, b", "Read", "null"].map(str::to_owned));
    // In a map, which holds what a list does not, a name stands once.
    let one = prop_oneof![name, prop::sample::select(names)];
    // Parentheses that hold nothing are no name that a reader takes.
    let holds =
        |name: &String| name.split_once('(').is_none_or(|(_, rest)| !rest.trim_end_matches(')').trim().is_empty());
    vec(one.prop_filter("it holds something", holds), 0..4).prop_map(sorted)
}

/// Each once.
fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names.dedup();
    names
}

prop_compose! {
    /// What a reader may make of some file.
    fn definition()(
        name in text(), description in text(), examples in vec(text(), 0..3), prompt in text(),
        tools in option::of(names()), disallowed in names(), models in vec("[a-zA-Z0-9./:-]{1,12}", 0..3),
        tags in vec("[a-z发][a-z -]{0,8}[a-z]", 0..3), callers in option::of(names()), turns in option::of(1..u32::MAX),
        ms in option::of(1..1_u64 << 53), servers in option::of(btree_map(text(), value(), 0..3)), extra in btree_map("x-[a-z]{1,3}[: #\"é]?", value(), 0..4),
    ) -> Definition {
        let name = cut(&name.split_whitespace().collect::<Vec<_>>().join(" "), NAME_CHARS_MAX);
        let name = if name.is_empty() { "x".to_owned() } else { name };
        let examples: String = examples.iter().map(|one| format!("<example>{one}</example>")).collect();
        let (description, examples) = (take_out(&description).0, take_out(&examples).1);
        let printable = |c: &char| !c.is_control() || matches!(c, '\n' | '\t' | '\u{80}'..);
        let prompt: String = prompt.chars().filter(printable).collect();
        let wish = |model: &String| !matches!(model.to_ascii_lowercase().as_str(), "inherit" | "default");
        // Of two keys that are one but for their spelling, a reader keeps one.
        let folded: BTreeMap<_, _> = extra.into_iter().map(|entry| (known::fold(&entry.0), entry)).collect();
        Definition {
            id: AssistantId::from_name(&name, "x"),
            description,
            system_prompt: prompt.trim_start_matches('\n').trim_end().to_owned(),
            tools,
            disallowed_tools: disallowed,
            model: models.into_iter().filter(wish).collect(),
            tags: sorted(tags),
            allowed_callers: callers,
            max_turns: turns,
            timeout_ms: ms,
            mcp_servers: servers.map(|servers| Value::Object(servers.into_iter().collect())),
            extra: Map::from_iter(folded.into_values()),
            examples,
            ..Definition { name, ..named("x") }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_reads_the_same(definition in definition()) {
        let written = write(&definition);
        prop_assert_eq!(written.as_ref().map(|written| written.blanks.len()), Ok(0));
        prop_assert_eq!(again(&definition), Ok(definition));
    }
}

#[test]
fn real_files_are_written_and_read_the_same() {
    let Some(corpus) = testing::corpus() else { return };
    let registry = Registry::read(&sources(None, None, None, &[corpus.join("agents")]));
    let mut wrong = Vec::new();
    for definition in registry.assistants() {
        match again(definition) {
            Ok(read) if read == content(definition) => {}
            Ok(_) => wrong.push(format!("{:?}: another one", definition.path)),
            Err(error) => wrong.push(format!("{:?}: {error}", definition.path)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(registry.assistants().len() > 700, "the corpus is read");
}
