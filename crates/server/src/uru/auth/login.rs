//! Registering, logging in, and choosing a player.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use worldwire_core::connection::Sender as _;
use worldwire_core::{Reader, Side};
use worldwire_net::Flow;
use worldwire_uru::connection::Sender;
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::message::auth::client as ask;
use worldwire_uru::message::auth::server as reply;
use worldwire_uru::message::{AccountFlags, Caps};
use worldwire_uru::types::{Ipv4, Nested, NetError, Uuid};

use super::replies::outcome;
use super::resume::{Identity, Recent, SuspendedSession};
use super::returning::{self, Return};
use super::{AuthService, ClientState, send, sent};
use crate::uru::config::CapsPolicy;
use crate::uru::vault::Login;
use crate::uru::vault::resume::Ticket;

/// The billing type of a paid account.
const PAID: u32 = 1;
/// Clients store an account's players in an array of six without checking its bounds.
const MAX_PLAYERS: usize = 5;

impl AuthService {
    /// `ClientRegisterRequest`: the first message. The reply contains a challenge for the login.
    pub(super) async fn register(
        &mut self,
        request: ask::ClientRegisterRequest,
        sender: &mut Sender,
    ) -> Flow {
        let config = self.shared.config();
        let build = request.build_id;
        if !config.any_build && build != config.build && build != 0 {
            let (address, wanted) = (self.peer.address, config.build);
            if let Some(count) = self.shared.figures.turned_away.count() {
                tracing::info!(
                    %address, wanted, found = build, count,
                    "connection closed: the client has a different build"
                );
            }
            return Flow::Break(());
        }
        let Ok(server_challenge) = getrandom::u32() else { return Flow::Break(()) };
        self.challenge = Some(server_challenge);
        send(sender, reply::ClientRegisterReply { server_challenge })?;
        self.offer_caps(sender)?;
        let token = mem::replace(&mut self.returns_with, Uuid::ZERO);
        let host = self.shared.hosts.ipv4().await;
        let issue = || self.shared.reconnections.issue_token(self.peer.address.ip());
        let issued = host.and_then(|host| Some((host, issue()?)));
        // This step comes first: if it fails, the client tries again with the old token.
        let new = issued.as_ref().map(|(_, (_, held))| held.ticket());
        let is_resumed = match self.resume(token, new).await {
            Ok(is_resumed) => is_resumed,
            Err(error) => {
                let address = self.peer.address;
                tracing::warn!(%address, ?error, "connection closed: cannot resume a session now");
                return Flow::Break(());
            }
        };
        if let Some((host, (token, held))) = issued {
            self.ticket = Some(held);
            send(sender, reply::ServerAddr { server_address: Ipv4(host), token })?;
        }
        // These messages may have been lost.
        for bytes in self.recent.iter().filter(|_| is_resumed) {
            let message = Message::decode(Service::Auth, Side::Server, &mut Reader::new(&bytes));
            if let Ok(message) = message {
                sent(sender.send(&message))?;
            }
        }
        Flow::Continue(())
    }

    /// Resumes the session of the client's previous connection. Returns whether there was one.
    async fn resume(&mut self, token: Uuid, new: Option<Ticket>) -> Result<bool, NetError> {
        if token.is_zero() {
            return Ok(false);
        }
        let (address, shared) = (self.peer.address, &self.shared);
        let presented = Ticket::new(token, address.ip());
        let (vault, reconnections) = (&shared.vault, &shared.reconnections);
        match returning::resume(vault, reconnections, &self.session, presented, new).await? {
            None => return Ok(false),
            Some(Return::Kept(kept)) => {
                let SuspendedSession { session, presence, notices, .. } = *kept;
                (self.session, self.presence, self.notices) = (session, presence, notices);
                (self.identity, self.recent) = (kept.identity, kept.recent);
                self.log.account = kept.account_name;
            }
            Some(Return::Moved(client)) => {
                self.identity = Identity::from(&client);
                self.log.account = Some(client.account_name);
            }
        }
        self.state = self.identity.state();
        let (account, player) = (&self.log.account, self.identity.player);
        tracing::info!(%address, account, player, "reconnected");
        self.shared.figures.returns.fetch_add(1, Ordering::Relaxed);
        self.presence.resumed(address);
        Ok(true)
    }

    /// Lets the client resume its session through other processes.
    async fn keep_ticket(&self) {
        let Some(ticket) = &self.ticket else { return };
        let new = Some(ticket.ticket());
        if let Err(error) = returning::renew(&self.shared.vault, &self.session, None, new).await {
            let address = self.peer.address;
            tracing::warn!(%address, ?error, "the client can resume its session only with this process");
        }
    }

    /// Announces the server's capabilities, including the small games that it runs.
    fn offer_caps(&self, sender: &mut Sender) -> Flow {
        let config = self.shared.config();
        let bits = config.games().caps();
        let caps = match config.auth.caps {
            CapsPolicy::Always => Caps::new(&bits),
            CapsPolicy::Compatible => Caps::compatible(&bits),
            CapsPolicy::Never => return Flow::Continue(()),
        };
        match Nested::encode_from(&caps) {
            Ok(caps) => send(sender, reply::ServerCaps { caps }),
            Err(_) => Flow::Break(()),
        }
    }

    /// `AcctLoginRequest`: sends the account's players, then the reply.
    pub(super) async fn log_in(
        &mut self,
        request: ask::AcctLoginRequest<'_>,
        sender: &mut Sender,
    ) -> Flow {
        let (address, trans_id) = (self.peer.address, request.trans_id);
        let name = request.account_name.to_text();
        let logged_in = match self.challenge {
            None => Err(NetError::AuthenticationFailed),
            Some(server_challenge) => {
                let login = Login {
                    name: name.clone(),
                    client_challenge: request.client_challenge,
                    server_challenge,
                    proof: request.challenge_hash,
                    address: Some(address.ip()),
                };
                self.session.log_in(login).await
            }
        };
        let result = outcome(&logged_in);
        let figures = Arc::clone(&self.shared.figures);
        match logged_in {
            Ok(login) => {
                figures.logins.fetch_add(1, Ordering::Relaxed);
                self.state = ClientState::LoggedIn;
                self.identity = Identity { account: login.account, player: 0 };
                self.recent = Recent::default();
                self.presence.logged_in(address);
                self.log.account = Some(name.clone());
                self.keep_ticket().await;
                tracing::info!(%address, account = name, form = ?login.form, "logged in");
                for player in login.players.iter().take(MAX_PLAYERS) {
                    self.reply(
                        sender,
                        reply::AcctPlayerInfo {
                            trans_id,
                            player_id: player.id,
                            player_name: player.name.as_str().into(),
                            avatar_shape: player.shape.as_str().into(),
                            explorer: player.explorer,
                        },
                    )?;
                }
                let reply = reply::AcctLoginReply {
                    trans_id,
                    result,
                    account_id: login.account,
                    account_flags: login.flags,
                    billing_type: PAID,
                    encryption_key: self.shared.secure.key(),
                };
                self.reply(sender, reply)
            }
            Err(_) => {
                figures.logins_refused.fetch_add(1, Ordering::Relaxed);
                if let Some(count) = figures.refused_logins.count() {
                    tracing::info!(%address, account = name, ?result, count, "refused logins");
                }
                let reply = reply::AcctLoginReply {
                    trans_id,
                    result,
                    account_id: Uuid::ZERO,
                    account_flags: AccountFlags(0),
                    billing_type: 0,
                    encryption_key: [0; 4],
                };
                self.reply(sender, reply)
            }
        }
    }

    /// `AcctSetPlayerRequest`.
    pub(super) async fn set_player(
        &mut self,
        request: ask::AcctSetPlayerRequest,
        sender: &mut Sender,
    ) -> Flow {
        self.give_up(request.player_id).await;
        let set = self.session.set_player(request.player_id).await;
        if set.is_ok() {
            self.presence.changed();
            self.identity.player = request.player_id;
            self.state =
                if request.player_id == 0 { ClientState::LoggedIn } else { ClientState::Playing };
        }
        let result = outcome(&set);
        self.reply(sender, reply::AcctSetPlayerReply { trans_id: request.trans_id, result })
    }

    /// `PlayerCreateRequest`.
    pub(super) async fn create_player(
        &mut self,
        request: ask::PlayerCreateRequest<'_>,
        sender: &mut Sender,
    ) -> Flow {
        let (name, shape) = (request.player_name.to_text(), request.avatar_shape.to_text());
        let made = self.session.create_player(name, shape).await;
        let (trans_id, result) = (request.trans_id, outcome(&made));
        let made = made.ok();
        let text = |text: Option<&String>| text.map_or("", String::as_str).to_owned();
        let name = text(made.as_ref().map(|player| &player.name));
        let shape = text(made.as_ref().map(|player| &player.shape));
        let reply = reply::PlayerCreateReply {
            trans_id,
            result,
            player_id: made.as_ref().map_or(0, |player| player.id),
            explorer: made.as_ref().map_or(0, |player| player.explorer),
            player_name: name.as_str().into(),
            avatar_shape: shape.as_str().into(),
        };
        self.reply(sender, reply)
    }
}
