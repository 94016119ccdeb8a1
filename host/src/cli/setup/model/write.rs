//! The configuration with the entry: all else as it was, comments too, and read again before anyone sees it.

use std::path::Path;

use serde_json::{Map, Value};
use toml_edit::{DocumentMut, Item, Table, TableLike};

use super::ModelArgs;
use super::plan::Plan;
use crate::cli::setup::toml::{input, set};
use crate::config::Config;
use crate::runners::OWN;

/// Lines of a file of which a difference is told line by line; of a longer one only what is new.
const LINES_MAX: usize = 2_000;

/// What is written, and what is to be said about it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Change {
    /// The whole file.
    pub(super) text: String,
    /// The lines that go and come.
    pub(super) diff: Vec<String>,
    /// What its user should know.
    pub(super) told: Vec<String>,
}

/// Puts an entry into the text of a configuration.
///
/// # Errors
/// In words: there is an entry of that name, or the text is no configuration.
pub(super) fn change(old: Option<&str>, path: &Path, plan: &Plan, args: &ModelArgs) -> Result<Change, String> {
    let old = old.unwrap_or_default();
    let before = Config::parse(old, path).map_err(|error| error.to_string())?;
    let shown = path.display();
    let mut document: DocumentMut = old.parse().map_err(|error| format!("{shown} is no TOML: {error}"))?;
    let laid_out = || format!("{shown} is laid out in a way that cannot be kept; write the entry by hand");
    let (under, name) = (plan.under(), plan.name());
    let entries = document.entry(under).or_insert_with(|| implicit(Table::new()));
    let entries = entries.as_table_like_mut().ok_or_else(laid_out)?;
    // The same once more is no fault, but for a key that was pasted: its entry names a file, and not what is in that.
    let same = json_of(entries.get(name)).is_some_and(|entry| entry == Value::Object(plan.entry()));
    if entries.contains_key(name) && !args.replace && (!same || plan.has_pasted_key()) {
        return Err(format!("{shown} has [{under}.{name}] already; choose another --name, or give --replace"));
    }
    let mut told = Vec::new();
    match entries.get_mut(name).and_then(Item::as_table_like_mut) {
        Some(_) if same => {}
        Some(entry) => fill(entry, &plan.entry()).ok_or_else(laid_out)?,
        None => {
            let mut table = Table::new();
            fill(&mut table, &plan.entry()).ok_or_else(laid_out)?;
            entries.insert(name, Item::Table(table));
        }
    }
    let is = match plan {
        Plan::Model { .. } => before.default_model.as_deref(),
        Plan::Agent { .. } => before.default_runner.as_deref(),
    };
    // What is used though nothing says so: the only model, or models at all where an agent comes to them.
    let used = before.default_model.as_deref().or_else(|| only(&before));
    match (plan, is) {
        (_, Some(is)) if is == name => {}
        (_, Some(is)) if !args.default => {
            told.push(format!("assistants that name nothing still use `{is}`; --default makes it `{name}`"));
        }
        (Plan::Model { .. }, None) if !args.default && used.is_some_and(|used| used != name) => {
            let used = used.unwrap_or_default();
            // Of several models one has to be named.
            set_default(&mut document, plan.default_keys(), used).ok_or_else(laid_out)?;
            told.push(format!("assistants that name nothing still use `{used}`; --default makes it `{name}`"));
        }
        (Plan::Agent { .. }, None) if !args.default && !before.models.is_empty() => {
            let used = used.map_or_else(|| "the models of this file".to_owned(), |used| format!("`{used}`"));
            told.push(format!("assistants that name nothing still use {used}; --default has `{name}` run them"));
        }
        _ => set_default(&mut document, plan.default_keys(), name).ok_or_else(laid_out)?,
    }
    if let (Plan::Model { .. }, Some(runner)) = (plan, before.default_runner.as_deref().filter(|name| *name != OWN)) {
        match args.default {
            true => set_default(&mut document, ("default_runner", "runner"), OWN).ok_or_else(laid_out)?,
            false => {
                told.push(format!("assistants that name no runner are still run by `{runner}`; --default changes that"))
            }
        }
    }
    let text = document.to_string();
    Config::parse(&text, path).map_err(|error| format!("it would not fit: {error}"))?;
    kept(old, &text, plan).ok_or_else(laid_out)?;
    let diff = diff(old, &text);
    Ok(Change { text, diff, told })
}

/// An entry as JSON, where it is a table.
fn json_of(entry: Option<&Item>) -> Option<Value> {
    let entry = entry?.clone().into_table().ok()?;
    toml::from_str(&DocumentMut::from(entry).to_string()).ok()
}

/// The model of a configuration that has only one.
fn only(config: &Config) -> Option<&str> {
    let mut names = config.models.keys();
    names.next().filter(|_| names.next().is_none()).map(String::as_str)
}

fn implicit(mut table: Table) -> Item {
    table.set_implicit(true);
    Item::Table(table)
}

/// Makes the fields of an entry these.
fn fill(entry: &mut dyn TableLike, fields: &Map<String, Value>) -> Option<()> {
    let gone: Vec<String> =
        entry.iter().map(|(key, _)| key.to_owned()).filter(|key| !fields.contains_key(key)).collect();
    gone.iter().for_each(|key| _ = entry.remove(key));
    for (key, value) in fields {
        set(entry, key, input(value)?);
    }
    Some(())
}

/// Sets a default where the file has it, or has others.
fn set_default(document: &mut DocumentMut, (alone, below): (&str, &str), name: &str) -> Option<()> {
    let has = document.contains_key(alone);
    // A first value is set apart from the table that the file begins with.
    let first = !document.iter().any(|(_, item)| item.is_value()) && document.iter().any(|(_, item)| is_old(item));
    match document.get_mut("defaults").and_then(Item::as_table_like_mut) {
        Some(defaults) if !has => set(defaults, below, name.into()),
        _ => {
            let mut value = toml_edit::Value::from(name);
            if first {
                value.decor_mut().set_suffix("\n");
            }
            set(document.as_table_mut(), alone, value);
        }
    }
    Some(())
}

/// Whether a table was in the file, and is not one of ours.
fn is_old(item: &Item) -> bool {
    let stands = |table: &Table| table.position().is_some();
    item.as_table()
        .is_some_and(|table| stands(table) || table.iter().any(|(_, below)| below.as_table().is_some_and(stands)))
}

/// Whether all that is not ours is in both texts.
fn kept(old: &str, new: &str, plan: &Plan) -> Option<()> {
    let rest = |text: &str| {
        let mut all: toml::Table = toml::from_str(text).ok()?;
        for key in ["default_model", "default_runner"] {
            all.remove(key);
        }
        if let Some(defaults) = all.get_mut("defaults").and_then(toml::Value::as_table_mut) {
            defaults.remove("model");
            defaults.remove("runner");
        }
        let of_kind = all.get_mut(plan.under()).and_then(toml::Value::as_table_mut);
        let empty = of_kind.is_some_and(|of_kind| {
            of_kind.remove(plan.name());
            of_kind.is_empty()
        });
        if empty {
            all.remove(plan.under());
        }
        Some(all)
    };
    (rest(old)? == rest(new)?).then_some(())
}

/// The lines that go (`-`) and come (`+`), with the heading of the table that they stand in where it stays (` `).
fn diff(old: &str, new: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    if old.len() > LINES_MAX || new.len() > LINES_MAX {
        return new.iter().filter(|line| !old.contains(line)).map(|line| format!("+ {line}")).collect();
    }
    // The longest sequence of lines that both have, from each place on.
    let mut common = vec![vec![0_usize; new.len() + 1]; old.len() + 1];
    for (at, line) in old.iter().enumerate().rev() {
        for (place, other) in new.iter().enumerate().rev() {
            common[at][place] = match line == other {
                true => common[at + 1][place + 1] + 1,
                false => common[at + 1][place].max(common[at][place + 1]),
            };
        }
    }
    let (mut at, mut place, mut told) = (0, 0, Vec::new());
    while at < old.len() || place < new.len() {
        if at < old.len() && place < new.len() && old[at] == new[place] {
            (at, place) = (at + 1, place + 1);
        } else if place < new.len() && (at == old.len() || common[at][place + 1] > common[at + 1][place]) {
            told.push(format!("+ {}", new[place]));
            place += 1;
        } else {
            told.push(format!("- {}", old[at]));
            at += 1;
        }
    }
    told
}
