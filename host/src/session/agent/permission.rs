//! `on_permission_request`: whether an agent may call a tool of its own. The rules of the definition answer, else whoever is
//! to be asked.

use std::sync::{Arc, PoisonError};

use assistant_protocol::error::{Kind as ErrorKind, RpcError};
use assistant_protocol::service::CallCx;
use assistant_protocol::spec::bounds::CALL_ID_BYTES;
use assistant_protocol::types::{PermissionParams, PermissionResult};
use serde_json::{Map, Value};
use tokio::sync::OnceCell;

use super::calls::key;
use crate::caller::Caller;
use crate::session::link::Link;
use crate::session::permit::{self, Wants};
use crate::text::cut;
use crate::tools::policy::{ToolName, Verdict};
use crate::tools::{Along, Call, Recorder};

/// Calls of one process whose answers are remembered; the answer to a further one is not.
const ANSWERS_MAX: usize = 4_096;
/// Characters of the title of a call in a question.
const TITLE_CHARS_MAX: usize = 200;
/// The longest name of a tool, bytes.
const TOOL_BYTES_MAX: usize = 256;

/// Why a call has no answer that is remembered.
enum Not {
    /// It is not made now, and may be asked about again.
    Now(String),
    Rpc(RpcError),
}

pub(in crate::session) async fn on_permission_request(
    link: Arc<Link>,
    params: PermissionParams,
    cx: CallCx,
) -> Result<PermissionResult, RpcError> {
    link.of_agent()?;
    link.in_a_run()?;
    link.own(params.thread_id, "on_permission_request").await?;
    let bad = |message: String| Err(RpcError::new(ErrorKind::InvalidParams, message));
    let (id, name) = (params.call_id.len(), params.tool_name.trim().len());
    if id == 0 || id > CALL_ID_BYTES {
        return bad(format!("the call_id has {id} bytes; it has 1 to {CALL_ID_BYTES}"));
    }
    if name == 0 || params.tool_name.len() > TOOL_BYTES_MAX {
        return bad(format!("the tool_name has {name} bytes; it has 1 to {TOOL_BYTES_MAX}"));
    }
    let arguments = match &params.arguments {
        Value::Object(arguments) => arguments.clone(),
        Value::Null => Map::new(),
        other => return bad(format!("the arguments are an object, not {}", cut(&other.to_string(), TITLE_CHARS_MAX))),
    };
    if let Some(over) = link.over() {
        return Ok(denied(over.message));
    }
    let _in_flight = link.pulse.exempt();
    let answer = answer_of(&link, key(&params.call_id, &params.tool_name, &params.arguments));
    let judged = answer.get_or_try_init(|| async {
        let judging = async { Ok(judge(&link, &params, arguments, &cx).await) };
        link.while_needed(&cx, judging).await.map_err(Not::Rpc)?
    });
    match judged.await {
        Ok(answer) => Ok(answer.clone()),
        Err(Not::Now(why)) => Ok(denied(why)),
        Err(Not::Rpc(error)) => Err(error),
    }
}

fn denied(reason: String) -> PermissionResult {
    PermissionResult { allowed: false, reason: Some(reason) }
}

/// Where the answer to a call is, or will be: who asks beside another one waits for the same. A call of the same id with
/// another tool or other arguments is another one.
fn answer_of(link: &Link, key: String) -> Arc<OnceCell<PermissionResult>> {
    let mut answers = link.agent.answers.lock().unwrap_or_else(PoisonError::into_inner);
    match answers.get(&key) {
        Some(known) => known.clone(),
        None => {
            let new = Arc::new(OnceCell::new());
            if answers.len() < ANSWERS_MAX {
                answers.insert(key, new.clone());
            }
            new
        }
    }
}

async fn judge(
    link: &Link,
    params: &PermissionParams,
    arguments: Map<String, Value>,
    cx: &CallCx,
) -> Result<PermissionResult, Not> {
    let name = params.tool_name.trim();
    let refused = async |rule: &str| {
        permit::refuse(link, Some(&params.call_id), name, rule, &params.arguments).await;
        Ok(denied(format!("the call of {name} is not permitted: {rule}")))
    };
    let policy = link.kit().policy.clone();
    let policy = match link.briefing() {
        Some(briefing) if briefing.only_looks => policy.only_looking(),
        _ => policy,
    };
    let why = match policy.judge_own(name, &arguments) {
        Verdict::Allow => return Ok(PermissionResult { allowed: true, reason: None }),
        Verdict::Deny { rule } => return refused(&rule).await,
        Verdict::Ask { why } => why,
    };
    let recorder = Recorder { process: link.row.id, call_id: params.call_id.clone(), tool: name.to_owned() };
    let along = Along { recorder: Some(recorder), turn: Some(cx.turn.clone()), ..link.along().await };
    let call = Call { host: link.host.clone(), caller: Caller::Process(link.row.id), arguments, along };
    let title = params.title.as_deref().map(|title| cut(&crate::text::one_line(title), TITLE_CHARS_MAX));
    let wants = Wants { tool: ToolName::of_agent(name), name, title: title.as_deref() };
    match permit::ask(link, &call, &wants, why).await {
        Ok(()) => Ok(PermissionResult { allowed: true, reason: None }),
        Err(error) if error.retryable => Err(Not::Now(format!("{}. {}", error.message, error.hint))),
        Err(error) if permit::is_refusal(&error) => {
            permit::refuse(link, Some(&params.call_id), name, &error.message, &Value::Null).await;
            Ok(denied(error.message))
        }
        Err(error) => Err(Not::Now(error.message)),
    }
}
