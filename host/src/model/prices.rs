//! What models cost: a table of known prices, and a configuration's own above it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use assistant_protocol::types::Usage;
use serde::Deserialize;

/// What a model costs, US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Of tokens read.
    pub input: f64,
    /// Of tokens written.
    pub output: f64,
    /// Of tokens read from the cache; as others read where it is left out.
    pub cache_read: Option<f64>,
    /// Of tokens written to the cache; as others read where it is left out.
    pub cache_write: Option<f64>,
}

/// Prices by the provider's name of a model.
pub type Prices = BTreeMap<String, Price>;

impl Price {
    /// What a usage costs, US dollars.
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> f64 {
        let count = |tokens: Option<u64>| tokens.unwrap_or(0) as f64;
        let (read, written) = (count(usage.cache_read_tokens), count(usage.cache_write_tokens));
        let plain = (count(usage.input_tokens) - read - written).max(0.0);
        let cached = read * self.cache_read.unwrap_or(self.input) + written * self.cache_write.unwrap_or(self.input);
        (plain * self.input + cached + count(usage.output_tokens) * self.output) / 1_000_000.0
    }

    /// The most that so many tokens can cost, US dollars: all of the input may be written to a cache.
    #[must_use]
    pub fn most(&self, input_tokens: u64, output_tokens: u64) -> f64 {
        let input = self.cache_write.unwrap_or(self.input).max(self.input);
        (input_tokens as f64 * input + output_tokens as f64 * self.output) / 1_000_000.0
    }
}

/// Reads a table of prices.
///
/// # Errors
/// What is wrong, and where.
fn parse(text: &str) -> Result<Prices, toml::de::Error> {
    toml::from_str(text)
}

/// The price of a provider's model by its own name: of `own`, else of the table that comes with this program.
#[must_use]
pub fn of(own: &Prices, model: &str) -> Option<Price> {
    static KNOWN: LazyLock<Prices> = LazyLock::new(|| parse(include_str!("prices.toml")).unwrap_or_default());
    let plain = without_date(model);
    let find = |prices: &Prices| prices.get(model).or_else(|| prices.get(plain)).copied();
    find(own).or_else(|| find(&KNOWN))
}

/// A model's name without the date of its version.
fn without_date(model: &str) -> &str {
    let digits = |text: &str, count| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = model.rsplitn(4, '-').collect();
    match parts.as_slice() {
        [day, month, year, name] if digits(day, 2) && digits(month, 2) && digits(year, 4) => name,
        [date, ..] if parts.len() > 1 && digits(date, 8) => &model[..model.len() - 9],
        _ => model,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_reads_and_knows_the_default_models() {
        let known = parse(include_str!("prices.toml")).expect("a table of prices");
        for (name, price) in &known {
            let cached = price.cache_read.unwrap_or(0.0);
            assert!(0.0 < price.input && price.input < price.output && cached < price.input, "{name}: {price:?}");
        }
        for model in ["claude-sonnet-4-5", "gpt-5-mini", "gemini-2.5-flash"] {
            assert!(known.contains_key(model), "{model}");
        }
    }

    #[test]
    fn a_price_is_found_with_and_without_the_date_of_a_version() {
        let check = |model: &str, input: Option<f64>| {
            let own = Prices::from([(
                "gpt-5".to_owned(),
                Price { input: 9.0, output: 9.0, cache_read: None, cache_write: None },
            )]);
            assert_eq!(of(&own, model).map(|price| price.input), input, "{model}");
        };
        check("claude-sonnet-4-5", Some(3.0));
        check("claude-sonnet-4-5-20250929", Some(3.0));
        check("gpt-5-mini-2025-08-07", Some(0.25));
        check("gpt-5", Some(9.0));
        check("gpt-5-2025-08-07", Some(9.0));
        check("gpt-5-mini-2025-08-7", None);
        check("20250929", None);
        check("-20250929", None);
        check("2025-08-07", None);
        check("qwen3:8b", None);
        check("", None);
    }

    #[test]
    fn the_most_is_never_less_than_the_cost() {
        let price = of(&Prices::new(), "claude-sonnet-4-5").expect("a price");
        let usage = |read, written| Usage {
            input_tokens: Some(1_000),
            output_tokens: Some(100),
            cache_read_tokens: read,
            cache_write_tokens: written,
            ..Usage::default()
        };
        for usage in
            [usage(None, None), usage(Some(1_000), None), usage(None, Some(1_000)), usage(Some(500), Some(500))]
        {
            assert!(price.cost(&usage) <= price.most(1_000, 100), "{usage:?}");
        }
    }
}
