//! What of a server's messages gets through: answers that are waited for, and requests within bounds. Progress goes to
//! the call that it is about, log messages to the host's log; whatever else a server tells costs nothing.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rmcp::RoleClient;
use rmcp::model::{JsonRpcMessage, ProgressToken, RequestId, ServerNotification};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::mpsc;

use crate::text::cut;

/// Requests of a server within a second, after which its connection is ended: each is answered, and it need not read.
const REQUESTS_PER_SECOND_MAX: u32 = 1_000;
/// Characters of a server's log message that are logged.
const LOG_CHARS_MAX: usize = 500;

/// How far a call is, in the server's words.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What it does now; perhaps nothing.
    pub text: String,
    /// How much of it is done, from 0 to 1.
    pub fraction: Option<f64>,
}

/// What is known of one connection.
#[derive(Default)]
pub(super) struct Watch {
    /// Hands were shaken: answers may come in any order.
    connected: AtomicBool,
    /// The newest request, of which an answer is waited for until then.
    asked: Mutex<Option<RequestId>>,
    /// The list of tools has changed since it was got.
    stale: AtomicBool,
    steps: Mutex<HashMap<ProgressToken, mpsc::Sender<Step>>>,
}

impl Watch {
    pub(super) fn connected(&self) {
        self.connected.store(true, Ordering::Release);
    }

    /// Whether the list of tools has changed since this was asked.
    pub(super) fn take_stale(&self) -> bool {
        self.stale.swap(false, Ordering::AcqRel)
    }

    pub(super) fn is_stale(&self) -> bool {
        self.stale.load(Ordering::Acquire)
    }

    /// Sends what is told of a call to `steps`, until the value is dropped.
    pub(super) fn follow(self: &Arc<Self>, token: ProgressToken, steps: mpsc::Sender<Step>) -> impl Drop + use<> {
        self.steps().insert(token.clone(), steps);
        Following(self.clone(), token)
    }

    fn steps(&self) -> MutexGuard<'_, HashMap<ProgressToken, mpsc::Sender<Step>>> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Following(Arc<Watch>, ProgressToken);

impl Drop for Following {
    fn drop(&mut self) {
        self.0.steps().remove(&self.1);
    }
}

/// A transport whose messages are watched.
pub(super) struct Guard<T> {
    inner: T,
    name: String,
    watch: Arc<Watch>,
    /// When the second of the requests began, and how many they are.
    requests: (Instant, u32),
}

impl<T> Guard<T> {
    pub(super) fn new(name: &str, inner: T, watch: Arc<Watch>) -> Self {
        Self { inner, name: name.to_owned(), watch, requests: (Instant::now(), 0) }
    }

    /// Whether a message is passed on; none ends the connection.
    fn passes(&mut self, message: &RxJsonRpcMessage<RoleClient>) -> Option<bool> {
        match message {
            JsonRpcMessage::Response(response) => Some(self.is_awaited(Some(&response.id))),
            JsonRpcMessage::Error(error) => Some(self.is_awaited(error.id.as_ref())),
            JsonRpcMessage::Request(_) => {
                if self.requests.0.elapsed() > Duration::from_secs(1) {
                    self.requests = (Instant::now(), 0);
                }
                self.requests.1 += 1;
                let few = self.requests.1 <= REQUESTS_PER_SECOND_MAX;
                if !few {
                    tracing::warn!(server = %self.name, most = REQUESTS_PER_SECOND_MAX, "a server asks too much; its connection is ended");
                }
                few.then_some(true)
            }
            JsonRpcMessage::Notification(told) => Some(match &told.notification {
                ServerNotification::ProgressNotification(step) => {
                    let step = &step.params;
                    let total = step.total.filter(|total| *total > 0.0);
                    let told = Step {
                        text: step.message.as_deref().map(|text| cut(text, LOG_CHARS_MAX)).unwrap_or_default(),
                        fraction: total.map(|total| (step.progress / total).clamp(0.0, 1.0)),
                    };
                    // Who does not keep up misses some.
                    if let Some(steps) = self.watch.steps().get(&step.progress_token) {
                        drop(steps.try_send(told));
                    }
                    false
                }
                ServerNotification::LoggingMessageNotification(log) => {
                    let told = serde_json::to_string(&log.params).unwrap_or_default();
                    tracing::debug!(server = %self.name, told = %cut(&told, LOG_CHARS_MAX), "a server logs");
                    false
                }
                // One that nobody has looked at yet is enough.
                ServerNotification::ToolListChangedNotification(_) => !self.watch.stale.swap(true, Ordering::AcqRel),
                ServerNotification::SubscriptionsAcknowledgedNotification(_)
                | ServerNotification::CancelledNotification(_) => true,
                _ => false,
            }),
        }
    }

    /// While hands are shaken, one answer is waited for: that to a question that was given up may still come, where a
    /// server starts slowly.
    fn is_awaited(&self, id: Option<&RequestId>) -> bool {
        let asked = self.watch.asked.lock().unwrap_or_else(PoisonError::into_inner);
        self.watch.connected.load(Ordering::Acquire) || id.is_none() || same(id, asked.as_ref())
    }
}

/// Whether two ids are the same; some servers give numbers back as texts.
fn same(one: Option<&RequestId>, other: Option<&RequestId>) -> bool {
    one.map(ToString::to_string) == other.map(ToString::to_string)
}

impl<T: Transport<RoleClient> + 'static> Transport<RoleClient> for Guard<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let JsonRpcMessage::Request(request) = &item {
            *self.watch.asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(request.id.clone());
        }
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = self.inner.receive().await?;
            if self.passes(&message)? {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{ClientJsonRpcMessage, ClientRequest, PingRequest};

    use super::*;
    use crate::servers::lines::Lines;

    /// What gets through of these lines, where the request `asked` was sent last.
    async fn check(lines: &str, asked: i64, connected: bool, want: &[&str]) {
        let (_keeps_open, write) = tokio::io::simplex(4_096);
        let watch = Arc::new(Watch::default());
        if connected {
            watch.connected();
        }
        let mut guard =
            Guard::new("s", Lines::new(std::io::Cursor::new(lines.as_bytes().to_vec()), write, 10_000), watch);
        let ping = ClientRequest::PingRequest(PingRequest::default());
        guard.send(ClientJsonRpcMessage::request(ping, RequestId::Number(asked))).await.expect("sent");
        let mut found = Vec::new();
        while let Some(message) = guard.receive().await {
            found.push(serde_json::to_string(&message).expect("JSON"));
        }
        assert_eq!(found, want);
    }

    #[tokio::test]
    async fn a_late_answer_does_not_disturb_the_handshake() {
        let late = r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"Method not found"}}"#;
        let awaited = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        let both = format!("{late}\n{awaited}\n");
        check(&both, 1, false, &[awaited]).await;
        check(&both, 1, true, &[late, awaited]).await;
    }

    #[tokio::test]
    async fn what_is_told_costs_nothing_and_who_asks_too_much_is_left() {
        let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"a"}}"#;
        let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        check(&format!("{log}\n{changed}\n{changed}\n{log}\n"), 1, true, &[changed]).await;
        let ping = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;
        let most = REQUESTS_PER_SECOND_MAX as usize;
        check(&format!("{ping}\n").repeat(most), 1, true, &vec![ping; most]).await;
    }
}
