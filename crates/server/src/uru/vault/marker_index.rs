//! Finds the nodes that store marker games, by template.
//!
//! The index follows from the nodes, so it is loaded and rolled back with them.

use std::collections::BTreeSet;

use worldwire_uru::types::Uuid;

use super::content::Facts;

/// The nodes of all marker games. In a damaged vault, several nodes can store the same part of a
/// game; the first one is used.
#[derive(Debug, Default)]
pub(crate) struct MarkerIndex {
    /// Template and node.
    templates: BTreeSet<(Uuid, u32)>,
    /// Creator, template and node.
    by_creator: BTreeSet<(u32, Uuid, u32)>,
    /// Template, number of the marker, and node.
    markers: BTreeSet<(Uuid, u32, u32)>,
    /// Template, player and node.
    captures: BTreeSet<(Uuid, u32, u32)>,
    /// Player, template and node.
    by_player: BTreeSet<(u32, Uuid, u32)>,
    /// Template, and the MarkerGame nodes of players that name it.
    named: BTreeSet<(Uuid, u32)>,
}

impl MarkerIndex {
    /// Replaces the index entries for a node.
    pub(super) fn set(&mut self, id: u32, old: Option<&Facts>, new: Option<&Facts>) {
        if let Some(old) = old {
            self.place(id, old, false);
        }
        if let Some(new) = new {
            self.place(id, new, true);
        }
    }

    fn place(&mut self, id: u32, facts: &Facts, is_there: bool) {
        fn place<K: Ord>(set: &mut BTreeSet<K>, key: K, is_there: bool) {
            if is_there {
                set.insert(key);
            } else {
                set.remove(&key);
            }
        }
        match *facts {
            Facts::MarkerTemplate { template, creator, .. } => {
                place(&mut self.templates, (template, id), is_there);
                place(&mut self.by_creator, (creator, template, id), is_there);
            }
            Facts::Marker { template, marker } => {
                place(&mut self.markers, (template, marker, id), is_there);
            }
            Facts::MarkerCaptures { template, player } => {
                place(&mut self.captures, (template, player, id), is_there);
                place(&mut self.by_player, (player, template, id), is_there);
            }
            Facts::MarkerGame { template } => place(&mut self.named, (template, id), is_there),
            _ => {}
        }
    }

    /// The node of a template.
    pub(super) fn template(&self, template: Uuid) -> Option<u32> {
        self.templates.range((template, 0)..=(template, u32::MAX)).next().map(|(_, id)| *id)
    }

    /// All templates and their nodes.
    pub(super) fn templates(&self) -> impl Iterator<Item = (Uuid, u32)> {
        self.templates.iter().copied()
    }

    /// The templates that a player made, and their nodes.
    pub(super) fn made_by(&self, creator: u32) -> impl Iterator<Item = (Uuid, u32)> {
        let (first, last) = (Uuid::ZERO, Uuid([0xff; 16]));
        let range = (creator, first, 0)..=(creator, last, u32::MAX);
        self.by_creator.range(range).map(|(_, template, id)| (*template, *id))
    }

    /// The markers of a template by number, and their nodes.
    pub(super) fn markers(&self, template: Uuid) -> impl Iterator<Item = (u32, u32)> {
        let range = (template, 0, 0)..=(template, u32::MAX, u32::MAX);
        self.markers.range(range).map(|(_, marker, id)| (*marker, *id))
    }

    /// The node of a marker.
    pub(super) fn marker(&self, template: Uuid, marker: u32) -> Option<u32> {
        let range = (template, marker, 0)..=(template, marker, u32::MAX);
        self.markers.range(range).next().map(|(.., id)| *id)
    }

    /// The node with the markers that a player has captured.
    pub(super) fn captures(&self, template: Uuid, player: u32) -> Option<u32> {
        let range = (template, player, 0)..=(template, player, u32::MAX);
        self.captures.range(range).next().map(|(.., id)| *id)
    }

    /// The nodes with the markers that players have captured.
    pub(super) fn all_captures(&self, template: Uuid) -> impl Iterator<Item = u32> {
        let range = (template, 0, 0)..=(template, u32::MAX, u32::MAX);
        self.captures.range(range).map(|(.., id)| *id)
    }

    /// The nodes with the markers that one player has captured, for all templates.
    pub(super) fn captured_by(&self, player: u32) -> impl Iterator<Item = u32> {
        let (first, last) = (Uuid::ZERO, Uuid([0xff; 16]));
        let range = (player, first, 0)..=(player, last, u32::MAX);
        self.by_player.range(range).map(|(.., id)| *id)
    }

    /// Whether a MarkerGame node names a template.
    pub(super) fn is_named(&self, template: Uuid) -> bool {
        self.named.range((template, 0)..=(template, u32::MAX)).next().is_some()
    }
}
