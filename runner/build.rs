//! Links the program at a fixed address on Linux, so that its tables of addresses are ready in the file: the processes that
//! run it share these pages. Filled in at each start they would cost every one of a thousand runners some 190 KiB. The heap,
//! the stack and the libraries lie at random addresses as always. A static build says so by itself: `.ci/static-runner`.

use std::env::var;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| var(name).is_ok_and(|one| one.split(',').any(|one| one == value));
    let is_static = is("CARGO_CFG_TARGET_FEATURE", "crt-static");
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") && !is_static {
        println!("cargo:rustc-link-arg-bin=assistant-runner=-no-pie");
    }
}
