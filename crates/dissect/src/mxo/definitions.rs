//! MxO's part of the user's definitions: tables of game objects.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use worldwire_core::{Diagnostic, Side};
use worldwire_mxo::schema::{Objects, Tables, csv_fields, declared_class, is_csv_header};

use super::objects::BlobSections;
use crate::knowledge::Definitions;

/// Tables of game objects: the built-in ones and the user's.
#[derive(Clone, Debug)]
pub struct MxoObjects {
    tables: Tables,
    objects: Arc<Objects>,
    /// Decodes object sections of blobs, by sender.
    blobs: [BlobSections; 2],
}

impl Default for MxoObjects {
    fn default() -> Self {
        Self::of(Tables::default())
    }
}

impl MxoObjects {
    /// The built-in tables.
    #[must_use]
    pub fn built_in() -> Self {
        Self::of(Tables::built_in())
    }

    /// Adds tables from those files whose content looks like one. Returns all errors and warnings,
    /// or `None` if no file holds a table.
    pub fn add(&mut self, files: &[(&str, &[u8])]) -> Option<Vec<Diagnostic>> {
        let ours = files.iter().filter_map(|(name, bytes)| {
            let text = text_of(bytes)?;
            Some((TableFormat::of(&text)?, *name, text))
        });
        let mut ours: Vec<(TableFormat, &str, Cow<'_, str>)> = ours.collect();
        if ours.is_empty() {
            return None;
        }
        ours.sort_by_key(|(format, ..)| format.order());
        let mut tables = core::mem::take(&mut self.tables);
        let diagnostics =
            ours.into_iter().flat_map(|(format, name, text)| format.read(&mut tables, name, &text));
        let diagnostics = diagnostics.collect();
        *self = Self::of(tables);
        Some(diagnostics)
    }

    /// Whether a file holds a table, judging by its content.
    #[must_use]
    pub fn are_in(bytes: &[u8]) -> bool {
        text_of(bytes).is_some_and(|text| TableFormat::of(&text).is_some())
    }

    fn of(tables: Tables) -> Self {
        let objects = Arc::new(tables.compile());
        let blobs = BlobSections::of(&objects);
        Self { tables, objects, blobs }
    }

    /// The compiled classes and goobjs.
    #[must_use]
    pub fn objects(&self) -> &Arc<Objects> {
        &self.objects
    }

    /// Decodes the object sections of a blob.
    pub(super) fn blob(&self, from: Side) -> &BlobSections {
        &self.blobs[from.index()]
    }

    /// The classes and goobjs before compilation.
    #[must_use]
    pub fn tables(&self) -> &Tables {
        &self.tables
    }
}

/// MxO's definitions of game objects.
pub(crate) fn objects(definitions: &Definitions) -> &MxoObjects {
    static NONE: LazyLock<MxoObjects> = LazyLock::new(MxoObjects::default);
    definitions.get_ref::<MxoObjects>().unwrap_or_else(|| &NONE)
}

/// The text of a file: UTF-8, UTF-16 with a byte-order mark, or Windows-1252 as in the game's own
/// texts. `None` if it is not text.
fn text_of(bytes: &[u8]) -> Option<Cow<'_, str>> {
    let wide = |rest: &[u8], unit: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = rest.as_chunks().0.iter().copied().map(unit).collect();
        String::from_utf16(&units).ok().map(Cow::Owned)
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => return wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => return wide(rest, u16::from_be_bytes),
        _ => {}
    }
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    match core::str::from_utf8(bytes) {
        Ok(text) => Some(Cow::Borrowed(text)),
        Err(_) if bytes.contains(&0) => None,
        Err(_) => Some(bytes.iter().map(|byte| windows_1252(*byte)).collect()),
    }
}

/// The character of a byte. Windows-1252 differs from Latin-1 in 27 characters and leaves five
/// bytes undefined.
fn windows_1252(byte: u8) -> char {
    const FROM_80: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž',
        '\u{8f}', '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}',
        'ž', 'Ÿ',
    ];
    let special = byte.checked_sub(0x80).and_then(|at| FROM_80.get(usize::from(at)));
    special.copied().unwrap_or_else(|| char::from(byte))
}

/// The table formats that are recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TableFormat {
    /// Worldwire's own format.
    Table,
    /// The community's dump.
    Dump,
    Classes,
    /// Names of goobjs as CSV.
    Names,
    /// The class of each goobj.
    Map,
    /// Classes and goobjs as JSON.
    Json,
    /// The class of each goobj, as the community's servers declare it in C#.
    Declarations,
}

impl TableFormat {
    /// The format of the text, judging by its first non-empty line.
    fn of(text: &str) -> Option<Self> {
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let first = lines.clone().find(|line| !line.starts_with("# "))?;
        if first.starts_with("worldwire-mxo-objects") {
            return Some(Self::Table);
        }
        if lines.by_ref().take(64).any(|line| line.starts_with("#VALUES FOR GOID:")) {
            return Some(Self::Dump);
        }
        if text.lines().any(|line| declared_class(line).is_some()) {
            return Some(Self::Declarations);
        }
        if first.starts_with('{') {
            // Other families use JSON too.
            let has = |key: &str| text.contains(key);
            let is_ours = has("\"goobjects\"") || (has("\"tables\"") && has("\"index\""));
            return is_ours.then_some(Self::Json);
        }
        let headers = [
            (Self::Classes, "class_id,create_index,name,size,update_index"),
            (Self::Names, "name,id"),
            (Self::Map, "goid,class_id"),
        ];
        let named = headers.into_iter().find(|(_, header)| is_csv_header(first, header));
        named.map(|(format, _)| format).or_else(|| Self::of_rows(text))
    }

    /// The format of rows without a header line, judging by the first ones.
    fn of_rows(text: &str) -> Option<Self> {
        /// The number of rows that must look like a table.
        const LOOK: usize = 8;
        let rows = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let mut rows = rows.filter(|line| !line.starts_with('#')).take(LOOK).map(Self::of_row);
        let first = rows.next()??;
        rows.all(|row| row == Some(first)).then_some(first)
    }

    fn of_row(row: &str) -> Option<Self> {
        let fields: Vec<Cow<'_, str>> = csv_fields(row).take(6).collect();
        let fields: Vec<&str> = fields.iter().map(|field| &**field).collect();
        let is_number = |text: &str| text.parse::<i64>().is_ok();
        let is_name = |text: &str| !text.is_empty() && !is_number(text);
        match fields.as_slice() {
            [class, create, name, size, update] => {
                let numbers = [class, create, size, update];
                (numbers.into_iter().all(|it| is_number(it)) && is_name(name))
                    .then_some(Self::Classes)
            }
            [name, id, ""] => (!name.is_empty() && is_number(id)).then_some(Self::Names),
            [goid, class] => (goid.parse::<u16>().is_ok() && is_number(class)).then_some(Self::Map),
            _ => None,
        }
    }

    fn read(self, tables: &mut Tables, name: &str, text: &str) -> Vec<Diagnostic> {
        match self {
            Self::Table => tables.read(name, text),
            Self::Dump => tables.read_dump(name, text),
            Self::Classes => tables.read_class_csv(name, text),
            Self::Names => tables.read_name_csv(name, text),
            Self::Map => tables.read_map(name, text),
            Self::Json => tables.read_json(name, text),
            Self::Declarations => tables.read_declarations(name, text),
        }
    }

    /// The place in the order of reading: classes come before tables that refer to them.
    fn order(self) -> u8 {
        match self {
            Self::Classes => 0,
            Self::Json => 1,
            Self::Table => 2,
            Self::Dump => 3,
            Self::Map | Self::Declarations => 4,
            Self::Names => 5,
        }
    }
}

/// Whether a file of this name can hold tables. JSON files qualify only if their name mentions
/// goobjs.
pub(super) fn may_define(name: &str) -> bool {
    let file = name.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
    let ending = file.rsplit('.').next().unwrap_or_default();
    match ending {
        "txt" | "csv" | "objects" | "cs" => true,
        "json" => file.contains("goobj") || file.contains("objects"),
        _ => false,
    }
}

/// Reads tables.
pub(super) fn define(
    files: &[(&str, &[u8])],
    definitions: &mut Definitions,
) -> Option<Vec<Diagnostic>> {
    let mut known = definitions.get_ref::<MxoObjects>().cloned().unwrap_or_default();
    let diagnostics = known.add(files)?;
    definitions.set(known);
    Some(diagnostics)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_text_encodings_are_read() {
        let read = |bytes: &[u8]| text_of(bytes).map(Cow::into_owned);
        let rows = "9000,0,Caf\u{e9}\u{2122},24,0\n";
        let wide = |bom: &[u8], bytes: fn(u16) -> [u8; 2]| {
            [bom, &rows.encode_utf16().flat_map(bytes).collect::<Vec<u8>>()].concat()
        };
        for bytes in [
            rows.as_bytes().to_vec(),
            ["\u{feff}".as_bytes(), rows.as_bytes()].concat(),
            wide(&[0xff, 0xfe], u16::to_le_bytes),
            wide(&[0xfe, 0xff], u16::to_be_bytes),
            b"9000,0,Caf\xe9\x99,24,0\n".to_vec(),
        ] {
            assert_eq!(read(&bytes).as_deref(), Some(rows), "{bytes:x?}");
            assert!(MxoObjects::are_in(&bytes));
        }
        assert_eq!(read(b"\xffMZ\0\x90"), None);
        assert_eq!(read(b"\xff\xfe\x00\xd8"), None);
    }

    #[test]
    fn table_files_are_recognised_by_content() {
        let forms = [
            ("# mine\nworldwire-mxo-objects 1\n", Some(TableFormat::Table)),
            ("#VALUES FOR GOID: 7, Door\n", Some(TableFormat::Dump)),
            ("class_id,create_index,name,size,update_index\n", Some(TableFormat::Classes)),
            ("name,id,\n", Some(TableFormat::Names)),
            ("goid, class_id\n420,364\n", Some(TableFormat::Map)),
            ("\"Class ID\",\"Create Index\",Name,Size,Update Index\n", Some(TableFormat::Classes)),
            ("\"name\",\"id\",\n", Some(TableFormat::Names)),
            ("\"Door, left\",7,\n", Some(TableFormat::Names)),
            ("{\"goobjects\": {}}", Some(TableFormat::Json)),
            ("{\n  \"tables\": {\"a\": [{\"index\": 0", Some(TableFormat::Json)),
            ("{\"classes\": {}}", None),
            ("Armor_A11,11666,\nDoor 2,-1,\n", Some(TableFormat::Names)),
            ("7,11666,\n", Some(TableFormat::Names)),
            ("# mine\n420,364\n421,7\n", Some(TableFormat::Map)),
            (
                "namespace x {\n  public AttributeClass364 Object420 = new AttributeClass364();\n}",
                Some(TableFormat::Declarations),
            ),
            ("namespace x {\n  class AttributeClass364 {}\n}", None),
            ("Door,7\n", None),
            ("364,0,Orientation,16,-1\n", Some(TableFormat::Classes)),
            ("420,364\nsomething else\n", None),
            ("70000,x\n", None),
            ("a,b,c\n", None),
            ("", None),
        ];
        for (text, format) in forms {
            assert_eq!(TableFormat::of(text), format, "{text}");
        }
        assert!(may_define("mine/goobjs.CSV") && !may_define("S_LOGIN.1.def"));
        assert!(may_define("mine/goobj_tables.json") && !may_define("goobjs/data.json"));
    }
}
