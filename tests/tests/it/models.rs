//! Network models against the fake server: what is sent, what is read, and everything that goes wrong.

use assistant_host::model::network::{Bounds, NetworkConfig, NetworkModel, Wire};
use assistant_host::model::{Answer, Ask, Model, ModelError, Progress};
use assistant_protocol::types::{Content, Message, Part, Role, ToolSpec};
use conformance::model_server::{ModelServer, Reply, Request, Said, Say};
use serde_json::{Map, Value, json};

mod answers;
mod conversations;
mod failures;
mod given;
mod pictures;
mod requests;
mod settings;
mod shown;
mod thoughts;
mod word;

/// The key of all tests. It may be in a header and nowhere else.
const KEY: &str = "sk-test-7f3a9";

/// A model at the server, by default with the key.
fn config(server: &ModelServer, wire: Wire, model: &str) -> NetworkConfig {
    let mut config = NetworkConfig::new(wire, model);
    config.base_url = Some(server.base_url().to_owned());
    config.key = assistant_host::config::Secret::new(KEY);
    config.bounds =
        Bounds { connect_ms: 5_000, header_ms: 5_000, read_ms: 5_000, call_ms: 10_000, ..Bounds::default() };
    config
}

fn model(server: &ModelServer, wire: Wire) -> NetworkModel {
    NetworkModel::new(config(server, wire, "m-1")).expect("sets up")
}

fn hello() -> Ask {
    Ask { messages: vec![Message::text(Role::User, "hello")], ..Ask::default() }
}

async fn call(model: &NetworkModel, ask: Ask) -> Result<Answer, ModelError> {
    model.answer(ask, &|_| {}).await
}

/// What a model makes of a reply.
async fn answer_to(wire: Wire, reply: Reply) -> Result<Answer, ModelError> {
    let server = ModelServer::start().await.expect("starts");
    server.push(reply);
    call(&model(&server, wire), hello()).await
}

fn assistant(parts: Vec<Part>) -> Message {
    Message { role: Role::Assistant, content: Content::Parts(parts) }
}

fn tool_call(id: &str, name: &str, arguments: Result<Value, &str>) -> Part {
    Part::ToolCall { call_id: id.into(), tool_name: name.into(), arguments: arguments.map_err(str::to_owned) }
}

fn opaque(provider: &str, model: &str, data: Value) -> Part {
    Part::Opaque { provider: provider.into(), model: model.into(), data }
}

/// Where each format is called, at the address of the server.
fn path(wire: Wire) -> &'static str {
    match wire {
        Wire::OpenAi => "/v1/chat/completions",
        Wire::Responses => "/v1/responses",
        Wire::Anthropic => "/v1/messages",
        Wire::Gemini => "/v1/models/m-1:streamGenerateContent?alt=sse",
        Wire::Ollama => "/api/chat",
    }
}

/// The one request that a call makes.
async fn sent(change: impl Fn(&mut NetworkConfig), wire: Wire, name: &str, ask: Ask) -> Request {
    let server = ModelServer::start().await.expect("starts");
    server.push(Reply::text("ok"));
    let mut config = config(&server, wire, name);
    change(&mut config);
    call(&NetworkModel::new(config).expect("sets up"), ask).await.expect("answers");
    let mut requests = server.requests();
    assert_eq!(requests.len(), 1);
    requests.remove(0)
}

fn plain(_: &mut NetworkConfig) {}

fn image(data: Option<&str>) -> Part {
    Part::Image { mime_type: "image/png".into(), data: data.map(str::to_owned), blob: None }
}

fn map(value: Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}
