//! The rules that hold the host together, each with the shortest way in which its absence shows, played step by step.
//!
//! A test here fails where its rule is taken out. Which lines of the host (below `host/src`) hold which rule:
//!
//! | rule | held by |
//! | --- | --- |
//! | `wake_any` | `process_table/end.rs`, `resume_unsettled`: any queued message |
//! | `cascade` | `process_table/end.rs`, `end`: the loop over living children |
//! | `ask_moves` | `process_table/end.rs`, `pass_on`: the pending questions |
//! | `live_caller` | `process_table/session.rs`, `may_act`, asked in the job of every tool; `tools/wait.rs`, `still_acts` |
//! | `settle_one` | `process_table/end.rs`, `settle`: look and end are one job |
//! | `result_in_tx` | `Recorder::finish` in the jobs of `tools/{spawn,follow,messages,questions}.rs` |
//! | `reinsert` | `session/turn.rs`, `Conversation`: `unseen` and `given` |
//! | `recv_waits` | `tools/wait.rs`, `until`: `Waiting::begin` for every tool that waits |
//! | `recv_oldest` | `message_box/receive.rs`, `found_for`: the oldest, and what its sender wrote before |
//! | `take_along` | `message_box/handing.rs`, `take_from` and `taken_whole` |
//! | `inserted_read` | `message_box/handing.rs`, `hand_over`: `read_at` where a process gets it |
//! | `fresh` | `message_box/waits.rs`, `unseen` |
//! | `wait_done` | `tools/follow.rs`, `take`: `over` where none of them lives |
//! | `key_principal` | `process_table/keys.rs`, `owner` |
//! | `must_take` | `process_table/end.rs`, `settle`: `took` |
//! | `pipe_order` | the runner: `runner/src/calls.rs`, results as they come |
//! | `open_session` | `process_table/spawn.rs`, `spawn`: `may_act` |
//! | `resume_last` | `process_table/spawn.rs`, `spawn`: `resumption_of` |
//! | `answer_moves` | `process_table/line.rs`, `move_mail` |
//! | `mark_wins` | `process_table/end.rs`, `first_cause` |
//! | `no_barging` | `process_table/spawn.rs`, `spawn`: nobody of the session is queued that could start |
//! | `one_of_a_line` | `process_table/slots.rs`: `FREE`; `process_table/spawn.rs`: `behind` (in `it/continued.rs`) |
//! | `no_circle` | `process_table/line.rs`, `waits_for` (in `it/continued.rs`) |
//! | `answer_apart` | `message_box/handing.rs`, `queued`: no answers |
//! | `spare_detached` | `process_table/end.rs`, `mark`: `spare_detached` |

use assistant_host::host::{Ending, Host};
use assistant_host::limits::Limits;
use assistant_host::process_table::Process;
use assistant_host::store;
use conformance::bed::{Bed, Client, assistant};
use conformance::gate::Gate;
use conformance::oracle;
use conformance::puppets::{Puppet, Puppets};
use conformance::stepped::{Turns, stepped};
use serde_json::{Value, json};

use crate::{PUPPET, RUNNER};

mod asked;
mod ends;
mod random;
mod received;
mod resumed;

/// What every assistant of these tests may use.
const TOOLS: &str = "spawn_assistant, poll_assistant, wait_assistant, cancel_assistant, get_pending_questions, \
                     reply_assistant, ask_parent, check_answer, send_message, recv_message";
/// Longer than any test: a wait that has to end by something else.
const LONG_MS: u64 = 600_000;

/// A host that is stepped: its model, its store, and its runners where they are puppets.
struct Stage {
    bed: Bed,
    gate: Gate,
    turns: Turns,
    puppets: Option<Puppets>,
    client: Client,
}

impl Stage {
    /// With real runners and the assistants `names`.
    async fn real(names: &[&str], limits: impl FnOnce(&mut Limits)) -> Self {
        Self::open(names, limits, false).await
    }

    /// With runners that the test plays.
    async fn played(names: &[&str], limits: impl FnOnce(&mut Limits)) -> Self {
        Self::open(names, limits, true).await
    }

    async fn open(names: &[&str], limits: impl FnOnce(&mut Limits), played: bool) -> Self {
        let files: Vec<(String, String)> =
            names.iter().map(|name| (format!("{name}.md"), assistant(name, TOOLS))).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let (model, turns) = stepped();
        let mut bed = Bed::with_model(if played { PUPPET } else { RUNNER }, &files, model);
        limits(&mut bed.limits);
        let puppets = played.then(|| Puppets::new(bed.dir.path()));
        bed.runner.args = puppets.as_ref().map(Puppets::args).unwrap_or_default();
        let gate = Gate::default();
        let client = Client::of(&next_host(&bed, &gate).await).await;
        Self { bed, gate, turns, puppets, client }
    }

    /// The next process that is run, as a puppet.
    async fn puppet(&self) -> Puppet {
        self.puppets.as_ref().expect("puppets").next().await
    }

    /// The row of a process.
    async fn row(&self, spawned: &Value) -> Process {
        let id = spawned["process_id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
        self.client.host.process(id).await.expect("read").expect("a row")
    }

    /// Sends a message to a process.
    async fn send(&self, spawned: &Value, text: &str) -> Value {
        self.client.call("send_message", json!({ "thread_id": spawned["thread_id"], "message": text })).await
    }

    /// The processes below one, and itself first.
    async fn tree(&self, spawned: &Value) -> Vec<Value> {
        let asked = json!({ "process_id": spawned["process_id"] });
        self.client.call("list_process", asked).await["items"].as_array().cloned().unwrap_or_default()
    }

    /// Ends the host; nothing may be wrong in its store.
    async fn close(self) {
        self.gate.open();
        self.client.host.close().await;
        let wrong = oracle::check_quiet(&self.bed.state().join(store::FILE));
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// A host on a bed, behind a gate.
async fn next_host(bed: &Bed, gate: &Gate) -> Host {
    let mut options = bed.options();
    options.clock = gate.clock();
    Host::open(options).await.expect("a host")
}

/// Starts a call and returns it once its job is queued: only for calls that look at nothing before.
async fn queued<T>(call: impl Future<Output = T> + Send + 'static) -> tokio::task::JoinHandle<T>
where
    T: Send + 'static,
{
    let mut call = Box::pin(call);
    assert!(futures::poll!(&mut call).is_pending(), "its job waits for the writer");
    tokio::spawn(call)
}

fn spawns(assistant: &str, more: Value) -> (&'static str, Value) {
    let mut asked = json!({ "assistant_id": assistant, "query": "help" });
    for (name, value) in more.as_object().into_iter().flatten() {
        asked[name] = value.clone();
    }
    ("spawn_assistant", asked)
}

/// A session of its own for the same user.
async fn another(client: &Client) -> Client {
    Client::of(&client.host).await
}

/// Ends the session of a client now.
async fn leave(client: Client) {
    client.host.end_session(client.session, Ending::Now).await.expect("ended");
}
