//! `assistant-host check`, `list` and `search`: what people are told of their files.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::HOST;

/// The program in `folder`, without keys and with an empty home, with `--config config.toml` where there is one.
fn run(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(HOST);
    command.args(args).current_dir(folder).env_clear().env("HOME", folder.join("home")).stdin(Stdio::null());
    if folder.join("config.toml").exists() {
        command.args(["--config", "config.toml"]);
    }
    command.output().expect("it runs")
}

fn said(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().expect("a code"), text(&output.stdout), text(&output.stderr))
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    dir
}

/// A model from a script, so that wishes for models are looked at.
const MODEL: [(&str, &str); 2] = [
    ("config.toml", "[models.s]\nprovider = \"scripted\"\nscript = \"s.json\"\n"),
    ("s.json", r#"{"assistants":[{"steps":[{"text":"done"}]}]}"#),
];
const CLEAN: &str = "---\nname: sweeper\ndescription: Sweeps the floor.\n---\nSweep.\n";
const NOTED: &str = "---\nname: The Sweeper\ndescription: Sweeps the floor.\n---\nSweep.\n";
const WARNED: &str = "---\nname: mopper\ndescription: Mops: always wet\ntools: Read, Scrub\nmodel: soap-9\n---\nMop.\n";
const BROKEN: &str = "---\nname: bucket\n";

#[test]
fn the_exit_code_tells_how_bad_it_is() {
    let check = |text: &str, args: &[&str], want: i32| {
        let dir = folder(&[("agents/a.md", text)]);
        let output = run(dir.path(), &[&["check", "agents"], args].concat());
        let (code, out, err) = said(&output);
        assert_eq!(code, want, "{args:?} {text}\n{out}\n{err}");
    };
    check(CLEAN, &["--strict"], 0);
    check(&CLEAN.replace("---\nSweep", "disabled: maybe\n---\nSweep"), &[], 2);
    check(CLEAN.trim_start_matches("---\n"), &[], 0);
    check(CLEAN.trim_start_matches("---\n"), &["--strict"], 1);
    check(NOTED, &["--strict"], 0);
    check(&CLEAN.replace("---\nSweep", "runner: assistant-runner\n---\nSweep"), &["--strict"], 0);
    check(&CLEAN.replace("---\nSweep", "runner: nobody\n---\nSweep"), &[], 2);
    check(WARNED, &[], 0);
    check(WARNED, &["--strict"], 1);
    check(WARNED, &["--strict", "--json"], 1);
    check(BROKEN, &[], 2);
    check("", &["--strict"], 2);
    check("\u{0}\u{1}", &["--json"], 2);
}

#[test]
fn a_finding_has_its_place_its_line_and_what_to_do() {
    let dir = folder(&[MODEL[0], MODEL[1], ("agents/mopper.md", WARNED), ("agents/z/bucket.md", BROKEN)]);
    let (code, out, err) = said(&run(dir.path(), &["check", "agents"]));
    let want = r#"agents/mopper.md:3:18: warning[yaml_repaired]: the frontmatter is no valid YAML (mapping values are not allowed in this context); it was read key by key
     3 | description: Mops: always wet
       |                  ^
       = help: put quotes around a value with `: `, or one that begins with a sign

agents/mopper.md:4:14: warning[tool_unavailable]: not available here: Scrub
     4 | tools: Read, Scrub
       |              ^
       = help: in the configuration, `[tool_aliases]` with `Scrub = "TOOL"` maps it to a tool of `assistant-host tools`

agents/mopper.md:5:8: warning[model_replaced]: `soap-9` is not configured; it runs on `s`
     5 | model: soap-9
       |        ^
       = help: in the configuration, `[model_aliases]` with `soap-9 = "s"` takes it without a word, and `[models.NAME]` adds one

agents/z/bucket.md:1: error[frontmatter_not_closed]: the frontmatter never ends
     1 | ---
       = help: put a line `---` behind the last key

"#;
    assert_eq!((code, out.as_str()), (2, want), "{err}");
    let sum = "1 assistant loaded, 1 of them repaired; 0 shadowed, 1 file skipped; 1 error, 3 warnings\n";
    assert!(err.contains("tools that assistants ask for in vain: Scrub 1\n") && err.contains(sum), "{err}");
    let (code, out, err) = said(&run(dir.path(), &["check", "agents", "--short", "--only", "model_replaced"]));
    let want = "agents/mopper.md:5:8: warning[model_replaced]: `soap-9` is not configured; it runs on `s`\n";
    assert_eq!((code, out.as_str()), (2, want), "{err}");
    assert!(err.contains("3 findings not shown: without --only"), "{err}");
    let (_, out, _) = said(&run(dir.path(), &["check", "agents", "--json", "--only", "model_replaced"]));
    let told: Value = serde_json::from_str(&out).expect("JSON");
    let codes: Vec<_> = told["diagnostics"].as_array().expect("a list").iter().map(|one| &one["code"]).collect();
    assert_eq!((codes, &told["totals"]["warnings"]), (vec![&json!("model_replaced")], &json!(3)));
    for both in [["--only", "model_replaced", "--all"], ["--short", "--json", "--strict"]] {
        let (code, _, err) = said(&run(dir.path(), &[&["check", "agents"][..], &both].concat()));
        assert!(code == 2 && err.contains("cannot be used with"), "{err}");
    }
}

#[test]
fn a_check_as_json_is_whole() {
    let files = [("agents/mopper.md", WARNED), ("agents/other.md", WARNED), ("agents/notes.md", "Notes\n")];
    let dir = folder(&[&MODEL[..], &files].concat());
    let (code, out, err) = said(&run(dir.path(), &["check", "agents", "--json"]));
    let mut told: Value = serde_json::from_str(&out).expect("JSON");
    let mut codes = Vec::new();
    for one in told["diagnostics"].as_array().expect("a list") {
        codes.push(format!("{} {} {}", one["file"].as_str().expect("a file"), one["code"], one["line"]));
    }
    told["diagnostics"] = json!(codes);
    let shadowed = told["shadowed"][0]["by"].take();
    told["shadowed"] = json!(told["shadowed"].as_array().map(Vec::len));
    let want = json!({
        "assistants": [{
            "assistant_id": "mopper", "name": "mopper", "source": "dir", "path": "agents/mopper.md",
            "tools": ["read_file"], "unavailable_tools": ["Scrub"], "model": "s",
        }],
        "diagnostics": [
            "agents/mopper.md \"yaml_repaired\" 3",
            "agents/mopper.md \"tool_unavailable\" 4",
            "agents/mopper.md \"model_replaced\" 5",
            "agents/notes.md \"no_frontmatter\" null",
            "agents/other.md \"shadowed\" null",
        ],
        "shadowed": 1,
        "totals": {
            "assistants": 1, "repaired": 1, "shadowed": 1, "skipped": 1, "errors": 0, "warnings": 4, "infos": 1,
        },
        "by_code": {
            "yaml_repaired": 1, "no_frontmatter": 1, "shadowed": 1, "tool_unavailable": 1, "model_replaced": 1,
        },
    });
    assert_eq!((code, told, shadowed), (0, want, json!("agents/mopper.md")), "{err}");
}

#[test]
fn a_project_a_file_and_nothing_can_be_checked() {
    let dir = folder(&[
        ("p/.claude/agents/sweeper.md", CLEAN),
        ("p/docs/bucket.md", BROKEN),
        ("clone/agents/sweeper.md", CLEAN),
        ("p/.git/HEAD", "ref: refs/heads/main\n"),
        ("empty/.keep", ""),
    ]);
    let check = |folder: &str, args: &[&str], want: i32, err: &str| {
        let output = run(&dir.path().join(folder), args);
        let (code, stdout, stderr) = said(&output);
        assert_eq!(code, want, "{args:?}\n{stdout}\n{stderr}");
        assert!(stderr.contains(err), "{args:?}\n{stderr}");
    };
    // Of a project its places are read, not every file.
    check(".", &["check", "p"], 0, "a project: its assistants are read from p/.claude/agents");
    check("p", &["check"], 0, "1 assistant loaded");
    // A folder `agents` makes no project: it may hold anything.
    check(".", &["check", "clone"], 0, "1 assistant loaded");
    check(".", &["check", "p/.claude"], 0, "1 assistant loaded");
    check(".", &["check", "p/docs"], 2, "0 assistants loaded");
    check(".", &["check", "p/.claude/agents/sweeper.md"], 0, "1 assistant loaded");
    check(".", &["check", "empty"], 0, "0 assistants loaded");
    check(".", &["check", "nowhere"], 2, "check nowhere: ");
    check(".", &["check", "p", "--assistants", "p/docs"], 2, "are both given");
    check(".", &["check", "--only", "yaml_repared"], 2, "`yaml_repaired` is one");
}

#[test]
fn each_code_is_explained() {
    let dir = folder(&[]);
    let (code, out, err) = said(&run(dir.path(), &["check", "--codes"]));
    assert_eq!((code, err.as_str()), (0, ""));
    for one in assistant_host::registry::Code::ALL {
        assert!(out.contains(&format!("\n{one} (")) || out.starts_with(&format!("{one} (")), "{one} is not in:\n{out}");
    }
    let (code, out, err) = said(&run(dir.path(), &["check", "--codes", "shadowed", "--json"]));
    let told: Value = serde_json::from_str(&out).expect("JSON");
    let want = json!({ "codes": [{
        "code": "shadowed",
        "severity": "warning",
        "meaning": "Another file has the same id and comes first.",
        "advice": "Rename one of the two, or remove the one that is not wanted.",
    }] });
    assert_eq!((code, told), (0, want), "{err}");
}

#[test]
fn a_reader_that_has_gone_is_no_error() {
    let dir = folder(&[("agents/mopper.md", WARNED)]);
    let mut command = Command::new(HOST);
    command.args(["check", "agents"]).current_dir(dir.path()).env_clear().env("HOME", dir.path());
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

/// Elsewhere no file can have such a name.
#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_no_text_is_shown_as_far_as_it_is() {
    use std::os::unix::ffi::OsStrExt;
    let dir = folder(&[("agents/notes.md", "Notes\n")]);
    for (name, text) in [(&b"o\xffdd.md"[..], CLEAN), (b"z\xff.md", CLEAN), (b"b\xff.md", BROKEN)] {
        std::fs::write(dir.path().join("agents").join(std::ffi::OsStr::from_bytes(name)), text).expect("a file");
    }
    let places = ["--assistants", "agents"];
    for (args, want) in
        [(&["check", "--json"][..], 2), (&["check"], 2), (&["list", "--json"], 0), (&["search", "floor", "--json"], 0)]
    {
        let (code, out, err) = said(&run(dir.path(), &[args, &places].concat()));
        assert_eq!(code, want, "{args:?}\n{out}\n{err}");
        assert!(out.contains("o\u{fffd}dd.md") || args == ["check"], "{args:?}\n{out}");
    }
}

#[test]
fn a_list_counts_and_a_check_tells() {
    let dir = folder(&[
        ("agents/sweeper.md", "---\nname: sweeper\ndescription: Sweeps.\ntags: [Floor, dry]\n---\nSweep.\n"),
        ("agents/mopper.md", WARNED),
        ("agents/notes.md", "Notes\n"),
        ("agents/bucket.md", BROKEN),
    ]);
    let check = |args: &[&str], stdout: &str, stderr: &str| {
        let (code, out, err) = said(&run(dir.path(), &[args, &["--assistants", "agents"]].concat()));
        assert_eq!((code, out.as_str(), err.as_str()), (0, stdout, stderr), "{args:?}");
    };
    let pad = |id: &str| format!("{id:<32}");
    let (mopper, sweeper) = (format!("{} Mops: always wet\n", pad("mopper")), format!("{} Sweeps.\n", pad("sweeper")));
    let skipped = "skipped: agents/bucket.md: the frontmatter never ends\n";
    let hint = "`assistant-host check` tells the reasons, and what to do\n";
    check(
        &["list"],
        &format!("{mopper}{sweeper}"),
        &format!("{skipped}2 assistants, 1 of them repaired; 0 shadowed, 2 files skipped\n{hint}"),
    );
    check(
        &["list", "--tag", "floor", "--tag", "DRY", "--source", "dir"],
        &sweeper,
        &format!("{skipped}1 assistant, 0 of them repaired; 0 shadowed, 1 file skipped\n{hint}"),
    );
    let none = "none of 2 has that source and these tags; sources: dir; tags: Floor, dry\n";
    check(
        &["list", "--tag", "wet"],
        "",
        &format!("{skipped}0 assistants, 0 of them repaired; 0 shadowed, 1 file skipped\n{hint}{none}"),
    );
    let of_user = format!("0 assistants, 0 of them repaired; 0 shadowed, 0 files skipped\n{none}");
    check(&["list", "--source", "user"], "", &of_user);
    check(&["search", "sweeps", "--tag", "floor"], &format!("1.00  {sweeper}"), "");
    check(&["search", "sweeps", "--source", "user"], "", none);
    check(&["search", "mops", "--tag", "dry"], "", "none of 1 assistants fits; describe the task in other words\n");
}

/// What is named alone is told the same as where its folder is read.
#[test]
#[cfg(unix)]
fn a_link_a_pipe_and_nothing_are_what_they_are_in_their_folder() {
    use std::os::unix::fs::symlink;
    let dir = folder(&[("agents/sweeper.md", CLEAN), ("far/mopper.md", WARNED)]);
    let agents = dir.path().join("agents");
    for (to, name) in [("sweeper.md", "near.md"), ("../far/mopper.md", "out.md"), ("nowhere.md", "lost.md")] {
        symlink(to, agents.join(name)).expect("a link");
    }
    let made = Command::new("mkfifo").arg(agents.join("pipe.md")).status().expect("mkfifo runs");
    assert!(made.success());
    let codes_of = |args: &[&str], file: &str| {
        let (_, out, _) = said(&run(dir.path(), &[args, &["--json"]].concat()));
        let told: Value = serde_json::from_str(&out).expect("JSON");
        let all = told["diagnostics"].as_array().expect("a list").clone();
        let mut codes: Vec<Value> =
            all.into_iter().filter(|one| one["file"] == file).map(|mut one| one["code"].take()).collect();
        codes.sort_by_key(Value::to_string);
        codes
    };
    for (name, code) in [
        ("near.md", "link_inside"),
        ("out.md", "link_outside"),
        ("lost.md", "dangling_link"),
        ("pipe.md", "special_file"),
    ] {
        let file = format!("agents/{name}");
        let (alone, within) = (codes_of(&["check", &file], &file), codes_of(&["check", "agents"], &file));
        assert_eq!((alone, within), (vec![json!(code)], vec![json!(code)]), "{name}");
    }
}
