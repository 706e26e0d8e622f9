//! DML tables as XML, as clients have them beside the binary form, both ways.
//!
//! ```xml
//! <Tables>
//!   <Base>
//!     <RECORD><SrcFileName TYPE="STR">Data/a.wad</SrcFileName><Size TYPE="UINT">7</Size></RECORD>
//!   </Base>
//! </Tables>
//! ```
//!
//! Every record lists all columns with their types. Flags and wrong sizes of the binary form have no
//! place here, nor have the columns of a table without records, nor strings that are no text.

use core::fmt::Write as _;
use std::collections::{HashMap, HashSet};

use quick_xml::escape::escape;
use worldwire_core::{Diagnostic, Error, Limits, Result, Source};

use super::table::{Column, Row, Table, TableFile, USUAL_FLAGS, shown};
use crate::schema::xml::{Element, Item, Notes, document, text};
use crate::types::{FieldType, FieldValue, Str};

/// So many bytes of text are written whatever the limits say.
const FREE_TEXT: u64 = 1 << 16;

/// Tables that were read from XML, and all that is to be said about it.
#[derive(Debug)]
pub struct Loaded {
    /// The tables; `None` when there is an error.
    pub file: Option<TableFile<'static>>,
    /// Warnings and errors.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads table XML.
#[must_use]
pub fn load(name: &str, bytes: &[u8]) -> Loaded {
    let (text, _) = match text(name, bytes) {
        Ok(text) => text,
        Err(error) => return Loaded { file: None, diagnostics: vec![*error] },
    };
    let mut notes = Notes::new(Source::new(name, &text), false);
    let mut missing = text.len();
    let tables = document(&text, &mut notes).map(|document| {
        document.elements.iter().map(|one| table(one, &mut missing, &mut notes)).collect()
    });
    let file = tables.filter(|_| !notes.failed()).map(|tables| TableFile { tables });
    Loaded { file, diagnostics: notes.into_said() }
}

/// One table. Values that records lack are made up, as many as are left of `missing`: each takes
/// memory that no byte of the file stands for.
fn table(element: &Element<'_>, missing: &mut usize, notes: &mut Notes<'_>) -> Table<'static> {
    let first = element.records.first().map_or(&[][..], Vec::as_slice);
    let columns: Vec<_> = first.iter().filter_map(|item| column(item, notes)).collect();
    let mut known: HashSet<&[u8]> = HashSet::with_capacity(columns.len());
    for item in first {
        if !known.insert(item.name.as_bytes()) {
            let text = format!("{} occurs twice in a record", item.name);
            notes.error(&item.span, text, "give each column a name of its own");
        }
    }
    let mut records = Vec::with_capacity(element.records.len());
    for (index, items) in element.records.iter().enumerate() {
        // Of items with one name the first counts.
        let named: HashMap<&[u8], &Item<'_>> =
            items.iter().rev().map(|item| (item.name.as_bytes(), item)).collect();
        let Some(left) = missing.checked_sub(columns.len().saturating_sub(items.len())) else {
            let help = "list all columns in every record";
            notes.error(&element.span, "more values are missing than the file has bytes", help);
            break;
        };
        *missing = left;
        let values = columns.iter().map(|column| {
            let Some(item) = named.get(column.name.as_bytes()) else {
                let what = String::from_utf8_lossy(column.name.as_bytes()).into_owned();
                notes.odd(&element.span, format!("record {index} has no {what}; using 0"), "");
                return FieldValue::zero(column.kind);
            };
            FieldValue::parse(column.kind, &item.text).unwrap_or_else(|| {
                let text = format!("\"{}\" is not a valid {}", item.text, column.kind.name());
                notes.error(&item.span, text, "");
                FieldValue::zero(column.kind)
            })
        });
        records.push(Row { values: values.collect(), stated_size: None });
        if index > 0 && named.len() < items.len() {
            let text = format!("record {index} has several values of one column");
            notes.odd(&element.span, text, "the first counts");
        }
        for item in items.iter().filter(|_| index > 0) {
            if !known.contains(item.name.as_bytes()) {
                let text = format!("{} is not a column of {}", item.name, element.name);
                notes.odd(&item.span, text, "the first record defines the columns");
            }
        }
    }
    let name = Str::new(element.name.as_bytes().to_vec());
    Table { name, columns, target_flags: USUAL_FLAGS, stated_size: None, records }
}

fn column(item: &Item<'_>, notes: &mut Notes<'_>) -> Option<Column<'static>> {
    let kind = item.attribute("TYPE").and_then(|text| Some(FieldType::parse(text)?.0));
    let Some(kind) = kind.filter(|kind| *kind != FieldType::Bool) else {
        let help = "give it one of GID, INT, UINT, FLT, BYT, UBYT, USHRT, DBL, STR, WSTR, SHRT";
        notes.error(&item.span, format!("{} has no known TYPE", item.name), help);
        return None;
    };
    Some(Column { name: Str::new(item.name.as_bytes().to_vec()), kind, flags: USUAL_FLAGS })
}

impl TableFile<'_> {
    /// Writes table XML.
    ///
    /// # Errors
    /// Value, for names that cannot be elements, and for values that XML has no place for; the
    /// limit on what the text may grow to, as every record repeats the names of its columns.
    pub fn to_xml(&self) -> Result<String> {
        self.to_xml_within(&Limits::DEFAULT)
    }

    /// What [`Self::to_xml`] has no place for, and leaves out without an error: the columns of
    /// tables without records, and flags that are not [`USUAL_FLAGS`].
    pub fn lost_in_xml(&self) -> impl Iterator<Item = String> {
        self.tables.iter().flat_map(|table| {
            let name = shown(table.name.as_bytes());
            let mut lost = Vec::new();
            if table.records.is_empty() && !table.columns.is_empty() {
                lost.push(format!("the columns of {name}, which has no records"));
            }
            if table.target_flags != USUAL_FLAGS {
                lost.push(format!("the flags of the target of {name}"));
            }
            let columns = table.columns.iter().filter(|column| column.flags != USUAL_FLAGS);
            lost.extend(columns.map(|column| {
                format!("the flags of the column {} of {name}", shown(column.name.as_bytes()))
            }));
            lost
        })
    }

    /// The same within other limits.
    ///
    /// # Errors
    /// Those of [`Self::to_xml`].
    pub fn to_xml_within(&self, limits: &Limits) -> Result<String> {
        let mut binary = 0_u64;
        let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Tables>\n");
        for table in &self.tables {
            let name = element(table.name.as_bytes())?;
            let _ = writeln!(out, "  <{name}>");
            let mut known = HashSet::with_capacity(table.columns.len());
            if let Some(twice) = table.columns.iter().find(|it| !known.insert(it.name.as_bytes())) {
                let found = format!("two {}", shown(twice.name.as_bytes()));
                return Err(Error::value("columns with names of their own", found)
                    .inside(name)
                    .hint("JSON and CSV can hold them"));
            }
            binary += table.template_bytes() as u64;
            for (index, row) in table.records.iter().enumerate() {
                out.push_str("    <RECORD>");
                binary += row.bytes() as u64;
                let most = FREE_TEXT.saturating_add(limits.text_ratio.saturating_mul(binary));
                for (column, value) in table.columns.iter().zip(&row.values) {
                    let column_name = element(column.name.as_bytes())?;
                    let text = value.to_text().filter(|text| text.chars().all(allowed));
                    let text = text.ok_or_else(|| {
                        Error::value("text that XML can hold", "other bytes")
                            .inside(column_name)
                            .inside_item(index)
                            .inside(name)
                            .hint("JSON and CSV can hold them")
                    })?;
                    let (kind, text) = (column.kind.name(), escape(&*text));
                    let _ = write!(out, "<{column_name} TYPE=\"{kind}\">{text}</{column_name}>");
                    if out.len() as u64 > most {
                        let error = Error::limit("text ratio", most, out.len() as u64);
                        return Err(error
                            .inside(&shown(table.name.as_bytes()))
                            .hint("JSON and CSV do not repeat the names of columns"));
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

/// A name that an element can have.
fn element(name: &[u8]) -> Result<&str> {
    let good = |text: &&str| {
        let mut characters = text.chars();
        let first = characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        first && characters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
    };
    core::str::from_utf8(name).ok().filter(good).ok_or_else(|| {
        let found = format!("\"{}\"", String::from_utf8_lossy(name));
        Error::value("a name that an XML element can have", found)
    })
}

/// What XML can hold and a reader gives back as it is: carriage returns turn into line feeds.
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
    fn xml_becomes_tables_and_back() {
        let loaded = load("t.xml", XML.as_bytes());
        assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
        let file = loaded.file.expect("it is right");
        assert_eq!(file.tables.len(), 2);
        assert_eq!(file.tables[1].records.len(), 2);
        let xml = file.to_xml().expect("it can be written");
        let again = load("again.xml", xml.as_bytes()).file.expect("it was written just now");
        assert_eq!(again, file);
    }

    #[test]
    fn what_xml_cannot_hold_is_told() {
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
        assert!(
            error.starts_with("X: wanted columns with names of their own, found two"),
            "{error}"
        );
        let odd: Vec<String> = table(vec![column(1)]).lost_in_xml().collect();
        assert_eq!(odd.len(), 2, "{odd:?}");
        let usual = load("t.xml", XML.as_bytes()).file.unwrap();
        assert_eq!(usual.lost_in_xml().count(), 0);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let said = |xml: &str| {
            let said = load("t.xml", xml.as_bytes()).diagnostics;
            said.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        };
        insta::assert_snapshot!(said("<T><A><RECORD><B>1</B></RECORD></A></T>"), @"t.xml:1:16: error: B has no known TYPE (give it one of GID, INT, UINT, FLT, BYT, UBYT, USHRT, DBL, STR, WSTR, SHRT)");
        insta::assert_snapshot!(
            said("<T><A><RECORD><B TYPE=\"UINT\">x</B></RECORD><RECORD><C TYPE=\"INT\"/></RECORD></A></T>"),
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
        let error = table("a b").to_xml().expect_err("it has a space");
        assert_eq!(error.to_string(), "wanted a name that an XML element can have, found \"a b\"");
    }
}
