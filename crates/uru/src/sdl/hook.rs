//! The state of the age itself, such as which doors are open or which day it is.
//!
//! Clients keep this state in a scene object with a fixed name on a special page. It follows the
//! descriptor named after the age. A server stores it in the vault, in the age's SDL node. Besides
//! the state of an instance, there can be shard settings that apply to all instances.

use super::record::{SimpleVariable, StateRecord};
use super::state::ObjectState;
use crate::types::{Location, LocationFlags, SafeString, SequenceNumber, Uoid};

/// The object's name.
pub const NAME: &str = "AgeSDLHook";
/// The object's class: a scene object.
const CLASS_INDEX: u16 = 1;
/// The object's page: -2, the page for built-in objects.
pub const PAGE: u16 = 0xfffe;

/// The object for an age, given the `SequencePrefix` of its age file; `None` if there is no such
/// page for the prefix.
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
    let reserved = LocationFlags(if prefix < 0 { LocationFlags::Reserved.0 } else { 0 });
    Some(Location { sequence_number, flags: LocationFlags::BuiltIn | reserved })
}

/// Whether an object is the one that holds this age's state. Objects with the same name on other
/// pages are ordinary objects, and so are clones of this object.
#[must_use]
pub fn is_hook(object: &Uoid<'_>, prefix: i32) -> bool {
    object.class_index == CLASS_INDEX
        && object.clone.is_none_or(|ids| ids.id == 0 && ids.player_id == 0)
        && location(prefix).is_some_and(|page| page.same_page(&object.location))
        && object.name.to_bytes() == NAME.as_bytes()
}

/// The state as clients of an instance see it: the instance's state, then the shard's settings,
/// then the defaults, in that order of precedence.
///
/// If both the instance and the settings set a simple variable, the one changed later wins. A
/// variable without a time counts as older than any other; with equal times, the instance wins.
/// Nested variables have no time, so the instance wins. The result follows the instance's
/// descriptor.
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

/// Merges two lists with ascending indices; `choose` resolves entries that are in both.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages of ages with a negative prefix are reserved, and clients mark them as such.
    #[test]
    fn the_page_of_a_global_age_is_reserved() {
        let object = object(-6).unwrap();
        assert_eq!(object.location.flags, LocationFlags::BuiltIn | LocationFlags::Reserved);
        assert!(is_hook(&object, -6));
        let object = super::object(6).unwrap();
        assert_eq!(object.location.flags, LocationFlags::BuiltIn);
        assert!(is_hook(&object, 6) && !is_hook(&object, -6));
    }
}
