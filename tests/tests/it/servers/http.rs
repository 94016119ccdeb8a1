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

async fn serve(stream: TcpStream, modern: bool, kept: Asked) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            if line.trim().is_empty() {
                break;
            }
            head.push_str(&line);
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
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
