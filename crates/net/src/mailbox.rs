//! A bounded queue of notices from other tasks.

use core::fmt;
use core::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::mpsc;

/// Creates a mailbox for this many notices, and the handle that other tasks send through.
///
/// Senders never wait. When the mailbox is full, the next notice is lost and the mailbox reports
/// [`Overflow`]. The connection should then end, because it has missed a notice.
#[must_use]
pub fn mailbox<N>(capacity: usize) -> (Handle<N>, Mailbox<N>) {
    let (sender, receiver) = mpsc::channel(capacity.max(1));
    let overflowed = Arc::new(AtomicBool::new(false));
    (Handle { sender, overflowed: Arc::clone(&overflowed) }, Mailbox { receiver, overflowed })
}

/// Puts notices into a connection's mailbox.
#[derive(Debug)]
pub struct Handle<N> {
    sender: mpsc::Sender<N>,
    overflowed: Arc<AtomicBool>,
}

/// Receives a connection's notices.
#[derive(Debug)]
pub struct Mailbox<N> {
    receiver: mpsc::Receiver<N>,
    overflowed: Arc<AtomicBool>,
}

/// A notice was lost because the mailbox was full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow;

impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("too many notices are waiting")
    }
}

impl std::error::Error for Overflow {}

impl<N> Clone for Handle<N> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), overflowed: Arc::clone(&self.overflowed) }
    }
}

impl<N> Handle<N> {
    /// Puts a notice into the mailbox, without waiting. Returns false if it is lost, because the
    /// mailbox is full or the connection has ended.
    pub fn tell(&self, notice: N) -> bool {
        match self.sender.try_send(notice) {
            Ok(()) => !self.overflowed.load(Ordering::Acquire),
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.overflowed.store(true, Ordering::Release);
                false
            }
            Err(mpsc::error::TrySendError::Closed(_)) => false,
        }
    }

    /// Whether the connection has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }
}

impl<N> Mailbox<N> {
    /// Waits for the next notice, or forever if all handles are gone. Dropping the future loses
    /// nothing. Once a notice has been lost, every call fails immediately.
    pub async fn next(&mut self) -> Result<N, Overflow> {
        self.check()?;
        match self.receiver.recv().await {
            Some(notice) => self.check().map(|()| notice),
            None => pending().await,
        }
    }

    /// The next notice, if one has arrived. Fails like [`next`](Self::next).
    pub fn try_next(&mut self) -> Result<Option<N>, Overflow> {
        self.check()?;
        Ok(self.receiver.try_recv().ok())
    }

    /// The notices in a full mailbox wake the connection, so a flag suffices.
    fn check(&self) -> Result<(), Overflow> {
        if self.overflowed.load(Ordering::Acquire) { Err(Overflow) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_lost_notice_is_reported_before_remaining_ones() {
        let (handle, mut mailbox) = mailbox(2);
        assert!(handle.tell(1) && handle.tell(2));
        assert_eq!(mailbox.next().await, Ok(1));
        assert!(handle.tell(3) && !handle.tell(4));
        assert_eq!(mailbox.next().await, Err(Overflow));
        assert_eq!(mailbox.try_next(), Err(Overflow));
        assert!(!handle.is_closed());
        drop(mailbox);
        assert!(handle.is_closed() && !handle.tell(5));
    }
}
