//! Every limit with its default, its unit in its name. Configured as `[limits]`; a hit limit is told by its name.

use assistant_protocol::peer::NOISE_LINES;
use assistant_protocol::spec::bounds;
use serde::{Deserialize, Serialize};

mod usd;

pub use usd::Usd;

macro_rules! limits {
    ($($(#[doc = $doc:literal])* $name:ident: $type:ty = $default:expr;)*) => {
        /// What is allowed, for each session, tree, process or the host.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct Limits {
            $($(#[doc = $doc])* pub $name: $type,)*
        }

        impl Limits {
            /// The name of a limit that is 0 and would let nothing run. Waits and retries may be 0.
            #[must_use]
            pub fn zero(&self) -> Option<&'static str> {
                let may_be = [
                    "grace_ms", "grace_turn_ms", "shutdown_ms", "retry_for_ms", "client_wait_ms", "stderr_bytes",
                    "stderr_recorded_bytes", "host_idle_ms", "retention_days", "retention_bytes",
                    "session_grace_ms", "output_repairs", "server_idle_ms",
                ];
                let all = [$((stringify!($name), u64::from(self.$name)),)*];
                all.iter().find(|(name, value)| *value == 0 && !may_be.contains(name)).map(|(name, _)| *name)
            }
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($name: $default,)* }
            }
        }
    };
}

limits! {
    /// How deep assistants may spawn assistants; 1 is: the session only.
    depth: u32 = 3;
    /// The same in the profile `subagents`, but for assistants whose `allowed_callers` name their caller.
    subagents_depth: u32 = 1;
    /// Processes of a session that hold a slot.
    running_per_session: u32 = 16;
    /// Processes of the host that hold a slot.
    running_per_host: u32 = 64;
    /// Processes of a session that have not ended.
    living_per_session: u32 = 1_000;
    /// Processes of a session that wait for a slot.
    queue_per_session: u32 = 256;
    /// Spawns below one that a session made, itself included.
    spawns_per_tree: u32 = 200;
    /// From the start to the end of a process.
    wall_ms: u64 = 30 * 60 * 1_000;
    /// Of `wall_ms`, at its end: a last turn to hand in what there is. At most a quarter of `wall_ms`.
    grace_turn_ms: u64 = 60 * 1_000;
    /// Without progress of a process; its own waits are exempt.
    stall_ms: u64 = bounds::STALL_MS;
    /// The answer to a ping, after half of `stall_ms`.
    ping_ms: u64 = bounds::PING_MS;
    /// Model calls of a process.
    turns: u32 = 50;
    /// Tool calls of a process.
    tool_calls: u32 = 500;
    /// Model calls in flight in the host.
    model_calls: u32 = 8;
    /// Tokens of all model calls of a tree, read and written.
    tokens_per_tree: u64 = 2_000_000;
    /// Tokens of all model calls of the host in a day (UTC), read and written.
    tokens_per_day: u64 = 20_000_000;
    /// Cost of all model calls of a tree, US dollars; no limit unless one is set.
    cost_per_tree_usd: Usd = Usd::UNCAPPED;
    /// One tool call; its own waits are exempt.
    tool_call_ms: u64 = 5 * 60 * 1_000;
    /// From the start of a tool server until it has answered; what has to be downloaded first takes a while.
    server_start_ms: u64 = 60 * 1_000;
    /// How long a tool server is kept when nobody uses it.
    server_idle_ms: u64 = 5 * 60 * 1_000;
    /// Tool servers of the host that run at once.
    servers_per_host: u32 = 64;
    /// Calls in flight at one tool server; further ones wait.
    server_calls: u32 = 32;
    /// Tools of a tool server that are offered.
    tools_per_server: u32 = 256;
    /// The description of a tool of a server.
    server_description_bytes: u64 = 4 * 1024;
    /// The schema of a tool of a server; what is longer loses all but the names of its arguments.
    server_schema_bytes: u64 = 64 * 1024;
    /// One message of a tool server.
    server_message_bytes: u64 = 16 * 1024 * 1024;
    /// One message.
    message_bytes: u64 = bounds::MESSAGE_BYTES;
    /// Messages that wait for one receiver.
    queued_messages: u32 = 1_000;
    /// How long a process waits for the answer of a parent that is a process.
    answer_wait_ms: u64 = 300 * 1_000;
    /// How long a question can be answered.
    question_ms: u64 = 24 * 60 * 60 * 1_000;
    /// Questions of one process that wait for an answer.
    pending_questions: u32 = 100;
    /// The result of a process.
    result_bytes: u64 = bounds::RESULT_BYTES;
    /// How often a result that does not fit its schema is sent back.
    output_repairs: u32 = 1;
    /// The answer to `initialize`.
    launch_ms: u64 = bounds::LAUNCH_MS;
    /// From a cancel to the end of the run; the runner has `shutdown_ms` then.
    grace_ms: u64 = bounds::GRACE_MS;
    /// One run of a hook.
    hook_ms: u64 = 10 * 1_000;
    /// From `shutdown` to the kill.
    shutdown_ms: u64 = bounds::SHUTDOWN_MS;
    /// Lines of a runner that are no messages.
    noise_lines: u32 = NOISE_LINES as u32;
    /// Of a runner's stderr, kept in memory.
    stderr_bytes: u64 = 64 * 1024;
    /// Of a runner's stderr, recorded in its log.
    stderr_recorded_bytes: u64 = 10 * 1024 * 1024;
    /// How long a model call that may succeed later is made again, from its first failure on.
    retry_for_ms: u64 = 10 * 60 * 1_000;
    /// Most of the answer of a tool, characters.
    answer_chars: u32 = 40_000;
    /// One picture, file or long text that is kept by handle.
    blob_bytes: u64 = 16 * 1024 * 1024;
    /// All pictures, files and long texts of a tree, each counted once.
    tree_blob_bytes: u64 = 256 * 1024 * 1024;
    /// How long the processes of a session go on when its client has gone. A client of the same principal that asks
    /// about one of them starts this time anew.
    session_grace_ms: u64 = 10 * 60 * 1_000;
    /// How long a background host stays when no client is connected and nothing runs.
    host_idle_ms: u64 = 10 * 60 * 1_000;
    /// The longest wait of a call of an MCP client.
    client_wait_ms: u64 = 25 * 1_000;
    /// How long a tree of processes is kept after its end, days; 0 is for ever.
    retention_days: u32 = 30;
    /// The size of the database from which on the oldest ended trees are removed earlier; 0 is any.
    retention_bytes: u64 = 2 * 1024 * 1024 * 1024;
}
