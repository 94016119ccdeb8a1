//! Where things are: the configuration file, the project, and the state that belongs to it.

use std::path::{Component, Path, PathBuf};

use sha2::{Digest, Sha256};

/// The longest part of a state folder's name that is taken from the project's, characters.
const FOLDER_CHARS_MAX: usize = 40;

/// The folder below those of the platform.
const OUR_FOLDER: &str = "assistant-host";

/// Why there is no place for files of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("neither {0} nor HOME is set to an absolute path, so there is no place for files; set one or name the place")]
pub struct NoHome(&'static str);

/// The configuration file that is read when none is named.
///
/// # Errors
/// [`NoHome`] where the environment names no place.
pub fn default_path(env: &dyn Fn(&str) -> Option<String>) -> Result<PathBuf, NoHome> {
    Ok(base(env, "XDG_CONFIG_HOME", "APPDATA", ".config")?.join(OUR_FOLDER).join("config.toml"))
}

/// The folder that holds the state of a project, or of the user where there is no project.
///
/// # Errors
/// [`NoHome`] where the environment names no place.
pub fn state_dir(env: &dyn Fn(&str) -> Option<String>, project: Option<&Path>) -> Result<PathBuf, NoHome> {
    let base = base(env, "XDG_STATE_HOME", "LOCALAPPDATA", ".local/state")?.join(OUR_FOLDER);
    Ok(base.join(project.map_or_else(|| "user".to_owned(), state_name)))
}

/// The folder in which it is remembered what the user trusts: one for all projects and in none of them, whatever state
/// directory is named, so that nothing that comes with a project can stand there.
///
/// # Errors
/// [`NoHome`] where the environment names no place.
pub fn trust_dir(env: &dyn Fn(&str) -> Option<String>) -> Result<PathBuf, NoHome> {
    Ok(base(env, "XDG_STATE_HOME", "LOCALAPPDATA", ".local/state")?.join(OUR_FOLDER).join("trust"))
}

/// The folder that holds the state directories of the servers of one subagent's file.
///
/// # Errors
/// [`NoHome`] where the environment names no place.
pub fn subagent_dir(env: &dyn Fn(&str) -> Option<String>, file: &Path) -> Result<PathBuf, NoHome> {
    let base = base(env, "XDG_STATE_HOME", "LOCALAPPDATA", ".local/state")?.join(OUR_FOLDER);
    Ok(base.join("subagents").join(state_name(file)))
}

/// The project that a host belongs to: the named one, else the one that the client tells, else the repository around
/// `cwd`, else none. The path is absolute, and resolved where it exists.
#[must_use]
pub fn project_of(env: &dyn Fn(&str) -> Option<String>, named: Option<&Path>, cwd: &Path) -> Option<PathBuf> {
    let told = || env("CLAUDE_PROJECT_DIR").filter(|path| !path.is_empty()).map(PathBuf::from);
    let around = || cwd.ancestors().find(|folder| folder.join(".git").exists()).map(Path::to_owned);
    let project = named.map(Path::to_owned).or_else(told).or_else(around)?;
    let absolute = cwd.join(project);
    Some(absolute.canonicalize().unwrap_or_else(|_| tidy(&absolute)))
}

/// `<folder>-<hash>`: readable, and different for two folders of one name.
fn state_name(project: &Path) -> String {
    let folder = project.file_name().map_or_else(|| "root".into(), |name| name.to_string_lossy());
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '-' };
    let folder: String = folder.chars().take(FOLDER_CHARS_MAX).map(plain).collect();
    let digest = Sha256::digest(project.as_os_str().as_encoded_bytes());
    let hash: String = digest[..4].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{folder}-{hash}")
}

fn base(
    env: &dyn Fn(&str) -> Option<String>,
    xdg: &'static str,
    windows: &str,
    below_home: &str,
) -> Result<PathBuf, NoHome> {
    let absolute = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let platform = || if cfg!(windows) { absolute(windows) } else { None };
    let home = || absolute("HOME").map(|home| home.join(below_home));
    absolute(xdg).or_else(platform).or_else(home).ok_or(NoHome(xdg))
}

/// Resolves `.` and `..` by name, for a path that does not exist.
fn tidy(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                tidy.pop();
            }
            other => tidy.push(other),
        }
    }
    tidy
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn env(vars: &'static [(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        move |name| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
    }

    #[test]
    fn places_follow_the_environment() {
        let config = |vars| default_path(&env(vars)).map(|path| path.display().to_string());
        assert_eq!(config(&[("XDG_CONFIG_HOME", "/c"), ("HOME", "/h")]), Ok("/c/assistant-host/config.toml".into()));
        assert_eq!(
            config(&[("XDG_CONFIG_HOME", "c"), ("HOME", "/h")]),
            Ok("/h/.config/assistant-host/config.toml".into())
        );
        assert_eq!(config(&[]), Err(NoHome("XDG_CONFIG_HOME")));
        let state = |vars, project: Option<&str>| {
            state_dir(&env(vars), project.map(Path::new)).map(|path| path.display().to_string())
        };
        assert_eq!(state(&[("XDG_STATE_HOME", "/s")], None), Ok("/s/assistant-host/user".into()));
        assert_eq!(state(&[("HOME", "/h")], None), Ok("/h/.local/state/assistant-host/user".into()));
        // The first eight digits of `printf /src/my app | sha256sum`.
        assert_eq!(
            state(&[("XDG_STATE_HOME", "/s")], Some("/src/my app")),
            Ok(format!("/s/assistant-host/my-app-{}", "de148ff9"))
        );
        assert_ne!(state_name(Path::new("/a/app")), state_name(Path::new("/b/app")));
        assert!(state_name(Path::new("/")).starts_with("root-"));
    }

    #[test]
    fn the_project_is_the_named_the_told_or_the_repository() {
        let root = std::env::temp_dir().join(format!("assistant-host-project-{}", std::process::id()));
        std::fs::create_dir_all(root.join("repo/.git")).expect("creates");
        std::fs::create_dir_all(root.join("repo/a/b")).expect("creates");
        let root = root.canonicalize().expect("resolves");
        let cwd = root.join("repo/a/b");
        let told = env(&[("CLAUDE_PROJECT_DIR", "/told/here")]);
        let empty = env(&[("CLAUDE_PROJECT_DIR", "")]);
        assert_eq!(project_of(&told, Some(Path::new("..")), &cwd), Some(root.join("repo/a")));
        assert_eq!(project_of(&told, Some(Path::new("../x/../y")), &cwd), Some(root.join("repo/a/y")));
        assert_eq!(project_of(&told, None, &cwd), Some("/told/here".into()));
        assert_eq!(project_of(&empty, None, &cwd), Some(root.join("repo")));
        assert_eq!(project_of(&empty, None, Path::new("/nowhere/at/all")), None);
        std::fs::remove_dir_all(root).expect("removes");
    }
}
