//! Lines of a program that may write anything: any bytes, any length, no end.

use std::io;

use assistant_protocol::wire;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::task::consume_budget;

/// The longest line that is kept, in bytes; of a longer one only the beginning.
pub(crate) const LINE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Bytes that are read at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// The beginning of a line, to be shown: characters that steer a terminal are blanks.
pub(crate) fn excerpt(line: &[u8]) -> String {
    wire::excerpt(line).chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A line without its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    /// As it came; bytes that are no UTF-8 are replaced.
    Whole(String),
    /// Longer than it may be: the rest was skipped.
    TooLong {
        /// How it begins.
        start: String,
        /// Its length in bytes.
        bytes: u64,
    },
}

/// Reads lines of at most so many bytes.
pub(crate) struct Lines<R> {
    reader: BufReader<R>,
    bytes_max: usize,
    line: Vec<u8>,
    /// Bytes of the line that were skipped.
    skipped: u64,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Lines of `reader`, of at most `bytes_max` bytes.
    pub(crate) fn new(reader: R, bytes_max: usize) -> Self {
        Self { reader: BufReader::with_capacity(CHUNK_BYTES, reader), bytes_max, line: Vec::new(), skipped: 0 }
    }

    /// The next line; none at the end. What stands behind the last newline is a line too. Nothing is lost when the future
    /// is dropped.
    ///
    /// # Errors
    /// Those of the reader.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Line>> {
        // One that floods holds up nothing else: a chunk may have more lines than are read in seconds.
        consume_budget().await;
        loop {
            let chunk = self.reader.fill_buf().await?;
            if chunk.is_empty() {
                let nothing = self.line.is_empty() && self.skipped == 0;
                return Ok((!nothing).then(|| self.take()));
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let of_line = &chunk[..end.unwrap_or(chunk.len())];
            let room = self.bytes_max.saturating_sub(self.line.len()).min(of_line.len());
            self.line.extend_from_slice(&of_line[..room]);
            self.skipped += (of_line.len() - room) as u64;
            let used = of_line.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() {
                return Ok(Some(self.take()));
            }
        }
    }

    fn take(&mut self) -> Line {
        let line = std::mem::take(&mut self.line);
        let skipped = std::mem::take(&mut self.skipped);
        if skipped > 0 {
            return Line::TooLong { start: excerpt(&line), bytes: line.len() as u64 + skipped };
        }
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        Line::Whole(String::from_utf8_lossy(line).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn check(written: &[u8], want: &[Line]) {
        let mut lines = Lines::new(written, 8);
        let mut got = Vec::new();
        while let Some(line) = lines.next().await.expect("reads") {
            got.push(line);
        }
        assert_eq!(got, want, "{written:?}");
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.to_owned())
    }

    #[tokio::test]
    async fn lines_of_any_bytes_and_any_length_come_through() {
        check(b"", &[]).await;
        check(b"a\n\nb", &[whole("a"), whole(""), whole("b")]).await;
        check(b"a\r\n\xff\xfe\n", &[whole("a"), whole("\u{fffd}\u{fffd}")]).await;
        check(b"12345678\n", &[whole("12345678")]).await;
        let long = Line::TooLong { start: "12345678".to_owned(), bytes: 10 };
        check(b"1234567890\nnext", &[long.clone(), whole("next")]).await;
        check(b"1234567890", &[long]).await;
        check(b"\0\0\n", &[whole("\0\0")]).await;
    }
}
