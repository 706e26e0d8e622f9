//! Inputs of a command: files, and all files in directories and archives.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use globset::GlobBuilder;
use worldwire_core::Limits;
use worldwire_core::path::{PathRules, SafePath};
use worldwire_ki::file::wad::{Archive, Entry};

use crate::command::ki::inside::{self, is_archive, is_archive_file};
use crate::command::ki::loader::Loader;
use crate::command::ki::wad::{check_total, explained, parse};
use crate::input::map::{self, Bytes};
use crate::input::{self, title};
use crate::output::{Failure, complain, shown};

/// A file to read, and the name of its result below the output directory.
pub(crate) struct Input<'a> {
    place: Place<'a>,
    pub(crate) name: PathBuf,
    /// Whether the file was found in a directory or an archive. If so, it is skipped unless it is
    /// an object.
    pub(crate) is_found: bool,
}

/// The location of an input.
enum Place<'a> {
    File(PathBuf),
    /// The input came from standard input.
    Held(&'a [u8]),
    Entry {
        path: &'a Path,
        archive: &'a Archive<'a>,
        entry: &'a Entry<'a>,
    },
}

impl Input<'_> {
    /// The input's name in messages and in output.
    pub(crate) fn subject(&self) -> String {
        match &self.place {
            Place::File(path) => path.display().to_string(),
            Place::Held(_) => title(Path::new("-")),
            Place::Entry { path, entry, .. } => format!("{}/{}", title(path), entry.name_lossy()),
        }
    }

    /// The input's name in the archive that contains it.
    pub(crate) fn entry_name(&self) -> Option<&str> {
        match &self.place {
            Place::Entry { entry, .. } if self.is_found => str::from_utf8(&entry.name).ok(),
            _ => None,
        }
    }

    /// Whether both inputs have the same name in the same archive.
    fn is_twin(&self, other: &Self) -> bool {
        match (&self.place, &other.place) {
            (Place::Entry { archive, .. }, Place::Entry { archive: others, .. }) => {
                self.is_found && std::ptr::eq(*archive, *others) && self.name == other.name
            }
            _ => false,
        }
    }

    /// The amount of work, as far as it is known without reading the file.
    pub(crate) fn size(&self) -> u64 {
        /// The assumed size of a file, small enough that a thread takes many at a time.
        const OF_A_FILE: u64 = 4 << 10;
        match &self.place {
            Place::File(_) => OF_A_FILE,
            Place::Held(bytes) => bytes.len() as u64,
            Place::Entry { entry, .. } => u64::from(entry.size),
        }
    }

    /// The input's bytes; `None` for a file in an archive that has not been downloaded yet.
    pub(crate) fn read<'b>(
        &'b self,
        loader: &'b mut Loader<'_>,
    ) -> Result<Option<Cow<'b, [u8]>>, String> {
        self.read_if(loader, |_| true)
    }

    /// Like `read`, but only if `is_wanted` accepts the first 4 KiB (fewer in shorter files);
    /// otherwise `None`. Rejected files do not take up memory.
    pub(crate) fn read_if<'b>(
        &'b self,
        loader: &'b mut Loader<'_>,
        is_wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Option<Cow<'b, [u8]>>, String> {
        match &self.place {
            Place::File(path) => {
                let read = input::read_if(path, &is_wanted, |size| loader.make_room(size));
                read.map(|bytes| bytes.map(Cow::Owned)).map_err(|failure| fault(path, failure))
            }
            Place::Held(bytes) => Ok(Some(Cow::Borrowed(*bytes)).filter(|bytes| is_wanted(bytes))),
            Place::Entry { archive, entry, .. } => {
                let read = loader.read_if(archive, entry, is_wanted).map_err(|error| {
                    // The caller prints the name.
                    let (name, fault) = (entry.name_lossy(), explained(error));
                    let bare = fault.strip_prefix(&*name).and_then(|it| it.strip_prefix(": "));
                    bare.map(str::to_owned).unwrap_or(fault)
                })?;
                Ok(read.map(Cow::Borrowed))
            }
        }
    }

    /// The bytes of a single required input.
    pub(crate) fn open<'b>(&'b self, loader: &'b mut Loader<'_>) -> Result<Cow<'b, [u8]>, Failure> {
        if let Place::File(path) = &self.place {
            return input::read(path).map(Cow::Owned);
        }
        let fault = match self.read(loader) {
            Ok(Some(bytes)) => return Ok(bytes),
            Ok(None) => "not downloaded yet".to_owned(),
            Err(fault) => fault,
        };
        complain(&self.subject(), &fault);
        Err(Failure::Input)
    }
}

/// The inputs named on the command line.
#[derive(Default)]
struct Sources {
    parts: Vec<Part>,
    /// The archives of the parts, each opened once.
    archives: Vec<(PathBuf, Bytes)>,
}

enum Part {
    /// Each file's path, its name, and whether it was found in a directory or by a pattern.
    Files(Vec<(PathBuf, PathBuf, bool)>),
    /// Standard input.
    Held(Bytes),
    /// All files of the archive with this index.
    Archive(usize),
    /// The file with this name in that archive.
    Entry(usize, String),
}

/// Calls `act` with all inputs that the paths name: files, all files in directories and archives,
/// single files in archives, and files that match patterns. Files that were found keep their path
/// relative to the named directory.
pub(crate) fn with<R>(
    paths: &[PathBuf],
    limits: &Limits,
    act: impl FnOnce(&[Input<'_>]) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let mut sources = Sources::default();
    for path in paths {
        sources.add(path)?;
    }
    if let ([path], [Part::Files(files)]) = (paths, &sources.parts[..])
        && let [(_, _, false)] = files[..]
    {
        // A missing input does not stop the others.
        path.metadata().map_err(|error| Failure::io(path, &error))?;
    }
    let mut archives = Vec::new();
    for (path, bytes) in &sources.archives {
        archives.push((path.as_path(), parse(path, bytes, limits)?));
    }
    let mut inputs = Vec::new();
    for part in &sources.parts {
        match part {
            Part::Files(files) => inputs.extend(files.iter().map(|(path, name, is_found)| Input {
                place: Place::File(path.clone()),
                name: name.clone(),
                is_found: *is_found,
            })),
            Part::Held(bytes) => inputs.push(Input {
                place: Place::Held(bytes),
                name: PathBuf::from("-"),
                is_found: false,
            }),
            Part::Archive(index) => {
                let Some((path, archive)) = archives.get(*index) else { continue };
                check_total(path, archive, archive.entries())?;
                inputs.extend(archive.entries().iter().map(|entry| Input {
                    place: Place::Entry { path, archive, entry },
                    name: PathBuf::from(&*entry.name_lossy()),
                    is_found: true,
                }));
            }
            Part::Entry(index, name) => {
                let Some((path, archive)) = archives.get(*index) else { continue };
                let entry = inside::entry(path, archive, name)?;
                let last = name.rsplit('/').next().unwrap_or_default();
                inputs.push(Input {
                    place: Place::Entry { path, archive, entry },
                    name: PathBuf::from(last),
                    is_found: false,
                });
            }
        }
    }
    act(&inputs)
}

impl Sources {
    fn add(&mut self, path: &Path) -> Result<(), Failure> {
        if path == Path::new("-") {
            return self.add_standard_input();
        }
        if path.is_dir() {
            let files = input::files(path, &complain)?.into_iter().map(|file| {
                let name = file.strip_prefix(path).unwrap_or(&file).to_owned();
                (file, name, true)
            });
            self.parts.push(Part::Files(files.collect()));
        } else if let Some((archive, name)) = inside::split(path) {
            let index = self.archive(&archive)?;
            self.parts.push(Part::Entry(index, name));
        } else if is_pattern(path) {
            let (fixed, mut files) = (fixed_part(path), Vec::new());
            for found in matching(path)? {
                if is_archive_file(&found) {
                    let index = self.archive(&found)?;
                    self.parts.push(Part::Archive(index));
                } else {
                    let name = found.strip_prefix(&fixed).unwrap_or(&found).to_owned();
                    files.push((found, name, true));
                }
            }
            self.parts.push(Part::Files(files));
        } else if is_archive_file(path) {
            let index = self.archive(path)?;
            self.parts.push(Part::Archive(index));
        } else {
            let name = path.file_name().map_or_else(|| path.to_owned(), PathBuf::from);
            self.parts.push(Part::Files(vec![(path.to_owned(), name, false)]));
        }
        Ok(())
    }

    fn add_standard_input(&mut self) -> Result<(), Failure> {
        let path = Path::new("-");
        let bytes = map::open(path)?;
        if is_archive(&bytes) {
            self.archives.push((path.to_owned(), bytes));
            self.parts.push(Part::Archive(self.archives.len() - 1));
            return Ok(());
        }
        self.parts.push(Part::Held(bytes));
        Ok(())
    }

    /// The index of the archive at this path.
    fn archive(&mut self, path: &Path) -> Result<usize, Failure> {
        if let Some(index) = self.archives.iter().position(|(known, _)| known == path) {
            return Ok(index);
        }
        self.archives.push((path.to_owned(), map::open(path)?));
        Ok(self.archives.len() - 1)
    }
}

pub(crate) fn is_pattern(path: &Path) -> bool {
    path.to_string_lossy().contains(['*', '?', '[', '{']) && !path.exists()
}

/// The files that a pattern matches. At least one must match.
pub(crate) fn matching(pattern: &Path) -> Result<Vec<PathBuf>, Failure> {
    let text = pattern.to_string_lossy();
    let glob = GlobBuilder::new(&text).literal_separator(true).build();
    let glob = glob.map_err(|error| Failure::Run(error.to_string()))?.compile_matcher();
    let mut files = input::files(&fixed_part(pattern), &complain)?;
    // A pattern such as `*.xml` matches files in the current directory.
    files.retain(|found| {
        glob.is_match(found.strip_prefix(".").unwrap_or(found)) || glob.is_match(found)
    });
    match files.is_empty() {
        true => Err(Failure::Run(format!("{text}: matches no file"))),
        false => Ok(files),
    }
}

/// The output path of an input: `None` if it has no result, or the reason why it cannot be written.
pub(crate) type Target = Result<Option<PathBuf>, &'static str>;

/// A separate output path for each input. If several inputs map to the same path, `is_wanted`
/// states which of them have a result at all. Of several files with the same name in one archive,
/// the first is assigned the path.
pub(crate) fn targets(
    inputs: &[Input<'_>],
    folder: &Path,
    name: impl Fn(&Path) -> PathBuf,
    is_wanted: impl Fn(&Input<'_>) -> bool,
) -> Result<Vec<Target>, Failure> {
    let mut targets: Vec<Target> = inputs.iter().map(|it| Ok(Some(name(&it.name)))).collect();
    let mut taken: HashMap<PathBuf, usize> = HashMap::with_capacity(inputs.len());
    // File names in directories are valid on this system; names in archives may conflict.
    let mut spelled: HashMap<String, usize> = HashMap::new();
    for (index, input) in inputs.iter().enumerate() {
        let Some(Ok(Some(target))) = targets.get(index).cloned() else { continue };
        if input.entry_name().is_some() {
            let other = *spelled.entry(target.to_string_lossy().to_lowercase()).or_insert(index);
            let is_other = |it: &Target| matches!(it, Ok(Some(it)) if *it != target);
            if targets.get(other).is_some_and(is_other) && is_wanted(input) {
                if inputs.get(other).is_some_and(&is_wanted) {
                    let fault = "refused: differs only in case from an earlier file in the archive";
                    set(&mut targets, index, Err(fault));
                    continue;
                }
                spelled.insert(target.to_string_lossy().to_lowercase(), index);
            }
        }
        let Some(other) = taken.get(&target).copied() else {
            taken.insert(target, index);
            continue;
        };
        let rival = inputs.get(other).filter(|rival| is_wanted(rival));
        match (rival, is_wanted(input)) {
            (Some(rival), true) if rival.is_twin(input) => {
                let fault = "skipped: an earlier file in the archive has the same name";
                set(&mut targets, index, Err(fault));
            }
            (Some(rival), true) => {
                let (one, other) = (rival.subject(), input.subject());
                let target = shown(&folder.join(target));
                let way = "pass their directory instead, which keeps their paths, or convert them one at a time";
                return Err(Failure::Run(format!(
                    "{one} and {other} would both be written to {target}; {way}"
                )));
            }
            (Some(_), false) => set(&mut targets, index, Ok(None)),
            (None, _) => {
                set(&mut targets, other, Ok(None));
                taken.insert(target, index);
            }
        }
    }
    Ok(targets)
}

fn set(targets: &mut [Target], index: usize, to: Target) {
    if let Some(target) = targets.get_mut(index) {
        *target = to;
    }
}

/// The reason why the result of an archived file cannot have this name: the name could lead outside
/// the directory.
pub(crate) fn unsafe_name(input: &Input<'_>) -> Option<String> {
    match &input.place {
        Place::File(_) | Place::Held(_) => None,
        Place::Entry { entry, .. } => {
            let error = SafePath::parse(&entry.name, PathRules::default()).err()?;
            Some(format!("refused: its name {error}"))
        }
    }
}

/// The message about one of several inputs. The others are still processed.
fn fault(path: &Path, failure: Failure) -> String {
    match failure {
        Failure::Run(message) => {
            let subject = format!("{}: ", shown(path));
            message.strip_prefix(&subject).unwrap_or(&message).to_owned()
        }
        Failure::Input | Failure::Pipe | Failure::Interrupted(_) => "cannot be read".to_owned(),
    }
}

/// The directory before the first component that contains a pattern.
fn fixed_part(pattern: &Path) -> PathBuf {
    let is_plain =
        |part: &Component<'_>| !part.as_os_str().to_string_lossy().contains(['*', '?', '[', '{']);
    let fixed: PathBuf = pattern.components().take_while(is_plain).collect();
    if fixed.as_os_str().is_empty() { PathBuf::from(".") } else { fixed }
}
