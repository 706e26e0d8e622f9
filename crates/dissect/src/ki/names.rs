//! KI's vocabulary.

use std::collections::{BTreeMap, BTreeSet};

use worldwire_ki::control::Opcode;
use worldwire_ki::schema::FieldDef;
use worldwire_ki::types::FieldType;

use super::definitions::protocols;
use super::objects::objects;
use crate::knowledge::Definitions;
use crate::vocabulary::{MessageNames, ValueKind, ValueNames, common_kinds};

/// The fields of control messages, and those nested in them.
const CONTROL: &[&str] = &[
    "sessionId",
    "timeHigh",
    "timeLow",
    "millis",
    "crypto",
    "reserved",
    "minutes",
    "uptimeMillis",
    "flags",
    "keySlot",
    "keyMask",
    "echo",
    "signature",
    "controlMask",
    "spec",
    "rest",
    "unknown",
    "sealed",
    "nonce",
];
/// What `STR` fields can show: decrypted secrets and objects.
const OPENED: &[&str] =
    &["sessionId", "username", "ck1", "ck2", "object", "envelope", "compressed", "size", "flags"];

/// Every control message and every DML message.
pub(super) fn messages(definitions: &Definitions) -> Vec<MessageNames<'_>> {
    let (protocols, objects) = (protocols(definitions), objects(definitions));
    let control = Opcode::NAMES.iter().map(|(_, name)| format!("control.{name}"));
    let mut all: Vec<MessageNames<'_>> = control
        .chain(["data.empty".to_owned()])
        .map(|name| MessageNames {
            name,
            fields: CONTROL.to_vec(),
            inner: CONTROL.to_vec(),
            is_complete: true,
        })
        .collect();
    let mut inner: BTreeSet<&str> = OPENED.iter().chain(CONTROL).copied().collect();
    if let Some(classes) = objects.classes() {
        let properties = classes.all().iter().flat_map(|class| class.properties());
        inner.extend(properties.map(|property| &*property.name));
    }
    for message in protocols.iter().flat_map(|protocol| protocol.messages()) {
        // Only messages that hold objects list the fields of all classes, because there are many.
        let is_open = objects.fields(message).next().is_some();
        let own = message.fields().iter().chain(message.appended());
        all.push(MessageNames {
            name: protocols.name(message),
            fields: own.map(|field| &*field.name).collect(),
            inner: if is_open { inner.iter().copied().collect() } else { OPENED.to_vec() },
            is_complete: !is_open,
        });
    }
    all
}

/// Fields of DML messages that are always plain numbers.
pub(super) fn kinds(definitions: &Definitions) -> Vec<(&str, ValueKind)> {
    let (protocols, objects) = (protocols(definitions), objects(definitions));
    let is_number = |field: &FieldDef| {
        let others = [FieldType::Str, FieldType::WStr, FieldType::Bool];
        field.names().is_none() && !others.contains(&field.kind)
    };
    let messages = protocols.iter().flat_map(|protocol| protocol.messages());
    let fields = messages.flat_map(|message| message.fields().iter().chain(message.appended()));
    let fields = fields.map(|field| (&*field.name, is_number(field).then_some(ValueKind::Number)));
    let others = CONTROL.iter().chain(OPENED).map(|name| (*name, None));
    let classes = objects.classes().into_iter().flat_map(|classes| classes.all());
    let properties = classes.flat_map(|class| class.properties());
    let properties = properties.map(|property| (&*property.name, None));
    common_kinds(fields.chain(others).chain(properties))
}

/// Fields whose values have names: errors, and enumerations in a type list's classes.
pub(super) fn values(definitions: &Definitions) -> Vec<ValueNames<'_>> {
    let (protocols, objects) = (protocols(definitions), objects(definitions));
    let mut named: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut others: BTreeSet<&str> = CONTROL.iter().chain(OPENED).copied().collect();
    let messages = protocols.iter().flat_map(|protocol| protocol.messages());
    for field in messages.flat_map(|message| message.fields().iter().chain(message.appended())) {
        match field.names() {
            Some(names) => {
                named.entry(&field.name).or_default().extend(names.iter().map(|it| it.1))
            }
            None => {
                others.insert(&field.name);
            }
        }
    }
    let classes = objects.classes().into_iter().flat_map(|classes| classes.all());
    for property in classes.flat_map(|class| class.properties()) {
        match &property.choices {
            Some(choices) => {
                let names = choices.names().iter().map(|(_, name)| name);
                named.entry(&property.name).or_default().extend(names);
            }
            None => {
                others.insert(&property.name);
            }
        }
    }
    let values = named.into_iter().map(|(field, names)| ValueNames {
        field,
        prefix: "",
        names: names.into_iter().collect(),
        is_only: !others.contains(field),
    });
    values.collect()
}
