use super::*;

/// `permissions_` without the entries that are always there.
fn check(brief: Value, permissions_: Value, lacks: &[&str]) {
    let brief = serde_json::from_value(brief).expect("a brief");
    let mut plan = Plan::default();
    let got = permissions(&brief, &[], &mut plan);
    let mut want = json!({ "*": "deny", "assistants_*": "allow" });
    want.as_object_mut().expect("an object").extend(permissions_.as_object().expect("an object").clone());
    // The order counts.
    assert_eq!(got.to_string(), want.to_string());
    assert_eq!(plan.lacks.iter().map(|(what, _)| what.as_str()).collect::<Vec<_>>(), lacks);
}

#[test]
fn definitions_are_said_in_its_terms() {
    let reads = json!({ "read": "allow", "glob": "allow", "list": "allow", "grep": "allow", "todowrite": "allow" });
    check(json!({}), reads, &["commands and changes"]);
    check(json!({ "tools": [] }), json!({}), &[]);
    let brief =
        json!({ "tools": ["Read", "Bash(git log:*)", "Bash(ls)", "Frob"], "ask_tools": ["Bash(git log -p:*)"] });
    let bash = json!({
        "*": "deny", "git log": "allow", "git log *": "allow", "ls": "allow", "git log -p": "deny", "git log -p *": "deny",
        "*>*": "deny",
    });
    let lacks = ["the tool `Frob`", "`Bash(git log -p:*)` only after asking", "files that commands write by `>`"];
    check(brief, json!({ "read": "allow", "bash": bash }), &lacks);
    let brief = json!({ "tools": ["Bash", "Write"], "disallowed_tools": ["Bash(rm:*)"] });
    let bash = json!({ "*": "allow", "rm": "deny", "rm *": "deny" });
    check(brief, json!({ "bash": bash, "edit": "allow" }), &[]);
    check(json!({ "tools": ["Write"], "readonly": true }), json!({ "edit": "deny", "bash": "deny" }), &[]);
    let rules = json!({ "tools": ["Read"], "rules": [
        { "action": "allow", "tool": "bash" }, { "action": "deny", "tool": "bash", "pattern": "rm *" },
        { "action": "ask", "tool": "edit" },
    ] });
    let bash = json!({ "*": "allow", "rm *": "deny" });
    check(rules, json!({ "read": "allow", "bash": bash, "edit": "deny" }), &["`edit` only after asking"]);
    let all: Map<_, _> =
        PERMISSIONS.iter().flat_map(|(_, names)| *names).map(|name| ((*name).to_owned(), "allow".into())).collect();
    let all = Value::Object(all);
    check(json!({ "tools": ["*"] }), all.clone(), &[]);
    check(json!({ "rules": [{ "action": "allow", "tool": "*" }] }), all, &[]);
    let ask = json!({ "rules": [{ "action": "ask", "tool": "*" }, { "action": "allow", "tool": "grep" }] });
    check(ask, json!({ "grep": "allow" }), &["everything only after asking"]);
    let deny = json!({ "tools": ["Read"], "rules": [{ "action": "allow", "tool": "read" }, { "action": "deny", "tool": "*" }] });
    check(deny, json!({}), &[]);
    // Who may change files may do it by commands; a pattern with `>` is meant.
    let bash = json!({ "*": "deny", "ls": "allow", "ls *": "allow" });
    check(json!({ "tools": ["Bash(ls:*)", "Edit"] }), json!({ "bash": bash, "edit": "allow" }), &[]);
    let bash = json!({ "*": "deny", "ls": "allow", "*>*": "deny", "ls > *": "allow" });
    check(
        json!({ "tools": ["Bash(ls > *)", "Bash(ls)"] }),
        json!({ "bash": bash }),
        &["files that commands write by `>`"],
    );
    let brief = json!({ "tools": ["Bash(ls)"], "readonly": true });
    check(brief, json!({ "bash": "deny", "edit": "deny" }), &["the tool `Bash(ls)`"]);
}

#[test]
fn what_bounds_reading_bounds_searches() {
    let but_env = json!([
        { "action": "allow", "tool": "read", "pattern": "*" }, { "action": "deny", "tool": "read", "pattern": "*.env" },
    ]);
    let read = json!({ "*": "allow", "*.env": "deny" });
    let reads = json!({ "read": read, "glob": "allow", "list": "allow", "grep": "deny", "todowrite": "allow" });
    check(json!({ "rules": but_env }), reads, &["searches in files"]);
    let brief = json!({ "tools": ["Read", "Bash", "Grep(src/**)"], "disallowed_tools": ["Read(*.env)"] });
    let want = json!({ "read": read, "bash": "allow", "grep": "deny" });
    check(brief, want, &["what bounds reading, for commands", "searches in files"]);
    check(json!({ "tools": ["Read(src/**)"] }), json!({ "read": { "*": "deny", "src/**": "allow" } }), &[]);
}
