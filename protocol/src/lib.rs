//! The runner protocol, version 1: JSON-RPC 2.0 between a host and a running assistant.
//!
//! One UTF-8 JSON object a line, both ways on one pair of pipes. Both sides ask and both sides answer. Requests only:
//! every message has exactly one answer. In reading order:
//!
//! * [`methods`]: the two tables, what the host asks and what the runner asks;
//! * [`types`]: params, results and the messages of a conversation; [`ids`]: what they are known by;
//! * [`error`]: every error, its kind, number and meaning;
//! * [`wire`]: a line is a message; [`service`]: which handler answers which method; [`peer`]: ask and answer at once.

pub mod methods;
pub mod types;

pub mod ids;

pub mod error;
