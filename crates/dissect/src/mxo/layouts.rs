//! The fields of formats without message tables, for documentation.

use std::borrow::Cow;

use worldwire_core::FieldInfo;

/// The name, layout and meaning of a field.
type Row = (&'static str, &'static str, &'static str);

const PACKET: &[Row] = &[
    ("crc", "u32", "CRC-32 (zlib) of everything behind it."),
    ("length", "u16", "Bytes from the sequence on."),
    ("time", "u32", "Seconds since 1970."),
    ("sequence", "u32, big-endian", "Three numbers in one word."),
    ("sequence.acks", "bits 31..24", "Bit i, 0 to 6: the packet `remote - i` was received."),
    ("sequence.remote", "bits 23..12", "The packet of the other side that bit 0 speaks of."),
    ("sequence.local", "bits 11..0", "The number of this packet."),
    ("flags", "u8 flags", "RCC flags: Always 02, Reset 40, SimTime 80."),
    ("simTime", "f32", "Only with the flag SimTime."),
    ("sections[*].mpm", "u8", "Objects (3), Rpc (4), Unknown5 (5). Sections go on to the end."),
    ("sections[*].objects", "", "Only for Objects: as mxo.objects."),
    ("sections[*].lists", "u8 count, lists", "Only for Rpc."),
    ("sections[*].lists[*].firstSeq", "u16, big-endian", "The number of the first message."),
    ("sections[*].lists[*].messages", "u8 count, messages", "Each as mxo.rpc."),
    (
        "sections[*].bytes",
        "bytes",
        "What else a section holds, to the end; also RPC lists that cannot be read.",
    ),
];

const DATAGRAM: &[Row] = &[
    ("type", "u8", "Only of an encrypted datagram: 1. Others are plain."),
    (
        "kind",
        "bytes",
        "Plain: Hello, Answer, Ping or Other, told by the first bytes and the length.",
    ),
    ("characterUid", "u64", "Hello: the character."),
    ("unknown", "u64", "Hello: 0x384 was seen."),
    (
        "encryptedSession",
        "bytes(16)",
        "Hello: an encrypted block that begins with the session's id.",
    ),
    ("value", "u32", "Ping: comes back unchanged."),
    ("bytes", "bytes", "Other: everything."),
    ("iv", "bytes(16)", "Encrypted: the initial vector."),
    ("cipher", "bytes", "Encrypted: a packet (mxo.packet), Twofish-CBC with PKCS#7 padding."),
];

const RPC: &[Row] = &[
    ("length", "u8, or u16 big-endian", "Bytes behind it. Two bytes have the top bit set."),
    ("longLength", "u16, big-endian", "In its place: a length below 80 that takes two bytes."),
    ("opcode", "u8, or u16 big-endian", "Two bytes from 8000 on. Names depend on the sender."),
    ("data", "bytes", "To the end."),
];

const TCP_FRAME: &[Row] = &[
    ("length", "u8, or u16 big-endian", "Bytes behind it. Two bytes have the top bit set."),
    ("longLength", "u16, big-endian", "In its place: a length below 80 that takes two bytes."),
    ("body", "bytes", "A message: mxo.auth, or mxo.margin, which may be encrypted."),
];

const OBJECTS: &[Row] = &[
    ("mpm", "u8", "3."),
    ("operations", "list", "Each is one of the records below, up to the view id 0."),
    ("create", "record", "The AdminView creates a view (server)."),
    ("create.view", "u16", "1, the AdminView."),
    ("create.flags", "u8", "0c, or 08 for an object of the world; the lowest two bits are 0."),
    ("create.goid", "u16", "The goobj: the type of the object."),
    ("create.object", "", "Its name, if it has one."),
    ("create.world_id", "u32", "The object of the world; only without bit 2 of the flags."),
    ("create.spawn_seq", "u8", "Tells apart objects that have one view id after the other."),
    ("create.magic", "u16", "abcd."),
    ("create.count", "u8", "How many properties there are."),
    ("create.class", "", "The class by which the properties are read."),
    ("create.guess", "", "There if the class is a guess."),
    (
        "create.properties",
        "groups",
        "Presence byte, values of its bits 0 to 6; bit 7: more groups.",
    ),
    ("create.padding", "", "How many presence bytes there are more than needed."),
    ("create.new_view", "u16", "The view that is created: 2 or more."),
    ("create.tail", "u8", "0."),
    ("delete", "record", "The AdminView deletes views (server)."),
    ("delete.view", "u16", "1, the AdminView."),
    ("delete.flags", "u8", "The lowest two bits are 1."),
    ("delete.count", "u16", "How many views."),
    ("delete.views", "u16 each", "The views: 2 or more."),
    ("pending_update", "record", "An update of a view whose create may be on its way (server)."),
    ("pending_update.view", "u16", "1, the AdminView."),
    ("pending_update.flags", "u8", "The lowest two bits are 2."),
    ("pending_update.length", "u16", "Its own bytes, those of the target and those of the data."),
    ("pending_update.target", "u16", "The view: 2 or more."),
    ("pending_update.update", "", "The data as an update, where the view is known."),
    ("pending_update.data", "bytes", "The same as bytes, where it is not."),
    ("update", "record", "A view is updated; a client updates view 2 only."),
    ("update.view", "u16", "The view."),
    ("update.class", "", "The class of its object."),
    ("update.guess", "", "There if the class is a guess."),
    ("update.mask", "u8", "Which blocks follow; which bit is which depends on the class."),
    ("update.movement", "record", "Where a character is and how it moves; only in some masks."),
    ("update.movement.flags", "u8", "Which fields follow."),
    ("update.movement.script_counter", "u8", "Flag 20."),
    ("update.movement.animation", "u8", "Flag 01."),
    ("update.movement.mood", "u8", "Flag 01."),
    ("update.movement.action", "u8", "Flag 02."),
    ("update.movement.yaw", "u8", "Flag 04: 256 are a full turn."),
    ("update.movement.position", "3 f32", "Flag 08: x, y (height), z."),
    ("update.movement.time", "u32", "Behind the position of view 2 (server)."),
    ("update.properties", "groups", "As in a create, in the update order of the class."),
    ("update.padding", "", "How many presence bytes there are more than needed."),
    ("unknown_create", "record", "A create of a goobj without a class: its head, and the rest."),
    ("unknown_create.bytes", "bytes", "Everything behind the count."),
    ("undecoded", "record", "What else cannot be read."),
    ("undecoded.view", "u16", "The view it begins with."),
    ("undecoded.fault", "", "What is not known: unknown_view, unknown_layout, ..."),
    ("undecoded.bytes", "bytes", "The rest of the section."),
    ("end", "u16", "0; null where it is missing."),
];

/// The fields of a codec; empty for codecs with message tables.
pub(super) fn layout(codec: &str) -> Vec<FieldInfo> {
    let rows = match codec {
        "mxo.datagram" => DATAGRAM,
        "mxo.objects" => OBJECTS,
        "mxo.packet" => PACKET,
        "mxo.rpc" => RPC,
        "mxo.tcp-frame" => TCP_FRAME,
        _ => &[],
    };
    let field = |&(name, layout, doc): &Row| FieldInfo { name, layout: Cow::Borrowed(layout), doc };
    rows.iter().map(field).collect()
}
