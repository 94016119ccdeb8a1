//! Computes a build id: a hash over the sources of a crate, by which programs know that they are of one build.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// FNV-1a, 64 bits: the same on every platform, and no dependency.
fn hash(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files(&path, found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}

/// The hash over all files below `root`, their paths included; line ends do not count.
pub(crate) fn sources(root: &Path) -> io::Result<u64> {
    let mut found = Vec::new();
    files(root, &mut found)?;
    let relative = |path: &Path| -> Vec<String> {
        let below = path.strip_prefix(root).unwrap_or(path);
        below.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect()
    };
    found.sort_by_key(|path| relative(path));
    let mut id = 0xcbf2_9ce4_8422_2325;
    for path in found {
        let content: Vec<u8> = fs::read(&path)?.into_iter().filter(|byte| *byte != b'\r').collect();
        id = hash(hash(hash(id, relative(&path).join("/").as_bytes()), b"\0"), &content);
        id = hash(id, b"\0");
    }
    Ok(id)
}
