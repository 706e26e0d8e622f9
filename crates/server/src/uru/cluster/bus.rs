//! The bus between the processes of a cluster: messages to subjects, which may be lost, delayed or
//! repeated.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

/// A future of a [`Bus`].
pub(crate) type Pending<'b, T> = Pin<Box<dyn Future<Output = T> + Send + 'b>>;

/// A connection to a bus.
pub(crate) trait Bus: fmt::Debug + Send + Sync + 'static {
    /// Sends a message to all subscribers of a subject, if there are any. Returns false if there is
    /// no room for it. It is then lost, as if in transit.
    fn publish<'b>(&'b self, subject: &'b str, message: Vec<u8>) -> Pending<'b, bool>;

    /// Waits until messages that wait for the network are sent.
    fn flush(&self) -> Pending<'_, ()>;

    /// Subscribes to a subject. Messages that are not taken in time are lost.
    fn subscribe<'b>(&'b self, subject: &'b str) -> Pending<'b, Result<Messages, BusError>>;
}

/// The messages of a subscription, in the order of their arrival. `None`: the bus is closed.
pub(crate) type Messages = mpsc::Receiver<Vec<u8>>;

/// Why a bus cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the bus {servers}: {reason}")]
pub struct BusError {
    /// Its servers.
    pub servers: String,
    /// What is wrong.
    pub reason: String,
}

/// How long to send nothing once the bus has no room.
const PAUSE: Duration = Duration::from_millis(50);

/// Publishes what a machine has to say. It pauses while the bus has no room.
#[derive(Debug)]
pub(super) struct Publisher {
    pub(super) bus: Arc<dyn Bus>,
    paused_until: Option<Instant>,
}

impl Publisher {
    pub(super) fn new(bus: Arc<dyn Bus>) -> Self {
        Self { bus, paused_until: None }
    }

    /// The end of the pause.
    pub(super) fn paused_until(&self) -> Option<Instant> {
        self.paused_until
    }

    /// Publishes all messages, with their subjects.
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

/// The subjects of a cluster.
#[derive(Clone, Debug)]
pub(super) struct Subjects {
    /// With the name of the cluster and the major version of the frames.
    prefix: String,
}

impl Subjects {
    pub(super) fn of(cluster: &str) -> Self {
        Self { prefix: format!("ww.{cluster}.1") }
    }

    /// Where the leader announces itself.
    pub(super) fn leader(&self) -> String {
        format!("{}.leader", self.prefix)
    }

    /// What the leader of an epoch receives.
    pub(super) fn up(&self, epoch: u64) -> String {
        format!("{}.up.{epoch}", self.prefix)
    }

    /// What the leaders of all epochs receive.
    pub(super) fn all_up(&self) -> String {
        format!("{}.up.>", self.prefix)
    }

    /// What all nodes receive.
    pub(super) fn all_down(&self) -> String {
        format!("{}.down.>", self.prefix)
    }

    /// What the processes of a node receive.
    pub(super) fn all_down_to(&self, node: &str) -> String {
        format!("{}.down.{node}.>", self.prefix)
    }

    /// Where ages of different processes reach each other's players.
    pub(super) fn all_players(&self) -> [String; 2] {
        [format!("{}.player.*", self.prefix), format!("{}.all", self.prefix)]
    }

    /// What a process of a node receives.
    pub(super) fn down(&self, node: &str, process: u64) -> String {
        format!("{}.down.{node}.{process:016x}", self.prefix)
    }

    /// Where players in ages of other processes are reached: one of them, or all.
    pub(super) fn players(&self, one: Option<u32>) -> String {
        match one {
            Some(player) => format!("{}.player.{player}", self.prefix),
            None => format!("{}.all", self.prefix),
        }
    }
}
