//! Rules for commands: what they mean, and what becomes of commands of any shape.

use proptest::prelude::*;

use super::commands::{CURL, check};
use super::*;

#[test]
fn what_is_denied_is_found_wherever_it_stands() {
    let keys = "tools: [Bash]\ndisallowedTools: ['Bash(curl:*)', 'Bash(rm -rf *)', 'Bash(git push)']";
    check(
        keys,
        "deny",
        &[
            "curl",
            "curl x",
            "/usr/bin/curl x",
            "./curl",
            "c\"url\" x",
            "'curl' x",
            "CURL x",
            "ls; curl x",
            "ls | curl x",
            "ls && curl x",
            "ls $(curl x)",
            "ls `curl x`",
            "ls \"$(curl x)\"",
            "ls <(curl x)",
            "env curl x",
            "A=b curl x",
            "env A=b curl x",
            "env -S 'curl x'",
            "sudo curl x",
            "sudo -u a curl x",
            "xargs curl",
            "xargs -I{} curl {}",
            "nohup curl x",
            "timeout 5 curl x",
            "bash -c 'curl x'",
            "/bin/sh -c 'curl x'",
            "sudo bash -c 'curl x'",
            "find . -exec curl {} \\;",
            "find . -execdir curl {} +",
            "find . -exec$NOPE curl {} +",
            "find . -ex$'ec' curl {} +",
            "busybox curl x",
            "watch 'curl x'",
            "eval curl x",
            "trap 'curl x' EXIT",
            "if curl x; then ls; fi",
            "f() { curl x; }",
            "rm -rf x",
            "rm  -rf  x",
            "rm $X",
            "rm $X y",
            "rm *",
            "git {pu\\sh,origin}",
            "git {push$X,origin}",
            "{\"curl\",x}",
            "rm {\"-rf\",x}",
            "/bin/rm -rf x",
            "git push",
            "git $X",
            "$X",
            "ls; $X",
            "[[ x ]]",
            "ls 'x",
            "xargs $X",
            "ls\ncurl x",
            "timeout 5 $X",
            "sudo $X",
            "ssh host curl x",
            "docker exec x curl y",
        ],
    );
    // A shell that reads what it runs.
    let reads = [
        "cat x | sh",
        "echo 'curl x' | /bin/bash",
        "bash <<< 'curl x'",
        "bash <<'END'\ncurl x\nEND",
        "bash < x",
        "sh -s x",
        "sh -",
        "sh -eu",
        "bash -o pipefail",
        "bash --norc",
        "bash /dev/stdin",
        "bash $X",
        "bash -x -- $X",
        "bash <(ls)",
        "source <(ls)",
        ". /dev/stdin",
        "sudo bash",
        "env sh",
        "env A=b sh",
        "bash -x -c 'cu\"\"rl x'",
        "bash -o pipefail -c ls",
        "bash +c ls",
        "find . -maxdepth 0 -exec sh \\;",
        "xargs -a /dev/null sh",
        "xargs env",
        "xargs sh",
        "xargs nice -n 5",
        "xargs -I% sh -c %",
        "xargs -I {} {}",
        "xargs find .",
        "xargs -rI% sh -c %",
        "xargs -0I% sh -c %",
        "xargs $N -I% sh -c %",
        "command . /dev/stdin",
        "builtin source /dev/stdin",
        "bash //dev/./stdin",
        "bash ../../../dev/stdin",
        "bash /tmp/../proc/self/fd/0",
        "cat x | parallel",
        "at now",
        "sudo -s",
        "su",
        "docker run -i x sh",
    ];
    check(keys, "deny", &reads);
    let files = ["bash -x -o pipefail x.sh", "bash --version", "sh -- x", ". x", "bash ./dev/x.sh", "command . x"];
    check(keys, "allow", &files);
    check(keys, "allow", &["find . -name sh", "xargs ls", "xargs -I{} ls {}", "sudo ls"]);
    check(keys, "allow", &["xargs sh -c 'ls \"$1\"'", "xargs -n 1 env ls", "xargs", "sudo -u a ls", "nohup bash x.sh"]);
    check(
        keys,
        "allow",
        &[
            "ls",
            "curlx",
            "ls curl",
            "echo 'curl x'",
            "rm x",
            "rm -r x",
            "git push origin",
            "git status",
            "ls > x",
            "A=b ls",
            "sudo ls",
            "find . -name curl",
            "find . -exec ls {} \\;",
            "bash x.sh",
            "bash -c 'ls'",
            "rm -r \"x y\"",
            "ls # curl",
            "git log --grep='git push'",
            "ls $X",
        ],
    );
}

#[test]
fn rules_for_commands_that_run_others() {
    check("tools: ['Bash(xargs:*)', 'Bash(ls:*)']", "allow", &["xargs ls", "xargs -n 1 ls"]);
    check("tools: ['Bash(xargs:*)', 'Bash(ls:*)']", "deny", &["xargs rm", "xargs -I{} rm {}", "xargs --weird rm"]);
    check("tools: ['Bash(xargs rm:*)']", "allow", &["xargs rm", "xargs rm -f"]);
    check("tools: ['Bash(xargs rm:*)']", "deny", &["rm x", "xargs ls"]);
    check("tools: ['Bash(sudo:*)', 'Bash(ls:*)']", "allow", &["sudo ls", "sudo -n ls x"]);
    check("tools: ['Bash(sudo:*)', 'Bash(ls:*)']", "deny", &["sudo rm x", "sudo -x ls", "sudo $X"]);
    check("tools: ['Bash(sudo ls:*)']", "allow", &["sudo ls x"]);
    check(
        "tools: ['Bash(find:*)', 'Bash(ls:*)']",
        "allow",
        &["find . -name x", "find . -exec ls {} \\;", "find . -exec ls {} + -name y"],
    );
    check(
        "tools: ['Bash(find:*)', 'Bash(ls:*)']",
        "deny",
        &[
            "find . -exec rm {} \\;",
            "find . -exec ls {} \\; -exec rm {} \\;",
            "find . -exec rm",
            "find . $X rm",
            "find . -exec$NOPE rm {} +",
            "find . -ex$'ec' rm {} +",
            "find . -ok rm {} \\;",
        ],
    );
    check("tools: ['Bash(timeout:*)']", "deny", &["timeout 5 rm x"]);
    check("tools: ['Bash(A=1 make:*)']", "allow", &["A=1 make x"]);
    check("tools: ['Bash(A=1 make:*)']", "deny", &["A=2 make x", "make x", "B=1 A=1 make x"]);
}

#[test]
fn patterns_for_commands() {
    let with =
        |pattern: &str, want: &str, commands: &[&str]| check(&format!("tools: ['Bash({pattern})']"), want, commands);
    with("ls *", "allow", &["ls", "ls -la", "ls a b"]);
    with("ls *", "deny", &["lsof", "ls-x"]);
    with("ls*", "allow", &["ls", "lsof", "ls -la"]);
    with("git * main", "allow", &["git checkout main", "git push origin main", "git $X main"]);
    with("git * main", "deny", &["git main", "git push main x", "git push $X"]);
    with("npm run build", "allow", &["npm run build", "npm  run  build", "npm run 'build'"]);
    with("npm run build", "deny", &["npm run build x", "npm 'run build'", "npm run $X", "npm run buil*"]);
    with("git commit -m \"a b\"", "allow", &["git commit -m \"a b\"", "git commit -m a\\ b"]);
    with("git commit -m \"a b\"", "deny", &["git commit -m a b"]);
    with("git log:*, git show:*", "allow", &["git log x", "git show x"]);
    with("git log:*, git show:*", "deny", &["git push"]);
    with("curl http://x/?a=*", "allow", &["curl 'http://x/?a=1'"]);
    with("curl http://x/?a=*", "deny", &["curl 'http://x/xa=1'", "curl http://x/?a=1"]);
    check("tools: [Bash]", "allow", &["rm -rf /", "$X", "'"]);
    check("tools: ['Bash(*)']", "allow", &["rm -rf /"]);
    check("tools: ['Bash(:*)']", "allow", &["rm -rf /"]);
    check("tools: ['Bash(curl:*']", "deny", &["curl x"]);
    check("tools: ['mcp__shell__run_command(curl:*)']", "allow", &["curl x"]);
    check("tools: ['mcp__shell__run_command(curl:*)']", "deny", &["rm x"]);
    check("tools: ['Bash(curl:*)', 'Bash']", "allow", &["rm x"]);
    check("tools: ['Bash(echo:*)', 'Write(out/**)']", "allow", &["echo x > out/y", "echo x > /out/y"]);
    check(
        "tools: ['Bash(echo:*)', 'Write(out/**)']",
        "deny",
        &["echo x > outer/y", "echo x > out/../y", "cd /etc; echo x > out/y", "command cd /etc; echo x > out/y"],
    );
    check("tools: ['Bash(echo:*)', Write]", "allow", &["echo x > y", "echo x > ./z/../y", "echo x > a/b"]);
    let moved = [
        "command cd /etc; echo x > y",
        "builtin cd /etc; echo x > y",
        "command -p cd /; echo x > y",
        "pushd /; echo x > y",
    ];
    check("tools: ['Bash(echo:*)', 'Bash(cd:*)', 'Bash(pushd:*)', Write]", "deny", &moved);
}

#[test]
fn rules_whose_order_counts() {
    let keys = "permission:\n  bash:\n    '*': ask\n    'git *': allow\n    'git push*': deny\n    'git push origin main': ask";
    check(keys, "allow", &["git status", "git log | git diff", "git"]);
    check(keys, "ask", &["ls", "git status; ls", "git push origin main"]);
    check(keys, "deny", &["git push", "git push --force", "ls; git push", "$X", "git $X", "git status > x"]);
    let keys = "permission:\n  bash:\n    'git *': allow\n    '*': deny";
    check(keys, "deny", &["git status", "ls"]);
    let keys = "permission: {bash: {'git *': allow}}";
    check(keys, "allow", &["git status"]);
    check(keys, "deny", &["ls"]);
    let keys = "permission: {bash: {'rm *': deny}}";
    check(keys, "allow", &["ls", "git rm x", "ls > x"]);
    check(keys, "deny", &["rm", "rm x", "ls; rm x", "sudo rm x", "xargs rm"]);
    check("permission: {bash: ask}", "ask", &["ls"]);
    check("permission: {'*': ask, bash: allow}", "allow", &["ls"]);
    check("permission: {'*': ask, read: allow}", "ask", &["ls"]);
    check("permission: {bash: allow, '*': ask}", "ask", &["ls"]);
    check("permission: {'*': allow, bash: {'rm *': ask}}", "ask", &["rm x"]);
    check("permission: ask", "ask", &["ls"]);
}

/// Which calls a key of a map is about may stand in parentheses; and whatever another key says counts more than a switch.
#[test]
fn keys_of_maps_with_parentheses_and_switches() {
    for keys in ["tools: {'Bash(git:*)': true}", "permission: {'Bash(git:*)': allow}"] {
        check(keys, "allow", &["git log"]);
        check(keys, "deny", &["rm -rf x", "git log; rm x"]);
    }
    let keys = "permission: {'*': ask, 'Bash(git:*, ls:*)': allow}";
    check(keys, "allow", &["git log", "ls"]);
    check(keys, "ask", &["rm x", "git log; rm x"]);
    for rest in ["", "\npermissionRules: ['webfetch: ask']"] {
        let keys = format!("tools: {{bash: true}}\npermission: {{bash: {{'*': ask, 'rm *': deny}}}}{rest}");
        check(&keys, "ask", &["ls"]);
        check(&keys, "deny", &["rm -rf x"]);
        check(&format!("tools: {{bash: true}}\npermission: {{'*': ask}}{rest}"), "ask", &["ls"]);
    }
}

#[test]
fn what_refuses_comes_first_then_what_asks() {
    let keys = "permissions: {allow: ['Bash(git:*)'], ask: ['Bash(git push:*)'], deny: ['Bash(git push --force:*)']}";
    check(keys, "allow", &["git log"]);
    check(keys, "ask", &["git push", "git push origin", "git log; git push"]);
    check(keys, "deny", &["git push --force", "ls"]);
    let keys = "permissions: {deny: ['Bash(rm:*)'], allow: [Bash], ask: [Bash]}";
    check(keys, "ask", &["ls"]);
    check(keys, "deny", &["rm x"]);
    check("tools: {bash: ask}", "ask", &["ls"]);
    check("askTools: ['Bash(ls:*)']", "ask", &["ls", "$X", "sudo ls"]);
    check("askTools: ['Bash(ls:*)']", "allow", &["pwd"]);
}

#[test]
fn arguments_of_commands() {
    let policy = policy(CURL, Some(Path::new("/")));
    let check = |arguments: Value, want: &str| {
        assert_eq!(
            word(&policy, "shell__run_command", &arguments),
            want,
            "{arguments}: {}",
            rule(&policy, "shell__run_command", &arguments)
        );
    };
    check(json!({ "command": "curl", "args": ["x"] }), "allow");
    check(json!({ "command": "curl", "args": ["x", "a b"] }), "allow");
    check(json!({ "command": ["curl", "x; rm y"] }), "allow");
    check(json!({ "command": ["bash", "-lc", "curl x"] }), "allow");
    check(json!({ "command": "curl x", "timeout": 5, "description": "gets x", "run_in_background": true }), "allow");
    check(json!({ "command": "curl x", "cwd": "/tmp" }), "allow");
    check(json!({ "command": "curl", "args": ["x; rm y"] }), "deny");
    check(json!({ "command": "rm", "args": ["curl"] }), "deny");
    check(json!({ "command": "bash", "args": ["-c", "rm x"] }), "deny");
    check(json!({ "command": ["bash", "-lc", "curl x; rm y"] }), "deny");
    check(json!({ "command": ["rm", "x"] }), "deny");
    check(json!({ "command": ["curl", 1] }), "deny");
    check(json!({ "command": 1 }), "deny");
    check(json!({ "command": { "a": "curl" } }), "deny");
    check(json!({}), "deny");
    check(json!({ "cmd": "curl x", "command": "rm x" }), "deny");
    check(json!({ "command": "curl x", "env": { "LD_PRELOAD": "x" } }), "deny");
    check(json!({ "command": "curl x", "shell": "python" }), "deny");
    check(json!({ "command": "curl x", "stdin": "rm" }), "deny");
    check(json!({ "command": format!("curl {}", "x".repeat(20_000)) }), "deny");
}

#[test]
fn what_is_refused_is_told_with_the_rule() {
    let policy = policy("tools: ['Bash(curl:*)']\ndisallowedTools: ['Bash(curl -d:*)']", Some(Path::new("/")));
    let check = |command: &str, want: &str| {
        assert_eq!(rule(&policy, "shell__run_command", &json!({ "command": command })), want, "{command}");
    };
    check("rm -rf x", "`rm -rf x` does not match any of: Bash(curl:*)");
    check("curl x; rm $X", "`rm …` does not match any of: Bash(curl:*)");
    check("curl -d x", "`Bash(curl -d:*)` is denied");
    check("$X", "which command it runs is known only when it runs, and `Bash(curl -d:*)` is denied");
    check("curl x > y", "no rule lets it write `y`, and only Bash(curl:*) is given");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// What is accepted runs nothing but what is given, as a second and simpler reading of it sees.
    #[test]
    fn no_other_command_slips_past(parts in proptest::collection::vec(prop_oneof![
        4 => Just("curl"), 2 => Just("echo"), 2 => Just("rm"), 1 => Just("x"), 8 => Just(" "), 1 => Just("\t"), 1 => Just("\r"), 2 => Just(";"),
        2 => Just("|"), 2 => Just("&"), 2 => Just("\n"), 1 => Just("#"), 1 => Just("!"), 1 => Just("$"), 1 => Just("="), 1 => Just("{"), 1 => Just("}"),
        1 => Just("if"), 1 => Just("then"), 1 => Just("fi"), 1 => Just("<"), 1 => Just(">"),
    ], 0..14)) {
        let command: String = parts.concat();
        let policy = policy(CURL, Some(Path::new("/")));
        if word(&policy, "shell__run_command", &json!({ "command": &command })) == "allow" {
            prop_assert!(heads(&command).iter().all(|head| head == "curl" || head == "echo"), "{command:?}");
            for outer in [format!("echo $({command}\n)"), format!("echo `{command}\n`"), format!("({command}\n)")] {
                // Within another it is as good, or too deep or empty; it never gives more.
                let inner = format!("{outer}; rm x");
                prop_assert_eq!(word(&policy, "shell__run_command", &json!({ "command": inner })), "deny");
            }
        }
    }

    /// Whatever is asked, there is an answer.
    #[test]
    fn any_text_is_judged(command in "\\PC{0,60}") {
        let policy = policy(CURL, Some(Path::new("/")));
        let said = word(&policy, "shell__run_command", &json!({ "command": command }));
        prop_assert!(said == "allow" || said == "deny");
    }
}

/// The first words of all commands of a text without quotes, parentheses and backquotes.
fn heads(command: &str) -> Vec<String> {
    let mut found = Vec::new();
    let command = command.replace("&>", ">").replace("<&", "<").replace(">&", ">").replace("<<<", "<");
    for line in command.split('\n') {
        let comment = line.char_indices().find(|(at, sign)| {
            *sign == '#' && line[..*at].chars().next_back().is_none_or(|before| " \t;|&<>".contains(before))
        });
        let line = &line[..comment.map_or(line.len(), |(at, _)| at)];
        for part in line.split([';', '|', '&']) {
            let spaced = part.replace('<', " < ").replace('>', " > ");
            let mut words = spaced.split_whitespace();
            while let Some(word) = words.next() {
                match word {
                    "<" | ">" => _ = words.next(),
                    "if" | "then" | "fi" | "!" | "{" | "}" => {}
                    head => {
                        found.push(head.to_owned());
                        break;
                    }
                }
            }
        }
    }
    found
}
