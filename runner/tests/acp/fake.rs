//! An agent that does as it is told, well and badly (`tests/data/acp_agent.py`). It needs `python3`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::host::{Host, Judge, allow, ended, skip};

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/acp_agent.py")
}

/// Whether there is a Python; told where there is none.
pub(crate) fn has_python(test: &str) -> bool {
    let found = Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        skip(&format!("{test} needs python3 on PATH"));
    }
    found
}

/// An agent in one of its modes, with the file of what it got.
pub(crate) struct Agent {
    pub(crate) host: Host,
    pub(crate) log: tempfile::NamedTempFile,
}

impl Agent {
    pub(crate) async fn start(mode: &str, judge: Judge) -> Self {
        let log = tempfile::NamedTempFile::new().expect("a file");
        let script = script();
        let args = ["--".as_ref(), "python3".as_ref(), script.as_os_str(), mode.as_ref(), log.path().as_os_str()];
        Self { host: Host::start(&args, &[], judge).await, log }
    }

    /// What the agent got of a method.
    pub(crate) fn got(&self, method: &str) -> Vec<Value> {
        let lines = std::fs::read_to_string(self.log.path()).expect("a log");
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        lines.filter(|line| line["method"] == method).collect()
    }
}

/// One run of an agent in a mode: how it ends, and what is told behind its session.
pub(crate) async fn check_with(mode: &str, judge: Judge, end: &str, told: &[&str]) {
    let agent = Agent::start(mode, judge).await;
    let result = ended(agent.host.run("the task", json!({})).await);
    let mut all = agent.host.told();
    all.retain(|line| line != "session s1");
    assert_eq!((result.as_str(), all), (end, told.iter().map(|line| (*line).to_owned()).collect()), "{mode}");
    agent.host.end().await;
}

pub(crate) async fn check(mode: &str, end: &str, told: &[&str]) {
    check_with(mode, allow, end, told).await;
}

impl Agent {
    pub(crate) fn late_answer(&self) -> Option<Value> {
        let lines = std::fs::read_to_string(self.log.path()).expect("a log");
        let answers = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        answers.into_iter().find(|line| line["id"] == "late").map(|line| line["result"].clone())
    }
}
