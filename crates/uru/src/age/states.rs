//! The states of an age's objects and of the age itself.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use worldwire_core::{Classes, Error, Limits, Reader, Result};

use super::answer;
use super::config::AgeBounds;
use super::dropped::DropReason;
use super::event::Event;
use super::packet::{MAX_BYTES, Packet};
use super::shares::{QuotaUse, Quotas};
use crate::inflate::Inflater;
use crate::plasma_message::PlasmaMessage;
use crate::safety::{Reason, Refusal, Rules, check_payload};
use crate::schema::{Descriptors, Shape, Type};
use crate::sdl::{
    Blob, BlobHeader, MergePolicy, ObjectKey, ObjectState, Scalar, StateDb, StateRecord,
    StoredState, UpdateError, UpdateOrigin, ValueHeader, hook,
};
use crate::types::{Location, LocationFlags, SafeString, UnifiedTime, Uoid, Uuid};

/// All states and which of them must be stored.
#[derive(Clone, Debug)]
pub(super) struct StateStore {
    db: StateDb,
    /// The clones and parts of clones that have states, by page and clone IDs.
    parts: HashMap<CloneKey, Vec<Uoid<'static>>>,
    /// The approximate size of the states.
    bytes: usize,
    limit: usize,
    /// The quota used by each member.
    taken: Quotas,
    /// One member's quota.
    share: QuotaUse,
    age: Option<AgeState>,
    changed: BTreeMap<(ObjectKey, Box<str>), Uoid<'static>>,
    age_changed: bool,
    due: Option<Duration>,
}

/// The state of the age itself.
#[derive(Clone, Debug)]
struct AgeState {
    prefix: i32,
    object: Uoid<'static>,
    instance: ObjectState,
    shard: Option<ObjectState>,
}

/// The page, clone ID and player, which all parts of a clone share.
type CloneKey = (u32, u16, u32);

fn part_of(object: &Uoid<'_>) -> Option<CloneKey> {
    let ids = object.clone.filter(|ids| ids.id != 0)?;
    Some((object.location.sequence_number.0, ids.id, ids.player_id))
}

/// The origin of the age's own state.
const AGE_SENT: UpdateOrigin = UpdateOrigin { persist: true, avatar: false, player_id: 0 };

impl AgeState {
    fn shown(&self) -> ObjectState {
        match &self.shard {
            Some(shard) => hook::merged(&self.instance, shard),
            None => self.instance.clone(),
        }
    }
}

impl StateStore {
    /// An empty store. The age's own state follows the newest descriptor named after it; an age
    /// without such a descriptor has no state of its own.
    pub(super) fn new(
        name: &str,
        prefix: i32,
        descriptors: &Descriptors,
        bounds: &AgeBounds,
    ) -> Self {
        let age = descriptors.newest(name).zip(hook::object(prefix));
        let age = age.map(|(descriptor, object)| AgeState {
            prefix,
            object,
            instance: ObjectState::new(descriptor),
            shard: None,
        });
        Self {
            db: StateDb::with_limit(bounds.states),
            parts: HashMap::new(),
            bytes: 0,
            limit: bounds.state_bytes,
            taken: Quotas::default(),
            share: QuotaUse {
                states: bounds.share_of(bounds.states),
                bytes: bounds.share_of(bounds.state_bytes),
            },
            age,
            changed: BTreeMap::new(),
            age_changed: false,
            due: None,
        }
    }

    /// Applies a member's update. `due` is the deadline for storing the change.
    pub(super) fn apply(
        &mut self,
        object: &Uoid<'_>,
        update: &Blob<'_>,
        origin: UpdateOrigin,
        time: &UnifiedTime,
        due: Duration,
    ) -> Result<(), DropReason> {
        if let Some(age) = self.age_of(object, update) {
            is_small(weight(age.instance.record()), update)?;
            age.instance.apply(update, MergePolicy::OURS, time).map_err(refused)?;
            self.age_changed = true;
            self.due.get_or_insert(due);
            return Ok(());
        }
        let name = update.descriptor.name();
        let old = self.db.get(object, name);
        let (was_durable, old_weight) =
            old.map_or((false, 0), |old| (old.is_durable(), weight_of(old)));
        let named = object.name.stored().len() + weight(&update.record);
        let old = old.map(|old| old.origin.player_id);
        is_small(old_weight, update)?;
        self.has_share(origin.player_id, old, old_weight, named)?;
        if self.bytes - old_weight + old_weight.max(named) > self.limit {
            return Err(DropReason::Limit { what: "bytes of states", limit: self.limit });
        }
        let part = part_of(object).filter(|_| self.db.of(object).is_empty());
        let stored =
            self.db.apply(object, update, origin, MergePolicy::OURS, time).map_err(refused)?;
        if let Some(part) = part {
            self.parts.entry(part).or_default().push(stored.object.clone());
        }
        let new_weight = weight_of(stored);
        self.bytes = self.bytes - old_weight + new_weight;
        if let Some(old) = old {
            self.taken.give_back(old, old_weight);
        }
        self.taken.take(origin.player_id, new_weight);
        if was_durable || stored.is_durable() {
            let key = (ObjectKey::of(object), Box::from(name));
            self.changed.entry(key).or_insert_with(|| stored.object.clone());
            self.due.get_or_insert(due);
        }
        Ok(())
    }

    /// Whether a member's quota allows an update to a state last sent by `old`, or to a new state.
    fn has_share(
        &self,
        player_id: u32,
        old: Option<u32>,
        old_weight: usize,
        update: usize,
    ) -> Result<(), DropReason> {
        let taken = self.taken.of(player_id);
        if old.is_none() && taken.states >= self.share.states {
            let limit = self.share.states;
            return Err(DropReason::Limit { what: "states of a member", limit });
        }
        let payer = self.taken.payer(player_id);
        let is_own = old.is_some_and(|old| self.taken.payer(old) == payer);
        let own = if is_own { old_weight } else { 0 };
        // The bytes of a state taken over from another player count towards the quota, but only
        // growth is refused.
        let grows = update > old_weight;
        if grows && taken.bytes - own + update > self.share.bytes {
            let limit = self.share.bytes;
            return Err(DropReason::Limit { what: "bytes of a member's states", limit });
        }
        Ok(())
    }

    /// The state of the age, if the update applies to it.
    fn age_of(&mut self, object: &Uoid<'_>, update: &Blob<'_>) -> Option<&mut AgeState> {
        let age = self.age.as_mut()?;
        let name = age.instance.descriptor().name();
        let is_age = hook::is_hook(object, age.prefix)
            && name.eq_ignore_ascii_case(update.descriptor.name());
        is_age.then_some(age)
    }

    /// Restores a stored state.
    pub(super) fn restore(&mut self, object: Uoid<'static>, blob: &Blob<'_>) -> Result<()> {
        known(&object).map_err(|refusal| refusal.error().clone().inside("object"))?;
        let state = ObjectState::of(blob);
        let replaced = self.db.get(&object, state.descriptor().name());
        let replaced = replaced.map(|old| (old.origin.player_id, weight_of(old)));
        let old = replaced.map_or(0, |(_, weight)| weight);
        let bytes = self.bytes - old + object.name.stored().len() + weight(state.record());
        if bytes > self.limit {
            return Err(Error::limit("bytes of states", self.limit as u64, bytes as u64));
        }
        let part = part_of(&object).filter(|_| self.db.of(&object).is_empty());
        if let Some(part) = part {
            self.parts.entry(part).or_default().push(object.clone());
        }
        let origin = UpdateOrigin { persist: true, ..UpdateOrigin::default() };
        self.db.insert(StoredState { object, state, origin }).map_err(|refused| match refused {
            UpdateError::Full { limit } => Error::limit("states", limit as u64, limit as u64 + 1),
            other => Error::malformed("", other.to_string()),
        })?;
        self.bytes = bytes;
        if let Some((player_id, weight)) = replaced {
            self.taken.give_back(player_id, weight);
        }
        Ok(())
    }

    /// Sets the stored state of the age, or the shard's settings for it. An older version is
    /// upgraded.
    pub(super) fn restore_age(&mut self, blob: &Blob<'_>, is_shard: bool) -> Result<()> {
        let age = self.age.as_mut();
        let wanted = age.as_ref().map(|age| age.instance.descriptor().clone());
        let found = blob.descriptor.name();
        let fits = wanted.filter(|wanted| wanted.name().eq_ignore_ascii_case(found));
        let (Some(age), Some(newest)) = (age, fits) else {
            return Err(Error::malformed("a state of this age", format!("a state of {found}")));
        };
        let mut state = ObjectState::of(blob);
        if state.descriptor().version() < newest.version() {
            state = state.upgrade(&newest);
        }
        if is_shard {
            age.shard = Some(state);
        } else {
            age.instance = state;
        }
        Ok(())
    }

    /// Applies the differences in a vault node to the state of the age. Returns whether there are
    /// any.
    pub(super) fn edit_age(
        &mut self,
        blob: &Blob<'_>,
        time: &UnifiedTime,
        due: Duration,
    ) -> Result<bool> {
        let found = blob.descriptor.name();
        let age = self
            .age
            .as_mut()
            .filter(|age| age.instance.descriptor().name().eq_ignore_ascii_case(found));
        let Some(age) = age else {
            return Err(Error::malformed("a state of this age", format!("a state of {found}")));
        };
        let mut update = blob.clone();
        if age.instance.descriptor() == &update.descriptor {
            let stored = age.instance.record();
            update.record.simple.retain(|entry| {
                let old = stored.simple.iter().find(|old| old.index == entry.index);
                let sets_a_value = || entry.value.is_some();
                old.map_or_else(sets_a_value, |old| old.value != entry.value)
            });
            update.record.nested.retain(|entry| !stored.nested.iter().any(|old| old == entry));
            if update.record.simple.is_empty() && update.record.nested.is_empty() {
                return Ok(false);
            }
        }
        age.instance
            .apply(&update, MergePolicy::OURS, time)
            .map_err(|refused| Error::malformed("", refused.to_string()))?;
        self.age_changed = true;
        self.due.get_or_insert(due);
        Ok(true)
    }

    /// Records that a player joined.
    pub(super) fn joined(&mut self, player_id: u32, account: Uuid) {
        self.taken.joined(player_id, account);
    }

    /// Schedules storing the age's state because the stored one is unusable.
    pub(super) fn store_age_again(&mut self, due: Duration) {
        if self.age.is_some() {
            self.age_changed = true;
            self.due.get_or_insert(due);
        }
    }

    /// The state of the age as clients see it.
    pub(super) fn shown_age(&self) -> Option<ObjectState> {
        self.age.as_ref().map(AgeState::shown)
    }

    /// The state of the age, for joining members (initial) or those already present.
    pub(super) fn age_packet(&self, time: UnifiedTime, is_initial: bool) -> Option<Packet> {
        let age = self.age.as_ref()?;
        answer::state(time, &age.object, &age.shown(), AGE_SENT, is_initial).ok()
    }

    /// All states for a joining member, or only those on some pages; the age's own state comes
    /// first.
    pub(super) fn initial(
        &self,
        time: &UnifiedTime,
        pages: Option<&PageSet>,
        mut give: impl FnMut(Packet),
    ) {
        if let Some(age) = self.age_packet(time.clone(), true) {
            give(age);
        }
        for StoredState { object, state, origin } in self.db.iter() {
            if pages.is_none_or(|pages| pages.contains(&object.location)) {
                let packet = answer::state(time.clone(), object, state, *origin, true);
                packet.into_iter().for_each(&mut give);
            }
        }
    }

    /// Removes the states of a clone and its parts.
    pub(super) fn remove_clone(&mut self, clone: &Uoid<'_>) {
        let parts = part_of(clone).and_then(|part| self.parts.remove(&part));
        for object in parts.iter().flatten() {
            for stored in self.db.remove(object) {
                let weight = weight_of(&stored);
                self.bytes -= weight;
                self.taken.give_back(stored.origin.player_id, weight);
            }
        }
    }

    /// Removes the states of a player's avatar.
    pub(super) fn remove_avatar(&mut self, player_id: u32) {
        let (bytes, parts, taken) = (&mut self.bytes, &mut self.parts, &mut self.taken);
        self.db.retain(|stored| {
            let goes = stored.origin.avatar && stored.origin.player_id == player_id;
            if goes {
                let weight = weight_of(stored);
                *bytes -= weight;
                taken.give_back(player_id, weight);
            }
            !goes
        });
        // Objects without states are no longer tracked as parts.
        let db = &self.db;
        parts.retain(|_, objects| {
            objects.retain(|object| !db.of(object).is_empty());
            !objects.is_empty()
        });
    }

    /// The deadline for storing a state.
    pub(super) fn due(&self) -> Option<Duration> {
        self.due
    }

    /// Reports everything that must be stored.
    pub(super) fn flush(&mut self, mut report: impl FnMut(Event)) {
        self.due = None;
        if core::mem::take(&mut self.age_changed)
            && let Some(age) = &self.age
            && let Ok(blob) = age.instance.to_blob().to_bytes()
        {
            report(Event::StoreAge { blob });
        }
        for ((_, name), object) in core::mem::take(&mut self.changed) {
            let stored = self.db.get(&object, &name).filter(|stored| stored.is_durable());
            let blob = stored.and_then(|stored| stored.state.to_blob().to_bytes().ok());
            report(Event::StoreState { object, descriptor: name.into(), blob });
        }
    }

    pub(super) fn db(&self) -> &StateDb {
        &self.db
    }

    #[cfg(feature = "fuzzing")]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// A set of pages.
#[derive(Debug)]
pub(super) struct PageSet(BTreeSet<(u32, u16)>);

impl PageSet {
    pub(super) fn of<'l>(locations: impl Iterator<Item = &'l Location>) -> Self {
        Self(locations.map(Self::key).collect())
    }

    fn contains(&self, location: &Location) -> bool {
        self.0.contains(&Self::key(location))
    }

    fn key(location: &Location) -> (u32, u16) {
        (location.sequence_number.0, location.flags.0 & !LocationFlags::Itinerant.0)
    }
}

/// The approximate memory of a state.
fn weight_of(stored: &StoredState) -> usize {
    stored.object.name.stored().len() + weight(stored.state.record())
}

/// The approximate memory of a record.
fn weight(record: &StateRecord<'_>) -> usize {
    let hint = |head: &ValueHeader<'_>| head.hint.as_ref().map_or(0, |hint| hint.stored().len());
    let simple = record.simple.iter().map(|entry| {
        128 + hint(&entry.head) + entry.value.as_ref().map_or(0, |value| value.as_bytes().len())
    });
    let nested = record.nested.iter().map(|entry| {
        let elements = entry.elements.iter().map(|element| weight(&element.record));
        128 + hint(&entry.head) + elements.sum::<usize>()
    });
    128 + simple.sum::<usize>() + nested.sum::<usize>()
}

/// Whether a state of this weight will still fit into one message after an update. The weight is an
/// upper bound for the encoded size.
fn is_small(weighs: usize, update: &Blob<'_>) -> Result<(), DropReason> {
    const MAX: usize = MAX_BYTES - (16 << 10);
    match weighs + weight(&update.record) {
        0..=MAX => Ok(()),
        _ => Err(DropReason::Limit { what: "bytes of a state", limit: MAX }),
    }
}

fn refused(refused: UpdateError) -> DropReason {
    match refused {
        UpdateError::Full { limit } => DropReason::Limit { what: "states", limit },
        UpdateError::Older { name, stored, update } => {
            let wanted = format!("version {stored} of {name}, or a newer one");
            DropReason::Descriptor(Error::malformed(wanted, update.to_string()))
        }
        other => DropReason::Descriptor(Error::malformed("", other.to_string())),
    }
}

/// Decodes an object's state sent by a client. No bytes may be left over.
pub(super) fn read_blob<'d>(
    payload: &'d [u8],
    descriptors: &Descriptors,
    limits: &'d Limits,
) -> Result<Blob<'d>, DropReason> {
    let head = BlobHeader::decode_fields(&mut Reader::within(payload, limits));
    let head = head.map_err(|error| DropReason::Malformed(error.closed()))?;
    if let Err(unknown) = descriptors.find(&head.name.to_bytes(), head.version) {
        return Err(DropReason::Descriptor(unknown.into()));
    }
    let mut reader = Reader::within(payload, limits);
    let blob = Blob::decode(descriptors, &mut reader);
    let blob = blob.and_then(|blob| reader.end().map(|()| blob));
    blob.map_err(|error| DropReason::Malformed(error.closed()))
}

/// Checks a state for text that would crash clients and for objects that must not be forwarded.
pub(crate) fn check_blob(
    blob: &Blob<'_>,
    rules: &Rules<'_>,
    limits: &Limits,
) -> Result<(), Refusal> {
    text(&blob.head.name).map_err(|refusal| refusal.inside("descriptor"))?;
    if let Some(object) = &blob.head.object {
        known(object).map_err(|refusal| refusal.inside("object"))?;
    }
    check_record(&blob.record, blob.descriptor.shape(), rules, limits)
}

fn check_record(
    record: &StateRecord<'_>,
    shape: Shape<'_>,
    rules: &Rules<'_>,
    limits: &Limits,
) -> Result<(), Refusal> {
    for entry in &record.simple {
        let Some(variable) = shape.simple(entry.index as usize) else { continue };
        let named = |refusal: Refusal| refusal.inside(variable.label());
        check_head(&entry.head).map_err(named)?;
        let simple = variable.simple_type();
        let kind = simple.filter(|kind| matches!(kind, Type::Key | Type::Creatable));
        let (Some(kind), Some(value)) = (kind, &entry.value) else { continue };
        for (index, scalar) in value.scalars(kind).enumerate() {
            let checked = match scalar {
                Scalar::Key(object) => known(&object),
                Scalar::Creatable(Some((class, bytes))) => {
                    check_object(class, bytes, rules, limits)
                }
                _ => Ok(()),
            };
            checked.map_err(|refusal| named(refusal.inside_item(index)))?;
        }
    }
    for entry in &record.nested {
        let Some((variable, inner)) = shape.nested(entry.index as usize) else { continue };
        let named = |refusal: Refusal| refusal.inside(variable.label());
        check_head(&entry.head).map_err(named)?;
        for element in &entry.elements {
            check_record(&element.record, inner, rules, limits)
                .map_err(|refusal| named(refusal.inside_item(element.index as usize)))?;
        }
    }
    Ok(())
}

fn check_head(head: &ValueHeader<'_>) -> Result<(), Refusal> {
    match &head.hint {
        Some(hint) => text(hint).map_err(|refusal| refusal.inside("hint")),
        None => Ok(()),
    }
}

/// Checks that the object can exist on all clients and that they can read its name.
fn known(object: &Uoid<'_>) -> Result<(), Refusal> {
    match object.location.sequence_number.0 {
        1..=0x20 => Err(Refusal::at(Reason::LocalObject, None, 0)),
        _ => text(&object.name),
    }
}

fn text(text: &SafeString<'_>) -> Result<(), Refusal> {
    if text.crashes_client() { Err(Refusal::at(Reason::Text, None, 0)) } else { Ok(()) }
}

/// An object embedded in a state. Only Plasma messages can be checked, so all other objects are
/// refused; real descriptors have no such variables.
fn check_object(
    class: u16,
    bytes: &[u8],
    rules: &Rules<'_>,
    limits: &Limits,
) -> Result<(), Refusal> {
    if PlasmaMessage::info(class.into()).is_none_or(|info| info.fields.is_none()) {
        return Err(Refusal::at(Reason::UnknownInside(class), None, 0));
    }
    let whole = [&class.to_le_bytes(), bytes].concat();
    check_payload(&whole, rules, &mut Inflater::new(), limits)
}
