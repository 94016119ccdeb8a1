//! Programs that tests write and start at once.
//!
//! Another process writes them: a child that this one forks meanwhile, for another test, keeps what this one has open
//! until it has become its program, and what is open for writing cannot be started ("Text file busy").

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a program that everyone may run, a script as a rule.
///
/// # Panics
/// It cannot be written.
pub fn write(path: &Path, text: &str) {
    let mut shell = shell("cat > \"$1\" && chmod 755 \"$1\"", &[path]);
    let mut child = shell.stdin(Stdio::piped()).spawn().expect("a shell");
    child.stdin.take().expect("piped").write_all(text.as_bytes()).expect("it reads");
    assert!(child.wait().expect("it ends").success(), "{} cannot be written", path.display());
}

/// Puts a program elsewhere: the same file where that can be, else a copy.
///
/// # Panics
/// It cannot be put there.
pub fn put(program: &Path, path: &Path) {
    let mut shell = shell("ln \"$1\" \"$2\" 2>/dev/null || cp \"$1\" \"$2\"", &[program, path]);
    assert!(shell.status().expect("a shell").success(), "{} cannot be put there", path.display());
}

fn shell(words: &str, paths: &[&Path]) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", words, "sh"]).args(paths);
    shell
}
