//! Files that redirections write and read.

use super::commands::check;
use super::*;

#[test]
fn files_that_commands_write() {
    let keys = "tools: ['Bash(echo:*)', 'Bash(cd:*)', Write]\ndisallowedTools: ['Edit(/secrets/**)']";
    check(keys, "allow", &["echo x", "echo x > y", "echo secrets/key", "echo x > /dev/null", "echo x < secrets/key"]);
    let written =
        ["echo x > secrets/key", "echo x >> ./Secrets/key", "echo x > $X", "echo x; { echo y; } > y/../secrets/key"];
    check(keys, "deny", &written);
    check(keys, "deny", &["cd secrets; echo x > key"]);
    let keys = "tools: [Bash]\ndisallowedTools: ['Edit(/secrets/**)']";
    check(keys, "allow", &["ls > x", "$X", "[[ -n x ]]"]);
    check(keys, "deny", &["ls > secrets/x", "[[ -n x ]] > secrets/x", "bash -c 'ls > secrets/x'"]);
    check("tools: [Bash]\ndisallowedTools: [Write]", "deny", &["ls > x"]);
    check("tools: [Bash]\ndisallowedTools: [Write]", "allow", &["ls", "ls 2> /dev/null"]);
    check("tools: [Bash]\naskTools: ['Edit(/secrets/**)']", "ask", &["ls > secrets/x", "ls > $X"]);
    check("tools: [Bash]\naskTools: ['Edit(/secrets/**)']", "allow", &["ls > x", "ls"]);
    // Rules whose order counts.
    let keys = "tools: [Bash]\npermission: {bash: allow, edit: {'*': allow, 'secrets/*': deny, 'secrets/mine': ask}}";
    check(keys, "allow", &["ls", "ls > x", "ls > /dev/null", "cat secrets/x"]);
    check(keys, "deny", &["ls > secrets/x", "ls > $X", "cd secrets; ls > x", "ls > secrets/mine > secrets/x"]);
    check(keys, "ask", &["ls > secrets/mine", "ls > x > secrets/mine"]);
}

/// A server that writes stays in its folder by itself, a shell does not.
#[cfg(unix)]
#[test]
fn files_that_commands_write_lie_in_the_folder() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = dir.path().join("project");
    std::fs::create_dir(&folder).expect("a folder");
    std::os::unix::fs::symlink(dir.path(), folder.join("out")).expect("a link");
    let policy = policy("tools: ['Bash(echo:*)', Write]", Some(&folder));
    let whole = format!("echo x > {}/y", folder.display());
    for (command, want) in [
        ("echo x > y", "allow"),
        ("echo x > a/../y", "allow"),
        (whole.as_str(), "allow"),
        ("echo x > ../y", "deny"),
        ("echo x > a/../../y", "deny"),
        ("echo x > /tmp/y", "deny"),
        ("echo x > out/y", "deny"),
        ("echo x > out/project/y", "allow"),
        ("echo x > ~/y", "deny"),
    ] {
        assert_eq!(word(&policy, "shell__run_command", &json!({ "command": command })), want, "{command}");
    }
}

#[test]
fn files_that_commands_read() {
    let keys = "tools: [Bash]\ndisallowedTools: ['Read(.env)']\naskTools: ['Read(/secrets/**)']";
    check(keys, "allow", &["cat < x", "cat", "cat <<'END'\n.env\nEND", "cat <<< .env", "echo x > y"]);
    check(keys, "deny", &["cat < .env", "cat < a/.env", "cat 0<.ENV", "(cat) < .env", "cat < $X", "cd a; cat < b"]);
    check(keys, "ask", &["cat < secrets/x", "{ cat; } < ./secrets/x"]);
    let keys = "tools: [Bash]\npermission: {bash: allow, read: {'*': allow, '*.env': deny}, edit: {'out/*': deny}}";
    check(keys, "allow", &["cat < x", "ls > x", "cat < out/x"]);
    check(keys, "deny", &["cat < .env", "cat < x < .env", "ls > out/x", "cat < .env > x"]);
    check(keys, "deny", &["cat <> .env", "cat <> out/x"]);
    check("tools: [Bash]\ndisallowedTools: [Read]", "deny", &["cat < x"]);
    // Where some files are allowed, no others are.
    let keys = "permission: {bash: allow, edit: {'out/*': allow, 'ask/*': ask}}";
    check(keys, "allow", &["ls", "ls > out/x", "cat < secrets/x", "ls > /dev/null"]);
    check(keys, "deny", &["ls > secrets/x", "ls > $X", "ls > out/x > y"]);
    check(keys, "ask", &["ls > ask/x"]);
    check("permission: {bash: allow, edit: allow}", "allow", &["ls > secrets/x", "ls > $X"]);
}
