//! Converting shapes to triangles.

use std::f64::consts::{FRAC_PI_2, TAU};

use super::{Collision, Params};

/// The number of corners of a circle.
const CORNERS: u32 = 16;
/// The number of rings of a hemisphere, without its pole.
const RINGS: u32 = 4;

/// Triangles in world space.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Surface {
    /// The vertices: x, y, z, with z up. All are finite.
    pub vertices: Vec<[f64; 3]>,
    /// The vertex indices of each triangle, all in bounds.
    pub faces: Vec<[u32; 3]>,
    /// The number of mesh faces omitted because their vertices are missing or not finite.
    pub skipped: usize,
}

/// A shape of unit size, which many collisions share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Unit {
    /// A box from -1 to 1 along all axes.
    Box,
    /// A sphere of radius 1.
    Sphere,
    /// A cylinder of radius 1, from -1 to 1 along z.
    Cylinder,
    /// A capsule of radius 1. Holds half its length without the ends, as the bits of an `f32`.
    Tube(u32),
}

/// A unit with its position, size and rotation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Placed {
    pub(super) unit: Unit,
    /// The scale factors along x, y and z, all positive and finite.
    pub(super) size: [f64; 3],
    /// A quaternion: x, y, z, w.
    pub(super) rotation: [f64; 4],
    pub(super) location: [f64; 3],
}

impl Unit {
    /// Converts the unit to triangles.
    pub(super) fn surface(self) -> Surface {
        let mut surface = Surface::default();
        match self {
            Self::Box => surface.add_box([1.0; 3]),
            Self::Sphere => surface.add_round(1.0, 0.0, true),
            Self::Cylinder => surface.add_round(1.0, 1.0, false),
            Self::Tube(half) => surface.add_round(1.0, f32::from_bits(half).into(), true),
        }
        surface
    }
}

impl Collision<'_> {
    /// The shape as a placed unit. `None` for rays, planes and meshes, for shapes without a finite
    /// size, and for matrices that stretch or mirror.
    pub(super) fn placed(&self) -> Option<Placed> {
        let (unit, size) = match &self.params {
            Params::Box(params) => {
                (Unit::Box, [params.length, params.width, params.depth].map(|side| half(side.0)))
            }
            Params::Sphere(params) => (Unit::Sphere, [params.radius.0.into(); 3]),
            Params::Cylinder(params) => {
                let radius = params.radius.0.into();
                (Unit::Cylinder, [radius, radius, half(params.length.0)])
            }
            Params::Tube(params) => {
                let ratio = params.length.0 / 2.0 / params.radius.0;
                let is_good = ratio > 0.0 && ratio.is_finite();
                (is_good.then_some(Unit::Tube(ratio.to_bits()))?, [params.radius.0.into(); 3])
            }
            Params::Ray(_) | Params::Plane(_) | Params::Mesh => return None,
        };
        let size = size.map(|size| size * f64::from(self.scale.0));
        let location = self.location.0.map(f64::from);
        let (least, max) = (f64::from(f32::MIN_POSITIVE), f64::from(f32::MAX));
        let is_good = size.iter().all(|size| (least..=max).contains(size))
            && location.iter().all(|part| part.is_finite());
        let rotation = quaternion(self.rotation.0.each_ref().map(|row| row.0.map(f64::from)));
        Some(Placed { unit, size, rotation: rotation.filter(|_| is_good)?, location })
    }

    /// Converts the shape to triangles; circles have 16 corners. Returns `None` for rays and
    /// planes.
    ///
    /// A point p of the shape is at location + scale * (rotation * p). Unverified: that the scale
    /// multiplies, as in the engine's transforms. Comparing a scaled mesh with what the client
    /// shows would settle it.
    #[must_use]
    pub fn surface(&self) -> Option<Surface> {
        let mut surface = Surface::default();
        match (&self.params, &self.mesh) {
            (Params::Box(params), _) => {
                let half = [params.length, params.width, params.depth].map(|side| half(side.0));
                surface.add_box(half);
            }
            (Params::Sphere(params), _) => surface.add_round(params.radius.0.into(), 0.0, true),
            (Params::Cylinder(params), _) => {
                surface.add_round(params.radius.0.into(), half(params.length.0), false);
            }
            (Params::Tube(params), _) => {
                surface.add_round(params.radius.0.into(), half(params.length.0), true);
            }
            (Params::Ray(_) | Params::Plane(_), _) | (Params::Mesh, None) => return None,
            (Params::Mesh, Some(mesh)) => {
                surface.vertices = mesh.vertices.iter().map(|it| it.0.map(f64::from)).collect();
                surface.faces = mesh.faces.iter().map(|face| face.vertices).collect();
            }
        }
        for vertex in &mut surface.vertices {
            *vertex = self.place(*vertex);
        }
        surface.clean();
        Some(surface)
    }

    /// Transforms a point of the shape to world space.
    fn place(&self, local: [f64; 3]) -> [f64; 3] {
        let mut world = [0.0; 3];
        let rows = self.rotation.0.iter().zip(self.location.0);
        for (part, (row, location)) in world.iter_mut().zip(rows) {
            let turned: f64 = row.0.iter().zip(local).map(|(a, b)| f64::from(*a) * b).sum();
            *part = f64::from(location) + f64::from(self.scale.0) * turned;
        }
        world
    }
}

/// A rotation as a quaternion: x, y, z, w. Returns `None` if the matrix stretches or mirrors.
fn quaternion(rows: [[f64; 3]; 3]) -> Option<[f64; 4]> {
    /// The tolerance for products of rows, which must be near 1 and 0: files have single precision.
    const TOLERANCE: f64 = 1e-4;
    let [x, y, z] = rows;
    let dot = |a: [f64; 3], b: [f64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    let cross = [y[1] * z[2] - y[2] * z[1], y[2] * z[0] - y[0] * z[2], y[0] * z[1] - y[1] * z[0]];
    let of_one = [dot(x, x), dot(y, y), dot(z, z), dot(x, cross)];
    let is_rotation = of_one.iter().all(|product| (product - 1.0).abs() <= TOLERANCE)
        && [dot(x, y), dot(y, z), dot(z, x)].iter().all(|product| product.abs() <= TOLERANCE);
    if !is_rotation {
        return None;
    }
    // Four times the squares of the components. The largest is the divisor, so that it is never
    // near 0.
    let squares = [
        1.0 + x[0] - y[1] - z[2],
        1.0 - x[0] + y[1] - z[2],
        1.0 - x[0] - y[1] + z[2],
        1.0 + x[0] + y[1] + z[2],
    ];
    let largest = (0..4).max_by(|a, b| squares[*a].total_cmp(&squares[*b]))?;
    let products = match largest {
        0 => [squares[0], x[1] + y[0], x[2] + z[0], z[1] - y[2]],
        1 => [x[1] + y[0], squares[1], y[2] + z[1], x[2] - z[0]],
        2 => [x[2] + z[0], y[2] + z[1], squares[2], y[0] - x[1]],
        _ => [z[1] - y[2], x[2] - z[0], y[0] - x[1], squares[3]],
    };
    let length = products.iter().map(|part| part * part).sum::<f64>().sqrt();
    Some(products.map(|part| part / length))
}

fn half(side: f32) -> f64 {
    f64::from(side) / 2.0
}

impl Surface {
    fn add_box(&mut self, [x, y, z]: [f64; 3]) {
        for corner in 0_u8..8 {
            let side = |bit: u8, half: f64| if corner & bit == 0 { -half } else { half };
            self.vertices.push([side(1, x), side(2, y), side(4, z)]);
        }
        // The corners of each side are counter-clockwise as seen from outside.
        for [a, b, c, d] in
            [[0, 2, 3, 1], [4, 5, 7, 6], [0, 1, 5, 4], [2, 6, 7, 3], [0, 4, 6, 2], [1, 3, 7, 5]]
        {
            self.faces.extend([[a, b, c], [a, c, d]]);
        }
    }

    /// Adds a sphere, a cylinder or a capsule: rings from the lower pole to the upper one.
    fn add_round(&mut self, radius: f64, half: f64, has_round_ends: bool) {
        let mut rings: Vec<(f64, f64)> = Vec::new();
        let steps = if has_round_ends { RINGS } else { 0 };
        for step in (0..=steps).rev() {
            let angle = FRAC_PI_2 * f64::from(step) / f64::from(RINGS);
            if step < RINGS {
                rings.push((radius * angle.cos(), -half - radius * angle.sin()));
            }
        }
        let mut upper: Vec<(f64, f64)> = rings.iter().rev().map(|(wide, z)| (*wide, -z)).collect();
        if half == 0.0 && has_round_ends {
            // The lower half already has the equator.
            upper.remove(0);
        }
        rings.append(&mut upper);
        let pole = if has_round_ends { half + radius } else { half };
        self.vertices.push([0.0, 0.0, -pole]);
        for (wide, z) in &rings {
            for corner in 0..CORNERS {
                let angle = TAU * f64::from(corner) / f64::from(CORNERS);
                self.vertices.push([wide * angle.cos(), wide * angle.sin(), *z]);
            }
        }
        let count = u32::try_from(rings.len()).unwrap_or(0);
        let top = 1 + count * CORNERS;
        self.vertices.push([0.0, 0.0, pole]);
        for corner in 0..CORNERS {
            let next = (corner + 1) % CORNERS;
            self.faces.push([0, 1 + next, 1 + corner]);
            for ring in 1..count {
                let (low, high) = (1 + (ring - 1) * CORNERS, 1 + ring * CORNERS);
                self.faces.push([low + corner, low + next, high + next]);
                self.faces.push([low + corner, high + next, high + corner]);
            }
            let last = top - CORNERS;
            self.faces.push([top, last + corner, last + next]);
        }
    }

    /// Removes faces that cannot be drawn, and vertices that are not finite.
    fn clean(&mut self) {
        let mut kept = Vec::with_capacity(self.vertices.len());
        let mut places = Vec::with_capacity(self.vertices.len());
        for vertex in &self.vertices {
            // Numbers that are too large for single precision count as infinite.
            let max = f64::from(f32::MAX);
            let is_good = vertex.iter().all(|part| part.abs() <= max);
            places.push(is_good.then(|| u32::try_from(kept.len()).unwrap_or(u32::MAX)));
            if is_good {
                kept.push(*vertex);
            }
        }
        let before = self.faces.len();
        let place = |vertex: u32| places.get(vertex as usize).copied().flatten();
        let faces =
            self.faces.iter().filter_map(|[a, b, c]| Some([place(*a)?, place(*b)?, place(*c)?]));
        self.faces = faces.collect();
        self.skipped = before - self.faces.len();
        self.vertices = kept;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use worldwire_core::{Float, Sampler};

    use super::super::super::primitive::{Matrix3, Text, Vector3};
    use super::super::*;

    fn collision(params: Params) -> Collision<'static> {
        Collision {
            category_flags: CollisionFlags(0),
            collision_flags: CollisionFlags(0),
            mesh: None,
            other_type: None,
            name: Text::default(),
            rotation: Matrix3::IDENTITY,
            location: Vector3([10.0, 20.0, 30.0]),
            scale: Float(2.0),
            material: Text::default(),
            params,
        }
    }

    #[test]
    fn shapes_are_closed_and_face_outwards() {
        let round = CylinderParams { radius: Float(1.0), length: Float(4.0) };
        for (params, low, high) in [
            (
                Params::Box(BoxParams { length: Float(2.0), width: Float(4.0), depth: Float(6.0) }),
                [8.0, 16.0, 24.0],
                [12.0, 24.0, 36.0],
            ),
            (
                Params::Sphere(SphereParams { radius: Float(1.0) }),
                [8.0, 18.0, 28.0],
                [12.0, 22.0, 32.0],
            ),
            (Params::Cylinder(round.clone()), [8.0, 18.0, 26.0], [12.0, 22.0, 34.0]),
            (Params::Tube(round), [8.0, 18.0, 24.0], [12.0, 22.0, 36.0]),
        ] {
            let surface = collision(params.clone()).surface().unwrap();
            assert_eq!(surface.skipped, 0);
            for axis in 0..3 {
                let parts = || surface.vertices.iter().map(|vertex| vertex[axis]);
                let found = (parts().fold(f64::MAX, f64::min), parts().fold(f64::MIN, f64::max));
                assert!((found.0 - low[axis]).abs() < 1e-9, "{params:?} {found:?}");
                assert!((found.1 - high[axis]).abs() < 1e-9, "{params:?} {found:?}");
            }
            let mut edges: HashMap<(u32, u32), i32> = HashMap::new();
            for [a, b, c] in &surface.faces {
                for (from, to) in [(a, b), (b, c), (c, a)] {
                    *edges.entry((*from, *to)).or_default() += 1;
                    *edges.entry((*to, *from)).or_default() -= 1;
                }
                let at = |index: &u32| {
                    let vertex = surface.vertices[*index as usize];
                    [vertex[0] - 10.0, vertex[1] - 20.0, vertex[2] - 30.0]
                };
                let [a, b, c] = [at(a), at(b), at(c)];
                let volume = a[0] * (b[1] * c[2] - b[2] * c[1])
                    - a[1] * (b[0] * c[2] - b[2] * c[0])
                    + a[2] * (b[0] * c[1] - b[1] * c[0]);
                assert!(volume > 0.0, "{params:?}: a face looks inwards");
            }
            assert!(edges.values().all(|balance| *balance == 0), "{params:?} has a hole");
        }
    }

    #[test]
    fn points_are_rotated_scaled_and_moved() {
        let mut mesh = collision(Params::Mesh);
        // A quarter turn about z: x becomes y.
        mesh.rotation = Matrix3([
            Vector3([0.0, -1.0, 0.0]),
            Vector3([1.0, 0.0, 0.0]),
            Vector3([0.0, 0.0, 1.0]),
        ]);
        let face = |vertices| Face { vertices, normal: Vector3::default() };
        let vertex = Vector3;
        mesh.mesh = Some(Mesh {
            vertices: vec![
                vertex([f32::NAN, 0.0, 0.0]),
                vertex([1.0, 0.0, 0.0]),
                vertex([0.0, 1.0, 0.0]),
                vertex([0.0, 0.0, 1.0]),
            ],
            faces: vec![face([1, 2, 3]), face([0, 1, 2]), face([1, 2, 99])],
        });
        let surface = mesh.surface().unwrap();
        let wanted = [[10.0, 22.0, 30.0], [8.0, 20.0, 30.0], [10.0, 20.0, 32.0]];
        assert_eq!(surface.vertices, wanted);
        assert_eq!((surface.faces, surface.skipped), (vec![[0, 1, 2]], 2));
        let plane = PlaneParams::sample(&mut Sampler::new(1));
        assert!(collision(Params::Plane(plane)).surface().is_none());
    }
}
