//! Exporting collisions as glTF 2.0, in a single file.

use std::collections::HashMap;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};
use worldwire_core::Result;

use super::export::{Exported, MAX_VERTICES, check_vertices, y_up};
use super::shape::{Placed, Unit};
use super::{BcdFile, Collision, CollisionFlags, Surface};

impl BcdFile<'_> {
    /// Exports the shapes as glTF 2.0 in a single file: a named node for each collision, with type,
    /// material and flags as extras. All boxes share one mesh, as do all spheres, all cylinders,
    /// and all tubes of the same proportions; each node rotates, scales and moves its mesh. Normals
    /// are left to the viewer, because BCD files store them per face. Rays and planes are omitted.
    ///
    /// # Errors
    /// A limit error for more collisions or vertices than [`MAX_COLLISIONS`](super::MAX_COLLISIONS)
    /// and [`MAX_VERTICES`] allow.
    pub fn to_gltf(&self) -> Result<Exported> {
        self.check_collisions()?;
        let mut gltf = Gltf::default();
        let (mut left_out, mut skipped_faces) = (0, 0);
        for (index, collision) in self.collisions.iter().enumerate() {
            if let Some(placed) = collision.placed() {
                let mesh = gltf.unit(placed.unit)?;
                gltf.node(index, collision, mesh, Some(&placed));
                continue;
            }
            let Some(surface) = collision.surface() else {
                left_out += 1;
                continue;
            };
            skipped_faces += surface.skipped;
            if !surface.faces.is_empty() {
                let mesh = gltf.mesh(&surface)?;
                gltf.node(index, collision, mesh, None);
            }
        }
        Ok(Exported { text: gltf.into_text(), left_out, skipped_faces })
    }
}

/// A file under construction.
#[derive(Default)]
struct Gltf {
    buffer: Vec<u8>,
    vertices: usize,
    nodes: List,
    meshes: List,
    accessors: List,
    views: List,
    /// The meshes of units.
    units: HashMap<Unit, usize>,
}

/// A list in JSON.
#[derive(Default)]
struct List {
    text: String,
    count: usize,
}

impl List {
    /// Adds an element; returns its index.
    fn push(&mut self, element: &Json) -> usize {
        let comma = if self.count > 0 { "," } else { "" };
        let _ = write!(self.text, "{comma}{element}");
        self.count += 1;
        self.count - 1
    }
}

impl Gltf {
    /// The mesh of a unit, created on first use.
    fn unit(&mut self, unit: Unit) -> Result<usize> {
        if let Some(mesh) = self.units.get(&unit) {
            return Ok(*mesh);
        }
        let mesh = self.mesh(&unit.surface())?;
        self.units.insert(unit, mesh);
        Ok(mesh)
    }

    fn mesh(&mut self, surface: &Surface) -> Result<usize> {
        self.vertices += surface.vertices.len();
        check_vertices(self.vertices, MAX_VERTICES)?;
        let start = self.buffer.len();
        let (mut low, mut high) = ([f32::INFINITY; 3], [f32::NEG_INFINITY; 3]);
        for vertex in &surface.vertices {
            let vertex = y_up(*vertex);
            for (part, (low, high)) in vertex.iter().zip(low.iter_mut().zip(&mut high)) {
                self.buffer.extend(part.to_le_bytes());
                (*low, *high) = (low.min(*part), high.max(*part));
            }
        }
        let middle = self.buffer.len();
        for at in surface.faces.as_flattened() {
            self.buffer.extend(at.to_le_bytes());
        }
        // 34962 and 34963 are vertex and index buffers; 5126 is f32, 5125 is u32.
        let mut view = |start, end, target| {
            let length: usize = end - start;
            self.views.push(&json!({
                "buffer": 0, "byteOffset": start, "byteLength": length, "target": target,
            }))
        };
        let (places, indices) =
            (view(start, middle, 34962), view(middle, self.buffer.len(), 34963));
        let places = self.accessors.push(&json!({
            "bufferView": places, "componentType": 5126, "type": "VEC3",
            "count": surface.vertices.len(), "min": low, "max": high,
        }));
        let indices = self.accessors.push(&json!({
            "bufferView": indices, "componentType": 5125, "type": "SCALAR",
            "count": surface.faces.len() * 3,
        }));
        Ok(self.meshes.push(&json!({"primitives": [{
            "attributes": {"POSITION": places}, "indices": indices,
        }]})))
    }

    fn node(
        &mut self,
        index: usize,
        collision: &Collision<'_>,
        mesh: usize,
        placed: Option<&Placed>,
    ) {
        let mut node = json!({
            "name": collision.name.to_lossy(), "mesh": mesh,
            "extras": {
                "collision": index, "type": collision.kind().name(),
                "material": collision.material.to_lossy(),
                "category_flags": flags(collision.category_flags),
                "collision_flags": flags(collision.collision_flags),
            },
        });
        if let Some(placed) = placed {
            let [x, y, z, w] = placed.rotation;
            let [right, up, back] = y_up([x, y, z]);
            #[expect(clippy::cast_possible_truncation, reason = "the value is at most 1")]
            let w = w as f32;
            let [wide, deep, high] = placed.size;
            node["translation"] = json!(y_up(placed.location));
            node["rotation"] = json!([right, up, back, w]);
            // The sign of y applies to directions, not to sizes.
            node["scale"] = json!(y_up([wide, -deep, high]));
        }
        self.nodes.push(&node);
    }

    fn into_text(self) -> String {
        let mut text = String::from(
            r#"{"asset":{"generator":"worldwire","version":"2.0"},"scene":0,"scenes":[{"#,
        );
        if self.nodes.count == 0 {
            // Empty lists are not allowed.
            text.push_str("}]}\n");
            return text;
        }
        text.push_str("\"nodes\":[");
        for index in 0..self.nodes.count {
            let comma = if index > 0 { "," } else { "" };
            let _ = write!(text, "{comma}{index}");
        }
        text.push_str("]}]");
        for (name, list) in [
            ("nodes", self.nodes),
            ("meshes", self.meshes),
            ("accessors", self.accessors),
            ("bufferViews", self.views),
        ] {
            let _ = write!(text, ",\"{name}\":[{}]", list.text);
        }
        let length = self.buffer.len();
        let _ = write!(text, ",\"buffers\":[{{\"byteLength\":{length},\"uri\":\"");
        text.push_str("data:application/octet-stream;base64,");
        STANDARD.encode_string(&self.buffer, &mut text);
        text.push_str("\"}]}\n");
        text
    }
}

fn flags(flags: CollisionFlags) -> Vec<Json> {
    let (names, rest) = CollisionFlags::NAMES.flags(flags.0.into());
    let rest = (rest != 0).then(|| Json::from(format!("0x{rest:x}")));
    names.into_iter().map(Json::from).chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::Value as Json;
    use worldwire_core::{Float, Sampler};

    use super::super::super::primitive::{Matrix3, Vector3};
    use super::super::export::tests::file;
    use super::super::*;
    use super::*;

    #[test]
    fn gltf_references_are_valid() {
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

    /// The vertices of a node in world space, computed from the text.
    fn world(gltf: &Json, node: usize) -> Vec<[f64; 3]> {
        let uri = gltf["buffers"][0]["uri"].as_str().unwrap();
        let bytes = STANDARD.decode(uri.rsplit(',').next().unwrap()).unwrap();
        let node = &gltf["nodes"][node];
        let numbers = |key: &str, count: usize| -> Option<Vec<f64>> {
            let list = node[key].as_array()?;
            assert_eq!(list.len(), count);
            list.iter().map(Json::as_f64).collect()
        };
        let mesh = &gltf["meshes"][usize::try_from(node["mesh"].as_u64().unwrap()).unwrap()];
        let number = |json: &Json| usize::try_from(json.as_u64().unwrap()).unwrap();
        let accessor = number(&mesh["primitives"][0]["attributes"]["POSITION"]);
        let view = number(&gltf["accessors"][accessor]["bufferView"]);
        let start = number(&gltf["bufferViews"][view]["byteOffset"]);
        let length = number(&gltf["bufferViews"][view]["byteLength"]);
        let parts: Vec<f64> = bytes[start..start + length]
            .as_chunks::<4>()
            .0
            .iter()
            .map(|part| f32::from_le_bytes(*part).into())
            .collect();
        let scale = numbers("scale", 3).unwrap_or_else(|| vec![1.0; 3]);
        let turn = numbers("rotation", 4).unwrap_or_else(|| vec![0.0, 0.0, 0.0, 1.0]);
        let move_by = numbers("translation", 3).unwrap_or_else(|| vec![0.0; 3]);
        let cross = |a: [f64; 3], b: [f64; 3]| {
            [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
        };
        let place = |vertex: &[f64; 3]| {
            let scaled = [0, 1, 2].map(|axis| vertex[axis] * scale[axis]);
            let axis = [turn[0], turn[1], turn[2]];
            let once = cross(axis, scaled);
            let twice = cross(axis, [0, 1, 2].map(|it| once[it] + turn[3] * scaled[it]));
            [0, 1, 2].map(|axis| scaled[axis] + 2.0 * twice[axis] + move_by[axis])
        };
        parts.as_chunks::<3>().0.iter().map(place).collect()
    }

    #[test]
    fn shared_meshes_are_placed_where_the_shapes_are() {
        let shapes = [
            Params::Box(BoxParams { length: Float(2.0), width: Float(5.0), depth: Float(6.0) }),
            Params::Sphere(SphereParams { radius: Float(1.5) }),
            Params::Cylinder(CylinderParams { radius: Float(1.0), length: Float(4.0) }),
            Params::Tube(CylinderParams { radius: Float(0.5), length: Float(4.0) }),
        ];
        let angle = |number: u32| f64::from(number) * 0.7;
        let matrix = |number: u32| {
            let ((s, c), (t, d)) = (angle(number).sin_cos(), angle(number * 3).sin_cos());
            // A rotation about z, then about x.
            let rows = [[c, -s, 0.0], [d * s, d * c, -t], [t * s, t * c, d]];
            #[expect(clippy::cast_possible_truncation, reason = "files have single precision")]
            Matrix3(rows.map(|row| Vector3(row.map(|part| part as f32))))
        };
        // The rotations include half turns about each axis, whose quaternions cannot be computed
        // from the trace alone.
        let half = |signs: [f32; 3]| {
            let [a, b, c] = signs;
            Matrix3([Vector3([a, 0.0, 0.0]), Vector3([0.0, b, 0.0]), Vector3([0.0, 0.0, c])])
        };
        let halves = [[1.0, -1.0, -1.0], [-1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]].map(half);
        let rotations: Vec<Matrix3> = (0..9).map(matrix).chain(halves).collect();
        let mut collisions = Vec::new();
        for rotation in &rotations {
            for params in &shapes {
                collisions.push(Collision {
                    params: params.clone(),
                    mesh: None,
                    rotation: *rotation,
                    location: Vector3([10.0, 20.0, 30.0]),
                    scale: Float(2.0),
                    ..file().collisions.swap_remove(0)
                });
            }
        }
        let file = BcdFile { collisions };
        let gltf: Json = serde_json::from_str(&file.to_gltf().unwrap().text).unwrap();
        assert_eq!(gltf["meshes"].as_array().unwrap().len(), shapes.len());
        for (index, collision) in file.collisions.iter().enumerate() {
            let wanted = collision.surface().unwrap().vertices;
            let found = world(&gltf, index);
            assert_eq!(found.len(), wanted.len());
            for (found, wanted) in found.iter().zip(&wanted) {
                for (found, wanted) in found.iter().zip(y_up(*wanted)) {
                    assert!((found - f64::from(wanted)).abs() < 1e-4, "{index}: {found} {wanted}");
                }
            }
        }
    }

    #[test]
    fn shapes_that_no_node_can_transform_have_separate_meshes() {
        let sphere = |radius| Params::Sphere(SphereParams { radius: Float(radius) });
        let one = |params, first: f32, scale| Collision {
            params,
            mesh: None,
            rotation: Matrix3([
                Vector3([first, 0.0, 0.0]),
                Vector3([0.0, 1.0, 0.0]),
                Vector3([0.0, 0.0, 1.0]),
            ]),
            location: Vector3([1.0, 2.0, 3.0]),
            scale: Float(scale),
            ..file().collisions.swap_remove(0)
        };
        // These are mirrored, stretched, inside out, and collapsed to a point.
        let collisions = [
            one(sphere(1.0), -1.0, 1.0),
            one(sphere(1.0), 2.0, 1.0),
            one(sphere(1.0), 1.0, -1.0),
            one(sphere(0.0), 1.0, 1.0),
        ];
        let file = BcdFile { collisions: collisions.to_vec() };
        let gltf: Json = serde_json::from_str(&file.to_gltf().unwrap().text).unwrap();
        for (index, collision) in file.collisions.iter().enumerate() {
            assert!(gltf["nodes"][index]["rotation"].is_null());
            let wanted = collision.surface().unwrap().vertices;
            let wanted: Vec<_> = wanted.into_iter().map(|it| y_up(it).map(f64::from)).collect();
            assert_eq!(world(&gltf, index), wanted);
        }
        let tube = CylinderParams::sample(&mut Sampler::new(1));
        let bad = [f32::NAN, f32::INFINITY, 0.0];
        for length in bad {
            let tube = CylinderParams { length: Float(length), ..tube.clone() };
            assert!(one(Params::Tube(tube), 1.0, 1.0).placed().is_none(), "{length}");
        }
    }

    #[test]
    fn many_shapes_stay_small() {
        let sphere = Params::Sphere(SphereParams { radius: Float(1.0) });
        let one = Collision { params: sphere, mesh: None, ..file().collisions.swap_remove(0) };
        let file = BcdFile { collisions: vec![one; 1000] };
        let size = file.to_bytes().unwrap().len();
        let text = file.to_gltf().unwrap().text;
        assert!(text.len() < 5 * size, "{} bytes of {size}", text.len());
    }
}
