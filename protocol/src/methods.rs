//! The two tables of the protocol: what the host asks a runner, and what a runner asks the host.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::types::{
    CancelCallParams, CancelParams, ContextParams, DeliverMessageParams, Empty, InitializeParams, InitializeResult,
    LlmRequestParams, LlmRequestResult, ProgressParams, RecvMessageParams, RecvMessageResult, RunParams, RunResult,
    SendMessageParams, SendMessageResult, ServiceContext, ToolCallParams, ToolCallResult,
};

/// One method: its name and the shapes of its params and result.
pub trait Method {
    /// The name on the wire.
    const NAME: &'static str;
    /// What the asking side sends, always a JSON object.
    type Params: Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static;
    /// What the answering side gives.
    type Result: Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static;
}

/// A row of a table: a method as data.
#[derive(Debug, Clone, Copy)]
pub struct MethodInfo {
    /// The name on the wire.
    pub name: &'static str,
    /// What it is for.
    pub doc: &'static str,
    /// The schema of its params.
    pub params: fn(&mut SchemaGenerator) -> Schema,
    /// The schema of its result.
    pub result: fn(&mut SchemaGenerator) -> Schema,
}

macro_rules! methods {
    ($(#[$tdoc:meta])* $table:ident { $($(#[doc = $doc:literal])* $name:ident $wire:literal ($params:ty) -> $result:ty;)* }) => {
        $(
            $(#[doc = $doc])*
            #[derive(Debug, Clone, Copy)]
            pub struct $name;

            impl Method for $name {
                const NAME: &'static str = $wire;
                type Params = $params;
                type Result = $result;
            }
        )*

        $(#[$tdoc])*
        pub const $table: &[MethodInfo] = &[$(MethodInfo {
            name: $wire,
            doc: concat!($($doc, "\n",)*),
            params: |schemas| schemas.subschema_for::<$params>(),
            result: |schemas| schemas.subschema_for::<$result>(),
        },)*];
    };
}

methods! {
    /// What the host asks a runner.
    HOST_ASKS {
        /// The first request of a link: versions, identity and bounds.
        Initialize "initialize" (InitializeParams) -> InitializeResult;
        /// Does the task; answered when the run ends. May come again, never two at once; without `query` it means: ask
        /// the model again. The runner keeps its conversation until `shutdown`.
        Run "run" (RunParams) -> RunResult;
        /// Gives a message to a runner whose capabilities say `messages`; answered once its agent has it.
        DeliverMessage "deliver_message" (DeliverMessageParams) -> Empty;
        /// Ends the current `run` with stop_reason `cancelled`; before `run` it applies to the next one.
        Cancel "cancel" (CancelParams) -> Empty;
        /// Answered beside a running `run`, so that busy and stuck can be told apart.
        Ping "ping" (Empty) -> Empty;
        /// Ends the runner; then stdin is closed.
        Shutdown "shutdown" (Empty) -> Empty;
    }
}

methods! {
    /// What a runner asks the host.
    RUNNER_ASKS {
        /// Asks the model. The runner appends `inserted`, then `message`, to its conversation.
        OnLlmRequest "on_llm_request" (LlmRequestParams) -> LlmRequestResult;
        /// Calls a tool. A repeated call with the same `call_id` is answered with the first one's result.
        OnToolCall "on_tool_call" (ToolCallParams) -> ToolCallResult;
        /// Asks what is going on in the host, as a prompt and as data.
        OnAggregateServiceContext "on_aggregate_service_context" (ContextParams) -> ServiceContext;
        /// The tool `send_message`, for runners that use the mailbox themselves.
        SendMessage "send_message" (SendMessageParams) -> SendMessageResult;
        /// The tool `recv_message`, for runners that use the mailbox themselves.
        RecvMessage "recv_message" (RecvMessageParams) -> RecvMessageResult;
        /// Tells whoever watches how far the run is.
        OnProgress "on_progress" (ProgressParams) -> Empty;
    }
}

methods! {
    /// What either side asks.
    BOTH_ASK {
        /// Tells the other side to stop working on a request of ours, which still gets its one answer.
        CancelCall "cancel_call" (CancelCallParams) -> Empty;
    }
}
