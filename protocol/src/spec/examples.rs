//! Examples of each method as they are on the wire: a title behind `#`, the line that asks, the line that answers.

use serde_json::Value;

use crate::methods::MethodInfo;

/// A request and its answer.
#[derive(Debug, Clone, Copy)]
pub struct Example {
    /// What it shows.
    pub title: &'static str,
    /// The line that asks.
    pub asks: &'static str,
    /// The line that answers.
    pub answers: &'static str,
}

impl Example {
    /// The params of the request; null where the line has none.
    #[must_use]
    pub fn params(&self) -> Value {
        member(self.asks, "params")
    }

    /// The result of the answer; null where the line has none.
    #[must_use]
    pub fn result(&self) -> Value {
        member(self.answers, "result")
    }
}

/// The examples of a method; at least one.
#[must_use]
pub fn of(info: &MethodInfo) -> Vec<Example> {
    let lines: Vec<&'static str> = info.examples.lines().collect();
    let example = |three: &[&'static str]| match three {
        [title, asks, answers] => Some(Example { title: title.strip_prefix("# ")?, asks, answers }),
        _ => None,
    };
    lines.chunks(3).filter_map(example).collect()
}

fn member(line: &str, name: &str) -> Value {
    let line: Option<Value> = serde_json::from_str(line).ok();
    line.and_then(|line| line.get(name).cloned()).unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use crate::methods;
    use crate::wire::{Incoming, classify};

    use super::*;

    #[test]
    fn each_example_is_a_request_and_its_answer_that_come_back_the_same() {
        for (_, info) in methods::all() {
            let examples = of(info);
            assert_eq!(examples.len() * 3, info.examples.lines().count(), "{}: three lines each", info.name);
            assert!(!examples.is_empty(), "{}", info.name);
            for example in examples {
                let Incoming::Request { id, method, .. } = classify(example.asks.as_bytes()) else {
                    panic!("no request: {}", example.asks)
                };
                let Incoming::Response { id: answered, outcome: Ok(_) } = classify(example.answers.as_bytes()) else {
                    panic!("no answer: {}", example.answers)
                };
                assert_eq!((id, &*method), (answered, info.name), "{}", example.asks);
                let again = (info.params_again)(example.params()).expect(example.asks);
                assert_eq!(again, example.params(), "{}", info.name);
                let again = (info.result_again)(example.result()).expect(example.answers);
                assert_eq!(again, example.result(), "{}", info.name);
            }
        }
    }
}
