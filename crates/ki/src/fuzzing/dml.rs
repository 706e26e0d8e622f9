//! Targets for definitions, messages and tables.

use std::sync::LazyLock;

use worldwire_core::json::{Json, Style};
use worldwire_core::testing::{Target, decode, render};
use worldwire_core::{Limits, Reader, Sampler, Tree};

use crate::file::revision::{FileList, FileListDiff};
use crate::file::table::TableFile;
use crate::message::Values;
use crate::schema::{Mode, Protocols, load};

/// The targets in this file.
pub(super) const TARGETS: &[Target] = &[
    Target { name: "ki_dml_xml", run: xml, seeds: xml_seeds },
    Target { name: "ki_dml_message", run: message, seeds: message_seeds },
    Target {
        name: "ki_dml_json",
        run: json,
        seeds: || vec![b"{\"Error\":1,\"Rec1\":\"a\"}".to_vec()],
    },
    Target { name: "ki_dml_table", run: table, seeds: table_seeds },
    Target {
        name: "ki_dml_table_text",
        run: table_text,
        seeds: || {
            let xml = "<T><A><RECORD><B TYPE=\"UINT\">7</B></RECORD></A></T>";
            let csv = "[A]\r\nB:UINT,C:STR\r\n7,hex:ff\r\n";
            vec![xml.into(), csv.into()]
        },
    },
];

static PROTOCOLS: LazyLock<Protocols> = LazyLock::new(Protocols::built_in);

fn xml(data: &[u8]) {
    let lenient = load("fuzz.xml", data, Mode::Lenient);
    let strict = load("fuzz.xml", data, Mode::Strict);
    assert!(
        strict.protocol.is_none() || lenient.protocol.is_some(),
        "strict mode accepts more than lenient mode"
    );
    for diagnostic in &lenient.diagnostics {
        assert!(!diagnostic.to_string().is_empty(), "an empty diagnostic");
    }
}

fn table_text(data: &[u8]) {
    let loaded = crate::file::xml::load("fuzz.xml", data);
    assert!(
        loaded.file.is_some() || !loaded.diagnostics.is_empty(),
        "refused without a diagnostic"
    );
    let Ok(text) = core::str::from_utf8(data) else { return };
    let Ok(file) = TableFile::from_csv(text, "fuzz") else { return };
    if let (Ok(bytes), Ok(csv)) = (file.to_bytes(), file.to_csv()) {
        let again = TableFile::from_csv(&csv, "fuzz").expect("it was just written");
        assert_eq!(again.to_bytes(), Ok(bytes), "round trip");
    }
}

/// The first two bytes select the message.
fn message(data: &[u8]) {
    let [service, order, payload @ ..] = data else { return };
    let Some(definition) = PROTOCOLS.message(*service, *order) else { return };
    let mut plain = Values::new();
    let outcome = definition.decode(&mut Reader::new(payload), &mut plain);
    let mut reader = Reader::traced("payload", payload, Tree::new());
    let mut values = Values::new();
    let traced = definition.decode(&mut reader, &mut values);
    assert_eq!(traced, outcome, "a trace changed the outcome");
    let (tree, _) = reader.conclude(traced);
    let json = render(&tree, Style::default());
    assert!(
        !definition.fit(payload).to_string().is_empty(),
        "the fit is described by an empty text"
    );
    if outcome.is_ok() {
        if let Ok(bytes) = definition.payload(&values) {
            assert_eq!(bytes, payload, "encoded to different bytes");
        }
        assert_eq!(definition.from_json(&json).as_ref(), Ok(&values), "JSON has different values");
    }
}

fn json(data: &[u8]) {
    let Ok(json) = serde_json::from_slice::<Json>(data) else { return };
    for message in PROTOCOLS.service(7).into_iter().flat_map(|login| login.messages()) {
        if let Ok(values) = message.from_json(&json) {
            let _ = message.payload(&values);
        }
    }
    let bytes = TableFile::from_json(&json).and_then(|file| file.to_bytes());
    assert_eq!(
        TableFile::json_to_bytes(&json).ok(),
        bytes.ok(),
        "encoding one record at a time gives other bytes"
    );
}

fn table(data: &[u8]) {
    let (limits, style) = (&Limits::DEFAULT, Style::default());
    let decoded = decode(data, limits, style, TableFile::decode, TableFile::decode);
    let by_record = TableFile::json_to_bytes(&decoded.json);
    let again = |json: &Json| TableFile::from_json(json)?.to_bytes();
    let used = decoded.used;
    let Some(file) = decoded.encodes_back(TableFile::to_bytes, again) else { return };
    assert_eq!(by_record.as_deref(), Ok(used), "encoding one record at a time gives other bytes");
    assert_eq!(used, data, "bytes were left over");
    let list = FileList::of(&file);
    assert_eq!(list.diff(&list), FileListDiff::default(), "a list differs from itself");
    assert!(list.files.iter().all(|file| file.url("x").is_ascii()));
    if let Ok(csv) = file.to_csv() {
        let again = TableFile::from_csv(&csv, "").expect("it was just written");
        assert_eq!(again.to_bytes(), file.to_bytes(), "round trip through CSV");
    }
    if let Ok(xml) = file.to_xml() {
        let again = crate::file::xml::load("fuzz.xml", xml.as_bytes());
        assert!(again.file.is_some(), "round trip through XML: {:?}", again.diagnostics);
    }
}

fn xml_seeds() -> Vec<Vec<u8>> {
    let head =
        "<A><_ProtocolInfo><RECORD><ServiceID TYPE=\"UBYT\">9</ServiceID></RECORD></_ProtocolInfo>";
    let bodies = [
        "<MSG_A><RECORD><_MsgOrder>1</_MsgOrder><F TPYE=\"FLT\">0.5</F></RECORD></MSG_A>",
        "<MSG_B><RECORD><S TYPE=\"STR\">a&amp;b &#65; &odd;</S><GlobalID/></RECORD></MSG_B>x",
    ];
    bodies.map(|body| format!("{head}{body}</A>").into_bytes()).to_vec()
}

fn message_seeds() -> Vec<Vec<u8>> {
    let mut sampler = Sampler::new(7);
    let all = PROTOCOLS.iter().flat_map(|protocol| protocol.messages());
    let seeds = all.filter_map(|message| {
        let payload = message.payload(&message.sample(&mut sampler)).ok()?;
        Some([&[message.service, message.order][..], &payload].concat())
    });
    seeds.collect()
}

fn table_seeds() -> Vec<Vec<u8>> {
    let mut seed = vec![1, 0, 0, 0, 2, 1, 0x1c, 0, 1, 0, b'A', 3, 0x28, 12, 0];
    seed.extend(b"_TargetTable");
    seed.extend([9, 0x28, 1, 0, b'T', 2, 2, 8, 0, 1, 0, 0, 0]);
    vec![seed]
}
