//! How updates change states.

use core::fmt;

use super::blob::Blob;
use super::elements::Elements;
use super::record::{
    NestedElement, NestedVariable, SimpleFlags, SimpleVariable, StateRecord, ValueHeader,
};
use super::state::ObjectState;
use crate::schema::Shape;
use crate::types::UnifiedTime;

/// How a party changes a state by an update. Parties differ in four points.
///
/// | | [ours](Self::OURS) | [client](Self::CLIENT) | [MOSS](Self::MOSS) | [dirtsand](Self::DIRTSAND) |
/// | --- | --- | --- | --- | --- |
/// | nested variables | merged | merged | replaced | replaced |
/// | variables that are not dirty | applied | applied | left out | applied |
/// | times | now | as given | now | now if dirty and wanted |
/// | empty hints | keep the old one | keep the old one | replace it | replace it |
///
/// What dirtsand does was compared with captures of one. The row of MOSS follows descriptions of it.
///
/// The same for all: a simple variable is replaced as a whole, or set to its default; a list of
/// nested elements takes the length of the update, and new elements begin at the defaults; what the
/// update does not name stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergePolicy {
    /// What becomes of nested variables.
    pub nested: NestedPolicy,
    /// What becomes of variables that are not dirty.
    pub clean: CleanPolicy,
    /// Which times variables get.
    pub times: TimePolicy,
    /// What an empty hint does.
    pub hints: HintPolicy,
}

/// What becomes of a nested variable that an update names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NestedPolicy {
    /// Elements merge with those that are there; elements that are not in the update stay.
    Merge,
    /// The update takes the place of everything that was there.
    Replace,
}

/// What becomes of simple variables that an update has without their dirty bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleanPolicy {
    /// They count like all others. Clients send only what is dirty.
    Apply,
    /// They are left out.
    Skip,
}

/// Which times simple variables get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimePolicy {
    /// The present time.
    Now,
    /// The present time where the update has both bits, otherwise as it is given.
    ///
    /// Unverified: what dirtsand does where a bit is missing; clients always set both.
    NowIfDirtyAndWanted,
    /// The time of the update, mostly none.
    AsGiven,
}

/// What an empty or missing hint of an update does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintPolicy {
    /// The old one stays.
    KeepOnEmpty,
    /// The old one goes.
    Replace,
}

impl MergePolicy {
    /// What a server of worldwire does: merges as clients do, so that both ends show the same, and
    /// stamps with its own clock.
    pub const OURS: Self = Self {
        nested: NestedPolicy::Merge,
        clean: CleanPolicy::Apply,
        times: TimePolicy::Now,
        hints: HintPolicy::KeepOnEmpty,
    };
    /// What clients do with a state that arrives.
    pub const CLIENT: Self = Self { times: TimePolicy::AsGiven, ..Self::OURS };
    /// What MOSS does.
    pub const MOSS: Self = Self {
        nested: NestedPolicy::Replace,
        clean: CleanPolicy::Skip,
        times: TimePolicy::Now,
        hints: HintPolicy::Replace,
    };
    /// What dirtsand does.
    pub const DIRTSAND: Self =
        Self { clean: CleanPolicy::Apply, times: TimePolicy::NowIfDirtyAndWanted, ..Self::MOSS };
}

/// Why an update does not change a state. The state is as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpdateError {
    /// The update is for another descriptor: the caller mixed them up.
    OtherDescriptor {
        /// The descriptor of the state.
        stored: String,
        /// The descriptor of the update.
        update: String,
    },
    /// The update follows an older version than the state: its sender has old descriptors.
    Older {
        /// The descriptor.
        name: String,
        /// The version of the state.
        stored: u16,
        /// The version of the update.
        update: u16,
    },
    /// There are as many states as the database may have.
    Full {
        /// The limit.
        limit: usize,
    },
}

impl fmt::Display for UpdateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherDescriptor { stored, update } => {
                write!(f, "wanted an update of {stored}, found one of {update}")
            }
            Self::Older { name, stored, update } => {
                write!(f, "{name}: wanted version {stored} or newer, found {update}")
            }
            Self::Full { limit } => write!(f, "wanted at most {limit} states, found one more"),
        }
    }
}

impl core::error::Error for UpdateError {}

impl ObjectState {
    /// Changes the state by an update. A state of an older version is upgraded first.
    ///
    /// Record flags are those of the update.
    ///
    /// # Errors
    /// When the update is for another descriptor, or follows an older version.
    pub fn apply(
        &mut self,
        update: &Blob<'_>,
        rule: MergePolicy,
        now: &UnifiedTime,
    ) -> Result<(), UpdateError> {
        let (stored, newer) = (&self.descriptor, &update.descriptor);
        if !stored.is(newer) {
            if !stored.name().eq_ignore_ascii_case(newer.name()) {
                let (stored, update) = (stored.name().to_owned(), newer.name().to_owned());
                return Err(UpdateError::OtherDescriptor { stored, update });
            }
            if newer.version() < stored.version() {
                let name = stored.name().to_owned();
                let (stored, update) = (stored.version(), newer.version());
                return Err(UpdateError::Older { name, stored, update });
            }
            *self = self.upgrade(newer);
        }
        merge(&mut self.record, self.descriptor.shape(), &update.record, rule, now);
        Ok(())
    }
}

fn merge(
    record: &mut StateRecord<'static>,
    shape: Shape<'_>,
    update: &StateRecord<'_>,
    rule: MergePolicy,
    now: &UnifiedTime,
) {
    record.flags = update.flags;
    for entry in &update.simple {
        if rule.clean == CleanPolicy::Skip && !entry.flags.contains(SimpleFlags::Dirty) {
            continue;
        }
        let found = record.simple.binary_search_by_key(&entry.index, |entry| entry.index);
        let mut fresh = stamped(entry, shape, rule, now);
        match found {
            Ok(at) => {
                if let Some(old) = record.simple.get_mut(at) {
                    keep_hint(&mut old.head, &mut fresh.head, rule);
                    *old = fresh;
                }
            }
            Err(at) => record.simple.insert(at, fresh),
        }
    }
    for entry in &update.nested {
        let Some((_, inner)) = shape.nested(entry.index as usize) else { continue };
        let found = record.nested.binary_search_by_key(&entry.index, |entry| entry.index);
        let mut fresh = NestedVariable {
            index: entry.index,
            head: entry.head.clone().into_owned(),
            flags: entry.flags,
            length: entry.length,
            elements: Vec::new(),
        };
        let at = found.unwrap_or_else(|at| at);
        if found.is_err() {
            record.nested.insert(at, fresh);
        } else if let Some(old) = record.nested.get_mut(at) {
            keep_hint(&mut old.head, &mut fresh.head, rule);
            if rule.nested == NestedPolicy::Merge {
                fresh.elements = core::mem::take(&mut old.elements);
                fresh.elements.retain(|element| element.index < fresh.length);
            }
            *old = fresh;
        }
        let Some(nested) = record.nested.get_mut(at) else { continue };
        for element in &entry.elements {
            merge_element(nested, inner, element, rule, now);
        }
    }
}

fn merge_element(
    nested: &mut NestedVariable<'static>,
    inner: Shape<'_>,
    update: &NestedElement<'_>,
    rule: MergePolicy,
    now: &UnifiedTime,
) {
    let index = update.index;
    let found = nested.elements.binary_search_by_key(&index, |element| element.index);
    let at = found.unwrap_or_else(|at| at);
    if found.is_err() {
        nested.elements.insert(at, NestedElement { index, record: StateRecord::default() });
    }
    if let Some(element) = nested.elements.get_mut(at) {
        merge(&mut element.record, inner, &update.record, rule, now);
    }
}

/// The variable of an update with the time that it gets.
fn stamped(
    entry: &SimpleVariable<'_>,
    shape: Shape<'_>,
    rule: MergePolicy,
    now: &UnifiedTime,
) -> SimpleVariable<'static> {
    let mut fresh = entry.clone().into_owned();
    let both = SimpleFlags::Dirty | SimpleFlags::WantTimeStamp;
    let stamp = match rule.times {
        TimePolicy::Now => true,
        TimePolicy::NowIfDirtyAndWanted => entry.flags.contains(both),
        TimePolicy::AsGiven => false,
    };
    if stamp {
        fresh.time = Some(now.clone());
        fresh.flags = fresh.flags | SimpleFlags::HasTimeStamp;
        fresh.flags = SimpleFlags(fresh.flags.0 & !SimpleFlags::WantTimeStamp.0);
    }
    // A list has no default but the empty one, which is written as such.
    let variable = shape.simple(entry.index as usize);
    if let Some(variable) = variable.filter(|one| one.count().is_none() && fresh.value.is_none()) {
        fresh.value = Some(Elements::default_of(variable));
        fresh.flags = SimpleFlags(fresh.flags.0 & !SimpleFlags::SameAsDefault.0);
    }
    fresh
}

fn keep_hint(old: &mut ValueHeader<'static>, fresh: &mut ValueHeader<'static>, rule: MergePolicy) {
    if rule.hints == HintPolicy::KeepOnEmpty && old.has_hint() && !fresh.has_hint() {
        fresh.hint = old.hint.take();
    }
}
