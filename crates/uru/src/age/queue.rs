//! What waits for a client that reads slowly.

use core::fmt;
use core::hash::{Hash, Hasher};
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::packet::{Importance, Packet};

/// The messages that wait for one client, within a bound.
///
/// A server keeps one for each connection. When the bound is reached, voice is left out, oldest
/// first; then positions of which a newer one waits. If that does not help, the client reads too
/// slowly to be kept: [`Overflow`]. Clones, locks, members and all other messages are never left
/// out, and the order of what stays never changes.
///
/// ```
/// use std::time::Duration;
/// use worldwire_uru::age::{Config, Instance, Player, Queue};
/// use worldwire_uru::file::age::AgeFile;
///
/// let (zero, unix) = (Duration::ZERO, Duration::from_secs(1_700_000_000));
/// let (file, config) = (AgeFile::default(), Config::default());
/// let mut instance = Instance::new(zero, unix, "Lab", file, Default::default(), config);
/// let mut queues = [(5, Queue::new(1 << 20))];
/// instance.join(zero, Player::new(5, "Yeesha"))?;
/// while let Some(delivery) = instance.poll_delivery() {
///     for (_, queue) in queues.iter_mut().filter(|(player_id, _)| *player_id == delivery.to) {
///         if queue.push(delivery.packet.clone()).is_err() {
///             // Close the connection, and tell the instance with `leave`.
///         }
///     }
/// }
/// assert_eq!(queues[0].1.pop().map(|packet| packet.class().0), Some(0x0264));
/// # Ok::<(), worldwire_uru::age::JoinRefused>(())
/// ```
#[derive(Clone, Debug)]
pub struct Queue {
    packets: BTreeMap<u64, Packet>,
    next: u64,
    bytes: usize,
    limit: usize,
    voice: BTreeSet<u64>,
    /// Positions of which a newer one waits.
    outdated: BTreeSet<u64>,
    /// The newest position of each object.
    newest: HashMap<OfObject, u64>,
    left_out: u64,
}

/// A position, which equals another one of the same object and descriptor.
#[derive(Clone, Debug)]
struct OfObject(Packet);

impl PartialEq for OfObject {
    fn eq(&self, other: &Self) -> bool {
        self.0.position() == other.0.position()
    }
}

impl Eq for OfObject {}

impl Hash for OfObject {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.position().hash(state);
    }
}

/// What a message takes beside its bytes.
const OVERHEAD: usize = 128;

impl Queue {
    /// An empty queue for so many bytes; each message counts 128 more than it has.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            packets: BTreeMap::new(),
            next: 0,
            bytes: 0,
            limit,
            voice: BTreeSet::new(),
            outdated: BTreeSet::new(),
            newest: HashMap::new(),
            left_out: 0,
        }
    }

    /// Adds a message.
    ///
    /// # Errors
    /// When there is no room for it, whatever is left out. The queue is then of no use any more.
    pub fn push(&mut self, packet: Packet) -> Result<(), Overflow> {
        let number = self.next;
        self.next += 1;
        self.bytes += cost(&packet);
        match packet.importance() {
            Importance::Kept => {}
            Importance::Voice => {
                self.voice.insert(number);
            }
            Importance::Position(_) => {
                let position = OfObject(packet.clone());
                // The key, too, is to be the newer one: the bytes of the older one may go.
                if let Some((_, older)) = self.newest.remove_entry(&position) {
                    self.outdated.insert(older);
                }
                self.newest.insert(position, number);
            }
        }
        self.packets.insert(number, packet);
        while self.bytes > self.limit {
            let victim = self.voice.first().or_else(|| self.outdated.first()).copied();
            let Some(victim) = victim else {
                return Err(Overflow { limit: self.limit, queued: self.bytes });
            };
            self.take(victim);
            self.left_out += 1;
        }
        Ok(())
    }

    /// Takes the oldest message.
    pub fn pop(&mut self) -> Option<Packet> {
        let (&number, _) = self.packets.first_key_value()?;
        self.take(number)
    }

    /// How many messages wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// How much of the bound is used.
    #[must_use]
    pub fn queued_bytes(&self) -> usize {
        self.bytes
    }

    /// How many messages were left out so far.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Takes a message out, and forgets everything about it.
    fn take(&mut self, number: u64) -> Option<Packet> {
        let packet = self.packets.remove(&number)?;
        self.bytes -= cost(&packet);
        match packet.importance() {
            Importance::Kept => {}
            Importance::Voice => {
                self.voice.remove(&number);
            }
            Importance::Position(_) => {
                if !self.outdated.remove(&number) {
                    let position = OfObject(packet);
                    self.newest.remove(&position);
                    return Some(position.0);
                }
            }
        }
        Some(packet)
    }
}

fn cost(packet: &Packet) -> usize {
    packet.bytes().len() + OVERHEAD
}

/// A client reads too slowly: what waits for it exceeds the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow {
    /// The bound.
    pub limit: usize,
    /// What would wait.
    pub queued: usize,
}

impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "wanted at most {} bytes in the queue, found {}", self.limit, self.queued)
    }
}

impl core::error::Error for Overflow {}
