//! Which files there are: places, precedence, and a bounded walk that follows no link out of its folder.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::definition::Source;
use super::diagnostic::{Code, Diagnostic};

/// Largest file that is read, bytes.
pub const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Deepest folder below a source.
pub const FOLDER_DEPTH_MAX: usize = 16;
/// Most files and folders of a source.
pub const ENTRIES_MAX: usize = 200_000;

/// Folders that are never entered.
const FOLDERS_SKIPPED: &[&str] = &[".git", "node_modules"];
/// Where systems keep their agents, below a project or a home, in order of precedence.
const FOLDERS: &[&str] = &[
    ".agents/agents",
    ".claude/agents",
    ".github/agents",
    ".cursor/agents",
    ".opencode/agents",
    ".gemini/agents",
    ".codex/agents",
];

/// Which files of a folder are definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Every `.md` file at any depth.
    Files,
    /// `NAME/agent.md` only; `main` is the session's own.
    Folders,
}

/// A folder with definitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceDir {
    /// What it is to the user.
    pub source: Source,
    /// The folder.
    pub path: PathBuf,
    /// Which of its files count.
    pub layout: Layout,
    /// Whether it must be there.
    pub required: bool,
}

/// The folders to read, first in precedence first.
///
/// `dirs` replace all others. Without them: the project's, then the user's below `home`, then `assistants` below
/// `config_dir`. A folder that two of them name counts once.
#[must_use]
pub fn sources(
    project: Option<&Path>,
    home: Option<&Path>,
    config_dir: Option<&Path>,
    dirs: &[PathBuf],
) -> Vec<SourceDir> {
    let mut found = Vec::new();
    let mut add = |source, path: PathBuf, layout| {
        let required = source == Source::Dir;
        found.push(SourceDir { source, path, layout, required });
    };
    for dir in dirs {
        add(Source::Dir, dir.clone(), Layout::Files);
    }
    if dirs.is_empty() {
        for (source, root) in [(Source::Project, project), (Source::User, home)] {
            let Some(root) = root else { continue };
            FOLDERS.iter().for_each(|folder| add(source, root.join(folder), Layout::Files));
            add(source, root.join("agents"), Layout::Folders);
        }
        if let Some(config_dir) = config_dir {
            add(Source::User, config_dir.join("assistants"), Layout::Files);
        }
    }
    let mut seen = Vec::new();
    found.retain(|dir| {
        let real = (fs::canonicalize(&dir.path).unwrap_or_else(|_| dir.path.clone()), dir.layout);
        let new = !seen.contains(&real);
        if new {
            seen.push(real);
        }
        new
    });
    found
}

/// The candidates of `dir`, sorted by path; what is no candidate is told in `skipped`.
pub(super) fn files(dir: &SourceDir, skipped: &mut Vec<Diagnostic>) -> Vec<PathBuf> {
    let root = match fs::canonicalize(&dir.path) {
        Ok(root) => root,
        Err(error) if error.kind() == io::ErrorKind::NotFound && !dir.required => return Vec::new(),
        Err(error) => {
            skipped.push(unreadable(&dir.path, &error));
            return Vec::new();
        }
    };
    let mut walk = Walk { root, layout: dir.layout, files: Vec::new(), skipped, entries: 0 };
    walk.folder(&dir.path, 0);
    walk.files.sort();
    walk.files
}

/// The bytes of a file that is no longer than [`FILE_BYTES_MAX`].
///
/// # Errors
/// Why it was not read.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, Diagnostic> {
    let file = open(path).map_err(|error| unreadable(path, &error))?;
    let meta = file.metadata().map_err(|error| unreadable(path, &error))?;
    if !meta.is_file() {
        return Err(Diagnostic::new(Code::SpecialFile, &path.display().to_string(), "it is no regular file"));
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| unreadable(path, &error))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let message = format!("the file has more than {FILE_BYTES_MAX} bytes");
        return Err(Diagnostic::new(Code::FileTooBig, &path.display().to_string(), message));
    }
    Ok(bytes)
}

/// Opens without waiting: what was a file may have become a pipe.
fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
        options.custom_flags(flags.bits().cast_signed());
    }
    options.open(path)
}

struct Walk<'a> {
    root: PathBuf,
    layout: Layout,
    files: Vec<PathBuf>,
    skipped: &'a mut Vec<Diagnostic>,
    entries: usize,
}

impl Walk<'_> {
    /// Walks `folder`, which lies `depth` folders below the root; the depth bounds the recursion.
    fn folder(&mut self, folder: &Path, depth: usize) {
        if depth > FOLDER_DEPTH_MAX {
            self.skip(Code::TooDeep, folder, format!("the folder lies deeper than {FOLDER_DEPTH_MAX} folders"));
            return;
        }
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => return self.skipped.push(unreadable(folder, &error)),
        };
        for entry in entries {
            self.entries += 1;
            if self.entries > ENTRIES_MAX {
                if self.entries == ENTRIES_MAX + 1 {
                    let message = format!("more than {ENTRIES_MAX} files; the rest was not read");
                    self.skip(Code::TooManyFiles, folder, message);
                }
                return;
            }
            match entry.and_then(|entry| Ok((entry.path(), entry.file_type()?))) {
                Ok((path, kind)) if kind.is_symlink() => self.link(&path),
                Ok((path, kind)) if kind.is_dir() => {
                    if !FOLDERS_SKIPPED.iter().any(|name| path.file_name().is_some_and(|found| found == *name)) {
                        self.folder(&path, depth + 1);
                    }
                }
                Ok((path, kind)) if kind.is_file() => self.file(path, depth),
                Ok((path, _)) => self.skip(Code::SpecialFile, &path, "a pipe, socket or device"),
                Err(error) => self.skipped.push(unreadable(folder, &error)),
            }
        }
    }

    fn file(&mut self, path: PathBuf, depth: usize) {
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        match self.layout {
            _ if name.starts_with('.') => {}
            Layout::Files if name.ends_with(".md") => self.files.push(path),
            Layout::Folders if name == "agent.md" && depth == 1 => {
                if super::reader::stem(&path) == "main" {
                    self.skip(Code::ReservedName, &path, "`main` is the session's own name");
                } else {
                    self.files.push(path);
                }
            }
            // Beside an agent lie its memory and its data.
            Layout::Folders => {}
            Layout::Files => self.skip(Code::UnknownFormat, &path, "only Markdown files are read"),
        }
    }

    fn link(&mut self, path: &Path) {
        match fs::canonicalize(path) {
            Ok(real) if real.starts_with(&self.root) => {
                self.skip(Code::LinkInside, path, "a link within the folder; its target is read in its own place");
            }
            Ok(_) => self.skip(Code::LinkOutside, path, "a link out of the folder is not followed"),
            Err(_) => self.skip(Code::DanglingLink, path, "a link that leads nowhere"),
        }
    }

    fn skip(&mut self, code: Code, path: &Path, message: impl Into<String>) {
        self.skipped.push(Diagnostic::new(code, &path.display().to_string(), message));
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Diagnostic {
    Diagnostic::new(Code::Unreadable, &path.display().to_string(), format!("it could not be read: {error}"))
}
