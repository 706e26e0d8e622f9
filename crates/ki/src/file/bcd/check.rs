//! Checks collisions and counts them by kind.

use std::collections::BTreeMap;

use super::super::primitive::shown;
use super::{BcdFile, CollisionFlags};

/// Statistics about a file's contents.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Collisions by type.
    pub types: BTreeMap<&'static str, usize>,
    /// Collisions by category flag; flags without a name are counted as `other`.
    pub categories: BTreeMap<&'static str, usize>,
    /// Collisions by material.
    pub materials: BTreeMap<String, usize>,
    /// The number of vertices of all meshes.
    pub vertices: usize,
    /// The number of faces of all meshes.
    pub faces: usize,
}

impl BcdFile<'_> {
    /// Reports problems that do not prevent decoding: faces with missing vertices, and numbers that
    /// are not finite. Each text is built on demand.
    pub fn check(&self) -> impl Iterator<Item = String> {
        self.collisions.iter().enumerate().flat_map(|(index, collision)| {
            let name = move || format!("collision {index} ({})", shown(&collision.name));
            let is_finite = collision.location.is_finite()
                && collision.scale.0.is_finite()
                && collision.rotation.0.iter().all(|row| row.is_finite());
            let placed = (!is_finite).then(|| format!("{}: its location is not finite", name()));
            let mesh = collision.mesh.iter();
            let faces = mesh.clone().flat_map(move |mesh| {
                let count = mesh.vertices.len();
                let past = mesh.faces.iter().enumerate().filter_map(move |(index, face)| {
                    let past = face.vertices.iter().find(|vertex| **vertex as usize >= count)?;
                    Some((index, *past))
                });
                past.map(move |(face, vertex)| {
                    format!(
                        "{}: face {face}: vertex {vertex} is missing (vertices in the mesh: {count})",
                        name()
                    )
                })
            });
            let vertices = mesh.filter_map(move |mesh| {
                let infinite = mesh.vertices.iter().filter(|vertex| !vertex.is_finite()).count();
                (infinite > 0).then(|| format!("{}: {infinite} vertices are not finite", name()))
            });
            placed.into_iter().chain(vertices).chain(faces)
        })
    }

    /// Counts the file's contents.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let mut sums = Statistics::default();
        for collision in &self.collisions {
            let kind = collision.kind().name().unwrap_or("other");
            *sums.types.entry(kind).or_default() += 1;
            let (names, rest) = CollisionFlags::NAMES.flags(collision.category_flags.0.into());
            for name in names.into_iter().chain((rest != 0).then_some("other")) {
                *sums.categories.entry(name).or_default() += 1;
            }
            *sums.materials.entry(collision.material.to_lossy().into_owned()).or_default() += 1;
            if let Some(mesh) = &collision.mesh {
                sums.vertices += mesh.vertices.len();
                sums.faces += mesh.faces.len();
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use worldwire_core::Float;

    use super::super::super::primitive::{Matrix3, Text, Vector3};
    use super::super::*;

    #[test]
    fn problems_are_reported_and_contents_counted() {
        let face = |vertices| Face { vertices, normal: Vector3::default() };
        let mesh = Collision {
            category_flags: CollisionFlags(0x8042),
            collision_flags: CollisionFlags(0),
            mesh: Some(Mesh {
                vertices: vec![Vector3::default(), Vector3([0.0, f32::NAN, 0.0])],
                faces: vec![face([0, 1, 0]), face([0, 1, 99])],
            }),
            other_type: None,
            name: Text::from("Ground"),
            rotation: Matrix3::IDENTITY,
            location: Vector3::default(),
            scale: Float(f32::INFINITY),
            material: Text::from("Grass"),
            params: Params::Mesh,
        };
        let sphere = Params::Sphere(SphereParams { radius: Float(1.0) });
        let good = Collision { mesh: None, params: sphere, scale: Float(1.0), ..mesh.clone() };
        let file = BcdFile { collisions: vec![good, mesh] };
        let reported: Vec<String> = file.check().collect();
        insta::assert_snapshot!(reported.join("\n"), @r#"
        collision 1 ("Ground"): its location is not finite
        collision 1 ("Ground"): 1 vertices are not finite
        collision 1 ("Ground"): face 1: vertex 99 is missing (vertices in the mesh: 2)
        "#);
        let sums = file.statistics();
        assert_eq!(sums.types, [("Mesh", 1), ("Sphere", 1)].into());
        assert_eq!(sums.categories, [("WALKABLE", 2), ("WATER", 2), ("other", 2)].into());
        assert_eq!(sums.materials, [("Grass".to_owned(), 2)].into());
        assert_eq!((sums.vertices, sums.faces), (2, 2));
    }
}
