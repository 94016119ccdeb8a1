//! What a runner is told of the processes and messages of its own.

use std::sync::Arc;

use assistant_protocol::error::RpcError;
use assistant_protocol::methods::{Method, OnAggregateServiceContext};
use assistant_protocol::service::CallCx;
use assistant_protocol::types::{ContextParams, ServiceContext};

use super::link::{Link, internal};
use crate::caller::Caller;

/// The method.
const METHOD: &str = OnAggregateServiceContext::NAME;

/// Answers `on_aggregate_service_context`.
pub(super) async fn on_aggregate_service_context(
    link: Arc<Link>,
    params: ContextParams,
    cx: CallCx,
) -> Result<ServiceContext, RpcError> {
    link.in_a_run()?;
    let looked = async {
        link.own(params.thread_id, METHOD).await?;
        let told = link.host.service_context(Caller::Process(link.row.id)).await;
        told.map_err(|error| internal(&error))
    };
    let answer = link.while_needed(&cx, looked).await;
    link.answers(METHOD, &params, &answer).await;
    answer
}
