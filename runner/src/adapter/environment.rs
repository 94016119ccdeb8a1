//! What an agent gets of the environment: an allow-list, and what the configuration of the host names.

use std::ffi::{OsStr, OsString};

/// Variables that every agent gets. None of them holds a key.
const PASSED: &[&str] = &[
    "ASSISTANT_HOST_DEPTH",
    "ASSISTANT_PROCESS_ID",
    "CURL_CA_BUNDLE",
    "HOME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "NODE_EXTRA_CA_CERTS",
    "PATH",
    "REQUESTS_CA_BUNDLE",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TMPDIR",
    "TZ",
    "USER",
];
/// The same by how they begin.
const PASSED_BEGINNINGS: &[&str] = &["LC_", "XDG_"];
/// Proxies, in any case of letters.
const PROXIES: &[&str] = &["ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"];
/// Variables by which an agent knows that another one has started it: never passed, whoever names them.
const NESTED: &[&str] = &[
    "CLAUDECODE",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_EXECPATH",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_SSE_PORT",
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "CODEX_THREAD_ID",
    "GEMINI_CLI",
    "GEMINI_CLI_NO_RELAUNCH",
    "OPENCODE",
    "OPENCODE_PID",
    "OPENCODE_RUN_ID",
];

/// The part of `all` that an agent gets: the usual variables, the places of the agent's own (`places`), and those that the
/// host's configuration names (`named`).
pub(crate) fn of_agent(
    all: impl IntoIterator<Item = (OsString, OsString)>,
    places: &[&str],
    named: &[OsString],
) -> Vec<(OsString, OsString)> {
    all.into_iter().filter(|(name, _)| is_passed(name, places, named)).collect()
}

fn is_passed(name: &OsStr, places: &[&str], named: &[OsString]) -> bool {
    let text = name.to_str().unwrap_or_default();
    let upper = text.to_ascii_uppercase();
    let begins = PASSED_BEGINNINGS.iter().any(|beginning| text.starts_with(beginning));
    let wanted = PASSED.contains(&text) || begins || PROXIES.contains(&upper.as_str()) || places.contains(&text);
    (wanted || named.iter().any(|one| one == name)) && !NESTED.contains(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_listed_or_named_is_passed() {
        let passed =
            |name: &str| is_passed(name.as_ref(), &["CLAUDE_CONFIG_DIR"], &["MY_KEY".into(), "CLAUDECODE".into()]);
        for name in
            ["PATH", "HOME", "LC_TIME", "XDG_DATA_HOME", "https_proxy", "NO_PROXY", "CLAUDE_CONFIG_DIR", "MY_KEY"]
        {
            assert!(passed(name), "{name}");
        }
        for name in [
            "ANTHROPIC_API_KEY",
            "CLAUDECODE",
            "CLAUDE_CODE_ENTRYPOINT",
            "CODEX_HOME",
            "LD_PRELOAD",
            "NODE_OPTIONS",
            "",
        ] {
            assert!(!passed(name), "{name}");
        }
    }
}
