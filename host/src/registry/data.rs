//! Files of keys and values: TOML, YAML and JSON.

mod json;

use std::collections::HashSet;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use self::json::Json;
use super::diagnostic::{Code, Diagnostic};
use super::known::fold;
use super::yaml::{self, Broken, Entry, Kind, NODES_MAX, Node};
use super::{keys, known};
use crate::text::cut;

/// Largest TOML file that is repaired, bytes: each error of it is kept meanwhile.
const REPAIR_BYTES_MAX: usize = 64 * 1024;

/// What a file of keys and values says.
#[derive(Debug)]
pub(super) struct Data {
    /// The keys and values, each key once.
    pub(super) entries: Vec<Entry>,
    /// Access keys whose values are lost, with their lines.
    pub(super) lost: Vec<(String, u32)>,
}

/// The keys and values of a TOML file; what is broken in it is told.
///
/// # Errors
/// It has too many values, or is too large to be repaired.
pub(super) fn toml(text: &str, file: &str, warnings: &mut Vec<Diagnostic>) -> Result<Data, Diagnostic> {
    let (table, errors) = match DeTable::parse(text) {
        Ok(table) => (table, Vec::new()),
        Err(error) if text.len() > REPAIR_BYTES_MAX => {
            let message = format!("it is no valid TOML ({}), and too large to be repaired", cut(error.message(), 120));
            return Err(Diagnostic::new(Code::DataBroken, file, message));
        }
        Err(_) => DeTable::parse_recoverable(text),
    };
    let mut places = Places { text, line: 1, start: 0, at: 0, nodes: 0 };
    let mut whole: Vec<_> = table.into_inner().into_iter().collect();
    whole.sort_by_key(|(key, _)| key.span().start);
    let (mut entries, mut lost) = (Vec::new(), Vec::new());
    for (key, value) in whole {
        // What the parser makes of a broken value is not what was meant; of a key that limits that would be a danger.
        // Where a table ends nobody knows then.
        let from_to = key.span().start..=value.span().end;
        let table = matches!(value.get_ref(), DeValue::Table(_));
        let mut hurt =
            errors.iter().map(|error| table || error.span().is_none_or(|span| from_to.contains(&span.start)));
        let folded = fold(key.get_ref());
        let field = known::meant(&folded);
        if field.is_some_and(known::Field::limits) && hurt.any(|hurt| hurt) {
            lost.push((key.get_ref().to_string(), places.place(key.span().start).0));
            continue;
        }
        entries.push(places.entry(key, value).ok_or_else(|| {
            let message = format!("it has more than {NODES_MAX} values, more than an assistant");
            Diagnostic::new(Code::DataTooComplex, file, message)
        })?);
    }
    let Some(error) = errors.first() else {
        return Ok(Data { entries: keys::each_once(entries, file, warnings), lost });
    };
    let at = error.span().map_or(0, |span| span.start);
    let (line, column) = Places { text, line: 1, start: 0, at: 0, nodes: 0 }.place(at);
    let more = if errors.len() > 1 { format!(", and {} more", errors.len() - 1) } else { String::new() };
    let message = format!("it is no valid TOML ({}{more}); what could be read was", cut(error.message(), 120));
    warnings.push(
        Diagnostic::new(Code::TomlRepaired, file, message)
            .at(line, Some(column))
            .hint("mend that line; texts stand in quotes"),
    );
    let entries = keys::each_once(entries, file, warnings);
    let told: HashSet<(String, u32)> = lost.iter().map(|(key, line)| (fold(key), *line)).collect();
    let more = keys::lost(text, 1, &entries, true).into_iter();
    lost.extend(more.filter(|(key, line)| !told.contains(&(fold(key), *line))));
    Ok(Data { entries, lost })
}

/// The keys and values of a YAML or JSON file; JSON may have comments. YAML that is broken is read key by key.
///
/// # Errors
/// It is past the bounds, or nothing of it can be read as keys and values.
pub(super) fn yaml_or_json(text: &str, file: &str, warnings: &mut Vec<Diagnostic>) -> Result<Data, Diagnostic> {
    let json = text.trim_start().starts_with(['{', '[']);
    let bare = if json { without_comments(text) } else { text.to_owned() };
    let parsed = yaml::parse(&bare);
    if let Err(broken) = &parsed
        && broken.too_complex
    {
        let message = format!("it is too complex to be an assistant ({})", broken.message);
        return Err(Diagnostic::new(Code::DataTooComplex, file, message).at(broken.line, Some(broken.column)));
    }
    match parsed {
        Ok(Node { kind: Kind::Map(_), .. }) => {}
        Ok(node) => return Err(not_an_agent(file, "it is no map of keys and values").at(node.line, None)),
        // JSON has escapes that YAML has not.
        Err(broken) if json => {
            let Json(node) = serde_json::from_str(&bare).map_err(|_| broken_data(&broken, file))?;
            let Kind::Map(mut entries) = node.kind else {
                return Err(not_an_agent(file, "it is no map of keys and values"));
            };
            entries.iter_mut().for_each(|entry| in_place(&bare, entry));
            return Ok(Data { entries: keys::each_once(entries, file, warnings), lost: Vec::new() });
        }
        Err(_) => {}
    }
    match keys::read(&bare, 1, file, warnings) {
        keys::Content::Entries { entries, lost } => Ok(Data { entries, lost }),
        keys::Content::List(_) => Err(not_an_agent(file, "it is a list")),
    }
}

/// Whether `entries` define an assistant: some text that tells a model what to do.
///
/// # Errors
/// What it is instead.
pub(super) fn is_agent(entries: &[Entry], file: &str) -> Result<(), Diagnostic> {
    let of = |key: &str| entries.iter().find(|entry| fold(&entry.key) == key);
    let prompted = entries.iter().any(|entry| {
        known::look(&fold(&entry.key)).is_some_and(|(field, _)| field == known::Field::Prompt)
            && matches!(entry.value.kind, Kind::Scalar { .. })
            && !entry.value.is_null()
    });
    if prompted {
        return Ok(());
    }
    for key in ["agent", "agents", "mode"] {
        if let Some(entry) = of(key)
            && let Kind::Map(inner) = &entry.value.kind
            && inner.iter().any(|inner| matches!(inner.value.kind, Kind::Map(_)))
        {
            let message =
                format!("`{}` holds {} agents in one file, and only one of a file is read", entry.key, inner.len());
            return Err(Diagnostic::new(Code::SeveralAgents, file, message)
                .at(entry.line, keys::column(entry.column))
                .hint("write each as a Markdown file of its own"));
        }
    }
    if let Some(kind) = of("kind")
        && kind.value.scalar() == Some("remote")
    {
        let message = "it runs elsewhere (`kind: remote`), and cannot be run here";
        return Err(Diagnostic::new(Code::RemoteAgent, file, message).at(kind.line, keys::column(kind.column)));
    }
    Err(not_an_agent(file, "it has none of `instructions`, `prompt`, `system_prompt` and `developer_instructions`"))
}

fn not_an_agent(file: &str, why: &str) -> Diagnostic {
    Diagnostic::new(Code::NotAnAgent, file, format!("no assistant: {why}"))
}

fn broken_data(broken: &Broken, file: &str) -> Diagnostic {
    Diagnostic::new(Code::DataBroken, file, format!("it is no valid JSON ({})", broken.message))
        .at(broken.line, Some(broken.column))
        .hint("mend that line, or move the file away if it is no assistant")
}

/// `text` with the comments of JSON made blank, so that all places stay.
fn without_comments(text: &str) -> String {
    let mut bare = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let (mut quoted, mut line, mut block) = (false, false, false);
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        match c {
            '\n' => {
                line = false;
                bare.push(c);
            }
            '*' if block && next == Some('/') => {
                block = false;
                chars.next();
                bare.push_str("  ");
            }
            _ if line || block => bare.push(' '),
            '\\' if quoted => {
                bare.push(c);
                bare.extend(chars.next());
            }
            '"' => {
                quoted = !quoted;
                bare.push(c);
            }
            '/' if !quoted && matches!(next, Some('/' | '*')) => {
                (line, block) = (next == Some('/'), next == Some('*'));
                chars.next();
                bare.push_str("  ");
            }
            _ => bare.push(c),
        }
    }
    bare
}

/// Puts `entry` and its value where the first such key stands in the text.
fn in_place(text: &str, entry: &mut Entry) {
    fn lines(node: &mut Node, line: u32) {
        node.line = line;
        match &mut node.kind {
            Kind::Scalar { .. } => {}
            Kind::Seq(nodes) => nodes.iter_mut().for_each(|node| lines(node, line)),
            Kind::Map(entries) => entries.iter_mut().for_each(|entry| {
                entry.line = line;
                lines(&mut entry.value, line);
            }),
        }
    }
    let at = serde_json::to_string(&entry.key).ok().and_then(|quoted| text.find(&quoted)).unwrap_or(0);
    (entry.line, entry.column) = Places { text, line: 1, start: 0, at: 0, nodes: 0 }.place(at);
    lines(&mut entry.value, entry.line);
}

/// Lines and columns of a text, asked for mostly in order; and how many values were made.
struct Places<'a> {
    text: &'a str,
    /// The line of `start`, from 1.
    line: u32,
    /// Where that line begins.
    start: usize,
    /// Up to where lines are counted.
    at: usize,
    nodes: usize,
}

impl Places<'_> {
    /// The line and the column, both from 1, of the byte `at`.
    fn place(&mut self, at: usize) -> (u32, u32) {
        let at = at.min(self.text.len());
        if at < self.at {
            (self.line, self.start, self.at) = (1, 0, 0);
        }
        for (offset, byte) in self.text.as_bytes()[self.at..at].iter().enumerate() {
            if *byte == b'\n' {
                self.line += 1;
                self.start = self.at + offset + 1;
            }
        }
        self.at = at;
        let column = String::from_utf8_lossy(&self.text.as_bytes()[self.start..at]).chars().count();
        (self.line, u32::try_from(column + 1).unwrap_or(u32::MAX))
    }

    fn entry(&mut self, key: Spanned<std::borrow::Cow<'_, str>>, value: Spanned<DeValue<'_>>) -> Option<Entry> {
        let (line, column) = self.place(key.span().start);
        let value = self.node(value)?;
        Some(Entry { key: key.into_inner().into_owned(), line, column, value })
    }

    /// None past the bound on values; the parser bounds the depth.
    fn node(&mut self, value: Spanned<DeValue<'_>>) -> Option<Node> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return None;
        }
        let (line, column) = self.place(value.span().start);
        let plain = |text: String| Kind::Scalar { text, plain: true };
        let kind = match value.into_inner() {
            DeValue::String(text) => Kind::Scalar { text: text.into_owned(), plain: false },
            DeValue::Integer(number) => plain(number.to_string()),
            DeValue::Float(number) => plain(number.to_string()),
            DeValue::Boolean(truth) => plain(truth.to_string()),
            DeValue::Datetime(time) => plain(time.to_string()),
            DeValue::Array(values) => {
                Kind::Seq(values.into_iter().map(|value| self.node(value)).collect::<Option<_>>()?)
            }
            DeValue::Table(table) => {
                // Of rules a later one counts more.
                let mut whole: Vec<_> = table.into_iter().collect();
                whole.sort_by_key(|(key, _)| key.span().start);
                Kind::Map(whole.into_iter().map(|(key, value)| self.entry(key, value)).collect::<Option<_>>()?)
            }
        };
        Some(Node { line, column, kind })
    }
}

#[cfg(test)]
mod tests;
