//! What models could be reached by on this machine.

use serde::Serialize;

use super::super::super::logins::{self, ADAPTERS, AGENTS};
use super::ModelArgs;
use super::plan::{Key, Plan};
use crate::config::Provider;
#[cfg(feature = "network-models")]
pub(super) use crate::model::{Installed, installed};
use crate::model::{ollama_at, usual_models};

/// Tokens that an Ollama is told to make room for at most, unless its user says so: it takes the memory for them at once.
const OLLAMA_CONTEXT_TOKENS: u32 = 32_768;

/// Something by which models can be reached.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Candidate {
    /// Its name on the command line.
    pub(super) what: &'static str,
    /// Its name for people.
    pub(super) title: &'static str,
    /// It is there, and nothing more is needed.
    pub(super) ready: bool,
    /// What says so, or what is missing.
    pub(super) why: String,
    /// What it has, where it tells.
    pub(super) models: Vec<Installed>,
    #[serde(skip)]
    pub(super) kind: Kind,
}

/// What it is.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    /// A provider that wants a key: its variable, if that is set, the one to be set, and its usual model.
    Key { provider: Provider, set: Option<&'static str>, variable: &'static str, model: &'static str },
    /// An Ollama.
    Ollama,
    /// A coding agent.
    Agent(logins::Found),
}

/// Providers that want a key, by their names on the command line and for people.
const KEYS: [(&str, &str, Provider); 3] = [
    ("anthropic", "Anthropic, with a key", Provider::Anthropic),
    ("openai", "OpenAI, with a key", Provider::OpenAi),
    ("google", "Gemini of Google, with a key", Provider::Gemini),
];
/// The name of an Ollama on the command line.
const OLLAMA: &str = "ollama";

/// The names of all that is known, in the order in which it is offered.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|(what, ..)| *what).chain(AGENTS.iter().map(logins::Agent::name)).chain([OLLAMA])
}

/// Everything that is known, in the order in which it is offered: what is ready comes first.
pub(super) async fn candidates(env: &dyn Fn(&str) -> Option<String>) -> Vec<Candidate> {
    let mut all = Vec::new();
    for what in names() {
        all.extend(candidate(what, None, env).await);
    }
    all.sort_by_key(|one| !one.ready);
    all
}

/// The one of this name; an Ollama is asked at `base_url`, or where its variable says.
pub(super) async fn candidate(
    what: &str,
    base_url: Option<&str>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Option<Candidate> {
    if what == OLLAMA {
        let at = base_url.map(str::to_owned).or_else(|| ollama_at(env));
        return Some(ollama(at.as_deref()).await);
    }
    let agent = || AGENTS.iter().find(|agent| agent.name() == what).map(|agent| of_agent(logins::look(agent, env)));
    KEYS.iter().find(|(name, ..)| *name == what).map(|of| of_key(*of, env)).or_else(agent)
}

fn of_key(
    (what, title, provider): (&'static str, &'static str, Provider),
    env: &dyn Fn(&str) -> Option<String>,
) -> Candidate {
    let set = |name: &str| env(name).is_some_and(|value| !value.trim().is_empty());
    let usual: Vec<_> = usual_models().filter(|(_, of, _)| *of == provider).collect();
    let (variable, _, model) = usual.first().copied().unwrap_or(("", provider, ""));
    let found = usual.iter().map(|(variable, ..)| *variable).find(|variable| set(variable));
    let why = match found {
        Some(variable) => format!("{variable} is set"),
        None => format!("{variable} is not set; --key-file names a file with a key"),
    };
    let kind = Kind::Key { provider, set: found, variable, model };
    Candidate { what, title, ready: found.is_some(), why, models: Vec::new(), kind }
}

fn of_agent(found: logins::Found) -> Candidate {
    let agent = found.agent;
    let why = match (&found.program, &found.login) {
        _ if !ADAPTERS => {
            format!("{} cannot run assistants on this system: there is no adapter for it here", agent.title)
        }
        (Some(_), Some(login)) => format!("{} is logged in ({login})", agent.title),
        (Some(program), None) => format!("{} is there and not logged in: {}", program.display(), agent.login),
        (None, Some(login)) => format!("there is a login ({login}), and no program `{}` on PATH", agent.name()),
        (None, None) => format!("no program `{}` on PATH", agent.name()),
    };
    Candidate {
        what: agent.name(),
        title: agent.title,
        ready: found.is_ready(),
        why,
        models: Vec::new(),
        kind: Kind::Agent(found),
    }
}

async fn ollama(at: Option<&str>) -> Candidate {
    let (models, why) = match installed(at).await {
        Ok(models) if models.is_empty() => (models, "it answers, and has no models: `ollama pull MODEL`".to_owned()),
        Ok(models) => {
            let why = format!("it answers, and has {} models", models.len());
            (models, why)
        }
        Err(why) => (Vec::new(), format!("it does not answer: {why}")),
    };
    Candidate { what: OLLAMA, title: "Ollama", ready: !models.is_empty(), why, models, kind: Kind::Ollama }
}

impl Candidate {
    /// What is to be written for it.
    ///
    /// # Errors
    /// In words: what is missing.
    pub(super) fn plan(&self, args: &ModelArgs, key: Option<Key>, model: Option<String>) -> Result<Plan, String> {
        let name = args.name.clone().unwrap_or_else(|| self.what.to_owned());
        match &self.kind {
            Kind::Agent(found) => {
                if !found.is_ready() {
                    return Err(self.why.clone());
                }
                Ok(Plan::Agent { name, agent: found.agent, variable: found.variable })
            }
            Kind::Key { provider, set, variable, model: usual } => {
                // A server of one's own may want none.
                let key =
                    key.or_else(|| set.filter(|_| args.base_url.is_none()).map(|name| Key::Variable(name.to_owned())));
                if key.is_none() && args.base_url.is_none() {
                    return Err(format!("{variable} is not set; set it, or name a file with the key by --key-file"));
                }
                Ok(Plan::Model {
                    name,
                    title: self.title,
                    provider: *provider,
                    model: model.unwrap_or_else(|| (*usual).to_owned()),
                    key,
                    base_url: args.base_url.clone(),
                    context_tokens: args.context_tokens,
                })
            }
            Kind::Ollama => {
                let names: Vec<&str> = self.models.iter().map(|one| one.name.as_str()).collect();
                let model = match (model, names.as_slice()) {
                    (Some(model), _) => model,
                    (None, [only]) => (*only).to_owned(),
                    (None, []) => return Err(format!("Ollama: {}; --model names one that it is to have", self.why)),
                    (None, names) => return Err(format!("say which one by --model; it has {}", names.join(", "))),
                };
                let found = self.models.iter().find(|one| one.name == model);
                let takes = found.and_then(|one| one.context_tokens).unwrap_or(OLLAMA_CONTEXT_TOKENS);
                Ok(Plan::Model {
                    name,
                    title: self.title,
                    provider: Provider::Ollama,
                    model,
                    key,
                    base_url: args.base_url.clone(),
                    context_tokens: args.context_tokens.or(Some(takes.min(OLLAMA_CONTEXT_TOKENS))),
                })
            }
        }
    }
}

/// A model that an Ollama has; without models over a network none is asked.
#[cfg(not(feature = "network-models"))]
#[derive(Debug, Clone, Serialize)]
pub(super) struct Installed {
    pub(super) name: String,
    pub(super) context_tokens: Option<u32>,
    pub(super) tools: Option<bool>,
}

#[cfg(not(feature = "network-models"))]
async fn installed(_: Option<&str>) -> Result<Vec<Installed>, String> {
    Err("this program was built without network models (`network-models`)".to_owned())
}
