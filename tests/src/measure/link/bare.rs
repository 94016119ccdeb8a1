//! The same lines of JSON, read and written by serde_json as the same types.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::process::{ChildStdin, ChildStdout};

use assistant_protocol::methods::Method;
use serde::{Deserialize, Serialize};

use super::window::{self, BUFFER_BYTES};
use super::{Echo, Load, Payload, Times, differs};

#[derive(Serialize, Deserialize)]
struct Request<'a, P> {
    jsonrpc: &'a str,
    id: u64,
    method: &'a str,
    params: P,
}

#[derive(Serialize, Deserialize)]
struct Response<'a> {
    jsonrpc: &'a str,
    id: u64,
    result: Payload,
}

fn write(line: &mut Vec<u8>, message: &impl Serialize, to: &mut impl Write) -> io::Result<()> {
    line.clear();
    serde_json::to_writer(&mut *line, message)?;
    line.push(b'\n');
    to.write_all(line)
}

/// The asking side.
///
/// # Errors
/// The pipes', and answers that do not fit.
pub fn asks(pipes: (File, File), loads: [Load; 2]) -> io::Result<Times> {
    let payload = Payload::of(loads[1].bytes);
    let (mut asked, mut written) = (0, Vec::new());
    let ask = |to: &mut BufWriter<File>| {
        asked += 1;
        write(&mut written, &Request { jsonrpc: "2.0", id: asked, method: Echo::NAME, params: &payload }, to)
    };
    let (mut answered, mut line) = (0, Vec::new());
    let answer = |from: &mut BufReader<File>| {
        line.clear();
        from.read_until(b'\n', &mut line)?;
        let response: Response<'_> = serde_json::from_slice(&line)?;
        answered += 1;
        let as_asked = response.id == answered && response.result.text.len() == payload.text.len();
        as_asked.then_some(()).ok_or_else(differs)
    };
    window::asks(pipes, loads, ask, answer)
}

/// Answers what is asked, until nothing is.
///
/// # Errors
/// The pipes', and lines that are no requests.
pub fn answers(from: ChildStdout, to: ChildStdin) -> io::Result<()> {
    let (mut from, mut to) = (BufReader::with_capacity(BUFFER_BYTES, from), BufWriter::with_capacity(BUFFER_BYTES, to));
    let (mut line, mut written) = (Vec::new(), Vec::new());
    loop {
        line.clear();
        if from.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let request: Request<'_, Payload> = serde_json::from_slice(&line)?;
        if request.method != Echo::NAME {
            return Err(differs());
        }
        let response = Response { jsonrpc: request.jsonrpc, id: request.id, result: request.params };
        write(&mut written, &response, &mut to)?;
        if from.buffer().is_empty() {
            to.flush()?;
        }
    }
}
