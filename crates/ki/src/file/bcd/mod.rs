//! BCD: the collision shapes of a zone (`collision.bcd` in its archive).
//!
//! A file consists of a `u32` count of collisions, followed by these fields for each:
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
//! | type_again | `u32` | the type repeated |
//! | params | by type | [`Params`] |
//!
//! There is no magic and no version: a BCD file is recognised only by decoding it to the last byte.

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

use super::primitive::{collect_warnings, left_over, not_utf8, refuse_warnings};

pub use check::Statistics;
pub use collision::Collision;
pub use export::{Exported, MAX_COLLISIONS, MAX_VERTICES};
pub use mesh::{Face, Mesh};
pub use params::{BoxParams, CylinderParams, Params, PlaneParams, RayParams, SphereParams};
pub use shape::Surface;

wire_enum! {
    /// The shape of a collision.
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
        /// An infinite plane.
        Plane = 5,
        /// A mesh of triangles.
        Mesh = 6,
    }
}

wire_flags! {
    /// The categories of a collision, or those that it collides with. Unknown bits are kept.
    pub struct CollisionFlags(u32) {
        /// An object.
        OBJECT = 0x1,
        /// Ground to walk on.
        WALKABLE = 0x2,
        /// Something that rays hit.
        HITSCAN = 0x8,
        /// The player's own character.
        LOCAL_PLAYER = 0x10,
        /// Water.
        WATER = 0x40,
        /// A client-side object.
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
    /// The collisions, in file order.
    pub collisions: Vec<Collision<'d>>,
}

impl<'d> BcdFile<'d> {
    /// Decodes a file.
    ///
    /// # Errors
    /// `Malformed` if it is not a BCD file or is truncated, or if the types of a collision differ;
    /// a limit error if a limit is exceeded.
    pub fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        Self::read(reader, Types::MustAgree).map_err(Error::closed)
    }

    /// Decodes a file for tools, with warnings instead of errors where possible. If the types of a
    /// collision differ, the first determines whether there is a mesh, and the second determines
    /// the params. Bytes left at the end are skipped.
    pub fn open(bytes: &'d [u8], limits: &'d Limits) -> Result<(Self, Vec<String>)> {
        let mut reader = Reader::within(bytes, limits);
        let file = Self::read(&mut reader, Types::MayDiffer).map_err(Error::closed)?;
        let mismatches = file.collisions.iter().enumerate().flat_map(|(index, collision)| {
            let types = collision.other_type.map(|other| {
                let kind = collision.kind();
                format!("collision {index}: its two types differ: {other} and {kind}")
            });
            let name = not_utf8(format_args!("collision {index}: its name"), &collision.name);
            let material =
                not_utf8(format_args!("collision {index}: its material"), &collision.material);
            types.into_iter().chain(name).chain(material)
        });
        let warnings = collect_warnings(left_over(&reader).into_iter().chain(mismatches));
        Ok((file, warnings))
    }

    /// Decodes a file, refusing it if there are any warnings. Used to recognise BCD files.
    pub fn strict(bytes: &'d [u8], limits: &'d Limits) -> Result<Self> {
        let (file, warnings) = Self::open(bytes, limits)?;
        refuse_warnings(warnings.into_iter()).map(|()| file)
    }

    /// Encodes the file.
    ///
    /// # Errors
    /// `Value` for a mesh without vertices and faces, for another shape that has them, or if the
    /// types of a collision differ; a limit error for lists of 4 Gi elements or more.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        let inside = |error: Error| error.inside("collisions");
        writer.u32(count(self.collisions.len()).map_err(inside)?);
        self.collisions.iter().enumerate().try_for_each(|(index, collision)| {
            collision.encode(writer).map_err(|error| inside(error.inside_item(index)))
        })
    }

    /// Encodes the file to bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut writer = Writer::new();
        self.encode(&mut writer).map(|()| writer.into_bytes())
    }

    /// Reads a file from the JSON of a traced decode.
    pub fn from_json(json: &Json) -> Result<BcdFile<'static>> {
        let mut fields = FieldsOf::new(json)?;
        let list = list_from_json(fields.given("collisions")?);
        fields.end()?;
        let collisions: Vec<Collision<'static>> =
            list.map_err(|error| error.inside("collisions"))?;
        Ok(BcdFile { collisions })
    }

    /// Generates a file for tests.
    pub fn sample(sampler: &mut Sampler) -> Self {
        let count = sampler.length(5);
        Self { collisions: (0..count).map(|_| Collision::sample(sampler)).collect() }
    }

    fn read<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, types: Types) -> Result<Self> {
        reader.list("collisions", |reader| {
            let count = u32::from_le_bytes(reader.take_array()?);
            let capacity = capacity(reader, count, LEAST)?;
            // Collisions take more memory than their encoding, so capacity grows with the decoded
            // data.
            let mut collisions = Vec::with_capacity(capacity.min(64));
            for index in 0..count as usize {
                collisions.push(reader.item(index, |reader| Collision::read(reader, "", types))?);
            }
            Ok(Self { collisions })
        })
    }
}

/// Checks that there are enough bytes for this many elements and returns the capacity for them.
fn capacity<'n, T: Trace<'n>>(reader: &Reader<'_, T>, count: u32, least: usize) -> Result<usize> {
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
    fn contradictory_json_is_refused() {
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
            "collisions[0].mesh: Sphere (2) cannot have a mesh"
        );
        assert_eq!(
            wrong("params", json!({"length": 1})),
            "collisions[0].params.radius: is missing"
        );
    }
}
