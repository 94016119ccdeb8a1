//! What a launcher costs: from the spawn to the result with an instant model, as a ratio to this machine as it is. Those
//! whose program does not work here are left out, which is told.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use super::told;
use crate::bed::{Bed, assistant, script};
use crate::launching::{Sshd, can, launchers};
use crate::timing::{p50, tell};

/// Spawns whose middle is told.
const ROUNDS: usize = 50;

/// Measures each launcher that works here.
///
/// # Errors
/// In words: what did not come as it should.
pub async fn measure(runner: &Path) -> Result<(), String> {
    let local = p50(times(runner, "preset = \"local\"").await?);
    tell(&format!("spawn to result, no launcher, p50: {:.2} ms", p50(times(runner, "").await?)));
    told("spawn to result, local, p50", local, ("local", local), None);
    let sshd = Sshd::start();
    let mut all = vec![("env, as the least of programs".to_owned(), "argv = ['env', '{runner}']".to_owned())];
    if can(&["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"]) {
        all.push(("bwrap".to_owned(), "preset = \"bwrap\"".to_owned()));
    }
    if let Some(sshd) = &sshd {
        let there = format!("runner = {}", json!(runner));
        all.push(("ssh to this machine, one connection".to_owned(), sshd.launcher("user", &there)));
        let alone = sshd.launcher("user", &there).replace("options = [", "options = [\"-o\", \"ControlPath=none\", ");
        all.push(("ssh to this machine, a connection each".to_owned(), alone));
    }
    match (std::env::var("STATIC_RUNNER"), std::env::var("PODMAN_IMAGE")) {
        (Ok(brought), Ok(image)) => {
            let options = std::env::var("PODMAN_OPTIONS").unwrap_or_default();
            let options: Vec<&str> = options.split_ascii_whitespace().collect();
            let (options, brought) = (json!(options), json!(brought));
            let podman = format!("preset = \"podman\"\nimage = \"{image}\"\nbring = {brought}\noptions = {options}");
            all.push(("podman".to_owned(), podman));
        }
        _ => tell("podman is left out: STATIC_RUNNER is to name a static runner, PODMAN_IMAGE an image"),
    }
    for (name, launcher) in all {
        let middle = p50(times(runner, &launcher).await?);
        told(&format!("spawn to result, {name}, p50"), middle, ("local", local), None);
    }
    Ok(())
}

async fn times(runner: &Path, launcher: &str) -> Result<Vec<Duration>, String> {
    let steps = script(&[("x", json!([{ "text": "done" }]))]);
    let mut bed = Bed::new(runner, &[("x.md", &assistant("x", ""))], &steps);
    if !launcher.is_empty() {
        bed.launchers = launchers(&format!("[launchers.there]\n{launcher}\n"));
        bed.default_launcher = Some("there".to_owned());
    }
    let client = bed.open().await;
    let mut times = Vec::new();
    // The first one makes what the others share: caches, a connection.
    for round in 0..=ROUNDS {
        let begun = Instant::now();
        let asked = json!({ "assistant_id": "x", "query": "go", "run_mode": "sync" });
        let spawned = client.call("spawn_assistant", asked).await;
        let seen = client.end(&spawned).await;
        if seen["status"] != "finished" {
            return Err(format!("{launcher}: {seen}"));
        }
        if round > 0 {
            times.push(begun.elapsed());
        }
    }
    client.host.close().await;
    Ok(times)
}
