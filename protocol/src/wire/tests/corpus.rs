//! Lines of every kind and what each of them is, as data: `corpus/*.txt`.
//!
//! A line stands behind `< `, and what it is behind `= ` below it: `ask ID METHOD PARAMS`, `answer ID RESULT`,
//! `error ID CODE MESSAGE`, `no id` or `nothing`. In both, `<<ff 00>>` are bytes and `<<9 x [>>` is a text nine times.

use std::path::Path;

use super::*;

/// What is written as `text` in a file of the corpus.
fn bytes_of(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((before, marked)) = rest.split_once("<<") {
        let (mark, behind) = marked.split_once(">>").expect("a mark ends");
        bytes.extend(before.as_bytes());
        match mark.split_once(" x ").and_then(|(times, text)| Some((times.parse().ok()?, text))) {
            Some((times, text)) => bytes.extend(text.repeat(times).bytes()),
            None => bytes.extend(mark.split(' ').map(|byte| u8::from_str_radix(byte, 16).expect("a byte"))),
        }
        rest = behind;
    }
    bytes.extend(rest.as_bytes());
    bytes
}

fn json(value: impl Serialize) -> String {
    serde_json::to_string(&value).expect("writes")
}

pub(super) fn told(incoming: &Incoming<'_>) -> String {
    match incoming {
        Incoming::Request { id, method, params } => {
            format!("ask {} {} {}", json(id), json(method), params.unwrap_or("not an object"))
        }
        Incoming::Response { id, outcome: Ok(result) } => format!("answer {} {}", json(id), result.get()),
        Incoming::Response { id, outcome: Err(error) }
            if error.message.starts_with("answered with no proper error") =>
        {
            format!("error {} {} improper", json(id), error.code)
        }
        Incoming::Response { id, outcome: Err(error) } => {
            format!("error {} {} {}", json(id), error.code, json(&error.message))
        }
        Incoming::NoId => "no id".to_owned(),
        Incoming::Unparsable => "nothing".to_owned(),
    }
}

#[test]
fn each_line_of_the_corpus_is_what_stands_below_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/wire/tests/corpus");
    let mut wrong = Vec::new();
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the corpus") {
        let path = entry.expect("a file").path();
        let text = std::fs::read_to_string(&path).expect("a text");
        let lines: Vec<&str> = text.lines().collect();
        for (pair, at) in lines.chunks(2).zip((1..).step_by(2)) {
            let [Some(line), Some(what)] = [pair[0].strip_prefix("< "), pair[1].strip_prefix("= ")] else {
                panic!("{}:{at}: a line and what it is", path.display())
            };
            let line = bytes_of(line);
            let got = told(&classify(&line));
            if got.as_bytes() != bytes_of(what) {
                let name = path.file_name().unwrap_or_default().display().to_string();
                wrong.push(format!("{name}:{at}: {} is {}, not {what}", excerpt(&line), excerpt(got.as_bytes())));
            }
            count += 1;
        }
    }
    assert!(wrong.is_empty(), "{} of {count} lines are read wrongly:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 1_000, "only {count} lines are there");
}
