//! A fake model server on loopback that speaks the wire formats of OpenAI (chat completions, responses), Anthropic
//! (messages), Gemini (`streamGenerateContent`) and Ollama (chat), and everything that goes wrong with them. Which format
//! it speaks follows from the request's path.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

mod wire;

pub use wire::{Said, Say};

/// The longest head of a request, bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// The longest body of a request, bytes.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Connections that are served at once.
const CONNECTIONS_MAX: usize = 256;
/// Requests that are kept; older ones go first.
const REQUESTS_MAX: usize = 4_096;

/// A request as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The path, with the query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, or null where it is no JSON.
    pub body: Value,
}

impl Request {
    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The conversation, in whichever field the format has it.
    fn messages(&self) -> &[Value] {
        let fields = ["messages", "input", "contents"];
        fields.iter().find_map(|field| self.body[field].as_array()).map_or(&[][..], Vec::as_slice)
    }

    /// Whether it brings the result of a tool.
    #[must_use]
    pub fn brings_a_result(&self) -> bool {
        self.messages().last().is_some_and(|last| {
            last["role"] == "tool"
                || last["type"] == "function_call_output"
                || last["content"][0]["type"] == "tool_result"
                || last["parts"][0].get("functionResponse").is_some()
        })
    }

    /// The text of the last message of the user, or nothing.
    #[must_use]
    pub fn last_user(&self) -> String {
        let last = self.messages().iter().rev().find(|message| message["role"] == "user");
        match last.map(|message| message.get("content").unwrap_or(&message["parts"])) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(parts)) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
            _ => String::new(),
        }
    }
}

/// What the server does with one request.
#[derive(Debug, Clone)]
pub enum Reply {
    /// A right answer, in the format of the request.
    Say(Say),
    /// An answer of these bytes.
    Raw {
        /// The status of the answer.
        status: u16,
        /// Further headers.
        headers: Vec<(String, String)>,
        /// What is done after the head.
        then: Vec<Then>,
    },
    /// Takes the request and never answers.
    Silence,
    /// Closes the connection without an answer.
    Close,
}

/// One thing that is done after the head of an answer.
#[derive(Debug, Clone)]
pub enum Then {
    /// Writes these bytes.
    Write(Vec<u8>),
    /// Writes these bytes again and again, at most so often.
    Repeat(Vec<u8>, usize),
    /// Waits, milliseconds.
    Wait(u64),
    /// Closes the connection in the middle of the answer, so that the other side sees it broken off.
    Break,
    /// Stays silent and keeps the connection.
    Hang,
}

impl Reply {
    /// An answer of one text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Reply::Say(Say::new(vec![Said::text(text)]))
    }

    /// An answer that is an error, with a body as providers send it.
    #[must_use]
    pub fn error(status: u16, body: &Value) -> Self {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Reply::Raw { status, headers, then: vec![Then::Write(body.to_string().into_bytes())] }
    }

    /// An event stream of this text, which ends there.
    #[must_use]
    pub fn events(text: impl Into<Vec<u8>>) -> Self {
        Self::events_then(text, Vec::new())
    }

    /// An event stream of this text, and then more.
    #[must_use]
    pub fn events_then(text: impl Into<Vec<u8>>, then: Vec<Then>) -> Self {
        let headers = vec![("content-type".to_owned(), "text/event-stream".to_owned())];
        let then = std::iter::once(Then::Write(text.into())).chain(then).collect();
        Reply::Raw { status: 200, headers, then }
    }

    /// The same with one more header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        if let Reply::Raw { headers, .. } = &mut self {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }
}

type Script = dyn Fn(&Request) -> Reply + Send + Sync;

/// A running server; dropping it ends it.
pub struct ModelServer {
    base_url: String,
    shared: Arc<Shared>,
    _serving: JoinSet<()>,
}

struct Shared {
    replies: Mutex<VecDeque<Reply>>,
    requests: Mutex<VecDeque<Request>>,
    closed: Mutex<usize>,
    closing: tokio::sync::Notify,
    script: Box<Script>,
}

impl ModelServer {
    /// Starts a server that answers from a queue; with an empty queue it answers with status 500 and says so.
    ///
    /// # Errors
    /// Where no port of loopback can be had.
    pub async fn start() -> io::Result<Self> {
        Self::start_with("127.0.0.1:0", |_| Reply::error(500, &serde_json::json!({"error": "no reply is queued"})))
            .await
    }

    /// Starts a server at an address whose queue, where it is empty, is filled by a script.
    ///
    /// # Errors
    /// Where the address cannot be had.
    pub async fn start_with(
        address: &str,
        script: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let base_url = format!("http://{}/v1", listener.local_addr()?);
        let shared = Arc::new(Shared {
            replies: Mutex::default(),
            requests: Mutex::default(),
            closed: Mutex::default(),
            closing: tokio::sync::Notify::new(),
            script: Box::new(script),
        });
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, Arc::clone(&shared)));
        Ok(Self { base_url, shared, _serving: serving })
    }

    /// What to put into `base_url`.
    #[must_use]
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Queues a reply for one request.
    pub fn push(&self, reply: Reply) {
        lock(&self.shared.replies).push_back(reply);
    }

    /// The requests so far, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.shared.requests).iter().cloned().collect()
    }

    /// Waits until so many connections were closed by the other side while an answer was owed.
    pub async fn closed(&self, count: usize) {
        loop {
            let closing = self.shared.closing.notified();
            if *lock(&self.shared.closed) >= count {
                return;
            }
            closing.await;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => match accepted {
                Ok((stream, _)) => drop(connections.spawn(connection(stream, Arc::clone(&shared)))),
                Err(_) => return,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Serves one connection until it is closed. What the other side does wrong closes it too.
async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    let mut stream = BufReader::new(stream);
    while let Ok(Some(request)) = read_request(&mut stream).await {
        let reply = lock(&shared.replies).pop_front();
        let reply = reply.unwrap_or_else(|| (shared.script)(&request));
        let path = request.path.clone();
        {
            let mut requests = lock(&shared.requests);
            requests.push_back(request);
            if requests.len() > REQUESTS_MAX {
                requests.pop_front();
            }
        }
        match answer(&mut stream, reply, &path).await {
            Ok(Next::Request) => {}
            Ok(Next::Close) => return,
            Ok(Next::Gone) | Err(_) => {
                *lock(&shared.closed) += 1;
                shared.closing.notify_waiters();
                return;
            }
        }
    }
}

enum Next {
    Request,
    Close,
    /// The other side closed while an answer was owed.
    Gone,
}

async fn answer(stream: &mut BufReader<TcpStream>, reply: Reply, path: &str) -> io::Result<Next> {
    let (status, headers, then) = match reply {
        Reply::Close => return Ok(Next::Close),
        Reply::Silence => return gone(stream).await,
        Reply::Say(say) => match Reply::events(say.events(path)) {
            Reply::Raw { status, headers, then } => (status, headers, then),
            _ => return Ok(Next::Close),
        },
        Reply::Raw { status, headers, then } => (status, headers, then),
    };
    let mut head = format!("HTTP/1.1 {status} Fake\r\ntransfer-encoding: chunked\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    stream.write_all(format!("{head}\r\n").as_bytes()).await?;
    for then in then {
        match then {
            Then::Write(bytes) => chunk(stream, &bytes).await?,
            Then::Repeat(bytes, times) => {
                for _ in 0..times {
                    chunk(stream, &bytes).await?;
                }
            }
            Then::Wait(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Then::Break => return Ok(Next::Close),
            Then::Hang => return gone(stream).await,
        }
    }
    stream.write_all(b"0\r\n\r\n").await?;
    Ok(Next::Request)
}

async fn chunk(stream: &mut BufReader<TcpStream>, bytes: &[u8]) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    stream.write_all(format!("{:x}\r\n", bytes.len()).as_bytes()).await?;
    stream.write_all(bytes).await?;
    stream.write_all(b"\r\n").await?;
    stream.flush().await
}

/// Waits until the other side closes.
async fn gone(stream: &mut BufReader<TcpStream>) -> io::Result<Next> {
    while stream.read_u8().await.is_ok() {}
    Ok(Next::Gone)
}

async fn read_request(stream: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Request>> {
    let mut path = String::new();
    let mut headers = Vec::new();
    let mut bytes = 0;
    loop {
        let mut line = String::new();
        let limit = (HEAD_BYTES_MAX - bytes) as u64;
        bytes += (&mut *stream).take(limit).read_line(&mut line).await?;
        let line = line.trim_end();
        match (path.is_empty(), line.split_once(':')) {
            _ if bytes >= HEAD_BYTES_MAX || line.is_empty() && path.is_empty() => return Ok(None),
            _ if line.is_empty() => break,
            (true, _) => path = line.split(' ').nth(1).unwrap_or("/").to_owned(),
            (false, Some((name, value))) => headers.push((name.to_ascii_lowercase(), value.trim().to_owned())),
            (false, None) => return Ok(None),
        }
    }
    let length = headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, value)| value.parse().ok());
    let mut body = vec![0; length.unwrap_or(0).min(BODY_BYTES_MAX)];
    stream.read_exact(&mut body).await?;
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Ok(Some(Request { path, headers, body }))
}
