//! What there is to know of a command-line agent.

use std::ffi::OsString;
use std::io;

use assistant_protocol::error::RpcError;
use assistant_protocol::types::{AgentEvent, Usage};
use serde_json::{Map, Value, json};

use crate::adapter::TurnEnd;
use crate::adapter::bridge::McpServer;
use crate::adapter::folder::Folder;
use crate::adapter::literal::Mentions;
use crate::adapter::process::Exit;
use crate::adapter::run::Run;

/// One agent: a row of a table.
pub(super) struct Kind {
    /// What a configuration calls it.
    pub(super) name: &'static str,
    /// What people call it.
    pub(super) title: &'static str,
    /// Its program.
    pub(super) program: &'static str,
    /// Variables that tell where its own files are.
    pub(super) places: &'static [&'static str],
    /// It asks for permission by a tool of the way back.
    pub(super) asks_permission: bool,
    /// What of a prompt it would take for files.
    pub(super) mentions: Mentions,
    /// How a user logs in.
    pub(super) login: &'static str,
    /// It reads its settings only below folders that nobody else can write to, as a folder for temporary files is not.
    pub(super) settings_at_home: bool,
    /// How it is started for a turn.
    pub(super) plan: fn(&Start<'_>) -> io::Result<Plan>,
    /// What reads its output of a turn.
    pub(super) reader: fn(&Start<'_>) -> Box<dyn Reader>,
    /// What a session has used by now, where the agent keeps that; by its variables and the id of the session.
    pub(super) used: fn(&Env, &str) -> Option<Usage>,
}

/// Variables with their values.
pub(super) type Env = [(OsString, OsString)];

/// What a turn is started with.
#[derive(Clone, Copy)]
pub(super) struct Start<'a> {
    /// Who the agent is to be, and with what.
    pub(super) run: &'a Run,
    /// Where private files are.
    pub(super) folder: &'a Folder,
    /// The session to go on with.
    pub(super) session: Option<&'a str>,
    /// The way back.
    pub(super) server: &'a McpServer,
    /// What the session used so far, where that is known.
    pub(super) used: Option<Usage>,
}

/// How a program is started for a turn; the prompt goes to its stdin.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Its arguments.
    pub(super) args: Vec<OsString>,
    /// Its variables, beside those that it gets anyway.
    pub(super) env: Vec<(OsString, OsString)>,
    /// What stands before the prompt, where the agent takes no system prompt otherwise.
    pub(super) before_prompt: Option<String>,
    /// What cannot be passed on, and why.
    pub(super) lacks: Vec<(String, String)>,
}

impl Plan {
    /// Adds an argument.
    pub(super) fn arg(&mut self, arg: impl Into<OsString>) -> &mut Self {
        self.args.push(arg.into());
        self
    }

    /// Adds a variable.
    pub(super) fn env(&mut self, name: &str, value: impl Into<OsString>) -> &mut Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Adds what cannot be passed on.
    pub(super) fn lacks(&mut self, what: impl Into<String>, why: impl Into<String>) -> &mut Self {
        self.lacks.push((what.into(), why.into()));
        self
    }
}

/// What a line of an agent's output tells.
#[derive(Debug)]
pub(super) enum Told {
    /// Something that the host is to know.
    Event(AgentEvent),
    /// It asks its model again.
    Waits {
        /// What it tells of that.
        text: String,
        /// Nothing answers it.
        unreached: bool,
    },
    /// The session that the agent works in.
    Session(String),
    /// The turn is done: the program is to exit now.
    Done,
    /// The turn has failed, whatever the program still tries.
    Failed(RpcError),
}

/// Reads the output of one turn.
pub(super) trait Reader: Send {
    /// Takes a line, and gives what it tells.
    fn line(&mut self, line: &Value) -> Vec<Told>;

    /// What it has said last, as far as it has come.
    fn said(&self) -> &str;

    /// What the session has used by now, for agents that tell no more than that.
    fn used(&self) -> Option<Usage> {
        None
    }

    /// What is to be told where the turn fails or is given up: that something was used whose cost is not known.
    fn unpaid(&self) -> Option<AgentEvent>;

    /// How the turn has ended: called once, when the program has exited.
    fn end(&mut self, exit: &Exit) -> Result<TurnEnd, RpcError>;
}

/// A text of an object.
pub(super) fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value[name].as_str()
}

/// A server as most settings in JSON have it.
pub(super) fn mcp_server(server: &McpServer) -> Value {
    let env: Map<_, _> =
        server.env.iter().map(|(name, value)| ((*name).to_owned(), Value::from(value.as_str()))).collect();
    json!({ "command": server.command, "args": server.args, "env": env })
}
