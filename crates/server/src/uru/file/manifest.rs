//! Manifests, read from lists or created from directories.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use worldwire_core::path::{PathRules, SafePath};
use worldwire_uru::file::manifest::{Manifest, ManifestEntry, ManifestFlags};
use worldwire_uru::types::{HiLo, ZStr};

use super::packed::{Packed, Sum, Summed};

/// A group's manifest and files.
#[derive(Debug, Default)]
pub(super) struct Group {
    manifest: Option<Arc<Manifest<'static>>>,
    /// The stamp that the list file had when the manifest was read.
    list: Option<Stamp>,
    /// The files in a directory, by relative path.
    files: Files,
}

type Files = BTreeMap<PathBuf, (Stamp, Summed)>;

/// A file's length and modification time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    length: u64,
    /// Nanoseconds since 1970.
    modified: Option<u64>,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        let modified = metadata.modified().ok();
        let since = modified.and_then(|modified| modified.duration_since(UNIX_EPOCH).ok());
        let modified = since.and_then(|since| u64::try_from(since.as_nanos()).ok());
        Self { length: metadata.len(), modified }
    }
}

/// The maximum depth of directories, and the maximum number of files in a manifest: a reply has
/// room for about a million UTF-16 units, and an entry needs at least a hundred.
const DEEPEST: usize = 16;
const MAX_FILES: usize = 10_000;

/// The manifest in a `.mfs` file. Fails with `InvalidData` if the file is not a manifest.
pub(super) fn listed(group: &mut Group, file: &Path) -> io::Result<Arc<Manifest<'static>>> {
    let stamp = Stamp::of(&fs::metadata(file)?);
    if let Some(manifest) = group.manifest.as_ref().filter(|_| group.list == Some(stamp)) {
        return Ok(Arc::clone(manifest));
    }
    let text = fs::read_to_string(file)?;
    let manifest = Manifest::parse(&text).map_err(|errors| {
        let errors: Vec<_> = errors.iter().take(5).map(ToString::to_string).collect();
        let text = format!("{}: {}", file.display(), errors.join("; "));
        io::Error::new(io::ErrorKind::InvalidData, text)
    })?;
    let manifest = Arc::new(manifest);
    group.list = Some(stamp);
    group.manifest = Some(Arc::clone(&manifest));
    Ok(manifest)
}

/// The manifest of a directory: all files in it, with relative names. Hidden files, and files that
/// clients could not request, are left out. Fails with `InvalidData` if there are too many files.
pub(super) fn of_folder(
    group: &mut Group,
    name: &str,
    folder: &Path,
    packed: &Packed,
) -> io::Result<Arc<Manifest<'static>>> {
    let mut found = BTreeMap::new();
    find_files(folder, Path::new(""), 0, &mut found)?;
    if group.manifest.is_none() && group.files.is_empty() {
        group.files = packed.kept(name);
    }
    let path_of = |path: &Path| Path::new(name).join(path);
    let is_known = |path: &PathBuf, stamp: &Stamp| {
        let known = group.files.get(path).filter(|(known, _)| known == stamp);
        known.is_some_and(|(_, summed)| packed.has(summed, &path_of(path)))
    };
    let changed: BTreeMap<_, _> =
        found.iter().filter(|(path, stamp)| !is_known(path, stamp)).collect();
    let is_same = changed.is_empty() && found.len() == group.files.len();
    if let Some(manifest) = group.manifest.as_ref().filter(|_| is_same && group.list.is_none()) {
        return Ok(Arc::clone(manifest));
    }
    if !changed.is_empty() {
        tracing::info!(group = name, files = changed.len(), "computing digests and packing files");
    }
    group.manifest = None;
    group.files.retain(|path, _| found.contains_key(path));
    for (path, stamp) in changed {
        let summed = packed.pack(&folder.join(path), &path_of(path))?;
        group.files.insert(path.clone(), (*stamp, summed));
    }
    if !is_same {
        packed.keep(name, &group.files)?;
    }
    let entries = group.files.iter().map(|(path, (_, summed))| entry(name, path, summed));
    let manifest = Arc::new(Manifest(entries.collect()));
    group.list = None;
    group.manifest = Some(Arc::clone(&manifest));
    Ok(manifest)
}

fn entry(group: &str, path: &Path, summed: &Summed) -> ManifestEntry<'static> {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    let client = parts.join("\\");
    let Summed { plain, packed } = summed;
    let (Sum { md5, size }, end, flags) = match packed {
        Some(packed) => (packed, ".gz", ManifestFlags::GZIP),
        None => (plain, "", 0),
    };
    ManifestEntry {
        download_name: ZStr::from(&*format!("{group}\\{client}{end}")),
        client_name: ZStr::from(&*client),
        md5: ZStr::from(&*plain.md5),
        md5_compressed: ZStr::from(&**md5),
        file_size: HiLo(plain.size),
        compressed_size: HiLo(*size),
        flags: ManifestFlags(flags),
    }
}

fn find_files(
    root: &Path,
    below: &Path,
    depth: usize,
    found: &mut BTreeMap<PathBuf, Stamp>,
) -> io::Result<()> {
    let too_many = |what: &str| {
        let text = format!("{}: {what}", root.display());
        Err(io::Error::new(io::ErrorKind::InvalidData, text))
    };
    if depth > DEEPEST {
        return too_many("directories are nested too deeply");
    }
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        let name = entry.file_name();
        let is_fine = name
            .to_str()
            .is_some_and(|name| SafePath::parse_str(name, PathRules::DOWNLOAD).is_ok());
        // Symbolic links are left out because they can lead anywhere.
        let kind = entry.file_type()?;
        if !is_fine {
            continue;
        }
        if kind.is_dir() {
            find_files(root, &path, depth + 1, found)?;
        } else if kind.is_file() {
            found.insert(path, Stamp::of(&entry.metadata()?));
            if found.len() > MAX_FILES {
                return too_many("too many files");
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;
    use crate::uru::file::Library;

    #[tokio::test]
    async fn changed_files_of_a_folder_are_packed_again() {
        let folder = tempfile::tempdir().unwrap();
        let (root, cache) = (folder.path().join("files"), folder.path().join("cache"));
        let library = Arc::new(Library::open(&root, &cache).unwrap());
        let text = "spam ".repeat(1000);
        fs::create_dir_all(root.join("External/dat")).unwrap();
        fs::write(root.join("External/dat/a.prp"), &text).unwrap();
        fs::write(root.join("External/b.ogg"), "sound").unwrap();
        fs::write(root.join("External/empty"), "").unwrap();
        fs::write(root.join("External/.hidden"), "").unwrap();
        let manifest = library.manifest("External").await.unwrap();
        let named = |name: &str| {
            let found = |entry: &&ManifestEntry<'_>| entry.client_name.to_text() == name;
            manifest.0.iter().find(found).unwrap().clone()
        };
        assert_eq!(manifest.0.len(), 3);
        let page = named("dat\\a.prp");
        assert_eq!(page.download_name.to_text(), "External\\dat\\a.prp.gz");
        assert_eq!((page.file_size.0, page.flags.0), (5000, ManifestFlags::GZIP));
        let packed = fs::read(library.find(&page.download_name.to_text()).unwrap()).unwrap();
        assert_eq!(packed.len(), page.compressed_size.0 as usize);
        let mut plain = String::new();
        flate2::read::GzDecoder::new(&*packed).read_to_string(&mut plain).unwrap();
        assert_eq!(plain, text);
        let sound = named("b.ogg");
        assert_eq!(sound.download_name.to_text(), "External\\b.ogg");
        assert_eq!(sound.md5, sound.md5_compressed);
        assert_eq!((sound.file_size.0, sound.compressed_size.0), (5, 5));
        assert_eq!(named("empty").md5.to_text(), "d41d8cd98f00b204e9800998ecf8427e");

        let again = library.manifest("External").await.unwrap();
        assert!(Arc::ptr_eq(&manifest, &again));
        fs::write(root.join("External/dat/a.prp"), text.replace("spam", "eggs!")).unwrap();
        let changed = library.manifest("External").await.unwrap();
        assert_ne!(changed.0, manifest.0);

        // The next run reuses the digests, and packs files that are missing from the cache.
        let target = cache.join("External/dat/a.prp.gz");
        let packed = fs::metadata(&target).unwrap().modified().unwrap();
        let library = Arc::new(Library::open(&root, &cache).unwrap());
        assert_eq!(library.manifest("External").await.unwrap(), changed);
        assert_eq!(fs::metadata(&target).unwrap().modified().unwrap(), packed);
        fs::remove_file(&target).unwrap();
        assert_eq!(library.manifest("External").await.unwrap(), changed);
        assert!(target.exists());
        assert!(library.find(".External.json").is_err());
        for name in ["Missing", "", "../External", "External/dat"] {
            let error = library.manifest(name).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotFound, "{name}");
        }
    }

    #[tokio::test]
    async fn lists_are_served_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let (root, cache) = (folder.path().join("files"), folder.path().join("cache"));
        let library = Arc::new(Library::open(&root, &cache).unwrap());
        let line = "a.txt,x\\a.gz,eea3588849f466778574d081598574ff,\
                    e9df2471268044ff888df0f8ebaa0e6c,48,67,8\n";
        fs::write(root.join("Garden.mfs"), line).unwrap();
        fs::create_dir_all(root.join("Garden")).unwrap();
        let manifest = library.manifest("Garden").await.unwrap();
        assert_eq!(manifest.format().unwrap(), line);
        fs::write(root.join("Garden.mfs"), "nonsense\n").unwrap();
        let error = library.manifest("Garden").await.unwrap_err().to_string();
        assert!(error.contains("Garden.mfs: line 1"), "{error}");
    }
}
