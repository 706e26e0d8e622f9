//! KI: changed copies of an archive and its files, as new files that are written atomically.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use axum::http::StatusCode;
use tempfile::Builder;
use worldwire_core::path::{PathRules, SafePath};
use worldwire_core::{Error, Limits};
use worldwire_ki::file::wad::{Archive, BuildOptions, Packer, Plan, is_stored_kind};

use super::archive::KiArchive;
use crate::error::Refusal;

type Outcome<T> = Result<T, Refusal>;

static LIMITS: Limits = Limits::DEFAULT;

/// A file that does not exist yet.
#[derive(Debug)]
pub(super) struct NewFile {
    folder: PathBuf,
    name: String,
}

impl NewFile {
    /// A new file with this name in a directory. The name must be valid on every system and contain
    /// no directories.
    ///
    /// # Errors
    /// The name is not usable or is already taken.
    pub(super) fn in_folder(folder: &Path, name: &str) -> Outcome<Self> {
        let rules = PathRules { allow_hidden: false, portable: true, ..PathRules::default() };
        let path = SafePath::parse_str(name, rules)
            .map_err(|error| unusable(format!("the name {error}; choose another one")))?;
        if path.parts().count() > 1 {
            let text = "the name contains a directory; copies are saved next to the archive";
            return Err(unusable(text.to_owned()));
        }
        let new = Self { folder: folder.to_owned(), name: name.to_owned() };
        match new.path().symlink_metadata() {
            Ok(_) => Err(new.taken()),
            Err(_) => Ok(new),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    fn taken(&self) -> Refusal {
        unusable(format!("{} already exists; choose another name", self.name))
    }

    fn failed(&self, error: &io::Error) -> Refusal {
        Refusal::failed(format!("{}: {error}", self.path().display()))
    }

    /// Writes these bytes. Returns the size.
    pub(super) fn save(&self, bytes: &[u8]) -> Outcome<u64> {
        self.write(|out| {
            out.write_all(bytes).map_err(|error| self.failed(&error))?;
            Ok(bytes.len() as u64)
        })
    }

    /// Writes a copy of an archive in which some files have other contents, by their numbers in the
    /// table. All others are copied as stored. Returns the size.
    ///
    /// The result is the same as from `worldwire ki wad update`.
    pub(super) fn save_archive(
        &self,
        archive: &KiArchive,
        changed: &BTreeMap<u32, Vec<u8>>,
        is_closed: &dyn Fn() -> bool,
    ) -> Outcome<u64> {
        let archive = Archive::parse(archive.bytes(), &LIMITS).map_err(|error| refused(&error))?;
        if !archive.overlaps().is_empty() {
            let text = "files in this archive share data; `worldwire ki wad update \
                        --allow-overlaps` gives each file its own data";
            return Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, text));
        }
        let table = archive.table();
        let (version, flags) = (table.version, table.flags);
        let options = BuildOptions { version, flags, ..BuildOptions::default() };
        let mut entries: Vec<_> = (0..).zip(archive.entries()).collect();
        entries.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name));
        let names = entries.iter().map(|(_, entry)| Cow::Borrowed(&*entry.name)).collect();
        let mut plan = Plan::new(&options, names).map_err(|error| refused(&error))?;
        let mut packer = Packer::new(options.level).map_err(|error| refused(&error))?;
        self.write(|out| {
            let failed = |error: io::Error| self.failed(&error);
            out.seek(SeekFrom::Start(plan.table_size())).map_err(failed)?;
            for (number, entry) in &entries {
                if is_closed() {
                    return Err(Refusal::failed("the program is shutting down"));
                }
                let packed = match changed.get(number) {
                    Some(bytes) => packer.pack(bytes, is_stored_kind(&entry.name)),
                    None => archive.verified(entry).and_then(|_| archive.packed(entry)),
                };
                let packed = packed.map_err(|error| refused(&error))?;
                plan.add(&packed).map_err(|error| refused(&error))?;
                out.write_all(&packed.bytes).map_err(failed)?;
            }
            let size = plan.size();
            let table = plan.finish().map_err(|error| refused(&error))?;
            out.seek(SeekFrom::Start(0)).and_then(|_| out.write_all(&table)).map_err(failed)?;
            Ok(size)
        })
    }

    /// Writes the file under a temporary name and renames it when it is complete, unless its name
    /// has been taken in the meantime.
    fn write(&self, write: impl FnOnce(&mut BufWriter<&File>) -> Outcome<u64>) -> Outcome<u64> {
        let mut builder = Builder::new();
        // Other commands ignore files with such names.
        builder.prefix(".worldwire-").suffix(".part");
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let file = builder.tempfile_in(&self.folder).map_err(|error| self.failed(&error))?;
        let mut out = BufWriter::new(file.as_file());
        let size = write(&mut out)?;
        out.flush().map_err(|error| self.failed(&error))?;
        drop(out);
        match file.persist_noclobber(self.path()) {
            Ok(_) => Ok(size),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Err(self.taken()),
            Err(error) => Err(self.failed(&error.error)),
        }
    }
}

fn unusable(text: String) -> Refusal {
    Refusal { field: Some("name".to_owned()), ..Refusal::new(StatusCode::CONFLICT, text) }
}

/// The refusal of an archive that cannot be copied.
fn refused(error: &Error) -> Refusal {
    let text = format!("the archive cannot be copied: {error}");
    Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, text)
}

#[cfg(test)]
mod tests {
    use worldwire_ki::file::wad::build;

    use super::*;

    #[test]
    fn only_new_files_in_the_directory_are_written() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("there.wad"), "old").unwrap();
        let wrong = [
            "there.wad",
            "",
            ".",
            "..",
            "../a",
            "a/b",
            "a\\b",
            "/a",
            "C:a",
            ".a",
            "a\n",
            "nul.wad",
        ];
        for name in wrong {
            let refusal = NewFile::in_folder(folder.path(), name).unwrap_err();
            assert_eq!(
                (refusal.status, refusal.field.as_deref()),
                (StatusCode::CONFLICT, Some("name"))
            );
        }
        let new = NewFile::in_folder(folder.path(), "new.wad").unwrap();
        // Another program takes the name after the check.
        std::fs::write(folder.path().join("new.wad"), "theirs").unwrap();
        assert_eq!(new.save(b"ours").unwrap_err().status, StatusCode::CONFLICT);
        assert_eq!(std::fs::read(folder.path().join("new.wad")).unwrap(), b"theirs");
        let names = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(names, 2, "nothing else is left");
    }

    #[test]
    fn damaged_archives_are_not_copied() {
        let folder = tempfile::tempdir().unwrap();
        let files = [("a.ogg", &b"first"[..]), ("b.ogg", b"second")];
        let mut bytes = build(&BuildOptions::default(), files).unwrap();
        let last = bytes.last_mut().unwrap();
        *last ^= 1;
        let archive = KiArchive::open("a.wad", bytes).unwrap();
        let new = NewFile::in_folder(folder.path(), "b.wad").unwrap();
        let refusal = new.save_archive(&archive, &BTreeMap::new(), &|| false).unwrap_err();
        assert!(refusal.text.contains("b.ogg") && refusal.text.contains("CRC"), "{}", refusal.text);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        // A damaged file can be replaced.
        let changed = BTreeMap::from([(1, b"new".to_vec())]);
        let size = new.save_archive(&archive, &changed, &|| false).unwrap();
        let copy = std::fs::read(folder.path().join("b.wad")).unwrap();
        assert_eq!(copy.len() as u64, size);
        let wanted = [("a.ogg", &b"first"[..]), ("b.ogg", b"new")];
        assert_eq!(copy, build(&BuildOptions::default(), wanted).unwrap());
    }
}
