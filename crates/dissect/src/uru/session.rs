//! A conversation of Uru.

use std::sync::Arc;

use worldwire_core::json::{Given, Json};
use worldwire_core::{Error, Limits, Reader, Result, Side, Tree, Writer};
use worldwire_core::{Field, connection};
use worldwire_uru::connect::ConnectPacket;
use worldwire_uru::connection::{Connection, News, Received, Unit};
use worldwire_uru::crypt::key::ServerKind;
use worldwire_uru::file::keys::KeyRing;
use worldwire_uru::frame::{self, Service};

use super::game::NetMessages;
use crate::family::{Opening, Verdict};
use crate::item::{Message, Note};
use crate::session::{Emit, Interpreter};

/// Whether what either side sends first is a connect packet of Uru: the client's.
pub(super) fn recognize(opening: &Opening<'_>) -> Verdict {
    match Side::BOTH.map(|side| connects(&opening.first(side, 256))) {
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
    match ConnectPacket::decode_fields(&mut Reader::new(first)) {
        Ok(_) => Verdict::Yes,
        Err(error) if error.needed().is_some() => Verdict::NeedMore,
        Err(_) => Verdict::No,
    }
}

/// Emits pieces as they are: Uru's messages need no definitions.
#[derive(Clone, Debug)]
pub(super) struct Plain {
    pub(super) keys: Arc<KeyRing>,
}

/// Which key decrypts a service.
fn kind(service: Service) -> ServerKind {
    match service {
        Service::Gatekeeper => ServerKind::Gatekeeper,
        Service::Game => ServerKind::Game,
        Service::Auth | Service::File => ServerKind::Auth,
    }
}

impl Interpreter<Connection> for Plain {
    const FAMILY: &'static str = "uru";

    fn received(&mut self, received: Received<'_>, emit: &mut Emit<'_>) {
        emit.message(&received);
    }

    fn news(&mut self, news: News, emit: &mut Emit<'_>) {
        if let News::KeysNeeded { service } = news {
            let what = if self.keys.public(kind(service)).is_some() {
                "only the public half of its key was given, which clients have; the server's \
                 private key decrypts it"
            } else {
                "no key for it was given; give the shard's keys with --keys"
            };
            let name = service.name();
            emit.note(Note::problem(format!("the {name} connection is encrypted and {what}")));
        }
    }
}

impl Message for Received<'_> {
    fn push_name(&self, name: &mut String) {
        let (kind, message) = self.name();
        name.push_str(kind);
        name.push('.');
        name.push_str(message);
    }

    fn bytes(&self) -> &[u8] {
        self.bytes
    }

    fn is_message(&self) -> bool {
        connection::Piece::is_message(self)
    }

    fn tree<'t>(&'t self, tree: Tree<'t>, limits: &'t Limits) -> Tree<'t> {
        match self.unit {
            Unit::Message(Service::Game) => self.tree_opening(tree, limits, &NetMessages),
            _ => Received::tree(self, tree, limits),
        }
    }

    fn encode(&self, fields: &Json) -> Result<Vec<u8>> {
        match self.unit {
            Unit::Message(service) => {
                let (_, name) = self.name();
                let json = serde_json::json!({"name": name, "fields": fields});
                let given = Given::closing(&json, &NetMessages);
                frame::Message::from_json(service, self.side, given)?.to_bytes()
            }
            Unit::Connect => {
                let mut writer = Writer::new();
                ConnectPacket::from_json(fields.into())?.encode(&mut writer)?;
                Ok(writer.into_bytes())
            }
            Unit::Setup => Err(Error::value("a message, or the connect packet", "a setup packet")),
        }
    }
}
