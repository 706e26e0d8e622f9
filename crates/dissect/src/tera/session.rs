//! A conversation of TERA, read by an observer.

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::Side;
use worldwire_core::connection::{Connection as _, Event, Input, Piece as _};
use worldwire_tera::connection::{Connection, Received, Unit};
use worldwire_tera::file::library::CheckVersion;
use worldwire_tera::frame::CHECK_VERSION;
use worldwire_tera::packet::Packets;

use super::{TeraDefinitions, TeraItem};
use crate::Definitions;
use crate::family::Verdict;
use crate::item::{Item, ItemBody, Note, Stamp};

/// What a server says first.
const HELLO: [u8; 4] = [1, 0, 0, 0];
/// Bytes of the key that a client answers with.
const KEY_BYTES: usize = 128;

/// Whether the server says hello and the client answers with a key. Keys are random, so there is
/// nothing else to go by; everything behind them is encrypted.
pub(crate) fn recognize(first: &[Vec<u8>; 2]) -> Verdict {
    let [client, server] = first;
    match (greets(server, client), greets(client, server)) {
        (Verdict::Yes, _) => Verdict::Yes,
        (_, Verdict::Yes) => Verdict::Swapped,
        (Verdict::No, Verdict::No) => Verdict::No,
        _ => Verdict::NeedMore,
    }
}

fn greets(server: &[u8], client: &[u8]) -> Verdict {
    let begins = HELLO.iter().zip(server).all(|(a, b)| a == b);
    if !begins {
        Verdict::No
    } else if server.len() >= HELLO.len() && client.len() >= KEY_BYTES {
        Verdict::Yes
    } else {
        Verdict::NeedMore
    }
}

/// A conversation that was recognised as TERA's.
#[derive(Debug)]
pub(crate) struct TeraSession {
    connection: Connection,
    definitions: Arc<TeraDefinitions>,
    packets: Arc<Packets>,
    /// Whether the client has said which build it is.
    is_known: bool,
}

impl TeraSession {
    pub(crate) fn new(definitions: &Definitions) -> Self {
        let definitions = Arc::clone(&definitions.tera);
        let packets = definitions.packets(None);
        Self { connection: Connection::observer(None), definitions, packets, is_known: false }
    }

    pub(crate) fn data(
        &mut self,
        side: Side,
        stamp: Stamp,
        bytes: &[u8],
        out: &mut dyn FnMut(Item<'_>),
    ) {
        self.connection.input(Duration::ZERO, side, Input::Bytes(bytes));
        self.tell(stamp, out);
    }

    pub(crate) fn gap(
        &mut self,
        side: Side,
        stamp: Stamp,
        length: u64,
        out: &mut dyn FnMut(Item<'_>),
    ) {
        self.connection.input(Duration::ZERO, side, Input::Gap(length));
        self.tell(stamp, out);
    }

    pub(crate) fn end(&mut self, stamp: Stamp, out: &mut dyn FnMut(Item<'_>)) {
        for side in Side::BOTH {
            self.connection.input(Duration::ZERO, side, Input::End);
        }
        self.tell(stamp, out);
    }

    fn tell(&mut self, stamp: Stamp, out: &mut dyn FnMut(Item<'_>)) {
        while let Some(event) = self.connection.poll_event() {
            let (from, range, body) = match event {
                Event::Received(received) => {
                    let (side, range) = (received.side, received.range());
                    if !self.is_known
                        && let Some(packets) = introduced(&received, &self.definitions)
                    {
                        self.is_known = true;
                        self.packets = packets;
                        if let Some(note) = unmapped(&self.packets) {
                            let body = ItemBody::Note(Note::warning(note));
                            let (from, range) = (side, range.clone());
                            out(Item { stamp, family: "tera", from, range, body });
                        }
                    }
                    let item = TeraItem { received, packets: &self.packets };
                    (side, range, ItemBody::Tera(item))
                }
                Event::Gap { side, range } => (side, range.clone(), Note::gap(&range).into()),
                Event::Resync { side, skipped } => {
                    (side, skipped.clone(), Note::resync(&skipped).into())
                }
                Event::Fault { side, error } => {
                    let at = error.offset().unwrap_or(0);
                    (side, at..at, ItemBody::Note(Note::problem(error.to_string())))
                }
                _ => continue,
            };
            out(Item { stamp, family: "tera", from, range, body });
        }
    }
}

/// The messages of the build that the client names in its first message.
fn introduced(received: &Received<'_>, definitions: &TeraDefinitions) -> Option<Arc<Packets>> {
    let first = received.side == Side::Client && received.is_message();
    first.then(|| {
        let is_check = received.unit == Unit::Message { opcode: CHECK_VERSION };
        let check = is_check.then(|| CheckVersion::decode(received.bytes).ok()).flatten();
        definitions.packets(check.and_then(|check| check.protocol))
    })
}

/// What there is to say about a build without a map of opcodes.
fn unmapped(packets: &Packets) -> Option<String> {
    (!packets.has_map()).then(|| match packets.known().revision {
        Some(revision) => format!(
            "the client is of revision {revision}; its messages have no names without \
             protocol.{revision}.map, give it with --data"
        ),
        None => "the client does not say which build it is; name it with --revision".to_owned(),
    })
}
