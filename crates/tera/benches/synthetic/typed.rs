// Made by worldwire from message definitions. Changes are lost when it is made again.

use std::borrow::Cow;

use worldwire_core::Result;
use worldwire_tera::message::Value;
use worldwire_tera::message::typed::{Input, Output, Typed, floats, part, put, put_floats, word};
use worldwire_tera::types::{Angle, Text};

/// `S_SYNTHETIC_USER`, version 1.
///
/// | field | type |
/// | --- | --- |
/// | `world` | `uint32` |
/// | `person` | `uint32` |
/// | `id` | `uint64` |
/// | `place` | `vec3` |
/// | `facing` | `angle` |
/// | `relation` | `int32` |
/// | `kind` | `int32` |
/// | `zone` | `int16` |
/// | `walking` | `int16` |
/// | `running` | `int16` |
/// | `mode` | `int16` |
/// | `state` | `int16` |
/// | `shown` | `bool` |
/// | `living` | `bool` |
/// | `looks` | `customize` |
/// | `sword` | `uint32` |
/// | `coat` | `uint32` |
/// | `gloves` | `uint32` |
/// | `shoes` | `uint32` |
/// | `shirt` | `uint32` |
/// | `hat` | `uint32` |
/// | `mask` | `uint32` |
/// | `effect` | `int32` |
/// | `horse` | `int32` |
/// | `pose` | `int32` |
/// | `rank` | `int32` |
/// | `ferry` | `int64` |
/// | `sign` | `int32` |
/// | `fair` | `bool` |
/// | `master` | `bool` |
/// | `hidden` | `bool` |
/// | `dye0` | `uint32` |
/// | `dye1` | `uint32` |
/// | `dye2` | `uint32` |
/// | `dye3` | `uint32` |
/// | `dye4` | `uint32` |
/// | `dye5` | `uint32` |
/// | `dye6` | `uint32` |
/// | `charm` | `uint32` |
/// | `target` | `bool` |
/// | `duels` | `bool` |
/// | `level` | `int32` |
/// | `carriage` | `uint64` |
/// | `face` | `bool` |
/// | `style0` | `uint32` |
/// | `style1` | `uint32` |
/// | `style2` | `uint32` |
/// | `style3` | `uint32` |
/// | `size0` | `float` |
/// | `turn0` | `vec3fa` |
/// | `shift0` | `vec3` |
/// | `size1` | `float` |
/// | `turn1` | `vec3fa` |
/// | `shift1` | `vec3` |
/// | `size2` | `float` |
/// | `turn2` | `vec3fa` |
/// | `shift2` | `vec3` |
/// | `party` | `int32` |
/// | `crowd` | `bool` |
/// | `titles` | `int64` |
/// | `scale` | `float` |
/// | `icons` | `array<int32>` |
/// | `name` | `string` |
/// | `guild` | `string` |
/// | `guildRank` | `string` |
/// | `details` | `bytes` |
/// | `crest` | `string` |
/// | `shape` | `bytes` |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SSyntheticUserV1<'d> {
    /// `uint32`.
    pub world: u32,
    /// `uint32`.
    pub person: u32,
    /// `uint64`.
    pub id: u64,
    /// `vec3`.
    pub place: [f32; 3],
    /// `angle`.
    pub facing: Angle,
    /// `int32`.
    pub relation: i32,
    /// `int32`.
    pub kind: i32,
    /// `int16`.
    pub zone: i16,
    /// `int16`.
    pub walking: i16,
    /// `int16`.
    pub running: i16,
    /// `int16`.
    pub mode: i16,
    /// `int16`.
    pub state: i16,
    /// `bool`.
    pub shown: bool,
    /// `bool`.
    pub living: bool,
    /// `customize`.
    pub looks: [u8; 8],
    /// `uint32`.
    pub sword: u32,
    /// `uint32`.
    pub coat: u32,
    /// `uint32`.
    pub gloves: u32,
    /// `uint32`.
    pub shoes: u32,
    /// `uint32`.
    pub shirt: u32,
    /// `uint32`.
    pub hat: u32,
    /// `uint32`.
    pub mask: u32,
    /// `int32`.
    pub effect: i32,
    /// `int32`.
    pub horse: i32,
    /// `int32`.
    pub pose: i32,
    /// `int32`.
    pub rank: i32,
    /// `int64`.
    pub ferry: i64,
    /// `int32`.
    pub sign: i32,
    /// `bool`.
    pub fair: bool,
    /// `bool`.
    pub master: bool,
    /// `bool`.
    pub hidden: bool,
    /// `uint32`.
    pub dye0: u32,
    /// `uint32`.
    pub dye1: u32,
    /// `uint32`.
    pub dye2: u32,
    /// `uint32`.
    pub dye3: u32,
    /// `uint32`.
    pub dye4: u32,
    /// `uint32`.
    pub dye5: u32,
    /// `uint32`.
    pub dye6: u32,
    /// `uint32`.
    pub charm: u32,
    /// `bool`.
    pub target: bool,
    /// `bool`.
    pub duels: bool,
    /// `int32`.
    pub level: i32,
    /// `uint64`.
    pub carriage: u64,
    /// `bool`.
    pub face: bool,
    /// `uint32`.
    pub style0: u32,
    /// `uint32`.
    pub style1: u32,
    /// `uint32`.
    pub style2: u32,
    /// `uint32`.
    pub style3: u32,
    /// `float`.
    pub size0: f32,
    /// `vec3fa`.
    pub turn0: [f32; 3],
    /// `vec3`.
    pub shift0: [f32; 3],
    /// `float`.
    pub size1: f32,
    /// `vec3fa`.
    pub turn1: [f32; 3],
    /// `vec3`.
    pub shift1: [f32; 3],
    /// `float`.
    pub size2: f32,
    /// `vec3fa`.
    pub turn2: [f32; 3],
    /// `vec3`.
    pub shift2: [f32; 3],
    /// `int32`.
    pub party: i32,
    /// `bool`.
    pub crowd: bool,
    /// `int64`.
    pub titles: i64,
    /// `float`.
    pub scale: f32,
    /// `array<int32>`.
    pub icons: Vec<i32>,
    /// `string`.
    pub name: Text<'d>,
    /// `string`.
    pub guild: Text<'d>,
    /// `string`.
    pub guild_rank: Text<'d>,
    /// `bytes`.
    pub details: Cow<'d, [u8]>,
    /// `string`.
    pub crest: Text<'d>,
    /// `bytes`.
    pub shape: Cow<'d, [u8]>,
}

impl<'d> Typed<'d> for SSyntheticUserV1<'d> {
    const NAME: &'static str = "S_SYNTHETIC_USER";
    const VERSION: u32 = 1;
    const WORDS: usize = 20;

    fn read(input: &mut Input<'d>, start: usize) -> Result<Self> {
        let fixed0 = input.scope::<301>(start, 305)?;
        let f0 = u32::from_le_bytes(part(fixed0, 20));
        let f1 = u32::from_le_bytes(part(fixed0, 24));
        let f2 = u64::from_le_bytes(part(fixed0, 28));
        let f3 = floats(fixed0, 36);
        let f4 = Angle(i16::from_le_bytes(part(fixed0, 48)));
        let f5 = i32::from_le_bytes(part(fixed0, 50));
        let f6 = i32::from_le_bytes(part(fixed0, 54));
        let f7 = i16::from_le_bytes(part(fixed0, 58));
        let f8 = i16::from_le_bytes(part(fixed0, 60));
        let f9 = i16::from_le_bytes(part(fixed0, 62));
        let f10 = i16::from_le_bytes(part(fixed0, 64));
        let f11 = i16::from_le_bytes(part(fixed0, 66));
        let f12 = part(fixed0, 68) != [0];
        let f13 = part(fixed0, 69) != [0];
        let f14 = part(fixed0, 70);
        let f15 = u32::from_le_bytes(part(fixed0, 78));
        let f16 = u32::from_le_bytes(part(fixed0, 82));
        let f17 = u32::from_le_bytes(part(fixed0, 86));
        let f18 = u32::from_le_bytes(part(fixed0, 90));
        let f19 = u32::from_le_bytes(part(fixed0, 94));
        let f20 = u32::from_le_bytes(part(fixed0, 98));
        let f21 = u32::from_le_bytes(part(fixed0, 102));
        let f22 = i32::from_le_bytes(part(fixed0, 106));
        let f23 = i32::from_le_bytes(part(fixed0, 110));
        let f24 = i32::from_le_bytes(part(fixed0, 114));
        let f25 = i32::from_le_bytes(part(fixed0, 118));
        let f26 = i64::from_le_bytes(part(fixed0, 122));
        let f27 = i32::from_le_bytes(part(fixed0, 130));
        let f28 = part(fixed0, 134) != [0];
        let f29 = part(fixed0, 135) != [0];
        let f30 = part(fixed0, 136) != [0];
        let f31 = u32::from_le_bytes(part(fixed0, 137));
        let f32 = u32::from_le_bytes(part(fixed0, 141));
        let f33 = u32::from_le_bytes(part(fixed0, 145));
        let f34 = u32::from_le_bytes(part(fixed0, 149));
        let f35 = u32::from_le_bytes(part(fixed0, 153));
        let f36 = u32::from_le_bytes(part(fixed0, 157));
        let f37 = u32::from_le_bytes(part(fixed0, 161));
        let f38 = u32::from_le_bytes(part(fixed0, 165));
        let f39 = part(fixed0, 169) != [0];
        let f40 = part(fixed0, 170) != [0];
        let f41 = i32::from_le_bytes(part(fixed0, 171));
        let f42 = u64::from_le_bytes(part(fixed0, 175));
        let f43 = part(fixed0, 183) != [0];
        let f44 = u32::from_le_bytes(part(fixed0, 184));
        let f45 = u32::from_le_bytes(part(fixed0, 188));
        let f46 = u32::from_le_bytes(part(fixed0, 192));
        let f47 = u32::from_le_bytes(part(fixed0, 196));
        let f48 = f32::from_le_bytes(part(fixed0, 200));
        let f49 = floats(fixed0, 204);
        let f50 = floats(fixed0, 216);
        let f51 = f32::from_le_bytes(part(fixed0, 228));
        let f52 = floats(fixed0, 232);
        let f53 = floats(fixed0, 244);
        let f54 = f32::from_le_bytes(part(fixed0, 256));
        let f55 = floats(fixed0, 260);
        let f56 = floats(fixed0, 272);
        let f57 = i32::from_le_bytes(part(fixed0, 284));
        let f58 = part(fixed0, 288) != [0];
        let f59 = i64::from_le_bytes(part(fixed0, 289));
        let f60 = f32::from_le_bytes(part(fixed0, 297));
        let f61 = input.list(word(fixed0, 0), word(fixed0, 2), start + 2, 8, |input, start| {
            let fixed0 = input.scope::<4>(start, 8)?;
            let f68 = i32::from_le_bytes(part(fixed0, 0));
            Ok(f68)
        }).map_err(|error| error.inside("icons"))?;
        let f62 = input.text(word(fixed0, 4), start + 4).map_err(|error| error.inside("name"))?;
        let f63 = input.text(word(fixed0, 6), start + 6).map_err(|error| error.inside("guild"))?;
        let f64 = input.text(word(fixed0, 8), start + 8).map_err(|error| error.inside("guildRank"))?;
        let f65 = input.bytes(word(fixed0, 12), word(fixed0, 10), (start + 12, start + 10)).map_err(|error| error.inside("details"))?;
        let f66 = input.text(word(fixed0, 14), start + 14).map_err(|error| error.inside("crest"))?;
        let f67 = input.bytes(word(fixed0, 18), word(fixed0, 16), (start + 18, start + 16)).map_err(|error| error.inside("shape"))?;
        Ok(Self { world: f0, person: f1, id: f2, place: f3, facing: f4, relation: f5, kind: f6, zone: f7, walking: f8, running: f9, mode: f10, state: f11, shown: f12, living: f13, looks: f14, sword: f15, coat: f16, gloves: f17, shoes: f18, shirt: f19, hat: f20, mask: f21, effect: f22, horse: f23, pose: f24, rank: f25, ferry: f26, sign: f27, fair: f28, master: f29, hidden: f30, dye0: f31, dye1: f32, dye2: f33, dye3: f34, dye4: f35, dye5: f36, dye6: f37, charm: f38, target: f39, duels: f40, level: f41, carriage: f42, face: f43, style0: f44, style1: f45, style2: f46, style3: f47, size0: f48, turn0: f49, shift0: f50, size1: f51, turn1: f52, shift1: f53, size2: f54, turn2: f55, shift2: f56, party: f57, crowd: f58, titles: f59, scale: f60, icons: f61, name: f62, guild: f63, guild_rank: f64, details: f65, crest: f66, shape: f67 })
    }

    fn write(&self, output: &mut Output<'_>) -> Result<()> {
        let at0 = output.fixed::<301>(|fixed| {
            put(fixed, 20, self.world.to_le_bytes());
            put(fixed, 24, self.person.to_le_bytes());
            put(fixed, 28, self.id.to_le_bytes());
            put_floats(fixed, 36, self.place);
            put(fixed, 48, self.facing.0.to_le_bytes());
            put(fixed, 50, self.relation.to_le_bytes());
            put(fixed, 54, self.kind.to_le_bytes());
            put(fixed, 58, self.zone.to_le_bytes());
            put(fixed, 60, self.walking.to_le_bytes());
            put(fixed, 62, self.running.to_le_bytes());
            put(fixed, 64, self.mode.to_le_bytes());
            put(fixed, 66, self.state.to_le_bytes());
            put(fixed, 68, [u8::from(self.shown)]);
            put(fixed, 69, [u8::from(self.living)]);
            put(fixed, 70, self.looks);
            put(fixed, 78, self.sword.to_le_bytes());
            put(fixed, 82, self.coat.to_le_bytes());
            put(fixed, 86, self.gloves.to_le_bytes());
            put(fixed, 90, self.shoes.to_le_bytes());
            put(fixed, 94, self.shirt.to_le_bytes());
            put(fixed, 98, self.hat.to_le_bytes());
            put(fixed, 102, self.mask.to_le_bytes());
            put(fixed, 106, self.effect.to_le_bytes());
            put(fixed, 110, self.horse.to_le_bytes());
            put(fixed, 114, self.pose.to_le_bytes());
            put(fixed, 118, self.rank.to_le_bytes());
            put(fixed, 122, self.ferry.to_le_bytes());
            put(fixed, 130, self.sign.to_le_bytes());
            put(fixed, 134, [u8::from(self.fair)]);
            put(fixed, 135, [u8::from(self.master)]);
            put(fixed, 136, [u8::from(self.hidden)]);
            put(fixed, 137, self.dye0.to_le_bytes());
            put(fixed, 141, self.dye1.to_le_bytes());
            put(fixed, 145, self.dye2.to_le_bytes());
            put(fixed, 149, self.dye3.to_le_bytes());
            put(fixed, 153, self.dye4.to_le_bytes());
            put(fixed, 157, self.dye5.to_le_bytes());
            put(fixed, 161, self.dye6.to_le_bytes());
            put(fixed, 165, self.charm.to_le_bytes());
            put(fixed, 169, [u8::from(self.target)]);
            put(fixed, 170, [u8::from(self.duels)]);
            put(fixed, 171, self.level.to_le_bytes());
            put(fixed, 175, self.carriage.to_le_bytes());
            put(fixed, 183, [u8::from(self.face)]);
            put(fixed, 184, self.style0.to_le_bytes());
            put(fixed, 188, self.style1.to_le_bytes());
            put(fixed, 192, self.style2.to_le_bytes());
            put(fixed, 196, self.style3.to_le_bytes());
            put(fixed, 200, self.size0.to_le_bytes());
            put_floats(fixed, 204, self.turn0);
            put_floats(fixed, 216, self.shift0);
            put(fixed, 228, self.size1.to_le_bytes());
            put_floats(fixed, 232, self.turn1);
            put_floats(fixed, 244, self.shift1);
            put(fixed, 256, self.size2.to_le_bytes());
            put_floats(fixed, 260, self.turn2);
            put_floats(fixed, 272, self.shift2);
            put(fixed, 284, self.party.to_le_bytes());
            put(fixed, 288, [u8::from(self.crowd)]);
            put(fixed, 289, self.titles.to_le_bytes());
            put(fixed, 297, self.scale.to_le_bytes());
            Ok(())
        })?;
        output.list((at0, at0 + 2), &self.icons, |output, &item| {
            output.fixed::<4>(|fixed| {
                put(fixed, 0, item.to_le_bytes());
                Ok(())
            })?;
            Ok(())
        }).map_err(|error| error.inside("icons"))?;
        output.text(at0 + 4, &self.name).map_err(|error| error.inside("name"))?;
        output.text(at0 + 6, &self.guild).map_err(|error| error.inside("guild"))?;
        output.text(at0 + 8, &self.guild_rank).map_err(|error| error.inside("guildRank"))?;
        output.bytes((at0 + 12, at0 + 10), &self.details).map_err(|error| error.inside("details"))?;
        output.text(at0 + 14, &self.crest).map_err(|error| error.inside("crest"))?;
        output.bytes((at0 + 18, at0 + 16), &self.shape).map_err(|error| error.inside("shape"))?;
        Ok(())
    }

    fn value(&self) -> Result<Value<'_>> {
        Ok(Value::Record(vec![
            Value::Unsigned(self.world.into()),
            Value::Unsigned(self.person.into()),
            Value::Unsigned(self.id),
            Value::Vec3(self.place),
            Value::Angle(self.facing),
            Value::Signed(self.relation.into()),
            Value::Signed(self.kind.into()),
            Value::Signed(self.zone.into()),
            Value::Signed(self.walking.into()),
            Value::Signed(self.running.into()),
            Value::Signed(self.mode.into()),
            Value::Signed(self.state.into()),
            Value::Bool(self.shown),
            Value::Bool(self.living),
            Value::Customize(self.looks),
            Value::Unsigned(self.sword.into()),
            Value::Unsigned(self.coat.into()),
            Value::Unsigned(self.gloves.into()),
            Value::Unsigned(self.shoes.into()),
            Value::Unsigned(self.shirt.into()),
            Value::Unsigned(self.hat.into()),
            Value::Unsigned(self.mask.into()),
            Value::Signed(self.effect.into()),
            Value::Signed(self.horse.into()),
            Value::Signed(self.pose.into()),
            Value::Signed(self.rank.into()),
            Value::Signed(self.ferry),
            Value::Signed(self.sign.into()),
            Value::Bool(self.fair),
            Value::Bool(self.master),
            Value::Bool(self.hidden),
            Value::Unsigned(self.dye0.into()),
            Value::Unsigned(self.dye1.into()),
            Value::Unsigned(self.dye2.into()),
            Value::Unsigned(self.dye3.into()),
            Value::Unsigned(self.dye4.into()),
            Value::Unsigned(self.dye5.into()),
            Value::Unsigned(self.dye6.into()),
            Value::Unsigned(self.charm.into()),
            Value::Bool(self.target),
            Value::Bool(self.duels),
            Value::Signed(self.level.into()),
            Value::Unsigned(self.carriage),
            Value::Bool(self.face),
            Value::Unsigned(self.style0.into()),
            Value::Unsigned(self.style1.into()),
            Value::Unsigned(self.style2.into()),
            Value::Unsigned(self.style3.into()),
            Value::Float(self.size0),
            Value::Vec3fa(self.turn0),
            Value::Vec3(self.shift0),
            Value::Float(self.size1),
            Value::Vec3fa(self.turn1),
            Value::Vec3(self.shift1),
            Value::Float(self.size2),
            Value::Vec3fa(self.turn2),
            Value::Vec3(self.shift2),
            Value::Signed(self.party.into()),
            Value::Bool(self.crowd),
            Value::Signed(self.titles),
            Value::Float(self.scale),
            Value::List(self.icons.iter().map(|&item| Ok(Value::Signed(item.into()))).collect::<Result<_>>()?),
            Value::Text(Text::from_bytes(self.name.as_bytes())),
            Value::Text(Text::from_bytes(self.guild.as_bytes())),
            Value::Text(Text::from_bytes(self.guild_rank.as_bytes())),
            Value::Bytes(Cow::Borrowed(&self.details)),
            Value::Text(Text::from_bytes(self.crest.as_bytes())),
            Value::Bytes(Cow::Borrowed(&self.shape)),
        ]))
    }
}

/// `S_SYNTHETIC_BAG`, version 1.
///
/// | field | type |
/// | --- | --- |
/// | `id` | `uint64` |
/// | `pages` | `int32` |
/// | `money` | `int64` |
/// | `open` | `bool` |
/// | `first` | `bool` |
/// | `more` | `bool` |
/// | `mean` | `int32` |
/// | `best` | `int32` |
/// | `items` | `array` |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SSyntheticBagV1<'d> {
    /// `uint64`.
    pub id: u64,
    /// `int32`.
    pub pages: i32,
    /// `int64`.
    pub money: i64,
    /// `bool`.
    pub open: bool,
    /// `bool`.
    pub first: bool,
    /// `bool`.
    pub more: bool,
    /// `int32`.
    pub mean: i32,
    /// `int32`.
    pub best: i32,
    /// `array`.
    pub items: Vec<SSyntheticBagV1Items<'d>>,
}

impl<'d> Typed<'d> for SSyntheticBagV1<'d> {
    const NAME: &'static str = "S_SYNTHETIC_BAG";
    const VERSION: u32 = 1;
    const WORDS: usize = 4;

    fn read(input: &mut Input<'d>, start: usize) -> Result<Self> {
        let fixed0 = input.scope::<35>(start, 39)?;
        let f0 = u64::from_le_bytes(part(fixed0, 4));
        let f1 = i32::from_le_bytes(part(fixed0, 12));
        let f2 = i64::from_le_bytes(part(fixed0, 16));
        let f3 = part(fixed0, 24) != [0];
        let f4 = part(fixed0, 25) != [0];
        let f5 = part(fixed0, 26) != [0];
        let f6 = i32::from_le_bytes(part(fixed0, 27));
        let f7 = i32::from_le_bytes(part(fixed0, 31));
        let f8 = input.list(word(fixed0, 0), word(fixed0, 2), start + 2, 14, SSyntheticBagV1Items::read).map_err(|error| error.inside("items"))?;
        Ok(Self { id: f0, pages: f1, money: f2, open: f3, first: f4, more: f5, mean: f6, best: f7, items: f8 })
    }

    fn write(&self, output: &mut Output<'_>) -> Result<()> {
        let at0 = output.fixed::<35>(|fixed| {
            put(fixed, 4, self.id.to_le_bytes());
            put(fixed, 12, self.pages.to_le_bytes());
            put(fixed, 16, self.money.to_le_bytes());
            put(fixed, 24, [u8::from(self.open)]);
            put(fixed, 25, [u8::from(self.first)]);
            put(fixed, 26, [u8::from(self.more)]);
            put(fixed, 27, self.mean.to_le_bytes());
            put(fixed, 31, self.best.to_le_bytes());
            Ok(())
        })?;
        output.list((at0, at0 + 2), &self.items, |output, item| item.write(output)).map_err(|error| error.inside("items"))?;
        Ok(())
    }

    fn value(&self) -> Result<Value<'_>> {
        Ok(Value::Record(vec![
            Value::Unsigned(self.id),
            Value::Signed(self.pages.into()),
            Value::Signed(self.money),
            Value::Bool(self.open),
            Value::Bool(self.first),
            Value::Bool(self.more),
            Value::Signed(self.mean.into()),
            Value::Signed(self.best.into()),
            Value::List(self.items.iter().map(|item| item.value()).collect::<Result<_>>()?),
        ]))
    }
}

/// `items` of `S_SYNTHETIC_BAG`.
///
/// | field | type |
/// | --- | --- |
/// | `crystals` | `array` |
/// | `passives` | `array` |
/// | `kind` | `int32` |
/// | `item` | `uint64` |
/// | `owner` | `uint64` |
/// | `slot` | `int32` |
/// | `amount` | `int32` |
/// | `charm` | `int32` |
/// | `bound` | `bool` |
/// | `luck` | `int32` |
/// | `dye` | `int32` |
/// | `until` | `int64` |
/// | `used` | `bool` |
/// | `level` | `int32` |
/// | `experience` | `uint64` |
/// | `awake` | `bool` |
/// | `maker` | `string` |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SSyntheticBagV1Items<'d> {
    /// `array`.
    pub crystals: Vec<SSyntheticBagV1ItemsCrystals>,
    /// `array`.
    pub passives: Vec<SSyntheticBagV1ItemsPassives>,
    /// `int32`.
    pub kind: i32,
    /// `uint64`.
    pub item: u64,
    /// `uint64`.
    pub owner: u64,
    /// `int32`.
    pub slot: i32,
    /// `int32`.
    pub amount: i32,
    /// `int32`.
    pub charm: i32,
    /// `bool`.
    pub bound: bool,
    /// `int32`.
    pub luck: i32,
    /// `int32`.
    pub dye: i32,
    /// `int64`.
    pub until: i64,
    /// `bool`.
    pub used: bool,
    /// `int32`.
    pub level: i32,
    /// `uint64`.
    pub experience: u64,
    /// `bool`.
    pub awake: bool,
    /// `string`.
    pub maker: Text<'d>,
}

impl<'d> SSyntheticBagV1Items<'d> {
    pub(crate) fn read(input: &mut Input<'d>, start: usize) -> Result<Self> {
        let fixed0 = input.scope::<10>(start, 14)?;
        let f9 = input.list(word(fixed0, 0), word(fixed0, 2), start + 2, 12, SSyntheticBagV1ItemsCrystals::read).map_err(|error| error.inside("crystals"))?;
        let f10 = input.list(word(fixed0, 4), word(fixed0, 6), start + 6, 8, SSyntheticBagV1ItemsPassives::read).map_err(|error| error.inside("passives"))?;
        let (at1, fixed1) = input.segment::<63>()?;
        let _ = (at1, fixed1);
        let f11 = i32::from_le_bytes(part(fixed1, 0));
        let f12 = u64::from_le_bytes(part(fixed1, 4));
        let f13 = u64::from_le_bytes(part(fixed1, 12));
        let f14 = i32::from_le_bytes(part(fixed1, 20));
        let f15 = i32::from_le_bytes(part(fixed1, 24));
        let f16 = i32::from_le_bytes(part(fixed1, 28));
        let f17 = part(fixed1, 32) != [0];
        let f18 = i32::from_le_bytes(part(fixed1, 33));
        let f19 = i32::from_le_bytes(part(fixed1, 37));
        let f20 = i64::from_le_bytes(part(fixed1, 41));
        let f21 = part(fixed1, 49) != [0];
        let f22 = i32::from_le_bytes(part(fixed1, 50));
        let f23 = u64::from_le_bytes(part(fixed1, 54));
        let f24 = part(fixed1, 62) != [0];
        let f25 = input.text(word(fixed0, 8), start + 8).map_err(|error| error.inside("maker"))?;
        Ok(Self { crystals: f9, passives: f10, kind: f11, item: f12, owner: f13, slot: f14, amount: f15, charm: f16, bound: f17, luck: f18, dye: f19, until: f20, used: f21, level: f22, experience: f23, awake: f24, maker: f25 })
    }

    pub(crate) fn write(&self, output: &mut Output<'_>) -> Result<()> {
        let at0 = output.fixed::<10>(|_| Ok(()))?;
        output.list((at0, at0 + 2), &self.crystals, |output, item| item.write(output)).map_err(|error| error.inside("crystals"))?;
        output.list((at0 + 4, at0 + 6), &self.passives, |output, item| item.write(output)).map_err(|error| error.inside("passives"))?;
        let at1 = output.fixed::<63>(|fixed| {
            put(fixed, 0, self.kind.to_le_bytes());
            put(fixed, 4, self.item.to_le_bytes());
            put(fixed, 12, self.owner.to_le_bytes());
            put(fixed, 20, self.slot.to_le_bytes());
            put(fixed, 24, self.amount.to_le_bytes());
            put(fixed, 28, self.charm.to_le_bytes());
            put(fixed, 32, [u8::from(self.bound)]);
            put(fixed, 33, self.luck.to_le_bytes());
            put(fixed, 37, self.dye.to_le_bytes());
            put(fixed, 41, self.until.to_le_bytes());
            put(fixed, 49, [u8::from(self.used)]);
            put(fixed, 50, self.level.to_le_bytes());
            put(fixed, 54, self.experience.to_le_bytes());
            put(fixed, 62, [u8::from(self.awake)]);
            Ok(())
        })?;
        let _ = at1;
        output.text(at0 + 8, &self.maker).map_err(|error| error.inside("maker"))?;
        Ok(())
    }

    /// The fields as the definition has them.
    ///
    /// # Errors
    /// Value, for a skill whose parts have no room.
    pub fn value(&self) -> Result<Value<'_>> {
        Ok(Value::Record(vec![
            Value::List(self.crystals.iter().map(|item| item.value()).collect::<Result<_>>()?),
            Value::List(self.passives.iter().map(|item| item.value()).collect::<Result<_>>()?),
            Value::Signed(self.kind.into()),
            Value::Unsigned(self.item),
            Value::Unsigned(self.owner),
            Value::Signed(self.slot.into()),
            Value::Signed(self.amount.into()),
            Value::Signed(self.charm.into()),
            Value::Bool(self.bound),
            Value::Signed(self.luck.into()),
            Value::Signed(self.dye.into()),
            Value::Signed(self.until),
            Value::Bool(self.used),
            Value::Signed(self.level.into()),
            Value::Unsigned(self.experience),
            Value::Bool(self.awake),
            Value::Text(Text::from_bytes(self.maker.as_bytes())),
        ]))
    }
}

/// `items.crystals` of `S_SYNTHETIC_BAG`.
///
/// | field | type |
/// | --- | --- |
/// | `kind` | `int32` |
/// | `place` | `int32` |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SSyntheticBagV1ItemsCrystals {
    /// `int32`.
    pub kind: i32,
    /// `int32`.
    pub place: i32,
}

impl SSyntheticBagV1ItemsCrystals {
    pub(crate) fn read(input: &mut Input<'_>, start: usize) -> Result<Self> {
        let fixed0 = input.scope::<8>(start, 12)?;
        let f26 = i32::from_le_bytes(part(fixed0, 0));
        let f27 = i32::from_le_bytes(part(fixed0, 4));
        Ok(Self { kind: f26, place: f27 })
    }

    pub(crate) fn write(&self, output: &mut Output<'_>) -> Result<()> {
        output.fixed::<8>(|fixed| {
            put(fixed, 0, self.kind.to_le_bytes());
            put(fixed, 4, self.place.to_le_bytes());
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
            Value::Signed(self.kind.into()),
            Value::Signed(self.place.into()),
        ]))
    }
}

/// `items.passives` of `S_SYNTHETIC_BAG`.
///
/// | field | type |
/// | --- | --- |
/// | `kind` | `int32` |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SSyntheticBagV1ItemsPassives {
    /// `int32`.
    pub kind: i32,
}

impl SSyntheticBagV1ItemsPassives {
    pub(crate) fn read(input: &mut Input<'_>, start: usize) -> Result<Self> {
        let fixed0 = input.scope::<4>(start, 8)?;
        let f28 = i32::from_le_bytes(part(fixed0, 0));
        Ok(Self { kind: f28 })
    }

    pub(crate) fn write(&self, output: &mut Output<'_>) -> Result<()> {
        output.fixed::<4>(|fixed| {
            put(fixed, 0, self.kind.to_le_bytes());
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
            Value::Signed(self.kind.into()),
        ]))
    }
}

/// `C_SYNTHETIC_STEPS`, version 1.
///
/// | field | type |
/// | --- | --- |
/// | `place` | `vec3` |
/// | `facing` | `angle` |
/// | `looking` | `angle` |
/// | `goal` | `vec3` |
/// | `kind` | `int32` |
/// | `slide` | `int16` |
/// | `time` | `uint32` |
/// | `shadow` | `bool` |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CSyntheticStepsV1 {
    /// `vec3`.
    pub place: [f32; 3],
    /// `angle`.
    pub facing: Angle,
    /// `angle`.
    pub looking: Angle,
    /// `vec3`.
    pub goal: [f32; 3],
    /// `int32`.
    pub kind: i32,
    /// `int16`.
    pub slide: i16,
    /// `uint32`.
    pub time: u32,
    /// `bool`.
    pub shadow: bool,
}

impl<'d> Typed<'d> for CSyntheticStepsV1 {
    const NAME: &'static str = "C_SYNTHETIC_STEPS";
    const VERSION: u32 = 1;
    const WORDS: usize = 0;

    fn read(input: &mut Input<'d>, start: usize) -> Result<Self> {
        let fixed0 = input.scope::<39>(start, 43)?;
        let f0 = floats(fixed0, 0);
        let f1 = Angle(i16::from_le_bytes(part(fixed0, 12)));
        let f2 = Angle(i16::from_le_bytes(part(fixed0, 14)));
        let f3 = floats(fixed0, 16);
        let f4 = i32::from_le_bytes(part(fixed0, 28));
        let f5 = i16::from_le_bytes(part(fixed0, 32));
        let f6 = u32::from_le_bytes(part(fixed0, 34));
        let f7 = part(fixed0, 38) != [0];
        Ok(Self { place: f0, facing: f1, looking: f2, goal: f3, kind: f4, slide: f5, time: f6, shadow: f7 })
    }

    fn write(&self, output: &mut Output<'_>) -> Result<()> {
        output.fixed::<39>(|fixed| {
            put_floats(fixed, 0, self.place);
            put(fixed, 12, self.facing.0.to_le_bytes());
            put(fixed, 14, self.looking.0.to_le_bytes());
            put_floats(fixed, 16, self.goal);
            put(fixed, 28, self.kind.to_le_bytes());
            put(fixed, 32, self.slide.to_le_bytes());
            put(fixed, 34, self.time.to_le_bytes());
            put(fixed, 38, [u8::from(self.shadow)]);
            Ok(())
        })?;
        Ok(())
    }

    fn value(&self) -> Result<Value<'_>> {
        Ok(Value::Record(vec![
            Value::Vec3(self.place),
            Value::Angle(self.facing),
            Value::Angle(self.looking),
            Value::Vec3(self.goal),
            Value::Signed(self.kind.into()),
            Value::Signed(self.slide.into()),
            Value::Unsigned(self.time.into()),
            Value::Bool(self.shadow),
        ]))
    }
}
