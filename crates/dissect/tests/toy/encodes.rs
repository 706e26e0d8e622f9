//! The JSON of every item encodes to the item's bytes, in every family.

use std::collections::BTreeMap;

use worldwire_capture::{CaptureReader, Record};
use worldwire_core::json::{Json, Style, write_node};
use worldwire_core::{Limits, Tree};
use worldwire_dissect::{Definitions, Dissection, Item, Keys, Options, Scratch};

use crate::family::families;
use crate::talk::{Order, packets, push};

/// A capture with its keys and definitions.
pub struct Sample {
    pub family: &'static str,
    pub capture: &'static [u8],
    pub keys: Option<&'static str>,
    pub data: &'static [(&'static str, &'static str)],
    /// Setup steps that cannot be encoded, because they follow from keys and random numbers.
    pub not_encoded: &'static [&'static str],
    /// Whether the conversations use UDP, so that no messages are injected.
    pub is_udp: bool,
}

pub const SAMPLES: [Sample; 8] = [
    Sample {
        family: "uru",
        capture: include_bytes!("../../../../samples/uru-login.pcapng"),
        keys: Some(include_str!("../../../../samples/uru-keys.toml")),
        data: &[],
        not_encoded: &["setup.Connect", "setup.Encrypt"],
        is_udp: false,
    },
    Sample {
        family: "uru",
        capture: include_bytes!("../../../../samples/uru-age.pcapng"),
        keys: Some(include_str!("../../../../samples/uru-keys.toml")),
        data: &[
            ("Fernhollow.sdl", include_str!("../../../../samples/sdl/Fernhollow.sdl")),
            ("things.sdl", include_str!("../../../../samples/sdl/things.sdl")),
        ],
        not_encoded: &["setup.Connect", "setup.Encrypt"],
        is_udp: false,
    },
    Sample {
        family: "uru",
        capture: include_bytes!("../../../../samples/uru-games.pcapng"),
        keys: Some(include_str!("../../../../samples/uru-keys.toml")),
        data: &[],
        not_encoded: &["setup.Connect", "setup.Encrypt"],
        is_udp: false,
    },
    Sample {
        family: "ki",
        capture: include_bytes!("../../../../samples/ki-login.pcapng"),
        keys: Some(include_str!("../../../../samples/ki-keys.toml")),
        data: &[],
        not_encoded: &[
            "control.KeepAlive",
            "control.KeepAliveRsp",
            "control.SessionAccept",
            "control.SessionOffer",
        ],
        is_udp: false,
    },
    Sample {
        family: "ki",
        capture: include_bytes!("../../../../samples/ki-server.pcapng"),
        keys: Some(include_str!("../../../../samples/ki-server-keys.toml")),
        data: &[],
        not_encoded: &[
            "control.KeepAlive",
            "control.KeepAliveRsp",
            "control.SessionAccept",
            "control.SessionOffer",
        ],
        is_udp: false,
    },
    Sample {
        family: "mxo",
        capture: include_bytes!("../../../../samples/mxo-world.pcapng"),
        keys: Some(include_str!("../../../../samples/mxo-keys.toml")),
        data: &[],
        not_encoded: &[],
        is_udp: true,
    },
    Sample {
        family: "mxo",
        capture: include_bytes!("../../../../samples/mxo-crowd.pcapng"),
        keys: Some(include_str!("../../../../samples/mxo-crowd-keys.toml")),
        data: &[],
        not_encoded: &[],
        is_udp: true,
    },
    Sample {
        family: "tera",
        capture: include_bytes!("../../../../samples/tera-login.pcapng"),
        keys: None,
        data: &[
            (
                "protocol.999001.map",
                include_str!("../../../../samples/tera/map/protocol.999001.map"),
            ),
            (
                "C_START_SKILL.1.def",
                include_str!("../../../../samples/tera/definitions/C_START_SKILL.1.def"),
            ),
            (
                "S_SPAWN_USER.1.def",
                include_str!("../../../../samples/tera/definitions/S_SPAWN_USER.1.def"),
            ),
            ("revisions.json", include_str!("../../../../samples/tera/revisions.json")),
            ("integrity/98.json", include_str!("../../../../samples/tera/integrity/98.json")),
        ],
        not_encoded: &["handshake.Hello", "handshake.Key"],
        is_udp: false,
    },
];

impl Sample {
    pub fn keys(&self) -> Keys {
        self.keys.map_or_else(Keys::none, |keys| Keys::parse_for(families(), keys).unwrap())
    }

    pub fn definitions(&self) -> Definitions {
        let mut definitions = Definitions::built_in_for(families());
        if !self.data.is_empty() {
            assert_eq!(definitions.add(self.data.iter().copied()), Some(Vec::new()));
        }
        definitions
    }

    pub fn packets(&self) -> Vec<Vec<u8>> {
        let mut capture = CaptureReader::new(self.capture, &Limits::DEFAULT).unwrap();
        let mut packets = Vec::new();
        while let Some(record) = capture.next().unwrap() {
            if let Record::Packet(packet) = record {
                packets.push(packet.data.to_vec());
            }
        }
        packets
    }
}

/// The value of `fields` in an item's JSON line.
pub fn fields(item: &Item<'_>, limits: &Limits) -> Json {
    let tree = item.message().unwrap().tree(Tree::new(), limits);
    assert!(tree.error().is_none(), "{:?}", tree.error());
    let mut json = String::new();
    match tree.find("fields") {
        Some(fields) => write_node(fields, Style::default(), &mut json),
        None => {
            let roots = tree.roots();
            worldwire_core::json::write_children(
                worldwire_core::Value::Record,
                roots,
                Style::default(),
                &mut json,
            );
        }
    }
    serde_json::from_str(&json).unwrap()
}

/// Encodes every item of a capture. Returns how many were encoded, and the names of the others with
/// the reason.
fn encode_all(
    packets: &[Vec<u8>],
    keys: Keys,
    definitions: Definitions,
) -> (usize, BTreeMap<String, String>) {
    let mut dissection = Dissection::new(Options { keys, definitions, ..Options::default() });
    for (number, data) in (1..).zip(packets) {
        push(&mut dissection, number, data);
    }
    dissection.end();
    let limits = Limits::DEFAULT;
    let show = |item: &Item<'_>, scratch: &mut Scratch, out: &mut Vec<(String, Option<String>)>| {
        scratch.name.clear();
        item.push_name(&mut scratch.name);
        let outcome = match item.note() {
            Some(_) => return assert!(item.encode(&Json::Null).is_err()),
            None => item.encode(&fields(item, &limits)),
        };
        if let Ok(bytes) = &outcome
            && *bytes != item.body()
        {
            let text = format!("{}: {bytes:?} of {:?}", scratch.name, item.body());
            return out.push((scratch.name.clone(), Some(text)));
        }
        out.push((scratch.name.clone(), outcome.err().map(|error| error.to_string())));
    };
    let mut all = Vec::new();
    dissection.run(&show, &mut all, |_| ());
    assert_eq!(dissection.summary().problems, 0);
    let encoded = all.iter().filter(|(_, error)| error.is_none()).count();
    let refused = all.into_iter().filter_map(|(name, error)| Some((name, error?)));
    (encoded, refused.collect())
}

#[test]
fn every_item_of_the_toy_encodes_to_its_bytes() {
    let packets = packets(7, Order::StreamFirst);
    let definitions = Definitions::built_in_for(families());
    let (encoded, refused) = encode_all(&packets, Keys::none(), definitions);
    assert_eq!((encoded, refused), (11, BTreeMap::new()));
}

#[test]
fn every_message_of_the_samples_encodes_to_its_bytes() {
    for sample in &SAMPLES {
        let (encoded, refused) = encode_all(&sample.packets(), sample.keys(), sample.definitions());
        assert!(encoded > 5, "{}: {encoded}", sample.family);
        let names: Vec<&str> = refused.keys().map(String::as_str).collect();
        assert_eq!(names, sample.not_encoded, "{}: {refused:#?}", sample.family);
    }
}
