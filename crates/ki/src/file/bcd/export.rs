//! Exporting collisions as 3D files, such as Wavefront OBJ.
//!
//! In OBJ and glTF, y points up and z towards the viewer, so a point (x, y, z) becomes (x, z, -y).

use std::fmt::Write as _;

use worldwire_core::{Error, Result};

use super::{BcdFile, Collision, Surface};

/// The maximum number of vertices in an export: a round shape of 80 bytes becomes over a hundred
/// vertices.
pub const MAX_VERTICES: usize = 1 << 22;

/// The maximum number of collisions in an export, since each adds names and numbers.
pub const MAX_COLLISIONS: usize = 1 << 16;

/// A 3D file, and the number of parts omitted from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// The file.
    pub text: String,
    /// The number of omitted rays and planes.
    pub left_out: usize,
    /// The number of mesh faces omitted because their vertices are missing or not finite.
    pub skipped_faces: usize,
}

impl BcdFile<'_> {
    /// Exports the shapes as Wavefront OBJ: an object for each collision, with its material. Rays
    /// and planes are omitted.
    ///
    /// # Errors
    /// A limit error for more collisions or vertices than [`MAX_COLLISIONS`] and [`MAX_VERTICES`]
    /// allow.
    pub fn to_obj(&self) -> Result<Exported> {
        let mut text = String::from("# Collisions of a zone. y is up.\n");
        let mut before = 1;
        let (left_out, skipped_faces) =
            self.each_surface(MAX_VERTICES, |index, collision, surface| {
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

    /// Visits all surfaces. Returns the number of collisions without surfaces and the number of
    /// omitted faces.
    fn each_surface(
        &self,
        max: usize,
        mut take: impl FnMut(usize, &Collision<'_>, &Surface),
    ) -> Result<(usize, usize)> {
        self.check_collisions()?;
        let (mut vertices, mut left_out, mut skipped) = (0, 0, 0);
        for (index, collision) in self.collisions.iter().enumerate() {
            let Some(surface) = collision.surface() else {
                left_out += 1;
                continue;
            };
            vertices += surface.vertices.len();
            check_vertices(vertices, max)?;
            skipped += surface.skipped;
            take(index, collision, &surface);
        }
        Ok((left_out, skipped))
    }

    /// Refuses more collisions than an export can have.
    pub(super) fn check_collisions(&self) -> Result<()> {
        if self.collisions.len() > MAX_COLLISIONS {
            let (max, asked) = (MAX_COLLISIONS as u64, self.collisions.len() as u64);
            return Err(Error::limit("collisions of an export", max, asked));
        }
        Ok(())
    }
}

/// Refuses more vertices than an export can have.
pub(super) fn check_vertices(count: usize, max: usize) -> Result<()> {
    if count > max {
        return Err(Error::limit("vertices of an export", max as u64, count as u64));
    }
    Ok(())
}

/// A point with y up, in single precision and without -0.
pub(super) fn y_up([x, y, z]: [f64; 3]) -> [f32; 3] {
    #[expect(clippy::cast_possible_truncation, reason = "surfaces fit into single precision")]
    [x, z, -y].map(|part| part as f32 + 0.0)
}

/// A name as a single word.
fn word(name: &str) -> String {
    let is_separator = |part: char| part.is_whitespace() || part.is_control();
    name.chars().map(|part| if is_separator(part) { '_' } else { part }).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use worldwire_core::Float;
    use worldwire_core::json::json;

    use super::super::*;

    pub(in crate::file::bcd) fn file() -> BcdFile<'static> {
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
    fn obj_counts_vertices_from_one_with_y_up() {
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
    fn vertices_are_bounded() {
        let sphere = Params::Sphere(SphereParams { radius: Float(1.0) });
        let one = Collision { params: sphere, mesh: None, ..file().collisions.swap_remove(0) };
        let file = BcdFile { collisions: vec![one; 3] };
        let error = file.each_surface(300, |_, _, _| ()).unwrap_err().to_string();
        assert_eq!(error, "wanted at most 300 (vertices of an export), found 342");
        assert!(file.each_surface(342, |_, _, _| ()).is_ok());
    }
}
