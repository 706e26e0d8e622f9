//! A client of the auth service.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::net::TcpStream;
use worldwire_core::Field as _;
use worldwire_net::tcp;
use worldwire_uru::connect::{ConnectData, TokenData};
use worldwire_uru::connection::ClientConfig;
use worldwire_uru::crypt::key::ServerKind;
use worldwire_uru::crypt::login::login_fields;
use worldwire_uru::file::keys::KeyRing;
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::message::NodeRef;
use worldwire_uru::message::auth::client as ask;
use worldwire_uru::message::auth::client::ClientMessage as Ask;
use worldwire_uru::message::auth::server::{AcctLoginReply, ServerMessage as Reply};
use worldwire_uru::types::{Nested, NetError, TransId, Uuid};
use worldwire_uru::vault::{NodeType, VaultNode};

use crate::client::{Client, Heard, PATIENCE, Running};

pub(crate) const ANN: (&str, &str) = crate::client::ACCOUNTS[0];
pub(crate) const BOB: (&str, &str) = crate::client::ACCOUNTS[1];

/// A client on an auth connection.
pub(crate) struct Player {
    pub(crate) client: Client,
    transaction: AtomicU32,
    /// The token for reconnecting.
    pub(crate) token: Uuid,
}

macro_rules! reply {
    ($heard:expr, $Name:ident) => {{
        use worldwire_uru::frame::Message;
        use worldwire_uru::message::auth::server::ServerMessage;
        match $heard.message() {
            Message::AuthServer(ServerMessage::$Name(reply)) => reply,
            other => panic!("expected {}, found {other:?}", stringify!($Name)),
        }
    }};
}

/// Sends a request whose reply contains only a result, and returns that result.
macro_rules! result {
    ($player:expr, $Ask:ident { $($field:ident: $value:expr),* }, $Reply:ident) => {{
        let trans_id = $player.next();
        let request =
            worldwire_uru::message::auth::client::$Ask { trans_id, $($field: $value),* };
        let heard = $player.ask(request).await;
        let reply = $crate::player::reply!(heard, $Reply);
        assert_eq!(reply.trans_id, trans_id);
        reply.result
    }};
}

impl Player {
    pub(crate) async fn connect(shard: &Running) -> Self {
        Self::connect_to(shard.address, &shard.keys).await
    }

    /// Connects to a shard with these keys.
    pub(crate) async fn connect_to(address: SocketAddr, keys: &KeyRing) -> Self {
        let stream = tcp::dial(address, PATIENCE).await.unwrap();
        Self::connect_with(stream, keys, Uuid::ZERO).await
    }

    /// Connects with the token of a lost connection.
    pub(crate) async fn connect_over(stream: TcpStream, shard: &Running, token: Uuid) -> Self {
        Self::connect_with(stream, &shard.keys, token).await
    }

    pub(crate) async fn connect_with(stream: TcpStream, keys: &KeyRing, token: Uuid) -> Self {
        let key = keys.public(ServerKind::Auth).cloned();
        let mut config = ClientConfig::new(Service::Auth, key);
        config.connect.data = ConnectData::Auth(TokenData { token });
        let client = Client::connect_over(stream, config).await;
        Self { client, transaction: AtomicU32::new(0), token: Uuid::ZERO }
    }

    pub(crate) fn next(&self) -> TransId {
        TransId(self.transaction.fetch_add(1, Ordering::Relaxed) + 1)
    }

    pub(crate) async fn say(&self, message: impl Into<Ask<'static>>) {
        self.client.say(message.into()).await;
    }

    pub(crate) async fn hear(&mut self) -> Heard {
        self.client.hear().await.unwrap()
    }

    pub(crate) async fn ask(&mut self, message: impl Into<Ask<'static>>) -> Heard {
        self.say(message).await;
        self.hear().await
    }

    /// Registers. Returns false if the server closes the connection.
    pub(crate) async fn try_to_register(&mut self) -> bool {
        self.client.shout(Ask::from(ask::ClientRegisterRequest { build_id: 918 })).await;
        while let Some(heard) = self.client.hear().await {
            if let Message::AuthServer(Reply::ServerAddr(told)) = heard.message() {
                self.token = told.token;
                return true;
            }
        }
        false
    }

    /// Registers and returns the server's challenge.
    pub(crate) async fn register(&mut self) -> u32 {
        let heard = self.ask(ask::ClientRegisterRequest { build_id: 918 }).await;
        let challenge = reply!(heard, ClientRegisterReply).server_challenge;
        reply!(self.hear().await, ServerCaps);
        let heard = self.hear().await;
        let told = reply!(heard, ServerAddr);
        assert_eq!(told.server_address.0, Ipv4Addr::LOCALHOST);
        self.token = told.token;
        challenge
    }

    /// Registers and logs in. Returns the account's players and the reply.
    pub(crate) async fn log_in(
        &mut self,
        name: &str,
        password: &str,
    ) -> (Vec<(u32, String)>, AcctLoginReply) {
        let challenge = self.register().await;
        let fields = login_fields(name, password, 1234, challenge);
        let request = ask::AcctLoginRequest {
            trans_id: self.next(),
            client_challenge: fields.client_challenge,
            account_name: name.into(),
            challenge_hash: fields.challenge_hash,
            auth_token: "".into(),
            os: "win".into(),
        };
        self.say(request).await;
        let mut players = Vec::new();
        loop {
            match self.hear().await.message() {
                Message::AuthServer(Reply::AcctPlayerInfo(info)) => {
                    players.push((info.player_id, info.player_name.to_text()));
                }
                Message::AuthServer(Reply::AcctLoginReply(reply)) => return (players, reply),
                // The previous player goes offline.
                Message::AuthServer(Reply::VaultNodeChanged(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    pub(crate) async fn create(&mut self, name: &str, shape: &str) -> Result<u32, NetError> {
        let request = ask::PlayerCreateRequest {
            trans_id: self.next(),
            player_name: name.into(),
            avatar_shape: shape.into(),
            friend_invite: "".into(),
        };
        let heard = self.ask(request).await;
        let reply = reply!(heard, PlayerCreateReply);
        match reply.result {
            NetError::Success => Ok(reply.player_id),
            error => Err(error),
        }
    }

    pub(crate) async fn choose(&mut self, player_id: u32) -> NetError {
        self.say(ask::AcctSetPlayerRequest { trans_id: self.next(), player_id }).await;
        loop {
            // The player's own client is notified, too.
            match self.hear().await.message() {
                Message::AuthServer(Reply::AcctSetPlayerReply(reply)) => return reply.result,
                Message::AuthServer(Reply::VaultNodeChanged(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Logs in and chooses a new player.
    pub(crate) async fn enter(shard: &Running, account: (&str, &str), name: &str) -> (Self, u32) {
        let mut player = Self::connect(shard).await;
        let (_, reply) = player.log_in(account.0, account.1).await;
        assert_eq!(reply.result, NetError::Success);
        let id = player.create(name, "female").await.unwrap();
        assert_eq!(player.choose(id).await, NetError::Success);
        (player, id)
    }

    pub(crate) async fn refs(&mut self, node_id: u32) -> Vec<NodeRef> {
        let heard = self.ask(ask::VaultFetchNodeRefs { trans_id: self.next(), node_id }).await;
        let reply = reply!(heard, VaultNodeRefsFetched);
        assert_eq!(reply.result, NetError::Success);
        reply.refs.0
    }

    pub(crate) async fn fetch(&mut self, node_id: u32) -> Result<VaultNode<'static>, NetError> {
        let heard = self.ask(ask::VaultNodeFetch { trans_id: self.next(), node_id }).await;
        let reply = reply!(heard, VaultNodeFetched);
        match reply.result {
            NetError::Success => Ok(reply.node.decode::<VaultNode<'_>>().unwrap().into_owned()),
            error => Err(error),
        }
    }

    /// The list of this kind below a player.
    pub(crate) async fn below(&mut self, root: u32, kind: NodeType, folder: Option<i32>) -> u32 {
        for reference in self.refs(root).await {
            let node = self.fetch(reference.child_id).await.unwrap();
            if reference.parent_id == root
                && node.node_type == Some(kind)
                && (folder.is_none() || node.int32_1 == folder)
            {
                return reference.child_id;
            }
        }
        panic!("no {kind:?} below {root}")
    }

    pub(crate) async fn make(&mut self, node: VaultNode<'static>) -> u32 {
        let node = Nested::encode_from(&node).unwrap();
        let heard = self.ask(ask::VaultNodeCreate { trans_id: self.next(), node }).await;
        let reply = reply!(heard, VaultNodeCreated);
        assert_eq!(reply.result, NetError::Success);
        reply.node_id
    }
}

pub(crate) use {reply, result};
