//! Codex: `codex exec` with JSON lines.
//!
//! It has no list of tools: commands run in its sandbox, which is what a definition can choose. Nobody is asked for
//! permission.

use std::io;

use assistant_protocol::error::RpcError;
use assistant_protocol::types::{AgentEvent, Part, RuleAction, StopReason, Usage};
use serde_json::{Value, json};

use super::failures::{model_failed, no_session};
use super::internal;
use super::kind::{Kind, Plan, Reader, Start, Told, text};
use super::tokens::rest;
use super::wishes::{Role, Wanted, Wish, Wishes};
use crate::adapter::TurnEnd;
use crate::adapter::bridge::{CALL_MS, SERVER_NAME};
use crate::adapter::ids::Seen;
use crate::adapter::literal::Mentions;
use crate::adapter::process::Exit;

mod rollout;

/// What there is to know of it.
pub(super) const KIND: Kind = Kind {
    name: "codex",
    title: "Codex",
    program: "codex",
    places: &["CODEX_HOME", "CODEX_SQLITE_HOME"],
    mentions: Mentions::Never,
    asks_permission: false,
    settings_at_home: false,
    login: "run `codex login`, or name CODEX_API_KEY in `env` of its runner in the configuration of the host",
    plan,
    reader: |start| Box::new(Output { before: start.used, ..Output::default() }),
    used: rollout::used,
};

/// What it says of a session that is not there.
const NO_SESSION: &str = "no rollout found";
/// How it begins to say that it tries again.
const TRIES_AGAIN: &str = "Reconnecting";
/// What it says then where nothing answers it, in lower case.
const UNREACHED: [&str; 3] = ["waiting for network", "connection failed", "error sending request"];
/// What it says where the model's answer reached its bound.
const TOO_SHORT: &str = "reason: max_output_tokens";

fn plan(start: &Start<'_>) -> io::Result<Plan> {
    let mut plan = Plan::default();
    plan.arg("exec");
    if start.session.is_some() {
        plan.arg("resume");
    }
    // Nothing of the user's comes along by accident: no servers, no hooks, no rules.
    for arg in ["--json", "--skip-git-repo-check", "--ignore-user-config", "--ignore-rules"] {
        plan.arg(arg);
    }
    match start.run.brief().model.as_deref().map(str::trim) {
        None | Some("" | "inherit" | "default") => {}
        Some(model) if is_model(model) => {
            plan.arg("--model").arg(model.rsplit('/').next().unwrap_or(model));
        }
        Some(model) => {
            plan.lacks(format!("the model `{model}`"), "Codex has models of OpenAI only; it takes its own choice");
        }
    }
    tools(start, &mut plan);
    let prompt = start.run.assistant().system_prompt.trim();
    match start.session {
        // It is in the session already.
        Some(session) => {
            plan.arg(session);
        }
        None if !prompt.is_empty() => plan.before_prompt = Some(format!("<instructions>\n{prompt}\n</instructions>")),
        None => {}
    }
    plan.arg("-");
    Ok(plan)
}

fn is_model(model: &str) -> bool {
    let plain = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    let of_o = plain.strip_prefix('o').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    of_o || ["gpt", "codex", "chatgpt"].iter().any(|beginning| plain.starts_with(beginning))
}

/// A setting of it; strings of JSON are strings of TOML.
fn set(plan: &mut Plan, name: &str, value: impl Into<Value>) {
    plan.arg("-c").arg(format!("{name}={}", value.into()));
}

/// Chooses the sandbox, and passes on the way back.
fn tools(start: &Start<'_>, plan: &mut Plan) {
    sandbox(&Wishes::of(start.run.brief(), start.run.tools()), plan);
    let server = format!("mcp_servers.{SERVER_NAME}");
    set(plan, &format!("{server}.command"), start.server.command.to_string_lossy());
    set(plan, &format!("{server}.args"), start.server.args.as_slice());
    // Its variables are secret: it takes them from its own.
    set(plan, &format!("{server}.env_vars"), start.server.env.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    set(plan, &format!("{server}.default_tools_approval_mode"), "approve");
    set(plan, &format!("{server}.tool_timeout_sec"), CALL_MS / 1_000);
    for (name, value) in &start.server.env {
        plan.env(name, value);
    }
}

/// What it may do.
fn sandbox(wishes: &Wishes, plan: &mut Plan) {
    // A wish for some commands or files only is none for all of them.
    let wants = |role: Role| {
        let whole = |wish: &Wish| wish.role == Some(role) && wish.pattern.is_none();
        let wanted = match &wishes.wanted {
            Wanted::Unsaid => false,
            Wanted::All => true,
            Wanted::Some(wanted) => wanted.iter().any(whole),
        };
        let asks = wishes.rules.iter().any(|(does, wish)| *does != RuleAction::Allow && wish.role == Some(role));
        wanted && wishes.unasked() && !asks && wishes.has(role)
    };
    let writes = !wishes.by_rules && [Role::Edit, Role::Write, Role::Run].into_iter().any(wants);
    set(plan, "sandbox_mode", if writes { "workspace-write" } else { "read-only" });
    set(plan, "approval_policy", "never");
    set(plan, "web_search", if wants(Role::Web) || wants(Role::Fetch) { "live" } else { "disabled" });
    for (role, features) in [(Role::Task, &["multi_agent"][..]), (Role::Run, &["shell_tool", "unified_exec"])] {
        let refused = if role == Role::Run { none_at_all(wishes) } else { !wants(role) };
        for feature in features.iter().filter(|_| refused) {
            plan.arg("--disable").arg(*feature);
        }
    }
    if writes {
        plan.lacks("the network for commands", "the sandbox of Codex has none");
    }
    lacks(wishes, plan);
}

/// The definition wants no tool of the agent's own, or none unasked.
fn none_at_all(wishes: &Wishes) -> bool {
    let allows = wishes.rules.iter().any(|(does, _)| *does == RuleAction::Allow);
    wishes.wanted == Wanted::Some(Vec::new()) || !(wishes.unasked() || allows)
}

/// Whether it is about what Codex does by commands that are always allowed.
fn looks(wish: &Wish) -> bool {
    matches!(wish.role, Some(Role::Read | Role::Find | Role::Search))
}

fn lacks(wishes: &Wishes, plan: &mut Plan) {
    let wanted = if let Wanted::Some(wanted) = &wishes.wanted { wanted.as_slice() } else { &[] };
    for wish in wanted {
        let why = match (&wish.pattern, wish.role) {
            (_, None) => "Codex has no tool of this name",
            (Some(_), Some(Role::Run | Role::Edit | Role::Write)) => {
                "Codex knows no patterns: its sandbox is read-only"
            }
            (Some(_), Some(_)) => "Codex knows no patterns: it reads what it likes",
            (None, Some(_)) => continue,
        };
        plan.lacks(format!("the tool `{}`", wish.written), why);
    }
    for wish in &wishes.denied {
        if wish.pattern.is_some()
            || !matches!(wish.role, Some(Role::Edit | Role::Write | Role::Web | Role::Fetch | Role::Task))
        {
            plan.lacks(format!("`{}` forbidden", wish.written), "Codex has its sandbox only, which allows it");
        }
    }
    for wish in &wishes.asked {
        plan.lacks(format!("`{}` only after asking", wish.written), "Codex asks nobody here; its sandbox decides");
    }
    for (_, wish) in wishes.rules.iter().filter(|(does, wish)| *does != RuleAction::Allow && looks(wish)) {
        if !none_at_all(wishes) {
            plan.lacks(format!("the rule for `{}`", wish.told()), "Codex reads whatever the user may read");
        }
    }
    if wishes.by_rules {
        let why = if none_at_all(wishes) { "it runs no command" } else { "its sandbox is read-only" };
        plan.lacks("rules for calls", format!("Codex knows none: {why}"));
    } else if wishes.wanted == Wanted::Unsaid && !wishes.readonly {
        plan.lacks(
            "commands that change something",
            "the definition names no tools, and Codex asks nobody here: its sandbox is read-only",
        );
    }
}

/// Its output of a turn.
#[derive(Default)]
struct Output {
    /// What the session had used before, where that is known.
    before: Option<Usage>,
    now: Option<Usage>,
    /// Calls under way.
    open: Seen,
    /// The model was called since the last count.
    uncounted: bool,
    last_text: String,
    error: Option<String>,
    done: bool,
}

impl Reader for Output {
    fn line(&mut self, line: &Value) -> Vec<Told> {
        match text(line, "type") {
            Some("thread.started") => {
                text(line, "thread_id").map(|id| Told::Session(id.to_owned())).into_iter().collect()
            }
            Some("turn.started") => {
                self.uncounted = true;
                Vec::new()
            }
            Some("item.started") => self.item(&line["item"], false),
            Some("item.completed") => self.item(&line["item"], true),
            Some("turn.completed") => {
                self.done = true;
                self.error = None;
                vec![Told::Event(self.usage(&line["usage"])), Told::Done]
            }
            Some("turn.failed") => {
                // It got nothing of that call.
                self.uncounted = false;
                self.error = text(&line["error"], "message").map(str::to_owned).or(self.error.take());
                vec![Told::Done]
            }
            Some("error") => {
                self.error = text(line, "message").map(str::to_owned);
                let waits = self.error.as_deref().filter(|error| error.starts_with(TRIES_AGAIN));
                let unreached = |error: &str| UNREACHED.iter().any(|words| error.to_ascii_lowercase().contains(words));
                let waits =
                    waits.map(|error| Told::Waits { text: format!("Codex: {error}"), unreached: unreached(error) });
                waits.into_iter().collect()
            }
            Some(_) | None => Vec::new(),
        }
    }

    fn used(&self) -> Option<Usage> {
        self.now.or(self.before)
    }

    fn unpaid(&self) -> Option<AgentEvent> {
        // It got nothing of a call that it makes again.
        let again = self.error.as_deref().is_some_and(|error| error.starts_with(TRIES_AGAIN));
        (self.uncounted && !self.done && !again).then_some(AgentEvent::Usage {
            usage: Usage::default(),
            calls: 1,
            cost_usd: None,
            model: None,
        })
    }

    fn said(&self) -> &str {
        &self.last_text
    }

    fn end(&mut self, exit: &Exit) -> Result<TurnEnd, RpcError> {
        match self.error.take() {
            Some(error) if error.contains(TOO_SHORT) => {
                Ok(TurnEnd { stop_reason: StopReason::Length, text: std::mem::take(&mut self.last_text) })
            }
            Some(error) => Err(model_failed(&KIND, &error, None)),
            None if self.done => {
                Ok(TurnEnd { stop_reason: StopReason::Finished, text: std::mem::take(&mut self.last_text) })
            }
            None if exit.stderr.contains(NO_SESSION) => Err(no_session(&KIND, &exit.stderr)),
            None => Err(internal(format!("Codex gave no result: it {exit}"))),
        }
    }
}

impl Output {
    fn item(&mut self, item: &Value, completed: bool) -> Vec<Told> {
        let kind = text(item, "type").unwrap_or_default();
        let of_way_back = kind == "mcp_tool_call" && text(item, "server") == Some(SERVER_NAME);
        let event = match kind {
            "agent_message" if completed => {
                self.last_text = text(item, "text").unwrap_or_default().to_owned();
                AgentEvent::Text { text: self.last_text.clone() }
            }
            "reasoning" if completed => {
                AgentEvent::Reasoning { text: text(item, "text").unwrap_or_default().to_owned() }
            }
            "error" => {
                crate::complain(&format!("codex: {}", text(item, "message").unwrap_or_default()));
                return Vec::new();
            }
            "agent_message" | "reasoning" | "todo_list" => return Vec::new(),
            _ => return self.call(item, completed, of_way_back),
        };
        let called = if kind == "agent_message" { self.model_was_called() } else { None };
        called.into_iter().chain([Told::Event(event)]).collect()
    }

    /// A call begins or ends. Several that begin beside each other are of one answer of the model.
    fn call(&mut self, item: &Value, completed: bool, of_way_back: bool) -> Vec<Told> {
        let id = text(item, "id").unwrap_or_default().to_owned();
        let mut told = Vec::new();
        if !self.open.contains(&id) {
            told.extend(self.model_was_called());
            if !of_way_back {
                let (tool_name, arguments) = call_of(item);
                told.push(Told::Event(AgentEvent::ToolCall { call_id: self.call_id(&id), tool_name, arguments }));
            }
            self.open.insert(&id);
        }
        if completed {
            self.open.remove(&id);
            self.uncounted |= self.open.is_empty();
            if !of_way_back {
                let is_error = text(item, "status").is_some_and(|status| status != "completed");
                let content = vec![Part::text(result_of(item))];
                told.push(Told::Event(AgentEvent::ToolResult { call_id: self.call_id(&id), content, is_error }));
            }
        }
        told
    }

    /// Items are counted from 0 in each turn; the tokens before it make the difference.
    fn call_id(&self, item: &str) -> String {
        let before = self.before.and_then(|usage| usage.input_tokens).unwrap_or_default();
        format!("{item}-{before}")
    }

    fn model_was_called(&mut self) -> Option<Told> {
        let counted = std::mem::take(&mut self.uncounted);
        self.error = None;
        let event = AgentEvent::Usage { usage: Usage::default(), calls: 1, cost_usd: None, model: None };
        counted.then_some(Told::Event(event))
    }

    /// It tells what the whole session has used; where that was not known before, the difference is not known.
    fn usage(&mut self, told: &Value) -> AgentEvent {
        let now = counts(told);
        self.now = Some(now);
        let usage = self.before.map(|before| rest(now, before)).unwrap_or_default();
        AgentEvent::Usage { usage, calls: 0, cost_usd: None, model: None }
    }
}

/// Tokens as it counts them.
fn counts(told: &Value) -> Usage {
    let count = |name: &str| told[name].as_u64();
    Usage {
        input_tokens: count("input_tokens"),
        output_tokens: count("output_tokens"),
        cache_read_tokens: count("cached_input_tokens"),
        cache_write_tokens: count("cache_write_input_tokens"),
        reasoning_tokens: count("reasoning_output_tokens"),
    }
}

/// A call by the names that definitions have.
fn call_of(item: &Value) -> (String, Value) {
    match text(item, "type").unwrap_or_default() {
        "command_execution" => ("Bash".to_owned(), json!({ "command": item["command"] })),
        "file_change" => ("Edit".to_owned(), json!({ "changes": item["changes"] })),
        "web_search" => ("WebSearch".to_owned(), json!({ "query": item["query"] })),
        "mcp_tool_call" => {
            let (server, tool) = (text(item, "server").unwrap_or_default(), text(item, "tool").unwrap_or_default());
            (format!("mcp__{server}__{tool}"), item["arguments"].clone())
        }
        other => (other.to_owned(), item.clone()),
    }
}

fn result_of(item: &Value) -> String {
    let code = item["exit_code"].as_i64().filter(|code| *code != 0).map(|code| format!("\n(exit code {code})"));
    let parts = item["result"]["content"].as_array().into_iter().flatten().filter_map(|part| text(part, "text"));
    let told = text(item, "aggregated_output").map(str::to_owned);
    let told = told.or_else(|| text(&item["error"], "message").map(str::to_owned));
    told.unwrap_or_else(|| parts.collect::<Vec<_>>().join("\n")) + &code.unwrap_or_default()
}

#[cfg(test)]
mod tests;
