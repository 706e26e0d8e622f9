//! Downloads into a directory, as a patcher does.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use md5::{Digest as _, Md5};
use tempfile::NamedTempFile;
use tokio::task::spawn_blocking;
use worldwire_core::path::{PathRules, SafePath};
use worldwire_core::value::push_hex;
use worldwire_uru::file::manifest::{ManifestEntry, ManifestFlags};

use super::{ClientError, Files, Result};

/// The result of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Summary {
    /// Files that were already up to date.
    pub kept: usize,
    /// Files that were downloaded.
    pub written: usize,
    /// Bytes that were downloaded.
    pub bytes: u64,
}

/// A file in a manifest that is now up to date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledFile {
    /// Its path, relative to the directory.
    pub path: PathBuf,
    /// The number of bytes downloaded; `None` if the file was already up to date.
    pub downloaded: Option<u32>,
}

/// Brings a directory up to date with a manifest. Keeps files whose MD5 matches; downloads, unpacks
/// and verifies the others, and replaces each one atomically. Deletes nothing.
///
/// # Errors
/// Refusals, names that lead out of the directory, files that do not match the manifest, and I/O
/// errors. Files installed before the error are kept.
pub async fn update(
    files: &Files,
    group: &str,
    folder: &Path,
    placed: &mut (dyn FnMut(&InstalledFile) + Send),
) -> Result<Summary> {
    let manifest = files.manifest(group).await?;
    let root = folder.to_owned();
    let made = move || fs::create_dir_all(&root).and_then(|()| fs::canonicalize(&root));
    let folder = blocking(folder, made).await?;
    let mut summary = Summary::default();
    for entry in &manifest {
        let name = entry.client_name.to_text();
        let path = relative(&name)?;
        let downloaded = place(files, entry, &folder, &path).await?;
        match downloaded {
            Some(bytes) => {
                summary.written += 1;
                summary.bytes += u64::from(bytes);
            }
            None => summary.kept += 1,
        }
        placed(&InstalledFile { path, downloaded });
    }
    Ok(summary)
}

/// Writes a file inside a directory atomically.
///
/// # Errors
/// A name that leads out of the directory, and I/O errors.
pub fn store(folder: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf> {
    let path = relative(name)?;
    fs::create_dir_all(folder).map_err(at(folder))?;
    let root = fs::canonicalize(folder).map_err(at(folder))?;
    let (target, mut file) = begin(&root, &path)?;
    file.write_all(bytes).map_err(at(&target))?;
    keep(file, &target)?;
    Ok(path)
}

/// The path of a downloaded file, relative to the directory.
fn relative(name: &str) -> Result<PathBuf> {
    let path = SafePath::parse_str(name, PathRules::DOWNLOAD);
    let path = path.map_err(|error| ClientError::Download {
        name: name.to_owned(),
        wanted: "a name inside the directory".to_owned(),
        found: format!("{name:?}, which {error}"),
    })?;
    Ok(path.to_path_buf())
}

/// Updates one file. Returns the number of bytes downloaded, or `None` if the file was up to date.
async fn place(
    files: &Files,
    entry: &ManifestEntry<'static>,
    folder: &Path,
    path: &Path,
) -> Result<Option<u32>> {
    let target = folder.join(path);
    let wanted = Sum { bytes: u64::from(entry.file_size.0), md5: entry.md5.to_text() };
    let there = (target.clone(), wanted.bytes);
    if blocking(&target, move || sum_of(&there.0, there.1)).await?.as_ref() == Some(&wanted) {
        return Ok(None);
    }
    let name = entry.download_name.to_text();
    let is_packed = entry.flags.0 & ManifestFlags::GZIP != 0;
    // Manifests may list a compressed size of 0 for files that are sent uncompressed.
    let (size, sent) = if is_packed {
        let bytes = u64::from(entry.compressed_size.0);
        (entry.compressed_size.0, Sum { bytes, md5: entry.md5_compressed.to_text() })
    } else {
        (entry.file_size.0, wanted.clone())
    };
    let (folder, path) = (folder.to_owned(), path.to_owned());
    let (place, part) = (folder.clone(), path.clone());
    let (target, packed) = unblocked(move || begin(&place, &part)).await?;
    let (taken, (packed, sum)) = files
        .download(&name, size, (packed, Md5::new()), |(mut packed, mut sum), bytes| {
            let failed = at(&target);
            unblocked(move || {
                sum.update(&bytes);
                packed.write_all(&bytes).map_err(failed)?;
                Ok((packed, sum))
            })
        })
        .await?;
    Sum { bytes: u64::from(taken), md5: hex(sum) }.expect(&name, &sent)?;
    let work = move || -> Result<()> {
        if !is_packed {
            return keep(packed, &target);
        }
        let mut file = packed.into_file();
        file.rewind().map_err(at(&target))?;
        let (target, mut plain) = begin(&folder, &path)?;
        let most = wanted.bytes;
        let found = unpack(BufReader::new(file), most, &mut plain).map_err(at(&target))?;
        found.expect(&name, &wanted)?;
        keep(plain, &target)
    };
    unblocked(work).await?;
    Ok(Some(taken))
}

/// A file's size and digest.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sum {
    bytes: u64,
    md5: String,
}

impl Sum {
    fn expect(&self, name: &str, wanted: &Self) -> Result<()> {
        if self.bytes == wanted.bytes && self.md5.eq_ignore_ascii_case(&wanted.md5) {
            return Ok(());
        }
        let shown = |sum: &Self| format!("{} bytes with MD5 {}", sum.bytes, sum.md5);
        Err(ClientError::Download {
            name: name.to_owned(),
            wanted: shown(wanted),
            found: shown(self),
        })
    }
}

fn hex(sum: Md5) -> String {
    let mut text = String::new();
    push_hex(&mut text, &sum.finalize());
    text
}

/// The checksum of a file, if it exists and has this length.
fn sum_of(path: &Path, length: u64) -> io::Result<Option<Sum>> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() && metadata.len() == length => {}
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    copy(File::open(path)?, &mut io::sink()).map(Some)
}

fn copy(mut from: impl Read, to: &mut impl io::Write) -> io::Result<Sum> {
    let (mut sum, mut bytes) = (Md5::new(), 0);
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = from.read(&mut buffer)?;
        let Some(part) = buffer.get(..count).filter(|part| !part.is_empty()) else {
            return Ok(Sum { bytes, md5: hex(sum) });
        };
        sum.update(part);
        to.write_all(part)?;
        bytes += count as u64;
    }
}

/// Unpacks up to `most` bytes and detects whether there are more. Like gzip, ignores trailing bytes
/// that are not a gzip stream; the checksum proves that the file is complete.
fn unpack(packed: impl BufRead, most: u64, to: &mut impl io::Write) -> io::Result<Sum> {
    let mut unpacked = MultiGzDecoder::new(packed);
    let mut found = copy((&mut unpacked).take(most), to)?;
    if found.bytes == most {
        found.bytes += unpacked.read(&mut [0]).unwrap_or(0) as u64;
    }
    Ok(found)
}

/// Creates a temporary file next to its target, and any missing directories. Refuses symbolic links
/// that lead out of the root.
fn begin(root: &Path, path: &Path) -> Result<(PathBuf, NamedTempFile)> {
    let mut parent = root.to_owned();
    for part in path.parent().into_iter().flat_map(Path::components) {
        parent.push(part);
        match fs::create_dir(&parent) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(at(&parent)(error)),
        }
        let real = fs::canonicalize(&parent).map_err(at(&parent))?;
        if !real.starts_with(root) {
            return Err(at(&parent)(io::Error::other(
                "a symbolic link leads out of the directory",
            )));
        }
    }
    let target = root.join(path);
    let file = temporary_in(&parent).map_err(at(&parent))?;
    Ok((target, file))
}

/// A temporary file that, once complete, has the permissions of any new file.
fn temporary_in(folder: &Path) -> io::Result<NamedTempFile> {
    #[cfg(unix)]
    return tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666))
        .tempfile_in(folder);
    #[cfg(not(unix))]
    return NamedTempFile::new_in(folder);
}

/// Moves a complete file to its target. If the target is a link, replaces the link itself.
fn keep(file: NamedTempFile, target: &Path) -> Result<()> {
    file.as_file().sync_all().map_err(at(target))?;
    file.persist(target).map_err(|error| at(target)(error.error))?;
    Ok(())
}

/// Runs file I/O on a thread for blocking work; errors name the path.
async fn blocking<R: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> io::Result<R> + Send + 'static,
) -> Result<R> {
    let failed = at(path);
    unblocked(move || work().map_err(failed)).await
}

/// Runs file I/O on a thread for blocking work.
async fn unblocked<R: Send + 'static>(
    work: impl FnOnce() -> Result<R> + Send + 'static,
) -> Result<R> {
    let done = spawn_blocking(work).await;
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> ClientError + use<> {
    let path = path.to_owned();
    move |error| ClientError::Io { path, error: Arc::new(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_outside_the_folder_are_refused() {
        let page: PathBuf = ["dat", "page.prp"].iter().collect();
        assert_eq!(relative("dat\\page.prp").unwrap(), page);
        let bad =
            ["", "/etc", "..\\x", "a/../b", "C:\\x", "a//b", "\\x", "con.txt", "x.", "a\0", ".x"];
        for name in bad {
            assert!(relative(name).is_err(), "{name:?}");
            let folder = tempfile::tempdir().unwrap();
            assert!(store(folder.path(), name, b"x").is_err());
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn bytes_after_a_packed_file_are_ignored() {
        let packed = |plain: &[u8]| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Default::default());
            encoder.write_all(plain).unwrap();
            encoder.finish().unwrap()
        };
        let (one, two) = (packed(b"one"), packed(b"two"));
        for (bytes, most, wanted) in [
            (one.clone(), 3, Some(3)),
            ([&one[..], b"\0\0\0"].concat(), 3, Some(3)),
            ([&one[..], b"a note"].concat(), 3, Some(3)),
            ([&one[..], &two[..]].concat(), 6, Some(6)),
            // One file is longer than stated, the other shorter.
            ([&one[..], &two[..]].concat(), 3, Some(4)),
            (one.clone(), 2, Some(3)),
            (one.clone(), 4, Some(3)),
            (one[..10].to_vec(), 3, None),
            (b"one".to_vec(), 3, None),
        ] {
            let mut plain = Vec::new();
            let found = unpack(&bytes[..], most, &mut plain).ok().map(|sum| sum.bytes);
            assert_eq!(found, wanted, "{bytes:?}");
        }
    }

    #[test]
    fn files_are_replaced_atomically() {
        let folder = tempfile::tempdir().unwrap();
        for bytes in [&b"long before"[..], b"after"] {
            let path = store(folder.path(), "SDL\\x.sdl", bytes).unwrap();
            assert_eq!(fs::read(folder.path().join(path)).unwrap(), bytes);
        }
        assert_eq!(fs::read_dir(folder.path().join("SDL")).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn links_do_not_lead_out() {
        let [folder, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        std::os::unix::fs::symlink(other.path(), folder.path().join("dat")).unwrap();
        let error = store(folder.path(), "dat/x", b"x").unwrap_err().to_string();
        assert!(error.contains("a symbolic link leads out"), "{error}");
        assert_eq!(fs::read_dir(other.path()).unwrap().count(), 0);
    }
}
