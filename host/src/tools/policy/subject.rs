//! What a call is about: the command, the paths, the address or the assistant in its arguments.

use serde_json::{Map, Value};

use super::shell::Script;
use super::{ToolName, agents, patches};
use crate::registry::{Subject, subject};
use crate::servers::presets::{What, role};
use crate::text::{NAME_SHOWN_CHARS_MAX, cut};
use crate::tools::grants;

/// Arguments that hold a path.
const PATHS: &[&str] = &[
    "absolutefilepath",
    "absolutepath",
    "absolutepaths",
    "basepath",
    "cwd",
    "dest",
    "destination",
    "destinationpath",
    "destpath",
    "dir",
    "directory",
    "directorypath",
    "dirpath",
    "file",
    "filelist",
    "filename",
    "filenames",
    "filepath",
    "filepaths",
    "files",
    "folder",
    "folderpath",
    "folders",
    "from",
    "fullpath",
    "inputfile",
    "inputpath",
    "newfile",
    "newfilepath",
    "newpath",
    "notebookpath",
    "oldfile",
    "oldfilepath",
    "oldpath",
    "outputfile",
    "outputpath",
    "path",
    "pathname",
    "pathnames",
    "paths",
    "relativepath",
    "relativepaths",
    "relativeworkspacepath",
    "repopath",
    "root",
    "rootpath",
    "searchpath",
    "searchpaths",
    "source",
    "sourcefile",
    "sourcepath",
    "src",
    "srcpath",
    "target",
    "targetdirectory",
    "targetfile",
    "targetpath",
    "to",
    "uri",
    "uris",
    "workdir",
    "workingdir",
    "workingdirectory",
];
/// Arguments that hold a command.
const COMMANDS: &[&str] = &["cmd", "command", "commandline", "input", "program", "script", "shellcommand"];
/// Arguments of a command besides it.
const ARGUMENTS: &[&str] = &["args", "arguments", "argv"];
/// Arguments beside a command that change nothing about what it is, but for the folder.
const BESIDE: &[&str] = &["description", "explanation", "reason", "timeout", "timeoutms", "timeoutseconds"];
/// The folder in which a command runs.
const FOLDERS: &[&str] = &["cwd", "directory", "workdir", "workingdir", "workingdirectory"];
/// Arguments that hold an address.
const URLS: &[&str] = &["address", "href", "uri", "url", "urls"];
/// Most paths or addresses of one call.
const VALUES_MAX: usize = 256;
/// Deepest nesting of arguments that is looked into.
const DEPTH_MAX: usize = 8;
/// Parts of the names of tools that look at all that lies below a folder.
const DEEP: &[&str] = &["codebase", "find", "glob", "grep", "list", "search", "tree"];
/// Those of them that give no more than names.
const NAMES_ONLY: &[&str] = &["glob", "list", "tree"];
/// Parts of the names of tools that are given a patch, folded.
const PATCHES: &[&str] = &["diff", "patch"];

/// The subject of calls of a tool; none is nothing that this host knows of.
pub(super) fn of_tool(tool: ToolName<'_>) -> Option<Subject> {
    match tool.server {
        None => match tool.tool {
            "spawn_assistant" => Some(Subject::Assistant),
            "list_files" | "read_file" | "search_files" => Some(Subject::ReadPath),
            app if app.contains("__") => app.split("__").last().and_then(subject),
            _ => None,
        },
        Some(server) => does(server, tool.tool).map(|what| match what {
            What::Read | What::List | What::Search => Subject::ReadPath,
            What::Write | What::Edit => Subject::WritePath,
            What::Run => Subject::Command,
            What::Fetch => Subject::Url,
        }),
    }
}

/// What a tool of a server does, or one of an agent's own.
fn does(server: &str, tool: &str) -> Option<What> {
    if server == agents::AGENT { agents::what(tool) } else { role(server, tool) }
}

/// What a name of other systems stands for among the tools of servers. What the host has itself it does itself.
pub(super) fn means(name: &str, server: &str, tool: &str) -> bool {
    match server {
        agents::AGENT => agents::means(name, tool),
        server => does(server, tool).is_some_and(|what| grants::roles_of(name).contains(&what)),
    }
}

/// The same for what is denied: who denies the host's tool denies those of servers that do the same.
pub(super) fn means_too(name: &str, server: &str, tool: &str) -> bool {
    let ours: &[&str] = match does(server, tool) {
        // What an agent finds in files it has read, as with the host's own search.
        Some(What::Search) if server == agents::AGENT => &["search_files", "list_files", "read_file"],
        Some(What::Read) => &["read_file"],
        Some(What::List) => &["list_files"],
        // What others call so looks for names of files, or for what stands in them.
        Some(What::Search) => &["search_files", "list_files"],
        Some(What::Write | What::Edit | What::Run | What::Fetch) | None => &[],
    };
    means(name, server, tool) || grants::alias(name).iter().any(|tool| ours.contains(tool))
}

/// Whether calls of a tool look at all that lies below a path, and whether at what stands in it.
pub(super) fn depth(tool: ToolName<'_>) -> (bool, bool) {
    let has = |parts: &[&str]| parts.iter().any(|part| tool.tool.to_ascii_lowercase().contains(part));
    (has(DEEP), has(DEEP) && !has(NAMES_ONLY))
}

fn folded(key: &str) -> String {
    crate::registry::fold(key)
}

/// The command of a call, and the folder in which it is to run where the call names one.
///
/// # Errors
/// Why it cannot be told.
pub(super) fn command(arguments: &Map<String, Value>) -> Result<(Vec<Script>, Option<String>), String> {
    let (mut commands, mut behind, mut folder) = (Vec::new(), None, None);
    for (key, value) in arguments {
        let name = folded(key);
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            value if COMMANDS.contains(&name.as_str()) => commands.push(value),
            value if ARGUMENTS.contains(&name.as_str()) => behind = Some(words(key, value)?),
            Value::String(_) if BESIDE.contains(&name.as_str()) => {}
            Value::String(text) if FOLDERS.contains(&name.as_str()) => folder = Some(text.clone()),
            _ => {
                return Err(format!(
                    "what the argument `{}` does to the command is not known",
                    cut(key, NAME_SHOWN_CHARS_MAX)
                ));
            }
        }
    }
    let [command] = commands.as_slice() else {
        return Err(format!("the call has {} arguments that are a command, not one", commands.len()));
    };
    let scripts = match command {
        Value::String(text) => {
            let behind = behind.unwrap_or_default();
            // Whether a shell puts them together is up to the tool.
            let joined = [&[text.clone()][..], &behind].concat();
            let mut scripts = vec![Script::parse(&joined.join(" "))?];
            if !behind.is_empty() {
                scripts.push(Script::of_words(joined)?);
            }
            scripts
        }
        Value::Array(_) if behind.is_none() => vec![Script::of_words(words("command", command)?)?],
        _ => return Err("its command is neither a text nor a list of texts".to_owned()),
    };
    Ok((scripts, folder))
}

fn words(key: &str, value: &Value) -> Result<Vec<String>, String> {
    let words =
        value.as_array().map(|all| all.iter().map(|one| one.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>());
    words.flatten().ok_or_else(|| format!("its `{}` is no list of texts", cut(key, NAME_SHOWN_CHARS_MAX)))
}

/// The paths of a call of a tool. None is the folder of the run where the tool looks below one, or where the call has no
/// text that may name a file in a way that is not known here.
///
/// # Errors
/// Why they cannot be told.
pub(super) fn paths(tool: ToolName<'_>, arguments: &Map<String, Value>) -> Result<Vec<String>, String> {
    let mut found = named(arguments, PATHS, "path")?;
    if PATCHES.iter().any(|part| folded(tool.tool).contains(part)) {
        for (key, value) in arguments {
            in_patches(PATHS.contains(&folded(key).as_str()), value, 0, &mut found)?;
        }
    }
    if found.len() > VALUES_MAX {
        return Err(too_many("path"));
    }
    if !found.is_empty() {
        return Ok(found);
    }
    if looks_below(tool) || !arguments.values().any(has_text) {
        return Ok(vec![".".to_owned()]);
    }
    Err(format!("which file `{}` is to touch cannot be told", cut(tool.tool, NAME_SHOWN_CHARS_MAX)))
}

/// The files that patches are about, in every text that is no path itself.
fn in_patches(is_path: bool, value: &Value, depth: usize, found: &mut Vec<String>) -> Result<(), String> {
    if depth > DEPTH_MAX {
        return Err(too_deep());
    }
    match value {
        Value::String(text) if !is_path => found.extend(patches::files(text)?),
        Value::Array(all) => all.iter().try_for_each(|one| in_patches(is_path, one, depth + 1, found))?,
        Value::Object(map) => {
            for (key, value) in map {
                in_patches(PATHS.contains(&folded(key).as_str()), value, depth + 1, found)?;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    Ok(())
}

/// Whether a tool lists or searches a folder: without a path in its arguments that is the one of the run.
fn looks_below(tool: ToolName<'_>) -> bool {
    match tool.server {
        Some(server) => does(server, tool.tool).is_some_and(|what| matches!(what, What::List | What::Search)),
        None => depth(tool).0,
    }
}

fn has_text(value: &Value) -> bool {
    match value {
        Value::String(_) => true,
        Value::Array(all) => all.iter().any(has_text),
        Value::Object(map) => map.values().any(has_text),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The addresses of a call.
///
/// # Errors
/// It has none, or they cannot be told.
pub(super) fn urls(arguments: &Map<String, Value>) -> Result<Vec<String>, String> {
    let found = named(arguments, URLS, "address")?;
    if found.is_empty() { Err("the call has no argument that is an address".to_owned()) } else { Ok(found) }
}

/// The assistant that a call names; none where it searches for one, which is looked at when it is found.
///
/// # Errors
/// It is no text.
pub(super) fn assistant(arguments: &Map<String, Value>) -> Result<Option<String>, String> {
    let found = arguments.iter().filter(|(key, _)| folded(key) == "assistantid").map(|(_, value)| value);
    match found.filter(|value| !value.is_null()).collect::<Vec<_>>().as_slice() {
        [] => Ok(None),
        [Value::String(id)] => Ok(Some(id.clone())),
        _ => Err("its `assistant_id` is not one text".to_owned()),
    }
}

/// Every text under one of `names`, wherever it stands.
fn named(arguments: &Map<String, Value>, names: &[&str], what: &str) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for (key, value) in arguments {
        collect(names.contains(&folded(key).as_str()), value, names, what, 0, &mut found)?;
    }
    if found.len() > VALUES_MAX { Err(too_many(what)) } else { Ok(found) }
}

fn too_deep() -> String {
    "its arguments are nested too deep".to_owned()
}

fn too_many(what: &str) -> String {
    format!("the call has more than {VALUES_MAX} arguments that are a {what}")
}

fn collect(
    is: bool,
    value: &Value,
    names: &[&str],
    what: &str,
    depth: usize,
    found: &mut Vec<String>,
) -> Result<(), String> {
    if depth > DEPTH_MAX {
        return Err(too_deep());
    }
    match value {
        Value::String(text) if is => found.push(text.clone()),
        Value::Array(all) => {
            all.iter().try_for_each(|one| collect(is, one, names, what, depth + 1, found))?;
        }
        Value::Object(map) => {
            for (key, value) in map {
                collect(names.contains(&folded(key).as_str()), value, names, what, depth + 1, found)?;
            }
        }
        Value::Number(_) | Value::Bool(_) if is => return Err(format!("an argument that is a {what} is no text")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    Ok(())
}
