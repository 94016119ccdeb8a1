use notify::event::{AccessKind, CreateKind, DataChange, Flag, MetadataKind, RemoveKind, RenameMode};

use super::*;
use crate::registry::Source;
use crate::testing::Folder;

fn source(path: PathBuf, layout: Layout) -> SourceDir {
    SourceDir { source: Source::Project, path, layout, required: false }
}

#[test]
fn what_concerns_the_sources() {
    let folder = Folder::new();
    folder.write("p/.claude/agents/x.md", "");
    folder.write("p/agents/x/agent.md", "");
    let project = folder.path().join("p");
    let places = Places::of(&[
        source(project.join(".claude/agents"), Layout::Files),
        source(project.join(".agents/agents"), Layout::Files),
        source(project.join("agents"), Layout::Folders),
    ]);
    let check = |kind: &str, path: &str, expected: Concern| {
        let kind = match kind {
            "made" => EventKind::Create(CreateKind::Any),
            "gone" => EventKind::Remove(RemoveKind::Any),
            "renamed" => EventKind::Modify(ModifyKind::Name(RenameMode::Any)),
            "written" => EventKind::Modify(ModifyKind::Data(DataChange::Any)),
            "closed" => EventKind::Access(AccessKind::Close(AccessMode::Write)),
            "mode" => EventKind::Modify(ModifyKind::Metadata(MetadataKind::Any)),
            "read" => EventKind::Access(AccessKind::Open(AccessMode::Any)),
            other => panic!("no kind {other}"),
        };
        let event = Event::new(kind).add_path(project.join(path));
        assert_eq!(places.concern(&event), expected, "{kind:?} {path}");
    };
    for kind in ["made", "gone", "renamed", "written", "closed", "mode"] {
        check(kind, ".claude/agents/x.md", Concern::Changed);
        check(kind, ".claude/agents/deep/er/x.MD", Concern::Changed);
        check(kind, "agents/x/agent.md", Concern::Changed);
        // An unrelated project that is busy.
        check(kind, "main.rs", Concern::None);
        check(kind, "src/main.rs", Concern::None);
        check(kind, ".claude/settings.json", Concern::None);
        check(kind, ".claude/agents/.git/objects/x.md", Concern::None);
        check(kind, ".claude/agents/a/node_modules/x.md", Concern::None);
        check(kind, ".claude/agents/.git", Concern::None);
        check(kind, "agents/x/memory.md", Concern::None);
        check(kind, "agents/x/data/agent.md", Concern::None);
        check(kind, ".claudes/agents", Concern::None);
    }
    for kind in ["made", "gone", "renamed", "mode"] {
        // A folder, perhaps.
        check(kind, ".claude/agents/new", Concern::Changed);
        check(kind, "agents/new", Concern::Changed);
        check(kind, ".claude/agents", Concern::Moved);
        check(kind, ".CLAUDE/Agents", Concern::None);
        check(kind, ".claude/Agents", Concern::Moved);
        check(kind, ".agents", Concern::Moved);
        check(kind, "agents", Concern::Moved);
        check(kind, "", Concern::Moved);
    }
    for path in [".claude/agents/x.md", ".claude/agents", ".agents"] {
        check("read", path, Concern::None);
    }
    check("written", ".claude/agents/notes.txt", Concern::None);
    check("closed", ".claude/agents/.x.md.swp", Concern::None);

    let lost = Event::new(EventKind::Other).set_flag(Flag::Rescan);
    assert_eq!(places.concern(&lost), Concern::Moved);
    assert_eq!(places.concern(&Event::new(EventKind::Any)), Concern::Moved);
    let renamed = Event::new(EventKind::Modify(ModifyKind::Name(RenameMode::Both)));
    let saved = renamed.add_path(project.join("x.tmp")).add_path(project.join(".claude/agents/x.md"));
    assert_eq!(places.concern(&saved), Concern::Changed);
}

#[cfg(unix)]
#[test]
fn the_way_to_a_source() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new();
    folder.write("real/agents/x.md", "");
    folder.write("file", "");
    let link = |target: &str, name: &str| symlink(target, folder.path().join(name)).expect("a link");
    link("real", "a");
    link("a/agents", "b");
    link("nowhere/at/all", "c");
    link("d", "d");
    link("../e", "real/up");
    let check = |path: &str, root: Option<&str>, steps: &[&str]| {
        let places = Places::of(&[source(folder.path().join(path), Layout::Files)]);
        let below = |path: &Path| path.strip_prefix(folder.path()).expect("below").display().to_string();
        assert_eq!(places.trees.iter().map(|tree| below(&tree.root)).collect::<Vec<_>>(), Vec::from_iter(root));
        let found: Vec<_> = places.steps.iter().map(|step| below(&step.folder.join(&step.name))).collect();
        assert_eq!(found, steps, "{path}");
    };
    check("real/agents", Some("real/agents"), &["real/agents"]);
    check("real/../real/./agents", Some("real/agents"), &["real/agents"]);
    check("a/agents", Some("real/agents"), &["a", "real/agents"]);
    check("b", Some("real/agents"), &["b", "a", "real/agents"]);
    check("missing/agents", None, &["", "missing"]);
    check("real/missing/agents", None, &["real", "real/missing"]);
    check("c", None, &["c", "", "nowhere"]);
    check("d", None, &["d"]);
    check("real/up", None, &["real/up", "", "e"]);
    check("file/agents", None, &["file", "file/agents"]);
}
