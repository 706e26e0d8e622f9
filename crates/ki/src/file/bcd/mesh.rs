//! The triangles of a collision.

use std::borrow::Cow;

use worldwire_core::json::{FieldsOf, Given};
use worldwire_core::{
    Error, Field, Reader, Result, Sampler, Trace, Writer, list_from_json, record,
};

use super::super::primitive::{Many, Vector3};
use super::{capacity, count};

record! {
    /// A triangle.
    pub struct Face {
        /// The indices of its vertices. They can be out of bounds.
        vertices "face": [u32; 3],
        /// The direction that the triangle faces.
        normal "normal": Vector3,
    }
}

/// Triangles: `u32` count of vertices, `u32` count of faces, then vertices of 12 bytes and faces of
/// 24 bytes.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Mesh {
    /// The vertices, in the space of the collision.
    pub vertices: Vec<Vector3>,
    /// The triangles.
    pub faces: Vec<Face>,
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
            // Both must be present before either is allocated.
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

/// Decodes elements that are all present.
fn elements<'d, 'n, E: Field<'d>, T: Trace<'n>>(
    reader: &mut Reader<'d, T>,
    count: u32,
) -> Result<Vec<E>> {
    let mut elements = Vec::with_capacity(capacity(reader, count, E::LEAST)?);
    for index in 0..count as usize {
        elements.push(reader.item(index, |reader| E::decode(reader, ""))?);
    }
    Ok(elements)
}
