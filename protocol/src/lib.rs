//! The runner protocol, version 1: JSON-RPC 2.0 between a host and a running assistant.
//!
//! One UTF-8 JSON object a line, both ways on one pair of pipes. Both sides ask and both sides answer. Requests only:
//! every message has exactly one answer, also when a handler panics. Whoever speaks it in another language needs the
//! first three modules as documents; whoever speaks it in Rust takes the rest as code. In reading order:
//!
//! * [`methods`]: the two tables, what the host asks and what the runner asks;
//! * [`types`]: params, results and the messages of a conversation; [`ids`]: what they are known by;
//! * [`task`]: a task as it is said to a model;
//! * [`error`]: every error, its kind, number and meaning;
//! * [`wire`]: a line is a message, or is counted as none;
//! * [`service`]: which handler answers which method;
//! * [`peer`]: ask and answer at once on one pair of pipes;
//! * [`spec`]: the protocol as a document.
//!
//! A program with one end of a link makes a [`service::Service`] of what it answers, hands it to [`peer::connect`]
//! with the two pipes, asks through the [`peer::Peer`] that it gets, and runs the link until it ends:
//!
//! ```
//! use std::sync::Arc;
//!
//! use assistant_protocol::error::RpcError;
//! use assistant_protocol::methods::{OnProgress, Ping};
//! use assistant_protocol::peer::{self, LinkEnd, PeerLimits};
//! use assistant_protocol::service::{CallCx, Service};
//! use assistant_protocol::types::{Empty, ProgressParams};
//!
//! async fn on_progress(_seen: Arc<()>, progress: ProgressParams, _call: CallCx) -> Result<Empty, RpcError> {
//!     assert_eq!(progress.text, "half of it");
//!     Ok(Empty {})
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), peer::CallError> {
//! let (a, b) = tokio::io::duplex(4096);
//! let (read, write) = tokio::io::split(a);
//! let host = Service::new(Arc::new(())).on(OnProgress, on_progress);
//! let (host, host_link) = peer::connect(read, write, host, PeerLimits::default());
//! let (read, write) = tokio::io::split(b);
//! let (runner, runner_link) = peer::connect(read, write, Service::new(Arc::new(())), PeerLimits::default());
//! let links = [tokio::spawn(host_link), tokio::spawn(runner_link)];
//!
//! host.call::<Ping>(&Empty {}).await?;
//! let thread_id = assistant_protocol::ids::ThreadId::mint();
//! let progress = ProgressParams { thread_id, text: "half of it".to_owned(), fraction: Some(0.5) };
//! runner.call::<OnProgress>(&progress).await?;
//!
//! runner.close();
//! for link in links {
//!     assert!(matches!(link.await.expect("ends").end, LinkEnd::Closed | LinkEnd::Eof));
//! }
//! # Ok(())
//! # }
//! ```

pub mod methods;
pub mod types;

pub mod ids;

pub mod task;

pub mod error;

pub mod wire;

pub mod service;

pub mod peer;

pub mod spec;

/// A hash over the sources of this crate, in hexadecimal: a host takes a runner for its own only if both have the same.
pub const BUILD_ID: &str = env!("ASSISTANT_PROTOCOL_BUILD_ID");
