//! A fixed number of values.

use std::borrow::Cow;

use worldwire_core::json::Given;
use worldwire_core::{
    Error, Field, Reader, Result, Sampler, Trace, Writer, encode_list, list_from_json,
};

/// Exactly `N` values without a count, shown as a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Array<E, const N: usize>(pub [E; N]);

impl<'d, E: Field<'d> + Copy + Default + 'static, const N: usize> Field<'d> for Array<E, N> {
    type Owned = Self;
    const LEAST: usize = N * E::LEAST;

    fn layout() -> Cow<'static, str> {
        Cow::Owned(format!("{}[{N}]", E::layout()))
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        reader.list(name, |reader| {
            let mut values = [E::default(); N];
            for (index, value) in values.iter_mut().enumerate() {
                *value = reader.item(index, |reader| E::decode(reader, ""))?;
            }
            Ok(Self(values))
        })
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        encode_list(&self.0, writer)
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let values = list_from_json::<E>(json)?;
        let found = values.len();
        let values: Result<[E; N], _> = values.try_into();
        values.map(Self).map_err(|_| Error::value(format!("{N} values"), found.to_string()))
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Self(core::array::from_fn(|_| E::sample(sampler)))
    }

    fn into_owned(self) -> Self {
        self
    }
}
