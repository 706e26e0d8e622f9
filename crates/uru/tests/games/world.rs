//! Players in an age, whose clients check everything they receive.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use worldwire_core::json::{Json, json};
use worldwire_core::{Reader, Side};
use worldwire_uru::games::message::heek::server::ServerMessage as Heek;
use worldwire_uru::games::message::manager::GameResult;
use worldwire_uru::games::message::manager::server::ServerMessage as Manager;
use worldwire_uru::games::message::marker::server::ServerMessage as Marker;
use worldwire_uru::games::message::var_sync::server::ServerMessage as VarSync;
use worldwire_uru::games::{
    GameBody, GameDelivery, GameEvent, GameHeader, GameIds, GameManager, GameMessage, GamePlayer,
    GameText, GameType, GamesConfig, MarkerAnswer, MarkerLibrary, MarkerRequest, Refused,
    RefusedClass, Ticket, text_fault,
};

pub(crate) const A: u32 = 1_001;
pub(crate) const B: u32 = 1_002;
pub(crate) const D: u32 = 1_004;

/// What a client received.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Got {
    pub(crate) trans_id: u32,
    pub(crate) game_id: u32,
    pub(crate) body: GameBody<'static>,
    pub(crate) bytes: Arc<[u8]>,
}

impl Got {
    pub(crate) fn name(&self) -> &'static str {
        self.body.name().unwrap_or("?")
    }
}

/// An age with its games, its store, and the clients of its players.
pub(crate) struct World {
    pub(crate) games: GameManager,
    pub(crate) library: MarkerLibrary,
    pub(crate) now: Duration,
    /// Whether requests to the store wait for [`World::answer_one`].
    pub(crate) holds_store: bool,
    pub(crate) held: VecDeque<(Ticket, MarkerRequest)>,
    pub(crate) dropped: Vec<(u32, Refused)>,
    pub(crate) admins: BTreeSet<u32>,
    /// Games that clients know, by player.
    known: BTreeMap<u32, BTreeMap<u32, GameType>>,
    inboxes: BTreeMap<u32, Vec<Got>>,
    random: u64,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(GamesConfig::serving(GameType::ALL))
    }

    pub(crate) fn with(config: GamesConfig) -> Self {
        Self {
            games: GameManager::new(config, Arc::new(GameIds::new(7_000))),
            library: MarkerLibrary::default(),
            now: Duration::from_secs(100),
            holds_store: false,
            held: VecDeque::new(),
            dropped: Vec::new(),
            admins: BTreeSet::new(),
            known: BTreeMap::new(),
            inboxes: BTreeMap::new(),
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
        let inbox = self.inboxes.get(&player).into_iter().flatten();
        let id = inbox.rev().find_map(|got| match &got.body {
            GameBody::ManagerServer(Manager::GameInstance(game)) => Some(game.game_id),
            _ => None,
        });
        id.unwrap()
    }

    pub(crate) fn leave(&mut self, player: u32) {
        self.games.leave(self.now, player);
        self.settle();
        self.known.remove(&player);
    }

    /// Lets the clock run.
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
                self.deliver(delivery);
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

    /// Passes a message to a client, and checks that the client would not crash.
    fn deliver(&mut self, delivery: GameDelivery) {
        let known = self.known.entry(delivery.to).or_default();
        let header = GameHeader::of(&delivery.bytes).expect("a header");
        let game = known.get(&header.game_id).copied();
        assert!(header.game_id == 0 || game.is_some(), "a message before GameInstance");
        let message = GameMessage::decode(game, Side::Server, &mut Reader::new(&delivery.bytes));
        let message = message.unwrap_or_else(|error| panic!("{error}")).into_owned();
        let again = message.to_bytes().unwrap();
        assert_eq!(*again, *delivery.bytes, "bytes after a text");
        let name = message.body.name().expect("a number that clients know");
        match &message.body {
            GameBody::ManagerServer(Manager::GameInstance(game)) => {
                assert_ne!(message.trans_id.0, 0, "an answer to nothing");
                let is_good = game.result == GameResult::Success;
                assert_eq!(is_good, game.game_id != 0);
                if is_good {
                    known.insert(game.game_id, GameType::of(game.game_type).unwrap());
                }
            }
            body => {
                assert_eq!(message.trans_id.0, 0, "{name} with a transaction");
                assert!(!matches!(body, GameBody::ManagerServer(_)), "{name} harms clients");
                assert!(texts_are_sound(body), "{name} with a text that harms clients");
            }
        }
        self.inboxes.entry(delivery.to).or_default().push(Got {
            trans_id: message.trans_id.0,
            game_id: message.game_id,
            body: message.body,
            bytes: delivery.bytes,
        });
    }

    /// Everything that a player has received since the last call.
    pub(crate) fn take(&mut self, player: u32) -> Vec<Got> {
        self.inboxes.remove(&player).unwrap_or_default()
    }

    /// The names of what a player has received since the last call.
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
        self.dropped.is_empty() && self.inboxes.values().all(Vec::is_empty)
    }
}

fn texts_are_sound(body: &GameBody<'_>) -> bool {
    fn sound<const N: usize>(text: &GameText<'_, N>) -> bool {
        text_fault(text).is_none()
    }
    match body {
        GameBody::HeekServer(Heek::Welcome(it)) => sound(&it.name),
        GameBody::MarkerServer(Marker::TemplateCreated(it)) => sound(&it.template),
        GameBody::MarkerServer(Marker::GameNameChanged(it)) => sound(&it.name),
        GameBody::MarkerServer(Marker::MarkerAdded(it)) => sound(&it.name) && sound(&it.age),
        GameBody::MarkerServer(Marker::MarkerNameChanged(it)) => sound(&it.name),
        GameBody::VarSyncServer(VarSync::StringVarChanged(it)) => sound(&it.value),
        GameBody::VarSyncServer(VarSync::StringVarCreated(it)) => {
            sound(&it.name) && sound(&it.value)
        }
        GameBody::VarSyncServer(VarSync::NumericVarCreated(it)) => sound(&it.name),
        _ => true,
    }
}

/// A message of a client, given as `Marker.AddMarker` and its fields.
pub(crate) fn encoded(trans_id: u32, game_id: u32, name: &str, fields: Json) -> Vec<u8> {
    let (game, name) = name.split_once('.').unwrap();
    let json = json!({
        "game": game, "messageId": name, "transId": trans_id, "gameId": game_id, "fields": fields,
    });
    let message = GameMessage::from_json(Side::Client, &json);
    message.and_then(|message| message.to_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

/// The fields of `JoinGame` for a common game, as clients send it.
pub(crate) fn join(game: GameType, table: u32) -> Json {
    let data = match game {
        GameType::TicTacToe => json!({"players": 2}),
        GameType::Marker => markers("", 0)["createData"].clone(),
        _ => json!({"filler": game != GameType::Heek}),
    };
    let game_type = game.id().to_string();
    json!({"gameId": table, "options": ["Common"], "gameType": game_type, "createData": data})
}

/// The fields of `CreateGame` for a marker game.
pub(crate) fn markers(template: &str, kind: u8) -> Json {
    let data = json!({"type": kind, "name": "Hunt", "timeLimit": 120, "template": template});
    let game_type = GameType::Marker.id().to_string();
    json!({"gameType": game_type, "options": [], "createData": data})
}
