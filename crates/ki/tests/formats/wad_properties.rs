//! Archives: files survive a round trip, and hostile input does no harm.

use std::borrow::Cow;
use std::collections::BTreeMap;

use proptest::prelude::*;
use worldwire_core::json::{Json, Style, write_children};
use worldwire_core::{ErrorKind, Limits, Reader, Tree, Value};
use worldwire_ki::file::wad::{
    Archive, ArchiveFile, BuildOptions, Change, Inflater, Packer, Plan, build, diff, is_stored_kind,
};

type Files = BTreeMap<String, Vec<u8>>;

fn made(options: &BuildOptions, files: &Files) -> Vec<u8> {
    build(options, files.iter().rev().map(|(name, file)| (&**name, &**file))).unwrap()
}

fn extracted(bytes: &[u8]) -> Files {
    let archive = Archive::parse(bytes, &Limits::DEFAULT).unwrap();
    let mut inflater = Inflater::new();
    let entries = archive.entries().iter();
    let files = entries.map(|entry| {
        let file = archive.read(entry, &mut inflater).unwrap().unwrap();
        (entry.name_lossy().into_owned(), file.to_vec())
    });
    files.collect()
}

fn files() -> impl Strategy<Value = Files> {
    let file = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..300),
        (any::<u8>(), 0_usize..3000).prop_map(|(byte, count)| vec![byte; count]),
    ];
    proptest::collection::btree_map("[a-cΩ]{1,3}(/[a-c]{1,2})?(\\.(mp3|OGG|xml))?", file, 0..12)
}

fn options() -> impl Strategy<Value = BuildOptions> {
    (1_u32..4, 0_u8..4, 1_u8..=12).prop_map(|(version, flags, level)| BuildOptions {
        version,
        flags: if version == 1 { 0 } else { flags },
        level,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn archives_return_their_files(files in files(), options in options()) {
        let bytes = made(&options, &files);
        prop_assert_eq!(&made(&options, &files), &bytes, "the second archive differs");
        prop_assert_eq!(&extracted(&bytes), &files);
        let archive = Archive::parse(&bytes, &Limits::DEFAULT).unwrap();
        let table = archive.table();
        prop_assert_eq!((table.version, table.flags), (options.version, options.flags));
        prop_assert!(table.entries.is_sorted_by(|a, b| a.name < b.name));
        prop_assert!(archive.overlaps().is_empty());
        let size = usize::try_from(table.encoded_size()).unwrap();
        prop_assert_eq!(table.to_bytes().unwrap(), &bytes[..size]);
        for entry in &table.entries {
            prop_assert!(!(entry.is_compressed() && is_stored_kind(&entry.name)));
            prop_assert!(!entry.is_compressed() || entry.compressed_size < entry.size);
        }
    }

    #[test]
    fn an_update_keeps_the_stored_bytes_of_the_rest(
        files in files(),
        other in proptest::collection::vec(any::<u8>(), 0..99),
    ) {
        let options = BuildOptions { level: 12, ..BuildOptions::default() };
        let before = made(&options, &files);
        let archive = Archive::parse(&before, &Limits::DEFAULT).unwrap();
        let mut names: Vec<Cow<'_, [u8]>> =
            archive.entries().iter().map(|entry| entry.name.clone()).collect();
        names.push(Cow::Borrowed(b"new"));
        let mut plan = Plan::new(&options, names).unwrap();
        let order: Vec<Vec<u8>> = plan.names().map(<[u8]>::to_vec).collect();
        let mut data = Vec::new();
        for name in &order {
            let packed = match archive.entries().iter().find(|entry| *entry.name == **name) {
                Some(entry) => archive.packed(entry).unwrap(),
                None => Packer::new(1).unwrap().pack(&other, false).unwrap(),
            };
            plan.add(&packed).unwrap();
            data.extend_from_slice(&packed.bytes);
        }
        let after = [plan.finish().unwrap(), data].concat();
        let mut wanted = files;
        wanted.insert("new".into(), other);
        prop_assert_eq!(extracted(&after), wanted);
        let again = Archive::parse(&after, &Limits::DEFAULT).unwrap();
        let changes = diff(archive.table(), again.table());
        prop_assert!(matches!(&changes[..], [Change::Added(e)] if &*e.name == b"new"));
    }

    #[test]
    fn a_modified_byte_is_detected_or_harmless(at in any::<prop::sample::Index>(), bit in 0_u8..8) {
        let files = Files::from([("a".into(), vec![7; 500]), ("b.ogg".into(), vec![1, 2, 3])]);
        let mut bytes = made(&BuildOptions::default(), &files);
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let Ok(archive) = Archive::parse(&bytes, &Limits::DEFAULT) else { return Ok(()) };
        let data = usize::try_from(archive.table().encoded_size()).unwrap();
        let mut inflater = Inflater::new();
        let mut errors = 0;
        for entry in archive.entries() {
            errors += usize::from(archive.read(entry, &mut inflater).is_err());
        }
        prop_assert!(at < data || errors == 1, "a changed byte of the data goes unnoticed");
    }
}

#[test]
fn every_prefix_is_refused_or_has_errors() {
    let files = Files::from([("a".into(), vec![7; 500]), ("b.ogg".into(), vec![1, 2, 3])]);
    let bytes = made(&BuildOptions::default(), &files);
    for end in 0..bytes.len() {
        let Ok(archive) = Archive::parse(&bytes[..end], &Limits::DEFAULT) else { continue };
        let mut inflater = Inflater::new();
        let faults = archive.entries().iter().filter(|e| archive.read(e, &mut inflater).is_err());
        assert!(faults.count() > 0, "{end} bytes pass for the whole archive");
    }
}

#[test]
fn wrong_sizes_are_named_errors() {
    let bytes = made(&BuildOptions::default(), &Files::from([("a".into(), vec![7; 500])]));
    // The size follows the header of 14 bytes and the offset.
    for (size, wanted) in [(499_u32, "a longer one"), (501, "500 bytes")] {
        let mut bytes = bytes.clone();
        bytes[18..22].copy_from_slice(&size.to_le_bytes());
        let archive = Archive::parse(&bytes, &Limits::DEFAULT).unwrap();
        let error = archive.read(&archive.entries()[0], &mut Inflater::new()).unwrap_err();
        assert_eq!((error.found(), error.subject()), (wanted, Some("a")));
    }
    let mut bytes = bytes.clone();
    bytes[18..22].copy_from_slice(&u32::MAX.to_le_bytes());
    let archive = Archive::parse(&bytes, &Limits::DEFAULT).unwrap();
    let error = archive.read(&archive.entries()[0], &mut Inflater::new()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Limit { name: "inflated bytes", .. }), "{error}");
    let limits = Limits { inflated_ratio: 2, ..Limits::DEFAULT };
    let bytes = made(&BuildOptions::default(), &Files::from([("a".into(), vec![7; 500])]));
    let archive = Archive::parse(&bytes, &limits).unwrap();
    let error = archive.read(&archive.entries()[0], &mut Inflater::new()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Limit { name: "inflated ratio", .. }), "{error}");
}

#[test]
fn invalid_archives_are_not_built() {
    let options = BuildOptions { version: 1, flags: 1, ..BuildOptions::default() };
    assert!(build(&options, []).is_err(), "flags in version 1");
    assert!(
        build(&BuildOptions::default(), [("a", &b""[..]), ("a", b"")]).is_err(),
        "a name twice"
    );
    assert!(build(&BuildOptions::default(), [("", &b""[..])]).is_err(), "no name");
    assert!(build(&BuildOptions { level: 13, ..BuildOptions::default() }, []).is_err(), "level 13");
    let plan = Plan::new(&BuildOptions::default(), vec![Cow::Borrowed(b"a")]).unwrap();
    assert!(plan.finish().is_err(), "a file is missing");
}

#[test]
fn reading_the_beginning_of_a_file_takes_only_its_memory() {
    let noise: Vec<u8> = (0_u64..90_000).map(|at| (at * at * 7919).to_le_bytes()[2]).collect();
    let files = Files::from([("a".into(), vec![7; 500_000]), ("b.ogg".into(), noise.clone())]);
    let bytes = made(&BuildOptions::default(), &files);
    // Reading a whole file of this size is refused.
    let limits = Limits { inflated_bytes: 1000, ..Limits::DEFAULT };
    let archive = Archive::parse(&bytes, &limits).unwrap();
    let mut inflater = Inflater::new();
    let [packed, stored] = archive.entries() else { panic!("two files") };
    assert!(archive.read(packed, &mut inflater).is_err());
    for max in [0, 1, 4096, 100_000] {
        assert_eq!(archive.head(packed, max, &mut inflater).unwrap().unwrap(), vec![7; max]);
        let head = archive.head(stored, max, &mut inflater).unwrap().unwrap();
        assert_eq!(head, &noise[..max.min(noise.len())]);
    }
    let mut bytes = bytes.clone();
    *bytes.last_mut().unwrap() ^= 1;
    let archive = Archive::parse(&bytes, &limits).unwrap();
    assert!(archive.head(&archive.entries()[1], 4, &mut inflater).is_err(), "the CRC is checked");
}

#[test]
fn unused_bytes_are_counted() {
    let files = Files::from([("a".into(), vec![7; 500]), ("b.ogg".into(), vec![1, 2, 3])]);
    let mut bytes = made(&BuildOptions::default(), &files);
    let unused = |bytes: &[u8]| Archive::parse(bytes, &Limits::DEFAULT).unwrap().unused();
    assert_eq!(unused(&bytes), 0);
    bytes.extend([0; 30]);
    assert_eq!(unused(&bytes), 30);
    // The audio file begins two bytes later.
    let table = Archive::parse(&bytes, &Limits::DEFAULT).unwrap().table().clone();
    let mut later = table.clone();
    later.entries[1].offset += 2;
    let head = usize::try_from(table.encoded_size()).unwrap();
    let moved = [later.to_bytes().unwrap(), bytes[head..].to_vec()].concat();
    assert_eq!(unused(&moved), 30);
    assert_eq!(unused(&[&moved[..], &[0]].concat()), 31);
}

/// The JSON form of an archive, for editing.
fn json_of(bytes: &[u8]) -> Json {
    let mut reader = Reader::traced("file", bytes, Tree::new());
    ArchiveFile::decode(&mut reader).unwrap();
    let mut text = String::new();
    let tree = reader.finish();
    write_children(Value::Record, tree.roots(), Style::default(), &mut text);
    serde_json::from_str(&text).unwrap()
}

#[test]
fn offsets_follow_an_edited_table() {
    let files = Files::from([("a".into(), vec![7; 500]), ("b.ogg".into(), vec![1, 2, 3])]);
    let bytes = made(&BuildOptions::default(), &files);
    let mut json = json_of(&bytes);
    json["entries"][0]["name"] = "a longer name".into();
    let renamed = ArchiveFile::from_json(&json).unwrap().to_bytes().unwrap();
    let wanted =
        Files::from([("a longer name".into(), vec![7; 500]), ("b.ogg".into(), vec![1, 2, 3])]);
    assert_eq!(extracted(&renamed), wanted);
    json["entries"] = json["entries"].as_array().unwrap()[1..].to_vec().into();
    let error = ArchiveFile::from_json(&json).unwrap_err().to_string();
    assert_eq!(error, "file_count: wanted 1, the number of entries, found 2");
    json["file_count"] = 1.into();
    let removed = ArchiveFile::from_json(&json).unwrap().to_bytes().unwrap();
    assert_eq!(extracted(&removed), Files::from([("b.ogg".into(), vec![1, 2, 3])]));
    json["magic"] = "KIWAP".into();
    assert!(ArchiveFile::from_json(&json).unwrap_err().to_string().starts_with("magic: wanted"));
    // JSON without the size of the table has its own offsets.
    let mut json = json_of(&bytes);
    json.as_object_mut().unwrap().remove("table_size");
    assert_eq!(ArchiveFile::from_json(&json).unwrap().to_bytes().unwrap(), bytes);
}
