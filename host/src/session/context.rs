//! What a runner is told of the processes and messages of its own.

use std::sync::Arc;

use assistant_protocol::error::RpcError;
use assistant_protocol::service::CallCx;
use assistant_protocol::types::{ContextParams, ServiceContext};

use super::link::{Link, internal};
use crate::caller::Caller;

/// Answers `on_aggregate_service_context`.
pub(super) async fn on_aggregate_service_context(
    link: Arc<Link>,
    params: ContextParams,
    cx: CallCx,
) -> Result<ServiceContext, RpcError> {
    link.own(params.thread_id, "on_aggregate_service_context").await?;
    let looked = async {
        let told = link.host.service_context(Caller::Process(link.row.id)).await;
        told.map_err(|error| internal(&error))
    };
    link.while_needed(&cx, looked).await
}
