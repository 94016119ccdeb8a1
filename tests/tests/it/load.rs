//! Many clients at once, for a moment; `load` does the same for a minute.

use std::time::Duration;

use conformance::load::{KINDS, run};

#[test]
fn many_clients_at_once_fail_at_nothing() {
    let found = run(env!("CARGO_BIN_EXE_host-under-test").into(), 64, Duration::from_secs(2));
    assert!(found.errors.is_empty(), "{}", found.errors.join("\n"));
    for (kind, times) in KINDS.iter().zip(&found.times) {
        assert!(times.len() >= 64, "each client has called {kind}: {}", times.len());
    }
}
