//! Applies updates to states.

use super::blob::Blob;
use super::elements::Elements;
use super::record::{
    NestedElement, NestedVariable, SimpleFlags, SimpleVariable, StateRecord, ValueHeader,
};
use super::state::ObjectState;
use crate::schema::Shape;
use crate::types::UnifiedTime;

/// How an implementation applies updates. Implementations differ in four points.
///
/// | | [ours](Self::OURS) | [client](Self::CLIENT) | [MOSS](Self::MOSS) | [dirtsand](Self::DIRTSAND) |
/// | --- | --- | --- | --- | --- |
/// | nested variables | merged | merged | replaced | replaced |
/// | variables that are not dirty | applied | applied | ignored | applied |
/// | times | now | as given | now | now if dirty and wanted |
/// | empty hints | keep the old hint | keep the old hint | replace it | replace it |
///
/// The dirtsand column was compared with captures; the MOSS column follows descriptions.
///
/// In all implementations, a simple variable is replaced as a whole or reset to its default; a list
/// of nested elements takes the update's length, and new elements start with the defaults;
/// variables not in the update are left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergePolicy {
    /// How nested variables are updated.
    pub nested: NestedPolicy,
    /// Whether variables without the dirty bit are applied.
    pub clean: CleanPolicy,
    /// The times that variables receive.
    pub times: TimePolicy,
    /// The effect of an empty hint.
    pub hints: HintPolicy,
}

/// How a nested variable is updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NestedPolicy {
    /// Elements are merged with the existing ones; elements not in the update are kept.
    Merge,
    /// The update replaces all existing elements.
    Replace,
}

/// How simple variables without the dirty bit are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleanPolicy {
    /// They are applied like all others. Clients only send dirty variables.
    Apply,
    /// They are ignored.
    Skip,
}

/// The times that simple variables receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimePolicy {
    /// The current time.
    Now,
    /// The current time if the update has both bits, otherwise the time in the update.
    ///
    /// Unverified: how dirtsand treats an update without one of the bits; clients always set both.
    NowIfDirtyAndWanted,
    /// The time in the update, usually none.
    AsGiven,
}

/// The effect of an empty or missing hint in an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintPolicy {
    /// The old hint is kept.
    KeepOnEmpty,
    /// The old hint is removed.
    Replace,
}

impl MergePolicy {
    /// Worldwire's servers: they merge like clients, so that both ends agree, and stamp variables
    /// with their own clock.
    pub const OURS: Self = Self {
        nested: NestedPolicy::Merge,
        clean: CleanPolicy::Apply,
        times: TimePolicy::Now,
        hints: HintPolicy::KeepOnEmpty,
    };
    /// Clients, when they receive a state.
    pub const CLIENT: Self = Self { times: TimePolicy::AsGiven, ..Self::OURS };
    /// MOSS.
    pub const MOSS: Self = Self {
        nested: NestedPolicy::Replace,
        clean: CleanPolicy::Skip,
        times: TimePolicy::Now,
        hints: HintPolicy::Replace,
    };
    /// dirtsand.
    pub const DIRTSAND: Self =
        Self { clean: CleanPolicy::Apply, times: TimePolicy::NowIfDirtyAndWanted, ..Self::MOSS };
}

/// Why an update was not applied. The state is then unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UpdateError {
    /// The update is for a different descriptor: the caller mixed up the two.
    #[error("the update is for {update}, not for {stored}")]
    OtherDescriptor {
        /// The descriptor of the state.
        stored: String,
        /// The descriptor of the update.
        update: String,
    },
    /// The update uses an older version than the state: its sender has outdated descriptors.
    #[error("{name}: the update uses version {update}, but the state already has version {stored}")]
    Older {
        /// The descriptor.
        name: String,
        /// The version of the state.
        stored: u16,
        /// The version of the update.
        update: u16,
    },
    /// The database is full.
    #[error("the limit of {limit} states is reached")]
    Full {
        /// The limit.
        limit: usize,
    },
}

impl ObjectState {
    /// Applies an update. A state of an older version is upgraded first.
    ///
    /// The record takes over the update's flags.
    ///
    /// # Errors
    /// Fails if the update is for a different descriptor or uses an older version.
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

/// The update's variable, with the time that the policy gives it.
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
    // The only default of a list is the empty one, which is encoded explicitly.
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
