//! Requests to the vault and for ages.

use std::net::Ipv4Addr;

use worldwire_core::Field as _;
use worldwire_uru::message::auth::client::{
    AgeRequest, ClientMessage, SetAgePublic, VaultNodeAdd, VaultNodeFetch, VaultNodeRemove,
    VaultNodeSave, VaultSendNode,
};
use worldwire_uru::message::{NetAgeInfo, NodeRef};
use worldwire_uru::types::{Nested, Uuid};
use worldwire_uru::vault::VaultNode;

use super::auth::{check, owned};
use super::link::Transaction;
use super::reply::{ask, reply};
use super::{Auth, ClientError, Result};

/// The parameters of [`Auth::init_age`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewAge<'a> {
    /// The instance; zero lets the server choose.
    pub instance: Uuid,
    /// The parent instance; zero for none.
    pub parent: Uuid,
    /// The age's file name.
    pub filename: &'a str,
    /// The instance's name.
    pub instance_name: &'a str,
    /// The name that the owner gave to the instance.
    pub user_name: &'a str,
    /// The description.
    pub description: &'a str,
    /// The sequence number among instances of the age; negative lets the server choose.
    pub sequence_number: i32,
    /// The language; clients send -1.
    pub language: i32,
}

impl<'a> NewAge<'a> {
    /// An instance of an age, with defaults for everything else.
    #[must_use]
    pub fn new(filename: &'a str, instance: Uuid) -> Self {
        Self {
            instance,
            parent: Uuid::ZERO,
            filename,
            instance_name: "",
            user_name: "",
            description: "",
            sequence_number: 0,
            language: -1,
        }
    }
}

/// Where to find a running age instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Age {
    /// The number of the age's host on the game server, needed to join.
    pub mcp_id: u32,
    /// The instance.
    pub instance: Uuid,
    /// The Age node; 0 for an age without a vault.
    pub node_id: u32,
    /// The game server's address. Use the shard's port.
    pub game_server: Ipv4Addr,
}

impl Auth {
    /// Creates an unconnected node and returns its number. Refusals include `BadServerData` and
    /// `InvalidParameter`.
    pub async fn create_node(&self, node: &VaultNode<'static>) -> Result<u32> {
        let node = encoded("VaultNodeCreate", node)?;
        Ok(ask!(self.link(), auth::VaultNodeCreate { node } => VaultNodeCreated)?.node_id)
    }

    /// Fetches a node. Refusals include `VaultNodeNotFound`. An unreadable node is
    /// [`Malformed`](ClientError::Malformed).
    pub async fn fetch_node(&self, node_id: u32) -> Result<VaultNode<'static>> {
        fetched(self.begin_fetch(node_id).await?).await
    }

    /// Sends the request for a node; [`fetched`] waits for the reply.
    pub(super) async fn begin_fetch(&self, node_id: u32) -> Result<Transaction> {
        self.link()
            .begin(|trans_id| ClientMessage::from(VaultNodeFetch { trans_id, node_id }))
            .await
    }

    /// Saves the fields that are set; the others keep their values. The server notifies all
    /// interested clients, including this one, of the change and of its revision. Refusals include
    /// `VaultNodeNotFound` and `VaultNodeAccessViolation`.
    pub async fn save_node(
        &self,
        node_id: u32,
        revision_id: Uuid,
        fields: &VaultNode<'static>,
    ) -> Result<()> {
        let node = encoded("VaultNodeSave", fields)?;
        self.done(|trans_id| VaultNodeSave { trans_id, node_id, revision_id, node }).await
    }

    /// Puts a node below another node. Refusals include `VaultNodeNotFound`,
    /// `VaultNodeAccessViolation` and `CircularReference`.
    pub async fn add_node(&self, parent_id: u32, child_id: u32, owner_id: u32) -> Result<()> {
        self.done(|trans_id| VaultNodeAdd { trans_id, parent_id, child_id, owner_id }).await
    }

    /// Removes a node from below another node. Refusals include `VaultNodeNotFound` and
    /// `VaultNodeAccessViolation`.
    pub async fn remove_node(&self, parent_id: u32, child_id: u32) -> Result<()> {
        self.done(|trans_id| VaultNodeRemove { trans_id, parent_id, child_id }).await
    }

    /// Fetches all references reachable from a node. Refusals include `VaultNodeNotFound`.
    pub async fn fetch_refs(&self, node_id: u32) -> Result<Vec<NodeRef>> {
        Ok(ask!(self.link(), auth::VaultFetchNodeRefs { node_id } => VaultNodeRefsFetched)?.refs.0)
    }

    /// Finds the nodes that match all fields set in the template. Refusals include
    /// `InvalidParameter` for an empty template.
    pub async fn find_nodes(&self, template: &VaultNode<'static>) -> Result<Vec<u32>> {
        let node = encoded("VaultNodeFind", template)?;
        Ok(ask!(self.link(), auth::VaultNodeFind { node } => VaultNodeFindReply)?.node_ids.0)
    }

    /// Puts a node into a player's inbox. The server does not reply.
    pub async fn send_node(&self, node_id: u32, receiver_id: u32) -> Result<()> {
        self.link().send(ClientMessage::from(VaultSendNode { node_id, receiver_id })).await
    }

    /// Finds or creates the Age and AgeInfo nodes of an age instance. Refusals include
    /// `InvalidParameter` for an empty file name.
    pub async fn init_age(&self, age: &NewAge<'_>) -> Result<(u32, u32)> {
        let reply = ask!(self.link(), auth::VaultInitAgeRequest {
            age_instance_id: age.instance,
            parent_age_instance_id: age.parent,
            age_filename: age.filename.into(),
            age_instance_name: age.instance_name.into(),
            age_user_name: age.user_name.into(),
            age_description: age.description.into(),
            age_sequence_number: age.sequence_number,
            age_language: age.language,
        } => VaultInitAgeReply)?;
        Ok((reply.age_node_id, reply.age_info_node_id))
    }

    /// Asks for the game server of an age instance. Treats `VaultNodeNotFound` as success, as all
    /// clients do. Refusals include `AgeNotFound`.
    pub async fn age(&self, filename: &str, instance: Uuid) -> Result<Age> {
        let request = |trans_id| {
            owned(AgeRequest { trans_id, age_name: filename.into(), age_instance_id: instance })
        };
        let mut transaction = self.link().begin(request).await?;
        let request = transaction.request();
        let reply = reply!(request, transaction.next().await?, AuthServer, auth::AgeReply)?;
        check(request, reply.result)?;
        Ok(Age {
            mcp_id: reply.age_mcp_id,
            instance: reply.age_instance_id,
            node_id: reply.age_node_id,
            game_server: reply.game_server_address.0,
        })
    }

    /// Lists the public instances of an age.
    pub async fn public_ages(&self, filename: &str) -> Result<Vec<NetAgeInfo<'static>>> {
        let reply = ask!(self.link(), auth::GetPublicAgeList {
            age_filename: filename.into()
        } => PublicAgeList)?;
        Ok(reply.ages.0)
    }

    /// Makes an age public or private, given its AgeInfo node. The server sends a notification but
    /// no reply.
    pub async fn set_age_public(&self, age_info_id: u32, public: bool) -> Result<()> {
        let public_ = u8::from(public);
        self.link().send(ClientMessage::from(SetAgePublic { age_info_id, public_ })).await
    }
}

/// Waits for the reply to [`Auth::begin_fetch`].
pub(super) async fn fetched(mut transaction: Transaction) -> Result<VaultNode<'static>> {
    let request = transaction.request();
    let reply = transaction.granted().await?;
    let reply = reply!(request, reply, AuthServer, auth::VaultNodeFetched)?;
    let node = reply.node.decode::<VaultNode<'_>>();
    Ok(node.map_err(ClientError::malformed(request))?.into_owned())
}

fn encoded<const MAX: usize>(
    request: &'static str,
    node: &VaultNode<'static>,
) -> Result<Nested<'static, VaultNode<'static>, MAX>> {
    Nested::encode_from(node).map_err(|error| ClientError::NotSent { request, error: error.into() })
}
