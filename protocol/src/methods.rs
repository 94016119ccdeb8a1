//! The two tables of the protocol: what the host asks a runner, and what a runner asks the host.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::Kind;
use crate::spec::order::Stage::{self, New, Ready, Running};
use crate::types::{
    AgentEventParams, CancelCallParams, CancelParams, ContextParams, DeliverMessageParams, Empty, InitializeParams,
    InitializeResult, LlmRequestParams, LlmRequestResult, PermissionParams, PermissionResult, ProgressParams,
    RecvMessageParams, RecvMessageResult, RunParams, RunResult, SendMessageParams, SendMessageResult, ServiceContext,
    ToolCallParams, ToolCallResult,
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
    /// When it may be asked.
    pub stages: &'static [Stage],
    /// Its place among the others, in words.
    pub order: &'static str,
    /// The errors that it may be answered with, beside those of [`ANY_METHOD`].
    pub errors: &'static [MayFail],
    /// Examples as lines, see [`crate::spec::examples`].
    pub examples: &'static str,
    /// The schema of its params.
    pub params: fn(&mut SchemaGenerator) -> Schema,
    /// The schema of its result.
    pub result: fn(&mut SchemaGenerator) -> Schema,
    /// Reads params by their type, and writes them again.
    pub params_again: fn(Value) -> serde_json::Result<Value>,
    /// The same of a result.
    pub result_again: fn(Value) -> serde_json::Result<Value>,
}

/// An error that a method may be answered with.
#[derive(Debug, Clone, Copy)]
pub struct MayFail {
    /// The error.
    pub kind: Kind,
    /// When it is the answer.
    pub when: &'static str,
}

/// What any request may be answered with, by either side.
pub const ANY_METHOD: &[MayFail] = &[
    MayFail { kind: Kind::MethodNotFound, when: "the side that is asked does not answer this method" },
    MayFail { kind: Kind::InvalidParams, when: "the params are no object, or do not fit the method" },
    MayFail { kind: Kind::InternalError, when: "the handler panicked, was dropped, or could not store what it did" },
    MayFail { kind: Kind::Overloaded, when: "more requests are in flight, or more answers queued, than may be" },
    MayFail { kind: Kind::Cancelled, when: "the asking side sent `cancel_call` for it" },
    MayFail { kind: Kind::ShuttingDown, when: "the side that is asked takes no requests any more" },
    MayFail { kind: Kind::FrameTooLarge, when: "the answer would be longer than the asking side takes" },
];

/// All methods, with the sides that ask them.
pub fn all() -> impl Iterator<Item = (Asks, &'static MethodInfo)> {
    let of = |asks, table: &'static [MethodInfo]| table.iter().map(move |info| (asks, info));
    of(Asks::Host, HOST_ASKS).chain(of(Asks::Runner, RUNNER_ASKS)).chain(of(Asks::Both, BOTH_ASK))
}

/// The method of a name.
#[must_use]
pub fn find(name: &str) -> Option<(Asks, &'static MethodInfo)> {
    all().find(|(_, info)| info.name == name)
}

/// Which side asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    /// The host asks the runner.
    Host,
    /// The runner asks the host.
    Runner,
    /// Either.
    Both,
}

fn again<T: Serialize + DeserializeOwned>(value: Value) -> serde_json::Result<Value> {
    serde_json::to_value(serde_json::from_value::<T>(value)?)
}

macro_rules! methods {
    ($(#[$tdoc:meta])* $table:ident { $(
        $(#[doc = $doc:literal])*
        $name:ident $wire:literal ($params:ty) -> $result:ty,
            at [$($stage:ident)*] $order:literal
            fails { $($kind:ident $when:literal;)* }
    )* }) => {
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
            doc: concat!($($doc,)*).trim_ascii(),
            stages: &[$($stage,)*],
            order: $order,
            errors: &[$(MayFail { kind: Kind::$kind, when: $when },)*],
            examples: include_str!(concat!("spec/examples/", $wire, ".jsonl")),
            params: |schemas| schemas.subschema_for::<$params>(),
            result: |schemas| schemas.subschema_for::<$result>(),
            params_again: again::<$params>,
            result_again: again::<$result>,
        },)*];
    };
}

methods! {
    /// What the host asks a runner.
    HOST_ASKS {
        /// The first request of a link: versions, identity and bounds.
        Initialize "initialize" (InitializeParams) -> InitializeResult,
            at [New] "The first line of a link, once. A `run` may be written behind it before it is answered."
            fails {
                UnsupportedProtocol "the runner does not speak the version; `data.protocol_version` is the one that it speaks";
                InvalidRequest "it was answered before";
            }
        /// Does the task; answered when the run ends. May come again, never two at once; without `query` it means: ask
        /// the model again. The runner keeps its conversation until `shutdown`.
        Run "run" (RunParams) -> RunResult,
            at [New Ready] "Behind `initialize`; again once the one before is answered."
            fails {
                InvalidRequest "`initialize` was not answered with a result, or a `run` is going on";
                ModelFailed "the model call failed so: its error is passed on, `data` and all";
                ContextExceeded "the model call failed so";
                BudgetExceeded "a model call or a tool call failed so";
                DeadlineExceeded "a model call failed so: the time was up, and the last turn brought nothing";
                FrameTooLarge "the conversation is longer than the host's `max_frame_bytes`";
                InternalError "the runner failed";
            }
        /// Gives a message to a runner whose capabilities say `messages`; answered once its agent has it.
        DeliverMessage "deliver_message" (DeliverMessageParams) -> Empty,
            at [Ready Running] "After the first `run` was written, beside a `run` or between two; one at a time, in order."
            fails {
                MethodNotFound "the runner's capabilities do not say `messages`";
                InternalError "the agent did not take it: the process fails";
            }
        /// Ends the current `run` with stop_reason `cancelled`; before `run` it applies to the next one.
        Cancel "cancel" (CancelParams) -> Empty,
            at [Ready Running] "Beside a `run`, or before the one that it is meant for."
            fails {}
        /// Answered beside a running `run`, so that busy and stuck can be told apart.
        Ping "ping" (Empty) -> Empty,
            at [New Ready Running] "Any time. It and its answer overtake other lines."
            fails {}
        /// Ends the runner; then stdin is closed.
        Shutdown "shutdown" (Empty) -> Empty,
            at [New Ready Running] "The last line to a runner, also to one that refused `initialize` or did not end its `run`."
            fails {}
    }
}

methods! {
    /// What a runner asks the host.
    RUNNER_ASKS {
        /// Asks the model. The runner appends `inserted`, then `message`, to its conversation.
        OnLlmRequest "on_llm_request" (LlmRequestParams) -> LlmRequestResult,
            at [Running] "One at a time: a conversation has one model call in flight."
            fails {
                ForeignThread "`thread_id` is not the runner's own";
                ModelFailed "the provider failed: `data` has `provider`, `status` (or null) and `retryable`; the host has tried again already as long as it may";
                ContextExceeded "the conversation is longer than the model takes; `data` as of `model_failed`";
                BudgetExceeded "a limit of model calls, tokens or cost is reached, which the message names";
                DeadlineExceeded "the time was up, and in its last turn the model called tools";
                Cancelled "the run is over, or its process is cancelled or has ended";
            }
        /// Calls a tool. A repeated call with the same `call_id` is answered with the first one's result.
        OnToolCall "on_tool_call" (ToolCallParams) -> ToolCallResult,
            at [Running] "Behind the model's answer that wants it; several beside each other."
            fails {
                ForeignThread "`thread_id` is not the runner's own";
                UnknownTool "the assistant has no tool of this name; the message lists those that it has";
                InvalidRequest "a call with this `call_id` is being answered";
                NotPermitted "a rule forbids the call (our host tells that in a result with `is_error` mostly)";
                BudgetExceeded "the limit of tool calls is reached";
                DeadlineExceeded "the tool took too long (our host tells that in a result with `is_error`)";
                Cancelled "the run is over, or its process is cancelled or has ended";
            }
        /// Asks what is going on in the host, as a prompt and as data.
        OnAggregateServiceContext "on_aggregate_service_context" (ContextParams) -> ServiceContext,
            at [Running] "Any time in a run. The host tells the model of it by itself."
            fails {
                ForeignThread "`thread_id` is not the runner's own";
                Cancelled "the run is over";
            }
        /// The tool `send_message`, for runners that use the mailbox themselves.
        SendMessage "send_message" (SendMessageParams) -> SendMessageResult,
            at [Running] "Any time in a run."
            fails {
                NotPermitted "the definition does not grant the tool, a rule forbids it, or the thread is none of the process's family";
                InvalidParams "the tool refuses: `data.code` says why, as `unknown_thread` or `bad_argument`";
                BudgetExceeded "a limit is reached: `data.code` is `limit_` and its name";
                Cancelled "the run is over";
            }
        /// The tool `recv_message`, for runners that use the mailbox themselves.
        RecvMessage "recv_message" (RecvMessageParams) -> RecvMessageResult,
            at [Running] "Any time in a run."
            fails {
                NotPermitted "the definition does not grant the tool, a rule forbids it, or the thread is none of the process's family";
                InvalidParams "the tool refuses: `data.code` says why, as `unknown_thread` or `bad_argument`";
                Cancelled "the run is over";
            }
        /// Tells what an agent does that has its own model and tools: for the log, the limits and a later resume.
        OnAgentEvent "on_agent_event" (AgentEventParams) -> Empty,
            at [Running] "Any time in a run, in the order in which things happened; for runners whose capabilities say `agent`."
            fails {
                ForeignThread "`thread_id` is not the runner's own";
                BudgetExceeded "a limit of model calls, tool calls, tokens or cost is reached, which the message names: end the agent, and answer `run` with this error";
                Cancelled "the run is over, or its process is cancelled or has ended";
            }
        /// Asks whether an agent may call a tool of its own. The rules of the assistant answer, else whoever gave it the task.
        OnPermissionRequest "on_permission_request" (PermissionParams) -> PermissionResult,
            at [Running] "Before the agent's call is made; several beside each other."
            fails {
                ForeignThread "`thread_id` is not the runner's own";
                Cancelled "the run is over, or its process is cancelled or has ended";
            }
        /// Tells whoever watches how far the run is.
        OnProgress "on_progress" (ProgressParams) -> Empty,
            at [Running] "Any time in a run."
            fails {
                ForeignThread "`thread_id` is not the runner's own";
            }
    }
}

methods! {
    /// What either side asks.
    BOTH_ASK {
        /// Tells the other side to stop working on a request of ours, which still gets its one answer.
        CancelCall "cancel_call" (CancelCallParams) -> Empty,
            at [New Ready Running] "Any time, also for a request that is answered already. It and its answer overtake other lines."
            fails {}
    }
}
