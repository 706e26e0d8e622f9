//! The small games in an age: the game manager of one instance.
//!
//! The age's task drives the manager just as it drives the age itself. The vault carries out marker
//! games' requests in order, one batch at a time. The answers reach players only after the commit.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use worldwire_uru::age::Packet;
use worldwire_uru::games::{
    GameDelivery, GameEvent, GameManager, GamePlayer, GameType, MarkerAnswer, MarkerRequest,
    Refused, Ticket,
};
use worldwire_uru::types::Uuid;

use super::registry::{AgeRef, Registry, StartedGame};
use crate::uru::vault::Vault;
use crate::uru::vault::age_states::Owner;
use crate::uru::vault::markers::AT_ONCE;

/// The source of random bytes for games. Clones share it.
#[derive(Clone)]
pub struct GameRandom(Arc<Fill>);

/// Fills a buffer.
type Fill = dyn Fn(&mut [u8]) + Send + Sync;

impl GameRandom {
    /// Takes random bytes from a function that fills buffers.
    pub fn new(fill: impl Fn(&mut [u8]) + Send + Sync + 'static) -> Self {
        Self(Arc::new(fill))
    }

    pub(super) fn fill(&self, bytes: &mut [u8]) {
        (self.0)(bytes);
    }
}

impl Default for GameRandom {
    /// The operating system's random numbers.
    fn default() -> Self {
        Self::new(|bytes| {
            // Without random numbers, several templates would get the same UUID, so panic.
            if let Err(error) = getrandom::fill(bytes) {
                panic!("cannot get random numbers: {error}");
            }
        })
    }
}

impl fmt::Debug for GameRandom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GameRandom(..)")
    }
}

/// The games in an age.
pub(super) struct SmallGames {
    manager: GameManager,
    requests: Requests,
    registry: Registry,
    /// The serial number of the age's task.
    host: u64,
    place: AgeRef,
}

/// A message that the manager refused, and its sender.
pub(super) type RefusedMessage = (u32, Refused);

impl SmallGames {
    /// An age without games. `vault` is the age's own handle.
    pub(super) fn new(registry: &Registry, vault: Vault, host: u64, place: &AgeRef) -> Self {
        Self {
            manager: registry.game_manager(),
            requests: Requests::new(vault, place.owner),
            registry: registry.clone(),
            host,
            place: place.clone(),
        }
    }

    /// Handles a message from a member of the age.
    pub(super) fn receive(&mut self, now: Duration, from: GamePlayer, bytes: &[u8]) {
        let random = self.registry.game_random();
        self.manager.receive(now, from, bytes, &mut |bytes: &mut [u8]| random.fill(bytes));
    }

    /// Removes a player who has left the age.
    pub(super) fn leave(&mut self, now: Duration, player: u32) {
        self.manager.leave(now, player);
    }

    pub(super) fn timeout(&mut self, now: Duration) {
        if self.manager.poll_timeout().is_some_and(|due| due <= now) {
            self.manager.timeout(now);
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Duration> {
        self.manager.poll_timeout()
    }

    /// The next message for a member, and the member.
    pub(super) fn poll_delivery(&mut self) -> Option<(u32, Packet)> {
        let GameDelivery { to, bytes } = self.manager.poll_delivery()?;
        Some((to, Packet::of_game(bytes)))
    }

    /// Handles events, up to the next refused message.
    pub(super) fn poll_refused(&mut self) -> Option<RefusedMessage> {
        while let Some(event) = self.manager.poll_event() {
            match event {
                GameEvent::Markers { ticket, request } => {
                    self.requests.waiting.push_back((ticket, request));
                }
                GameEvent::Dropped { player_id, why } => return Some((player_id, why)),
                GameEvent::Joined { game_id, game_type, player_id } => {
                    self.joined(game_id, game_type, player_id);
                }
                GameEvent::Left { game_id, player_id } => {
                    self.registry.game_left(game_id, player_id);
                }
                GameEvent::Ended { game_id } => {
                    if let Some(game) = self.registry.game_ended(game_id) {
                        let (age, game) = (&self.place.name, game.game_type.name());
                        tracing::debug!(age, game, game_id, "game ended");
                    }
                }
                _ => {}
            }
        }
        None
    }

    fn joined(&self, game_id: u32, game_type: GameType, player: u32) {
        let started = StartedGame {
            host: self.host,
            place: self.place.clone(),
            game_type,
            template: self.manager.template(game_id),
            since: Instant::now(),
            players: Vec::new(),
        };
        if self.registry.game_joined(game_id, player, started) {
            let age = &self.place.name;
            tracing::debug!(age, game = game_type.name(), game_id, player, "game started");
        }
    }

    /// Waits for the vault and passes on its answers. Cancel safe.
    pub(super) async fn work(&mut self) {
        for (ticket, answer) in self.requests.work().await {
            self.manager.marker_answer(ticket, &answer);
        }
    }

    /// Waits until the vault has carried out all requests.
    pub(super) async fn finish(&mut self) {
        while !self.requests.is_idle() {
            self.work().await;
        }
    }
}

/// The outcome of a batch of requests.
type Answers = Vec<(Ticket, MarkerAnswer)>;

/// Requests to the vault.
struct Requests {
    vault: Vault,
    owner: Owner,
    waiting: VecDeque<(Ticket, MarkerRequest)>,
    running: Option<Pin<Box<dyn Future<Output = Answers> + Send>>>,
}

impl Requests {
    fn new(vault: Vault, owner: Owner) -> Self {
        Self { vault, owner, waiting: VecDeque::new(), running: None }
    }

    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.running.is_none()
    }

    /// Waits for the answers to the next batch; waits forever if there are no requests. Cancel
    /// safe.
    async fn work(&mut self) -> Answers {
        if self.running.is_none() {
            if self.waiting.is_empty() {
                return pending().await;
            }
            let count = self.waiting.len().min(AT_ONCE);
            let (tickets, requests): (Vec<_>, Vec<_>) = self.waiting.drain(..count).unzip();
            let (vault, owner) = (self.vault.clone(), self.owner);
            self.running = Some(Box::pin(async move {
                tickets.into_iter().zip(vault.carry_out(owner, requests).await).collect()
            }));
        }
        let Some(running) = &mut self.running else { return pending().await };
        let answers = running.await;
        self.running = None;
        answers
    }
}

/// The templates of running marker games.
pub(super) fn templates<'g>(games: impl Iterator<Item = &'g StartedGame>) -> BTreeSet<Uuid> {
    games.filter_map(|game| game.template).collect()
}
