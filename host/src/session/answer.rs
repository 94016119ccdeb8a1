//! The result of a process that has to fit a schema: handed in by `final_answer` or as the text that a run ends with,
//! checked here whatever the runner says, and sent back a bounded number of times.

use std::sync::{Arc, Mutex, PoisonError};

use assistant_protocol::types::{Part, RunResult, ToolSpec};
use serde_json::{Map, Value, json};

use super::cut_bytes;
use super::link::Link;
use crate::output_schema::{ANSWER, OutputSchema, Unfit};
use crate::process_table::{self, End, Reason};
use crate::store::StoreError;
use crate::tools::{CallError, Output, ToolError};

/// The tool by which a result is handed in.
pub(super) const FINAL_ANSWER: &str = "final_answer";

/// A result that is to come.
pub(super) struct Answering {
    schema: Arc<OutputSchema>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What was handed in last and fits.
    accepted: Option<Value>,
    /// What was handed in and did not fit, where it was not sent back any more.
    spent: Option<(String, String)>,
}

impl Answering {
    pub(super) fn new(schema: OutputSchema) -> Self {
        Self { schema: Arc::new(schema), state: Mutex::default() }
    }

    /// The tool by which the result is handed in.
    pub(super) fn tool(&self) -> ToolSpec {
        let mut description =
            "Hands in your result, which has to fit this schema, and ends your work. Call it once, with \
                               all of it, when everything is done."
                .to_owned();
        if self.schema.is_wrapped() {
            description.push_str(&format!(" The result is what stands in `{ANSWER}`."));
        }
        ToolSpec { name: FINAL_ANSWER.to_owned(), description, input_schema: self.schema.tool_schema().clone() }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was accepted, as text.
    pub(super) fn accepted(&self) -> Option<String> {
        self.state().accepted.as_ref().map(Value::to_string)
    }

    /// What an answered `run` means. Of what its runner says nothing is believed but that it is over.
    pub(super) async fn judge(&self, link: &Link, result: RunResult) -> End {
        let bytes = link.limits.result_bytes;
        let (accepted, spent) = {
            let state = self.state();
            (state.accepted.clone(), state.spent.clone())
        };
        if let Some((words, given)) = spent {
            return invalid(&words, Some(given));
        }
        if let Some(value) = accepted {
            return finished(value);
        }
        let text = result.content.as_text().into_owned();
        let schema = self.schema.clone();
        let structured = result.structured.clone();
        let looked = tokio::task::spawn_blocking(move || match structured {
            Some(value) => schema.check(&value, bytes).map(|()| value),
            None => schema.check_text(&text, bytes),
        });
        let given = result.structured.map_or_else(|| result.content.as_text().into_owned(), |value| value.to_string());
        let given = cut_bytes(given, bytes);
        match looked.await {
            Ok(Ok(value)) => {
                self.state().accepted = Some(value.clone());
                finished(value)
            }
            Ok(Err(unfit)) => End::Unfit { words: unfit.to_string(), given, repairs: self.repairs(link) },
            Err(panicked) => invalid(&format!("- the check of it failed: {panicked}"), Some(given)),
        }
    }

    /// How often a result may be sent back; not any more where the run is in its last turn.
    fn repairs(&self, link: &Link) -> u32 {
        if link.last_turn.told().is_some() { 0 } else { link.limits.output_repairs }
    }
}

fn finished(value: Value) -> End {
    End::Finished { result: value.to_string(), structured: Some(value) }
}

fn invalid(words: &str, given: Option<String>) -> End {
    End::Failed { reason: Reason::OutputInvalid, error: in_words(words), partial: given }
}

/// Why a result is not taken.
pub(super) fn in_words(unfit: &str) -> String {
    format!("the result does not fit the output schema:\n{unfit}")
}

/// What the model is asked when it ended its run with something that does not fit.
pub(super) fn once_more(unfit: &str) -> String {
    format!(
        "Your work is not finished: {}\nHand in the whole result once more, corrected, with {FINAL_ANSWER}.",
        in_words(unfit)
    )
}

/// What an assistant is told of the result that it has to hand in, behind its prompt.
pub(super) fn told() -> String {
    format!(
        "\n\nYour result has to fit the schema of the tool {FINAL_ANSWER}. When all is done, call {FINAL_ANSWER} with the \
         whole result; that ends your work. Nobody reads what you write beside it."
    )
}

/// A call of the tool.
pub(super) async fn hand_in(link: &Link, arguments: Map<String, Value>) -> Result<Output, CallError> {
    let Some(answering) = &link.answering else { return Err(CallError::unknown(FINAL_ANSWER)) };
    if let Some((words, _)) = answering.state().spent.clone() {
        return Ok(refused(&words, true));
    }
    let (schema, bytes) = (answering.schema.clone(), link.limits.result_bytes);
    let looked = tokio::task::spawn_blocking(move || {
        let whole = Value::Object(arguments);
        let value = schema.unwrapped(whole.clone());
        match schema.check(&value, bytes) {
            Ok(()) => Ok(value),
            Err(unfit) => Err((unfit, whole)),
        }
    });
    match looked.await.map_err(|panicked| ToolError::internal(&panicked))? {
        Ok(value) => accept(link, answering, value).await,
        Err((unfit, given)) => send_back(link, answering, &unfit, &given).await,
    }
}

async fn accept(link: &Link, answering: &Answering, value: Value) -> Result<Output, CallError> {
    // Whatever ends the process now, this is what it had.
    let (process, text) = (link.row.id, value.to_string());
    let kept = link.host.store().write_later(move |tx| process_table::keep(tx, process, &text)).await;
    kept.map_err(|error| ToolError::store(&error))?;
    answering.state().accepted = Some(value.clone());
    let content = Some(vec![Part::text("Accepted.")]);
    Ok(Output { value, content, is_error: false, recorded: false, end_run: true })
}

/// Sends a result back, or ends the run where that was done often enough.
async fn send_back(link: &Link, answering: &Answering, unfit: &Unfit, given: &Value) -> Result<Output, CallError> {
    let (process, repairs, words) = (link.row.id, answering.repairs(link), unfit.to_string());
    let again = link.host.store().write(move |tx| process_table::repair(tx, process, repairs)).await;
    if again.map_err(|error: StoreError| ToolError::store(&error))? {
        return Ok(refused(&words, false));
    }
    let given = cut_bytes(given.to_string(), link.limits.result_bytes);
    let mut state = answering.state();
    // What was accepted before stands: the run is over with that.
    if state.accepted.is_none() {
        state.spent = Some((words.clone(), given));
    }
    drop(state);
    Ok(refused(&words, true))
}

fn refused(words: &str, end_run: bool) -> Output {
    let hint = if end_run { "The run is over." } else { "Call it once more with the whole result, corrected." };
    let error = ToolError::new("output_invalid", in_words(words), hint);
    Output { value: json!(error), content: None, is_error: true, recorded: false, end_run }
}
