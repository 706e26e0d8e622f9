//! MxO's vocabulary.

use std::collections::{BTreeMap, BTreeSet};

use worldwire_core::{FieldInfo, Messages as _, Names};
use worldwire_mxo::frame::{CLIENT_RPCS, Channel, RccFlags, SERVER_RPCS};
use worldwire_mxo::login::{
    CharacterStatus, LoadKind, LoginStatus, WorldLoad, WorldStatus, WorldType,
};
use worldwire_mxo::message::Fault;
use worldwire_mxo::rpc::{ChatScope, ClientRpc, EmoteId, ServerRpc, WorldExit};

use super::definitions::objects;
use super::layouts::{OBJECTS, PACKET, RPC, Row};
use super::login;
use super::message::{PACKETS, PLAIN};
use crate::knowledge::Definitions;
use crate::vocabulary::{MessageNames, ValueNames};

/// The part of an operation's path that precedes its fields.
const OPERATION: &str = "sections[*].objects.operations[*]";
/// The types whose values have names, by the name that layouts use.
const NAMED: &[(&str, &Names)] = &[
    ("ChatScope", ChatScope::NAMES),
    ("EmoteId", EmoteId::NAMES),
    ("LoadKind", LoadKind::NAMES),
    ("LoginStatus", LoginStatus::NAMES),
    ("WorldExit", WorldExit::NAMES),
    ("WorldLoad", WorldLoad::NAMES),
    ("WorldStatus", WorldStatus::NAMES),
    ("WorldType", WorldType::NAMES),
];
/// The fields of datagrams that are not encrypted.
const PLAIN_FIELDS: &[&str] =
    &["kind", "characterUid", "unknown", "encryptedSession", "value", "bytes"];

/// Every kind of datagram.
pub(super) fn messages(definitions: &Definitions) -> Vec<MessageNames<'_>> {
    let rows = PACKET.iter().chain(RPC).chain(OBJECTS);
    let own: Vec<&str> = PACKET.iter().map(|(path, ..)| first(path)).chain(["view"]).collect();
    let mut inner: BTreeSet<&str> = rows.map(|(path, ..)| last(path)).collect();
    // Vectors have these parts.
    inner.extend(own.iter().copied().chain(["x", "y", "z", "w"]));
    for field in rpc_fields() {
        inner.insert(field.name);
    }
    for (_, class) in objects(definitions).objects().classes() {
        let orders = core::iter::once(class.create()).chain(class.updates().orders());
        inner.extend(orders.flat_map(|order| order.slots()).map(|slot| slot.name()));
    }
    let packets = PACKETS.iter().map(|name| MessageNames {
        name: (*name).to_owned(),
        fields: own.clone(),
        inner: inner.iter().copied().collect(),
        is_complete: true,
    });
    let plain = PLAIN.iter().map(|name| MessageNames {
        name: (*name).to_owned(),
        fields: PLAIN_FIELDS.to_vec(),
        inner: PLAIN_FIELDS.to_vec(),
        is_complete: true,
    });
    packets.chain(plain).chain(login::messages()).collect()
}

/// The path to a field nested in a packet. If a field occurs in several places, the first path.
pub(super) fn path_to(field: &str, definitions: &Definitions) -> Option<String> {
    let is_it = |(path, ..): &&Row| last(path) == field;
    if let Some((path, ..)) = PACKET.iter().find(is_it) {
        return Some((*path).to_owned());
    }
    if RPC.iter().any(|row| is_it(&row)) {
        return Some(format!("sections[*].lists[*].messages[*].{field}"));
    }
    if rpc_fields().any(|rpc| rpc.name == field) {
        return Some(format!("sections[*].lists[*].messages[*].fields.{field}"));
    }
    if let Some((path, ..)) = OBJECTS.iter().find(is_it) {
        let is_outside = matches!(*path, "operations" | "end");
        let place = if is_outside { "sections[*].objects" } else { OPERATION };
        return Some(format!("{place}.{path}"));
    }
    let mut classes = objects(definitions).objects().classes();
    let is_created = classes.any(|(_, class)| class.create().index_of(field).is_some());
    is_created.then(|| format!("{OPERATION}.create.properties.{field}"))
}

/// The fields of RPC messages.
fn rpc_fields() -> impl Iterator<Item = FieldInfo> {
    let messages = ClientRpc::INFO.iter().chain(ServerRpc::INFO);
    messages.flat_map(|message| (message.fields)())
}

/// The first field of a path.
fn first(path: &'static str) -> &'static str {
    path.split(['.', '[']).next().unwrap_or_default()
}

/// The last field of a path.
fn last(path: &'static str) -> &'static str {
    path.rsplit('.').next().unwrap_or_default()
}

/// Fields whose values have names.
pub(super) fn values(definitions: &Definitions) -> Vec<ValueNames<'_>> {
    let opcodes = CLIENT_RPCS.iter().chain(SERVER_RPCS.iter()).map(|(_, name)| name).collect();
    let known = objects(definitions);
    let classes = known.objects().classes().map(|(_, class)| class.name()).collect();
    let names = known.tables().goobjs().filter_map(|(_, goobj)| goobj.name.as_deref()).collect();
    let faults = Fault::ALL.iter().map(|fault| fault.name()).collect();
    let flags = RccFlags::NAMES.iter().map(|(_, name)| name).collect();
    let value = |field, names, is_only| ValueNames { field, prefix: "", names, is_only };
    let mut values = vec![
        value("opcode", opcodes, false),
        value("mpm", vec!["Objects", "Rpc", "Unknown5"], false),
        ValueNames {
            field: "kind",
            prefix: "setup.",
            names: vec!["Hello", "Answer", "Ping", "Other"],
            is_only: true,
        },
        // `flags` of operations and movements are numbers.
        value("flags", flags, false),
        value("class", classes, true),
        value("object", names, true),
        value("fault", faults, true),
    ];
    let rows = PACKET.iter().chain(RPC).chain(OBJECTS);
    let slots = known.objects().classes().flat_map(|(_, class)| {
        let orders = core::iter::once(class.create()).chain(class.updates().orders());
        orders.flat_map(|order| order.slots()).map(|slot| slot.name())
    });
    let others = rows.map(|(path, ..)| last(path)).chain(slots).collect();
    values.extend(named("game.", rpc_fields(), Vec::new(), others));
    let of_characters = vec![("status", CharacterStatus::NAMES)];
    let [auth, margin] = [Channel::Auth, Channel::Margin].map(login::fields);
    values.extend(named("auth.", auth, of_characters, BTreeSet::new()));
    values.extend(named("margin.", margin, Vec::new(), BTreeSet::new()));
    values
}

/// The fields of some messages whose values have names. `more` are fields that no table lists, and
/// `others` those without such values.
fn named<'d>(
    prefix: &'static str,
    fields: impl IntoIterator<Item = FieldInfo>,
    more: Vec<(&'static str, &'static Names)>,
    mut others: BTreeSet<&'d str>,
) -> Vec<ValueNames<'d>> {
    let mut named: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut add = |field, names: &'static Names| {
        named.entry(field).or_default().extend(names.iter().map(|(_, name)| name));
    };
    more.into_iter().for_each(|(field, names)| add(field, names));
    for field in fields {
        let words: Vec<&str> = field.layout.split(|c: char| !c.is_alphanumeric()).collect();
        match NAMED.iter().find(|(name, _)| words.contains(name)) {
            Some((_, names)) => add(field.name, names),
            None => drop(others.insert(field.name)),
        }
    }
    let values = named.into_iter().map(|(field, names)| ValueNames {
        field,
        prefix,
        names: names.into_iter().collect(),
        is_only: !others.contains(field),
    });
    values.collect()
}
