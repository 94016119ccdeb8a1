//! Servers over HTTP, of both eras, with their headers.

use std::sync::{Arc, Mutex};

use assistant_host::limits::Limits;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::{Served, calls, definition};

/// What was asked of it: method and headers.
type Asked = Arc<Mutex<Vec<(String, String)>>>;

/// A server on loopback: its address, and what it is asked.
async fn start(modern: bool) -> (String, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let asked = Asked::default();
    let kept = asked.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, modern, kept.clone()));
        }
    });
    (url, asked)
}

/// The head of the next request, with the empty line behind it, and its body; none is the end.
async fn heard(stream: &mut BufReader<TcpStream>) -> std::io::Result<Option<(String, Vec<u8>)>> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let start = head.len();
        if stream.read_line(&mut head).await? == 0 {
            return Ok(None);
        }
        let line = head[start..].trim().to_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(Some((head, body)))
}

async fn serve(stream: TcpStream, modern: bool, kept: Asked) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let Some((head, body)) = heard(&mut stream).await? else { return Ok(()) };
        let request: Value = serde_json::from_slice(&body).unwrap_or_default();
        let method = request["method"].as_str().unwrap_or_default().to_owned();
        kept.lock().expect("the list").push((method.clone(), head.to_lowercase()));
        let reply = |result: Value| json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
        let refuse =
            |code: i32| json!({ "jsonrpc": "2.0", "id": request["id"], "error": { "code": code, "message": "no" } });
        let answer = match method.as_str() {
            "server/discover" if modern => reply(json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} }, "ttlMs": 0,
                "cacheScope": "private",
            })),
            "initialize" if !modern => reply(json!({
                "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "serverInfo": { "name": "h", "version": "1" },
            })),
            "tools/list" => reply(json!({
                "resultType": "complete", "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }], "ttlMs": 0,
                "cacheScope": "private",
            })),
            "tools/call" => reply(json!({
                "resultType": "complete",
                "content": [{ "type": "text", "text": request["params"]["arguments"]["text"] }],
            })),
            _ if request.get("id").is_some() => refuse(-32601),
            _ => Value::Null,
        };
        let text = answer.to_string();
        let reply = match (&answer, head.starts_with("POST")) {
            (Value::Null, true) => "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n".to_owned(),
            (_, true) => format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{text}",
                text.len()
            ),
            (_, false) => "HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n".to_owned(),
        };
        stream.write_all(reply.as_bytes()).await?;
    }
}

fn used(url: &str) -> Vec<(String, String)> {
    vec![definition("a", &format!("{{s: {{type: http, url: '{url}', headers: {{X-Key: abc}}}}}}"))]
}

#[tokio::test]
async fn both_eras_are_spoken_with_the_headers() {
    for modern in [true, false] {
        let (url, asked) = start(modern).await;
        let steps = [("a", calls(&[("s__echo", json!({ "text": "over http" }))]))];
        let served = Served::new(&used(&url), &steps, Limits::default()).await;
        assert_eq!(served.run("a").await, "over http", "modern: {modern}");
        served.host().close().await;
        let asked = asked.lock().expect("the list").clone();
        let methods: Vec<&str> = asked.iter().map(|(method, _)| method.as_str()).collect();
        assert_eq!(methods.contains(&"initialize"), !modern, "{methods:?}");
        assert!(asked.iter().all(|(_, head)| head.contains("x-key: abc")), "{asked:?}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_nobody_there_is_told() {
    let other = start(false).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let to = other.0.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut stream = BufReader::new(stream);
            let mut line = String::new();
            while stream.read_line(&mut line).await.is_ok_and(|read| read > 2) {
                line.clear();
            }
            let reply = format!(
                "HTTP/1.1 307 Temporary Redirect\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            );
            drop(stream.write_all(reply.as_bytes()).await);
        }
    });
    for url in [url, "http://127.0.0.1:1/mcp".to_owned()] {
        let served = Served::new(&used(&url), &[("a", json!([{ "text": "{{system}}" }]))], Limits::default()).await;
        let (_, told) = served.told("a").await;
        assert!(told.contains("the server `s` cannot be used"), "{told}");
        assert!(!told.contains("abc"), "{told}");
    }
    assert!(other.1.lock().expect("the list").is_empty(), "the headers stay here");
}

/// A server on loopback that answers each connection with these bytes, after its request's head was read.
async fn answers(bytes: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let place = listener.local_addr().expect("an address").to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                let (mut line, mut length) = (String::new(), 0);
                // The first bytes of a handshake of TLS are no text.
                while stream.read_line(&mut line).await.is_ok_and(|read| read > 2) {
                    if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap_or(0);
                    }
                    line.clear();
                }
                drop(stream.read_exact(&mut vec![0; length]).await);
                drop(stream.write_all(bytes).await);
                drop(stream.shutdown().await);
            });
        }
    });
    place
}

#[tokio::test]
async fn what_goes_wrong_is_told_without_the_names_of_types() {
    let closed = TcpListener::bind("127.0.0.1:0").await.and_then(|there| there.local_addr()).expect("a port");
    let (json, html) = ("application/json", "text/html");
    let says = async |head: &str, kind: &str, body: &str| {
        let length = body.len();
        let text = format!(
            "HTTP/1.1 {head}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        format!("http://{}/mcp", answers(text.leak().as_bytes()).await)
    };
    for (url, want) in [
        (format!("http://{closed}/mcp"), "there is no connection to http://"),
        (says("404 Not Found", html, "<p>nothing</p>").await, "it answered HTTP 404 Not Found: <p>nothing</p>"),
        (says("500 Internal Server Error", html, "").await, "it answered HTTP 500"),
        (says("401 Unauthorized", html, "").await, "HTTP 401"),
        (says("200 OK", html, "<p>hello</p>").await, "it answered with `text/html`"),
        (says("200 OK", json, "hello").await, "its answer is no message of this protocol: expected value"),
        (
            says("200 OK", json, "{}").await,
            "its answer is no message of this protocol: unrecognized JSON-RPC message: {}",
        ),
        (format!("http://{}/mcp", answers(b"nonsense").await), "could not be read"),
        (format!("https://{}/mcp", answers(b"no TLS\r\n").await), "there is no connection to https://"),
    ] {
        let served = Served::new(&used(&url), &[("a", json!([{ "text": "{{system}}" }]))], Limits::default()).await;
        let (_, told) = served.told("a").await;
        assert!(told.contains("the server `s` cannot be used: ") && told.contains(want), "{want}: {told}");
        for name in ["::", "Transport [", "reqwest", "ServerJsonRpcMessage", "untagged", "Some("] {
            assert!(!told.contains(name), "{want} with {name}: {told}");
        }
        served.host().close().await;
    }
}

/// A server that ends well and answers calls of its tool with `HTTP 500`, or with what is no JSON.
async fn breaks_calls(answer: &'static str) -> String {
    let (url, _) = start(false).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let place = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let inner = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let inner = inner.clone();
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                loop {
                    let Some((head, body)) = heard(&mut stream).await? else { return Ok(()) };
                    if String::from_utf8_lossy(&body).contains("tools/call") {
                        stream.write_all(answer.as_bytes()).await?;
                        return Ok::<_, std::io::Error>(());
                    }
                    // Everything else goes to one that works.
                    let mut there = TcpStream::connect(&inner).await?;
                    there.write_all(&[head.as_bytes(), &body].concat()).await?;
                    there.shutdown().await?;
                    let mut reply = Vec::new();
                    there.read_to_end(&mut reply).await?;
                    stream.write_all(&reply).await?;
                }
            });
        }
    });
    place
}

#[tokio::test]
async fn what_goes_wrong_in_a_call_is_told_in_words_too() {
    for (answer, want) in [
        (
            "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            "it answered HTTP 500",
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello",
            "its answer is no message of this protocol: expected value",
        ),
        ("", "could not be read"),
    ] {
        let url = breaks_calls(answer).await;
        let steps = [("a", calls(&[("s__echo", json!({ "text": "over http" }))]))];
        let served = Served::new(&used(&url), &steps, Limits::default()).await;
        let said = served.run("a").await;
        assert!(said.contains("the server `s` did not take the call: ") && said.contains(want), "{want}: {said}");
        assert!(!said.contains("::") && !said.contains("Transport ["), "{said}");
        served.host().close().await;
    }
}
