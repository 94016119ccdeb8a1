//! Paths and addresses against rules for them.

use super::*;

#[test]
fn paths_of_one_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let outside = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    for dir in ["src/deep", "docs", "secrets", "SRC2"] {
        std::fs::create_dir_all(root.join(dir)).expect("a folder");
    }
    for file in ["src/a.rs", "src/deep/b.rs", "docs/x.md", "secrets/key", ".env", "src/.env", "read.me"] {
        std::fs::write(root.join(file), "x").expect("a file");
    }
    std::fs::write(outside.path().join("loot"), "x").expect("a file");
    #[cfg(unix)]
    {
        use std::os::unix::fs::symlink;
        symlink(outside.path(), root.join("src/out")).expect("a link");
        symlink(root.join("secrets"), root.join("src/inner")).expect("a link");
        symlink(root.join("gone"), root.join("src/dangling")).expect("a link");
        symlink(root.join("src/a.rs"), root.join("docs/link.rs")).expect("a link");
    }
    let check = |keys: &str, tool: &str, argument: &str, want: &str, paths: &[&str]| {
        let policy = policy(keys, Some(root));
        for path in paths {
            let arguments = json!({ argument: path });
            assert_eq!(
                word(&policy, tool, &arguments),
                want,
                "{keys} {tool} {path}: {}",
                rule(&policy, tool, &arguments)
            );
        }
    };
    let absolute = root.join("src/a.rs").display().to_string();
    let loot = outside.path().join("loot").display().to_string();
    let src = "tools: ['Read(src/**)', 'LS(src/**)', 'mcp__fs__*(src/**)']";
    for tool in ["read_file", "fs__read_text_file"] {
        check(
            src,
            tool,
            "path",
            "allow",
            &[
                "src/a.rs",
                "./src/a.rs",
                "src//a.rs",
                "src/deep/../a.rs",
                "docs/../src/a.rs",
                "src/deep/b.rs",
                "src/new.rs",
                "src/a.rs/",
                &absolute,
            ],
        );
        check(
            src,
            tool,
            "path",
            "deny",
            &[
                "docs/x.md",
                "src",
                "src/../docs/x.md",
                "src/../../x",
                "../src/a.rs",
                "/etc/passwd",
                "srcs/a.rs",
                "SRC/a.rs",
                "~/src/a.rs",
                "~",
                ".",
                "",
                "..",
                "http://x.org/src/a.rs",
                "file:src/a.rs",
                " src/a.rs",
                "src/a.rs\0",
                "src\n/a.rs",
                &loot,
                "%73rc/a.rs",
                "\\src\\a.rs",
            ],
        );
        #[cfg(unix)]
        check(
            src,
            tool,
            "path",
            "deny",
            &[
                "src/out/loot",
                "src/inner/key",
                "src/out/../a.rs",
                "src/dangling",
                "src/dangling/x",
                "docs/link.rs",
                "src/out/new",
            ],
        );
    }
    #[cfg(unix)]
    check(src, "fs__read_text_file", "path", "allow", &[&format!("file://{absolute}")]);
    check(
        src,
        "fs__read_text_file",
        "path",
        "deny",
        &["file://evil/src/a.rs", "file:///etc/passwd", "file:///%65tc/passwd"],
    );
    check(src, "list_files", "path", "allow", &["src", "src/deep", "src/"]);
    check(src, "list_files", "path", "deny", &[".", "docs", "src/..", "sr"]);
    check(src, "list_files", "pattern", "deny", &["src/**"]);
    check(src, "fs__read_multiple_files", "paths", "deny", &["docs/x.md"]);
    let several = |paths: Value| word(&policy(src, Some(root)), "fs__read_multiple_files", &json!({ "paths": paths }));
    assert_eq!(several(json!(["src/a.rs", "src/deep/b.rs"])), "allow");
    assert_eq!(several(json!(["src/a.rs", "docs/x.md"])), "deny");
    assert_eq!(several(json!([["src/a.rs", ["docs/x.md"]]])), "deny");
    assert_eq!(several(json!(["src/a.rs", 7])), "deny");
    let moved = |from: &str, to: &str| {
        word(
            &policy("tools: ['mcp__fs__move_file(src/**)']", Some(root)),
            "fs__move_file",
            &json!({ "source": from, "destination": to }),
        )
    };
    assert_eq!(
        (moved("src/a.rs", "src/b.rs"), moved("src/a.rs", "docs/b.rs"), moved("docs/x.md", "src/b.rs")),
        ("allow", "deny", "deny")
    );
    // What is denied.
    let env = "disallowedTools: ['Read(.env)', 'Read(/secrets/**)', 'Read(~/.ssh/**)', 'Edit(docs/*.md)']";
    check(
        env,
        "read_file",
        "path",
        "deny",
        &[
            ".env",
            "src/.env",
            ".ENV",
            "./.env",
            "src/../.env",
            "secrets/key",
            "SECRETS/key",
            "secrets",
            "src/deep/../../secrets/key",
            ".ssh/id",
            "src/.ssh/id",
        ],
    );
    check(env, "read_file", "path", "allow", &["src/a.rs", "read.me", "docs/x.md", ".envs", "src/secrets/x"]);
    check(env, "fs__read_text_file", "path", "deny", &[".env", "~/.env", "secrets/key"]);
    check(env, "fs__write_file", "path", "deny", &["docs/x.md", "docs/new.md", "DOCS/x.MD"]);
    check(env, "fs__write_file", "path", "allow", &["src/a.rs", ".env"]);
    #[cfg(unix)]
    check(env, "read_file", "path", "deny", &["src/inner/key", "src/dangling"]);
    check(env, "list_files", "path", "allow", &[".", "src"]);
    check(env, "list_files", "path", "deny", &["secrets"]);
    check(env, "fs__search_files", "path", "deny", &[".", "src", "secrets"]);
    let only = "disallowedTools: ['Read(/secrets/**)']";
    check(only, "fs__search_files", "path", "deny", &[".", "secrets", "secrets/deep"]);
    check(only, "fs__search_files", "path", "allow", &["src", "docs"]);
    // Whole trees and other starts.
    check("tools: ['Read(//etc/**)']", "read_file", "path", "allow", &["/etc/hosts"]);
    check("tools: ['Read(//etc/**)']", "read_file", "path", "deny", &["etc/hosts", "/etcx/hosts"]);
    check("tools: ['Read(/docs/**)']", "read_file", "path", "allow", &["docs/x.md"]);
    check("tools: ['Read(./docs/*.md)']", "read_file", "path", "allow", &["docs/x.md"]);
    check("tools: ['Read(*.rs)']", "read_file", "path", "allow", &["src/deep/b.rs"]);
    check("tools: ['Read(*.rs)']", "read_file", "path", "deny", &["docs/x.md"]);
    check("tools: ['Read(!src)']", "read_file", "path", "deny", &["src/a.rs", "docs/x.md"]);
    check("tools: ['Read(docs)']", "read_file", "path", "allow", &["docs/x.md"]);
    check("tools: ['Read({src,docs}/**)']", "read_file", "path", "allow", &["docs/x.md", "src/a.rs"]);
    check("tools: ['Read(src/**, docs/**)']", "read_file", "path", "allow", &["docs/x.md", "src/a.rs"]);
    check("tools: [Read]", "read_file", "path", "allow", &["docs/x.md", "/etc/passwd"]);
    // Rules whose order counts.
    let edits =
        "permission:\n  edit:\n    '*': deny\n    'docs/*.md': allow\n  read:\n    '*': allow\n    '*.env': ask";
    check(edits, "fs__write_file", "path", "allow", &["docs/x.md", "./docs/new.md"]);
    check(edits, "fs__edit_file", "path", "deny", &["src/a.rs", "docs/../src/a.md", "docs.md"]);
    check(edits, "read_file", "path", "ask", &[".env", "src/.env"]);
    check(edits, "read_file", "path", "allow", &["src/a.rs"]);
}

#[test]
fn without_a_folder_nothing_relative_is_told() {
    let policy = policy("tools: ['Read(src/**)']", None);
    assert_eq!(word(&policy, "read_file", &json!({ "path": "src/a.rs" })), "deny");
}

#[test]
fn calls_that_name_their_files_in_an_unknown_way() {
    let folder = tempfile::tempdir().expect("a folder");
    let check = |keys: &str, tool: &str, arguments: Value, want: &str| {
        assert_eq!(word(&policy(keys, Some(folder.path())), tool, &arguments), want, "{keys} {tool} {arguments}");
    };
    let edit = "disallowedTools: ['Edit(secrets/**)']";
    check(edit, "x__apply_patch", json!({ "patch": "*** Update File: secrets/k" }), "deny");
    check(edit, "x__apply_patch", json!({ "path": "src/k", "patch": "x" }), "allow");
    // What the patch says counts beside the path.
    check(edit, "x__apply_patch", json!({ "path": "src/k", "patch": "*** Update File: secrets/k" }), "deny");
    check(edit, "x__apply_diff", json!({ "path": "src/k", "diff": "--- a/secrets/k\n+++ b/secrets/k" }), "deny");
    check(edit, "x__apply_patch", json!({ "input": "*** Add File: src/k\n*** Move to: secrets/k" }), "deny");
    check(edit, "x__apply_patch", json!({ "input": "*** Add File: src/k" }), "allow");
    check(edit, "x__apply_patch", json!({ "path": "src/k", "edits": [{ "patch": "Index: secrets/k" }] }), "deny");
    check(edit, "x__apply_patch", json!({ "path": "src/k", "patch": "diff --git a/secrets/k b/secrets/k" }), "deny");
    check(edit, "x__apply_patch", json!({ "path": "src/k", "patch": "+++ \"b/\\163ecrets/k\"" }), "deny");
    let a = "disallowedTools: ['Edit(/a/**)']";
    check(a, "x__apply_patch", json!({ "patch": "*** Update File: a/secret" }), "deny");
    check(a, "x__apply_patch", json!({ "patch": "--- a/secret" }), "deny");
    let src = "tools: ['Edit(src/**)', x]";
    check(src, "x__apply_patch", json!({ "patch": "*** Add File: b/src/x" }), "deny");
    check(edit, "x__write_file", json!({ "items": [{ "where": "secrets/k" }] }), "deny");
    check("askTools: ['Edit(secrets/**)']", "x__apply_patch", json!({ "patch": "x" }), "ask");
    let env = "disallowedTools: ['Read(.env)']";
    check(env, "x__read_files", json!({ "file_paths": [".env"] }), "deny");
    check(env, "x__read_files", json!({ "file_paths": ["a"] }), "allow");
    check(env, "x__read_files", json!({ "which": [".env"] }), "deny");
    check(env, "x__read_files", json!({ "limit": 5 }), "allow");
    check(env, "x__list_files", json!({ "depth": "all" }), "allow");
    check(env, "list_files", json!({ "pattern": "*" }), "allow");
}

#[test]
fn addresses_of_calls() {
    let check = |keys: &str, arguments: Value, want: &str| {
        assert_eq!(word(&policy(keys, None), "web__fetch", &arguments), want, "{keys} {arguments}");
    };
    let docs = "tools: ['WebFetch(domain:docs.rs)']";
    check(docs, json!({ "url": "https://docs.rs/x" }), "allow");
    check(docs, json!({ "url": "https://docs.rs@evil.org/x" }), "deny");
    check(docs, json!({ "urls": ["https://docs.rs/x", "https://evil.org/"] }), "deny");
    check(docs, json!({ "url": "https://docs.rs/x", "href": "https://evil.org/" }), "deny");
    check(docs, json!({}), "deny");
    check(docs, json!({ "url": 7 }), "deny");
    let not = "disallowedTools: ['WebFetch(domain:evil.org)']";
    check(not, json!({ "url": "https://docs.rs/x" }), "allow");
    check(not, json!({ "url": "https://a.evil.org/x" }), "deny");
    check(not, json!({ "url": "https://EVIL.org./x" }), "deny");
    check(not, json!({ "url": "evil.org" }), "deny");
    check("permission: {webfetch: {'https://docs.rs/*': allow}}", json!({ "url": "https://docs.rs/x" }), "allow");
    check("permission: {webfetch: {'https://docs.rs/*': allow}}", json!({ "url": "https://x.org/" }), "deny");
}
