//! `on_agent_event`: what an agent does goes into the log and the conversation, counts against the limits, and is paid.

use std::sync::{Arc, PoisonError};

use assistant_protocol::error::{Kind as ErrorKind, RpcError};
use assistant_protocol::service::CallCx;
use assistant_protocol::spec::bounds::CALL_ID_BYTES;
use assistant_protocol::types::{
    AgentEvent, AgentEventParams, Content, Empty, Message, Part, Role, ToolCallResult, Usage,
};
use serde_json::{Value, json};

use super::calls::key;
use super::log;
use crate::caller::Caller;
use crate::conversation;
use crate::events::Kind;
use crate::limits::Usd;
use crate::process_table::budget;
use crate::process_table::{self, Told};
use crate::session::given;
use crate::session::link::{Link, NotBegun, cancelled, internal, tell_delta};
use crate::session::watch::cut_bytes;
use crate::store::StoreError;
use crate::text::{TOOL_NAME_CHARS_MAX, cut};
use crate::tools::Recorder;
use crate::tools::record::{self, Begun};

/// The longest name of a session of an agent's own, bytes.
const SESSION_BYTES_MAX: usize = 1_024;
/// Characters of a text in the log.
const SHOWN_CHARS_MAX: usize = 500;
/// Characters of what an agent goes without, and of why.
const LACKS_CHARS_MAX: usize = 1_000;
/// The most that the arguments of a call have as JSON, bytes; of longer ones the beginning is kept as text.
const ARGUMENTS_BYTES_MAX: u64 = 64 * 1024;
/// The most tokens of one event.
const TOKENS_MAX: u64 = 1_000_000_000_000;
/// The most that one event may say that it cost, US dollars.
const COST_USD_MAX: f64 = 1_000_000.0;

pub(in crate::session) async fn on_agent_event(
    link: Arc<Link>,
    params: AgentEventParams,
    cx: CallCx,
) -> Result<Empty, RpcError> {
    link.of_agent()?;
    link.in_a_run()?;
    link.own(params.thread_id, "on_agent_event").await?;
    link.pulse.beat();
    let (work_link, turn) = (link.clone(), cx.turn.clone());
    // In a task of its own: what an agent has told is recorded and paid, even if this call is given up meanwhile.
    let at_work = link.at_work().await;
    link.in_a_run()?;
    let told = tokio::spawn(async move {
        let _at_work = at_work;
        turn.come().await;
        let told = tell(&work_link, params.event).await;
        turn.pass();
        told
    });
    let panicked = |error| RpcError::new(ErrorKind::InternalError, format!("an event of an agent panicked: {error}"));
    told.await.map_err(panicked)?.map(|()| Empty {})
}

async fn tell(link: &Link, event: AgentEvent) -> Result<(), RpcError> {
    // What is used is paid, whatever comes of it.
    if let AgentEvent::Usage { usage, calls, cost_usd, model } = event {
        return pay(link, usage, calls, cost_usd, model).await;
    }
    if let Some(over) = link.over() {
        return Err(over);
    }
    match event {
        AgentEvent::Session { session_id } => session(link, session_id).await,
        AgentEvent::Text { text } => text_said(link, text).await,
        AgentEvent::Reasoning { text } => {
            if link.has_room(text.len()).await {
                link.record(Kind::Progress, json!({ "text": cut(&text, SHOWN_CHARS_MAX), "reasoning": true })).await;
            }
            Ok(())
        }
        AgentEvent::ToolCall { call_id, tool_name, arguments } => calls(link, call_id, &tool_name, arguments).await,
        AgentEvent::ToolResult { call_id, content, is_error } => answered(link, call_id, content, is_error).await,
        AgentEvent::Lacks { what, why } => {
            if link.has_room(what.len() + why.len()).await {
                let told = json!({ "lacks": cut(&what, LACKS_CHARS_MAX), "why": cut(&why, LACKS_CHARS_MAX) });
                link.record(Kind::Status, told).await;
            }
            Ok(())
        }
        AgentEvent::Usage { .. } | AgentEvent::Other => Ok(()),
    }
}

fn bad(message: String) -> RpcError {
    RpcError::new(ErrorKind::InvalidParams, message)
}

fn checked(call_id: &str) -> Result<(), RpcError> {
    match call_id.len() {
        0 => Err(bad("the call_id is empty".to_owned())),
        bytes if bytes > CALL_ID_BYTES => {
            Err(bad(format!("the call_id has {bytes} bytes, the most is {CALL_ID_BYTES}")))
        }
        _ => Ok(()),
    }
}

/// It is on the disk before this is answered: without it nobody can go on with what the agent does.
async fn session(link: &Link, session: String) -> Result<(), RpcError> {
    if session.trim().is_empty() || session.len() > SESSION_BYTES_MAX || session.contains(char::is_control) {
        let message =
            format!("the session_id is empty, has control characters, or has more than {SESSION_BYTES_MAX} bytes");
        return Err(bad(message));
    }
    if link.agent_session().as_ref() == Some(&session) {
        return Ok(());
    }
    let (process, kept, recorded) = (link.row.id, session.clone(), link.has_room(session.len()).await);
    let stored = link.host.store().write(move |tx| {
        process_table::keep_agent_session(tx, process, &kept)?;
        if recorded { log::record(tx, process, Kind::Status, &json!({ "agent_session": kept })) } else { Ok(()) }
    });
    stored.await.map_err(|error: StoreError| internal(&error))?;
    link.runs_agent(Some(session));
    Ok(())
}

async fn text_said(link: &Link, text: String) -> Result<(), RpcError> {
    if text.trim().is_empty() {
        return Ok(());
    }
    // It goes on: what it had called has answered, told or not.
    link.own_answered(None);
    tell_delta(link, text.clone());
    let (process, text) = (link.row.id, cut_bytes(text, link.limits.result_bytes));
    let message = Message { role: Role::Assistant, content: Content::Text(text.clone()) };
    link.model_said(&message);
    if !link.has_room(text.len()).await {
        // What it has so far is told at its end in any case.
        let kept = link.host.store().write_later(move |tx| process_table::keep(tx, process, &text)).await;
        return kept.map_err(|error| internal(&error));
    }
    let told = json!({ "text": cut(&text, SHOWN_CHARS_MAX) });
    let recorded = link.host.store().write_later(move |tx| {
        conversation::append(tx, process, [(&message, None)])?;
        process_table::keep(tx, process, &text)?;
        log::record(tx, process, Kind::Progress, &told)
    });
    recorded.await.map_err(|error| internal(&error))
}

/// A call of a tool as a message of the conversation, with arguments of a bounded size.
pub(in crate::session) fn as_called(call_id: &str, tool_name: &str, arguments: Value) -> Message {
    let arguments = match arguments.to_string() {
        text if text.len() as u64 > ARGUMENTS_BYTES_MAX => Err(cut_bytes(text, ARGUMENTS_BYTES_MAX)),
        _ => Ok(if arguments.is_null() { json!({}) } else { arguments }),
    };
    let part = Part::ToolCall { call_id: call_id.to_owned(), tool_name: tool_name.to_owned(), arguments };
    Message { role: Role::Assistant, content: Content::Parts(vec![part]) }
}

async fn calls(link: &Link, call_id: String, tool_name: &str, arguments: Value) -> Result<(), RpcError> {
    checked(&call_id)?;
    link.calls_own(&call_id);
    let recorded = link.has_room(arguments.to_string().len()).await;
    // Without room none is told from another, and each counts.
    let call_id = match recorded {
        true => {
            let mut calls = link.agent.calls.lock().unwrap_or_else(PoisonError::into_inner);
            calls.id_of(&call_id, key(&call_id, tool_name, &arguments))
        }
        false => call_id,
    };
    let tool = cut(tool_name, TOOL_NAME_CHARS_MAX);
    let message = as_called(&call_id, &tool, arguments);
    let arguments = match message.content.parts().first() {
        Some(Part::ToolCall { arguments: Ok(arguments), .. }) => arguments.clone(),
        Some(Part::ToolCall { arguments: Err(text), .. }) => json!({ "cut": text }),
        _ => Value::Null,
    };
    let recorder = Recorder { process: link.row.id, call_id, tool };
    let (process, limit) = (link.row.id, link.limits.tool_calls);
    let counted = link.host.store().write(move |tx| {
        if !process_table::may_act(tx.db, Caller::Process(process))? {
            return Err(NotBegun::Rpc(cancelled("the process has ended or is cancelled")));
        }
        if recorded {
            // Told again, it is the same call.
            if !matches!(recorder.begin(tx, &arguments)?, Begun::New) {
                return Ok(0);
            }
            conversation::append(tx, process, [(&message, None)])?;
        }
        Ok(process_table::count_tool_call(tx, process)?)
    });
    if counted.await.map_err(RpcError::from)? > limit {
        return Err(over(link, &tool_calls_done(limit)));
    }
    Ok(())
}

/// The words for a limit of tool calls that is reached.
pub(in crate::session) fn tool_calls_done(limit: u32) -> String {
    format!("limit tool_calls: {limit} tool calls are done, the most that this run may do")
}

fn over(link: &Link, limit: &str) -> RpcError {
    link.agent_is_over(limit);
    RpcError::new(ErrorKind::BudgetExceeded, limit)
}

async fn answered(link: &Link, call_id: String, content: Vec<Part>, is_error: bool) -> Result<(), RpcError> {
    checked(&call_id)?;
    link.own_answered(Some(&call_id));
    let call_id = link.agent.calls.lock().unwrap_or_else(PoisonError::into_inner).last_of(&call_id);
    let (process, asked) = (link.row.id, call_id.clone());
    // In its turn: the call may not be in the store yet.
    let looked = link.host.store().write(move |tx| record::tool_of(tx.db, process, &asked));
    // The result of a call that was not told, or for which there was no room, is none that could be understood.
    let Some(tool) = looked.await.map_err(|error: StoreError| internal(&error))? else { return Ok(()) };
    let bytes: usize = content.iter().map(|part| json!(part).to_string().len()).sum();
    let content = match link.has_room(bytes).await {
        true => content,
        false => vec![Part::text("[left out: the agent has told more than is recorded]")],
    };
    let recorder = Recorder { process, call_id, tool };
    let result = ToolCallResult { content, structured_content: None, is_error, end_run: None };
    given::finish(link, &recorder, result).await.map(|_| ())
}

/// Adds what was used, and looks whether there is anything left.
async fn pay(
    link: &Link,
    usage: Usage,
    calls: u32,
    cost_usd: Option<f64>,
    model: Option<String>,
) -> Result<(), RpcError> {
    let all = [
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        usage.reasoning_tokens,
    ];
    if all.into_iter().flatten().any(|tokens| tokens > TOKENS_MAX) {
        return Err(bad(format!("more than {TOKENS_MAX} tokens are told at once")));
    }
    let cost = match cost_usd {
        Some(dollars) if dollars > COST_USD_MAX => {
            return Err(bad(format!("a cost of more than {COST_USD_MAX} dollars is told at once")));
        }
        Some(dollars) => Some(Usd::new(dollars).ok_or_else(|| bad(format!("{dollars} is no amount of dollars")))?),
        None => None,
    };
    let model = model.filter(|model| !model.trim().is_empty()).map(|model| cut(&model, SHOWN_CHARS_MAX));
    let mut event = json!({ "usage": usage, "calls": calls, "cost_usd": cost_usd, "model": model });
    event["agent"] = true.into();
    let recorded = link.has_room(0).await;
    let (process, limits) = (link.row.id, link.limits);
    let told = Told { usage, calls, cost, model };
    let paid = link.host.store().write(move |tx| {
        let turns = process_table::add_told(tx, process, &told)?;
        if recorded {
            log::record(tx, process, Kind::ModelAnswer, &event)?;
        }
        tx.wake(process);
        Ok::<_, StoreError>((turns, budget::used_up(tx.db, Some(process), &limits, tx.now)?))
    });
    let (turns, used_up) = paid.await.map_err(|error| internal(&error))?;
    if turns > limits.turns {
        let most = limits.turns;
        return Err(over(link, &format!("limit turns: {most} model calls are done, the most that this run may make")));
    }
    match used_up {
        Some(used_up) => Err(over(link, &used_up.to_string())),
        None => link.over().map_or(Ok(()), Err),
    }
}
