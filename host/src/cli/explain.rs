//! `explain`: why an assistant has its place among the hits of a query.

use std::fmt::Write;

use clap::Args;

use super::open::Setting;
use super::show::find;
use super::{FAILED, Failure, Places, USAGE, say};
use crate::search::{Explanation, Filter, Verdict};
use crate::text::one_line;

/// Letters of a word in the table.
const WORD_CHARS: usize = 24;

#[derive(Args)]
pub(super) struct ExplainArgs {
    /// The task, in the words of the search
    query: String,
    /// The id or the name of the assistant
    id: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn explain(places: &Places, args: &ExplainArgs) -> Result<u8, Failure> {
    if args.query.trim().is_empty() {
        return Err(Failure::new(USAGE, "the query is empty; give the one whose hits you wonder about"));
    }
    let setting = Setting::read(places)?;
    let registry = setting.registry();
    let failed = |error| Failure::new(FAILED, error);
    let index = setting.index(&registry)?;
    let id = &find(&registry, &args.id)?.id;
    let explained = index.explain(&args.query, &Filter::default(), id).map_err(failed)?;
    let explained = explained.ok_or_else(|| Failure::new(FAILED, format!("the index has no `{id}`")))?;
    if args.json {
        say(&serde_json::to_string(&explained).map_err(|error| Failure::new(FAILED, error))?);
    } else {
        say(&table(&explained));
    }
    Ok(0)
}

/// The explanation for people.
fn table(explained: &Explanation) -> String {
    let Explanation { id, hits, own_score, min_score, .. } = explained;
    let mut text = match (explained.verdict, explained.rank, explained.score) {
        (Verdict::Pinned, Some(rank), _) => format!("{id} is hit {rank} of {hits}: the query is its id or name"),
        (Verdict::Hit, Some(rank), Some(score)) => format!("{id} is hit {rank} of {hits}, with score {score:.2}"),
        (Verdict::NoWord, ..) => format!("{id} is no hit: it has no word of the query"),
        (Verdict::FilteredOut, ..) => format!("{id} is no hit: the filter leaves it out"),
        (Verdict::Pinned | Verdict::Hit | Verdict::ScoreTooLow, ..) => {
            format!("{id} is no hit: its score {own_score:.2} is below {min_score:.2}")
        }
    };
    if explained.words.is_empty() {
        text.push_str("\n\nThe query has no word that says something.");
        return text;
    }
    let width =
        |written: &dyn Fn(&crate::search::Word) -> usize| explained.words.iter().map(written).max().unwrap_or(0);
    let (wide, term) = (
        width(&|word| shown(&word.written).chars().count()).max(4),
        width(&|word| shown(&word.term).chars().count() + 1).max(7),
    );
    let mut line = |cells: [&str; 9]| {
        let [written, looked, field, times, length, documents, idf, gain, adds] = cells;
        let row = format!(
            "{written:<wide$}  {looked:<term$}  {field:<5} {times:>5} {length:>6} {documents:>10} {idf:>6} {gain:>6} {adds:>7}"
        );
        let _ = write!(text, "\n{}", row.trim_end());
    };
    line([""; 9]);
    line(["word", "term", "field", "times", "length", "assistants", "idf", "gain", "adds"]);
    for word in &explained.words {
        let looked = format!("{}{}", if word.repaired { "~" } else { "" }, shown(&word.term));
        let mut first = [shown(&word.written), looked];
        if word.fields.is_empty() {
            let [written, looked] = &first;
            let (documents, idf) = (word.documents.to_string(), format!("{:.2}", word.idf));
            line([written, looked, "none", "", "", &documents, &idf, "", "0.00"]);
        }
        for part in &word.fields {
            let [written, looked] = std::mem::take(&mut first);
            let numbers =
                [u64::from(part.times), u64::from(part.length), part.documents].map(|number| number.to_string());
            let weights = [part.idf, part.gain, part.contribution].map(|weight| format!("{weight:.2}"));
            let ([times, length, documents], [idf, gain, adds]) = (&numbers, &weights);
            line([&written, &looked, part.field, times, length, documents, idf, gain, adds]);
        }
    }
    line(["total, which orders the hits", "", "", "", "", "", "", "", ""]);
    let _ = write!(text, " {:.2}", explained.total);
    let _ = write!(
        text,
        "\nscore {own_score:.2}: it has {:.2} of the {:.2} that are enough",
        explained.weight, explained.enough
    );
    if let Some(score) = explained.score.filter(|score| score < own_score) {
        let _ = write!(text, "; {score:.2} is told, since a hit before it has no more");
    }
    if explained.words.iter().any(|word| word.repaired) {
        text.push_str("\n~ no assistant has the word as it is written");
    }
    text
}

/// A word as a cell of the table.
fn shown(word: &str) -> String {
    crate::text::cut(&one_line(word), WORD_CHARS)
}
