//! Locale files (`.lang`): the texts of the game in one language.
//!
//! The files are UTF-16LE with the byte-order mark `FF FE`. Lines end only with CR LF: a single CR
//! or LF, U+001E, U+2028 and the like are text. The first line is a number, a colon and the name,
//! which is also the file name; after it, each entry takes three lines.
//!
//! ```text
//! 1:Items
//! 31939071
//! a note for translators, usually empty
//! Sword of Examples
//! ```
//!
//! Everything else refers to a text by its *code*: the file name, `_`, and the key, as in
//! `Items_31939071`. [`Locale`] looks up texts by code.
//!
//! ```
//! use worldwire_ki::file::lang::LangFile;
//!
//! let text = "1:Items\r\n31939071\r\n\r\nSword\r\n";
//! let mut bytes = vec![0xff, 0xfe];
//! bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
//! let file = LangFile::decode(&mut worldwire_core::Reader::new(&bytes))?;
//! assert_eq!(file.name.to_text(), "Items");
//! assert_eq!(file.entries[0].text.to_text(), "Sword");
//! assert_eq!(file.to_bytes()?, bytes);
//! # Ok::<(), worldwire_core::Error>(())
//! ```

mod locale;
mod table;

use std::collections::HashSet;

use worldwire_core::json::{self, FieldsOf, Json};
use worldwire_core::{Error, Form, Limits, Place, Reader, Result, Sampler, Trace, Value, Writer};

use super::primitive::{collect_warnings, refuse_warnings, shortened};
use crate::types::{WStr, wide};

pub use locale::{Locale, codes_in};
pub use table::Translation;

const BOM: [u8; 2] = [0xff, 0xfe];
const CR: [u8; 2] = [b'\r', 0];
const LF: [u8; 2] = [b'\n', 0];
/// The minimum size of an entry in bytes: three empty lines.
const LEAST: usize = 12;

/// A locale file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LangFile<'d> {
    /// The number before the name; 1 in all known files.
    pub number: u32,
    /// The name, which is also the file name without its extension.
    pub name: WStr<'d>,
    /// The entries, in file order.
    pub entries: Vec<Entry<'d>>,
}

/// A text and its key.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Entry<'d> {
    /// The key, usually eight decimal digits.
    pub key: WStr<'d>,
    /// A note for translators, usually empty.
    pub comment: WStr<'d>,
    /// The text, which can be empty.
    pub text: WStr<'d>,
}

impl Default for LangFile<'_> {
    fn default() -> Self {
        Self { number: 1, name: WStr::default(), entries: Vec::new() }
    }
}

impl<'d> LangFile<'d> {
    /// Decodes a valid file. Unpaired surrogates are kept.
    ///
    /// # Errors
    /// `Malformed` if it is not a locale file, is truncated, or would not encode to the same bytes;
    /// a limit error if a limit is exceeded.
    pub fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        if reader.rest().first_chunk() != Some(&BOM) {
            return Err(no_mark(reader.rest()).at(reader.position() as u64));
        }
        reader.take(BOM.len())?;
        Self::lines(reader, &mut None).map_err(Error::closed)
    }

    /// Decodes a file for tools, with warnings instead of errors where possible: a missing or
    /// big-endian byte-order mark, half a unit at the end, a last line without a line end, an
    /// incomplete entry (which is skipped), an unusual spelling of the number, unpaired surrogates.
    /// Empty files and files of zeros have no entries. Archives contain files of zeros in place of
    /// files that have not been downloaded yet.
    pub fn open(bytes: &'d [u8], limits: &'d Limits) -> Result<(Self, Vec<String>)> {
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok((Self::default(), vec!["is empty; not downloaded yet?".to_owned()]));
        }
        let mut warnings = Vec::new();
        let whole = bytes.len() & !1;
        let (even, texts_and_name) = bytes.split_at(whole);
        if !texts_and_name.is_empty() {
            warnings.push("ends in the middle of a UTF-16 unit".to_owned());
        }
        let units = match even.split_first_chunk() {
            Some((&BOM, units)) => units,
            Some(([0xfe, 0xff], units)) => {
                warnings.push("is big-endian".to_owned());
                let swapped: Vec<u8> =
                    units.as_chunks::<2>().0.iter().flat_map(|[a, b]| [*b, *a]).collect();
                let mut reader = Reader::within(&swapped, limits);
                let file = LangFile::with_warnings(&mut reader, warnings)?;
                return Ok((file.0.into_owned(), file.1));
            }
            Some(([b'0'..=b'9', 0], _)) => {
                warnings.push("has no byte-order mark".to_owned());
                even
            }
            _ => return Err(no_mark(bytes).at(0)),
        };
        LangFile::with_warnings(&mut Reader::within(units, limits), warnings)
    }

    /// Decodes a file, refusing it if there are warnings other than repeated keys. Used to
    /// recognise locale files.
    pub fn strict(bytes: &'d [u8], limits: &'d Limits) -> Result<Self> {
        let file = Self::decode(&mut Reader::within(bytes, limits))?;
        refuse_warnings(file.unpaired()).map(|()| file)
    }

    /// Encodes the file.
    ///
    /// # Errors
    /// `Value` if the name has a line end, or if a key, comment or text has CR LF: the parts would
    /// become separate lines.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.bytes(&BOM);
        let name = self.name.as_bytes();
        if name.as_chunks::<2>().0.iter().any(|unit| [CR, LF].contains(unit)) {
            let found = shortened(&self.name.to_text());
            return Err(Error::value("a name without line breaks", found).inside("name"));
        }
        writer.bytes(&wide(&format!("{}:", self.number)));
        push_line(name, writer);
        for (index, entry) in self.entries.iter().enumerate() {
            let lines = [("key", &entry.key), ("comment", &entry.comment), ("text", &entry.text)];
            for (what, line) in lines {
                if line_end(line.as_bytes()).is_some() {
                    let error = Error::value("text without CR LF", shortened(&line.to_text()));
                    return Err(error.inside(what).inside_item(index).inside("entries"));
                }
                push_line(line.as_bytes(), writer);
            }
        }
        Ok(())
    }

    /// Encodes the file to bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut writer = Writer::new();
        self.encode(&mut writer).map(|()| writer.into_bytes())
    }

    /// Reads a file from the JSON of a traced decode. The number and the comments can be missing.
    pub fn from_json(json: &Json) -> Result<LangFile<'static>> {
        let mut fields = FieldsOf::new(json)?;
        let number = match fields.take_optional("number") {
            None => 1,
            Some(number) => json::integer(number, "a whole number from 0 to 4294967295")
                .map_err(|error| error.inside("number"))?,
        };
        let name = text_of(fields.take("name")?).map_err(|error| error.inside("name"))?;
        let list = fields.take("entries")?;
        fields.end()?;
        let list = list.as_array().ok_or_else(|| json::expected("an array", list));
        let list = list.map_err(|error| error.inside("entries"))?;
        let entry = |(index, entry)| {
            Entry::from_json(entry).map_err(|error| error.inside_item(index).inside("entries"))
        };
        let entries = list.iter().enumerate().map(entry).collect::<Result<_>>()?;
        Ok(LangFile { number, name, entries })
    }

    /// Reports irregularities of a valid file: repeated keys, and a name that differs from the
    /// given file name (without its extension).
    pub fn check(&self, stem: Option<&str>) -> impl Iterator<Item = String> {
        let name = self.name.to_text();
        let unlike = stem.filter(|stem| *stem != name);
        let unlike = unlike.map(|stem| {
            format!("calls itself {}, but its file name is {stem:?}", shortened(&name))
        });
        let number = (self.number != 1).then(|| format!("its number is {}, not 1", self.number));
        let mut seen = HashSet::new();
        let again = self.entries.iter().filter(move |entry| !seen.insert(entry.key.as_bytes()));
        let again = again.map(|entry| {
            format!("the key {} is repeated; the last one is used", shortened(&entry.key.to_text()))
        });
        unlike.into_iter().chain(number).chain(again)
    }

    /// Copies borrowed text.
    #[must_use]
    pub fn into_owned(self) -> LangFile<'static> {
        let owned = |text: WStr<'d>| WStr::from_units(text.as_bytes().to_vec());
        let entry = |Entry { key, comment, text }| Entry {
            key: owned(key),
            comment: owned(comment),
            text: owned(text),
        };
        let Self { number, name, entries } = self;
        LangFile { number, name: owned(name), entries: entries.into_iter().map(entry).collect() }
    }

    /// Generates a file for tests.
    pub fn sample(sampler: &mut Sampler) -> Self {
        let count = sampler.length(6);
        let mut text = |max| {
            let text = sampler.text(max);
            WStr::from(&*text)
        };
        let name = text(12);
        let entry = |_| Entry { key: text(9), comment: text(4), text: text(20) };
        let entries = (0..count).map(entry).collect();
        Self { number: u32::from(sampler.below(4) > 0), name, entries }
    }

    /// Decodes the lines after the byte-order mark. Without `warnings`, everything must be valid.
    fn lines<'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        warnings: &mut Option<Vec<String>>,
    ) -> Result<Self> {
        let (number, name) = head(reader, warnings)?;
        let entries = reader.list("entries", |reader| {
            let mut entries = Vec::new();
            while reader.remaining() > 0 {
                reader.capacity(entries.len() as u64 + 1, u64::MAX, LEAST)?;
                let index = entries.len();
                if let Some(warnings) = warnings
                    && lacks_lines(reader.rest())
                {
                    warnings.push(format!("entry {index} is incomplete and is skipped"));
                    break;
                }
                entries.push(reader.item(index, |reader| Entry::read(reader, warnings))?);
            }
            Ok(entries)
        })?;
        Ok(Self { number, name, entries })
    }

    fn with_warnings(
        reader: &mut Reader<'d>,
        warnings: Vec<String>,
    ) -> Result<(Self, Vec<String>)> {
        let mut warnings = Some(warnings);
        let file = Self::lines(reader, &mut warnings).map_err(Error::closed)?;
        let mut warnings = warnings.unwrap_or_default();
        warnings.extend(collect_warnings(file.unpaired()));
        Ok((file, warnings))
    }

    /// Reports texts with half of a surrogate pair.
    fn unpaired(&self) -> impl Iterator<Item = String> {
        let texts = self.entries.iter().enumerate().flat_map(|(index, entry)| {
            [&entry.key, &entry.comment, &entry.text].map(|text| (Some(index), text))
        });
        let is_unpaired = |text: &WStr<'_>| {
            let units = text.as_bytes().as_chunks::<2>().0.iter();
            char::decode_utf16(units.map(|unit| u16::from_le_bytes(*unit))).any(|it| it.is_err())
        };
        let texts_and_name = core::iter::once((None, &self.name)).chain(texts);
        texts_and_name.filter(move |(_, text)| is_unpaired(text)).map(|(index, _)| match index {
            Some(index) => format!("entry {index} contains an unpaired surrogate"),
            None => "the name contains an unpaired surrogate".to_owned(),
        })
    }
}

impl<'d> Entry<'d> {
    fn read<'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        warnings: &mut Option<Vec<String>>,
    ) -> Result<Self> {
        reader.record("", |reader| {
            let key = line(reader, "key", warnings)?;
            let comment = line(reader, "comment", warnings)?;
            let text = line(reader, "text", warnings)?;
            Ok(Self { key, comment, text })
        })
    }

    fn from_json(json: &Json) -> Result<Entry<'static>> {
        let mut fields = FieldsOf::new(json)?;
        let text = |name: &'static str, json: Option<&Json>| match json {
            Some(json) => text_of(json).map_err(|error| error.inside(name)),
            None => Ok(WStr::default()),
        };
        let key = text("key", Some(fields.take("key")?))?;
        let comment = text("comment", fields.take_optional("comment"))?;
        let text = text("text", Some(fields.take("text")?))?;
        fields.end()?;
        Ok(Entry { key, comment, text })
    }
}

/// Decodes the first line: number and name.
fn head<'d, 'n, T: Trace<'n>>(
    reader: &mut Reader<'d, T>,
    warnings: &mut Option<Vec<String>>,
) -> Result<(u32, WStr<'d>)> {
    let at = reader.position() as u64;
    let rest = reader.rest();
    let length = match line_end(rest) {
        Some(length) => length,
        None if warnings.is_some() && rest.len() >= 2 => {
            if let Some(warnings) = warnings {
                warnings.push("has no line ending after the first line".to_owned());
            }
            rest.len() & !1
        }
        None => {
            let error =
                Error::malformed("", "the first line, such as 1:Items, does not end with CR LF");
            return Err(with_line_end_hint(error, rest).at(at));
        }
    };
    let units = rest.get(..length).unwrap_or_default().as_chunks::<2>().0;
    let found = || {
        let text = WStr::from_units(units.as_flattened().to_vec()).to_text();
        shortened(&text)
    };
    let colon = units.iter().position(|unit| *unit == [b':', 0]);
    let ends = units.iter().any(|unit| [CR, LF].contains(unit));
    let Some(colon) = colon.filter(|_| !ends) else {
        let error = Error::malformed("a line such as 1:Items, with CR LF at its end", found());
        return Err(with_line_end_hint(error, rest).at(at));
    };
    let digits: Option<String> = units.get(..colon).unwrap_or_default().iter().map(digit).collect();
    let digits = digits.filter(|digits| !digits.is_empty());
    let Some(number) = digits.as_deref().and_then(|digits| digits.parse::<u32>().ok()) else {
        let wanted = "a number from 0 to 4294967295 and a colon";
        return Err(Error::malformed(wanted, found()).at(at).inside("number"));
    };
    if digits.as_deref() != Some(&*number.to_string()) {
        match warnings {
            Some(warnings) => warnings.push("has a number with leading zeros".to_owned()),
            None => {
                let error = Error::malformed(number.to_string(), found());
                return Err(error.at(at).inside("number"));
            }
        }
    }
    let start = reader.place_if_on();
    reader.take(colon * 2)?;
    reader.leaf_from("number", start, Value::Unsigned(number.into()));
    reader.take(2)?;
    let name = span(reader, "name", length - colon * 2 - 2)?;
    let end = reader.remaining().min(4);
    reader.take(end)?;
    Ok((number, name))
}

fn digit(unit: &[u8; 2]) -> Option<char> {
    (unit[1] == 0 && unit[0].is_ascii_digit()).then_some(char::from(unit[0]))
}

/// Decodes one line, without its line end.
fn line<'d, 'n, T: Trace<'n>>(
    reader: &mut Reader<'d, T>,
    name: &'n str,
    warnings: &mut Option<Vec<String>>,
) -> Result<WStr<'d>> {
    let at = reader.position() as u64;
    let rest = reader.rest();
    match (line_end(rest), warnings) {
        (Some(length), _) => {
            // An empty comment means that there is none.
            let text = if length == 0 && name == "comment" {
                WStr::default()
            } else {
                span(reader, name, length)?
            };
            reader.take(CR.len() + LF.len())?;
            Ok(text)
        }
        (None, Some(warnings)) => {
            warnings.push("has no line ending after the last line".to_owned());
            span(reader, name, rest.len() & !1)
        }
        (None, None) => {
            Err(Error::malformed("", "this line does not end with CR LF").at(at).inside(name))
        }
    }
}

/// Decodes this many bytes of text.
fn span<'d, 'n, T: Trace<'n>>(
    reader: &mut Reader<'d, T>,
    name: &'n str,
    length: usize,
) -> Result<WStr<'d>> {
    let max = reader.limits().string_bytes;
    if length as u64 > max {
        let error = Error::limit("string bytes", max, length as u64);
        return Err(reader.place_error(error).inside(name));
    }
    let start: Place = reader.place_if_on();
    let units = reader.take(length)?;
    let shown = reader.span_behind(Form::Utf16, length);
    reader.leaf_from(name, start, shown);
    Ok(WStr::from_units(units))
}

/// The offset of the first line end in bytes.
fn line_end(units: &[u8]) -> Option<usize> {
    let units = units.as_chunks::<2>().0;
    let mut pairs = units.windows(2);
    pairs.position(|pair| *pair == [CR, LF]).map(|at| at * 2)
}

/// Whether fewer lines remain than an entry takes; the last line may lack its line end.
fn lacks_lines(mut rest: &[u8]) -> bool {
    for _ in 0..2 {
        let Some(end) = line_end(rest) else { return true };
        rest = rest.get(end + 4..).unwrap_or_default();
    }
    rest.is_empty()
}

fn push_line(units: &[u8], writer: &mut Writer) {
    writer.bytes(units);
    writer.bytes(&CR);
    writer.bytes(&LF);
}

fn text_of(json: &Json) -> Result<WStr<'static>> {
    let units = json::text(json, wide)?;
    if !units.len().is_multiple_of(2) {
        return Err(Error::value("an even number of bytes", units.len().to_string()));
    }
    Ok(WStr::from_units(units))
}

/// The error for bytes without a valid byte-order mark.
fn no_mark(bytes: &[u8]) -> Error {
    let error = match bytes.get(..2).unwrap_or(bytes) {
        [] => Error::malformed("", "is empty"),
        head => {
            let what = format!("begins with {head:02x?}");
            Error::malformed("", format!("{what}, not with UTF-16's byte-order mark ff fe"))
        }
    };
    match *bytes {
        [b'0'..=b'9', 0, ..] => error.hint("the rest looks like UTF-16; insert ff fe at the start"),
        [0, b'0'..=b'9', ..] | [0xfe, 0xff, ..] => error.hint("is it big-endian UTF-16?"),
        [b'0'..=b'9' | 0xef, ..] => error.hint("is it UTF-8? Locale files are UTF-16"),
        _ => error,
    }
}

/// Adds a hint to an error about wrong line ends.
fn with_line_end_hint(error: Error, units: &[u8]) -> Error {
    if units.as_chunks::<2>().0.contains(&LF) {
        return error.hint("lines must end with CR LF, not LF alone");
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use worldwire_core::json::json;

    fn file(text: &str) -> Vec<u8> {
        [&BOM[..], &wide(text)].concat()
    }

    #[test]
    fn only_cr_lf_ends_a_line() {
        let text = "1:A:B\r\nk\r\n\r\na\rb\nc\u{1e}\u{2028}\u{85}\r\r\n";
        let bytes = file(text);
        let file = LangFile::strict(&bytes, &Limits::DEFAULT).unwrap();
        assert_eq!(file.name.to_text(), "A:B");
        assert_eq!(file.entries[0].text.to_text(), "a\rb\nc\u{1e}\u{2028}\u{85}\r");
        assert_eq!(file.to_bytes().unwrap(), bytes);
    }

    #[test]
    fn lines_in_texts_are_refused() {
        let json = |key: &str, value: &str| {
            let mut json = json!({"name": "N", "entries": [{"key": "", "text": "x"}]});
            if key == "name" {
                json["name"] = value.into();
            } else {
                json["entries"][0][key] = value.into();
            }
            LangFile::from_json(&json).and_then(|file| file.to_bytes())
        };
        let error = |key, value| json(key, value).unwrap_err().to_string();
        assert_eq!(
            error("name", "a\rb"),
            "name: wanted a name without line breaks, found \"a\\rb\""
        );
        assert_eq!(
            error("comment", "a\r\nb"),
            "entries[0].comment: wanted text without CR LF, found \"a\\r\\nb\""
        );
        assert_eq!(json("text", "a\nb"), Ok(file("1:N\r\n\r\n\r\na\nb\r\n")));
    }

    #[test]
    fn irregular_files_are_read_with_warnings() {
        let open = |bytes: &[u8]| {
            let (file, warnings) = LangFile::open(bytes, &Limits::DEFAULT).unwrap();
            let texts: Vec<_> = file.entries.iter().map(|entry| entry.text.to_text()).collect();
            (texts.join("|"), warnings.join("|"))
        };
        let good = "1:N\r\nk\r\n\r\nx\r\n";
        assert_eq!(open(&file(good)), ("x".into(), String::new()));
        assert_eq!(open(&wide(good)), ("x".into(), "has no byte-order mark".into()));
        assert_eq!(open(&[0; 9]).1, "is empty; not downloaded yet?");
        let cut = file("01:N\r\nk\r\n\r\nx");
        let reported = "has a number with leading zeros|has no line ending after the last line";
        assert_eq!(open(&cut), ("x".into(), reported.into()));
        let cut = file("1:N\r\nk\r\n\r\nx\r\nk\r\n\r\n");
        assert_eq!(open(&cut), ("x".into(), "entry 1 is incomplete and is skipped".into()));
        let cut = file("1:N");
        assert_eq!(open(&cut).1, "has no line ending after the first line");
        let big: Vec<u8> = file(good).chunks(2).flat_map(|unit| [unit[1], unit[0]]).collect();
        assert_eq!(open(&big), ("x".into(), "is big-endian".into()));
    }

    #[test]
    fn other_files_are_refused() {
        let error = |bytes: &[u8]| LangFile::open(bytes, &Limits::DEFAULT).unwrap_err().to_string();
        assert_eq!(
            error(b"1:N\r\n"),
            "at byte 0: begins with [31, 3a], not with UTF-16's byte-order mark ff fe; is it \
             UTF-8? Locale files are UTF-16"
        );
        assert_eq!(
            error(&file("1:N\nk\n\nx\n")),
            "at byte 0: wanted a line such as 1:Items, with CR LF at its end, found \
             \"1:N\\nk\\n\\nx\\n\"; lines must end with CR LF, not LF alone"
        );
        assert_eq!(
            error(&file("x:N\r\n")),
            "number at byte 0: wanted a number from 0 to 4294967295 and a colon, found \"x:N\""
        );
    }

    #[test]
    fn repeated_keys_and_different_names_are_reported() {
        let bytes = file("2:N\r\nk\r\n\r\nx\r\nk\r\n\r\ny\r\n");
        let file = LangFile::strict(&bytes, &Limits::DEFAULT).unwrap();
        let reported: Vec<String> = file.check(Some("M")).collect();
        insta::assert_snapshot!(reported.join("\n"), @r#"
        calls itself "N", but its file name is "M"
        its number is 2, not 1
        the key "k" is repeated; the last one is used
        "#);
    }
}
