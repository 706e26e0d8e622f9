//! Sets of bits.

use std::borrow::Cow;

use worldwire_core::json::{self, FieldsOf, Given, Json};
use worldwire_core::{
    Error, Field, Names, Reader, Result, Sampler, Trace, Value, Writer, count32, list_from_json,
};

/// A set of bit numbers (`hsBitVector`): a `u32` word count, then that many `u32` words, least
/// significant first. At most 4096 words. The word count is kept, so trailing zero words survive;
/// [`BitVector::from_bits`] uses as few words as possible.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct BitVector(pub Vec<u32>);

/// The maximum number of words.
const MAX_WORDS: usize = BitVector::MAX_WORDS;

impl BitVector {
    /// The maximum number of words.
    pub const MAX_WORDS: usize = 4096;

    /// The set of these bits, in as few words as possible. Bits 131,072 and above are ignored.
    #[must_use]
    pub fn from_bits(bits: &[u32]) -> Self {
        let mut words = Vec::new();
        for bit in bits.iter().copied().filter(|bit| *bit as usize / 32 < MAX_WORDS) {
            let word = bit as usize / 32;
            if words.len() <= word {
                words.resize(word + 1, 0);
            }
            words[word] |= 1 << (bit % 32);
        }
        Self(words)
    }

    /// The numbers of the bits that are set, ascending.
    pub fn bits(&self) -> impl Iterator<Item = u32> {
        let words = (0_u32..).step_by(32).zip(&self.0);
        words.flat_map(|(first, word)| {
            (0..32).filter(move |bit| word & 1 << bit != 0).map(move |bit| first + bit)
        })
    }

    /// Reads word count and bits into the current scope. Bits are shown by name if they have names.
    pub(crate) fn decode_fields<'d, 'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        names: Option<&'static Names>,
    ) -> Result<Self> {
        let start = reader.place_if_on();
        let count = count32(reader, MAX_WORDS, "words of a bit vector")?;
        reader.leaf_from("words", start, Value::Unsigned(count as u64));
        let first = reader.place_if_on();
        let (words, _) = reader.take(count * 4)?.as_chunks::<4>();
        let value = Self(words.iter().map(|word| u32::from_le_bytes(*word)).collect());
        if T::ON {
            reader.scope_from("bits", Value::List, first, |reader| {
                for bit in value.bits() {
                    let shown = match names {
                        Some(names) => Value::Enum(bit.into(), names),
                        None => Value::Unsigned(bit.into()),
                    };
                    reader.leaf_from("", first, shown);
                }
                Ok(())
            })?;
        }
        Ok(value)
    }

    /// Takes word count and bits from the fields of a JSON object.
    pub(crate) fn take_json(
        fields: &mut FieldsOf<'_>,
        names: Option<&'static Names>,
    ) -> Result<Self> {
        let words: usize = json::integer(fields.take("words")?, "a whole number from 0 to 4096")?;
        let given = fields.given("bits")?;
        let bits = match names {
            Some(names) => named_bits(given, names),
            None => list_from_json::<u32>(given),
        };
        let bits = bits.map_err(|error| error.inside("bits"))?;
        if words > MAX_WORDS {
            return Err(Error::limit("words of a bit vector", MAX_WORDS as u64, words as u64));
        }
        let mut value = Self::from_bits(&bits);
        if value.0.len() > words || bits.iter().any(|bit| !value.contains(*bit)) {
            let wanted = format!("bits below {}", words * 32);
            return Err(Error::value(wanted, "a higher bit").inside("bits"));
        }
        value.0.resize(words, 0);
        Ok(value)
    }

    /// Whether a bit is set.
    #[must_use]
    pub fn contains(&self, bit: u32) -> bool {
        self.0.get(bit as usize / 32).is_some_and(|word| word & 1 << (bit % 32) != 0)
    }
}

/// The numbers of bits given by number or name.
fn named_bits(json: Given<'_>, names: &Names) -> Result<Vec<u32>> {
    let items = json.as_array().ok_or_else(|| json::expected("an array", &json))?;
    let bit = |(index, item): (usize, &Json)| {
        let number = json::named(item, names).and_then(|number| {
            u32::try_from(number).map_err(|_| json::expected("a bit number", item))
        });
        number.map_err(|error| error.inside_item(index))
    };
    items.iter().enumerate().map(bit).collect()
}

impl<'d> Field<'d> for BitVector {
    type Owned = Self;
    const LEAST: usize = 4;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("hsBitVector")
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        reader.record(name, |reader| Self::decode_fields(reader, None))
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        let Some(count) = u32::try_from(self.0.len()).ok().filter(|_| self.0.len() <= MAX_WORDS)
        else {
            let found = self.0.len() as u64;
            return Err(Error::limit("words of a bit vector", MAX_WORDS as u64, found));
        };
        writer.u32(count);
        self.0.iter().for_each(|word| writer.u32(*word));
        Ok(())
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let mut fields = FieldsOf::new(json)?;
        let value = Self::take_json(&mut fields, None)?;
        fields.end()?;
        Ok(value)
    }

    fn sample(sampler: &mut Sampler) -> Self {
        let count = sampler.length(4);
        Self((0..count).map(|_| u32::sample(sampler) & u32::sample(sampler)).collect())
    }

    fn into_owned(self) -> Self {
        self
    }
}
