//! Files that are written atomically.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, RwLock, RwLockWriteGuard};

use tempfile::{Builder, TempPath};

/// A new file that is given its name when it is complete. Until then, an existing file with that
/// name is kept. A link with that name is never followed: it is replaced or refused.
///
/// The permissions are those of any new file.
#[derive(Debug)]
pub(crate) enum WholeFile {
    /// The file has no name, so nothing is left of it, however the program ends.
    #[cfg(target_os = "linux")]
    Nameless(File, PathBuf),
    /// On systems where files need names, the file has another name in the same directory.
    Temporary(File, TempPath, Listed),
}

impl WholeFile {
    /// Starts a file that will be placed in a directory.
    pub(crate) fn create_in(folder: &Path) -> io::Result<Self> {
        // Errors about a temporary file contain its name, which users do not know.
        std::fs::metadata(folder)?;
        #[cfg(target_os = "linux")]
        match nameless::create_in(folder) {
            Ok(file) => return Ok(Self::Nameless(file, folder.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
            Err(_) => {}
        }
        Self::temporary_in(folder)
    }

    /// Like [`Self::store`], into an open directory, on systems that have such handles.
    #[cfg(target_os = "linux")]
    pub(super) fn store_at(
        folder: &File,
        path: &Path,
        name: &OsStr,
        bytes: &[u8],
        force: bool,
    ) -> io::Result<()> {
        // A replacement inherits the permissions of the old file.
        if force {
            return Self::store(path, bytes, force);
        }
        let Ok(mut file) = nameless::create_at(folder) else {
            return Self::store(path, bytes, force);
        };
        file.write_all(bytes)?;
        nameless::link_at(&file, folder, Path::new(name))
    }

    /// Writes a new file in a temporary directory that nobody reads before everything is written,
    /// through a directory handle on systems that have such handles.
    pub(super) fn store_new(folder: Option<&File>, path: &Path, bytes: &[u8]) -> io::Result<()> {
        // When the program is interrupted, it never waits for longer than it takes to write this
        // many bytes.
        const AT_ONCE: usize = 16 << 20;

        if bytes.len() > AT_ONCE {
            return Self::store(path, bytes, false);
        }
        uninterrupted(|| {
            let mut file = match (folder, path.file_name()) {
                #[cfg(target_os = "linux")]
                (Some(folder), Some(name)) => nameless::create_new_at(folder, Path::new(name))?,
                _ => File::create_new(path)?,
            };
            file.write_all(bytes).inspect_err(|_| drop(std::fs::remove_file(path)))
        })
    }

    /// Writes a file inside a directory that the user chose. A link with the file's name is not
    /// followed, because the user did not choose it; only a link named by `-o` itself is followed.
    pub(crate) fn store(path: &Path, bytes: &[u8], force: bool) -> io::Result<()> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut file = Self::create_in(folder.unwrap_or_else(|| Path::new(".")))?;
        file.write_all(bytes)?;
        file.keep(path, force)
    }

    fn temporary_in(folder: &Path) -> io::Result<Self> {
        uninterrupted(|| {
            let (file, path) = builder(0o666).tempfile_in(folder)?.into_parts();
            let listed = Listed::new(&path);
            Ok(Self::Temporary(file, path, listed))
        })
    }

    /// Names the complete file in the directory in which it was created. Without `force`, no other
    /// file is replaced; with it, the new file inherits the old one's permissions.
    pub(crate) fn keep(self, path: &Path, force: bool) -> io::Result<()> {
        if force
            && let Ok(old) = std::fs::symlink_metadata(path)
            && old.is_file()
        {
            self.file().set_permissions(old.permissions())?;
        }
        match self {
            #[cfg(target_os = "linux")]
            Self::Nameless(file, folder) => match nameless::link(&file, path) {
                Err(error) if force && error.kind() == io::ErrorKind::AlreadyExists => {
                    uninterrupted(|| {
                        let link = |name: &Path| nameless::link(&file, name);
                        let named = builder(0o666).make_in(folder, link)?;
                        Ok(named.into_temp_path().persist(path)?)
                    })
                }
                linked => linked,
            },
            Self::Temporary(file, name, _listed) => {
                // Some systems cannot rename open files.
                drop(file);
                let keep = || if force { name.persist(path) } else { name.persist_noclobber(path) };
                Ok(uninterrupted(keep)?)
            }
        }
    }

    /// Restricts reading to the owner, because the file holds secrets.
    #[cfg_attr(not(unix), expect(clippy::unused_self, reason = "other systems have other ways"))]
    pub(crate) fn hide(&self) -> io::Result<()> {
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            self.file().set_permissions(mode)?;
        }
        Ok(())
    }

    /// Syncs the file, so that its content survives a power failure.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file().sync_all()
    }

    fn file(&self) -> &File {
        match self {
            #[cfg(target_os = "linux")]
            Self::Nameless(file, _) => file,
            Self::Temporary(file, ..) => file,
        }
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}

impl Seek for WholeFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file().seek(to)
    }
}

/// The prefix of temporary file names.
const UNFINISHED_NAME: (&str, &str) = (".worldwire-", ".part");

#[cfg_attr(not(unix), expect(unused_variables, reason = "only Unix has modes"))]
fn builder(mode: u32) -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.prefix(UNFINISHED_NAME.0).suffix(UNFINISHED_NAME.1);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
    builder
}

/// Creates a temporary directory.
pub(super) fn unfinished_folder(parent: &Path) -> io::Result<PathBuf> {
    Ok(builder(0o777).tempdir_in(parent)?.keep())
}

/// The reason for skipping a file or directory with this name: a killed run left it unfinished.
pub(crate) fn unfinished(name: &OsStr, is_folder: bool) -> Option<&'static str> {
    let (start, end) = UNFINISHED_NAME;
    let rest = name.to_str()?.strip_prefix(start)?;
    rest.ends_with(end).then_some(match is_folder {
        true => "is a directory left by an interrupted run; skipped",
        false => "is an incomplete file left by an interrupted run; skipped",
    })
}

/// Unnamed files and files in open directories.
#[cfg(target_os = "linux")]
mod nameless {
    use std::fs::File;
    use std::io;
    use std::os::fd::{AsFd, AsRawFd};
    use std::path::Path;

    use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open, openat};

    /// Not every file system supports unnamed files.
    pub(super) fn create_in(folder: &Path) -> io::Result<File> {
        Ok(open(folder, flags(), Mode::from_raw_mode(0o666))?.into())
    }

    /// Like the function above, in an open directory.
    pub(super) fn create_at(folder: &File) -> io::Result<File> {
        Ok(openat(folder, ".", flags(), Mode::from_raw_mode(0o666))?.into())
    }

    pub(super) fn create_new_at(folder: &File, name: &Path) -> io::Result<File> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        Ok(openat(folder, name, flags, Mode::from_raw_mode(0o666))?.into())
    }

    fn flags() -> OFlags {
        OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC
    }

    /// Gives a file its name, unless it is taken.
    pub(super) fn link(file: &File, path: &Path) -> io::Result<()> {
        link_at(file, CWD, path)
    }

    /// Like the function above, in an open directory.
    pub(super) fn link_at(file: &File, folder: impl AsFd, name: &Path) -> io::Result<()> {
        match linkat(file, "", &folder, name, AtFlags::EMPTY_PATH) {
            // Before Linux 6.10, unprivileged users must link files this way.
            Err(rustix::io::Errno::NOENT) => {
                let file = format!("/proc/self/fd/{}", file.as_raw_fd());
                Ok(linkat(CWD, file, &folder, name, AtFlags::SYMLINK_FOLLOW)?)
            }
            linked => Ok(linked?),
        }
    }
}

/// The existing temporary files, to be deleted if the program is interrupted.
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A reader of this lock cannot be interrupted.
static CALM: RwLock<()> = RwLock::new(());

/// Runs a short action that no signal may interrupt: the program ends either before or after it.
/// Must not be nested.
pub(super) fn uninterrupted<R>(act: impl FnOnce() -> R) -> R {
    let _calm = CALM.read().unwrap_or_else(PoisonError::into_inner);
    act()
}

/// Waits until no uninterruptible action is running and prevents new ones.
pub(super) fn hold_still() -> RwLockWriteGuard<'static, ()> {
    CALM.write().unwrap_or_else(PoisonError::into_inner)
}

/// Deletes the temporary files.
pub(super) fn remove_unfinished() {
    for path in &*UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner) {
        let _ = std::fs::remove_file(path);
    }
}

/// A temporary file is in the list for as long as this value exists.
#[derive(Debug)]
pub(crate) struct Listed(PathBuf);

impl Listed {
    fn new(path: &Path) -> Self {
        UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned());
        Self(path.to_owned())
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{ErrorKind, Write};
    use std::path::{Path, PathBuf};

    use super::{UNFINISHED, WholeFile};

    #[test]
    fn a_file_gets_its_name_when_it_is_complete() {
        for create in [WholeFile::create_in, WholeFile::temporary_in] {
            let folder = tempfile::tempdir().expect("a directory");
            let names = || -> Vec<_> {
                let entries = fs::read_dir(folder.path()).expect("a directory");
                let mut names: Vec<_> =
                    entries.map(|entry| entry.expect("an entry").file_name()).collect();
                names.sort();
                names
            };
            let write = |path: &Path, text: &str, force| {
                let mut file = create(folder.path())?;
                file.write_all(text.as_bytes())?;
                assert_ne!(fs::read_to_string(path).unwrap_or_default(), text, "not yet");
                file.keep(path, force)
            };
            let [old, new] = ["old", "new"].map(|name| folder.path().join(name));
            fs::write(&old, "old").expect("written");
            write(&new, "new", false).expect("a new file");
            assert_eq!(fs::read_to_string(&new).expect("a text"), "new");
            let refused = write(&old, "newer", false).expect_err("there is one already");
            assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
            assert_eq!(fs::read_to_string(&old).expect("a text"), "old");
            write(&old, "newer", true).expect("forced");
            assert_eq!(fs::read_to_string(&old).expect("a text"), "newer");
            drop(create(folder.path()).expect("a file that nobody finishes"));
            assert_eq!(names(), ["new", "old"], "nothing else is left");
        }
    }

    #[test]
    fn errors_do_not_name_temporary_files() {
        let folder = tempfile::tempdir().expect("a directory");
        let missing = WholeFile::create_in(&folder.path().join("missing"));
        let error = missing.expect_err("the directory is missing").to_string();
        assert!(!error.contains(super::UNFINISHED_NAME.0), "{error}");
    }

    #[test]
    fn a_temporary_file_is_listed_while_it_exists() {
        let folder = tempfile::tempdir().expect("a directory");
        let listed = || -> Vec<PathBuf> {
            let list = UNFINISHED.lock().expect("a list");
            list.iter().filter(|path| path.starts_with(folder.path())).cloned().collect()
        };
        let file = WholeFile::temporary_in(folder.path()).expect("a file");
        let there = fs::read_dir(folder.path())
            .expect("a directory")
            .map(|entry| entry.map(|it| it.path()));
        assert_eq!(listed(), there.collect::<Result<Vec<_>, _>>().expect("entries"));
        file.keep(&folder.path().join("name"), false).expect("its name");
        assert!(listed().is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_followed() {
        use std::os::unix::fs::symlink;

        for create in [WholeFile::create_in, WholeFile::temporary_in] {
            let folder = tempfile::tempdir().expect("a directory");
            let [far, link] = ["far", "link"].map(|name| folder.path().join(name));
            symlink(&far, &link).expect("a link");
            let file = create(folder.path()).expect("a file");
            file.keep(&link, false).expect_err("a link has the name");
            let file = create(folder.path()).expect("a file");
            file.keep(&link, true).expect("the link's name");
            assert!(!far.exists() && link.symlink_metadata().expect("there").is_file());
        }
    }
}
