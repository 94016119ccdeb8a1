//! What the tests of Assistant Host stand on: programs and servers that behave like the real ones, and like broken ones.

pub mod bed;
#[cfg(unix)]
pub mod chaos;
pub mod dice;
pub mod doors;
pub mod fake_runner;
pub mod gate;
#[cfg(unix)]
pub mod launching;
pub mod load;
pub mod measure;
pub mod model_server;
pub mod oracle;
pub mod processes;
#[cfg(unix)]
pub mod programs;
#[cfg(unix)]
pub mod puppets;
pub mod search_bench;
pub mod stepped;
pub mod timing;
