//! Loading a protocol from message XML.

use core::ops::Range;
use std::collections::BTreeMap;

use worldwire_core::{Diagnostic, Source};

use crate::types::{FieldType, FieldValue, Spelling};

use super::{FieldDef, Message, Protocol};
use crate::xml::records::{self, Element, Item};
use crate::xml::{Attribute, Diagnostics};

/// More fields in one message are refused.
const MAX_FIELDS: usize = 1024;

/// How to treat the irregularities of real files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// Report each irregularity as a warning.
    #[default]
    Lenient,
    /// Report each irregularity as an error.
    Strict,
}

/// The outcome of loading a file.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The protocol, unless the file has errors.
    pub protocol: Option<Protocol>,
    /// Warnings and errors, in the order of the lines where possible.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads a file of message XML.
#[must_use]
pub fn load(name: &str, bytes: &[u8], mode: Mode) -> Loaded {
    load_over(name, bytes, mode, |_| None)
}

/// Like [`load`]. `origin` returns the file that has already defined a service, if any.
pub(super) fn load_over(
    name: &str,
    bytes: &[u8],
    mode: Mode,
    origin: impl FnOnce(u8) -> Option<Box<str>>,
) -> Loaded {
    let (text, replaced) = match records::text(name, bytes) {
        Ok(text) => text,
        Err(refused) => return Loaded { protocol: None, diagnostics: vec![*refused] },
    };
    let mut diagnostics = Diagnostics::new(Source::new(name, &text), mode == Mode::Strict);
    if replaced {
        diagnostics.strict_error(
            &(0..0),
            "bytes that are not UTF-8 are read as U+FFFD",
            "save it as UTF-8",
        );
    }
    let read = records::read(&text, &mut diagnostics).and_then(|elements| {
        let info = info(&elements, &mut diagnostics)?;
        let protocol = protocol(name, &info, &elements, &mut diagnostics)?;
        Some((protocol, info.place))
    });
    let read = read.filter(|_| !diagnostics.has_errors());
    let protocol = read.map(|(protocol, place)| {
        if let Some(old) = origin(protocol.service) {
            let text = format!("service {} replaces the one in {old}", protocol.service);
            diagnostics.warning(&place, text, "");
        }
        protocol
    });
    Loaded { protocol, diagnostics: diagnostics.into_sorted() }
}

/// `_ProtocolInfo`.
struct Info {
    service: u8,
    kind: Box<str>,
    version: i32,
    description: Box<str>,
    place: Range<usize>,
}

fn info(elements: &[Element<'_>], diagnostics: &mut Diagnostics<'_>) -> Option<Info> {
    let element = elements.iter().find(|element| element.name == "_ProtocolInfo");
    let Some(element) = element else {
        let help = "a message definition contains _ProtocolInfo with a ServiceID";
        diagnostics.error(&(0..0), "no _ProtocolInfo", help);
        return None;
    };
    let items = element.records.first().map_or(&[][..], Vec::as_slice);
    let find = |name: &str| items.iter().find(|item| item.name == name);
    let Some(id) = find("ServiceID") else {
        diagnostics.error(
            &element.span,
            "no ServiceID",
            "it states which service the messages belong to",
        );
        return None;
    };
    let Ok(service) = id.text.trim().parse::<u8>() else {
        let text = format!("ServiceID \"{}\" is not a number from 0 to 255", shorten(&id.text));
        diagnostics.error(&id.span, text, "");
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
        diagnostics.strict_error(&element.span, format!("no {name}"), "");
    }
    let version = version.parse().unwrap_or(0);
    Some(Info { service, kind, version, description, place: id.span.clone() })
}

/// A message, still without its order number.
struct Draft {
    message: Message,
    given: Option<u8>,
    span: Range<usize>,
}

fn protocol(
    name: &str,
    info: &Info,
    elements: &[Element<'_>],
    diagnostics: &mut Diagnostics<'_>,
) -> Option<Protocol> {
    let mut drafts: Vec<Draft> = Vec::new();
    let mut by_tag: BTreeMap<&str, usize> = BTreeMap::new();
    for element in elements.iter().filter(|element| element.name != "_ProtocolInfo") {
        let Some(record) = element.records.first() else {
            let text = format!("message without RECORD: {} is skipped", element.name);
            diagnostics.strict_error(&element.span, text, "it is not assigned an order number");
            continue;
        };
        if element.records.len() > 1 {
            diagnostics.strict_error(
                &element.span,
                format!("{} has more than one RECORD", element.name),
                "",
            );
        }
        let draft = draft(info.service, element, record, diagnostics)?;
        match by_tag.get(element.name).and_then(|place| drafts.get_mut(*place)) {
            None => {
                by_tag.insert(element.name, drafts.len());
                drafts.push(draft);
            }
            Some(first) if first.message.is_like(&draft.message) => {
                let text = format!("duplicate message {} merged", element.name);
                let line = diagnostics.source.line(first.span.start);
                match (first.given, draft.given) {
                    (Some(given), Some(other)) if given != other => {
                        let text = format!("{text}, but its order {other} is dropped");
                        let help = format!("the first, on line {line}, has order {given}");
                        diagnostics.strict_error(&element.span, text, &help);
                    }
                    (given, other) => {
                        first.given = given.or(other);
                        diagnostics.warning(
                            &element.span,
                            text,
                            &format!("the first is on line {line}"),
                        );
                    }
                }
            }
            Some(first) => {
                let line = diagnostics.source.line(first.span.start);
                let text = format!("duplicate message {} has different fields", element.name);
                diagnostics.strict_error(
                    &element.span,
                    text,
                    &format!("it replaces the one on line {line}"),
                );
                let given = draft.given.or(first.given);
                *first = Draft { given, ..draft };
            }
        }
    }
    let explicit = drafts.first().is_some_and(|draft| draft.given.is_some());
    let messages =
        if explicit { numbered(drafts, diagnostics)? } else { sorted(drafts, diagnostics)? };
    let mut protocol = Protocol::assemble(info.service, &info.kind, name, messages);
    protocol.version = info.version;
    protocol.description.clone_from(&info.description);
    protocol.is_explicit = explicit;
    Some(protocol)
}

/// Uses the order numbers given in the file.
fn numbered(drafts: Vec<Draft>, diagnostics: &mut Diagnostics<'_>) -> Option<Vec<Message>> {
    let mut taken: BTreeMap<u8, Box<str>> = BTreeMap::new();
    let mut messages = Vec::with_capacity(drafts.len());
    for Draft { mut message, given, span } in drafts {
        let Some(order) = given else {
            let text =
                format!("{} has no _MsgOrder, but other messages have one; skipped", message.tag);
            diagnostics.strict_error(&span, text, "give it an unused number");
            continue;
        };
        if let Some(other) = taken.insert(order, message.tag.clone()) {
            let text = format!("{} and {other} both have order {order}", message.tag);
            diagnostics.error(&span, text, "give one of them a different number");
            return None;
        }
        message.order = order;
        messages.push(message);
    }
    Some(messages)
}

/// Numbers the messages by sorting their tags bytewise.
fn sorted(mut drafts: Vec<Draft>, diagnostics: &mut Diagnostics<'_>) -> Option<Vec<Message>> {
    drafts.sort_by(|a, b| a.message.tag.as_bytes().cmp(b.message.tag.as_bytes()));
    if let Some(beyond) = drafts.get(255) {
        let text = format!("{} messages, but only 255 can have numbers", drafts.len());
        diagnostics.error(&beyond.span, text, "");
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
            "{tag} states order {given}, but the order of the tags assigns {order} to it, \
             and {given} to {holder}"
        );
        let help = "the order of tags is used; number all messages or none";
        diagnostics.strict_error(&draft.span, text, help);
    }
    Some(drafts.into_iter().map(|draft| draft.message).collect())
}

fn draft(
    service: u8,
    element: &Element<'_>,
    record: &[Item<'_>],
    diagnostics: &mut Diagnostics<'_>,
) -> Option<Draft> {
    let mut draft = Draft {
        message: Message::with_fields(service, 0, element.name, Vec::new()),
        given: None,
        span: element.span.clone(),
    };
    let mut fields: Vec<FieldDef> = Vec::new();
    for item in record {
        let transfer = item.attribute("NOXFER").is_none_or(|no| !no.eq_ignore_ascii_case("TRUE"));
        if metadata(item, &mut draft, diagnostics)? {
            if transfer {
                let text = format!("{} lacks NOXFER=\"TRUE\", but is never sent", item.name);
                diagnostics.strict_error(&item.span, text, "add NOXFER=\"TRUE\"");
            }
            continue;
        }
        if !transfer {
            continue;
        }
        if item.name.starts_with('_') {
            let text = format!("{} is sent although its name begins with _", item.name);
            diagnostics.strict_error(
                &item.span,
                text,
                "add NOXFER=\"TRUE\" if it must not be sent",
            );
        }
        let Some(kind) = field_type(item, diagnostics) else {
            continue;
        };
        if fields.iter().any(|field| &*field.name == item.name) {
            diagnostics.strict_error(
                &item.span,
                format!("duplicate field {} in {}", item.name, element.name),
                "",
            );
        }
        let default = FieldValue::parse(kind, &item.text).unwrap_or_else(|| {
            let text =
                format!("\"{}\" is not a valid {kind}; the default is 0", shorten(&item.text));
            diagnostics.strict_error(&item.span, text, "");
            FieldValue::zero(kind)
        });
        if fields.len() == MAX_FIELDS {
            diagnostics.error(&item.span, format!("more than {MAX_FIELDS} fields"), "");
            return None;
        }
        fields.push(FieldDef { name: item.name.into(), kind, default });
    }
    draft.message.plan = fields.iter().map(|field| field.kind).collect();
    draft.message.fields = fields;
    Some(draft)
}

/// Reads a field if it is metadata. Returns whether it was.
fn metadata(item: &Item<'_>, draft: &mut Draft, diagnostics: &mut Diagnostics<'_>) -> Option<bool> {
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
                diagnostics.strict_error(&item.span, text, "");
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
                diagnostics.error(&item.span, text, "");
                return None;
            };
            if draft.given.is_some_and(|given| given != order) {
                diagnostics.strict_error(
                    &item.span,
                    "_MsgOrder and _MsgType differ",
                    "_MsgOrder is used",
                );
            }
            if draft.given.is_none() || item.name == "_MsgOrder" {
                draft.given = Some(order);
            }
        }
        _ => return Some(false),
    }
    Some(true)
}

/// Reads the type of a field. Accepts every misspelling found in real files.
fn field_type(item: &Item<'_>, diagnostics: &mut Diagnostics<'_>) -> Option<FieldType> {
    let attribute = |name: &str| item.attributes.iter().find(|it| it.name == name);
    let attribute = attribute("TYPE").or_else(|| {
        let misspelled = attribute("TPYE").or_else(|| attribute("TYP"));
        misspelled
            .or_else(|| item.attributes.iter().find(|it| it.name.eq_ignore_ascii_case("TYPE")))
    });
    let Some(Attribute { name, span, value }) = attribute else {
        if item.name == "GlobalID" {
            let help = "write TYPE=\"GID\"";
            diagnostics.strict_error(&item.span, "untyped GlobalID is read as GID", help);
            return Some(FieldType::Gid);
        }
        let text = format!("field without type: {} dropped", item.name);
        diagnostics.strict_error(&item.span, text, "");
        return None;
    };
    if *name != "TYPE" {
        diagnostics.strict_error(span, format!("attribute {name} is read as TYPE"), "write TYPE");
    }
    let Some((kind, spelling)) = FieldType::parse(value.trim()) else {
        let names = FieldType::ALL.map(FieldType::name);
        let near = worldwire_core::nearest(value, names);
        let help = near.map_or_else(String::new, |near| format!("did you mean {near}?"));
        let text = format!("unknown type \"{}\"; {} is dropped", shorten(value), item.name);
        diagnostics.strict_error(span, text, &help);
        return None;
    };
    match spelling {
        Spelling::Exact => {}
        Spelling::Case => {
            diagnostics.strict_error(
                span,
                format!("wrong case of {value}"),
                &format!("write {}", kind.name()),
            );
        }
        Spelling::Alias => {
            diagnostics.strict_error(
                span,
                format!("alias {value}"),
                &format!("write {}", kind.name()),
            );
        }
    }
    Some(kind)
}

/// The first 40 characters of the text.
fn shorten(text: &str) -> &str {
    let end = text.char_indices().nth(40).map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or(text)
}
