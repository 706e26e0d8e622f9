//! What is known of one view.

use std::collections::BTreeMap;

use crate::message::{Create, Movement, Update, Viewed};
use crate::schema::{ClassId, Objects, Order, Slot};
use crate::types::{PropertyType, Value, text};

/// The state of a view: what its create said, and every update since.
#[derive(Clone, Debug)]
pub struct View {
    goid: u16,
    world_id: Option<u32>,
    spawn_seq: u8,
    viewed: Viewed,
    /// By name; in the order of creates when they are shown.
    values: BTreeMap<Box<str>, Held>,
    movement: Movement,
}

/// A value that was told.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) kind: PropertyType,
    /// Fewer or more bytes than the type has for text that came with a count.
    pub(super) bytes: Box<[u8]>,
    /// The place among those of the view: that in creates, or behind all of them.
    place: u32,
}

impl Held {
    fn new(slot: &Slot, bytes: &[u8], index: usize) -> Self {
        let place = match slot.create_index() {
            Some(index) => u32::from(index),
            None => (1 << 16) + u32::try_from(index).unwrap_or(0),
        };
        Self { kind: slot.kind(), bytes: bytes.into(), place }
    }

    pub(super) fn value(&self) -> Value<'_> {
        match self.kind.read(&self.bytes) {
            Some(value) => value,
            None => Value::Text(text::decode(&self.bytes)),
        }
    }
}

impl View {
    pub(super) fn new(create: &Create<'_>, objects: &Objects) -> Self {
        let mut view = Self {
            goid: create.goid,
            world_id: create.world_id,
            spawn_seq: create.spawn_seq,
            viewed: Viewed { class: create.class, guess: create.guess },
            values: BTreeMap::new(),
            movement: Movement::default(),
        };
        if let Some(class) = objects.class(create.class) {
            view.take(class.create(), &create.properties);
        }
        view
    }

    /// Whether it is what a create makes.
    pub(super) fn is_of(&self, create: &Create<'_>) -> bool {
        (self.goid, self.spawn_seq, self.world_id)
            == (create.goid, create.spawn_seq, create.world_id)
    }

    pub(super) fn update(&mut self, update: &Update<'_>, objects: &Objects) {
        let order =
            objects.class(update.class).and_then(|class| class.updates().order(update.view));
        if let (Some(properties), Some(order)) = (&update.properties, order) {
            self.take(order, properties);
        }
        if let Some(new) = update.movement {
            let old = &mut self.movement;
            *old = Movement {
                script_counter: new.script_counter.or(old.script_counter),
                animation: new.animation.or(old.animation),
                action: new.action.or(old.action),
                yaw: new.yaw.or(old.yaw),
                position: new.position.or(old.position),
                time: new.time.or(old.time),
            };
        }
    }

    fn take(&mut self, order: &Order, properties: &crate::message::Properties<'_>) {
        for property in properties.list() {
            let Some(slot) = order.slot(property.index()) else { continue };
            let held = Held::new(slot, property.bytes(), property.index());
            match self.values.get_mut(slot.name()) {
                Some(room) => *room = held,
                None => {
                    self.values.insert(slot.name().into(), held);
                }
            }
        }
    }

    /// The game object type.
    #[must_use]
    pub const fn goid(&self) -> u16 {
        self.goid
    }

    /// The object of the world that it is a view of.
    #[must_use]
    pub const fn world_id(&self) -> Option<u32> {
        self.world_id
    }

    /// Tells objects apart that had the view id one after the other.
    #[must_use]
    pub const fn spawn_seq(&self) -> u8 {
        self.spawn_seq
    }

    /// The class.
    #[must_use]
    pub const fn class(&self) -> ClassId {
        self.viewed.class
    }

    /// Whether the class is a guess, and so the names of properties.
    #[must_use]
    pub const fn is_guess(&self) -> bool {
        self.viewed.guess
    }

    pub(super) const fn viewed(&self) -> Viewed {
        self.viewed
    }

    /// The latest value of a property. `None` when no value was told.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<Value<'_>> {
        self.values.get(name).map(Held::value)
    }

    /// The latest values of all properties that were told, in the order of creates.
    #[must_use]
    pub fn values(&self) -> Vec<(&str, Value<'_>)> {
        self.held().into_iter().map(|(name, held)| (name, held.value())).collect()
    }

    /// The latest movement: each field as it was told last.
    #[must_use]
    pub const fn movement(&self) -> &Movement {
        &self.movement
    }

    pub(super) fn held(&self) -> Vec<(&str, &Held)> {
        let mut held: Vec<_> = self.values.iter().map(|(name, held)| (&**name, held)).collect();
        held.sort_by_key(|(_, held)| held.place);
        held
    }
}
