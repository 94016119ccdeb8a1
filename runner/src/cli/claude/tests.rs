use super::tools::{COMPANIONS, is_held, options, permissions};
use super::*;

fn check(brief: Value, args: &[&str], permissions_: Value, lacks: &[&str]) {
    let brief = serde_json::from_value(brief).expect("a brief");
    let mut plan = Plan::default();
    let settings = permissions(&Wishes::of(&brief, &[]), &mut plan);
    assert_eq!((plan.args, &settings["permissions"]), (args.iter().map(Into::into).collect(), &permissions_));
    assert_eq!(plan.lacks.iter().map(|(what, _)| what.as_str()).collect::<Vec<_>>(), lacks);
}

#[test]
fn definitions_are_said_in_its_terms() {
    let ours = "mcp__assistants";
    let may = |allow: &[&str], deny: &[&str], ask: &[&str]| json!({ "allow": allow, "deny": deny, "ask": ask });
    check(json!({}), &["--tools", "Glob,Grep,Read"], may(&[ours], &[], &[]), &[]);
    check(json!({ "tools": ["*"] }), &[], may(&[ours], &[], &[]), &[]);
    let asks = json!({ "rules": [{ "action": "ask", "tool": "bash" }, { "action": "deny", "tool": "edit" }] });
    let tools = "Bash,Glob,Grep,Read,TaskOutput,TaskStop";
    check(asks, &["--tools", tools], may(&[ours], &["Edit"], &["Bash", "Edit"]), &[]);
    check(json!({ "tools": [] }), &["--tools", ""], may(&[ours], &[], &[]), &[]);
    let brief = json!({ "tools": ["Read", "Bash(git log:*)", "mcp__x__y", "grep", "Frob"], "ask_tools": ["Edit"] });
    check(
        brief,
        &["--tools", "Bash,Grep,Read,TaskOutput,TaskStop"],
        may(&[ours, "TaskOutput", "TaskStop"], &[], &["Bash", "Edit"]),
        &["the tool `Frob`"],
    );
    // What a pattern bounds the host judges, also what it would do without a word.
    let brief =
        json!({ "tools": ["Read(src/**)", "Grep"], "disallowed_tools": ["Bash(rm:*)"], "ask_tools": ["Write(a)"] });
    let denied = ["Bash(rm:*)", "TaskOutput", "TaskStop"];
    let asked = ["Bash", "Grep", "Read", "Write"];
    check(brief, &["--tools", "Grep,Read"], may(&[ours], &denied, &asked), &[]);
    let brief = json!({ "tools": ["Read", "Bash(git log:*)"], "readonly": true });
    let deny = ["Bash", "Edit", "NotebookEdit", "Write"];
    let allow = may(&[ours, "TaskOutput", "TaskStop"], &deny, &["Bash"]);
    check(brief, &["--tools", "Read,TaskOutput,TaskStop"], allow, &["the tool `Bash(git log:*)`"]);
    let brief = json!({ "tools": ["Read", "Write"], "disallowed_tools": ["WebFetch"], "readonly": true });
    let deny = ["WebFetch", "Bash", "Edit", "NotebookEdit", "Write"];
    check(brief, &["--tools", "Read"], may(&[ours, "Write"], &deny, &[]), &[]);
    // With rules the host is asked; what the last of them forbids at all is not there.
    let rules = json!({ "tools": ["Read", "Bash"], "rules": [
        { "action": "allow", "tool": "Bash", "pattern": "ls*" }, { "action": "deny", "tool": "Edit" },
    ] });
    check(rules, &["--tools", "Bash,Read,TaskOutput,TaskStop"], may(&[ours], &["Edit"], &["Bash", "Edit"]), &[]);
    // What it would read without a word, too.
    let rules = json!({ "rules": [
        { "action": "allow", "tool": "read" }, { "action": "deny", "tool": "read", "pattern": "*.env" },
    ] });
    check(rules, &["--tools", "Glob,Grep,Read"], may(&[ours], &["Read(*.env)"], &["Read"]), &[]);
    let ask = ["Grep", "Read"];
    let asks = json!({ "rules": [{ "action": "ask", "tool": "read" }] });
    check(asks, &["--tools", "Glob,Grep,Read"], may(&[ours], &[], &ask), &[]);
    // Told to ask for commands it would not keep them from files.
    let rules = json!({ "rules": [
        { "action": "deny", "tool": "read", "pattern": "*.env" }, { "action": "allow", "tool": "bash" },
    ] });
    let told = may(&[ours], &["Read(*.env)"], &["Read"]);
    check(rules, &["--tools", tools], told, &["what bounds reading, for commands"]);
    // What a later rule gives back the host knows.
    let rules = json!({ "tools": ["Bash", "Grep"], "rules": [
        { "action": "deny", "tool": "read", "pattern": "*.env" }, { "action": "allow", "tool": "read", "pattern": "a.env" },
    ] });
    let tools = ["--tools", "Bash,Grep,TaskOutput,TaskStop"];
    check(rules, &tools, may(&[ours], &[], &ask), &["what bounds reading, for commands"]);
    // Rules for all tools.
    check(json!({ "rules": [{ "action": "allow", "tool": "*" }] }), &[], may(&[ours], &[], &[]), &[]);
    let all = "Bash,Edit,Glob,Grep,NotebookEdit,Read,Task,TaskOutput,TaskStop,TodoWrite,WebFetch,WebSearch,Write";
    let asked: Vec<&str> = all.split(',').filter(|name| !COMPANIONS.contains(name)).collect();
    check(json!({ "rules": [{ "action": "ask", "tool": "*" }] }), &["--tools", all], may(&[ours], &[], &asked), &[]);
    let but_one = json!({ "rules": [{ "action": "deny", "tool": "*" }, { "action": "allow", "tool": "grep" }] });
    check(but_one, &["--tools", "Grep"], may(&[ours], &[], &asked), &[]);
}

#[test]
fn a_session_behind_an_adapter_is_told_its_tools() {
    let check = |brief: Value, told: Value| {
        let brief = serde_json::from_value(brief).expect("a brief");
        let mut got = options(&Wishes::of(&brief, &[]));
        let of_user = ["settingSources", "strictMcpConfig"].map(|name| got.remove(name));
        assert_eq!(of_user, [Some(json!([])), Some(json!(true))]);
        assert_eq!(Value::Object(got), told, "{brief:?}");
    };
    check(json!({}), json!({}));
    check(json!({ "tools": ["*"] }), json!({}));
    check(json!({ "tools": [] }), json!({ "tools": [] }));
    let run = ["Bash", "Read", "TaskOutput", "TaskStop"];
    let wanted = json!({ "tools": ["read_file", "Bash(git log:*)", "Frob"], "disallowed_tools": ["shell(rm:*)"] });
    check(wanted, json!({ "tools": run, "disallowedTools": ["Bash(rm:*)", "TaskOutput", "TaskStop"] }));
    check(json!({ "tools": ["Read", "Write"], "readonly": true }), json!({ "tools": ["Read"] }));
    let rules = json!({ "rules": [{ "action": "deny", "tool": "*" }, { "action": "allow", "tool": "grep" }] });
    check(rules, json!({ "tools": ["Grep"] }));
    let rules = json!([
        { "action": "allow", "tool": "read" }, { "action": "deny", "tool": "read", "pattern": "*.env" },
    ]);
    check(json!({ "rules": rules }), json!({ "disallowedTools": ["Read(*.env)"] }));
    let asks = json!([{ "action": "ask", "tool": "read" }]);
    check(json!({ "rules": asks }), json!({ "disallowedTools": ["Grep"] }));
    check(json!({ "tools": ["Read", "Grep"], "rules": asks }), json!({ "tools": ["Read"] }));
    check(json!({ "rules": [{ "action": "deny", "tool": "webfetch" }] }), json!({ "disallowedTools": ["WebFetch"] }));
}

#[test]
fn patterns_that_hold_searches_are_known() {
    for (pattern, held) in [
        ("*.env", true),
        (".env", true),
        ("secret*", true),
        ("secrets/**", true),
        ("a/b/**", true),
        ("a/*.env", false),
        ("*a/**", false),
        ("*a*", false),
        ("**/x", false),
        ("/etc/**", false),
        ("../x/**", false),
        ("~/x", false),
        ("*", false),
    ] {
        assert_eq!(is_held(pattern), held, "{pattern}");
    }
}

#[test]
fn models_of_others_are_known() {
    for model in ["sonnet", "opus[1m]", "claude-sonnet-4-5", "anthropic/claude-opus-4-1"] {
        assert!(is_model(model), "{model}");
    }
    for model in ["gpt-5", "gemini-2.5-pro", "qwen3:8b"] {
        assert!(!is_model(model), "{model}");
    }
}
