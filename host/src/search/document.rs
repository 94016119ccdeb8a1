//! An assistant as a document of the index: which text goes into which field.

use tantivy::TantivyDocument;
use tantivy::schema::{FAST, Field, IndexRecordOption, STRING, Schema, TextFieldIndexing, TextOptions};

use super::analyzer::split_camel;
use crate::registry::{Definition, slug};

/// The analyzer's name in the index.
pub(super) const ANALYZER: &str = "assistants";

/// The fields of a document.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields {
    pub(super) id: Field,
    /// Name, description and tags, as one text.
    pub(super) head: Field,
    /// The system prompt.
    pub(super) body: Field,
}

pub(super) const ID: &str = "id";

pub(super) fn schema() -> (Schema, Fields) {
    let mut schema = Schema::builder();
    let indexing = TextFieldIndexing::default().set_tokenizer(ANALYZER).set_index_option(IndexRecordOption::WithFreqs);
    let text = TextOptions::default().set_indexing_options(indexing);
    let fields = Fields {
        id: schema.add_text_field(ID, STRING | FAST),
        head: schema.add_text_field("head", text.clone()),
        body: schema.add_text_field("body", text),
    };
    (schema.build(), fields)
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
    document.add_text(fields.head, head);
    document.add_text(fields.body, &definition.system_prompt);
    document
}
