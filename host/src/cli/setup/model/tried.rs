//! Whether it works, by the very way that assistants will go.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use assistant_protocol::types::{Message, Role};
use serde_json::{Value, json};

use super::super::super::open::{self, env};
use super::super::super::talk;
use super::plan::{PASTED, Plan};
use super::write::Change;
use crate::config::Config;
use crate::host::{Host, Options, make_private};
use crate::model::{Ask, Model, Models};
use crate::registry::{Definition, Source};

/// How long a model may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// How long an agent may take: it is a program that starts first.
const AGENT_WITHIN: Duration = Duration::from_secs(120);
/// How often is looked what an agent tells meanwhile, milliseconds.
const LOOKED_EVERY_MS: u64 = 1_000;
/// The task.
const TASK: &str = "Answer with the word ok.";
/// Most tokens of the answer; some providers take no smaller bound.
const ANSWER_TOKENS_MAX: u32 = 16;

/// Tries what a change brings; gives how long it took, milliseconds.
///
/// # Errors
/// In words.
pub(super) async fn try_out(plan: &Plan, change: &Change, path: &Path, tells: bool) -> Result<u64, String> {
    if tells {
        talk(&format!("trying {} …", plan.title()));
    }
    let begun = Instant::now();
    match plan {
        Plan::Model { .. } => ask_model(plan, change, path).await?,
        Plan::Agent { name, .. } => {
            let said = |text: &str| {
                if tells {
                    talk(&format!("it says: {text}"));
                }
            };
            run_agent(name, change, path, &said).await?;
        }
    }
    let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    if tells {
        talk(&format!("{} answered in {ms} ms", plan.title()));
    }
    Ok(ms)
}

/// One short call.
async fn ask_model(plan: &Plan, change: &Change, path: &Path) -> Result<(), String> {
    let (plan, pasted) = plan.for_test();
    let mut config = Config::parse(&change.text, path).map_err(|error| error.to_string())?;
    // Of the others nothing is wanted, neither their keys nor their scripts.
    config.models.retain(|name, _| name == plan.name());
    (config.default_model, config.model_aliases) = (None, std::collections::BTreeMap::new());
    if let (Some(model), Some(_)) = (config.models.get_mut(plan.name()), &pasted) {
        (model.api_key_file, model.api_key_env) = (None, Some(PASTED.to_owned()));
    }
    let of_test = |name: &str| match (&pasted, name) {
        (Some(secret), PASTED) => Some(secret.expose().to_owned()),
        (_, name) => env(name),
    };
    let models = Models::from_config(&config, &of_test).map_err(|error| error.to_string())?;
    let found = models.all().find(|(name, ..)| *name == plan.name()).map(|(_, _, model)| model.map_err(str::to_owned));
    let model: Arc<dyn Model> = found.ok_or("it is not there")??;
    let ask = Ask {
        messages: vec![Message::text(Role::User, TASK)],
        max_output_tokens: Some(ANSWER_TOKENS_MAX),
        ..Ask::default()
    };
    match tokio::time::timeout(ANSWER_WITHIN, model.answer(ask, &|_| {})).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {} s", ANSWER_WITHIN.as_secs())),
    }
}

/// A state directory that is gone with it.
struct Throwaway(PathBuf);

impl Throwaway {
    fn new() -> std::io::Result<Self> {
        let dir = std::env::temp_dir().join(format!("assistant-host-setup-{}", uuid::Uuid::now_v7().simple()));
        make_private(&dir)?;
        Ok(Self(dir))
    }
}

impl Drop for Throwaway {
    fn drop(&mut self) {
        // What cannot be removed is in the folder for such things.
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// One process of an assistant that the runner `name` runs, in a host that is gone afterwards. `said` gets what the agent
/// tells meanwhile.
async fn run_agent(name: &str, change: &Change, path: &Path, said: &dyn Fn(&str)) -> Result<(), String> {
    let config = Config::parse(&change.text, path).map_err(|error| error.to_string())?;
    let runners = config.runners(&env).map_err(|error| error.to_string())?;
    let dir = Throwaway::new().map_err(|error| format!("there is no place to try it in: {error}"))?;
    let own = open::runner().await.map_err(|failure| failure.message)?;
    let mut options = Options::new(dir.0.clone(), own);
    (options.runners, options.watch) = (runners, false);
    options.limits.wall_ms = u64::try_from(AGENT_WITHIN.as_millis()).unwrap_or(u64::MAX);
    let host = Host::open(options).await.map_err(|error| error.to_string())?;
    let mut last = None;
    let ended = tokio::time::timeout(AGENT_WITHIN, ended(&host, name, said, &mut last)).await;
    host.close().await;
    ended.unwrap_or_else(|_| {
        let last = last.map(|last: String| format!("; it said last: {last}")).unwrap_or_default();
        Err(format!("no answer within {} s{last}", AGENT_WITHIN.as_secs()))
    })
}

/// Waits for the end of a process. `last` becomes what its agent told last.
async fn ended(host: &Host, runner: &str, said: &dyn Fn(&str), last: &mut Option<String>) -> Result<(), String> {
    let mut definition = Definition::new("Setup", "setup", "You are asked whether you work.".into(), Source::Database);
    definition.description = "Tells whether it works.".to_owned();
    definition.tools = Some(Vec::new());
    host.create_assistant(definition).await.map_err(|error| error.to_string())?;
    let session = host.open_session("setup", "main").await.map_err(|error| error.to_string())?;
    let call = async |tool: &str, arguments: Value| {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        host.call(session, tool, arguments).await.map_err(|error| error.to_string())
    };
    let spawned = call("spawn_assistant", json!({ "assistant_id": "setup", "query": TASK, "runner": runner })).await?;
    let mut cursor: Option<Value> = None;
    loop {
        let asked =
            json!({ "process_id": spawned["process_id"], "wait_ms": LOOKED_EVERY_MS, "include_summary": false });
        let process = call("poll_assistant", asked).await?["process"].clone();
        let mut asked = json!({ "process_id": spawned["process_id"], "kinds": ["progress"] });
        if let Some(behind) = cursor.take() {
            asked["cursor"] = behind;
        }
        let log = call("read_log", asked).await?;
        cursor = log.get("next_cursor").cloned();
        for text in log["events"].as_array().into_iter().flatten().filter_map(|one| one["data"]["text"].as_str()) {
            said(text);
            *last = Some(text.to_owned());
        }
        match process["status"].as_str() {
            Some("finished") => return Ok(()),
            Some("failed" | "cancelled") => {
                return Err(process["error"].as_str().unwrap_or("it ended without a word").to_owned());
            }
            _ => {}
        }
    }
}
