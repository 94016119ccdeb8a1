//! What an agent behind a runner gets of the host's environment: its user's folders, the way to its model, and where its
//! own things lie. None of it is a key; who wants one passed on names its variable in the configuration.

use std::ffi::OsString;

use super::passed_on;

/// Variables by their names.
const NAMES: &[&str] = &[
    // Whose it is.
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANGUAGE",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
    "PATHEXT",
    "COMSPEC",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "WINDIR",
    // The way out.
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    // Where agents keep what is theirs.
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "CODEX_SQLITE_HOME",
    "OPENCODE_CONFIG",
    "OPENCODE_CONFIG_DIR",
    "OPENCODE_DB",
    "GEMINI_CLI_HOME",
];
/// What the names of further ones begin with.
const BEGINNINGS: [&str; 2] = ["LC_", "XDG_"];

/// What a runner gets of the host's environment besides what every runner gets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Passes {
    /// It runs an agent.
    pub agent: bool,
    /// Variables that the configuration names.
    pub names: Vec<String>,
}

impl Passes {
    /// The variables, with their values.
    pub(super) fn variables(&self) -> Vec<(String, OsString)> {
        let mut found: Vec<(String, OsString)> = Vec::new();
        if self.agent {
            found.extend(passed_on(NAMES).map(|(name, value)| (name.to_owned(), value)));
            found.extend(super::beginning_with(&BEGINNINGS));
        }
        found.extend(self.named());
        found
    }

    /// Those that the configuration names.
    pub(super) fn named(&self) -> Vec<(String, OsString)> {
        super::named(&self.names).collect()
    }
}
