//! The list of tools: what clients take, and what it costs them.

use std::collections::BTreeSet;
use std::path::Path;

use super::*;
use crate::registry::{Source, read_markdown};
use crate::tools::texts::tests::{complaints, named, names as names_in};

fn registry(count: usize, description: &str) -> Registry {
    let one = |number: usize| {
        let text = format!(
            "---\nname: specialist-number-{number:03}-of-many\ndescription: {description}\n---\nYou are one.\n"
        );
        read_markdown(text.as_bytes(), Path::new("x.md"), Source::Dir).expect("an assistant")
    };
    Registry::from_definitions((0..count).map(one))
}

fn bytes(tools: &[Tool]) -> usize {
    Value::Array(tools.iter().map(tools::listed).collect()).to_string().len()
}

#[test]
fn the_list_is_bounded_whatever_there_is() {
    let long = "Searches the web for information and returns summaries. ".repeat(20);
    let check = |count: usize, description: &str, single: usize| {
        let tools = listed(&registry(count, description), &Limits::default());
        assert!(tools.windows(2).all(|pair| pair[0].name < pair[1].name), "sorted, each once");
        let own = tools.iter().filter(|tool| tool.name.starts_with("run_subagent_")).count();
        let bytes = bytes(&tools);
        assert!(bytes <= LIST_BYTES_MAX, "{bytes} bytes with {own} of {count}");
        assert!(own >= single && own <= RUN_TOOLS_MAX, "{own} of {count} in {bytes} bytes");
        let general = tools.iter().find(|tool| tool.name == "run_subagent").expect("there");
        assert!(general.description.len() <= 3_000, "{}", general.description.len());
        // Each is named, or counted among those that are not.
        let named = general.description.matches("\n- specialist").count();
        let more = if named == count { String::new() } else { format!("\n- and {} more;", count - named) };
        assert!(general.description.contains(&more), "{}", general.description);
        assert_eq!(general.description.contains(" more;"), named < count, "{}", general.description);
    };
    check(0, "x", 0);
    check(1, "x", 1);
    check(20, "Searches the web for information and returns summaries of what it found there.", 20);
    check(20, &long, 20);
    check(2_000, &long, 20);
}

#[test]
fn texts_are_bounded_and_name_what_is_there() {
    let limits = Limits::default();
    assert!(instructions(&limits).len() <= 2_048, "{}", instructions(&limits).len());
    let mut everywhere = BTreeSet::from(["hint".to_owned(), "run_subagent_".to_owned()]);
    for tool in rows() {
        let description = words::filled_in(&tool.description, &limits);
        assert!((1..=900).contains(&description.len()), "{} has {} bytes", tool.name, description.len());
        assert!(!description.contains('{'), "{} has a number that is not filled in", tool.name);
        let mut known = BTreeSet::new();
        names_in(&tool.input_schema, &mut known);
        names_in(&tool.output_schema, &mut known);
        for name in named(&description) {
            assert!(known.contains(name), "{} names `{name}`, which is none of {known:?}", tool.name);
        }
        everywhere.extend(known);
    }
    for name in named(&instructions(&limits)) {
        assert!(everywhere.contains(name), "the instructions name `{name}`");
    }
    // No tool of the host that this profile does not have.
    let elsewhere: Vec<String> = tools::table(&limits)
        .iter()
        .map(|tool| tool.name.to_string())
        .filter(|name| !OF_CLIENTS.contains(&name.as_str()) && !OF_ASKERS.contains(&name.as_str()))
        .collect();
    let texts = rows().iter().map(|tool| tool.description.clone()).chain([instructions(&limits)]);
    for text in texts {
        assert!(!elsewhere.iter().any(|name| text.contains(name.as_str())), "{text}");
    }
}

#[test]
fn schemas_are_portable() {
    let mut found = Vec::new();
    let clients = listed(&registry(2, "x"), &Limits::default());
    for tool in rows().iter().chain(&clients) {
        for (schema, input) in [(&tool.input_schema, true), (&tool.output_schema, false)] {
            assert_eq!(schema["type"], "object", "{}", tool.name);
            complaints(schema, input, &tool.name, &mut found);
        }
    }
    assert_eq!(found, Vec::<String>::new());
    for tool in &clients {
        let run = tool.input_schema["properties"].get("runId").is_some();
        let required = tool.input_schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == "runId"));
        assert_eq!(run, required, "clients name a run: {}", tool.name);
    }
}

#[test]
fn a_session_is_offered_whom_it_may_run() {
    let one = |name: &str, callers: &str| {
        let text = format!("---\nname: {name}\ndescription: d\nallowed_callers: {callers}\n---\nYou are one.\n");
        read_markdown(text.as_bytes(), Path::new("x.md"), Source::Dir).expect("an assistant")
    };
    let registry = Registry::from_definitions([one("open", "[main]"), one("inner", "[open]"), one("all", "['*']")]);
    let tools = listed(&registry, &Limits::default());
    let own: Vec<&str> = tools.iter().filter_map(|tool| tool.name.strip_prefix("run_subagent_")).collect();
    assert_eq!(own, ["all", "open"]);
    let general = tools.iter().find(|tool| tool.name == "run_subagent").expect("there");
    assert!(general.description.ends_with("Subagents:\n- all: d\n- open: d"), "{}", general.description);
}

#[test]
fn sentences_end_where_readers_end_them() {
    let check = |text: &str, want: &str| {
        let registry = registry(1, "d");
        let mut definition = Definition::clone(&registry.assistants()[0]);
        definition.description = text.to_owned();
        assert_eq!(words::staff(std::iter::once(&definition)), format!("\n\nSubagents:\n- {}{want}", definition.id));
    };
    check("Searches the web. Use it when asked.", ": Searches the web.");
    check(
        "Reads files, e.g. logs, of version 1.5 or more. And so on.",
        ": Reads files, e.g. logs, of version 1.5 or more.",
    );
    check("Line one\nline two", ": Line one line two");
    check("", "");
    check("\u{1b}[2J red", ": \u{fffd}[2J red");
}
