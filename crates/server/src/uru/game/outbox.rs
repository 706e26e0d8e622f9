//! What an age has for one client, between the age's task and the client's connection.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use worldwire_uru::age::{Packet, Queue};

/// How many bytes may wait for a client that reads slowly; see [`Queue`].
const MOST_WAITING: usize = 4 << 20;

/// What waits for a client. The age puts it in, and never waits; the connection takes it out as its
/// client reads.
#[derive(Debug)]
pub(super) struct Outbox {
    inner: Mutex<Inner>,
    news: Notify,
}

#[derive(Debug)]
struct Inner {
    queue: Queue,
    /// Why the connection has to end.
    closed: Option<&'static str>,
}

impl Outbox {
    pub(super) fn new() -> Self {
        let inner = Inner { queue: Queue::new(MOST_WAITING), closed: None };
        Self { inner: Mutex::new(inner), news: Notify::new() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a message in. False when there is no room for it: the client reads too slowly, and its
    /// connection ends.
    pub(super) fn push(&self, packet: Packet) -> bool {
        let mut inner = self.inner();
        if inner.closed.is_some() {
            return false;
        }
        let has_room = inner.queue.push(packet).is_ok();
        if !has_room {
            inner.closed = Some("the client reads too slowly");
            inner.queue = Queue::new(0);
        }
        drop(inner);
        self.news.notify_one();
        has_room
    }

    /// Ends the connection, once what waits was written.
    pub(super) fn close(&self, why: &'static str) {
        self.inner().closed.get_or_insert(why);
        self.news.notify_one();
    }

    /// The next message.
    pub(super) fn pop(&self) -> Option<Packet> {
        self.inner().queue.pop()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.inner().queue.is_empty()
    }

    /// Why the connection has to end, when nothing waits any more.
    pub(super) fn end(&self) -> Option<&'static str> {
        let inner = self.inner();
        inner.closed.filter(|_| inner.queue.is_empty())
    }

    /// Waits until something was put in, or the connection has to end. Cancel safe.
    pub(super) async fn news(&self) {
        self.news.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use worldwire_uru::age::{Config, Instance, Player};
    use worldwire_uru::file::age::AgeFile;

    use super::*;

    fn packet() -> Packet {
        let (zero, unix) = (Duration::ZERO, Duration::from_secs(1_700_000_000));
        let (file, config) = (AgeFile::default(), Config::default());
        let mut age = Instance::new(zero, unix, "Lab", file, Default::default(), config);
        age.join(zero, Player::new(5, "Yeesha")).unwrap();
        age.poll_delivery().unwrap().packet
    }

    #[tokio::test]
    async fn who_reads_too_slowly_is_cut_off() {
        let (outbox, packet) = (Outbox::new(), packet());
        let mut pushed = 0;
        while outbox.push(packet.clone()) {
            pushed += 1;
        }
        let cost = packet.bytes().len() + 128;
        assert_eq!(pushed, MOST_WAITING / cost);
        outbox.news().await;
        assert!(outbox.is_empty() && outbox.end().is_some());
        assert!(!outbox.push(packet));
    }

    #[tokio::test]
    async fn what_waits_is_written_before_the_end() {
        let (outbox, packet) = (Outbox::new(), packet());
        assert!(outbox.push(packet.clone()));
        outbox.close("the age ends");
        assert_eq!(outbox.end(), None);
        assert_eq!(outbox.pop(), Some(packet));
        assert_eq!(outbox.end(), Some("the age ends"));
    }
}
