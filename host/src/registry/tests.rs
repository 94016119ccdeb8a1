use std::path::{Path, PathBuf};

use super::*;
use crate::testing::Folder;

fn agent(name: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}\n---\nYou do {name}.\n")
}

fn dir(path: &Path) -> SourceDir {
    SourceDir { source: Source::Dir, path: path.to_owned(), layout: Layout::Files, required: true }
}

/// Assistants, hidden ones and skipped files, with paths below `root`.
fn told(registry: &Registry, root: &Path) -> String {
    let short = |path: &str| path.replace(&format!("{}/", root.display()), "");
    let ids = registry.assistants().iter().map(|found| found.id.to_string());
    let hidden = registry.shadowed().iter().map(|hidden| format!("-{}", short(&hidden.reason.file)));
    let skipped = registry.skipped().iter().map(|reason| format!("{}!{}", short(&reason.file), reason.code));
    ids.chain(hidden).chain(skipped).collect::<Vec<_>>().join(" ")
}

#[test]
fn reads_a_folder() {
    let folder = Folder::new();
    folder.write("b/two.md", &agent("two"));
    folder.write("b/deep/er/one.agent.md", &agent("one"));
    folder.write("a/two.md", &agent("Two"));
    folder.write("README.md", "# These are agents\n");
    folder.write("notes.txt", "notes");
    folder.write(".hidden.md", &agent("hidden"));
    folder.write(".git/x.md", &agent("git"));
    folder.write("big.md", &"x".repeat(FILE_BYTES_MAX as usize + 1));
    let registry = Registry::read(&[dir(folder.path())]);
    let expected = "two one -b/two.md README.md!no_frontmatter big.md!file_too_big notes.txt!unknown_format";
    assert_eq!(told(&registry, folder.path()), expected);
    let two = registry.find_exact(" TWO ").expect("by name");
    assert_eq!((two.name.as_str(), two.path.clone()), ("Two", Some(folder.path().join("a/two.md"))));
    assert_eq!(registry.get(&"one".parse().expect("an id")).expect("by id").system_prompt, "You do one.");
    assert!(registry.find_exact("three").is_none());
}

#[test]
fn first_source_wins() {
    let folder = Folder::new();
    folder.write("project/x.md", &agent("x"));
    folder.write("user/x.md", &agent("X"));
    let at = |name: &str, source| SourceDir { source, ..dir(&folder.path().join(name)) };
    let sources = [at("project", Source::Project), at("user", Source::User)];
    let stored = Registry::read(&[at("project", Source::Project)]).assistants()[0].as_ref().clone();
    let stored = Definition { source: Source::Database, path: None, ..stored };
    let registry = Registry::read(&sources).join([Arc::new(stored)]);
    let [only] = registry.assistants() else { panic!("one is left") };
    assert_eq!(only.source, Source::Project);
    let hidden: Vec<_> = registry.shadowed().iter().map(|hidden| hidden.source).collect();
    assert_eq!(hidden, [Source::User, Source::Database]);
    assert_eq!(registry.shadowed()[0].reason.code, Code::Shadowed);
}

#[test]
fn a_registry_is_deterministic() {
    let folder = Folder::new();
    for name in ["c", "a", "b"] {
        folder.write(&format!("{name}.md"), &agent(name));
        folder.write(&format!("again/{name}.md"), &agent(name));
    }
    let [one, two] = [0, 1].map(|_| Registry::read(&[dir(folder.path())]));
    assert_eq!(told(&one, folder.path()), told(&two, folder.path()));
    assert_eq!(one.fingerprint(), two.fingerprint());
    folder.write("a.md", &agent("a, changed"));
    assert_ne!(one.fingerprint(), Registry::read(&[dir(folder.path())]).fingerprint());
}

#[cfg(unix)]
#[test]
fn follows_no_link_and_opens_no_pipe() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new();
    folder.write("outside/secret.md", &agent("secret"));
    folder.write("in/real.md", &agent("real"));
    let root = folder.path().join("in");
    symlink(folder.path().join("outside"), root.join("out")).expect("a link");
    symlink(folder.path().join("outside/secret.md"), root.join("secret.md")).expect("a link");
    symlink(&root, root.join("loop")).expect("a link");
    symlink("missing.md", root.join("gone.md")).expect("a link");
    let pipe = root.join("pipe.md");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("a pipe");
    let expected =
        "real gone.md!dangling_link loop!link_inside out!link_outside pipe.md!special_file secret.md!link_outside";
    assert_eq!(told(&Registry::read(&[dir(&root)]), &root), expected);
    let [read, linked] = [&pipe, &root.join("secret.md")].map(|path| walk::read(path).expect_err("no file").code);
    assert_eq!((read, linked), (Code::SpecialFile, Code::Unreadable));
    // The root itself may be a link: people keep their agents elsewhere.
    let link = folder.path().join("link");
    symlink(&root, &link).expect("a link");
    assert_eq!(Registry::read(&[dir(&link)]).assistants().len(), 1);
}

#[test]
fn folders_that_are_not_there() {
    let folder = Folder::new();
    let missing = folder.path().join("missing");
    assert_eq!(told(&Registry::read(&[dir(&missing)]), folder.path()), "missing!unreadable");
    let optional = SourceDir { required: false, ..dir(&missing) };
    assert_eq!(told(&Registry::read(&[optional]), folder.path()), "");
}

#[test]
fn too_deep() {
    let folder = Folder::new();
    let path = "d/".repeat(FOLDER_DEPTH_MAX + 1);
    folder.write(&format!("{path}x.md"), &agent("x"));
    let registry = Registry::read(&[dir(folder.path())]);
    assert!(registry.assistants().is_empty());
    assert_eq!(registry.skipped()[0].code, Code::TooDeep);
}

#[test]
fn places_and_their_order() {
    let check = |project: Option<&str>, home: Option<&str>, config: Option<&str>, dirs: &[&str], expected: &[&str]| {
        let dirs: Vec<PathBuf> = dirs.iter().map(PathBuf::from).collect();
        let found = sources(project.map(Path::new), home.map(Path::new), config.map(Path::new), &dirs);
        let found: Vec<_> = found.iter().map(|dir| format!("{} {}", dir.source.label(), dir.path.display())).collect();
        assert_eq!(found, expected);
    };
    check(None, None, None, &[], &[]);
    check(Some("/p"), Some("/h"), Some("/c"), &["/x", "/y", "/x"], &["dir /x", "dir /y"]);
    check(None, None, Some("/c"), &[], &["user /c/assistants"]);
    let below = |source: &str, root: &str, more: &[&str]| {
        let systems = ["agents", "claude", "github", "cursor", "opencode", "gemini", "codex", "goose", "pi"];
        let folders = systems.map(|system| format!(".{system}/agents")).into_iter();
        let rest = [".opencode/agent", ".opencode/modes", ".opencode/mode"].into_iter().chain(more.iter().copied());
        let folders = folders.chain(rest.chain(["agents"]).map(str::to_owned));
        folders.map(|folder| format!("{source} {root}/{folder}")).collect::<Vec<_>>()
    };
    let project = below("project", "/p", &[".github/chatmodes", ".goose/recipes"]);
    let opencode = ["agents", "agent", "modes", "mode"].map(|folder| format!(".config/opencode/{folder}"));
    let more = [
        &opencode.each_ref().map(String::as_str)[..],
        &[".config/goose/agents", ".config/goose/recipes", ".pi/agent/agents"],
    ]
    .concat();
    let user = below("user", "/h", &more);
    let both = [project, user].concat();
    check(Some("/p"), Some("/h"), None, &[], &both.iter().map(String::as_str).collect::<Vec<_>>());
    // A home that is the project too is the project's.
    let mut both = below("project", "/h", &[".github/chatmodes", ".goose/recipes"]);
    both.extend(more.iter().map(|folder| format!("user /h/{folder}")));
    check(Some("/h"), Some("/h"), None, &[], &both.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn folders_with_an_agent_each() {
    let folder = Folder::new();
    folder.write("x/agent.md", "---\ndescription: Does x\n---\nYou do x.\n");
    folder.write("x/memory.md", &agent("memory"));
    folder.write("main/agent.md", &agent("main"));
    folder.write("stray.md", &agent("stray"));
    let registry = Registry::read(&[SourceDir { layout: Layout::Folders, ..dir(folder.path()) }]);
    assert_eq!(told(&registry, folder.path()), "x main/agent.md!reserved_name");
}

#[test]
fn ids_that_look_alike() {
    let folder = Folder::new();
    for name in ["code-reviewer", "code-formatter", "test-writer", "invoice-checker", "发票核对"] {
        folder.write(&format!("{name}.md"), &agent(name));
    }
    let registry = Registry::read(&[dir(folder.path())]);
    let check = |text: &str, expected: &[&str]| {
        let found: Vec<_> = registry.nearest(text, 2).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{text:?}");
    };
    check("code-reviwer", &["code-reviewer"]);
    check("Code Reviewer", &["code-reviewer"]);
    check("code", &["code-reviewer", "code-formatter"]);
    check("reviewer", &["code-reviewer"]);
    check("the-invoice-checker", &["invoice-checker"]);
    check("zzzzzzzz", &[]);
    check("", &[]);
}

#[test]
fn every_code_has_its_name() {
    let mut names: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
    for code in Code::ALL {
        assert_eq!(serde_json::to_value(code).expect("JSON"), code.as_str());
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Code::ALL.len());
}

#[test]
fn a_definition_is_the_same_after_json() {
    let text = "---\nname: X y\ndescription: \"Does x. <example>user: hi</example>\"\ntools: [a]\nmodel: [m, n]\ntags: t\n\
                allowed_callers: [main]\nmaxTurns: 5\ntimeout_mins: 2\nmcp-servers: {s: {command: c}}\ncolor: red\n---\nGo.";
    let found = read_markdown(text.as_bytes(), Path::new("x.md"), Source::User).expect("a definition");
    let again: Definition = serde_json::from_str(&serde_json::to_string(&found).expect("JSON")).expect("the same");
    assert_eq!(found, again);
    assert_eq!((found.max_turns, found.timeout_ms), (Some(5), Some(120_000)));
    assert_eq!((found.examples.as_slice(), found.extra["color"].as_str()), (["hi".to_owned()].as_slice(), Some("red")));
}

/// Prints how long reading takes, the findings by code, and the files that are none; asserts what was read.
#[test]
fn the_corpus() {
    let Some(corpus) = crate::testing::corpus() else { return };
    let start = std::time::Instant::now();
    let registry = Registry::read(&[dir(&corpus.join("agents"))]);
    let took = start.elapsed();
    let of = |found: &[&Diagnostic]| -> Vec<(usize, Code)> {
        let count = |code: &Code| (found.iter().filter(|one| one.code == *code).count(), *code);
        Code::ALL.iter().map(count).filter(|(count, _)| *count > 0).collect()
    };
    let told: Vec<&Diagnostic> = registry.assistants().iter().flat_map(|found| &found.warnings).collect();
    let skipped: Vec<&Diagnostic> = registry.skipped().iter().collect();
    let counts = (registry.assistants().len(), registry.shadowed().len(), registry.skipped().len());
    crate::testing::say(&format!("assistants, shadowed, skipped: {counts:?} in {took:?}; told: {:?}", of(&told)));
    crate::testing::say(&format!("skipped: {:?}", of(&skipped)));
    skipped.iter().for_each(|reason| crate::testing::say(&reason.to_string()));
    assert_eq!(counts.0 + counts.1 + counts.2, 1_049, "every file is told of once");
    let mut nameless = registry.assistants().iter().filter(|one| one.name.is_empty() || one.system_prompt.is_empty());
    assert_eq!(nameless.next().map(|one| &one.path), None, "every assistant has a name and a prompt");
    let no_description = told.iter().filter(|one| one.code == Code::DescriptionMissing).count();
    assert!(no_description <= 1, "one file of the corpus has no description");
    // Documents without frontmatter, one with another system's, and the list of prompts.
    let reasons = [Code::NoFrontmatter, Code::UnknownFormat, Code::NameMissing];
    assert!(skipped.iter().all(|reason| reasons.contains(&reason.code)), "{:?}", of(&skipped));
    assert!(skipped.len() <= 10, "{}", skipped.len());
}
