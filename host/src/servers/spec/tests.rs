//! Every form in which documents and systems write a server.

use serde_json::{Value, json};

use super::*;
use crate::registry::{Source, read_markdown};
use crate::trust::wanted;

/// The servers of a definition with this frontmatter.
fn read(frontmatter: &str) -> Vec<Spec> {
    let text = format!("---\nname: x\ndescription: y\n{frontmatter}\n---\nz\n");
    let definition = read_markdown(text.as_bytes(), std::path::Path::new("x.md"), Source::Dir).expect("an assistant");
    wanted(&definition).iter().map(Spec::of).collect()
}

/// A server in short: name, command or address, arguments, variables or headers, folder.
fn short(spec: &Spec) -> Value {
    match &spec.how {
        How::Program { command, args, env, folder } => json!([spec.name, command, args, env, folder]),
        How::Http { url, headers, sse } => json!([spec.name, url, headers, sse]),
        How::Named => json!([spec.name]),
        How::Off => json!([spec.name, false]),
        How::Unusable(why) => json!([spec.name, null, why]),
    }
}

fn check(frontmatter: &str, want: &Value) {
    let found: Value = read(frontmatter).iter().map(short).collect();
    assert_eq!(&found, want, "{frontmatter}");
}

#[test]
fn every_form_is_read() {
    let s = json!(["s", "c", ["a", "b c"], { "K": "v" }, null]);
    // Document 000 to 003, Claude, Cursor, Copilot: maps by name, and lists with names.
    check("mcp_servers:\n  s: {command: c, args: [a, b c], env: {K: v}}", &json!([s]));
    check("mcpServers:\n  - {name: s, command: c, args: [a, b c], env: [K=v]}", &json!([s]));
    check("mcp-servers:\n  - s: {type: stdio, command: c, args: \"a 'b c'\", env: {K: v}}", &json!([s]));
    check("mcp-servers:\n  servers:\n    s: {type: local, command: c, args: [a, b c], env: {K: v}}", &json!([s]));
    // opencode: one list, `environment`, `type: local`.
    check("mcp:\n  s: {type: local, command: [c, a, b c], environment: {K: v}, enabled: true}", &json!([s]));
    // goose: extensions with `cmd` and `envs`; what is built into it is none here.
    check(
        "extensions:\n  - {type: stdio, name: s, cmd: c, args: [a, b c], envs: {K: v}, timeout: 300}\n  - {type: builtin, name: developer}",
        &json!([s]),
    );
    check("extensions: [{type: sse, name: s, uri: 'https://s/sse'}]", &json!([["s", "https://s/sse", {}, true]]));
    // Addresses.
    let h = json!(["s", "https://s/mcp", { "Authorization": "Bearer ${T}" }, false]);
    check("mcpServers: {s: {type: http, url: 'https://s/mcp', headers: {Authorization: 'Bearer ${T}'}}}", &json!([h]));
    check("mcpServers: {s: {httpUrl: 'https://s/mcp', bearer_token_env_var: T}}", &json!([h]));
    check(
        "mcpServers: {s: {type: streamable_http, uri: 'https://s/mcp', headers: ['Authorization: Bearer ${T}']}}",
        &json!([h]),
    );
    check(
        "mcpServers: {s: {url: 'https://s/mcp', env_http_headers: {Authorization: T}}}",
        &json!([
            ["s", "https://s/mcp", { "Authorization": "${T}" }, false]
        ]),
    );
    check("mcpServers: {s: 'https://s/mcp'}", &json!([["s", "https://s/mcp", {}, false]]));
    check("mcpServers: ['https://s/mcp']", &json!([["https://s/mcp", "https://s/mcp", {}, false]]));
    // Texts and lists for a command; variables by their names.
    check("mcpServers: {s: npx -y 'a server'}", &json!([["s", "npx", ["-y", "a server"], {}, null]]));
    check("mcpServers: {s: [npx, -y, a server]}", &json!([["s", "npx", ["-y", "a server"], {}, null]]));
    check("mcpServers: {s: {command: 'npx -y x'}}", &json!([["s", "npx", ["-y", "x"], {}, null]]));
    check(
        "mcpServers: {s: {command: 'My Program', args: [], cwd: d, env_vars: [K]}}",
        &json!([
            ["s", "My Program", [], { "K": "${K}" }, "d"]
        ]),
    );
    // Names only.
    check("mcpServers: a, b", &json!([["a"], ["b"]]));
    check("mcpServers: [a, {b: null}, {name: c}]", &json!([["a"], ["b"], ["c"]]));
    check("mcpServers: {a: {}, b: true, c: {tools: [x]}}", &json!([["a"], ["b"], ["c"]]));
    // Switched off.
    check(
        "mcpServers: {a: {command: c, disabled: true}, b: {command: c, enabled: false}, c: false}",
        &json!([["a", false], ["b", false], ["c", false]]),
    );
}

#[test]
fn what_cannot_be_started_says_why() {
    let check = |frontmatter: &str, part: &str| {
        let found: Vec<Value> = read(frontmatter).iter().map(short).collect();
        let why = found.first().and_then(|one| one[2].as_str()).unwrap_or_default();
        assert!(found.len() == 1 && found[0][1].is_null() && why.contains(part), "{frontmatter}: {found:?}");
    };
    check("mcpServers: {s: {command: a, cmd: b}}", "command twice");
    check("mcpServers: {s: {url: 'https://a', endpoint: 'https://b'}}", "address twice");
    check("mcpServers: {s: {command: a, url: 'https://b'}}", "both");
    check("mcpServers: {s: {command: a, envFile: .env}}", "file of variables");
    check("mcpServers: {s: {type: stdio}}", "neither");
    check("mcpServers: {s: {command: ''}}", "empty");
    check("mcpServers: {s: {command: \"a 'b\"}}", "quote without an end");
    check("extensions: [{type: inline_python, name: s, code: 'print(1)'}]", "part of another program");
    check("mcpServers: \"s: {command: c\"", "cannot be read");
}

#[test]
fn times_tools_and_sharing_are_read() {
    let read = |keys: &str| read(&format!("mcpServers: {{s: {{command: c, {keys}}}}}")).remove(0);
    assert_eq!(read("timeout: 300").timeout_ms, Some(300_000));
    assert_eq!(read("timeout: 5000").timeout_ms, Some(5_000));
    assert_eq!(read("timeout: 0").timeout_ms, None);
    assert_eq!(read("tool_timeout_sec: 7.5, startup_timeout_sec: 20").start_ms, Some(20_000));
    assert_eq!(read("timeoutMs: 10").timeout_ms, Some(10));
    assert_eq!(
        (read("shared: false").shared, read("perProcess: true").shared, read("x: y").shared),
        (false, false, true)
    );
    assert_eq!(read("tools: ['*']").only, Some(vec!["*".to_owned()]));
    assert_eq!(read("includeTools: [a], excludeTools: [b]").without, ["b"]);
}
