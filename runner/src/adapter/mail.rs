//! Messages on their way to an agent: held until its turn has ended, given with the next one, each once.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use assistant_protocol::error::{Kind, RpcError};
use assistant_protocol::ids::MessageId;
use assistant_protocol::types::DeliverMessageParams as Letter;
use tokio::sync::oneshot;

/// Messages that may wait for an agent.
const HELD_MAX: usize = 1_024;
/// Their text, in bytes.
const HELD_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Ids of messages that were taken: a message that comes again after more than these is given again.
const KNOWN_MAX: usize = 65_536;

/// Who waits for a message to be given: dropped without a word, it was not.
pub(super) type Waiting = oneshot::Sender<()>;

/// Messages that an agent is being given. Dropped before it has them, they go back: who waits for them is told behind the
/// answer to `run`, of which the refusal would be taken for the reason else.
#[derive(Debug, Default)]
pub(super) struct Giving {
    ids: Vec<MessageId>,
    waiting: Vec<Waiting>,
    back: Arc<Mutex<Back>>,
}

/// Messages that no agent has got: their ids, and who waits for them.
type Back = (Vec<MessageId>, Vec<Waiting>);

impl Giving {
    /// The agent has them: whoever wrote one is told so.
    pub(super) fn given(&mut self) {
        self.ids.clear();
        for waiting in self.waiting.drain(..) {
            // Whoever asked may be gone.
            let _ = waiting.send(());
        }
    }
}

impl Drop for Giving {
    fn drop(&mut self) {
        let mut back = self.back.lock().unwrap_or_else(PoisonError::into_inner);
        back.0.append(&mut self.ids);
        back.1.append(&mut self.waiting);
    }
}

/// The messages for one agent.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    held: VecDeque<Held>,
    bytes: usize,
    known: HashSet<MessageId>,
    /// The same, oldest first.
    order: VecDeque<MessageId>,
    back: Arc<Mutex<Back>>,
}

#[derive(Debug)]
struct Held {
    letter: Letter,
    waiting: Vec<Waiting>,
}

impl Mailbox {
    /// Holds a message that has come. Gives what to wait for until the agent has it; nothing where it was given before.
    ///
    /// # Errors
    /// More is held than may be.
    pub(super) fn hold(&mut self, letter: Letter) -> Result<Option<oneshot::Receiver<()>>, RpcError> {
        let (waiting, given) = oneshot::channel();
        let mail = &letter.message;
        if let Some(held) = self.held.iter_mut().find(|held| held.letter.message.id == mail.id) {
            held.waiting.push(waiting);
            return Ok(Some(given));
        }
        if self.known.contains(&mail.id) {
            return Ok(None);
        }
        let bytes = self.bytes.saturating_add(mail.content.len());
        if self.held.len() == HELD_MAX || bytes > HELD_BYTES_MAX {
            let text =
                format!("{} messages ({} bytes) wait for the agent, and no more may", self.held.len(), self.bytes);
            return Err(RpcError::new(Kind::Overloaded, text));
        }
        self.bytes = bytes;
        self.known.insert(mail.id);
        self.order.push_back(mail.id);
        if self.order.len() > KNOWN_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        self.held.push_back(Held { letter, waiting: vec![waiting] });
        Ok(Some(given))
    }

    /// All that is held, oldest first, to be given.
    pub(super) fn take(&mut self) -> (Vec<Letter>, Giving) {
        self.bytes = 0;
        let (letters, waiting): (Vec<_>, Vec<_>) = self.held.drain(..).map(|held| (held.letter, held.waiting)).unzip();
        let ids = letters.iter().map(|letter: &Letter| letter.message.id).collect();
        (letters, Giving { ids, waiting: waiting.into_iter().flatten().collect(), back: self.back.clone() })
    }

    /// Nothing is held.
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Takes those who wait off what is held, which stays.
    pub(super) fn release(&mut self) -> Vec<Waiting> {
        self.held.iter_mut().flat_map(|held| std::mem::take(&mut held.waiting)).collect()
    }

    /// Who waits for what no agent has got though it was to be given: it is not known any more, so that it can come again.
    pub(super) fn not_given(&mut self) -> Vec<Waiting> {
        let (ids, waiting) = std::mem::take(&mut *self.back.lock().unwrap_or_else(PoisonError::into_inner));
        for id in &ids {
            self.known.remove(id);
        }
        self.order.retain(|id| !ids.contains(id));
        waiting
    }
}
