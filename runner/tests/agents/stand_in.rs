//! An agent that does what a file says.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::host::{Host, Setup};

/// Where the data of tests is.
pub(crate) fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// Where folders of tests are that only their owner writes to: some agents take no settings, and start no sandbox, elsewhere.
fn cache() -> PathBuf {
    let cache = PathBuf::from(std::env::var_os("HOME").expect("a home")).join(".cache");
    std::fs::create_dir_all(&cache).expect("a folder");
    cache
}

/// A new folder there.
pub(crate) fn own_folder() -> TempDir {
    tempfile::Builder::new().prefix("assistant-runner-test-").tempdir_in(cache()).expect("a folder")
}

/// Whether others may write to where those folders are: Gemini CLI is not run there.
pub(crate) fn others_write_there() -> bool {
    use std::os::unix::fs::PermissionsExt;
    let open = |folder: &Path| std::fs::metadata(folder).expect("is there").permissions().mode() & 0o022 != 0;
    cache().ancestors().any(open)
}

/// A stand-in for one agent, and its folder.
pub(crate) struct StandIn {
    pub(crate) setup: Setup,
    folder: TempDir,
}

impl StandIn {
    /// For the agent of this name.
    pub(crate) fn of(name: &'static str) -> Self {
        let folder = own_folder();
        let more = ["--play".to_owned(), folder.path().join("play").display().to_string()];
        let program = data().join("stand_in.py");
        let home = folder.path().to_owned();
        Self { setup: Setup { name, program, env: Vec::new(), more: more.to_vec(), home, turns: None }, folder }
    }

    /// What it does in turns from now on, in order.
    pub(crate) fn plays(&self, steps: &Value) {
        let steps = steps.as_array().expect("a list").iter().map(|step| format!("{step}\n")).collect::<String>();
        // Whole or not at all: a turn may begin at any time.
        let (new, play) = (self.path("play.new"), self.path("play"));
        std::fs::write(&new, steps).and_then(|()| std::fs::rename(&new, &play)).expect("writes");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A step that notes what it was started with.
    pub(crate) fn notes(&self) -> Value {
        json!(["note", self.path("notes").display().to_string()])
    }

    /// What was noted so far, a turn each.
    pub(crate) fn noted(&self) -> Vec<Value> {
        let notes = std::fs::read_to_string(self.path("notes")).expect("was noted");
        notes.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    pub(crate) async fn host(&self) -> Host {
        Host::start(&self.setup).await
    }
}

/// What Claude Code writes in the end of a turn.
pub(crate) fn result(text: &str) -> Value {
    json!([
        "out",
        json!({
            "type": "result", "subtype": "success", "is_error": false, "result": text, "session_id": "s-1",
            "stop_reason": "end_turn", "total_cost_usd": 0.5, "usage": { "input_tokens": 10, "output_tokens": 2 },
        })
        .to_string()
    ])
}

/// What it writes when it says something.
pub(crate) fn says(text: &str) -> Value {
    let content = json!([{ "type": "text", "text": text }]);
    json!(["out", json!({ "type": "assistant", "message": { "model": "m", "content": content } }).to_string()])
}
