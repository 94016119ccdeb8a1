//! The runner.
fn main() {}
