//! What commands tell of the configuration and its servers.

use conformance::doors::Doors;
use serde_json::{Value, json};

use crate::HOST;

/// What a command that looks at this configuration tells, with the variable `SECRET_IN_HOST`: its code, and all of its
/// words.
fn told(doors: &Doors, args: &[&str]) -> (Option<i32>, String) {
    let mut command = doors.command(args);
    let ran = command.env("SECRET_IN_HOST", "hush-12345678").output().expect("it runs");
    let words = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    (ran.status.code(), words)
}

#[test]
fn secrets_of_a_server_are_not_told() {
    let config = "[mcp_servers.web]\nurl = \"http://user:pw123@127.0.0.1:9/x?token=tok-of-mine\"\n\
        [mcp_servers.literal]\ncommand = \"sh\"\n\
        args = [\"-c\", \"echo $0 >&2; exit 4\", \"--api-key=sk-literal-99\"]\n\
        [mcp_servers.filled]\ncommand = \"/nope/${SECRET_IN_HOST}/x\"\n\
        [mcp_servers.given]\ncommand = \"sh\"\nargs = [\"-c\", \"echo $0 >&2; exit 4\", \"${SECRET_IN_HOST}\"]\n";
    let doors = Doors::new(HOST, config);
    for args in [&["doctor"][..], &["doctor", "--json"], &["tools", "--servers"], &["tools", "--servers", "--json"]] {
        let (_, told) = told(&doors, args);
        for secret in ["pw123", "tok-of-mine", "sk-literal-99", "hush-12345678"] {
            assert!(!told.contains(secret), "{args:?} {secret}: {told}");
        }
        assert!(told.contains("cannot start /nope/${SECRET_IN_HOST}/x"), "{args:?} {told}");
    }
    let (_, told) = told(&doors, &["doctor"]);
    assert!(told.contains("--api-key=(set)") && told.contains("http://user:(set)@127.0.0.1:9/x?token=(set)"), "{told}");
}

/// What a host keeps and logs of a server that it could not start.
#[test]
fn a_variable_in_a_command_is_in_no_log() {
    let doors = Doors::new(HOST, "[mcp_servers.s]\ncommand = \"/nope/${SECRET_IN_HOST}/x\"\n");
    let text = "---\nname: uses\ndescription: It uses a server.\ntools: [s__*]\n---\nYou are uses.\n";
    std::fs::write(doors.dir.path().join("assistants/uses.md"), text).expect("a file");
    let (_, ran) = told(&doors, &["run", "--assistant", "uses", "go"]);
    assert!(ran.contains("/nope/${SECRET_IN_HOST}/x") && !ran.contains("hush-12345678"), "{ran}");
    for file in ["host.log", assistant_host::store::FILE, "assistants.db-wal"] {
        let kept = std::fs::read(doors.state().join(file)).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&kept).contains("hush-12345678"), "{file}");
    }
}

#[test]
fn the_configuration_of_a_host_is_judged() {
    let doors = Doors::new(HOST, "");
    let file = doors.dir.path().join("config.toml").display().to_string();
    let lint = ["config", "lint"];
    let check = |config: &str, code: i32, want: &[&str]| {
        doors.configure(config);
        let (ended, words) = told(&doors, &lint);
        assert_eq!(ended, Some(code), "{words}");
        want.iter().for_each(|part| assert!(words.contains(&part.replace("FILE", &file)), "{part}: {words}"));
    };
    check("", 0, &["FILE: 0 errors, 0 warnings\n"]);
    check("nonsense = 1", 2, &["error: FILE, line ", "unknown field `nonsense`", "1 error, 0 warnings"]);
    check(
        "[limits]\ndepth = 0\n[mcp_servers.a]\n[mcp_servers.b]\nurl = \"ftp://x\"\n",
        2,
        &[
            "error: FILE, line 6: `limits.depth` is 0",
            "error: FILE, line 7: `mcp_servers.a` has neither a `command` nor a `url`",
            "error: FILE, line 8: `mcp_servers.b` has a `url` that is none of http or https",
            "3 errors, 0 warnings",
        ],
    );
    let lacks = "[mcp_servers.a]\ncommand = \"no-such-program\"\nargs = [\"${UNSET_HERE}\"]\n";
    let want = [
        "warning: FILE, line 6: `mcp_servers.a.command` names no-such-program, and there is no such program here",
        "warning: FILE, line 7: `mcp_servers.a.args` cannot be filled in: the variable UNSET_HERE is not set here",
    ];
    check(lacks, 0, &want);
    let (code, words) = told(&doors, &[&lint[..], &["--strict"]].concat());
    assert_eq!(code, Some(1), "{words}");
    let (_, words) = told(&doors, &[&lint[..], &["--json"]].concat());
    let told: Value = serde_json::from_str(words.trim()).expect("JSON");
    assert_eq!(told["findings"][0]["key"], json!("mcp_servers.a.command"), "{told}");
}

/// The command line has commands, and its hints name them.
#[test]
fn a_hint_of_a_tool_names_the_command() {
    let doors = Doors::new(HOST, "");
    for args in
        [&["run", "--embedded", "--assistant", "nosuchxyz", "hi"][..], &["run", "--assistant", "nosuchxyz", "hi"]]
    {
        let (code, _, talk) = doors.run(args);
        assert!(code != Some(0) && talk.contains("`assistant-host search` finds one by a description"), "{talk}");
        assert!(!talk.contains("search_assistant"), "{talk}");
    }
}
