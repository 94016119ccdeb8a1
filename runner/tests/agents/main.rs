//! Command-line agents as runners: against output that was recorded of real ones, against a stand-in that misbehaves, against
//! real programs with a stand-in for the API of their models, and killed at many moments.
#![cfg(unix)]

mod conversation;
mod every;
mod host;
#[cfg(target_os = "linux")]
mod kills;
mod misbehaving;
mod real;
mod recorded;
mod stand_in;
