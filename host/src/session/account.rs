//! What a model call may use and what it used, for the budgets of its tree and of the day.

use assistant_protocol::ids::ProcessId;
use assistant_protocol::types::{Message, Usage};

use super::hand_in::HandIn;
use super::link::{Link, NotBegun};
use crate::limits::{Limits, Usd};
use crate::model::estimate;
use crate::model::prices::Price;
use crate::model::{Answer, Ask, ModelErrorKind};
use crate::process_table::budget::{self, Need};
use crate::store::{StoreError, Tx};

/// One model call, as its budgets see it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Account {
    process: ProcessId,
    need: Need,
    price: Option<Price>,
}

impl Account {
    /// The account of a call with these messages; what is inserted yet comes with [`Account::reserve`].
    pub(super) fn new(link: &Link, ask: &Ask, held: &[Message]) -> Self {
        let models = link.host.models();
        let most = models.max_output_tokens(&link.row.model);
        let input_tokens = ask.system.as_deref().map_or(0, estimate::text)
            + held.iter().map(estimate::message).sum::<u64>()
            + ask.tools.iter().map(estimate::tool).sum::<u64>();
        let output_tokens = u64::from(ask.max_output_tokens.map_or(most, |asked| asked.min(most)));
        let need = Need { input_tokens, output_tokens };
        Self { process: link.row.id, need, price: models.price(&link.row.model) }
    }

    /// Reserves the most that the call may use, with what is inserted into its conversation. Cuts its answer to what is
    /// left, and tells where this is the last call that is affordable.
    pub(super) fn reserve<'a>(
        &mut self,
        tx: &mut Tx<'_>,
        limits: &Limits,
        inserted: impl Iterator<Item = &'a Message>,
    ) -> Result<Option<HandIn>, NotBegun> {
        self.need.input_tokens += inserted.map(estimate::message).sum::<u64>();
        let price = self.price;
        let most = price.map(|price| move |need: Need| price.most(need.input_tokens, need.output_tokens));
        let cost = most.as_ref().map(|most| most as &dyn Fn(Need) -> f64);
        match budget::reserve(tx, self.process, self.need, limits, cost)? {
            Ok(reserved) => {
                self.need.output_tokens = reserved.output_tokens;
                Ok(reserved.last.map(|last| HandIn::new(last.limit, last.of, last.unit)))
            }
            Err(over) => Err(NotBegun::OverBudget(over)),
        }
    }

    /// What an answer cost, US dollars; none where its price or its usage is not known.
    pub(super) fn cost(&self, usage: &Usage) -> Option<f64> {
        let known = usage.input_tokens.is_some() && usage.output_tokens.is_some();
        self.price.filter(|_| known).map(|price| price.cost(usage))
    }

    /// The most tokens that the answer may have.
    pub(super) fn max_output_tokens(&self) -> u32 {
        u32::try_from(self.need.output_tokens).unwrap_or(u32::MAX)
    }

    /// Settles the reservation by what the call used; what its provider does not tell is estimated.
    pub(super) fn settle(&self, tx: &Tx<'_>, answer: &Answer) -> Result<(), StoreError> {
        let usage = &answer.usage;
        let known = usage.input_tokens.is_some() && usage.output_tokens.is_some();
        let input = usage.input_tokens.unwrap_or(self.need.input_tokens);
        let output = usage.output_tokens.unwrap_or_else(|| estimate::message(&answer.message));
        let cost = self.price.map(|price| if known { price.cost(usage) } else { price.most(input, output) });
        budget::settle_call(tx, self.process, input.saturating_add(output), micros(cost))
    }

    /// Settles the reservation of a call that failed: where an answer had begun, its provider has done the work.
    pub(super) fn settle_failed(&self, tx: &Tx<'_>, kind: ModelErrorKind) -> Result<(), StoreError> {
        if has_begun(kind) {
            budget::settle_given_up(tx, self.process)
        } else {
            budget::settle_call(tx, self.process, 0, 0)
        }
    }

    /// Counts an attempt that failed and is followed by another one, whose reservation stands.
    pub(super) fn spend_attempt(&self, tx: &Tx<'_>, kind: ModelErrorKind) -> Result<(), StoreError> {
        if !has_begun(kind) {
            return Ok(());
        }
        let Need { input_tokens, output_tokens } = self.need;
        let cost = self.price.map(|price| price.most(input_tokens, output_tokens));
        budget::spend(tx, self.process, input_tokens.saturating_add(output_tokens), micros(cost))
    }
}

/// Whether a call that failed so may have cost something.
fn has_begun(kind: ModelErrorKind) -> bool {
    matches!(kind, ModelErrorKind::Cut | ModelErrorKind::TimedOut | ModelErrorKind::Unreadable)
}

fn micros(dollars: Option<f64>) -> u64 {
    dollars.and_then(Usd::new).map_or(0, Usd::micros)
}
