//! UTF-16 text.

use core::fmt;
use std::borrow::Cow;

/// UTF-16 text as it is on the wire, without its terminator.
///
/// The units are kept unchanged. A server that cuts a text may leave half of a surrogate pair,
/// which is preserved.
///
/// ```
/// use worldwire_tera::types::Text;
/// let text = Text::from("Elin");
/// assert_eq!(text.to_string(), "Elin");
/// assert_eq!(text.units().count(), 4);
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Text<'d>(Cow<'d, [u8]>);

impl<'d> Text<'d> {
    /// Text from little-endian units; an odd last byte is dropped.
    #[must_use]
    pub fn from_bytes(bytes: impl Into<Cow<'d, [u8]>>) -> Self {
        let mut bytes = bytes.into();
        if bytes.len() % 2 == 1 {
            let whole = bytes.len() - 1;
            match &mut bytes {
                Cow::Borrowed(borrowed) => *borrowed = borrowed.get(..whole).unwrap_or_default(),
                Cow::Owned(owned) => owned.truncate(whole),
            }
        }
        Self(bytes)
    }

    /// The little-endian units.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// A borrowed view of the same text.
    #[must_use]
    pub fn view(&self) -> TextView<'_> {
        TextView(&self.0)
    }

    /// The units.
    pub fn units(&self) -> impl Iterator<Item = u16> + Clone {
        self.view().units()
    }

    /// The text as UTF-8, if it contains no unpaired surrogates.
    #[must_use]
    pub fn to_utf8(&self) -> Option<String> {
        self.view().to_utf8()
    }

    /// Whether it contains a zero unit, which cannot be encoded.
    #[must_use]
    pub fn has_nul(&self) -> bool {
        text_length(&self.0).is_some()
    }

    /// Copies borrowed text.
    #[must_use]
    pub fn into_owned(self) -> Text<'static> {
        Text(Cow::Owned(self.0.into_owned()))
    }
}

/// A [`Text`] borrowed from a message or tape.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct TextView<'d>(&'d [u8]);

impl<'d> TextView<'d> {
    /// Text from little-endian units; an odd last byte is dropped.
    #[inline]
    pub(crate) const fn new(bytes: &'d [u8]) -> Self {
        Self(bytes.as_chunks::<2>().0.as_flattened())
    }

    /// The little-endian units.
    #[inline]
    #[must_use]
    pub const fn as_bytes(self) -> &'d [u8] {
        self.0
    }

    /// The units.
    pub fn units(self) -> impl Iterator<Item = u16> + Clone {
        self.0.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit))
    }

    /// The text as UTF-8, if it contains no unpaired surrogates.
    #[must_use]
    pub fn to_utf8(self) -> Option<String> {
        char::decode_utf16(self.units()).collect::<Result<_, _>>().ok()
    }

    /// The same text as a [`Text`], still borrowed.
    #[must_use]
    pub const fn to_text(self) -> Text<'d> {
        Text(Cow::Borrowed(self.0))
    }
}

/// The number of bytes before the first zero unit.
#[inline]
pub(crate) fn text_length(bytes: &[u8]) -> Option<usize> {
    // Four units at a time. The borrow from a zero unit can make units above it look like zero, but
    // never those below it, so the lowest match is right.
    const ONES: u64 = 0x0001_0001_0001_0001;
    const HIGHS: u64 = 0x8000_8000_8000_8000;
    let (fours, rest) = bytes.as_chunks::<8>();
    let mut length = 0;
    for four in fours {
        let units = u64::from_le_bytes(*four);
        let zeros = units.wrapping_sub(ONES) & !units & HIGHS;
        if zeros != 0 {
            return Some(length + zeros.trailing_zeros() as usize / 16 * 2);
        }
        length += 8;
    }
    let unit = rest.as_chunks::<2>().0.iter().position(|unit| *unit == [0, 0])?;
    Some(length + unit * 2)
}

impl From<&str> for Text<'_> {
    fn from(text: &str) -> Self {
        Self(Cow::Owned(text.encode_utf16().flat_map(u16::to_le_bytes).collect()))
    }
}

/// The text for display: unpaired surrogates become U+FFFD.
impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.view(), f)
    }
}

/// The text for display: unpaired surrogates become U+FFFD.
impl fmt::Display for TextView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;
        char::decode_utf16(self.units())
            .try_for_each(|unit| f.write_char(unit.unwrap_or(char::REPLACEMENT_CHARACTER)))
    }
}

impl fmt::Debug for TextView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_zero_unit_ends_a_text() {
        let mut sampler = worldwire_core::Sampler::new(3);
        for _ in 0..20_000 {
            let length = sampler.length(40);
            // Few distinct values, so that zero units and near misses are frequent.
            let values = [0, 0, 0, 1, 0x80, 0xff];
            let mut pick = || values[usize::try_from(sampler.below(6)).unwrap()];
            let bytes: Vec<u8> = (0..length).map(|_| pick()).collect();
            let mut units = bytes.as_chunks::<2>().0.iter();
            let wanted = units.position(|unit| *unit == [0, 0]).map(|units| units * 2);
            assert_eq!(text_length(&bytes), wanted, "{bytes:x?}");
        }
    }

    #[test]
    fn unpaired_surrogates_survive() {
        let text = Text::from_bytes(vec![b'a', 0, 0, 0xd8, b'b', 0, 7]);
        assert_eq!(text.as_bytes(), [b'a', 0, 0, 0xd8, b'b', 0]);
        assert_eq!(text.to_utf8(), None);
        assert_eq!(text.to_string(), "a\u{fffd}b");
        assert!(!text.has_nul());
        assert!(Text::from("a\0b").has_nul());
    }
}
