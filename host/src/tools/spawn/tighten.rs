//! The limits of a new process: its caller's, and what the caller wants to be tighter. They never grow.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::caller::Caller;
use crate::limits::{Limits, Usd};
use crate::process_table::{self, Process, budget::OverBudget};
use crate::tools::{Call, ToolError};

/// Limits of a process that its caller sets. What is more than the caller has is cut to that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct Tighter {
    /// Model calls of each.
    turns: Option<u32>,
    /// Of each.
    tool_calls: Option<u32>,
    /// From start to end of each.
    wall_ms: Option<u64>,
    /// Of all together.
    tokens: Option<u64>,
    /// Of all together.
    cost_usd: Option<f64>,
    /// Levels below it.
    depth: Option<u32>,
    /// Processes, itself included.
    spawns: Option<u32>,
}

/// The limits that a process of this caller gets, whose model is `model`; none is a model of an agent's own.
///
/// # Errors
/// `bad_argument` where a limit lets nothing run, `limit_cost_per_tree_usd` where the costs of the model are unknown and
/// limited.
pub(super) async fn granted(
    call: &Call,
    parent: Option<&Process>,
    tighter: Option<&Tighter>,
    model: Option<&str>,
) -> Result<Limits, ToolError> {
    let mut limits = *call.host.limits();
    let level = match (parent, call.caller) {
        (Some(parent), _) => {
            let id = parent.id;
            inherit(&mut limits, &call.host.store().read(move |db| process_table::limits(db, id)).await?);
            parent.depth + 1
        }
        (None, Caller::Session(id)) => {
            let session = call.host.store().read(move |db| process_table::session(db, id)).await?;
            session.map_or(0, |session| session.level).saturating_add(1)
        }
        (None, Caller::Process(_)) => return Err(ToolError::caller_ended()),
    };
    if let Some(tighter) = tighter {
        tighten(&mut limits, tighter, level)?;
    }
    let capped = limits.cost_per_tree_usd != Usd::UNCAPPED;
    if let Some(model) = model.filter(|model| capped && call.host.models().price(model).is_none()) {
        return Err(OverBudget::UnknownPrice(model.to_owned()).into());
    }
    Ok(limits)
}

/// What a parent was granted bounds what it grants.
fn inherit(limits: &mut Limits, parent: &Limits) {
    limits.turns = limits.turns.min(parent.turns);
    limits.tool_calls = limits.tool_calls.min(parent.tool_calls);
    limits.wall_ms = limits.wall_ms.min(parent.wall_ms);
    limits.tokens_per_tree = limits.tokens_per_tree.min(parent.tokens_per_tree);
    limits.cost_per_tree_usd = limits.cost_per_tree_usd.min(parent.cost_per_tree_usd);
    limits.depth = limits.depth.min(parent.depth);
    limits.spawns_per_tree = limits.spawns_per_tree.min(parent.spawns_per_tree);
}

fn tighten(limits: &mut Limits, tighter: &Tighter, level: u32) -> Result<(), ToolError> {
    let Tighter { turns, tool_calls, wall_ms, tokens, cost_usd, depth, spawns } = *tighter;
    let zero =
        [("turns", turns.map(u64::from)), ("wall_ms", wall_ms), ("tokens", tokens), ("spawns", spawns.map(u64::from))];
    let least = |name: &str| {
        let message = format!("`limits.{name}` lets nothing run");
        ToolError::bad_argument(message, "Give a number above 0, or leave it out.")
    };
    if let Some((name, _)) = zero.into_iter().find(|(_, value)| *value == Some(0)) {
        return Err(least(name));
    }
    limits.turns = turns.map_or(limits.turns, |turns| turns.min(limits.turns));
    limits.tool_calls = tool_calls.map_or(limits.tool_calls, |calls| calls.min(limits.tool_calls));
    limits.wall_ms = wall_ms.map_or(limits.wall_ms, |wall| wall.min(limits.wall_ms));
    limits.tokens_per_tree = tokens.map_or(limits.tokens_per_tree, |tokens| tokens.min(limits.tokens_per_tree));
    limits.spawns_per_tree = spawns.map_or(limits.spawns_per_tree, |spawns| spawns.min(limits.spawns_per_tree));
    limits.depth = depth.map_or(limits.depth, |below| level.saturating_add(below).min(limits.depth));
    if let Some(dollars) = cost_usd {
        let amount = Usd::new(dollars).filter(|amount| amount.micros() > 0).ok_or_else(|| least("cost_usd"))?;
        limits.cost_per_tree_usd = amount.min(limits.cost_per_tree_usd);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The limits that come of those of a parent and of what is wanted, as `[turns, wall_ms, tokens, depth, spawns]`.
    fn check(parent: &Limits, wanted: Value, level: u32, want: Result<[u64; 5], &str>) {
        let mut limits = Limits::default();
        inherit(&mut limits, parent);
        let shown = wanted.to_string();
        let tightened = tighten(&mut limits, &serde_json::from_value(wanted).expect("limits"), level);
        let got = [
            limits.turns.into(),
            limits.wall_ms,
            limits.tokens_per_tree,
            limits.depth.into(),
            limits.spawns_per_tree.into(),
        ];
        assert_eq!(tightened.map(|()| got).map_err(|error| error.message), want.map_err(str::to_owned), "{shown}");
    }

    #[test]
    fn limits_only_shrink() {
        let all = Limits::default();
        let small = Limits { turns: 4, tokens_per_tree: 1_000, depth: 2, ..all };
        check(&all, json!({}), 1, Ok([50, 1_800_000, 2_000_000, 3, 200]));
        check(&all, json!({ "turns": 7, "tokens": 5, "depth": 0, "spawns": 1 }), 1, Ok([7, 1_800_000, 5, 1, 1]));
        check(
            &all,
            json!({ "turns": 70, "wall_ms": u64::MAX, "depth": u32::MAX }),
            2,
            Ok([50, 1_800_000, 2_000_000, 3, 200]),
        );
        check(&small, json!({}), 2, Ok([4, 1_800_000, 1_000, 2, 200]));
        check(&small, json!({ "turns": 5, "tokens": 900, "depth": 1 }), 1, Ok([4, 1_800_000, 900, 2, 200]));
        check(&all, json!({ "turns": 0 }), 1, Err("`limits.turns` lets nothing run"));
        check(&all, json!({ "cost_usd": 0 }), 1, Err("`limits.cost_usd` lets nothing run"));
        check(&all, json!({ "cost_usd": -1.0 }), 1, Err("`limits.cost_usd` lets nothing run"));
    }
}
