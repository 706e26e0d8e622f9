//! Fuzz targets for the game manager and its games.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use worldwire_core::json::Style;
use worldwire_core::testing::operations::sampler;
use worldwire_core::testing::{Target, decode};
use worldwire_core::{Limits, Reader, Sampler, Side};

use crate::games::message::manager::GameResult;
use crate::games::message::manager::client::ClientMessage;
use crate::games::message::manager::server::ServerMessage;
use crate::games::message::{CreateData, tables};
use crate::games::{
    GameBody, GameBounds, GameDelivery, GameEvent, GameHeader, GameIds, GameManager, GameMessage,
    GamePlayer, GameScope, GameType, GamesConfig, MarkerAnswer, MarkerBounds, MarkerLibrary,
    MarkerRequest, Ticket,
};

/// All scopes of messages.
fn scopes() -> impl Iterator<Item = GameScope> {
    let games = GameType::ALL.map(GameScope::Game);
    [GameScope::Manager, GameScope::Unknown].into_iter().chain(games)
}

/// The type of the game and the sender, selected by a byte.
fn choice(byte: u8) -> (Option<GameType>, Side) {
    let sender = if byte & 1 == 0 { Side::Client } else { Side::Server };
    (GameType::ALL.get(usize::from(byte >> 1)).copied(), sender)
}

/// A message of the game that the first byte selects. A decoded message must encode, directly and
/// from its JSON, to bytes that decode to the same message: only uninitialised memory may be lost.
fn message(data: &[u8]) {
    let Some((byte, bytes)) = data.split_first() else { return };
    let (game, sender) = choice(*byte);
    let decoded = decode(
        bytes,
        &Limits::DEFAULT,
        Style { safe: true },
        |reader| GameMessage::decode(game, sender, reader),
        |reader| GameMessage::decode(game, sender, reader),
    );
    assert_eq!(decoded.value, decoded.traced, "a trace changed the value");
    let Ok(value) = decoded.value else { return };
    let made = value.to_bytes().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(made.len(), bytes.len(), "the length changed");
    let again = GameMessage::decode(game, sender, &mut Reader::new(&made));
    assert_eq!(again.as_ref(), Ok(&value), "decodes to a different message");
    let again = GameMessage::from_json(sender, &decoded.json);
    let again = again.and_then(|message| message.to_bytes());
    assert_eq!(again.as_deref(), Ok(&*made), "JSON encodes to different bytes: {}", decoded.json);
}

/// Every message, in several generated variants.
fn messages() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for scope in scopes() {
        for side in Side::BOTH {
            for info in tables(scope, side).into_iter().flatten() {
                for seed in 0..2 {
                    let mut sampler = Sampler::new(seed * 1000 + u64::from(info.number));
                    let message = GameMessage::sample(scope, side, info.number, &mut sampler);
                    let Some(bytes) = message.and_then(|message| message.to_bytes().ok()) else {
                        continue;
                    };
                    let game = (0..).zip(GameType::ALL).find(|it| GameScope::Game(it.1) == scope);
                    let game = game.map_or(7, |(number, _)| number);
                    let byte = game << 1 | u8::from(side == Side::Server);
                    seeds.push([&[byte][..], &bytes].concat());
                }
            }
        }
    }
    seeds
}

/// Bounds low enough for a list of operations to reach.
const BOUNDS: GameBounds = GameBounds {
    tables: 3,
    members: 3,
    own_games: 2,
    variables: 3,
    waiting: 4,
    burst: 40,
    interval: Duration::from_millis(10),
};
/// The header of an operation: a kind, a player and a byte count, followed by the bytes.
const HEAD: usize = 3;
const KINDS: u8 = 6;
const PLAYERS: u8 = 4;

/// Drives a game manager through the operations that `data` encodes. Invariants: no message sent
/// crashes its client, and the client knows the game that it belongs to; only replies to requests
/// have a transaction; receivers are members; games without a table have members; bounds hold.
fn manager(data: &[u8]) {
    drive(data);
}

/// The types of games that had several members, and the number of messages sent.
#[derive(Default)]
struct Reached {
    shared: BTreeMap<GameType, usize>,
    sent: usize,
    dropped: usize,
}

struct Age {
    manager: GameManager,
    library: MarkerLibrary,
    requests: VecDeque<(Ticket, MarkerRequest)>,
    now: Duration,
    /// Games that clients know, by player.
    known: BTreeMap<(u32, u32), GameType>,
    /// The requests that have not been answered yet.
    open: BTreeMap<(u32, u32), usize>,
    /// The members of games, as events report them.
    members: BTreeMap<u32, BTreeSet<u32>>,
    seen: Reached,
}

fn drive(data: &[u8]) -> Reached {
    let config = GamesConfig { bounds: BOUNDS, ..GamesConfig::serving(GameType::ALL) };
    let bounds = MarkerBounds { markers: 3, templates: 2 };
    let mut age = Age {
        manager: GameManager::new(config, Arc::new(GameIds::new(5))),
        library: MarkerLibrary::new(bounds),
        requests: VecDeque::new(),
        now: Duration::ZERO,
        known: BTreeMap::new(),
        open: BTreeMap::new(),
        members: BTreeMap::new(),
        seen: Reached::default(),
    };
    let mut rest = data;
    while let Some((&[kind, player, length], behind)) = rest.split_first_chunk::<HEAD>() {
        let (bytes, behind) = behind.split_at(behind.len().min(length.into()));
        rest = behind;
        age.step(kind % KINDS, u32::from(player % PLAYERS) + 1, bytes);
        age.settle();
    }
    age.seen
}

impl Age {
    fn step(&mut self, kind: u8, player: u32, bytes: &[u8]) {
        let mut sampler = sampler(bytes);
        match kind {
            0 => {
                self.manager.leave(self.now, player);
                self.known.retain(|(of, _), _| *of != player);
                self.open.retain(|(of, _), _| *of != player);
            }
            1 => {
                let quarters = bytes.first().copied().unwrap_or(1);
                self.now += Duration::from_millis(u64::from(quarters) * 250);
                for _ in 0..64 {
                    if self.manager.poll_timeout().is_some_and(|at| at <= self.now) {
                        self.manager.timeout(self.now);
                    }
                }
                assert!(self.manager.poll_timeout().is_none_or(|at| at > self.now), "a timer");
            }
            // The store answers a request.
            2 => {
                let Some((ticket, request)) = self.requests.pop_front() else { return };
                let answer = match sampler.below(8) {
                    0 => MarkerAnswer::Failed,
                    _ => self.library.apply(&request),
                };
                self.manager.marker_answer(ticket, &answer);
            }
            // Arbitrary bytes.
            3 => self.receive(player, bytes, &mut sampler),
            // Any request.
            4 => {
                let number = u32::try_from(sampler.below(2)).unwrap_or(0);
                let scope = GameScope::Manager;
                let message = GameMessage::sample(scope, Side::Client, number, &mut sampler);
                let Some(mut message) = message else { return };
                message.trans_id.0 = 1 + u32::try_from(sampler.below(4)).unwrap_or(0);
                tame(&mut message.body, &mut sampler);
                self.send(player, &message, &mut sampler);
            }
            // A message for a game.
            _ => {
                let games: Vec<(u32, GameType)> =
                    self.manager.games().map(|game| (game.0, game.1)).collect();
                let at = usize::try_from(sampler.below(games.len().max(1) as u64)).unwrap_or(0);
                let Some((game_id, game)) = games.get(at).copied() else { return };
                let number = u32::try_from(sampler.below(13)).unwrap_or(0);
                let scope = GameScope::Game(game);
                let message = GameMessage::sample(scope, Side::Client, number, &mut sampler);
                let Some(mut message) = message else { return };
                message.game_id = game_id;
                self.send(player, &message, &mut sampler);
            }
        }
    }

    fn send(&mut self, player: u32, message: &GameMessage<'_>, sampler: &mut Sampler) {
        let Ok(mut bytes) = message.to_bytes() else { return };
        // Small numbers are more likely to be valid.
        if sampler.below(2) == 0 {
            bytes.iter_mut().skip(16).take(4).for_each(|byte| *byte %= 3);
        }
        self.receive(player, &bytes, sampler);
    }

    fn receive(&mut self, id: u32, bytes: &[u8], sampler: &mut Sampler) {
        let is_request = |bytes: &[u8]| {
            let header = GameHeader::of(bytes).filter(|it| it.game_id == 0 && it.trans_id != 0)?;
            let decoded = GameMessage::decode(None, Side::Client, &mut Reader::new(bytes));
            decoded.is_ok().then_some(header.trans_id)
        };
        if let Some(trans_id) = is_request(bytes) {
            *self.open.entry((id, trans_id)).or_default() += 1;
        }
        let from = GamePlayer { id, is_admin: id == 4 };
        let mut random = |bytes: &mut [u8]| {
            let length = bytes.len();
            bytes.copy_from_slice(&sampler.bytes(length));
        };
        self.manager.receive(self.now, from, bytes, &mut random);
    }

    /// Takes all output and checks every invariant.
    fn settle(&mut self) {
        while let Some(delivery) = self.manager.poll_delivery() {
            self.deliver(&delivery);
        }
        while let Some(event) = self.manager.poll_event() {
            match event {
                GameEvent::Markers { ticket, request } => {
                    self.requests.push_back((ticket, request));
                }
                GameEvent::Dropped { why, .. } => {
                    assert!(!why.to_string().is_empty());
                    self.seen.dropped += 1;
                }
                GameEvent::Joined { game_id, player_id, .. } => {
                    assert!(self.members.entry(game_id).or_default().insert(player_id), "twice");
                }
                GameEvent::Left { game_id, player_id } => {
                    let members = self.members.get_mut(&game_id).expect("a game that began");
                    assert!(members.remove(&player_id) && !members.is_empty(), "not a member");
                }
                GameEvent::Ended { game_id } => {
                    assert!(self.members.remove(&game_id).is_some(), "a game that never began");
                }
            }
        }
        let mut tables = BTreeMap::<GameType, usize>::new();
        let mut running = BTreeMap::new();
        for (game_id, game, members) in self.manager.games() {
            if !members.is_empty() {
                running.insert(game_id, members.iter().copied().collect());
            }
            *tables.entry(game).or_default() += 1;
            assert!(members.len() <= BOUNDS.members, "members");
            let most = self.seen.shared.entry(game).or_default();
            *most = members.len().max(*most);
        }
        assert_eq!(running, self.members, "the events disagree with the members");
        // Each bound allows for both tables and games without a table.
        let bound = BOUNDS.tables + BOUNDS.own_games * usize::from(PLAYERS);
        assert!(tables.values().all(|count| *count <= bound), "{tables:?}");
    }

    fn deliver(&mut self, delivery: &GameDelivery) {
        self.seen.sent += 1;
        let header = GameHeader::of(&delivery.bytes).expect("a header");
        let key = (delivery.to, header.game_id);
        let game = self.known.get(&key).copied();
        assert!(header.game_id == 0 || game.is_some(), "a game that the client does not know");
        let message = GameMessage::decode(game, Side::Server, &mut Reader::new(&delivery.bytes));
        let message = message.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(message.to_bytes().as_deref(), Ok(&*delivery.bytes));
        let GameBody::ManagerServer(manager) = message.body else {
            assert_eq!(header.trans_id, 0, "a message that is not an answer");
            assert!(message.body.name().is_some());
            return;
        };
        let ServerMessage::GameInstance(game) = manager else { panic!("{manager:?}") };
        let open = self.open.get_mut(&(delivery.to, header.trans_id));
        let open = open.filter(|open| **open > 0).expect("an answer to a request");
        *open -= 1;
        if game.result == GameResult::Success {
            let game_type = GameType::of(game.game_type).expect("a known type");
            self.known.insert((delivery.to, game.game_id), game_type);
        }
    }
}

/// Changes a request so that it is likely to be valid and to concern the same game as others.
fn tame(body: &mut GameBody<'_>, sampler: &mut Sampler) {
    let data = match body {
        GameBody::ManagerClient(ClientMessage::JoinGame(join)) => {
            join.request.game_id = u32::try_from(sampler.below(3)).unwrap_or(0);
            let Some(new_game) = &mut join.request.new_game else { return };
            join.request.options.0 |= 4;
            &mut new_game.data
        }
        GameBody::ManagerClient(ClientMessage::CreateGame(create)) => &mut create.request.data,
        _ => return,
    };
    match data {
        CreateData::TicTacToe(params) => params.players = 1 + params.players % 2,
        CreateData::Marker(params) => {
            params.marker_type.0 %= 2;
            params.template = match sampler.below(3) {
                0 => "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0".into(),
                _ => "".into(),
            };
        }
        CreateData::Nothing { .. } | CreateData::Other(_) => {}
    }
}

/// Operation lists in which players join games and play.
fn managers() -> Vec<Vec<u8>> {
    let list = |seed: u8| {
        let mut list = Vec::new();
        for step in 0..120_u8 {
            let mix = step.wrapping_mul(31).wrapping_add(seed.wrapping_mul(97));
            let kind = match step {
                0..40 => 4,
                _ if mix % 19 == 0 => mix % 4,
                _ => [5, 2, 5, 4, 5, 5, 5][usize::from(mix % 7)],
            };
            list.extend([kind, mix / 3, 2, mix, seed]);
            if step % 8 == 7 {
                list.extend([1, 0, 1, 2]);
            }
        }
        list
    };
    (0..24).map(list).collect()
}

pub(super) static TARGETS: &[Target] = &[
    Target { name: "uru_game_manager_message", run: message, seeds: messages },
    Target { name: "uru_games", run: manager, seeds: managers },
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The seeds reach games of every type, with several members if the type allows them.
    #[test]
    fn seeds_reach_every_game() {
        let (mut shared, mut sent) = (BTreeMap::<GameType, usize>::new(), 0);
        for seen in managers().iter().map(|seed| drive(seed)) {
            for (game, members) in seen.shared {
                let most = shared.entry(game).or_default();
                *most = members.max(*most);
            }
            sent += seen.sent;
        }
        for game in GameType::ALL {
            let wanted = if game == GameType::Marker { 1 } else { 2 };
            assert!(shared.get(&game).is_some_and(|most| *most >= wanted), "{game:?}: {shared:?}");
        }
        assert!(sent > 500, "{sent}");
    }
}
