//! Every bound of the protocol with its unit. The waits are what our host does unless it is configured otherwise.

use crate::peer::{
    CANCEL_GRACE_MS, IN_FLIGHT_MAX, LAST_READ_MS, LEAST_FRAME_BYTES, NOISE_LINES, PINGS_MAX, SMALL_FRAMES_MAX,
    WRITE_STUCK_MS,
};
use crate::types::MAX_FRAME_BYTES;
use crate::wire::{EXCERPT_BYTES, ID_BYTES_MAX, ID_MAX};

/// From the start of a runner to its answer to `initialize`, in milliseconds.
pub const LAUNCH_MS: u64 = 10_000;
/// From `cancel` to the answer of `run`, in milliseconds.
pub const GRACE_MS: u64 = 3_000;
/// From `shutdown` to the end of the program, in milliseconds.
pub const SHUTDOWN_MS: u64 = 2_000;
/// A run in which nothing happens, in milliseconds; what the host itself works on does not count.
pub const STALL_MS: u64 = 600_000;
/// The answer to a `ping`, in milliseconds.
pub const PING_MS: u64 = 10_000;
/// The `call_id` of a tool call, in bytes: it is a key in the record.
pub const CALL_ID_BYTES: usize = 1_024;
/// The text of one message of a thread, in bytes.
pub const MESSAGE_BYTES: u64 = 1024 * 1024;
/// The result of a process, in bytes.
pub const RESULT_BYTES: u64 = 1024 * 1024;

/// A bound.
#[derive(Debug, Clone, Copy)]
pub struct Bound {
    /// What it is known by.
    pub name: &'static str,
    /// The most, or the least where its text says so.
    pub value: u64,
    /// Of what: `bytes`, `ms`, or what is counted.
    pub unit: &'static str,
    /// What it bounds, and what happens beyond it.
    pub text: &'static str,
    /// The limit by which the host's configuration changes it.
    pub limit: Option<&'static str>,
}

const fn fixed(name: &'static str, value: u64, unit: &'static str, text: &'static str) -> Bound {
    Bound { name, value, unit, text, limit: None }
}

const fn limit(name: &'static str, value: u64, unit: &'static str, text: &'static str) -> Bound {
    Bound { name, value, unit, text, limit: Some(name) }
}

/// All bounds.
pub const BOUNDS: &[Bound] = &[
    fixed(
        "max_frame_bytes",
        MAX_FRAME_BYTES,
        "bytes",
        "The longest line that our host takes, newline not counted. A longer one ends the link: `protocol_error`.",
    ),
    fixed(
        "least_frame_bytes",
        LEAST_FRAME_BYTES,
        "bytes",
        "The least that a side may tell as its `max_frame_bytes`; the host reads less as this.",
    ),
    fixed("id_max", ID_MAX, "as a number", "The largest id that is a number: 2^53. Ids are integers from 0."),
    fixed("id_bytes", ID_BYTES_MAX as u64, "bytes", "The longest id that is a string, in UTF-8."),
    fixed(
        "call_id_bytes",
        CALL_ID_BYTES as u64,
        "bytes",
        "The longest `call_id`. A longer one is answered `invalid_params`; a model's own that is longer never reaches a runner.",
    ),
    fixed(
        "in_flight",
        IN_FLIGHT_MAX as u64,
        "requests",
        "Requests of one side that are not answered. One more is answered `overloaded`.",
    ),
    fixed("pings_in_flight", PINGS_MAX as u64, "requests", "Pings in flight beyond those."),
    fixed(
        "unread_refusals",
        SMALL_FRAMES_MAX as u64,
        "answers",
        "Answers to `ping` and `cancel_call`, and refusals, that wait to be read. Whoever asks on without reading them is taken for one who does not read: `protocol_error`.",
    ),
    fixed(
        "write_stuck_ms",
        WRITE_STUCK_MS,
        "ms",
        "How long a runner may take no byte while something is to be written to it. Then the link ends: `protocol_error`.",
    ),
    fixed(
        "cancel_call_grace_ms",
        CANCEL_GRACE_MS,
        "ms",
        "How long a call goes on after its `cancel_call`; then it is answered `cancelled`.",
    ),
    fixed(
        "last_read_ms",
        LAST_READ_MS,
        "ms",
        "How long the host reads on after a write failed: the last answers may still be in the pipe.",
    ),
    limit(
        "noise_lines",
        NOISE_LINES,
        "lines",
        "Lines that are no messages. With the last of them the process fails: `protocol_noise`.",
    ),
    fixed("noise_excerpt", EXCERPT_BYTES as u64, "bytes", "How much of such a line is kept for people."),
    limit(
        "launch_ms",
        LAUNCH_MS,
        "ms",
        "From the start of the program to the answer to `initialize`. Then the process fails: `launch_failed`.",
    ),
    limit("grace_ms", GRACE_MS, "ms", "From `cancel` to the answer to `run`. Then `shutdown_ms` begins."),
    limit(
        "shutdown_ms",
        SHUTDOWN_MS,
        "ms",
        "From `shutdown` to the end of the program. Then its whole process group is killed.",
    ),
    limit(
        "stall_ms",
        STALL_MS,
        "ms",
        "A run in which nothing happens; calls that the host works on do not count. After half of it the runner is asked `ping`; at the end of it the process fails: `stalled`.",
    ),
    limit("ping_ms", PING_MS, "ms", "The answer to that `ping`. Then the process fails at once: `stalled`."),
    limit("message_bytes", MESSAGE_BYTES, "bytes", "The text of a message of `send_message`. Longer ones are refused."),
    limit("result_bytes", RESULT_BYTES, "bytes", "The text of a result. What is longer is cut."),
];
