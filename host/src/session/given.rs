//! What tools, models and runners give: pictures, files and long texts are stored in the commit of what names them.

use std::sync::Arc;

use assistant_protocol::error::RpcError;
use assistant_protocol::ids::ProcessId;
use assistant_protocol::peer::CallError;
use assistant_protocol::types::{Content, Part, RunResult, ToolCallResult};

use super::Runner;
use super::link::{Link, internal};
use crate::blobs::{self, Away, Given, NotKept};
use crate::host::Host;
use crate::limits::Limits;
use crate::store::{StoreError, Tx};
use crate::tools::{Recorder, as_text};

/// Does `job` with what was given, put away, and stores the blobs with it. Where they may not be kept, that is told in
/// their place.
///
/// # Errors
/// The store's.
pub(super) async fn store_with<J>(
    host: &Host,
    process: ProcessId,
    limits: &Limits,
    given: Given,
    job: J,
) -> Result<Vec<Part>, StoreError>
where
    J: Fn(&mut Tx<'_>, &[Part]) -> Result<(), StoreError> + Send + Sync + 'static,
{
    let Away { parts, blobs } = given.put_away(None).await;
    let told = Arc::new(parts);
    let again = told.clone();
    if blobs.is_empty() {
        // Behind it in the queue is whatever is done with it.
        host.store().write_later(move |tx| job(tx, &again)).await?;
        return Ok(Arc::unwrap_or_clone(told));
    }
    let (job, limits) = (Arc::new(job), *limits);
    let first = job.clone();
    let kept = host.store().write(move |tx| {
        blobs::keep(tx, process, blobs.iter(), &limits)?;
        first(tx, &again).map_err(NotKept::Store)
    });
    let why = match kept.await {
        Ok(()) => return Ok(Arc::unwrap_or_clone(told)),
        Err(NotKept::Store(error)) if !error.passes() => return Err(error),
        // A disk that is full takes the few bytes of words sooner than those of a picture.
        Err(error) => error.to_string(),
    };
    let told = Arc::new(given.put_away(Some(&why)).await.parts);
    let again = told.clone();
    host.store().write_later(move |tx| job(tx, &again)).await?;
    Ok(Arc::unwrap_or_clone(told))
}

/// Records the result of a tool that may give anything, as it is put away.
pub(super) async fn finish(
    link: &Link,
    recorder: &Recorder,
    result: ToolCallResult,
) -> Result<ToolCallResult, RpcError> {
    let ToolCallResult { content, structured_content, is_error, end_run } = result;
    // Data has no beginning that would be data: what is longer than an answer is there as text.
    let most = link.limits.answer_chars as usize;
    let structured_content = structured_content.filter(|value| as_text(value).chars().nth(most).is_none());
    let of = move |content: &[Part]| ToolCallResult {
        content: content.to_vec(),
        structured_content: structured_content.clone(),
        is_error,
        end_run,
    };
    let (recorder, recorded) = (recorder.clone(), of.clone());
    let given = Given::of_tool(content, &link.limits);
    let record = move |tx: &mut Tx<'_>, content: &[Part]| recorder.finish(tx, &recorded(content));
    let content = store_with(&link.host, link.row.id, &link.limits, given, record).await;
    Ok(of(&content.map_err(|error| internal(&error))?))
}

impl Runner {
    /// Puts the pictures of a result away, and gives those that it names.
    pub(super) async fn put_away(
        &self,
        answer: Result<RunResult, CallError>,
    ) -> Result<(Result<RunResult, CallError>, Vec<Part>), StoreError> {
        let Ok(mut result) = answer else { return Ok((answer, Vec::new())) };
        if let Some(given) = Given::of_content(&result.content, &self.limits) {
            let parts = store_with(&self.host, self.process, &self.limits, given, |_, _| Ok(())).await?;
            result.content = Content::Parts(parts);
        }
        let is_picture = |part: &&Part| matches!(part, Part::Image { blob: Some(_), data: None, .. });
        let pictures = match &result.content {
            Content::Parts(parts) => parts.iter().filter(is_picture).cloned().collect(),
            Content::Text(_) => Vec::new(),
        };
        Ok((Ok(result), pictures))
    }
}
