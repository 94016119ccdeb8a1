//! The index on disk: used again, told from another one, and built anew whatever has happened to its files.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::files::LISTS;
use super::updates::answers;
use super::watched::{Step, Watched};
use super::*;

/// The files of an index, by size, largest first.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| !path.to_string_lossy().ends_with(".lock"));
    files.sort_by_key(|path| std::cmp::Reverse((fs::metadata(path).expect("a file").len(), path.clone())));
    files
}

pub(super) fn open(folder: &Path, registry: &Registry) -> SearchIndex {
    SearchIndex::on_disk(folder, registry).expect("on disk")
}

/// Copies the files of `from`, with what is not yet whole.
pub(super) fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
    }
}

#[test]
fn is_used_again() {
    let folder = Folder::new();
    let staff = registry(STAFF);
    assert_eq!(ids(&open(folder.path(), &staff), "C++")[0], "cpp-pro");
    let before = files(folder.path());
    assert_eq!(ids(&open(folder.path(), &staff), "C++")[0], "cpp-pro");
    assert_eq!(files(folder.path()), before, "nothing was written");
    let fewer = registry(&STAFF[2..]);
    assert_eq!(ids(&open(folder.path(), &fewer), "C++"), [""; 0], "other assistants, another index");
    let changed = registry(&["cpp-pro | Cooks | You cook."]);
    assert_eq!(ids(&open(folder.path(), &changed), "cook"), ["cpp-pro"]);
    let segment = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "term");
    assert_eq!(files(folder.path()).iter().filter(|path| segment(path)).count(), 1, "the old files are gone");
}

/// What is open reads its files while it is asked: bytes that change below it are seen by no checksum.
#[test]
fn what_is_damaged_while_it_is_open_is_read_anew() {
    let staff = registry(STAFF);
    let folder = Folder::new();
    let index = open(folder.path(), &staff);
    let right = answers(&index);
    for path in files(folder.path()).iter().filter(|path| path.extension().is_some_and(|end| end == "term")) {
        let length = fs::metadata(path).expect("a file").len() as usize;
        let mut file = fs::OpenOptions::new().write(true).open(path).expect("a file");
        std::io::Write::write_all(&mut file, &vec![0xff; length]).expect("written");
    }
    let damaged = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| answers(&index)));
    assert!(damaged.is_err() || damaged.is_ok_and(|found| found != right), "it is damaged");
    let index = index.anew(&staff).expect("an index");
    assert_eq!(answers(&index), right);
    fs::remove_dir_all(folder.path()).expect("removed");
    assert_eq!(answers(&index.anew(&staff).expect("an index")), right);
}

/// Every kind of file, below what is open: who reads what is gone of a mapped file is ended by the system. Elsewhere the system
/// lets nobody do that.
#[cfg(unix)]
#[test]
fn what_becomes_shorter_while_it_is_open_is_not_read() {
    let (staff, grown) = (registry(&STAFF[..8]), registry(&STAFF[1..]));
    let whole = Folder::new();
    // With two segments and a deleted document.
    drop(open(whole.path(), &staff).follow(&grown).expect("followed"));
    let fresh = |registry: &Registry| answers(&SearchIndex::in_memory(registry).expect("an index"));
    let (of_staff, of_grown) = (fresh(&staff), fresh(&grown));
    let mut kinds = std::collections::BTreeSet::new();
    for path in files(whole.path()) {
        let name = path.file_name().expect("a name");
        let list = files::segment_of(name).is_none();
        kinds.insert(path.extension().expect("an ending").to_owned());
        let length = fs::metadata(&path).expect("a file").len();
        for (left, follows) in [0, length / 2, length - 1].into_iter().zip([true, false, true]) {
            let folder = Folder::new();
            copy(whole.path(), folder.path());
            let index = open(folder.path(), &grown);
            assert!(index.is_whole());
            let cut = folder.path().join(name);
            fs::OpenOptions::new().write(true).open(&cut).and_then(|file| file.set_len(left)).expect("cut");
            match index.search("C++", &Filter::default(), 9) {
                Ok(found) => assert!(list && found.total > 0, "{}", cut.display()),
                Err(SearchError::Changed(path)) => assert_eq!(path, cut),
                Err(other) => panic!("{}: {other}", cut.display()),
            }
            assert!(list || !index.is_whole() && index.merge().is_err());
            match follows {
                true => assert_eq!(answers(&index.follow(&staff).expect("an index")), of_staff, "{}", cut.display()),
                false => assert_eq!(answers(&index.anew(&grown).expect("an index")), of_grown, "{}", cut.display()),
            }
        }
    }
    let kinds: Vec<_> = kinds.iter().map(|kind| kind.to_string_lossy()).collect();
    assert_eq!(kinds, ["del", "fast", "fieldnorm", "idx", "json", "pos", "store", "term"]);
}

/// A file that becomes shorter while an update is written, which does not read it, is seen by the next search.
#[cfg(unix)]
#[test]
fn what_becomes_shorter_during_an_update_is_not_read() {
    let (folder, staff) = (Folder::new(), registry(STAFF));
    drop(open(folder.path(), &staff));
    let cut: Vec<_> =
        files(folder.path()).into_iter().filter(|path| path.extension().is_some_and(|end| end == "pos")).collect();
    let [cut] = &cut[..] else { panic!("one part: {cut:?}") };
    let (place, done) = (cut.clone(), Mutex::new(false));
    // What the update has deleted is removed after all else is written.
    let watched = Watched::new(folder.path(), move |step| {
        let mut done = done.lock().expect("no panic before");
        if step == Step::Deleted && !*done {
            *done = true;
            let file = fs::OpenOptions::new().write(true).open(&place).expect("a file");
            file.set_len(file.metadata().expect("a file").len() - 1).expect("cut");
        }
    });
    let index = watched.index(&staff).kept_in(folder.path(), &Lengths::default()).expect("in a folder");
    let baker = registry(&[STAFF, &["baker | Bakes bread | You know flour."]].concat());
    let index = index.next(&baker).expect("followed");
    assert_eq!(ids(&index, "flour"), ["baker"]);
    let index = index.next(&staff).expect("followed");
    assert!(matches!(index.search("C++", &Filter::default(), 9), Err(SearchError::Changed(path)) if path == *cut));
}

/// A merge that ends may remove what is listed before it is read.
#[test]
fn what_is_removed_while_checksums_are_looked_at_is_no_damage() {
    let folder = Folder::new();
    let place = folder.path().join("search");
    let away = folder.path().join("away");
    // Reads for which it is not there.
    let check = |reads: usize, whole: bool| {
        drop(open(&place, &registry(STAFF)));
        let (here, there, count) = (place.clone(), away.clone(), Mutex::new(0));
        let watched = Watched::new(&place, move |step| {
            let mut count = count.lock().expect("no panic before");
            if step != Step::Read {
                return;
            }
            if *count == 0 {
                fs::rename(&here, &there).expect("moved");
                fs::create_dir(&here).expect("a folder");
                LISTS.iter().for_each(|list| _ = fs::copy(there.join(list), here.join(list)).expect("copied"));
            }
            if *count == reads {
                fs::remove_dir_all(&here).expect("removed");
                fs::rename(&there, &here).expect("moved");
            }
            *count += 1;
        });
        let opened = index::open_in(Box::new(watched) as Box<dyn tantivy::directory::Directory>);
        assert_eq!(opened.is_ok_and(|index| index.is_some()), whole, "{reads}");
    };
    check(1, true);
    check(2, false);
}

/// Every file, with its first byte, one in the middle or the last one flipped, cut there, or gone.
#[test]
fn whatever_is_damaged_is_built_anew() {
    let (staff, grown) = (registry(&STAFF[..8]), registry(&STAFF[1..]));
    let whole = Folder::new();
    // With two segments and a deleted document.
    drop(open(whole.path(), &staff).follow(&grown).expect("followed"));
    let fresh = answers(&SearchIndex::in_memory(&grown).expect("an index"));
    let names = files(whole.path()).into_iter().map(|path| path.file_name().expect("a name").to_owned());
    let names: Vec<_> = names.collect();
    assert!(names.iter().any(|name| name.to_string_lossy().ends_with(".del")), "{names:?}");
    let (mut cases, mut anew) = (0, 0);
    for name in &names {
        let bytes = fs::read(whole.path().join(name)).expect("a file");
        let places = [0, bytes.len() / 2, bytes.len() - 1];
        let flipped = places.map(|at| {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1;
            Some(bytes)
        });
        let cut = places.map(|at| Some(bytes[..at].to_owned()));
        for damaged in flipped.into_iter().chain(cut).chain([None]) {
            let folder = Folder::new();
            copy(whole.path(), folder.path());
            let file = folder.path().join(name);
            match damaged {
                Some(bytes) => fs::write(file, bytes).expect("written"),
                None => fs::remove_file(file).expect("removed"),
            }
            let before = files(folder.path());
            assert_eq!(answers(&open(folder.path(), &grown)), fresh, "{}", name.display());
            cases += 1;
            anew += usize::from(files(folder.path()) != before);
        }
    }
    say(&format!("{cases} damages of {} files; {anew} times the index was built anew", names.len()));
    // A digit of the version that has written a file says nothing about its content.
    assert!(cases - anew <= 5, "{anew} of {cases}");
}

#[test]
fn no_garbage_in_its_place_matters() {
    let staff = registry(STAFF);
    let check = |prepare: &dyn Fn(&Folder)| {
        let folder = Folder::new();
        prepare(&folder);
        assert_eq!(ids(&open(folder.path(), &staff), "C++")[0], "cpp-pro");
        assert_eq!(ids(&open(folder.path(), &staff), "发票"), ["发票核对"]);
    };
    check(&|folder| folder.write("meta.json", ""));
    check(&|folder| folder.write("meta.json", "{}"));
    check(&|folder| folder.write("meta.json.new", "{"));
    check(&|folder| folder.write(".managed.json", "[1, 2"));
    check(&|folder| folder.write(".tantivy-writer.lock", "left by a host that died"));
    check(&|folder| folder.write(".tantivy-meta.lock", ""));
    check(&|folder| folder.write(&format!("{}.term", "0".repeat(32)), "left of an earlier segment"));
    check(&|folder| {
        drop(open(folder.path(), &registry(&STAFF[..1])));
        folder.write(&format!("{}.term", "0".repeat(32)), "left of an earlier segment");
    });
}

#[test]
fn another_version_is_built_anew() {
    let folder = Folder::new();
    let staff = registry(STAFF);
    let index = open(folder.path(), &staff);
    // A later version would have written the same otherwise.
    let mut writer: tantivy::IndexWriter =
        index.writing.index.writer_with_num_threads(1, 15_000_000).expect("a writer");
    let mut commit = writer.prepare_commit().expect("prepared");
    commit.set_payload("analyzer 0 reader 0");
    commit.commit().expect("committed");
    drop((writer, index));
    assert!(index::open(folder.path()).expect("whole").is_none());
    let before = files(folder.path());
    assert_eq!(ids(&open(folder.path(), &staff), "C++")[0], "cpp-pro");
    assert_ne!(files(folder.path()), before);
    assert!(index::open(folder.path()).expect("whole").is_some());
}

#[test]
fn what_cannot_be_on_disk_is_in_memory() {
    let staff = registry(STAFF);
    let folder = Folder::new();
    drop(open(folder.path(), &staff));
    let other = index::open(folder.path()).expect("whole").expect("an index");
    let writer: tantivy::IndexWriter = other.index.writer_with_num_threads(1, 15_000_000).expect("a writer");
    let fewer = registry(&STAFF[..1]);
    assert!(SearchIndex::on_disk(folder.path(), &fewer).is_err(), "another program writes");
    let memory = SearchIndex::open(folder.path(), &fewer).expect("in memory");
    assert_eq!(ids(&memory, "code"), ["code-reviewer"]);
    assert_eq!(ids(&memory.follow(&staff).expect("in memory too"), "C++")[0], "cpp-pro");
    drop(writer);
    assert_eq!(ids(&open(folder.path(), &staff), "C++")[0], "cpp-pro");
    folder.write("file", "");
    let no_folder = folder.path().join("file");
    assert_eq!(ids(&SearchIndex::open(&no_folder, &staff).expect("in memory"), "C++")[0], "cpp-pro");
}

/// Whatever the index on disk is of, and whoever writes it, a copy has the answers of its registry, and nothing on disk is
/// another after it.
#[test]
fn a_copy_leaves_the_index_as_it_is() {
    let staff = registry(STAFF);
    let folder = Folder::new();
    let read = || {
        let read = |path: PathBuf| (fs::read(&path).expect("a file"), path);
        files(folder.path()).into_iter().map(read).collect::<Vec<_>>()
    };
    let check = |what: &str| {
        let before = read();
        for registry in [&staff, &registry(&STAFF[2..]), &registry(&["cpp-pro | Cooks | You cook."]), &registry(&[])] {
            let copied = SearchIndex::copied(folder.path(), registry).expect("an index");
            assert!(copied.folder.is_none());
            assert_eq!(answers(&copied), answers(&SearchIndex::in_memory(registry).expect("an index")), "{what}");
        }
        assert_eq!(read(), before, "{what}");
    };
    check("none");
    let index = open(folder.path(), &registry(&STAFF[1..]));
    check("another");
    let index = index.follow(&staff).expect("followed");
    check("the same, in two parts");
    let writer: tantivy::IndexWriter =
        index.writing.index.writer_with_num_threads(1, 15_000_000).expect("another program writes");
    check("written by another program");
    drop(writer);
    assert!(index::copy(folder.path()).expect("whole").is_some());
    let largest = files(folder.path()).remove(0);
    let mut bytes = fs::read(&largest).expect("a file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(largest, bytes).expect("written");
    assert!(index::copy(folder.path()).is_err());
    check("damaged");
}

#[test]
fn a_folder_that_goes_away_meanwhile_is_built_anew() {
    let folder = Folder::new();
    let place = folder.path().join("search");
    let index = open(&place, &registry(&STAFF[..8]));
    fs::remove_dir_all(&place).expect("removed");
    let staff = registry(STAFF);
    let next = index.follow(&staff).expect("followed");
    assert_eq!(ids(&next, "helm"), ["kubernetes-architect"]);
    drop((index, next));
    let before = files(&place);
    assert_eq!(ids(&open(&place, &staff), "helm"), ["kubernetes-architect"]);
    assert_eq!(files(&place), before, "it was whole");
}

#[test]
fn other_files_in_the_folder_stay() {
    let folder = Folder::new();
    folder.write("mine.txt", "mine");
    drop(open(folder.path(), &registry(STAFF)));
    drop(open(folder.path(), &registry(&STAFF[1..])));
    folder.write("meta.json", "damaged");
    drop(open(folder.path(), &registry(STAFF)));
    assert_eq!(fs::read_to_string(folder.path().join("mine.txt")).expect("kept"), "mine");
}

/// At whichever step of updates a host is killed, the next start has the right answers, of the assistants before as of
/// those after.
#[test]
fn a_kill_at_any_step_loses_nothing() {
    let registries: Vec<_> = (0..6).map(|n| registry(&STAFF[n % 3..STAFF.len() - n / 3])).collect();
    let (folder, kills) = (Folder::new(), Folder::new());
    drop(open(folder.path(), &registries[0]));
    let places = Arc::new(Mutex::new(Vec::new()));
    // The files as they are before each step: what a kill there leaves.
    let (from, into, left) = (folder.path().to_owned(), kills.path().to_owned(), places.clone());
    let watched = Watched::new(folder.path(), move |step| {
        if step == Step::Read {
            return;
        }
        let mut places = left.lock().expect("no panic before");
        let to = into.join(places.len().to_string());
        fs::create_dir(&to).expect("a folder");
        copy(&from, &to);
        places.push(to);
    });
    let mut index = watched.index(&registries[0]);
    for registry in &registries[1..] {
        index = index.next(registry).expect("followed");
        index.merge().expect("merged");
    }
    let places = places.lock().expect("no panic before").clone();
    let ends = [&registries[0], &registries[5]]
        .map(|registry| (registry, answers(&SearchIndex::in_memory(registry).expect("an index"))));
    let mut kept = 0;
    for (place, (registry, fresh)) in places.iter().zip(ends.iter().cycle()) {
        kept += usize::from(index::open(place).is_ok_and(|index| index.is_some()));
        assert_eq!(answers(&open(place, registry)), *fresh, "{}", place.display());
    }
    say(&format!("{} places of kills; {kept} starts went on with what was there", places.len()));
    assert!(places.len() > 50 && kept == places.len(), "{kept} of {}", places.len());
}
