//! Converts JSON to fixed-size values.

use core::ops::RangeInclusive;

use worldwire_core::json::{self, Json, Number};
use worldwire_core::{Error, Result};

use crate::message::Leniency;
use crate::message::fault::Fault;
use crate::message::value::Value;
use crate::types::angle::component_units;
use crate::types::scalar::CUSTOMIZE;
use crate::types::skill::PartTooBig;
use crate::types::{Angle, Scalar, Skill, SkillForm};

/// Converts JSON to a fixed-size value.
pub(crate) fn scalar_from_json(
    scalar: Scalar,
    json: &Json,
    leniency: Leniency,
) -> Result<Value<'static>> {
    let wanted = scalar.wanted();
    let unsigned = |max: u64| whole(json, 0..=max.into(), wanted, leniency).map(low64);
    let signed = |low: i64, high: i64| {
        let number = whole(json, low.into()..=high.into(), wanted, leniency);
        number.map(|number| low64(number).cast_signed())
    };
    Ok(match scalar {
        Scalar::Bool => match json {
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) if leniency == Leniency::Lenient => {
                Value::Bool(number.as_f64().is_some_and(|number| number != 0.0))
            }
            _ => Value::Bool(unsigned(1)? != 0),
        },
        Scalar::Byte => Value::Unsigned(unsigned(u8::MAX.into())?),
        Scalar::Uint16 => Value::Unsigned(unsigned(u16::MAX.into())?),
        Scalar::Uint32 => Value::Unsigned(unsigned(u32::MAX.into())?),
        Scalar::Uint64 => Value::Unsigned(unsigned(u64::MAX)?),
        Scalar::Int16 => Value::Signed(signed(i16::MIN.into(), i16::MAX.into())?),
        Scalar::Int32 => Value::Signed(signed(i32::MIN.into(), i32::MAX.into())?),
        Scalar::Int64 => Value::Signed(signed(i64::MIN, i64::MAX)?),
        Scalar::Float => Value::Float(float(json, leniency)?),
        Scalar::Double => Value::Double(double(json)?),
        Scalar::Angle => {
            let radians = double(json).map_err(|_| json::expected(wanted, json))?;
            let angle = Angle::from_radians(radians);
            Value::Angle(angle.ok_or_else(|| json::expected(wanted, json))?)
        }
        Scalar::Vec3 => Value::Vec3(three(json, (wanted, leniency), |json| float(json, leniency))?),
        Scalar::Vec3fa => {
            Value::Vec3fa(three(json, (wanted, leniency), |json| match json.get("units") {
                Some(units) => float(units, leniency).map_err(|error| error.inside("units")),
                None => match double(json)? {
                    radians if radians.is_finite() => Ok(component_units(radians)),
                    _ => Err(json::expected(Scalar::Angle.wanted(), json)),
                },
            })?)
        }
        Scalar::SkillId => Value::Skill(skill(json, SkillForm::Wide, leniency)?),
        Scalar::SkillId32 => Value::Skill(skill(json, SkillForm::Narrow, leniency)?),
        Scalar::Customize => match json {
            Json::Object(_) => {
                let mut looks = [0; 8];
                for (look, name) in looks.iter_mut().zip(CUSTOMIZE) {
                    if let Some(number) = part(json, name) {
                        let byte = Scalar::Byte.wanted();
                        let number = whole(number, 0..=u8::MAX.into(), byte, leniency);
                        *look = low8(number.map_err(|error| error.inside(name))?);
                    }
                }
                no_others(json, &CUSTOMIZE, leniency)?;
                Value::Customize(looks)
            }
            _ => Value::Customize(unsigned(u64::MAX)?.to_le_bytes()),
        },
    })
}

/// An integer in a range; if lenient, any number, truncated.
pub(super) fn whole(
    json: &Json,
    range: RangeInclusive<i128>,
    wanted: &'static str,
    leniency: Leniency,
) -> Result<i128> {
    let number = match json {
        Json::Number(number) if leniency == Leniency::Lenient || is_whole(number) => {
            truncated(number)
        }
        _ => json::integer(json, wanted)?,
    };
    if leniency == Leniency::Lenient || range.contains(&number) {
        Ok(number)
    } else {
        Err(json::expected(wanted, json).hint(Fault::ValueOutOfRange.name()))
    }
}

/// The low bytes of a number that has been checked, or that may wrap.
fn low64(number: i128) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = number.to_le_bytes();
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

pub(super) fn low32(number: i128) -> u32 {
    let [a, b, c, d, ..] = number.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

fn low16(number: i128) -> u16 {
    let [a, b, ..] = number.to_le_bytes();
    u16::from_le_bytes([a, b])
}

fn low8(number: i128) -> u8 {
    let [a, ..] = number.to_le_bytes();
    a
}

/// Whether a number such as `1.0` or `1e3` is exactly an integer.
fn is_whole(number: &Number) -> bool {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let float = number.as_f64().filter(|_| number.is_f64());
    float.is_some_and(|float| float.fract() == 0.0 && float.abs() <= EXACT)
}

/// A number truncated to an integer, as in JavaScript. For the largest numbers, all bits that a
/// field could hold are zero.
fn truncated(number: &Number) -> i128 {
    /// From here on, a double is a multiple of 2^64.
    const LARGE: f64 = (1_u128 << 117) as f64;
    let whole = number.as_u64().map(i128::from).or_else(|| number.as_i64().map(i128::from));
    #[expect(clippy::cast_possible_truncation, reason = "truncation is intended")]
    whole.unwrap_or_else(|| match number.as_f64() {
        Some(number) if number.abs() < LARGE => number as i128,
        _ => 0,
    })
}

/// Three components; a missing one is 0.
fn three(
    json: &Json,
    (wanted, leniency): (&'static str, Leniency),
    read: impl Fn(&Json) -> Result<f32>,
) -> Result<[f32; 3]> {
    if !json.is_object() {
        return Err(json::expected(wanted, json));
    }
    no_others(json, &["x", "y", "z"], leniency)?;
    let mut numbers = [0.0; 3];
    for (number, name) in numbers.iter_mut().zip(["x", "y", "z"]) {
        if let Some(json) = part(json, name) {
            *number = read(json).map_err(|error| error.inside(name))?;
        }
    }
    Ok(numbers)
}

/// A part of a value; `null` counts as missing.
fn part<'j>(json: &'j Json, name: &str) -> Option<&'j Json> {
    json.get(name).filter(|part| !part.is_null())
}

/// Rejects unknown parts unless lenient.
fn no_others(json: &Json, known: &[&'static str], leniency: Leniency) -> Result<()> {
    if leniency == Leniency::Lenient {
        return Ok(());
    }
    let keys = json.as_object().into_iter().flat_map(|object| object.keys());
    match keys.into_iter().find(|key| !known.contains(key)) {
        None => Ok(()),
        Some(extra) => Err(Fault::UnknownField.value(format!("\"{extra}\""))),
    }
}

fn skill(json: &Json, form: SkillForm, leniency: Leniency) -> Result<u64> {
    const PARTS: [&str; 5] = ["type", "npc", "huntingZoneId", "id", "reserved"];
    let wanted = Scalar::SkillId.wanted();
    let skill = match json {
        Json::Object(_) => {
            let number = |name: &'static str, max: u32, wanted: &'static str| {
                let number = part(json, name)
                    .map_or(Ok(0), |number| whole(number, 0..=u32::MAX.into(), wanted, leniency));
                let number = number.map_err(|error| error.inside(name))?;
                // A number too large for its type is also too large for the skill, and is rejected
                // there.
                Ok(if leniency == Leniency::Lenient { number } else { number.min(max.into()) })
            };
            no_others(json, &PARTS, leniency)?;
            Skill {
                reserved: low32(number(
                    "reserved",
                    u32::MAX,
                    "a whole number from 0 to 2147483647",
                )?),
                npc: match part(json, "npc") {
                    None => false,
                    Some(npc) => {
                        let value = scalar_from_json(Scalar::Bool, npc, leniency);
                        value.map_err(|error| error.inside("npc"))? == Value::Bool(true)
                    }
                },
                kind: low8(number("type", u8::MAX.into(), "a whole number from 0 to 15")?),
                zone: low16(number(
                    "huntingZoneId",
                    u16::MAX.into(),
                    "a whole number from 0 to 4095",
                )?),
                id: low32(number("id", u32::MAX, "a whole number from 0 to 268435455")?),
            }
        }
        Json::String(text) if !text.bytes().all(|byte| byte.is_ascii_digit()) => {
            text.parse().map_err(|_| json::expected("a skill such as A1101 or A500:1101", json))?
        }
        _ => Skill::action(low32(whole(json, 0..=u32::MAX.into(), wanted, leniency)?)),
    };
    if leniency == Leniency::Lenient {
        return Ok(skill.to_raw_wrapped(form));
    }
    skill.to_raw(form).map_err(|PartTooBig { part, max }| {
        let wanted = match max {
            0 => "0, because \"npc\" is false".to_owned(),
            max => format!("a whole number from 0 to {max}"),
        };
        let error = Error::value(wanted, "a larger one");
        error.inside(part).hint(Fault::ValueOutOfRange.name())
    })
}

/// A double. If it is not finite, it may be given as a word or as bits.
fn double(json: &Json) -> Result<f64> {
    let wanted = Scalar::Double.wanted();
    match json {
        Json::Number(number) => number.as_f64().ok_or_else(|| json::expected(wanted, json)),
        Json::String(text) => match (word(text), text.strip_prefix("0x")) {
            (Some(number), _) => Ok(number),
            (None, Some(bits)) if bits.len() == 16 => u64::from_str_radix(bits, 16)
                .map(f64::from_bits)
                .map_err(|_| json::expected(wanted, json)),
            _ => plain(text).ok_or_else(|| json::expected(wanted, json)),
        },
        _ => Err(json::expected(wanted, json)),
    }
}

/// A float: the nearest one to a number, or given as bits. A number that is too large does not
/// silently become infinite.
fn float(json: &Json, leniency: Leniency) -> Result<f32> {
    if let Json::String(text) = json
        && let Some(bits) = text.strip_prefix("0x")
        && bits.len() == 8
    {
        return u32::from_str_radix(bits, 16)
            .map(f32::from_bits)
            .map_err(|_| json::expected(Scalar::Float.wanted(), json));
    }
    let double = double(json)?;
    #[expect(clippy::cast_possible_truncation, reason = "rounds to the nearest float")]
    let float = double as f32;
    if leniency == Leniency::Strict && float.is_infinite() && double.is_finite() {
        let error = json::expected("a number of at most 3.4028235e38", json);
        return Err(error.hint(Fault::ValueOutOfRange.name()));
    }
    Ok(float)
}

fn word(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// A number in a text, excluding the words above.
fn plain(text: &str) -> Option<f64> {
    let digits = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E');
    if text.chars().all(digits) { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::HeaderForm;
    use crate::schema::Definition;
    use worldwire_core::json::{Style, json};
    use worldwire_core::testing::render;
    use worldwire_core::{Reader, Tree};

    /// The encoded message after the header, for a definition given as text.
    fn encoded(text: &str, json: Json, leniency: Leniency) -> Result<Vec<u8>> {
        let definition = Definition::of_text(text);
        let mut bytes = Vec::new();
        let plan = definition.plan();
        plan.encode_json(1, HeaderForm::Plain, &json, leniency, &mut bytes)?;
        Ok(bytes.split_off(4))
    }

    #[test]
    fn a_hunting_zone_without_a_monster_is_rejected() {
        for (skill, wanted) in [
            (json!({ "type": 1, "huntingZoneId": 500, "id": 1101 }), "0, because \"npc\""),
            (
                json!({ "type": 1, "npc": true, "huntingZoneId": 99_999, "id": 5 }),
                "a whole number from 0 to 4095",
            ),
        ] {
            let json = json!({ "a": skill });
            let error = encoded("skillid a\n", json.clone(), Leniency::Strict).unwrap_err();
            let wanted = format!("a.huntingZoneId: wanted {wanted}");
            assert!(error.to_string().contains(&wanted), "{error}");
            assert!(encoded("skillid a\n", json, Leniency::Lenient).is_ok());
        }
    }

    #[test]
    fn floats_that_overflow_and_infinite_angles_are_rejected() {
        let infinity = f32::INFINITY.to_le_bytes();
        let large = json!({ "a": 1e39 });
        let error = encoded("float a\n", large.clone(), Leniency::Strict).unwrap_err();
        assert!(error.to_string().contains("value_out_of_range"), "{error}");
        assert_eq!(encoded("float a\n", large, Leniency::Lenient).unwrap(), infinity);
        let meant = json!({ "a": "Infinity" });
        assert_eq!(encoded("float a\n", meant.clone(), Leniency::Strict).unwrap(), infinity);
        let place = json!({ "a": { "x": 1e39 } });
        assert!(encoded("vec3 a\n", place, Leniency::Strict).is_err());
        let angles = json!({ "a": { "y": "Infinity" } });
        let error = encoded("vec3fa a\n", angles, Leniency::Strict).unwrap_err().to_string();
        assert!(error.contains("a.y: wanted an angle in radians"), "{error}");
        let units = json!({ "a": { "y": { "units": "Infinity" } } });
        let bytes = encoded("vec3fa a\n", units, Leniency::Strict).unwrap();
        assert_eq!(bytes.get(4..8), Some(&infinity[..]));
    }

    #[test]
    fn components_that_are_nan_keep_their_bits() {
        let text = "vec3fa w\nvec3 v\nfloat f\n";
        let definition = Definition::of_text(text);
        let plan = definition.plan();
        let odd =
            [0x7fc0_0000_u32, 0xffc0_0000, 0xffff_ffff, 0x7fc0_0001, 0x7f80_0001, 0x7f80_0000];
        for bits in odd {
            let mut bytes = vec![32, 0, 1, 0];
            bytes.extend(bits.to_le_bytes().repeat(7));
            let mut reader = Reader::traced("message", &bytes, Tree::new());
            plan.decode(&mut reader, HeaderForm::Plain).unwrap();
            let tree = reader.finish();
            assert!(tree.find("w.x.units").is_some(), "{bits:08x}");
            let json = render(&tree, Style::default());
            let mut again = Vec::new();
            plan.encode_json(1, HeaderForm::Plain, &json, Leniency::Strict, &mut again).unwrap();
            assert_eq!(again, bytes, "{json}");
        }
    }

    #[test]
    fn a_bool_is_true_false_0_or_1() {
        for (json, wanted) in [(json!(true), 1), (json!(0), 0), (json!(1), 1), (json!("1"), 1)] {
            let bytes = encoded("bool a\n", json!({ "a": json }), Leniency::Strict).unwrap();
            assert_eq!(bytes, [wanted]);
        }
        for odd in [json!(4_294_967_296_u64), json!(-1), json!("-1"), json!(2), json!(0.5)] {
            let json = json!({ "a": odd });
            let error = encoded("bool a\n", json.clone(), Leniency::Strict).unwrap_err();
            assert!(error.to_string().contains("a: wanted true or false"), "{error}");
        }
        let large = json!({ "a": 4_294_967_296_u64 });
        assert_eq!(encoded("bool a\n", large, Leniency::Lenient).unwrap(), [1]);
    }

    #[test]
    fn integers_may_have_a_decimal_point() {
        let whole = |text: &str| {
            let json = format!("{{\"a\": {text}}}");
            encoded("int32 a\n", serde_json::from_str(&json).unwrap(), Leniency::Strict)
        };
        assert_eq!(whole("1.0").unwrap(), [1, 0, 0, 0]);
        assert_eq!(whole("-1e3").unwrap(), (-1000_i32).to_le_bytes());
        for odd in ["1.5", "3e9", "1e300"] {
            assert!(whole(odd).is_err(), "{odd}");
        }
    }

    /// The output of toolbox for numbers that are not integers, and for skills that do not fit.
    #[test]
    fn lenient_numbers_are_truncated() {
        let text = "int32 a\nint32 b\nbyte c\nskillid32 d\nskillid32 e\n";
        let definition = Definition::of_text(text);
        let json = json!({
            "a": 1.75, "b": -1.75, "c": 256.5, "d": 0x1400_0005,
            "e": { "type": 17, "npc": true, "huntingZoneId": 1025, "id": 65537 },
        });
        let mut bytes = Vec::new();
        let plan = definition.plan();
        let mut encode = |leniency| {
            bytes.clear();
            plan.encode_json(1, HeaderForm::Plain, &json, leniency, &mut bytes)
                .map(|()| bytes.clone())
        };
        assert!(encode(Leniency::Strict).is_err());
        let wanted =
            [21, 0, 1, 0, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 5, 0, 0, 4, 1, 0, 1, 0x44];
        assert_eq!(encode(Leniency::Lenient).unwrap(), wanted);
    }

    #[test]
    fn null_parts_are_missing() {
        let text = "vec3 a\nvec3fa b\nskillid32 c\ncustomize d\n";
        let json = json!({
            "a": { "x": null }, "b": { "y": null }, "c": { "id": null, "npc": null },
            "d": { "unk": null },
        });
        assert_eq!(encoded(text, json, Leniency::Strict).unwrap(), [0; 36]);
    }

    /// As in JavaScript.
    #[test]
    fn lenient_numbers_that_overflow_keep_their_low_bits() {
        let number = |text: &str, number: &str| {
            let json = format!("{{\"a\": {number}}}");
            encoded(text, serde_json::from_str(&json).unwrap(), Leniency::Lenient).unwrap()
        };
        assert_eq!(number("byte a\n", "1e300"), [0]);
        assert_eq!(number("int16 a\n", "-1e300"), [0, 0]);
        // 2^64 + 2^20.
        assert_eq!(number("uint32 a\n", "18446744073710600192.0"), (1_u32 << 20).to_le_bytes());
        for truth in ["1.0", "0.5", "-1", "1e300"] {
            assert_eq!(number("bool a\n", truth), [1], "{truth}");
        }
        for lie in ["0", "-0.0", "0.0"] {
            assert_eq!(number("bool a\n", lie), [0], "{lie}");
        }
    }

    #[test]
    fn lenient_parts_wrap() {
        let text = "customize a\ncustomize b\nskillid32 c\n";
        let json = json!({
            "a": { "unk": 257, "skinColor": -1, "faceStyle": 2.75, "beard": 3 }, "b": -1,
            "c": { "type": 300, "npc": true, "huntingZoneId": 70_001, "id": 4_294_967_301_u64 },
        });
        assert!(encoded(text, json.clone(), Leniency::Strict).is_err());
        let wanted = [
            1, 0xff, 2, 0, 0, 0, 0, 0, // bytes
            0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, // eight of them
            5, 0, 0, 0x70, // type 12 and no zone
        ];
        assert_eq!(encoded(text, json, Leniency::Lenient).unwrap(), wanted);
    }
}
