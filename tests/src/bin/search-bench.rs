//! How well and how fast the search is, beside SQLite's FTS5: `cargo build --release -p conformance --bin search-bench`,
//! then one of
//!
//! * `target/release/search-bench quality DIR [--json]`: nDCG@10, MRR@10, recall@10 and P@1 on the collection in DIR
//!   (`docs.jsonl`, `queries.tsv`, `qrels.tsv`; `tests/data/search` is a small one that shows the form);
//! * `target/release/search-bench generate N [--seed S] [--from DIR] [--out DIR]`: N assistants, the same for the same
//!   seed, as files below DIR or as the lines of a `docs.jsonl`; `--from` mixes the paragraphs of real files;
//! * `target/release/search-bench speed [N…] [--seed S] [--from DIR] [--index] [--json]`: how fast and how large it is
//!   over N generated assistants, and (without `--index`) a host over as many files; 1500, 10000 and 100000 if left out.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use conformance::search_bench::arguments::Arguments;
use conformance::search_bench::engine::Kind;
use conformance::search_bench::generate::{self, ASSISTANTS_MAX, Assistants};
use conformance::search_bench::{collection, host, quality, speed};
use conformance::timing::{complain, tell};
use serde::Serialize;
use serde_json::json;

const USAGE: &str = "usage: search-bench quality DIR [--json]
       search-bench generate N [--seed S] [--from DIR] [--out DIR]
       search-bench speed [N...] [--seed S] [--from DIR] [--index] [--json]";

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let command = if arguments.is_empty() { String::new() } else { arguments.remove(0) };
    let arguments = Arguments::new(arguments);
    let done = match command.as_str() {
        "quality" => judge(arguments),
        "generate" => make(arguments),
        "speed" => time(arguments),
        host::ARGUMENT => serve(arguments),
        _ => Err(USAGE.to_owned()),
    };
    let Err(error) = done else { return ExitCode::SUCCESS };
    complain(&error);
    ExitCode::FAILURE
}

fn judge(mut arguments: Arguments) -> Result<(), String> {
    let json = arguments.flag("--json");
    let [folder] = &arguments.rest()?[..] else { return Err(USAGE.to_owned()) };
    let collection = collection::read(Path::new(folder)).map_err(|error| error.to_string())?;
    let found = quality::measure(&collection, &Kind::ALL)?;
    told(json, &found, found.told())
}

fn make(mut arguments: Arguments) -> Result<(), String> {
    let seed = arguments.number("--seed")?.unwrap_or(1);
    let (from, out) = (arguments.value("--from")?, arguments.value("--out")?);
    let [count] = &arguments.rest()?[..] else { return Err(USAGE.to_owned()) };
    let count = size(count)?;
    let made = assistants(seed, from.as_deref())?.take(count);
    if let Some(folder) = out {
        let bytes = generate::write(&PathBuf::from(&folder), made)?;
        complain(&format!("{count} files, {:.1} MB, in {folder}", bytes as f64 / 1e6));
        return Ok(());
    }
    let mut stdout = std::io::stdout().lock();
    for doc in made {
        let line = json!({ "id": doc.id, "name": doc.name, "description": doc.description, "body": doc.body });
        writeln!(stdout, "{line}").map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn time(mut arguments: Arguments) -> Result<(), String> {
    let (json, seed) = (arguments.flag("--json"), arguments.number("--seed")?.unwrap_or(1));
    let (from, with_host) = (arguments.value("--from")?, !arguments.flag("--index"));
    let mut sizes = arguments.rest()?.iter().map(|text| size(text)).collect::<Result<Vec<_>, _>>()?;
    if sizes.is_empty() {
        sizes = speed::SIZES.to_vec();
    }
    for size in sizes {
        let found = speed::measure(size, seed, assistants(seed, from.as_deref())?, with_host)?;
        told(json, &found, found.told())?;
    }
    Ok(())
}

fn serve(arguments: Arguments) -> Result<(), String> {
    let [path] = &arguments.rest()?[..] else { return Err(USAGE.to_owned()) };
    tell(&host::serve(Path::new(path))?);
    Ok(())
}

fn size(text: &str) -> Result<usize, String> {
    let size = text.parse().ok().filter(|size| (1..=ASSISTANTS_MAX).contains(size));
    size.ok_or_else(|| format!("`{text}` is no number from 1 to {ASSISTANTS_MAX}"))
}

fn assistants(seed: u64, from: Option<&str>) -> Result<Assistants, String> {
    from.map_or_else(|| Ok(Assistants::new(seed)), |folder| Assistants::mixed(seed, Path::new(folder)))
}

fn told(json: bool, found: &impl Serialize, lines: Vec<String>) -> Result<(), String> {
    if json {
        tell(&serde_json::to_string_pretty(found).map_err(|error| error.to_string())?);
    } else {
        lines.iter().for_each(|line| tell(line));
    }
    Ok(())
}
