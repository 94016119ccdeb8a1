use super::*;

fn check(brief: Value, args: &str, lacks: &[&str]) {
    let brief = serde_json::from_value(brief).expect("a brief");
    let mut plan = Plan::default();
    sandbox(&Wishes::of(&brief, &[]), &mut plan);
    let got: Vec<_> = plan.args.iter().filter_map(|arg| arg.to_str()).filter(|arg| *arg != "-c").collect();
    assert_eq!(got.join(" "), args);
    assert_eq!(plan.lacks.iter().map(|(what, _)| what.as_str()).collect::<Vec<_>>(), lacks);
}

#[test]
fn definitions_choose_the_sandbox() {
    let reads = "sandbox_mode=\"read-only\" approval_policy=\"never\" web_search=\"disabled\"";
    let alone = "--disable multi_agent";
    check(json!({}), &format!("{reads} {alone}"), &["commands that change something"]);
    check(json!({ "readonly": true, "tools": ["Bash"] }), &format!("{reads} {alone}"), &[]);
    check(json!({ "tools": [] }), &format!("{reads} {alone} --disable shell_tool --disable unified_exec"), &[]);
    let writes = reads.replace("read-only", "workspace-write");
    check(json!({ "tools": ["Bash"] }), &format!("{writes} {alone}"), &["the network for commands"]);
    let web = writes.replace("disabled", "live");
    check(json!({ "tools": ["Edit", "WebSearch", "Task"] }), &web, &["the network for commands"]);
    let patterns = json!({ "tools": ["Bash(ls:*)", "Frob"], "ask_tools": ["Edit"], "disallowed_tools": ["Read"] });
    let lacks = ["the tool `Bash(ls:*)`", "the tool `Frob`", "`Read` forbidden", "`Edit` only after asking"];
    check(patterns, &format!("{reads} {alone}"), &lacks);
    let rules = json!({ "tools": ["Bash"], "rules": [{ "action": "deny", "tool": "Bash", "pattern": "rm*" }] });
    check(rules, &format!("{reads} {alone}"), &["rules for calls"]);
    let rules = json!({ "tools": ["Read"], "rules": [
        { "action": "ask", "tool": "read" }, { "action": "allow", "tool": "read", "pattern": "src/**" },
        { "action": "deny", "tool": "read", "pattern": "*.env" }, { "action": "deny", "tool": "grep" },
    ] });
    let lacks = [
        "`grep` forbidden",
        "the rule for `read`",
        "the rule for `read(*.env)`",
        "the rule for `grep`",
        "rules for calls",
    ];
    check(rules, &format!("{reads} {alone}"), &lacks);
    check(json!({ "tools": ["*"] }), &web, &["the network for commands"]);
    let all = |action: &str| json!({ "rules": [{ "action": action, "tool": "*" }] });
    check(all("allow"), &web, &["the network for commands"]);
    let nothing = format!("{reads} {alone} --disable shell_tool --disable unified_exec");
    check(all("ask"), &nothing, &["rules for calls"]);
    check(all("deny"), &nothing, &["rules for calls"]);
}

#[test]
fn models_of_others_are_known() {
    for model in ["gpt-5", "o3", "openai/gpt-5-codex", "codex-mini"] {
        assert!(is_model(model), "{model}");
    }
    for model in ["sonnet", "opus", "gemini-2.5-pro"] {
        assert!(!is_model(model), "{model}");
    }
}
