//! The tools that a definition wants of an agent, whatever its author calls them.

use assistant_protocol::types::{AgentBrief, AgentRule, RuleAction, ToolSpec};

/// What a tool of an agent does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// Reads files.
    Read,
    /// Finds files by name, or lists folders.
    Find,
    /// Searches in files.
    Search,
    /// Changes files.
    Edit,
    /// Writes whole files.
    Write,
    /// Runs commands.
    Run,
    /// Fetches pages.
    Fetch,
    /// Searches the web.
    Web,
    /// Keeps a list of things to do.
    Todo,
    /// Starts assistants of the agent's own.
    Task,
}

/// The names of tools in the systems that definitions come from, in lower case.
const NAMES: &[(Role, &[&str])] = &[
    (Role::Read, &["read", "read_file", "read_many_files", "view", "cat", "open_file"]),
    (Role::Find, &["glob", "ls", "list", "find", "list_directory", "list_files", "find_files"]),
    (Role::Search, &["grep", "search", "search_file_content", "search_files", "codebase", "grep_search"]),
    (Role::Edit, &["edit", "multiedit", "replace", "notebookedit", "apply_patch", "patch", "edit_file", "str_replace"]),
    (Role::Write, &["write", "write_file", "create_file"]),
    (
        Role::Run,
        &[
            "bash",
            "shell",
            "run_shell_command",
            "execute",
            "terminal",
            "run",
            "runcommands",
            "exec",
            "bashoutput",
            "killshell",
            "killbash",
            "powershell",
            "run_command",
        ],
    ),
    (Role::Fetch, &["webfetch", "web_fetch", "fetch"]),
    (Role::Web, &["websearch", "web_search", "google_web_search", "web"]),
    (Role::Todo, &["todowrite", "todoread", "todo", "write_todos", "taskcreate", "taskupdate", "tasklist", "taskget"]),
    (Role::Task, &["task", "agent", "spawn_agent", "subagent"]),
];

/// A tool that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wish {
    /// As the author wrote it.
    pub(crate) written: String,
    /// The tool's name.
    pub(crate) name: String,
    /// Which calls; none is all.
    pub(crate) pattern: Option<String>,
    /// What the tool does, where it is known.
    pub(crate) role: Option<Role>,
}

impl Wish {
    /// Reads `Name` or `Name(pattern)`.
    pub(crate) fn read(written: &str) -> Self {
        let written = written.trim();
        let (name, pattern) = match written.split_once('(') {
            Some((name, rest)) => (name.trim(), Some(rest.strip_suffix(')').unwrap_or(rest).to_owned())),
            None => (written, None),
        };
        let pattern = pattern.filter(|pattern| !pattern.is_empty() && pattern != "*");
        Self { written: written.to_owned(), name: name.to_owned(), pattern, role: role(name) }
    }

    /// As it is told to people: with its pattern, wherever that was written.
    pub(crate) fn told(&self) -> String {
        match &self.pattern {
            Some(pattern) if !self.written.contains('(') => format!("{}({pattern})", self.written),
            Some(_) | None => self.written.clone(),
        }
    }
}

/// What a tool of this name does.
pub(crate) fn role(name: &str) -> Option<Role> {
    let name = name.to_ascii_lowercase();
    NAMES.iter().find(|(_, names)| names.contains(&name.as_str())).map(|(role, _)| *role)
}

/// Which tools a definition wants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// It does not say.
    #[default]
    Unsaid,
    /// All that there are.
    All,
    /// These.
    Some(Vec<Wish>),
}

/// What a definition says of an agent's own tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wishes {
    /// Those that it wants.
    pub(crate) wanted: Wanted,
    /// Rules for calls, in their order, without those for all tools and those that stand before such a one.
    pub(crate) rules: Vec<(RuleAction, Wish)>,
    /// What the last rule for all tools does with those that no rule behind it is about.
    pub(crate) others: Option<RuleAction>,
    /// Those that it must not have.
    pub(crate) denied: Vec<Wish>,
    /// Those for which somebody is asked first.
    pub(crate) asked: Vec<Wish>,
    /// What it allows and forbids by rules depends on the call: the host is to be asked.
    pub(crate) by_rules: bool,
    /// It must change nothing.
    pub(crate) readonly: bool,
}

impl Wishes {
    /// Those of a brief, without the tools that the agent calls by its way back.
    pub(crate) fn of(brief: &AgentBrief, tools: &[ToolSpec]) -> Self {
        let own = |written: &str| {
            let wish = Wish::read(written);
            let is_own = !wish.name.starts_with("mcp__") && tools.iter().all(|tool| tool.name != wish.name);
            (is_own && !wish.name.is_empty() && wish.name != ALL).then_some(wish)
        };
        let list = |names: &[String]| names.iter().filter_map(|name| own(name)).collect::<Vec<_>>();
        let (others, behind) = of_all(&brief.rules);
        let others = if is_all(&brief.ask_tools) { others.or(Some(RuleAction::Ask)) } else { others };
        let rules: Vec<(RuleAction, Wish)> = behind
            .iter()
            .filter_map(|rule| {
                let wish = own(&rule.tool)?;
                let pattern = rule.pattern.clone().filter(|pattern| pattern != ALL).or(wish.pattern);
                Some((rule.action, Wish { written: rule.tool.clone(), pattern, ..wish }))
            })
            .collect();
        let mut denied = list(&brief.disallowed_tools);
        // A tool that the last rule for it forbids whatever the call is not there at all.
        for (at, (action, wish)) in rules.iter().enumerate() {
            let is_last = rules[at + 1..].iter().all(|(_, later)| later.name != wish.name);
            if *action == RuleAction::Deny && wish.pattern.is_none() && is_last && !denied.contains(wish) {
                denied.push(wish.clone());
            }
        }
        let wanted = match (&brief.tools, others) {
            _ if is_all(&brief.disallowed_tools) => Wanted::Some(Vec::new()),
            (Some(tools), _) if is_all(tools) => Wanted::All,
            (Some(tools), _) => Wanted::Some(list(tools)),
            (None, Some(RuleAction::Allow | RuleAction::Ask)) => Wanted::All,
            (None, Some(RuleAction::Deny) | None) => Wanted::Unsaid,
        };
        let by_rules =
            behind.iter().any(|rule| rule.tool != ALL) || others.is_some_and(|does| does != RuleAction::Allow);
        let asked = list(&brief.ask_tools);
        Self { wanted, rules, others, denied, asked, by_rules, readonly: brief.readonly }
    }

    /// Whether the agent may have tools that do this, as far as names tell.
    pub(crate) fn has(&self, role: Role) -> bool {
        let whole = |wish: &&Wish| wish.role == Some(role) && wish.pattern.is_none();
        let changes = matches!(role, Role::Edit | Role::Write | Role::Run);
        let wanted = match &self.wanted {
            Wanted::Unsaid | Wanted::All => true,
            Wanted::Some(wanted) => wanted.iter().any(|wish| wish.role == Some(role)),
        };
        wanted && !self.denied.iter().any(|wish| whole(&wish)) && !(self.readonly && changes)
    }

    /// Whether what it wants may be used without asking, where no rule for the tool says otherwise.
    pub(crate) fn unasked(&self) -> bool {
        self.others.is_none_or(|does| does == RuleAction::Allow)
    }

    /// Whether some of what could be read is not to be read, or only after asking: a tool that searches in files would give
    /// it away.
    pub(crate) fn bounds_reading(&self) -> bool {
        let reads = |wish: &Wish| wish.role == Some(Role::Read);
        let in_part = |wish: &Wish| reads(wish) && wish.pattern.is_some();
        let wanted = if let Wanted::Some(wanted) = &self.wanted { wanted.as_slice() } else { &[] };
        let whole = wanted.iter().any(|wish| reads(wish) && wish.pattern.is_none());
        let ruled = self.rules.iter().any(|(does, wish)| *does != RuleAction::Allow && reads(wish));
        ruled
            || self.denied.iter().chain(&self.asked).any(reads)
            || (!whole && wanted.iter().any(in_part))
            || (!self.unasked() && self.ruled().any(in_part))
    }

    /// Whether an agent that cannot hold its searches to what bounds reading must not search in files, as it would. A rule
    /// that allows all searches behind those for reading has the last word.
    pub(crate) fn withholds_search(&self) -> bool {
        let of = |role: Role| self.rules.iter().rposition(|(_, wish)| wish.role == Some(role));
        let allows = of(Role::Search)
            .filter(|at| Some(*at) > of(Role::Read))
            .is_some_and(|at| self.rules[at].0 == RuleAction::Allow && self.rules[at].1.pattern.is_none());
        let listed = self.denied.iter().chain(&self.asked).any(|wish| wish.role == Some(Role::Read));
        let given = self.unasked() || self.ruled().any(|wish| wish.role == Some(Role::Search));
        self.has(Role::Search) && given && self.bounds_reading() && (listed || !allows)
    }

    /// Whether some searches only are wanted.
    pub(crate) fn searches_in_part(&self) -> bool {
        let wanted = if let Wanted::Some(wanted) = &self.wanted { wanted.as_slice() } else { &[] };
        let mut searches = wanted.iter().chain(self.rules.iter().map(|(_, wish)| wish)).chain(&self.denied);
        searches.any(|wish| wish.role == Some(Role::Search) && wish.pattern.is_some())
    }

    /// What an agent of this title that asks nobody does not hold to, with the reason: commands that are wanted where nothing
    /// must change, and commands that read.
    pub(crate) fn unheld(&self, title: &str) -> Vec<(String, String)> {
        let mut unheld = Vec::new();
        let wanted = if let Wanted::Some(wanted) = &self.wanted { wanted.as_slice() } else { &[] };
        for wish in wanted.iter().filter(|wish| self.readonly && wish.role == Some(Role::Run)) {
            unheld.push((format!("the tool `{}`", wish.written), READONLY_RUNS.to_owned()));
        }
        if self.bounds_reading() && self.runs_anything() {
            let why = format!("{title} knows none of that for commands: they read what the user may read");
            unheld.push(("what bounds reading, for commands".to_owned(), why));
        }
        unheld
    }

    /// Whether commands may be run whatever they are: they read what the user may read.
    pub(crate) fn runs_anything(&self) -> bool {
        let runs = |wish: &Wish| wish.role == Some(Role::Run);
        let whole = |wish: &Wish| runs(wish) && wish.pattern.is_none();
        let given = match &self.wanted {
            Wanted::Unsaid => false,
            Wanted::All => self.unasked(),
            Wanted::Some(wanted) => wanted.iter().any(whole) && self.unasked(),
        };
        let last = self.rules.iter().rfind(|(_, wish)| whole(wish)).map(|(does, _)| *does == RuleAction::Allow);
        self.has(Role::Run) && !self.asked.iter().any(whole) && last.unwrap_or(given)
    }

    /// Those that rules give some calls of, or ask about.
    pub(crate) fn ruled(&self) -> impl Iterator<Item = &Wish> {
        self.rules.iter().filter(|(action, _)| *action != RuleAction::Deny).map(|(_, wish)| wish)
    }
}

/// Why a definition that changes nothing has no commands.
pub(crate) const READONLY_RUNS: &str = "the definition is read-only, and commands can change something";
/// All tools, in place of the name of one; all calls, in place of a pattern.
const ALL: &str = "*";

fn is_all(tools: &[String]) -> bool {
    tools.iter().any(|tool| tool.trim() == ALL)
}

/// What the last rule for all tools does, and the rules behind it: it has the last word on all calls that those before it
/// are about. One that forbids or asks for some calls of any tool counts as one for all calls.
fn of_all(rules: &[AgentRule]) -> (Option<RuleAction>, &[AgentRule]) {
    let whole = |rule: &AgentRule| {
        let all_calls = rule.pattern.as_deref().is_none_or(|pattern| pattern == ALL);
        rule.tool == ALL && (all_calls || rule.action != RuleAction::Allow)
    };
    match rules.iter().rposition(whole) {
        Some(at) => (Some(rules[at].action), &rules[at + 1..]),
        None => (None, rules),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_patterns_are_read() {
        let check = |written: &str, name: &str, pattern: Option<&str>, role: Option<Role>| {
            let pattern = pattern.map(str::to_owned);
            let want = Wish { written: written.to_owned(), name: name.to_owned(), pattern, role };
            assert_eq!(Wish::read(written), want);
        };
        check("Read", "Read", None, Some(Role::Read));
        check("Bash(git log:*)", "Bash", Some("git log:*"), Some(Role::Run));
        check("Bash(*)", "Bash", None, Some(Role::Run));
        check("run_shell_command(git)", "run_shell_command", Some("git"), Some(Role::Run));
        check("Edit(src/(a|b)/**)", "Edit", Some("src/(a|b)/**"), Some(Role::Edit));
        check("Frobnicate", "Frobnicate", None, None);
    }

    fn wishes(brief: serde_json::Value) -> Wishes {
        let tool =
            ToolSpec { name: "ask_parent".to_owned(), description: String::new(), input_schema: serde_json::json!({}) };
        Wishes::of(&serde_json::from_value(brief).expect("a brief"), &[tool])
    }

    #[test]
    fn wishes_are_about_tools_of_the_agent() {
        let got = wishes(
            serde_json::json!({ "tools": ["Read", "ask_parent", "mcp__github__get"], "disallowed_tools": ["Bash(rm:*)"] }),
        );
        assert_eq!(got.wanted, Wanted::Some(vec![Wish::read("Read")]));
        assert!(got.has(Role::Read) && !got.has(Role::Run));
        let all = wishes(serde_json::json!({ "tools": ["*"], "disallowed_tools": ["Write"], "readonly": true }));
        assert!(all.wanted == Wanted::All && all.has(Role::Read) && !all.has(Role::Write) && !all.has(Role::Run));
        assert!(!wishes(serde_json::json!({ "tools": [] })).has(Role::Read));
        let rules = serde_json::json!({ "rules": [
            { "action": "deny", "tool": "bash" }, { "action": "deny", "tool": "edit" },
            { "action": "allow", "tool": "edit", "pattern": "*.md" },
        ] });
        let ruled = wishes(rules);
        assert!(ruled.by_rules && !ruled.has(Role::Run) && ruled.has(Role::Edit));
    }

    #[test]
    fn what_bounds_reading_bounds_searches() {
        let check = |brief: serde_json::Value, bounds: bool, withholds: bool| {
            let got = wishes(brief.clone());
            assert_eq!((got.bounds_reading(), got.withholds_search()), (bounds, withholds), "{brief}");
        };
        let rule = |action: &str, tool: &str, pattern: Option<&str>| {
            let rule = serde_json::json!({ "action": action, "tool": tool });
            pattern.map_or(
                rule.clone(),
                |pattern| serde_json::json!({ "action": action, "tool": tool, "pattern": pattern }),
            )
        };
        let but_env = [rule("allow", "read", Some("*")), rule("deny", "read", Some("*.env"))];
        check(serde_json::json!({}), false, false);
        check(serde_json::json!({ "tools": ["Read", "Grep"], "disallowed_tools": ["Bash(rm:*)"] }), false, false);
        check(serde_json::json!({ "rules": but_env }), true, true);
        let grep = [&but_env[..], &[rule("allow", "grep", None)]].concat();
        check(serde_json::json!({ "rules": grep }), true, false);
        check(serde_json::json!({ "rules": [rule("allow", "grep", None), rule("ask", "read", None)] }), true, true);
        check(serde_json::json!({ "tools": ["Read(src/**)", "Grep"] }), true, true);
        check(serde_json::json!({ "tools": ["Read(src/**)", "Read"] }), false, false);
        check(serde_json::json!({ "ask_tools": ["Read"] }), true, true);
        check(serde_json::json!({ "disallowed_tools": ["Read(*.env)"] }), true, true);
        let only = [rule("deny", "*", None), rule("allow", "read", Some("src/**")), rule("allow", "bash", None)];
        check(serde_json::json!({ "tools": ["Read(src/**)"] }), true, false);
        check(serde_json::json!({ "rules": only }), true, false);
        assert!(wishes(serde_json::json!({ "rules": only })).runs_anything());
        assert!(!wishes(serde_json::json!({ "tools": ["Bash(ls:*)"] })).runs_anything());
        assert!(!wishes(serde_json::json!({ "tools": ["Bash"], "readonly": true })).runs_anything());
    }

    #[test]
    fn a_rule_for_all_tools_is_about_what_no_rule_behind_it_is_about() {
        let rule = |action: &str, tool: &str| serde_json::json!({ "action": action, "tool": tool });
        let check =
            |rules: &[serde_json::Value], wanted: Wanted, others: Option<RuleAction>, left: usize, by_rules: bool| {
                let got = wishes(serde_json::json!({ "rules": rules }));
                assert_eq!((got.wanted, got.others, got.rules.len(), got.by_rules), (wanted, others, left, by_rules));
            };
        use RuleAction::{Allow, Ask, Deny};
        check(&[rule("ask", "*")], Wanted::All, Some(Ask), 0, true);
        check(&[rule("allow", "*")], Wanted::All, Some(Allow), 0, false);
        check(&[rule("allow", "*"), rule("ask", "bash")], Wanted::All, Some(Allow), 1, true);
        check(&[rule("allow", "bash"), rule("deny", "*")], Wanted::Unsaid, Some(Deny), 0, true);
        check(&[rule("deny", "*"), rule("allow", "read")], Wanted::Unsaid, Some(Deny), 1, true);
        check(&[rule("ask", "bash")], Wanted::Unsaid, None, 1, true);
        let all = serde_json::json!({ "tools": ["Read"], "ask_tools": ["*"] });
        assert!(!wishes(all).unasked());
        assert_eq!(wishes(serde_json::json!({ "disallowed_tools": ["*"] })).wanted, Wanted::Some(Vec::new()));
    }
}
