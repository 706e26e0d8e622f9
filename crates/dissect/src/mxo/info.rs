//! The most informative fields of packets.

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

/// The operations and RPC messages in a packet, and what players say and do in them.
const PACKET: &[&str] = &[
    "sections[*].lists[*].messages[*].opcode",
    "sections[*].lists[*].messages[*].fields.handle",
    "sections[*].lists[*].messages[*].fields.receiver",
    "sections[*].lists[*].messages[*].fields.text",
    "sections[*].lists[*].messages[*].fields.emote",
    "sections[*].lists[*].messages[*].fields.district",
    "sections[*].lists[*].messages[*].fields.toDistrict",
    "sections[*].objects.operations[*]",
];

/// Messages whose first fields are not the most informative ones, sorted by name.
const SHOWN: InfoTable = &[
    ("auth.AuthChallenge", &[]),
    ("auth.AuthChallengeResponse", &[]),
    (
        "auth.AuthReply",
        &["fields.status", "fields.success.characters[*].handle", "fields.success.worlds[*].name"],
    ),
    ("auth.AuthRequest", &["fields.loginType"]),
    ("auth.GetPublicKeyReply", &["fields.status", "fields.keyId"]),
    ("auth.GetPublicKeyRequest", &["fields.clientVersion", "fields.keyId"]),
    ("game.Ack", &[]),
    ("game.Objects", PACKET),
    ("game.Reset", &[]),
    ("game.Rpc", PACKET),
    ("margin.CertChallenge", &[]),
    ("margin.CertChallengeResponse", &[]),
    ("margin.CertConnectReply", &["fields.status"]),
    (
        "margin.CertConnectRequest",
        &["fields.certificate.certificate.userId", "fields.certificate.certificate.name"],
    ),
    ("margin.ClaimCharacterNameReply", &["fields.status", "fields.characterId", "fields.handle"]),
    ("margin.ClaimCharacterNameRequest", &["fields.handle"]),
    ("margin.ConnectChallenge", &[]),
    ("margin.ConnectChallengeResponse", &[]),
    ("margin.ConnectReply", &["fields.status", "fields.sessionId"]),
    ("margin.ConnectRequest", &["fields.clientVersion"]),
    ("margin.CreateCharacterRequest", &["fields.firstName", "fields.lastName"]),
    ("margin.EstablishUDPSession", &["fields.status"]),
    ("margin.LoadCharacterReply", &["fields.status", "fields.characterId", "fields.kind"]),
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
