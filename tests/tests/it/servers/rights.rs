//! What servers see, and which may run.

use std::collections::BTreeMap;

use assistant_host::events::Kind;
use assistant_host::limits::Limits;
use assistant_host::servers::{Configured, Environment, ServerConfig};
use conformance::bed::{Bed, SOON, script};
use serde_json::{Value, json};

use super::{Served, calls, definition, events, server, until};
use crate::{RUNNER, SERVER};

fn config(more: &Value) -> ServerConfig {
    let mut config = json!({ "command": SERVER, "args": ["honest"] });
    config.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
    serde_json::from_value(config).expect("a server")
}

fn configured(more: &Value) -> Configured {
    Configured::read(&BTreeMap::from([("s".to_owned(), config(more))]), &[]).expect("servers")
}

fn bed(servers: &str, tool: &str) -> Bed {
    let (name, text) = definition("a", servers);
    let mut bed = Bed::new(RUNNER, &[(&name, &text)], &script(&[("a", calls(&[(tool, json!({}))]))]));
    bed.environment = Environment::new(|name| match name {
        "TOKEN" => Some("from the host".to_owned()),
        "OPENAI_API_KEY" => Some("sk-secret".to_owned()),
        _ => None,
    });
    bed
}

#[tokio::test]
async fn a_server_sees_what_is_listed_for_it() {
    let own = server(&["honest"], ", env: {A: '${TOKEN}', B: '${NONE:-b}'}");
    let served = Served::open(bed(&own, "s__env")).await;
    let env: BTreeMap<String, String> = serde_json::from_str(&served.run("a").await).expect("variables");
    assert_eq!((env["A"].as_str(), env["B"].as_str()), ("from the host", "b"));
    let known = [
        "A",
        "ASSISTANT_HOST_DEPTH",
        "ASSISTANT_PROCESS_ID",
        "ASSISTANT_SERVER_OF",
        "B",
        "HOME",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "LOGNAME",
        "PATH",
        "SHELL",
        "TERM",
        "TMPDIR",
        "TZ",
        "USER",
    ];
    let others: Vec<&String> = env.keys().filter(|name| !known.contains(&name.as_str())).collect();
    assert!(others.is_empty(), "{others:?}");
}

#[tokio::test]
async fn what_cannot_be_filled_in_is_told_at_the_spawn() {
    for (env, why) in [
        ("{A: '${NONE}'}", "the variable NONE is not set"),
        ("{A: '${OPENAI_API_KEY}'}", "holds the key of a model"),
        ("{A: '${input:token}'}", "nothing that can be filled in"),
    ] {
        let served = Served::open(bed(&server(&["honest"], &format!(", env: {env}")), "s__env")).await;
        let spawned = served.client.spawn("a", "go").await;
        let lacks = spawned["unavailable_tools"].to_string();
        assert!(lacks.contains("server s") && lacks.contains(why) && !lacks.contains("sk-secret"), "{lacks}");
        served.client.end(&spawned).await;
        assert!(served.servers().is_empty());
    }
}

#[tokio::test]
async fn what_is_not_trusted_is_not_started() {
    let bed = bed(&server(&["honest"], ""), "s__env");
    let client = bed.open().await;
    let spawned = client.spawn("a", "go").await;
    let lacks = spawned["unavailable_tools"].to_string();
    assert!(lacks.contains("server s") && lacks.contains("not trusted"), "{lacks}");
    client.end(&spawned).await;
    assert!(super::living(bed.state()).is_empty());
    let refused = json!(events(&client.host, &spawned, Kind::Refused).await).to_string();
    assert!(refused.contains("s__env"), "the call is refused: {refused}");
}

#[tokio::test]
async fn a_name_is_the_configured_server() {
    let mut bed = bed("[s]", "s__env");
    bed.servers = configured(&json!({ "env": { "A": "${OPENAI_API_KEY}" }, "tools": ["e*"] }));
    let served = Served::open(bed).await;
    // What the user configures is the user's word.
    assert!(served.run("a").await.contains("sk-secret"));
    let mut other = self::bed("[nobody]", "s__env");
    other.servers = configured(&json!({}));
    let other = Served::open(other).await;
    let lacks = other.client.spawn("a", "go").await["unavailable_tools"].to_string();
    assert!(lacks.contains("no server of that name is configured"), "{lacks}");
    // Only some of its tools are let through.
    let mut few = self::bed("[s]", "s__place");
    few.servers = configured(&json!({ "tools": ["e*"] }));
    let few = Served::open(few).await;
    let spawned = few.client.spawn("a", "go").await;
    few.client.end(&spawned).await;
    let refused = json!(events(few.host(), &spawned, Kind::Refused).await).to_string();
    assert!(refused.contains("s__place"), "{refused}");
}

#[tokio::test]
async fn a_name_that_the_configuration_maps_is_a_tool_of_a_server() {
    let check = async |maps: &str, tools: &str, last: &str, lacks: &str| {
        let text = format!("---\nname: a\ndescription: d\ntools: {tools}\n---\nYou are a.\n");
        let echo = calls(&[("s__echo", json!({ "text": "here" }))]);
        let mut bed = Bed::new(RUNNER, &[("a.md", &text)], &script(&[("a", echo)]));
        bed.servers = configured(&json!({}));
        bed.tool_aliases = BTreeMap::from([("Frob".to_owned(), maps.to_owned())]);
        let served = Served::open(bed).await;
        let spawned = served.client.spawn("a", "go").await;
        served.client.end(&spawned).await;
        let told = served.client.mail(&spawned).await.pop().unwrap_or_default();
        assert!(told.contains(last), "{maps} {tools}: {told}");
        assert_eq!(spawned["unavailable_tools"], serde_json::from_str::<Value>(lacks).expect("JSON"), "{maps} {tools}");
    };
    for maps in ["s__echo", "mcp__s__echo", "s/echo", "s/*"] {
        check(maps, "[Frob]", "here", "[]").await;
    }
    // Another tool of it, and no more than that.
    check("s__env", "[Frob]", "no tool `s__echo`", "[]").await;
}

/// Maps of opencode give tools of a configured server, by the names that opencode has for them.
#[tokio::test]
async fn maps_of_permissions_give_tools_of_configured_servers() {
    let check = async |keys: &str, echo: &str, env: &str| {
        let text = format!("---\nname: a\ndescription: d\n{keys}\n---\nYou are a.\n");
        for (tool, last) in [("s__echo", echo), ("s__env", env)] {
            let steps = calls(&[(tool, json!({ "text": "here PATH" }))]);
            let mut bed = Bed::new(RUNNER, &[("a.md", &text)], &script(&[("a", steps)]));
            bed.servers = configured(&json!({}));
            let served = Served::open(bed).await;
            let spawned = served.client.spawn("a", "go").await;
            served.client.end(&spawned).await;
            let told = served.client.mail(&spawned).await.pop().unwrap_or_default();
            assert!(told.contains(last), "{keys} {tool}: {told} {spawned}");
        }
    };
    let (echo, env) = ("here", "PATH");
    check("tools: {'s__*': false, s__echo: true}", echo, "`s__env` is not permitted: by the rule `s__*: deny`").await;
    check("permission: {'s_*': deny, s_echo: allow}", echo, "`s__env` is not permitted: by the rule `s_*: deny`").await;
    check("permission: {'*': deny, 's_*': allow}", echo, env).await;
    check("permission: {'s_*': allow, s_env: deny}", echo, "`s__env` is not permitted").await;
    check("permission: {s_echo: deny}", "no tool `s__echo`", "no tool `s__env`").await;
}

/// A tool that there is and that is not given is told with the rule, and one that there is not before it is called.
#[tokio::test]
async fn what_is_withheld_is_told_with_its_rule() {
    let check = async |keys: &str, call: &str, told: &str, rule: &str, prompt: &str| {
        let servers = server(&["honest"], "");
        let text = format!("---\nname: a\ndescription: d\nmcpServers: {servers}\n{keys}\n---\nYou are a.\n");
        let steps = calls(&[(call, json!({ "text": "x" }))]);
        let served = Served::open(Bed::new(RUNNER, &[("a.md", &text)], &script(&[("a", steps)]))).await;
        let spawned = served.client.spawn("a", "go").await;
        served.client.end(&spawned).await;
        let last = served.client.mail(&spawned).await.pop().unwrap_or_default();
        assert!(last.contains(told), "{keys}: {last}");
        let refused = events(served.host(), &spawned, Kind::Refused).await;
        assert_eq!(refused.first().and_then(|one| one["rule"].as_str()), Some(rule), "{keys}");
        let lacks = json!(events(served.host(), &spawned, Kind::Server).await).to_string();
        assert!(lacks.contains(prompt), "{keys}: {lacks}");
    };
    let rule = "no tool of this assistant: `s__env` is denied";
    check("disallowedTools: [s__env]", "s__env", "`s__env` is not permitted: `s__env` is denied", rule, "").await;
    let rule = "no tool of this assistant: `Read` is denied";
    check("tools: [s__echo]\ndisallowedTools: [Read]", "read_file", "`Read` is denied", rule, "").await;
    let rule = "no tool of this assistant: the assistant is read-only, and the server does not say that this tool changes \
                nothing";
    check(
        "readonly: true",
        "s__env",
        "is not permitted: the assistant is read-only",
        rule,
        "this assistant is read-only",
    )
    .await;
    let rule = "no tool of this assistant has that name";
    check("tools: [s__echo, s__ecko]", "s__ecko", "there is no tool `s__ecko`", rule, "`s` has no such tool").await;
}

#[tokio::test]
async fn what_is_switched_off_or_unreadable_is_told() {
    for (servers, why) in [
        ("{s: {command: x, disabled: true}}", "switched off"),
        ("{s: {type: stdio}}", "neither a command nor an address"),
        ("{s: {command: a, cmd: b}}", "command twice"),
    ] {
        let served =
            Served::new(&[definition("a", servers)], &[("a", json!([{ "text": "done" }]))], Limits::default()).await;
        let lacks = served.client.spawn("a", "go").await["unavailable_tools"].to_string();
        assert!(lacks.contains("server s") && lacks.contains(why), "{lacks}");
    }
}

#[tokio::test]
async fn trust_that_is_taken_back_counts_at_the_next_start() {
    let steps =
        calls(&[("s__place", json!({})), ("s__wait", json!({ "text": "note" })), ("s__echo", json!({ "text": "a" }))]);
    let served = Served::new(&[definition("a", &server(&["honest"], ""))], &[("a", steps)], Limits::default()).await;
    let spawned = served.client.spawn("a", "go").await;
    until("it waits", || served.servers().len() == 1).await;
    let waits = async { while events(served.host(), &spawned, Kind::Progress).await.is_empty() {} };
    tokio::time::timeout(SOON, waits).await.expect("it waits");
    let (trusted, _) = served.host().trust().all().expect("the book");
    for trust in trusted {
        served.host().trust().remove(&trust.key).expect("forgotten");
    }
    conformance::doors::signal("9", served.servers()[0].into());
    served.client.end(&spawned).await;
    let told = json!(events(served.host(), &spawned, Kind::Server).await).to_string();
    assert!(told.contains("the server `s` is not trusted any more"), "{told}");
    assert!(served.servers().is_empty());
}
