//! Gemini CLI, without a terminal: JSON lines.
//!
//! What it may do stands in a private policy. Nobody is asked for permission: what would have to be asked is forbidden.

use std::fmt::Write;
use std::io;

use assistant_protocol::error::RpcError;
use assistant_protocol::types::{AgentBrief, AgentEvent, Part, RuleAction, StopReason, ToolSpec, Usage};
use serde_json::{Value, json};

use super::failures::{model_failed, no_session};
use super::internal;
use super::kind::{Kind, Plan, Reader, Start, Told, mcp_server, text};
use super::wishes::{Role, Wanted, Wish, Wishes};
use crate::adapter::TurnEnd;
use crate::adapter::bridge::{CALL_MS, SERVER_NAME};
use crate::adapter::ids::{Seen, cut};
use crate::adapter::literal::Mentions;
use crate::adapter::pieces::TEXT_BYTES_MAX;
use crate::adapter::process::Exit;

/// What there is to know of it.
pub(super) const KIND: Kind = Kind {
    name: "gemini",
    title: "Gemini CLI",
    program: "gemini",
    places: &["GEMINI_CLI_HOME"],
    mentions: Mentions::Anywhere,
    asks_permission: false,
    settings_at_home: true,
    login: "run `gemini` and log in, or name GEMINI_API_KEY in `env` of its runner in the configuration of the host",
    plan,
    reader: |_| Box::new(Output::default()),
    used: |_, _| None,
};

/// What it says of a session that is not there.
const NO_SESSION: &str = "Error resuming session";
/// Its tools, by what they do.
const TOOLS: &[(Role, &[&str])] = &[
    (Role::Read, &["read_file", "read_many_files"]),
    (Role::Find, &["glob", "list_directory"]),
    (Role::Search, &["grep_search", "search_file_content"]),
    (Role::Edit, &["replace"]),
    (Role::Write, &["write_file"]),
    (Role::Run, &["run_shell_command"]),
    (Role::Fetch, &["web_fetch"]),
    (Role::Web, &["google_web_search"]),
    (Role::Todo, &["write_todos"]),
    (Role::Task, &["invoke_agent"]),
];
/// What it may do where a definition does not say: nothing that changes something.
const UNASKED: [Role; 4] = [Role::Read, Role::Find, Role::Search, Role::Todo];

fn plan(start: &Start<'_>) -> io::Result<Plan> {
    let mut plan = Plan::default();
    for arg in ["--output-format", "stream-json", "--skip-trust", "--extensions", "none"] {
        plan.arg(arg);
    }
    // Servers of the user's do not come along.
    plan.arg("--allowed-mcp-server-names").arg(SERVER_NAME);
    match start.run.brief().model.as_deref().map(str::trim) {
        None | Some("" | "inherit" | "default") => {}
        Some(model) if is_model(model) => {
            plan.arg("--model").arg(model.rsplit('/').next().unwrap_or(model));
        }
        Some(model) => {
            plan.lacks(format!("the model `{model}`"), "Gemini CLI has models of Gemini only; it takes its own choice");
        }
    }
    let policy = policy(start.run.brief(), start.run.tools(), &mut plan)?;
    plan.arg("--policy").arg(start.folder.write("policy.toml", policy.as_bytes())?);
    if let Some(session) = start.session {
        plan.arg("--resume").arg(session);
    }
    let mut server = mcp_server(start.server);
    server["timeout"] = CALL_MS.into();
    server["trust"] = true.into();
    let settings = json!({
        "mcpServers": { SERVER_NAME: server },
        "general": { "enableAutoUpdate": false },
        "hooksConfig": { "enabled": false },
        // Where its user trusts the folder, commands of the project would bring tools.
        "tools": { "discoveryCommand": "" },
        "mcp": { "serverCommand": "" },
    });
    let file = start.folder.write("settings.json", settings.to_string().as_bytes())?;
    plan.env("GEMINI_CLI_SYSTEM_SETTINGS_PATH", file);
    let prompt = start.run.assistant().system_prompt.trim();
    if !prompt.is_empty() {
        plan.env("GEMINI_SYSTEM_MD", start.folder.write("system.md", prompt.as_bytes())?);
    }
    Ok(plan)
}

fn is_model(model: &str) -> bool {
    let plain = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    plain.starts_with("gemini") || ["auto", "pro", "flash", "flash-lite"].contains(&plain.as_str())
}

/// Rules of its policy, the later ones above the earlier ones.
#[derive(Default)]
struct Policy {
    text: String,
    rules: u32,
}

impl Policy {
    fn rule(&mut self, tool: &str, prefix: Option<&str>, allows: bool) {
        self.rules += 1;
        // Else it wants to ask before a command with `>` or `<`. Where only some commands are allowed, these write nothing.
        let every_command = allows && prefix.is_none() && names(Role::Run).contains(&tool);
        let redirection = if every_command { "allowRedirection = true\n" } else { "" };
        let prefix = prefix.map(|prefix| format!("commandPrefix = {}\n", Value::from(prefix))).unwrap_or_default();
        let (decision, priority) = (if allows { "allow" } else { "deny" }, PRIORITY_MIN + self.rules);
        // Strings of JSON are strings of TOML. Writing to a string does not fail.
        let _ = writeln!(
            self.text,
            "[[rule]]\ntoolName = {}\n{prefix}{redirection}decision = \"{decision}\"\npriority = {priority}\n",
            Value::from(tool)
        );
    }

    /// Rules for a wish; false where it cannot be said: nothing is allowed then, and all is forbidden.
    fn wish(&mut self, wish: &Wish, allows: bool) -> bool {
        let Some(role) = wish.role else { return false };
        let mut said = true;
        let prefix = match &wish.pattern {
            None => None,
            Some(pattern) => match (role, prefix(pattern)) {
                (Role::Run, Some(prefix)) => Some(prefix),
                _ if allows => return false,
                _ => {
                    said = false;
                    None
                }
            },
        };
        for name in names(role) {
            self.rule(name, prefix, allows);
        }
        said
    }
}

/// Why more is forbidden than a definition says.
const ALL_FORBIDDEN: &str = "Gemini CLI knows no such pattern: all calls of its tool are forbidden";
/// Why a rule is none of its own.
const NO_SUCH: &str = "Gemini CLI has no such tool, or knows no such pattern";
/// The priority below the first rule: rules of the user's own are below that, as a rule.
const PRIORITY_MIN: u32 = 500;
/// Rules that there may be: the highest priority is 999.
const RULES_MAX: u32 = 499;

fn names(role: Role) -> &'static [&'static str] {
    TOOLS.iter().find(|(of, _)| *of == role).map_or(&[], |(_, names)| names)
}

/// The beginning of the commands that a pattern is about, where it is about nothing else.
fn prefix(pattern: &str) -> Option<&str> {
    let prefix =
        pattern.strip_suffix(":*").or_else(|| pattern.strip_suffix(" *")).or_else(|| pattern.strip_suffix('*'));
    prefix.map(str::trim_end).filter(|prefix| !prefix.is_empty() && !prefix.contains('*'))
}

fn policy(brief: &AgentBrief, tools: &[ToolSpec], plan: &mut Plan) -> io::Result<String> {
    let wishes = Wishes::of(brief, tools);
    let mut policy = Policy::default();
    policy.rule("*", None, false);
    let unasked = wishes.unasked();
    match &wishes.wanted {
        Wanted::Some(wanted) => {
            for wish in wanted {
                let why = match policy.wish(wish, unasked) {
                    true => continue,
                    false if wish.role.is_some() => "Gemini CLI knows no such pattern",
                    false => "Gemini CLI has no tool of this name",
                };
                plan.lacks(format!("the tool `{}`", wish.written), why);
            }
        }
        Wanted::All => {
            for name in TOOLS.iter().flat_map(|(_, names)| *names).filter(|_| unasked) {
                policy.rule(name, None, true);
            }
        }
        Wanted::Unsaid => {
            for name in UNASKED.iter().flat_map(|role| names(*role)).filter(|_| unasked) {
                policy.rule(name, None, true);
            }
            if !wishes.by_rules && !wishes.readonly {
                plan.lacks(
                    "commands and changes",
                    "the definition names no tools, and Gemini CLI asks nobody here: it reads only",
                );
            }
        }
    }
    if wishes.others == Some(RuleAction::Ask) {
        let why = "Gemini CLI asks nobody here: what no other rule allows is forbidden";
        plan.lacks("everything only after asking", why);
    }
    for (action, wish) in &wishes.rules {
        if *action == RuleAction::Ask {
            plan.lacks(format!("`{}` only after asking", wish.written), "Gemini CLI asks nobody here: it is forbidden");
        }
        let allows = *action == RuleAction::Allow;
        if !policy.wish(wish, allows) {
            let why = if wish.role.is_some() && !allows { ALL_FORBIDDEN } else { NO_SUCH };
            plan.lacks(format!("the rule for `{}`", wish.told()), why);
        }
    }
    for wish in &wishes.denied {
        if !policy.wish(wish, false) && wish.role.is_some() {
            plan.lacks(format!("`{}` forbidden", wish.written), ALL_FORBIDDEN);
        }
    }
    for wish in &wishes.asked {
        policy.wish(wish, false);
        plan.lacks(format!("`{}` only after asking", wish.written), "Gemini CLI asks nobody here: it is forbidden");
    }
    if wishes.readonly {
        for name in [Role::Edit, Role::Write, Role::Run].into_iter().flat_map(names) {
            policy.rule(name, None, false);
        }
    }
    for (what, why) in wishes.unheld("Gemini CLI") {
        plan.lacks(what, why);
    }
    if wishes.withholds_search() {
        names(Role::Search).iter().for_each(|name| policy.rule(name, None, false));
        let why = "Gemini CLI cannot hold its searches to what bounds reading: it has none";
        plan.lacks("searches in files", why);
    }
    policy.rule(&format!("mcp_{SERVER_NAME}_*"), None, true);
    if policy.rules > RULES_MAX {
        let text =
            format!("the definition has more rules than Gemini CLI can order: {}, not {RULES_MAX}", policy.rules);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    Ok(policy.text)
}

/// Its output of a turn.
#[derive(Default)]
struct Output {
    /// Its last words, which come in pieces, as much of them as is kept.
    text: String,
    /// What of them is not told.
    untold: String,
    by_way_back: Seen,
    open: Seen,
    /// Its model was asked, which is not told.
    asking: bool,
    result: Option<Value>,
}

impl Reader for Output {
    fn line(&mut self, line: &Value) -> Vec<Told> {
        match text(line, "type") {
            Some("init") => {
                self.asking = true;
                text(line, "session_id").map(|id| Told::Session(id.to_owned())).into_iter().collect()
            }
            Some("message") if text(line, "role") == Some("assistant") => {
                let said = text(line, "content").unwrap_or_default();
                if line["delta"] != true {
                    self.forget();
                }
                self.says(said)
            }
            Some("tool_use") => self.called(line),
            Some("tool_result") => self.answered(line),
            Some("error") => {
                crate::complain(&format!("gemini: {}", text(line, "message").unwrap_or_default()));
                Vec::new()
            }
            Some("result") => {
                self.asking = false;
                self.result = Some(line.clone());
                let usage =
                    AgentEvent::Usage { usage: tokens(&line["stats"]), calls: 0, cost_usd: None, model: model(line) };
                let mut told = self.has_said();
                told.extend([Told::Event(usage), Told::Done]);
                told
            }
            Some(_) | None => Vec::new(),
        }
    }

    fn unpaid(&self) -> Option<AgentEvent> {
        (self.asking && self.result.is_none()).then(called_once)
    }

    fn said(&self) -> &str {
        &self.text
    }

    fn end(&mut self, exit: &Exit) -> Result<TurnEnd, RpcError> {
        let Some(result) = self.result.take() else {
            return Err(if exit.stderr.contains(NO_SESSION) {
                no_session(&KIND, &exit.stderr)
            } else if exit.code == Some(AUTH_EXIT) {
                model_failed(&KIND, &exit.stderr, Some(401))
            } else {
                internal(format!("Gemini CLI gave no result: it {exit}"))
            });
        };
        if text(&result, "status") == Some("success") {
            return Ok(TurnEnd { stop_reason: StopReason::Finished, text: std::mem::take(&mut self.text) });
        }
        let said = text(&result["error"], "message").unwrap_or("an error");
        Err(model_failed(&KIND, said, None))
    }
}

/// The exit code by which it tells that it is not logged in.
const AUTH_EXIT: i32 = 41;

impl Output {
    /// It goes on with what it says, which is told once it is whole, or long.
    fn says(&mut self, said: &str) -> Vec<Told> {
        self.text.push_str(cut(said, TEXT_BYTES_MAX - self.text.len()));
        self.untold.push_str(said);
        if self.untold.len() <= TEXT_BYTES_MAX {
            return Vec::new();
        }
        vec![Told::Event(AgentEvent::Text { text: std::mem::take(&mut self.untold) })]
    }

    fn forget(&mut self) {
        self.text.clear();
        self.untold.clear();
    }

    /// What it has said is whole; its model was called for it.
    fn has_said(&mut self) -> Vec<Told> {
        if self.text.is_empty() {
            return Vec::new();
        }
        let rest = std::mem::take(&mut self.untold);
        let rest = (!rest.is_empty()).then(|| Told::Event(AgentEvent::Text { text: rest }));
        std::iter::once(Told::Event(called_once())).chain(rest).collect()
    }

    fn called(&mut self, line: &Value) -> Vec<Told> {
        let mut told = Vec::new();
        if self.open.is_empty() {
            told.extend(if self.text.is_empty() { vec![Told::Event(called_once())] } else { self.has_said() });
        }
        self.forget();
        self.asking = false;
        let (id, name) = (text(line, "tool_id").unwrap_or_default(), text(line, "tool_name").unwrap_or_default());
        self.open.insert(id);
        if name.starts_with(&format!("mcp_{SERVER_NAME}_")) {
            self.by_way_back.insert(id);
            return told;
        }
        let (call_id, tool_name, arguments) = (id.to_owned(), name.to_owned(), line["parameters"].clone());
        told.push(Told::Event(AgentEvent::ToolCall { call_id, tool_name, arguments }));
        told
    }

    fn answered(&mut self, line: &Value) -> Vec<Told> {
        let id = text(line, "tool_id").unwrap_or_default();
        self.open.remove(id);
        self.asking |= self.open.is_empty();
        if self.by_way_back.remove(id) {
            return Vec::new();
        }
        let content = vec![Part::text(text(line, "output").unwrap_or_default())];
        let is_error = text(line, "status") == Some("error");
        vec![Told::Event(AgentEvent::ToolResult { call_id: id.to_owned(), content, is_error })]
    }
}

fn called_once() -> AgentEvent {
    AgentEvent::Usage { usage: Usage::default(), calls: 1, cost_usd: None, model: None }
}

/// The model that it used most.
fn model(line: &Value) -> Option<String> {
    let models = line["stats"]["models"].as_object()?;
    models.iter().max_by_key(|(_, used)| used["total_tokens"].as_u64()).map(|(name, _)| name.clone())
}

fn tokens(stats: &Value) -> Usage {
    let count = |name: &str| stats[name].as_u64();
    Usage {
        input_tokens: count("input_tokens"),
        output_tokens: count("output_tokens"),
        cache_read_tokens: count("cached"),
        cache_write_tokens: None,
        reasoning_tokens: None,
    }
}

#[cfg(test)]
mod tests;
