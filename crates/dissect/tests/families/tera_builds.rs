//! The TERA sample as a different build would send it: with different opcodes and layouts, and with
//! counters that no list names.

use worldwire_capture::{CaptureReader, Record};
use worldwire_core::{Limits, Side, Tree};
use worldwire_dissect::{
    Definitions, Dissection, Item, NoteKind, Options, Scratch, TeraDefinitions,
};
use worldwire_tera::carry::Carry;
use worldwire_tera::diagnosis::{Diagnosis, Finding};
use worldwire_tera::file::Library;
use worldwire_tera::file::library::BuildFacts;
use worldwire_tera::frame::Header;
use worldwire_tera::message::{Head, HeaderForm, Value};
use worldwire_tera::packet::Packets;
use worldwire_tera::schema::{Definition, FileName, ParseOptions};

pub(crate) const SAMPLE: &[u8] = include_bytes!("../../../../samples/tera-login.pcapng");
const REVISION: u32 = 999_001;

/// All files in `samples/tera`.
pub(crate) fn definitions() -> Definitions {
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples/tera");
    let mut files = Vec::new();
    for folder in ["", "/definitions", "/map", "/integrity"] {
        for entry in std::fs::read_dir(format!("{samples}{folder}")).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                files.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let mut definitions = Definitions::built_in();
    assert_eq!(definitions.add(files), Some(Vec::new()));
    definitions
}

fn library() -> Library {
    definitions().part::<TeraDefinitions>().library().clone()
}

fn packets(library: &Library) -> Packets {
    Packets::new(library, BuildFacts { revision: Some(REVISION), ..BuildFacts::default() })
}

/// The messages of the sample.
fn messages() -> Vec<(Side, Vec<u8>)> {
    let mut capture = CaptureReader::new(SAMPLE, &Limits::DEFAULT).unwrap();
    let mut dissection = Dissection::new(Options::default());
    while let Some(record) = capture.next().unwrap() {
        if let Record::Packet(packet) = record {
            dissection.push(&packet);
        }
    }
    dissection.end();
    let show = |item: &Item<'_>, _: &mut Scratch, out: &mut Vec<(Side, Vec<u8>)>| {
        if item.message().is_some_and(|message| message.is_message()) {
            out.push((item.from, item.bytes().to_vec()));
        }
    };
    let mut messages = Vec::new();
    dissection.run(&show, &mut messages, |_| ());
    messages
}

fn opcode(message: &[u8]) -> u16 {
    Header::peek(message).unwrap().unwrap().opcode
}

/// A different opcode for each message, except the two that are the same in every build.
fn shuffled(opcode: u16) -> u16 {
    match opcode {
        19_900 | 19_901 => opcode,
        other => u16::try_from(u32::from(other) * 7919 % 65_521).unwrap(),
    }
}

/// A message of the new build, in which three layouts have an additional field.
fn renewed(packets: &Packets, message: &[u8]) -> Vec<u8> {
    const CHANGED: [(&str, &str); 3] = [
        ("C_CHAT", "uint32 added\nuint32 channel\nstring message\n"),
        ("S_LOGIN_ARBITER", "uint32 added\nbool success\nuint32 status\n"),
        ("S_LOGIN_ACCOUNT_INFO", "uint32 added\nuint64 accountId\nuint32 integrityIv\n"),
    ];
    let number = opcode(message);
    let packet = packets.get(number);
    let changed = packet.and_then(|packet| CHANGED.iter().find(|(name, _)| *name == packet.name));
    let Some((name, text)) = changed else {
        let mut message = message.to_vec();
        message[2..4].copy_from_slice(&shuffled(number).to_le_bytes());
        return message;
    };
    let old = packet.unwrap().definition.unwrap().plan();
    let mut values = vec![Value::Unsigned(3)];
    match old.read(message, HeaderForm::Plain).unwrap().fields().clone() {
        Value::Record(fields) => values.extend(fields),
        other => panic!("{other:?}"),
    }
    let file = FileName::parse(&format!("{name}.9.def")).unwrap();
    let new = Definition::parse(&file, text, &ParseOptions::default()).unwrap();
    let mut out = Vec::new();
    new.plan().encode(Head::plain(shuffled(number)), &Value::Record(values), &mut out).unwrap();
    out
}

#[test]
fn maps_are_carried_over_to_a_new_build() {
    let library = library();
    let packets = packets(&library);
    let mut carry = Carry::new(&packets);
    let messages = messages();
    for (from, message) in &messages {
        carry.push_old(0, *from, message);
        carry.push_new(0, *from, &renewed(&packets, message));
    }
    let carried = carry.finish();
    let known: Vec<_> = packets.names().iter().collect();
    let wanted = |opcode: u16| {
        let old = known
            .iter()
            .find(|(code, _)| u16::try_from(*code).is_ok_and(|code| shuffled(code) == opcode));
        old.map(|(_, name)| *name)
    };
    let named: Vec<_> = carried.iter().filter(|one| wanted(one.opcode).is_some()).collect();
    let right = named.iter().filter(|one| one.name.as_deref() == wanted(one.opcode)).count();
    assert!(named.len() > 10 && right * 100 >= named.len() * 95, "{right}: {carried:#?}");
    for one in carried.iter().filter(|one| one.is_sure) {
        assert_eq!(one.name.as_deref(), wanted(one.opcode), "sure, and wrong");
    }
    let sure = carried.iter().filter(|one| one.is_sure).count();
    assert!(sure * 2 > carried.len(), "{carried:#?}");
}

#[test]
fn counters_are_found_without_a_list() {
    let mut library = library();
    library.integrity.clear();
    let packets = packets(&library);
    let mut diagnosis = Diagnosis::new(packets.into());
    for (from, message) in messages() {
        diagnosis.push(0, from, &message);
    }
    let list: Vec<_> = diagnosis.integrity().iter().map(str::to_owned).collect();
    assert_eq!(list, ["C_START_SKILL"]);
    let findings = diagnosis.findings(&library.deprecated);
    let sealed =
        findings.iter().find(|finding| matches!(finding, Finding::UnlistedIntegrity { .. }));
    let wanted = "messages that have counters but are on no integrity list: C_START_SKILL";
    assert_eq!(sealed.map(ToString::to_string).as_deref(), Some(wanted));
    let misfit = |finding: &Finding| matches!(finding, Finding::Misfit { .. });
    assert!(!findings.iter().any(misfit), "{findings:?}");
}

/// The items about skills when the sample is dissected without an integrity list.
fn skills(revisions: &str) -> Vec<String> {
    let mut definitions = Definitions::built_in();
    let map = include_str!("../../../../samples/tera/map/protocol.999001.map");
    let skill = include_str!("../../../../samples/tera/definitions/C_START_SKILL.1.def");
    definitions.add([
        ("protocol.999001.map", map),
        ("C_START_SKILL.1.def", skill),
        ("revisions.json", revisions),
    ]);
    let mut dissection = Dissection::new(Options { definitions, ..Options::default() });
    let mut capture = CaptureReader::new(SAMPLE, &Limits::DEFAULT).unwrap();
    while let Some(record) = capture.next().unwrap() {
        if let Record::Packet(packet) = record {
            dissection.push(&packet);
        }
    }
    dissection.end();
    let limits = Limits::DEFAULT;
    let show = |item: &Item<'_>, _: &mut Scratch, out: &mut Vec<String>| {
        let mut name = String::new();
        item.push_name(&mut name);
        if let Some(note) = item.note().filter(|note| note.kind == NoteKind::Warning) {
            out.push(note.text.split([':', ';']).next().unwrap().to_owned());
        } else if name == "tera.C_START_SKILL" {
            let tree = item.tree(Tree::new(), &limits);
            let has = |path: &str| tree.find(path).is_some();
            let (counter, rest) = (has("fields.$integrity"), has("fields.$trailing"));
            out.push(format!("counter {counter}, trailing {rest}"));
        }
    };
    let mut notes = Vec::new();
    dissection.run(&show, &mut notes, |_| ());
    notes
}

#[test]
fn one_counter_is_not_evidence() {
    let plain = "counter false, trailing true";
    let sealed = "counter true, trailing false";
    let notes = skills(r#"{"999001": "98"}"#);
    let hint = "C_START_SKILL is 8 bytes longer than its definition";
    let found = "client messages have counters and checksums although no integrity list names them";
    assert_eq!(notes[..4], [hint, plain, found, sealed], "{notes:?}");
    assert!(notes[4..].iter().all(|one| one == sealed), "{notes:?}");
    // A client of patch 91 sends no counters.
    let notes = skills(r#"{"999001": "91"}"#);
    assert!(notes.len() > 1 && notes.iter().all(|one| one == plain), "{notes:?}");
}
