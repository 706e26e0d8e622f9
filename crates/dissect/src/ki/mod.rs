//! KI: its codecs, and how its conversations are recognised and read.

mod codecs;
mod objects;
mod secrets;
mod session;

use worldwire_core::{Limits, Reader, Tree};
use worldwire_ki::connection::{Received, Unit};
use worldwire_ki::control::{Control, Opcode};
use worldwire_ki::message::RawMessage;

pub(crate) use codecs::CODECS;
pub use objects::KiObjects;
pub(crate) use session::{KiSession, recognize};

use crate::Definitions;
use objects::Fillings;

/// Every name that an item can have.
pub(crate) fn names(definitions: &Definitions) -> Vec<String> {
    let control = Opcode::NAMES.iter().map(|(_, name)| format!("control.{name}"));
    let protocols = &definitions.ki;
    let messages = protocols
        .iter()
        .flat_map(|protocol| protocol.messages().iter().map(|message| protocols.name(message)));
    control.chain(messages).chain(["data.empty".to_owned()]).collect()
}

/// A control message or DML message of a conversation, with what is needed to read it.
#[derive(Clone, Debug)]
pub struct KiItem<'i> {
    /// The piece.
    pub received: Received<'i>,
    pub(crate) definitions: &'i Definitions,
    pub(crate) fillings: &'i Fillings<'i>,
}

impl<'i> KiItem<'i> {
    /// Appends the dotted name: `LOGIN.MSG_USER_AUTHEN_V3`, `control.SessionOffer`; numbers where
    /// no definition has a name.
    pub fn push_name(&self, name: &mut String) {
        let push = |name: &mut String, known: Option<&str>, number: u8| match known {
            Some(known) => name.push_str(known),
            None => name.push_str(&number.to_string()),
        };
        match self.received.unit {
            Unit::Control(opcode) => {
                name.push_str("control.");
                push(name, opcode.name(), opcode.0);
            }
            Unit::Message { service, order } => {
                let protocols = &self.definitions.ki;
                push(name, protocols.service_names().name(service.into()), service);
                name.push('.');
                push(name, protocols.message(service, order).map(|message| &*message.tag), order);
            }
            Unit::Empty => name.push_str("data.empty"),
        }
    }

    /// The tree, in the memory of an old one; places count from the start of the sender's stream.
    #[must_use]
    pub fn tree(&self, tree: Tree<'i>, limits: &'i Limits) -> Tree<'i> {
        let Received { message, bytes, range, side, .. } = &self.received;
        let inside = bytes.get(message.clone()).unwrap_or_default();
        let mut reader =
            Reader::traced_within("stream", inside, tree, limits).opening(self.fillings);
        let outcome = match self.received.unit {
            Unit::Control(opcode) => reader
                .record("fields", |reader| Control::decode(opcode, Some(*side), reader))
                .map(drop),
            Unit::Message { .. } => {
                let large = inside.len() > usize::from(u16::MAX);
                let protocols = &self.definitions.ki;
                RawMessage::decode_named(&mut reader, large, protocols).map(drop)
            }
            Unit::Empty => Ok(()),
        };
        let mut tree = reader.conclude(outcome).0;
        tree.set_base(range.start + message.start as u64);
        tree
    }
}
