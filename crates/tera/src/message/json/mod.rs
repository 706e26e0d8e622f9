//! Converts JSON to values, the inverse of printing a decoded tree as JSON.
//!
//! | type | JSON |
//! | --- | --- |
//! | `bool` | `true`, `false`, or a number |
//! | integers | a number, or a string that holds one |
//! | `float`, `double` | a number; `"NaN"`, `"Infinity"`, `"-Infinity"`, `"-0"`, `"0x7fc00001"` |
//! | `angle` | radians |
//! | `vec3` | `{"x": 1.0, "y": 2.0, "z": 3.0}` |
//! | `vec3fa` | the same in radians; a component that is not a whole number of units is `{"units": 0.5}` |
//! | `skillid` | `{"type": 1, "npc": false, "huntingZoneId": 0, "id": 1101, "reserved": 0}`, a bare ID, or `"A500:1101"` |
//! | `customize` | an object with its eight features, or one number |
//! | `string` | a string; `{"$hex": ...}` with UTF-16LE if it is not valid Unicode |
//! | `bytes` | `{"$hex": "00ff"}` |
//! | `array`, rows | an array |
//! | `object` | an object |
//!
//! A missing or `null` field or part is zero or empty. Besides its fields, a message can have these
//! keys:
//!
//! | key | |
//! | --- | --- |
//! | `$integrity` | counter and checksum of the header |
//! | `$notes` | deviations from canonical form; ignored |
//! | `$system` | printed by earlier versions for system messages; ignored |
//! | `$trailing` | bytes after the last body; appended again |
//! | `$original` | the whole message, if its fields alone would encode to different bytes; used verbatim if the fields, and `$trailing` if present, are unchanged |

mod scalar;

use core::ops::Range;

use worldwire_core::json::{self, Given, Json};
use worldwire_core::{Error, Result, nearest};

use super::value::Value;
use super::{Head, HeaderForm, Integrity, Leniency};
use crate::schema::plan::{Field, FieldKind, Plan, Scope};
use crate::types::{Scalar, Text};
use scalar::{low32, scalar_from_json, whole};

/// The keys of a message that are not fields.
const EXTRAS: [&str; 5] = ["$integrity", "$notes", "$system", "$trailing", "$original"];

impl Plan {
    /// Converts the fields of a message.
    pub fn value_from_json<'j>(
        &self,
        json: impl Into<Given<'j>>,
        leniency: Leniency,
    ) -> Result<Value<'static>> {
        let given = json.into();
        let reader = FromJson { plan: self, leniency, given };
        reader.record(&self.scope(self.root).fields, given.json(), &EXTRAS)
    }

    /// Appends the message that a JSON text describes to `out`. Fields decoded by an opener need
    /// the knowledge in [`Given`].
    ///
    /// # Errors
    /// `Value`, with the path of the field; `out` is left unchanged.
    pub fn encode_json<'j>(
        &self,
        opcode: u16,
        form: HeaderForm,
        json: impl Into<Given<'j>>,
        leniency: Leniency,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let json = json.into();
        let fields = self.value_from_json(json, leniency)?;
        let extra = |key: &str| json.get(key).filter(|value| !value.is_null());
        let integrity = match form {
            HeaderForm::Plain => None,
            HeaderForm::Integrity => Some(integrity(extra("$integrity"), leniency)?),
        };
        let trailing = extra("$trailing")
            .map(|json| json::bytes(json).map_err(|error| error.inside("$trailing")));
        let trailing = trailing.transpose()?;
        let head = Head { opcode, integrity };
        let start = out.len();
        self.encode_with(head, &fields, leniency, out)?;
        if let Some(original) = extra("$original") {
            let original = json::bytes(original).map_err(|error| {
                out.truncate(start);
                error.inside("$original")
            })?;
            // The original is used only if its fields are unchanged; opcode and header may differ.
            let mut again = Vec::new();
            let same = self.read(&original, form).is_ok_and(|read| {
                let canonical = self.encode_with(head, read.fields(), leniency, &mut again);
                let end = trailing.as_deref().is_none_or(|trailing| trailing == read.trailing());
                canonical.is_ok() && out.get(start..) == Some(&again) && end
            });
            if same {
                out.truncate(start);
                out.extend_from_slice(&original);
                head.put(out.get_mut(start..).unwrap_or_default());
                return Ok(());
            }
        }
        match trailing {
            Some(bytes) => {
                super::append_trailing(&bytes, start, out).inspect_err(|_| out.truncate(start))
            }
            None => Ok(()),
        }
    }
}

fn integrity(json: Option<&Json>, leniency: Leniency) -> Result<Integrity> {
    if let Some(json) = json.filter(|json| !json.is_object()) {
        return Err(json::expected("an object", json).inside("$integrity"));
    }
    let number = |key: &str| json.and_then(|json| json.get(key)).filter(|json| !json.is_null());
    let part = |key: &str, without: u32| match number(key) {
        None => Ok(without),
        Some(number) => whole(number, 0..=u32::MAX.into(), Scalar::Uint32.wanted(), leniency)
            .map(low32)
            .map_err(|error| error.inside(key).inside("$integrity")),
    };
    // No client sends the counter 0.
    Ok(Integrity { counter: part("counter", 1)?, checksum: part("checksum", 0)? })
}

struct FromJson<'p> {
    plan: &'p Plan,
    leniency: Leniency,
    /// Needed to encode fields that an opener decoded.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Definition;
    use worldwire_core::json::json;

    #[test]
    fn an_error_appends_nothing() {
        let definition = Definition::of_text("int32 a\n");
        for odd in [
            json!({ "a": "one" }),
            json!({ "b": 1 }),
            json!({ "$trailing": 1 }),
            json!({ "$original": { "$hex": "0g" } }),
        ] {
            let mut out = vec![1, 2, 3];
            let plan = definition.plan();
            let outcome = plan.encode_json(1, HeaderForm::Plain, &odd, Leniency::Strict, &mut out);
            assert!(outcome.is_err(), "{odd}");
            assert_eq!(out, [1, 2, 3], "{odd}");
        }
    }

    #[test]
    fn a_header_is_an_object_or_missing() {
        let definition = Definition::of_text("byte a\n");
        for (header, good) in [
            (json!({}), true),
            (json!(null), true),
            (json!({ "counter": null }), true),
            (json!(5), false),
            (json!([]), false),
        ] {
            let json = json!({ "$integrity": header });
            let plan = definition.plan();
            let mut out = Vec::new();
            let outcome =
                plan.encode_json(1, HeaderForm::Integrity, &json, Leniency::Strict, &mut out);
            assert_eq!(outcome.is_ok(), good, "{json}");
        }
    }

    /// The message has a boolean that is neither 0 nor 1, and a trailing byte.
    #[test]
    fn the_original_is_used_if_its_end_is_unchanged() {
        let definition = Definition::of_text("bool a\n");
        let encoded = |trailing: Json| {
            let original = json!({ "$hex": "060001000207" });
            let json = json!({ "a": true, "$trailing": trailing, "$original": original });
            let (plan, mut out) = (definition.plan(), Vec::new());
            plan.encode_json(1, HeaderForm::Plain, &json, Leniency::Strict, &mut out).unwrap();
            out
        };
        assert_eq!(encoded(json!({ "$hex": "07" })), [6, 0, 1, 0, 2, 7]);
        assert_eq!(encoded(json!(null)), [6, 0, 1, 0, 2, 7]);
        assert_eq!(encoded(json!({ "$hex": "0809" })), [7, 0, 1, 0, 1, 8, 9]);
        assert_eq!(encoded(json!({ "$hex": "" })), [5, 0, 1, 0, 1]);
    }

    #[test]
    fn lenient_headers_wrap() {
        let definition = Definition::of_text("byte a\n");
        let json = json!({ "$integrity": { "counter": 4_294_967_297_u64, "checksum": -1.5 } });
        let mut out = Vec::new();
        let mut encode = |leniency| {
            let plan = definition.plan();
            plan.encode_json(1, HeaderForm::Integrity, &json, leniency, &mut out)
        };
        let error = encode(Leniency::Strict).unwrap_err().to_string();
        assert!(error.contains("$integrity.counter: wanted a whole number"), "{error}");
        encode(Leniency::Lenient).unwrap();
        assert_eq!(out, [13, 0, 1, 0, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0]);
    }
}
