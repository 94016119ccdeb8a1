//! Which servers an assistant has: those of its definition that may run, and those of the configuration that it names or
//! whose tools it asks for.

use std::collections::BTreeMap;

use super::configured::Configured;
use super::presets;
use super::spec::{How, Spec};
use crate::registry::{Definition, Dialect, bare, is_all};
use crate::tools::grants;
use crate::tools::policy::names_server;
use crate::trust::{self, Kind, Ruled};

/// Servers of one definition.
const SERVERS_MAX: usize = 32;

/// A server of an assistant.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Planned {
    pub(crate) spec: Spec,
    /// What is written of it comes from a definition: no key of a model is filled in.
    pub(super) of_definition: bool,
    /// `$NAME` is a variable in it.
    pub(super) bare: bool,
    /// What is remembered while it is trusted; none where nobody needs to be asked.
    pub(super) trust: Option<String>,
}

impl Planned {
    /// Whether an agent that reads, writes and runs itself has it too: all but presets that nothing names.
    pub(crate) fn is_for_agents(&self, definition: &Definition, aliases: &BTreeMap<String, String>) -> bool {
        let name = self.spec.name.as_str();
        let names = |tool: &String| !is_all(tool) && names_server(wanted(tool, aliases), name);
        let by_rules = definition.given_by_rules();
        let named = || definition.tools.iter().flatten().chain(&by_rules).any(names);
        self.of_definition || self.trust.is_some() || presets::preset(name).is_none() || named()
    }
}

/// A server that an assistant names and does not have: its name, and why.
pub(crate) type Lacking = (String, String);

/// The servers of a definition; `aliases` are the names of tools that the configuration maps. What is not trusted is left
/// out: that is told elsewhere.
pub(crate) fn plan(
    configured: &Configured,
    definition: &Definition,
    ruled: &[Ruled],
    aliases: &BTreeMap<String, String>,
) -> (Vec<Planned>, Vec<Lacking>) {
    let (mut found, mut lacking): (Vec<Planned>, Vec<Lacking>) = (Vec::new(), Vec::new());
    let mut add = |planned: Planned, lacking: &mut Vec<Lacking>| {
        let name = planned.spec.name.clone();
        match &planned.spec.how {
            How::Off => lacking.push((name, "it is switched off".to_owned())),
            How::Unusable(why) => lacking.push((name, why.clone())),
            How::Named => {
                lacking.push((name, "no server of that name is configured; `[mcp_servers.NAME]` adds one".to_owned()))
            }
            _ if found.iter().any(|one| one.spec.name == name) => {}
            _ if found.len() >= SERVERS_MAX => {
                lacking.push((name, format!("an assistant has at most {SERVERS_MAX} servers")));
            }
            How::Program { .. } | How::Http { .. } => found.push(planned),
        }
    };
    let bare = definition.dialect == Dialect::Gemini;
    for one in ruled.iter().filter(|one| one.wanted.kind == Kind::Server && !one.answer.is_missing()) {
        let spec = Spec::of(&one.wanted);
        let named = (spec.how == How::Named).then(|| configured.get(&spec.name)).flatten();
        let planned = match named {
            // What the definition says of it beside its name counts too; its name is what the assistant knows it by.
            Some(known) => Planned {
                spec: Spec {
                    name: spec.name,
                    only: spec.only.or_else(|| known.only.clone()),
                    without: spec.without,
                    ..known.clone()
                },
                of_definition: false,
                bare: false,
                trust: one.key.clone(),
            },
            None => Planned { spec, of_definition: true, bare, trust: one.key.clone() },
        };
        add(planned, &mut lacking);
    }
    // What a definition switches off under a name is nothing that it asks for by it.
    let is_off = |name: &str| ruled.iter().any(|one| one.wanted.is_off() && one.wanted.name == name);
    let asked = |spec: &&Spec| !is_off(&spec.name) && asks_for(definition, &spec.name, aliases);
    for spec in configured.iter().filter(asked) {
        add(Planned { spec: spec.clone(), of_definition: false, bare: false, trust: None }, &mut lacking);
    }
    (found, lacking)
}

/// A server of an assistant, and the tools that it has of it.
#[cfg(feature = "cli")]
#[derive(Debug, serde::Serialize)]
pub(crate) struct Brought {
    /// The server, as the assistant knows it.
    pub(crate) server: String,
    /// Whether the definition says what it is; else the configuration does.
    pub(crate) of_definition: bool,
    /// The definition has no more than its name, and the configuration has none of that name.
    #[serde(skip)]
    pub(crate) of_nobody: bool,
    /// Names of tools as the definition has them, patterns included; none is all of the server.
    pub(crate) tools: Option<Vec<String>>,
    /// Names that may be of a tool of it, or of what a tool of it does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) perhaps: Vec<String>,
    /// Why the assistant goes without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lacking: Option<String>,
}

#[cfg(feature = "cli")]
impl std::fmt::Display for Brought {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let of = match (self.of_nobody, self.of_definition) {
            (true, _) => "a name only",
            (false, true) => "of its own",
            (false, false) => "of the configuration",
        };
        let mut tools = match &self.tools {
            None => "all that are not refused".to_owned(),
            Some(tools) => tools.join(", "),
        };
        if !self.perhaps.is_empty() {
            let sign = if tools.is_empty() { "" } else { ", and " };
            tools += &format!("{sign}what of it is called or does {}", self.perhaps.join(", "));
        }
        if tools.is_empty() {
            tools = "none, because `tools` names none of it".to_owned();
        }
        match &self.lacking {
            None => write!(f, "{} ({of}): {tools}", self.server),
            Some(why) => write!(f, "{} ({of}): {tools}; not here: {why}", self.server),
        }
    }
}

/// The servers of a definition with the tools that it has of each, those that it does without among them.
#[cfg(feature = "cli")]
pub(crate) fn brought(
    configured: &Configured,
    definition: &Definition,
    ruled: &[Ruled],
    aliases: &BTreeMap<String, String>,
) -> Vec<Brought> {
    let (planned, lacking) = plan(configured, definition, ruled, aliases);
    let by_rules = definition.given_by_rules();
    let named: Vec<&Ruled> = ruled.iter().filter(|one| one.wanted.kind == Kind::Server).collect();
    let told = |server: &str, of_definition: bool, lacking: Option<String>| {
        let own = named.iter().any(|one| one.wanted.name == server);
        let asked = match &definition.tools {
            None if own => None,
            None => Some(&by_rules),
            Some(tools) => Some(tools),
        };
        let names = |tool: &&String| brings(server, tool, aliases);
        // What is called so, or does what that does, is known when it has started.
        let may_name = |tool: &&String| {
            let wanted = wanted(tool, aliases);
            let alone = !wanted.contains(['/', '*']) && !wanted.contains("__") && grants::alias(wanted).is_empty();
            own && alone && !names(tool)
        };
        let those = |is: &dyn Fn(&&String) -> bool| asked.map(|asked| asked.iter().filter(is).cloned().collect());
        let perhaps: Option<Vec<String>> = those(&may_name);
        let perhaps = perhaps.unwrap_or_default();
        let is_named = |one: &&Ruled| one.wanted.name == server && Spec::of(&one.wanted).how == How::Named;
        let of_nobody = configured.get(server).is_none() && named.iter().copied().any(|one| is_named(&one));
        let of_definition = of_definition && !of_nobody;
        Brought { server: server.to_owned(), of_definition, of_nobody, tools: those(&names), perhaps, lacking }
    };
    let mut all: Vec<Brought> = planned.iter().map(|one| told(&one.spec.name, one.of_definition, None)).collect();
    all.extend(lacking.iter().map(|(server, why)| {
        let of_definition = named.iter().any(|one| one.wanted.name == *server) && configured.get(server).is_none();
        told(server, of_definition, Some(why.clone()))
    }));
    all.extend(named.iter().filter(|one| one.answer.is_missing()).map(|one| {
        let is_named = Spec::of(&one.wanted).how == How::Named;
        told(&one.wanted.name, !is_named, Some("not trusted, see `assistant-host trust`".to_owned()))
    }));
    all
}

/// Whether the tools that a definition asks for may be of the configured server `server`.
fn asks_for(definition: &Definition, server: &str, aliases: &BTreeMap<String, String>) -> bool {
    let by_rules = definition.given_by_rules();
    definition.tools.iter().flatten().chain(&by_rules).any(|tool| brings(server, tool, aliases))
}

/// Whether a configured server may bring a tool that a definition asks for: it is named, or has what other systems call so.
/// What the configuration maps the name to comes first.
pub(crate) fn brings(server: &str, tool: &str, aliases: &BTreeMap<String, String>) -> bool {
    let wanted = wanted(tool, aliases);
    names_server(wanted, server) || stands_for(wanted, server)
}

/// A name of a tool without what stands in parentheses, or what the configuration maps it to.
fn wanted<'a>(tool: &'a str, aliases: &'a BTreeMap<String, String>) -> &'a str {
    let bare = bare(tool);
    aliases.get(bare).map_or(bare, String::as_str)
}

/// Whether a tool that a definition asks for may be of one of the servers that it or the configuration names.
pub(crate) fn may_bring(
    configured: &Configured,
    definition: &Definition,
    tool: &str,
    aliases: &BTreeMap<String, String>,
) -> bool {
    let servers = trust::wanted(definition).into_iter().filter(|one| one.kind == Kind::Server && !one.is_off());
    let own = servers.map(|one| one.name);
    configured.iter().any(|spec| spec.how != How::Off && brings(&spec.name, tool, aliases))
        || own.into_iter().any(|name| names_server(wanted(tool, aliases), &name))
}

/// Whether another system's own tool is one that the preset `server` brings: Write, Edit, Bash. The host has tools of its
/// own that read.
fn stands_for(tool: &str, server: &str) -> bool {
    let roles = grants::roles_of(tool);
    presets::preset(server).is_some_and(|preset| presets::brings(preset).values().any(|what| roles.contains(what)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_brings_its_server() {
        let aliases = [("Bash", "db__run"), ("Frob", "mcp__db__*"), ("Sh", "shell")];
        let aliases = BTreeMap::from(aliases.map(|(name, tool)| (name.to_owned(), tool.to_owned())));
        for (tool, server, want) in [
            ("Bash(git:*)", "db", true),
            ("Bash", "shell", false),
            ("Frob", "db", true),
            ("Write", "filesystem", true),
            ("Sh(ls:*)", "shell", true),
            ("mcp__git_hub__x", "git-hub", true),
        ] {
            assert_eq!(brings(server, tool, &aliases), want, "{tool} {server}");
        }
        for (tool, server, want) in [
            ("Bash", "shell", true),
            ("execute/runInTerminal", "shell", true),
            ("powershell", "shell", true),
            ("edit/editFiles", "filesystem", true),
            ("createDirectory", "filesystem", false),
            ("run_shell_command", "shell", true),
            ("Write", "filesystem", true),
            ("MultiEdit", "filesystem", true),
            ("Read", "filesystem", false),
            ("Bash", "filesystem", false),
            ("Bash", "other", false),
        ] {
            assert_eq!(stands_for(tool, server), want, "{tool} {server}");
        }
    }
}
