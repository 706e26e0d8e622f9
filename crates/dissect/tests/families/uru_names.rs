//! Filters know every name that a net message can show.

use std::collections::BTreeSet;

use worldwire_core::{Classes, Field, Limits, NodeRef, Sampler, Side, Writer};
use worldwire_dissect::filter::Filter;
use worldwire_dissect::{Codec, CodecOptions, Definitions, Keys};
use worldwire_uru::net_message::NetMessage;

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
        let unknown = Filter::parse(&filter).unwrap().unknown_fields(definitions);
        assert_eq!(unknown, []);
    }
    let filter = Filter::parse("PropagateBuffer and exists(fields.buffer.mesage)").unwrap();
    assert!(filter.unknown_fields(definitions)[0].is_certain);
}
