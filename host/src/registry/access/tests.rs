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
    check("tools: {read: true, write: false}", "[read] not write");
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
    check("permission: {edit: deny, bash: allow}", "- not edit write patch multiedit write_file");
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
}

#[test]
fn what_cannot_be_read_opens_nothing() {
    let check = |text: &str, expected: &str| assert_eq!(told(text), expected, "{text}");
    check("tools: {weird: {a: b}}", "[] not weird access_closed@4");
    check("tools: [Read, {a: b}]", "[Read] access_closed@4");
    check("tools: [[Read]]", "[] access_closed@4");
    check("tools: {}", "[]");
    check("disallowedTools: Bash(rm:*)", "- not Bash(rm:*) access_narrowed@4");
    check("tools: {read: true, bash: ask}", "[read] not bash access_narrowed@4");
    check("disallowedTools: [Bash, {a: b}]", "[] not Bash access_closed@4");
    check("disallowedTools: [Bash, Write", "- not Bash Write");
    check("disallowedTools: Bash: yes", "[] not yes access_closed@4");
    check("permission: {bash: ask}", "- not bash access_narrowed@4");
    check("permission:\n  bash:\n    '*': deny\n    'git *': allow", "- not bash access_narrowed@6");
    check("permission: {bash: {x: [y]}}", "- not bash access_closed@4");
    check("permission: {'*': sometimes, read: allow}", "[read] access_closed@4");
    check("permission: perhaps", "[] access_closed@4");
    check("permissions: {ask: [Bash]}", "- not Bash access_narrowed@4");
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
    check("permissions: {ask: true}", "[] not true access_closed@4 access_narrowed@4");
    check("permissions: {ask: Read}", "- not Read access_narrowed@4");
    check("permission: {ask: deny}", "- not ask");
    check("agents:", "- spawns [] access_closed@4");
    check("agents: null", "- spawns [] access_closed@4");
    check("tools: Task()", "[Task()] spawns [] access_closed@4");
    check("tools: [Agent( ), Task(a)]", "[Agent( ) Task(a)] spawns [a] access_closed@4");
    check("permissions: {allow: ['Agent()']}", "[Agent()] spawns [] access_closed@4");
    check("disallowedTools: Read; LS", "- not Read; LS access_narrowed@4");
    check("disallowedTools: 'Read(a); LS'", "- not Read(a); LS access_narrowed@4 access_narrowed@4");
    // Other words for a key of access.
    check("deny: [Read]", "- not Read key_misspelt@4");
    check("disallowed: Read", "- not Read key_misspelt@4");
    check("tools-deny: true", "[] not true key_misspelt@4 access_closed@4");
    check("allow: [Read]", "[Read] key_misspelt@4");
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
    // A key that a merge brings counts.
    check("x: &x {tools: [Read]}\n<<: *x", "[Read]");
    let many: String = (0..300).map(|n| format!("t{n}, ")).collect();
    assert!(told(&format!("disallowedTools: [{many}]")).starts_with("[] not t0 "));
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
    check("disable: maybe", Some(Code::AccessClosed));
    check("enabled: true", None);
    check("enabled:", None);
    check("enabled: false", Some(Code::Disabled));
    check("Enabled: off", Some(Code::Disabled));
    check("enabled: perhaps", Some(Code::AccessClosed));
    check("enabled: true\ndisable: true", Some(Code::Disabled));
    check("enabled: true\nenabled: false", Some(Code::Disabled));
    check("dissabled: true", Some(Code::Disabled));
    check("disabled:: true", Some(Code::Disabled));
    // Where it stands it cannot be read.
    check("model: a: b\n  disable: true", Some(Code::AccessClosed));
    check("model: \"a\ndisable: true\nmore\"", Some(Code::AccessClosed));
    check("disabled: [no]", Some(Code::AccessClosed));
}
