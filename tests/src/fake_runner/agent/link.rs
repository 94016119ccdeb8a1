//! The agent's pipes: lines in, lines out.

use std::io::{self, Read, Write};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use super::faults::Fault;

/// The longest line that is taken, in bytes.
pub(super) const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// What is read at once, in bytes.
const READ_BYTES: usize = 64 * 1024;
/// How long one that is impatient waits for the host to read.
const PATIENCE: Duration = Duration::from_millis(300);
/// What a pipe holds of its own, in bytes: no write of less waits for the host.
const PIPE_BYTES: usize = 64 * 1024;

/// What came.
pub(super) enum Heard {
    /// A line, without its end.
    Line(Vec<u8>),
    /// Stdin ended, perhaps in a line.
    End { in_a_line: bool },
}

/// Stdin and stdout.
pub(super) struct Link {
    fault: Option<Fault>,
    /// What was read and not given out.
    read: Vec<u8>,
    /// Up to where there is no newline in it.
    searched: usize,
    /// What one that holds back has not written.
    held: Vec<u8>,
}

impl Link {
    pub(super) fn new(fault: Option<Fault>) -> Self {
        Self { fault, read: Vec::new(), searched: 0, held: Vec::new() }
    }

    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    /// The next line.
    pub(super) fn next(&mut self) -> io::Result<Heard> {
        loop {
            if let Some(at) = self.read[self.searched..].iter().position(|byte| *byte == b'\n') {
                let rest = self.read.split_off(self.searched + at + 1);
                let mut line = std::mem::replace(&mut self.read, rest);
                line.pop();
                self.searched = 0;
                if self.has(Fault::OneLineARead) {
                    self.read.clear();
                }
                return Ok(Heard::Line(self.spoilt(line)));
            }
            self.searched = self.read.len();
            if self.read.len() > LINE_BYTES_MAX {
                return Err(io::Error::other("the host writes a longer line than this runner takes"));
            }
            let mut piece = [0; READ_BYTES];
            let count = io::stdin().lock().read(&mut piece)?;
            if count == 0 {
                return Ok(Heard::End { in_a_line: !self.read.is_empty() });
            }
            self.read.extend_from_slice(&piece[..count]);
            if self.has(Fault::OneReadALine) && !self.read.ends_with(b"\n") {
                self.read.push(b'\n');
            }
        }
    }

    /// The line as one with a fault has it.
    fn spoilt(&self, mut line: Vec<u8>) -> Vec<u8> {
        match self.fault {
            Some(Fault::CountsReturns) if line.ends_with(b"\r") => line.clear(),
            Some(Fault::ShortBuffer) => line.truncate(64 * 1024),
            Some(Fault::FourMebibytes) if line.len() > 4 * 1024 * 1024 => line.clear(),
            Some(Fault::SplitsAtSeparators) => {
                let separator = "\u{2028}".as_bytes();
                let at = line.windows(separator.len()).position(|bytes| bytes == separator);
                line.truncate(at.unwrap_or(line.len()));
            }
            _ => {}
        }
        line
    }

    /// Writes a message.
    pub(super) fn say(&mut self, message: &Value) -> io::Result<()> {
        let mut text = match self.has(Fault::SeveralLines) {
            true => format!("{message:#}"),
            false => message.to_string(),
        };
        if self.has(Fault::BasicPlane) {
            text = text.chars().map(|one| if one > '\u{ffff}' { '?' } else { one }).collect();
        }
        let mut bytes = match self.has(Fault::Latin1) {
            true => text.chars().map(|one| u8::try_from(one).unwrap_or(b'?')).collect(),
            false => text.into_bytes(),
        };
        bytes.extend_from_slice(if self.has(Fault::BlankLines) { b"\n\n" } else { b"\n" });
        self.write(bytes)
    }

    /// Writes bytes as they are.
    pub(super) fn write(&mut self, bytes: Vec<u8>) -> io::Result<()> {
        match self.fault {
            Some(Fault::HoldsBack) => {
                self.held.extend(bytes);
                match self.held.len() < 4 * 1024 {
                    true => Ok(()),
                    false => written(&std::mem::take(&mut self.held)),
                }
            }
            Some(Fault::Impatient) if bytes.len() > PIPE_BYTES => {
                let (tell, told) = mpsc::channel();
                std::thread::spawn(move || tell.send(written(&bytes)));
                let late = |_| Err(io::Error::new(io::ErrorKind::TimedOut, "the host does not read"));
                told.recv_timeout(PATIENCE).unwrap_or_else(late)
            }
            _ => written(&bytes),
        }
    }
}

fn written(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}
