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
//! * doors: [`mcp`] (rmcp over the tool table), `door` (the same on a local socket, feature `socket`), `session` (one
//!   running runner and what it asks);
//! * [`tools`]: the table, and who may call what; [`caller`]: who asks;
//! * memory: [`registry`] and [`search`] (assistants), [`process_table`], [`message_box`], [`conversation`],
//!   [`events`], all over [`store`] (SQLite, one writer);
//! * outside: `supervisor`, [`launcher`], [`model`];
//! * people: [`config`], `cli` (feature `cli`), [`text`].
//!
//! An app embeds it so:
//!
//! ```no_run
//! # async fn embed(model: std::sync::Arc<dyn assistant_host::model::Model>) -> Result<(), Box<dyn std::error::Error>> {
//! use assistant_host::host::{Host, Options};
//! use assistant_host::launcher::RunnerCommand;
//!
//! let mut options = Options::new("state".into(), RunnerCommand::new("assistant-runner"));
//! options.models.insert("ours", model);
//! let host = Host::open(options).await?;
//! let client = host.connect_in_process("the app's user").await?;
//! println!("{} tools", client.list_all_tools().await?.len());
//! host.close().await;
//! # Ok(())
//! # }
//! ```

pub mod app;
pub mod caller;
pub mod changes;
#[cfg(feature = "cli")]
pub mod cli;
pub mod config;
pub mod conversation;
#[cfg(feature = "socket")]
pub mod door;
pub mod events;
pub mod hooks;
pub mod host;
pub mod launcher;
pub mod limits;
pub mod mcp;
pub mod message_box;
pub mod model;
mod names;
pub mod process_table;
pub mod registry;
pub mod search;
mod session;
pub mod store;
mod supervisor;
#[cfg(test)]
mod testing;
pub mod text;
pub mod tools;
