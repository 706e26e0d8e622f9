//! The context needed to read a section: the existing views, and how strict to be.

use std::collections::{BTreeMap, HashMap};

use worldwire_core::Side;

use crate::schema::{ClassId, Objects};

/// The view ID that ends a section.
pub const END: u16 = 0;
/// The view through which a server creates and deletes all other views.
pub const ADMIN_VIEW: u16 = 1;
/// The view of the client's own character, the only one that a client updates.
pub const OWN_VIEW: u16 = 2;
/// The first view ID for other objects.
pub const FIRST_VIEW: u16 = 3;

/// What is known about a view.
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

/// A client's views, which determine how updates are decoded.
pub trait Views {
    /// What is known about a view; `None` if it does not exist.
    fn viewed(&self, view: u16) -> Option<Viewed>;
}

/// No views: only sections that create the views they update are readable.
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

/// How strict decoding is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Accepts a section without the end marker `00 00`. Some servers have sent such sections.
    pub unterminated: bool,
    /// Keeps all remaining bytes when a class, view or layout is unknown, instead of failing.
    pub keep_unknown: bool,
    /// Guesses the class of an unknown goobj from the bytes of its create.
    pub guess: bool,
}

impl Rules {
    /// The rules of a server or client.
    pub const STRICT: Self = Self { unterminated: false, keep_unknown: false, guess: false };
    /// The rules of an observer: unknown parts are kept, and nothing is guessed.
    pub const LENIENT: Self = Self { unterminated: true, keep_unknown: true, guess: false };
}

/// The context needed to read and write a section.
#[derive(Clone, Copy)]
pub struct Context<'o, 'v> {
    /// The game object tables.
    pub objects: &'o Objects,
    /// The views that exist before the section.
    pub views: &'v dyn Views,
    /// The sender of the section.
    pub from: Side,
    /// How strict decoding is.
    pub rules: Rules,
}

impl<'o, 'v> Context<'o, 'v> {
    /// The strict context of a section from a server.
    #[must_use]
    pub fn server(objects: &'o Objects, views: &'v dyn Views) -> Self {
        Self { objects, views, from: Side::Server, rules: Rules::STRICT }
    }

    /// The strict context of a section from a client.
    #[must_use]
    pub fn client(objects: &'o Objects, views: &'v dyn Views) -> Self {
        Self { objects, views, from: Side::Client, rules: Rules::STRICT }
    }

    /// The same context with different rules.
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

/// The views inside a section: those that existed before it, updated by its creates and deletes.
#[derive(Clone)]
pub(super) struct SectionViews<'v> {
    /// Whether the section can be read to its end if the first block of NPCs is one byte.
    pub(super) trusts_npc_first: bool,
    before: &'v dyn Views,
    changed: BTreeMap<u16, Option<Viewed>>,
}

impl<'v> SectionViews<'v> {
    pub(super) const fn new(before: &'v dyn Views) -> Self {
        Self { trusts_npc_first: false, before, changed: BTreeMap::new() }
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
