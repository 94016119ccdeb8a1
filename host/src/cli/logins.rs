//! Coding agents of this machine that somebody has logged in to: found by their programs and by the files and variables in
//! which they keep that, without starting any of them.
//!
//! What counts was tried with Claude Code 2.1.197, Codex 0.171.0, opencode 1.18.33 and Gemini CLI 0.61.0. A file can say that
//! there is a login, not that it still holds: whoever wants to know that tries it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use super::words::now_ms;
use crate::runners;

/// The longest file that is read, bytes.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Folders of PATH that are looked into.
const FOLDERS_MAX: usize = 256;

/// Whether our runner has adapters on this system.
pub(super) const ADAPTERS: bool = cfg!(unix);

/// A coding agent that our runner has an adapter for.
#[derive(Debug)]
pub(super) struct Agent {
    /// Which.
    pub(super) agent: runners::Agent,
    /// Its name for people.
    pub(super) title: &'static str,
    /// How one logs in to it.
    pub(super) login: &'static str,
    /// Variables that are a login.
    variables: &'static [&'static str],
    /// The file that says that there is one.
    file: fn(&Env<'_>) -> Option<PathBuf>,
}

impl Agent {
    /// Its name in the configuration, and that of its program.
    pub(super) fn name(&self) -> &'static str {
        self.agent.name()
    }
}

/// All, the first that is logged in to before the others.
pub(super) const AGENTS: &[Agent] = &[
    Agent {
        agent: runners::Agent::Claude,
        title: "Claude Code",
        login: "claude auth login",
        // ANTHROPIC_AUTH_TOKEN is none: it belongs to a gateway, whose address such an agent is not given.
        variables: &["CLAUDE_CODE_OAUTH_TOKEN"],
        file: claude,
    },
    Agent { agent: runners::Agent::Codex, title: "Codex", login: "codex login", variables: &[], file: codex },
    Agent {
        agent: runners::Agent::Opencode,
        title: "opencode",
        login: "opencode auth login",
        variables: &[],
        file: opencode,
    },
    Agent {
        agent: runners::Agent::Gemini,
        title: "Gemini CLI",
        login: "gemini, then /auth",
        variables: &[],
        file: gemini,
    },
];

/// What is known of an agent here.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Found {
    #[serde(skip)]
    pub(super) agent: &'static Agent,
    /// Its program; none where there is none on PATH.
    pub(super) program: Option<PathBuf>,
    /// What says that somebody is logged in to it: a file, or a variable.
    pub(super) login: Option<String>,
    /// The variable, where that is one: the agent has to be given it.
    pub(super) variable: Option<&'static str>,
}

impl Found {
    /// Whether it can be used as it is.
    pub(super) fn is_ready(&self) -> bool {
        ADAPTERS && self.program.is_some() && self.login.is_some()
    }
}

/// What stands in the environment.
struct Env<'a>(&'a dyn Fn(&str) -> Option<String>);

impl Env<'_> {
    fn get(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.trim().is_empty())
    }

    /// A folder that a variable names, else one below the home folder.
    fn folder(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        let named = self.get(variable).map(PathBuf::from);
        named.or_else(|| self.home().map(|home| home.join(below_home)))
    }

    fn home(&self) -> Option<PathBuf> {
        self.get("HOME").or_else(|| self.get("USERPROFILE")).map(PathBuf::from)
    }
}

/// Looks for all of them.
pub(super) fn find(env: &dyn Fn(&str) -> Option<String>) -> Vec<Found> {
    AGENTS.iter().map(|agent| look(agent, env)).collect()
}

/// Looks for one.
pub(super) fn look(agent: &'static Agent, env: &dyn Fn(&str) -> Option<String>) -> Found {
    let env = Env(env);
    let file = (agent.file)(&env);
    let variable = agent.variables.iter().copied().find(|name| file.is_none() && env.get(name).is_some());
    let login = file.map(|file| file.display().to_string()).or_else(|| variable.map(|name| format!("${name}")));
    Found { agent, program: program(agent.name(), env.get("PATH").as_deref()), login, variable }
}

/// A program of this name on PATH.
fn program(name: &str, path: Option<&str>) -> Option<PathBuf> {
    let endings: &[&str] = if cfg!(windows) { &[".exe", ".cmd"] } else { &[""] };
    std::env::split_paths(OsStr::new(path?))
        .take(FOLDERS_MAX)
        .filter(|folder| folder.is_absolute())
        .flat_map(|folder| endings.iter().map(move |ending| folder.join(format!("{name}{ending}"))))
        .find(|file| may_run(file))
}

fn may_run(file: &Path) -> bool {
    let Ok(data) = std::fs::metadata(file) else { return false };
    #[cfg(unix)]
    let runs = std::os::unix::fs::PermissionsExt::mode(&data.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let runs = true;
    data.is_file() && runs
}

/// The file, if it holds JSON that `says` so.
fn that_says(file: PathBuf, says: impl Fn(&Value) -> bool) -> Option<PathBuf> {
    let data = std::fs::metadata(&file).ok().filter(|data| data.is_file() && data.len() <= FILE_BYTES_MAX)?;
    let text = if data.len() > 0 { std::fs::read(&file).ok()? } else { return None };
    let value: Value = serde_json::from_slice(&text).ok()?;
    says(&value).then_some(file)
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.trim().is_empty())
}

/// Its file of tokens; its own file where the tokens are in the keychain of macOS, or where it made a key of the login. A
/// program that tells a key is none: it stands in settings that do not come along.
fn claude(env: &Env<'_>) -> Option<PathBuf> {
    let folder = env.folder("CLAUDE_CONFIG_DIR", ".claude")?;
    let own = match env.get("CLAUDE_CONFIG_DIR") {
        Some(_) => folder.join(".claude.json"),
        None => env.home()?.join(".claude.json"),
    };
    that_says(folder.join(".credentials.json"), |told| is_login(&told["claudeAiOauth"]))
        .or_else(|| that_says(own, |told| is_text(&told["primaryApiKey"]) || in_keychain(told)))
}

/// Whether it has a token that holds, or one for which it gets another.
fn is_login(told: &Value) -> bool {
    let holds = told["expiresAt"].as_i64().is_none_or(|until_ms| until_ms > now_ms());
    is_text(&told["accessToken"]) && (holds || is_text(&told["refreshToken"]))
}

fn in_keychain(told: &Value) -> bool {
    cfg!(target_os = "macos") && told["oauthAccount"].is_object()
}

fn codex(env: &Env<'_>) -> Option<PathBuf> {
    let file = env.folder("CODEX_HOME", ".codex")?.join("auth.json");
    that_says(file, |told| is_text(&told["OPENAI_API_KEY"]) || is_text(&told["tokens"]["access_token"]))
}

fn opencode(env: &Env<'_>) -> Option<PathBuf> {
    let file = env.folder("XDG_DATA_HOME", ".local/share")?.join("opencode/auth.json");
    that_says(file, |told| told.as_object().is_some_and(|providers| !providers.is_empty()))
}

/// Tokens alone are not enough: its settings have to say that they are to be used.
fn gemini(env: &Env<'_>) -> Option<PathBuf> {
    const OAUTH: &str = "oauth-personal";
    let folder = env.folder("GEMINI_CLI_HOME", "")?.join(".gemini");
    let chosen = |told: &Value| told["security"]["auth"]["selectedType"] == OAUTH || told["selectedAuthType"] == OAUTH;
    that_says(folder.join("settings.json"), chosen)?;
    that_says(folder.join("oauth_creds.json"), |told| is_text(&told["refresh_token"]) || is_text(&told["access_token"]))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// What is found of an agent in a home folder with these files.
    fn check(name: &str, files: &[(&str, &str)], variables: &[(&str, &str)], expected: Option<&str>) {
        let dir = tempfile::tempdir().expect("a folder");
        let home = dir.path();
        for (file, text) in files {
            let file = home.join(file);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("made");
            std::fs::write(file, text).expect("a file");
        }
        let env = |name: &str| match name {
            "HOME" => Some(home.display().to_string()),
            name => variables
                .iter()
                .find(|(variable, _)| *variable == name)
                .map(|(_, value)| value.replace('~', &home.display().to_string())),
        };
        let agent = AGENTS.iter().find(|agent| agent.name() == name).expect("known");
        let found = look(agent, &env);
        let login = found.login.map(|login| login.replace(&format!("{}/", home.display()), ""));
        assert_eq!(login.as_deref(), expected, "{name} {files:?} {variables:?}");
    }

    #[test]
    fn a_login_is_known_by_what_the_agents_keep() {
        let oauth = r#"{"claudeAiOauth":{"accessToken":"t","refreshToken":"r","expiresAt":1}}"#;
        let expired = r#"{"claudeAiOauth":{"accessToken":"t","expiresAt":1}}"#;
        check("claude", &[(".claude/.credentials.json", expired)], &[], None);
        let holds = r#"{"claudeAiOauth":{"accessToken":"t","expiresAt":32503680000000}}"#;
        check("claude", &[(".claude/.credentials.json", holds)], &[], Some(".claude/.credentials.json"));
        check("claude", &[], &[], None);
        check("claude", &[(".claude/.credentials.json", oauth)], &[], Some(".claude/.credentials.json"));
        check("claude", &[(".claude/.credentials.json", r#"{"claudeAiOauth":null,"mcpOAuth":{}}"#)], &[], None);
        check("claude", &[(".claude/.credentials.json", "")], &[], None);
        check("claude", &[(".claude/.credentials.json", "\u{0}\u{1}{")], &[], None);
        check("claude", &[(".claude.json", r#"{"primaryApiKey":"k"}"#)], &[], Some(".claude.json"));
        check("claude", &[(".claude/settings.json", r#"{"apiKeyHelper":"echo k"}"#)], &[], None);
        let elsewhere = [("CLAUDE_CONFIG_DIR", "~/c")];
        check("claude", &[("c/.credentials.json", oauth)], &elsewhere, Some("c/.credentials.json"));
        check("claude", &[(".claude/.credentials.json", oauth)], &elsewhere, None);
        check("claude", &[], &[("CLAUDE_CODE_OAUTH_TOKEN", "t")], Some("$CLAUDE_CODE_OAUTH_TOKEN"));
        check("claude", &[], &[("CLAUDE_CODE_OAUTH_TOKEN", " ")], None);
        check("claude", &[], &[("ANTHROPIC_AUTH_TOKEN", "t")], None);
        check("codex", &[(".codex/auth.json", r#"{"OPENAI_API_KEY":"k"}"#)], &[], Some(".codex/auth.json"));
        check("codex", &[(".codex/auth.json", r#"{"OPENAI_API_KEY":null,"tokens":null}"#)], &[], None);
        let tokens = r#"{"OPENAI_API_KEY":null,"tokens":{"access_token":"a"}}"#;
        check("codex", &[("ch/auth.json", tokens)], &[("CODEX_HOME", "~/ch")], Some("ch/auth.json"));
        let file = ".local/share/opencode/auth.json";
        check("opencode", &[(file, "{}")], &[], None);
        check("opencode", &[(file, r#"{"anthropic":{"type":"api","key":"k"}}"#)], &[], Some(file));
        let creds = (".gemini/oauth_creds.json", r#"{"refresh_token":"r"}"#);
        let settings = (".gemini/settings.json", r#"{"security":{"auth":{"selectedType":"oauth-personal"}}}"#);
        check("gemini", &[creds], &[], None);
        check("gemini", &[settings], &[], None);
        check("gemini", &[creds, settings], &[], Some(".gemini/oauth_creds.json"));
    }

    #[test]
    fn programs_are_found_on_the_path() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = format!("relative:/nowhere:{}", dir.path().display());
        let file = dir.path().join("claude");
        assert_eq!(program("claude", Some(&path)), None);
        std::fs::write(&file, "").expect("a file");
        assert_eq!(program("claude", Some(&path)), None, "it cannot be run");
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("set");
        assert_eq!(program("claude", Some(&path)), Some(file));
        assert_eq!(program("claude", None), None);
    }
}
