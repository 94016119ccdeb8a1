//! Whether an agent reaches its model: one that tells that it never has in a turn, and tries for ever, is given up.

use std::time::Duration;

use tokio::time::Instant;

use super::kind::Told;

/// How long an agent may try to reach its model at the beginning of a turn, in milliseconds, from when it first tells in its
/// output that nothing answers it. Later on it is waited for as long as it tries: it has something to lose. One that tells
/// nothing, or only on stderr, may be thinking: it is waited for as long as the run may last.
pub(super) const UNREACHED_MS: u64 = 45_000;

/// What is known of it in a turn.
#[derive(Debug, Default)]
pub(super) struct Reach {
    answered: bool,
    /// Since when it tries, and what it tells of that.
    trying: Option<(Instant, String)>,
}

impl Reach {
    /// Takes in what the agent told just now.
    pub(super) fn hears(&mut self, told: &Told, now: Instant) {
        match told {
            Told::Waits { text, unreached: true } if !self.answered => {
                let since = self.trying.take().map_or(now, |(since, _)| since);
                self.trying = Some((since, text.clone()));
            }
            Told::Event(_) | Told::Waits { .. } => {
                self.answered = true;
                self.trying = None;
            }
            Told::Session(_) | Told::Done | Told::Failed(_) => {}
        }
    }

    /// When it has tried for too long.
    pub(super) fn until(&self) -> Option<Instant> {
        self.trying.as_ref().map(|(since, _)| *since + Duration::from_millis(UNREACHED_MS))
    }

    /// What is told then.
    pub(super) fn words(&self) -> String {
        let told = self.trying.as_ref().map(|(_, text)| text.as_str()).unwrap_or_default();
        format!("no model was reached for {} seconds; look at the network and the proxy. {told}", UNREACHED_MS / 1_000)
    }
}

#[cfg(test)]
mod tests {
    use assistant_protocol::types::AgentEvent;

    use super::*;

    #[test]
    fn only_one_that_never_was_answered_is_given_up() {
        let begun = Instant::now();
        let at = |seconds: u64| begun + Duration::from_secs(seconds);
        let waits = |text: &str, unreached: bool| Told::Waits { text: text.to_owned(), unreached };
        let mut reach = Reach::default();
        reach.hears(&Told::Session("s".to_owned()), at(1));
        assert_eq!(reach.until(), None);
        reach.hears(&waits("one", true), at(2));
        reach.hears(&waits("two", true), at(9));
        assert_eq!(reach.until(), Some(at(47)));
        assert!(reach.words().ends_with(" two"), "{}", reach.words());
        // It is answered, be it that there is no room.
        reach.hears(&waits("status 529", false), at(20));
        reach.hears(&waits("three", true), at(30));
        assert_eq!(reach.until(), None);
        let mut reach = Reach::default();
        reach.hears(&Told::Event(AgentEvent::Text { text: "Hi.".to_owned() }), at(1));
        reach.hears(&waits("one", true), at(2));
        assert_eq!(reach.until(), None);
    }
}
