//! Asking again: what may succeed later is repeated, visibly, and holds no place meanwhile.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::limits::Limits;
use crate::model::{Answer, Ask, Model, ModelError, ModelErrorKind, Progress};

/// The wait before the first repetition, milliseconds; each further one is twice as long.
const FIRST_WAIT_MS: u64 = 500;
/// The longest wait of our own choice, milliseconds.
const WAIT_MS_MAX: u64 = 30_000;
/// The longest wait that a provider may ask for, milliseconds. Of a longer one only this much is waited.
const RETRY_AFTER_MS_MAX: u64 = 60_000;

/// That a call failed and will be made again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryNotice {
    /// Which repetition comes, from 1.
    pub retry: u32,
    /// The wait before it, milliseconds.
    pub wait_ms: u64,
    /// How long the call is still tried for after this failure, that wait included, milliseconds.
    pub left_ms: u64,
    /// Why the call failed.
    pub error: ModelError,
}

/// Asks a model; where that may help, again and again until `limits.retry_for_ms` after the first failure.
///
/// Holds one of `permits` while a call is in flight and none while it waits. `on_retry` is told before each wait. What
/// `seen` was told of a failed attempt is told again by the next.
///
/// # Errors
/// The error of the last attempt; of the first, where its kind is not retryable.
pub async fn answer_with_retries(
    model: &dyn Model,
    ask: &Ask,
    seen: &(dyn Fn(Progress) + Sync),
    limits: &Limits,
    permits: &Semaphore,
    mut on_retry: impl FnMut(RetryNotice),
) -> Result<Answer, ModelError> {
    let (mut retry, mut give_up) = (0, None);
    loop {
        let permit = permits.acquire().await.map_err(|_| closed(model))?;
        let outcome = model.answer(ask.clone(), seen).await;
        drop(permit);
        let error = match outcome {
            Err(error) if error.kind.retryable() => error,
            outcome => return outcome,
        };
        let give_up = *give_up.get_or_insert_with(|| Instant::now() + Duration::from_millis(limits.retry_for_ms));
        let left = give_up.saturating_duration_since(Instant::now());
        retry += 1;
        let wait_ms = wait_ms(retry, error.retry_after_ms, RandomState::new().hash_one(retry));
        if Duration::from_millis(wait_ms) > left {
            return Err(error);
        }
        let left_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        on_retry(RetryNotice { retry, wait_ms, left_ms, error });
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
    }
}

/// The doubled wait, of which a random part up to a half is left off so that many callers spread; at least what the
/// provider asked for.
fn wait_ms(retry: u32, retry_after_ms: Option<u64>, random: u64) -> u64 {
    let doubled = FIRST_WAIT_MS.saturating_mul(1 << (retry - 1).min(16)).min(WAIT_MS_MAX);
    let spread = doubled - random % (doubled / 2 + 1);
    spread.max(retry_after_ms.unwrap_or(0).min(RETRY_AFTER_MS_MAX))
}

fn closed(model: &dyn Model) -> ModelError {
    ModelError {
        kind: ModelErrorKind::Rejected,
        provider: model.provider().to_owned(),
        status: None,
        retry_after_ms: None,
        message: "the host is closing and makes no more model calls".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use super::*;
    use assistant_protocol::types::{FinishReason, Message, Role, Usage};
    use futures::FutureExt;
    use futures::future::BoxFuture;

    /// Fails with each of its errors in turn, then answers. Sees to it that a permit is held while it works.
    struct Fails<'p> {
        errors: Mutex<Vec<ModelError>>,
        permits: &'p Semaphore,
    }

    impl Model for Fails<'_> {
        fn answer<'a>(&'a self, _: Ask, _: &'a (dyn Fn(Progress) + Sync)) -> BoxFuture<'a, Result<Answer, ModelError>> {
            async {
                assert_eq!(self.permits.available_permits(), 0, "a call in flight holds the permit");
                tokio::time::sleep(Duration::from_millis(1)).await;
                if let Some(error) = self.errors.lock().expect("not poisoned").pop() {
                    return Err(error);
                }
                Ok(Answer {
                    message: Message::text(Role::Assistant, "done"),
                    finish: FinishReason::Stop,
                    usage: Usage::default(),
                    model: "m".to_owned(),
                })
            }
            .boxed()
        }

        fn provider(&self) -> &str {
            "test"
        }
    }

    fn error(kind: ModelErrorKind, retry_after_ms: Option<u64>) -> ModelError {
        ModelError { kind, provider: "test".into(), status: None, retry_after_ms, message: "no".into() }
    }

    /// What happened: each wait in seconds' range, and the end.
    async fn check(errors: &[ModelError], waits: &[(u64, u64)], end: Result<&str, ModelErrorKind>) {
        let permits = Semaphore::new(1);
        let errors = Mutex::new(errors.iter().rev().cloned().collect());
        let model = Fails { errors, permits: &permits };
        let mut notices = Vec::new();
        let start = Instant::now();
        let limits = Limits { retry_for_ms: 62_000, ..Limits::default() };
        let outcome = answer_with_retries(&model, &Ask::default(), &|_| {}, &limits, &permits, |notice| {
            assert_eq!(permits.available_permits(), 1, "no permit is held while waiting");
            notices.push(notice);
        })
        .await;
        assert_eq!(
            outcome.map(|answer| answer.message.content.as_text().into_owned()).map_err(|e| e.kind),
            end.map(str::to_owned)
        );
        assert_eq!(notices.len(), waits.len());
        for (at, (notice, (least, most))) in notices.iter().zip(waits).enumerate() {
            assert_eq!(notice.retry as usize, at + 1);
            let before: u64 = notices[..at].iter().map(|notice| notice.wait_ms + 1).sum();
            assert_eq!(notice.left_ms, 62_000 - before, "the time counts from the first failure");
            assert!((*least..=*most).contains(&notice.wait_ms), "{} is not in {least}..={most}", notice.wait_ms);
        }
        let waited: u64 = notices.iter().map(|notice| notice.wait_ms).sum();
        let calls = notices.len() as u64 + 1;
        assert_eq!(start.elapsed(), Duration::from_millis(waited + calls));
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_succeed_later_is_asked_again() {
        use ModelErrorKind::{Cut, Overloaded, RateLimited, TimedOut, Unreachable};
        let backoff = [(250, 500), (500, 1_000), (1_000, 2_000)];
        check(&[], &[], Ok("done")).await;
        check(&[error(Overloaded, None)], &backoff[..1], Ok("done")).await;
        check(&[error(Unreachable, None), error(Cut, None), error(TimedOut, None)], &backoff, Ok("done")).await;
        // The fifth wait, 4 to 8 s, still fits into the time; the one that is asked for then does not.
        let six = [error(Overloaded, Some(50_000)), error(Overloaded, None), error(Cut, Some(20_000))];
        check(&six, &[(50_000, 50_000), (500, 1_000)], Err(Cut)).await;
        check(&[error(RateLimited, Some(7_000))], &[(7_000, 7_000)], Ok("done")).await;
        check(&[error(RateLimited, Some(3_600_000))], &[(60_000, 60_000)], Ok("done")).await;
        check(&[error(RateLimited, Some(1))], &backoff[..1], Ok("done")).await;
    }

    #[tokio::test(start_paused = true)]
    async fn what_will_not_succeed_fails_at_once() {
        use ModelErrorKind::{BadKey, ContextExceeded, Rejected, Unreadable};
        for kind in [BadKey, ContextExceeded, Rejected, Unreadable] {
            check(&[error(kind, Some(1))], &[], Err(kind)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_host_asks_no_more() {
        let permits = Semaphore::new(1);
        permits.close();
        let model = Fails { errors: Mutex::default(), permits: &permits };
        let ask = Ask::default();
        let outcome = answer_with_retries(&model, &ask, &|_| {}, &Limits::default(), &permits, |_| {}).await;
        assert_eq!(
            outcome.expect_err("refused").to_string(),
            "test: the host is closing and makes no more model calls"
        );
    }

    #[test]
    fn waits_have_a_cap() {
        assert_eq!(wait_ms(12, None, 0), WAIT_MS_MAX);
        assert_eq!(wait_ms(u32::MAX, None, u64::MAX), WAIT_MS_MAX - u64::MAX % (WAIT_MS_MAX / 2 + 1));
    }
}
