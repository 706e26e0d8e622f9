//! Requests on the vault and on ages.

use std::net::Ipv4Addr;

use worldwire_core::Field as _;
use worldwire_uru::message::auth::client::{
    AgeRequest, ClientMessage, GetPublicAgeList, SetAgePublic, VaultFetchNodeRefs,
    VaultInitAgeRequest, VaultNodeAdd, VaultNodeCreate, VaultNodeFetch, VaultNodeFind,
    VaultNodeRemove, VaultNodeSave, VaultSendNode,
};
use worldwire_uru::message::{NetAgeInfo, NodeRef};
use worldwire_uru::types::{Nested, Uuid};
use worldwire_uru::vault::VaultNode;

use super::auth::{check, owned};
use super::link::Transaction;
use super::reply::reply;
use super::{Auth, ClientError, Result};

/// An age that is about to exist, for [`Auth::init_age`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewAge<'a> {
    /// The instance; zero lets the server choose one.
    pub instance: Uuid,
    /// The instance it belongs to; zero is none.
    pub parent: Uuid,
    /// The age's name in files.
    pub filename: &'a str,
    /// The instance's name.
    pub instance_name: &'a str,
    /// The name its owner gives it.
    pub user_name: &'a str,
    /// Its description.
    pub description: &'a str,
    /// Its number among its like; negative lets the server choose.
    pub sequence_number: i32,
    /// Its language; clients send -1.
    pub language: i32,
}

impl<'a> NewAge<'a> {
    /// An instance of an age, with nothing else said.
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

/// Where an age is hosted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Age {
    /// The host of the age on the game server; a join names it.
    pub mcp_id: u32,
    /// The instance.
    pub instance: Uuid,
    /// The Age node; 0 for an age without a vault.
    pub node_id: u32,
    /// The game server; the port is the one of the shard.
    pub game_server: Ipv4Addr,
}

impl Auth {
    /// Makes a node that is nowhere yet. Returns its number.
    ///
    /// # Errors
    /// A refusal: `BadServerData`, `InvalidParameter`.
    pub async fn create_node(&self, node: &VaultNode<'static>) -> Result<u32> {
        let node = encoded("VaultNodeCreate", node)?;
        let request = |trans_id| ClientMessage::from(VaultNodeCreate { trans_id, node });
        let (request, reply) = self.link().granted(request).await?;
        Ok(reply!(request, reply, AuthServer, auth::VaultNodeCreated)?.node_id)
    }

    /// Fetches a node.
    ///
    /// # Errors
    /// A refusal: `VaultNodeNotFound`. Malformed, when the node cannot be read.
    pub async fn fetch_node(&self, node_id: u32) -> Result<VaultNode<'static>> {
        fetched(self.begin_fetch(node_id).await?).await
    }

    /// Sends the request for a node; [`fetched`] takes its reply.
    pub(super) async fn begin_fetch(&self, node_id: u32) -> Result<Transaction> {
        self.link()
            .begin(|trans_id| ClientMessage::from(VaultNodeFetch { trans_id, node_id }))
            .await
    }

    /// Saves the fields of a node that are set; others stay as they are. The revision comes back
    /// in the notification, to this client, too.
    ///
    /// # Errors
    /// A refusal: `VaultNodeNotFound`, `VaultNodeAccessViolation`.
    pub async fn save_node(
        &self,
        node_id: u32,
        revision_id: Uuid,
        fields: &VaultNode<'static>,
    ) -> Result<()> {
        let node = encoded("VaultNodeSave", fields)?;
        self.done(|trans_id| VaultNodeSave { trans_id, node_id, revision_id, node }).await
    }

    /// Puts a node below another one.
    ///
    /// # Errors
    /// A refusal: `VaultNodeNotFound`, `VaultNodeAccessViolation`, `CircularReference`.
    pub async fn add_node(&self, parent_id: u32, child_id: u32, owner_id: u32) -> Result<()> {
        self.done(|trans_id| VaultNodeAdd { trans_id, parent_id, child_id, owner_id }).await
    }

    /// Takes a node away from below another one.
    ///
    /// # Errors
    /// A refusal: `VaultNodeNotFound`, `VaultNodeAccessViolation`.
    pub async fn remove_node(&self, parent_id: u32, child_id: u32) -> Result<()> {
        self.done(|trans_id| VaultNodeRemove { trans_id, parent_id, child_id }).await
    }

    /// Every reference that can be reached from a node.
    ///
    /// # Errors
    /// A refusal: `VaultNodeNotFound`.
    pub async fn fetch_refs(&self, node_id: u32) -> Result<Vec<NodeRef>> {
        let request = |trans_id| ClientMessage::from(VaultFetchNodeRefs { trans_id, node_id });
        let (request, reply) = self.link().granted(request).await?;
        Ok(reply!(request, reply, AuthServer, auth::VaultNodeRefsFetched)?.refs.0)
    }

    /// The nodes whose fields are those of the template, as far as it has any.
    ///
    /// # Errors
    /// A refusal: `InvalidParameter` for an empty template.
    pub async fn find_nodes(&self, template: &VaultNode<'static>) -> Result<Vec<u32>> {
        let node = encoded("VaultNodeFind", template)?;
        let request = |trans_id| ClientMessage::from(VaultNodeFind { trans_id, node });
        let (request, reply) = self.link().granted(request).await?;
        Ok(reply!(request, reply, AuthServer, auth::VaultNodeFindReply)?.node_ids.0)
    }

    /// Puts a node into a player's inbox. There is no reply.
    ///
    /// # Errors
    /// When the connection is over.
    pub async fn send_node(&self, node_id: u32, receiver_id: u32) -> Result<()> {
        self.link().say(ClientMessage::from(VaultSendNode { node_id, receiver_id })).await
    }

    /// Finds or makes the nodes of an age instance: the Age node and its AgeInfo node.
    ///
    /// # Errors
    /// A refusal: `InvalidParameter` without a filename.
    pub async fn init_age(&self, age: &NewAge<'_>) -> Result<(u32, u32)> {
        let request = |trans_id| {
            owned(VaultInitAgeRequest {
                trans_id,
                age_instance_id: age.instance,
                parent_age_instance_id: age.parent,
                age_filename: age.filename.into(),
                age_instance_name: age.instance_name.into(),
                age_user_name: age.user_name.into(),
                age_description: age.description.into(),
                age_sequence_number: age.sequence_number,
                age_language: age.language,
            })
        };
        let (request, reply) = self.link().granted(request).await?;
        let reply = reply!(request, reply, AuthServer, auth::VaultInitAgeReply)?;
        Ok((reply.age_node_id, reply.age_info_node_id))
    }

    /// Asks for the game server of an age instance. As with every client, `VaultNodeNotFound`
    /// counts as success.
    ///
    /// # Errors
    /// A refusal: `AgeNotFound`.
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

    /// The public instances of an age.
    ///
    /// # Errors
    /// A refusal, or no answer.
    pub async fn public_ages(&self, filename: &str) -> Result<Vec<NetAgeInfo<'static>>> {
        let request =
            |trans_id| owned(GetPublicAgeList { trans_id, age_filename: filename.into() });
        let (request, reply) = self.link().granted(request).await?;
        Ok(reply!(request, reply, AuthServer, auth::PublicAgeList)?.ages.0)
    }

    /// Makes an age public or not, by its AgeInfo node. There is no reply but the notification.
    ///
    /// # Errors
    /// When the connection is over.
    pub async fn set_age_public(&self, age_info_id: u32, public: bool) -> Result<()> {
        let public_ = u8::from(public);
        self.link().say(ClientMessage::from(SetAgePublic { age_info_id, public_ })).await
    }
}

/// Takes the reply to [`Auth::begin_fetch`].
pub(super) async fn fetched(mut transaction: Transaction) -> Result<VaultNode<'static>> {
    let request = transaction.request();
    let reply = transaction.granted().await?;
    let reply = reply!(request, reply, AuthServer, auth::VaultNodeFetched)?;
    let node = reply.node.decode::<VaultNode<'_>>();
    let node =
        node.map_err(|error| ClientError::Malformed { request, error: error.into() })?.into_owned();
    Ok(node)
}

fn encoded<const MAX: usize>(
    request: &'static str,
    node: &VaultNode<'static>,
) -> Result<Nested<'static, VaultNode<'static>, MAX>> {
    Nested::encode_from(node).map_err(|error| ClientError::NotSent { request, error: error.into() })
}
