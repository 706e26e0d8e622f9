//! Vault nodes.
//!
//! A node is encoded as a `u64` mask of the fields present (bits 32 to 63 are zero), then those
//! fields in the order of their bits, without padding. An absent field is not the same as an empty
//! one: saving a node leaves absent fields unchanged.

mod names;

use worldwire_core::json::Given;
use worldwire_core::{
    Bytes32, Error, Field, Reader, Result, Shape, Trace, Value, record, wire_enum,
};

pub use names::{FIELD_NAMES, FieldName, field_names};

use crate::types::{Inner, InnerFamily, TermStr, Uuid};

wire_enum! {
    /// The type of a vault node.
    pub enum NodeType(u32) {
        /// A player and the root of the player's tree.
        Player = 2,
        /// An age instance and the root of its tree.
        Age = 3,
        /// A general-purpose directory.
        Folder = 22,
        /// Public information about a player.
        PlayerInfo = 23,
        /// The system node, shared by all trees.
        System = 24,
        /// An image.
        Image = 25,
        /// A text note.
        TextNote = 26,
        /// An SDL state.
        SDL = 27,
        /// A link to an age.
        AgeLink = 28,
        /// A named value belonging to a player.
        Chronicle = 29,
        /// A list of players.
        PlayerInfoList = 30,
        /// Public information about an age instance.
        AgeInfo = 33,
        /// A list of ages.
        AgeInfoList = 34,
        /// A marker quest.
        MarkerGame = 35,
    }
}

wire_enum! {
    /// The purpose of a directory or of a list of players or ages, stored in its `Int32_1`. Except
    /// for the first purpose, a node has at most one child with each purpose. Numbers that clients
    /// do not use have no name.
    pub enum StandardFolder(i32) {
        /// Created by a player.
        UserDefined = 0,
        /// Items received from other players.
        Inbox = 1,
        /// Buddies of a player.
        BuddyList = 2,
        /// Players who are ignored.
        IgnoreList = 3,
        /// Players met recently.
        PeopleIKnowAbout = 4,
        /// Named values.
        Chronicle = 6,
        /// What the avatar wears.
        AvatarOutfit = 7,
        /// Journals of one kind of age.
        AgeTypeJournal = 8,
        /// Ages belonging to an age.
        SubAges = 9,
        /// Items sent to a device, such as an imager.
        DeviceInbox = 10,
        /// All players on the shard.
        AllPlayers = 12,
        /// Journals of all ages.
        AgeJournals = 14,
        /// Devices in an age, such as imagers.
        AgeDevices = 15,
        /// Players who may visit an age.
        CanVisit = 18,
        /// Players who own an age.
        AgeOwners = 19,
        /// States shared by all instances of an age.
        AllAgeGlobalSDLNodes = 20,
        /// Ages that a player owns.
        AgesIOwn = 23,
        /// Ages that a player may visit.
        AgesICanVisit = 24,
        /// Clothes owned by an avatar.
        AvatarCloset = 25,
        /// Invited players.
        PlayerInvite = 28,
        /// Items for everyone.
        GlobalInbox = 30,
        /// Ages inside an age.
        ChildAges = 31,
    }
}

/// A blob field; the enclosing message imposes a tighter bound.
pub type NodeBlob<'d> = Bytes32<'d, 1_048_576>;

record! {
    /// A vault node or part of one: any subset of the 32 fields.
    ///
    /// The meaning of the numbered fields depends on the node type: see [`FIELD_NAMES`].
    pub struct VaultNode<'d>: mask u64 {
        /// The node's number; assigned by the server.
        0 node_id "NodeId": u32,
        /// Creation time in Unix seconds; set by the server.
        1 create_time "CreateTime": u32,
        /// Time of the last change in Unix seconds; set by the server.
        2 modify_time "ModifyTime": u32,
        /// The age in which the node was created.
        3 create_age_name "CreateAgeName": TermStr<'d>,
        /// The instance of that age.
        4 create_age_uuid "CreateAgeUuid": Uuid,
        /// The account that created the node.
        5 creator_acct "CreatorAcct": Uuid,
        /// The player node of the creator.
        6 creator_id "CreatorId": u32,
        /// The type of the node.
        7 node_type "NodeType": NodeType,
        8 int32_1 "Int32_1": i32,
        9 int32_2 "Int32_2": i32,
        10 int32_3 "Int32_3": i32,
        11 int32_4 "Int32_4": i32,
        12 uint32_1 "UInt32_1": u32,
        13 uint32_2 "UInt32_2": u32,
        14 uint32_3 "UInt32_3": u32,
        15 uint32_4 "UInt32_4": u32,
        16 uuid_1 "Uuid_1": Uuid,
        17 uuid_2 "Uuid_2": Uuid,
        18 uuid_3 "Uuid_3": Uuid,
        19 uuid_4 "Uuid_4": Uuid,
        20 string64_1 "String64_1": TermStr<'d>,
        21 string64_2 "String64_2": TermStr<'d>,
        22 string64_3 "String64_3": TermStr<'d>,
        23 string64_4 "String64_4": TermStr<'d>,
        24 string64_5 "String64_5": TermStr<'d>,
        25 string64_6 "String64_6": TermStr<'d>,
        /// Case-insensitive.
        26 istring64_1 "IString64_1": TermStr<'d>,
        /// Case-insensitive.
        27 istring64_2 "IString64_2": TermStr<'d>,
        28 text_1 "Text_1": TermStr<'d>,
        29 text_2 "Text_2": TermStr<'d>,
        30 blob_1 "Blob_1": NodeBlob<'d>,
        31 blob_2 "Blob_2": NodeBlob<'d>,
    }
}

impl InnerFamily for VaultNode<'static> {
    type At<'d> = VaultNode<'d>;
}

/// The maximum length of a String64, IString64 or CreateAgeName when saving, in UTF-16 units.
pub const MAX_STRING_UNITS: usize = 63;
/// The maximum length of a Text when saving, in UTF-16 units, unless a shard raises it.
pub const MAX_TEXT_UNITS: usize = 1023;

impl VaultNode<'_> {
    /// What distinguishes the node from others of its type: an age's instance and file name, a
    /// player's name, a directory's purpose. `None` if it has no name.
    #[must_use]
    pub fn title(&self) -> Option<String> {
        let text = |field: &Option<TermStr<'_>>| {
            field.as_ref().map(TermStr::to_text).filter(|text| !text.is_empty())
        };
        let age = || {
            let names = [&self.string64_4, &self.string64_3];
            let names: Vec<_> = names.into_iter().filter_map(text).collect();
            (self.node_type == Some(NodeType::AgeInfo) && !names.is_empty())
                .then(|| names.join(" "))
        };
        let folder = || {
            let is_folder = matches!(
                self.node_type?,
                NodeType::Folder | NodeType::PlayerInfoList | NodeType::AgeInfoList
            );
            let purpose = StandardFolder(self.int32_1.filter(|_| is_folder)?);
            Some(purpose.name().map_or_else(|| purpose.0.to_string(), str::to_owned))
        };
        let names = [&self.istring64_1, &self.string64_2, &self.string64_1];
        age()
            .or_else(|| names.into_iter().find_map(text))
            .or_else(folder)
            .or_else(|| text(&self.text_1))
    }

    /// Checks that all strings are short enough to be saved. Longer ones should be refused rather
    /// than truncated.
    pub fn check_lengths(&self, max_text: usize) -> Result<()> {
        let short = [
            ("CreateAgeName", &self.create_age_name),
            ("String64_1", &self.string64_1),
            ("String64_2", &self.string64_2),
            ("String64_3", &self.string64_3),
            ("String64_4", &self.string64_4),
            ("String64_5", &self.string64_5),
            ("String64_6", &self.string64_6),
            ("IString64_1", &self.istring64_1),
            ("IString64_2", &self.istring64_2),
        ];
        let long = [("Text_1", &self.text_1), ("Text_2", &self.text_2)];
        let short = short.into_iter().map(|(name, value)| (name, value, MAX_STRING_UNITS));
        let long = long.into_iter().map(|(name, value)| (name, value, max_text));
        for (name, value, max) in short.chain(long) {
            let units = value.as_ref().map_or(0, TermStr::units);
            if units > max {
                let error =
                    Error::limit("UTF-16 units of a node's string", max as u64, units as u64);
                return Err(error.inside(name));
            }
        }
        Ok(())
    }
}

impl<'d> Inner<'d> for VaultNode<'d> {
    const NAME: &'static str = "vault node";
    const UNIT: usize = 1;
    const ONE_FORM: bool = true;
    const SHAPE: Value<'static> = Value::Record;

    fn inner_shape() -> Shape {
        <Self as Field<'_>>::shape()
    }

    fn decode_inner<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        Self::decode_named(reader)
    }

    fn inner_from_json(json: Given<'_>) -> Result<Self> {
        Self::from_named_json(json)
    }
}

#[cfg(test)]
mod tests {
    use worldwire_core::Writer;

    use super::*;

    #[test]
    fn absent_and_empty_differ() {
        let node = VaultNode { text_1: Some(TermStr::from("")), ..VaultNode::default() };
        let mut writer = Writer::new();
        node.encode(&mut writer).unwrap();
        assert_eq!(writer.as_bytes(), [0, 0, 0, 0x10, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0]);
        let back = VaultNode::decode_inner(&mut Reader::new(writer.as_bytes())).unwrap();
        assert_eq!(back, node);
        assert_eq!(back.text_2, None);
    }

    #[test]
    fn long_strings_are_reported() {
        let name = "x".repeat(64);
        let node = VaultNode { string64_3: Some(TermStr::from(&*name)), ..VaultNode::default() };
        let error = node.check_lengths(MAX_TEXT_UNITS).unwrap_err();
        assert_eq!(
            error.to_string(),
            "String64_3: wanted at most 63 (UTF-16 units of a node's string), found 64"
        );
    }

    #[test]
    fn titles_distinguish_nodes_of_one_type() {
        let text = |text: &'static str| Some(TermStr::from(text));
        let node = |node_type| VaultNode { node_type: Some(node_type), ..VaultNode::default() };
        let player = VaultNode { istring64_1: text("Ann"), ..node(NodeType::Player) };
        assert_eq!(player.title().as_deref(), Some("Ann"));
        let (user, file) = (text("Ann's"), text("Personal"));
        let age = VaultNode { string64_4: user, string64_2: file, ..node(NodeType::AgeInfo) };
        assert_eq!(age.title().as_deref(), Some("Ann's"));
        let folder = |int32_1| VaultNode { int32_1, ..node(NodeType::PlayerInfoList) };
        assert_eq!(folder(Some(19)).title().as_deref(), Some("AgeOwners"));
        assert_eq!(folder(Some(99)).title().as_deref(), Some("99"));
        assert_eq!(folder(None).title(), None);
        let link = VaultNode { int32_1: Some(0), ..node(NodeType::AgeLink) };
        assert_eq!(link.title(), None);
    }
}
