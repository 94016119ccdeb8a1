//! The command line: what it prints where, and its exit codes.

use std::path::Path;
use std::process::{Output, Stdio};

use conformance::bed::{Bed, SOON, assistant, script};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::{HOST, RUNNER};

/// A bed that the background host of the commands is ended with.
struct WithHost(Bed);

impl std::ops::Deref for WithHost {
    type Target = Bed;

    fn deref(&self) -> &Bed {
        &self.0
    }
}

impl Drop for WithHost {
    fn drop(&mut self) {
        let mut stop = std::process::Command::new(HOST);
        stop.args(["stop", "--force", "--state", "state"]).current_dir(self.dir.path()).stderr(Stdio::null());
        // Where that fails the host ends for want of clients.
        drop(stop.status());
    }
}

fn bed(steps: Value) -> WithHost {
    let bed = Bed::new(
        RUNNER,
        &[("x.md", &assistant("x", "")), ("bad.md", "no frontmatter here\n")],
        &script(&[("x", json!([{ "text": "y" }]))]),
    );
    let config = "default_model = \"s\"\n[models.s]\nprovider = \"scripted\"\nscript = \"script.json\"\n";
    std::fs::write(bed.dir.path().join("config.toml"), config).expect("a file");
    std::fs::write(bed.dir.path().join("script.json"), script(&[("x", steps)]).to_string()).expect("a file");
    WithHost(bed)
}

/// The program in the bed's folder, without keys and without a home.
fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(HOST);
    command.args(args).current_dir(folder).env_clear().env("HOME", folder).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

async fn run(bed: &Bed, args: &[&str]) -> Output {
    let output = command(bed.dir.path(), args).output();
    tokio::time::timeout(SOON, output).await.expect("it ends").expect("it runs")
}

/// Runs the program and compares its exit code and parts of what it prints.
async fn check(bed: &Bed, args: &[&str], code: i32, stdout: &str, stderr: &str) {
    let output = run(bed, args).await;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{args:?}: {out} {err}");
    assert!(out.contains(stdout) && err.contains(stderr), "{args:?}\nstdout: {out}\nstderr: {err}");
}

const PLACES: [&str; 6] = ["--assistants", "assistants", "--state", "state", "--config", "config.toml"];

fn with<'a>(args: &[&'a str]) -> Vec<&'a str> {
    args.iter().chain(&PLACES).copied().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_command_tells_by_its_exit_code() {
    let bed = bed(json!([{ "text": "the result" }]));
    let before: Vec<&str> = PLACES.iter().chain(&["run", "assistant of the tests"]).copied().collect();
    check(&bed, &before, 0, "the result\n", "finished after").await;
    check(&bed, &with(&["run", "go", "--assistant", "x"]), 0, "the result\n", "asks s").await;
    let other = ["run", "go", "--assistant", "x", "--embedded", "--state", "other"];
    check(&bed, &[&other[..], &PLACES[..2], &PLACES[4..]].concat(), 0, "the result\n", "asks s").await;
    check(&bed, &with(&["run", "knitting"]), 3, "", "no assistant shares a word").await;
    check(&bed, &with(&["run", "go", "--assistant", "y"]), 3, "", "no assistant has the id `y`").await;
    check(
        &bed,
        &with(&["run", "go", "--assistant", "x", "--model", "gpt"]),
        4,
        "",
        "the model `gpt` is not configured",
    )
    .await;
    check(&bed, &with(&["run", " "]), 2, "", "`query` is empty; Write the whole task into it").await;
    let nowhere = ["run", "assistant of the tests", "--assistants", "assistants", "--embedded"];
    check(&bed, &nowhere, 4, "", "No model is configured").await;
    check(&bed, &["list", "--assistants", "nowhere"], 2, "", "there is no such folder").await;
    check(&bed, &["list", "--config", "nowhere"], 2, "", "cannot read nowhere").await;
    check(&bed, &["fly"], 2, "", "unrecognized subcommand").await;
    check(&bed, &with(&["list"]), 0, "x ", "1 assistant, 0 of them repaired; 0 shadowed, 1 file skipped").await;
    check(&bed, &with(&["search", "the tests"]), 0, "x ", "").await;
    check(&bed, &with(&["search", ""]), 2, "", "the query is empty").await;
    check(&bed, &with(&["search", "!!! ???"]), 0, "", "none of 1 assistants fits").await;
    check(&bed, &["list"], 0, "", "no project was found").await;
    let both = ["--assistants", "assistants", "list", "--assistants", "project"];
    check(&bed, &both, 0, "x ", "1 assistant, 0 of them repaired; 0 shadowed, 1 file skipped").await;
    check(&bed, &with(&["tools"]), 0, "spawn_assistant", "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_has_files_and_a_schema() {
    let bed = bed(json!([{ "text": "{{task}}", "tool_calls": [
        { "tool_name": "final_answer", "arguments": { "said": "{{task}}" } },
    ] }]));
    let write = |name: &str, text: &str| std::fs::write(bed.dir.path().join(name), text).expect("written");
    write("schema.json", r#"{ "type": "object", "required": ["said"] }"#);
    write("none.json", r#"{ "type": "text" }"#);
    write("half.json", "{");
    write("project/notes.txt", "N");
    let go = ["run", "go", "--assistant", "x", "--project", "project"];
    let run_with = |more: &[&'static str]| with(&[&go[..], more].concat());
    let whole = run_with(&["--input", "project/notes.txt", "--output-schema", "schema.json"]);
    let path = bed.project().canonicalize().expect("a folder").join("notes.txt");
    let said = json!({ "said": format!("<file path=\"{}\">\nN\n</file>\n\ngo", path.display()) });
    check(&bed, &whole, 0, &format!("{said}\n"), "finished after").await;
    let output = run(&bed, &[&whole[..], &["--json"]].concat()).await;
    let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(told["structured"], said, "{told}");
    check(
        &bed,
        &run_with(&["--output-schema", "none.json"]),
        2,
        "",
        "none.json: the schema is no JSON schema: at /type",
    )
    .await;
    check(&bed, &run_with(&["--output-schema", "half.json"]), 2, "", "half.json: EOF while parsing").await;
    check(&bed, &run_with(&["--input", "nothing"]), 2, "", "nothing: No such file").await;
    check(&bed, &run_with(&["--input", "schema.json"]), 2, "", "lies outside of the folder").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn json_is_json() {
    let bed = bed(json!([{ "text": "the result" }]));
    let json = async |args: &[&str]| -> Value {
        let output = run(&bed, &with(args)).await;
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let ran = json(&["run", "go", "--assistant", "x", "--json"]).await;
    assert_eq!(
        (&ran["status"], &ran["result"], &ran["model_calls"]),
        (&json!("finished"), &json!("the result"), &json!(1))
    );
    let listed = json(&["list", "--json"]).await;
    assert_eq!(listed["totals"], json!({ "assistants": 1, "shadowed": 0, "skipped": 1 }));
    assert!(
        listed["skipped"][0]["message"].as_str().is_some_and(|reason| reason.contains("no frontmatter")),
        "{listed}"
    );
    let found = json(&["search", "the tests", "--json"]).await;
    assert_eq!(found["items"][0]["assistant_id"], "x");
    let tools = json(&["tools", "--json"]).await;
    assert_eq!(tools["tools"].as_array().map(Vec::len), Some(12));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_run_is_cancelled() {
    let bed = bed(json!([{ "hang": true }]));
    let mut child = command(bed.dir.path(), &with(&["run", "go", "--assistant", "x"])).spawn().expect("it runs");
    let mut stderr = tokio::io::BufReader::new(child.stderr.take().expect("stderr"));
    let asked = async {
        let mut line = String::new();
        while !line.contains("asks s") {
            line.clear();
            let read = tokio::io::AsyncBufReadExt::read_line(&mut stderr, &mut line).await.expect("a line");
            assert!(read > 0, "it ended before it asked");
        }
    };
    tokio::time::timeout(SOON, asked).await.expect("it asks its model");
    let pid = child.id().expect("a pid").to_string();
    std::process::Command::new("kill").args(["-INT", &pid]).status().expect("kill");
    let status = tokio::time::timeout(SOON, child.wait()).await.expect("it ends").expect("it ends");
    assert_eq!(status.code(), Some(130));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_tells_its_story() {
    let bed = bed(json!([{ "text": "y" }]));
    check(&bed, &["demo"], 0, "three cases are not covered", "").await;
}
