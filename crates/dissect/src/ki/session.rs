//! A conversation of KI, read by an observer.

use std::time::Duration;

use worldwire_core::Side;
use worldwire_core::connection::{Connection as _, Event, Input};
use worldwire_ki::connection::{Connection, MOST_OBSERVED_BYTES, News, Received, Unit};
use worldwire_ki::control::Opcode;
use worldwire_ki::crypt::login::Salt;
use worldwire_ki::frame;

use crate::family::{Held, Verdict};
use crate::item::{Item, ItemBody, Note, Stamp};
use crate::ki::KiItem;
use crate::ki::objects::{Fillings, unread};
use crate::ki::secrets::{Secrets, proves};
use crate::{Definitions, Keys};

/// After how many pieces a conversation that began before the capture is nobody's.
const MOST_PIECES: usize = 16;

/// Whether what was said first are frames of KI.
pub(crate) fn recognize(held: &[Held], datagrams: bool, midstream: bool) -> Verdict {
    if datagrams || midstream {
        // Every piece may be the one that begins with a frame.
        let first = held
            .iter()
            .find(|piece| frame::recognize(&piece.bytes, MOST_OBSERVED_BYTES) == Some(true));
        return match first {
            Some(piece) => sides(piece.side, &piece.bytes),
            None if datagrams || held.len() >= MOST_PIECES => Verdict::No,
            None => Verdict::NeedMore,
        };
    }
    let mut wait = false;
    for side in Side::BOTH {
        let of_side = held.iter().filter(|piece| piece.side == side);
        let first: Vec<u8> = of_side.flat_map(|piece| &piece.bytes).copied().take(64).collect();
        match frame::recognize(&first, MOST_OBSERVED_BYTES) {
            Some(true) => return sides(side, &first),
            Some(false) => return Verdict::No,
            None => wait = true,
        }
    }
    if wait { Verdict::NeedMore } else { Verdict::No }
}

/// Servers offer sessions, and clients accept them.
fn sides(side: Side, first: &[u8]) -> Verdict {
    let speaker = match frame::control_opcode(first) {
        Some(Opcode::SessionOffer) => Side::Server,
        Some(Opcode::SessionAccept | Opcode::UdpHello) => Side::Client,
        _ => side,
    };
    if speaker == side { Verdict::Yes } else { Verdict::Swapped }
}

/// A conversation that was recognised as KI's.
#[derive(Debug)]
pub(crate) struct KiSession {
    connection: Connection,
    keys: Keys,
    definitions: Definitions,
    /// The session in which the client proved a password that the user has.
    proven: Option<Salt>,
    /// Messages whose definition was found to be of another revision: told once.
    odd: Vec<(u8, u8)>,
    /// Messages in which no object was found where one should be: told once.
    unread: Vec<(u8, u8)>,
}

impl KiSession {
    pub(crate) fn new(midstream: bool, keys: &Keys, definitions: &Definitions) -> Self {
        let streams = keys.ki.observer();
        let connection = match midstream {
            true => Connection::observer_from_the_middle(streams),
            false => Connection::observer(streams),
        };
        Self {
            connection,
            keys: keys.clone(),
            definitions: definitions.clone(),
            proven: None,
            odd: Vec::new(),
            unread: Vec::new(),
        }
    }

    pub(crate) fn data(
        &mut self,
        datagram: bool,
        side: Side,
        stamp: Stamp,
        bytes: &[u8],
        out: &mut dyn FnMut(Item<'_>),
    ) {
        let input = if datagram { Input::Datagram(bytes) } else { Input::Bytes(bytes) };
        self.connection.input(Duration::ZERO, side, input);
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
                    let (side, range) = (received.side, received.range.clone());
                    let (keys, definitions) = (&self.keys, &self.definitions);
                    if proves(&received, keys, definitions) {
                        self.proven = received.salt;
                    }
                    if let Some(note) = misfit(&received, definitions, &mut self.odd) {
                        let (from, range) = (side, range.clone());
                        let body = ItemBody::Note(Note::warning(note));
                        out(Item { stamp, family: "ki", from, range, body });
                    }
                    if let Some(note) = no_object(&received, definitions, &mut self.unread) {
                        let (from, range) = (side, range.clone());
                        let body = ItemBody::Note(Note::warning(note));
                        out(Item { stamp, family: "ki", from, range, body });
                    }
                    let secrets = Secrets { keys, salt: received.salt, proven: self.proven };
                    let fillings = Fillings { secrets, objects: &definitions.ki_objects };
                    let item = KiItem { received, definitions, fillings: &fillings };
                    let (from, body) = (side, ItemBody::Ki(item));
                    out(Item { stamp, family: "ki", from, range, body });
                    continue;
                }
                Event::Gap { side, range } => (side, range.clone(), Note::gap(&range).into()),
                Event::Resync { side, skipped } => {
                    (side, skipped.clone(), Note::resync(&skipped).into())
                }
                Event::News(News::KeysNeeded { side, session_id }) => {
                    let session =
                        session_id.map_or(String::new(), |id| format!(" of session {id}"));
                    let what = format!(
                        "what the {side} sends{session} is encrypted and no key for it was given; \
                         give the connection's key and nonce with --keys"
                    );
                    (side, 0..0, ItemBody::Note(Note::problem(what)))
                }
                Event::Fault { side, error } => {
                    let at = error.offset().unwrap_or(0);
                    (side, at..at, ItemBody::Note(Note::problem(error.to_string())))
                }
                _ => continue,
            };
            out(Item { stamp, family: "ki", from, range, body });
        }
    }
}

/// What there is to say about a message that does not fit its definition, the first time.
fn misfit(
    received: &Received<'_>,
    definitions: &Definitions,
    odd: &mut Vec<(u8, u8)>,
) -> Option<String> {
    let Unit::Message { service, order } = received.unit else { return None };
    let message = definitions.ki.message(service, order)?;
    let payload = received.payload();
    // Quick for those that fit, which are nearly all.
    if message.fits(payload) || odd.contains(&(service, order)) {
        return None;
    }
    odd.push((service, order));
    Some(format!("{}: {}", definitions.ki.name(message), message.fit(payload)))
}

/// What there is to say about a message without an object where one should be, the first time.
fn no_object(
    received: &Received<'_>,
    definitions: &Definitions,
    told: &mut Vec<(u8, u8)>,
) -> Option<String> {
    let Unit::Message { service, order } = received.unit else { return None };
    if told.contains(&(service, order)) {
        return None;
    }
    let text = unread((service, order), received.payload(), definitions)?;
    told.push((service, order));
    Some(text)
}
