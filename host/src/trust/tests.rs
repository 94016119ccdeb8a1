use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::registry::read_markdown;
use crate::testing::Folder;

fn definition(frontmatter: &str, path: &Path, source: Source) -> Definition {
    let text = format!("---\nname: x\ndescription: It does x.\n{frontmatter}\n---\nYou are x.\n");
    read_markdown(text.as_bytes(), path, source).expect("an assistant")
}

fn of(frontmatter: &str) -> Definition {
    definition(frontmatter, Path::new("/nowhere/x.md"), Source::Project)
}

/// A server that is switched off is nothing to be asked about, and nothing that is missing.
#[test]
fn what_is_switched_off_needs_no_trust() {
    let folder = Folder::new();
    let book = Book::at(Some(folder.path().join("trust")));
    let keys = "mcp:\n  a: {type: local, command: [x], enabled: false}\n  b: {type: local, command: [x]}\nmcpServers: {c: \
                {command: x, disabled: true}}";
    let found = of(keys);
    let ruled = rule(&found, &book);
    let answers: Vec<(&str, &Answer, bool)> =
        ruled.iter().map(|one| (one.wanted.name.as_str(), &one.answer, one.key.is_some())).collect();
    assert_eq!(answers, [("c", &Answer::Off, false), ("a", &Answer::Off, false), ("b", &Answer::Untrusted, true)]);
    let told = told(&found, &ruled).expect("one is missing").message;
    assert!(told.starts_with("it runs without server b: "), "{told}");
    // The servers of opencode's key are used.
    assert!(found.warnings.iter().all(|one| one.code != Code::KeyUnused), "{:?}", found.warnings);
}

/// Whoever has the tools of an agent's own servers does more than look, unless it is the configuration that has the server.
#[test]
fn tools_of_an_agents_own_servers_need_trust() {
    let servers = toml::from_str("orders = { command = 'x' }").expect("servers");
    let configured = Configured::read(&servers, &[]).expect("servers");
    let check = |frontmatter: &str, want: Option<&str>| {
        let own = own_tools(&of(frontmatter), &configured);
        assert_eq!(own.and_then(|own| own.text).as_deref(), want, "{frontmatter}");
    };
    check("tools: [Read, mcp__mail__send]", Some("mcp__mail__send"));
    check("permission: {'mcp__mail__*': allow}", Some("mcp__mail__*"));
    check("tools: ['mcp__*']", Some("mcp__*"));
    check("tools: [Read, mcp__orders__get, mcp__assistants__ask_parent]", None);
    check("tools: [Bash, mcp__orders__get]", Some("Bash, mcp__orders__get"));
}

#[test]
fn what_would_run_is_read_in_every_dialect() {
    let check = |frontmatter: &str, expected: &[&str]| {
        let told = |one: Wanted| {
            let (command, folder) = (one.command.join("|"), one.folder.unwrap_or_default());
            let parts = [&command, &one.url.unwrap_or_default(), &folder, &one.env.join(","), &one.headers.join(",")];
            let parts: Vec<&str> = parts.iter().map(|part| part.as_str()).collect();
            let text = one.text.map(|text| format!(" {text}")).unwrap_or_default();
            format!("{} {}: {}{text}", one.kind, one.name, parts.join("; ").trim_end_matches("; "))
        };
        let got: Vec<String> = wanted(&of(frontmatter)).into_iter().map(told).collect();
        assert_eq!(got, expected, "{frontmatter}");
    };
    check("tools: Read", &[]);
    // A map, in any spelling.
    check(
        "mcp-servers:\n  orders:\n    type: local\n    command: npx\n    args: [-y, 'orders server']\n    env: {KEY: a, TOKEN: b}",
        &["server orders: npx|-y|orders server; ; ; KEY,TOKEN"],
    );
    check(
        "mcpServers: {docs: {type: http, url: 'https://docs.example/mcp', headers: {Authorization: secret}}}",
        &["server docs: ; https://docs.example/mcp; ; ; Authorization"],
    );
    // A list with names within, of maps with one key, and of names only.
    check(
        "mcp_servers:\n  - name: orders\n    command: npx\n    cwd: /srv\n  - bills: {command: [uvx, bills]}\n  - github",
        &["server orders: npx; ; /srv", "server bills: uvx|bills", "server github: "],
    );
    check("mcp_servers: orders, github", &["server orders: ", "server github: "]);
    // A map that is no valid YAML: its lines are no names.
    let unreadable = &["server unreadable:  servers that cannot be read"];
    check("mcpServers:\n  a:\n    command: npx\n    env:\n      K: secret\n      URL: \"x", unreadable);
    check("mcpServers: {a: {headers: {Authorization: Bearer secret: z}}}", unreadable);
    check("mcpServers: {github: , orders: {}}", &["server github: ", "server orders: "]);
    check(
        "mcpServers: {far: 'wss://far.example', orders: npx -y orders}",
        &["server far: ; wss://far.example", "server orders: npx -y orders"],
    );
    // opencode's and those one deeper.
    check(
        "mcp:\n  orders: {type: local, command: [bun, x, orders], environment: {KEY: a}}",
        &["server orders: bun|x|orders; ; ; KEY"],
    );
    check("mcp: {servers: {orders: {command: npx}}}", &["server orders: npx"]);
    check("mcp_config: {orders: {command: npx}}", &["server orders: npx"]);
    check("mcpConfig: {mcpServers: {orders: {command: npx}}}", &["server orders: npx"]);
    check("mcpServers: {command: npx, args: [orders]}", &["server unnamed: npx|orders"]);
    check(
        "mcpServers: {odd: {kind: wasm, module: a.wasm, env: {KEY: secret}}}",
        &[r#"server odd: ; ; ; KEY {"kind":"wasm","module":"a.wasm"}"#],
    );
    check(
        "mcpServers: {c: {url: 'https://c.example', bearer_token_env_var: TOKEN}}",
        &["server c: ; https://c.example; ; TOKEN"],
    );
    // Hooks: by event and matcher, or short.
    check(
        "hooks:\n  PreToolUse:\n    - matcher: Write|Edit\n      hooks:\n        - {type: command, command: 'echo no'}\n  Stop:\n    - hooks: [{type: command, command: ./end.sh}, {prompt: Is it done?, type: prompt}]",
        &[
            "hook PreToolUse(Write|Edit): echo no",
            "hook Stop: ./end.sh",
            r#"hook Stop:  {"prompt":"Is it done?","type":"prompt"}"#,
        ],
    );
    check(
        "hooks: {on_end: [notify-send, done], on_start: ./begin, timeout: 5}",
        &["hook on_end: notify-send|done", "hook on_start: ./begin"],
    );
    check("notify: [notify-send, codex]", &["hook notify: notify-send|codex"]);
    // A goose recipe: what is built in names nothing that could run.
    check(
        "extensions:\n  - {type: builtin, name: developer}\n  - {type: stdio, name: orders, cmd: uvx, args: [orders], env_keys: [KEY], envs: {A: b}}\n  - {type: sse, name: far, uri: 'https://far.example'}\n  - {type: inline_python, name: calc, code: 'import os'}",
        &["server orders: uvx|orders; ; ; KEY,A", "server far: ; https://far.example", "server calc: import os"],
    );
    check(
        "retry:\n  max_retries: 3\n  checks: [{type: shell, command: test -f out}]\n  on_failure: rm -f out",
        &["check retry: test -f out", "check on_failure: rm -f out"],
    );
}

#[test]
fn nothing_of_a_command_is_hidden() {
    let check = |text: &str, expected: &str| assert_eq!(shown(text), expected);
    check("npx -y 'a'  \"b\" c:\\d é 发", "npx -y 'a'  \"b\" c:\\d é 发");
    check(&format!("ls{}; rm -rf ~", " ".repeat(200)), "ls[200 blanks]; rm -rf ~");
    check("ls\r\n\u{1b}[2Jrm\t", "ls\\r\\n\\u{1b}[2Jrm\\t");
    check("\u{202e}a\u{200b}b\u{a0}c", "\\u{202e}a\\u{200b}b\\u{a0}c");
}

const SERVER: &str = "mcpServers: {orders: {command: npx, args: [-y, orders], env: {KEY: one}}}";

/// What becomes of trust in [`SERVER`] where the file is another one.
#[test]
fn trust_is_in_what_runs_and_where_it_stands() {
    let folder = Folder::new();
    let book = Book::at(Some(folder.path().join("trust")));
    for name in ["a/x.md", "b/x.md"] {
        folder.write(name, "");
    }
    let path = folder.path().join("a/x.md");
    let first = definition(SERVER, &path, Source::Project);
    let asked = rule(&first, &book).remove(0);
    assert_eq!(asked.answer, Answer::Untrusted);
    let trust = Trust::new(&first, &asked, "me", 7).expect("it needs trust");
    book.add(std::slice::from_ref(&trust)).expect("remembered");
    let check = |definition: &Definition, expected: &[bool]| {
        let got: Vec<bool> = rule(definition, &book).iter().map(|one| one.answer.allows()).collect();
        assert_eq!(got, expected, "{definition:?}");
    };
    check(&first, &[true]);
    assert_eq!(rule(&first, &book)[0].answer, Answer::Trusted(trust.clone()));
    // Another prompt, another description, another way to the same file.
    check(&Definition { system_prompt: "Do otherwise.".into(), description: String::new(), ..first.clone() }, &[true]);
    check(&definition(SERVER, &folder.path().join("b/../a/x.md"), Source::Project), &[true]);
    for (old, new) in [
        ("npx", "sh"),
        ("[-y, orders]", "[-y, orders, --all]"),
        ("KEY: one", "KEY: two"),
        ("KEY: one", "KEY: one, PATH: here"),
        ("KEY: one}", "KEY: one}, cwd: /"),
    ] {
        assert!(SERVER.contains(old));
        check(&definition(&SERVER.replace(old, new), &path, Source::Project), &[false]);
    }
    check(&definition(&SERVER.replace("orders:", "bills:"), &path, Source::Project), &[false]);
    // One more is asked; what was trusted stays.
    check(&definition(&format!("{SERVER}\nhooks: {{Stop: rm -rf /}}"), &path, Source::Project), &[true, false]);
    check(&definition(SERVER, &folder.path().join("b/x.md"), Source::Project), &[false]);
    // Whose word it is.
    let elsewhere = |source, path: Option<&str>| Definition { source, path: path.map(Into::into), ..of(SERVER) };
    check(&elsewhere(Source::Dir, Some("/d/x.md")), &[false]);
    check(&elsewhere(Source::User, Some("/home/x.md")), &[true]);
    check(&elsewhere(Source::Database, None), &[true]);
    check(&elsewhere(Source::Database, Some("/import/x.md")), &[false]);
    assert!(told(&first, &rule(&first, &book)).is_none());
    assert!(book.remove(&trust.key).expect("forgotten") && !book.remove(&trust.key).expect("it was"));
    check(&first, &[false]);
    let warning = told(&first, &rule(&first, &book)).expect("told");
    assert_eq!((warning.code, warning.file), (Code::UntrustedCommand, path.display().to_string()));
}

#[test]
fn what_cannot_be_read_is_not_trusted() {
    let folder = Folder::new();
    folder.write("x.md", "");
    let book = Book::at(Some(folder.path().join("trust")));
    let definition = definition(SERVER, &folder.path().join("x.md"), Source::Project);
    let asked = rule(&definition, &book).remove(0);
    let trust = Trust::new(&definition, &asked, "me", 7).expect("it needs trust");
    let file = folder.path().join("trust").join(format!("{}.json", trust.key));
    let put = || book.add(std::slice::from_ref(&trust)).expect("remembered");
    put();
    let whole = std::fs::read_to_string(&file).expect("a file");
    let check = |text: &str| {
        std::fs::write(&file, text).expect("written");
        let answer = rule(&definition, &book).remove(0).answer;
        assert!(matches!(&answer, Answer::Unreadable(why) if why.contains("damaged")), "{text:?}: {answer:?}");
        let (found, bad) = book.all().expect("a folder");
        assert_eq!((found.len(), bad.len()), (0, 1));
    };
    check("");
    check(&whole[..whole.len() / 2]);
    check(&whole.replace(&trust.key, &"0".repeat(64)));
    check(&whole.replace("\"version\": 1", "\"version\": 2"));
    check(&" ".repeat(RECORD_BYTES_MAX as usize + 1));
    put();
    assert_eq!(book.all().expect("a folder").0, vec![trust.clone()]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let set = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode));
        let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(&folder.path().join("trust"))), (0o600, 0o700));
        for path in [file.clone(), folder.path().join("trust")] {
            let was = mode(&path);
            set(&path, 0o777).expect("set");
            assert!(matches!(book.find(&trust.key), Err(Unusable::Open(_))));
            set(&path, was).expect("set");
        }
    }
    assert_eq!(Book::default().find(&trust.key).expect("nothing"), None);
    assert!(matches!(Book::default().add(std::slice::from_ref(&trust)), Err(Unusable::NoPlace)));
}

/// Values as a file may have them below the keys that are looked at.
fn values() -> impl Strategy<Value = Value> {
    let text =
        prop_oneof![".*", Just("npx".to_owned()), Just("\u{1b}[2J\r\n".to_owned()), Just("https://x".to_owned())];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        text.prop_map(Value::from)
    ];
    let key = prop::sample::select(vec![
        "command", "args", "url", "env", "hooks", "matcher", "name", "servers", "checks", "type", "",
    ]);
    leaf.prop_recursive(5, 40, 5, move |inner| {
        let map = prop::collection::btree_map(key.clone().prop_map(str::to_owned), inner.clone(), 0..5);
        prop_oneof![
            prop::collection::vec(inner, 0..5).prop_map(Value::from),
            map.prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever stands there is asked for in words that a terminal can show, and each thing by a key of its own.
    #[test]
    fn any_value_is_asked_for(value in values()) {
        for key in ["mcp", "hooks", "extensions", "retry"] {
            let mut definition = of("tools: Read");
            definition.extra.insert(key.to_owned(), value.clone());
            let all = wanted(&definition);
            let mut keys: Vec<String> = all.iter().map(|one| one.key(Path::new("/x.md"))).collect();
            keys.sort();
            keys.dedup();
            let distinct = all.iter().map(|one| json!([one.kind, one.name, one.written]).to_string());
            prop_assert_eq!(keys.len(), distinct.collect::<std::collections::BTreeSet<_>>().len());
            for one in &all {
                let texts = one.command.iter().chain(&one.url).chain(&one.text).chain(&one.env).chain([&one.name]);
                for text in texts {
                    prop_assert!(!shown(text).chars().any(char::is_control));
                }
            }
        }
    }
}
