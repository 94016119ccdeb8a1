//! The tests that need more than one crate: real processes, a real store, real clients.

mod again;
#[cfg(target_os = "linux")]
mod agents;
mod asking;
mod authoring;
mod bad_input;
mod blobs;
mod budgets;
mod cascade;
mod checking;
mod commands;
mod continued;
mod crash;
mod day_one;
mod deliver;
#[cfg(target_os = "linux")]
mod document_000;
#[cfg(target_os = "linux")]
mod document_001;
#[cfg(target_os = "linux")]
mod document_002;
#[cfg(target_os = "linux")]
mod document_003;
#[cfg(target_os = "linux")]
mod document_004_rows;
#[cfg(target_os = "linux")]
mod documents;
#[cfg(target_os = "linux")]
mod doors;
#[cfg(target_os = "linux")]
mod embedding;
#[cfg(target_os = "linux")]
mod endings;
#[cfg(unix)]
mod escapes;
#[cfg(target_os = "linux")]
mod faults;
mod finding;
mod following;
mod handing;
#[cfg(target_os = "linux")]
mod hooks;
mod inputs;
mod interop;
mod kit;
#[cfg(target_os = "linux")]
mod launchers;
mod life;
mod limits;
mod live;
#[cfg(unix)]
mod load;
mod mail;
mod mcp;
mod misfits;
mod mixed;
mod models;
mod mutants;
mod permissions;
mod plans;
mod progress;
mod questions;
mod replay;
mod results;
#[cfg(target_os = "linux")]
mod rules;
#[cfg(unix)]
mod runners;
mod schemas;
#[cfg(target_os = "linux")]
mod seeing;
#[cfg(target_os = "linux")]
mod servers;
mod sessions;
#[cfg(unix)]
mod setup_model;
mod spawn;
mod specification;
mod stall;
#[cfg(target_os = "linux")]
mod store;
#[cfg(target_os = "linux")]
mod stored;
#[cfg(target_os = "linux")]
mod talking;
mod tidy;
mod time;
#[cfg(target_os = "linux")]
mod transcripts;
#[cfg(unix)]
mod trust;
mod waits;
#[cfg(target_os = "linux")]
mod within;
#[cfg(target_os = "linux")]
mod worktrees;

/// The programs under test.
const HOST: &str = env!("CARGO_BIN_EXE_host-under-test");
const RUNNER: &str = env!("CARGO_BIN_EXE_runner-under-test");
#[cfg(target_os = "linux")]
const PUPPET: &str = env!("CARGO_BIN_EXE_puppet-runner");
#[cfg(target_os = "linux")]
const SERVER: &str = env!("CARGO_BIN_EXE_fake-server");
const FAKE_RUNNER: &str = env!("CARGO_BIN_EXE_fake-runner");
