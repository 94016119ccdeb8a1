//! What an agent asks for before a call of its own: judged by the host, answered by one of the agent's own options.

use std::path::PathBuf;

use agent_client_protocol::v1::schema::{PermissionOption, ToolKind};
use assistant_protocol::error::RpcError;

use super::calls::Call;
use super::link::Question;
use crate::adapter::Run;
use crate::adapter::ids::Ids;
use crate::adapter::run::ends_run;

/// A call to be judged.
pub(super) struct Asked {
    pub(super) call: Call,
    /// Where the agent works.
    pub(super) dir: PathBuf,
    pub(super) call_id: String,
    pub(super) ids: Ids,
    pub(super) options: Vec<PermissionOption>,
    pub(super) question: Question,
}

/// Has the host judge a call, and answers the agent. What is to be told, where the agent has no option for it.
///
/// # Errors
/// The run is over.
pub(super) async fn judge(run: Run, asked: Asked) -> Result<Option<(String, String)>, RpcError> {
    let Asked { call, dir, call_id, ids, options, question } = asked;
    let allowed = is_allowed(&run, &call, dir, &call_id, &ids).await?;
    if question.answer(&options, allowed) {
        return Ok(None);
    }
    let what = format!("an answer to `{}`", call.shown().tool_name);
    let why = if allowed { "allow" } else { "refuse" };
    Ok(Some((
        what,
        format!("the agent has no option to {why} this call only, so it is told that its turn is cancelled"),
    )))
}

/// Each thing that the call is about has to be allowed.
async fn is_allowed(run: &Run, call: &Call, dir: PathBuf, call_id: &str, ids: &Ids) -> Result<bool, RpcError> {
    if run.brief().readonly && call.kind == ToolKind::SwitchMode {
        return Ok(false);
    }
    let title = Some(call.title.clone()).filter(|title| !title.is_empty());
    for (named, number) in call.named(&dir).into_iter().zip(1..) {
        let call_id = if number == 1 { call_id.to_owned() } else { ids.new_id(&format!("{call_id}/{number}")) };
        match run.may(call_id, named.tool_name, named.arguments, title.clone()).await {
            Ok(judged) if judged.allowed => {}
            Ok(_) => return Ok(false),
            Err(error) if !ends_run(&error) => {
                crate::complain(&format!("the host did not judge a call, so it is refused: {error}"));
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}
