//! An assistant as a document of the index: which text goes into which field.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use tantivy::schema::{FAST, Field, IndexRecordOption, STRING, Schema, TextFieldIndexing, TextOptions, Value};
use tantivy::{TantivyDocument, Term};

use super::analyzer::{analyzer, split_camel};
use super::scoring::FIELDS;
use crate::registry::{Definition, slug};

/// The analyzer's name in the index.
pub(super) const ANALYZER: &str = "assistants";
/// Bytes of the first line of a prompt that are its lead.
const LEAD_BYTES_MAX: usize = 1024;

/// The fields of a document.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields {
    pub(super) id: Field,
    /// Of what the document was made, see [`digest`].
    pub(super) digest: Field,
    /// Those that are searched, in the order of [`NAMES`].
    pub(super) texts: [Field; FIELDS],
}

pub(super) const ID: &str = "id";
pub(super) const DIGEST: &str = "digest";
/// Name, description and tags as one text; the first line of the system prompt, which often says what the assistant
/// is; the whole system prompt.
pub(super) const NAMES: [&str; FIELDS] = ["head", "lead", "body"];

pub(super) fn schema() -> (Schema, Fields) {
    let mut schema = Schema::builder();
    let indexing = TextFieldIndexing::default().set_tokenizer(ANALYZER).set_index_option(IndexRecordOption::WithFreqs);
    let text = TextOptions::default().set_indexing_options(indexing);
    let id = schema.add_text_field(ID, STRING | FAST);
    let digest = schema.add_u64_field(DIGEST, FAST);
    let texts = NAMES.map(|name| schema.add_text_field(name, text.clone()));
    (schema.build(), Fields { id, digest, texts })
}

/// The document of an assistant.
pub(super) fn document(fields: Fields, definition: &Definition) -> TantivyDocument {
    let mut head = definition.name.clone();
    let mut add = |text: &str| head.extend(["\n", text]);
    split_camel(&definition.name).iter().for_each(|split| add(split));
    if slug(&definition.name).as_deref() != Some(definition.id.as_str()) {
        add(definition.id.as_str());
    }
    add(&definition.description);
    definition.tags.iter().for_each(|tag| add(tag));
    let mut document = TantivyDocument::new();
    document.add_text(fields.id, definition.id.as_str());
    document.add_u64(fields.digest, digest(definition));
    for (field, text) in
        fields.texts.into_iter().zip([&*head, lead(&definition.system_prompt), &*definition.system_prompt])
    {
        document.add_text(field, text);
    }
    document
}

/// The different terms of the document of an assistant, without its id.
pub(super) fn terms(fields: Fields, definition: &Definition) -> HashSet<Term> {
    let document = document(fields, definition);
    let mut analyzer = analyzer();
    let mut terms = HashSet::new();
    for (field, value) in document.field_values().filter(|(field, _)| *field != fields.id) {
        let Some(text) = value.as_str() else { continue };
        let mut stream = analyzer.token_stream(text);
        while let Some(token) = stream.next() {
            terms.insert(Term::from_field_text(field, &token.text));
        }
    }
    terms
}

/// A hash over what the document of an assistant is made of, with that of its file in place of what was read there. It
/// is compared with those of the same program only: where another one hashes otherwise, the documents are made anew.
pub(super) fn digest(definition: &Definition) -> u64 {
    let Definition { id, name, description, system_prompt, tags, content_hash, .. } = definition;
    let mut hasher = DefaultHasher::new();
    (id, name, description, system_prompt.len(), tags, content_hash).hash(&mut hasher);
    hasher.finish()
}

/// The first line of a prompt that has words and is no heading.
fn lead(prompt: &str) -> &str {
    let says = |line: &&str| !line.starts_with('#') && line.contains(char::is_alphanumeric);
    let line = prompt.lines().map(str::trim).find(says).unwrap_or_default();
    &line[..line.floor_char_boundary(LEAD_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leads() {
        let check = |prompt: &str, expected: &str| assert_eq!(lead(prompt), expected, "{prompt:?}");
        check("\n# Role\n\n---\n\nYou find mistakes.\nYou mend none.", "You find mistakes.");
        check("  你核对发票。\r\nmore", "你核对发票。");
        check("# only\n## headings", "");
        check("", "");
        check(&"ü".repeat(1_000), &"ü".repeat(LEAD_BYTES_MAX / 2));
    }
}
