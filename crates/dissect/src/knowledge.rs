//! Keys, definitions and facts, which sessions need besides the bytes they read. Each family keeps
//! its own part.

use core::any::Any;
use core::fmt;
use std::collections::HashMap;
use std::sync::Arc;

/// One part, identified by its type.
type Part = Arc<dyn Any + Send + Sync>;

macro_rules! knowledge {
    ($name:ident) => {
        impl $name {
            /// A shared part; `None` if it was never set.
            #[must_use]
            pub fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
                self.parts.iter().find_map(|part| Arc::clone(part).downcast().ok())
            }

            /// A shared part; its default if it was never set.
            #[must_use]
            pub fn part<T: Any + Send + Sync + Default>(&self) -> Arc<T> {
                self.get().unwrap_or_default()
            }

            /// A borrowed part; `None` if it was never set.
            #[must_use]
            pub fn get_ref<T: Any>(&self) -> Option<&T> {
                self.parts.iter().find_map(|part| part.downcast_ref())
            }

            /// Sets a part, replacing the previous one of its type.
            pub fn set<T: Any + Send + Sync>(&mut self, part: T) {
                self.parts.retain(|known| !known.is::<T>());
                self.parts.push(Arc::new(part));
            }

            /// Changes a part, copying it if it is shared. A part that was never set starts as its
            /// default.
            pub fn edit<T: Any + Send + Sync + Clone + Default, R>(
                &mut self,
                change: impl FnOnce(&mut T) -> R,
            ) -> R {
                // The part is removed during the change, so that it need not be copied unless
                // somebody else holds it.
                let slot = self.parts.iter().position(|part| part.is::<T>());
                let part = slot.map(|slot| self.parts.swap_remove(slot));
                let part = part.and_then(|part| part.downcast::<T>().ok());
                let mut part = part.unwrap_or_default();
                let outcome = change(Arc::make_mut(&mut part));
                self.parts.push(part);
                outcome
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let parts = self.parts.len();
                f.debug_struct(stringify!($name)).field("parts", &parts).finish_non_exhaustive()
            }
        }
    };
}

/// Secrets that decrypt traffic and files, with a part for each family that has any.
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
    /// The parts, at most one of each type.
    parts: Vec<Part>,
}

knowledge! { Keys }

impl Keys {
    /// No keys.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }
}

/// Definitions of messages, both built-in and the user's, with a part for each family that has any.
/// One part is the list of families.
#[derive(Clone)]
pub struct Definitions {
    /// The parts, at most one of each type.
    parts: Vec<Part>,
}

knowledge! { Definitions }

impl Definitions {
    /// Definitions without any part. The registry then adds the parts.
    pub(crate) fn empty() -> Self {
        Self { parts: Vec::new() }
    }
}

/// Facts that one conversation states and another needs, such as a connection's key that was
/// agreed on over another connection.
///
/// A conversation [states](crate::Session::facts) a fact under a name that its family chooses.
/// Facts take effect in capture order. A conversation that [waits](crate::Session::waits)
/// immediately [learns](crate::Session::learn) all facts known so far. After that it learns each
/// new fact right after the packet that stated it. If several conversations wait, the one with the
/// lowest number learns first.
///
/// A session must not guess a fact it lacks. It holds its input, within bounds, until it learns the
/// fact. This makes the output independent of the number of threads and the size of batches. For
/// the same reason a name should have only one value: a renegotiated key is a new fact with a new
/// name.
///
/// A conversation that is still waiting when it closes learns later facts too.
#[derive(Clone, Default)]
pub struct Facts {
    known: HashMap<(&'static str, String), Arc<dyn FactValue>>,
    stated: u64,
}

/// The value of a [`Fact`]: any value that can be compared.
pub trait FactValue: Any + Send + Sync {
    /// Whether the other value has the same type and is equal.
    fn is_equal(&self, other: &dyn FactValue) -> bool;
}

impl<T: Any + Send + Sync + PartialEq> FactValue for T {
    fn is_equal(&self, other: &dyn FactValue) -> bool {
        (other as &dyn Any).downcast_ref() == Some(self)
    }
}

/// Something that one conversation learned and another may need.
#[derive(Clone)]
pub struct Fact {
    /// The family that states it.
    pub family: &'static str,
    /// What it is about, in the family's own words: `session 7`.
    pub name: String,
    /// The value.
    pub value: Arc<dyn FactValue>,
}

/// The maximum number of facts remembered. Further ones are dropped.
const MAX_FACTS: usize = 65_536;

impl Facts {
    /// Adds a fact, replacing an earlier one of the same name.
    pub fn state(&mut self, fact: Fact) {
        let key = (fact.family, fact.name);
        if self.known.len() < MAX_FACTS || self.known.contains_key(&key) {
            self.known.insert(key, fact.value);
            self.stated = self.stated.saturating_add(1);
        }
    }

    /// Whether a fact would change what is known.
    pub(crate) fn is_new(&self, fact: &Fact) -> bool {
        match self.known.get(&(fact.family, fact.name.clone())) {
            Some(value) => !value.is_equal(&*fact.value),
            None => self.known.len() < MAX_FACTS,
        }
    }

    /// The number of facts stated so far, including replaced ones.
    #[must_use]
    pub fn stated(&self) -> u64 {
        self.stated
    }

    /// The value of a fact.
    #[must_use]
    pub fn get<T: Any>(&self, family: &'static str, name: &str) -> Option<&T> {
        value_of(self.known.get(&(family, name.to_owned()))?)
    }

    /// All facts of one type that a family's conversations stated, in no particular order.
    pub fn all<T: Any>(&self, family: &'static str) -> impl Iterator<Item = &T> {
        let own = self.known.iter().filter(move |((whose, _), _)| *whose == family);
        own.filter_map(|(_, value)| value_of(value))
    }

    /// Whether no fact was stated.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }
}

fn value_of<T: Any>(value: &Arc<dyn FactValue>) -> Option<&T> {
    let value: &dyn Any = &**value;
    value.downcast_ref()
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
    fn later_facts_replace_earlier_ones() {
        let mut facts = Facts::default();
        for value in [1_u32, 2] {
            let name = "session 7".to_owned();
            facts.state(Fact { family: "toy", name, value: Arc::new(value) });
        }
        assert_eq!(facts.get("toy", "session 7"), Some(&2_u32));
        let fact = |value: u32| Fact {
            family: "toy",
            name: "session 7".to_owned(),
            value: Arc::new(value),
        };
        assert!(facts.is_new(&fact(1)) && !facts.is_new(&fact(2)));
        assert_eq!(facts.get::<u32>("toy", "session 8"), None);
        facts.state(Fact { family: "other", name: "x".to_owned(), value: Arc::new(3_u32) });
        assert_eq!(facts.all::<u32>("toy").collect::<Vec<_>>(), [&2]);
        assert_eq!(facts.all::<u64>("toy").count(), 0);
        assert_eq!(format!("{facts:?}").matches("session 7").count(), 1);
    }
}
