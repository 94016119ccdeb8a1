//! `assistant-runner acp` as its host sees it: with an agent that does well and badly, and with real ones.
#![cfg(all(feature = "adapters", unix))]

mod host;
#[cfg(target_os = "linux")]
mod kills;

mod fake;

mod well;

mod badly;

mod real;
