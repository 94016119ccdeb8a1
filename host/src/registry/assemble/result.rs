//! What a definition says of the form of its result.

use serde_json::json;

use super::super::definition::Definition;
use super::super::diagnostic::Code;
use super::super::notes::Notes;
use super::super::yaml::Node;
use super::Taken;
use crate::output_schema::OutputSchema;

/// The form of a result.
#[derive(Debug, Default)]
pub(super) struct Form {
    /// It is JSON.
    json: bool,
    /// Where the schema stands.
    at: Option<(u32, u32)>,
}

impl Form {
    /// Reads a word for the form.
    pub(super) fn format(&mut self, node: &Node) -> Taken {
        match node.scalar().map(|word| word.trim().to_lowercase()).as_deref() {
            Some("json") => {
                self.json = true;
                Taken::Kept
            }
            Some("text" | "markdown" | "md") => Taken::Kept,
            Some(_) | None => Taken::No,
        }
    }

    /// The schema stands there.
    pub(super) fn schema_at(&mut self, at: (u32, u32)) {
        self.at = Some(at);
    }

    /// Any JSON is a result where the definition says no more; a schema that results cannot be checked by is told.
    pub(super) fn settle(&self, definition: &mut Definition, line: (u32, u32), notes: &mut Notes<'_>) {
        if self.json && definition.output_schema.is_none() {
            definition.output_schema = Some(json!({}));
        }
        let Some(schema) = &definition.output_schema else { return };
        if let Err(error) = OutputSchema::compile(schema) {
            let message = format!("its output schema {error}; it cannot be started unless the caller gives one");
            notes.say(Code::OutputSchemaUnusable, self.at.unwrap_or(line), message, "correct the schema, or remove it");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::super::{Source, read};

    /// The schema of a definition with these keys, and the codes and lines of what was found.
    fn check(keys: &str, schema: Option<Value>, found: &[(&str, u32)]) {
        let text = format!("---\nname: a\ndescription: b\n{keys}\n---\nYou are a.\n");
        let read = read(text.as_bytes(), "a.md".as_ref(), Source::Dir).expect("an assistant");
        assert_eq!(read.output_schema, schema, "{keys}");
        let codes: Vec<_> = read.warnings.iter().map(|one| (one.code.as_str(), one.line.unwrap_or(0))).collect();
        assert_eq!(codes, found, "{keys}");
    }

    #[test]
    fn the_form_of_a_result() {
        let object = || Some(json!({ "type": "object" }));
        check("session: true", None, &[]);
        check("output_schema: {type: object}", object(), &[]);
        check("output_format: json\noutput_schema: {type: object}", object(), &[]);
        check("output_schema: {type: object}\noutputFormat: JSON", object(), &[]);
        check("output_format: json", Some(json!({})), &[]);
        check("output_format: text", None, &[]);
        check("output_format: xml", None, &[("field_ignored", 4)]);
        check("output_schema: review.json", None, &[("field_ignored", 4)]);
        let unusable = |keys: &str, schema| check(keys, Some(schema), &[("output_schema_unusable", 4)]);
        unusable("output_schema: {type: text}", json!({ "type": "text" }));
        unusable("output_schema: {$ref: 'http://x.example/y'}", json!({ "$ref": "http://x.example/y" }));
    }
}
