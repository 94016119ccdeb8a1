//! Parts that become one while updates go on.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use super::disk::{copy, open};
use super::updates::answers;
use super::watched::{Step, Watched};
use super::*;

/// How long a merge may take to begin.
const BEGIN_WAIT: Duration = Duration::from_secs(60);

/// The staff, and `count` cooks.
fn lines(cooks: &[String], count: usize) -> Vec<&str> {
    STAFF.iter().copied().chain(cooks[..count].iter().map(String::as_str)).collect()
}

fn cooks() -> Vec<String> {
    (0..20).map(|n| format!("cook{n} | Cooks plums {n} | You know pears.")).collect()
}

fn fresh(registry: &Registry) -> Vec<Found> {
    answers(&SearchIndex::in_memory(registry).expect("an index"))
}

fn parts(index: &SearchIndex) -> usize {
    index.writing.index.searchable_segment_ids().expect("segments").len()
}

/// An index in eleven parts of the staff and ten cooks. The first merge is held where it begins to write: that is told, and
/// it goes on when it is told to, or when nobody can tell it any more.
fn held(folder: &Path, cooks: &[String]) -> (SearchIndex, Receiver<()>, Sender<()>) {
    drop(open(folder, &registry(STAFF)));
    let (begun, begins) = channel();
    let (go, gone_on) = channel::<()>();
    let hold = Mutex::new(Some((begun, gone_on)));
    let watched = Watched::new(folder, move |step| {
        let merges = std::thread::current().name().is_some_and(|name| name.starts_with("merge"));
        let held = if merges && step == Step::Opened { hold.lock().expect("no panic before").take() } else { None };
        if let Some((begun, gone_on)) = held {
            begun.send(()).expect("awaited");
            gone_on.recv().expect("the test goes on");
        }
    });
    let mut index = watched.index(&registry(STAFF));
    for count in 1..=10 {
        index = index.next(&registry(&lines(cooks, count))).expect("followed");
    }
    assert_eq!(parts(&index), 11);
    (index, begins, go)
}

/// A merge is held where it begins to write. Updates are found meanwhile, also of what is being merged; a kill there loses
/// nothing; and once it goes on, the few parts have the same answers.
#[test]
fn updates_go_on_while_parts_are_merged() {
    let (folder, cooks) = (Folder::new(), cooks());
    let lines = |count| lines(&cooks, count);
    let (index, begins, go) = held(folder.path(), &cooks);
    let (last, next) = std::thread::scope(|scope| {
        // Dropped where this fails, so that nothing waits for it.
        let go = go;
        let merging = scope.spawn(|| index.merge());
        begins.recv_timeout(BEGIN_WAIT).expect("a merge has begun");
        let mut last = registry(&lines(11));
        let mut next = index.next(&last).expect("followed");
        for (gone, count) in [(0, 11), (3, 12), (9, 12), (12, 13)] {
            let mut staff = lines(count);
            staff[gone] = "quince | Cooks quinces | You know C.";
            last = registry(&staff);
            next = next.next(&last).expect("followed");
            assert_eq!(answers(&next), fresh(&last));
            next.merge().expect("another one merges");
        }
        let killed = Folder::new();
        copy(folder.path(), killed.path());
        assert_eq!(answers(&open(killed.path(), &last)), fresh(&last));
        go.send(()).expect("it is held");
        merging.join().expect("no panic").expect("merged");
        (last, next)
    });
    let next = next.next(&last).expect("followed");
    assert!(parts(&next) < 8, "{} parts", parts(&next));
    assert_eq!(answers(&next), fresh(&last));
    drop((index, next));
    assert_eq!(answers(&open(folder.path(), &last)), fresh(&last), "nobody holds it any more");
}

/// Who closes waits for no merge: what has begun is given up, nothing begins, and what was found before is found by the next
/// start.
#[test]
fn a_merge_is_given_up() {
    let (folder, cooks) = (Folder::new(), cooks());
    let (index, begins, go) = held(folder.path(), &cooks);
    std::thread::scope(|scope| {
        let go = go;
        let merging = scope.spawn(|| index.merge());
        begins.recv_timeout(BEGIN_WAIT).expect("a merge has begun");
        index.stop();
        go.send(()).expect("it is held");
        merging.join().expect("no panic").expect("given up");
    });
    index.merge().expect("nothing begins");
    assert_eq!(parts(&index), 11);
    let last = registry(&lines(&cooks, 10));
    assert_eq!(answers(&index), fresh(&last));
    assert!(matches!(index.follow(&registry(STAFF)), Err(SearchError::Stopped)), "nothing is written");
    drop(index);
    let index = open(folder.path(), &last);
    assert_eq!((answers(&index), parts(&index)), (fresh(&last), 11));
    index.merge().expect("merged");
    assert!(parts(&index) < 8, "{} parts", parts(&index));
}

/// Where another index takes the place, the merges of the old one are over, and it writes nothing.
#[test]
fn an_index_that_is_replaced_writes_nothing() {
    let folder = Folder::new();
    let index = open(folder.path(), &registry(&STAFF[..4]));
    index.writing.end().expect("ended");
    let staff = registry(STAFF);
    assert!(index.next(&staff).is_err());
    index.merge().expect("nothing to do");
    assert_eq!(ids(&index.follow(&staff).expect("opened anew"), "helm"), ["kubernetes-architect"]);
}
