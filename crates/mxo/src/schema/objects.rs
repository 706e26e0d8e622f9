//! Classes and goobjs, compiled for lookup.

use std::collections::HashMap;

use worldwire_core::Names;

use super::class::{Class, ClassId};
use super::guess::Shapes;

/// No class.
const NONE: u16 = u16::MAX;

/// Everything known about game objects: classes, and the class of each goobj.
///
/// Compiled from [`Tables`](super::Tables); looking up a goobj is an array access.
#[derive(Clone, Debug)]
pub struct Objects {
    classes: Vec<Class>,
    by_name: HashMap<Box<str>, ClassId>,
    /// The class of each goobj, up to the highest goobj that has a class.
    class_of: Vec<u16>,
    names: Names,
    class_names: Names,
    shapes: Shapes,
}

impl Objects {
    pub(super) fn new(
        classes: Vec<Class>,
        goobjs: impl Iterator<Item = (u16, Option<ClassId>, Option<Box<str>>)>,
    ) -> Self {
        let mut class_of = Vec::new();
        let mut names = Vec::new();
        for (goid, class, name) in goobjs {
            if let Some(class) = class {
                let at = usize::from(goid);
                if class_of.len() <= at {
                    class_of.resize(at + 1, NONE);
                }
                if let Some(room) = class_of.get_mut(at) {
                    *room = class.0;
                }
            }
            names.extend(name.map(|name| (i64::from(goid), name)));
        }
        let numbered = || (0..NONE).map(ClassId).zip(&classes);
        Self {
            by_name: numbered().map(|(id, class)| (class.name().into(), id)).collect(),
            class_names: Names::from_pairs(
                numbered().map(|(id, class)| (i64::from(id.0), class.name().into())),
            )
            .words(),
            shapes: Shapes::new(numbered()),
            class_of,
            names: Names::from_pairs(names),
            classes,
        }
    }

    /// The class of a goobj.
    #[inline]
    #[must_use]
    pub fn class_of(&self, goid: u16) -> Option<(ClassId, &Class)> {
        let id = ClassId(*self.class_of.get(usize::from(goid))?);
        self.classes.get(usize::from(id.0)).map(|class| (id, class))
    }

    /// A class; `None` if the ID comes from a different [`Objects`].
    #[inline]
    #[must_use]
    pub fn class(&self, id: ClassId) -> Option<&Class> {
        self.classes.get(usize::from(id.0))
    }

    /// A class by name.
    #[must_use]
    pub fn class_named(&self, name: &str) -> Option<(ClassId, &Class)> {
        let id = *self.by_name.get(name)?;
        self.class(id).map(|class| (id, class))
    }

    /// All classes.
    pub fn classes(&self) -> impl Iterator<Item = (ClassId, &Class)> {
        (0..NONE).map(ClassId).zip(&self.classes)
    }

    /// A goobj's name.
    #[must_use]
    pub fn name_of(&self, goid: u16) -> Option<&str> {
        self.names.name(goid.into())
    }

    /// The names of goobjs, by number.
    pub(crate) const fn names(&self) -> &Names {
        &self.names
    }

    /// The names of classes, by ID.
    pub(crate) const fn class_names(&self) -> &Names {
        &self.class_names
    }

    /// The classes by the sizes of their properties.
    pub(crate) const fn shapes(&self) -> &Shapes {
        &self.shapes
    }
}
