//! Definitions of DML messages, from message XML or built in.
//!
//! Load a client's files with [`Protocols::add`]. A later definition of a service replaces an
//! earlier one. [`Protocols::built_in`] contains `LOGIN`, `SYSTEM`, `EXTENDEDBASE`, `PATCH` and a
//! part of `GAME`.

mod built_in;
pub mod classes;
mod load;

use worldwire_core::{Diagnostic, Names, nearest};

use crate::types::{FieldType, FieldValue};

pub use load::{Loaded, Mode, load};

/// The revision whose appended fields are known to the built-in tables.
pub const APPENDED_REVISION: &str = "r806919";

/// All known protocols, by service number.
#[derive(Clone, Debug)]
pub struct Protocols {
    /// Always 256 entries.
    services: Vec<Option<Box<Protocol>>>,
    /// The names of the services whose name is unique.
    names: Names,
}

impl Default for Protocols {
    fn default() -> Self {
        Self::new()
    }
}

/// One protocol: the messages of a service.
#[derive(Clone, Debug)]
pub struct Protocol {
    /// The service number, which every message carries.
    pub service: u8,
    /// `ProtocolType`, such as `LOGIN`. Several services may share one.
    pub kind: Box<str>,
    /// `ProtocolVersion`.
    pub version: i32,
    /// `ProtocolDescription`.
    pub description: Box<str>,
    /// The file that defines the protocol, or `built in`.
    pub origin: Box<str>,
    /// Whether the file numbers its messages. Otherwise they are numbered in the order of their
    /// sorted tags.
    pub is_explicit: bool,
    /// Whether messages are known to be missing, as in a built-in part of a protocol.
    pub is_partial: bool,
    messages: Vec<Message>,
    /// For every order number, the index of its message plus one; 0 for none.
    by_order: Box<[u8; 256]>,
    /// The tags, by order number.
    names: Names,
}

/// The definition of a message.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The service number.
    pub service: u8,
    /// The order number within the service, from 1.
    pub order: u8,
    /// The tag of the XML element, which is the message's name, such as `MSG_USER_AUTHEN_V3`.
    pub tag: Box<str>,
    /// `_MsgName`, if it differs from the tag. For display only: real files get it wrong.
    pub alias: Option<Box<str>>,
    /// `_MsgDescription`.
    pub description: Box<str>,
    /// `_MsgHandler`.
    pub handler: Box<str>,
    /// `_MsgAccessLvl`: the minimum access level that a session needs.
    pub access_level: u8,
    /// Whether the tag is a guess in the built-in tables.
    pub is_tag_inferred: bool,
    /// The fields on the wire.
    fields: Vec<FieldDef>,
    /// Fields that revision [`APPENDED_REVISION`] is known to append.
    appended: Vec<FieldDef>,
    /// The types of the fields, which the decoder walks.
    plan: Box<[FieldType]>,
}

/// The definition of a field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldDef {
    /// The tag of the field's XML element.
    pub name: Box<str>,
    /// The type.
    pub kind: FieldType,
    /// The value if a sender omits the field: the text of the element, or else 0 or empty.
    pub default: FieldValue<'static>,
}

impl FieldDef {
    /// The names of the field's values: fields named `Error` and `ErrorCode` hold
    /// [`LoginError`](crate::LoginError)s.
    #[must_use]
    pub fn names(&self) -> Option<&'static Names> {
        let number = matches!(self.kind, FieldType::Int | FieldType::Uint);
        let named = number && matches!(&*self.name, "Error" | "ErrorCode");
        named.then_some(crate::LoginError::NAMES)
    }

    pub(crate) fn new(name: &str, kind: FieldType) -> Self {
        Self { name: name.into(), kind, default: FieldValue::zero(kind) }
    }
}

impl Message {
    fn with_fields(service: u8, order: u8, tag: &str, fields: Vec<FieldDef>) -> Self {
        Self {
            service,
            order,
            tag: tag.into(),
            alias: None,
            description: Box::default(),
            handler: Box::default(),
            access_level: 0,
            is_tag_inferred: false,
            plan: fields.iter().map(|field| field.kind).collect(),
            fields,
            appended: Vec::new(),
        }
    }

    /// The fields, in wire order.
    #[must_use]
    pub fn fields(&self) -> &[FieldDef] {
        &self.fields
    }

    /// Fields that revision [`APPENDED_REVISION`] appends, if known.
    #[must_use]
    pub fn appended(&self) -> &[FieldDef] {
        &self.appended
    }

    /// The types of the fields.
    #[must_use]
    pub(crate) fn plan(&self) -> &[FieldType] {
        &self.plan
    }

    /// Whether both messages have the same fields on the wire, by name and type.
    fn is_like(&self, other: &Self) -> bool {
        same_fields(&self.fields, &other.fields)
    }
}

fn same_fields(a: &[FieldDef], b: &[FieldDef]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.name == b.name && a.kind == b.kind)
}

impl Protocol {
    /// Builds a protocol. Order numbers must be distinct and not 0.
    fn assemble(service: u8, kind: &str, origin: &str, mut messages: Vec<Message>) -> Self {
        messages.sort_by_key(|message| message.order);
        let mut by_order = Box::new([0; 256]);
        for (position, message) in (1..=u8::MAX).zip(&messages) {
            if let Some(slot) = by_order.get_mut(usize::from(message.order)) {
                *slot = position;
            }
        }
        let tags = messages.iter().map(|message| (message.order.into(), message.tag.clone()));
        let names = Names::from_pairs(tags);
        Self {
            service,
            kind: kind.into(),
            names,
            version: 0,
            description: Box::default(),
            origin: origin.into(),
            is_explicit: false,
            is_partial: false,
            messages,
            by_order,
        }
    }

    /// The messages, by order number.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The message with this order number.
    #[inline]
    #[must_use]
    pub fn message(&self, order: u8) -> Option<&Message> {
        let position = *self.by_order.get(usize::from(order))?;
        self.messages.get(usize::from(position).checked_sub(1)?)
    }

    /// The tags of the messages, by order number.
    #[must_use]
    pub fn message_names(&self) -> &Names {
        &self.names
    }

    /// The message with this tag.
    #[must_use]
    pub fn message_tagged(&self, tag: &str) -> Option<&Message> {
        self.messages.iter().find(|message| &*message.tag == tag)
    }

    /// The only message with this `_MsgName`.
    fn message_aliased(&self, alias: &str) -> Option<&Message> {
        let mut named = self.messages.iter().filter(|it| it.alias.as_deref() == Some(alias));
        named.next().filter(|_| named.next().is_none())
    }

    /// Copies, from another definition of the service, the fields that a later revision appends.
    fn learn_appended(&mut self, known: &Self) {
        for message in &mut self.messages {
            let Some(known) = known.message(message.order).filter(|m| m.tag == message.tag) else {
                continue;
            };
            // Definitions of the later revision already have the fields.
            if message.is_like(known) {
                message.appended.clone_from(&known.appended);
            }
        }
    }
}

impl Protocols {
    /// A collection without protocols.
    #[must_use]
    pub fn new() -> Self {
        Self { services: (0..256).map(|_| None).collect(), names: Names::from_pairs([]) }
    }

    /// The built-in protocols: `LOGIN`, `SYSTEM`, `EXTENDEDBASE`, `PATCH` and a part of `GAME`, as
    /// of the revision of 2024-11.
    #[must_use]
    pub fn built_in() -> Self {
        let mut protocols = Self::new();
        for protocol in built_in::protocols() {
            protocols.insert(protocol);
        }
        protocols
    }

    /// Loads a file of message XML and returns its diagnostics. The protocol replaces one with the
    /// same service number. If the file has errors, nothing changes.
    pub fn add(&mut self, name: &str, bytes: &[u8], mode: Mode) -> Vec<Diagnostic> {
        let origin = |service| {
            let old = self.service(service).filter(|old| &*old.origin != built_in::ORIGIN)?;
            Some(old.origin.clone())
        };
        let Loaded { protocol, diagnostics } = load::load_over(name, bytes, mode, origin);
        if let Some(protocol) = protocol {
            self.insert(protocol);
        }
        diagnostics
    }

    /// Adds a protocol and returns the one it replaced.
    pub fn insert(&mut self, mut protocol: Protocol) -> Option<Box<Protocol>> {
        let slot = self.services.get_mut(usize::from(protocol.service))?;
        if let Some(old) = slot {
            protocol.learn_appended(old);
        }
        let old = slot.replace(Box::new(protocol));
        let alone = self.iter().filter(|protocol| self.is_alone(protocol));
        let names = alone.map(|protocol| (protocol.service.into(), protocol.kind.clone()));
        self.names = Names::from_pairs(names.collect::<Vec<_>>());
        old
    }

    /// The unique service names, by number.
    #[must_use]
    pub fn service_names(&self) -> &Names {
        &self.names
    }

    /// All names in the definitions: services, messages, fields.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.iter().flat_map(|protocol| {
            let messages = protocol.messages.iter().flat_map(|message| {
                let fields = message.fields.iter().map(|field| &*field.name);
                core::iter::once(&*message.tag).chain(message.alias.as_deref()).chain(fields)
            });
            core::iter::once(&*protocol.kind).chain(messages)
        })
    }

    /// The protocols, by service number.
    pub fn iter(&self) -> impl Iterator<Item = &Protocol> {
        self.services.iter().filter_map(|slot| slot.as_deref())
    }

    /// The protocol of a service.
    #[inline]
    #[must_use]
    pub fn service(&self, service: u8) -> Option<&Protocol> {
        self.services.get(usize::from(service))?.as_deref()
    }

    /// The definition of a message, by two table lookups.
    #[inline]
    #[must_use]
    pub fn message(&self, service: u8, order: u8) -> Option<&Message> {
        self.service(service)?.message(order)
    }

    /// The protocols with this name: a `ProtocolType` or a service number.
    pub fn services_named<'p>(&'p self, name: &str) -> impl Iterator<Item = &'p Protocol> {
        let number = name.parse::<u8>().ok();
        self.iter()
            .filter(move |protocol| &*protocol.kind == name || number == Some(protocol.service))
    }

    /// The message with this name: `LOGIN.MSG_PING`, `7.MSG_PING`, `7.27`. Its `_MsgName` is
    /// accepted in place of its tag if no other message of the service has the same `_MsgName`. If
    /// services share the name, the first match is returned.
    #[must_use]
    pub fn message_named(&self, name: &str) -> Option<&Message> {
        let (service, message) = name.split_once('.')?;
        self.services_named(service).find_map(|protocol| {
            let tagged = protocol.message_tagged(message);
            let numbered = || protocol.message(message.parse().ok()?);
            tagged.or_else(numbered).or_else(|| protocol.message_aliased(message))
        })
    }

    /// The name of a service: its `ProtocolType`, or its number if another service has the same
    /// type.
    #[must_use]
    pub fn service_name(&self, service: u8) -> String {
        match self.service(service) {
            Some(protocol) if self.is_alone(protocol) => protocol.kind.to_string(),
            _ => service.to_string(),
        }
    }

    /// The name of a message, such as `LOGIN.MSG_USER_AUTHEN_V3`, by which [`Self::message_named`]
    /// finds it.
    #[must_use]
    pub fn name(&self, message: &Message) -> String {
        format!("{}.{}", self.service_name(message.service), message.tag)
    }

    /// The message that was probably meant by an unknown name: one with the same tag in another
    /// service, or else the one with the most similar name.
    #[must_use]
    pub fn suggest(&self, wrong: &str) -> Option<String> {
        let mut names = Vec::new();
        for protocol in self.iter() {
            let service = self.service_name(protocol.service);
            for message in &protocol.messages {
                names.push((format!("{service}.{}", message.tag), &*message.tag));
            }
        }
        let tag = wrong.rsplit('.').next().unwrap_or(wrong);
        let same = || names.iter().find(|(_, own)| own.eq_ignore_ascii_case(tag));
        let near = || nearest(wrong, names.iter().map(|(name, _)| name.as_str()));
        let near_tag = || {
            let near = nearest(tag, names.iter().map(|(_, own)| *own))?;
            names.iter().find(|(_, own)| *own == near)
        };
        let found = same().map(|(name, _)| name.as_str()).or_else(near);
        found.or_else(|| near_tag().map(|(name, _)| name.as_str())).map(str::to_owned)
    }

    fn is_alone(&self, protocol: &Protocol) -> bool {
        !protocol.kind.is_empty()
            && !protocol.kind.contains('.')
            && protocol.kind.parse::<u8>().is_err()
            && self.iter().filter(|other| other.kind == protocol.kind).count() == 1
    }
}
