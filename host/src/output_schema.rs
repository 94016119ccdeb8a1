//! Schemas that results have to fit. What stands in one is a stranger's: its size, its depth and the work of checking are
//! bounded, it refers to nothing outside of itself, and what it says is told in words with paths.

use std::fmt;

use serde_json::Value;

mod cost;
mod portable;
mod refer;
mod text;

pub use cost::levels;
use refer::Within;

/// The longest schema, bytes of JSON.
pub const SCHEMA_BYTES_MAX: usize = 64 * 1024;
/// The deepest schema, references followed, and the deepest result, levels.
pub const LEVELS_MAX: usize = 64;
/// Different regular expressions of one schema.
pub const PATTERNS_MAX: usize = 100;
/// A compiled regular expression, bytes.
const PATTERN_BYTES_MAX: usize = 256 * 1024;
/// Steps back that one look with a regular expression may take.
const BACKTRACKS_MAX: usize = 10_000;
/// Ways in which a result does not fit that are told.
const COMPLAINTS_MAX: usize = 20;
/// Characters of one of them.
const COMPLAINT_CHARS_MAX: usize = 300;
/// The argument of `final_answer` that holds a result which is no object.
pub const ANSWER: &str = "answer";

/// A schema that results are checked by.
pub struct OutputSchema {
    schema: Value,
    validator: jsonschema::Validator,
    tool: Value,
    wrapped: bool,
}

impl fmt::Debug for OutputSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OutputSchema").field(&self.schema).finish()
    }
}

/// Why something is no schema that results can be checked by. Words that fit behind the name of the thing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSchema {
    /// It is too long.
    #[error("has {bytes} bytes, the most is {SCHEMA_BYTES_MAX}")]
    TooLong {
        /// Of its JSON.
        bytes: usize,
    },
    /// It is too deep, by itself or through its references.
    #[error("nests deeper than {LEVELS_MAX} levels, references followed")]
    TooDeep,
    /// It refers to something outside of itself, or to nothing.
    #[error("refers to `{0}`; only references within the schema that lead somewhere are followed, as `#/$defs/NAME`")]
    Reference(String),
    /// It holds another schema with an address of its own.
    #[error("has a `$id` below its top (`{0}`); leave it out")]
    InnerId(String),
    /// It has too many regular expressions.
    #[error("has {count} regular expressions, the most is {PATTERNS_MAX}")]
    Patterns {
        /// Different ones.
        count: usize,
    },
    /// It breaks the rules of its draft.
    #[error("is no JSON schema: {0}")]
    Invalid(String),
}

/// In which ways a result does not fit, one line each: the place in the result, and what is wrong there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct Unfit(pub Vec<String>);

impl Unfit {
    fn one(words: impl Into<String>) -> Self {
        Self(vec![format!("- {}", words.into())])
    }
}

impl OutputSchema {
    /// Reads a schema. Its draft is what its `$schema` says, else 2020-12.
    ///
    /// # Errors
    /// [`BadSchema`], in words for whoever wrote it.
    pub fn compile(schema: &Value) -> Result<Self, BadSchema> {
        let bytes = schema.to_string().len();
        if bytes > SCHEMA_BYTES_MAX {
            return Err(BadSchema::TooLong { bytes });
        }
        let within = Within::new(schema)?;
        let invalid = |words: String| BadSchema::Invalid(crate::text::cut(&words, COMPLAINT_CHARS_MAX));
        if !schema.is_object() && !schema.is_boolean() {
            return Err(BadSchema::Invalid("it has to be an object".to_owned()));
        }
        let patterns = jsonschema::PatternOptions::fancy_regex()
            .backtrack_limit(BACKTRACKS_MAX)
            .size_limit(PATTERN_BYTES_MAX)
            .dfa_size_limit(PATTERN_BYTES_MAX);
        let validator = jsonschema::options()
            .offline()
            .with_pattern_options(patterns)
            // Whether a text of a result is a regular expression is found out by compiling it, however large it is.
            .with_format("regex", |_| true)
            .build(schema)
            .map_err(|error| {
                let at = error.instance_path().to_string();
                let place = if at.is_empty() { String::new() } else { format!("at {at}: ") };
                invalid(format!("{place}{error}"))
            })?;
        let (tool, wrapped) = portable::tool_schema(&within);
        Ok(Self { schema: schema.clone(), validator, tool, wrapped })
    }

    /// The same as the arguments of a tool, in the form that models take: an object without references. A result that is
    /// no object stands in its member [`ANSWER`].
    #[must_use]
    pub fn tool_schema(&self) -> &Value {
        &self.tool
    }

    /// Whether the result stands in [`ANSWER`].
    #[must_use]
    pub fn is_wrapped(&self) -> bool {
        self.wrapped
    }

    /// The result that arguments of the tool hold.
    #[must_use]
    pub fn unwrapped(&self, arguments: Value) -> Value {
        match arguments {
            Value::Object(mut map) if self.wrapped && map.len() == 1 => match map.remove(ANSWER) {
                Some(answer) => answer,
                None => Value::Object(map),
            },
            other => other,
        }
    }

    /// Looks whether a result fits.
    ///
    /// # Errors
    /// [`Unfit`], at most twenty ways.
    pub fn check(&self, result: &Value, bytes_max: u64) -> Result<(), Unfit> {
        let bytes = result.to_string().len() as u64;
        if bytes > bytes_max {
            return Err(Unfit::one(format!("it has {bytes} bytes, the most is {bytes_max}: hand in less")));
        }
        if cost::levels(result) > LEVELS_MAX {
            return Err(Unfit::one(format!("it nests deeper than {LEVELS_MAX} levels")));
        }
        // It was looked at when it was compiled: one that cannot be would leave what a check costs without a bound.
        let within = Within::new(&self.schema).map_err(|bad| Unfit::one(format!("the schema {bad}")))?;
        cost::bounded(&within, result).map_err(Unfit::one)?;
        let mut complaints: Vec<String> = Vec::new();
        for error in self.validator.iter_errors(result).take(COMPLAINTS_MAX + 1) {
            if complaints.len() == COMPLAINTS_MAX {
                complaints.push("- and more".to_owned());
                break;
            }
            let at = error.instance_path().to_string();
            let place = if at.is_empty() { "at the top".to_owned() } else { format!("at {at}") };
            let words = format!("{place}: {}", error.masked_with("what stands there"));
            complaints.push(format!("- {}", crate::text::cut(&words, COMPLAINT_CHARS_MAX)));
        }
        if complaints.is_empty() { Ok(()) } else { Err(Unfit(complaints)) }
    }

    /// The result that a text is, alone or in a fence of Markdown, where it fits.
    ///
    /// # Errors
    /// [`Unfit`], also where it is no JSON or a key stands there twice.
    pub fn check_text(&self, text: &str, bytes_max: u64) -> Result<Value, Unfit> {
        if text.trim().is_empty() {
            return Err(Unfit::one("nothing was handed in"));
        }
        if text.len() as u64 > bytes_max {
            return Err(Unfit::one(format!("it has {} bytes, the most is {bytes_max}: hand in less", text.len())));
        }
        let result = text::json_in(text).map_err(Unfit::one)?;
        match self.check(&result, bytes_max) {
            Ok(()) => Ok(result),
            Err(unfit) => {
                let inner = self.unwrapped(result.clone());
                if inner != result && self.check(&inner, bytes_max).is_ok() { Ok(inner) } else { Err(unfit) }
            }
        }
    }
}

#[cfg(test)]
mod tests;
