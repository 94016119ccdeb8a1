//! A server is started, and hands are shaken with it in the way of its era.

use std::sync::Arc;
use std::time::{Duration, Instant};

use assistant_protocol::ids::ProcessId;
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RunningService};
use rmcp::transport::Transport;
use rmcp::{ClientHandler, RoleClient};
use tokio::time::timeout_at;

use super::ServerError;
use super::expand::Ready;
use super::faults;
use super::guard::{Guard, Watch};
use super::lines::Lines;
use super::program::{Ground, Program};
use super::running::{ERROR_CHARS_MAX, Running};
use super::secrets::Secrets;
use super::spec::Spec;
use super::stderr::Stderr;
use crate::launcher::{self, Inside, ServerProgram};
use crate::text::{cut, one_line};

/// After this, rmcp gives up asking a server whether it is of the new era. One that needed so long to start has then been
/// asked in the old way before it could answer the new one.
const PROBE: Duration = Duration::from_secs(9);
/// What this host is to a server: it offers nothing. Samples, questions to a person and folders are asked of it in vain.
pub(super) struct Client;

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let name = Implementation::new("assistant-host", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), name)
    }
}

/// What says how long a start may take, as whoever wrote it knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StartLimit {
    /// The host's limit.
    Host,
    /// The server's entry in the configuration.
    Entry,
    /// The definition, in the words of its system.
    Definition,
}

impl StartLimit {
    /// What counts for a server that may have a limit of its own.
    pub(super) fn of(spec: &Spec, of_definition: bool) -> Self {
        match (spec.start_ms, of_definition) {
            (None, _) => Self::Host,
            (Some(_), false) => Self::Entry,
            (Some(_), true) => Self::Definition,
        }
    }
}

impl std::fmt::Display for StartLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Host => "limit server_start_ms",
            Self::Entry => "its own `start_timeout_ms`",
            Self::Definition => "the time that its definition gives its start",
        })
    }
}

/// What a server is started for.
pub(super) struct Wish<'a> {
    pub(super) name: &'a str,
    pub(super) ready: &'a Ready,
    /// What of it nobody is told.
    pub(super) secrets: &'a Secrets,
    pub(super) within: Duration,
    /// What says how long that is.
    pub(super) within_of: StartLimit,
    /// The depth of the first process that uses it.
    pub(super) depth: u32,
    /// Where it is fenced in; none is the machine as it is.
    pub(super) inside: Option<&'a Arc<Inside>>,
}

/// Starts a server and shakes hands with it.
///
/// # Errors
/// In words for a model, with the server's last lines.
pub(super) async fn start(on: Ground<'_>, wish: &Wish<'_>) -> Result<Running, ServerError> {
    let until = tokio::time::Instant::now() + wish.within;
    let mut mode = auto();
    loop {
        let began = Instant::now();
        let (program, tried) = match wish.ready {
            Ready::Program { .. } => {
                let (program, transport, watch) = spawn(on, wish)?;
                let tried = timeout_at(until, shake(wish, transport, watch, mode.clone())).await;
                (Some(program), tried)
            }
            Ready::Http { url, headers, sse: _ } => {
                (None, timeout_at(until, reach(on, wish, url, headers, mode.clone())).await)
            }
        };
        let error = match tried {
            Ok(Ok((service, watch))) => return Ok(Running::new(on, wish, service, program, watch)),
            Ok(Err(error)) => error,
            Err(_) => format!(
                "{}: it did not answer within {} ms; where it has to be downloaded first, start it once by hand, or raise \
                 the limit",
                wish.within_of,
                wish.within.as_millis()
            ),
        };
        let said = match &program {
            Some(program) => program.how_it_went().await,
            None => String::new(),
        };
        if let Some(program) = program {
            program.end(on, Duration::ZERO).await;
        }
        // An old one may die of a question that it does not know; a new one that started slowly was asked too early.
        mode = match mode {
            ClientLifecycleMode::Auto { .. } if began.elapsed() < PROBE && tokio::time::Instant::now() < until => {
                ClientLifecycleMode::Initialize
            }
            ClientLifecycleMode::Auto { .. } if tokio::time::Instant::now() < until => {
                ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] }
            }
            _ => {
                let old = match wish.ready {
                    Ready::Http { sse: true, .. } => {
                        "; it is written as one of the old transport (sse), which is not spoken: give its address for streamable HTTP"
                    }
                    Ready::Http { .. } | Ready::Program { .. } => "",
                };
                let message = format!("the server `{}` cannot be used: {error}{said}{old}", wish.name);
                return Err(ServerError { code: "server_failed", message });
            }
        };
        tracing::debug!(server = wish.name, %error, "a server is tried in another way");
    }
}

fn auto() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::LATEST],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    }
}

type Pipes = Guard<Lines<tokio::process::ChildStdout, tokio::process::ChildStdin>>;

fn spawn(on: Ground<'_>, wish: &Wish<'_>) -> Result<(Program, Pipes, Arc<Watch>), ServerError> {
    let Ready::Program { command, args, env, folder } = wish.ready else {
        return Err(ServerError {
            code: "server_failed",
            message: format!("the server `{}` is no program", wish.name),
        });
    };
    let id = ProcessId::mint();
    let (depth, state) = (wish.depth, on.state);
    let program = ServerProgram { command, args, env, folder, id, depth, state };
    let launched = match wish.inside {
        Some(inside) => launcher::launch_server_inside(&program, &inside.site()),
        None => launcher::launch_server(&program),
    };
    let launched = launched.map_err(|why| ServerError {
        code: "server_failed",
        message: format!("the server `{}` cannot be used: {}", wish.name, wish.secrets.hide(&why)),
    })?;
    let most = usize::try_from(on.limits.server_message_bytes).unwrap_or(usize::MAX);
    let stderr = Stderr::read(wish.name, launched.stderr, on.limits.stderr_bytes, wish.secrets.clone());
    let watch = Arc::new(Watch::default());
    let pipes = Guard::new(wish.name, Lines::new(launched.stdout, launched.stdin, most), watch.clone());
    Ok((Program { child: launched.child, id, stderr, inside: wish.inside.cloned() }, pipes, watch))
}

type Shaken = Result<(RunningService<RoleClient, Client>, Arc<Watch>), String>;

async fn shake<T: Transport<RoleClient> + 'static>(
    wish: &Wish<'_>,
    transport: Guard<T>,
    watch: Arc<Watch>,
    mode: ClientLifecycleMode,
) -> Shaken {
    let service = Client.serve_with_lifecycle(transport, mode).await;
    // Cut last: the rest of a secret would not be found.
    let service =
        service.map_err(|error| cut(&one_line(&wish.secrets.hide(&faults::of_start(&error))), ERROR_CHARS_MAX))?;
    watch.connected();
    tracing::debug!(server = wish.name, "a server is there");
    Ok((service, watch))
}

#[cfg(feature = "http-servers")]
async fn reach(
    on: Ground<'_>,
    wish: &Wish<'_>,
    url: &str,
    headers: &std::collections::BTreeMap<String, String>,
    mode: ClientLifecycleMode,
) -> Shaken {
    let limits = on.limits;
    let most = usize::try_from(limits.server_message_bytes).unwrap_or(usize::MAX);
    let transport = super::http::transport(url, headers, most, limits.server_calls as usize)?;
    let transport = rmcp::transport::IntoTransport::<RoleClient, _, _>::into_transport(transport);
    let watch = Arc::new(Watch::default());
    shake(wish, Guard::new(wish.name, transport, watch.clone()), watch, mode).await
}

#[cfg(not(feature = "http-servers"))]
async fn reach(
    _: Ground<'_>,
    _: &Wish<'_>,
    _: &str,
    _: &std::collections::BTreeMap<String, String>,
    _: ClientLifecycleMode,
) -> Shaken {
    Err("this build speaks to programs only (feature `http-servers`)".to_owned())
}

#[cfg(all(test, feature = "http-servers"))]
mod tests {
    use super::*;
    use crate::launcher::Strays;
    use crate::limits::Limits;

    #[tokio::test]
    async fn an_address_is_told_without_its_secrets() {
        // Nobody listens there any more.
        let port =
            std::net::TcpListener::bind("127.0.0.1:0").and_then(|there| there.local_addr()).expect("a port").port();
        for (who, query) in [("", "?key=very-secret"), ("me:very-secret@", ""), ("", "?a=1&key=very-secret#here")] {
            let url = format!("http://{who}127.0.0.1:{port}/mcp{query}");
            let ready = Ready::Http { url, headers: std::collections::BTreeMap::new(), sse: false };
            let (limits, strays) = (Limits::default(), Strays::new(false));
            let on = Ground { limits: &limits, state: std::path::Path::new("."), strays: &strays };
            let secrets = Secrets::of(&ready, Vec::new());
            let wish = Wish {
                name: "s",
                ready: &ready,
                secrets: &secrets,
                within: Duration::from_secs(20),
                within_of: StartLimit::Host,
                depth: 0,
                inside: None,
            };
            let Err(error) = start(on, &wish).await else { panic!("nobody is there") };
            let told = error.message;
            assert!(told.contains(&format!("http://127.0.0.1:{port}/mcp")) && !told.contains("secret"), "{told}");
        }
    }
}
