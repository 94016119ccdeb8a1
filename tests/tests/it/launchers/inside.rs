//! Tool servers that are started inside of a fence.

use assistant_host::host::{Host, Options};

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_one_without_a_folder_starts_inside() {
    if !can(&["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"]) {
        return;
    }
    let probe = ("run_command", "pwd; test -e /proc/self && echo started".to_owned());
    let mut bed = bed("preset = \"bwrap\"", "mcp__shell__*", calls(&[probe]));
    bed.servers = shell();
    let host = Host::open(Options { project: None, ..bed.options() }).await.expect("a host");
    let client = Client::of(&host).await;
    let (spawned, seen) = run(&client).await;
    let given = given(&client, &spawned).await;
    assert!(seen["status"] == "finished" && given.concat().contains("started"), "{seen}: {given:?}");
    assert!(!given.concat().contains(&bed.state().display().to_string()), "{given:?}");
    client.host.close().await;
}
