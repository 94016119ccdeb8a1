//! A real host, real files, and what the system really tells.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::*;
use crate::host::Options;
use crate::launcher::RunnerCommand;
use crate::registry::{self, Registry, SourceDir};
use crate::testing::{Folder, say};

/// How long anything that happens by itself may take on a loaded machine.
const SOON: Duration = Duration::from_secs(60);

fn agent(name: &str, text: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {text}\n---\nYou do {text}.\n")
}

/// A host that watches the folders of a project.
struct Bed {
    folder: Folder,
    sources: Vec<SourceDir>,
    host: Host,
}

impl Bed {
    async fn of(folder: Folder, sources: Vec<SourceDir>) -> Self {
        let mut options = Options::new(folder.path().join("state"), RunnerCommand::new("no-runner"));
        options.sources.clone_from(&sources);
        let host = Host::open(options).await.expect("a host");
        Self { folder, sources, host }
    }

    async fn of_a_project() -> Self {
        let folder = Folder::new();
        let sources = registry::sources(Some(&folder.path().join("p")), None, None, &[]);
        folder.write("p/README.md", "");
        Self::of(folder, sources).await
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        self.folder.write(name, &agent(name.rsplit(['/', '.']).nth(1).expect("a name"), text));
    }

    /// Waits until the host has what a reading of the files gives.
    async fn settles(&self) {
        let mut news = self.host.registry_changed().subscribe();
        let arrives = async {
            while *self.host.registry() != Registry::read(&self.sources) {
                // That some were missed means that there is a newer one.
                drop(news.recv().await);
            }
        };
        if tokio::time::timeout(SOON, arrives).await.is_err() {
            let files = Registry::read(&self.sources);
            panic!("the files are {}, the host has {}", told(&files), told(&self.host.registry()));
        }
    }

    /// The same, and that is `expected`: ids with what they do.
    async fn has(&self, expected: &str) {
        self.settles().await;
        assert_eq!(told(&self.host.registry()), expected);
    }

    async fn end(self) {
        tokio::time::timeout(SOON, self.host.close()).await.expect("the host closes");
    }
}

fn told(registry: &Registry) -> String {
    let one = |found: &std::sync::Arc<registry::Definition>| {
        format!("{}:{}", found.id, found.description.trim_start_matches("Does "))
    };
    registry.assistants().iter().map(one).collect::<Vec<_>>().join(" ")
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_come_change_and_go() {
    let bed = Bed::of_a_project().await;
    bed.write("p/.claude/agents/a.md", "one");
    bed.has("a:one").await;
    bed.write("p/.claude/agents/a.md", "two");
    bed.has("a:two").await;
    // An editor that saves: a new file over the old one.
    fs::write(bed.path("p/.claude/agents/.a.md.tmp"), agent("a", "three")).expect("a file");
    fs::rename(bed.path("p/.claude/agents/.a.md.tmp"), bed.path("p/.claude/agents/a.md")).expect("renamed");
    bed.has("a:three").await;
    // Half of a file is read as what it is, and the rest when it is there.
    fs::write(bed.path("p/.claude/agents/a.md"), "---\nname: a\ndesc").expect("half");
    bed.has("").await;
    fs::write(bed.path("p/.claude/agents/a.md"), "").expect("nothing");
    bed.has("").await;
    bed.write("p/.claude/agents/a.md", "four");
    bed.has("a:four").await;
    // The name is in the file, so that a file of another name is the same assistant elsewhere.
    fs::rename(bed.path("p/.claude/agents/a.md"), bed.path("p/.claude/agents/b.md")).expect("renamed");
    bed.has("a:four").await;
    bed.write("p/.claude/agents/deep/er/c.md", "more");
    bed.has("a:four c:more").await;
    fs::rename(bed.path("p/.claude/agents/deep"), bed.path("p/.claude/agents/deeper")).expect("renamed");
    bed.has("a:four c:more").await;
    bed.write("p/.claude/agents/deeper/er/c.md", "less");
    bed.has("a:four c:less").await;
    // First in precedence, and hidden by nothing once it is gone.
    bed.write("p/.agents/agents/c.md", "first");
    bed.has("a:four c:first").await;
    fs::remove_file(bed.path("p/.agents/agents/c.md")).expect("removed");
    bed.has("a:four c:less").await;
    fs::remove_file(bed.path("p/.claude/agents/b.md")).expect("removed");
    bed.has("c:less").await;
    // What is no assistant is told too.
    bed.folder.write("p/.claude/agents/notes.txt", "notes");
    bed.has("c:less").await;
    assert_eq!(bed.host.registry().skipped().len(), 1);
    bed.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_that_appear_later_go_and_come_back() {
    let bed = Bed::of_a_project().await;
    bed.write("p/agents/x/agent.md", "x");
    bed.has("agent:x").await;
    fs::remove_dir_all(bed.path("p/agents")).expect("removed");
    bed.has("").await;
    for text in ["one", "two", "three"] {
        bed.write("p/.opencode/agents/sub/a.md", text);
        bed.has(&format!("a:{text}")).await;
        fs::remove_dir_all(bed.path("p/.opencode")).expect("removed");
        bed.has("").await;
    }
    bed.write("p/.opencode/agents/a.md", "again");
    bed.has("a:again").await;
    // Away and back, the folder and the one above it.
    for name in ["p/.opencode", "p/.opencode/agents"] {
        fs::rename(bed.path(name), bed.path("p/away")).expect("renamed");
        bed.has("").await;
        bed.write("p/away/b.md", "unseen");
        fs::remove_file(bed.path("p/away/b.md")).expect("removed");
        fs::rename(bed.path("p/away"), bed.path(name)).expect("renamed");
        bed.has("a:again").await;
    }
    // Another one in its place at once.
    fs::rename(bed.path("p/.opencode/agents"), bed.path("p/old")).expect("renamed");
    bed.write("p/.opencode/agents/a.md", "new");
    bed.has("a:new").await;
    bed.write("p/.opencode/agents/b.md", "more");
    bed.has("a:new b:more").await;
    // The project itself.
    fs::remove_dir_all(bed.path("p")).expect("removed");
    bed.has("").await;
    bed.write("p/.opencode/agents/a.md", "reborn");
    bed.has("a:reborn").await;
    bed.end().await;
}

/// Who works in a folder, or has it open, keeps what was removed; that tells nothing then.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_project_that_goes_and_comes_back_while_a_program_works_in_it() {
    let bed = Bed::of_a_project().await;
    for text in ["one", "two", "three"] {
        bed.write("p/.claude/agents/a.md", text);
        bed.has(&format!("a:{text}")).await;
        fs::remove_dir_all(bed.path("p/.claude")).expect("removed");
        bed.has("").await;
        let held = fs::File::open(bed.path("p")).expect("a folder");
        fs::remove_dir_all(bed.path("p")).expect("removed");
        bed.write("p/.claude/agents/a.md", "reborn");
        bed.has("a:reborn").await;
        drop(held);
    }
    bed.end().await;
}

/// Files and folders written, removed and renamed in any order, by chance that is the same each time.
#[tokio::test(flavor = "multi_thread")]
async fn any_changes_end_in_what_the_files_are() {
    let bed = Bed::of_a_project().await;
    let mut seed = 5_u64;
    let mut pick = |of: &[&'static str]| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        of[(seed >> 33) as usize % of.len()]
    };
    let folders = [
        "p/.claude",
        "p/.claude/agents",
        "p/.claude/agents/a",
        "p/.claude/agents/a/b",
        "p/.agents/agents",
        "p/agents",
        "p/agents/x",
        "p/aside",
    ];
    let mut seen = 0;
    for round in 0..10 {
        for step in 0..30 {
            let (one, other) = (bed.path(pick(&folders)), bed.path(pick(&folders)));
            let file = pick(&["x.md", "y.md", "agent.md", "notes.txt"]);
            // What cannot be done is not done: a folder does not go into itself.
            match pick(&["write", "write", "write", "write", "remove", "rename", "move"]) {
                "write" => {
                    fs::create_dir_all(&one).expect("a folder");
                    let name = format!("n{}", (round * 30 + step) % 50);
                    fs::write(one.join(file), agent(&name, &step.to_string())).expect("a file");
                }
                "remove" => drop(fs::remove_dir_all(one)),
                "move" => drop(fs::rename(one.join(file), other.join("moved.md"))),
                _ => drop(fs::rename(one, other)),
            }
        }
        bed.settles().await;
        seen += bed.host.registry().assistants().len();
    }
    assert!(seen > 20, "chance leaves some assistants: {seen}");
    bed.end().await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_is_a_link() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new();
    folder.write("one/agents/a.md", &agent("a", "one"));
    folder.write("two/agents/a.md", &agent("a", "two"));
    let link = |target: &str| symlink(folder.path().join(target), folder.path().join("link")).expect("a link");
    link("one");
    let sources = registry::sources(None, None, None, &[folder.path().join("link/agents")]);
    let bed = Bed::of(Folder::new(), sources).await;
    bed.has("a:one").await;
    folder.write("one/agents/b.md", &agent("b", "more"));
    bed.has("a:one b:more").await;
    fs::remove_file(folder.path().join("link")).expect("removed");
    link("two");
    bed.has("a:two").await;
    folder.write("two/agents/a.md", &agent("a", "three"));
    bed.has("a:three").await;
    // What it leads to goes and comes back.
    fs::remove_dir_all(folder.path().join("two")).expect("removed");
    bed.has("").await;
    folder.write("two/agents/a.md", &agent("a", "four"));
    bed.has("a:four").await;
    bed.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_files_one_by_one() {
    let bed = Bed::of_a_project().await;
    bed.write("p/.claude/agents/first.md", "it");
    bed.has("first:it").await;
    for n in 0..1_000 {
        bed.write(&format!("p/.claude/agents/{}/n{n:03}.md", n % 7), &n.to_string());
    }
    for n in (0..1_000).step_by(3) {
        fs::remove_file(bed.path(&format!("p/.claude/agents/{}/n{n:03}.md", n % 7))).expect("removed");
    }
    let left = (0..1_000).filter(|n| n % 3 != 0).map(|n| format!("n{n:03}:{n}"));
    bed.has(&std::iter::once("first:it".to_owned()).chain(left).collect::<Vec<_>>().join(" ")).await;
    bed.end().await;
}

fn git(folder: &Path, arguments: &[&str]) {
    let identity = [
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.com",
        "-c",
        "core.hooksPath=none",
        "-c",
        "commit.gpgsign=false",
    ];
    let mut git = Command::new("git");
    let done = git.arg("-C").arg(folder).args(identity).args(arguments).output().expect("git runs");
    assert!(done.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkout_of_another_branch() {
    if Command::new("git").arg("--version").output().is_err() {
        return say("skipped: there is no git");
    }
    let bed = Bed::of_a_project().await;
    let project = bed.path("p");
    git(&project, &["init", "-q", "-b", "one"]);
    for name in ["stays", "changes", "goes", "moves"] {
        bed.write(&format!("p/.claude/agents/team/{name}.md"), name);
    }
    bed.has("changes:changes goes:goes moves:moves stays:stays").await;
    git(&project, &["add", "."]);
    git(&project, &["commit", "-q", "-m", "one"]);
    git(&project, &["checkout", "-q", "-b", "two"]);
    git(&project, &["mv", ".claude/agents/team/moves.md", ".claude/agents/moved.md"]);
    git(&project, &["rm", "-q", ".claude/agents/team/goes.md"]);
    bed.write("p/.claude/agents/team/changes.md", "changed");
    bed.write("p/.github/agents/comes.md", "comes");
    git(&project, &["add", "."]);
    git(&project, &["commit", "-q", "-m", "two"]);
    let (one, two) =
        ("changes:changes goes:goes moves:moves stays:stays", "changes:changed comes:comes moves:moves stays:stays");
    bed.has(two).await;
    for _ in 0..3 {
        git(&project, &["checkout", "-q", "one"]);
        bed.has(one).await;
        git(&project, &["checkout", "-q", "two"]);
        bed.has(two).await;
    }
    bed.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_events_and_errors_are_made_up_for() {
    let bell = Bell::default();
    bell.hear(Ok(Event::new(notify::EventKind::Other).set_flag(notify::event::Flag::Rescan)));
    assert!(bell.moved.load(Ordering::Acquire) && !bell.failed.load(Ordering::Acquire));
    tokio::time::timeout(SOON, bell.wait(true)).await.expect("it rang");
    bell.hear(Err(notify::Error::generic("broken")));
    assert!(bell.failed.load(Ordering::Acquire));
    bell.hear(Ok(Event::new(notify::EventKind::Create(notify::event::CreateKind::Any)).add_path("/x".into())));
    tokio::time::timeout(SOON, bell.rung.notified()).await.expect("it rang");
}

#[tokio::test(start_paused = true)]
async fn how_long_a_change_waits() {
    let took = async |bell: &Bell, all_watched| {
        let begun = Instant::now();
        bell.wait(all_watched).await;
        begun.elapsed()
    };
    let bell = Bell::default();
    bell.rung.notify_one();
    assert_eq!(took(&bell, true).await.as_millis(), QUIET.as_millis());
    assert_eq!(took(&bell, false).await.as_millis(), (LOOK_AGAIN + QUIET).as_millis(), "nothing rang");
    bell.failed.store(true, Ordering::Release);
    bell.rung.notify_one();
    assert_eq!(took(&bell, true).await.as_millis(), (LOOK_AGAIN + QUIET).as_millis(), "not at once after a failure");
    // Changes that do not end.
    let rings = async {
        loop {
            bell.rung.notify_one();
            tokio::time::sleep(QUIET / 2).await;
        }
    };
    tokio::select! {
        () = rings => {}
        took = took(&bell, true) => assert_eq!(took.as_millis(), READ_WITHIN.as_millis()),
    }
}
