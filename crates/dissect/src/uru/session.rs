//! A conversation of Uru, read by an observer.

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::Side;
use worldwire_core::connection::{Connection as _, Event, Input, Piece as _};
use worldwire_uru::connect::ConnectPacket;
use worldwire_uru::connection::{Connection, News};

use crate::Keys;
use crate::family::Verdict;
use crate::item::{Item, ItemBody, Note, Stamp};

/// The port that shards use unless told otherwise.
pub(crate) const PORT: u16 = 14617;

/// The names of what stands in front of all messages.
pub(crate) const SETUP_NAMES: [&str; 9] = [
    "connect.CliToAuth",
    "connect.CliToGame",
    "connect.CliToFile",
    "connect.CliToCsr",
    "connect.SimpleNet",
    "connect.CliToGateKeeper",
    "setup.Connect",
    "setup.Encrypt",
    "setup.Error",
];

/// Whether what either side sends first is a connect packet of Uru: the client's.
pub(crate) fn recognize(first: &[Vec<u8>; 2]) -> Verdict {
    match first.each_ref().map(|first| connects(first)) {
        [Verdict::Yes, _] => Verdict::Yes,
        [_, Verdict::Yes] => Verdict::Swapped,
        [Verdict::No, Verdict::No] => Verdict::No,
        _ => Verdict::NeedMore,
    }
}

fn connects(first: &[u8]) -> Verdict {
    /// Header byte count and, in front of it, the connection type.
    const HEAD: usize = 3;
    if first.len() < HEAD {
        return Verdict::NeedMore;
    }
    let mut reader = worldwire_core::Reader::new(first);
    match ConnectPacket::decode_fields(&mut reader) {
        Ok(_) => Verdict::Yes,
        Err(error) if error.needed().is_some() => Verdict::NeedMore,
        Err(_) => Verdict::No,
    }
}

/// A conversation that was recognised as Uru's.
#[derive(Debug)]
pub(crate) struct UruSession {
    connection: Connection,
}

impl UruSession {
    pub(crate) fn new(keys: &Keys) -> Self {
        Self { connection: Connection::observer(Arc::clone(&keys.uru)) }
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
                    (received.side, received.range(), ItemBody::Uru(received))
                }
                Event::Gap { side, range } => (side, range.clone(), Note::gap(&range).into()),
                Event::Resync { side, skipped } => {
                    (side, skipped.clone(), Note::resync(&skipped).into())
                }
                Event::News(News::KeysNeeded { service }) => {
                    let what = format!(
                        "the {} connection is encrypted and no key for it was given; \
                         give the shard's keys with --keys",
                        service.name()
                    );
                    (Side::Client, 0..0, ItemBody::Note(Note::problem(what)))
                }
                Event::Fault { side, error } => {
                    let at = error.offset().unwrap_or(0);
                    (side, at..at, ItemBody::Note(Note::problem(error.to_string())))
                }
                _ => continue,
            };
            out(Item { stamp, family: "uru", from, range, body });
        }
    }
}
