//! What users know: keys, and definitions of messages. Each family keeps its own part.

use core::any::Any;
use core::fmt;
use std::collections::HashMap;
use std::sync::Arc;

/// One part of what users know, by its type.
type Part = Arc<dyn Any + Send + Sync>;

/// Parts of different types, each there at most once.
#[derive(Clone, Default)]
struct Parts(Vec<Part>);

impl Parts {
    fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.0.iter().find_map(|part| Arc::clone(part).downcast().ok())
    }

    fn get_ref<T: Any>(&self) -> Option<&T> {
        self.0.iter().find_map(|part| part.downcast_ref())
    }

    fn set<T: Any + Send + Sync>(&mut self, part: Arc<T>) {
        match self.0.iter_mut().find(|part| part.is::<T>()) {
            Some(place) => *place = part,
            None => self.0.push(part),
        }
    }

    fn edit<T: Any + Send + Sync + Clone + Default, R>(
        &mut self,
        change: impl FnOnce(&mut T) -> R,
    ) -> R {
        // Taken out for the change, so that it need not be copied when nobody else has it.
        let place = self.0.iter().position(|part| part.is::<T>());
        let part = place.map(|place| self.0.swap_remove(place));
        let part = part.and_then(|part| part.downcast::<T>().ok());
        let mut part = part.unwrap_or_default();
        let outcome = change(Arc::make_mut(&mut part));
        self.0.push(part);
        outcome
    }
}

macro_rules! knowledge {
    ($name:ident) => {
        impl $name {
            /// A part, shared; `None` when no family put it there.
            #[must_use]
            pub fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
                self.parts.get()
            }

            /// A part, shared; its default when no family put it there.
            #[must_use]
            pub fn part<T: Any + Send + Sync + Default>(&self) -> Arc<T> {
                self.parts.get().unwrap_or_default()
            }

            /// A part, borrowed; `None` when no family put it there.
            #[must_use]
            pub fn get_ref<T: Any>(&self) -> Option<&T> {
                self.parts.get_ref()
            }

            /// Puts a part there, in the place of the one of its type.
            pub fn set<T: Any + Send + Sync>(&mut self, part: T) {
                self.parts.set(Arc::new(part));
            }

            /// Changes a part; it is copied if it is shared, and begins with its default.
            pub fn edit<T: Any + Send + Sync + Clone + Default, R>(
                &mut self,
                change: impl FnOnce(&mut T) -> R,
            ) -> R {
                self.parts.edit(change)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let parts = self.parts.0.len();
                f.debug_struct(stringify!($name)).field("parts", &parts).finish_non_exhaustive()
            }
        }
    };
}

/// Secrets that decrypt traffic and files: a part for every family that has any.
///
/// ```
/// use worldwire_dissect::Keys;
/// use worldwire_uru::file::keys::KeyRing;
///
/// let keys = Keys::parse(include_str!("../../../samples/uru-keys.toml"))?;
/// assert!(keys.get::<KeyRing>().is_some());
/// # Ok::<(), worldwire_dissect::KeysError>(())
/// ```
#[derive(Clone, Default)]
pub struct Keys {
    parts: Parts,
}

knowledge! { Keys }

impl Keys {
    /// No keys.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }
}

/// What users know of messages, over what is built in: a part for every family that has
/// definitions. One part says which families there are.
#[derive(Clone)]
pub struct Definitions {
    parts: Parts,
}

knowledge! { Definitions }

impl Definitions {
    /// Without any part; the registry fills it.
    pub(crate) fn empty() -> Self {
        Self { parts: Parts::default() }
    }
}

/// What conversations tell each other: facts that one learned and another needs, such as the key
/// of a connection that was agreed upon on another one.
///
/// A conversation [states](crate::Session::facts) a fact under a name of its family's choice. Facts
/// become known in the order of the capture. A conversation that [waits](crate::Session::waits)
/// [learns](crate::Session::learn) everything that is known so far right behind the packet that
/// made it wait, and every later fact right behind the packet that stated it. Of several that wait,
/// the one with the lower number learns first.
///
/// A session therefore must not guess while it lacks a fact. It keeps what came, within bounds,
/// waits, and reads it when it learns. Then what comes out, and in which order, depends neither on
/// the number of threads nor on the size of batches. For the same reason a name should stand for
/// one value: a key that is agreed upon anew is a new fact with a name of its own.
///
/// A conversation that is closed while it waits still learns what is stated behind its end.
#[derive(Clone, Default)]
pub struct Facts {
    known: HashMap<(&'static str, String), Part>,
    stated: u64,
}

/// Something that one conversation learned and another may need.
#[derive(Clone)]
pub struct Fact {
    /// Whose it is.
    pub family: &'static str,
    /// What it is about, as the family writes it: `session 7`.
    pub name: String,
    /// What was learned.
    pub value: Arc<dyn Any + Send + Sync>,
}

/// The most facts that are remembered; what comes beyond is forgotten.
const MAX_FACTS: usize = 65_536;

impl Facts {
    /// Adds a fact. Of two with one name the later counts.
    pub fn state(&mut self, fact: Fact) {
        let key = (fact.family, fact.name);
        if self.known.len() < MAX_FACTS || self.known.contains_key(&key) {
            self.known.insert(key, fact.value);
            self.stated = self.stated.saturating_add(1);
        }
    }

    /// How many facts were stated, those included that gave way to later ones.
    pub(crate) fn stated(&self) -> u64 {
        self.stated
    }

    /// What is known under a name.
    #[must_use]
    pub fn get<T: Any>(&self, family: &'static str, name: &str) -> Option<&T> {
        self.known.get(&(family, name.to_owned()))?.downcast_ref()
    }

    /// Everything of one type that a family's conversations stated, in no order.
    pub fn all<T: Any>(&self, family: &'static str) -> impl Iterator<Item = &T> {
        let own = self.known.iter().filter(move |((whose, _), _)| *whose == family);
        own.filter_map(|(_, value)| value.downcast_ref())
    }

    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }
}

impl fmt::Debug for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The value may be a secret.
        write!(f, "{}: {}", self.family, self.name)
    }
}

impl fmt::Debug for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.known.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_by_type_and_changed_in_place() {
        let mut keys = Keys::none();
        assert!(keys.get::<u32>().is_none() && *keys.part::<u32>() == 0);
        keys.set(5_u32);
        keys.set("text".to_owned());
        keys.edit(|number: &mut u32| *number += 1);
        let shared = keys.part::<u32>();
        keys.edit(|number: &mut u32| *number += 1);
        assert_eq!((*shared, keys.get_ref::<u32>()), (6, Some(&7)));
        assert_eq!(keys.get_ref::<String>().map(String::as_str), Some("text"));
    }

    #[test]
    fn the_later_fact_counts() {
        let mut facts = Facts::default();
        for value in [1_u32, 2] {
            let name = "session 7".to_owned();
            facts.state(Fact { family: "toy", name, value: Arc::new(value) });
        }
        assert_eq!(facts.get("toy", "session 7"), Some(&2_u32));
        assert_eq!(facts.get::<u32>("toy", "session 8"), None);
        facts.state(Fact { family: "other", name: "x".to_owned(), value: Arc::new(3_u32) });
        assert_eq!(facts.all::<u32>("toy").collect::<Vec<_>>(), [&2]);
        assert_eq!(facts.all::<u64>("toy").count(), 0);
        assert_eq!(format!("{facts:?}").matches("session 7").count(), 1);
    }
}
