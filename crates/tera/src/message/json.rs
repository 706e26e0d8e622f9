//! JSON to values: the inverse of showing a decoded tree as JSON.
//!
//! | type | JSON |
//! | --- | --- |
//! | `bool` | `true`, `false`, or a number |
//! | whole numbers | a number, or a string that holds one |
//! | `float`, `double` | a number; `"NaN"`, `"Infinity"`, `"-Infinity"`, `"-0"`, `"0x7fc00001"` |
//! | `angle` | radians |
//! | `vec3` | `{"x": 1.0, "y": 2.0, "z": 3.0}` |
//! | `vec3fa` | the same in radians; a component that is no whole number of units `{"units": 0.5}` |
//! | `skillid` | `{"type": 1, "npc": false, "huntingZoneId": 0, "id": 1101, "reserved": 0}`, a bare id, or `"A500:1101"` |
//! | `customize` | an object of its eight looks, or one number |
//! | `string` | a string; `{"$hex": ...}` with UTF-16LE where it is not valid Unicode |
//! | `bytes` | `{"$hex": "00ff"}` |
//! | `array`, rows | an array |
//! | `object` | an object |
//!
//! A field that is missing is zero or empty. Besides its fields a message has these keys, all of
//! them optional:
//!
//! | key | |
//! | --- | --- |
//! | `$integrity` | counter and checksum of the header |
//! | `$notes` | what was odd; not read |
//! | `$system` | what earlier versions showed beside a system message; not read |
//! | `$trailing` | bytes behind the last body; written again |
//! | `$original` | the whole message, when its fields alone would encode to other bytes; written as it is as long as the fields are still the same |

use core::ops::Range;

use worldwire_core::json::{self, Given, Json, Number};
use worldwire_core::{Error, Result, nearest};

use super::fault::Fault;
use super::value::Value;
use super::{Head, HeaderForm, Integrity, Leniency};
use crate::schema::plan::{Field, FieldKind, Plan, Scope};
use crate::types::angle::component_units;
use crate::types::scalar::CUSTOMIZE;
use crate::types::skill::PartTooBig;
use crate::types::{Angle, Scalar, Skill, SkillForm, Text};

/// The keys of a message that are no fields.
const EXTRAS: [&str; 5] = ["$integrity", "$notes", "$system", "$trailing", "$original"];

impl Plan {
    /// Reads the fields of a message.
    ///
    /// # Errors
    /// Value, with the path of the field.
    pub fn value_from_json(&self, json: &Json, leniency: Leniency) -> Result<Value<'static>> {
        self.value_from(json.into(), leniency)
    }

    fn value_from(&self, json: Given<'_>, leniency: Leniency) -> Result<Value<'static>> {
        let reader = FromJson { plan: self, leniency, given: json };
        reader.record(&self.scope(self.root).fields, json.json(), &EXTRAS)
    }

    /// Appends the message that a JSON text describes to `out`. Fields that were opened need what
    /// [`Given`] knows.
    ///
    /// # Errors
    /// Value, with the path of the field; `out` is as it was then.
    pub fn encode_json<'j>(
        &self,
        opcode: u16,
        form: HeaderForm,
        json: impl Into<Given<'j>>,
        leniency: Leniency,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let json = json.into();
        let fields = self.value_from(json, leniency)?;
        let extra = |key: &str| json.get(key).filter(|value| !value.is_null());
        let integrity = match form {
            HeaderForm::Plain => None,
            HeaderForm::Integrity => Some(integrity(extra("$integrity"))?),
        };
        let head = Head { opcode, integrity };
        let start = out.len();
        self.encode_with(head, &fields, leniency, out)?;
        if let Some(original) = extra("$original") {
            let original = json::bytes(original).map_err(|error| error.inside("$original"))?;
            // It counts as long as it says the same, but for its opcode and its header.
            let mut again = Vec::new();
            let same = self.read(&original, form).is_ok_and(|read| {
                let canonical = self.encode_with(head, read.fields(), leniency, &mut again);
                canonical.is_ok() && out.get(start..) == Some(&again)
            });
            if same {
                out.truncate(start);
                out.extend_from_slice(&original);
                super::rewrite_head(head, out.get_mut(start..).unwrap_or_default());
                return Ok(());
            }
        }
        if let Some(trailing) = extra("$trailing") {
            let outcome = json::bytes(trailing)
                .map_err(|error| error.inside("$trailing"))
                .and_then(|bytes| super::append_trailing(&bytes, start, out));
            if let Err(error) = outcome {
                out.truncate(start);
                return Err(error);
            }
        }
        Ok(())
    }
}

fn integrity(json: Option<&Json>) -> Result<Integrity> {
    let part = |key: &str| match json.and_then(|json| json.get(key)) {
        None => Ok(0),
        Some(number) => json::integer(number, Scalar::Uint32.wanted())
            .map_err(|error| error.inside(key).inside("$integrity")),
    };
    Ok(Integrity { counter: part("counter")?, checksum: part("checksum")? })
}

struct FromJson<'p> {
    plan: &'p Plan,
    leniency: Leniency,
    /// What it takes to encode fields that were opened.
    given: Given<'p>,
}

impl FromJson<'_> {
    fn record(&self, range: &Range<u32>, json: &Json, extras: &[&str]) -> Result<Value<'static>> {
        let Json::Object(object) = json else {
            return match json {
                Json::Null => Ok(Value::Absent),
                _ => Err(json::expected("an object", json)),
            };
        };
        let fields = self.plan.fields_of(range);
        let mut known = 0;
        let mut values = Vec::with_capacity(fields.len());
        for field in fields {
            let Some(json) = object.get(field.name()) else {
                values.push(Value::Absent);
                continue;
            };
            known += 1;
            let value = self.field(field, json);
            values.push(value.map_err(|error| error.inside(field.name()))?);
        }
        if known < object.len() && self.leniency == Leniency::Strict {
            let names = || fields.iter().map(Field::name);
            let extra = object
                .keys()
                .find(|key| !extras.contains(key) && !names().any(|name| name == *key));
            if let Some(extra) = extra {
                let error = Error::value("a known field", format!("\"{extra}\""));
                return Err(match nearest(extra, names()) {
                    Some(name) => error.hint(format!("did you mean \"{name}\"?")),
                    None => error,
                });
            }
        }
        Ok(Value::Record(values))
    }

    fn field(&self, field: &Field, json: &Json) -> Result<Value<'static>> {
        if json.is_null() {
            return Ok(Value::Absent);
        }
        match field.kind() {
            FieldKind::Scalar { scalar, .. } => scalar_from_json(*scalar, json, self.leniency),
            FieldKind::Text { .. } => {
                let units = self.given.field(field.name(), json).blob(|json| {
                    json::text(json, |text| {
                        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
                    })
                })?;
                if units.len() % 2 == 1 {
                    return Err(json::expected("whole UTF-16 units", json));
                }
                Ok(Value::Text(Text::from_bytes(units)))
            }
            FieldKind::Bytes { .. } => json::bytes(json).map(|bytes| Value::Bytes(bytes.into())),
            FieldKind::Array { scope, .. } => {
                let scope = self.plan.scope(*scope);
                let Json::Array(items) = json else {
                    return Err(json::expected("an array", json));
                };
                let item = |(index, item): (usize, &Json)| {
                    self.element(scope, item).map_err(|error| error.inside_item(index))
                };
                Ok(Value::List(items.iter().enumerate().map(item).collect::<Result<_>>()?))
            }
            FieldKind::Object(range) => self.record(range, json, &[]),
            FieldKind::Row(range) => {
                let fields = self.plan.fields_of(range);
                let items = json.as_array().filter(|items| items.len() <= fields.len());
                let Some(items) = items else {
                    let wanted = format!("an array of {} values", fields.len());
                    return Err(json::expected(wanted, json));
                };
                let values = fields.iter().zip(items).enumerate().map(|(index, (field, item))| {
                    self.field(field, item).map_err(|error| error.inside_item(index))
                });
                Ok(Value::List(values.collect::<Result<_>>()?))
            }
        }
    }

    fn element(&self, scope: &Scope, json: &Json) -> Result<Value<'static>> {
        if !scope.single {
            return self.record(&scope.fields, json, &[]);
        }
        match self.plan.fields_of(&scope.fields).first() {
            Some(field) => self.field(field, json),
            None => Ok(Value::Absent),
        }
    }
}

/// Reads a value of fixed size.
pub(crate) fn scalar_from_json(
    scalar: Scalar,
    json: &Json,
    leniency: Leniency,
) -> Result<Value<'static>> {
    let wanted = scalar.wanted();
    let whole = |low: i128, high: i128| -> Result<i128> {
        let number: i128 = match json {
            Json::Number(number) if leniency == Leniency::Lenient || is_whole(number) => {
                truncated(number)
            }
            _ => json::integer(json, wanted)?,
        };
        if leniency == Leniency::Lenient || (low..=high).contains(&number) {
            Ok(number)
        } else {
            Err(json::expected(wanted, json).hint(Fault::ValueOutOfRange.name()))
        }
    };
    // Checked just before, or to be wrapped.
    let low_half = |number: i128| {
        let [a, b, c, d, e, f, g, h, ..] = number.to_le_bytes();
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    };
    let unsigned = |most: u64| whole(0, most.into()).map(low_half);
    let signed = |low: i64, high: i64| {
        whole(low.into(), high.into()).map(|number| low_half(number).cast_signed())
    };
    Ok(match scalar {
        Scalar::Bool => match json {
            Json::Bool(value) => Value::Bool(*value),
            _ if leniency == Leniency::Lenient => {
                Value::Bool(json::integer::<i128>(json, wanted)? != 0)
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
        Scalar::Vec3 => Value::Vec3(three(json, wanted, |json| float(json, leniency))?),
        Scalar::Vec3fa => Value::Vec3fa(three(json, wanted, |json| match json.get("units") {
            Some(units) => float(units, leniency).map_err(|error| error.inside("units")),
            None => match double(json)? {
                radians if radians.is_finite() => Ok(component_units(radians)),
                _ => Err(json::expected(Scalar::Angle.wanted(), json)),
            },
        })?),
        Scalar::SkillId => Value::Skill(skill(json, SkillForm::Wide, leniency)?),
        Scalar::SkillId32 => Value::Skill(skill(json, SkillForm::Narrow, leniency)?),
        Scalar::Customize => match json {
            Json::Object(_) => {
                let mut looks = [0; 8];
                for (look, name) in looks.iter_mut().zip(CUSTOMIZE) {
                    if let Some(number) = json.get(name) {
                        *look = json::integer(number, Scalar::Byte.wanted())
                            .map_err(|error| error.inside(name))?;
                    }
                }
                no_others(json, &CUSTOMIZE)?;
                Value::Customize(looks)
            }
            _ => Value::Customize(json::integer::<u64>(json, wanted)?.to_le_bytes()),
        },
    })
}

/// Whether a number such as `1.0` or `1e3` is a whole one, exactly.
fn is_whole(number: &Number) -> bool {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let float = number.as_f64().filter(|_| number.is_f64());
    float.is_some_and(|float| float.fract() == 0.0 && float.abs() <= EXACT)
}

/// A number without what stands behind its point, as JavaScript makes a whole number of it.
fn truncated(number: &Number) -> i128 {
    let whole = number.as_u64().map(i128::from).or_else(|| number.as_i64().map(i128::from));
    #[expect(clippy::cast_possible_truncation, reason = "that is what is wanted")]
    whole.unwrap_or_else(|| number.as_f64().map_or(0, |number| number as i128))
}

/// Three components, each 0 when it is missing.
fn three(
    json: &Json,
    wanted: &'static str,
    read: impl Fn(&Json) -> Result<f32>,
) -> Result<[f32; 3]> {
    if !json.is_object() {
        return Err(json::expected(wanted, json));
    }
    let mut numbers = [0.0; 3];
    for (number, name) in numbers.iter_mut().zip(["x", "y", "z"]) {
        if let Some(json) = json.get(name) {
            *number = read(json).map_err(|error| error.inside(name))?;
        }
    }
    no_others(json, &["x", "y", "z"])?;
    Ok(numbers)
}

fn no_others(json: &Json, known: &[&'static str]) -> Result<()> {
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
        Json::Object(parts) => {
            let part = |name: &'static str, most: &'static str| match parts.get(name) {
                None => Ok(0_u32),
                Some(number) => json::integer(number, most).map_err(|error| error.inside(name)),
            };
            no_others(json, &PARTS)?;
            Skill {
                reserved: part("reserved", "a whole number from 0 to 2147483647")?,
                npc: match parts.get("npc") {
                    None => false,
                    Some(npc) => {
                        let value = scalar_from_json(Scalar::Bool, npc, Leniency::Strict);
                        value.map_err(|error| error.inside("npc"))? == Value::Bool(true)
                    }
                },
                kind: u8::try_from(part("type", "a whole number from 0 to 15")?).unwrap_or(u8::MAX),
                zone: u16::try_from(part("huntingZoneId", "a whole number from 0 to 4095")?)
                    .unwrap_or(u16::MAX),
                id: part("id", "a whole number from 0 to 268435455")?,
            }
        }
        Json::String(text) if !text.bytes().all(|byte| byte.is_ascii_digit()) => {
            text.parse().map_err(|_| json::expected("a skill such as A1101 or A500:1101", json))?
        }
        Json::Number(number) if leniency == Leniency::Lenient => {
            let [a, b, c, d, ..] = truncated(number).to_le_bytes();
            Skill::action(u32::from_le_bytes([a, b, c, d]))
        }
        _ => Skill::action(json::integer(json, wanted)?),
    };
    if leniency == Leniency::Lenient {
        return Ok(skill.to_raw_wrapped(form));
    }
    skill.to_raw(form).map_err(|PartTooBig { part, most }| {
        let wanted = match most {
            0 => "0, as \"npc\" is false".to_owned(),
            most => format!("a whole number from 0 to {most}"),
        };
        let error = Error::value(wanted, "a larger one");
        error.inside(part).hint(Fault::ValueOutOfRange.name())
    })
}

/// A double; also the words and bits that stand for what is no plain number.
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

/// A float: the nearest one to a number, or given by its bits. A number that is too large is
/// infinite only if that is meant.
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

/// A number in a text; no other words than those above.
fn plain(text: &str) -> Option<f64> {
    let digits = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E');
    if text.chars().all(digits) { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Definition, FileName, ParseOptions};
    use worldwire_core::json::{Style, json};
    use worldwire_core::testing::render;
    use worldwire_core::{Reader, Tree};

    /// The bytes of a message whose definition is `text`, behind the header.
    fn encoded(text: &str, json: Json, leniency: Leniency) -> Result<Vec<u8>> {
        let file = FileName::parse("S_A.1.def").unwrap();
        let definition = Definition::parse(&file, text, &ParseOptions::default()).unwrap();
        let mut bytes = Vec::new();
        let plan = definition.plan();
        plan.encode_json(1, HeaderForm::Plain, &json, leniency, &mut bytes)?;
        Ok(bytes.split_off(4))
    }

    #[test]
    fn a_hunting_zone_without_a_monster_is_refused() {
        for (skill, wanted) in [
            (json!({ "type": 1, "huntingZoneId": 500, "id": 1101 }), "0, as \"npc\""),
            (
                json!({ "type": 2, "npc": true, "huntingZoneId": 99_999, "id": 5 }),
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
    fn numbers_that_are_too_large_or_no_angles_are_refused() {
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
    fn components_that_are_no_numbers_keep_their_bits() {
        let file = FileName::parse("S_A.1.def").unwrap();
        let text = "vec3fa w\nvec3 v\nfloat f\n";
        let definition = Definition::parse(&file, text, &ParseOptions::default()).unwrap();
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
    fn whole_numbers_may_have_a_point() {
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

    /// What toolbox writes for numbers that are no whole ones, and for skills that are too large.
    #[test]
    fn lenient_numbers_are_truncated() {
        let file = FileName::parse("S_A.1.def").unwrap();
        let text = "int32 a\nint32 b\nbyte c\nskillid32 d\nskillid32 e\n";
        let definition = Definition::parse(&file, text, &ParseOptions::default()).unwrap();
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
}
