//! What tests share: a folder that goes away, the corpus, and a way to print.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder of its own, removed when dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("assistant-host-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let temp = fs::canonicalize(std::env::temp_dir()).expect("a temporary folder");
        let path = temp.join(name);
        fs::create_dir(&path).expect("a new folder");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).expect("the folder can be removed");
    }
}

/// The corpus of real agent files: `ASSISTANT_CORPUS`, else beside the workspace. None, and said, where it is absent.
pub(crate) fn corpus() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    let path = std::env::var_os("ASSISTANT_CORPUS").map_or_else(beside, PathBuf::from);
    if !path.is_dir() {
        say("skipped: no corpus; set ASSISTANT_CORPUS to its folder");
        return None;
    }
    Some(path)
}

/// Prints past the capture of the test harness's own output, where nothing else speaks.
pub(crate) fn say(text: &str) {
    writeln!(std::io::stderr(), "{text}").expect("stderr takes a line");
}
