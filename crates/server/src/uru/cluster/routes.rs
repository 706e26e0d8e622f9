//! Messages to players in ages on other processes, such as private chat.
//!
//! | subject | from, to | content |
//! | --- | --- | --- |
//! | `ww.NAME.1.player.ID` | the sender's process, the process with this player | [`Routed`] |
//! | `ww.NAME.1.all` | an administrator's process, all processes with ages | [`Routed`] |
//!
//! A process subscribes to the subjects of the players in its ages, so senders need not know where
//! players are. Nothing is resent: messages may be lost, but never arrive twice.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle};
use worldwire_core::{Bytes32, Error, Field as _, Reader, Result, Writer, record};
use worldwire_net::LogLimiter;
use worldwire_uru::age::Packet;
use worldwire_uru::net_message::NetMessage;

use super::bus::{Bus, BusMessage, Messages};
use super::subjects::Subjects;

/// The minor version of the format. A newer one can append fields.
const MINOR: u8 = 0;
/// The maximum length of a message. Longer ones are dropped.
const MAX_MESSAGE: usize = 64 << 10;
/// The maximum number of messages waiting for the bus, and for ages. Further ones are dropped.
const MAX_WAITING: usize = 1_024;
/// The number of senders remembered per subject.
const MAX_SENDERS: usize = 256;
/// The shortest interval between log lines that clients could trigger at will.
const LOG_EVERY: Duration = Duration::from_secs(60);

record! {
    /// A message for players.
    pub struct Routed<'a> {
        /// The minor version of the format.
        minor "minor": u8,
        /// The random number of the sender's process.
        process "process": u64,
        /// The number of the message, counted per process.
        number "number": u64,
        /// The encoded net message.
        message "message": Bytes32<'a, MAX_MESSAGE>,
    }
}

impl<'a> Routed<'a> {
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut writer = Writer::new();
        self.encode(&mut writer)?;
        Ok(writer.into_bytes())
    }

    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self> {
        Self::decode(&mut Reader::new(bytes), "routed message")
    }

    /// Decodes the net message, for delivery in ages.
    pub(super) fn packet(&self) -> Result<Packet> {
        let mut reader = Reader::new(&self.message);
        let message = NetMessage::decode(&mut reader, "message").map_err(Error::closed)?;
        reader.end()?;
        Packet::of(message)
    }
}

/// Lets through new messages from other processes, but not repeated ones or this process's own.
/// There is one filter per subject, on which the messages of each sender arrive in order.
#[derive(Debug)]
struct Filter {
    own: u64,
    /// Senders and the numbers of their last messages, most recent sender last.
    senders: VecDeque<(u64, u64)>,
}

impl Filter {
    fn new(own: u64) -> Self {
        Self { own, senders: VecDeque::new() }
    }

    fn is_new(&mut self, routed: &Routed<'_>) -> bool {
        if routed.process == self.own {
            return false;
        }
        let known = self.senders.iter().position(|(process, _)| *process == routed.process);
        let last = known.and_then(|index| self.senders.remove(index)).map(|(_, last)| last);
        let is_new = last.is_none_or(|last| last < routed.number);
        if self.senders.len() >= MAX_SENDERS {
            self.senders.pop_front();
        }
        self.senders.push_back((routed.process, last.unwrap_or_default().max(routed.number)));
        is_new
    }
}

/// A message that has arrived, and the player it is for; `None` for all players.
pub(in crate::uru) type Routing = (Option<u32>, Packet);

/// Sends messages to players in ages on other processes. Cheap to clone.
#[derive(Clone, Debug)]
pub(in crate::uru) struct Routes {
    outgoing: mpsc::Sender<Routing>,
    changes: mpsc::UnboundedSender<Change>,
    lost: Arc<LogLimiter>,
    bytes: Arc<Bytes>,
}

/// The number of bytes in messages to and from the bus.
#[derive(Debug, Default)]
struct Bytes {
    sent: AtomicU64,
    received: AtomicU64,
}

/// A player has arrived or left.
#[derive(Debug)]
enum Change {
    Here(u32),
    Gone(u32),
}

impl Routes {
    /// Starts exchanging messages. `process` is the random number of this process. Returns the
    /// arriving messages, and the task, which runs until it is aborted.
    pub(in crate::uru) fn start(
        bus: Arc<dyn Bus>,
        cluster: &str,
        process: u64,
    ) -> (Self, mpsc::Receiver<Routing>, JoinHandle<()>) {
        let (outgoing, waiting) = mpsc::channel(MAX_WAITING);
        let (changes, changed) = mpsc::unbounded_channel();
        let (arrived, incoming) = mpsc::channel(MAX_WAITING);
        let subjects = Subjects::of(cluster);
        let bytes = Arc::<Bytes>::default();
        let listener = Listener {
            bus: Arc::clone(&bus),
            subjects: subjects.clone(),
            process,
            arrived,
            bytes: Arc::clone(&bytes),
        };
        let publisher = Publisher { bus, subjects, process, bytes: Arc::clone(&bytes) };
        let task = tokio::spawn(async move {
            tokio::join!(publisher.run(waiting), listen(listener, changed));
        });
        let lost = Arc::new(LogLimiter::new(LOG_EVERY));
        (Self { outgoing, changes, lost, bytes }, incoming, task)
    }

    /// The number of bytes sent and received.
    pub(in crate::uru) fn bytes(&self) -> [u64; 2] {
        let Bytes { sent, received } = &*self.bytes;
        [sent, received].map(|count| count.load(Ordering::Relaxed))
    }

    /// Sends a message to one player or to all players on other processes.
    pub(in crate::uru) fn send(&self, to: Option<u32>, packet: &Packet) {
        let is_short = packet.bytes().len() <= MAX_MESSAGE;
        if (!is_short || self.outgoing.try_send((to, packet.clone())).is_err())
            && let Some(count) = self.lost.count()
        {
            tracing::warn!(count, "messages to players in ages on other processes were lost");
        }
    }

    /// Starts receiving messages to this player.
    pub(in crate::uru) fn here(&self, player: u32) {
        // Fails if the process is ending.
        let _ = self.changes.send(Change::Here(player));
    }

    /// Stops receiving messages to this player.
    pub(in crate::uru) fn gone(&self, player: u32) {
        let _ = self.changes.send(Change::Gone(player));
    }
}

/// Publishes messages to players on other processes.
struct Publisher {
    bus: Arc<dyn Bus>,
    subjects: Subjects,
    process: u64,
    bytes: Arc<Bytes>,
}

impl Publisher {
    async fn run(self, mut waiting: mpsc::Receiver<Routing>) {
        let mut number = 0;
        while let Some((to, packet)) = waiting.recv().await {
            number += 1;
            let message = Bytes32::new(packet.bytes());
            // The length has already been checked.
            let routed = Routed { minor: MINOR, process: self.process, number, message };
            let Ok(message) = routed.to_bytes() else { continue };
            self.bytes.sent.fetch_add(message.len() as u64, Ordering::Relaxed);
            if !self.bus.publish(&self.subjects.players(to), message).await {
                tracing::debug!(?to, "a message to players on other processes was lost");
            }
        }
    }
}

/// Receives messages to players on this process.
struct Listener {
    bus: Arc<dyn Bus>,
    subjects: Subjects,
    process: u64,
    arrived: mpsc::Sender<Routing>,
    bytes: Arc<Bytes>,
}

/// Stops receiving when dropped.
struct Subscription(AbortHandle);

impl Drop for Subscription {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn listen(listener: Listener, mut changed: mpsc::UnboundedReceiver<Change>) {
    let _all = listener.subscribe(None).await;
    let mut players = HashMap::new();
    while let Some(change) = changed.recv().await {
        match change {
            Change::Here(player) if players.contains_key(&player) => {}
            Change::Here(player) => {
                players.insert(player, listener.subscribe(Some(player)).await);
            }
            Change::Gone(player) => drop(players.remove(&player)),
        }
    }
}

impl Listener {
    /// Subscribes to messages for a player or for all players, until the result is dropped.
    async fn subscribe(&self, to: Option<u32>) -> Option<Subscription> {
        let messages = match self.bus.subscribe(&self.subjects.players(to)).await {
            Ok(messages) => messages,
            Err(error) => {
                tracing::warn!(%error, ?to, "cannot receive messages from ages on other processes");
                return None;
            }
        };
        let (filter, arrived) = (Filter::new(self.process), self.arrived.clone());
        let receiving = receive(to, messages, filter, arrived, Arc::clone(&self.bytes));
        Some(Subscription(tokio::spawn(receiving).abort_handle()))
    }
}

async fn receive(
    to: Option<u32>,
    mut messages: Messages,
    mut filter: Filter,
    arrived: mpsc::Sender<Routing>,
    count: Arc<Bytes>,
) {
    while let Some(BusMessage { body: bytes, .. }) = messages.recv().await {
        count.received.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let Ok(routed) = Routed::parse(&bytes) else { continue };
        if !filter.is_new(&routed) {
            continue;
        }
        match routed.packet() {
            // Dropped if the queue is full.
            Ok(packet) => drop(arrived.try_send((to, packet))),
            Err(error) => {
                tracing::debug!(%error, "cannot read a message from an age on another process");
            }
        }
    }
}

/// Decodes a message the way a receiving process does.
///
/// # Panics
/// If a decoded message is encoded differently.
#[cfg(feature = "fuzzing")]
pub(super) fn fuzz(data: &[u8]) {
    let Ok(routed) = Routed::parse(data) else { return };
    let bytes = routed.to_bytes().expect("a decoded message can be encoded");
    assert!(data.starts_with(&bytes), "{routed:?} is encoded differently");
    if let Ok(packet) = routed.packet() {
        let message = Bytes32::new(packet.bytes());
        let again = Routed { message, ..routed };
        assert_eq!(again.packet().expect("an encoded packet can be decoded"), packet);
    }
}

/// Messages with and without an embedded net message.
#[cfg(feature = "fuzzing")]
pub(super) fn seeds() -> Vec<Vec<u8>> {
    let mut sampler = worldwire_core::Sampler::new(1);
    let mut seeds = Vec::new();
    for _ in 0..8 {
        let mut writer = Writer::new();
        if NetMessage::sample(&mut sampler).encode(&mut writer).is_ok() {
            let message = Bytes32::new(writer.into_bytes());
            seeds.extend(Routed { minor: MINOR, process: 1, number: 1, message }.to_bytes());
        }
        seeds.extend(Routed::sample(&mut sampler).to_bytes());
    }
    seeds
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;
    use worldwire_core::Sampler;
    use worldwire_uru::net_message::{MembersListReq, NetFlags, NetHeader};
    use worldwire_uru::types::UnifiedTime;

    use super::super::local::LocalBus;
    use super::*;

    #[test]
    fn messages_survive_with_appended_fields() {
        let mut sampler = Sampler::new(1);
        for _ in 0..100 {
            let routed = Routed::sample(&mut sampler);
            let mut bytes = routed.to_bytes().unwrap();
            bytes.extend([9; 3]);
            assert_eq!(Routed::parse(&bytes).unwrap(), routed);
        }
    }

    #[test]
    fn messages_arrive_once() {
        let mut filter = Filter::new(7);
        let mut takes = |process, number| {
            let message = Bytes32::new(&b""[..]);
            filter.is_new(&Routed { minor: 0, process, number, message })
        };
        assert!(!takes(7, 1), "its own");
        assert!(takes(1, 4) && takes(2, 4) && takes(1, 5));
        assert!(!takes(1, 5) && !takes(1, 4), "repeated, and late");
        assert!(takes(2, 9));
        assert!(filter.senders.len() == 2);
        for process in 10..1_000 {
            let message = Bytes32::new(&b""[..]);
            filter.is_new(&Routed { minor: 0, process, number: 1, message });
        }
        assert_eq!(filter.senders.len(), MAX_SENDERS);
    }

    fn packet(player: u32) -> Packet {
        let time = UnifiedTime { seconds: 1_700_000_000, microseconds: 0 };
        let header = NetHeader::from_client(time, player, NetFlags(0));
        Packet::of(MembersListReq { header }).unwrap()
    }

    async fn until(mut is_done: impl FnMut() -> bool) {
        while !is_done() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn messages_reach_players_of_other_processes() {
        let bus = Arc::new(LocalBus::repeating(2));
        let (here, mut at_home, _) = Routes::start(Arc::clone(&bus) as _, "shard", 1);
        let (there, mut abroad, _) = Routes::start(Arc::clone(&bus) as _, "shard", 2);
        until(|| bus.listeners("ww.shard.1.all") == 2).await;
        here.here(5);
        there.here(6);
        // Called twice, as when the player moves between ages.
        there.here(6);
        let count = |player| bus.listeners(&format!("ww.shard.1.player.{player}"));
        until(|| count(5) == 1 && count(6) == 1).await;

        here.send(Some(5), &packet(1));
        here.send(Some(6), &packet(1));
        here.send(None, &packet(2));
        // They come from different subscriptions, in any order.
        let mut heard = [abroad.recv().await.unwrap(), abroad.recv().await.unwrap()];
        heard.sort_by_key(|(to, _)| *to);
        assert_eq!(heard, [(None, packet(2)), (Some(6), packet(1))]);
        assert_eq!(there.bytes()[0], 0);
        // Each process receives two of the three messages sent, in two copies each.
        let [sent, _] = here.bytes();
        until(|| [&here, &there].iter().all(|it| it.bytes()[1] * 3 == sent * 4)).await;

        there.send(None, &packet(3));
        assert_eq!(at_home.recv().await.unwrap(), (None, packet(3)));

        there.gone(6);
        until(|| count(6) == 0).await;
        here.send(Some(6), &packet(4));
        let nothing = Duration::from_secs(1);
        assert!(timeout(nothing, abroad.recv()).await.is_err());
        assert!(timeout(nothing, at_home.recv()).await.is_err());
    }
}
