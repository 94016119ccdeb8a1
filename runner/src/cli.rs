//! `assistant-runner cli NAME`: an assistant that a command-line agent runs, with its own model, tools and login. In
//! reading order:
//!
//! * [`kind`]: what there is to know of an agent: how it is started, fed, read, resumed;
//! * [`claude`] and its neighbours: one each;
//! * `turn`: one run of the agent's program; `wishes`: the tools that a definition wants, whatever its author calls them;
//! * `failures`: why an agent failed, as far as it tells.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use assistant_protocol::error::{Kind as ErrorKind, RpcError};
use assistant_protocol::types::{AgentEvent, Usage};

use crate::adapter::bridge::Bridge;
use crate::adapter::environment;
use crate::adapter::folder::Folder;
use crate::adapter::own::Own;
use crate::adapter::process::Process;
use crate::adapter::{Agent, Prompt, Run, TurnEnd};
use crate::modes::Started;

mod claude;
mod codex;
mod failures;
mod gemini;
mod kind;
mod opencode;
mod reach;
mod tokens;
mod turn;
pub(crate) mod wishes;

pub(crate) use claude::tools as claude_tools;
use kind::{Kind, Reader};
use turn::Calls;

/// The agents that there are.
const KINDS: [&Kind; 4] = [&claude::KIND, &codex::KIND, &opencode::KIND, &gemini::KIND];

/// A command-line agent as an assistant.
pub(crate) struct CliAgent {
    kind: &'static Kind,
    own: Own,
    /// The program, found.
    program: PathBuf,
    /// Further arguments that the host's configuration gives.
    more: Vec<OsString>,
    /// What it gets of the environment.
    env: Vec<(OsString, OsString)>,
    folder: Folder,
    /// Its way back, once it was started.
    bridge: Option<Bridge>,
    /// Its session, once it has told.
    session: Option<String>,
    /// What the session has used, where that is known.
    used: Option<Usage>,
    /// What cannot be passed on was told.
    told: bool,
    /// It was told that the agent has not come for its tools.
    told_without_tools: bool,
    process: Option<Process>,
    /// What reads the output of a turn that goes on, or was not ended by its answer.
    reader: Option<Box<dyn Reader>>,
    calls: Calls,
}

/// The agent that the arguments of the mode ask for, with the name that its runner has.
///
/// # Errors
/// What is wrong with the arguments, in words.
pub(crate) fn agent(args: &[OsString], started: Started) -> Result<(CliAgent, String), String> {
    let asked = asked(args)?;
    let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
    let Some(kind) = KINDS.into_iter().find(|kind| asked.name == kind.name) else {
        let name = asked.name.display();
        return Err(format!("assistant-runner knows no command-line agent `{name}`; there are {}", names.join(", ")));
    };
    let program = asked.program.unwrap_or_else(|| kind.program.into());
    let program = found(&program, &started.env).ok_or_else(|| {
        let program = program.display();
        format!("`{program}` is not there, or not on PATH: install {}, or tell where it is by `program` in the configuration of the host", kind.title)
    })?;
    let place = if kind.settings_at_home { at_home(&started.env)? } else { started.temporary };
    let env = environment::of_agent(started.env, kind.places, &asked.env);
    let folder = Folder::make(&place).map_err(|error| format!("cannot make a private folder: {error}"))?;
    let name = format!("assistant-runner cli {}", kind.name);
    let own = started.own;
    let (more, session, process) = (asked.more, None, None);
    Ok((
        CliAgent {
            kind,
            own,
            program,
            more,
            env,
            folder,
            bridge: None,
            session,
            used: Some(Usage::default()),
            told: false,
            told_without_tools: false,
            process,
            reader: None,
            calls: Calls::default(),
        },
        name,
    ))
}

/// A folder in the home of the user for files that can be lost.
fn at_home(env: &[(OsString, OsString)]) -> Result<PathBuf, String> {
    let value = |name: &str| env.iter().find(|(given, _)| given == name).map(|(_, value)| PathBuf::from(value));
    let cache = value("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    let cache = cache.or_else(|| value("HOME").filter(|path| path.is_absolute()).map(|home| home.join(".cache")));
    let cache = cache.ok_or("the agent needs HOME, the folder of the user, which its runner was not given")?;
    std::fs::create_dir_all(&cache).map_err(|error| format!("cannot make {}: {error}", cache.display()))?;
    match others_write_to(&cache) {
        None => Ok(cache),
        Some(open) => Err(format!(
            "the agent takes no settings from {}, because others may write to {}: `chmod go-w` it, or set XDG_CACHE_HOME \
             to a folder that is yours alone",
            cache.display(),
            open.display()
        )),
    }
}

/// The folder, of a path and those above it, that others than its owner may write to.
fn others_write_to(path: &Path) -> Option<&Path> {
    use std::os::unix::fs::PermissionsExt;
    let open = |folder: &&Path| std::fs::metadata(folder).is_ok_and(|about| about.permissions().mode() & 0o022 != 0);
    path.ancestors().find(open)
}

/// What the arguments say.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    name: OsString,
    program: Option<PathBuf>,
    env: Vec<OsString>,
    more: Vec<OsString>,
}

fn asked(args: &[OsString]) -> Result<Asked, String> {
    let [name, rest @ ..] = args else {
        return Err(
            "assistant-runner cli wants the name of an agent: `cli NAME [--program PATH] [--env VAR]… [-- ARGS]`"
                .to_owned(),
        );
    };
    let mut asked = Asked { name: name.clone(), ..Asked::default() };
    let mut rest = rest.iter();
    while let Some(option) = rest.next() {
        let mut value = || rest.next().cloned().ok_or_else(|| format!("`{}` wants a value", option.display()));
        match option.to_str() {
            Some("--program") => asked.program = Some(value()?.into()),
            Some("--env") => asked.env.push(value()?),
            Some("--") => asked.more = rest.by_ref().cloned().collect(),
            Some(_) | None => {
                return Err(format!(
                    "assistant-runner cli takes `--program PATH`, `--env VAR` and `-- ARGS`, not `{}`",
                    option.display()
                ));
            }
        }
    }
    Ok(asked)
}

/// A program by its path, or on PATH.
pub(crate) fn found(program: &Path, env: &[(OsString, OsString)]) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| std::path::absolute(program).ok()).flatten();
    }
    let path = env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value)?;
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(program)).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

impl Agent for CliAgent {
    async fn turn(&mut self, run: &Run, prompt: Prompt) -> Result<TurnEnd, RpcError> {
        if self.session.is_none() {
            self.session.clone_from(&run.brief().session);
            if self.session.is_some() {
                // Another runner has begun it.
                self.used = self.kept();
            }
        }
        self.take_turn(run, prompt).await
    }

    async fn stop(&mut self, grace: Duration) -> Option<AgentEvent> {
        if let Some(mut process) = self.process.take() {
            process.end(grace).await;
        }
        let reader = self.reader.take()?;
        let (told, kept) = (reader.used(), self.kept());
        self.used = kept.or(told);
        let unpaid = reader.unpaid();
        let new = told.zip(kept).map(|(told, kept)| tokens::rest(kept, told));
        let new = new.filter(|new| new.input_tokens.unwrap_or(0) + new.output_tokens.unwrap_or(0) > 0);
        let Some(usage) = new else { return unpaid };
        let calls = if let Some(AgentEvent::Usage { calls, .. }) = unpaid { calls } else { 0 };
        Some(AgentEvent::Usage { usage, calls, cost_usd: None, model: None })
    }
}

impl CliAgent {
    /// What its session has used by now, for agents that keep that where it can be read.
    fn kept(&self) -> Option<Usage> {
        self.session.as_deref().and_then(|session| (self.kind.used)(&self.env, session))
    }
}

/// An error of the adapter's own.
fn internal(text: impl Into<String>) -> RpcError {
    RpcError::new(ErrorKind::InternalError, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_by_its_whole_name() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["agent", "agent.py"] {
            std::fs::write(folder.path().join(name), "x").expect("writes");
            let may = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(folder.path().join(name), may).expect("is allowed");
        }
        let env = [("PATH".into(), folder.path().into())];
        for name in ["agent", "agent.py", "agent.rb"] {
            let want = (name != "agent.rb").then(|| folder.path().join(name));
            assert_eq!(found(Path::new(name), &env), want, "{name}");
        }
    }

    #[test]
    fn arguments_are_read_and_refused_in_words() {
        let args = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let got = asked(&args("claude --program /a/claude --env A --env B -- --effort low --env C")).expect("fits");
        let want = Asked {
            name: "claude".into(),
            program: Some("/a/claude".into()),
            env: args("A B"),
            more: args("--effort low --env C"),
        };
        assert_eq!(got, want);
        let refused = |text: &str| asked(&args(text)).expect_err("refused");
        assert_eq!(refused("claude --env"), "`--env` wants a value");
        assert_eq!(
            refused("claude x"),
            "assistant-runner cli takes `--program PATH`, `--env VAR` and `-- ARGS`, not `x`"
        );
        assert!(asked(&[]).is_err());
    }
}
