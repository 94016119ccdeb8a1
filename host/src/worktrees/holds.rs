//! What is in a worktree that is in nothing else.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use assistant_protocol::ids::ProcessId;

use super::GIT_WITHIN;
use super::repository::removing;
use crate::launcher::{GitError, git, git_picking};

/// Files of an operation of git that is not done, in a worktree's own git directory.
const UNDER_WAY: &[&str] =
    &["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply"];

/// What is told of a worktree with files of submodules.
pub(super) const SUBMODULES: &str = "files of submodules are in it";
/// How what git lists of its index begins, where it is a submodule.
const GITLINK: &str = "160000 ";
/// How it begins where git has been told not to look at a file (`assume-unchanged`, `skip-worktree`, both).
const NOT_LOOKED_AT: &[&[u8]] = &[b"h ", b"S ", b"s "];
/// The longest list of what was checked out in a worktree that is looked through, in bytes.
const LOG_BYTES_MAX: u64 = 1 << 20;
/// Commits from there that git is asked about at once.
const LEFT_MAX: usize = 200;

/// What is in a worktree that is not in the commit `base`, in words; empty is nothing.
///
/// Its git directory is the one that it was made with, whatever its files say by now: what works in a worktree may write
/// there what it likes. So nobody looks into submodules: those have settings of their own, which git would heed.
pub(super) async fn holds(
    path: &Path,
    git_dir: &str,
    mark: ProcessId,
    branch: &str,
    base: &str,
) -> Result<String, GitError> {
    let of_files = async |args: &[&str]| {
        let tree = path.to_string_lossy();
        let mut all = vec!["--git-dir", git_dir, "--work-tree", &tree];
        all.extend_from_slice(args);
        git(path, mark, GIT_WITHIN, &all).await
    };
    if has_submodules(path, git_dir, mark).await? {
        return Ok(SUBMODULES.to_owned());
    }
    let (files, cut) = files(path, git_dir, mark).await?;
    let branch = format!("refs/heads/{branch}");
    let named = of_files(&["show-ref", "--verify", "--quiet", &branch]).await.is_ok();
    let not = format!("^{base}");
    let mut count = vec!["rev-list", "--count", "HEAD"];
    count.extend(named.then_some(branch.as_str()));
    count.push(&not);
    let commits = of_files(&count).await?.text.trim().parse().unwrap_or(u64::MAX);
    let mut words = Vec::new();
    // Somebody may have left the branch that it was made with.
    let on = of_files(&["symbolic-ref", "--quiet", "--short", "HEAD"]).await;
    let on = on.map(|said| said.text.trim().to_owned()).unwrap_or_default();
    let place = match on.as_str() {
        "" => ", on no branch",
        on if branch.strip_prefix("refs/heads/") == Some(on) => "",
        on => &format!(", the branch that is checked out is {on}"),
    };
    match commits {
        0 => {}
        1 => words.push(format!("1 commit{place}")),
        more => words.push(format!("{more} commits{place}")),
    }
    match (files, cut) {
        (0, _) => {}
        (1, false) => words.push("1 file that is not committed".to_owned()),
        (files, false) => words.push(format!("{files} files that are not committed")),
        (files, true) => words.push(format!("more than {files} files that are not committed")),
    }
    match not_looked_at(path, git_dir, mark).await? {
        (0, false) => {}
        (1, false) => words.push("1 file that git is told not to look at".to_owned()),
        (more, _) => words.push(format!("{more} files that git is told not to look at")),
    }
    match left_behind(path, git_dir, mark).await? {
        0 => {}
        1 => words.push("1 commit that is on no branch any more".to_owned()),
        more => words.push(format!("{more} commits that are on no branch any more")),
    }
    if UNDER_WAY.iter().any(|name| Path::new(git_dir).join(name).exists()) {
        words.push("an operation of git that is not done".to_owned());
    }
    Ok(words.join(" and "))
}

/// How many files of a worktree git has been told not to look at: whether they are as they were committed, it does not say.
/// And whether there are more.
async fn not_looked_at(path: &Path, git_dir: &str, mark: ProcessId) -> Result<(usize, bool), GitError> {
    let tree = path.to_string_lossy();
    let list = ["--git-dir", git_dir, "--work-tree", &tree, "ls-files", "-v", "-z"];
    let (found, cut) = git_picking(path, mark, GIT_WITHIN, &list, NOT_LOOKED_AT).await?;
    // Of a sparse checkout most are not there.
    let there = |entry: &Vec<u8>| path.join(path_of(entry[2..].to_vec())).symlink_metadata().is_ok();
    Ok((found.iter().filter(|entry| there(entry)).count(), cut))
}

/// How many commits that were checked out in a worktree on no branch, and left again, would be lost with it.
pub(super) async fn left_behind(dir: &Path, git_dir: &str, mark: ProcessId) -> Result<u64, GitError> {
    let left = left_commits(Path::new(git_dir))?;
    if left.is_empty() {
        return Ok(0);
    }
    // Whoever works there can write what it likes into that list.
    let mut count = vec!["--git-dir", git_dir, "rev-list", "--count", "--ignore-missing"];
    count.extend(left.iter().map(String::as_str));
    count.extend(["--not", "--branches", "--tags", "--remotes", "--"]);
    Ok(git(dir, mark, GIT_WITHIN, &count).await?.text.trim().parse().unwrap_or(u64::MAX))
}

/// The commits on no branch from which something else was checked out in a worktree. Of a list that cannot be read whole
/// nothing is said: then the worktree stays.
fn left_commits(git_dir: &Path) -> Result<Vec<String>, GitError> {
    let path = git_dir.join("logs/HEAD");
    let cannot = |why: String| GitError::Refused(format!("{} cannot be looked through: {why}", path.display()));
    let mut log = Vec::new();
    match std::fs::File::open(&path).and_then(|file| file.take(LOG_BYTES_MAX + 1).read_to_end(&mut log)) {
        Ok(_) if log.len() as u64 > LOG_BYTES_MAX => {
            return Err(cannot(format!("it has more than {LOG_BYTES_MAX} bytes")));
        }
        Ok(_) => {}
        // A repository may keep none.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(cannot(error.to_string())),
    }
    let log = String::from_utf8_lossy(&log);
    let left = log.lines().filter_map(|line| {
        let (commits, what) = line.split_once('\t')?;
        let commit = commits.split(' ').next()?;
        let is_one = matches!(commit.len(), 40 | 64) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        // From a branch its name is told there.
        let was_on_none = what.strip_prefix("checkout: moving from ")?.starts_with(commit);
        (is_one && was_on_none).then_some(commit)
    });
    let left: BTreeSet<&str> = left.collect();
    if left.len() > LEFT_MAX {
        return Err(cannot(format!("more than {LEFT_MAX} commits on no branch were left")));
    }
    Ok(left.into_iter().map(str::to_owned).collect())
}

/// How many files of a worktree are not as they were committed; and whether there are more.
pub(super) async fn files(path: &Path, git_dir: &str, mark: ProcessId) -> Result<(usize, bool), GitError> {
    let tree = path.to_string_lossy();
    let status = ["status", "--porcelain=v1", "--untracked-files=normal", "--ignore-submodules=dirty", "--no-renames"];
    let all: Vec<&str> = ["--git-dir", git_dir, "--work-tree", &tree].into_iter().chain(status).collect();
    let status = git(path, mark, GIT_WITHIN, &all).await?;
    // What is gone is nothing new where its removal has begun.
    let removing = removing(git_dir).is_some();
    let files = status.text.lines().filter(|line| !removing || !line.starts_with(" D ")).count();
    Ok((files, status.cut))
}

/// How many commits of a worktree are on no branch, and would be lost with it. Its files may be gone.
#[cfg(feature = "cli")]
pub(super) async fn on_no_branch(repository: &str, git_dir: &str, mark: ProcessId) -> Result<u64, GitError> {
    // In a git directory there is a file of that name, too.
    let count = ["rev-list", "--count", "HEAD", "--not", "--branches", "--tags", "--remotes", "--"];
    let all: Vec<&str> = ["--git-dir", git_dir].into_iter().chain(count).collect();
    let said = git(Path::new(repository), mark, GIT_WITHIN, &all).await?;
    Ok(said.text.trim().parse().unwrap_or(u64::MAX))
}

/// Whether files of submodules are checked out in a worktree, or have been.
pub(super) async fn has_submodules(path: &Path, git_dir: &str, mark: ProcessId) -> Result<bool, GitError> {
    if Path::new(git_dir).join("modules").is_dir() {
        return Ok(true);
    }
    let (found, cut) = gitlinks(path, git_dir, mark).await?;
    Ok(cut || found.iter().any(|one| path.join(one).join(".git").symlink_metadata().is_ok()))
}

/// Whether submodules belong to a worktree; their files may not be there.
pub(super) async fn names_submodules(path: &Path, git_dir: &str, mark: ProcessId) -> Result<bool, GitError> {
    gitlinks(path, git_dir, mark).await.map(|(found, cut)| cut || !found.is_empty())
}

/// The folders of its submodules, from the index; and whether there are more.
async fn gitlinks(path: &Path, git_dir: &str, mark: ProcessId) -> Result<(Vec<PathBuf>, bool), GitError> {
    let tree = path.to_string_lossy();
    let list = ["--git-dir", git_dir, "--work-tree", &tree, "ls-files", "--stage", "-z"];
    let (found, cut) = git_picking(path, mark, GIT_WITHIN, &list, &[GITLINK.as_bytes()]).await?;
    let folder = |entry: Vec<u8>| {
        let at = entry.iter().position(|byte| *byte == b'\t')?;
        Some(path_of(entry[at + 1..].to_vec()))
    };
    Ok((found.into_iter().filter_map(folder).collect(), cut))
}

#[cfg(unix)]
fn path_of(bytes: Vec<u8>) -> PathBuf {
    let text: std::ffi::OsString = std::os::unix::ffi::OsStringExt::from_vec(bytes);
    text.into()
}

#[cfg(not(unix))]
fn path_of(bytes: Vec<u8>) -> PathBuf {
    String::from_utf8_lossy(&bytes).into_owned().into()
}
