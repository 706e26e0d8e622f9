//! Planned packets and unacknowledged RPC messages.

use core::ops::Range;
use std::collections::{BTreeSet, VecDeque};

use worldwire_core::{Error, Float, Result, Writer};

use super::sent_packets::Cargo;
use crate::crypt::sealed_bytes;
use crate::frame::{HEAD_BYTES, OBJECTS, RPC, RccFlags, RpcMessage, SequenceWord};

/// The packets to send next, by number. Acknowledgements and encryption are added when a packet is
/// sent.
#[derive(Debug)]
pub(super) struct Outbox {
    planned: VecDeque<Planned>,
    /// The size of their datagrams.
    bytes: usize,
    /// The number of the next packet to plan, from 1.
    next: u64,
    /// The maximum number of bytes after the sequence word.
    max_payload: usize,
    /// The simulation time to send with the next new packet for RPC messages.
    sim_time: Option<Float>,
}

#[derive(Debug)]
struct Planned {
    number: u64,
    flags: RccFlags,
    sim_time: Option<Float>,
    load: Load,
}

#[derive(Debug)]
enum Load {
    None,
    Rpc(Vec<List>),
    /// The section, without its ID.
    Objects(Vec<u8>),
}

/// An RPC list.
#[derive(Debug)]
struct List {
    first: u64,
    count: u8,
    messages: Vec<u8>,
}

/// A packet that is being sent.
#[derive(Debug)]
pub(super) struct Departure {
    pub(super) number: u64,
    pub(super) cargo: Option<Cargo>,
    flags: RccFlags,
    sim_time: Option<Float>,
    load: Load,
}

impl Outbox {
    pub(super) fn new(max_payload: usize) -> Self {
        Self { planned: VecDeque::new(), bytes: 0, next: 1, max_payload, sim_time: None }
    }

    /// Plans a packet without sections; returns its number.
    pub(super) fn plan_bare(&mut self, flags: RccFlags) -> u64 {
        self.push(flags, None, Load::None)
    }

    /// Plans a packet without sections again, under its old number.
    pub(super) fn plan_again(&mut self, flags: RccFlags, number: u64) {
        let planned = Planned { number, flags, sim_time: None, load: Load::None };
        self.bytes += planned.bytes();
        self.planned.push_back(planned);
    }

    /// Sends the simulation time with the next new packet for RPC messages that has room for it.
    pub(super) fn set_sim_time(&mut self, time: Float) {
        self.sim_time = Some(time);
    }

    /// Plans a packet with objects; returns its number.
    pub(super) fn plan_objects(&mut self, objects: &[u8], sim_time: Option<Float>) -> u64 {
        let always = RccFlags::Always;
        let flags = if sim_time.is_some() { always | RccFlags::SimTime } else { always };
        let load = Load::Objects(objects.to_vec());
        // A waiting bare acknowledgement is merged into this packet.
        if let Some(last) = self.planned.back_mut()
            && matches!(last.load, Load::None)
            && last.flags == always
        {
            self.bytes -= last.bytes();
            (last.flags, last.sim_time, last.load) = (flags, sim_time, load);
            self.bytes += last.bytes();
            return last.number;
        }
        self.push(flags, sim_time, load)
    }

    /// Plans an RPC message, in the last packet if it has room, otherwise in a new one. Returns
    /// false if the datagrams would exceed `most` bytes in total, or if a new packet is needed and
    /// `may_begin` is false.
    pub(super) fn plan_rpc(
        &mut self,
        number: u64,
        message: &RpcMessage<'_>,
        most: usize,
        may_begin: bool,
    ) -> bool {
        let joins =
            self.planned.back().is_some_and(|last| last.has_room(message, self.max_payload));
        let max_growth = sealed_bytes(HEAD_BYTES + 6 + message.wire_bytes());
        if self.bytes.saturating_add(max_growth) > most || !(joins || may_begin) {
            return false;
        }
        if !joins {
            // Flags, time, ID, lists, number, count.
            let has_room = message.wire_bytes() + 10 <= self.max_payload;
            let sim_time = self.sim_time.take_if(|_| has_room);
            let time = if sim_time.is_some() { RccFlags::SimTime } else { RccFlags::Always };
            self.push(RccFlags::Always | time, sim_time, Load::Rpc(Vec::new()));
        }
        let Some(last) = self.planned.back_mut() else { return false };
        self.bytes -= last.bytes();
        last.add(number, message);
        self.bytes += last.bytes();
        true
    }

    fn push(&mut self, flags: RccFlags, sim_time: Option<Float>, load: Load) -> u64 {
        let number = self.next;
        self.next += 1;
        let planned = Planned { number, flags, sim_time, load };
        self.bytes += planned.bytes();
        self.planned.push_back(planned);
        number
    }

    /// The next packet to send.
    pub(super) fn pop(&mut self) -> Option<Departure> {
        let planned = self.planned.pop_front()?;
        self.bytes -= planned.bytes();
        let Planned { number, flags, sim_time, load } = planned;
        let range = |list: &List| list.first..list.first.saturating_add(list.count.into());
        let cargo = match &load {
            Load::None => None,
            Load::Rpc(lists) => Some(Cargo::Rpc(lists.iter().map(range).collect())),
            Load::Objects(_) => Some(Cargo::Objects),
        };
        Some(Departure { number, cargo, flags, sim_time, load })
    }

    /// Drops all planned packets. Returns the numbers of those with objects.
    pub(super) fn clear(&mut self) -> Vec<u64> {
        self.bytes = 0;
        let objects = |planned: Planned| match planned.load {
            Load::Objects(_) => Some(planned.number),
            Load::None | Load::Rpc(_) => None,
        };
        self.planned.drain(..).filter_map(objects).collect()
    }

    /// Drops the planned packets with objects. Returns their numbers.
    pub(super) fn drop_objects(&mut self) -> Vec<u64> {
        let mut dropped = Vec::new();
        let bytes = &mut self.bytes;
        self.planned.retain(|planned| {
            let is_kept = !matches!(planned.load, Load::Objects(_));
            if !is_kept {
                *bytes -= planned.bytes();
                dropped.push(planned.number);
            }
            is_kept
        });
        dropped
    }

    /// The number of planned packets.
    pub(super) fn packets(&self) -> usize {
        self.planned.len()
    }

    /// The total size of the planned packets as datagrams.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The number of the next packet to plan.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// The number of the next packet to send.
    pub(super) fn next_sent(&self) -> u64 {
        self.planned.front().map_or(self.next, |planned| planned.number)
    }
}

impl Planned {
    /// Its size as a datagram.
    fn bytes(&self) -> usize {
        sealed_bytes(HEAD_BYTES + self.payload())
    }

    /// Bytes after the sequence word.
    fn payload(&self) -> usize {
        let sections = match &self.load {
            Load::None => 0,
            Load::Rpc(lists) => 2 + lists.iter().map(|list| 3 + list.messages.len()).sum::<usize>(),
            Load::Objects(objects) => 1 + objects.len(),
        };
        1 + if self.sim_time.is_some() { 4 } else { 0 } + sections
    }

    /// Whether another RPC message fits, even if it needs a new list.
    fn has_room(&self, message: &RpcMessage<'_>, most: usize) -> bool {
        let is_open = match &self.load {
            Load::None => self.flags == RccFlags::Always,
            Load::Rpc(lists) => lists.len() < 255,
            Load::Objects(_) => false,
        };
        is_open && self.payload() + 5 + message.wire_bytes() <= most
    }

    fn add(&mut self, number: u64, message: &RpcMessage<'_>) {
        if matches!(self.load, Load::None) {
            self.load = Load::Rpc(Vec::new());
        }
        let Load::Rpc(lists) = &mut self.load else { return };
        let follows = |list: &&mut List| {
            list.count < 255 && list.first.saturating_add(list.count.into()) == number
        };
        let mut writer = match lists.last_mut().filter(follows) {
            Some(list) => {
                list.count += 1;
                Writer::append_to(core::mem::take(&mut list.messages))
            }
            None => {
                lists.push(List { first: number, count: 1, messages: Vec::new() });
                Writer::new()
            }
        };
        let written = message.encode(&mut writer);
        debug_assert!(written.is_ok(), "checked when it was queued");
        if let Some(list) = lists.last_mut() {
            list.messages = writer.into_bytes();
        }
    }
}

impl Departure {
    /// The bytes that the length field counts, starting with this word.
    pub(super) fn body(&self, word: SequenceWord) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.bytes(&word.to_bytes());
        writer.u8(self.flags.0);
        if let Some(Float(time)) = self.sim_time {
            writer.f32(time);
        }
        match &self.load {
            Load::None => {}
            Load::Objects(objects) => {
                writer.u8(OBJECTS);
                writer.bytes(objects);
            }
            Load::Rpc(lists) => {
                writer.u8(RPC);
                writer.u8(u8::try_from(lists.len()).unwrap_or(u8::MAX));
                for list in lists {
                    writer.bytes(&on_wire(list.first).to_be_bytes());
                    writer.u8(list.count);
                    writer.bytes(&list.messages);
                }
            }
        }
        writer.into_bytes()
    }
}

/// Checks a limit.
pub(super) fn limit(name: &'static str, most: usize, asked: usize) -> Result<()> {
    if asked <= most {
        return Ok(());
    }
    Err(Error::limit(name, most as u64, asked as u64))
}

/// The number of an RPC message on the wire.
pub(super) fn on_wire(number: u64) -> u16 {
    let [low, high, ..] = number.to_le_bytes();
    u16::from_le_bytes([low, high])
}

/// This side's unacknowledged RPC messages.
#[derive(Debug, Default)]
pub(super) struct Unacknowledged {
    /// The messages from number `first`; `None` once acknowledged.
    messages: VecDeque<Option<Vec<u8>>>,
    first: u64,
    bytes: usize,
    /// Messages that are not in a packet: new ones, and those whose packet was lost.
    waiting: BTreeSet<u64>,
}

impl Unacknowledged {
    /// Queues a message after all others.
    pub(super) fn push(
        &mut self,
        message: &[u8],
        max_messages: usize,
        max_bytes: usize,
    ) -> Result<()> {
        let (count, bytes) = (self.messages.len() + 1, self.bytes + message.len());
        limit("unacknowledged RPC messages", max_messages, count)?;
        limit("bytes of unacknowledged RPC messages", max_bytes, bytes)?;
        self.waiting.insert(self.first + self.messages.len() as u64);
        self.messages.push_back(Some(message.to_vec()));
        self.bytes = bytes;
        Ok(())
    }

    /// The first message that is not in a packet, if it is less than `max_ahead` ahead of the first
    /// unacknowledged one.
    pub(super) fn next(&self, max_ahead: u64) -> Option<(u64, RpcMessage<'_>)> {
        let number = *self.waiting.first()?;
        let ahead = number.checked_sub(self.first).filter(|ahead| *ahead < max_ahead)?;
        let message = self.messages.get(usize::try_from(ahead).ok()?)?.as_deref()?;
        Some((number, RpcMessage::of(message)))
    }

    /// Marks a message as planned.
    pub(super) fn plan(&mut self, number: u64) {
        self.waiting.remove(&number);
    }

    /// Records that the packet with these messages arrived or was lost.
    pub(super) fn settle(&mut self, ranges: &[Range<u64>], has_arrived: bool) {
        for number in ranges.iter().cloned().flatten() {
            let index = number.checked_sub(self.first).and_then(|at| usize::try_from(at).ok());
            let Some(message) = index.and_then(|index| self.messages.get_mut(index)) else {
                continue;
            };
            if !has_arrived {
                if message.is_some() {
                    self.waiting.insert(number);
                }
                continue;
            }
            self.bytes -= message.take().map_or(0, |message| message.len());
        }
        while let Some(None) = self.messages.front() {
            self.messages.pop_front();
            self.first += 1;
        }
    }

    /// Discards all messages; numbers restart at 0.
    pub(super) fn restart(&mut self) {
        *self = Self::default();
    }

    /// The number of bytes of unacknowledged messages.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
