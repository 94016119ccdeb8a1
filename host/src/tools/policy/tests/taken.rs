//! What is refused by name, and what of the other keys and rules takes it back.

use super::*;

/// Which tools are offered by `keys`.
fn check(keys: &str, offered: &[&str]) {
    let policy = policy(keys, None);
    let all = ["x__echo", "x__evil", "x__run_command", "y__write_file"];
    let got: Vec<&str> = all.into_iter().filter(|tool| policy.offers(named(tool))).collect();
    assert_eq!(got, offered, "{keys}");
}

#[test]
fn rules_under_a_key_of_their_own_take_no_denial_back() {
    let tools = "tools: {'*': true, 'x_*': false, x_echo: true}";
    check(&format!("{tools}\npermissionRules: ['bash: ask']"), &["x__echo", "y__write_file"]);
    check(&format!("{tools}\npermissionRules: ['*: allow', 'x_*: allow']"), &["x__echo", "y__write_file"]);
    check(&format!("{tools}\npermissionRules: ['x_echo: deny']"), &["y__write_file"]);
    let permission = "tools: ['*']\npermission: {'x_*': deny, x_echo: allow}";
    check(&format!("{permission}\npermissionRules: ['bash: ask']"), &["x__echo", "y__write_file"]);
    check(&format!("{permission}\npermissionRules: ['*: allow']"), &["x__echo", "y__write_file"]);
    // A denial of each key counts.
    check(
        "tools: {'*': true, 'x_*': false, x_echo: true}\npermission: {'x_*': deny, x_evil: allow}\npermissionRules: ['edit: ask']",
        &["y__write_file"],
    );
}

#[test]
fn permissions_take_nothing_back_that_tools_refuse() {
    let check = |more: &str, offered: &[&str]| check(&format!("{more}\npermission: {{'x_*': allow}}"), offered);
    check("tools: {'*': true, 'x_*': false}", &["y__write_file"]);
    check("tools: {'*': true, 'x_*': false, x_echo: true}", &["x__echo", "y__write_file"]);
    check("tools: {'*': true, 'x_*': false, 'x_e*': true, x_evil: false}", &["x__echo", "y__write_file"]);
    check("tools: {'*': true, 'x_*': false, 'x_e*': ask, 'x_ev*': false, x_evi: true}", &["x__echo", "y__write_file"]);
}

/// In whatever spelling of the server.
#[test]
fn permissions_take_nothing_back_in_another_spelling() {
    let tools = "tools: {'*': true, 'x_*': false, x_echo: true}";
    for name in ["mcp__x__*", "mcp__x__evil", "mcp__x", "@x", "@x/*", "x/*", "x/evil", "mcp_x_evil", "X__Evil"] {
        check(&format!("{tools}\npermission: {{'{name}': allow}}"), &["x__echo", "y__write_file"]);
        check(&format!("{tools}\npermissionRules: ['{name}: allow']"), &["x__echo", "y__write_file"]);
    }
    check(&format!("{tools}\npermission: {{xylo: allow, 'y_*': allow}}"), &["x__echo", "y__write_file"]);
}

/// A server that is switched off is none of its own, and one of that name elsewhere is not meant.
#[test]
fn what_is_switched_off_is_no_server_of_its_own() {
    for switch in ["enabled: false", "enabled: off", "enabled: 'no'", "enabled: 0", "enabled: maybe", "disabled: yes"] {
        let own = format!("mcp: {{x: {{type: local, command: [run], {switch}}}}}\npermission: {{x_echo: allow}}");
        check(&own, &["x__echo"]);
    }
    let own = "mcp: {x: {type: local, command: [run], enabled: on}}\npermission: {x_echo: allow}";
    check(own, &["x__echo", "x__evil", "x__run_command"]);
}

/// What another key says of a tool that is given out of a group counts too.
#[test]
fn what_is_given_out_of_a_group_is_held_to_permissions() {
    let check = |permission: &str, tool: &str, want: &str| {
        let keys = format!("tools: {{'*': true, 'x_*': false, x_echo: true, x_run_command: true}}\n{permission}");
        let policy = policy(&keys, Some(Path::new("/")));
        assert!(policy.offers(named(tool)), "{keys}");
        assert_eq!(word(&policy, tool, &json!({ "command": "ls" })), want, "{keys} {tool}");
    };
    for asks in ["{'*': ask}", "{'*': ask, 'x_ev*': allow}", "{'x_*': ask}", "{'*': allow, x_echo: ask}"] {
        check(&format!("permission: {asks}"), "x__echo", "ask");
    }
    check("permission: {'*': ask, x_echo: allow}", "x__echo", "allow");
    check("permission: {'*_echo': ask, 'x_evil': allow}", "x__echo", "ask");
    for asks in ["{bash: ask}", "{'*': allow, bash: ask}", "{'x_*': allow, bash: ask}"] {
        check(&format!("permission: {asks}"), "x__run_command", "ask");
    }
}

#[test]
fn a_rule_for_what_tools_do_reopens_no_denial_by_name() {
    let run = |keys: &str, command: &str, want: &str| {
        let policy = policy(keys, Some(Path::new("/")));
        let offered = policy.offers(named("x__run_command"));
        let said = word(&policy, "x__run_command", &json!({ "command": command }));
        assert_eq!(if offered { said } else { "taken" }, want, "{keys} {command}");
    };
    let group = "permission: {'x_*': deny, x_echo: allow, bash: {'*': ask, 'git *': allow}}";
    run(group, "git push", "taken");
    check(&format!("tools: ['*']\n{group}"), &["x__echo", "y__write_file"]);
    let policy = policy(group, Some(Path::new("/")));
    assert_eq!(word(&policy, "x__run_command", &json!({ "command": "git push" })), "deny");
    for rules in
        ["'x__*: deny', 'bash: allow'", "'run_command: deny', 'bash: allow'", "'x__*: deny', 'run_command: allow'"]
    {
        run(&format!("tools: ['*']\npermissionRules: [{rules}]"), "ls", "taken");
    }
    // Calls of which only the denial is about by name.
    let some = "tools: ['*']\npermissionRules: ['x__*: deny', 'x__run_command(ls *): allow', 'bash(git *): allow']";
    run(some, "ls x", "allow");
    run(some, "git log", "deny");
    // What names it, or is for all, does.
    for rules in [
        "'x__*: deny', 'x__run_command: allow'",
        "'run_command: deny', 'run_command: allow'",
        "'x__*: deny', '*: allow'",
    ] {
        run(&format!("tools: ['*']\npermissionRules: [{rules}]"), "ls", "allow");
    }
    run("tools: ['*']\npermissionRules: ['x__*: deny', 'x__run_command: allow', 'bash: ask']", "ls", "ask");
    run("tools: ['*']\npermissionRules: ['*: deny', 'bash: allow']", "ls", "allow");
    run("tools: ['*']\npermissionRules: ['shell: deny', 'bash: allow']", "ls", "allow");
}

#[test]
fn files_that_are_written_stay_refused_by_name() {
    let of = |rules: &str| policy(&format!("tools: ['*']\npermissionRules: [{rules}]"), Some(Path::new("/")));
    assert!(!of("'y_*: deny', 'edit: allow'").offers(named("y__write_file")));
    assert!(!of("'y_*: deny', 'edit(**): allow'").offers(named("y__write_file")));
    assert!(of("'y_*: deny', 'edit: allow', 'y_write_file: allow'").offers(named("y__write_file")));
    // Tools of an app too.
    let app = of("'app__*: deny', 'app__do_it: allow', 'bash: ask'");
    assert!(app.takes(named("app__sh")) && !app.takes(named("app__do_it")));
}

/// A rule that only refuses some calls brings no tool, and permissions of opencode give what they say nothing of.
#[test]
fn a_denial_of_some_calls_gives_no_tool() {
    check("permissionRules: ['bash(rm *): deny']", &["x__echo", "x__evil", "x__run_command", "y__write_file"]);
    let given = |keys: &str| {
        let text = format!("---\nname: n\ndescription: d\n{keys}\n---\nGo.\n");
        read(text.as_bytes(), "n.md".as_ref(), Source::Dir).expect("a definition").given_by_rules()
    };
    assert_eq!(given("permissionRules: ['bash(rm *): deny']"), [""; 0]);
    assert_eq!(given("permissionRules: ['bash(rm *): deny', 'bash(git *): ask']"), ["bash"]);
    assert_eq!(given("permission: {bash: {'rm *': deny}}"), ["bash"]);
    assert_eq!(given("permission: {bash: {'rm *': deny}}\npermissionRules: ['read: ask']"), ["read"]);
    assert_eq!(given("permission: {edit: {'src/*': allow}, write: {'src/x': deny}}"), ["edit"]);
}

#[test]
fn denials_are_read_in_any_spelling_of_the_server() {
    let check = |denied: &str, tool: &str, want: bool| {
        for keys in [format!("disallowedTools: [{denied}]"), format!("permissionRules: ['{denied}: deny']")] {
            assert_eq!(policy(&keys, None).offers(named(tool)), !want, "{keys} {tool}");
        }
    };
    check("web_search", "web__search", true);
    check("web_search", "web__fetch", false);
    check("web-search", "web__search", true);
    check("git_hub_list_issues", "git-hub__list_issues", true);
    check("git_hub_*", "git-hub__list_issues", true);
    check("git_hub_list", "git-hub__list_issues", false);
    check("my_db_query", "my.db__query", true);
    // What gives is not read so.
    for tools in ["web_search", "git_hub_list_issues"] {
        let policy = policy(&format!("tools: [{tools}]"), None);
        assert!(!policy.offers(named("web__search")) && !policy.offers(named("git-hub__list_issues")), "{tools}");
    }
}
