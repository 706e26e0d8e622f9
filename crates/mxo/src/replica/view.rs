//! What is known of one view.

use std::collections::BTreeMap;

use worldwire_core::Side;

use crate::message::{Create, Movement, Properties, Update, Viewed};
use crate::schema::{ClassId, Objects, Order, Slot};
use crate::types::{PropertyType, Value, text};

/// Which packet something was told in: who sent it, and its count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    pub(super) from: Side,
    pub(super) count: u64,
}

/// The packets that told something last: one of each side, which count for themselves.
type Last = [u64; 2];

impl Told {
    /// Whether this is not older than what the same side told last; it is the last then.
    fn replaces(self, last: &mut Last) -> bool {
        let [client, server] = last;
        let last = match self.from {
            Side::Client => client,
            Side::Server => server,
        };
        let is_newer = self.count >= *last;
        if is_newer {
            *last = self.count;
        }
        is_newer
    }
}

/// The state of a view: what its create said, and every update since.
#[derive(Clone, Debug)]
pub struct View {
    goid: u16,
    world_id: Option<u32>,
    spawn_seq: u8,
    viewed: Viewed,
    /// The count of the packet that created it.
    created: u64,
    /// By name; in the order of creates when they are shown.
    values: BTreeMap<Box<str>, Held>,
    movement: Movement,
    /// When each field of the movement was told.
    moved: [Last; 6],
}

/// A value that was told.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) kind: PropertyType,
    /// Fewer or more bytes than the type has for text that came with a count.
    pub(super) bytes: Box<[u8]>,
    /// The place among those of the view: that in creates, or behind all of them.
    place: u32,
    /// When it was told.
    last: Last,
}

impl Held {
    fn new(slot: &Slot, bytes: &[u8], index: usize, last: Last) -> Self {
        let place = match slot.create_index() {
            Some(index) => u32::from(index),
            None => (1 << 16) + u32::try_from(index).unwrap_or(0),
        };
        Self { kind: slot.kind(), bytes: bytes.into(), place, last }
    }

    pub(super) fn value(&self) -> Value<'_> {
        match self.kind.read(&self.bytes) {
            Some(value) => value,
            None => Value::Text(text::decode(&self.bytes)),
        }
    }
}

impl View {
    pub(super) fn new(create: &Create<'_>, objects: &Objects, told: Told) -> Self {
        let mut view = Self {
            goid: create.goid,
            world_id: create.world_id,
            spawn_seq: create.spawn_seq,
            viewed: Viewed { class: create.class, guess: create.guess },
            created: told.count,
            values: BTreeMap::new(),
            movement: Movement::default(),
            moved: [[0; 2]; 6],
        };
        if let Some(class) = objects.class(create.class) {
            view.take(class.create(), &create.properties, told);
        }
        view
    }

    /// Whether something that the server told is older than the view.
    pub(super) const fn is_behind(&self, count: u64) -> bool {
        count < self.created
    }

    /// Whether it is what a create makes.
    pub(super) fn is_of(&self, create: &Create<'_>) -> bool {
        (self.goid, self.spawn_seq, self.world_id)
            == (create.goid, create.spawn_seq, create.world_id)
    }

    /// Takes in what is not older than what is known. False when something was older.
    pub(super) fn update(&mut self, update: &Update<'_>, objects: &Objects, told: Told) -> bool {
        let order =
            objects.class(update.class).and_then(|class| class.updates().order(update.view));
        let mut is_fresh = true;
        if let (Some(properties), Some(order)) = (&update.properties, order) {
            is_fresh &= self.take(order, properties, told);
        }
        if let Some(new) = update.movement {
            is_fresh &= self.move_to(new, told);
        }
        is_fresh
    }

    fn take(&mut self, order: &Order, properties: &Properties<'_>, told: Told) -> bool {
        let mut is_fresh = true;
        for property in properties.list() {
            let Some(slot) = order.slot(property.index()) else { continue };
            let known = self.values.get_mut(slot.name());
            let mut last = known.as_ref().map_or([0; 2], |held| held.last);
            if !told.replaces(&mut last) {
                is_fresh = false;
                continue;
            }
            let held = Held::new(slot, property.bytes(), property.index(), last);
            match known {
                Some(room) => *room = held,
                None => drop(self.values.insert(slot.name().into(), held)),
            }
        }
        is_fresh
    }

    fn move_to(&mut self, new: Movement, told: Told) -> bool {
        fn set<T>(old: &mut Option<T>, new: Option<T>, last: &mut Last, told: Told) -> bool {
            if new.is_none() {
                return true;
            }
            let is_fresh = told.replaces(last);
            if is_fresh {
                *old = new;
            }
            is_fresh
        }
        let old = &mut self.movement;
        let [script_counter, animation, action, yaw, position, time] = &mut self.moved;
        let fresh = [
            set(&mut old.script_counter, new.script_counter, script_counter, told),
            set(&mut old.animation, new.animation, animation, told),
            set(&mut old.action, new.action, action, told),
            set(&mut old.yaw, new.yaw, yaw, told),
            set(&mut old.position, new.position, position, told),
            set(&mut old.time, new.time, time, told),
        ];
        fresh.into_iter().all(|it| it)
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
