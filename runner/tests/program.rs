//! The program itself: its arguments, and its pipes.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long the program may take to end, with room for a busy machine.
const END_MS_MAX: u128 = 10_000;

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

fn runner() -> Command {
    Command::new(env!("CARGO_BIN_EXE_assistant-runner"))
}

/// Runs the program with arguments, and gives exit code, stdout and stderr.
fn check(args: &[&str], code: i32, stdout: &str, stderr: &str) {
    let Output { status, stdout: out, stderr: err } = runner().args(args).output().expect("runs");
    let got = (status.code(), String::from_utf8_lossy(&out).into_owned(), String::from_utf8_lossy(&err).into_owned());
    assert_eq!(got, (Some(code), stdout.to_owned(), stderr.to_owned()), "{args:?}");
}

#[test]
fn arguments_are_few() {
    let id = assistant_protocol::BUILD_ID;
    assert!(id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
    check(&["--build-id"], 0, &format!("{id}\n"), "");
    check(&["--version"], 0, &format!("assistant-runner {}\n", env!("CARGO_PKG_VERSION")), "");
    for (args, odd) in [(&["--help"][..], "--help"), (&["x y"], "x y"), (&["--version", "now"], "now")] {
        let Output { status, stdout, stderr } = runner().args(args).output().expect("runs");
        let err = String::from_utf8_lossy(&stderr);
        assert_eq!((status.code(), &*stdout), (Some(2), &b""[..]), "{args:?}");
        let end = format!("`--build-id`, `--version` or nothing, not `{odd}`\n");
        assert!(err.starts_with("assistant-runner takes ") && err.ends_with(&end), "{err}");
    }
}

/// A running program and its pipes.
struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: BufReader<ChildStdout>,
}

impl Running {
    fn start() -> Self {
        let mut child =
            runner().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().expect("piped"));
        Self { child, stdin, lines: BufReader::new(stdout) }
    }

    fn send(&mut self, line: impl AsRef<[u8]>) {
        let stdin = self.stdin.as_mut().expect("open");
        stdin.write_all(line.as_ref()).and_then(|()| stdin.write_all(b"\n")).expect("is read");
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("reads");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    fn initialize(&mut self) {
        let id = assistant_protocol::ids::ProcessId::mint().to_string();
        let params = json!({
            "protocol_version": 1, "process_id": id, "thread_id": id, "host": { "name": "test" },
            "max_frame_bytes": 1_000_000, "capabilities": null, "limits": null,
        });
        self.send(json!({ "jsonrpc": "2.0", "id": "i", "method": "initialize", "params": params }).to_string());
        assert_eq!(self.receive()["result"]["runner"]["name"], "assistant-runner");
    }

    /// Begins a run, which then waits for its model.
    fn run(&mut self) {
        let params = json!({ "assistant": { "id": "a", "name": "A", "system_prompt": "s" }, "query": "q" });
        self.send(json!({ "jsonrpc": "2.0", "id": "r", "method": "run", "params": params }).to_string());
        assert_eq!(self.receive()["method"], "on_llm_request");
    }

    /// Waits for the end: exit code, what was still on stdout, and stderr.
    fn end(mut self) -> (Option<i32>, String, String) {
        let begun = Instant::now();
        let (mut out, mut err) = (String::new(), String::new());
        self.lines.read_to_string(&mut out).expect("reads");
        self.child.stderr.take().expect("piped").read_to_string(&mut err).expect("reads");
        let status = self.child.wait().expect("ends");
        assert!(begun.elapsed().as_millis() < END_MS_MAX, "took {:?}", begun.elapsed());
        (status.code(), out, err)
    }
}

fn ended(code: i32) -> (Option<i32>, String, String) {
    (Some(code), String::new(), String::new())
}

#[test]
fn the_end_of_input_ends_the_program_at_every_moment() {
    let moments: [fn(&mut Running); 5] = [
        |_| {},
        |runner| {
            runner.send(PING);
            runner.receive();
        },
        Running::initialize,
        |runner| {
            runner.initialize();
            runner.run();
        },
        |runner| runner.stdin.as_mut().expect("open").write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,").expect("is read"),
    ];
    for moment in moments {
        let mut runner = Running::start();
        moment(&mut runner);
        drop(runner.stdin.take());
        assert_eq!(runner.end(), ended(0));
    }
}

#[test]
fn shutdown_ends_the_program_while_stdin_is_open() {
    let mut runner = Running::start();
    runner.initialize();
    runner.send(r#"{"jsonrpc":"2.0","id":2,"method":"shutdown"}"#);
    assert_eq!(runner.receive(), json!({ "jsonrpc": "2.0", "id": 2, "result": {} }));
    let stdin = runner.stdin.take();
    assert_eq!(runner.end(), ended(0));
    drop(stdin);
}

#[test]
fn a_host_that_is_gone_ends_the_program() {
    let mut runner = Running::start();
    runner.initialize();
    let Running { mut child, stdin, lines } = runner;
    drop((lines, stdin));
    assert_eq!(child.wait().expect("ends").code(), Some(0));
}

#[test]
fn garbage_is_survived_until_it_is_too_much() {
    let mut runner = Running::start();
    for line in [&b"hello"[..], b"", b"\xff\xfe", b"[1,2]", b"{}", b"{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":1}"] {
        runner.send(line);
    }
    runner.send(format!("{PING}\r"));
    assert_eq!(runner.receive(), json!({ "jsonrpc": "2.0", "id": 1, "result": {} }));
    for _ in 0..95 {
        runner.send("noise");
    }
    let (code, out, err) = runner.end();
    assert_eq!((code, out.as_str(), err.as_str()), (Some(1), "", "the link to the host broke: Noise { count: 100 }\n"));
}

#[test]
fn files_serve_as_pipes() {
    let folder = std::env::temp_dir().join(format!("assistant-runner-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let (input, output) = (folder.join("in"), folder.join("out"));
    std::fs::write(&input, format!("{PING}\nnoise\n{}", PING.replace('1', "2"))).expect("writes");
    let status = runner()
        .stdin(File::open(&input).expect("opens"))
        .stdout(File::create(&output).expect("opens"))
        .status()
        .expect("runs");
    let answers = std::fs::read_to_string(&output).expect("reads");
    std::fs::remove_dir_all(&folder).expect("removes");
    assert_eq!(status.code(), Some(0));
    assert_eq!(answers, [1, 2].map(|id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}\n")).concat());
}

#[cfg(unix)]
#[test]
fn a_socket_serves_as_both_pipes() {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    let (ours, theirs) = UnixStream::pair().expect("a pair");
    let theirs = [theirs.try_clone().expect("clones"), theirs].map(OwnedFd::from);
    let [stdin, stdout] = theirs.map(Stdio::from);
    let mut child = runner().stdin(stdin).stdout(stdout).spawn().expect("starts");
    ours.set_read_timeout(Some(Duration::from_secs(90))).expect("sets");
    (&ours).write_all(format!("{PING}\n").as_bytes()).expect("is read");
    let mut line = String::new();
    BufReader::new(&ours).read_line(&mut line).expect("answers");
    assert_eq!(line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
    drop(ours);
    assert_eq!(child.wait().expect("ends").code(), Some(0));
}

/// The program keeps its pipes away from 0 and 1, and has one thread.
#[cfg(target_os = "linux")]
#[test]
fn its_descriptors_and_threads_are_few() {
    use std::os::fd::AsRawFd;

    let mut runner = Running::start();
    runner.initialize();
    let proc = format!("/proc/{}", runner.child.id());
    let target = |fd: u32| std::fs::read_link(format!("{proc}/fd/{fd}")).expect("open").display().to_string();
    assert_eq!(target(0), "/dev/null");
    assert_eq!(target(1), target(2), "stray prints go to stderr");
    // Both ends of a pipe have one name. Other descriptors may come from whoever runs the tests.
    let ours = [runner.stdin.as_ref().expect("open").as_raw_fd(), runner.lines.get_ref().as_raw_fd()]
        .map(|fd| std::fs::read_link(format!("/proc/self/fd/{fd}")).expect("open").display().to_string());
    let kept: Vec<u32> = std::fs::read_dir(format!("{proc}/fd"))
        .expect("lists")
        .filter_map(|fd| fd.expect("reads").file_name().to_string_lossy().parse().ok())
        .filter(|fd| ours.contains(&target(*fd)))
        .collect();
    assert_eq!(kept.len(), 2);
    for fd in kept {
        let info = std::fs::read_to_string(format!("{proc}/fdinfo/{fd}")).expect("reads");
        assert!(fd >= 10, "{fd} may be taken for something else");
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).expect("has flags").trim();
        let flags = u32::from_str_radix(flags, 8).expect("octal");
        assert_ne!(flags & 0o2_000_000, 0, "closed in children: {info}");
    }
    assert_eq!(std::fs::read_dir(format!("{proc}/task")).expect("lists").count(), 1);
}
