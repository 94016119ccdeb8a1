//! Rows in a real store: what is kept, who finds it, and what is passed on.

use std::sync::Arc;

use assistant_protocol::ids::SessionId;
use tempfile::TempDir;

use super::*;
use crate::store::Store;

struct Bed {
    _dir: TempDir,
    store: Store,
}

/// Two processes of a tree and one of another, each of a session of its own principal but the second.
struct Three {
    first: ProcessId,
    child: ProcessId,
    other: ProcessId,
}

impl Bed {
    async fn new() -> (Self, Three, [SessionId; 2]) {
        let dir = tempfile::tempdir().expect("a folder");
        let store = Store::open(dir.path(), Arc::new(|| 1)).expect("opens");
        let bed = Self { _dir: dir, store };
        let (mine, theirs) = (SessionId::mint(), SessionId::mint());
        let three = Three { first: ProcessId::mint(), child: ProcessId::mint(), other: ProcessId::mint() };
        let mut sql = format!(
            "INSERT INTO sessions (session_id, principal, caller_name, created_at) VALUES ('{mine}', 'me', 'main', 1),
               ('{theirs}', 'them', 'main', 1);
             INSERT INTO snapshots (hash, definition) VALUES ('s', '{{}}');"
        );
        for (id, root, session) in
            [(three.first, three.first, mine), (three.child, three.first, mine), (three.other, three.other, theirs)]
        {
            sql.push_str(&format!(
                "INSERT INTO assistant_processes (process_id, assistant_id, snapshot, parent_assistant_id, root_process_id,
                   session_id, thread_id, depth, status, query, tools, unavailable_tools, model, limits, created_at)
                 VALUES ('{id}', 'a', 's', 'main', '{root}', '{session}', '{id}', 1, 'running', 'go', '[]', '[]', 'm',
                   '{{}}', 1);"
            ));
        }
        bed.write(move |tx| Ok(tx.db.execute_batch(&sql)?)).await.expect("SQL");
        (bed, three, [mine, theirs])
    }

    async fn write<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Tx<'_>) -> Result<T, NotKept> + Send + 'static,
    ) -> Result<T, NotKept> {
        self.store.write(job).await
    }

    async fn keep(&self, process: ProcessId, bytes: &[u8], limits: Limits) -> Result<Handle, String> {
        let blob = Blob::new(bytes.to_vec(), "a/b", Some("name"));
        let handle = blob.handle();
        let kept = self.write(move |tx| keep(tx, process, [&blob], &limits)).await;
        kept.map(|()| handle).map_err(|error| error.to_string())
    }

    fn finds(&self, caller: Caller, handle: &str) -> Option<u64> {
        let handle = handle.parse().expect("a handle");
        self.store.look(|db| find(db, caller, &handle)).expect("a look").map(|found| found.bytes)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_has_a_bound_and_the_same_bytes_count_once() {
    let (bed, three, _) = Bed::new().await;
    let limits = Limits { tree_blob_bytes: 10, ..Limits::default() };
    assert!(bed.keep(three.first, b"123456", limits).await.is_ok());
    assert!(bed.keep(three.first, b"123456", limits).await.is_ok());
    assert!(bed.keep(three.child, b"123456", limits).await.is_ok());
    assert!(bed.keep(three.child, b"7890", limits).await.is_ok(), "exactly as much as there may be");
    let full = "limit tree_blob_bytes: the blobs of this tree of processes have 11 bytes, the most is 10";
    assert_eq!(bed.keep(three.first, b"!", limits).await, Err(full.to_owned()));
    assert!(bed.keep(three.other, b"!", limits).await.is_ok());
    assert!(bed.keep(three.first, b"", limits).await.is_ok(), "nothing is something too");
    let count = |sql: &str| bed.store.look(|db| Ok::<i64, StoreError>(db.query_row(sql, [], |row| row.get(0))?));
    assert_eq!(count("SELECT count(*) FROM blobs").expect("a count"), 4);
    assert_eq!(count("SELECT count(*) FROM blob_uses").expect("a count"), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_who_has_a_use_finds_it_and_passes_it_on() {
    let (bed, three, [mine, theirs]) = Bed::new().await;
    let handle = bed.keep(three.first, b"secret", Limits::default()).await.expect("kept").to_string();
    let whole = format!("blob:{}", sha256_hex(b"secret"));
    for (caller, want) in [
        (Caller::Process(three.first), Some(6)),
        (Caller::Process(three.child), None),
        (Caller::Process(three.other), None),
        (Caller::Session(mine), Some(6)),
        (Caller::Session(theirs), None),
        (Caller::Session(SessionId::mint()), None),
    ] {
        assert_eq!((bed.finds(caller, &handle), bed.finds(caller, &whole)), (want, want), "{caller}");
    }
    let pass = async |from: Caller, to: ProcessId| {
        let text = format!("see {handle}, {handle} and blob:0123456789abcdef");
        bed.write(move |tx| Ok(pass_on(tx, from, to, &text)?)).await.expect("passed on");
        bed.finds(Caller::Process(to), &handle)
    };
    assert_eq!(pass(Caller::Session(theirs), three.other).await, None);
    assert_eq!(pass(Caller::Process(three.child), three.other).await, None);
    assert_eq!(pass(Caller::Process(three.first), three.child).await, Some(6));
    assert_eq!(pass(Caller::Process(three.child), three.other).await, Some(6));
    assert_eq!(bed.finds(Caller::Session(theirs), &handle), Some(6));
    let (old, new) = (three.first, three.other);
    bed.write(move |tx| Ok(inherit(tx, old, new)?)).await.expect("what it has already is no matter");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handle_that_means_two_means_none() {
    let (bed, three, _) = Bed::new().await;
    let (one, two) = (format!("{:0<64}", "0123456789abcdef1"), format!("{:0<64}", "0123456789abcdef2"));
    let mut sql = format!("INSERT INTO blobs VALUES ('{one}', x'01', 1), ('{two}', x'0102', 1);");
    for hash in [&one, &two] {
        sql.push_str(&format!("INSERT INTO blob_uses VALUES ('{}', '{hash}', 'a/b', NULL);", three.first));
    }
    bed.write(move |tx| Ok(tx.db.execute_batch(&sql)?)).await.expect("SQL");
    let me = Caller::Process(three.first);
    assert_eq!(bed.finds(me, "blob:0123456789abcdef"), None);
    assert_eq!(bed.finds(me, "blob:0123456789abcdef2"), Some(2));
}
