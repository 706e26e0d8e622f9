//! How properties are encoded on the wire.

use std::collections::{HashMap, HashSet};

use worldwire_core::Names;

/// How the value of a property, or one element of its container, is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PropertyKind {
    /// One bit, not aligned.
    Bool,
    /// An aligned signed byte: `char`.
    I8,
    /// An aligned unsigned byte.
    U8,
    /// An aligned signed 16-bit number.
    I16,
    /// An aligned unsigned 16-bit number, also `wchar_t`.
    U16,
    /// An aligned signed 32-bit number: `int`, `long`.
    I32,
    /// An aligned unsigned 32-bit number.
    U32,
    /// An aligned signed 64-bit number: `__int64`. Unverified: no known list has such a
    /// property.
    I64,
    /// An aligned unsigned 64-bit number: `unsigned __int64`, `gid`.
    U64,
    /// An aligned single-precision number.
    F32,
    /// An aligned double-precision number.
    F64,
    /// This many bits in two's complement, not aligned: `bi2` to `bi7`, `s24`.
    SignedBits(u8),
    /// This many bits, not aligned: `bui2` to `bui7`, `u24`.
    UnsignedBits(u8),
    /// A counted string of bytes.
    String,
    /// A counted string of 16-bit units.
    WideString,
    /// An enumeration: aligned 32 bits, or the option's name if enumerations are human-readable.
    Enum,
    /// A set of flags: aligned 32 bits, or names joined by `|`.
    Flags,
    /// A fixed group of numbers.
    Tuple(Tuple),
    /// An object: a class tag, which may name a derived class, and its properties.
    Object,
}

/// A fixed group of numbers: a colour or a geometric value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tuple {
    /// `class Color`: bytes blue, green, red, alpha.
    Color,
    /// `class Vector3D`.
    Vector3D,
    /// `class Quaternion`. Unverified: the order w, x, y, z; older programs read w last.
    Quaternion,
    /// `class Euler`. Unverified: the order pitch, yaw, roll; older programs read yaw last.
    Euler,
    /// `class Matrix3x3`, row by row.
    Matrix3x3,
    /// `class Size<int>`.
    SizeInt,
    /// `class Point<int>`.
    PointInt,
    /// `class Point<float>`.
    PointFloat,
    /// `class Point<unsigned int>`.
    PointUnsigned,
    /// `class Point<unsigned char>`.
    PointByte,
    /// `class Rect<int>`.
    RectInt,
    /// `class Rect<float>`.
    RectFloat,
}

/// The number type of a [`Tuple`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A byte.
    U8,
    /// A signed 32-bit number.
    I32,
    /// An unsigned 32-bit number.
    U32,
    /// A single-precision number.
    F32,
}

impl Part {
    /// The size of a number in bytes.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::I32 | Self::U32 | Self::F32 => 4,
        }
    }
}

const RECT: &[&str] = &["left", "top", "right", "bottom"];

impl Tuple {
    /// All tuples.
    pub const ALL: [Self; 12] = [
        Self::Color,
        Self::Vector3D,
        Self::Quaternion,
        Self::Euler,
        Self::Matrix3x3,
        Self::SizeInt,
        Self::PointInt,
        Self::PointFloat,
        Self::PointUnsigned,
        Self::PointByte,
        Self::RectInt,
        Self::RectFloat,
    ];

    /// The type as spelled in type lists, the names of the parts, and their type.
    const fn layout(self) -> (&'static str, &'static [&'static str], Part) {
        match self {
            Self::Color => ("class Color", &["b", "g", "r", "a"], Part::U8),
            Self::Vector3D => ("class Vector3D", &["x", "y", "z"], Part::F32),
            Self::Quaternion => ("class Quaternion", &["w", "x", "y", "z"], Part::F32),
            Self::Euler => ("class Euler", &["pitch", "yaw", "roll"], Part::F32),
            Self::Matrix3x3 => ("class Matrix3x3", &["i", "j", "k"], Part::F32),
            Self::SizeInt => ("class Size<int>", &["width", "height"], Part::I32),
            Self::PointInt => ("class Point<int>", &["x", "y"], Part::I32),
            Self::PointFloat => ("class Point<float>", &["x", "y"], Part::F32),
            Self::PointUnsigned => ("class Point<unsigned int>", &["x", "y"], Part::U32),
            Self::PointByte => ("class Point<unsigned char>", &["x", "y"], Part::U8),
            Self::RectInt => ("class Rect<int>", RECT, Part::I32),
            Self::RectFloat => ("class Rect<float>", RECT, Part::F32),
        }
    }

    /// The type as spelled in type lists.
    #[must_use]
    pub const fn type_name(self) -> &'static str {
        self.layout().0
    }

    /// The names of the parts, in wire order. Each row of a matrix holds three numbers.
    #[must_use]
    pub const fn names(self) -> &'static [&'static str] {
        self.layout().1
    }

    /// The type of the numbers.
    #[must_use]
    pub const fn part(self) -> Part {
        self.layout().2
    }

    /// The number of values under each name.
    #[must_use]
    pub(crate) const fn per_name(self) -> usize {
        if matches!(self, Self::Matrix3x3) { 3 } else { 1 }
    }

    /// The total number of values.
    #[must_use]
    pub const fn count(self) -> usize {
        self.names().len() * self.per_name()
    }

    /// The tuple's size on the wire in bytes.
    #[must_use]
    pub const fn size(self) -> usize {
        self.count() * self.part().size()
    }
}

impl PropertyKind {
    /// The kind of a property from its type. Flags take precedence: [`Property::BITS`] and
    /// [`Property::ENUM`] make it a set of flags or an enumeration, whatever its type.
    ///
    /// [`Property::BITS`]: super::Property::BITS
    /// [`Property::ENUM`]: super::Property::ENUM
    #[must_use]
    pub fn of(type_name: &str, flags: u32) -> Self {
        if flags & super::Property::BITS != 0 {
            return Self::Flags;
        }
        if flags & super::Property::ENUM != 0 {
            return Self::Enum;
        }
        Self::of_type(type_name)
    }

    fn of_type(type_name: &str) -> Self {
        match type_name {
            "bool" => Self::Bool,
            "char" => Self::I8,
            "unsigned char" => Self::U8,
            "short" => Self::I16,
            "unsigned short" | "wchar_t" => Self::U16,
            "int" | "long" => Self::I32,
            "unsigned int" | "unsigned long" => Self::U32,
            "__int64" => Self::I64,
            "unsigned __int64" | "gid" | "union gid" => Self::U64,
            "float" => Self::F32,
            "double" => Self::F64,
            "s24" => Self::SignedBits(24),
            "u24" => Self::UnsignedBits(24),
            "std::string" | "char*" => Self::String,
            "std::wstring" | "wchar_t*" => Self::WideString,
            _ => {
                let bits = |digit: &str| match digit.as_bytes() {
                    [digit @ b'2'..=b'7'] => Some(digit - b'0'),
                    _ => None,
                };
                if let Some(bits) = type_name.strip_prefix("bui").and_then(bits) {
                    return Self::UnsignedBits(bits);
                }
                if let Some(bits) = type_name.strip_prefix("bi").and_then(bits) {
                    return Self::SignedBits(bits);
                }
                if type_name == "enum" || type_name.starts_with("enum ") {
                    return Self::Enum;
                }
                match Tuple::ALL.iter().find(|tuple| tuple.type_name() == type_name) {
                    Some(tuple) => Self::Tuple(*tuple),
                    None => Self::Object,
                }
            }
        }
    }

    /// Whether a whole number of this kind is signed; `None` for other kinds. Whole numbers are encoded
    /// as numbers, but their values can have names.
    pub(crate) const fn whole(self) -> Option<bool> {
        Some(match self {
            Self::I8 | Self::I16 | Self::I32 | Self::I64 | Self::SignedBits(_) => true,
            Self::U8 | Self::U16 | Self::U32 | Self::U64 | Self::UnsignedBits(_) => false,
            _ => return None,
        })
    }

    /// The size in bits, if it is fixed. It is not fixed for enumerations and sets of flags, which
    /// can be human-readable.
    #[must_use]
    pub const fn bits(self) -> Option<u64> {
        Some(match self {
            Self::Bool => 1,
            Self::I8 | Self::U8 => 8,
            Self::I16 | Self::U16 => 16,
            Self::I32 | Self::U32 | Self::F32 => 32,
            Self::I64 | Self::U64 | Self::F64 => 64,
            Self::SignedBits(bits) | Self::UnsignedBits(bits) => bits as u64,
            Self::Tuple(tuple) => tuple.size() as u64 * 8,
            Self::String | Self::WideString | Self::Enum | Self::Flags | Self::Object => {
                return None;
            }
        })
    }
}

/// The options of an enumeration: names and numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choices {
    names: Names,
    /// The options whose value is a number, sorted by name.
    numbers: Box<[(Box<str>, u32)]>,
    /// The options whose value is text, in list order.
    texts: Box<[(Box<str>, Box<str>)]>,
    /// Whether the numbers belong to a signed property.
    pub(super) is_signed: bool,
    /// The list's `__DEFAULT`: the property's value in new objects, such as the name of an option.
    pub default: Option<Box<str>>,
    /// The list's `__BASECLASS`: the class of the property's objects, or a base of their class.
    pub base_class: Option<Box<str>>,
}

impl Choices {
    /// Builds a table of options. If options share a number, the first one is displayed; if they
    /// share a name, only the first one is kept.
    pub fn new(options: impl IntoIterator<Item = (Box<str>, u32)>) -> Self {
        let mut known = HashSet::new();
        let options = options.into_iter().filter(|(name, _)| known.insert(name.clone()));
        let mut numbers: Vec<(Box<str>, u32)> = options.collect();
        let names = numbers.iter().map(|(name, number)| (i64::from(*number), name.clone()));
        let names = Names::from_pairs(names);
        numbers.sort_by(|a, b| a.0.cmp(&b.0));
        let (numbers, texts) = (numbers.into(), Box::default());
        Self { names, numbers, texts, is_signed: false, default: None, base_class: None }
    }

    /// The same options for a signed property: numbers with bit 31 set are negative.
    #[must_use]
    pub(super) fn signed(self) -> Self {
        let signed =
            |number: i64| u32::try_from(number).map_or(number, |it| it.cast_signed().into());
        let names = self.names.iter().map(|(number, name)| (signed(number), Box::from(name)));
        let names = Names::from_pairs(names.collect::<Vec<_>>());
        Self { names, is_signed: true, ..self }
    }

    /// Builds a table of options, whose values can be text. If the text is the name of another
    /// option, it is replaced by that option's number; otherwise it stays text.
    pub fn resolved(options: impl IntoIterator<Item = (Box<str>, Result<u32, Box<str>>)>) -> Self {
        let (mut numbers, mut texts) = (Vec::new(), Vec::new());
        for (name, value) in options {
            match value {
                Ok(number) => numbers.push((name, number)),
                Err(text) => texts.push((name, text)),
            }
        }
        if texts.is_empty() {
            return Self::new(numbers);
        }
        let leads_to: HashMap<&str, &str> =
            texts.iter().map(|(name, to)| (&**name, &**to)).collect();
        let mut known: HashMap<&str, Option<u32>> = HashMap::new();
        for (name, number) in &numbers {
            known.entry(name).or_insert(Some(*number));
        }
        for (name, _) in &texts {
            // `None` until the number is known, which breaks cycles.
            let (mut way, mut at) = (Vec::new(), &**name);
            let number = loop {
                if let Some(number) = known.get(at) {
                    break *number;
                }
                known.insert(at, None);
                way.push(at);
                match leads_to.get(at) {
                    Some(next) => at = next,
                    None => break None,
                }
            };
            known.extend(way.into_iter().map(|name| (name, number)));
        }
        let number = |name: &str| known.get(name).copied().flatten();
        let found: Vec<Option<u32>> = texts.iter().map(|(name, _)| number(name)).collect();
        let mut rest = Vec::new();
        for ((name, text), number) in texts.into_iter().zip(found) {
            match number {
                Some(number) => numbers.push((name, number)),
                None => rest.push((name, text)),
            }
        }
        Self { texts: rest.into(), ..Self::new(numbers) }
    }

    /// The options whose value is text that does not resolve to a number.
    #[must_use]
    pub fn texts(&self) -> &[(Box<str>, Box<str>)] {
        &self.texts
    }

    /// The names, for display in trees.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The name of a plain number, if there is one that cannot be mistaken for a number.
    pub(crate) fn plain_name(&self, number: i64) -> Option<&str> {
        let name = self.names.name(number).filter(|name| is_plain_name(name))?;
        (self.plain_number(name) == Some(number)).then_some(name)
    }

    /// The plain number with exactly this name.
    pub(crate) fn plain_number(&self, name: &str) -> Option<i64> {
        let number = self.number(name).filter(|_| is_plain_name(name))?;
        Some(if self.is_signed { number.cast_signed().into() } else { number.into() })
    }

    /// The number of the option with exactly this name.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u32> {
        let at = self.numbers.binary_search_by(|(known, _)| (**known).cmp(name)).ok()?;
        self.numbers.get(at).map(|(_, number)| *number)
    }

    /// The number of an option. The name may be qualified (`Color::RED`), may have `-` and `_`
    /// interchanged, or may be a number.
    #[must_use]
    pub fn parse(&self, text: &str) -> Option<u32> {
        let text = text.trim();
        let last = text.rsplit("::").next().unwrap_or(text);
        self.number(text)
            .or_else(|| self.number(last))
            .or_else(|| self.number(&last.replace('-', "_")))
            .or_else(|| self.number(&last.replace('_', "-")))
            .or_else(|| parse_number(text))
    }

    /// Parses a set of flags: names joined by `|`, or empty text for no flags.
    pub(crate) fn parse_flags<'t>(&self, text: &'t str) -> Result<u32, &'t str> {
        if text.trim().is_empty() {
            return Ok(0);
        }
        text.split('|').try_fold(0, |bits, name| self.parse(name).map(|bit| bits | bit).ok_or(name))
    }

    /// Appends the text of a number, in a form that [`parse`](Self::parse) reads back: the number's
    /// name or its digits, in hexadecimal if the decimal digits are also the name of an option.
    pub fn push_name(&self, number: u32, out: &mut String) {
        let name = self.names.name(i64::from(number));
        // A name with leading or trailing blanks would not parse back.
        match name.filter(|name| self.parse(name) == Some(number)) {
            Some(name) => out.push_str(name),
            None => {
                let digits = number.to_string();
                match self.parse(&digits) == Some(number) {
                    true => out.push_str(&digits),
                    false => out.push_str(&format!("{number:#x}")),
                }
            }
        }
    }

    /// Appends the text of a set of flags: names joined by `|`, then unknown bits in hexadecimal
    /// digits.
    pub(crate) fn push_flags(&self, bits: u32, out: &mut String) {
        let (names, rest) = self.names.flags(u64::from(bits));
        for (index, name) in names.iter().enumerate() {
            if index > 0 {
                out.push('|');
            }
            out.push_str(name);
        }
        if rest != 0 {
            if !names.is_empty() {
                out.push('|');
            }
            out.push_str(&format!("0x{rest:x}"));
        }
    }
}

/// Whether a name can stand for a plain number. Text that starts like a number is read as a number,
/// and leading and trailing blanks do not survive XML.
fn is_plain_name(name: &str) -> bool {
    let starts_like_number = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.');
    !name.is_empty() && !name.starts_with(starts_like_number) && name.trim() == name
}

/// Parses `12`, `-1` (all bits) or `0x1f`.
pub(crate) fn parse_number(text: &str) -> Option<u32> {
    if let Some(digits) = text.strip_prefix("0x") {
        return u32::from_str_radix(digits, 16).ok();
    }
    text.parse::<u32>().ok().or_else(|| text.parse::<i32>().ok().map(i32::cast_unsigned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_flags_determine_kinds() {
        assert_eq!(PropertyKind::of("bui7", 0), PropertyKind::UnsignedBits(7));
        assert_eq!(PropertyKind::of("bi2", 0), PropertyKind::SignedBits(2));
        assert_eq!(PropertyKind::of("bui8", 0), PropertyKind::Object);
        assert_eq!(PropertyKind::of("class Matrix3x3", 0), PropertyKind::Tuple(Tuple::Matrix3x3));
        assert_eq!(PropertyKind::of("class SharedPointer<class Color>", 0), PropertyKind::Object);
        assert_eq!(
            PropertyKind::of("unsigned int", super::super::Property::BITS),
            PropertyKind::Flags
        );
        assert_eq!(PropertyKind::of("enum Color", 0), PropertyKind::Enum);
        assert_eq!(Tuple::Matrix3x3.size(), 36);
        assert_eq!(Tuple::PointByte.size(), 2);
    }

    #[test]
    fn texts_resolve_to_numbers_or_stay() {
        let text = |name: &str, to: &str| (name.into(), Err(to.into()));
        let long = (0..1000).map(|at| text(&format!("L{at}"), &format!("L{}", at + 1)));
        let options = [
            text("First", "Alias"),
            text("Alias", "One"),
            ("One".into(), Ok(1)),
            text("Fire", "Fire"),
            text("A", "B"),
            text("B", "A"),
            text("C", "A"),
            text("D", "nothing"),
            ("L1000".into(), Ok(7)),
        ];
        let choices = Choices::resolved(options.into_iter().chain(long));
        assert_eq!(choices.number("First"), Some(1));
        assert_eq!(choices.names().name(1), Some("One"));
        assert_eq!(choices.number("L0"), Some(7));
        let texts: Vec<_> = choices.texts().iter().map(|(name, _)| &**name).collect();
        assert_eq!(texts, ["Fire", "A", "B", "C", "D"]);
        assert_eq!(choices.parse("Fire"), None);
    }

    #[test]
    fn plain_numbers_have_names_unless_those_look_like_numbers() {
        let options = [("big", 1000), ("none", u32::MAX), ("5", 9), (" x", 3), ("", 4), ("-2", 6)];
        let choices = || Choices::new(options.map(|(name, number)| (name.into(), number)));
        assert_eq!(choices().plain_name(1000), Some("big"));
        assert_eq!(choices().plain_name(u32::MAX.into()), Some("none"));
        assert_eq!(choices().plain_name(-1), None);
        assert_eq!(choices().signed().plain_name(-1), Some("none"));
        assert_eq!(choices().signed().plain_number("none"), Some(-1));
        for number in [9, 3, 4, 6, 7] {
            assert_eq!(choices().plain_name(number), None, "{number}");
        }
        // If a number has two names, the first one is shown, and both are accepted.
        let twins = Choices::new([("a".into(), 1), ("b".into(), 1)]);
        assert_eq!((twins.plain_name(1), twins.plain_number("b")), (Some("a"), Some(1)));
    }

    #[test]
    fn written_numbers_parse_back() {
        let choices = Choices::new([("5".into(), 9), (" ".into(), 3), ("A".into(), 1)]);
        for (number, text) in [(1, "A"), (2, "2"), (3, "3"), (5, "0x5"), (9, "5")] {
            let mut out = String::new();
            choices.push_name(number, &mut out);
            assert_eq!((&*out, choices.parse(&out)), (text, Some(number)));
        }
    }

    #[test]
    fn option_names_parse_in_every_spelling() {
        let choices = Choices::new([("READ".into(), 1), ("WRITE_ALL".into(), 2), ("X".into(), 4)]);
        assert_eq!(choices.parse("Perm::READ"), Some(1));
        assert_eq!(choices.parse(" WRITE-ALL"), Some(2));
        assert_eq!(choices.parse("-1"), Some(u32::MAX));
        assert_eq!(choices.parse_flags("READ | X"), Ok(5));
        assert_eq!(choices.parse_flags(""), Ok(0));
        assert_eq!(choices.parse_flags("READ|NO"), Err("NO"));
        let mut text = String::new();
        choices.push_flags(0x15, &mut text);
        assert_eq!(text, "READ|X|0x10");
    }
}
