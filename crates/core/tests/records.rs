//! The promises of records, masks and tables of classes: all conversions are reversible, and
//! contradictions are refused by name.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use proptest::prelude::*;
use worldwire_core::json::{Given, Json, Style, json, write_node};
use worldwire_core::opener::{Closer, Opener, Site};
use worldwire_core::{
    Bytes32, Classes, Error, Field, Messages, Reader, Record, Rest, Result, Sampler, Tree,
    TreeBuilder, Writer, classes, messages, record, scalar, wire_flags,
};

scalar! {
    /// Who sent it.
    pub struct PlayerId(u32) as Hex;
}

wire_flags! {
    /// The fields of a header.
    pub struct HeaderFlags(u16) {
        /// A time follows.
        Time = 1,
        /// A player follows.
        Player = 2,
    }
}

record! {
    /// The fields at the beginning of every message.
    pub struct Header {
        flags "flags": HeaderFlags,
        time "time": u32 where flags.contains(HeaderFlags::Time),
        player "player": PlayerId where flags.contains(HeaderFlags::Player),
    }
}

record! {
    #[doc = concat!("A header, ", "and more after it.")]
    pub struct Chat<'a> {
        ..header: Header,
        text "text": Bytes32<'a, 64>,
        extra "extra": Rest<u16> where header.time.is_some(),
    }
}

record! {
    /// Any of three fields.
    pub struct Parts<'a>: mask u8 {
        0 id "id": u32,
        /// A blob.
        3 blob "blob": Bytes32<'a, 16>,
        7 last "last": u8,
    }
}

classes! {
    /// Messages that contain objects.
    pub enum Said<'a>: u16;
    named { 7 "plAbstract" in "plCreatable" }

    /// A player talks.
    2 ChatMsg<'a> "plChatMsg" in "plMessage" {
        ..header: Header,
        text "text": Bytes32<'a, 64>,
    }

    /// A door.
    3 DoorMsg "plDoorMsg" in "plMessage" {
        open "open": u8,
    }
}

messages! {
    /// No numbers are reserved here, and their list may be omitted.
    pub enum Plain<'a>: "plain", Server;

    /// Bytes.
    1 Blob<'a> {
        blob "blob": Bytes32<'a, 64>,
    }
}

fn bytes_of<'d>(value: &impl Field<'d>) -> Result<Vec<u8>> {
    let mut writer = Writer::new();
    value.encode(&mut writer)?;
    Ok(writer.into_bytes())
}

fn json_of(tree: &Tree<'_>) -> Json {
    let mut out = String::new();
    write_node(tree.roots().next().unwrap(), Style::default(), &mut out);
    serde_json::from_str(&out).unwrap()
}

macro_rules! all_ways {
    ($($name:ident: $type:ident;)*) => {$(
        #[test]
        fn $name() {
            for seed in 0..500 {
                let value = $type::sample(&mut Sampler::new(seed));
                let bytes = bytes_of(&value).unwrap();
                let read = $type::decode(&mut Reader::new(&bytes), "value").unwrap();
                assert_eq!(read, value);
                let mut reader = Reader::traced("value", &bytes, Tree::new());
                assert_eq!($type::decode(&mut reader, "value").unwrap(), value);
                reader.end().unwrap();
                let json = json_of(&reader.finish());
                let again = $type::from_json((&json).into()).unwrap();
                assert_eq!(again, value, "{json}");
                assert_eq!(again.into_owned(), value.into_owned());
                for cut in 0..bytes.len() {
                    // Lists that extend to the end are complete wherever they are cut; nothing
                    // panics.
                    let _ = $type::decode(&mut Reader::new(&bytes[..cut]), "value");
                }
            }
        }
    )*};
}

all_ways! {
    headers: Header;
    chats: Chat;
    parts: Parts;
    classes_of_objects: Said;
}

#[test]
fn tables_tell_conditions_bases_and_bits() {
    let rows: Vec<String> =
        Chat::fields().iter().map(|row| format!("{} {}", row.name, row.layout)).collect();
    assert_eq!(
        rows,
        [
            "flags u16 HeaderFlags",
            "time u32, if flags.contains(HeaderFlags::Time)",
            "player u32 PlayerId, if flags.contains(HeaderFlags::Player)",
            "text u32 count, u8[..64]",
            "extra u16[to the end], if header.time.is_some()",
        ]
    );
    let row = &Parts::fields()[1];
    assert_eq!((&*row.layout, row.doc), ("u32 count, u8[..16], if bit 3 is set", " A blob."));
    let named = <Said<'_> as Classes<'_>>::info(7).unwrap();
    assert_eq!(
        (named.name, named.parent, named.fields.is_none()),
        ("plAbstract", "plCreatable", true)
    );
    assert_eq!(Said::NAMES.number("plDoorMsg"), Some(3));
    assert!(<Plain<'_> as Messages<'_>>::RESERVED.is_empty());
}

#[test]
fn values_and_conditions_have_to_agree() {
    let error = |header: Header| bytes_of(&header).unwrap_err().to_string();
    assert_eq!(
        error(Header { flags: HeaderFlags::Time, time: None, player: None }),
        "time: is required if flags.contains(HeaderFlags::Time)"
    );
    assert_eq!(
        error(Header { flags: HeaderFlags(0), time: None, player: Some(PlayerId(1)) }),
        "player: is allowed only if flags.contains(HeaderFlags::Player)"
    );
    let unknown = Parts::decode(&mut Reader::new(&[0b10, 0]), "parts").unwrap_err();
    assert_eq!(unknown.to_string(), "parts at byte 0: wanted a mask of known fields, found 0x2");
}

#[test]
fn unknown_classes_stay_bytes_with_their_index() {
    let bytes = [0xff, 0x12, 1, 2, 3];
    let object = Said::decode(&mut Reader::new(&bytes), "object").unwrap();
    assert!(matches!(&object, Said::Other(other) if other.class == 0x12ff));
    assert_eq!(bytes_of(&object).unwrap(), bytes);
    let too_large = Said::Other(worldwire_core::OtherClass { class: 1 << 16, bytes: (&[]).into() });
    assert!(bytes_of(&too_large).is_err());
    let json = json!({"class": "plDorMsg", "open": 1});
    let error = Said::from_json((&json).into()).unwrap_err().to_string();
    assert!(error.ends_with("did you mean \"plDoorMsg\"?"), "{error}");
}

/// Opens blobs that begin with 7, followed by a number.
struct Sevens;

impl<'n> Opener<'n> for Sevens {
    fn opens(&self, site: Site<'_>, bytes: &[u8]) -> bool {
        (site.message.name, site.field) == ("Blob", "blob") && bytes.first() == Some(&7)
    }

    fn open(&'n self, _: Site<'_>, reader: &mut Reader<'_, TreeBuilder<'n>>) -> Result<()> {
        reader.take(1)?;
        reader.u16("number").map(drop)
    }
}

impl Closer for Sevens {
    fn close(&self, site: Site<'_>, json: &Json) -> Result<Option<Vec<u8>>> {
        assert_eq!((site.message.connection, site.message.number), ("plain", 1));
        let Some(number) = json.get("number").and_then(Json::as_u64) else { return Ok(None) };
        let number = u16::try_from(number).map_err(|_| Error::value("16 bits", "more"))?;
        Ok(Some([&[7][..], &number.to_le_bytes()].concat()))
    }
}

#[test]
fn openers_see_the_message_and_say_why_not() {
    let decode = |blob: &[u8]| {
        let bytes = bytes_of(&Bytes32::<64>::new(blob)).unwrap().leak();
        let mut reader = Reader::traced("message", bytes, Tree::new()).opening(&Sevens);
        let outcome = reader.record("fields", |reader| Plain::decode_body(1, reader).map(drop));
        outcome.unwrap();
        reader.finish()
    };
    let shown = |tree: &Tree<'_>| json_of(tree).to_string();
    let tree = decode(&[7, 1, 2]);
    assert_eq!(shown(&tree), r#"{"blob":{"bytes":{"$hex":"070102"},"number":513}}"#);
    assert_eq!(tree.find("fields.blob.number").unwrap().bytes(), 5..7);
    let plain = decode(&[8, 1]);
    assert_eq!(shown(&plain), r#"{"blob":{"$hex":"0801"}}"#);
    let odd = decode(&[7, 1, 2, 3]);
    assert_eq!(shown(&odd), r#"{"blob":{"bytes":{"$hex":"07010203"}}}"#);
    let remark = odd.remarks()[0].to_string();
    assert_eq!(remark, "blob at byte 7: wanted the end, found 1 more byte");
    // The JSON can be encoded again, whether changed or not.
    for (json, wanted) in [
        (json_of(&tree), &[7, 1, 2][..]),
        (json!({"blob": {"number": 3}}), &[7, 3, 0]),
        (json_of(&odd), &[7, 1, 2, 3]),
        (json_of(&plain), &[8, 1]),
    ] {
        let message = Plain::from_json("Blob", Given::closing(&json, &Sevens)).unwrap();
        assert!(matches!(message, Plain::Blob(Blob { blob }) if *blob == *wanted), "{json}");
    }
}

proptest! {
    #[test]
    fn any_bytes_read_the_same_with_and_without_a_trace(bytes: Vec<u8>) {
        let plain = Chat::decode(&mut Reader::new(&bytes), "x");
        let mut reader = Reader::traced("x", &bytes, Tree::new());
        let traced = Chat::decode(&mut reader, "x");
        prop_assert_eq!(&plain, &traced);
        let plain = Said::decode(&mut Reader::new(&bytes), "x");
        let mut reader = Reader::traced("x", &bytes, Tree::new());
        prop_assert_eq!(&plain, &Said::decode(&mut reader, "x"));
        if let Ok(object) = plain && reader.end().is_ok() {
            prop_assert_eq!(bytes_of(&object).unwrap(), bytes);
        }
    }
}
