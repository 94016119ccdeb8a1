//! What becomes of clients' files, whole texts compared; and where those files are.

use super::clients::{CLIENTS, Client, Platform};
use super::edit::{Change, edit};

/// Puts our entry, of a program in /opt, into the text of a client's file.
fn put(client: &str, text: &str) -> Result<(String, Change), String> {
    let client = Client::find(client).expect("a client");
    let args = ["mcp".to_owned(), "--state".to_owned(), "/s".to_owned()];
    let fields = client.fields("assistants", "/opt/assistant-host", &args);
    let edited = edit(client.format, text, client.under, "assistants", &fields)?;
    Ok((edited.text, edited.change))
}

/// The file of a client that has our entry and nothing else.
fn alone(client: &str) -> String {
    let entry = r#""command": "/opt/assistant-host",
      "args": ["mcp", "--state", "/s"]"#;
    let json = |under: &str, entry: &str| {
        format!("{{\n  \"{under}\": {{\n    \"assistants\": {{\n      {entry}\n    }}\n  }}\n}}\n")
    };
    match client {
        "claude-code" => json("mcpServers", &format!("\"type\": \"stdio\",\n      {entry}")),
        "claude-desktop" | "cursor" | "gemini" => json("mcpServers", entry),
        "codex" => {
            "[mcp_servers.assistants]\ncommand = \"/opt/assistant-host\"\nargs = [\"mcp\", \"--state\", \"/s\"]\n"
                .into()
        }
        "goose" => GOOSE.into(),
        "opencode" => json(
            "mcp",
            "\"type\": \"local\",\n      \"command\": [\"/opt/assistant-host\", \"mcp\", \"--state\", \"/s\"]",
        ),
        "vscode" => json("servers", &format!("\"type\": \"stdio\",\n      {entry}")),
        "zed" => json("context_servers", entry),
        other => panic!("what does the file of {other} look like?"),
    }
}

const GOOSE: &str = r#"extensions:
  assistants:
    name: assistants
    type: stdio
    enabled: true
    cmd: /opt/assistant-host
    args: [mcp, "--state", /s]
"#;

#[test]
fn every_client_has_its_entry() {
    for Client { name, .. } in CLIENTS {
        let alone = alone(name);
        let check = |before: &str, change| assert_eq!(put(name, before), Ok((alone.clone(), change)), "{name}");
        check("", Change::Added);
        check(&alone, Change::Unchanged);
        // The program has moved, or was called otherwise then.
        check(&alone.replace("/opt/", "/usr/old/"), Change::Updated);
        check(&alone.replace("/opt/assistant-host", "C:/bin/assistant-host.exe"), Change::Updated);
        let refused = |before: &str, why: &str| {
            let error = put(name, before).expect_err("refused");
            assert!(error.contains(why), "{name}: {error}");
        };
        refused(&alone.replace("assistant-host", "other"), "an entry `assistants` of another program");
        refused("{ \"mcpServers\": { \"a\": ", "is no ");
        refused(&alone.replacen(['{', '[', ':'], "", 1), "is no ");
    }
}

/// Whole texts, before and after.
#[track_caller]
fn check(client: &str, before: &str, after: &str) {
    let change = if before.contains("assistant-host") { Change::Updated } else { Change::Added };
    assert_eq!(put(client, before), Ok((after.to_owned(), change)));
    assert_eq!(put(client, after), Ok((after.to_owned(), Change::Unchanged)), "a second time");
}

#[test]
fn json_keeps_comments_and_layout() {
    check(
        "cursor",
        r#"{
  // mine
  "mcpServers": {
    "a": { "command": "x" }, // keep
  },
}
"#,
        r#"{
  // mine
  "mcpServers": {
    "a": { "command": "x" }, // keep
    "assistants": {
      "command": "/opt/assistant-host",
      "args": ["mcp", "--state", "/s"],
    },
  },
}
"#,
    );
    check(
        "zed",
        "// Zed\n{\n    \"theme\": \"One\", /* a */\n    \"vim_mode\": true\n}\n",
        r#"// Zed
{
    "theme": "One", /* a */
    "vim_mode": true,
    "context_servers": {
        "assistants": {
            "command": "/opt/assistant-host",
            "args": ["mcp", "--state", "/s"]
        }
    }
}
"#,
    );
    check(
        "opencode",
        "{\n\t\"mcp\": {\n\t\t\"a\": {\n\t\t\t\"type\": \"local\"\n\t\t}\n\t}\n}",
        "{\n\t\"mcp\": {\n\t\t\"a\": {\n\t\t\t\"type\": \"local\"\n\t\t},\n\t\t\"assistants\": {\n\t\t\t\"type\": \"local\",\n\t\t\t\
         \"command\": [\"/opt/assistant-host\", \"mcp\", \"--state\", \"/s\"]\n\t\t}\n\t}\n}",
    );
    check("gemini", "// nothing yet\n", &format!("// nothing yet\n{}", alone("gemini")));
    check("gemini", "{}\n", &alone("gemini"));
    check("gemini", "\u{feff}{}\n", &format!("\u{feff}{}", alone("gemini")));
    let windows = |text: &str| text.replace('\n', "\r\n");
    check("gemini", "{\r\n}\r\n", &windows(&alone("gemini")));
    // What others have put into our entry stays.
    check(
        "claude-code",
        r#"{"a":1.50,"mcpServers":{"assistants":{"command":"/old/assistant-host","args":["mcp"],"env":{"A":"\u00e9"}}}}"#,
        r#"{"a":1.50,"mcpServers":{"assistants":{
      "command":"/opt/assistant-host",
      "args":["mcp", "--state", "/s"],
      "env":{"A":"\u00e9"},
      "type": "stdio"
    }}}"#,
    );
}

#[test]
fn toml_keeps_comments_and_layout() {
    check(
        "codex",
        r#"# mine
model = "gpt-5" # big

[mcp_servers.a]
command = "x"

[profiles.p]
model = "m"
"#,
        r#"# mine
model = "gpt-5" # big

[mcp_servers.a]
command = "x"

[mcp_servers.assistants]
command = "/opt/assistant-host"
args = ["mcp", "--state", "/s"]

[profiles.p]
model = "m"
"#,
    );
    check(
        "codex",
        r#"[mcp_servers.assistants]
# old
command = "/old/assistant-host" # here
args = ["mcp"]
startup_timeout_sec = 20

[tools]
x = 1979-05-27
"#,
        r#"[mcp_servers.assistants]
# old
command = "/opt/assistant-host" # here
args = ["mcp", "--state", "/s"]
startup_timeout_sec = 20

[tools]
x = 1979-05-27
"#,
    );
    check(
        "codex",
        "mcp_servers = { a = { command = \"x\" } }\n",
        "mcp_servers = { a = { command = \"x\" } , assistants = { command = \"/opt/assistant-host\", \
         args = [\"mcp\", \"--state\", \"/s\"] } }\n",
    );
}

#[test]
fn yaml_keeps_comments_and_layout() {
    let entry = GOOSE.strip_prefix("extensions:\n").expect("the key");
    check(
        "goose",
        "# mine\nMODEL: m\nextensions: # all\n  developer:\n    enabled: true # yes\n    name: |\n      assistants:\n        cmd: x\n\n# other\nfoo: |\n  extensions:\n",
        &format!(
            "# mine\nMODEL: m\nextensions: # all\n  developer:\n    enabled: true # yes\n    name: |\n      assistants:\n        cmd: x\n{entry}\n# other\nfoo: |\n  extensions:\n"
        ),
    );
    check("goose", "extensions: {}\nMODEL: m\n", &format!("{GOOSE}MODEL: m\n"));
    check("goose", "extensions:\nMODEL: m\n", &format!("{GOOSE}MODEL: m\n"));
    check("goose", "MODEL: m", &format!("MODEL: m\n{GOOSE}"));
    check("goose", "MODEL: m\r\n", &format!("MODEL: m\n{GOOSE}").replace('\n', "\r\n"));
    check(
        "goose",
        r#"extensions:
    "assistants":
        enabled: true
        cmd: /old/assistant-host
        name: assistants
        args:
        - mcp
        # long
        timeout: 300
    b:
        type: builtin
"#,
        r#"extensions:
    "assistants":
        enabled: true
        cmd: /opt/assistant-host
        name: assistants
        args: [mcp, "--state", /s]
        # long
        timeout: 300
        type: stdio
    b:
        type: builtin
"#,
    );
}

#[test]
fn what_cannot_be_kept_is_refused() {
    for (client, text, why) in [
        ("goose", "extensions: { a: { type: builtin } }\n", "add the entry by hand"),
        ("goose", "extensions: &all\n  a: {}\nb: *all\n", "add the entry by hand"),
        ("goose", "extensions: 5\n", "something else than servers in `extensions`"),
        ("goose", "- a\n", "no table of settings at its top"),
        ("cursor", "{ \"mcpServers\": [] }", "something else than servers in `mcpServers`"),
        ("cursor", "[]", "no table of settings at its top"),
        ("cursor", "{ 'a': 1 }", "is no JSON"),
        ("codex", "mcp_servers = 5\n", "something else than servers in `mcp_servers`"),
    ] {
        let error = put(client, text).expect_err("refused");
        assert!(error.contains(why), "{client}: {error}");
    }
}

#[test]
fn files_are_where_the_clients_look() {
    let files = |platform, variables: &[(&str, &str)]| {
        let env = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        let file = |client: &Client| client.user_file(platform, &env).map(|file| file.display().to_string());
        CLIENTS.iter().map(|client| file(client).unwrap_or_default().replace('\\', "/")).collect::<Vec<_>>()
    };
    let linux = [
        "/h/.claude.json",
        "/h/.config/Claude/claude_desktop_config.json",
        "/h/.codex/config.toml",
        "/h/.cursor/mcp.json",
        "/h/.gemini/settings.json",
        "/h/.config/goose/config.yaml",
        "/h/.config/opencode/opencode.json",
        "/h/.config/Code/User/mcp.json",
        "/h/.config/zed/settings.json",
    ];
    assert_eq!(files(Platform::Linux, &[("HOME", "/h")]), linux);
    assert_eq!(files(Platform::Linux, &[("HOME", "/h"), ("XDG_CONFIG_HOME", "/h/.config"), ("APPDATA", "/a")]), linux);
    let mut macos = linux;
    macos[1] = "/h/Library/Application Support/Claude/claude_desktop_config.json";
    macos[7] = "/h/Library/Application Support/Code/User/mcp.json";
    assert_eq!(files(Platform::MacOs, &[("HOME", "/h")]), macos);
    let mut windows = linux;
    windows[1] = "/a/Claude/claude_desktop_config.json";
    windows[5] = "/a/Block/goose/config/config.yaml";
    windows[7] = "/a/Code/User/mcp.json";
    windows[8] = "/a/Zed/settings.json";
    assert_eq!(files(Platform::Windows, &[("USERPROFILE", "/h"), ("APPDATA", "/a")]), windows);
    let moved =
        [("CLAUDE_CONFIG_DIR", "/c"), ("CODEX_HOME", "/x"), ("GEMINI_CLI_HOME", "/g"), ("GOOSE_PATH_ROOT", "/o")];
    let mut without = [""; 9];
    (without[0], without[2]) = ("/c/.claude.json", "/x/config.toml");
    (without[4], without[5]) = ("/g/.gemini/settings.json", "/o/config/config.yaml");
    assert_eq!(files(Platform::Linux, &moved), without);
}
