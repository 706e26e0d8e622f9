//! Tests the samples of all families, even with damage that a network or a capture can cause.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use worldwire_capture::{CaptureReader, LinkType, Packet, Record, SyntheticTcp, Timestamp};
use worldwire_core::connection::Connection as _;
use worldwire_core::json::{Json, Style};
use worldwire_core::{Limits, NodeRef, Sampler, Side};
use worldwire_dissect::filter::{Filter, Resolver};
use worldwire_dissect::{
    Definitions, Dissection, Format, Item, Keys, KiObjects, MxoObjects, MxoViews, NoteKind,
    Options, Scratch, Summary,
};
use worldwire_ki::connection as ki;
use worldwire_ki::control::{Control, SessionAccept, SessionTime};
use worldwire_ki::crypt::stream::{Sealer, StreamKey};
use worldwire_ki::crypto_block::CryptoBlock;
use worldwire_ki::frame::Frame;
use worldwire_ki::message::RawMessage;
use worldwire_ki::schema::classes::TypeLists;

/// One of worldwire's own captures, with keys and definitions.
struct Sample {
    capture: &'static [u8],
    keys: &'static str,
    conversations: u64,
    /// The client's port in a conversation with many messages, and how many data packets set it up.
    busy: (u16, usize),
    /// Definitions and maps.
    data: &'static [(&'static str, &'static str)],
}

const URU: Sample = Sample {
    capture: include_bytes!("../../../../samples/uru-login.pcapng"),
    keys: include_str!("../../../../samples/uru-keys.toml"),
    conversations: 4,
    busy: (49_155, 6),
    data: &[],
};

const URU_AGE: Sample = Sample {
    capture: include_bytes!("../../../../samples/uru-age.pcapng"),
    keys: include_str!("../../../../samples/uru-keys.toml"),
    conversations: 2,
    busy: (49_154, 6),
    data: &[
        ("Fernhollow.sdl", include_str!("../../../../samples/sdl/Fernhollow.sdl")),
        ("things.sdl", include_str!("../../../../samples/sdl/things.sdl")),
    ],
};

const URU_GAMES: Sample = Sample {
    capture: include_bytes!("../../../../samples/uru-games.pcapng"),
    keys: include_str!("../../../../samples/uru-keys.toml"),
    conversations: 3,
    busy: (49_154, 6),
    data: &[],
};

const KI: Sample = Sample {
    capture: include_bytes!("../../../../samples/ki-login.pcapng"),
    keys: include_str!("../../../../samples/ki-keys.toml"),
    conversations: 3,
    busy: (50_002, 2),
    data: &[],
};

const KI_SERVER: Sample = Sample {
    capture: include_bytes!("../../../../samples/ki-server.pcapng"),
    keys: include_str!("../../../../samples/ki-server-keys.toml"),
    conversations: 3,
    busy: (50_102, 2),
    data: &[],
};

const MXO: Sample = Sample {
    capture: include_bytes!("../../../../samples/mxo-world.pcapng"),
    keys: include_str!("../../../../samples/mxo-keys.toml"),
    conversations: 1,
    busy: (50_210, 6),
    data: &[],
};

const MXO_CROWD: Sample = Sample {
    capture: include_bytes!("../../../../samples/mxo-crowd.pcapng"),
    keys: include_str!("../../../../samples/mxo-crowd-keys.toml"),
    conversations: 2,
    busy: (50_300, 6),
    data: &[],
};

const TERA: Sample = Sample {
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

fn packets(sample: &Sample) -> Vec<Vec<u8>> {
    let mut capture = CaptureReader::new(sample.capture, &Limits::DEFAULT).unwrap();
    let mut packets = Vec::new();
    while let Some(record) = capture.next().unwrap() {
        if let Record::Packet(packet) = record {
            packets.push(packet.data.to_vec());
        }
    }
    packets
}

fn definitions(sample: &Sample) -> Definitions {
    let mut definitions = Definitions::built_in();
    if !sample.data.is_empty() {
        assert_eq!(definitions.add(sample.data.iter().copied()), Some(Vec::new()));
    }
    definitions
}

/// A dissection that has received all packets but has not run yet.
fn taken_in(sample: &Sample, packets: &[Vec<u8>]) -> Dissection {
    let (keys, definitions) = (Keys::parse(sample.keys).unwrap(), definitions(sample));
    let mut dissection = Dissection::new(Options { keys, definitions, ..Options::default() });
    push_all(&mut dissection, packets);
    dissection
}

fn push_all(dissection: &mut Dissection, packets: &[Vec<u8>]) {
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
type Dissected = BTreeMap<(u64, &'static str), Vec<(u64, String)>>;

fn dissected(sample: &Sample, packets: &[Vec<u8>]) -> (Dissected, Summary) {
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

#[test]
fn filters_for_existing_fields_are_accepted() {
    for sample in [&URU, &URU_AGE, &URU_GAMES, &KI, &KI_SERVER, &MXO, &MXO_CROWD, &TERA] {
        let limits = Limits::DEFAULT;
        let show = |item: &Item<'_>, _: &mut Scratch, out: &mut Vec<String>| {
            let mut name = String::new();
            item.push_name(&mut name);
            if !name.starts_with(|first: char| first.is_alphabetic()) {
                return;
            }
            let tree = item.tree(worldwire_core::Tree::new(), &limits);
            let roots = tree.roots().map(|root| (String::new(), root));
            let mut rest: Vec<(String, NodeRef<'_, '_>)> = roots.collect();
            while let Some((above, node)) = rest.pop() {
                let path = match node.name() {
                    "" => format!("{above}[*]"),
                    name => format!("{above}[\"{name}\"]"),
                };
                rest.extend(node.children().map(|child| (path.clone(), child)));
                out.push(format!("{name} and exists({path})"));
                if let Some(field) = path.strip_prefix("[\"fields\"]").filter(|it| !it.is_empty()) {
                    out.push(format!("{name} and exists({field})"));
                }
            }
        };
        let mut filters: Vec<String> = Vec::new();
        taken_in(sample, &packets(sample)).run(&show, &mut filters, |_| ());
        filters.sort();
        filters.dedup();
        assert!(filters.len() > 40);
        let has_system = filters.iter().any(|filter| filter.contains("[\"system\"][\"name\"]"));
        let has_map = sample.data.iter().any(|(name, _)| name.starts_with("sysmsg"));
        assert_eq!(has_system, has_map);
        let definitions = definitions(sample);
        // Every check reads the tables again, so filters are checked in groups.
        for some in filters.chunks(100) {
            let filter = some.join(" or ");
            let unknown =
                Filter::parse(&filter).unwrap().unknown_fields(&Resolver::new(&definitions));
            assert!(unknown.iter().all(|field| !field.is_certain), "{unknown:?}");
        }
    }
}

#[test]
fn system_messages_have_known_fields_and_names() {
    let definitions = definitions(&TERA);
    for scope in ["", "tera.S_SYSTEM_MESSAGE and "] {
        for filter in
            ["message.system.name contains WELCOME", "exists(message.system.values[0].key)"]
        {
            let filter = Filter::parse(&format!("{scope}{filter}")).unwrap();
            assert_eq!(filter.unknown_fields(&Resolver::new(&definitions)), [], "{filter}");
        }
        let filter = format!("{scope}message.system.name == SMT_MADE_UP_WELCOM");
        let values = Filter::parse(&filter).unwrap().unknown_values(&Resolver::new(&definitions));
        assert_eq!(values[0].nearest.as_deref(), Some("SMT_MADE_UP_WELCOME"));
        assert!(!values[0].is_certain);
        let filter = format!("{scope}message.system.name == SMT_MADE_UP_WELCOME");
        assert_eq!(
            Filter::parse(&filter).unwrap().unknown_values(&Resolver::new(&definitions)),
            []
        );
    }
}

/// The packets with TCP data, each with its port and its segment number within the conversation.
fn segments(packets: &[Vec<u8>]) -> Vec<(usize, u16, usize)> {
    const TCP: u8 = 6;
    let mut counts: BTreeMap<u16, usize> = BTreeMap::new();
    let mut segments = Vec::new();
    for (index, packet) in packets.iter().enumerate() {
        // Ethernet, IPv4 without options, TCP without options.
        if packet[12..14] != [8, 0] || packet[23] != TCP || packet.len() <= 54 {
            continue;
        }
        let ports = [34, 36].map(|at| u16::from_be_bytes([packet[at], packet[at + 1]]));
        let count = counts.entry(ports[0].max(ports[1])).or_default();
        *count += 1;
        segments.push((index, ports[0].max(ports[1]), *count));
    }
    segments
}

/// Losing any one segment loses only the messages in it. Excludes the segments that set up a
/// connection, because an encrypted connection cannot be read without them.
#[test]
fn a_lost_segment_loses_only_its_content() {
    for (sample, name) in [(&URU, "uru"), (&URU_AGE, "uru-age"), (&KI, "ki"), (&TERA, "tera")] {
        let packets = packets(sample);
        let (all, _) = dissected(sample, &packets);
        let (mut read, mut whole) = (0, 0);
        for (index, _, _) in segments(&packets).into_iter().filter(|it| it.2 > sample.busy.1) {
            let mut lossy = packets.clone();
            lossy.remove(index);
            let (shown, summary) = dissected(sample, &lossy);
            assert_eq!(summary.gaps, 1, "{name} {index}");
            let is_note = |name: &str| ["gap", "resync", "problem", "warning"].contains(&name);
            for (side, items) in &shown {
                let all = &all[side];
                for item in items.iter().filter(|(_, name)| !is_note(name)) {
                    assert!(all.contains(item), "{name} {index}: {item:?} was never sent");
                }
                whole += all.len();
                read += items.iter().filter(|(_, name)| !is_note(name)).count();
            }
            // The line of the segment itself.
            whole -= 1;
        }
        let share =
            f64::from(u32::try_from(read).unwrap()) / f64::from(u32::try_from(whole).unwrap());
        println!("{name}: {share:.4}");
        assert!(share > 0.95, "{name}: {share}");
    }
}

#[test]
fn filters_know_the_value_names_of_a_type_list() {
    let mut definitions = definitions(&KI);
    let mut lists = TypeLists::new();
    lists.add("ki-types.json", include_bytes!("../../../../samples/ki-types.json")).unwrap();
    let classes = Arc::new(lists.compile());
    definitions.edit(|objects: &mut KiObjects| objects.set_classes(classes));
    for (field, wrong, right) in [("m_school", "Fir", "Fire"), ("m_rights", "trade", "TRADE")] {
        let unknown = |value: &str| {
            let filter = Filter::parse(&format!("CharacterInfo.object.{field} == {value}"));
            filter.unwrap().unknown_values(&Resolver::new(&definitions))
        };
        assert_eq!(unknown(wrong)[0].nearest.as_deref(), Some(right));
        assert!(!unknown(wrong)[0].is_certain);
        assert_eq!(unknown(right), []);
    }
    // Classes after `is`, with their bases.
    let filter = |text: &str| Filter::parse(text).unwrap();
    let unknown =
        filter("CharacterInfo.object is MadeUpPett").unknown_values(&Resolver::new(&definitions));
    assert_eq!(unknown[0].nearest.as_deref(), Some("MadeUpPet"));
    assert!(unknown[0].is_certain);
    for class in ["MadeUpPet", "PropertyClass", "\"class MadeUpPet\""] {
        let filter = filter(&format!("CharacterInfo.object is {class}"));
        assert_eq!(filter.unknown_values(&Resolver::new(&definitions)), [], "{class}");
    }
}

#[test]
fn the_samples_decode_completely() {
    for sample in [&URU, &URU_AGE, &URU_GAMES, &KI, &KI_SERVER, &MXO, &MXO_CROWD, &TERA] {
        let (dissected, summary) = dissected(sample, &packets(sample));
        assert_eq!(summary.conversations, sample.conversations);
        assert_eq!(summary.recognised, sample.conversations);
        assert_eq!((summary.problems, summary.gaps), (0, 0));
        assert_eq!(dissected.len() as u64, 2 * sample.conversations);
        assert_eq!(dissected.values().map(Vec::len).sum::<usize>() as u64, summary.messages);
    }
}

/// A game connection uses the names that the auth connection revealed, and reveals others itself.
/// Names never replace numbers.
#[test]
fn players_have_names() {
    let sample = &URU_AGE;
    let packets = packets(sample);
    let limits = Limits::DEFAULT;
    let show = |item: &Item<'_>, _: &mut Scratch, out: &mut Vec<String>| {
        let mut name = String::new();
        item.push_name(&mut name);
        let tree = item.tree(worldwire_core::Tree::new(), &limits);
        let mut line = String::new();
        Format::Json(Style::default()).write(item, &name, &tree, &mut line);
        let json: Json = serde_json::from_str(&line).unwrap();
        if json["players"].is_object() {
            out.push(format!("{name} {}", json["players"]));
            assert!(json["fields"].to_string().contains("10"), "{line}");
            let body = item.encode(&json["fields"]).unwrap();
            assert_eq!(body, item.bytes());
        }
    };
    let mut lines: Vec<String> = Vec::new();
    taken_in(sample, &packets).run(&show, &mut lines, |_| ());
    let first = r#"{"10190":"Yeesha"}"#;
    assert_eq!(lines[0], format!("auth.AcctPlayerInfo {first}"));
    assert_eq!(lines[1], format!("game.JoinAgeRequest {first}"));
    let both = r#"game.PropagateBuffer {"10190":"Yeesha","10200":"Atrus"}"#;
    assert!(lines.iter().any(|line| line == both), "{lines:?}");
}

/// Missing descriptors are named, even if others are known. The contents of messages are counted
/// without building trees.
#[test]
fn states_without_a_descriptor_are_reported() {
    let sample = &URU_AGE;
    let keys = Keys::parse(sample.keys).unwrap();
    let mut definitions = Definitions::built_in();
    definitions.add([("other.sdl", "STATEDESC Other { VERSION 1 VAR INT x[1] }")]);
    let mut dissection = Dissection::new(Options { keys, definitions, ..Options::default() });
    push_all(&mut dissection, &packets(sample));
    let show = |item: &Item<'_>, _: &mut Scratch, out: &mut Vec<String>| {
        let mut name = String::new();
        item.push_name(&mut name);
        item.push_inside(&mut name);
        out.push(name);
        out.extend(item.advice().map(String::from));
    };
    let mut lines: Vec<String> = Vec::new();
    dissection.run(&show, &mut lines, |_| ());
    let has = |line: &str| lines.iter().any(|it| it == line);
    assert!(has("game.PropagateBuffer plNetMsgGameMessageDirected pfKIMsg"), "{lines:?}");
    assert!(has("game.PropagateBuffer plNetMsgSDLStateBCast"), "{lines:?}");
    let advice = "with a state of Fernhollow 3 shown as bytes: supply its descriptor (.sdl files) with \
                  --data";
    assert!(has(advice), "{lines:?}");
}

#[test]
fn tera_messages_have_names_and_fields() {
    let (dissected, _) = dissected(&TERA, &packets(&TERA));
    let names = |side| -> Vec<&str> {
        let items: &Vec<(u64, String)> = &dissected[&(0, side)];
        items.iter().map(|item| item.1.as_str()).collect()
    };
    let expected = [
        "handshake.Key",
        "handshake.Key",
        "tera.C_CHECK_VERSION",
        "tera.C_LOGIN_ARBITER",
        "tera.C_CHAT",
        "tera.C_START_SKILL",
        "tera.C_START_SKILL",
    ];
    assert_eq!(names("client"), expected);
    assert_eq!(names("server")[0], "handshake.Hello");
    assert_eq!(names("server").iter().filter(|name| **name == "tera.51042").count(), 3);
    assert_eq!(names("server").last(), Some(&"tera.S_WEATHER_INFO"));
}

/// The names of one side's messages in the only conversation.
fn names(dissected: &Dissected, side: &'static str) -> Vec<String> {
    dissected[&(0, side)].iter().map(|item| item.1.clone()).collect()
}

#[test]
fn mxo_datagrams_have_names() {
    let (dissected, _) = dissected(&MXO, &packets(&MXO));
    let client = names(&dissected, "client");
    assert_eq!(client[0], "setup.Hello");
    assert_eq!(client.iter().filter(|name| *name == "game.Objects").count(), 4);
    assert!(["game.Rpc", "game.Ack", "setup.Ping"].iter().all(|it| client.iter().any(|n| n == it)));
    let server = names(&dissected, "server");
    assert_eq!(server[..5], ["setup.Answer"; 5]);
    // The first is empty, for the client to acknowledge.
    assert_eq!(server.iter().filter(|name| *name == "game.Objects").count(), 5);
}

#[test]
fn repeated_mxo_datagrams_are_ignored() {
    let whole = dissected(&MXO, &packets(&MXO));
    let twice: Vec<Vec<u8>> = packets(&MXO)
        .into_iter()
        // Plain datagrams have no numbers, so each is shown.
        .flat_map(
            |packet| if packet[42] == 1 { vec![packet.clone(), packet] } else { vec![packet] },
        )
        .collect();
    assert_eq!(dissected(&MXO, &twice).0, whole.0);
}

#[test]
fn mxo_is_recognised_despite_a_damaged_or_missing_beginning() {
    let all = packets(&MXO);
    let count = |packets: &[Vec<u8>]| {
        let (dissected, summary) = dissected(&MXO, packets);
        let packets = dissected.values().flatten().filter(|item| item.1.starts_with("game."));
        (packets.count(), summary.problems)
    };
    let whole = count(&all);
    assert!(whole.0 > 20 && whole.1 == 0);
    // The same conversation on another port.
    let elsewhere = |packets: &[Vec<u8>]| -> Vec<Vec<u8>> {
        let mut packets = packets.to_vec();
        for packet in &mut packets {
            for port in packet[34..38].chunks_mut(2) {
                if port == 10_000_u16.to_be_bytes() {
                    port.copy_from_slice(&20_000_u16.to_be_bytes());
                }
            }
        }
        packets
    };
    assert_eq!(count(&elsewhere(&all)), whole);
    for (byte, found) in [(0, 1), (6, 0), (20, 0), (40, 0)] {
        // A wrong first byte is a problem, whatever follows.
        let mut packets = all.clone();
        packets[0][42 + byte] ^= 0xff;
        assert_eq!(count(&packets), (whole.0, found), "byte {byte}");
        assert_eq!(count(&elsewhere(&packets)), (whole.0, found), "byte {byte} elsewhere");
    }
    let sealed: Vec<_> = all.iter().filter(|packet| packet[42] == 1).cloned().collect();
    for from in 0..5 {
        let wanted = count(&sealed[from..]);
        assert_eq!(wanted.0, whole.0 - from);
        assert_eq!(count(&elsewhere(&sealed[from..])), wanted, "from {from} on");
    }
}

#[test]
fn overviews_name_the_server_wherever_the_capture_starts() {
    let all = packets(&MXO);
    let overview = |packets: &[Vec<u8>]| {
        let mut dissection = taken_in(&MXO, packets);
        dissection.run(&|_: &Item<'_>, _: &mut Scratch, (): &mut ()| {}, &mut (), |_| ());
        let overviews = dissection.overviews();
        let [one] = overviews.as_slice() else { panic!("{overviews:?}") };
        (one.client.port(), one.server.port(), one.bytes, one.midstream)
    };
    for from in 0..10 {
        // Ethernet, IPv4 and UDP headers take 42 bytes; the ports are at 34.
        let (mut wanted, rest) = ([0; 2], &all[from..]);
        for packet in rest {
            let is_server = packet[34..36] == 10_000_u16.to_be_bytes();
            wanted[usize::from(is_server)] += packet.len() as u64 - 42;
        }
        // The first packet is the hello.
        assert_eq!(overview(rest), (50_210, 10_000, wanted, from > 0), "from {from} on");
    }
}

#[test]
fn missing_mxo_packets_are_reported() {
    let all = packets(&MXO);
    let gaps = |missing: &[usize]| -> Vec<String> {
        let rest = (0..all.len()).filter(|index| !missing.contains(index));
        let packets: Vec<Vec<u8>> = rest.map(|index| all[index].clone()).collect();
        let show = |item: &Item<'_>, _: &mut Scratch, out: &mut Vec<String>| {
            out.extend(item.note().filter(|it| it.kind == NoteKind::Gap).map(|it| it.text.clone()));
        };
        let mut out = Vec::new();
        taken_in(&MXO, &packets).run(&show, &mut out, |_| ());
        out
    };
    assert_eq!(gaps(&[]), [""; 0]);
    // From here on, both sides send in turn.
    let dissected = gaps(&[11, 12, 14]);
    insta::assert_snapshot!(dissected.join("\n"), @r"
    packets 3 to 4 from the client are missing (2 packets)
    packet 4 from the server is missing
    ");
}

#[test]
fn a_missing_mxo_key_or_create_is_reported() {
    let other =
        Sample { keys: "[[mxo.session]]\nkey = \"00112233445566778899aabbccddeeff\"\n", ..MXO };
    let (told_blind, summary) = dissected(&other, &packets(&MXO));
    assert_eq!(summary.problems, 1);
    assert!(
        names(&told_blind, "client")
            .iter()
            .chain(&names(&told_blind, "server"))
            .all(|name| name.starts_with("setup.") || ["problem", "resync"].contains(&&**name))
    );
    // The character's movements can be decoded without its create; updates of the door cannot.
    let packets = packets(&MXO);
    let problems = |missing: usize| {
        let mut packets = packets.clone();
        packets.remove(missing);
        dissected(&MXO, &packets).1.problems
    };
    let missing: Vec<u64> = (0..packets.len()).map(problems).filter(|count| *count > 0).collect();
    assert_eq!(missing, [1]);
}

#[test]
fn mxo_views_are_tracked_through_a_capture() {
    let objects = Definitions::built_in().part::<MxoObjects>();
    let take = |packets: &[Vec<u8>]| -> Vec<(Side, Vec<u8>)> {
        let show = |item: &Item<'_>, _: &mut Scratch, out: &mut Vec<(Side, Vec<u8>)>| {
            if let Some(message) = item.message().filter(|message| message.is_message()) {
                out.push((item.from, message.bytes().to_vec()));
            }
        };
        let mut out = Vec::new();
        taken_in(&MXO, packets).run(&show, &mut out, |_| ());
        out
    };
    let mut views = MxoViews::new(objects.objects().clone());
    let mut most = 0;
    for (from, packet) in take(&packets(&MXO)) {
        assert_eq!(views.take(from, &packet, None).unwrap(), []);
        most = most.max(views.replica().len());
    }
    assert_eq!((most, views.replica().len()), (3, 2));
    let door = views.replica().view(3).unwrap();
    assert_eq!(
        door.value("CurrentState").map(|value| format!("{value:?}")),
        Some("Unsigned(2104)".into())
    );
    let own = views.replica().view(2).unwrap();
    assert_eq!(own.movement().yaw, Some(67));
}

/// A session in which the client encrypts after the accept and sends one message of service 5.
fn encrypted() -> Vec<Vec<u8>> {
    let (client, server) = ("192.0.2.10:50009", "192.0.2.1:12000");
    let mut wire = SyntheticTcp::new(client.parse().unwrap(), server.parse().unwrap());
    let offer = ki::Connection::server(
        ki::ServerConfig::new(Duration::from_secs(1_700_000_000)).into(),
        77,
        Duration::ZERO,
    );
    let accept = Frame::control(Control::SessionAccept(SessionAccept {
        reserved: 0,
        time: SessionTime::new(5, 6),
        session_id: 77,
        crypto: Some(CryptoBlock(vec![1; 257].into())),
    }));
    let disconnect = RawMessage { service: 5, order: 40, payload: Vec::new().into() };
    let key = StreamKey { key: [3; 16], nonce: [4; 16] };
    let mut sealed = Vec::new();
    let frame = Frame::message(disconnect).to_bytes().unwrap();
    Sealer::new(&key, Side::Client).seal(&frame, &mut sealed, || [9; 16]);
    let mut packets = wire.open();
    packets.extend(wire.data(Side::Server, &{ offer }.poll_transmit(Side::Client).unwrap()));
    packets.extend(wire.data(Side::Client, &accept.to_bytes().unwrap()));
    packets.extend(wire.data(Side::Client, &sealed));
    packets.extend(wire.close());
    packets
}

#[test]
fn an_encrypted_ki_session_opens_with_its_key() {
    let packets = encrypted();
    let sample = |keys| Sample { capture: &[], keys, conversations: 1, busy: (0, 0), data: &[] };
    let names = |keys| -> (Vec<String>, Summary) {
        let (dissected, summary) = dissected(&sample(keys), &packets);
        (dissected[&(0, "client")].iter().map(|item| item.1.clone()).collect(), summary)
    };
    let (shown, summary) = names(
        "[[ki.stream]]\nsession = 77\nkey = \"03030303030303030303030303030303\"\n\
         nonce = \"04040404040404040404040404040404\"\n",
    );
    assert_eq!(shown, ["control.SessionAccept", "GAME.MSG_CLIENT_DISCONNECT"]);
    assert_eq!(summary.problems, 0);
    let (shown, summary) = names("[[ki.login]]\nuser = \"Merle\"\npassword = \"hunter2\"\n");
    assert_eq!(shown, ["control.SessionAccept", "problem"]);
    assert_eq!(summary.problems, 1);
}

/// The same frames, one per datagram.
fn datagrams(packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let with_data = packets.iter().filter(|packet| packet.len() > 54);
    let datagram = |packet: &Vec<u8>| {
        let (mut head, payload) = (packet[..34].to_vec(), &packet[54..]);
        let length = u16::try_from(payload.len()).unwrap();
        head[16..18].copy_from_slice(&(length + 28).to_be_bytes());
        head[23] = 17;
        let ports = &packet[34..38];
        [&head, ports, &(length + 8).to_be_bytes(), &[0, 0], payload].concat()
    };
    with_data.map(datagram).collect()
}

#[test]
fn ki_frames_are_also_read_from_datagrams() {
    let names = |dissected: &Dissected| -> Vec<Vec<String>> {
        dissected.values().map(|items| items.iter().map(|item| item.1.clone()).collect()).collect()
    };
    let (stream, _) = dissected(&KI, &packets(&KI));
    let (datagrams, summary) = dissected(&KI, &datagrams(&packets(&KI)));
    assert_eq!((summary.recognised, summary.problems), (3, 0));
    // In a UDP conversation the first sender is taken for the client. Here it is the server, as its
    // offer shows.
    assert_eq!(names(&stream), names(&datagrams));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Data packets that are late, early or repeated yield the same messages.
    #[test]
    fn reordered_and_repeated_packets_do_not_change_the_messages(seed: u64) {
        let sample = [&URU, &KI, &TERA][usize::try_from(seed % 3).unwrap()];
        let whole = dissected(sample, &packets(sample));
        let mut sampler = Sampler::new(seed);
        let mut packets = packets(sample);
        for _ in 0..12 {
            let at = usize::try_from(sampler.below(packets.len() as u64 - 1)).unwrap();
            // Handshake packets and FINs stay in place, because the numbers in a SYN are needed
            // first.
            let plain = |packet: &Vec<u8>| packet[47] & 7 == 0;
            if sampler.below(2) == 0 && plain(&packets[at]) && plain(&packets[at + 1]) {
                packets.swap(at, at + 1);
            } else if plain(&packets[at]) {
                let again = packets[at].clone();
                packets.insert(at + 1, again);
            }
        }
        let mut again = dissected(sample, &packets);
        // A gap can open only if an acknowledgement overtakes the data that it acknowledges.
        if again.1.gaps == 0 {
            prop_assert_eq!(&again.0, &whole.0);
        } else {
            again.0.values_mut().for_each(|items| {
                items.retain(|item| !["gap", "resync", "problem"].contains(&item.1.as_str()));
            });
            for (side, items) in &again.0 {
                prop_assert!(items.iter().all(|item| whole.0[side].contains(item)));
            }
        }
    }

    /// A packet missing from a capture is reported as a gap. The messages before the gap and those
    /// in the segments after it are read.
    #[test]
    fn a_lost_packet_is_reported_as_a_gap(pick in 0..200_usize, which in 0..3_usize) {
        let sample = [&URU, &KI, &TERA][which];
        let whole = dissected(sample, &packets(sample));
        let mut packets = packets(sample);
        let (port, setup) = sample.busy;
        // Data of a connection that is set up.
        let data: Vec<usize> = (0..packets.len())
            .filter(|at| {
                let packet = &packets[*at];
                let ports = [packet[34..36].to_vec(), packet[36..38].to_vec()];
                packet.len() > 54 && ports.contains(&port.to_be_bytes().to_vec())
            })
            .skip(setup)
            .collect();
        let lost = data[pick % (data.len() - 2)];
        packets.remove(lost);
        let (after, summary) = dissected(sample, &packets);
        prop_assert_eq!((summary.gaps, summary.problems), (1, 0));
        for (side, items) in &whole.0 {
            let kept = &after[side];
            let is_message = |item: &&(u64, String)| !["gap", "resync"].contains(&item.1.as_str());
            let missing = items.iter().filter(|item| !kept.contains(item)).count();
            prop_assert!(missing <= 2, "{missing} messages are missing");
            prop_assert!(kept.iter().filter(is_message).all(|item| items.contains(item)));
        }
    }
}
