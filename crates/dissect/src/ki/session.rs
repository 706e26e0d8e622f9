//! A conversation of KI.

use std::sync::Arc;

use worldwire_core::Side;
use worldwire_ki::connection::{Connection, MAX_OBSERVED_BYTES, News, Received, Unit};
use worldwire_ki::control::Opcode;
use worldwire_ki::crypt::keys::KeyFile;
use worldwire_ki::crypt::login::Salt;
use worldwire_ki::frame;
use worldwire_ki::schema::Protocols;

use super::KiObjects;
use super::fillings::Fillings;
use super::message::KiMessage;
use super::objects::unread;
use super::secrets::{Secrets, proves};
use crate::family::{HeldPiece, Opening, Start, Verdict};
use crate::item::Note;
use crate::session::{Emit, Interpreter};

/// After how many pieces a conversation that began before the capture is nobody's.
const MAX_PIECES: usize = 16;

/// Whether what was said first are frames of KI.
pub(super) fn recognize(opening: &Opening<'_>) -> Verdict {
    let Opening { pieces: held, datagrams, midstream, .. } = *opening;
    if datagrams || midstream {
        // Every piece may be the one that begins with a frame, or hold some.
        let frames = |piece: &HeldPiece| {
            let begins = frame::recognize(&piece.bytes, MAX_OBSERVED_BYTES) == Some(true);
            let at = if begins { Some(0) } else { frame::find(&piece.bytes, MAX_OBSERVED_BYTES) };
            at.map(|at| (piece.side, at))
        };
        let first = held.iter().find_map(|piece| frames(piece).map(|found| (piece, found)));
        return match first {
            Some((piece, (side, at))) => sides(side, piece.bytes.get(at..).unwrap_or_default()),
            None if datagrams || held.len() >= MAX_PIECES => Verdict::No,
            None => Verdict::NeedMore,
        };
    }
    let mut wait = false;
    for side in Side::BOTH {
        let first = opening.first(side, 64);
        match frame::recognize(&first, MAX_OBSERVED_BYTES) {
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

/// What is known while a conversation is read.
#[derive(Debug)]
pub(super) struct Reading {
    keys: Arc<KeyFile>,
    protocols: Arc<Protocols>,
    objects: Arc<KiObjects>,
    /// The session in which the client proved a password that the user has.
    proven: Option<Salt>,
    /// Messages whose definition was found to be of another revision: reported once.
    odd: Vec<(u8, u8)>,
    /// Messages in which no object was found where one should be: reported once.
    unread: Vec<(u8, u8)>,
}

impl Reading {
    pub(super) fn new(start: &Start<'_>) -> Self {
        Self {
            keys: start.keys.part(),
            protocols: start.definitions.part(),
            objects: start.definitions.part(),
            proven: None,
            odd: Vec::new(),
            unread: Vec::new(),
        }
    }
}

impl Interpreter<Connection> for Reading {
    const FAMILY: &'static str = "ki";

    fn received(&mut self, received: Received<'_>, emit: &mut Emit<'_>) {
        let (keys, protocols, objects) = (&*self.keys, &*self.protocols, &*self.objects);
        if proves(&received, keys, protocols) {
            self.proven = received.salt;
        }
        if let Some(note) = misfit(&received, protocols, &mut self.odd) {
            emit.note(Note::warning(note));
        }
        if let Some(note) = no_object(&received, protocols, objects, &mut self.unread) {
            emit.note(Note::warning(note));
        }
        let secrets = Secrets { keys, salt: received.salt, proven: self.proven };
        let fillings = Fillings { secrets, objects };
        emit.message(&KiMessage { received, protocols, fillings: &fillings });
    }

    fn secrets(&self, connection: &Connection) -> Option<String> {
        let (session, keys) = connection.opened_with();
        let tables = keys.iter().map(|key| KeyFile::format_stream(session, key));
        let tables: Vec<String> = tables.collect();
        (!tables.is_empty()).then(|| tables.join("\n"))
    }

    fn news(&mut self, news: News, emit: &mut Emit<'_>) {
        if let News::KeysNeeded { side, session_id } = news {
            let session = session_id.map_or(String::new(), |id| format!(" of session {id}"));
            emit.about(side);
            emit.note(Note::problem(format!(
                "what the {side} sends{session} is encrypted and no key for it was given; give \
                 the connection's key and nonce with --keys"
            )));
        }
    }
}

/// What there is to say about a message that does not fit its definition, the first time.
fn misfit(
    received: &Received<'_>,
    protocols: &Protocols,
    odd: &mut Vec<(u8, u8)>,
) -> Option<String> {
    let Unit::Message { service, order } = received.unit else { return None };
    let message = protocols.message(service, order)?;
    let payload = received.payload();
    // Quick for those that fit, which are nearly all.
    if message.fits(payload) || odd.contains(&(service, order)) {
        return None;
    }
    odd.push((service, order));
    Some(format!("{}: {}", protocols.name(message), message.fit(payload)))
}

/// What there is to say about a message without an object where one should be, the first time.
fn no_object(
    received: &Received<'_>,
    protocols: &Protocols,
    objects: &KiObjects,
    told: &mut Vec<(u8, u8)>,
) -> Option<String> {
    let Unit::Message { service, order } = received.unit else { return None };
    if told.contains(&(service, order)) {
        return None;
    }
    let text = unread((service, order), received.payload(), protocols, objects)?;
    told.push((service, order));
    Some(text)
}
