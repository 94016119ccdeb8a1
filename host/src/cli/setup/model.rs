//! `setup model`: how models are reached, asked or named, tried, and written into the configuration.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::super::open::env;
use super::super::place::Place;
use super::super::{FAILED, Failure, Places, USAGE, say, talk};
use super::file;

mod ask;
mod candidates;
mod plan;
mod tried;
mod write;

#[cfg(test)]
mod tests;

use candidates::{Candidate, Kind, candidate, candidates};
use plan::{Key, Plan};
use write::Change;

#[derive(Args, Default)]
pub(in crate::cli) struct ModelArgs {
    /// What is to be used: anthropic, openai, google (with a key), ollama, or the login of claude, codex, opencode, gemini.
    /// Without it you are asked
    what: Option<String>,
    /// List what there is on this machine
    #[arg(long, conflicts_with_all = ["what", "write"])]
    list: bool,
    /// The provider's name of the model
    #[arg(long, value_name = "MODEL", requires = "what")]
    model: Option<String>,
    /// The name of the entry in the configuration
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The variable that holds the key
    #[arg(long, value_name = "VARIABLE", requires = "what", conflicts_with = "key_file")]
    key_env: Option<String>,
    /// The file that holds the key, readable by you only
    #[arg(long, value_name = "FILE", requires = "what")]
    key_file: Option<PathBuf>,
    /// Another address that speaks the format of the provider
    #[arg(long, value_name = "ADDRESS", requires = "what")]
    base_url: Option<String>,
    /// Tokens that an Ollama makes room for [default: what the model takes, at most 32768]
    #[arg(long, value_name = "TOKENS")]
    context_tokens: Option<u32>,
    /// Write it into the configuration
    #[arg(long)]
    write: bool,
    /// Do not try it first
    #[arg(long)]
    no_test: bool,
    /// Write over an entry of that name
    #[arg(long)]
    replace: bool,
    /// Make it what assistants use that name nothing, also where there is another one
    #[arg(long)]
    default: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(in crate::cli) async fn model(places: &Places, args: &ModelArgs) -> Result<u8, Failure> {
    let place = Place::find(places)?;
    if args.list {
        list(&candidates(&env).await, args.json);
        return Ok(0);
    }
    let old = file::read(&place.config);
    let old =
        old.map_err(|error| Failure::new(FAILED, format!("{} cannot be read: {error}", place.config.display())))?;
    let (plan, asks) = match &args.what {
        Some(what) => (named(what, args).await?, false),
        None if std::io::stdin().is_terminal() && !args.json => {
            let found = candidates(&env).await;
            let mut dialog = ask::Dialog::of_terminal();
            (dialog.plan(&found, args).map_err(|why| Failure::new(USAGE, why))?, true)
        }
        None => {
            let message =
                "say what is to be used, as `setup model claude --write`; `setup model --list` tells what there is";
            return Err(Failure::new(USAGE, message));
        }
    };
    let change = write::change(old.as_deref(), &place.config, &plan, args).map_err(|why| Failure::new(FAILED, why))?;
    let tried =
        if args.no_test { None } else { Some(tried::try_out(&plan, &change, &place.config, asks || !args.json).await) };
    if let Some(Err(why)) = &tried {
        let hint = plan.hint();
        if args.json {
            say(&told(&plan, &place, &change, tried.as_ref(), None, false).to_string());
        }
        return Err(Failure::new(
            FAILED,
            format!("{} does not work: {why}\n{hint}; nothing was written", plan.title()),
        ));
    }
    if !args.json {
        change.diff.iter().for_each(|line| say(line));
        change.told.iter().for_each(|line| talk(line));
    }
    if !plan.has_pasted_key() && old.as_deref() == Some(&change.text) {
        match args.json {
            true => say(&told(&plan, &place, &change, tried.as_ref(), None, false).to_string()),
            false => talk(&format!("{} has it already; nothing was written", place.config.display())),
        }
        return Ok(0);
    }
    let writes =
        args.write || (asks && ask::Dialog::of_terminal().may(&format!("Write this into {}?", place.config.display())));
    if !writes {
        if args.json {
            say(&told(&plan, &place, &change, tried.as_ref(), None, false).to_string());
        } else if !asks {
            talk(&format!("it goes into {}; --write writes it there", place.config.display()));
        }
        return Ok(0);
    }
    let failed = |why: &dyn std::fmt::Display| {
        Failure::new(FAILED, format!("{} cannot be written: {why}; it is as it was", place.config.display()))
    };
    let kept = plan.keep_key(&place.config, args.replace).map_err(|why| failed(&why))?;
    let backup = match file::write(&place.config, old.as_deref(), &change.text) {
        Ok(backup) => backup,
        Err(error) => {
            let undone = kept.map_or(Ok(()), plan::KeptKey::undo);
            return Err(failed(&undone.map_or_else(|why| format!("{error}; and {why}"), |()| error.to_string())));
        }
    };
    if args.json {
        say(&told(&plan, &place, &change, tried.as_ref(), backup.as_ref(), true).to_string());
        return Ok(0);
    }
    talk(&format!(
        "written to {}; a host that runs is replaced when it is idle, or by `assistant-host stop`",
        place.config.display()
    ));
    if let Some(backup) = backup {
        talk(&format!("what was there is kept in {}", backup.display()));
    }
    Ok(0)
}

fn told(
    plan: &Plan,
    place: &Place,
    change: &Change,
    tried: Option<&Result<u64, String>>,
    backup: Option<&PathBuf>,
    written: bool,
) -> Value {
    json!({
        "name": plan.name(), "file": place.config, "entry": plan.entry(), "diff": change.diff, "told": change.told,
        "test": tried.map(|tried| json!({
            "ok": tried.is_ok(), "ms": tried.as_ref().ok(), "error": tried.as_ref().err(),
        })),
        "written": written, "backup": backup,
    })
}

fn list(all: &[Candidate], as_json: bool) {
    if as_json {
        return say(&json!({ "items": all }).to_string());
    }
    for one in all {
        say(&format!("{:<10} {:<12} {}", one.what, if one.ready { "ready" } else { "not ready" }, one.why));
        for model in &one.models {
            let context = model.context_tokens.map(|tokens| format!(", {tokens} tokens")).unwrap_or_default();
            let tools = if model.tools == Some(false) { ", calls no tools" } else { "" };
            say(&format!("           {:<12} {}{context}{tools}", "", model.name));
        }
    }
}

/// What is named on the command line.
async fn named(what: &str, args: &ModelArgs) -> Result<Plan, Failure> {
    let usage = |why: String| Failure::new(USAGE, why);
    let Some(found) = candidate(what, args.base_url.as_deref(), &env).await else {
        let known: Vec<&str> = candidates::names().collect();
        return Err(usage(format!("nothing is called `{what}` here; there are: {}", known.join(", "))));
    };
    let key = match (&args.key_file, &args.key_env) {
        (Some(file), _) => {
            let file = std::path::absolute(file).map_err(|error| usage(format!("{}: {error}", file.display())))?;
            crate::config::read_key_file(&file).map_err(|why| usage(format!("--key-file {why}")))?;
            Some(Key::File(file))
        }
        (None, variable) => variable.clone().map(Key::Variable),
    };
    let agent = matches!(found.kind, Kind::Agent(_));
    if agent && (key.is_some() || args.base_url.is_some() || args.model.is_some() || args.context_tokens.is_some()) {
        let message =
            format!("{} has its own login and its own model: leave keys, addresses and models out", found.title);
        return Err(usage(message));
    }
    found.plan(args, key, args.model.clone()).map_err(usage)
}
