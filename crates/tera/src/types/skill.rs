//! Skill identifiers.

use core::fmt;
use core::str::FromStr;

/// How a skill identifier is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SkillForm {
    /// 64 bits, patch 74 and later.
    Wide,
    /// 32 bits, patch 73 and earlier, and `skillid32`.
    Narrow,
}

impl SkillForm {
    /// Number of bits for the ID if there is no hunting zone.
    const fn id_bits(self) -> u32 {
        match self {
            Self::Wide => 28,
            Self::Narrow => 26,
        }
    }

    /// The bit that marks a monster's skill.
    const fn npc_bit(self) -> u32 {
        match self {
            Self::Wide => 32,
            Self::Narrow => 30,
        }
    }

    /// Number of bits with unknown meaning.
    const fn reserved_bits(self) -> u32 {
        match self {
            Self::Wide => 31,
            Self::Narrow => 1,
        }
    }
}

/// A skill identifier, split into its parts.
///
/// | bits of 64 | bits of 32 | part |
/// | --- | --- | --- |
/// | 0..28 | 0..26 | `id`; only the lowest 16 bits for monster skills of type 1 |
/// | 16..28 | 16..26 | `huntingZoneId`, for monster skills of type 1 |
/// | 28..32 | 26..30 | `type`: 1 action, 2 reaction |
/// | 32 | 30 | `npc`: whether it is a monster's skill |
/// | 33..64 | 31 | `reserved` |
///
/// The parts cover every bit, so no information is lost.
///
/// ```
/// use worldwire_tera::types::{Skill, SkillForm};
/// let skill = Skill::from_raw(0x1_11f4_044d, SkillForm::Wide);
/// assert_eq!((skill.zone, skill.id, skill.npc), (500, 1101, true));
/// assert_eq!(skill.to_string(), "A500:1101");
/// assert_eq!("A500:1101".parse(), Ok(skill));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Skill {
    /// Bits with unknown meaning: 31, or 1 in the narrow form.
    pub reserved: u32,
    /// Whether it is a monster's skill.
    pub npc: bool,
    /// 1 action, 2 reaction; 4 bits.
    pub kind: u8,
    /// The hunting zone; 0 unless it is a monster's skill of type 1.
    pub zone: u16,
    /// The ID within its type.
    pub id: u32,
}

/// A part that does not fit its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartTooBig {
    /// The part's name in JSON.
    pub part: &'static str,
    /// The largest value that fits.
    pub max: u64,
}

impl Skill {
    /// A player's action (type 1), which a bare number stands for.
    #[must_use]
    pub const fn action(id: u32) -> Self {
        Self { reserved: 0, npc: false, kind: 1, zone: 0, id }
    }

    /// Splits a raw number. The narrow form is in the low half.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "every part is masked to its width")]
    pub const fn from_raw(raw: u64, form: SkillForm) -> Self {
        let id_bits = form.id_bits();
        let body = (raw & ((1 << id_bits) - 1)) as u32;
        let kind = (raw >> id_bits & 15) as u8;
        let npc = raw >> form.npc_bit() & 1 == 1;
        let reserved = (raw >> (form.npc_bit() + 1) & ((1 << form.reserved_bits()) - 1)) as u32;
        let (zone, id) =
            if npc && kind == 1 { ((body >> 16) as u16, body & 0xffff) } else { (0, body) };
        Self { reserved, npc, kind, zone, id }
    }

    /// Combines the parts into a raw number. For a monster's skill that is not of type 1, the
    /// hunting zone is left out.
    ///
    /// # Errors
    /// If a part does not fit its bits. Players' skills have no hunting zone.
    pub fn to_raw(self, form: SkillForm) -> Result<u64, PartTooBig> {
        self.pack(form, |part, value, bits| {
            let max = (1_u64 << bits) - 1;
            if u64::from(value) <= max { Ok(value.into()) } else { Err(PartTooBig { part, max }) }
        })
    }

    /// Like [`to_raw`](Self::to_raw), but truncates parts that do not fit, as the community's
    /// parsers do.
    #[must_use]
    pub fn to_raw_wrapped(self, form: SkillForm) -> u64 {
        let low = |_, value: u32, bits: u32| Ok(u64::from(value) & ((1 << bits) - 1));
        self.pack(form, low).unwrap_or_default()
    }

    /// Combines the parts, each passed through `fit` with its name and its number of bits.
    fn pack(
        self,
        form: SkillForm,
        fit: impl Fn(&'static str, u32, u32) -> Result<u64, PartTooBig>,
    ) -> Result<u64, PartTooBig> {
        let id_bits = form.id_bits();
        let zone_bits = if self.npc { id_bits - 16 } else { 0 };
        let zone = fit("huntingZoneId", self.zone.into(), zone_bits)?;
        let body = if self.npc && self.kind == 1 {
            zone << 16 | fit("id", self.id, 16)?
        } else {
            fit("id", self.id, id_bits)?
        };
        let kind = fit("type", self.kind.into(), 4)?;
        let reserved = fit("reserved", self.reserved, form.reserved_bits())?;
        let npc = u64::from(self.npc) << form.npc_bit();
        Ok(body | kind << id_bits | npc | reserved << (form.npc_bit() + 1))
    }
}

/// `A1101`, `R7`, `[T3]9`; preceded by `[X<hex>]` for reserved bits; with the hunting zone before
/// the ID: `A500:1101`.
impl fmt::Display for Skill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.reserved != 0 {
            write!(f, "[X{:x}]", self.reserved)?;
        }
        match self.kind {
            1 => f.write_str("A")?,
            2 => f.write_str("R")?,
            kind => write!(f, "[T{kind}]")?,
        }
        if self.npc && self.kind == 1 {
            write!(f, "{}:", self.zone)?;
        }
        write!(f, "{}", self.id)
    }
}

/// Text that does not describe a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a skill; write it as A1101, R7 or A500:1101")]
pub struct NotASkill;

/// Parses the text form. Without a hunting zone, it is taken for a player's skill.
impl FromStr for Skill {
    type Err = NotASkill;

    fn from_str(text: &str) -> Result<Self, NotASkill> {
        let number = |digits: &str| digits.parse::<u32>().map_err(|_| NotASkill);
        let (reserved, text) = match text.strip_prefix("[X") {
            Some(rest) => {
                let (digits, rest) = rest.split_once(']').ok_or(NotASkill)?;
                (u32::from_str_radix(digits, 16).map_err(|_| NotASkill)?, rest)
            }
            None => (0, text),
        };
        let (kind, text) = if let Some(rest) = text.strip_prefix('A') {
            (1, rest)
        } else if let Some(rest) = text.strip_prefix('R') {
            (2, rest)
        } else {
            let (digits, rest) =
                text.strip_prefix("[T").and_then(|rest| rest.split_once(']')).ok_or(NotASkill)?;
            (u8::try_from(number(digits)?).map_err(|_| NotASkill)?, rest)
        };
        let (zone, id) = match text.split_once(':') {
            Some((zone, id)) if kind == 1 => {
                (Some(u16::try_from(number(zone)?).map_err(|_| NotASkill)?), number(id)?)
            }
            Some(_) => return Err(NotASkill),
            None => (None, number(text)?),
        };
        Ok(Self { reserved, npc: zone.is_some(), kind, zone: zone.unwrap_or(0), id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use worldwire_core::Sampler;

    #[test]
    fn every_raw_number_survives_splitting() {
        let mut sampler = Sampler::new(5);
        for _ in 0..20_000 {
            let raw = sampler.number();
            assert_eq!(Skill::from_raw(raw, SkillForm::Wide).to_raw(SkillForm::Wide), Ok(raw));
            let raw = raw & 0xffff_ffff;
            assert_eq!(Skill::from_raw(raw, SkillForm::Narrow).to_raw(SkillForm::Narrow), Ok(raw));
        }
    }

    #[test]
    fn parts_that_do_not_fit_are_reported() {
        let skill = Skill { npc: true, kind: 1, zone: 1024, id: 1, reserved: 0 };
        assert!(skill.to_raw(SkillForm::Wide).is_ok());
        let error = skill.to_raw(SkillForm::Narrow).unwrap_err();
        assert_eq!(error, PartTooBig { part: "huntingZoneId", max: 1023 });
        // Only monsters have hunting zones, and the text form shows them only for actions.
        let player = Skill { npc: false, zone: 500, ..skill };
        let error = player.to_raw(SkillForm::Wide).unwrap_err();
        assert_eq!(error, PartTooBig { part: "huntingZoneId", max: 0 });
        assert_eq!(
            Ok(player.to_raw_wrapped(SkillForm::Wide)),
            Skill::action(1).to_raw(SkillForm::Wide)
        );
        let reaction = Skill { kind: 2, ..skill };
        assert_eq!(reaction.to_raw(SkillForm::Wide), Ok(0x1_2000_0001));
        assert!(Skill { zone: 4096, ..reaction }.to_raw(SkillForm::Wide).is_err());
        assert!(Skill::action(1 << 28).to_raw(SkillForm::Wide).is_err());
        let action = Skill::action(1 << 27 | 5);
        assert_eq!(Ok(action.to_raw_wrapped(SkillForm::Wide)), action.to_raw(SkillForm::Wide));
        assert_eq!(
            Ok(action.to_raw_wrapped(SkillForm::Narrow)),
            Skill::action(5).to_raw(SkillForm::Narrow)
        );
    }

    #[test]
    fn the_text_form_round_trips() {
        for text in ["A60200", "R7", "[T3]9", "A500:1101", "[X1f]A1:2"] {
            assert_eq!(text.parse::<Skill>().unwrap().to_string(), text);
        }
        for text in ["", "A", "60200", "R5:6", "[T99999]1", "[Xzz]A1", "A1:2:3"] {
            assert_eq!(text.parse::<Skill>(), Err(NotASkill), "{text}");
        }
    }
}
