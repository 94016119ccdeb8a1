//! Where a provider is.

use std::net::IpAddr;

use reqwest::Url;

use super::{SetupError, Wire};

const OPENAI: &str = "https://api.openai.com/v1/";
const ANTHROPIC: &str = "https://api.anthropic.com/v1/";

/// The path that an address without one gets: that of the API on every server that we know.
const USUAL_PATH: &str = "/v1/";

/// A provider's address.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Address {
    /// With a slash at the end of the path.
    pub(super) base_url: String,
    /// Host and port, for messages.
    pub(super) host: String,
    /// On this machine, where no proxy is asked.
    pub(super) local: bool,
}

impl Address {
    pub(super) fn new(wire: Wire, base_url: Option<&str>) -> Result<Self, SetupError> {
        let own = match wire {
            Wire::OpenAi => OPENAI,
            Wire::Anthropic => ANTHROPIC,
        };
        let wrong = |message: &str| SetupError { setting: "base_url", message: message.to_owned() };
        let no_address = || wrong("is no address that starts with http:// or https://");
        let mut url = Url::parse(base_url.unwrap_or(own).trim()).map_err(|_| no_address())?;
        let name = url.host_str().map(str::to_owned);
        let Some(name) = name.filter(|_| matches!(url.scheme(), "http" | "https")) else {
            return Err(no_address());
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("holds a name or password: use `api_key_env` or `api_key_file`"));
        }
        let path = match url.path() {
            "" | "/" => USUAL_PATH.to_owned(),
            path => format!("{}/", path.trim_end_matches('/')),
        };
        url.set_path(&path);
        url.set_fragment(None);
        if wire == Wire::Anthropic {
            // It is put together as text there, so that a query would end up in the middle.
            url.set_query(None);
        }
        let host = url.port().map_or_else(|| name.clone(), |port| format!("{name}:{port}"));
        let ip = name.trim_matches(['[', ']']).parse::<IpAddr>();
        let local = name == "localhost" || ip.is_ok_and(|ip| ip.is_loopback());
        Ok(Self { base_url: url.into(), host, local })
    }
}

/// Whether it is OpenAI's own, which refuses fields that others need.
pub(super) fn is_openai(host: &str) -> bool {
    host == "api.openai.com"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_completed() {
        let check = |wire, base_url: Option<&str>, want: Result<(&str, &str, bool), &str>| {
            let got = Address::new(wire, base_url);
            let got = got.as_ref().map(|a| (a.base_url.as_str(), a.host.as_str(), a.local)).map_err(|e| &*e.message);
            assert_eq!(got, want);
        };
        use Wire::{Anthropic, OpenAi};
        check(OpenAi, None, Ok((OPENAI, "api.openai.com", false)));
        check(Anthropic, None, Ok((ANTHROPIC, "api.anthropic.com", false)));
        check(OpenAi, Some("http://localhost:11434"), Ok(("http://localhost:11434/v1/", "localhost:11434", true)));
        check(OpenAi, Some("http://[::1]:80/a/b/"), Ok(("http://[::1]/a/b/", "[::1]", true)));
        check(OpenAi, Some("https://h/d?api-version=1#x"), Ok(("https://h/d/?api-version=1", "h", false)));
        check(Anthropic, Some("https://h/v1?x=1"), Ok(("https://h/v1/", "h", false)));
        let no_address = Err("is no address that starts with http:// or https://");
        check(OpenAi, Some("localhost:80"), no_address);
        check(OpenAi, Some(""), no_address);
        let secret = Err("holds a name or password: use `api_key_env` or `api_key_file`");
        check(OpenAi, Some("https://u:p@h/v1"), secret);
    }
}
