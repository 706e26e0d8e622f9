//! The ages that the other server created automatically. The shard must know them by their names;
//! otherwise, it would create its own in addition.

use worldwire_uru::types::TermStr;
use worldwire_uru::vault::{NodeType, VaultNode};

use super::Importer;
use crate::uru::vault::{AgeNames, StaticAge, VaultConfig, folder};

/// The other server's own ages, for the section `[ages]` of `shard.toml`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnAges {
    /// The city, if it exists.
    pub city: Option<StaticAge>,
    /// The names of the neighbourhoods that new players join, if there is one.
    pub neighbourhood: Option<AgeNames>,
    /// Other public ages that nobody owns.
    pub fixed: Vec<StaticAge>,
}

impl Importer<'_> {
    /// Finds public ages without a parent. The first city and the first neighbourhood are the
    /// server's own; other ages are its own if nobody owns them.
    pub(super) fn own_ages(&self) -> OwnAges {
        let VaultConfig { city, neighbourhood, .. } = VaultConfig::default();
        let mut own = OwnAges::default();
        for (id, node) in &self.nodes {
            let is_own = node.node_type == Some(NodeType::AgeInfo)
                && node.int32_2.is_some_and(|public| public != 0)
                && node.uuid_2.unwrap_or_default().is_zero();
            let instance = node.uuid_1.filter(|id| !id.is_zero());
            if !is_own || instance.is_none() {
                continue;
            }
            let text = |field: &Option<TermStr<'_>>| {
                field.as_ref().map(TermStr::to_text).unwrap_or_default()
            };
            let names = AgeNames {
                filename: text(&node.string64_2),
                instance_name: text(&node.string64_3),
                user_name: text(&node.string64_4),
                description: text(&node.text_1).chars().take(MAX_DESCRIPTION).collect(),
            };
            if names.filename == neighbourhood.filename {
                own.neighbourhood.get_or_insert(names);
            } else if names.filename == city.names.filename {
                own.city.get_or_insert(StaticAge { names, instance });
            } else if !names.filename.is_empty()
                // A player's age that its owner has given up.
                && !names.user_name.ends_with("'s")
                && !self.has_owners(*id)
            {
                own.fixed.push(StaticAge { names, instance });
            }
        }
        own
    }

    fn has_owners(&self, info: u32) -> bool {
        let is_owners = |node: &VaultNode<'_>| {
            node.node_type == Some(NodeType::PlayerInfoList) && node.int32_1 == Some(folder::OWNERS)
        };
        self.children(info).any(|list| {
            self.nodes.get(&list).is_some_and(is_owners) && self.children(list).next().is_some()
        })
    }

    fn children(&self, parent: u32) -> impl Iterator<Item = u32> {
        self.dump.refs.range((parent, 0)..=(parent, u32::MAX)).map(|((_, child), _)| *child)
    }
}

/// The longest description in a configuration, in characters.
const MAX_DESCRIPTION: usize = 31;
