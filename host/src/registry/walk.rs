//! Which files of a source are candidates: a bounded walk that follows no link out of its folder; and their bytes.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::diagnostic::{Code, Diagnostic};
use super::places::{Layout, SourceDir};
use crate::caller::MAIN;

/// Largest file that is read, bytes.
pub const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Deepest folder below a source.
pub const FOLDER_DEPTH_MAX: usize = 16;
/// Most files and folders of a source.
pub const ENTRIES_MAX: usize = 200_000;

/// The folder that `dir` is, links followed; none where it is not there. Why it cannot be found is told in `skipped`.
pub(super) fn root(dir: &SourceDir, skipped: &mut Vec<Diagnostic>) -> Option<PathBuf> {
    match fs::canonicalize(&dir.path) {
        Ok(root) => return Some(root),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !dir.required => {}
        Err(error) => skipped.push(unreadable(&dir.path, &error)),
    }
    None
}

/// The candidates of `dir`, which is the folder `root`, sorted by path; what is no candidate is told in `skipped`. A file
/// that was named is its own candidate.
pub(super) fn files(dir: &SourceDir, root: &Path, skipped: &mut Vec<Diagnostic>) -> Vec<PathBuf> {
    if dir.required && root.is_file() {
        return vec![if dir.path.is_symlink() { root.to_owned() } else { dir.path.clone() }];
    }
    if dir.required && !root.is_dir() {
        let message = "a pipe, socket or device";
        skipped.push(Diagnostic::new(Code::SpecialFile, &dir.path.display().to_string(), message));
        return Vec::new();
    }
    let mut walk = Walk { root, layout: dir.layout, files: Vec::new(), skipped, entries: 0 };
    walk.folder(&dir.path, 0);
    walk.files.sort();
    walk.files
}

/// The bytes of a file that is no longer than [`FILE_BYTES_MAX`].
///
/// # Errors
/// Why it was not read.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Diagnostic> {
    let file = open(path).map_err(|error| unreadable(path, &error))?;
    let meta = file.metadata().map_err(|error| unreadable(path, &error))?;
    if !meta.is_file() {
        return Err(Diagnostic::new(Code::SpecialFile, &path.display().to_string(), "it is no regular file"));
    }
    // With room for all and a sign of the end: else each file takes ten reads.
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len().min(FILE_BYTES_MAX)).unwrap_or(0) + 1);
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
    root: &'a Path,
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
                Ok((path, kind)) if kind.is_dir() => {
                    if self.layout.enters(&name(&path), depth) {
                        self.folder(&path, depth + 1);
                    }
                }
                Ok((path, kind)) if kind.is_file() => self.file(path, depth),
                // Beside an agent lie its memory and its data.
                Ok((path, _)) if self.layout == Layout::Folders && !self.layout.takes(&name(&path), depth) => {}
                Ok((path, kind)) if kind.is_symlink() => self.link(&path),
                Ok((path, _)) => self.skip(Code::SpecialFile, &path, "a pipe, socket or device"),
                Err(error) => self.skipped.push(unreadable(folder, &error)),
            }
        }
    }

    fn file(&mut self, path: PathBuf, depth: usize) {
        let name = name(&path);
        match self.layout {
            layout if layout.takes(&name, depth) => match layout {
                Layout::Folders if super::dialect::stem(&path) == MAIN => {
                    self.skip(Code::ReservedName, &path, "`main` is the session's own name");
                }
                Layout::Files | Layout::Folders => self.files.push(path),
            },
            Layout::Files if !name.starts_with('.') => {
                self.skip(Code::UnknownFormat, &path, "only Markdown, TOML, YAML and JSON files are read");
            }
            Layout::Files | Layout::Folders => {}
        }
    }

    fn link(&mut self, path: &Path) {
        self.skipped.push(link(path, self.root));
    }

    fn skip(&mut self, code: Code, path: &Path, message: impl Into<String>) {
        self.skipped.push(Diagnostic::new(code, &path.display().to_string(), message));
    }
}

/// What becomes of the link `path` in the folder `root`, which is a real path.
pub(crate) fn link(path: &Path, root: &Path) -> Diagnostic {
    let (code, message) = match fs::canonicalize(path) {
        Ok(real) if real.starts_with(root) => {
            (Code::LinkInside, "a link within the folder; its target is read in its own place")
        }
        Ok(_) => (Code::LinkOutside, "a link out of the folder is not followed"),
        Err(_) => (Code::DanglingLink, "a link that leads nowhere"),
    };
    Diagnostic::new(code, &path.display().to_string(), message)
}

/// The last part of a path, as it can be compared.
fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn unreadable(path: &Path, error: &io::Error) -> Diagnostic {
    Diagnostic::new(Code::Unreadable, &path.display().to_string(), format!("it could not be read: {error}"))
}
