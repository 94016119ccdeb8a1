//! Where servers run, and how deep.

use assistant_host::limits::Limits;
use serde_json::json;

use super::{Served, calls, definition, server};

#[tokio::test]
async fn a_folder_is_below_the_project() {
    let servers = server(&["honest"], ", cwd: inner");
    let served =
        Served::new(&[definition("a", &servers)], &[("a", calls(&[("s__place", json!({}))]))], Limits::default()).await;
    let spawned = served.client.spawn("a", "go").await;
    served.client.end(&spawned).await;
    std::fs::create_dir(served.bed.project().join("inner")).expect("a folder");
    let place = served.run("a").await;
    assert!(place.ends_with("project/inner"), "{place}");
}

#[tokio::test]
async fn the_depth_goes_on_in_a_server() {
    let served = Served::one(&["honest"], &[("s__env", json!({}))]).await;
    let told = served.run("a").await;
    assert!(told.contains("\"ASSISTANT_HOST_DEPTH\":\"1\""), "{told}");
}
