//! The auth service: the login, the players, and ages; the vault, scores and secure files are in
//! modules of their own.

use worldwire_core::Error;
use worldwire_uru::connect::{ConnectData, TokenData};
use worldwire_uru::crypt::login::{LoginFields, login_fields, uncut_login_fields};
use worldwire_uru::file::secure::SecureKey;
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::message::AccountFlags;
use worldwire_uru::message::auth::client::{
    AcctLoginRequest, AcctSetPlayerRequest, ClientMessage, ClientRegisterRequest,
    PlayerCreateRequest, PlayerDeleteRequest,
};
use worldwire_uru::message::auth::server::ServerMessage;
use worldwire_uru::types::{Ipv4, NetError, TransId, Uuid};

use super::notification::Notifications;
use super::reply::{Key, reply};
use super::{ClientError, Link, Result, Shard, gatekeeper};

/// An auth connection.
#[derive(Clone, Debug)]
pub struct Auth {
    link: Link,
    build: u32,
}

/// What a login yields.
#[derive(Clone, Debug)]
pub struct Login {
    /// The account.
    pub account_id: Uuid,
    /// What it may do.
    pub flags: AccountFlags,
    /// 1 is paid.
    pub billing_type: u32,
    /// Opens secure files.
    pub file_key: SecureKey,
    /// The account's players.
    pub players: Vec<Player>,
}

/// A player of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Player {
    /// The player's number, which is that of its vault node (KI number).
    pub id: u32,
    /// The name.
    pub name: String,
    /// `male` or `female`.
    pub shape: String,
    /// 1 for explorers, 0 for visitors.
    pub explorer: u32,
}

/// The most players that a login may list: far more than any server has.
const MAX_PLAYERS: usize = 1000;

impl Auth {
    /// Connects; asks the gatekeeper for the address if the shard's configuration has none. Nothing
    /// but a login is allowed before the login.
    ///
    /// # Errors
    /// As for [`Link::connect`].
    pub async fn connect(shard: &Shard) -> Result<(Self, Notifications)> {
        let (link, notifications) = gatekeeper::connect(shard, Service::Auth).await?;
        Ok((Self { link, build: shard.build }, notifications))
    }

    /// Connects with the token of a [`Notification::ServerAddr`](super::Notification::ServerAddr),
    /// to the server that came with it. When this connection [registers](Self::register), it goes
    /// on with the session of the one that was lost, if the server still keeps it; a login is not
    /// needed then.
    ///
    /// # Errors
    /// As for [`Link::connect`].
    pub async fn reconnect(
        shard: &Shard,
        server: Ipv4,
        token: Uuid,
    ) -> Result<(Self, Notifications)> {
        let mut config = shard.client_config(Service::Auth);
        config.connect.data = ConnectData::Auth(TokenData { token });
        let host = server.0.to_string();
        let (link, notifications) = Link::connect_as(shard, config, &host, shard.port).await?;
        Ok((Self { link, build: shard.build }, notifications))
    }

    /// The connection.
    #[must_use]
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Names the client's build, and returns the challenge for a login. A server closes the
    /// connection of a build that it does not let in. The reply has no transaction, so register
    /// once at a time.
    ///
    /// # Errors
    /// No answer.
    pub async fn register(&self) -> Result<u32> {
        let request = ClientRegisterRequest { build_id: self.build };
        let message = ClientMessage::from(request).into();
        let mut transaction = self.link.begin_as(Key::Register, message).await?;
        let reply = transaction.next().await?;
        let reply = reply!(transaction.request(), reply, AuthServer, auth::ClientRegisterReply)?;
        Ok(reply.server_challenge)
    }

    /// Registers and logs in, with the digest that belongs to the form of the name.
    ///
    /// As with every client, `VaultNodeNotFound` counts as success, for historical reasons.
    ///
    /// # Errors
    /// A refusal: `AuthenticationFailed`, `AccountBanned`, `TooManyFailedLogins`.
    pub async fn log_in(&self, account: &str, password: &str) -> Result<Login> {
        self.log_in_with(account, |random, challenge| {
            login_fields(account, password, random, challenge)
        })
        .await
    }

    /// The same with all of a password that has more than 15 characters, of which clients otherwise
    /// send the first 15: for accounts that were made by a client which does not cut it.
    ///
    /// # Errors
    /// As [`log_in`](Self::log_in).
    pub async fn log_in_uncut(&self, account: &str, password: &str) -> Result<Login> {
        self.log_in_with(account, |random, challenge| {
            uncut_login_fields(account, password, random, challenge)
        })
        .await
    }

    async fn log_in_with(
        &self,
        account: &str,
        fields: impl FnOnce(u32, u32) -> LoginFields,
    ) -> Result<Login> {
        let challenge = self.register().await?;
        let mut random = [0; 4];
        getrandom::fill(&mut random).map_err(|error| {
            let error = Error::value("random bytes of the system", error.to_string());
            ClientError::NotSent { request: "AcctLoginRequest", error: error.into() }
        })?;
        let fields = fields(u32::from_le_bytes(random), challenge);
        let request = |trans_id| {
            owned(AcctLoginRequest {
                trans_id,
                client_challenge: fields.client_challenge,
                account_name: account.into(),
                challenge_hash: fields.challenge_hash,
                auth_token: "".into(),
                os: "win".into(),
            })
        };
        let mut transaction = self.link.begin(request).await?;
        let request = transaction.request();
        let mut players = Vec::new();
        loop {
            match transaction.next().await? {
                Message::AuthServer(ServerMessage::AcctPlayerInfo(info)) => {
                    if players.len() >= MAX_PLAYERS {
                        let error = Error::limit(
                            "players of an account",
                            MAX_PLAYERS as u64,
                            players.len() as u64 + 1,
                        );
                        return Err(ClientError::Malformed { request, error: error.into() });
                    }
                    players.push(Player {
                        id: info.player_id,
                        name: info.player_name.to_text(),
                        shape: info.avatar_shape.to_text(),
                        explorer: info.explorer,
                    });
                }
                reply => {
                    let reply = reply!(request, reply, AuthServer, auth::AcctLoginReply)?;
                    check(request, reply.result)?;
                    return Ok(Login {
                        account_id: reply.account_id,
                        flags: reply.account_flags,
                        billing_type: reply.billing_type,
                        file_key: SecureKey::from_words(reply.encryption_key),
                        players,
                    });
                }
            }
        }
    }

    /// Makes a player. The shape is `male` or `female`.
    ///
    /// # Errors
    /// A refusal: `PlayerAlreadyExists`, `PlayerNameInvalid`, `MaxPlayersOnAcct`,
    /// `InvalidParameter`.
    pub async fn create_player(&self, name: &str, shape: &str) -> Result<Player> {
        let request = |trans_id| {
            owned(PlayerCreateRequest {
                trans_id,
                player_name: name.into(),
                avatar_shape: shape.into(),
                friend_invite: "".into(),
            })
        };
        let (request, reply) = self.link.granted(request).await?;
        let reply = reply!(request, reply, AuthServer, auth::PlayerCreateReply)?;
        Ok(Player {
            id: reply.player_id,
            name: reply.player_name.to_text(),
            shape: reply.avatar_shape.to_text(),
            explorer: reply.explorer,
        })
    }

    /// Deletes a player of the account.
    ///
    /// # Errors
    /// A refusal: `PlayerNotFound`, `LoggedInElsewhere` while it is played.
    pub async fn delete_player(&self, player_id: u32) -> Result<()> {
        self.done(|trans_id| PlayerDeleteRequest { trans_id, player_id }).await
    }

    /// Plays a player; 0 is none.
    ///
    /// # Errors
    /// A refusal: `PlayerNotFound`, `LoggedInElsewhere`.
    pub async fn set_player(&self, player_id: u32) -> Result<()> {
        self.done(|trans_id| AcctSetPlayerRequest { trans_id, player_id }).await
    }

    /// Asks for something whose reply is a result and nothing else.
    pub(super) async fn done<M: Into<ClientMessage<'static>>>(
        &self,
        request: impl FnOnce(TransId) -> M,
    ) -> Result<()> {
        self.link.granted(|trans_id| request(trans_id).into()).await.map(drop)
    }
}

/// A message that borrows nothing.
pub(super) fn owned<'m>(message: impl Into<ClientMessage<'m>>) -> Message<'static> {
    Message::from(message.into()).into_owned()
}

/// For replies in which clients take `VaultNodeNotFound` for success.
pub(super) fn check(request: &'static str, result: NetError) -> Result<()> {
    if result.is_error() && result != NetError::VaultNodeNotFound {
        return Err(ClientError::Refused { request, error: result });
    }
    Ok(())
}
