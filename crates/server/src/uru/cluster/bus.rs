//! The bus between the processes of a cluster: messages sent to subjects. They can be lost, delayed
//! or repeated.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

/// A future returned by a [`Bus`].
pub(crate) type Pending<'b, T> = Pin<Box<dyn Future<Output = T> + Send + 'b>>;

/// A connection to a bus.
pub(crate) trait Bus: fmt::Debug + Send + Sync + 'static {
    /// Sends a message to all subscribers of a subject, if any. Returns false if there is no room
    /// for the message, which is then lost as if in transit.
    fn publish<'b>(&'b self, subject: &'b str, message: Vec<u8>) -> Pending<'b, bool>;

    /// Waits until all queued messages have been sent.
    fn flush(&self) -> Pending<'_, ()>;

    /// Subscribes to a subject. Messages that are not received in time are lost.
    fn subscribe<'b>(&'b self, subject: &'b str) -> Pending<'b, Result<Messages, BusError>>;
}

/// The messages of a subscription, in order of arrival. `None` means that the bus is closed.
pub(crate) type Messages = mpsc::Receiver<BusMessage>;

/// A message from the bus.
#[derive(Clone, Debug)]
pub(crate) struct BusMessage {
    /// The subject it was sent to.
    pub(crate) subject: String,
    /// Its contents.
    pub(crate) body: Vec<u8>,
}

/// Why a bus is unusable.
#[derive(Debug, thiserror::Error)]
#[error("the bus {servers}: {reason}")]
pub struct BusError {
    /// Its servers.
    pub servers: String,
    /// The problem.
    pub reason: String,
}

/// How long to pause sending when the bus has no room.
const PAUSE: Duration = Duration::from_millis(50);

/// Publishes a machine's outgoing messages. Pauses while the bus has no room.
#[derive(Debug)]
pub(super) struct Publisher {
    pub(super) bus: Arc<dyn Bus>,
    paused_until: Option<Instant>,
}

impl Publisher {
    pub(super) fn new(bus: Arc<dyn Bus>) -> Self {
        Self { bus, paused_until: None }
    }

    /// When the pause ends.
    pub(super) fn paused_until(&self) -> Option<Instant> {
        self.paused_until
    }

    /// Publishes all messages to their subjects.
    pub(super) async fn publish(&mut self, mut next: impl FnMut() -> Option<(String, Vec<u8>)>) {
        if self.paused_until.is_some_and(|until| Instant::now() < until) {
            return;
        }
        self.paused_until = None;
        while let Some((subject, message)) = next() {
            if !self.bus.publish(&subject, message).await {
                self.paused_until = Some(Instant::now() + PAUSE);
                break;
            }
        }
    }
}
