//! The tools of one run: those of the host and the app, and those of tool servers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Mutex;

use assistant_protocol::ids::MessageId;
use assistant_protocol::types::ToolSpec;
use serde_json::json;

use crate::events::Kind;
use crate::host::Host;
use crate::process_table::{Process, ProfileName};
use crate::registry::Definition;
use crate::servers::{ServedTool, Servers};
use crate::tools::blobs::READ_BLOB;
use crate::tools::grants::{self, Unavailable};
use crate::tools::policy::{Policy, ToolName, Why};
use crate::tools::profile::subagents;
use crate::tools::{is_of_files, lacking_title};

use super::answer::Answering;
use super::link::Link;

/// Names of tools that one server has not which are told.
const LACKING_MAX: usize = 20;
/// Why a tool is no tool of an assistant that must change nothing.
const READ_ONLY: &str = "the assistant is read-only, and the server does not say that this tool changes nothing";

/// What a run can call.
#[derive(Default)]
pub(super) struct Kit {
    pub(super) policy: Policy,
    /// The same rules for what works in the folder of the project, wherever the process works.
    in_project: Policy,
    pub(super) servers: Servers,
    /// What was consented to for the rest of the run: tools with the rules that ask.
    pub(super) consents: Mutex<BTreeSet<(String, Why)>>,
    /// Questions about calls that nobody has answered yet, by tool and arguments.
    pub(super) asked: Mutex<BTreeMap<(String, String), MessageId>>,
    items: Vec<Item>,
    /// Tools of its servers that it is not offered, by the name that a model would call: why.
    withheld: BTreeMap<String, String>,
}

/// One tool of a run.
pub(super) struct Item {
    /// As the model sees it.
    pub(super) spec: ToolSpec,
    /// The server that carries it out; none is the host.
    pub(super) served: Option<ServedTool>,
    /// It is nobody's grant: a model is offered it as soon as its process has a blob, and reads no more by it than that.
    pub(super) for_blobs: bool,
    /// The granted tool that it stands on, where it is one of the profile `subagents`.
    pub(super) on: Option<&'static str>,
}

impl Item {
    /// Its name as rules speak of it.
    pub(super) fn name(&self) -> ToolName<'_> {
        match &self.served {
            Some(served) => ToolName { server: Some(&served.server), tool: &served.tool },
            None => ToolName { server: None, tool: self.on.unwrap_or(&self.spec.name) },
        }
    }
}

impl Kit {
    /// What the host and the app give to a process; nothing is started. By which tools it asks and tells, the profile of
    /// its session says.
    /// An `agent` has its own tools that look at files.
    pub(super) fn own(host: &Host, row: &Process, definition: &Definition, profile: ProfileName, agent: bool) -> Self {
        let granted = |name: &String| {
            let has = agent && is_of_files(name);
            host.tools().iter().find(|tool| tool.name == **name).filter(|_| !has)
        };
        let item = |tool: &crate::tools::Tool| Item {
            spec: ToolSpec {
                name: tool.name.to_string(),
                description: tool.description.clone(),
                input_schema: tool.input_schema.clone(),
            },
            served: None,
            for_blobs: false,
            on: None,
        };
        let of_profile = match profile {
            ProfileName::Subagents => subagents::of_run(&row.tools, host.limits()),
            ProfileName::Orchestrator | ProfileName::Single => Vec::new(),
        };
        let replaced = |tool: &&crate::tools::Tool| !of_profile.iter().any(|(spec, _)| spec.name == tool.name);
        let mut items: Vec<Item> = row.tools.iter().filter_map(granted).filter(replaced).map(item).collect();
        let of_profile = of_profile.into_iter();
        items.extend(of_profile.map(|(spec, on)| Item { spec, served: None, for_blobs: false, on: Some(on) }));
        // Whoever denies all tools denies what shows their results, too.
        let denied = |name: &String| grants::denies(name, READ_BLOB, host.tool_aliases());
        if !row.tools.iter().any(|name| name == READ_BLOB) && !definition.disallowed_tools.iter().any(denied) {
            let read_blob = host.tools().iter().find(|tool| tool.name == READ_BLOB);
            items.extend(read_blob.map(|tool| Item { for_blobs: true, ..item(tool) }));
        }
        let policy = Policy::of(definition, host.tool_aliases());
        let folder = row.working_dir.clone().map(PathBuf::from);
        Self {
            in_project: policy.clone().within(host.project().map(PathBuf::from).or_else(|| folder.clone())),
            policy: policy.within(folder),
            servers: Servers::default(),
            consents: Mutex::default(),
            asked: Mutex::default(),
            items,
            withheld: BTreeMap::new(),
        }
    }

    /// The rules for calls of a tool.
    pub(super) fn policy_of(&self, item: &Item) -> &Policy {
        match &item.served {
            Some(served) if self.servers.is_shared(&served.server) => &self.in_project,
            _ => &self.policy,
        }
    }

    /// Adds the tools of the servers that the definition names, and starts them where they do not run. What cannot be had
    /// is told in the log, and given back with the reason.
    pub(super) async fn with_servers(mut self, link: &Link, definition: &Definition) -> (Self, Vec<Unavailable>) {
        self.servers = Servers::of(&link.host, &link.row, definition, link.is_agent()).await;
        let taken = self.items.iter().map(|item| item.spec.name.as_str()).collect();
        let (served, failed) = self.servers.tools(&link.host, &taken).await;
        let told = failed.len();
        for (server, why) in &failed {
            link.record(Kind::Server, json!({ "server": server, "what": why, "failed": true })).await;
        }
        let mut beside: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
        for one in &served {
            beside.entry(&one.server).or_default().push((&one.tool, &one.name));
        }
        let offers = |one: &ServedTool| {
            let tool = ToolName { server: Some(&one.server), tool: &one.tool };
            self.policy.offers_beside(tool, &one.name, &beside[one.server.as_str()])
        };
        let changes = |one: &ServedTool| definition.readonly && !one.read_only;
        let offered: Vec<bool> = served.iter().map(|one| offers(one) && !changes(one)).collect();
        let mut lacking: Vec<Unavailable> =
            failed.into_iter().map(|(server, why)| Unavailable { tool: lacking_title(&server), why }).collect();
        for (server, tools) in &beside {
            let tools: Vec<&str> = tools.iter().map(|(tool, _)| *tool).collect();
            let why = format!("the server `{server}` has no such tool");
            let without = self.policy.without(server, &tools).into_iter().take(LACKING_MAX);
            lacking.extend(without.map(|tool| Unavailable { tool, why: why.clone() }));
            let changing = served.iter().filter(|one| one.server == *server && offers(one) && changes(one)).count();
            if changing > 0 {
                let why = format!(
                    "this assistant is read-only, and {changing} of the {} tools of this server do not say that they change \
                     nothing",
                    tools.len()
                );
                lacking.push(Unavailable { tool: lacking_title(server), why });
            }
        }
        for one in lacking.iter().skip(told) {
            link.record(Kind::Server, json!({ "server": one.tool, "what": one.why })).await;
        }
        for (served, offered) in served.into_iter().zip(offered) {
            let name = served.name.clone();
            if !offered {
                let tool = ToolName { server: Some(&served.server), tool: &served.tool };
                let why = self.policy.withholds(tool).or_else(|| changes(&served).then(|| READ_ONLY.to_owned()));
                self.withheld.extend(why.map(|why| (name, why)));
                continue;
            }
            let (description, input_schema) = (served.description.clone(), served.input_schema.clone());
            let spec = ToolSpec { name, description, input_schema };
            self.items.push(Item { spec, served: Some(served), for_blobs: false, on: None });
        }
        (self, lacking)
    }

    /// The rule by which there is no tool of this name for the assistant, though the host or a server of it has one.
    pub(super) fn withholds(&self, host: &Host, name: &str) -> Option<String> {
        let own = host.tools().iter().any(|tool| tool.name == name);
        let of_host = || self.policy.withholds(ToolName { server: None, tool: name });
        self.withheld.get(name).cloned().or_else(|| own.then(of_host).flatten())
    }

    /// Adds the tool by which a result is handed in that has to fit a schema; no rule of the definition takes it away.
    pub(super) fn with_answer(mut self, answering: Option<&Answering>) -> Self {
        let item = |spec| Item { spec, served: None, for_blobs: false, on: None };
        self.items.extend(answering.map(|answering| item(answering.tool())));
        self
    }

    /// The tool of this name.
    pub(super) fn find(&self, name: &str) -> Option<&Item> {
        let named = |name: &str| self.items.iter().find(|item| item.spec.name == name);
        named(name).or_else(|| named(subagents::listed_as(name)?).filter(|item| item.on.is_some()))
    }

    /// What a runner is told of its tools.
    pub(super) fn specs(&self) -> Vec<ToolSpec> {
        self.listed().map(|item| item.spec.clone()).collect()
    }

    /// What comes to these tools of a model call as soon as the process has a blob.
    pub(super) fn for_blobs(&self, asked: &[ToolSpec]) -> Option<ToolSpec> {
        let item = self.items.iter().find(|item| item.for_blobs)?;
        // A runner that asks without the tools that it has wants none to be called.
        let wants_tools = !asked.is_empty() || self.listed().next().is_none();
        (wants_tools && !asked.iter().any(|tool| tool.name == item.spec.name)).then(|| item.spec.clone())
    }

    fn listed(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(|item| !item.for_blobs)
    }

    /// All names, for words about them.
    pub(super) fn names(&self) -> String {
        self.listed().map(|item| item.spec.name.as_str()).collect::<Vec<_>>().join(", ")
    }
}
