//! Targets for archives.

use worldwire_core::Limits;
use worldwire_core::json::Style;
use worldwire_core::testing::{Target, decode};

use crate::file::wad::{Archive, ArchiveFile, BuildOptions, Inflater, Packed, Plan, build, diff};

/// The targets in this file.
pub(super) const TARGETS: &[Target] = &[Target { name: "ki_wad", run: wad, seeds }];

fn wad(data: &[u8]) {
    let read = |reader: &mut _| ArchiveFile::decode(reader);
    let traced = |reader: &mut _| ArchiveFile::decode(reader);
    let decoded = decode(data, &Limits::DEFAULT, Style::default(), read, traced);
    let limits = Limits { inflated_bytes: 1 << 20, ..Limits::DEFAULT };
    let archive = Archive::parse(data, &limits);
    assert_eq!(archive.is_ok(), decoded.value.is_ok(), "table and archive disagree");
    let Ok(archive) = archive else { return };
    assert_eq!(decoded.used, data, "bytes were left over");
    let file = decoded
        .encodes_back(ArchiveFile::to_bytes, |json| ArchiveFile::from_json(json)?.to_bytes());
    let Some(file) = file else { return };
    assert_eq!(file.table.encoded_size(), (data.len() - file.data.len()) as u64);
    assert!(diff(archive.table(), archive.table()).is_empty(), "an archive differs from itself");
    assert!(archive.overlaps().len() <= archive.entries().len());
    let mut inflater = Inflater::new();
    assert!(archive.unused() <= data.len() as u64);
    for entry in archive.entries().iter().take(64) {
        if let Ok(Some(file)) = archive.read(entry, &mut inflater) {
            assert_eq!(file.len(), entry.size as usize, "another size");
            let begins = file.get(..9).unwrap_or(file).to_vec();
            let head = archive.head(entry, 9, &mut inflater);
            assert_eq!(head, Ok(Some(&*begins)), "another beginning");
        }
    }
    repack(&archive);
}

/// Checks that repacking keeps the stored bytes.
fn repack(archive: &Archive<'_>) {
    let mut kept: Vec<(&[u8], Packed<'_>)> = Vec::new();
    for entry in archive.entries().iter().take(64) {
        if let Ok(packed) = archive.packed(entry) {
            kept.push((&entry.name, packed));
        }
    }
    kept.sort_by_key(|(name, _)| *name);
    let names = kept.iter().map(|(name, _)| (*name).into()).collect();
    let options = BuildOptions { version: archive.table().version, flags: 0, level: 1 };
    let Ok(mut plan) = Plan::new(&options, names) else { return };
    let max: usize = 4 << 20;
    if kept.iter().map(|(_, packed)| packed.bytes.len()).sum::<usize>() > max {
        return;
    }
    let mut data = Vec::new();
    for (_, packed) in &kept {
        plan.add(packed).expect("it came from an archive");
        data.extend_from_slice(&packed.bytes);
    }
    let mut bytes = plan.finish().expect("all files were added");
    bytes.append(&mut data);
    let again = Archive::parse(&bytes, &Limits::DEFAULT).expect("it was just built");
    assert!(again.overlaps().is_empty(), "built with overlaps");
    for (entry, (_, packed)) in again.entries().iter().zip(&kept) {
        assert_eq!(again.packed(entry).as_ref(), Ok(packed), "different bytes");
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let files = [("Root.txt", &[b'a'; 200][..]), ("Sound/x.mp3", &[1, 2, 3]), ("empty", &[])];
    let versions = [1, 2].map(|version| {
        build(&BuildOptions { version, ..BuildOptions::default() }, files).unwrap_or_default()
    });
    versions.to_vec()
}
