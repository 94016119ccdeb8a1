//! What git is asked about a repository and its worktrees.

use std::path::{Path, PathBuf};
use std::time::Duration;

use assistant_protocol::ids::ProcessId;

use super::{CHECKOUT_WITHIN, GIT_WITHIN, LOCKED_TRIES_MAX, LOCKED_WAIT};
use crate::launcher::{GitError, Said, git};

/// A file in a worktree's own git directory: its removal has begun.
const REMOVING: &str = "assistant-removing";
/// Where a folder lies in a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Around {
    /// The git directory that all worktrees share.
    pub(super) repository: String,
    /// The folder of the files.
    pub(super) top: String,
    /// The way from there to the folder, with `/`; empty is the folder itself.
    pub(super) folder: String,
    /// The commit that is checked out.
    pub(super) head: String,
}

/// The repository around `dir`.
///
/// # Errors
/// In words.
pub(super) async fn around(dir: &Path, mark: ProcessId) -> Result<Around, String> {
    let shown = dir.display();
    let ask = async |args: &[&str]| git(dir, mark, GIT_WITHIN, args).await;
    let inside = ask(&["rev-parse", "--is-inside-work-tree"]).await.map_err(|error| match error {
        GitError::Refused(said) if said.contains("not a git repository") => {
            format!("the working folder {shown} lies in no git repository")
        }
        error => format!("the working folder {shown}: {error}"),
    })?;
    if line(inside)? != "true" {
        return Err(format!("the working folder {shown} lies in a bare repository, or in a git directory itself"));
    }
    let failed = |error: GitError| format!("the working folder {shown}: {error}");
    let top = line(ask(&["rev-parse", "--show-toplevel"]).await.map_err(failed)?)?;
    let folder = line(ask(&["rev-parse", "--show-prefix"]).await.map_err(failed)?)?.trim_end_matches('/').to_owned();
    let common = ["rev-parse", "--path-format=absolute", "--git-common-dir"];
    let repository = line(ask(&common).await.map_err(failed)?)?;
    let head = ask(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).await;
    let head = head.map_err(|_| format!("the repository {top} has no commit that a worktree could begin at"))?;
    Ok(Around { repository, top, folder, head: line(head)? })
}

/// The one line that git has said.
fn line(said: Said) -> Result<String, String> {
    let text = said.text.strip_suffix('\n').unwrap_or(&said.text);
    let odd = |c: char| c == '\n' || c == char::REPLACEMENT_CHARACTER;
    if said.cut || text.contains(odd) {
        return Err(format!(
            "the path {} is no text of one line, and cannot be worked with",
            text.replace('\n', "\\n")
        ));
    }
    Ok(text.to_owned())
}

/// Whether the repository has this branch.
pub(super) async fn has_branch(repository: &str, mark: ProcessId, branch: &str) -> Result<bool, GitError> {
    let name = format!("refs/heads/{branch}");
    match in_repository(repository, mark, &["show-ref", "--verify", "--quiet", &name]).await {
        Ok(_) => Ok(true),
        Err(GitError::Refused(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// What a worktree begins with.
pub(super) enum Begin<'a> {
    /// Its branch is there.
    On,
    /// Its branch is new, and begins at this commit.
    New(&'a str),
}

/// Adds a worktree on a branch, without files.
pub(super) async fn add(
    repository: &str,
    mark: ProcessId,
    path: &str,
    branch: &str,
    begin: Begin<'_>,
) -> Result<(), GitError> {
    let mut add = vec!["worktree", "add", "--quiet", "--no-checkout"];
    match begin {
        Begin::On => add.extend(["--", path, branch]),
        Begin::New(base) => add.extend(["--no-track", "-b", branch, "--", path, base]),
    }
    in_repository(repository, mark, &add).await.map(drop)
}

/// Lets the repository forget the worktree of a branch whose folder `path` is gone. Returns whether the branch is checked
/// out nowhere then.
pub(super) async fn forget_gone(repository: &str, mark: ProcessId, branch: &str, path: &str) -> Result<bool, GitError> {
    let line = format!("branch refs/heads/{branch}");
    let all = async || in_repository(repository, mark, &["worktree", "list", "--porcelain"]).await;
    let is_out = |said: &Said| said.cut || said.text.lines().any(|one| one == line);
    if !is_out(&all().await?) {
        return Ok(true);
    }
    let parent_is_there = Path::new(path).parent().is_some_and(Path::is_dir);
    if Path::new(path).exists() || !parent_is_there {
        return Ok(false);
    }
    // What cannot be removed stays checked out.
    drop(remove_by_hand(repository, path, None).await);
    Ok(!is_out(&all().await?))
}

/// Copies the files of its commit into a worktree, and tells its own git directory.
///
/// # Errors
/// In words.
pub(super) async fn fill(path: &Path, mark: ProcessId) -> Result<String, String> {
    let words = |error: GitError| error.to_string();
    git(path, mark, CHECKOUT_WITHIN, &["reset", "--hard", "--quiet"]).await.map_err(words)?;
    line(git(path, mark, GIT_WITHIN, &["rev-parse", "--absolute-git-dir"]).await.map_err(words)?)
}

/// Removes a worktree: its files, and what the repository knows of it. With `force` whatever is in it.
pub(super) async fn remove(repository: &str, mark: ProcessId, path: &str, force: bool) -> Result<(), GitError> {
    let mut remove = vec!["worktree", "remove"];
    if force {
        // Twice: also one that somebody has locked.
        remove.extend(["--force", "--force"]);
    }
    remove.extend(["--", path]);
    in_repository(repository, mark, &remove).await.map(drop)
}

/// What a worktree that is being removed had when that began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Removing {
    /// Nothing that would be lost.
    Nothing,
    /// Whatever there was: its user has said so.
    Whatever,
}

/// What stands in the file that says so.
const WHATEVER: &str = "whatever is in it";

/// Notes that a worktree is removed now: whoever finds a part of it knows why.
///
/// # Errors
/// The system's.
pub(super) fn begin_removing(git_dir: &str, how: Removing) -> std::io::Result<()> {
    let told = if how == Removing::Whatever { WHATEVER } else { "" };
    std::fs::write(Path::new(git_dir).join(REMOVING), told)
}

/// Whether somebody has begun to remove a worktree, and how.
pub(super) fn removing(git_dir: &str) -> Option<Removing> {
    let told = std::fs::read_to_string(Path::new(git_dir).join(REMOVING)).ok()?;
    Some(if told == WHATEVER { Removing::Whatever } else { Removing::Nothing })
}

/// It is not removed, after all.
pub(super) fn not_removing(git_dir: &str) {
    // Mostly there is none.
    drop(std::fs::remove_file(Path::new(git_dir).join(REMOVING)));
}

/// Removes what is there of a worktree without git: its files, and what the repository knows of it. Nothing of others.
///
/// # Errors
/// In words: it was moved by somebody, or what cannot be removed.
pub(super) async fn remove_by_hand(repository: &str, path: &str, git_dir: Option<&str>) -> Result<(), String> {
    let absent = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(error.to_string()),
    };
    tokio::fs::remove_dir_all(path).await.or_else(absent)?;
    let all = Path::new(repository).join("worktrees");
    let known = match git_dir {
        Some(git_dir) => vec![PathBuf::from(git_dir)],
        None => all.read_dir().into_iter().flatten().flatten().map(|entry| entry.path()).collect(),
    };
    for one in known.into_iter().filter(|one| is_below(&all, one)) {
        let told = std::fs::read_to_string(one.join("gitdir")).ok().map(|told| told.trim().to_owned());
        let ours = match told {
            Some(told) if leads_to(&one.join(&told), Path::new(path)) => true,
            Some(told) if git_dir.is_some() => return Err(format!("it was moved; its files are beside {told}")),
            Some(_) => false,
            // It was begun and no more; its name is like no other.
            None => git_dir.is_some() || one.file_name() == Path::new(path).file_name(),
        };
        if ours {
            tokio::fs::remove_dir_all(&one).await.or_else(absent)?;
        }
    }
    // As git does: the folder goes with the last of them.
    drop(std::fs::remove_dir(&all));
    Ok(())
}

/// Whether the `.git` that a git directory names is that of `path`, whose files may be gone.
fn leads_to(dot_git: &Path, path: &Path) -> bool {
    let folder = |path: &Path| path.parent().and_then(|parent| parent.canonicalize().ok());
    let Some(named) = dot_git.parent() else { return false };
    named.file_name() == path.file_name()
        && (named == path || folder(named).is_some_and(|one| Some(one) == folder(path)))
}

/// Whether a git directory is one of the worktrees of a repository, whose folder for them is `all`.
fn is_below(all: &Path, git_dir: &Path) -> bool {
    let found = git_dir.canonicalize().ok().zip(all.canonicalize().ok());
    found.is_some_and(|(found, all)| found.parent() == Some(all.as_path()))
}

/// Removes a branch; one that is no more at `base`, where that is given, stays.
pub(super) async fn remove_branch(
    repository: &str,
    mark: ProcessId,
    branch: &str,
    base: Option<&str>,
) -> Result<(), GitError> {
    let branch = format!("refs/heads/{branch}");
    let remove: Vec<&str> = ["update-ref", "-d", &branch].into_iter().chain(base).collect();
    in_repository(repository, mark, &remove).await.map(drop)
}

/// Asks git in a repository; what another git has locked meanwhile is tried again for a while.
async fn in_repository(repository: &str, mark: ProcessId, args: &[&str]) -> Result<Said, GitError> {
    let mut all = vec!["--git-dir", repository];
    all.extend_from_slice(args);
    let dir = PathBuf::from(repository);
    for _ in 0..LOCKED_TRIES_MAX {
        match git(&dir, mark, within(args), &all).await {
            Err(GitError::Refused(said)) if is_locked(&said) => tokio::time::sleep(LOCKED_WAIT).await,
            answer => return answer,
        }
    }
    git(&dir, mark, within(args), &all).await
}

fn within(args: &[&str]) -> Duration {
    // A worktree with many files takes as long to remove as to fill.
    if args.contains(&"remove") { CHECKOUT_WITHIN } else { GIT_WITHIN }
}

/// Whether git only found a lock of another git.
fn is_locked(said: &str) -> bool {
    said.contains(".lock")
        && (said.contains("File exists") || said.contains("cannot lock ref") || said.contains("Unable to create"))
}
