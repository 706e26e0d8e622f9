//! What a command is to work on: files, all files of folders, and all files of archives.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use globset::GlobBuilder;
use worldwire_core::Limits;
use worldwire_ki::file::wad::{Archive, Entry, Inflater, safe_path};

use crate::command::ki::wad::{explained, is_archive, parse};
use crate::input::map::{self, Bytes};
use crate::input::{self, title};
use crate::output::{Failure, complain, shown};

/// A file to read, and what its result is called below the output folder.
pub(crate) struct Input<'a> {
    place: Place<'a>,
    pub(crate) name: PathBuf,
    /// It was found in a folder or an archive: what is no object is passed over.
    pub(crate) is_found: bool,
}

/// Where an input is.
enum Place<'a> {
    File(PathBuf),
    Entry { path: &'a Path, archive: &'a Archive<'a>, entry: &'a Entry<'a> },
}

impl Input<'_> {
    /// What it is called in messages, and in what is written of it.
    pub(crate) fn subject(&self) -> String {
        match &self.place {
            Place::File(path) => path.display().to_string(),
            Place::Entry { path, entry, .. } => format!("{}/{}", title(path), entry.name_lossy()),
        }
    }

    /// The path of the only input, if somebody named it and it is in no archive.
    pub(crate) fn named(&self) -> Option<&Path> {
        match &self.place {
            Place::File(path) if !self.is_found => Some(path),
            _ => None,
        }
    }

    /// How much there is to do, as far as that is known without a look.
    pub(crate) fn size(&self) -> u64 {
        /// So that a thread takes many of them at a time.
        const OF_A_FILE: u64 = 4 << 10;
        match &self.place {
            Place::File(_) => OF_A_FILE,
            Place::Entry { entry, .. } => u64::from(entry.size),
        }
    }

    /// Its bytes; `None` for a file of an archive that is not downloaded yet.
    pub(crate) fn read<'b>(
        &'b self,
        inflater: &'b mut Inflater,
    ) -> Result<Option<Cow<'b, [u8]>>, String> {
        match &self.place {
            Place::File(path) => match input::read(path) {
                Ok(bytes) => Ok(Some(Cow::Owned(bytes))),
                Err(failure) => Err(fault(path, failure)),
            },
            Place::Entry { archive, entry, .. } => {
                let read = archive.read(entry, inflater).map_err(explained)?;
                Ok(read.map(Cow::Borrowed))
            }
        }
    }
}

/// What was named: paths, and archives whose files are meant.
enum Source {
    Files(Vec<(PathBuf, PathBuf, bool)>),
    Archive(PathBuf, Bytes),
}

/// Does something with all inputs that paths stand for: files, all files of folders and archives,
/// and what patterns match. What was found keeps the folders that it is in below the one that was
/// named.
pub(crate) fn with<R>(
    paths: &[PathBuf],
    limits: &Limits,
    act: impl FnOnce(&[Input<'_>]) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let mut sources = Vec::new();
    for path in paths {
        named(path, &mut sources)?;
    }
    let mut archives = Vec::new();
    for source in &sources {
        if let Source::Archive(path, bytes) = source {
            archives.push((path.as_path(), parse(path, bytes, limits)?));
        }
    }
    for (path, archive) in &archives {
        archive.check_total(archive.entries()).map_err(|error| {
            complain(&title(path), &explained(error));
            Failure::Input
        })?;
    }
    let mut opened = archives.iter();
    let mut inputs = Vec::new();
    for source in &sources {
        match source {
            Source::Files(files) => {
                inputs.extend(files.iter().map(|(path, name, is_found)| Input {
                    place: Place::File(path.clone()),
                    name: name.clone(),
                    is_found: *is_found,
                }));
            }
            Source::Archive(..) => {
                if let Some((path, archive)) = opened.next() {
                    inputs.extend(archive.entries().iter().map(|entry| Input {
                        place: Place::Entry { path, archive, entry },
                        name: PathBuf::from(&*entry.name_lossy()),
                        is_found: true,
                    }));
                }
            }
        }
    }
    act(&inputs)
}

/// What one path stands for.
fn named(path: &Path, sources: &mut Vec<Source>) -> Result<(), Failure> {
    let text = path.to_string_lossy();
    if path.is_dir() {
        let files = input::files(path)?.into_iter().map(|file| {
            let name = file.strip_prefix(path).unwrap_or(&file).to_owned();
            (file, name, true)
        });
        sources.push(Source::Files(files.collect()));
    } else if text.contains(['*', '?', '[', '{']) && !path.exists() {
        let glob = GlobBuilder::new(&text).literal_separator(true).build();
        let glob = glob.map_err(|error| Failure::Run(error.to_string()))?.compile_matcher();
        let fixed = fixed_part(path);
        let mut files = Vec::new();
        let before = sources.len();
        for found in input::files(&fixed)? {
            // `*.xml` is in this folder.
            let plain = found.strip_prefix(".").unwrap_or(&found);
            if !glob.is_match(plain) && !glob.is_match(&found) {
                continue;
            }
            if is_archive_file(&found) {
                sources.push(Source::Archive(found.clone(), map::open(&found)?));
            } else {
                let name = found.strip_prefix(&fixed).unwrap_or(&found).to_owned();
                files.push((found, name, true));
            }
        }
        if files.is_empty() && sources.len() == before {
            return Err(Failure::Run(format!("{text}: matches no file")));
        }
        sources.push(Source::Files(files));
    } else if is_archive_file(path) {
        sources.push(Source::Archive(path.to_owned(), map::open(path)?));
    } else {
        let name = path.file_name().map_or_else(|| path.to_owned(), PathBuf::from);
        sources.push(Source::Files(vec![(path.to_owned(), name, false)]));
    }
    Ok(())
}

/// Whether a file is an archive, by what it begins with.
pub(crate) fn is_archive_file(path: &Path) -> bool {
    let mut head = Vec::new();
    path.is_file()
        && File::open(path).is_ok_and(|file| file.take(8).read_to_end(&mut head).is_ok())
        && is_archive(&head)
}

/// Where the results of the inputs go, each to a place of its own. Of those that would go to the
/// same, `is_wanted` says whether there is a result at all: `None` stands for those without one.
pub(crate) fn targets(
    inputs: &[Input<'_>],
    folder: &Path,
    name: impl Fn(&Path) -> PathBuf,
    is_wanted: impl Fn(&Input<'_>) -> bool,
) -> Result<Vec<Option<PathBuf>>, Failure> {
    let mut targets: Vec<_> = inputs.iter().map(|it| Some(name(&it.name))).collect();
    let mut taken: HashMap<PathBuf, usize> = HashMap::with_capacity(inputs.len());
    for (index, input) in inputs.iter().enumerate() {
        let Some(target) = targets.get(index).cloned().flatten() else { continue };
        let Some(other) = taken.get(&target).copied() else {
            taken.insert(target, index);
            continue;
        };
        let rival = inputs.get(other).filter(|rival| is_wanted(rival));
        match (rival, is_wanted(input)) {
            (Some(rival), true) => {
                let (one, other) = (rival.subject(), input.subject());
                let target = shown(&folder.join(target));
                let way = "give their directory instead, which keeps paths apart, or convert them one at a time";
                return Err(Failure::Run(format!(
                    "{one} and {other} would both be written to {target}; {way}"
                )));
            }
            (Some(_), false) => clear(&mut targets, index),
            (None, _) => {
                clear(&mut targets, other);
                taken.insert(target, index);
            }
        }
    }
    Ok(targets)
}

fn clear(targets: &mut [Option<PathBuf>], index: usize) {
    if let Some(target) = targets.get_mut(index) {
        *target = None;
    }
}

/// Why a result does not go to the place of this name, if it came out of an archive: it could lead
/// elsewhere.
pub(crate) fn unsafe_name(input: &Input<'_>) -> Option<String> {
    match &input.place {
        Place::File(_) => None,
        Place::Entry { entry, .. } => {
            let error = safe_path(&entry.name).err()?;
            Some(format!("refused: wanted {}, found {}", error.wanted(), error.found()))
        }
    }
}

/// What is wrong with one of several inputs, which ends no more than that one.
fn fault(path: &Path, failure: Failure) -> String {
    match failure {
        Failure::Run(message) => {
            let subject = format!("{}: ", shown(path));
            message.strip_prefix(&subject).unwrap_or(&message).to_owned()
        }
        Failure::Input | Failure::Pipe => "cannot be read".to_owned(),
    }
}

/// The folder in front of the first part with a pattern in it.
fn fixed_part(pattern: &Path) -> PathBuf {
    let is_plain =
        |part: &Component<'_>| !part.as_os_str().to_string_lossy().contains(['*', '?', '[', '{']);
    let fixed: PathBuf = pattern.components().take_while(is_plain).collect();
    if fixed.as_os_str().is_empty() { PathBuf::from(".") } else { fixed }
}
