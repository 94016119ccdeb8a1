//! One model call of a process: what is new is recorded and queued messages are taken in, in one commit, before the
//! provider is asked; the answer is recorded before the runner has it.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use assistant_protocol::error::{Kind, RpcError};
use assistant_protocol::ids::MessageId;
use assistant_protocol::service::CallCx;
use assistant_protocol::spec::bounds::CALL_ID_BYTES;
use assistant_protocol::types::{Content, LlmRequestParams, LlmRequestResult, Message, Part, Role, ToolSpec};
use futures::FutureExt;
use serde_json::json;
use tokio::sync::OwnedMutexGuard;

use super::account::Account;
use super::answer::FINAL_ANSWER;
use super::answered::{model_failed, record_answer, tools_called};
use super::hand_in::HandIn;
use super::link::{Link, NotBegun, cancelled, internal, tell_delta};
use super::recorded::{Asked, Before};
use super::stall::Noted;
use super::stored::STORE_AGAIN;
use crate::blobs;
use crate::caller::Caller;
use crate::model::answer_with_retries;
use crate::model::{Answer, Ask, ModelError, ModelErrorKind, NoModel, Progress, ToolChoice};
use crate::process_table;
use crate::store::BUDGETS;
use crate::tools::service_context::State;
use crate::{conversation, events, message_box};

/// What is in the record and may be missing in the conversation that the runner holds.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    /// Messages that were taken in and that no answer has given to the runner yet; those of the box with their id.
    unseen: Vec<(Message, Option<MessageId>)>,
    /// Messages that the last answer gave to the runner. It may not have got that answer.
    given: Vec<(Message, Option<MessageId>)>,
    /// It was told to hand in what it has: the model is asked without tools.
    told_to_hand_in: bool,
    /// Told that, it called tools: the model is not asked again.
    last_turn_spent: bool,
    /// What the next model call is told behind its conversation; in no record.
    context: Option<Message>,
    /// Ids of tool calls so far: a provider may give one twice.
    call_ids: HashSet<String>,
    /// What the last event of a model call tells.
    recorded: Before,
}

impl Conversation {
    /// What the last answer gave and the runner does not hold is given again, before what came later.
    fn give_again(&mut self, held: &[String]) {
        let given = std::mem::take(&mut self.given).into_iter();
        let lost: Vec<_> = given.filter(|(message, _)| !held.contains(&conversation::hash(message))).collect();
        self.unseen.splice(0..0, lost);
    }

    /// Notes the ids of the calls that a runner holds: those of a resumed conversation are not this process's own.
    fn know_call_ids(&mut self, held: &[Message]) {
        for message in held {
            for part in message.content.parts().iter() {
                if let Part::ToolCall { call_id, .. } = part
                    && !self.call_ids.contains(call_id)
                {
                    self.call_ids.insert(call_id.clone());
                }
            }
        }
    }

    /// Gives every tool call of an answer an id that no earlier one has, and that a runner may call it by.
    fn mint_call_ids(&mut self, message: &mut Message) {
        let Content::Parts(parts) = &mut message.content else { return };
        for part in parts {
            if let Part::ToolCall { call_id, .. } = part
                && (call_id.is_empty() || call_id.len() > CALL_ID_BYTES || !self.call_ids.insert(call_id.clone()))
            {
                let mut number = self.call_ids.len();
                while !self.call_ids.insert(format!("call_{number}")) {
                    number += 1;
                }
                *call_id = format!("call_{number}");
            }
        }
    }
}

pub(super) async fn on_llm_request(
    link: Arc<Link>,
    params: LlmRequestParams,
    cx: CallCx,
) -> Result<LlmRequestResult, RpcError> {
    link.in_a_run()?;
    let asked = Arc::new(link.asks_model(&params));
    let (system, held): (Vec<_>, Vec<_>) =
        params.messages.into_iter().partition(|message| message.role == Role::System);
    let held = Arc::new(held);
    let ask = ask(&link, &system, params.tools, params.options.as_ref());
    let answered = match link.own(params.thread_id, "on_llm_request").await {
        Ok(()) => link.while_needed(&cx, turn(&link, &held, ask, &asked)).await,
        Err(error) => Err(error),
    };
    if let Err(error) = &answered {
        link.refused_model(&asked, &held, error).await;
    }
    answered
}

async fn turn(
    link: &Arc<Link>,
    held: &Arc<Vec<Message>>,
    mut ask: Ask,
    asked: &Arc<Asked>,
) -> Result<LlmRequestResult, RpcError> {
    // Counted in any case: whether there is something to read is known when the mail is taken in.
    let with_blobs = link.kit().for_blobs(&ask.tools);
    ask.tools.extend(with_blobs.clone());
    let with_blobs = with_blobs.map(|tool| tool.name);
    let account = Account::new(link, &ask, held);
    let (mut conversation, account) = begin_when_it_can(link, held, account, asked).await?;
    let inserted: Vec<Message> = conversation.unseen.iter().map(|(message, _)| message.clone()).collect();
    ask.messages = held.iter().chain(&inserted).cloned().chain(conversation.context.take()).collect();
    blobs::show(&link.host, link.row.id, &mut ask.messages).await.map_err(|error| internal(&error))?;
    if let Some(name) = with_blobs {
        let has_any = link.host.store().look(|db| blobs::has_any(db, link.row.id)).map_err(|error| internal(&error))?;
        ask.tools.retain(|tool| has_any || tool.name != name);
    }
    ask.max_output_tokens = Some(account.max_output_tokens());
    if conversation.told_to_hand_in {
        match link.answering {
            Some(_) => ask.tools.retain(|tool| tool.name == FINAL_ANSWER),
            None => ask.tool_choice = ToolChoice::None,
        }
    }
    let mut answer = match ask_model(link, &ask, account).await {
        Ok(answer) => answer,
        Err(error) => {
            let told = json!({
                "call": asked.call(), "error": error.message, "kind": error.kind.to_string(), "provider": error.provider, "status": error.status,
            });
            let kind = error.kind;
            link.record_with(events::Kind::ModelAnswer, told, move |tx| account.settle_failed(tx, kind)).await;
            return Err(model_failed(&error));
        }
    };
    conversation.know_call_ids(held);
    conversation.mint_call_ids(&mut answer.message);
    record_answer(link, &mut answer, account, &inserted, asked).await.map_err(|error| internal(&error))?;
    conversation.last_turn_spent = conversation.told_to_hand_in && !tools_called(&answer.message).is_empty();
    conversation.given = std::mem::take(&mut conversation.unseen);
    Ok(LlmRequestResult {
        message: answer.message,
        finish_reason: answer.finish,
        usage: Some(answer.usage),
        model: answer.model,
        inserted: (!inserted.is_empty()).then_some(inserted),
    })
}

/// Begins a model call, as soon as its budget is not held by calls in flight and the store can be written.
async fn begin_when_it_can(
    link: &Arc<Link>,
    held: &Arc<Vec<Message>>,
    account: Account,
    asked: &Arc<Asked>,
) -> Result<(OwnedMutexGuard<Conversation>, Account), RpcError> {
    loop {
        let conversation = link.conversation.clone().lock_owned().await;
        let mut freed = link.host.store().waiter(BUDGETS);
        // In a task of its own: what is taken in is never forgotten, even if this call is given up meanwhile.
        let (at_work, task_link, task_held, asked) = (link.at_work().await, link.clone(), held.clone(), asked.clone());
        let begun = tokio::spawn(async move {
            let _at_work = at_work;
            begin(&task_link, conversation, &task_held, account, &asked).await
        });
        let panicked = |error| RpcError::new(Kind::InternalError, format!("a model call panicked: {error}"));
        match begun.await.map_err(panicked)? {
            Ok(begun) => return Ok(begun),
            Err(NotBegun::OverBudget(over)) if over.may_pass() => {
                let _waits = link.pulse.exempt();
                freed.news().await;
            }
            Err(NotBegun::Store(error)) if error.passes() && !link.host.closing().is_cancelled() => {
                tracing::error!(%error, process = %link.row.id, "a model call does not begin yet");
                let _waits = link.pulse.exempt();
                tokio::time::sleep(STORE_AGAIN).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Records what is new, and takes the queued messages in: insertion, state and event are one commit.
async fn begin(
    link: &Link,
    mut conversation: OwnedMutexGuard<Conversation>,
    held: &Arc<Vec<Message>>,
    mut account: Account,
    asked: &Asked,
) -> Result<(OwnedMutexGuard<Conversation>, Account), NotBegun> {
    let (process, limits, model) = (link.row.id, link.limits, link.row.model.clone());
    let (limit, schema) = (limits.turns, link.answering.is_some());
    let hashes: Vec<String> = held.iter().map(conversation::hash).collect();
    conversation.give_again(&hashes);
    if conversation.last_turn_spent
        && let Some(hand_in) = link.last_turn.told()
    {
        return Err(NotBegun::Rpc(hand_in.spent()));
    }
    let unseen = conversation.unseen.clone();
    let (told_before, due) = (conversation.told_to_hand_in, link.last_turn.told());
    let (job_held, mut told) = (held.clone(), json!({}));
    asked.tell(&mut told, &conversation.recorded);
    let begun = link.host.store().write(move |tx| {
        if !process_table::may_act(tx.db, Caller::Process(process))? {
            return Err(NotBegun::Rpc(cancelled("the process has ended or is cancelled")));
        }
        process_table::running(tx, process)?;
        let turns = process_table::count_turn(tx, process)?;
        if turns > limit {
            let message = format!("limit turns: {limit} model calls are done, the most that this run may make");
            return Err(NotBegun::Rpc(RpcError::new(Kind::BudgetExceeded, message)));
        }
        // The first model call has nothing to contain: what the runner did before was not asked for by a model.
        let mut mail = message_box::unheard(tx, process, |call_id| turns == 1 || holds(&job_held, call_id))?;
        mail.extend(message_box::take_queued(tx, process)?);
        let mut taken: Vec<(Message, Option<MessageId>)> =
            mail.iter().map(|one| (message_box::as_conversation(one), Some(one.mail.id))).collect();
        let last = (turns == limit).then(|| HandIn::new("turns", u64::from(limit), "model calls"));
        let (context, context_told) = State::look(tx.db, Caller::Process(process), tx.now)?.for_model().unzip();
        let inserted = unseen.iter().chain(&taken).map(|(message, _)| message).chain(&context);
        let unaffordable = account.reserve(tx, &limits, inserted)?;
        let hand_in = due.or(last).or(unaffordable);
        taken.extend(hand_in.iter().filter(|_| !told_before).map(|hand_in| (hand_in.message(schema), None)));
        let recorded = conversation::hashes(tx.db, process)?;
        let prefix = recorded.iter().zip(&hashes).take_while(|(recorded, held)| recorded == held).count();
        conversation::truncate(tx, process, u32::try_from(prefix).unwrap_or(u32::MAX))?;
        let new = job_held[prefix..].iter().map(|message| (message, None));
        let behind = unseen.iter().chain(&taken).map(|(message, id)| (message, *id));
        conversation::append(tx, process, new.chain(behind))?;
        told["model"] = model.into();
        told["prefix"] = prefix.into();
        told["new"] = (job_held.len() - prefix).into();
        told["seq"] = conversation::newest(tx.db)?.into();
        told["inserted"] = mail.iter().map(|one| json!(one.mail.id)).collect();
        told["hash"] = json!(hashes.last());
        if let Some(context) = context_told {
            told["service_context"] = context;
        }
        if let Some(hand_in) = &hand_in {
            told["hand_in"] = hand_in.limit().into();
        }
        events::record(tx, process, events::Kind::ModelCall, &told)?;
        tx.wake(process);
        Ok((taken, context, hand_in, account))
    });
    let (taken, context, hand_in, account) = begun.await?;
    asked.has_begun();
    asked.before(&mut conversation.recorded);
    conversation.context = context;
    conversation.unseen.extend(taken);
    if let Some(hand_in) = hand_in {
        conversation.told_to_hand_in = true;
        link.last_turn.tell(hand_in);
    }
    link.took.store(true, Ordering::Release);
    link.pulse.beat();
    Ok((conversation, account))
}

/// Whether a conversation has the result of a call; an error is not what handed something over.
fn holds(held: &[Message], of: &str) -> bool {
    let is = |part: &Part| matches!(part, Part::ToolResult { call_id, is_error: false, .. } if call_id == of);
    held.iter().any(|message| message.content.parts().iter().any(is))
}

fn ask(
    link: &Link,
    system: &[Message],
    tools: Option<Vec<ToolSpec>>,
    options: Option<&serde_json::Map<String, serde_json::Value>>,
) -> Ask {
    let system: Vec<_> = system.iter().map(|message| message.content.as_text()).collect();
    let kit = link.kit();
    let granted = |tool: &ToolSpec| kit.find(&tool.name).is_some();
    let max = options.and_then(|options| options.get("max_output_tokens")).and_then(serde_json::Value::as_u64);
    Ask {
        system: (!system.is_empty()).then(|| system.join("\n\n")),
        messages: Vec::new(),
        tools: tools.unwrap_or_default().into_iter().filter(granted).collect(),
        tool_choice: ToolChoice::Auto,
        max_output_tokens: max.and_then(|max| u32::try_from(max).ok()),
        output_schema: None,
        extra: serde_json::Map::new(),
    }
}

async fn ask_model(link: &Link, ask: &Ask, account: Account) -> Result<Answer, ModelError> {
    let rejected = |message: String| ModelError {
        kind: ModelErrorKind::Rejected,
        provider: link.row.model.clone(),
        status: None,
        retry_after_ms: None,
        message,
    };
    let models = link.host.models();
    let Some(model) = models.get(&link.row.model) else {
        return Err(rejected(match models.resolve(&[], None, false) {
            Err(none @ NoModel::NoneConfigured { .. }) => none.to_string(),
            Ok(_) | Err(NoModel::Unusable { .. } | NoModel::Refused { .. }) => {
                format!("the model `{}` is not configured any more", link.row.model)
            }
        }));
    };
    let (_in_flight, model) = (link.pulse.exempt(), Noted { model: &*model, pulse: &link.pulse });
    let most = usize::try_from(link.limits.result_bytes).unwrap_or(usize::MAX);
    let seen = |progress: Progress| {
        link.pulse.beat();
        if let Progress::Text(text) = progress {
            let mut partial = link.partial.lock().unwrap_or_else(PoisonError::into_inner);
            if partial.len() + text.len() <= most {
                partial.push_str(&text);
            }
            drop(partial);
            tell_delta(link, text);
        }
    };
    let (notices, mut heard) = tokio::sync::mpsc::channel(1);
    let answering = answer_with_retries(&model, ask, &seen, &link.limits, link.host.model_permits(), |notice| {
        link.partial.lock().unwrap_or_else(PoisonError::into_inner).clear();
        tell_delta(link, String::new());
        if let Err(error) = notices.try_send(notice) {
            tracing::warn!(%error, "a retry was not recorded");
        }
    });
    // A model may be an app's own: its panic is a failure of the model, not of the runner that asked.
    let answering = AssertUnwindSafe(answering).catch_unwind();
    tokio::pin!(answering);
    link.partial.lock().unwrap_or_else(PoisonError::into_inner).clear();
    loop {
        tokio::select! {
            biased;
            Some(notice) = heard.recv() => {
                let told = json!({
                    "retry": notice.retry, "wait_ms": notice.wait_ms, "given_up_in_ms": notice.left_ms,
                    "error": notice.error.message, "status": notice.error.status,
                });
                let kind = notice.error.kind;
                link.record_with(events::Kind::ModelRetry, told, move |tx| account.spend_attempt(tx, kind)).await;
            }
            answered = &mut answering => {
                return answered.unwrap_or_else(|_| Err(rejected("the model panicked".to_owned())));
            }
        }
    }
}
