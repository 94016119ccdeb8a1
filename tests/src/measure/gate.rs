//! A model that answers at once, or when it is let.

use std::time::Instant;

use assistant_host::model::{Answer, Ask, Model, ModelError, Progress};
use assistant_protocol::types::{Content, FinishReason, Message, Part, Role, Usage};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::json;
use tokio::sync::watch;

use crate::bed::SOON;

/// Counts what it is asked, and answers while it is open. An assistant whose prompt says `You are boss.` spawns as many
/// `leaf` as its task says first.
#[derive(Debug)]
pub struct Gate {
    asked: watch::Sender<(usize, Option<Instant>)>,
    open: watch::Sender<bool>,
}

impl Gate {
    /// One that is open or not.
    #[must_use]
    pub fn new(open: bool) -> Self {
        Self { asked: watch::Sender::new((0, None)), open: watch::Sender::new(open) }
    }

    /// Lets all answers out.
    pub fn open(&self) {
        self.open.send_replace(true);
    }

    /// How often it was asked.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.asked.borrow().0
    }

    /// Waits until it was asked that often: when the last of them came.
    ///
    /// # Panics
    /// Where that never comes.
    pub async fn until_asked(&self, times: usize) -> Instant {
        let mut asked = self.asked.subscribe();
        let came = tokio::time::timeout(SOON, asked.wait_for(|(count, _)| *count >= times)).await;
        let (_, at) = *came.expect("the model is asked").expect("the model is there");
        at.unwrap_or_else(Instant::now)
    }
}

impl Model for Gate {
    fn answer<'a>(&'a self, ask: Ask, _: &'a (dyn Fn(Progress) + Sync)) -> BoxFuture<'a, Result<Answer, ModelError>> {
        let now = Instant::now();
        self.asked.send_modify(|(count, at)| {
            *count += 1;
            *at = Some(now);
        });
        async move {
            let boss = ask.system.is_some_and(|system| system.contains("You are boss."));
            let (content, finish) = match ask.messages.as_slice() {
                [task] if boss => (Content::Parts(spawns(&task.content.as_text())), FinishReason::ToolCalls),
                _ => {
                    // Open for ever once it is opened; the sender is this model's own.
                    let _ = self.open.subscribe().wait_for(|open| *open).await;
                    (Content::Text("done".to_owned()), FinishReason::Stop)
                }
            };
            let message = Message { role: Role::Assistant, content };
            Ok(Answer { message, finish, usage: Usage::default(), model: "gate".to_owned() })
        }
        .boxed()
    }

    fn provider(&self) -> &str {
        "gate"
    }
}

fn spawns(task: &str) -> Vec<Part> {
    let count: usize = task.split_whitespace().find_map(|word| word.parse().ok()).unwrap_or(0);
    let call = |number| Part::ToolCall {
        call_id: format!("spawn_{number}"),
        tool_name: "spawn_assistant".to_owned(),
        arguments: Ok(json!({ "assistant_id": "leaf", "query": "q" })),
    };
    (0..count).map(call).collect()
}
