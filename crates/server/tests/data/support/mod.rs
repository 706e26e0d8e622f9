//! Code that the tests with databases share.

pub(crate) mod child;
mod database;
mod gate;
mod memory;
mod positions;
pub(crate) mod processes;

use std::sync::Arc;

pub(crate) use database::Database;
pub(crate) use memory::{Fault, Memory, Moment};
use worldwire_core::{Field as _, Reader, Writer};
use worldwire_server::store::seal::ServerKey;
use worldwire_server::store::{self, Store};
use worldwire_server::uru::SQLITE_FILE;
use worldwire_server::uru::vault::{Connection, Login, Notice, Notices, Vault, VaultConfig};
use worldwire_uru::crypt::login::login_fields;
use worldwire_uru::message::AccountFlags;
use worldwire_uru::types::TermStr;
use worldwire_uru::vault::{NodeType, VaultNode};

impl Database {
    pub(crate) async fn store(&self) -> Arc<dyn Store> {
        store::open(self.folder.path().join(SQLITE_FILE), self.url.as_deref()).await.unwrap()
    }

    pub(crate) async fn vault(&self) -> Vault {
        self.vault_with(VaultConfig::default()).await
    }

    pub(crate) async fn vault_with(&self, config: VaultConfig) -> Vault {
        Vault::open(self.store().await, key(), config).await.unwrap()
    }
}

pub(crate) fn key() -> ServerKey {
    ServerKey::from_bytes(&[7; 32])
}

/// Connects and logs in. The password is the account's name.
pub(crate) async fn log_in(vault: &Vault, name: &str) -> (Connection, Notices) {
    // The account may already exist.
    let _ = vault.add_account(name, name, AccountFlags::User).await;
    let (connection, notices) = vault.connect().await.unwrap();
    connection.log_in(login(name, name)).await.unwrap();
    (connection, notices)
}

/// Connects and plays as a player with the account's name.
pub(crate) async fn play(vault: &Vault, name: &str) -> (Connection, Notices, u32) {
    let (connection, notices) = log_in(vault, name).await;
    let player = connection.create_player(name.to_owned(), "male".to_owned()).await.unwrap().id;
    connection.set_player(player).await.unwrap();
    (connection, notices, player)
}

pub(crate) fn login(name: &str, password: &str) -> Login {
    let fields = login_fields(name, password, 5, 6);
    Login {
        name: name.to_owned(),
        client_challenge: fields.client_challenge,
        server_challenge: 6,
        proof: fields.challenge_hash,
        address: None,
    }
}

pub(crate) fn encoded(node: &VaultNode<'_>) -> Vec<u8> {
    let mut writer = Writer::new();
    node.encode(&mut writer).unwrap();
    writer.into_bytes()
}

pub(crate) fn all(notices: &mut Notices) -> Vec<Notice> {
    std::iter::from_fn(|| notices.due()).collect()
}

pub(crate) async fn read(connection: &Connection, id: u32) -> VaultNode<'static> {
    let bytes = connection.fetch(id).await.unwrap();
    VaultNode::decode(&mut Reader::new(&bytes), "node").unwrap().into_owned()
}

/// The child of a node with this type, and with this kind if it is a list.
pub(crate) async fn child(
    connection: &Connection,
    parent: u32,
    kind: NodeType,
    list: Option<i32>,
) -> u32 {
    for reference in connection.refs(parent).await.unwrap() {
        if reference.parent_id == parent {
            let node = read(connection, reference.child_id).await;
            if node.node_type == Some(kind) && list.is_none_or(|list| node.int32_1 == Some(list)) {
                return reference.child_id;
            }
        }
    }
    panic!("node {parent} has no child of {kind:?} {list:?}");
}

pub(crate) fn note(title: &str) -> Vec<u8> {
    encoded(&VaultNode {
        node_type: Some(NodeType::TextNote),
        string64_1: Some(TermStr::from(title)),
        ..VaultNode::default()
    })
}

pub(crate) fn titled(title: &str) -> Vec<u8> {
    encoded(&VaultNode { string64_1: Some(TermStr::from(title)), ..VaultNode::default() })
}

pub(crate) fn text(field: &Option<TermStr<'_>>) -> String {
    field.as_ref().map(TermStr::to_text).unwrap_or_default()
}
