//! Whether a call may be made: the rules of the definition, and whoever is to be asked first. Each refusal is recorded.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use assistant_protocol::error::{Kind as ErrorKind, RpcError};
use assistant_protocol::service::CallCx;
use serde_json::{Map, Value, json};

use crate::app::Decision;
use crate::caller::Caller;
use crate::events::Kind;
use crate::text::{TOOL_NAME_CHARS_MAX, cut};
use crate::tools::consent::{self, Answer, Asked};
use crate::tools::policy::{ToolName, Verdict, Why};
use crate::tools::{self, Along, Call, Recorder, ToolError};

use super::kit::Item;
use super::link::Link;

/// Characters of the arguments of a refused call that the log has.
const ARGUMENTS_CHARS_MAX: usize = 500;
/// Refused calls of one process that are recorded: a runner can make any number of them.
const REFUSED_MAX: u32 = 1_000;
/// Characters of a rule in the log.
const RULE_CHARS_MAX: usize = 1_000;
/// Codes of errors by which a call is refused, rather than that it fails.
const REFUSALS: [&str; 2] = ["caller_not_allowed", "not_permitted"];
/// Calls of one run that wait for an answer.
const ASKED_MAX: usize = 64;

/// Returns where the call may be made.
///
/// # Errors
/// `not_permitted`, with the rule; `process_ended` where it may not be asked any more.
pub(super) async fn permit(
    link: &Link,
    item: &Item,
    arguments: &Map<String, Value>,
    cx: &CallCx,
    recorder: &Recorder,
) -> Result<(), ToolError> {
    let name = item.spec.name.as_str();
    match link.kit().policy_of(item).judge(item.name(), arguments) {
        Verdict::Allow => Ok(()),
        Verdict::Deny { rule } => Err(denied(name, &rule)),
        // The app is asked by the tool itself.
        Verdict::Ask { .. } if link.host.approval().is_some() && tools::asks_first(&link.host, name) => Ok(()),
        Verdict::Ask { why } => {
            let along = Along { recorder: Some(recorder.clone()), turn: Some(cx.turn.clone()), ..link.along().await };
            let caller = Caller::Process(link.row.id);
            let call = Call { host: link.host.clone(), caller, arguments: arguments.clone(), along };
            ask(link, &call, &Wants { tool: item.name(), name, title: None }, why).await
        }
    }
}

/// A call that somebody is asked about.
pub(super) struct Wants<'a> {
    pub(super) tool: ToolName<'a>,
    /// The tool by the name that the model knows.
    pub(super) name: &'a str,
    /// The call in an agent's words.
    pub(super) title: Option<&'a str>,
}

/// Asks whether a call may be made; returns where it may.
///
/// # Errors
/// As [`permit`]; `asked_meanwhile` where nobody has answered yet.
pub(super) async fn ask(link: &Link, call: &Call, wants: &Wants<'_>, why: Why) -> Result<(), ToolError> {
    let (kit, name) = (link.kit(), wants.name);
    let consent = (name.to_owned(), why);
    if kit.consents.lock().unwrap_or_else(PoisonError::into_inner).contains(&consent) {
        return Ok(());
    }
    let why = &consent.1;
    if link.host.approval().is_some() {
        let within = Duration::from_millis(link.limits.wall_ms);
        return match consent::by_app(call, Some(&link.row), name, within).await? {
            Decision::Allow => Ok(()),
            Decision::Deny { reason } => Err(denied(name, &format!("{why}, and the answer is: {reason}"))),
        };
    }
    let same = (name.to_owned(), Value::from(call.arguments.clone()).to_string());
    let asked = Asked { tool: wants.tool, name, why, title: wants.title };
    let before = kit.asked.lock().unwrap_or_else(PoisonError::into_inner).remove(&same);
    let (question, answer) = consent::by_parent(call, &asked, before).await?;
    match answer {
        Answer::Once => Ok(()),
        // Where no rule bounds what that would be of, it is a yes to this call.
        Answer::Always if !asked.may_always() => Ok(()),
        Answer::Always => {
            kit.consents.lock().unwrap_or_else(PoisonError::into_inner).insert(consent);
            Ok(())
        }
        Answer::No(answer) => Err(denied(name, &format!("{why}, and the answer is: {answer}"))),
        Answer::Open => {
            let mut waiting = kit.asked.lock().unwrap_or_else(PoisonError::into_inner);
            if waiting.len() < ASKED_MAX {
                waiting.insert(same, question);
            }
            let message =
                format!("the call of {name} waits for an answer ({why}), and you are asked something yourself");
            let hint = "Answer that first, then make the same call again: it waits for the same answer.";
            Err(ToolError { retryable: true, ..ToolError::new("asked_meanwhile", message, hint) })
        }
    }
}

/// Whether somebody would be asked before a call.
pub(super) fn asks(link: &Link, item: &Item, arguments: &Value) -> bool {
    let none = Map::new();
    let arguments = arguments.as_object().unwrap_or(&none);
    matches!(link.kit().policy_of(item).judge(item.name(), arguments), Verdict::Ask { .. })
}

/// The same for a tool that is called as a method, without a model: nobody is asked for that.
///
/// # Errors
/// `not_permitted`, with the rule.
pub(super) async fn permit_method(link: &Link, tool: &str, arguments: &Map<String, Value>) -> Result<(), RpcError> {
    let rule = match link.kit().policy.judge(ToolName { server: None, tool }, arguments) {
        Verdict::Allow => return Ok(()),
        Verdict::Deny { rule } => rule,
        Verdict::Ask { why } => format!("{why}, which is for calls of a model"),
    };
    refuse(link, None, tool, &rule, &Value::Null).await;
    Err(RpcError::new(ErrorKind::NotPermitted, denied(tool, &rule).message))
}

fn denied(name: &str, rule: &str) -> ToolError {
    let message = format!("the call of {name} is not permitted: {rule}");
    ToolError::new("not_permitted", message, "Go on without it, and say so.")
}

/// Whether an error says that a call must not be made, rather than that it fails.
pub(super) fn is_refusal(error: &ToolError) -> bool {
    REFUSALS.contains(&error.code.as_str())
}

/// Records an error of a call where that is a refusal.
pub(super) async fn note(link: &Link, call_id: Option<&str>, tool: &str, error: &ToolError) {
    if is_refusal(error) {
        refuse(link, call_id, tool, &error.message, &Value::Null).await;
    }
}

/// Records that a call was refused, the first [`REFUSED_MAX`] times of a process. `arguments` are told where the call is
/// not in the log itself.
pub(super) async fn refuse(link: &Link, call_id: Option<&str>, tool: &str, rule: &str, arguments: &Value) {
    if link.refused.fetch_add(1, Ordering::Relaxed) >= REFUSED_MAX {
        return;
    }
    let mut told =
        json!({ "call_id": call_id, "tool": cut(tool, TOOL_NAME_CHARS_MAX), "rule": cut(rule, RULE_CHARS_MAX) });
    if !arguments.is_null() {
        told["arguments"] = cut(&arguments.to_string(), ARGUMENTS_CHARS_MAX).into();
    }
    link.record(Kind::Refused, told).await;
}
