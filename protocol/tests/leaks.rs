//! 100,000 calls over one link between two processes, ended in every way and begun by both sides: afterwards neither
//! side holds an entry, a task, a descriptor or memory of them.
//!
//! A program of its own, as other tests in the process would open descriptors too.

#[cfg(unix)]
#[path = "leaks/unix.rs"]
mod platform;

#[cfg(unix)]
fn main() {
    platform::main();
}

/// The two processes talk over pipes of Unix.
#[cfg(not(unix))]
fn main() {}
