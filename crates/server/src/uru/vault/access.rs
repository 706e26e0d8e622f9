//! Who may read and change which nodes. The protocol knows no such rules, and other servers have
//! few; these allow what clients do.
//!
//! An administrator may do everything. A player *holds* a node if a way leads up from it to one of
//! these, without passing through another one of them or the System node:
//!
//! * its own Player node or PlayerInfo;
//! * an Age or AgeInfo of an age it owns, or is in (after `AgeRequest`);
//! * a node that it made and that is nowhere yet.
//!
//! A link to an age and an entry in a list of players lead nowhere: what is below them is not the
//! player's. A list that the server put below a Player node belongs to that player alone, wherever
//! else it is.
//!
//! | what | who may change it |
//! | --- | --- |
//! | Player, PlayerInfo | their player, but not who it is |
//! | Age, AgeInfo, and the fields of their lists | owners, but not what the age is and whether it is public |
//! | SDL, devices, chronicles and whatever else a player holds | that player |
//! | links and entries in lists of an age | owners; those who are in it add, and remove what they added |
//! | AgeOwners | a player itself: leaves; joins a public age, one whose list CanVisit it is on, or one it has just made |
//! | CanVisit | owners; a player itself: leaves, and joins a public age or its own |
//! | the lists and states that the server made below Player, Age and AgeInfo | nobody removes them or puts them elsewhere |
//! | the System node and what is below it | nobody |
//! | the city, the static ages and the first neighbourhoods | nobody their Age and AgeInfo nodes: they are the operator's |
//!
//! A player may put below a node what it holds, and any PlayerInfo and AgeInfo. It may read what it
//! holds and what its trees refer to, what is in the trees of other players of its account, every
//! PlayerInfo, and every AgeInfo with what is below it. What is in another player's tree is reached
//! by `VaultSendNode` only.
//!
//! It may enter an age that is public, that it owns, whose list CanVisit it is on, that it is in,
//! and that has no owners; the last only if the age belongs to no other one, or to one that it owns,
//! is in or may enter; any of them where the operator says so. An owner who sends an invitation puts its receiver on CanVisit, as one who
//! sends the opposite takes it off.

use std::collections::HashSet;

use worldwire_uru::types::{NetError, TermStr, Uuid};
use worldwire_uru::vault::{NodeType, VaultNode};

use super::ConnectionId;
use super::content::{AgeInfo, Entry, decode, folder};
use super::session::{Outcome, Session};
use super::steps::VaultState;

/// What a player has to be in an age.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// In it, or one of its owners.
    Present,
    /// One of its owners, and the age is no operator's.
    Owner,
}

/// How many nodes are looked at on the way up. What is in more places belongs to nobody.
const MAX_ABOVE: usize = 4_096;
/// How many ages may belong to one another in a row.
const MAX_AGES: usize = 8;
/// Types of text notes: come and visit an age; do not any more.
const VISIT: i32 = 4;
const UNVISIT: i32 = 5;

/// The lists that the server makes below a node of this type.
const fn standard_lists(kind: NodeType) -> &'static [i32] {
    match kind {
        NodeType::Player => &[
            folder::INBOX,
            folder::JOURNALS,
            folder::CHRONICLE,
            folder::OUTFIT,
            folder::CLOSET,
            folder::INVITES,
            folder::BUDDIES,
            folder::IGNORED,
            folder::KNOWN,
            folder::VISITED_AGES,
            folder::OWNED_AGES,
        ],
        NodeType::Age => &[
            folder::CHRONICLE,
            folder::KNOWN,
            folder::SUB_AGES,
            folder::DEVICES,
            folder::OWNED_AGES,
        ],
        NodeType::AgeInfo => &[folder::CAN_VISIT, folder::OWNERS, folder::CHILD_AGES],
        _ => &[],
    }
}

const fn is_root(kind: NodeType) -> bool {
    matches!(kind, NodeType::Player | NodeType::Age | NodeType::AgeInfo)
}

/// Whether a node of this kind has one place below the other, which the server fills.
fn is_standard(above: &Entry, below: &Entry) -> bool {
    match (above.kind, below.list()) {
        (NodeType::AgeInfo, None) => below.kind == NodeType::SDL,
        (kind, Some(list)) => standard_lists(kind).contains(&list),
        _ => false,
    }
}

impl VaultState {
    /// Whether a connection may read a node, and what it refers to.
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

    /// Whether a connection may put a node somewhere.
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

    /// Whether a connection may put this node below that one, or take it away.
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
        // What a tree is made of stays in it, and once.
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

    /// Whether a connection may change these fields of a node.
    ///
    /// # Errors
    /// [`NetError::VaultNodeAccessViolation`], or that the node's content is needed.
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

    /// Whether a connection may enter an age, given by its Age node.
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
            {
                return true;
            }
            let above = self.age_of_instance(facts.parent);
            let owned = self.has_owners(info);
            match above {
                Some(above) if self.is_present(session, above) => return true,
                _ if owned => return false,
                // Shared by all who know it, such as a place whose instance is part of the game.
                None => return true,
                Some(above) => age = above,
            }
        }
        false
    }

    /// Whether a connection may make an age that belongs to an instance.
    pub(crate) fn may_make_below(&self, session: &Session, parent: Uuid) -> bool {
        self.age_of_instance(parent).is_none_or(|age| self.may_enter(session, age))
    }

    /// Whether a connection may say that an age is public.
    pub(crate) fn may_publish(&self, session: &Session, info: u32, age: &AgeInfo) -> bool {
        session.is_admin() || self.may_be_public(age) && self.commands(session, info)
    }

    /// Puts the receiver of an invitation by an owner on the list of visitors, or takes it off.
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
        // Those of which the sender is an owner. Unverified: what stands around the instance.
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

    /// Whether a player is in the list of owners of an age, given by its Age or AgeInfo node.
    pub(crate) fn owns_age(&self, player: u32, age: u32) -> bool {
        self.info_of(age).is_some_and(|info| self.is_listed(player, info, folder::OWNERS))
    }

    /// Whether a player owns an age or is in it; given by its Age or AgeInfo node.
    pub(crate) fn is_present(&self, session: &Session, age: u32) -> bool {
        let node = self.graph().age_info(age).map_or(age, |info| info.age);
        session.age != 0 && session.age == node || self.owns_age(session.player, age)
    }

    /// The list of owners of an age, given by its Age or AgeInfo node.
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

    fn has_owners(&self, info: u32) -> bool {
        self.owners_list(info).is_some_and(|list| self.graph().children(list).next().is_some())
    }

    /// Whether a player is in a list of an age.
    fn is_listed(&self, player: u32, info: u32, list: i32) -> bool {
        let list = self.graph().child(info, NodeType::PlayerInfoList, Some(list));
        let own = self.graph().child(player, NodeType::PlayerInfo, None);
        list.zip(own).is_some_and(|(list, own)| self.graph().owner(list, own).is_some())
    }

    /// Whether a player owns an age that is not the operator's.
    fn commands(&self, session: &Session, age: u32) -> bool {
        self.owns_age(session.player, age) && !self.is_operators(age)
    }

    /// Whether the shard made an age by itself.
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

    /// The AgeInfo that a list is part of.
    fn age_of_list(&self, list: u32) -> Option<u32> {
        self.graph().parents(list).find(|parent| self.is_built_in(*parent, list))
    }

    /// Whether the server made a node below another one.
    fn is_built_in(&self, parent: u32, child: u32) -> bool {
        let (Some(above), Some(below)) = (self.graph().get(parent), self.graph().get(child)) else {
            return false;
        };
        is_standard(above, below)
            && self.graph().child(parent, below.kind, below.list()) == Some(child)
    }

    /// Whether a connection may put a player into the owners or visitors of an age, or take it out.
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

    /// Whether a connection holds a node; see the module.
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

    /// Whether a node is, or is below, a Player, Age or AgeInfo that fits. A link to an age and an
    /// entry in a list of players lead nowhere.
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

/// The hexadecimal digits of a text, in lower case: an instance is written with hyphens or without.
fn digits(text: &str) -> String {
    let digits = text.chars().filter(char::is_ascii_hexdigit);
    digits.map(|digit| digit.to_ascii_lowercase()).collect()
}
