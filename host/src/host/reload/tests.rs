//! The search index of a host whose files are damaged below it.

use std::fs;

use serde_json::{Value, json};

use super::*;
use crate::host::Ending;
use crate::launcher::RunnerCommand;
use crate::registry;
use crate::search::SearchError;
use crate::testing::Folder;

/// A host with one assistant, and the folder of its index.
async fn host(folder: &Folder) -> (Host, std::path::PathBuf) {
    folder.write("agents/cook.md", "---\nname: cook\ndescription: Cooks plums\n---\nYou cook.\n");
    let mut options = Options::new(folder.path().join("state"), RunnerCommand::new("no-runner"));
    options.sources = registry::sources(None, None, None, &[folder.path().join("agents")]);
    let index = options.state.join(crate::search::FOLDER);
    (Host::open(options).await.expect("a host"), index)
}

/// Changes the files of the index with this ending.
fn damage(index: &std::path::Path, ending: &str, change: impl Fn(&fs::File, u64)) {
    for entry in fs::read_dir(index).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == ending) {
            let length = fs::metadata(&path).expect("a file").len();
            change(&fs::File::options().write(true).open(path).expect("a file"), length);
        }
    }
}

/// A query that fails by itself has no index read anew, however often it is asked.
#[tokio::test(flavor = "multi_thread")]
async fn only_a_damaged_index_is_read_anew() {
    let folder = Folder::new();
    let (host, files) = host(&folder).await;
    let first = host.search();
    assert!(!host.search_anew(&first).await.expect("looked at"), "its files are whole");
    assert!(Arc::ptr_eq(&first, &host.search()));
    let garbage = |mut file: &fs::File, length: u64| {
        std::io::Write::write_all(&mut file, &vec![0xff; length as usize]).expect("written");
    };
    damage(&files, "term", garbage);
    assert!(host.search_anew(&first).await.expect("read anew"));
    let next = host.search();
    assert!(!Arc::ptr_eq(&first, &next));
    assert!(host.search_anew(&first).await.expect("another one has done it"));
    assert!(Arc::ptr_eq(&next, &host.search()));
    host.close().await;
}

/// Who closes waits for no checksums: an update that comes too late fails, and the next start has it; a damaged index is left
/// to that, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_closes_reads_no_index_anew() {
    let folder = Folder::new();
    let (first, files) = host(&folder).await;
    let index = first.search();
    index.stop();
    folder.write("agents/baker.md", "---\nname: baker\ndescription: Bakes bread\n---\nYou bake.\n");
    assert!(matches!(first.reload().await, Err(OpenError::Search(SearchError::Stopped))));
    first.close().await;
    damage(&files, "term", |mut file, length| {
        std::io::Write::write_all(&mut file, &vec![0xff; length as usize]).expect("written");
    });
    assert!(!first.search_anew(&index).await.expect("not looked at"));
    assert!(Arc::ptr_eq(&index, &first.search()));
    drop((first, index));
    let (next, _) = host(&folder).await;
    let found = next.search().search("bread", &crate::search::Filter::default(), 1).expect("a search");
    assert_eq!(found.hits[0].id.as_str(), "baker");
    next.close().await;
}

/// Elsewhere nobody can make a mapped file shorter.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn whichever_file_becomes_shorter_below_a_host_it_finds() {
    let folder = Folder::new();
    let (host, files) = host(&folder).await;
    let session = host.open_session("a test", "main").await.expect("a session");
    let Value::Object(query) = json!({ "query": "plums" }) else { panic!("an object") };
    for ending in ["term", "idx", "json", "fieldnorm", "fast", "store", "pos"] {
        damage(&files, ending, |file, _| file.set_len(0).expect("cut"));
        let found = host.call(session, "search_assistant", query.clone()).await.expect("an answer");
        assert_eq!((&found["items"][0]["id"], &found["total_matches"]), (&json!("cook"), &json!(1)), "{ending}");
    }
    host.end_session(session, Ending::Now).await.expect("ended");
    host.close().await;
}
