//! Which servers an assistant has: those of its definition that may run, and those of the configuration that it names or
//! whose tools it asks for.

use std::collections::BTreeMap;

use super::configured::Configured;
use super::presets::{self, What};
use super::spec::{How, Spec};
use crate::registry::{Definition, Dialect, bare, fold};
use crate::trust::{Kind, Ruled, wanted};

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
    for one in ruled.iter().filter(|one| one.wanted.kind == Kind::Server && one.answer.allows()) {
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
    for spec in configured.iter().filter(|spec| asks_for(definition, &spec.name, aliases)) {
        add(Planned { spec: spec.clone(), of_definition: false, bare: false, trust: None }, &mut lacking);
    }
    (found, lacking)
}

/// Whether the tools that a definition asks for may be of the configured server `server`.
fn asks_for(definition: &Definition, server: &str, aliases: &BTreeMap<String, String>) -> bool {
    definition.tools.iter().flatten().any(|tool| brings(server, tool, aliases))
}

/// Whether a configured server may bring a tool that a definition asks for: it is named, or has what other systems call so.
/// What the configuration maps the name to comes first.
pub(crate) fn brings(server: &str, tool: &str, aliases: &BTreeMap<String, String>) -> bool {
    match aliases.get(bare(tool)) {
        Some(wanted) => names_server(wanted, server),
        None => names_server(tool, server) || stands_for(tool, server),
    }
}

/// Whether a name of a tool is that of a server, or of one of its tools: `mcp__server__tool`, `server/tool` and the like.
pub(super) fn names_server(tool: &str, server: &str) -> bool {
    let (tool, server) = (bare(tool).to_lowercase(), server.to_lowercase());
    if matches!(tool.as_str(), "*" | "all" | "mcp__*" | "mcp" | "mcp_*") {
        return true;
    }
    let tool = tool
        .strip_prefix("mcp__")
        .or_else(|| tool.strip_prefix("mcp_"))
        .or_else(|| tool.strip_prefix('@'))
        .unwrap_or(&tool);
    tool.strip_prefix(server.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '_', '.', ':']))
}

/// Whether a tool that a definition asks for may be of one of the servers that it or the configuration names.
pub(crate) fn may_bring(
    configured: &Configured,
    definition: &Definition,
    tool: &str,
    aliases: &BTreeMap<String, String>,
) -> bool {
    let own = wanted(definition).into_iter().filter(|one| one.kind == Kind::Server).map(|one| one.name);
    configured.iter().any(|spec| spec.how != How::Off && brings(&spec.name, tool, aliases))
        || own.into_iter().any(|name| names_server(aliases.get(bare(tool)).map_or(tool, String::as_str), &name))
}

/// Whether another system's own tool is one that the preset `server` brings: Write, Edit, Bash.
pub(super) fn stands_for(tool: &str, server: &str) -> bool {
    let Some(preset) = presets::preset(server) else { return false };
    let Some(role) = presets::roles("", &fold(bare(tool))) else { return false };
    // The host has tools of its own that read.
    matches!(role.what, What::Write | What::Edit | What::Run | What::Fetch)
        && presets::brings(preset).values().any(|what| *what == role.what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_names_its_server() {
        for (tool, server, want) in [
            ("mcp__db__query", "db", true),
            ("mcp__DB__*", "db", true),
            ("mcp__db", "db", true),
            ("db/query", "db", true),
            ("@db/query", "db", true),
            ("db__query(a:*)", "db", true),
            ("mcp_db_query", "db", true),
            ("db.query", "db", true),
            ("*", "db", true),
            ("db", "db", true),
            ("dbx__query", "db", false),
            ("Read", "db", false),
        ] {
            assert_eq!(names_server(tool, server), want, "{tool} {server}");
        }
        let aliases = [("Bash", "db__run"), ("Frob", "mcp__db__*")];
        let aliases = BTreeMap::from(aliases.map(|(name, tool)| (name.to_owned(), tool.to_owned())));
        for (tool, server, want) in
            [("Bash(git:*)", "db", true), ("Bash", "shell", false), ("Frob", "db", true), ("Write", "filesystem", true)]
        {
            assert_eq!(brings(server, tool, &aliases), want, "{tool} {server}");
        }
        for (tool, server, want) in [
            ("Bash(git:*)", "shell", true),
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
