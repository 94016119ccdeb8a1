//! The host's log: `host.log` in the state directory, bounded by rotation. What is written there names processes,
//! clients and faults; neither prompts nor messages nor keys.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use super::talk;

/// The size at which a log is put aside, bytes.
const LOG_BYTES_MAX: u64 = 10 * 1024 * 1024;
/// Logs that are kept, the one that is written included.
const LOGS_MAX: u32 = 3;
/// What is logged where ASSISTANT_HOST_LOG does not say.
const FOR_THE_FILE: &str = "info,rmcp=error,tantivy=warn";
const FOR_PEOPLE: &str = "warn,rmcp=error,tantivy=error";
/// Before whatever is wanted: rmcp tells addresses with the keys in them, even as errors. The host tells what went wrong
/// without them.
const UNLESS_ASKED_FOR: &str = "rmcp::transport=off,rmcp::service=off";

/// Opens a log for appending; only its owner may read it.
pub(super) fn open(path: &Path) -> std::io::Result<File> {
    let mut options = File::options();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// The program's log goes to stderr, and where there is a host to its file too.
pub(super) fn start(file: Option<(&Path, Stderr)>) {
    let wanted = std::env::var("ASSISTANT_HOST_LOG").ok().filter(|wanted| !wanted.trim().is_empty());
    let filter = |default: &str| {
        let wanted = wanted.as_deref().unwrap_or(default);
        EnvFilter::builder().parse_lossy(format!("{UNLESS_ASKED_FOR},{wanted}"))
    };
    let people = fmt::layer().with_writer(std::io::stderr).with_ansi(false).with_filter(filter(FOR_PEOPLE));
    let mut layers = Vec::new();
    match file {
        None => layers.push(people.boxed()),
        Some((path, stderr)) => {
            match Log::open(path, stderr) {
                Ok(log) => {
                    let file = fmt::layer().with_writer(log).with_ansi(false).with_filter(filter(FOR_THE_FILE));
                    layers.push(file.boxed());
                }
                Err(error) => talk(&format!("the log {} cannot be written: {error}", path.display())),
            }
            if stderr == Stderr::ForPeople {
                layers.push(people.boxed());
            }
        }
    }
    let started = tracing_subscriber::registry().with(layers).try_init();
    if let Err(error) = started {
        talk(&format!("no log: {error}"));
    }
}

/// What stderr is while a log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stderr {
    /// People read it.
    ForPeople,
    /// It is the log too: a panic must end up there.
    IsTheLog,
}

#[derive(Clone)]
struct Log(Arc<Mutex<Writing>>);

struct Writing {
    path: PathBuf,
    file: File,
    bytes: u64,
    stderr: Stderr,
}

impl Log {
    fn open(path: &Path, stderr: Stderr) -> std::io::Result<Self> {
        let file = open(path)?;
        let bytes = file.metadata()?.len();
        let writing = Writing { path: path.to_owned(), file, bytes, stderr };
        writing.follow()?;
        Ok(Self(Arc::new(Mutex::new(writing))))
    }
}

impl Writing {
    /// Puts the log aside and begins another one.
    fn rotate(&mut self) -> std::io::Result<()> {
        let aside = |number: u32| PathBuf::from(format!("{}.{number}", self.path.display()));
        for number in (1..LOGS_MAX - 1).rev() {
            match std::fs::rename(aside(number), aside(number + 1)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        std::fs::rename(&self.path, aside(1))?;
        self.file = open(&self.path)?;
        self.bytes = 0;
        self.follow()
    }

    /// Lets stderr end up in the log, where it is to.
    fn follow(&self) -> std::io::Result<()> {
        #[cfg(unix)]
        if self.stderr == Stderr::IsTheLog {
            rustix::stdio::dup2_stderr(&self.file)?;
        }
        Ok(())
    }
}

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        let mut writing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if writing.bytes > 0 && writing.bytes + line.len() as u64 > LOG_BYTES_MAX {
            // A log that cannot be put aside is written on: too long is better than silent.
            if let Err(error) = writing.rotate() {
                writeln!(writing.file, "the log was not put aside: {error}")?;
                writing.bytes = 0;
            }
        }
        writing.file.write_all(line)?;
        writing.bytes += line.len() as u64;
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).file.flush()
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_log_is_put_aside_and_the_oldest_goes() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("host.log");
        let mut log = Log::open(&path, Stderr::ForPeople).expect("a log");
        let line = vec![b'x'; 1024 * 1024];
        for _ in 0..41 {
            log.write_all(&line).expect("written");
        }
        let mut found: Vec<(String, u64)> = std::fs::read_dir(dir.path())
            .expect("a folder")
            .map(|entry| entry.expect("an entry"))
            .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.metadata().expect("one").len()))
            .collect();
        found.sort();
        let size = |mib: u64| mib * 1024 * 1024;
        let want = [("host.log", 1), ("host.log.1", 10), ("host.log.2", 10)];
        assert_eq!(found, want.map(|(name, mib)| (name.to_owned(), size(mib))));
    }
}
