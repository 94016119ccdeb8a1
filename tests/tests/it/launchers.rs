//! Runners in sandboxes, in containers and on other machines, by `[launchers.NAME]`: with the real programs where they are
//! here, and with stand-ins that check what they are told.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use assistant_host::servers::{Configured, ServerConfig};
use conformance::bed::{Bed, Client, SOON, script};
use conformance::launching::{can, launchers};
use conformance::programs;
use serde_json::{Value, json};

use crate::{RUNNER, SERVER};

mod bwrap;
mod containers;
mod dies;
mod fleet;
mod inside;
mod names;
mod private;
mod ssh;
mod standins;
mod told;

/// An assistant of the launcher `there`, with these tools.
pub(crate) fn assistant(name: &str, tools: &str) -> String {
    conformance::bed::assistant(name, tools).replace("\ntools:", "\nlauncher: there\ntools:")
}

/// A bed on which `x` is started by a launcher, as its configuration says.
pub(crate) fn bed(launcher: &str, tools: &str, steps: Value) -> Bed {
    let mut bed = Bed::new(RUNNER, &[("x.md", &assistant("x", tools))], &script(&[("x", steps)]));
    bed.launchers = launchers(&format!("[launchers.there]\n{launcher}\n"));
    bed
}

/// A server that has a shell and a network, under the name of the preset for that.
pub(crate) fn shell() -> Configured {
    let server = ServerConfig {
        command: Some(SERVER.to_owned()),
        args: vec!["shell".to_owned()],
        env: BTreeMap::new(),
        cwd: None,
        url: None,
        headers: BTreeMap::new(),
        shared: true,
        enabled: true,
        timeout_ms: None,
        start_timeout_ms: None,
        tools: None,
    };
    Configured::read(&BTreeMap::from([("shell".to_owned(), server)]), &[]).expect("servers")
}

/// Calls of these tools of the server, one after the other, with their texts.
pub(crate) fn calls(of: &[(&str, String)]) -> Value {
    let call =
        |(tool, text): &(&str, String)| json!({ "tool_name": format!("shell__{tool}"), "arguments": { "text": text } });
    let mut steps: Vec<Value> = of.iter().map(|one| json!({ "tool_calls": [call(one)] })).collect();
    steps.push(json!({ "text": "done" }));
    Value::Array(steps)
}

/// The texts that the calls of a process gave, in order.
pub(crate) async fn given(client: &Client, spawned: &Value) -> Vec<String> {
    let asked = json!({ "process_id": spawned["process_id"], "limit": 200, "transcript": true });
    let log = client.call("read_log", asked).await;
    let results = log["events"].as_array().into_iter().flatten().filter(|one| one["kind"] == "tool");
    results.map(|one| texts(&one["data"])).collect()
}

/// All texts of a value.
fn texts(value: &Value) -> String {
    match value {
        Value::Array(all) => all.iter().map(texts).collect(),
        Value::Object(map) => {
            let inner = map.iter().filter(|(key, value)| *key == "text" || !value.is_string());
            inner.map(|(_, value)| texts(value)).collect()
        }
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

/// Runs `x` to its end.
pub(crate) async fn run(client: &Client) -> (Value, Value) {
    let spawned = client.spawn("x", "go").await;
    let seen = client.end(&spawned).await;
    (spawned, seen)
}

/// A folder of programs that stand in for those of the system.
pub(crate) struct Bin(pub(crate) tempfile::TempDir);

impl Bin {
    pub(crate) fn new(programs: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        for (name, text) in programs {
            let path = dir.path().join(name);
            programs::write(&path, &format!("#!/bin/sh\n{text}\n"));
        }
        Self(dir)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// Waits until there is nothing of these.
pub(crate) async fn until_none(what: &str, look: impl Fn() -> Vec<u32>) {
    let begun = Instant::now();
    while !look().is_empty() {
        assert!(begun.elapsed() < SOON, "{what} live on: {:?}", look());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Processes whose environment has this text in it.
pub(crate) fn with_environment(text: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if String::from_utf8_lossy(&environment).contains(text) {
            found.push(pid);
        }
    }
    found
}
