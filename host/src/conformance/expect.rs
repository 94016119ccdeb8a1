//! What cases wait for, and what most of them do.

use assistant_protocol::error::{Kind, RpcError};
use assistant_protocol::spec::rules;
use assistant_protocol::types::{InitializeResult, PROTOCOL_VERSION, RunResult, StopReason};
use assistant_protocol::wire::Id;
use serde_json::{Value, json};

use super::Fault;
use super::scripted_host::{Ours, Request, ScriptedHost, ToolCall, Turn, cut};

impl ScriptedHost {
    /// Waits for the answer to a request. Requests that the case has not seen may come before it.
    pub(super) async fn answer_beside(&mut self, id: &Id) -> Result<Result<Value, RpcError>, Fault> {
        let what = match self.ours.get(id) {
            Some(Ours::Open(method)) => format!("answers `{method}` ({})", json!(id)),
            Some(Ours::Answered(_) | Ours::Taken) | None => format!("answers the request {}", json!(id)),
        };
        self.until(&what, |host| Ok(host.answered(id))).await
    }

    fn answered(&mut self, id: &Id) -> Option<Result<Value, RpcError>> {
        let ours = self.ours.get_mut(id)?;
        match std::mem::replace(ours, Ours::Taken) {
            Ours::Answered(outcome) => Some(outcome),
            other => {
                *ours = other;
                None
            }
        }
    }

    /// Waits for the answer to a request; anything that is asked before it is wrong.
    pub(super) async fn answer(&mut self, id: &Id) -> Result<Result<Value, RpcError>, Fault> {
        let what = format!("answers the request {} before it asks anything", json!(id));
        let words = what.clone();
        self.until(&what, move |host| match (host.answered(id), host.inbox.front()) {
            (Some(outcome), _) => Ok(Some(outcome)),
            (None, Some(request)) => Err(host.fault(&words, format!("it asks `{}`", request.method))),
            (None, None) => Ok(None),
        })
        .await
    }

    /// The same, where the answer has to be a result.
    pub(super) async fn result(&mut self, id: &Id) -> Result<Value, Fault> {
        let outcome = self.answer(id).await?;
        outcome.map_err(|error| self.fault("answers with a result", format!("the error {} {error}", error.code)))
    }

    /// The same, where it has to be an error; of one of these kinds, if there are some.
    pub(super) async fn error(&mut self, id: &Id, kinds: &[Kind]) -> Result<RpcError, Fault> {
        let names: Vec<String> = kinds.iter().map(|kind| format!("{} ({})", kind.name(), kind.code())).collect();
        let expected = match names.is_empty() {
            true => "answers with an error".to_owned(),
            false => format!("answers with the error {}", names.join(" or ")),
        };
        match self.answer_beside(id).await? {
            Ok(result) => Err(self.fault(expected, format!("the result {}", cut(&result)))),
            Err(error) if kinds.is_empty() || kinds.iter().any(|kind| error.code == kind.code()) => Ok(error),
            Err(error) => Err(self.fault(expected, format!("the error {} {error}", error.code))),
        }
    }

    /// Waits for a request of the runner.
    pub(super) async fn request(&mut self, method: &str) -> Result<Request, Fault> {
        let what = format!("asks `{method}`");
        let words = what.clone();
        self.until(&what, move |host| {
            if let Some(at) = host.inbox.iter().position(|request| request.method == method) {
                return Ok(host.inbox.remove(at));
            }
            if let Some(request) = host.inbox.front() {
                return Err(host.fault(&words, format!("it asks `{}`", request.method)));
            }
            match host.runs {
                0 => {
                    host.habits.needs_more |= host.habits.is_adapter();
                    Err(host.fault(&words, "no run goes on: `run` was answered"))
                }
                _ => Ok(None),
            }
        })
        .await
    }

    /// Waits for a model call.
    pub(super) async fn model_call(&mut self) -> Result<Turn, Fault> {
        let request = self.request("on_llm_request").await?;
        let params = serde_json::from_value(request.params.clone());
        let params = params.map_err(|error| self.fault("params that fit", error.to_string()))?;
        Ok(Turn { request, params })
    }

    /// Waits for a model call, or for the answer to the `run` that goes on: then there is none.
    pub(super) async fn model_call_or_end(&mut self) -> Result<Option<Turn>, Fault> {
        match self.asks("asks `on_llm_request`, or answers `run`").await? {
            Some(_) => self.model_call().await.map(Some),
            None => Ok(None),
        }
    }

    /// Waits for anything that is asked, and tells the method; none where the `run` that goes on is answered.
    pub(super) async fn asks(&mut self, what: &str) -> Result<Option<String>, Fault> {
        self.until(what, |host| match host.inbox.front() {
            Some(request) => Ok(Some(Some(request.method.clone()))),
            None => Ok((host.runs == 0).then_some(None)),
        })
        .await
    }

    /// Waits for a tool call.
    pub(super) async fn tool_call(&mut self) -> Result<ToolCall, Fault> {
        let request = self.request("on_tool_call").await?;
        let params = serde_json::from_value(request.params.clone());
        let params = params.map_err(|error| self.fault("params that fit", error.to_string()))?;
        Ok(ToolCall { request, params })
    }

    /// Asks `ping` and waits for the answer: all that was written before is seen then.
    pub(super) async fn ping(&mut self) -> Result<(), Fault> {
        let ping = self.ask("ping", &json!({})).await?;
        match self.answer_beside(&ping).await? {
            Ok(_) => Ok(()),
            Err(error) => Err(Fault {
                rule: rules::PING_ANY_TIME,
                expected: "answers `ping` with {}".to_owned(),
                seen: format!("the error {} {error}", error.code),
            }),
        }
    }

    // What most cases do.

    /// What `initialize` is asked with.
    pub(super) fn hello(&self) -> Value {
        json!({
            "protocol_version": PROTOCOL_VERSION,
            "process_id": self.process_id,
            "thread_id": self.thread_id,
            "host": { "name": "conformance", "version": env!("CARGO_PKG_VERSION") },
            "max_frame_bytes": self.max_frame_bytes,
            "capabilities": {},
            "limits": { "turns": 50, "tool_calls": 500, "wall_ms": 1_800_000 },
        })
    }

    /// Shakes hands.
    pub(super) async fn begin(&mut self) -> Result<InitializeResult, Fault> {
        let hello = self.hello();
        let asked = self.ask("initialize", &hello).await?;
        let told = self.result(&asked).await?;
        serde_json::from_value(told)
            .map_err(|error| self.fault("answers `initialize` as its schema says", error.to_string()))
    }

    /// Waits for the answer to a `run`, which has to be a result with this stop reason.
    pub(super) async fn ran(&mut self, run: &Id, why: StopReason) -> Result<RunResult, Fault> {
        let told = self.result(run).await?;
        let expected = format!("answers `run` with stop_reason {}", json!(why));
        let result: RunResult =
            serde_json::from_value(told.clone()).map_err(|error| self.fault(&expected, error.to_string()))?;
        if result.stop_reason == why { Ok(result) } else { Err(self.fault(expected, cut(&told))) }
    }

    /// Ends the runner in order, if the case has not, and waits until it has gone.
    pub(super) async fn end(&mut self) -> Result<(), Fault> {
        if self.stdin.is_some() {
            self.rule = rules::SHUTDOWN;
            let asked = self.ask("shutdown", &json!({})).await?;
            if let Err(error) = self.answer_beside(&asked).await? {
                return Err(self.fault("answers `shutdown` with {}", format!("the error {} {error}", error.code)));
            }
            self.close_stdin();
        }
        self.exit().await.map(|_| ())
    }
}
