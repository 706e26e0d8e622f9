//! Determines which files of a directory are new or changed compared with an archive. Creating an
//! archive compares with an empty one, so `create` and `update` treat new files alike.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use rayon::ThreadPool;
use worldwire_ki::file::wad::{Archive, Entry};
use worldwire_ki::object::MAGIC;

use super::contents::{self, Content};
use super::patterns::Patterns;
use crate::cli::{Common, KiStream, KiWadPacking};
use crate::command::ki::find::is_xml;
use crate::command::ki::loader::Loader;
use crate::command::ki::op::encoded_name;
use crate::command::ki::op::encoder::{Encoder, Found, NO_TYPES};
use crate::command::ki::op::stream::{Choices, hash};
use crate::command::memory::Memory;
use crate::command::work;
use crate::input::map;
use crate::output::{Failure, FilePlace, complain, counted, printable, shown};

/// The change to a file of the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Change {
    Added,
    Changed,
    Removed,
}

impl Change {
    /// The symbol for the change, as in `diff`.
    pub(super) fn sign(self) -> char {
        match self {
            Self::Added => '+',
            Self::Changed => '~',
            Self::Removed => '-',
        }
    }
}

/// The first bytes of objects written by `extract --decode text`.
const SHOWN: &[u8] = b"magic: 42494e64";

/// How a file of the directory relates to the archive.
enum Verdict {
    Same,
    /// A new file with this name.
    New(String, Content<'static>),
    /// The file is invalid. If the text is empty, the problem has already been reported.
    Failed(String),
}

/// A directory of new and changed files, and how to encode the objects in it.
pub(super) struct NewFiles<'f> {
    pub(super) folder: &'f Path,
    pub(super) types: &'f [PathBuf],
    pub(super) hints: &'f [PathBuf],
}

impl NewFiles<'_> {
    /// The files that are missing from the archive or have different content there. Objects in text
    /// form are converted back to binary.
    pub(super) fn read(
        &self,
        archive: &Archive<'_>,
        target: &FilePlace,
        packing: &KiWadPacking,
        common: &Common,
    ) -> Result<BTreeMap<String, Content<'static>>, Failure> {
        let files = contents::files(self.folder, target, packing.portable, common)?;
        let stream = KiStream { hints: self.hints.to_vec(), ..KiStream::default() };
        let choices = Choices::new(&stream)?;
        let classes = super::classes(self.types, common)?;
        let encoder = Encoder::new(classes.as_deref(), &choices, false, false);
        let texts = Patterns::new(&packing.text, files.keys().map(Cow::from))?;
        texts.choose(files.keys(), |name| Cow::from(&**name), "in the directory")?;
        let pool = work::pool(packing.threads)?;
        changed(archive, files, (&encoder, &texts), &pool, common)
    }
}

fn changed(
    archive: &Archive<'_>,
    files: BTreeMap<String, (PathBuf, u64)>,
    (encoder, texts): (&Encoder<'_>, &Patterns<'_>),
    pool: &ThreadPool,
    common: &Common,
) -> Result<BTreeMap<String, Content<'static>>, Failure> {
    let mut entries = HashMap::new();
    for entry in archive.entries() {
        entries.entry(&*entry.name).or_insert(entry);
    }
    let look = Look { archive, entries, encoder, texts };
    let files: Vec<(String, PathBuf, u64)> =
        files.into_iter().map(|(name, (path, size))| (name, path, size)).collect();
    let bar = work::progress(files.len(), common);
    let memory = Memory::new();
    let need = || Loader::new(&memory, Loader::OBJECT);
    let act = |loader: &mut Loader<'_>, (name, path, size): &(String, PathBuf, u64)| {
        bar.inc(1);
        look.at(name, path, *size, loader)
    };
    let verdicts = work::share(pool, &files, |(_, _, size)| *size, need, act);
    bar.finish_and_clear();
    let mut new = BTreeMap::new();
    let mut sources: HashMap<String, &Path> = HashMap::new();
    let mut failed = false;
    let mut untyped = 0;
    for ((_, path, _), verdict) in files.iter().zip(verdicts) {
        match verdict? {
            Verdict::Same => {}
            Verdict::Failed(text) => {
                failed = true;
                let is_untyped = text == NO_TYPES;
                untyped += usize::from(is_untyped);
                // One line for all objects, because the type lists are missing for all of them.
                if is_untyped && untyped == 1 {
                    complain(&path.to_string_lossy(), &format!("{text}; --text keeps it as text"));
                } else if !text.is_empty() && !is_untyped {
                    complain(&path.to_string_lossy(), &text);
                }
            }
            Verdict::New(name, content) => {
                if let Some(other) = sources.insert(name.clone(), path) {
                    let (one, other, name) = (shown(other), shown(path), printable(&name));
                    let text = format!("{one} and {other} would both become {name}; remove one");
                    return Err(Failure::Run(text));
                }
                new.insert(name, content);
            }
        }
    }
    if untyped > 1 {
        let more = counted(untyped - 1, "more object");
        complain("ki wad", &format!("{more} cannot be encoded either"));
    }
    // An archive without one of the user's changes is worse than no archive.
    if failed { Err(Failure::Input) } else { Ok(new) }
}

struct Look<'l, 'd> {
    archive: &'l Archive<'d>,
    entries: HashMap<&'l [u8], &'l Entry<'d>>,
    encoder: &'l Encoder<'l>,
    /// The files to treat as text, whatever they contain.
    texts: &'l Patterns<'l>,
}

impl Look<'_, '_> {
    fn at(
        &self,
        name: &str,
        path: &Path,
        size: u64,
        loader: &mut Loader<'_>,
    ) -> Result<Verdict, Failure> {
        let entry = self.entries.get(name.as_bytes()).copied();
        let may_be_text = |end: &str| name.len() > end.len() && name.ends_with(end);
        // JSON files of the archive itself are ordinary files.
        let may_be_object = match entry {
            _ if self.texts.is_match(name) => false,
            None => may_be_text(".json") || may_be_text(".xml"),
            Some(entry) => may_be_text(".xml") && !self.is_text(entry, loader),
        };
        if may_be_object {
            let text = map::open(path)?;
            return Ok(self.text(name, path, &text, loader));
        }
        if entry.is_none()
            && let Some(own) = name.strip_suffix(".txt")
            && self.entries.contains_key(own.as_bytes())
            && map::open(path)?.starts_with(SHOWN)
        {
            let text =
                format!("is {own} shown as text, which cannot be encoded; use --decode json");
            return Ok(Verdict::Failed(text));
        }
        if let Some(entry) = entry
            && self.is_same(entry, &map::open(path)?, loader)
        {
            return Ok(Verdict::Same);
        }
        Ok(Verdict::New(name.to_owned(), Content::File(path.to_owned(), size)))
    }

    /// Handles a file that may be an object in text form.
    fn text(&self, name: &str, path: &Path, text: &[u8], loader: &mut Loader<'_>) -> Verdict {
        let subject = path.to_string_lossy();
        let own = self.name(name);
        let entry = self.entries.get(own.as_bytes()).copied();
        let (name, bytes) = match self.encoder.found(&subject, &own, text) {
            Ok(Found::Unchanged(source))
                if entry.is_some_and(|entry| self.is_of(entry, &source, loader)) =>
            {
                return Verdict::Same;
            }
            // The archive does not contain this file.
            Ok(Found::Unchanged(_)) => match self.encoder.named(&subject, text) {
                Ok(bytes) => (own, Some(bytes)),
                Err(error) => return Verdict::Failed(error),
            },
            Ok(Found::Object(bytes)) => (own, Some(bytes)),
            // A file that `extract` named this way belongs to that object even after editing; XML
            // without its first line is still an object.
            Ok(Found::Other)
                if entry.is_some_and(|entry| self.is_meant(entry, name, text, loader)) =>
            {
                match self.encoder.named(&subject, text) {
                    Ok(bytes) => (own, Some(bytes)),
                    Err(error) => return Verdict::Failed(error),
                }
            }
            Ok(Found::Other) => (name.to_owned(), None),
            Err(error) => return Verdict::Failed(error),
        };
        let entry = self.entries.get(name.as_bytes()).copied();
        let content = bytes.as_deref().unwrap_or(text);
        if entry.is_some_and(|entry| self.is_same(entry, content, loader)) {
            return Verdict::Same;
        }
        let content = match bytes {
            Some(bytes) => Content::Made(bytes),
            None => Content::File(path.to_owned(), text.len() as u64),
        };
        Verdict::New(name, content)
    }

    /// The name in the archive of an object in text form.
    fn name(&self, name: &str) -> String {
        let plain = encoded_name(Path::new(name)).to_string_lossy().into_owned();
        // `extract` adds `.xml` to objects with different extensions.
        match plain.strip_suffix(".xml") {
            Some(stem)
                if !self.entries.contains_key(plain.as_bytes())
                    && self.entries.contains_key(stem.as_bytes()) =>
            {
                stem.to_owned()
            }
            _ => plain,
        }
    }

    /// Whether an entry is text, even if it is an object in text form. In that case, its
    /// replacement stays text, too.
    fn is_text(&self, entry: &Entry<'_>, loader: &mut Loader<'_>) -> bool {
        let is_text = |head: &[u8]| !head.is_empty() && !head.starts_with(MAGIC);
        matches!(loader.read_if(self.archive, entry, is_text), Ok(Some(_)))
    }

    /// Whether a file that does not look like an object is still meant to replace an entry's
    /// object.
    fn is_meant(
        &self,
        entry: &Entry<'_>,
        name: &str,
        text: &[u8],
        loader: &mut Loader<'_>,
    ) -> bool {
        let old = loader.read_if(self.archive, entry, |head| head.starts_with(MAGIC));
        matches!(old, Ok(Some(_))) && (name.ends_with(".json") || is_xml(text))
    }

    /// Whether an entry's content has this hash.
    fn is_of(&self, entry: &Entry<'_>, source: &str, loader: &mut Loader<'_>) -> bool {
        matches!(loader.read(self.archive, entry), Ok(Some(old)) if hash(&[old]) == source)
    }

    /// Whether an entry has this content: the same bytes, or the same object compressed by another
    /// program.
    fn is_same(&self, entry: &Entry<'_>, content: &[u8], loader: &mut Loader<'_>) -> bool {
        match loader.read(self.archive, entry) {
            Ok(Some(old)) => old == content || self.encoder.is_same(old, content),
            // Damaged or missing content is replaced.
            _ => false,
        }
    }
}
