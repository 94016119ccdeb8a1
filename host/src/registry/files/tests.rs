use std::path::Path;

use super::super::places::Layout;
use super::*;
use crate::testing::Folder;

fn agent(name: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}\n---\nYou do {name}.\n")
}

fn dir(path: &Path) -> SourceDir {
    SourceDir { source: Source::Dir, path: path.to_owned(), layout: Layout::Files, required: false }
}

/// A time at which all that was written so far is settled.
fn later() -> SystemTime {
    SystemTime::now() + 2 * SETTLED_AFTER
}

/// Reads again, and looks whether that gives what a first reading gives.
fn again(files: &Files, sources: &[SourceDir], now: SystemTime) -> Files {
    let files = files.again(sources, now);
    assert_eq!(**files.registry(), Registry::read(sources));
    files
}

fn find(files: &Files, id: &str) -> Arc<Definition> {
    files.registry().get(&id.parse().expect("an id")).expect("it is there").clone()
}

#[test]
fn what_did_not_change_is_the_same_one() {
    let folder = Folder::new();
    for n in 0..300 {
        folder.write(&format!("{n}.md"), &agent(&format!("a{n}")));
    }
    let sources = [dir(folder.path())];
    for now in [SystemTime::now(), later()] {
        let first = again(&Files::default(), &sources, now);
        folder.write("7.md", &agent("changed"));
        let second = again(&first, &sources, now);
        let same = |n: usize| Arc::ptr_eq(&find(&first, &format!("a{n}")), &find(&second, &format!("a{n}")));
        assert!((0..300).filter(|n| *n != 7).all(same), "all but one are the same");
        assert_eq!(find(&second, "changed").name, "changed");
        folder.write("7.md", &agent("a7"));
    }
}

#[test]
fn a_settled_file_is_not_opened_and_a_recent_one_is() {
    let folder = Folder::new();
    folder.write("a.md", &agent("a"));
    let sources = [dir(folder.path())];
    let stamps = |files: &Files| files.known.values().map(|known| known.stamp.is_some()).collect::<Vec<_>>();
    let recent = again(&Files::default(), &sources, SystemTime::now());
    assert_eq!(stamps(&recent), [false]);
    assert_eq!(stamps(&again(&recent, &sources, later())), [true]);
    assert_eq!(stamps(&again(&recent, &sources, SystemTime::UNIX_EPOCH)), [false], "written in the time to come");
}

#[cfg(unix)]
#[test]
fn a_change_of_the_same_size_whose_time_was_set_back_is_seen() {
    let folder = Folder::new();
    folder.write("x.md", &agent("one"));
    let (sources, path) = ([dir(folder.path())], folder.path().join("x.md"));
    let before = fs::metadata(&path).and_then(|meta| meta.modified()).expect("a time");
    let first = again(&Files::default(), &sources, later());
    folder.write("x.md", &agent("two"));
    let file = fs::File::options().write(true).open(&path).expect("a file");
    file.set_modified(before).expect("the time is set");
    drop(file);
    assert_eq!(find(&again(&first, &sources, later()), "two").name, "two");
}

#[test]
fn files_that_come_go_and_change_their_names() {
    let folder = Folder::new();
    let sources = [dir(&folder.path().join("a")), dir(&folder.path().join("b"))];
    let mut files = again(&Files::default(), &sources, later());
    let mut step = |expected: &[&str]| {
        files = again(&files, &sources, later());
        let found = files.registry().assistants().iter().map(|found| {
            let path = found.path.as_ref().and_then(|path| path.strip_prefix(folder.path()).ok()).expect("below");
            format!("{} {}", found.id, path.display().to_string().replace('\\', "/"))
        });
        assert_eq!(found.collect::<Vec<_>>(), expected);
    };
    step(&[]);
    folder.write("b/x.md", &agent("x"));
    step(&["x b/x.md"]);
    folder.write("a/x.md", &agent("x"));
    step(&["x a/x.md"]);
    fs::rename(folder.path().join("a/x.md"), folder.path().join("a/y.md")).expect("renamed");
    step(&["x a/y.md"]);
    fs::remove_dir_all(folder.path().join("a")).expect("removed");
    step(&["x b/x.md"]);
    folder.write("b/x.md", "");
    step(&[]);
    folder.write("b/x.md", &agent("z"));
    step(&["z b/x.md"]);
}

/// Every order of three sources gives the first one's file, and tells of the others in the order of the sources.
#[test]
fn a_double_id_is_the_first_sources_in_every_order() {
    let folder = Folder::new();
    for name in ["a", "b", "c"] {
        folder.write(&format!("{name}/two.md"), &agent("Same"));
        folder.write(&format!("{name}/one.md"), &agent("same"));
    }
    for order in ["abc", "acb", "bac", "bca", "cab", "cba"] {
        let places: Vec<_> = order.chars().map(|name| folder.path().join(name.to_string())).collect();
        let sources: Vec<_> = places.iter().map(|path| dir(path)).collect();
        let files = again(&Files::default(), &sources, later());
        let all: Vec<_> = places.iter().flat_map(|path| [path.join("one.md"), path.join("two.md")]).collect();
        let [only] = files.registry().assistants() else { panic!("one is left") };
        assert_eq!(only.path.as_ref(), Some(&all[0]));
        let hidden: Vec<_> = files.registry().shadowed().iter().filter_map(|hidden| hidden.path.clone()).collect();
        assert_eq!(hidden, all[1..]);
        assert!(files.registry().shadowed().iter().all(|hidden| hidden.by.as_ref() == Some(&all[0])));
    }
}

#[cfg(unix)]
#[test]
fn two_sources_of_one_folder_are_read_once() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new();
    folder.write("real/x.md", &agent("x"));
    folder.write("real/deep/y.md", &agent("y"));
    folder.write("real/notes.txt", "notes");
    symlink(folder.path().join("real"), folder.path().join("link")).expect("a link");
    let at = |name: &str| dir(&folder.path().join(name));
    for sources in [[at("link"), at("real")], [at("real"), at("real/deep")], [at("real"), at("link")]] {
        let files = again(&Files::default(), &sources, later());
        let registry = files.registry();
        assert_eq!((registry.assistants().len(), registry.shadowed().len(), registry.skipped().len()), (2, 0, 1));
        let first = find(&files, "x").path.clone().expect("a file");
        assert!(first.starts_with(&sources[0].path), "{}", first.display());
    }
    // A link that becomes a folder of its own is one.
    fs::remove_file(folder.path().join("link")).expect("removed");
    folder.write("link/x.md", &agent("x"));
    let files = again(&Files::default(), &[at("real"), at("link")], later());
    assert_eq!(files.registry().shadowed().len(), 1);
}

#[test]
fn what_changes_in_the_database_leaves_the_files_as_they_are() {
    let folder = Folder::new();
    folder.write("x.md", &agent("x"));
    let files = Files::default().again(&[dir(folder.path())], later());
    let mut stored = find(&files, "x").as_ref().clone();
    (stored.id, stored.source, stored.path) = ("y".parse().expect("an id"), Source::Database, None);
    let joined = files.registry().join([Arc::new(stored.clone())]);
    let y = joined.get(&stored.id).expect("joined").clone();
    assert!(Arc::ptr_eq(&y, &joined.same_or(stored.clone())));
    stored.name = "another".into();
    assert!(!Arc::ptr_eq(&y, &joined.same_or(stored.clone())));
    let next = files.registry().join([joined.same_or(stored)]);
    assert_eq!((next.assistants().len(), files.registry().assistants().len()), (2, 1));
    assert!(Arc::ptr_eq(&find(&files, "x"), next.get(&"x".parse().expect("an id")).expect("joined")));
}
