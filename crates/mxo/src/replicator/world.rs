//! Objects of the world: their newest values, kept once for all clients.

use core::ops::Range;
use std::borrow::Cow;
use std::mem::take;
use std::sync::Arc;

use worldwire_core::{Error, Result, Side, Writer};

use super::layout::{
    ACTION, ANIMATION, Audience, FIRST_MOVEMENT, Layout, MOVEMENT, MOVEMENT_FIELDS, Mask, POSITION,
    YAW, bits,
};
use crate::message::{Create, Movement, Properties, Update};
use crate::schema::{ClassId, Objects};
use crate::types::text;

/// A place in the world: x, y (height), z.
pub type Place = [f64; 3];

/// An object, and what it was in its place before.
#[derive(Debug)]
pub(super) struct Thing {
    /// Grows when the place in the list is used for another object.
    pub(super) generation: u32,
    pub(super) alive: bool,
    pub(super) class: u16,
    pub(super) goid: u16,
    pub(super) world_id: Option<u32>,
    pub(super) movement: Movement,
    /// Fields of the movement that the object's own client said, so it is not told of them.
    pub(super) muted: Mask,
    /// The client whose character it is.
    pub(super) owner: Option<u32>,
    values: Box<[u8]>,
    /// Which fields have a value.
    present: [u64; 4],
    /// When each field, and each field of the movement, got its value: see [`World::stamp`].
    changed: Box<[u64]>,
    /// Grows with every change.
    version: u64,
    /// What changed since the last tick, for each audience.
    pub(super) fresh: [Mask; 2],
    /// Who has a view of it that is not being deleted.
    pub(super) viewers: Vec<Viewer>,
    /// What was encoded of it last.
    forms: [Form; 3],
}

/// A view of an object: the client, and the place among its views.
#[derive(Clone, Copy, Debug)]
pub(super) struct Viewer {
    pub(super) client: u32,
    pub(super) slot: u32,
}

/// Bytes that were encoded in this tick.
#[derive(Clone, Debug, Default)]
struct Form {
    tick: u64,
    version: u64,
    mask: Mask,
    range: Range<usize>,
}

/// The form of creates; those of updates are numbered by audience.
const CREATE: usize = 2;

/// All objects, and what they are encoded with.
#[derive(Debug)]
pub(super) struct World {
    pub(super) objects: Arc<Objects>,
    /// By class.
    pub(super) layouts: Vec<Layout>,
    pub(super) things: Vec<Thing>,
    /// Where each of them is, for interest.
    pub(super) places: Vec<Place>,
    pub(super) free: Vec<u32>,
    pub(super) tick: u64,
    /// Grows with every section: a value that changed at a later stamp than that of a section is
    /// not in it.
    pub(super) stamp: u64,
    /// Things with something fresh.
    pub(super) changed: Vec<u32>,
    /// What was encoded in this tick.
    arena: Vec<u8>,
}

impl World {
    pub(super) fn new(objects: Arc<Objects>) -> Self {
        let layouts = objects.classes().map(|(id, class)| Layout::new(id, class, &objects));
        let layouts = layouts.collect();
        Self {
            objects,
            layouts,
            things: Vec::new(),
            places: Vec::new(),
            free: Vec::new(),
            tick: 1,
            stamp: 1,
            changed: Vec::new(),
            arena: Vec::new(),
        }
    }

    /// How many objects there are.
    pub(super) fn len(&self) -> usize {
        self.things.len() - self.free.len()
    }

    /// Adds an object without values.
    pub(super) fn add(
        &mut self,
        class: ClassId,
        goid: u16,
        world_id: Option<u32>,
        place: Place,
    ) -> u32 {
        let layout = &self.layouts[usize::from(class.number())];
        let thing = Thing {
            generation: 0,
            alive: true,
            class: class.number(),
            goid,
            world_id,
            movement: Movement::default(),
            muted: 0,
            owner: None,
            values: vec![0; layout.bytes].into(),
            present: [0; 4],
            changed: vec![0; layout.fields.len() + MOVEMENT_FIELDS].into(),
            version: 0,
            fresh: [0; 2],
            viewers: Vec::new(),
            forms: Default::default(),
        };
        if let Some(index) = self.free.pop() {
            let old = &mut self.things[index as usize];
            *old = Thing { generation: old.generation, ..thing };
            self.places[index as usize] = place;
            return index;
        }
        self.things.push(thing);
        self.places.push(place);
        u32::try_from(self.things.len() - 1).unwrap_or(u32::MAX)
    }

    /// Takes an object out. Its viewers are gone already.
    pub(super) fn remove(&mut self, index: u32) {
        let thing = &mut self.things[index as usize];
        thing.alive = false;
        thing.generation = thing.generation.wrapping_add(1);
        thing.viewers = Vec::new();
        thing.fresh = [0; 2];
        self.free.push(index);
    }

    pub(super) fn layout(&self, thing: &Thing) -> &Layout {
        &self.layouts[usize::from(thing.class)]
    }

    /// Gives a field a value of the right size.
    pub(super) fn set(&mut self, index: u32, field: usize, bytes: &[u8]) {
        let thing = &mut self.things[index as usize];
        let layout = &self.layouts[usize::from(thing.class)];
        let field_of = &layout.fields[field];
        let value = &mut thing.values[field_of.range()];
        let (word, bit) = (field / 64, 1 << (field % 64));
        if thing.present[word] & bit != 0 && value == bytes {
            return;
        }
        value.copy_from_slice(bytes);
        thing.present[word] |= bit;
        thing.changed[field] = self.stamp;
        thing.version += 1;
        let bits = field_of.bits;
        self.freshen(index, bits);
    }

    /// Gives it those fields of a movement that are there. `said` is whether the object's own
    /// client said so.
    pub(super) fn set_movement(&mut self, index: u32, new: &Movement, said: bool) {
        let thing = &mut self.things[index as usize];
        let layout = &self.layouts[usize::from(thing.class)];
        let old = thing.movement;
        let told = told_by(new);
        thing.movement = Movement {
            script_counter: None,
            animation: new.animation.or(old.animation),
            action: new.action.or(old.action),
            yaw: new.yaw.or(old.yaw),
            position: new.position.or(old.position),
            time: new.time.or(old.time),
        };
        let was_muted = thing.muted;
        thing.muted = if said { was_muted | told } else { was_muted & !told };
        let same = |mask, same: bool| if same { mask } else { 0 };
        let unchanged = same(ANIMATION, old.animation == thing.movement.animation)
            | same(ACTION, old.action == thing.movement.action)
            | same(YAW, old.yaw == thing.movement.yaw)
            | same(
                POSITION,
                old.position.map(bits_of) == thing.movement.position.map(bits_of)
                    && old.time == thing.movement.time,
            );
        // What the own client said itself and is now told otherwise, it has to hear.
        let news = told & (!unchanged | (was_muted & !thing.muted));
        if news == 0 {
            return;
        }
        for bit in bits(news) {
            let field = layout.fields.len() + (bit - FIRST_MOVEMENT) as usize;
            thing.changed[field] = self.stamp;
        }
        thing.version += 1;
        let [other, own] = Audience::BOTH.map(|audience| news & layout.movement(audience));
        let own = own & !thing.muted;
        self.freshen(index, [other, own]);
    }

    /// Keeps in mind what has to be told at the next tick.
    fn freshen(&mut self, index: u32, bits: [Mask; 2]) {
        let thing = &mut self.things[index as usize];
        if thing.fresh == [0; 2] && bits != [0; 2] {
            self.changed.push(index);
        }
        for (fresh, bits) in thing.fresh.iter_mut().zip(bits) {
            *fresh |= bits;
        }
    }

    /// The value of a field.
    pub(super) fn value(&self, index: u32, field: usize) -> Option<&[u8]> {
        let thing = self.things.get(index as usize)?;
        if !thing.has(field) {
            return None;
        }
        thing.values.get(self.layout(thing).fields.get(field)?.range())
    }

    /// What a client has to be told besides the create.
    pub(super) fn beyond_create(&self, index: u32, audience: Audience) -> Mask {
        let thing = &self.things[index as usize];
        let layout = self.layout(thing);
        let behind = layout.fields.iter().enumerate().skip(layout.created);
        let mut mask = told_by(&thing.movement) & layout.movement(audience);
        for (field, one) in behind {
            if thing.has(field) {
                mask |= one.bits[audience.index()];
            }
        }
        if audience == Audience::Own { mask & !thing.muted } else { mask }
    }

    /// Which of these changed after a stamp.
    pub(super) fn changed_since(
        &self,
        index: u32,
        audience: Audience,
        mask: Mask,
        stamp: u64,
    ) -> Mask {
        let thing = &self.things[index as usize];
        let layout = self.layout(thing);
        let orders = &layout.orders[audience.index()];
        let mut changed = 0;
        for bit in bits(mask) {
            let field = match bit {
                FIRST_MOVEMENT.. => layout.fields.len() + (bit - FIRST_MOVEMENT) as usize,
                bit => orders.fields.get(bit as usize).map_or(usize::MAX, |one| one.0.into()),
            };
            if thing.changed.get(field).is_some_and(|changed| *changed > stamp) {
                changed |= 1 << bit;
            }
        }
        changed
    }

    /// How many bytes the values of a mask take in an update, without presence bytes.
    pub(super) fn bytes_of(&self, index: u32, audience: Audience, mask: Mask) -> usize {
        let layout = self.layout(&self.things[index as usize]);
        let orders = &layout.orders[audience.index()];
        let size = |bit: u32| match 1 << bit {
            ANIMATION => 2,
            ACTION | YAW => 1,
            POSITION if audience == Audience::Own => 16,
            POSITION => 12,
            _ => match orders.fields.get(bit as usize) {
                Some((field, _)) => layout.fields[usize::from(*field)].kind.size().into(),
                None => 0,
            },
        };
        bits(mask).map(size).sum()
    }

    /// Forgets what was encoded.
    pub(super) fn clear_forms(&mut self) {
        self.arena.clear();
    }

    pub(super) fn encoded(&self, range: Range<usize>) -> &[u8] {
        &self.arena[range]
    }

    /// The create of an object, with zeros for spawn sequence and view id.
    pub(super) fn create(&mut self, index: u32) -> Result<Range<usize>> {
        let thing = &self.things[index as usize];
        if let Some(range) = thing.form(CREATE, self.tick, 0) {
            return Ok(range);
        }
        let layout = &self.layouts[usize::from(thing.class)];
        let mut properties = Properties::new();
        for (field, one) in (0..).zip(&layout.fields[..layout.created]) {
            if thing.has(field) {
                let place = u16::try_from(field).unwrap_or(u16::MAX);
                properties.set(place, Cow::Borrowed(&thing.values[one.range()]));
            }
        }
        let create = match thing.world_id {
            Some(world) => Create::of_world(thing.goid, world, layout.class, 0, u16::MAX),
            None => Create::dynamic(thing.goid, layout.class, 0, u16::MAX),
        };
        let start = self.arena.len();
        let mut writer = Writer::append_to(take(&mut self.arena));
        let outcome = create.with(properties).encode(&self.objects, &mut writer);
        self.arena = writer.into_bytes();
        outcome?;
        Ok(self.keep(index, CREATE, 0, start))
    }

    /// Mask and blocks of an update.
    pub(super) fn update(
        &mut self,
        index: u32,
        audience: Audience,
        mask: Mask,
    ) -> Result<Range<usize>> {
        let thing = &self.things[index as usize];
        if let Some(range) = thing.form(audience.index(), self.tick, mask) {
            return Ok(range);
        }
        let layout = &self.layouts[usize::from(thing.class)];
        let orders = &layout.orders[audience.index()];
        let mut properties = None;
        for bit in bits(mask & !MOVEMENT) {
            let Some((field, counted)) = orders.fields.get(bit as usize).copied() else { continue };
            let value = &thing.values[layout.fields[usize::from(field)].range()];
            let value = if counted { text::split(value).0 } else { value };
            let index = u16::try_from(bit).unwrap_or(u16::MAX);
            properties.get_or_insert_with(Properties::new).set(index, Cow::Borrowed(value));
        }
        let movement = (mask & MOVEMENT != 0).then(|| thing.part(mask, audience));
        let update = Update {
            view: audience.view(),
            class: layout.class,
            guess: false,
            movement,
            properties,
        };
        let start = self.arena.len();
        let mut writer = Writer::append_to(take(&mut self.arena));
        let outcome = update.encode_body(&self.objects, Side::Server, &mut writer);
        self.arena = writer.into_bytes();
        outcome?;
        Ok(self.keep(index, audience.index(), mask, start))
    }

    fn keep(&mut self, index: u32, form: usize, mask: Mask, start: usize) -> Range<usize> {
        let range = start..self.arena.len();
        let thing = &mut self.things[index as usize];
        let version = thing.version;
        thing.forms[form] = Form { tick: self.tick, version, mask, range: range.clone() };
        range
    }
}

impl Thing {
    pub(super) const fn has(&self, field: usize) -> bool {
        self.present[field / 64] & (1 << (field % 64)) != 0
    }

    /// The bytes of a form, if it was encoded in this tick and nothing has changed.
    #[inline]
    fn form(&self, form: usize, tick: u64, mask: Mask) -> Option<Range<usize>> {
        let form = &self.forms[form];
        let holds = form.tick == tick && form.version == self.version && form.mask == mask;
        holds.then(|| form.range.clone())
    }

    /// Those fields of the movement that a mask names.
    fn part(&self, mask: Mask, audience: Audience) -> Movement {
        let all = &self.movement;
        let position = all.position.filter(|_| mask & POSITION != 0);
        let timed = audience == Audience::Own && position.is_some();
        Movement {
            script_counter: None,
            animation: all.animation.filter(|_| mask & ANIMATION != 0),
            action: all.action.filter(|_| mask & ACTION != 0),
            yaw: all.yaw.filter(|_| mask & YAW != 0),
            position,
            time: timed.then(|| all.time.unwrap_or(0)),
        }
    }
}

/// The fields that a movement has.
pub(super) fn told_by(movement: &Movement) -> Mask {
    let field = |present: bool, mask| if present { mask } else { 0 };
    field(movement.animation.is_some(), ANIMATION)
        | field(movement.action.is_some(), ACTION)
        | field(movement.yaw.is_some(), YAW)
        | field(movement.position.is_some(), POSITION)
}

/// The error of a place that is none.
pub(super) fn check_place(place: &Place) -> Result<()> {
    if place.iter().all(|part| part.is_finite()) {
        return Ok(());
    }
    Err(Error::value("a place with finite coordinates", format!("{place:?}")))
}

fn bits_of(position: [f32; 3]) -> [u32; 3] {
    position.map(f32::to_bits)
}

/// The square of the distance.
#[inline]
pub(super) fn distance(a: &Place, b: &Place) -> f64 {
    let [x, y, z] = [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
    x * x + y * y + z * z
}
