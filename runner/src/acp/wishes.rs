//! What a definition wishes of the session, where the agent offers a choice: its model, and a mode that changes nothing.

use agent_client_protocol::UntypedMessage;
use agent_client_protocol::v1::schema::{
    Implementation, Meta, SessionConfigKind, SessionConfigOption, SessionConfigOptionCategory,
    SessionConfigOptionValue, SessionConfigSelectOptions, SessionId, SessionModeState, SetSessionConfigOptionRequest,
    SetSessionModeRequest,
};
use assistant_protocol::error::RpcError;
use assistant_protocol::types::RuleAction;
use serde_json::{Value, json};

use super::link::{AskError, Link};
use crate::adapter::Run;
use crate::cli::claude_tools;
use crate::cli::wishes::{Wanted, Wishes};

/// Modes in which nothing is changed, as agents call them; the first that is offered is taken.
const READONLY: &[&str] = &["plan", "read-only", "readonly", "read_only", "ask"];
/// Modes in which the agent asks before it changes something, as agents call them.
const ASKING: &[&str] = &["default", "ask", "build", "auto"];
/// Modes in which it does not ask. An agent whose user has made one of these the usual one is put into one of the others.
const UNASKED: &[&str] = &[
    "yolo",
    "bypassPermissions",
    "bypass",
    "acceptEdits",
    "autoEdit",
    "auto_edit",
    "full-access",
    "full_access",
    "smart_approve",
];
/// Why wishes for tools cannot be told to an agent.
const NO_WORDS: &str =
    "the protocol has no words for it: calls that the agent asks for are judged by the rules, others are not";
/// The same of Claude Code, which is told what it has.
const READS_UNASKED: &str = "the protocol has no words for it: calls that the agent asks for are judged by the rules; it reads in its folder unasked";
/// Offers that are named to people, where none of them is the one that was wished for.
const OFFERS_TOLD: usize = 20;

/// Why wishes could not be told.
pub(super) enum Failure {
    /// The run is over.
    Told(RpcError),
    /// The agent is gone.
    Ask(AskError),
}

impl From<RpcError> for Failure {
    fn from(error: RpcError) -> Self {
        Failure::Told(error)
    }
}

/// A choice that the agent offers.
struct Choice {
    how: How,
    current: String,
    /// The value and the name of each offer.
    offers: Vec<(String, String)>,
}

/// How a choice is made.
enum How {
    /// By `session/set_config_option`, of this id.
    Option(String),
    /// By `session/set_mode`.
    Mode,
    /// By `session/set_model`, which came before options.
    Model,
}

/// Asks the agent for what the definition wishes, and tells what it does not offer.
///
/// # Errors
/// The run is over, or the agent is gone.
pub(super) async fn fulfil(
    link: &Link,
    session: &SessionId,
    offers: &Value,
    is_claude: bool,
    run: &Run,
) -> Result<(), Failure> {
    let brief = run.brief();
    if let Some(wish) = brief.model.as_deref().filter(|wish| !wish.is_empty() && *wish != "inherit") {
        let choice = choice(offers, SessionConfigOptionCategory::Model);
        let wished = choice.as_ref().and_then(|choice| pick(wish, &choice.offers));
        match (&choice, wished) {
            (Some(choice), Some(value)) => choose(link, session, run, choice, &value, "model").await?,
            (Some(choice), None) => {
                let why = format!("the agent offers no `{wish}`; it offers {}", told(&choice.offers));
                run.lacks("model", why).await?;
            }
            (None, _) => run.lacks("model", "the agent offers no choice of models").await?,
        }
    }
    let choice = choice(offers, SessionConfigOptionCategory::Mode);
    let first = |names: &[&str]| {
        let offers = &choice.as_ref()?.offers;
        names.iter().find_map(|name| offers.iter().find(|(value, _)| value == name).map(|(value, _)| value.clone()))
    };
    match (&choice, brief.readonly, first(READONLY)) {
        (Some(choice), true, Some(mode)) => choose(link, session, run, choice, &mode, "readonly").await?,
        (_, true, _) => {
            let why = "the agent has no mode in which it changes nothing; what it asks for is judged by the rules, what it \
                       does without asking is not";
            run.lacks("readonly", why).await?;
        }
        (Some(choice), false, _) if UNASKED.contains(&choice.current.as_str()) => match first(ASKING) {
            Some(mode) => choose(link, session, run, choice, &mode, "permissions").await?,
            None => {
                let why = format!("the agent is in its mode `{}`, and offers none in which it asks", choice.current);
                run.lacks("permissions", why).await?;
            }
        },
        (_, false, _) => {}
    }
    tools(is_claude, run).await?;
    Ok(())
}

/// Whether an agent is Claude Code behind its adapter, which takes more than the protocol has.
pub(super) fn is_claude(agent: Option<&Implementation>) -> bool {
    agent.is_some_and(|agent| ["claude-agent-acp", "claude-code-acp"].iter().any(|name| agent.name.ends_with(name)))
}

/// What a session of Claude Code is begun with beside the protocol: the tools that it has, those that it must not have, and
/// nothing of the user's.
pub(super) fn for_claude(run: &Run) -> Option<Meta> {
    let options = claude_tools::options(&Wishes::of(run.brief(), run.tools()));
    json!({ "claudeCode": { "options": options } }).as_object().cloned()
}

/// Tells what of the definition's tools and rules the agent cannot be told.
async fn tools(is_claude: bool, run: &Run) -> Result<(), RpcError> {
    let brief = run.brief();
    let wishes = Wishes::of(brief, run.tools());
    let unknown = if is_claude { claude_tools::unknown(&wishes) } else { Vec::new() };
    if !unknown.is_empty() {
        run.lacks("tools", format!("the agent has none of these names: {}", unknown.join(", "))).await?;
    }
    let why = if is_claude { READS_UNASKED } else { NO_WORDS };
    let wants = matches!(wishes.wanted, Wanted::Some(_)) && brief.tools.is_some();
    // Of those that are wanted in part it makes calls that read without asking, too.
    let in_part = match &wishes.wanted {
        Wanted::Some(wanted) => wanted.iter().any(|wish| wish.pattern.is_some()),
        Wanted::Unsaid | Wanted::All => false,
    };
    if (is_claude && in_part) || (!is_claude && (wants || !brief.disallowed_tools.is_empty())) {
        run.lacks("a bound to its `tools`", why).await?;
    }
    if is_claude && claude_tools::withholds_search(&wishes) {
        run.lacks("searches in files", "the agent does not ask before it searches in its folder: it has none").await?;
    }
    let not_all = |does: RuleAction| does != RuleAction::Allow;
    // What is forbidden at all Claude Code does not have.
    let ruled = wishes.rules.iter().any(|(_, wish)| !(is_claude && wishes.denied.contains(wish)));
    let others = brief.rules.iter().any(|rule| rule.tool == "*" && not_all(rule.action));
    if ruled || others && wishes.others.is_some_and(not_all) && !(is_claude && wishes.others == Some(RuleAction::Deny))
    {
        run.lacks("rules", why).await?;
    }
    if !wishes.asked.is_empty() || brief.ask_tools.iter().any(|tool| tool.trim() == "*") {
        run.lacks("ask_tools", why).await?;
    }
    Ok(())
}

/// The choice of a category, in the words of today or in those before.
fn choice(offers: &Value, category: SessionConfigOptionCategory) -> Option<Choice> {
    let option = offers.get("configOptions").and_then(Value::as_array).into_iter().flatten().find_map(|option| {
        let option: SessionConfigOption = serde_json::from_value(option.clone()).ok()?;
        let SessionConfigKind::Select(select) = option.kind else { return None };
        (option.category.as_ref() == Some(&category)).then_some((option.id, select))
    });
    if let Some((id, select)) = option {
        let all = match select.options {
            SessionConfigSelectOptions::Ungrouped(all) => all,
            SessionConfigSelectOptions::Grouped(groups) => groups.into_iter().flat_map(|group| group.options).collect(),
            _ => Vec::new(),
        };
        let offers = all.into_iter().map(|option| (option.value.to_string(), option.name)).collect();
        return Some(Choice { how: How::Option(id.to_string()), current: select.current_value.to_string(), offers });
    }
    match category {
        SessionConfigOptionCategory::Mode => {
            let modes: SessionModeState = serde_json::from_value(offers.get("modes")?.clone()).ok()?;
            let offers = modes.available_modes.into_iter().map(|mode| (mode.id.to_string(), mode.name)).collect();
            Some(Choice { how: How::Mode, current: modes.current_mode_id.to_string(), offers })
        }
        SessionConfigOptionCategory::Model => {
            let models = offers.get("models")?;
            let text = |value: &Value, key: &str| Some(value.get(key)?.as_str()?.to_owned());
            let offered = models.get("availableModels")?.as_array()?;
            let offers = offered.iter().filter_map(|model| {
                let id = text(model, "modelId")?;
                Some((id.clone(), text(model, "name").unwrap_or(id)))
            });
            let current = text(models, "currentModelId").unwrap_or_default();
            Some(Choice { how: How::Model, current, offers: offers.collect() })
        }
        _ => None,
    }
}

/// Makes a choice; that the agent refuses it is told.
async fn choose(
    link: &Link,
    session: &SessionId,
    run: &Run,
    choice: &Choice,
    value: &str,
    what: &str,
) -> Result<(), Failure> {
    if choice.current == value {
        return Ok(());
    }
    let asked = match &choice.how {
        How::Option(id) => {
            let value = SessionConfigOptionValue::value_id(value.to_owned());
            link.ask(&SetSessionConfigOptionRequest::new(session.clone(), id.clone(), value)).await
        }
        How::Mode => link.ask(&SetSessionModeRequest::new(session.clone(), value.to_owned())).await,
        How::Model => {
            let params = json!({ "sessionId": session, "modelId": value });
            match UntypedMessage::new("session/set_model", params) {
                Ok(request) => link.ask(&request).await,
                Err(error) => Err(AskError::Answered(error)),
            }
        }
    };
    match asked {
        Ok(_) => Ok(()),
        Err(error @ AskError::Answered(_)) => {
            Ok(run.lacks(what, format!("the agent refuses `{value}`: {error}")).await?)
        }
        Err(error @ AskError::Gone(_)) => Err(Failure::Ask(error)),
    }
}

/// The offer that is wished for: by its value, by its name, or by its value without the provider before it.
fn pick(wish: &str, offers: &[(String, String)]) -> Option<String> {
    let short = |value: &str| value.rsplit_once('/').map_or(value.to_owned(), |(_, model)| model.to_owned());
    let by = |fits: &dyn Fn(&(String, String)) -> bool| offers.iter().find(|offer| fits(offer));
    by(&|(value, _)| value == wish)
        .or_else(|| by(&|(_, name)| name.eq_ignore_ascii_case(wish)))
        .or_else(|| by(&|(value, _)| short(value) == short(wish)))
        .map(|(value, _)| value.clone())
}

fn told(offers: &[(String, String)]) -> String {
    let mut names: Vec<&str> = offers.iter().take(OFFERS_TOLD).map(|(value, _)| value.as_str()).collect();
    if names.is_empty() {
        return "nothing".to_owned();
    }
    if offers.len() > OFFERS_TOLD {
        names.push("…");
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is picked of what is offered.
    fn check(offers: Value, category: SessionConfigOptionCategory, wish: &str, picked: Option<&str>) {
        let choice = choice(&offers, category);
        assert_eq!(choice.and_then(|choice| pick(wish, &choice.offers)).as_deref(), picked, "{wish}: {offers}");
    }

    #[test]
    fn a_model_is_found_however_it_is_offered() {
        let model = SessionConfigOptionCategory::Model;
        let option = |options: Value| {
            json!({ "configOptions": [{ "id": "m", "name": "Model", "category": "model", "type": "select",
                "currentValue": "x", "options": options }] })
        };
        let plain =
            option(json!([{ "value": "acme/big-1", "name": "Big One" }, { "value": "big-1", "name": "Other" }]));
        let groups =
            option(json!([{ "group": "g", "name": "G", "options": [{ "value": "acme/big-1", "name": "Big One" }] }]));
        let before = json!({ "models": { "currentModelId": "x", "availableModels": [{ "modelId": "big-1" }, { "name": "no id" }] } });
        check(plain.clone(), model.clone(), "big-1", Some("big-1"));
        check(plain.clone(), model.clone(), "big one", Some("acme/big-1"));
        check(plain.clone(), model.clone(), "other/big-1", Some("acme/big-1"));
        check(plain, model.clone(), "big", None);
        check(groups, model.clone(), "big-1", Some("acme/big-1"));
        check(before, model.clone(), "big-1", Some("big-1"));
        for none in
            [json!({}), json!(null), json!({ "configOptions": 7, "models": [] }), json!({ "configOptions": [{}] })]
        {
            check(none, model.clone(), "big-1", None);
        }
    }
}
