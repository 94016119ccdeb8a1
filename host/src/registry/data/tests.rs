use std::path::Path;

use super::super::{Source, read};
use super::*;

/// What a file at `path` is: dialect, id, prompt and codes with their places, or the reason why it is none.
fn told(path: &str, text: &str) -> String {
    match read(text.as_bytes(), Path::new(path), Source::Dir) {
        Ok(found) => {
            let codes = found
                .warnings
                .iter()
                .map(|one| format!(" {}@{}:{}", one.code, one.line.unwrap_or(0), one.column.unwrap_or(0)));
            format!("{:?} {} {:?}{}", found.dialect, found.id, found.system_prompt, codes.collect::<String>())
        }
        Err(why) => format!("{}@{}:{}", why.code, why.line.unwrap_or(0), why.column.unwrap_or(0)),
    }
}

#[test]
fn toml_of_codex() {
    let check = |text: &str, expected: &str| assert_eq!(told("/p/.codex/agents/x.toml", text), expected, "{text}");
    check(
        "name = \"a\"\ndescription = \"d\"\nnickname_candidates = [\"Al\"]\ndeveloper_instructions = '''\nGo.\n'''\n",
        r#"Codex a "Go." key_unused@3:1"#,
    );
    check(
        "description = \"d\"\ndeveloper_instructions = \"Go.\"\n[mcp_servers.s]\ncommand = \"c\"\n",
        r#"Codex x "Go." name_from_file@1:0"#,
    );
    check(
        "name = \"a\"\ndescription = no quotes\ndeveloper_instructions = \"Go.\"\nsandbox_mode = \"read-only\"\n",
        r#"Codex a "Go." toml_repaired@2:15"#,
    );
    check("[agents.a]\nconfig_file = \"a.toml\"\n[agents.b]\n", "several_agents@1:2");
    check("[package]\nname = \"x\"\n", "not_an_agent@0:0");
    check("", "empty_file@0:0");
    check(&format!("prompt = \"p\"\nx = [{}]", "1, ".repeat(NODES_MAX)), "data_too_complex@0:0");
}

#[test]
fn broken_toml_opens_nothing() {
    let text = "developer_instructions = \"Go.\"\ntools = [\"Read\", \nsandbox_mode == \"read-only\"\nallowed_callers = main\n";
    let found = read(text.as_bytes(), Path::new("x.toml"), Source::Dir).expect("a definition");
    let closed = found.warnings.iter().filter(|one| one.code == Code::AccessClosed).count();
    assert_eq!((found.tools, found.readonly, found.allowed_callers, closed), (Some(vec![]), true, Some(vec![]), 3));
}

#[test]
fn depth_is_bounded() {
    let deep = |open: &str, close: &str| format!("prompt = \"p\"\nx = {}{}", open.repeat(5_000), close.repeat(5_000));
    assert!(told("x.toml", &deep("[", "]")).contains("toml_repaired"));
    assert!(told("x.toml", &deep("{a = ", "}")).contains("toml_repaired"));
    let json = format!("{{\"prompt\": \"p\", \"x\": {}{}}}", "[".repeat(5_000), "]".repeat(5_000));
    assert!(told("/p/.goose/recipes/x.json", &json).starts_with("data_too_complex"));
    assert!(told("x.json", &json).starts_with("not_an_agent"));
}

#[test]
fn yaml_and_json() {
    let check = |path: &str, text: &str, expected: &str| assert_eq!(told(path, text), expected, "{path} {text}");
    check(
        "x.json",
        "{\n  // what it is\n  \"title\": \"A b\", /* and */ \"prompt\": \"say \\\"//\\\"\",\n}",
        r#"GooseRecipe a-b "say \"//\"" kind_goose_recipe@1:0 name_normalised@1:0 description_missing@1:0"#,
    );
    check(
        "x.json",
        r#"{"description": "d", "prompt": "p 😀 \/ \ud83d\ude00"}"#,
        r#"GooseRecipe x "p 😀 / 😀" name_from_file@1:0 kind_goose_recipe@1:0"#,
    );
    check(
        "x.json",
        r#"{"description": "d", "prompt": "p", "permission": {"bash": "deny"}, "name": "y"}"#,
        r#"Opencode y "p""#,
    );
    check(
        "x.yaml",
        "title: T\ndescription: So: it is\nprompt: |\n  Line one\n  Line: two\n",
        r#"GooseRecipe t "Line one\nLine: two" yaml_repaired@2:16 kind_goose_recipe@1:0 name_normalised@1:0"#,
    );
    check("package.json", r#"{"name": "x", "description": "d", "scripts": {}}"#, "not_an_agent@0:0");
    check("w.yml", "name: CI\non: push\njobs: {a: {steps: []}}\n", "not_an_agent@0:0");
    check("opencode.json", r#"{"agent": {"a": {"prompt": "p"}, "b": {}}}"#, "several_agents@1:2");
    check("l.json", "[1, 2]", "not_an_agent@1:0");
    check("l.yaml", "just text", "not_an_agent@1:0");
    check("/p/.goose/recipes/b.json", "{\"prompt\": ", "data_broken@1:1");
    check("b.json", "{\"prompt\": ", "not_an_agent@1:1");
    check("e.json", "", "not_an_agent@0:0");
    check("card.yaml", "kind: remote\nagent_card_url: https://example.org\n", "remote_agent@1:1");
    check("x.csv", "act,prompt\n", "unknown_format@0:0");
}
