//! The table of contents, as bytes, values and JSON.

use std::borrow::Cow;

use worldwire_core::json::{self, FieldsOf, Json};
use worldwire_core::{Error, Form, Names, Reader, Result, Trace, Value, Writer};

const MAGIC: &[u8; 5] = b"KIWAD";
/// The size of an entry in bytes, without its name.
const ENTRY_BYTES: usize = 21;

/// The compressed size that marks an uncompressed entry.
pub const STORED_SIZE: u32 = u32::MAX;

/// The latest known version of archives. Later versions are read in the same way.
pub const LATEST_VERSION: u32 = 2;

/// The names of archive flags, from version 2 on.
pub static FLAGS: Names = Names::fixed(&[(1, "MemoryMap"), (2, "Prefetch")]);

/// A table of contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table<'d> {
    /// The version: 1, or 2 and later.
    pub version: u32,
    /// The archive's flags, present from version 2 on; see [`FLAGS`].
    pub flags: u8,
    /// The entries, in file order.
    pub entries: Vec<Entry<'d>>,
}

/// A file in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<'d> {
    /// The name without its NUL. UTF-8 in all known archives.
    pub name: Cow<'d, [u8]>,
    /// Whether the name ends with a NUL, as it should.
    pub terminated: bool,
    /// The offset of the data from the start of the archive.
    pub offset: u32,
    /// The size of the file in bytes.
    pub size: u32,
    /// The number of stored bytes if the file is compressed, otherwise [`STORED_SIZE`].
    pub compressed_size: u32,
    /// Whether the file is compressed: 0 or 1; other values mean 1.
    pub compressed: u8,
    /// The [`crc`](super::crc) of the stored bytes.
    pub crc: u32,
}

/// A table with all bytes after it, for tools that treat an archive as a single value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveFile<'d> {
    /// The table.
    pub table: Table<'d>,
    /// The bytes after the table. Offsets are still relative to the start of the table.
    pub data: Cow<'d, [u8]>,
}

impl<'d> Entry<'d> {
    /// Whether the data is compressed.
    #[must_use]
    pub fn is_compressed(&self) -> bool {
        self.compressed != 0
    }

    /// The number of stored bytes.
    #[must_use]
    pub fn stored_size(&self) -> u32 {
        if self.is_compressed() { self.compressed_size } else { self.size }
    }

    /// The name for display. Invalid UTF-8 becomes U+FFFD.
    #[must_use]
    pub fn name_lossy(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.name)
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        let offset = reader.u32("offset")?;
        let size = reader.u32("size")?;
        let compressed_size = reader.u32("compressed_size")?;
        let compressed = reader.u8("compressed")?;
        let crc = reader.shown(
            "crc",
            |reader| reader.take_array().map(u32::from_le_bytes),
            |crc| Value::Hex(u64::from(*crc)),
        )?;
        let start = reader.place_if_on();
        let at = reader.position() as u64;
        let max = reader.limits().string_bytes;
        let (name, terminated) = take_name(reader, at, max).map_err(|e| e.inside("name"))?;
        if T::ON {
            // The span is reported before the NUL is taken, so that it covers only the name.
            let span = reader.span_behind(Form::Utf8, name.len());
            reader.leaf_from("name", start, span);
        }
        if terminated {
            reader.take(1)?;
        } else {
            let place = reader.place_if_on();
            reader.leaf_from("terminated", place, Value::Bool(false));
        }
        let name = Cow::Borrowed(name);
        Ok(Self { name, terminated, offset, size, compressed_size, compressed, crc })
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        let length = self.name.len() as u64 + u64::from(self.terminated);
        let length = u32::try_from(length)
            .map_err(|_| Error::limit("bytes of a name", u64::from(u32::MAX), length))?;
        if !self.terminated && self.name.last() == Some(&0) {
            return Err(
                Error::value("a name without a trailing NUL", "a name with one").inside("name")
            );
        }
        writer.u32(self.offset);
        writer.u32(self.size);
        writer.u32(self.compressed_size);
        writer.u8(self.compressed);
        writer.u32(self.crc);
        writer.u32(length);
        writer.bytes(&self.name);
        if self.terminated {
            writer.u8(0);
        }
        Ok(())
    }

    fn from_json(json: &Json) -> Result<Entry<'static>> {
        let mut fields = FieldsOf::new(json)?;
        let name = json::text(fields.take("name")?, |text| text.as_bytes().to_vec());
        let entry = Entry {
            name: Cow::Owned(name.map_err(|error| error.inside("name"))?),
            offset: fields.value("offset")?,
            size: fields.value("size")?,
            compressed_size: fields.value("compressed_size")?,
            compressed: fields.value("compressed")?,
            crc: fields.value("crc")?,
            terminated: fields.take_optional("terminated").is_none_or(|v| v != &Json::Bool(false)),
        };
        fields.end()?;
        Ok(entry)
    }
}

/// Takes the count and the name, but not the NUL.
fn take_name<'d, T>(reader: &mut Reader<'d, T>, at: u64, max: u64) -> Result<(&'d [u8], bool)> {
    let length = u32::from_le_bytes(reader.take_array()?);
    if u64::from(length) > max {
        return Err(Error::limit("string bytes", max, u64::from(length)).at(at));
    }
    let length = length as usize;
    let Some(stored) = reader.rest().get(..length) else {
        return Err(Error::incomplete(length, reader.remaining()).at(reader.position() as u64));
    };
    let terminated = stored.last() == Some(&0);
    let name = reader.take(length - usize::from(terminated))?;
    Ok((name, terminated))
}

impl<'d> Table<'d> {
    /// Decodes the table and leaves the reader at its end.
    ///
    /// # Errors
    /// `Malformed` if the bytes are not an archive; `Incomplete` if the table is truncated; a limit
    /// error for too many elements or string bytes.
    pub fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        let start = reader.place_if_on();
        let found: [u8; 5] = reader.take_array().map_err(|error| error.inside("magic"))?;
        if &found != MAGIC {
            let found = format!("\"{}\"", found.escape_ascii());
            return Err(Error::malformed("\"KIWAD\"", found).at(0).inside("magic"));
        }
        let magic = reader.span_behind(Form::Utf8, MAGIC.len());
        reader.leaf_from("magic", start, magic);
        let at = reader.position() as u64;
        let version = reader.u32("version")?;
        if version == 0 {
            return Err(Error::malformed("version 1 or 2", "0").at(at).inside("version"));
        }
        let count = reader.u32("file_count")?;
        let flags = if version < 2 {
            0
        } else {
            reader.shown(
                "flags",
                |reader| reader.take_array().map(|[flags]: [u8; 1]| flags),
                |flags| Value::Flags(u64::from(*flags), &FLAGS),
            )?
        };
        let read = |reader: &mut Reader<'d, T>| {
            let capacity = reader.capacity(u64::from(count), u64::MAX, ENTRY_BYTES)?;
            // An entry takes more memory than its encoding, so capacity grows with the decoded
            // data.
            let mut entries = Vec::with_capacity(capacity.min(1024));
            for index in 0..count as usize {
                entries.push(reader.item(index, |reader| reader.record("", |r| Entry::decode(r)))?);
            }
            Ok(entries)
        };
        let entries = reader.list("entries", read).map_err(|error| match version {
            1..=LATEST_VERSION => error,
            _ => error.hint(format!(
                "archive version {version} is unknown and was read like version {LATEST_VERSION}; \
                 the known versions are 1 and 2"
            )),
        })?;
        Ok(Self { version, flags, entries })
    }

    /// Encodes the table.
    ///
    /// # Errors
    /// `Value` for version 0 and for flags in version 1; a limit error for counts that are too
    /// large.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.bytes(MAGIC);
        if self.version == 0 {
            return Err(Error::value("version 1 or later", "0").inside("version"));
        }
        writer.u32(self.version);
        let count = u32::try_from(self.entries.len());
        writer.u32(count.map_err(|_| Error::value("at most 4294967295 entries", "more"))?);
        match (self.version, self.flags) {
            (1, 0) => {}
            (1, flags) => {
                let error = Error::value("no flags in version 1", flags.to_string());
                return Err(error.inside("flags"));
            }
            (_, flags) => writer.u8(flags),
        }
        self.entries.iter().enumerate().try_for_each(|(index, entry)| {
            entry.encode(writer).map_err(|error| error.inside_item(index).inside("entries"))
        })
    }

    /// Encodes the table to bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut writer = Writer::new();
        self.encode(&mut writer).map(|()| writer.into_bytes())
    }

    /// The size of the encoded table in bytes.
    #[must_use]
    pub fn encoded_size(&self) -> u64 {
        let names = self.entries.iter().map(|e| e.name.len() as u64 + u64::from(e.terminated));
        let head = MAGIC.len() as u64 + 8 + u64::from(self.version >= 2);
        head + (self.entries.len() * ENTRY_BYTES) as u64 + names.sum::<u64>()
    }

    /// Adjusts the offsets of data that followed a table of this size to the current size.
    fn move_data(&mut self, before: u64) -> Result<()> {
        let now = self.encoded_size();
        for (index, entry) in self.entries.iter_mut().enumerate() {
            let Some(distance) = u64::from(entry.offset).checked_sub(before) else { continue };
            let offset = now + distance;
            entry.offset = u32::try_from(offset).map_err(|_| {
                let error = Error::limit("archive offset", u64::from(u32::MAX), offset);
                error.inside("offset").inside_item(index).inside("entries")
            })?;
        }
        Ok(())
    }

    fn from_fields(fields: &mut FieldsOf<'_>) -> Result<Table<'static>> {
        let magic = fields.take_optional("magic");
        if let Some(magic) = magic.filter(|magic| magic.as_str() != Some("KIWAD")) {
            return Err(Error::value("\"KIWAD\"", magic.to_string()).inside("magic"));
        }
        let promised = fields.take_optional("file_count");
        let version = fields.value("version")?;
        let flags = match fields.take_optional("flags") {
            None => 0,
            Some(json) => json::flags(json, &FLAGS)
                .and_then(|bits| {
                    u8::try_from(bits).map_err(|_| Error::value("8-bit flags", bits.to_string()))
                })
                .map_err(|error| error.inside("flags"))?,
        };
        let list = fields.take("entries")?;
        let items = list.as_array().ok_or_else(|| json::expected("an array", list));
        let entries = items.and_then(|items| {
            let one = |(index, item)| {
                Entry::from_json(item).map_err(|error: Error| error.inside_item(index))
            };
            items.iter().enumerate().map(one).collect()
        });
        let entries: Vec<_> = entries.map_err(|error| error.inside("entries"))?;
        let count = entries.len();
        if let Some(promised) = promised.filter(|it| it.as_u64() != Some(count as u64)) {
            let error =
                Error::value(format!("{count}, the number of entries"), promised.to_string());
            return Err(error.inside("file_count"));
        }
        Ok(Table { version, flags, entries })
    }
}

impl<'d> ArchiveFile<'d> {
    /// Decodes the table and takes the rest as bytes.
    pub fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        let start = reader.position();
        let table = Table::decode(reader).map_err(Error::closed)?;
        if T::ON {
            let size = (reader.position() - start) as u64;
            let place = reader.place_if_on();
            reader.leaf_from("table_size", place, Value::Unsigned(size));
        }
        let data = reader.bytes("data", reader.remaining())?;
        Ok(Self { table, data: Cow::Borrowed(data) })
    }

    /// Encodes the archive to bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut writer = Writer::new();
        self.table.encode(&mut writer)?;
        writer.bytes(&self.data);
        Ok(writer.into_bytes())
    }

    /// Reads an archive from JSON. `table_size` is the former size of the table: if names or
    /// entries changed, the data moves and the offsets are adjusted. Without `table_size`, the
    /// offsets stay as they are.
    ///
    /// # Errors
    /// `Value` if the JSON is not an archive, the magic or the file count is wrong, or if an offset
    /// reaches 4 GiB.
    pub fn from_json(json: &Json) -> Result<ArchiveFile<'static>> {
        let mut fields = FieldsOf::new(json)?;
        let mut table = Table::from_fields(&mut fields)?;
        if let Some(size) = fields.take_optional("table_size") {
            let size = size.as_u64().ok_or_else(|| json::expected("a number", size));
            table.move_data(size.map_err(|error| error.inside("table_size"))?)?;
        }
        let data = json::bytes(fields.take("data")?).map_err(|error| error.inside("data"))?;
        fields.end()?;
        Ok(ArchiveFile { table, data: Cow::Owned(data) })
    }
}
