//! Classes compiled for replication: the offsets of values, and the bits of masks.

use worldwire_core::{Error, Result};

use super::point::check_position;
use crate::message::{FIRST_VIEW, Movement, OWN_VIEW, Properties, SectionWriter, Update};
use crate::schema::{Class, ClassId, Objects};
use crate::types::PropertyType;

/// The parts of an object that an update can contain: a bit for each property, by its index in the
/// update order, and one for each movement field.
pub(super) type Mask = u128;

/// The maximum number of properties in an update order. The longest known order has 48.
const MAX_UPDATED: usize = 124;
/// The maximum number of properties of a class over all its orders. A create counts them in a byte.
pub(super) const MAX_FIELDS: usize = 255;

pub(super) const ANIMATION: Mask = 1 << 124;
pub(super) const ACTION: Mask = 1 << 125;
pub(super) const YAW: Mask = 1 << 126;
pub(super) const POSITION: Mask = 1 << 127;
/// All movement fields.
pub(super) const MOVEMENT: Mask = ANIMATION | ACTION | YAW | POSITION;
/// The bit number of the first movement field.
pub(super) const FIRST_MOVEMENT: u32 = 124;
/// The number of movement fields.
pub(super) const MOVEMENT_FIELDS: usize = 4;

/// The audience of a view: the client whose character the object is, or any other client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Audience {
    #[default]
    Other,
    Own,
}

impl Audience {
    pub(super) const BOTH: [Self; 2] = [Self::Other, Self::Own];

    pub(super) const fn of(is_own: bool) -> Self {
        if is_own { Self::Own } else { Self::Other }
    }

    pub(super) const fn index(self) -> usize {
        match self {
            Self::Other => 0,
            Self::Own => 1,
        }
    }

    /// A view ID of this audience.
    pub(super) const fn view(self) -> u16 {
        match self {
            Self::Other => FIRST_VIEW,
            Self::Own => OWN_VIEW,
        }
    }
}

/// A property of a class, in any of its orders.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) name: Box<str>,
    pub(super) kind: PropertyType,
    /// The offset of its value in an object's values.
    at: usize,
    /// Its bit in updates for each audience; 0 if it has none.
    pub(super) bits: [Mask; 2],
}

impl Field {
    pub(super) fn range(&self) -> core::ops::Range<usize> {
        self.at..self.at + usize::from(self.kind.size())
    }
}

/// The layout of updates for an audience.
#[derive(Clone, Debug, Default)]
pub(super) struct Orders {
    /// The field at each index of the update order, and whether it is length-prefixed text.
    pub(super) fields: Vec<(u16, bool)>,
    /// Whether updates can contain movement.
    pub(super) has_movement: bool,
}

/// A compiled class. Its fields are the fields of the create order, followed by the fields that
/// only updates have.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) class: ClassId,
    pub(super) fields: Vec<Field>,
    /// The number of fields in creates.
    pub(super) created: usize,
    /// The size of the values in bytes.
    pub(super) bytes: usize,
    pub(super) orders: [Orders; 2],
    /// The field that contains the object's position in creates.
    pub(super) position: Option<usize>,
    /// The maximum size of a create in bytes.
    max_create: usize,
}

impl Layout {
    pub(super) fn new(id: ClassId, class: &Class, objects: &Objects) -> Self {
        let mut layout = Self {
            class: id,
            fields: Vec::new(),
            created: class.create().len(),
            bytes: 0,
            orders: Default::default(),
            position: class.create().slots().iter().position(|slot| {
                slot.name() == "Position" && slot.kind() == PropertyType::Vector3d
            }),
            max_create: 0,
        };
        for slot in class.create().slots() {
            layout.push(slot.name(), slot.kind());
        }
        // Everything around the properties, including their presence bytes.
        let frame = SectionWriter::FRAME + 16 + class.create().max_groups();
        layout.max_create = frame + layout.bytes;
        for audience in Audience::BOTH {
            let mut orders = Orders::default();
            let order = class.updates().order(audience.view());
            for (index, slot) in order.into_iter().flat_map(|order| order.slots()).enumerate() {
                let field = layout.fields.iter().position(|field| *field.name == *slot.name());
                let field = field.unwrap_or_else(|| layout.push(slot.name(), slot.kind()));
                if index < MAX_UPDATED {
                    layout.fields[field].bits[audience.index()] = 1 << index;
                }
                // Classes with more fields are refused.
                let index = u16::try_from(field).unwrap_or(u16::MAX);
                orders.fields.push((index, slot.fixed_size().is_none()));
            }
            let update = Update {
                movement: Some(Movement::default()),
                properties: None,
                ..Update::of(audience.view(), id, Properties::new())
            };
            orders.has_movement = update.mask(objects).is_ok();
            layout.orders[audience.index()] = orders;
        }
        layout
    }

    fn push(&mut self, name: &str, kind: PropertyType) -> usize {
        self.fields.push(Field { name: name.into(), kind, at: self.bytes, bits: [0; 2] });
        self.bytes += usize::from(kind.size());
        self.fields.len() - 1
    }

    /// Whether objects of the class can be replicated in packets of this size.
    pub(super) fn check(&self, packet_bytes: usize) -> Result<()> {
        let longest = self.orders.iter().map(|orders| orders.fields.len()).max().unwrap_or(0);
        let limits = [
            ("properties of a class", MAX_FIELDS, self.fields.len()),
            ("properties of an update", MAX_UPDATED, longest),
            ("bytes of a create", packet_bytes, self.max_create),
        ];
        for (name, most, asked) in limits {
            if asked > most {
                return Err(Error::limit(name, most as u64, asked as u64));
            }
        }
        Ok(())
    }

    /// Whether bytes are a valid value of a field.
    pub(super) fn check_value(&self, field: usize, bytes: &[u8]) -> Result<()> {
        let Some(field) = self.fields.get(field) else {
            return Err(Error::value("a property of the class", "a property of another class"));
        };
        if bytes.len() == usize::from(field.kind.size()) {
            return Ok(());
        }
        let wanted = format!("{} bytes of {}", field.kind.size(), field.kind);
        Err(Error::value(wanted, bytes.len().to_string()).inside(&field.name))
    }

    /// Whether a movement can be replicated.
    pub(super) fn check_movement(&self, movement: &Movement) -> Result<()> {
        if movement.script_counter.is_some() {
            let wanted = "a movement that a server can send";
            return Err(Error::value(wanted, "a script counter").inside("script_counter"));
        }
        if let Some(position) = movement.position {
            check_position(&position.map(f64::from)).map_err(|error| error.inside("position"))?;
        }
        let has_any = *movement != Movement::default();
        if has_any && !self.orders.iter().any(|orders| orders.has_movement) {
            return Err(Error::value("an object with movement", "one without movement"));
        }
        Ok(())
    }

    /// The movement fields in updates for an audience.
    pub(super) fn movement(&self, audience: Audience) -> Mask {
        if self.orders[audience.index()].has_movement { MOVEMENT } else { 0 }
    }
}

/// The bit numbers of a mask, lowest first.
pub(super) fn bits(mut mask: Mask) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        if mask == 0 {
            return None;
        }
        let bit = mask.trailing_zeros();
        mask &= mask - 1;
        Some(bit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(name: &str) -> Layout {
        let objects = Objects::built_in();
        let (id, class) = objects.class_named(name).unwrap();
        Layout::new(id, class, &objects)
    }

    #[test]
    fn a_player_has_separate_orders_for_itself_and_others() {
        let player = layout("player");
        assert_eq!((player.fields.len(), player.created), (75, 75));
        let name = player.fields.iter().find(|field| &*field.name == "RealLastName").unwrap();
        // Index 5 of the client's own view; it is not sent to other clients.
        assert_eq!(name.bits, [0, 1 << 5]);
        assert_eq!(player.orders[1].fields[5], (3, true));
        assert_eq!(player.orders.each_ref().map(|orders| orders.fields.len()), [36, 48]);
        assert_eq!(player.movement(Audience::Own), MOVEMENT);
        assert_eq!(layout("door364").movement(Audience::Other), 0);
        assert_eq!(bits(POSITION | 9).collect::<Vec<_>>(), [0, 3, 127]);
    }

    #[test]
    fn classes_that_are_too_large_are_refused() {
        let mut names: Vec<String> = (0..256).map(|index| format!("p{index}")).collect();
        let check = |names: &[String], kind, updated: usize| {
            let named = |count| names[..count].iter().map(move |name| (name.as_str(), kind));
            let class = Class::new("large", named(names.len())).updated(named(updated));
            let mut tables = crate::schema::Tables::new();
            tables.add(class);
            let objects = tables.compile();
            let (id, class) = objects.class_named("large").unwrap();
            let checked = Layout::new(id, class, &objects).check(1_295);
            checked.map_err(|error| error.to_string())
        };
        let byte = PropertyType::Uint8;
        let found = check(&names, byte, 0).unwrap_err();
        assert_eq!(found, "wanted at most 255 (properties of a class), found 256");
        names.pop();
        let found = check(&names, byte, 125).unwrap_err();
        assert_eq!(found, "wanted at most 124 (properties of an update), found 125");
        assert_eq!(check(&names, byte, 124), Ok(()));
        let found = check(&names, PropertyType::Vector3f, 0).unwrap_err();
        assert_eq!(found, "wanted at most 1295 (bytes of a create), found 3116");
    }
}
