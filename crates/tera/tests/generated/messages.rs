// Made by worldwire from message definitions. Changes are lost when it is made again.

use std::borrow::Cow;

use worldwire_core::Result;
use worldwire_tera::message::Value;
use worldwire_tera::message::typed::{Input, Output, Typed, floats, narrow, pairs, part, put, put_floats, row, wide, word};
use worldwire_tera::types::{Angle, Skill, SkillForm, Text};

/// `S_EVERYTHING`, version 1.
///
/// | field | type |
/// | --- | --- |
/// | `type` | `bool` |
/// | `self` | `byte` |
/// | `Self` | `int16` |
/// | `input` | `uint16` |
/// | `start` | `int32` |
/// | `gameId` | `uint32` |
/// | `game_id` | `int64` |
/// | `_` | `uint64` |
/// | `__` | `float` |
/// | `f0` | `double` |
/// | `fixed0` | `angle` |
/// | `Value` | `vec3` |
/// | `error` | `vec3fa` |
/// | `index` | `skillid` |
/// | `o` | `skillid32` |
/// | `at0` | `customize` |
/// | `output` | `int32` |
/// | `Ok` | `string` |
/// | `r` | `bytes` |
/// | `value` | `array` |
/// | `Value2` | `array` |
/// | `match` | `object` |
/// | `flags` | `array<bool>` |
/// | `skills` | `array<skillid>` |
/// | `angles` | `array<angle>` |
/// | `turns` | `array<vec3fa>` |
/// | `looks` | `array<customize>` |
/// | `words` | `array<string>` |
/// | `nothing` | `object` |
/// | `void` | `array` |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SEverythingV1<'d> {
    /// `bool`.
    pub type_: bool,
    /// `byte`.
    pub self_: u8,
    /// `int16`.
    pub self_2: i16,
    /// `uint16`.
    pub input: u16,
    /// `int32`.
    pub start: i32,
    /// `uint32`.
    pub game_id: u32,
    /// `int64`.
    pub game_id_2: i64,
    /// `uint64`.
    pub field: u64,
    /// `float`.
    pub field_2: f32,
    /// `double`.
    pub f0: f64,
    /// `angle`.
    pub fixed0: Angle,
    /// `vec3`.
    pub value: [f32; 3],
    /// `vec3fa`.
    pub error: [f32; 3],
    /// `skillid`.
    pub index: Skill,
    /// `skillid32`.
    pub o: Skill,
    /// `customize`.
    pub at0: [u8; 8],
    /// `int32`.
    pub output: i32,
    /// `string`.
    pub ok: Text<'d>,
    /// `bytes`.
    pub r: Cow<'d, [u8]>,
    /// `array`.
    pub value_2: Vec<SEverythingV1Value<'d>>,
    /// `array`.
    pub value2: Vec<SEverythingV1Value2>,
    /// `object`.
    pub match_: SEverythingV1Match<'d>,
    /// `array<bool>`.
    pub flags: Vec<bool>,
    /// `array<skillid>`.
    pub skills: Vec<Skill>,
    /// `array<angle>`.
    pub angles: Vec<Angle>,
    /// `array<vec3fa>`.
    pub turns: Vec<[f32; 3]>,
    /// `array<customize>`.
    pub looks: Vec<[u8; 8]>,
    /// `array<string>`.
    pub words: Vec<Text<'d>>,
    /// `object`.
    pub nothing: SEverythingV1Nothing,
    /// `array`.
    pub void: Vec<SEverythingV1Void>,
}

impl<'d> Typed<'d> for SEverythingV1<'d> {
    const NAME: &'static str = "S_EVERYTHING";
    const VERSION: u32 = 1;
    const WORDS: usize = 48;

    fn read(input: &mut Input<'d>, start: usize) -> Result<Self> {
        let fixed0 = input.scope::<140>(start, 144)?;
        let f0 = part(fixed0, 48) != [0];
        let f1 = u8::from_le_bytes(part(fixed0, 49));
        let f2 = i16::from_le_bytes(part(fixed0, 50));
        let f3 = u16::from_le_bytes(part(fixed0, 52));
        let f4 = i32::from_le_bytes(part(fixed0, 54));
        let f5 = u32::from_le_bytes(part(fixed0, 58));
        let f6 = i64::from_le_bytes(part(fixed0, 62));
        let f7 = u64::from_le_bytes(part(fixed0, 70));
        let f8 = f32::from_le_bytes(part(fixed0, 78));
        let f9 = f64::from_le_bytes(part(fixed0, 82));
        let f10 = Angle(i16::from_le_bytes(part(fixed0, 90)));
        let f11 = floats(fixed0, 92);
        let f12 = floats(fixed0, 104);
        let f13 = Skill::from_raw(u64::from_le_bytes(part(fixed0, 116)), SkillForm::Wide);
        let f14 = Skill::from_raw(u32::from_le_bytes(part(fixed0, 124)).into(), SkillForm::Narrow);
        let f15 = part(fixed0, 128);
        let f16 = i32::from_le_bytes(part(fixed0, 136));
        let f17 = input.text(word(fixed0, 0), start).map_err(|error| error.inside("Ok"))?;
        let f18 = input.bytes(word(fixed0, 4), word(fixed0, 2), (start + 4, start + 2)).map_err(|error| error.inside("r"))?;
        let f19 = input.list(word(fixed0, 6), word(fixed0, 8), start + 8, 14, SEverythingV1Value::read).map_err(|error| error.inside("value"))?;
        let f20 = input.list(word(fixed0, 10), word(fixed0, 12), start + 12, 8, SEverythingV1Value2::read).map_err(|error| error.inside("Value2"))?;
        let (at1, fixed1) = input.segment::<2>()?;
        let _ = (at1, fixed1);
        let f35 = i16::from_le_bytes(part(fixed1, 0));
        let f36 = input.text(word(fixed0, 14), start + 14).map_err(|error| error.inside("Vec").inside("match"))?;
        let f38 = input.list(word(fixed0, 16), word(fixed0, 18), start + 18, 8, SEverythingV1MatchDeepResult::read).map_err(|error| error.inside("Result").inside("deep").inside("match"))?;
        let f22 = input.list(word(fixed0, 20), word(fixed0, 22), start + 22, 5, |input, start| {
            let fixed0 = input.scope::<1>(start, 5)?;
            let f40 = part(fixed0, 0) != [0];
            Ok(f40)
        }).map_err(|error| error.inside("flags"))?;
        let f23 = input.list(word(fixed0, 24), word(fixed0, 26), start + 26, 12, |input, start| {
            let fixed0 = input.scope::<8>(start, 12)?;
            let f41 = Skill::from_raw(u64::from_le_bytes(part(fixed0, 0)), SkillForm::Wide);
            Ok(f41)
        }).map_err(|error| error.inside("skills"))?;
        let f24 = input.list(word(fixed0, 28), word(fixed0, 30), start + 30, 6, |input, start| {
            let fixed0 = input.scope::<2>(start, 6)?;
            let f42 = Angle(i16::from_le_bytes(part(fixed0, 0)));
            Ok(f42)
        }).map_err(|error| error.inside("angles"))?;
        let f25 = input.list(word(fixed0, 32), word(fixed0, 34), start + 34, 16, |input, start| {
            let fixed0 = input.scope::<12>(start, 16)?;
            let f43 = floats(fixed0, 0);
            Ok(f43)
        }).map_err(|error| error.inside("turns"))?;
        let f26 = input.list(word(fixed0, 36), word(fixed0, 38), start + 38, 12, |input, start| {
            let fixed0 = input.scope::<8>(start, 12)?;
            let f44 = part(fixed0, 0);
            Ok(f44)
        }).map_err(|error| error.inside("looks"))?;
        let f27 = input.list(word(fixed0, 40), word(fixed0, 42), start + 42, 6, |input, start| {
            let fixed0 = input.scope::<2>(start, 6)?;
            let f45 = input.text(word(fixed0, 0), start)?;
            Ok(f45)
        }).map_err(|error| error.inside("words"))?;
        let f29 = input.list(word(fixed0, 44), word(fixed0, 46), start + 46, 4, SEverythingV1Void::read).map_err(|error| error.inside("void"))?;
        Ok(Self { type_: f0, self_: f1, self_2: f2, input: f3, start: f4, game_id: f5, game_id_2: f6, field: f7, field_2: f8, f0: f9, fixed0: f10, value: f11, error: f12, index: f13, o: f14, at0: f15, output: f16, ok: f17, r: f18, value_2: f19, value2: f20, match_: SEverythingV1Match { y: f35, vec: f36, deep: SEverythingV1MatchDeep { result: f38 } }, flags: f22, skills: f23, angles: f24, turns: f25, looks: f26, words: f27, nothing: SEverythingV1Nothing {}, void: f29 })
    }

    fn write(&self, output: &mut Output<'_>) -> Result<()> {
        let at0 = output.fixed::<140>(|fixed| {
            put(fixed, 48, [u8::from(self.type_)]);
            put(fixed, 49, [self.self_]);
            put(fixed, 50, self.self_2.to_le_bytes());
            put(fixed, 52, self.input.to_le_bytes());
            put(fixed, 54, self.start.to_le_bytes());
            put(fixed, 58, self.game_id.to_le_bytes());
            put(fixed, 62, self.game_id_2.to_le_bytes());
            put(fixed, 70, self.field.to_le_bytes());
            put(fixed, 78, self.field_2.to_le_bytes());
            put(fixed, 82, self.f0.to_le_bytes());
            put(fixed, 90, self.fixed0.0.to_le_bytes());
            put_floats(fixed, 92, self.value);
            put_floats(fixed, 104, self.error);
            put(fixed, 116, wide(self.index).map_err(|error| error.inside("index"))?.to_le_bytes());
            put(fixed, 124, narrow(self.o).map_err(|error| error.inside("o"))?.to_le_bytes());
            put(fixed, 128, self.at0);
            put(fixed, 136, self.output.to_le_bytes());
            Ok(())
        })?;
        output.text(at0, &self.ok).map_err(|error| error.inside("Ok"))?;
        output.bytes((at0 + 4, at0 + 2), &self.r).map_err(|error| error.inside("r"))?;
        output.list((at0 + 6, at0 + 8), &self.value_2, |output, item| item.write(output)).map_err(|error| error.inside("value"))?;
        output.list((at0 + 10, at0 + 12), &self.value2, |output, item| item.write(output)).map_err(|error| error.inside("Value2"))?;
        let at1 = output.fixed::<2>(|fixed| {
            put(fixed, 0, self.match_.y.to_le_bytes());
            Ok(())
        })?;
        let _ = at1;
        output.text(at0 + 14, &self.match_.vec).map_err(|error| error.inside("Vec").inside("match"))?;
        output.list((at0 + 16, at0 + 18), &self.match_.deep.result, |output, item| item.write(output)).map_err(|error| error.inside("Result").inside("deep").inside("match"))?;
        output.list((at0 + 20, at0 + 22), &self.flags, |output, &item| {
            output.fixed::<1>(|fixed| {
                put(fixed, 0, [u8::from(item)]);
                Ok(())
            })?;
            Ok(())
        }).map_err(|error| error.inside("flags"))?;
        output.list((at0 + 24, at0 + 26), &self.skills, |output, &item| {
            output.fixed::<8>(|fixed| {
                put(fixed, 0, wide(item)?.to_le_bytes());
                Ok(())
            })?;
            Ok(())
        }).map_err(|error| error.inside("skills"))?;
        output.list((at0 + 28, at0 + 30), &self.angles, |output, &item| {
            output.fixed::<2>(|fixed| {
                put(fixed, 0, item.0.to_le_bytes());
                Ok(())
            })?;
            Ok(())
        }).map_err(|error| error.inside("angles"))?;
        output.list((at0 + 32, at0 + 34), &self.turns, |output, &item| {
            output.fixed::<12>(|fixed| {
                put_floats(fixed, 0, item);
                Ok(())
            })?;
            Ok(())
        }).map_err(|error| error.inside("turns"))?;
        output.list((at0 + 36, at0 + 38), &self.looks, |output, &item| {
            output.fixed::<8>(|fixed| {
                put(fixed, 0, item);
                Ok(())
            })?;
            Ok(())
        }).map_err(|error| error.inside("looks"))?;
        output.list((at0 + 40, at0 + 42), &self.words, |output, item| {
            let at0 = output.fixed::<2>(|_| Ok(()))?;
            output.text(at0, item)?;
            Ok(())
        }).map_err(|error| error.inside("words"))?;
        output.list((at0 + 44, at0 + 46), &self.void, |output, item| item.write(output)).map_err(|error| error.inside("void"))?;
        Ok(())
    }

    fn value(&self) -> Result<Value<'_>> {
        Ok(Value::Record(vec![
            Value::Bool(self.type_),
            Value::Unsigned(self.self_.into()),
            Value::Signed(self.self_2.into()),
            Value::Unsigned(self.input.into()),
            Value::Signed(self.start.into()),
            Value::Unsigned(self.game_id.into()),
            Value::Signed(self.game_id_2),
            Value::Unsigned(self.field),
            Value::Float(self.field_2),
            Value::Double(self.f0),
            Value::Angle(self.fixed0),
            Value::Vec3(self.value),
            Value::Vec3fa(self.error),
            Value::Skill(wide(self.index)?),
            Value::Skill(narrow(self.o)?.into()),
            Value::Customize(self.at0),
            Value::Signed(self.output.into()),
            Value::Text(Text::from_bytes(self.ok.as_bytes())),
            Value::Bytes(Cow::Borrowed(&self.r)),
            Value::List(self.value_2.iter().map(|item| item.value()).collect::<Result<_>>()?),
            Value::List(self.value2.iter().map(|item| item.value()).collect::<Result<_>>()?),
            self.match_.value()?,
            Value::List(self.flags.iter().map(|&item| Ok(Value::Bool(item))).collect::<Result<_>>()?),
            Value::List(self.skills.iter().map(|&item| Ok(Value::Skill(wide(item)?))).collect::<Result<_>>()?),
            Value::List(self.angles.iter().map(|&item| Ok(Value::Angle(item))).collect::<Result<_>>()?),
            Value::List(self.turns.iter().map(|&item| Ok(Value::Vec3fa(item))).collect::<Result<_>>()?),
            Value::List(self.looks.iter().map(|&item| Ok(Value::Customize(item))).collect::<Result<_>>()?),
            Value::List(self.words.iter().map(|item| Ok(Value::Text(Text::from_bytes(item.as_bytes())))).collect::<Result<_>>()?),
            self.nothing.value()?,
            Value::List(self.void.iter().map(|item| item.value()).collect::<Result<_>>()?),
        ]))
    }
}

/// `value` of `S_EVERYTHING`.
///
/// | field | type |
/// | --- | --- |
/// | `output` | `int32` |
/// | `u` | `string` |
/// | `Text` | `array` |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SEverythingV1Value<'d> {
    /// `int32`.
    pub output: i32,
    /// `string`.
    pub u: Text<'d>,
    /// `array`.
    pub text: Vec<SEverythingV1ValueText>,
}

impl<'d> SEverythingV1Value<'d> {
    pub(crate) fn read(input: &mut Input<'d>, start: usize) -> Result<Self> {
        let fixed0 = input.scope::<10>(start, 14)?;
        let f30 = i32::from_le_bytes(part(fixed0, 6));
        let f31 = input.text(word(fixed0, 0), start).map_err(|error| error.inside("u"))?;
        let f32 = input.list(word(fixed0, 2), word(fixed0, 4), start + 4, 5, SEverythingV1ValueText::read).map_err(|error| error.inside("Text"))?;
        Ok(Self { output: f30, u: f31, text: f32 })
    }

    pub(crate) fn write(&self, output: &mut Output<'_>) -> Result<()> {
        let at0 = output.fixed::<10>(|fixed| {
            put(fixed, 6, self.output.to_le_bytes());
            Ok(())
        })?;
        output.text(at0, &self.u).map_err(|error| error.inside("u"))?;
        output.list((at0 + 2, at0 + 4), &self.text, |output, item| item.write(output)).map_err(|error| error.inside("Text"))?;
        Ok(())
    }

    /// The fields as the definition has them.
    ///
    /// # Errors
    /// Value, for a skill whose parts have no room.
    pub fn value(&self) -> Result<Value<'_>> {
        Ok(Value::Record(vec![
            Value::Signed(self.output.into()),
            Value::Text(Text::from_bytes(self.u.as_bytes())),
            Value::List(self.text.iter().map(|item| item.value()).collect::<Result<_>>()?),
        ]))
    }
}

/// `value.Text` of `S_EVERYTHING`.
///
/// | field | type |
/// | --- | --- |
/// | `item` | `byte` |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SEverythingV1ValueText {
    /// `byte`.
    pub item: u8,
}

impl SEverythingV1ValueText {
    pub(crate) fn read(input: &mut Input<'_>, start: usize) -> Result<Self> {
        let fixed0 = input.scope::<1>(start, 5)?;
        let f33 = u8::from_le_bytes(part(fixed0, 0));
        Ok(Self { item: f33 })
    }

    pub(crate) fn write(&self, output: &mut Output<'_>) -> Result<()> {
        output.fixed::<1>(|fixed| {
            put(fixed, 0, [self.item]);
            Ok(())
        })?;
        Ok(())
    }

    /// The fields as the definition has them.
    ///
    /// # Errors
    /// Value, for a skill whose parts have no room.
    pub fn value(&self) -> Result<Value<'_>> {
        Ok(Value::Record(vec![
            Value::Unsigned(self.item.into()),
        ]))
    }
}

/// `Value2` of `S_EVERYTHING`.
///
/// | field | type |
/// | --- | --- |
/// | `error` | `int32` |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SEverythingV1Value2 {
    /// `int32`.
    pub error: i32,
}

impl SEverythingV1Value2 {
    pub(crate) fn read(input: &mut Input<'_>, start: usize) -> Result<Self> {
        let fixed0 = input.scope::<4>(start, 8)?;
        let f34 = i32::from_le_bytes(part(fixed0, 0));
        Ok(Self { error: f34 })
    }

    pub(crate) fn write(&self, output: &mut Output<'_>) -> Result<()> {
        output.fixed::<4>(|fixed| {
            put(fixed, 0, self.error.to_le_bytes());
            Ok(())
        })?;
        Ok(())
    }

    /// The fields as the definition has them.
    ///
    /// # Errors
    /// Value, for a skill whose parts have no room.
    pub fn value(&self) -> Result<Value<'_>> {
        Ok(Value::Record(vec![
            Value::Signed(self.error.into()),
        ]))
    }
}

/// `match` of `S_EVERYTHING`.
///
/// | field | type |
/// | --- | --- |
/// | `y` | `int16` |
/// | `Vec` | `string` |
/// | `deep` | `object` |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SEverythingV1Match<'d> {
    /// `int16`.
    pub y: i16,
    /// `string`.
    pub vec: Text<'d>,
    /// `object`.
    pub deep: SEverythingV1MatchDeep<'d>,
}

impl<'d> SEverythingV1Match<'d> {
    /// The fields as the definition has them.
    ///
    /// # Errors
    /// Value, for a skill whose parts have no room.
    pub fn value(&self) -> Result<Value<'_>> {
        Ok(Value::Record(vec![
            Value::Signed(self.y.into()),
            Value::Text(Text::from_bytes(self.vec.as_bytes())),
            self.deep.value()?,
        ]))
    }
}

/// `match.deep` of `S_EVERYTHING`.
///
/// | field | type |
/// | --- | --- |
/// | `Result` | `array` |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SEverythingV1MatchDeep<'d> {
    /// `array`.
    pub result: Vec<SEverythingV1MatchDeepResult<'d>>,
}

impl<'d> SEverythingV1MatchDeep<'d> {
    /// The fields as the definition has them.
    ///
    /// # Errors
    /// Value, for a skill whose parts have no room.
    pub fn value(&self) -> Result<Value<'_>> {
        Ok(Value::Record(vec![
            Value::List(self.result.iter().map(|item| item.value()).collect::<Result<_>>()?),
        ]))
    }
}

/// `match.deep.Result` of `S_EVERYTHING`.
///
/// | field | type |
/// | --- | --- |
/// | `crate` | `bytes` |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SEverythingV1MatchDeepResult<'d> {
    /// `bytes`.
    pub crate_: Cow<'d, [u8]>,
}

impl<'d> SEverythingV1MatchDeepResult<'d> {
    pub(crate) fn read(input: &mut Input<'d>, start: usize) -> Result<Self> {
        let fixed0 = input.scope::<4>(start, 8)?;
        let f39 = input.bytes(word(fixed0, 2), word(fixed0, 0), (start + 2, start)).map_err(|error| error.inside("crate"))?;
        Ok(Self { crate_: f39 })
    }

    pub(crate) fn write(&self, output: &mut Output<'_>) -> Result<()> {
        let at0 = output.fixed::<4>(|_| Ok(()))?;
        output.bytes((at0 + 2, at0), &self.crate_).map_err(|error| error.inside("crate"))?;
        Ok(())
    }

    /// The fields as the definition has them.
    ///
    /// # Errors
    /// Value, for a skill whose parts have no room.
    pub fn value(&self) -> Result<Value<'_>> {
        Ok(Value::Record(vec![
            Value::Bytes(Cow::Borrowed(&self.crate_)),
        ]))
    }
}

/// `nothing` of `S_EVERYTHING`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SEverythingV1Nothing {}

impl SEverythingV1Nothing {
    /// The fields as the definition has them.
    ///
    /// # Errors
    /// Value, for a skill whose parts have no room.
    pub fn value(&self) -> Result<Value<'_>> {
        Ok(Value::Record(vec![
        ]))
    }
}

/// `void` of `S_EVERYTHING`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SEverythingV1Void {}

impl SEverythingV1Void {
    pub(crate) fn read(input: &mut Input<'_>, start: usize) -> Result<Self> {
        input.scope::<0>(start, 4)?;
        Ok(Self {})
    }

    pub(crate) fn write(&self, output: &mut Output<'_>) -> Result<()> {
        output.fixed::<0>(|_| Ok(()))?;
        Ok(())
    }

    /// The fields as the definition has them.
    ///
    /// # Errors
    /// Value, for a skill whose parts have no room.
    pub fn value(&self) -> Result<Value<'_>> {
        Ok(Value::Record(vec![
        ]))
    }
}

/// `C_MIXED`, version 7.
///
/// | field | type |
/// | --- | --- |
/// | `o` | `object` |
/// | `id` | `uint64` |
/// | `a` | `array` |
/// | `b` | `array<vec3>` |
/// | `c` | `array` |
/// | `after` | `int32` |
/// | `s` | `string` |
/// | `last` | `int32` |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CMixedV7<'d> {
    /// `object`.
    pub o: CMixedV7O<'d>,
    /// `uint64`.
    pub id: u64,
    /// `array`.
    pub a: Vec<CMixedV7A<'d>>,
    /// `array<vec3>`.
    pub b: Vec<[f32; 3]>,
    /// `array`.
    pub c: Vec<CMixedV7C<'d>>,
    /// `int32`.
    pub after: i32,
    /// `string`.
    pub s: Text<'d>,
    /// `int32`.
    pub last: i32,
}

impl<'d> Typed<'d> for CMixedV7<'d> {
    const NAME: &'static str = "C_MIXED";
    const VERSION: u32 = 7;
    const WORDS: usize = 16;

    fn read(input: &mut Input<'d>, start: usize) -> Result<Self> {
        let fixed0 = input.scope::<26>(start, 30)?;
        let f8 = i16::from_le_bytes(part(fixed0, 16));
        let f1 = u64::from_le_bytes(part(fixed0, 18));
        let before = input.cursor();
        let f2 = input.list(word(fixed0, 0), word(fixed0, 2), start + 2, 10, CMixedV7A::read).map_err(|error| error.inside("a"))?;
        let end2 = input.cursor();
        let f3 = input.list(word(fixed0, 4), word(fixed0, 6), start + 6, 16, |input, start| {
            let fixed0 = input.scope::<12>(start, 16)?;
            let f12 = floats(fixed0, 0);
            Ok(f12)
        }).map_err(|error| error.inside("b"))?;
        let end3 = input.cursor();
        let f4 = input.list(word(fixed0, 8), word(fixed0, 10), start + 10, 16, CMixedV7C::read).map_err(|error| error.inside("c"))?;
        let end4 = input.cursor();
        input.close_group(before, &[(f2.len(), end2), (f3.len(), end3), (f4.len(), end4)]);
        let (at1, fixed1) = input.segment::<4>()?;
        let _ = (at1, fixed1);
        let f5 = i32::from_le_bytes(part(fixed1, 0));
        let f6 = input.text(word(fixed0, 12), start + 12).map_err(|error| error.inside("s"))?;
        let (at2, fixed2) = input.segment::<4>()?;
        let _ = (at2, fixed2);
        let f7 = i32::from_le_bytes(part(fixed2, 0));
        let f9 = input.text(word(fixed0, 14), start + 14).map_err(|error| error.inside("q").inside("o"))?;
        Ok(Self { o: CMixedV7O { p: f8, q: f9 }, id: f1, a: f2, b: f3, c: f4, after: f5, s: f6, last: f7 })
    }

    fn write(&self, output: &mut Output<'_>) -> Result<()> {
        let at0 = output.fixed::<26>(|fixed| {
            put(fixed, 16, self.o.p.to_le_bytes());
            put(fixed, 18, self.id.to_le_bytes());
            Ok(())
        })?;
        let mut lane2 = output.lane((at0, at0 + 2), self.a.len()).map_err(|error| error.inside("a"))?;
        let mut lane3 = output.lane((at0 + 4, at0 + 6), self.b.len()).map_err(|error| error.inside("b"))?;
        let mut lane4 = output.lane((at0 + 8, at0 + 10), self.c.len()).map_err(|error| error.inside("c"))?;
        for round in 0..0_usize.max(self.a.len()).max(self.b.len()).max(self.c.len()) {
            if let Some(item) = self.a.get(round) {
                output.element(&mut lane2, |output| {
                    item.write(output)
                }).map_err(|error| error.inside("a"))?;
            }
            if let Some(&item) = self.b.get(round) {
                output.element(&mut lane3, |output| {
                    output.fixed::<12>(|fixed| {
                        put_floats(fixed, 0, item);
                        Ok(())
                    })?;
                    Ok(())
                }).map_err(|error| error.inside("b"))?;
            }
            if let Some(item) = self.c.get(round) {
                output.element(&mut lane4, |output| {
                    item.write(output)
                }).map_err(|error| error.inside("c"))?;
            }
        }
        let at1 = output.fixed::<4>(|fixed| {
            put(fixed, 0, self.after.to_le_bytes());
            Ok(())
        })?;
        let _ = at1;
        output.text(at0 + 12, &self.s).map_err(|error| error.inside("s"))?;
        let at2 = output.fixed::<4>(|fixed| {
            put(fixed, 0, self.last.to_le_bytes());
            Ok(())
        })?;
        let _ = at2;
        output.text(at0 + 14, &self.o.q).map_err(|error| error.inside("q").inside("o"))?;
        Ok(())
    }

    fn value(&self) -> Result<Value<'_>> {
        Ok(Value::Record(vec![
            self.o.value()?,
            Value::Unsigned(self.id),
            Value::List(self.a.iter().map(|item| item.value()).collect::<Result<_>>()?),
            Value::List(self.b.iter().map(|&item| Ok(Value::Vec3(item))).collect::<Result<_>>()?),
            Value::List(self.c.iter().map(|item| item.value()).collect::<Result<_>>()?),
            Value::Signed(self.after.into()),
            Value::Text(Text::from_bytes(self.s.as_bytes())),
            Value::Signed(self.last.into()),
        ]))
    }
}

/// `o` of `C_MIXED`.
///
/// | field | type |
/// | --- | --- |
/// | `p` | `int16` |
/// | `q` | `string` |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CMixedV7O<'d> {
    /// `int16`.
    pub p: i16,
    /// `string`.
    pub q: Text<'d>,
}

impl<'d> CMixedV7O<'d> {
    /// The fields as the definition has them.
    ///
    /// # Errors
    /// Value, for a skill whose parts have no room.
    pub fn value(&self) -> Result<Value<'_>> {
        Ok(Value::Record(vec![
            Value::Signed(self.p.into()),
            Value::Text(Text::from_bytes(self.q.as_bytes())),
        ]))
    }
}

/// `a` of `C_MIXED`.
///
/// | field | type |
/// | --- | --- |
/// | `x` | `int32` |
/// | `y` | `string` |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CMixedV7A<'d> {
    /// `int32`.
    pub x: i32,
    /// `string`.
    pub y: Text<'d>,
}

impl<'d> CMixedV7A<'d> {
    pub(crate) fn read(input: &mut Input<'d>, start: usize) -> Result<Self> {
        let fixed0 = input.scope::<6>(start, 10)?;
        let f10 = i32::from_le_bytes(part(fixed0, 2));
        let f11 = input.text(word(fixed0, 0), start).map_err(|error| error.inside("y"))?;
        Ok(Self { x: f10, y: f11 })
    }

    pub(crate) fn write(&self, output: &mut Output<'_>) -> Result<()> {
        let at0 = output.fixed::<6>(|fixed| {
            put(fixed, 2, self.x.to_le_bytes());
            Ok(())
        })?;
        output.text(at0, &self.y).map_err(|error| error.inside("y"))?;
        Ok(())
    }

    /// The fields as the definition has them.
    ///
    /// # Errors
    /// Value, for a skill whose parts have no room.
    pub fn value(&self) -> Result<Value<'_>> {
        Ok(Value::Record(vec![
            Value::Signed(self.x.into()),
            Value::Text(Text::from_bytes(self.y.as_bytes())),
        ]))
    }
}

/// `c` of `C_MIXED`.
///
/// | field | type |
/// | --- | --- |
/// | `d` | `array` |
/// | `f` | `array` |
/// | `h` | `bytes` |
/// | `w` | `byte` |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CMixedV7C<'d> {
    /// `array`.
    pub d: Vec<CMixedV7CD>,
    /// `array`.
    pub f: Vec<CMixedV7CF>,
    /// `bytes`.
    pub h: Cow<'d, [u8]>,
    /// `byte`.
    pub w: u8,
}

impl<'d> CMixedV7C<'d> {
    pub(crate) fn read(input: &mut Input<'d>, start: usize) -> Result<Self> {
        let fixed0 = input.scope::<12>(start, 16)?;
        let before = input.cursor();
        let f13 = input.list(word(fixed0, 0), word(fixed0, 2), start + 2, 5, CMixedV7CD::read).map_err(|error| error.inside("d"))?;
        let end13 = input.cursor();
        let f14 = input.list(word(fixed0, 4), word(fixed0, 6), start + 6, 6, CMixedV7CF::read).map_err(|error| error.inside("f"))?;
        let end14 = input.cursor();
        input.close_group(before, &[(f13.len(), end13), (f14.len(), end14)]);
        let f15 = input.bytes(word(fixed0, 10), word(fixed0, 8), (start + 10, start + 8)).map_err(|error| error.inside("h"))?;
        let (at1, fixed1) = input.segment::<1>()?;
        let _ = (at1, fixed1);
        let f16 = u8::from_le_bytes(part(fixed1, 0));
        Ok(Self { d: f13, f: f14, h: f15, w: f16 })
    }

    pub(crate) fn write(&self, output: &mut Output<'_>) -> Result<()> {
        let at0 = output.fixed::<12>(|_| Ok(()))?;
        let mut lane13 = output.lane((at0, at0 + 2), self.d.len()).map_err(|error| error.inside("d"))?;
        let mut lane14 = output.lane((at0 + 4, at0 + 6), self.f.len()).map_err(|error| error.inside("f"))?;
        for round in 0..0_usize.max(self.d.len()).max(self.f.len()) {
            if let Some(item) = self.d.get(round) {
                output.element(&mut lane13, |output| {
                    item.write(output)
                }).map_err(|error| error.inside("d"))?;
            }
            if let Some(item) = self.f.get(round) {
                output.element(&mut lane14, |output| {
                    item.write(output)
                }).map_err(|error| error.inside("f"))?;
            }
        }
        output.bytes((at0 + 10, at0 + 8), &self.h).map_err(|error| error.inside("h"))?;
        let at1 = output.fixed::<1>(|fixed| {
            put(fixed, 0, [self.w]);
            Ok(())
        })?;
        let _ = at1;
        Ok(())
    }

    /// The fields as the definition has them.
    ///
    /// # Errors
    /// Value, for a skill whose parts have no room.
    pub fn value(&self) -> Result<Value<'_>> {
        Ok(Value::Record(vec![
            Value::List(self.d.iter().map(|item| item.value()).collect::<Result<_>>()?),
            Value::List(self.f.iter().map(|item| item.value()).collect::<Result<_>>()?),
            Value::Bytes(Cow::Borrowed(&self.h)),
            Value::Unsigned(self.w.into()),
        ]))
    }
}

/// `c.d` of `C_MIXED`.
///
/// | field | type |
/// | --- | --- |
/// | `e` | `byte` |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CMixedV7CD {
    /// `byte`.
    pub e: u8,
}

impl CMixedV7CD {
    pub(crate) fn read(input: &mut Input<'_>, start: usize) -> Result<Self> {
        let fixed0 = input.scope::<1>(start, 5)?;
        let f17 = u8::from_le_bytes(part(fixed0, 0));
        Ok(Self { e: f17 })
    }

    pub(crate) fn write(&self, output: &mut Output<'_>) -> Result<()> {
        output.fixed::<1>(|fixed| {
            put(fixed, 0, [self.e]);
            Ok(())
        })?;
        Ok(())
    }

    /// The fields as the definition has them.
    ///
    /// # Errors
    /// Value, for a skill whose parts have no room.
    pub fn value(&self) -> Result<Value<'_>> {
        Ok(Value::Record(vec![
            Value::Unsigned(self.e.into()),
        ]))
    }
}

/// `c.f` of `C_MIXED`.
///
/// | field | type |
/// | --- | --- |
/// | `g` | `int16` |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CMixedV7CF {
    /// `int16`.
    pub g: i16,
}

impl CMixedV7CF {
    pub(crate) fn read(input: &mut Input<'_>, start: usize) -> Result<Self> {
        let fixed0 = input.scope::<2>(start, 6)?;
        let f18 = i16::from_le_bytes(part(fixed0, 0));
        Ok(Self { g: f18 })
    }

    pub(crate) fn write(&self, output: &mut Output<'_>) -> Result<()> {
        output.fixed::<2>(|fixed| {
            put(fixed, 0, self.g.to_le_bytes());
            Ok(())
        })?;
        Ok(())
    }

    /// The fields as the definition has them.
    ///
    /// # Errors
    /// Value, for a skill whose parts have no room.
    pub fn value(&self) -> Result<Value<'_>> {
        Ok(Value::Record(vec![
            Value::Signed(self.g.into()),
        ]))
    }
}

/// `S_COUNTED`, version 1.
///
/// | field | type |
/// | --- | --- |
/// | `id` | `int32` |
/// | `list` | `array` |
/// | `name` | `string` |
/// | `after` | `int32` |
/// | `blob` | `bytes` |
/// | `inline` | `string` |
/// | `last` | `bool` |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SCountedV1<'d> {
    /// `int32`.
    pub id: i32,
    /// `array`.
    pub list: Vec<SCountedV1List<'d>>,
    /// `string`.
    pub name: Text<'d>,
    /// `int32`.
    pub after: i32,
    /// `bytes`.
    pub blob: Cow<'d, [u8]>,
    /// `string`.
    pub inline: Text<'d>,
    /// `bool`.
    pub last: bool,
}

impl<'d> Typed<'d> for SCountedV1<'d> {
    const NAME: &'static str = "S_COUNTED";
    const VERSION: u32 = 1;
    const WORDS: usize = 14;

    fn read(input: &mut Input<'d>, start: usize) -> Result<Self> {
        let fixed0 = input.scope::<18>(start, 22)?;
        let f0 = i32::from_le_bytes(part(fixed0, 4));
        let f1 = input.list(word(fixed0, 0), word(fixed0, 8), start + 8, 10, SCountedV1List::read).map_err(|error| error.inside("list"))?;
        let f2 = input.text(word(fixed0, 2), start + 2).map_err(|error| error.inside("name"))?;
        let (at1, fixed1) = input.segment::<4>()?;
        let _ = (at1, fixed1);
        let f3 = i32::from_le_bytes(part(fixed1, 0));
        let f4 = input.bytes(word(fixed0, 14), word(fixed0, 12), (start + 14, start + 12)).map_err(|error| error.inside("blob"))?;
        let (at2, fixed2) = input.segment::<0>()?;
        let _ = (at2, fixed2);
        let f5 = input.text_here(at2).map_err(|error| error.inside("inline"))?;
        let (at3, fixed3) = input.segment::<1>()?;
        let _ = (at3, fixed3);
        let f6 = part(fixed3, 0) != [0];
        Ok(Self { id: f0, list: f1, name: f2, after: f3, blob: f4, inline: f5, last: f6 })
    }

    fn write(&self, output: &mut Output<'_>) -> Result<()> {
        let at0 = output.fixed::<18>(|fixed| {
            put(fixed, 4, self.id.to_le_bytes());
            Ok(())
        })?;
        output.list((at0, at0 + 8), &self.list, |output, item| item.write(output)).map_err(|error| error.inside("list"))?;
        output.text(at0 + 2, &self.name).map_err(|error| error.inside("name"))?;
        let at1 = output.fixed::<4>(|fixed| {
            put(fixed, 0, self.after.to_le_bytes());
            Ok(())
        })?;
        let _ = at1;
        output.bytes((at0 + 14, at0 + 12), &self.blob).map_err(|error| error.inside("blob"))?;
        let at2 = output.fixed::<0>(|_| Ok(()))?;
        let _ = at2;
        output.text_here(&self.inline).map_err(|error| error.inside("inline"))?;
        let at3 = output.fixed::<1>(|fixed| {
            put(fixed, 0, [u8::from(self.last)]);
            Ok(())
        })?;
        let _ = at3;
        Ok(())
    }

    fn value(&self) -> Result<Value<'_>> {
        Ok(Value::Record(vec![
            Value::Signed(self.id.into()),
            Value::List(self.list.iter().map(|item| item.value()).collect::<Result<_>>()?),
            Value::Text(Text::from_bytes(self.name.as_bytes())),
            Value::Signed(self.after.into()),
            Value::Bytes(Cow::Borrowed(&self.blob)),
            Value::Text(Text::from_bytes(self.inline.as_bytes())),
            Value::Bool(self.last),
        ]))
    }
}

/// `list` of `S_COUNTED`.
///
/// | field | type |
/// | --- | --- |
/// | `id` | `int32` |
/// | `word` | `string` |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SCountedV1List<'d> {
    /// `int32`.
    pub id: i32,
    /// `string`.
    pub word: Text<'d>,
}

impl<'d> SCountedV1List<'d> {
    pub(crate) fn read(input: &mut Input<'d>, start: usize) -> Result<Self> {
        let fixed0 = input.scope::<6>(start, 10)?;
        let f7 = i32::from_le_bytes(part(fixed0, 2));
        let f8 = input.text(word(fixed0, 0), start).map_err(|error| error.inside("word"))?;
        Ok(Self { id: f7, word: f8 })
    }

    pub(crate) fn write(&self, output: &mut Output<'_>) -> Result<()> {
        let at0 = output.fixed::<6>(|fixed| {
            put(fixed, 2, self.id.to_le_bytes());
            Ok(())
        })?;
        output.text(at0, &self.word).map_err(|error| error.inside("word"))?;
        Ok(())
    }

    /// The fields as the definition has them.
    ///
    /// # Errors
    /// Value, for a skill whose parts have no room.
    pub fn value(&self) -> Result<Value<'_>> {
        Ok(Value::Record(vec![
            Value::Signed(self.id.into()),
            Value::Text(Text::from_bytes(self.word.as_bytes())),
        ]))
    }
}

/// `S_PIECES`, version 3.
///
/// | field | type |
/// | --- | --- |
/// | `o` | `object` |
/// | `between` | `int16` |
/// | `twice#1` | `int32` |
/// | `other` | `byte` |
/// | `twice#2` | `int32` |
/// | `third` | `byte` |
/// | `twice` | `int32` |
/// | `odd#1` | `byte` |
/// | `odd` | `float` |
/// | `l` | `array` |
/// | `end` | `int32` |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SPiecesV3<'d> {
    /// `object`.
    pub o: SPiecesV3O<'d>,
    /// `int16`.
    pub between: i16,
    /// `int32`.
    pub twice_1: Option<i32>,
    /// `byte`.
    pub other: u8,
    /// `int32`.
    pub twice_2: Option<i32>,
    /// `byte`.
    pub third: u8,
    /// `int32`.
    pub twice: i32,
    /// `byte`.
    pub odd_1: u8,
    /// `float`.
    pub odd: f32,
    /// `array`.
    pub l: Vec<SPiecesV3L<'d>>,
    /// `int32`.
    pub end: i32,
}

impl<'d> Typed<'d> for SPiecesV3<'d> {
    const NAME: &'static str = "S_PIECES";
    const VERSION: u32 = 3;
    const WORDS: usize = 10;

    fn read(input: &mut Input<'d>, start: usize) -> Result<Self> {
        let fixed0 = input.scope::<14>(start, 18)?;
        let f11 = i32::from_le_bytes(part(fixed0, 10));
        let f12 = input.text(word(fixed0, 0), start).map_err(|error| error.inside("s").inside("o"))?;
        let (at1, fixed1) = input.segment::<4>()?;
        let _ = (at1, fixed1);
        let f1 = i16::from_le_bytes(part(fixed1, 0));
        let f13 = i16::from_le_bytes(part(fixed1, 2));
        let f14 = input.bytes(word(fixed0, 4), word(fixed0, 2), (start + 4, start + 2)).map_err(|error| error.inside("t").inside("o"))?;
        let (at2, fixed2) = input.segment::<19>()?;
        let _ = (at2, fixed2);
        let f2 = i32::from_le_bytes(part(fixed2, 0));
        let f3 = u8::from_le_bytes(part(fixed2, 4));
        let f4 = i32::from_le_bytes(part(fixed2, 5));
        let f5 = u8::from_le_bytes(part(fixed2, 9));
        let f6 = i32::from_le_bytes(part(fixed2, 10));
        let f7 = u8::from_le_bytes(part(fixed2, 14));
        let f8 = f32::from_le_bytes(part(fixed2, 15));
        let f9 = input.list(word(fixed0, 6), word(fixed0, 8), start + 8, 11, SPiecesV3L::read).map_err(|error| error.inside("l"))?;
        let (at3, fixed3) = input.segment::<4>()?;
        let _ = (at3, fixed3);
        let f10 = i32::from_le_bytes(part(fixed3, 0));
        Ok(Self { o: SPiecesV3O { a: f11, s: f12, b: f13, t: f14 }, between: f1, twice_1: Some(f2), other: f3, twice_2: Some(f4), third: f5, twice: f6, odd_1: f7, odd: f8, l: f9, end: f10 })
    }

    fn write(&self, output: &mut Output<'_>) -> Result<()> {
        let at0 = output.fixed::<14>(|fixed| {
            put(fixed, 10, self.o.a.to_le_bytes());
            Ok(())
        })?;
        output.text(at0, &self.o.s).map_err(|error| error.inside("s").inside("o"))?;
        let at1 = output.fixed::<4>(|fixed| {
            put(fixed, 0, self.between.to_le_bytes());
            put(fixed, 2, self.o.b.to_le_bytes());
            Ok(())
        })?;
        let _ = at1;
        output.bytes((at0 + 4, at0 + 2), &self.o.t).map_err(|error| error.inside("t").inside("o"))?;
        let at2 = output.fixed::<19>(|fixed| {
            put(fixed, 0, self.twice_1.unwrap_or(self.twice).to_le_bytes());
            put(fixed, 4, [self.other]);
            put(fixed, 5, self.twice_2.unwrap_or(self.twice).to_le_bytes());
            put(fixed, 9, [self.third]);
            put(fixed, 10, self.twice.to_le_bytes());
            put(fixed, 14, [self.odd_1]);
            put(fixed, 15, self.odd.to_le_bytes());
            Ok(())
        })?;
        let _ = at2;
        output.list((at0 + 6, at0 + 8), &self.l, |output, item| item.write(output)).map_err(|error| error.inside("l"))?;
        let at3 = output.fixed::<4>(|fixed| {
            put(fixed, 0, self.end.to_le_bytes());
            Ok(())
        })?;
        let _ = at3;
        Ok(())
    }

    fn value(&self) -> Result<Value<'_>> {
        Ok(Value::Record(vec![
            self.o.value()?,
            Value::Signed(self.between.into()),
            match self.twice_1 { Some(copy) => Value::Signed(copy.into()), None => Value::Absent },
            Value::Unsigned(self.other.into()),
            match self.twice_2 { Some(copy) => Value::Signed(copy.into()), None => Value::Absent },
            Value::Unsigned(self.third.into()),
            Value::Signed(self.twice.into()),
            Value::Unsigned(self.odd_1.into()),
            Value::Float(self.odd),
            Value::List(self.l.iter().map(|item| item.value()).collect::<Result<_>>()?),
            Value::Signed(self.end.into()),
        ]))
    }
}

/// `o` of `S_PIECES`.
///
/// | field | type |
/// | --- | --- |
/// | `a` | `int32` |
/// | `s` | `string` |
/// | `b` | `int16` |
/// | `t` | `bytes` |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SPiecesV3O<'d> {
    /// `int32`.
    pub a: i32,
    /// `string`.
    pub s: Text<'d>,
    /// `int16`.
    pub b: i16,
    /// `bytes`.
    pub t: Cow<'d, [u8]>,
}

impl<'d> SPiecesV3O<'d> {
    /// The fields as the definition has them.
    ///
    /// # Errors
    /// Value, for a skill whose parts have no room.
    pub fn value(&self) -> Result<Value<'_>> {
        Ok(Value::Record(vec![
            Value::Signed(self.a.into()),
            Value::Text(Text::from_bytes(self.s.as_bytes())),
            Value::Signed(self.b.into()),
            Value::Bytes(Cow::Borrowed(&self.t)),
        ]))
    }
}

/// `l` of `S_PIECES`.
///
/// | field | type |
/// | --- | --- |
/// | `p` | `object` |
/// | `y` | `byte` |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SPiecesV3L<'d> {
    /// `object`.
    pub p: SPiecesV3LP<'d>,
    /// `byte`.
    pub y: u8,
}

impl<'d> SPiecesV3L<'d> {
    pub(crate) fn read(input: &mut Input<'d>, start: usize) -> Result<Self> {
        let fixed0 = input.scope::<7>(start, 11)?;
        let f17 = i32::from_le_bytes(part(fixed0, 2));
        let f16 = u8::from_le_bytes(part(fixed0, 6));
        let f18 = input.text(word(fixed0, 0), start).map_err(|error| error.inside("z").inside("p"))?;
        Ok(Self { p: SPiecesV3LP { x: f17, z: f18 }, y: f16 })
    }

    pub(crate) fn write(&self, output: &mut Output<'_>) -> Result<()> {
        let at0 = output.fixed::<7>(|fixed| {
            put(fixed, 2, self.p.x.to_le_bytes());
            put(fixed, 6, [self.y]);
            Ok(())
        })?;
        output.text(at0, &self.p.z).map_err(|error| error.inside("z").inside("p"))?;
        Ok(())
    }

    /// The fields as the definition has them.
    ///
    /// # Errors
    /// Value, for a skill whose parts have no room.
    pub fn value(&self) -> Result<Value<'_>> {
        Ok(Value::Record(vec![
            self.p.value()?,
            Value::Unsigned(self.y.into()),
        ]))
    }
}

/// `l.p` of `S_PIECES`.
///
/// | field | type |
/// | --- | --- |
/// | `x` | `int32` |
/// | `z` | `string` |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SPiecesV3LP<'d> {
    /// `int32`.
    pub x: i32,
    /// `string`.
    pub z: Text<'d>,
}

impl<'d> SPiecesV3LP<'d> {
    /// The fields as the definition has them.
    ///
    /// # Errors
    /// Value, for a skill whose parts have no room.
    pub fn value(&self) -> Result<Value<'_>> {
        Ok(Value::Record(vec![
            Value::Signed(self.x.into()),
            Value::Text(Text::from_bytes(self.z.as_bytes())),
        ]))
    }
}

/// `S_PLACED`, version 1.
///
/// | field | type |
/// | --- | --- |
/// | `id` | `int32` |
/// | `name` | `string` |
/// | `grid` | `array<array<int16>>` |
/// | `three` | `int32[3]` |
/// | `blob` | `bytes` |
/// | `pair` | `string[2]` |
/// | `rows` | `object[2]` |
/// | `matrix` | `float[2][3]` |
/// | `many` | `byte[40]` |
/// | `lines` | `string[33]` |
/// | `skills` | `skillid[2]` |
/// | `steps` | `array<int32[2]>` |
/// | `both` | `array<object[2]>` |
/// | `deep` | `array<array<array<string>>>` |
/// | `blobs` | `array<bytes>` |
/// | `one` | `object[1]` |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SPlacedV1<'d> {
    /// `int32`.
    pub id: i32,
    /// `string`.
    pub name: Text<'d>,
    /// `array<array<int16>>`.
    pub grid: Vec<Vec<i16>>,
    /// `int32[3]`.
    pub three: [i32; 3],
    /// `bytes`.
    pub blob: Cow<'d, [u8]>,
    /// `string[2]`.
    pub pair: [Text<'d>; 2],
    /// `object[2]`.
    pub rows: [SPlacedV1Rows<'d>; 2],
    /// `float[2][3]`.
    pub matrix: [[f32; 3]; 2],
    /// `byte[40]`.
    pub many: Vec<u8>,
    /// `string[33]`.
    pub lines: Vec<Text<'d>>,
    /// `skillid[2]`.
    pub skills: [Skill; 2],
    /// `array<int32[2]>`.
    pub steps: Vec<[i32; 2]>,
    /// `array<object[2]>`.
    pub both: Vec<[SPlacedV1Both<'d>; 2]>,
    /// `array<array<array<string>>>`.
    pub deep: Vec<Vec<Vec<Text<'d>>>>,
    /// `array<bytes>`.
    pub blobs: Vec<Cow<'d, [u8]>>,
    /// `object[1]`.
    pub one: [SPlacedV1One<'d>; 1],
}

impl<'d> Typed<'d> for SPlacedV1<'d> {
    const NAME: &'static str = "S_PLACED";
    const VERSION: u32 = 1;
    const WORDS: usize = 116;

    fn read(input: &mut Input<'d>, start: usize) -> Result<Self> {
        let fixed0 = input.scope::<218>(start, 222)?;
        let f0 = i32::from_le_bytes(part(fixed0, 0));
        let f1 = input.text(word(fixed0, 4), start + 4).map_err(|error| error.inside("name"))?;
        let f2 = input.list(word(fixed0, 6), word(fixed0, 8), start + 8, 8, |input, start| {
            let fixed0 = input.scope::<4>(start, 8)?;
            let f16 = input.list(word(fixed0, 0), word(fixed0, 2), start + 2, 6, |input, start| {
                let fixed0 = input.scope::<2>(start, 6)?;
                let f17 = i16::from_le_bytes(part(fixed0, 0));
                Ok(f17)
            })?;
            Ok(f16)
        }).map_err(|error| error.inside("grid"))?;
        let mut f3: [i32; 3] = Default::default();
        for (i0, item0) in f3.iter_mut().enumerate() {
            let f18 = i32::from_le_bytes(part(fixed0, 10 + i0 * 4));
            *item0 = f18;
        }
        let f4 = input.bytes(word(fixed0, 24), word(fixed0, 22), (start + 24, start + 22)).map_err(|error| error.inside("blob"))?;
        let mut f5: [Text<'d>; 2] = Default::default();
        for (i0, item0) in f5.iter_mut().enumerate() {
            let f21 = input.text(word(fixed0, 26 + i0 * 2), start + 26 + i0 * 2).map_err(|error| error.inside_item(i0).inside("pair"))?;
            *item0 = f21;
        }
        let mut f6: [SPlacedV1Rows<'d>; 2] = Default::default();
        for (i0, item0) in f6.iter_mut().enumerate() {
            let f25 = i16::from_le_bytes(part(fixed0, 30 + i0 * 10));
            let mut f26: [Text<'d>; 2] = Default::default();
            for (i1, item1) in f26.iter_mut().enumerate() {
                let f28 = input.text(word(fixed0, 32 + i0 * 10 + i1 * 2), start + 32 + i0 * 10 + i1 * 2).map_err(|error| error.inside_item(i1).inside("b").inside_item(i0).inside("rows"))?;
                *item1 = f28;
            }
            let f27 = input.list(word(fixed0, 36 + i0 * 10), word(fixed0, 38 + i0 * 10), start + 38 + i0 * 10, 5, SPlacedV1RowsL::read).map_err(|error| error.inside("l").inside_item(i0).inside("rows"))?;
            *item0 = SPlacedV1Rows { a: f25, b: f26, l: f27 };
        }
        let mut f7: [[f32; 3]; 2] = Default::default();
        for (i0, item0) in f7.iter_mut().enumerate() {
            let mut f37: [f32; 3] = Default::default();
            for (i1, item1) in f37.iter_mut().enumerate() {
                let f39 = f32::from_le_bytes(part(fixed0, 50 + i0 * 12 + i1 * 4));
                *item1 = f39;
            }
            *item0 = f37;
        }
        let mut f8: Vec<u8> = vec![Default::default(); 40];
        for (i0, item0) in f8.iter_mut().enumerate() {
            let f45 = u8::from_le_bytes(part(fixed0, 74 + i0));
            *item0 = f45;
        }
        let mut f9: Vec<Text<'d>> = vec![Default::default(); 33];
        for (i0, item0) in f9.iter_mut().enumerate() {
            let f85 = input.text(word(fixed0, 114 + i0 * 2), start + 114 + i0 * 2).map_err(|error| error.inside_item(i0).inside("lines"))?;
            *item0 = f85;
        }
        let mut f10: [Skill; 2] = Default::default();
        for (i0, item0) in f10.iter_mut().enumerate() {
            let f118 = Skill::from_raw(u64::from_le_bytes(part(fixed0, 180 + i0 * 8)), SkillForm::Wide);
            *item0 = f118;
        }
        let f11 = input.list(word(fixed0, 196), word(fixed0, 198), start + 198, 12, |input, start| {
            let fixed0 = input.scope::<8>(start, 12)?;
            let mut f120: [i32; 2] = Default::default();
            for (i0, item0) in f120.iter_mut().enumerate() {
                let f121 = i32::from_le_bytes(part(fixed0, i0 * 4));
                *item0 = f121;
            }
            Ok(f120)
        }).map_err(|error| error.inside("steps"))?;
        let f12 = input.list(word(fixed0, 200), word(fixed0, 202), start + 202, 16, |input, start| {
            let fixed0 = input.scope::<12>(start, 16)?;
            let mut f123: [SPlacedV1Both<'d>; 2] = Default::default();
            for (i0, item0) in f123.iter_mut().enumerate() {
                let f126 = input.text(word(fixed0, i0 * 6), start + i0 * 6).map_err(|error| error.inside("s").inside_item(i0))?;
                let f127 = i32::from_le_bytes(part(fixed0, 2 + i0 * 6));
                *item0 = SPlacedV1Both { s: f126, n: f127 };
            }
            Ok(f123)
        }).map_err(|error| error.inside("both"))?;
        let f13 = input.list(word(fixed0, 204), word(fixed0, 206), start + 206, 8, |input, start| {
            let fixed0 = input.scope::<4>(start, 8)?;
            let f130 = input.list(word(fixed0, 0), word(fixed0, 2), start + 2, 8, |input, start| {
                let fixed0 = input.scope::<4>(start, 8)?;
                let f131 = input.list(word(fixed0, 0), word(fixed0, 2), start + 2, 6, |input, start| {
                    let fixed0 = input.scope::<2>(start, 6)?;
                    let f132 = input.text(word(fixed0, 0), start)?;
                    Ok(f132)
                })?;
                Ok(f131)
            })?;
            Ok(f130)
        }).map_err(|error| error.inside("deep"))?;
        let f14 = input.list(word(fixed0, 208), word(fixed0, 210), start + 210, 8, |input, start| {
            let fixed0 = input.scope::<4>(start, 8)?;
            let f133 = input.bytes(word(fixed0, 2), word(fixed0, 0), (start + 2, start))?;
            Ok(f133)
        }).map_err(|error| error.inside("blobs"))?;
        let mut f15: [SPlacedV1One<'d>; 1] = Default::default();
        for (i0, item0) in f15.iter_mut().enumerate() {
            let f135 = i16::from_le_bytes(part(fixed0, 212));
            let mut f136: [SPlacedV1OneTwo<'d>; 2] = Default::default();
            for (i1, item1) in f136.iter_mut().enumerate() {
                let f139 = input.text(word(fixed0, 214 + i1 * 2), start + 214 + i1 * 2).map_err(|error| error.inside("t").inside_item(i1).inside("two").inside_item(i0).inside("one"))?;
                *item1 = SPlacedV1OneTwo { t: f139 };
            }
            *item0 = SPlacedV1One { x: f135, two: f136 };
        }
        Ok(Self { id: f0, name: f1, grid: f2, three: f3, blob: f4, pair: f5, rows: f6, matrix: f7, many: f8, lines: f9, skills: f10, steps: f11, both: f12, deep: f13, blobs: f14, one: f15 })
    }

    fn write(&self, output: &mut Output<'_>) -> Result<()> {
        let at0 = output.fixed::<218>(|fixed| {
            put(fixed, 0, self.id.to_le_bytes());
            for (i0, &item0) in self.three.iter().enumerate() {
                put(fixed, 10 + i0 * 4, item0.to_le_bytes());
            }
            for (i0, item0) in self.rows.iter().enumerate() {
                put(fixed, 30 + i0 * 10, item0.a.to_le_bytes());
            }
            for (i0, item0) in self.matrix.iter().enumerate() {
                for (i1, &item1) in item0.iter().enumerate() {
                    put(fixed, 50 + i0 * 12 + i1 * 4, item1.to_le_bytes());
                }
            }
            for (i0, &item0) in self.many.iter().take(40).enumerate() {
                put(fixed, 74 + i0, [item0]);
            }
            for (i0, &item0) in self.skills.iter().enumerate() {
                put(fixed, 180 + i0 * 8, wide(item0).map_err(|error| error.inside_item(i0).inside("skills"))?.to_le_bytes());
            }
            for item0 in self.one.iter() {
                put(fixed, 212, item0.x.to_le_bytes());
            }
            Ok(())
        })?;
        output.text(at0 + 4, &self.name).map_err(|error| error.inside("name"))?;
        output.list((at0 + 6, at0 + 8), &self.grid, |output, item| {
            let at0 = output.fixed::<4>(|_| Ok(()))?;
            output.list((at0, at0 + 2), item, |output, &item| {
                output.fixed::<2>(|fixed| {
                    put(fixed, 0, item.to_le_bytes());
                    Ok(())
                })?;
                Ok(())
            })?;
            Ok(())
        }).map_err(|error| error.inside("grid"))?;
        output.bytes((at0 + 24, at0 + 22), &self.blob).map_err(|error| error.inside("blob"))?;
        for (i0, item0) in self.pair.iter().enumerate() {
            output.text(at0 + 26 + i0 * 2, item0).map_err(|error| error.inside_item(i0).inside("pair"))?;
        }
        for (i0, item0) in self.rows.iter().enumerate() {
            for (i1, item1) in item0.b.iter().enumerate() {
                output.text(at0 + 32 + i0 * 10 + i1 * 2, item1).map_err(|error| error.inside_item(i1).inside("b").inside_item(i0).inside("rows"))?;
            }
            output.list((at0 + 36 + i0 * 10, at0 + 38 + i0 * 10), &item0.l, |output, item| item.write(output)).map_err(|error| error.inside("l").inside_item(i0).inside("rows"))?;
        }
        row(self.many.len(), 40).map_err(|error| error.inside("many"))?;
        row(self.lines.len(), 33).map_err(|error| error.inside("lines"))?;
        let none9: Text<'_> = Default::default();
        for i0 in 0..33 {
            let item0 = self.lines.get(i0).unwrap_or(&none9);
            output.text(at0 + 114 + i0 * 2, item0).map_err(|error| error.inside_item(i0).inside("lines"))?;
        }
        output.list((at0 + 196, at0 + 198), &self.steps, |output, item| {
            output.fixed::<8>(|fixed| {
                for (i0, &item0) in item.iter().enumerate() {
                    put(fixed, i0 * 4, item0.to_le_bytes());
                }
                Ok(())
            })?;
            Ok(())
        }).map_err(|error| error.inside("steps"))?;
        output.list((at0 + 200, at0 + 202), &self.both, |output, item| {
            let at0 = output.fixed::<12>(|fixed| {
                for (i0, item0) in item.iter().enumerate() {
                    put(fixed, 2 + i0 * 6, item0.n.to_le_bytes());
                }
                Ok(())
            })?;
            for (i0, item0) in item.iter().enumerate() {
                output.text(at0 + i0 * 6, &item0.s).map_err(|error| error.inside("s").inside_item(i0))?;
            }
            Ok(())
        }).map_err(|error| error.inside("both"))?;
        output.list((at0 + 204, at0 + 206), &self.deep, |output, item| {
            let at0 = output.fixed::<4>(|_| Ok(()))?;
            output.list((at0, at0 + 2), item, |output, item| {
                let at0 = output.fixed::<4>(|_| Ok(()))?;
                output.list((at0, at0 + 2), item, |output, item| {
                    let at0 = output.fixed::<2>(|_| Ok(()))?;
                    output.text(at0, item)?;
                    Ok(())
                })?;
                Ok(())
            })?;
            Ok(())
        }).map_err(|error| error.inside("deep"))?;
        output.list((at0 + 208, at0 + 210), &self.blobs, |output, item| {
            let at0 = output.fixed::<4>(|_| Ok(()))?;
            output.bytes((at0 + 2, at0), item)?;
            Ok(())
        }).map_err(|error| error.inside("blobs"))?;
        for (i0, item0) in self.one.iter().enumerate() {
            for (i1, item1) in item0.two.iter().enumerate() {
                output.text(at0 + 214 + i1 * 2, &item1.t).map_err(|error| error.inside("t").inside_item(i1).inside("two").inside_item(i0).inside("one"))?;
            }
        }
        Ok(())
    }

    fn value(&self) -> Result<Value<'_>> {
        Ok(Value::Record(vec![
            Value::Signed(self.id.into()),
            Value::Text(Text::from_bytes(self.name.as_bytes())),
            Value::List(self.grid.iter().map(|item| Ok(Value::List(item.iter().map(|&item| Ok(Value::Signed(item.into()))).collect::<Result<_>>()?))).collect::<Result<_>>()?),
            Value::List(self.three.iter().map(|&item| Ok(Value::Signed(item.into()))).collect::<Result<_>>()?),
            Value::Bytes(Cow::Borrowed(&self.blob)),
            Value::List(self.pair.iter().map(|item| Ok(Value::Text(Text::from_bytes(item.as_bytes())))).collect::<Result<_>>()?),
            Value::List(self.rows.iter().map(|item| item.value()).collect::<Result<_>>()?),
            Value::List(self.matrix.iter().map(|item| Ok(Value::List(item.iter().map(|&item| Ok(Value::Float(item))).collect::<Result<_>>()?))).collect::<Result<_>>()?),
            Value::List(self.many.iter().map(|&item| Ok(Value::Unsigned(item.into()))).collect::<Result<_>>()?),
            Value::List(self.lines.iter().map(|item| Ok(Value::Text(Text::from_bytes(item.as_bytes())))).collect::<Result<_>>()?),
            Value::List(self.skills.iter().map(|&item| Ok(Value::Skill(wide(item)?))).collect::<Result<_>>()?),
            Value::List(self.steps.iter().map(|item| Ok(Value::List(item.iter().map(|&item| Ok(Value::Signed(item.into()))).collect::<Result<_>>()?))).collect::<Result<_>>()?),
            Value::List(self.both.iter().map(|item| Ok(Value::List(item.iter().map(|item| item.value()).collect::<Result<_>>()?))).collect::<Result<_>>()?),
            Value::List(self.deep.iter().map(|item| Ok(Value::List(item.iter().map(|item| Ok(Value::List(item.iter().map(|item| Ok(Value::Text(Text::from_bytes(item.as_bytes())))).collect::<Result<_>>()?))).collect::<Result<_>>()?))).collect::<Result<_>>()?),
            Value::List(self.blobs.iter().map(|item| Ok(Value::Bytes(Cow::Borrowed(&item)))).collect::<Result<_>>()?),
            Value::List(self.one.iter().map(|item| item.value()).collect::<Result<_>>()?),
        ]))
    }
}

/// `rows` of `S_PLACED`.
///
/// | field | type |
/// | --- | --- |
/// | `a` | `int16` |
/// | `b` | `string[2]` |
/// | `l` | `array` |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SPlacedV1Rows<'d> {
    /// `int16`.
    pub a: i16,
    /// `string[2]`.
    pub b: [Text<'d>; 2],
    /// `array`.
    pub l: Vec<SPlacedV1RowsL>,
}

impl<'d> SPlacedV1Rows<'d> {
    /// The fields as the definition has them.
    ///
    /// # Errors
    /// Value, for a skill whose parts have no room.
    pub fn value(&self) -> Result<Value<'_>> {
        Ok(Value::Record(vec![
            Value::Signed(self.a.into()),
            Value::List(self.b.iter().map(|item| Ok(Value::Text(Text::from_bytes(item.as_bytes())))).collect::<Result<_>>()?),
            Value::List(self.l.iter().map(|item| item.value()).collect::<Result<_>>()?),
        ]))
    }
}

/// `rows.l` of `S_PLACED`.
///
/// | field | type |
/// | --- | --- |
/// | `c` | `byte` |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SPlacedV1RowsL {
    /// `byte`.
    pub c: u8,
}

impl SPlacedV1RowsL {
    pub(crate) fn read(input: &mut Input<'_>, start: usize) -> Result<Self> {
        let fixed0 = input.scope::<1>(start, 5)?;
        let f30 = u8::from_le_bytes(part(fixed0, 0));
        Ok(Self { c: f30 })
    }

    pub(crate) fn write(&self, output: &mut Output<'_>) -> Result<()> {
        output.fixed::<1>(|fixed| {
            put(fixed, 0, [self.c]);
            Ok(())
        })?;
        Ok(())
    }

    /// The fields as the definition has them.
    ///
    /// # Errors
    /// Value, for a skill whose parts have no room.
    pub fn value(&self) -> Result<Value<'_>> {
        Ok(Value::Record(vec![
            Value::Unsigned(self.c.into()),
        ]))
    }
}

/// `both` of `S_PLACED`.
///
/// | field | type |
/// | --- | --- |
/// | `s` | `string` |
/// | `n` | `int32` |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SPlacedV1Both<'d> {
    /// `string`.
    pub s: Text<'d>,
    /// `int32`.
    pub n: i32,
}

impl<'d> SPlacedV1Both<'d> {
    /// The fields as the definition has them.
    ///
    /// # Errors
    /// Value, for a skill whose parts have no room.
    pub fn value(&self) -> Result<Value<'_>> {
        Ok(Value::Record(vec![
            Value::Text(Text::from_bytes(self.s.as_bytes())),
            Value::Signed(self.n.into()),
        ]))
    }
}

/// `one` of `S_PLACED`.
///
/// | field | type |
/// | --- | --- |
/// | `x` | `int16` |
/// | `two` | `object[2]` |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SPlacedV1One<'d> {
    /// `int16`.
    pub x: i16,
    /// `object[2]`.
    pub two: [SPlacedV1OneTwo<'d>; 2],
}

impl<'d> SPlacedV1One<'d> {
    /// The fields as the definition has them.
    ///
    /// # Errors
    /// Value, for a skill whose parts have no room.
    pub fn value(&self) -> Result<Value<'_>> {
        Ok(Value::Record(vec![
            Value::Signed(self.x.into()),
            Value::List(self.two.iter().map(|item| item.value()).collect::<Result<_>>()?),
        ]))
    }
}

/// `one.two` of `S_PLACED`.
///
/// | field | type |
/// | --- | --- |
/// | `t` | `string` |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SPlacedV1OneTwo<'d> {
    /// `string`.
    pub t: Text<'d>,
}

impl<'d> SPlacedV1OneTwo<'d> {
    /// The fields as the definition has them.
    ///
    /// # Errors
    /// Value, for a skill whose parts have no room.
    pub fn value(&self) -> Result<Value<'_>> {
        Ok(Value::Record(vec![
            Value::Text(Text::from_bytes(self.t.as_bytes())),
        ]))
    }
}

/// `C_CHANGE_EQUIP_PRESET`, version 1.
///
/// | field | type |
/// | --- | --- |
/// | `gameId` | `uint64` |
/// | `items` | `array` |
/// | `crystals` | `array` |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CChangeEquipPresetV1 {
    /// `uint64`.
    pub game_id: u64,
    /// `array`.
    pub items: Vec<CChangeEquipPresetV1Items>,
    /// `array`.
    pub crystals: Vec<CChangeEquipPresetV1Crystals>,
}

impl<'d> Typed<'d> for CChangeEquipPresetV1 {
    const NAME: &'static str = "C_CHANGE_EQUIP_PRESET";
    const VERSION: u32 = 1;
    const WORDS: usize = 8;

    fn read(input: &mut Input<'d>, start: usize) -> Result<Self> {
        let fixed0 = input.scope::<16>(start, 20)?;
        let f0 = u64::from_le_bytes(part(fixed0, 8));
        let before = input.cursor();
        let f1 = input.list(word(fixed0, 0), word(fixed0, 2), start + 2, 20, CChangeEquipPresetV1Items::read).map_err(|error| error.inside("items"))?;
        let end1 = input.cursor();
        let f2 = input.list(word(fixed0, 4), word(fixed0, 6), start + 6, 12, CChangeEquipPresetV1Crystals::read).map_err(|error| error.inside("crystals"))?;
        let end2 = input.cursor();
        input.close_group(before, &[(f1.len(), end1), (f2.len(), end2)]);
        Ok(Self { game_id: f0, items: f1, crystals: f2 })
    }

    fn write(&self, output: &mut Output<'_>) -> Result<()> {
        let at0 = output.fixed::<16>(|fixed| {
            put(fixed, 8, self.game_id.to_le_bytes());
            Ok(())
        })?;
        let mut lane1 = output.lane((at0, at0 + 2), self.items.len()).map_err(|error| error.inside("items"))?;
        let mut lane2 = output.lane((at0 + 4, at0 + 6), self.crystals.len()).map_err(|error| error.inside("crystals"))?;
        for (list, index) in pairs(self.items.iter().map(|item| item.slot), self.crystals.iter().map(|item| item.slot)) {
            if let (0, Some(item)) = (list, self.items.get(index)) {
                output.element(&mut lane1, |output| {
                    item.write(output)
                }).map_err(|error| error.inside("items"))?;
            }
            if let (1, Some(item)) = (list, self.crystals.get(index)) {
                output.element(&mut lane2, |output| {
                    item.write(output)
                }).map_err(|error| error.inside("crystals"))?;
            }
        }
        Ok(())
    }

    fn value(&self) -> Result<Value<'_>> {
        Ok(Value::Record(vec![
            Value::Unsigned(self.game_id),
            Value::List(self.items.iter().map(|item| item.value()).collect::<Result<_>>()?),
            Value::List(self.crystals.iter().map(|item| item.value()).collect::<Result<_>>()?),
        ]))
    }
}

/// `items` of `C_CHANGE_EQUIP_PRESET`.
///
/// | field | type |
/// | --- | --- |
/// | `slot` | `uint32` |
/// | `dbid` | `uint64` |
/// | `passivitySet` | `uint32` |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CChangeEquipPresetV1Items {
    /// `uint32`.
    pub slot: u32,
    /// `uint64`.
    pub dbid: u64,
    /// `uint32`.
    pub passivity_set: u32,
}

impl CChangeEquipPresetV1Items {
    pub(crate) fn read(input: &mut Input<'_>, start: usize) -> Result<Self> {
        let fixed0 = input.scope::<16>(start, 20)?;
        let f3 = u32::from_le_bytes(part(fixed0, 0));
        let f4 = u64::from_le_bytes(part(fixed0, 4));
        let f5 = u32::from_le_bytes(part(fixed0, 12));
        Ok(Self { slot: f3, dbid: f4, passivity_set: f5 })
    }

    pub(crate) fn write(&self, output: &mut Output<'_>) -> Result<()> {
        output.fixed::<16>(|fixed| {
            put(fixed, 0, self.slot.to_le_bytes());
            put(fixed, 4, self.dbid.to_le_bytes());
            put(fixed, 12, self.passivity_set.to_le_bytes());
            Ok(())
        })?;
        Ok(())
    }

    /// The fields as the definition has them.
    ///
    /// # Errors
    /// Value, for a skill whose parts have no room.
    pub fn value(&self) -> Result<Value<'_>> {
        Ok(Value::Record(vec![
            Value::Unsigned(self.slot.into()),
            Value::Unsigned(self.dbid),
            Value::Unsigned(self.passivity_set.into()),
        ]))
    }
}

/// `crystals` of `C_CHANGE_EQUIP_PRESET`.
///
/// | field | type |
/// | --- | --- |
/// | `slot` | `uint32` |
/// | `id` | `uint32` |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CChangeEquipPresetV1Crystals {
    /// `uint32`.
    pub slot: u32,
    /// `uint32`.
    pub id: u32,
}

impl CChangeEquipPresetV1Crystals {
    pub(crate) fn read(input: &mut Input<'_>, start: usize) -> Result<Self> {
        let fixed0 = input.scope::<8>(start, 12)?;
        let f6 = u32::from_le_bytes(part(fixed0, 0));
        let f7 = u32::from_le_bytes(part(fixed0, 4));
        Ok(Self { slot: f6, id: f7 })
    }

    pub(crate) fn write(&self, output: &mut Output<'_>) -> Result<()> {
        output.fixed::<8>(|fixed| {
            put(fixed, 0, self.slot.to_le_bytes());
            put(fixed, 4, self.id.to_le_bytes());
            Ok(())
        })?;
        Ok(())
    }

    /// The fields as the definition has them.
    ///
    /// # Errors
    /// Value, for a skill whose parts have no room.
    pub fn value(&self) -> Result<Value<'_>> {
        Ok(Value::Record(vec![
            Value::Unsigned(self.slot.into()),
            Value::Unsigned(self.id.into()),
        ]))
    }
}
