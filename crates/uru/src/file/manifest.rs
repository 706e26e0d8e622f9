//! Manifests and file lists: the files that file servers and auth servers offer.
//!
//! On the wire, both are sequences of UTF-16 units: a manifest in `ManifestReply` (file
//! connection), and the list of secure files in `FileListReply` (auth connection). On disk, a
//! manifest is a text file (`.mfs`) with one file per line:
//! `client,download,md5,md5gz,size,sizegz,flags`.

use std::borrow::Cow;
use std::fmt::Write as _;

use worldwire_core::json::{self, Given, Json};
use worldwire_core::{
    Error, Field, Names, Reader, Result, Sampler, Trace, Value, Writer, list_from_json, record,
};

use crate::types::{HiLo, Inner, InnerFamily, ZStr};

record! {
    /// One file of a manifest.
    pub struct ManifestEntry<'a> {
        /// The path on the client, with backslashes; at most 259 units.
        client_name "clientName": ZStr<'a>,
        /// The name to request from the server; at most 259 units.
        download_name "downloadName": ZStr<'a>,
        /// MD5 of the file, 32 hexadecimal digits.
        md5 "md5": ZStr<'a>,
        /// MD5 of the download, 32 hexadecimal digits.
        md5_compressed "md5compressed": ZStr<'a>,
        /// Size of the file in bytes.
        file_size "fileSize": HiLo,
        /// Size of the download in bytes.
        compressed_size "compressedSize": HiLo,
        /// What the client does with the file.
        flags "flags": ManifestFlags,
    }
}

/// What a client does with a file in a manifest; encoded as a [`HiLo`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ManifestFlags(pub u32);

impl ManifestFlags {
    /// The download is compressed with gzip.
    pub const GZIP: u32 = 8;

    /// All flags with their names: split a stereo sound into two cached files, stream a compressed
    /// sound while playing it, keep a stereo sound in the cache, unpack the download, run the
    /// installer, treat it as a bundle (macOS).
    pub const NAMES: &'static Names = &Names::fixed(&[
        (1, "SplitStereo"),
        (2, "StreamCompressed"),
        (4, "Stereo"),
        (8, "Gzip"),
        (16, "RedistUpdate"),
        (32, "Bundle"),
    ]);
}

impl<'d> Field<'d> for ManifestFlags {
    type Owned = Self;
    const LEAST: usize = 6;

    fn layout() -> Cow<'static, str> {
        HiLo::layout()
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        reader.shown(
            name,
            |reader| HiLo::take(reader).map(|flags| Self(flags.0)),
            |flags| Value::Flags(u64::from(flags.0), Self::NAMES),
        )
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        HiLo(self.0).encode(writer)
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let bits = json::flags(&json, Self::NAMES)?;
        u32::try_from(bits).map(Self).map_err(|_| json::expected("flags of 32 bits", &json))
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Self(u32::sample(sampler))
    }

    fn into_owned(self) -> Self {
        self
    }
}

record! {
    /// One file of the list of secure files.
    pub struct FileListEntry<'a> {
        /// The name with its directory, such as `SDL\x.sdl`.
        name "name": ZStr<'a>,
        /// The size of the download in bytes.
        size "size": HiLo,
    }
}

/// The files of a manifest as sent: entries, then one more zero unit.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Manifest<'a>(pub Vec<ManifestEntry<'a>>);

/// The secure files that a client may download, as sent: entries, then one more zero unit. An empty
/// list is sent as two zero units; one is accepted too.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FileList<'a>(pub Vec<FileListEntry<'a>>);

/// Reads entries until there is a zero unit in place of the next name.
fn entries<'d, 'n, T: Trace<'n>, E: Field<'d>>(reader: &mut Reader<'d, T>) -> Result<Vec<E>> {
    let mut entries = Vec::new();
    while !reader.rest().starts_with(&[0, 0]) {
        let index = entries.len();
        reader.capacity(index as u64 + 1, u64::MAX, E::LEAST)?;
        entries.push(reader.item(index, |reader| E::decode(reader, ""))?);
    }
    reader.take(2)?;
    Ok(entries)
}

macro_rules! unit_list {
    ($type:ident, $entry:ident, $name:literal, empty: $empty:literal, accepts: $accepts:expr) => {
        impl<'d> Inner<'d> for $type<'d> {
            const NAME: &'static str = $name;
            const UNIT: usize = 2;
            const ONE_FORM: bool = false;
            const SHAPE: Value<'static> = Value::List;

            fn decode_inner<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
                // Implementations disagree on the number of zero units in an empty list.
                if reader.rest().len() <= 4 && $accepts.contains(&reader.rest()) {
                    reader.take(reader.remaining())?;
                    return Ok(Self(Vec::new()));
                }
                let entries = entries(reader)?;
                reader.end()?;
                Ok(Self(entries))
            }
        }

        impl InnerFamily for $type<'static> {
            type At<'d> = $type<'d>;
        }

        impl $type<'_> {
            /// Encodes a list given as JSON, like [`Field::from_json`] followed by
            /// [`Field::encode`], but with one entry in memory at a time.
            pub fn json_to_bytes(json: &Json) -> Result<Vec<u8>> {
                let items = json.as_array().ok_or_else(|| json::expected("an array", json))?;
                let mut writer = Writer::new();
                for (index, item) in items.iter().enumerate() {
                    let entry = $entry::from_json(item.into());
                    let written = entry.and_then(|entry| Self::write(&entry, &mut writer));
                    written.map_err(|error| error.inside_item(index))?;
                }
                writer.zeros(if items.is_empty() { $empty * 2 } else { 2 });
                Ok(writer.into_bytes())
            }

            fn write(entry: &$entry<'_>, writer: &mut Writer) -> Result<()> {
                if !entry.has_name() {
                    return Err(Error::invalid("the name is missing"));
                }
                entry.encode(writer)
            }
        }

        /// The list as a stand-alone format, for codecs.
        impl<'d> Field<'d> for $type<'d> {
            type Owned = $type<'static>;
            const LEAST: usize = 2;

            fn layout() -> Cow<'static, str> {
                Cow::Borrowed($name)
            }

            fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
                reader.list(name, Self::decode_inner)
            }

            fn encode(&self, writer: &mut Writer) -> Result<()> {
                for (index, entry) in self.0.iter().enumerate() {
                    Self::write(entry, writer).map_err(|error| error.inside_item(index))?;
                }
                writer.zeros(if self.0.is_empty() { $empty * 2 } else { 2 });
                Ok(())
            }

            fn from_json(json: Given<'_>) -> Result<Self> {
                list_from_json(json).map(Self)
            }

            fn sample(sampler: &mut Sampler) -> Self {
                let count = sampler.length(6);
                let entry = |_| $entry::sample(sampler);
                let named = |entry: &$entry<'_>| entry.has_name();
                Self((0..count).map(entry).filter(named).collect())
            }

            fn into_owned(self) -> Self::Owned {
                $type(self.0.into_iter().map(Field::into_owned).collect())
            }
        }
    };
}

unit_list! {
    Manifest, ManifestEntry, "manifest", empty: 1, accepts: [&[0, 0][..], &[0, 0, 0, 0][..]]
}
unit_list! {
    FileList, FileListEntry, "file list", empty: 2, accepts: [&[0, 0][..], &[0, 0, 0, 0][..]]
}

impl ManifestEntry<'_> {
    /// Whether the entry has a name; without one it would be read as the end of the list.
    fn has_name(&self) -> bool {
        !self.client_name.is_empty()
    }
}

impl FileListEntry<'_> {
    /// Whether the entry has a name; without one it would be read as the end of the list.
    fn has_name(&self) -> bool {
        !self.name.is_empty()
    }
}

/// The maximum number of units in a manifest's names.
const MAX_NAME_UNITS: usize = 259;

impl Manifest<'static> {
    /// Parses a manifest file (`.mfs`): one file per line with seven comma-separated fields. `#`
    /// starts a comment.
    ///
    /// # Errors
    /// Returns all lines that cannot be parsed, each with its number and the problem.
    pub fn parse(text: &str) -> Result<Self, Vec<ManifestError>> {
        let mut entries = Vec::new();
        let mut errors = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let content = line.split('#').next().unwrap_or("").trim();
            if content.is_empty() {
                continue;
            }
            match parse_line(content) {
                Ok(entry) => entries.push(entry),
                Err((column, wanted, found)) => {
                    errors.push(ManifestError { line: index + 1, column, wanted, found });
                }
            }
        }
        if errors.is_empty() { Ok(Self(entries)) } else { Err(errors) }
    }
}

impl Manifest<'_> {
    /// Formats the manifest as a file; the inverse of [`Manifest::parse`].
    ///
    /// # Errors
    /// `Value` for an entry that a file cannot express, such as a name with a comma, a `#` or a
    /// line break.
    pub fn format(&self) -> Result<String> {
        let mut text = String::new();
        for (index, entry) in self.0.iter().enumerate() {
            let names =
                [&entry.client_name, &entry.download_name, &entry.md5, &entry.md5_compressed];
            let from = text.len();
            for name in names.map(ZStr::to_text) {
                let _ = write!(text, "{name},");
            }
            let (size, small) = (entry.file_size.0, entry.compressed_size.0);
            let _ = write!(text, "{size},{small},{}", entry.flags.0);
            let line = &text[from..];
            let read = if line.contains(['#', '\n', '\r']) { None } else { parse_line(line).ok() };
            if read.as_ref() != Some(entry) {
                let wanted =
                    "names without commas, # or line breaks, and digests of 32 hexadecimal digits";
                return Err(Error::value(wanted, format!("\"{line}\"")).inside_item(index));
            }
            text.push('\n');
        }
        Ok(text)
    }
}

/// A line of a manifest file that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, field {column}: wanted {wanted}, found \"{found}\"")]
pub struct ManifestError {
    /// The line, from 1.
    pub line: usize,
    /// Which of the seven fields, from 1.
    pub column: usize,
    /// What was expected.
    pub wanted: &'static str,
    /// The text of the field.
    pub found: String,
}

fn parse_line(line: &str) -> Result<ManifestEntry<'static>, (usize, &'static str, String)> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let Ok([client, download, md5, small_md5, size, small, flags]) =
        <[&str; 7]>::try_from(fields.as_slice())
    else {
        return Err((fields.len(), "seven comma-separated fields", line.to_owned()));
    };
    let name = |column, text: &str| {
        let units = text.encode_utf16().count();
        if units == 0 || units > MAX_NAME_UNITS {
            return Err((column, "a name of 1 to 259 UTF-16 units", text.to_owned()));
        }
        Ok(ZStr::from(text))
    };
    let digest = |column, text: &str| {
        let good = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if good {
            Ok(ZStr::from(text))
        } else {
            Err((column, "32 hexadecimal digits", text.into()))
        }
    };
    let number = |column, text: &str| {
        let parsed = text.parse().map(HiLo);
        parsed.map_err(|_| (column, "a 32-bit whole number", text.to_owned()))
    };
    Ok(ManifestEntry {
        client_name: name(1, client)?,
        download_name: name(2, download)?,
        md5: digest(3, md5)?,
        md5_compressed: digest(4, small_md5)?,
        file_size: number(5, size)?,
        compressed_size: number(6, small)?,
        flags: ManifestFlags(number(7, flags)?.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "dat\\a.txt,a.txt.gz,eea3588849f466778574d081598574ff,\
                        e9df2471268044ff888df0f8ebaa0e6c,48,67,8";

    #[test]
    fn text_and_binary_forms_agree() {
        let text = format!("# a comment\n\n{LINE}  # another\n");
        let manifest = Manifest::parse(&text).unwrap();
        assert_eq!(manifest.0.len(), 1);
        assert_eq!(manifest.format().unwrap(), format!("{LINE}\n"));
        let mut writer = Writer::new();
        manifest.encode(&mut writer).unwrap();
        let back = Manifest::decode_inner(&mut Reader::new(writer.as_bytes())).unwrap();
        assert_eq!(back, manifest);
    }

    #[test]
    fn json_is_encoded_one_entry_at_a_time() {
        let json = json::json!([{"name": "a.pak", "size": 5}, {"name": "b.pak", "size": 70_000}]);
        let mut writer = Writer::new();
        FileList::from_json((&json).into()).unwrap().encode(&mut writer).unwrap();
        assert_eq!(FileList::json_to_bytes(&json).unwrap(), writer.into_bytes());
        for (wrong, wanted) in [
            (
                json::json!([{"name": "a", "size": 1}, {"name": "", "size": 1}]),
                "[1]: the name is missing",
            ),
            (json::json!([{"name": "a", "size": "x"}]), "[0].size: wanted "),
            (json::json!({}), "wanted an array, found {}"),
        ] {
            let error = FileList::json_to_bytes(&wrong).unwrap_err().to_string();
            assert!(error.starts_with(wanted), "{error}");
            let mut writer = Writer::new();
            let list = FileList::from_json((&wrong).into());
            let same = list.and_then(|list| list.encode(&mut writer)).unwrap_err();
            assert_eq!(same.to_string(), error);
        }
        assert_eq!(FileList::json_to_bytes(&json::json!([])).unwrap(), [0; 4]);
        assert_eq!(Manifest::json_to_bytes(&json::json!([])).unwrap(), [0; 2]);
    }

    #[test]
    fn every_bad_line_is_reported() {
        let errors = Manifest::parse("a,b\nx,y,zz,zz,1,2,3\n").unwrap_err();
        let shown: Vec<_> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "line 1, field 2: wanted seven comma-separated fields, found \"a,b\"",
                "line 2, field 3: wanted 32 hexadecimal digits, found \"zz\"",
            ]
        );
    }
}
