//! One tool call of a process: recorded when it begins, made, and recorded with its result. What is made again is
//! answered from the record.

use std::sync::Arc;
use std::time::Duration;

use assistant_protocol::error::{Kind, RpcError};
use assistant_protocol::service::CallCx;
use assistant_protocol::spec::bounds::CALL_ID_BYTES;
use assistant_protocol::types::{ToolCallParams, ToolCallResult};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::agent::events::{as_called, tool_calls_done};
use super::answer::{self, FINAL_ANSWER};
use super::given;
use super::kit::Item;
use super::link::{Link, NotBegun, cancelled, internal};
use super::permit::{self, permit};
use crate::caller::Caller;
use crate::process_table;
use crate::servers::{Given, STEPS_MAX, ServedTool, ServerError};
use crate::store::StoreError;
use crate::tools::profile::subagents;
use crate::tools::record::{self, Begun};
use crate::tools::{self, Along, CallError, Output, Recorder, ToolError};
use crate::{conversation, events};

/// Tools whose calls of one process are carried out in the order in which they came: others see it.
const IN_ORDER: [&str; 7] = [
    "ask_parent",
    "cancel_assistant",
    FINAL_ANSWER,
    "reply_assistant",
    "send_message",
    "spawn_assistant",
    "update_status",
];

pub(super) async fn on_tool_call(
    link: Arc<Link>,
    params: ToolCallParams,
    cx: CallCx,
) -> Result<ToolCallResult, RpcError> {
    link.in_a_run()?;
    let (mut repeated, mut begun) = (false, false);
    let answered = match link.own(params.thread_id, &params.tool_name).await {
        Ok(()) => answer_call(&link, &params, &cx, &mut begun, &mut repeated).await,
        Err(error) => Err(error),
    };
    if let Err(error) = &answered
        && error.kind() == Some(Kind::BudgetExceeded)
    {
        link.agent_is_over(&error.message);
    }
    if answered.is_err() || repeated {
        link.answers_call(&params, begun, answered.as_ref().err()).await;
    }
    answered
}

/// Tells by `has_begun` that the call is in the record, by `repeated` that it was there before.
async fn answer_call(
    link: &Arc<Link>,
    params: &ToolCallParams,
    cx: &CallCx,
    has_begun: &mut bool,
    repeated: &mut bool,
) -> Result<ToolCallResult, RpcError> {
    if params.call_id.len() > CALL_ID_BYTES {
        let message = format!("the call_id has {} bytes, the most is {CALL_ID_BYTES}", params.call_id.len());
        return Err(RpcError::new(Kind::InvalidParams, message));
    }
    let kit = link.kit();
    let Some(item) = kit.find(&params.tool_name) else {
        let shown = tools::unknown_name(&params.tool_name);
        let (rule, message) = match kit.withholds(&link.host, &params.tool_name) {
            Some(rule) => (format!("no tool of this assistant: {rule}"), format!("`{shown}` is not permitted: {rule}")),
            None => ("no tool of this assistant has that name".to_owned(), format!("there is no tool `{shown}`")),
        };
        permit::refuse(link, Some(&params.call_id), &shown, &rule, &params.arguments).await;
        let message = format!("{message}; this assistant has: {}", kit.names());
        return Err(RpcError::new(Kind::UnknownTool, message));
    };
    if IN_ORDER.contains(&params.tool_name.as_str()) {
        let its_turn = async {
            cx.turn.come().await;
            Ok(())
        };
        link.while_needed(cx, its_turn).await?;
    } else {
        cx.turn.pass();
    }
    let recorder = Recorder { process: link.row.id, call_id: params.call_id.clone(), tool: params.tool_name.clone() };
    let (asked, limit) = (recorder.clone(), link.limits.tool_calls);
    let arguments = params.arguments.clone();
    // A model of ours has said that it calls it; what an agent's says, nobody else tells.
    let said = link.is_agent().then(|| as_called(&params.call_id, &params.tool_name, arguments.clone()));
    let begun = link.host.store().write(move |tx| {
        if !process_table::may_act(tx.db, Caller::Process(asked.process))? {
            return Err(NotBegun::Rpc(cancelled("the process has ended or is cancelled")));
        }
        let begun = asked.begin(tx, &arguments)?;
        if matches!(begun, Begun::New) && process_table::count_tool_call(tx, asked.process)? > limit {
            return Err(NotBegun::Rpc(RpcError::new(Kind::BudgetExceeded, tool_calls_done(limit))));
        }
        if let (Begun::New, Some(said)) = (&begun, &said) {
            conversation::append(tx, asked.process, [(said, None)])?;
        }
        tx.wake(asked.process);
        Ok(begun)
    });
    let _in_flight = link.pulse.exempt();
    let call = || link.while_needed(cx, call_tool(link, item, params, cx, &recorder));
    // A question is asked once, however often a call is made.
    let at_once = tools::only_looks(&link.host, &params.tool_name) && !permit::asks(link, item, &params.arguments);
    let (begun, called) = if at_once {
        let (begun, called) = tokio::join!(begun, call());
        (begun?, Some(called))
    } else {
        (begun.await?, None)
    };
    match begun {
        Begun::Repeated(result) => {
            *repeated = true;
            return Ok(*result);
        }
        Begun::InFlight => {
            let message = format!("the call `{}` is being answered already", params.call_id);
            return Err(RpcError::new(Kind::InvalidRequest, message));
        }
        Begun::New => *has_begun = true,
    }
    let called = match called {
        Some(called) => called,
        None => call().await,
    };
    let called = match called {
        Ok(called) => link.while_needed(cx, finish(link, &recorder, called)).await,
        Err(error) => Err(error),
    };
    if let Err(error) = &called {
        // A call that was given up has a result too: it is not made again.
        let result = record::as_result(json!({ "code": "cancelled", "message": error.message }), true);
        let process = link.row.id;
        let given_up = link.host.store().write(move |tx| {
            tx.wake(process);
            recorder.give_up(tx, &result)
        });
        given_up.await.map_err(|error: StoreError| internal(&error))?;
    }
    called
}

/// What came of a call.
enum Called {
    /// It is recorded, with what it handed over.
    Recorded(ToolCallResult),
    /// Nothing is recorded yet.
    New(ToolCallResult),
    /// The same of a tool that may give anything: it is put away first.
    Given(ToolCallResult),
    /// It was given up or failed: it may have recorded a result of its own meanwhile, which stands.
    Unclear(ToolCallResult),
}

async fn call_tool(
    link: &Link,
    item: &Item,
    params: &ToolCallParams,
    cx: &CallCx,
    recorder: &Recorder,
) -> Result<Called, RpcError> {
    let arguments = match &params.arguments {
        Value::Object(map) => Ok(map.clone()),
        Value::Null => Ok(Map::new()),
        other => Err(ToolError::bad_argument(format!("the arguments are an object, not {other}"), "Give an object.")),
    };
    let called = match arguments {
        Ok(arguments) if params.tool_name == FINAL_ANSWER => {
            // Also in the last turn, and whatever the rules: it reaches nothing.
            answer::hand_in(link, arguments).await
        }
        Ok(arguments) => {
            let within = tools::time_limit(&link.host, &params.tool_name, &link.limits);
            let permitted = async {
                if !item.for_blobs {
                    permit(link, item, &arguments, cx, recorder).await?;
                }
                let called = tokio::time::timeout(within, make(link, item, arguments, cx, recorder, within)).await;
                called.unwrap_or_else(|_| Err(ToolError::too_slow(within).into()))
            };
            tokio::select! {
                biased;
                hand_in = link.last_turn.until_told() => Err(hand_in.refusal().into()),
                called = permitted => called,
            }
        }
        Err(error) => Err(error.into()),
    };
    if let Err(CallError::Tool(error)) = &called {
        permit::note(link, Some(&recorder.call_id), &params.tool_name, error).await;
    }
    match called {
        Ok(output) if output.recorded => Ok(Called::Recorded(output.result())),
        Ok(output) if output.content.is_some() => Ok(Called::Given(output.result())),
        Ok(output) => Ok(Called::New(output.result())),
        Err(CallError::Tool(error)) => Ok(Called::Unclear(record::as_result(json!(error), true))),
        Err(CallError::UnknownTool(name)) => {
            Err(RpcError::new(Kind::UnknownTool, format!("there is no tool `{name}`")))
        }
    }
}

/// Makes a call that is permitted: the host's own tools and the app's by the table, others by their server.
async fn make(
    link: &Link,
    item: &Item,
    arguments: Map<String, Value>,
    cx: &CallCx,
    recorder: &Recorder,
    within: Duration,
) -> Result<Output, CallError> {
    let Some(served) = &item.served else {
        let along = Along {
            recorder: Some(recorder.clone()),
            handed_by: Some(recorder.call_id.clone()),
            turn: Some(cx.turn.clone()),
            ..link.along().await
        };
        let (caller, name) = (Caller::Process(link.row.id), &item.spec.name);
        if item.on.is_some() {
            let name = &recorder.tool;
            return subagents::call_of_run(&link.host, caller, name, arguments, cx.cancelled.clone(), along).await;
        }
        return tools::call(&link.host, caller, name, arguments, cx.cancelled.clone(), along).await;
    };
    match ask_server(link, served, arguments, within).await {
        Ok(given) => Ok(Output::of_server(given)),
        Err(error) => {
            let told = json!({ "server": served.server, "what": error.message, "failed": true });
            link.record(events::Kind::Server, told).await;
            Err(ToolError::new(error.code, error.message, "Go on without it, and say so.").into())
        }
    }
}

/// Has a server carry out a call. What it tells meanwhile is progress of the process.
async fn ask_server(
    link: &Link,
    served: &ServedTool,
    arguments: Map<String, Value>,
    within: Duration,
) -> Result<Given, ServerError> {
    let (steps, mut told) = mpsc::channel(STEPS_MAX);
    let kit = link.kit();
    let call = kit.servers.call(served, arguments, within, steps);
    tokio::pin!(call);
    loop {
        tokio::select! {
            biased;
            given = &mut call => return given,
            Some(step) = told.recv() => link.progress(&step.text, step.fraction).await,
        }
    }
}

/// Sees to it that a result is recorded, and gives the one that stands.
async fn finish(link: &Link, recorder: &Recorder, called: Called) -> Result<ToolCallResult, RpcError> {
    match called {
        Called::Recorded(result) => Ok(result),
        Called::New(result) => {
            // Behind it in the queue is whatever the runner does with it.
            let (recorder, recorded) = (recorder.clone(), result.clone());
            let finished = link.host.store().write_later(move |tx| recorder.finish(tx, &recorded));
            finished.await.map_err(|error| internal(&error))?;
            Ok(result)
        }
        Called::Given(result) => given::finish(link, recorder, result).await,
        Called::Unclear(result) => finish_first(link, recorder.clone(), result).await,
    }
}

/// Records a result and gives back the one that stands.
async fn finish_first(link: &Link, recorder: Recorder, result: ToolCallResult) -> Result<ToolCallResult, RpcError> {
    let process = link.row.id;
    let finished = link.host.store().write(move |tx| {
        tx.wake(process);
        recorder.finish(tx, &result)?;
        Ok(recorder.result(tx)?.unwrap_or(result))
    });
    finished.await.map_err(|error: StoreError| internal(&error))
}
