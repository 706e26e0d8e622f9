//! The auth service: logins, players and ages. The vault, scores and secure files have their own
//! modules.

use worldwire_core::Error;
use worldwire_uru::connect::{ConnectData, TokenData};
use worldwire_uru::crypt::login::{LoginFields, login_fields, uncut_login_fields};
use worldwire_uru::file::secure::SecureKey;
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::message::AccountFlags;
use worldwire_uru::message::auth::client::{
    AcctLoginRequest, AcctSetPlayerRequest, ClientMessage, ClientRegisterRequest,
    PlayerDeleteRequest,
};
use worldwire_uru::message::auth::server::ServerMessage;
use worldwire_uru::types::{Ipv4, NetError, TransId, Uuid};

use super::notification::Notifications;
use super::reply::{Key, ask, reply};
use super::{ClientError, Link, Result, Shard, gatekeeper};

/// A connection to an auth server.
#[derive(Clone, Debug)]
pub struct Auth {
    link: Link,
    build: u32,
}

/// The result of a login.
#[derive(Clone, Debug)]
pub struct Login {
    /// The account.
    pub account_id: Uuid,
    /// What the account is allowed to do.
    pub flags: AccountFlags,
    /// 1 for paid accounts.
    pub billing_type: u32,
    /// The key that decrypts secure files.
    pub file_key: SecureKey,
    /// The account's players.
    pub players: Vec<Player>,
}

/// A player of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Player {
    /// The player's number (KI number), which is also that of its vault node.
    pub id: u32,
    /// The name.
    pub name: String,
    /// `male` or `female`.
    pub shape: String,
    /// 1 for explorers, 0 for visitors.
    pub explorer: u32,
}

/// The maximum number of players in the reply to a login; far more than any server allows.
const MAX_PLAYERS: usize = 1000;

impl Auth {
    /// Connects. Asks the gatekeeper for the address if the shard's configuration has none. Log in
    /// before you make other requests.
    pub async fn connect(shard: &Shard) -> Result<(Self, Notifications)> {
        let (link, notifications) = gatekeeper::connect(shard, Service::Auth).await?;
        Ok((Self { link, build: shard.build }, notifications))
    }

    /// Connects to the server named by a
    /// [`Notification::ServerAddr`](super::Notification::ServerAddr), with the token in that
    /// notification. [Registering](Self::register) this connection then resumes the lost
    /// connection's session without another login, if the server still has that session.
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

    /// The underlying link.
    #[must_use]
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Sends the client's build and returns the challenge for a login. A server that does not
    /// accept the build closes the connection. The reply carries no transaction number, so make
    /// only one such request at a time.
    pub async fn register(&self) -> Result<u32> {
        let request = ClientRegisterRequest { build_id: self.build };
        let message = ClientMessage::from(request).into();
        let mut transaction = self.link.begin_as(Key::Register, message).await?;
        let reply = transaction.next().await?;
        let reply = reply!(transaction.request(), reply, AuthServer, auth::ClientRegisterReply)?;
        Ok(reply.server_challenge)
    }

    /// Registers and logs in, with the kind of digest that the form of the account name calls for.
    ///
    /// Treats `VaultNodeNotFound` as success, as all clients do for historical reasons. Refusals
    /// include `AuthenticationFailed`, `AccountBanned` and `TooManyFailedLogins`.
    pub async fn log_in(&self, account: &str, password: &str) -> Result<Login> {
        self.log_in_with(account, |random, challenge| {
            login_fields(account, password, random, challenge)
        })
        .await
    }

    /// Like [`log_in`](Self::log_in), but with the whole password. Clients normally use only the
    /// first 15 characters; use this for accounts created by a client that does not truncate
    /// passwords.
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
            let error = Error::invalid(format!("cannot get random bytes from the system: {error}"));
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
                        let (most, found) = (MAX_PLAYERS as u64, players.len() as u64 + 1);
                        let error = Error::limit("players of an account", most, found);
                        return Err(ClientError::malformed(request)(error));
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

    /// Creates a player. The shape is `male` or `female`.
    ///
    /// # Errors
    /// Refusals include `PlayerAlreadyExists`, `PlayerNameInvalid`, `MaxPlayersOnAcct` and
    /// `InvalidParameter`.
    pub async fn create_player(&self, name: &str, shape: &str) -> Result<Player> {
        let reply = ask!(self.link, auth::PlayerCreateRequest {
            player_name: name.into(), avatar_shape: shape.into(), friend_invite: "".into()
        } => PlayerCreateReply)?;
        Ok(Player {
            id: reply.player_id,
            name: reply.player_name.to_text(),
            shape: reply.avatar_shape.to_text(),
            explorer: reply.explorer,
        })
    }

    /// Deletes one of the account's players. Refusals include `PlayerNotFound`, and
    /// `LoggedInElsewhere` while the player is in use.
    pub async fn delete_player(&self, player_id: u32) -> Result<()> {
        self.done(|trans_id| PlayerDeleteRequest { trans_id, player_id }).await
    }

    /// Chooses the player to play as; 0 for none. Refusals include `PlayerNotFound` and
    /// `LoggedInElsewhere`.
    pub async fn set_player(&self, player_id: u32) -> Result<()> {
        self.done(|trans_id| AcctSetPlayerRequest { trans_id, player_id }).await
    }

    /// Sends a request whose reply contains only a result.
    pub(super) async fn done<M: Into<ClientMessage<'static>>>(
        &self,
        request: impl FnOnce(TransId) -> M,
    ) -> Result<()> {
        self.link.granted(|trans_id| request(trans_id).into()).await.map(drop)
    }
}

/// An owned copy of a message.
pub(super) fn owned<'m>(message: impl Into<ClientMessage<'m>>) -> Message<'static> {
    Message::from(message.into()).into_owned()
}

/// The result of a reply in which clients treat `VaultNodeNotFound` as success.
pub(super) fn check(request: &'static str, result: NetError) -> Result<()> {
    if result.is_error() && result != NetError::VaultNodeNotFound {
        return Err(ClientError::Refused { request, error: result });
    }
    Ok(())
}
