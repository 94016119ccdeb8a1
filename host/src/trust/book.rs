//! What the user trusts: a folder of the user's, outside of every project, with a small file for each thing.
//!
//! A file for each, so that commands that trust and hosts that look need no lock: each file is made whole and put in
//! place by a rename, and one that is damaged costs the trust in that one thing only, which is told.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::whole::{self, Mode};

/// Things that are trusted, at most.
pub const TRUSTED_MAX: usize = 10_000;
/// The longest file of one of them, bytes.
pub const RECORD_BYTES_MAX: u64 = 64 * 1024;
/// Characters of what is kept for people.
const WORDS_CHARS_MAX: usize = 1_000;
const VERSION: u32 = 1;

/// What is trusted, by whom, since when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trust {
    version: u32,
    /// The hash of the thing with its place: only this counts, the rest is for people.
    pub key: String,
    /// The assistant that names it.
    pub assistant: String,
    /// The assistant's file.
    pub file: String,
    /// What it is: `server orders`.
    pub what: String,
    /// When it was trusted, Unix milliseconds.
    pub at: i64,
    /// Who did.
    pub by: String,
}

impl Trust {
    /// Trust in the thing that `ruled` tells, given now by someone. None where nobody needs to be asked.
    #[must_use]
    pub fn new(definition: &crate::registry::Definition, ruled: &super::Ruled, by: &str, now_ms: i64) -> Option<Self> {
        let short = |text: &str| text.chars().take(WORDS_CHARS_MAX).collect::<String>();
        Some(Self {
            version: VERSION,
            key: ruled.key.clone()?,
            assistant: definition.id.to_string(),
            // Whole: what was trusted of a file is found by it.
            file: super::place(definition).display().to_string(),
            what: short(&ruled.wanted.title()),
            at: now_ms,
            by: short(by),
        })
    }
}

/// Why what is remembered cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// There is no place for it.
    #[error("there is no folder to remember trust in: neither HOME nor XDG_STATE_HOME is set to an absolute path")]
    NoPlace,
    /// The system does not let us.
    #[error("cannot use {}, where it is remembered what is trusted: {error}", path.display())]
    System {
        /// The folder or file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// Others could write it.
    #[error("{path}, where it is remembered what is trusted, may be written by others: run `chmod go-w {path}`", path = .0.display())]
    Open(PathBuf),
    /// A file is none of ours.
    #[error("{}, which tells that something is trusted, is damaged: `assistant-host trust` asks anew", .0.display())]
    Damaged(PathBuf),
    /// There are too many.
    #[error(
        "{TRUSTED_MAX} things are trusted, the most that may be; `assistant-host trust --remove NAME` forgets some"
    )]
    Full,
}

/// The folder in which it is remembered what is trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Book {
    folder: Option<PathBuf>,
}

impl Book {
    /// The book in a folder, which need not be there yet. Without one nothing is trusted.
    #[must_use]
    pub fn at(folder: Option<PathBuf>) -> Self {
        Self { folder }
    }

    /// Its folder.
    ///
    /// # Errors
    /// [`Unusable::NoPlace`].
    pub fn folder(&self) -> Result<&Path, Unusable> {
        self.folder.as_deref().ok_or(Unusable::NoPlace)
    }

    /// The trust in the thing of this key, if there is any.
    ///
    /// # Errors
    /// [`Unusable`]: then nothing is trusted that only it would tell.
    pub fn find(&self, key: &str) -> Result<Option<Trust>, Unusable> {
        let Some(folder) = &self.folder else { return Ok(None) };
        read(&folder.join(file_name(key)), key)
    }

    /// All that is trusted, by file and what it is; and what could not be read.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn all(&self) -> Result<(Vec<Trust>, Vec<Unusable>), Unusable> {
        let Some(folder) = &self.folder else { return Ok((Vec::new(), Vec::new())) };
        let (mut found, mut bad) = (Vec::new(), Vec::new());
        for key in keys(folder)? {
            match read(&folder.join(file_name(&key)), &key) {
                Ok(trust) => found.extend(trust),
                Err(error) => bad.push(error),
            }
        }
        found.sort_by(|a, b| (&a.file, &a.what, &a.key).cmp(&(&b.file, &b.what, &b.key)));
        Ok((found, bad))
    }

    /// Remembers trust in each of these. Once this returns it stays, whatever others do at the same time.
    ///
    /// # Errors
    /// [`Unusable`]: the first ones may be remembered then, each as a whole.
    pub fn add(&self, trusts: &[Trust]) -> Result<(), Unusable> {
        if trusts.is_empty() {
            return Ok(());
        }
        let folder = self.folder()?;
        let failed = |error| Unusable::System { path: folder.to_owned(), error };
        crate::host::make_private(folder).map_err(failed)?;
        closed_to_others(folder)?;
        if keys(folder)?.len().saturating_add(trusts.len()) > TRUSTED_MAX {
            return Err(Unusable::Full);
        }
        let put = |trust: &Trust| {
            let text = serde_json::to_string_pretty(trust)?;
            whole::put(&folder.join(file_name(&trust.key)), &text, Mode::Private, || Ok(()))
        };
        whole::tidy(folder).map_err(failed)?;
        trusts.iter().try_for_each(put).map_err(failed)?;
        whole::keep(folder).map_err(failed)
    }

    /// Forgets the trust of this key. Returns whether there was any.
    ///
    /// # Errors
    /// [`Unusable`].
    pub fn remove(&self, key: &str) -> Result<bool, Unusable> {
        let Some(folder) = &self.folder else { return Ok(false) };
        let path = folder.join(file_name(key));
        let removed = match std::fs::remove_file(&path) {
            Ok(()) => whole::keep(folder).map(|()| true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        };
        removed.map_err(|error| Unusable::System { path, error })
    }
}

fn file_name(key: &str) -> String {
    format!("{key}.json")
}

/// The keys of the files of a folder, sorted. What has another name is none of ours.
fn keys(folder: &Path) -> Result<Vec<String>, Unusable> {
    let failed = |error| Unusable::System { path: folder.to_owned(), error };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let name = entry.map_err(failed)?.file_name().into_string().unwrap_or_default();
        found.extend(name.strip_suffix(".json").filter(|key| is_key(key)).map(str::to_owned));
    }
    found.sort();
    Ok(found)
}

fn is_key(key: &str) -> bool {
    key.len() == 64 && key.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn read(path: &Path, key: &str) -> Result<Option<Trust>, Unusable> {
    let failed = |error| Unusable::System { path: path.to_owned(), error };
    let damaged = || Unusable::Damaged(path.to_owned());
    let metadata = match std::fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    if !metadata.is_file() || metadata.len() > RECORD_BYTES_MAX {
        return Err(damaged());
    }
    closed_to_others(path.parent().unwrap_or(path))?;
    closed_to_others(path)?;
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(RECORD_BYTES_MAX).read_to_end(&mut bytes)).map_err(failed)?;
    let trust: Trust = serde_json::from_slice(&bytes).map_err(|_| damaged())?;
    let whole = trust.version == VERSION && trust.key == key;
    if whole { Ok(Some(trust)) } else { Err(damaged()) }
}

/// Whoever else could write there could trust in the user's name.
#[cfg(unix)]
fn closed_to_others(path: &Path) -> Result<(), Unusable> {
    use std::os::unix::fs::PermissionsExt;
    let metadata = std::fs::metadata(path).map_err(|error| Unusable::System { path: path.to_owned(), error })?;
    match metadata.permissions().mode() & 0o022 {
        0 => Ok(()),
        _ => Err(Unusable::Open(path.to_owned())),
    }
}

/// A folder of the user's is the user's there.
#[cfg(not(unix))]
fn closed_to_others(_: &Path) -> Result<(), Unusable> {
    Ok(())
}
