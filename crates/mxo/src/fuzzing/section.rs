//! Sections with and without tables, sections from clients, presence vectors, and a replica.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use worldwire_core::json::Style;
use worldwire_core::testing::{Target, decode, encoded};
use worldwire_core::value::parse_hex;
use worldwire_core::{Limits, Reader, Side};

use crate::frame::SequenceNumber;
use crate::message::{Context, NoViews, OWN_VIEW, Properties, Rules, Section, Viewed};
use crate::replica::{Bounds, Replica};
use crate::schema::{Objects, Tables};

/// The targets of this file.
pub(super) const TARGETS: &[Target] = &[
    // Sections from servers: with known objects, with mostly unknown ones, with guessed classes.
    Target { name: "mxo_section", run: known, seeds: sections },
    Target { name: "mxo_section_unknown", run: unknown, seeds: sections },
    Target { name: "mxo_section_guessed", run: guessed, seeds: sections },
    Target { name: "mxo_section_client", run: client, seeds: client_sections },
    Target { name: "mxo_presence", run: presence, seeds: presences },
    Target { name: "mxo_replica", run: replica, seeds: replicas },
    Target { name: "mxo_replica_late", run: late_replica, seeds: late_replicas },
];

static OBJECTS: LazyLock<Arc<Objects>> = LazyLock::new(|| Arc::new(Objects::built_in()));

/// Every class, but only one goobj that uses a class.
static STRANGE: LazyLock<Objects> = LazyLock::new(|| {
    let mut tables = Tables::built_in();
    let goobjs: Vec<u16> = tables.goobjs().map(|(goid, _)| goid).collect();
    for goid in goobjs {
        if goid != 12 {
            tables.goobj_mut(goid).class = None;
        }
    }
    tables.compile()
});

/// A few views of each class.
static VIEWS: LazyLock<BTreeMap<u16, Viewed>> = LazyLock::new(|| {
    let views = [(2, "player"), (3, "door364"), (4, "player"), (5, "npc"), (6, "vendor")];
    let view = |(id, name)| Some((id, OBJECTS.class_named(name)?.0.into()));
    views.into_iter().filter_map(view).collect()
});

/// The maximum number of trace nodes per byte of a section.
const MAX_NODES_A_BYTE: usize = 8;

fn known(data: &[u8]) {
    section(data, &Context::server(&OBJECTS, &*VIEWS));
}

fn unknown(data: &[u8]) {
    section(data, &Context::server(&STRANGE, &NoViews).with(Rules::LENIENT));
}

fn guessed(data: &[u8]) {
    let rules = Rules { guess: true, ..Rules::LENIENT };
    section(data, &Context::server(&STRANGE, &*VIEWS).with(rules));
}

fn client(data: &[u8]) {
    let context = Context::client(&OBJECTS, &*VIEWS);
    if let Some(section) = section(data, &context) {
        let views = section.operations.iter().map(|one| match one {
            crate::message::Operation::Update(update) => update.view,
            other => panic!("{} sent by a client", other.name()),
        });
        assert!(
            views.into_iter().all(|view| view == OWN_VIEW),
            "a client updated a view other than its own"
        );
    }
}

/// Decodes a section in every way and encodes it again.
fn section<'d>(data: &'d [u8], context: &Context<'d, '_>) -> Option<Section<'d>> {
    let read = |reader: &mut _| Section::decode(reader, context);
    let traced = |reader: &mut _| Section::decode(reader, context);
    let decoded = decode(data, &Limits::DEFAULT, Style::default(), read, traced);
    let (nodes, used) = (decoded.tree.len(), decoded.used.len());
    assert!(nodes <= 64 + MAX_NODES_A_BYTE * data.len(), "{nodes} nodes");
    let encode = |section: &Section<'_>| {
        encoded(|writer| section.encode(context.objects, context.from, writer))
    };
    let section =
        decoded.encodes_back(encode, |json| encode(&Section::from_json(json, context)?))?;
    let lengths = section.operations.iter().map(|one| one.encoded_len(context.objects));
    let frame = if section.unterminated { 1 } else { 3 };
    assert_eq!(lengths.sum::<usize>() + frame, used, "the computed length is wrong");
    Some(section)
}

fn hexes(list: &[&str]) -> Vec<Vec<u8>> {
    list.iter().map(|text| parse_hex(text).expect("hex digits")).collect()
}

/// Sections as JSON, with the contents of creates and updates of every kind.
const JSON: [&str; 5] = [
    r#"{"operations":[{"create":{"goid":12,"spawn_seq":47,"new_view":2,"properties":{
        "RealLastName":"Hill","CharacterName":{"text":"a",
        "behind":{"$hex":"010203040506070809020102030405060708090102030405060708090102"}},
        "Health":2600,"ReputationZionMilitary":{"$hex":"c5ff"},
        "Position":{"x":1,"y":2,"z":3},"RSIDescription":{"$hex":"e018400c4105e0020400cd00000000"}}}},
        {"update":{"view":2,"movement":{"yaw":9,"position":{"x":1,"y":2,"z":3},"time":5},"properties":{
        "RealFirstName":"Neo","EffectID":{"$hex":"280000a5"}}}}]}"#,
    r#"{"operations":[{"create":{"goid":8400,"world_id":1310720177,"spawn_seq":13,"new_view":140,
        "properties":{"SignpostNameString":"Caf\u00e9 \u20ac","SignpostReqReputation":-3,
        "SignpostOrgID":2}}}]}"#,
    r#"{"operations":[{"update":{"view":4,"movement":{"animation":1,"mood":2,"action":3,"yaw":4,
        "position":{"x":1,"y":2,"z":3}},"properties":{"Health":100,"AFK":{"$hex":"01"}}}}]}"#,
    r#"{"operations":[{"update":{"view":5,"movement":{"action":1},"properties":{"Health":5,
        "CurrentState":2054}}},{"update":{"view":5,"properties":{"Level":50}}}]}"#,
    r#"{"operations":[{"create":{"goid":415,"spawn_seq":1,"new_view":9,"properties":{}}},
        {"pending_update":{"target":9,"update":{"properties":{"CurrentState":2104}}}},
        {"update":{"view":9,"properties":{"CurrentState":2100}}},
        {"pending_update":{"target":10,"data":{"$hex":"0101aabbccdd"}}},
        {"delete":{"views":[9,10]}}]}"#,
];

fn sections() -> Vec<Vec<u8>> {
    let context = Context::server(&OBJECTS, &*VIEWS);
    let made = JSON.iter().map(|text| {
        let json = serde_json::from_str(text).expect("valid JSON");
        let section = Section::from_json(&json, &context).expect("a section");
        encoded(|writer| section.encode(&OBJECTS, Side::Server, writer)).expect("a valid section")
    });
    let mut seeds: Vec<_> = made.collect();
    seeds.extend(hexes(&[
        // World and dynamic doors; a vendor, followed by other bytes.
        "030100089f017a02f0346fcdab0384000000000000803f000000000000000011000000004023f0c000000000\
         00088140000000000088d340ffffffff0700000000",
        "0301000c9f0101cdab01804034080000090000090001800238080000010001010009000000",
        "0301000c7b9548cdab02090000000093bad1400000008000bea94000000000e3c2a64000000080f30435bf00\
         000080f304353f6900000100020a0069000101aabbccdd0100010100550000000401",
        // Rare features: padding, flags, a tail, no end marker.
        "030100fc9f0101cdab01c0aa000900770000",
        "030300018002380800000000",
        "030300000300018000",
        // Unknown parts: a goobj, a view, blocks, a script, a relevance notice.
        "0301000cfefe01cdab0101aa",
        "0377000101aa0000",
        "03050008aabbcc",
        "0304000120010203",
        "0301000100000100031122",
        "030000",
        // An emote; an NPC that dies.
        "03040001280140002504000010344984c70000be4227a47f46b3a65e180000",
        "0305000501c20200808100000000e0010000c0830000de810303fd070000000000000000",
    ]));
    seeds
}

fn client_sections() -> Vec<Vec<u8>> {
    hexes(&[
        "0302000104fd0000",
        "030200010e3e812bba2b470000d2c2307d60470000",
        "0302000260034e656f024d720000",
        "030200012e050203000000000000000000000000020002400200410000",
        "03030001800238080000000003",
    ])
}

/// The first byte selects the order, and the rest is the vector.
fn presence(data: &[u8]) {
    let Some((choice, data)) = data.split_first() else { return };
    let orders: Vec<_> = OBJECTS
        .classes()
        .flat_map(|(_, class)| {
            let updates = class.updates();
            [Some(class.create()), updates.order(OWN_VIEW), updates.order(OWN_VIEW + 1)]
        })
        .flatten()
        .collect();
    let Some(order) = orders.get(usize::from(*choice) % orders.len().max(1)) else { return };
    let mut reader = Reader::new(data);
    let Ok(read) = Properties::decode(&mut reader, order) else { return };
    let bytes = encoded(|writer| read.encode(order, writer));
    assert_eq!(bytes.as_deref(), Ok(&data[..reader.position()]), "encoding differs");
    assert_eq!(read.encoded_len(order), reader.position(), "the computed length is wrong");
    let indices = read.list().iter().map(|one| one.index());
    assert!(indices.is_sorted_by(|before, after| before < after), "not ascending");
    // Properties rebuilt from the same values have the same contents but no padding.
    let mut made = Properties::new();
    for one in read.list().iter().rev() {
        made.set(u16::try_from(one.index()).expect("few"), one.bytes());
    }
    let bytes = encoded(|writer| made.encode(order, writer)).expect("the same values");
    let again = Properties::decode(&mut Reader::new(&bytes), order).expect("just made");
    assert_eq!((again.list(), again.padding()), (read.list(), 0), "the same values");
}

fn presences() -> Vec<Vec<u8>> {
    hexes(&[
        "00010000000093bad1400000008000bea94000000000e3c2a640",
        "03808080808080808080808001",
        "0381a000",
        "0460034e656f024d72",
        "0500",
    ])
}

/// Length-prefixed sections, one after another. The first bit of a length byte selects the sender.
fn replica(data: &[u8]) {
    applied(data, |_, _, data| data);
}

/// Like [`replica`], with a packet number after each length byte.
fn late_replica(data: &[u8]) {
    applied(data, |replica, from, data| match data.split_first_chunk() {
        Some((number, rest)) => {
            let number = u16::from_le_bytes(*number);
            // The bits above the twelve of the number set the time: some packets were sent earlier.
            replica.packet(from, SequenceNumber::new(number), u32::from(number >> 12));
            rest
        }
        None => data,
    });
}

/// Applies sections; before each one, `head` reads what precedes it.
fn applied(data: &[u8], head: impl for<'d> Fn(&mut Replica, Side, &'d [u8]) -> &'d [u8]) {
    let bounds = Bounds { views: 8, pending_bytes: 200 };
    let mut replica = Replica::within(Arc::clone(&OBJECTS), bounds);
    let mut data = data;
    while let Some((length, rest)) = data.split_first() {
        let from = if length & 1 == 0 { Side::Server } else { Side::Client };
        let rest = head(&mut replica, from, rest);
        let (section, rest) = rest.split_at(usize::from(length >> 1).min(rest.len()));
        data = rest;
        let before = rendered(&replica);
        let pending = replica.pending_bytes();
        if replica.receive(section, from, Rules::LENIENT).is_err() {
            assert_eq!(rendered(&replica), before, "a failed section changed the views");
            assert_eq!(
                replica.pending_bytes(),
                pending,
                "a failed section changed the pending updates"
            );
        }
        assert!(replica.len() <= bounds.views && replica.pending_bytes() <= bounds.pending_bytes);
    }
}

fn rendered(replica: &Replica) -> String {
    let (mut json, mut text) = (String::new(), String::new());
    replica.write_json(Style::default(), &mut json);
    replica.write_text(&mut text);
    let views: Vec<worldwire_core::json::Json> = serde_json::from_str(&json).expect("valid JSON");
    assert_eq!(views.len(), replica.len(), "not every view is shown");
    json + &text
}

/// The sections of [`replicas`], in packets that overtake each other.
fn late_replicas() -> Vec<Vec<u8>> {
    let packet = |number: u16, text: &str| {
        let section = parse_hex(text).expect("hex digits");
        let length = u8::try_from(section.len() * 2).expect("short");
        [&[length][..], &number.to_le_bytes(), &section].concat()
    };
    let create = "0301000c9f0101cdab018040340800000900000000";
    let other = "0301000c9f0102cdab018040340800000900000000";
    let update = "030900018002380800000000";
    let pending = "030100020b000900018002380800000000";
    let delete = "03010001010009000000";
    let orders: [&[(u16, &str)]; 3] = [
        &[(4094, create), (1, update), (0, update), (2, delete), (0, update), (4094, create)],
        &[(9, pending), (8, pending), (10, create), (12, delete), (14, other), (13, delete)],
        &[(5, create), (9, other), (7, delete), (6, update), (11, pending), (8, pending)],
    ];
    orders.iter().map(|list| list.iter().flat_map(|it| packet(it.0, it.1)).collect()).collect()
}

fn replicas() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    let mut all = Vec::new();
    for (side, list) in [(0, sections()), (1, client_sections())] {
        for section in list.into_iter().filter(|section| section.len() < 128) {
            let length = u8::try_from(section.len() * 2).expect("short") | side;
            let one = [&[length][..], &section].concat();
            all.extend_from_slice(&one);
            seeds.push(one);
        }
    }
    // A pending update before its create, which is repeated, and two deletions.
    for text in [
        "030100020b000900018002380800000000",
        "0301000c9f0101cdab018040340800000900000000",
        "0301000c9f0101cdab018040340800000900000000",
        "03010001010009000000",
        "03010001010009000000",
    ] {
        let section = parse_hex(text).expect("hex digits");
        all.push(u8::try_from(section.len() * 2).expect("short"));
        all.extend(section);
    }
    seeds.push(all);
    seeds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_get_far() {
        let faults = |seeds: Vec<Vec<u8>>, context: &Context<'_, '_>| -> Vec<&'static str> {
            let fault = |seed: &Vec<u8>| {
                let error = Section::decode(&mut Reader::new(seed), context).err()?;
                crate::message::Fault::of(&error).map(crate::message::Fault::name)
            };
            seeds.iter().filter_map(fault).collect()
        };
        let server = Context::server(&OBJECTS, &*VIEWS);
        let unknown = [
            "missing_terminator",
            "unknown_goid",
            "unknown_view",
            "unknown_layout",
            "unknown_layout",
            "server_only_command",
        ];
        assert_eq!(faults(sections(), &server), unknown);
        let rules = Rules { guess: true, ..Rules::LENIENT };
        let strange = Context::server(&STRANGE, &*VIEWS).with(rules);
        assert_eq!(faults(sections(), &strange), [] as [&str; 0]);
        let client = Context::client(&OBJECTS, &*VIEWS);
        assert_eq!(faults(client_sections(), &client), ["bad_view_id"]);
    }
}
