use std::path::Path;
use std::sync::atomic::AtomicBool;

use serde_json::{Value, json};

use super::*;
use crate::tools::Own;

/// A folder that is gone with the test, and its path without links.
fn folder(files: &[(&str, &[u8])]) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, content) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, content).expect("a file");
    }
    let root = folder.path().canonicalize().expect("a path");
    (folder, root)
}

/// A folder in which nothing is the host's own.
fn plain(root: &Path) -> Root {
    Root::new(root, &Own::default()).expect("a folder")
}

/// What a search gives: the result, or what the error says.
fn found(root: &Path, params: Value) -> Value {
    let params: SearchFiles = serde_json::from_value(params).expect("arguments");
    match search(&plain(root), &params, 40_000, &AtomicBool::new(false)) {
        Ok(found) => serde_json::to_value(found).expect("a result"),
        Err(error) => json!({ "code": error.code, "message": error.message }),
    }
}

/// The places alone, as `path:line`.
fn places(found: &Value) -> Vec<String> {
    let place = |one: &Value| format!("{}:{}", one["path"].as_str().unwrap_or("?"), one["line"]);
    found["matches"].as_array().map(|all| all.iter().map(place).collect()).unwrap_or_default()
}

const FILES: &[(&str, &[u8])] = &[
    ("a.txt", b"one\nTwo\nthree two\r\nfour\n"),
    ("src/lib.rs", b"fn two() {}\nfn three() {}"),
    ("src/deep/mod.rs", "// zwei: \u{e4}\nfn two_more() {}\n".as_bytes()),
    (".hidden/two.txt", b"two"),
    ("target/two.txt", b"two"),
    (".gitignore", b"target/\n"),
    ("empty", b""),
];

#[test]
fn lines_that_fit() {
    let (_folder, root) = folder(FILES);
    for (params, want) in [
        (json!({ "pattern": "two" }), &["a.txt:2", "a.txt:3", "src/deep/mod.rs:2", "src/lib.rs:1"][..]),
        (json!({ "pattern": "two", "case_insensitive": false }), &["a.txt:3", "src/deep/mod.rs:2", "src/lib.rs:1"]),
        (json!({ "pattern": "Two" }), &["a.txt:2"]),
        (json!({ "pattern": "TWO", "case_insensitive": true, "path": "a.txt" }), &["a.txt:2", "a.txt:3"]),
        (json!({ "pattern": "two$" }), &["a.txt:2", "a.txt:3"]),
        (json!({ "pattern": "^fn \\w+\\(\\)", "glob": "src/*.rs" }), &["src/lib.rs:1", "src/lib.rs:2"]),
        (json!({ "pattern": "() {}", "literal": true, "path": "src/deep" }), &["src/deep/mod.rs:2"]),
        (json!({ "pattern": "\u{c4}", "case_insensitive": true }), &["src/deep/mod.rs:1"]),
        (json!({ "pattern": "two", "path": "." , "glob": "!a.txt" }), &["a.txt:2", "a.txt:3"]),
        (json!({ "pattern": "two", "path": ".hidden" }), &[".hidden/two.txt:1"]),
        (json!({ "pattern": "nowhere" }), &[]),
    ] {
        assert_eq!(places(&found(&root, params.clone())), want, "{params}");
    }
}

#[test]
fn what_stands_around_a_match_is_given_once() {
    let (_folder, root) = folder(&[("n.txt", b"1\n2 x\n3\n4 x\n5\n6\n7\n8 x\n")]);
    let got = found(&root, json!({ "pattern": "x", "context": 2, "max": 2 }));
    let want = json!({
        "matches": [
            { "path": "n.txt", "line": 2, "text": "2 x", "before": ["1"], "after": ["3"] },
            { "path": "n.txt", "line": 4, "text": "4 x", "after": ["5", "6"] },
        ],
        "more": true, "next_offset": 2, "files_searched": 1, "files_skipped": 0,
    });
    assert_eq!(got, want);
    let rest = found(&root, json!({ "pattern": "x", "context": 2, "max": 2, "offset": 2 }));
    let want = json!({
        "matches": [{ "path": "n.txt", "line": 8, "text": "8 x", "before": ["7"] }],
        "more": false, "files_searched": 1, "files_skipped": 0,
    });
    assert_eq!(rest, want);
}

#[test]
fn pages_give_each_match_once_and_none_is_left_out() {
    let line = "x y\n".repeat(7);
    let (_folder, root) = folder(&[("a", line.as_bytes()), ("b", line.as_bytes()), ("c", line.as_bytes())]);
    for max in [1, 2, 3, 7, 8, 20, 21, 22] {
        let (mut all, mut offset) = (Vec::new(), 0);
        loop {
            let page = found(&root, json!({ "pattern": "x", "max": max, "offset": offset }));
            all.extend(places(&page));
            let Some(next) = page["next_offset"].as_u64() else { break };
            assert!(page["more"] == true && next > offset);
            offset = next;
        }
        let want: Vec<String> = ["a", "b", "c"].iter().flat_map(|f| (1..=7).map(move |n| format!("{f}:{n}"))).collect();
        assert_eq!(all, want, "{max}");
    }
    let files = found(&root, json!({ "pattern": "x", "files_only": true, "max": 2 }));
    assert_eq!(
        (&files["files"], &files["next_offset"], &files["matches"]),
        (&json!(["a", "b"]), &json!(2), &json!([]))
    );
    let files = found(&root, json!({ "pattern": "x", "files_only": true, "max": 2, "offset": 2 }));
    assert_eq!((&files["files"], &files["more"]), (&json!(["c"]), &json!(false)));
}

#[test]
fn what_cannot_be_searched_is_left_out_and_told() {
    let mut late = b"needle\n".repeat(40_000);
    late.push(0);
    let (_folder, root) = folder(&[
        ("a.bin", b"needle\0needle"),
        ("late.bin", &late),
        ("ok.txt", b"needle"),
        ("utf16.txt", &[0xff, 0xfe, b'n', 0, b'e', 0, b'e', 0, b'd', 0, b'l', 0, b'e', 0]),
        ("bad.txt", b"needle \xff\xfe!"),
    ]);
    std::fs::File::create(root.join("huge")).expect("a file").set_len(FILE_BYTES_MAX + 1).expect("a length");
    let got = found(&root, json!({ "pattern": "needle", "max": 10 }));
    assert_eq!(places(&got), ["bad.txt:1", "ok.txt:1", "utf16.txt:1"]);
    assert_eq!(got["matches"][0]["text"], "needle \u{fffd}\u{fffd}!");
    let skipped = json!([
        { "path": "a.bin", "why": "binary" },
        { "path": "huge", "why": "larger than 16 MiB" },
        { "path": "late.bin", "why": "binary" },
    ]);
    assert_eq!((&got["skipped"], &got["files_skipped"], &got["more"]), (&skipped, &json!(3), &json!(false)));
}

#[test]
fn a_long_line_is_shown_around_its_match_and_the_answer_is_bounded() {
    let long = format!("{}\u{e4}needle{}", "a".repeat(5_000), "\u{e4}".repeat(5_000));
    let many = format!("{} needle\n", "b".repeat(400)).repeat(2_000);
    let (_folder, root) = folder(&[("long.txt", long.as_bytes()), ("many.txt", many.as_bytes())]);
    let got = found(&root, json!({ "pattern": "needle", "path": "long.txt" }));
    let text = got["matches"][0]["text"].as_str().expect("a text");
    assert!(text.starts_with("[4902 bytes left out]aaa") && text.contains("aaa\u{e4}needle\u{e4}"), "{text}");
    assert!(text.len() < 700 && !text.contains('\u{fffd}'), "{text}");
    let got = found(&root, json!({ "pattern": "needle", "max": 500, "path": "many.txt" }));
    let given = got["matches"].as_array().map_or(0, Vec::len);
    assert!(got["more"] == true && got.to_string().chars().count() <= 48_000 && given > 80, "{given}");
    let page = found(&root, json!({ "pattern": "needle", "max": 1, "offset": got["next_offset"], "path": "many.txt" }));
    assert_eq!(places(&page), [format!("many.txt:{}", given + 1)]);
}

#[test]
fn patterns_that_are_none_are_told_with_the_place() {
    let (_folder, root) = folder(FILES);
    let deep = "(".repeat(101) + &")".repeat(101);
    for (pattern, want) in [
        ("fn (", "the pattern is no regular expression: unclosed group, at character 4"),
        ("a)b", "the pattern is no regular expression: unopened group, at character 2"),
        ("\u{e4}\u{e4}*+{", "the pattern is no regular expression: "),
        (
            "[z-a]",
            "the pattern is no regular expression: invalid character class range, the start must be <= the end, at character 2",
        ),
        ("", "the pattern has 0 bytes, and may have 1 to 4096"),
        ("(\\w{1000}){1000}", "the pattern is no regular expression: "),
        (&deep, "the pattern is no regular expression: "),
        ("a\nb", "the pattern is no regular expression: "),
        (&"x".repeat(4_097), "the pattern has 4097 bytes"),
        ("(?<=a)b", "the pattern is no regular expression: "),
    ] {
        let got = found(&root, json!({ "pattern": pattern }));
        let message = got["message"].as_str().unwrap_or_default();
        assert!(got["code"] == "bad_argument" && message.starts_with(want), "{pattern}: {got}");
        assert!(message.chars().count() <= 400, "{message}");
    }
    assert_eq!(places(&found(&root, json!({ "pattern": "fn (", "literal": true }))), Vec::<String>::new());
}

#[test]
fn nothing_outside_of_the_folder_is_searched() {
    let (_other, other) = folder(&[("secret.txt", b"secret")]);
    let (_folder, root) = folder(&[("in/own.txt", b"no secret")]);
    for path in ["..", "/", "in/../..", "in/../../x", other.to_str().expect("a path"), "C:\\"] {
        let got = found(&root, json!({ "pattern": "secret", "path": path }));
        assert!(got["code"] == "not_permitted" || (got["code"] == "bad_argument" && path == "C:\\"), "{path}: {got}");
    }
    #[cfg(unix)]
    {
        for (to, name) in [(other.join("secret.txt"), "file"), (other.clone(), "in/folder"), ("..".into(), "up")] {
            std::os::unix::fs::symlink(to, root.join(name)).expect("a link");
        }
        for path in ["file", "in/folder", "up", "in/folder/secret.txt"] {
            assert_eq!(found(&root, json!({ "pattern": "secret", "path": path }))["code"], "not_permitted", "{path}");
        }
    }
    assert_eq!(places(&found(&root, json!({ "pattern": "secret" }))), ["in/own.txt:1"]);
    assert_eq!(places(&found(&root, json!({ "pattern": "secret", "glob": "../**" }))), Vec::<String>::new());
}

#[test]
fn a_search_that_nobody_waits_for_stops() {
    let (_folder, root) = folder(FILES);
    let params = SearchFiles { pattern: "two".to_owned(), ..SearchFiles::default() };
    let stop = Stop::default();
    let stopped = stop.flag();
    assert!(search(&plain(&root), &params, 40_000, &stopped).is_ok());
    let mut file = Held { file: &b"two"[..], stopped: &stopped };
    drop(stop);
    assert_eq!(search(&plain(&root), &params, 40_000, &stopped).expect_err("stopped").code, "cancelled");
    assert!(file.read(&mut [0; 3]).is_err());
}

#[test]
fn a_path_that_does_not_exist_names_those_near_it() {
    let (_folder, root) = folder(FILES);
    for (path, hint) in [
        ("src/lob.rs", "Near it: `src/lib.rs`. list_files shows what there is."),
        ("lib.rs", "Near it: `src/lib.rs`. list_files shows what there is."),
        ("source/MOD.rs", "Near it: `src/deep/mod.rs`. list_files shows what there is."),
        ("nothing/like/it", "list_files shows what there is."),
    ] {
        let error = below(&plain(&root), path).expect_err("no file");
        assert_eq!((error.code.as_str(), error.hint.as_str()), ("bad_argument", hint), "{path}");
    }
    let outside = below(&plain(&root), "../lib.rs").expect_err("outside");
    assert!(outside.code == "not_permitted" && !outside.hint.contains("lib.rs"));
}
