//! The files of a revision, as listed by package in `LatestFileList.bin`.
//!
//! Tables with a column `SrcFileName` list files; `_TableList` and `About` are bookkeeping. The
//! patch server sends the prefix of all URLs (`URLPrefix` of `MSG_LATEST_FILE_LIST_V2`).
//!
//! ```
//! use worldwire_ki::file::revision::FileList;
//! use worldwire_ki::file::table::TableFile;
//!
//! let csv = "SrcFileName:STR,Size:UINT,CRC:UINT\r\nData/Root.wad,7,1\r\n";
//! let list = FileList::of(&TableFile::from_csv(csv, "Base")?);
//! assert_eq!(list.files[0].url("http://a.example/r1"), "http://a.example/r1/Data/Root.wad");
//! # Ok::<(), worldwire_core::Error>(())
//! ```

use std::collections::HashMap;
use std::fmt::Write as _;

use super::table::{Row, Table, TableFile, shown};
use crate::types::FieldValue;

/// Warnings beyond this number are only counted: in a hostile file, every record can cause one.
const MAX_WARNINGS: usize = 20;

/// A file on a patch server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedFile {
    /// The packages that list the file, such as `Base`. Each package is a table.
    pub packages: Vec<String>,
    /// `SrcFileName`: the file's path below the URL prefix.
    pub name: String,
    /// `TarFileName`: the file's target path, if different. Unverified: usually empty.
    pub target: String,
    /// `FileType`, if the column exists.
    pub kind: Option<u64>,
    /// `Size`, in bytes.
    pub size: Option<u64>,
    /// `CRC` of the whole file, as [`crc`](super::wad::crc) computes it.
    pub crc: Option<u32>,
    /// `HeaderSize`: for an archive, the size of its table in bytes.
    pub header_size: Option<u64>,
    /// `HeaderCRC`: for an archive, the CRC of its table.
    pub header_crc: Option<u32>,
}

/// All files of a revision, without duplicates, sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileList {
    /// The files.
    pub files: Vec<ListedFile>,
    /// The first warnings: files that packages describe differently, and files without a name.
    pub warnings: Vec<String>,
    /// The number of further warnings.
    pub more_warnings: usize,
}

/// The differences between two revisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileListDiff<'l> {
    /// Files that exist only in the later revision.
    pub added: Vec<&'l ListedFile>,
    /// Files that exist only in the earlier revision.
    pub removed: Vec<&'l ListedFile>,
    /// Files with a different size or CRC: the earlier one and the later one.
    pub changed: Vec<(&'l ListedFile, &'l ListedFile)>,
}

impl FileList {
    /// Collects the files listed in tables. A file in several packages is listed once; if they
    /// describe it differently, the first description is used.
    #[must_use]
    pub fn of(tables: &TableFile<'_>) -> Self {
        let mut list = Self::default();
        let mut known: HashMap<String, usize> = HashMap::new();
        for table in &tables.tables {
            let columns = Columns::of(table);
            if columns.0[0].is_none() {
                continue;
            }
            let package = shown(table.name.as_bytes());
            for (index, row) in table.records.iter().enumerate() {
                let file = columns.file(row);
                if file.name.is_empty() {
                    let warning = format!("table {package}: record {index} has no SrcFileName");
                    list.warn(warning);
                    continue;
                }
                let at = *known.entry(file.name.clone()).or_insert(list.files.len());
                let mut warning = None;
                match list.files.get_mut(at) {
                    None => list.files.push(ListedFile { packages: vec![package.clone()], ..file }),
                    Some(first) => {
                        if (first.size, first.crc) != (file.size, file.crc) {
                            let name = shown(file.name.as_bytes());
                            let other = first.packages.first().map_or("", String::as_str);
                            warning = Some(format!(
                                "{name}: {package} and {other} describe it differently"
                            ));
                        }
                        if first.packages.last() != Some(&package) {
                            first.packages.push(package.clone());
                        }
                    }
                }
                if let Some(warning) = warning {
                    list.warn(warning);
                }
            }
        }
        list.files.sort_by(|a, b| a.name.cmp(&b.name));
        list
    }

    fn warn(&mut self, warning: String) {
        match self.warnings.len() {
            0..MAX_WARNINGS => self.warnings.push(warning),
            _ => self.more_warnings += 1,
        }
    }

    /// Compares this revision with a later one.
    #[must_use]
    pub fn diff<'l>(&'l self, later: &'l Self) -> FileListDiff<'l> {
        let mut diff = FileListDiff::default();
        let mut old = self.files.iter().peekable();
        for new in &later.files {
            while let Some(removed) = old.next_if(|old| old.name < new.name) {
                diff.removed.push(removed);
            }
            match old.next_if(|old| old.name == new.name) {
                None => diff.added.push(new),
                Some(old) if (old.size, old.crc) != (new.size, new.crc) => {
                    diff.changed.push((old, new));
                }
                Some(_) => {}
            }
        }
        diff.removed.extend(old);
        diff
    }
}

impl ListedFile {
    /// The file's path in a folder: `target`, or else `name`.
    #[must_use]
    pub fn path(&self) -> &str {
        if self.target.is_empty() { &self.name } else { &self.target }
    }

    /// The URL from which to download the file, percent-encoded where necessary.
    #[must_use]
    pub fn url(&self, prefix: &str) -> String {
        let mut url = prefix.trim_end_matches('/').to_owned();
        url.push('/');
        for byte in self.name.trim_start_matches('/').bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                    url.push(char::from(byte));
                }
                _ => {
                    let _ = write!(url, "%{byte:02X}");
                }
            }
        }
        url
    }

    /// Whether these bytes are the file, judging by the size and CRC in the list.
    #[must_use]
    pub fn is(&self, bytes: &[u8]) -> bool {
        self.size.is_none_or(|size| size == bytes.len() as u64)
            && self.crc.is_none_or(|crc| crc == super::wad::crc(bytes))
    }
}

/// The columns that describe a file. [`Columns`] has their positions, in this order.
const COLUMNS: [&str; 7] =
    ["SrcFileName", "TarFileName", "FileType", "Size", "CRC", "HeaderSize", "HeaderCRC"];

/// The positions of a table's columns.
struct Columns([Option<usize>; 7]);

impl Columns {
    fn of(table: &Table<'_>) -> Self {
        Self(COLUMNS.map(|name| {
            table.columns.iter().position(|column| column.name.as_bytes() == name.as_bytes())
        }))
    }

    fn file(&self, row: &Row<'_>) -> ListedFile {
        let text = |at: Option<usize>| row.values.get(at?).and_then(FieldValue::to_text);
        let number = |at| text(at).and_then(|text| text.parse().ok());
        // A CRC in a signed column has the same 32 bits.
        let crc_in = |at| {
            let text = text(at)?;
            text.parse().ok().or_else(|| text.parse().ok().map(i32::cast_unsigned))
        };
        let [name, target, kind, size, crc, header_size, header_crc] = self.0;
        ListedFile {
            packages: Vec::new(),
            name: text(name).unwrap_or_default(),
            target: text(target).unwrap_or_default(),
            kind: number(kind),
            size: number(size),
            crc: crc_in(crc),
            header_size: number(header_size),
            header_crc: crc_in(header_crc),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(csv: &str) -> FileList {
        FileList::of(&TableFile::from_csv(csv, "Base").unwrap())
    }

    #[test]
    fn files_of_all_packages_are_listed_once() {
        let list = list(
            "[_TableList]\r\nName:STR\r\nBase\r\n\
             [Base]\r\nSrcFileName:STR,Size:UINT,CRC:INT\r\nb,2,-1\r\na,1,1\r\n,5,5\r\n\
             [More]\r\nCRC:UINT,SrcFileName:STR,TarFileName:STR,Size:UINT\r\n1,a,x,1\r\n7,b,,2\r\n",
        );
        let found: Vec<_> = list
            .files
            .iter()
            .map(|it| (&*it.name, it.size, it.crc, it.packages.join("+")))
            .collect();
        assert_eq!(
            found,
            [
                ("a", Some(1), Some(1), "Base+More".to_owned()),
                ("b", Some(2), Some(u32::MAX), "Base+More".to_owned()),
            ]
        );
        assert_eq!(
            list.warnings,
            ["table Base: record 2 has no SrcFileName", "b: More and Base describe it differently"]
        );
    }

    #[test]
    fn revisions_are_compared_by_name_size_and_crc() {
        let head = "SrcFileName:STR,Size:UINT,CRC:UINT\r\n";
        let old = list(&format!("{head}a,1,1\r\nb,1,1\r\nc,1,1\r\nz,1,1\r\n"));
        let new = list(&format!("{head}a,1,1\r\nb,1,2\r\nd,1,1\r\n"));
        let diff = old.diff(&new);
        let names =
            |files: &[&ListedFile]| files.iter().map(|it| it.name.clone()).collect::<String>();
        assert_eq!((names(&diff.added), names(&diff.removed)), ("d".into(), "cz".into()));
        assert_eq!(diff.changed.len(), 1);
        assert_eq!(old.diff(&old), FileListDiff::default());
    }

    #[test]
    fn a_file_is_recognised_by_size_and_crc() {
        let list = list("SrcFileName:STR,Size:UINT,CRC:UINT\r\nData/a b#.wad,9,771566984\r\n");
        let file = &list.files[0];
        assert!(file.is(b"123456789"));
        assert!(!file.is(b"123456780") && !file.is(b"12345678"));
        assert_eq!(file.url("http://a/x/"), "http://a/x/Data/a%20b%23.wad");
        assert_eq!(file.path(), "Data/a b#.wad");
    }
}
