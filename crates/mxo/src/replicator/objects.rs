//! Changes to the world: objects are spawned, changed, moved and removed.

use worldwire_core::{Error, Result};

use super::point::check_position;
use super::{ObjectId, Point, Replicator, limit};
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
    /// The object's type.
    pub goid: u16,
    /// The number of the static world object; `None` for a dynamic object.
    pub world_id: Option<u32>,
    /// The object's position, which decides which clients see it. Clients learn it from the
    /// property `Position` or from movement.
    pub position: Point,
    /// Its properties, in the create order of its class.
    pub properties: Properties<'d>,
    /// The known fields of its movement.
    pub movement: Movement,
}

impl Spawn<'_> {
    /// A new object of a type, at the origin and without properties.
    #[must_use]
    pub fn new(goid: u16) -> Self {
        Self {
            goid,
            world_id: None,
            position: [0.0; 3],
            properties: Properties::new(),
            movement: Movement::default(),
        }
    }
}

impl Replicator {
    /// Adds an object. From the next tick on, clients in range are given a view of it.
    ///
    /// # Errors
    /// [`Fault::UnknownGoid`]. A value error for properties that the class does not have or that do
    /// not fit, for movement that its updates cannot contain, and for a position that is not
    /// finite. Limit errors for the number of objects and for a class with more than 255
    /// properties, more than 124 properties in an update, or a create that does not fit into a
    /// packet.
    pub fn spawn(&mut self, spawn: Spawn<'_>) -> Result<ObjectId> {
        check_position(&spawn.position).map_err(|error| error.inside("position"))?;
        let Some((class, _)) = self.world.schema.class_of(spawn.goid) else {
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
        let index = self.world.add(class, spawn.goid, spawn.world_id, spawn.position);
        for property in spawn.properties.list() {
            self.world.set(index, property.index(), property.bytes());
        }
        self.world.set_movement(index, &spawn.movement, false);
        if let Some(position) = spawn.movement.position {
            self.world.place(index, position.map(f64::from));
        }
        self.interest.object_moved(index);
        Ok(ObjectId { index, generation: self.world.objects[index as usize].generation })
    }

    /// Removes an object from the world and deletes its views.
    pub fn despawn(&mut self, object: ObjectId) -> Result<()> {
        let index = self.object_index(object)?;
        if let Some(owner) = self.world.objects[index as usize].owner {
            let client = &mut self.clients[owner as usize];
            client.viewpoint = client.viewpoint(&self.world);
            client.own = None;
            self.interest.client_moved(owner);
        }
        while let Some(viewer) = self.world.objects[index as usize].viewers.last().copied() {
            let client = &mut self.clients[viewer.client as usize];
            client.drop_view(viewer.slot, true, &mut self.world, &self.config);
        }
        self.interest.thing_gone(index);
        self.world.remove(index);
        Ok(())
    }

    /// Looks up a property of a goobj's class by name.
    #[must_use]
    pub fn property(&self, goid: u16, name: &str) -> Option<PropertyId> {
        let (class, _) = self.world.schema.class_of(goid)?;
        let class = class.number();
        let fields = &self.world.layouts.get(usize::from(class))?.fields;
        let field = fields.iter().position(|field| &*field.name == name)?;
        Some(PropertyId { class, field: u16::try_from(field).ok()? })
    }

    /// Sets a property to the given bytes, whose number must match its type.
    ///
    /// # Errors
    /// A value error if the object is gone, the property belongs to another class, or the length
    /// differs.
    pub fn set(&mut self, object: ObjectId, property: PropertyId, bytes: &[u8]) -> Result<()> {
        let index = self.object_index(object)?;
        let object = &self.world.objects[index as usize];
        let layout = self.world.layout(object);
        let field = usize::from(property.field);
        if object.class != property.class {
            let wanted = "a property of the object's class";
            return Err(Error::value(wanted, "a property of another class").inside("property"));
        }
        layout.check_value(field, bytes)?;
        self.world.set(index, field, bytes);
        Ok(())
    }

    /// Sets a property by name, with a value of its type.
    ///
    /// # Errors
    /// A value error if the object is gone, the name is unknown, or the value does not fit.
    pub fn set_value(&mut self, object: ObjectId, name: &str, value: &Value<'_>) -> Result<()> {
        let index = self.object_index(object)?;
        let found = &self.world.objects[index as usize];
        let Some(property) = self.property(found.goid, name) else {
            return Err(Error::value("a property of the class", format!("\"{name}\"")));
        };
        let kind = self.world.layout(found).fields[usize::from(property.field)].kind;
        let bytes = kind.write(value).map_err(|error| error.inside(name))?;
        self.set(object, property, &bytes)
    }

    /// A property's value; `None` if it is not set.
    #[must_use]
    pub fn value(&self, object: ObjectId, property: PropertyId) -> Option<&[u8]> {
        let index = self.object_index(object).ok()?;
        if self.world.objects[index as usize].class != property.class {
            return None;
        }
        self.world.value(index, property.field.into())
    }

    /// Sets the fields of an object's movement that are present. A position moves the object there,
    /// as if set with [`move_to`](Self::move_to). The movement is sent to all clients, including
    /// the object's own client.
    ///
    /// # Errors
    /// A value error if the object is gone or has no movement, if a script counter is set (servers
    /// cannot send one), or if the position is not finite.
    pub fn set_movement(&mut self, object: ObjectId, movement: &Movement) -> Result<()> {
        let index = self.object_index(object)?;
        self.check_movement(index, movement)?;
        self.move_by(index, movement, false);
        Ok(())
    }

    /// The known fields of an object's movement.
    #[must_use]
    pub fn movement(&self, object: ObjectId) -> Option<&Movement> {
        let index = self.object_index(object).ok()?;
        Some(&self.world.objects[index as usize].movement)
    }

    /// Sets an object's position, which decides which clients see it. If the object has the
    /// property `Position`, that is set, too. For most classes, only creates contain this property,
    /// so clients that already have a view learn the new position only from movement.
    ///
    /// # Errors
    /// A value error if the object is gone or the position is not finite.
    pub fn move_to(&mut self, object: ObjectId, position: Point) -> Result<()> {
        let index = self.object_index(object)?;
        check_position(&position)?;
        self.put(index, position);
        Ok(())
    }

    pub(super) fn check_movement(&self, index: u32, movement: &Movement) -> Result<()> {
        self.world.layout(&self.world.objects[index as usize]).check_movement(movement)
    }

    pub(super) fn move_by(&mut self, index: u32, movement: &Movement, by_owner: bool) {
        self.world.set_movement(index, movement, by_owner);
        if let Some(position) = movement.position {
            self.put(index, position.map(f64::from));
        }
    }

    fn put(&mut self, index: u32, position: Point) {
        self.world.place(index, position);
        self.interest.object_moved(index);
    }
}
