//! Drawing a graph as seen from above.

use std::collections::{HashMap, HashSet};
use std::f64::consts::TAU;
use std::fmt::Write as _;

use super::{Directions, NavFile, NavGraph};
use crate::file::svg::{View, end, is_finite, push_escaped, push_label};

/// The distance between zones on their circle, in node diameters.
const SPACE: f64 = 12.0;

impl NavFile<'_> {
    /// Draws the graph from above as SVG: nodes coloured by height, with names or IDs; one-way
    /// links have an arrow.
    ///
    /// In a graph of zones whose nodes all have the same location, which is likely, the nodes are
    /// drawn in a circle, sorted by name. Nodes that are not finite are omitted.
    #[must_use]
    pub fn to_svg(&self, title: &str) -> String {
        let places = self.places();
        let view = View::of(places.iter().copied());
        let graph = NavGraph::new(self, Directions::One);
        let links: HashSet<(u16, u16)> =
            self.links.iter().map(|link| (link.first, link.second)).collect();
        let mut out = String::new();
        view.begin(title, &mut out);
        out.push_str(
            "<marker id=\"arrow\" viewBox=\"0 0 4 4\" refX=\"6\" refY=\"2\" orient=\"auto\">\
             <path d=\"M0 0L4 2L0 4z\"/></marker>\n\
             <g stroke=\"#888\" stroke-width=\"0.8\">\n",
        );
        let at = |id: u16| {
            let index = graph.find_id(id)?;
            places.get(index).copied().filter(is_finite).map(|place| view.place(place))
        };
        for link in self.links.iter() {
            let back = links.contains(&(link.second, link.first));
            if back && link.first > link.second {
                continue;
            }
            if let (Some([x, y]), Some([to_x, to_y])) = (at(link.first), at(link.second)) {
                let arrow = if back { "" } else { " marker-end=\"url(#arrow)\"" };
                let _ = writeln!(out, "<path d=\"M{x:.1} {y:.1}L{to_x:.1} {to_y:.1}\"{arrow}/>");
            }
        }
        out.push_str("</g>\n<g>\n");
        // Many nodes can share an ID, and its name can be long, so only the first node is labelled
        // with it.
        let nodes = || {
            let nodes = self.nodes.iter().enumerate().zip(&places);
            let nodes = nodes.filter(|(_, place)| is_finite(place));
            nodes.map(|((index, node), place)| (index, node.id, *place))
        };
        let is_first = |index: usize, id: u16| graph.find_id(id) == Some(index);
        for (index, id, place) in nodes() {
            let [x, y] = view.place(place);
            let colour = view.colour(place[2]);
            let _ = write!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\">");
            if is_first(index, id) {
                out.push_str("<title>");
                push_escaped(&self.label(id), &mut out);
                out.push_str("</title>");
            }
            out.push_str("</circle>\n");
        }
        out.push_str("</g>\n<g>\n");
        for (_, id, place) in nodes().filter(|(index, id, _)| is_first(*index, *id)) {
            let [x, y] = view.place(place);
            push_label([x + 4.0, y + 2.5], &self.label(id), &mut out);
        }
        out.push_str("</g>\n");
        end(&mut out);
        out
    }

    /// The position of each node in the picture.
    fn places(&self) -> Vec<[f64; 3]> {
        let mut places: Vec<[f64; 3]> =
            self.nodes.iter().map(|node| node.location.0.map(f64::from)).collect();
        let first = self.nodes.first().map(|node| node.location);
        let is_one_place = self.nodes.iter().all(|node| Some(node.location) == first);
        if self.zone_names.is_none() || !is_one_place || places.len() < 2 {
            return places;
        }
        let name = |id: &u16| self.name(*id).map(|name| name.as_bytes());
        let mut ids: Vec<u16> = (0..=u16::MAX).filter(|id| name(id).is_some()).collect();
        ids.sort_by_key(name);
        let ranks: HashMap<u16, usize> = ids.into_iter().zip(0..).collect();
        let rank = |id: u16| ranks.get(&id).copied().unwrap_or(usize::MAX);
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_by_key(|index| self.nodes.get(*index).map(|node| (rank(node.id), node.id)));
        let count = f64::from(u32::try_from(places.len()).unwrap_or(u32::MAX));
        let radius = SPACE * count / TAU;
        let mut angle: f64 = 0.0;
        for index in order {
            if let Some(place) = places.get_mut(index) {
                *place = [radius * angle.sin(), radius * angle.cos(), 0.0];
            }
            angle += TAU / count;
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::super::{NavLink, NavNode, Text, Vector3};
    use super::*;

    #[test]
    fn nodes_links_and_names_are_drawn() {
        let node = |id, x, y, z| NavNode { location: Vector3([x, y, z]), id };
        let link = |first, second| NavLink { first, second };
        let mut nav = NavFile {
            last_id: 2,
            nodes: vec![
                node(0, 0.0, 0.0, 0.0),
                node(1, 100.0, 0.0, 10.0),
                node(2, 50.0, f32::NAN, 0.0),
                node(1, 50.0, 0.0, 5.0),
            ]
            .into(),
            links: vec![link(0, 1), link(1, 0), link(0, 2), link(0, 9)].into(),
            zone_names: None,
        };
        insta::assert_snapshot!(nav.to_svg("a <zone>"), @r##"
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1060.0 60.0" font-family="sans-serif" font-size="8">
        <title>a &lt;zone&gt;</title>
        <desc>From above: x to the right, y up; heights from 0 (blue) to 10 (red)</desc>
        <rect width="100%" height="100%" fill="white"/>
        <marker id="arrow" viewBox="0 0 4 4" refX="6" refY="2" orient="auto"><path d="M0 0L4 2L0 4z"/></marker>
        <g stroke="#888" stroke-width="0.8">
        <path d="M30.0 30.0L1030.0 30.0"/>
        </g>
        <g>
        <circle cx="30.0" cy="30.0" r="3" fill="hsl(240,70%,45%)"><title>0</title></circle>
        <circle cx="1030.0" cy="30.0" r="3" fill="hsl(0,70%,45%)"><title>1</title></circle>
        <circle cx="530.0" cy="30.0" r="3" fill="hsl(120,70%,45%)"></circle>
        </g>
        <g>
        <text x="34.0" y="32.5">0</text>
        <text x="1034.0" y="32.5">1</text>
        </g>
        </svg>
        "##);
        nav.zone_names = Some(vec![Text::from("B & C"), Text::from("A")].into());
        nav.nodes = vec![node(0, 0.0, 0.0, 0.0), node(1, 0.0, 0.0, 0.0)].into();
        let circle = nav.to_svg("zones");
        assert!(circle.contains("B &amp; C"), "{circle}");
        assert!(circle.contains("<circle cx=\"30.0\" cy=\"30.0\""), "{circle}");
        assert!(circle.contains("<circle cx=\"30.0\" cy=\"1030.0\""), "{circle}");
    }
}
