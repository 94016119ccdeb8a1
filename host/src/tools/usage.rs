//! What a process used and what that cost, alone and with all that it spawned: one computation for every tool that
//! tells it.

use assistant_protocol::ids::ProcessId;
use rusqlite::Connection;
use schemars::JsonSchema;
use serde::Serialize;

use crate::model::Models;
use crate::process_table::{self, Process, Used};
use crate::store::StoreError;

/// What one process or several used so far; a model call counts when it is begun, its tokens when it has answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct UsageSeen {
    model_calls: u32,
    tool_calls: u32,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    #[schemars(skip)]
    #[serde(skip_serializing_if = "is_zero")]
    cache_read_tokens: u64,
    #[schemars(skip)]
    #[serde(skip_serializing_if = "is_zero")]
    cache_write_tokens: u64,
    #[schemars(skip)]
    #[serde(skip_serializing_if = "is_zero")]
    reasoning_tokens: u64,
    /// Model calls that the tokens lack.
    #[schemars(skip)]
    #[serde(skip_serializing_if = "is_zero")]
    unknown_calls: u64,
    /// Null: unknown.
    cost_usd: Option<f64>,
    /// What of it is known, where that is not all.
    #[schemars(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd_at_least: Option<f64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What a process used itself, and what it and all that it spawned used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OfProcess {
    pub(crate) own: UsageSeen,
    /// None where it spawned nothing: it is the same then.
    pub(crate) tree: Option<UsageSeen>,
}

/// What `row` used.
///
/// # Errors
/// The store's.
pub(crate) fn of(db: &Connection, row: &Process, models: &Models) -> Result<OfProcess, StoreError> {
    let parts = process_table::used(db, row.id)?;
    let others = parts.iter().map(|part| part.processes).sum::<u32>() > 1;
    let told = if row.agent { process_table::told_cost(db, row.id)? } else { None };
    let own = Used { told, ..own(row) };
    Ok(OfProcess { own: UsageSeen::new(&own, models), tree: others.then(|| sum(&parts, models)) })
}

/// What a process and all that it spawned cost, US dollars; none where a price or a usage is not known.
///
/// # Errors
/// The store's.
pub(crate) fn cost_of_tree(db: &Connection, process: ProcessId, models: &Models) -> Result<Option<f64>, StoreError> {
    Ok(sum(&process_table::used(db, process)?, models).cost_usd)
}

fn own(row: &Process) -> Used {
    Used {
        model: row.model.clone(),
        processes: 1,
        model_calls: row.turns,
        tool_calls: row.tool_calls,
        usage: row.usage,
        unknown_calls: row.unknown_calls,
        told: None,
    }
}

fn sum(parts: &[Used], models: &Models) -> UsageSeen {
    let none = UsageSeen { input_tokens: Some(0), output_tokens: Some(0), cost_usd: Some(0.0), ..UsageSeen::default() };
    parts.iter().map(|part| UsageSeen::new(part, models)).fold(none, UsageSeen::and)
}

impl UsageSeen {
    fn new(used: &Used, models: &Models) -> Self {
        let usage = &used.usage;
        let told = |tokens: Option<u64>| tokens.filter(|tokens| *tokens > 0 || used.unknown_calls == 0);
        let by_price = || match used.model_calls {
            // Nothing costs nothing, whatever the price.
            0 => Some(0.0),
            _ => models.price(&used.model).map(|price| price.cost(usage)),
        };
        let (known_usd, all) = match used.told {
            Some(told) => (Some(told.micros as f64 / 1_000_000.0), told.untold == 0),
            None => (by_price(), used.unknown_calls == 0),
        };
        Self {
            model_calls: used.model_calls,
            tool_calls: used.tool_calls,
            input_tokens: told(usage.input_tokens),
            output_tokens: told(usage.output_tokens),
            cache_read_tokens: usage.cache_read_tokens.unwrap_or(0),
            cache_write_tokens: usage.cache_write_tokens.unwrap_or(0),
            reasoning_tokens: usage.reasoning_tokens.unwrap_or(0),
            unknown_calls: used.unknown_calls.into(),
            cost_usd: known_usd.filter(|_| all),
            cost_usd_at_least: known_usd.filter(|usd| !all && *usd > 0.0),
        }
    }

    /// Both together; what is not known of one is not known of both, but for tokens: of them there are at least those.
    fn and(self, other: Self) -> Self {
        let cost_usd = self.cost_usd.zip(other.cost_usd).map(|(one, other)| one + other);
        let known_usd: f64 = [self, other].iter().filter_map(|one| one.cost_usd.or(one.cost_usd_at_least)).sum();
        let at_least = |one: Option<u64>, other: Option<u64>| one.zip(other).map(|(one, other)| one + other);
        let known =
            |one: Option<u64>, other: Option<u64>| at_least(one, other).or(one.or(other).filter(|sum| *sum > 0));
        Self {
            model_calls: self.model_calls + other.model_calls,
            tool_calls: self.tool_calls + other.tool_calls,
            input_tokens: known(self.input_tokens, other.input_tokens),
            output_tokens: known(self.output_tokens, other.output_tokens),
            cache_read_tokens: self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens: self.cache_write_tokens + other.cache_write_tokens,
            reasoning_tokens: self.reasoning_tokens + other.reasoning_tokens,
            unknown_calls: self.unknown_calls + other.unknown_calls,
            cost_usd,
            cost_usd_at_least: (cost_usd.is_none() && known_usd > 0.0).then_some(known_usd),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use assistant_protocol::types::Usage;
    use serde_json::{Value, json};

    use super::*;
    use crate::model::prices::Price;
    use crate::model::{Model, ScriptedModel};
    use crate::process_table::ToldCost;

    fn models() -> Models {
        let mut models = Models::default();
        let script = json!({ "assistants": [{ "steps": [{ "text": "a" }] }] });
        let model: Arc<dyn Model> = Arc::new(ScriptedModel::from_value(script).expect("a script"));
        models.insert("priced", model.clone());
        models.insert("free", model);
        let price = Price { input: 2.0, output: 10.0, cache_read: Some(1.0), cache_write: None };
        models.set_price("priced", price);
        models
    }

    fn used(model: &str, model_calls: u32, input: u64, output: u64, cached: u64, unknown_calls: u32) -> Used {
        let usage = Usage {
            input_tokens: Some(input),
            output_tokens: Some(output),
            cache_read_tokens: Some(cached),
            ..Usage::default()
        };
        Used { model: model.to_owned(), processes: 1, model_calls, tool_calls: 1, usage, unknown_calls, told: None }
    }

    /// What these parts used together.
    fn check(parts: &[Used], want: &Value) {
        assert_eq!(serde_json::to_value(sum(parts, &models())).expect("JSON"), *want);
    }

    #[test]
    fn what_is_not_known_is_null_and_not_zero() {
        let million = 1_000_000;
        let known = used("priced", 2, million, million, 0, 0);
        let seen = |model_calls: u32, tool_calls: u32, input: Value, output: Value, cost: Value| {
            json!({
                "model_calls": model_calls, "tool_calls": tool_calls, "input_tokens": input, "output_tokens": output,
                "cost_usd": cost,
            })
        };
        let with = |mut seen: Value, key: &str, count: u64| {
            seen[key] = json!(count);
            seen
        };
        check(&[], &seen(0, 0, json!(0), json!(0), json!(0.0)));
        check(std::slice::from_ref(&known), &seen(2, 1, json!(million), json!(million), json!(12.0)));
        check(&[known.clone(), known.clone()], &seen(4, 2, json!(2 * million), json!(2 * million), json!(24.0)));
        // Read from the cache at half the price.
        let cached = used("priced", 1, million, 0, million / 2, 0);
        check(&[cached], &with(seen(1, 1, json!(million), json!(0), json!(1.5)), "cache_read_tokens", million / 2));
        // No price; a price and no usage; both of one tree.
        let unpriced = used("free", 1, 5, 5, 0, 0);
        check(std::slice::from_ref(&unpriced), &seen(1, 1, json!(5), json!(5), Value::Null));
        let untold = used("priced", 1, 0, 0, 0, 1);
        let want = seen(1, 1, Value::Null, Value::Null, Value::Null);
        check(std::slice::from_ref(&untold), &with(want, "unknown_calls", 1));
        // What is known of it is told all the same.
        let at_least = |mut seen: Value| {
            seen["cost_usd_at_least"] = json!(12.0);
            seen
        };
        let want = seen(3, 2, json!(million), json!(million), Value::Null);
        check(&[known.clone(), untold.clone()], &at_least(with(want, "unknown_calls", 1)));
        let want = seen(4, 3, json!(million + 5), json!(million + 5), Value::Null);
        check(&[untold, known.clone(), unpriced], &at_least(with(want, "unknown_calls", 1)));
        let part = used("priced", 3, million, million, 0, 1);
        let want = seen(3, 1, json!(million), json!(million), Value::Null);
        check(&[part], &at_least(with(want, "unknown_calls", 1)));
        let agents = |micros, untold| Used { told: Some(ToldCost { micros, untold }), ..used("free", 1, 5, 5, 0, 0) };
        check(&[agents(12 * million, 1)], &at_least(seen(1, 1, json!(5), json!(5), Value::Null)));
        check(&[agents(0, 1)], &seen(1, 1, json!(5), json!(5), Value::Null));
        // A process that has asked no model yet costs nothing.
        let new = used("free", 0, 0, 0, 0, 0);
        check(&[known, new], &seen(2, 2, json!(million), json!(million), json!(12.0)));
    }
}
