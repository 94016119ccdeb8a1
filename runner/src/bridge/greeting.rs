//! The first line each way on the socket of an adapter: who comes, and whether it may. MCP follows.

/// What a connection begins with, before its token.
const HELLO: &str = "assistants-bridge 1 ";
/// What one that may stay is answered.
pub(crate) const WELCOME: &str = "welcome\n";
/// What stands before the reason where it may not.
const REFUSED: &str = "refused: ";

/// The longest line of a greeting, either way, in bytes.
pub(crate) const BYTES_MAX: usize = 512;
/// How long either side waits for the other's line, in milliseconds.
pub(crate) const WAIT_MS: u64 = 5_000;

/// The line of one who comes with a token.
pub(crate) fn hello(token: &str) -> String {
    format!("{HELLO}{token}\n")
}

/// The token of a line, its end left out.
pub(crate) fn token(line: &[u8]) -> Option<&[u8]> {
    line.strip_prefix(HELLO.as_bytes())
}

/// The line of one who is refused for a reason.
pub(crate) fn refusal(why: &str) -> String {
    format!("{REFUSED}{why}\n")
}

/// What an answer says, its end left out: that one may stay, or why not.
pub(crate) fn answer(line: &[u8]) -> Result<(), String> {
    let line = String::from_utf8_lossy(line);
    match line.strip_prefix(REFUSED) {
        None if line == WELCOME.trim_end() => Ok(()),
        Some(why) => Err(format!("the adapter refused the connection: {why}")),
        None => Err("whoever listens at the socket is no adapter".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_reads_what_the_other_writes() {
        assert_eq!(token(hello("abc").trim_end().as_bytes()), Some(&b"abc"[..]));
        assert_eq!(token(b"assistants-bridge 2 abc"), None);
        assert_eq!(token(b"{\"jsonrpc\":\"2.0\"}"), None);
        assert_eq!(answer(WELCOME.trim_end().as_bytes()), Ok(()));
        let refused = refusal("the token is wrong");
        let told = "the adapter refused the connection: the token is wrong".to_owned();
        assert_eq!(answer(refused.trim_end().as_bytes()), Err(told));
        assert_eq!(answer(b"\xff"), Err("whoever listens at the socket is no adapter".to_owned()));
    }
}
