//! Drawing from above as SVG: x points right, y points up, and z is shown as a colour.

use std::fmt::Write as _;

/// The length of the longer side of a picture, without its margins.
const SIDE: f64 = 1000.0;
/// The empty space on all sides.
const MARGIN: f64 = 30.0;

/// The part of the world that a picture shows.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    left: f64,
    top: f64,
    scale: f64,
    size: [f64; 2],
    low: f64,
    high: f64,
}

impl View {
    /// A view of all these points, except those that are not finite.
    pub(super) fn of(places: impl IntoIterator<Item = [f64; 3]>) -> Self {
        let mut bounds = [(f64::INFINITY, f64::NEG_INFINITY); 3];
        for place in places.into_iter().filter(is_finite) {
            for (bound, part) in bounds.iter_mut().zip(place) {
                *bound = (bound.0.min(part), bound.1.max(part));
            }
        }
        let [x, y, z] =
            bounds.map(|(low, high)| if low <= high { (low, high) } else { (0.0, 0.0) });
        let extent = (x.1 - x.0).max(y.1 - y.0);
        let scale = if extent > 0.0 { SIDE / extent } else { 1.0 };
        let size = [x.1 - x.0, y.1 - y.0].map(|side| side * scale);
        Self { left: x.0, top: y.1, scale, size, low: z.0, high: z.1 }
    }

    /// The position of a point in the picture.
    pub(super) fn place(&self, [x, y, _]: [f64; 3]) -> [f64; 2] {
        [(x - self.left) * self.scale + MARGIN, (self.top - y) * self.scale + MARGIN]
    }

    /// The colour of a height: blue is low, red is high.
    pub(super) fn colour(&self, z: f64) -> String {
        let range = self.high - self.low;
        let part = if range > 0.0 { (z - self.low) / range } else { 0.5 };
        let hue = 240.0 * (1.0 - part.clamp(0.0, 1.0));
        format!("hsl({hue:.0},70%,45%)")
    }

    /// Writes the start of the picture, with its title and a legend for heights.
    pub(super) fn begin(&self, title: &str, out: &mut String) {
        let [width, height] = self.size.map(|side| side + 2.0 * MARGIN);
        let _ = writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.1} {height:.1}\" \
             font-family=\"sans-serif\" font-size=\"8\">"
        );
        out.push_str("<title>");
        push_escaped(title, out);
        let _ = writeln!(
            out,
            "</title>\n<desc>From above: x to the right, y up; heights from {} (blue) to {} \
             (red)</desc>",
            self.low, self.high
        );
        out.push_str("<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n");
    }
}

pub(super) fn end(out: &mut String) {
    out.push_str("</svg>\n");
}

pub(super) fn push_label([x, y]: [f64; 2], text: &str, out: &mut String) {
    let _ = write!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\">");
    push_escaped(text, out);
    out.push_str("</text>\n");
}

pub(super) fn is_finite(place: &[f64; 3]) -> bool {
    place.iter().all(|part| part.is_finite())
}

/// Escapes a text for XML. Characters that XML does not allow become U+FFFD.
pub(super) fn push_escaped(text: &str, out: &mut String) {
    for part in text.chars() {
        match part {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => out.push(' '),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_shows_all_finite_points() {
        let view = View::of([[0.0, 0.0, 5.0], [10.0, 20.0, 1.0], [f64::NAN, 1e9, 1e9]]);
        assert_eq!(view.place([0.0, 20.0, 0.0]), [MARGIN, MARGIN]);
        assert_eq!(view.place([10.0, 0.0, 0.0]), [MARGIN + 500.0, MARGIN + 1000.0]);
        assert_eq!(view.colour(1.0), "hsl(240,70%,45%)");
        assert_eq!(view.colour(5.0), "hsl(0,70%,45%)");
        let empty = View::of([]);
        assert_eq!(empty.place([0.0; 3]), [MARGIN, MARGIN]);
        assert_eq!(empty.colour(0.0), "hsl(120,70%,45%)");
    }
}
