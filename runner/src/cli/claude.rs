//! Claude Code: `claude -p` with JSON lines.

use std::io;

use assistant_protocol::error::{Kind as ErrorKind, RpcError};
use assistant_protocol::types::{AgentEvent, Part, StopReason, Usage};
use serde_json::{Value, json};

use super::failures::{model_failed, no_session};
use super::internal;
use super::kind::{Kind, Plan, Reader, Start, Told, mcp_server, text};
use super::tokens::{of_anthropic as tokens, rest, sum};
use super::wishes::Wishes;
use crate::adapter::TurnEnd;
use crate::adapter::bridge::{CALL_MS, PERMISSION_TOOL, SERVER_NAME};
use crate::adapter::ids::Seen;
use crate::adapter::literal::Mentions;
use crate::adapter::process::Exit;

pub(crate) mod tools;

/// What there is to know of it.
pub(super) const KIND: Kind = Kind {
    name: "claude",
    title: "Claude Code",
    program: "claude",
    places: &["CLAUDE_CONFIG_DIR"],
    mentions: Mentions::BehindBlanks,
    asks_permission: true,
    settings_at_home: false,
    login: "run `claude` and log in, or name a variable with its key in `env` of its runner in the configuration of the host",
    plan,
    reader: |_| Box::new(Output::default()),
    used: |_, _| None,
};

/// Refusals of its login after which it need not try again.
const REFUSED_MAX: u64 = 2;
/// The model of messages that the program makes up.
const SYNTHETIC: &str = "<synthetic>";
/// What it says where the model's answers reached their bound again and again.
const TOO_SHORT: &str = "output token maximum";
/// What it says of a session that is not there.
const NO_SESSION: &str = "No conversation found with session ID";

fn plan(start: &Start<'_>) -> io::Result<Plan> {
    let mut plan = Plan::default();
    for arg in ["-p", "--output-format", "stream-json", "--verbose"] {
        plan.arg(arg);
    }
    // Nothing of the user's comes along by accident: no hooks, no servers, no plugins.
    plan.arg("--setting-sources").arg("").arg("--strict-mcp-config");
    let prompt = start.run.assistant().system_prompt.trim();
    if !prompt.is_empty() {
        let file = start.folder.write("system-prompt.md", prompt.as_bytes())?;
        plan.arg("--append-system-prompt-file").arg(file);
    }
    match start.run.brief().model.as_deref().map(str::trim) {
        None | Some("" | "inherit" | "default") => {}
        Some(model) if is_model(model) => {
            plan.arg("--model").arg(model);
        }
        Some(model) => {
            plan.lacks(
                format!("the model `{model}`"),
                "Claude Code has models of Claude only; it takes its own choice",
            );
        }
    }
    // It knows before its next call of the model that there is none left; the host sees a call when it is over.
    if let Some(turns) = start.run.turns_left() {
        plan.arg("--max-turns").arg(turns.to_string());
    }
    tools(start, &mut plan)?;
    if let Some(session) = start.session {
        plan.arg("--resume").arg(session);
    }
    plan.env("DISABLE_AUTOUPDATER", "1");
    Ok(plan)
}

/// Whether a model can be one of Claude's: an alias, or a name.
fn is_model(model: &str) -> bool {
    let plain = model.rsplit('/').next().unwrap_or(model);
    ["sonnet", "opus", "haiku", "fable", "opusplan", "best"].contains(&plain.split('[').next().unwrap_or(plain))
        || plain.contains("claude")
}

/// Passes on which tools it has, and which calls are allowed, asked for and forbidden; and its way back.
fn tools(start: &Start<'_>, plan: &mut Plan) -> io::Result<()> {
    let settings = tools::permissions(&Wishes::of(start.run.brief(), start.run.tools()), plan);
    plan.arg("--settings").arg(start.folder.write("settings.json", settings.to_string().as_bytes())?);
    plan.arg("--permission-prompt-tool").arg(format!("mcp__{SERVER_NAME}__{PERMISSION_TOOL}"));
    plan.env("MCP_TOOL_TIMEOUT", CALL_MS.to_string());
    let mut server = mcp_server(start.server);
    server["type"] = "stdio".into();
    // Else it begins before it is connected to the server, and shows no tool to its model that this has not searched for.
    server["alwaysLoad"] = true.into();
    let config = json!({ "mcpServers": { SERVER_NAME: server } });
    plan.arg("--mcp-config").arg(start.folder.write("mcp.json", config.to_string().as_bytes())?);
    Ok(())
}

/// Its output of a turn.
#[derive(Default)]
struct Output {
    /// Calls by the way back, which the host knows already.
    by_way_back: Seen,
    /// Messages of the model whose tokens were told.
    counted: Seen,
    told: Usage,
    last_text: String,
    /// It has asked its model, as far as it tells.
    asking: bool,
    /// What all of it cost was told.
    paid: bool,
    result: Option<Value>,
}

impl Reader for Output {
    fn line(&mut self, line: &Value) -> Vec<Told> {
        let mut told = Vec::new();
        match text(line, "type") {
            Some("system") if text(line, "subtype") == Some("api_retry") => {
                // It got nothing of it.
                self.asking = false;
                told.push(retry(line));
            }
            Some("system") => {
                self.asking |= text(line, "subtype") == Some("init");
                told.extend(text(line, "session_id").map(|id| Told::Session(id.to_owned())));
            }
            Some("assistant") => self.assistant(line, &mut told),
            Some("user") => self.results(line, &mut told),
            Some("result") => {
                told.extend(text(line, "session_id").map(|id| Told::Session(id.to_owned())));
                told.extend(self.remaining_usage(line).map(Told::Event));
                told.push(Told::Done);
                self.result = Some(line.clone());
            }
            Some(_) | None => {}
        }
        told
    }

    fn unpaid(&self) -> Option<AgentEvent> {
        let unknown = AgentEvent::Usage { usage: Usage::default(), calls: 0, cost_usd: None, model: None };
        (self.result.is_none() && !self.paid && (self.asking || !self.counted.is_empty())).then_some(unknown)
    }

    fn said(&self) -> &str {
        &self.last_text
    }

    fn end(&mut self, exit: &Exit) -> Result<TurnEnd, RpcError> {
        let Some(result) = self.result.take() else {
            return Err(no_result(exit));
        };
        let said = text(&result, "result").unwrap_or_default();
        let status = result["api_error_status"].as_u64().and_then(|status| u16::try_from(status).ok());
        match text(&result, "subtype") {
            Some("error_max_turns") => Err(RpcError::new(
                ErrorKind::BudgetExceeded,
                "limit turns: Claude Code has made as many model calls as it may",
            )),
            Some("error_max_budget_usd") => {
                Err(RpcError::new(ErrorKind::BudgetExceeded, "Claude Code has reached its budget"))
            }
            Some("success") if result["is_error"] != true => {
                let stop_reason = match text(&result, "stop_reason") {
                    Some("max_tokens") => StopReason::Length,
                    Some("refusal") => StopReason::Refused,
                    Some(_) | None => StopReason::Finished,
                };
                Ok(TurnEnd { stop_reason, text: said.to_owned() })
            }
            Some(_) | None => {
                let errors = result["errors"].as_array().into_iter().flatten().filter_map(Value::as_str);
                let said: Vec<&str> = (!said.is_empty()).then_some(said).into_iter().chain(errors).collect();
                let said = said.join("; ");
                if said.contains(TOO_SHORT) {
                    return Ok(TurnEnd { stop_reason: StopReason::Length, text: std::mem::take(&mut self.last_text) });
                }
                Err(if said.contains(NO_SESSION) {
                    no_session(&KIND, &said)
                } else {
                    model_failed(&KIND, &said, status)
                })
            }
        }
    }
}

fn no_result(exit: &Exit) -> RpcError {
    let text = format!("Claude Code gave no result: it {exit}");
    if exit.stderr.is_empty() { internal(text) } else { model_failed(&KIND, &text, None) }
}

/// What it tells when it tries its model again: what cannot become right by itself it would try for minutes.
fn retry(line: &Value) -> Told {
    let (status, attempt) = (line["error_status"].as_u64(), line["attempt"].as_u64().unwrap_or_default());
    if status == Some(401) && attempt >= REFUSED_MAX {
        return Told::Failed(model_failed(&KIND, "401: the API refuses its login", Some(401)));
    }
    let unreached = status.is_none();
    let status = status.map_or("no answer".to_owned(), |status| format!("status {status}"));
    Told::Waits { text: format!("Claude Code asks its model again, for the {attempt}. time: {status}"), unreached }
}

impl Output {
    fn assistant(&mut self, line: &Value, told: &mut Vec<Told>) {
        let message = &line["message"];
        // What an assistant of its own says is no answer of it.
        // Nor is what the program makes up itself: that is told with its result.
        let of_own = line["parent_tool_use_id"].is_null() && text(message, "model") != Some(SYNTHETIC);
        told.extend(self.usage(message).map(Told::Event));
        for part in message["content"].as_array().into_iter().flatten() {
            let event = match text(part, "type") {
                Some("text") if of_own => {
                    self.last_text = text(part, "text").unwrap_or_default().to_owned();
                    AgentEvent::Text { text: self.last_text.clone() }
                }
                Some("thinking") if of_own => {
                    AgentEvent::Reasoning { text: text(part, "thinking").unwrap_or_default().to_owned() }
                }
                Some("tool_use") => {
                    let (call_id, tool_name) =
                        (text(part, "id").unwrap_or_default(), text(part, "name").unwrap_or_default());
                    if tool_name.starts_with(&format!("mcp__{SERVER_NAME}__")) {
                        self.by_way_back.insert(call_id);
                        continue;
                    }
                    let arguments = part["input"].clone();
                    AgentEvent::ToolCall { call_id: call_id.to_owned(), tool_name: tool_name.to_owned(), arguments }
                }
                Some(_) | None => continue,
            };
            told.push(Told::Event(event));
        }
    }

    fn results(&mut self, line: &Value, told: &mut Vec<Told>) {
        for part in line["message"]["content"].as_array().into_iter().flatten() {
            let (Some("tool_result"), Some(call_id)) = (text(part, "type"), text(part, "tool_use_id")) else {
                continue;
            };
            if self.by_way_back.remove(call_id) {
                continue;
            }
            let content = match &part["content"] {
                Value::String(text) => vec![Part::text(text)],
                Value::Array(parts) => parts.iter().map(result_part).collect(),
                _ => Vec::new(),
            };
            let is_error = part["is_error"] == true;
            told.push(Told::Event(AgentEvent::ToolResult { call_id: call_id.to_owned(), content, is_error }));
        }
    }

    /// The tokens of a message of the model, told once: several lines are of one message.
    fn usage(&mut self, message: &Value) -> Option<AgentEvent> {
        let id = text(message, "id").filter(|_| message["usage"].is_object())?;
        // What it makes up itself cost nothing.
        let model = text(message, "model").filter(|model| *model != SYNTHETIC)?;
        if !self.counted.insert(id) {
            return None;
        }
        let usage = tokens(&message["usage"]);
        self.told = sum(self.told, usage);
        // What it cost is told with the end of the turn.
        Some(AgentEvent::Usage { usage, calls: 1, cost_usd: Some(0.0), model: Some(model.to_owned()) })
    }

    /// What the turn used beyond what was told, and what all of it cost.
    fn remaining_usage(&mut self, result: &Value) -> Option<AgentEvent> {
        let usage = rest(tokens(&result["usage"]), self.told);
        let cost_usd = result["total_cost_usd"].as_f64();
        self.paid = true;
        // A turn that did not come to its model used nothing.
        let nothing = self.counted.is_empty() && cost_usd == Some(0.0);
        (!nothing).then_some(AgentEvent::Usage { usage, calls: 0, cost_usd, model: None })
    }
}

fn result_part(part: &Value) -> Part {
    match (text(part, "type"), text(part, "text")) {
        (Some("text"), Some(text)) => Part::text(text),
        (Some(other), _) => Part::text(format!("[{other}]")),
        (None, _) => Part::text(part.to_string()),
    }
}

#[cfg(test)]
mod tests;
