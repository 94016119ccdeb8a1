//! The examples do what they say. `cargo test` of the whole package builds them.

use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

const HOST: &str = env!("CARGO_BIN_EXE_assistant-host");

fn example(name: &str) -> Command {
    let bin = Path::new(HOST).with_file_name("examples").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(bin.is_file(), "the examples are not built: run `cargo test -p assistant-host`, or with --examples");
    Command::new(bin)
}

/// Runs a command that has to succeed: what it prints.
fn run(mut command: Command) -> String {
    let output = command.stdin(Stdio::null()).output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn an_app_holds_the_host() {
    let told = run(example("embed"));
    let first = "\"The wall is blue now.\"\nthere is painter\n";
    assert!(told.starts_with(first) || told.starts_with("\"The wall is blue now.\"\n"), "{told}");
    assert!(told.contains(" finished\n") && told.ends_with("painter is gone\n"), "{told}");
}

/// Ends the host of a state directory, whatever becomes of the test.
struct Ended(TempDir);

impl Drop for Ended {
    fn drop(&mut self) {
        let mut stop = Command::new(HOST);
        stop.args(["stop", "--force", "--no-project", "--state"]).arg(self.0.path().join("state"));
        // The folder goes now; a host that lives on ends for want of clients.
        drop(stop.env("HOME", self.0.path()).stderr(Stdio::null()).status());
    }
}

#[test]
fn an_app_uses_a_host_beside_it() {
    let dir = Ended(tempfile::tempdir().expect("a folder"));
    let path = |name: &str| dir.0.path().join(name);
    std::fs::create_dir(path("assistants")).expect("a folder");
    std::fs::write(path("assistants/quick.md"), "---\nname: quick\ndescription: Is quick.\n---\nBe quick.\n")
        .expect("a file");
    std::fs::write(path("script.json"), r#"{ "assistants": [{ "steps": [{ "text": "done" }] }] }"#).expect("a file");
    let config = "default_model = \"s\"\n[models.s]\nprovider = \"scripted\"\nscript = \"script.json\"\n";
    std::fs::write(path("config.toml"), config).expect("a file");
    let mut sidecar = example("sidecar");
    sidecar.arg(HOST).arg("--no-project").arg("--state").arg(path("state")).arg("--config").arg(path("config.toml"));
    sidecar.arg("--assistants").arg(path("assistants")).env("HOME", dir.0.path());
    assert_eq!(run(sidecar), "\"finished\": \"done\"\n");
}
