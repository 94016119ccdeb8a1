//! The examples of the program, run as their guide says, with a scripted model in the place of the real one.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::Shop;
use super::servers::FAKE_SERVER;
use crate::HOST;

const FILES: [&str; 3] = ["review.cpe.yaml", "coder.cpe.yaml", "lead.cpe.yaml"];

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("copied");
        }
    }
}

/// The examples in a folder of their own; `replaced` is what stands for what a test does not have.
fn examples(replaced: bool) -> Shop {
    let shop = Shop { dir: tempfile::tempdir().expect("a folder") };
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/examples/subagent"), shop.dir.path());
    if !replaced {
        return shop;
    }
    for file in FILES.into_iter().chain(["parent/config.toml"]) {
        let text = std::fs::read_to_string(shop.path(file)).expect("a file");
        let script = file.split('.').next().expect("a name");
        let text = text
            .replace("    type: anthropic\n", &format!("    type: scripted\n    script: ./{script}.json\n"))
            .replace("provider = \"anthropic\"", "provider = \"scripted\"\nscript = \"../lead.json\"")
            .replace("command: assistant-host", &format!("command: {HOST}"))
            .replace("command = \"assistant-host\"", &format!("command = \"{HOST}\""))
            .replace("command: npx", &format!("command: {FAKE_SERVER}"))
            .replace("args: [\"-y\"", "args: [\"honest\"");
        shop.write(file, &text);
    }
    let call = |tool: &str, arguments: Value| json!({ "tool_calls": [{ "tool_name": tool, "arguments": arguments }] });
    let script = |steps: Value| json!({ "assistants": [{ "steps": steps }] }).to_string();
    let review = json!({ "verdict": "approve", "summary": "It is small. It is tested.", "findings": [] });
    shop.write("review.json", &script(json!([call("final_answer", review)])));
    let coder = json!([call("shell__echo", json!({ "text": "12 tests passed" })), { "text": "I ran: {{result}}" }]);
    shop.write("coder.json", &script(coder));
    let lead = json!([
        call("coder__implement_change", json!({ "prompt": "{{task}}" })),
        call("review__review_changes", json!({ "prompt": "{{result}}", "inputs": ["prompts/coder.prompt"] })),
        { "text": "The review: {{result}}" },
    ]);
    shop.write("lead.json", &script(lead));
    shop
}

fn with_key(mut command: Command) -> Command {
    command.env("ANTHROPIC_API_KEY", "sk-test").env("PATH", "/usr/bin:/bin");
    command
}

#[test]
fn row_3_15_the_examples_are_in_order_as_they_stand() {
    let shop = examples(false);
    for (file, tool) in FILES.into_iter().zip(["review_changes", "implement_change", "change_and_review"]) {
        let linted = shop.ended(with_key(shop.command(&["config", "lint", "--config", file])));
        assert_eq!(linted, (Some(0), String::new(), format!("DIR/{file}: 0 errors, 0 warnings\n")));
        let (code, stdout, _) = shop.ended(with_key(shop.command(&["mcp", "list-tools", "--config", file])));
        assert!(code == Some(0) && stdout.starts_with(tool), "{stdout}");
    }
    let entries: Value =
        serde_json::from_str(&std::fs::read_to_string(shop.path("parent/mcp.json")).expect("a file")).expect("JSON");
    for server in entries["mcpServers"].as_object().expect("servers").values() {
        assert!(shop.path(server["args"][3].as_str().expect("a file")).is_file(), "{server}");
    }
    let guide = std::fs::read_to_string(shop.path("README.md")).expect("a guide");
    for key in ["`subagent.name`", "`subagent.description`", "`subagent.outputSchemaPath`", "When it does not work"] {
        assert!(guide.contains(key), "the guide has {key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_3_15_a_parent_uses_reviewer_and_coder() {
    let shop = examples(true);
    let command = with_key(shop.command(&["mcp", "serve", "--config", "lead.cpe.yaml"]));
    let mut client = super::Client::start(command).await;
    client.tool = "change_and_review";
    let (said, _) = client.must(json!({ "prompt": "Mend issue 112." })).await;
    client.end().await;
    assert!(said.contains("approve") && said.contains("It is small"), "{said}");
    // Each has its own record.
    for (file, count) in FILES.into_iter().zip([1, 1, 1]) {
        let (code, stdout, _) = shop.run(&["mcp", "runs", "--json", "--config", file]);
        assert_eq!((code, stdout.lines().count()), (Some(0), count), "{file}: {stdout}");
        assert!(stdout.contains("\"finished\""), "{stdout}");
    }
}

#[test]
fn row_3_15_an_assistant_of_a_whole_host_uses_both() {
    let shop = examples(true);
    let places = ["--project", ".", "--config", "parent/config.toml", "--assistants", "parent"];
    let run = |args: &[&str]| {
        let args: Vec<&str> = places.iter().chain(args).copied().collect();
        shop.ended(with_key(shop.command(&args)))
    };
    assert_eq!(run(&["trust", "--all"]).0, Some(0));
    let (code, stdout, stderr) = run(&["run", "--assistant", "lead", "Mend issue 112."]);
    let stopped = run(&["stop", "--force"]);
    assert!(code == Some(0) && stdout.contains("approve"), "{stdout}\n{stderr}\n{stopped:?}");
}
