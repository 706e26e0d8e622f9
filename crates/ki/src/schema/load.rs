//! Message XML to a protocol.

use core::ops::Range;
use std::collections::BTreeMap;

use worldwire_core::{Diagnostic, Source};

use crate::types::{FieldType, FieldValue, Spelling};

use super::xml::{self, Element, Item, Notes};
use super::{FieldDef, Message, Protocol};

/// The most fields of one message.
const MAX_FIELDS: usize = 1024;

/// What becomes of the oddities that real files have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// Each is a warning.
    #[default]
    Lenient,
    /// Each is an error.
    Strict,
}

/// What came of a file.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The protocol, unless something in the file cannot stand.
    pub protocol: Option<Protocol>,
    /// What is to be said about the file, in the order of its lines as far as it goes.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads a file of message XML.
#[must_use]
pub fn load(name: &str, bytes: &[u8], mode: Mode) -> Loaded {
    load_over(name, bytes, mode, |_| None)
}

/// The same; `origin` says which file has defined the service already.
pub(super) fn load_over(
    name: &str,
    bytes: &[u8],
    mode: Mode,
    origin: impl FnOnce(u8) -> Option<Box<str>>,
) -> Loaded {
    let (text, replaced) = match xml::text(name, bytes) {
        Ok(text) => text,
        Err(refused) => return Loaded { protocol: None, diagnostics: vec![*refused] },
    };
    let mut notes = Notes::new(Source::new(name, &text), mode == Mode::Strict);
    if replaced {
        notes.odd(&(0..0), "bytes that are not UTF-8 are read as U+FFFD", "store it as UTF-8");
    }
    let read = xml::document(&text, &mut notes).and_then(|document| {
        let info = info(&document.elements, &mut notes)?;
        let protocol = protocol(name, &info, &document.elements, &mut notes)?;
        Some((protocol, info.place))
    });
    let read = read.filter(|_| !notes.failed());
    let protocol = read.map(|(protocol, place)| {
        if let Some(old) = origin(protocol.service) {
            let text = format!("service {} replaces the one in {old}", protocol.service);
            notes.note(&place, text, "");
        }
        protocol
    });
    Loaded { protocol, diagnostics: notes.into_said() }
}

/// `_ProtocolInfo`.
struct Info {
    service: u8,
    kind: Box<str>,
    version: i32,
    description: Box<str>,
    place: Range<usize>,
}

fn info(elements: &[Element<'_>], notes: &mut Notes<'_>) -> Option<Info> {
    let element = elements.iter().find(|element| element.name == "_ProtocolInfo");
    let Some(element) = element else {
        let help = "a message definition has _ProtocolInfo with ServiceID";
        notes.error(&(0..0), "no _ProtocolInfo", help);
        return None;
    };
    let items = element.records.first().map_or(&[][..], Vec::as_slice);
    let find = |name: &str| items.iter().find(|item| item.name == name);
    let Some(id) = find("ServiceID") else {
        notes.error(&element.span, "no ServiceID", "it says which service the messages belong to");
        return None;
    };
    let Ok(service) = id.text.trim().parse::<u8>() else {
        let text = format!("ServiceID \"{}\" is not a number from 0 to 255", shorten(&id.text));
        notes.error(&id.span, text, "");
        return None;
    };
    let mut missing = Vec::new();
    let mut text = |name: &'static str| match find(name) {
        Some(item) => item.text.trim(),
        None => {
            missing.push(name);
            ""
        }
    };
    let kind = text("ProtocolType").into();
    let version = text("ProtocolVersion");
    let description = text("ProtocolDescription").into();
    for name in missing {
        notes.odd(&element.span, format!("no {name}"), "");
    }
    let version = version.parse().unwrap_or(0);
    Some(Info { service, kind, version, description, place: id.span.clone() })
}

/// A message before it has its number.
struct Draft {
    message: Message,
    given: Option<u8>,
    span: Range<usize>,
}

fn protocol(
    name: &str,
    info: &Info,
    elements: &[Element<'_>],
    notes: &mut Notes<'_>,
) -> Option<Protocol> {
    let mut drafts: Vec<Draft> = Vec::new();
    let mut by_tag: BTreeMap<&str, usize> = BTreeMap::new();
    for element in elements.iter().filter(|element| element.name != "_ProtocolInfo") {
        let Some(record) = element.records.first() else {
            let text = format!("message without RECORD: {} is skipped", element.name);
            notes.odd(&element.span, text, "it takes no order number");
            continue;
        };
        if element.records.len() > 1 {
            notes.odd(&element.span, format!("{} has more than one RECORD", element.name), "");
        }
        let draft = draft(info.service, element, record, notes)?;
        match by_tag.get(element.name).and_then(|place| drafts.get_mut(*place)) {
            None => {
                by_tag.insert(element.name, drafts.len());
                drafts.push(draft);
            }
            Some(first) if first.message.is_like(&draft.message) => {
                let text = format!("duplicate message {} merged", element.name);
                let line = notes.source.line(first.span.start);
                match (first.given, draft.given) {
                    (Some(given), Some(other)) if given != other => {
                        let text = format!("{text}, but its order {other} is lost");
                        let help = format!("the first, in line {line}, has order {given}");
                        notes.odd(&element.span, text, &help);
                    }
                    (given, other) => {
                        first.given = given.or(other);
                        notes.note(&element.span, text, &format!("the first is in line {line}"));
                    }
                }
            }
            Some(first) => {
                let line = notes.source.line(first.span.start);
                let text = format!("duplicate message {} has other fields", element.name);
                notes.odd(&element.span, text, &format!("it replaces the one in line {line}"));
                let given = draft.given.or(first.given);
                *first = Draft { given, ..draft };
            }
        }
    }
    let explicit = drafts.first().is_some_and(|draft| draft.given.is_some());
    let messages = if explicit { numbered(drafts, notes)? } else { sorted(drafts, notes)? };
    let mut protocol = Protocol::assemble(info.service, &info.kind, name, messages);
    protocol.version = info.version;
    protocol.description.clone_from(&info.description);
    protocol.is_explicit = explicit;
    Some(protocol)
}

/// The file numbers its messages.
fn numbered(drafts: Vec<Draft>, notes: &mut Notes<'_>) -> Option<Vec<Message>> {
    let mut taken: BTreeMap<u8, Box<str>> = BTreeMap::new();
    let mut messages = Vec::with_capacity(drafts.len());
    for Draft { mut message, given, span } in drafts {
        let Some(order) = given else {
            let text = format!("{} has no _MsgOrder, but others have: skipped", message.tag);
            notes.odd(&span, text, "give it a number that is free");
            continue;
        };
        if let Some(other) = taken.insert(order, message.tag.clone()) {
            let text = format!("{} and {other} both have order {order}", message.tag);
            notes.error(&span, text, "give one of them another number");
            return None;
        }
        message.order = order;
        messages.push(message);
    }
    Some(messages)
}

/// The bytes of the tags decide.
fn sorted(mut drafts: Vec<Draft>, notes: &mut Notes<'_>) -> Option<Vec<Message>> {
    drafts.sort_by(|a, b| a.message.tag.as_bytes().cmp(b.message.tag.as_bytes()));
    if let Some(beyond) = drafts.get(255) {
        let text = format!("{} messages, at most 255 have a number", drafts.len());
        notes.error(&beyond.span, text, "");
        return None;
    }
    for (order, draft) in (1..=u8::MAX).zip(&mut drafts) {
        draft.message.order = order;
    }
    for draft in &drafts {
        let Some(given) = draft.given.filter(|given| *given != draft.message.order) else {
            continue;
        };
        let holder = drafts.get(usize::from(given) - 1);
        let holder = holder.map_or("no other message", |holder| &*holder.message.tag);
        let Message { tag, order, .. } = &draft.message;
        let text = format!(
            "{tag} states order {given}, but the order of tags makes it {order} and {holder} \
             {given}"
        );
        notes.error(&draft.span, text, "number all messages or none");
        return None;
    }
    Some(drafts.into_iter().map(|draft| draft.message).collect())
}

fn draft(
    service: u8,
    element: &Element<'_>,
    record: &[Item<'_>],
    notes: &mut Notes<'_>,
) -> Option<Draft> {
    let mut draft = Draft {
        message: Message::with_fields(service, 0, element.name, Vec::new()),
        given: None,
        span: element.span.clone(),
    };
    let mut fields: Vec<FieldDef> = Vec::new();
    for item in record {
        if metadata(item, &mut draft, notes)? {
            continue;
        }
        let transfer = item.attribute("NOXFER").is_none_or(|no| !no.eq_ignore_ascii_case("TRUE"));
        if !transfer {
            continue;
        }
        if item.name.starts_with('_') {
            let text = format!("{} is sent although its name begins with _", item.name);
            notes.odd(&item.span, text, "NOXFER=\"TRUE\" keeps it off");
        }
        let Some(kind) = field_type(item, notes) else {
            continue;
        };
        if fields.iter().any(|field| &*field.name == item.name) {
            notes.odd(&item.span, format!("duplicate field {} in {}", item.name, element.name), "");
        }
        let default = FieldValue::parse(kind, &item.text).unwrap_or_else(|| {
            let text =
                format!("\"{}\" is not a valid {kind}; the default is 0", shorten(&item.text));
            notes.odd(&item.span, text, "");
            FieldValue::zero(kind)
        });
        if fields.len() == MAX_FIELDS {
            notes.error(&item.span, format!("more than {MAX_FIELDS} fields"), "");
            return None;
        }
        fields.push(FieldDef { name: item.name.into(), kind, default });
    }
    draft.message.plan = fields.iter().map(|field| field.kind).collect();
    draft.message.fields = fields;
    Some(draft)
}

/// Reads a field about the message itself; says whether it was one.
fn metadata(item: &Item<'_>, draft: &mut Draft, notes: &mut Notes<'_>) -> Option<bool> {
    let text = item.text.trim();
    match item.name {
        "_MsgName" => {
            draft.message.alias = (text != &*draft.message.tag).then(|| text.into());
        }
        "_MsgDescription" => draft.message.description = text.into(),
        "_MsgHandler" => draft.message.handler = text.into(),
        "_MsgAccessLvl" => {
            draft.message.access_level = text.parse().unwrap_or_else(|_| {
                let text = format!("access level \"{}\" is not a number; using 0", shorten(text));
                notes.odd(&item.span, text, "");
                0
            });
        }
        "_MsgOrder" | "_MsgType" => {
            let Some(order) = text.parse::<u8>().ok().filter(|order| *order > 0) else {
                let tag = &draft.message.tag;
                let text = format!(
                    "{} \"{}\" of {tag} is not a number from 1 to 255",
                    item.name,
                    shorten(text)
                );
                notes.error(&item.span, text, "");
                return None;
            };
            if draft.given.is_some_and(|given| given != order) {
                notes.odd(&item.span, "_MsgOrder and _MsgType differ", "_MsgOrder counts");
            }
            if draft.given.is_none() || item.name == "_MsgOrder" {
                draft.given = Some(order);
            }
        }
        _ => return Some(false),
    }
    Some(true)
}

/// The type of a field, with all the ways in which real files misspell it.
fn field_type(item: &Item<'_>, notes: &mut Notes<'_>) -> Option<FieldType> {
    let attribute = |name: &str| item.attributes.iter().find(|(key, ..)| *key == name);
    let found = attribute("TYPE").or_else(|| {
        let odd = attribute("TPYE").or_else(|| attribute("TYP"));
        odd.or_else(|| item.attributes.iter().find(|(key, ..)| key.eq_ignore_ascii_case("TYPE")))
    });
    let Some((key, place, text)) = found else {
        if item.name == "GlobalID" {
            notes.odd(&item.span, "untyped GlobalID, read as GID", "write TYPE=\"GID\"");
            return Some(FieldType::Gid);
        }
        notes.odd(&item.span, format!("field without type: {} dropped", item.name), "");
        return None;
    };
    if *key != "TYPE" {
        notes.odd(place, format!("attribute {key}, read as TYPE"), "write TYPE");
    }
    let Some((kind, spelling)) = FieldType::parse(text.trim()) else {
        let names = FieldType::ALL.map(FieldType::name);
        let near = worldwire_core::nearest(text, names);
        let help = near.map_or_else(String::new, |near| format!("did you mean {near}?"));
        let text = format!("unknown type \"{}\": {} dropped", shorten(text), item.name);
        notes.odd(place, text, &help);
        return None;
    };
    match spelling {
        Spelling::Exact => {}
        Spelling::Case => notes.odd(place, format!("case of {text}"), kind.name()),
        Spelling::Alias => notes.odd(place, format!("alias {text}"), kind.name()),
    }
    Some(kind)
}

/// At most 40 characters of a text.
fn shorten(text: &str) -> &str {
    let end = text.char_indices().nth(40).map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or(text)
}
