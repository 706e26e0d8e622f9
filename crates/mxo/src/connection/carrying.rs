//! The contents that a relay adds to packets, and the packets that carry them.

use worldwire_core::{Error, Reader, Result};

use super::outbox::limit;
use super::rpc_numbers::RpcNumbers;
use crate::frame::{HEAD_BYTES, Packet, RPC, RccFlags, RpcList, RpcMessage, Section, decode_lists};

/// An added RPC message or object section.
#[derive(Debug)]
pub(super) enum Load {
    Rpc {
        /// The number that the receiver sees, once the message is in a packet.
        number: Option<u16>,
        message: RpcMessage<'static>,
    },
    /// The operations of a section, without the end marker.
    Objects(Vec<u8>),
}

/// The maximum number of bytes after the sequence word of a packet with additions, as in both
/// emulators.
const MAX_PAYLOAD: usize = 1300;
/// RCC flags.
const FLAGS_BYTES: usize = 1;
/// ID and number of lists.
const RPC_SECTION_BYTES: usize = 2;
/// Number and count.
pub(super) const LIST_HEAD_BYTES: usize = 3;
/// The overhead of a packet with one RPC message.
const RPC_OVERHEAD: usize = FLAGS_BYTES + RPC_SECTION_BYTES + LIST_HEAD_BYTES;
/// RCC flags and ID of the section.
const OBJECTS_OVERHEAD: usize = 2;
/// The end marker of an object section.
const END: [u8; 2] = [0, 0];
/// The maximum number of lists in a section and of messages in a list.
const MAX_COUNT: usize = 255;
/// The maximum number of positions in an object section that are examined for a following RPC list.
const MAX_TRIED: usize = 64;

impl Load {
    /// The number of bytes, without overhead.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Rpc { message, .. } => message.wire_bytes(),
            Self::Objects(operations) => operations.len() + END.len(),
        }
    }
}

/// The contents of a packet to be added. Its RPC messages have no numbers yet.
pub(super) fn loads_of(packet: &[u8]) -> Result<Vec<Load>> {
    let packet = Packet::decode(&mut Reader::new(packet), None).map_err(Error::closed)?;
    if packet.flags != RccFlags::Always {
        let found = format!("{:#04x}", packet.flags.0);
        return Err(Error::value("the flags of an added packet, 0x02", found).inside("flags"));
    }
    let mut loads = Vec::new();
    for (index, section) in packet.into_owned().sections.into_iter().enumerate() {
        let added = match section {
            Section::Rpc(lists) => {
                let messages = lists.into_iter().flat_map(|list| list.messages);
                messages.map(Load::of_message).try_for_each(|load| {
                    loads.push(load?);
                    Ok(())
                })
            }
            Section::Objects(bytes) => Load::of_objects(&bytes).map(|load| loads.push(load)),
            Section::Other { id, .. } => {
                Err(Error::value("RPC messages or objects", format!("section {id}")))
            }
        };
        added.map_err(|error| error.inside_item(index).inside("sections"))?;
    }
    if loads.is_empty() {
        return Err(Error::value("RPC messages or objects", "none").inside("sections"));
    }
    Ok(loads)
}

impl Load {
    fn of_message(message: RpcMessage<'static>) -> Result<Self> {
        let most = MAX_PAYLOAD - RPC_OVERHEAD;
        limit("bytes of an added RPC message", most, message.wire_bytes())?;
        Ok(Self::Rpc { number: None, message })
    }

    fn of_objects(bytes: &[u8]) -> Result<Self> {
        let Some(operations @ [_, ..]) = bytes.strip_suffix(&END) else {
            return Err(Error::value("objects and their end marker, 00 00", "none"));
        };
        limit("bytes of an added object section", MAX_PAYLOAD - OBJECTS_OVERHEAD, bytes.len())?;
        Ok(Self::Objects(operations.to_vec()))
    }
}

/// Reads a packet on its way through a relay. `numbers` tracks the numbers of its sender's RPC
/// messages.
pub(super) fn packet_of<'p>(plain: &'p [u8], numbers: &RpcNumbers) -> Option<Packet<'p>> {
    let mut measure = |bytes: &[u8]| Ok(objects_end(bytes, numbers));
    Packet::decode_lenient(&mut Reader::new(plain), None, &mut measure).ok()
}

/// The length of an object section. Only the tables of the objects' classes reveal it, and a relay
/// may not have them. So this looks for RPC lists that follow an end marker, have numbers that the
/// sender uses now, and extend to the end of the packet or an unknown section. Without such lists,
/// the section extends to the end of the packet.
///
/// Unverified: that no object section contains such bytes.
fn objects_end(bytes: &[u8], numbers: &RpcNumbers) -> usize {
    let is_place = |at: &usize| {
        let Some([0, 0, RPC, (1..), high, low, (1..)]) = bytes.get(*at - 2..*at + 5) else {
            return false;
        };
        numbers.is_near(u16::from_be_bytes([*high, *low]))
    };
    let is_end = |at: &usize| {
        let mut reader = Reader::new(bytes.get(*at + 1..).unwrap_or_default());
        let lists = decode_lists(&mut reader, None);
        let is_list = |list: &RpcList<'_>| !list.messages.is_empty() && numbers.is_near(list.first);
        lists.is_ok_and(|lists| lists.iter().all(is_list)) && matches!(reader.rest(), [] | [5, ..])
    };
    let mut places = (2..bytes.len()).filter(is_place).take(MAX_TRIED);
    places.find(is_end).unwrap_or(bytes.len())
}

/// Gives the RPC messages of a packet the numbers that its receiver expects. Returns whether
/// anything has changed.
pub(super) fn translate(packet: &mut Packet<'_>, numbers: &RpcNumbers) -> bool {
    let mut is_changed = false;
    let mut sections = Vec::with_capacity(packet.sections.len());
    for section in packet.sections.drain(..) {
        let Section::Rpc(mut lists) = section else {
            sections.push(section);
            continue;
        };
        is_changed |= numbers.translate(&mut lists);
        // Splitting can produce too many lists for one section.
        while lists.len() > MAX_COUNT {
            let rest = lists.split_off(MAX_COUNT);
            sections.push(Section::Rpc(core::mem::replace(&mut lists, rest)));
        }
        sections.push(Section::Rpc(lists));
    }
    packet.sections = sections;
    is_changed
}

/// A packet to which contents are added.
#[derive(Debug)]
pub(super) struct Carrying<'p, 'd> {
    packet: &'p mut Packet<'d>,
    /// The number of additional bytes that fit.
    room: usize,
}

impl<'p, 'd> Carrying<'p, 'd> {
    /// A packet of this length.
    pub(super) fn new(packet: &'p mut Packet<'d>, length: usize) -> Self {
        Self { packet, room: (HEAD_BYTES + MAX_PAYLOAD).saturating_sub(length) }
    }

    pub(super) fn has_objects(&self) -> bool {
        self.packet.sections.iter().any(|section| matches!(section, Section::Objects(_)))
    }

    /// Adds contents. Returns false if there is no room.
    pub(super) fn add(&mut self, load: &Load) -> bool {
        match load {
            Load::Rpc { number, message } => self.add_message(number.unwrap_or(0), message),
            Load::Objects(operations) => self.add_objects(operations),
        }
    }

    fn add_message(&mut self, number: u16, message: &RpcMessage<'static>) -> bool {
        let sections = &mut self.packet.sections;
        let lists = sections.iter_mut().find_map(|section| match section {
            Section::Rpc(lists) if lists.len() < MAX_COUNT => Some(lists),
            _ => None,
        });
        let is_open = |list: &RpcList<'_>| {
            let next = list.numbered().last().map(|(last, _)| last.wrapping_add(1));
            next == Some(number) && list.messages.len() < MAX_COUNT
        };
        let list = || RpcList { first: number, messages: vec![message.clone()] };
        // It may not be known yet whether the message needs a separate list.
        let section = if lists.is_some() { 0 } else { RPC_SECTION_BYTES };
        let length = section + LIST_HEAD_BYTES + message.wire_bytes();
        let Some(room) = self.room.checked_sub(length) else { return false };
        self.room = room;
        match lists {
            Some(lists) => match lists.last_mut().filter(|last| is_open(last)) {
                Some(last) => last.messages.push(message.clone()),
                None => lists.push(list()),
            },
            // If the list precedes the objects, even clients and servers that cannot find the end
            // of the objects can read it.
            None => sections.insert(0, Section::Rpc(vec![list()])),
        }
        true
    }

    fn add_objects(&mut self, operations: &[u8]) -> bool {
        let sections = &mut self.packet.sections;
        let is_objects = |section: &Section<'_>| matches!(section, Section::Objects(_));
        let place = sections.iter().position(is_objects);
        let overhead = if place.is_some() { 0 } else { 1 + END.len() };
        let Some(room) = self.room.checked_sub(overhead + operations.len()) else { return false };
        // An unknown section extends to the end of the packet.
        let is_closed = sections.iter().any(|it| matches!(it, Section::Other { .. }));
        match place.and_then(|at| sections.get_mut(at)) {
            // The added operations join the section, before its own.
            Some(Section::Objects(bytes)) => *bytes = [operations, bytes].concat().into(),
            _ if is_closed => return false,
            _ => sections.push(Section::Objects([operations, &END].concat().into())),
        }
        self.room = room;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::SequenceWord;

    fn packet(sections: Vec<Section<'_>>) -> Vec<u8> {
        Packet { sections, ..Packet::new(7, SequenceWord::default()) }.to_bytes().unwrap()
    }

    fn rpcs(first: u16, bodies: &[&[u8]]) -> Section<'static> {
        let messages = bodies.iter().map(|body| RpcMessage::of(body).into_owned()).collect();
        Section::Rpc(vec![RpcList { first, messages }])
    }

    fn numbers() -> RpcNumbers {
        let mut numbers = RpcNumbers::from_start();
        numbers.leave(&[RpcList { first: 0, messages: vec![RpcMessage::of(&[5]); 40] }]);
        numbers
    }

    #[test]
    fn rpc_lists_after_objects_are_found() {
        let numbers = numbers();
        let objects = Section::Objects([2, 0, 1, 9, 0, 0, 4, 1, 200, 0, 1, 1, 5, 0, 0][..].into());
        let unknown = || Section::Other { id: 5, bytes: [2, 12, 0, 0][..].into() };
        for after in
            [vec![], vec![rpcs(38, &[b"(a", b"(bc"])], vec![rpcs(1000, &[b"("]), unknown()]]
        {
            let sections = [vec![objects.clone()], after].concat();
            let bytes = packet(sections.clone());
            assert_eq!(packet_of(&bytes, &numbers).unwrap().sections, sections);
        }
        // These numbers are not in use.
        let far = packet(vec![objects.clone(), rpcs(2000, &[b"("])]);
        assert_eq!(packet_of(&far, &numbers).unwrap().sections.len(), 1);
        let cut = packet(vec![objects, rpcs(38, &[b"(abc"])]);
        let Some((_, cut)) = cut.split_last() else { panic!("it is not empty") };
        let cut = [&[0; 4], &cut[4..]].concat();
        assert!(packet_of(&cut, &numbers).is_none(), "the length is wrong");
    }

    #[test]
    fn the_search_for_lists_is_bounded() {
        let numbers = numbers();
        let mut bytes = [0, 0, 4, 1, 0, 40, 1].repeat(9_000);
        bytes.extend([0, 0, 4, 1, 0, 40, 1, 1, 5]);
        assert_eq!(objects_end(&bytes, &numbers), bytes.len());
    }

    #[test]
    fn contents_join_what_a_packet_has() {
        let rpc = |number, body: &'static [u8]| Load::Rpc {
            number: Some(number),
            message: RpcMessage::of(body),
        };
        let objects = Load::Objects(vec![7, 0, 1]);
        let own = Section::Objects([2, 0, 1, 0, 0][..].into());
        let mut bare = Packet::new(7, SequenceWord::default());
        let mut carrying = Carrying::new(&mut bare, HEAD_BYTES + 1);
        assert!(
            [&rpc(3, b"a"), &objects, &rpc(4, b"b"), &rpc(9, b"c")].map(|load| carrying.add(load))
                == [true; 4]
        );
        let mut lists = [rpcs(3, &[b"a", b"b"]), rpcs(9, &[b"c"])]
            .map(|section| match section {
                Section::Rpc(lists) => lists[0].clone(),
                _ => panic!("RPC lists"),
            })
            .to_vec();
        assert_eq!(
            bare.sections,
            [
                Section::Rpc(core::mem::take(&mut lists)),
                Section::Objects([7, 0, 1, 0, 0][..].into())
            ]
        );
        let mut full = Packet { sections: vec![own], ..Packet::new(7, SequenceWord::default()) };
        let length = full.to_bytes().unwrap().len();
        let mut carrying = Carrying::new(&mut full, length);
        assert!(carrying.has_objects() && carrying.add(&objects) && carrying.add(&rpc(3, b"a")));
        assert_eq!(
            full.sections,
            [rpcs(3, &[b"a"]), Section::Objects([7, 0, 1, 2, 0, 1, 0, 0][..].into())]
        );
    }

    #[test]
    fn a_full_packet_has_exactly_the_maximum_payload() {
        for load in [
            Load::of_message(RpcMessage::new(5, &[1; MAX_PAYLOAD - RPC_OVERHEAD - 3])),
            Load::of_objects(&[&[1; MAX_PAYLOAD - OBJECTS_OVERHEAD - 2][..], &END].concat()),
        ] {
            let mut packet = Packet::new(7, SequenceWord::default());
            let load = load.unwrap();
            assert!(Carrying::new(&mut packet, HEAD_BYTES + 1).add(&load));
            assert_eq!(packet.to_bytes().unwrap().len(), HEAD_BYTES + MAX_PAYLOAD);
            let mut packet = Packet::new(7, SequenceWord::default());
            assert!(!Carrying::new(&mut packet, HEAD_BYTES + 2).add(&load));
            assert!(packet.sections.is_empty());
        }
        assert!(
            Load::of_message(RpcMessage::new(5, &[1; MAX_PAYLOAD - RPC_OVERHEAD - 2])).is_err()
        );
    }

    #[test]
    fn what_cannot_be_added_is_refused_by_name() {
        let refused = [
            packet(vec![]),
            packet(vec![rpcs(0, &[b"a"]), Section::Other { id: 5, bytes: [1][..].into() }]),
            packet(vec![Section::Objects([2, 0, 1][..].into())]),
            packet(vec![Section::Objects([0, 0][..].into())]),
            packet(vec![rpcs(0, &[&[5; MAX_PAYLOAD]])]),
            Packet {
                flags: RccFlags::Always | RccFlags::Reset,
                ..Packet::new(7, SequenceWord::default())
            }
            .to_bytes()
            .unwrap(),
            vec![1, 2, 3],
        ];
        let refused: Vec<String> =
            refused.iter().map(|it| loads_of(it).unwrap_err().to_string()).collect();
        insta::assert_snapshot!(refused.join("\n"), @r"
        sections: wanted RPC messages or objects, found none
        sections[1]: wanted RPC messages or objects, found section 5
        sections[0]: wanted objects and their end marker, 00 00, found none
        sections[0]: wanted objects and their end marker, 00 00, found none
        sections[0]: wanted at most 1294 (bytes of an added RPC message), found 1302
        flags: wanted the flags of an added packet, 0x02, found 0x42
        crc at byte 0: wanted 4 bytes, found 3
        ");
    }
}
