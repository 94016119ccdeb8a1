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

#[tokio::test(flavor = "multi_thread")]
async fn a_link_beside_what_is_shown_leads_where_it_leads() {
    if !can(&["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().canonicalize().expect("a path");
    for name in ["bin", "real"] {
        std::fs::create_dir(dir.join(name)).expect("a folder");
    }
    std::fs::write(dir.join("real/prog"), "is-run").expect("a file");
    std::os::unix::fs::symlink("../real/prog", dir.join("bin/prog")).expect("a link");
    let (bin, link) = (dir.join("bin"), dir.join("bin/prog"));
    for shown in [vec![&link], vec![&bin, &link], vec![&link, &bin]] {
        let launcher = format!("preset = \"bwrap\"\nbind_read = {}", json!(shown));
        let probe = ("run_command", format!("cat {}", link.display()));
        let mut bed = bed(&launcher, "mcp__shell__*", calls(&[probe]));
        bed.servers = shell();
        let client = bed.open().await;
        let (spawned, seen) = run(&client).await;
        let given = given(&client, &spawned).await;
        assert!(seen["status"] == "finished" && given.concat().contains("is-run"), "{launcher}: {seen}: {given:?}");
        client.host.close().await;
    }
}
