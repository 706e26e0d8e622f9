//! A conversation of MxO: the game channel.

use worldwire_core::{Reader, Side};
use worldwire_mxo::connection::{Connection, MissingKey, News, Received, Unit};
use worldwire_mxo::frame::{Datagram, Hello, Plain};

use super::MxoObjects;
use super::message::{Kind, MxoMessage};
use super::views::MxoViews;
use crate::family::{Opening, Start, Verdict};
use crate::item::Note;
use crate::session::{Emit, Interpreter};

/// The server's port.
const PORT: u16 = 10_000;

/// Whether what was said first are datagrams of the game channel: a hello, an answer, a ping; or
/// encrypted ones from or to its port.
pub(super) fn recognize(opening: &Opening<'_>) -> Verdict {
    if !opening.datagrams {
        return Verdict::No;
    }
    let sides = |is_right: bool| if is_right { Verdict::Yes } else { Verdict::Swapped };
    for piece in opening.pieces {
        match Datagram::decode(&mut Reader::new(&piece.bytes)) {
            Ok(Datagram::Plain(Plain::Hello(_))) => return sides(piece.side == Side::Client),
            Ok(Datagram::Plain(Plain::Answer)) => return sides(piece.side == Side::Server),
            Ok(Datagram::Plain(Plain::Ping(_))) => return by_port(opening, Verdict::Yes),
            Ok(Datagram::Sealed(_)) => match by_port(opening, Verdict::No) {
                Verdict::No => {}
                verdict => return verdict,
            },
            _ => {}
        }
    }
    Verdict::No
}

/// Which end is the server's by its port.
fn by_port(opening: &Opening<'_>, otherwise: Verdict) -> Verdict {
    match opening.ends.map(|ends| ends.map(|end| end.port() == PORT)) {
        Some([false, true]) => Verdict::Yes,
        Some([true, false]) => Verdict::Swapped,
        _ => otherwise,
    }
}

/// What is known while a conversation is read.
#[derive(Debug)]
pub(super) struct Reading {
    views: MxoViews,
    /// The last hello: with another one another session begins.
    hello: Option<Hello>,
}

impl Reading {
    pub(super) fn new(start: &Start<'_>) -> Self {
        let objects = start.definitions.part::<MxoObjects>();
        Self { views: MxoViews::new(objects.objects().clone()), hello: None }
    }
}

impl Interpreter<Connection> for Reading {
    const FAMILY: &'static str = "mxo";

    fn received(&mut self, received: Received<'_>, emit: &mut Emit<'_>) {
        let (side, bytes) = (received.side, received.bytes);
        let is_packet = matches!(received.unit, Unit::Packet { .. });
        if let Unit::Hello(hello) = &received.unit
            && self.hello.replace(hello.clone()).is_some_and(|before| before != *hello)
        {
            self.views.begin_anew();
        }
        let sections = self.views.sections(side);
        let kind = Kind::of(&received, &sections);
        emit.message(&MxoMessage { received, kind, sections: &sections });
        if !is_packet {
            return;
        }
        match self.views.take(side, bytes, emit.packet()) {
            Ok(said) => said.into_iter().for_each(|note| emit.note(note)),
            // What keeps a packet from being read stands in its tree; the views keep their limits.
            Err(error) => {
                let packet = emit.packet().map_or(String::new(), |it| format!("packet {it}: "));
                emit.note(Note::problem(format!("{packet}objects: {error}")));
            }
        }
    }

    fn news(&mut self, news: News, emit: &mut Emit<'_>) {
        if let News::KeysNeeded { side, missing } = news {
            emit.about(side);
            emit.note(Note::problem(describe(side, missing)));
        }
    }
}

/// What to do about a key that is missing.
fn describe(side: Side, missing: MissingKey) -> String {
    match missing {
        MissingKey::NotGiven => format!(
            "what the {side} sends is encrypted and no key for it was given; give the session's \
             key with --keys"
        ),
        MissingKey::NoneFits { keys: 1 } => format!(
            "the key that was given does not open what the {side} sends; give the key of this \
             session with --keys"
        ),
        MissingKey::NoneFits { keys } => format!(
            "none of the {keys} keys that were given opens what the {side} sends; give the key of \
             this session with --keys"
        ),
        MissingKey::OtherSession { id, named } => format!(
            "the key of session {id:#x} opens what the {side} sends, but the hello names session \
             {named:#x}; correct the id in the key file"
        ),
        _ => format!("the key of what the {side} sends is missing: {missing}"),
    }
}
