//! Numbers made of UTF-16 units.

use std::borrow::Cow;

use worldwire_core::json::Given;
use worldwire_core::{Error, Field, Reader, Result, Sampler, Trace, Value, Writer};

/// A 32-bit number of manifests and file lists: high `u16`, low `u16`, and a `u16` zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct HiLo(pub u32);

impl HiLo {
    /// Reads the six bytes without tracing them.
    pub fn take<T>(reader: &mut Reader<'_, T>) -> Result<Self> {
        let [a, b, c, d] = reader.take_array()?;
        let at = reader.position();
        match reader.take_array()? {
            [0, 0] => Ok(Self(u32::from_le_bytes([c, d, a, b]))),
            [low, high] => {
                let found = format!("0x{high:02x}{low:02x}");
                Err(Error::malformed("0x0000", found).at(at as u64))
            }
        }
    }
}

impl<'d> Field<'d> for HiLo {
    type Owned = Self;
    const LEAST: usize = 6;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("u16 high, u16 low, u16 0")
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        reader.shown(name, Self::take, |value| Value::Unsigned(u64::from(value.0)))
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        let [c, d, a, b] = self.0.to_le_bytes();
        writer.bytes(&[a, b, c, d, 0, 0]);
        Ok(())
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        u32::from_json(json).map(Self)
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Self(u32::sample(sampler))
    }

    fn into_owned(self) -> Self {
        self
    }
}
