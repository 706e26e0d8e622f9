//! Who may read and change which nodes. The protocol knows no such rules, and other servers have
//! few; these allow what clients do.
//!
//! * An administrator may do everything.
//! * A player may change what is in its own tree, in the tree of the age it is in, in the trees of
//!   ages it owns, and what it made and has put nowhere yet. It may put below those: such nodes,
//!   and any PlayerInfo and AgeInfo. It may add itself to a list of owners that it may change, and
//!   remove itself.
//! * It may read all of these, what is in the trees of other players of its account, every
//!   PlayerInfo, and every AgeInfo with what is below it.
//!
//! Nobody else changes the System node, players and their PlayerInfo, what says who or which age a
//! node stands for, or the lists of owners. What is in another player's tree is reached by
//! `VaultSendNode` only.

use std::collections::HashSet;

use worldwire_uru::types::NetError;
use worldwire_uru::vault::{NodeType, VaultNode};

use super::ConnectionId;
use super::content::{decode, folder};
use super::state::{Outcome, Session, State};

impl State {
    /// Whether a connection may save a node, or put nodes below it.
    pub(crate) fn may_change(&self, connection: ConnectionId, session: &Session, id: u32) -> bool {
        if session.is_admin() {
            return true;
        }
        let Some(entry) = self.graph.get(id) else { return false };
        match entry.kind {
            NodeType::System => return false,
            NodeType::Player => return id == session.player,
            NodeType::PlayerInfo => return entry.stands_for(session.player),
            _ if !self.config.strict => return true,
            _ => {}
        }
        self.interests.has(connection, id)
            || self.made_for_nowhere(session, id)
            || self.is_held(id, |state, holder| {
                state.graph.kind(holder) == Some(NodeType::Age)
                    && state.owns_age(session.player, holder)
            })
    }

    /// Whether a connection may read a node, and what it refers to.
    pub(crate) fn may_read(&self, connection: ConnectionId, session: &Session, id: u32) -> bool {
        if session.is_admin() || !self.config.strict {
            return true;
        }
        let Some(entry) = self.graph.get(id) else { return true };
        matches!(entry.kind, NodeType::PlayerInfo | NodeType::AgeInfo)
            || self.interests.has(connection, id)
            || self.interests.is_common(id)
            || session.player != 0 && entry.creator == session.player
            || self.is_held(id, |state, holder| match state.graph.kind(holder) {
                Some(NodeType::AgeInfo) => true,
                Some(NodeType::Age) => state.owns_age(session.player, holder),
                _ => state.players.account(holder) == Some(session.account),
            })
    }

    /// Whether a connection may put a node somewhere.
    pub(crate) fn may_share(&self, connection: ConnectionId, session: &Session, id: u32) -> bool {
        matches!(self.graph.kind(id), Some(NodeType::PlayerInfo | NodeType::AgeInfo))
            || self.may_change(connection, session, id)
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
        let above = self.graph.get(parent).ok_or(NetError::VaultNodeNotFound)?;
        let below = self.graph.get(child).ok_or(NetError::VaultNodeNotFound)?;
        if matches!(below.kind, NodeType::Player | NodeType::Age) {
            return Err(NetError::InvalidParameter);
        }
        if session.is_admin() {
            return Ok(());
        }
        let refused = Err(NetError::VaultNodeAccessViolation);
        // What a tree is made of stays in it.
        let standard = matches!(
            (above.kind, below.kind),
            (NodeType::Player, NodeType::PlayerInfo)
                | (NodeType::Age, NodeType::AgeInfo)
                | (_, NodeType::System)
        );
        if standard || !self.may_change(connection, session, parent) {
            return refused;
        }
        if above.list() == Some(folder::OWNERS) && above.kind == NodeType::PlayerInfoList {
            return if below.stands_for(session.player) { Ok(()) } else { refused };
        }
        if adds && !self.may_share(connection, session, child) { refused } else { Ok(()) }
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
        let session = self.playing(connection)?.clone();
        if !self.graph.contains(id) {
            return Err(NetError::VaultNodeNotFound.into());
        }
        if session.is_admin() {
            return Ok(());
        }
        if !self.may_change(connection, &session, id) {
            return Err(NetError::VaultNodeAccessViolation.into());
        }
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
            NodeType::AgeInfo => keeps!(int32_2 uint32_1 uuid_1 uuid_2 string64_2),
            NodeType::Folder | NodeType::PlayerInfoList | NodeType::AgeInfoList => {
                node.creator_id == Some(session.player) || keeps!(int32_1)
            }
            _ => true,
        };
        if keeps { Ok(()) } else { Err(NetError::VaultNodeAccessViolation.into()) }
    }

    /// Whether a player is in the list of owners of an age, given by its Age or AgeInfo node.
    pub(crate) fn owns_age(&self, player: u32, age: u32) -> bool {
        let owners = self.owners_list(age);
        let info = self.graph.child(player, NodeType::PlayerInfo, None);
        owners.zip(info).is_some_and(|(list, info)| self.graph.owner(list, info).is_some())
    }

    /// The list of owners of an age, given by its Age or AgeInfo node.
    pub(crate) fn owners_list(&self, age: u32) -> Option<u32> {
        let info = match self.graph.kind(age)? {
            NodeType::Age => self.graph.child(age, NodeType::AgeInfo, None)?,
            _ => age,
        };
        self.graph.child(info, NodeType::PlayerInfoList, Some(folder::OWNERS))
    }

    /// Whether a player made a node that is in no tree yet, with all that is above it.
    fn made_for_nowhere(&self, session: &Session, id: u32) -> bool {
        let mut met = HashSet::from([id]);
        let mut waiting = vec![id];
        while let Some(node) = waiting.pop() {
            let made = self.graph.get(node).is_some_and(|entry| entry.creator == session.player);
            if !made || session.player == 0 {
                return false;
            }
            waiting.extend(self.graph.parents(node).filter(|parent| met.insert(*parent)));
        }
        true
    }

    /// Whether a node is, or is below, a Player, Age or AgeInfo that fits. A link to an age and an
    /// entry in a list of players make nobody a holder.
    fn is_held(&self, id: u32, fits: impl Fn(&Self, u32) -> bool) -> bool {
        let mut met = HashSet::from([id]);
        let mut waiting = vec![id];
        while let Some(node) = waiting.pop() {
            let kind = self.graph.kind(node);
            if matches!(kind, Some(NodeType::Player | NodeType::Age | NodeType::AgeInfo))
                && fits(self, node)
            {
                return true;
            }
            for parent in self.graph.parents(node) {
                let above = self.graph.kind(parent);
                let holds = match kind {
                    Some(NodeType::AgeInfo) => above == Some(NodeType::Age),
                    Some(NodeType::PlayerInfo) => above == Some(NodeType::Player),
                    _ => true,
                };
                if holds && met.insert(parent) {
                    waiting.push(parent);
                }
            }
        }
        false
    }
}
