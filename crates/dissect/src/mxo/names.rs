//! MxO's vocabulary.

use std::collections::BTreeSet;

use worldwire_core::Messages as _;
use worldwire_mxo::frame::{CLIENT_RPCS, RccFlags, SERVER_RPCS};
use worldwire_mxo::message::Fault;
use worldwire_mxo::rpc::{ClientRpc, ServerRpc};

use super::definitions::objects;
use super::layouts::{OBJECTS, PACKET, RPC, Row};
use super::message::{PACKETS, PLAIN};
use crate::knowledge::Definitions;
use crate::vocabulary::{MessageNames, ValueNames};

/// The part of an operation's path that precedes its fields.
const OPERATION: &str = "sections[*].objects.operations[*]";
const PLAIN_FIELDS: &[&str] =
    &["kind", "characterUid", "unknown", "encryptedSession", "value", "bytes"];

/// Every kind of datagram.
pub(super) fn messages(definitions: &Definitions) -> Vec<MessageNames<'_>> {
    let rows = PACKET.iter().chain(RPC).chain(OBJECTS);
    let own: Vec<&str> = PACKET.iter().map(|(path, ..)| first(path)).chain(["view"]).collect();
    let mut inner: BTreeSet<&str> = rows.map(|(path, ..)| last(path)).collect();
    // And the parts of vectors.
    inner.extend(own.iter().copied().chain(["x", "y", "z", "w"]));
    for name in rpc_fields() {
        inner.insert(name);
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
    packets.chain(plain).chain(super::login::messages()).collect()
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
    if rpc_fields().any(|name| name == field) {
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
fn rpc_fields() -> impl Iterator<Item = &'static str> {
    let messages = ClientRpc::INFO.iter().chain(ServerRpc::INFO);
    messages.flat_map(|message| (message.fields)()).map(|field| field.name)
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
    vec![
        ValueNames { field: "opcode", names: opcodes, is_only: false },
        ValueNames { field: "mpm", names: vec!["Objects", "Rpc", "Unknown5"], is_only: false },
        ValueNames {
            field: "kind",
            names: vec!["Hello", "Answer", "Ping", "Other"],
            is_only: true,
        },
        // `flags` of operations and movements are numbers.
        ValueNames { field: "flags", names: flags, is_only: false },
        ValueNames { field: "class", names: classes, is_only: true },
        ValueNames { field: "object", names, is_only: true },
        ValueNames { field: "fault", names: faults, is_only: true },
    ]
}
