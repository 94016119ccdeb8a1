//! YAML as a tree of texts: what stands there, not what some schema takes it for.
//!
//! Built from the parser's events, so that `on` stays `on` and `010` stays `010`, and so that the bounds are ours.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};
use serde_saphyr::granit_parser::{ErrorKind, Event, Options, Parser, ScalarStyle, Span, Tag};

/// Most nodes of a document, aliases unfolded; a long text counts as one node for each [`NODE_BYTES`].
pub(crate) const NODES_MAX: usize = 10_000;
/// Bytes of text that count as one node.
const NODE_BYTES: usize = 256;
/// Deepest nesting of a document.
const DEPTH_MAX: usize = 64;

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    /// The line of the text on which it begins, from 1.
    pub(crate) line: u32,
    /// The column, from 1, in characters; 0 where it is not known.
    pub(crate) column: u32,
    /// What it is.
    pub(crate) kind: Kind,
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    /// The key, as written.
    pub(crate) key: String,
    /// The line of the key, from 1.
    pub(crate) line: u32,
    /// The column of the key, from 1, in characters; 0 where it is not known.
    pub(crate) column: u32,
    /// Its value.
    pub(crate) value: Node,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    /// A text; `plain` where nothing marks it as a text, so that a schema might read something else.
    Scalar { text: String, plain: bool },
    /// A list.
    Seq(Vec<Node>),
    /// Keys and values as written; a key may stand there twice.
    Map(Vec<Entry>),
}

/// Why a text is no YAML that we read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Broken {
    /// It passes a bound, rather than a rule of YAML.
    pub(crate) too_complex: bool,
    /// The line of the text, from 1.
    pub(crate) line: u32,
    /// The column, from 1, in characters.
    pub(crate) column: u32,
    /// What the parser says.
    pub(crate) message: String,
}

/// The truth value that a text is, in any of the words for it.
pub(crate) fn truth(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

impl Node {
    /// A text that is no YAML.
    pub(crate) fn text(text: &str, line: u32) -> Self {
        Self { line, column: 0, kind: Kind::Scalar { text: text.to_owned(), plain: false } }
    }

    /// Whether nothing stands there.
    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.kind, Kind::Scalar { text, plain: true } if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// The text, where it is one.
    pub(crate) fn scalar(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar { text, .. } if !self.is_null() => Some(text),
            Kind::Scalar { .. } | Kind::Seq(_) | Kind::Map(_) => None,
        }
    }

    /// The truth value, in any spelling of YAML's two versions.
    pub(crate) fn truth(&self) -> Option<bool> {
        truth(self.scalar()?)
    }

    /// Whether a schema reads this text as a number or a truth value.
    pub(crate) fn is_typed(&self) -> bool {
        let plain = matches!(self.kind, Kind::Scalar { plain: true, .. });
        plain && self.scalar().is_some_and(|text| text.parse::<f64>().is_ok() || self.truth().is_some())
    }

    /// The same as JSON, with the types of YAML 1.2.
    pub(crate) fn json(&self) -> Value {
        match &self.kind {
            Kind::Scalar { .. } if self.is_null() => Value::Null,
            Kind::Scalar { text, plain: false } => Value::String(text.clone()),
            Kind::Scalar { text, plain: true } => match text.as_str() {
                "true" | "True" | "TRUE" => Value::Bool(true),
                "false" | "False" | "FALSE" => Value::Bool(false),
                // JSON's numbers are a part of YAML's; what differs (`010`, `0x1f`, `.inf`) stays as written.
                text if text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => {
                    serde_json::from_str::<serde_json::Number>(text)
                        .map_or_else(|_| Value::String(text.to_owned()), Value::Number)
                }
                text => Value::String(text.to_owned()),
            },
            Kind::Seq(nodes) => nodes.iter().map(Self::json).collect(),
            Kind::Map(entries) => Value::Object(
                entries.iter().map(|entry| (entry.key.clone(), entry.value.json())).collect::<Map<_, _>>(),
            ),
        }
    }
}

/// A list or a map that is not yet whole.
struct Open {
    line: u32,
    column: u32,
    anchor: usize,
    kind: Kind,
    /// The key whose value comes next, its line and its column.
    key: Option<(String, u32, u32)>,
    /// That key is `<<` without quotes.
    merges: bool,
    /// Which of its entries are merges.
    merged: Vec<usize>,
    /// Nodes counted before it began.
    before: usize,
}

/// What is known while the events come.
#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    anchors: HashMap<usize, (Node, usize)>,
    nodes: usize,
    root: Option<Node>,
}

/// What `text` is as YAML; an empty text is an empty map. JSON is YAML too, but for some escapes in its strings.
///
/// # Errors
/// [`Broken`] where `text` is no YAML or past the bounds; also where an anchor or a tag eats the first word of a value at
/// the top, which no author meant.
pub(crate) fn parse(text: &str) -> Result<Node, Broken> {
    let mut options = Options::default();
    options.set_emit_comments(false);
    options.flow_nesting_limit = DEPTH_MAX;
    options.block_nesting_limit = DEPTH_MAX;
    let mut parser = Parser::new_from_str_with_options(text, options);
    let mut builder = Builder::default();
    while let Some(next) = parser.next_event() {
        let (event, span) = next.map_err(|error| Broken {
            too_complex: matches!(error.kind(), ErrorKind::RecursionLimitExceeded),
            line: number(error.marker().line()),
            column: number(error.marker().col() + 1),
            message: error.info(),
        })?;
        builder.take(event, &span)?;
    }
    Ok(builder.root.unwrap_or(Node { line: 1, column: 1, kind: Kind::Map(Vec::new()) }))
}

/// The entries of the map that `text` is, in order.
///
/// # Errors
/// Those of [`parse`], and [`Broken`] where it is no map.
pub(crate) fn entries(text: &str) -> Result<Vec<Entry>, Broken> {
    match parse(text)? {
        Node { kind: Kind::Map(entries), .. } => Ok(entries),
        node => Err(broken(false, node.line, 1, "it is no list of keys and values")),
    }
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: &Span) -> Result<(), Broken> {
        let line = number(span.start.line());
        let column = number(span.start.col() + 1);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let custom = tag.as_deref().is_some_and(Tag::is_custom);
                if custom || (self.open.len() == 1 && anchor != 0) {
                    return Err(broken(false, line, column, "a tag or an anchor takes the first word of the value"));
                }
                let plain = style == ScalarStyle::Plain && tag.is_none();
                let size = 1 + text.len() / NODE_BYTES;
                self.count(size, line, column)?;
                let node = Node { line, column, kind: Kind::Scalar { text: text.into_owned(), plain } };
                self.put(node, anchor, size)
            }
            Event::SequenceStart(_, anchor, _) => self.begin(Kind::Seq(Vec::new()), anchor, line, column),
            Event::MappingStart(_, anchor, _) => self.begin(Kind::Map(Vec::new()), anchor, line, column),
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(mut open) = self.open.pop() else { return Ok(()) };
                if let Kind::Map(entries) = &mut open.kind {
                    merge(entries, &open.merged)?;
                }
                let size = self.nodes - open.before;
                self.put(Node { line: open.line, column: open.column, kind: open.kind }, open.anchor, size)
            }
            Event::Alias(anchor) => {
                let Some((_, size)) = self.anchors.get(&anchor) else {
                    return Err(broken(true, line, column, "an alias stands within what it repeats"));
                };
                let size = *size;
                self.count(size, line, column)?;
                let Some((mut node, _)) = self.anchors.get(&anchor).cloned() else { return Ok(()) };
                (node.line, node.column) = (line, column);
                self.put(node, 0, size)
            }
            Event::DocumentStart(..) if self.root.is_some() => {
                Err(broken(false, line, column, "a second document begins"))
            }
            _ => Ok(()),
        }
    }

    fn count(&mut self, nodes: usize, line: u32, column: u32) -> Result<(), Broken> {
        self.nodes += nodes;
        if self.nodes > NODES_MAX {
            return Err(broken(true, line, column, &format!("it unfolds into more than {NODES_MAX} values")));
        }
        Ok(())
    }

    fn begin(&mut self, kind: Kind, anchor: usize, line: u32, column: u32) -> Result<(), Broken> {
        if self.open.len() >= DEPTH_MAX {
            return Err(broken(true, line, column, &format!("it nests deeper than {DEPTH_MAX}")));
        }
        let before = self.nodes;
        self.count(1, line, column)?;
        self.open.push(Open { line, column, anchor, kind, key: None, merges: false, merged: Vec::new(), before });
        Ok(())
    }

    /// Puts a whole node where it belongs.
    fn put(&mut self, node: Node, anchor: usize, size: usize) -> Result<(), Broken> {
        if anchor != 0 {
            self.anchors.insert(anchor, (node.clone(), size));
        }
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open { kind: Kind::Seq(nodes), .. }) => nodes.push(node),
            Some(Open { kind: Kind::Map(entries), key, merges, merged, .. }) => match (key.take(), node) {
                (Some((key, line, column)), value) => {
                    if *merges {
                        merged.push(entries.len());
                    }
                    entries.push(Entry { key, line, column, value });
                }
                (None, Node { kind: Kind::Scalar { text, plain }, line, column }) => {
                    *merges = plain && text == "<<";
                    *key = Some((text, line, column));
                }
                (None, node) => return Err(broken(false, node.line, node.column, "a key is no text")),
            },
            Some(Open { kind: Kind::Scalar { .. }, .. }) => {}
        }
        Ok(())
    }
}

/// Puts the keys that each merge key `<<`, one of `merges`, brings in its place, those that the map has itself and those
/// that an earlier merge brings left out.
///
/// # Errors
/// [`Broken`] where one brings no map.
fn merge(entries: &mut Vec<Entry>, merges: &[usize]) -> Result<(), Broken> {
    if merges.is_empty() {
        return Ok(());
    }
    let all = std::mem::take(entries);
    let mut there: HashSet<String> = all.iter().map(|entry| entry.key.clone()).collect();
    for (at, entry) in all.into_iter().enumerate() {
        if !merges.contains(&at) {
            entries.push(entry);
            continue;
        }
        let maps = match entry.value.kind {
            Kind::Seq(nodes) => nodes,
            Kind::Map(_) | Kind::Scalar { .. } => vec![entry.value],
        };
        for map in maps {
            let Kind::Map(brought) = map.kind else {
                return Err(broken(false, map.line, map.column.max(1), "a merge brings no map"));
            };
            // A key that one map has twice comes twice.
            let new: HashSet<String> = brought.iter().map(|entry| entry.key.clone()).collect();
            entries.extend(brought.into_iter().filter(|entry| !there.contains(&entry.key)));
            there.extend(new);
        }
    }
    Ok(())
}

fn number(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn broken(too_complex: bool, line: u32, column: u32, message: &str) -> Broken {
    Broken { too_complex, line, column, message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_stay_texts() {
        let check = |text: &str, expected: &str| {
            let found = match entries(text) {
                Ok(entries) => Node { line: 1, column: 1, kind: Kind::Map(entries) }.json().to_string(),
                Err(broken) => format!("{}:{} {}", broken.line, broken.column, broken.too_complex),
            };
            assert_eq!(found, expected, "{text:?}");
        };
        check("", "{}");
        check(
            "a: on\nb: 010\nc: 12\nd: -1.5\ne: true\nf: 0x1f",
            r#"{"a":"on","b":"010","c":12,"d":-1.5,"e":true,"f":"0x1f"}"#,
        );
        check("a:\nb: ~\nc: ''\nd: '12'", r#"{"a":null,"b":null,"c":"","d":"12"}"#);
        check("a: &x [1, 2]\nb: *x", r#"{"a":[1,2],"b":[1,2]}"#);
        check("a: b: c", "1:5 false");
        check("- a", "1:1 false");
        check("text", "1:1 false");
        check("a: &co text", "1:8 false");
        check("a: !co text", "1:8 false");
        check("a: [&co text]", r#"{"a":["text"]}"#);
        check("a: [!co text]", "1:9 false");
        check("a: &a {x: 1, y: 2}\nb: {z: 3, <<: *a, x: 0}", r#"{"a":{"x":1,"y":2},"b":{"z":3,"y":2,"x":0}}"#);
        check("a: &a {x: 1}\nb: &b {<<: *a}\n<<: [*b]", r#"{"a":{"x":1},"b":{"x":1},"x":1}"#);
        check("a: {<<: text}", "1:9 false");
        check("a: {'<<': text}", r#"{"a":{"<<":"text"}}"#);
        check("[a]: b", "1:1 false");
        check("a: &x [*x]", "1:8 true");
        check("a: b\n---\nc: d", "2:1 false");
    }

    #[test]
    fn bounds() {
        let too_complex = |text: &str| parse(text).expect_err("past the bound").too_complex;
        assert!(too_complex(&format!("a: {}", "[".repeat(5_000))));
        let deep: String = (0..100).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
        assert!(too_complex(&deep));
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
        for level in 1..30 {
            let alias = format!("*a{}, ", level - 1).repeat(9);
            bomb.push_str(&format!("a{level}: &a{level} [{alias}]\n"));
        }
        assert!(too_complex(&bomb));
        assert!(too_complex(&format!("a: [{}]", "x, ".repeat(NODES_MAX))));
    }
}
