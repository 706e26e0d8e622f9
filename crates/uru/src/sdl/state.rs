//! Object states as a server keeps them.

use std::borrow::Cow;

use worldwire_core::{Error, Result};

use super::blob::{Blob, BlobHeader};
use super::elements::{Elements, elements};
use super::record::{
    NestedVariable, RecordFlags, SimpleFlags, SimpleVariable, StateRecord, ValueHeader,
};
use super::scalar::Scalar;
use crate::schema::{Descriptor, Shape, Variable, VariableIndex};
use crate::types::UnifiedTime;

/// The state of an object: the variables that have been set, and their descriptor.
///
/// Variables that have never been set have the descriptor's default; they take no memory and are
/// not sent. A variable can also be set *to* its default. [`ObjectState::apply`] applies an update,
/// [`ObjectState::upgrade`] converts a state to another version of its descriptor, and
/// [`ObjectState::diff`] compares two states.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectState {
    pub(super) descriptor: Descriptor,
    /// Indices ascend, without duplicates.
    pub(super) record: StateRecord<'static>,
}

impl ObjectState {
    /// A state with no variables set.
    #[must_use]
    pub fn new(descriptor: Descriptor) -> Self {
        Self { descriptor, record: StateRecord::default() }
    }

    /// The state that a blob contains, including its times; used to load stored states.
    #[must_use]
    pub fn of(blob: &Blob<'_>) -> Self {
        let mut record = blob.record.clone().into_owned();
        sort(&mut record);
        Self { descriptor: blob.descriptor.clone(), record }
    }

    /// The descriptor.
    #[must_use]
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// The variables that are set, with ascending indices.
    #[must_use]
    pub fn record(&self) -> &StateRecord<'static> {
        &self.record
    }

    /// Whether the state is discarded when the server stops.
    #[must_use]
    pub fn is_volatile(&self) -> bool {
        self.record.flags.contains(RecordFlags::Volatile)
    }

    /// The state as a blob, to be stored or sent to joining clients. Only variables that are set
    /// are included.
    #[must_use]
    pub fn to_blob(&self) -> Blob<'static> {
        Blob {
            head: BlobHeader::of(&self.descriptor),
            descriptor: self.descriptor.clone(),
            record: self.record.clone(),
        }
    }

    /// All variables, set or not.
    #[must_use]
    pub fn view(&self) -> StateView<'_> {
        StateView { shape: self.descriptor.shape(), record: Some(&self.record) }
    }

    /// Whether the variable has been set; false if it does not exist.
    #[must_use]
    pub fn is_set(&self, name: &str) -> bool {
        self.view().is_set(name)
    }

    /// The value of a simple variable; if it has several elements, the first one.
    #[must_use]
    pub fn scalar(&self, name: &str) -> Option<Scalar<'_>> {
        self.view().scalar(name)
    }

    /// Sets a simple variable on behalf of the server, with the given time; its hint is kept.
    ///
    /// # Errors
    /// `Value` if there is no simple variable with that name, or if the elements do not match its
    /// type and count.
    pub fn set(&mut self, name: &str, scalars: &[Scalar<'_>], now: &UnifiedTime) -> Result<()> {
        let shape = self.descriptor.shape();
        let Some(VariableIndex::Simple(at)) = shape.index_of(name) else {
            let wanted = format!("a simple variable of {}", self.descriptor.name());
            return Err(Error::value(wanted, format!("{name:?}")));
        };
        let variable = shape.simple(at);
        let Some((variable, simple)) = variable.and_then(|one| Some((one, one.simple_type()?)))
        else {
            return Ok(());
        };
        let value = Elements::new(simple, scalars).map_err(|error| error.inside(name))?;
        if let Some(count) = variable.count().filter(|count| *count as usize != scalars.len()) {
            return Err(Error::value(elements(count), scalars.len().to_string()).inside(name));
        }
        let index = u32::try_from(at).unwrap_or(u32::MAX);
        let found = self.record.simple.binary_search_by_key(&index, |entry| entry.index);
        let flags = SimpleFlags::HasTimeStamp | SimpleFlags::Dirty;
        let (time, value) = (Some(now.clone()), Some(value));
        match found {
            Ok(at) => {
                if let Some(entry) = self.record.simple.get_mut(at) {
                    let head = core::mem::take(&mut entry.head);
                    *entry = SimpleVariable { index, head, flags, time, value };
                }
            }
            Err(at) => {
                let head = ValueHeader::client();
                self.record.simple.insert(at, SimpleVariable { index, head, flags, time, value });
            }
        }
        Ok(())
    }
}

/// Sorts the entries of a record by index.
fn sort(record: &mut StateRecord<'_>) {
    record.simple.sort_unstable_by_key(|entry| entry.index);
    record.nested.sort_unstable_by_key(|entry| entry.index);
    for nested in &mut record.nested {
        nested.elements.sort_unstable_by_key(|element| element.index);
        nested.elements.iter_mut().for_each(|element| sort(&mut element.record));
    }
}

/// The variables of a state or of one of its nested elements, set or not.
#[derive(Clone, Copy, Debug)]
pub struct StateView<'s> {
    pub(super) shape: Shape<'s>,
    /// `None` for an element that has never been set.
    pub(super) record: Option<&'s StateRecord<'static>>,
}

impl<'s> StateView<'s> {
    /// The descriptor of the variables.
    #[must_use]
    pub fn shape(self) -> Shape<'s> {
        self.shape
    }

    /// Whether the variable has been set; false if it does not exist.
    #[must_use]
    pub fn is_set(self, name: &str) -> bool {
        match self.shape.index_of(name) {
            Some(VariableIndex::Simple(at)) => self.simple_at(at).is_some(),
            Some(VariableIndex::Nested(at)) => self.nested_at(at).is_some(),
            None => false,
        }
    }

    /// The elements of a simple variable: its value, or the defaults.
    #[must_use]
    pub fn elements(self, name: &str) -> Option<Cow<'s, Elements<'static>>> {
        let (variable, entry) = self.simple(name)?;
        Some(match entry.and_then(|entry| entry.value.as_ref()) {
            Some(elements) => Cow::Borrowed(elements),
            None => Cow::Owned(Elements::default_of(variable)),
        })
    }

    /// The decoded elements of a simple variable.
    #[must_use]
    pub fn scalars(self, name: &str) -> Option<Vec<Scalar<'s>>> {
        let (variable, entry) = self.simple(name)?;
        let simple = variable.simple_type()?;
        if let Some(elements) = entry.and_then(|entry| entry.value.as_ref()) {
            return Some(elements.scalars(simple).collect());
        }
        let default = Scalar::read(simple, variable.default_element())?;
        Some(vec![default; variable.count().unwrap_or(0) as usize])
    }

    /// The value of a simple variable; if it has several elements, the first one.
    #[must_use]
    pub fn scalar(self, name: &str) -> Option<Scalar<'s>> {
        let (variable, entry) = self.simple(name)?;
        let simple = variable.simple_type()?;
        match entry.and_then(|entry| entry.value.as_ref()) {
            Some(elements) => elements.scalars(simple).next(),
            None if variable.count().is_none() => None,
            None => Scalar::read(simple, variable.default_element()),
        }
    }

    /// The hint of a variable; empty if it has none.
    #[must_use]
    pub fn hint(self, name: &str) -> String {
        let head = match self.shape.index_of(name) {
            Some(VariableIndex::Simple(at)) => self.simple_at(at).map(|entry| &entry.head),
            Some(VariableIndex::Nested(at)) => self.nested_at(at).map(|entry| &entry.head),
            None => None,
        };
        head.and_then(|head| head.hint.as_ref()).map_or_else(String::new, |hint| hint.to_text())
    }

    /// The time a simple variable was last changed, if known.
    #[must_use]
    pub fn time(self, name: &str) -> Option<UnifiedTime> {
        self.simple(name)?.1?.time.clone()
    }

    /// The number of elements of a nested variable.
    #[must_use]
    pub fn nested_len(self, name: &str) -> Option<usize> {
        let (variable, _, entry) = self.nested(name)?;
        let length = match entry {
            Some(entry) => entry.length,
            None => variable.count().unwrap_or(0),
        };
        Some(length as usize)
    }

    /// An element of a nested variable; `None` if the variable or the element does not exist.
    #[must_use]
    pub fn element(self, name: &str, index: usize) -> Option<Self> {
        if index >= self.nested_len(name)? {
            return None;
        }
        let (_, shape, entry) = self.nested(name)?;
        Some(Self { shape, record: entry.and_then(|entry| record_of(entry, index)) })
    }

    fn simple(self, name: &str) -> Option<(&'s Variable, Option<&'s SimpleVariable<'static>>)> {
        let Some(VariableIndex::Simple(at)) = self.shape.index_of(name) else { return None };
        Some((self.shape.simple(at)?, self.simple_at(at)))
    }

    fn nested(
        self,
        name: &str,
    ) -> Option<(&'s Variable, Shape<'s>, Option<&'s NestedVariable<'static>>)> {
        let Some(VariableIndex::Nested(at)) = self.shape.index_of(name) else { return None };
        let (variable, shape) = self.shape.nested(at)?;
        Some((variable, shape, self.nested_at(at)))
    }

    pub(super) fn simple_at(self, index: usize) -> Option<&'s SimpleVariable<'static>> {
        let list = &self.record?.simple;
        let at = list.binary_search_by_key(&index, |entry| entry.index as usize).ok()?;
        list.get(at)
    }

    pub(super) fn nested_at(self, index: usize) -> Option<&'s NestedVariable<'static>> {
        let list = &self.record?.nested;
        let at = list.binary_search_by_key(&index, |entry| entry.index as usize).ok()?;
        list.get(at)
    }
}

/// The record of an element, if set.
pub(super) fn record_of<'s>(
    nested: &'s NestedVariable<'static>,
    index: usize,
) -> Option<&'s StateRecord<'static>> {
    let list = &nested.elements;
    let at = list.binary_search_by_key(&index, |element| element.index as usize).ok()?;
    list.get(at).map(|element| &element.record)
}
