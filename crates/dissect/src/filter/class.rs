//! The operand of `is`: a class of objects.

use core::fmt;

use worldwire_core::Names;

use super::literal::write_quoted;

/// A class, and those derived from it.
#[derive(Clone, Debug)]
pub(super) struct ObjectClass {
    name: Box<str>,
    /// The tags of all these classes, sorted; `None` if no definitions were consulted, or they do
    /// not have the class.
    tags: Option<Box<[i64]>>,
}

impl ObjectClass {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.into(), tags: None }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The same class, with the tags that definitions have for it.
    pub(super) fn resolve(self, tags: impl FnOnce(&str) -> Option<Vec<i64>>) -> Self {
        let tags = tags(&self.name).map(|mut tags| {
            tags.sort_unstable();
            tags.into()
        });
        Self { tags, ..self }
    }

    /// Whether an object with this tag is of the class or derived from it. Without definitions,
    /// this is true only of objects of the class itself.
    pub(super) fn has(&self, tag: i64, names: &Names) -> bool {
        match &self.tags {
            Some(tags) => tags.binary_search(&tag).is_ok(),
            None => names.name(tag).is_some_and(|name| {
                let bare = name.split_once(' ').map(|(_, bare)| bare);
                name == &*self.name || bare == Some(&*self.name)
            }),
        }
    }
}

/// Two filters are equal if they name the same class, whatever is known about it.
impl PartialEq for ObjectClass {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl fmt::Display for ObjectClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_quoted(f, &self.name)
    }
}
