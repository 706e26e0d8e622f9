//! The list of files for patch clients, created from a directory.
//!
//! The operator's own web server offers the files; this server only tells clients the URL. The list
//! has one table, `Base`, with the columns of real lists. In real lists, archives have the
//! `FileType` 3. Unverified: the `FileType` of other files.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use worldwire_core::{Limits, Reader};
use worldwire_ki::file::table::{Column, Row, Table, TableFile, USUAL_FLAGS};
use worldwire_ki::file::wad::{self, Crc};
use worldwire_ki::message::FileListAnswer;
use worldwire_ki::types::{FieldType, FieldValue, Str};

/// The file name of the list.
pub const LIST_FILE: &str = "LatestFileList.bin";

/// The maximum number of files.
const MAX_FILES: usize = 100_000;
/// The maximum depth of directories.
const MAX_DEPTH: usize = 32;
/// `FileType` of archives, and of everything else.
const ARCHIVE: u32 = 3;
const OTHER: u32 = 1;

const COLUMNS: [(&str, FieldType); 8] = [
    ("SrcFileName", FieldType::Str),
    ("TarFileName", FieldType::Str),
    ("FileType", FieldType::Uint),
    ("Size", FieldType::Uint),
    ("HeaderSize", FieldType::Uint),
    ("CompressedHeaderSize", FieldType::Uint),
    ("CRC", FieldType::Uint),
    ("HeaderCRC", FieldType::Uint),
];

/// Writes the list of the files in a directory and returns the reply for patch clients. An error
/// names the file or directory that cannot be read or written.
pub(super) fn publish(
    folder: &Path,
    prefix: &str,
    version: u32,
) -> Result<FileListAnswer, (PathBuf, io::Error)> {
    let mut files = Vec::new();
    find(folder, "", 0, &mut files)?;
    files.sort();
    let mut records = Vec::with_capacity(files.len());
    for (name, path) in files {
        records.push(row(&name, &path).map_err(|error| (path, error))?);
    }
    let table = Table {
        name: Str::from("Base"),
        columns: COLUMNS
            .iter()
            .map(|(name, kind)| Column { name: Str::from(*name), kind: *kind, flags: USUAL_FLAGS })
            .collect(),
        target_flags: USUAL_FLAGS,
        stated_size: None,
        records,
    };
    let path = folder.join(LIST_FILE);
    let at = |error: io::Error| (path.clone(), error);
    let bytes = TableFile { tables: vec![table] }
        .to_bytes()
        .map_err(|error| at(io::Error::new(io::ErrorKind::InvalidData, error.to_string())))?;
    // Replace the file atomically, because a web server may be sending it.
    let part = folder.join(format!("{LIST_FILE}.part"));
    fs::write(&part, &bytes).and_then(|()| fs::rename(&part, &path)).map_err(at)?;
    let made = fs::metadata(&path).and_then(|data| data.modified()).map_err(at)?;
    let time = made.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    Ok(FileListAnswer {
        version,
        name: LIST_FILE.to_owned(),
        time: u32::try_from(time).unwrap_or(u32::MAX),
        size: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
        crc: wad::crc(&bytes),
        url: format!("{prefix}/{LIST_FILE}"),
        prefix: prefix.to_owned(),
    })
}

/// Finds all files except the list itself: their names relative to the directory, and their paths.
fn find(
    folder: &Path,
    name: &str,
    depth: usize,
    files: &mut Vec<(String, PathBuf)>,
) -> Result<(), (PathBuf, io::Error)> {
    let at = |error: io::Error| (folder.to_owned(), error);
    let refuse = |text: String| at(io::Error::new(io::ErrorKind::InvalidData, text));
    if depth > MAX_DEPTH {
        return Err(refuse(format!("directories are nested more than {MAX_DEPTH} deep")));
    }
    for entry in fs::read_dir(folder).map_err(at)? {
        let entry = entry.map_err(at)?;
        let Ok(own) = entry.file_name().into_string() else {
            return Err(refuse("contains a name that is not UTF-8".to_owned()));
        };
        let is_list = own.strip_prefix(LIST_FILE).is_some_and(|rest| matches!(rest, "" | ".part"));
        if name.is_empty() && is_list {
            continue;
        }
        let full = if name.is_empty() { own } else { format!("{name}/{own}") };
        let kind = entry.file_type().map_err(at)?;
        if kind.is_dir() {
            find(&entry.path(), &full, depth + 1, files)?;
        } else if kind.is_file() {
            files.push((full, entry.path()));
        }
        if files.len() > MAX_FILES {
            return Err(refuse(format!("contains more than {MAX_FILES} files")));
        }
    }
    Ok(())
}

/// A file's record in the list.
fn row(name: &str, path: &Path) -> io::Result<Row<'static>> {
    let (size, crc) = sums(path)?;
    let is_archive = name.to_ascii_lowercase().ends_with(".wad");
    let header = if is_archive { header(path)? } else { Vec::new() };
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
    let packed = io::Write::write_all(&mut packed, &header).and_then(|()| packed.finish())?;
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let (header_crc, packed) = match header.is_empty() {
        true => (0, 0),
        false => (wad::crc(&header), length(&packed)),
    };
    let values = vec![
        FieldValue::Str(Str::new(name.as_bytes().to_vec())),
        FieldValue::Str(Str::default()),
        FieldValue::Uint(if is_archive { ARCHIVE } else { OTHER }),
        FieldValue::Uint(size),
        FieldValue::Uint(length(&header)),
        FieldValue::Uint(packed),
        FieldValue::Uint(crc),
        FieldValue::Uint(header_crc),
    ];
    Ok(Row { values, stated_size: None })
}

/// A file's size and CRC.
fn sums(path: &Path) -> io::Result<(u32, u32)> {
    let mut file = fs::File::open(path)?;
    let (mut size, mut crc) = (0_u64, Crc::new());
    let mut piece = vec![0; 256 << 10];
    loop {
        let count = file.read(&mut piece)?;
        let Some(read) = piece.get(..count).filter(|read| !read.is_empty()) else { break };
        crc.update(read);
        size += read.len() as u64;
    }
    let size = u32::try_from(size).map_err(|_| {
        io::Error::new(io::ErrorKind::InvalidData, "files must be smaller than 4 GiB")
    })?;
    Ok((size, crc.finish()))
}

/// The table at the start of an archive.
fn header(path: &Path) -> io::Result<Vec<u8>> {
    let file = fs::File::open(path)?;
    let mut limit = 64 << 10;
    loop {
        let mut bytes = Vec::new();
        (&file).take(limit).read_to_end(&mut bytes)?;
        let limits = Limits::default();
        let mut reader = Reader::within(&bytes, &limits);
        match wad::Table::decode(&mut reader) {
            Ok(_) => {
                bytes.truncate(reader.position());
                return Ok(bytes);
            }
            // The table may be longer than the part that was read.
            Err(error) if error.needed().is_some() && bytes.len() as u64 == limit => {
                limit *= 8;
                io::Seek::rewind(&mut &file)?;
            }
            Err(error) => {
                return Err(io::Error::new(io::ErrorKind::InvalidData, error.to_string()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use worldwire_ki::file::revision::FileList;

    use super::*;

    #[test]
    fn a_folder_becomes_a_list() {
        let folder = tempfile::tempdir().unwrap();
        let wad = concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples/ki-made-up.wad");
        fs::create_dir_all(folder.path().join("Data/GameData")).unwrap();
        fs::copy(wad, folder.path().join("Data/GameData/Root.wad")).unwrap();
        fs::write(folder.path().join("readme.txt"), "hello").unwrap();
        let publish = || publish(folder.path(), "http://a.example/r1", 1).unwrap();
        let answer = publish();
        // The list does not contain itself.
        assert_eq!(publish().crc, answer.crc);
        assert_eq!(answer.url, "http://a.example/r1/LatestFileList.bin");
        let bytes = fs::read(folder.path().join(LIST_FILE)).unwrap();
        assert_eq!((answer.size as usize, answer.crc), (bytes.len(), wad::crc(&bytes)));
        let tables = TableFile::decode(&mut Reader::new(&bytes)).unwrap();
        let list = FileList::of(&tables);
        let names: Vec<_> = list.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["Data/GameData/Root.wad", "readme.txt"]);
        assert!(list.warnings.is_empty());
        let archive = fs::read(wad).unwrap();
        assert!(list.files[0].is(&archive) && list.files[1].is(b"hello"));
        let header = usize::try_from(list.files[0].header_size.unwrap()).unwrap();
        assert_eq!(list.files[0].header_crc, Some(wad::crc(&archive[..header])));
        assert_eq!(list.files[0].url(&answer.prefix), "http://a.example/r1/Data/GameData/Root.wad");
    }
}
