//! The values of a tree's nodes.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::Names;

/// The value of one node of a [`Tree`](crate::Tree).
///
/// Small and `Copy`: text and bytes are only ranges ([`Span`]) of their layer's data, decoded on
/// demand.
#[derive(Clone, Copy, Debug)]
pub enum Value<'n> {
    /// Named children.
    Record,
    /// Children without names.
    List,
    /// An absent value, as the format states.
    Null,
    /// A boolean.
    Bool(bool),
    /// An unsigned number.
    Unsigned(u64),
    /// An unsigned number usually written in hexadecimal: masks, opcodes, hashes.
    Hex(u64),
    /// A signed number.
    Signed(i64),
    /// A single-precision number.
    F32(f32),
    /// A double-precision number.
    F64(f64),
    /// A number with a name.
    Enum(i64, &'n Names),
    /// A set of bits with names.
    Flags(u64, &'n Names),
    /// Text or bytes, stored in the layer's data.
    Span(Span),
}

impl Value<'_> {
    /// Whether the node can have children.
    #[must_use]
    pub const fn is_container(&self) -> bool {
        matches!(self, Self::Record | Self::List)
    }
}

/// Bytes of a layer that hold a text or a blob, without length prefix or terminator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// How to read them.
    pub form: Form,
    /// The first byte, counted from the start of the layer.
    pub start: u32,
    /// The number of bytes.
    pub length: u32,
}

/// The meaning of a [`Span`]'s bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Form {
    /// Raw bytes.
    Bytes,
    /// UTF-8 text.
    Utf8,
    /// ISO 8859-1 text.
    Latin1,
    /// UTF-16 text, little-endian units.
    Utf16,
    /// UTF-8 text, every byte bitwise inverted.
    InvertedUtf8,
    /// UTF-16 text, little-endian units, every bit inverted.
    InvertedUtf16,
    /// A 16-byte identifier whose first three groups are little-endian, shown as
    /// `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`.
    Guid,
    /// An IPv4 address as a little-endian number: shown as `a.b.c.d`.
    Ipv4,
}

/// The contents of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// Valid text.
    Text(Cow<'a, str>),
    /// Bytes, or the logical bytes (with inversion undone) of text that is not valid Unicode.
    Bytes(Cow<'a, [u8]>),
}

impl Form {
    /// Interprets bytes. Text that is not valid Unicode is returned as bytes, so that nothing is
    /// lost.
    #[must_use]
    pub fn read(self, bytes: &[u8]) -> Content<'_> {
        let text = match self {
            Self::Bytes => None,
            Self::Utf8 => core::str::from_utf8(bytes).ok().map(Cow::Borrowed),
            Self::Latin1 => Some(bytes.iter().copied().map(char::from).collect()),
            Self::Utf16 => utf16(bytes).map(Cow::Owned),
            Self::InvertedUtf8 => match String::from_utf8(inverted(bytes)) {
                Ok(text) => Some(Cow::Owned(text)),
                Err(error) => return Content::Bytes(Cow::Owned(error.into_bytes())),
            },
            Self::InvertedUtf16 => {
                let plain = inverted(bytes);
                match utf16(&plain) {
                    Some(text) => Some(Cow::Owned(text)),
                    None => return Content::Bytes(Cow::Owned(plain)),
                }
            }
            Self::Guid => bytes.try_into().ok().map(|id| guid_text(id).into()),
            Self::Ipv4 => match bytes {
                [d, c, b, a] => Some(format!("{a}.{b}.{c}.{d}").into()),
                _ => None,
            },
        };
        text.map_or(Content::Bytes(Cow::Borrowed(bytes)), Content::Text)
    }
}

/// UTF-16LE to text; `None` for an odd count or unpaired surrogates.
fn utf16(bytes: &[u8]) -> Option<String> {
    let (units, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let units = units.iter().map(|unit| u16::from_le_bytes(*unit));
    char::decode_utf16(units).collect::<Result<String, _>>().ok()
}

fn inverted(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| !byte).collect()
}

/// A GUID in Microsoft byte order, in the usual notation.
pub fn guid_text(id: &[u8; 16]) -> String {
    const ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    let mut text = String::with_capacity(36);
    for (place, from) in ORDER.into_iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        push_hex(&mut text, &id[from..=from]);
    }
    text
}

/// The inverse of [`guid_text`]. Hyphens may appear anywhere or be missing; braces are accepted.
pub fn parse_guid(text: &str) -> Option<[u8; 16]> {
    let text = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or(text);
    if text.len() > 40 {
        return None;
    }
    let plain: String = text.chars().filter(|c| *c != '-').collect();
    let mut id: [u8; 16] = parse_hex(&plain)?.try_into().ok()?;
    id[..4].reverse();
    id[4..6].reverse();
    id[6..8].reverse();
    Some(id)
}

/// Appends bytes as lower-case hexadecimal digits.
pub fn push_hex(text: &mut String, bytes: &[u8]) {
    const DIGIT: fn(u8) -> u8 = |value| value + if value < 10 { b'0' } else { b'a' - 10 };
    text.reserve(bytes.len() * 2);
    // One block at a time: single characters would take most of the time of writing JSON.
    let mut digits = [[b'0'; 2]; 64];
    for block in bytes.chunks(digits.len()) {
        for (pair, byte) in digits.iter_mut().zip(block) {
            *pair = [DIGIT(byte >> 4), DIGIT(byte & 15)];
        }
        let shown = digits.get(..block.len()).unwrap_or_default().as_flattened();
        text.push_str(str::from_utf8(shown).unwrap_or_default());
    }
}

/// Reads hexadecimal digits. White space between them is skipped; an odd count or any other
/// character gives `None`.
pub fn parse_hex(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 2);
    let mut high = None;
    for digit in text.chars().filter(|c| !c.is_whitespace()) {
        let value = u8::try_from(digit.to_digit(16)?).ok()?;
        match high.take() {
            None => high = Some(value),
            Some(above) => bytes.push(above << 4 | value),
        }
    }
    high.is_none().then_some(bytes)
}

/// Appends a float so that reading it back gives the same bits, for every bit pattern: the shortest
/// round trip for finite numbers, names for infinities and the usual NaN, bits for other NaNs.
pub(crate) fn push_float(text: &mut String, value: f64, bits: u64, single: bool) {
    let usual_nan = if single { 0x7fc0_0000 } else { 0x7ff8_0000_0000_0000 };
    if value.is_nan() {
        if bits == usual_nan {
            text.push_str("\"NaN\"");
        } else {
            let width = if single { 8 } else { 16 };
            let _ = write!(text, "\"0x{bits:0width$x}\"");
        }
    } else if value.is_infinite() {
        text.push_str(if value > 0.0 { "\"Infinity\"" } else { "\"-Infinity\"" });
    } else {
        let size = value.abs();
        let plain = size == 0.0 || (1e-5..1e17).contains(&size);
        let from = text.len();
        // The text must be the shortest one *of the narrower type*.
        let _ = match (single, plain) {
            (true, true) => write!(text, "{}", f32::from_bits(narrow(bits))),
            (true, false) => write!(text, "{:e}", f32::from_bits(narrow(bits))),
            (false, true) => write!(text, "{value}"),
            (false, false) => write!(text, "{value:e}"),
        };
        if !text[from..].contains(['.', 'e']) {
            text.push_str(".0");
        }
    }
}

/// The low half, which holds the bits of a single-precision number.
#[expect(clippy::cast_possible_truncation, reason = "the high half is zero")]
fn narrow(bits: u64) -> u32 {
    bits as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_digits_of_any_number_of_bytes() {
        let bytes: Vec<u8> = (0..=255).collect();
        for count in [0, 1, 63, 64, 65, 128, 200, 256] {
            let mut text = "x".to_owned();
            push_hex(&mut text, &bytes[..count]);
            let wanted: String = bytes[..count].iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(text, format!("x{wanted}"));
        }
    }

    #[test]
    fn forms_read_text_or_keep_bytes() {
        assert_eq!(Form::Utf16.read(b"h\0i\0"), Content::Text("hi".into()));
        assert_eq!(Form::Utf16.read(&[0x3d, 0xd8]), Content::Bytes(vec![0x3d, 0xd8].into()));
        assert_eq!(Form::InvertedUtf8.read(&[0x9e]), Content::Text("a".into()));
        assert_eq!(Form::Utf8.read(&[0xff]), Content::Bytes(vec![0xff].into()));
        assert_eq!(Form::Latin1.read(&[0xe9]), Content::Text("é".into()));
        assert_eq!(Form::Ipv4.read(&[22, 198, 73, 184]), Content::Text("184.73.198.22".into()));
    }

    #[test]
    fn guids_go_both_ways() {
        let id = parse_guid("12345678-1234-5678-1234-567812345678").unwrap();
        assert_eq!(id[..8], [0x78, 0x56, 0x34, 0x12, 0x34, 0x12, 0x78, 0x56]);
        assert_eq!(guid_text(&id), "12345678-1234-5678-1234-567812345678");
        assert_eq!(parse_guid("1234"), None);
    }

    #[test]
    fn floats_keep_their_bits() {
        let show = |value: f32| {
            let mut text = String::new();
            push_float(&mut text, f64::from(value), u64::from(value.to_bits()), true);
            text
        };
        assert_eq!(show(0.1), "0.1");
        assert_eq!(show(3.0), "3.0");
        assert_eq!(show(-0.0), "-0.0");
        assert_eq!(show(1e30), "1e30");
        assert_eq!(show(f32::NAN), "\"NaN\"");
        assert_eq!(show(f32::from_bits(0x7fc0_0001)), "\"0x7fc00001\"");
        assert_eq!(show(f32::NEG_INFINITY), "\"-Infinity\"");
    }
}
