//! What a line is, and how lines come out of a pipe.

use super::*;

mod corpus;
mod properties;

fn check(line: impl AsRef<[u8]>, what: &str) {
    assert_eq!(shown(&classify(line.as_ref())), what, "{}", excerpt(line.as_ref()));
}

fn shown(incoming: &Incoming<'_>) -> String {
    match incoming {
        Incoming::Request { id, method, params } => {
            format!("ask {id:?} {method} {}", params.unwrap_or("bad params"))
        }
        Incoming::Response { id, outcome: Ok(result) } => format!("answer {id:?} {}", result.get()),
        Incoming::Response { id, outcome: Err(error) } => format!("error {id:?} {} {error}", error.code),
        other => format!("{other:?}"),
    }
}

#[test]
fn a_line_is_what_it_says() {
    check(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "ask Number(1) ping {}");
    check(r#"{"method":"run","params":{"a":[1]},"id":"x","jsonrpc":"2.0"}"#, r#"ask Text("x") run {"a":[1]}"#);
    check(r#" {"jsonrpc":"2.0","id":0,"method":"p","params":null,"more":1} "#, "ask Number(0) p {}");
    check(r#"{"jsonrpc":"2.0","id":1,"method":"p\u0069ng","params": [4] }"#, "ask Number(1) ping bad params");
    check(r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}"#, "ask Number(1) ping bad params");
    check(r#"{"jsonrpc":"2.0","id":9007199254740992,"method":"m"}"#, "ask Number(9007199254740992) m {}");
    check(r#"{"jsonrpc":"2.0","id":1,"result":null}"#, "answer Number(1) null");
    check(r#"{"jsonrpc":"2.0","id":1,"result":{"a":1},"error":null}"#, r#"answer Number(1) {"a":1}"#);
    check(r#"{"jsonrpc":"2.0","id":1,"error":{"code":7,"message":"m"}}"#, "error Number(1) 7 m");
    check(r#"{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":7,"message":"m"}}"#, "error Number(1) 7 m");
    check(
        r#"{"jsonrpc":"2.0","id":1,"error":"boom"}"#,
        r#"error Number(1) -32603 answered with no proper error: "boom""#,
    );
}

#[test]
fn what_has_no_id_is_told_apart() {
    check(r#"{"jsonrpc":"2.0","method":"note"}"#, "NoId");
    check(r#"{"jsonrpc":"2.0","method":"note","id":null}"#, "NoId");
    check(r#"{"jsonrpc":"2.0","result":1}"#, "NoId");
}

#[test]
fn what_is_no_message_is_told_apart() {
    for line in [
        "",
        "   ",
        "\r",
        "   Compiling tokio v1.54.1",
        "7",
        "null",
        "[1,2]",
        "{}",
        r#"{"level":"info"}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
        r#"{"id":1,"method":"ping"}"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
        r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":-1,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":{"a":1},"result":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":5}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"} trailing"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"pi"#,
    ] {
        check(line, "Unparsable");
    }
    check(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}", "Unparsable");
    check(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1,\"x\":\"\xff\"}", "Unparsable");
    check(format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"m"}}"#, "x".repeat(ID_BYTES_MAX + 1)), "Unparsable");
}

/// All lines of `bytes` when at most `chunk` bytes come at once.
async fn lines(bytes: &[u8], chunk: usize, max_bytes: usize) -> Vec<String> {
    let (ours, mut theirs) = tokio::io::duplex(chunk);
    let bytes = bytes.to_vec();
    let write = tokio::spawn(async move { tokio::io::AsyncWriteExt::write_all(&mut theirs, &bytes).await });
    let mut reader = LineReader::new(ours, max_bytes);
    let mut got = Vec::new();
    loop {
        match reader.next().await.expect("a duplex does not fail") {
            Line::Whole(line) => got.push(excerpt(line)),
            Line::TooLong => {
                got.push("(too long)".to_owned());
                break;
            }
            Line::End => break,
        }
    }
    write.abort();
    got
}

#[tokio::test]
async fn lines_come_whole_however_they_are_cut() {
    for chunk in [1, 2, 3, 7, 64, 4096] {
        assert_eq!(lines(b"", chunk, 10).await, Vec::<String>::new());
        assert_eq!(lines(b"a\n\nbc\r\nd", chunk, 10).await, ["a", "", "bc", "d"]);
        assert_eq!(lines(b"0123456789\n1\n", chunk, 10).await, ["0123456789", "1"]);
        assert_eq!(lines(b"1\n01234567890\n2\n", chunk, 10).await, ["1", "(too long)"]);
        assert_eq!(lines(b"1\n01234567890", chunk, 10).await, ["1", "(too long)"]);
    }
}

#[tokio::test]
async fn a_line_without_end_is_given_up() {
    let mut reader = LineReader::new(tokio::io::repeat(b'x'), 1 << 20);
    assert_eq!(reader.next().await.expect("reads"), Line::TooLong);
    assert!(reader.buffer.capacity() < 4 << 20, "{}", reader.buffer.capacity());
}

#[test]
fn a_request_is_one_line() {
    let line = request_line(&Id::Number(3), "ping", &serde_json::json!({ "text": "a\nb" })).expect("writes");
    assert_eq!(line, b"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\",\"params\":{\"text\":\"a\\nb\"}}\n");
}
