//! A message of a KI conversation.

use core::fmt::Write as _;

use worldwire_core::connection::Piece;
use worldwire_core::json::{Given, Json};
use worldwire_core::{Error, Limits, Reader, Result, Tree, Writer};
use worldwire_ki::connection::{Received, Unit};
use worldwire_ki::control::Control;
use worldwire_ki::frame::Frame;
use worldwire_ki::message::RawMessage;
use worldwire_ki::schema::Protocols;

use super::offer_date::OfferDate;
use super::opener::FieldOpener;
use crate::info::InfoFields;
use crate::message::{Message, NumberNames};

/// A control or DML message, with everything needed to decode it.
#[derive(Clone, Debug)]
pub(super) struct KiMessage<'i> {
    pub(super) received: Received<'i>,
    pub(super) protocols: &'i Protocols,
    pub(super) opener: &'i FieldOpener<'i>,
    pub(super) date: Option<&'i OfferDate>,
}

impl Message for KiMessage<'_> {
    /// `LOGIN.MSG_USER_AUTHEN_V3`, `control.SessionOffer`.
    fn push_name(&self, name: &mut String) {
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
                let protocols = self.protocols;
                push(name, protocols.service_names().name(service.into()), service);
                name.push('.');
                push(name, protocols.message(service, order).map(|message| &*message.tag), order);
            }
            Unit::Empty => name.push_str("data.empty"),
        }
    }

    fn bytes(&self) -> &[u8] {
        self.received.bytes
    }

    fn body(&self) -> &[u8] {
        let Received { message, bytes, .. } = &self.received;
        bytes.get(message.clone()).unwrap_or_default()
    }

    fn is_message(&self) -> bool {
        self.received.is_message()
    }

    fn is_whole(&self) -> bool {
        let inside = self.body();
        let mut reader = Reader::new(inside);
        match self.received.unit {
            Unit::Control(opcode) => {
                Control::decode(opcode, Some(self.received.side), &mut reader).is_ok()
            }
            Unit::Message { service, order } => {
                let definition = self.protocols.message(service, order);
                let large = inside.len() > usize::from(u16::MAX);
                // This is fast for messages that fit their definition, as nearly all do.
                definition.is_some_and(|message| message.fits(self.received.payload()))
                    || RawMessage::decode_named(&mut reader, large, self.protocols).is_ok()
            }
            Unit::Empty => true,
        }
    }

    fn has_contents(&self) -> bool {
        let Unit::Message { service, order } = self.received.unit else { return false };
        let objects = self.opener.objects;
        objects.classes().is_some()
            && self
                .protocols
                .message(service, order)
                .is_some_and(|message| objects.fields(message).next().is_some())
    }

    fn tree_of<'t>(&'t self, body: &'t [u8], tree: Tree<'t>, limits: &'t Limits) -> Tree<'t> {
        let Received { message, range, side, .. } = &self.received;
        let mut reader = Reader::traced_within("stream", body, tree, limits).opening(self.opener);
        let outcome = match self.received.unit {
            Unit::Control(opcode) => reader
                .record("fields", |reader| Control::decode(opcode, Some(*side), reader))
                .map(drop),
            Unit::Message { .. } => {
                let large = body.len() > usize::from(u16::MAX);
                RawMessage::decode_named(&mut reader, large, self.protocols).map(drop)
            }
            Unit::Empty => Ok(()),
        };
        let mut tree = reader.conclude(outcome).0;
        tree.set_base(range.start + message.start as u64);
        tree
    }

    fn info_fields(&self, name: &str) -> InfoFields {
        super::info::fields(name)
    }

    fn number_names(&self) -> Option<&dyn NumberNames> {
        self.date.map(|date| date as &dyn NumberNames)
    }

    /// The byte that follows the control message in most frames.
    fn push_members(&self, line: &mut String) {
        let Received { unit, bytes, side, .. } = self.received;
        if let Unit::Control(_) = unit
            && let Ok(frame) = Frame::decode(&mut Reader::new(bytes), Some(side))
            && let Some(trailer) = frame.trailer
        {
            let _ = write!(line, ",\"trailer\":{trailer}");
        }
    }

    /// A DML message with its header, as relays take it.
    fn encode(&self, fields: &Json) -> Result<Vec<u8>> {
        let Unit::Message { service, order } = self.received.unit else {
            return Err(Error::value("a DML message", "a control message"));
        };
        let mut writer = Writer::new();
        match self.protocols.message(service, order) {
            Some(definition) if fields.get("payload").is_none() => {
                let given = Given::closing(fields, self.opener);
                let payload = definition.payload(&definition.from_json(given)?)?;
                RawMessage { service, order, payload: payload.into() }.encode(&mut writer)?;
            }
            _ => RawMessage::from_json(fields)?.encode(&mut writer)?,
        }
        Ok(writer.into_bytes())
    }
}
