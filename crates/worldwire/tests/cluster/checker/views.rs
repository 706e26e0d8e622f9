//! Checks that a client's copy of the vault, which is updated by notices, equals the vault.

use std::collections::{BTreeMap, BTreeSet};

use worldwire_client::uru::VaultMirror;
use worldwire_uru::vault::VaultNode;

/// A tree of the vault.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    pub(crate) nodes: BTreeMap<u32, VaultNode<'static>>,
    /// Pairs of parent and child.
    pub(crate) refs: BTreeSet<(u32, u32)>,
}

impl From<&VaultMirror> for View {
    fn from(mirror: &VaultMirror) -> Self {
        let nodes = mirror.nodes().map(|(id, node)| (id, node.clone())).collect();
        let refs = mirror.refs().map(|one| (one.parent_id, one.child_id)).collect();
        Self { nodes, refs }
    }
}

/// Checks that a view equals the tree that was read at the end.
pub(crate) fn check_view(view: &View, tree: &View) -> Result<(), String> {
    for (id, wanted) in &tree.nodes {
        match view.nodes.get(id) {
            Some(found) if found == wanted => {}
            Some(found) => return Err(format!("node {id} is {wanted:?}, seen as {found:?}")),
            None => return Err(format!("node {id} was not seen: {wanted:?}")),
        }
    }
    if let Some(id) = view.nodes.keys().find(|id| !tree.nodes.contains_key(*id)) {
        return Err(format!("node {id} is not in the tree any more"));
    }
    let refs: Vec<_> = view.refs.symmetric_difference(&tree.refs).collect();
    if !refs.is_empty() {
        return Err(format!("references are missing or too many: {refs:?}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> View {
        let node =
            |text: &'static str| VaultNode { text_1: Some(text.into()), ..VaultNode::default() };
        let nodes = [(1, node("one")), (2, node("two"))].into();
        View { nodes, refs: [(1, 2)].into() }
    }

    #[test]
    fn missed_notices_are_found() {
        check_view(&view(), &view()).unwrap();
        type Change = fn(&mut View);
        let broken: [(&str, Change); 5] = [
            ("a change", |view| drop(view.nodes.insert(2, VaultNode::default()))),
            ("a new node", |view| drop(view.nodes.remove(&2))),
            ("a deleted node", |view| drop(view.nodes.insert(3, VaultNode::default()))),
            ("a new reference", |view| view.refs.clear()),
            ("a removed reference", |view| view.refs.extend([(2, 1)])),
        ];
        for (about, change) in broken {
            let mut seen = view();
            change(&mut seen);
            assert!(check_view(&seen, &view()).is_err(), "{about}");
        }
    }
}
