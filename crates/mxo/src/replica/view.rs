//! The state of a view.

use std::collections::BTreeMap;

use worldwire_core::Side;

use crate::message::{Create, Movement, Properties, Update, Viewed};
use crate::schema::{ClassId, Objects, Order, Slot};
use crate::types::{PropertyType, Value, text};

/// A packet that contained a value: its sender and its count.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketStamp {
    pub(super) from: Side,
    pub(super) count: u64,
}

/// The last packet of each side that contained a value; the sides count independently.
type Last = [u64; 2];

impl PacketStamp {
    /// Whether this packet is at least as new as the same side's last one. If so, records it as the
    /// last one.
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

/// The state of a view: its create, and all updates since.
#[derive(Clone, Debug)]
pub struct View {
    goid: u16,
    world_id: Option<u32>,
    spawn_seq: u8,
    viewed: Viewed,
    /// The count of the packet that created it.
    created: u64,
    /// The values by property name; shown in create order.
    values: BTreeMap<Box<str>, Held>,
    movement: Movement,
    /// The last packet for each movement field.
    moved: [Last; 6],
}

/// A stored value.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) kind: PropertyType,
    /// Length-prefixed text may be shorter or longer than its type states.
    pub(super) bytes: Box<[u8]>,
    /// The index in creates; other properties follow.
    rank: u32,
    /// The last packet that contained it.
    last: Last,
}

impl Held {
    fn new(slot: &Slot, bytes: &[u8], index: usize, last: Last) -> Self {
        let rank = match slot.create_index() {
            Some(index) => u32::from(index),
            None => (1 << 16) + u32::try_from(index).unwrap_or(0),
        };
        Self { kind: slot.kind(), bytes: bytes.into(), rank, last }
    }

    pub(super) fn value(&self) -> Value<'_> {
        match self.kind.read(&self.bytes) {
            Some(value) => value,
            None => Value::Text(text::decode(&self.bytes)),
        }
    }
}

impl View {
    pub(super) fn new(create: &Create<'_>, objects: &Objects, stamp: PacketStamp) -> Self {
        let mut view = Self {
            goid: create.goid,
            world_id: create.world_id,
            spawn_seq: create.spawn_seq,
            viewed: Viewed { class: create.class, guess: create.guess },
            created: stamp.count,
            values: BTreeMap::new(),
            movement: Movement::default(),
            moved: [[0; 2]; 6],
        };
        if let Some(class) = objects.class(create.class) {
            view.take(class.create(), &create.properties, stamp);
        }
        view
    }

    /// Whether a value from the server is older than the view.
    pub(super) const fn is_behind(&self, count: u64) -> bool {
        count < self.created
    }

    /// Whether the view was created before a packet was sent.
    pub(super) const fn is_older_than(&self, count: u64) -> bool {
        self.created < count
    }

    /// Whether a create describes this view.
    pub(super) fn is_of(&self, create: &Create<'_>) -> bool {
        (self.goid, self.spawn_seq, self.world_id)
            == (create.goid, create.spawn_seq, create.world_id)
    }

    /// Applies all values that are not older than the stored ones. Returns false if one was older.
    pub(super) fn update(
        &mut self,
        update: &Update<'_>,
        objects: &Objects,
        stamp: PacketStamp,
    ) -> bool {
        let order =
            objects.class(update.class).and_then(|class| class.updates().order(update.view));
        let mut is_fresh = true;
        if let (Some(properties), Some(order)) = (&update.properties, order) {
            is_fresh &= self.take(order, properties, stamp);
        }
        if let Some(new) = update.movement {
            is_fresh &= self.apply_movement(new, stamp);
        }
        is_fresh
    }

    fn take(&mut self, order: &Order, properties: &Properties<'_>, stamp: PacketStamp) -> bool {
        let mut is_fresh = true;
        for property in properties.list() {
            let Some(slot) = order.slot(property.index()) else { continue };
            let known = self.values.get_mut(slot.name());
            let mut last = known.as_ref().map_or([0; 2], |held| held.last);
            if !stamp.replaces(&mut last) {
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

    fn apply_movement(&mut self, new: Movement, stamp: PacketStamp) -> bool {
        fn set<T>(
            old: &mut Option<T>,
            new: Option<T>,
            last: &mut Last,
            stamp: PacketStamp,
        ) -> bool {
            if new.is_none() {
                return true;
            }
            let is_fresh = stamp.replaces(last);
            if is_fresh {
                *old = new;
            }
            is_fresh
        }
        let old = &mut self.movement;
        let [script_counter, animation, action, yaw, position, time] = &mut self.moved;
        let fresh = [
            set(&mut old.script_counter, new.script_counter, script_counter, stamp),
            set(&mut old.animation, new.animation, animation, stamp),
            set(&mut old.action, new.action, action, stamp),
            set(&mut old.yaw, new.yaw, yaw, stamp),
            set(&mut old.position, new.position, position, stamp),
            set(&mut old.time, new.time, time, stamp),
        ];
        if new.script_counter.is_some() && fresh[0] {
            old.script = new.script;
        }
        fresh.into_iter().all(|it| it)
    }

    /// The game object type.
    #[must_use]
    pub const fn goid(&self) -> u16 {
        self.goid
    }

    /// The world object that it is a view of.
    #[must_use]
    pub const fn world_id(&self) -> Option<u32> {
        self.world_id
    }

    /// Distinguishes successive objects with the same view ID.
    #[must_use]
    pub const fn spawn_seq(&self) -> u8 {
        self.spawn_seq
    }

    /// The object's class.
    #[must_use]
    pub const fn class(&self) -> ClassId {
        self.viewed.class
    }

    /// Whether the class is a guess, which makes the names of properties guesses, too.
    #[must_use]
    pub const fn is_guess(&self) -> bool {
        self.viewed.guess
    }

    pub(super) const fn viewed(&self) -> Viewed {
        self.viewed
    }

    /// The newest value of a property; `None` if it has not been set.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<Value<'_>> {
        self.values.get(name).map(Held::value)
    }

    /// The newest values of all properties that have been set, in create order.
    #[must_use]
    pub fn values(&self) -> Vec<(&str, Value<'_>)> {
        self.held().into_iter().map(|(name, held)| (name, held.value())).collect()
    }

    /// The newest movement: each field as it was last set.
    #[must_use]
    pub const fn movement(&self) -> &Movement {
        &self.movement
    }

    /// The object's position, from its last movement or its create.
    #[must_use]
    pub fn position(&self) -> Option<[f64; 3]> {
        if let Some(position) = self.movement.position {
            return Some(position.map(f64::from));
        }
        match self.value("Position")? {
            Value::Vector3d(position) => Some(position),
            Value::Vector3f(position) => Some(position.map(f64::from)),
            _ => None,
        }
    }

    pub(super) fn held(&self) -> Vec<(&str, &Held)> {
        let mut held: Vec<_> = self.values.iter().map(|(name, held)| (&**name, held)).collect();
        held.sort_by_key(|(_, held)| held.rank);
        held
    }
}
