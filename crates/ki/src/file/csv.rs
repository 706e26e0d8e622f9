//! Reading and writing DML tables as comma-separated values, for spreadsheets.
//!
//! A table is a line with its columns followed by a line for every record. A column consists of a
//! name, a type and, unless they are the usual ones, flags: `Size:UINT`, `Size:UINT:0x29`. In a
//! file, a line with only the name in brackets, `[Base]`, precedes every table; a single table
//! omits it. Strings that are not text are written as `hex:` and digits; text that begins with
//! `hex:` or `text:` is prefixed with another `text:`.

use csv::{ReaderBuilder, StringRecord, Terminator, WriterBuilder};
use worldwire_core::value::{parse_hex, push_hex};
use worldwire_core::{Error, Result};

use super::table::{Column, Row, Table, TableFile, USUAL_FLAGS};
use crate::types::{FieldType, FieldValue, Str, WStr};

const HEX: &str = "hex:";
const TEXT: &str = "text:";

impl Table<'_> {
    /// Writes this table without its name.
    ///
    /// # Errors
    /// `Value` if a stated size is wrong: CSV cannot represent it.
    pub fn to_csv(&self) -> Result<String> {
        self.check_sizes()?;
        let mut lines = vec![self.columns.iter().map(heading).collect::<Vec<_>>()];
        lines.extend(self.records.iter().map(|row| row.values.iter().map(cell).collect()));
        written(&lines)
    }

    fn check_sizes(&self) -> Result<()> {
        let wrong = self.records.iter().any(|row| row.stated_size.is_some());
        if self.stated_size.is_some() || wrong {
            let name = String::from_utf8_lossy(self.name.as_bytes()).into_owned();
            return Err(Error::invalid("states wrong sizes, which CSV cannot represent")
                .inside(&name)
                .hint("use JSON instead"));
        }
        Ok(())
    }
}

impl TableFile<'_> {
    /// Writes all tables, each preceded by its name.
    ///
    /// # Errors
    /// `Value` if a stated size is wrong: CSV cannot represent it.
    pub fn to_csv(&self) -> Result<String> {
        let mut out = String::new();
        for table in &self.tables {
            let name = cell(&FieldValue::Str(Str::new(table.name.as_bytes())));
            let flags = match table.target_flags {
                USUAL_FLAGS => String::new(),
                flags => format!(":{flags:#04x}"),
            };
            out.push_str(&written(&[vec![format!("[{name}]{flags}")]])?);
            out.push_str(&table.to_csv()?);
        }
        Ok(out)
    }

    /// Reads the output of [`TableFile::to_csv`] or [`Table::to_csv`]. A table without a name is
    /// given `name`.
    pub fn from_csv(text: &str, name: &str) -> Result<TableFile<'static>> {
        let mut reader =
            ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
        let mut tables: Vec<Table<'static>> = Vec::new();
        // Whether the next line has columns.
        let mut heads = false;
        for (index, record) in reader.records().enumerate() {
            let record = record.map_err(|error| Error::invalid(error.to_string()))?;
            let at = |error: Error| error.about(format!("row {}", index + 1));
            if let Some((name, target_flags)) = section(&record) {
                let name = string(&name).map_err(at)?;
                tables.push(empty(name, target_flags));
                heads = true;
            } else if heads || tables.is_empty() {
                if tables.is_empty() {
                    tables.push(empty(Str::new(name.as_bytes().to_vec()), USUAL_FLAGS));
                }
                if let Some(table) = tables.last_mut() {
                    table.columns =
                        cells(&record).map(column).collect::<Result<_>>().map_err(at)?;
                }
                heads = false;
            } else if let Some(table) = tables.last_mut() {
                let row = row(&record, &table.columns).map_err(at)?;
                table.records.push(row);
            }
        }
        Ok(TableFile { tables })
    }
}

fn empty(name: Str<'static>, target_flags: u8) -> Table<'static> {
    Table { name, columns: Vec::new(), target_flags, stated_size: None, records: Vec::new() }
}

pub(super) fn written(lines: &[Vec<String>]) -> Result<String> {
    let mut writer =
        WriterBuilder::new().flexible(true).terminator(Terminator::CRLF).from_writer(Vec::new());
    for line in lines {
        writer.write_record(line).map_err(|error| Error::invalid(error.to_string()))?;
    }
    let bytes = writer.into_inner().map_err(|error| Error::invalid(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| Error::invalid(error.to_string()))
}

fn heading(column: &Column<'_>) -> String {
    let name = cell(&FieldValue::Str(Str::new(column.name.as_bytes())));
    match column.flags {
        USUAL_FLAGS => format!("{name}:{}", column.kind.name()),
        flags => format!("{name}:{}:{flags:#04x}", column.kind.name()),
    }
}

fn cell(value: &FieldValue<'_>) -> String {
    let bytes = match (value.to_text(), value) {
        (Some(text), FieldValue::Str(_) | FieldValue::WStr(_))
            if text.starts_with(HEX) || text.starts_with(TEXT) =>
        {
            return format!("{TEXT}{text}");
        }
        (Some(text), _) => return text,
        (None, FieldValue::Str(value)) => value.as_bytes(),
        (None, FieldValue::WStr(value)) => value.as_bytes(),
        (None, _) => &[],
    };
    let mut out = HEX.to_owned();
    push_hex(&mut out, bytes);
    out
}

/// The cells of a row; an empty row is one empty cell.
fn cells(record: &StringRecord) -> impl Iterator<Item = &str> {
    let nothing = record.len() == 1 && record.get(0) == Some("");
    record.iter().filter(move |_| !nothing)
}

/// The name and flags from a line that begins a table.
fn section(record: &StringRecord) -> Option<(String, u8)> {
    let [line] = record.iter().collect::<Vec<_>>()[..] else { return None };
    let line = line.strip_prefix('[')?;
    if let Some(name) = line.strip_suffix(']') {
        return Some((name.to_owned(), USUAL_FLAGS));
    }
    let (name, flags) = line.rsplit_once("]:")?;
    Some((name.to_owned(), number(flags)?))
}

fn number(text: &str) -> Option<u8> {
    match text.strip_prefix("0x") {
        Some(digits) => u8::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn column(text: &str) -> Result<Column<'static>> {
    let wanted = || Error::value("a column such as Size:UINT", format!("\"{text}\""));
    let (rest, last) = text.rsplit_once(':').ok_or_else(wanted)?;
    let (name, kind, flags) = match number(last) {
        Some(flags) => {
            let (name, kind) = rest.rsplit_once(':').ok_or_else(wanted)?;
            (name, kind, flags)
        }
        None => (rest, last, USUAL_FLAGS),
    };
    let kind = FieldType::parse(kind).map(|(kind, _)| kind);
    let kind = kind.filter(|kind| *kind != FieldType::Bool).ok_or_else(wanted)?;
    Ok(Column { name: string(name)?, kind, flags })
}

fn row(record: &StringRecord, columns: &[Column<'_>]) -> Result<Row<'static>> {
    if columns.is_empty() && cells(record).next().is_none() {
        return Ok(Row { values: Vec::new(), stated_size: None });
    }
    if record.len() != columns.len() {
        let wanted = format!("{} cells", columns.len());
        return Err(Error::value(wanted, record.len().to_string()));
    }
    let read = |(column, text): (&Column<'_>, &str)| {
        value(column.kind, text)
            .map_err(|error| error.inside(&String::from_utf8_lossy(column.name.as_bytes())))
    };
    let values = columns.iter().zip(record.iter()).map(read).collect::<Result<_>>()?;
    Ok(Row { values, stated_size: None })
}

fn value(kind: FieldType, text: &str) -> Result<FieldValue<'static>> {
    match kind {
        FieldType::Str => string(text).map(FieldValue::Str),
        FieldType::WStr => match plain(text)? {
            Plain::Text(text) => Ok(FieldValue::WStr(WStr::from(text))),
            Plain::Bytes(bytes) => Ok(FieldValue::WStr(WStr::from_units(bytes))),
        },
        _ => FieldValue::parse(kind, text)
            .ok_or_else(|| Error::value(kind.name(), format!("\"{text}\""))),
    }
}

fn string(text: &str) -> Result<Str<'static>> {
    Ok(match plain(text)? {
        Plain::Text(text) => Str::new(text.as_bytes().to_vec()),
        Plain::Bytes(bytes) => Str::new(bytes),
    })
}

enum Plain<'t> {
    Text(&'t str),
    Bytes(Vec<u8>),
}

fn plain(text: &str) -> Result<Plain<'_>> {
    if let Some(digits) = text.strip_prefix(HEX) {
        let wanted = || Error::value("an even number of hexadecimal digits", format!("\"{text}\""));
        return parse_hex(digits).map(Plain::Bytes).ok_or_else(wanted);
    }
    Ok(Plain::Text(text.strip_prefix(TEXT).unwrap_or(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_tables_read_back() {
        let columns = [("a", FieldType::Str), ("b,\"c\"", FieldType::WStr), ("n", FieldType::Flt)];
        let columns: Vec<_> = columns
            .into_iter()
            .map(|(name, kind)| Column { name: Str::from(name), kind, flags: USUAL_FLAGS })
            .collect();
        let row = |a: &[u8], b: &[u8], n| Row {
            values: vec![
                FieldValue::Str(Str::new(a.to_vec())),
                FieldValue::WStr(WStr::from_units(b.to_vec())),
                FieldValue::Flt(crate::types::Flt(n)),
            ],
            stated_size: None,
        };
        let table = Table {
            name: Str::from("Base"),
            columns,
            target_flags: 0x29,
            stated_size: None,
            records: vec![
                row(b"hex:00", b"h\0", 0.1),
                row(b"text:x", b"\0\xd8", f32::NAN),
                row(b"\xff\0", b"", -0.0),
                row(b"[x]\r\n\"", b" \0", f32::INFINITY),
            ],
        };
        let file = TableFile { tables: vec![table.clone(), table] };
        let text = file.to_csv().expect("CSV can represent it");
        let again = TableFile::from_csv(&text, "").expect("it was just written");
        assert_eq!(again.to_bytes(), file.to_bytes(), "{text}");
        let alone = file.tables[0].to_csv().expect("CSV can represent it");
        let again = TableFile::from_csv(&alone, "Base").expect("it was just written");
        assert_eq!(again.tables[0].records, file.tables[0].records);
    }

    #[test]
    fn mistakes_are_reported_with_their_row() {
        let error = |text: &str| TableFile::from_csv(text, "T").expect_err("wrong").to_string();
        assert_eq!(error("a\r\n"), "row 1: wanted a column such as Size:UINT, found \"a\"");
        assert_eq!(error("a:UINT\r\n1,2\r\n"), "row 2: wanted 1 cells, found 2");
        assert_eq!(error("a:UINT\r\nx\r\n"), "row 2: a: wanted UINT, found \"x\"");
        assert_eq!(
            error("a:STR\r\nhex:0\r\n"),
            "row 2: a: wanted an even number of hexadecimal digits, found \"hex:0\""
        );
    }
}
