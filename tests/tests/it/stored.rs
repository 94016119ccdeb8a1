//! Assistants of the database: found as soon as they are stored, many at once, and again after a restart, whatever
//! became of the index.

use std::sync::Arc;

use assistant_host::host::NotStored;
use assistant_host::registry::{Definition, Source, read_markdown};
use conformance::bed::{Bed, Client, SOON, assistant, script};
use futures::future::join_all;
use serde_json::json;

use crate::RUNNER;

/// An assistant `own-N`, whose description has a word that no other has.
fn own(n: usize) -> Definition {
    let text = assistant(&format!("own-{n}"), "").replace("The assistant", &format!("Knits q{n}q."));
    read_markdown(text.as_bytes(), "own.md".as_ref(), Source::Database).expect("one")
}

async fn found(client: &Client, query: &str) -> Vec<String> {
    let found = client.call("search_assistant", json!({ "query": query })).await;
    let items = found["items"].as_array().expect("a list").iter();
    items.map(|one| one["id"].as_str().expect("an id").to_owned()).collect()
}

/// What the table has: rows, and rows that were written at another time than they were made.
fn rows(bed: &Bed) -> (usize, usize) {
    let db = rusqlite::Connection::open(bed.state().join("assistant-host.db")).expect("opens");
    let count = |what: &str| {
        let sql = format!("SELECT count(*) FROM assistants WHERE {what}");
        db.query_row(&sql, [], |row| row.get(0)).expect("a count")
    };
    (count("TRUE"), count("updated_at <> created_at OR deleted_at IS NOT NULL"))
}

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_are_all_found() {
    const COUNT: usize = 200;
    let bed = Bed::new(RUNNER, &[("x.md", &assistant("x", ""))], &script(&[("x", json!([{ "text": "ok" }]))]));
    let client = bed.open().await;
    let host = &client.host;
    let stored = join_all((0..COUNT).map(|n| host.create_assistant(own(n)))).await;
    assert!(stored.iter().all(Result::is_ok), "{stored:?}");
    assert_eq!((host.registry().assistants().len(), rows(&bed)), (COUNT + 1, (COUNT + 1, 0)));
    for n in [0, 7, COUNT - 1] {
        assert_eq!(found(&client, &format!("q{n}q")).await, [format!("own-{n}")]);
    }
    // Changed, removed and made again at once, each by two who want the same: all are as the last one left them.
    let changed = (0..COUNT).map(async |n| {
        let other = Definition { description: format!("Bakes z{n}z."), ..own(n) };
        match n % 2 {
            0 => (host.update_assistant(other.clone()).await, host.update_assistant(other).await),
            _ => (host.remove_assistant(&other.id).await, host.remove_assistant(&other.id).await),
        }
    });
    for (n, change) in join_all(changed).await.into_iter().enumerate() {
        let gone = matches!(change, (Ok(()), Err(NotStored::Unknown(_))));
        assert!(matches!((n % 2, &change), (0, (Ok(()), Ok(())))) || (n % 2 == 1 && gone), "{n}: {change:?}");
    }
    assert_eq!(found(&client, "z0z").await, ["own-0"]);
    assert_eq!(found(&client, "q1q").await, [""; 0]);
    assert_eq!((host.registry().assistants().len(), rows(&bed).0), (COUNT / 2 + 1, COUNT + 1));
    let before = host.registry();
    host.close().await;
    drop(client);
    // The next start reads the same, and writes no row.
    let changes = rows(&bed);
    let client = bed.open().await;
    assert_eq!((client.host.registry() == before, rows(&bed)), (true, changes));
    assert_eq!(found(&client, "z4z").await, ["own-4"]);
    client.host.close().await;
}

/// Whoever gives up a call does not leave an assistant that is stored and cannot be found.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_given_up_is_done_whole() {
    let bed = Bed::new(RUNNER, &[], &script(&[("x", json!([{ "text": "ok" }]))]));
    let client = bed.open().await;
    let host = &client.host;
    let mut changes = host.changes(&host.snapshot().await.expect("read"));
    for n in 0..20 {
        // Polled once, then dropped.
        let given_up = tokio::time::timeout(std::time::Duration::ZERO, host.create_assistant(own(n)));
        drop(given_up.await);
    }
    let all = async {
        while host.registry().assistants().len() < 20 {
            changes.next().await.expect("a change");
        }
    };
    tokio::time::timeout(SOON, all).await.expect("all are there");
    assert_eq!(found(&client, "q19q").await, ["own-19"]);
    host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_became_of_the_index_the_next_start_finds() {
    let bed = Bed::new(RUNNER, &[("x.md", &assistant("x", ""))], &script(&[("x", json!([{ "text": "ok" }]))]));
    let client = bed.open().await;
    for n in 0..12 {
        client.host.create_assistant(own(n)).await.expect("stored");
    }
    client.host.close().await;
    drop(client);
    let folder = bed.state().join("search");
    let each = |change: &dyn Fn(&std::path::Path, Vec<u8>)| {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let bytes = std::fs::read(&path).expect("a file");
            change(&path, bytes);
        }
    };
    let damages: [Arc<dyn Fn()>; 5] = [
        Arc::new(|| std::fs::remove_dir_all(&folder).expect("removed")),
        Arc::new(|| each(&|path, bytes| std::fs::write(path, &bytes[..bytes.len() / 2]).expect("written"))),
        Arc::new(|| each(&|path, bytes| std::fs::write(path, bytes.repeat(2)).expect("written"))),
        Arc::new(|| each(&|path, _| std::fs::write(path, "").expect("written"))),
        Arc::new(|| {
            std::fs::remove_dir_all(&folder).expect("removed");
            std::fs::write(&folder, "no folder").expect("written");
        }),
    ];
    for (n, damage) in damages.iter().enumerate() {
        damage();
        let client = bed.open().await;
        assert_eq!(found(&client, "q7q").await, ["own-7"], "damage {n}");
        client.host.create_assistant(own(100 + n)).await.expect("stored");
        assert_eq!(found(&client, &format!("q{}q", 100 + n)).await, [format!("own-{}", 100 + n)], "damage {n}");
        client.host.close().await;
    }
}
