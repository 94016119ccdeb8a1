//! The file of one subagent, as it is written.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::tools::schema;

/// The version of the form that is read.
pub(super) const VERSION: &str = "1.0";

/// One subagent: what it is called, what answers for it, and which tools it has. Paths start at the file's folder.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct File {
    /// The version of this form, "1.0".
    pub version: Option<String>,
    /// The models that `defaults.model` can name.
    #[schemars(required)]
    pub models: Option<Vec<Model>>,
    /// What the one tool is called and what it is for.
    #[schemars(required)]
    pub subagent: Option<Subagent>,
    /// How it runs.
    #[schemars(required)]
    pub defaults: Option<Defaults>,
    /// The tool servers that each run is given, by name. They are started when a run needs them.
    pub mcp_servers: BTreeMap<String, Server>,
    /// How often a result that does not fit the schema is sent back to be mended. Default 1; with 0 the first such
    /// result fails the run.
    pub output_repairs: Option<u32>,
    /// Limits of this host, by the names that `[limits]` of its own configuration has, as `wall_ms` or `turns`.
    pub limits: Map<String, Value>,
}

/// A model.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Model {
    /// What `defaults.model` calls it.
    #[serde(rename = "ref")]
    #[schemars(required)]
    pub reference: Option<String>,
    /// Its name for people.
    pub display_name: Option<String>,
    /// The provider's name of it, sent exactly so.
    #[schemars(required)]
    pub id: Option<String>,
    /// What speaks to it: anthropic, openai (and every server that speaks as OpenAI does, with `base_url`), and the
    /// other providers of this host.
    #[serde(rename = "type")]
    #[schemars(required)]
    pub provider: Option<String>,
    /// The environment variable that holds the key.
    pub api_key_env: Option<String>,
    /// Where the provider is, where that is not its own address.
    pub base_url: Option<String>,
    /// The file of the replies, for the type `scripted`: tests and demonstrations, without a network.
    pub script: Option<String>,
}

/// What the one tool is called and what it is for.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Subagent {
    /// The name of the tool: 1 to 64 letters, digits, `_` and `-`, the first a letter.
    #[schemars(required)]
    pub name: Option<String>,
    /// What the tool is for, for the model that calls it.
    #[schemars(required)]
    pub description: Option<String>,
    /// A JSON schema that every result must fit.
    pub output_schema_path: Option<String>,
}

/// How it runs.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Defaults {
    /// One of `models`, by its `ref`.
    #[schemars(required)]
    pub model: Option<String>,
    /// The file of the system prompt.
    pub system_prompt_path: Option<String>,
    /// Whether it may run code.
    pub code_mode: CodeMode,
}

/// Whether it may run code.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CodeMode {
    /// Told at the start: this host has no interpreter, and runs go on without one.
    pub enabled: bool,
}

/// A tool server.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Server {
    /// How it is spoken to: stdio (`command`), http or sse (`url`). Left out, it is what the other keys say.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// The program of a stdio server.
    pub command: Option<String>,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables that it gets on top of those of this program; `${NAME}` stands for one of these.
    pub env: BTreeMap<String, String>,
    /// Where an http or sse server is.
    pub url: Option<String>,
    /// Headers that are sent to it.
    pub headers: BTreeMap<String, String>,
}

/// The JSON schema of the file, for editors.
#[must_use]
pub fn json_schema() -> Value {
    let mut all = Map::new();
    all.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    all.insert("title".into(), json!("One subagent, served by `assistant-host mcp serve --config FILE`"));
    if let Value::Object(schema) = schema::input::<File>() {
        all.extend(schema);
    }
    Value::Object(all)
}
