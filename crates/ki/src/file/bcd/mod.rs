//! BCD: what characters and rays collide with in a zone (`collision.bcd` in its archive).
//!
//! A file is a list of collisions, `u32` count and then for each:
//!
//! | field | type | meaning |
//! | --- | --- | --- |
//! | type | `u32` | [`CollisionType`] |
//! | category_flags | `u32` | what it is: ODE's category bits |
//! | collision_flags | `u32` | what it collides with: ODE's collide bits |
//! | mesh | [`Mesh`] | only if the type is Mesh |
//! | name | `u32` count, UTF-8 | |
//! | rotation | 9 `f32` | a matrix, row by row |
//! | location | 3 `f32` | |
//! | scale | `f32` | |
//! | material | `u32` count, UTF-8 | |
//! | type_again | `u32` | the type once more |
//! | params | by type | [`Params`] |
//!
//! There is no magic and no version: only a reading that uses up every byte tells a BCD file.

mod check;
mod draw;
mod export;
mod shape;

use std::borrow::Cow;

use worldwire_core::json::{FieldsOf, Given, Json};
use worldwire_core::{
    Error, Field, Float, Limits, Reader, Record, Result, Sampler, Trace, Value, Writer,
    list_from_json, record, wire_enum, wire_flags,
};

use super::primitive::{Many, Matrix3, Text, Vector3, gather, left_over, not_utf8, refuse, shown};

pub use check::Statistics;
pub use export::{Exported, MOST_COLLISIONS, MOST_VERTICES};
pub use shape::Surface;

wire_enum! {
    /// What kind of shape a collision is.
    pub enum CollisionType(u32) {
        /// A box.
        Box = 0,
        /// A ray.
        Ray = 1,
        /// A sphere.
        Sphere = 2,
        /// A cylinder along the local z axis.
        Cylinder = 3,
        /// Unverified: a capsule, which is a cylinder along the local z axis with round ends.
        Tube = 4,
        /// An endless plane.
        Plane = 5,
        /// A mesh of triangles.
        Mesh = 6,
    }
}

wire_flags! {
    /// What a collision is, or what it collides with. Unknown bits are kept.
    pub struct CollisionFlags(u32) {
        /// An object.
        OBJECT = 0x1,
        /// Ground to walk on.
        WALKABLE = 0x2,
        /// What a ray hits.
        HITSCAN = 0x8,
        /// The player's own character.
        LOCAL_PLAYER = 0x10,
        /// Water.
        WATER = 0x40,
        /// An object of the client.
        CLIENT_OBJECT = 0x80,
        /// A trigger.
        TRIGGER = 0x100,
        /// Fog.
        FOG = 0x200,
        /// Goo.
        GOO = 0x400,
        /// Fish.
        FISH = 0x800,
        /// Muck.
        MUCK = 0x1000,
    }
}

record! {
    /// A triangle.
    pub struct Face {
        /// Positions of its vertices. They may lie past the end of the list.
        vertices "face": [u32; 3],
        /// The direction it faces.
        normal "normal": Vector3,
    }
}

/// Triangles: `u32` count of vertices, `u32` count of faces, the vertices of 12 bytes, the faces of
/// 24 bytes.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Mesh {
    /// The vertices, in the space of the collision.
    pub vertices: Vec<Vector3>,
    /// The triangles.
    pub faces: Vec<Face>,
}

record! {
    /// The sides of a box, along the local x, y and z axes; its centre is the location.
    pub struct BoxParams {
        length "length": Float,
        width "width": Float,
        depth "depth": Float,
    }
}

record! {
    /// A ray. One number each, however odd that is for a position and a direction.
    pub struct RayParams {
        position "position": Float,
        direction "direction": Float,
        length "length": Float,
    }
}

record! {
    /// A sphere around the location.
    pub struct SphereParams {
        radius "radius": Float,
    }
}

record! {
    /// A cylinder or a tube; its centre is the location.
    pub struct CylinderParams {
        radius "radius": Float,
        length "length": Float,
    }
}

record! {
    /// A plane: all places whose product with the normal is the distance.
    pub struct PlaneParams {
        normal "normal": Vector3,
        distance "distance": Float,
    }
}

/// How large a shape is.
#[derive(Clone, Debug, PartialEq)]
pub enum Params {
    /// Of a box.
    Box(BoxParams),
    /// Of a ray.
    Ray(RayParams),
    /// Of a sphere.
    Sphere(SphereParams),
    /// Of a cylinder.
    Cylinder(CylinderParams),
    /// Of a tube.
    Tube(CylinderParams),
    /// Of a plane.
    Plane(PlaneParams),
    /// Of a mesh: nothing.
    Mesh,
}

/// Something to collide with.
#[derive(Clone, Debug, PartialEq)]
pub struct Collision<'d> {
    /// What it is.
    pub category_flags: CollisionFlags,
    /// What it collides with.
    pub collision_flags: CollisionFlags,
    /// The mesh, of one that is a mesh.
    pub mesh: Option<Mesh>,
    /// The type in front, where it is not that of [`Self::params`]. Such a file can be read by
    /// [`BcdFile::open`] only, and is not written.
    pub other_type: Option<CollisionType>,
    /// The name.
    pub name: Text<'d>,
    /// How it is turned.
    pub rotation: Matrix3,
    /// Where it is.
    pub location: Vector3,
    /// Unverified: its size is multiplied by this.
    pub scale: Float,
    /// The name of its material.
    pub material: Text<'d>,
    /// How large it is; this is also its type.
    pub params: Params,
}

/// A BCD file.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct BcdFile<'d> {
    /// The collisions, in the order of the file.
    pub collisions: Vec<Collision<'d>>,
}

/// What to do when the two types of a collision differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Types {
    MustAgree,
    MayDiffer,
}

/// The fewest bytes of a collision: a sphere without a name and material.
const LEAST: usize = 80;

impl<'d> BcdFile<'d> {
    /// Reads a file.
    ///
    /// # Errors
    /// Malformed, for what is no BCD file or is cut off, and for a collision whose two types
    /// differ; the limits.
    pub fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        Self::read(reader, Types::MustAgree).map_err(Error::closed)
    }

    /// Reads a file as tools want it: with warnings instead of errors where that is possible. Where
    /// the types of a collision differ, the first says whether there is a mesh, the second what
    /// the params are. Bytes that are left at the end are passed over.
    ///
    /// # Errors
    /// Malformed, for what is no BCD file or is cut off; the limits.
    pub fn open(bytes: &'d [u8], limits: &'d Limits) -> Result<(Self, Vec<String>)> {
        let mut reader = Reader::within(bytes, limits);
        let file = Self::read(&mut reader, Types::MayDiffer).map_err(Error::closed)?;
        let odd = file.collisions.iter().enumerate().flat_map(|(index, collision)| {
            let types = collision.other_type.map(|other| {
                let kind = collision.kind();
                format!("collision {index}: its types differ, {other} and {kind}")
            });
            let name = not_utf8(format_args!("collision {index}: its name"), &collision.name);
            let material =
                not_utf8(format_args!("collision {index}: its material"), &collision.material);
            types.into_iter().chain(name).chain(material)
        });
        let warnings = gather(left_over(&reader).into_iter().chain(odd));
        Ok((file, warnings))
    }

    /// Reads a file that must have nothing odd about it: how a BCD file is told from others.
    ///
    /// # Errors
    /// As [`Self::open`]; Malformed, for what that warns of.
    pub fn strict(bytes: &'d [u8], limits: &'d Limits) -> Result<Self> {
        let (file, warnings) = Self::open(bytes, limits)?;
        refuse(warnings.into_iter()).map(|()| file)
    }

    /// Writes it.
    ///
    /// # Errors
    /// Value, for a mesh without vertices and faces, one that is no mesh but has them, and types
    /// that differ; the limits, for lists of 4 Gi elements and more.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        let inside = |error: Error| error.inside("collisions");
        writer.u32(count(self.collisions.len()).map_err(inside)?);
        self.collisions.iter().enumerate().try_for_each(|(index, collision)| {
            collision.encode(writer).map_err(|error| inside(error.inside_item(index)))
        })
    }

    /// The bytes of the file.
    ///
    /// # Errors
    /// As [`Self::encode`].
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut writer = Writer::new();
        self.encode(&mut writer).map(|()| writer.into_bytes())
    }

    /// Reads it from the JSON that the traced decode writes.
    ///
    /// # Errors
    /// Value, when the JSON is something else.
    pub fn from_json(json: &Json) -> Result<BcdFile<'static>> {
        let mut fields = FieldsOf::new(json)?;
        let list = list_from_json(fields.given("collisions")?);
        fields.end()?;
        let collisions: Vec<Collision<'static>> =
            list.map_err(|error| error.inside("collisions"))?;
        Ok(BcdFile { collisions })
    }

    /// Makes one up.
    pub fn sample(sampler: &mut Sampler) -> Self {
        let count = sampler.length(5);
        Self { collisions: (0..count).map(|_| Collision::sample(sampler)).collect() }
    }

    fn read<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, types: Types) -> Result<Self> {
        reader.list("collisions", |reader| {
            let count = u32::from_le_bytes(reader.take_array()?);
            let room = room(reader, count, LEAST)?;
            // Collisions take more memory than bytes, so room grows as they come.
            let mut collisions = Vec::with_capacity(room.min(64));
            for index in 0..count as usize {
                collisions.push(reader.item(index, |reader| Collision::read(reader, "", types))?);
            }
            Ok(Self { collisions })
        })
    }
}

impl<'d> Collision<'d> {
    fn read<'n, T: Trace<'n>>(
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
                return Err(Error::value("vertices and faces", "none").inside("mesh"));
            }
            (Some(_), _) => {
                let found = "vertices and faces";
                return Err(Error::value(format!("none for a {kind}"), found).inside("mesh"));
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

impl<'d> Field<'d> for Mesh {
    type Owned = Self;
    const LEAST: usize = 8;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("Mesh")
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        reader.record(name, |reader| {
            let vertices = reader.u32("vertex_count")?;
            let faces = reader.u32("face_count")?;
            // Both have to be there, before there is room for either.
            let needed = u64::from(vertices) * 12 + u64::from(faces) * 24;
            if needed > reader.remaining() as u64 {
                let found = reader.remaining().to_string();
                let error = Error::malformed(format!("{needed} bytes of a mesh"), found);
                return Err(reader.place_error(error));
            }
            let vertices = reader.list("vertices", |reader| elements(reader, vertices))?;
            let faces = reader.list("faces", |reader| elements(reader, faces))?;
            Ok(Self { vertices, faces })
        })
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.u32(count(self.vertices.len()).map_err(|error| error.inside("vertices"))?);
        writer.u32(count(self.faces.len()).map_err(|error| error.inside("faces"))?);
        self.vertices.iter().try_for_each(|vertex| vertex.encode(writer))?;
        self.faces.iter().try_for_each(|face| face.encode(writer))
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let mut fields = FieldsOf::new(json)?;
        fields.take_optional("vertex_count");
        fields.take_optional("face_count");
        let vertices = list_from_json(fields.given("vertices")?);
        let faces = list_from_json(fields.given("faces")?);
        fields.end()?;
        Ok(Self {
            vertices: vertices.map_err(|error| error.inside("vertices"))?,
            faces: faces.map_err(|error| error.inside("faces"))?,
        })
    }

    fn sample(sampler: &mut Sampler) -> Self {
        let vertices: Many<Vector3> = Many::sample(sampler);
        let faces: Many<Face> = Many::sample(sampler);
        Self { vertices: vertices.0, faces: faces.0 }
    }

    fn into_owned(self) -> Self {
        self
    }
}

impl Params {
    /// Which type they belong to.
    #[must_use]
    pub fn kind(&self) -> CollisionType {
        match self {
            Self::Box(_) => CollisionType::Box,
            Self::Ray(_) => CollisionType::Ray,
            Self::Sphere(_) => CollisionType::Sphere,
            Self::Cylinder(_) => CollisionType::Cylinder,
            Self::Tube(_) => CollisionType::Tube,
            Self::Plane(_) => CollisionType::Plane,
            Self::Mesh => CollisionType::Mesh,
        }
    }

    fn read<'n, T: Trace<'n>>(reader: &mut Reader<'_, T>, kind: CollisionType) -> Result<Self> {
        const NAME: &str = "params";
        match kind {
            CollisionType::Box => BoxParams::decode(reader, NAME).map(Self::Box),
            CollisionType::Ray => RayParams::decode(reader, NAME).map(Self::Ray),
            CollisionType::Sphere => SphereParams::decode(reader, NAME).map(Self::Sphere),
            CollisionType::Cylinder => CylinderParams::decode(reader, NAME).map(Self::Cylinder),
            CollisionType::Tube => CylinderParams::decode(reader, NAME).map(Self::Tube),
            CollisionType::Plane => PlaneParams::decode(reader, NAME).map(Self::Plane),
            _ => Ok(Self::Mesh),
        }
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        match self {
            Self::Box(params) => params.encode_fields(writer),
            Self::Ray(params) => params.encode_fields(writer),
            Self::Sphere(params) => params.encode_fields(writer),
            Self::Cylinder(params) | Self::Tube(params) => params.encode_fields(writer),
            Self::Plane(params) => params.encode_fields(writer),
            Self::Mesh => Ok(()),
        }
    }

    fn from_json(kind: CollisionType, json: Given<'_>) -> Result<Self> {
        match kind {
            CollisionType::Box => BoxParams::from_json(json).map(Self::Box),
            CollisionType::Ray => RayParams::from_json(json).map(Self::Ray),
            CollisionType::Sphere => SphereParams::from_json(json).map(Self::Sphere),
            CollisionType::Cylinder => CylinderParams::from_json(json).map(Self::Cylinder),
            CollisionType::Tube => CylinderParams::from_json(json).map(Self::Tube),
            CollisionType::Plane => PlaneParams::from_json(json).map(Self::Plane),
            CollisionType::Mesh => FieldsOf::new(json)?.end().map(|()| Self::Mesh),
            other => Err(Error::value("a type from 0 to 6", other.to_string())),
        }
    }

    fn sample(sampler: &mut Sampler) -> Self {
        match sampler.below(7) {
            0 => Self::Box(BoxParams::sample(sampler)),
            1 => Self::Ray(RayParams::sample(sampler)),
            2 => Self::Sphere(SphereParams::sample(sampler)),
            3 => Self::Cylinder(CylinderParams::sample(sampler)),
            4 => Self::Tube(CylinderParams::sample(sampler)),
            5 => Self::Plane(PlaneParams::sample(sampler)),
            _ => Self::Mesh,
        }
    }
}

/// A type that there is.
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

/// Elements that are all there.
fn elements<'d, 'n, E: Field<'d>, T: Trace<'n>>(
    reader: &mut Reader<'d, T>,
    count: u32,
) -> Result<Vec<E>> {
    let mut elements = Vec::with_capacity(room(reader, count, E::LEAST)?);
    for index in 0..count as usize {
        elements.push(reader.item(index, |reader| E::decode(reader, ""))?);
    }
    Ok(elements)
}

/// Room for elements that must be there.
fn room<'n, T: Trace<'n>>(reader: &Reader<'_, T>, count: u32, least: usize) -> Result<usize> {
    let needed = u64::from(count) * least as u64;
    if needed > reader.remaining() as u64 {
        let found = reader.remaining().to_string();
        return Err(reader.place_error(Error::malformed(format!("{needed} bytes"), found)));
    }
    reader.capacity(count.into(), u64::MAX, least)
}

fn count(length: usize) -> Result<u32> {
    u32::try_from(length).map_err(|_| Error::value("at most 4294967295", length.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_that_contradicts_itself_is_refused() {
        let good = json!({"collisions": [{
            "type": "Sphere", "category_flags": ["WATER", "0x4"], "collision_flags": 0,
            "name": "n", "rotation": [[1, 0, 0], [0, 1, 0], [0, 0, 1]], "location": [0, 0, 0],
            "scale": 1, "material": "", "params": {"radius": 2},
        }]});
        let file = BcdFile::from_json(&good).unwrap();
        assert_eq!(file.collisions[0].category_flags.0, 0x44);
        let bytes = file.to_bytes().unwrap();
        assert_eq!(BcdFile::strict(&bytes, &Limits::DEFAULT).unwrap(), file);
        let wrong = |key: &str, value: Json| {
            let mut json = good.clone();
            json["collisions"][0][key] = value;
            let error = BcdFile::from_json(&json).and_then(|file| file.to_bytes()).unwrap_err();
            error.to_string()
        };
        assert_eq!(
            wrong("type_again", json!("Box")),
            "collisions[0].type_again: wanted Sphere (2), found Box (0)"
        );
        assert_eq!(
            wrong("type", json!("Mesh")),
            "collisions[0].params: wanted a known field, found \"radius\""
        );
        assert_eq!(
            wrong("mesh", json!({"vertices": [], "faces": []})),
            "collisions[0].mesh: wanted none for a Sphere (2), found vertices and faces"
        );
        assert_eq!(
            wrong("params", json!({"length": 1})),
            "collisions[0].params.radius: wanted a value, found none"
        );
    }
}
