//! TERA: its codec, its definitions, and how its conversations are recognised and read.

mod codecs;
mod definitions;
mod session;

use worldwire_core::{Limits, Reader, Result, Tree, TreeBuilder};
use worldwire_tera::connection::{Received, Unit};
use worldwire_tera::packet::Packets;

pub(crate) use codecs::CODECS;
pub use definitions::TeraDefinitions;
pub(crate) use definitions::is_of_library;
pub(crate) use session::{TeraSession, recognize};

use crate::Definitions;

/// Every name that an item can have.
pub(crate) fn names(definitions: &Definitions) -> Vec<String> {
    let handshake = ["handshake.Hello", "handshake.Key"].map(str::to_owned);
    let messages = definitions.tera.names().into_iter().map(|name| format!("tera.{name}"));
    handshake.into_iter().chain(messages).collect()
}

/// A message of a conversation, or a step of its handshake, with what is needed to read it.
#[derive(Clone, Debug)]
pub struct TeraItem<'i> {
    /// The piece.
    pub received: Received<'i>,
    pub(crate) packets: &'i std::sync::Arc<Packets>,
}

impl<'i> TeraItem<'i> {
    /// The messages of the build, as far as they are known.
    #[must_use]
    pub fn packets(&self) -> &'i std::sync::Arc<Packets> {
        self.packets
    }

    /// Appends the dotted name: `tera.S_LOGIN`, `handshake.Key`; a number where no map has a name.
    pub fn push_name(&self, name: &mut String) {
        match self.received.unit {
            Unit::Hello => name.push_str("handshake.Hello"),
            Unit::Key { .. } => name.push_str("handshake.Key"),
            Unit::Message { opcode } => {
                name.push_str("tera.");
                match self.packets.get(opcode) {
                    Some(packet) => name.push_str(packet.name),
                    None => name.push_str(&opcode.to_string()),
                }
            }
        }
    }

    /// The tree, in the memory of an old one; places count from the start of the sender's stream.
    #[must_use]
    pub fn tree(&self, tree: Tree<'i>, limits: &'i Limits) -> Tree<'i> {
        let reader = Reader::traced_within("stream", self.received.bytes, tree, limits);
        let mut reader = reader.opening(&**self.packets);
        let outcome = self.decode(&mut reader);
        let mut tree = reader.conclude(outcome).0;
        tree.set_base(self.received.offset);
        tree
    }

    fn decode(&self, reader: &mut Reader<'i, TreeBuilder<'i>>) -> Result<()> {
        match self.received.unit {
            Unit::Hello => reader.record("fields", |reader| reader.u32("hello").map(drop)),
            Unit::Key { number } => reader.record("fields", |reader| {
                let place = reader.place();
                reader.leaf_from("number", place, worldwire_core::Value::Unsigned(number.into()));
                let left = reader.remaining();
                reader.bytes("key", left).map(drop)
            }),
            Unit::Message { .. } => self.packets.decode(reader).map(drop),
        }
    }
}
