//! Chaos: rounds in which clients, runners and hosts do as they like and are killed, and an oracle outside of the host
//! that knows what was answered and looks whether it is so. In reading order:
//!
//! * [`crate::dice`]: all choices, from a seed; `script`: what the assistants of a round do;
//! * `bad_runner`: what runners do that are none of ours; `door` and `line`: the host of a round and its clients;
//! * `worker`: what clients do, `followed`: what they follow; `ledger`: what they were answered; `killer`: who ends
//!   hosts and runners meanwhile;
//! * `round`: all of it, once; `verdict`: the ledger against the tables and a fresh client; [`crate::oracle`]: the tables
//!   against each other.

mod bad_runner;
mod door;
mod followed;
mod killer;
mod ledger;
mod line;
mod round;
mod script;
mod tables;
mod verdict;
mod worker;

pub use crate::dice::Dice;
pub use bad_runner::main as runner_main;
pub use door::Kind;
pub use ledger::Totals;
pub use round::{Round, Told};
