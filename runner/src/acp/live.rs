//! An agent's process, from its start to its session.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, AuthMethod, ClientCapabilities, EnvVariable, Implementation, InitializeRequest,
    InitializeResponse, LoadSessionRequest, McpServer as Server, McpServerStdio, Meta, NewSessionRequest, SessionId,
    SessionUpdate, SystemPrompt,
};
use assistant_protocol::error::{Kind, RpcError};
use assistant_protocol::types::AgentEvent;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::internal;
use super::link::{AskError, Heard, Link};
use super::loss::{gone, how_it_ended, lost, wants_login};
use super::odd::Oddities;
use super::said::text_block;
use super::wishes;
use crate::adapter::Run;
use crate::adapter::bridge::{McpServer, SERVER_NAME};
use crate::adapter::literal::Mentions;
use crate::adapter::own::Own;
use crate::adapter::process::{Launch, Process};

/// How long an agent may take from its start to its answer to `initialize`, in milliseconds.
const INITIALIZE_MS: u64 = 60_000;
/// How long it may take to begin a session, or to go on with one, in milliseconds: it may start servers for it.
const SESSION_MS: u64 = 180_000;
/// How long an agent has to be quiet, in milliseconds, until it counts as done with repeating a session.
const REPEATS_QUIET_MS: u64 = 100;
/// How long that is waited for, in milliseconds.
const REPEATS_MS: u64 = 5_000;
/// The code of the error by which an agent tells that it wants a login.
const WANTS_LOGIN: i32 = -32_000;

/// A prompt that waits for its answer.
pub(super) type Prompting = Pin<Box<dyn Future<Output = Result<Value, AskError>> + Send>>;

/// An agent that has a session.
pub(super) struct Live {
    pub(super) process: Process,
    pub(super) link: Arc<Link>,
    pub(super) session: SessionId,
    /// What it says in a turn.
    pub(super) heard: Option<mpsc::Receiver<Heard>>,
    /// It takes pictures.
    pub(super) takes_images: bool,
    /// What of a prompt it would take for files.
    pub(super) mentions: Mentions,
    /// Nothing was said in its session so far: the assistant's own prompt, to be put before the first task.
    pub(super) instructions: Option<String>,
    /// Its session is one that it has gone on with: it knows what was said before.
    pub(super) knows_earlier: bool,
    /// What its session has cost that is told already, in US dollars; not known of one that it has gone on with, for some
    /// agents count from its beginning and some do not.
    pub(super) cost_told: Option<f64>,
    /// What was odd of it that is told already.
    pub(super) odd_told: Oddities,
    /// Where it works.
    pub(super) dir: PathBuf,
    /// A turn that has no answer yet; kept here, so that it can be waited for when the turn is given up.
    pub(super) prompting: Option<Prompting>,
}

impl Live {
    /// Starts an agent, and goes on with `session` where there is one and the agent can.
    ///
    /// # Errors
    /// In words: what it did, how it ended, and what is to be done.
    pub(super) async fn start(
        own: &Own,
        launch: &Launch,
        run: &Run,
        server: &McpServer,
        session: Option<SessionId>,
    ) -> Result<Self, RpcError> {
        let program = launch.program.display().to_string();
        let mut process =
            Process::start(own, launch).map_err(|error| internal(format!("cannot start {program}: {error}")))?;
        let (Some(stdin), Some(stdout)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(internal("the agent was started without pipes"));
        };
        let link = match Link::open(stdin, stdout).await {
            Ok(link) => Arc::new(link),
            Err(error) => return Err(internal(error.to_string())),
        };
        let begun = async {
            let greeted = greet(&link).await?;
            begin(&link, &greeted, launch, run, server, session).await
        };
        let begun = tokio::select! {
            biased;
            begun = begun => begun,
            () = gone(&mut process) => Err(Failure::Ask("its session", AskError::Gone("the agent closed its output".to_owned()))),
        };
        let begun = match begun {
            Ok(begun) => begun,
            Err(Failure::Told(error)) => return Err(error),
            Err(Failure::Login(methods)) => return Err(wants_login(launch, &methods)),
            Err(Failure::Ask(doing, error)) => return Err(lost(&mut process, &link, doing, &error).await),
            Err(Failure::Late(doing, ms)) => {
                let text = format!("did not answer within {} seconds", ms / 1_000);
                return Err(lost(&mut process, &link, doing, &AskError::Gone(format!("the agent {text}"))).await);
            }
        };
        run.tell(AgentEvent::Session { session_id: begun.session.to_string() }).await?;
        let mut live = Self {
            process,
            heard: None,
            link,
            session: begun.session,
            takes_images: begun.takes_images,
            mentions: if begun.is_claude { Mentions::BehindBlanks } else { Mentions::Never },
            instructions: begun.instructions,
            knows_earlier: begun.knows_earlier,
            cost_told: begun.cost_usd,
            odd_told: Oddities::default(),
            dir: launch.dir.clone(),
            prompting: None,
        };
        match wishes::fulfil(&live.link, &live.session, &begun.offers, begun.is_claude, run).await {
            Ok(()) => Ok(live),
            Err(wishes::Failure::Told(error)) => Err(error),
            Err(wishes::Failure::Ask(error)) => Err(live.lost("its session", &error).await),
        }
    }

    /// How its process has ended, where it has. Its exit may be known before the end of its output has been read.
    pub(super) async fn how_it_ended(&mut self) -> Option<String> {
        if !self.link.has_ended() && !self.process.has_exited() {
            return None;
        }
        Some(how_it_ended(&mut self.process, "closed its output").await)
    }

    /// The error for an agent that failed at something: how it has ended, where it has.
    pub(super) async fn lost(&mut self, doing: &str, error: &AskError) -> RpcError {
        lost(&mut self.process, &self.link, doing, error).await
    }
}

/// Why there is no session.
enum Failure {
    /// A whole error already.
    Told(RpcError),
    /// It wants a login; the ways that it offers.
    Login(Vec<AuthMethod>),
    /// It did not do what it was asked.
    Ask(&'static str, AskError),
    /// It did not answer in time, milliseconds.
    Late(&'static str, u64),
}

impl From<RpcError> for Failure {
    fn from(error: RpcError) -> Self {
        Failure::Told(error)
    }
}

/// The versions and the capabilities of both.
async fn greet(link: &Link) -> Result<InitializeResponse, Failure> {
    let doing = "`initialize`";
    let request = InitializeRequest::new(ProtocolVersion::V1)
        // Its files and its terminals are its own.
        .client_capabilities(ClientCapabilities::default())
        .client_info(Implementation::new("assistant-runner", env!("CARGO_PKG_VERSION")));
    let asked = timeout(Duration::from_millis(INITIALIZE_MS), link.ask(&request));
    let answer = asked.await.map_err(|_| Failure::Late(doing, INITIALIZE_MS))?;
    let answer = answer.map_err(|error| Failure::Ask(doing, error))?;
    let version = answer.get("protocolVersion").cloned().unwrap_or_default();
    if version != ProtocolVersion::V1.as_u16() {
        let text =
            format!("the agent speaks version {version} of the Agent Client Protocol, and this runner version 1");
        return Err(Failure::Told(RpcError::new(Kind::UnsupportedProtocol, text)));
    }
    serde_json::from_value(answer).map_err(|error| unfit(doing, &error))
}

/// A session that has begun.
struct Begun {
    session: SessionId,
    /// What the agent offers for it, as it said.
    offers: Value,
    is_claude: bool,
    takes_images: bool,
    instructions: Option<String>,
    knows_earlier: bool,
    cost_usd: Option<f64>,
}

async fn begin(
    link: &Link,
    greeted: &InitializeResponse,
    launch: &Launch,
    run: &Run,
    server: &McpServer,
    session: Option<SessionId>,
) -> Result<Begun, Failure> {
    let can = &greeted.agent_capabilities;
    let takes_images = can.prompt_capabilities.image;
    let is_claude = wishes::is_claude(greeted.agent_info.as_ref());
    let meta = if is_claude { wishes::for_claude(run) } else { None };
    let servers: Vec<Server> = vec![named(server)];
    if let Some(session) = session {
        match load(link, can, &session, &launch.dir, &servers, meta.clone()).await {
            Ok((offers, cost_usd)) => {
                let (instructions, knows_earlier) = (None, true);
                return Ok(Begun { session, offers, is_claude, takes_images, instructions, knows_earlier, cost_usd });
            }
            Err(Failure::Ask(_, AskError::Answered(error))) if i32::from(error.code) == WANTS_LOGIN => {
                return Err(Failure::Login(greeted.auth_methods.clone()));
            }
            Err(Failure::Ask(_, error @ AskError::Answered(_))) => {
                let why = format!("the agent cannot go on with its session {session}: {error}; a new one is begun");
                run.lacks("its session", why).await?;
            }
            Err(other) => return Err(other),
        }
    }
    let prompt = run.assistant().system_prompt.trim();
    let takes_prompt = can.session_capabilities.system_prompt.is_some() && !prompt.is_empty();
    let mut request = NewSessionRequest::new(&launch.dir);
    (request.mcp_servers, request.meta) = (servers, meta);
    if takes_prompt {
        request.system_prompt = Some(SystemPrompt::new(vec![text_block(prompt)]));
    }
    let doing = "`session/new`";
    let mut answer = in_time(doing, link.ask(&request)).await?;
    if let (Err(AskError::Answered(error)), false) = (&answer, request.mcp_servers.is_empty())
        && i32::from(error.code) != WANTS_LOGIN
    {
        let why =
            format!("the agent refuses a session with the server of its tools ({}); it works without", error.message);
        request.mcp_servers = Vec::new();
        answer = in_time(doing, link.ask(&request)).await?;
        if answer.is_ok() {
            run.lacks(format!("tools of {SERVER_NAME}"), why).await?;
        }
    }
    let offers = answer.map_err(|error| match error {
        AskError::Answered(error) if i32::from(error.code) == WANTS_LOGIN => {
            Failure::Login(greeted.auth_methods.clone())
        }
        other => Failure::Ask(doing, other),
    })?;
    let session = match offers.get("sessionId").and_then(Value::as_str) {
        Some(id) if !id.is_empty() => SessionId::new(id),
        _ => return Err(Failure::Told(internal("the agent began a session without an id"))),
    };
    let instructions = (!takes_prompt && !prompt.is_empty()).then(|| prompt.to_owned());
    Ok(Begun { session, offers, is_claude, takes_images, instructions, knows_earlier: false, cost_usd: Some(0.0) })
}

/// Goes on with a session: what the agent offers for it, and what it has cost so far, where it tells. What the agent repeats of it is
/// known already.
async fn load(
    link: &Link,
    can: &AgentCapabilities,
    session: &SessionId,
    dir: &Path,
    servers: &[Server],
    meta: Option<Meta>,
) -> Result<(Value, Option<f64>), Failure> {
    let doing = "`session/load`";
    if !can.load_session {
        let error = agent_client_protocol::Error::method_not_found().data("it keeps no sessions");
        return Err(Failure::Ask(doing, AskError::Answered(error)));
    }
    let mut request = LoadSessionRequest::new(session.clone(), dir);
    (request.mcp_servers, request.meta) = (servers.to_vec(), meta);
    let mut heard = link.listen(session);
    let mut cost_usd = None;
    let mut repeats = |heard: Heard| {
        if let Heard::Update(update) = heard
            && let SessionUpdate::UsageUpdate(usage) = *update
        {
            cost_usd = usage.cost.map(|cost| cost.amount).or(cost_usd);
        }
    };
    let loading = async {
        let asked = link.ask(&request);
        tokio::pin!(asked);
        loop {
            tokio::select! {
                biased;
                Some(heard) = heard.recv() => repeats(heard),
                answer = &mut asked => return answer,
            }
        }
    };
    let answer = in_time(doing, loading).await?.map_err(|error| Failure::Ask(doing, error))?;
    // Some answer before they have repeated all of it, and nothing tells its end.
    let late = async {
        while let Ok(Some(heard)) = timeout(Duration::from_millis(REPEATS_QUIET_MS), heard.recv()).await {
            repeats(heard);
        }
    };
    let _ = timeout(Duration::from_millis(REPEATS_MS), late).await;
    Ok((answer, cost_usd))
}

async fn in_time<T>(doing: &'static str, asked: impl Future<Output = T>) -> Result<T, Failure> {
    timeout(Duration::from_millis(SESSION_MS), asked).await.map_err(|_| Failure::Late(doing, SESSION_MS))
}

fn unfit(doing: &str, error: &serde_json::Error) -> Failure {
    Failure::Told(internal(format!("the agent's answer to {doing} does not fit: {error}")))
}

/// The server of our tools in the protocol's words.
fn named(server: &McpServer) -> Server {
    let env = server.env.iter().map(|(name, value)| EnvVariable::new(*name, value.clone())).collect();
    Server::Stdio(McpServerStdio::new(SERVER_NAME, &server.command).args(server.args.clone()).env(env))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, duplex, split};

    use super::*;

    /// An agent that reads all and says nothing.
    async fn mute() -> (Link, tokio::task::JoinHandle<()>) {
        let (ours, theirs) = duplex(1024);
        let (stdout, stdin) = split(ours);
        let link = Link::open(stdin, stdout).await.expect("opens");
        let reading = tokio::spawn(async move {
            let (mut reader, _writer) = split(theirs);
            let mut buffer = [0; 1024];
            while reader.read(&mut buffer).await.is_ok_and(|bytes| bytes > 0) {}
        });
        (link, reading)
    }

    #[tokio::test(start_paused = true)]
    async fn an_agent_that_says_nothing_is_waited_for_as_long_as_the_bound_says() {
        let (link, _reading) = mute().await;
        let begun = tokio::time::Instant::now();
        assert!(matches!(greet(&link).await, Err(Failure::Late("`initialize`", INITIALIZE_MS))));
        assert_eq!(begun.elapsed().as_millis(), u128::from(INITIALIZE_MS));
        let session = SessionId::new("s1");
        let can = AgentCapabilities::default().load_session(true);
        let loaded = load(&link, &can, &session, Path::new("/"), &[], None).await;
        assert!(matches!(loaded, Err(Failure::Late("`session/load`", SESSION_MS))));
    }
}
