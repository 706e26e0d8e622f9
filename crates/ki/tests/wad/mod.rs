//! Checks for the cases of the archive vectors.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use worldwire_core::json::{Json, Style, json, write_children};
use worldwire_core::path::{PathRules, SafePath};
use worldwire_core::testing::{Case, hex};
use worldwire_core::{Limits, Reader, Tree, Value};
use worldwire_ki::file::wad::{Archive, ArchiveFile, Inflater, crc};

type Outcome = Result<(), String>;

fn check(good: bool, what: impl Into<String>) -> Outcome {
    if good { Ok(()) } else { Err(what.into()) }
}

pub(crate) fn crc_of(Case { case, .. }: &Case<'_>) -> Outcome {
    let bytes = hex(case, "hex")?;
    check(case["ki_crc"] == crc(&bytes), format!("{}", crc(&bytes)))?;
    check(case["zlib_crc32"] == crc32fast::hash(&bytes), "the usual CRC")
}

pub(crate) fn archive(Case { section, case, .. }: &Case<'_>) -> Outcome {
    let name = case["name"].as_str().ok_or("no name")?;
    let bytes = case["base64"].as_str().ok_or("no base64")?;
    let bytes = STANDARD.decode(bytes).map_err(|error| error.to_string())?;
    if *section == "invalid" {
        return invalid(name, &bytes);
    }
    round_trip(&bytes)?;
    let archive = Archive::parse(&bytes, &Limits::DEFAULT).map_err(|error| error.to_string())?;
    check(archive.overlaps().is_empty(), "overlaps")?;
    let mut inflater = Inflater::new();
    if name == "unpatched_entry" {
        let entry = archive.entries().iter().find(|entry| &*entry.name == b"z.bin");
        let entry = entry.ok_or("no z.bin")?;
        return check(
            archive.read(entry, &mut inflater) == Ok(None),
            "not recognised as unpatched",
        );
    }
    let table = archive.table();
    check(case["version"] == table.version, "version")?;
    check(case["flags"].as_u64().unwrap_or(0) == u64::from(table.flags), "flags")?;
    check(case["toc_len"] == table.encoded_size(), "size of the table")?;
    let wanted = case["entries"].as_array().ok_or("no entries")?;
    check(wanted.len() == table.entries.len(), "a different number of entries")?;
    for (entry, wanted) in table.entries.iter().zip(wanted) {
        let found = json!({
            "path": entry.name_lossy(), "offset": entry.offset, "size": entry.size,
            "compressed_size": entry.compressed_size.cast_signed(),
            "compressed": entry.is_compressed(), "crc": entry.crc,
            "name_len": entry.name.len() + usize::from(entry.terminated),
        });
        for (key, value) in found.as_object().ok_or("no object")? {
            check(&wanted[key] == value, format!("{key}: {value} is not {}", wanted[key]))?;
        }
        let file = archive.read(entry, &mut inflater).map_err(|error| error.to_string())?;
        let file = file.ok_or("unpatched")?;
        check(wanted["data_zlib_crc32"] == crc32fast::hash(file), "the data")?;
        if wanted["data_hex"].is_string() {
            check(file == hex(wanted, "data_hex")?, "the bytes of the data")?;
        }
    }
    Ok(())
}

fn round_trip(bytes: &[u8]) -> Outcome {
    let mut reader = Reader::traced("file", bytes, Tree::new());
    let file = ArchiveFile::decode(&mut reader).map_err(|error| error.to_string())?;
    let tree = reader.finish();
    check(file.to_bytes().as_deref() == Ok(bytes), "encoded to different bytes")?;
    let mut text = String::new();
    write_children(Value::Record, tree.roots(), Style::default(), &mut text);
    let json: Json = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let again = ArchiveFile::from_json(&json).and_then(|file| file.to_bytes());
    check(again.as_deref() == Ok(bytes), "JSON encoded to different bytes")
}

fn invalid(name: &str, bytes: &[u8]) -> Outcome {
    let archive = Archive::parse(bytes, &Limits::DEFAULT);
    if ["bad_magic", "truncated_toc", "count_4G"].contains(&name) {
        return check(archive.is_err(), "is accepted");
    }
    let archive = archive.map_err(|error| error.to_string())?;
    let mut inflater = Inflater::new();
    let read: Vec<_> = archive
        .entries()
        .iter()
        .map(|entry| archive.read(entry, &mut inflater).map(|file| file.map(<[u8]>::to_vec)))
        .collect();
    match name {
        "overlapping_entries" => {
            check(!archive.overlaps().is_empty(), "the overlap is not detected")
        }
        "crc_mismatch" | "offset_out_of_bounds" | "size_field_lies" => {
            let error = read.iter().find_map(|read| read.as_ref().err());
            check(error.is_some_and(|error| error.subject().is_some()), "no error names the entry")
        }
        _ => {
            let refused = archive
                .entries()
                .iter()
                .any(|entry| SafePath::parse(&entry.name, PathRules::default()).is_err());
            check(refused, "a path that escapes the folder is accepted")
        }
    }
}
