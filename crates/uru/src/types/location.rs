//! Pages of objects: sequence numbers and locations.

use std::borrow::Cow;

use worldwire_core::json::{FieldsOf, Given};
use worldwire_core::{
    Error, Field, FieldInfo, Reader, Record, Result, Sampler, Trace, Value, Writer, scalar,
    wire_flags,
};

scalar! {
    /// The number of a page: an age prefix and a page of that age in one `u32`, or a special value.
    ///
    /// | number | meaning |
    /// | --- | --- |
    /// | 0 | fixed keys |
    /// | 1..=0x20 | local to one client; never accept from the network |
    /// | 0x21..=0xfeff0020 | `(age << 16) + page + 0x21` for age prefixes from 0 up |
    /// | 0xfeff0021..=0xfeffffff | unusable |
    /// | 0xff000000 | the server; unknown net groups |
    /// | ..=0xff010000 | reserved |
    /// | 0xff010001..=0xfffffffe | `(-age << 16) + page + 0xff000001` for negative age prefixes |
    /// | 0xffffffff | invalid |
    ///
    /// Pages are unsigned here; some tools print 0xffff as -1.
    pub struct SequenceNumber(u32) as Hex;
}

impl SequenceNumber {
    /// The sequence number of a page. The result is `None` if the age prefix is out of range (-255
    /// to 0xfefe are valid), and for the last two pages of prefix -255.
    #[must_use]
    pub fn from_page(age: i32, page: u16) -> Option<Self> {
        let first: u32 = if age < 0 { 0xff00_0001 } else { 0x21 };
        let number = age
            .unsigned_abs()
            .checked_mul(0x1_0000)?
            .checked_add(u32::from(page))?
            .checked_add(first)?;
        Some(Self(number)).filter(|number| number.page() == Some((age, page)))
    }

    /// The age prefix and the page; `None` for special numbers, which cannot be split.
    #[must_use]
    pub fn page(self) -> Option<(i32, u16)> {
        let (rest, sign) = match self.0 {
            0x21..=0xfeff_0020 => (self.0 - 0x21, 1),
            0xff01_0001..=0xffff_fffe => (self.0 - 0xff00_0001, -1),
            _ => return None,
        };
        let page = u16::try_from(rest & 0xffff).ok()?;
        let age = i32::try_from(rest >> 16).ok()?;
        Some((age * sign, page))
    }

    /// Whether this is one of the special numbers.
    #[must_use]
    pub(crate) fn is_special(self) -> bool {
        self.page().is_none()
    }
}

wire_flags! {
    /// The kind of page that a [`Location`] names.
    pub struct LocationFlags(u16) {
        /// The page exists on one client only.
        LocalOnly = 1,
        /// The page's state is not kept.
        Volatile = 2,
        /// The sequence number is reserved; set if and only if it is 0xff000000 or higher.
        Reserved = 4,
        /// Built into the client: pages 0xffff (Textures) and 0xfffe (BuiltIn).
        BuiltIn = 8,
        /// The page travels with its player. Comparisons of locations ignore only this bit.
        Itinerant = 16,
    }
}

/// The page that contains an object (`plLocation`): `u32` sequence number, `u16` flags.
///
/// A trace also shows the two parts of the sequence number, `age` and `page`. JSON may give either
/// the number or its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The page.
    pub sequence_number: SequenceNumber,
    /// The kind of page.
    pub flags: LocationFlags,
}

impl<'d> Record<'d> for Location {
    const NAME: &'static str = "Location";

    fn fields() -> Vec<FieldInfo> {
        let rows = [
            ("sequenceNumber", SequenceNumber::layout(), "The page."),
            ("age", "part of it".into(), "The age's prefix; missing for special numbers."),
            ("page", "part of it".into(), "The page of that age."),
            ("flags", LocationFlags::layout(), "The kind of page."),
        ];
        rows.map(|(name, layout, doc)| FieldInfo::in_words(name, layout, doc)).to_vec()
    }

    #[inline]
    fn decode_fields<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        let start = reader.place_if_on();
        let sequence_number = SequenceNumber::decode(reader, "sequenceNumber")?;
        if T::ON
            && let Some((age, page)) = sequence_number.page()
        {
            reader.leaf_from("age", start, Value::Signed(age.into()));
            reader.leaf_from("page", start, Value::Unsigned(page.into()));
        }
        Ok(Self { sequence_number, flags: LocationFlags::decode(reader, "flags")? })
    }

    #[inline]
    fn encode_fields(&self, writer: &mut Writer) -> Result<()> {
        self.sequence_number.encode(writer)?;
        self.flags.encode(writer)
    }

    fn from_fields(fields: &mut FieldsOf<'_>) -> Result<Self> {
        let parts = (optional::<i32>(fields, "age")?, optional::<u16>(fields, "page")?);
        let parts = match parts {
            (Some(age), Some(page)) => Some((age, page)),
            (None, None) => None,
            _ => return Err(Error::value("both `age` and `page`", "only one of them")),
        };
        let sequence_number = match (optional(fields, "sequenceNumber")?, parts) {
            (Some(number), None) => number,
            (None, Some((age, page))) => SequenceNumber::from_page(age, page).ok_or_else(|| {
                Error::value("an age from -255 to 65278", age.to_string()).inside("age")
            })?,
            (Some(number), Some(parts)) if number.page() == Some(parts) => number,
            (Some(number), Some(_)) => {
                let error = Error::value(
                    "the number that `age` and `page` imply",
                    format!("{:#x}", number.0),
                );
                let error = error.hint("leave out `sequenceNumber`, or `age` and `page`");
                return Err(error.inside("sequenceNumber"));
            }
            (None, None) => fields.value("sequenceNumber")?,
        };
        Ok(Self { sequence_number, flags: fields.value("flags")? })
    }
}

impl<'d> Field<'d> for Location {
    type Owned = Self;
    const LEAST: usize = 6;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("Location")
    }

    #[inline]
    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        reader.record(name, Self::decode_fields)
    }

    #[inline]
    fn encode(&self, writer: &mut Writer) -> Result<()> {
        self.encode_fields(writer)
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let mut fields = FieldsOf::new(json)?;
        let location = Self::from_fields(&mut fields)?;
        fields.end()?;
        Ok(location)
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Self { sequence_number: Field::sample(sampler), flags: Field::sample(sampler) }
    }

    fn into_owned(self) -> Self {
        self
    }
}

impl Location {
    /// Whether both name the same page; the itinerant bit is ignored.
    #[must_use]
    pub(crate) fn same_page(&self, other: &Self) -> bool {
        let counted = !LocationFlags::Itinerant.0;
        self.sequence_number == other.sequence_number
            && self.flags.0 & counted == other.flags.0 & counted
    }
}

/// A field that may be absent from JSON.
pub(super) fn optional<'d, F: Field<'d>>(
    fields: &mut FieldsOf<'_>,
    name: &'static str,
) -> Result<Option<F>> {
    let given = fields.given_optional(name).map(F::from_json).transpose();
    given.map_err(|error| error.inside(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use worldwire_core::json::{Json, json};

    fn location(json: &Json) -> Result<u32> {
        Location::from_json(json.into()).map(|location| location.sequence_number.0)
    }

    #[test]
    fn a_page_is_given_by_its_number_or_by_its_parts() {
        let number = json!({"sequenceNumber": 0x78_0022, "flags": []});
        let parts = json!({"age": 120, "page": 1, "flags": []});
        let both = json!({"sequenceNumber": 0x78_0022, "age": 120, "page": 1, "flags": []});
        for json in [number, parts, both] {
            assert_eq!(location(&json).unwrap(), 0x78_0022);
        }
        let global = json!({"age": -6, "page": 1, "flags": []});
        assert_eq!(location(&global).unwrap(), 0xff06_0002);
        for (json, wanted) in [
            (
                json!({"sequenceNumber": 5, "age": 120, "page": 1, "flags": []}),
                "sequenceNumber: wanted the number that `age` and `page` imply, found 0x5; leave \
                 out `sequenceNumber`, or `age` and `page`",
            ),
            (
                json!({"age": 120, "flags": []}),
                "wanted both `age` and `page`, found only one of them",
            ),
            (
                json!({"age": 70_000, "page": 1, "flags": []}),
                "age: wanted an age from -255 to 65278, found 70000",
            ),
        ] {
            assert_eq!(location(&json).unwrap_err().to_string(), wanted);
        }
    }
}
