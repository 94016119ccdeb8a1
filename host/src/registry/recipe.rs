//! What is only in recipes of goose: extensions, settings, the schema of the answer.

use serde_json::Value;

use super::Dialect;
use super::assemble::Taken;
use super::definition::Definition;
use super::diagnostic::Code;
use super::fields;
use super::keys;
use super::known::fold;
use super::notes::Notes;
use super::yaml::{Entry, Kind, Node};

/// Parameters that a finding names.
const PARAMETERS_TOLD_MAX: usize = 12;

/// Whether `definition` is a recipe.
pub(super) fn is_recipe(definition: &Definition) -> bool {
    definition.dialect == Dialect::GooseRecipe
}

/// What is said of a recipe: its parameters are the caller's to give.
pub(super) fn told(definition: &Definition) -> String {
    let names: Vec<String> = parameters(definition).take(PARAMETERS_TOLD_MAX).map(|key| format!("`{key}`")).collect();
    match names.is_empty() {
        true => "a recipe of goose; its prompt is the system prompt".to_owned(),
        false => {
            format!("a recipe of goose; nothing fills in its parameters, so the task must name {}", names.join(", "))
        }
    }
}

fn parameters(definition: &Definition) -> impl Iterator<Item = &str> {
    let written = definition.extra.iter().find(|(key, _)| fold(key) == "parameters");
    let list = written.and_then(|(_, value)| value.as_array());
    list.into_iter().flatten().filter_map(|one| one.get("key").and_then(Value::as_str))
}

/// Tells of the extensions that are built into goose; all are kept as written. False where it is no list.
pub(super) fn extensions(entry: &Entry, definition: &mut Definition, notes: &mut Notes<'_>) -> bool {
    let Kind::Seq(nodes) = &entry.value.kind else { return false };
    let runs =
        |node: &Node| ["cmd", "uri", "code"].iter().any(|key| get(node, key).is_some_and(|value| !value.is_null()));
    for node in nodes.iter().filter(|node| !runs(node)) {
        let name = get(node, "name").or(Some(node)).and_then(Node::scalar).unwrap_or("one without a name");
        let message = format!("the extension `{}` is built into goose, and is not here", keys::cut(name));
        notes.say(Code::ExtensionBuiltin, (node.line, node.column), message, "");
    }
    definition.extra.insert(entry.key.clone(), entry.value.json());
    true
}

/// `settings`: only the most model calls are of use here; the rest is kept.
pub(super) fn settings(entry: &Entry, definition: &mut Definition) -> Taken {
    let turns = get(&entry.value, "max_turns").and_then(fields::number).map(|turns| turns as u32);
    definition.max_turns = turns.filter(|turns| *turns > 0).or(definition.max_turns);
    if let Some(models) = get(&entry.value, "goose_model").and_then(fields::models)
        && definition.model.is_empty()
    {
        definition.model = models;
    }
    Taken::Kept
}

/// `response`: the schema of the result.
pub(super) fn response(entry: &Entry, definition: &mut Definition) -> Taken {
    match get(&entry.value, "json_schema").map(Node::json) {
        Some(schema @ Value::Object(_)) => {
            definition.output_schema = Some(schema);
            Taken::Yes
        }
        Some(_) | None => Taken::No,
    }
}

/// The value of `key`, in any spelling, in a map.
fn get<'a>(node: &'a Node, key: &str) -> Option<&'a Node> {
    match &node.kind {
        Kind::Map(entries) => entries.iter().find(|entry| fold(&entry.key) == fold(key)).map(|entry| &entry.value),
        Kind::Scalar { .. } | Kind::Seq(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Source, read};
    use super::*;

    #[test]
    fn a_whole_recipe() {
        let text = "version: 1.0.0\ntitle: PR Look\ndescription: Looks at a PR\ninstructions: You look.\n\
                    prompt: |\n  Look at {{ pr }}.\nparameters:\n  - {key: pr, input_type: string}\nextensions:\n\
                    \x20 - {type: builtin, name: developer}\n  - {type: stdio, name: s, cmd: npx, args: [x], envs: {A: b}}\n\
                    \x20 - {type: streamable_http, name: h, uri: 'https://example.org'}\nsettings:\n  max_turns: 7\n\
                    response:\n  json_schema: {type: object}\nretry: {max_retries: 2}\n";
        let found = read(text.as_bytes(), "look.yaml".as_ref(), Source::Dir).expect("a recipe");
        assert_eq!((found.id.as_str(), found.name.as_str()), ("pr-look", "PR Look"));
        assert_eq!(found.system_prompt, "You look.\n\nLook at {{ pr }}.");
        assert_eq!((found.max_turns, found.output_schema.clone()), (Some(7), Some(json!({ "type": "object" }))));
        assert_eq!((found.mcp_servers.clone(), found.extra["extensions"].as_array().map(Vec::len)), (None, Some(3)));
        assert_eq!(found.extra["parameters"], json!([{ "key": "pr", "input_type": "string" }]));
        let codes: Vec<_> = found.warnings.iter().map(|found| (found.code, found.line)).collect();
        let expected = [
            (Code::ExtensionBuiltin, Some(10)),
            (Code::KeyUnused, Some(1)),
            (Code::KindGooseRecipe, Some(1)),
            (Code::NameNormalised, Some(1)),
        ];
        assert_eq!(codes, expected);
        assert!(found.warnings[2].message.contains("`pr`"));
    }
}
