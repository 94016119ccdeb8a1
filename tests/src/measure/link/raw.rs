//! As many bytes as the text has, and nothing else.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::process::{ChildStdin, ChildStdout};

use super::window::{self, BUFFER_BYTES};
use super::{Load, Payload, Times};

/// The asking side.
///
/// # Errors
/// The pipes'.
pub fn asks(pipes: (File, File), loads: [Load; 2]) -> io::Result<Times> {
    let sent = Payload::of(loads[1].bytes).text.into_bytes();
    let mut read = vec![0; sent.len()];
    window::asks(pipes, loads, |to| to.write_all(&sent), move |from| from.read_exact(&mut read))
}

/// Gives back what comes, until nothing does.
///
/// # Errors
/// The pipes'.
pub fn answers(from: ChildStdout, to: ChildStdin, bytes: usize) -> io::Result<()> {
    let (mut from, mut to) = (BufReader::with_capacity(BUFFER_BYTES, from), BufWriter::with_capacity(BUFFER_BYTES, to));
    let mut frame = vec![0; bytes];
    loop {
        match from.read_exact(&mut frame) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            read => read?,
        }
        to.write_all(&frame)?;
        if from.buffer().is_empty() {
            to.flush()?;
        }
    }
}
