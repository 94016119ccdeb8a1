//! A host over many files, in a process of its own, so that its memory is only its own: `search-bench --host TASK`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use assistant_host::changes::{Change, Changes};
use assistant_host::host::{Host, Options};
use assistant_host::launcher::RunnerCommand;
use assistant_host::registry::{self, Definition, Source, read_markdown};
use assistant_protocol::ids::SessionId;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::collection::Doc;
use super::generate::file;
use crate::timing::{own_kib, p50, p99, pss_kib};

/// The argument that makes a program this one.
pub const ARGUMENT: &str = "--host";
/// How long all upserts, or all changes of files, may take; fewer are made where they are slow.
const WORK_MAX: Duration = Duration::from_secs(60);
/// How long a changed file may go unseen before it is told that it is not seen.
const SEEN_WAIT: Duration = Duration::from_secs(30);

/// What the process is to do.
#[derive(Debug, Serialize, Deserialize)]
pub struct Task {
    /// Where the files are.
    pub assistants: PathBuf,
    /// The state directory.
    pub state: PathBuf,
    /// Queries, upserts and changes of files; none is only an opening.
    pub work: Option<Work>,
}

/// What an open host is to do.
#[derive(Debug, Serialize, Deserialize)]
pub struct Work {
    /// What is asked.
    pub queries: Vec<String>,
    /// Assistants that are stored, at most.
    pub upserts: usize,
    /// Files that are written, at most.
    pub changes: usize,
}

/// What it was like.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Figures {
    /// Assistants that the host has.
    pub assistants: usize,
    /// All bytes of the files read, milliseconds: the floor.
    pub read_ms: f64,
    /// Until the host is open, milliseconds.
    pub open_ms: f64,
    /// Memory before anything is open.
    pub empty: Memory,
    /// Memory when the host is open.
    pub open: Memory,
    /// Memory after the work.
    pub worked: Option<Memory>,
    /// `search_assistant`, from the call to the answer.
    pub search: Option<Times>,
    /// An assistant stored, until a search has found it.
    pub upsert: Option<Times>,
    /// A file written, until a search has found it; none where it was not seen.
    pub change: Option<Times>,
}

/// Memory of the process, MB.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Memory {
    /// Its share of all.
    pub pss_mb: f64,
    /// Without pages of files.
    pub own_mb: f64,
}

/// Times of the same work, milliseconds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Times {
    /// How often it was done.
    pub count: usize,
    /// The middle one.
    pub p50_ms: f64,
    /// What 99 of 100 do not pass.
    pub p99_ms: f64,
}

impl Times {
    /// Of some times; none where there are none.
    #[must_use]
    pub fn of(times: Vec<Duration>) -> Option<Self> {
        (!times.is_empty()).then(|| Self { count: times.len(), p50_ms: p50(times.clone()), p99_ms: p99(times) })
    }
}

/// Does a task in a process of its own.
///
/// # Errors
/// In words: it did not start, or failed.
pub fn apart(task: &Task) -> Result<Figures, String> {
    let me = std::env::current_exe().map_err(|error| error.to_string())?;
    let task = serde_json::to_string(task).map_err(|error| error.to_string())?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    // In a file: a task holds queries, which an argument may be too short for.
    let path = folder.path().join("task.json");
    std::fs::write(&path, task).map_err(|error| error.to_string())?;
    let output = Command::new(me).arg(ARGUMENT).arg(&path).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("the host's process failed: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("the host's process told no figures: {error}"))
}

/// Does the task in the file `path` here, and returns the figures as JSON.
///
/// # Errors
/// In words: what failed.
pub fn serve(path: &Path) -> Result<String, String> {
    let task = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let task: Task = serde_json::from_str(&task).map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let figures = runtime.map_err(|error| error.to_string())?.block_on(measure(task))?;
    serde_json::to_string(&figures).map_err(|error| error.to_string())
}

async fn measure(task: Task) -> Result<Figures, String> {
    let start = Instant::now();
    read_all(&task.assistants).map_err(|error| error.to_string())?;
    let read_ms = ms(start);
    let empty = memory();
    let mut options = Options::new(task.state, RunnerCommand::new("no-runner-is-started"));
    options.sources = registry::sources(None, None, None, std::slice::from_ref(&task.assistants));
    let start = Instant::now();
    let host = Host::open(options).await.map_err(|error| error.to_string())?;
    let open_ms = ms(start);
    let open = memory();
    let assistants = host.registry().assistants().len();
    let mut figures =
        Figures { assistants, read_ms, open_ms, empty, open, worked: None, search: None, upsert: None, change: None };
    if let Some(work) = task.work {
        let session = host.open_session("search-bench", "main").await.map_err(|error| error.to_string())?;
        let host = Asked { host: host.clone(), session };
        figures.search = host.searches(&work.queries).await?;
        figures.upsert = host.upserts(work.upserts).await?;
        figures.change = host.changes(&task.assistants, work.changes).await?;
        figures.worked = Some(memory());
    }
    host.close().await;
    Ok(figures)
}

struct Asked {
    host: Host,
    session: SessionId,
}

impl Asked {
    async fn search(&self, query: &str) -> Result<Value, String> {
        let arguments = json!({ "query": query }).as_object().cloned().unwrap_or_default();
        let answer = self.host.call(self.session, "search_assistant", arguments).await;
        answer.map_err(|error| format!("`{query}`: {error}"))
    }

    async fn find(&self, query: &str, id: &str) -> Result<(), String> {
        let found = self.search(query).await?;
        if found["items"][0]["assistant_id"] == id {
            Ok(())
        } else {
            Err(format!("`{query}` did not find `{id}`: {found}"))
        }
    }

    async fn searches(&self, queries: &[String]) -> Result<Option<Times>, String> {
        let mut times = Vec::new();
        for query in queries {
            let start = Instant::now();
            self.search(query).await?;
            times.push(start.elapsed());
        }
        Ok(Times::of(times))
    }

    async fn upserts(&self, most: usize) -> Result<Option<Times>, String> {
        let (mut times, begin) = (Vec::new(), Instant::now());
        for number in 0..most {
            let (doc, word) = news("upserted", number);
            let definition = definition(&doc)?;
            let start = Instant::now();
            self.host.create_assistant(definition).await.map_err(|error| error.to_string())?;
            self.find(&word, &doc.id).await?;
            times.push(start.elapsed());
            if begin.elapsed() > WORK_MAX {
                break;
            }
        }
        Ok(Times::of(times))
    }

    async fn changes(&self, folder: &Path, most: usize) -> Result<Option<Times>, String> {
        let (mut times, begin) = (Vec::new(), Instant::now());
        let snapshot = self.host.snapshot().await.map_err(|error| error.to_string())?;
        let mut changes = self.host.changes(&snapshot);
        for number in 0..most {
            let (doc, word) = news("written", number);
            let path = folder.join(format!("{}.md", doc.id));
            let start = Instant::now();
            std::fs::write(&path, file(&doc)).map_err(|error| format!("{}: {error}", path.display()))?;
            match tokio::time::timeout(SEEN_WAIT, seen(&mut changes, &doc.id)).await {
                Ok(seen) => seen?,
                Err(_) => return Ok(None),
            }
            self.find(&word, &doc.id).await?;
            times.push(start.elapsed());
            if begin.elapsed() > WORK_MAX {
                break;
            }
        }
        Ok(Times::of(times))
    }
}

/// Waits until the changes tell of an assistant.
async fn seen(changes: &mut Changes, id: &str) -> Result<(), String> {
    loop {
        match changes.next().await.map_err(|error| error.to_string())? {
            Change::Assistant(found) if found.id.as_str() == id => return Ok(()),
            _ => {}
        }
    }
}

/// An assistant that was not there, and a word that only it has.
fn news(what: &str, number: usize) -> (Doc, String) {
    // Letters only, so that the word is one term.
    let letters: String = number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'k')).collect();
    let word = format!("zq{letters}xv{what}");
    let description = format!("Looks into {word} where there is one.");
    let body = format!("You look into {word}. {}", "Say what you see, and where. ".repeat(140));
    (Doc { id: format!("{what}-{number}"), name: format!("{what}-{number}"), description, body }, word)
}

fn definition(doc: &Doc) -> Result<Definition, String> {
    let path = PathBuf::from(format!("{}.md", doc.id));
    read_markdown(file(doc).as_bytes(), &path, Source::Database).map_err(|reason| format!("{reason:?}"))
}

fn read_all(folder: &Path) -> std::io::Result<u64> {
    let (mut bytes, mut folders) = (0, vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else {
                bytes += std::fs::read(entry.path())?.len() as u64;
            }
        }
    }
    Ok(bytes)
}

fn memory() -> Memory {
    let me = std::process::id();
    let mb = |kib: u64| kib as f64 * 1_024.0 / 1e6;
    Memory { pss_mb: mb(pss_kib(me)), own_mb: mb(own_kib(me)) }
}

fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1_000.0
}
