//! Which models an Ollama has, for whoever chooses one.

use std::time::Duration;

use reqwest::Url;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Wire, address, stream};

/// How long the server may take to tell what it has, or one of its models.
const WITHIN: Duration = Duration::from_secs(3);
/// The longest answer that is read, bytes.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Models that are asked about.
const MODELS_MAX: usize = 64;

/// A model that an Ollama has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Installed {
    /// Its name there.
    pub(crate) name: String,
    /// Tokens that it takes at most; none where it does not tell.
    pub(crate) context_tokens: Option<u32>,
    /// Whether it can call tools; none where it does not tell.
    pub(crate) tools: Option<bool>,
}

/// The models of the Ollama at an address; none is its own.
///
/// # Errors
/// In words: why it does not tell.
pub(crate) async fn installed(base_url: Option<&str>) -> Result<Vec<Installed>, String> {
    let address = address::Address::new(Wire::Ollama, base_url, "").map_err(|error| error.to_string())?;
    let mut http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).timeout(WITHIN).no_gzip();
    if address.local {
        http = http.no_proxy();
    }
    let client = http.build().map_err(|error| stream::cause(&error))?;
    let at = |last: &str| {
        let mut url = address.url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop().push(last);
        }
        url
    };
    let told = answer(client.get(at("tags"))).await?;
    let names = told["models"].as_array().into_iter().flatten().filter_map(|one| one["name"].as_str());
    let asked = names.take(MODELS_MAX).map(|name| about(&client, at("show"), name.to_owned()));
    Ok(futures::future::join_all(asked).await)
}

/// What it tells of one; one of which it tells nothing is there all the same.
async fn about(client: &reqwest::Client, url: Url, name: String) -> Installed {
    let body = json!({ "model": name }).to_string();
    let told = answer(client.post(url).header("content-type", "application/json").body(body)).await;
    let told = told.unwrap_or_default();
    let context = told["model_info"].as_object().into_iter().flatten();
    let context = context.filter(|(key, _)| key.ends_with(".context_length")).find_map(|(_, value)| value.as_u64());
    let can = |able: &Vec<Value>| able.iter().any(|one| one == "tools");
    Installed {
        name,
        context_tokens: context.and_then(|tokens| u32::try_from(tokens).ok()),
        tools: told["capabilities"].as_array().map(can),
    }
}

async fn answer(request: reqwest::RequestBuilder) -> Result<Value, String> {
    let mut response = request.send().await.map_err(|error| stream::cause(&error))?;
    if !response.status().is_success() {
        return Err(format!("it answered with {}", response.status()));
    }
    let mut bytes = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| stream::cause(&error))? {
        bytes.extend_from_slice(&piece);
        if bytes.len() > ANSWER_BYTES_MAX {
            return Err(format!("its answer has more than {ANSWER_BYTES_MAX} bytes"));
        }
    }
    serde_json::from_slice(&bytes).map_err(|_| "its answer is no JSON".to_owned())
}
