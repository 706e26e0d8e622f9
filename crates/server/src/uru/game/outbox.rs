//! The queue of messages from an age's task to a client's connection.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use worldwire_uru::age::{Instance, Packet, SendQueue};

/// The maximum number of queued bytes; see [`SendQueue`]. A player who joins receives the states of
/// the whole age at once.
const MAX_WAITING: usize = 8 << 20;
/// The maximum number of messages to take at once. A connection has room for 1,024.
const MAX_TAKEN: usize = 256;

/// Messages for a client. The age adds them without waiting, and the connection takes them as the
/// client reads.
///
/// ```
/// use worldwire_server::uru::Outbox;
///
/// # async fn write(outbox: &Outbox) {
/// let mut packets = Vec::new();
/// while outbox.end().is_none() {
///     outbox.news().await;
///     // Take everything: there is no news of messages added meanwhile.
///     while !outbox.is_empty() {
///         outbox.take(64 << 10, &mut packets);
///         for packet in packets.drain(..) {
///             // Send it.
///         }
///     }
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct Outbox {
    inner: Mutex<Inner>,
    news: Notify,
}

#[derive(Debug)]
struct Inner {
    queue: SendQueue,
    /// Why the connection must end.
    closed: Option<&'static str>,
}

impl Default for Outbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Outbox {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        let inner = Inner { queue: SendQueue::new(MAX_WAITING), closed: None };
        Self { inner: Mutex::new(inner), news: Notify::new() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message. Returns false if there is no room for it because the client reads too
    /// slowly. The client's connection then ends.
    pub fn push(&self, packet: Packet) -> bool {
        let mut inner = self.inner();
        if inner.closed.is_some() {
            return false;
        }
        let is_news = inner.queue.is_empty();
        if inner.queue.push(packet).is_err() {
            self.overflow(inner);
            return false;
        }
        drop(inner);
        // The connection takes messages until the queue is empty, so one wakeup is enough.
        if is_news {
            self.news.notify_one();
        }
        true
    }

    /// Ends the connection and discards its messages.
    #[cold]
    fn overflow(&self, mut inner: MutexGuard<'_, Inner>) {
        inner.closed = Some("the client reads too slowly");
        let queue = mem::replace(&mut inner.queue, SendQueue::new(0));
        // Do not hold the lock while the messages are dropped.
        drop(inner);
        drop(queue);
        self.news.notify_one();
    }

    /// Ends the connection once the queued messages have been taken.
    pub fn close(&self, why: &'static str) {
        self.inner().closed.get_or_insert(why);
        self.news.notify_one();
    }

    /// Moves messages to `packets` until `packets` has this many bytes or 256 messages, or the
    /// queue is empty.
    pub fn take(&self, bytes: usize, packets: &mut Vec<Packet>) {
        let mut inner = self.inner();
        let mut taken = 0;
        while taken < bytes
            && packets.len() < MAX_TAKEN
            && let Some(packet) = inner.queue.pop()
        {
            taken += packet.bytes().len();
            packets.push(packet);
        }
    }

    /// Whether the queue is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inner().queue.is_empty()
    }

    /// Why the connection must end, once the queue is empty.
    #[must_use]
    pub fn end(&self) -> Option<&'static str> {
        let inner = self.inner();
        inner.closed.filter(|_| inner.queue.is_empty())
    }

    /// Waits until a message is added to the empty queue or the connection must end. Cancel safe.
    pub async fn news(&self) {
        self.news.notified().await;
    }
}

/// Queues all of an age's messages for its members. Returns the members whose queues have no room.
pub fn hand_out<'o>(
    instance: &mut Instance,
    outbox_of: impl Fn(u32) -> Option<&'o Outbox>,
) -> Vec<u32> {
    let mut full = Vec::new();
    while let Some(delivery) = instance.poll_delivery() {
        if outbox_of(delivery.to).is_some_and(|outbox| !outbox.push(delivery.packet)) {
            full.push(delivery.to);
        }
    }
    full
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};
    use std::time::Duration;

    use worldwire_core::{Field as _, Writer};
    use worldwire_uru::age::{Config, Instance, Player};
    use worldwire_uru::file::age::AgeFile;
    use worldwire_uru::net_message::{GameStateRequest, NetFlags, NetHeader, NetMessage};
    use worldwire_uru::schema::Descriptors;
    use worldwire_uru::sdl::{ObjectState, Scalar};
    use worldwire_uru::types::{
        ClassIndex, Location, LocationFlags, SequenceNumber, UnifiedTime, Uoid,
    };

    use super::*;

    fn packet() -> Packet {
        let (zero, unix) = (Duration::ZERO, Duration::from_secs(1_700_000_000));
        let (file, config) = (AgeFile::default(), Config::default());
        let mut age = Instance::new(zero, unix, "Lab", file, Default::default(), config);
        age.join(zero, Player::new(5, "Yeesha")).unwrap();
        age.poll_delivery().unwrap().packet
    }

    #[tokio::test]
    async fn slow_readers_are_disconnected() {
        let (outbox, packet) = (Outbox::new(), packet());
        let mut pushed = 0;
        while outbox.push(packet.clone()) {
            pushed += 1;
        }
        let cost = packet.bytes().len() + 128;
        assert_eq!(pushed, MAX_WAITING / cost);
        outbox.news().await;
        assert!(outbox.is_empty() && outbox.end().is_some());
        assert!(!outbox.push(packet));
    }

    #[tokio::test]
    async fn queued_messages_are_sent_before_the_end() {
        let (outbox, packet) = (Outbox::new(), packet());
        assert!(outbox.push(packet.clone()));
        outbox.close("the age ends");
        assert_eq!(outbox.end(), None);
        let mut taken = Vec::new();
        outbox.take(1, &mut taken);
        assert_eq!(taken, [packet]);
        assert_eq!(outbox.end(), Some("the age ends"));
    }

    const TIME: UnifiedTime = UnifiedTime { seconds: 1_700_000_000, microseconds: 0 };

    /// An age with the maximum number of states, each a list of this many numbers.
    fn full(numbers: usize) -> (Instance, usize) {
        let sdl = "STATEDESC list { VERSION 1 VAR INT list[] }";
        let descriptors = std::sync::Arc::new(Descriptors::load([("list.sdl", sdl)]));
        let mut state = ObjectState::new(descriptors.newest("list").unwrap());
        state.set("list", &vec![Scalar::Int(7); numbers], &TIME).unwrap();
        let blob = state.to_blob().to_bytes().unwrap();
        let (file, config) = (AgeFile::default(), Config::default());
        let unix = Duration::from_secs(1_700_000_000);
        let mut age = Instance::new(Duration::ZERO, unix, "Lab", file, descriptors, config);
        for number in 0.. {
            let name = format!("a state that an age sends to every player who joins: {number}");
            let location =
                Location { sequence_number: SequenceNumber(0x78_0021), flags: LocationFlags(0) };
            let object = Uoid {
                location,
                load_mask: None,
                class_index: 1,
                object_id: number,
                name: name.as_str().into(),
                clone: None,
            };
            if age.restore(object, &blob).is_err() {
                return (age, number as usize);
            }
        }
        unreachable!()
    }

    /// If a full age did not fit into the queue, one player could lock all others out of it.
    #[test]
    fn joining_a_full_age_delivers_all_of_it() {
        for numbers in [0, 1, 20, 300, 9_000] {
            let (mut age, states) = full(numbers);
            age.join(Duration::ZERO, Player::new(5, "Yeesha")).unwrap();
            let flags = NetFlags::IsSystemMessage | NetFlags::InitialAgeStateRequest;
            let header = NetHeader::from_client(TIME, 5, flags);
            let request = GameStateRequest { header, rooms: Vec::new().into() };
            let mut writer = Writer::new();
            NetMessage::from(request).encode(&mut writer).unwrap();
            let class = ClassIndex::plNetMsgGameStateRequest;
            age.receive(Duration::ZERO, 5, class, writer.as_bytes());
            let outbox = Outbox::new();
            assert_eq!(hand_out(&mut age, |_| Some(&outbox)), [0; 0], "{numbers}");
            // A connection has room for 1,024 messages.
            let (mut taken, mut all) = (Vec::new(), 0);
            while !outbox.is_empty() {
                outbox.take(64 << 10, &mut taken);
                assert!((1..1024).contains(&taken.len()));
                all += taken.drain(..).count();
            }
            assert_eq!(all, states + 2, "{numbers}");
        }
    }

    /// A flood causes only one wakeup, no matter how many messages it has.
    #[tokio::test]
    async fn there_is_one_wakeup_until_the_queue_is_empty() {
        let (outbox, packet) = (Outbox::new(), packet());
        let is_told = || {
            pin!(outbox.news()).as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
        };
        for _ in 0..2 {
            (0..5).for_each(|_| assert!(outbox.push(packet.clone())));
            assert!(is_told());
            let mut taken = Vec::new();
            outbox.take(packet.bytes().len() * 2, &mut taken);
            assert_eq!(taken.len(), 2);
            assert!(outbox.push(packet.clone()));
            assert!(!is_told());
            outbox.take(usize::MAX, &mut taken);
            assert_eq!(taken.len(), 6);
            assert!(outbox.is_empty());
        }
    }
}
