//! What has to be known to read a section: the views that are there, and how strict to be.

use std::collections::{BTreeMap, HashMap};

use worldwire_core::Side;

use crate::schema::{ClassId, Objects};

/// The view that ends a section.
pub const END: u16 = 0;
/// The view through which a server creates and deletes the others.
pub const ADMIN_VIEW: u16 = 1;
/// The view of the client's own character: the only one that a client writes to.
pub const OWN_VIEW: u16 = 2;
/// The first view that is free for other objects.
pub const FIRST_VIEW: u16 = 3;

/// What is known of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Viewed {
    /// The class of its object.
    pub class: ClassId,
    /// Whether the class was guessed from the bytes of the create.
    pub guess: bool,
}

impl From<ClassId> for Viewed {
    fn from(class: ClassId) -> Self {
        Self { class, guess: false }
    }
}

/// The views of one client: what updates are decoded by.
pub trait Views {
    /// What is known of a view. `None` when there is none of that id.
    fn viewed(&self, view: u16) -> Option<Viewed>;
}

/// No views at all: only sections that create what they update can be read.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoViews;

impl Views for NoViews {
    fn viewed(&self, _: u16) -> Option<Viewed> {
        None
    }
}

impl Views for BTreeMap<u16, Viewed> {
    fn viewed(&self, view: u16) -> Option<Viewed> {
        self.get(&view).copied()
    }
}

impl Views for HashMap<u16, Viewed> {
    fn viewed(&self, view: u16) -> Option<Viewed> {
        self.get(&view).copied()
    }
}

/// How strict a reader is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Accepts a section without the `00 00` at its end. Some servers sent such.
    pub unterminated: bool,
    /// Keeps what cannot be read because a class, a view or a layout is unknown as bytes, to the
    /// end of what is there.
    pub keep_unknown: bool,
    /// Guesses the class of an unknown goobj from the bytes of its create.
    pub guess: bool,
}

impl Rules {
    /// What a server or client goes by.
    pub const STRICT: Self = Self { unterminated: false, keep_unknown: false, guess: false };
    /// What an observer goes by, who does not know everything. It does not guess.
    pub const LENIENT: Self = Self { unterminated: true, keep_unknown: true, guess: false };
}

/// What a section is read and written with.
#[derive(Clone, Copy)]
pub struct Context<'o, 'v> {
    /// Classes and goobjs.
    pub objects: &'o Objects,
    /// The views that are there before the section.
    pub views: &'v dyn Views,
    /// Who sends the section.
    pub from: Side,
    /// How strict to be when it is read.
    pub rules: Rules,
}

impl<'o, 'v> Context<'o, 'v> {
    /// For a section that a server sends, strictly.
    #[must_use]
    pub fn server(objects: &'o Objects, views: &'v dyn Views) -> Self {
        Self { objects, views, from: Side::Server, rules: Rules::STRICT }
    }

    /// For a section that a client sends, strictly.
    #[must_use]
    pub fn client(objects: &'o Objects, views: &'v dyn Views) -> Self {
        Self { objects, views, from: Side::Client, rules: Rules::STRICT }
    }

    /// The same with other rules.
    #[must_use]
    pub fn with(self, rules: Rules) -> Self {
        Self { rules, ..self }
    }
}

impl core::fmt::Debug for Context<'_, '_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Context")
            .field("from", &self.from)
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

/// The views as they are inside a section: those before it, and what it has created and deleted.
pub(super) struct Inside<'v> {
    before: &'v dyn Views,
    changed: BTreeMap<u16, Option<Viewed>>,
}

impl<'v> Inside<'v> {
    pub(super) const fn new(before: &'v dyn Views) -> Self {
        Self { before, changed: BTreeMap::new() }
    }

    #[inline]
    pub(super) fn viewed(&self, view: u16) -> Option<Viewed> {
        if !self.changed.is_empty()
            && let Some(changed) = self.changed.get(&view)
        {
            return *changed;
        }
        self.before.viewed(view)
    }

    pub(super) fn create(&mut self, view: u16, viewed: Viewed) {
        self.changed.insert(view, Some(viewed));
    }

    pub(super) fn delete(&mut self, view: u16) {
        self.changed.insert(view, None);
    }
}
