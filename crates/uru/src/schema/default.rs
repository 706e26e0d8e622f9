//! Default values, encoded as one element of a blob.

use worldwire_core::{Field, Writer};

use super::definition::Literal;
use super::types::Type;
use crate::types::{Location, LocationFlags, SafeString, SequenceNumber, Uoid};

/// The result of parsing a default.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Default {
    /// The encoded element.
    pub(super) element: Vec<u8>,
    /// A description of any irregularity in the text.
    pub(super) odd: Option<String>,
}

/// The element of a type whose default is missing or `nil`.
pub(super) fn zero(simple: Type) -> Vec<u8> {
    match simple {
        Type::Key => {
            let location = Location {
                sequence_number: SequenceNumber(u32::MAX),
                flags: LocationFlags::default(),
            };
            let name = SafeString::from("");
            let invalid =
                Uoid { location, load_mask: None, class_index: 0, object_id: 0, name, clone: None };
            let mut writer = Writer::new();
            // An empty name always fits within the limit.
            let _ = invalid.encode(&mut writer);
            writer.into_bytes()
        }
        Type::Creatable => 0x8000_u16.to_le_bytes().to_vec(),
        other => vec![0; other.size().unwrap_or(0)],
    }
}

/// Parses the literals of a default. Unreadable literals become zero and are reported.
pub(super) fn read(simple: Type, words: &[Literal]) -> Default {
    let nil = |word: &Literal| !word.quoted && word.text.eq_ignore_ascii_case("nil");
    if let [word] = words
        && nil(word)
    {
        return Default { element: zero(simple), odd: None };
    }
    let mut element = Element { writer: Writer::new(), odd: None, words, next: 0 };
    match simple {
        Type::Int => {
            let number = element.whole(i64::from(i32::MIN), i64::from(i32::MAX));
            element.writer.i32(i32::try_from(number).unwrap_or(0));
        }
        Type::Short => {
            let number = element.whole(i64::from(i16::MIN), i64::from(i16::MAX));
            element.writer.i16(i16::try_from(number).unwrap_or(0));
        }
        Type::Byte => element.bytes(1),
        Type::Rgb8 => element.bytes(3),
        Type::Rgba8 => element.bytes(4),
        Type::Bool => {
            let number = element.number(|text| match text {
                text if text.eq_ignore_ascii_case("true") => Some(1.0),
                text if text.eq_ignore_ascii_case("false") => Some(0.0),
                text => text.parse().ok(),
            });
            element.writer.u8(u8::from(number != 0.0));
        }
        Type::Float => element.floats(1),
        Type::Vector3 | Type::Point3 | Type::Rgb => element.floats(3),
        Type::Rgba | Type::Quaternion => element.floats(4),
        Type::Double => {
            let number = element.number(|text| text.parse().ok());
            element.writer.f64(number);
        }
        Type::Time => {
            let seconds = element.whole(0, i64::from(u32::MAX));
            element.writer.u32(u32::try_from(seconds).unwrap_or(0));
            element.writer.u32(0);
        }
        Type::String32 => element.text(),
        Type::AgeTimeOfDay => element.next = words.len(),
        Type::Key | Type::Creatable => {
            element.writer.bytes(&zero(simple));
            element.report(|| format!("the default of a {simple} must be nil"));
            element.next = words.len();
        }
    }
    if element.next < words.len() {
        let (wanted, found) = (element.next, words.len());
        let plural = if wanted == 1 { "" } else { "s" };
        element.report(|| format!("wanted {wanted} value{plural}, found {found}"));
    }
    Default { element: element.writer.into_bytes(), odd: element.odd }
}

/// An element being built from literals.
struct Element<'w> {
    writer: Writer,
    odd: Option<String>,
    words: &'w [Literal],
    next: usize,
}

impl<'w> Element<'w> {
    fn report(&mut self, message: impl FnOnce() -> String) {
        self.odd.get_or_insert_with(message);
    }

    fn word(&mut self) -> Option<&'w Literal> {
        let word = self.words.get(self.next);
        self.next += 1;
        word
    }

    fn number(&mut self, parse: impl FnOnce(&str) -> Option<f64>) -> f64 {
        let Some(word) = self.word() else {
            let found = self.words.len();
            self.report(|| format!("only {found} of the values are given; the rest are 0"));
            return 0.0;
        };
        parse(&word.text).unwrap_or_else(|| {
            self.report(|| format!("{word} is not a number; read as 0"));
            0.0
        })
    }

    /// A whole number: floats are truncated, and out-of-range values are clamped.
    #[expect(clippy::cast_possible_truncation, reason = "saturation is intended")]
    fn whole(&mut self, min: i64, max: i64) -> i64 {
        let number = self.number(|text| text.parse().ok()).trunc() as i64;
        let clamped = number.clamp(min, max);
        if clamped != number {
            self.report(|| format!("{number} is outside {min} to {max}; read as {clamped}"));
        }
        clamped
    }

    fn bytes(&mut self, count: usize) {
        for _ in 0..count {
            let byte = self.whole(0, 255);
            self.writer.u8(u8::try_from(byte).unwrap_or(0));
        }
    }

    fn floats(&mut self, count: usize) {
        for _ in 0..count {
            // Parse as f32 directly; going through f64 could round twice.
            let mut narrow = 0.0_f32;
            self.number(|text| {
                narrow = text.parse().ok()?;
                Some(0.0)
            });
            self.writer.f32(narrow);
        }
    }

    fn text(&mut self) {
        let word = self.word();
        let empty = |word: &Literal| !word.quoted && word.text.eq_ignore_ascii_case("empty");
        let text = word.filter(|word| !empty(word)).map_or("", |word| &word.text);
        if text.len() > STRING_BYTES {
            self.report(|| format!("wanted at most {STRING_BYTES} bytes, found {}", text.len()));
        }
        let kept = text.get(..text.floor_char_boundary(STRING_BYTES)).unwrap_or_default();
        self.writer.bytes(kept.as_bytes());
        self.writer.zeros(STRING_BYTES - kept.len());
    }
}

/// The size of a `STRING32` in bytes.
pub(crate) const STRING_BYTES: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn of(simple: Type, words: &[&str]) -> (Vec<u8>, Option<String>) {
        let word = |text: &&str| match text.strip_prefix('"') {
            Some(quoted) => Literal { text: quoted.into(), quoted: true },
            None => Literal { text: (*text).into(), quoted: false },
        };
        let words: Vec<_> = words.iter().map(word).collect();
        let default = read(simple, &words);
        (default.element, default.odd)
    }

    #[test]
    fn defaults_are_parsed_leniently() {
        assert_eq!(of(Type::Bool, &["TRUE"]), (vec![1], None));
        assert_eq!(of(Type::Bool, &["7"]), (vec![1], None));
        assert_eq!(of(Type::Byte, &["2.9"]), (vec![2], None));
        assert_eq!(of(Type::Short, &["-300"]), ((-300_i16).to_le_bytes().to_vec(), None));
        assert_eq!(of(Type::String32, &["empty"]), (vec![0; 32], None));
        assert_eq!(of(Type::String32, &["\"empty"]).0[..6], *b"empty\0");
        assert_eq!(of(Type::Int, &["nil"]), (vec![0; 4], None));
        assert_eq!(of(Type::Key, &["nil"]).0.len(), 15);
    }

    #[test]
    fn irregular_defaults_are_reported() {
        let odd = |simple, words: &[&str]| of(simple, words).1.unwrap_or_default();
        assert_eq!(odd(Type::Byte, &["300"]), "300 is outside 0 to 255; read as 255");
        assert_eq!(odd(Type::Int, &["abc"]), "abc is not a number; read as 0");
        assert_eq!(odd(Type::Rgb8, &["1", "2"]), "only 2 of the values are given; the rest are 0");
        assert_eq!(odd(Type::Rgb8, &["1", "2", "3", "4"]), "wanted 3 values, found 4");
        assert_eq!(odd(Type::Key, &["x"]), "the default of a PLKEY must be nil");
    }
}
