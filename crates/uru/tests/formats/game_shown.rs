//! The display of net messages: trees as text, JSON, and errors.

use worldwire_core::json::{Style, write_children};
use worldwire_core::text::{TextStyle, write_tree};
use worldwire_core::value::parse_hex;
use worldwire_core::{Classes, Field, Limits, Reader, Tree, Value};
use worldwire_uru::net_message::{CLASSES, NetMessage, received};
use worldwire_uru::plasma_message::PlasmaMessage;
use worldwire_uru::types::ClassIndex;

/// A net message as text with its byte ranges, then as JSON.
fn shown(hex: &str) -> String {
    let bytes = parse_hex(hex).unwrap();
    let mut reader = Reader::traced("message", &bytes, Tree::new());
    let outcome = NetMessage::decode(&mut reader, "message").map(drop);
    let (tree, _) = reader.conclude(outcome);
    let mut out = String::new();
    write_tree(&tree, TextStyle { ranges: true, ..TextStyle::default() }, &mut out);
    let mut json = String::new();
    write_children(Value::Record, tree.roots(), Style { safe: true }, &mut json);
    // Write one field per line, so that differences are easy to read.
    out + &json.replace(",\"", ",\n\"")
}

/// A case of the vectors.
fn vector(id: &str) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/uru-game/netmsg.json");
    let file: worldwire_core::json::Json =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let cases = file["vectors"].as_array().unwrap();
    let case = cases.iter().find(|case| case["id"] == id).unwrap();
    case["hex"].as_str().unwrap().to_owned()
}

#[test]
fn a_lock() {
    insta::assert_snapshot!(shown(&vector("tas-lock")), @r#"
    0x0000..0x0054    message:
    0x0000..0x0002      class: plNetMsgTestAndSet (637)
    0x0002..0x0006      flags: 0x41001 (HasTimeSent | HasPlayerID | NeedsReliableSend)
    0x0006..0x000e      timeSent:
    0x0006..0x000a        seconds: 1700000000
    0x000a..0x000e        microseconds: 250000
    0x000e..0x0012      playerId: 1234567
    0x0012..0x002d      object:
    0x0013..0x0019        location:
    0x0013..0x0017          sequenceNumber: 0x60023
    0x0013..0x0017          age: 6
    0x0013..0x0017          page: 2
    0x0017..0x0019          flags: 0x0
    0x0019..0x001b        classIndex: 0x002d
    0x001b..0x001f        objectId: 413
    0x001f..0x002d        name: "cRespLever01"
    0x002d..0x0053      stream:
    0x002d..0x0031        uncompressedLength: 0
    0x0031..0x0032        compression: None (0)
    0x0036..0x0053        sharedState:
    0x0036..0x0041          name: "TrigState"
    0x0045..0x0046          serverMayDelete: false
    0x0041..0x0053          variables: 1 item
    0x0046..0x0053            [0]
    0x0046..0x0051              name: "Triggered"
    0x0051..0x0053              value:
    0x0051..0x0052                type: bool (2)
    0x0052..0x0053                value: true
    0x0053..0x0054      lockRequest: true
    {"message":{"class":"plNetMsgTestAndSet",
    "flags":["HasTimeSent",
    "HasPlayerID",
    "NeedsReliableSend"],
    "timeSent":{"seconds":1700000000,
    "microseconds":250000},
    "playerId":1234567,
    "object":{"location":{"sequenceNumber":393251,
    "age":6,
    "page":2,
    "flags":[]},
    "classIndex":45,
    "objectId":413,
    "name":"cRespLever01"},
    "stream":{"uncompressedLength":0,
    "compression":"None",
    "sharedState":{"name":"TrigState",
    "serverMayDelete":false,
    "variables":[{"name":"Triggered",
    "value":{"type":"bool",
    "value":true}}]}},
    "lockRequest":true}}
    "#);
}

#[test]
fn a_deflated_chat() {
    insta::assert_snapshot!(shown(&vector("game-ki-zlib")), @r#"
    0x0000..0x0070 message  message:
    0x0000..0x0002 message    class: plNetMsgGameMessage (619)
    0x0002..0x0006 message    flags: 0x41001 (HasTimeSent | HasPlayerID | NeedsReliableSend)
    0x0006..0x000e message    timeSent:
    0x0006..0x000a message      seconds: 1700000000
    0x000a..0x000e message      microseconds: 250000
    0x000e..0x0012 message    playerId: 1234567
    0x0012..0x006f message    stream:
    0x0012..0x0016 message      uncompressedLength: 889
    0x0016..0x0017 message      compression: Zlib (2)
    0x001b..0x006f message      data: 6403789c636040021e1c4082fdc38e5e1b679b8459e6378418967c5cf37ffaff09ff7bffcf03d297ffdfff3ff7ff8dff... (84 bytes)
    0x0000..0x0379 inflated      payload:
    0x0000..0x0002 inflated        class: pfKIMsg (868)
    0x0002..0x0003 inflated        sender: nothing
    0x0003..0x0007 inflated        receivers: 0 items
    0x0007..0x000f inflated        timestamp: 0.0
    0x000f..0x0013 inflated        bcastFlags: 0x848 (ByExactType | NetPropagate | LocalPropagate)
    0x0013..0x0014 inflated        command: HACKChatMsg (0)
    0x0014..0x001d inflated        user: "Grüße"
    0x001d..0x0021 inflated        playerId: 1234999
    0x0021..0x036d inflated        text: "Shorah, b'shem! ñ 日本 Shorah, b'shem! ñ 日本 Shorah, b'shem! ñ 日本 Shorah, b'shem! ñ 日本 Shorah, b'shem! ñ 日本 Shorah, b'shem! ñ 日本 Shorah, b'shem! ñ 日本 Shorah, b'shem! ñ 日本 Shorah, b'shem! ñ 日本 Sho"... (420 characters)
    0x036d..0x0371 inflated        flags: 0x0
    0x0371..0x0375 inflated        delay: 0.0
    0x0375..0x0379 inflated        value: 0
    0x006f..0x0070 message    hasDeliveryTime: false
    {"message":{"class":"plNetMsgGameMessage",
    "flags":["HasTimeSent",
    "HasPlayerID",
    "NeedsReliableSend"],
    "timeSent":{"seconds":1700000000,
    "microseconds":250000},
    "playerId":1234567,
    "stream":{"uncompressedLength":889,
    "compression":"Zlib",
    "data":{"$hex":"6403789c636040021e1c4082fdc38e5e1b679b8459e6378418967c5cf37ffaff09ff7bffcf03d297ffdfff3ff7ff8dff3d40f6acff93fedf03f2f980586ad6e519f7ff8faa1c5539aa12974a0614000000fba796"},
    "payload":{"class":"pfKIMsg",
    "sender":null,
    "receivers":[],
    "timestamp":0.0,
    "bcastFlags":["ByExactType",
    "NetPropagate",
    "LocalPropagate"],
    "command":"HACKChatMsg",
    "user":"Grüße",
    "playerId":1234999,
    "text":"Shorah, b'shem! ñ 日本 Shorah, b'shem! ñ 日本 Shorah, b'shem! ñ 日本 Shorah, b'shem! ñ 日本 Shorah, b'shem! ñ 日本 Shorah, b'shem! ñ 日本 Shorah, b'shem! ñ 日本 Shorah, b'shem! ñ 日本 Shorah, b'shem! ñ 日本 Shorah, b'shem! ñ 日本 Shorah, b'shem! ñ 日本 Shorah, b'shem! ñ 日本 Shorah, b'shem! ñ 日本 Shorah, b'shem! ñ 日本 Shorah, b'shem! ñ 日本 Shorah, b'shem! ñ 日本 Shorah, b'shem! ñ 日本 Shorah, b'shem! ñ 日本 Shorah, b'shem! ñ 日本 Shorah, b'shem! ñ 日本 ",
    "flags":[],
    "delay":0.0,
    "value":0}},
    "hasDeliveryTime":false}}
    "#);
}

#[test]
fn voice_in_every_encoding() {
    let all = ["voice-speex", "voice-opus", "voice-pcm-nobody"].map(|id| shown(&vector(id)));
    insta::assert_snapshot!(all.join("\n"), @r#"
    0x0000..0x0029    message:
    0x0000..0x0002      class: plNetMsgVoice (633)
    0x0002..0x0006      flags: 0x1001 (HasTimeSent | HasPlayerID)
    0x0006..0x000e      timeSent:
    0x0006..0x000a        seconds: 1700000000
    0x000a..0x000e        microseconds: 250000
    0x000e..0x0012      playerId: 1234567
    0x0012..0x0013      voiceFlags: 0x3 (Encoded | EncodedSpeex)
    0x0013..0x0014      frameCount: 2
    0x0014..0x0020      speex:
    0x0016..0x0020        frames: 2 items
    0x0016..0x001c          [0] 0001020304 (5 bytes)
    0x001c..0x0020          [1] aabbcc (3 bytes)
    0x0020..0x0029      receivers: 2 items
    0x0021..0x0025        [0] 1234999
    0x0025..0x0029        [1] 2000001
    {"message":{"class":"plNetMsgVoice",
    "flags":["HasTimeSent",
    "HasPlayerID"],
    "timeSent":{"seconds":1700000000,
    "microseconds":250000},
    "playerId":1234567,
    "voiceFlags":["Encoded",
    "EncodedSpeex"],
    "frameCount":2,
    "speex":{"frames":[{"$hex":"0001020304"},{"$hex":"aabbcc"}]},
    "receivers":[1234999,2000001]}}
    0x0000..0x003f    message:
    0x0000..0x0002      class: plNetMsgVoice (633)
    0x0002..0x0006      flags: 0x1005 (HasTimeSent | EchoBackToSender | HasPlayerID)
    0x0006..0x000e      timeSent:
    0x0006..0x000a        seconds: 1700000000
    0x000a..0x000e        microseconds: 250000
    0x000e..0x0012      playerId: 1234567
    0x0012..0x0013      voiceFlags: 0x5 (Encoded | EncodedOpus)
    0x0013..0x0014      frameCount: 1
    0x0014..0x003a      opus:
    0x0016..0x001a        head: 0x0000
    0x001a..0x003a        packet: 404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f (32 bytes)
    0x003a..0x003f      receivers: 1 item
    0x003b..0x003f        [0] 1234567
    {"message":{"class":"plNetMsgVoice",
    "flags":["HasTimeSent",
    "EchoBackToSender",
    "HasPlayerID"],
    "timeSent":{"seconds":1700000000,
    "microseconds":250000},
    "playerId":1234567,
    "voiceFlags":["Encoded",
    "EncodedOpus"],
    "frameCount":1,
    "opus":{"head":0,
    "packet":{"$hex":"404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f"}},
    "receivers":[1234567]}}
    0x0000..0x0057    message:
    0x0000..0x0002      class: plNetMsgVoice (633)
    0x0002..0x0006      flags: 0x1001 (HasTimeSent | HasPlayerID)
    0x0006..0x000e      timeSent:
    0x0006..0x000a        seconds: 1700000000
    0x000a..0x000e        microseconds: 250000
    0x000e..0x0012      playerId: 1234567
    0x0012..0x0013      voiceFlags: 0x0
    0x0013..0x0014      frameCount: 0
    0x0014..0x0056      pcm: 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f... (64 bytes)
    0x0056..0x0057      receivers: 0 items
    {"message":{"class":"plNetMsgVoice",
    "flags":["HasTimeSent",
    "HasPlayerID"],
    "timeSent":{"seconds":1700000000,
    "microseconds":250000},
    "playerId":1234567,
    "voiceFlags":[],
    "frameCount":0,
    "pcm":{"$hex":"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f"},
    "receivers":[]}}
    "#);
}

#[test]
fn an_unreadable_payload_is_shown_as_bytes() {
    // A plServerReplyMsg that ends after its flags.
    let hex = "6b0200000000 00000000 00 13000000 6f02 00 00000000 0000000000000000 00080000 00";
    insta::assert_snapshot!(shown(hex), @r#"
    0x0000..0x0023    message:
    0x0000..0x0002      class: plNetMsgGameMessage (619)
    0x0002..0x0006      flags: 0x0
    0x0006..0x0022      stream:
    0x0006..0x000a        uncompressedLength: 0
    0x000a..0x000b        compression: None (0)
    0x000f..0x0022        payload: 6f020000000000000000000000000000080000 (19 bytes)
    0x0022..0x0023      hasDeliveryTime: false
    {"message":{"class":"plNetMsgGameMessage",
    "flags":[],
    "stream":{"uncompressedLength":0,
    "compression":"None",
    "payload":{"$hex":"6f020000000000000000000000000000080000"}},
    "hasDeliveryTime":false}}
    "#);
}

#[test]
fn errors() {
    let mut out = String::new();
    let cases = [
        (0x02ad, "ad02"),
        (0x02ad, "ad02000001000c05"),
        (0x02cd, "ad0200000000"),
        (0x025e, "5e0200000000"),
        (0x0364, "640300000000"),
        (0x7fff, "ff7f00000000"),
        (0x02cb, "cb0200000000"),
        (0x0264, "64020000000000000000"),
        (0x0264, "640200000000ffffffff"),
        (0x026b, "6b0200000000ffffffff020f0000006403789caba81805c40200b20a8ca100"),
        (0x02ad, "ad020000000000"),
    ];
    for (class, hex) in cases {
        let bytes = parse_hex(hex).unwrap();
        let error = received(ClassIndex(class), &bytes, &Limits::DEFAULT).unwrap_err();
        out.push_str(&format!("{error}\n"));
    }
    insta::assert_snapshot!(out, @r"
    plNetMsgMembersListReq: flags at byte 2: wanted 4 bytes, found 0
    plNetMsgMembersListReq: version at byte 6: wanted version 12.6, found 12.5
    class at byte 0: wanted class 0x02cd, as announced by the PropagateBuffer, found 0x02ad
    class at byte 0: wanted a class that can be sent, found plNetMessage, which is abstract
    class at byte 0: wanted the class of a net message, found class 0x0364
    class at byte 0: wanted the class of a net message, found class 0x7fff
    class at byte 0: wanted a class that can be sent, found plNetMsgTerminated, which has no known layout
    plNetMsgGroupOwner: groups at byte 6: wanted a count of at least 1, found 0
    plNetMsgGroupOwner: groups at byte 6: wanted a count that is not negative, found -1
    plNetMsgGameMessage: stream at byte 11: wanted at most 1048576 (inflated bytes), found 4294967295
    plNetMsgMembersListReq: at byte 6: wanted the end, found 1 more byte
    ");
}

/// The tables of classes, as in the documentation.
#[test]
fn tables() {
    let mut out = String::new();
    for row in CLASSES {
        let sender = row.sender.map_or("both", |side| side.name());
        let used = if row.is_used { "" } else { ", unused" };
        let layout = match row.layout {
            worldwire_uru::net_message::NetClassLayout::Known => String::new(),
            other => format!(" ({other:?})"),
        };
        let (class, name, parent) = (row.class, row.name, row.parent);
        out.push_str(&format!("{class:#06x} {name} in {parent}: {sender}{used}{layout}\n"));
    }
    let known =
        |rows: &[worldwire_core::ClassInfo]| rows.iter().filter(|row| row.fields.is_some()).count();
    out.push_str(&format!("{} classes of Plasma messages\n", known(PlasmaMessage::INFO)));
    insta::assert_snapshot!(out, @r"
    0x0218 plNetMsgPagingRoom in plNetMsgRoomsList: client
    0x0264 plNetMsgGroupOwner in plNetMsgServerToClient: server
    0x0265 plNetMsgGameStateRequest in plNetMsgRoomsList: client
    0x026b plNetMsgGameMessage in plNetMsgStream: both
    0x0279 plNetMsgVoice in plNetMessage: both
    0x027d plNetMsgTestAndSet in plNetMsgSharedState: client
    0x027e plNetMsgGetSharedState in plNetMsgObject: client, unused
    0x0286 plNetMsgObjStateRequest in plNetMsgObject: client, unused
    0x029d plNetMsgObjectUpdateFilter in plNetMessage: client
    0x02ad plNetMsgMembersListReq in plNetMessage: client
    0x02ae plNetMsgMembersList in plNetMsgServerToClient: server
    0x02b1 plNetMsgMemberUpdate in plNetMsgServerToClient: server
    0x02b8 plNetMsgInitialAgeStateSent in plNetMsgServerToClient: server
    0x02c8 plNetMsgListenListUpdate in plNetMessage: both, unused
    0x02cd plNetMsgSDLState in plNetMsgStreamedObject: both
    0x0329 plNetMsgSDLStateBCast in plNetMsgSDLState: both
    0x032e plNetMsgGameMessageDirected in plNetMsgGameMessage: both
    0x03ac plNetMsgRelevanceRegions in plNetMessage: client
    0x03b3 plNetMsgLoadClone in plNetMsgGameMessage: both
    0x03b4 plNetMsgPlayerPage in plNetMessage: client
    0x025e plNetMessage in plCreatable: both, unused (Abstract)
    0x0263 plNetMsgRoomsList in plNetMessage: both, unused (Abstract)
    0x0268 plNetMsgObject in plNetMessage: both, unused (Abstract)
    0x026c plNetMsgStream in plNetMessage: both, unused (Abstract)
    0x027b plNetMsgStreamedObject in plNetMsgObject: both, unused (Abstract)
    0x027c plNetMsgSharedState in plNetMsgStreamedObject: both, unused (Abstract)
    0x02b2 plNetMsgServerToClient in plNetMessage: both, unused (Abstract)
    0x02cb plNetMsgTerminated in plNetMsgServerToClient: both, unused (Unknown)
    44 classes of Plasma messages
    ");
}
