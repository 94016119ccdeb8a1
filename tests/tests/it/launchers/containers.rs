//! podman, where it starts: the runner as one file in an image that has nothing else.
//!
//! `STATIC_RUNNER` names that file (`.ci/static-runner` makes it); `PODMAN_OPTIONS` are further arguments of `podman run`,
//! which some machines need.

use std::sync::atomic::{AtomicU32, Ordering};

use conformance::launching::skipped;
use rmcp::ServiceExt;
use rmcp::transport::TokioChildProcess;

use super::*;
use crate::crash::{McpClient, call};

/// Images that this process has made: each has a name of its own, for each is removed by its test.
static IMAGES: AtomicU32 = AtomicU32::new(0);

/// An image that is empty, or has the runner in it.
struct Image {
    name: String,
    runner: String,
    options: Vec<String>,
}

impl Image {
    /// None where podman does not start; that is printed.
    fn new(with_runner: bool) -> Option<Self> {
        let Ok(runner) = std::env::var("STATIC_RUNNER") else {
            skipped("podman, because STATIC_RUNNER names no runner; `.ci/static-runner` makes one");
            return None;
        };
        if !can(&["podman", "--version"]) {
            return None;
        }
        let options = std::env::var("PODMAN_OPTIONS").unwrap_or_default();
        let options: Vec<String> = options.split_ascii_whitespace().map(str::to_owned).collect();
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(dir.path().join("root")).expect("a folder");
        if with_runner {
            std::fs::copy(&runner, dir.path().join("root/runner")).expect("a file");
        }
        let number = IMAGES.fetch_add(1, Ordering::Relaxed);
        let name = format!("localhost/launch-test-{}-{number}", std::process::id());
        let tar = dir.path().join("root.tar");
        let packed = Command::new("tar").arg("-C").arg(dir.path().join("root")).arg("-cf").arg(&tar).arg(".").status();
        assert!(packed.is_ok_and(|status| status.success()), "it is packed");
        let tar = tar.display().to_string();
        let image = Self { name, runner, options };
        if !can(&["podman", "import", &tar, &image.name]) {
            return None;
        }
        // Whether it starts at all here: with what is no program, it says so itself.
        let mut words = vec!["podman", "run", "--rm", "--network", "none"];
        words.extend(image.options.iter().map(String::as_str));
        let volume = format!("--volume={}:/assistant-runner:ro", image.runner);
        words.extend([volume.as_str(), &image.name, "/assistant-runner", "--build-id"]);
        can(&words).then_some(image)
    }

    fn launcher(&self, more: &str) -> String {
        format!("preset = \"podman\"\nimage = \"{}\"\noptions = {}\n{more}", self.name, json!(self.options))
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let removed = Command::new("podman").args(["rmi", "--force", &self.name]).stdout(Stdio::null()).status();
        drop(removed);
    }
}

/// Containers of a name that there are.
fn containers(name: &str) -> Vec<u32> {
    let listed = Command::new("podman").args(["ps", "--all", "--quiet", "--filter", &format!("name={name}")]).output();
    let listed = listed.expect("podman runs");
    assert!(listed.status.success(), "podman ps: {}", String::from_utf8_lossy(&listed.stderr));
    vec![0; String::from_utf8_lossy(&listed.stdout).lines().count()]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runner_is_brought_into_an_empty_image_or_is_in_it() {
    for with_runner in [false, true] {
        let Some(image) = Image::new(with_runner) else { return };
        let where_it_is =
            if with_runner { "runner = \"/runner\"".to_owned() } else { format!("bring = {}", json!(image.runner)) };
        let steps = json!([
            { "tool_calls": [{ "tool_name": "read_file", "arguments": { "path": "a.txt" } }] },
            { "text": "{{result}}" },
        ]);
        let mut bed = bed(&image.launcher(&where_it_is), "read_file", steps);
        std::fs::write(bed.project().join("a.txt"), "AAA").expect("a file");
        // What is the host's own is hidden in the folder that is shown.
        std::fs::create_dir(bed.project().join("own")).expect("a folder");
        std::fs::write(bed.project().join("key"), "very-secret").expect("a file");
        bed.private = vec![bed.project().join("own"), bed.project().join("key")];
        let client = bed.open().await;
        let (spawned, seen) = run(&client).await;
        let told = client.mail(&spawned).await.concat();
        assert!(seen["status"] == "finished" && told.contains("AAA"), "{with_runner}: {seen}: {told}");
        client.host.close().await;
        let name = format!("assistant-{}", spawned["process_id"].as_str().expect("an id"));
        until_none("containers", || containers(&name)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_one_leaves_no_container() {
    let Some(image) = Image::new(false) else { return };
    // It answers nothing, and heeds nothing.
    let mut bed = bed(
        &image.launcher(&format!("bring = {}\nlaunch_ms = 60000", json!(image.runner))),
        "",
        json!([{ "hang": true }]),
    );
    bed.limits.shutdown_ms = 1;
    let client = bed.open().await;
    let spawned = client.spawn("x", "go").await;
    client.asked(&spawned).await;
    let name = format!("assistant-{}", spawned["process_id"].as_str().expect("an id"));
    assert_eq!(containers(&name).len(), 1);
    client.call("cancel_assistant", json!({ "process_id": spawned["process_id"] })).await;
    client.end(&spawned).await;
    client.host.close().await;
    until_none("containers", || containers(&name)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_is_not_there_is_told() {
    let Some(image) = Image::new(false) else { return };
    let launcher = image.launcher("").replace(&image.name, "localhost/launch-no-such-image");
    let launcher = launcher.replace("options = [", "options = [\"--pull=never\", ");
    let bed = bed(&launcher, "", json!([{ "text": "done" }]));
    let client = bed.open().await;
    let (_, seen) = run(&client).await;
    let error = seen["error"].as_str().unwrap_or_default();
    assert!(seen["reason"] == "launch_failed" && error.contains("launch-no-such-image"), "{seen}");
    client.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_host_leaves_no_container() {
    let Some(image) = Image::new(false) else { return };
    let steps = script(&[("x", json!([{ "hang": true }]))]);
    let bed = Bed::new(RUNNER, &[("x.md", &assistant("x", ""))], &steps);
    let command = super::dies::host(&bed, &steps, &image.launcher(&format!("bring = {}", json!(image.runner))));
    let transport = TokioChildProcess::new(command).expect("a process");
    let pid = transport.id().expect("a pid");
    let client: McpClient = ().serve(transport).await.expect("a client");
    let spawned = call(&client, "spawn_assistant", json!({ "assistant_id": "x", "query": "go" })).await;
    let name = format!("assistant-{}", spawned["process_id"].as_str().expect("an id"));
    let begun = Instant::now();
    while containers(&name).is_empty() {
        assert!(begun.elapsed() < SOON, "it starts");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().expect("kill").success());
    // It reads the end of its stdin.
    until_none("containers", || containers(&name)).await;
    drop(client);
}
