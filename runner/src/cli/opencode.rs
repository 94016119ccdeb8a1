//! opencode: `opencode run` with JSON lines.
//!
//! Its settings are those of a private folder, so that no server and no agent of the user's comes along. Nobody is asked
//! for permission: what would have to be asked is forbidden.

use std::io;

use assistant_protocol::error::RpcError;
use assistant_protocol::types::{AgentBrief, AgentEvent, Part, RuleAction, StopReason, ToolSpec, Usage};
use serde_json::{Map, Value, json};

use super::failures::{model_failed, no_session};
use super::internal;
use super::kind::{Kind, Plan, Reader, Start, Told, text};
use super::wishes::{Role, Wanted, Wish, Wishes};
use crate::adapter::TurnEnd;
use crate::adapter::bridge::{CALL_MS, SERVER_NAME};
use crate::adapter::ids::cut;
use crate::adapter::literal::Mentions;
use crate::adapter::pieces::TEXT_BYTES_MAX;
use crate::adapter::process::Exit;

/// What there is to know of it.
pub(super) const KIND: Kind = Kind {
    name: "opencode",
    title: "opencode",
    program: "opencode",
    // Settings of their own are the configuration's choice: by OPENCODE_CONFIG in `env`.
    places: &["OPENCODE_DB"],
    mentions: Mentions::Never,
    asks_permission: false,
    settings_at_home: false,
    login: "run `opencode auth login`, or name the variable with the key of its provider in `env` of its runner in the \
            configuration of the host",
    plan,
    reader: |_| Box::new(Output::default()),
    used: |_, _| None,
};

/// The agent that is the assistant, in its settings.
const AGENT: &str = "assistant-host";
/// What it says of a session that is not there.
const NO_SESSION: &str = "Session not found";
/// Its permissions, by what they are about.
const PERMISSIONS: &[(Role, &[&str])] = &[
    (Role::Read, &["read"]),
    (Role::Find, &["glob", "list"]),
    (Role::Search, &["grep"]),
    (Role::Edit, &["edit"]),
    (Role::Write, &["edit"]),
    (Role::Run, &["bash"]),
    (Role::Fetch, &["webfetch"]),
    (Role::Web, &["websearch"]),
    (Role::Todo, &["todowrite"]),
    (Role::Task, &["task"]),
];
/// What it may do where a definition does not say: nothing that changes something, and nothing beyond its folder.
const UNASKED: [Role; 4] = [Role::Read, Role::Find, Role::Search, Role::Todo];

fn plan(start: &Start<'_>) -> io::Result<Plan> {
    let mut plan = Plan::default();
    for arg in ["run", "--format", "json", "--agent", AGENT] {
        plan.arg(arg);
    }
    match start.run.brief().model.as_deref().map(str::trim) {
        None | Some("" | "inherit" | "default") => {}
        Some(model)
            if model.split_once('/').is_some_and(|(provider, name)| !provider.is_empty() && !name.is_empty()) =>
        {
            plan.arg("--model").arg(model);
        }
        Some(model) => {
            plan.lacks(
                format!("the model `{model}`"),
                "opencode wants it as `provider/model`; it takes its own choice",
            );
        }
    }
    if let Some(session) = start.session {
        plan.arg("--session").arg(session);
    }
    let prompt = start.run.assistant().system_prompt.trim();
    let mut agent =
        json!({ "mode": "primary", "permission": permissions(start.run.brief(), start.run.tools(), &mut plan) });
    if !prompt.is_empty() {
        agent["prompt"] = prompt.into();
    }
    let env: Map<_, _> = start.server.env.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    let command: Vec<Value> =
        std::iter::once(json!(start.server.command)).chain(start.server.args.iter().map(|arg| json!(arg))).collect();
    let server = json!({ "mcp": { SERVER_NAME: {
        "type": "local", "command": command, "environment": env, "enabled": true, "timeout": CALL_MS,
    } } });
    let settings = json!({
        "agent": { AGENT: agent },
        "share": "disabled",
        "autoupdate": false,
    });
    let home = start.folder.folder("config")?;
    start.folder.folder("config/opencode")?;
    start.folder.write("config/opencode/opencode.json", settings.to_string().as_bytes())?;
    // Each time it starts it unpacks a library there, of some megabytes, and leaves it.
    plan.env("TMPDIR", start.folder.folder("tmp")?);
    // It has settings and plugins of the user's in `.opencode` of the home, too.
    plan.env("OPENCODE_TEST_HOME", start.folder.folder("home")?);
    // Read last: no other settings have a server of this name.
    plan.env("OPENCODE_CONFIG_CONTENT", server.to_string());
    plan.env("XDG_CONFIG_HOME", home)
        .env("OPENCODE_DISABLE_PROJECT_CONFIG", "1")
        .env("OPENCODE_DISABLE_AUTOUPDATE", "1");
    Ok(plan)
}

/// What it may do: of the entries that fit a call the last one counts.
fn permissions(brief: &AgentBrief, tools: &[ToolSpec], plan: &mut Plan) -> Value {
    let wishes = Wishes::of(brief, tools);
    let mut map = Map::new();
    map.insert("*".to_owned(), "deny".into());
    map.insert(format!("{SERVER_NAME}_*"), "allow".into());
    let unasked = wishes.unasked();
    match &wishes.wanted {
        Wanted::Some(wanted) => {
            for wish in wanted {
                if wish.role.is_none() {
                    plan.lacks(format!("the tool `{}`", wish.written), "opencode has no tool of this name");
                }
                if unasked {
                    add(&mut map, wish, "allow");
                }
            }
        }
        Wanted::All => {
            for name in PERMISSIONS.iter().flat_map(|(_, names)| *names).filter(|_| unasked) {
                map.insert((*name).to_owned(), "allow".into());
            }
        }
        Wanted::Unsaid => {
            for name in UNASKED.iter().flat_map(|role| names(*role)).filter(|_| unasked) {
                map.insert((*name).to_owned(), "allow".into());
            }
            if !wishes.by_rules && !wishes.readonly {
                plan.lacks(
                    "commands and changes",
                    "the definition names no tools, and opencode asks nobody here: it reads only",
                );
            }
        }
    }
    if wishes.others == Some(RuleAction::Ask) {
        let why = "opencode asks nobody here: what no other rule allows is forbidden";
        plan.lacks("everything only after asking", why);
    }
    for (action, wish) in &wishes.rules {
        if *action == RuleAction::Ask {
            plan.lacks(format!("`{}` only after asking", wish.written), "opencode asks nobody here: it is forbidden");
        }
        if !add(&mut map, wish, if *action == RuleAction::Allow { "allow" } else { "deny" }) {
            plan.lacks(format!("the rule for `{}`", wish.written), "opencode has no tool of this name");
        }
    }
    for wish in &wishes.denied {
        add(&mut map, wish, "deny");
    }
    for wish in &wishes.asked {
        add(&mut map, wish, "deny");
        plan.lacks(format!("`{}` only after asking", wish.written), "opencode asks nobody here: it is forbidden");
    }
    if wishes.readonly {
        for name in [Role::Edit, Role::Run].into_iter().flat_map(names) {
            map.insert((*name).to_owned(), "deny".into());
        }
    }
    no_redirections(&mut map, plan);
    for (what, why) in wishes.unheld("opencode") {
        plan.lacks(what, why);
    }
    if map.get("grep").is_some_and(|may| *may != "deny") && (wishes.withholds_search() || wishes.searches_in_part()) {
        map.insert("grep".to_owned(), "deny".into());
        let why = "opencode cannot hold its searches to what bounds reading: it has none";
        plan.lacks("searches in files", why);
    }
    Value::Object(map)
}

/// Where some commands only are allowed, and no changes of files: what fits a pattern could write what it prints into a file.
/// The commands of a line opencode tells apart itself, but not where their output goes.
fn no_redirections(map: &mut Map<String, Value>, plan: &mut Plan) {
    let writes = map.get("edit").is_some_and(|may| *may == "allow");
    let Some(Value::Object(commands)) = map.get_mut("bash").filter(|_| !writes) else { return };
    if commands.get("*").is_none_or(|others| *others != "deny") {
        return;
    }
    let redirect = |(pattern, may): &(&String, &Value)| pattern.contains('>') && **may == "allow";
    let meant: Vec<_> = commands.iter().filter(redirect).map(|(pattern, may)| (pattern.clone(), may.clone())).collect();
    commands.insert(REDIRECTION.to_owned(), "deny".into());
    for (pattern, may) in meant {
        commands.shift_remove(&pattern);
        commands.insert(pattern, may);
    }
    let why = "opencode forbids commands with `>`, as it cannot tell what they write; behind `( … )`, a loop or no command it \
               does not see it, and the file is written";
    plan.lacks("files that commands write by `>`", why);
}

/// Commands that may write what they print into a file.
const REDIRECTION: &str = "*>*";

fn names(role: Role) -> &'static [&'static str] {
    PERMISSIONS.iter().find(|(of, _)| *of == role).map_or(&[], |(_, names)| names)
}

/// Adds an entry for a wish; false where there is no such tool.
fn add(map: &mut Map<String, Value>, wish: &Wish, action: &str) -> bool {
    let Some(role) = wish.role else { return false };
    for name in names(role) {
        let before = map.get(*name).cloned();
        let entry = match &wish.pattern {
            None => Value::from(action),
            Some(pattern) => {
                let mut patterns = match before {
                    Some(Value::Object(patterns)) => patterns,
                    Some(whole) => Map::from_iter([("*".to_owned(), whole)]),
                    None => Map::from_iter([("*".to_owned(), "deny".into())]),
                };
                for pattern in spelled(pattern) {
                    patterns.shift_remove(&pattern);
                    patterns.insert(pattern, action.into());
                }
                Value::Object(patterns)
            }
        };
        map.insert((*name).to_owned(), entry);
    }
    true
}

/// A pattern as it spells them: `git log:*` is the command itself, and the same with arguments.
fn spelled(pattern: &str) -> Vec<String> {
    match pattern.strip_suffix(":*") {
        Some(command) => vec![command.to_owned(), format!("{command} *")],
        None => vec![pattern.to_owned()],
    }
}

/// Its output of a turn.
#[derive(Default)]
struct Output {
    last_text: String,
    /// Its model was asked, and what that has used is not told.
    asking: bool,
    reason: Option<String>,
    error: Option<(String, Option<u16>)>,
}

impl Reader for Output {
    fn line(&mut self, line: &Value) -> Vec<Told> {
        let part = &line["part"];
        let mut told: Vec<Told> = text(line, "sessionID").map(|id| Told::Session(id.to_owned())).into_iter().collect();
        match text(line, "type") {
            Some("step_start") => {
                self.asking = true;
                self.last_text.clear();
            }
            // It writes to its model by itself, too.
            Some("text") if part["synthetic"] != true => {
                let said = text(part, "text").unwrap_or_default();
                self.last_text.push_str(cut(said, TEXT_BYTES_MAX - self.last_text.len()));
                told.push(Told::Event(AgentEvent::Text { text: said.to_owned() }));
            }
            Some("reasoning") => {
                let text = text(part, "text").unwrap_or_default().to_owned();
                told.push(Told::Event(AgentEvent::Reasoning { text }));
            }
            Some("tool_use") => told.extend(called(part)),
            Some("step_finish") => {
                self.asking = false;
                self.reason = text(part, "reason").map(str::to_owned);
                // It has got over it, as by shortening the conversation.
                self.error = None;
                let usage = tokens(&part["tokens"]);
                let cost_usd = part["cost"].as_f64();
                told.push(Told::Event(AgentEvent::Usage { usage, calls: 1, cost_usd, model: None }));
            }
            Some("error") => {
                let data = &line["error"]["data"];
                let said = text(data, "message").or_else(|| text(&line["error"], "name")).unwrap_or("an error");
                let status = data["statusCode"].as_u64().and_then(|status| u16::try_from(status).ok());
                self.error = Some((said.to_owned(), status));
                // It got nothing of that call.
                self.asking = false;
            }
            Some(_) | None => {}
        }
        told
    }

    fn unpaid(&self) -> Option<AgentEvent> {
        self.asking.then_some(AgentEvent::Usage { usage: Usage::default(), calls: 1, cost_usd: None, model: None })
    }

    fn said(&self) -> &str {
        &self.last_text
    }

    fn end(&mut self, exit: &Exit) -> Result<TurnEnd, RpcError> {
        if let Some((said, status)) = self.error.take() {
            return Err(model_failed(&KIND, &said, status));
        }
        let stop_reason = match self.reason.as_deref() {
            Some("length") => StopReason::Length,
            Some("content-filter") => StopReason::Refused,
            Some(_) => StopReason::Finished,
            None if exit.stderr.contains(NO_SESSION) => return Err(no_session(&KIND, NO_SESSION)),
            None => return Err(internal(format!("opencode gave no result: it {exit}"))),
        };
        Ok(TurnEnd { stop_reason, text: std::mem::take(&mut self.last_text) })
    }
}

/// A call, which it tells when it is answered.
fn called(part: &Value) -> Vec<Told> {
    let (name, state) = (text(part, "tool").unwrap_or_default(), &part["state"]);
    if name.starts_with(&format!("{SERVER_NAME}_")) {
        return Vec::new();
    }
    let call_id = text(part, "callID").or_else(|| text(part, "id")).unwrap_or_default().to_owned();
    let is_error = text(state, "status") == Some("error");
    let said = text(state, if is_error { "error" } else { "output" }).unwrap_or_default();
    let call = AgentEvent::ToolCall {
        call_id: call_id.clone(),
        tool_name: name.to_owned(),
        arguments: state["input"].clone(),
    };
    let result = AgentEvent::ToolResult { call_id, content: vec![Part::text(said)], is_error };
    vec![Told::Event(call), Told::Event(result)]
}

/// Tokens as it counts them: those from the cache, and those of reasoning, stand beside the others.
fn tokens(told: &Value) -> Usage {
    let count = |value: &Value| value.as_u64();
    let (read, written) = (count(&told["cache"]["read"]), count(&told["cache"]["write"]));
    let reasoning = count(&told["reasoning"]);
    Usage {
        input_tokens: count(&told["input"]).map(|input| input + read.unwrap_or(0) + written.unwrap_or(0)),
        output_tokens: count(&told["output"]).map(|output| output + reasoning.unwrap_or(0)),
        cache_read_tokens: read,
        cache_write_tokens: written,
        reasoning_tokens: reasoning,
    }
}

#[cfg(test)]
mod tests;
