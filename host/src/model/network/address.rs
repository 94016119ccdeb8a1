//! Where a provider is.

use std::net::IpAddr;

use reqwest::Url;

use super::{SetupError, Wire};

/// Paths that belong to another format of the same server, or to the call itself.
const OLLAMA_PATHS: [&str; 3] = ["/v1", "/api", "/api/chat"];

/// A provider's address.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Address {
    /// Where calls go.
    pub(super) url: Url,
    /// Host and port, for messages.
    pub(super) host: String,
    /// On this machine, where no proxy is asked.
    pub(super) local: bool,
}

impl Address {
    /// The address of the calls of a model; none is the provider's own.
    pub(super) fn new(wire: Wire, base_url: Option<&str>, model: &str) -> Result<Self, SetupError> {
        let traits = wire.traits();
        let wrong = |message: &str| SetupError { setting: "base_url", message: message.to_owned() };
        let no_address = || wrong("is no address that starts with http:// or https://");
        let mut url = Url::parse(base_url.unwrap_or(traits.own).trim()).map_err(|_| no_address())?;
        let name = url.host_str().map(str::to_owned);
        let Some(name) = name.filter(|_| matches!(url.scheme(), "http" | "https")) else {
            return Err(no_address());
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("holds a name or password: use `api_key_env` or `api_key_file`"));
        }
        let path = match url.path().trim_end_matches('/') {
            "" => traits.usual_path.to_owned(),
            path if wire == Wire::Ollama && OLLAMA_PATHS.contains(&path) => traits.usual_path.to_owned(),
            path => format!("{path}/"),
        };
        url.set_path(&path);
        url.set_fragment(None);
        let call: &[&str] = match wire {
            Wire::OpenAi => &["chat", "completions"],
            Wire::Responses => &["responses"],
            Wire::Anthropic => &["messages"],
            Wire::Gemini => &[],
            Wire::Ollama => &["api", "chat"],
        };
        {
            let mut segments = url.path_segments_mut().map_err(|()| no_address())?;
            segments.pop_if_empty().extend(call);
            if wire == Wire::Gemini {
                // `gemini-2.5-flash`, `models/gemini-2.5-flash` or `tunedModels/mine`; the whole name ends up there.
                let (kind, name) = model.split_once('/').unwrap_or(("models", model));
                segments.extend([kind, &format!("{name}:streamGenerateContent")]);
            }
        }
        if wire == Wire::Gemini {
            url.query_pairs_mut().append_pair("alt", "sse");
        }
        let host = url.port().map_or_else(|| name.clone(), |port| format!("{name}:{port}"));
        let ip = name.trim_matches(['[', ']']).parse::<IpAddr>();
        let local = name == "localhost" || ip.is_ok_and(|ip| ip.is_loopback());
        Ok(Self { url, host, local })
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
            let got = Address::new(wire, base_url, "a b/c?");
            let got = got.as_ref().map(|a| (a.url.as_str(), a.host.as_str(), a.local)).map_err(|e| &*e.message);
            assert_eq!(got, want);
        };
        use Wire::{Anthropic, Gemini, Ollama, OpenAi, Responses};
        check(OpenAi, None, Ok(("https://api.openai.com/v1/chat/completions", "api.openai.com", false)));
        check(Responses, None, Ok(("https://api.openai.com/v1/responses", "api.openai.com", false)));
        check(Anthropic, None, Ok(("https://api.anthropic.com/v1/messages", "api.anthropic.com", false)));
        check(Ollama, None, Ok(("http://127.0.0.1:11434/api/chat", "127.0.0.1:11434", true)));
        let local = "http://localhost:11434/v1/chat/completions";
        check(OpenAi, Some("http://localhost:11434"), Ok((local, "localhost:11434", true)));
        check(OpenAi, Some("http://[::1]:80/a/b/"), Ok(("http://[::1]/a/b/chat/completions", "[::1]", true)));
        let query = "https://h/d/chat/completions?api-version=1";
        check(OpenAi, Some("https://h/d?api-version=1#x"), Ok((query, "h", false)));
        check(Anthropic, Some("https://h/v1?x=1"), Ok(("https://h/v1/messages?x=1", "h", false)));
        for base in ["http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/", "http://h:1/api"] {
            check(Ollama, Some(base), Ok(("http://h:1/api/chat", "h:1", false)));
        }
        check(Ollama, Some("http://h/ollama"), Ok(("http://h/ollama/api/chat", "h", false)));
        let gemini = "https://h/v1beta/a%20b/c%3F:streamGenerateContent?alt=sse";
        check(Gemini, Some("https://h"), Ok((gemini, "h", false)));
        let no_address = Err("is no address that starts with http:// or https://");
        check(OpenAi, Some("localhost:80"), no_address);
        check(OpenAi, Some(""), no_address);
        let secret = Err("holds a name or password: use `api_key_env` or `api_key_file`");
        check(OpenAi, Some("https://u:p@h/v1"), secret);
    }

    #[test]
    fn the_name_of_a_gemini_model_is_whole() {
        let check = |model: &str, want: &str| {
            let address = Address::new(Wire::Gemini, None, model).expect("an address");
            let want = format!("https://generativelanguage.googleapis.com/v1beta/{want}:streamGenerateContent?alt=sse");
            assert_eq!(address.url.as_str(), want);
        };
        check("gemini-3-pro-high", "models/gemini-3-pro-high");
        check("a::b", "models/a::b");
        check("models/gemini-2.5-flash", "models/gemini-2.5-flash");
        check("tunedModels/mine-1", "tunedModels/mine-1");
        check("../x?key=1#y", "x%3Fkey=1%23y");
    }
}
