//! The objects of the world: their newest values, stored once for all clients.

use core::ops::Range;
use std::borrow::Cow;
use std::mem::take;
use std::sync::Arc;

use worldwire_core::{Result, Side, Writer};

use super::layout::{
    ACTION, ANIMATION, Audience, FIRST_MOVEMENT, Layout, MOVEMENT, MOVEMENT_FIELDS, Mask, POSITION,
    YAW, bits,
};
use super::point::Point;
use crate::message::{Create, Movement, Properties, Update};
use crate::schema::{ClassId, Objects};
use crate::types::text;

/// An object or a free slot for one.
#[derive(Debug, Default)]
pub(super) struct Object {
    /// Increases when the index is reused for another object.
    pub(super) generation: u32,
    pub(super) alive: bool,
    pub(super) class: u16,
    pub(super) goid: u16,
    pub(super) world_id: Option<u32>,
    pub(super) movement: Movement,
    /// Movement fields set by the object's own client, which are not sent back to it.
    pub(super) muted: Mask,
    /// The client whose character the object is.
    pub(super) owner: Option<u32>,
    values: Box<[u8]>,
    /// The fields that have a value.
    present: [u64; 4],
    /// When each field was set, including the movement fields: see [`World::stamp`].
    changed: Box<[u64]>,
    /// Increases with every change.
    version: u64,
    /// The changes since the last tick, for each audience.
    pub(super) fresh: [Mask; 2],
    /// The views of the object that are not being deleted.
    pub(super) viewers: Vec<Viewer>,
    /// The object's last encoding.
    forms: [Form; 3],
}

/// A view of an object: the client, and the slot among its views.
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

/// The index of the create's form; the forms of updates are numbered by audience.
const CREATE: usize = 2;

/// All objects and the memory to encode them.
#[derive(Debug)]
pub(super) struct World {
    pub(super) schema: Arc<Objects>,
    /// The layouts of all classes, by class ID.
    pub(super) layouts: Vec<Layout>,
    pub(super) objects: Vec<Object>,
    /// The position of each object, for interest management.
    pub(super) positions: Vec<Point>,
    pub(super) free: Vec<u32>,
    pub(super) tick: u64,
    /// Increases with every section. A value with a later stamp than a section is not in that
    /// section.
    pub(super) stamp: u64,
    /// Objects with fresh changes.
    pub(super) changed: Vec<u32>,
    /// The encodings of this tick.
    arena: Vec<u8>,
}

impl World {
    pub(super) fn new(schema: Arc<Objects>) -> Self {
        let layouts = schema.classes().map(|(id, class)| Layout::new(id, class, &schema));
        let layouts = layouts.collect();
        Self {
            schema,
            layouts,
            objects: Vec::new(),
            positions: Vec::new(),
            free: Vec::new(),
            tick: 1,
            stamp: 1,
            changed: Vec::new(),
            arena: Vec::new(),
        }
    }

    /// The number of objects.
    pub(super) fn len(&self) -> usize {
        self.objects.len() - self.free.len()
    }

    /// Adds an object without values.
    pub(super) fn add(
        &mut self,
        class: ClassId,
        goid: u16,
        world_id: Option<u32>,
        position: Point,
    ) -> u32 {
        let layout = &self.layouts[usize::from(class.number())];
        let object = Object {
            alive: true,
            class: class.number(),
            goid,
            world_id,
            values: vec![0; layout.bytes].into(),
            changed: vec![0; layout.fields.len() + MOVEMENT_FIELDS].into(),
            ..Object::default()
        };
        if let Some(index) = self.free.pop() {
            let old = &mut self.objects[index as usize];
            *old = Object { generation: old.generation, ..object };
            self.positions[index as usize] = position;
            return index;
        }
        self.objects.push(object);
        self.positions.push(position);
        u32::try_from(self.objects.len() - 1).unwrap_or(u32::MAX)
    }

    /// Removes an object. Its viewers have already been removed.
    pub(super) fn remove(&mut self, index: u32) {
        let object = &mut self.objects[index as usize];
        object.alive = false;
        object.generation = object.generation.wrapping_add(1);
        object.viewers = Vec::new();
        object.fresh = [0; 2];
        self.free.push(index);
    }

    pub(super) fn layout(&self, object: &Object) -> &Layout {
        &self.layouts[usize::from(object.class)]
    }

    /// Sets a field to a value of the right size.
    pub(super) fn set(&mut self, index: u32, field: usize, bytes: &[u8]) {
        let object = &mut self.objects[index as usize];
        let layout = &self.layouts[usize::from(object.class)];
        let field_of = &layout.fields[field];
        let value = &mut object.values[field_of.range()];
        let (word, bit) = (field / 64, 1 << (field % 64));
        if object.present[word] & bit != 0 && value == bytes {
            return;
        }
        value.copy_from_slice(bytes);
        object.present[word] |= bit;
        object.changed[field] = self.stamp;
        object.version += 1;
        let bits = field_of.bits;
        self.freshen(index, bits);
    }

    /// Sets the fields of a movement that are present. `by_owner` states whether the object's own
    /// client reported them.
    pub(super) fn set_movement(&mut self, index: u32, new: &Movement, by_owner: bool) {
        let object = &mut self.objects[index as usize];
        let layout = &self.layouts[usize::from(object.class)];
        let old = object.movement;
        let told = movement_fields(new);
        object.movement = Movement {
            script_counter: None,
            script: None,
            animation: new.animation.or(old.animation),
            action: new.action.or(old.action),
            yaw: new.yaw.or(old.yaw),
            position: new.position.or(old.position),
            time: new.time.or(old.time),
        };
        let was_muted = object.muted;
        object.muted = if by_owner { was_muted | told } else { was_muted & !told };
        let same = |mask, same: bool| if same { mask } else { 0 };
        let unchanged = same(ANIMATION, old.animation == object.movement.animation)
            | same(ACTION, old.action == object.movement.action)
            | same(YAW, old.yaw == object.movement.yaw)
            | same(
                POSITION,
                old.position.map(bits_of) == object.movement.position.map(bits_of)
                    && old.time == object.movement.time,
            );
        // If a field that the client set on its own character is now overridden, the new value must
        // be sent to that client.
        let news = told & (!unchanged | (was_muted & !object.muted));
        if news == 0 {
            return;
        }
        for bit in bits(news) {
            let field = layout.fields.len() + (bit - FIRST_MOVEMENT) as usize;
            object.changed[field] = self.stamp;
        }
        object.version += 1;
        let [other, own] = Audience::BOTH.map(|audience| news & layout.movement(audience));
        let own = own & !object.muted;
        self.freshen(index, [other, own]);
    }

    /// Moves an object. If the object has a property with its position, later creates contain the
    /// new position.
    pub(super) fn place(&mut self, index: u32, position: Point) {
        self.positions[index as usize] = position;
        let object = &self.objects[index as usize];
        if let Some(field) = self.layout(object).position.filter(|field| object.has(*field)) {
            let mut bytes = [0; 24];
            for (part, number) in bytes.as_chunks_mut().0.iter_mut().zip(position) {
                *part = number.to_le_bytes();
            }
            self.set(index, field, &bytes);
        }
    }

    /// Marks changes to be sent at the next tick.
    fn freshen(&mut self, index: u32, bits: [Mask; 2]) {
        let object = &mut self.objects[index as usize];
        if object.fresh == [0; 2] && bits != [0; 2] {
            self.changed.push(index);
        }
        for (fresh, bits) in object.fresh.iter_mut().zip(bits) {
            *fresh |= bits;
        }
    }

    /// A field's value.
    pub(super) fn value(&self, index: u32, field: usize) -> Option<&[u8]> {
        let object = self.objects.get(index as usize)?;
        if !object.has(field) {
            return None;
        }
        object.values.get(self.layout(object).fields.get(field)?.range())
    }

    /// The values that must be sent to a client in addition to the create.
    pub(super) fn beyond_create(&self, index: u32, audience: Audience) -> Mask {
        let object = &self.objects[index as usize];
        let layout = self.layout(object);
        let rest = layout.fields.iter().enumerate().skip(layout.created);
        let mut mask = movement_fields(&object.movement) & layout.movement(audience);
        for (field, one) in rest {
            if object.has(field) {
                mask |= one.bits[audience.index()];
            }
        }
        if audience == Audience::Own { mask & !object.muted } else { mask }
    }

    /// Those of these values that changed after a stamp.
    pub(super) fn changed_since(
        &self,
        index: u32,
        audience: Audience,
        mask: Mask,
        stamp: u64,
    ) -> Mask {
        let object = &self.objects[index as usize];
        let layout = self.layout(object);
        let orders = &layout.orders[audience.index()];
        let mut changed = 0;
        for bit in bits(mask) {
            let field = match bit {
                FIRST_MOVEMENT.. => layout.fields.len() + (bit - FIRST_MOVEMENT) as usize,
                bit => orders.fields.get(bit as usize).map_or(usize::MAX, |one| one.0.into()),
            };
            if object.changed.get(field).is_some_and(|changed| *changed > stamp) {
                changed |= 1 << bit;
            }
        }
        changed
    }

    /// The size of a mask's values in an update, without presence bytes.
    pub(super) fn bytes_of(&self, index: u32, audience: Audience, mask: Mask) -> usize {
        let layout = self.layout(&self.objects[index as usize]);
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

    /// Forgets the encodings.
    pub(super) fn clear_forms(&mut self) {
        self.arena.clear();
    }

    pub(super) fn encoded(&self, range: Range<usize>) -> &[u8] {
        &self.arena[range]
    }

    /// The create of an object, with zeros for spawn sequence and view ID.
    pub(super) fn create(&mut self, index: u32) -> Result<Range<usize>> {
        let object = &self.objects[index as usize];
        if let Some(range) = object.form(CREATE, self.tick, 0) {
            return Ok(range);
        }
        let layout = &self.layouts[usize::from(object.class)];
        let mut properties = Properties::new();
        for (field, one) in (0..).zip(&layout.fields[..layout.created]) {
            if object.has(field) {
                let index = u16::try_from(field).unwrap_or(u16::MAX);
                properties.set(index, Cow::Borrowed(&object.values[one.range()]));
            }
        }
        let create = match object.world_id {
            Some(world) => Create::of_world(object.goid, world, layout.class, 0, u16::MAX),
            None => Create::dynamic(object.goid, layout.class, 0, u16::MAX),
        };
        let start = self.arena.len();
        let mut writer = Writer::append_to(take(&mut self.arena));
        let outcome = create.with(properties).encode(&self.schema, &mut writer);
        self.arena = writer.into_bytes();
        outcome?;
        Ok(self.keep(index, CREATE, 0, start))
    }

    /// The mask and blocks of an update.
    pub(super) fn update(
        &mut self,
        index: u32,
        audience: Audience,
        mask: Mask,
    ) -> Result<Range<usize>> {
        let object = &self.objects[index as usize];
        if let Some(range) = object.form(audience.index(), self.tick, mask) {
            return Ok(range);
        }
        let layout = &self.layouts[usize::from(object.class)];
        let orders = &layout.orders[audience.index()];
        let mut properties = None;
        for bit in bits(mask & !MOVEMENT) {
            let Some((field, counted)) = orders.fields.get(bit as usize).copied() else { continue };
            let value = &object.values[layout.fields[usize::from(field)].range()];
            let value = if counted { text::split(value).0 } else { value };
            let index = u16::try_from(bit).unwrap_or(u16::MAX);
            properties.get_or_insert_with(Properties::new).set(index, Cow::Borrowed(value));
        }
        let movement = (mask & MOVEMENT != 0).then(|| object.part(mask, audience));
        let update = Update {
            view: audience.view(),
            class: layout.class,
            guess: false,
            block1: None,
            movement,
            properties,
        };
        let start = self.arena.len();
        let mut writer = Writer::append_to(take(&mut self.arena));
        let outcome = update.encode_body(&self.schema, Side::Server, &mut writer);
        self.arena = writer.into_bytes();
        outcome?;
        Ok(self.keep(index, audience.index(), mask, start))
    }

    fn keep(&mut self, index: u32, form: usize, mask: Mask, start: usize) -> Range<usize> {
        let range = start..self.arena.len();
        let object = &mut self.objects[index as usize];
        let version = object.version;
        object.forms[form] = Form { tick: self.tick, version, mask, range: range.clone() };
        range
    }
}

impl Object {
    pub(super) const fn has(&self, field: usize) -> bool {
        self.present[field / 64] & (1 << (field % 64)) != 0
    }

    /// The bytes of a form, if it was encoded in this tick and nothing has changed since.
    #[inline]
    fn form(&self, form: usize, tick: u64, mask: Mask) -> Option<Range<usize>> {
        let form = &self.forms[form];
        let holds = form.tick == tick && form.version == self.version && form.mask == mask;
        holds.then(|| form.range.clone())
    }

    /// The movement fields in a mask.
    fn part(&self, mask: Mask, audience: Audience) -> Movement {
        let all = &self.movement;
        let position = all.position.filter(|_| mask & POSITION != 0);
        let timed = audience == Audience::Own && position.is_some();
        Movement {
            script_counter: None,
            script: None,
            animation: all.animation.filter(|_| mask & ANIMATION != 0),
            action: all.action.filter(|_| mask & ACTION != 0),
            yaw: all.yaw.filter(|_| mask & YAW != 0),
            position,
            time: timed.then(|| all.time.unwrap_or(0)),
        }
    }
}

/// The fields that a movement has.
pub(super) fn movement_fields(movement: &Movement) -> Mask {
    let field = |present: bool, mask| if present { mask } else { 0 };
    field(movement.animation.is_some(), ANIMATION)
        | field(movement.action.is_some(), ACTION)
        | field(movement.yaw.is_some(), YAW)
        | field(movement.position.is_some(), POSITION)
}

fn bits_of(position: [f32; 3]) -> [u32; 3] {
    position.map(f32::to_bits)
}
