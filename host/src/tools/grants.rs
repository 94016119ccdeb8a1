//! Which tools an assistant really has: what its definition asks for, by the names of this host and of other systems.

mod aliases;
mod denied;
mod foreign;
mod roles;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

pub(crate) use self::aliases::alias;
use self::aliases::{ALIASES, DEFAULT_GRANTS, SPAWNING};
use self::denied::Known;
pub(crate) use self::foreign::is_foreign;
pub(crate) use self::roles::{roles_of, why_unavailable};
use super::policy::{Policy, ToolName};
use super::talk::TALK;
use super::{Tool, policy};
use crate::registry::{Definition, bare, is_held, is_spawner, nearest_name, pattern, several, subject};

/// A tool that a definition asks for and that is not here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, serde::Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Unavailable {
    /// As the definition names it.
    pub tool: String,
    /// Why it is not here, and what would bring it.
    pub why: String,
}

/// What an assistant has, and what it lacks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants {
    /// Names of the table, sorted.
    pub tools: Vec<String>,
    /// What else the definition asks for.
    pub unavailable: Vec<Unavailable>,
}

/// Maps the names that a definition asks for to the table. `None` is a definition without a word about tools.
#[must_use]
pub fn grant(asked: Option<&[String]>, aliases: &BTreeMap<String, String>, table: &[Tool]) -> Grants {
    let mut grants = Grants::default();
    let Some(asked) = asked else {
        grants.tools = DEFAULT_GRANTS.iter().map(ToString::to_string).collect();
        grants.tools.sort();
        return grants;
    };
    for name in asked {
        match names_of(name, aliases, table) {
            found if found.is_empty() => {
                grants.unavailable.push(Unavailable { tool: name.clone(), why: why_unavailable(bare(name)) });
            }
            found => match found.into_iter().filter(|tool| holds(name, tool)).collect::<Vec<_>>() {
                held if held.is_empty() => grants.unavailable.push(Unavailable {
                    tool: name.clone(),
                    why: "it is asked for some calls only, to which calls of this tool cannot be held; without the \
                          parentheses it is asked for all"
                        .to_owned(),
                }),
                held => grants.tools.extend(held),
            },
        }
    }
    grants.tools.sort();
    grants.tools.dedup();
    grants
}

/// What `definition` has: what it asks for, without what it must not have.
#[must_use]
pub fn of_definition(definition: &Definition, aliases: &BTreeMap<String, String>, table: &[Tool]) -> Grants {
    let mut grants = grant(definition.tools.as_deref(), aliases, table);
    let by_rules = grant(Some(&definition.given_by_rules()), aliases, table);
    grants.tools.extend(by_rules.tools);
    grants.unavailable.extend(by_rules.unavailable);
    grants.tools.extend(by_service(&definition.extra, table));
    grants.tools.sort();
    grants.tools.dedup();
    let denied = &definition.disallowed_tools;
    if !denied.is_empty() {
        grants.tools.retain(|tool| {
            let known = Known::new(tool, aliases, table);
            let whole = |one: &str| !denies_some(one, tool) && known.is_denied(one);
            !denied.iter().any(|denied| several(denied).any(whole))
        });
    }
    if !definition.rules.is_empty() {
        let policy = Policy::of(definition, aliases);
        grants.tools.retain(|tool| !policy.takes(ToolName { server: None, tool }));
    }
    if definition.readonly {
        let looks = |name: &String| table.iter().any(|tool| tool.name == **name && tool.hints.read_only);
        grants.tools.retain(|tool| TALK.contains(&tool.as_str()) || looks(tool));
    }
    grants
}

/// The first of `denied` that is no tool here and near to the name of one: both names.
pub(crate) fn misspelt(
    denied: &[String],
    aliases: &BTreeMap<String, String>,
    table: &[Tool],
) -> Option<(String, String)> {
    /// Fewest characters of a name that another may be near to.
    const CHARS_MIN: usize = 4;
    let own = table.iter().map(|tool| tool.name.as_ref()).chain(ALIASES.iter().map(|(alias, _)| *alias));
    let names: Vec<&str> = own.filter(|name| name.len() >= CHARS_MIN).collect();
    let known: Vec<Known> = table.iter().map(|tool| Known::new(&tool.name, aliases, table)).collect();
    denied.iter().flat_map(|name| several(name)).find_map(|name| {
        let bare = bare(name);
        if bare.len() < CHARS_MIN || is_foreign(bare) || known.iter().any(|tool| tool.is_denied(bare)) {
            return None;
        }
        nearest_name(bare, &names).map(|near| (bare.to_owned(), near.to_owned()))
    })
}

/// Whether calls of `tool` can be held to what `name` says of them in parentheses, as `Bash(git log:*)` does. What stands
/// behind a tool that spawns is whom it may spawn, which is kept.
fn holds(name: &str, tool: &str) -> bool {
    let Some((bare, rest)) = name.split_once('(') else { return true };
    // What has no end is no pattern, and what holds nothing is a word for no calls.
    let all = rest.trim_end().strip_suffix(')').is_some_and(|inner| matches!(inner.trim(), "*" | ":*"));
    all || is_spawner(bare) || (pattern(name).is_some() && (policy::holds(tool) || subject(bare).is_some()))
}

/// Whether `denied` takes `tool` away for some of its calls only: it is kept, and they are refused.
fn denies_some(denied: &str, tool: &str) -> bool {
    let spawns = is_spawner(bare(denied));
    is_held(denied) && (policy::holds(tool) || (spawns && SPAWNING.contains(&tool)))
}

/// Whether a name that a definition asks for stands for `tool`, which is there.
pub(super) fn stands_for(name: &str, tool: &str, aliases: &BTreeMap<String, String>) -> bool {
    let bare = bare(name);
    let wanted = aliases.get(bare).map_or(bare, String::as_str);
    let of_prefix = wanted.strip_suffix('*').filter(|prefix| prefix.ends_with("__"));
    let of_alias = || alias(wanted).contains(&tool);
    wanted == tool || of_prefix.is_some_and(|prefix| tool.starts_with(prefix)) || of_alias()
}

/// Whether `denied`, as a definition names it, is `tool` or a group of tools with it.
pub(crate) fn denies(denied: &str, tool: &str, aliases: &BTreeMap<String, String>) -> bool {
    Known::new(tool, aliases, &[]).is_denied(denied)
}

fn names_of(name: &str, aliases: &BTreeMap<String, String>, table: &[Tool]) -> Vec<String> {
    // What stands in parentheses is whom it may spawn, as in `Agent(reviewer)`; the name stands before it.
    let bare = bare(name);
    let wanted = aliases.get(bare).map_or(bare, String::as_str);
    if let Some(prefix) = wanted.strip_suffix('*').filter(|prefix| prefix.ends_with("__")) {
        let of_prefix = table.iter().filter(|tool| tool.name.starts_with(prefix));
        return of_prefix.map(|tool| tool.name.to_string()).collect();
    }
    if let Some(tool) = table.iter().find(|tool| tool.name == wanted) {
        return vec![tool.name.to_string()];
    }
    alias(wanted).iter().map(ToString::to_string).collect()
}

/// The tools that a definition of the app's system grants by service: `workspace` is `builtin_workspace__*`.
#[must_use]
pub fn by_service(extra: &serde_json::Map<String, serde_json::Value>, table: &[Tool]) -> Vec<String> {
    let prefixes: Vec<String> =
        crate::registry::services_of(extra).map(|service| format!("builtin_{service}__")).collect();
    let granted = |tool: &&Tool| prefixes.iter().any(|prefix| tool.name.starts_with(prefix.as_str()));
    table.iter().filter(granted).map(|tool| tool.name.to_string()).collect()
}

/// What is added to the prompt of an assistant that lacks tools.
#[must_use]
pub fn told_in_prompt(unavailable: &[Unavailable]) -> Option<String> {
    if unavailable.is_empty() {
        return None;
    }
    let names: Vec<&str> = unavailable.iter().map(|one| one.tool.as_str()).collect();
    Some(format!(
        "\n\nThese tools, which your instructions may name, are not available in this run: {}. Do not pretend to use \
         them; say what you could not do.",
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    /// What a definition gets that asks for `asked`.
    fn check(asked: Option<&[&str]>, tools: &[&str], lacks: &[&str]) {
        let asked: Option<Vec<String>> = asked.map(|all| all.iter().map(ToString::to_string).collect());
        let aliases = BTreeMap::from([("Fetch".to_owned(), "read_file".to_owned())]);
        let got = grant(asked.as_deref(), &aliases, &crate::tools::table(&Limits::default()));
        let lacking: Vec<&str> = got.unavailable.iter().map(|one| one.tool.as_str()).collect();
        assert_eq!((got.tools, lacking), (tools.iter().map(ToString::to_string).collect(), lacks.to_vec()));
    }

    #[test]
    fn names_of_other_systems_are_understood() {
        let default = ["ask_parent", "check_answer", "list_files", "read_file", "recv_message", "search_files"];
        check(None, &[&default[..], &["send_message"]].concat(), &[]);
        check(Some(&[]), &[], &[]);
        check(Some(&["Read", "Grep", "Glob", "LS"]), &["list_files", "read_file", "search_files"], &[]);
        check(Some(&["Read", "Write"]), &["read_file"], &["Write"]);
        check(Some(&["Fetch", "fetch", "mcp__x__y"]), &["read_file"], &["fetch", "mcp__x__y"]);
        check(
            Some(&["Agent(worker, researcher)"]),
            &[
                "cancel_assistant",
                "get_pending_questions",
                "poll_assistant",
                "recv_message",
                "reply_assistant",
                "search_assistant",
                "spawn_assistant",
                "wait_assistant",
            ],
            &[],
        );
        check(Some(&["send_message"]), &["send_message"], &[]);
        // Calls of these can be held to some; of others they cannot.
        check(Some(&["Read(src/**)", "LS(*)", "send_message(x)"]), &["list_files", "read_file"], &["send_message(x)"]);
        for none in ["Read(src/**", "Read(", "Read(*", "Read()", "Read( )"] {
            check(Some(&[none]), &[], &[none]);
        }
    }

    /// Where nothing is said of tools, rules give those that they are about, and what nothing brings is told.
    #[test]
    fn rules_give_tools() {
        let check = |keys: &str, more: &[&str], lacks: &[&str]| {
            let text = format!("---\nname: n\n{keys}\n---\nGo.\n");
            let definition =
                crate::registry::read(text.as_bytes(), "n.md".as_ref(), crate::registry::Source::Dir).expect("one");
            let got = of_definition(&definition, &BTreeMap::new(), &crate::tools::table(&Limits::default()));
            let tools: Vec<_> = got.tools.iter().filter(|tool| !DEFAULT_GRANTS.contains(&tool.as_str())).collect();
            let lacking: Vec<&str> = got.unavailable.iter().map(|one| one.tool.as_str()).collect();
            assert_eq!(
                (tools, lacking),
                (more.iter().map(|tool| (*tool).to_owned()).collect::<Vec<_>>().iter().collect(), lacks.to_vec()),
                "{keys}"
            );
            got
        };
        let shell = check("permission: {bash: ask}", &[], &["bash"]).unavailable;
        assert!(shell[0].why.contains("tool_presets = [\"shell\"]"), "{shell:?}");
        check("permission: {bash: {'git *': allow, '*': deny}, edit: allow, doom_loop: allow}", &[], &["edit"]);
        check("permission: {bash: {'*': deny, 'git *': allow}}", &[], &["bash"]);
        check("permission: {read: allow, question: allow}", &[], &[]);
        let spawns = ["cancel_assistant", "get_pending_questions", "poll_assistant", "reply_assistant"];
        let spawns = [&spawns[..], &["search_assistant", "spawn_assistant", "wait_assistant"]].concat();
        check("permission: {task: {'*': deny, 'review-*': allow}}", &spawns, &[]);
        check("permission: {bash: deny}", &[], &[]);
        check("permission: {'*': allow}", &[], &[]);
        // A rule whose order counts takes a tool of the host away, too.
        let read = check("permissionRules: ['read*: deny', 'grep: allow']", &[], &[]).tools;
        assert!(!read.contains(&"read_file".to_owned()) && read.contains(&"search_files".to_owned()), "{read:?}");
    }

    #[test]
    fn services_bring_tools_however_the_key_is_spelled() {
        let tool = |name: &'static str| Tool { name: name.into(), ..crate::tools::table(&Limits::default()).remove(0) };
        let table = [tool("builtin_work__run"), tool("builtin_other__run"), tool("builtin_work2__run")];
        for keys in [
            "allowed_builtin_service_aliases: [work]",
            "allowedBuiltinServiceAliases: [work]",
            "allowed-builtin-service-aliases: work",
            "ALLOWED BUILTIN SERVICE ALIASES: {work: true, other: false}",
            "allowedBuiltinServiceAliases: [work, other]\nallowed_builtin_service_aliases: [work]",
        ] {
            let text = format!("---\nname: n\ntools: []\n{keys}\n---\nGo.\n");
            let definition =
                crate::registry::read(text.as_bytes(), "n.md".as_ref(), crate::registry::Source::Dir).expect("one");
            let got = of_definition(&definition, &BTreeMap::new(), &table);
            assert_eq!(got.tools, ["builtin_work__run"], "{keys}");
        }
    }

    #[test]
    fn what_is_denied_and_no_tool_may_be_misspelt() {
        let check = |denied: &str, near: Option<&str>| {
            let table = crate::tools::table(&Limits::default());
            let found = misspelt(&[denied.to_owned()], &BTreeMap::new(), &table);
            assert_eq!(found.map(|(_, near)| near).as_deref(), near, "{denied}");
        };
        check("Raed", Some("read"));
        check("LS; raed_file", Some("read_file"));
        check("Read", None);
        check("Bash", None);
        check("LSP", None);
        // Tools that others have.
        for foreign in ["NotebookEdit", "TaskList, KillShell", "edit/editFiles", "Skill"] {
            check(foreign, None);
        }
        check("NotebookEdit, Raed", Some("read"));
        check("mcp__x__*", None);
    }

    #[test]
    fn what_is_denied_is_not_given() {
        let check = |keys: &str, tools: &[&str]| {
            let text = format!("---\nname: n\n{keys}\n---\nGo.\n");
            let definition =
                crate::registry::read(text.as_bytes(), "n.md".as_ref(), crate::registry::Source::Dir).expect("one");
            let aliases = [("Fetch", "read_file"), ("Reads", "read"), ("dirs", "LS")];
            let aliases = BTreeMap::from(aliases.map(|(alias, tool)| (alias.to_owned(), tool.to_owned())));
            let got = of_definition(&definition, &aliases, &crate::tools::table(&Limits::default()));
            assert_eq!(got.tools, tools, "{keys}");
        };
        let talk = ["ask_parent", "check_answer", "recv_message", "send_message"];
        check("tools: [Read, LS]\ndisallowedTools: Read", &["list_files"]);
        check("tools: [Read, LS]\ndisallowedTools: READ_FILE", &["list_files"]);
        check("tools: [Read, LS]\ndisallowedTools: [Read(src/*)]", &["list_files", "read_file"]);
        check("tools: [Read, LS]\ndisallowedTools: ['*']", &[]);
        check("disallowedTools: [read_*, list*]", &talk);
        // Searching shows what stands in files: it goes with reading, not the other way round.
        check("tools: [Read, Grep, LS]\ndisallowedTools: Read", &["list_files"]);
        check("tools: [Read, Grep, LS]\ndisallowedTools: Grep", &["list_files", "read_file"]);
        for all in ["true", "[true]", "all", "[ALL]", "'*'", "{all: true}"] {
            check(&format!("disallowedTools: {all}"), &[]);
        }
        check("permissions: {deny: true}", &[]);
        for read_and_list in ["'Read; LS'", "Read LS", "Read|LS", "['Read; LS']", "Read(a, LS", "Read and LS."] {
            check(&format!("disallowedTools: {read_and_list}"), &talk);
        }
        check("tools: [Task, recv_message]\ndisallowedTools: Task", &["recv_message"]);
        check("tools: [Task, Read, send_message]\nreadonly: true", &{
            let mut looks = vec!["get_pending_questions", "poll_assistant", "read_file", "recv_message"];
            looks.extend(["search_assistant", "send_message"]);
            looks
        });
        check("tools: {weird: [x]}", &[]);
        // However a tool is spelled.
        for read in [
            "FETCH",
            "fetch",
            "Reads",
            "readFile",
            "read-file",
            "Read_File",
            "view",
            "mcp__assistants__read_file",
            "mcp__x__Read",
            "MCP__x__READ_FILE",
            "mcp_x_read_file",
            "x__read_file",
            "x/readFile",
            "'x:read_file'",
            "x.read_file",
            "'Read:src/**'",
            "Read（src）",
            "Read\u{200b}",
            "'*ead*'",
            "r?ad",
            "'re*'",
            "<Read>",
            "'`Read`'",
            "tools.Read",
            "'mcp__x__read*'",
        ] {
            check(&format!("tools: [Read, LS]\ndisallowedTools: [{read}]"), &["list_files"]);
        }
        for all in
            ["everything", "any", "'**'", "'*_*'", "mcp__assistant-host__*", "mcp__assistant_host", "assistant-host/*"]
        {
            check(&format!("tools: [Read, LS]\ndisallowedTools: [{all}]"), &[]);
        }
        for list in ["DIRS", "Dirs(x)", "list_*", "Glob", "search/listDirectory", "search"] {
            check(&format!("tools: [Read, LS]\ndisallowedTools: [{list}]"), &["read_file"]);
        }
        for other in ["mcp__x__*", "mcp__x", "Bash", "lists", "x/*", "unread_file", "file"] {
            check(&format!("tools: [Read, LS]\ndisallowedTools: [{other}]"), &["list_files", "read_file"]);
        }
    }
}
