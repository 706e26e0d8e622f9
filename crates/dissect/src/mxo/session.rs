//! Recognises MxO conversations and reads those on the game channel.

use worldwire_core::{Reader, Side};
use worldwire_mxo::connection::{Connection, MissingKey, News, Received, Unit};
use worldwire_mxo::crypt::{KeyFile, KnownSession};
use worldwire_mxo::frame::{Datagram, Hello, Plain, Sealed, SequenceNumber};

use super::definitions::MxoObjects;
use super::message::{DatagramKind, MxoMessage};
use super::views::MxoViews;
use super::{FAMILY, login};
use crate::family::{Opening, Start, Verdict};
use crate::item::{Note, NoteKind};
use crate::knowledge::Facts;
use crate::session::{Emit, Interpreter};

/// The server's port.
const PORT: u16 = 10_000;

/// Recognises datagrams of the game channel: a hello, a reply to one, or a ping; encrypted
/// datagrams on the server's port; or several encrypted datagrams on any port. Tolerates damaged
/// and lost datagrams by examining the ones after them.
pub(super) fn recognize(opening: &Opening<'_>) -> Verdict {
    /// The maximum number of datagrams examined.
    const MAX_PIECES: usize = 16;
    if !opening.datagrams {
        return login::recognize(opening);
    }
    let sides = |is_right: bool| if is_right { Verdict::Yes } else { Verdict::Swapped };
    let port = by_port(opening);
    let mut is_likely = port.is_some();
    let mut sealed = Vec::new();
    for piece in opening.pieces.iter().take(MAX_PIECES) {
        match Datagram::decode(&mut Reader::new(&piece.bytes)) {
            Ok(Datagram::Plain(Plain::Hello(_))) => return sides(piece.side == Side::Client),
            Ok(Datagram::Plain(Plain::Answer)) => return sides(piece.side == Side::Server),
            Ok(Datagram::Plain(Plain::Ping(_))) => return port.unwrap_or(Verdict::Yes),
            Ok(Datagram::Sealed(datagram)) => match port {
                Some(verdict) => return verdict,
                None => sealed.push(datagram),
            },
            _ => is_likely |= Plain::resembles_setup(&piece.bytes),
        }
    }
    if are_sealed(&sealed) {
        // Servers usually have the lower port.
        return sides(opening.ends.is_none_or(|[client, server]| client.port() >= server.port()));
    }
    is_likely |= !sealed.is_empty();
    let is_early = opening.pieces.len() < MAX_PIECES;
    if is_likely && is_early { Verdict::NeedMore } else { Verdict::No }
}

/// Whether the initial hello is missing.
pub(super) fn begins_late(opening: &Opening<'_>) -> bool {
    if !opening.datagrams {
        return false;
    }
    let mut datagrams =
        opening.pieces.iter().map(|it| Datagram::decode(&mut Reader::new(&it.bytes)));
    !datagrams.any(|it| matches!(it, Ok(Datagram::Plain(Plain::Hello(_)))))
}

/// Whether datagrams that look encrypted really are encrypted: there must be enough of them, with
/// unrelated first blocks. A packet starts with a checksum, so its first block always differs.
fn are_sealed(datagrams: &[Sealed<'_>]) -> bool {
    const ENOUGH: usize = 4;
    const MAX_ALIKE: usize = 4;
    let block = |datagram: &Sealed<'_>| datagram.cipher.first_chunk::<16>().copied();
    let blocks: Vec<[u8; 16]> = datagrams.iter().filter_map(block).take(ENOUGH).collect();
    let differ = |pair: &[[u8; 16]]| {
        let [one, other] = pair else { return true };
        one.iter().zip(other).filter(|(one, other)| one == other).count() <= MAX_ALIKE
    };
    blocks.len() == ENOUGH && blocks.windows(2).all(differ)
}

/// Which end is the server, judging by the port.
fn by_port(opening: &Opening<'_>) -> Option<Verdict> {
    match opening.ends?.map(|end| end.port() == PORT) {
        [false, true] => Some(Verdict::Yes),
        [true, false] => Some(Verdict::Swapped),
        _ => None,
    }
}

/// The state of reading one conversation.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    views: MxoViews,
    /// The last hello. A different one starts a new session.
    hello: Option<Hello>,
    /// Whether it learns sessions from relays on the margin channel.
    learns: bool,
    /// Whether the session of the last hello must be looked up.
    is_new: bool,
}

impl Reading {
    pub(super) fn new(start: &Start<'_>) -> Self {
        let objects = start.definitions.part::<MxoObjects>();
        let views = MxoViews::new(objects.objects().clone());
        Self { views, hello: None, learns: false, is_new: false }
    }

    /// Lets a relay learn the session that its client has opened on the margin channel.
    pub(super) fn learning(self) -> Self {
        Self { learns: true, ..self }
    }
}

impl Interpreter<Connection> for Reading {
    const FAMILY: &'static str = FAMILY;

    fn fork(&self) -> Option<(Self, usize)> {
        /// A view with its attributes.
        const VIEW: usize = 512;
        Some((self.clone(), size_of::<Self>() + VIEW * self.views.replica().len()))
    }

    fn received(&mut self, received: Received<'_>, emit: &mut Emit<'_>) {
        let (side, bytes) = (received.side, received.bytes);
        let is_packet = matches!(received.unit, Unit::Packet { .. });
        match &received.unit {
            Unit::Hello(hello) => {
                self.is_new = self.learns;
                let before = self.hello.replace(hello.clone());
                if before.is_some_and(|before| before != *hello) {
                    self.views.reset();
                }
            }
            // If the head cannot be decoded, that is reported below.
            Unit::Packet { .. } => drop(self.views.enter(side, bytes)),
            _ => {}
        }
        let sections = self.views.sections(side);
        let kind = DatagramKind::of(&received, &sections);
        emit.message(&MxoMessage { received, kind, sections: &sections });
        if !is_packet {
            return;
        }
        match self.views.take(side, bytes, emit.packet()) {
            Ok(notes) => notes.into_iter().for_each(|note| emit.note(note)),
            // The packet's tree already contains the error. Only exceeded limits on views are
            // reported here.
            Err(error) => {
                let packet = emit.packet().map_or(String::new(), |it| format!("packet {it}: "));
                emit.note(Note::problem(format!("{packet}objects: {error}")));
            }
        }
    }

    fn secrets(&self, connection: &Connection) -> Option<String> {
        let sessions = connection.opened_with();
        let tables: Vec<String> = sessions.iter().map(KeyFile::format_session).collect();
        (!tables.is_empty()).then(|| tables.join("\n"))
    }

    fn is_confirmed(&self, connection: &Connection) -> bool {
        connection.is_confirmed()
    }

    fn waits(&self, _: &Connection) -> bool {
        self.is_new
    }

    fn learn(&mut self, connection: &mut Connection, facts: &Facts) {
        self.is_new = false;
        let Some(hello) = &self.hello else { return };
        let name = login::session_fact(hello.character_uid);
        if let Some(session) = facts.get::<KnownSession>(FAMILY, &name) {
            connection.add_session(session);
        }
    }

    fn news(&mut self, news: News, emit: &mut Emit<'_>) {
        match news {
            News::KeysNeeded { side, missing } => {
                emit.about(side);
                emit.note(Note::problem(advice_on_key(side, missing)));
            }
            News::OtherSession { id, named } => emit.note(Note::warning(format!(
                "the key of session {id:#x} decrypts the packets, but the hello names session \
                 {named:#x}; the hello is damaged, or the ID in the key file is wrong"
            ))),
            News::Missing { side, first, last } => {
                emit.about(side);
                emit.note(Note::new(NoteKind::Gap, missing_packets(side, first, last)));
            }
            News::Discarded { to, messages } => {
                emit.about(to.other());
                emit.note(Note::problem(discarded(to, messages)));
            }
            _ => {}
        }
    }
}

fn discarded(to: Side, messages: usize) -> String {
    let (subject, were) = match messages {
        1 => ("a message".to_owned(), "was"),
        _ => (format!("{messages} messages"), "were"),
    };
    format!(
        "{subject} added for the {to} {were} discarded because the sequence was reset or another \
         session began"
    )
}

fn missing_packets(side: Side, first: SequenceNumber, last: SequenceNumber) -> String {
    match last.ahead_of(first) {
        0 => format!("packet {first} from the {side} is missing"),
        more => {
            format!("packets {first} to {last} from the {side} are missing ({} packets)", more + 1)
        }
    }
}

fn advice_on_key(side: Side, missing: MissingKey) -> String {
    match missing {
        MissingKey::NotGiven => format!(
            "packets from the {side} are encrypted, and no key was given; supply the session's key \
             with --keys"
        ),
        MissingKey::NoneFits { keys: 1 } => format!(
            "the given key does not decrypt packets from the {side}; supply this session's key with \
             --keys"
        ),
        MissingKey::NoneFits { keys } => format!(
            "none of the {keys} given keys decrypts packets from the {side}; supply this session's \
             key with --keys"
        ),
        _ => format!("the key for packets from the {side} is missing: {missing}"),
    }
}
