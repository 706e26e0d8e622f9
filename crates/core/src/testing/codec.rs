//! Decodes bytes with and without a trace and encodes the result again.

use core::fmt::Debug;

use super::render;
use crate::json::{Json, Style};
use crate::{Limits, NoTrace, Reader, Result, Tree, TreeBuilder, Writer};

/// The outcome of [`decode`].
#[derive(Debug)]
pub struct Decoded<'d, V> {
    /// The value decoded without a trace.
    pub value: Result<V>,
    /// The value decoded with a trace; an error is the same as without a trace.
    pub traced: Result<V>,
    /// The bytes that were read.
    pub used: &'d [u8],
    /// The trace.
    pub tree: Tree<'d>,
    /// The JSON of the trace.
    pub json: Json,
}

/// Decodes bytes with and without a trace, then renders the trace.
///
/// # Panics
/// If the trace changes the outcome, or [`render`] panics.
pub fn decode<'d, V: Debug>(
    data: &'d [u8],
    limits: &'d Limits,
    style: Style,
    plain: impl FnOnce(&mut Reader<'d, NoTrace>) -> Result<V>,
    traced: impl FnOnce(&mut Reader<'d, TreeBuilder<'d>>) -> Result<V>,
) -> Decoded<'d, V> {
    let mut reader = Reader::within(data, limits);
    let value = plain(&mut reader);
    let used = &data[..reader.position()];
    let mut reader = Reader::traced_within("input", data, Tree::new(), limits);
    let traced = traced(&mut reader);
    let (tree, traced) = reader.conclude(traced);
    assert_eq!(value.as_ref().err(), traced.as_ref().err(), "a trace changed the outcome");
    let json = render(&tree, style);
    Decoded { value, traced, used, tree, json }
}

impl<V> Decoded<'_, V> {
    /// Checks that both values, and the value read from the JSON, encode to the bytes they came
    /// from. Returns the value, if there is one.
    ///
    /// # Panics
    /// If any of them encodes to different bytes.
    pub fn encodes_back(
        self,
        encode: impl Fn(&V) -> Result<Vec<u8>>,
        encode_json: impl FnOnce(&Json) -> Result<Vec<u8>>,
    ) -> Option<V> {
        let (value, traced) = (self.value.ok()?, self.traced.ok()?);
        for value in [&value, &traced] {
            assert_eq!(encode(value).as_deref(), Ok(self.used), "encodes to different bytes");
        }
        let again = encode_json(&self.json);
        assert_eq!(again.as_deref(), Ok(self.used), "encodes to different bytes: {}", self.json);
        Some(value)
    }
}

/// The bytes that `encode` writes.
///
/// # Errors
/// Those of `encode`.
pub fn encoded(encode: impl FnOnce(&mut Writer) -> Result<()>) -> Result<Vec<u8>> {
    let mut writer = Writer::new();
    encode(&mut writer)?;
    Ok(writer.into_bytes())
}
