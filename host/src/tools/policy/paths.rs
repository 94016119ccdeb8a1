//! Paths that are read or written, against patterns such as `src/**`, written as git ignores files.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use ignore::gitignore::GitignoreBuilder;

use super::glob;

/// The longest path that is looked at, bytes.
const PATH_BYTES_MAX: usize = 4 * 1024;
/// Stands for whatever lies in a folder.
const ANY: &str = "\u{1}";

/// A path, as it is written and as the links in it lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Resolved {
    written: PathBuf,
    real: PathBuf,
    /// The folder that patterns start in, links resolved too.
    root: PathBuf,
    real_root: PathBuf,
}

impl Resolved {
    /// Resolves `wanted`, which may be a `file:` address, in `folder`.
    ///
    /// # Errors
    /// Why nobody can tell what it is.
    pub(super) fn of(folder: Option<&Path>, wanted: &str) -> Result<Self, String> {
        if wanted.len() > PATH_BYTES_MAX {
            return Err(format!("the path is longer than {PATH_BYTES_MAX} bytes"));
        }
        if wanted.chars().any(char::is_control) {
            return Err("the path has a sign in it that is not seen".to_owned());
        }
        let wanted = match wanted.split_once("://") {
            Some((scheme, rest))
                if scheme.eq_ignore_ascii_case("file") && rest.starts_with('/') && !rest.contains('%') =>
            {
                rest
            }
            Some(_) => return Err("the path is an address".to_owned()),
            None => wanted,
        };
        let start = wanted.trim_start();
        if start.len() < wanted.len()
            || start.starts_with('~')
            || start.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("file:"))
        {
            return Err("the path begins with a sign that programs read differently".to_owned());
        }
        let root = folder.ok_or("the run has no folder that paths are in")?;
        let real_root = root.canonicalize().map_err(|_| "the folder of the run is gone")?;
        let joined = root.join(wanted);
        Ok(Self { written: lexical(&joined), real: followed(&joined)?, root: lexical(root), real_root })
    }

    /// Whether it lies in the folder that patterns start in, as it is written and where it leads.
    pub(super) fn is_inside(&self) -> bool {
        [&self.written, &self.real].iter().all(|path| self.relative(path).is_some())
    }

    /// Whether a pattern lets it pass, as it is written and where it leads; with `deep`, all below it too.
    pub(super) fn matches(&self, pattern: &str, deep: bool) -> bool {
        let below = |path: &Path| if deep { path.join(ANY).join(ANY) } else { path.to_owned() };
        [&self.written, &self.real].iter().all(|path| self.fits(pattern, &below(path), false) == Some(true))
    }

    /// Whether a pattern refuses it, as it is written or where it leads, in whatever case; with `deep`, anything below it
    /// too. What cannot be read refuses.
    pub(super) fn may_match(&self, pattern: &str, deep: bool) -> bool {
        // Where the home of a server is nobody knows here.
        let anywhere = pattern.strip_prefix("~/").map(|rest| format!("**/{rest}"));
        let pattern = anywhere.as_deref().unwrap_or(pattern);
        // A pattern for all that lies in a folder is about the folder too.
        let fits =
            |path: &PathBuf| [path, &path.join(ANY)].iter().any(|path| self.fits(pattern, path, true).unwrap_or(true));
        [&self.written, &self.real].into_iter().any(|path| fits(path) || (deep && self.reaches(pattern, path)))
    }

    /// The same for a pattern in which `*` is any text.
    pub(super) fn matches_text(&self, pattern: &str, deep: bool) -> bool {
        let texts = |path: &Path| self.texts(path, if deep { "/\0" } else { "" });
        [&self.written, &self.real].iter().all(|path| texts(path).iter().any(|text| glob::matches(pattern, text)))
    }

    /// The same for what refuses.
    pub(super) fn may_match_text(&self, pattern: &str, deep: bool) -> bool {
        let end = if deep { "/\0" } else { "" };
        let texts =
            [&self.written, &self.real].into_iter().flat_map(|path| [self.texts(path, end), self.texts(path, "")]);
        texts.flatten().any(|text| glob::may_match(pattern, &text))
    }

    /// A path from the root of patterns, and whole.
    fn texts(&self, path: &Path, end: &str) -> Vec<String> {
        let slashed = |path: &Path| format!("{}{end}", path.to_string_lossy().replace('\\', "/"));
        let mut texts = vec![slashed(path)];
        if let Some(relative) = self.relative(path) {
            // Below the folder itself nothing stands before the names.
            let text = match relative.as_os_str().is_empty() {
                true => end.trim_start_matches('/').to_owned(),
                false => slashed(relative),
            };
            texts.push(format!("./{text}"));
            texts.push(text);
        }
        texts
    }

    fn relative<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        path.strip_prefix(&self.root).or_else(|_| path.strip_prefix(&self.real_root)).ok()
    }

    /// Whether a pattern is about `path`; none where it cannot be read.
    fn fits(&self, pattern: &str, path: &Path, any_case: bool) -> Option<bool> {
        let (pattern, relative) = match pattern.strip_prefix("//") {
            Some(whole) => (format!("/{whole}"), path.strip_prefix("/").ok()),
            None => (
                pattern.strip_prefix('.').filter(|rest| rest.starts_with('/')).unwrap_or(pattern).to_owned(),
                self.relative(path),
            ),
        };
        if pattern.starts_with('~') || pattern.contains('\n') {
            return None;
        }
        // Without a slash in it, a pattern is about files in any folder: what it refuses is refused outside too.
        let anywhere = any_case && !pattern.trim_end_matches('/').contains('/');
        let relative = relative.or_else(|| path.strip_prefix("/").ok().filter(|_| anywhere));
        let Some(relative) = relative else { return Some(false) };
        let everything = matches!(pattern.trim_start_matches('/'), "**" | "*" | "**/*");
        if relative.as_os_str().is_empty() {
            return Some(everything);
        }
        let mut builder = GitignoreBuilder::new("/");
        builder.case_insensitive(any_case).ok()?;
        let escaped = if pattern.starts_with(['!', '#']) { format!("\\{pattern}") } else { pattern };
        builder.add_line(None, &escaped).ok()?;
        let set = builder.build().ok()?;
        if set.is_empty() {
            return None;
        }
        Some(set.matched_path_or_any_parents(relative, false).is_ignore() || set.matched(relative, true).is_ignore())
    }

    /// Whether something below `path` may be what a pattern is about.
    fn reaches(&self, pattern: &str, path: &Path) -> bool {
        let (base, pattern) = match pattern.strip_prefix("//") {
            Some(whole) => (Path::new("/"), whole),
            None => (self.root.as_path(), pattern.trim_start_matches("./").trim_start_matches('/')),
        };
        // Without a slash in it, a pattern is about files in any folder.
        if !pattern.trim_end_matches('/').contains('/') && !pattern.is_empty() {
            return true;
        }
        let known = pattern.split('/').take_while(|part| !part.contains(['*', '?', '[', '{', '\\']));
        let from = known.fold(base.to_owned(), |path, part| path.join(part));
        let under = |path: &Path| from.starts_with(path) || path.starts_with(&from);
        under(path) || self.relative(path).is_some_and(|relative| under(&self.root.join(relative)))
    }
}

/// As it is written, from the root of patterns where it lies below.
impl fmt::Display for Resolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.relative(&self.written).unwrap_or(&self.written);
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        path.display().fmt(f)
    }
}

/// `path` without `.` and `..`.
fn lexical(path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => _ = whole.pop(),
            part => whole.push(part),
        }
    }
    whole
}

/// Where `path` leads: links followed in what there is, the rest behind it.
fn followed(path: &Path) -> Result<PathBuf, String> {
    let mut real = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => continue,
            Component::ParentDir => {
                real.pop();
                continue;
            }
            part => real.push(part),
        }
        match real.canonicalize() {
            Ok(found) => real = found,
            Err(_) if real.symlink_metadata().is_ok_and(|found| found.is_symlink()) => {
                return Err("a link in the path leads nowhere".to_owned());
            }
            // What is not there yet leads nowhere else.
            Err(_) => {}
        }
    }
    Ok(real)
}

#[cfg(test)]
mod tests;
