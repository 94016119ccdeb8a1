//! The steps of a transcript, and how a file of them is read: all of it before the first is done, so that a file that is
//! wrong is told at once and with its line.

use std::path::Path;

use serde_json::{Map, Value};

use super::pattern;

/// One step as it is written.
struct Form {
    /// The field that tells which step it is, and what stands in it.
    name: &'static str,
    value: &'static str,
    /// Fields that it may have beside that.
    more: &'static [&'static str],
    /// What it does.
    does: &'static str,
}

const fn form(name: &'static str, value: &'static str, more: &'static [&'static str], does: &'static str) -> Form {
    Form { name, value, more, does }
}

/// All steps, in the order of the help.
const FORMS: &[Form] = &[
    form("wait", "METHOD", &["is"], "reads until a request of this method is there; its params fit `is`"),
    form(
        "answer",
        "METHOD",
        &["result", "error", "times", "keep", "may_break"],
        "answers the last request of this method, with `result`, `error` or both; `keep`: it can be answered again",
    ),
    form("serve", "{METHOD: RESULT}", &[], "from now on answers these methods by itself, when their requests are read"),
    form("call", "METHOD", &["id", "params"], "asks; any `id` goes, and none too"),
    form(
        "calls",
        "METHOD",
        &["ids_from", "times", "params", "in_flight", "may_break"],
        "asks so many times with rising ids, without reading; `in_flight`: reads as much as it takes to have only so many unanswered. `$number` in params is the id",
    ),
    form("result_of", "ID", &["is"], "reads until an answer to that request is there; the whole message fits `is`"),
    form(
        "results_from",
        "ID",
        &["times", "is"],
        "reads until all of so many requests, with rising ids, are answered; each answer fits `is`",
    ),
    form("answers_to", "ID", &["are"], "that request was answered so many times so far"),
    form("asked", "METHOD", &["times"], "the host asked this method so many times so far"),
    form("raw", "TEXT", &["times", "may_break"], "writes a line, so many times"),
    form("half", "TEXT", &["may_break"], "writes without an end of line"),
    form("bytes", "[NUMBER, …]", &["times", "may_break"], "writes these bytes"),
    form("big", "BYTES", &["may_break"], "writes a line of so many bytes that is no message"),
    form("stderr", "TEXT", &["times"], "writes a line to stderr"),
    form("read_file", "NAME", &[], "reads a file of its folder; a FIFO blocks it until a test writes there"),
    form(
        "start",
        "[PROGRAM, ARGUMENT, …]",
        &[],
        "starts a program that holds stdout and stderr open, and does not wait for it",
    ),
    form("close", "\"stdin\" or \"stdout\"", &[], "closes that pipe and lives on"),
    form("wait_eof", "true", &[], "reads until stdin ends"),
    form("hang", "true", &[], "does nothing any more, not even at the end of stdin"),
    form("exit", "CODE", &[], "exits"),
    form("expect", "{…}", &[], "nothing: how a process of this runner ends, for the test of our own host"),
];

/// A text of a transcript: pieces, each repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text(pub Vec<(String, usize)>);

/// One step.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the table of forms tells what each is and has")]
pub enum Step {
    Wait { method: String, is: Option<Value> },
    Answer { method: String, outcome: Map<String, Value>, times: u64, keep: bool, may_break: bool },
    Serve { results: Map<String, Value> },
    Call { method: String, id: Option<Value>, params: Value },
    Calls { method: String, ids_from: u64, times: u64, params: Value, in_flight: Option<u64>, may_break: bool },
    ResultOf { id: Value, is: Option<Value> },
    ResultsFrom { from: u64, times: u64, is: Option<Value> },
    AnswersTo { id: Value, are: u64 },
    Asked { method: String, times: u64 },
    Write { text: Text, end: &'static str, times: u64, may_break: bool },
    Bytes { bytes: Vec<u8>, times: u64, may_break: bool },
    Stderr { text: String, times: u64 },
    ReadFile { name: String },
    Start { argv: Vec<String> },
    Close { stdin: bool },
    WaitEof,
    Hang,
    Exit { code: u8 },
    Expect,
}

/// A file of steps.
#[derive(Debug, Clone, PartialEq)]
pub struct Transcript {
    /// Each step with the number of its line.
    pub steps: Vec<(usize, Step)>,
}

impl Transcript {
    /// Reads a file.
    ///
    /// # Errors
    /// In words, with the file and the line.
    pub fn read(file: &Path) -> Result<Self, String> {
        let shown = file.display();
        let text = std::fs::read_to_string(file).map_err(|error| format!("{shown} cannot be read: {error}"))?;
        Self::parse(&text).map_err(|(line, wrong)| format!("{shown}:{line}: {wrong}"))
    }

    /// Reads a text: a step a line; empty lines and those that begin with `#` are skipped.
    ///
    /// # Errors
    /// The number of a line, and what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, (usize, String)> {
        let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty() && !line.starts_with('#'));
        let steps = lines.map(|(line, number)| match step(line) {
            Ok(step) => Ok((number, step)),
            Err(wrong) => Err((number, wrong)),
        });
        let steps = steps.collect::<Result<Vec<_>, _>>()?;
        if steps.is_empty() {
            return Err((
                text.lines().count().max(1),
                "there is no step: a runner that does nothing proves nothing".to_owned(),
            ));
        }
        Ok(Self { steps })
    }
}

/// The page of `--help`.
#[must_use]
pub fn help() -> String {
    let mut page = "A runner that plays a transcript, to test a host: give a host the command `fake-runner FILE` as its \
                    runner.\nEach line of the file is a step; lines that begin with # and empty ones are skipped.\n\nSteps:\n"
        .to_owned();
    for Form { name, value, more, does } in FORMS {
        let more: String = more.iter().map(|field| format!(", \"{field}\"")).collect();
        page.push_str(&format!("  {{\"{name}\": {value}{more}}}\n      {does}\n"));
    }
    page.push_str("\nPatterns (`is`): JSON that has to be contained; an object with one of these fields asks for something else:\n");
    for (name, means) in pattern::ASKS {
        page.push_str(&format!("  {{\"{name}\": …}} {means}\n"));
    }
    page.push_str(
        "\nIn texts $thread_id and $process_id are those of `initialize`, $system_prompt that of `run`, $last is the last answer, $message what the last\n\
         `deliver_message` gave, $id:METHOD the id of the last request of that method, as JSON. {\"$repeat\": [TEXT, N]} is a\n\
         text; TEXT of `raw` and `half` can be a list of texts. `may_break`: that the host closes the pipe meanwhile is fine.\n\n\
         Every line of the host is judged too: it has to be a message, and no answer to nothing or one too many.\n\n\
         Exit codes: 0 all steps were done, 2 the transcript is wrong, 3 the host did not do what it has to,\n\
         4 stdin ended while a step waited, 5 stdout was closed while a step wrote, else that of an `exit`.\n\
         What went wrong is told on stderr, with the line of the step.\n\n\
         `fake-runner agent [FAULT]` is a runner of its own, which keeps every rule of the protocol or all but one: for those who\n\
         test what judges runners. `fake-runner agent --help` tells the faults.\n",
    );
    page
}

/// The fields of a step, taken one after the other.
struct Fields<'a>(&'a Map<String, Value>);

impl Fields<'_> {
    fn text(&self, name: &str) -> Result<String, String> {
        self.0[name].as_str().map(str::to_owned).ok_or_else(|| format!("`{name}` is a text"))
    }

    fn count(&self, name: &str) -> Result<Option<u64>, String> {
        let count = |value: &Value| value.as_u64().ok_or_else(|| format!("`{name}` is a number"));
        self.0.get(name).map(count).transpose()
    }

    fn number(&self, name: &str) -> Result<u64, String> {
        self.count(name)?.ok_or_else(|| format!("`{name}` is missing"))
    }

    fn times(&self) -> Result<u64, String> {
        Ok(self.count("times")?.unwrap_or(1))
    }

    fn yes(&self, name: &str) -> Result<bool, String> {
        let yes = |value: &Value| value.as_bool().ok_or_else(|| format!("`{name}` is true or false"));
        Ok(self.0.get(name).map(yes).transpose()?.unwrap_or(false))
    }

    fn object(&self, name: &str) -> Result<Map<String, Value>, String> {
        self.0[name].as_object().cloned().ok_or_else(|| format!("`{name}` is an object"))
    }

    fn pattern(&self) -> Result<Option<Value>, String> {
        let is = self.0.get("is").cloned();
        is.iter().try_for_each(pattern::check)?;
        Ok(is)
    }

    /// Params of a request: an empty object where there are none.
    fn params(&self) -> Value {
        self.0.get("params").cloned().unwrap_or_else(|| Map::new().into())
    }

    fn must_be(&self, name: &str) -> Result<(), String> {
        if self.0[name] == true { Ok(()) } else { Err(format!("`{name}` is true")) }
    }
}

fn step(line: &str) -> Result<Step, String> {
    let value: Value = serde_json::from_str(line).map_err(|error| format!("no JSON: {error}"))?;
    let Value::Object(map) = value else { return Err("a step is an object".to_owned()) };
    let mut forms = FORMS.iter().filter(|form| map.contains_key(form.name));
    // `result_of` has none of the other names among its fields; `times` and the like are no names.
    let Some(form) = forms.next() else {
        let fields: Vec<&str> = map.keys().map(String::as_str).collect();
        return Err(format!("no step has the fields {}; `--help` tells all", fields.join(", ")));
    };
    if let Some(field) = map.keys().find(|key| *key != form.name && !form.more.contains(&key.as_str())) {
        return Err(format!("the step `{}` has no field `{field}`", form.name));
    }
    read(form.name, &Fields(&map))
}

fn read(name: &str, fields: &Fields<'_>) -> Result<Step, String> {
    Ok(match name {
        "wait" => Step::Wait { method: fields.text("wait")?, is: fields.pattern()? },
        "answer" => {
            let outcome =
                ["result", "error"].into_iter().filter_map(|key| Some((key.to_owned(), fields.0.get(key)?.clone())));
            let outcome: Map<String, Value> = outcome.collect();
            if outcome.is_empty() {
                return Err("`answer` has a `result` or an `error`".to_owned());
            }
            Step::Answer {
                method: fields.text("answer")?,
                outcome,
                times: fields.times()?,
                keep: fields.yes("keep")?,
                may_break: fields.yes("may_break")?,
            }
        }
        "serve" => Step::Serve { results: fields.object("serve")? },
        "call" => Step::Call { method: fields.text("call")?, id: fields.0.get("id").cloned(), params: fields.params() },
        "calls" => Step::Calls {
            method: fields.text("calls")?,
            ids_from: fields.number("ids_from")?,
            times: fields.number("times")?,
            params: fields.params(),
            in_flight: fields.count("in_flight")?,
            may_break: fields.yes("may_break")?,
        },
        "result_of" => Step::ResultOf { id: fields.0[name].clone(), is: fields.pattern()? },
        "results_from" => {
            Step::ResultsFrom { from: fields.number(name)?, times: fields.number("times")?, is: fields.pattern()? }
        }
        "answers_to" => Step::AnswersTo { id: fields.0[name].clone(), are: fields.number("are")? },
        "asked" => Step::Asked { method: fields.text(name)?, times: fields.number("times")? },
        "raw" | "half" => Step::Write {
            text: text(&fields.0[name])?,
            end: if name == "raw" { "\n" } else { "" },
            times: fields.times()?,
            may_break: fields.yes("may_break")?,
        },
        "bytes" => {
            let bytes = fields.0[name].as_array().ok_or("`bytes` is a list of numbers")?;
            let byte = |value: &Value| value.as_u64().and_then(|byte| u8::try_from(byte).ok());
            let bytes: Option<Vec<u8>> = bytes.iter().map(byte).collect();
            let bytes = bytes.ok_or("`bytes` are numbers up to 255")?;
            Step::Bytes { bytes, times: fields.times()?, may_break: fields.yes("may_break")? }
        }
        "big" => {
            let bytes = usize::try_from(fields.number("big")?).map_err(|error| error.to_string())?;
            let text = Text(vec![("x".to_owned(), bytes)]);
            Step::Write { text, end: "\n", times: 1, may_break: fields.yes("may_break")? }
        }
        "stderr" => Step::Stderr { text: fields.text(name)?, times: fields.times()? },
        "read_file" => Step::ReadFile { name: fields.text(name)? },
        "start" => {
            let argv = fields.0[name].as_array().into_iter().flatten().map(|one| one.as_str().map(str::to_owned));
            let argv: Option<Vec<String>> = argv.collect();
            Step::Start { argv: argv.filter(|argv| !argv.is_empty()).ok_or("`start` is a list of texts")? }
        }
        "close" => match fields.text(name)?.as_str() {
            "stdin" => Step::Close { stdin: true },
            "stdout" => Step::Close { stdin: false },
            other => return Err(format!("`close` is \"stdin\" or \"stdout\", not \"{other}\"")),
        },
        "wait_eof" => fields.must_be(name).map(|()| Step::WaitEof)?,
        "hang" => fields.must_be(name).map(|()| Step::Hang)?,
        "exit" => Step::Exit { code: u8::try_from(fields.number(name)?).map_err(|_| "`exit` is a number up to 255")? },
        "expect" => fields.object(name).map(|_| Step::Expect)?,
        other => return Err(format!("the step `{other}` is in no use")),
    })
}

/// A text, a text to be repeated, or a list of both.
fn text(value: &Value) -> Result<Text, String> {
    let pieces = match value {
        Value::Array(pieces) => pieces.as_slice(),
        one => std::slice::from_ref(one),
    };
    pieces.iter().map(piece).collect::<Result<_, _>>().map(Text)
}

fn piece(value: &Value) -> Result<(String, usize), String> {
    let repeated = repeated(value);
    let piece = repeated.or_else(|| Some((value.as_str()?.to_owned(), 1)));
    piece.ok_or_else(|| format!("{value} is neither a text nor {{\"$repeat\": [TEXT, N]}}"))
}

/// What `{"$repeat": [TEXT, N]}` says.
#[must_use]
pub fn repeated(value: &Value) -> Option<(String, usize)> {
    match value.as_object()?.get("$repeat")?.as_array()?.as_slice() {
        [Value::String(text), times] => Some((text.clone(), usize::try_from(times.as_u64()?).ok()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_file_is_told_with_its_line() {
        let check = |text: &str, line: usize, wrong: &str| {
            let told = Transcript::parse(text).expect_err(text);
            assert!(told.0 == line && told.1.contains(wrong), "{text}: {told:?}");
        };
        check("# fine\n\n{\"wait\":\"run\"}\n{\"wait\":", 4, "no JSON");
        check("# nothing\n\n", 2, "there is no step");
        check("", 1, "there is no step");
        check("[]", 1, "a step is an object");
        check("{\"wate\":\"run\"}", 1, "no step has the fields wate");
        check("{\"wait\":\"run\",\"id\":1}", 1, "the step `wait` has no field `id`");
        check("{\"wait\":5}", 1, "`wait` is a text");
        check("{\"wait\":\"run\",\"is\":{\"$hat\":1}}", 1, "cannot ask for `$hat`");
        check("{\"answer\":\"run\"}", 1, "has a `result` or an `error`");
        check("{\"calls\":\"ping\",\"times\":4}", 1, "`ids_from` is missing");
        check("{\"raw\":\"x\",\"times\":-1}", 1, "`times` is a number");
        check("{\"raw\":[1]}", 1, "neither a text nor");
        check("{\"bytes\":[256]}", 1, "up to 255");
        check("{\"exit\":256}", 1, "up to 255");
        check("{\"hang\":1}", 1, "`hang` is true");
        check("{\"close\":\"stderr\"}", 1, "not \"stderr\"");
        check("{\"start\":[]}", 1, "a list of texts");
    }

    #[test]
    fn each_step_of_the_help_can_be_read() {
        for form in FORMS {
            let wrong = step(&format!("{{\"{}\":[[]]}}", form.name)).err().unwrap_or_default();
            assert!(!wrong.contains("in no use"), "{wrong}");
            assert!(help().contains(&format!("{{\"{}\": ", form.name)), "{}", form.name);
        }
    }
}
