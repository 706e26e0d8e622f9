//! The names of messages and fields.

use std::collections::BTreeSet;

use worldwire_mxo::frame::{CLIENT_RPCS, SERVER_RPCS};

use super::message::{PACKETS, PLAIN};
use super::objects;
use crate::family::{MessageNames, ValueNames};
use crate::knowledge::Definitions;

/// The fields of a packet.
const PACKET: &[&str] = &["crc", "length", "time", "sequence", "flags", "simTime", "sections"];
/// What is inside them.
const INNER: &[&str] = &[
    "acks",
    "remote",
    "local",
    "mpm",
    "lists",
    "firstSeq",
    "messages",
    "length",
    "longLength",
    "opcode",
    "data",
    "bytes",
    "objects",
    "operations",
    "end",
    "create",
    "delete",
    "pending_update",
    "update",
    "unknown_create",
    "undecoded",
    "view",
    "views",
    "class",
    "properties",
    "movement",
];
/// The fields of plain packets.
const PLAIN_FIELDS: &[&str] =
    &["kind", "characterUid", "unknown", "encryptedSession", "value", "bytes"];

/// Every kind of datagram.
pub(super) fn messages(definitions: &Definitions) -> Vec<MessageNames<'_>> {
    let mut inner: BTreeSet<&str> = INNER.iter().chain(PACKET).copied().collect();
    for (_, class) in objects(definitions).objects().classes() {
        inner.extend(class.create().slots().iter().map(|slot| slot.name()));
    }
    let packets = PACKETS.iter().map(|name| MessageNames {
        name: (*name).to_owned(),
        fields: PACKET.to_vec(),
        inner: inner.iter().copied().collect(),
        // Updates may have properties that creates do not have.
        is_complete: false,
    });
    let plain = PLAIN.iter().map(|name| MessageNames {
        name: (*name).to_owned(),
        fields: PLAIN_FIELDS.to_vec(),
        inner: PLAIN_FIELDS.to_vec(),
        is_complete: true,
    });
    packets.chain(plain).collect()
}

/// The fields whose values have names.
pub(super) fn values<'d>() -> Vec<ValueNames<'d>> {
    let opcodes = CLIENT_RPCS.iter().chain(SERVER_RPCS.iter()).map(|(_, name)| name).collect();
    vec![
        ValueNames { field: "opcode", names: opcodes, is_only: false },
        ValueNames { field: "mpm", names: vec!["Objects", "Rpc", "Unknown5"], is_only: false },
    ]
}
