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
mod collision;
mod draw;
mod export;
mod gltf;
mod mesh;
mod params;
mod shape;

use worldwire_core::json::{FieldsOf, Json};
use worldwire_core::{
    Error, Field, Limits, Reader, Result, Sampler, Trace, Writer, list_from_json, wire_enum,
    wire_flags,
};

use collision::{LEAST, Types};

use super::primitive::{gather, left_over, not_utf8, refuse};

pub use check::Statistics;
pub use collision::Collision;
pub use export::{Exported, MAX_COLLISIONS, MAX_VERTICES};
pub use mesh::{Face, Mesh};
pub use params::{BoxParams, CylinderParams, Params, PlaneParams, RayParams, SphereParams};
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

/// A BCD file.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct BcdFile<'d> {
    /// The collisions, in the order of the file.
    pub collisions: Vec<Collision<'d>>,
}

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
    use worldwire_core::json::json;

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
