//! What people read: trees as text, JSON, and errors.

use worldwire_core::json::{Style, write_children};
use worldwire_core::text::{TextStyle, write_tree};
use worldwire_core::{Bytes32, Field, Reader, Side, Tree, Value, Writer};
use worldwire_uru::connect::{ConnectPacket, SetupPacket};
use worldwire_uru::file::manifest::Manifest;
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::message::{Nested, NodeRef, auth};
use worldwire_uru::types::{NetError, TermStr, Uuid};
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
    let (mut tree, _) = reader.conclude(outcome);
    tree.set_base(0x35);
    both(&tree)
}

fn both(tree: &Tree<'_>) -> String {
    let mut out = String::new();
    write_tree(tree, TextStyle { ranges: true, ..TextStyle::default() }, &mut out);
    write_children(Value::Record, tree.roots(), Style { safe: true }, &mut out);
    out
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
        trans_id: 5,
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
    insta::assert_snapshot!(shown(login()), @"");
}

#[test]
fn a_vault_node() {
    let fetched = auth::server::VaultNodeFetched {
        trans_id: 8,
        result: NetError::Success,
        node: Nested::encode_from(&player()).unwrap(),
    };
    insta::assert_snapshot!(shown(auth::server::ServerMessage::from(fetched)), @"");
}

#[test]
fn a_vault_node_that_cannot_be_read() {
    let fetched = auth::server::VaultNodeFetched {
        trans_id: 8,
        result: NetError(77),
        node: Nested::new(vec![1, 0, 0, 0, 1, 0, 0, 0, 9]),
    };
    insta::assert_snapshot!(shown(auth::server::ServerMessage::from(fetched)), @"");
}

#[test]
fn references_of_nodes() {
    let edge = NodeRef { parent_id: 10_190, child_id: 10_191, owner_id: 0, seen: 0 };
    let refs = auth::server::VaultNodeRefsFetched {
        trans_id: 7,
        result: NetError::VaultNodeNotFound,
        refs: vec![edge; 2].into(),
    };
    insta::assert_snapshot!(shown(auth::server::ServerMessage::from(refs)), @"");
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
    insta::assert_snapshot!(both(&reader.finish()), @"");
}

#[test]
fn the_packets_of_setup() {
    let mut writer = Writer::new();
    ConnectPacket::new(Service::Auth).encode(&mut writer).unwrap();
    SetupPacket::Connect(vec![7; 3].into()).encode(&mut writer).unwrap();
    let mut reader = Reader::traced("stream", writer.as_bytes(), Tree::new());
    ConnectPacket::decode(&mut reader, "connect").unwrap();
    SetupPacket::decode(&mut reader, "setup").unwrap();
    insta::assert_snapshot!(both(&reader.finish()), @"");
}

#[test]
fn a_message_that_is_torn() {
    let bytes = Message::from(login()).to_bytes().unwrap();
    insta::assert_snapshot!(shown_bytes(Service::Auth, Side::Client, &bytes[..60]), @"");
}

#[test]
fn a_message_with_too_long_a_name() {
    let mut bytes = Message::from(login()).to_bytes().unwrap();
    bytes[10] = 64;
    insta::assert_snapshot!(shown_bytes(Service::Auth, Side::Client, &bytes), @"");
}

#[test]
fn a_number_that_nobody_knows() {
    insta::assert_snapshot!(shown_bytes(Service::Auth, Side::Server, &[0x34, 0x12, 0]), @"");
}

#[test]
fn json_with_a_misspelled_field() {
    let json = serde_json::json!({
        "name": "AcctSetPlayerRequest",
        "fields": {"transId": 1, "playrId": 2},
    });
    let error = Message::from_json(Service::Auth, Side::Client, &json).unwrap_err();
    insta::assert_snapshot!(error, @"");
    let json = serde_json::json!({"name": "AcctSetPlayerReqest", "fields": {}});
    let error = Message::from_json(Service::Auth, Side::Client, &json).unwrap_err();
    insta::assert_snapshot!(error, @"");
}
