//! How a run goes on, as it goes on: on a terminal one line that lives, with the events above it; else a line an event.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;

use super::processes::count;
use super::{lines, talk};
use crate::text::cut;

/// How often the living line moves.
const TICK: Duration = Duration::from_millis(120);
/// Characters of the last thing that was done, on the living line.
const LAST_CHARS: usize = 48;

/// The progress of a run. Dropped, the living line is gone.
pub(super) struct Live {
    /// None where stderr is no terminal.
    bar: Option<ProgressBar>,
    model_calls: u64,
    tokens: u64,
}

impl Live {
    pub(super) fn begin() -> Self {
        let style = ProgressStyle::with_template("{spinner} {elapsed} {msg}").ok();
        let style = style.filter(|_| std::io::stderr().is_terminal());
        let bar = style.map(|style| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style);
            bar.set_message("starts");
            bar.enable_steady_tick(TICK);
            bar
        });
        Self { bar, model_calls: 0, tokens: 0 }
    }

    /// Tells an event of the log.
    pub(super) fn event(&mut self, kind: &str, data: &Value) {
        match kind {
            "model_call" => self.model_calls += 1,
            "model_answer" => {
                let tokens = |key: &str| data["usage"][key].as_u64().unwrap_or(0);
                self.tokens += tokens("input_tokens") + tokens("output_tokens");
            }
            _ => {}
        }
        let Some(line) = lines::event(kind, data) else { return };
        self.say(&format!("  {line}"));
        if let Some(bar) = &self.bar {
            bar.set_message(self.message(&line));
        }
    }

    /// Says something that is no event.
    pub(super) fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None => talk(line),
        }
    }

    fn message(&self, last: &str) -> String {
        format!("{} model calls, {} tokens: {}", self.model_calls, count(Some(self.tokens)), cut(last, LAST_CHARS))
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_living_line_counts() {
        let mut live = Live { bar: None, model_calls: 0, tokens: 0 };
        live.event("model_call", &json!({ "model": "m" }));
        live.event("model_answer", &json!({ "usage": { "input_tokens": 1_200, "output_tokens": 34 } }));
        assert_eq!(live.message("calls read_file"), "1 model calls, 1.2k tokens: calls read_file");
    }
}
