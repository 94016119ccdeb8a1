//! One prompt until its answer: what the agent does meanwhile is told, what it asks for is judged.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use agent_client_protocol::v1::schema::{CancelNotification, PromptRequest, RequestPermissionRequest};
use assistant_protocol::error::RpcError;
use assistant_protocol::types::{AgentEvent, StopReason, Usage};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use serde_json::Value;
use tokio::time::sleep;

use super::internal;
use super::link::{AskError, Heard};
use super::live::Live;
use super::loss::gone;
use super::permission::{Asked, judge};
use super::said::{blocks, text_block};
use super::story::{Story, Told, cost_of};
use crate::adapter::bridge::SERVER_NAME;
use crate::adapter::ids::Ids;
use crate::adapter::literal::literal;
use crate::adapter::{Prompt, Run, TurnEnd};

/// How long an agent may stay silent until what is held back is told, in milliseconds: texts and calls that are not whole.
const QUIET_MS: u64 = 2_000;
/// What a turn has to have cost beyond what was told, in US dollars, until that is told before its end.
const COST_STEP_USD: f64 = 0.01;

impl Live {
    /// Gives the agent a prompt, and waits for its answer without a bound of time: the host has one.
    ///
    /// # Errors
    /// The run is over, the agent is gone, or it answers with an error.
    pub(super) async fn turn(&mut self, run: &Run, mut prompt: Prompt, ids: &Ids) -> Result<TurnEnd, RpcError> {
        if self.knows_earlier {
            prompt.without_earlier();
        }
        let (mut blocks, pictures) = blocks(prompt.content.parts().iter(), self.takes_images, self.mentions);
        if pictures > 0 {
            let why = if self.takes_images { "their bytes are not here" } else { "the agent takes none" };
            run.lacks("pictures", format!("{why}; it is told of them in words")).await?;
        }
        if let Some(instructions) = self.instructions.take() {
            let instructions = format!("<instructions>\n{instructions}\n</instructions>");
            blocks.insert(0, text_block(literal(&instructions, self.mentions)));
        }
        // From here on the session has what was said.
        self.knows_earlier = true;
        let request = PromptRequest::new(self.session.clone(), blocks);
        self.heard = Some(self.link.listen(&self.session));
        let link = self.link.clone();
        self.prompting = Some(Box::pin(async move { link.ask(&request).await }));
        let tools: BTreeSet<String> = run.tools().iter().map(|tool| tool.name.clone()).collect();
        let mut story = Story::new(SERVER_NAME, tools, ids.clone());
        let answer = self.hear(run, &mut prompt, &mut story).await?;
        self.prompting = None;
        for told in story.end() {
            tell(run, &story, told).await?;
        }
        if story.left_out() > 0 {
            let why =
                format!("it made more than can be told in a turn; {} updates of them are left out", story.left_out());
            run.lacks("some of its calls", why).await?;
        }
        run.wrote_to_stderr(self.process.last_line().as_deref());
        let odd = self.link.oddities();
        if odd.is_more_than(&self.odd_told) {
            crate::complain(&format!("the agent has written so far: {odd}"));
            odd.first().into_iter().for_each(|first| run.not_understood(&first));
            self.odd_told = odd;
        }
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return Err(self.lost("its turn", &error).await),
        };
        run.tell(self.used(&answer, story.cost_usd())).await?;
        let stop_reason = match answer.get("stopReason").and_then(Value::as_str) {
            Some("end_turn") => StopReason::Finished,
            Some("max_tokens" | "max_turn_requests") => StopReason::Length,
            Some("refusal") => StopReason::Refused,
            Some("cancelled") => StopReason::Cancelled,
            Some(other) => {
                let other: String = other.chars().take(100).collect();
                return Err(internal(format!(
                    "the agent ended its turn for a reason that the protocol does not have: {other}"
                )));
            }
            None => return Err(internal("the agent ended its turn without a reason")),
        };
        Ok(TurnEnd { stop_reason, text: story.last().to_owned() })
    }

    /// Hears the agent until it has answered, and what it said before that.
    async fn hear(
        &mut self,
        run: &Run,
        prompt: &mut Prompt,
        story: &mut Story,
    ) -> Result<Result<Value, AskError>, RpcError> {
        let Live { heard: Some(heard), prompting: Some(prompting), dir, process, cost_told, .. } = self else {
            return Err(internal("there is no prompt"));
        };
        let mut judging = FuturesUnordered::new();
        let answer = loop {
            let quiet = sleep(Duration::from_millis(QUIET_MS));
            tokio::select! {
                biased;
                Some(judged) = judging.next() => {
                    let judged: Result<Option<(String, String)>, RpcError> = judged;
                    if let Some((what, why)) = judged? {
                        run.lacks(what, why).await?;
                    }
                }
                Some(heard) = heard.recv() => {
                    prompt.given();
                    if let Some(asked) = take_in(run, story, heard, dir).await? {
                        judging.push(judge(run.clone(), asked));
                    }
                    if let Some(event) = cost_so_far(cost_told, story.cost_usd()) {
                        run.tell(event).await?;
                    }
                }
                answer = &mut *prompting => break answer,
                () = gone(process) => break Err(AskError::Gone("the agent closed its output".to_owned())),
                () = quiet, if story.is_holding() => {
                    for told in story.so_far() {
                        tell(run, story, told).await?;
                    }
                }
            }
        };
        if !matches!(answer, Err(AskError::Gone(_))) {
            prompt.given();
        }
        // What it said before its answer is here. What it still asks for it does not wait for.
        while let Ok(heard) = heard.try_recv() {
            take_in(run, story, heard, dir).await?;
        }
        Ok(answer)
    }

    /// What the turn has used, as far as the agent tells: of tokens what it says with its answer, of cost what is new.
    ///
    /// How many calls of its model it made, no agent tells; it was one at least.
    fn used(&mut self, answer: &Value, cost_usd: Option<f64>) -> AgentEvent {
        let (usage, model) = usage(answer);
        let new = cost_usd.zip(self.cost_told).map(|(cost, told)| (cost - told).max(0.0));
        self.cost_told = cost_usd.or(self.cost_told);
        AgentEvent::Usage { usage, calls: 1, cost_usd: new, model }
    }

    /// Cancels a prompt that waits for its answer, and waits for that: what the turn has used.
    pub(super) async fn cancelled(&mut self) -> Option<AgentEvent> {
        let Live { heard: Some(heard), prompting: Some(prompting), link, session, .. } = self else { return None };
        link.tell(&CancelNotification::new(session.clone()));
        let mut cost_usd = None;
        let answer = loop {
            tokio::select! {
                biased;
                Some(heard) = heard.recv() => match heard {
                    Heard::Update(update) => cost_usd = cost_of(&update).or(cost_usd),
                    // What it asks meanwhile is answered by being dropped.
                    Heard::Asks(_) => {}
                },
                answer = &mut *prompting => break answer,
            }
        };
        self.prompting = None;
        Some(answer.map_or_else(|_| unknown(), |answer| self.used(&answer, cost_usd)))
    }
}

/// What a session has cost beyond what was told, where it is known and worth a word: a bound on cost is to hold within a
/// turn too.
fn cost_so_far(told: &mut Option<f64>, cost_usd: Option<f64>) -> Option<AgentEvent> {
    let (before, now) = (*told.as_ref()?, cost_usd?);
    if now - before < COST_STEP_USD {
        return None;
    }
    *told = Some(now);
    Some(AgentEvent::Usage { usage: Usage::default(), calls: 0, cost_usd: Some(now - before), model: None })
}

/// What a turn has used of which the agent tells nothing.
pub(super) fn unknown() -> AgentEvent {
    AgentEvent::Usage { usage: Usage::default(), calls: 1, cost_usd: None, model: None }
}

/// Tells what was heard; gives what is to be judged.
async fn take_in(run: &Run, story: &mut Story, heard: Heard, dir: &Path) -> Result<Option<Asked>, RpcError> {
    match heard {
        Heard::Update(update) => {
            for told in story.add(*update) {
                tell(run, story, told).await?;
            }
            Ok(None)
        }
        Heard::Asks(asked) => {
            let (RequestPermissionRequest { tool_call, options, .. }, question) = *asked;
            let (asked, told) = story.asks(tool_call);
            for told in told {
                tell(run, story, told).await?;
            }
            let Some((call, call_id)) = asked else { return Ok(None) };
            if story.is_ours(&call) {
                // The host judges it when it is called.
                question.answer(&options, true);
                return Ok(None);
            }
            Ok(Some(Asked { call, dir: dir.to_owned(), call_id, ids: story.ids(), options, question }))
        }
    }
}

async fn tell(run: &Run, story: &Story, told: Told) -> Result<(), RpcError> {
    match told {
        Told::Event(event) => {
            if matches!(event, AgentEvent::Text { .. }) {
                // Of a long text only a piece is told now.
                run.says(story.said());
            }
            run.tell(event).await
        }
        Told::Progress { text, fraction } => {
            run.progress(text, fraction).await;
            Ok(())
        }
    }
}

/// Tokens of a turn, and the model where it was one: as the protocol has them, or beside the answer.
fn usage(answer: &Value) -> (Usage, Option<String>) {
    let number = |value: &Value, key: &str| value.get(key).and_then(Value::as_u64);
    if let Some(told) = answer.get("usage").filter(|told| told.is_object()) {
        let [input, output, thought, read, written, total] =
            ["inputTokens", "outputTokens", "thoughtTokens", "cachedReadTokens", "cachedWriteTokens", "totalTokens"]
                .map(|key| number(told, key));
        let cached = read.unwrap_or(0).saturating_add(written.unwrap_or(0));
        let plain = input.unwrap_or(0).saturating_add(output.unwrap_or(0));
        // The total tells whether cached ones are in the input.
        let apart = total.is_some_and(|total| total >= plain.saturating_add(cached));
        let usage = Usage {
            input_tokens: input.map(|input| if apart { input.saturating_add(cached) } else { input }),
            output_tokens: output,
            cache_read_tokens: read,
            cache_write_tokens: written,
            reasoning_tokens: thought,
        };
        return (usage, None);
    }
    let Some(quota) = answer.get("_meta").and_then(|meta| meta.get("quota")) else {
        return (Usage::default(), None);
    };
    let count = quota.get("token_count").cloned().unwrap_or_default();
    let usage = Usage {
        input_tokens: number(&count, "input_tokens"),
        output_tokens: number(&count, "output_tokens"),
        ..Usage::default()
    };
    let model = match quota.get("model_usage").and_then(Value::as_array).map(Vec::as_slice) {
        Some([one]) => one.get("model").and_then(Value::as_str).map(str::to_owned),
        _ => None,
    };
    (usage, model)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(answer: Value, input: Option<u64>, output: Option<u64>, cached: Option<u64>, model: Option<&str>) {
        let (usage, told) = usage(&answer);
        let got = (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, told.as_deref());
        assert_eq!(got, (input, output, cached, model), "{answer}");
    }

    #[test]
    fn tokens_are_read_wherever_agents_tell_them() {
        let apart =
            json!({ "usage": { "inputTokens": 60, "outputTokens": 7, "cachedReadTokens": 40, "totalTokens": 107 } });
        check(apart, Some(100), Some(7), Some(40), None);
        let within =
            json!({ "usage": { "inputTokens": 100, "outputTokens": 7, "cachedReadTokens": 40, "totalTokens": 107 } });
        check(within, Some(100), Some(7), Some(40), None);
        let usage = |model: Value| json!({ "_meta": { "quota": { "model_usage": model, "token_count": { "input_tokens": 9 } } } });
        check(usage(json!([{ "model": "m" }])), Some(9), None, None, Some("m"));
        check(usage(json!([{ "model": "m" }, { "model": "n" }])), Some(9), None, None, None);
        for none in
            [json!({}), json!(null), json!({ "usage": [], "_meta": 7 }), json!({ "usage": { "inputTokens": -1 } })]
        {
            check(none, None, None, None, None);
        }
        let most = json!({ "usage": { "inputTokens": u64::MAX, "outputTokens": 1, "cachedReadTokens": 5, "totalTokens": u64::MAX } });
        check(most, Some(u64::MAX), Some(1), Some(5), None);
    }
}
