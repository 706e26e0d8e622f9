//! Changes to the world: objects come, change, move and go.

use worldwire_core::{Error, Result};

use super::thing::check_place;
use super::{ObjectId, Place, Replicator, limit};
use crate::message::{Fault, Movement, Properties};
use crate::types::Value;

/// A property of a class, looked up once with [`Replicator::property`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PropertyId {
    class: u16,
    field: u16,
}

/// A new object.
#[derive(Clone, Debug, PartialEq)]
pub struct Spawn<'d> {
    /// The game object type.
    pub goid: u16,
    /// The object of the client's world that it is; `None` for one that the world does not have.
    pub world_id: Option<u32>,
    /// Where it is, for who sees it. Its properties say it to the client.
    pub place: Place,
    /// Its properties, in the create order of its class.
    pub properties: Properties<'d>,
    /// Its movement; the fields that are known.
    pub movement: Movement,
}

impl Spawn<'_> {
    /// A new object of a type, at the origin and without properties.
    #[must_use]
    pub fn new(goid: u16) -> Self {
        Self {
            goid,
            world_id: None,
            place: [0.0; 3],
            properties: Properties::new(),
            movement: Movement::default(),
        }
    }
}

impl Replicator {
    /// Adds an object. Clients in reach get a view of it from the next tick on.
    ///
    /// # Errors
    /// [`Fault::UnknownGoid`]. Value, for properties that the class does not have or that do not
    /// fit, movement that its updates cannot carry, and a place that is not finite. The limits on
    /// objects, and on classes: 255 properties, 124 of them in an update, and a create that fits
    /// into a packet.
    pub fn spawn(&mut self, spawn: Spawn<'_>) -> Result<ObjectId> {
        check_place(&spawn.place).map_err(|error| error.inside("place"))?;
        let Some((class, _)) = self.world.objects.class_of(spawn.goid) else {
            return Err(Fault::UnknownGoid.value(spawn.goid.to_string()).inside("goid"));
        };
        let layout = &self.world.layouts[usize::from(class.number())];
        layout.check(self.config.packet_bytes)?;
        for property in spawn.properties.list() {
            let index = property.index();
            if index >= layout.created {
                let found = format!("index {index} of {}", layout.created);
                return Err(Fault::IndexOutOfRange.value(found).inside("properties"));
            }
            layout
                .check_value(index, property.bytes())
                .map_err(|error| error.inside("properties"))?;
        }
        layout.check_movement(&spawn.movement).map_err(|error| error.inside("movement"))?;
        limit("objects", self.config.objects, self.world.len() + 1)?;
        let index = self.world.add(class, spawn.goid, spawn.world_id, spawn.place);
        for property in spawn.properties.list() {
            self.world.set(index, property.index(), property.bytes());
        }
        self.world.set_movement(index, &spawn.movement, false);
        if let Some(position) = spawn.movement.position {
            self.world.places[index as usize] = position.map(f64::from);
        }
        self.interest.thing_moved(index);
        Ok(ObjectId { index, generation: self.world.things[index as usize].generation })
    }

    /// Takes an object out of the world. Its views are deleted.
    ///
    /// # Errors
    /// Value, when it is gone already.
    pub fn despawn(&mut self, object: ObjectId) -> Result<()> {
        let index = self.thing(object)?;
        if let Some(owner) = self.world.things[index as usize].owner {
            let client = &mut self.clients[owner as usize];
            client.eye = client.eye(&self.world);
            client.own = None;
            self.interest.client_moved(owner);
        }
        while let Some(viewer) = self.world.things[index as usize].viewers.last().copied() {
            let client = &mut self.clients[viewer.client as usize];
            client.drop_view(viewer.slot, true, &mut self.world, &self.config);
        }
        self.interest.thing_gone(index);
        self.world.remove(index);
        Ok(())
    }

    /// A property of a goobj's class, by its name.
    #[must_use]
    pub fn property(&self, goid: u16, name: &str) -> Option<PropertyId> {
        let (class, _) = self.world.objects.class_of(goid)?;
        let class = class.number();
        let fields = &self.world.layouts.get(usize::from(class))?.fields;
        let field = fields.iter().position(|field| &*field.name == name)?;
        Some(PropertyId { class, field: u16::try_from(field).ok()? })
    }

    /// Gives an object a value: as many bytes as the type of the property has.
    ///
    /// # Errors
    /// Value, for an object that is gone, a property of another class, and bytes that do not fit.
    pub fn set(&mut self, object: ObjectId, property: PropertyId, bytes: &[u8]) -> Result<()> {
        let index = self.thing(object)?;
        let thing = &self.world.things[index as usize];
        let layout = self.world.layout(thing);
        let field = usize::from(property.field);
        if thing.class != property.class {
            let wanted = "a property of the object's class";
            return Err(Error::value(wanted, "one of another class").inside("property"));
        }
        layout.check_value(field, bytes)?;
        self.world.set(index, field, bytes);
        Ok(())
    }

    /// The same by the property's name, with a value of its type.
    ///
    /// # Errors
    /// Value, for an object that is gone, an unknown name, and a value that does not fit.
    pub fn set_value(&mut self, object: ObjectId, name: &str, value: &Value<'_>) -> Result<()> {
        let index = self.thing(object)?;
        let thing = &self.world.things[index as usize];
        let Some(property) = self.property(thing.goid, name) else {
            return Err(Error::value("a property of the class", format!("\"{name}\"")));
        };
        let kind = self.world.layout(thing).fields[usize::from(property.field)].kind;
        let bytes = kind.write(value).map_err(|error| error.inside(name))?;
        self.set(object, property, &bytes)
    }

    /// The value of a property; `None` when it has none.
    #[must_use]
    pub fn value(&self, object: ObjectId, property: PropertyId) -> Option<&[u8]> {
        let index = self.thing(object).ok()?;
        if self.world.things[index as usize].class != property.class {
            return None;
        }
        self.world.value(index, property.field.into())
    }

    /// Gives a character those fields of a movement that are there. A position is also where it
    /// is from now on. All clients are told, its own too.
    ///
    /// # Errors
    /// Value, for an object that is gone, one whose updates have no movement, a script counter,
    /// which a server cannot send, and a position that is not finite.
    pub fn set_movement(&mut self, object: ObjectId, movement: &Movement) -> Result<()> {
        let index = self.thing(object)?;
        self.check_movement(index, movement)?;
        self.move_by(index, movement, false);
        Ok(())
    }

    /// What is known of a character's movement.
    #[must_use]
    pub fn movement(&self, object: ObjectId) -> Option<&Movement> {
        let index = self.thing(object).ok()?;
        Some(&self.world.things[index as usize].movement)
    }

    /// Says where an object is, for who sees it. Clients learn of it by its properties or its
    /// movement only.
    ///
    /// # Errors
    /// Value, for an object that is gone and a place that is not finite.
    pub fn place(&mut self, object: ObjectId, place: Place) -> Result<()> {
        let index = self.thing(object)?;
        check_place(&place)?;
        self.put(index, place);
        Ok(())
    }

    pub(super) fn check_movement(&self, index: u32, movement: &Movement) -> Result<()> {
        self.world.layout(&self.world.things[index as usize]).check_movement(movement)
    }

    pub(super) fn move_by(&mut self, index: u32, movement: &Movement, said: bool) {
        self.world.set_movement(index, movement, said);
        if let Some(position) = movement.position {
            self.put(index, position.map(f64::from));
        }
    }

    fn put(&mut self, index: u32, place: Place) {
        self.world.places[index as usize] = place;
        self.interest.thing_moved(index);
    }
}
