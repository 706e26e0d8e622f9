//! Checking a graph.

use std::collections::{HashMap, HashSet};

use super::{NavFile, shown};

impl NavFile<'_> {
    /// Reports problems that do not prevent decoding: links to missing nodes, links from a node to
    /// itself, repeated links and IDs, IDs without a name, more names than IDs, and locations that
    /// are not finite. Each text is built on demand.
    pub fn check(&self) -> impl Iterator<Item = String> {
        let mut ids: HashMap<u16, usize> = HashMap::new();
        for (index, node) in self.nodes.iter().enumerate() {
            ids.entry(node.id).or_insert(index);
        }
        let mut links = HashSet::new();
        let names = self.zone_names.as_ref().map(|names| names.len());
        let nodes = {
            let ids = ids.clone();
            self.nodes.iter().enumerate().flat_map(move |(index, node)| {
                let first = ids.get(&node.id).copied().filter(|first| *first != index);
                let repeated = first.map(|first| {
                    format!("node {index} has the same ID as node {first}: {}", node.id)
                });
                let location = (!node.location.is_finite())
                    .then(|| format!("node {index} (ID {}): its location is not finite", node.id));
                let unnamed = names.filter(|names| usize::from(node.id) >= *names).map(|names| {
                    format!("ID {} has no name (names in the file: {names})", node.id)
                });
                repeated.into_iter().chain(location).chain(unnamed)
            })
        };
        let spare = {
            let ids = ids.clone();
            let names = self.zone_names.iter().flat_map(|names| names.iter()).enumerate();
            names
                .filter(move |(index, _)| {
                    !u16::try_from(*index).is_ok_and(|id| ids.contains_key(&id))
                })
                .map(|(index, name)| format!("name {index} ({}): no node has this ID", shown(name)))
        };
        let links = self.links.iter().enumerate().flat_map(move |(index, link)| {
            let (first, second) = (link.first, link.second);
            let missing = [first, second].into_iter().filter(|id| !ids.contains_key(id));
            let mut missing: Vec<String> = missing
                .map(|id| format!("link {index} ({first} to {second}): node {id} is missing"))
                .collect();
            if first == second {
                missing.truncate(1);
                missing.push(format!("link {index}: from node {first} to itself"));
            }
            let again = !links.insert((first, second));
            let again = again.then(|| format!("link {index} ({first} to {second}) is repeated"));
            missing.into_iter().chain(again)
        });
        nodes.chain(spare).chain(links)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{NavLink, NavNode, Text, Vector3};
    use super::*;

    #[test]
    fn every_problem_is_reported() {
        let node = |id, x| NavNode { location: Vector3([x, 0.0, 0.0]), id };
        let link = |first, second| NavLink { first, second };
        let nav = NavFile {
            last_id: 3,
            nodes: vec![node(0, 1.0), node(3, f32::NAN), node(0, 2.0)].into(),
            links: vec![link(0, 3), link(3, 3), link(0, 3), link(0, 77), link(8, 8)].into(),
            zone_names: Some(vec![Text::from("A"), Text::from("B")].into()),
        };
        let problems: Vec<String> = nav.check().collect();
        insta::assert_snapshot!(problems.join("\n"), @r#"
        node 1 (ID 3): its location is not finite
        ID 3 has no name (names in the file: 2)
        node 2 has the same ID as node 0: 0
        name 1 ("B"): no node has this ID
        link 1: from node 3 to itself
        link 2 (0 to 3) is repeated
        link 3 (0 to 77): node 77 is missing
        link 4 (8 to 8): node 8 is missing
        link 4: from node 8 to itself
        "#);
        let plain =
            NavFile { last_id: 0, nodes: vec![].into(), links: vec![].into(), zone_names: None };
        assert_eq!(plain.check().count(), 0);
    }
}
