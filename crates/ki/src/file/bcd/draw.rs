//! Drawing collisions as seen from above.

use std::fmt::Write as _;

use super::{BcdFile, Collision, CollisionFlags, CollisionType, Surface};
use crate::file::svg::{View, end, push_escaped, push_label};

/// The colours of the category flags. The first flag that is set determines the colour.
const COLOURS: [(CollisionFlags, &str); 5] = [
    (CollisionFlags::WATER, "#3b7dd8"),
    (CollisionFlags::TRIGGER, "#d89b3b"),
    (CollisionFlags::WALKABLE, "#5a9e4b"),
    (CollisionFlags::OBJECT, "#8a6d5a"),
    (CollisionFlags(0), "#888888"),
];

impl BcdFile<'_> {
    /// Draws the collisions from above as SVG, lowest first. Walkable ground is green, water blue,
    /// triggers orange and objects brown. Names are placed at the centres of the shapes. Rays,
    /// planes and shapes that are not finite are omitted.
    #[must_use]
    pub fn to_svg(&self, title: &str) -> String {
        // There are two passes, because shapes take far more memory than their encoding.
        let view = View::of(self.drawn().flat_map(|(_, surface)| surface.vertices));
        let mut shapes: Vec<(f64, String)> = Vec::new();
        let mut names = String::new();
        for (collision, surface) in self.drawn() {
            let flags = collision.category_flags;
            let colour = COLOURS.iter().find(|(flag, _)| flags.contains(*flag));
            let colour = colour.map_or("#888888", |(_, colour)| colour);
            let mut shape = format!("<path fill=\"{colour}\" stroke=\"{colour}\" d=\"");
            if collision.kind() == CollisionType::Mesh {
                for face in &surface.faces {
                    let corners = face.iter().filter_map(|at| surface.vertices.get(*at as usize));
                    push_polygon(corners.map(|corner| view.place(*corner)), &mut shape);
                }
            } else {
                let places = surface.vertices.iter().map(|vertex| view.place(*vertex));
                push_polygon(hull(places.collect()).into_iter(), &mut shape);
            }
            shape.push_str("\"><title>");
            let name = collision.name.to_lossy();
            push_escaped(&name, &mut shape);
            shape.push_str("</title></path>\n");
            let centre = centre(&surface);
            if !name.is_empty() {
                push_label(view.place(centre), &name, &mut names);
            }
            shapes.push((centre[2], shape));
        }
        shapes.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut out = String::new();
        view.begin(title, &mut out);
        out.push_str("<g fill-opacity=\"0.4\" stroke-opacity=\"0.6\" stroke-width=\"0.4\">\n");
        out.extend(shapes.into_iter().map(|(_, shape)| shape));
        out.push_str("</g>\n<g text-anchor=\"middle\">\n");
        out.push_str(&names);
        out.push_str("</g>\n");
        end(&mut out);
        out
    }

    /// The collisions that can be drawn.
    fn drawn(&self) -> impl Iterator<Item = (&Collision<'_>, Surface)> {
        let shapes = self.collisions.iter().filter_map(|it| Some((it, it.surface()?)));
        shapes.filter(|(_, surface)| !surface.faces.is_empty())
    }
}

/// The centre of a surface's vertices. There must be at least one.
fn centre(surface: &Surface) -> [f64; 3] {
    let count = f64::from(u32::try_from(surface.vertices.len()).unwrap_or(u32::MAX)).max(1.0);
    let mut sum = [0.0; 3];
    for vertex in &surface.vertices {
        for (sum, part) in sum.iter_mut().zip(vertex) {
            *sum += part / count;
        }
    }
    sum
}

fn push_polygon(corners: impl Iterator<Item = [f64; 2]>, out: &mut String) {
    for (index, [x, y]) in corners.enumerate() {
        let _ = write!(out, "{}{x:.1} {y:.1}", if index == 0 { 'M' } else { 'L' });
    }
    out.push('z');
}

/// The convex hull of points.
fn hull(mut points: Vec<[f64; 2]>) -> Vec<[f64; 2]> {
    points.sort_by(|a, b| a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1])));
    points.dedup();
    let turn = |a: [f64; 2], b: [f64; 2], c: [f64; 2]| {
        (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
    };
    let half = |points: &mut dyn Iterator<Item = [f64; 2]>| {
        let mut chain: Vec<[f64; 2]> = Vec::new();
        for point in points {
            while let [.., a, b] = chain[..]
                && turn(a, b, point) <= 0.0
            {
                chain.pop();
            }
            chain.push(point);
        }
        // The last point of this half begins the other half.
        if chain.len() > 1 {
            chain.pop();
        }
        chain
    };
    let mut outline = half(&mut points.iter().copied());
    outline.extend(half(&mut points.iter().rev().copied()));
    outline
}

#[cfg(test)]
mod tests {
    use worldwire_core::json::json;
    use worldwire_core::{Float, Limits};

    use super::super::*;
    use super::hull;

    #[test]
    fn outlines_are_convex() {
        let square = vec![[0.0, 0.0], [2.0, 0.0], [1.0, 1.0], [2.0, 2.0], [0.0, 2.0], [1.0, 0.0]];
        assert_eq!(hull(square), [[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]]);
        assert_eq!(hull(vec![[1.0, 1.0]; 3]), [[1.0, 1.0], [1.0, 1.0]]);
        assert_eq!(hull(Vec::new()), [[0.0; 2]; 0]);
    }

    #[test]
    fn boxes_and_meshes_are_drawn_lowest_first() {
        let json = json!({"collisions": [
            {"type": "Box", "category_flags": ["OBJECT"], "collision_flags": [], "name": "Crate <1>",
             "rotation": [[1, 0, 0], [0, 1, 0], [0, 0, 1]], "location": [5, 5, 2], "scale": 1,
             "material": "", "params": {"length": 2, "width": 2, "depth": 2}},
            {"type": "Mesh", "category_flags": ["WALKABLE"], "collision_flags": [], "name": "",
             "mesh": {"vertices": [[0, 0, 0], [10, 0, 0], [0, 10, 0]],
                      "faces": [{"face": [0, 1, 2], "normal": [0, 0, 1]}]},
             "rotation": [[1, 0, 0], [0, 1, 0], [0, 0, 1]], "location": [0, 0, 0], "scale": 1,
             "material": ""},
        ]});
        let mut file = BcdFile::from_json(&json).unwrap();
        insta::assert_snapshot!(file.to_svg("a zone"), @r##"
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1060.0 1060.0" font-family="sans-serif" font-size="8">
        <title>a zone</title>
        <desc>From above: x to the right, y up; heights from 0 (blue) to 3 (red)</desc>
        <rect width="100%" height="100%" fill="white"/>
        <g fill-opacity="0.4" stroke-opacity="0.6" stroke-width="0.4">
        <path fill="#5a9e4b" stroke="#5a9e4b" d="M30.0 1030.0L1030.0 1030.0L30.0 30.0z"><title></title></path>
        <path fill="#8a6d5a" stroke="#8a6d5a" d="M430.0 430.0L630.0 430.0L630.0 630.0L430.0 630.0z"><title>Crate &lt;1&gt;</title></path>
        </g>
        <g text-anchor="middle">
        <text x="530.0" y="530.0">Crate &lt;1&gt;</text>
        </g>
        </svg>
        "##);
        file.collisions[0].scale = Float(f32::NAN);
        let bytes = file.to_bytes().unwrap();
        let (file, _) = BcdFile::open(&bytes, &Limits::DEFAULT).unwrap();
        assert_eq!(file.to_svg("").matches("<path").count(), 1);
    }
}
