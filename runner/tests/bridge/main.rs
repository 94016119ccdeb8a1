//! The way back of an agent: real bridges, real MCP clients, and a host that answers by the names of its tools.
#![cfg(unix)]

mod calls;
mod kit;
mod real;
mod runs;
mod strangers;
