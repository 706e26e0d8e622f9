//! Names of fields and values, each stored once per process.
//!
//! Nearly all text that a message needs as a Python object is one of a few thousand names. Caching
//! their Python strings makes reading fields several times faster than creating new ones.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use foldhash::fast::RandomState;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;

/// The maximum number of cached names. A maximum is needed because names can come from the user's
/// files; all families' definitions together have about 30,000.
const MAX_NAMES: usize = 1 << 16;
/// Longer names are not cached.
const MAX_NAME_BYTES: usize = 128;

/// A name that is cached until the process ends.
pub(crate) struct Name {
    text: Box<str>,
    object: PyOnceLock<Py<PyString>>,
}

type Known = HashMap<&'static str, &'static Name, RandomState>;

static NAMES: Mutex<Option<Known>> = Mutex::new(None);

thread_local! {
    /// The names that this thread has encountered, found without a lock.
    static MET: RefCell<Known> = RefCell::default();
}

impl Name {
    /// The name with this text. `None` if it is too long or too many are cached.
    pub(crate) fn of(text: &str) -> Option<&'static Self> {
        if text.len() > MAX_NAME_BYTES {
            return None;
        }
        MET.with_borrow_mut(|met| {
            if let Some(name) = met.get(text) {
                return Some(*name);
            }
            let name = Self::keep(text)?;
            met.insert(&name.text, name);
            Some(name)
        })
    }

    fn keep(text: &str) -> Option<&'static Self> {
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        let names = names.get_or_insert_default();
        if let Some(name) = names.get(text) {
            return Some(name);
        }
        if names.len() == MAX_NAMES {
            return None;
        }
        // Names are never freed, which is why there is a maximum.
        let name = Box::leak(Box::new(Self { text: text.into(), object: PyOnceLock::new() }));
        names.insert(&name.text, name);
        Some(name)
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The Python string.
    pub(crate) fn object<'py>(&self, py: Python<'py>) -> &Bound<'py, PyString> {
        let object = self.object.get_or_init(py, || PyString::intern(py, &self.text).unbind());
        object.bind(py)
    }
}
