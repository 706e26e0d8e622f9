//! An age with players whose clients check everything they receive.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::json::Json;
use worldwire_uru::games::{
    GameEvent, GameIds, GameManager, GamePlayer, GameType, GamesConfig, MarkerAnswer,
    MarkerLibrary, MarkerRequest, Refused, RefusedClass, Ticket,
};

pub(crate) use crate::mailbox::{Got, Mailbox};
use crate::model::Operation;
pub(crate) use crate::said::{encoded, join, markers};

pub(crate) const A: u32 = 1_001;
pub(crate) const B: u32 = 1_002;
pub(crate) const D: u32 = 1_004;
/// The players of the model.
pub(crate) const PLAYERS: [u32; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
/// The maximum length of a list of operations.
pub(crate) const OPERATIONS: usize = 220;

/// The number of lists of operations with which the model is compared.
pub(crate) fn rounds() -> u32 {
    300
}

/// An age with its games, its store, and the clients of its players.
pub(crate) struct World {
    config: GamesConfig,
    pub(crate) games: GameManager,
    pub(crate) library: MarkerLibrary,
    pub(crate) now: Duration,
    /// Whether requests to the store wait for [`World::answer_one`].
    pub(crate) holds_store: bool,
    pub(crate) held: VecDeque<(Ticket, MarkerRequest)>,
    pub(crate) dropped: Vec<(u32, Refused)>,
    pub(crate) admins: BTreeSet<u32>,
    mailboxes: BTreeMap<u32, Mailbox>,
    random: u64,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(GamesConfig::serving(GameType::ALL))
    }

    pub(crate) fn with(config: GamesConfig) -> Self {
        Self {
            games: GameManager::new(config.clone(), Arc::new(GameIds::new(7_000))),
            config,
            library: MarkerLibrary::default(),
            now: Duration::from_secs(100),
            holds_store: false,
            held: VecDeque::new(),
            dropped: Vec::new(),
            admins: BTreeSet::new(),
            mailboxes: BTreeMap::new(),
            random: 1,
        }
    }

    /// From now on, random bytes are zero.
    pub(crate) fn fix_random(&mut self) {
        self.random = 0;
    }

    pub(crate) fn seed(&mut self, seed: u64) {
        self.random = seed | 1;
    }

    pub(crate) fn send_bytes(&mut self, player: u32, bytes: &[u8]) {
        let random = &mut self.random;
        let mut fill = |bytes: &mut [u8]| {
            for byte in bytes {
                *random = random.wrapping_mul(6_364_136_223_846_793_005);
                *random = random.wrapping_add(u64::from(*random != 0) << 1);
                *byte = random.to_le_bytes()[7];
            }
        };
        let from = GamePlayer { id: player, is_admin: self.admins.contains(&player) };
        self.games.receive(self.now, from, bytes, &mut fill);
        self.settle();
    }

    /// Sends a message given as `Marker.AddMarker` and its fields.
    pub(crate) fn send(&mut self, player: u32, game_id: u32, name: &str, fields: Json) {
        self.send_in(player, 0, game_id, name, fields);
    }

    pub(crate) fn send_in(
        &mut self,
        player: u32,
        trans_id: u32,
        game_id: u32,
        name: &str,
        fields: Json,
    ) {
        let bytes = encoded(trans_id, game_id, name, fields);
        self.send_bytes(player, &bytes);
    }

    /// Joins a common game and returns its ID.
    pub(crate) fn join(&mut self, player: u32, game: GameType, table: u32) -> u32 {
        self.send_in(player, 9, 0, "Manager.JoinGame", join(game, table));
        self.last_instance(player)
    }

    /// Opens a marker game and returns its ID.
    pub(crate) fn open(&mut self, player: u32, template: &str, kind: u8) -> u32 {
        self.send_in(player, 9, 0, "Manager.CreateGame", markers(template, kind));
        self.last_instance(player)
    }

    /// The game of the last `GameInstance` that a player has received.
    fn last_instance(&self, player: u32) -> u32 {
        self.mailboxes.get(&player).and_then(Mailbox::last_instance).unwrap()
    }

    pub(crate) fn leave(&mut self, player: u32) {
        self.games.leave(self.now, player);
        self.settle();
        if let Some(mailbox) = self.mailboxes.get_mut(&player) {
            mailbox.forget_games();
        }
    }

    /// Ends all games without any message, after the store has answered this many of a player's
    /// messages to a game, and has carried out one more. Returns the answers that the player has
    /// received by then.
    pub(crate) fn kill(&mut self, player: u32, burst: &[Vec<u8>], answers: usize) -> Vec<Got> {
        self.holds_store = true;
        burst.iter().for_each(|bytes| self.send_bytes(player, bytes));
        let mut got = self.take(player);
        while got.len() < answers && self.answer_one() {
            got.extend(self.take(player));
        }
        if let Some((_, request)) = self.held.pop_front() {
            self.library.apply(&request);
        }
        self.held.clear();
        self.holds_store = false;
        self.games = GameManager::new(self.config.clone(), Arc::new(GameIds::new(7_000)));
        self.mailboxes.values_mut().for_each(Mailbox::forget_games);
        got
    }

    /// Called before each check; not needed in this world.
    pub(crate) fn look(&self) {}

    /// A list of operations that this world can run.
    pub(crate) fn paced(&self, operations: Vec<Operation>) -> Vec<Operation> {
        operations
    }

    /// Checks that exactly these games are running, by ID, with these members.
    pub(crate) fn runs(&self, games: &[(u32, Vec<u32>)]) {
        let running: Vec<_> = self.games.games().map(|it| (it.0, it.2.to_vec())).collect();
        assert_eq!(running, games);
    }

    /// Advances the clock past timers; this world knows their times itself.
    pub(crate) fn advance_over(&mut self, milliseconds: u64, _: &[u64]) {
        self.advance(milliseconds);
    }

    /// Advances the clock.
    pub(crate) fn advance(&mut self, milliseconds: u64) {
        let end = self.now + Duration::from_millis(milliseconds);
        for _ in 0..1_000 {
            let Some(at) = self.games.poll_timeout().filter(|at| *at <= end) else { break };
            self.now = self.now.max(at);
            self.games.timeout(self.now);
            self.settle();
        }
        self.now = end;
        assert!(self.games.poll_timeout().is_none_or(|at| at > end), "a timer does not end");
    }

    /// Lets the store answer the first waiting request.
    pub(crate) fn answer_one(&mut self) -> bool {
        let Some((ticket, request)) = self.held.pop_front() else { return false };
        let answer = self.library.apply(&request);
        self.answer(ticket, &answer);
        true
    }

    pub(crate) fn answer(&mut self, ticket: Ticket, answer: &MarkerAnswer) {
        self.games.marker_answer(ticket, answer);
        self.settle();
    }

    fn settle(&mut self) {
        loop {
            while let Some(delivery) = self.games.poll_delivery() {
                self.mailboxes.entry(delivery.to).or_default().deliver(delivery.bytes);
            }
            match self.games.poll_event() {
                None => break,
                Some(GameEvent::Markers { ticket, request }) => {
                    if self.holds_store {
                        self.held.push_back((ticket, request));
                    } else {
                        let answer = self.library.apply(&request);
                        self.games.marker_answer(ticket, &answer);
                    }
                }
                Some(GameEvent::Dropped { player_id, why }) => {
                    assert!(!why.to_string().is_empty());
                    self.dropped.push((player_id, why));
                }
                Some(_) => {}
            }
        }
        assert_eq!(self.games.poll_delivery(), None);
    }

    /// Everything that a player has received since the last call.
    pub(crate) fn take(&mut self, player: u32) -> Vec<Got> {
        self.mailboxes.get_mut(&player).map(Mailbox::take).unwrap_or_default()
    }

    /// The names of the messages that a player has received since the last call.
    pub(crate) fn names(&mut self, player: u32) -> Vec<&'static str> {
        self.take(player).iter().map(Got::name).collect()
    }

    /// The class of the only message that was dropped since the last call.
    pub(crate) fn refused(&mut self) -> RefusedClass {
        let dropped = core::mem::take(&mut self.dropped);
        assert_eq!(dropped.len(), 1, "{dropped:?}");
        dropped[0].1.class
    }

    /// Checks that nothing was dropped and nobody received anything since the last calls.
    pub(crate) fn is_quiet(&self) -> bool {
        self.dropped.is_empty() && self.mailboxes.values().all(Mailbox::is_empty)
    }
}
