//! Who is not let in, and what they are told.

use std::process::Stdio;

use assistant_runner::adapter::bridge::McpServer;
use rmcp::ServiceExt;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::Command;
use tokio::time::timeout;

use crate::kit::{Adapter, Client, SOON, bridge, program};

/// Starts a bridge without a client that asks: its exit code, and what it says on stderr.
async fn check(server: &McpServer, want: &str) {
    let output = bridge(server).stdin(Stdio::null()).output();
    let output = timeout(SOON, output).await.expect("soon").expect("runs");
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), err), (Some(2), format!("assistant-runner bridge: {want}\n")));
    assert_eq!(output.stdout, b"");
}

fn with_token(server: &McpServer, token: &str) -> McpServer {
    let mut server = server.clone();
    server.env[1].1 = token.to_owned();
    server
}

const WRONG: &str = "the adapter refused the connection: its token is missing or wrong";

#[tokio::test]
async fn a_forged_or_missing_token_is_refused() {
    let adapter = Adapter::start();
    let _run = adapter.run(&["echo"], false);
    let server = adapter.bridge.server();
    assert_eq!((server.env[0].0, server.env[1].0), ("ASSISTANT_BRIDGE", "ASSISTANT_BRIDGE_TOKEN"));
    assert!(server.env[1].1.len() >= 64 && !server.args.concat().contains(&server.env[1].1));
    let mut forged = server.env[1].1.clone();
    forged.replace_range(0..1, if forged.starts_with('a') { "b" } else { "a" });
    check(&with_token(server, &forged), WRONG).await;
    check(&with_token(server, &"x".repeat(400)), WRONG).await;
    check(&with_token(server, ""), "the adapter refused the connection: it did not greet").await;
    check(&with_token(server, &"x".repeat(10_000)), "the adapter refused the connection: it did not greet").await;
    let mut none = server.clone();
    none.env.pop();
    let unset = "ASSISTANT_BRIDGE and ASSISTANT_BRIDGE_TOKEN are not set: it is started by the agent of an assistant, \
                 never by people";
    check(&none, unset).await;
    // The right one is let in after all that.
    let client = Client::start(server).await;
    assert_eq!(client.tools().await, ["echo"]);
}

#[tokio::test]
async fn a_client_that_asks_is_told_in_an_answer_of_its_protocol() {
    let adapter = Adapter::start();
    let mut child = bridge(&with_token(adapter.bridge.server(), "forged")).spawn().expect("starts");
    let pipes = (child.stdout.take().expect("piped"), child.stdin.take().expect("piped"));
    let refused = timeout(SOON, ().serve(pipes)).await.expect("soon");
    let error = refused.expect_err("refused").to_string();
    assert!(error.contains(WRONG), "{error}");
    let status = timeout(SOON, child.wait()).await.expect("soon").expect("ends");
    assert_eq!(status.code(), Some(2));
}

/// What one is told that says this on the socket.
async fn greet(server: &McpServer, said: &[u8]) -> String {
    let mut stream = UnixStream::connect(&server.env[0].1).await.expect("connects");
    // One that was refused already need not read on.
    let _ = stream.write_all(said).await;
    let mut answer = Vec::new();
    let heard = timeout(SOON, stream.read_to_end(&mut answer)).await.expect("soon");
    assert!(heard.is_ok() || !answer.is_empty(), "{heard:?}");
    String::from_utf8(answer).expect("a text")
}

#[tokio::test]
async fn whoever_does_not_greet_is_refused() {
    let adapter = Adapter::start();
    let _run = adapter.run(&["echo"], false);
    let server = adapter.bridge.server();
    let token = &server.env[1].1;
    let no_greeting = "refused: it did not greet\n";
    assert_eq!(greet(server, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await, no_greeting);
    assert_eq!(greet(server, &[0xff; 100_000]).await, no_greeting);
    assert_eq!(greet(server, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n").await, no_greeting);
    assert_eq!(greet(server, format!("assistants-bridge 2 {token}\n").as_bytes()).await, no_greeting);
    // Half a greeting: the other half does not come.
    assert_eq!(
        greet(server, &format!("assistants-bridge 1 {token}").as_bytes()[..40]).await,
        "refused: it did not greet in time\n"
    );
    assert_eq!(Client::start(server).await.tools().await, ["echo"]);
}

#[tokio::test]
async fn there_are_only_so_many_connections() {
    let adapter = Adapter::start();
    let _run = adapter.run(&["echo"], false);
    let server = adapter.bridge.server();
    let hello = format!("assistants-bridge 1 {}\n", server.env[1].1);
    let connect = async || {
        let mut stream = UnixStream::connect(&server.env[0].1).await.expect("connects");
        let _ = stream.write_all(hello.as_bytes()).await;
        let mut answer = vec![0; 64];
        let bytes = timeout(SOON, stream.read(&mut answer)).await.expect("soon").expect("reads");
        (stream, String::from_utf8_lossy(&answer[..bytes]).into_owned())
    };
    let (mut streams, mut answers) = (Vec::new(), Vec::new());
    for _ in 0..100 {
        let (stream, answer) = connect().await;
        streams.push(stream);
        answers.push(answer);
    }
    let of = |want: &str| answers.iter().filter(|answer| *answer == want).count();
    assert_eq!((of("welcome\n"), of("refused: as many connections are open as may be\n")), (64, 36));
    drop(streams);
    // There is room again as soon as their ends are seen.
    timeout(SOON, async { while connect().await.1 != "welcome\n" {} }).await.expect("soon");
    let client = Client::start(server).await;
    assert_eq!(client.call("echo", json!({})).await, ("{}".into(), false));
}

/// One that has the token, but that nobody here has started: its parent ends, and then it connects.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_process_that_the_agent_did_not_start_is_refused() {
    let adapter = Adapter::start();
    let _run = adapter.run(&["echo"], false);
    let server = adapter.bridge.server();
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("go");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("runs").success());
    let mut go = pipe::OpenOptions::new().read_write(true).open_sender(&pipe).expect("opens");
    let script = "{ read gone; \"$0\" bridge </dev/null; echo \"code $?\" >&2; } <\"$1\" &";
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(program()).arg(&pipe).envs(server.env.iter().map(|(name, value)| (name, value)));
    let mut parent = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("starts");
    let mut stderr = parent.stderr.take().expect("piped");
    assert!(parent.wait().await.expect("ends").success());
    go.write_all(b"gone\n").await.expect("is read");
    let mut err = String::new();
    timeout(SOON, stderr.read_to_string(&mut err)).await.expect("soon").expect("reads");
    let why = "the adapter refused the connection: its process is none that the agent has started";
    assert_eq!(err, format!("assistant-runner bridge: {why}\ncode 2\n"));
}

/// One of another user that can come to the socket and has the token. Only root can make one.
#[tokio::test]
async fn another_user_is_refused() {
    use std::os::unix::fs::PermissionsExt;

    /// Nobody.
    const OTHER: u32 = 65_534;
    if !rustix::process::geteuid().is_root() {
        return crate::real::skip("another_user_is_refused", "only root can start a process of another user");
    }
    let adapter = Adapter::start();
    let _run = adapter.run(&["echo"], false);
    let server = adapter.bridge.server();
    let socket = std::path::Path::new(&server.env[0].1);
    let open = std::fs::Permissions::from_mode;
    std::fs::set_permissions(socket.parent().expect("a folder"), open(0o755)).expect("sets");
    std::fs::set_permissions(socket, open(0o666)).expect("sets");
    // The program may lie where others cannot come to.
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(folder.path(), open(0o755)).expect("sets");
    let copy = folder.path().join("runner");
    // By another process: what this one has open for writing while a test forks cannot be started.
    let copied = Command::new("cp").arg(program()).arg(&copy).status().await.expect("runs");
    assert!(copied.success());
    let mut other = McpServer { command: copy, ..server.clone() };
    let mut command = bridge(&other);
    command.uid(OTHER).gid(OTHER).stdin(Stdio::null());
    let output = timeout(SOON, command.output()).await.expect("soon").expect("runs");
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    let want = "assistant-runner bridge: the adapter refused the connection: it belongs to another user\n";
    assert_eq!((output.status.code(), err.as_str()), (Some(2), want));
    // The same program as this user is let in.
    other.args.clone_from(&server.args);
    assert_eq!(Client::start(&other).await.tools().await, ["echo"]);
}
