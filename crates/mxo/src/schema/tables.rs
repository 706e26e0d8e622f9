//! Tables as collected, before compilation.

use std::collections::{BTreeMap, HashMap};

use super::class::{Class, ClassId, File};
use super::objects::Objects;

/// The maximum number of classes. The game has 1,319.
pub const MAX_CLASSES: usize = 65_534;

/// What is known about a game object type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Goobj {
    /// The name of its class.
    pub class: Option<Box<str>>,
    /// Its own name.
    pub name: Option<Box<str>>,
    /// The source of this information, if the table states it.
    pub source: Option<Box<str>>,
    /// The file that states its class.
    pub(super) file: File,
}

/// Classes and goobjs, collected from the built-in tables and from files.
///
/// See [`schema`](super) for the file formats. Tables are equal if they print the same text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    classes: Vec<Class>,
    by_name: HashMap<Box<str>, usize>,
    pub(super) goobjs: BTreeMap<u16, Goobj>,
    /// The file being read.
    pub(super) file: File,
}

impl Tables {
    /// Empty tables.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a class, replacing one with the same name. Returns false and changes nothing if there
    /// are already [`MAX_CLASSES`].
    pub fn add(&mut self, mut class: Class) -> bool {
        class.file = self.file.clone();
        if let Some(at) = self.by_name.get(class.name()) {
            if let Some(room) = self.classes.get_mut(*at) {
                *room = class;
            }
            return true;
        }
        if self.classes.len() >= MAX_CLASSES {
            return false;
        }
        self.by_name.insert(class.name().into(), self.classes.len());
        self.classes.push(class);
        true
    }

    /// Reads a file. Classes added in the meantime belong to it.
    pub(super) fn reading<T>(&mut self, file: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        self.file = File(Some(file.into()));
        let outcome = read(self);
        self.file = File(None);
        outcome
    }

    /// A goobj's entry, for changes.
    pub fn goobj_mut(&mut self, goid: u16) -> &mut Goobj {
        self.goobjs.entry(goid).or_default()
    }

    /// Sets a goobj's class as stated in a file, and discards the source of the previous one.
    /// Returns a message if another file stated something else.
    pub(super) fn set_class(&mut self, goid: u16, class: &str) -> Option<String> {
        let file = self.file.clone();
        let goobj = self.goobj_mut(goid);
        goobj.source = None;
        let before = goobj.class.replace(class.into());
        let from = core::mem::replace(&mut goobj.file, file.clone());
        let before = before.filter(|before| **before != *class)?;
        let from = from.other_than(&file)?;
        Some(format!("goobj {goid} has class {before} in {from}; this class is used"))
    }

    /// Returns a message if another file defines this class differently.
    pub(super) fn contradiction(&self, class: &Class) -> Option<String> {
        let before = self.class(class.name())?;
        let is_other = (before.create(), before.updates()) != (class.create(), class.updates());
        let from = before.file.other_than(&self.file).filter(|_| is_other)?;
        let name = class.name();
        Some(format!("class {name} has different properties in {from}; this definition is used"))
    }

    /// A class by name.
    #[must_use]
    pub fn class(&self, name: &str) -> Option<&Class> {
        self.by_name.get(name).and_then(|at| self.classes.get(*at))
    }

    /// All classes, in the order in which they were added.
    #[must_use]
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// All goobjs, by number.
    pub fn goobjs(&self) -> impl Iterator<Item = (u16, &Goobj)> {
        self.goobjs.iter().map(|(goid, goobj)| (*goid, goobj))
    }

    /// Compiles the tables for lookup. A goobj whose class is missing from the tables is left
    /// without a class.
    #[must_use]
    pub fn compile(&self) -> Objects {
        let goobjs = self.goobjs.iter().map(|(goid, goobj)| {
            let at = goobj.class.as_ref().and_then(|name| self.by_name.get(name));
            let class = at.and_then(|at| u16::try_from(*at).ok()).map(ClassId);
            (*goid, class, goobj.name.clone())
        });
        Objects::new(self.classes.clone(), goobjs)
    }
}
