//! Properties of readers, writers, trees and JSON, for arbitrary values.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use proptest::prelude::*;
use worldwire_core::json::{Json, Style, write_children};
use worldwire_core::text::{TextStyle, write_tree};
use worldwire_core::value::{guid_text, parse_guid, parse_hex, push_hex};
use worldwire_core::{
    Bytes32, Content, Error, ErrorKind, Field, Form, Limits, List32, Names, Reader, Result,
    Sampler, Step, Trace, Tree, Value, Writer, nearest,
};

/// A value to write and to read back.
#[derive(Clone, Debug)]
enum Piece {
    Bits(u64, u8),
    Bit(bool),
    U16(u16),
    U64(u64),
    F32(u32),
    Bytes(Vec<u8>),
    Align,
}

fn piece() -> impl Strategy<Value = Piece> {
    prop_oneof![
        (any::<u64>(), 0..=64_u8).prop_map(|(bits, count)| {
            let mask = if count == 0 { 0 } else { u64::MAX >> (64 - count) };
            Piece::Bits(bits & mask, count)
        }),
        any::<bool>().prop_map(Piece::Bit),
        any::<u16>().prop_map(Piece::U16),
        any::<u64>().prop_map(Piece::U64),
        any::<u32>().prop_map(Piece::F32),
        prop::collection::vec(any::<u8>(), 0..5).prop_map(Piece::Bytes),
        Just(Piece::Align),
    ]
}

fn write(pieces: &[Piece]) -> Writer {
    let mut writer = Writer::new();
    for piece in pieces {
        match piece {
            Piece::Bits(bits, count) => writer.bits(*bits, *count),
            Piece::Bit(bit) => writer.bit(*bit),
            Piece::U16(number) => writer.u16(*number),
            Piece::U64(number) => writer.u64(*number),
            Piece::F32(bits) => writer.f32(f32::from_bits(*bits)),
            Piece::Bytes(bytes) => writer.bytes(bytes),
            Piece::Align => writer.align(),
        }
    }
    writer
}

fn read<'n, T: Trace<'n>>(pieces: &[Piece], reader: &mut Reader<'_, T>) -> Result<()> {
    for piece in pieces {
        match piece {
            Piece::Bits(bits, count) => assert_eq!(reader.bits("bits", *count)?, *bits),
            Piece::Bit(bit) => assert_eq!(reader.bit("bit")?, *bit),
            Piece::U16(number) => assert_eq!(reader.u16("u16")?, *number),
            Piece::U64(number) => assert_eq!(reader.u64("u64")?, *number),
            Piece::F32(bits) => assert_eq!(reader.f32("f32")?.to_bits(), *bits),
            Piece::Bytes(bytes) => assert_eq!(reader.bytes("bytes", bytes.len())?, bytes),
            Piece::Align => reader.align(),
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_written_is_read(pieces in prop::collection::vec(piece(), 0..40)) {
        let writer = write(&pieces);
        prop_assert_eq!(writer.bit_len().div_ceil(8), writer.len() as u64);
        let bytes = writer.into_bytes();
        let mut reader = Reader::new(&bytes);
        read(&pieces, &mut reader).unwrap();
        prop_assert_eq!(reader.end(), Ok(()));

        // A trace changes nothing, and the positions that it receives are ordered and in bounds.
        let mut traced = Reader::traced("pieces", &bytes, Tree::new());
        read(&pieces, &mut traced).unwrap();
        let tree = traced.finish();
        let shown = pieces.iter().filter(|piece| !matches!(piece, Piece::Align)).count();
        prop_assert_eq!(tree.len(), shown);
        let mut last = (0, 0);
        for node in tree.nodes() {
            let (start, end) = node.places();
            prop_assert!((start.byte, start.bit) >= last, "{start:?} before {last:?}");
            prop_assert!((end.byte, end.bit) >= (start.byte, start.bit));
            last = (end.byte, end.bit);
        }
        prop_assert!(last.0 as usize + usize::from(last.1 > 0) <= bytes.len());
    }

    /// A prefix of the written bytes is incomplete, and its error never asks for more than is
    /// missing.
    #[test]
    fn a_part_is_incomplete(
        pieces in prop::collection::vec(piece(), 1..20),
        cut: prop::sample::Index,
    ) {
        let bytes = write(&pieces).into_bytes();
        prop_assume!(!bytes.is_empty());
        let cut = cut.index(bytes.len());
        let error = read(&pieces, &mut Reader::new(&bytes[..cut])).unwrap_err();
        let needed = error.needed().expect("incomplete");
        prop_assert!((1..=bytes.len() - cut).contains(&needed), "{needed} at {cut}: {error}");
        prop_assert!(error.offset().unwrap() <= cut as u64);
        prop_assert_eq!(error.path().count(), 1);
        // Within a part that is complete, the same bytes can never become complete.
        let mut reader = Reader::new(&bytes);
        let error = reader.part_with_rest(cut, |part| read(&pieces, part)).unwrap_err();
        prop_assert_eq!(error.kind(), ErrorKind::Malformed);
        prop_assert_eq!(reader.position(), cut);
    }

    /// A failed attempt reports nothing to the trace.
    #[test]
    fn a_failed_attempt_has_not_happened(
        before in prop::collection::vec(piece(), 0..8),
        tried in prop::collection::vec(piece(), 0..8),
    ) {
        let bytes = [write(&before).into_bytes(), write(&tried).into_bytes()].concat();
        let whole = |attempt: bool| {
            let mut reader = Reader::traced("pieces", &bytes, Tree::new());
            read(&before, &mut reader).unwrap();
            if attempt {
                let outcome: Result<()> = reader.attempt(|reader| {
                    reader.record("tried", |reader| {
                        reader.align();
                        read(&tried, reader)?;
                        Err(Error::malformed("something else", "this"))
                    })
                });
                assert!(outcome.is_err());
            }
            let place = (reader.place(), reader.position(), reader.remaining());
            let mut text = String::new();
            reader.list("rest", |reader| reader.bytes("", reader.remaining())).unwrap();
            write_tree(&reader.finish(), TextStyle { ranges: true, ..TextStyle::default() }, &mut text);
            (place, text)
        };
        prop_assert_eq!(whole(true), whole(false));
    }
}

/// A float survives JSON with the same bits, whatever they are.
fn float_of(text: &str) -> (Option<f64>, Json) {
    let json: Json = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let value = match &json {
        Json::Number(number) => number.as_f64(),
        Json::String(word) => match &**word {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    };
    (value, json)
}

fn shown(bytes: &[u8]) -> String {
    let mut reader = Reader::traced("float", bytes, Tree::new());
    if bytes.len() == 4 {
        drop(reader.f32("x"))
    } else {
        drop(reader.f64("x"))
    };
    let mut text = String::new();
    let tree = reader.finish();
    write_children(Value::List, tree.roots(), Style::default(), &mut text);
    text[1..text.len() - 1].to_owned()
}

/// Payload bits as text, for a NaN other than the usual one.
fn payload(json: &Json, digits: usize) -> Option<u64> {
    let text = json.as_str()?.strip_prefix("0x")?;
    (text.len() == digits).then(|| u64::from_str_radix(text, 16).ok())?
}

fn check_f32(bits: u32) {
    let text = shown(&bits.to_le_bytes());
    match float_of(&text) {
        (Some(value), json) => {
            #[expect(clippy::cast_possible_truncation, reason = "that is what is tested")]
            let narrow = value as f32;
            assert_eq!(narrow.to_bits(), bits, "{text}");
            // A reader that rounds to the nearest single gets the same one.
            if let Json::Number(_) = json {
                assert_eq!(text.parse::<f32>().unwrap().to_bits(), bits, "{text}");
                assert!(text.contains(['.', 'e']), "{text} looks like a whole number");
                assert!(text.len() <= 25, "{text}");
            }
        }
        (None, json) => assert_eq!(payload(&json, 8), Some(u64::from(bits)), "{text}"),
    }
}

fn check_f64(bits: u64) {
    let text = shown(&bits.to_le_bytes());
    match float_of(&text) {
        (Some(value), json) => {
            if matches!(json, Json::Number(_)) {
                assert_eq!(text.parse::<f64>().unwrap().to_bits(), bits, "{text}");
                assert!(text.contains(['.', 'e']), "{text} looks like a whole number");
            } else {
                assert_eq!(value.to_bits(), bits, "{text}");
            }
        }
        (None, json) => assert_eq!(payload(&json, 16), Some(bits), "{text}"),
    }
}

#[test]
fn every_class_of_single_keeps_its_bits() {
    // Both signs, every exponent, and fractions at the limits and in between.
    let fractions = [0, 1, 2, 0x2a_aaaa, 0x3f_ffff, 0x40_0000, 0x40_0001, 0x55_5555, 0x7f_ffff];
    for sign in [0, 1_u32] {
        for exponent in 0..=255_u32 {
            for fraction in fractions {
                check_f32(sign << 31 | exponent << 23 | fraction);
            }
        }
    }
    // The numbers around which the notation changes.
    for around in [1e-5_f32, 1e17, 16_777_216.0, 0.1, 1.0] {
        for step in 0..200 {
            check_f32(around.to_bits() - 100 + step);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn doubles_keep_their_bits(bits: u64, exponent in 0..2048_u64, round: bool) {
        check_f64(bits);
        // This makes all exponents equally likely, and round fractions frequent.
        let fraction = if round { bits & 0x000f_8000_0000_0000 } else { bits & 0x000f_ffff_ffff_ffff };
        check_f64(bits & 1 << 63 | exponent << 52 | fraction);
    }

    #[test]
    fn singles_keep_their_bits(bits: u32) {
        check_f32(bits);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Any text is one JSON string and survives a round trip.
    #[test]
    fn texts_are_json_strings(text: String) {
        let mut out = String::new();
        worldwire_core::json::string(&text, &mut out);
        prop_assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
        prop_assert!(!out.bytes().any(|byte| byte < b' ' || byte == 0x7f));
    }

    /// Whatever a span contains, it is displayed without losing a byte or controlling a terminal.
    #[test]
    fn spans_of_any_form_can_be_shown(
        bytes in prop::collection::vec(any::<u8>(), 0..40),
        form in prop::sample::select(vec![
            Form::Bytes,
            Form::Utf8,
            Form::Latin1,
            Form::Utf16,
            Form::InvertedUtf8,
            Form::InvertedUtf16,
            Form::Guid,
            Form::Ipv4,
        ]),
    ) {
        let mut reader = Reader::traced("span", &bytes, Tree::new());
        reader.span("x", bytes.len(), form).unwrap();
        let tree = reader.finish();
        let node = tree.find("x").unwrap();
        let back = match (form, node.content().unwrap()) {
            (Form::InvertedUtf8 | Form::InvertedUtf16, Content::Bytes(plain)) => {
                plain.iter().map(|byte| !byte).collect()
            }
            (_, Content::Bytes(plain)) => plain.into_owned(),
            (Form::Latin1, Content::Text(text)) => {
                text.chars().map(|c| u8::try_from(c).unwrap()).collect()
            }
            (Form::Utf16, Content::Text(text)) => wide(&text),
            (Form::InvertedUtf16, Content::Text(text)) => {
                wide(&text).iter().map(|byte| !byte).collect()
            }
            (Form::InvertedUtf8, Content::Text(text)) => text.bytes().map(|byte| !byte).collect(),
            (Form::Guid, Content::Text(text)) => parse_guid(&text).unwrap().to_vec(),
            (Form::Ipv4, Content::Text(text)) => {
                let parts: Vec<u8> = text.split('.').rev().map(|n| n.parse().unwrap()).collect();
                parts
            }
            (_, Content::Text(text)) => text.into_owned().into_bytes(),
        };
        prop_assert_eq!(back, &bytes[..]);
        for longest in [0, 1, 48] {
            let mut text = String::new();
            write_tree(&tree, TextStyle { longest, ..TextStyle::default() }, &mut text);
            prop_assert_eq!(text.lines().count(), 1);
            prop_assert!(!text.trim_end_matches('\n').chars().any(char::is_control));
        }
    }

    #[test]
    fn identifiers_and_hexadecimal_texts_go_both_ways(id: [u8; 16], bytes: Vec<u8>) {
        prop_assert_eq!(parse_guid(&guid_text(&id)), Some(id));
        let braced = format!("{{{}}}", guid_text(&id).to_uppercase());
        prop_assert_eq!(parse_guid(&braced), Some(id));
        let mut text = String::new();
        push_hex(&mut text, &bytes);
        prop_assert_eq!(parse_hex(&text), Some(bytes));
    }

    #[test]
    fn no_text_is_too_odd_to_parse(text: String) {
        let _ = (parse_guid(&text), parse_hex(&text));
        let json = Json::from(&*text);
        if let Ok(number) = worldwire_core::json::unsigned(&json) {
            prop_assert!(!text.is_empty());
            let back = worldwire_core::json::unsigned(&Json::from(number)).unwrap();
            prop_assert_eq!(back, number);
        }
        prop_assert_eq!(nearest(&text, [text.as_str()]), Some(text.as_str()));
        let tree = Tree::new();
        prop_assert!(tree.find(&text).is_none());
    }

    /// Tables from data yield the same results as constants: the first of equal entries applies.
    #[test]
    fn loaded_names_are_found(pairs in prop::collection::vec((-20..20_i64, "[a-d]{1,2}"), 0..20)) {
        let boxed = pairs.iter().map(|(number, name)| (*number, name.as_str().into()));
        let names = Names::from_pairs(boxed);
        for number in -21..21 {
            let first = pairs.iter().find(|pair| pair.0 == number).map(|pair| pair.1.as_str());
            prop_assert_eq!(names.name(number), first);
        }
        for (_, name) in &pairs {
            let number = names.number(name).unwrap();
            prop_assert!(pairs.contains(&(number, name.clone())));
            prop_assert_eq!(names.nearest(&name.to_uppercase()).unwrap().len() / 4, 0);
        }
        prop_assert_eq!(names.number("e"), None);
        prop_assert_eq!(names.iter().count(), pairs.len());
    }

    /// The names of a set of flags and the remaining bits make up the set again.
    #[test]
    fn flags_are_never_lost(bits: u64, masks in prop::collection::vec(any::<u64>(), 0..8)) {
        let name = |mask: &u64| format!("0x{mask:x}").into_boxed_str();
        let names = Names::from_pairs(masks.iter().map(|mask| (mask.cast_signed(), name(mask))));
        let (known, rest) = names.flags(bits);
        let known = known.iter().map(|name| u64::from_str_radix(&name[2..], 16).unwrap());
        let (all, disjoint) = known.fold((rest, true), |(all, good), mask| {
            (all | mask, good && rest & mask == 0 && bits & mask == mask)
        });
        prop_assert_eq!(all, bits);
        prop_assert!(disjoint);
    }

    /// Paths are shown outermost first, however deep the error was.
    #[test]
    fn the_way_to_an_error_is_told(
        steps in prop::collection::vec(prop_oneof![
            "[a-z]{1,5}".prop_map(|name| Step::Field(name.into())),
            (0..100_usize).prop_map(Step::Item),
        ], 0..8),
        offset: u64,
        base in 0..1000_u64,
    ) {
        let mut error = Error::incomplete(8, 3).at(offset);
        for step in steps.iter().rev() {
            error = match step {
                Step::Field(name) => error.inside(name),
                Step::Item(index) => error.inside_item(*index),
            };
        }
        prop_assert!(error.path().eq(steps.iter()));
        let mut wanted = String::new();
        for step in &steps {
            match step {
                Step::Field(name) if wanted.is_empty() => wanted.push_str(name),
                Step::Field(name) => wanted.push_str(&format!(".{name}")),
                Step::Item(index) => wanted.push_str(&format!("[{index}]")),
            }
        }
        prop_assert_eq!(error.path_text(), &*wanted);
        let moved = error.clone().based(base);
        prop_assert_eq!(moved.offset(), Some(offset.saturating_add(base)));
        prop_assert_eq!(error.clone().in_layer("inner").based(base).offset(), Some(offset));
        let gap = if wanted.is_empty() { "" } else { " " };
        let text = format!("{wanted}{gap}at byte {offset}: wanted 8 bytes, found 3");
        prop_assert_eq!(error.to_string(), text);
        prop_assert_eq!(error.needed(), Some(5));
        prop_assert_eq!(error.closed().needed(), None);
    }

    /// Samples stay within the requested limits.
    #[test]
    fn samples_keep_to_their_bounds(seed: u64, bound in 1..1000_u64, size in 0..100_u64) {
        let mut sampler = Sampler::sized(seed, size);
        prop_assert!(sampler.below(bound) < bound);
        prop_assert_eq!(sampler.below(0), 0);
        prop_assert!(sampler.length(bound) as u64 <= bound.min(size));
        let text = sampler.text(bound);
        prop_assert!(text.encode_utf16().count() as u64 <= bound.min(size));
        prop_assert!(!text.contains('\0'));
    }
}

fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn bytes_of<'d>(value: &impl Field<'d>) -> Vec<u8> {
    let mut writer = Writer::new();
    value.encode(&mut writer).unwrap();
    writer.into_bytes()
}

macro_rules! fields_go_all_ways {
    ($($test:ident: $type:ty;)*) => {
        proptest! {
            #![proptest_config(ProptestConfig::with_cases(100))]
            $(
                #[test]
                fn $test(seed: u64) {
                    let value = <$type>::sample(&mut Sampler::new(seed));
                    let bytes = bytes_of(&value);
                    prop_assert!(bytes.len() >= <$type as Field<'_>>::LEAST);
                    let mut reader = Reader::traced("field", &bytes, Tree::new());
                    let read = <$type>::decode(&mut reader, "value").unwrap();
                    prop_assert_eq!(&read, &value);
                    reader.end().unwrap();
                    let tree = reader.finish();
                    prop_assert_eq!(tree.find("value").unwrap().raw(), &bytes[..]);
                    for safe in [false, true] {
                        let mut text = String::new();
                        write_children(Value::Record, tree.roots(), Style { safe }, &mut text);
                        let json: Json = serde_json::from_str(&text).unwrap();
                        let again = <$type>::from_json((&json["value"]).into()).unwrap();
                        prop_assert_eq!(&again, &value, "{}", text);
                    }
                    for cut in 0..bytes.len() {
                        let error = <$type>::decode(&mut Reader::new(&bytes[..cut]), "value")
                            .unwrap_err();
                        let needed = error.needed().unwrap();
                        prop_assert!((1..=bytes.len() - cut).contains(&needed), "{}", error);
                    }
                }
            )*
        }
    };
}

fields_go_all_ways! {
    bytes: u8;
    shorts: u16;
    numbers: u32;
    long_numbers: u64;
    signed_bytes: i8;
    signed_shorts: i16;
    signed_numbers: i32;
    signed_long_numbers: i64;
    digests: [u8; 20];
    rows_of_numbers: [u32; 4];
    counted_bytes: Bytes32<'_, 64>;
    lists: List32<u16, 9>;
    lists_of_lists: List32<List32<Bytes32<'_, 5>, 3>, 4>;
    empty_elements: List32<[u8; 0], 9>;
}

#[test]
fn bounds_hold_in_both_directions() {
    type Few = List32<u16, 2>;
    let many = Few::from(vec![1, 2, 3]);
    let error = many.encode(&mut Writer::new()).unwrap_err();
    let wanted = ErrorKind::Limit { name: "elements of this field", limit: 2, asked: 3 };
    assert_eq!(error.kind(), wanted);
    let error = Few::decode(&mut Reader::new(&[3, 0, 0, 0, 1, 0]), "few").unwrap_err();
    assert_eq!(
        error.to_string(),
        "few at byte 0: wanted at most 2 (elements of this field), found 3"
    );
    let error = Bytes32::<2>::new(vec![0; 3]).encode(&mut Writer::new()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Limit { limit: 2, asked: 3, .. }));
    // Elements without bytes are limited by a separate count.
    let limits = Limits { empty_elements: 4, ..Limits::DEFAULT };
    let mut reader = Reader::within(&[5, 0, 0, 0], &limits);
    let error = List32::<[u8; 0], 9>::decode(&mut reader, "none").unwrap_err();
    let wanted = ErrorKind::Limit { name: "empty elements", limit: 4, asked: 5 };
    assert_eq!(error.kind(), wanted);
}

#[test]
fn layers_are_bounded_and_keep_their_places() {
    fn nest(reader: &mut Reader<'_, impl for<'n> Trace<'n>>) -> Result<()> {
        let start = reader.place();
        reader.layer("inner", start, vec![0; 3], |inner| {
            inner.u8("first")?;
            nest(inner)
        })
    }
    let error = nest(&mut Reader::new(&[])).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Limit { name: "layers", limit: 64, .. }));
    assert_eq!(error.layer(), Some("inner"));
}
