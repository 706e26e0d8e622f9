//! Finding routes through a graph, and exporting it as GraphML.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::fmt::Write as _;

use super::NavFile;
use crate::file::svg::push_escaped;

/// Whether links lead in one direction or in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Directions {
    /// Only from the first node to the second.
    #[default]
    One,
    /// In both directions.
    Both,
}

/// The links of a file, by the node where they begin.
#[derive(Debug)]
pub struct NavGraph<'f> {
    nav: &'f NavFile<'f>,
    /// The first node with each ID.
    by_id: HashMap<u16, usize>,
    neighbours: Vec<Vec<usize>>,
}

/// A route from one node to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// The nodes, as positions in the file, from the start to the end.
    pub nodes: Vec<usize>,
    /// The length of the route up to each node: a distance, or the number of links in a graph of
    /// zones.
    pub lengths: Vec<f64>,
}

impl<'f> NavGraph<'f> {
    /// Indexes the links. Links to missing nodes are ignored. If nodes share an ID, the first one
    /// is used.
    #[must_use]
    pub fn new(nav: &'f NavFile<'f>, directions: Directions) -> Self {
        let mut by_id = HashMap::new();
        for (index, node) in nav.nodes.iter().enumerate() {
            by_id.entry(node.id).or_insert(index);
        }
        let mut neighbours = vec![Vec::new(); nav.nodes.len()];
        for link in nav.links.iter() {
            let (Some(first), Some(second)) = (by_id.get(&link.first), by_id.get(&link.second))
            else {
                continue;
            };
            let mut add = |from: usize, to: usize| {
                if let Some(list) = neighbours.get_mut(from) {
                    list.push(to);
                }
            };
            add(*first, *second);
            if directions == Directions::Both {
                add(*second, *first);
            }
        }
        for list in &mut neighbours {
            list.sort_unstable();
            list.dedup();
        }
        Self { nav, by_id, neighbours }
    }

    /// Finds a node by its ID, or by the name of its zone. The last part of the name suffices if it
    /// is unique.
    #[must_use]
    pub fn find(&self, what: &str) -> Option<usize> {
        let named = |id: usize| self.by_id.get(&u16::try_from(id).ok()?).copied();
        if let Some(names) = &self.nav.zone_names {
            let position = names.iter().position(|name| name.as_bytes() == what.as_bytes());
            if let Some(found) = position.and_then(named) {
                return Some(found);
            }
            let tail = format!("/{what}");
            let ends =
                |(_, name): &(usize, &super::Text<'_>)| name.as_bytes().ends_with(tail.as_bytes());
            let mut ending = names.iter().enumerate().filter(ends);
            if let (Some((id, _)), None) = (ending.next(), ending.next()) {
                return named(id);
            }
        }
        self.by_id.get(&what.parse().ok()?).copied()
    }

    /// The position in the file of the node with this ID.
    #[must_use]
    pub(crate) fn find_id(&self, id: u16) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    /// The shortest route between two nodes, given by their positions in the file: by distance, or
    /// by the number of links in a graph of zones. Returns `None` if there is no route.
    ///
    /// A link to or from a location that is not finite has the maximum length.
    #[must_use]
    pub fn route(&self, from: usize, to: usize) -> Option<Route> {
        /// A length, which is never NaN.
        #[derive(PartialEq)]
        struct Length(f64);
        impl Eq for Length {}
        impl PartialOrd for Length {
            fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }
        impl Ord for Length {
            fn cmp(&self, other: &Self) -> core::cmp::Ordering {
                self.0.total_cmp(&other.0)
            }
        }

        let nodes = &self.nav.nodes;
        // The length of the best route to each node, and the node before it.
        let mut best: Vec<Option<(f64, usize)>> = vec![None; nodes.len()];
        *best.get_mut(from)? = Some((0.0, from));
        nodes.get(to)?;
        let mut next = BinaryHeap::from([Reverse((Length(0.0), from))]);
        while let Some(Reverse((Length(length), at))) = next.pop() {
            if at == to {
                break;
            }
            if best.get(at).copied().flatten().is_none_or(|(known, _)| length > known) {
                continue;
            }
            for neighbour in self.neighbours.get(at).into_iter().flatten() {
                let total = length + self.length(at, *neighbour);
                let known = best.get_mut(*neighbour)?;
                if known.is_none_or(|(known, _)| total < known) {
                    *known = Some((total, at));
                    next.push(Reverse((Length(total), *neighbour)));
                }
            }
        }
        let mut route = Route { nodes: Vec::new(), lengths: Vec::new() };
        let mut at = to;
        loop {
            let (length, before) = (*best.get(at)?)?;
            route.nodes.push(at);
            route.lengths.push(length);
            if at == before {
                break;
            }
            at = before;
        }
        route.nodes.reverse();
        route.lengths.reverse();
        Some(route)
    }

    fn length(&self, from: usize, to: usize) -> f64 {
        if self.nav.zone_names.is_some() {
            return 1.0;
        }
        let position = |index: usize| self.nav.nodes.get(index).map(|node| node.location);
        let distance = position(from).zip(position(to)).map(|(from, to)| from.distance(to));
        distance.filter(|length| length.is_finite()).unwrap_or(f64::INFINITY)
    }
}

impl NavFile<'_> {
    /// Exports the graph as GraphML, which Gephi, yEd and NetworkX read: nodes have `label`, `x`,
    /// `y` and `z`, and links have `length`. Links to missing nodes are omitted. If nodes share an
    /// ID, the first one is used.
    #[must_use]
    pub fn to_graphml(&self, directions: Directions) -> String {
        let graph = NavGraph::new(self, Directions::One);
        let mut out = String::from(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n\
             <key id=\"label\" for=\"node\" attr.name=\"label\" attr.type=\"string\"/>\n",
        );
        for axis in ["x", "y", "z"] {
            let _ = writeln!(
                out,
                "<key id=\"{axis}\" for=\"node\" attr.name=\"{axis}\" attr.type=\"float\"/>"
            );
        }
        out.push_str(
            "<key id=\"length\" for=\"edge\" attr.name=\"length\" attr.type=\"double\"/>\n",
        );
        let default = match directions {
            Directions::One => "directed",
            Directions::Both => "undirected",
        };
        let _ = writeln!(out, "<graph id=\"nav\" edgedefault=\"{default}\">");
        for (index, node) in self.nodes.iter().enumerate() {
            if graph.by_id.get(&node.id) != Some(&index) {
                continue;
            }
            let _ = write!(out, "<node id=\"n{}\"><data key=\"label\">", node.id);
            push_escaped(&self.label(node.id), &mut out);
            out.push_str("</data>");
            for (axis, part) in ["x", "y", "z"].iter().zip(node.location.0) {
                if part.is_finite() {
                    let _ = write!(out, "<data key=\"{axis}\">{part}</data>");
                }
            }
            out.push_str("</node>\n");
        }
        for link in self.links.iter() {
            let ends = (graph.by_id.get(&link.first), graph.by_id.get(&link.second));
            if let (Some(first), Some(second)) = ends {
                let (source, target) = (link.first, link.second);
                let _ = write!(out, "<edge source=\"n{source}\" target=\"n{target}\">");
                let length = graph.length(*first, *second);
                if length.is_finite() {
                    let _ = write!(out, "<data key=\"length\">{length}</data>");
                }
                out.push_str("</edge>\n");
            }
        }
        out.push_str("</graph>\n</graphml>\n");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::super::{NavLink, NavNode, Text, Vector3};
    use super::*;

    fn nav(links: &[(u16, u16)]) -> NavFile<'static> {
        let node = |id, x, y| NavNode { location: Vector3([x, y, 0.0]), id };
        let link = |(first, second): &(u16, u16)| NavLink { first: *first, second: *second };
        NavFile {
            last_id: 9,
            // The IDs are not the same as the positions.
            nodes: vec![node(9, 0.0, 0.0), node(4, 3.0, 4.0), node(5, 1.0, 0.0), node(6, 3.0, 0.0)]
                .into(),
            links: links.iter().map(link).collect::<Vec<_>>().into(),
            zone_names: None,
        }
    }

    #[test]
    fn the_shortest_route_follows_links() {
        // The direct route to 4 has length 5; the route through 5 and 6 has length 1 + 2 + 4.
        let file = nav(&[(9, 5), (5, 6), (6, 4), (9, 4), (4, 77)]);
        let graph = NavGraph::new(&file, Directions::One);
        let (from, to) = (graph.find("9").unwrap(), graph.find("4").unwrap());
        let route = graph.route(from, to).unwrap();
        assert_eq!(route, Route { nodes: vec![0, 1], lengths: vec![0.0, 5.0] });
        assert_eq!(graph.route(to, from), None);
        let both = NavGraph::new(&file, Directions::Both);
        assert_eq!(both.route(to, from).unwrap().nodes, [1, 0]);
        let around = nav(&[(9, 5), (5, 6), (6, 4)]);
        let route = NavGraph::new(&around, Directions::One).route(0, 1).unwrap();
        assert_eq!((route.nodes, route.lengths), (vec![0, 2, 3, 1], vec![0.0, 1.0, 3.0, 7.0]));
        assert_eq!(graph.route(0, 0).unwrap().nodes, [0]);
        assert_eq!(graph.route(0, 99), None);
        assert!(graph.find("77").is_none() && graph.find("x").is_none());
    }

    #[test]
    fn zones_are_found_by_name_and_measured_in_links() {
        let mut file = nav(&[(0, 1), (1, 2)]);
        for (id, node) in (0..).zip(&mut file.nodes.0) {
            node.id = id;
        }
        let names = ["WizardCity/WC_Hub", "WizardCity/WC_Streets/WC_Unicorn", "Krok/WC_Hub"];
        file.zone_names = Some(names.map(Text::from).to_vec().into());
        let graph = NavGraph::new(&file, Directions::One);
        assert_eq!(graph.find("WC_Unicorn"), Some(1));
        assert_eq!(graph.find("WC_Hub"), None, "two zones have this ending");
        let route = graph.route(graph.find(names[0]).unwrap(), graph.find(names[2]).unwrap());
        assert_eq!(route.unwrap().lengths, [0.0, 1.0, 2.0]);
    }

    #[test]
    fn infinite_locations_do_not_break_the_search() {
        let mut file = nav(&[(9, 5), (5, 4)]);
        file.nodes.0[2].location = Vector3([f32::NAN, f32::INFINITY, 0.0]);
        let route = NavGraph::new(&file, Directions::One).route(0, 1).unwrap();
        assert_eq!(route.nodes, [0, 2, 1]);
    }

    #[test]
    fn graphml_has_names_and_locations() {
        let mut file = nav(&[(9, 5), (5, 77)]);
        file.nodes.0.truncate(3);
        file.nodes.0[1].location = Vector3([f32::NAN, 1.0, 2.5]);
        file.zone_names = Some(vec![Text::from("a"); 5].into());
        file.zone_names.as_mut().unwrap().0[4] = Text::from("A<&\"\u{1}");
        insta::assert_snapshot!(file.to_graphml(Directions::Both), @r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <graphml xmlns="http://graphml.graphdrawing.org/xmlns">
        <key id="label" for="node" attr.name="label" attr.type="string"/>
        <key id="x" for="node" attr.name="x" attr.type="float"/>
        <key id="y" for="node" attr.name="y" attr.type="float"/>
        <key id="z" for="node" attr.name="z" attr.type="float"/>
        <key id="length" for="edge" attr.name="length" attr.type="double"/>
        <graph id="nav" edgedefault="undirected">
        <node id="n9"><data key="label">9</data><data key="x">0</data><data key="y">0</data><data key="z">0</data></node>
        <node id="n4"><data key="label">A&lt;&amp;&quot;�</data><data key="y">1</data><data key="z">2.5</data></node>
        <node id="n5"><data key="label">5</data><data key="x">1</data><data key="y">0</data><data key="z">0</data></node>
        <edge source="n9" target="n5"><data key="length">1</data></edge>
        </graph>
        </graphml>
        "#);
    }
}
