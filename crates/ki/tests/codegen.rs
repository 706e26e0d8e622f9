//! Rust generated from definitions compiles and agrees with the run-time codec.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::path::Path;

use proptest::prelude::*;
use worldwire_core::json::{Json, Style, write_children};
use worldwire_core::{Reader, Record, Sampler, Tree, Value, Writer};
use worldwire_ki::codegen::rust;
use worldwire_ki::message::Values;
use worldwire_ki::schema::{Mode, Protocols};

#[rustfmt::skip]
#[allow(dead_code, reason = "the tests use only a part")]
#[allow(unreachable_pub, missing_docs, reason = "generated for other crates")]
#[path = "generated/messages.rs"]
mod generated;

/// Names that try to break out of the source, and every type.
const HOSTILE: &str = r#"<M>
  <_ProtocolInfo><RECORD>
    <ServiceID TYPE="UBYT">200</ServiceID><ProtocolType TYPE="STR">HOSTILE</ProtocolType>
    <ProtocolVersion TYPE="INT">1</ProtocolVersion>
    <ProtocolDescription TYPE="STR">*/ fn main() {} /* [link](x) `code` # heading</ProtocolDescription>
  </RECORD></_ProtocolInfo>
  <MSG_ALL><RECORD>
    <_MsgDescription TYPE="STR" NOXFER="TRUE">Two
lines "and" \ more</_MsgDescription>
    <type TYPE="BYT"/><self TYPE="UBYT"/><reader TYPE="SHRT"/><GlobalID TYPE="USHRT"/>
    <Global_ID TYPE="INT"/><globalID TYPE="UINT"/><F TYPE="FLT"/><D TYPE="DBL"/><G TYPE="GID"/>
    <S TYPE="STR"/><W TYPE="WSTR"/><B TYPE="BOOL"/><X-Y.Z TYPE="INT"/>
  </RECORD></MSG_ALL>
  <MSG_all><RECORD><é TYPE="INT"/></RECORD></MSG_all>
  <Message><RECORD/></Message>
  <MSG_EMPTY><RECORD/></MSG_EMPTY>
</M>"#;

fn protocols() -> Protocols {
    let mut protocols = Protocols::built_in();
    let reported = protocols.add("hostile.xml", HOSTILE.as_bytes(), Mode::Strict);
    assert!(reported.is_empty(), "{reported:?}");
    protocols
}

/// The messages whose generated source is checked in and compiled: one of each shape, and the
/// hostile ones.
const SELECTION: [&str; 6] = [
    "SYSTEM.MSG_PING",
    "GAME.MSG_CLIENTMOVE",
    "LOGIN.MSG_CHARACTERSELECTED",
    "LOGIN.MSG_USER_ADMIT_IND",
    "LOGIN.MSG_USER_AUTHEN_V3",
    "200",
];

#[test]
fn checked_in_source_is_up_to_date() {
    let source = rust(&protocols(), &SELECTION.map(str::to_owned)).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/generated/messages.rs");
    if std::env::var_os("WORLDWIRE_BLESS").is_some() {
        std::fs::write(&path, &source).unwrap();
    }
    let checked_in = std::fs::read_to_string(&path).unwrap();
    assert!(source == checked_in, "WORLDWIRE_BLESS=1 regenerates {}", path.display());
}

/// Each of the messages that are not compiled here still has a struct with all its fields.
#[test]
fn every_built_in_message_gets_a_struct() {
    let protocols = Protocols::built_in();
    let source = rust(&protocols, &[]).unwrap();
    let mut structs = source.split("    record! {\n").skip(1);
    for protocol in protocols.iter() {
        for message in protocol.messages() {
            let text = structs.next().unwrap();
            let (declaration, rest) = text.split_once("\n    }\n").unwrap();
            let title = format!("{} ({}/{}).", message.tag, message.service, message.order);
            assert!(declaration.replace('\\', "").contains(&title), "{title}: {declaration}");
            let fields = declaration.lines().filter_map(|line| line.split('"').nth(1));
            let names = message.fields().iter().map(|field| &*field.name);
            assert!(fields.eq(names), "{title}: {declaration}");
            assert!(rest.contains(&format!("pub const SERVICE: u8 = {};", message.service)));
            assert!(rest.contains(&format!("pub const ORDER: u8 = {};", message.order)));
        }
        let service = protocols.service_name(protocol.service).to_lowercase();
        assert_eq!(source.matches(&format!("pub mod {service} {{")).count(), 1, "{service}");
    }
    assert_eq!(structs.count(), 0);
}

fn json(tree: &Tree<'_>) -> Json {
    let mut text = String::new();
    write_children(Value::Record, tree.roots(), Style::default(), &mut text);
    serde_json::from_str(&text).unwrap()
}

/// Checks that the struct and the definition decode and encode a message in the same way.
fn agree<'d, R: Record<'d>>(service: u8, order: u8, bytes: &'d [u8]) {
    let protocols = protocols();
    let message = protocols.message(service, order).unwrap();
    let mut values = Values::new();
    message.decode(&mut Reader::new(bytes), &mut values).unwrap();

    let mut reader = Reader::new(bytes);
    let typed = R::decode_fields(&mut reader).unwrap();
    reader.end().unwrap();
    let mut writer = Writer::new();
    typed.encode_fields(&mut writer).unwrap();
    assert_eq!(writer.as_bytes(), bytes, "{}", message.tag);
    assert_eq!(message.payload(&values).unwrap(), bytes);

    let mut reader = Reader::traced("payload", bytes, Tree::new());
    R::decode_fields(&mut reader).unwrap();
    let typed = json(&reader.finish());
    let copy = bytes.to_vec();
    let mut reader = Reader::traced("payload", &copy, Tree::new());
    message.decode(&mut reader, &mut Values::new()).unwrap();
    assert_eq!(typed, json(&reader.finish()), "{}", message.tag);
    let mut writer = Writer::new();
    R::from_json((&typed).into()).unwrap().encode_fields(&mut writer).unwrap();
    assert_eq!(writer.as_bytes(), bytes, "{}", message.tag);
    for end in 0..bytes.len() {
        let short = R::decode_fields(&mut Reader::new(&bytes[..end]));
        assert!(short.is_err_and(|error| error.needed().is_some()), "{} at {end}", message.tag);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn structs_and_definitions_agree(seed: u64) {
        use generated::{game, login, hostile, system};
        let protocols = protocols();
        let sampler = &mut Sampler::new(seed);
        let mut bytes = |service, order| {
            let message = protocols.message(service, order).unwrap();
            message.payload(&message.sample(sampler)).unwrap()
        };
        agree::<login::MsgUserAuthenV3<'_>>(7, 27, &bytes(7, 27));
        agree::<login::MsgUserAdmitInd>(7, 20, &bytes(7, 20));
        agree::<login::MsgCharacterselected<'_>>(7, 3, &bytes(7, 3));
        agree::<game::MsgClientmove>(5, 36, &bytes(5, 36));
        agree::<system::MsgPing>(1, 1, &[]);
        let all = protocols.message_named("200.MSG_ALL").unwrap().order;
        prop_assert_eq!(hostile::MsgAll::ORDER, all);
        agree::<hostile::MsgAll<'_>>(200, all, &bytes(200, all));

        // The enum of all messages yields the same result.
        for order in [3, 20, 27] {
            let payload = bytes(7, order);
            let typed = login::Message::decode(order, &mut Reader::new(&payload)).unwrap();
            prop_assert_eq!(typed.order(), order);
            let mut writer = Writer::new();
            typed.encode(&mut writer).unwrap();
            prop_assert_eq!(writer.as_bytes(), &payload[..]);
        }
    }
}
