//! The game service: players meet in ages.
//!
//! Each running age has its own task ([`host`]), which owns a state machine of
//! [`worldwire_uru::age`]. It starts when the first player joins and ends when the age has been
//! empty for as long as its age file says. Connections send it their clients' messages and wait
//! while it is busy. It sends messages back through a bounded queue ([`outbox`]) and never waits
//! for a connection.
//!
//! Players who send too much, or cause too much work, are slowed down ([`pace`]). Messages that an
//! age drops are logged by player and reason ([`drops`]).
//!
//! An age admits only players that the auth service expects there ([`games`]): those who requested
//! the age on an auth connection from the same address within the last minute, and those who were
//! in it.
//!
//! Each age also has a manager for small games ([`small_games`]), which handles `GameMgrMsg`s. The
//! manager's messages share the queue, the bounds and the order of the age's own messages.
//!
//! If the vault is in another process, that process chooses the node that runs an age, and may
//! choose another one later. [`node`] carries out its orders. Once their
//! [tenure](super::cluster::Tenure) is over, a node's ages and game connections send nothing more.
//!
//! Persistent states are in the vault ([`age_states`](super::vault::age_states)). Changes are
//! written in batches after a short delay; failed writes are retried ([`state_writer`]). An
//! operator can remove the states of an empty age
//! ([`Vault::clear_states`](super::vault::Vault::clear_states)).

mod announcement;
mod by_session;
mod command;
mod drops;
mod files;
mod games;
mod host;
mod node;
mod outbox;
mod pace;
mod registry;
mod small_games;
mod state_writer;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep};
use worldwire_core::Messages as _;
use worldwire_core::connection::Sender as _;
use worldwire_net::Flow;
use worldwire_uru::age::Packet;
use worldwire_uru::connection::Sender;
use worldwire_uru::games::message::MAX_BYTES;
use worldwire_uru::message::game::client::ClientMessage;
use worldwire_uru::message::game::server::{JoinAgeReply, ServerMessage};
use worldwire_uru::types::NetError;

pub(super) use announcement::{MAX_TEXT, can_be_shown};
pub(in crate::uru) use by_session::{BySession, OfSession};
pub(super) use files::AgeFiles;
pub(super) use games::{AgeFigures, Games, Presence, RunningAge, RunningGame};
pub use outbox::{Outbox, hand_out};
pub use small_games::GameRandom;

use super::Shared;
use super::sent;
use command::Command;
use games::Membership;
use pace::{Effort, Pace};

/// Why a connection ends when its age's tenure is over.
const LAPSED: &str = "another process may be running this age by now";
/// The number of bytes that are handed to the connection at once.
const PORTION: usize = 64 << 10;
/// How often an age learns that a client that sends only pings is still connected.
const HEARD_EVERY: Duration = Duration::from_secs(10);

/// A game connection.
#[derive(Debug)]
pub(super) struct GameService {
    shared: Arc<Shared>,
    address: SocketAddr,
    outbox: Arc<Outbox>,
    /// Messages that are being sent.
    taken: Vec<Packet>,
    membership: Option<Membership>,
    heard: Instant,
    pace: Pace,
}

impl GameService {
    pub(super) fn new(shared: Arc<Shared>, address: SocketAddr) -> Self {
        let (outbox, heard) = (Arc::new(Outbox::new()), Instant::now());
        let pace = Pace::new(shared.config().game.bytes_per_second);
        Self { shared, address, outbox, taken: Vec::new(), membership: None, heard, pace }
    }

    /// Handles a message. Before joining, only pings and join requests are allowed.
    pub(super) async fn message(
        &mut self,
        message: ClientMessage<'_>,
        sender: &mut Sender,
    ) -> Flow {
        match (message, &self.membership) {
            (ClientMessage::PingRequest(_), None) => Flow::Continue(()),
            (ClientMessage::PingRequest(_), Some(membership)) => {
                if self.heard.elapsed() >= HEARD_EVERY {
                    self.heard = Instant::now();
                    // If the age is busy, it can do without this.
                    let _ =
                        membership.commands.try_send(Command::Heard { player: membership.player });
                }
                Flow::Continue(())
            }
            (ClientMessage::JoinAgeRequest(request), None) => {
                let (number, player) = (request.age_mcp_id, request.player_id);
                let (account, games) = (request.account_id, &self.shared.games);
                let from = (self.address.ip().to_canonical(), &self.outbox);
                let joined = games.join(number, account, player, from, &mut self.membership).await;
                if let Err(error) = joined
                    && let Some(count) = self.shared.figures.turned_away.count()
                {
                    let address = self.address;
                    tracing::info!(%address, player, number, ?error, count, "refused joins");
                }
                self.notice()?;
                let result = joined.err().unwrap_or(NetError::Success);
                let reply: ServerMessage<'_> =
                    JoinAgeReply { trans_id: request.trans_id, result }.into();
                sent(sender.send(&reply.into()))
            }
            (ClientMessage::PropagateBuffer(message), Some(membership)) => {
                let Membership { player, serial, .. } = *membership;
                let (class, bytes) = (message.type_, message.buffer.to_vec());
                let turn = turn(&mut self.pace, bytes.len(), &membership.effort).await;
                let Some(turn) = turn else { return Flow::Break(()) };
                let command = Command::Message { player, serial, class, bytes, turn };
                flow(membership.commands.send(command).await.is_ok())
            }
            (ClientMessage::GameMgrMsg(message), Some(membership)) => {
                let Membership { player, serial, .. } = *membership;
                // If a message is too long, its content does not matter.
                let size = message.buffer.len();
                let bytes = message.buffer.get(..=MAX_BYTES).unwrap_or(&message.buffer).to_vec();
                let turn = turn(&mut self.pace, size, &membership.effort).await;
                let Some(turn) = turn else { return Flow::Break(()) };
                let command = Command::GameManager { player, serial, bytes, turn };
                flow(membership.commands.send(command).await.is_ok())
            }
            (message, _) => {
                let (name, address, state) = (message.name(), self.address, self.state());
                if let Some(count) = self.shared.figures.turned_away.count() {
                    tracing::warn!(%address, state, name, count, "connection closed: unexpected message");
                }
                Flow::Break(())
            }
        }
    }

    /// The client's state, for the log.
    pub(super) fn state(&self) -> &'static str {
        if self.membership.is_some() { "joined" } else { "not joined" }
    }

    /// Waits until the age has messages for the client, or closes the connection.
    pub(super) async fn notified(&self) {
        self.outbox.news().await;
    }

    /// Ends the connection if the age has closed it, or must send nothing more.
    pub(super) fn notice(&self) -> Flow {
        let is_over = self.membership.as_ref().is_some_and(|membership| membership.is_over());
        let lapsed = is_over.then_some(LAPSED);
        match self.outbox.end().or(lapsed) {
            Some(why) => {
                if let Some(count) = self.shared.figures.sent_away.count() {
                    tracing::info!(address = %self.address, why, count, "connection closed by the age");
                }
                Flow::Break(())
            }
            None => Flow::Continue(()),
        }
    }

    pub(super) fn wants_room(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Sends some of the queued messages.
    pub(super) fn room(&mut self, sender: &mut Sender) -> Flow {
        // Otherwise, queued messages could contradict those that another process has sent.
        self.notice()?;
        self.outbox.take(PORTION, &mut self.taken);
        for packet in self.taken.drain(..) {
            sent(sender.send(&packet.message().into()))?;
        }
        let said = self.membership.as_ref().and_then(|membership| membership.clock());
        self.notice()?;
        if let Some(membership) = &mut self.membership {
            membership.spoke(said);
        }
        Flow::Continue(())
    }

    /// Handles the end of the connection.
    pub(super) async fn ended(&mut self) {
        if let Some(membership) = self.membership.take() {
            membership.log_last_word();
            let Membership { player, serial, commands, .. } = membership;
            // This fails if the age has ended.
            let _ = commands.send(Command::Leave { player, serial }).await;
        }
    }
}

/// Waits until another message of this size may be sent to the age. `None` if the age has ended.
async fn turn(pace: &mut Pace, size: usize, effort: &Effort) -> Option<OwnedSemaphorePermit> {
    let wait = pace.wait(size, effort);
    if !wait.is_zero() {
        sleep(wait).await;
    }
    effort.turn().await
}

/// Ends the connection if the age has ended.
fn flow(is_running: bool) -> Flow {
    if is_running { Flow::Continue(()) } else { Flow::Break(()) }
}
