//! A single collision.

use std::borrow::Cow;

use worldwire_core::json::{FieldsOf, Given};
use worldwire_core::{Error, Field, Float, Reader, Result, Sampler, Trace, Value, Writer};

use super::super::primitive::{Matrix3, Text, Vector3};
use super::{CollisionFlags, CollisionType, Mesh, Params};

/// A shape that characters and rays collide with.
#[derive(Clone, Debug, PartialEq)]
pub struct Collision<'d> {
    /// The categories that the shape belongs to.
    pub category_flags: CollisionFlags,
    /// The categories that the shape collides with.
    pub collision_flags: CollisionFlags,
    /// The mesh, if the shape is a mesh.
    pub mesh: Option<Mesh>,
    /// The first type, if it differs from the type of [`Self::params`]. Only
    /// [`BcdFile::open`](super::BcdFile::open) accepts such a file, which cannot be encoded.
    pub other_type: Option<CollisionType>,
    /// The name.
    pub name: Text<'d>,
    /// The shape's rotation.
    pub rotation: Matrix3,
    /// The shape's location.
    pub location: Vector3,
    /// Unverified: a factor for the shape's size.
    pub scale: Float,
    /// The name of the shape's material.
    pub material: Text<'d>,
    /// The shape's size, which also determines its type.
    pub params: Params,
}

/// What to do if the two types of a collision differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Types {
    MustAgree,
    MayDiffer,
}

/// The minimum size of a collision in bytes: a sphere without a name and material.
pub(super) const LEAST: usize = 80;

impl<'d> Collision<'d> {
    pub(super) fn read<'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        name: &'n str,
        types: Types,
    ) -> Result<Self> {
        reader.record(name, |reader| {
            let first = kind(reader, "type")?;
            let category_flags = CollisionFlags::decode(reader, "category_flags")?;
            let collision_flags = CollisionFlags::decode(reader, "collision_flags")?;
            let mesh = match first {
                CollisionType::Mesh => Some(Mesh::decode(reader, "mesh")?),
                _ => None,
            };
            let name = Text::decode(reader, "name")?;
            let rotation = Matrix3::decode(reader, "rotation")?;
            let location = Vector3::decode(reader, "location")?;
            let scale = Float::decode(reader, "scale")?;
            let material = Text::decode(reader, "material")?;
            let at = reader.position() as u64;
            let second = kind(reader, "type_again")?;
            if first != second && types == Types::MustAgree {
                let error = Error::malformed(first.to_string(), second.to_string());
                return Err(error.at(at).inside("type_again"));
            }
            let params = Params::read(reader, second)?;
            let other_type = (first != second).then_some(first);
            Ok(Self {
                category_flags,
                collision_flags,
                mesh,
                other_type,
                name,
                rotation,
                location,
                scale,
                material,
                params,
            })
        })
    }

    /// The type.
    #[must_use]
    pub fn kind(&self) -> CollisionType {
        self.params.kind()
    }
}

impl<'d> Field<'d> for Collision<'d> {
    type Owned = Collision<'static>;
    const LEAST: usize = LEAST;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("Collision")
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        Self::read(reader, name, Types::MustAgree)
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        let kind = self.kind();
        if let Some(other) = self.other_type {
            return Err(Error::value(other.to_string(), kind.to_string()).inside("type_again"));
        }
        kind.encode(writer)?;
        self.category_flags.encode(writer)?;
        self.collision_flags.encode(writer)?;
        match (&self.mesh, kind) {
            (Some(mesh), CollisionType::Mesh) => mesh.encode(writer)?,
            (None, CollisionType::Mesh) => {
                return Err(Error::invalid("is missing").inside("mesh"));
            }
            (Some(_), _) => {
                return Err(Error::invalid(format!("{kind} cannot have a mesh")).inside("mesh"));
            }
            (None, _) => {}
        }
        self.name.encode(writer).map_err(|error| error.inside("name"))?;
        self.rotation.encode(writer)?;
        self.location.encode(writer)?;
        self.scale.encode(writer)?;
        self.material.encode(writer).map_err(|error| error.inside("material"))?;
        kind.encode(writer)?;
        self.params.encode(writer)
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let mut fields = FieldsOf::new(json)?;
        let first: CollisionType = fields.value("type")?;
        let again = fields.given_optional("type_again").map(CollisionType::from_json).transpose();
        let again = again.map_err(|error| error.inside("type_again"))?.unwrap_or(first);
        if again != first {
            return Err(Error::value(first.to_string(), again.to_string()).inside("type_again"));
        }
        let mesh = fields.given_optional("mesh").filter(|mesh| !mesh.is_null());
        let mesh = mesh.map(Mesh::from_json).transpose().map_err(|error| error.inside("mesh"))?;
        let params = match fields.given_optional("params") {
            None if first == CollisionType::Mesh => Params::Mesh,
            None => fields.given("params").map(|_| Params::Mesh)?,
            Some(json) => Params::from_json(first, json).map_err(|error| error.inside("params"))?,
        };
        let collision = Self {
            category_flags: fields.value("category_flags")?,
            collision_flags: fields.value("collision_flags")?,
            mesh,
            other_type: None,
            name: Text::from_json(fields.given("name")?).map_err(|error| error.inside("name"))?,
            rotation: fields.value("rotation")?,
            location: fields.value("location")?,
            scale: fields.value("scale")?,
            material: Text::from_json(fields.given("material")?)
                .map_err(|error| error.inside("material"))?,
            params,
        };
        fields.end()?;
        Ok(collision)
    }

    fn sample(sampler: &mut Sampler) -> Self {
        let params = Params::sample(sampler);
        Self {
            category_flags: CollisionFlags::sample(sampler),
            collision_flags: CollisionFlags::sample(sampler),
            mesh: (params == Params::Mesh).then(|| Mesh::sample(sampler)),
            other_type: None,
            name: Text::sample(sampler),
            rotation: Matrix3::sample(sampler),
            location: Vector3::sample(sampler),
            scale: Float::sample(sampler),
            material: Text::sample(sampler),
            params,
        }
    }

    fn into_owned(self) -> Self::Owned {
        let Self { category_flags, collision_flags, mesh, other_type, .. } = self;
        let Self { rotation, location, scale, params, .. } = self;
        let (name, material) = (self.name.into_owned(), self.material.into_owned());
        Collision {
            category_flags,
            collision_flags,
            mesh,
            other_type,
            name,
            rotation,
            location,
            scale,
            material,
            params,
        }
    }
}

fn kind<'n, T: Trace<'n>>(reader: &mut Reader<'_, T>, name: &'n str) -> Result<CollisionType> {
    let at = reader.position() as u64;
    let kind = reader.shown(
        name,
        |reader| reader.take_array().map(u32::from_le_bytes).map(CollisionType),
        |kind| Value::Enum(i64::from(kind.0), CollisionType::NAMES),
    )?;
    if kind.name().is_none() {
        let error = Error::malformed("a type from 0 to 6", kind.to_string());
        return Err(error.at(at).inside(name));
    }
    Ok(kind)
}
