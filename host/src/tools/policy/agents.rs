//! Tools that an agent behind a runner has itself: rules speak of them by the names that definitions use, and no server of ours
//! carries them out.

use serde_json::{Map, Value};

use super::paths::Resolved;
use super::{Policy, ToolName, Verdict, Why, names_server, subject};
use crate::registry::{bare, fold, is_all};
use crate::servers::Configured;
use crate::servers::presets::What;
use crate::tools::grants;
use crate::tools::talk::ASKING;

/// Stands for a server where a tool is an agent's own; no server can be called so.
pub(super) const AGENT: &str = "an agent\u{0}";
/// The tools that an agent gets from this host, as it may call them: each is judged when it is called.
const OURS: &str = "mcp__assistants__";
/// Tools of agents that only look, folded, beside those that read files.
const LOOKS: &[&str] = &[
    "bashoutput",
    "exitplanmode",
    "getinternaldocs",
    "googlesearch",
    "googlewebsearch",
    "listmcpresourcestool",
    "lsp",
    "readlints",
    "readmcpresourcetool",
    "searchweb",
    "think",
    "todo",
    "todoread",
    "todos",
    "todowrite",
    "toolsearch",
    "updateplan",
    "viewimage",
    "websearch",
    "writetodos",
];

impl<'a> ToolName<'a> {
    /// A tool of this name that an agent has itself.
    pub(crate) fn of_agent(tool: &'a str) -> Self {
        Self { server: Some(AGENT), tool }
    }

    /// Whether it is one that an agent has itself.
    pub(crate) fn is_of_agent(self) -> bool {
        self.server == Some(AGENT)
    }
}

/// Whether agents have a tool of this name themselves, as a definition asks for it: one that reads, writes, runs or fetches,
/// or another that systems of other people have.
pub(crate) fn is_of_agents(name: &str) -> bool {
    grants::is_foreign(bare(name)) || reads(bare(name)).is_some()
}

/// Whether a definition that asks for `name` asks for a tool of an agent's own that does more than look, or for one of a
/// server that the agent may have itself: of those nobody knows what they do.
pub(crate) fn does_more(name: &str) -> bool {
    let name = bare(name);
    is_all(name) || (grants::is_foreign(name) && !only_looks(name)) || is_of_server(name)
}

/// Whether it is a tool of a server, as agents call it, and none of this host's.
fn is_of_server(name: &str) -> bool {
    // Lists of tools are read in other spellings, too.
    fold(name).starts_with("mcp") && !name.starts_with(OURS) && Some(name) != OURS.strip_suffix("__")
}

/// Whether `name` is of a server that the configuration has, and so not the agent's own.
pub(crate) fn is_configured(name: &str, configured: &Configured) -> bool {
    let name = bare(name);
    is_of_server(name) && !name.contains(['*', '?']) && configured.iter().any(|one| names_server(name, &one.name))
}

/// Whether an agent's own tool of this name changes nothing.
fn only_looks(name: &str) -> bool {
    matches!(what(name), Some(What::Read | What::List | What::Search | What::Fetch))
        || LOOKS.binary_search(&fold(name).as_str()).is_ok()
        || grants::alias(name) == ASKING
}

/// What an agent's own tool of this name does, where that is known.
pub(super) fn what(name: &str) -> Option<What> {
    match grants::roles_of(name) {
        [] => reads(name),
        // Who changes a part of a file is told from who makes one.
        [What::Write, What::Edit] => Some(What::Edit),
        [first, ..] => Some(*first),
    }
}

fn reads(name: &str) -> Option<What> {
    match grants::alias(name) {
        ["read_file", ..] => Some(What::Read),
        ["list_files", ..] => Some(What::List),
        ["search_files", ..] => Some(What::Search),
        _ => None,
    }
}

/// Whether what an agent's own tool is called by means the same as `name`, which a definition has.
pub(super) fn means(name: &str, tool: &str) -> bool {
    let (named, own) = (grants::alias(name), grants::alias(tool));
    let same = !is_all(name) && named.iter().any(|one| own.contains(one));
    same || what(tool).is_some_and(|what| grants::roles_of(name).contains(&what))
}

impl Policy {
    /// What becomes of a call of a tool that an agent has itself.
    ///
    /// Where the definition names its tools, no other one is called; what nobody knows is asked about. Where it says nothing
    /// of tools, those that only look are, and all others are asked about.
    pub(crate) fn judge_own(&self, name: &str, arguments: &Map<String, Value>) -> Verdict {
        let tool = ToolName::of_agent(name);
        let refused = |rule: String| Verdict::Deny { rule };
        if name.starts_with(OURS) {
            return Verdict::Allow;
        }
        let (does, only_looks) = (what(name), only_looks(name));
        if self.readonly && !only_looks {
            let why = "the assistant is read-only, and nothing is known by which this tool changes nothing";
            return refused(why.to_owned());
        }
        let named = does.is_some() || !grants::alias(name).is_empty() || grants::is_foreign(name);
        let is_known = only_looks || named || name.starts_with("mcp__");
        if let Some(allow) = &self.allow
            && is_known
            && !allow.iter().any(|entry| self.stands_for(entry, tool))
        {
            return refused("it is none of the tools that the definition asks for".to_owned());
        }
        let verdict = self.judge(tool, arguments);
        let given = match &self.allow {
            Some(_) => is_known,
            None => only_looks || !self.about(tool).is_empty(),
        };
        match verdict {
            Verdict::Allow if !given => Verdict::Ask { why: Why::NoRule },
            Verdict::Allow if self.leads_outside(tool, does, arguments) => Verdict::Ask { why: Why::Outside },
            verdict => verdict,
        }
    }

    /// Whether a call is about files that are not in the folder of the run, or nobody can tell.
    fn leads_outside(&self, tool: ToolName<'_>, does: Option<What>, arguments: &Map<String, Value>) -> bool {
        let of_files = matches!(does, Some(What::Read | What::List | What::Search | What::Write | What::Edit));
        let inside = |path: String| Resolved::of(self.folder.as_deref(), &path).is_ok_and(|path| path.is_inside());
        of_files && !subject::paths(tool, arguments).is_ok_and(|paths| paths.into_iter().all(inside))
    }

    /// The same rules for who must change nothing by tools of its own, whatever they say.
    pub(crate) fn only_looking(self) -> Self {
        Self { readonly: true, ..self }
    }

    /// What `self` has of agents' own tools that `other` has not, or may call more of: names for a message. `agent` is
    /// whether the other one is an agent's at all.
    pub(crate) fn own_beyond(&self, other: &Self, agent: bool) -> Vec<String> {
        let asked = self.allow.iter().flatten().chain(&self.by_rules);
        // What only looks, the host has tools for, which are compared as such.
        let asked =
            asked.filter(|entry| entry.is_all() || (reads(&entry.name).is_none() && grants::is_foreign(&entry.name)));
        let more = asked.filter(|entry| {
            let tool = ToolName::of_agent(&entry.name);
            let has_all = || other.allow.iter().flatten().any(|own| own.is_all() && own.patterns.is_empty());
            let has = if entry.is_all() { has_all() } else { other.gives_own(tool) && !self.is_wider(other, tool) };
            !(agent && has && (self.readonly || !other.readonly))
        });
        more.map(|entry| entry.written.clone()).collect()
    }

    /// Whether the definition gives a tool of an agent's own, without asking anybody about all of its calls.
    fn gives_own(&self, tool: ToolName<'_>) -> bool {
        let given = self.allow.iter().flatten().chain(&self.by_rules).any(|entry| self.stands_for(entry, tool));
        let denied = self.deny.iter().any(|entry| !self.is_held(entry, tool) && self.names(entry, tool));
        given && !denied && !self.takes(tool)
    }
}

#[cfg(test)]
mod tests;
