//! The display of messages: trees as text, JSON, and errors.

use worldwire_core::json::{Style, json, write_children};
use worldwire_core::text::{TextStyle, write_tree};
use worldwire_core::{Bytes32, Field, Reader, Side, Tree, Value, Writer};
use worldwire_uru::connect::{ConnectPacket, SetupPacket};
use worldwire_uru::file::manifest::Manifest;
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::message::{NodeRef, auth};
use worldwire_uru::types::TransId;
use worldwire_uru::types::{Nested, NetError, TermStr, Uuid};
use worldwire_uru::vault::{NodeType, VaultNode};

/// A message as text with its byte ranges, then as JSON.
fn shown<'m>(message: impl Into<Message<'m>>) -> String {
    let message = message.into();
    let bytes = message.to_bytes().unwrap();
    shown_bytes(message.service(), message.sender(), &bytes)
}

fn shown_bytes(service: Service, side: Side, bytes: &[u8]) -> String {
    let mut reader = Reader::traced("message", bytes, Tree::new());
    let outcome = Message::decode(service, side, &mut reader).map(|_| ());
    both(&reader.conclude(outcome).0)
}

fn both(tree: &Tree<'_>) -> String {
    let mut out = String::new();
    write_tree(tree, TextStyle { ranges: true, ..TextStyle::default() }, &mut out);
    let mut json = String::new();
    write_children(Value::Record, tree.roots(), Style { safe: true }, &mut json);
    // Write one field per line, so that differences are easy to read.
    out + &json.replace(",\"", ",\n\"")
}

fn player() -> VaultNode<'static> {
    VaultNode {
        node_id: Some(10_190),
        create_time: Some(1_767_200_000),
        creator_acct: Some(Uuid([0x11; 16])),
        node_type: Some(NodeType::Player),
        int32_1: Some(-1),
        istring64_1: Some(TermStr::from("Yeesha \"\u{65e5}\"")),
        text_1: Some(TermStr::from("")),
        blob_1: Some(Bytes32::new(vec![0xde, 0xad])),
        ..VaultNode::default()
    }
}

fn login() -> auth::client::ClientMessage<'static> {
    auth::client::AcctLoginRequest {
        trans_id: TransId(5),
        client_challenge: 0x0bad_5eed,
        account_name: "shorah@example.org".into(),
        challenge_hash: [0xab; 20],
        auth_token: "".into(),
        os: "win".into(),
    }
    .into()
}

#[test]
fn a_login_request() {
    insta::assert_snapshot!(shown(login()), @r#"
    0x0000..0x0002    name: AcctLoginRequest (3)
    0x0002..0x004e    fields:
    0x0002..0x0006      transId: 5
    0x0006..0x000a      clientChallenge: 195911405
    0x000a..0x0030      accountName: "shorah@example.org"
    0x0030..0x0044      challengeHash: abababababababababababababababababababab (20 bytes)
    0x0044..0x0046      authToken: ""
    0x0046..0x004e      os: "win"
    {"name":"AcctLoginRequest",
    "fields":{"transId":5,
    "clientChallenge":195911405,
    "accountName":"shorah@example.org",
    "challengeHash":{"$hex":"abababababababababababababababababababab"},
    "authToken":"",
    "os":"win"}}
    "#);
}

#[test]
fn a_vault_node() {
    let fetched = auth::server::VaultNodeFetched {
        trans_id: TransId(8),
        result: NetError::Success,
        node: Nested::encode_from(&player()).unwrap(),
    };
    insta::assert_snapshot!(shown(auth::server::ServerMessage::from(fetched)), @r#"
    0x0000..0x0002    name: VaultNodeFetched (24)
    0x0002..0x005c    fields:
    0x0002..0x0006      transId: 8
    0x0006..0x000a      result: Success (0)
    0x000a..0x005c      node:
    0x0016..0x001a        NodeId: 10190
    0x001a..0x001e        CreateTime: 1767200000
    0x001e..0x002e        CreatorAcct: 11111111-1111-1111-1111-111111111111
    0x002e..0x0032        NodeType: Player (2)
    0x0032..0x0036        Int32_1: -1
    0x0032..0x0036        Disabled: -1
    0x0036..0x0050        IString64_1: "Yeesha \"日\""
    0x0036..0x0050        PlayerName: "Yeesha \"日\""
    0x0050..0x0056        Text_1: ""
    0x0056..0x005c        Blob_1: dead (2 bytes)
    {"name":"VaultNodeFetched",
    "fields":{"transId":8,
    "result":"Success",
    "node":{"NodeId":10190,
    "CreateTime":1767200000,
    "CreatorAcct":"11111111-1111-1111-1111-111111111111",
    "NodeType":"Player",
    "Int32_1":-1,
    "Disabled":-1,
    "IString64_1":"Yeesha \"日\"",
    "PlayerName":"Yeesha \"日\"",
    "Text_1":"",
    "Blob_1":{"$hex":"dead"}}}}
    "#);
}

#[test]
fn an_unreadable_vault_node() {
    let fetched = auth::server::VaultNodeFetched {
        trans_id: TransId(8),
        result: NetError(77),
        node: Nested::new(vec![1, 0, 0, 0, 1, 0, 0, 0, 9]),
    };
    insta::assert_snapshot!(shown(auth::server::ServerMessage::from(fetched)), @r#"
    0x0000..0x0002    name: VaultNodeFetched (24)
    0x0002..0x0017    fields:
    0x0002..0x0006      transId: 8
    0x0006..0x000a      result: 77
    0x000a..0x0017      node: 010000000100000009 (9 bytes)
    {"name":"VaultNodeFetched",
    "fields":{"transId":8,
    "result":77,
    "node":{"$hex":"010000000100000009"}}}
    "#);
}

#[test]
fn references_of_nodes() {
    let edge = NodeRef { parent_id: 10_190, child_id: 10_191, owner_id: 0, seen: 0 };
    let refs = auth::server::VaultNodeRefsFetched {
        trans_id: TransId(7),
        result: NetError::VaultNodeNotFound,
        refs: vec![edge; 2].into(),
    };
    insta::assert_snapshot!(shown(auth::server::ServerMessage::from(refs)), @r#"
    0x0000..0x0002    name: VaultNodeRefsFetched (29)
    0x0002..0x0028    fields:
    0x0002..0x0006      transId: 7
    0x0006..0x000a      result: VaultNodeNotFound (18)
    0x000a..0x0028      refs: 2 items
    0x000e..0x001b        [0] parentId 10190  childId 10191  ownerId 0  seen 0
    0x001b..0x0028        [1] parentId 10190  childId 10191  ownerId 0  seen 0
    {"name":"VaultNodeRefsFetched",
    "fields":{"transId":7,
    "result":"VaultNodeNotFound",
    "refs":[{"parentId":10190,
    "childId":10191,
    "ownerId":0,
    "seen":0},{"parentId":10190,
    "childId":10191,
    "ownerId":0,
    "seen":0}]}}
    "#);
}

#[test]
fn a_manifest() {
    let line = "dat\\Garden.age,Garden.age.gz,0123456789abcdef0123456789abcdef,\
                fedcba9876543210fedcba9876543210,4096,70000,41";
    let manifest = Manifest::parse(line).unwrap();
    let mut writer = Writer::new();
    manifest.encode(&mut writer).unwrap();
    let mut reader = Reader::traced("manifest", writer.as_bytes(), Tree::new());
    Manifest::decode(&mut reader, "files").unwrap();
    insta::assert_snapshot!(both(&reader.finish()), @r#"
    0x0000..0x00d2    files: 1 item
    0x0000..0x00d0      [0]
    0x0000..0x001e        clientName: r"dat\Garden.age"
    0x001e..0x003a        downloadName: "Garden.age.gz"
    0x003a..0x007c        md5: "0123456789abcdef0123456789abcdef"
    0x007c..0x00be        md5compressed: "fedcba9876543210fedcba9876543210"
    0x00be..0x00c4        fileSize: 4096
    0x00c4..0x00ca        compressedSize: 70000
    0x00ca..0x00d0        flags: 0x29 (SplitStereo | Gzip | Bundle)
    {"files":[{"clientName":"dat\\Garden.age",
    "downloadName":"Garden.age.gz",
    "md5":"0123456789abcdef0123456789abcdef",
    "md5compressed":"fedcba9876543210fedcba9876543210",
    "fileSize":4096,
    "compressedSize":70000,
    "flags":["SplitStereo",
    "Gzip",
    "Bundle"]}]}
    "#);
}

#[test]
fn setup_packets() {
    let mut writer = Writer::new();
    ConnectPacket::new(Service::Auth).encode(&mut writer).unwrap();
    SetupPacket::Connect(vec![7; 3].into()).encode(&mut writer).unwrap();
    let mut reader = Reader::traced("stream", writer.as_bytes(), Tree::new());
    ConnectPacket::decode(&mut reader, "connect").unwrap();
    SetupPacket::decode(&mut reader, "setup").unwrap();
    insta::assert_snapshot!(both(&reader.finish()), @r#"
    0x0000..0x0033    connect:
    0x0000..0x0001      connType: CliToAuth (10)
    0x0001..0x0003      headerBytes: 31
    0x0003..0x0007      buildId: 918
    0x0007..0x000b      buildType: Live (50)
    0x000b..0x000f      branchId: 1
    0x000f..0x001f      productId: ea489821-6c35-4bd0-9dae-bb17c585e680
    0x001f..0x0023      dataBytes: 20
    0x0023..0x0033      token: 00000000-0000-0000-0000-000000000000
    0x0033..0x0038    setup:
    0x0033..0x0034      type: Connect (0)
    0x0034..0x0035      byteCount: 5
    0x0035..0x0038      y: 070707 (3 bytes)
    {"connect":{"connType":"CliToAuth",
    "headerBytes":31,
    "buildId":918,
    "buildType":"Live",
    "branchId":1,
    "productId":"ea489821-6c35-4bd0-9dae-bb17c585e680",
    "dataBytes":20,
    "token":"00000000-0000-0000-0000-000000000000"},
    "setup":{"type":"Connect",
    "byteCount":5,
    "y":{"$hex":"070707"}}}
    "#);
}

#[test]
fn a_truncated_message() {
    let bytes = Message::from(login()).to_bytes().unwrap();
    insta::assert_snapshot!(shown_bytes(Service::Auth, Side::Client, &bytes[..60]), @r#"
    0x0000..0x0002    name: AcctLoginRequest (3)
    0x0002..0x0030    fields:
    0x0002..0x0006      transId: 5
    0x0006..0x000a      clientChallenge: 195911405
    0x000a..0x0030      accountName: "shorah@example.org"
    ! auth.AcctLoginRequest: fields.challengeHash at byte 48: wanted 20 bytes, found 12
    {"name":"AcctLoginRequest",
    "fields":{"transId":5,
    "clientChallenge":195911405,
    "accountName":"shorah@example.org"}}
    "#);
}

#[test]
fn a_message_with_an_overlong_name() {
    let mut bytes = Message::from(login()).to_bytes().unwrap();
    bytes[10] = 64;
    insta::assert_snapshot!(shown_bytes(Service::Auth, Side::Client, &bytes), @r#"
    0x0000..0x0002    name: AcctLoginRequest (3)
    0x0002..0x000c    fields:
    0x0002..0x0006      transId: 5
    0x0006..0x000a      clientChallenge: 195911405
    ! auth.AcctLoginRequest: fields.accountName at byte 10: wanted at most 63 (UTF-16 units of this string), found 64
    {"name":"AcctLoginRequest",
    "fields":{"transId":5,
    "clientChallenge":195911405}}
    "#);
}

#[test]
fn an_unknown_number() {
    insta::assert_snapshot!(shown_bytes(Service::Auth, Side::Server, &[0x34, 0x12, 0]), @r#"
    0x0000..0x0002    name: 4660
    0x0002..0x0002    fields:
    ! auth message from the server: fields at byte 0: wanted the number of a server message, found 4660
    {"name":4660,
    "fields":{}}
    "#);
}

#[test]
fn json_with_a_misspelled_field() {
    let json = json!({
        "name": "AcctSetPlayerRequest",
        "fields": {"transId": 1, "playrId": 2},
    });
    let error = Message::from_json(Service::Auth, Side::Client, &json).unwrap_err();
    insta::assert_snapshot!(error, @r#"
    auth.AcctSetPlayerRequest: fields.playerId: is missing; is "playrId" a misspelling of it?
    "#);
    let json = json!({"name": "AcctSetPlayerReqest", "fields": {}});
    let error = Message::from_json(Service::Auth, Side::Client, &json).unwrap_err();
    insta::assert_snapshot!(error, @r#"
    auth.AcctSetPlayerReqest: fields: wanted a message that a client sends on auth connections, found "AcctSetPlayerReqest"; did you mean "AcctSetPlayerRequest"?
    "#);
}
