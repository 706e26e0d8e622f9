//! A datagram of an MxO conversation.

use std::collections::BTreeSet;

use worldwire_core::connection::Piece as _;
use worldwire_core::json::{Given, Json};
use worldwire_core::{Error, Limits, Reader, Result, Tree, TreeBuilder, Value};
use worldwire_mxo::connection::{Received, Unit};
use worldwire_mxo::frame::{OBJECTS, Packet, Plain, RPC, RccFlags, Section};
use worldwire_mxo::message::{Operation, Section as Objects};

use super::objects::ObjectSections;
use crate::info::InfoFields;
use crate::message::Message;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DatagramKind {
    name: &'static str,
    /// Whether it decodes without an error.
    is_whole: bool,
}

/// Names of packets. The first is for packets with objects, the second for others with RPC
/// messages, and the rest for all remaining packets.
pub(super) const PACKETS: [&str; 5] =
    ["game.Objects", "game.Rpc", "game.Unknown", "game.Reset", "game.Ack"];
/// Names of plain packets.
pub(super) const PLAIN: [&str; 4] = ["setup.Hello", "setup.Answer", "setup.Ping", "setup.Other"];

impl DatagramKind {
    pub(super) fn of(received: &Received<'_>, sections: &ObjectSections<'_>) -> Self {
        let name = match received.unit {
            Unit::Packet { flags, .. } => packet(received, flags, sections).ok_or("game.Unknown"),
            _ => match Plain::decode(&mut Reader::new(received.bytes)) {
                Ok(Plain::Hello(_)) => Ok("setup.Hello"),
                Ok(Plain::Answer) => Ok("setup.Answer"),
                Ok(Plain::Ping(_)) => Ok("setup.Ping"),
                Ok(_) => Ok("setup.Other"),
                Err(_) => Err("setup.Other"),
            },
        };
        let (Ok(text) | Err(text)) = name;
        Self { name: text, is_whole: name.is_ok() }
    }
}

/// The name of a packet; `None` if it cannot be decoded.
fn packet(
    received: &Received<'_>,
    flags: RccFlags,
    sections: &ObjectSections<'_>,
) -> Option<&'static str> {
    let packet = sections.packet(&mut Reader::new(received.bytes)).ok()?;
    let has = |id: u8| packet.sections.iter().any(|section| section.id() == id);
    Some(match packet.sections.is_empty() {
        true if flags.contains(RccFlags::Reset) => "game.Reset",
        true => "game.Ack",
        false if has(OBJECTS) => "game.Objects",
        false if has(RPC) => "game.Rpc",
        false => "game.Unknown",
    })
}

/// A decrypted datagram, with everything needed to decode it.
#[derive(Clone, Debug)]
pub(super) struct MxoMessage<'i> {
    pub(super) received: Received<'i>,
    pub(super) kind: DatagramKind,
    pub(super) sections: &'i ObjectSections<'i>,
}

impl MxoMessage<'_> {
    /// Lists the views that a packet concerns, beside the packet's fields, where filters find them.
    fn add_views<'n>(&self, body: &[u8], reader: &mut Reader<'_, TreeBuilder<'n>>) {
        let mut packet = Reader::new(body);
        let Ok(packet) = self.sections.packet(&mut packet) else { return };
        let mut views = BTreeSet::new();
        for section in &packet.sections {
            if let Section::Objects(bytes) = section {
                let context = self.sections.context();
                let section = Objects::decode_after_id(&mut Reader::new(bytes), &context);
                let operations = section.iter().flat_map(|section| &section.operations);
                operations.for_each(|operation| about(operation, &mut views));
            }
        }
        if views.is_empty() {
            return;
        }
        let here = reader.place();
        let _ = reader.list("view", |reader| {
            views.iter().for_each(|view| {
                reader.leaf_from("", here, Value::Unsigned((*view).into()));
            });
            Ok(())
        });
    }
}

/// Adds the views that an operation concerns.
fn about(operation: &Operation<'_>, views: &mut BTreeSet<u16>) {
    match operation {
        Operation::Create(create) => drop(views.insert(create.new_view)),
        Operation::Delete(delete) => views.extend(&delete.views),
        Operation::PendingUpdate(pending) => drop(views.insert(pending.target)),
        Operation::Update(update) => drop(views.insert(update.view)),
        Operation::Undecoded(rest) => drop(views.insert(rest.view)),
        _ => {}
    }
}

impl Message for MxoMessage<'_> {
    fn push_name(&self, name: &mut String) {
        name.push_str(self.kind.name);
    }

    fn push_number(&self, text: &mut String) {
        if let Unit::Packet { number, .. } = self.received.unit {
            text.push(' ');
            text.push_str(&number.to_string());
        }
    }

    fn info_fields(&self, name: &str) -> InfoFields {
        super::info::fields(name)
    }

    fn bytes(&self) -> &[u8] {
        self.received.bytes
    }

    fn is_message(&self) -> bool {
        self.received.is_message()
    }

    fn is_whole(&self) -> bool {
        self.kind.is_whole
    }

    /// A note reports objects that cannot be decoded, and whether that is a problem.
    fn has_opaque_fields(&self, _: &Tree<'_>) -> bool {
        false
    }

    fn tree_of<'t>(&'t self, body: &'t [u8], tree: Tree<'t>, limits: &'t Limits) -> Tree<'t> {
        let is_packet = matches!(self.received.unit, Unit::Packet { .. });
        let layer = if is_packet { "decrypted" } else { "datagram" };
        let mut reader = Reader::traced_within(layer, body, tree, limits).opening(self.sections);
        let outcome = reader.record("fields", |reader| match is_packet {
            true => self.sections.packet(reader).map(drop),
            false => Plain::decode(reader).map(drop),
        });
        if outcome.is_ok() && is_packet {
            self.add_views(body, &mut reader);
        }
        let mut tree = reader.conclude(outcome.map_err(Error::closed)).0;
        // The type and the initialisation vector precede a packet.
        let head = if is_packet { 17 } else { 0 };
        tree.set_base(self.received.range.start + head);
        tree
    }

    fn encode(&self, fields: &Json) -> Result<Vec<u8>> {
        match self.received.unit {
            Unit::Packet { .. } => {
                let given = Given::closing(fields, self.sections);
                Packet::from_json(given, Some(self.received.side))?.to_bytes()
            }
            _ => Plain::from_json(fields)?.to_bytes(),
        }
    }
}
