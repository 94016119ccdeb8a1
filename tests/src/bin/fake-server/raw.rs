//! The wire by hand. What each mode does:
//!
//! * `hang` reads and never answers; `deaf` does not even end when its pipe is closed;
//! * `dies` says why and exits before it answers;
//! * `legacy` ends when it is asked what it does not know, as some old servers do;
//! * `modern` knows no handshake;
//! * `slow MS` answers the handshake that late;
//! * `liar` tells nonsense of its tools, and answers them wrongly;
//! * `flood` tells a million things, has lines without an end, asks without an end, and reads no more once it is `stuck`;
//! * `noise` writes to stderr and to stdout what is no message;
//! * `once FILE` lives for one call, where FILE is there.

use std::io::{self, BufRead, Write};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::{Value, json};

/// Characters of a line that no host takes.
const LONG: usize = 20 * 1024 * 1024;

pub(crate) fn serve(mode: &str, argument: &str) -> io::Result<()> {
    match mode {
        "dies" => {
            super::eprint("warning: I begin\nerror: there is no table `orders`\n");
            std::process::exit(3);
        }
        "once" if !std::path::Path::new(argument).exists() => {
            super::eprint("error: not today\n");
            std::process::exit(4);
        }
        "noise" => {
            super::eprint(&"a line of noise\n".repeat(100_000));
            out("Server is listening on stdio")?;
            out("{\"level\":\"info\"}")?;
        }
        _ => {}
    }
    let mut answered = 0;
    for line in io::stdin().lock().lines() {
        let Ok(asked) = serde_json::from_str::<Value>(&line?) else { continue };
        if mode != "hang" && mode != "deaf" {
            answered += u32::from(answer(mode, argument, &asked)?);
        }
        if mode == "once" && answered > 0 {
            std::process::exit(5);
        }
    }
    if mode != "deaf" {
        return Ok(());
    }
    loop {
        std::thread::park();
    }
}

fn out(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(line.as_bytes())?;
    stdout.write_all(b"\n")?;
    stdout.flush()
}

fn reply(asked: &Value, result: &Value) -> io::Result<()> {
    out(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }).to_string())
}

fn refuse(asked: &Value, code: i32, message: &str, data: &Value) -> io::Result<()> {
    let error = json!({ "code": code, "message": message, "data": data });
    out(&json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error }).to_string())
}

/// Answers a request; true where that was a call of a tool.
fn answer(mode: &str, argument: &str, asked: &Value) -> io::Result<bool> {
    let info = json!({ "name": mode, "version": "1" });
    let capabilities = json!({ "tools": {} });
    match asked["method"].as_str().unwrap_or_default() {
        "server/discover" if mode == "legacy" => std::process::exit(1),
        "server/discover" if mode == "modern" => reply(
            asked,
            &json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities,
                "_meta": { "io.modelcontextprotocol/serverInfo": info }, "ttlMs": 0, "cacheScope": "private",
            }),
        )?,
        "initialize" if mode == "modern" => {
            refuse(asked, -32022, "no such version", &json!({ "supported": ["2026-07-28"] }))?;
        }
        "initialize" => {
            if mode == "slow" {
                let (_keep, never) = channel::<()>();
                let ms = argument.parse().unwrap_or_default();
                assert_eq!(never.recv_timeout(Duration::from_millis(ms)), Err(RecvTimeoutError::Timeout));
            }
            let version = "2025-06-18";
            reply(asked, &json!({ "protocolVersion": version, "capabilities": capabilities, "serverInfo": info }))?;
        }
        "tools/list" => reply(
            asked,
            &json!({ "resultType": "complete", "tools": tools(mode), "ttlMs": 0, "cacheScope": "private" }),
        )?,
        "tools/call" => {
            called(mode, asked)?;
            return Ok(true);
        }
        "ping" => reply(asked, &json!({}))?,
        _ if asked.get("id").is_some_and(|_| asked.get("method").is_some()) => {
            refuse(asked, -32601, "Method not found", &Value::Null)?
        }
        _ => {}
    }
    Ok(false)
}

fn tools(mode: &str) -> Value {
    let plain = |name: &str| json!({ "name": name, "description": name, "inputSchema": { "type": "object" } });
    match mode {
        "liar" => json!([
            5,
            { "description": "without a name" },
            { "name": "no_schema" },
            { "name": "text_schema", "inputSchema": "no" },
            { "name": "loop", "inputSchema": { "$ref": "#" }, "outputSchema": { "type": "object", "required": ["a"] } },
            { "name": "union", "inputSchema": { "oneOf": [{ "properties": { "a": { "type": "string" } } }] } },
            { "name": "wrong id!", "inputSchema": {} },
            { "name": "no_shape", "inputSchema": {} },
            { "name": "text_id", "inputSchema": {} },
            { "name": "strange", "inputSchema": {} },
            { "name": "strange", "inputSchema": {} },
        ]),
        "flood" => json!(["notes", "line", "endless", "asks", "stuck", "fine"].map(plain)),
        _ => json!([plain("echo")]),
    }
}

fn called(mode: &str, asked: &Value) -> io::Result<()> {
    let said = |text: &str| json!({ "resultType": "complete", "content": [{ "type": "text", "text": text }] });
    match (mode, asked["params"]["name"].as_str().unwrap_or_default()) {
        ("liar", "wrong id!") => {
            out(&json!({ "jsonrpc": "2.0", "id": 999_999, "result": said("not yours") }).to_string())
        }
        ("liar", "no_shape") => out(&json!({ "jsonrpc": "1.9", "id": asked["id"], "result": 5 }).to_string()),
        ("liar", "text_id") => {
            out(&json!({ "jsonrpc": "2.0", "id": asked["id"].to_string(), "result": said("as a text") }).to_string())
        }
        ("liar", "strange") => {
            reply(asked, &json!({ "content": [{ "type": "hologram", "a": 1 }], "structuredContent": 5 }))
        }
        ("flood", "notes") => {
            let note = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info", "data": "n" } });
            let progress = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
            let lines = format!("{note}\n{progress}\n").repeat(1_000);
            let mut stdout = io::stdout().lock();
            for _ in 0..500 {
                stdout.write_all(lines.as_bytes())?;
            }
            drop(stdout);
            reply(asked, &said("a million"))
        }
        ("flood", "line") => out(&format!(
            "{{\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{}\"}}]}},\"jsonrpc\":\"2.0\",\"id\":{}}}",
            "x".repeat(LONG),
            asked["id"]
        )),
        ("flood", "endless") => {
            let mut stdout = io::stdout().lock();
            let piece = vec![b'y'; 1024 * 1024];
            loop {
                stdout.write_all(&piece)?;
            }
        }
        ("flood", "stuck") => {
            let (_keep, never) = channel::<()>();
            let waited = never.recv_timeout(Duration::from_secs(600));
            Err(io::Error::other(format!("nobody ended it: {waited:?}")))
        }
        ("flood", "asks") => {
            let mut stdout = io::stdout().lock();
            for id in 0_u64.. {
                stdout.write_all(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n").as_bytes())?;
            }
            Ok(())
        }
        _ => reply(asked, &said(asked["params"]["arguments"]["text"].as_str().unwrap_or("nothing"))),
    }
}
