//! The most telling fields of packets.

use crate::info::{InfoFields, InfoTable};

/// Secrets, checksums and the parts of headers.
const HIDDEN: &[&str] = &[
    "bytes",
    "count",
    "crc",
    "encryptedSession",
    "end",
    "flags",
    "goid",
    "length",
    "magic",
    "mask",
    "mpm",
    "sequence",
    "spawn_seq",
    "tail",
    "time",
    "unknown",
    "world_id",
];

/// The operations and RPC messages in a packet.
const PACKET: &[&str] =
    &["sections[*].lists[*].messages[*].opcode", "sections[*].objects.operations[*]"];

/// Messages whose first fields are not the most telling ones, sorted by name.
const SHOWN: InfoTable = &[
    ("game.Ack", &[]),
    ("game.Objects", PACKET),
    ("game.Reset", &[]),
    ("game.Rpc", PACKET),
    ("setup.Answer", &[]),
    ("setup.Hello", &["characterUid"]),
    ("setup.Ping", &["value"]),
];

pub(super) fn fields(name: &str) -> InfoFields {
    InfoFields::find(name, SHOWN, HIDDEN)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_fits_the_messages() {
        crate::info::tests::assert_fits(&super::super::Mxo, super::SHOWN, super::HIDDEN);
    }
}
