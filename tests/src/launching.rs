//! What tests and measurements of launchers need: configurations, programs that may not be here, an ssh server of one's own.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use assistant_host::config::Config;
use assistant_host::launcher::Launcher;
use serde_json::json;

use crate::bed::SOON;

const SSHD: &str = "/usr/sbin/sshd";

/// The launchers of a configuration.
///
/// # Panics
/// Where it is none.
#[must_use]
pub fn launchers(text: &str) -> BTreeMap<String, Launcher> {
    let config = Config::parse(text, Path::new("/config.toml")).expect("a configuration");
    config.launchers(&|name| std::env::var(name).ok()).expect("launchers")
}

/// Says what is left out, on stderr.
pub fn skipped(why: &str) {
    // Nobody reads any more where this fails.
    drop(writeln!(std::io::stderr(), "skipped: {why}"));
}

/// Whether a command can be run here; what is skipped is told.
#[must_use]
pub fn can(argv: &[&str]) -> bool {
    let mut command = Command::new(argv[0]);
    command.args(&argv[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let why = match command.spawn().and_then(Child::wait_with_output) {
        Ok(told) if told.status.success() => return true,
        Ok(told) => format!("`{}` fails: {}", argv.join(" "), String::from_utf8_lossy(&told.stderr).trim()),
        Err(error) => format!("{} is not here: {error}", argv[0]),
    };
    skipped(&why);
    false
}

/// An ssh server on this machine, with keys of its own: `user` may log in, `stranger` may not.
#[derive(Debug)]
pub struct Sshd {
    dir: tempfile::TempDir,
    /// Where it listens.
    pub port: u16,
    child: Child,
}

impl Sshd {
    /// None where it cannot be started, which is told.
    ///
    /// # Panics
    /// Where a key or a file cannot be made, or it does not come to listen.
    #[must_use]
    pub fn start() -> Option<Self> {
        if !can(&["ssh", "-V"]) {
            return None;
        }
        if !Path::new(SSHD).exists() {
            skipped(&format!("{SSHD} is not here"));
            return None;
        }
        // As root it wants a folder for its lesser half; what is there already is as good.
        if let Err(error) = std::fs::create_dir_all("/run/sshd") {
            skipped(&format!("{SSHD} needs the folder /run/sshd: {error}"));
            return None;
        }
        let dir = tempfile::tempdir().expect("a folder");
        let at = |name: &str| dir.path().join(name).display().to_string();
        for key in ["host", "user", "stranger"] {
            let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &at(key)]).status();
            assert!(made.is_ok_and(|status| status.success()), "a key is made");
        }
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
        let text = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nStrictModes no\n\
             UsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n\
             MaxStartups 100\n",
            at("host"),
            at("user.pub"),
        );
        std::fs::write(at("sshd_config"), text).expect("a file");
        let public = std::fs::read_to_string(at("host.pub")).expect("a key");
        std::fs::write(at("known"), format!("[127.0.0.1]:{port} {public}")).expect("a file");
        let mut command = Command::new(SSHD);
        command.args(["-D", "-e", "-f", &at("sshd_config")]).stdin(Stdio::null());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < SOON, "it listens");
            std::thread::yield_now();
        }
        Some(Self { dir, port, child })
    }

    /// The configuration of a launcher that reaches it as the owner of `key`.
    #[must_use]
    pub fn launcher(&self, key: &str, more: &str) -> String {
        let at = |name: &str| self.dir.path().join(name).display().to_string();
        let (port, known) = (self.port.to_string(), format!("UserKnownHostsFile={}", at("known")));
        let options = json!([
            "-F",
            "none",
            "-p",
            port,
            "-i",
            at(key),
            "-o",
            "IdentitiesOnly=yes",
            "-o",
            "IdentityAgent=none",
            "-o",
            known,
        ]);
        format!("preset = \"ssh\"\nhost = \"127.0.0.1\"\noptions = {options}\n{more}")
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
