//! Messages that a relay adds to one direction, until their receiver has acknowledged them.
//!
//! A relay cannot send an added message in a new packet, because the sender numbers the packets. It
//! puts the message into the next packet that has room, the carrier, and repeats the carrier until
//! the receiver acknowledges it. The copies have the same bytes and the same number, so the receiver
//! ignores those it already has. No addition is lost, and none arrives twice.

use core::time::Duration;
use std::collections::VecDeque;

use worldwire_core::connection::{Bounds, SendError};

use super::carrying::{Carrying, LIST_HEAD_BYTES, Load, loads_of, packet_of, translate};
use super::outbox::limit;
use super::rpc_numbers::RpcNumbers;
use crate::frame::{
    HEAD_BYTES, Packet, PacketHead, RccFlags, Section, SequenceNumber, SequenceWord,
};

/// The additions to one direction.
#[derive(Debug)]
pub(super) struct Additions {
    bounds: Bounds,
    numbers: RpcNumbers,
    /// The additions that are not yet in a packet, in order.
    waiting: VecDeque<Addition>,
    /// The number of additions made since the driver's last input; they are the last ones in the
    /// list.
    fresh: usize,
    /// The packets that carry the others, oldest first.
    carriers: VecDeque<Carrier>,
    /// When to ask for a packet to carry the waiting additions, and how many times one was
    /// requested.
    ask_at: Duration,
    asked: u32,
    /// The packet that reset the sequence. The receiver ignores older ones.
    floor: Option<SequenceNumber>,
    now: Duration,
}

/// An added RPC message or object section.
#[derive(Debug)]
pub(super) struct Addition {
    pub(super) load: Load,
    /// When it was added.
    since: Duration,
}

/// A packet with additions.
#[derive(Debug)]
struct Carrier {
    number: SequenceNumber,
    datagram: Vec<u8>,
    additions: Vec<Addition>,
    repeat_at: Duration,
    repeats: u32,
}

/// What happens to an outgoing packet.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Rewritten {
    /// It is left unchanged.
    AsIs,
    /// This datagram takes its place.
    Instead(Vec<u8>),
    /// The packet would become too long, so it is dropped. Its sender resends the messages in other
    /// packets.
    TooLong,
}

/// How long an addition waits for a packet without objects, since repeated objects are outdated.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long an acknowledgement may take. Doubles with each repeat, up to the maximum.
const REPEAT_AFTER: Duration = Duration::from_millis(500);
const MAX_REPEAT_AFTER: Duration = Duration::from_secs(4);
/// After this many repeats, the RPC messages are also put into a packet without RPC messages from
/// the sender: the receiver may be refusing the carrier because it contains messages far ahead of a
/// missing one. The receiver's inbox discards duplicates.
const MAX_REPEATS: u32 = 4;
/// The maximum number of added RPC messages in carriers. They move the sender's messages further ahead
/// of a missing one, and receivers keep only a limited number ahead of it.
const MAX_UNACKNOWLEDGED: usize = 128;
/// A carrier this far behind the newest packet is abandoned, since receivers cannot tell it from a
/// newer packet.
const MAX_CARRIER_AGE: u16 = 1024;
/// How long to wait for a packet before asking for one. Doubles each time, up to the maximum.
const ASK_AFTER: Duration = Duration::from_millis(300);
const MAX_ASK_AFTER: Duration = Duration::from_secs(5);

impl Additions {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            numbers: RpcNumbers::default(),
            waiting: VecDeque::new(),
            fresh: 0,
            carriers: VecDeque::new(),
            ask_at: Duration::ZERO,
            asked: 0,
            floor: None,
            now: Duration::ZERO,
        }
    }

    /// Takes the time from the driver, which does not pass the time when it adds messages.
    pub(super) fn set_now(&mut self, now: Duration) {
        self.now = now;
        let fresh = core::mem::take(&mut self.fresh);
        if fresh > 0 {
            if fresh >= self.waiting.len() {
                self.ask_at = now.saturating_add(ASK_AFTER);
            }
            self.waiting.iter_mut().rev().take(fresh).for_each(|addition| addition.since = now);
        }
    }

    /// Notes a hello, after which RPC messages are numbered from 0.
    pub(super) fn begin(&mut self) {
        self.numbers.begin();
    }

    /// Starts over, because of a new session or a packet that resets the sequence. Returns the number
    /// of discarded additions.
    pub(super) fn restart(&mut self, reset_by: Option<SequenceNumber>) -> usize {
        let discarded = self.all().count();
        let numbers = RpcNumbers::from_start();
        *self = Self { numbers, floor: reset_by, now: self.now, ..Self::new(self.bounds) };
        discarded
    }

    /// Adds the contents of a packet; its header is ignored.
    pub(super) fn add(&mut self, packet: &[u8]) -> Result<(), SendError> {
        let loads = loads_of(packet).map_err(SendError::Encode)?;
        let has_rpcs = loads.iter().any(|load| matches!(load, Load::Rpc { .. }));
        if has_rpcs && !self.numbers.is_known() {
            return Err(SendError::NotEstablished);
        }
        let Bounds { queued_bytes, queued_messages } = self.bounds;
        let count = self.all().count() + loads.len();
        let bytes = self.all().chain(&loads).map(Load::bytes).sum();
        limit("messages added to one direction", queued_messages, count)
            .and_then(|()| limit("bytes added to one direction", queued_bytes, bytes))
            .map_err(SendError::QueueFull)?;
        for load in loads {
            self.wait_again(Addition { load, since: self.now });
            self.fresh += 1;
        }
        Ok(())
    }

    /// Handles a packet that leaves the relay: renumbers its RPC messages as the receiver expects,
    /// and adds as many additions as fit.
    pub(super) fn leave(
        &mut self,
        head: &PacketHead,
        plain: &[u8],
        seal: impl FnOnce(&[u8]) -> Vec<u8>,
    ) -> Rewritten {
        let number = head.sequence.local;
        let is_bare = plain.len() <= HEAD_BYTES + 1;
        self.give_up_before(number);
        if self.is_before_reset(number) || (is_bare && self.waiting.is_empty()) {
            return Rewritten::AsIs;
        }
        let Some(mut packet) = packet_of(plain, &self.numbers) else { return Rewritten::AsIs };
        let resets = head.flags.contains(RccFlags::Reset);
        let additions = if resets { Vec::new() } else { self.select(&packet) };
        self.note_numbers(&packet);
        let is_translated = translate(&mut packet, &self.numbers);
        if !is_translated && additions.is_empty() {
            return Rewritten::AsIs;
        }
        let mut carrying = Carrying::new(&mut packet, 0);
        for addition in &additions {
            let has_room = carrying.add(&addition.load);
            debug_assert!(has_room, "it was selected");
        }
        let Ok(packet) = packet.to_bytes() else {
            additions.into_iter().for_each(|addition| self.wait_again(addition));
            return Rewritten::TooLong;
        };
        let datagram = seal(&packet);
        if !additions.is_empty() {
            let repeat_at = self.now.saturating_add(REPEAT_AFTER);
            let carrier =
                Carrier { number, datagram: datagram.clone(), additions, repeat_at, repeats: 0 };
            self.carriers.push_back(carrier);
        }
        Rewritten::Instead(datagram)
    }

    /// Renumbers the RPC messages of a repeated packet. The packet can also come from a server that
    /// has started over because the client did not acknowledge its first packets.
    pub(super) fn translated(&mut self, number: SequenceNumber, plain: &[u8]) -> Option<Vec<u8>> {
        let is_before_reset = self.floor.is_some_and(|floor| !number.is_newer_than(floor));
        let mut packet = packet_of(plain, &self.numbers).filter(|_| !is_before_reset)?;
        self.note_numbers(&packet);
        let is_translated = translate(&mut packet, &self.numbers);
        packet.to_bytes().ok().filter(|_| is_translated)
    }

    /// Handles the receiver's acknowledgements.
    pub(super) fn acknowledge(&mut self, word: SequenceWord) {
        if !self.carriers.is_empty() {
            for acked in word.acked() {
                self.carriers.retain(|carrier| carrier.number != acked);
            }
        }
    }

    /// The datagrams to repeat now.
    pub(super) fn time_out(&mut self) -> Vec<Vec<u8>> {
        let mut repeated = Vec::new();
        let mut moved = Vec::new();
        for carrier in self.carriers.iter_mut().filter(|it| it.repeat_at <= self.now) {
            carrier.repeats = carrier.repeats.saturating_add(1);
            let after = doubled(REPEAT_AFTER, carrier.repeats).min(MAX_REPEAT_AFTER);
            carrier.repeat_at = self.now.saturating_add(after);
            repeated.push(carrier.datagram.clone());
            if carrier.repeats >= MAX_REPEATS {
                let is_rpc = |addition: &mut Addition| matches!(addition.load, Load::Rpc { .. });
                moved.extend(carrier.additions.extract_if(.., is_rpc));
            }
        }
        self.carriers.retain(|carrier| !carrier.additions.is_empty());
        moved.into_iter().for_each(|addition| self.wait_again(addition));
        repeated
    }

    /// Whether it is time to ask the sender for a packet that can carry the additions.
    pub(super) fn asks(&mut self) -> bool {
        let asks = !self.waiting.is_empty() && self.ask_at <= self.now;
        if asks {
            self.asked = self.asked.saturating_add(1);
            let after = doubled(ASK_AFTER, self.asked).min(MAX_ASK_AFTER);
            self.ask_at = self.now.saturating_add(after);
        }
        asks
    }

    /// The next deadline. Right after an addition, it has already passed, so that the driver calls
    /// back with the current time.
    pub(super) fn deadline(&self) -> Option<Duration> {
        let ask_at = if self.fresh > 0 { self.now } else { self.ask_at };
        let repeats = self.carriers.iter().map(|carrier| carrier.repeat_at);
        repeats.chain((!self.waiting.is_empty()).then_some(ask_at)).min()
    }

    fn all(&self) -> impl Iterator<Item = &Load> {
        let carrying = self.carriers.iter().flat_map(|carrier| &carrier.additions);
        carrying.chain(&self.waiting).map(|addition| &addition.load)
    }

    /// Takes the additions that fit into a packet and numbers them.
    fn select(&mut self, packet: &Packet<'_>) -> Vec<Addition> {
        let mut selected = Vec::new();
        if self.waiting.is_empty() {
            return selected;
        }
        let mut trial = packet.clone();
        translate(&mut trial, &self.numbers);
        // The additions can split one more list.
        let length = trial.to_bytes().map_or(usize::MAX, |bytes| bytes.len() + LIST_HEAD_BYTES);
        let has_rpcs = trial.sections.iter().any(|it| matches!(it, Section::Rpc(_)));
        let is_rpc = |load: &&Load| matches!(load, Load::Rpc { .. });
        let carried = self.carriers.iter().flat_map(|carrier| &carrier.additions);
        let mut unacknowledged = carried.map(|addition| &addition.load).filter(is_rpc).count();
        let mut trial = Carrying::new(&mut trial, length);
        while let Some(mut addition) = self.waiting.pop_front() {
            let may_add = match &addition.load {
                // The receiver may have refused messages far ahead of this one.
                Load::Rpc { number: Some(_), .. } => !has_rpcs,
                Load::Rpc { number: None, .. } => unacknowledged < MAX_UNACKNOWLEDGED,
                Load::Objects(_) => true,
            };
            let waits = self.now.saturating_sub(addition.since) < PATIENCE && trial.has_objects();
            if !may_add || waits || !trial.add(&addition.load) {
                self.waiting.push_front(addition);
                break;
            }
            if let Load::Rpc { number, .. } = &mut addition.load {
                number.get_or_insert_with(|| self.numbers.add());
                unacknowledged += 1;
            }
            selected.push(addition);
        }
        selected
    }

    fn wait_again(&mut self, addition: Addition) {
        if self.waiting.is_empty() {
            (self.asked, self.ask_at) = (0, self.now.saturating_add(ASK_AFTER));
        }
        self.waiting.push_back(addition);
    }

    fn note_numbers(&mut self, packet: &Packet<'_>) {
        for section in &packet.sections {
            if let Section::Rpc(lists) = section {
                self.numbers.leave(lists);
            }
        }
    }

    /// Whether the receiver ignores a packet because it was sent before the reset.
    fn is_before_reset(&mut self, number: SequenceNumber) -> bool {
        // Later, the numbers have wrapped.
        self.floor = self.floor.filter(|floor| {
            !number.is_newer_than(*floor) || number.ahead_of(*floor) < MAX_CARRIER_AGE
        });
        // The reset itself has the number of the floor.
        self.floor.is_some_and(|floor| number != floor && !number.is_newer_than(floor))
    }

    fn give_up_before(&mut self, newest: SequenceNumber) {
        let is_old = |carrier: &Carrier| {
            newest.is_newer_than(carrier.number)
                && newest.ahead_of(carrier.number) >= MAX_CARRIER_AGE
        };
        while let Some(carrier) = self.carriers.pop_front_if(|carrier| is_old(carrier)) {
            carrier.additions.into_iter().for_each(|addition| self.wait_again(addition));
        }
    }
}

fn doubled(time: Duration, times: u32) -> Duration {
    time.saturating_mul(1 << times.min(10))
}

#[cfg(test)]
mod tests {
    use worldwire_core::Reader;

    use super::*;
    use crate::frame::{AckBits, RpcList, RpcMessage};

    fn packet(number: u64, sections: Vec<Section<'_>>) -> Vec<u8> {
        let local = SequenceNumber::of(number);
        let word = SequenceWord { local, ..SequenceWord::default() };
        Packet { sections, ..Packet::new(7, word) }.to_bytes().unwrap()
    }

    fn rpcs(first: u16, count: u8) -> Section<'static> {
        let messages = (0..count).map(|data| RpcMessage::new(5, &[data])).collect();
        Section::Rpc(vec![RpcList { first, messages }])
    }

    fn additions() -> Additions {
        let mut additions = Additions::new(Bounds { queued_bytes: 1 << 16, queued_messages: 8 });
        additions.begin();
        additions
    }

    fn leave(additions: &mut Additions, packet: &[u8]) -> Rewritten {
        let head = PacketHead::decode(&mut Reader::new(packet)).unwrap();
        additions.leave(&head, packet, <[u8]>::to_vec)
    }

    /// The sections of a packet after it has left.
    fn sections(
        additions: &mut Additions,
        number: u64,
        sections: Vec<Section<'static>>,
    ) -> Vec<Section<'static>> {
        let packet = packet(number, sections.clone());
        match leave(additions, &packet) {
            Rewritten::AsIs => sections,
            Rewritten::Instead(packet) => {
                Packet::decode(&mut Reader::new(&packet), None).unwrap().into_owned().sections
            }
            Rewritten::TooLong => panic!("it is short"),
        }
    }

    fn acked(number: u64) -> SequenceWord {
        let remote = SequenceNumber::of(number);
        SequenceWord { acks: AckBits(1), remote, ..SequenceWord::default() }
    }

    #[test]
    fn a_carrier_is_repeated_until_it_is_acknowledged() {
        let mut additions = additions();
        additions.add(&packet(0, vec![rpcs(9, 1)])).unwrap();
        let carrier = packet(1, vec![]);
        let Rewritten::Instead(carrier) = leave(&mut additions, &carrier) else { panic!("room") };
        assert_eq!(sections(&mut additions, 2, vec![]), []);
        let mut at = Duration::ZERO;
        for after in [500, 1000, 2000] {
            at += Duration::from_millis(after);
            assert_eq!(additions.deadline(), Some(at));
            additions.set_now(at - Duration::from_nanos(1));
            assert!(additions.time_out().is_empty());
            additions.set_now(at);
            assert_eq!(additions.time_out(), core::slice::from_ref(&carrier));
        }
        additions.acknowledge(acked(2));
        assert!(additions.deadline().is_some());
        additions.acknowledge(acked(1));
        assert_eq!(additions.deadline(), None);
    }

    #[test]
    fn a_receiver_that_refuses_a_carrier_gets_messages_in_another_packet() {
        let mut additions = additions();
        let objects = || Section::Objects([9, 0, 1, 0, 0][..].into());
        additions.add(&packet(0, vec![rpcs(9, 1), objects()])).unwrap();
        assert_eq!(sections(&mut additions, 1, vec![]), [rpcs(0, 1), objects()]);
        for _ in 0..MAX_REPEATS {
            additions.set_now(additions.deadline().unwrap());
            assert_eq!(additions.time_out().len(), 1);
        }
        assert_eq!(sections(&mut additions, 2, vec![]), [rpcs(0, 1)], "objects could arrive twice");
        additions.acknowledge(acked(2));
        additions.set_now(additions.deadline().unwrap());
        assert_eq!(additions.time_out().len(), 1, "the objects are still repeated");
        // The receiver would take it for a newer packet.
        let newer = 1 + u64::from(MAX_CARRIER_AGE);
        assert_eq!(sections(&mut additions, newer, vec![]), [objects()]);
        additions.acknowledge(acked(newer));
        assert_eq!(additions.deadline(), None);
    }

    #[test]
    fn additions_wait_for_a_packet_without_objects_but_not_for_long() {
        let mut additions = additions();
        let objects = || Section::Objects([2, 0, 1, 0, 0][..].into());
        additions.add(&packet(0, vec![rpcs(0, 1)])).unwrap();
        additions.set_now(Duration::from_secs(3));
        assert_eq!(sections(&mut additions, 1, vec![objects()]), [objects()]);
        assert_eq!(additions.deadline(), Some(Duration::from_millis(3_300)));
        additions.set_now(Duration::from_secs(4));
        assert!(additions.asks() && !additions.asks());
        assert_eq!(additions.deadline(), Some(Duration::from_millis(4_600)));
        assert_eq!(sections(&mut additions, 2, vec![objects()]), [rpcs(0, 1), objects()]);
        assert!(!additions.asks());
    }

    #[test]
    fn a_reset_discards_additions_and_restarts_numbers() {
        let mut additions = additions();
        assert_eq!(sections(&mut additions, 1, vec![rpcs(0, 3)]), [rpcs(0, 3)]);
        additions.add(&packet(0, vec![rpcs(0, 2)])).unwrap();
        sections(&mut additions, 2, vec![]);
        assert_eq!(additions.restart(Some(SequenceNumber::new(5))), 2);
        assert_eq!(sections(&mut additions, 4, vec![rpcs(70, 1)]), [rpcs(70, 1)], "it is ignored");
        additions.add(&packet(0, vec![rpcs(0, 1)])).unwrap();
        assert_eq!(sections(&mut additions, 6, vec![rpcs(0, 1)]).len(), 1);
        assert_eq!(sections(&mut additions, 7, vec![rpcs(0, 1)]), [rpcs(1, 1)]);
        assert_eq!(
            additions.translated(SequenceNumber::new(4), &packet(4, vec![rpcs(70, 1)])),
            None
        );
        let repeated = packet(7, vec![rpcs(0, 1)]);
        let translated = additions.translated(SequenceNumber::new(7), &repeated);
        assert_eq!(translated, Some(packet(7, vec![rpcs(1, 1)])));
        additions.acknowledge(acked(6));
        // Packet numbers wrap around.
        for number in (0..6000).step_by(500) {
            sections(&mut additions, 8 + number, vec![]);
        }
        assert_eq!(sections(&mut additions, 5700, vec![rpcs(1, 1)]), [rpcs(2, 1)]);
    }

    #[test]
    fn a_packet_that_would_become_too_long_is_not_sent() {
        let mut additions = additions();
        let lists = |first: u16, count: u8| match rpcs(first, count) {
            Section::Rpc(mut lists) => lists.remove(0),
            _ => panic!("RPC lists"),
        };
        for number in 0..200 {
            sections(&mut additions, u64::from(number), vec![rpcs(number, 1)]);
            additions.add(&packet(0, vec![rpcs(0, 1)])).unwrap();
            sections(&mut additions, u64::from(number), vec![]);
            additions.carriers.clear();
        }
        // Each message needs a separate list.
        let many = (0..50).map(|_| lists(0, 200)).collect();
        let split = sections(&mut additions, 300, vec![Section::Rpc(many)]);
        assert_eq!(split.len(), 40);
        let many = (0..60).map(|_| lists(0, 200)).collect();
        assert_eq!(
            leave(&mut additions, &packet(301, vec![Section::Rpc(many)])),
            Rewritten::TooLong
        );
    }

    #[test]
    fn bounds_and_unknown_numbers_are_refused_by_name() {
        let mut refused = Vec::new();
        let mut unknown = Additions::new(Bounds::default());
        refused.push(unknown.add(&packet(0, vec![rpcs(0, 1)])).unwrap_err().to_string());
        let mut additions = additions();
        additions.add(&packet(0, vec![rpcs(0, 8)])).unwrap();
        refused.push(additions.add(&packet(0, vec![rpcs(0, 1)])).unwrap_err().to_string());
        let mut small = Additions::new(Bounds { queued_bytes: 8, queued_messages: 8 });
        small.begin();
        refused.push(small.add(&packet(0, vec![rpcs(0, 3)])).unwrap_err().to_string());
        insta::assert_snapshot!(refused.join("\n"), @r"
        setup is not complete; wait until the connection is established
        wanted at most 8 (messages added to one direction), found 9
        wanted at most 8 (bytes added to one direction), found 9
        ");
    }
}
