//! A character's background: appearance, names, description and values.

use std::borrow::Cow;

use worldwire_core::json::{FieldsOf, Given};
use worldwire_core::{Field, Reader, Record as _, Result, Sampler, Trace, Writer, record};

use crate::types::{Array, List8, Padded};

record! {
    /// A numbered value of a background. Unverified: its meaning.
    pub struct BackgroundValue {
        number "number": u8,
        value "value": u32,
    }
}

record! {
    /// An attribute of a character.
    pub struct BackgroundAttribute {
        /// 0x4e focus, 0x4f perception, 0x51 reason, 0x52 belief, 0x54 vitality. Unverified.
        attribute "attribute": u32,
        value "value": u16,
    }
}

record! {
    /// The part of a background that is always present.
    pub struct BackgroundText {
        first_name "firstName": Padded<32>,
        last_name "lastName": Padded<32>,
        /// The description, which the player writes.
        description "description": Padded<1024>,
        experience "experience": u32,
        /// Money.
        information "information": u32,
        /// Unverified: its meaning; 1.
        unknown1 "unknown1": u8,
        conquest_points "conquestPoints": u32,
        /// Unverified: seconds since 1970.
        time "time": u32,
        /// The reputation with each organization, from -127.
        reputation "reputation": Array<i16, 7>,
        /// Unverified: its meaning; 3.
        unknown2 "unknown2": u8,
        /// 1 in the world, 0 in the loading area.
        in_world "inWorld": u8,
        /// Unverified: their meaning.
        values "values": List8<BackgroundValue>,
        attributes "attributes": List8<BackgroundAttribute>,
    }
}

/// A character's background. It extends to the end of the reader.
///
/// One server omits the appearance for a new character. So it is read only if everything after it
/// then matches the layout exactly.
#[derive(Clone, Debug, PartialEq)]
pub struct Background {
    /// Unverified: body and clothes.
    pub appearance: Option<[u32; 9]>,
    /// Everything else.
    pub text: Box<BackgroundText>,
}

impl<'d> Field<'d> for Background {
    type Owned = Self;
    const LEAST: usize = BackgroundText::LEAST;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("u32[9], which may be missing; BackgroundText")
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        let whole = |reader: &mut Reader<'d, T>, has_appearance: bool| {
            reader.record(name, |reader| {
                let appearance = match has_appearance {
                    true => Some(Field::decode(reader, "appearance")?),
                    false => None,
                };
                let text = Box::new(BackgroundText::decode_fields(reader)?);
                reader.end()?;
                Ok(Self { appearance, text })
            })
        };
        match reader.attempt(|reader| whole(reader, true)) {
            Ok(background) => Ok(background),
            Err(error) => reader.attempt(|reader| whole(reader, false)).map_err(|_| error),
        }
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        if let Some(appearance) = &self.appearance {
            appearance.encode(writer)?;
        }
        self.text.encode(writer)
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let mut fields = FieldsOf::new(json)?;
        let appearance = fields.given_optional("appearance").map(Field::from_json).transpose();
        let appearance = appearance.map_err(|error| error.inside("appearance"))?;
        let text = Box::new(BackgroundText::from_fields(&mut fields)?);
        fields.end()?;
        Ok(Self { appearance, text })
    }

    fn sample(sampler: &mut Sampler) -> Self {
        let appearance = (sampler.below(4) > 0).then(|| Field::sample(sampler));
        Self { appearance, text: Box::new(Field::sample(sampler)) }
    }

    fn into_owned(self) -> Self {
        self
    }
}
