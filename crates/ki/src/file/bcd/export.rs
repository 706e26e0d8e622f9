//! Collisions as 3D files: Wavefront OBJ and glTF.
//!
//! Both have y up and z to the viewer, so a place (x, y, z) becomes (x, z, -y).

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use worldwire_core::json::Json;
use worldwire_core::{Error, Result};

use super::{BcdFile, Collision, CollisionFlags, Surface};

/// The most vertices of an export: a round shape of 80 bytes gets over a hundred.
pub const MOST_VERTICES: usize = 1 << 22;

/// The most collisions of an export: each has names and numbers of its own.
pub const MOST_COLLISIONS: usize = 1 << 16;

/// A 3D file, and what is not in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// The file.
    pub text: String,
    /// How many rays and planes were left out.
    pub left_out: usize,
    /// How many faces of meshes were left out: with vertices that are not there or not finite.
    pub skipped_faces: usize,
}

impl BcdFile<'_> {
    /// The shapes as Wavefront OBJ: an object for each collision, with its material. Rays and planes
    /// are left out.
    ///
    /// # Errors
    /// The limits on collisions and vertices, [`MOST_COLLISIONS`] and [`MOST_VERTICES`].
    pub fn to_obj(&self) -> Result<Exported> {
        let mut text = String::from("# Collisions of a zone. y is up.\n");
        let mut before = 1;
        let (left_out, skipped_faces) =
            self.each_surface(MOST_VERTICES, |index, collision, surface| {
                let name = word(&collision.name.to_lossy());
                let _ = writeln!(text, "o {index}_{name}");
                let material = collision.material.to_lossy();
                if !material.is_empty() {
                    let _ = writeln!(text, "usemtl {}", word(&material));
                }
                for vertex in &surface.vertices {
                    let [x, y, z] = y_up(*vertex);
                    let _ = writeln!(text, "v {x} {y} {z}");
                }
                for [a, b, c] in &surface.faces {
                    let [a, b, c] = [a, b, c].map(|at| *at as usize + before);
                    let _ = writeln!(text, "f {a} {b} {c}");
                }
                before += surface.vertices.len();
            })?;
        Ok(Exported { text, left_out, skipped_faces })
    }

    /// The shapes as glTF 2.0 in one file: a node for each collision, with its name, and with type,
    /// material and flags as extras. Normals are left to the viewer, since files have them by face.
    /// Rays and planes are left out.
    ///
    /// # Errors
    /// The limits on collisions and vertices, [`MOST_COLLISIONS`] and [`MOST_VERTICES`].
    pub fn to_gltf(&self) -> Result<Exported> {
        let mut buffer: Vec<u8> = Vec::new();
        let (mut nodes, mut meshes) = (Vec::new(), Vec::new());
        let (mut views, mut accessors) = (Vec::new(), Vec::new());
        let (left_out, skipped_faces) =
            self.each_surface(MOST_VERTICES, |index, collision, surface| {
                if surface.faces.is_empty() {
                    return;
                }
                let start = buffer.len();
                let (mut low, mut high) = ([f32::INFINITY; 3], [f32::NEG_INFINITY; 3]);
                for vertex in &surface.vertices {
                    let vertex = y_up(*vertex);
                    for (part, (low, high)) in vertex.iter().zip(low.iter_mut().zip(&mut high)) {
                        buffer.extend(part.to_le_bytes());
                        (*low, *high) = (low.min(*part), high.max(*part));
                    }
                }
                let middle = buffer.len();
                for at in surface.faces.as_flattened() {
                    buffer.extend(at.to_le_bytes());
                }
                // 34962 and 34963 are buffers of vertices and of indices; 5126 is f32, 5125 is u32.
                for (start, end, target) in [(start, middle, 34962), (middle, buffer.len(), 34963)]
                {
                    let length = end - start;
                    views.push(json!({
                        "buffer": 0, "byteOffset": start, "byteLength": length, "target": target,
                    }));
                }
                accessors.push(json!({
                    "bufferView": views.len() - 2, "componentType": 5126, "type": "VEC3",
                    "count": surface.vertices.len(), "min": low, "max": high,
                }));
                accessors.push(json!({
                    "bufferView": views.len() - 1, "componentType": 5125, "type": "SCALAR",
                    "count": surface.faces.len() * 3,
                }));
                meshes.push(json!({"primitives": [{
                    "attributes": {"POSITION": accessors.len() - 2}, "indices": accessors.len() - 1,
                }]}));
                nodes.push(json!({
                    "name": collision.name.to_lossy(), "mesh": meshes.len() - 1,
                    "extras": {
                        "collision": index, "type": collision.kind().name(),
                        "material": collision.material.to_lossy(),
                        "category_flags": flags(collision.category_flags),
                        "collision_flags": flags(collision.collision_flags),
                    },
                }));
            })?;
        let all: Vec<usize> = (0..nodes.len()).collect();
        let mut gltf = json!({
            "asset": {"version": "2.0", "generator": "worldwire"},
            "scene": 0, "scenes": [if all.is_empty() { json!({}) } else { json!({"nodes": all}) }],
        });
        // Empty lists are not allowed.
        if !nodes.is_empty() {
            let uri = format!("data:application/octet-stream;base64,{}", STANDARD.encode(&buffer));
            gltf["nodes"] = nodes.into();
            gltf["meshes"] = meshes.into();
            gltf["accessors"] = accessors.into();
            gltf["bufferViews"] = views.into();
            gltf["buffers"] = json!([{"byteLength": buffer.len(), "uri": uri}]);
        }
        let mut text = gltf.to_string();
        text.push('\n');
        Ok(Exported { text, left_out, skipped_faces })
    }

    /// Hands out all surfaces. Gives how many collisions have none, and how many faces were left
    /// out.
    fn each_surface(
        &self,
        most: usize,
        mut take: impl FnMut(usize, &Collision<'_>, &Surface),
    ) -> Result<(usize, usize)> {
        if self.collisions.len() > MOST_COLLISIONS {
            let (most, asked) = (MOST_COLLISIONS as u64, self.collisions.len() as u64);
            return Err(Error::limit("collisions of an export", most, asked));
        }
        let (mut vertices, mut left_out, mut skipped) = (0, 0, 0);
        for (index, collision) in self.collisions.iter().enumerate() {
            let Some(surface) = collision.surface() else {
                left_out += 1;
                continue;
            };
            vertices += surface.vertices.len();
            if vertices > most {
                let (most, asked) = (most as u64, vertices as u64);
                return Err(Error::limit("vertices of an export", most, asked));
            }
            skipped += surface.skipped;
            take(index, collision, &surface);
        }
        Ok((left_out, skipped))
    }
}

/// A place with y up, in single precision and without -0.
fn y_up([x, y, z]: [f64; 3]) -> [f32; 3] {
    #[expect(clippy::cast_possible_truncation, reason = "surfaces fit into single precision")]
    [x, z, -y].map(|part| part as f32 + 0.0)
}

fn flags(flags: CollisionFlags) -> Vec<Json> {
    let (names, rest) = CollisionFlags::NAMES.flags(flags.0.into());
    let rest = (rest != 0).then(|| Json::from(format!("0x{rest:x}")));
    names.into_iter().map(Json::from).chain(rest).collect()
}

/// A name as one word.
fn word(name: &str) -> String {
    let odd = |part: char| part.is_whitespace() || part.is_control();
    name.chars().map(|part| if odd(part) { '_' } else { part }).collect()
}

#[cfg(test)]
mod tests {
    use worldwire_core::Float;

    use super::super::*;
    use super::*;

    fn file() -> BcdFile<'static> {
        let json = json!({"collisions": [
            {"type": "Mesh", "category_flags": ["WALKABLE", "0x4"], "collision_flags": [],
             "name": "the ground\n", "mesh": {"vertices": [[0, 0, 1], [10, 0, 2], [0, 10.5, 3]],
             "faces": [{"face": [0, 1, 2], "normal": [0, 0, 1]},
                       {"face": [0, 1, 7], "normal": [0, 0, 1]}]},
             "rotation": [[1, 0, 0], [0, 1, 0], [0, 0, 1]], "location": [0, 0, 0], "scale": 1,
             "material": "Grass"},
            {"type": "Plane", "category_flags": [], "collision_flags": [], "name": "w",
             "rotation": [[1, 0, 0], [0, 1, 0], [0, 0, 1]], "location": [0, 0, 0], "scale": 1,
             "material": "", "params": {"normal": [0, 0, 1], "distance": 0}},
        ]});
        BcdFile::from_json(&json).unwrap()
    }

    #[test]
    fn obj_counts_vertices_from_one_and_has_y_up() {
        let obj = file().to_obj().unwrap();
        assert_eq!((obj.left_out, obj.skipped_faces), (1, 1));
        insta::assert_snapshot!(obj.text, @r#"
        # Collisions of a zone. y is up.
        o 0_the_ground_
        usemtl Grass
        v 0 1 0
        v 10 2 0
        v 0 3 -10.5
        f 1 2 3
        "#);
    }

    #[test]
    fn gltf_points_at_what_is_there() {
        let gltf = file().to_gltf().unwrap();
        assert_eq!((gltf.left_out, gltf.skipped_faces), (1, 1));
        let json: Json = serde_json::from_str(&gltf.text).unwrap();
        assert_eq!(json["nodes"][0]["name"], "the ground\n");
        assert_eq!(json["nodes"][0]["extras"]["category_flags"], json!(["WALKABLE", "0x4"]));
        assert_eq!(json["accessors"][0]["max"], json!([10.0, 3.0, 0.0]));
        let uri = json["buffers"][0]["uri"].as_str().unwrap();
        let bytes = STANDARD.decode(uri.rsplit(',').next().unwrap()).unwrap();
        assert_eq!(json["buffers"][0]["byteLength"], bytes.len());
        let view = &json["bufferViews"][1];
        let start = usize::try_from(view["byteOffset"].as_u64().unwrap()).unwrap();
        assert_eq!(bytes[start..], [0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0]);
        let empty = BcdFile::default().to_gltf().unwrap().text;
        assert_eq!(
            empty,
            "{\"asset\":{\"generator\":\"worldwire\",\"version\":\"2.0\"},\
                           \"scene\":0,\"scenes\":[{}]}\n"
        );
    }

    #[test]
    fn vertices_are_bounded() {
        let sphere = Params::Sphere(SphereParams { radius: Float(1.0) });
        let one = Collision { params: sphere, mesh: None, ..file().collisions.swap_remove(0) };
        let file = BcdFile { collisions: vec![one; 3] };
        let error = file.each_surface(300, |_, _, _| ()).unwrap_err().to_string();
        assert_eq!(error, "wanted at most 300 (vertices of an export), found 342");
        assert!(file.each_surface(342, |_, _, _| ()).is_ok());
    }
}
