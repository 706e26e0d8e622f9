//! Clients' requests about nodes.

use worldwire_uru::message::NodeRef;
use worldwire_uru::types::{NetError, Uuid};
use worldwire_uru::vault::{NodeType, VaultNode};

use super::ConnectionId;
use super::content::{Content, decode, encode, folder, has_inner_zero};
use super::session::Outcome;
use super::steps::VaultState;

/// The maximum number of nodes that a search returns.
pub const MAX_FOUND: usize = 512;
/// The maximum number of nodes that a search examines.
const MAX_LOOKED_AT: usize = 4_096;
/// The maximum number of references in a reply.
const MAX_REFS: usize = 1_048_576;

impl VaultState {
    /// `VaultNodeCreate`: creates a node. Types that only the server creates are refused.
    pub(crate) fn create(&mut self, connection: ConnectionId, node: &[u8]) -> Outcome<u32> {
        let session = self.playing(connection)?.clone();
        let mut node = decode(node)?;
        let kind = node.node_type.ok_or(NetError::BadServerData)?;
        if kind.name().is_none() {
            return Err(NetError::InvalidParameter.into());
        }
        let made_here = matches!(
            kind,
            NodeType::Player
                | NodeType::Age
                | NodeType::System
                | NodeType::PlayerInfo
                | NodeType::AgeInfo
        );
        if made_here && !session.is_admin() {
            return Err(NetError::VaultNodeAccessViolation.into());
        }
        self.check_texts(&node)?;
        if !session.is_admin() {
            self.check_room(session.player, 1)?;
        }
        node.creator_acct = Some(session.account);
        node.creator_id = Some(session.player);
        self.make_node(node)
    }

    /// `VaultNodeFetch`: an encoded node. Other players' account IDs are shown only to
    /// administrators, because an account ID and a player number are all that is needed to join an
    /// age.
    pub(crate) fn fetch(&mut self, connection: ConnectionId, id: u32) -> Outcome<Content> {
        let session = self.logged_in(connection)?;
        if !self.may_read(connection, session, id) {
            return Err(NetError::VaultNodeAccessViolation.into());
        }
        let (account, is_admin) = (session.account, session.is_admin());
        let content = self.content(id)?;
        let Some(entry) = self.graph().get(id) else { return Ok(content) };
        if is_admin || self.players().account(entry.creator) == Some(account) {
            return Ok(content);
        }
        let mut node = decode(&content)?;
        let mut ids = vec![&mut node.creator_acct];
        if entry.kind == NodeType::Player {
            ids.push(&mut node.uuid_1);
        }
        ids.retain(|id| id.is_some_and(|it| it != account && self.accounts().get(it).is_some()));
        if ids.is_empty() {
            return Ok(content);
        }
        ids.into_iter().for_each(|id| *id = Some(Uuid::ZERO));
        Ok(encode(&node)?)
    }

    /// `VaultNodeSave`: replaces the given fields.
    pub(crate) fn save(
        &mut self,
        connection: ConnectionId,
        id: u32,
        revision: Uuid,
        node: &[u8],
    ) -> Outcome<()> {
        let change = decode(node)?;
        self.check_texts(&change)?;
        self.check_save(connection, id, &change)?;
        self.change_node(id, Some(revision), without_fixed(change))
    }

    /// `VaultNodeAdd`: adds a reference.
    pub(crate) fn add(
        &mut self,
        connection: ConnectionId,
        parent: u32,
        child: u32,
        owner: u32,
    ) -> Outcome<()> {
        self.check_ref(connection, parent, child, true)?;
        let session = self.playing(connection)?;
        // Players cannot add references in the name of others, not even of future players.
        let own = owner == 0 || owner == session.player;
        let another = self.graph().kind(owner).is_none_or(|kind| kind == NodeType::Player);
        if !own && another && !session.is_admin() {
            return Err(NetError::VaultNodeAccessViolation.into());
        }
        self.link_below(parent, child, owner)
    }

    /// `VaultNodeRemove`: removes a reference.
    pub(crate) fn remove(
        &mut self,
        connection: ConnectionId,
        parent: u32,
        child: u32,
    ) -> Outcome<()> {
        self.check_ref(connection, parent, child, false)?;
        self.unlink(parent, child);
        Ok(())
    }

    /// `VaultFetchNodeRefs`: all references that can be reached from a node.
    pub(crate) fn refs(&self, connection: ConnectionId, id: u32) -> Outcome<Vec<NodeRef>> {
        let session = self.playing(connection)?;
        if !self.graph().contains(id) {
            return Err(NetError::VaultNodeNotFound.into());
        }
        if !self.may_read(connection, session, id) {
            return Err(NetError::VaultNodeAccessViolation.into());
        }
        let refs = self.graph().reachable(id);
        if refs.len() > MAX_REFS { Err(NetError::InternalError.into()) } else { Ok(refs) }
    }

    /// `VaultNodeFind`: the readable nodes with all fields of a template.
    pub(crate) fn find(&self, connection: ConnectionId, template: &[u8]) -> Outcome<Vec<u32>> {
        let session = self.logged_in(connection)?;
        let template = decode(template)?;
        if template.mask() == 0 || template.node_type.is_none() && !session.is_admin() {
            return Err(NetError::InvalidParameter.into());
        }
        let found = self.graph().find(&template, MAX_LOOKED_AT).into_iter();
        Ok(found.filter(|id| self.may_read(connection, session, *id)).take(MAX_FOUND).collect())
    }

    /// `VaultSendNode`: puts a node into another player's inbox, unless the inbox is full. An
    /// invitation also lets the receiver into the age.
    pub(crate) fn send(
        &mut self,
        connection: ConnectionId,
        node: u32,
        receiver: u32,
    ) -> Outcome<()> {
        let session = self.playing(connection)?.clone();
        let kind = self.graph().kind(node).ok_or(NetError::VaultNodeNotFound)?;
        if matches!(kind, NodeType::Player | NodeType::Age | NodeType::System) {
            return Err(NetError::InvalidParameter.into());
        }
        if !self.may_share(&session, node) {
            return Err(NetError::VaultNodeAccessViolation.into());
        }
        if !self.players().contains(receiver) {
            return Err(NetError::PlayerNotFound.into());
        }
        let inbox = self.graph().child(receiver, NodeType::Folder, Some(folder::INBOX));
        let inbox = inbox.ok_or(NetError::VaultNodeNotFound)?;
        let most = self.config().max_in_inbox;
        let is_new = self.graph().owner(inbox, node).is_none();
        if is_new
            && !session.is_admin()
            && most != 0
            && self.graph().children(inbox).take(most).count() == most
        {
            return Err(NetError::InvalidParameter.into());
        }
        self.link_below(inbox, node, session.player)?;
        self.invite(&session, node, receiver)
    }

    /// Adds a reference, unless that would close a cycle.
    pub(crate) fn link_below(&mut self, parent: u32, child: u32, owner: u32) -> Outcome<()> {
        if self.graph().owner(parent, child).is_none() && self.graph().closes_cycle(parent, child) {
            return Err(NetError::CircularReference.into());
        }
        self.link(parent, child, owner);
        Ok(())
    }

    /// Checks that a player may create this many more nodes. Nodes that belong to no tree have a
    /// separate limit, because clients create nodes before they place them. Fails with
    /// [`NetError::VaultNodeAccessViolation`].
    pub(crate) fn check_room(&self, player: u32, more: usize) -> Result<(), NetError> {
        let most = self.config().max_nodes;
        let placed = self.interests().placed_by(player);
        let loose = self.graph().made_by(player).saturating_sub(placed);
        let built = self.built(player);
        if most == 0 || placed + built + more <= most && loose + more <= most {
            Ok(())
        } else {
            Err(NetError::VaultNodeAccessViolation)
        }
    }

    /// Refuses texts that are too long, and those with inner zeros, which clients display in
    /// different ways.
    pub(crate) fn check_texts(&self, node: &VaultNode<'_>) -> Result<(), NetError> {
        let short = node.check_lengths(self.config().max_text).is_ok();
        if short && !has_inner_zero(node) { Ok(()) } else { Err(NetError::InvalidParameter) }
    }
}

/// A change without the fields that are fixed at creation.
pub(crate) fn without_fixed(change: VaultNode<'_>) -> VaultNode<'_> {
    VaultNode {
        node_id: None,
        create_time: None,
        modify_time: None,
        creator_acct: None,
        creator_id: None,
        node_type: None,
        ..change
    }
}
