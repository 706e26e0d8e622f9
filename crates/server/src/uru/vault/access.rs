//! Access rules: which nodes a player may read and change. The protocol defines no such rules, and
//! other servers have few. These rules allow everything that clients do.
//!
//! Administrators may do everything. A player *holds* a node if a path leads up from it to one of
//! the following, without passing through another of them or the System node:
//!
//! * the player's own Player node or PlayerInfo;
//! * an Age or AgeInfo of an age that the player owns or is in (after `AgeRequest`);
//! * a node that the player created and that has no parent yet.
//!
//! Paths do not lead through links to ages or entries in lists of players. A list that the server
//! put below a Player node belongs only to that player, even if it is also below other nodes.
//!
//! | nodes | who may change them |
//! | --- | --- |
//! | Player, PlayerInfo | their player, except the fields that identify it |
//! | Age, AgeInfo, and the fields of their lists | owners, except the fields that identify the age or publish it |
//! | SDL, devices, chronicles, and all others that a player holds | that player |
//! | links and entries in an age's lists | owners; players in the age may add entries and remove their own |
//! | AgeOwners | players may remove themselves, and add themselves to public ages, ages with them on CanVisit, and ages they just created |
//! | CanVisit | owners; players may remove themselves, and add themselves to public ages and their own |
//! | lists and states that the server created below Player, Age and AgeInfo | nobody may move or remove them |
//! | the System node and the nodes below it | nobody |
//! | the Age and AgeInfo of the city, static ages and first neighbourhoods | nobody: they belong to the operator |
//!
//! A player may put nodes that it holds, and any PlayerInfo or AgeInfo, below other nodes. It may
//! read the nodes that it holds and those in its trees, nodes in the trees of its account's other
//! players, every PlayerInfo, and every AgeInfo with all nodes below it. Only `VaultSendNode` puts
//! nodes into another player's tree.
//!
//! A player may enter an age if any of these holds:
//!
//! * the age is public;
//! * the player owns it, is in it, or is on its list CanVisit;
//! * the player and one of its owners are in the same age, or have both been there within the last
//!   five minutes;
//! * the age has no owners, and it either has no parent age, or the player may enter the parent;
//! * the operator has opened all ages.
//!
//! A player who shares a book sends the other client a `plLinkToAgeMsg` through the age, and
//! clients do not record in the vault who was offered what. But the two players must be in the same
//! age to do this, so being in an age together with an owner counts as an invitation. The
//! invitation lasts five minutes, because either client may leave that age before the other one
//! asks for the new age.
//!
//! An owner's invitation puts its receiver on CanVisit, and the withdrawal of an invitation removes
//! the receiver.

use std::collections::HashSet;

use worldwire_uru::types::{NetError, TermStr, Uuid};
use worldwire_uru::vault::{NodeType, VaultNode};

use super::ConnectionId;
use super::content::{AgeInfo, Entry, Facts, decode, folder};
use super::session::{Outcome, Session};
use super::steps::VaultState;
use super::trees::PLAYER_LISTS;

/// The relation to an age that a player must have for a change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// The player is in the age or is one of its owners.
    Present,
    /// The player is one of its owners, and the age does not belong to the operator.
    Owner,
}

/// The maximum number of nodes to examine on the way up. A node with more ancestors belongs to
/// nobody.
const MAX_ABOVE: usize = 4_096;
/// The maximum length of a chain of parent ages.
const MAX_AGES: usize = 8;
/// Types of text notes: an invitation to an age, and its withdrawal.
const VISIT: i32 = 4;
const UNVISIT: i32 = 5;

const fn is_root(kind: NodeType) -> bool {
    matches!(kind, NodeType::Player | NodeType::Age | NodeType::AgeInfo)
}

/// Whether the server creates this kind of node below the other kind.
fn is_standard(above: &Entry, below: &Entry) -> bool {
    match (above.kind, below.list()) {
        (NodeType::AgeInfo, None) => below.kind == NodeType::SDL,
        (NodeType::Player, Some(list)) => PLAYER_LISTS.iter().any(|(_, one)| *one == list),
        (NodeType::Age, Some(list)) => matches!(
            list,
            folder::CHRONICLE
                | folder::KNOWN
                | folder::SUB_AGES
                | folder::DEVICES
                | folder::OWNED_AGES
        ),
        (NodeType::AgeInfo, Some(list)) => {
            matches!(list, folder::CAN_VISIT | folder::OWNERS | folder::CHILD_AGES)
        }
        _ => false,
    }
}

impl VaultState {
    /// Whether a session may read a node and its references.
    pub(crate) fn may_read(&self, connection: ConnectionId, session: &Session, id: u32) -> bool {
        if session.is_admin() || !self.config().strict {
            return true;
        }
        let Some(entry) = self.graph().get(id) else { return true };
        matches!(entry.kind, NodeType::PlayerInfo | NodeType::AgeInfo)
            || self.interests().has(connection, id)
            || self.interests().is_common(id)
            || session.player != 0 && entry.creator == session.player
            || self.is_below(id, |state, holder| match state.graph().kind(holder) {
                Some(NodeType::AgeInfo) => true,
                Some(NodeType::Age) => state.owns_age(session.player, holder),
                _ => state.players().account(holder) == Some(session.account),
            })
    }

    /// Whether a session may add references to a node.
    pub(crate) fn may_share(&self, session: &Session, id: u32) -> bool {
        if session.is_admin() {
            return true;
        }
        match self.graph().kind(id) {
            Some(NodeType::PlayerInfo | NodeType::AgeInfo) => true,
            Some(NodeType::System) | None => false,
            Some(_) => {
                let built_in = self.graph().parents(id).any(|parent| self.is_built_in(parent, id));
                !built_in && self.holds(session, id, Standing::Present)
            }
        }
    }

    /// Checks that a session may add or remove this reference.
    ///
    /// # Errors
    /// [`NetError::VaultNodeNotFound`], [`NetError::InvalidParameter`] for a root as a child,
    /// [`NetError::VaultNodeAccessViolation`].
    pub(crate) fn check_ref(
        &self,
        connection: ConnectionId,
        parent: u32,
        child: u32,
        adds: bool,
    ) -> Result<(), NetError> {
        let session = self.playing(connection)?;
        let above = self.graph().get(parent).ok_or(NetError::VaultNodeNotFound)?;
        let below = self.graph().get(child).ok_or(NetError::VaultNodeNotFound)?;
        if matches!(below.kind, NodeType::Player | NodeType::Age) {
            return Err(NetError::InvalidParameter);
        }
        if session.is_admin() {
            return Ok(());
        }
        let refused = Err(NetError::VaultNodeAccessViolation);
        // Nodes that every tree has can be neither removed from it nor added a second time.
        let unchanged = matches!(
            (above.kind, below.kind),
            (NodeType::Player, NodeType::PlayerInfo)
                | (NodeType::Age, NodeType::AgeInfo)
                | (_, NodeType::System)
        );
        let place = is_standard(above, below)
            .then(|| self.graph().child(parent, below.kind, below.list()))
            .flatten();
        let disturbs = match place {
            Some(first) if adds => first != child,
            Some(first) => first == child,
            None => false,
        };
        if unchanged || disturbs {
            return refused;
        }
        if above.kind == NodeType::PlayerInfoList
            && let Some(info) = self.age_of_list(parent)
            && let Some(list @ (folder::OWNERS | folder::CAN_VISIT)) = above.list()
        {
            let allowed = below.kind == NodeType::PlayerInfo
                && self.may_list(session, info, list, child, adds);
            return if allowed { Ok(()) } else { refused };
        }
        let keeps = matches!(
            above.kind,
            NodeType::AgeInfoList | NodeType::PlayerInfoList | NodeType::AgeLink
        );
        let own = self.graph().owner(parent, child) == Some(session.player);
        let standing = if keeps && !adds && !own { Standing::Owner } else { Standing::Present };
        if !self.holds(session, parent, standing) {
            return refused;
        }
        if adds && !self.may_share(session, child) { refused } else { Ok(()) }
    }

    /// Checks that a session may change these fields of a node. Fails with
    /// [`NetError::VaultNodeAccessViolation`], or if the node's content must first be loaded.
    pub(crate) fn check_save(
        &mut self,
        connection: ConnectionId,
        id: u32,
        change: &VaultNode<'_>,
    ) -> Outcome<()> {
        let session = self.playing(connection)?;
        let entry = self.graph().get(id).ok_or(NetError::VaultNodeNotFound)?;
        if session.is_admin() {
            return Ok(());
        }
        let below_root =
            self.graph().parents(id).any(|parent| self.graph().kind(parent).is_some_and(is_root));
        let is_list = entry.list().is_some();
        let standing = if is_list && below_root { Standing::Owner } else { Standing::Present };
        if !self.holds(session, id, standing) {
            return Err(NetError::VaultNodeAccessViolation.into());
        }
        let player = session.player;
        let content = self.content(id)?;
        let node = decode(&content)?;
        macro_rules! keeps {
            ($($field:ident)*) => {
                true $(&& (change.$field.is_none() || change.$field == node.$field))*
            };
        }
        let keeps = match node.node_type.unwrap_or_default() {
            NodeType::Player => keeps!(int32_1 uuid_1 istring64_1),
            NodeType::PlayerInfo => keeps!(uint32_1 istring64_1),
            NodeType::Age => keeps!(uuid_1 uuid_2 string64_1),
            NodeType::AgeInfo => keeps!(int32_1 int32_2 uint32_1 uuid_1 uuid_2 string64_2),
            NodeType::Folder | NodeType::PlayerInfoList | NodeType::AgeInfoList => {
                keeps!(int32_1) || node.creator_id == Some(player) && !below_root
            }
            _ => true,
        };
        if keeps { Ok(()) } else { Err(NetError::VaultNodeAccessViolation.into()) }
    }

    /// Whether a session may enter an age, given its Age node.
    pub(crate) fn may_enter(&self, session: &Session, age: u32) -> bool {
        if session.is_admin() || !self.config().strict || self.config().open_ages {
            return true;
        }
        let mut age = age;
        for _ in 0..MAX_AGES {
            let Some(info) = self.graph().child(age, NodeType::AgeInfo, None) else { return false };
            let Some(facts) = self.graph().age_info(info) else { return false };
            if facts.public
                || self.is_present(session, age)
                || session.made.contains(&info)
                || self.is_listed(session.player, info, folder::CAN_VISIT)
                || self.config().sharing && self.is_with_owner(session, age, info)
            {
                return true;
            }
            let above = self.age_of_instance(facts.parent);
            let owned = self.has_owners(info);
            match above {
                Some(above) if self.is_present(session, above) => return true,
                _ if owned => return false,
                // All players share this age, for example because its instance is fixed by the
                // game.
                None => return true,
                Some(above) => age = above,
            }
        }
        false
    }

    /// Whether a session may create an age with this parent.
    pub(crate) fn may_make_below(&self, session: &Session, parent: Uuid) -> bool {
        self.age_of_instance(parent).is_none_or(|age| self.may_enter(session, age))
    }

    /// Whether a session may publish an age.
    pub(crate) fn may_publish(&self, session: &Session, info: u32, age: &AgeInfo) -> bool {
        session.is_admin() || self.may_be_public(age) && self.commands(session, info)
    }

    /// Adds the receiver of an owner's invitation to the list of visitors, or removes it.
    pub(crate) fn invite(&mut self, session: &Session, note: u32, receiver: u32) -> Outcome<()> {
        if self.graph().kind(note) != Some(NodeType::TextNote) {
            return Ok(());
        }
        let content = self.content(note)?;
        let node = decode(&content)?;
        let comes = match node.int32_1 {
            Some(VISIT) => true,
            Some(UNVISIT) => false,
            _ => return Ok(()),
        };
        let text = node.text_1.as_ref().map(TermStr::to_text).unwrap_or_default();
        let [own, other] = [session.player, receiver]
            .map(|player| self.graph().child(player, NodeType::PlayerInfo, None));
        let (Some(own), Some(other)) = (own, other) else { return Ok(()) };
        // The ages that the sender owns among those that the text names. Unverified: the text
        // around the instance.
        let text = digits(&text);
        let lists: Vec<_> = self.graph().parents(own).collect();
        let infos = lists.into_iter().filter_map(|list| {
            let is_owners = self.graph().get(list)?.list() == Some(folder::OWNERS);
            let info = is_owners.then(|| self.age_of_list(list)).flatten()?;
            let facts = self.graph().age_info(info)?;
            let named = text.contains(&digits(&facts.instance.to_string()));
            (named && self.commands(session, info)).then_some(info)
        });
        let infos: Vec<_> = infos.collect();
        for info in infos {
            let visitors =
                self.graph().child(info, NodeType::PlayerInfoList, Some(folder::CAN_VISIT));
            match visitors {
                Some(list) if comes => self.link_below(list, other, session.player)?,
                Some(list) => self.unlink(list, other),
                None => {}
            }
        }
        Ok(())
    }

    /// Whether a player owns an age, given its Age or AgeInfo node.
    pub(crate) fn owns_age(&self, player: u32, age: u32) -> bool {
        self.info_of(age).is_some_and(|info| self.is_listed(player, info, folder::OWNERS))
    }

    /// Whether a player owns an age or is in it, given its Age or AgeInfo node.
    pub(crate) fn is_present(&self, session: &Session, age: u32) -> bool {
        let node = self.graph().age_info(age).map_or(age, |info| info.age);
        session.age != 0 && session.age == node || self.owns_age(session.player, age)
    }

    /// The list of owners of an age, given its Age or AgeInfo node.
    pub(crate) fn owners_list(&self, age: u32) -> Option<u32> {
        self.graph().child(self.info_of(age)?, NodeType::PlayerInfoList, Some(folder::OWNERS))
    }

    /// The Age node of an instance.
    pub(crate) fn age_of_instance(&self, instance: Uuid) -> Option<u32> {
        if instance.is_zero() {
            return None;
        }
        let template = VaultNode {
            node_type: Some(NodeType::Age),
            uuid_1: Some(instance),
            ..VaultNode::default()
        };
        self.graph().find(&template, 1).first().copied()
    }

    fn info_of(&self, age: u32) -> Option<u32> {
        match self.graph().kind(age)? {
            NodeType::Age => self.graph().child(age, NodeType::AgeInfo, None),
            _ => Some(age),
        }
    }

    /// Whether a player and an owner of an age are in the same age, or were a short time ago. Being
    /// together in the age itself does not count, so that its owner can keep a player out.
    fn is_with_owner(&self, session: &Session, age: u32, info: u32) -> bool {
        let now = self.now();
        let owners = self.owners_list(info).into_iter();
        owners.flat_map(|list| self.graph().children(list)).any(|entry| {
            let owner = match self.graph().get(entry).map(|entry| &entry.facts) {
                Some(Facts::PlayerInfo { player, .. }) => self.connection_of(*player),
                _ => None,
            };
            let owner = owner.and_then(|connection| self.sessions().get(&connection));
            owner.is_some_and(|owner| {
                let together = |place| owner.places(now).any(|other| other == place);
                session.places(now).any(|place| place != age && together(place))
            })
        })
    }

    fn has_owners(&self, info: u32) -> bool {
        self.owners_list(info).is_some_and(|list| self.graph().children(list).next().is_some())
    }

    /// Whether a player is on one of an age's lists.
    fn is_listed(&self, player: u32, info: u32, list: i32) -> bool {
        let list = self.graph().child(info, NodeType::PlayerInfoList, Some(list));
        let own = self.graph().child(player, NodeType::PlayerInfo, None);
        list.zip(own).is_some_and(|(list, own)| self.graph().owner(list, own).is_some())
    }

    /// Whether a player owns an age that does not belong to the operator.
    fn commands(&self, session: &Session, age: u32) -> bool {
        self.owns_age(session.player, age) && !self.is_operators(age)
    }

    /// Whether the shard created an age automatically.
    fn is_operators(&self, age: u32) -> bool {
        let Some(facts) = self.info_of(age).and_then(|info| self.graph().age_info(info)) else {
            return false;
        };
        if self.is_own_age(facts.instance) {
            return true;
        }
        let fixed = self.config().static_ages.iter().chain([&self.config().city]);
        let fixed = fixed.map(|age| (&age.names, age.instance));
        let hood = (&self.config().neighbourhood, None);
        fixed.chain([hood]).any(|(names, instance)| match instance {
            Some(instance) => instance == facts.instance,
            None => *names.filename == *facts.filename && *names.user_name == *facts.user_name,
        })
    }

    fn may_be_public(&self, age: &AgeInfo) -> bool {
        self.config().may_be_public.iter().any(|name| **name == *age.filename)
    }

    /// The AgeInfo to which a list belongs.
    fn age_of_list(&self, list: u32) -> Option<u32> {
        self.graph().parents(list).find(|parent| self.is_built_in(*parent, list))
    }

    /// Whether the server created a node below another one.
    fn is_built_in(&self, parent: u32, child: u32) -> bool {
        let (Some(above), Some(below)) = (self.graph().get(parent), self.graph().get(child)) else {
            return false;
        };
        is_standard(above, below)
            && self.graph().child(parent, below.kind, below.list()) == Some(child)
    }

    /// Whether a session may add or remove an entry in an age's list of owners or visitors.
    fn may_list(&self, session: &Session, info: u32, list: i32, child: u32, adds: bool) -> bool {
        let own = self.graph().get(child).is_some_and(|entry| entry.stands_for(session.player));
        if !self.config().strict {
            return own || list == folder::CAN_VISIT;
        }
        if !own {
            return list == folder::CAN_VISIT && self.commands(session, info);
        }
        let Some(facts) = self.graph().age_info(info) else { return false };
        let visits = self.is_listed(session.player, info, folder::CAN_VISIT);
        let owns = self.owns_age(session.player, info);
        if !adds || owns || session.made.contains(&info) {
            return true;
        }
        match list {
            folder::OWNERS => {
                facts.public && self.may_be_public(facts) || visits && self.has_owners(info)
            }
            _ => visits || facts.public,
        }
    }

    /// Whether a session holds a node; see the module's documentation.
    fn holds(&self, session: &Session, id: u32, standing: Standing) -> bool {
        if session.is_admin() {
            return true;
        }
        match self.graph().kind(id) {
            None | Some(NodeType::System) => return false,
            Some(NodeType::Player) => return id == session.player,
            Some(NodeType::PlayerInfo) => return self.is_own_info(session, id),
            _ if !self.config().strict => return true,
            Some(NodeType::Age | NodeType::AgeInfo) => return self.commands(session, id),
            Some(_) => {}
        }
        let mut met = HashSet::from([id]);
        let mut waiting = vec![id];
        while let Some(node) = waiting.pop() {
            let mut parents = self.graph().parents(node).peekable();
            let made = self.graph().get(node).is_some_and(|entry| entry.creator == session.player);
            if parents.peek().is_none() && made && session.player != 0 {
                return true;
            }
            if self.graph().owner(session.player, node).is_some() {
                return true;
            }
            let is_players = |parent: u32| self.graph().kind(parent) == Some(NodeType::Player);
            if self.graph().parents(node).any(is_players) {
                continue;
            }
            for parent in parents {
                let held = match self.graph().kind(parent) {
                    None | Some(NodeType::System | NodeType::Player) => false,
                    Some(NodeType::PlayerInfo) => self.is_own_info(session, parent),
                    Some(NodeType::Age | NodeType::AgeInfo) => match standing {
                        Standing::Present => self.is_present(session, parent),
                        Standing::Owner => self.commands(session, parent),
                    },
                    Some(_) => {
                        if met.len() < MAX_ABOVE && met.insert(parent) {
                            waiting.push(parent);
                        }
                        false
                    }
                };
                if held {
                    return true;
                }
            }
        }
        false
    }

    fn is_own_info(&self, session: &Session, id: u32) -> bool {
        self.graph().owner(session.player, id).is_some()
            && self.graph().get(id).is_some_and(|entry| entry.stands_for(session.player))
    }

    /// Whether a node is, or is below, a Player, Age or AgeInfo that satisfies a condition. Paths
    /// do not lead through links to ages or entries in lists of players.
    fn is_below(&self, id: u32, fits: impl Fn(&Self, u32) -> bool) -> bool {
        let mut met = HashSet::from([id]);
        let mut waiting = vec![id];
        while let Some(node) = waiting.pop() {
            let kind = self.graph().kind(node);
            if kind.is_some_and(is_root) && fits(self, node) {
                return true;
            }
            for parent in self.graph().parents(node) {
                let above = self.graph().kind(parent);
                let holds = match kind {
                    Some(NodeType::AgeInfo) => above == Some(NodeType::Age),
                    Some(NodeType::PlayerInfo) => above == Some(NodeType::Player),
                    _ => true,
                };
                if holds && met.len() < MAX_ABOVE && met.insert(parent) {
                    waiting.push(parent);
                }
            }
        }
        false
    }
}

/// The hexadecimal digits in the text, in lower case, because instances are written with or without
/// hyphens.
fn digits(text: &str) -> String {
    let digits = text.chars().filter(char::is_ascii_hexdigit);
    digits.map(|digit| digit.to_ascii_lowercase()).collect()
}
