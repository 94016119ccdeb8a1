//! A model that a test steps: each call waits until the test answers it.

use assistant_host::model::{Answer, Ask, Model, ModelError, ModelErrorKind, Progress};
use assistant_protocol::types::{Content, FinishReason, Message, Part, Role, Usage};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

use crate::bed::SOON;

/// Model calls that wait for the test at once.
const WAITING_MAX: usize = 4_096;

/// The model: put it into a bed.
pub struct Stepped(mpsc::Sender<Turn>);

/// The test's end of it.
pub struct Turns {
    asked: mpsc::Receiver<Turn>,
    early: Vec<Turn>,
}

/// A model call that waits for its answer.
pub struct Turn {
    /// What is asked.
    pub ask: Ask,
    reply: oneshot::Sender<Result<Answer, ModelError>>,
}

/// A model and its steps.
pub fn stepped() -> (Arc<Stepped>, Turns) {
    let (asks, asked) = mpsc::channel(WAITING_MAX);
    (Arc::new(Stepped(asks)), Turns { asked, early: Vec::new() })
}

impl Model for Stepped {
    fn answer<'a>(&'a self, ask: Ask, _: &'a (dyn Fn(Progress) + Sync)) -> BoxFuture<'a, Result<Answer, ModelError>> {
        async move {
            let (reply, answered) = oneshot::channel();
            if self.0.send(Turn { ask, reply }).await.is_err() {
                return Err(failure("the test is over"));
            }
            answered.await.unwrap_or_else(|_| Err(failure("the test did not answer")))
        }
        .boxed()
    }

    fn provider(&self) -> &str {
        "stepped"
    }
}

fn failure(why: &str) -> ModelError {
    ModelError {
        kind: ModelErrorKind::Rejected,
        provider: "stepped".to_owned(),
        status: None,
        retry_after_ms: None,
        message: why.to_owned(),
    }
}

impl Turns {
    /// The next call of the assistant `name`; those of others wait.
    ///
    /// # Panics
    /// Where none comes.
    pub async fn of(&mut self, name: &str) -> Turn {
        if let Some(at) = self.early.iter().position(|turn| turn.is_of(name)) {
            return self.early.remove(at);
        }
        loop {
            let next = tokio::time::timeout(SOON, self.asked.recv()).await;
            let turn = next.unwrap_or_else(|_| panic!("{name} never asked the model")).expect("the model is there");
            if turn.is_of(name) {
                return turn;
            }
            self.early.push(turn);
        }
    }

    /// A call that waits already, or comes within `ms` milliseconds.
    pub async fn any(&mut self, ms: u64) -> Option<Turn> {
        if !self.early.is_empty() {
            return Some(self.early.remove(0));
        }
        tokio::time::timeout(std::time::Duration::from_millis(ms), self.asked.recv()).await.ok().flatten()
    }
}

impl Turn {
    fn is_of(&self, name: &str) -> bool {
        self.ask.system.as_deref().is_some_and(|system| system.starts_with(&format!("You are {name}.")))
    }

    /// The name of the assistant.
    pub fn name(&self) -> &str {
        let system = self.ask.system.as_deref().unwrap_or_default();
        system.strip_prefix("You are ").and_then(|rest| rest.split('.').next()).unwrap_or_default()
    }

    /// How many messages of the conversation contain a text.
    pub fn has(&self, text: &str) -> usize {
        let holds = |message: &&Message| serde_json::to_string(message).is_ok_and(|json| json.contains(text));
        self.ask.messages.iter().filter(holds).count()
    }

    /// The place of the first message that contains a text.
    pub fn place(&self, text: &str) -> Option<usize> {
        self.ask
            .messages
            .iter()
            .position(|message| serde_json::to_string(message).is_ok_and(|json| json.contains(text)))
    }

    /// The results of tool calls in the conversation, oldest first.
    pub fn results(&self) -> Vec<Value> {
        let result = |part: &Part| match part {
            Part::ToolResult { content, .. } => {
                let text: String = content.iter().map(part_text).collect();
                Some(serde_json::from_str(&text).unwrap_or(Value::String(text)))
            }
            _ => None,
        };
        let all = self.ask.messages.iter();
        all.flat_map(|message| message.content.parts().iter().filter_map(result).collect::<Vec<_>>()).collect()
    }

    /// The last of them.
    ///
    /// # Panics
    /// Where there is none.
    pub fn result(&self) -> Value {
        self.results().pop().expect("a result")
    }

    /// Answers with a text, which is the end of the run.
    pub fn says(self, text: &str) {
        self.answer(Content::Text(text.to_owned()), FinishReason::Stop);
    }

    /// Answers with calls of tools.
    pub fn calls(self, calls: &[(&str, Value)]) {
        let part = |(tool, arguments): &(&str, Value)| Part::ToolCall {
            call_id: String::new(),
            tool_name: (*tool).to_owned(),
            arguments: Ok(arguments.clone()),
        };
        self.answer(Content::Parts(calls.iter().map(part).collect()), FinishReason::ToolCalls);
    }

    /// Fails for good.
    pub fn fails(self) {
        // A call that was given up is answered by nobody.
        let _ = self.reply.send(Err(failure("not today")));
    }

    fn answer(self, content: Content, finish: FinishReason) {
        let usage = Usage { input_tokens: Some(3), output_tokens: Some(2), ..Usage::default() };
        let message = Message { role: Role::Assistant, content };
        // A call that was given up is answered by nobody.
        let _ = self.reply.send(Ok(Answer { message, finish, usage, model: "stepped".to_owned() }));
    }
}

fn part_text(part: &Part) -> &str {
    match part {
        Part::Text { text } => text,
        _ => "",
    }
}
