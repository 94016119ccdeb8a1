//! Assistant Host: gives any MCP client and any desktop app a staff of assistants.
//!
//! **Tools change the tables; the supervisor makes the processes match the tables.** Two kinds of door, MCP clients and
//! runners, lead to one tool table. Tools touch only what the host remembers. One supervisor, woken by the process
//! table, starts runners; each runner's session ends it. So "an assistant spawns an assistant", queueing, and
//! cancelling from another window are all the same path: a row.
//!
//! In reading order:
//!
//! * [`host`]: what is shared, opened once, closed once; [`limits`]: what is allowed;
//!   [`awake`]: the clock of limits of time;
//! * doors: [`mcp`] (rmcp over the tool table), `door` (the same on a local socket, feature `socket`), `session` (one
//!   running runner and what it asks);
//! * [`tools`]: the table; who has what ([`tools::grants`]) and may call it with what ([`tools::policy`]); the same by the
//!   names of other systems ([`tools::profile`]); [`caller`]: who asks; [`app`]: tools and approval of an app;
//! * memory: [`registry`] and [`search`] (assistants), [`process_table`], [`message_box`], [`conversation`], [`blobs`]
//!   (pictures, files and long texts), [`events`] and [`changes`], all over [`store`] (SQLite, one writer);
//! * outside: `supervisor`, [`launcher`], [`runners`] (whose runner), [`launchers`] (where it is started), [`model`],
//!   [`servers`] (tools of others), [`hooks`], `worktrees`;
//! * results: [`output_schema`];
//! * again: [`replay`], a recorded run with no model and no tools;
//! * people: [`config`], [`single`] (one subagent, of a file of its own), [`trust`], `cli` (feature `cli`), [`text`];
//! * runners of others: `conformance` (the kit, feature `cli`);
//! * shared: `names` (enums whose names are stored), `whole` (files that are written whole or not at all).
//!
//! # A desktop app holds the host
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use assistant_host::app::{AppTool, Approve};
//! use assistant_host::changes::Change;
//! use assistant_host::host::{Ending, Host, Options};
//! use assistant_host::launcher::RunnerCommand;
//! use assistant_host::model::Model;
//! use assistant_host::registry::Definition;
//!
//! # async fn embed(model: Arc<dyn Model>, paint: AppTool, window: Arc<dyn Approve>, painter: Definition)
//! # -> Result<(), Box<dyn std::error::Error>> {
//! let mut options = Options::new("state".into(), RunnerCommand::new("assistant-runner"));
//! options.models.insert("ours", model); // the app's own model
//! options.app_tools.push(paint); // `app__paint`, for assistants that are granted it
//! options.approval = Some(window); // asked before calls that need it
//! let host = Host::open(options).await?;
//!
//! // A user interface keeps a copy: what there is, and all changes since.
//! let snapshot = host.snapshot().await?;
//! let mut changes = host.changes(&snapshot);
//! tokio::spawn(async move {
//!     while let Ok(change) = changes.next().await {
//!         match change {
//!             Change::Process { process, .. } => println!("{} is {}", process.id, process.status),
//!             Change::Delta(piece) => print!("{}", piece.text),
//!             Change::Event { .. } | Change::Assistant(_) | Change::AssistantRemoved(_) | Change::Missed(_) => {}
//!         }
//!     }
//! });
//!
//! host.create_assistant(painter).await?;
//! let session = host.open_session("the app's user", "main").await?;
//! let client = host.connect_session(session).await?; // an MCP client without a process and without JSON
//! println!("{} tools", client.list_all_tools().await?.len());
//!
//! host.end_session(session, Ending::Now).await?; // or AfterGrace, and `open_session_as` comes back to it
//! host.close().await; // ends every session, process and runner
//! # Ok(())
//! # }
//! ```
//!
//! `examples/embed.rs` is a whole app of less than a hundred lines, `examples/tauri` one with a window (commands and
//! events); `examples/sidecar.rs` is for apps that cannot link this library, because they link another SQLite (Cargo takes
//! one package with `links = "sqlite3"`); `examples/fleet` has configurations for runners on other machines.

pub mod app;
pub mod awake;
pub mod blobs;
pub mod caller;
pub mod changes;
#[cfg(feature = "cli")]
pub mod cli;
pub mod config;
#[cfg(feature = "cli")]
pub mod conformance;
pub mod conversation;
#[cfg(feature = "socket")]
pub mod door;
pub mod events;
pub mod hooks;
pub mod host;
pub mod launcher;
pub mod launchers;
pub mod limits;
pub mod mcp;
pub mod message_box;
pub mod model;
mod names;
pub mod output_schema;
pub mod process_table;
pub mod registry;
pub mod replay;
pub mod runners;
pub mod search;
pub mod servers;
mod session;
pub mod single;
pub mod store;
mod supervisor;
#[cfg(test)]
mod testing;
pub mod text;
pub mod tools;
pub mod trust;
mod whole;
mod worktrees;
