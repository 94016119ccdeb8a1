//! The link to an agent: JSON-RPC lines over its stdin and stdout, with bounds in front of the protocol's own crate.
//!
//! The crate correlates answers and calls what hears; but it queues without a bound and answers what is no message. So
//! lines are read here: what is no message, and answers to nothing that was asked, are counted and left out, and of
//! messages that the agent sends of its own accord the crate gets the next one when it is done with the one before. An
//! agent that floods waits for its own pipe.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::v1::schema::{
    AGENT_METHOD_NAMES, CLIENT_METHOD_NAMES, PermissionOption, PermissionOptionKind, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, SelectedPermissionOutcome, SessionId, SessionNotification,
    SessionUpdate,
};
use agent_client_protocol::{
    Agent, Builder, Channel, Client, ConnectionTo, Dispatch, Error, JsonRpcMessage, RawJsonRpcId, RawJsonRpcMessage,
    Responder, TransportFrame, UntypedMessage, is_connection_terminated, is_incoming_transport_closed,
};
use assistant_protocol::wire::{Line, LineReader};
use futures::StreamExt;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::{JoinSet, consume_budget};
use tokio_util::sync::CancellationToken;

use super::odd::Oddities;
use crate::adapter::lines::excerpt;

/// Lines in a row that are no messages, after which an agent is taken for none.
const JUNK_LINES_MAX: u32 = 10_000;
/// The longest line that an agent may write, in bytes. After a longer one nothing more is read.
pub(crate) const LINE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Requests of the agent that are not answered; with one more it waits, with all that it writes behind it.
const REQUESTS_MAX: usize = 64;
/// Things heard that wait to be looked at; then the agent waits.
const HEARD_MAX: usize = 8;

/// What an agent says in a turn, of the session that is listened to.
#[derive(Debug)]
pub(crate) enum Heard {
    /// What it does.
    Update(Box<SessionUpdate>),
    /// It wants to make a call; to be answered in any case.
    Asks(Box<(RequestPermissionRequest, Question)>),
}

/// A request for permission. Dropped, it is answered that the turn was cancelled.
#[derive(Debug)]
pub(crate) struct Question(Option<Responder>);

impl Question {
    /// Answers by the one of the agent's own options that is for this call only. Whether there is one; else it counts as
    /// dropped.
    pub(crate) fn answer(mut self, options: &[PermissionOption], allowed: bool) -> bool {
        let kind = if allowed { PermissionOptionKind::AllowOnce } else { PermissionOptionKind::RejectOnce };
        let Some(option) = options.iter().find(|option| option.kind == kind) else { return false };
        let option = SelectedPermissionOutcome::new(option.option_id.clone());
        self.respond(RequestPermissionOutcome::Selected(option));
        true
    }

    fn respond(&mut self, outcome: RequestPermissionOutcome) {
        if let Some(responder) = self.0.take() {
            // An agent that is gone needs no answer.
            let _ = responder.cast().respond(RequestPermissionResponse::new(outcome));
        }
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        self.respond(RequestPermissionOutcome::Cancelled);
    }
}

/// Why an agent did not do what it was asked.
#[derive(Debug)]
pub(crate) enum AskError {
    /// It answered with an error.
    Answered(Error),
    /// It cannot be asked any more.
    Gone(String),
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AskError::Answered(error) => f.write_str(&words(error)),
            AskError::Gone(why) => f.write_str(why),
        }
    }
}

/// The error of an agent, with what it tells beside the message where that is a text.
fn words(error: &Error) -> String {
    let more = match &error.data {
        Some(Value::String(text)) => Some(text.as_str()),
        Some(Value::Object(map)) => map.get("details").or_else(|| map.get("message")).and_then(Value::as_str),
        _ => None,
    };
    match more {
        Some(more) if more != error.message => format!("{}: {more}", error.message),
        _ => error.message.clone(),
    }
}

/// A link to an agent that lives.
#[derive(Debug)]
pub(crate) struct Link {
    connection: ConnectionTo<Agent>,
    ears: Arc<Ears>,
    /// Ends with the link.
    _tasks: JoinSet<()>,
}

#[derive(Debug)]
struct Ears {
    state: Mutex<State>,
    /// Free places of the agent's requests.
    requests: Semaphore,
    /// One place, taken by the message that the crate has.
    turn_of: Semaphore,
    /// Nothing more can be asked; `State::end` says why.
    ended: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    /// Who listens, and to which session.
    listener: Option<(SessionId, mpsc::Sender<Heard>)>,
    /// Our own requests without an answer.
    asked: HashSet<RawJsonRpcId>,
    odd: Oddities,
    end: Option<String>,
}

impl Ears {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, why: String) {
        self.state().end.get_or_insert(why);
        self.ended.cancel();
    }

    /// Who listens to `session`; where it is nobody, that is counted.
    fn listener(&self, session: &SessionId) -> Option<mpsc::Sender<Heard>> {
        let mut state = self.state();
        match &state.listener {
            Some((mine, sender)) if mine == session => Some(sender.clone()),
            _ => {
                state.odd.foreign += 1;
                None
            }
        }
    }

    async fn hear(&self, message: Dispatch) -> Result<(), Error> {
        match message {
            Dispatch::Response(result, router) => {
                if router.method() == AGENT_METHOD_NAMES.session_prompt {
                    // What comes behind the end of a turn belongs to none.
                    self.state().listener = None;
                }
                return router.route_with_result(result);
            }
            Dispatch::Notification(message) => {
                self.update(message).await;
                self.turn_of.add_permits(1);
            }
            Dispatch::Request(message, responder) => {
                if let Ok(place) = self.requests.acquire().await {
                    place.forget();
                }
                let answered = self.request(message, responder).await;
                self.turn_of.add_permits(1);
                return answered;
            }
        }
        Ok(())
    }

    async fn update(&self, message: UntypedMessage) {
        let (method, params) = message.into_parts();
        if method != CLIENT_METHOD_NAMES.session_update {
            return;
        }
        let kind = params["update"]["sessionUpdate"].as_str().unwrap_or("none");
        let kind = excerpt(kind.as_bytes());
        let Ok(SessionNotification { session_id, update, .. }) = serde_json::from_value(params) else {
            let odd = &mut self.state().odd;
            odd.unfit += 1;
            odd.first_unfit.get_or_insert(kind);
            return;
        };
        if let Some(listener) = self.listener(&session_id) {
            // Where nobody listens any more, nothing is lost that somebody wanted.
            let _ = listener.send(Heard::Update(Box::new(update))).await;
        }
    }

    async fn request(&self, message: UntypedMessage, responder: Responder) -> Result<(), Error> {
        let (method, params) = message.into_parts();
        if method != CLIENT_METHOD_NAMES.session_request_permission {
            return responder.respond_with_error(Error::method_not_found().data(method));
        }
        let request: RequestPermissionRequest = match serde_json::from_value(params) {
            Ok(request) => request,
            Err(error) => return responder.respond_with_error(Error::invalid_params().data(error.to_string())),
        };
        let question = Question(Some(responder));
        if let Some(listener) = self.listener(&request.session_id) {
            // Where nobody listens any more, the question is dropped, and so answered.
            let _ = listener.send(Heard::Asks(Box::new((request, question)))).await;
        }
        Ok(())
    }
}

impl Link {
    /// A link over the pipes of a program that was just started.
    ///
    /// # Errors
    /// The crate did not begin.
    pub(crate) async fn open<W, R>(stdin: W, stdout: R) -> Result<Self, AskError>
    where
        W: AsyncWrite + Send + Unpin + 'static,
        R: AsyncRead + Send + Unpin + 'static,
    {
        let ears = Arc::new(Ears {
            state: Mutex::default(),
            requests: Semaphore::new(REQUESTS_MAX),
            turn_of: Semaphore::new(1),
            ended: CancellationToken::new(),
        });
        let (ours, theirs) = Channel::duplex();
        let (to_write, to_crate) = theirs.into_parts();
        let mut tasks = JoinSet::new();
        tasks.spawn(read(LineReader::new(stdout, LINE_BYTES_MAX), to_crate, ears.clone()));
        tasks.spawn(write(stdin, to_write, ears.clone()));
        let (sender, connection) = oneshot::channel();
        let hearing = ears.clone();
        tasks.spawn(async move {
            let ending = hearing.clone();
            let link = Builder::new(Client)
                .on_receive_dispatch(
                    async move |message: Dispatch, _| hearing.hear(message).await,
                    agent_client_protocol::on_receive_dispatch!(),
                )
                .connect_with(ours, async move |connection| {
                    if sender.send(connection).is_ok() {
                        std::future::pending::<()>().await;
                    }
                    Ok(())
                });
            if let Err(error) = link.await {
                ending.end(format!("the link to the agent broke: {}", error.message));
            }
        });
        let connection = connection.await.map_err(|_| AskError::Gone("the link to the agent did not begin".into()))?;
        Ok(Self { connection, ears, _tasks: tasks })
    }

    /// Asks the agent, and gives what it answers, unread. Waits without a bound of time.
    ///
    /// # Errors
    /// [`AskError`]
    pub(crate) async fn ask(&self, request: &impl JsonRpcMessage) -> Result<Value, AskError> {
        let message = request.to_untyped_message().map_err(|error| AskError::Gone(words(&error)))?;
        let answer = tokio::select! {
            biased;
            answer = self.connection.send_request(message).block_task() => answer,
            () = self.ears.ended.cancelled() => return Err(AskError::Gone(self.why_ended())),
        };
        answer.map_err(|error| {
            if is_incoming_transport_closed(&error) || is_connection_terminated(&error) {
                AskError::Gone(self.why_ended())
            } else {
                AskError::Answered(error)
            }
        })
    }

    /// Tells the agent something. What cannot be told any more, an agent that is gone need not know.
    pub(crate) fn tell(&self, notification: &impl JsonRpcMessage) {
        if let Ok(message) = notification.to_untyped_message() {
            let _ = self.connection.send_notification(message);
        }
    }

    /// Listens to a session from now on, in place of whoever did before; until a prompt is answered, or what is given
    /// back is dropped.
    pub(crate) fn listen(&self, session: &SessionId) -> mpsc::Receiver<Heard> {
        let (sender, heard) = mpsc::channel(HEARD_MAX);
        self.ears.state().listener = Some((session.clone(), sender));
        heard
    }

    /// What the agent wrote that nothing can be done with.
    pub(crate) fn oddities(&self) -> Oddities {
        self.ears.state().odd.clone()
    }

    /// The agent has ended, or its pipes were closed.
    pub(crate) fn has_ended(&self) -> bool {
        self.ears.ended.is_cancelled() || self.connection.is_incoming_closed()
    }

    fn why_ended(&self) -> String {
        self.ears.state().end.clone().unwrap_or_else(|| "the agent closed its output".to_owned())
    }
}

/// Gives the crate one message after the other.
async fn read<R: AsyncRead + Unpin>(
    mut lines: LineReader<R>,
    to_crate: UnboundedSender<TransportFrame>,
    ears: Arc<Ears>,
) {
    let mut junk = 0;
    loop {
        // One that floods with junk holds up nothing else.
        consume_budget().await;
        let line = match lines.next().await {
            Ok(Line::Whole(line)) => line,
            Ok(Line::End) => return,
            Ok(Line::TooLong) => {
                return ears.end(format!("the agent wrote a line of more than {LINE_BYTES_MAX} bytes"));
            }
            Err(error) => return ears.end(format!("the output of the agent cannot be read: {error}")),
        };
        let message = match std::str::from_utf8(line).map(TransportFrame::parse_json) {
            Ok(TransportFrame::Single(message)) => message,
            _ if line.iter().all(u8::is_ascii_whitespace) => continue,
            _ => {
                let mut state = ears.state();
                state.odd.junk_lines += 1;
                if state.odd.first_junk.is_none() {
                    state.odd.first_junk = Some(excerpt(line));
                }
                junk += 1;
                if junk == JUNK_LINES_MAX {
                    drop(state);
                    return ears.end(format!("the agent wrote {JUNK_LINES_MAX} lines in a row that are no messages"));
                }
                continue;
            }
        };
        junk = 0;
        let is_answer = match &message {
            RawJsonRpcMessage::Response(_) => true,
            // What the agent takes back is answered all the same, which it may ignore.
            RawJsonRpcMessage::Notification(told) if told.method.starts_with("$/") => continue,
            RawJsonRpcMessage::Notification(_) | RawJsonRpcMessage::Request(_) => false,
        };
        if is_answer {
            let mut state = ears.state();
            if !message.response_id().is_some_and(|id| state.asked.remove(id)) {
                state.odd.unknown_answers += 1;
                continue;
            }
        } else if let Ok(place) = ears.turn_of.acquire().await {
            place.forget();
        }
        if to_crate.unbounded_send(TransportFrame::Single(message)).is_err() {
            return;
        }
    }
}

async fn write<W: AsyncWrite + Unpin>(mut stdin: W, mut to_write: UnboundedReceiver<TransportFrame>, ears: Arc<Ears>) {
    while let Some(frame) = to_write.next().await {
        let Ok(mut line) = frame.to_json() else { continue };
        line.push('\n');
        match &frame {
            TransportFrame::Single(RawJsonRpcMessage::Request(request)) => {
                ears.state().asked.insert(request.id.clone());
            }
            TransportFrame::Single(RawJsonRpcMessage::Response(_)) => ears.requests.add_permits(1),
            _ => {}
        }
        let written = async {
            stdin.write_all(line.as_bytes()).await?;
            stdin.flush().await
        };
        if let Err(error) = written.await {
            return ears.end(format!("the agent takes no more input: {error}"));
        }
    }
}
