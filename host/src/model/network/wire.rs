//! The formats that providers speak: where each is, where its key goes, and how its answers are split.

use super::frames::Framing;

/// The format that a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Chat completions of OpenAI, and of every server that speaks them.
    OpenAi,
    /// Responses of OpenAI.
    Responses,
    /// Messages of Anthropic.
    Anthropic,
    /// `generateContent` of Gemini.
    Gemini,
    /// Chat of Ollama.
    Ollama,
}

/// What is the same in all calls of a format.
pub(super) struct Traits {
    /// The provider, as errors and records name it.
    pub(super) provider: &'static str,
    /// Its own address, with a slash at the end.
    pub(super) own: &'static str,
    /// The path that an address without one gets: that of the API on every server that we know.
    pub(super) usual_path: &'static str,
    /// How its answers are split.
    pub(super) framing: Framing,
    /// The header that the key goes into, and what stands before the key there.
    pub(super) key_header: (&'static str, &'static str),
    /// Further headers of each request.
    pub(super) headers: &'static [(&'static str, &'static str)],
}

const BEARER: (&str, &str) = ("authorization", "Bearer ");

impl Wire {
    /// All formats.
    pub const ALL: [Self; 5] = [Self::OpenAi, Self::Responses, Self::Anthropic, Self::Gemini, Self::Ollama];

    /// The provider, as errors and records name it.
    #[must_use]
    pub fn provider(self) -> &'static str {
        self.traits().provider
    }

    pub(super) fn traits(self) -> Traits {
        match self {
            Self::OpenAi => Traits {
                provider: "openai",
                own: "https://api.openai.com/v1/",
                usual_path: "/v1/",
                framing: Framing::Events,
                key_header: BEARER,
                headers: &[],
            },
            Self::Responses => Traits { provider: "openai_responses", ..Self::OpenAi.traits() },
            Self::Anthropic => Traits {
                provider: "anthropic",
                own: "https://api.anthropic.com/v1/",
                usual_path: "/v1/",
                framing: Framing::Events,
                key_header: ("x-api-key", ""),
                headers: &[("anthropic-version", "2023-06-01")],
            },
            Self::Gemini => Traits {
                provider: "gemini",
                own: "https://generativelanguage.googleapis.com/v1beta/",
                usual_path: "/v1beta/",
                framing: Framing::Events,
                key_header: ("x-goog-api-key", ""),
                headers: &[],
            },
            Self::Ollama => Traits {
                provider: "ollama",
                own: "http://127.0.0.1:11434/",
                usual_path: "/",
                framing: Framing::Lines,
                key_header: BEARER,
                headers: &[],
            },
        }
    }
}
