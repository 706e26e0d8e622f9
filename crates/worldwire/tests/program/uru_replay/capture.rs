//! The messages of clients and the real server, in order.

use std::collections::BTreeMap;
use std::path::Path;

use worldwire_capture::{CaptureReader, Conversations, EventKind, Record};
use worldwire_core::{Limits, Reader, Side};
use worldwire_dissect::{Dissection, Item, Keys, NoteKind, Options, Scratch};
use worldwire_uru::frame::{Message, Service};

/// A message of a capture.
#[derive(Debug)]
pub(crate) struct Said {
    /// The connection.
    pub(crate) stream: u64,
    /// The time, in nanoseconds.
    pub(crate) time: i64,
    pub(crate) from: Side,
    pub(crate) message: Message<'static>,
}

/// All gatekeeper, file and auth connections of a capture.
#[derive(Debug)]
pub(crate) struct Recorded {
    /// In chronological order.
    pub(crate) said: Vec<Said>,
    /// When connections of any service ended.
    pub(crate) ends: BTreeMap<u64, i64>,
}

/// When a capture begins.
pub(crate) fn begins(path: &Path) -> i64 {
    let data = std::fs::read(path).unwrap();
    let mut reader = CaptureReader::new(&data[..], &Limits::DEFAULT).unwrap();
    loop {
        if let Record::Packet(packet) = reader.next().unwrap().unwrap() {
            return packet.time.nanos();
        }
    }
}

/// Reads a capture with the keys of its shard.
pub(crate) fn read(path: &Path, keys: &str) -> Recorded {
    let data = std::fs::read(path).unwrap();
    let keys = Keys::parse(keys).unwrap();
    let mut conversations = Conversations::new(&Limits::DEFAULT);
    let mut ends = BTreeMap::new();
    let mut dissection = Dissection::new(Options { keys, ..Options::default() });
    let mut reader = CaptureReader::new(&data[..], &Limits::DEFAULT).unwrap();
    while let Some(record) = reader.next().unwrap() {
        if let Record::Packet(packet) = record {
            dissection.push(&packet);
            conversations.push(&packet, &mut |event| {
                if let EventKind::Closed(_) = event.kind {
                    ends.insert(event.conversation, event.time.nanos());
                }
            });
        }
    }
    dissection.end();
    let take = |item: &Item<'_>, _: &mut Scratch, out: &mut Vec<Said>| {
        let is_whole = item.note().is_none_or(|note| note.kind != NoteKind::Problem);
        assert!(is_whole, "{:?}", item.note());
        let mut name = String::new();
        item.push_name(&mut name);
        let service = name.split('.').next().and_then(Service::from_name);
        let Some(service) = service.filter(|service| *service != Service::Game) else { return };
        let message = Message::decode(service, item.from, &mut Reader::new(item.bytes()));
        let said = Said {
            stream: item.stamp.stream,
            time: item.stamp.time.0,
            from: item.from,
            message: message.unwrap().into_owned(),
        };
        out.push(said);
    };
    let mut said = Vec::new();
    dissection.run(&take, &mut said, |_| ());
    // Messages of a connection stay in their order.
    said.sort_by_key(|said| said.time);
    Recorded { said, ends }
}
