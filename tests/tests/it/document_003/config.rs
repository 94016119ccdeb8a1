//! The file: both examples of the specification load as they stand, and what is said of it without serving it.

use serde_json::{Value, json};

use super::{FILE, Shop};

const REVIEW: &str = include_str!("data/review_agent.cpe.yaml");
const CODER: &str = include_str!("data/coder_agent.cpe.yaml");

/// A shop with the two files of the specification, byte for byte, and what they name.
fn examples() -> Shop {
    let shop = Shop::new(json!([{ "text": "fine" }]));
    shop.write("review_agent.cpe.yaml", REVIEW);
    shop.write("coder_agent.cpe.yaml", CODER);
    shop.write("prompts/review.prompt", include_str!("data/prompts/review.prompt"));
    shop.write("prompts/coder.prompt", include_str!("data/prompts/coder.prompt"));
    shop.write("schemas/review.json", include_str!("data/schemas/review.json"));
    shop
}

#[test]
fn row_3_14_both_examples_load_byte_for_byte() {
    let shop = examples();
    let check = |file: &str, name: &str, description: &str, schema: Value, said: &str| {
        // From another folder: paths start at the file's.
        let path = shop.path(file).display().to_string();
        let run = |args: &[&str]| {
            let mut command = shop.command(args);
            command.args(["--config", &path]).env("ANTHROPIC_API_KEY", "sk-test").current_dir("/");
            shop.ended(command)
        };
        let (code, stdout, stderr) = run(&["mcp", "list-tools", "--json"]);
        assert_eq!((code, stderr.as_str()), (Some(0), ""));
        let told: Value = serde_json::from_str(&stdout).expect("JSON");
        let tool = &told["tools"][0];
        assert_eq!((&tool["name"], &tool["description"]), (&json!(name), &json!(description)));
        assert_eq!(tool["outputSchema"], schema);
        // It starts, and ends with its input.
        assert_eq!(run(&["mcp", "serve"]), (Some(0), String::new(), said.to_owned()));
        assert_eq!(run(&["config", "lint"]).0, Some(0));
    };
    let schema: Value = serde_json::from_str(include_str!("data/schemas/review.json")).expect("JSON");
    check("review_agent.cpe.yaml", "review_changes", "Review a diff and return prioritized feedback.", schema, "");
    // Row 3.13: code mode without an interpreter is a warning, never a refusal.
    let warning = "warning: DIR/coder_agent.cpe.yaml, line 20: `defaults.codeMode.enabled` is true, and this host has no \
                   interpreter: runs go on without one, with the tools of `mcpServers`\n";
    let description = "Make code changes, run tests, and report results.";
    check("coder_agent.cpe.yaml", "implement_change", description, Value::Null, warning);
}

#[test]
fn row_3_14_keys_are_read_in_both_spellings_and_unknown_ones_warn() {
    let shop = Shop::new(json!([{ "text": "fine" }]));
    shop.edit("display_name", "displayName");
    shop.edit("systemPromptPath", "system_prompt_path");
    shop.edit("codeMode", "code_mode");
    shop.edit("version: \"1.0\"\n", "version: 1.0\nsubagents: {}\n");
    shop.edit("  name: review_changes", "  descripton: x\n  name: review_changes");
    let (code, stdout, _) = shop.run(&["config", "lint", "--config", FILE]);
    let want = "warning: DIR/review.cpe.yaml, line 2: `subagents` is no key that is known here, and is left out; `subagent` is\n\
        warning: DIR/review.cpe.yaml, line 12: `subagent.descripton` is no key that is known here, and is left out; \
        `description` is\n";
    assert_eq!((code, stdout.as_str()), (Some(0), want));
}

#[test]
fn row_3_10_config_lint_tells_what_is_wrong() {
    let shop = Shop::new(json!([{ "text": "fine" }]));
    let summary = |errors: &str, warnings: &str| format!("DIR/{FILE}: {errors}, {warnings}\n");
    let good = (Some(0), String::new(), summary("0 errors", "0 warnings"));
    for args in [
        &["config", "lint", "--config", FILE][..],
        &["config", "lint", FILE],
        &["check", "--config", FILE],
        &["check", FILE],
    ] {
        assert_eq!(shop.run(args), good, "{args:?}");
    }
    shop.edit("  description: Review a diff and return prioritized feedback.\n", "  outputSchemaPath: ./none.json\n");
    shop.edit("enabled: false", "enabled: true");
    let (code, stdout, stderr) = shop.run(&["config", "lint", "--config", FILE]);
    let want = "error: DIR/review.cpe.yaml, line 10: `subagent.description` is missing: it tells whoever calls the tool what \
        it is for\n\
        error: DIR/review.cpe.yaml, line 12: `subagent.outputSchemaPath` names DIR/./none.json, which cannot be read: No such \
        file or directory (os error 2)\n\
        warning: DIR/review.cpe.yaml, line 18: `defaults.codeMode.enabled` is true, and this host has no interpreter: runs go \
        on without one, with the tools of `mcpServers`\n";
    assert_eq!((code, stdout.as_str(), stderr), (Some(2), want, summary("2 errors", "1 warning")));
    let (code, stdout, _) = shop.run(&["config", "lint", "--json", "--config", FILE]);
    let told: Value = serde_json::from_str(&stdout).expect("JSON");
    let keys: Vec<_> =
        told["findings"].as_array().expect("a list").iter().map(|one| (&one["severity"], &one["line"])).collect();
    let (error, warning) = (json!("error"), json!("warning"));
    assert_eq!((code, keys), (Some(2), vec![(&error, &json!(10)), (&error, &json!(12)), (&warning, &json!(18))]));
}

#[test]
fn row_3_10_list_tools_shows_the_one_tool() {
    let shop = Shop::new(json!([{ "text": "fine" }]));
    let line = format!("{:<32} Review a diff and return prioritized feedback.\n", "review_changes");
    for args in
        [&["mcp", "list-tools", "--config", FILE][..], &["list-tools", "--config", FILE], &["tools", "--config", FILE]]
    {
        assert_eq!(shop.run(args), (Some(0), line.clone(), String::new()), "{args:?}");
    }
    let (code, stdout, stderr) = shop.run(&["mcp", "list-tools", "--config", "none.yaml"]);
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
    assert_eq!(stderr, "DIR/none.yaml: it cannot be read: No such file or directory (os error 2)\n");
}

#[test]
fn row_3_1_help_displays_usage() {
    let shop = Shop::new(json!([{ "text": "fine" }]));
    let (code, stdout, stderr) = shop.run(&["mcp", "serve", "--help"]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(stdout.contains("Usage:") && stdout.contains("--config <FILE>"), "{stdout}");
}

#[test]
fn row_3_10_variables_of_servers_that_are_not_set_are_told() {
    let shop = Shop::new(json!([{ "text": "fine" }]));
    let servers = "mcp_servers:\n  s:\n    command: x\n    args: [\"${SET}\", \"--at=${NONE:-here}\", \"${A}/${B}\"]\n    env:\n      \
        TOKEN: ${TOKEN}\n  h:\n    url: https://x/${PLACE}\n    headers: { X-Key: \"Bearer ${KEY}\" }\n";
    shop.edit("defaults:", &format!("{servers}defaults:"));
    let mut lint = shop.command(&["config", "lint", "--config", FILE]);
    lint.env("SET", "x");
    let (code, stdout, _) = shop.ended(lint);
    let line = |line: u32, key: &str, variable: &str| {
        format!(
            "warning: DIR/{FILE}, line {line}: `mcp_servers.{key}` cannot be filled in: the variable {variable} is not set \
             here; the server does not start without it\n"
        )
    };
    let want = [
        line(17, "s.args[2]", "A"),
        line(17, "s.args[2]", "B"),
        line(19, "s.env.TOKEN", "TOKEN"),
        line(21, "h.url", "PLACE"),
        line(22, "h.headers.X-Key", "KEY"),
    ];
    assert_eq!((code, stdout), (Some(0), want.concat()));
}
