//! Secrets that a server is given, and that it may tell again on its stderr or in an error.

use super::expand::Ready;
use crate::registry::{fold, is_secret};

/// What stands in place of a secret.
const HIDDEN: &str = "(secret)";
/// Fewest characters of a value that is looked for: shorter ones stand in any text.
const CHARS_MIN: usize = 8;

/// The values that nobody else is told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Secrets(Vec<String>);

impl Secrets {
    /// All values of headers, and the variables whose names are those of secrets; of a value such as `Bearer x` each
    /// word too.
    pub(super) fn of(ready: &Ready) -> Self {
        let values: Vec<&str> = match ready {
            Ready::Program { env, .. } => {
                env.iter().filter(|(name, _)| is_secret(&fold(name))).map(|(_, value)| value.as_str()).collect()
            }
            Ready::Http { headers, .. } => headers.values().map(String::as_str).collect(),
        };
        let mut all: Vec<String> = values
            .into_iter()
            .flat_map(|value| std::iter::once(value.trim()).chain(value.split_whitespace()))
            .filter(|value| value.chars().count() >= CHARS_MIN)
            .map(str::to_owned)
            .collect();
        // A part of another goes last.
        all.sort_by_key(|value| std::cmp::Reverse(value.len()));
        all.dedup();
        Self(all)
    }

    /// `text` without them.
    pub(super) fn hide(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret, HIDDEN))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_is_secret_is_not_told_again() {
        let check = |ready: &Ready, text: &str, told: &str| assert_eq!(Secrets::of(ready).hide(text), told);
        let map = |all: &[(&str, &str)]| -> BTreeMap<String, String> {
            all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let env = map(&[("API_TOKEN", "tok-12345678"), ("REGION", "europe-west-9"), ("PIN_SECRET", "1234")]);
        let program = Ready::Program { command: "x".into(), args: Vec::new(), env, folder: "/".into() };
        check(&program, "tok-12345678 in europe-west-9, 1234", "(secret) in europe-west-9, 1234");
        let headers = map(&[("Authorization", "Bearer tok-12345678")]);
        let http = Ready::Http { url: "http://x/".into(), headers, sse: false };
        check(&http, "401: Bearer tok-12345678; tok-12345678", "401: (secret); (secret)");
    }
}
