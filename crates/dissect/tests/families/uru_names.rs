//! Filters know every name that a net message or a vault node can show.

use std::collections::BTreeSet;

use worldwire_core::{Classes, Field, Limits, NodeRef, Sampler, Side, Writer};
use worldwire_dissect::filter::{Filter, Resolver, Subject};
use worldwire_dissect::{Codec, CodecOptions, Definitions, Keys, Time};
use worldwire_uru::frame::Message;
use worldwire_uru::message::auth::server::{ServerMessage, VaultNodeFetched};
use worldwire_uru::net_message::NetMessage;
use worldwire_uru::types::{Nested, NetError, TransId};
use worldwire_uru::vault::{NodeBlob, NodeType, VaultNode};

/// Adds the names of a node's descendants, each in quotes.
fn names(node: NodeRef<'_, '_>, all: &mut BTreeSet<String>) {
    for child in node.children() {
        if !child.name().is_empty() {
            all.insert(format!("[\"{}\"]", child.name()));
        }
        names(child, all);
    }
}

#[test]
fn filters_know_all_names_inside_net_messages() {
    let (keys, definitions, limits) = (Keys::none(), Definitions::built_in(), Limits::DEFAULT);
    let (keys, definitions, limits) = (&keys, &definitions, &limits);
    let options = CodecOptions { from: Side::Client, keys, definitions, limits };
    let codec = Codec::named("uru.game").unwrap();
    let mut all = BTreeSet::new();
    let mut classes = BTreeSet::new();
    for seed in 0..1500 {
        let message = NetMessage::sample(&mut Sampler::new(seed));
        let mut writer = Writer::new();
        if matches!(message, NetMessage::Other(_)) || message.encode(&mut writer).is_err() {
            continue;
        }
        classes.insert(message.class());
        let buffer = writer.into_bytes();
        let length = u32::try_from(buffer.len()).unwrap().to_le_bytes();
        let class = message.class().to_le_bytes();
        let bytes = [&[2, 0][..], &class, &length, &buffer].concat();
        let tree = codec.decode(&bytes, &options);
        assert_eq!(tree.error(), None, "{seed}");
        for root in tree.roots().filter(|root| root.name() == "fields") {
            for field in root.children().filter(|field| field.name() == "buffer") {
                names(field, &mut all);
            }
        }
    }
    assert!(classes.len() > 15 && all.len() > 120, "{} {}", classes.len(), all.len());
    let all: Vec<&String> = all.iter().collect();
    for some in all.chunks(60) {
        let tests = some.iter().map(|name| format!("exists(fields.buffer{name})"));
        let filter = format!("PropagateBuffer and ({})", tests.collect::<Vec<_>>().join(" or "));
        let unknown = Filter::parse(&filter).unwrap().unknown_fields(&Resolver::new(definitions));
        assert_eq!(unknown, []);
    }
    let filter = Filter::parse("PropagateBuffer and exists(fields.buffer.mesage)").unwrap();
    assert!(filter.unknown_fields(&Resolver::new(definitions))[0].is_certain);
}

/// Fields of vault nodes have two names, in filters and in JSON.
#[test]
fn vault_fields_have_the_names_of_the_game() {
    let (keys, definitions, limits) = (Keys::none(), Definitions::built_in(), Limits::DEFAULT);
    let (keys, definitions, limits) = (&keys, &definitions, &limits);
    let options = CodecOptions { from: Side::Server, keys, definitions, limits };
    let codec = Codec::named("uru.auth").unwrap();
    let fetched = |node: VaultNode<'static>| {
        let node = Nested::encode_from(&node).unwrap();
        let (trans_id, result) = (TransId(8), NetError::Success);
        let message = ServerMessage::from(VaultNodeFetched { trans_id, result, node });
        Message::from(message).to_bytes().unwrap()
    };
    let info = fetched(VaultNode {
        node_type: Some(NodeType::PlayerInfo),
        int32_1: Some(1),
        istring64_1: Some("Yeesha".into()),
        ..VaultNode::default()
    });
    let link = fetched(VaultNode {
        node_type: Some(NodeType::AgeLink),
        blob_1: Some(NodeBlob::new(b"Default:LinkInPointDefault:;".to_vec())),
        ..VaultNode::default()
    });
    let inbox = fetched(VaultNode {
        node_type: Some(NodeType::Folder),
        int32_1: Some(1),
        ..VaultNode::default()
    });
    for (bytes, filter, wanted) in [
        (&info, "PlayerName == Yeesha", true),
        (&info, "IString64_1 == Yeesha", true),
        (&info, "node.PlayerName == Yeesha and VaultNodeFetched and Online == 1", true),
        (&info, "PlayerName == Atrus", false),
        (&info, "exists(AgeInstName) or exists(EntryName) or Online == 0", false),
        (&link, "AgeSpawnPoints contains LinkInPointDefault", true),
        (&inbox, "FolderType == Inbox and Int32_1 == 1", true),
        (&inbox, "FolderType == AgeOwners or exists(Online)", false),
    ] {
        let parsed = Filter::parse(filter).unwrap().resolve(&Resolver::new(definitions));
        assert_eq!(parsed.unknown_fields(&Resolver::new(definitions)), [], "{filter}");
        assert_eq!(parsed.unknown_values(&Resolver::new(definitions)), [], "{filter}");
        let tree = codec.decode(bytes, &options);
        let subject = Subject {
            name: "auth.VaultNodeFetched",
            family: "uru",
            from: "server",
            stream: 0,
            packet: 1,
            time: 0.0,
            date: Time(0),
            ends: None,
            length: bytes.len() as u64,
            tree: &tree,
            item: None,
        };
        assert_eq!(parsed.matches(&subject), wanted, "{filter}");
    }
    let layout = Codec::named("uru.vault-node").unwrap().layout();
    let documented = layout.iter().find(|field| field.name == "PlayerName").unwrap();
    assert_eq!(
        (&*documented.layout, documented.doc),
        ("IString64_1", "In nodes of type Player, PlayerInfo.")
    );
    let misspelled = Filter::parse("VaultNodeFetched and node.PlayerNam == x").unwrap();
    let unknown = misspelled.unknown_fields(&Resolver::new(definitions));
    assert_eq!(unknown[0].nearest.as_deref(), Some("PlayerName"));
}
