//! The contents of nodes, and the facts about them that are always in memory.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use worldwire_core::json::{Style, write_children};
use worldwire_core::{Field, Reader, Record as _, Tree, TreeBuilder, Value, Writer};
use worldwire_uru::types::{NetError, TermStr, Uuid};
use worldwire_uru::vault::{NodeType, VaultNode};

use super::markers;
use super::tables::players::folded_player;

/// All fields of a node, encoded as on the wire.
pub(crate) type Content = Arc<[u8]>;

/// The numbers of the kinds of lists and directories.
pub(crate) mod folder {
    pub(crate) const INBOX: i32 = 1;
    pub(crate) const BUDDIES: i32 = 2;
    pub(crate) const IGNORED: i32 = 3;
    pub(crate) const KNOWN: i32 = 4;
    pub(crate) const CHRONICLE: i32 = 6;
    pub(crate) const OUTFIT: i32 = 7;
    pub(crate) const SUB_AGES: i32 = 9;
    pub(crate) const ALL_PLAYERS: i32 = 12;
    pub(crate) const JOURNALS: i32 = 14;
    pub(crate) const DEVICES: i32 = 15;
    pub(crate) const CAN_VISIT: i32 = 18;
    pub(crate) const OWNERS: i32 = 19;
    pub(crate) const OWNED_AGES: i32 = 23;
    pub(crate) const VISITED_AGES: i32 = 24;
    pub(crate) const CLOSET: i32 = 25;
    pub(crate) const INVITES: i32 = 28;
    pub(crate) const GLOBAL_INBOX: i32 = 30;
    pub(crate) const CHILD_AGES: i32 = 31;
}

/// Decodes a node. Fails with [`NetError::BadServerData`].
pub(crate) fn decode(bytes: &[u8]) -> Result<VaultNode<'_>, NetError> {
    let mut reader = Reader::new(bytes);
    let node = VaultNode::decode(&mut reader, "node").and_then(|node| reader.end().map(|()| node));
    node.map_err(|_| NetError::BadServerData)
}

/// Encodes a node. Fails with [`NetError::InvalidParameter`] if a field is too long for its count.
pub(crate) fn encode(node: &VaultNode<'_>) -> Result<Content, NetError> {
    let mut writer = Writer::new();
    node.encode(&mut writer).map_err(|_| NetError::InvalidParameter)?;
    Ok(writer.into_bytes().into())
}

/// The JSON of a node.
pub(crate) fn node_json(content: &[u8]) -> String {
    let mut reader = Reader::traced("node", content, Tree::default());
    let outcome = VaultNode::decode_fields(&mut reader);
    json_of(reader, outcome)
}

/// The JSON of a node, with each numbered field also under the game's name for it.
pub(crate) fn named_json(content: &[u8]) -> String {
    let mut reader = Reader::traced("node", content, Tree::default());
    let outcome = VaultNode::decode_named(&mut reader);
    json_of(reader, outcome)
}

fn json_of<'d, T>(
    reader: Reader<'d, TreeBuilder<'d>>,
    outcome: worldwire_core::Result<T>,
) -> String {
    let (tree, _) = reader.conclude(outcome);
    let mut out = String::new();
    write_children(Value::Record, tree.roots(), Style::default(), &mut out);
    out
}

/// Calls a macro with all fields that can be compared and changed, and their bits. Excludes
/// IStrings, which are compared ignoring case.
macro_rules! with_fields {
    ($use:ident, $($arguments:expr),*) => {
        $use! { $($arguments),*;
            3 create_age_name, 4 create_age_uuid, 5 creator_acct, 6 creator_id, 7 node_type,
            8 int32_1, 9 int32_2, 10 int32_3, 11 int32_4,
            12 uint32_1, 13 uint32_2, 14 uint32_3, 15 uint32_4,
            16 uuid_1, 17 uuid_2, 18 uuid_3, 19 uuid_4,
            20 string64_1, 21 string64_2, 22 string64_3, 23 string64_4, 24 string64_5,
            25 string64_6, 28 text_1, 29 text_2, 30 blob_1, 31 blob_2
        }
    };
}

/// Replaces the fields of a node that are set in a change.
pub(crate) fn overlay<'d>(node: &mut VaultNode<'d>, change: VaultNode<'d>) {
    macro_rules! replace {
        ($node:expr, $change:expr; $($bit:literal $field:ident),*) => {
            $(if $change.$field.is_some() { $node.$field = $change.$field; })*
        };
    }
    with_fields!(replace, node, change);
    replace!(node, change; 26 istring64_1, 27 istring64_2);
}

/// Whether any text contains a zero unit.
pub(crate) fn has_inner_zero(node: &VaultNode<'_>) -> bool {
    macro_rules! fields {
        ($($field:ident)*) => { [$(&node.$field),*] };
    }
    let texts = fields!(create_age_name string64_1 string64_2 string64_3 string64_4 string64_5
        string64_6 istring64_1 istring64_2 text_1 text_2);
    texts.into_iter().flatten().any(TermStr::has_inner_zero)
}

/// Hashes fields and their values for the index that finds nodes. In every process, the hash has a
/// random key, so nobody can construct collisions. Accidental collisions (one in 2^64 pairs) are
/// accepted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys(RandomState);

impl Keys {
    /// The sorted keys of all fields that are set, except number and times.
    pub(crate) fn of(&self, node: &VaultNode<'_>) -> Box<[u64]> {
        let mut keys = Vec::new();
        let mut writer = Writer::new();
        macro_rules! add {
            ($node:expr, $keys:expr; $($bit:literal $field:ident),*) => {
                $(if let Some(value) = &$node.$field {
                    let start = writer.len();
                    // This cannot fail: values that were decoded and checked can be encoded.
                    if value.encode(&mut writer).is_ok() {
                        let bytes = writer.as_bytes().get(start..).unwrap_or_default();
                        $keys.push(self.0.hash_one(($bit, bytes)));
                    }
                })*
            };
        }
        with_fields!(add, node, keys);
        for (bit, field) in [(26, &node.istring64_1), (27, &node.istring64_2)] {
            let hash = |text: &TermStr<'_>| self.0.hash_one((bit, folded_player(&text.to_text())));
            keys.extend(field.as_ref().map(hash));
        }
        keys.sort_unstable();
        keys.into_boxed_slice()
    }
}

/// The facts about a node that are always in memory.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) kind: NodeType,
    pub(crate) creator: u32,
    pub(crate) created: u32,
    pub(crate) modified: u32,
    pub(crate) keys: Box<[u64]>,
    pub(crate) facts: Facts,
}

/// The fields that the access rules need.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Facts {
    None,
    List {
        kind: i32,
    },
    PlayerInfo {
        player: u32,
        online: bool,
        /// The age that the player is in.
        instance: Uuid,
    },
    Age {
        instance: Uuid,
        filename: Box<str>,
    },
    AgeInfo(Box<AgeInfo>),
    /// A template of a marker game.
    MarkerTemplate {
        template: Uuid,
        creator: u32,
        is_quest: bool,
        unused_since: u32,
    },
    /// A marker of a template.
    Marker {
        template: Uuid,
        marker: u32,
    },
    /// The markers of a template that a player has captured.
    MarkerCaptures {
        template: Uuid,
        player: u32,
    },
    /// A player's MarkerGame node, which names a template.
    MarkerGame {
        template: Uuid,
    },
}

/// The fields of an AgeInfo node that the access rules need.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AgeInfo {
    pub(crate) age: u32,
    pub(crate) public: bool,
    pub(crate) sequence: i32,
    pub(crate) instance: Uuid,
    pub(crate) parent: Uuid,
    pub(crate) filename: Box<str>,
    pub(crate) user_name: Box<str>,
}

impl Entry {
    pub(crate) fn of(node: &VaultNode<'_>, keys: &Keys) -> Self {
        let kind = node.node_type.unwrap_or_default();
        let text = |field: &Option<TermStr<'_>>| -> Box<str> {
            field.as_ref().map(TermStr::to_text).unwrap_or_default().into()
        };
        let facts = match kind {
            NodeType::Folder | NodeType::PlayerInfoList | NodeType::AgeInfoList => {
                Facts::List { kind: node.int32_1.unwrap_or_default() }
            }
            NodeType::PlayerInfo => Facts::PlayerInfo {
                player: node.uint32_1.unwrap_or_default(),
                online: node.int32_1.unwrap_or_default() != 0,
                instance: node.uuid_1.unwrap_or_default(),
            },
            NodeType::Age => Facts::Age {
                instance: node.uuid_1.unwrap_or_default(),
                filename: text(&node.string64_1),
            },
            NodeType::AgeInfo => Facts::AgeInfo(Box::new(AgeInfo {
                age: node.uint32_1.unwrap_or_default(),
                public: node.int32_2.unwrap_or_default() != 0,
                sequence: node.int32_1.unwrap_or_default(),
                instance: node.uuid_1.unwrap_or_default(),
                parent: node.uuid_2.unwrap_or_default(),
                filename: text(&node.string64_2),
                user_name: text(&node.string64_4),
            })),
            _ => markers::facts(node),
        };
        Self {
            kind,
            creator: node.creator_id.unwrap_or_default(),
            created: node.create_time.unwrap_or_default(),
            modified: node.modify_time.unwrap_or_default(),
            keys: keys.of(node),
            facts,
        }
    }

    /// Whether a tree begins at the node.
    pub(crate) fn is_root(&self) -> bool {
        matches!(self.kind, NodeType::Player | NodeType::Age | NodeType::System)
    }

    /// Whether the node is the PlayerInfo of a player.
    pub(crate) fn stands_for(&self, player: u32) -> bool {
        matches!(self.facts, Facts::PlayerInfo { player: own, .. } if own == player)
    }

    /// The kind of a directory or list.
    pub(crate) fn list(&self) -> Option<i32> {
        match self.facts {
            Facts::List { kind } => Some(kind),
            _ => None,
        }
    }
}
