//! DML tables, as in `LatestFileList.bin`.
//!
//! A file is a sequence of tables. A table is a `u32` count of records, a template, and the
//! records. Template and record have a header like that of a message of service 2: `u8` 2, `u8`
//! kind (1 template, 2 record), `u16` total size including these four bytes.
//!
//! The template lists the fields: `u16` count and name, `u8` type, `u8` flags. The last field is
//! `_TargetTable`, followed by a `STR` with the table's name. A record contains the values.

use core::fmt;
use std::collections::HashSet;

use worldwire_core::json::{self, FieldsOf, Json};
use worldwire_core::{Error, Field, Reader, Result, Trace, Value, Writer};

use crate::types::{FieldType, FieldValue, Str};

const SERVICE: u8 = 2;
const TEMPLATE: u8 = 1;
const RECORD: u8 = 2;
const TARGET: &[u8] = b"_TargetTable";
/// The flags of all known columns. Unverified: their meaning.
pub const USUAL_FLAGS: u8 = 0x28;

/// A file of tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableFile<'d> {
    /// The tables.
    pub tables: Vec<Table<'d>>,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table<'d> {
    /// The name.
    pub name: Str<'d>,
    /// The columns.
    pub columns: Vec<Column<'d>>,
    /// The flags of `_TargetTable`.
    pub target_flags: u8,
    /// The size that the template states, if it is wrong.
    pub stated_size: Option<u16>,
    /// The records.
    pub records: Vec<Row<'d>>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column<'d> {
    /// The name.
    pub name: Str<'d>,
    /// The type; never `BOOL`.
    pub kind: FieldType,
    /// Usually [`USUAL_FLAGS`].
    pub flags: u8,
}

/// A record of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row<'d> {
    /// The values, in column order.
    pub values: Vec<FieldValue<'d>>,
    /// The size that the record states, if it is wrong.
    pub stated_size: Option<u16>,
}

impl<'d> TableFile<'d> {
    /// Decodes all tables up to the end of the file.
    ///
    /// A record or template whose stated size is wrong is decoded according to its columns. The
    /// wrong size is kept ([`Self::warnings`]), so that encoding reproduces the same bytes.
    ///
    /// # Errors
    /// `Malformed` if it is not a table file or is truncated; a limit error for too many elements.
    pub fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        let tables = reader.list("tables", |reader| {
            let mut tables = Vec::new();
            while reader.remaining() > 0 {
                let table = reader
                    .item(tables.len(), |reader| reader.record("", |reader| Table::decode(reader)));
                tables.push(table?);
            }
            Ok(tables)
        });
        tables.map(|tables| Self { tables }).map_err(Error::closed)
    }

    /// Encodes the file.
    ///
    /// # Errors
    /// `Value` if the values of a record do not match the columns; a limit error if a limit is
    /// exceeded.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        self.tables.iter().enumerate().try_for_each(|(index, table)| {
            table.encode(writer).map_err(|error| error.inside_item(index).inside("tables"))
        })
    }

    /// Encodes the file to bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut writer = Writer::new();
        self.encode(&mut writer).map(|()| writer.into_bytes())
    }

    /// Reads a file from JSON.
    pub fn from_json(json: &Json) -> Result<TableFile<'static>> {
        let mut fields = FieldsOf::new(json)?;
        let tables = each(fields.take("tables")?, table_from_json);
        fields.end()?;
        tables.map(|tables| TableFile { tables }).map_err(|error| error.inside("tables"))
    }

    /// Encodes a file from JSON, like [`Self::from_json`] and [`Self::to_bytes`], without holding
    /// all records in memory at the same time.
    pub fn json_to_bytes(json: &Json) -> Result<Vec<u8>> {
        let mut fields = FieldsOf::new(json)?;
        let mut writer = Writer::new();
        let tables = each(fields.take("tables")?, |json| write_table(json, &mut writer));
        fields.end()?;
        tables.map(|_| writer.into_bytes()).map_err(|error| error.inside("tables"))
    }

    /// Refuses everything that [`Self::warnings`] and [`Self::missing`] report.
    pub fn strict(&self) -> Result<()> {
        if let Some(name) = self.missing().first() {
            return Err(Error::malformed(format!("table {name}"), "the end of the file"));
        }
        match self.warnings().next() {
            None => Ok(()),
            Some(warning) => Err(Error::malformed("", warning)),
        }
    }

    /// The tables that are listed in `_TableList` but missing because the file was truncated
    /// between two tables. At most 100 are returned.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        const LIST: &[u8] = b"_TableList";
        const MAX: usize = 100;
        let there: HashSet<&[u8]> = self.tables.iter().map(|table| table.name.as_bytes()).collect();
        let lists = self.tables.iter().filter(|table| table.name.as_bytes() == LIST);
        let rows = lists.flat_map(|list| &list.records);
        let names = rows.filter_map(|row| match row.values.first() {
            Some(FieldValue::Str(name)) => Some(name.as_bytes()),
            _ => None,
        });
        let missing = names.filter(|name| !name.is_empty() && !there.contains(name));
        missing.map(shown).take(MAX).collect()
    }

    /// Warnings about wrong sizes. Each text is built on demand and quotes at most 80 characters of
    /// a name: in a hostile file, every record can have one.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        self.tables.iter().flat_map(|table| {
            let text = |what: fmt::Arguments<'_>, size: u16| {
                let name = shown(table.name.as_bytes());
                format!("table {name}: {what} states a wrong size, {size} bytes")
            };
            let template = table.stated_size.map(|size| text(format_args!("the template"), size));
            let records = table.records.iter().enumerate().filter_map(move |(index, row)| {
                row.stated_size.map(|size| text(format_args!("record {index}"), size))
            });
            template.into_iter().chain(records)
        })
    }
}

impl<'d> Table<'d> {
    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        let start = reader.place_if_on();
        let count = u32::from_le_bytes(reader.take_array()?);
        reader.leaf_from("count", start, Value::Unsigned(u64::from(count)));
        let at = reader.position();
        let stated = head(reader, TEMPLATE)?;
        let mut columns = Vec::new();
        let mut target_flags = 0;
        reader.list("columns", |reader| {
            loop {
                let last = reader.item(columns.len(), |reader| {
                    reader.record("", |reader| {
                        let column = Column::decode(reader)?;
                        let last = column.name.as_bytes() == TARGET;
                        if last {
                            target_flags = column.flags
                        } else {
                            columns.push(column)
                        }
                        Ok(last)
                    })
                })?;
                if last {
                    return Ok(());
                }
            }
        })?;
        let name = Str::decode(reader, "name")?;
        let stated_size = wrong_size(reader, at, stated);
        let records = reader.list("records", |reader| {
            let least = HEAD_BYTES;
            let capacity = reader.capacity(u64::from(count), u64::from(u32::MAX), least)?;
            let mut records = Vec::with_capacity(capacity.min(1024));
            for index in 0..count as usize {
                records.push(reader.item(index, |reader| {
                    reader.record("", |reader| Row::decode(reader, &columns))
                })?);
            }
            Ok(records)
        })?;
        Ok(Self { name, columns, target_flags, stated_size, records })
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        self.encode_template(self.records.len(), writer)?;
        for (index, row) in self.records.iter().enumerate() {
            let inside = |error: Error| error.inside_item(index).inside("records");
            let kinds = row.values.iter().map(FieldValue::kind);
            if !kinds.eq(self.columns.iter().map(|column| column.kind)) {
                return Err(inside(Error::value(
                    "values that match the columns",
                    "values of other types",
                )));
            }
            row.encode(writer).map_err(inside)?;
        }
        Ok(())
    }

    /// Encodes everything before this many records.
    fn encode_template(&self, records: usize, writer: &mut Writer) -> Result<()> {
        let count = u32::try_from(records);
        writer.u32(count.map_err(|_| Error::value("at most 4294967295 records", "more"))?);
        sized(writer, TEMPLATE, self.stated_size, |writer| {
            for column in &self.columns {
                let tag = column.kind.table_tag();
                let tag = tag.ok_or_else(|| {
                    Error::value("a type that tables support", column.kind.name())
                })?;
                column.name.encode(writer)?;
                writer.u8(tag);
                writer.u8(column.flags);
            }
            Str::new(TARGET).encode(writer)?;
            writer.u8(9);
            writer.u8(self.target_flags);
            self.name.encode(writer)
        })
    }
}

const HEAD_BYTES: usize = 4;
/// Warnings quote at most this many characters of a name.
const MAX_SHOWN: usize = 80;

/// A name for display, truncated if it is too long.
pub(super) fn shown(name: &[u8]) -> String {
    // A character takes at most four bytes, so the rest is not needed.
    let head = name.get(..MAX_SHOWN * 4).unwrap_or(name);
    let text = String::from_utf8_lossy(head);
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.into_owned(),
    }
}

impl<'d> Column<'d> {
    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        let name = Str::decode(reader, "name")?;
        let at = reader.position() as u64;
        let tag = reader.u8("type")?;
        let flags = reader.u8("flags")?;
        let kind = FieldType::from_table_tag(tag).ok_or_else(|| {
            // Some tools count the types from 0.
            let wanted = match tag {
                0 => "a type from 1 to 11; if all types count from 0, add 1 to each",
                _ => "a type from 1 to 11",
            };
            Error::malformed(wanted, tag.to_string()).at(at).inside("type")
        })?;
        if name.as_bytes() == TARGET && kind != FieldType::Str {
            let error = Error::malformed("type 9 for _TargetTable", tag.to_string());
            return Err(error.at(at).inside("type"));
        }
        Ok(Self { name, kind, flags })
    }
}

impl<'d> Row<'d> {
    fn decode<'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        columns: &[Column<'d>],
    ) -> Result<Self> {
        let at = reader.position();
        let stated = head(reader, RECORD)?;
        let values = reader.list("values", |reader| {
            let mut values = Vec::with_capacity(columns.len().min(reader.remaining() + 1));
            for (index, column) in columns.iter().enumerate() {
                values.push(
                    reader.item(index, |reader| FieldValue::decode(column.kind, reader, ""))?,
                );
            }
            Ok(values)
        })?;
        Ok(Self { values, stated_size: wrong_size(reader, at, stated) })
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        sized(writer, RECORD, self.stated_size, |writer| {
            self.values.iter().try_for_each(|value| value.encode(writer))
        })
    }
}

fn head<'d, 'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, kind: u8) -> Result<u16> {
    for (name, wanted) in [("service", SERVICE), ("kind", kind)] {
        let at = reader.position() as u64;
        let found = reader.take_array().map_err(|error| error.inside(name))?;
        if found != [wanted] {
            let error = Error::malformed(wanted.to_string(), found[0].to_string());
            return Err(error.at(at).inside(name));
        }
    }
    reader.u16("size")
}

fn wrong_size<T>(reader: &Reader<'_, T>, at: usize, stated: u16) -> Option<u16> {
    (reader.position() - at != usize::from(stated)).then_some(stated)
}

fn sized(
    writer: &mut Writer,
    kind: u8,
    stated: Option<u16>,
    write: impl FnOnce(&mut Writer) -> Result<()>,
) -> Result<()> {
    writer.u8(SERVICE);
    writer.u8(kind);
    let size = writer.reserve::<2>();
    write(writer)?;
    let real = writer.since(size) + HEAD_BYTES;
    let real = match stated {
        Some(stated) => stated,
        None => u16::try_from(real)
            .map_err(|_| Error::limit("bytes of a record", 0xffff, real as u64))?,
    };
    writer.patch(size, real.to_le_bytes());
    Ok(())
}

fn each<V>(json: &Json, mut read: impl FnMut(&Json) -> Result<V>) -> Result<Vec<V>> {
    let items = json.as_array().ok_or_else(|| json::expected("an array", json))?;
    let one = |(index, item)| read(item).map_err(|error| error.inside_item(index));
    items.iter().enumerate().map(one).collect()
}

const BYTE: &str = "a whole number from 0 to 255";
const SIZE: &str = "a whole number from 0 to 65535";

fn table_from_json(json: &Json) -> Result<Table<'static>> {
    let mut fields = FieldsOf::new(json)?;
    let mut table = template_from_json(&mut fields)?;
    let records = each(fields.take("records")?, |json| row_from_json(json, &table.columns));
    table.records = records.map_err(|error| error.inside("records"))?;
    fields.end()?;
    Ok(table)
}

/// Encodes a table from JSON, one record at a time.
fn write_table(json: &Json, writer: &mut Writer) -> Result<()> {
    let mut fields = FieldsOf::new(json)?;
    let table = template_from_json(&mut fields)?;
    let records = fields.take("records")?;
    table.encode_template(records.as_array().map_or(0, <[_]>::len), writer)?;
    let written = each(records, |json| row_from_json(json, &table.columns)?.encode(writer));
    written.map_err(|error| error.inside("records"))?;
    fields.end()
}

fn template_from_json(fields: &mut FieldsOf<'_>) -> Result<Table<'static>> {
    fields.take_optional("count");
    let stated_size = stated_size(fields)?;
    let mut target_flags = USUAL_FLAGS;
    let all =
        each(fields.take("columns")?, column_from_json).map_err(|error| error.inside("columns"))?;
    let mut columns = Vec::with_capacity(all.len());
    for column in all {
        if column.name.as_bytes() == TARGET {
            target_flags = column.flags;
        } else {
            columns.push(column);
        }
    }
    let name = Str::from_json(fields.given("name")?).map_err(|error| error.inside("name"))?;
    let mut table = Table { name, columns, target_flags, stated_size, records: Vec::new() };
    // Sizes from JSON are kept only if they are wrong.
    let template = table.template_bytes();
    table.stated_size = table.stated_size.filter(|size| usize::from(*size) != template);
    Ok(table)
}

impl Table<'_> {
    /// The size of the template in bytes.
    pub(super) fn template_bytes(&self) -> usize {
        let name = self.name.as_bytes().len();
        let columns = self.columns.iter().map(|column| column.name.as_bytes().len() + 4);
        HEAD_BYTES + columns.sum::<usize>() + TARGET.len() + 4 + 2 + name
    }
}

impl Row<'_> {
    /// The size of the record in bytes.
    pub(super) fn bytes(&self) -> usize {
        HEAD_BYTES + self.values.iter().map(value_bytes).sum::<usize>()
    }
}

fn value_bytes(value: &FieldValue<'_>) -> usize {
    let counted = match value {
        FieldValue::Str(text) => text.as_bytes().len(),
        FieldValue::WStr(text) => text.as_bytes().len(),
        _ => 0,
    };
    value.kind().min_size() + counted
}

fn stated_size(fields: &mut FieldsOf<'_>) -> Result<Option<u16>> {
    let size = fields.take_optional("size").map(|json| json::integer(json, SIZE));
    size.transpose().map_err(|error| error.inside("size"))
}

fn column_from_json(json: &Json) -> Result<Column<'static>> {
    let mut fields = FieldsOf::new(json)?;
    let name = Str::from_json(fields.given("name")?).map_err(|error| error.inside("name"))?;
    let tag = fields.take("type")?;
    let kind = json::integer(tag, BYTE).ok().and_then(FieldType::from_table_tag);
    let kind = kind.or_else(|| Some(FieldType::parse(tag.as_str()?)?.0));
    let kind = kind.ok_or_else(|| json::expected("a type from 1 to 11", tag).inside("type"))?;
    let flags = match fields.take_optional("flags") {
        Some(flags) => json::integer(flags, BYTE).map_err(|error| error.inside("flags"))?,
        None => USUAL_FLAGS,
    };
    fields.end()?;
    if name.as_bytes() == TARGET && kind != FieldType::Str {
        return Err(json::expected("type 9 for _TargetTable", tag).inside("type"));
    }
    Ok(Column { name, kind, flags })
}

fn row_from_json(json: &Json, columns: &[Column<'static>]) -> Result<Row<'static>> {
    let mut fields = FieldsOf::new(json)?;
    let stated_size = stated_size(&mut fields)?;
    let json = fields.take("values")?;
    let items = json.as_array().filter(|items| items.len() == columns.len());
    let wanted = || json::expected(format!("an array of {}", columns.len()), json);
    let items = items.ok_or_else(|| wanted().inside("values"))?;
    let one = |(index, (column, item)): (usize, (&Column<'_>, &Json))| {
        let value = FieldValue::from_json(column.kind, item).map(FieldValue::into_owned);
        value.map_err(|error| error.inside_item(index).inside("values"))
    };
    let values = columns.iter().zip(items).enumerate().map(one).collect::<Result<_>>()?;
    fields.end()?;
    let mut row = Row { values, stated_size };
    row.stated_size = row.stated_size.filter(|size| usize::from(*size) != row.bytes());
    Ok(row)
}
