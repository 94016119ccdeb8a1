//! The command of a launcher for one process: its placeholders filled in.
//!
//! `{runner}` is the runner's program and arguments, `{shell}` the same as one line for a shell, with folder and variables.
//! `{dir}` is the working folder, `{process}` the id, `{name}` a name of it that containers, pods and jobs can have; `{user}`
//! are the numbers of the host's user and group.
//! A word with `{env}` (`NAME=value`) or `{variable}` (`NAME`) is there once for each variable that the runner is told;
//! `{variables}` are all names with commas.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::RunnerCommand;
use super::mounts::{Mount, volumes};

/// What stands for something else.
pub(crate) const PLACEHOLDERS: &[&str] = &[
    "{runner}",
    "{shell}",
    "{dir}",
    "{process}",
    "{name}",
    "{user}",
    "{env}",
    "{variable}",
    "{variables}",
    "{mounts}",
    "{volumes}",
    "{private}",
];
/// Those that become several words.
const ALONE: &[&str] = &["{runner}", "{shell}", "{mounts}", "{volumes}"];

/// What is filled in.
pub(super) struct World<'a> {
    /// What is to run.
    pub(super) command: &'a RunnerCommand,
    /// The folder that it works in.
    pub(super) dir: Option<&'a Path>,
    /// What it is known by.
    pub(super) id: String,
    /// The variables that it is told.
    pub(super) told: &'a [(String, OsString)],
    /// What it sees of the machine.
    pub(super) mounts: &'a [Mount],
    /// A folder for the launcher's own files.
    pub(super) private: Option<PathBuf>,
}

/// A name for containers, pods and jobs.
pub(super) fn name_of(id: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    format!("assistant-{}", id.chars().map(plain).collect::<String>())
}

/// What is wrong with a word, if something is.
pub(crate) fn fault(word: &str) -> Option<String> {
    if word.contains('\0') {
        return Some("has a zero byte in it".to_owned());
    }
    if let Some(alone) = ALONE.iter().find(|alone| word.contains(**alone) && word != **alone) {
        return Some(format!("has {alone} beside other text; it stands alone, and becomes several words"));
    }
    let unknown = placeholders(word).find(|found| !PLACEHOLDERS.contains(found))?;
    Some(format!("has {unknown}, which nothing can be filled in for; there are {}", PLACEHOLDERS.join(", ")))
}

/// Whatever looks like a placeholder.
pub(crate) fn placeholders(word: &str) -> impl Iterator<Item = &str> {
    word.match_indices('{').filter_map(|(at, _)| {
        let end = word[at..].find('}')?;
        let name = &word[at + 1..at + end];
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        is_name.then(|| &word[at..=at + end])
    })
}

/// Fills in the words of a command.
///
/// # Errors
/// In words: what there is not.
pub(super) fn fill<'w>(words: impl Iterator<Item = &'w String>, world: &World<'_>) -> Result<Vec<OsString>, String> {
    let mut filled = Vec::new();
    for word in words {
        match word.as_str() {
            "{runner}" => {
                filled.push(world.command.program.clone().into_os_string());
                filled.extend(world.command.args.iter().cloned());
            }
            "{shell}" => filled.push(line(world)?),
            "{mounts}" => filled.extend(world.mounts.iter().flat_map(Mount::bubblewrap)),
            "{volumes}" => filled.extend(volumes(world.mounts)?),
            word if word.contains("{env}") || word.contains("{variable}") => {
                for (name, value) in world.told {
                    let mut pair = OsString::from(format!("{name}="));
                    pair.push(value);
                    filled.push(substituted(word, world, &[("{env}", &pair), ("{variable}", OsStr::new(name))])?);
                }
            }
            word => filled.push(substituted(word, world, &[])?),
        }
    }
    Ok(filled)
}

/// One word, with what stands in it.
fn substituted(word: &str, world: &World<'_>, more: &[(&str, &OsStr)]) -> Result<OsString, String> {
    let mut out = OsString::new();
    let mut rest = word;
    while let Some((at, found)) = placeholders(rest).next().and_then(|found| Some((rest.find(found)?, found))) {
        out.push(&rest[..at]);
        match (found, more.iter().find(|(name, _)| *name == found)) {
            (_, Some((_, value))) => out.push(value),
            ("{dir}", _) => {
                out.push(world.dir.ok_or("the process has no working folder ({dir}), and the host no project")?)
            }
            ("{process}", _) => out.push(&world.id),
            ("{name}", _) => out.push(name_of(&world.id)),
            ("{user}", _) => out.push(user().ok_or("users have no numbers here ({user})")?),
            ("{variables}", _) => {
                out.push(world.told.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(","));
            }
            ("{private}", _) => {
                out.push(world.private.as_ref().ok_or("there is no folder that only this user may enter ({private})")?);
            }
            (other, _) => return Err(format!("nothing can be filled in for {other} here")),
        }
        rest = &rest[at + found.len()..];
    }
    out.push(rest);
    Ok(out)
}

#[cfg(unix)]
fn user() -> Option<String> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    Some(format!("{}:{}", user.as_raw(), group.as_raw()))
}

#[cfg(not(unix))]
fn user() -> Option<String> {
    None
}

/// All as one line for a POSIX shell: the folder, the variables, the runner, every word quoted.
fn line(world: &World<'_>) -> Result<OsString, String> {
    let mut words = Vec::new();
    if let Some(dir) = world.dir {
        words.extend(["cd".to_owned(), "--".to_owned(), quoted(dir.as_os_str())?, "&&".to_owned()]);
    }
    words.extend(["exec".to_owned(), "env".to_owned()]);
    for (name, value) in world.told {
        words.push(format!("{name}={}", quoted(value)?));
    }
    words.push(quoted(world.command.program.as_os_str())?);
    for arg in &world.command.args {
        words.push(quoted(arg)?);
    }
    Ok(words.join(" ").into())
}

/// A word as a POSIX shell reads it back.
fn quoted(word: &OsStr) -> Result<String, String> {
    let text = word.to_str().ok_or_else(|| format!("{} is no text, which a far shell needs", word.display()))?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | ':' | ',' | '@' | '%');
    if !text.is_empty() && text.chars().all(plain) {
        return Ok(text.to_owned());
    }
    Ok(format!("'{}'", text.replace('\'', r"'\''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &str, dir: Option<&str>, expected: Result<&str, &str>) {
        let command = RunnerCommand { program: "/r".into(), args: vec!["it's".into(), "a b".into()] };
        let told = [("ID".to_owned(), OsString::from("7")), ("L".to_owned(), OsString::from("x y"))];
        let dir = dir.map(Path::new);
        let world = World { command: &command, dir, id: "0A-b".to_owned(), told: &told, mounts: &[], private: None };
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        let filled = fill(words.iter(), &world)
            .map(|all| all.iter().map(|word| word.to_str().expect("a text").to_owned()).collect::<Vec<_>>().join("|"));
        assert_eq!(filled.as_deref().map_err(String::as_str), expected, "{words:?}");
    }

    #[test]
    fn placeholders_are_filled_in() {
        check("x {runner} y", None, Ok("x|/r|it's|a b|y"));
        check("-w={dir} {name}-{process}", Some("/a b"), Ok("-w=/a b|assistant-0a-b-0A-b"));
        check("-e {env}", None, Ok("-e|ID=7|L=x y"));
        check("--env={env} --e={variable}", None, Ok("--env=ID=7|--env=L=x y|--e=ID|--e=L"));
        check("--export=P,{variables}", None, Ok("--export=P,ID,L"));
        check("{\"a\":{dir}} {{.Id}}", Some("/d"), Ok("{\"a\":/d}|{{.Id}}"));
        check("{shell}", Some("/a b"), Ok(r"cd -- '/a b' && exec env ID=7 L='x y' /r 'it'\''s' 'a b'"));
        check("{shell}", None, Ok(r"exec env ID=7 L='x y' /r 'it'\''s' 'a b'"));
        check("{dir}", None, Err("the process has no working folder ({dir}), and the host no project"));
        check("{private}/c", None, Err("there is no folder that only this user may enter ({private})"));
    }

    #[test]
    fn faults_are_told() {
        let check = |word: &str, part: &str| {
            let told = fault(word).unwrap_or_default();
            assert!(if part.is_empty() { told.is_empty() } else { told.contains(part) }, "{word}: {told}");
        };
        check("{runner}", "");
        check("a{dir}b{name}", "");
        check("{\"spec\":{}}", "");
        check("{{.ID}}", "");
        check("--x={runner}", "stands alone");
        check("{runer}", "has {runer}, which nothing can be filled in for; there are {runner}");
        check("a\0", "zero byte");
    }
}
