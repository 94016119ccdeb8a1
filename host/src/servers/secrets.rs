//! Secrets that a server is given, and that it may tell again on its stderr or in an error.

use super::expand::Ready;
use crate::registry::{fold, is_secret};

/// What stands in place of a secret.
const HIDDEN: &str = "(secret)";
/// Fewest characters of a value that is looked for: shorter ones stand in any text.
const CHARS_MIN: usize = 8;

/// The values that nobody else is told.
#[derive(Clone, Default)]
pub(super) struct Secrets {
    values: Vec<String>,
    /// The filled-in address, of which only the place is told.
    url: Option<String>,
}

impl Secrets {
    /// All values of headers, and the variables whose names are those of secrets; of a value such as `Bearer x` each
    /// word too.
    pub(super) fn of(ready: &Ready) -> Self {
        let (values, url): (Vec<&str>, _) = match ready {
            Ready::Program { env, .. } => {
                let secret = env.iter().filter(|(name, _)| is_secret(&fold(name)));
                (secret.map(|(_, value)| value.as_str()).collect(), None)
            }
            Ready::Http { headers, url, .. } => (headers.values().map(String::as_str).collect(), Some(url.clone())),
        };
        let mut values: Vec<String> = values
            .into_iter()
            .flat_map(|value| std::iter::once(value.trim()).chain(value.split_whitespace()))
            .filter(|value| value.chars().count() >= CHARS_MIN)
            .map(str::to_owned)
            .collect();
        // A part of another goes last.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        values.dedup();
        Self { values, url }
    }

    /// `text` without them.
    pub(super) fn hide(&self, text: &str) -> String {
        let text = self.url.as_deref().map_or_else(|| text.to_owned(), |url| super::http::hide(text, url));
        self.values.iter().fold(text, |text, secret| text.replace(secret, HIDDEN))
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
