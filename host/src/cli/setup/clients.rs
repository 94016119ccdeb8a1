//! The MCP clients that `setup` knows: one table, from their own documentation.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::edit::Format;

/// A system, as far as clients keep their files differently on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Platform {
    Linux,
    MacOs,
    Windows,
}

impl Platform {
    /// The one that this program runs on.
    pub(super) const HERE: Self = match () {
        () if cfg!(windows) => Self::Windows,
        () if cfg!(target_os = "macos") => Self::MacOs,
        () => Self::Linux,
    };
}

/// A folder that a client's own is in.
#[derive(Debug, Clone, Copy)]
enum Base {
    Home,
    /// `XDG_CONFIG_HOME`, else `.config` in the home folder; also where the system has another custom.
    Config,
    /// Where the system keeps the files of programs with windows: as [`Base::Config`] on Linux, `Application Support` on
    /// macOS, `APPDATA` on Windows.
    Programs,
}
use Base::{Config, Home, Programs};

/// What an entry looks like.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// `command` and `args`.
    Plain,
    /// The same with `type`.
    Typed,
    /// The program and its arguments are one list.
    OneList,
    /// With names of goose's own.
    Goose,
}

/// An MCP client.
pub(super) struct Client {
    /// What it is called on the command line.
    pub(super) name: &'static str,
    /// What people call it.
    pub(super) title: &'static str,
    /// The format of its file.
    pub(super) format: Format,
    /// The key that holds the servers.
    pub(super) under: &'static str,
    shape: Shape,
    /// The user's file: on Linux, macOS, Windows.
    user: [(Base, &'static str); 3],
    /// A variable that moves the folder of the user's file, and the file below it.
    moved: Option<(&'static str, &'static str)>,
    /// The project's file.
    project: Option<&'static str>,
    /// An ending that the file may have instead; used where there is one.
    other_ending: Option<&'static str>,
}

/// The same place on each system.
const fn same(base: Base, path: &'static str) -> [(Base, &'static str); 3] {
    [(base, path), (base, path), (base, path)]
}

/// All of them, by name.
pub(super) const CLIENTS: &[Client] = &[
    // https://code.claude.com/docs/en/mcp
    Client {
        name: "claude-code",
        title: "Claude Code",
        format: Format::Json,
        under: "mcpServers",
        shape: Shape::Typed,
        user: same(Home, ".claude.json"),
        moved: Some(("CLAUDE_CONFIG_DIR", ".claude.json")),
        project: Some(".mcp.json"),
        other_ending: None,
    },
    // https://modelcontextprotocol.io/docs/develop/connect-local-servers
    Client {
        name: "claude-desktop",
        title: "Claude Desktop",
        format: Format::Json,
        under: "mcpServers",
        shape: Shape::Plain,
        user: same(Programs, "Claude/claude_desktop_config.json"),
        moved: None,
        project: None,
        other_ending: None,
    },
    // https://developers.openai.com/codex/mcp
    Client {
        name: "codex",
        title: "Codex",
        format: Format::Toml,
        under: "mcp_servers",
        shape: Shape::Plain,
        user: same(Home, ".codex/config.toml"),
        moved: Some(("CODEX_HOME", "config.toml")),
        project: Some(".codex/config.toml"),
        other_ending: None,
    },
    // https://cursor.com/docs/mcp
    Client {
        name: "cursor",
        title: "Cursor",
        format: Format::Json,
        under: "mcpServers",
        shape: Shape::Plain,
        user: same(Home, ".cursor/mcp.json"),
        moved: None,
        project: Some(".cursor/mcp.json"),
        other_ending: None,
    },
    // https://geminicli.com/docs/tools/mcp-server
    Client {
        name: "gemini",
        title: "Gemini CLI",
        format: Format::Json,
        under: "mcpServers",
        shape: Shape::Plain,
        user: same(Home, ".gemini/settings.json"),
        moved: Some(("GEMINI_CLI_HOME", ".gemini/settings.json")),
        project: Some(".gemini/settings.json"),
        other_ending: None,
    },
    // https://goose-docs.ai/docs/guides/config-files
    Client {
        name: "goose",
        title: "goose",
        format: Format::Yaml,
        under: "extensions",
        shape: Shape::Goose,
        user: [
            (Config, "goose/config.yaml"),
            (Config, "goose/config.yaml"),
            (Programs, "Block/goose/config/config.yaml"),
        ],
        moved: Some(("GOOSE_PATH_ROOT", "config/config.yaml")),
        project: None,
        other_ending: None,
    },
    // https://opencode.ai/docs/mcp-servers
    Client {
        name: "opencode",
        title: "opencode",
        format: Format::Json,
        under: "mcp",
        shape: Shape::OneList,
        user: same(Config, "opencode/opencode.json"),
        moved: None,
        project: Some("opencode.json"),
        other_ending: Some("jsonc"),
    },
    // https://code.visualstudio.com/docs/copilot/reference/mcp-configuration
    Client {
        name: "vscode",
        title: "VS Code",
        format: Format::Json,
        under: "servers",
        shape: Shape::Typed,
        user: same(Programs, "Code/User/mcp.json"),
        moved: None,
        project: Some(".vscode/mcp.json"),
        other_ending: None,
    },
    // https://zed.dev/docs/ai/mcp
    Client {
        name: "zed",
        title: "Zed",
        format: Format::Json,
        under: "context_servers",
        shape: Shape::Plain,
        user: [(Config, "zed/settings.json"), (Config, "zed/settings.json"), (Programs, "Zed/settings.json")],
        moved: None,
        project: Some(".zed/settings.json"),
        other_ending: None,
    },
];

impl Client {
    /// The one of this name.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        CLIENTS.iter().find(|client| client.name == name)
    }

    /// The user's file; none where the environment names no home.
    pub(super) fn user_file(&self, platform: Platform, env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
        let folder = |name: &str| env(name).filter(|path| !path.is_empty()).map(PathBuf::from);
        if let Some((variable, file)) = self.moved
            && let Some(folder) = folder(variable)
        {
            return Some(folder.join(file));
        }
        let home = folder(if platform == Platform::Windows { "USERPROFILE" } else { "HOME" });
        let below = |path: &str| home.as_ref().map(|home| home.join(path));
        let (base, file) = match platform {
            Platform::Linux => self.user[0],
            Platform::MacOs => self.user[1],
            Platform::Windows => self.user[2],
        };
        let base = match (base, platform) {
            (Base::Home, _) => home.clone(),
            (Base::Config, _) | (Base::Programs, Platform::Linux) => {
                folder("XDG_CONFIG_HOME").or_else(|| below(".config"))
            }
            (Base::Programs, Platform::MacOs) => below("Library/Application Support"),
            (Base::Programs, Platform::Windows) => folder("APPDATA").or_else(|| below("AppData/Roaming")),
        };
        Some(self.ended(base?.join(file)))
    }

    /// The project's file; none where this client has none.
    pub(super) fn project_file(&self, project: &Path) -> Option<PathBuf> {
        self.project.map(|file| self.ended(project.join(file)))
    }

    /// The file with its other ending, where there is such a file.
    fn ended(&self, file: PathBuf) -> PathBuf {
        let other = self.other_ending.map(|ending| file.with_extension(ending));
        other.filter(|other| other.exists()).unwrap_or(file)
    }

    /// What is to stand in the entry, in this order.
    pub(super) fn fields(&self, name: &str, program: &str, args: &[String]) -> Vec<(&'static str, Value)> {
        let plain = [("command", json!(program)), ("args", json!(args))];
        match self.shape {
            Shape::Plain => plain.into(),
            Shape::Typed => [("type", json!("stdio"))].into_iter().chain(plain).collect(),
            Shape::OneList => {
                let list: Vec<&str> = std::iter::once(program).chain(args.iter().map(String::as_str)).collect();
                vec![("type", json!("local")), ("command", json!(list))]
            }
            Shape::Goose => vec![
                ("name", json!(name)),
                ("type", json!("stdio")),
                ("enabled", json!(true)),
                ("cmd", json!(program)),
                ("args", json!(args)),
            ],
        }
    }
}
