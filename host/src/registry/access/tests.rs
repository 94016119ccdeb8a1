use super::super::{Source, read};
use super::*;

mod forbidden;

/// `text` as frontmatter: tools, denied tools, flags, callers and whom it may spawn; then the codes of access.
fn told(text: &str) -> String {
    told_of("n.md", &format!("---\nname: n\ndescription: d\n{text}\n---\nGo.\n"))
}

/// The same of a whole file, or the reason why it is none.
fn told_of(path: &str, file: &str) -> String {
    let found = match read(file.as_bytes(), path.as_ref(), Source::Dir) {
        Ok(found) => found,
        Err(why) => return why.code.to_string(),
    };
    let list =
        |names: &Option<Vec<String>>| names.as_ref().map_or("-".to_owned(), |names| format!("[{}]", names.join(" ")));
    let mut told = list(&found.tools);
    if !found.disallowed_tools.is_empty() {
        told.push_str(&format!(" not {}", found.disallowed_tools.join(" ")));
    }
    if !found.ask_tools.is_empty() {
        told.push_str(&format!(" ask {}", found.ask_tools.join(" ")));
    }
    if !found.rules.is_empty() {
        let rules: Vec<String> = found.rules.iter().map(ToString::to_string).collect();
        told.push_str(&format!(" rules {}", rules.join(", ")));
    }
    if found.readonly {
        told.push_str(" readonly");
    }
    for (what, names) in [("by", &found.allowed_callers), ("spawns", &found.may_spawn)] {
        if names.is_some() {
            told.push_str(&format!(" {what} {}", list(names)));
        }
    }
    for found in &found.warnings {
        if matches!(found.code, Code::AccessClosed | Code::AccessNarrowed | Code::KeyMisspelt | Code::DuplicateKey) {
            told.push_str(&format!(" {}@{:?}", found.code, found.line.unwrap_or(0)));
        }
    }
    told
}

#[test]
fn what_can_be_read_is_meant() {
    let check = |text: &str, expected: &str| assert_eq!(told(text), expected, "{text}");
    check("model: x", "-");
    check("tools:", "-");
    check("tools: []", "[]");
    check("tool: Read", "[Read]");
    // A map without a word about all switches single tools.
    check("tools: {read: true, write: false}", "- not write rules read: allow");
    check("tools: {write: false, bash: true}", "- not write rules bash: allow");
    check("tools: {'*': false, write: false, bash: true}", "[bash] not write");
    check("tools: {'*': true, write: false}", "[*] not write");
    check("tools: {bash: true}\ndisallowedTools: bash", "- not bash");
    check("tools: {bash: true}\nallowed-tools: [Read]", "[Read]");
    check("tools: {bash: true}\npermissions: {allow: [Read]}", "[Read bash]");
    check("tools: {bash: true}\npermissions: deny", "[]");
    // What stands in `permission` counts more, in whatever order the keys stand.
    for keys in ["tools: {bash: true}\npermission: {bash: ask}", "permission: {bash: ask}\ntools: {bash: true}"] {
        check(keys, "- rules bash: ask");
    }
    check("permission: {'*': ask}\ntools: {bash: true}", "- rules bash: allow, *: ask");
    check("permissionRules: ['*: ask']\ntools: {bash: true}", "- rules bash: allow, *: ask");
    check("allowed-tools: {read: true, write: false}", "[read] not write");
    check("tools: {write: false}", "- not write");
    check("tools: {'*': false}", "[]");
    check("tools: {'*': false, read: true}", "[read]");
    check("tools: Agent(a, b), Read", "[Agent(a, b) Read] spawns [a b]");
    check("disallowedTools: Bash, Write", "- not Bash Write");
    check("disallowed-tools: {bash: true, edit: false}", "- not bash edit");
    check("disallowedTools:", "-");
    check("permissions: {allow: ['Bash(curl:*)'], deny: [Write]}", "[Bash(curl:*)] not Write");
    check("permissions: {allow: [Bash], deny: []}\ntools: [Read]", "[Read]");
    check("permissions: {deny: [Bash]}", "- not Bash");
    check("permission: {edit: deny, bash: allow}", "- not edit write patch multiedit write_file rules bash: allow");
    check("permission: {'*': deny, read: allow}", "[read]");
    check("permission: {'*': deny, read: allow}\ntools: {read: true, bash: true}", "[read]");
    check("permission: deny", "[]");
    check("permission: allow", "-");
    check("permissions: [Read]", "[Read]");
    check("permissionMode: plan", "- readonly");
    check("permissionMode: acceptEdits", "-");
    check("readonly: yes", "- readonly");
    check("readonly: false", "-");
    check("allowed_callers: [main, x]", "- by [main x]");
    check("allowed_callers: []", "- by []");
    check("disable-model-invocation: true", "- by [main]");
    check("infer: false", "- by [main]");
    check("infer: true", "-");
    check("infer: false\nallowed_callers: x", "- by [x]");
    check("agents: ['*']", "-");
    check("agents: [a, b]", "- spawns [a b]");
    check("agents: []", "- spawns []");
    check("agents: [a, b]\ntools: Agent(b, c)", "[Agent(b, c)] spawns [b]");
    // Whom it is for.
    check("mode: primary", "- by [main]");
    check("mode: plan\nfoo: @x", "- readonly");
    check("mode: primary\nallowed_callers: [x]", "- by [x]");
    check("mode: primary\nmode: subagent", "- by [main] duplicate_key@5");
    check("mode: Ask", "- readonly");
    check("mode: plan", "- readonly");
    for other in ["mode: subagent", "mode: all", "mode: agent", "mode:", "mode: [primary]", "mode: dotnet-upgrade"] {
        check(other, "-");
    }
}

/// Of the rules of a map that fit a tool the last counts, as opencode has it.
#[test]
fn a_later_rule_gives_what_a_group_before_it_refuses() {
    let check = |text: &str, expected: &str| assert_eq!(told(text), expected, "{text}");
    check("tools: {'x__*': false, 'x__echo': true}", "- rules x__*: deny, x__echo: allow");
    check("tools: {'x__*': deny, 'x__echo': ask}", "- ask x__echo rules x__*: deny, x__echo: ask");
    check("tools: {'*': true, 'x_*': false, x_echo: true}", "[* x_echo] rules x_*: deny, x_echo: allow");
    check("tools: {'x__echo': true, 'x__*': false}", "- not x__* rules x__echo: allow");
    check("tools: {'x_*': false, 'y_echo': true}", "- not x_* rules y_echo: allow");
    check("tools: {'x__*': false, 'x__e*': true, 'x__evil': false}", "- not x__evil rules x__*: deny, x__e*: allow");
    check("permission: {'x__*': deny, 'x__echo': allow}", "- rules x__*: deny, x__echo: allow");
    check("permission: {'x__echo': allow, 'x__*': deny}", "- not x__* rules x__echo: allow");
    check("permission: {'*': deny, 'x_*': allow, 'x_s*': deny, x_safe: allow}", {
        "[x_* x_safe] rules x_*: allow, x_s*: deny, x_safe: allow"
    });
    // What another key says of it stays behind that.
    check("tools: {'x_*': false, x_a: true}\npermission: {bash: ask}", "- rules x_*: deny, x_a: allow, bash: ask");
    check("tools: {'x_*': false, x_a: true}\npermission: {'*': ask, read: allow}", {
        "- rules *: ask, read: allow, x_*: deny, x_a: allow, x_a: ask, read: allow"
    });
    check("permission: {'x_*': deny, x_a: allow}\npermissionRules: ['bash: ask']", {
        "- rules x_*: deny, x_a: allow, bash: ask"
    });
    // What all are refused but for it.
    check("permission: {'*': deny, 'x_*': allow}", "[x_*]");
    check("permission: {'*': deny, 'x_*': allow}\ntools: {'x__echo': true, read: true}", "[x_*]");
    check("permission: {'*': deny, 'x_*': allow}\ntools: ['*']", "[x_*]");
    check("permission: {'*': deny, 'x_*': allow}\ntools: [xylo]", "[]");
    check("permission: {'*': deny, bash: allow}\ntools: ['Bash(git:*)']", "[Bash(git:*)]");
    // Without a word about tools it has what rules give.
    check("permission: {bash: allow}", "- rules bash: allow");
    check("permission: {'*': allow}", "-");
    check("permission: {bash: allow}\ntools: [Read]", "[Read]");
    check("permissionRules: ['bash: deny']", "- rules bash: deny");
}

#[test]
fn what_cannot_be_read_opens_nothing() {
    let check = |text: &str, expected: &str| assert_eq!(told(text), expected, "{text}");
    check("tools: {weird: {a: b}}", "[] not weird access_closed@4");
    check("tools: [Read, {a: b}]", "[Read] access_closed@4");
    check("tools: [[Read]]", "[] access_closed@4");
    check("tools: {}", "[]");
    // Parentheses that hold nothing, or never end.
    check("tools: Bash(git:*, Read", "[Bash(git:*, Read] access_narrowed@4");
    check("tools: ['Bash(git:*', Read]", "[Bash(git:* Read] access_narrowed@4");
    check("tools: [Read, 'Bash(', 'LS( ']", "[Read] access_narrowed@4 access_narrowed@4");
    check("tools: Agent(a, Read", "[] spawns [a Read] access_narrowed@4");
    check("tools: ['Bash()', Read]", "[Read] access_narrowed@4");
    check("tools: {'Bash( )': true, read: true}", "- rules read: allow access_narrowed@4");
    check("permissions: {allow: ['Bash()', 'Read(x']}", "[Read(x] access_narrowed@4 access_narrowed@4");
    check("disallowedTools: Bash(rm:*)", "- not Bash(rm:*)");
    check("disallowedTools: Skill(x)", "- not Skill(x) access_narrowed@4");
    check("tools: {read: true, bash: ask}", "- ask bash rules read: allow, bash: allow");
    check("disallowedTools: [Bash, {a: b}]", "[] not Bash access_closed@4");
    check("disallowedTools: [Bash, Write", "- not Bash Write");
    check("disallowedTools: Bash: yes", "[] not yes access_closed@4");
    check("permission: {bash: ask}", "- rules bash: ask");
    check("permission:\n  bash:\n    '*': deny\n    'git *': allow", "- rules bash(*): deny, bash(git *): allow");
    check("permission: {bash: {x: [y]}}", "- not bash access_closed@4");
    check("permission: {'*': sometimes, read: allow}", "[read] access_closed@4");
    check("permission: perhaps", "[] access_closed@4");
    check("permissions: {ask: [Bash]}", "- ask Bash");
    check("permissions: {allow: {a: [b]}}", "[] not a access_closed@4");
    check("permissions: {deny: {a: [b]}}", "[] not a access_closed@4");
    check("permissionMode: whatever", "- readonly access_closed@4");
    check("sandbox_mode: {a: b}", "- readonly access_closed@4");
    check("readonly: mostly", "- readonly access_closed@4");
    check("allowed_callers:", "- by [] access_closed@4");
    check("allowed_callers: {a: [b]}", "- by [] access_closed@4");
    check("allowed_callers: [[main]]", "- by [] access_closed@4");
    check("disable-model-invocation: perhaps", "- by [main] access_closed@4");
    check("infer: perhaps", "- by [main] access_closed@4");
    check("agents: [{a: b}]", "- spawns [] access_closed@4");
    // One letter off: what was meant is plain, and the other reading would open everything.
    check("tols: [Read]", "[Read] key_misspelt@4");
    check("dissallowedTools: Bash", "- not Bash key_misspelt@4");
    // As much as all.
    check("disallowedTools: true", "[] not true access_closed@4");
    check("disallowedTools: [Bash, yes]", "[] not Bash yes access_closed@4");
    check("permissions: {deny: true}", "[] not true access_closed@4");
    check("permissions: {ask: true}", "[] ask true access_closed@4");
    check("permissions: {ask: Read}", "- ask Read");
    check("permission: {ask: deny}", "- not ask");
    check("agents:", "- spawns [] access_closed@4");
    check("agents: null", "- spawns [] access_closed@4");
    check("tools: Task()", "[Task()] spawns [] access_closed@4");
    check("tools: [Agent( ), Task(a)]", "[Agent( ) Task(a)] spawns [a] access_closed@4");
    check("permissions: {allow: ['Agent()']}", "[Agent()] spawns [] access_closed@4");
    check("disallowedTools: Read; LS", "- not Read; LS access_narrowed@4");
    check("disallowedTools: 'Read(a); LS'", "- not Read(a); LS access_narrowed@4");
    // Other words for a key of access.
    check("deny: [Read]", "- not Read key_misspelt@4");
    check("disallowed: Read", "- not Read key_misspelt@4");
    check("tools-deny: true", "[] not true key_misspelt@4 access_closed@4");
    check("allow: [Read]", "[Read] key_misspelt@4");
    check("permittedTools: [Read]", "[Read] key_misspelt@4");
    check("tool_list: Read, LS", "[Read LS] key_misspelt@4");
    check("toolset: [{type: shell}]", "[] key_misspelt@4 access_closed@4");
    check("forbid: [Read]", "- not Read key_misspelt@4");
    check("forbid: true", "[] not true key_misspelt@4 access_closed@4");
    check("tool-permissions: {Read: deny}", "- not Read key_misspelt@4");
    // Tools to have, or tools to lack: nobody can tell.
    check("restrictedTools: [Read]", "[] access_closed@4");
    check("restrict-tools:", "-");
    // Below another key.
    check("settings: {permissions: {allow: [Read], deny: [LS]}}", "[Read] not LS key_misspelt@4");
    check("settings:\n  permissions:\n    defaultMode: plan", "- readonly key_misspelt@5");
    check("tools: [Read, LS]\nconfig: {tools: [Read]}", "[Read] key_misspelt@5");
    check("security: {allowedCallers: [x], readonly: yes}", "- readonly by [x] key_misspelt@4 key_misspelt@4");
    check("policy: {deny: [{a: b}]}", "[] access_closed@4 key_misspelt@4");
    check("settings: {deny: [a]}\nsettings: {deny: [b]}", "- not a b duplicate_key@5 key_misspelt@4 key_misspelt@5");
    check("restrictions: {tools: [Read]}", "[] access_closed@4 key_misspelt@4");
    check("security: {allowed_callers: }", "- by [] access_closed@4 key_misspelt@4");
    check("policy: {agents: []}", "- spawns [] key_misspelt@4");
    check("policy: {subagents: [x]}", "- spawns [x] key_misspelt@4");
    check("settings: {disable-model-invocation: true}", "- by [main] key_misspelt@4");
    check("settings: {infer: false}", "- by [main] key_misspelt@4");
    check("config: {mode: plan}", "- readonly key_misspelt@4");
    check("includeTools: [Read]", "[Read] key_misspelt@4");
    check("restrictions: {forbid: [Read]}", "- not Read key_misspelt@4");
    for nothing in [
        "limits: {tools: 10}",
        "config: {tools: }",
        "limits: {agents: 3, denied_tools: 2}",
        "config: {mode: dark}",
        "guardrails: {enabled: false}",
        "config: {enabled: true}",
        "settings: {max_turns: 3, theme: x}",
        "policy: be nice, tools are not",
        "metadata: {tools: [x]}",
        "restrictions: [no network]",
    ] {
        check(nothing, "-");
    }
    // Of two keys that say different things, what both allow.
    check("tools: Read\nallowed-tools: LS", "[] duplicate_key@5");
    check("allowed-tools: '*'\ntools: []", "[] duplicate_key@5");
    check("tools: []\nallowed-tools: '*'", "[] duplicate_key@5");
    check("tools: [Read, LS]\nallowed-tools: [read, Bash]", "[Read] duplicate_key@5");
    check("tools: [Bash]\ntool: 'Bash(git:*)'", "[Bash(git:*)] duplicate_key@5");
    check("tools: Read\nallowed-tools: Read", "[Read]");
    check("tools: []\ntools: [Read]", "[] duplicate_key@5");
    check("disallowedTools: Read\ndisallowed-tools: LS", "- not Read LS duplicate_key@5");
    check("disallowedTools: bash\npermission: {bash: allow}", "- not bash");
    check("permission: {'*': deny}\npermissions: {'*': allow}", "[]");
    check("readonly: true\nreadonly: false", "- readonly duplicate_key@5");
    check("allowed_callers: [a, b]\nallowed_callers: [b, c]", "- by [b] duplicate_key@5");
    // The key stands where broken YAML hides it.
    check("{tools: []}", "[] access_closed@4");
    check("{name: x, tools: []}", "[] access_closed@4");
    check("{name: x, \"allowed_callers\": []}", "- by [] access_closed@4");
    check("model: x, tools: []", "[] access_closed@4");
    check("model: a: b\ndeny: [Read]", "[] access_closed@5");
    check("model: a: b\n  tools: [Read]", "[] access_closed@5");
    check("model: a: b\n  allowed_callers: [x]", "- by [] access_closed@5");
    check("model: \"a\nallowed_callers: [x]\nmore\"", "- by [] access_closed@5");
    check("model: a: b\npolicy:\n  deny: [Read]", "[] access_closed@6");
    check("model: a: b\npolicy:\n\n  tools:\n    block: [Read]", "[] access_closed@7 access_closed@8");
    check("model: a: b\npolicy: { deny: [Read] }", "[] access_closed@5");
    check("model: a: b\n  policy:\n    callers: []", "- by [] access_closed@6");
    check("model: a: b\npolicy.deny: [Read]", "[] access_closed@5");
    check("policy.deny: [Read]", "[] access_closed@4");
    check("model: \"a\npolicy:\n  deny: [Read]\nmore\"", "[] access_closed@6");
    check("model: \"a\npolicy: { deny: [Read] }\nmore\"", "[] access_closed@5");
    check("model: a: b\npolicy:\n  theme: x\n\nforbid it, and so on", "-");
    check("model: a: b\nlimits: none\n  deny: [Read]\ncolor: x\n  deny: [Read]", "[] access_closed@6");
    check("policy: {theme: x}\ncolor: {deny: [Read]}", "-");
    // A role limits by some words only.
    check("model: a: b\n  mode: plan", "- readonly by [main] access_closed@5");
    check("model: a: b\n  mode: \"Ask\"", "- readonly by [main] access_closed@5");
    check("model: a: b\n  mode:\n    primary", "- readonly by [main] access_closed@5");
    check("model: a: b\n  mode: \"pl\\u0061n\"", "- readonly by [main] access_closed@5");
    check("model: a: b, mode: subagent", "-");
    check("model: a: b, mode: whatever it is", "-");
    // A key that a merge brings counts.
    check("x: &x {tools: [Read]}\n<<: *x", "[Read]");
    let many: String = (0..300).map(|n| format!("t{n}, ")).collect();
    assert!(told(&format!("disallowedTools: [{many}]")).starts_with("[] not t0 "));
}

#[test]
fn the_hint_fits_the_key() {
    let check = |text: &str, expected: &str| {
        let file = format!("---\nname: n\ndescription: d\n{text}\n---\nGo.\n");
        let found = read(file.as_bytes(), "n.md".as_ref(), Source::Dir).expect("a definition");
        let closed = found.warnings.iter().find(|one| one.code == Code::AccessClosed).expect("one is closed");
        assert!(closed.hint.as_deref().is_some_and(|hint| hint.contains(expected)), "{text}: {:?}", closed.hint);
    };
    check("tools: [[Read]]", "write a list of names, such as `[a, b]`");
    check("tools: {read: maybe}", "`true` or `false` behind each name");
    check("disallowedTools: true", "`['*']` to mean all");
    check("restrictedTools: [Read]", "`tools` for those that it may have");
    check("readonly: mostly", "write `true` or `false`");
    check("infer: perhaps", "write `true` or `false`");
    check("permissionMode: whatever", "write `plan` or `read-only`");
    check("permission: perhaps", "`{bash: deny}`");
    check("permission: {bash: {x: [y]}}", "`allow` or `deny` behind the name");
    check("allowed_callers:", "`[]` is no one");
    check("tools: Task()", "as in `Agent(reviewer)`");
}

#[test]
fn a_switch_that_cannot_be_read_is_off() {
    let check = |text: &str, expected: Option<Code>| {
        let file = format!("---\nname: n\ndescription: d\n{text}\n---\nGo.\n");
        let found = read(file.as_bytes(), "n.md".as_ref(), Source::Dir);
        assert_eq!(found.err().map(|why| why.code), expected, "{text}");
    };
    check("disable: false", None);
    check("disable:", None);
    check("disable: true", Some(Code::Disabled));
    check("disable: true\ndisable: false", Some(Code::Disabled));
    check("disable: maybe", Some(Code::SwitchUnreadable));
    check("enabled: true", None);
    check("enabled:", None);
    check("enabled: false", Some(Code::Disabled));
    check("Enabled: off", Some(Code::Disabled));
    check("enabled: perhaps", Some(Code::SwitchUnreadable));
    check("enabled: true\ndisable: true", Some(Code::Disabled));
    check("enabled: true\nenabled: false", Some(Code::Disabled));
    check("dissabled: true", Some(Code::Disabled));
    check("settings: {enabled: false}", Some(Code::Disabled));
    check("config: {disable: maybe}", Some(Code::SwitchUnreadable));
    check("config: {disable: }", None);
    check("disabled:: true", Some(Code::Disabled));
    // Where it stands it cannot be read.
    check("model: a: b\n  disable: true", Some(Code::SwitchUnreadable));
    check("model: \"a\ndisable: true\nmore\"", Some(Code::SwitchUnreadable));
    check("disabled: [no]", Some(Code::SwitchUnreadable));
}
