//! What a runner in a sandbox or a container sees of this machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::by::Launcher;
use super::{RunnerCommand, passed_on};

/// Folders that hold what is the users', the system's own doors, and what other programs keep for a while.
const HIDDEN: &[&str] = &["/home", "/root", "/run", "/tmp", "/var/tmp", "/mnt", "/media"];
/// What of those is needed: names of the network are looked up by it, and some systems have their programs there.
const SHOWN: &[&str] = &["/run/systemd/resolve", "/run/current-system"];
/// Variables that name folders of the user's.
const FOLDERS: &[&str] = &["HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "TMPDIR"];

/// The folder in the state directory that assistants may work in.
pub(crate) const WORKTREES: &str = "worktrees";

/// How a path is seen. Of the same path, the last of these counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum How {
    /// An empty folder is there, unless it is asked for.
    Covered,
    /// It can be read.
    Read,
    /// It can be written to.
    Write,
    /// An empty folder is there.
    Hidden,
    /// An empty file is there.
    HiddenFile,
}

impl How {
    fn hides(self) -> bool {
        match self {
            Self::Covered | Self::Hidden | Self::HiddenFile => true,
            Self::Read | Self::Write => false,
        }
    }
}

/// One path of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    /// Where it is, behind all links.
    path: PathBuf,
    how: How,
    /// Where it is seen.
    at: PathBuf,
}

impl Mount {
    /// As arguments of bubblewrap.
    pub(super) fn bubblewrap(&self) -> Vec<OsString> {
        let (path, at) = (self.path.clone().into_os_string(), self.at.clone().into_os_string());
        match self.how {
            How::Covered | How::Hidden => vec!["--tmpfs".into(), at],
            How::HiddenFile => vec!["--ro-bind".into(), "/dev/null".into(), at],
            How::Read => vec!["--ro-bind".into(), path, at],
            How::Write => vec!["--bind".into(), path, at],
        }
    }

    /// As an argument of podman and docker.
    ///
    /// # Errors
    /// In words: a path that cannot be written so.
    fn volume(&self) -> Result<OsString, String> {
        let colon = |path: &PathBuf| path.as_os_str().as_encoded_bytes().contains(&b':');
        if let Some(path) = [&self.path, &self.at].into_iter().find(|path| colon(path)) {
            return Err(format!("{} has a colon in it, which a container cannot be given", path.display()));
        }
        let shown = |path: &Path, access: &str| -> OsString {
            ["--volume=".as_ref(), path.as_os_str(), ":".as_ref(), self.at.as_os_str(), access.as_ref()]
                .into_iter()
                .collect()
        };
        Ok(match self.how {
            // A volume without a name, which goes with the container: podman copies into a tmpfs what lies beneath it.
            How::Covered | How::Hidden => ["--volume=".as_ref(), self.at.as_os_str()].into_iter().collect(),
            How::HiddenFile => shown(Path::new("/dev/null"), ":ro"),
            How::Read => shown(&self.path, ":ro"),
            How::Write => shown(&self.path, ":rw"),
        })
    }
}

/// What a process sees as arguments of podman and docker, where nothing of the machine is seen by itself: what is hidden is
/// told where something around it is shown. Each place is told once.
///
/// # Errors
/// In words: a path that cannot be written so.
pub(super) fn volumes(mounts: &[Mount]) -> Result<Vec<OsString>, String> {
    let last = |at: &usize| mounts[at + 1..].iter().all(|later| later.at != mounts[*at].at);
    let told: Vec<&Mount> = (0..mounts.len()).filter(last).map(|at| &mounts[at]).collect();
    let around = |at: usize| told[..at].iter().rfind(|around| told[at].at.starts_with(&around.at));
    let counts = |at: &usize| !told[*at].how.hides() || around(*at).is_some_and(|around| !around.how.hides());
    (0..told.len()).filter(counts).map(|at| told[at].volume()).collect()
}

/// What a process is fenced in with.
pub(super) struct Ground<'a> {
    /// The folder that it works in.
    pub(super) dir: Option<&'a Path>,
    /// The state directory, and what else is the host's own.
    pub(super) private: &'a [PathBuf],
    /// The command as it is here.
    pub(super) command: &'a RunnerCommand,
    /// That of the host's own runner.
    pub(super) own: &'a RunnerCommand,
}

/// What a process sees, the outermost first: what lies deeper is put upon what is around it.
///
/// What is not there is left out, but what the configuration asks for.
///
/// # Errors
/// In words: what is asked for and not there.
pub(super) fn mounts(launcher: &Launcher, ground: &Ground<'_>) -> Result<Vec<Mount>, String> {
    let mut found: Vec<Mount> = Vec::new();
    // Where a path is that leads elsewhere, by its number.
    let mut links: Vec<(usize, PathBuf)> = Vec::new();
    let mut add = |path: &Path, how: How| -> bool {
        let Ok(real) = path.canonicalize() else { return false };
        let how = if how == How::Hidden && !real.is_dir() { How::HiddenFile } else { how };
        // The whole machine is seen already; nothing takes its place.
        if real.parent().is_some() {
            let name = path.file_name().filter(|_| !how.hides());
            let link = name.and_then(|name| Some(path.parent()?.canonicalize().ok()?.join(name)));
            links.extend(link.filter(|link| *link != real).map(|link| (found.len(), link)));
            found.push(Mount { at: real.clone(), path: real, how });
        }
        true
    };
    for path in HIDDEN {
        add(Path::new(path), How::Covered);
    }
    for (_, path) in passed_on(FOLDERS) {
        if Path::new(&path).is_absolute() {
            add(Path::new(&path), How::Covered);
        }
    }
    for path in SHOWN {
        add(Path::new(path), How::Read);
    }
    // Often a link into a folder that is hidden.
    if let Some(real) = Path::new("/etc/resolv.conf").canonicalize().ok().filter(|_| launcher.network) {
        add(&real, How::Read);
    }
    for path in ground.private {
        add(path, How::Hidden);
    }
    let private: Vec<PathBuf> = ground.private.iter().filter_map(|path| path.canonicalize().ok()).collect();
    let around = |path: &Path| {
        let path = path.canonicalize().ok()?;
        private.iter().find(|own| path.starts_with(own) && !path.starts_with(own.join(WORKTREES))).cloned()
    };
    if let Some((dir, own)) = ground.dir.and_then(|dir| Some((dir, around(dir)?))) {
        return Err(format!("{} lies in {}, which is the host's own", dir.display(), own.display()));
    }
    if let Some(dir) = ground.dir
        && !add(dir, if launcher.write { How::Write } else { How::Read })
    {
        return Err(format!("there is no folder {}", dir.display()));
    }
    for (paths, how, key) in [(&launcher.bind_read, How::Read, "bind_read"), (&launcher.bind, How::Write, "bind")] {
        if let Some(missing) = paths.iter().find(|path| !add(path, how)) {
            return Err(format!("`{key}` names {}, which is not there", missing.display()));
        }
    }
    // A runner that lies in a hidden folder, and its script.
    let needed = ground.command.args.iter().map(Path::new).filter(|path| path.is_absolute() && path.is_file());
    let program = Some(ground.command.program.as_path()).filter(|path| path.is_absolute());
    let in_container = launcher.mentions(&["{volumes}"]);
    for path in needed.chain(program.filter(|_| !in_container)).filter(|path| around(path).is_none()) {
        add(path, How::Read);
    }
    // A link that is not seen itself is seen as what it leads to.
    for (number, link) in links {
        let outer = found.iter().filter(|one| link.starts_with(&one.at));
        let outer = outer.max_by_key(|one| (one.at.components().count(), one.how));
        if outer.map_or(in_container, |outer| outer.how.hides()) {
            found[number].at = link;
        }
    }
    if let Some(brought) = launcher.brought(ground.own) {
        let path = brought.canonicalize().map_err(|error| format!("cannot bring {}: {error}", brought.display()))?;
        found.push(Mount { path, how: How::Read, at: super::presets::BROUGHT.into() });
    }
    // What is seen elsewhere than it is has the same hidden there.
    let seen: Vec<Mount> = found.iter().filter(|one| one.at != one.path && !one.how.hides()).cloned().collect();
    for Mount { path, at, .. } in &seen {
        let within = private.iter().filter_map(|own| Some((own, own.strip_prefix(path).ok()?)));
        found.extend(within.map(|(own, way)| Mount {
            path: own.clone(),
            how: if own.is_dir() { How::Hidden } else { How::HiddenFile },
            at: if way.as_os_str().is_empty() { at.clone() } else { at.join(way) },
        }));
    }
    Ok(held(ordered(found)))
}

/// With each folder in the way to what is hidden put upon itself, where it could be written to: what is hidden would be
/// seen by another name otherwise, by the host too, but nobody can rename what something is mounted on.
fn held(mut mounts: Vec<Mount>) -> Vec<Mount> {
    let mut held: Vec<Mount> = Vec::new();
    for hidden in mounts.iter().filter(|one| one.how.hides()) {
        for folder in hidden.at.ancestors().skip(1) {
            let around = mounts.iter().rfind(|around| folder.starts_with(&around.at));
            let Some(around) = around.filter(|around| around.how == How::Write) else { continue };
            let Some(way) = folder.strip_prefix(&around.at).ok().filter(|way| !way.as_os_str().is_empty()) else {
                continue;
            };
            held.push(Mount { path: around.path.join(way), how: How::Write, at: folder.to_owned() });
        }
    }
    mounts.append(&mut held);
    ordered(mounts)
}

/// The outermost first; nothing is hidden where nothing is seen.
fn ordered(mut found: Vec<Mount>) -> Vec<Mount> {
    found.sort_by(|a, b| {
        let depth = |mount: &Mount| mount.at.components().count();
        depth(a).cmp(&depth(b)).then_with(|| (&a.at, a.how, &a.path).cmp(&(&b.at, b.how, &b.path)))
    });
    let mut ordered: Vec<Mount> = Vec::new();
    for mount in found {
        let around = ordered.iter().rfind(|around| mount.at.starts_with(&around.at));
        if ordered.last() != Some(&mount) && !(mount.how.hides() && around.is_some_and(|around| around.how.hides())) {
            ordered.push(mount);
        }
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_deeper_comes_later_and_what_is_hidden_stays_so() {
        let mount = |path: &str, how| Mount { path: path.into(), how, at: path.into() };
        let found = ordered(vec![
            mount("/home/u/state", How::Hidden),
            mount("/home/u/state/trees/1", How::Write),
            mount("/home/u/p", How::Write),
            mount("/home", How::Covered),
            mount("/home/u/p/state", How::Hidden),
            mount("/home/u/p/state", How::Write),
            mount("/home/u/p/key", How::HiddenFile),
            mount("/home/u/p", How::Write),
            mount("/data", How::Write),
            mount("/data", How::Covered),
        ]);
        let told: Vec<String> = found.iter().map(|one| format!("{} {:?}", one.path.display(), one.how)).collect();
        let expected = "/data Covered, /data Write, /home Covered, /home/u/p Write, /home/u/p/key HiddenFile, \
                        /home/u/p/state Write, /home/u/p/state Hidden, /home/u/state/trees/1 Write";
        assert_eq!(told.join(", "), expected);
    }

    #[test]
    fn the_way_to_what_is_hidden_is_held() {
        let mount = |(path, at, how): &(&str, &str, How)| Mount { path: path.into(), how: *how, at: at.into() };
        let check = |mounts: &[(&str, &str, How)], expected: &str| {
            let told = volumes(&held(ordered(mounts.iter().map(mount).collect()))).expect("volumes");
            let told = told.join(" ".as_ref()).into_string().expect("a text").replace("--volume=", "");
            assert_eq!(told, expected, "{mounts:?}");
        };
        let null = ("/n", "/n", How::HiddenFile);
        check(&[("/p", "/p", How::Write), null], "/p:/p:rw");
        let key = |path| (path, path, How::HiddenFile);
        check(&[("/p", "/p", How::Write), key("/p/k")], "/p:/p:rw /dev/null:/p/k:ro");
        check(
            &[("/p", "/p", How::Write), key("/p/a/b/k"), key("/p/a/c/k")],
            "/p:/p:rw /p/a:/p/a:rw /p/a/b:/p/a/b:rw /p/a/c:/p/a/c:rw /dev/null:/p/a/b/k:ro /dev/null:/p/a/c/k:ro",
        );
        check(&[("/p", "/p", How::Read), key("/p/a/k")], "/p:/p:ro /dev/null:/p/a/k:ro");
        check(
            &[("/p", "/p", How::Write), ("/p/a/b", "/p/a/b", How::Read), key("/p/a/b/c/k")],
            "/p:/p:rw /p/a:/p/a:rw /p/a/b:/p/a/b:ro /dev/null:/p/a/b/c/k:ro",
        );
        check(
            &[("/real", "/p", How::Write), ("/real/a/k", "/p/a/k", How::HiddenFile)],
            "/real:/p:rw /real/a:/p/a:rw /dev/null:/p/a/k:ro",
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_where_it_is_not_seen_itself() {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = folder.path().canonicalize().expect("a path");
        for name in ["bin", "real"] {
            std::fs::create_dir(dir.join(name)).expect("a folder");
        }
        std::fs::write(dir.join("real/prog"), "").expect("a file");
        std::os::unix::fs::symlink("../real/prog", dir.join("bin/prog")).expect("a link");
        let check = |shown: &[&str], expected: &str| {
            let shown = shown.iter().map(|one| format!("'{}'", dir.join(one).display())).collect::<Vec<_>>().join(", ");
            let text = format!("[launchers.a]\npreset = 'bwrap'\nbind_read = [{shown}]");
            let config = crate::config::Config::parse(&text, Path::new("/c.toml")).expect("a configuration");
            let launcher = config.launcher("a", &|_| None).expect("a launcher");
            let command = RunnerCommand::new("runner");
            let ground = Ground { dir: None, private: &[], command: &command, own: &command };
            let seen = mounts(&launcher, &ground).expect("what is seen");
            let seen = seen.iter().filter(|one| one.how == How::Read).filter_map(|one| one.at.strip_prefix(&dir).ok());
            let seen: Vec<String> = seen.map(|at| at.display().to_string()).collect();
            assert_eq!(seen.join(", "), expected, "{text}");
        };
        check(&["bin/prog"], "bin/prog");
        check(&["bin", "bin/prog"], "bin, real/prog");
        check(&["bin/prog", "bin"], "bin, real/prog");
        check(&["real/prog", "bin/prog"], "bin/prog, real/prog");
    }

    #[test]
    fn volumes_show_and_hide() {
        let check = |mounts: &[(&str, How)], expected: Result<&str, &str>| {
            let mount = |(path, how): &(&str, How)| Mount { path: path.into(), how: *how, at: path.into() };
            let mounts = ordered(mounts.iter().map(mount).collect());
            let told = volumes(&mounts).map(|all| all.join(" ".as_ref()).into_string().expect("a text"));
            assert_eq!(told.as_deref().map_err(String::as_str), expected, "{mounts:?}");
        };
        check(&[("/a b", How::Read), ("/c", How::Write)], Ok("--volume=/a b:/a b:ro --volume=/c:/c:rw"));
        // Nothing is seen there.
        check(&[("/a", How::Hidden), ("/b", How::HiddenFile), ("/a/c", How::Covered)], Ok(""));
        check(
            &[("/a", How::Write), ("/a/b", How::Hidden), ("/a/b/c", How::Hidden), ("/a/d", How::HiddenFile)],
            Ok("--volume=/a:/a:rw --volume=/a/b --volume=/dev/null:/a/d:ro"),
        );
        check(
            &[("/a", How::Write), ("/a/b", How::Hidden), ("/a/b/c", How::Write), ("/a/b/c/d", How::Hidden)],
            Ok("--volume=/a:/a:rw --volume=/a/b --volume=/a/b/c:/a/b/c:rw --volume=/a/b/c/d"),
        );
        check(&[("/a", How::Covered), ("/a", How::Write)], Ok("--volume=/a:/a:rw"));
        check(
            &[("/a", How::Write), ("/a/b", How::Write), ("/a/b", How::Hidden)],
            Ok("--volume=/a:/a:rw --volume=/a/b"),
        );
        let colon = "/a:b has a colon in it, which a container cannot be given";
        check(&[("/a:b", How::Read)], Err(colon));
        check(&[("/a:b", How::Hidden)], Ok(""));
    }
}
