//! New directories whose files all appear at the same time.
//!
//! Giving a file its name only when it is complete takes twice as long as simply writing it,
//! because the system keeps track of files without names. Files in a directory that this run
//! created are therefore written to another directory beside it, under their final names. At the
//! end, that directory replaces the empty one. Until then, the directory is empty, so its files are
//! either complete or absent, however the program ends.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, RwLock};

use super::whole::{unfinished_folder, uninterrupted};
use super::{Failure, reason, shown};

/// The directories that this run created, with the temporary locations of their contents.
#[derive(Debug, Default)]
pub(crate) struct Stages {
    made: RwLock<HashMap<PathBuf, PathBuf>>,
    taken: Taken,
}

/// How to treat a file whose name has been taken in the meantime. Identical files are never a
/// conflict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Leave the new file in its temporary location and report an error.
    #[default]
    Refuse,
    /// Keep the other file and delete the new one.
    Skip,
    /// Replace the other file.
    Replace,
}

/// The final location of a directory whose files have not been moved yet.
type Settling = (PathBuf, Taken);

/// The directories whose files have not been moved yet, in case the program is interrupted.
static STAGED: Mutex<BTreeMap<PathBuf, Settling>> = Mutex::new(BTreeMap::new());
/// The maximum number of directories with unmoved files that are named in messages.
const MAX_NAMED: usize = 10;

impl Stages {
    /// Starts without any directories.
    pub(crate) fn new(taken: Taken) -> Self {
        Self { made: RwLock::default(), taken }
    }

    /// Creates a directory whose parent exists. `false` if a link or a file has its name: a link
    /// may lead elsewhere.
    pub(crate) fn make(&self, folder: &Path) -> io::Result<bool> {
        let place = self.place(folder);
        match fs::create_dir(place.as_deref().unwrap_or(folder)) {
            Ok(()) if place.is_none() => self.begin(folder).map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Ok(fs::symlink_metadata(place.as_deref().unwrap_or(folder))?.is_dir())
            }
            made => made.map(|()| true),
        }
    }

    /// Creates a directory and its parents. A link to a directory is accepted.
    pub(crate) fn make_all(&self, folder: &Path) -> io::Result<()> {
        let mut missing: Vec<&Path> = folder
            .ancestors()
            .take_while(|folder| !folder.as_os_str().is_empty() && !self.at(folder).exists())
            .collect();
        while let Some(folder) = missing.pop() {
            self.make(folder)?;
        }
        match self.at(folder).is_dir() || folder.as_os_str().is_empty() {
            true => Ok(()),
            false => Err(io::ErrorKind::AlreadyExists.into()),
        }
    }

    /// The temporary location of a path.
    pub(crate) fn at(&self, path: &Path) -> PathBuf {
        self.place(path).unwrap_or_else(|| path.to_owned())
    }

    /// The temporary location of a path, if it is inside a directory that this run created.
    pub(super) fn place(&self, path: &Path) -> Option<PathBuf> {
        let made = self.made.read().unwrap_or_else(PoisonError::into_inner);
        if made.is_empty() {
            return None;
        }
        let (folder, stage) =
            path.ancestors().find_map(|folder| made.get(folder).map(|stage| (folder, stage)))?;
        Some(stage.join(path.strip_prefix(folder).ok()?))
    }

    /// Gives the contents of this empty directory a temporary location.
    fn begin(&self, folder: &Path) -> io::Result<()> {
        uninterrupted(|| {
            let stage = unfinished_folder(super::parent(folder))?;
            staged().insert(stage.clone(), (folder.to_owned(), self.taken));
            let mut made = self.made.write().unwrap_or_else(PoisonError::into_inner);
            made.insert(folder.to_owned(), stage);
            Ok(())
        })
    }

    /// Moves everything to its final location, unless something else is there.
    pub(crate) fn finish(&self) -> Result<(), Failure> {
        let mut made = self.made.write().unwrap_or_else(PoisonError::into_inner);
        let made: BTreeMap<PathBuf, PathBuf> = core::mem::take(&mut *made).into_iter().collect();
        let mut faults = Vec::new();
        for (folder, stage) in made {
            let settled = uninterrupted(|| {
                staged().remove(&stage);
                settle(&stage, &folder, self.taken)
            });
            if let Err(error) = settled {
                let (folder, stage) = (shown(&folder), shown(&stage));
                faults.push(format!("{folder}: {}; the rest is in {stage}", reason(&error)));
            }
        }
        if faults.len() > MAX_NAMED {
            let more = faults.split_off(MAX_NAMED).len();
            faults.push(format!("and {more} more directories"));
        }
        if faults.is_empty() { Ok(()) } else { Err(Failure::Run(faults.join("\n"))) }
    }
}

impl Drop for Stages {
    fn drop(&mut self) {
        // A run that did not reach `finish` has already reported an error.
        let _ = self.finish();
    }
}

fn staged() -> std::sync::MutexGuard<'static, BTreeMap<PathBuf, Settling>> {
    STAGED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Moves complete files to their final location before the program ends. Returns whether there were
/// any.
pub(super) fn settle_all() -> bool {
    let staged = staged();
    for (stage, (folder, taken)) in &*staged {
        let _ = settle(stage, folder, *taken);
    }
    !staged.is_empty()
}

/// Replaces an empty directory with another one. If the directory is no longer empty, moves the
/// contents instead.
fn settle(stage: &Path, folder: &Path, taken: Taken) -> io::Result<()> {
    if fs::rename(stage, folder).is_ok() {
        return Ok(());
    }
    let mut folders = vec![(stage.to_owned(), folder.to_owned())];
    let mut next = 0;
    let mut outcome = Ok(());
    while let Some((from, to)) = folders.get(next).cloned() {
        next += 1;
        match fs::create_dir(&to) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            let new = to.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                folders.push((entry.path(), new));
            } else if let Err(error) = give_name(&entry.path(), &new, taken) {
                outcome = Err(error);
            }
        }
    }
    // If it is not empty, it holds files that could not be moved.
    for (from, _) in folders.iter().rev() {
        let _ = fs::remove_dir(from);
    }
    outcome
}

/// Gives a file a second name, which may already be taken.
fn give_name(from: &Path, to: &Path, taken: Taken) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match taken {
            _ if fs::symlink_metadata(to)?.is_dir() => Err(error),
            Taken::Replace => fs::rename(from, to),
            Taken::Skip => fs::remove_file(from),
            Taken::Refuse if are_alike(from, to).unwrap_or(false) => fs::remove_file(from),
            Taken::Refuse => Err(error),
        },
        // Not every file system supports hard links.
        Err(_) if fs::symlink_metadata(to).is_err() => fs::rename(from, to),
        Err(error) => Err(error),
    }
}

/// Whether two regular files have the same bytes.
fn are_alike(one: &Path, other: &Path) -> io::Result<bool> {
    let lengths = [fs::symlink_metadata(one)?, fs::symlink_metadata(other)?]
        .map(|about| about.is_file().then_some(about.len()));
    if lengths[0].is_none() || lengths[0] != lengths[1] {
        return Ok(false);
    }
    let [mut one, mut other] = [one, other].map(|path| fs::File::open(path).map(BufReader::new));
    let (one, other) = (one.as_mut(), other.as_mut());
    let (Ok(one), Ok(other)) = (one, other) else { return Ok(false) };
    loop {
        let (left, right) = (one.fill_buf()?, other.fill_buf()?);
        let length = left.len().min(right.len());
        if left.get(..length) != right.get(..length) || left.is_empty() != right.is_empty() {
            return Ok(false);
        }
        if length == 0 {
            return Ok(true);
        }
        one.consume(length);
        other.consume(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let name = |entry: io::Result<fs::DirEntry>| {
            entry.expect("an entry").file_name().to_string_lossy().into_owned()
        };
        let mut names: Vec<String> = fs::read_dir(folder).expect("a directory").map(name).collect();
        names.sort();
        names
    }

    #[test]
    fn a_new_folder_is_empty_until_its_files_are_complete() {
        let home = tempfile::tempdir().expect("a directory");
        let folder = home.path().join("a").join("b");
        let stages = Stages::default();
        stages.make_all(&folder).expect("made");
        assert!(stages.make(&folder.join("c")).expect("made"));
        assert!(stages.make(&folder.join("c")).expect("there"));
        let file = folder.join("c").join("d");
        fs::write(stages.at(&file), "whole").expect("written");
        assert_eq!(names(&home.path().join("a")), [""; 0]);
        assert_eq!(names(home.path()).len(), 2);
        stages.finish().expect("in place");
        assert_eq!(fs::read_to_string(&file).expect("a text"), "whole");
        assert_eq!(names(home.path()), ["a"]);
    }

    #[test]
    fn files_of_others_are_kept() {
        let home = tempfile::tempdir().expect("a directory");
        let folder = home.path().join("a");
        let stages = Stages::default();
        assert!(stages.make(&folder).expect("made"));
        assert!(stages.make(&folder.join("b")).expect("made"));
        for name in ["same", "own", "b/own"] {
            fs::write(stages.at(&folder.join(name)), "ours").expect("written");
        }
        fs::create_dir(folder.join("b")).expect("made");
        for name in ["same", "b/other"] {
            fs::write(folder.join(name), "theirs").expect("written");
        }
        let Err(Failure::Run(error)) = stages.finish() else { panic!("one name is taken") };
        assert!(error.contains("file exists; the rest is in "), "{error}");
        assert_eq!(names(&folder), ["b", "own", "same"]);
        assert_eq!(names(&folder.join("b")), ["other", "own"]);
        assert_eq!(fs::read_to_string(folder.join("same")).expect("a text"), "theirs");
        // The other file with this name is not lost.
        assert_eq!(names(home.path()).len(), 2);
    }

    #[test]
    fn files_of_others_can_be_replaced_or_kept() {
        for (taken, wanted) in [(Taken::Skip, "theirs"), (Taken::Replace, "ours")] {
            let home = tempfile::tempdir().expect("a directory");
            let folder = home.path().join("a");
            let stages = Stages::new(taken);
            assert!(stages.make(&folder).expect("made"));
            fs::write(stages.at(&folder.join("same")), "ours").expect("written");
            fs::write(folder.join("same"), "theirs").expect("written");
            stages.finish().expect("in place");
            assert_eq!(fs::read_to_string(folder.join("same")).expect("a text"), wanted);
            assert_eq!(names(home.path()), ["a"]);
        }
    }

    #[test]
    fn identical_files_do_not_conflict() {
        let home = tempfile::tempdir().expect("a directory");
        let stages = Stages::default();
        let long = "x".repeat(100_000);
        for (name, theirs) in [("a", long.clone()), ("b", long.clone() + "y"), ("c", String::new())]
        {
            let folder = home.path().join(name);
            assert!(stages.make(&folder).expect("made"));
            fs::write(stages.at(&folder.join("file")), &long).expect("written");
            fs::write(folder.join("file"), theirs).expect("written");
        }
        let Err(Failure::Run(error)) = stages.finish() else { panic!("two differ") };
        let lines: Vec<&str> = error.lines().collect();
        assert_eq!(lines.len(), 2, "{error}");
        assert!(lines[0].contains("/b: file exists") && lines[1].contains("/c: "), "{error}");
        // The three directories and the files that could not be moved.
        assert_eq!(names(home.path()).len(), 5);
    }

    #[test]
    fn an_abandoned_run_leaves_complete_files() {
        let home = tempfile::tempdir().expect("a directory");
        let folder = home.path().join("a");
        let stages = Stages::default();
        stages.make_all(&folder).expect("made");
        fs::write(stages.at(&folder.join("b")), "whole").expect("written");
        drop(stages);
        assert_eq!(names(&folder), ["b"]);
        assert_eq!(names(home.path()), ["a"]);
        assert!(staged().iter().all(|(stage, _)| !stage.starts_with(home.path())));
    }

    #[cfg(unix)]
    #[test]
    fn links_and_files_are_in_the_way() {
        let home = tempfile::tempdir().expect("a directory");
        let stages = Stages::default();
        let [file, link] = ["file", "link"].map(|name| home.path().join(name));
        fs::write(&file, "").expect("written");
        std::os::unix::fs::symlink(home.path(), &link).expect("a link");
        assert!(!stages.make(&file).expect("there") && !stages.make(&link).expect("there"));
        assert!(stages.make_all(&file).is_err());
        stages.make_all(&link).expect("a folder is there");
        assert!(stages.make_all(&home.path().join("file").join("inside")).is_err());
    }
}
