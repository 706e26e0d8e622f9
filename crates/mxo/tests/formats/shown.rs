//! The output: trees with their layers and ranges, and errors.

use worldwire_core::json::{Style, write_children};
use worldwire_core::text::{TextStyle, write_tree};
use worldwire_core::{Float, Reader, Side, Tree, Value};
use worldwire_mxo::crypt::SessionKey;
use worldwire_mxo::frame::{
    Datagram, Packet, RccFlags, RpcList, RpcMessage, Section, SequenceWord,
};

fn packet() -> Packet<'static> {
    let long = RpcMessage { is_long: true, ..RpcMessage::new(0x28, b"hi") };
    let lists = vec![RpcList { first: 65_535, messages: vec![long, RpcMessage::new(0x80c8, &[])] }];
    Packet {
        time: 1_248_965_312,
        sequence: SequenceWord::from_bytes([0x7f, 0x01, 0xa0, 0x17]),
        flags: RccFlags(0xa2),
        sim_time: Some(Float(602_219.8)),
        sections: vec![
            Section::Rpc(lists),
            Section::Other { id: 5, bytes: vec![2, 12, 0, 0].into() },
        ],
    }
}

fn text(tree: &Tree<'_>) -> String {
    let mut text = String::new();
    write_tree(tree, TextStyle { ranges: true, ..TextStyle::default() }, &mut text);
    text
}

#[test]
fn an_encrypted_datagram_has_a_layer() {
    let key = SessionKey::new(&[7; 16]);
    let wire = key.seal_datagram(&[1; 16], &packet().to_bytes().unwrap());
    let mut reader = Reader::traced("datagram", &wire, Tree::new());
    let opened = Datagram::decode_opened(&mut reader, &key, Some(Side::Client)).unwrap();
    assert_eq!(opened, Some(packet()));
    let tree = reader.finish();
    insta::assert_snapshot!(text(&tree), @r"
    0x0000..0x0001 datagram  type: 1
    0x0001..0x0011 datagram  iv: 01010101010101010101010101010101 (16 bytes)
    0x0011..0x0041 datagram  cipher: 9553d14bde8985c34e8c716197f609baee820655df47f3ac79a95504901efda22f313e158a01005e091f4a6f3623e088 (48 bytes)
    0x0000..0x0025 decrypted  packet:
    0x0000..0x0004 decrypted    crc: 0x34ee4078
    0x0004..0x0006 decrypted    length: 27
    0x0006..0x000a decrypted    time: 1248965312
    0x000a..0x000e decrypted    sequence:
    0x000a..0x000b decrypted      acks: 0x007f
    0x000b..0x000d decrypted      remote: 26
    0x000c..0x000e decrypted      local: 23
    0x000e..0x000f decrypted    flags: 0xa2 (Always | SimTime | 0x20)
    0x000f..0x0013 decrypted    simTime: 602219.8
    0x0013..0x0025 decrypted    sections: 2 items
    0x0013..0x0020 decrypted      [0]
    0x0013..0x0014 decrypted        mpm: Rpc (4)
    0x0014..0x0020 decrypted        lists: 1 item
    0x0015..0x0020 decrypted          [0]
    0x0015..0x0017 decrypted            firstSeq: 65535
    0x0017..0x0020 decrypted            messages: 2 items
    0x0018..0x001d decrypted              [0] longLength 3  opcode Chat (40)  data 6869 (2 bytes)
    0x001d..0x0020 decrypted              [1] length 2  opcode ObjectInteraction (32968)  data no bytes
    0x0020..0x0025 decrypted      [1] mpm Unknown5 (5)  bytes 020c0000 (4 bytes)
    ");
    let layer = &tree.layers()[1];
    let parent = layer.parent().unwrap();
    assert_eq!((layer.name(), parent.start, parent.end), ("decrypted", 17, 65));
}

#[test]
fn a_packet_as_json() {
    let bytes = packet().to_bytes().unwrap();
    let mut reader = Reader::traced("packet", &bytes, Tree::new());
    Packet::decode(&mut reader, Some(Side::Client)).unwrap();
    let mut text = String::new();
    write_children(Value::Record, reader.finish().roots(), Style::default(), &mut text);
    insta::assert_snapshot!(text, @r#"{"crc":888029304,"length":27,"time":1248965312,"sequence":{"acks":127,"remote":26,"local":23},"flags":["Always","SimTime","0x20"],"simTime":602219.8,"sections":[{"mpm":"Rpc","lists":[{"firstSeq":65535,"messages":[{"longLength":3,"opcode":"Chat","data":{"$hex":"6869"}},{"length":2,"opcode":"ObjectInteraction","data":{"$hex":""}}]}]},{"mpm":"Unknown5","bytes":{"$hex":"020c0000"}}]}"#);
}

#[test]
fn plain_packets() {
    let mut shown = String::new();
    for bytes in [&[0, 0, 0, 0, 0, 1, 4, 8, 9, 0, 0, 0][..], &[0, 0, 0, 0, 0, 0, 5], &[0, 7]] {
        let mut reader = Reader::traced("datagram", bytes, Tree::new());
        Datagram::decode(&mut reader).unwrap();
        shown += &text(&reader.finish());
    }
    insta::assert_snapshot!(shown, @r"
    0x0000..0x0008    kind: Ping
    0x0008..0x000c    value: 9
    0x0000..0x0007    kind: Answer
    0x0000..0x0000    kind: Other
    0x0000..0x0002    bytes: 0007 (2 bytes)
    ");
}

#[test]
fn errors_state_where_and_what() {
    let mut shown = Vec::new();
    let mut read = |bytes: &[u8]| {
        shown.push(Packet::decode(&mut Reader::new(bytes), None).unwrap_err().to_string());
    };
    let whole = packet().to_bytes().unwrap();
    read(&whole[..8]);
    read(&whole[..20]);
    let mut damaged = whole.clone();
    damaged[30] ^= 1;
    read(&damaged);
    let mut cut = packet();
    cut.sections.pop();
    let cut = cut.to_bytes().unwrap();
    // The count states two messages, but there is only one.
    let body = &cut[10..cut.len() - 3];
    let counted =
        [&u16::try_from(body.len()).unwrap().to_le_bytes()[..], &cut[6..10], body].concat();
    read(&[&crc32fast::hash(&counted).to_le_bytes()[..], &counted].concat());
    shown.push(Datagram::decode(&mut Reader::new(&[1; 30])).unwrap_err().to_string());
    insta::assert_snapshot!(shown.join("\n"), @r"
    time at byte 6: wanted 4 bytes, found 2
    length at byte 4: wanted 27 bytes after the time, found 10
    crc at byte 0: wanted CRC-32 92994bcc, found 34ee4078
    sections[0].lists[0].messages[1].length at byte 29: wanted 1 byte, found 0
    cipher at byte 17: wanted whole blocks of 16 bytes, found 13 bytes
    ");
}
