//! Completes tables from the built-in ones.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::class::{Class, Group, Updates};
use super::tables::Tables;
use crate::types::PropertyType;

static BUILT_IN: LazyLock<Tables> = LazyLock::new(Tables::built_in);

/// Types by name and size.
static TYPES: LazyLock<HashMap<(&str, u8), PropertyType>> = LazyLock::new(|| {
    let slots = BUILT_IN.classes().iter().flat_map(|class| class.create().slots());
    let typed = slots.filter(|slot| !slot.kind().is_raw());
    let mut types: HashMap<_, _> =
        typed.map(|slot| ((slot.name(), slot.kind().size()), slot.kind())).collect();
    types.insert(("Identifier", PropertyType::Locator.size()), PropertyType::Locator);
    types
});

/// The type of a property with a known name and size: its type in the built-in classes, or else raw
/// bytes.
pub(super) fn type_of(name: &str, size: u8) -> Option<PropertyType> {
    TYPES.get(&(name, size)).copied().or_else(|| PropertyType::raw(size.into()))
}

/// Adds an update order to a class when the file does not state the layout of updates.
///
/// Unverified: a class with the property `NPCRank` is updated as an NPC, and one with the layout of
/// the built-in player as a player, whose own view has the built-in order. Captured updates of such
/// goobjs other than 12 and 599 would settle it.
pub(super) fn grouped(class: Class, updates: &[(&str, PropertyType)]) -> Class {
    let updates = updates.iter().copied();
    if class.create().index_of("NPCRank").is_some() {
        return class.grouped(Group::Npc, updates);
    }
    let player = BUILT_IN.class("player");
    if let Some(player) = player.filter(|player| layout(player).eq(layout(&class)))
        && let Updates::Player { own: Some(own), .. } = player.updates()
    {
        let own = own.slots().iter().map(|slot| (slot.name(), slot.kind()));
        return class.grouped(Group::Own, own).grouped(Group::Other, updates);
    }
    class.grouped(Group::Plain, updates)
}

/// The names and sizes of the create order.
pub(super) fn layout(class: &Class) -> impl Iterator<Item = (&str, u8)> {
    class.create().slots().iter().map(|slot| (slot.name(), slot.kind().size()))
}
