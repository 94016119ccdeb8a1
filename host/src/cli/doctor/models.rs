//! Whether each model answers: one small call of each, all at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use assistant_protocol::types::{Message, Role};
use futures::future::join_all;
use serde::Serialize;

use super::Report;
use crate::cli::open::env;
use crate::config::Config;
use crate::model::{Ask, Model, Models};
use crate::runners::Named;

/// How long a model may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);
/// The task of the call.
const TASK: &str = "Answer with the word ok.";
/// Most tokens of its answer; some providers take no smaller bound.
const ANSWER_TOKENS_MAX: u32 = 16;
/// The provider of models that need no network: their script is read with the configuration.
const SCRIPTED: &str = "scripted";

/// A configured model.
#[derive(Serialize)]
pub(super) struct Known {
    pub(super) name: String,
    pub(super) provider: Option<String>,
    /// The provider's name for it.
    pub(super) model: String,
    pub(super) state: State,
    /// How long its answer took, milliseconds.
    pub(super) answered_ms: Option<u64>,
    pub(super) error: Option<String>,
}

/// What is known of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// It answered.
    Answers,
    /// It was called, and did not.
    Fails,
    /// It cannot be called.
    Unusable,
    /// It was not called.
    NotAsked,
}

/// Finds the models of a configuration, and asks each of them where `calls`.
pub(super) async fn look(report: &mut Report, config: &Config, calls: bool) {
    let models = match Models::from_config(config, &env) {
        Ok(models) => models,
        Err(error) => {
            return report.problem(error, "mend that key of the configuration: no assistant can start before");
        }
    };
    report.default_model = models.default_name().map(str::to_owned);
    let all: Vec<_> = models.all().collect();
    report.models = join_all(all.into_iter().map(|(name, id, model)| known(name, id, model, calls))).await;
    // An agent that runs all that name nothing has a model of its own.
    let runner = config.default_runner.as_deref();
    if report.models.is_empty() && !runner.is_some_and(|name| config.runners.is_agent(name)) {
        let variables = crate::model::variables_of_keys().join(" or ");
        let hint = format!(
            "`assistant-host setup model` sets one up; or set {variables}, or add [models.NAME] to {}",
            config.path.display()
        );
        report.problem_here("there is no model", &hint);
    }
    let hint = |known: &Known| match known.state {
        State::Unusable => "set it, or name a file in `api_key_file`: that one works for hosts of any environment",
        State::Fails | State::Answers | State::NotAsked => "mend its settings, its key or the way to it",
    };
    let failed = report.models.iter().filter_map(|known| {
        let error = known.error.as_ref()?;
        let settings = format!("[models.{}] of {}", known.name, config.path.display());
        Some((format!("the model `{}` does not work: {error}", known.name), format!("{} ({settings})", hint(known))))
    });
    for (message, hint) in failed.collect::<Vec<_>>() {
        report.problem_here(message, &hint);
    }
}

async fn known(name: &str, id: &str, model: Result<Arc<dyn Model>, &str>, calls: bool) -> Known {
    let mut known = Known {
        name: name.to_owned(),
        provider: None,
        model: id.to_owned(),
        state: State::NotAsked,
        answered_ms: None,
        error: None,
    };
    let model = match model {
        Ok(model) => model,
        Err(why) => return Known { state: State::Unusable, error: Some(why.to_owned()), ..known },
    };
    known.provider = Some(model.provider().to_owned());
    if !calls || model.provider() == SCRIPTED {
        return known;
    }
    let ask = Ask {
        messages: vec![Message::text(Role::User, TASK)],
        max_output_tokens: Some(ANSWER_TOKENS_MAX),
        ..Ask::default()
    };
    let begun = Instant::now();
    let answered = tokio::time::timeout(ANSWER_WITHIN, model.answer(ask, &|_| {})).await;
    let error = match answered {
        Ok(Ok(_)) => {
            let took = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            return Known { state: State::Answers, answered_ms: Some(took), ..known };
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {} s", ANSWER_WITHIN.as_secs()),
    };
    Known { state: State::Fails, error: Some(error), ..known }
}
