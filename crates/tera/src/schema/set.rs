//! The definitions of a directory.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use worldwire_core::Source;

use super::definition::{Built, FileText, build};
pub use super::definition::{Definition, ParseOptions};
use super::dialect::{Dialect, Marks};
use super::problem::{Problem, ProblemKind};
use super::version::{FileName, NotADefinition, Patch, Platform};

/// Definitions that exist only as programs, which are never run, and the layouts they stand for.
/// This program writes each item followed by the crystals of its slot.
const PROGRAMS: [(&str, &str); 1] = [(
    "C_CHANGE_EQUIP_PRESET.1.js",
    "uint64 gameId\narray items\n- uint32 slot\n- uint64 dbid\n- uint32 passivitySet\n\
     array crystals\n- uint32 slot\n- uint32 id\n",
)];

/// Maximum number of lines and fields in all definitions of a set, with includes, rows and elements
/// expanded. The largest known set has 7,887 lines; without a limit, a few short files could
/// exhaust the memory.
const MAX_OF_SET: usize = 1 << 20;

/// A file of a set.
#[derive(Clone, Debug)]
struct Entry {
    name: Result<FileName, NotADefinition>,
    text: FileText,
    built: Built,
    dialect: Dialect,
}

/// The definitions of a directory.
///
/// A faulty file does not affect the others: it is left out, and [`Set::problems`] says why.
#[derive(Clone, Debug, Default)]
pub struct Set {
    options: ParseOptions,
    entries: BTreeMap<Box<str>, Entry>,
    /// For each message name: the file in force for each version.
    names: BTreeMap<Box<str>, BTreeMap<u32, Box<str>>>,
    /// Problems with file names.
    remarks: Vec<Problem>,
}

/// The work done by an update.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Update {
    /// Files parsed for the first time or again.
    pub read: usize,
    /// Files compiled: those parsed, those that include them, and all of them if the set's dialect
    /// changed.
    pub compiled: usize,
    /// Files that no longer exist.
    pub removed: usize,
}

impl Set {
    /// Reads the files of a directory, given as names without the directory, and texts. Files that
    /// are not definitions are ignored.
    #[must_use]
    pub fn load<N: AsRef<str>, T: AsRef<str>>(
        files: impl IntoIterator<Item = (N, T)>,
        options: ParseOptions,
    ) -> Self {
        let mut set = Self { options, ..Self::default() };
        set.update(files);
        set
    }

    /// Reads a directory again; only files that changed, and those that depend on them, are parsed
    /// and compiled.
    pub fn update<N: AsRef<str>, T: AsRef<str>>(
        &mut self,
        files: impl IntoIterator<Item = (N, T)>,
    ) -> Update {
        let mut update = Update::default();
        let mut seen: HashSet<Box<str>> = HashSet::new();
        let mut changed: HashSet<Box<str>> = HashSet::new();
        let mut remarks = Vec::new();
        for (name, text) in files {
            let (name, text) = (name.as_ref(), text.as_ref());
            let mut parsed = FileName::parse(name);
            let (mut text, mut pairs) = (text, false);
            if parsed == Err(NotADefinition::Program)
                && let Some((_, layout)) = PROGRAMS.iter().find(|(program, _)| *program == name)
                && let Some(stem) = name.strip_suffix(".js")
            {
                parsed = FileName::parse(&format!("{stem}.def"));
                (text, pairs) = (layout, true);
            }
            if let Err(why) = parsed {
                remarks.extend(remark(name, why));
                continue;
            }
            seen.insert(name.into());
            if self.entries.get(name).is_some_and(|entry| *entry.text.text == *text) {
                continue;
            }
            update.read += 1;
            changed.insert(name.into());
            let mut text = FileText::read(name, text);
            text.pairs = pairs;
            let entry =
                Entry { name: parsed, text, built: Built::default(), dialect: Dialect::Toolbox };
            self.entries.insert(name.into(), entry);
        }
        let before = self.entries.len();
        self.entries.retain(|name, _| {
            let kept = seen.contains(name);
            if !kept {
                changed.insert(name.clone());
            }
            kept
        });
        update.removed = before - self.entries.len();
        self.remarks = remarks;
        self.compile(&changed, &mut update);
        self.arrange();
        update
    }

    /// Compiles the files that changed, or whose includes or dialect changed.
    fn compile(&mut self, changed: &HashSet<Box<str>>, update: &mut Update) {
        let marks =
            self.entries.values().fold(Marks::default(), |marks, entry| marks.or(entry.text.marks));
        let of_set = self.options.dialect.or_else(|| marks.of_set());
        let dialect_of = |entry: &Entry| of_set.unwrap_or_else(|| entry.text.marks.of_file());
        // A missing include may have appeared, and a removed file may have made room.
        let is_touched = |name: &str, entry: &Entry| {
            changed.contains(name)
                || entry.built.no_room
                || entry.built.includes.iter().any(|include| changed.contains(include))
                || entry.text.includes().any(|include| changed.contains(include))
                || dialect_of(entry) != entry.dialect
        };
        let (touched, kept): (Vec<_>, Vec<_>) =
            self.entries.iter().partition(|(name, entry)| is_touched(name, entry));
        let kept = kept.iter().map(|(_, entry)| entry.built.size).sum();
        let mut room = MAX_OF_SET.saturating_sub(kept);
        let mut fresh = HashMap::new();
        for (name, entry) in touched {
            let Ok(file) = &entry.name else { continue };
            let find = |wanted: &str| self.entries.get(wanted).map(|entry| &entry.text);
            let dialect = dialect_of(entry);
            // Once the limit is reached, nothing more is built: building takes time too.
            let built = (room > 0).then(|| build(file, &entry.text, dialect, &self.options, &find));
            let left = built.as_ref().and_then(|built| room.checked_sub(built.size));
            room = left.unwrap_or_default();
            let built = built.filter(|_| left.is_some());
            let built = built.unwrap_or_else(|| Built::without_room(name, MAX_OF_SET));
            fresh.insert(name.clone(), (built, dialect));
        }
        update.compiled = fresh.len();
        for (name, (built, dialect)) in fresh {
            if let Some(entry) = self.entries.get_mut(&name) {
                entry.built = built;
                entry.dialect = dialect;
            }
        }
    }

    /// Works out which file is in force for each name and version.
    fn arrange(&mut self) {
        self.names.clear();
        for (key, entry) in &self.entries {
            let Ok(file) = &entry.name else { continue };
            if let Some(Platform::Other(platform)) = &file.platform {
                let message = format!("unknown platform {platform}");
                let diagnostic = Source::new(key, "").warning(0..0, message);
                self.remarks.push(Problem { kind: ProblemKind::UnknownPlatform, diagnostic });
            }
            if file.platform.as_ref().is_some_and(|platform| *platform != self.options.platform)
                || entry.built.definition.is_none()
            {
                continue;
            }
            let versions = self.names.entry(file.name.clone()).or_default();
            let Some(other) = versions.get(&file.version) else {
                versions.insert(file.version, key.clone());
                continue;
            };
            let other_platform = self
                .entries
                .get(other)
                .and_then(|other| other.name.as_ref().ok()?.platform.as_ref());
            match (&file.platform, other_platform) {
                (Some(_), None) => {
                    versions.insert(file.version, key.clone());
                }
                (None, Some(_)) => {}
                _ => {
                    let message = format!("{other} has the same name and version");
                    let diagnostic = Source::new(key, "").warning(0..0, message);
                    self.remarks.push(Problem { kind: ProblemKind::DuplicateFile, diagnostic });
                }
            }
        }
    }

    /// The definition with a name and version.
    #[must_use]
    pub fn get(&self, name: &str, version: u32) -> Option<&Definition> {
        self.by_file(self.names.get(name)?.get(&version)?)
    }

    /// The definition with the highest version.
    #[must_use]
    pub fn newest(&self, name: &str) -> Option<&Definition> {
        self.versions(name).next_back()
    }

    /// All versions of a message's definition, in ascending order.
    pub fn versions(&self, name: &str) -> impl DoubleEndedIterator<Item = &Definition> {
        let files = self.names.get(name).into_iter().flat_map(BTreeMap::values);
        files.filter_map(|file| self.by_file(file))
    }

    /// All definitions in force, by name and version.
    pub fn definitions(&self) -> impl Iterator<Item = &Definition> {
        self.names.keys().flat_map(|name| self.versions(name))
    }

    /// The names of all messages with a definition.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(|name| &**name)
    }

    /// The definition read from a file.
    #[must_use]
    pub fn by_file(&self, file: &str) -> Option<&Definition> {
        self.entries.get(file)?.built.definition.as_ref()
    }
    /// All problems: with file names first, then file by file.
    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        let built = self.entries.values().flat_map(|entry| &entry.built.problems);
        self.remarks.iter().chain(built)
    }

    /// The number of definition files, including broken ones.
    #[must_use]
    pub fn files(&self) -> usize {
        self.entries.len()
    }

    /// The dialect of all files, if they share one.
    #[must_use]
    pub fn dialect(&self) -> Option<Dialect> {
        let mut dialects = self.entries.values().map(|entry| entry.dialect);
        let first = dialects.next()?;
        dialects.all(|dialect| dialect == first).then_some(first)
    }

    /// The options it was loaded with.
    #[must_use]
    pub fn options(&self) -> &ParseOptions {
        &self.options
    }

    /// The set compiled again from the same texts with different options, such as another patch.
    #[must_use]
    pub fn with(&self, options: ParseOptions) -> Self {
        self.compiled(options, &self.entries.keys().cloned().collect())
    }

    /// The set with some of its files recompiled.
    fn compiled(&self, options: ParseOptions, files: &HashSet<Box<str>>) -> Self {
        let mut set = Self { options, ..self.clone() };
        set.remarks.retain(|problem| {
            matches!(problem.kind, ProblemKind::BadFileName | ProblemKind::CodeDefinition)
        });
        set.compile(files, &mut Update::default());
        set.arrange();
        set
    }

    /// The set as of a patch. Only definitions whose layout may depend on it are recompiled.
    #[must_use]
    pub fn at(&self, patch: Patch) -> Cow<'_, Self> {
        let depends = |entry: &Entry| match &entry.built.definition {
            Some(definition) => definition.depends_on_patch(),
            // The file's errors may occur at some patches only.
            None => entry.name.is_ok() && !entry.built.no_room,
        };
        let depending = self.entries.iter().filter(|(_, entry)| depends(entry));
        let depending: HashSet<Box<str>> = depending.map(|(name, _)| name.clone()).collect();
        if depending.is_empty() || self.options.patch == Some(patch) {
            return Cow::Borrowed(self);
        }
        let options = ParseOptions { patch: Some(patch), ..self.options.clone() };
        Cow::Owned(self.compiled(options, &depending))
    }
}

/// The problem to report for a file that is not read, if any.
fn remark(name: &str, why: NotADefinition) -> Option<Problem> {
    let source = Source::new(name, "");
    match why {
        NotADefinition::Other => None,
        NotADefinition::Program => {
            let message = "definitions written as programs cannot be read, except \
                           C_CHANGE_EQUIP_PRESET.1.js";
            let diagnostic = source.warning(0..0, message);
            Some(Problem { kind: ProblemKind::CodeDefinition, diagnostic })
        }
        NotADefinition::BadName => {
            let diagnostic = source.error(0..0, "not a valid definition file name");
            let diagnostic = diagnostic.help("name it NAME.VERSION.def");
            Some(Problem { kind: ProblemKind::BadFileName, diagnostic })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Head, HeaderForm, NoteKind, Tape, Value};

    fn kinds(set: &Set) -> Vec<&'static str> {
        set.problems().map(|problem| problem.kind.name()).collect()
    }

    /// A row declared in one short line can have any number of fields, in every file.
    #[test]
    fn a_set_has_a_limit_on_fields() {
        let file = |number: usize| (format!("S_A.{number}.def"), "byte[60000] a\n");
        let mut set = Set::load((10..30).map(file), ParseOptions::default());
        let refused = kinds(&set);
        assert_eq!((set.definitions().count(), refused.len()), (17, 3));
        assert!(refused.iter().all(|kind| *kind == "too_large"), "{refused:?}");
        let problem = set.problems().next().unwrap().to_string();
        assert!(
            problem.starts_with("S_A.27.def:1:1: error: the definitions together"),
            "{problem}"
        );
        // Removing files makes room for others.
        set.update((20..30).map(file));
        assert_eq!((set.definitions().count(), set.problems().count()), (10, 0));
    }

    /// Finding out that a definition has too many fields takes as long as building them.
    #[test]
    fn rejected_definitions_count_against_the_limit() {
        let file = |number: usize| (format!("S_A.{number}.def"), "array[60000] a\n- byte b\n");
        let set = Set::load((10..40).map(file), ParseOptions::default());
        let shown: Vec<String> = set.problems().map(ToString::to_string).collect();
        let without =
            shown.iter().filter(|it| it.contains("error: the definitions together")).count();
        assert_eq!((shown.len(), without), (30, 15), "{shown:?}");
        assert_eq!(set.definitions().count(), 0);
    }

    #[test]
    fn a_set_at_a_patch_shares_definitions_that_do_not_depend_on_it() {
        let files = [("S_A.1.def", "int32 a\nint32 b ^90\n"), ("S_B.1.def", "int32 a\n")];
        let set = Set::load(files, ParseOptions::default());
        let early = set.at(Patch::major(89));
        let plan = |set: &Set, name: &str| core::ptr::from_ref(set.newest(name).unwrap().plan());
        assert_eq!(early.newest("S_A").unwrap().plan().min_length(), 4);
        assert_eq!(plan(&set, "S_B"), plan(&early, "S_B"));
        assert_eq!(early.problems().count(), 0);
        // A file whose name is not a definition's is never compiled.
        let files = [("S_B.1.def", "int32 a\n"), ("odd.def", "int32 a\n")];
        let other = Set::load(files, ParseOptions::default());
        assert!(matches!(other.at(Patch::major(89)), Cow::Borrowed(_)));
    }

    #[test]
    fn includes_are_found_and_bounded() {
        let set = Set::load(
            [
                ("S_A.1.def", "int32 a\n"),
                ("S_A.2.def", "@include S_A.1.def\nint32 b\n"),
                ("S_B.1.def", "@include S_B.2.def\n"),
                ("S_B.2.def", "@include S_B.1.def\n"),
                ("S_C.1.def", "@include S_D.1.def\n"),
                (
                    "S_E.1.def",
                    "@include S_A.1.def\n@include S_A.1.def\n@include S_A.2.def\n\
                     @include S_A.1.def\n@include S_A.1.def\n",
                ),
            ],
            ParseOptions::default(),
        );
        assert_eq!(set.get("S_A", 2).unwrap().lines().len(), 2);
        let wanted = ["bad_include", "bad_include", "bad_include", "bad_include"];
        assert_eq!(kinds(&set), wanted, "{:?}", set.problems().collect::<Vec<_>>());
        assert_eq!(set.names().collect::<Vec<_>>(), ["S_A"]);
    }

    #[test]
    fn only_changed_files_are_read_again() {
        let mut files = vec![
            ("S_A.1.def", "int32 a\n"),
            ("S_A.2.def", "@include S_A.1.def\nint32 b\n"),
            ("S_B.1.def", "int32 a ^86\n"),
            ("README.md", "hello"),
        ];
        let mut set = Set::load(files.clone(), ParseOptions::default());
        assert_eq!(set.files(), 3);
        assert_eq!(set.update(files.clone()), Update::default());
        files[0].1 = "int32 c\nint32 d\n";
        let update = set.update(files.clone());
        assert_eq!(update, Update { read: 1, compiled: 2, removed: 0 });
        assert_eq!(set.get("S_A", 2).unwrap().lines().len(), 3);
        files.remove(0);
        let update = set.update(files);
        assert_eq!(update, Update { read: 0, compiled: 1, removed: 1 });
        assert!(set.newest("S_A").is_none());
        assert_eq!(kinds(&set), ["bad_include"]);
    }

    #[test]
    fn platform_files_replace_general_ones() {
        let files = [
            ("S_A.1.def", "int32 a\n"),
            ("S_A.1.ps4.def", "int32 a\nint32 b\n"),
            ("S_A.01.def", "int32 a\n"),
            ("S_B.1.wii.def", ""),
            ("C_H.3.js", ""),
            ("S_G.def", ""),
        ];
        let set =
            Set::load(files, ParseOptions { platform: Platform::Ps4, ..ParseOptions::default() });
        assert_eq!(set.get("S_A", 1).unwrap().lines().len(), 2);
        let set = Set::load(files, ParseOptions::default());
        assert_eq!(set.get("S_A", 1).unwrap().lines().len(), 1);
        let wanted = ["code_definition", "bad_file_name", "duplicate_file", "unknown_platform"];
        assert_eq!(kinds(&set), wanted);
    }

    /// The program's text is ignored: its name identifies it.
    #[test]
    fn a_known_program_is_read_as_its_layout() {
        let files = [("C_CHANGE_EQUIP_PRESET.1.js", "module.exports = {}"), ("S_A.1.js", "")];
        let set = Set::load(files, ParseOptions::default());
        let plan = set.get("C_CHANGE_EQUIP_PRESET", 1).unwrap().plan();
        assert_eq!(plan.min_length(), 16);
        let fields: Vec<&str> = plan.fields().iter().map(|field| field.name()).collect();
        assert_eq!(fields, ["gameId", "items", "crystals"]);
        assert_eq!(kinds(&set), ["code_definition"]);
    }

    /// As the program writes them: each item, followed by the crystals for its slot.
    #[test]
    fn crystals_follow_their_items() {
        let set = Set::load([("C_CHANGE_EQUIP_PRESET.1.js", "")], ParseOptions::default());
        let plan = set.get("C_CHANGE_EQUIP_PRESET", 1).unwrap().plan();
        let record = |numbers: &[u64]| {
            Value::Record(numbers.iter().map(|number| Value::Unsigned(*number)).collect())
        };
        let items = [record(&[1, 0x0b, 5]), record(&[3, 0x0c, 6]), record(&[4, 0x0d, 7])];
        let fields = |crystals: &[[u64; 2]]| {
            let crystals = crystals.iter().map(|crystal| record(crystal)).collect();
            let game_id = Value::Unsigned(9);
            Value::Record(vec![game_id, Value::List(items.to_vec()), Value::List(crystals)])
        };
        let value = fields(&[[1, 0x21], [1, 0x22], [4, 0x23], [8, 0x24]]);
        #[rustfmt::skip]
        let wanted = [
            128, 0, 0x34, 0x12, 3, 0, 20, 0, 4, 0, 40, 0, 9, 0, 0, 0, 0, 0, 0, 0,
            20, 0, 64, 0, 1, 0, 0, 0, 0x0b, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0,
            40, 0, 52, 0, 1, 0, 0, 0, 0x21, 0, 0, 0,
            52, 0, 104, 0, 1, 0, 0, 0, 0x22, 0, 0, 0,
            64, 0, 84, 0, 3, 0, 0, 0, 0x0c, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0,
            84, 0, 0, 0, 4, 0, 0, 0, 0x0d, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0,
            104, 0, 116, 0, 4, 0, 0, 0, 0x23, 0, 0, 0,
            116, 0, 0, 0, 8, 0, 0, 0, 0x24, 0, 0, 0,
        ];
        let mut bytes = Vec::new();
        plan.encode(Head::plain(0x1234), &value, &mut bytes).unwrap();
        assert_eq!(bytes, wanted);
        let message = plan.read(&bytes, HeaderForm::Plain).unwrap();
        assert_eq!((message.fields(), message.notes().is_empty()), (&value, true));
        assert!(plan.check(&bytes, HeaderForm::Plain).unwrap().is_empty());

        // Crystals in another order are still linked in byte order.
        let other = fields(&[[4, 0x23], [1, 0x21], [8, 0x24], [1, 0x22]]);
        let mut again = Vec::new();
        plan.encode(Head::plain(0x1234), &other, &mut again).unwrap();
        assert_eq!(again, wanted);

        let mut tape = Tape::new();
        plan.read_into(&bytes, HeaderForm::Plain, &mut tape).unwrap();
        tape.set(plan, "gameId", &Value::Unsigned(9)).unwrap();
        let mut out = Vec::new();
        tape.encode(plan, &mut out).unwrap();
        assert_eq!(out, wanted);

        // All items, then all crystals: also read, with a note.
        let plain = "uint64 gameId\narray items\n- uint32 slot\n- uint64 dbid\n\
                     - uint32 passivitySet\narray crystals\n- uint32 slot\n- uint32 id\n";
        let set = Set::load([("C_PLAIN.1.def", plain)], ParseOptions::default());
        let mut apart = Vec::new();
        let sequential = set.newest("C_PLAIN").unwrap().plan();
        sequential.encode(Head::plain(0x1234), &value, &mut apart).unwrap();
        let message = plan.read(&apart, HeaderForm::Plain).unwrap();
        assert_eq!(message.fields(), &value);
        assert!(message.notes().has(NoteKind::OffsetMismatch));
        let mut kept = Vec::new();
        message.encode(plan, &mut kept).unwrap();
        assert_eq!(kept, apart);
    }

    #[test]
    fn mixed_sets_are_read_file_by_file() {
        let set = Set::load(
            [
                ("S_A.1.def", "count l\nint32 x\noffset l\narray l\n- byte b\n"),
                ("S_B.1.def", "ref s\nint32 x\nstring s\n"),
            ],
            ParseOptions::default(),
        );
        assert_eq!(kinds(&set), [""; 0]);
        assert_eq!(set.dialect(), None);
        assert_eq!(set.newest("S_A").unwrap().dialect(), Dialect::Legacy);
    }

    #[test]
    fn fields_exist_only_in_their_patches() {
        let options = ParseOptions { patch: Some(Patch::major(85)), ..ParseOptions::default() };
        let set = Set::load([("S_A.1.def", "int32 a ^86\nint64 b ^0-86.02\n")], options);
        assert_eq!(set.newest("S_A").unwrap().plan().min_length(), 8);
        assert_eq!(set.with(ParseOptions::default()).newest("S_A").unwrap().plan().min_length(), 4);
    }
}
