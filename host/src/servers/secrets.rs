//! Secrets that a server is given, and that it may tell again on its stderr or in an error.

use super::expand::Ready;
use crate::registry::{fold, is_secret};
use crate::trust;

/// What stands in place of a secret.
const HIDDEN: &str = "(secret)";
/// Fewest characters of a value that is looked for: shorter ones stand in any text.
const CHARS_MIN: usize = 8;

/// The values that nobody else is told.
#[derive(Clone, Default)]
pub(super) struct Secrets {
    /// What is looked for, and what stands in its place; a part of another goes last.
    values: Vec<(String, String)>,
    /// The filled-in address, of which only the place is told.
    url: Option<String>,
}

impl Secrets {
    /// All values of headers, and the variables whose names are those of secrets; of a value such as `Bearer x` each
    /// word too; what options of such names are given, and passwords of addresses, in the arguments of a program. `filled`
    /// are the values of variables that were filled in, each with what is written for it.
    pub(super) fn of(ready: &Ready, filled: Vec<(String, String)>) -> Self {
        let (given, url): (Vec<&str>, _) = match ready {
            Ready::Program { env, .. } => {
                let secret = env.iter().filter(|(name, _)| is_secret(&fold(name)));
                (secret.map(|(_, value)| value.as_str()).collect(), None)
            }
            Ready::Http { headers, url, .. } => (headers.values().map(String::as_str).collect(), Some(url.clone())),
        };
        let mut values: Vec<(String, String)> = given.into_iter().flat_map(|value| each(value, HIDDEN)).collect();
        values.extend(filled.iter().flat_map(|(value, written)| each(value, written)));
        if let Ready::Program { args, env, .. } = ready {
            // An address among the variables may have a password in it.
            let alone =
                env.values().map(|value| (value, trust::arguments_masked(std::slice::from_ref(value)).concat()));
            let masked = args.iter().zip(trust::arguments_masked(args)).chain(alone);
            for (given, shown) in masked.filter(|(given, shown)| *given != shown) {
                values.extend(left_out(given, &shown).into_iter().flat_map(|value| each(value, HIDDEN)));
                values.push((given.clone(), shown));
            }
        }
        values.retain(|(value, _)| value.chars().count() >= CHARS_MIN);
        values.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        Self { values, url }
    }

    /// `text` without them.
    pub(super) fn hide(&self, text: &str) -> String {
        let text = self.url.as_deref().map_or_else(|| text.to_owned(), |url| super::http::hide(text, url));
        self.values.iter().fold(text, |text, (secret, shown)| text.replace(secret, shown))
    }
}

/// A value and each word of it, with what stands in its place.
fn each<'a>(value: &'a str, shown: &'a str) -> impl Iterator<Item = (String, String)> + 'a {
    let words = std::iter::once(value.trim()).chain(value.split_whitespace());
    words.map(move |word| (word.to_owned(), shown.to_owned()))
}

/// What of `given` is left out in `shown`.
fn left_out<'a>(given: &'a str, shown: &str) -> Vec<&'a str> {
    let mut parts = shown.split(trust::SET).map(str::trim_end);
    let Some(mut rest) = parts.next().and_then(|first| given.strip_prefix(first)) else { return vec![given] };
    let mut found = Vec::new();
    for part in parts {
        let at = if part.is_empty() { Some(rest.len()) } else { rest.find(part) };
        let Some(at) = at else { return vec![given] };
        found.push(&rest[..at]);
        rest = &rest[at + part.len()..];
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_is_secret_is_not_told_again() {
        let check = |ready: &Ready, text: &str, told: &str| assert_eq!(Secrets::of(ready, Vec::new()).hide(text), told);
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

    #[test]
    fn what_options_are_given_and_variables_hold_is_not_told_again() {
        let args = [
            "--api-key=sk-literal-99",
            "--token",
            "tok-12345678",
            "http://me:pw-of-mine@a.b/x?api_key=key-of-mine&b=1",
            "--header",
            "Authorization: Bearer sk-12345678",
        ];
        let ready = Ready::Program {
            command: "/nope/of-the-host/x".into(),
            args: args.map(str::to_owned).into(),
            env: BTreeMap::from([("DB".to_owned(), "postgres://me:pw-of-db@h/db".to_owned())]),
            folder: "/".into(),
        };
        let filled = [("of-the-host", "${PLACE}"), ("Bearer tok-of-the-env", "${AUTH}")];
        let filled = filled.map(|(value, written)| (value.to_owned(), written.to_owned()));
        let secrets = Secrets::of(&ready, filled.into());
        for (text, told) in [
            ("cannot start /nope/of-the-host/x", "cannot start /nope/${PLACE}/x"),
            ("bad sk-literal-99, tok-12345678", "bad (secret), (secret)"),
            ("--api-key=sk-literal-99?", "--api-key=(set)?"),
            ("pw-of-mine key-of-mine", "(secret) (secret)"),
            ("bad token \"sk-12345678\"", "bad token \"(secret)\""),
            ("tok-of-the-env", "${AUTH}"),
            ("postgres://me:pw-of-db@h/db: pw-of-db", "postgres://me:(set)@h/db: (secret)"),
            ("http://me:pw-of-mine@a.b/x?api_key=key-of-mine&b=1", "http://me:(set)@a.b/x?api_key=(set)&b=1"),
        ] {
            assert_eq!(secrets.hide(text), told);
        }
        for (given, shown, out) in [
            ("a", "(set)", vec!["a"]),
            ("K=abc", "K= (set)", vec!["abc"]),
            ("x:a@b?c", "x:(set)@b?(set)", vec!["a", "c"]),
        ] {
            assert_eq!(left_out(given, shown), out, "{given}");
        }
    }
}
