//! The fields of formats without message tables, for documentation.

use worldwire_core::{FieldInfo, Record as _};
use worldwire_mxo::login::{AuthProof, AuthSecret, MarginSecret};

/// The name, layout and meaning of a field.
pub(super) type Row = (&'static str, &'static str, &'static str);

pub(super) const PACKET: &[Row] = &[
    ("crc", "u32", "CRC-32 (zlib) of everything after this field."),
    ("length", "u16", "The number of bytes from the sequence to the end."),
    ("time", "u32", "Seconds since 1970."),
    ("sequence", "u32, big-endian", "Three numbers in one word."),
    ("sequence.acks", "bits 31..24", "Bit i, 0 to 6: the packet `remote - i` was received."),
    ("sequence.remote", "bits 23..12", "The other side's packet that bit 0 refers to."),
    ("sequence.local", "bits 11..0", "The number of this packet."),
    ("flags", "u8 flags", "RCC flags: Always 02, Reset 40, SimTime 80."),
    ("simTime", "f32", "Present with the flag SimTime."),
    ("sections[*].mpm", "u8", "Objects (3), Rpc (4), Unknown5 (5). Sections fill the packet."),
    ("sections[*].objects", "", "Present for Objects; see mxo.objects."),
    ("sections[*].lists", "u8 count, lists", "Present for Rpc."),
    ("sections[*].lists[*].firstSeq", "u16, big-endian", "The number of the first message."),
    ("sections[*].lists[*].messages", "u8 count, messages", "For each, see mxo.rpc."),
    (
        "sections[*].bytes",
        "bytes",
        "The rest of any other section, and of RPC lists that cannot be decoded.",
    ),
];

const DATAGRAM: &[Row] = &[
    ("type", "u8", "1 for an encrypted datagram. Plain ones have no type."),
    ("kind", "bytes", "Plain: Hello, Answer, Ping or Other, told apart by first bytes and length."),
    ("characterUid", "u64", "Hello: the character."),
    ("unknown", "u64", "Hello: observed as 0x384."),
    ("encryptedSession", "bytes(16)", "Hello: an encrypted block that starts with the session ID."),
    ("value", "u32", "Ping: returned unchanged."),
    ("bytes", "bytes", "Other: everything."),
    ("iv", "bytes(16)", "Encrypted: the initialisation vector."),
    ("cipher", "bytes", "Encrypted: a packet (mxo.packet), Twofish-CBC with PKCS#7 padding."),
];

pub(super) const RPC: &[Row] = &[
    (
        "length",
        "u8, or u16 big-endian",
        "The number of bytes after this field. Takes two bytes if the top bit is set.",
    ),
    ("longLength", "u16, big-endian", "Replaces a length below 80 that uses two bytes."),
    (
        "opcode",
        "u8, or u16 big-endian",
        "Two bytes for 8000 and above. Names depend on the sender.",
    ),
    ("fields", "record", "Fields of a known opcode, to the end."),
    ("data", "bytes", "Any other opcode, or a different layout: bytes to the end."),
];

const PUBLIC_KEY: &[Row] = &[
    ("keyId", "u32, big-endian", "The ID that clients name in requests; 4."),
    ("modulus", "DER integer, bytes(128)", "The modulus, big-endian."),
    ("exponent", "DER integer, u8", "The public exponent, 17; followed by 00."),
    ("signature", "bytes(256)", "The signing key's signature: PKCS#1 v1.5 with MD5."),
];

const TCP_FRAME: &[Row] = &[
    (
        "length",
        "u8, or u16 big-endian",
        "The number of bytes after this field. Takes two bytes if the top bit is set.",
    ),
    ("longLength", "u16, big-endian", "Replaces a length below 80 that uses two bytes."),
    ("body", "bytes", "A message: mxo.auth, or mxo.margin, which may be encrypted."),
];

pub(super) const OBJECTS: &[Row] = &[
    ("mpm", "u8", "3."),
    ("operations", "list", "Records as below, up to view ID 0."),
    ("create", "record", "The AdminView creates a view (server)."),
    ("create.view", "u16", "1, the AdminView."),
    ("create.flags", "u8", "0c, or 08 for a world object; the lowest two bits are 0."),
    ("create.goid", "u16", "The goobj: the type of the object."),
    ("create.object", "", "The object's name, if known."),
    ("create.world_id", "u32", "The world object; present if bit 2 of the flags is clear."),
    ("create.spawn_seq", "u8", "Distinguishes successive objects with the same view ID."),
    ("create.magic", "u16", "abcd."),
    ("create.count", "u8", "The number of properties."),
    ("create.class", "", "The class that defines the properties."),
    ("create.guess", "", "Present if the class is a guess."),
    (
        "create.properties",
        "groups",
        "Presence byte, values of its bits 0 to 6; bit 7: more groups.",
    ),
    ("create.padding", "", "The number of unnecessary presence bytes that follow."),
    ("create.new_view", "u16", "The new view: 2 or more."),
    ("create.tail", "u8", "0."),
    ("delete", "record", "The AdminView deletes views (server)."),
    ("delete.view", "u16", "1, the AdminView."),
    ("delete.flags", "u8", "The lowest two bits are 1."),
    ("delete.count", "u16", "The number of views."),
    ("delete.views", "u16 each", "The views: 2 or more."),
    ("pending_update", "record", "Updates a view whose create may still be in transit (server)."),
    ("pending_update.view", "u16", "1, the AdminView."),
    ("pending_update.flags", "u8", "The lowest two bits are 2."),
    ("pending_update.length", "u16", "The size in bytes of this field, the target and the data."),
    ("pending_update.target", "u16", "The view: 2 or more."),
    ("pending_update.update", "", "The data as an update, if the view is known."),
    ("pending_update.data", "bytes", "The data as bytes, if the view is unknown."),
    ("update", "record", "Updates a view. Clients update only view 2."),
    ("update.view", "u16", "The view."),
    ("update.class", "", "The class of the view's object."),
    ("update.guess", "", "Present if the class is a guess."),
    ("update.mask", "u8", "The blocks that follow. The meaning of the bits depends on the class."),
    ("update.block1", "u8", "An NPC's first block; its meaning is unknown."),
    ("update.movement", "record", "A character's position and movement; present with some masks."),
    ("update.movement.flags", "u8", "The fields that follow."),
    ("update.movement.script_counter", "u8", "Flag 20."),
    ("update.movement.script", "record", "Flag 20 (server): emote, effect or jack_out."),
    ("update.movement.animation", "u8", "Flag 01."),
    ("update.movement.mood", "u8", "Flag 01."),
    ("update.movement.action", "u8", "Flag 02."),
    ("update.movement.yaw", "u8", "Flag 04: 1/256 turns."),
    ("update.movement.position", "3 f32", "Flag 08: x, y (height), z."),
    ("update.movement.time", "u32", "Follows the position of view 2 or of a script (server)."),
    ("update.properties", "groups", "As in a create, in the update order of the class."),
    ("update.padding", "", "The number of unnecessary presence bytes that follow."),
    ("unknown_create", "record", "A create of a goobj that has no class and fits no layout."),
    ("unknown_create.bytes", "bytes", "Everything after the count, up to the next create."),
    ("undecoded", "record", "Anything else that cannot be decoded."),
    ("undecoded.view", "u16", "The view that the bytes start with."),
    ("undecoded.fault", "", "The reason: unknown_view, unknown_layout, ..."),
    ("undecoded.bytes", "bytes", "The rest of the section."),
    ("end", "u16", "0; null if missing."),
];

/// The fields of a codec; empty for codecs with message tables.
pub(super) fn layout(codec: &str) -> Vec<FieldInfo> {
    let rows = match codec {
        "mxo.auth-proof" => return AuthProof::fields(),
        "mxo.auth-secret" => return AuthSecret::fields(),
        "mxo.margin-secret" => return MarginSecret::fields(),
        "mxo.datagram" => DATAGRAM,
        "mxo.objects" => OBJECTS,
        "mxo.packet" => PACKET,
        "mxo.public-key" => PUBLIC_KEY,
        "mxo.rpc" => RPC,
        "mxo.tcp-frame" => TCP_FRAME,
        _ => &[],
    };
    let field = |&(name, layout, doc): &Row| FieldInfo::in_words(name, layout, doc);
    rows.iter().map(field).collect()
}
