//! The send queue of one client.

use core::hash::{Hash, Hasher};
use std::collections::{HashMap, VecDeque};

use super::packet::{Importance, Packet};

/// The messages waiting for one client, within a bound.
///
/// A server keeps one per connection. When the bound is reached, voice is discarded, oldest first;
/// then positions that a newer one replaces, in the order in which the newer ones arrived. If that
/// is not enough, the client reads too slowly and must be disconnected: [`Overflow`]. Clones,
/// locks, members and all other messages are never discarded, and the order of the remaining
/// messages never changes.
///
/// Queuing a message takes constant time, however many are waiting. Bytes are shared with all other
/// queues.
///
/// ```
/// use std::time::Duration;
/// use worldwire_uru::age::{Config, Instance, Player, SendQueue};
/// use worldwire_uru::file::age::AgeFile;
///
/// let (zero, unix) = (Duration::ZERO, Duration::from_secs(1_700_000_000));
/// let (file, config) = (AgeFile::default(), Config::default());
/// let mut instance = Instance::new(zero, unix, "Lab", file, Default::default(), config);
/// let mut queues = [(5, SendQueue::new(1 << 20))];
/// instance.join(zero, Player::new(5, "Yeesha"))?;
/// while let Some(delivery) = instance.poll_delivery() {
///     for (_, queue) in queues.iter_mut().filter(|(player_id, _)| *player_id == delivery.to) {
///         if queue.push(delivery.packet.clone()).is_err() {
///             // Close the connection and tell the instance with `leave`.
///         }
///     }
/// }
/// assert_eq!(queues[0].1.pop().map(|packet| packet.class().0), Some(0x0264));
/// # Ok::<(), worldwire_uru::age::JoinRefused>(())
/// ```
#[derive(Clone, Debug)]
pub struct SendQueue {
    /// The messages in order; `None` marks a discarded one. The first slot is never `None`.
    slots: VecDeque<Option<Packet>>,
    /// The number of the first slot. Later slots are numbered consecutively.
    first: u64,
    /// The number of empty slots.
    gaps: usize,
    bytes: usize,
    limit: usize,
    /// The slot numbers of queued voice messages.
    voice: VecDeque<u64>,
    /// Present from the first time that discarding voice is not enough until the queue is empty.
    positions: Option<PositionIndex>,
    discarded: u64,
}

/// Finds positions that may be discarded.
#[derive(Clone, Debug, Default)]
struct PositionIndex {
    /// The newest position of each object.
    newest: HashMap<PositionKey, u64>,
    /// Positions that a newer one replaces. Some may have been sent since.
    outdated: VecDeque<u64>,
}

/// A position message. It is equal to any other for the same object and descriptor.
#[derive(Clone, Debug)]
struct PositionKey(Packet);

impl PartialEq for PositionKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.position() == other.0.position()
    }
}

impl Eq for PositionKey {}

impl Hash for PositionKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.position().hash(state);
    }
}

/// The memory of a queued message in addition to its bytes.
const OVERHEAD: usize = 128;
/// When empty, the queue keeps memory for at most this many messages.
const IDLE_CAPACITY: usize = 128;

impl SendQueue {
    /// An empty queue with room for `limit` bytes; each message counts as 128 bytes more than its
    /// size.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            slots: VecDeque::new(),
            first: 0,
            gaps: 0,
            bytes: 0,
            limit,
            voice: VecDeque::new(),
            positions: None,
            discarded: 0,
        }
    }

    /// Adds a message.
    ///
    /// # Errors
    /// [`Overflow`] if there is no room even after discarding. The queue is unusable afterwards.
    pub fn push(&mut self, packet: Packet) -> Result<(), Overflow> {
        let number = self.first + self.slots.len() as u64;
        self.bytes += cost(&packet);
        match packet.importance() {
            Importance::Kept => {}
            Importance::Voice => self.voice.push_back(number),
            Importance::Position(_) => {
                if let Some(positions) = &mut self.positions {
                    positions.add(&packet, number);
                }
            }
        }
        self.slots.push_back(Some(packet));
        if self.bytes > self.limit { self.make_room() } else { Ok(()) }
    }

    /// Removes and returns the oldest message.
    pub fn pop(&mut self) -> Option<Packet> {
        let packet = self.slots.pop_front()??;
        let number = self.first;
        self.first += 1;
        self.bytes -= cost(&packet);
        if is_voice(&packet) {
            self.voice.pop_front();
        }
        if let Some(positions) = &mut self.positions {
            positions.forget(&packet, number);
        }
        if self.gaps > 0 {
            self.skip_gaps();
        }
        if let Some(positions) = &mut self.positions {
            positions.forget_before(self.first);
        }
        if self.slots.is_empty() {
            self.release_memory();
        }
        Some(packet)
    }

    /// The number of queued messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.gaps
    }

    /// Whether the queue is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// How many bytes of the bound are used.
    #[must_use]
    pub fn queued_bytes(&self) -> usize {
        self.bytes
    }

    /// How many messages have been discarded so far.
    #[must_use]
    pub fn discarded(&self) -> u64 {
        self.discarded
    }

    /// Discards messages until the bound holds.
    #[cold]
    fn make_room(&mut self) -> Result<(), Overflow> {
        while self.bytes > self.limit {
            let Some(victim) = self.victim() else {
                return Err(Overflow { limit: self.limit, queued: self.bytes });
            };
            self.discard(victim);
        }
        Ok(())
    }

    /// The slot number of the next message to discard.
    fn victim(&mut self) -> Option<u64> {
        if let Some(voice) = self.voice.pop_front() {
            return Some(voice);
        }
        if self.positions.is_none() {
            self.positions = Some(PositionIndex::of(&self.slots, self.first));
        }
        let first = self.first;
        let outdated = &mut self.positions.as_mut()?.outdated;
        core::iter::from_fn(|| outdated.pop_front()).find(|number| *number >= first)
    }

    fn discard(&mut self, number: u64) {
        let index = usize::try_from(number - self.first).ok();
        let slot = index.and_then(|index| self.slots.get_mut(index));
        let Some(packet) = slot.and_then(Option::take) else { return };
        self.bytes -= cost(&packet);
        self.discarded += 1;
        self.gaps += 1;
        self.skip_gaps();
    }

    /// Restores the invariants: the first slot holds a message, and at least half of the slots do.
    fn skip_gaps(&mut self) {
        while self.gaps > 0 && self.slots.pop_front_if(|slot| slot.is_none()).is_some() {
            self.gaps -= 1;
            self.first += 1;
        }
        if self.gaps > self.slots.len() / 2 {
            self.close_gaps();
        }
    }

    /// Removes all empty slots. At least half of them were empty, so this adds constant time per
    /// discarded message.
    fn close_gaps(&mut self) {
        self.slots.retain(Option::is_some);
        self.gaps = 0;
        let voice = (self.first..).zip(&self.slots);
        let voice = voice.filter(|(_, slot)| slot.as_ref().is_some_and(is_voice));
        self.voice = voice.map(|(number, _)| number).collect();
        if self.positions.is_some() {
            self.positions = Some(PositionIndex::of(&self.slots, self.first));
        }
    }

    /// Releases excess memory; called when the queue is empty.
    fn release_memory(&mut self) {
        self.positions = None;
        self.slots.shrink_to(IDLE_CAPACITY);
        self.voice.shrink_to(IDLE_CAPACITY);
    }
}

impl PositionIndex {
    /// The positions among the slots; `first` is the number of the first slot.
    fn of(slots: &VecDeque<Option<Packet>>, first: u64) -> Self {
        let mut positions = Self::default();
        for (number, slot) in (first..).zip(slots) {
            if let Some(packet) = slot {
                positions.add(packet, number);
            }
        }
        positions
    }

    fn add(&mut self, packet: &Packet, number: u64) {
        if packet.position().is_none() {
            return;
        }
        let position = PositionKey(packet.clone());
        // Replace the key as well, so that the older message's bytes can be freed.
        if let Some((_, older)) = self.newest.remove_entry(&position) {
            self.outdated.push_back(older);
        }
        self.newest.insert(position, number);
    }

    /// A message was sent.
    fn forget(&mut self, packet: &Packet, number: u64) {
        if packet.position().is_some() {
            let position = PositionKey(packet.clone());
            if self.newest.get(&position) == Some(&number) {
                self.newest.remove(&position);
            }
        }
    }

    /// Forgets the slots before a number; those slots no longer exist. Entries after the first
    /// remaining one never outnumber the queued messages.
    fn forget_before(&mut self, first: u64) {
        while self.outdated.pop_front_if(|number| *number < first).is_some() {}
    }
}

fn is_voice(packet: &Packet) -> bool {
    matches!(packet.importance(), Importance::Voice)
}

fn cost(packet: &Packet) -> usize {
    packet.bytes().len() + OVERHEAD
}

/// A client reads too slowly: its queued messages exceed the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client reads too slowly: {queued} bytes are queued, and the limit is {limit}")]
pub struct Overflow {
    /// The bound.
    pub limit: usize,
    /// The bytes that would be queued.
    pub queued: usize,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::packet::Position;
    use super::*;

    const KEPT: u8 = 0;
    const VOICE: u8 = 1;

    /// Any kind other than kept and voice is the position of an object.
    fn packet(kind: u8, number: u32, length: usize) -> Packet {
        let importance = match kind {
            KEPT => Importance::Kept,
            VOICE => Importance::Voice,
            _ => Importance::Position(Position::of(0..1, 7).unwrap()),
        };
        let mut bytes = vec![kind];
        bytes.extend(number.to_le_bytes());
        bytes.resize(length.max(5), 0);
        Packet::new(bytes, importance)
    }

    /// A reference queue that searches everything queued.
    #[derive(Default)]
    struct Plain {
        waiting: Vec<Packet>,
        discarded: u64,
    }

    impl Plain {
        fn bytes(&self) -> usize {
            self.waiting.iter().map(cost).sum()
        }

        /// The index of the newer position that makes one outdated.
        fn newer(&self, index: usize) -> Option<usize> {
            let position = self.waiting[index].position()?;
            let is_newer = |other: &usize| self.waiting[*other].position() == Some(position);
            (index + 1..self.waiting.len()).find(is_newer)
        }

        fn push(&mut self, packet: Packet, limit: usize) -> bool {
            self.waiting.push(packet);
            while self.bytes() > limit {
                let voice = self.waiting.iter().position(is_voice);
                let outdated = (0..self.waiting.len())
                    .filter_map(|index| Some((self.newer(index)?, index)))
                    .min()
                    .map(|(_, index)| index);
                let Some(victim) = voice.or(outdated) else { return false };
                self.waiting.remove(victim);
                self.discarded += 1;
            }
            true
        }
    }

    proptest! {
        #[test]
        fn a_queue_is_one_that_looks_at_everything(
            steps in prop::collection::vec((0_u8..5, 0_usize..60, 0_usize..3), 0..300),
            limit in 200_usize..3_000,
        ) {
            let (mut queue, mut plain) = (SendQueue::new(limit), Plain::default());
            for (number, (kind, length, reads)) in (0..).zip(steps) {
                // Kept messages alone would soon overflow.
                let kind = if kind == KEPT && number % 4 > 0 { VOICE } else { kind };
                let packet = packet(kind, number, length);
                let has_room = plain.push(packet.clone(), limit);
                prop_assert_eq!(queue.push(packet).is_ok(), has_room);
                if !has_room {
                    return Ok(());
                }
                prop_assert_eq!(queue.queued_bytes(), plain.bytes());
                prop_assert_eq!((queue.len(), queue.discarded()), (plain.waiting.len(), plain.discarded));
                for _ in 0..reads.min(plain.waiting.len()) {
                    prop_assert_eq!(queue.pop(), Some(plain.waiting.remove(0)));
                }
                prop_assert!(queue.slots.len() <= 2 * queue.len());
                let positions = queue.positions.as_ref();
                let noted = positions.map_or(0, |it| it.outdated.len() + it.newest.len());
                prop_assert!(noted <= 2 * queue.slots.len());
            }
            let rest: Vec<_> = core::iter::from_fn(|| queue.pop()).collect();
            prop_assert_eq!(&rest, &plain.waiting);
            prop_assert!(queue.is_empty() && queue.voice.is_empty() && queue.positions.is_none());
        }
    }

    /// The time per message does not depend on the number queued. If it did, this test would take
    /// minutes.
    #[test]
    fn floods_cost_constant_time_a_message() {
        const WAITING: u32 = 30_000;
        let mut queue = SendQueue::new(WAITING as usize * (OVERHEAD + 5));
        // Half of the messages must not be discarded; they are interleaved with messages that may
        // be discarded.
        for number in 0..WAITING / 2 {
            queue.push(packet(KEPT, number, 5)).unwrap();
            queue.push(packet(VOICE, number, 5)).unwrap();
        }
        for kind in [VOICE, 2, 2] {
            for number in 0..WAITING * 4 {
                queue.push(packet(kind, number, 5)).unwrap();
            }
        }
        assert_eq!(queue.discarded(), u64::from(WAITING) * 12);
        let rest: Vec<_> = core::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(rest.len(), WAITING as usize);
        assert!(queue.slots.capacity() <= 2 * IDLE_CAPACITY);
    }
}
