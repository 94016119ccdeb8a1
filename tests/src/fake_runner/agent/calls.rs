//! What the agent asks in a run: its model and its tools, and what it does with their answers.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::faults::Fault;
use super::message::{error, rounded};
use super::{Agent, Done, Stop, conversation};

/// Calls that are under way at once.
const AT_ONCE: usize = 64;
/// How often the model is asked again where that may help.
const TRIES_MAX: u32 = 3;
/// Errors of tool calls that a model can do something about.
const MENDABLE: [&str; 6] =
    ["unknown_tool", "invalid_params", "not_permitted", "deadline_exceeded", "frame_too_large", "overloaded"];
/// Fields of a model's answer.
const ANSWER: [&str; 5] = ["message", "finish_reason", "usage", "model", "inserted"];

/// A run that goes on.
pub(super) struct Run {
    /// The id of its request.
    pub(super) id: Value,
    /// What the model said last.
    last: Value,
    /// Calls that are not made yet.
    waiting: VecDeque<Value>,
    /// Why it is over, once all calls are answered: what was handed in.
    handed_in: Option<Value>,
    /// How often the model was asked without an answer.
    tries: u32,
    /// It is cancelled, and one with a fault waits all the same.
    cancelled: bool,
}

/// A request of ours.
#[derive(Clone)]
pub(super) enum Asked {
    /// The model.
    Model,
    /// A tool: the call.
    Tool(Value),
    /// Something whose answer tells nothing.
    Aside,
}

impl Agent {
    pub(super) fn begin_run(&mut self, id: &Value, params: &Value) -> Done {
        if params["tools"].is_null() && self.has(Fault::DiesOfNullTools) {
            return Err(Stop::Exit(101));
        }
        let tools = params["tools"].as_array().cloned().unwrap_or_default();
        if !(tools.is_empty() && self.has(Fault::KeepsOldTools)) {
            self.tools = tools;
        }
        if self.has(Fault::NarrowSchemas) {
            self.tools.iter_mut().for_each(|tool| tool["input_schema"] = json!({ "type": "object" }));
        }
        self.conversation.begin(params);
        if self.cancel_next {
            self.cancel_next = self.has(Fault::CancelStays);
            return self.answer(id, Ok(json!({ "stop_reason": "cancelled", "content": "" })));
        }
        self.run = Some(Run {
            id: id.clone(),
            last: json!(""),
            waiting: VecDeque::new(),
            handed_in: None,
            tries: 0,
            cancelled: false,
        });
        match self.fault {
            Some(Fault::Chatters) => self.link.write(b"debug: the run begins\n".to_vec())?,
            Some(Fault::AsksUnknown) => self.ask("get_settings", json!({ "thread_id": self.thread }), Asked::Aside)?,
            Some(Fault::NoIds) => {
                let params = json!({ "thread_id": self.thread, "text": "I begin" });
                self.link.say(&json!({ "jsonrpc": "2.0", "method": "on_progress", "params": params }))?;
            }
            Some(Fault::AsksTwice) => self.ask_model()?,
            _ => {}
        }
        self.ask_model()
    }

    fn ask_model(&mut self) -> Done {
        let mut params = json!({ "thread_id": self.thread, "messages": self.conversation.all() });
        if self.has(Fault::ForeignThread) {
            params["thread_id"] = json!("0193a5c0-7c1a-7b52-9d3e-4f1f0a6b7c02");
        }
        if !self.tools.is_empty() {
            params["tools"] = json!(self.tools);
        }
        self.ask("on_llm_request", params, Asked::Model)
    }

    /// Asks the host. What is longer than it takes ends the run.
    fn ask(&mut self, method: &str, params: Value, asked: Asked) -> Done {
        self.last_id = if self.has(Fault::TheSameId) { 1 } else { self.last_id + 1 };
        let message = json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params });
        let bytes_max = match self.fault {
            Some(Fault::IgnoresTheirBound) => usize::MAX,
            Some(Fault::LongToolCalls) if method == "on_tool_call" => usize::MAX,
            Some(Fault::RoughBound) => self.their_bound.saturating_add(300),
            _ => self.their_bound,
        };
        if message.to_string().len() > bytes_max {
            self.interrupt("The call is longer than the host takes.")?;
            return self.end_run(Err(error("frame_too_large", "the conversation is longer than the host takes")));
        }
        self.asked.insert(self.last_id, asked);
        Ok(self.link.say(&message)?)
    }

    /// Takes an answer of the host.
    pub(super) fn answered(&mut self, id: &Value, outcome: Result<Value, Value>) -> Done {
        let number = id.as_u64().unwrap_or(0);
        let asked = match self.has(Fault::TakesAnswersTwice) {
            true => self.asked.get(&number).cloned(),
            false => self.asked.remove(&number),
        };
        match (asked, &self.run) {
            (Some(Asked::Model), Some(_)) => self.model_answered(outcome),
            (Some(Asked::Tool(call)), Some(_)) => self.tool_answered(&call, outcome),
            (None, _) if self.has(Fault::DiesOfStrangeAnswers) => Err(Stop::Exit(101)),
            (Some(_) | None, _) => Ok(()),
        }
    }

    fn model_answered(&mut self, outcome: Result<Value, Value>) -> Done {
        let answer = match outcome {
            Ok(answer) if self.has(Fault::StrictResults) && has_more(&answer, &ANSWER) => {
                return self.end_run(Err(error("internal_error", "the model's answer has an unknown field")));
            }
            Ok(answer) if self.has(Fault::RoundsNumbers) => rounded(&answer),
            Ok(answer) if answer["message"]["role"].is_string() => answer,
            Ok(_) => return self.end_run(Err(error("internal_error", "the model's answer is none"))),
            Err(failed) => return self.model_failed(failed),
        };
        let message = &answer["message"];
        self.conversation.answered(answer["inserted"].as_array().cloned().unwrap_or_default(), message);
        let mut calls = conversation::calls(message);
        let Some(run) = &mut self.run else { return Ok(()) };
        (run.last, run.tries) = (message["content"].clone(), 0);
        let finish = answer["finish_reason"].as_str().unwrap_or_default();
        if calls.is_empty() || self.fault == Some(Fault::NeedsTheReason) && finish != "tool_calls" {
            let why = match finish {
                "length" | "refused" if self.fault != Some(Fault::AlwaysFinished) => finish,
                "length" | "refused" | "stop" | "tool_calls" => "finished",
                _ if self.fault == Some(Fault::RefusesUnknownReasons) => {
                    return self.end_run(Err(error("internal_error", "an unknown finish_reason")));
                }
                _ => "finished",
            };
            let mut content = message["content"].clone();
            if self.has(Fault::TellsTexts) && content.is_array() {
                content.as_array_mut().iter_mut().for_each(|parts| parts.retain(|part| part["type"] == "text"));
            }
            return self.end_run(Ok(json!({ "stop_reason": why, "content": content })));
        }
        match self.fault {
            Some(Fault::CallsTwice) => calls = calls.iter().flat_map(|call| [call.clone(), call.clone()]).collect(),
            Some(Fault::ForgetsACall) if calls.len() > 1 => drop(calls.pop()),
            _ => {}
        }
        run.waiting.extend(calls);
        self.call_tools()
    }

    fn model_failed(&mut self, failed: Value) -> Done {
        let Some(run) = &mut self.run else { return Ok(()) };
        run.tries += 1;
        let again = failed["data"]["retryable"] == true && run.tries < TRIES_MAX;
        if again || [Some(Fault::TriesInVain), Some(Fault::TriesForEver)].contains(&self.fault) {
            if self.has(Fault::ForgetsTheQuery) {
                self.conversation.pop();
            }
            return self.ask_model();
        }
        self.end_run(match self.fault {
            Some(Fault::ErrorsAreInternal) => Err(error("internal_error", "the model failed")),
            Some(Fault::LosesErrorData) => {
                let data = json!({ "kind": failed["data"]["kind"] });
                Err(json!({ "code": failed["code"], "message": failed["message"], "data": data }))
            }
            Some(Fault::ErrorsAreAnswers) => {
                Ok(json!({ "stop_reason": "finished", "content": failed["message"].clone() }))
            }
            _ => Err(failed),
        })
    }

    /// Makes calls that wait, as many as may be under way; goes on where all are answered.
    fn call_tools(&mut self) -> Done {
        let at_once = match self.fault {
            Some(Fault::OneAtATime) => 1,
            Some(Fault::AllAtOnce) => usize::MAX,
            _ => AT_ONCE,
        };
        while self.tools_under_way() < at_once
            && let Some(call) = self.run.as_mut().and_then(|run| run.waiting.pop_front())
        {
            self.call_tool(call)?;
        }
        let Some(run) = &self.run else { return Ok(()) };
        if self.tools_under_way() > 0 {
            return Ok(());
        }
        if run.cancelled {
            return self.end_run(Ok(json!({ "stop_reason": "cancelled", "content": run.last })));
        }
        if let Some(structured) = &run.handed_in {
            let mut result = json!({ "stop_reason": "final_answer", "content": run.last });
            if !self.has(Fault::LosesStructured) {
                result["structured"] = structured.clone();
            }
            return self.end_run(Ok(result));
        }
        if self.has(Fault::OrderOfCalls) {
            self.conversation.sort_results();
        }
        self.ask_model()
    }

    fn tools_under_way(&self) -> usize {
        self.asked.values().filter(|asked| matches!(asked, Asked::Tool(_))).count()
    }

    fn call_tool(&mut self, call: Value) -> Done {
        let mut arguments = call["arguments"].clone();
        if arguments.is_null() {
            arguments = json!({});
            if !call["arguments_text"].is_null() && !self.has(Fault::GuessesArguments) {
                let words = "The arguments are no valid JSON. Call it again.";
                self.conversation.failed(id_of(&call), words);
                return Ok(());
            }
        }
        if self.has(Fault::ArgumentsAreText) {
            arguments = json!(arguments.to_string());
        }
        let mut name = call["tool_name"].clone();
        if self.has(Fault::UpperCase) {
            name = json!(name.as_str().unwrap_or_default().to_uppercase());
        }
        let call_id = if self.has(Fault::OwnCallIds) { json!("call-1") } else { call["call_id"].clone() };
        let params = json!({ "thread_id": self.thread, "call_id": call_id, "tool_name": name, "arguments": arguments });
        self.ask("on_tool_call", params, Asked::Tool(call))
    }

    fn tool_answered(&mut self, call: &Value, outcome: Result<Value, Value>) -> Done {
        match outcome {
            Ok(result) if result["content"].is_null() && self.has(Fault::DiesOfNullContent) => {
                return Err(Stop::Exit(101));
            }
            Ok(result) => {
                self.conversation.result(id_of(call), &result);
                if result["end_run"] == true && !self.has(Fault::IgnoresEndRun) {
                    let told = &result["structured_content"];
                    let arguments = told.is_null() || self.has(Fault::HandsInArguments);
                    let structured = if arguments { call["arguments"].clone() } else { told.clone() };
                    let first = self.has(Fault::FirstEnd);
                    let run = self.run.iter_mut().filter(|run| !(first && run.handed_in.is_some()));
                    run.for_each(|run| run.handed_in = Some(structured.clone()));
                }
            }
            Err(failed) => {
                let kind = failed["data"]["kind"].as_str().unwrap_or_default();
                let words = failed["message"].as_str().unwrap_or("the call failed").to_owned();
                let unknown = kind == "never_heard_of" && self.has(Fault::MendsTheUnknown);
                let mendable = unknown || MENDABLE.contains(&kind) && !self.has(Fault::EndsAtMendable);
                self.conversation.failed(id_of(call), &words);
                if !mendable && !self.has(Fault::GoesOnAfterFatal) {
                    self.interrupt("The call was given up.")?;
                    return self.end_run(Err(failed));
                }
            }
        }
        self.call_tools()
    }

    /// Gives up what the run waits for; each call has a result then.
    fn interrupt(&mut self, words: &str) -> Done {
        let given_up: Vec<(u64, Asked)> = match self.has(Fault::TakesLateAnswers) {
            true => self.asked.iter().map(|(id, asked)| (*id, asked.clone())).collect(),
            false => std::mem::take(&mut self.asked).into_iter().collect(),
        };
        for (id, asked) in given_up {
            if let Asked::Tool(call) = &asked
                && !self.has(Fault::OpenCalls)
            {
                self.conversation.failed(id_of(call), words);
            }
            if !matches!(asked, Asked::Aside) && !self.has(Fault::KeepsItsCalls) {
                self.ask("cancel_call", json!({ "id": id }), Asked::Aside)?;
            }
        }
        let waiting = self.run.as_mut().map(|run| std::mem::take(&mut run.waiting));
        for call in waiting.into_iter().flatten() {
            self.conversation.failed(id_of(&call), words);
        }
        Ok(())
    }

    /// Ends the run that goes on: `cancel`, or `cancel_call` of it.
    pub(super) fn cancel_run(&mut self, by_call: bool) -> Done {
        let Some(run) = &mut self.run else { return Ok(()) };
        if self.fault == Some(Fault::WaitsForTools) && self.asked.values().any(|asked| matches!(asked, Asked::Tool(_)))
        {
            run.cancelled = true;
            return Ok(());
        }
        let result = json!({ "stop_reason": "cancelled", "content": run.last });
        let id = run.id.clone();
        self.cancel_next = self.has(Fault::StaysCancelled);
        self.interrupt("The run was cancelled before the call was answered.")?;
        match by_call || self.has(Fault::CancelIsAnError) {
            true if self.has(Fault::DropsTheRun) => {
                self.run = None;
                Ok(())
            }
            true => self.end_run(Err(error("cancelled", "the run was cancelled"))),
            false => {
                self.end_run(Ok(result.clone()))?;
                if self.has(Fault::EndsTwice) { self.answer(&id, Ok(result)) } else { Ok(()) }
            }
        }
    }

    fn end_run(&mut self, outcome: Result<Value, Value>) -> Done {
        let Some(run) = self.run.take() else { return Ok(()) };
        self.answer(&run.id, outcome)?;
        if self.has(Fault::AsksAside) {
            self.ask("on_progress", json!({ "thread_id": self.thread, "text": "done" }), Asked::Aside)?;
        }
        if let Some(shutdown) = self.ending.take() {
            return self.answer(&shutdown, Ok(json!({})));
        }
        Ok(())
    }
}

fn id_of(call: &Value) -> &str {
    call["call_id"].as_str().unwrap_or_default()
}

/// Whether an object has fields that are none of these.
pub(super) fn has_more(value: &Value, fields: &[&str]) -> bool {
    value.as_object().is_some_and(|map| map.keys().any(|key| !fields.contains(&key.as_str())))
}
