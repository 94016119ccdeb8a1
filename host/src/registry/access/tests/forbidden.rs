//! Ways to a tool, a caller or a spawn that the author of a file forbade, in every dialect. None leads there.

use super::*;

/// Compares all of `cases`: text and what is told of it.
fn check(path: &str, around: (&str, &str), cases: &[(&str, &str)]) {
    let told = |text: &str| told_of(path, &format!("{}{text}{}", around.0, around.1));
    let wrong: Vec<_> =
        cases.iter().map(|(text, right)| (*text, told(text), *right)).filter(|one| one.1 != one.2).collect();
    assert!(wrong.is_empty(), "{path}: {wrong:#?}");
}

const MARKDOWN: (&str, &str) = ("---\nname: n\ndescription: d\n", "\n---\nGo.\n");

#[test]
fn keys_of_markdown() {
    check(
        "n.md",
        MARKDOWN,
        &[
            // Each key that is lost counts, not the first of a line.
            (
                "{tools: [], allowed_callers: [], agents: []}",
                "[] by [] spawns [] access_closed@4 access_closed@4 access_closed@4",
            ),
            ("model: a: b, readonly: true, tools: [Read]", "[] readonly access_closed@4 access_closed@4"),
            // One that is lost besides one that is read.
            ("tools: [Read]\nmodel: \"a\ntools: []\nmore\"", "[] access_closed@6"),
            ("tools: [Read]\nmodel: a: b\n  tools: []", "[] access_closed@6"),
            // Signs before and around a key.
            ("&a tools: []", "[] access_closed@4"),
            ("!only tools: []", "[] access_closed@4"),
            ("- tools: []", "[] access_closed@4"),
            ("model: a: b\n? tools: x", "[] access_closed@5"),
            ("? tools\n: []", "[]"),
            ("'tools' : []", "[]"),
            ("tools:[]", "[] access_closed@4"),
            ("tools：[]", "[] access_closed@4"),
            ("\ttools: []", "[] access_closed@4"),
            ("\u{feff}tools: []", "[] access_closed@4"),
            ("to\u{200b}ols: []", "[]"),
            ("\u{a0}\u{a0}tools: []", "[]"),
            ("ALLOWED CALLERS: []", "- by []"),
            ("Allowed\u{2003}Callers: []", "- by []"),
            // What is no comment for whoever reads it; a comment is none of them.
            ("# tools: Read, Grep", "-"),
            ("  # disallowedTools: Read, agents: none", "-"),
            ("model: a: b\n# tools: [], readonly: true", "-"),
            ("# x\u{2028}tools: [] : z", "[] access_closed@4"),
            // Rules that stand beside their key.
            ("tools:\nread: true\nwrite: false", "[] access_closed@4"),
            ("tools:\n\"*\": false", "[] access_closed@4"),
            ("permission:\nread: deny", "[] access_closed@4"),
            ("disallowedTools:\nread: true", "[] access_closed@4"),
            ("permission:\n\nread: deny", "[] access_closed@4"),
            ("tools:\n# only\nread: true", "[] access_closed@4"),
            ("tools:\nagent: true\nread: true", "[] access_closed@4"),
            ("disallowedTools:\nproactive: true", "-"),
            ("tools:\ncolor: yes", "-"),
            ("tools:\nnote: it is so", "-"),
            // A key without its sign.
            ("tools Read", "[] access_closed@4"),
            ("tools Read, LS", "[] access_closed@4"),
            ("tools; Read", "[] access_closed@4"),
            ("tools -> Read", "[] access_closed@4"),
            ("disallowedTools Read", "[] access_closed@4"),
            ("readonly", "- readonly access_closed@4"),
            ("model: a: b\ntools are what it may use", "-"),
            // Bullets of prose.
            ("tools: >\n  * Read\n  * LS", "[Read LS]"),
            ("allowed_callers: >-\n  * a\n  * b", "- by [a b]"),
            ("allowed_callers:\n  * main", "- by [main]"),
            ("tools:\n  * Read\n  * LS", "[Read LS]"),
            ("tools:\n  • Read", "[Read] access_closed@5"),
            // Tabs, anchors, tags and merges.
            ("disallowedTools:\n\t- Read", "- not Read"),
            ("tools:\n\tread: true\n\tls: false", "[] access_closed@4"),
            ("permission:\n\tread: deny", "[] access_closed@4"),
            ("allowed_callers:\n\t- x", "- by [x]"),
            ("agents: &a [b]\nallowed_callers: *a", "- by [b] spawns [b]"),
            ("tools: ['*', !Read ]", "[*] not Read"),
            ("permission: &p {read: deny}\nx: {y: *p}", "- not read"),
            ("x: &x {read: deny}\npermission: {<<: *x, list: deny}", "- not read list"),
            ("x: &x {read: false}\ntools: {<<: *x}", "- not read"),
            ("y: &y {tools: []}\nx: &x {<<: *y}\n<<: *x", "[]"),
            ("<<: {tools: []}\n<<: {tools: [Read]}", "[]"),
            ("permission: {<<: deny}", "[] access_closed@4"),
        ],
    );
}

#[test]
fn names_of_markdown() {
    check(
        "n.md",
        MARKDOWN,
        &[
            ("tools: ['*', '!Read']", "[*] not Read"),
            ("tools: '*, -Read'", "[*] not Read"),
            ("tools: ['!Read']", "- not Read"),
            ("tools: all except Read", "[] access_closed@4"),
            ("tools: 'all, except Read'", "[] access_closed@4"),
            ("permissions: {allow: ['!Read']}", "[] not Read"),
            ("allowed-tools: {read: true, ls: false}", "[read] not ls"),
            ("disallowedTools: ['~']", "[] access_closed@4"),
            ("disallowedTools: '.*'", "- not .*"),
            ("disallowedTools: [LS]\nRead", "[] not LS access_closed@4"),
            ("allowed_callers: []\nx", "- by [] access_closed@4"),
            ("tools: []\nRead", "[] access_closed@4"),
            (
                "callers: [x]\nno-tools: [Read]\nsubagents: []",
                "- not Read by [x] spawns [] key_misspelt@4 key_misspelt@5 key_misspelt@6",
            ),
            ("sandbox: read-only", "- readonly key_misspelt@4"),
            ("allowed_callers: '*'", "- by [*]"),
            ("allowed_callers: [all, x]", "- by [all x]"),
            ("allowed_callers: ['*', '!b']", "- by [] access_closed@4"),
            ("allowed_callers: {'*': true, b: false}", "- by [] access_closed@4"),
            ("allowed_callers: [a, '!b']", "- by [a]"),
            ("allowed_callers: not b", "- by [] access_closed@4"),
            ("allowed_callers: all but b", "- by [] access_closed@4"),
            ("allowed_callers: none", "- by [none]"),
            ("allowed_callers: false", "- by [false]"),
            ("allowed_callers: [all, '!x']", "- by [] access_closed@4"),
            ("allowed_callers: '*'\nallowed_callers: [a]", "- by [a] duplicate_key@5"),
            ("infer: false\nallowed_callers: All", "- by [main]"),
            ("agents: ['*', '!b']", "- spawns [] access_closed@4"),
            ("agents: {'*': true, b: no}", "- spawns [] access_closed@4"),
            ("agents: none", "- spawns [none]"),
            ("agents: '*'", "-"),
            ("tools: Agent(!b)", "[Agent(!b)] spawns [] access_closed@4"),
            ("tools: Agent(*, !b)", "[Agent(*, !b)] spawns [] access_closed@4"),
            ("tools: Agent(a, -b)", "[Agent(a, -b)] spawns [a]"),
        ],
    );
    let many = |key: &str, name: &str| {
        let names: String = (0..300).map(|n| format!("{name}{n}, ")).collect();
        told(&format!("{key}{names}{}", &"]}"[..key.matches(['[', '{']).count()]))
    };
    for key in ["disallowedTools: [", "disallowedTools: ", "permissions: {deny: ", "permissions: {ask: "] {
        let told = if key.contains('{') {
            told(&format!("{key}[{}]}}", (0..300).map(|n| format!("t{n},")).collect::<String>()))
        } else {
            many(key, "t")
        };
        let asked = if key.contains("ask") { "[] ask t0 " } else { "[] not t0 " };
        assert!(told.starts_with(asked) && told.contains("access_closed"), "{key}: {told}");
    }
    // Past the bound, whatever is taken back behind it.
    let rules: String = (0..300).map(|n| format!("t{n}: deny, ")).collect();
    let allows: String = (0..100).map(|n| format!("t{n}: allow, ")).collect();
    let told = told(&format!("permission: {{{rules}{allows}}}"));
    assert!(told.starts_with("[] not t0 ") && told.contains("access_closed"), "{told}");
}

#[test]
fn rules_of_markdown() {
    check(
        "n.md",
        MARKDOWN,
        &[
            ("permission: {read: {'src/*': allow}}", "- rules read(src/*): allow"),
            (
                "permission: {read: {'src/*': allow, 'docs/*': allow}}",
                "- rules read(src/*): allow, read(docs/*): allow",
            ),
            ("permission: {grep: {'src/*': allow}}", "- not grep access_narrowed@4"),
            ("permission: {bash: {'*': ask, 'git *': allow}}", "- rules bash(*): ask, bash(git *): allow"),
            ("permission: {bash: {'rm *': deny}}", "- rules bash: allow, bash(rm *): deny"),
            ("permission: {'*': ask, bash: {'rm *': deny}}", "- rules bash: allow, *: ask, bash(rm *): deny"),
            ("permission: {bash: {'rm *': deny}}\ntools: [bash]", "[bash] rules bash(rm *): deny"),
            ("permission: {bash: {'rm *': deny}}\npermissionRules: ['ls: ask']", "- rules bash(rm *): deny, ls: ask"),
            ("permission: {'*': deny, bash: {'rm *': deny}}", "[] rules bash(rm *): deny"),
            ("permission: {'*': deny, bash: {'git *': allow}}", "[bash] rules bash(git *): allow"),
            (
                "permission: {'*': ask, read: allow, edit: deny}",
                "- not edit write patch multiedit write_file rules *: ask, read: allow",
            ),
            ("permission: ask", "- rules *: ask"),
            ("permissionRules: ['bash(git *): allow', 'bash: ask']", "- rules bash(git *): allow, bash: ask"),
            ("permissionRules: {bash: allow}", "[] access_closed@4"),
            ("permissionRules: [perhaps]", "[] access_closed@4"),
            ("askTools: [Bash, 'Read(.env)']", "- ask Bash Read(.env)"),
            ("askTools: true", "[] ask true access_closed@4"),
            ("permission: {read: {'*': allow, 'docs/*': allow}}", "- rules read: allow"),
            ("tools: {read: {'src/*': allow}}", "[] not read access_closed@4"),
            ("permission: {read: deny, read: allow}", "- not read"),
            ("permission: {'*': deny, '*': allow}", "[]"),
            ("permission: {'*': deny, '*': allow, read: allow}", "[read]"),
            ("permission: {read: allow, '*': deny}", "[]"),
            ("permission: {'**': deny, read: allow}", "[read]"),
            ("permission: {edit: deny, write: allow}", "- not edit write patch multiedit write_file"),
            ("permission: {Edit: deny}", "- not Edit write patch multiedit write_file"),
            ("permission: {'*': deny, 'Agent(a)': allow}", "[Agent(a)] spawns [a]"),
            // Parts in other spellings and words.
            ("permissions: {Deny: [Read]}", "- not Read"),
            ("permissions: {denied: [Read]}", "- not Read"),
            ("permissions: {disallowed_tools: Read}", "- not Read"),
            ("permissions: {DENY: true}", "[] not true access_closed@4"),
            ("permissions: {default_mode: plan}", "- readonly"),
            ("permissions: {mode: plan}", "- readonly"),
            ("permissions: {Allow: [LS], Ask: [Read]}", "[LS Read] ask Read"),
            ("permissions: {ask: {read: true}}", "- ask read"),
            ("permissions: {ask: {read: deny}}", "- not read"),
            ("permissions: {tools: {read: deny}}", "[] not read"),
            ("permissions: {permissions: {read: deny}}", "- not read"),
            ("permissions: {allow: {read: deny}}", "[] not read"),
            ("permissions: {blocked: [Read]}", "- not Read"),
            ("permissions: {forbid: [Read]}", "- not Read"),
            ("permissions: {permitted: [Read]}", "[Read]"),
            // Tools with names that are such words.
            ("permission: {block: deny}", "- not block deny"),
            ("permission: {ban: ask}", "- not ban ask"),
            ("permission: {remove_tool: no}", "- not remove_tool no"),
            ("permission: {forbid: {'src/**': deny}}", "- not forbid src/**"),
            ("permission: {permit: deny}\ntools: [permit]", "[permit] not permit"),
            ("permission: {subagents: deny}", "- not subagents spawns [deny]"),
            ("permission: {'*': deny, block: allow}", "[] not allow"),
            ("permissions: {restricted_tools: [Read]}", "[] access_closed@4"),
            ("permissions: {hindered: [Read]}", "[] not hindered access_closed@4"),
            ("permissions: {default: {read: deny}}", "- not read default"),
            ("permissions: {default: {tools: {read: deny}}}", "[] not tools default access_closed@4"),
            ("permissions: ['Read: deny']\ntools: [Read]", "[] access_closed@4"),
            ("permissions: [{deny: [Read]}]\ntools: [Read]", "[] access_closed@4"),
            ("permissions: ['!Read']\ntools: [Read]", "[Read] not Read"),
        ],
    );
}

#[test]
fn data() {
    let toml = ("prompt = \"p\"\ndescription = \"d\"\n", "\n");
    check(
        "/p/.codex/agents/x.toml",
        toml,
        &[
            ("tools = []", "[]"),
            ("tools = []\ntools = [\"Read\"]", "[] access_closed@4"),
            ("tools = [\"Read\"]\ntools = []", "[] access_closed@4"),
            ("tools = [\"Read\"]\nTools = [\"LS\"]", "[] duplicate_key@4"),
            ("disallowed_tools = [\"Read\"]\n\"disallowed-tools\" = [\"LS\"]", "- not Read LS duplicate_key@4"),
            ("disable = true\ndisable = false", "disabled"),
            ("disable = false\ndisable = true", "switch_unreadable"),
            ("enabled = false", "disabled"),
            ("[permission]\nread = \"allow\"\n\"*\" = \"deny\"", "[]"),
            ("[permission]\nread = deny", "[] access_closed@3"),
            ("[permission\nread = \"deny\"", "[] access_closed@3"),
            ("permission.read = = \"deny\"", "[] access_closed@3"),
            ("permission.read = \"deny\"", "- not read"),
            ("[[tools]]\nname = \"Read\"", "[] access_closed@3"),
            ("[permission.read]\n\"src/*\" = \"allow\"", "- rules read(src/*): allow"),
            ("\u{feff}tools = []", "[] access_closed@3"),
            // Settings of Codex itself.
            ("[agents]\nmax_threads = 3\nmax_depth = 1", "-"),
            ("[agents]\nmax_depth = 1\nhelper = true", "- spawns [max_depth helper]"),
            ("[tools]\nweb_search = true", "-"),
            ("[tools]\nweb_search = false\nview_image = true", "- not web_search"),
            ("[tools]\nweb_search = true\nread = false", "- not read rules web_search: allow"),
            ("# tools = []", "-"),
        ],
    );
    // Half a character is no escape of YAML, so that this is read as JSON.
    let json = ("{\"prompt\": \"\\ud83d\\ude00\", \"description\": \"d\", ", "}");
    check(
        "/p/.goose/recipes/x.json",
        json,
        &[
            ("\"tools\": []", "[]"),
            ("\"tools\": [], \"tools\": [\"Read\"]", "[] duplicate_key@1"),
            ("\"tools\": [\"Read\", \"LS\"], \"Tools\": [\"LS\"]", "[LS] duplicate_key@1"),
            ("\"permission\": {\"read\": \"deny\", \"read\": \"allow\"}", "- not read"),
            ("\"permission\": {\"read\": \"allow\", \"*\": \"deny\"}", "[]"),
            (
                "\"deny\": [\"Read\"], \"deny\": [\"Bash\"]",
                "- not Read Bash duplicate_key@1 key_misspelt@1 key_misspelt@1",
            ),
            ("\"dis＿allowed＿tools\": [\"Read\"]", "- not Read"),
            ("\"disable\": true, \"disable\": false", "disabled"),
            ("\"tools\": {\"read\": false, \"read\": true}", "- not read"),
        ],
    );
    let json = ("{\"prompt\": \"p\", \"description\": \"d\", ", "}");
    check(
        "/p/.goose/recipes/x.json",
        json,
        &[
            ("\"tools\": [], \"tools\": [\"Read\"]", "[] duplicate_key@1"),
            ("\"permission\": {\"read\": \"deny\", \"read\": \"allow\"}", "- not read"),
        ],
    );
}

#[test]
fn keys_that_stand_behind_the_frontmatter() {
    let check = |text: &str, expected: &str| {
        assert_eq!(told_of("n.md", &format!("---\nname: n\n{text}")), expected, "{text}");
    };
    check("-----\ntools: []\n---\nGo.\n", "[] access_closed@4");
    check("-----\ntools: []\n-----\nGo.\n", "[] access_closed@4");
    check("...\nallowed_callers: [x]\n---\nGo.\n", "- by [] access_closed@4");
    check("---\n---\ntools: []\n---\nGo.\n", "[] access_closed@5");
    check("---\n\n---\ntools: []\n---\nGo.\n", "[] access_closed@6");
    check("---\nGo.\n---\ntools: []\n---\n", "-");
    check("-----\ntools: []\n", "-");
    check("x: y\u{2028}tools: [] : z\n---\nGo.\n", "[] access_closed@3");
}

#[test]
fn keys_that_stand_before_the_frontmatter() {
    let check = |before: &str, expected: &str| {
        let file = format!("{before}\n---\nname: n\ndescription: d\n---\nGo.\n");
        assert_eq!(told_of("n.md", &file), expected, "{before}");
    };
    check("tools: Read", "[] access_closed@1");
    check("Text\n---\nallowed_callers: [x]", "- by [] access_closed@3");
    check("disable: true", "switch_unreadable");
    check("# tools: Read", "-");
    check("<!-- tools: Read -->", "-");
    check("<!--\ntools: Read\n-->", "-");
    check("<!-- mine\ntools: Read", "-");
    check("<!--\n-->\ntools: Read", "[] access_closed@3");
    check("This is mine.", "-");
}

#[test]
fn keys_behind_dashes_that_are_the_first() {
    let check = |block: &str, expected: &str| {
        assert_eq!(told_of("n.md", &format!("name: n\ndescription: d\n---\n{block}")), expected, "{block}");
    };
    let closed = "[] by [] access_closed@4 access_closed@5";
    for end in ["\n---\nGo.", "\n-----\nGo.", "\n...\nGo.", "\n\nGo.", ""] {
        check(&format!("tools: []\nallowed_callers: []{end}"), closed);
    }
    check("\ntools: []\n\nmodel: x\n---\nGo.", "[] access_closed@5");
    check("\n---\ntools: []\n---\nGo.", "[] access_closed@6");
    check("---\n\ntools: []\n\nGo.", "[] access_closed@6");
    check("policy:\n  deny: [Read]\n---\nGo.", "[] access_closed@5");
    check("disable: true\n---\nGo.", "switch_unreadable");
    check("Go.\n\nTools: as you like", "-");
}

#[test]
fn services_are_tools_too() {
    let check = |text: &str, services: Option<&[&str]>| {
        let file = format!("---\nname: n\n{text}\n---\nGo.\n");
        let found = read(file.as_bytes(), "n.md".as_ref(), Source::Dir).expect("a definition");
        let expected = services.map(|names| serde_json::json!(names));
        assert_eq!(found.extra.get("allowed_builtin_service_aliases"), expected.as_ref(), "{text}");
    };
    let with = |text: &str, services| check(&format!("allowed_builtin_service_aliases: [a]\n{text}"), services);
    with("tools: []", Some(&["a"]));
    with("disallowedTools: [Read]", Some(&["a"]));
    with("disallowedTools: true", None);
    with("permission: deny", None);
    with("permission: {'*': deny, read: allow}", None);
    with("allowed_builtin_service_aliases: []", Some(&[]));
    with("allowedBuiltinServiceAliases: [b]", Some(&[]));
    with("allowed_builtin_service_aliases: [b, a]", Some(&["a"]));
    with("model: \"a\nallowed_builtin_service_aliases: []\nmore\"", None);
    check("allowedBuiltinServiceAliases: [b]\nallowed_builtin_service_aliases: [a, b]", Some(&["b"]));
    for key in ["allowedBuiltinServiceAliases", "allowed-builtin-service-aliases", "Allowed Builtin Service Aliases"] {
        check(&format!("{key}: [a, b]"), Some(&["a", "b"]));
        check(&format!("{key}: a, b"), Some(&["a", "b"]));
        check(&format!("{key}: {{a: true, b: false}}"), Some(&["a"]));
        check(&format!("{key}: [a, {{b: c}}]"), Some(&["a"]));
    }
    check("allowedBuiltinServiceAliases:\nallowed_builtin_service_aliases: [a]", Some(&["a"]));
    // What is taken back is none, and a sentence names none.
    for none in ["all but a", "not a", "everything apart from a", "'all, except a'", "[not, a]", "['!a']", "[a, '!a']"]
    {
        with(&format!("allowedBuiltinServiceAliases: {none}"), Some(&[]));
        check(&format!("allowed_builtin_service_aliases: {none}"), Some(&[]));
    }
    // Nothing is no word, wherever it stands.
    let (a, nothing, b) = (
        "allowedBuiltinServiceAliases: [a]",
        "allowed_builtin_service_aliases:",
        "Allowed-Builtin-Service-Aliases: [b]",
    );
    check(&format!("{a}\n{nothing}\n{b}"), Some(&[]));
    check(&format!("{a}\n{b}\n{nothing}"), Some(&[]));
    check(&format!("{a}\n{nothing}"), Some(&["a"]));
    check(nothing, None);
    // Below another key.
    with("policy: {allowed-builtin-service-aliases: []}", Some(&[]));
    with("policy: {allowed-builtin-service-aliases: }", Some(&["a"]));
}
