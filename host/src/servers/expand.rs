//! Variables in what is written of a server, filled in when it is started.
//!
//! `${NAME}`, `${env:NAME}`, `{env:NAME}` and, with a value for where it is not set, `${NAME:-value}`; `$NAME` where the
//! definition's dialect has it. `${PROJECT}`, `${workspaceFolder}` and `${CLAUDE_PROJECT_DIR}` are the project's folder,
//! `${userHome}` is that of the user.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::spec::How;

type Look = dyn Fn(&str) -> Option<String> + Send + Sync;

/// The host's variables, for what is written of servers: whoever opens a host lends them.
#[derive(Clone, Default)]
pub struct Environment(Option<Arc<Look>>);

impl Environment {
    /// Looked up each time that a server is started.
    pub fn new(look: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(look)))
    }

    pub(super) fn get(&self, name: &str) -> Option<String> {
        self.0.as_ref().and_then(|look| look(name))
    }
}

/// What variables are filled in from.
pub(super) struct World<'a> {
    pub(super) environment: &'a Environment,
    /// Names of variables that hold keys of models: nothing of a definition is given them.
    pub(super) keys: &'a [String],
    /// The project's folder, else the one that the process works in.
    pub(super) project: Option<&'a Path>,
    /// Where a program runs that names no folder.
    pub(super) folder: &'a Path,
    /// `$NAME` is a variable too.
    pub(super) bare: bool,
}

/// How a server is reached, with nothing left to fill in.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Ready {
    Program { command: String, args: Vec<String>, env: BTreeMap<String, String>, folder: PathBuf },
    Http { url: String, headers: BTreeMap<String, String>, sse: bool },
}

impl Ready {
    /// The same for the same server, whatever it is called. It may hold secrets.
    pub(super) fn key(&self) -> String {
        match self {
            Self::Program { command, args, env, folder } => {
                serde_json::json!(["program", command, args, env, folder.to_string_lossy()]).to_string()
            }
            Self::Http { url, headers, sse: _ } => serde_json::json!(["http", url, headers]).to_string(),
        }
    }
}

/// Fills in what is written.
///
/// # Errors
/// In words: what is not set, or cannot be had here.
pub(super) fn ready(how: &How, world: &World<'_>) -> Result<Ready, String> {
    let fill = |text: &String| fill(text, world);
    let values = |map: &BTreeMap<String, String>| {
        map.iter().map(|(name, text)| Ok((name.clone(), fill(text)?))).collect::<Result<_, String>>()
    };
    match how {
        How::Program { command, args, env, folder } => {
            let folder = match folder {
                Some(folder) => world.folder.join(home(&fill(folder)?, world)),
                None => world.folder.to_owned(),
            };
            if let Some(name) = env.keys().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
                return Err(format!("`{name}` is no name of a variable"));
            }
            Ok(Ready::Program {
                command: home(&fill(command)?, world),
                args: args.iter().map(fill).collect::<Result<_, _>>()?,
                env: values(env)?,
                folder,
            })
        }
        How::Http { url, headers, sse } => {
            let url = fill(url)?;
            if !url.starts_with("http://") && !url.starts_with("https://") {
                return Err("its address is none of http or https".to_owned());
            }
            Ok(Ready::Http { url, headers: values(headers)?, sse: *sse })
        }
        How::Named => Err("no server of that name is configured".to_owned()),
        How::Off => Err("it is switched off".to_owned()),
        How::Unusable(why) => Err(why.clone()),
    }
}

/// What variables were filled in for `how` with: their values, and the names that are written for them (`${NAME}`). The
/// folders of the project and of the user are no secrets, and are left out.
///
/// # Errors
/// In words: a variable has no end.
pub(super) fn filled(how: &How, world: &World<'_>) -> Result<Vec<(String, String)>, String> {
    let texts: Vec<&String> = match how {
        How::Program { command, args, env, folder } => {
            std::iter::once(command).chain(args).chain(env.values()).chain(folder).collect()
        }
        How::Http { url, headers, sse: _ } => std::iter::once(url).chain(headers.values()).collect(),
        How::Named | How::Off | How::Unusable(_) => Vec::new(),
    };
    let mut found = Vec::new();
    for text in texts {
        fill_by(text, world.bare, &mut |inner| {
            let (name, _) = parts(inner);
            let value = world.environment.get(name).filter(|_| !is_project(name) && name != "HOME");
            found.extend(value.map(|value| (value, format!("${{{name}}}"))));
            Ok(String::new())
        })?;
    }
    Ok(found)
}

/// A path below the user's folder.
fn home(path: &str, world: &World<'_>) -> String {
    match (path.strip_prefix("~/"), world.environment.get("HOME")) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest).to_string_lossy().into_owned(),
        _ => path.to_owned(),
    }
}

fn fill(text: &str, world: &World<'_>) -> Result<String, String> {
    fill_by(text, world.bare, &mut |inner| value(inner, world).map_err(|lack| lack.to_string()))
}

/// Why `text`, which stands in a file of the user's own, cannot be filled in from the variables that `look` finds; each
/// fault once.
pub(crate) fn lacks(text: &str, look: &dyn Fn(&str) -> Option<String>) -> Vec<Lack> {
    let mut found: Vec<Lack> = Vec::new();
    let filled = fill_by(text, false, &mut |inner| {
        if let Err(lack) = value_by(inner, look, &[])
            && !found.contains(&lack)
        {
            found.push(lack);
        }
        Ok(String::new())
    });
    found.extend(filled.err().map(Lack::Odd));
    found
}

/// Why a variable cannot be filled in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Lack {
    /// It is not set, and has no value for that.
    #[error("the variable {0} is not set where the host was started")]
    Unset(String),
    /// It holds the key of a model.
    #[error("the variable {0} holds the key of a model, which no definition is given")]
    Key(String),
    /// What stands there is none; in words.
    #[error("{0}")]
    Odd(String),
}

/// Fills in what `value` gives for what stands between the braces.
fn fill_by(text: &str, bare: bool, value: &mut dyn FnMut(&str) -> Result<String, String>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['$', '{']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let braced = rest.strip_prefix("${");
        let opencode = rest.strip_prefix('{').filter(|inner| inner.starts_with("env:") || inner.starts_with("file:"));
        if let Some(inner) = braced.or(opencode) {
            let Some(end) = end(inner) else { return Err(format!("`{rest}` has no end")) };
            out.push_str(&value(&inner[..end])?);
            rest = &inner[end + 1..];
            continue;
        }
        let name = rest.strip_prefix('$').filter(|_| bare).map(|inner| {
            let end = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inner.len());
            &inner[..end]
        });
        match name.filter(|name| name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')) {
            Some(name) => {
                out.push_str(&value(name)?);
                rest = &rest[1 + name.len()..];
            }
            None => {
                out.push_str(&rest[..1]);
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// Where what stands behind an opening brace ends, bytes; behind two of them (`${{ secrets.X }}`) it ends with two.
fn end(inner: &str) -> Option<usize> {
    let twice = if inner.starts_with('{') { inner.find("}}").map(|at| at + 1) } else { None };
    twice.or_else(|| inner.find('}'))
}

/// What stands between the braces.
fn value(inner: &str, world: &World<'_>) -> Result<String, Lack> {
    let (name, _) = parts(inner);
    if is_project(name) {
        let none =
            || Lack::Odd(format!("`${{{name}}}` is the folder of a project, and there is none: --project names one"));
        return Ok(world.project.ok_or_else(none)?.to_string_lossy().into_owned());
    }
    value_by(inner, &|name| world.environment.get(name), world.keys)
}

/// The name, and what stands for it where it is not set.
fn parts(inner: &str) -> (&str, Option<&str>) {
    let (name, otherwise) = match inner.split_once(":-") {
        Some((name, otherwise)) => (name, Some(otherwise)),
        None => (inner, None),
    };
    (name.strip_prefix("env:").unwrap_or(name).trim(), otherwise)
}

/// Whether a name stands for the project's folder.
fn is_project(name: &str) -> bool {
    matches!(name, "PROJECT" | "workspaceFolder" | "workspaceRoot" | "CLAUDE_PROJECT_DIR")
}

fn value_by(inner: &str, look: &dyn Fn(&str) -> Option<String>, keys: &[String]) -> Result<String, Lack> {
    let (name, otherwise) = parts(inner);
    match name {
        // The folder is known where a server is started.
        name if is_project(name) => return Ok(String::new()),
        "pathSeparator" | "/" => return Ok(std::path::MAIN_SEPARATOR.to_string()),
        "userHome" => return look("HOME").ok_or_else(|| Lack::Odd("the home folder is not known".to_owned())),
        _ => {}
    }
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !plain {
        return Err(Lack::Odd(format!("`${{{inner}}}` is nothing that can be filled in here; only variables can")));
    }
    if keys.iter().any(|key| key == name) {
        return Err(Lack::Key(name.to_owned()));
    }
    match (look(name).filter(|value| !value.is_empty()), otherwise) {
        (Some(value), _) => Ok(value),
        (None, Some(otherwise)) => Ok(otherwise.to_owned()),
        (None, None) => Err(Lack::Unset(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, bare: bool, want: Result<&str, &str>) {
        let environment = Environment::new(|name| match name {
            "TOKEN" => Some("t$x".to_owned()),
            "EMPTY" => Some(String::new()),
            "HOME" => Some("/home/a".to_owned()),
            "KEY" => Some("secret".to_owned()),
            _ => None,
        });
        let keys = ["KEY".to_owned()];
        let world = World {
            environment: &environment,
            keys: &keys,
            project: Some(Path::new("/p")),
            folder: Path::new("/p"),
            bare,
        };
        let found = fill(text, &world);
        assert_eq!(found.as_deref().map_err(String::as_str), want, "{text}");
    }

    #[test]
    fn what_is_lacking_is_told_once_and_all_of_it() {
        let look = |name: &str| (name == "SET").then(|| "x".to_owned());
        let check = |text: &str, want: &[Lack]| assert_eq!(lacks(text, &look), want, "{text}");
        let unset = |name: &str| Lack::Unset(name.to_owned());
        check("plain $NONE ${SET} ${A:-b} ${PROJECT}", &[]);
        check("${A}${env:B} {env:A}", &[unset("A"), unset("B")]);
        check("${A} ${B", &[unset("A"), Lack::Odd("`${B` has no end".to_owned())]);
    }

    #[test]
    fn variables_are_filled_in_once() {
        check("plain {a} $", false, Ok("plain {a} $"));
        check("Bearer ${TOKEN}", false, Ok("Bearer t$x"));
        check("${env:TOKEN}-{env:TOKEN}", true, Ok("t$x-t$x"));
        check("${NONE:-a}${EMPTY:-b}${TOKEN:-c}${NONE:-}", false, Ok("abt$x"));
        check("$TOKEN", false, Ok("$TOKEN"));
        check("$TOKEN/$5 $", true, Ok("t$x/$5 $"));
        check("${workspaceFolder}/a", false, Ok("/p/a"));
        check("${NONE}", false, Err("the variable NONE is not set where the host was started"));
        check("${EMPTY}", false, Err("the variable EMPTY is not set where the host was started"));
        check("${KEY:-x}", false, Err("the variable KEY holds the key of a model, which no definition is given"));
        check(
            "${input:token}",
            false,
            Err("`${input:token}` is nothing that can be filled in here; only variables can"),
        );
        check(
            "{file:~/.key}",
            false,
            Err("`${file:~/.key}` is nothing that can be filled in here; only variables can"),
        );
        check("${TOKEN", false, Err("`${TOKEN` has no end"));
        let of_a_workflow = "`${{ secrets.X }}` is nothing that can be filled in here; only variables can";
        check("a ${{ secrets.X }}", false, Err(of_a_workflow));
        check("${{a}", false, Err("`${{a}` is nothing that can be filled in here; only variables can"));
        let environment = Environment::default();
        let world =
            World { environment: &environment, keys: &[], project: None, folder: Path::new("/state"), bare: false };
        let none = "`${PROJECT}` is the folder of a project, and there is none: --project names one";
        assert_eq!(fill("${PROJECT}/a", &world), Err(none.to_owned()));
    }
}
