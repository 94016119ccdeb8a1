//! The schema that the result of a spawn has to fit: the call's, else the one that a resumed process had, else the
//! definition's.

use serde_json::Value;

use super::Spawn;
use super::resume::Resumed;
use crate::output_schema::OutputSchema;
use crate::registry::Definition;
use crate::tools::ToolError;

/// The schema, where there is one.
///
/// # Errors
/// `bad_argument` where results cannot be checked by it, with whose it is.
pub(super) async fn wanted(
    params: &Spawn,
    resumed: Option<&Resumed>,
    definition: &Definition,
) -> Result<Option<Value>, ToolError> {
    let own = || definition.output_schema.clone();
    let (schema, whose, hint) = match (&params.output_schema, resumed) {
        (Some(schema), _) => {
            (Some(Value::Object(schema.clone())), "`output_schema`".to_owned(), "Correct it, or leave it out.")
        }
        (None, Some(resumed)) => (
            resumed.output_schema.clone(),
            "the output schema of the resumed process".to_owned(),
            "Give an `output_schema` with the call.",
        ),
        (None, None) => (
            own(),
            format!("the `output_schema` of `{}` ({})", definition.id, definition.place()),
            "Give an `output_schema` with the call, or have the definition corrected.",
        ),
    };
    let Some(schema) = schema else { return Ok(None) };
    let looked = tokio::task::spawn_blocking(move || OutputSchema::compile(&schema).map(|_| schema));
    let looked = looked.await.map_err(|error| ToolError::internal(&error))?;
    looked.map(Some).map_err(|error| ToolError::bad_argument(format!("{whose} {error}"), hint))
}
