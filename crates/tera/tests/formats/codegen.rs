//! Checks that generated Rust compiles and agrees with the codec that runs definitions.

use proptest::prelude::*;
use worldwire_core::Sampler;
use worldwire_tera::message::typed::Typed;
use worldwire_tera::message::{Fault, Head, HeaderForm, Integrity, Value};
use worldwire_tera::schema::Definition;

#[rustfmt::skip]
#[allow(clippy::all, reason = "generated code")]
#[allow(dead_code, reason = "the tests use only a part")]
#[allow(unreachable_pub, missing_docs, reason = "generated for use in public modules")]
#[path = "../generated/messages.rs"]
mod generated;
#[path = "../generated/definitions.rs"]
mod definitions;

use definitions::definitions;

fn heads() -> [Head; 2] {
    let integrity = Some(Integrity { counter: 7, checksum: 0x0102_0304 });
    [Head::plain(0x1234), Head { opcode: 0x4321, integrity }]
}

/// Checks that a struct and its definition decode some bytes to the same values, which encode to
/// the same bytes, or fail with the same error.
fn agree<'d, T: Typed<'d> + std::fmt::Debug>(
    definition: &Definition,
    bytes: &'d [u8],
    form: HeaderForm,
) {
    assert_eq!((T::NAME, T::VERSION), (definition.name(), definition.version()));
    let plan = definition.plan();
    let (by_plan, typed) = (plan.read(bytes, form), T::decode(bytes, form));
    let (message, (head, typed)) = match (by_plan, typed) {
        (Ok(message), Ok(typed)) => (message, typed),
        (Err(by_plan), Err(typed)) => {
            let shown = format!("{by_plan}\n{typed}\n{bytes:x?}");
            assert_eq!(Fault::of(&by_plan), Fault::of(&typed), "{shown}");
            // For the fixed part, only the definition's error names the field.
            if Fault::of(&typed) != Some(Fault::Truncated) {
                assert_eq!(by_plan.path_text(), typed.path_text(), "{shown}");
                assert_eq!(by_plan.offset(), typed.offset(), "{shown}");
            }
            return;
        }
        (by_plan, typed) => panic!("{}: {by_plan:?}\n{typed:?}\n{bytes:x?}", T::NAME),
    };
    assert_eq!(head, message.head());
    // Compared as text, since NaN is not equal to itself.
    let values = typed.value().unwrap();
    assert_eq!(format!("{values:?}"), format!("{:?}", message.fields()), "{}", T::NAME);
    let (mut found, mut wanted) = (vec![9], vec![9]);
    typed.encode(head, &mut found).unwrap();
    plan.encode(head, &values, &mut wanted).unwrap();
    assert_eq!(found, wanted, "{}", T::NAME);
}

fn agree_by_index(index: usize, definition: &Definition, bytes: &[u8], form: HeaderForm) {
    use generated::*;
    match index {
        0 => agree::<SEverythingV1<'_>>(definition, bytes, form),
        1 => agree::<CMixedV7<'_>>(definition, bytes, form),
        2 => agree::<SCountedV1<'_>>(definition, bytes, form),
        3 => agree::<SPiecesV3<'_>>(definition, bytes, form),
        4 => agree::<SPlacedV1<'_>>(definition, bytes, form),
        5 => agree::<CChangeEquipPresetV1>(definition, bytes, form),
        _ => panic!("no struct {index}"),
    }
}

/// Corrupts some bytes, mostly with a matching length.
fn corrupt(bytes: &mut Vec<u8>, sampler: &mut Sampler) {
    for _ in 0..=sampler.below(3) {
        let at = usize::try_from(sampler.below(bytes.len() as u64)).unwrap();
        match sampler.below(6) {
            0 => bytes[at] = u8::try_from(sampler.below(256)).unwrap(),
            1 => bytes[at] ^= 1 << sampler.below(8),
            2 => bytes.truncate(at.max(4)),
            3 => bytes.extend_from_slice(&[0, 1, 0, 0, 0][..1 + at % 5]),
            // Most words in a message are counts and offsets.
            4 if at + 1 < bytes.len() => {
                bytes[at] =
                    bytes[at].wrapping_add_signed(if sampler.below(2) == 0 { 2 } else { -2 });
            }
            _ => {
                let from = usize::try_from(sampler.below(bytes.len() as u64)).unwrap();
                bytes[at] = bytes[from];
            }
        }
    }
    if sampler.below(8) > 0 && bytes.len() >= 2 {
        let length = u16::try_from(bytes.len()).unwrap();
        bytes[..2].copy_from_slice(&length.to_le_bytes());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn structs_and_definitions_agree(seed: u64) {
        let sampler = &mut Sampler::new(seed);
        for (index, definition) in definitions().iter().enumerate() {
            let plan = definition.plan();
            for head in heads() {
                let values = plan.sample(sampler);
                let mut bytes = Vec::new();
                plan.encode(head, &values, &mut bytes).unwrap();
                agree_by_index(index, definition, &bytes, head.form());
                for end in 0..bytes.len() {
                    let mut piece = bytes[..end].to_vec();
                    if let Some(word) = piece.first_chunk_mut() {
                        *word = u16::try_from(end).unwrap().to_le_bytes();
                    }
                    agree_by_index(index, definition, &piece, head.form());
                }
                for _ in 0..64 {
                    let mut damaged = bytes.clone();
                    corrupt(&mut damaged, sampler);
                    agree_by_index(index, definition, &damaged, head.form());
                }
            }
        }
    }
}

/// Owned structs outlive the message and encode to the same bytes.
#[test]
fn owned_structs_keep_everything() {
    fn owned<T: Typed<'static>, F>(definition: &Definition, decode: F)
    where
        F: for<'d> Fn(&'d [u8]) -> (Head, T),
    {
        let plan = definition.plan();
        for seed in 0..8 {
            let mut bytes = Vec::new();
            let values = plan.sample(&mut Sampler::new(seed));
            plan.encode(Head::plain(7), &values, &mut bytes).unwrap();
            let (head, message) = decode(&bytes.clone());
            let mut again = Vec::new();
            message.encode(head, &mut again).unwrap();
            assert_eq!(again, bytes, "{}", T::NAME);
        }
    }
    macro_rules! check {
        ($($index:literal $name:ident),*) => {$(
            owned(&definitions()[$index], |bytes| {
                let (head, message) =
                    generated::$name::decode(bytes, HeaderForm::Plain).unwrap();
                (head, message.into_owned())
            });
        )*};
    }
    check!(0 SEverythingV1, 1 CMixedV7, 2 SCountedV1, 3 SPiecesV3, 4 SPlacedV1);
}

#[test]
fn decoding_errors_name_the_message() {
    let definition = &definitions()[2];
    let message = [6, 0, 1, 0, 0, 0];
    let by_plan = definition.plan().read(&message, HeaderForm::Plain).unwrap_err();
    let typed = generated::SCountedV1::decode(&message, HeaderForm::Plain).unwrap_err();
    for error in [by_plan, typed] {
        assert_eq!(error.subject(), Some("S_COUNTED.1"), "{error}");
        assert!(error.to_string().starts_with("S_COUNTED.1: "), "{error}");
    }
}

#[test]
fn missing_values_are_zero_or_empty() {
    macro_rules! check {
        ($($index:literal $name:ident),*) => {$(
            let definition = &definitions()[$index];
            let (mut found, mut wanted) = (Vec::new(), Vec::new());
            generated::$name::default().encode(Head::plain(1), &mut found).unwrap();
            definition.plan().encode(Head::plain(1), &Value::Absent, &mut wanted).unwrap();
            assert_eq!(found, wanted, "{}", stringify!($name));
        )*};
    }
    check!(0 SEverythingV1, 1 CMixedV7, 2 SCountedV1);
    check!(3 SPiecesV3, 4 SPlacedV1, 5 CChangeEquipPresetV1);
}

#[test]
fn unencodable_values_are_reported_and_leave_nothing_behind() {
    use generated::{SEverythingV1, SEverythingV1Value, SPiecesV3, SPlacedV1};
    use worldwire_tera::types::{Skill, Text};
    let mut out = vec![1, 2, 3];
    let refused = |outcome: worldwire_core::Result<()>, out: &[u8]| {
        assert_eq!(out, [1, 2, 3]);
        let error = outcome.unwrap_err();
        (Fault::of(&error), error.path_text())
    };
    let nul = SEverythingV1Value { u: Text::from("a\0"), ..SEverythingV1Value::default() };
    let message =
        SEverythingV1 { value_2: vec![SEverythingV1Value::default(), nul], ..Default::default() };
    let outcome = message.encode(Head::plain(1), &mut out);
    assert_eq!(refused(outcome, &out), (Some(Fault::StringContainsNul), "value[1].u".into()));

    let zone = Skill { npc: true, kind: 1, zone: 1024, id: 1, reserved: 0 };
    let message = SEverythingV1 { o: zone, ..Default::default() };
    let outcome = message.encode(Head::plain(1), &mut out);
    assert_eq!(refused(outcome, &out).1, "o.huntingZoneId");

    let message = SEverythingV1 { r: vec![0; 65_000].into(), ..Default::default() };
    message.encode(Head::plain(1), &mut Vec::new()).unwrap();
    let message = SEverythingV1 { r: vec![0; 65_500].into(), ..Default::default() };
    let outcome = message.encode(Head::plain(1), &mut out);
    assert_eq!(refused(outcome, &out).0, Some(Fault::MessageTooLong));

    let message = SPlacedV1 { lines: vec![Text::default(); 34], ..Default::default() };
    let outcome = message.encode(Head::plain(1), &mut out);
    assert_eq!(refused(outcome, &out), (Some(Fault::WrongKind), "lines".into()));

    // An earlier copy of a field takes the value of the last copy unless it has its own.
    let message = SPiecesV3 { twice: 7, twice_1: None, twice_2: Some(9), ..Default::default() };
    let mut bytes = Vec::new();
    message.encode(Head::plain(1), &mut bytes).unwrap();
    let again = SPiecesV3::decode(&bytes, HeaderForm::Plain).unwrap().1;
    assert_eq!((again.twice_1, again.twice_2, again.twice), (Some(7), Some(9), 7));
}
