use std::sync::Weak;

use super::*;
use crate::registry::Source;
use crate::testing::Folder;

fn source(path: PathBuf) -> SourceDir {
    SourceDir { source: Source::Project, path, layout: Layout::Files, required: false }
}

/// The folders that are watched, below `root`, sorted; the folder itself is `.`.
fn held(folders: &Folders, root: &Path) -> String {
    let short = |path: &PathBuf| match path.strip_prefix(root) {
        Ok(below) if below.as_os_str().is_empty() => ".".to_owned(),
        Ok(below) => below.display().to_string(),
        Err(_) => path.display().to_string(),
    };
    let mut held: Vec<_> = folders.held.iter().map(short).collect();
    held.sort();
    held.join(" ")
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn only_the_sources_and_the_way_to_them_are_watched() {
    let folder = Folder::new();
    for name in ["src/a/b/x.rs", ".git/objects/x", "target/x", ".claude/agents/deep/x.md", ".claude/skills/x.md"] {
        folder.write(&format!("p/{name}"), "");
    }
    folder.write("p/.claude/agents/node_modules/y/x.md", "");
    let project = folder.path().join("p");
    let sources = [".claude/agents", ".agents/agents", ".github/agents"].map(|name| source(project.join(name)));
    let mut folders = Folders::default();
    folders.watch(&sources).expect("watched");
    assert_eq!(held(&folders, folder.path()), ". p p/.claude p/.claude/agents p/.claude/agents/deep");
    fs::remove_dir_all(project.join(".claude/agents/deep")).expect("removed");
    folder.write("p/.agents/x", "");
    folders.watch(&sources).expect("watched");
    assert_eq!(held(&folders, folder.path()), ". p p/.agents p/.claude p/.claude/agents");
    fs::remove_dir_all(project.join(".claude")).expect("removed");
    folders.bell.moved.store(true, Ordering::Release);
    folders.watch(&sources).expect("watched");
    assert_eq!(held(&folders, folder.path()), ". p p/.agents");
    folders.end().await;
}

#[tokio::test]
async fn more_folders_than_may_be_watched_are_told_and_the_rest_is_watched() {
    let folder = Folder::new();
    (0..9).for_each(|n| folder.write(&format!("{n}/x.md"), ""));
    let sources = [source(folder.path().to_owned())];
    let mut folders = Folders { most: 1, ..Folders::default() };
    let error = folders.watch(&sources).expect_err("too many");
    assert_eq!(error.to_string(), "there are more than 1 folders");
    assert_eq!(folders.held.len(), 1);
    folders.most = WATCHED_MAX;
    folders.watch(&sources).expect("all");
    folders.end().await;
}

#[tokio::test]
async fn nothing_of_it_is_left_at_the_end() {
    let folder = Folder::new();
    let mut folders = Folders::default();
    folders.watch(&[source(folder.path().to_owned())]).expect("watched");
    let bell: Weak<Bell> = Arc::downgrade(&folders.bell);
    folders.end().await;
    assert!(bell.upgrade().is_none(), "the system's thread has let go of it");
    // One that never watched ends too.
    Folders::default().end().await;
}
