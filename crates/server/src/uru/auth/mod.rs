//! The auth service: accounts, players, the vault, ages, scores, and secure files.
//!
//! A client registers, logs in, and chooses a player. The vault refuses requests that come too
//! early, with `AuthenticationFailed`; requests that do not reach the vault are checked here.
//! Replies are sent in order, each after the notices of earlier events. A client that loses its
//! connection can resume its session on a new one: see `resume`.

mod downloads;
mod fixed;
mod log;
mod login;
mod replies;
mod resume;
mod returning;
mod secure;
#[cfg(test)]
mod simulation;

use std::future::pending;
use std::sync::Arc;

use worldwire_core::Messages as _;
use worldwire_core::connection::Sender as _;
use worldwire_net::{Flow, Peer};
use worldwire_uru::connection::Sender;
use worldwire_uru::frame::Message;
use worldwire_uru::message::auth::client as ask;
use worldwire_uru::message::auth::client::ClientMessage as Ask;
use worldwire_uru::message::auth::server as reply;
use worldwire_uru::message::auth::server::ServerMessage as Reply;
use worldwire_uru::types::{Ipv4, Nested, NetError, Uuid};

pub(super) use resume::{Claim, HeldTicket, Identity, Recent, Reconnections, SuspendedSession};
pub use secure::SecureFiles;

use super::cluster::{EnterAge, EnteredAge};
use super::game::Presence;
use super::vault::{Connection as Session, InitAge, Notice, Notices};
use super::{Shared, sent};
use downloads::Downloads;
use log::ClientLog;
use replies::{notice_message, outcome, public_age, scores};

/// An auth connection.
#[derive(Debug)]
pub(super) struct AuthService {
    shared: Arc<Shared>,
    peer: Peer,
    session: Session,
    presence: Presence,
    notices: Notices,
    /// The challenge for the login, once the client has registered.
    challenge: Option<u32>,
    state: ClientState,
    identity: Identity,
    downloads: Downloads,
    log: ClientLog,
    /// The token in the client's connect packet, until it registers.
    returns_with: Uuid,
    /// The ticket for resuming the session.
    ticket: Option<HeldTicket>,
    recent: Recent,
}

/// An event from another task.
#[derive(Debug)]
pub(super) enum AuthEvent {
    /// A notice from the vault; `None` means that the vault has ended the session.
    Notice(Option<Notice>),
    /// Another connection of the same client wants to resume the session.
    Claim(Claim),
}

/// A client's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ClientState {
    Connected,
    LoggedIn,
    Playing,
}

/// Sends the reply to a request: the transaction, the outcome, and any further fields.
macro_rules! answer {
    ($self:ident, $sender:ident, $request:ident, $outcome:ident, $Reply:ident {
        $($field:ident $(: $value:expr)?),*
    }) => {{
        let (trans_id, result) = ($request.trans_id, outcome(&$outcome));
        let reply = reply::$Reply { trans_id, result, $($field $(: $value)?),* };
        $self.reply($sender, reply)
    }};
}

impl AuthService {
    /// Starts serving a connection, given the token in its connect packet. Fails if the shard is
    /// stopping.
    pub(super) async fn open(
        shared: Arc<Shared>,
        peer: Peer,
        token: Uuid,
    ) -> Result<Self, NetError> {
        let (session, notices) = shared.vault.connect().await?;
        let downloads =
            Downloads::new(Arc::clone(&shared.secure), shared.config().auth.strict_chunks);
        Ok(Self {
            presence: shared.presence(session.number()),
            shared,
            peer,
            session,
            notices,
            challenge: None,
            state: ClientState::Connected,
            identity: Identity::default(),
            downloads,
            log: ClientLog::default(),
            returns_with: token,
            ticket: None,
            recent: Recent::default(),
        })
    }

    /// Lets the player into an age. Looks up an IPv4 address for its server only if the client
    /// needs one.
    async fn enter_age(
        &self,
        filename: String,
        instance: Uuid,
        needs_ipv4: bool,
    ) -> Result<EnteredAge, NetError> {
        let address = self.peer.address.ip();
        let wanted = EnterAge { filename, instance, address, needs_ipv4 };
        self.shared.enter_age(&self.session, wanted).await
    }

    /// Waits for an event from another task.
    pub(super) async fn notified(&mut self) -> AuthEvent {
        let claimed = async {
            match &mut self.ticket {
                Some(ticket) => ticket.claimed().await,
                None => pending().await,
            }
        };
        tokio::select! {
            notice = self.notices.recv() => AuthEvent::Notice(notice),
            claim = claimed => AuthEvent::Claim(claim),
        }
    }

    /// Passes a notice to the client. If there is none, the vault has ended the session.
    pub(super) fn notice(&mut self, notice: Option<Notice>, sender: &mut Sender) -> Flow {
        match notice {
            Some(notice) => self.notify(notice, sender),
            None => Flow::Break(()),
        }
    }

    /// Hands the session to another connection of the same client.
    pub(super) fn hand_over(self, claim: Claim) {
        // If that connection is gone by now, end the session.
        let _ = claim.send(Box::new(self.into_kept()));
    }

    /// Keeps the session of a lost connection for its client.
    pub(super) fn lost(mut self) {
        if let Some(ticket) = self.ticket.take()
            && self.state > ClientState::Connected
        {
            self.presence.lost();
            let patience = self.shared.config().patience();
            ticket.keep(self.into_kept(), patience);
        }
    }

    fn into_kept(self) -> SuspendedSession {
        let Self { session, presence, notices, identity, log, recent, .. } = self;
        let account_name = log.account;
        SuspendedSession { session, presence, notices, identity, account_name, recent }
    }

    pub(super) fn wants_room(&self) -> bool {
        self.downloads.wants_room()
    }

    /// Sends the next part of a download.
    pub(super) async fn room(&mut self, sender: &mut Sender) -> Flow {
        self.downloads.room(sender).await
    }

    /// Handles a message.
    pub(super) async fn message(&mut self, message: Ask<'_>, sender: &mut Sender) -> Flow {
        self.recent.heard();
        if let Some(reply) = fixed::answer(&message, self.state) {
            return self.reply(sender, reply);
        }
        match message {
            Ask::PingRequest(_) | Ask::ClientSetCCRLevel(_) | Ask::VaultSetSeen(_) => {
                Flow::Continue(())
            }
            Ask::ClientRegisterRequest(request) => self.register(request, sender).await,
            Ask::AcctLoginRequest(request) => self.log_in(request, sender).await,
            Ask::LogPythonTraceback(log) => self.log("Python", &log.text.to_text()),
            Ask::LogStackDump(log) => self.log("stack", &log.text.to_text()),
            Ask::LogClientDebuggerConnect(_) => self.log("debugger", "a debugger is attached"),
            message => self.account(message, sender).await,
        }
    }

    /// Handles messages about accounts and players.
    async fn account(&mut self, message: Ask<'_>, sender: &mut Sender) -> Flow {
        match message {
            Ask::AcctSetPlayerRequest(request) => self.set_player(request, sender).await,
            Ask::AcctChangePasswordRequest(request) => {
                let name = request.account_name.to_text();
                let changed = self.session.change_password(name, request.password_hash).await;
                answer!(self, sender, request, changed, AcctChangePasswordReply {})
            }
            Ask::PlayerCreateRequest(request) => self.create_player(request, sender).await,
            Ask::PlayerDeleteRequest(request) => {
                self.give_up(request.player_id).await;
                let deleted = self.session.delete_player(request.player_id).await;
                answer!(self, sender, request, deleted, PlayerDeleteReply {})
            }
            Ask::KickPlayer(request) => {
                let kicked = self.session.kick_player(request.player_id).await;
                self.unanswered("KickPlayer", kicked, sender)
            }
            message => self.node(message, sender).await,
        }
    }

    /// Handles messages about vault nodes.
    async fn node(&mut self, message: Ask<'_>, sender: &mut Sender) -> Flow {
        match message {
            Ask::VaultNodeCreate(request) => {
                let made = self.session.create(request.node.as_bytes().to_vec()).await;
                let node_id = made.unwrap_or_default();
                answer!(self, sender, request, made, VaultNodeCreated { node_id })
            }
            Ask::VaultNodeFetch(request) => {
                let fetched = self.session.fetch(request.node_id).await;
                let node = Nested::new(fetched.as_deref().unwrap_or_default());
                answer!(self, sender, request, fetched, VaultNodeFetched { node })
            }
            Ask::VaultNodeSave(request) => {
                let node = request.node.as_bytes().to_vec();
                let saved = self.session.save(request.node_id, request.revision_id, node).await;
                answer!(self, sender, request, saved, VaultSaveNodeReply {})
            }
            Ask::VaultNodeAdd(request) => {
                let ask::VaultNodeAdd { parent_id, child_id, owner_id, .. } = request;
                let added = self.session.add(parent_id, child_id, owner_id).await;
                answer!(self, sender, request, added, VaultAddNodeReply {})
            }
            Ask::VaultNodeRemove(request) => {
                let removed = self.session.remove(request.parent_id, request.child_id).await;
                answer!(self, sender, request, removed, VaultRemoveNodeReply {})
            }
            Ask::VaultFetchNodeRefs(request) => {
                let found = self.session.refs(request.node_id).await;
                answer!(
                    self,
                    sender,
                    request,
                    found,
                    VaultNodeRefsFetched { refs: found.unwrap_or_default().into() }
                )
            }
            Ask::VaultNodeFind(request) => {
                let found = self.session.find(request.node.as_bytes().to_vec()).await;
                answer!(
                    self,
                    sender,
                    request,
                    found,
                    VaultNodeFindReply { node_ids: found.unwrap_or_default().into() }
                )
            }
            Ask::VaultSendNode(request) => {
                let sent = self.session.send(request.node_id, request.receiver_id).await;
                self.unanswered("VaultSendNode", sent, sender)
            }
            message => self.age(message, sender).await,
        }
    }

    /// Handles messages about ages.
    async fn age(&mut self, message: Ask<'_>, sender: &mut Sender) -> Flow {
        match message {
            Ask::VaultInitAgeRequest(request) => {
                let made = self.session.init_age(init_age(&request)).await;
                let (age_node_id, age_info_node_id) =
                    made.as_ref().map_or((0, 0), |nodes| (nodes.age, nodes.info));
                answer!(
                    self,
                    sender,
                    request,
                    made,
                    VaultInitAgeReply { age_node_id, age_info_node_id }
                )
            }
            Ask::AgeRequest(request) => {
                let instance = request.age_instance_id;
                let found = self.enter_age(request.age_name.to_text(), instance, true).await;
                let (age_mcp_id, age_node_id) = numbers(&found);
                let age_instance_id = found.as_ref().map_or(Uuid::ZERO, |_| instance);
                let address = found.as_ref().map_or([0; 4], |age| age.ipv4);
                let game_server_address = Ipv4(address.into());
                answer!(
                    self,
                    sender,
                    request,
                    found,
                    AgeReply { age_mcp_id, age_instance_id, age_node_id, game_server_address }
                )
            }
            Ask::AgeRequestEx(request) => {
                let instance = request.age_instance_id;
                let found = self.enter_age(request.age_name.to_text(), instance, false).await;
                let (age_mcp_id, age_node_id) = numbers(&found);
                let age_instance_id = found.as_ref().map_or(Uuid::ZERO, |_| instance);
                let game_server_address = found.as_ref().map_or("", |age| &age.host).into();
                answer!(
                    self,
                    sender,
                    request,
                    found,
                    AgeReplyEx { age_mcp_id, age_instance_id, age_node_id, game_server_address }
                )
            }
            Ask::GetPublicAgeList(request) => {
                let found = self.session.public_ages(request.age_filename.to_text()).await;
                let ages = found.iter().flatten().map(public_age).collect::<Vec<_>>().into();
                answer!(self, sender, request, found, PublicAgeList { ages })
            }
            Ask::SetAgePublic(request) => {
                let set = self.session.set_public(request.age_info_id, request.public_ != 0).await;
                self.unanswered("SetAgePublic", set, sender)
            }
            message => self.score(message, sender).await,
        }
    }

    /// Handles messages about scores.
    async fn score(&mut self, message: Ask<'_>, sender: &mut Sender) -> Flow {
        match message {
            Ask::ScoreCreate(request) => {
                let ask::ScoreCreate { owner_id, game_type, value, .. } = request;
                let name = request.game_name.to_text();
                let made = self.session.create_score(owner_id, name, game_type, value).await;
                let (score_id, created_time) = made.unwrap_or_default();
                answer!(self, sender, request, made, ScoreCreateReply { score_id, created_time })
            }
            Ask::ScoreGetScores(request) => {
                let name = request.game_name.to_text();
                let found = self.session.get_scores(request.owner_id, name).await;
                let (score_count, scores) = scores(&found);
                answer!(self, sender, request, found, ScoreGetScoresReply { score_count, scores })
            }
            Ask::ScoreGetHighScores(request) => {
                let (owner, most) = (request.owner_id, request.max_scores);
                let name = request.game_name.to_text();
                let found = self.session.high_scores(owner, most, name).await;
                let (score_count, scores) = scores(&found);
                answer!(
                    self,
                    sender,
                    request,
                    found,
                    ScoreGetHighScoresReply { score_count, scores }
                )
            }
            Ask::ScoreAddPoints(request) => {
                let added = self.session.add_points(request.score_id, request.points).await;
                answer!(self, sender, request, added, ScoreAddPointsReply {})
            }
            Ask::ScoreTransferPoints(request) => {
                let (from, to) = (request.src_score_id, request.dest_score_id);
                let moved = self.session.transfer_points(from, to, request.points).await;
                answer!(self, sender, request, moved, ScoreTransferPointsReply {})
            }
            Ask::ScoreSetPoints(request) => {
                let set = self.session.set_points(request.score_id, request.points).await;
                answer!(self, sender, request, set, ScoreSetPointsReply {})
            }
            message => self.file(message, sender).await,
        }
    }

    /// Handles messages about secure files, and all remaining messages.
    async fn file(&mut self, message: Ask<'_>, sender: &mut Sender) -> Flow {
        match message {
            Ask::FileListRequest(request) => match self.checked(ClientState::LoggedIn) {
                Ok(()) => self.downloads.list(&request, sender).await,
                Err(result) => downloads::no_list(request.trans_id, result, sender),
            },
            Ask::FileDownloadRequest(request) => match self.checked(ClientState::LoggedIn) {
                Ok(()) => self.downloads.request(&request, sender),
                Err(result) => downloads::no_file(request.trans_id, result, sender),
            },
            Ask::FileDownloadChunkAck(ack) => {
                self.downloads.acknowledged(ack.trans_id);
                Flow::Continue(())
            }
            message => {
                let (address, name, state) = (self.peer.address, message.name(), self.state());
                if let Some(count) = self.shared.figures.turned_away.count() {
                    tracing::warn!(
                        %address, state, name, count, "connection closed: unsupported message"
                    );
                }
                Flow::Break(())
            }
        }
    }

    /// The client's state, for the log.
    pub(super) fn state(&self) -> &'static str {
        match self.state {
            ClientState::Connected if self.challenge.is_none() => "connected",
            ClientState::Connected => "registered",
            ClientState::LoggedIn => "logged in",
            ClientState::Playing => "playing",
        }
    }

    fn log(&mut self, kind: &str, text: &str) -> Flow {
        self.log.say(self.peer.address, kind, text);
        Flow::Continue(())
    }

    /// Fails unless the client has reached this state.
    fn checked(&self, from: ClientState) -> Result<(), NetError> {
        if self.state >= from { Ok(()) } else { Err(NetError::AuthenticationFailed) }
    }

    /// Logs the failure of a request that has no reply.
    fn unanswered(
        &mut self,
        what: &str,
        result: Result<(), NetError>,
        sender: &mut Sender,
    ) -> Flow {
        if let Err(error) = result {
            let (address, state) = (self.peer.address, self.state());
            tracing::debug!(%address, state, what, ?error, "request refused");
        }
        self.due(sender)
    }

    /// Ends a session of this player that is being kept for its client.
    async fn give_up(&self, player: u32) {
        if player != 0 {
            self.shared.reconnections.give_up(Identity { player, ..self.identity }).await;
        }
    }

    /// Sends a reply, after the notices of earlier events.
    fn reply<'m>(&mut self, sender: &mut Sender, reply: impl Into<Reply<'m>>) -> Flow {
        self.due(sender)?;
        self.send(sender, reply)
    }

    fn due(&mut self, sender: &mut Sender) -> Flow {
        while let Some(notice) = self.notices.due() {
            self.notify(notice, sender)?;
        }
        Flow::Continue(())
    }

    /// Sends a notice to the client. If the client was kicked, that is the last message.
    fn notify(&mut self, notice: Notice, sender: &mut Sender) -> Flow {
        self.send(sender, notice_message(notice))?;
        match notice {
            Notice::KickedOff { .. } => Flow::Break(()),
            _ => Flow::Continue(()),
        }
    }

    /// Sends a message, and remembers it in case the connection is lost.
    fn send<'m>(&mut self, sender: &mut Sender, reply: impl Into<Reply<'m>>) -> Flow {
        let message = Message::from(reply.into());
        if self.ticket.is_some()
            && let Ok(bytes) = message.to_bytes()
        {
            self.recent.sent(bytes);
        }
        sent(sender.send(&message))
    }
}

/// Tells the client that the shard is stopping.
pub(super) fn stopping(sender: &mut Sender) {
    // This fails if the client does not read.
    let _ = send(sender, reply::KickedOff { reason: NetError::RemoteShutdown });
}

fn send<'m>(sender: &mut Sender, reply: impl Into<Reply<'m>>) -> Flow {
    sent(sender.send(&reply.into().into()))
}

/// The number with which to join an age, and the number of the age's node.
fn numbers(entered: &Result<EnteredAge, NetError>) -> (u32, u32) {
    entered.as_ref().map_or((0, 0), |age| (age.number, age.age))
}

fn init_age(request: &ask::VaultInitAgeRequest<'_>) -> InitAge {
    InitAge {
        instance: request.age_instance_id,
        parent: request.parent_age_instance_id,
        filename: request.age_filename.to_text(),
        instance_name: request.age_instance_name.to_text(),
        user_name: request.age_user_name.to_text(),
        description: request.age_description.to_text(),
        sequence: request.age_sequence_number,
        language: request.age_language,
    }
}
