//! Tables as they are collected, before they are compiled.

use std::collections::{BTreeMap, HashMap};

use super::built_in;
use super::class::{Class, File};
use super::objects::{ClassId, Objects};

/// The most classes that tables can have. The game has 1,319.
pub const MAX_CLASSES: usize = 65_534;

/// What is known of a game object type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Goobj {
    /// The name of its class.
    pub class: Option<Box<str>>,
    /// Its own name.
    pub name: Option<Box<str>>,
    /// Where this comes from, if the table says.
    pub source: Option<Box<str>>,
    /// The file that said which class it has.
    pub(super) file: File,
}

/// Classes and goobjs, collected from what is built in and from files.
///
/// See [`schema`](super) for the files there are. Two tables are equal when they would be printed
/// alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    classes: Vec<Class>,
    by_name: HashMap<Box<str>, usize>,
    pub(super) goobjs: BTreeMap<u16, Goobj>,
    /// The file that is being read.
    pub(super) file: File,
}

impl Tables {
    /// Nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What is built in: the objects that the protocol's description, recorded packets and working
    /// servers show.
    #[must_use]
    pub fn built_in() -> Self {
        built_in::tables()
    }

    /// Adds a class, or puts it in the place of the one of that name. False, and nothing is
    /// changed, when there are [`MAX_CLASSES`] already.
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

    /// Reads a file: the classes that are added meanwhile are its own.
    pub(super) fn reading<T>(&mut self, file: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        self.file = File(Some(file.into()));
        let outcome = read(self);
        self.file = File(None);
        outcome
    }

    /// What is known of a goobj, to be changed.
    pub fn goobj_mut(&mut self, goid: u16) -> &mut Goobj {
        self.goobjs.entry(goid).or_default()
    }

    /// A file says which class a goobj has. Where the class before came from is of no use then.
    /// Returns what another file said, if that was something else.
    pub(super) fn set_class(&mut self, goid: u16, class: &str) -> Option<String> {
        let file = self.file.clone();
        let goobj = self.goobj_mut(goid);
        goobj.source = None;
        let before = goobj.class.replace(class.into());
        let from = core::mem::replace(&mut goobj.file, file.clone());
        let before = before.filter(|before| **before != *class)?;
        let from = from.other_than(&file)?;
        Some(format!("goobj {goid} had the class {before} of {from}; this one counts"))
    }

    /// What another file said of a class that is about to be added, if that was something else.
    pub(super) fn contradiction(&self, class: &Class) -> Option<String> {
        let before = self.class(class.name())?;
        let is_other = (before.create(), before.updates()) != (class.create(), class.updates());
        let from = before.file.other_than(&self.file).filter(|_| is_other)?;
        let name = class.name();
        Some(format!("class {name} had other properties in {from}; this one counts"))
    }

    /// A class by its name.
    #[must_use]
    pub fn class(&self, name: &str) -> Option<&Class> {
        self.by_name.get(name).and_then(|at| self.classes.get(*at))
    }

    /// All classes, in the order in which they were added.
    #[must_use]
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// All goobjs, by their numbers.
    pub fn goobjs(&self) -> impl Iterator<Item = (u16, &Goobj)> {
        self.goobjs.iter().map(|(goid, goobj)| (*goid, goobj))
    }

    /// Compiles them for lookup. A goobj whose class is not there has none.
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
