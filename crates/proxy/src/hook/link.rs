//! The proxy's end of the link to one hook: bounded, and never blocking.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::frames::push_line;
use super::protocol::Form;

/// The maximum number of bytes that a hook has not read yet.
pub(crate) const MAX_QUEUED_BYTES: usize = 32 << 20;
/// The maximum number of messages that a hook has not answered yet.
pub(crate) const MAX_UNANSWERED: usize = 4_096;
/// The minimum interval between warnings about a hook in the log.
const WARNING_EVERY: Duration = Duration::from_secs(60);

/// The link to one hook, for as long as it runs. Conversations write to it without waiting.
#[derive(Debug)]
pub(crate) struct Link {
    /// Unique among all hooks so far. Hooks of equal order are asked in this order.
    pub(crate) number: u64,
    /// Its name in the log.
    pub(crate) name: String,
    /// Whether conversations end instead of continuing without it.
    pub(crate) is_required: bool,
    /// How long it may take to answer.
    pub(crate) answer_time: Duration,
    /// Whether it wants large integers as text.
    pub(crate) json_safe: bool,
    pub(crate) form: Form,
    /// Whether new subscriptions also apply to messages that wait for it to answer earlier ones.
    pub(crate) catch_up: bool,
    queue: Mutex<Queue>,
    filled: Notify,
    unanswered: AtomicUsize,
    /// When the last warning about it was logged, in milliseconds on the proxy's clock, plus one.
    warned: AtomicU64,
    /// Warnings that have not been logged since.
    unlogged: AtomicU64,
}

/// Lines that wait to be written.
#[derive(Debug, Default)]
struct Queue {
    bytes: Vec<u8>,
    is_closed: bool,
}

/// Why a line cannot be sent to a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unsent {
    #[error("it has ended")]
    Closed,
    #[error("it does not read its input: more than {MAX_QUEUED_BYTES} bytes are waiting")]
    Full,
    #[error("it has more than {MAX_UNANSWERED} unanswered messages")]
    Unanswered,
}

impl Link {
    pub(crate) fn new(
        (number, name): (u64, String),
        is_required: bool,
        answer_time: Duration,
        json_safe: bool,
        (form, catch_up): (Form, bool),
    ) -> Self {
        Self {
            number,
            name,
            is_required,
            answer_time,
            json_safe,
            form,
            catch_up,
            queue: Mutex::default(),
            filled: Notify::new(),
            unanswered: AtomicUsize::new(0),
            warned: AtomicU64::new(0),
            unlogged: AtomicU64::new(0),
        }
    }

    /// Queues a line, in the hook's form.
    pub(crate) fn send(&self, line: &str) -> Result<(), Unsent> {
        match self.form {
            Form::Lines => self.queue_bytes(line.len(), |queue| queue.extend(line.as_bytes())),
            Form::Binary => self.queue_bytes(line.len(), |queue| push_line(line, queue)),
        }
    }

    /// Queues, as a line, a message that the hook must answer.
    pub(crate) fn ask(&self, line: &str) -> Result<(), Unsent> {
        self.ask_with(|| self.send(line))
    }

    /// Queues, as a frame, a message that the hook must answer.
    pub(crate) fn ask_frame(&self, frame: &[u8]) -> Result<(), Unsent> {
        self.ask_with(|| self.queue_bytes(frame.len(), |queue| queue.extend(frame)))
    }

    fn ask_with(&self, send: impl FnOnce() -> Result<(), Unsent>) -> Result<(), Unsent> {
        if self.unanswered.load(Ordering::Relaxed) >= MAX_UNANSWERED {
            return Err(Unsent::Unanswered);
        }
        send()?;
        self.unanswered.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn queue_bytes(&self, length: usize, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Unsent> {
        let mut queue = self.queue();
        if queue.is_closed {
            return Err(Unsent::Closed);
        }
        if queue.bytes.len().saturating_add(length) > MAX_QUEUED_BYTES {
            return Err(Unsent::Full);
        }
        write(&mut queue.bytes);
        drop(queue);
        self.filled.notify_one();
        Ok(())
    }

    /// A message has been answered, or no longer needs an answer.
    pub(crate) fn answered(&self) {
        let less = |count: usize| Some(count.saturating_sub(1));
        let _ = self.unanswered.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Whether so many bytes are waiting that queries are refused.
    pub(crate) fn is_filling(&self) -> bool {
        self.queue().bytes.len() > MAX_QUEUED_BYTES / 8
    }

    /// Takes what is queued.
    pub(crate) fn take(&self) -> Vec<u8> {
        core::mem::take(&mut self.queue().bytes)
    }

    /// Waits until lines are queued or the link is closed. False once it is closed and empty.
    pub(crate) async fn filled(&self) -> bool {
        loop {
            let filled = self.filled.notified();
            {
                let queue = self.queue();
                if !queue.bytes.is_empty() {
                    return true;
                }
                if queue.is_closed {
                    return false;
                }
            }
            filled.await;
        }
    }

    /// Closes the link: no more lines are queued.
    pub(crate) fn close(&self) {
        self.queue().is_closed = true;
        self.filled.notify_one();
    }

    /// Counts a warning. If it is time to log one, returns the number of warnings since the last
    /// logged one.
    pub(crate) fn warn(&self, now: Duration) -> Option<u64> {
        let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX).saturating_add(1);
        self.unlogged.fetch_add(1, Ordering::Relaxed);
        let every = u64::try_from(WARNING_EVERY.as_millis()).unwrap_or(u64::MAX);
        let due = |last: u64| (last == 0 || now >= last.saturating_add(every)).then_some(now);
        let is_due = self.warned.fetch_update(Ordering::Relaxed, Ordering::Relaxed, due).is_ok();
        is_due.then(|| self.unlogged.swap(0, Ordering::Relaxed))
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link() -> Link {
        let form = (Form::Lines, false);
        Link::new((1, "a".to_owned()), false, Duration::from_secs(1), false, form)
    }

    #[test]
    fn queues_are_bounded() {
        let link = link();
        assert_eq!(link.send(&"x".repeat(MAX_QUEUED_BYTES)), Ok(()));
        assert_eq!(link.send("y"), Err(Unsent::Full));
        assert!(link.is_filling());
        assert_eq!(link.take().len(), MAX_QUEUED_BYTES);
        assert!(!link.is_filling());
        for _ in 0..MAX_UNANSWERED {
            assert_eq!(link.ask("z"), Ok(()));
        }
        assert_eq!(link.ask("z"), Err(Unsent::Unanswered));
        link.answered();
        assert_eq!(link.ask("z"), Ok(()));
        link.close();
        assert_eq!(link.send("z"), Err(Unsent::Closed));
    }

    #[test]
    fn warnings_are_logged_once_a_minute() {
        let link = link();
        let at = |seconds| link.warn(Duration::from_secs(seconds));
        assert_eq!([at(0), at(1), at(59), at(60), at(61)], [Some(1), None, None, Some(3), None]);
    }

    #[tokio::test]
    async fn a_closed_line_ends_once_it_is_empty() {
        let link = link();
        link.send("x\n").unwrap();
        link.close();
        assert!(link.filled().await);
        assert_eq!(link.take(), b"x\n");
        assert!(!link.filled().await);
    }
}
