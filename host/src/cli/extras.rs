//! What a task on the command line has besides its words: files, the schema of its result, and a runner.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Map, Value, json};

use super::{Failure, USAGE};
use crate::output_schema::{OutputSchema, SCHEMA_BYTES_MAX};

#[derive(Args)]
pub(super) struct Extras {
    /// A text file or a picture that belongs to the task, below the project; may be given several times
    #[arg(long = "input", value_name = "PATH")]
    inputs: Vec<PathBuf>,
    /// A file with the JSON schema that the result has to fit
    #[arg(long, value_name = "FILE")]
    output_schema: Option<PathBuf>,
    /// A configured runner, instead of the assistant's own
    #[arg(long, value_name = "NAME")]
    runner: Option<String>,
}

impl Extras {
    /// Adds them to the arguments of `spawn_assistant`. Paths begin in the working directory.
    pub(super) fn add_to(&self, task: &mut Map<String, Value>) -> Result<(), Failure> {
        let bad = |file: &Path, why: &dyn std::fmt::Display| Failure::new(USAGE, format!("{}: {why}", file.display()));
        task.extend(self.runner.iter().map(|name| ("runner".to_owned(), json!(name))));
        let mut inputs = Vec::new();
        for input in &self.inputs {
            let whole = input.canonicalize().map_err(|error| bad(input, &error))?;
            let text = whole.to_str().ok_or_else(|| bad(input, &"its path is no text"))?;
            inputs.push(json!(text));
        }
        if !inputs.is_empty() {
            task.insert("inputs".to_owned(), Value::Array(inputs));
        }
        let Some(file) = &self.output_schema else { return Ok(()) };
        let size = std::fs::metadata(file).map_err(|error| bad(file, &error))?.len();
        // Blanks count for nothing later; a file of many times the size is none all the same.
        if size > 4 * SCHEMA_BYTES_MAX as u64 {
            return Err(bad(file, &format!("it has {size} bytes, too many for a schema")));
        }
        let text = std::fs::read_to_string(file).map_err(|error| bad(file, &error))?;
        let schema: Value = serde_json::from_str(&text).map_err(|error| bad(file, &error))?;
        if !schema.is_object() {
            return Err(bad(file, &"a JSON schema is an object"));
        }
        OutputSchema::compile(&schema).map_err(|error| bad(file, &format!("the schema {error}")))?;
        task.insert("output_schema".to_owned(), schema);
        Ok(())
    }
}
