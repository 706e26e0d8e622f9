//! The samples of all families, and the contents of their conversations.

use std::collections::BTreeMap;

use worldwire_capture::{CaptureReader, LinkType, Packet, Record, Timestamp};
use worldwire_core::Limits;
use worldwire_dissect::{Definitions, Dissection, Item, Keys, NoteKind, Options, Scratch, Summary};

/// One of worldwire's own captures, with keys and definitions.
pub(crate) struct Sample {
    pub(crate) capture: &'static [u8],
    pub(crate) keys: &'static str,
    pub(crate) conversations: u64,
    /// The client's port in a conversation with many messages, and the number of data packets that
    /// set it up.
    pub(crate) busy: (u16, usize),
    /// Definitions and maps.
    pub(crate) data: &'static [(&'static str, &'static str)],
}

pub(crate) const URU: Sample = Sample {
    capture: include_bytes!("../../../../samples/uru-login.pcapng"),
    keys: include_str!("../../../../samples/uru-keys.toml"),
    conversations: 4,
    busy: (49_155, 6),
    data: &[],
};

pub(crate) const URU_AGE: Sample = Sample {
    capture: include_bytes!("../../../../samples/uru-age.pcapng"),
    keys: include_str!("../../../../samples/uru-keys.toml"),
    conversations: 2,
    busy: (49_154, 6),
    data: &[
        ("Fernhollow.sdl", include_str!("../../../../samples/sdl/Fernhollow.sdl")),
        ("things.sdl", include_str!("../../../../samples/sdl/things.sdl")),
    ],
};

pub(crate) const URU_GAMES: Sample = Sample {
    capture: include_bytes!("../../../../samples/uru-games.pcapng"),
    keys: include_str!("../../../../samples/uru-keys.toml"),
    conversations: 3,
    busy: (49_154, 6),
    data: &[],
};

pub(crate) const KI: Sample = Sample {
    capture: include_bytes!("../../../../samples/ki-login.pcapng"),
    keys: include_str!("../../../../samples/ki-keys.toml"),
    conversations: 3,
    busy: (50_002, 2),
    data: &[],
};

pub(crate) const KI_SERVER: Sample = Sample {
    capture: include_bytes!("../../../../samples/ki-server.pcapng"),
    keys: include_str!("../../../../samples/ki-server-keys.toml"),
    conversations: 3,
    busy: (50_102, 2),
    data: &[],
};

pub(crate) const MXO: Sample = Sample {
    capture: include_bytes!("../../../../samples/mxo-world.pcapng"),
    keys: include_str!("../../../../samples/mxo-keys.toml"),
    conversations: 1,
    busy: (50_210, 6),
    data: &[],
};

pub(crate) const MXO_CROWD: Sample = Sample {
    capture: include_bytes!("../../../../samples/mxo-crowd.pcapng"),
    keys: include_str!("../../../../samples/mxo-crowd-keys.toml"),
    conversations: 2,
    busy: (50_300, 6),
    data: &[],
};

pub(crate) const TERA: Sample = Sample {
    capture: include_bytes!("../../../../samples/tera-login.pcapng"),
    keys: include_str!("../../../../samples/uru-keys.toml"),
    conversations: 1,
    busy: (50_123, 6),
    data: &[
        ("protocol.999001.map", include_str!("../../../../samples/tera/map/protocol.999001.map")),
        (
            "C_START_SKILL.1.def",
            include_str!("../../../../samples/tera/definitions/C_START_SKILL.1.def"),
        ),
        (
            "S_SPAWN_USER.1.def",
            include_str!("../../../../samples/tera/definitions/S_SPAWN_USER.1.def"),
        ),
        (
            "S_SYSTEM_MESSAGE.1.def",
            include_str!("../../../../samples/tera/definitions/S_SYSTEM_MESSAGE.1.def"),
        ),
        ("sysmsg.98.map", include_str!("../../../../samples/tera/map/sysmsg.98.map")),
        ("revisions.json", include_str!("../../../../samples/tera/revisions.json")),
        ("integrity/98.json", include_str!("../../../../samples/tera/integrity/98.json")),
    ],
};

pub(crate) const ALL: [&Sample; 8] =
    [&URU, &URU_AGE, &URU_GAMES, &KI, &KI_SERVER, &MXO, &MXO_CROWD, &TERA];

pub(crate) fn packets(sample: &Sample) -> Vec<Vec<u8>> {
    let mut capture = CaptureReader::new(sample.capture, &Limits::DEFAULT).unwrap();
    let mut packets = Vec::new();
    while let Some(record) = capture.next().unwrap() {
        if let Record::Packet(packet) = record {
            packets.push(packet.data.to_vec());
        }
    }
    packets
}

pub(crate) fn definitions(sample: &Sample) -> Definitions {
    let mut definitions = Definitions::built_in();
    if !sample.data.is_empty() {
        assert_eq!(definitions.add(sample.data.iter().copied()), Some(Vec::new()));
    }
    definitions
}

/// A dissection that has received all packets but has not been run yet.
pub(crate) fn taken_in(sample: &Sample, packets: &[Vec<u8>]) -> Dissection {
    let (keys, definitions) = (Keys::parse(sample.keys).unwrap(), definitions(sample));
    let mut dissection = Dissection::new(Options { keys, definitions, ..Options::default() });
    push_all(&mut dissection, packets);
    dissection
}

pub(crate) fn push_all(dissection: &mut Dissection, packets: &[Vec<u8>]) {
    for (number, data) in (1..).zip(packets) {
        dissection.push(&Packet {
            number,
            time: Timestamp::from_parts(i64::try_from(number).unwrap(), 0),
            interface: 0,
            link: LinkType::ETHERNET,
            data,
            original_length: u32::try_from(data.len()).unwrap(),
            unusable: None,
            offset: 0,
        });
    }
    dissection.end();
}

/// The items of each side of each conversation: stream position and text.
pub(crate) type Dissected = BTreeMap<(u64, &'static str), Vec<(u64, String)>>;

pub(crate) fn dissected(sample: &Sample, packets: &[Vec<u8>]) -> (Dissected, Summary) {
    let mut dissection = taken_in(sample, packets);
    let limits = Limits::DEFAULT;
    let show = |item: &Item<'_>, scratch: &mut Scratch, out: &mut String| {
        scratch.name.clear();
        item.push_name(&mut scratch.name);
        let tree = item.tree(worldwire_core::Tree::new(), &limits);
        assert!(tree.error().is_none(), "{:?}", tree.error());
        let opened = item.note().is_some_and(|note| note.kind == NoteKind::Opened);
        if !opened {
            let (stream, from) = (item.stamp.stream, item.from);
            out.push_str(&format!("{stream} {from} {} {}\n", item.range.start, scratch.name));
        }
    };
    let mut out = String::new();
    dissection.run(&show, &mut out, |_| ());
    let mut dissected = Dissected::new();
    for line in out.lines() {
        let mut parts = line.split(' ');
        let stream = parts.next().unwrap().parse().unwrap();
        let from = if parts.next() == Some("client") { "client" } else { "server" };
        let start = parts.next().unwrap().parse().unwrap();
        let name = parts.next().unwrap().to_owned();
        dissected.entry((stream, from)).or_default().push((start, name));
    }
    (dissected, dissection.summary())
}
