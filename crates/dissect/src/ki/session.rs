//! Recognises and reads KI conversations.

use std::sync::Arc;

use worldwire_core::Side;
use worldwire_ki::connection::{Connection, MAX_OBSERVED_BYTES, News, Received, Unit};
use worldwire_ki::control::Opcode;
use worldwire_ki::crypt::Salt;
use worldwire_ki::frame;
use worldwire_ki::schema::Protocols;

use super::message::KiMessage;
use super::objects::{KiObjects, unreadable};
use super::offer_date::OfferDate;
use super::opener::FieldOpener;
use super::secrets::{KeyFile, NO_KEY, Secrets, proves};
use crate::family::{HeldPiece, Opening, Start, Verdict};
use crate::item::Note;
use crate::session::{Emit, Interpreter};

/// The maximum number of pieces examined in a conversation whose beginning is missing.
const MAX_PIECES: usize = 16;

/// Whether the first bytes are KI frames.
pub(super) fn recognize(opening: &Opening<'_>) -> Verdict {
    let Opening { pieces: held, datagrams, midstream, .. } = *opening;
    if datagrams || midstream {
        // Any piece can start with a frame, or contain one.
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

/// Decides which side is which: servers offer sessions, and clients accept them.
fn sides(side: Side, first: &[u8]) -> Verdict {
    let speaker = match frame::control_opcode(first) {
        Some(Opcode::SessionOffer) => Side::Server,
        Some(Opcode::SessionAccept | Opcode::UdpHello) => Side::Client,
        _ => side,
    };
    if speaker == side { Verdict::Yes } else { Verdict::Swapped }
}

/// The state of reading one conversation.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    keys: Arc<KeyFile>,
    protocols: Arc<Protocols>,
    objects: Arc<KiObjects>,
    /// The session in which the client proved that it has one of the user's passwords.
    proven: Option<Salt>,
    /// Messages that did not fit their definition. Each is reported once.
    misfits: Vec<(u8, u8)>,
    /// Messages with an unreadable object. Each is reported once.
    unreadable: Vec<(u8, u8)>,
}

impl Reading {
    pub(super) fn new(start: &Start<'_>) -> Self {
        Self {
            keys: start.keys.part(),
            protocols: start.definitions.part(),
            objects: start.definitions.part(),
            proven: None,
            misfits: Vec::new(),
            unreadable: Vec::new(),
        }
    }
}

impl Interpreter<Connection> for Reading {
    const FAMILY: &'static str = "ki";

    fn fork(&self) -> Option<(Self, usize)> {
        let noted = self.misfits.len() + self.unreadable.len();
        Some((self.clone(), size_of::<Self>() + 2 * noted))
    }

    fn received(&mut self, received: Received<'_>, emit: &mut Emit<'_>) {
        let (keys, protocols, objects) = (&*self.keys, &*self.protocols, &*self.objects);
        if proves(&received, keys, protocols) {
            self.proven = received.salt;
        }
        if let Some(note) = misfit(&received, protocols, &mut self.misfits) {
            emit.note(Note::warning(note));
        }
        if let Some(note) = no_object(&received, protocols, objects, &mut self.unreadable) {
            emit.note(Note::warning(note));
        }
        let secrets = Secrets { keys, salt: received.salt, proven: self.proven };
        let opener = FieldOpener { secrets, objects };
        let date = OfferDate::of(&received);
        let date = date.as_ref();
        emit.message(&KiMessage { received, protocols, opener: &opener, date });
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
                "the {side}'s stream{session} is encrypted, and {NO_KEY}"
            )));
        }
    }
}

/// A warning the first time a message does not fit its definition.
fn misfit(
    received: &Received<'_>,
    protocols: &Protocols,
    misfits: &mut Vec<(u8, u8)>,
) -> Option<String> {
    let Unit::Message { service, order } = received.unit else { return None };
    let message = protocols.message(service, order)?;
    let payload = received.payload();
    // This is fast for messages that fit their definition, as nearly all do.
    if message.fits(payload) || misfits.contains(&(service, order)) {
        return None;
    }
    misfits.push((service, order));
    Some(format!("{}: {}", protocols.name(message), message.fit(payload)))
}

/// A warning the first time a message holds an unreadable object.
fn no_object(
    received: &Received<'_>,
    protocols: &Protocols,
    objects: &KiObjects,
    reported: &mut Vec<(u8, u8)>,
) -> Option<String> {
    let Unit::Message { service, order } = received.unit else { return None };
    if reported.contains(&(service, order)) {
        return None;
    }
    let text = unreadable((service, order), received.payload(), protocols, objects)?;
    reported.push((service, order));
    Some(text)
}
