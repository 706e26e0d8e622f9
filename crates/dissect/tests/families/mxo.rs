//! MxO's codecs, filters and views, and their reports.

use std::collections::{BTreeMap, BTreeSet};

use worldwire_core::json::{self, Json, Style};
use worldwire_core::testing::{hex, run_vectors};
use worldwire_core::value::parse_hex;
use worldwire_core::{Limits, NodeRef, Reader, Side, Tree, Value, Writer};
use worldwire_dissect::filter::{Filter, Resolver};
use worldwire_dissect::{Codec, CodecOptions, Definitions, Keys, MxoObjects, MxoViews, NoteKind};
use worldwire_mxo::frame::{
    AckBits, Packet, Section as PacketSection, SequenceNumber, SequenceWord,
};
use worldwire_mxo::message::{Context, Rules, Section, Viewed};
use worldwire_mxo::schema::Objects;

/// Decodes bytes to JSON and encodes them, as `decode` and `encode` do.
fn through(name: &str, from: Side, bytes: &[u8]) -> Result<(), String> {
    let (keys, definitions, limits) = (Keys::default(), Definitions::built_in(), Limits::DEFAULT);
    let options = CodecOptions { from, keys: &keys, definitions: &definitions, limits: &limits };
    let codec = Codec::named(name).unwrap();
    let tree = codec.decode(bytes, &options);
    if let Some(error) = tree.error() {
        return Err(format!("{name}: {error}"));
    }
    let mut text = String::new();
    codec.write_json(&tree, from, Style::default(), &mut text);
    let json = json::parse(&text).map_err(|error| error.to_string())?;
    // The JSON says who sent the bytes.
    let options = CodecOptions { from: Side::Client, ..options };
    let again = codec.encode(json.clone(), &options).map_err(|error| error.to_string())?;
    if again == bytes { Ok(()) } else { Err(format!("{name}: {text}: encodes to different bytes")) }
}

/// A packet with these sections.
fn packet(sections: Vec<PacketSection<'_>>) -> Vec<u8> {
    let packet = Packet { sections, ..Packet::new(1_248_965_312, SequenceWord::default()) };
    packet.to_bytes().unwrap()
}

/// A packet with these encoded sections.
fn around(sections: &[u8]) -> Vec<u8> {
    let empty = packet(vec![]);
    let length = u16::try_from(5 + sections.len()).unwrap().to_le_bytes();
    let counted = [&length, &empty[6..], sections].concat();
    // zlib's CRC-32, bit by bit.
    let crc = counted.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 * (crc & 1)))
    });
    [&(!crc).to_le_bytes()[..], &counted].concat()
}

/// An object section with its ID.
fn objects(bytes: &[u8]) -> PacketSection<'_> {
    PacketSection::Objects(bytes.into())
}

#[test]
fn every_vector_round_trips_through_the_codecs() {
    run_vectors("mxo", &["malformed", "scenarios", "bitvectors"], |case| {
        let file = case.file;
        let case: &Json = case.case;
        if file == "transport" {
            return transport(case);
        }
        if case.get("kind").is_some() {
            return Ok(());
        }
        let input = hex(case, "input")?;
        let used = case["expect"]["consumed"].as_u64().ok_or("no consumed")?;
        let section = &input[..usize::try_from(used).unwrap()];
        let from = if case["source_kind"] == "client" { Side::Client } else { Side::Server };
        through("mxo.objects", from, section)?;
        through("mxo.packet", from, &packet(vec![objects(&section[1..])]))
    });
}

fn transport(case: &Json) -> Result<(), String> {
    match case["kind"].as_str() {
        Some("udp") => {
            through("mxo.datagram", Side::Client, &hex(case, "datagram")?)?;
            through("mxo.packet", Side::Client, &hex(case, "plain")?)
        }
        Some("udp_hello" | "raw") => through("mxo.datagram", Side::Client, &hex(case, "input")?),
        Some("mpm04") => {
            let bytes = around(&hex(case, "input")?);
            through("mxo.packet", Side::Server, &bytes)
        }
        _ => Ok(()),
    }
}

/// Adds filters for every field of a tree and for every named value.
fn filters(above: &str, node: NodeRef<'_, '_>, all: &mut BTreeSet<String>) {
    let path = match node.name() {
        "" => format!("{above}[*]"),
        name => format!("{above}.{name}"),
    };
    all.insert(format!("exists({path})"));
    let names: Vec<&str> = match node.value() {
        Value::Enum(number, names) => names.name(number).into_iter().collect(),
        Value::Flags(bits, names) => names.flags(bits).0,
        _ => Vec::new(),
    };
    let is_bare = |name: &&str| name.starts_with(char::is_alphabetic) && !name.contains(' ');
    all.extend(names.into_iter().filter(is_bare).map(|name| format!("{path} == {name}")));
    node.children().for_each(|child| filters(&path, child, all));
}

/// Filters for every field and named value in the object sections of the vectors.
fn section_filters() -> Vec<String> {
    let known = Objects::built_in();
    let all = std::sync::Mutex::new(BTreeSet::new());
    run_vectors("mxo", &["scenarios", "bitvectors", "transport"], |case| {
        let case: &Json = case.case;
        let (Ok(input), None) = (hex(case, "input"), case.get("kind")) else { return Ok(()) };
        let views = case.get("known_views").and_then(Json::as_object).into_iter().flatten();
        let views: BTreeMap<u16, Viewed> = views
            .filter_map(|(view, class)| {
                let (class, _) = known.class_named(class.as_str()?)?;
                Some((view.parse().ok()?, class.into()))
            })
            .collect();
        for from in Side::BOTH {
            let context = Context { objects: &known, views: &views, from, rules: Rules::LENIENT };
            let mut reader = Reader::traced("section", &input, Tree::new());
            let outcome = Section::decode(&mut reader, &context).map(drop);
            let tree = reader.conclude(outcome).0;
            let mut all = all.lock().unwrap();
            tree.roots().for_each(|root| filters("sections[*].objects", root, &mut all));
        }
        Ok(())
    });
    all.into_inner().unwrap().into_iter().collect()
}

#[test]
fn filters_know_every_field_and_value_of_the_vectors() {
    let all = section_filters();
    for part in ["spawn_seq", "class == door364", "fault == unknown_view", "yaw", "position.x"] {
        assert!(all.iter().any(|filter| filter.contains(part)), "{part}: {all:#?}");
    }
    let definitions = Definitions::built_in();
    let more = ["flags == Always", "flags has Reset", "kind == Ping"].map(str::to_owned);
    for some in all.chunks(50).chain([&more[..]]) {
        let filter = Filter::parse(&some.join(" or ")).unwrap();
        assert_eq!(filter.unknown_fields(&Resolver::new(&definitions)), []);
        assert_eq!(filter.unknown_values(&Resolver::new(&definitions)), []);
    }
    // For a nested field that is used at the top level, the path is suggested.
    for (filter, way) in [
        ("class == player", "sections[*].objects.operations[*].create.class"),
        ("mxo and yaw == 3", "sections[*].objects.operations[*].update.movement.yaw"),
        (
            "game.Objects and CurrentState == 3",
            "sections[*].objects.operations[*].create.properties.CurrentState",
        ),
        ("opcode2 == 3 or remote == 3", "sequence.remote"),
    ] {
        let unknown = Filter::parse(filter).unwrap().unknown_fields(&Resolver::new(&definitions));
        assert_eq!(unknown.last().and_then(|field| field.nearest.as_deref()), Some(way));
        let right = Filter::parse(&format!("exists({way})")).unwrap();
        assert_eq!(right.unknown_fields(&Resolver::new(&definitions)), [], "{way}");
    }
    for (filter, nearest) in [
        ("auth.AuthReply and status == WrongPasword", Some("WrongPassword")),
        ("auth.AuthReply and success.worlds[*].status == Opne", Some("Open")),
        ("margin.ConnectReply and status == Blubb", None),
        ("margin.LoadCharacterReply and kind == Backgroud", Some("Background")),
        ("setup.* and kind == Helo", Some("Hello")),
        ("game.Rpc and sections[*].lists[*].messages[*].fields.exit == JackOt", Some("JackOut")),
        ("game.Rpc and sections[*].lists[*].messages[*].fields.scope == Wisper", Some("Whisper")),
        ("game.Rpc and sections[*].lists[*].messages[*].fields.emote == Bwo", None),
    ] {
        let unknown = Filter::parse(filter).unwrap().unknown_values(&Resolver::new(&definitions));
        let [value] = &unknown[..] else { panic!("{filter}: {unknown:?}") };
        assert!(value.is_certain, "{filter}");
        assert_eq!(value.nearest.as_deref(), nearest, "{filter}");
    }
    for filter in [
        "auth.AuthReply and status == WrongPassword",
        "auth.AuthReply and success.worlds[*].status == Open",
        "margin.LoadCharacterReply and kind == Background",
        "game.Rpc and sections[*].lists[*].messages[*].fields.emote == Bow",
        // A friend's status has no names.
        "game.Rpc and sections[*].lists[*].messages[*].fields.status == 0x3b",
        "status == Success and mxo",
    ] {
        let unknown = Filter::parse(filter).unwrap().unknown_values(&Resolver::new(&definitions));
        assert_eq!(unknown, [], "{filter}");
    }
    let wrong = Filter::parse("mxo and sections[*].objects.operations[*].create.goidd == 12");
    let [field] = &wrong.unwrap().unknown_fields(&Resolver::new(&definitions))[..] else {
        panic!("the field is known")
    };
    assert!(field.is_certain && field.nearest.as_deref() == Some("goid"), "{field:?}");
}

#[test]
fn documented_fields_are_those_of_trees() {
    let all: Vec<String> = section_filters();
    let codec = |name: &str| Codec::named(name).unwrap().layout();
    let report: BTreeSet<&str> = codec("mxo.objects").iter().map(|field| field.name).collect();
    for filter in &all {
        let Some(path) = filter.strip_prefix("exists(sections[*].objects.") else { continue };
        let path = path.trim_end_matches(')').trim_end_matches("[*]");
        let path = path.strip_prefix("operations[*].").unwrap_or(path);
        // Properties depend on the class, and only the head of an undecodable operation is shown.
        let is_inner = ["properties.", "position.", "pending_update.update.", "operations"];
        let head = path.replacen("unknown_create.", "create.", 1);
        if !is_inner.iter().any(|part| path.contains(part)) {
            assert!(report.contains(path) || report.contains(&*head), "{path}");
        }
    }
    let names = ["mxo.datagram", "mxo.packet", "mxo.rpc", "mxo.tcp-frame"];
    assert!(names.iter().all(|name| !codec(name).is_empty()));
    assert!(codec("mxo.auth").is_empty(), "it has a table of messages");
}

#[test]
fn filters_know_the_classes_of_loaded_tables() {
    let filter = Filter::parse("mxo and sections[*].objects.operations[*].create.class == lamp");
    let filter = filter.unwrap();
    let mut definitions = Definitions::built_in();
    assert_eq!(filter.unknown_values(&Resolver::new(&definitions)).len(), 1);
    let table = "worldwire-mxo-objects 1\nclass lamp\n  create:\n    Lit bool\n";
    assert_eq!(definitions.add([("mine.objects", table)]), Some(Vec::new()));
    assert_eq!(filter.unknown_values(&Resolver::new(&definitions)), []);
    let filter = "mxo and exists(sections[*].objects.operations[*].create.properties.Lit)";
    assert_eq!(Filter::parse(filter).unwrap().unknown_fields(&Resolver::new(&definitions)), []);
}

#[test]
fn tables_in_json_are_read_as_definitions() {
    let text = r#"{"tables": {"lamp": [{"index": 0, "name": "Lit", "size": 1, "type": "bool"}]},
        "goobjects": {"7": {"name": "Lamp", "table": "lamp"}}}"#;
    let mut definitions = Definitions::built_in();
    assert_eq!(definitions.add([("tables.json", text)]), Some(Vec::new()));
    let objects = definitions.part::<MxoObjects>();
    assert_eq!(objects.objects().class_of(7).unwrap().1.name(), "lamp");
    // Errors in it are reported.
    let notes = definitions.add([("tables.json", "{\"goobjects\": {\"x\": {}}}")]).unwrap();
    assert_eq!(notes.len(), 1);
}

#[test]
fn client_blobs_concern_the_own_view() {
    let (keys, definitions, limits) = (Keys::default(), Definitions::built_in(), Limits::DEFAULT);
    let read = |name: &str, from: Side, bytes: &[u8]| {
        let options =
            CodecOptions { from, keys: &keys, definitions: &definitions, limits: &limits };
        let codec = Codec::named(name).unwrap();
        let tree = codec.decode(bytes, &options);
        let mut text = String::new();
        codec.write_json(&tree, from, Style::default(), &mut text);
        let is_moved =
            text.contains("\"class\":\"player\",\"guess\":true") && text.contains("\"yaw\":128");
        let error = tree.error().map(ToString::to_string);
        (
            is_moved,
            error
                .into_iter()
                .chain(codec.remarks(bytes, &options).into_iter().map(|remark| remark.text))
                .collect::<Vec<_>>(),
        )
    };
    let moves = [3, 2, 0, 1, 4, 0x80, 0, 0];
    assert_eq!(read("mxo.objects", Side::Client, &moves), (true, vec![]));
    through("mxo.objects", Side::Client, &moves).unwrap();
    let deletes = [3, 1, 0, 1, 1, 0, 0x69, 0, 0, 0];
    let hint =
        "wanted a view ID that is allowed here, found 1 from a client; --from server decodes it";
    let report = |report: (bool, Vec<String>)| report.1.concat();
    let section = report(read("mxo.objects", Side::Client, &deletes));
    assert_eq!(section, format!("mxo.objects: operations[0].view at byte 1: {hint}"));
    let packet = packet(vec![objects(&deletes[1..])]);
    let section = report(read("mxo.packet", Side::Client, &packet));
    assert_eq!(section, format!("objects: operations[0].view at byte 0: {hint}"));
    assert_eq!(read("mxo.packet", Side::Server, &packet), (false, vec![]));
    // The undecoded part of a section is reported.
    let remarks = |from: Side, bytes: &[u8]| report(read("mxo.objects", from, bytes));
    let open = [
        remarks(Side::Server, &[3, 7, 0, 1, 0, 0, 0]),
        remarks(Side::Server, &[3, 1, 0, 3, 0, 0]),
        remarks(Side::Client, &[3, 1, 0, 3, 0, 0]),
        remarks(Side::Server, &[3, 1, 0, 0x0c, 0xfe, 0xfe, 1, 0xcd, 0xab, 1, 0]),
        remarks(Side::Server, &[3, 1, 0, 1, 0, 0]),
    ];
    insta::assert_snapshot!(open.join("\n"), @r"
    view 7 is unknown: the rest is kept as bytes
    this is a relevance notice, which only servers exchange: the rest is kept as bytes
    mxo.objects: operations[0].flags at byte 1: wanted a command between server and client, found flags 0x03, a relevance notice
    goobj 65278 has no known class, and no known layout fits: its create is kept as bytes; supply its table with --data
    a deletion without viewsno end marker (view ID 0)
    ");
    // The other side is suggested only if it can send this section.
    let section = report(read("mxo.objects", Side::Client, &[3, 1, 0, 1, 1, 0, 0, 0, 0, 0]));
    assert!(section.contains("found 1 from a client") && !section.contains("--from"), "{section}");
}

#[test]
fn a_guessed_class_can_be_replaced() {
    let (keys, definitions, limits) = (Keys::default(), Definitions::built_in(), Limits::DEFAULT);
    let options = CodecOptions {
        from: Side::Server,
        keys: &keys,
        definitions: &definitions,
        limits: &limits,
    };
    let encode = |view: u16| {
        let json = format!(
            "{{\"operations\":[{{\"create\":{{\"goid\":12,\"spawn_seq\":1,\"new_view\":3,\
             \"properties\":{{}}}}}},{{\"update\":{{\"view\":{view},\"class\":\"door364\",\
             \"properties\":{{\"CurrentState\":1}}}}}}]}}"
        );
        Codec::named("mxo.objects").unwrap().encode(json::parse(&json).unwrap(), &options)
    };
    // In a capture, view 2 can be something else. View 3 is created here.
    assert!(encode(2).is_ok());
    let error = encode(3).unwrap_err().to_string();
    assert!(error.contains("class: wanted player"), "{error}");
}

/// The packets of both sides, with the reports about their views.
struct Talk {
    views: MxoViews,
    sent: [u16; 2],
    packets: u64,
    notes: Vec<String>,
}

impl Talk {
    fn new() -> Self {
        let objects = Definitions::built_in().part::<MxoObjects>().objects().clone();
        Self { views: MxoViews::new(objects), sent: [0; 2], packets: 0, notes: Vec::new() }
    }

    /// Sends a packet that has these operations and acknowledges `acked`.
    fn send(&mut self, from: Side, operations: &[&str], acked: Option<u16>) {
        self.packets += 1;
        self.sent[from.index()] += 1;
        let sequence = SequenceWord {
            acks: AckBits(acked.is_some().into()),
            remote: SequenceNumber::new(acked.unwrap_or(0)),
            local: SequenceNumber::new(self.sent[from.index()]),
        };
        let bytes = parse_hex(&format!("{}0000", operations.concat())).unwrap();
        let sections = if operations.is_empty() { vec![] } else { vec![objects(&bytes)] };
        let mut writer = Writer::new();
        let packet = Packet { sections, ..Packet::new(1, sequence) };
        packet.encode(&mut writer).unwrap();
        match self.views.take(from, writer.as_bytes(), Some(self.packets)) {
            Ok(notes) => self.notes.extend(notes.into_iter().map(|note| {
                let kind = if note.kind == NoteKind::Problem { "problem" } else { "warning" };
                format!("{kind}: {}", note.text)
            })),
            Err(error) => self.notes.push(format!("error: {error}")),
        }
    }

    /// Receives the server's packet with this number.
    fn late(&mut self, number: u16, operations: &[&str]) {
        let next = core::mem::replace(&mut self.sent[Side::Server.index()], number - 1);
        self.server(operations);
        self.sent[Side::Server.index()] = next;
    }

    fn server(&mut self, operations: &[&str]) {
        self.send(Side::Server, operations, None);
    }
}

/// Three creates of a door as view 3: a normal one, one with a tail, and one with another magic
/// number.
const DOOR: &str = "01000c9f0101cdab01804034080000030000";
const TAILED: &str = "01000c9f0102cdab01804034080000040077";
const BROKEN: &str = "01000c9f0103cdbb01804034080000050000";
/// A create of an unknown goobj.
const STRANGE: &str = "01000cfefe04cdab0101ff0600";

fn update(view: &str) -> String {
    format!("{view}0001800238080000")
}

#[test]
fn unknown_views_are_reported_with_packet_and_reason() {
    let mut talk = Talk::new();
    talk.server(&[&update("07")]);
    talk.server(&[&update("07")]);
    talk.server(&[&update("08")]);
    talk.server(&[BROKEN]);
    talk.server(&[&update("05")]);
    talk.server(&[STRANGE]);
    talk.server(&[&update("06")]);
    insta::assert_snapshot!(talk.notes.join("\n"), @r"
    problem: packet 1: view 7 is unknown, so the rest of the packet is not decoded: it was created before the capture or in a missing packet
    problem: packet 3: view 8 is unknown, so the rest of the packet is not decoded: it was created before the capture, in a missing packet, or in the rest of packet 2
    error: operations[0].create.magic at byte 6: wanted the magic number 0xabcd, found 0xbbcd
    problem: packet 5: view 5 is unknown, so the rest of the packet is not decoded: a create in packet 4 could not be decoded
    problem: packet 6: goobj 65278 has no known class, and no known layout fits: its create is kept as bytes; supply its table with --data
    problem: packet 7: view 6 is unknown, so the rest of the packet is not decoded: the create of goobj 65278 in packet 6 could not be decoded
    ");
}

#[test]
fn odd_creates_and_server_only_operations_are_reported() {
    let mut talk = Talk::new();
    talk.server(&[TAILED]);
    talk.server(&[DOOR]);
    // The create may not have arrived, so it is repeated without a warning.
    talk.server(&[DOOR]);
    talk.send(Side::Client, &[], Some(2));
    // The server does not know yet that it arrived.
    talk.server(&[DOOR]);
    talk.send(Side::Server, &[DOOR], Some(1));
    // The same view for another object.
    talk.server(&[&DOOR.replacen("0101cdab", "0109cdab", 1)]);
    talk.server(&["010003"]);
    talk.send(Side::Client, &["010003"], None);
    talk.send(Side::Client, &["01000101000300"], None);
    insta::assert_snapshot!(talk.notes.join("\n"), @r"
    warning: packet 1: a create that ends with 0x77 instead of 0
    warning: packet 6: view 3 is created again, although the client has acknowledged it
    warning: packet 7: view 3 is created for another object without being deleted first
    problem: packet 8: this is a relevance notice, which only servers exchange; the rest of the packet is not decoded
    error: operations[0].flags at byte 0: wanted a command between server and client, found flags 0x03, a relevance notice
    error: operations[0].view at byte 0: wanted a view ID that is allowed here, found 1 from a client
    ");
    // After a deletion, the ID refers to another view.
    let mut talk = Talk::new();
    talk.server(&[DOOR]);
    talk.send(Side::Client, &[], Some(1));
    talk.server(&["01000101000300"]);
    talk.server(&[DOOR]);
    assert_eq!(talk.notes, [""; 0]);
}

#[test]
fn late_packets_are_reported_and_change_nothing() {
    let mut talk = Talk::new();
    talk.server(&[DOOR]);
    talk.server(&[&update("03")]);
    talk.sent[Side::Server.index()] = 6;
    talk.server(&[&update("03").replacen("38080000", "34080000", 1)]);
    talk.late(4, &[&update("03")]);
    let state = |talk: &Talk| {
        let view = talk.views.replica().view(3).unwrap();
        (view.spawn_seq(), format!("{:?}", view.value("CurrentState").unwrap()))
    };
    assert_eq!(state(&talk), (1, "Unsigned(2100)".to_owned()));
    // The view is deleted, and its ID is reused for another object.
    talk.server(&["01000101000300"]);
    talk.late(5, &[&update("03")]);
    talk.server(&[&DOOR.replacen("0101cdab", "0109cdab", 1)]);
    talk.late(3, &["01000101000300", DOOR]);
    talk.late(6, &["010001020003000400"]);
    assert_eq!(state(&talk), (9, "Unsigned(2100)".to_owned()));
    talk.server(&[&update("03")]);
    insta::assert_snapshot!(talk.notes.join("\n"), @r"
    warning: packet 4: stale: the packet was late; newer information about view 3 is kept
    warning: packet 6: stale: the packet was late; newer information about view 3 is kept
    warning: packet 8: stale: the packet was late; newer information about view 3 is kept
    warning: packet 9: stale: the packet was late; newer information about view 3 is kept
    ");
}

#[test]
fn all_commands_report_undecodable_sections_alike() {
    let door = parse_hex(&format!("03{DOOR}0000")).unwrap();
    let (keys, definitions, limits) = (Keys::default(), Definitions::built_in(), Limits::DEFAULT);
    let mut all = Vec::new();
    for (from, sections) in [
        (Side::Server, &[&door[..], &[0]][..]),
        (Side::Server, &[&door[..], &[0, 0, 1]]),
        (Side::Server, &[&door[..], &[9, 1, 2]]),
        (Side::Server, &[&[9, 1, 2]]),
        (Side::Server, &[&[5, 2, 12, 0, 0]]),
        (Side::Client, &[&[5, 2, 12, 0, 0]]),
        (Side::Server, &[&[3, 7, 0, 1, 0, 0, 0]]),
        (Side::Server, &[&[3, 1, 0, 0x0c, 0xfe, 0xfe, 4, 0xcd, 0xab, 1, 1, 0xff, 6, 0]]),
        // The class does not have this mask.
        (Side::Server, &[&door[..door.len() - 2], &[3, 0, 0x80, 0, 0, 0]]),
    ] {
        let bytes = around(&sections.concat());
        let options =
            CodecOptions { from, keys: &keys, definitions: &definitions, limits: &limits };
        let remarks = Codec::named("mxo.packet").unwrap().remarks(&bytes, &options);
        let mut talk = Talk::new();
        let notes = talk.views.take(from, &bytes, None).unwrap();
        let problems = notes.iter().filter(|note| note.kind == NoteKind::Problem).count();
        assert_eq!(problems, remarks.iter().filter(|remark| remark.is_problem).count());
        assert_eq!((notes.len(), remarks.len()), (1, 1), "{notes:?} {remarks:?}");
        all.push(format!("{problems} {} | {}", notes[0].text, remarks[0].text));
        // A reason is reported only once.
        assert_eq!(talk.views.take(from, &bytes, None).unwrap().len(), 0);
    }
    insta::assert_snapshot!(all.join("\n"), @r"
    0 1 byte after the last section, all zero | 1 byte after the last section, all zero
    1 3 bytes after the last section are not decoded: they start with 0, which is not a known MPM ID | 3 bytes after the last section are not decoded: they start with 0, which is not a known MPM ID
    1 3 bytes after the last section are not decoded: they start with 9, which is not a known MPM ID | 3 bytes after the last section are not decoded: they start with 9, which is not a known MPM ID
    1 MPM ID 9 is unknown, so the packet is not decoded: 3 bytes | MPM ID 9 is unknown, so the packet is not decoded: 3 bytes
    1 MPM ID 5 of a server is unknown, so the packet is not decoded: 5 bytes | MPM ID 5 of a server is unknown, so the packet is not decoded: 5 bytes
    0 section 5 is kept as bytes because its layout is unknown: 5 bytes | section 5 is kept as bytes because its layout is unknown: 5 bytes
    1 view 7 is unknown, so the rest of the packet is not decoded: it was created before the capture or in a missing packet | objects: view 7 is unknown: the rest is kept as bytes
    1 goobj 65278 has no known class, and no known layout fits: its create is kept as bytes; supply its table with --data | objects: goobj 65278 has no known class, and no known layout fits: its create is kept as bytes; supply its table with --data
    1 an update of view 3, decoded as class door364 (built in), has a block of unknown layout, so the rest of the packet is not decoded | objects: an update of view 3 has a block of unknown layout: the rest is kept as bytes
    ");
}

#[test]
fn damaged_rpc_lists_leave_earlier_sections_intact() {
    let door = parse_hex(&format!("03{DOOR}0000")).unwrap();
    let bytes = around(&[&door[..], &[4, 1, 0]].concat());
    // Unlike other problems, a damaged list is reported for every packet.
    let mut talk = Talk::new();
    for _ in 0..2 {
        let notes = talk.views.take(Side::Server, &bytes, Some(7)).unwrap();
        assert_eq!((notes.len(), notes[0].kind), (1, NoteKind::Problem));
        insta::allow_duplicates! { insta::assert_snapshot!(notes[0].text, @"packet 7: undecodable RPC lists (3 bytes) are kept as bytes: lists[0].firstSeq at byte 1: wanted 2 bytes, found 1"); }
        assert!(talk.views.replica().view(3).is_some());
    }
    // The output shows the bytes unchanged.
    through("mxo.packet", Side::Server, &bytes).unwrap();
}

#[test]
fn a_class_that_does_not_fit_is_reported_with_its_file() {
    let table = "worldwire-mxo-objects 1\nclass lamp\n  create:\n    Lit bool\n  update plain:\n\
                 \x20   Lit\n\ngoobj 415 lamp\n";
    let mut definitions = Definitions::built_in();
    assert_eq!(definitions.add([("mine.objects", table)]), Some(Vec::new()));
    let objects = definitions.part::<MxoObjects>().objects().clone();
    let mut talk = Talk { views: MxoViews::new(objects), ..Talk::new() };
    talk.server(&[DOOR]);
    talk.server(&["01000c9f0101cdab010101030000", "0300020000"]);
    talk.server(&[&update("03")]);
    insta::assert_snapshot!(talk.notes.join("\n"), @r"
    error: operations[0].create.properties at byte 10: wanted presence bits for the class's properties, found presence byte 2, beyond the last property; goobj 415 is read as class lamp (mine.objects)
    problem: packet 2: an update of view 3, decoded as class lamp (mine.objects), has a block of unknown layout, so the rest of the packet is not decoded
    error: operations[0].update.properties at byte 4: wanted presence bits for the class's properties, found presence byte 2, beyond the last property; view 3 is read as class lamp (mine.objects)
    ");
}

#[test]
fn a_section_looks_the_same_in_a_packet_and_alone() {
    let section = parse_hex(&format!("03{DOOR}0000")).unwrap();
    let (keys, definitions, limits) = (Keys::default(), Definitions::built_in(), Limits::DEFAULT);
    let from = Side::Server;
    let options = CodecOptions { from, keys: &keys, definitions: &definitions, limits: &limits };
    let json = |name: &str, bytes: &[u8]| {
        let codec = Codec::named(name).unwrap();
        let mut text = String::new();
        codec.write_json(&codec.decode(bytes, &options), from, Style::default(), &mut text);
        json::parse(&text).unwrap()
    };
    let packet = json("mxo.packet", &packet(vec![objects(&section[1..])]));
    let mut inside = packet["sections"][0]["objects"].as_object().unwrap().clone();
    assert_eq!(inside.remove("bytes").unwrap()["$hex"], hex_of(&section));
    let mut alone = json("mxo.objects", &section).as_object().unwrap().clone();
    alone.remove("from");
    assert_eq!(inside, alone);
}

fn hex_of(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn filters_find_every_packet_about_a_view() {
    let definitions = Definitions::built_in();
    let filter = Filter::parse("view == 3").unwrap();
    assert!(filter.unknown_fields(&Resolver::new(&definitions)).is_empty());
}
