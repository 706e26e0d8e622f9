//! MxO's vocabulary.

use std::collections::BTreeSet;

use worldwire_mxo::frame::{CLIENT_RPCS, RccFlags, SERVER_RPCS};
use worldwire_mxo::message::Fault;

use super::definitions::objects;
use super::message::{PACKETS, PLAIN};
use crate::knowledge::Definitions;
use crate::vocabulary::{MessageNames, ValueNames};

const PACKET: &[&str] =
    &["crc", "length", "time", "sequence", "flags", "simTime", "sections", "view"];
/// The fields nested in them, except object properties.
const INNER: &[&str] = &[
    // The sequence word.
    "acks",
    "remote",
    "local",
    // Sections, and RPC messages.
    "mpm",
    "lists",
    "firstSeq",
    "messages",
    "longLength",
    "opcode",
    "data",
    "bytes",
    "objects",
    // Object sections, and their operations.
    "operations",
    "end",
    "create",
    "delete",
    "pending_update",
    "update",
    "unknown_create",
    "undecoded",
    "view",
    "goid",
    "object",
    "world_id",
    "spawn_seq",
    "magic",
    "count",
    "class",
    "guess",
    "properties",
    "padding",
    "new_view",
    "tail",
    "views",
    "target",
    "fault",
    "mask",
    // Movement, and vectors.
    "movement",
    "script_counter",
    "animation",
    "mood",
    "action",
    "yaw",
    "position",
    "x",
    "y",
    "z",
    "w",
];
const PLAIN_FIELDS: &[&str] =
    &["kind", "characterUid", "unknown", "encryptedSession", "value", "bytes"];

/// Every kind of datagram.
pub(super) fn messages(definitions: &Definitions) -> Vec<MessageNames<'_>> {
    let mut inner: BTreeSet<&str> = INNER.iter().chain(PACKET).copied().collect();
    for (_, class) in objects(definitions).objects().classes() {
        let orders = core::iter::once(class.create()).chain(class.updates().orders());
        inner.extend(orders.flat_map(|order| order.slots()).map(|slot| slot.name()));
    }
    let packets = PACKETS.iter().map(|name| MessageNames {
        name: (*name).to_owned(),
        fields: PACKET.to_vec(),
        inner: inner.iter().copied().collect(),
        is_complete: true,
    });
    let plain = PLAIN.iter().map(|name| MessageNames {
        name: (*name).to_owned(),
        fields: PLAIN_FIELDS.to_vec(),
        inner: PLAIN_FIELDS.to_vec(),
        is_complete: true,
    });
    packets.chain(plain).collect()
}

/// The path to a field nested in a packet. If a field occurs in several places, the path through a
/// create.
pub(super) fn path_to(field: &str, definitions: &Definitions) -> Option<String> {
    const OPERATION: &str = "sections[*].objects.operations[*]";
    let path = match field {
        "acks" | "remote" | "local" => format!("sequence.{field}"),
        "mpm" | "lists" | "objects" => format!("sections[*].{field}"),
        "firstSeq" | "messages" => format!("sections[*].lists[*].{field}"),
        "opcode" | "data" => format!("sections[*].lists[*].messages[*].{field}"),
        "operations" => "sections[*].objects.operations".to_owned(),
        "create" | "delete" | "pending_update" | "update" | "unknown_create" | "undecoded" => {
            format!("{OPERATION}.{field}")
        }
        "fault" => format!("{OPERATION}.undecoded.fault"),
        "target" => format!("{OPERATION}.pending_update.target"),
        "views" => format!("{OPERATION}.delete.views"),
        "mask" | "movement" => format!("{OPERATION}.update.{field}"),
        "script_counter" | "animation" | "mood" | "action" | "yaw" | "position" => {
            format!("{OPERATION}.update.movement.{field}")
        }
        "goid" | "object" | "world_id" | "spawn_seq" | "magic" | "count" | "class" | "guess"
        | "properties" | "padding" | "new_view" | "tail" => format!("{OPERATION}.create.{field}"),
        _ => {
            let objects = objects(definitions).objects();
            let is_created = objects.classes().any(|(_, it)| it.create().index_of(field).is_some());
            if !is_created {
                return None;
            }
            format!("{OPERATION}.create.properties.{field}")
        }
    };
    Some(path)
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
