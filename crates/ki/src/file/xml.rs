//! Reading and writing DML tables as XML, which clients have alongside the binary format.
//!
//! ```xml
//! <Tables>
//!   <Base>
//!     <RECORD><SrcFileName TYPE="STR">Data/a.wad</SrcFileName><Size TYPE="UINT">7</Size></RECORD>
//!   </Base>
//! </Tables>
//! ```
//!
//! Every record lists all columns with their types. XML cannot represent the binary format's flags
//! and wrong sizes, the columns of a table without records, or strings that are not text.

use core::fmt::Write as _;
use std::collections::{HashMap, HashSet};

use quick_xml::escape::escape;
use worldwire_core::{Diagnostic, Error, Limits, Result, Source};

use super::table::{Column, Row, Table, TableFile, USUAL_FLAGS, shown};
use crate::types::{FieldType, FieldValue, Str};
use crate::xml::Diagnostics;
use crate::xml::records::{self, Element, Item};

/// The limit on the growth of the text applies only beyond this many bytes.
const FREE_TEXT: u64 = 1 << 16;

/// The outcome of reading tables from XML.
#[derive(Debug)]
pub struct Loaded {
    /// The tables; `None` if there are errors.
    pub file: Option<TableFile<'static>>,
    /// Warnings and errors.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads table XML.
#[must_use]
pub fn load(name: &str, bytes: &[u8]) -> Loaded {
    let (text, _) = match records::text(name, bytes) {
        Ok(text) => text,
        Err(error) => return Loaded { file: None, diagnostics: vec![*error] },
    };
    let mut diagnostics = Diagnostics::new(Source::new(name, &text), false);
    let mut missing = text.len();
    let tables = records::read(&text, &mut diagnostics).map(|elements| {
        elements.iter().map(|one| table(one, &mut missing, &mut diagnostics)).collect()
    });
    let file = tables.filter(|_| !diagnostics.has_errors()).map(|tables| TableFile { tables });
    Loaded { file, diagnostics: diagnostics.into_sorted() }
}

/// Reads a table. Missing values become 0, up to the number left in `missing`, because they take
/// memory that the file's size does not account for.
fn table(
    element: &Element<'_>,
    missing: &mut usize,
    diagnostics: &mut Diagnostics<'_>,
) -> Table<'static> {
    let first = element.records.first().map_or(&[][..], Vec::as_slice);
    let columns: Vec<_> = first.iter().filter_map(|item| column(item, diagnostics)).collect();
    let mut known: HashSet<&[u8]> = HashSet::with_capacity(columns.len());
    for item in first {
        if !known.insert(item.name.as_bytes()) {
            let text = format!("{} occurs twice in a record", item.name);
            diagnostics.error(&item.span, text, "give each column a distinct name");
        }
    }
    let mut records = Vec::with_capacity(element.records.len());
    for (index, items) in element.records.iter().enumerate() {
        // If items share a name, the first one is used.
        let named: HashMap<&[u8], &Item<'_>> =
            items.iter().rev().map(|item| (item.name.as_bytes(), item)).collect();
        let Some(left) = missing.checked_sub(columns.len().saturating_sub(items.len())) else {
            let help = "list all columns in every record";
            diagnostics.error(
                &element.span,
                "the records omit too many columns: more values are missing than the file has \
                 bytes",
                help,
            );
            break;
        };
        *missing = left;
        let values = columns.iter().map(|column| {
            let Some(item) = named.get(column.name.as_bytes()) else {
                let what = String::from_utf8_lossy(column.name.as_bytes()).into_owned();
                diagnostics.strict_error(
                    &element.span,
                    format!("record {index} has no {what}; using 0"),
                    "",
                );
                return FieldValue::zero(column.kind);
            };
            FieldValue::parse(column.kind, &item.text).unwrap_or_else(|| {
                let text = format!("\"{}\" is not a valid {}", item.text, column.kind.name());
                diagnostics.error(&item.span, text, "");
                FieldValue::zero(column.kind)
            })
        });
        records.push(Row { values: values.collect(), stated_size: None });
        if index > 0 && named.len() < items.len() {
            let text = format!("record {index} has several values for one column");
            diagnostics.strict_error(&element.span, text, "the first is used");
        }
        for item in items.iter().filter(|_| index > 0) {
            if !known.contains(item.name.as_bytes()) {
                let text = format!("{} is not a column of {}", item.name, element.name);
                diagnostics.strict_error(&item.span, text, "the first record defines the columns");
            }
        }
    }
    let name = Str::new(element.name.as_bytes().to_vec());
    Table { name, columns, target_flags: USUAL_FLAGS, stated_size: None, records }
}

fn column(item: &Item<'_>, diagnostics: &mut Diagnostics<'_>) -> Option<Column<'static>> {
    let kind = item.attribute("TYPE").and_then(|text| Some(FieldType::parse(text)?.0));
    let Some(kind) = kind.filter(|kind| *kind != FieldType::Bool) else {
        let help = "give it one of GID, INT, UINT, FLT, BYT, UBYT, USHRT, DBL, STR, WSTR, SHRT";
        diagnostics.error(&item.span, format!("{} has no known TYPE", item.name), help);
        return None;
    };
    Some(Column { name: Str::new(item.name.as_bytes().to_vec()), kind, flags: USUAL_FLAGS })
}

impl TableFile<'_> {
    /// Writes table XML.
    ///
    /// # Errors
    /// `Value` for names that cannot be elements and values that XML cannot represent; a limit
    /// error if the text grows too much, because every record repeats the column names.
    pub fn to_xml(&self) -> Result<String> {
        self.to_xml_within(&Limits::DEFAULT)
    }

    /// Describes everything that [`Self::to_xml`] drops without an error: columns of tables without
    /// records, and flags other than [`USUAL_FLAGS`].
    pub fn lost_in_xml(&self) -> impl Iterator<Item = String> {
        self.tables.iter().flat_map(|table| {
            let name = shown(table.name.as_bytes());
            let mut lost = Vec::new();
            if table.records.is_empty() && !table.columns.is_empty() {
                lost.push(format!("the columns of {name}, which has no records"));
            }
            if table.target_flags != USUAL_FLAGS {
                lost.push(format!("the target flags of {name}"));
            }
            let columns = table.columns.iter().filter(|column| column.flags != USUAL_FLAGS);
            lost.extend(columns.map(|column| {
                format!("the flags of column {} of {name}", shown(column.name.as_bytes()))
            }));
            lost
        })
    }

    /// Like [`Self::to_xml`], but with the given limits.
    pub fn to_xml_within(&self, limits: &Limits) -> Result<String> {
        let mut binary = 0_u64;
        let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Tables>\n");
        for table in &self.tables {
            let name = element(table.name.as_bytes())?;
            let _ = writeln!(out, "  <{name}>");
            let mut known = HashSet::with_capacity(table.columns.len());
            if let Some(twice) = table.columns.iter().find(|it| !known.insert(it.name.as_bytes())) {
                let found = format!("two {}", shown(twice.name.as_bytes()));
                return Err(Error::value("columns with distinct names", found)
                    .inside(name)
                    .hint("use JSON or CSV instead"));
            }
            binary += table.template_bytes() as u64;
            for (index, row) in table.records.iter().enumerate() {
                out.push_str("    <RECORD>");
                binary += row.bytes() as u64;
                let max = FREE_TEXT.saturating_add(limits.text_ratio.saturating_mul(binary));
                for (column, value) in table.columns.iter().zip(&row.values) {
                    let column_name = element(column.name.as_bytes())?;
                    let text = value.to_text().filter(|text| text.chars().all(allowed));
                    let text = text.ok_or_else(|| {
                        Error::value("text that XML can represent", "other bytes")
                            .inside(column_name)
                            .inside_item(index)
                            .inside(name)
                            .hint("use JSON or CSV instead")
                    })?;
                    let (kind, text) = (column.kind.name(), escape(&*text));
                    let _ = write!(out, "<{column_name} TYPE=\"{kind}\">{text}</{column_name}>");
                    if out.len() as u64 > max {
                        let error = Error::limit("text ratio", max, out.len() as u64);
                        return Err(error
                            .inside(&shown(table.name.as_bytes()))
                            .hint("JSON and CSV do not repeat column names"));
                    }
                }
                out.push_str("</RECORD>\n");
            }
            let _ = writeln!(out, "  </{name}>");
        }
        out.push_str("</Tables>\n");
        Ok(out)
    }
}

/// Checks that a name is a valid element name.
fn element(name: &[u8]) -> Result<&str> {
    let good = |text: &&str| {
        let mut characters = text.chars();
        let first = characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        first && characters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
    };
    core::str::from_utf8(name).ok().filter(good).ok_or_else(|| {
        let found = format!("\"{}\"", String::from_utf8_lossy(name));
        Error::value("a valid XML element name", found)
    })
}

/// Whether XML can represent a character so that it reads back unchanged. Carriage returns would
/// become line feeds.
fn allowed(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\u{20}'..='\u{fffd}' | '\u{10000}'..) && character != '\r'
}

#[cfg(test)]
mod tests {
    use super::*;

    const XML: &str = "<Tables>\n<_TableList><RECORD><Name TYPE=\"STR\" KEY=\"TRUE\">A &amp; B\
                       </Name></RECORD></_TableList>\n<Base><RECORD><Size TYPE=\"UINT\">7</Size>\
                       <W TYPE=\"WSTR\">\u{e9}</W></RECORD><RECORD><W TYPE=\"WSTR\"></W>\
                       <Size TYPE=\"UINT\">8</Size></RECORD></Base>\n</Tables>";

    #[test]
    fn tables_round_trip_through_xml() {
        let loaded = load("t.xml", XML.as_bytes());
        assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
        let file = loaded.file.expect("the XML is valid");
        assert_eq!(file.tables.len(), 2);
        assert_eq!(file.tables[1].records.len(), 2);
        let xml = file.to_xml().expect("XML can represent it");
        let again = load("again.xml", xml.as_bytes()).file.expect("it was just written");
        assert_eq!(again, file);
    }

    #[test]
    fn unrepresentable_values_are_reported() {
        let repeated =
            "<T><X><RECORD><a TYPE=\"UINT\">1</a><a TYPE=\"UINT\">2</a></RECORD></X></T>";
        let loaded = load("t.xml", repeated.as_bytes());
        assert!(loaded.file.is_none());
        assert!(loaded.diagnostics[0].message().contains("a occurs twice in a record"));
        let column = |flags| Column { name: Str::from("a"), kind: FieldType::Uint, flags };
        let table = |columns| TableFile {
            tables: vec![Table {
                name: Str::from("X"),
                columns,
                target_flags: USUAL_FLAGS,
                stated_size: None,
                records: Vec::new(),
            }],
        };
        let twice = table(vec![column(USUAL_FLAGS), column(USUAL_FLAGS)]);
        let error = twice.to_xml().unwrap_err().to_string();
        assert!(error.starts_with("X: wanted columns with distinct names, found two"), "{error}");
        let lost: Vec<String> = table(vec![column(1)]).lost_in_xml().collect();
        assert_eq!(lost.len(), 2, "{lost:?}");
        let usual = load("t.xml", XML.as_bytes()).file.unwrap();
        assert_eq!(usual.lost_in_xml().count(), 0);
    }

    #[test]
    fn mistakes_are_reported_with_their_position() {
        let reported = |xml: &str| {
            let reported = load("t.xml", xml.as_bytes()).diagnostics;
            reported.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        };
        insta::assert_snapshot!(reported("<T><A><RECORD><B>1</B></RECORD></A></T>"), @"t.xml:1:16: error: B has no known TYPE (give it one of GID, INT, UINT, FLT, BYT, UBYT, USHRT, DBL, STR, WSTR, SHRT)");
        insta::assert_snapshot!(
            reported("<T><A><RECORD><B TYPE=\"UINT\">x</B></RECORD><RECORD><C TYPE=\"INT\"/></RECORD></A></T>"),
            @r#"
        t.xml:1:5: warning: record 1 has no B; using 0
        t.xml:1:16: error: "x" is not a valid UINT
        t.xml:1:53: warning: C is not a column of A (the first record defines the columns)
        "#
        );
        let table = |name: &'static str| TableFile {
            tables: vec![Table {
                name: Str::from(name),
                columns: Vec::new(),
                target_flags: USUAL_FLAGS,
                stated_size: None,
                records: Vec::new(),
            }],
        };
        let error = table("a b").to_xml().expect_err("the name has a space");
        assert_eq!(error.to_string(), "wanted a valid XML element name, found \"a b\"");
    }
}
