//! Fixed-size groups of floats.

use std::borrow::Cow;

use worldwire_core::json::Given;
use worldwire_core::{
    Error, Field, Float, Reader, Result, Sampler, Shape, Trace, Writer, list_from_json,
};

/// Exactly `N` single-precision floats, without a count: points and vectors (x, y, z), colours
/// (red, green, blue, alpha), matrices (row by row).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floats<const N: usize>(pub [Float; N]);

impl<const N: usize> From<[f32; N]> for Floats<N> {
    fn from(numbers: [f32; N]) -> Self {
        Self(numbers.map(Float))
    }
}

impl<'d, const N: usize> Field<'d> for Floats<N> {
    type Owned = Self;
    const LEAST: usize = N * 4;

    fn layout() -> Cow<'static, str> {
        Cow::Owned(format!("f32[{N}]"))
    }

    fn shape() -> Shape {
        Shape::Array(N, Box::new(Float::shape()))
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        reader.list(name, |reader| {
            let mut numbers = [Float::default(); N];
            for (index, number) in numbers.iter_mut().enumerate() {
                *number = reader.item(index, |reader| Float::decode(reader, ""))?;
            }
            Ok(Self(numbers))
        })
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        self.0.iter().try_for_each(|number| number.encode(writer))
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let numbers = list_from_json::<Float>(json)?;
        let found = numbers.len();
        let numbers = numbers.try_into();
        numbers.map(Self).map_err(|_| Error::value(format!("{N} numbers"), found.to_string()))
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Self(core::array::from_fn(|_| Float::sample(sampler)))
    }

    fn into_owned(self) -> Self {
        self
    }
}
