//! The state of the age itself: what doors are open, which day it is.
//!
//! Clients keep it under a scene object of a fixed name in a page of its own, and it follows the
//! descriptor that has the name of the age. A server keeps it in the vault, as the SDL node of the
//! age. Beside the state of the instance there can be settings for all instances of a shard.

use super::record::{SimpleVariable, StateRecord};
use super::state::ObjectState;
use crate::types::{Location, LocationFlags, SafeString, SequenceNumber, Uoid};

/// The name of the object.
pub const NAME: &str = "AgeSDLHook";
/// Its class: a scene object.
pub const CLASS_INDEX: u16 = 1;
/// The page it is in: -2, the one for what is built in.
pub const PAGE: u16 = 0xfffe;

/// The object of an age, by the `SequencePrefix` of the age's `.age` file; `None` when there is no
/// such page.
#[must_use]
pub fn object(prefix: i32) -> Option<Uoid<'static>> {
    Some(Uoid {
        location: location(prefix)?,
        load_mask: None,
        class_index: CLASS_INDEX,
        object_id: 1,
        name: SafeString::from(NAME),
        clone: None,
    })
}

fn location(prefix: i32) -> Option<Location> {
    let sequence_number = SequenceNumber::from_page(prefix, PAGE)?;
    Some(Location { sequence_number, flags: LocationFlags::BuiltIn })
}

/// Whether an object is the one of this age. Others of the same name in other pages, or clones of
/// it, are ordinary objects.
#[must_use]
pub fn is_hook(object: &Uoid<'_>, prefix: i32) -> bool {
    object.class_index == CLASS_INDEX
        && object.clone.is_none_or(|ids| ids.id == 0 && ids.player_id == 0)
        && location(prefix).is_some_and(|page| page.same_page(&object.location))
        && object.name.to_bytes() == NAME.as_bytes()
}

/// What clients of an instance see: the state of the instance over the settings of the shard over
/// the defaults.
///
/// A simple variable that both have comes from the one that was changed later; without a time it was
/// changed before all others, and of equal times the instance counts. Nested variables have no
/// time, so the instance counts for them. The state follows the descriptor of the instance.
#[must_use]
pub fn merged(instance: &ObjectState, shard: &ObjectState) -> ObjectState {
    if !instance.descriptor.is(&shard.descriptor) {
        return over(instance, &shard.upgrade(&instance.descriptor));
    }
    over(instance, shard)
}

fn over(instance: &ObjectState, shard: &ObjectState) -> ObjectState {
    let time = |entry: &SimpleVariable<'_>| {
        entry.time.as_ref().map(|time| (time.seconds, time.microseconds))
    };
    let (ours, theirs) = (&instance.record, &shard.record);
    let simple = join(
        &ours.simple,
        &theirs.simple,
        |one| one.index,
        |ours, theirs| {
            if time(theirs) > time(ours) { theirs } else { ours }
        },
    );
    let nested = join(&ours.nested, &theirs.nested, |one| one.index, |ours, _| ours);
    let record = StateRecord { flags: ours.flags, simple, nested };
    ObjectState { descriptor: instance.descriptor.clone(), record }
}

/// Joins two lists whose indices ascend; `choose` decides about what both have.
fn join<E: Clone>(
    ours: &[E],
    theirs: &[E],
    index: impl Fn(&E) -> u32,
    choose: impl for<'e> Fn(&'e E, &'e E) -> &'e E,
) -> Vec<E> {
    let mut joined = Vec::with_capacity(ours.len().max(theirs.len()));
    let (mut ours, mut theirs) = (ours.iter().peekable(), theirs.iter().peekable());
    loop {
        let chosen = match (ours.peek(), theirs.peek()) {
            (None, None) => return joined,
            (Some(_), None) => ours.next(),
            (None, Some(_)) => theirs.next(),
            (Some(our), Some(their)) => match index(our).cmp(&index(their)) {
                core::cmp::Ordering::Less => ours.next(),
                core::cmp::Ordering::Greater => theirs.next(),
                core::cmp::Ordering::Equal => match (ours.next(), theirs.next()) {
                    (Some(our), Some(their)) => Some(choose(our, their)),
                    _ => None,
                },
            },
        };
        joined.extend(chosen.cloned());
    }
}
