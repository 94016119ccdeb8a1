//! What is wrong with a file stops the start: a message, exit code 2, nothing on stdout.

use serde_json::json;

use super::{FILE, Shop, TEXT};

fn shop() -> Shop {
    Shop::new(json!([{ "text": "fine" }]))
}

/// Starts the server of `shop`: it has to end with 2, say exactly `want` and nothing on stdout. A last `…` stands for any
/// rest of the line.
fn refused(shop: &Shop, args: &[&str], want: &str) {
    let (code, stdout, stderr) = shop.run(args);
    assert_eq!((code, stdout.as_str()), (Some(2), ""), "{stderr}");
    let said = stderr.trim_end();
    match want.strip_suffix('…') {
        Some(begins) => assert!(said.starts_with(begins) && said.lines().count() == begins.lines().count(), "{said}"),
        None => assert_eq!(said, want),
    }
}

/// The same for a file in which `from` is replaced by `to`.
fn check(from: &str, to: &str, want: &str) {
    let shop = shop();
    shop.edit(from, to);
    refused(&shop, &["mcp", "serve", "--config", FILE], &want.replace("FILE", &format!("DIR/{FILE}")));
}

const PROMPT: &str = "./prompts/review.prompt";
const SUBAGENT: &str =
    "subagent:\n  name: review_changes\n  description: Review a diff and return prioritized feedback.\n";

#[test]
fn row_3_4_no_config() {
    let missing = "--config FILE is missing: it names the file of the subagent, with a key `subagent`";
    refused(&shop(), &["mcp", "serve"], missing);
}

#[test]
fn row_3_4_no_such_file() {
    let want = "DIR/nonexistent.yaml: it cannot be read: No such file or directory (os error 2)";
    refused(&shop(), &["mcp", "serve", "--config", "./nonexistent.yaml"], want);
    refused(&shop(), &["mcp", "--config", "nonexistent.yaml"], want);
    refused(&shop(), &["mcp", "serve", "--config", "prompts"], "DIR/prompts: it cannot be read: it is no file");
}

#[test]
fn row_3_4_no_yaml() {
    let written = |text: &[u8], want: &str| {
        let shop = shop();
        std::fs::write(shop.path(FILE), text).expect("a file");
        refused(&shop, &["mcp", "serve", "--config", FILE], &want.replace("FILE", &format!("DIR/{FILE}")));
    };
    written(b"models: [\n", "FILE, line 1: this is no YAML: …");
    written(b"\tx", "FILE, line 1: this is no YAML of keys and values");
    written(b"- a\n- b\n", "FILE, line 1: this is no YAML of keys and values");
    written(b"just a text", "FILE, line 1: this is no YAML of keys and values");
    written(b"subagent: \xff\xfe", "FILE: it cannot be read: it is no UTF-8");
    written(&vec![b'#'; 1024 * 1024 + 1], "FILE: it cannot be read: it has more than 1048576 bytes");
    // Eight levels of ten aliases each.
    let bomb: String =
        (1..9).map(|n| format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 10].join(", "))).collect();
    written(format!("a0: &a0 [x]\n{bomb}").as_bytes(), "FILE, line …");
    let empty = "warning: FILE: `version` is missing; the file is read as \"1.0\"\n\
        warning: FILE: `defaults.systemPromptPath` is missing: the model is told nothing but the task\n\
        FILE: `subagent` is missing: it names the one tool that is served, with `name` and `description`\n\
        FILE: `defaults.model` is missing: it says which model answers; `models` has none";
    written(b"", empty);
    written(b"\xef\xbb\xbf# only a comment\n", empty);
}

#[test]
fn row_3_4_no_subagent() {
    let missing = "FILE: `subagent` is missing: it names the one tool that is served, with `name` and `description`";
    check(SUBAGENT, "", missing);
    check(SUBAGENT, "subagent:\n", &missing.replace("FILE", "FILE, line 10"));
    check(SUBAGENT, "subagent: [a]\n", "FILE, line 10: `subagent` has to be keys and values, and is a list");
    check(SUBAGENT, "subagent: on\n", "FILE, line 10: `subagent` has to be keys and values, and is a text");
}

#[test]
fn row_3_4_no_name_and_no_description() {
    check("  name: review_changes\n", "", "FILE, line 10: `subagent.name` is missing: it is the name of the tool");
    check("name: review_changes", "name: ' '", "FILE, line 11: `subagent.name` is missing: it is the name of the tool");
    let description = "description: Review a diff and return prioritized feedback.";
    let missing = "`subagent.description` is missing: it tells whoever calls the tool what it is for";
    check(&format!("  {description}\n"), "", &format!("FILE, line 10: {missing}"));
    check(description, "description: \"\"", &format!("FILE, line 12: {missing}"));
    let long = format!("description: {}", "x".repeat(8 * 1024 + 1));
    check(description, &long, "FILE, line 12: `subagent.description` has 8193 bytes, the most is 8192");
    let rule = "which is no name of a tool: 1 to 64 letters, digits, `_` and `-`, the first a letter";
    for name in ["review changes", "1st", "../x", "überprüfen", "a/b", "_x"] {
        let want = format!("FILE, line 11: `subagent.name` is `{name}`, {rule}");
        check("name: review_changes", &format!("name: \"{name}\""), &want);
    }
    let long = "n".repeat(65);
    check(
        "name: review_changes",
        &format!("name: {long}"),
        &format!("FILE, line 11: `subagent.name` is `{}…", "n".repeat(60)),
    );
}

#[test]
fn row_3_4_unknown_model() {
    let has = "`models` has m";
    check(
        "model: m\n",
        "model: opus\n",
        &format!("FILE, line 15: `defaults.model` is `opus`, which is no `ref` of `models`: {has}"),
    );
    check(
        "  model: m\n",
        "",
        &format!("FILE, line 14: `defaults.model` is missing: it says which model answers; {has}"),
    );
    let models = "  - ref: m\n    display_name: \"Scripted\"\n    id: scripted-1\n    type: scripted\n    script: ./script.json\n";
    check(models, "", "FILE, line 10: `defaults.model` is `m`, which is no `ref` of `models`: `models` has none");
    let twice = format!("{models}{models}");
    check(models, &twice, "FILE, line 9: `models[1].ref` is `m`, as `models[0].ref` is; each needs its own");
    check(
        "type: scripted",
        "type: telepathy",
        "FILE, line 7: `models[0].type` is `telepathy`, which this host cannot speak to; it can be …",
    );
    check(
        "    type: scripted\n",
        "",
        "FILE, line 4: `models[0].type` is missing: it says what speaks to the model, as `anthropic`",
    );
    check("script.json", "none.json", "FILE, line 4: `models[0]` (`models.m.script`) does not fit: …");
    check(
        "    script: ./script.json\n",
        "",
        "FILE, line 4: `models[0]` (`models.m.script`) is needed: the file of the scripted replies",
    );
    let anthropic = "type: anthropic\n    base_url: \"no address\"";
    check("type: scripted\n    script: ./script.json", anthropic, "FILE, line 4: `models[0]` (`models.m.base_url`) …");
    check(
        "    id: scripted-1\n    type: scripted",
        "    type: anthropic",
        "FILE, line 4: `models[0].id` is missing: it is the provider's name of the model",
    );
}

#[test]
fn row_3_4_key_not_set() {
    let anthropic = "type: anthropic\n    api_key_env: NO_SUCH_KEY";
    let want = "`models[0].api_key_env` cannot be used: the environment variable NO_SUCH_KEY, which holds its key, is not \
                set; set it where this program is started";
    check("type: scripted\n    script: ./script.json", anthropic, &format!("FILE, line 8: {want}"));
    let shop = shop();
    shop.edit("type: scripted\n    script: ./script.json", anthropic);
    let mut command = shop.command(&["mcp", "serve", "--config", FILE]);
    command.env("NO_SUCH_KEY", "  ");
    let (code, stdout, stderr) = shop.ended(command);
    assert_eq!(
        (code, stdout.as_str(), stderr.trim_end()),
        (Some(2), "", format!("DIR/{FILE}, line 8: {want}").as_str())
    );
    // A file that is in order is no worse for what is not set here.
    let (code, stdout, _) = shop.run(&["config", "lint", "--config", FILE]);
    assert_eq!((code, stdout.trim_end()), (Some(0), format!("warning: DIR/{FILE}, line 8: {want}").as_str()));
}

#[test]
fn row_3_4_no_prompt() {
    let names = "FILE, line 16: `defaults.systemPromptPath` names DIR";
    let missing = "which cannot be read: No such file or directory (os error 2)";
    check(PROMPT, "./prompts/none.prompt", &format!("{names}/./prompts/none.prompt, {missing}"));
    check(PROMPT, "./prompts", &format!("{names}/./prompts, which cannot be read: it is no file"));
    check(PROMPT, "~/none", &format!("{names}/home/none, {missing}"));
    let shop = shop();
    std::fs::write(shop.path("prompts/review.prompt"), b"\xff").expect("a file");
    let want = format!(
        "DIR/{FILE}, line 16: `defaults.systemPromptPath` names DIR/{PROMPT}, which cannot be read: it is no UTF-8"
    );
    refused(&shop, &["mcp", "serve", "--config", FILE], &want);
}

#[test]
fn row_3_4_no_schema() {
    let written = |schema: Option<&str>, want: &str| {
        let shop = shop();
        shop.edit("feedback.\n", "feedback.\n  outputSchemaPath: ./schemas/review.json\n");
        if let Some(schema) = schema {
            shop.write("schemas/review.json", schema);
        }
        let want = format!("DIR/{FILE}, line 13: `subagent.outputSchemaPath` names DIR/./schemas/review.json{want}");
        refused(&shop, &["mcp", "serve", "--config", FILE], &want);
    };
    written(None, ", which cannot be read: No such file or directory (os error 2)");
    written(Some("{ not JSON"), ", which is no JSON: key must be a string at line 1 column 3");
    written(Some(""), ", which is no JSON: EOF while parsing a value at line 1 column 0");
    written(Some("[]"), ", which is no JSON schema: it has to be an object");
    written(Some(r#"{ "type": "nonsense" }"#), ", which is no JSON schema: …");
    written(Some(r#"{ "type": 12 }"#), ", which is no JSON schema: …");
    written(Some(r#"{ "properties": { "a": { "pattern": "(" } } }"#), ", which is no JSON schema: …");
    // Nothing is fetched.
    written(Some(r#"{ "$ref": "http://127.0.0.1:9/x.json" }"#), ", which refers to `http://127.0.0.1:9/x.json`; …");
    written(Some(r#"{ "$ref": "file:///etc/passwd" }"#), ", which refers to `file:///etc/passwd`; …");
    written(
        Some(&format!("{{\"description\": \"{}\"}}", "x".repeat(64 * 1024))),
        ", which has 65554 bytes, the most is 65536",
    );
    written(
        Some(r##"{ "type": "array", "items": { "$ref": "#" } }"##),
        ": a schema that is none of an object can refer only to its `$defs`",
    );
}

#[test]
fn row_3_4_what_does_not_fit() {
    check("\"1.0\"", "\"2.0\"", "FILE, line 1: `version` is 2.0; this host reads 1.0");
    check(
        "enabled: false",
        "enabled: perhaps",
        "FILE, line 18: `defaults.codeMode.enabled` has to be true or false, and is `perhaps`",
    );
    let defaults = &TEXT[TEXT.find("defaults:").expect("stands there")..];
    check(defaults, "defaults: [m]\n", "FILE, line 14: `defaults` has to be keys and values, and is a list");
    check(
        "name: review_changes",
        "name: { a: b }",
        "FILE, line 11: `subagent.name` has to be a text, and is keys and values",
    );
    check(
        "  name: review_changes\n",
        "  name: review_changes\n  name: other\n",
        "FILE, line 12: `subagent.name` stands there twice; keep one",
    );
}

#[test]
fn row_3_4_servers_that_cannot_be() {
    let server = |text: &str, want: &str| {
        check("defaults:", &format!("mcpServers:\n  files:\n{text}\ndefaults:"), &format!("FILE, line {want}"));
    };
    server("    type: stdio", "15: `mcpServers.files.command` is missing: a stdio server is a program");
    server("    type: http", "15: `mcpServers.files.url` is missing: it says where the server is");
    server("    type: sse\n    url: ftp://x", "17: `mcpServers.files.url` begins with neither http:// nor https://");
    server("    type: pigeon\n    command: x", "16: `mcpServers.files.type` has to be stdio, http or sse");
    server("    args: [a]", "15: `mcpServers.files` has neither `command` nor `url`: nothing could be started");
    server(
        "    command: x\n    url: http://x",
        "15: `mcpServers.files` has `command` and `url`: keep one, or say with `type` which of them counts",
    );
    server("    command: x\n    args: all", "17: `mcpServers.files.args` has to be a list, and is a text");
    // What may be a secret is not shown.
    server(
        "    command: x\n    env: sk-very-secret",
        "17: `mcpServers.files.env` has to be keys and values, and is a text",
    );
}

#[test]
fn row_3_4_limits_that_cannot_be() {
    check("defaults:", "limits: { deepness: 3 }\ndefaults:", "FILE, line 14: `limits` unknown field `deepness`, …");
    let zero = "FILE, line 14: `limits.turns` is 0, so that nothing could run; leave it out, or give a number above";
    check("defaults:", "limits: { turns: 0 }\ndefaults:", zero);
    check(
        "defaults:",
        "output_repairs: many\ndefaults:",
        "FILE, line 14: `output_repairs` has to be a whole number, and is `many`",
    );
}

#[test]
fn row_3_4_all_that_is_wrong_is_told_at_once() {
    let shop = shop();
    shop.edit("model: m\n", "model: opus\n");
    shop.edit(PROMPT, "./none");
    shop.edit("name: review_changes", "name: no name");
    let (code, stdout, stderr) = shop.run(&["mcp", "serve", "--config", FILE]);
    let lines: Vec<&str> = stderr.lines().map(|line| line.split(" is ").next().expect("words")).collect();
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
    let want = [
        format!("DIR/{FILE}, line 11: `subagent.name`"),
        format!("DIR/{FILE}, line 15: `defaults.model`"),
        format!(
            "DIR/{FILE}, line 16: `defaults.systemPromptPath` names DIR/./none, which cannot be read: No such file or directory (os error 2)"
        ),
    ];
    assert_eq!(lines, want);
}

#[tokio::test(flavor = "multi_thread")]
async fn row_3_5_errors_name_what_the_client_sent() {
    let shop = shop();
    let client = shop.client().await;
    let long = client.call(json!({ "prompt": "x".repeat(3 << 20) })).await;
    let error: serde_json::Value = serde_json::from_str(&super::text(&long)).expect("an error as JSON");
    assert_eq!(error["message"], "`prompt` has 3145728 bytes, the most is 1048576");
    assert_eq!(long.meta, None, "nothing was run");
    let unknown = client.call(json!({ "run_id": "0198f0a0-0000-7000-8000-000000000000" })).await;
    assert_eq!((unknown.is_error, unknown.meta), (Some(true), None));
    let (code, message) = client.refused(json!({ "runId": 7 })).await;
    assert_eq!((code.as_str(), message.as_str()), ("bad_argument", "`runId` is 7, and has to be of type string"));
    client.end().await;
    assert_eq!(shop.runs().len(), 0);
}

#[test]
fn row_3_4_keys_are_told_as_they_are_written() {
    let repairs = |key: &str| {
        let want = format!("FILE, line 1: `{key}` has to be a whole number, and is `-1`");
        check("version:", &format!("{key}: -1\nversion:"), &want);
    };
    repairs("output_repairs");
    repairs("outputRepairs");
    let servers = |key: &str| {
        let want = format!("FILE, line 15: `{key}.files.command` is missing: a stdio server is a program");
        check("defaults:", &format!("{key}:\n  files:\n    type: stdio\ndefaults:"), &want);
    };
    servers("mcp_servers");
    servers("mcpServers");
    let missing = "FILE, line 15: `defaults.system_prompt_path` names DIR/./gone, which cannot be read: …";
    let prompt = format!("systemPromptPath: {PROMPT}");
    let shop = shop();
    shop.edit(&prompt, "system_prompt_path: ./gone");
    refused(
        &shop,
        &["mcp", "serve", "--config", FILE],
        &missing.replace("FILE, line 15", &format!("DIR/{FILE}, line 16")),
    );
    check(
        "version:",
        "output_repairs: 1\noutputRepairs: 1\nversion:",
        "FILE, line 2: `output_repairs` stands there twice, also as `outputRepairs`; keep one",
    );
}
