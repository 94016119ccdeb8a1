//! `assistant-runner acp -- PROGRAM ARGS…`: an assistant that an agent of the Agent Client Protocol runs, with its own
//! model, tools and login. The agent's process lives as long as this one, and its session is kept from run to run. In
//! reading order:
//!
//! * [`AcpAgent`]: one such assistant; `live`: its process, once it is started, and how its session begins;
//!   `loss`: what is told of one that did not do so;
//! * `wishes`: model and mode, where the agent offers a choice; `said`: a prompt in the protocol's words;
//! * `turn`: one prompt until its answer; `story`: what the agent does meanwhile; `permission`: what it asks for;
//! * `heard`: what it says in the words of our own protocol; `calls`: calls of its own tools by the names that definitions have
//!   for such;
//! * `link`: JSON-RPC with bounds; `odd`: what it writes that is none.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::v1::schema::SessionId;
use assistant_protocol::error::{Kind, RpcError};
use assistant_protocol::types::AgentEvent;
use tokio::time::timeout;

use crate::adapter::bridge::{Bridge, McpServer};
use crate::adapter::folder::Folder;
use crate::adapter::ids::Ids;
use crate::adapter::own::Own;
use crate::adapter::process::Launch;
use crate::adapter::{Agent, Prompt, Run, TurnEnd, environment};
use crate::cli;
use crate::modes::Started;

mod live;

mod loss;

mod wishes;

mod said;

mod turn;

mod permission;

mod story;

mod heard;

mod calls;

mod link;

mod odd;

use live::Live;

/// Where agents keep their configuration and their login.
const PLACES: &[&str] = &[
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "GEMINI_CLI_HOME",
    "GOOSE_PATH_ROOT",
    "OPENCODE_CONFIG",
    "OPENCODE_CONFIG_DIR",
];

/// An agent of the Agent Client Protocol as an assistant.
pub(crate) struct AcpAgent {
    own: Own,
    /// The program, found.
    program: PathBuf,
    args: Vec<OsString>,
    /// What it gets of the environment.
    env: Vec<(OsString, OsString)>,
    folder: Folder,
    /// Its way back, once it was started.
    bridge: Option<Arc<Bridge>>,
    /// The calls that it was told to have made.
    ids: Ids,
    /// It was told that the agent has not come for its tools.
    told_without_tools: bool,
    live: Option<Live>,
    /// Its session, once there is one: to be gone on with where the agent has to be started again.
    session: Option<SessionId>,
}

/// The agent that the arguments of the mode ask for, with the name that its runner has.
///
/// # Errors
/// What is wrong with the arguments, in words.
pub(crate) fn agent(args: &[OsString], started: Started) -> Result<(AcpAgent, String), String> {
    let Asked { env, command } = asked(args)?;
    let [first, args @ ..] = command.as_slice() else {
        return Err(WANTS.to_owned());
    };
    let shown = first.display();
    let program = cli::found(first.as_ref(), &started.env).ok_or_else(|| {
        format!("`{shown}` is not there, or not on PATH: it is to be an agent of the Agent Client Protocol")
    })?;
    let env = environment::of_agent(started.env, PLACES, &env);
    let folder = Folder::make(&started.temporary).map_err(|error| format!("cannot make a private folder: {error}"))?;
    let name = format!("assistant-runner acp {}", program.file_name().unwrap_or_default().display());
    let (own, args) = (started.own, args.to_vec());
    Ok((
        AcpAgent {
            own,
            program,
            args,
            env,
            folder,
            bridge: None,
            ids: Ids::default(),
            told_without_tools: false,
            live: None,
            session: None,
        },
        name,
    ))
}

/// What the mode takes.
const WANTS: &str = "assistant-runner acp wants the command of an agent: `acp [--env VAR]… -- PROGRAM ARGS…`";

/// What the arguments say.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    env: Vec<OsString>,
    command: Vec<OsString>,
}

fn asked(args: &[OsString]) -> Result<Asked, String> {
    let mut env = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.to_str() {
            Some("--") => return Ok(Asked { env, command: args.cloned().collect() }),
            Some("--env") => env.push(args.next().cloned().ok_or("`--env` wants the name of a variable")?),
            Some(_) | None => {
                return Err(format!(
                    "assistant-runner acp takes `--env VAR` and `-- PROGRAM ARGS`, not `{}`",
                    arg.display()
                ));
            }
        }
    }
    Err(WANTS.to_owned())
}

impl Agent for AcpAgent {
    async fn turn(&mut self, run: &Run, prompt: Prompt) -> Result<TurnEnd, RpcError> {
        let bridge = match &self.bridge {
            Some(bridge) => bridge.clone(),
            None => {
                let opened = Bridge::open(self.folder.path(), (self.own.program.clone(), self.own.leading.clone()));
                let opened =
                    opened.map_err(|error| internal(format!("there is no way back for the agent: {error}")))?;
                self.bridge.insert(Arc::new(opened)).clone()
            }
        };
        // It asks for permission by the protocol, and not by a tool.
        let ended = run.with_tools(&bridge, false, self.take_turn(run, prompt, bridge.server())).await?;
        if !run.tools().is_empty() && !bridge.was_found() && !std::mem::replace(&mut self.told_without_tools, true) {
            run.lacks(
                "the assistant's tools",
                "the agent has not started the server that it was told of: it may take none, or none in a folder that it does \
                 not trust",
            )
            .await?;
        }
        Ok(ended)
    }

    async fn stop(&mut self, grace: Duration) -> Option<AgentEvent> {
        let mut live = self.live.take()?;
        let used = match timeout(grace, live.cancelled()).await {
            Ok(used) if !grace.is_zero() && !live.link.has_ended() => {
                self.live = Some(live);
                return used;
            }
            Ok(used) => used,
            Err(_) => Some(turn::unknown()),
        };
        live.process.end(Duration::ZERO).await;
        used
    }
}

impl AcpAgent {
    async fn take_turn(&mut self, run: &Run, prompt: Prompt, server: &McpServer) -> Result<TurnEnd, RpcError> {
        if let Some(live) = &mut self.live
            && let Some(how) = live.how_it_ended().await
        {
            self.live = None;
            let why = format!("it {how}; it is started again, with its session where it can");
            run.lacks("the agent's process", why).await?;
        }
        let live = match &mut self.live {
            Some(live) => live,
            None => {
                let live = self.start(run, server).await?;
                self.live.insert(live)
            }
        };
        live.turn(run, prompt, &self.ids).await
    }

    /// Starts the agent, and begins its session or goes on with it.
    async fn start(&mut self, run: &Run, server: &McpServer) -> Result<Live, RpcError> {
        let failed = |error: std::io::Error| internal(format!("cannot start {}: {error}", self.program.display()));
        let brief = run.brief();
        let dir = match &brief.working_dir {
            Some(dir) => dir.into(),
            None => self.folder.folder("work").map_err(failed)?,
        };
        let launch = Launch { program: self.program.clone(), args: self.args.clone(), env: self.env.clone(), dir };
        let session = self.session.clone().or_else(|| brief.session.as_deref().map(SessionId::new));
        let live = Live::start(&self.own, &launch, run, server, session).await?;
        self.session = Some(live.session.clone());
        Ok(live)
    }
}

/// An error of the adapter's own, or of an agent that does not do what the protocol says.
fn internal(text: impl Into<String>) -> RpcError {
    RpcError::new(Kind::InternalError, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_and_refused_in_words() {
        let args = |text: &str| text.split_terminator(' ').map(OsString::from).collect::<Vec<_>>();
        let got = asked(&args("--env A --env B -- gemini --acp --env C")).expect("fits");
        assert_eq!(got, Asked { env: args("A B"), command: args("gemini --acp --env C") });
        let refused = |text: &str| asked(&args(text)).expect_err("refused");
        assert_eq!(refused(""), WANTS);
        assert_eq!(refused("--env"), "`--env` wants the name of a variable");
        assert_eq!(refused("x"), "assistant-runner acp takes `--env VAR` and `-- PROGRAM ARGS`, not `x`");
    }
}
