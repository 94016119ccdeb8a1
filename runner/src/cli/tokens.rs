//! Tokens: how they are told, and sums of them where some of the counts are unknown.

use assistant_protocol::types::Usage;
use serde_json::Value;

/// Both together.
pub(super) fn sum(left: Usage, right: Usage) -> Usage {
    each(left, right, u64::saturating_add)
}

/// What is in `all` beyond `told`.
pub(super) fn rest(all: Usage, told: Usage) -> Usage {
    each(all, told, u64::saturating_sub)
}

fn each(left: Usage, right: Usage, join: fn(u64, u64) -> u64) -> Usage {
    let both = |left: Option<u64>, right: Option<u64>| match (left, right) {
        (None, None) => None,
        (left, right) => Some(join(left.unwrap_or(0), right.unwrap_or(0))),
    };
    Usage {
        input_tokens: both(left.input_tokens, right.input_tokens),
        output_tokens: both(left.output_tokens, right.output_tokens),
        cache_read_tokens: both(left.cache_read_tokens, right.cache_read_tokens),
        cache_write_tokens: both(left.cache_write_tokens, right.cache_write_tokens),
        reasoning_tokens: both(left.reasoning_tokens, right.reasoning_tokens),
    }
}

/// Tokens as Anthropic counts them: those from the cache stand beside the input.
pub(super) fn of_anthropic(usage: &Value) -> Usage {
    let count = |name: &str| usage[name].as_u64();
    let (read, written) = (count("cache_read_input_tokens"), count("cache_creation_input_tokens"));
    let input = count("input_tokens").map(|input| input + read.unwrap_or(0) + written.unwrap_or(0));
    Usage {
        input_tokens: input,
        output_tokens: count("output_tokens"),
        cache_read_tokens: read,
        cache_write_tokens: written,
        reasoning_tokens: None,
    }
}
