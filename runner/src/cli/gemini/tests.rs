use super::*;

/// Rules in short, as they are ordered, without those that are always there.
fn check(brief: Value, rules: &[&str], lacks: &[&str]) {
    let brief = serde_json::from_value(brief).expect("a brief");
    let mut plan = Plan::default();
    let text = policy(&brief, &[], &mut plan).expect("few enough");
    let rules_: Vec<String> = text.split("[[rule]]").skip(1).map(short).collect();
    let [all, rules_ @ .., ours] = rules_.as_slice() else { panic!("{text}") };
    assert_eq!((all.as_str(), ours.as_str()), ("deny *", "allow mcp_assistants_*"));
    assert_eq!(rules_, rules);
    assert_eq!(plan.lacks.iter().map(|(what, _)| what.as_str()).collect::<Vec<_>>(), lacks);
}

fn short(rule: &str) -> String {
    let value = |name: &str| {
        let line = rule.lines().find_map(|line| line.strip_prefix(&format!("{name} = ")));
        line.map(|value| value.trim_matches('"').to_owned())
    };
    let prefix = value("commandPrefix").map(|prefix| format!(" {prefix}")).unwrap_or_default();
    let redirection = if value("allowRedirection").as_deref() == Some("true") { " > <" } else { "" };
    let (decision, tool) = (value("decision").expect("is there"), value("toolName").expect("is there"));
    format!("{decision} {tool}{prefix}{redirection}")
}

#[test]
fn definitions_are_said_in_its_terms() {
    check(json!({ "tools": [] }), &[], &[]);
    let brief = json!({
        "tools": ["Bash(git log:*)", "Write(src/**)", "Frob"], "disallowed_tools": ["Bash(git log -p:*)"], "ask_tools": ["Edit"],
    });
    let rules = ["allow run_shell_command git log", "deny run_shell_command git log -p", "deny replace"];
    check(brief, &rules, &["the tool `Write(src/**)`", "the tool `Frob`", "`Edit` only after asking"]);
    // What cannot be said is not allowed, and forbidden as a whole.
    let brief = json!({ "tools": ["Bash"], "disallowed_tools": ["Bash(*--force*)"] });
    check(brief, &["allow run_shell_command > <", "deny run_shell_command"], &["`Bash(*--force*)` forbidden"]);
    let brief = json!({ "tools": ["Read"], "rules": [
        { "action": "allow", "tool": "read", "pattern": "*" }, { "action": "deny", "tool": "read", "pattern": "*.env" },
    ] });
    let reads = |may: &str| ["read_file", "read_many_files"].map(|name| format!("{may} {name}"));
    let rules = [reads("allow"), reads("allow"), reads("deny")].concat();
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    check(brief, &rules, &["the rule for `read(*.env)`"]);
    // Nor does it search where it must not read everything, and its commands are told of.
    let brief = json!({ "tools": ["Read", "Grep", "Bash"], "disallowed_tools": ["Read"] });
    let searches = |may: &str| ["grep_search", "search_file_content"].map(|name| format!("{may} {name}"));
    let run = vec!["allow run_shell_command > <".to_owned()];
    let rules = [&reads("allow")[..], &searches("allow"), &run, &reads("deny"), &searches("deny")].concat();
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    check(brief, &rules, &["what bounds reading, for commands", "searches in files"]);
    let brief = json!({ "tools": ["Bash(git log:*)"], "readonly": true });
    let deny = ["deny replace", "deny write_file", "deny run_shell_command"];
    check(brief, &[&["allow run_shell_command git log"][..], &deny].concat(), &["the tool `Bash(git log:*)`"]);
    let brief = json!({ "tools": ["Write"], "readonly": true });
    check(brief, &["allow write_file", "deny replace", "deny write_file", "deny run_shell_command"], &[]);
    let redirection = |name: &str| if name == "run_shell_command" { " > <" } else { "" };
    let names = TOOLS.iter().flat_map(|(_, names)| *names);
    let all: Vec<String> = names.map(|name| format!("allow {name}{}", redirection(name))).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    check(json!({ "tools": ["*"] }), &all, &[]);
    check(json!({ "rules": [{ "action": "allow", "tool": "*" }] }), &all, &[]);
    let ask = json!({ "rules": [
        { "action": "ask", "tool": "*" }, { "action": "allow", "tool": "grep" }, { "action": "ask", "tool": "bash" },
    ] });
    let rules = ["allow grep_search", "allow search_file_content", "deny run_shell_command"];
    check(ask, &rules, &["everything only after asking", "`bash` only after asking"]);
    let deny = json!({ "rules": [{ "action": "allow", "tool": "read" }, { "action": "deny", "tool": "*" }] });
    check(deny, &[], &[]);
}

#[test]
fn what_it_cannot_order_is_refused() {
    let rules: Vec<Value> = (0..600).map(|_| json!({ "action": "deny", "tool": "bash" })).collect();
    let brief = serde_json::from_value(json!({ "rules": rules })).expect("a brief");
    assert!(policy(&brief, &[], &mut Plan::default()).is_err());
}
