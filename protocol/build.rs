//! Tells the crate its build id: a runner of another one is none of the host's build.

use std::path::PathBuf;
use std::{env, io};

#[path = "build/sources.rs"]
mod sources;

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or(io::ErrorKind::NotFound)?).join("src");
    println!("cargo:rerun-if-changed=src");
    println!("cargo:rustc-env=ASSISTANT_PROTOCOL_BUILD_ID={:016x}", sources::sources(&root)?);
    Ok(())
}
