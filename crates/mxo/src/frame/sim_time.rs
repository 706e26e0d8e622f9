//! The simulation's time.

use std::borrow::Cow;

use worldwire_core::json::{self, Given, Json};
use worldwire_core::{Field, Reader, Result, Sampler, Trace, Writer};

/// The time of the server's simulation in seconds, as `f32`. Servers add it to a packet every few
/// seconds.
///
/// Compared by bits, so a NaN equals itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct SimTime(pub f32);

impl PartialEq for SimTime {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for SimTime {}

impl<'d> Field<'d> for SimTime {
    type Owned = Self;
    const LEAST: usize = 4;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("f32")
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        reader.f32(name).map(Self)
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.f32(self.0);
        Ok(())
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let number = match json.json() {
            #[expect(clippy::cast_possible_truncation, reason = "rounds to the nearest float")]
            Json::Number(number) => number.as_f64().map(|number| number as f32),
            Json::String(text) => match (&**text, text.strip_prefix("0x")) {
                ("NaN", _) => Some(f32::from_bits(0x7fc0_0000)),
                ("Infinity", _) => Some(f32::INFINITY),
                ("-Infinity", _) => Some(f32::NEG_INFINITY),
                (_, Some(bits)) => u32::from_str_radix(bits, 16).ok().map(f32::from_bits),
                (text, None) => text.parse().ok().filter(|number: &f32| number.is_finite()),
            },
            _ => None,
        };
        number.map(Self).ok_or_else(|| json::expected("a single-precision number", &json))
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Self(f32::from_bits(u32::sample(sampler)))
    }

    fn into_owned(self) -> Self {
        self
    }
}
