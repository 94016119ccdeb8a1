//! One subagent as an MCP server of its own: a file says what it is called, what answers for it and which tools it has,
//! and [`read`] makes a [`Single`] of it. `assistant-host mcp serve --config FILE` serves it as one tool.
//!
//! The host of such a server is inside of its process. It keeps what it does in a state directory of the file's own, below
//! which each server that runs at the same time has a [`place`]: the first whose lock is free.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::config::{Config, Provider};
use crate::model::Models;
use crate::registry::{Definition, Source};

mod check;
mod file;
mod finding;
mod output;
pub mod place;
mod reading;

pub use file::{File, json_schema};
pub use finding::Finding;
pub use output::Form;

use reading::Reading;

/// The longest file that is read, and the longest system prompt, bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// How long a call of the one tool may take: as long as its run, which has limits of its own, and the queue before it.
const CALL_WAIT_MS_MAX: u64 = 24 * 60 * 60 * 1_000;

/// A subagent, ready to be served.
#[derive(Debug, Clone)]
pub struct Single {
    /// Its file, absolute.
    pub file: PathBuf,
    /// The name of the one tool.
    pub name: String,
    /// What the tool is for.
    pub description: String,
    /// What its results have to fit.
    pub output: Option<Form>,
    /// The configuration of the host that runs it: its models and limits.
    pub config: Config,
    /// Its models, with their keys.
    pub models: Models,
    /// The assistant that runs.
    pub definition: Definition,
    /// Variables that hold keys of models; no tool server gets them.
    pub key_variables: Vec<String>,
}

/// What was made of a file.
#[derive(Debug)]
pub struct Read {
    /// The subagent; none where there is an error.
    pub single: Option<Single>,
    /// All that is wrong or odd, in the order of the file.
    pub findings: Vec<Finding>,
}

/// Whether a configuration file is that of a subagent: YAML or JSON by its name, or with a key `subagent` at its top.
#[must_use]
pub fn is_meant(file: &Path) -> bool {
    let ending = file.extension().map(|ending| ending.to_ascii_lowercase());
    match ending.as_deref().and_then(std::ffi::OsStr::to_str) {
        Some("yaml" | "yml" | "json") => true,
        Some("toml") => false,
        _ => text_of(file).is_ok_and(|text| text.lines().any(|line| line.starts_with("subagent:"))),
    }
}

/// Whether a file, which may as well be that of an assistant, has a key `subagent` at its top.
#[must_use]
pub fn is_one(file: &Path) -> bool {
    let names = |line: &str| line.starts_with("subagent:") || line.trim_start().starts_with("\"subagent\"");
    is_meant(file) && text_of(file).is_ok_and(|text| text.lines().any(names))
}

/// Reads the file of a subagent, and all that it names. `env` is the environment that holds the keys.
#[must_use]
pub fn read(file: &Path, env: &dyn Fn(&str) -> Option<String>) -> Read {
    let mut reading = Reading::default();
    let single = match text_of(file) {
        Ok(text) => check::check(&text, file, env, &mut reading),
        Err(why) => {
            reading.error("", format!("it cannot be read: {why}"));
            None
        }
    };
    let mut findings = reading.findings;
    findings.sort_by_key(|finding| finding.line);
    let broken = findings.iter().any(|finding| !finding.warning);
    Read { single: single.filter(|_| !broken), findings }
}

/// The text of a file of at most [`FILE_BYTES_MAX`] bytes, or why there is none.
fn text_of(file: &Path) -> Result<String, String> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    // Whoever opens a pipe waits for its other end.
    if !std::fs::metadata(file).map_err(|error| error.to_string())?.is_file() {
        return Err("it is no file".to_owned());
    }
    let opened = std::fs::File::open(file).and_then(|open| open.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes));
    opened.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("it has more than {FILE_BYTES_MAX} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| "it is no UTF-8".to_owned())
}

/// What speaks to a model of the type `name`.
///
/// # Errors
/// Which types there are.
fn provider(name: &str) -> Result<Provider, String> {
    let plain = name.trim().to_ascii_lowercase().replace('-', "_");
    let ours = match plain.as_str() {
        "google" | "googleai" | "google_ai" => "gemini",
        "claude" => "anthropic",
        "responses" => "openai_responses",
        other => other,
    };
    serde_json::from_value(Value::String(ours.to_owned())).map_err(|error| {
        let known = error.to_string();
        let known = known.split_once("expected").map_or(known.as_str(), |(_, known)| known.trim());
        format!(
            "is `{name}`, which this host cannot speak to; it can be {}; a server that speaks as OpenAI does is \
             `openai` with its `base_url`",
            known.trim_start_matches("one of ")
        )
    })
}

/// The assistant that runs. It has the tools of its servers, and none of the host's own.
fn definition(
    name: &str,
    description: &str,
    prompt: String,
    servers: Option<Value>,
    output: Option<&Form>,
) -> Definition {
    let named = servers.as_ref().and_then(Value::as_object).into_iter().flatten();
    Definition {
        description: description.to_owned(),
        tools: Some(named.map(|(server, _)| format!("mcp__{server}__*")).collect()),
        output_schema: output.map(|form| form.written.clone()),
        mcp_servers: servers,
        // The user has named the file: what stands in it is their word.
        ..Definition::new(name, "subagent", prompt, Source::Database)
    }
}

#[cfg(test)]
mod tests;
